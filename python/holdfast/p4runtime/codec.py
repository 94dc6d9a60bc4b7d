"""Values: P4Runtime's binary strings and what people write instead.

The specification (section "Bytestrings") asks for the shortest big-endian string that holds the value, at least one
byte; receivers accept leading zeros. People write integers, addresses, prefixes and pairs. This file knows widths but
no P4Info.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TypeAlias, TypeGuard

from holdfast.numerals import is_numeral
from holdfast.p4runtime.errors import P4RuntimeError

Value: TypeAlias = (
    int | str | bytes | ipaddress.IPv4Address | ipaddress.IPv6Address | ipaddress.IPv4Network | ipaddress.IPv6Network
)
"""A value in one of the forms that :func:`to_int` accepts; a text with a prefix length only where a prefix is
expected."""

Pair: TypeAlias = tuple[Value, Value] | list[Value]
"""(value, prefix length), (value, mask) or (low, high)."""

_NUMBER = re.compile(r"-?(?:0+|[1-9][0-9]*|0[xX][0-9A-Fa-f]+|0[oO][0-7]+|0[bB][01]+)")
"""The numbers that are accepted. Python's ``int`` also takes ``1_000``, ``+7``, blanks around it, and the digits of
other scripts."""

_MAC = re.compile(r"[0-9A-Fa-f]{1,2}([:-])(?:[0-9A-Fa-f]{1,2}\1){4}[0-9A-Fa-f]{1,2}")


def out_of_range(message: str) -> P4RuntimeError:
    """Return the error for a value that its field cannot hold."""
    return P4RuntimeError("OUT_OF_RANGE", message)


def encode(value: int) -> bytes:
    """Encode a non-negative integer as its canonical binary string: the shortest, at least one byte."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def encode_signed(value: int) -> bytes:
    """Encode an ``int<W>`` as its canonical binary string: the shortest two's complement."""
    bits = (value if value >= 0 else ~value).bit_length() + 1
    return value.to_bytes((bits + 7) // 8, "big", signed=True)


def decode(data: bytes, width: int, what: str = "value") -> int:
    """Decode a binary string for ``bit<width>`` in network order; leading zeros are allowed.

    Raises OUT_OF_RANGE if it is empty or too large.
    """
    if not data:
        raise out_of_range(f"{what}: the binary string is empty; zero is one byte of zero")
    value = int.from_bytes(data, "big")
    if value.bit_length() > width:
        raise out_of_range(f"{what}: {_short(data)} does not fit into {width} bit{'s' if width != 1 else ''}")
    return value


def decode_signed(data: bytes, width: int, what: str = "value") -> int:
    """Decode a binary string for ``int<width>``, two's complement in network order.

    Raises OUT_OF_RANGE if it is empty or too large.
    """
    if not data:
        raise out_of_range(f"{what}: the binary string is empty; zero is one byte of zero")
    value = int.from_bytes(data, "big", signed=True)
    if not -(1 << (width - 1)) <= value < 1 << (width - 1):
        raise out_of_range(f"{what}: {_short(data)} does not fit into {width} bits with sign")
    return value


def canonical(data: bytes) -> bytes:
    """Return a binary string without its leading zeros, but with one byte at least. The string must fit its field."""
    return data.lstrip(b"\0") or b"\0"


def all_ones(width: int) -> int:
    """Return the largest value of ``bit<width>``, in which all bits are 1."""
    return (1 << width) - 1


def prefix_mask(width: int, prefix_len: int) -> int:
    """Return the mask of a prefix: ``width`` bits, of which the first ``prefix_len`` are 1."""
    return all_ones(width) ^ all_ones(width - prefix_len)


def is_pair(value: Value | Pair | None) -> TypeGuard[Pair]:
    """Return True if a value is a pair.

    Raises INVALID_ARGUMENT for a list or tuple without exactly two elements; YAML files have pairs as lists.
    """
    if not isinstance(value, tuple | list):
        return False
    if len(value) != 2:
        raise P4RuntimeError("INVALID_ARGUMENT", f"{value!r} has {len(value)} elements; a pair has two")
    return True


def to_int(value: Value | Pair, width: int, what: str = "value") -> int:
    """Convert a value as people write it for ``bit<width>`` to an integer.

    Accepted are a non-negative int; bytes in network order; a string with an IPv4, IPv6 or MAC address (the field must have 32, 128
    or 48 bits), or with a decimal, ``0x``, ``0o`` or ``0b`` number; an address of :mod:`ipaddress`. Raises INVALID_ARGUMENT for any
    other value, OUT_OF_RANGE for one that does not fit.
    """
    if type(value) is int and value >= 0 and value.bit_length() <= width:
        return value  # most values, and there are many
    if isinstance(value, bytes | bytearray | memoryview):
        return decode(bytes(value), width, what)
    if isinstance(value, str):
        number = _parse(value, width, what)
    elif isinstance(value, ipaddress.IPv4Address | ipaddress.IPv6Address):
        number = _address(value, width, what)
    elif isinstance(value, int):
        number = int(value)
    else:
        raise P4RuntimeError("INVALID_ARGUMENT", f"{what}: {value!r} is no number, address or bytes")
    if number < 0 or number.bit_length() > width:
        raise out_of_range(f"{what}: {value!r} does not fit into {width} bit{'s' if width != 1 else ''}")
    return number


def to_prefix(value: Value | Pair, width: int, what: str = "prefix") -> tuple[int, int]:
    """Return (value, prefix length in bits) from ``"10.0.0.0/24"``, a network, a pair, or a single value (all bits).

    Raises INVALID_ARGUMENT if bits behind the prefix are not zero; the message has the value that was probably meant. ``width`` is
    that of the field, in bits; ``what`` names the value in errors.
    """
    if isinstance(value, ipaddress.IPv4Network | ipaddress.IPv6Network):
        value = str(value)
    if isinstance(value, str) and "/" in value:
        left, right = value.rsplit("/", 1)
        value = (left, right)
    if not is_pair(value):
        return to_int(value, width, what), width
    number, length = to_int(value[0], width, what), to_int(value[1], 16, f"{what}: prefix length")
    if length > width:
        raise out_of_range(f"{what}: a prefix of {length} bits in a field of {width}")
    if number & ~prefix_mask(width, length):
        meant = number & prefix_mask(width, length)
        raise P4RuntimeError(
            "INVALID_ARGUMENT",
            f"{what}: {value[0]!r} has bits set behind its prefix of {length} bits; {show(meant, width)}/{length}?",
        )
    return number, length


def to_ternary(value: Value | Pair, width: int, what: str = "value and mask") -> tuple[int, int]:
    """Return (value, mask) from a pair, a prefix, or a single value (then the mask has all bits).

    Raises INVALID_ARGUMENT if a bit of the value is outside the mask. ``width`` is that of the field, in bits; ``what`` names the
    value in errors.
    """
    is_network = isinstance(value, ipaddress.IPv4Network | ipaddress.IPv6Network)
    if is_network or (isinstance(value, str) and "/" in value):
        number, length = to_prefix(value, width, what)
        return number, prefix_mask(width, length)
    if not is_pair(value):
        return to_int(value, width, what), all_ones(width)
    number, mask = to_int(value[0], width, what), to_int(value[1], width, f"{what}: mask")
    if number & ~mask:
        raise P4RuntimeError("INVALID_ARGUMENT", f"{what}: {value[0]!r} has bits set outside the mask {value[1]!r}")
    return number, mask


def to_range(value: Value | Pair, width: int, what: str = "range") -> tuple[int, int]:
    """Return (low, high), both included, from a pair, or from a single value, which is both.

    Raises INVALID_ARGUMENT if low > high. ``width`` is that of the field, in bits; ``what`` names the value in errors.
    """
    if not is_pair(value):
        number = to_int(value, width, what)
        return number, number
    low, high = to_int(value[0], width, f"{what}: low"), to_int(value[1], width, f"{what}: high")
    if low > high:
        raise P4RuntimeError("INVALID_ARGUMENT", f"{what}: the low end {value[0]!r} is above the high end {value[1]!r}")
    return low, high


def show(value: int, width: int) -> str:
    """Format a value for people: an address where the width suggests one, else hexadecimal above 16 bits, else decimal."""
    if width == 32:
        return str(ipaddress.IPv4Address(value))
    if width == 128:
        return str(ipaddress.IPv6Address(value))
    if width == 48:
        return value.to_bytes(6, "big").hex(":")
    return hex(value) if width > 16 else str(value)


def _address(address: ipaddress.IPv4Address | ipaddress.IPv6Address, width: int, what: str) -> int:
    if address.max_prefixlen != width:
        raise P4RuntimeError(
            "INVALID_ARGUMENT", f"{what}: {address} has {address.max_prefixlen} bits, the field {width}"
        )
    return int(address)


def _parse(text: str, width: int, what: str) -> int:
    if _MAC.fullmatch(text):
        if width != 48:
            raise P4RuntimeError(
                "INVALID_ARGUMENT", f"{what}: {text!r} is a MAC address, but the field has {width} bits"
            )
        return int.from_bytes(bytes(int(part, 16) for part in re.split("[:-]", text)), "big")
    if _NUMBER.fullmatch(text):
        try:
            return int(text, 0)
        except ValueError:  # Python reads decimal numbers of a few thousand digits only
            raise P4RuntimeError(
                "INVALID_ARGUMENT", f"{what}: a number of {len(text)} decimal digits; write it in hexadecimal"
            ) from None
    if is_numeral(text):  # "010": int(text, 0) refuses leading zeros
        raise P4RuntimeError("INVALID_ARGUMENT", f"{what}: {text!r} has a leading zero; decimal or 0o octal?")
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise P4RuntimeError("INVALID_ARGUMENT", f"{what}: {text!r} is no number and no address") from None
    return _address(address, width, what)


def _short(data: bytes) -> str:
    """Return bytes as hexadecimal digits for a message; of more than 20 bytes, the first 20 and the number of bytes."""
    return f"0x{data.hex()}" if len(data) <= 20 else f"0x{data[:20].hex()}... ({len(data)} bytes)"
