"""Fills the disk under a gateway's state file, and says what becomes of its sessions.

``python -P -m holdfast.subscribers.tests.full_disk DIRECTORY`` prints JSON. The directory should be a small file system of its own.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

from holdfast.subscribers.accounting import Kind, Record
from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.plane import Line
from holdfast.subscribers.store import SqliteStore
from holdfast.subscribers.subscriber import Account, Subscriber
from holdfast.subscribers.tests.worlds import MemoryPlane, VirtualClock, configuration, seeded
from holdfast.subscribers.users import UserList


class World:
    """A gateway whose accounting goes into its state file and stays there, as with a RADIUS server that is away."""

    def __init__(self, path: Path) -> None:
        self.clock = VirtualClock()
        self.plane = MemoryPlane(self.clock)
        self.store = SqliteStore(path, later=self.clock.call_later, say=lambda text: None)
        self.records: list[Record] = []
        self.hosts: list[Subscriber] = []
        settings = configuration()
        self.gateway = Gateway(
            settings, self.plane, self.clock, UserList(settings.users), random=seeded(1), accountant=self,
            store=self.store, wall=self.clock.now,
        )  # fmt: skip
        self.gateway.start()

    def account(self, record: Record) -> None:
        """Put the accounting record into the state file, where it stays, as no server acknowledges it."""
        self.records.append(record)
        self.store.put(record)

    def dial(self, number: int) -> None:
        """Add ``number`` subscribers, which dial at once."""
        for _ in range(number):
            line, mac = Line(1, 100, len(self.hosts) + 1), b"\2\0\0\0\1" + bytes((len(self.hosts),))
            host = Subscriber(
                Account("alice", "secret", redial_s=1.0),
                mac,
                self.clock,
                lambda frame, line=line: self.plane.from_line(line, frame),  # type: ignore[misc]
                seed=len(self.hosts),
            )
            self.plane.hosts[line, mac] = host.receive
            self.hosts.append(host)
            host.dial()

    def online(self) -> int:
        """Return the number of subscribers whose session is up."""
        assert not self.gateway.violations(), self.gateway.violations()
        return sum(host.state == "up" for host in self.hosts)

    def uncounted(self) -> int:
        """Return the number of forwarding sessions without an accounting record START."""
        kinds = {(each.session.session_id, each.kind) for each in self.records if each.session is not None}
        begun = {number for number, kind in kinds if kind is Kind.START}
        return len(self.plane.table.keys() - begun)


def main() -> None:
    """Run subscribers while the disk has room, is full and has room again; print how many sessions are online in each phase."""
    logging.disable()
    folder = Path(sys.argv[1])
    world = World(folder / "state.db")
    told: dict[str, int] = {}
    world.dial(30)
    world.clock.run(5)
    told["online before"] = world.online()
    with (folder / "ballast").open("wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(bytes(1024))
        except OSError:
            pass
    world.dial(20)
    world.clock.run(20)
    told["online while full"] = world.online()
    told["refused while full"] = world.gateway.events["unkept"]
    told["forwarding uncounted"] = world.uncounted()
    (folder / "ballast").unlink()
    world.clock.run(10)
    told["online afterwards"] = world.online()
    told["kept afterwards"] = len(world.store.load())
    world.gateway.stop()
    world.store.close()
    store = SqliteStore(folder / "state.db")
    written = [each for _, each in store.after(0, 1_000_000)]
    told["records lost"] = len(world.records) - len(written)
    told["left behind"] = len(store.load()) - len(world.plane.table)
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
