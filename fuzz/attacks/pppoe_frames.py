"""Frames of PPPoE (RFC 2516) and packets of PPP (RFC 1661), IPv6 and DHCPv6 (RFC 8415), as subscribers write and read them."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

PADI, PADO, PADR, PADS, PADT = 0x09, 0x07, 0x19, 0x65, 0xA7
LCP, PAP, CHAP, IPCP, IPV6CP, IPV4, IPV6 = 0xC021, 0xC023, 0xC223, 0x8021, 0x8057, 0x0021, 0x0057
NAMES = {LCP: "lcp", PAP: "pap", CHAP: "chap", IPCP: "ipcp", IPV6CP: "ipv6cp", IPV4: "ipv4", IPV6: "ipv6"}
CONTROL = (LCP, IPCP, IPV6CP)
REQUEST, ACK, NAK, REJECT, TERMINATE, TERMINATE_ACK, CODE_REJECT, PROTOCOL_REJECT, ECHO, ECHO_REPLY, DISCARD = range(
    1, 12
)
BROADCAST = b"\xff" * 6
SERVICE_NAME, HOST_UNIQ, AC_COOKIE, VENDOR, RELAY, MAX_PAYLOAD = 0x0101, 0x0103, 0x0104, 0x0105, 0x0110, 0x0120

Tags = list[tuple[int, bytes]]


def tags_of(body: bytes) -> Tags:
    """Return the tags in ``body`` as (type, value), up to the first one with a wrong length."""
    found, at = [], 0
    while at + 4 <= len(body):
        kind, size = struct.unpack_from("!HH", body, at)
        found.append((kind, body[at + 4 : at + 4 + size]))
        at += 4 + size
    return found


def discovery(to: bytes, source: bytes, code: int, session: int = 0, tags: Iterable[tuple[int, bytes]] = ()) -> bytes:
    """Return a frame of the PPPoE discovery stage."""
    body = b"".join(struct.pack("!HH", kind, len(value)) + value for kind, value in tags)
    return to + source + struct.pack("!HBBHH", 0x8863, 0x11, code, session, len(body)) + body


def session_frame(to: bytes, source: bytes, session: int, protocol: int, packet: bytes) -> bytes:
    """Return a frame of the PPPoE session stage."""
    head = struct.pack("!HBBHHH", 0x8864, 0x11, 0, session, 2 + len(packet), protocol)
    return to + source + head + packet


def control(code: int, identifier: int, data: bytes = b"") -> bytes:
    """Return a packet of a PPP control protocol (RFC 1661, section 5)."""
    return struct.pack("!BBH", code & 0xFF, identifier & 0xFF, 4 + len(data)) + data


def options(*pairs: tuple[int, bytes]) -> bytes:
    """Return the bytes of configuration options (RFC 1661, section 6)."""
    return b"".join(bytes((kind, 2 + len(value))) + value for kind, value in pairs)


def options_of(data: bytes) -> list[tuple[int, bytes]]:
    """Return configuration options as (type, value), up to the first one with a wrong length."""
    found, at = [], 0
    while at + 2 <= len(data) and data[at + 1] >= 2:
        found.append((data[at], data[at + 2 : at + data[at + 1]]))
        at += data[at + 1]
    return found


class Packet(NamedTuple):
    """A PPP packet of a session: of control protocols and logins, code, identifier and data."""

    session: int
    protocol: int
    code: int
    identifier: int
    data: bytes
    whole: bytes


def packet_of(frame: bytes) -> Packet:
    """Parse a frame of the PPPoE session stage."""
    session, size, protocol = struct.unpack_from("!HHH", frame, 16)
    whole = frame[22 : 20 + size]
    if protocol in (IPV4, IPV6) or len(whole) < 4:
        return Packet(session, protocol, 0, 0, b"", whole)
    length = struct.unpack_from("!H", whole, 2)[0]
    return Packet(session, protocol, whole[0], whole[1], whole[4:length], whole)


# IPv6, as far as a subscriber needs it.

LINK_LOCAL = b"\xfe\x80" + bytes(6)
ALL_ROUTERS = b"\xff\x02" + bytes(13) + b"\x02"
ALL_SERVERS = b"\xff\x02" + bytes(10) + b"\x00\x01\x00\x02"


def _checksum(source: bytes, to: bytes, kind: int, body: bytes) -> int:
    data = source + to + struct.pack("!II", len(body), kind) + body + b"\0" * (len(body) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def ipv6(source: bytes, to: bytes, kind: int, body: bytes) -> bytes:
    """Return an IPv6 packet (RFC 8200) with hop limit 255."""
    return struct.pack("!IHBB", 6 << 28, len(body), kind, 255) + source + to + body


def router_solicitation(interface: bytes) -> bytes:
    """Return an IPv6 packet with a router solicitation (RFC 4861, section 4.1)."""
    source = LINK_LOCAL + interface
    body = b"\x85\0\0\0" + bytes(4)
    body = body[:2] + struct.pack("!H", _checksum(source, ALL_ROUTERS, 58, body)) + body[4:]
    return ipv6(source, ALL_ROUTERS, 58, body)


def dhcpv6(interface: bytes, kind: int, transaction: bytes, pairs: Iterable[tuple[int, bytes]]) -> bytes:
    """Return an IPv6 packet with a DHCPv6 client's message (RFC 8415, section 8) in UDP."""
    source = LINK_LOCAL + interface
    message = bytes((kind,)) + transaction + b"".join(struct.pack("!HH", code, len(v)) + v for code, v in pairs)
    body = struct.pack("!HHHH", 546, 547, 8 + len(message), 0) + message
    body = body[:6] + struct.pack("!H", _checksum(source, ALL_SERVERS, 17, body) or 0xFFFF) + body[8:]
    return ipv6(source, ALL_SERVERS, 17, body)


def delegation(iaid: bytes, prefix: tuple[int, bytes] | None = None) -> tuple[int, bytes]:
    """Return an IA_PD option as (code, value), with ``prefix`` (length, address) or empty (RFC 8415, sections 21.21 and 21.22)."""
    inner = b""
    if prefix is not None:
        value = struct.pack("!IIB", 0, 0, prefix[0]) + prefix[1]
        inner = struct.pack("!HH", 26, len(value)) + value
    return 25, iaid + bytes(8) + inner
