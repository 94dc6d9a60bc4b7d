"""Frames for the control plane take turns: whoever floods from one access node keeps nobody behind another waiting."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.subscribers.frame_turns import BEFORE_A_BEGINNING, MOST_BEGINNINGS, MOST_WAITING, FrameTurns, is_beginning
from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.plane import Line
from holdfast.subscribers.pppoe import BROADCAST, DISCOVERY, SESSION, Code, Tag
from holdfast.subscribers.service import HandedOver
from holdfast.subscribers.subscriber import Account, Subscriber
from holdfast.subscribers.tests.test_setup_turns import discovery
from holdfast.subscribers.tests.worlds import MAC, MemoryPlane, VirtualClock, configuration, seeded
from holdfast.subscribers.users import UserList


def frame(number: int, beginning: bool = False) -> bytes:
    """Return a frame that names its number: a PADI, or a PADT."""
    return bytes(8) + number.to_bytes(4) + DISCOVERY + bytes((0x11, Code.PADI if beginning else Code.PADT, 0, 0, 0, 0))


class Model:
    """All that waits in one list. A turn is of the access node, and there of the line, that has waited longest for one."""

    def __init__(self, most: int) -> None:
        self.most, self.now = most, 0
        self.waiting: list[tuple[Line, bytes]] = []
        self.since: dict[object, int] = {}

    def put(self, line: Line, item: bytes) -> None:
        self.now += 1
        for key in (line, line.access_node):
            if not any(key in (each, each.access_node) for each, _ in self.waiting):
                self.since[key] = self.now
        self.waiting.append((line, item))

    def may_lose(self, newest: Line) -> set[Line]:
        """Return the lines that may lose their newest frame when a frame of line ``newest`` finds the queue full."""
        nodes = Counter(each.access_node for each, _ in self.waiting)
        lines = Counter(each for each, _ in self.waiting)
        fullest = {each for each, count in nodes.items() if count == max(nodes.values())}
        if newest.access_node in fullest:
            fullest = {newest.access_node}
        of = {each for each in lines if each.access_node in fullest}
        full = {each for each in of if lines[each] == max(lines[it] for it in of if it.access_node == each.access_node)}
        return {newest} if newest in full else full

    def take(self) -> tuple[Line, bytes]:
        self.now += 1
        node = min((each.access_node for each, _ in self.waiting), key=self.since.__getitem__)
        line = min((each for each, _ in self.waiting if each.access_node == node), key=self.since.__getitem__)
        taken = next(each for each in self.waiting if each[0] == line)
        self.waiting.remove(taken)
        self.since[node] = self.since[line] = self.now
        return taken


LINES = st.builds(Line, st.integers(1, 2), st.integers(0, 1), st.integers(0, 2))
STEPS = st.lists(st.one_of(st.none(), st.tuples(LINES, st.booleans())), max_size=80)


@settings(deadline=None)
@given(STEPS)
def test_turns_against_a_plain_model(steps: list[tuple[Line, bool] | None]) -> None:
    """Check each frame that is taken or dropped, and that nothing is remembered of lines without frames."""
    turns = FrameTurns(most=6, most_beginnings=4)
    models = {True: Model(4), False: Model(6)}
    dropped = 0
    for number, step in enumerate([*steps, *[None] * 10]):
        if step is None:
            beginning = bool(models[True].waiting) and not models[False].waiting
            whole = models[beginning]
            assert turns.take() == (whole.take() if whole.waiting else None)
            continue
        line, beginning = step
        model, item = models[beginning], frame(number, beginning)
        model.put(line, item)
        lost = turns.put(line, item)
        assert (lost is not None) == (len(model.waiting) > model.most)
        if lost is not None:
            dropped += 1
            assert lost[0] in model.may_lose(line)
            assert lost == [each for each in model.waiting if each[0] == lost[0]][-1]
            model.waiting.remove(lost)
        assert len(turns) == sum(len(each.waiting) for each in models.values())
    assert turns.overflowed == dropped
    assert not len(turns)
    for each in ("_others", "_beginnings"):
        inside = vars(vars(turns)[each])
        assert not inside["_frames"] and not inside["_lines"] and not len(inside["_nodes"])


def test_the_fullest_access_node_loses_the_overflow_and_others_are_next() -> None:
    """Check the flood of 2,048 inner tags: an honest frame goes second, and each line of the flood before any has a second turn."""
    turns = FrameTurns()
    flood = [Line(1, 10, 1 + number % 2048) for number in range(3 * MOST_WAITING)]
    for number, line in enumerate(flood):
        turns.put(line, frame(number))
    assert len(turns) == MOST_WAITING
    honest = [Line(1, 3000, 1), Line(1, 3000, 2), Line(2)]
    for number, line in enumerate(honest):
        lost = turns.put(line, frame(1_000_000 + number))
        assert lost is not None and lost[0].s_tag == 10
    first = [turns.take() for _ in range(6)]
    assert {each[0] for each in first if each is not None} >= set(honest)
    seen = Counter(each[0] for each in (turns.take() for _ in range(2048 - 3)) if each is not None)
    assert max(seen.values()) == 1 and len(turns) == MOST_WAITING - 6 - 2045
    # A newcomer of the flood's own access node waits for a turn of each of its lines, not for all their frames.
    mine = Line(1, 10, 4000)
    turns.put(mine, frame(2_000_000))
    assert mine in [each[0] for each in (turns.take() for _ in range(2049)) if each is not None]


def test_a_beginning_waits_for_others_but_not_for_ever() -> None:
    turns = FrameTurns()
    for number in range(1000):
        turns.put(Line(1, 10, number), frame(number))
    for number in range(MOST_BEGINNINGS):
        turns.put(Line(1, 10, number), frame(number, beginning=True))
    honest = Line(1, 3000, 1)
    turns.put(honest, frame(7, beginning=True))
    taken = [each for each in (turns.take() for _ in range(1000 + MOST_BEGINNINGS)) if each is not None]
    beginnings = [at for at, each in enumerate(taken) if is_beginning(each[1])]
    assert beginnings[0] == BEFORE_A_BEGINNING
    assert taken[beginnings[1]][0] == honest
    assert sum(at < 1000 for at in beginnings) <= 1000 // BEFORE_A_BEGINNING
    assert not len(turns)


class Loop:
    """An event loop on a virtual clock, which takes 10 ms for each burst of frames: 6,400 frames a second."""

    def __init__(self, clock: VirtualClock) -> None:
        self.call_soon = self.call_soon_threadsafe = lambda action: clock.call_later(0.01, action)

    def is_closed(self) -> bool:
        return False


def flood(kind: str) -> Iterator[tuple[Line, bytes]]:
    """Yield frames from one outer tag with 2,048 inner tags, and a MAC address each."""
    draw = random.Random(5)
    while True:
        line, mac = Line(1, 10, 1 + draw.getrandbits(11)), b"\x06" + draw.randbytes(5)
        session = 1000 + draw.getrandbits(15)
        if kind == "PADI":
            yield line, discovery(BROADCAST, mac, Code.PADI, (Tag.SERVICE_NAME, b""))
        elif kind == "forged PADR":
            yield line, discovery(MAC, mac, Code.PADR, (Tag.SERVICE_NAME, b""), (Tag.AC_COOKIE, draw.randbytes(16)))
        elif kind == "PADT":
            yield line, MAC + mac + DISCOVERY + bytes((0x11, Code.PADT)) + session.to_bytes(2) + bytes(2)
        else:
            request = b"\xc0\x21\x01\x01\x00\x0a\x05\x06abcd"
            yield line, MAC + mac + SESSION + b"\x11\0" + session.to_bytes(2) + len(request).to_bytes(2) + request


@pytest.mark.parametrize("kind", ["PADI", "forged PADR", "PADT", "LCP of no session"])
def test_a_flood_of_inner_tags_ends_no_idle_session_and_delays_no_dial(kind: str) -> None:
    """Check that lines behind another outer tag notice nothing of three times as many frames as the control plane can handle."""
    clock = VirtualClock()
    plane = MemoryPlane(clock)
    settings_ = configuration(echo_interval_s=1.0, echo_failures=2)
    handed = HandedOver(plane, cast("asyncio.AbstractEventLoop", Loop(clock)))
    gateway = Gateway(settings_, handed, clock, UserList(settings_.users), random=seeded(1), wall=clock.now)
    gateway.start()

    def dial(number: int) -> Subscriber:
        line, mac = Line(1, 3000, number), bytes.fromhex("0200000100") + bytes((number,))
        send: Callable[[bytes], None] = lambda sent: plane.from_line(line, sent)  # noqa: E731
        host = Subscriber(Account("alice", "secret"), mac, clock, send, seed=number)
        plane.hosts[line, mac] = host.receive
        host.dial()
        return host

    idle = [dial(number) for number in range(1, 6)]
    clock.run(3.0)
    assert all(each.state == "up" for each in idle)
    frames = flood(kind)
    newcomer = None
    for step in range(400):
        for _ in range(200):
            plane.handler(*next(frames))  # type: ignore[misc]
        clock.run(0.01)
        if step == 200:
            newcomer = dial(7)
        if step % 50 == 0:
            assert gateway.violations() == []
    assert handed.overflowed > 10_000
    assert newcomer is not None and newcomer.state == "up", newcomer
    assert [each.state for each in idle] == ["up"] * 5
    assert len(gateway.sessions) >= 6
