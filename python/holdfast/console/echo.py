"""Echo requests as frames of a modelled host, and what comes back about them: replies and ICMP errors (RFC 792). IPv4 alone."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from ipaddress import IPv4Address

from holdfast.control.membership.messages import checksum
from holdfast.errors import ConsoleError
from holdfast.topology import Topology

_ERRORS = frozenset({3, 11, 12})
_IDENTIFIER = 0xF0F0
"""Flows of echo requests are numbered from 0."""


@dataclass(frozen=True)
class Hop:
    """Who answered an echo request with a small TTL, after how long, and whether it is the destination itself."""

    address: str | None = None
    rtt_ms: float | None = None
    there: bool = False


def request(topology: Topology, source: str, destination: str, ttl: int) -> bytes:
    """Return the frame of an echo request with a TTL, which is its sequence number, too.

    Raises :class:`ConsoleError` if the source does not know whom to send it to.
    """
    host, other = topology.hosts[source], topology.hosts[destination]
    to = other.address.ip
    if to in host.address.network:
        mac: bytes | None = other.mac
    else:
        known = topology.known_neighbours(source)
        mac = None if host.gateway is None else known.get(host.gateway)
    if mac is None:
        raise ConsoleError(f"{source} does not know the MAC address of its gateway: write it into its `neighbours`")
    message = struct.pack("!BBHHH", 8, 0, 0, _IDENTIFIER, ttl) + bytes(32)
    message = message[:2] + checksum(message).to_bytes(2, "big") + message[4:]
    fields = (0x45, 0, 20 + len(message), ttl, 0, ttl, 1, 0, host.address.ip.packed, to.packed)
    ip = struct.pack("!BBHHHBBH4s4s", *fields)
    tag = b"" if host.vlan is None else struct.pack("!HH", 0x8100, host.vlan)
    return mac + host.mac + tag + b"\x08\x00" + ip[:10] + checksum(ip).to_bytes(2, "big") + ip[12:] + message


def answer(frame: bytes, ttl: int) -> tuple[IPv4Address, bool] | None:
    """Return who answered the request with a TTL, and True if that is its destination; None if a frame is no answer to it."""
    at = 18 if frame[12:14] == b"\x81\x00" else 14
    if frame[at - 2 : at] != b"\x08\x00" or len(frame) < at + 28 or frame[at + 9] != 1:
        return None
    message = frame[at + 4 * (frame[at] & 15) :]
    sender = IPv4Address(frame[at + 12 : at + 16])
    if message[:1] == b"\0" and message[4:8] == struct.pack("!HH", _IDENTIFIER, ttl):
        return sender, True
    quoted = message[8:]
    if not quoted or message[0] not in _ERRORS:
        return None
    asked = quoted[4 * (quoted[0] & 15) :]
    if asked[:1] == b"\x08" and asked[4:8] == struct.pack("!HH", _IDENTIFIER, ttl):
        return sender, False
    return None


__all__ = ["Hop", "answer", "request"]
