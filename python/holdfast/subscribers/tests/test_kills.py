"""A control plane that is killed between any two of its calls: each session has one Start and one Stop, and none comes alive again.

A kill leaves what the file system and the user plane have at that instant: nothing is closed, and nothing is written any more.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import HoldfastError, LiveError
from holdfast.subscribers.accounting import Cause, Kind, Record
from holdfast.subscribers.accounting_delivery import Delivery, MemoryQueue
from holdfast.subscribers.changes import BATCH_S
from holdfast.subscribers.configuration import Radius
from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.plane import Line, Session, Usage
from holdfast.subscribers.radius import RadiusClient
from holdfast.subscribers.store import SqliteStore
from holdfast.subscribers.subscriber import Account, Subscriber
from holdfast.subscribers.tests.radius_server import SECRET, decode, signed
from holdfast.subscribers.tests.test_store_faults import record, stored
from holdfast.subscribers.tests.worlds import MemoryPlane, VirtualClock, configuration, seeded
from holdfast.subscribers.users import UserList

WRITES = {"save", "put", "commit", "_install", "_remove", "_transmit"}
MAC = bytes.fromhex("02000000000a")


class KilledError(BaseException):
    """The process is dead: nothing catches this."""


class AwayError(HoldfastError):
    code = "UNAVAILABLE"


class Process:
    """One control plane. Each of its calls to the world is a boundary at which it may die; afterwards it does nothing."""

    def __init__(self, world: World) -> None:
        self.world, self.alive = world, True
        world.process, self.gateway = self, None  # type: ignore[assignment]
        self.call_later = lambda delay_s, action: world.clock.call_later(delay_s, lambda: self.alive and action())
        self.now = world.clock.now
        self.store = SqliteStore(world.path, later=self.call_later if world.later else None)
        for name in ("save", "put", "done", "commit"):
            setattr(self.store, name, self.boundary(getattr(self.store, name)))
        self.receive = lambda handler: setattr(world.plane, "handler", handler)
        self.usage, self.installed = world.plane.usage, world.plane.installed
        for name in ("install", "remove", "send"):
            setattr(self, name, self.boundary(getattr(self, f"_{name}")))
        settings = Radius.model_validate(
            {"servers": [{"host": "127.0.0.1", "secret": SECRET}], "nas_identifier": "bng-1", "dead_s": 1}
        )
        self.radius = RadiusClient(
            settings, self, self.boundary(self._transmit), random=seeded(world.births), wall=world.wall, queue=self.store
        )  # fmt: skip
        values = configuration(pools={"default": "100.64.0.0/24"})
        self.gateway = Gateway(
            values, self, self, UserList(values.users), random=seeded(world.births + 1000), accountant=self.radius,
            store=self.store, wall=world.wall,
        )  # type: ignore[arg-type] # fmt: skip

    def boundary(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def bounded(*args: Any) -> Any:
            if not self.alive:  # it is only unwinding
                raise KilledError
            if call == self._remove:
                args = ([*args[0]],)
                self.world.removing(args[0])
            self.world.at_boundary(call.__name__)
            found = call(*args)
            self.world.at_boundary(call.__name__)
            return found

        return bounded

    def _write(self, write: Callable[[], Any]) -> Any:
        fault = self.world.fault
        if fault == "refuse":
            raise HoldfastError("the table is full")
        if fault == "away":
            raise AwayError("no answer")
        found = write()
        if fault == "lost":
            raise AwayError("the answer is lost")
        return found

    def _install(self, sessions: Iterable[Session]) -> None:
        self._write(lambda: self.world.plane.install(sessions))

    def _remove(self, numbers: Iterable[int]) -> dict[int, Usage]:
        found: dict[int, Usage] = self._write(lambda: self.world.plane.remove(numbers))
        return found

    def _send(self, line: Line, frame: bytes) -> None:
        self.world.plane.send(line, frame)

    def _transmit(self, server: int, accounting: bool, channel: int, data: bytes) -> None:
        self.world.served(data)
        answer = signed(data, 5, [])
        self.call_later(0.001, lambda: self.radius.received(server, accounting, channel, answer))


class World:
    """The things that outlive control planes: time, the user plane, hosts, the state file, and the accounting server's memory."""

    def __init__(self, folder: Path, kills: Iterable[int], fault: str | None, later: bool) -> None:
        self.folder, self.kills, self.later = folder, list(kills), later
        self.story_fault, self.fault = fault, None
        self.path = folder / "0" / "state.db"
        self.path.parent.mkdir()
        self.clock = VirtualClock()
        self.plane = MemoryPlane(self.clock)
        self.hosts: dict[int, Subscriber] = {}
        self.heard: defaultdict[str, defaultdict[Kind, set[tuple[tuple[int, bytes], ...]]]]
        self.heard = defaultdict(lambda: defaultdict(set))
        self.numbers: dict[int, str] = {}
        self.seen: set[str] = set()
        self.left_s: dict[str, float] = {}
        """Accounting ids of sessions that this control plane had, and when it had them no more."""
        self.ended: set[str] = set()
        """Accounting ids of sessions whose end was decided, and that therefore never forward again in a new process."""
        self.used: set[str] = set()
        """Accounting ids of sessions that have used 100 bytes upwards and 200 downwards."""
        self.calls: list[str] = []
        self.births = 0
        self.begin()

    def wall(self) -> float:
        return 1_000_000 + self.clock.now()

    def begin(self) -> None:
        """Start a control plane, repeatedly if it is killed while it starts."""
        self.births += 1
        self.left_s = {}
        self.seen = set()
        try:
            self.process = Process(self)
            self.process.gateway.reconcile()
            self.process.gateway.start()
        except KilledError:
            self.begin()
            return
        if self.births > 1 and self.fault is None:
            self.check_no_ghosts()

    def at_boundary(self, name: str) -> None:
        gateway = self.process.gateway
        live = {} if gateway is None else {number: each.accounting_id for number, each in gateway.sessions.items()}
        for gone in self.seen - {*live.values()}:
            self.left_s.setdefault(gone, self.clock.now())
        self.seen |= {*live.values()}
        self.numbers |= live
        self.calls.append(name)
        if self.kills and len(self.calls) == self.kills[0]:
            self.kills.pop(0)
            self.calls.clear()
            self.kill()

    def removing(self, numbers: Iterable[int]) -> None:
        live = self.process.gateway.sessions
        for each in numbers:
            if each in self.numbers:
                accounting_id = live[each].accounting_id if each in live else self.numbers[each]
                self.ended.add(accounting_id)

    def kill(self) -> None:
        self.process.alive = False
        self.plane.handler = None
        self.ended |= {each for each, at_s in self.left_s.items() if self.clock.now() - at_s > 2 * BATCH_S}
        there = self.folder / str(self.births)
        there.mkdir()
        for each in self.path.parent.glob("state.db*"):
            shutil.copy(each, there)
        self.path = there / "state.db"
        raise KilledError

    def run(self, seconds: float) -> None:
        """Run for ``seconds``. A control plane that is killed is started again a tenth of a second later."""
        end = self.clock.now() + seconds
        while self.clock.now() < end - 1e-9:
            try:
                self.clock.run(end - self.clock.now())
            except KilledError:
                self.clock.run(0.1)
                self.begin()

    def do(self, action: Callable[[Gateway], object]) -> None:
        """Call ``action`` with the gateway, as an operator would; restart the process if it is killed meanwhile."""
        try:
            action(self.process.gateway)
        except KilledError:
            self.begin()

    def host(self, number: int) -> Subscriber:
        line, mac = Line(1, 100, number), b"\2\0\0\0\1" + bytes((number,))
        made = Subscriber(
            Account("alice", "secret", redial_s=1.5), mac, self.clock, lambda frame: self.plane.from_line(line, frame),
            seed=number,
        )  # fmt: skip
        self.plane.hosts[line, mac] = made.receive
        self.hosts[number] = made
        return made

    def served(self, data: bytes) -> None:
        """Record an accounting request without the attributes that differ between repetitions (delay and signature)."""
        attributes = decode(data)
        values = dict(attributes)
        kind = Kind(int.from_bytes(values[40], "big"))
        told = tuple(each for each in attributes if each[0] not in (41, 80))
        self.heard[values[44].decode()][kind].add(told)

    def has_begun(self, accounting_id: str) -> bool:
        waiting = {(each.accounting_id, each.kind) for _, each in self.process.store.after(0, 1000)}
        return bool(self.heard[accounting_id][Kind.START]) or (accounting_id, Kind.START) in waiting

    def check_no_ghosts(self) -> None:
        """Check, right after a new control plane has started, that the user plane has no session that ended or is unknown."""
        live = self.process.gateway.sessions
        assert self.process.gateway.violations() == []
        for number in self.plane.table:
            assert number in live, "something forwards that is no session"
            assert live[number].accounting_id not in self.ended, "something forwards that has ended"
            assert self.has_begun(live[number].accounting_id), "something forwards that is not accounted"

    def check_accounted(self) -> None:
        """Check, after all subscribers have left, that each accounting id has one Start and one Stop."""
        assert not self.plane.table and not self.process.store.load() and not len(self.process.store)
        for accounting_id, kinds in self.heard.items():
            counts = len(kinds[Kind.START]), len(kinds[Kind.STOP])
            assert counts == (1, 1), f"{accounting_id} has {counts[0]} Starts and {counts[1]} Stops"
            [stop] = map(dict, kinds[Kind.STOP])
            used = int.from_bytes(stop[42], "big"), int.from_bytes(stop[43], "big")
            whole = (100, 200) if accounting_id in self.used else (0, 0)
            # What a user plane has counted that does not answer, nobody knows.
            assert used == whole or (used == (0, 0) and self.story_fault in ("away", "lost")), "usage is lost"
        assert self.used <= self.heard.keys()


def story(world: World) -> None:
    """Run subscribers that dial, leave and are kicked in a fixed order, while the user plane fails for some time."""
    for number in (1, 2, 3):
        world.host(number).dial()
    world.run(0.7)
    live = world.process.gateway.sessions
    world.used = {each.accounting_id for number, each in live.items() if number in world.plane.table and each.counted}
    world.plane.traffic = {each: Usage(1, 100, 2, 200) for each in world.plane.traffic}
    world.fault = world.story_fault
    world.hosts[1].account = Account("alice", "secret")
    world.hosts[1].hang_up()
    world.do(lambda gateway: gateway.kick(list(gateway.sessions)[1:2]))
    world.host(4).dial()
    world.run(1.2)
    mac = world.hosts[3].mac
    world.plane.from_line(
        Line(1, 100, 3), MAC + mac + b"\x88\x63\x11\xa7" + world.hosts[3].session.to_bytes(2, "big") + bytes(2)
    )
    world.run(2.5)
    world.fault = None
    world.run(3)


def lives(folder: Path, kills: Iterable[int], fault: str | None, later: bool) -> list[str]:
    """Run the story with a kill at the given boundaries (calls of store, plane and network), each counted from the kill before.

    Return the names of the boundaries after the last kill.
    """
    folder.mkdir()
    world = World(folder, kills, fault, later)
    story(world)
    calls = [*world.calls]
    world.check_no_ghosts()
    for each in world.hosts.values():
        each.account = Account("alice", "secret")
        each.hang_up()
    world.run(3)
    world.do(lambda gateway: gateway.kick(list(gateway.sessions)))
    world.run(20)
    world.check_accounted()
    shutil.rmtree(folder)
    return calls


@pytest.mark.parametrize("later", [True, False], ids=["soon", "at once"])
@pytest.mark.parametrize("fault", [None, "refuse", "away", "lost"])
def test_whenever_it_is_killed_each_session_has_one_start_and_one_stop(
    fault: str | None, later: bool, tmp_path: Path
) -> None:
    """Kill the gateway at every write, and at some of the calls that send something."""
    calls = lives(tmp_path / "whole", [], fault, later)
    writes = {number for number, name in enumerate(calls, 1) if name in WRITES}
    assert {calls[each - 1] for each in writes} >= {"save", "put", "_install", "_remove"}
    for number in sorted(writes | {*range(1, len(calls) + 1, 7)}):
        try:
            lives(tmp_path / str(number), [number], fault, later)
        except AssertionError as error:
            error.add_note(f"killed at boundary {number} of {len(calls)}: {calls[number - 1]}")
            raise


@pytest.mark.parametrize("fault", [None, "refuse", "away", "lost"])
def test_a_new_control_plane_may_be_killed_too(fault: str | None, tmp_path: Path) -> None:
    calls = len(lives(tmp_path / "whole", [], fault, True))
    chance = random.Random(f"kills {fault}")
    for number in range(40):
        kills = [
            chance.randint(1, calls),
            chance.choice([*range(1, 12), chance.randint(12, 60)]),
            chance.randint(1, 12),
        ]
        try:
            lives(tmp_path / str(number), kills, fault, True)
        except AssertionError as error:
            error.add_note(f"killed at {kills}")
            raise


def test_an_end_is_kept_at_once_though_the_user_plane_is_asked_once_in_a_while(tmp_path: Path) -> None:
    world = World(tmp_path, [], None, True)
    for number in (1, 2):
        world.host(number).dial()
    world.run(1)
    world.fault = "away"
    for number in (1, 2):
        world.hosts[number].account = Account("alice", "secret")
        world.hosts[number].hang_up()
        world.run(0.01)
    assert len(world.plane.table) == 2
    with pytest.raises(KilledError):
        world.kill()
    world.fault = None
    world.begin()
    assert not world.process.gateway.sessions and not world.plane.table
    world.run(1)
    world.check_accounted()


def test_a_file_of_version_3_has_sessions_that_forward(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = SqliteStore(path)
    store.save([stored(7)], [])
    store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        [(text,)] = database.execute("SELECT state FROM session").fetchall()
        fields = json.loads(text)
        for each in ("accounted", "cause", "usage", "sum"):
            del fields[each]
        database.execute("UPDATE session SET state = ?", (json.dumps(fields),))
        database.execute("PRAGMA user_version = 3")
    store = SqliteStore(path)
    assert store.load() == [stored(7)]
    assert [each.goes_on for each in store.load()] == [True]
    ending = [
        replace(stored(7), cause=Cause.IDLE_TIMEOUT, usage=Usage(1, 2, 3, 4)),
        replace(stored(8), accounted=False),
    ]
    store.save(ending, [])
    assert store.load() == ending
    assert [each.goes_on for each in ending] == [False, False]
    store.close()


def test_records_are_sent_when_they_are_kept() -> None:
    clock, sent = VirtualClock(), list[Record]()
    delivery = Delivery(MemoryQueue(), clock, 1, lambda record, acknowledged, failed: sent.append(record))
    record = Record(Kind.ON, "1", b"", None, 0)
    with delivery.together():
        delivery.put(record)
        assert sent == []
    assert sent == [record]


@pytest.mark.parametrize("later", [True, False])
def test_what_is_put_together_is_written_together(later: bool, tmp_path: Path) -> None:
    """Check that the next transaction writes a context whose writes fail, and that a context left by an exception puts nothing."""
    full = [False]

    class Disk(SqliteStore):
        def _transact(self, *args: Any) -> None:
            if full[0]:
                raise sqlite3.OperationalError("database or disk is full")
            super()._transact(*args)
            shutil.copytree(tmp_path / "disk", tmp_path / f"{len([*tmp_path.iterdir()])}")

    (tmp_path / "disk").mkdir()
    clock = VirtualClock()
    store = Disk(tmp_path / "disk" / "state.db", later=clock.call_later if later else None, say=lambda text: None)
    store.save([stored(7)], [])
    with pytest.raises(KilledError), store.together():
        store.put(record(1))
        raise KilledError
    assert len(store) == 0
    full[0] = True
    with store.together():
        for number in range(2_000):
            store.put(record(number))
        with suppress(LiveError):
            store.save([], [7])
    full[0] = False
    clock.run(2)
    store.commit()
    assert (len(store), store.load()) == (2_000, [])
    store.close()
    for each in tmp_path.iterdir():  # at every moment
        found = SqliteStore(each / "state.db")
        assert (len(found), len(found.load())) in ((0, 1), (2_000, 0))
        found.close()
