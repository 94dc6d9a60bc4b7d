"""Frames for tests, from their fields. Nothing here knows the program or the model."""

from __future__ import annotations

import ipaddress
import struct

FIN, SYN, RST, PSH, ACK, URG = 1, 2, 4, 8, 16, 32

ICMP, TCP, UDP, ICMPV6 = 1, 6, 17, 58


def checksum(data: bytes) -> int:
    """Return the Internet checksum of ``data`` (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def mac(number: int) -> bytes:
    """Return a locally administered MAC address that ends in this number."""
    return b"\x02\0\0" + number.to_bytes(3, "big")


def number(address: bytes) -> int:
    """Return the bytes of an address as an integer."""
    return int.from_bytes(address, "big")


def ethernet(dst: bytes, src: bytes, ether_type: int, payload: bytes) -> bytes:
    """Return an Ethernet frame without its checksum, padded to 60 bytes."""
    return (dst + src + struct.pack("!H", ether_type) + payload).ljust(60, b"\0")


def ipv4(
    src: str,
    dst: str,
    protocol: int,
    payload: bytes,
    *,
    ttl: int = 64,
    flags: int = 2,
    offset: int = 0,
    options: bytes = b"",
    total_len: int | None = None,
    version: int = 4,
    bad_checksum: bool = False,
) -> bytes:
    """Return an IPv4 packet with a correct checksum, or with a wrong one if ``bad_checksum`` is set."""
    ihl = 5 + len(options) // 4
    length = 4 * ihl + len(payload) if total_len is None else total_len
    head = struct.pack(
        "!BBHHHBBH4s4s",
        version << 4 | ihl,
        0,
        length,
        7,
        flags << 13 | offset,
        ttl,
        protocol,
        0,
        ipaddress.IPv4Address(src).packed,
        ipaddress.IPv4Address(dst).packed,
    )
    total = checksum(head + options) ^ (1 if bad_checksum else 0)
    return head[:10] + struct.pack("!H", total) + head[12:] + options + payload


def ipv6(
    src: str, dst: str, next_header: int, payload: bytes, *, hop_limit: int = 64, payload_len: int | None = None
) -> bytes:
    """Return an IPv6 packet without extension headers."""
    length = len(payload) if payload_len is None else payload_len
    return (
        struct.pack("!IHBB", 6 << 28, length, next_header, hop_limit)
        + ipaddress.IPv6Address(src).packed
        + ipaddress.IPv6Address(dst).packed
        + payload
    )


def ip(src: str, dst: str, protocol: int, payload: bytes) -> bytes:
    """Return an IP packet of the version that the addresses have."""
    return ipv6(src, dst, protocol, payload) if ":" in src else ipv4(src, dst, protocol, payload)


def tcp(
    src_port: int,
    dst_port: int,
    flags: int,
    *,
    seq: int = 0,
    ack: int = 0,
    window: int = 65535,
    payload: bytes = b"",
    options: bytes = b"",
    data_offset: int | None = None,
) -> bytes:
    """Return a TCP segment with a checksum of zero, which the firewall does not check."""
    offset = 5 + len(options) // 4 if data_offset is None else data_offset
    head = struct.pack("!HHIIBBHHH", src_port, dst_port, seq % 2**32, ack % 2**32, offset << 4, flags, window, 0, 0)
    return head + options + payload


def window_scale(shift: int) -> bytes:
    """Return the TCP options of a usual SYN, with window shift ``shift`` (RFC 9293, RFC 7323)."""
    return b"\x02\x04\x05\xb4\x04\x02\x01\x03\x03" + bytes((shift,)) + b"\x01\x00"


def udp(src_port: int, dst_port: int, payload: bytes = b"data", *, length: int | None = None) -> bytes:
    """Return a UDP datagram without a checksum."""
    return struct.pack("!HHHH", src_port, dst_port, 8 + len(payload) if length is None else length, 0) + payload


def icmp(kind: int, code: int = 0, identifier: int = 0, sequence: int = 0, payload: bytes = b"") -> bytes:
    """Return an ICMP or ICMPv6 message: a header of eight bytes with a checksum of zero, and ``payload``."""
    return struct.pack("!BBHHH", kind, code, 0, identifier, sequence) + payload


def arp(operation: int, sender_mac: bytes, sender: str, target: str, target_mac: bytes = bytes(6)) -> bytes:
    """Return an ARP message for Ethernet and IPv4 (RFC 826)."""
    return (
        struct.pack("!HHBBH", 1, 0x0800, 6, 4, operation)
        + sender_mac
        + ipaddress.IPv4Address(sender).packed
        + target_mac
        + ipaddress.IPv4Address(target).packed
    )


def neighbour(kind: int, target: str) -> bytes:
    """Return a neighbour solicitation (135), an advertisement (136), or the same fields with another type."""
    return struct.pack("!BBHI", kind, 0, 0, 0) + ipaddress.IPv6Address(target).packed
