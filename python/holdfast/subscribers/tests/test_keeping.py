"""A store that fails refuses who comes, ends nobody who is there, and forgets nothing: at whatever call it fails."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from holdfast import interpreter
from holdfast.errors import LiveError
from holdfast.subscribers.accounting import Kind, Record
from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.keeping import Stored
from holdfast.subscribers.plane import Line, Rates
from holdfast.subscribers.subscriber import Account, Subscriber
from holdfast.subscribers.tests.worlds import MemoryPlane, VirtualClock, configuration, seeded
from holdfast.subscribers.users import UserList

ERRORS: dict[str, Callable[[], Exception]] = {
    "full": lambda: sqlite3.OperationalError("database or disk is full"),
    "input": lambda: OSError(5, "Input/output error"),
    "locked": lambda: LiveError("state.db: database is locked"),
}


class MemoryStore:
    """A store that outlives gateways. ``fails`` says of each call what happens: nothing, or an error before or after it."""

    def __init__(self) -> None:
        self.rows: dict[int, Stored] = {}
        self.calls = 0
        self.fails: Callable[[int], str | None] = lambda call: None
        self.error = ERRORS["full"]
        self.poison: Callable[[Stored], bool] = lambda each: False

    def load(self) -> list[Stored]:
        return list(self.rows.values())

    def save(self, put: Iterable[Stored], drop: Iterable[int]) -> None:
        put, drop = list(put), list(drop)
        how = self.fails(self.calls)
        self.calls += 1
        if how == "before" or any(map(self.poison, put)):
            raise self.error()
        for each in drop:
            self.rows.pop(each, None)
        self.rows |= {each.grant.session.session_id: each for each in put}
        if how == "after":  # the disk has it, and nobody knows
            raise self.error()


class World:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.store = MemoryStore()
        self.plane = MemoryPlane(self.clock)
        self.records: list[Record] = []
        self.hosts: dict[int, Subscriber] = {}
        self.seed = 0
        self.start()
        self.empty = self.gateway.pool_use()
        """The use of pools when there is nobody: the gateway's own addresses."""

    def start(self) -> None:
        self.seed += 1
        settings = configuration(pools={"default": "100.64.0.0/24"})
        self.gateway = Gateway(
            settings, self.plane, self.clock, UserList(settings.users), random=seeded(self.seed), accountant=self,
            store=self.store, wall=self.clock.now,
        )  # fmt: skip
        self.gateway.reconcile()
        self.gateway.start()

    def kill(self) -> None:
        """End the gateway as kill -9 would: it writes nothing any more, and the user plane goes on forwarding."""
        self.gateway.receive = lambda line, frame: None  # type: ignore[method-assign]
        self.gateway.upkeep.stop()
        old, self.plane = self.plane, MemoryPlane(self.clock)
        old.handler = None
        self.plane.table, self.plane.traffic, self.plane.hosts = dict(old.table), dict(old.traffic), old.hosts
        old.hosts = {}
        old.failing = True
        # Nor by its timers, which are still in the clock.
        self.store, dead = MemoryStore(), self.store
        self.store.rows = dict(dead.rows)
        dead.fails = lambda call: "before"
        self.account = lambda record: None  # type: ignore[method-assign]
        del self.account

    def account(self, record: Record) -> None:
        self.records.append(record)

    def host(self, number: int, **account: object) -> Subscriber:
        line, mac = Line(1, 100, number), bytes.fromhex("0200000001") + bytes((number,))
        made = Account("alice", "secret", **account)  # type: ignore[arg-type]
        host = Subscriber(made, mac, self.clock, lambda frame: self.plane.from_line(line, frame), seed=number)
        self.plane.hosts[line, mac] = host.receive
        self.hosts[number] = host
        return host

    def open(self) -> set[str]:
        """Return the accounting ids of sessions that have a Start record and no Stop record."""
        begun: list[str] = []
        for each in self.records:
            if each.kind is Kind.START:
                assert each.accounting_id not in begun, "it begins twice"
                begun.append(each.accounting_id)
            elif each.kind is Kind.STOP:
                assert each.accounting_id in begun, "it ends without a beginning, or twice"
                begun.remove(each.accounting_id)
        return set(begun)

    def check(self) -> None:
        """Check that each forwarding session is accounted and stored, or about to be, and the gateway's records are consistent."""
        assert self.gateway.violations() == []
        accounted = {each.id for each in self.gateway.sessions.values() if each.accounting_id in self.open()}
        forwarding, waiting = self.plane.table.keys(), self.gateway._changes.waiting
        assert forwarding - accounted <= waiting, "something forwards that is not accounted"
        assert forwarding - self.store.rows.keys() <= waiting, "something forwards that is not kept"

    def run(self, seconds: float, step: float = 0.05) -> None:
        end = self.clock.now() + seconds
        while self.clock.now() < end - 1e-9:
            self.clock.run(min(step, end - self.clock.now()))
            self.check()

    def check_healed(self) -> None:
        """Check, after the disk works again, that disk, user plane, accounting and gateway have the same sessions."""
        live = self.gateway.sessions
        assert self.plane.table.keys() == live.keys() == self.store.rows.keys()
        assert {number: each.wanted for number, each in live.items()} == self.plane.table
        assert {each.accounting_id for each in live.values()} == self.open()
        use = self.gateway.pool_use() - self.empty
        assert use["default"] == use["session-ids"] == len(live)

    def check_left(self) -> None:
        """Check that nothing is left in plane, store, accounting and pools after all subscribers have hung up."""
        for each in self.hosts.values():
            each.hang_up()
        self.run(3)
        assert not self.gateway.sessions and not self.plane.table and not self.store.rows and not self.open()
        assert self.gateway.pool_use() == self.empty


def story(world: World) -> None:
    """Run subscribers that dial, hang up and dial again, and change the rates of one, always in the same order."""
    for number in range(1, 5):
        world.host(number, redial_s=0.5, ipv6=number != 3).dial()
    world.run(1.5)
    world.hosts[1].hang_up()
    world.run(0.3)
    for each in list(world.gateway.sessions.values())[:1]:
        world.gateway.change_rates(each, Rates(1_000_000, 2_000_000))
    world.run(0.3)
    world.host(5, redial_s=0.5).dial()
    world.hosts[2].hang_up()
    world.run(1)


def calls_of_the_story() -> int:
    world = World()
    story(world)
    world.check_healed()
    return world.store.calls


@pytest.mark.parametrize("how", ["before", "after"])
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("length", [1, 4, 40])
def test_whichever_call_fails_the_books_are_right(how: str, error: str, length: int) -> None:
    """Make each call of a story in turn the first that fails; the disk takes writes again after ``length`` calls."""
    calls = calls_of_the_story()
    assert calls >= 6
    for first in range(calls):
        world = World()
        world.store.error = ERRORS[error]
        world.store.fails = lambda call, first=first: how if first <= call < first + length else None  # type: ignore[misc]
        story(world)
        world.store.fails = lambda call: None
        world.run(5)
        world.check_healed()
        assert {number for number, host in world.hosts.items() if host.state == "up"} == {3, 4, 5}
        assert world.gateway.events["store-failures"] > 0
        world.check_left()


@pytest.mark.parametrize("how", ["before", "after"])
def test_after_a_kill_while_the_disk_fails_nothing_is_lost_for_good(how: str) -> None:
    """Check that the next process restores what the disk had, and finds by unanswered echoes which subscribers have left."""
    for first in range(0, calls_of_the_story(), 2):
        world = World()
        world.store.fails = lambda call, first=first: how if first <= call else None  # type: ignore[misc]
        story(world)
        world.kill()
        world.start()
        for _ in range(200):
            world.clock.run(1.0)
            assert world.gateway.violations() == []
        assert world.plane.table.keys() == world.gateway.sessions.keys() == world.store.rows.keys()
        assert {number for number, host in world.hosts.items() if host.state == "up"} >= {3, 4}
        up = sum(host.state == "up" for host in world.hosts.values())
        assert len(world.gateway.sessions) == up  # no ghosts
        assert (world.gateway.pool_use() - world.empty)["default"] == up


def test_who_is_there_stays_and_who_comes_is_refused_while_the_disk_is_full() -> None:
    world = World()
    for number in range(1, 21):
        world.host(number, redial_s=1.0).dial()
    world.run(2)
    world.store.fails = lambda call: "before"
    before = dict(world.plane.table)
    for number in range(21, 51):
        world.host(number, redial_s=1.0).dial()
    world.run(30, step=0.5)
    # 30 of 30 would have forwarded uncounted, and the first 20 are as they were.
    assert world.plane.table == before
    assert len(world.open()) == 20
    assert sum(host.state == "up" for host in world.hosts.values()) == 20
    assert world.gateway.events["unkept"] >= 30
    # Six leave: they are accounted at once, and their addresses are free though the disk does not know.
    for number in range(1, 7):
        world.hosts[number].hang_up()
    world.run(3)
    assert len(world.open()) == 14
    assert len(world.plane.table) == 14
    world.store.fails = lambda call: None
    world.run(5)
    world.check_healed()
    assert sum(host.state == "up" for host in world.hosts.values()) == 44
    world.check_left()


def test_one_session_that_cannot_be_kept_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.store.poison = lambda each: each.grant.session.line.c_tag == 7
    for number in range(1, 15):
        world.host(number).dial()
    world.run(2)
    assert {number for number, host in world.hosts.items() if host.state == "up"} == set(range(1, 15)) - {7}
    world.check_healed()
    assert any("cannot be kept" in each.message for each in caplog.records)


def test_a_change_that_cannot_be_kept_is_refused_and_nothing_changes() -> None:
    world = World()
    world.host(1).dial()
    world.run(2)
    [session] = world.gateway.sessions.values()
    before = session.wanted
    world.store.fails = lambda call: "before"
    told: list[str | None] = []
    world.gateway.change_rates(session, Rates(1_000_000, 2_000_000), told.append)
    world.run(1)
    assert told == ["database or disk is full"]
    assert session.wanted == before
    assert list(world.plane.table.values()) == [before]
    world.store.fails = lambda call: None
    world.run(2)
    world.gateway.change_rates(session, Rates(1_000_000, 2_000_000), told.append)
    world.run(1)
    assert told[1:] == [None]
    world.check_healed()


def test_a_store_that_cannot_be_read_is_a_message(tmp_path: Path) -> None:
    world = World()

    def load() -> list[Stored]:
        raise sqlite3.DatabaseError("database disk image is malformed")

    world.store.load = load  # type: ignore[method-assign]
    with pytest.raises(LiveError, match="cannot be read"):
        world.start()


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="a file system is mounted as root only"
)
def test_on_a_disk_that_is_really_full(tmp_path: Path) -> None:
    """Fill a file system of 400 KB, as :mod:`full_disk` describes."""
    command = interpreter.module("holdfast.subscribers.tests.full_disk", str(tmp_path))
    script = f'mount -t tmpfs -o size=400k none {tmp_path} && exec "$@"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", *command], capture_output=True, text=True, check=False, timeout=300
    )
    if "permission denied" in done.stderr.lower() or "not permitted" in done.stderr.lower():
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["online before"] == told["online while full"] == 30
    assert told["refused while full"] > 0
    assert told["forwarding uncounted"] == 0
    assert told["online afterwards"] == told["kept afterwards"] == 50
    assert told["records lost"] == 0
    assert told["left behind"] == 0
