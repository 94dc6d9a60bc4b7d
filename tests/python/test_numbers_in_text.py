"""Numbers in texts of users are written in the digits 0 to 9: Python's own functions take more than that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import topologies
from holdfast.apps.firewall.rules import _port_range
from holdfast.errors import HoldfastError
from holdfast.live.switch import parse_port
from holdfast.operations.pages import endpoint
from holdfast.p4runtime import addresses
from holdfast.p4runtime.codec import to_int

PLACES: dict[str, Callable[[str], object]] = {
    "a field": lambda text: to_int(text, 16),
    "an address": lambda text: addresses.check(f"127.0.0.1:{text}"),
    "an endpoint": lambda text: endpoint("--listen", f"127.0.0.1:{text}"),
    "a port": lambda text: parse_port(f"{text}@veth0"),
    "a range of ports": _port_range,
    "the end of a range of ports": lambda text: _port_range(f"1-{text}"),
    "a link": lambda text: topologies.load("ring:20").find_link(f"s1-s2#{text}"),
    "a size": lambda text: topologies.load(f"ring:{text}"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", ["1_0", "\u0661", "\u0661\u0660", "\uff11", "1\u0660", "9" * 5000])
def test_other_digits_and_underscores_are_refused(place: str, text: str) -> None:
    # Fields of models raise ValueError themselves, which the model turns into an error with its place.
    with pytest.raises((HoldfastError, ValueError)) as raised:
        PLACES[place](text)
    assert isinstance(raised.value, HoldfastError) or "is neither a port nor a range" in str(raised.value)


@pytest.mark.parametrize("place", PLACES)
def test_digits_are_taken(place: str) -> None:
    PLACES[place]("1" if place == "a link" else "10")


@pytest.mark.parametrize("text", ["+7", " 7", "7 ", "0x_f", "1_000", "0x", "0b2", "0o8", "007", ""])
def test_what_only_python_takes_is_no_value_of_a_field(text: str) -> None:
    with pytest.raises(HoldfastError):
        to_int(text, 16)


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("00", 0), ("7", 7), ("0xFf", 255), ("0O17", 15), ("0b101", 5)])
def test_values_of_fields(text: str, value: int) -> None:
    assert to_int(text, 16) == value


def test_one_function_knows_the_digits_of_users() -> None:
    package = Path(topologies.__file__).parents[1]
    files = [path for path in package.rglob("*.py") if "tests" not in path.parts and path.name != "numerals.py"]
    assert len(files) > 200
    asks = (".isdecimal()", ".isdigit()", ".isnumeric()")
    assert not [path for path in files if any(each in path.read_text(encoding="utf-8") for each in asks)]
