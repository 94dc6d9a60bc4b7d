"""The membership of one port in one group: a router's filter mode and source timers, with the tables by which reports change them.

RFC 3376 (6.2 to 6.5, 7.3.2); RFC 3810 (7.2 to 7.5, 8.3.2) has the same for IPv6. It does not know who asks hosts, and when.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.control.membership.messages import Address, RecordKind

EXCLUDED = 0
"""In place of the time at which a source's timer expires: there is none, and the source is not wanted."""


@dataclass(frozen=True, slots=True)
class Filter:
    """The sources to forward from: these alone, or all but these. Without sources, ``INCLUDE`` is no membership."""

    excludes: bool = False
    sources: frozenset[Address] = frozenset()

    def __bool__(self) -> bool:
        """Whether anything is forwarded."""
        return self.excludes or bool(self.sources)

    def passes(self, source: Address) -> bool:
        """Whether packets of a source are forwarded."""
        return (source in self.sources) != self.excludes


NOTHING = Filter()
EVERYTHING = Filter(excludes=True)


@dataclass(slots=True)
class Asked:
    """The questions that a report makes the querier ask: for listeners of the group, and for those of sources."""

    group: bool = False
    sources: Iterable[Address] = ()


class GroupFilter:
    """The record of a group. A timer is the time at which it expires; in ``INCLUDE`` mode :attr:`group_due_ps` is None.

    ``sources`` are those with timers, and in ``EXCLUDE`` mode also those that are :data:`EXCLUDED`: X and Y in the RFC's tables.
    """

    __slots__ = ("group_due_ps", "older", "sources", "wanted")

    def __init__(self) -> None:
        self.group_due_ps: int | None = None
        self.sources: dict[Address, int] = {}
        self.older: dict[int, int] | None = None
        """By older version, until when a host that speaks it is present."""
        self.wanted = NOTHING
        """As of the last :meth:`expire`."""

    # ---- Versions ----

    def heard_version(self, version: int, until_ps: int) -> None:
        """A host of an older version is there."""
        self.older = {**(self.older or {}), version: until_ps}

    def version(self, latest: int, now_ps: int) -> int:
        """The group's compatibility mode: that of the oldest host."""
        if self.older is None:
            return latest
        return min((version for version, until_ps in self.older.items() if until_ps > now_ps), default=latest)

    # ---- Reports ----

    def report(self, kind: RecordKind, heard: Iterable[Address], now_ps: int, interval_ps: int) -> Asked:
        """Takes a record. ``interval_ps``: the Group Membership Interval, or Multicast Address Listening Interval."""
        fresh_ps, sources = now_ps + interval_ps, dict.fromkeys(heard)
        if kind in (RecordKind.MODE_IS_EXCLUDE, RecordKind.CHANGE_TO_EXCLUDE):
            return self._exclude(kind, sources, fresh_ps)
        if kind == RecordKind.BLOCK_OLD_SOURCES:
            return self._block(sources)
        asked = Asked()
        if kind == RecordKind.CHANGE_TO_INCLUDE:
            running = (source for source, due_ps in self.sources.items() if due_ps != EXCLUDED)
            asked = Asked(self.group_due_ps is not None, [source for source in running if source not in sources])
        for source in sources:
            self.sources[source] = fresh_ps
        return asked

    def _block(self, sources: dict[Address, None]) -> Asked:
        if self.group_due_ps is None:
            return Asked(sources=[source for source in sources if source in self.sources])
        for source in sources:
            self.sources.setdefault(source, self.group_due_ps)
        return Asked(sources=[source for source in sources if self.sources[source] != EXCLUDED])

    def _exclude(self, kind: RecordKind, sources: dict[Address, None], fresh_ps: int) -> Asked:
        changes = kind == RecordKind.CHANGE_TO_EXCLUDE
        new_ps = fresh_ps if self.group_due_ps is not None else EXCLUDED
        if changes and self.group_due_ps is not None:
            new_ps = self.group_due_ps
        self.sources = {source: self.sources.get(source, new_ps) for source in sources}
        self.group_due_ps = fresh_ps
        return Asked(sources=[source for source, due_ps in self.sources.items() if changes and due_ps != EXCLUDED])

    # ---- Timers ----

    def lower(self, due_ps: int, *, group: bool, sources: Iterable[Address]) -> None:
        """Somebody asked: a group or source that nobody answers for expires by then."""
        if group and self.group_due_ps is not None:
            self.group_due_ps = min(self.group_due_ps, due_ps)
        for source in sources:
            if self.sources.get(source, EXCLUDED) != EXCLUDED:
                self.sources[source] = min(self.sources[source], due_ps)

    def expire(self, now_ps: int) -> Filter:
        """Lets timers expire that are due, and gives what is wanted now. Without anything the record is to be deleted."""
        if self.group_due_ps is None:
            self._delete_sources(now_ps)
        elif self.group_due_ps <= now_ps:
            self.group_due_ps = None
            self._delete_sources(now_ps)
        else:
            for source, due_ps in self.sources.items():
                if due_ps <= now_ps:
                    self.sources[source] = EXCLUDED
        if self.group_due_ps is None:
            wanted = Filter(False, frozenset(self.sources)) if self.sources else NOTHING
        else:
            excluded = frozenset(source for source, due_ps in self.sources.items() if due_ps == EXCLUDED)
            wanted = Filter(True, excluded) if excluded else EVERYTHING
        if wanted != self.wanted:
            self.wanted = wanted
        return self.wanted

    def _delete_sources(self, now_ps: int) -> None:
        if any(due_ps <= now_ps for due_ps in self.sources.values()):
            self.sources = {source: due_ps for source, due_ps in self.sources.items() if due_ps > now_ps}

    def due_ps(self) -> int | None:
        """When the next timer expires."""
        times = [due_ps for due_ps in self.sources.values() if due_ps != EXCLUDED]
        if self.group_due_ps is not None:
            times.append(self.group_due_ps)
        return min(times, default=None)
