"""Common bytes of IGMP and MLD: reports of the latest version, and the fields of its queries behind the group.

A family says how wide its addresses are and how it codes times; ``igmp`` and ``mld`` have the rest.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address

from holdfast.control.membership.messages import (
    Address,
    Malformed,
    MalformedError,
    Query,
    Record,
    RecordKind,
    Report,
    decoded,
    encoded,
)
from holdfast.parameters import PS_PER_S

_KINDS = {int(kind): kind for kind in RecordKind}
_RECORDS_AT = 8


@dataclass(frozen=True)
class Family:
    """``latest``: the version whose messages these are. ``code_bits``: of the mantissa of a response time's code."""

    latest: int
    address_bytes: int
    code_bits: int
    response_unit_ps: int
    group_at: int
    """The offset of the group in a query."""
    address_of: Callable[[bytes], Address]
    """Of packed bytes, with a cache: the addresses in use are few, and heard often."""

    @property
    def longest_response_ps(self) -> int:
        """The longest response time in picoseconds that a query of the latest version can ask for."""
        return decoded((1 << self.code_bits + 4) - 1, self.code_bits) * self.response_unit_ps

    def group(self, data: bytes, at: int) -> Address:
        """Return the group address at offset ``at``. Raises :class:`MalformedError` if the address is not that of a group."""
        is_group = data[at] == 0xFF if self.address_bytes == 16 else data[at] >> 4 == 0xE
        if not is_group:
            raise MalformedError(Malformed.GROUP)
        return self.address_of(data[at : at + self.address_bytes])

    def query_group(self, data: bytes) -> Address | None:
        """Return the group that a query asks about, or None for a general query.

        Raises :class:`MalformedError` if the address is not that of a group.
        """
        end = self.group_at + self.address_bytes
        return self.group(data, self.group_at) if any(data[self.group_at : end]) else None

    def query(self, data: bytes, code: int) -> Query:
        """Decode a query of the latest version (RFC 3376, 4.1; RFC 3810, 5.1).

        ``code``: its encoded response time. Raises :class:`MalformedError` if it is too short or asks about what is not a group.
        """
        at = self.group_at + self.address_bytes
        if len(data) < at + 4:
            raise MalformedError(Malformed.QUERY_LENGTH)
        flags, interval, count = struct.unpack_from("!BBH", data, at)
        return Query(
            self.latest,
            self.query_group(data),
            decoded(code, self.code_bits) * self.response_unit_ps,
            self._sources(data, at + 4, count),
            suppress=bool(flags & 8),
            robustness=flags & 7,
            interval_s=decoded(interval, 4),
        )

    def query_code(self, query: Query) -> int:
        """Return the encoded response time of a query, in the floating-point form of the protocol's latest version."""
        return encoded(query.max_response_ps // self.response_unit_ps, self.code_bits)

    def behind_group(self, query: Query) -> bytes:
        """Return the bytes that follow the group address in a query of the latest version."""
        flags = query.suppress << 3 | (query.robustness if query.robustness < 8 else 0)
        rest = struct.pack("!BBH", flags, encoded(query.interval_s, 4), len(query.sources))
        return rest + b"".join(source.packed for source in query.sources)

    def report(self, data: bytes) -> Report:
        """Decode a report of the latest version (RFC 3376, 4.2; RFC 3810, 5.2).

        Raises :class:`MalformedError` if it is truncated.
        """
        (count,) = struct.unpack_from("!H", data, 6)
        records = []
        at = _RECORDS_AT
        for _ in range(count):
            if len(data) < at + 4 + self.address_bytes:
                raise MalformedError(Malformed.TRUNCATED)
            kind, auxiliary, sources = struct.unpack_from("!BBH", data, at)
            group = self.group(data, at + 4)
            at += 4 + self.address_bytes
            record_sources = self._sources(data, at, sources)
            at += self.address_bytes * sources + 4 * auxiliary
            if at > len(data):
                raise MalformedError(Malformed.TRUNCATED)
            # Those of an unknown kind are ignored, and the others are not (RFC 3376, 4.2.12; RFC 3810, 5.2.12).
            if (known := _KINDS.get(kind)) is not None:
                records.append(Record(known, group, record_sources))
        return Report(self.latest, tuple(records))

    def _sources(self, data: bytes, at: int, count: int) -> tuple[Address, ...]:
        width = self.address_bytes
        end = at + width * count
        if end > len(data):
            raise MalformedError(Malformed.TRUNCATED)
        return tuple(self.address_of(data[i : i + width]) for i in range(at, end, width))


IGMP = Family(3, 4, 4, PS_PER_S // 10, 4, lru_cache(1 << 16)(IPv4Address))
MLD = Family(2, 16, 12, PS_PER_S // 1000, 8, lru_cache(1 << 16)(IPv6Address))
