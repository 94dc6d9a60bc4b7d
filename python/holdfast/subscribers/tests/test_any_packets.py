"""Any packets of any protocol, in every phase of a session, are borne: nothing raises, and the books are right after each of them.

Packets are made from each protocol's grammar and then spoiled: empty, cut off, with wrong lengths, with options twice.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from ipaddress import IPv6Address

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.subscribers import ipv6
from holdfast.subscribers.accounting import Kind, Record
from holdfast.subscribers.authentication import Answer, Question, Verdict
from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.tests.exchanges import (
    CHAP,
    CONTROL,
    IPCP,
    IPV6CP,
    LCP,
    PAP,
    REQUEST,
    Peer,
    cooperative,
)
from holdfast.subscribers.tests.worlds import MAC, MemoryPlane, VirtualClock, configuration, seeded

IPV6, IPV4, UNKNOWN = 0x57, 0x21, 0x80FD
DISCOVERY = 0
"""The number in place of a protocol for frames of discovery."""

ALICE = IPv6Address("fe80::200:0:0:1")
SERVERS = IPv6Address("ff02::1:2")


class World:
    """A gateway whose authenticator answers when the test says so, or at once."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.plane = MemoryPlane(self.clock)
        self.open: dict[str, int] = {}
        self.answers: list[Answer] | None = None
        self.gateway = Gateway(
            configuration(authentication=["chap", "pap"]), self.plane, self.clock, self, random=seeded(1), accountant=self,
            wall=self.clock.now,
        )  # fmt: skip
        self.gateway.start()

    def authenticate(self, question: Question, answer: Answer) -> None:
        if self.answers is None:
            answer(Verdict(True))
        else:
            self.answers.append(answer)

    def account(self, record: Record) -> None:
        assert record.session is not None
        if record.kind is Kind.START:
            assert record.accounting_id not in self.open
            self.open[record.accounting_id] = record.session.session_id
        elif record.kind is Kind.STOP:
            assert self.open.pop(record.accounting_id) == record.session.session_id

    def sound(self, seconds: float = 0.01) -> None:
        """Run for ``seconds``, then check that all sessions that forward are accounted and no fault was counted."""
        self.clock.run(seconds)
        assert self.gateway.events["faults"] == 0
        assert self.gateway.violations() == []
        assert sorted(self.open.values()) == sorted(self.plane.table)


def _without(*protocols: int) -> dict[tuple[int, int], str]:
    return {key: habit for key, habit in cooperative().items() if key[0] not in protocols}


def _waiting(world: World, peer: Peer) -> None:
    world.answers = []
    peer.reactions = cooperative()
    peer.discover()
    world.sound(0.5)
    assert world.answers


def _acknowledged(world: World, peer: Peer) -> None:
    _dials(_without(IPCP, IPV6CP))(world, peer)
    peer.request(IPV6CP)


def _terminating(world: World, peer: Peer) -> None:
    _dials(cooperative())(world, peer)
    peer.reactions = {}
    world.gateway.kick([peer.session])


def _dials(habits: dict[tuple[int, int], str]) -> Callable[[World, Peer], None]:
    def begin(world: World, peer: Peer) -> None:
        peer.reactions = habits
        peer.discover()
        world.sound(0.5)
        peer.reactions = {}

    return begin


PHASES: dict[str, Callable[[World, Peer], None]] = {
    "none": lambda world, peer: None,
    "establish": _dials({}),
    "authenticate": _dials(_without(CHAP)),
    "waiting": _waiting,
    "network": _dials(_without(IPCP, IPV6CP)),
    "acknowledged": _acknowledged,
    "open": _dials(cooperative()),
    "terminate": _terminating,
}

VALUES = st.one_of(
    st.binary(max_size=10),
    st.sampled_from(
        [b"", bytes(4), bytes(8), b"\x05\xd4", b"\xc0\x23", b"\xc2\x23\x05", b"\x64\x40\0\2", b"\2\0\0\0\0\0\0\1"]
    ),
)
LENGTHS = st.none() | st.integers(0, 255)


def _option(kind: int, value: bytes, length: int | None) -> bytes:
    return bytes((kind, min(255, 2 + len(value)) if length is None else length)) + value


OPTIONS = st.lists(
    st.builds(_option, st.sampled_from([0, 1, 1, 2, 3, 3, 5, 7, 13, 129, 131, 255]), VALUES, st.none() | st.none() | LENGTHS),
    max_size=5,
).map(b"".join)  # fmt: skip


def _twice(options: bytes) -> bytes:
    return options + options


def _strings(user: bytes, password: bytes, size: int | None) -> bytes:
    return bytes((len(user) if size is None else size,)) + user + bytes((len(password),)) + password


BODIES: dict[int, st.SearchStrategy[bytes]] = {
    **dict.fromkeys(CONTROL, OPTIONS | OPTIONS.map(_twice) | st.binary(max_size=30)),
    PAP: st.builds(_strings, st.binary(max_size=9), st.binary(max_size=9), LENGTHS) | st.binary(max_size=5),
    CHAP: st.builds(lambda size, value, name: bytes((size,)) + value + name, st.sampled_from([0, 15, 16, 16, 16, 17, 255]),
                    st.binary(max_size=17), st.binary(max_size=9)) | st.binary(max_size=5),
}  # fmt: skip


def _packet(
    code: int, identifier: int | None, body: bytes, length: int | None, cut: int | None
) -> tuple[int | None, bytes]:
    whole = bytes((code, identifier or 0)) + struct.pack("!H", 4 + len(body) if length is None else length) + body
    return identifier, whole if cut is None else whole[:cut]


def _control(protocol: int) -> st.SearchStrategy[tuple[int | None, bytes]]:
    """Generate control packets of a protocol; a packet without an Identifier of its own gets that of the last packet received."""
    codes, bodies = st.sampled_from([1] * 8 + [*range(13), 255]), BODIES.get(protocol, st.binary(max_size=20))
    wrong = st.sampled_from([None] * 40 + [*range(13), 70])  # few of many, or whole packets would be rare
    return st.builds(_packet, codes, st.none() | st.integers(0, 255), st.just(b"") | bodies, wrong, wrong)


def _dhcp_option(kind: int, data: bytes, length: int | None) -> bytes:
    return struct.pack("!HH", kind, len(data) if length is None else length) + data


_DUID = b"\0\3\0\1\2\0\0\0\0\1"
_SERVER = b"\0\3\0\1" + MAC


def _association(iaid: bytes, inner: bytes) -> bytes:
    return iaid + bytes(8) + inner


_INNER = st.one_of(
    st.just(b""),
    st.binary(max_size=30),
    st.builds(_dhcp_option, st.sampled_from([5, 13, 26]), st.binary(min_size=24, max_size=26), st.none() | st.integers(0, 40)),
)  # fmt: skip
DHCP_OPTIONS = st.lists(
    st.one_of(
        st.just(_dhcp_option(1, _DUID, None)),
        st.just(_dhcp_option(1, _DUID, None)),
        st.just(_dhcp_option(2, _SERVER, None)),
        st.just(_dhcp_option(14, b"", None)),
        st.builds(
            lambda kind, iaid, inner: _dhcp_option(kind, _association(iaid, inner), None),
            st.sampled_from([25, 25, 3, 4]), st.sampled_from([bytes(4), b"\0\0\0\1"]), _INNER,
        ),
        st.builds(
            _dhcp_option, st.sampled_from([1, 2, 3, 6, 8, 14, 25, 26]), st.binary(max_size=20), st.none() | st.integers(0, 60)
        ),
    ),
    max_size=6,
).map(b"".join)  # fmt: skip


def _dhcp(kind: int, options: bytes, cut: int | None, destination: IPv6Address) -> tuple[int | None, bytes]:
    message = bytes((kind,)) + b"abc" + options
    return 0, ipv6.udp(ALICE, destination, 546, 547, message if cut is None else message[:cut])


DHCP = st.builds(
    _dhcp, st.integers(0, 13), DHCP_OPTIONS, st.none() | st.none() | st.integers(0, 40),
    st.sampled_from([SERVERS, SERVERS, IPv6Address("fe80::1")]),
)  # fmt: skip


def _icmp(kind: int, body: bytes) -> tuple[int | None, bytes]:
    return 0, struct.pack("!IHBB", 6 << 28, 4 + len(body), 58, 255) + ALICE.packed + IPv6Address(
        "ff02::2"
    ).packed + bytes((kind, 0, 0, 0)) + body


TAGS = st.lists(
    st.builds(
        lambda kind, value, length: struct.pack("!HH", kind, len(value) if length is None else length) + value,
        st.sampled_from([0, 0x101, 0x101, 0x103, 0x104, 0x105, 0x110, 0x120, 0x201, 0xFFFF]), st.binary(max_size=9),
        st.none() | st.none() | st.integers(0, 65535),
    ),
    max_size=4,
).map(b"".join)  # fmt: skip


def _discovery(
    code: int, version: int, number: int | None, tags: bytes, cookie: bool, length: int | None
) -> tuple[int | None, bytes]:
    """Return a discovery packet's session number (None: the peer's) and bytes; with ``cookie``, the last PADO's tags come first."""
    size = len(tags) if length is None else length
    return number, bytes((version, code, cookie)) + struct.pack("!H", size) + tags


FRAMES = st.builds(
    _discovery, st.sampled_from([0, 9, 9, 0x19, 0x19, 0x07, 0x65, 0xA7, 255]), st.sampled_from([0x11, 0x11, 0x11, 0, 0x21]),
    st.sampled_from([None, 0, 0, 1, 65535]), TAGS, st.booleans(), st.none() | st.none() | st.integers(0, 65535),
)  # fmt: skip

ANY = st.binary(max_size=60)
PACKETS: dict[int, st.SearchStrategy[tuple[int | None, bytes]]] = {
    **{each: _control(each) for each in (*CONTROL, PAP, CHAP, UNKNOWN)},
    IPV6: DHCP | st.builds(_icmp, st.sampled_from([133, 134, 135]), st.binary(max_size=20)) | st.tuples(st.just(0), ANY),
    IPV4: st.tuples(st.just(0), ANY),
    DISCOVERY: FRAMES,
}  # fmt: skip
TIMES = st.sampled_from([1, 1, 1, 2, 11])
"""The times that a packet is sent in a row: up to more than the gateway bears of Naks and Rejects (RFC 1661, section 4.6)."""
NAMES = {
    LCP: "lcp", IPCP: "ipcp", IPV6CP: "ipv6cp", PAP: "pap", CHAP: "chap", UNKNOWN: "unknown", IPV6: "dhcpv6", IPV4: "ipv4",
    DISCOVERY: "discovery",
}  # fmt: skip


def _send(world: World, peer: Peer, protocol: int, number: int | None, packet: bytes) -> None:
    handler = world.plane.handler
    assert handler is not None
    if protocol == DISCOVERY:
        version, code, cookie, size = struct.unpack_from("!BBBH", packet)
        tags = packet[5:]
        if cookie and 0x07 in peer.discovery:
            offered = b"".join(struct.pack("!HH", kind, len(value)) + value for kind, value in peer.discovery[0x07][1])
            tags, size = offered + tags, size + len(offered) & 0xFFFF
        session = peer.session if number is None else number
        head = struct.pack("!HBBHH", 0x8863, version, code, session, size)
        handler(peer.line, (b"\xff" * 6 if code == 9 else MAC) + peer.mac + head + tags)
        return
    if number is None and len(packet) > 1:
        packet = packet[:1] + peer.last.get(protocol, bytes(2))[1:2] + packet[2:]
    head = struct.pack("!HBBHHH", 0x8864, 0x11, 0, peer.session, 2 + len(packet), protocol)
    handler(peer.line, MAC + peer.mac + head + packet)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("protocol", PACKETS, ids=NAMES.get)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_sequence_of_packets_of_one_protocol(protocol: int, phase: str, data: st.DataObject) -> None:
    world = World()
    peer = Peer(world)  # type: ignore[arg-type]
    PHASES[phase](world, peer)
    world.sound()
    steps = st.lists(st.tuples(PACKETS[protocol], TIMES, st.sampled_from([0.001, 0.01, 3.1])), min_size=1, max_size=10)
    for (number, packet), times, seconds in data.draw(steps):
        for _ in range(times):
            _send(world, peer, protocol, number, packet)
            world.sound(seconds)
    if world.answers:
        world.answers[0](Verdict(True))
        world.sound()
    peer.reactions = {}
    for _ in range(10):
        world.sound(40)
    assert not world.gateway.sessions
    assert not world.plane.table
    assert world.gateway.pool_use() == World().gateway.pool_use()


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    phase=st.sampled_from(sorted(PHASES)),
    steps=st.lists(
        st.sampled_from(sorted(PACKETS)).flatmap(lambda each: st.tuples(st.just(each), PACKETS[each])), max_size=30
    ),
    frames=st.lists(st.binary(max_size=40), max_size=4),
)
def test_any_sequence_of_packets_of_all_protocols(
    phase: str, steps: list[tuple[int, tuple[int | None, bytes]]], frames: list[bytes]
) -> None:
    """Make a cooperative peer send other packets, too, and frames of other protocols, and check the gateway's books."""
    world = World()
    peer = Peer(world)  # type: ignore[arg-type]
    PHASES[phase](world, peer)
    peer.reactions = cooperative()
    for protocol, (number, packet) in steps:
        _send(world, peer, protocol, number, packet)
        world.sound()
    handler = world.plane.handler
    assert handler is not None
    for each in frames:
        for head in (b"", MAC + peer.mac, MAC + peer.mac + b"\x88\x63", MAC + peer.mac + b"\x88\x64"):
            handler(peer.line, head + each)
            world.sound()
    peer.reactions = {}
    world.sound(600)
    assert not world.gateway.sessions


@pytest.mark.parametrize("protocol", CONTROL)
def test_options_that_are_listed_twice_are_rejected(protocol: int) -> None:
    """Check that no option of these protocols may be listed more than once (RFC 1661, section 6)."""
    value = {LCP: b"\1\4\x05\xd4", IPCP: b"\3\6\x64\x40\0\2", IPV6CP: b"\1\x0a\2\0\0\0\0\0\0\1"}[protocol]
    world = World()
    peer = Peer(world)  # type: ignore[arg-type]
    PHASES["establish" if protocol == LCP else "network"](world, peer)
    peer.reactions = {(protocol, 4): "terminate_ack"}
    peer.heard.clear()
    peer.say(protocol, REQUEST, 7, value + value)
    world.sound()
    [answer] = [packet for _, which, packet in peer.heard if which == protocol and packet[1] == 7]
    assert answer == struct.pack("!BBH", 4, 7, 4 + len(value)) + value
