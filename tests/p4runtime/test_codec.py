"""Binary strings and friendly values: the specification's own examples, and properties."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.p4runtime import P4RuntimeError, codec

# Specification, "Examples of Valid Bytestring Encoding": width, value, string, whether it reads back as written.
VALID = [
    (8, 99, b"\x63", True),
    (16, 99, b"\x00\x63", False),
    (16, 99, b"\x63", True),
    (16, 12388, b"\x30\x64", True),
    (16, 12388, b"\x00\x30\x64", False),
    (12, 99, b"\x00\x63", False),
    (12, 99, b"\x63", True),
    (12, 99, b"\x00\x00\x63", False),
]
VALID_SIGNED = [
    (8, 99, b"\x63", True),
    (8, -99, b"\x9d", True),
    (8, -99, b"\xff\x9d", False),
    (12, -739, b"\xfd\x1d", True),
    (16, 0, b"\x00\x00", False),
    (16, 0, b"\x00", True),
]
INVALID = [
    (8, b"\x01\x63"),
    (8, b""),
    (16, b"\x01\x00\x63"),
    (12, b"\x10\x63"),
    (12, b"\x01\x00\x63"),
    (12, b"\x00\x40\x63"),
]
INVALID_SIGNED = [(8, b"\x00\x9d"), (12, b"\x8d\x1d"), (16, b"")]


@pytest.mark.parametrize(("width", "value", "data", "symmetric"), VALID)
def test_specification_valid(width: int, value: int, data: bytes, symmetric: bool) -> None:
    assert codec.decode(data, width) == value
    assert (codec.encode(value) == data) is symmetric
    assert codec.canonical(data) == codec.encode(value)


@pytest.mark.parametrize(("width", "value", "data", "symmetric"), VALID_SIGNED)
def test_specification_valid_signed(width: int, value: int, data: bytes, symmetric: bool) -> None:
    assert codec.decode_signed(data, width) == value
    assert (codec.encode_signed(value) == data) is symmetric


@pytest.mark.parametrize(("width", "data"), INVALID)
def test_specification_invalid(width: int, data: bytes) -> None:
    with pytest.raises(P4RuntimeError) as e:
        codec.decode(data, width)
    assert e.value.code == "OUT_OF_RANGE"


@pytest.mark.parametrize(("width", "data"), INVALID_SIGNED)
def test_specification_invalid_signed(width: int, data: bytes) -> None:
    with pytest.raises(P4RuntimeError) as e:
        codec.decode_signed(data, width)
    assert e.value.code == "OUT_OF_RANGE"


@given(st.integers(1, 300), st.data())
def test_encode_is_shortest_and_decodes(width: int, data: st.DataObject) -> None:
    value = data.draw(st.integers(0, codec.all_ones(width)))
    encoded = codec.encode(value)
    assert encoded == b"\0" or encoded[0] != 0
    padding = data.draw(st.integers(0, 4))
    assert codec.decode(b"\0" * padding + encoded, width) == value


@given(st.integers(1, 300), st.data())
def test_signed_encode_is_shortest_and_decodes(width: int, data: st.DataObject) -> None:
    value = data.draw(st.integers(-(1 << (width - 1)), (1 << (width - 1)) - 1))
    encoded = codec.encode_signed(value)
    assert codec.decode_signed(encoded, width) == value
    sign = b"\xff" if value < 0 else b"\0"
    assert codec.decode_signed(sign * data.draw(st.integers(0, 4)) + encoded, width) == value
    if len(encoded) > 1:
        assert int.from_bytes(encoded[1:], "big", signed=True) != value


@given(st.integers(1, 64), st.binary(max_size=12))
def test_decode_accepts_exactly_what_fits(width: int, data: bytes) -> None:
    fits = len(data) > 0 and int.from_bytes(data, "big") <= codec.all_ones(width)
    if fits:
        assert codec.decode(data, width) == int.from_bytes(data, "big")
    else:
        with pytest.raises(P4RuntimeError):
            codec.decode(data, width)


@pytest.mark.parametrize(
    ("value", "width", "expected"),
    [
        (7, 3, 7),
        (True, 1, 1),
        ("0x1f", 5, 31),
        ("0b101", 3, 5),
        ("12", 4, 12),
        ("10.0.0.1", 32, 0x0A000001),
        ("::1", 128, 1),
        ("fe80::2", 128, 0xFE80 << 112 | 2),
        ("02:00:00:00:00:0a", 48, 0x02000000000A),
        ("2-0-0-0-0-a", 48, 0x02000000000A),
        (ipaddress.IPv4Address("1.2.3.4"), 32, 0x01020304),
        (ipaddress.IPv6Address("::5"), 128, 5),
        (b"\x00\x00\x01\x00", 9, 256),
    ],
)
def test_friendly_values(value: codec.Value, width: int, expected: int) -> None:
    assert codec.to_int(value, width) == expected


@pytest.mark.parametrize(
    ("value", "width", "code", "text"),
    [
        (8, 3, "OUT_OF_RANGE", "does not fit into 3 bits"),
        (-1, 8, "OUT_OF_RANGE", "-1"),
        ("10.0.0.1", 31, "INVALID_ARGUMENT", "has 32 bits, the field 31"),
        ("02:00:00:00:00:01", 32, "INVALID_ARGUMENT", "MAC address"),
        ("nonsense", 32, "INVALID_ARGUMENT", "no number and no address"),
        ("010", 8, "INVALID_ARGUMENT", "leading zero"),
        (None, 8, "INVALID_ARGUMENT", "None"),
        (1.5, 8, "INVALID_ARGUMENT", "1.5"),
        ((1, 2), 8, "INVALID_ARGUMENT", "(1, 2)"),
    ],
)
def test_unfriendly_values(value: codec.Value, width: int, code: str, text: str) -> None:
    with pytest.raises(P4RuntimeError) as e:
        codec.to_int(value, width, "field 'x'")
    assert e.value.code == code
    assert text in str(e.value)
    assert "field 'x'" in str(e.value)


def test_prefixes() -> None:
    for value in ("10.1.0.0/16", ipaddress.IPv4Network("10.1.0.0/16"), (0x0A010000, 16), ["10.1.0.0", 16]):
        assert codec.to_prefix(value, 32) == (0x0A010000, 16)
    assert codec.to_prefix("10.1.2.3", 32) == (0x0A010203, 32)
    assert codec.to_prefix("2001:db8::/32", 128) == (0x20010DB8 << 96, 32)
    assert codec.to_prefix("0.0.0.0/0", 32) == (0, 0)
    with pytest.raises(P4RuntimeError, match=r"10\.1\.0\.0/16\?"):
        codec.to_prefix("10.1.2.3/16", 32)
    with pytest.raises(P4RuntimeError, match="prefix of 33 bits"):
        codec.to_prefix((0, 33), 32)
    with pytest.raises(P4RuntimeError, match="3 elements"):
        codec.to_prefix((0, 1, 2), 32)  # type: ignore[arg-type]


def test_masks_and_ranges() -> None:
    assert codec.to_ternary(5, 8) == (5, 0xFF)
    assert codec.to_ternary("10.0.0.0/8", 32) == (0x0A000000, 0xFF000000)
    assert codec.to_ternary([4, 6], 8) == (4, 6)
    with pytest.raises(P4RuntimeError, match="outside the mask"):
        codec.to_ternary((5, 2), 8)
    assert codec.to_range((1, 2), 8) == (1, 2)
    assert codec.to_range(3, 8) == (3, 3)
    with pytest.raises(P4RuntimeError, match="above the high end"):
        codec.to_range((2, 1), 8)


@given(st.sampled_from([32, 48, 128, 9, 20]), st.data())
def test_shown_values_are_understood(width: int, data: st.DataObject) -> None:
    value = data.draw(st.integers(0, codec.all_ones(width)))
    assert codec.to_int(codec.show(value, width), width) == value
