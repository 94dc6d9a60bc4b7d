"""Parses XML files of users: entities from elsewhere are refused, and a file that is no XML is one sentence with its line."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from holdfast.errors import TopologyError

T = TypeVar("T")

DEEPEST = 100
"""The deepest nesting of elements in a file that is read as a tree."""

MULTIBYTE: Final = frozenset(
    (
        "big5",
        "big5hkscs",
        "cp932",
        "cp949",
        "cp950",
        "euc_jis_2004",
        "euc_jisx0213",
        "euc_jp",
        "euc_kr",
        "gb18030",
        "gb2312",
        "gbk",
        "hz",
        "iso2022_jp",
        "iso2022_kr",
        "johab",
        "shift_jis",
        "shift_jis_2004",
        "shift_jisx0213",
        "utf-32",
        "utf-32-be",
        "utf-32-le",
    )
)
"""The encodings that expat cannot decode itself."""


def parse(path: Path, content: bytes, read: Callable[[bytes | str], T]) -> T:
    """Call ``read`` with the content of a file, which it parses with :func:`new_parser`, and return its result.

    Raises :class:`TopologyError` with the line if the content is no XML.
    """
    try:
        try:
            return read(content)
        except (ValueError, LookupError) as error:
            # Expat has no decoder for it; Python may.
            return read(_decoded(content, path, error))
    except expat.ExpatError as error:
        raise TopologyError(f"{path}:{error.lineno}: not XML: {expat.ErrorString(error.code)}") from None


def new_parser(path: Path) -> expat.XMLParserType:
    """Return a parser that names elements ``namespace name``, and opens no other files or addresses.

    The parser raises :class:`TopologyError` for entities that the file does not declare, or that refer to other files.
    """
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True

    def refuse(message: str) -> NoReturn:
        raise TopologyError(f"{path}:{parser.CurrentLineNumber}: {message}")

    def unknown_entity(name: str, is_parameter: bool) -> None:
        if not is_parameter:
            refuse(f"the entity &{name}; is not declared in the file")

    def external_entity(*_: object) -> int:
        refuse("an entity refers to another file, which is not read")

    parser.SkippedEntityHandler = unknown_entity
    parser.ExternalEntityRefHandler = external_entity
    return parser


class Placed(Element):
    """An element of a tree, with its line in the file."""

    line: int = 1

    def named(self, name: str) -> list[Placed]:
        """Return the children with this name, in any namespace."""
        return [child for child in self if isinstance(child, Placed) and child.tag == name]

    def first(self, *names: str) -> Placed | None:
        """Return the first element on a path of names below this one; None if there is none."""
        found: Placed | None = self
        for name in names:
            found = next(iter(found.named(name)), None) if found is not None else None
        return found

    def words(self, *names: str) -> str:
        """Return the text of the first element on a path of names, without blanks around it; empty if there is none."""
        found = self.first(*names)
        return "" if found is None else (found.text or "").strip()


def tree(path: Path, content: bytes) -> Placed:
    """Return the root element of an XML file, with names without their namespaces. Raises :class:`TopologyError`."""
    return parse(path, content, lambda each: _tree(path, each))


def _tree(path: Path, content: bytes | str) -> Placed:
    builder: Any = TreeBuilder(element_factory=Placed)
    parser = new_parser(path)
    depth = 0

    def start(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise TopologyError(f"{path}:{parser.CurrentLineNumber}: elements are nested more than {DEEPEST} deep")
        builder.start(name.rpartition(" ")[2], dict(attributes)).line = parser.CurrentLineNumber

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(name.rpartition(" ")[2])

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = builder.data
    parser.Parse(content, True)
    root = builder.close()
    assert isinstance(root, Placed)
    return root


def _decoded(content: bytes, path: Path, error: Exception) -> str:
    """Decode a file whose declared encoding has several bytes per character.

    Raises :class:`TopologyError` for an unknown encoding.
    """
    declared = re.match(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._-]+)", content)
    name = declared[1].decode() if declared else ""
    try:
        if codecs.lookup(name).name in MULTIBYTE:
            return content.decode(name)
    except (LookupError, UnicodeError) as other:
        error = other
    raise TopologyError(f"{path}: not XML in an encoding that can be read ({name or 'none is declared'}): {error}")
