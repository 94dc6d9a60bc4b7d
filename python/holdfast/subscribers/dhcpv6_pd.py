"""A DHCPv6 server that delegates one prefix to one client (RFC 8415): the peer of a session.

Addresses it has none: those come from router advertisements. Sans I/O and without memory: bindings are the session's.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from ipaddress import IPv6Address, IPv6Network

CLIENT_PORT, SERVER_PORT = 546, 547
ALL_SERVERS = IPv6Address("ff02::1:2")


class Message(IntEnum):
    """Section 7.3."""

    SOLICIT = 1
    ADVERTISE = 2
    REQUEST = 3
    CONFIRM = 4
    RENEW = 5
    REBIND = 6
    REPLY = 7
    RELEASE = 8
    DECLINE = 9
    RECONFIGURE = 10
    INFORMATION_REQUEST = 11


class Option(IntEnum):
    """Section 21; RFC 3646."""

    CLIENT_ID = 1
    SERVER_ID = 2
    IA_NA = 3
    OPTION_REQUEST = 6
    STATUS_CODE = 13
    RAPID_COMMIT = 14
    DNS_SERVERS = 23
    IA_PD = 25
    IA_PREFIX = 26


class Status(IntEnum):
    """Section 21.13."""

    SUCCESS = 0
    NO_ADDRESSES = 2
    NO_BINDING = 3
    NO_PREFIX = 6


_WITH_SERVER = {Message.REQUEST, Message.RENEW, Message.RELEASE, Message.DECLINE}
_WITHOUT_SERVER = {Message.SOLICIT, Message.CONFIRM, Message.REBIND}
_MALFORMED = "a wrong length"


def write_option(kind: int, data: bytes) -> bytes:
    """Code, length and data."""
    return struct.pack("!HH", kind, len(data)) + data


def read_options(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Codes and data. Raises ValueError if a length is wrong."""
    at = 0
    while at < len(data):
        if at + 4 > len(data):
            raise ValueError(_MALFORMED)
        kind, size = struct.unpack_from("!HH", data, at)
        at += 4 + size
        if at > len(data):
            raise ValueError(_MALFORMED)
        yield kind, data[at - size : at]


def status(code: Status, text: str = "") -> bytes:
    """A Status Code option."""
    return write_option(Option.STATUS_CODE, struct.pack("!H", code) + text.encode())


@dataclass(frozen=True)
class Lease:
    """The offer to a session's client. Lifetimes in seconds; T1 and T2 are 0.5 and 0.8 of the preferred one (section 21.21)."""

    prefix: IPv6Network | None
    dns: tuple[IPv6Address, ...] = ()
    preferred_s: int = 3600
    valid_s: int = 7200


@dataclass(frozen=True)
class Outcome:
    """The answer to a message, and what became of the binding: True bound, False released, None as before."""

    reply: bytes | None
    bound: bool | None = None


_NOTHING = Outcome(None)


def respond(message: bytes, server_duid: bytes, lease: Lease, bound: bool) -> Outcome:
    """Answers a client's message (section 18.3). An invalid one (section 16) gets no answer."""
    if len(message) < 4:
        return _NOTHING
    try:
        kind = Message(message[0])
        options = list(read_options(message[4:]))
    except ValueError:
        return _NOTHING
    server = next((data for code, data in options if code == Option.SERVER_ID), None)
    client = next((data for code, data in options if code == Option.CLIENT_ID), None)
    if kind in _WITH_SERVER and server != server_duid:
        return _NOTHING
    if kind in _WITHOUT_SERVER and server is not None:
        return _NOTHING
    if kind is Message.INFORMATION_REQUEST:
        if server not in (None, server_duid) or any(code in (Option.IA_NA, Option.IA_PD) for code, _ in options):
            return _NOTHING
    elif client is None:
        return _NOTHING
    if kind in (Message.CONFIRM, Message.ADVERTISE, Message.REPLY, Message.RECONFIGURE):
        return _NOTHING  # Confirm is about addresses, of which there are none (section 18.3.3)
    rapid = kind is Message.SOLICIT and any(code == Option.RAPID_COMMIT for code, _ in options)
    answer = Message.ADVERTISE if kind is Message.SOLICIT and not rapid else Message.REPLY
    body = write_option(Option.CLIENT_ID, client) if client is not None else b""
    body += write_option(Option.SERVER_ID, server_duid)
    if rapid:
        body += write_option(Option.RAPID_COMMIT, b"")
    if kind in (Message.RELEASE, Message.DECLINE):
        body += status(Status.SUCCESS)
        released = kind is Message.RELEASE and bound
        return Outcome(bytes((answer,)) + message[1:4] + body, False if released else None)
    given = False
    for code, data in options:
        if code == Option.IA_NA and len(data) >= 12:
            body += write_option(
                Option.IA_NA, data[:4] + bytes(8) + status(Status.NO_ADDRESSES, "use autoconfiguration")
            )
        elif code == Option.IA_PD and len(data) >= 12:
            offered = lease.prefix is not None and not given
            if offered and kind in (Message.RENEW, Message.REBIND) and not bound:
                part = bytes(8) + status(Status.NO_BINDING)
            elif offered:
                part = _prefix(lease)
                given = True
            else:
                part = bytes(8) + status(Status.NO_PREFIX)
            body += write_option(Option.IA_PD, data[:4] + part)
    wanted = next((data for code, data in options if code == Option.OPTION_REQUEST), b"")
    if lease.dns and Option.DNS_SERVERS.to_bytes(2, "big") in (wanted[at : at + 2] for at in range(0, len(wanted), 2)):
        body += write_option(Option.DNS_SERVERS, b"".join(each.packed for each in lease.dns))
    return Outcome(bytes((answer,)) + message[1:4] + body, True if given and answer is Message.REPLY else None)


def _prefix(lease: Lease) -> bytes:
    """T1, T2 and the IA Prefix option (section 21.22)."""
    assert lease.prefix is not None
    times = struct.pack("!II", lease.preferred_s // 2, lease.preferred_s * 4 // 5)
    value = struct.pack("!IIB", lease.preferred_s, lease.valid_s, lease.prefix.prefixlen)
    return times + write_option(Option.IA_PREFIX, value + lease.prefix.network_address.packed)


def duid(mac: bytes) -> bytes:
    """DUID-LL of an Ethernet address (section 11.4)."""
    return struct.pack("!HH", 3, 1) + mac
