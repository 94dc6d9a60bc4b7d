"""A router's part of IGMP or MLD on one port, without I/O: messages and the time go in, queries and changes come out.

RFC 3376 (6 and 7.3), RFC 3810 (7 and 8.3), RFC 4604 (2.2). It does not know switches, frames, or the other ports.

A membership that nobody confirms ends after the Group Membership Interval; one that a host says to have left, after the
Last Member Query Time, or at once if the port has a single host (``fast_leave``). Both protocols have the same state
machine; the names are IGMP's.

What a port can make the router keep, send and forget is bounded: channels, questions about last members, and the time for which
another querier silences this one. Only a port towards routers hears queries at all.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Self

from pydantic import Field, model_validator

from holdfast.control.membership import igmp
from holdfast.control.membership.filters import Asked, Filter, FilterChange, GroupFilter
from holdfast.control.membership.limits import Allowance
from holdfast.control.membership.messages import (
    Address,
    Message,
    Query,
    Record,
    RecordKind,
    Report,
    decoded,
    is_ssm,
    stays_on_link,
)
from holdfast.parameters import PS_PER_S, Parameters, ps_of_s

LONGEST_INTERVAL_S = decoded(0xFF, 4)
"""The longest query interval, in seconds, that the Querier's Query Interval Code (QQIC) can state."""

MOST_SOURCES = {4: 366, 6: 89}
"""The most sources that a query of 1500 bytes can name, by version of IP (RFC 3376, 4.1.8; RFC 3810, 5.1.10)."""


class QuerierParameters(Parameters):
    """Timers and counts of RFC 3376 (8) and RFC 3810 (9), by their names there, with the defaults there.

    Records beyond a limit change nothing and are counted. ``channels_per_port``: (S,G) and (*,G) of a port, for each version of IP;
    ``group_limit`` and ``source_limit``: groups of a port, and sources of a group. ``questions_per_s``: queries about last members
    that leaves can make a port send; beyond it, a leave is asked about later, and the membership ends later.
    ``other_querier_limit_s``: the time after which a querier that is not heard any more is replaced, whatever it has announced.
    ``oldest_igmp``, ``oldest_mld``: reports of older versions are refused (RFC 3376, 9.2: a host of version 1 keeps all others
    of its port from leaving).
    """

    robustness: int = Field(default=2, ge=1, le=7)
    query_interval_s: float = Field(default=125.0, ge=1, le=LONGEST_INTERVAL_S)
    query_response_interval_s: float = Field(default=10.0, ge=0.1, le=igmp.LONGEST_RESPONSE_PS / PS_PER_S)
    last_member_query_interval_s: float = Field(default=1.0, ge=0.1, le=igmp.LONGEST_RESPONSE_PS / PS_PER_S)
    last_member_query_count: int | None = Field(default=None, ge=1, le=7)
    startup_query_interval_s: float | None = Field(default=None, ge=0.1, le=LONGEST_INTERVAL_S)
    startup_query_count: int | None = Field(default=None, ge=1, le=7)
    channels_per_port: int = Field(default=4096, ge=1)
    group_limit: int = Field(default=4096, ge=1)
    source_limit: int = Field(default=1024, ge=1)
    questions_per_s: int = Field(default=200, ge=1, le=1_000_000)
    other_querier_limit_s: float = Field(default=600.0, ge=1, le=LONGEST_INTERVAL_S)
    oldest_igmp: int = Field(default=1, ge=1, le=3)
    oldest_mld: int = Field(default=1, ge=1, le=2)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.query_response_interval_s >= self.query_interval_s:
            raise ValueError("query_response_interval_s must be below query_interval_s (RFC 3376, 8.3)")
        return self

    @property
    def last_member_queries(self) -> int:
        """The number of queries for a group's last members; by default the robustness."""
        return self.last_member_query_count or self.robustness

    @property
    def last_member_query_time_ps(self) -> int:
        """The time in ps from a leave to the end of the membership, if no host answers (RFC 3376, 8.8.1)."""
        return self.last_member_queries * ps_of_s("last_member_query_interval_s", self.last_member_query_interval_s)

    @property
    def startup_interval_ps(self) -> int:
        """The time in ps between general queries at the beginning (RFC 3376, 8.6)."""
        given_s = self.startup_query_interval_s
        return ps_of_s("query_interval_s", self.query_interval_s / 4 if given_s is None else given_s)

    @property
    def group_membership_interval_ps(self) -> int:
        """The time in ps from the last report to the end of a membership (RFC 3376, 8.4), with these parameters."""
        return self.robustness * ps_of_s("query_interval_s", self.query_interval_s) + self.response_ps

    @property
    def response_ps(self) -> int:
        """The time in ps within which hosts answer a general query."""
        return ps_of_s("query_response_interval_s", self.query_response_interval_s)


@dataclass(slots=True)
class Outcome:
    """The consequences of a message or of the time."""

    queries: list[Query] = field(default_factory=list)
    changes: list[FilterChange] = field(default_factory=list)


@dataclass(slots=True)
class _Asking:
    """Queries for last members that are to be repeated."""

    due_ps: int = 0
    group_left: int = 0
    sources_left: dict[Address, int] = field(default_factory=dict)


BURST_S = 2
"""After a pause, the queries that may be sent at once are those of so many seconds at the permitted rate."""


def _always(own: int, new: int) -> bool:
    return True


class Querier:
    """The state of one port for one protocol; ``address`` is the router's there, and says which protocol.

    ``hears_queries``: there are routers behind the port, which may be queriers in place of this one; else queries change nothing.
    ``has_room``: whether all ports together leave room for this one to have so many channels, of which so many are new.
    """

    def __init__(
        self,
        address: Address,
        parameters: QuerierParameters,
        start_ps: int,
        *,
        fast_leave: bool = False,
        hears_queries: bool = False,
        has_room: Callable[[int, int], bool] = _always,
    ) -> None:
        self.address = address
        self.parameters = parameters
        self.fast_leave = fast_leave
        self.hears_queries = hears_queries
        self.channels = 0
        """(S,G) and (*,G) that the port's records stand for."""
        self.hidden = 0
        """The number of sources of the port's records that are no channels now, and become channels when timers expire."""
        self._has_room = has_room
        self._oldest = parameters.oldest_igmp if address.version == 4 else parameters.oldest_mld
        self._questions = Allowance(parameters.questions_per_s, BURST_S * parameters.questions_per_s)
        self.latest = 3 if address.version == 4 else 2
        self.refused: Counter[str] = Counter()
        """Records, by why they changed nothing; and queriers that speak an older version."""
        self._groups: dict[Address, GroupFilter] = {}
        self._timers: list[tuple[int, int, Address]] = []
        """When groups may have a timer that expires. Each of ``_groups`` is in it no later than its first."""
        self._armed: dict[Address, int] = {}
        self._asking: dict[Address, _Asking] = {}
        self._repeats: list[tuple[int, int, Address]] = []
        """When queries may be repeated."""
        self._added = 0
        self._robustness = parameters.robustness
        self._interval_ps = ps_of_s("query_interval_s", parameters.query_interval_s)
        self._other_until_ps: int | None = None
        self._general_ps = start_ps
        self._startup_left = parameters.startup_query_count or parameters.robustness

    # ---- State ----

    @property
    def is_querier(self) -> bool:
        """True if this router is the one that sends queries on the port."""
        return self._other_until_ps is None

    @property
    def groups(self) -> dict[Address, Filter]:
        """The filters of the port, by group."""
        return {group: state.wanted for group, state in self._groups.items()}

    @property
    def group_membership_interval_ps(self) -> int:
        """The time in ps from the last report to the end of a membership, with the present querier's parameters."""
        return self._robustness * self._interval_ps + self.parameters.response_ps

    @property
    def next_ps(self) -> int:
        """The time in ps at which :meth:`due` must be called next."""
        times = [self._general_ps if self._other_until_ps is None else self._other_until_ps]
        if self._timers:
            times.append(self._timers[0][0])
        if self._repeats:
            times.append(self._repeats[0][0])
        return min(times)

    def adopt(self, group: Address, wanted: Filter, now_ps: int) -> None:
        """Adopt a membership of an earlier querier, with timers as after a new report."""
        state = self._groups.setdefault(group, GroupFilter(group))
        fresh_ps = now_ps + self.group_membership_interval_ps
        state.adopt(wanted, fresh_ps)
        self._settle(state)

    # ---- Received messages ----

    def heard(self, source: Address, message: Message, now_ps: int) -> Outcome:
        """Process a message that came in on the port; return queries to send and changes of filters."""
        outcome = self.due(now_ps)
        if isinstance(message, Query):
            self._heard_query(source, message, now_ps, outcome)
        else:
            for record in message.records:
                self._heard_record(source, message, record, now_ps, outcome)
        return outcome

    def _heard_record(self, source: Address, report: Report, record: Record, now_ps: int, outcome: Outcome) -> None:
        group, kind, sources = record.group, record.kind, record.sources
        joins = kind == RecordKind.MODE_IS_EXCLUDE
        if (refusal := self._refusal(report, record)) is not None:
            self.refused[refusal] += 1
            return
        state = self._groups.get(group)
        if state is None and not _begins(record):
            return
        version = self.latest if state is None else state.version(self.latest, now_ps)
        if report.version < self.latest and joins:
            version = min(version, report.version)
        if version < self.latest:
            is_v1 = version == 1 and self.address.version == 4
            if kind == RecordKind.BLOCK_OLD_SOURCES or (kind == RecordKind.CHANGE_TO_INCLUDE and is_v1):
                return
            if kind == RecordKind.CHANGE_TO_EXCLUDE:
                sources = ()
        if (refusal := self._no_room(state, kind, group, sources)) is not None:
            self.refused[refusal] += 1
            return
        if state is None:
            state = self._groups[group] = GroupFilter(group)
        if _begins(record):
            state.heard_from(source)
        if report.version < self.latest and joins:
            state.heard_version(report.version, now_ps + self.group_membership_interval_ps)
        change, asked = state.report(kind, sources, now_ps, self.group_membership_interval_ps)
        _note(outcome, change)
        self._ask(state, asked, source, now_ps, outcome)
        self._settle(state)

    def _refusal(self, report: Report, record: Record) -> str | None:
        """Return why a record is refused for its version, group or mode ("older_version", ...); None if it is accepted."""
        if report.version < self._oldest:
            return "older_version"
        if stays_on_link(record.group):
            return "link_local_group"
        excludes = record.kind in (RecordKind.MODE_IS_EXCLUDE, RecordKind.CHANGE_TO_EXCLUDE)
        if is_ssm(record.group) and (report.version < self.latest or excludes):
            # RFC 4604, 2.2.2 to 2.2.5: neither older messages nor EXCLUDE mode mean anything in the SSM range.
            return "ssm_without_source"
        return None

    def _no_room(
        self, state: GroupFilter | None, kind: RecordKind, group: Address, sources: tuple[Address, ...]
    ) -> str | None:
        """Return the name of the limit that a record would exceed; None if it exceeds none.

        ``state``: the group's present filter, None for a new group. A record that adds nothing is never refused.
        """
        if state is None and len(self._groups) >= self.parameters.group_limit:
            return "group_limit"
        known = GroupFilter(group) if state is None else state
        size, new = known.after(kind, sources)
        if not new:
            return None
        excludes = known.excludes or kind in (RecordKind.MODE_IS_EXCLUDE, RecordKind.CHANGE_TO_EXCLUDE)
        if size - excludes > self.parameters.source_limit:
            return "source_limit"
        own = self.channels - known.size + size
        if own > self.parameters.channels_per_port:
            return "port_limit"
        return None if self._has_room(own, new) else "total_limit"

    def _heard_query(self, source: Address, query: Query, now_ps: int, outcome: Outcome) -> None:
        if int(source) == 0 or source == self.address:
            return  # a snooping switch, or ourselves
        if not self.hears_queries:
            self.refused["query_from_host"] += 1
            return
        if query.version < self.latest:
            self.refused["older_querier"] += 1
        if int(source) < int(self.address):
            limit_ps = ps_of_s("other_querier_limit_s", self.parameters.other_querier_limit_s)
            self._robustness = query.robustness or self.parameters.robustness
            own_ps = ps_of_s("query_interval_s", self.parameters.query_interval_s)
            self._interval_ps = min(query.interval_s * PS_PER_S or own_ps, max(limit_ps, own_ps))
            other_ps = self._robustness * self._interval_ps + self.parameters.response_ps // 2
            self._other_until_ps = now_ps + min(other_ps, limit_ps)
            self._asking.clear()
        state = None if query.group is None else self._groups.get(query.group)
        if state is not None and not query.suppress:
            due_ps = now_ps + self.parameters.last_member_query_time_ps
            state.lower(due_ps, group=not query.sources, sources=query.sources)
            self._settle(state)

    # ---- Asking for last members ----

    def _ask(self, state: GroupFilter, asked: Asked, host: Address, now_ps: int, outcome: Outcome) -> None:
        sources = list(asked.sources)
        if not (asked.group or sources):
            return
        if self.fast_leave and state.is_alone(host):
            _note(outcome, state.end(now_ps, group=asked.group, sources=sources))
            return
        if self._other_until_ps is not None:
            return  # the querier asks, and its query lowers the timers here
        wait_ps = self._questions.wait_ps(now_ps)
        asking = self._asking.get(state.group)
        asked_ps = now_ps if not wait_ps else now_ps + wait_ps if asking is None else asking.due_ps
        due_ps = asked_ps + self.parameters.last_member_query_time_ps
        # What is due by then has been asked about already, and is asked again.
        sources = [source for source in sources if state.sources[source] > due_ps]
        asks_group = asked.group and state.group_due_ps is not None and state.group_due_ps > due_ps
        if not (asks_group or sources):
            return
        state.lower(due_ps, group=asks_group, sources=sources)
        is_new = asking is None
        if asking is None:
            asking = self._asking[state.group] = _Asking()
        if asks_group:
            asking.group_left = self.parameters.last_member_queries
        asking.sources_left.update(dict.fromkeys(sources, self.parameters.last_member_queries))
        if not wait_ps:
            self._repeat(state.group, asking, now_ps, outcome)
        elif is_new:
            self._questions.spend(now_ps, 1)
            self._repeat_at(state.group, asking, asked_ps)

    def _repeat(self, group: Address, asking: _Asking, now_ps: int, outcome: Outcome) -> None:
        """Add the queries for a group's last members that are to be sent now to ``outcome``, and schedule the next ones."""
        state = self._groups.get(group)
        if state is None:
            del self._asking[group]
            return
        limit_ps = now_ps + self.parameters.last_member_query_time_ps
        asked_before = len(outcome.queries)
        if asking.group_left:
            asking.group_left -= 1
            confirmed = state.group_due_ps is not None and state.group_due_ps > limit_ps
            outcome.queries.append(self._query(group, suppress=confirmed))
        if asking.sources_left:
            left = asking.sources_left
            for suppress in (True, False):
                named = [it for it in left if (state.sources.get(it, 0) > limit_ps) == suppress and it in state.sources]
                named.sort(key=int)
                most = MOST_SOURCES[group.version]
                for at in range(0, len(named), most):
                    outcome.queries.append(self._query(group, named[at : at + most], suppress=suppress))
            asking.sources_left = {source: count - 1 for source, count in left.items() if count > 1}
        self._questions.spend(now_ps, len(outcome.queries) - asked_before)
        if asking.group_left or asking.sources_left:
            interval_s = self.parameters.last_member_query_interval_s
            self._repeat_at(group, asking, now_ps + ps_of_s("last_member_query_interval_s", interval_s))
        else:
            del self._asking[group]

    def _repeat_at(self, group: Address, asking: _Asking, due_ps: int) -> None:
        asking.due_ps = due_ps
        self._added += 1
        heapq.heappush(self._repeats, (due_ps, self._added, group))

    def _query(self, group: Address | None, sources: Iterable[Address] = (), *, suppress: bool = False) -> Query:
        response_ps = self.parameters.response_ps
        if group is not None:
            response_ps = ps_of_s("last_member_query_interval_s", self.parameters.last_member_query_interval_s)
        return Query(
            self.latest,
            group,
            response_ps,
            tuple(sources),
            suppress,
            self._robustness,
            self._interval_ps // PS_PER_S,
        )

    # ---- Time ----

    def due(self, now_ps: int) -> Outcome:
        """Handle all timers that have expired at ``now_ps``; return the queries to send and the changes of filters."""
        outcome = Outcome()
        while self._timers and self._timers[0][0] <= now_ps:
            due_ps, _, group = heapq.heappop(self._timers)
            if self._armed.get(group) != due_ps:
                continue
            del self._armed[group]
            state = self._groups[group]
            _note(outcome, state.expire(now_ps))
            self._settle(state)
        while self._repeats and self._repeats[0][0] <= now_ps:
            due_ps, _, group = heapq.heappop(self._repeats)
            asking = self._asking.get(group)
            if asking is not None and asking.due_ps == due_ps:
                self._repeat(group, asking, now_ps, outcome)
        if self._other_until_ps is not None and self._other_until_ps <= now_ps:
            self._other_until_ps = None
            self._robustness = self.parameters.robustness
            self._interval_ps = ps_of_s("query_interval_s", self.parameters.query_interval_s)
            self._general_ps = now_ps
        if self._other_until_ps is None and self._general_ps <= now_ps:
            outcome.queries.append(self._query(None))
            self._startup_left = max(0, self._startup_left - 1)
            self._general_ps = now_ps + (
                self.parameters.startup_interval_ps if self._startup_left else self._interval_ps
            )
        return outcome

    def _settle(self, state: GroupFilter) -> None:
        """Update the port's counts of channels by a group's state; schedule the group's next timer, or delete an empty group."""
        channels, hidden = state.counted
        state.counted = state.size, state.hidden
        self.channels += state.size - channels
        self.hidden += state.hidden - hidden
        if state.size:
            self._arm(state)
            return
        del self._groups[state.group]
        self._armed.pop(state.group, None)
        self._asking.pop(state.group, None)

    def _arm(self, state: GroupFilter) -> None:
        """Schedule a check of the group when its next timer expires, unless an earlier check is scheduled already."""
        due_ps, group = state.earliest_ps, state.group
        armed_ps = self._armed.get(group)
        if armed_ps is not None and armed_ps <= due_ps:
            return
        self._armed[group] = due_ps
        self._added += 1
        heapq.heappush(self._timers, (due_ps, self._added, group))
        if len(self._timers) > 2 * len(self._armed) + 64:
            self._timers = [entry for entry in self._timers if self._armed.get(entry[2]) == entry[0]]
            heapq.heapify(self._timers)


def _note(outcome: Outcome, change: FilterChange) -> None:
    if not change.is_none:
        outcome.changes.append(change)


def _begins(record: Record) -> bool:
    """Return True if a record would create a membership at a port that has none in the record's group."""
    if record.kind in (RecordKind.MODE_IS_EXCLUDE, RecordKind.CHANGE_TO_EXCLUDE):
        return True
    return record.kind != RecordKind.BLOCK_OLD_SOURCES and bool(record.sources)
