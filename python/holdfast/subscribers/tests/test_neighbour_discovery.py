"""Neighbour discovery of a session: which solicitations are valid, what is answered, and how often (RFC 4861)."""

from __future__ import annotations

import pytest

from holdfast.subscribers import ipv6
from holdfast.subscribers.pppoe import SESSION
from holdfast.subscribers.subscriber import Subscriber
from holdfast.subscribers.tests.test_gateway import World
from holdfast.subscribers.tests.test_network_protocols import ones_complement
from holdfast.subscribers.tests.worlds import MAC

HOST = bytes.fromhex("fe800000000000000000000000000007")
ROUTER = bytes.fromhex("fe800000000000000000000000aabbcc")
ALL_ROUTERS = bytes.fromhex("ff020000000000000000000000000002")
SOLICITED_NODE = bytes.fromhex("ff0200000000000000000001ffaabbcc")
LINK_LAYER, NONCE = bytes.fromhex("0101020000000001"), bytes.fromhex("0e01010203040506")
ROUTERS, NEIGHBOURS = b"\x85\0\0\0" + bytes(4), b"\x87\0\0\0" + bytes(4) + ROUTER


def icmp(source: bytes, destination: bytes, body: bytes, hops: int = 255, wrong: int = 0) -> bytes:
    """Return an ICMPv6 packet; ``wrong`` is added to its checksum."""
    value = (ipv6.checksum(source, destination, 58, body) + wrong) & 0xFFFF
    head = bytes.fromhex("60000000") + len(body).to_bytes(2) + bytes((58, hops)) + source + destination
    return head + body[:2] + value.to_bytes(2) + body[4:]


GOOD = {
    "routers": icmp(HOST, ALL_ROUTERS, ROUTERS),
    "routers, of one": icmp(HOST, ROUTER, ROUTERS),
    "routers, with a link-layer address": icmp(HOST, ALL_ROUTERS, ROUTERS + LINK_LAYER),
    "routers, from nobody": icmp(bytes(16), ALL_ROUTERS, ROUTERS),
    "neighbour": icmp(HOST, SOLICITED_NODE, NEIGHBOURS),
    "neighbour, reachable still": icmp(HOST, ROUTER, NEIGHBOURS),
    "neighbour, with options": icmp(HOST, ROUTER, NEIGHBOURS + NONCE + LINK_LAYER),
    "neighbour, a duplicate": icmp(bytes(16), SOLICITED_NODE, NEIGHBOURS + NONCE),
}
BAD = {
    "forwarded": icmp(HOST, ALL_ROUTERS, ROUTERS, hops=254),
    "wrong checksum": icmp(HOST, ALL_ROUTERS, ROUTERS, wrong=1),
    "code": icmp(HOST, ALL_ROUTERS, b"\x85\1" + ROUTERS[2:]),
    "an option without a length": icmp(HOST, ALL_ROUTERS, ROUTERS + b"\1\0" + bytes(6)),
    "an option that goes on": icmp(HOST, ALL_ROUTERS, ROUTERS + b"\1\2" + bytes(6)),
    "half an option": icmp(HOST, ALL_ROUTERS, ROUTERS + LINK_LAYER + b"\x0e"),
    "nobody's link-layer address": icmp(bytes(16), ALL_ROUTERS, ROUTERS + NONCE + LINK_LAYER),
    "a forwarded neighbour": icmp(HOST, ROUTER, NEIGHBOURS, hops=64),
    "a neighbour's wrong checksum": icmp(HOST, ROUTER, NEIGHBOURS, wrong=1),
    "a neighbour's code": icmp(HOST, ROUTER, b"\x87\1" + NEIGHBOURS[2:]),
    "a short neighbour": icmp(HOST, ROUTER, NEIGHBOURS[:23]),
    "a multicast target": icmp(HOST, ROUTER, NEIGHBOURS[:8] + ALL_ROUTERS),
    "a neighbour's option without a length": icmp(HOST, ROUTER, NEIGHBOURS + b"\1\0" + bytes(6)),
    "a duplicate at one address": icmp(bytes(16), ROUTER, NEIGHBOURS),
    "a duplicate at all routers": icmp(bytes(16), ALL_ROUTERS, NEIGHBOURS),
    "a duplicate's link-layer address": icmp(bytes(16), SOLICITED_NODE, NEIGHBOURS + LINK_LAYER),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_read(name: str) -> None:
    found = ipv6.read(GOOD[name])
    assert found is not None
    assert found.solicitation is name.startswith("routers")
    assert (found.target is not None) is name.startswith("neighbour")
    for at in range(40, len(GOOD[name])):
        assert ipv6.read(GOOD[name][:at]) is None


@pytest.mark.parametrize("name", BAD)
def test_what_is_discarded_silently(name: str) -> None:
    """Check each reason of sections 6.1.1 and 7.1.1, one at a time."""
    assert ipv6.read(BAD[name]) is None


class Home:
    """A subscriber that is online, and the ICMPv6 packets that it gets from then on."""

    def __init__(self) -> None:
        self.world = World()
        self.host: Subscriber = self.world.subscriber()
        self.host.dial()
        self.world.clock.run(10.0)  # also until the advertisement that its own solicitation may bring
        assert self.host.state == "up"
        self.heard: list[tuple[float, bytes]] = []
        self.router = ipv6.link_local(self.world.gateway.rules.interface).packed
        line = self.world.gateway.sessions[self.host.session].line

        def hear(frame: bytes) -> None:
            if frame[20:22] == b"\0\x57" and frame[28] == 58:
                self.heard.append((self.world.clock.now(), frame[22 : 20 + int.from_bytes(frame[18:20])]))

        self.world.plane.hosts[line, self.host.mac] = hear
        self._line = line

    def say(self, packet: bytes, then_s: float = 0.1) -> list[bytes]:
        """Send an IPv6 packet, wait, and return what came in the meantime."""
        before = len(self.heard)
        head = b"\x11\0" + self.host.session.to_bytes(2) + (2 + len(packet)).to_bytes(2) + b"\0\x57"
        self.world.plane.from_line(self._line, MAC + self.host.mac + SESSION + head + packet)
        self.world.clock.run(then_s)
        return [packet for _, packet in self.heard[before:]]


def test_the_gateways_own_address_is_answered_for_and_no_other() -> None:
    """Check sections 7.2.4 and 7.3.1, by which a host knows that its router is there, and RFC 4862's search for duplicates."""
    home = Home()
    own, own_node = home.router, SOLICITED_NODE[:13] + home.router[13:]
    asked = b"\x87\0\0\0" + bytes(4) + own
    for destination, options in ((own_node, b""), (own, b""), (own_node, LINK_LAYER), (own, LINK_LAYER + NONCE)):
        [answer] = home.say(icmp(HOST, destination, asked + options))
        assert answer[6:8] == bytes((58, 255))
        assert (answer[8:24], answer[24:40]) == (own, HOST)
        assert answer[40:42] == b"\x88\0" and answer[44:] == b"\xc0\0\0\0" + own  # router, solicited, not override
        assert ones_complement(answer) == 0xFFFF
    [answer] = home.say(icmp(bytes(16), own_node, asked))
    assert answer[24:40] == ipv6.ALL_NODES.packed and answer[44:] == b"\x80\0\0\0" + own
    assert home.say(icmp(HOST, own, asked, hops=64)) == []
    assert home.say(icmp(HOST, own_node, asked[:8] + HOST)) == []
    assert home.say(icmp(HOST, own_node, asked[:8] + bytes.fromhex("20010db8000100000000000000000001"))) == []


def test_router_advertisements_are_three_seconds_apart_however_many_ask() -> None:
    """Check section 6.2.6: of 300 solicitations in three seconds, the first is answered at once, and all others by one answer."""
    home = Home()
    asked = icmp(HOST, ALL_ROUTERS, ROUTERS)
    [first] = home.say(asked)
    assert first[40] == 134 and first[24:40] == ipv6.ALL_NODES.packed
    for _ in range(300):
        home.say(asked, 0.009)
    home.world.clock.run(20.0)
    times = [at for at, packet in home.heard if packet[40] == 134]
    assert len(times) == 2 and times[1] - times[0] >= 3.0
    assert [packet[40] for packet in home.say(asked)] == [134]
    # A session that has ended sends none that it owed.
    home.say(asked)
    home.world.gateway.kick([home.host.session])
    before = len(home.heard)
    home.world.clock.run(10.0)
    assert [packet for _, packet in home.heard[before:] if packet[40] == 134 and packet[46:48] != b"\0\0"] == []
    assert home.world.gateway.violations() == []
