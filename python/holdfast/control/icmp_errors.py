"""ICMP errors of a router: which packets may be answered with one, what it contains, and the address that it comes from.

Time exceeded (RFC 792; RFC 1812, section 5.3.1; RFC 4443, section 3.3), and fragmentation needed or packet too big (RFC 1191;
RFC 4443, section 3.2). Which packets these are, how many of them are answered, and what becomes of the answer, is the program's
business.
"""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv6Address

from holdfast.control.membership.messages import checksum
from holdfast.host import Address
from holdfast.topology import Topology

ETHERTYPE_IPV4, ETHERTYPE_IPV6 = 0x0800, 0x86DD
_ETHERNET = 14
_MOST_IPV4, _MOST_IPV6 = 576, 1280
"""Bytes of an error with its IP header (RFC 1812, section 4.3.2.3; RFC 4443, section 3.3)."""

_ICMP, _ICMPV6 = 1, 58
_QUERIES = frozenset({0, 8, 9, 10, 13, 14, 15, 16, 17, 18, 42, 43})
"""The types of ICMP that are no errors; an unknown one could be an error."""
_REDIRECT_V6 = 137
_EXTENSIONS = frozenset({0, 43, 60})
"""IPv6 headers with a next header and their length in units of 8 bytes: hop-by-hop options, routing, destination options."""
_FRAGMENT = 44

_TTL = 64
_CLASS = 0xC0
"""Internetwork control (RFC 1812, section 4.3.2.5)."""

_DUMMY = IPv4Address("192.0.0.8")
"""Of a router that has no address of its own (RFC 7600, section 4.8)."""


class Addresses:
    """The addresses that routers' errors come from.

    Of IPv4 it is the host's gateway at a host's port. Else, and of IPv6 (hosts know a gateway by a link-local address), it is the
    router's own, 10.255.0.0/16 or fdff::/64 with the switch's index, which shows a path hop by hop though nothing is behind it.
    Where hosts have such addresses, it is 192.0.0.8, and of IPv6 none.
    """

    def __init__(self, topology: Topology) -> None:
        self._gateways: dict[tuple[str, int], IPv4Address] = {}
        cards = [place.interface for place in topology.all_attachments()]
        for place in topology.all_attachments():
            host = place.host
            if host.gateway is not None:
                self._gateways.setdefault((place.switch, place.port), host.gateway)
        self._own: dict[str, tuple[IPv4Address, IPv6Address | None]] = {}
        for name, switch in topology.switches.items():
            own = IPv4Address("10.255.0.0") + switch.index
            own_v6 = IPv6Address("fdff::") + switch.index
            taken = any(own in card.address.network for card in cards)
            taken_v6 = any(card.ipv6 is not None and own_v6 in card.ipv6.network for card in cards)
            self._own[name] = _DUMMY if taken else own, None if taken_v6 else own_v6

    def of(self, switch: str, port: int, version: int) -> Address | None:
        """Return the address of a switch for errors about packets that came in at a port; None if it has none."""
        own, own_v6 = self._own[switch]
        return own_v6 if version == 6 else self._gateways.get((switch, port), own)


def version_of(frame: bytes) -> int | None:
    """Return the IP version of a frame by its EtherType, or None if it is not IP."""
    kind = int.from_bytes(frame[12:14], "big")
    return {ETHERTYPE_IPV4: 4, ETHERTYPE_IPV6: 6}.get(kind)


def has_expired(frame: bytes, version: int) -> bool:
    """Return True if a frame's TTL or hop limit is at its end."""
    at = _ETHERNET + (8 if version == 4 else 7)
    return len(frame) > at and frame[at] <= 1


def destination(frame: bytes, version: int) -> Address | None:
    """Return the address that a frame is to, or None if it is too short to have one."""
    begin, end = (_ETHERNET + 16, _ETHERNET + 20) if version == 4 else (_ETHERNET + 24, _ETHERNET + 40)
    if len(frame) < end:
        return None
    return IPv4Address(frame[begin:end]) if version == 4 else IPv6Address(frame[begin:end])


def time_exceeded(frame: bytes, source: Address) -> bytes | None:
    """Return the :func:`error` about a frame whose TTL or hop limit has expired."""
    return error(frame, source, (11, 0, 0) if isinstance(source, IPv4Address) else (3, 0, 0))


def too_big(frame: bytes, source: Address, mtu: int) -> bytes | None:
    """Return the :func:`error` about a frame that is longer than a link's MTU."""
    return error(frame, source, (3, 4, mtu) if isinstance(source, IPv4Address) else (2, 0, mtu))


def error(frame: bytes, source: Address, said: tuple[int, int, int]) -> bytes | None:
    """Return the frame with an error (type, code, and the word behind the checksum) about a frame, without Ethernet addresses.

    Returns None for a packet about which there is no error: to a group or all stations, from what is no single station, an ICMP
    error itself, a fragment other than the first (RFC 1812, section 4.3.2.7; RFC 4443, section 2.4), or malformed.
    """
    if len(frame) < _ETHERNET or frame[0] & 1:
        return None
    packet = frame[_ETHERNET:]
    if isinstance(source, IPv4Address):
        about = _about_ipv4(packet, source, said)
        return None if about is None else bytes(12) + ETHERTYPE_IPV4.to_bytes(2, "big") + about
    about = _about_ipv6(packet, source, said)
    return None if about is None else bytes(12) + ETHERTYPE_IPV6.to_bytes(2, "big") + about


def _about_ipv4(packet: bytes, source: IPv4Address, said: tuple[int, int, int]) -> bytes | None:
    if len(packet) < 20 or packet[0] >> 4 != 4:
        return None
    header = 4 * (packet[0] & 15)
    total = int.from_bytes(packet[2:4], "big")
    if header < 20 or not header <= total <= len(packet):
        return None
    fragment = int.from_bytes(packet[6:8], "big")
    sender, to = IPv4Address(packet[12:16]), IPv4Address(packet[16:20])
    if fragment & 0x1FFF or not _is_station(sender) or not _is_station(to):
        return None
    if packet[9] == _ICMP and (total <= header or packet[header] not in _QUERIES):
        return None
    quoted = packet[: min(total, _MOST_IPV4 - 28)]
    message = struct.pack("!BBHI", *said[:2], 0, said[2]) + quoted
    message = message[:2] + checksum(message).to_bytes(2, "big") + message[4:]
    fields = (0x45, _CLASS, 20 + len(message), 0, 0, _TTL, _ICMP, 0, source.packed, sender.packed)
    ip = struct.pack("!BBHHHBBH4s4s", *fields)
    return ip[:10] + checksum(ip).to_bytes(2, "big") + ip[12:] + message


def _about_ipv6(packet: bytes, source: IPv6Address, said: tuple[int, int, int]) -> bytes | None:
    if len(packet) < 40 or packet[0] >> 4 != 6:
        return None
    total = 40 + int.from_bytes(packet[4:6], "big")
    sender, to = IPv6Address(packet[8:24]), IPv6Address(packet[24:40])
    if total > len(packet) or to.is_multicast or sender.is_multicast or sender.is_unspecified or sender.is_loopback:
        return None
    kind = _payload_v6(packet[:total])
    if kind is None:
        return None
    protocol, at = kind
    if protocol == _ICMPV6 and (at >= total or packet[at] < 128 or packet[at] == _REDIRECT_V6):
        return None
    quoted = packet[: min(total, _MOST_IPV6 - 48)]
    message = struct.pack("!BBHI", *said[:2], 0, said[2]) + quoted
    pseudo = source.packed + sender.packed + struct.pack("!II", len(message), _ICMPV6)
    message = message[:2] + checksum(pseudo + message).to_bytes(2, "big") + message[4:]
    first = 6 << 28 | _CLASS << 20
    return struct.pack("!IHBB", first, len(message), _ICMPV6, _TTL) + source.packed + sender.packed + message


def _payload_v6(packet: bytes) -> tuple[int, int] | None:
    """Return the protocol behind the extension headers, and where it begins; None in a fragment other than the first."""
    protocol, at = packet[6], 40
    while protocol in _EXTENSIONS or protocol == _FRAGMENT:
        if len(packet) < at + 8:
            return None
        if protocol == _FRAGMENT:
            if int.from_bytes(packet[at + 2 : at + 4], "big") >> 3:
                return None
            protocol, at = packet[at], at + 8
        else:
            protocol, at = packet[at], at + 8 * (packet[at + 1] + 1)
    return protocol, at


def _is_station(address: IPv4Address) -> bool:
    """Return False for groups, all stations, loopback, class E, and 0.0.0.0/8."""
    first = address.packed[0]
    return first not in (0, 127) and first < 224


__all__ = ["Addresses", "destination", "error", "has_expired", "time_exceeded", "too_big", "version_of"]
