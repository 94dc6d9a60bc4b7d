"""Reads JSON files of users: bounded, without doubled keys, and with one sentence for a file that is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

from holdfast.errors import HoldfastError
from holdfast.regular_files import MOST_TEXT_BYTES, read_regular
from holdfast.terminal import excerpt

MOST_DIGITS = 1000
"""The most digits of a number; the time to convert one grows with the square of its digits."""


def read(path: Path, kind: type[HoldfastError], most_bytes: int = MOST_TEXT_BYTES) -> Any:
    """Return the value in a JSON file of at most ``most_bytes``. Raises ``kind`` with the file, and the line if it is known."""
    return parse(path, read_regular(path, most_bytes, kind), kind)


def parse(path: Path, content: bytes, kind: type[HoldfastError]) -> Any:
    """Return the value of JSON text in a Unicode encoding, as :func:`read` does; ``path`` is named in errors.

    Raises ``kind`` if it is no JSON, or declares a key twice in one object.
    """

    def refuse(what: str) -> NoReturn:
        raise kind(f"{path}: {excerpt(what, 120)}")

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping = dict(found)
        if len(mapping) < len(found):
            names = [name for name, _ in found]
            refuse(f"{next(name for name in names if names.count(name) > 1)!r} is declared twice in one object")
        return mapping

    def number(text: str) -> int:
        if len(text) > MOST_DIGITS:
            refuse(f"a number of {len(text)} digits")
        return int(text)

    try:
        return json.loads(
            _text(content),
            object_pairs_hook=pairs,
            parse_int=number,
            parse_constant=lambda name: refuse(f"{name} is no number in JSON"),
        )
    except json.JSONDecodeError as error:
        raise kind(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    except UnicodeDecodeError:
        raise kind(f"{path}: this is not text in UTF-8") from None
    except RecursionError:
        raise kind(f"{path}: it is nested too deeply") from None


def line_of(content: bytes, place: str) -> int:
    """Return the line of JSON text on which what is at a place begins, such as ``links.3``, or as much of the place as there is.

    ``content`` is text that :func:`parse` takes. The time is linear in its length.
    """
    text, decoder = _text(content), json.JSONDecoder()
    at, rest = _behind_space(text, 0), place
    while rest and (found := _child(text, at, rest, decoder)) is not None:
        at, rest = found
    return text.count("\n", 0, at) + 1


def _child(text: str, at: int, place: str, decoder: json.JSONDecoder) -> tuple[int, str] | None:
    """Return where the child of a value begins that ``place`` begins with, and the rest of the place; None if there is none."""
    if text[at] not in "{[":
        return None
    is_object, number = text[at] == "{", 0
    at = _behind_space(text, at + 1)
    while text[at] not in "}]":
        name, begin = str(number), at
        if is_object:
            name, at = decoder.raw_decode(text, at)
            at = _behind_space(text, _behind_space(text, at) + 1)
        if place == name or place.startswith(f"{name}."):
            # The place itself begins with the name of an object's member.
            return begin if place == name else at, place[len(name) + 1 :]
        _, at = decoder.raw_decode(text, at)
        at = _behind_space(text, at)
        if text[at] == ",":
            at = _behind_space(text, at + 1)
        number += 1
    return None


def _behind_space(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


def _text(content: bytes) -> str:
    return content.decode(json.detect_encoding(content)).removeprefix("\ufeff")
