"""Packets of sessions, as lines and the core carry them."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address

from holdfast.subscribers.plane import Line, Session

SERVER = IPv4Address("198.51.100.9")


def udp(source: IPv4Address, destination: IPv4Address, payload_bytes: int) -> bytes:
    """Return an IPv4 packet with a UDP datagram of zeros. The IPv4 header has its checksum; the UDP checksum is 0."""
    head = struct.pack("!BBHHHBBH", 0x45, 0, 28 + payload_bytes, 1, 0, 64, 17, 0) + source.packed + destination.packed
    total = sum(struct.unpack("!10H", head))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + struct.pack("!H", 0xFFFF - total) + head[12:]
    return head + struct.pack("!HHHH", 5001, 5001, 8 + payload_bytes, 0) + bytes(payload_bytes)


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def tags(line: Line) -> bytes:
    """Return the two VLAN tags of a line, service tag first, as 8 bytes."""
    return struct.pack("!HHHH", 0x8100, line.s_tag, 0x8100, line.c_tag)


def upstream(session: Session, gateway: str, payload_bytes: int) -> bytes:
    """Return the Ethernet frame of a packet from the subscriber to the server, in PPPoE, with the tags of its line."""
    assert session.ipv4 is not None
    packet = udp(session.ipv4, SERVER, payload_bytes)
    pppoe = struct.pack("!HBBHHH", 0x8864, 0x11, 0, session.session_id, len(packet) + 2, 0x0021)
    return _mac(gateway) + session.mac + tags(session.line) + pppoe + packet


def downstream(session: Session, gateway: str, router: str, payload_bytes: int) -> bytes:
    """Return the Ethernet frame of a packet from the server to the subscriber, as the core's router sends it."""
    assert session.ipv4 is not None
    return _mac(gateway) + _mac(router) + b"\x08\x00" + udp(SERVER, session.ipv4, payload_bytes)
