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
    IA_TA = 4
    IA_ADDRESS = 5
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
    NOT_ON_LINK = 4
    USE_MULTICAST = 5
    NO_PREFIX = 6


_WITH_SERVER = {Message.REQUEST, Message.RENEW, Message.RELEASE, Message.DECLINE}
_WITHOUT_SERVER = {Message.SOLICIT, Message.CONFIRM, Message.REBIND}
_OF_SERVERS = {Message.ADVERTISE, Message.REPLY, Message.RECONFIGURE}
_FIXED: dict[int, int] = {Option.IA_NA: 12, Option.IA_TA: 4, Option.IA_PD: 12}
"""Bytes of an IA option before the options in it (sections 21.4, 21.5 and 21.21)."""
_LONGEST_DUID = 130
"""Section 11.1."""
_LONGEST_REPLY = 1280 - 48
"""A reply must pass over every link of IPv6 (RFC 8200, section 5); a message that asks for a longer one gets none."""
_MALFORMED = "a wrong length"


def write_option(kind: int, data: bytes) -> bytes:
    """Return the bytes of a DHCPv6 option: its code, the length of ``data``, and ``data``."""
    return struct.pack("!HH", kind, len(data)) + data


def read_options(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the code and data of each DHCPv6 option in ``data``. Raises ValueError if a length is wrong."""
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
    """Return the bytes of a Status Code option with a code and an optional text."""
    return write_option(Option.STATUS_CODE, struct.pack("!H", code) + text.encode())


@dataclass(frozen=True)
class Lease:
    """The offer to a session's client. Lifetimes in seconds; T1 and T2 are 0.5 and 0.8 of the preferred one (section 21.21).

    ``link``: the prefix of the link's addresses, by which Confirm and Rebind are judged; None if there is none to know.
    """

    prefix: IPv6Network | None
    dns: tuple[IPv6Address, ...] = ()
    preferred_s: int = 3600
    valid_s: int = 7200
    link: IPv6Network | None = None


@dataclass(frozen=True)
class Binding:
    """The IA_PD that has the prefix: the DUID of its client, and its IAID (section 6.3)."""

    client: bytes
    iaid: bytes


Bound = Binding | bool
"""Who has the prefix: an IA_PD, nobody (False), or one that is not known (True: a state file of before IAIDs were kept)."""


@dataclass(frozen=True)
class Outcome:
    """The answer to a message, and who has the prefix afterwards: an IA_PD, nobody (False: released), or None as before."""

    reply: bytes | None
    bound: Bound | None = None


_NOTHING = Outcome(None)


@dataclass(frozen=True)
class _Association:
    """An IA option of a client. ``leases``: its addresses or prefixes, a network each, in the order of the message."""

    kind: int
    iaid: bytes
    leases: tuple[IPv6Network, ...]


@dataclass(frozen=True)
class _Asked:
    """A client's message. Of options that may come once, the first one counts."""

    kind: Message
    transaction: bytes
    server: bytes | None
    client: bytes | None
    rapid: bool
    dns: bool
    associations: tuple[_Association, ...]

    def delegations(self) -> list[_Association]:
        """Return the message's associations for prefix delegation (IA_PD)."""
        return [each for each in self.associations if each.kind == Option.IA_PD]


def respond(message: bytes, server_duid: bytes, lease: Lease, bound: Bound, *, unicast: bool = False) -> Outcome:
    """Return the answer to a client's message (RFC 8415, section 18.3), and who holds the prefix afterwards.

    An invalid message (section 16) gets no answer. ``unicast``: the message came to the server's own address, although the server
    has sent nobody the Server Unicast option.
    """
    asked = _read(message)
    if asked is None or not _valid(asked, server_duid):
        return _NOTHING
    kind = asked.kind
    answer = Message.ADVERTISE if kind is Message.SOLICIT and not asked.rapid else Message.REPLY
    head = bytes((answer,)) + asked.transaction
    if asked.client is not None:
        head += write_option(Option.CLIENT_ID, asked.client)
    head += write_option(Option.SERVER_ID, server_duid)
    if unicast:  # sections 18.3.2, 18.3.4, 18.3.7, 18.3.8, and 16 for the others
        return Outcome(head + status(Status.USE_MULTICAST)) if kind in _WITH_SERVER else _NOTHING
    after: Bound | None = None
    if kind is Message.CONFIRM:
        body = _confirm(asked, lease)
    elif kind in (Message.RELEASE, Message.DECLINE):
        body, after = _give_up(asked, lease, bound)
    elif kind in (Message.RENEW, Message.REBIND):
        body, after = _extend(asked, lease, bound)
    else:
        body, after = _assign(asked, lease, bound)
    if body is None:
        return _NOTHING
    if kind is Message.SOLICIT and asked.rapid:
        head += write_option(Option.RAPID_COMMIT, b"")
    if asked.dns and lease.dns and kind not in (Message.CONFIRM, Message.RELEASE, Message.DECLINE):
        body += write_option(Option.DNS_SERVERS, b"".join(each.packed for each in lease.dns))
    if len(head) + len(body) > _LONGEST_REPLY:
        return _NOTHING
    return Outcome(head + body, after if answer is Message.REPLY else None)


def _read(message: bytes) -> _Asked | None:
    """Parse a client's message. Returns None if a length is wrong or the message type is unknown."""
    if len(message) < 4:
        return None
    try:
        kind = Message(message[0])
        options = list(read_options(message[4:]))
        associations: dict[tuple[int, bytes], _Association] = {}
        for code, data in options:
            fixed = _FIXED.get(code)
            if fixed is not None and len(data) >= fixed:
                found = _Association(code, data[:4], tuple(_leases(code, data[fixed:])))
                associations.setdefault((code, found.iaid), found)  # an IAID is unique (section 12)
    except ValueError:
        return None
    first = dict(reversed(options))
    wanted = first.get(Option.OPTION_REQUEST, b"")
    return _Asked(
        kind,
        message[1:4],
        first.get(Option.SERVER_ID),
        first.get(Option.CLIENT_ID),
        kind is Message.SOLICIT and Option.RAPID_COMMIT in first,
        Option.DNS_SERVERS.to_bytes(2, "big") in (wanted[at : at + 2] for at in range(0, len(wanted), 2)),
        tuple(associations.values()),
    )


def _leases(kind: int, data: bytes) -> Iterator[IPv6Network]:
    """Yield the addresses or prefixes in an IA option, except malformed ones. Raises ValueError if a length is wrong."""
    for code, value in read_options(data):
        if kind == Option.IA_PD and code == Option.IA_PREFIX and len(value) >= 25 and value[8] <= 128:
            yield IPv6Network((value[9:25], value[8]), strict=False)
        elif kind != Option.IA_PD and code == Option.IA_ADDRESS and len(value) >= 24:
            yield IPv6Network((value[:16], 128))


def _valid(asked: _Asked, server_duid: bytes) -> bool:
    """Return True if a message passes the validity checks of RFC 8415, section 16, and False if the server must discard it."""
    kind = asked.kind
    if asked.client is not None and not 0 < len(asked.client) <= _LONGEST_DUID:
        return False
    if kind is Message.INFORMATION_REQUEST:
        return asked.server in (None, server_duid) and not asked.associations
    if kind in _OF_SERVERS or asked.client is None:
        return False
    return asked.server is None if kind in _WITHOUT_SERVER else asked.server == server_duid


def _holder(asked: _Asked, lease: Lease, bound: Bound) -> _Association | None:
    """Return the IA_PD of the message to which the server's records bind the prefix; None if there is no such IA_PD.

    If the records know nothing, it is the first IA_PD that names the prefix, or else the first IA_PD.
    """
    if lease.prefix is None or bound is False:
        return None
    if isinstance(bound, Binding):
        return next((each for each in asked.delegations() if bound == Binding(asked.client or b"", each.iaid)), None)
    named = [each for each in asked.delegations() if lease.prefix in each.leases]
    return next(iter(named + asked.delegations()), None)


def _assign(asked: _Asked, lease: Lease, bound: Bound) -> tuple[bytes, Bound | None]:
    """Return the IAs that answer Solicit and Request (RFC 8415, sections 18.3.1, 18.3.2), and the new binding or None.

    The IA_PD bound to the prefix gets it, or the first IA_PD if the prefix is free; the other IAs get a status code.
    """
    taker = _holder(asked, lease, bound)
    if taker is None and bound is False and lease.prefix is not None:
        taker = next(iter(asked.delegations()), None)
    body = b""
    for each in asked.associations:
        if each is taker:
            body += _association(each, _prefix(lease), _times(lease))
        elif each.kind == Option.IA_PD:
            body += _association(each, status(Status.NO_PREFIX))
        else:
            body += _association(each, status(Status.NO_ADDRESSES, "use autoconfiguration"))
    return body, None if taker is None else Binding(asked.client or b"", taker.iaid)


def _extend(asked: _Asked, lease: Lease, bound: Bound) -> tuple[bytes | None, Bound | None]:
    """Return the IAs that answer Renew and Rebind (RFC 8415, sections 18.3.4, 18.3.5), and the present binding or None.

    No binding is made, as clients use Request for that. An address or prefix that an IA names and that is not of this link is
    returned with lifetimes of 0, so that the client stops using it: a new session has another prefix than the one before. An IA
    without a binding also gets NoBinding, upon which the client requests a new one. (Section 18.3.4 answers a Renew with NoBinding
    alone; the client would then keep the dead prefix for its lifetime.)
    """
    holder = _holder(asked, lease, bound)
    body = b""
    for each in asked.associations:
        if each is holder:
            body += _association(each, _prefix(lease) + _strange(each, lease), _times(lease))
        else:
            body += _association(each, _strange(each, lease) + status(Status.NO_BINDING))
    return body or None, None if holder is None else Binding(asked.client or b"", holder.iaid)


def _strange(association: _Association, lease: Lease) -> bytes:
    """Return options with lifetimes of 0 for those addresses and prefixes of an IA that do not belong to the server's link."""
    if association.kind == Option.IA_PD:  # a prefix of zeros is a hint of its length alone (section 21.22)
        strange = [each for each in association.leases if each != lease.prefix and int(each.network_address)]
    else:
        strange = [each for each in association.leases if lease.link is not None and not each.subnet_of(lease.link)]
    return b"".join(_ended(association, each) for each in strange)


def _give_up(asked: _Asked, lease: Lease, bound: Bound) -> tuple[bytes, Bound | None]:
    """Return the answer to Release and Decline (RFC 8415, sections 18.3.7, 18.3.8), and False if the prefix is released, else None.

    Only a prefix that an IA both holds and names is released. A prefix is never declined: Decline is about addresses, of which this
    server gives none.
    """
    holder = _holder(asked, lease, bound)
    body = status(Status.SUCCESS)
    for each in asked.associations:
        if each is not holder:
            body += _association(each, status(Status.NO_BINDING))
    released = asked.kind is Message.RELEASE and holder is not None and lease.prefix in holder.leases
    return body, False if released else None


def _confirm(asked: _Asked, lease: Lease) -> bytes | None:
    """Return the status that answers Confirm (RFC 8415, section 18.3.3): whether all the client's addresses are of this link.

    Return None if the message names no address, or if no link is known.
    """
    named = [address for each in asked.associations if each.kind != Option.IA_PD for address in each.leases]
    if not named or lease.link is None:
        return None
    return status(Status.SUCCESS if all(each.subnet_of(lease.link) for each in named) else Status.NOT_ON_LINK)


def _association(asked: _Association, options: bytes, times: bytes = bytes(8)) -> bytes:
    """Return the bytes of an IA option for an answer. ``times``: the octets of T1 and T2, left out for an IA_TA."""
    return write_option(asked.kind, asked.iaid + (b"" if asked.kind == Option.IA_TA else times) + options)


def _times(lease: Lease) -> bytes:
    return struct.pack("!II", lease.preferred_s // 2, lease.preferred_s * 4 // 5)


def _prefix(lease: Lease) -> bytes:
    """Return the bytes of the IA Prefix option of the lease (RFC 8415, section 21.22)."""
    assert lease.prefix is not None
    value = struct.pack("!IIB", lease.preferred_s, lease.valid_s, lease.prefix.prefixlen)
    return write_option(Option.IA_PREFIX, value + lease.prefix.network_address.packed)


def _ended(association: _Association, lease: IPv6Network) -> bytes:
    """Return the option of an address or a prefix with lifetimes of 0, so that the client stops using it."""
    address = lease.network_address.packed
    if association.kind == Option.IA_PD:
        return write_option(Option.IA_PREFIX, bytes(8) + bytes((lease.prefixlen,)) + address)
    return write_option(Option.IA_ADDRESS, address + bytes(8))


def duid(mac: bytes) -> bytes:
    """Return the DUID-LL of an Ethernet address (RFC 8415, section 11.4)."""
    return struct.pack("!HH", 3, 1) + mac
