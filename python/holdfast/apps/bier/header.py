"""The BIER header (RFC 8296) as a value and as bytes, for tools and tests. Packets in a network are the program's business."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.apps.bier.planning import BSL_CODES, checked_bsl
from holdfast.errors import NetworkError

FIXED_BYTES = 12
"""The length of a header without its BitString, in bytes."""

PROTO_IPV4 = 4
PROTO_IPV6 = 6

ETHERTYPE_BIER = 0xAB37
ETHERTYPE_MPLS = 0x8847

_LENGTHS = {code: bsl for bsl, code in BSL_CODES.items()}

_FIELDS = (
    ("bift_id", 20),
    ("tc", 3),
    ("s", 1),
    ("ttl", 8),
    ("nibble", 4),
    ("version", 4),
    ("bsl_code", 4),
    ("entropy", 20),
    ("oam", 2),
    ("reserved", 2),
    ("dscp", 6),
    ("proto", 6),
    ("bfir_id", 16),
)
"""Names and widths in bits, in the order of section 2.1 and 2.2."""


@dataclass(frozen=True, kw_only=True)
class BierHeader:
    """A header with a BitString of ``bsl`` bits; bit position ``p`` is ``1 << (p - 1)``."""

    bift_id: int
    bit_string: int
    bsl: int = 256
    tc: int = 0
    s: int = 1
    ttl: int = 64
    nibble: int = 0
    version: int = 0
    entropy: int = 0
    oam: int = 0
    reserved: int = 0
    dscp: int = 0
    proto: int = PROTO_IPV4
    bfir_id: int = 0

    @property
    def bsl_code(self) -> int:
        """The code of the BitString's length in the header (2.1.2)."""
        return BSL_CODES[checked_bsl(self.bsl)]

    def encode(self) -> bytes:
        """Return the header as bytes. Raise :class:`NetworkError` for a value that is too large for its field."""
        number = 0
        for name, width in _FIELDS:
            value = getattr(self, name)
            if not 0 <= value < 1 << width:
                raise NetworkError(f"{name} {value} has more than {width} bits")
            number = number << width | value
        if not 0 <= self.bit_string < 1 << self.bsl:
            raise NetworkError(f"the BitString is longer than {self.bsl} bits")
        return number.to_bytes(FIXED_BYTES, "big") + self.bit_string.to_bytes(self.bsl // 8, "big")

    @classmethod
    def decode(cls, data: bytes) -> tuple[BierHeader, bytes]:
        """Return the header at the beginning of ``data``, and the bytes behind it.

        Raise :class:`NetworkError` if the header is truncated, or if the code of its length is unknown.
        """
        number = int.from_bytes(data[:FIXED_BYTES], "big")
        values: dict[str, int] = {}
        for name, width in reversed(_FIELDS):
            values[name] = number & ((1 << width) - 1)
            number >>= width
        code = values.pop("bsl_code")
        bsl = _LENGTHS.get(code, 0)
        end = FIXED_BYTES + bsl // 8
        if not bsl or len(data) < end:
            raise NetworkError(f"{len(data)} bytes with a BSL code of {code} are no BIER header")
        bit_string = int.from_bytes(data[FIXED_BYTES:end], "big")
        return cls(bit_string=bit_string, bsl=bsl, **values), data[end:]
