"""The line of a place in JSON text, for errors: any document, in any layout."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from holdfast.json_file import line_of

NAMES = ["a", "b", "links", "s1", "s1.5", "links.0", "0", 'quo"te', "tab\tname", "ü", "\\", "{", "]"]


def document(draw: random.Random, depth: int) -> Any:
    if depth == 0 or draw.random() < 0.2:
        return draw.choice([None, True, -1.5e3, "text", 'with "quotes" ]}', "a\nb", 10**30, [], {}])
    if draw.random() < 0.5:
        return [document(draw, depth - 1) for _ in range(draw.randrange(4))]
    return {name: document(draw, depth - 1) for name in draw.sample(NAMES, draw.randrange(4))}


def places(value: Any, place: str = "") -> list[tuple[str, Any, Any]]:
    """Return each place with the container and the key of its value."""
    found = []
    keys = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    for key, child in keys:
        name = f"{place}.{key}" if place else str(key)
        found += [(name, value, key), *places(child, name)]
    return found


@pytest.mark.parametrize("seed", range(40))
def test_any_place_of_any_document(seed: int) -> None:
    """Check by a mark in the place of the value: it is in the text once, and in the line."""
    draw = random.Random(seed)
    whole = document(draw, 4)
    known = places(whole)
    names = [name for name, _, _ in known]
    for name, container, key in known:
        # Names with dots may mean several places; the first is meant.
        if names.count(name) > 1 or any("." in str(part) for part in _keys(whole)):
            continue
        before, container[key] = container[key], "the mark"
        for indent, gap in ((None, ""), (1, ""), (4, "\r\n \t"), (0, "\n")):
            text = gap + json.dumps(whole, indent=indent, ensure_ascii=draw.random() < 0.5) + gap
            expected = text[: text.index('"the mark"')].count("\n") + 1
            for encoded in (text.encode(), text.encode("utf-8-sig"), text.encode("utf-16")):
                assert line_of(encoded, name) == expected, (name, text)
        container[key] = before


def _keys(value: Any) -> list[str]:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = list(value) if isinstance(value, dict) else []
    return own + [name for child in children for name in _keys(child)]


def test_names_with_dots_and_places_that_are_not_there() -> None:
    text = b'{\n "switches": {\n  "s1.5": {\n   "program": 3\n  },\n  "s1":\n   [\n    1,\n    2]\n }\n}'
    assert line_of(text, "switches.s1.5") == 3
    assert line_of(text, "switches.s1.5.program") == 4
    assert line_of(text, "switches.s1") == 6, "the name's line"
    assert line_of(text, "switches.s1.1") == 9
    assert line_of(text, "switches.s1.7") == 7, "as far as it goes"
    assert line_of(text, "nothing") == 1
    assert line_of(b"3", "links.0") == 1
