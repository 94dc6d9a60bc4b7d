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
    """Return the value of JSON text in a Unicode encoding, as :func:`read` does; ``path`` is named in errors."""

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
        text = content.decode(json.detect_encoding(content))
        return json.loads(
            text.removeprefix("\ufeff"),
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
