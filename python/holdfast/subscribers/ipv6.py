"""IPv6 packets that the gateway itself writes to a session and reads from it: UDP, and neighbour discovery (RFC 4861, 8106)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network

ALL_NODES = IPv6Address("ff02::1")
MIN_DELAY_BETWEEN_RAS_S = 3.0
"""The least time between two router advertisements to all nodes (RFC 4861, section 6.2.6)."""
_HEADER = struct.Struct("!IHBB16s16s")
_UDP, _ICMPV6 = 17, 58
_ROUTER_SOLICITATION, _ROUTER_ADVERTISEMENT, _NEIGHBOUR_SOLICITATION, _NEIGHBOUR_ADVERTISEMENT = 133, 134, 135, 136
_SOURCE_LINK_LAYER_ADDRESS = 1
_UNSPECIFIED = IPv6Address("::")
_SOLICITED_NODE = bytes.fromhex("ff0200000000000000000001ff")
_ROUTER, _SOLICITED = 0x80, 0x40


def link_local(interface_identifier: bytes) -> IPv6Address:
    """Return the link-local address (fe80::/64) with an interface identifier of 8 bytes."""
    return IPv6Address(b"\xfe\x80" + bytes(6) + interface_identifier)


def checksum(source: bytes, destination: bytes, next_header: int, payload: bytes) -> int:
    """Return the Internet checksum of a payload with IPv6's pseudo-header (RFC 8200, section 8.1)."""
    data = source + destination + struct.pack("!II", len(payload), next_header) + payload
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def _packet(source: IPv6Address, destination: IPv6Address, next_header: int, hops: int, payload: bytes) -> bytes:
    return _HEADER.pack(6 << 28, len(payload), next_header, hops, source.packed, destination.packed) + payload


@dataclass(frozen=True, slots=True)
class Received:
    """A packet for the gateway: a router solicitation, a neighbour solicitation for ``target``, or a UDP payload with its ports."""

    source: IPv6Address
    destination: IPv6Address
    solicitation: bool = False
    target: IPv6Address | None = None
    source_port: int = 0
    destination_port: int = 0
    payload: bytes = b""


def read(packet: bytes) -> Received | None:
    """Parse a packet. Returns None unless it is a valid solicitation (RFC 4861, sections 6.1.1 and 7.1.1) or UDP packet."""
    if len(packet) < 48 or packet[0] >> 4 != 6:
        return None
    _, length, next_header, hops, source, destination = _HEADER.unpack_from(packet)
    body = packet[40 : 40 + length]
    if len(body) < length or length < 8 or checksum(source, destination, next_header, body):
        return None
    addresses = IPv6Address(source), IPv6Address(destination)
    if next_header == _ICMPV6:
        return _solicitation(*addresses, body) if hops == 255 and body[1] == 0 else None
    if next_header != _UDP or body[6:8] == b"\0\0" or int.from_bytes(body[4:6], "big") != length:
        return None
    ports = struct.unpack("!HH", body[:4])
    return Received(*addresses, source_port=ports[0], destination_port=ports[1], payload=body[8:])


def _solicitation(source: IPv6Address, destination: IPv6Address, body: bytes) -> Received | None:
    """Return the router or neighbour solicitation in an ICMPv6 message of at least 8 bytes; None if it has to be discarded."""
    options = _options(body[8:] if body[0] == _ROUTER_SOLICITATION else body[24:])
    if options is None or (source == _UNSPECIFIED and _SOURCE_LINK_LAYER_ADDRESS in options):
        return None
    if body[0] == _ROUTER_SOLICITATION:
        return Received(source, destination, solicitation=True)
    if body[0] != _NEIGHBOUR_SOLICITATION or len(body) < 24:
        return None
    target = IPv6Address(body[8:24])
    if target.is_multicast or (source == _UNSPECIFIED and not destination.packed.startswith(_SOLICITED_NODE)):
        return None
    return Received(source, destination, target=target)


def _options(data: bytes) -> set[int] | None:
    """Return the types of a message's options; None if one has no length, or ends behind the message (RFC 4861, section 4.6)."""
    found, at = set(), 0
    while at < len(data):
        if at + 2 > len(data) or data[at + 1] == 0 or at + 8 * data[at + 1] > len(data):
            return None
        found.add(data[at])
        at += 8 * data[at + 1]
    return found


def udp(
    source: IPv6Address, destination: IPv6Address, source_port: int, destination_port: int, payload: bytes
) -> bytes:
    """Return an IPv6 packet with a UDP datagram, checksum included."""
    head = struct.pack("!HHH", source_port, destination_port, 8 + len(payload))
    value = checksum(source.packed, destination.packed, _UDP, head + b"\0\0" + payload) or 0xFFFF
    return _packet(source, destination, _UDP, 255, head + value.to_bytes(2, "big") + payload)


def router_advertisement(
    source: IPv6Address, prefix: IPv6Network, mtu: int, dns: tuple[IPv6Address, ...], lifetime_s: int
) -> bytes:
    """Return a router advertisement to all nodes: addresses come from ``prefix`` by autoconfiguration, all else from DHCPv6.

    ``prefix`` is not on-link, as a session is point to point. A lifetime of 0 s says that we are no longer a router.
    """
    other_configuration, autonomous = 0x40, 0x40
    body = struct.pack("!BBHBBHII", _ROUTER_ADVERTISEMENT, 0, 0, 64, other_configuration, lifetime_s, 0, 0)
    lifetimes = 4 * lifetime_s, 2 * lifetime_s
    body += struct.pack("!BBBBIII", 3, 4, prefix.prefixlen, autonomous, *lifetimes, 0) + prefix.network_address.packed
    body += struct.pack("!BBHI", 5, 1, 0, mtu)
    if dns:
        body += struct.pack("!BBHI", 25, 1 + 2 * len(dns), 0, lifetime_s) + b"".join(each.packed for each in dns)
    value = checksum(source.packed, ALL_NODES.packed, _ICMPV6, body)
    return _packet(source, ALL_NODES, _ICMPV6, 255, body[:2] + value.to_bytes(2, "big") + body[4:])


def neighbour_advertisement(target: IPv6Address, asks: IPv6Address) -> bytes:
    """Return the answer to a neighbour solicitation from ``asks`` for our address ``target`` (RFC 4861, section 7.2.4).

    It contains no link-layer address, as PPP has none (section 4.4), and does not set the override flag. The answer to the
    unspecified address, which a host uses to look for duplicates (RFC 4862, section 5.4.3), goes to all nodes.
    """
    unknown = asks == _UNSPECIFIED
    destination = ALL_NODES if unknown else asks
    body = (
        struct.pack("!BBHI", _NEIGHBOUR_ADVERTISEMENT, 0, 0, (_ROUTER | (0 if unknown else _SOLICITED)) << 24)
        + target.packed
    )
    value = checksum(target.packed, destination.packed, _ICMPV6, body)
    return _packet(target, destination, _ICMPV6, 255, body[:2] + value.to_bytes(2, "big") + body[4:])
