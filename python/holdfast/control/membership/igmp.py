"""IGMP in IPv4, versions 1 to 3 (RFC 1112, appendix I; RFC 2236; RFC 3376), from bytes and to bytes.

It does not know who hears a message, and what follows from it.
"""

from __future__ import annotations

import struct
from ipaddress import IPv4Address

from holdfast.control.membership.family import IGMP
from holdfast.control.membership.messages import (
    Malformed,
    MalformedError,
    Message,
    Query,
    Record,
    RecordKind,
    Report,
    checksum,
)
from holdfast.parameters import PS_PER_S

PROTOCOL = 2

QUERY, REPORT_V1, REPORT_V2, LEAVE, REPORT_V3 = 0x11, 0x12, 0x16, 0x17, 0x22
"""The types of IGMP messages (RFC 3376, 4)."""

ALL_SYSTEMS = IPv4Address("224.0.0.1")
REPORTS_V3 = IPv4Address("224.0.0.22")
"""The destination of reports of version 3; that of general queries is ``ALL_SYSTEMS``."""

ROUTER_ALERT = bytes((0x94, 4, 0, 0))
"""The Router Alert option of the IPv4 header (RFC 2113)."""

RESPONSE_V1_PS = 10 * PS_PER_S
"""The time in ps in which hosts answer a query of version 1, which does not state it (RFC 3376, 7.2.1)."""

LONGEST_RESPONSE_PS = IGMP.longest_response_ps

_INTERNETWORK_CONTROL = 0xC0
_FULL_HEADER = 20


def parse(packet: bytes) -> tuple[IPv4Address, Message]:
    """Return an IPv4 packet's source address and its IGMP message. Raises :class:`MalformedError` if there is no valid message."""
    if len(packet) < _FULL_HEADER:
        raise MalformedError(Malformed.TRUNCATED)
    header_bytes = (packet[0] & 15) * 4
    (total_bytes,) = struct.unpack_from("!H", packet, 2)
    if packet[0] >> 4 != 4 or not _FULL_HEADER <= header_bytes <= total_bytes:
        raise MalformedError(Malformed.HEADER)
    if total_bytes > len(packet):
        raise MalformedError(Malformed.TRUNCATED)
    if checksum(packet[:header_bytes]):
        raise MalformedError(Malformed.CHECKSUM)
    if struct.unpack_from("!H", packet, 6)[0] & 0x3FFF:
        raise MalformedError(Malformed.HEADER)
    if packet[9] != PROTOCOL:
        raise MalformedError(Malformed.OTHER_PROTOCOL)
    if packet[8] != 1:
        raise MalformedError(Malformed.TTL)
    source = IPv4Address(packet[12:16])
    if source.is_multicast or source.is_loopback or packet[12:16] == b"\xff\xff\xff\xff":
        raise MalformedError(Malformed.SOURCE)
    message = parse_message(packet[header_bytes:total_bytes])
    # Those of version 1 have none (RFC 1112), nor have they in queries of version 2 that old routers send (RFC 2236, 9).
    if isinstance(message, Report) and message.version > 1 and not _has_router_alert(packet[_FULL_HEADER:header_bytes]):
        raise MalformedError(Malformed.NO_ROUTER_ALERT)
    return source, message


def _has_router_alert(options: bytes) -> bool:
    at = 0
    while at < len(options) and options[at] != 0:
        if options[at] == 1:
            at += 1
            continue
        if options[at] == ROUTER_ALERT[0]:
            return True
        if at + 1 >= len(options) or options[at + 1] < 2:
            return False
        at += options[at + 1]
    return False


def parse_message(data: bytes) -> Message:
    """Return the IGMP message in the bytes after an IP header. Raises :class:`MalformedError` if they are not a valid message."""
    if len(data) < 8:
        raise MalformedError(Malformed.TRUNCATED)
    if checksum(data):
        raise MalformedError(Malformed.CHECKSUM)
    kind = data[0]
    if kind == REPORT_V3:
        return IGMP.report(data)
    if kind == QUERY:
        return _query(data)
    if kind == LEAVE:
        return Report(2, (Record(RecordKind.CHANGE_TO_INCLUDE, IGMP.group(data, 4)),))
    if kind in (REPORT_V1, REPORT_V2):
        return Report(1 if kind == REPORT_V1 else 2, (Record(RecordKind.MODE_IS_EXCLUDE, IGMP.group(data, 4)),))
    raise MalformedError(Malformed.UNKNOWN_TYPE)


def _query(data: bytes) -> Query:
    if len(data) > 8:
        return IGMP.query(data, data[1])
    if data[1] == 0:
        # A query of version 1 is always general: hosts ignore the group.
        return Query(1, None, RESPONSE_V1_PS)
    return Query(2, IGMP.query_group(data), data[1] * IGMP.response_unit_ps)


def query_message(query: Query) -> bytes:
    """Return the bytes of an IGMP query, without the IP header."""
    group = bytes(4) if query.group is None else query.group.packed
    if query.version < IGMP.latest:
        response = query.max_response_ps // IGMP.response_unit_ps if query.version == 2 else 0
        return _with_checksum(struct.pack("!BBH4s", QUERY, response, 0, group))
    return _with_checksum(struct.pack("!BBH4s", QUERY, IGMP.query_code(query), 0, group) + IGMP.behind_group(query))


def _with_checksum(message: bytes) -> bytes:
    return message[:2] + checksum(message).to_bytes(2, "big") + message[4:]


def query_packet(query: Query, source: IPv4Address) -> bytes:
    """Return an IPv4 packet with a query and the Router Alert option. ``source``: the address of the port that sends it."""
    message = query_message(query)
    destination = ALL_SYSTEMS if query.group is None else query.group
    header_bytes = _FULL_HEADER + len(ROUTER_ALERT)
    header = struct.pack(
        "!BBHHHBBH4s4s",
        0x40 | header_bytes // 4,
        _INTERNETWORK_CONTROL,
        header_bytes + len(message),
        0,
        0,
        1,
        PROTOCOL,
        0,
        source.packed,
        destination.packed,
    )
    total = checksum(header + ROUTER_ALERT)
    return header[:10] + total.to_bytes(2, "big") + header[12:] + ROUTER_ALERT + message
