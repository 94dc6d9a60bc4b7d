"""Frames of IPv4 (RFC 791), IPv6 (RFC 8200), TCP (RFC 9293), UDP and ICMP, right and wrong, as stations at a router send them."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv6Address

Address = IPv4Address | IPv6Address
TCP, UDP, ICMP, ICMPV6 = 6, 17, 1, 58
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16


def _sum(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def frame(
    mac: bytes, router: bytes, source: Address, to: Address, protocol: int, body: bytes, fragment: int = 0
) -> bytes:
    """Return an Ethernet frame with an IP packet to a router. ``fragment``: IPv4's flags and fragment offset."""
    if source.version == 4:
        head = (
            struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 1, fragment, 64, protocol, 0) + source.packed + to.packed
        )
        head = head[:10] + struct.pack("!H", _sum(head)) + head[12:]
        return router + mac + b"\x08\0" + head + body
    head = struct.pack("!IHBB", 6 << 28, len(body), protocol, 64) + source.packed + to.packed
    return router + mac + b"\x86\xdd" + head + body


def tcp(
    ports: tuple[int, int], sequence: int, acknowledged: int, flags: int, data: bytes = b"", window: int = 65535
) -> bytes:
    """Return the bytes of a TCP segment without options and checksum."""
    numbers = sequence & 0xFFFFFFFF, acknowledged & 0xFFFFFFFF
    return struct.pack("!HHIIBBHHH", *ports, *numbers, 5 << 4, flags, window, 0, 0) + data


def udp(ports: tuple[int, int], data: bytes = b"") -> bytes:
    """Return the bytes of a UDP datagram without a checksum."""
    return struct.pack("!HHHH", *ports, 8 + len(data), 0) + data


def echo(version: int, identifier: int, number: int, *, reply: bool = False) -> bytes:
    """Return the bytes of an ICMP echo request or reply (RFC 792, RFC 4443) without a checksum."""
    kinds = (8, 0) if version == 4 else (128, 129)
    return struct.pack("!BBHHH", kinds[reply], 0, 0, identifier & 0xFFFF, number & 0xFFFF)


def unreachable(version: int, quoted: bytes) -> bytes:
    """Return the bytes of an ICMP "unreachable" error that quotes a packet."""
    return struct.pack("!BBHI", 3 if version == 4 else 1, 1, 0, 0) + quoted[: 48 if version == 4 else 80]
