"""The day's time is set while sessions last, and between processes: durations are those of a clock that nobody sets."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from holdfast.subscribers import durations
from holdfast.subscribers.accounting import Cause, Kind, Record
from holdfast.subscribers.accounting_delivery import MemoryQueue
from holdfast.subscribers.authentication import Question, Verdict
from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.keeping import Stored
from holdfast.subscribers.loop_clock import AsyncClock
from holdfast.subscribers.plane import Line
from holdfast.subscribers.radius import RadiusClient
from holdfast.subscribers.store import SqliteStore
from holdfast.subscribers.subscriber import Account, Subscriber
from holdfast.subscribers.tests.radius_server import SECRET, signed, values
from holdfast.subscribers.tests.worlds import MemoryPlane, VirtualClock, configuration, seeded

DAY_S = 86_400.0
STEPS_S = [-400 * DAY_S, -30 * DAY_S, -2 * DAY_S, -3600.0, -1.0, 1.0, 3600.0, 2 * DAY_S, 30 * DAY_S, 400 * DAY_S]


class Boot:
    """A clock that counts from the start of a machine on, and has a name as the machine's has."""

    def __init__(self, clock: VirtualClock, name: str, start_s: float) -> None:
        self._clock, self.epoch, self._start_s = clock, name, start_s

    def now(self) -> float:
        return self._clock.now() - self._start_s

    def call_later(self, delay_s: float, action: Callable[[], None]) -> Callable[[], None]:
        return self._clock.call_later(delay_s, action)


class Kept:
    """A store in memory."""

    def __init__(self) -> None:
        self.rows: dict[int, Stored] = {}

    def load(self) -> list[Stored]:
        return list(self.rows.values())

    def save(self, put: object, drop: object) -> None:
        self.rows.update({each.grant.session.session_id: each for each in put})  # type: ignore[attr-defined]
        for each in drop:  # type: ignore[attr-defined]
            self.rows.pop(each, None)


class World:
    """A gateway whose process, machine and day's time may change; subscribers with a Session-Timeout and interim accounting."""

    def __init__(self, timeout_s: int = 86_400, interim_s: int = 0, store: object | None = None) -> None:
        self.true = VirtualClock()
        self.step_s, self.boots = 1.7e9, 0
        self.plane = MemoryPlane(self.true)
        self.store = store or Kept()
        self.records: list[Record] = []
        self.verdict = Verdict(True, session_timeout_s=timeout_s, interim_s=interim_s)
        self.boot()

    def wall(self) -> float:
        return self.step_s + self.true.now()

    def boot(self) -> None:
        """Restart the machine, whose clock begins again, and with it the gateway."""
        self.boots += 1
        self.clock = Boot(self.true, f"boot-{self.boots}", self.true.now())
        self.restart()

    def restart(self) -> None:
        """Start a new gateway process, which restores the sessions of the old one."""
        if hasattr(self, "gateway"):
            self.gateway.upkeep.stop()
        self.gateway = Gateway(
            configuration(echo_interval_s=3600), self.plane, self.clock, self, random=seeded(1), accountant=self, store=self.store,  # type: ignore[arg-type]
            wall=self.wall,
        )  # fmt: skip
        self.gateway.reconcile()
        self.gateway.start()

    def account(self, record: Record) -> None:
        self.records.append(record)

    def authenticate(self, question: Question, answer: Callable[[Verdict], None]) -> None:
        answer(self.verdict)

    def dial(self, number: int = 1) -> None:
        line, mac = Line(1, 1, number), bytes.fromhex("0200000001") + bytes((number,))
        host = Subscriber(
            Account("alice", "secret"), mac, self.true, lambda frame: self.plane.from_line(line, frame), seed=number
        )
        self.plane.hosts[line, mac] = host.receive
        host.dial()
        self.true.run(0.1)


@pytest.mark.parametrize("step_s", STEPS_S)
@pytest.mark.parametrize("disk", [False, True])
def test_a_session_lasts_as_long_as_it_may_whatever_the_clock_says(step_s: float, disk: bool, tmp_path: Path) -> None:
    world = World(store=SqliteStore(tmp_path / "state.db") if disk else None)
    for number in range(1, 4):
        world.dial(number)
    began = world.true.now()
    world.true.run(3600)
    world.step_s += step_s
    world.true.run(3600)
    world.restart()
    assert len(world.gateway.sessions) == 3
    world.step_s += step_s
    world.restart()
    world.true.run(DAY_S - 7200 - 60)
    assert len(world.gateway.sessions) == 3
    world.true.run(120)
    assert not world.gateway.sessions
    stops = [each for each in world.records if each.kind is Kind.STOP]
    assert {each.cause for each in stops} == {Cause.SESSION_TIMEOUT}
    assert {each.duration_s for each in stops} <= {86_399, 86_400, 86_401}
    assert world.true.now() - began > DAY_S


@pytest.mark.parametrize("step_s", [each for each in STEPS_S if each < 0])
def test_after_a_start_of_the_machine_a_clock_set_back_takes_nothing_from_what_was_accounted(step_s: float) -> None:
    world = World()
    world.dial()
    world.true.run(3600)
    [session] = world.gateway.sessions.values()
    world.gateway.changed(session)
    world.true.run(1)
    world.step_s += step_s
    world.boot()
    world.true.run(10)
    [session] = world.gateway.sessions.values()
    assert world.clock.now() - session.began_s >= 3600
    world.gateway.kick([session.id])
    world.true.run(1)
    assert 3610 <= world.records[-1].duration_s <= 3620


def test_after_a_start_of_the_machine_the_day_s_time_counts() -> None:
    world = World()
    world.dial()
    world.true.run(3600)
    world.boot()
    world.true.run(7200)
    world.boot()
    world.gateway.kick(list(world.gateway.sessions))
    world.true.run(1)
    assert 10_799 <= world.records[-1].duration_s <= 10_802


@pytest.mark.parametrize("step_s", STEPS_S)
def test_a_record_that_waits_has_the_age_of_its_event(step_s: float) -> None:
    """Check that Acct-Delay-Time (RFC 2866, section 5.2) is a duration that no step of the clock changes."""
    world = World()
    queue, sent = MemoryQueue(), list[bytes]()
    settings_ = configuration(
        users={}, radius={"servers": [{"host": "127.0.0.1", "secret": SECRET}], "timeout_s": 1}
    ).radius
    assert settings_ is not None
    alive = False

    def transmit(server: int, accounting: bool, channel: int, data: bytes) -> None:
        sent.append(data)
        if alive:
            answer = signed(data, 5, [])
            world.true.call_later(0.001, lambda: client.received(server, accounting, channel, answer))

    client = RadiusClient(settings_, world.clock, transmit, random=seeded(1), wall=world.wall, queue=queue)
    world.dial()
    client.account(world.records[0])
    world.true.run(1000)
    world.step_s += step_s
    alive = True
    world.true.run(100)
    assert not len(queue)
    assert 990 <= int.from_bytes(values(sent[-1], 41)[0], "big") <= 1101


def test_the_machines_clock_has_the_name_of_its_start() -> None:
    import asyncio

    async def names() -> tuple[str, str]:
        loop = asyncio.get_running_loop()
        return AsyncClock(loop).epoch, durations.epoch(AsyncClock(loop))

    first, second = asyncio.run(names())
    assert first == second == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class Machine(RuleBasedStateMachine):
    """Time passes, the clock is set, processes and machines start: what is accounted of a session never goes back."""

    @initialize(interim_s=st.sampled_from([60, 600]))
    def begin(self, interim_s: int) -> None:
        self.world = World(timeout_s=20_000, interim_s=interim_s)
        self.world.dial()
        self.began_s = self.world.true.now()

    @rule(seconds=st.sampled_from([0.5, 59.0, 61.0, 700.0, 3000.0]))
    def wait(self, seconds: float) -> None:
        self.world.true.run(seconds)

    @rule(step_s=st.sampled_from(STEPS_S))
    def set_the_clock(self, step_s: float) -> None:
        self.world.step_s += step_s

    @rule()
    def restart(self) -> None:
        self.world.restart()

    @invariant()
    def durations_are_true(self) -> None:
        if not hasattr(self, "world"):
            return
        true_s = self.world.true.now() - self.began_s
        assert bool(self.world.gateway.sessions) == (true_s < 20_001) or 19_990 < true_s < 20_010
        lasted = [each.duration_s for each in self.world.records]
        assert all(earlier <= later for earlier, later in pairwise(lasted))
        assert not lasted or lasted[-1] <= true_s + 1


TestClockSteps = Machine.TestCase
TestClockSteps.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
