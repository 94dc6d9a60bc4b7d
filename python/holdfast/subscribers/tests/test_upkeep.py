"""Session-Timeout, Idle-Timeout and interim accounting come at their second, whatever else the gateway's timers are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import HoldfastError
from holdfast.subscribers.accounting import Cause, Kind, Record
from holdfast.subscribers.authentication import Answer, Question, Verdict
from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.plane import Line, Usage
from holdfast.subscribers.subscriber import Account, Subscriber
from holdfast.subscribers.tests.worlds import MemoryPlane, VirtualClock, configuration, seeded


class World:
    """A gateway that says yes to everybody, with some verdict, and notes when it accounts."""

    def __init__(self, echo_interval_s: float = 30.0, step_s: float = 0.0, **verdict: Any) -> None:
        self.clock = VirtualClock()
        self.plane = MemoryPlane(self.clock)
        self.records: list[tuple[float, Record]] = []
        self.verdict, self.step_s = Verdict(True, **verdict), step_s
        self.gateway = Gateway(
            configuration(echo_interval_s=echo_interval_s, ipv6=None), self.plane, self.clock, self,
            random=seeded(1), accountant=self, wall=lambda: 1e9 + self.clock.now() + self.step_s,
        )  # fmt: skip
        self.gateway.start()

    def authenticate(self, question: Question, answer: Answer) -> None:
        answer(self.verdict)

    def account(self, record: Record) -> None:
        self.records.append((self.clock.now(), record))

    def online(self, number: int = 1) -> Subscriber:
        line, mac = Line(1, 100, number), bytes.fromhex("0200000001") + bytes((number,))
        account = Account("alice", "secret", ipv6=False)
        host = Subscriber(account, mac, self.clock, lambda frame: self.plane.from_line(line, frame), seed=number)
        self.plane.hosts[line, mac] = host.receive
        host.dial()
        while host.state != "up" and self.clock.now() < 10:
            self.clock.run(0.01)
        self.clock.run(0.01)
        return host

    def times(self, kind: Kind, accounting_id: str | None = None) -> list[float]:
        """Return the times at which accounting records of a kind were made, in seconds since the session's accounting Start."""
        ids = accounting_id or self.records[0][1].accounting_id
        start = next(at for at, each in self.records if each.accounting_id == ids)
        return [at - start for at, each in self.records if each.kind is kind and each.accounting_id == ids]

    @property
    def cause(self) -> Cause | None:
        return self.records[-1][1].cause


ECHOES = st.one_of(st.floats(0.1, 5), st.sampled_from([30.0, 31.7, 600.0, 86_400.0]))


@given(timeout=st.integers(1, 900), echo=ECHOES)
@settings(max_examples=30, deadline=None)
def test_a_session_ends_at_its_session_timeout(timeout: int, echo: float) -> None:
    world = World(echo, session_timeout_s=timeout)
    world.online()
    world.clock.run(timeout + 5)
    [ended] = world.times(Kind.STOP)
    assert timeout <= ended <= timeout + 0.2
    assert world.cause is Cause.SESSION_TIMEOUT
    assert world.records[-1][1].duration_s == timeout


@given(interval=st.integers(1, 300), rounds=st.integers(2, 40), echo=ECHOES)
@settings(max_examples=30, deadline=None)
def test_interim_records_come_at_multiples_of_their_interval(interval: int, rounds: int, echo: float) -> None:
    world = World(echo, interim_s=interval)
    world.online()
    world.clock.run(interval * rounds + 0.5)
    came = world.times(Kind.INTERIM)
    assert len(came) == rounds
    for number, at in enumerate(came, 1):
        assert interval * number - 0.001 <= at <= interval * number + 0.2
    durations = [each.duration_s for _, each in world.records if each.kind is Kind.INTERIM]
    assert durations == [interval * number for number in range(1, rounds + 1)]


@given(idle=st.integers(1, 200), echo=ECHOES, busy=st.lists(st.floats(0.01, 0.95), max_size=12))
@settings(max_examples=40, deadline=None)
def test_a_session_ends_when_it_was_idle_for_its_timeout_and_not_before(
    idle: int, echo: float, busy: list[float]
) -> None:
    """Check a session with packets before its idle timeout is over, and none afterwards."""
    world = World(echo, idle_timeout_s=idle)
    number = world.online().session
    last = world.clock.now()
    for at, part in enumerate(busy, 1):
        world.clock.run(part * idle)
        assert world.gateway.sessions
        world.plane.traffic[number] = Usage(at, 100 * at, at, 100 * at)
        last = world.clock.now()
    world.clock.run(idle + 5)
    at_s = next(at for at, each in world.records if each.kind is Kind.STOP)
    assert idle - 0.02 <= at_s - last <= idle + 1.2
    assert world.cause is Cause.IDLE_TIMEOUT
    assert world.records[-1][1].usage.packets_up == len(busy)


@given(
    timeout=st.integers(0, 500),
    idle=st.integers(0, 500),
    interval=st.integers(0, 90),
    echo=ECHOES,
    step=st.integers(1, 40),
)
@settings(max_examples=30, deadline=None)
def test_all_of_them_at_once(timeout: int, idle: int, interval: int, echo: float, step: int) -> None:
    """Check that the first timeout ends the session, and that records come at their times until then."""
    world = World(echo, session_timeout_s=timeout, idle_timeout_s=idle, interim_s=interval)
    world.online()
    world.clock.run(600)
    end = min([each for each in (timeout, idle) if each], default=None)
    stops = world.times(Kind.STOP)
    if end is None:
        assert not stops
    else:
        assert len(stops) == 1
        assert end - 0.02 <= stops[0] <= end + 0.2
    came = world.times(Kind.INTERIM)
    most = 600 if end is None else end
    assert len(came) in ({0} if not interval else {most // interval, (most - 1) // interval})
    assert not world.gateway.violations()


def test_sessions_that_are_due_together_have_their_usage_read_at_once() -> None:
    world = World(600.0, interim_s=60)
    asked: list[int] = []
    usage = world.plane.usage

    def counting(numbers: Any) -> dict[int, Usage]:
        numbers = list(numbers)
        asked.append(len(numbers))
        return usage(numbers)

    world.plane.usage = counting  # type: ignore[method-assign]
    for number in range(1, 21):
        world.online(number)
    world.clock.run(62)
    assert sum(asked) == 20
    assert len(asked) <= 10  # they came online within 0.7 s


def test_a_step_of_the_days_time_ends_nobody() -> None:
    world = World(session_timeout_s=1000, interim_s=100)
    world.online()
    world.clock.run(50)
    for step in (2 * 86_400.0, -2 * 86_400.0):
        world.step_s = step
        world.clock.run(30)
        assert world.gateway.sessions
    world.clock.run(1000)
    assert world.times(Kind.STOP)[0] == pytest.approx(1000, abs=0.2)
    assert [each.duration_s for _, each in world.records if each.kind is Kind.INTERIM] == list(range(100, 1000, 100))


def test_a_plane_that_does_not_answer_ends_nobody_for_idleness() -> None:
    world = World(idle_timeout_s=20)
    number = world.online().session

    def refuse(numbers: Any) -> dict[int, Usage]:
        raise HoldfastError("the data plane is away")

    usage, world.plane.usage = world.plane.usage, refuse  # type: ignore[method-assign]
    world.clock.run(60)
    assert world.gateway.sessions
    world.plane.traffic[number] = Usage(7, 700)
    world.plane.usage = usage  # type: ignore[method-assign]
    world.clock.run(19)
    assert world.gateway.sessions
    world.clock.run(4)
    assert world.cause is Cause.IDLE_TIMEOUT


def test_a_changed_timeout_counts_from_the_start() -> None:
    """Check timeouts that a CoA makes shorter, longer, and infinite."""
    for new, ends in ((100, 100), (900, 900), (0, None), (20, 40)):
        world = World(session_timeout_s=500)
        session = world.gateway.sessions[world.online().session]
        world.clock.run(40 - (world.clock.now() - session.began_s))
        grant = session.grant
        assert grant is not None
        session.grant = type(grant)(**{**vars(grant), "session_timeout_s": new})
        world.gateway.changed(session)
        world.clock.run(1000)
        stops = world.times(Kind.STOP)
        assert [round(each) for each in stops] == ([] if ends is None else [ends])


def test_ended_sessions_do_not_stay_in_the_list_of_times() -> None:
    world = World(session_timeout_s=86_400)
    for _ in range(300):
        host = world.online()
        host.hang_up()
        world.clock.run(0.1)
    assert len(world.gateway.upkeep._due) < 100
