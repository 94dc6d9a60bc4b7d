"""The usage of a session: whatever dies, what was said of it is never taken back, and no packet is counted twice."""

from __future__ import annotations

import operator
from dataclasses import astuple
from itertools import pairwise
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from holdfast.errors import HoldfastError
from holdfast.subscribers.accounting import Cause, Kind
from holdfast.subscribers.plane import Session, Usage
from holdfast.subscribers.store import SqliteStore
from holdfast.subscribers.tests.test_clock_steps import World

INTERIM_S = 60


def forward(world: World, usage: Usage) -> None:
    """Add ``usage`` to the user plane's counts of each session that it has."""
    for number in world.plane.table:
        world.plane.traffic[number] = world.plane.traffic[number].with_each(operator.add, usage)


def switch_dies(world: World) -> None:
    world.plane.table.clear()
    world.plane.traffic.clear()


def least(usages: list[Usage], later: Usage) -> bool:
    return all(each <= final for usage in usages for each, final in zip(astuple(usage), astuple(later), strict=True))


def test_what_an_interim_record_said_survives_the_switch(tmp_path: Path) -> None:
    world = World(interim_s=INTERIM_S, store=SqliteStore(tmp_path / "state.db"))
    world.dial()
    forward(world, Usage(10, 1280, 20, 2560))
    world.true.run(INTERIM_S + 1)
    switch_dies(world)
    world.restart()
    forward(world, Usage(1, 128, 0, 0))
    world.true.run(INTERIM_S)
    world.restart()  # the switch goes on now, and its counters with it
    forward(world, Usage(1, 128, 0, 0))
    [session] = world.gateway.sessions.values()
    session.terminate(Cause.ADMIN_RESET)
    world.true.run(10)
    said = [each.usage for each in world.records if each.kind is not Kind.START]
    assert said == [Usage(10, 1280, 20, 2560), Usage(11, 1408, 20, 2560), Usage(12, 1536, 20, 2560)]


def test_a_plane_that_knows_less_than_was_said_takes_nothing_back() -> None:
    """Check the case of several planes: one died, whose counts only the control plane knew, and then that did."""
    world = World(interim_s=INTERIM_S)
    world.dial()
    forward(world, Usage(10, 1280, 20, 2560))
    world.true.run(INTERIM_S + 1)
    for number in world.plane.table:
        world.plane.traffic[number] = Usage(3, 384, 25, 3200)
    world.restart()
    forward(world, Usage(1, 128, 1, 128))
    world.true.run(INTERIM_S)
    assert world.records[-1].usage == Usage(11, 1408, 26, 3328)


def test_a_session_that_the_new_user_plane_refuses_ends_with_its_usage() -> None:
    world = World(interim_s=INTERIM_S)
    world.dial(1)
    world.dial(2)
    forward(world, Usage(10, 1280, 20, 2560))
    world.true.run(INTERIM_S + 1)
    switch_dies(world)
    install = world.plane.install

    def refusing(sessions: list[Session]) -> None:
        sessions = list(sessions)
        if any(each.line.c_tag == 1 for each in sessions):
            raise HoldfastError("port 1 is no access port")
        install(sessions)

    world.plane.install = refusing  # type: ignore[method-assign, assignment]
    world.restart()
    [left] = world.gateway.sessions.values()
    assert left.line.c_tag == 2
    stop = world.records[-1]
    assert (stop.kind, stop.usage) == (Kind.STOP, Usage(10, 1280, 20, 2560))
    assert world.plane.table.keys() == {left.id}


class Machine(RuleBasedStateMachine):
    """Packets pass, and processes die, one or all: each record of a session says at least what the earlier ones said."""

    @initialize()
    def begin(self) -> None:
        self.world = World(interim_s=INTERIM_S)
        self.world.dial()
        self.sent = self.unread = 0

    @rule(packets=st.integers(1, 1000))
    def forward(self, packets: int) -> None:
        forward(self.world, Usage(packets, packets * 100, packets, packets * 50))
        self.sent += packets
        self.unread += packets

    @rule(seconds=st.sampled_from([1, INTERIM_S, 200]))
    def wait(self, seconds: int) -> None:
        known = len(self.world.records)
        self.world.true.run(seconds)
        if len(self.world.records) > known:
            self.unread = 0

    @rule()
    def control_plane_dies(self) -> None:
        self.world.restart()

    @rule()
    def all_die(self) -> None:
        """Restart the switch as well as the gateway: the packets whose counts nobody had read are lost, and no more."""
        switch_dies(self.world)
        self.world.restart()
        self.sent -= self.unread
        self.unread = 0

    @invariant()
    def nothing_is_taken_back(self) -> None:
        if not hasattr(self, "world"):
            return
        said = [each.usage for each in self.world.records]
        assert all(least([earlier], later) for earlier, later in pairwise(said))
        [session] = self.world.gateway.sessions.values()
        now = session.usage_with(self.world.plane.traffic[session.id])
        assert now == Usage(self.sent, self.sent * 100, self.sent, self.sent * 50)


TestUsage = Machine.TestCase
TestUsage.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
