"""IGMP and MLD in Ethernet frames: those from a switch to its controller, and those that the controller sends out of a port."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

from holdfast.control.membership import igmp, mld
from holdfast.control.membership.messages import Address, Malformed, MalformedError, Message, Query

ETHERTYPE_IPV4, ETHERTYPE_IPV6 = b"\x08\x00", b"\x86\xdd"


def parse(frame: bytes) -> tuple[Address, Message]:
    """Return the sender and the message in a frame.

    Raises :class:`MalformedError` if the frame is not a valid message of IGMP or MLD.
    """
    if len(frame) < 14:
        raise MalformedError(Malformed.TRUNCATED)
    ethertype = frame[12:14]
    if ethertype == ETHERTYPE_IPV4:
        return igmp.parse(frame[14:])
    if ethertype == ETHERTYPE_IPV6:
        return mld.parse(frame[14:])
    raise MalformedError(Malformed.OTHER_PROTOCOL)


def query(what: Query, source_mac: bytes, source: Address) -> bytes:
    """Return the Ethernet frame of a query: IGMP for an IPv4 source address, MLD for an IPv6 one."""
    if isinstance(source, IPv4Address):
        group: Address = igmp.ALL_SYSTEMS if what.group is None else what.group
        packet, ethertype = igmp.query_packet(what, source), ETHERTYPE_IPV4
    else:
        group = mld.ALL_NODES if what.group is None else what.group
        packet, ethertype = mld.query_packet(what, source), ETHERTYPE_IPV6
    return group_mac(group) + source_mac + ethertype + packet


def group_mac(group: Address) -> bytes:
    """Return the Ethernet address of a multicast group (RFC 1112, 6.4; RFC 2464, 7)."""
    if isinstance(group, IPv6Address):
        return b"\x33\x33" + group.packed[12:]
    return b"\x01\x00\x5e" + bytes((group.packed[1] & 0x7F,)) + group.packed[2:]
