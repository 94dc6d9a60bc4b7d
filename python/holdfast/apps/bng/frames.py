"""Frames of lines with and without their VLAN tags, and the answers to ARP and neighbour solicitations."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address

from holdfast.apps.bng.program import ETHERTYPE_PORT_TAG
from holdfast.errors import NetworkError
from holdfast.subscribers.plane import Line

_TAGS = (0x8100, 0x88A8)
_VLAN = 0x8100
_ARP = 0x0806
_IPV6 = 0x86DD


def check_line(line: Line) -> None:
    """Raise :class:`NetworkError` for an impossible line: VLAN numbers are 1 to 4,094, and a C-tag needs an S-tag."""
    for name, tag in (("S", line.s_tag), ("C", line.c_tag)):
        if not 0 <= tag <= 4094:
            raise NetworkError(f"{line}: the {name}-tag is {tag}; it must be 1 to 4094, or 0 for none")
    if line.c_tag and not line.s_tag:
        raise NetworkError(f"{line}: a line with one tag has it as S-tag")
    if not 1 <= line.port <= 509:
        raise NetworkError(f"{line}: the port is not in 1 to 509")


def untagged(frame: bytes, port: int) -> tuple[Line, bytes]:
    """Return the access line of a frame that arrived on ``port``, and the frame without tags.

    A port tag, if there is one, gives the line's port instead.
    """
    position = 12
    vids: list[int] = []
    if len(frame) >= 18 and struct.unpack_from("!H", frame, 12)[0] == ETHERTYPE_PORT_TAG:
        port = struct.unpack_from("!H", frame, 14)[0] & 0x0FFF
        position = 16
    while len(vids) < 2 and len(frame) >= position + 6 and struct.unpack_from("!H", frame, position)[0] in _TAGS:
        vids.append(struct.unpack_from("!H", frame, position + 2)[0] & 0x0FFF)
        position += 4
    s_tag, c_tag = (*vids, 0, 0)[:2]
    return Line(port, s_tag, c_tag), frame[:12] + frame[position:]


def tagged(line: Line, frame: bytes, s_tpid: int, *, port_tag: bool) -> bytes:
    """Return ``frame`` with the S- and the C-tag of ``line`` (each only if it is not 0) behind the MAC addresses.

    ``s_tpid``: the EtherType of the S-tag. With ``port_tag``, a further tag with the number of the access port precedes them, which
    a load balancer reads. Raise :class:`NetworkError` for an impossible line (:func:`check_line`).
    """
    return frame[:12] + _tags_of(line, s_tpid, port_tag) + frame[12:]


@lru_cache(maxsize=1 << 16)
def _tags_of(line: Line, s_tpid: int, port_tag: bool) -> bytes:
    check_line(line)
    tags = b""
    if port_tag:
        tags += struct.pack("!HH", ETHERTYPE_PORT_TAG, line.port)
    if line.s_tag:
        tags += struct.pack("!HH", s_tpid, line.s_tag)
    if line.c_tag:
        tags += struct.pack("!HH", _VLAN, line.c_tag)
    return tags


def arp_reply(frame: bytes, mac: bytes, owns: Callable[[IPv4Address], bool]) -> bytes | None:
    """Return the ARP reply to a request for an address for which ``owns`` is True (RFC 826); None for any other frame."""
    if len(frame) < 42 or frame[12:22] != struct.pack("!HHHBBH", _ARP, 1, 0x0800, 6, 4, 1):
        return None
    sender, target = frame[22:32], frame[38:42]
    if sender[6:] == target or not owns(IPv4Address(target)):
        return None
    return sender[:6] + mac + struct.pack("!HHHBBH", _ARP, 1, 0x0800, 6, 4, 2) + mac + target + sender


def neighbour_advertisement(frame: bytes, mac: bytes, owns: Callable[[IPv6Address], bool]) -> bytes | None:
    """Return the answer to a neighbour solicitation for an address for which ``owns`` is True; None for any other frame.

    See RFC 4861, section 7.2.4. Solicitations from the unspecified address, by which an owner looks for duplicates, have no answer.
    """
    if (
        len(frame) < 78
        or frame[12:14] != struct.pack("!H", _IPV6)
        or frame[14] >> 4 != 6
        or frame[20:22] != b"\x3a\xff"
    ):
        return None
    source, message = frame[22:38], frame[54 : 54 + struct.unpack_from("!H", frame, 18)[0]]
    target = message[8:24]
    if len(target) < 16 or message[:2] != b"\x87\x00" or _checksum(source + frame[38:54], message) != 0:
        return None
    if source == bytes(16) or not owns(IPv6Address(target)):
        return None
    answer = b"\x88\x00\x00\x00\x60\x00\x00\x00" + target + b"\x02\x01" + mac
    answer = answer[:2] + struct.pack("!H", _checksum(target + source, answer)) + answer[4:]
    header = struct.pack("!IHBB", 6 << 28, len(answer), 58, 255) + target + source
    return frame[6:12] + mac + struct.pack("!H", _IPV6) + header + answer


def _checksum(addresses: bytes, message: bytes) -> int:
    """Return the checksum of an ICMPv6 message (RFC 4443, section 2.3); ``addresses``: source and destination, 32 bytes."""
    data = addresses + struct.pack("!II", len(message), 58) + message
    data += bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total
