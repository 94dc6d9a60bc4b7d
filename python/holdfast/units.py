"""Reads quantities as users write them: rates, times, sizes and shares, with their units.

``10Mbps``, ``1.5 Gbit/s``, ``100kbit``; ``5ms``, ``2 s``, ``10us``; ``64KiB``, ``1500B``; ``1%``. A rate is in bits per second, and
its prefixes are powers of ten. Prefixes of sizes are powers of ten too (``kB``), or of 1024 (``KiB``). Nothing here knows models:
:mod:`holdfast.parameters` reads fields whose names end in a unit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from holdfast.errors import ParameterError
from holdfast.terminal import excerpt

_WRITTEN: Final = re.compile(
    r"\s*(?P<number>[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,2})?)"
    r"\s*(?P<unit>[A-Za-z\N{MICRO SIGN}\N{GREEK SMALL LETTER MU}%/]{0,12})\s*"
)

_DECIMAL: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}

_BINARY: Final = {"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40}

_BITS: Final = ("bps", "bit", "bits", "bit/s", "bits/s", "b/s", "bp/s")


@dataclass(frozen=True)
class Quantity:
    """A kind of quantity: its name with an article, its units in lower case with their sizes, and an example."""

    what: str
    units: Mapping[str, Fraction]
    example: str

    def read(self, text: str) -> Fraction:
        """Parse a quantity with its unit, and return it in the base unit.

        Raises :class:`ParameterError` for a text that is no number with a unit of this kind, or is a number alone.
        """
        written = _WRITTEN.fullmatch(text)
        unit = written["unit"] if written else ""
        if written is None or (unit and (size := self._size(unit)) is None):
            bytes_hint = "; a rate is in bits" if self is RATE and "B" in unit else ""
            raise _error(f"{excerpt(repr(text), 60)} is not {self.what}, such as {self.example}{bytes_hint}")
        if not unit:
            raise _error(f"{text.strip()} has no unit; write {self.what} such as {self.example}")
        assert size is not None
        return Fraction(written["number"]) * size

    def _size(self, unit: str) -> Fraction | None:
        # A capital B is bytes, so "MB/s" is no rate in bits; all other letters may be large or small.
        if self is RATE and re.fullmatch(r"[kKmMgGtT]?i?B(?:/s|ps)?", unit):
            return None
        return self.units.get(unit.lower().replace("\N{GREEK SMALL LETTER MU}", "u").replace("\N{MICRO SIGN}", "u"))


def _error(sentence: str) -> ParameterError:
    return ParameterError("", "", sentence)


RATE: Final = Quantity(
    "a rate",
    {
        **{prefix + unit: Fraction(size) for prefix, size in _DECIMAL.items() for unit in _BITS},
        **{prefix: Fraction(size) for prefix, size in _DECIMAL.items() if prefix},
    },
    "10Mbps",
)
"""Rates; the base unit is bits per second."""

TIME: Final = Quantity(
    "a time",
    {
        "ns": Fraction(1, 10**9),
        "us": Fraction(1, 10**6),
        "ms": Fraction(1, 1000),
        "s": Fraction(1),
        "sec": Fraction(1),
        "min": Fraction(60),
        "h": Fraction(3600),
    },
    "5ms",
)
"""Times; the base unit is the second."""

SIZE: Final = Quantity(
    "a size",
    {
        **{
            f"{prefix}{unit}": Fraction(size) for prefix, size in (_DECIMAL | _BINARY).items() for unit in ("b", "byte")
        },
        "bytes": Fraction(1),
    },
    "64KiB",
)
"""Sizes; the base unit is the byte."""

SHARE: Final = Quantity("a share", {"%": Fraction(1, 100)}, "1%")
"""Shares; the base unit is 1, which is 100 %."""


def is_plain(text: str) -> bool:
    """Return True if a text is a number without a unit."""
    written = _WRITTEN.fullmatch(text)
    return written is not None and not written["unit"]


def _read(quantity: Quantity, text: str) -> Fraction:
    """Parse a quantity that must not be negative, and return it in the base unit; a number alone is in the base unit.

    Raises :class:`ParameterError` if it cannot be parsed, or is negative.
    """
    value = Fraction(text.strip()) if quantity is not TIME and is_plain(text) else quantity.read(text)
    if value < 0:
        raise _error(f"{text.strip()} is negative, and {quantity.what} is not")
    return value


def rate_bps(text: str) -> int:
    """Return a rate such as ``10Mbps`` in bits per second; a number alone is that. Raises :class:`ParameterError`."""
    value = _read(RATE, text)
    if value.denominator != 1:
        raise _error(f"{text.strip()} is not a whole number of bits per second")
    return value.numerator


def time_s(text: str) -> float:
    """Return a time such as ``5ms`` in seconds. Raises :class:`ParameterError`, also for a number alone."""
    return float(_read(TIME, text))


def time_ms(text: str) -> float:
    """Return a time such as ``5ms`` in milliseconds. Raises :class:`ParameterError`, also for a number alone."""
    return float(_read(TIME, text) * 1000)


def size_bytes(text: str) -> int:
    """Return a size such as ``64KiB`` in bytes; a number alone is that. Raises :class:`ParameterError`."""
    value = _read(SIZE, text)
    if value.denominator != 1:
        raise _error(f"{text.strip()} is not a whole number of bytes")
    return value.numerator


def share(text: str) -> float:
    """Return a share such as ``1%`` or ``0.01`` as a number from 0 to 1. Raises :class:`ParameterError`."""
    value = _read(SHARE, text)
    if value > 1:
        raise _error(f"{text.strip()} is more than 100%")
    return float(value)


@dataclass(frozen=True)
class Suffix:
    """A unit that ends a field's name: the quantity, and the unit's size in the quantity's base unit."""

    quantity: Quantity
    size: Fraction

    def read(self, text: str) -> int | float:
        """Parse a quantity, and return it in the field's unit, as :class:`int` if it is whole. Raises :class:`ParameterError`."""
        value = self.quantity.read(text) / self.size
        return value.numerator if value.denominator == 1 else float(value)


SUFFIXES: Final[Mapping[str, Suffix]] = {
    "bps": Suffix(RATE, Fraction(1)),
    "bit_s": Suffix(RATE, Fraction(1)),
    "s": Suffix(TIME, Fraction(1)),
    "ms": Suffix(TIME, Fraction(1, 1000)),
    "us": Suffix(TIME, Fraction(1, 10**6)),
    "ns": Suffix(TIME, Fraction(1, 10**9)),
    "bytes": Suffix(SIZE, Fraction(1)),
}
"""The units of fields, by the last word of the field's name, or the last two."""


def of_name(name: str) -> tuple[str, Suffix] | None:
    """Split a field's name into what stands before the unit, and the unit; None if it does not end with a unit.

    ``delay_ms`` is ``delay`` in milliseconds, and ``bytes`` a size without a name; ``packets_per_s`` is no time.
    """
    words = name.split("_")
    if "per" in words or (len(words) == 1 and name != "bytes"):
        return None
    for length in (2, 1):
        if (suffix := SUFFIXES.get("_".join(words[-length:]))) is not None:
            return "_".join(words[:-length]), suffix
    return None
