"""MLD in IPv6, versions 1 and 2 (RFC 2710, RFC 3810), from bytes and to bytes.

It does not know who hears a message, and what follows from it.
"""

from __future__ import annotations

import struct
from ipaddress import IPv6Address

from holdfast.control.membership.family import MLD
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

ICMPV6 = 58
HOP_BY_HOP = 0

QUERY, REPORT_V1, DONE, REPORT_V2 = 130, 131, 132, 143
"""The ICMPv6 types of MLD messages (RFC 3810, 5)."""

ALL_NODES = IPv6Address("ff02::1")
REPORTS_V2 = IPv6Address("ff02::16")
"""The destination of reports of version 2; that of general queries is ``ALL_NODES``."""

ROUTER_ALERT = bytes((5, 2, 0, 0))
"""The Router Alert option of the Hop-by-Hop header, with the value for MLD (RFC 2711)."""

LONGEST_RESPONSE_PS = MLD.longest_response_ps

_HEADER = 40


def parse(packet: bytes) -> tuple[IPv6Address, Message]:
    """Return an IPv6 packet's source address and its MLD message. Raises :class:`MalformedError` if there is no valid message.

    Checked is what RFC 3810 (6.2) asks of every node: link-local source, hop limit 1, Router Alert.
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
    source = IPv6Address(packet[8:24])
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
    """Return the MLD message in ICMPv6 bytes without a check of the checksum. Raises :class:`MalformedError` if there is none."""
    if len(data) < 4:
        raise MalformedError(Malformed.TRUNCATED)
    kind = data[0]
    if kind not in (QUERY, REPORT_V1, DONE, REPORT_V2):
        raise MalformedError(Malformed.UNKNOWN_TYPE)
    if len(data) < (8 if kind == REPORT_V2 else 24):
        raise MalformedError(Malformed.TRUNCATED)
    if kind == REPORT_V2:
        return MLD.report(data)
    if kind == QUERY:
        return _query(data)
    change = RecordKind.CHANGE_TO_INCLUDE if kind == DONE else RecordKind.MODE_IS_EXCLUDE
    return Report(1, (Record(change, MLD.group(data, 8)),))


def _query(data: bytes) -> Query:
    (code,) = struct.unpack_from("!H", data, 4)
    if len(data) > 24:
        return MLD.query(data, code)
    return Query(1, MLD.query_group(data), code * MLD.response_unit_ps)


def query_message(query: Query) -> bytes:
    """Return the bytes of an MLD query; the checksum, which also covers the IP addresses, is left zero."""
    group = bytes(16) if query.group is None else query.group.packed
    if query.version < MLD.latest:
        return struct.pack("!BBHHH16s", QUERY, 0, 0, query.max_response_ps // MLD.response_unit_ps, 0, group)
    return struct.pack("!BBHHH16s", QUERY, 0, 0, MLD.query_code(query), 0, group) + MLD.behind_group(query)


def query_packet(query: Query, source: IPv6Address) -> bytes:
    """Return an IPv6 packet with a query and the Router Alert option.

    ``source``: the link-local address of the port that sends it.
    """
    message = query_message(query)
    destination = ALL_NODES if query.group is None else query.group
    addresses = source.packed + destination.packed
    total = checksum(addresses + struct.pack("!II", len(message), ICMPV6) + message)
    hop_by_hop = bytes((ICMPV6, 0)) + ROUTER_ALERT + b"\1\0"
    header = struct.pack("!IHBB", 6 << 28, len(hop_by_hop) + len(message), HOP_BY_HOP, 1)
    return header + addresses + hop_by_hop + message[:2] + total.to_bytes(2, "big") + message[4:]
