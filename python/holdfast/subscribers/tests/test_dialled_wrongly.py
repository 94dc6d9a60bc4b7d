"""A subscriber that dials a gateway with wrong answers gives up: in bounded time and packets, and without an exception."""

from __future__ import annotations

import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.subscribers.subscriber import Account, Subscriber
from holdfast.subscribers.tests.exchanges import (
    CHAP,
    IPCP,
    IPV6CP,
    LCP,
    MAX_CONFIGURE,
    PAP,
    write_options,
)
from holdfast.subscribers.tests.worlds import MAC, VirtualClock

HOST = bytes.fromhex("020000000101")
MOST_PACKETS = 400


class WrongGateway:
    """Gives a session to everybody, and answers requests by a list of habits, which begins again at its end."""

    def __init__(self, habits: list[tuple[int, bytes]], **account: object) -> None:
        self.clock = VirtualClock()
        self.habits, self.turn, self.heard = habits, 0, 0
        values: dict[str, object] = {"user": "alice", "password": "secret", **account}
        self.host = Subscriber(Account(**values), HOST, self.clock, self._receive, seed=1)  # type: ignore[arg-type]

    def _receive(self, frame: bytes) -> None:
        self.heard += 1
        code, _, size = struct.unpack("!xBHH", frame[14:20])
        if frame[12:14] == b"\x88\x63":
            if code in (0x09, 0x19):
                answer = struct.pack("!HBBHH", 0x8863, 0x11, code - 2 if code == 9 else 0x65, 7 * (code == 0x19), size)
                self._later(answer + frame[20 : 20 + size])
            return
        protocol, kind, number = struct.unpack("!HBB", frame[20:24])
        if kind != 1 or protocol not in (LCP, IPCP, IPV6CP, PAP):
            return
        answer_code, data = self.habits[self.turn % len(self.habits)]
        self.turn += 1
        asked = frame[26 : 20 + size]
        self.ppp(protocol, answer_code, number, asked if data == b"asked" else data)

    def ppp(self, protocol: int, code: int, number: int, data: bytes) -> None:
        body = struct.pack("!HBBH", protocol, code, number, 4 + len(data)) + data
        self._later(struct.pack("!HBBHH", 0x8864, 0x11, 0, 7, len(body)) + body)

    def _later(self, rest: bytes) -> None:
        self.clock.call_later(0.001, lambda: self.host.receive(HOST + MAC + rest))


OPTIONS = st.lists(
    st.tuples(st.sampled_from([1, 3, 5, 129, 131, 200]), st.binary(max_size=9)), max_size=4
).map(write_options)  # fmt: skip
HABITS = st.lists(
    st.tuples(
        st.sampled_from([1, 2, 3, 3, 3, 4, 4, 5, 6, 7, 8, 9, 66]),
        st.one_of(OPTIONS, st.just(b"asked"), st.binary(max_size=12)),
    ),
    min_size=1, max_size=5,
)  # fmt: skip


@given(habits=HABITS)
@settings(max_examples=300, deadline=None)
def test_no_gateway_keeps_a_subscriber_busy_for_ever(habits: list[tuple[int, bytes]]) -> None:
    world = WrongGateway(habits)
    world.host.dial()
    world.clock.run(400)
    assert world.heard <= MOST_PACKETS
    assert world.host.state == "failed"


def test_a_gateway_that_naks_for_ever_is_given_up() -> None:
    for habit in ((3, b"asked"), (3, b"\1\4\2\0"), (3, b""), (4, b"asked"), (3, b"\5\6\0\0\0\0")):
        world = WrongGateway([habit])
        world.host.dial()
        world.clock.run(5)
        assert world.host.state == "failed", habit
        assert "c021 does not converge" in world.host.reason
        assert world.host.counts.sent["c021 1"] <= 2 * MAX_CONFIGURE


@given(
    protocol=st.sampled_from([LCP, IPCP, IPV6CP, PAP, CHAP, 0x0021, 0x0057]), code=st.integers(0, 255),
    number=st.integers(0, 3), data=st.one_of(OPTIONS, st.binary(max_size=80)),
    state=st.sampled_from(["link", "login", "network", "up"]),
)  # fmt: skip
@settings(max_examples=400, deadline=None)
def test_no_packet_raises(protocol: int, code: int, number: int, data: bytes, state: str) -> None:
    world = WrongGateway([(2, b"asked")])
    world.host.dial()
    world.clock.run(0.1)
    world.host.state = state
    world.ppp(protocol, code, number, data)
    world.clock.run(0.1)
    assert world.host.state in ("link", "login", "network", "up", "failed")
