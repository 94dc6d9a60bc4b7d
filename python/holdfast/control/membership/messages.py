"""Messages of IGMP and MLD: queries and reports, as values. ``igmp`` and ``mld`` encode and decode them.

Both protocols have the same messages. Those of older versions are given as the records that they stand for (RFC 3376, 7.3.2; RFC
3810, 8.3.2): a report as ``MODE_IS_EXCLUDE`` and a leave (or done) as ``CHANGE_TO_INCLUDE``, both without sources.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from ipaddress import IPv4Address, IPv6Address
from typing import TypeAlias

from holdfast.errors import HoldfastError

Address: TypeAlias = IPv4Address | IPv6Address


class RecordKind(IntEnum):
    """Of a group record (RFC 3376, 4.2.12; RFC 3810, 5.2.12)."""

    MODE_IS_INCLUDE = 1
    MODE_IS_EXCLUDE = 2
    CHANGE_TO_INCLUDE = 3
    CHANGE_TO_EXCLUDE = 4
    ALLOW_NEW_SOURCES = 5
    BLOCK_OLD_SOURCES = 6


@dataclass(frozen=True, slots=True)
class Record:
    """A report's record of one group."""

    kind: RecordKind
    group: Address
    sources: tuple[Address, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """``version``: of the protocol: IGMP 1 to 3, MLD 1 or 2."""

    version: int
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A general query has no group, and only one of the latest version has sources, robustness and interval.

    ``max_response_ps``: within which hosts answer. ``suppress``: the S flag, by which routers that hear the query do not lower
    their timers. ``robustness`` and ``interval_s``: the querier's (QRV and QQIC), 0 if it does not tell.
    """

    version: int
    group: Address | None
    max_response_ps: int
    sources: tuple[Address, ...] = ()
    suppress: bool = False
    robustness: int = 0
    interval_s: int = 0


Message: TypeAlias = Query | Report


class Malformed(StrEnum):
    """Why bytes are no message that a router acts upon."""

    TRUNCATED = "truncated"
    """Shorter than a header, or than a count in it promises."""
    CHECKSUM = "checksum"
    HEADER = "header"
    """The IP header's version or length is wrong, or it is a fragment."""
    OTHER_PROTOCOL = "other_protocol"
    """It is neither IGMP nor MLD."""
    UNKNOWN_TYPE = "unknown_type"
    """A type of message that hosts and routers ignore (RFC 3376, 4)."""
    QUERY_LENGTH = "query_length"
    """A query is as long as no version's (RFC 3376, 7.1; RFC 3810, 8.1)."""
    TTL = "ttl"
    """The time to live, or hop limit, is not 1."""
    NO_ROUTER_ALERT = "no_router_alert"
    """The Router Alert option (RFC 2113, RFC 2711) is missing where the version demands it."""
    SOURCE = "source"
    """It does not come from an address that its sender can have: for MLD, a link-local one."""
    GROUP = "group"
    """A group is not a multicast address."""


class MalformedError(HoldfastError):
    """A message of IGMP or MLD that a router does not act upon, with the reason by which it is counted."""

    def __init__(self, reason: Malformed) -> None:
        super().__init__(f"a message of IGMP or MLD is refused: {reason}")
        self.reason = reason


_SSM_V4 = 232
_SSM_V6 = {0xFF30_0000 + (scope << 16) for scope in range(16)}
"""The first bytes of the IPv6 groups that are for source-specific multicast only (RFC 4607, 1)."""


def is_ssm(group: Address) -> bool:
    """Return True if a group is in the range of source-specific multicast."""
    value = int(group)
    return value >> 24 == _SSM_V4 if group.version == 4 else value >> 96 in _SSM_V6


def stays_on_link(group: Address) -> bool:
    """Return True if routers never forward packets to a group: 224.0.0.0/24 (RFC 5771, 4); IPv6 scopes 0 to 2 (RFC 4291, 2.7)."""
    value = int(group)
    return value >> 8 == 0xE00000 if group.version == 4 else value >> 112 & 0xF <= 2


def decoded(code: int, bits: int) -> int:
    """Return the value of a code with a floating-point form (RFC 3376, 4.1.1 and 4.1.7; RFC 3810, 5.1.3 and 5.1.9).

    ``bits``: those of the mantissa without its implied leading 1: 4 in a code of 8 bits, 12 in a code of 16 bits.
    """
    if code < 1 << bits + 3:
        return code
    exponent = code >> bits & 7
    return (1 << bits | code & (1 << bits) - 1) << exponent + 3


def encoded(value: int, bits: int) -> int:
    """Return the code of the largest value that is not above ``value``; the largest code if ``value`` exceeds all that have one."""
    if value < 1 << bits + 3:
        return value
    exponent = min(value.bit_length() - bits - 4, 7)
    mantissa = min(value >> exponent + 3, (2 << bits) - 1)
    return 1 << bits + 3 | exponent << bits | mantissa & (1 << bits) - 1


def checksum(data: bytes) -> int:
    """Return the Internet checksum of ``data`` (RFC 1071)."""
    total = int.from_bytes(data + b"\0" * (len(data) % 2), "big") % 0xFFFF
    return 0xFFFF - total if total or not any(data) else 0
