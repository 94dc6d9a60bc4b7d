"""The BIER header against bytes written from RFC 8296, section 2, for each length of BitStrings."""

from __future__ import annotations

import pytest

from holdfast.apps.bier.header import BierHeader
from holdfast.errors import NetworkError

# Word by word: BIFT-id, TC, S, TTL; Nibble, Ver, BSL, Entropy; OAM, Rsv, DSCP, Proto, BFIR-id.
HEADER = BierHeader(
    bift_id=0xABCDE,
    tc=0b101,
    s=1,
    ttl=0x40,
    nibble=5,
    version=0,
    entropy=0x98765,
    oam=0b10,
    reserved=0b01,
    dscp=0b101110,
    proto=0b000110,
    bfir_id=0x0102,
    bit_string=0,
)
FIRST_WORD = "ABCDEB40"  # 0xABCDE, 101 1, 0x40
LAST_WORD = "9B860102"  # 10 01 101110 000110, 0x0102


@pytest.mark.parametrize(("bsl", "code"), [(64, 1), (128, 2), (256, 3), (512, 4), (1024, 5), (2048, 6), (4096, 7)])
def test_every_length_has_its_code_and_bit_one_is_the_last(bsl: int, code: int) -> None:
    header = BierHeader(**{**vars(HEADER), "bsl": bsl, "bit_string": 1 | 1 << (bsl - 2)})
    expected = bytes.fromhex(f"{FIRST_WORD}50{code:X}98765{LAST_WORD}") + b"\x40" + bytes(bsl // 8 - 2) + b"\x01"
    assert header.encode() == expected
    assert BierHeader.decode(expected + b"payload") == (header, b"payload")


@pytest.mark.parametrize("length", [0, 11, 12, 43])
def test_a_header_that_is_cut_is_none(length: int) -> None:
    with pytest.raises(NetworkError, match="no BIER header"):
        BierHeader.decode(HEADER.encode()[:length])


@pytest.mark.parametrize("code", [0, 8, 15])
def test_a_length_without_a_code_is_none(code: int) -> None:
    data = bytearray(HEADER.encode())
    data[5] = code << 4 | data[5] & 0xF
    with pytest.raises(NetworkError, match="no BIER header"):
        BierHeader.decode(bytes(data))


@pytest.mark.parametrize(
    ("field", "value"), [("ttl", 256), ("entropy", 1 << 20), ("proto", 64), ("bit_string", 1 << 256)]
)
def test_a_value_that_does_not_fit_raises(field: str, value: int) -> None:
    with pytest.raises(NetworkError, match=r"more than|longer than"):
        BierHeader(**{**vars(HEADER), field: value}).encode()
