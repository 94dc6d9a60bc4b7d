"""Messages of IGMP (RFC 1112, 2236, 3376) and MLD (RFC 2710, 3810) as hosts and other routers send them, right and wrong."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

Address = IPv4Address | IPv6Address

IS_INCLUDE, IS_EXCLUDE, TO_INCLUDE, TO_EXCLUDE, ALLOW, BLOCK = range(1, 7)
"""Types of group records (RFC 3376, section 4.2.12)."""
QUERY, REPORT_V1, REPORT_V2, LEAVE, REPORT_V3 = 0x11, 0x12, 0x16, 0x17, 0x22
MLD_QUERY, MLD_REPORT, MLD_DONE, MLD_REPORT_V2 = 130, 131, 132, 143


class Record(NamedTuple):
    """A group record of a report."""

    kind: int
    group: Address
    sources: tuple[Address, ...] = ()
    auxiliary: bytes = b""


class Sender(NamedTuple):
    """The station that sends, and what it may do wrong: another TTL, no Router Alert, a wrong checksum."""

    mac: bytes
    address: Address
    hops: int = 1
    alert: bool = True
    damage: int = 0


def _sum(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def _group_mac(to: Address) -> bytes:
    packed = to.packed
    return b"\x33\x33" + packed[12:] if to.version == 6 else b"\x01\x00\x5e" + bytes((packed[1] & 0x7F,)) + packed[2:]


def frame(sender: Sender, to: Address, message: bytes) -> bytes:
    """Return an IP frame with a message and its checksum, which ``sender.damage`` changes."""
    source, target = sender.address.packed, to.packed
    if to.version == 4:
        message = message[:2] + struct.pack("!H", _sum(message) ^ sender.damage) + message[4:]
        options = b"\x94\x04\0\0" if sender.alert else b""
        size = 20 + len(options) + len(message)
        head = (
            struct.pack("!BBHHHBBH", 0x45 + len(options) // 4, 0xC0, size, 0, 0, sender.hops, 2, 0)
            + source
            + target
            + options
        )
        head = head[:10] + struct.pack("!H", _sum(head)) + head[12:]
        return _group_mac(to) + sender.mac + b"\x08\0" + head + message
    pseudo = source + target + struct.pack("!II", len(message), 58)
    message = message[:2] + struct.pack("!H", _sum(pseudo + message) ^ sender.damage) + message[4:]
    options = b"\x3a\0\x05\x02\0\0\x01\0" if sender.alert else b""
    head = struct.pack("!IHBB", 6 << 28, len(options) + len(message), 0 if options else 58, sender.hops)
    return _group_mac(to) + sender.mac + b"\x86\xdd" + head + source + target + options + message


def report(sender: Sender, records: Iterable[Record]) -> bytes:
    """Return a frame with a report of IGMPv3 or MLDv2 (RFC 3376, section 4.2; RFC 3810, section 5.2)."""
    body, count = b"", 0
    for record in records:
        count += 1
        head = struct.pack("!BBH", record.kind, len(record.auxiliary) // 4, len(record.sources))
        body += head + record.group.packed + b"".join(each.packed for each in record.sources) + record.auxiliary
    six = sender.address.version == 6
    head = struct.pack("!BBHHH", MLD_REPORT_V2 if six else REPORT_V3, 0, 0, 0, count)
    return frame(sender, IPv6Address("ff02::16") if six else IPv4Address("224.0.0.22"), head + body)


def older(sender: Sender, kind: int, group: Address) -> bytes:
    """Return a frame with a report or leave of an older version (RFC 1112, 2236, 2710)."""
    if sender.address.version == 6:
        to = IPv6Address("ff02::2") if kind == MLD_DONE else group
        return frame(sender, to, struct.pack("!BBHHH", kind, 0, 0, 0, 0) + group.packed)
    to = IPv4Address("224.0.0.2") if kind == LEAVE else group
    return frame(sender, to, struct.pack("!BBH", kind, 0, 0) + group.packed)


def query(
    sender: Sender,
    group: Address | None = None,
    sources: tuple[Address, ...] = (),
    *,
    version: int = 3,
    code: int = 100,
    interval: int = 125,
    flags: int = 2,
) -> bytes:
    """Return a frame with a query (RFC 3376, section 4.1; RFC 3810, section 5.1).

    ``version``: IGMP's or MLD's; ``interval``: QQIC; ``flags``: S and QRV.
    """
    six = sender.address.version == 6
    asked = group.packed if group is not None else bytes(16 if six else 4)
    everybody: Address = IPv6Address("ff02::1") if six else IPv4Address("224.0.0.1")
    head = (
        struct.pack("!BBHHH", MLD_QUERY, 0, 0, code << 8, 0)
        if six
        else struct.pack("!BBH", QUERY, 0 if version == 1 else code, 0)
    )
    body = head + asked
    if version == 3:
        body += struct.pack("!BBH", flags, interval, len(sources)) + b"".join(each.packed for each in sources)
    return frame(sender, group if group is not None else everybody, body)
