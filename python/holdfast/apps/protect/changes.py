"""Writes to many switches that belong together: in phases, one batch per switch and phase, taken back if one is refused.

The order of phases is what keeps packets from meeting half of a change: entries that receive are there before those that send, and
those that send are gone before those that receive. The purpose of the writes is not known here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from typing import TypeAlias

from holdfast.control.desired import Entity
from holdfast.controller import ControlPlane
from holdfast.errors import HoldfastError
from holdfast.p4runtime.client import Client, Verb

log = logging.getLogger(__name__)

Write: TypeAlias = tuple[Verb, Entity]


class Phase(IntEnum):
    """When a write happens, relative to the others."""

    RECEIVE = 1
    """The egress' entries: connections, tunnels' addresses; cleared state at both ends."""
    ROUTE = 2
    """Host routes along the paths."""
    COPY = 3
    """The ingress' copies and groups that nothing uses yet."""
    SWITCH = 4
    """The entries that make packets take the new way."""
    STOP = 5
    """The entries that made packets take the old way go."""
    UNCOPY = 6
    """The ingress' copies and groups go."""
    UNROUTE = 7
    """Host routes go."""
    FORGET = 8
    """The egress' entries go."""


class Changes:
    """Writes to several switches that are collected first; :meth:`apply` performs them."""

    def __init__(self) -> None:
        self._writes: dict[tuple[Phase, str], list[tuple[Write, Write | None]]] = {}
        self._otherwise: list[Callable[[], None]] = []
        self._afterwards: list[Callable[[], None]] = []

    def add(self, phase: Phase, switch: str, write: Write, undo: Write | None = None) -> None:
        """Add a write to ``switch`` in ``phase``; ``undo`` is the write that reverses it, None if there is none."""
        self._writes.setdefault((phase, switch), []).append((write, undo))

    def insert(self, phase: Phase, switch: str, entity: Entity) -> None:
        """Add the insertion of an entity, which is deleted if the changes are undone."""
        self.add(phase, switch, ("insert", entity), ("delete", entity))

    def modify(self, phase: Phase, switch: str, entity: Entity, before: Entity) -> None:
        """Add the modification of an entity, which becomes ``before`` again if the changes are undone."""
        self.add(phase, switch, ("modify", entity), ("modify", before))

    def delete(self, phase: Phase, switch: str, entity: Entity) -> None:
        """Add the deletion of an entity. It is not undone: entities that are deleted last are not needed any more."""
        self.add(phase, switch, ("delete", entity))

    def set(self, phase: Phase, switch: str, cells: Iterable[Entity]) -> None:
        """Add writes of registers and other cells that packets change, too; they are not undone."""
        for cell in cells:
            self.add(phase, switch, ("modify", cell))

    def otherwise(self, call: Callable[[], None]) -> None:
        """Add a function ``call``, which is called if the writes are not made; the function that was added last is called first."""
        self._otherwise.append(call)

    def afterwards(self, call: Callable[[], None]) -> None:
        """Add a function ``call``, which is called when all writes are made."""
        self._afterwards.append(call)

    def abandon(self) -> None:
        """Drop all writes, and call the functions added with :meth:`otherwise`."""
        for call in reversed(self._otherwise):
            call()

    def __len__(self) -> int:
        return sum(map(len, self._writes.values()))

    def apply(self, clients: Mapping[str, Client], *, lenient: bool = False) -> None:
        """Make all writes in the order of phases, one batch per switch and phase.

        If a switch refuses a batch, undo the insertions and modifications of earlier batches (not deletions nor register writes),
        and raise its error. ``lenient`` is for deletions: a switch that refuses or does not answer keeps its entries, which a later
        controller finds, and the writes to other switches are made.
        """
        done: list[tuple[str, list[tuple[Write, Write | None]]]] = []
        order = {name: i for i, name in enumerate(clients)}
        for phase, switch in sorted(self._writes, key=lambda key: (key[0], order[key[1]])):
            writes = self._writes[phase, switch]
            try:
                with clients[switch].batch():
                    for (verb, entity), _ in writes:
                        entity.write(clients[switch], verb)
            except HoldfastError as error:
                if lenient:
                    log.warning("%s keeps what is not needed any more: %s", switch, error)
                    continue
                _take_back(clients, done)
                self.abandon()
                raise
            done.append((switch, writes))
        for call in self._afterwards:
            call()


class Transactions:
    """Changes that are applied one after the other. ``drain_ms``: for packets under way on entries that a change left."""

    def __init__(self, plane: ControlPlane, drain_ms: float) -> None:
        self._plane = plane
        self._drain_ms = drain_ms
        self._open: Changes | None = None

    @contextmanager
    def changes(self) -> Iterator[Changes]:
        """Yield an object that collects changes, which are written when the outermost ``with`` block ends.

        If a switch refuses a batch, earlier insertions and modifications are undone, and its error is raised
        (:meth:`Changes.apply`). If the block raises, nothing is written.
        """
        if self._open is not None:
            yield self._open
            return
        changes = self._open = Changes()
        try:
            yield changes
        except BaseException:
            changes.abandon()
            raise
        finally:
            self._open = None
        changes.apply(self._plane.clients)

    def when_drained(self, remove: Callable[[Changes], None]) -> None:
        """Call ``remove`` after ``drain_ms``, when packets on the way have arrived, and make the writes that it collects.

        ``remove`` is called with an empty :class:`Changes`. Switches that refuse keep their entries.
        """

        def run() -> None:
            changes = Changes()
            remove(changes)
            changes.apply(self._plane.clients, lenient=True)

        if self._drain_ms:
            self._plane.call_later(self._drain_ms, run)
        else:
            run()


def _take_back(clients: Mapping[str, Client], done: list[tuple[str, list[tuple[Write, Write | None]]]]) -> None:
    for switch, writes in reversed(done):
        try:
            with clients[switch].batch("continue_on_error"):
                for _, undo in reversed(writes):
                    if undo is not None:
                        verb, entity = undo
                        entity.write(clients[switch], verb)
        except HoldfastError:
            # The first error is the one to tell; a take-over finds what stays behind.
            continue
