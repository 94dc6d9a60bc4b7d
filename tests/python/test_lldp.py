"""LLDP frames: reading returns the written values, malformed frames are refused, and no forged frame passes as genuine."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast import lldp

KEY = bytes(range(32))
MAC = bytes.fromhex("020100010002")
HEAD = lldp.NEAREST_BRIDGE + MAC + b"\x88\xcc"


def made(name: str = "s1", port: int = 7, ttl_s: int = 4, made_at_ps: int = 123, key: bytes = KEY) -> bytes:
    return lldp.frame(MAC, name, port, ttl_s, made_at_ps, key)


def tlv(kind: int, value: bytes) -> bytes:
    return (kind << 9 | len(value)).to_bytes(2, "big") + value


CHASSIS, PORT, TTL = tlv(1, b"\x07s1"), tlv(2, b"\x071"), tlv(3, b"\0\4")


def test_the_bytes() -> None:
    """Compare a frame with bytes written by hand from 802.1AB, clause 8, except for the signature."""
    frame = made("s1", 12, 4, 0x0102030405060708)
    signature = frame[42:58]
    assert frame == bytes.fromhex(
        "0180c200000e 020100010002 88cc"
        "0203 07 7331"  # chassis id, locally assigned: s1
        "0403 07 3132"  # port id, locally assigned: 12
        "0602 0004"  # time to live: 4 s
        "fe1c 024846 01 0102030405060708"  # organisationally specific: when it was made
    ) + signature + bytes.fromhex("0000")  # fmt: skip
    assert len(frame) == 60


@given(
    name=st.text(min_size=1, max_size=60),
    port=st.integers(0, 509),
    ttl_s=st.integers(0, 65535),
    made_at_ps=st.integers(0, 2**64 - 1),
)
def test_what_is_written_is_read(name: str, port: int, ttl_s: int, made_at_ps: int) -> None:
    said = lldp.parse(made(name, port, ttl_s, made_at_ps))
    assert said.chassis == (lldp.LOCALLY_ASSIGNED, name.encode())
    assert said.port == (lldp.LOCALLY_ASSIGNED, str(port).encode())
    assert (said.ttl_s, said.made_at_ps) == (ttl_s, made_at_ps)
    assert said.is_genuine(KEY)
    assert not said.is_genuine(bytes(32))


@given(at=st.integers(14, 56), flip=st.integers(1, 255))
def test_a_changed_byte_is_no_proof(at: int, flip: int) -> None:
    """Check that a frame with any byte changed up to the signature's end is malformed, not signed, or not genuine."""
    frame = bytearray(made())
    frame[at] ^= flip
    try:
        said = lldp.parse(bytes(frame))
    except lldp.MalformedLldpError:
        return
    assert not said.is_genuine(KEY)


@settings(max_examples=500)
@given(rest=st.binary(max_size=120), head=st.booleans())
@example(rest=CHASSIS + PORT + TTL, head=True)
def test_any_bytes(rest: bytes, head: bool) -> None:
    """Check that random bytes raise no other error, and are never genuine."""
    packet = HEAD + rest if head else rest
    try:
        said = lldp.parse(packet)
    except lldp.MalformedLldpError:
        return
    assert not said.is_genuine(KEY)


TLVS = st.one_of(
    st.sampled_from([CHASSIS, PORT, TTL, tlv(0, b""), made()[27:57]]),
    st.builds(tlv, st.integers(0, 127), st.binary(max_size=511)),
)


@settings(max_examples=500)
@given(st.lists(TLVS, max_size=8), st.integers(0, 3))
def test_any_tlvs(parts: list[bytes], cut: int) -> None:
    """Check that frames of random TLVs are accepted only if the three mandatory TLVs come first, once each and whole."""
    body = b"".join(parts)
    packet = HEAD + body[: len(body) - cut]
    try:
        said = lldp.parse(packet)
    except lldp.MalformedLldpError:
        return
    kinds = [part[0] >> 1 for part in parts]
    assert kinds[:3] == [1, 2, 3]
    assert 1 <= len(said.chassis[1]) <= 255
    assert 1 <= len(said.port[1]) <= 255


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not the first three"),
        (CHASSIS + TTL + PORT, "not the first three"),
        (tlv(0, b"") + CHASSIS + PORT + TTL, "not the first three"),
        (CHASSIS + PORT + TTL + CHASSIS, "there twice"),
        (CHASSIS + PORT + tlv(3, b"\4"), "less than two bytes"),
        (tlv(1, b"\x07") + PORT + TTL, "chassis identifier has 1 bytes"),
        (CHASSIS + tlv(2, b"\x07" + bytes(256)) + TTL, "port identifier has 257 bytes"),
        (CHASSIS + PORT + TTL[:-1], "cut off"),
        (CHASSIS + PORT + TTL + b"\1", "cut off"),
        (CHASSIS + PORT + TTL + tlv(0, b"x"), "at the end has a value"),
        (CHASSIS + PORT + TTL + tlv(127, b"\1\2\3"), "does not name it"),
        (CHASSIS + PORT + TTL + tlv(127, lldp.ORGANISATION + b"\1" + bytes(23)), "27 bytes, not 28"),
    ],
)
def test_malformed(body: bytes, message: str) -> None:
    with pytest.raises(lldp.MalformedLldpError, match=message):
        lldp.parse(HEAD + body)


def test_of_others() -> None:
    """Check frames of a host's own LLDP daemon, with other subtypes, more TLVs, and with or without an end."""
    for end in (b"", tlv(0, b""), tlv(0, b"") + b"padding"):
        said = lldp.parse(
            HEAD + tlv(1, b"\x04" + MAC) + PORT + TTL + tlv(5, b"host") + tlv(127, b"\0\x80\xc2\1\0\1") + end
        )
        assert (said.chassis, said.signature) == ((4, MAC), None)
    assert not lldp.is_lldp(HEAD[:12] + b"\x08\x00" + CHASSIS)
    assert not lldp.is_lldp(b"")
    with pytest.raises(lldp.MalformedLldpError, match="is not LLDP"):
        lldp.parse(b"")
