"""MLD in IPv6, versions 1 and 2 (RFC 2710, RFC 3810), from bytes and to bytes.

It does not know who hears a message, and what follows from it.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from ipaddress import IPv6Address

from holdfast.control.membership.messages import (
    Malformed,
    MalformedError,
    Message,
    Query,
    Record,
    RecordKind,
    Report,
    checksum,
    decoded,
    encoded,
)
from holdfast.parameters import PS_PER_S

ICMPV6 = 58
HOP_BY_HOP = 0

QUERY, REPORT_V1, DONE, REPORT_V2 = 130, 131, 132, 143
"""ICMPv6 types (RFC 3810, 5)."""

ALL_NODES = IPv6Address("ff02::1")
REPORTS_V2 = IPv6Address("ff02::16")
"""Where general queries go, and reports of version 2."""

ROUTER_ALERT = bytes((5, 2, 0, 0))
"""The option in the Hop-by-Hop header (RFC 2711), for MLD."""

RESPONSE_UNIT_PS = PS_PER_S // 1000

LONGEST_RESPONSE_PS = decoded(0xFFFF, 12) * RESPONSE_UNIT_PS
LONGEST_RESPONSE_V1_PS = 0xFFFF * RESPONSE_UNIT_PS

_KINDS = {int(kind): kind for kind in RecordKind}
_HEADER = 40

address_of = lru_cache(1 << 16)(IPv6Address)
"""Of 16 bytes. Those in use are few, and heard often."""


def parse(packet: bytes) -> tuple[IPv6Address, Message]:
    """The source address of an IP packet and the message in it. Raises :class:`MalformedError` if there is none.

    What RFC 3810 (6.2) has every node check is checked: link-local source, hop limit 1, Router Alert.
    """
    if len(packet) < _HEADER:
        raise MalformedError(Malformed.TRUNCATED)
    end = _HEADER + struct.unpack_from("!H", packet, 4)[0]
    if packet[0] >> 4 != 6:
        raise MalformedError(Malformed.HEADER)
    if end > len(packet):
        raise MalformedError(Malformed.TRUNCATED)
    at, has_alert = _HEADER, False
    following = packet[6]
    if following == HOP_BY_HOP:
        if end < at + 8 or end < at + 8 * (packet[at + 1] + 1):
            raise MalformedError(Malformed.TRUNCATED)
        following, length = packet[at], 8 * (packet[at + 1] + 1)
        has_alert = _has_router_alert(packet[at + 2 : at + length])
        at += length
    if following != ICMPV6:
        raise MalformedError(Malformed.OTHER_PROTOCOL)
    data = packet[at:end]
    pseudo = packet[8:40] + struct.pack("!II", len(data), ICMPV6)
    if len(data) < 4:
        raise MalformedError(Malformed.TRUNCATED)
    if checksum(pseudo + data):
        raise MalformedError(Malformed.CHECKSUM)
    message = parse_message(data)
    source = address_of(packet[8:24])
    if packet[7] != 1:
        raise MalformedError(Malformed.TTL)
    if not source.is_link_local:
        raise MalformedError(Malformed.SOURCE)
    if not has_alert:
        raise MalformedError(Malformed.NO_ROUTER_ALERT)
    return source, message


def _has_router_alert(options: bytes) -> bool:
    at = 0
    while at < len(options):
        if options[at] == 0:
            at += 1
            continue
        if at + 1 >= len(options):
            return False
        if options[at] == ROUTER_ALERT[0]:
            return options[at : at + 4] == ROUTER_ALERT
        at += 2 + options[at + 1]
    return False


def parse_message(data: bytes) -> Message:
    """The ICMPv6 message, whose checksum is not looked at. Raises :class:`MalformedError`."""
    if len(data) < 4:
        raise MalformedError(Malformed.TRUNCATED)
    kind = data[0]
    if kind not in (QUERY, REPORT_V1, DONE, REPORT_V2):
        raise MalformedError(Malformed.UNKNOWN_TYPE)
    if len(data) < (8 if kind == REPORT_V2 else 24):
        raise MalformedError(Malformed.TRUNCATED)
    if kind == REPORT_V2:
        return _report_v2(data)
    if kind == QUERY:
        return _query(data)
    change = RecordKind.CHANGE_TO_INCLUDE if kind == DONE else RecordKind.MODE_IS_EXCLUDE
    return Report(1, (Record(change, _group(data[8:24])),))


def _query(data: bytes) -> Query:
    (code,) = struct.unpack_from("!H", data, 4)
    group = _group(data[8:24]) if any(data[8:24]) else None
    if len(data) == 24:
        return Query(1, group, code * RESPONSE_UNIT_PS)
    if len(data) < 28:
        raise MalformedError(Malformed.QUERY_LENGTH)
    (count,) = struct.unpack_from("!H", data, 26)
    return Query(
        2,
        group,
        decoded(code, 12) * RESPONSE_UNIT_PS,
        _sources(data, 28, count),
        suppress=bool(data[24] & 8),
        robustness=data[24] & 7,
        interval_s=decoded(data[25], 4),
    )


def _report_v2(data: bytes) -> Report:
    (count,) = struct.unpack_from("!H", data, 6)
    records = []
    at = 8
    for _ in range(count):
        if len(data) < at + 20:
            raise MalformedError(Malformed.TRUNCATED)
        kind, auxiliary, sources = struct.unpack_from("!BBH", data, at)
        group = _group(data[at + 4 : at + 20])
        record_sources = _sources(data, at + 20, sources)
        at += 20 + 16 * sources + 4 * auxiliary
        if at > len(data):
            raise MalformedError(Malformed.TRUNCATED)
        # Those of an unknown kind are ignored, and the others are not (RFC 3810, 5.2.12).
        if (known := _KINDS.get(kind)) is not None:
            records.append(Record(known, group, record_sources))
    return Report(2, tuple(records))


def _group(data: bytes) -> IPv6Address:
    if data[0] != 0xFF:
        raise MalformedError(Malformed.GROUP)
    return address_of(data)


def _sources(data: bytes, at: int, count: int) -> tuple[IPv6Address, ...]:
    end = at + 16 * count
    if end > len(data):
        raise MalformedError(Malformed.TRUNCATED)
    return tuple(address_of(data[i : i + 16]) for i in range(at, end, 16))


def query_message(query: Query) -> bytes:
    """The bytes of a query; its checksum, which covers addresses, is zero."""
    group = bytes(16) if query.group is None else query.group.packed
    response = query.max_response_ps // RESPONSE_UNIT_PS
    code = response if query.version == 1 else encoded(response, 12)
    head = struct.pack("!BBHHH16s", QUERY, 0, 0, code, 0, group)
    if query.version == 1:
        return head
    flags = query.suppress << 3 | (query.robustness if query.robustness < 8 else 0)
    rest = struct.pack("!BBH", flags, encoded(query.interval_s, 4), len(query.sources))
    return head + rest + b"".join(source.packed for source in query.sources)


def query_packet(query: Query, source: IPv6Address) -> bytes:
    """A query in an IP packet, with the Router Alert option, from the link-local address of its port."""
    message = query_message(query)
    destination = ALL_NODES if query.group is None else query.group
    addresses = source.packed + destination.packed
    total = checksum(addresses + struct.pack("!II", len(message), ICMPV6) + message)
    hop_by_hop = bytes((ICMPV6, 0)) + ROUTER_ALERT + b"\1\0"
    header = struct.pack("!IHBB", 6 << 28, len(hop_by_hop) + len(message), HOP_BY_HOP, 1)
    return header + addresses + hop_by_hop + message[:2] + total.to_bytes(2, "big") + message[4:]
