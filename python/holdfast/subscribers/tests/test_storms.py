"""The gateway object under attack: 100,000 PADI/s, forged cookies, half-open sessions, broken PPP."""

from __future__ import annotations

import gc
import os
import random
from pathlib import Path

import pytest

from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.plane import Line
from holdfast.subscribers.subscriber import Account, Subscriber
from holdfast.subscribers.tests.worlds import MAC, MemoryPlane, VirtualClock, configuration, seeded
from holdfast.subscribers.users import UserList

PER_S = 100_000
ROUNDS = 100


def resident() -> int:
    """Return this process's resident memory in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class World:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.plane = MemoryPlane(self.clock)
        values = configuration()
        self.gateway = Gateway(
            values, self.plane, self.clock, UserList(values.users), random=seeded(1), wall=self.clock.now
        )
        self.gateway.start()

    def subscriber(self, number: int, line: Line) -> Subscriber:
        mac = b"\x02\x01" + number.to_bytes(4, "big")
        host = Subscriber(
            Account("alice", "secret"), mac, self.clock, lambda frame: self.plane.from_line(line, frame), seed=number
        )
        self.plane.hosts[line, mac] = host.receive
        return host

    def storm(self, kind: str, seconds: int) -> None:
        """Send frames of a kind for ``seconds`` of virtual time, PER_S a second, in bursts every 10 ms."""
        numbers = random.Random(7)

        def burst(left: int) -> None:
            for _ in range(PER_S // ROUNDS):
                self.gateway.receive(*frame_of(kind, numbers))
            self.plane.sent.clear()
            if left:
                self.clock.call_later(1 / ROUNDS, lambda: burst(left - 1))

        burst(seconds * ROUNDS - 1)


def frame_of(kind: str, numbers: random.Random) -> tuple[Line, bytes]:
    mac = b"\x06" + numbers.randbytes(5)
    one, any_line = Line(1, 66, 6), Line(1, numbers.randrange(1, 20), numbers.randrange(1, 4000))
    if kind == "padi, one line":
        return one, b"\xff" * 6 + mac + bytes.fromhex("8863 1109 0000 0004 0101 0000")
    if kind == "padi, few lines":
        return Line(1, 66, numbers.randrange(1, 50)), b"\xff" * 6 + mac + bytes.fromhex("8863 1109 0000 0004 0101 0000")
    if kind == "forged cookies":
        return any_line, MAC + mac + bytes.fromhex("8863 1119 0000 0024 0101 0000 0104 001c") + numbers.randbytes(28)
    if kind == "spoofed sessions":
        return any_line, MAC + mac + bytes.fromhex("8864 1100") + numbers.randbytes(2) + bytes.fromhex(
            "0006 c021 0501 0004"
        )
    body = numbers.randbytes(numbers.randrange(60))
    return any_line, MAC + mac + numbers.choice((b"\x88\x63\x11", b"\x88\x64\x11")) + body


@pytest.mark.parametrize("kind", ["padi, one line", "padi, few lines", "forged cookies", "spoofed sessions", "noise"])
def test_an_honest_subscriber_gets_in_and_memory_stays(kind: str) -> None:
    world = World()
    first = world.subscriber(1, Line(2, 1, 1))
    first.dial()
    world.clock.run(2)
    assert first.state == "up"
    world.storm(kind, 2)
    world.clock.run(0.5)
    gc.collect()
    before = resident()
    late = world.subscriber(2, Line(2, 1, 2))
    began = world.clock.now()
    late.dial()
    world.clock.run(5)
    assert late.state == "up", (late.state, late.reason)
    assert late.up_s - began < 5
    gc.collect()
    assert resident() - before < 48 << 20  # two seconds' lines, at most 65,536 each, are the largest part
    assert first.state == "up"
    assert first.counts.lost == 0
    assert len(world.gateway.sessions) == 2
    assert sum(world.gateway.drops.values()) > PER_S
    assert len(world.gateway.drops) < 30  # reasons, not what attackers write


def test_half_open_sessions_are_few_and_end() -> None:
    """Check that a host that opens sessions and sends nothing more is stopped by its line's limit, and that all of them end."""
    world = World()
    line = Line(1, 5, 5)
    for number in range(200):
        host = world.subscriber(1000 + number, line)
        host._ask = lambda protocol: None  # type: ignore[method-assign]
        world.clock.call_later(number / 5, host.dial)
    world.clock.run(20)
    assert len(world.gateway.sessions) <= 8
    late = world.subscriber(2, Line(2, 1, 2))
    late.dial()
    world.clock.run(2)
    assert late.state == "up"
    world.clock.run(200)
    assert list(world.gateway.sessions) == [late.session]
    assert world.gateway.setups == 0
    assert not world.gateway._by_cookie.keys() - {world.gateway.sessions[late.session].request.cookie}
    assert len(world.gateway._by_line) == len(world.gateway._by_mac) == 1


def test_random_ppp_of_the_subscriber_itself_raises_nothing() -> None:
    """Check that no packet of a session's own subscriber raises an exception or ends another session."""
    world = World()
    hosts = [world.subscriber(number, Line(1, 1, number)) for number in range(1, 30)]
    for each in hosts:
        each.dial()
    world.clock.run(2)
    numbers = random.Random(11)
    other, *rest = hosts
    for each in rest:
        for _ in range(300):
            protocol = numbers.choice((0xC021, 0xC023, 0xC223, 0x8021, 0x8057, 0x0057, 0x0021, 0x80FD, 0x4021))
            body = bytearray(numbers.randbytes(numbers.randrange(80)))
            if len(body) >= 4 and numbers.random() < 0.9:
                body[0] = numbers.randrange(14)
                body[2:4] = (numbers.choice((len(body), numbers.randrange(90)))).to_bytes(2, "big")
            head = bytes.fromhex("8864 1100") + each.session.to_bytes(2, "big") + (len(body) + 2).to_bytes(2, "big")
            frame = MAC + each.mac + head + protocol.to_bytes(2, "big") + bytes(body)
            world.gateway.receive(Line(1, 1, hosts.index(each) + 1), frame)
        world.clock.run(0.5)
    world.clock.run(100)
    assert other.state == "up"
    assert other.counts.lost == 0
