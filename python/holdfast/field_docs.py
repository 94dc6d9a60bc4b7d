"""What the documentation of a class says of each of its fields, for schemas of files and tables of formats.

Of a class's text these are the sentences that begin with the field's name, as in "``mtu_bytes``: the most bytes ...", up to the
next such sentence; of its source the text below a field. A class has the words of those that it is made from. Nothing here knows
what the fields mean.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from functools import cache

_NAMED = re.compile(
    r"(?:^|(?<=[.:;]\s)|(?<=\n\n)|(?<=and )|(?<=; ))((?:``\w+``(?:, (?:and )?| and )?)+):\s", re.MULTILINE
)


@cache
def of(model: type) -> dict[str, str]:
    """Return the text about each field in a class's documentation, as plain text; fields that it does not mention are missing."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if each is not object and each.__module__.startswith("holdfast"):
            found |= _of_text(inspect.cleandoc(each.__dict__.get("__doc__") or ""))
            found |= _of_source(each)
    order = {name: number for number, name in enumerate(_names(model))}
    return dict(sorted(found.items(), key=lambda item: order.get(item[0], len(order))))


def _names(model: type) -> list[str]:
    """Return the fields of a class in the order in which it has them, those that it inherits first."""
    return list(dict.fromkeys(name for each in reversed(model.__mro__) for name in inspect.get_annotations(each)))


def about(model: type) -> str:
    """Return the first paragraph of a class's documentation as plain text, without the sentences that name fields."""
    text = inspect.cleandoc(model.__doc__ or "").partition("\n\n")[0]
    named = _NAMED.search(text)
    return plain(text[: named.start()] if named else text)


def plain(text: str) -> str:
    """Return documentation as one line of plain text: without the marks of code and of references."""
    text = re.sub(r":(?:class|func|meth|mod|data|attr):`[~!]?([^`]*)`", lambda match: match[1].rpartition(".")[2], text)
    return " ".join(text.replace("``", "").split())


def _of_text(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for paragraph in text.split("\n\n"):
        marks = list(_NAMED.finditer(paragraph))
        ends = [each.start() for each in marks[1:]] + [len(paragraph)]
        for mark, end in zip(marks, ends[: len(marks)], strict=True):
            words = plain(paragraph[mark.end() : end]).strip(" ;")
            for name in re.findall(r"``(\w+)``", mark[1]):
                found[name] = words if words.endswith(".") else f"{words}."
    return found


def _of_source(model: type) -> dict[str, str]:
    """Return the texts (docstrings) that follow fields in the source of a class."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return {}
    if not isinstance(tree, ast.ClassDef):
        return {}
    found = {}
    for field, text in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            value = text.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found[field.target.id] = plain(inspect.cleandoc(value.value))
    return found
