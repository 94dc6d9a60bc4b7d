"""Sessions on disk, and what a new control plane makes of them."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.errors import LiveError
from holdfast.subscribers.accounting import Kind, Record
from holdfast.subscribers.gateway import Gateway, Reconciled
from holdfast.subscribers.plane import Line, Usage
from holdfast.subscribers.store import SqliteStore
from holdfast.subscribers.subscriber import Account, Subscriber
from holdfast.subscribers.tests.worlds import MemoryPlane, VirtualClock, configuration, seeded
from holdfast.subscribers.users import UserList


class World:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = VirtualClock()
        self.plane = MemoryPlane(self.clock)
        self.records: list[Record] = []
        self.seed = 0
        self.start()

    def account(self, record: Record) -> None:
        self.records.append(record)

    def start(self) -> Reconciled:
        """Start a new process that has only the store and the data plane of the old one."""
        self.seed += 1
        self.store = SqliteStore(self.path)
        values = configuration()
        self.gateway = Gateway(
            values, self.plane, self.clock, UserList(values.users), random=seeded(self.seed), accountant=self,
            store=self.store, wall=self.clock.now,
        )  # fmt: skip
        found = self.gateway.reconcile()
        self.gateway.start()
        return found

    def kill(self) -> None:
        """End the process as kill -9 would: nothing is written any more, and its timers can no longer reach the plane."""
        self.gateway.receive = lambda line, frame: None  # type: ignore[method-assign]
        self.plane.handler = None
        old, self.plane = self.plane, MemoryPlane(self.clock)
        self.plane.table, self.plane.traffic, self.plane.hosts = dict(old.table), dict(old.traffic), old.hosts
        old.hosts = {}
        self.store.close()
        self.gateway.upkeep.stop()

    def subscriber(self, number: int, **account: object) -> Subscriber:
        line, mac = Line(1, 100, number), bytes.fromhex("0200000001") + bytes((number,))
        host = Subscriber(
            Account("alice", "secret", **account),  # type: ignore[arg-type]
            mac, self.clock, lambda frame: self.plane.from_line(line, frame), seed=number,
        )  # fmt: skip
        self.plane.hosts[line, mac] = host.receive
        return host


def test_sessions_survive_a_kill_with_all_their_state(tmp_path: Path) -> None:
    world = World(tmp_path / "state.db")
    hosts = [world.subscriber(number, redial_s=1.0, ipv6=number != 3) for number in range(1, 6)]
    for each in hosts:
        each.dial()
    world.clock.run(2)
    before = dict(world.plane.table)
    world.plane.traffic[hosts[0].session] = Usage(1, 2, 3, 4)
    world.kill()
    world.clock.run(5)
    writes = len(world.plane.writes)
    assert world.start() == Reconciled(5, 0, 0)
    assert world.plane.table == before
    assert len(world.plane.writes) == writes  # nothing was touched
    hosts[0].echo()
    hosts[1].renew()
    world.clock.run(100)
    assert [each.state for each in hosts] == ["up"] * 5
    assert all(each.counts.lost == 0 for each in hosts)
    assert hosts[0].counts.sent["echo replies"] == 1
    # Addresses of the kept are not given again.
    late = world.subscriber(9)
    late.dial()
    world.clock.run(1)
    assert late.state == "up"
    assert len({each.ipv4 for each in world.plane.table.values()}) == 6
    hosts[0].hang_up()
    world.clock.run(1)
    stop = world.records[-1]
    assert (stop.kind, stop.usage) == (Kind.STOP, Usage(1, 2, 3, 4))
    assert stop.duration_s > 100
    assert [each.accounting_id for each in world.records].count(stop.accounting_id) == 2  # its START, and no other


def test_what_only_the_store_has_is_installed_again(tmp_path: Path) -> None:
    world = World(tmp_path / "state.db")
    hosts = [world.subscriber(number) for number in (1, 2)]
    for each in hosts:
        each.dial()
    world.clock.run(2)
    before = dict(world.plane.table)
    world.kill()
    del world.plane.table[hosts[0].session]
    world.plane.table[hosts[1].session] = replace(world.plane.table[hosts[1].session], ipv4=None)
    assert world.start() == Reconciled(0, 2, 0)
    assert world.plane.table == before


def test_what_only_the_data_plane_has_is_removed_and_told(tmp_path: Path) -> None:
    world = World(tmp_path / "state.db")
    host = world.subscriber(1, redial_s=1.0)
    host.dial()
    world.clock.run(2)
    world.kill()
    (tmp_path / "state.db").unlink()
    for each in tmp_path.glob("state.db-*"):
        each.unlink()
    assert world.start() == Reconciled(0, 0, 1)
    world.clock.run(5)
    assert host.state == "up"
    assert host.counts.sessions == 2


def test_a_subscriber_of_a_forgotten_session_redials_at_once(tmp_path: Path) -> None:
    world = World(tmp_path / "state.db")
    host = world.subscriber(1, redial_s=0.5)
    host.dial()
    world.clock.run(2)
    world.kill()
    world.plane.table.clear()
    (tmp_path / "state.db").unlink()
    for each in tmp_path.glob("state.db-*"):
        each.unlink()
    world.start()
    host.echo()
    world.clock.run(3)
    assert host.state == "up"
    assert host.counts.sessions == 2


def test_a_store_of_another_version_or_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = SqliteStore(path)
    with pytest.raises(LiveError, match="locked"):
        SqliteStore(path)
    store.close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(LiveError, match="version 99"):
        SqliteStore(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(LiveError, match=r"state\.db"):
        SqliteStore(path)
