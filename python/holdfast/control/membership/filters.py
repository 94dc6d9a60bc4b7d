"""The membership of one port in one group: a router's filter mode and source timers, with the tables by which reports change them.

RFC 3376 (6.2 to 6.5, 7.3.2); RFC 3810 (7.2 to 7.5, 8.3.2) has the same for IPv6. It does not know who asks hosts, and when.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.control.membership.messages import Address, RecordKind

EXCLUDED = 0
"""Stands for the expiry time of a source that is excluded, and whose timer therefore does not run."""

NEVER_PS = 1 << 100
"""The expiry time of a timer that does not run."""


@dataclass(frozen=True, slots=True)
class Filter:
    """The sources to forward from: these alone, or all but these. Without sources, ``INCLUDE`` is no membership."""

    excludes: bool = False
    sources: frozenset[Address] = frozenset()

    def __bool__(self) -> bool:
        """Return True if the filter passes packets of any source."""
        return self.excludes or bool(self.sources)

    def passes(self, source: Address) -> bool:
        """Return True if the filter passes packets of this source."""
        return (source in self.sources) != self.excludes


NOTHING = Filter()
EVERYTHING = Filter(excludes=True)


@dataclass(frozen=True, slots=True)
class FilterChange:
    """A change of a port's filter of a group, as what changes: its size does not depend on the filter's.

    ``excluded``, ``excludes``: the mode before and now. In an unchanged mode, ``removed`` are sources that the filter does not name
    any more, and ``added`` those that it names now. If the mode changes, they are all sources named before, and all named now.
    """

    group: Address
    excluded: bool
    excludes: bool
    removed: Sequence[Address] = ()
    added: Sequence[Address] = ()

    @classmethod
    def between(cls, group: Address, before: Filter, after: Filter) -> FilterChange:
        """Return the change that turns the filter ``before`` of a group into ``after``."""
        if before.excludes != after.excludes:
            return cls(group, before.excludes, after.excludes, tuple(before.sources), tuple(after.sources))
        removed, added = before.sources - after.sources, after.sources - before.sources
        return cls(group, before.excludes, after.excludes, tuple(removed), tuple(added))

    def applied(self, before: Filter) -> Filter:
        """Return the filter that results from this change of ``before``.

        Raises :class:`ValueError` if the change does not fit ``before``.
        """
        removed, added = frozenset(self.removed), frozenset(self.added)
        turned = self.excluded != self.excludes
        if before.excludes != self.excluded or not removed <= before.sources or (turned and removed != before.sources):
            raise ValueError(f"{self} is no change of {before}")
        return Filter(self.excludes, before.sources - removed | added)

    @property
    def is_none(self) -> bool:
        """True if the change leaves the filter as it is."""
        return self.excluded == self.excludes and not self.removed and not self.added


@dataclass(slots=True)
class Asked:
    """The questions that a report makes the querier ask: for listeners of the group, and for those of sources."""

    group: bool = False
    sources: Iterable[Address] = ()


class GroupFilter:
    """The record of a group. A timer is the time at which it expires; in ``INCLUDE`` mode :attr:`group_due_ps` is None.

    ``sources`` are those with timers, and in ``EXCLUDE`` mode also those that are :data:`EXCLUDED`: X and Y in the RFC's tables.
    A report costs what it names or removes. When a timer is due, all timers of the group are looked at.
    """

    __slots__ = ("_named", "counted", "earliest_ps", "group", "group_due_ps", "older", "reporter", "several", "sources")

    def __init__(self, group: Address) -> None:
        self.group = group
        self.group_due_ps: int | None = None
        self.sources: dict[Address, int] = {}
        self.older: dict[int, int] | None = None
        """By older version, until when a host that speaks it is present."""
        self.reporter: Address | None = None
        """The host that reported the group last; the only one that has, unless :attr:`several` is set."""
        self.several = False
        """True if several hosts have reported the group, or one without an address."""
        self.earliest_ps = NEVER_PS
        """No timer expires before."""
        self.counted = (0, 0)
        """:attr:`size` and :attr:`hidden` as the querier has counted them."""
        self._named = 0

    # ---- State ----

    @property
    def wanted(self) -> Filter:
        """The filter, as of the last report or :meth:`expire`."""
        if self.group_due_ps is None:
            return Filter(False, frozenset(self.sources)) if self.sources else NOTHING
        excluded = frozenset(source for source, due_ps in self.sources.items() if due_ps == EXCLUDED)
        return Filter(True, excluded) if excluded else EVERYTHING

    @property
    def size(self) -> int:
        """The number of channels for the record: its sources, and (*,G) in ``EXCLUDE`` mode. At 0, the record is to be deleted."""
        return len(self.sources) + (self.group_due_ps is not None)

    @property
    def hidden(self) -> int:
        """The number of sources that are not channels now, but may become channels when a timer expires."""
        return len(self.sources) - self._named

    def after(self, kind: RecordKind, heard: Iterable[Address]) -> tuple[int, int]:
        """Return :attr:`size` as it would be after a record if no timer expired, and the number of channels that would be new."""
        if kind in (RecordKind.MODE_IS_EXCLUDE, RecordKind.CHANGE_TO_EXCLUDE):
            sources = set(heard)
            new = sum(source not in self.sources for source in sources)
            return len(sources) + 1, new + (not self.excludes)
        if kind == RecordKind.BLOCK_OLD_SOURCES and not self.excludes:
            return self.size, 0
        new = len({source for source in heard if source not in self.sources})
        return self.size + new, new

    def heard_from(self, host: Address) -> None:
        """Record the host that reported the group. A report without a source address may come from any host (RFC 3376, 4.2.13)."""
        if int(host) == 0 or self.reporter not in (None, host):
            self.several = True
        self.reporter = host

    def is_alone(self, host: Address) -> bool:
        """Return True if no other host than ``host`` has reported the group."""
        return not self.several and self.reporter in (None, host)

    def adopt(self, wanted: Filter, fresh_ps: int) -> None:
        """Set the filter to that of an earlier router, with timers that end at ``fresh_ps``, as if hosts had just reported it."""
        self.group_due_ps = fresh_ps if wanted.excludes else None
        self.sources = dict.fromkeys(wanted.sources, EXCLUDED if wanted.excludes else fresh_ps)
        self.earliest_ps = fresh_ps
        self._named = len(self.sources)

    # ---- Versions ----

    def heard_version(self, version: int, until_ps: int) -> None:
        """Record that a host of an older protocol version is present until the time ``until_ps``."""
        self.older = {**(self.older or {}), version: until_ps}

    def version(self, latest: int, now_ps: int) -> int:
        """Return the group's compatibility mode: the version of the oldest host present."""
        if self.older is None:
            return latest
        return min((version for version, until_ps in self.older.items() if until_ps > now_ps), default=latest)

    # ---- Reports ----

    def report(
        self, kind: RecordKind, heard: Iterable[Address], now_ps: int, interval_ps: int
    ) -> tuple[FilterChange, Asked]:
        """Apply a report's record; return the change of the filter and the questions that a querier has to send.

        ``interval_ps``: the Group Membership Interval, or Multicast Address Listening Interval, in picoseconds.
        """
        fresh_ps, sources = now_ps + interval_ps, dict.fromkeys(heard)
        self.earliest_ps = min(self.earliest_ps, fresh_ps)
        if kind in (RecordKind.MODE_IS_EXCLUDE, RecordKind.CHANGE_TO_EXCLUDE):
            return self._exclude(kind, sources, fresh_ps)
        if kind == RecordKind.BLOCK_OLD_SOURCES:
            return self._changed(self.excludes), self._block(sources)
        asked = Asked()
        if kind == RecordKind.CHANGE_TO_INCLUDE:
            running = (source for source, due_ps in self.sources.items() if due_ps != EXCLUDED)
            asked = Asked(self.excludes, [source for source in running if source not in sources])
        removed = [source for source in sources if self.sources.get(source) == EXCLUDED]
        added = [source for source in sources if source not in self.sources] if not self.excludes else []
        self.sources.update(dict.fromkeys(sources, fresh_ps))
        return self._changed(self.excludes, removed, added), asked

    @property
    def excludes(self) -> bool:
        """True if the mode is ``EXCLUDE``."""
        return self.group_due_ps is not None

    def _block(self, sources: dict[Address, None]) -> Asked:
        if self.group_due_ps is None:
            return Asked(sources=[source for source in sources if source in self.sources])
        self.earliest_ps = min(self.earliest_ps, self.group_due_ps)
        for source in sources:
            self.sources.setdefault(source, self.group_due_ps)
        return Asked(sources=[source for source in sources if self.sources[source] != EXCLUDED])

    def _exclude(self, kind: RecordKind, sources: dict[Address, None], fresh_ps: int) -> tuple[FilterChange, Asked]:
        changes = kind == RecordKind.CHANGE_TO_EXCLUDE
        excluded, before = self.excludes, self.sources
        new_ps = fresh_ps if excluded else EXCLUDED
        if changes and self.group_due_ps is not None:
            new_ps = self.group_due_ps
            self.earliest_ps = min(self.earliest_ps, new_ps)
        self.sources = {source: before.get(source, new_ps) for source in sources}
        self.group_due_ps = fresh_ps
        asked = Asked(sources=[it for it, due_ps in self.sources.items() if changes and due_ps != EXCLUDED])
        if not excluded:
            added = [source for source, due_ps in self.sources.items() if due_ps == EXCLUDED]
            return self._changed(False, list(before), added), asked
        removed = [source for source, due_ps in before.items() if due_ps == EXCLUDED and source not in sources]
        return self._changed(True, removed), asked

    def _changed(self, excluded: bool, removed: Sequence[Address] = (), added: Sequence[Address] = ()) -> FilterChange:
        """Return the change from the mode ``excluded`` to the present one; update the number of sources that the filter names."""
        turned = excluded != self.excludes
        self._named = len(added) if turned else self._named + len(added) - len(removed)
        return FilterChange(self.group, excluded, self.excludes, removed, added)

    # ---- Timers ----

    def lower(self, due_ps: int, *, group: bool, sources: Iterable[Address]) -> None:
        """Set the timers of ``sources`` and, with ``group``, of the group to end by ``due_ps``, as a query asks.

        Timers that end earlier stay as they are.
        """
        self.earliest_ps = min(self.earliest_ps, due_ps)
        if group and self.group_due_ps is not None:
            self.group_due_ps = min(self.group_due_ps, due_ps)
        for source in sources:
            if self.sources.get(source, EXCLUDED) != EXCLUDED:
                self.sources[source] = min(self.sources[source], due_ps)

    def end(self, now_ps: int, *, group: bool, sources: Iterable[Address]) -> FilterChange:
        """End the timers of ``sources`` and, with ``group``, of the group now; return the change of the filter."""
        if group and self.excludes:
            self.lower(now_ps, group=True, sources=sources)
            return self.expire(now_ps)
        ended = [source for source in dict.fromkeys(sources) if self.sources.get(source, EXCLUDED) != EXCLUDED]
        return self._end(ended)

    def _end(self, ended: list[Address]) -> FilterChange:
        if self.excludes:
            self.sources.update(dict.fromkeys(ended, EXCLUDED))
            return self._changed(True, (), ended)
        for source in ended:
            del self.sources[source]
        return self._changed(False, ended)

    def expire(self, now_ps: int) -> FilterChange:
        """Expire the timers that are due at ``now_ps``, and return the change of the filter."""
        if now_ps < self.earliest_ps:
            return self._changed(self.excludes)
        if self.group_due_ps is not None and self.group_due_ps <= now_ps:
            removed = [source for source, due_ps in self.sources.items() if due_ps == EXCLUDED]
            self.group_due_ps = None
            self.sources = {source: due_ps for source, due_ps in self.sources.items() if due_ps > now_ps}
            change = self._changed(True, removed, list(self.sources))
        else:
            change = self._end([source for source, due_ps in self.sources.items() if EXCLUDED != due_ps <= now_ps])
        running = (due_ps for due_ps in self.sources.values() if due_ps != EXCLUDED)
        self.earliest_ps = min(running, default=NEVER_PS)
        if self.group_due_ps is not None:
            self.earliest_ps = min(self.earliest_ps, self.group_due_ps)
        return change
