"""Finds functions whose documentation does not begin with a verb: ``python tests/python/sentences.py [PATH...]``.

In Rust, a function's doc begins with a verb in the third person ("Returns", as in the standard library), and has more than three
words. In Python, it begins with a verb in the imperative (PEP 257: "Return").
Properties are named by what they are. Tests have names.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
VERBS = frozenset((Path(__file__).parent / "verbs.txt").read_text(encoding="utf-8").split())
"""The verbs in use, in their base form."""


def _third_person(verb: str) -> str:
    if verb in ("have", "do", "go"):
        return {"have": "has", "do": "does", "go": "goes"}[verb]
    if re.search(r"(s|x|z|ch|sh)$", verb):
        return verb + "es"
    return verb[:-1] + "ies" if re.search(r"[^aeiou]y$", verb) else verb + "s"


THIRD_PERSON = frozenset(_third_person(verb) for verb in VERBS) | {"is", "quits", "resets", "lets", "undoes"}


@dataclass(frozen=True)
class Doc:
    """The documentation of a function, and where it is."""

    path: Path
    line: int
    function: str
    first: str

    @property
    def sound(self) -> bool:
        """True if it begins with a verb, and says more than three words in Rust."""
        words = re.sub(r"[`*]", "", self.first).split()
        first = words[0].rstrip(".,:;").lower() if words else ""
        return first in THIRD_PERSON and len(words) > 3 if self.path.suffix == ".rs" else first in VERBS


def docs_of(path: Path) -> Iterator[Doc]:
    """Yield the documented functions of a file."""
    text = path.read_text(encoding="utf-8")
    yield from _of_rust(path, text) if path.suffix == ".rs" else _of_python(path, text)


def _of_rust(path: Path, text: str) -> Iterator[Doc]:
    doc: list[tuple[int, str]] = []
    test = False
    open_brackets = 0
    """Of an attribute of several lines."""
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if open_brackets or line.startswith("#["):
            open_brackets += line.count("[") - line.count("]")
            test |= line == "#[test]"
        elif line.startswith("///"):
            doc.append((number, line[3:].strip()))
        elif not (line.startswith("//") and doc):
            found = re.match(r'(?:pub(?:\([^)]*\))? )?(?:const )?(?:unsafe )?(?:extern "C" )?fn (\w+)', line)
            if found and doc and not test:
                first = " ".join(each for _, each in doc).strip()
                yield Doc(path, doc[0][0], found[1], first)
            doc, test = [], False


def _of_python(path: Path, text: str) -> Iterator[Doc]:
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("test_"):
            continue
        named = {
            each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in node.decorator_list
        }
        if named & {"property", "cached_property", "computed_field"}:
            continue
        if (doc := ast.get_docstring(node)) is not None and not doc.startswith("See :"):
            yield Doc(path, node.body[0].lineno, node.name, doc.split("\n\n")[0].replace("\n", " "))


def documented(*where: Path) -> list[Doc]:
    """Return all documented functions below ``where``, or of the whole repository if it is empty."""
    below = where or tuple(ROOT / each for each in ("crates", "python", "tests", "fuzz", "benches", "examples"))
    paths = sorted(
        {p for each in below for p in ([each] if each.is_file() else [*each.rglob("*.rs"), *each.rglob("*.py")])}
    )
    return [doc for path in paths if not {"target", "generated"} & {*path.parts} for doc in docs_of(path)]


if __name__ == "__main__":
    found = documented(*map(Path, sys.argv[1:]))
    unsound = [doc for doc in found if not doc.sound]
    if sys.argv[1:]:
        for doc in unsound:
            print(f"{doc.path}:{doc.line}: {doc.function}: {doc.first}")
    rooms: dict[str, Counter[bool]] = {}
    for doc in found:
        parts = doc.path.resolve().relative_to(ROOT).parts[:-1]
        rooms.setdefault("/".join(parts[: 2 if parts[0] == "crates" else 3]), Counter())[doc.sound] += 1
    for room, counts in sorted(rooms.items()):
        print(f"{room:40} {counts[True]:5} of {counts.total():5}")
    for suffix in (".rs", ".py"):
        of = [doc.sound for doc in found if doc.path.suffix == suffix]
        print(f"{suffix:40} {sum(of):5} of {len(of):5}  {100 * sum(of) / max(1, len(of)):.0f} %")
