"""The router's part: random histories against the RFC's tables, written down as sets; then queries, versions, election."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.control.membership.filters import EVERYTHING, Filter
from holdfast.control.membership.messages import Address, Query, Record, RecordKind, Report
from holdfast.control.membership.querier import Outcome, Querier, QuerierParameters
from holdfast.errors import ParameterError

V4 = IPv4Address
S_PS = 1_000_000_000_000
ROUTER, HOST = V4("10.0.0.254"), V4("10.0.0.1")
GROUP = V4("239.1.2.3")
A, B, C = (V4(f"10.1.0.{number}") for number in (1, 2, 3))
IS_IN, IS_EX, TO_IN, TO_EX, ALLOW, BLOCK = RecordKind
PARAMETERS = QuerierParameters()
GMI_PS = 260 * S_PS  # 2 * 125 s + 10 s (RFC 3376, 8.4)
LMQT_PS = 2 * S_PS


def report(kind: RecordKind, *sources: Address, group: Address = GROUP, version: int = 3) -> Report:
    return Report(version, (Record(kind, group, sources),))


def querier(
    *, fast_leave: bool = False, hears_queries: bool = False, parameters: QuerierParameters = PARAMETERS
) -> Querier:
    return Querier(ROUTER, parameters, 0, fast_leave=fast_leave, hears_queries=hears_queries)


# ---- The tables of RFC 3376, 6.4 ----


@dataclass
class Tables:
    """One group as the RFC writes it: the mode, X (or A), Y, and timers."""

    excludes: bool = False
    x: dict[Address, int] = field(default_factory=dict)
    y: set[Address] = field(default_factory=set)
    group_due_ps: int = 0

    def report(self, kind: RecordKind, heard: set[Address], now_ps: int, fast: bool) -> None:
        gmi, lmqt = now_ps + GMI_PS, now_ps if fast else now_ps + LMQT_PS
        a = set(self.x)
        asks_group, asks = False, set()
        if not self.excludes:
            if kind in (IS_IN, ALLOW, TO_IN):
                self.x |= dict.fromkeys(heard, gmi)
                asks = a - heard if kind == TO_IN else set()
            elif kind == BLOCK:
                asks = a & heard
            else:
                self.excludes, self.group_due_ps = True, gmi
                self.x = {it: self.x[it] for it in a & heard}
                self.y = heard - a
                asks = a & heard if kind == TO_EX else set()
        else:
            x, y = a, self.y
            if kind in (IS_IN, ALLOW, TO_IN):
                self.x |= dict.fromkeys(heard, gmi)
                self.y = y - heard
                if kind == TO_IN:
                    asks, asks_group = x - heard, True
            elif kind == BLOCK:
                self.x |= dict.fromkeys(heard - x - y, self.group_due_ps)
                asks = heard - y
            else:
                new = gmi if kind == IS_EX else self.group_due_ps
                self.x = {it: self.x.get(it, new) for it in heard - y}
                self.y = y & heard
                asks = heard - y if kind == TO_EX else set()
                self.group_due_ps = gmi
        for it in asks & self.x.keys():
            self.x[it] = min(self.x[it], lmqt)
        if asks_group:
            self.group_due_ps = min(self.group_due_ps, lmqt)

    def pass_time(self, now_ps: int) -> None:
        expired = {it for it, due_ps in self.x.items() if due_ps <= now_ps}
        # Sources and group may expire at different times before now; only the order of the two matters.
        if self.excludes and self.group_due_ps <= now_ps:
            self.excludes, self.y = False, set()
        elif self.excludes:
            self.y |= expired
        self.x = {it: due_ps for it, due_ps in self.x.items() if it not in expired}

    @property
    def wanted(self) -> Filter:
        return Filter(True, frozenset(self.y)) if self.excludes else Filter(False, frozenset(self.x))


STEPS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, S_PS, 2 * S_PS, 3 * S_PS, 100 * S_PS, GMI_PS - 1, GMI_PS, GMI_PS + S_PS]),
        st.none() | st.tuples(st.sampled_from(list(RecordKind)), st.sets(st.sampled_from([A, B, C]))),
    ),
    max_size=25,
)


@settings(max_examples=200, deadline=None)
@given(STEPS, st.booleans())
def test_any_history_equals_the_tables(
    steps: list[tuple[int, tuple[RecordKind, set[Address]] | None]], fast: bool
) -> None:
    router, tables, now_ps = querier(fast_leave=fast), Tables(), 0
    known = Filter()

    def follow(outcome: Outcome) -> None:
        nonlocal known
        for change in outcome.changes:
            known = change.applied(known)

    for wait_ps, heard in steps:
        now_ps += wait_ps
        while router.next_ps <= now_ps:
            due_ps = router.next_ps
            follow(router.due(due_ps))
            tables.pass_time(due_ps)
            assert known == tables.wanted
            assert router.next_ps > due_ps
        tables.pass_time(now_ps)
        assert known == tables.wanted
        if heard is not None:
            kind, sources = heard
            follow(router.heard(HOST, report(kind, *sorted(sources, key=int)), now_ps))
            tables.report(kind, sources, now_ps, fast)
            tables.pass_time(now_ps)
        assert known == tables.wanted
        assert router.groups == ({GROUP: known} if known else {})


# ---- Queries ----


def sent(router: Querier, until_ps: int) -> list[tuple[int, Query]]:
    """Return the queries that the router sends until ``until_ps``, each as (time in ms, query)."""
    found = []
    while (due_ps := router.next_ps) <= until_ps:
        found += [(due_ps // (S_PS // 1000), query) for query in router.due(due_ps).queries]
    return found


def test_general_queries() -> None:
    general = Query(3, None, 10 * S_PS, robustness=2, interval_s=125)
    # Two at startup, a quarter of the interval apart (RFC 3376, 8.6 and 8.7), then one in each interval.
    assert sent(querier(), 300 * S_PS) == [(0, general), (31_250, general), (156_250, general), (281_250, general)]


def test_a_leave_is_asked_about_until_nobody_answers() -> None:
    router = querier()
    router.due(0)
    router.heard(HOST, report(TO_EX), S_PS)
    outcome = router.heard(HOST, report(TO_IN), 2 * S_PS)
    asked = Query(3, GROUP, S_PS, robustness=2, interval_s=125)
    assert outcome.queries == [asked]
    assert not outcome.changes
    # Once more after one interval, and the end after two.
    assert sent(router, 3 * S_PS) == [(3000, asked)]
    assert router.groups == {GROUP: EVERYTHING}
    (change,) = router.due(4 * S_PS).changes
    assert change.applied(EVERYTHING) == Filter()
    assert router.groups == {}
    assert all(query.group is None for _, query in sent(router, 300 * S_PS))


def test_an_answer_keeps_the_group_and_suppresses_routers() -> None:
    router = querier()
    router.due(0)
    router.heard(HOST, report(TO_EX), S_PS)
    router.heard(HOST, report(TO_IN), 2 * S_PS)
    router.heard(HOST, report(IS_EX), 2 * S_PS + S_PS // 2)
    # RFC 3376, 6.6.3.1: the group's timer is above the Last Member Query Time, so the repeated query has the S flag.
    assert sent(router, 10 * S_PS) == [(3000, Query(3, GROUP, S_PS, suppress=True, robustness=2, interval_s=125))]
    assert router.groups == {GROUP: EVERYTHING}


def test_sources_are_asked_for_with_and_without_suppression() -> None:
    router = querier()
    router.due(0)
    router.heard(HOST, report(ALLOW, A, B), S_PS)
    outcome = router.heard(HOST, report(BLOCK, A, B), 2 * S_PS)
    assert [(query.sources, query.suppress) for query in outcome.queries] == [((A, B), False)]
    router.heard(HOST, report(IS_IN, A), 2 * S_PS + 1)
    assert [(query.sources, query.suppress) for _, query in sent(router, 3 * S_PS)] == [((A,), True), ((B,), False)]
    sent(router, 4 * S_PS)
    assert router.groups == {GROUP: Filter(False, frozenset({A}))}


def test_many_sources_are_asked_for_in_packets_of_1500_bytes() -> None:
    router = querier()
    router.due(0)
    many = [V4(0x0B000000 + number) for number in range(800)]
    router.heard(HOST, report(ALLOW, *many), S_PS)
    queries = router.heard(HOST, report(BLOCK, *many), 2 * S_PS).queries
    assert [len(query.sources) for query in queries] == [366, 366, 68]


def test_fast_leave_ends_at_once_and_asks_nobody() -> None:
    router = querier(fast_leave=True)
    router.due(0)
    router.heard(HOST, report(IS_EX), S_PS)
    outcome = router.heard(HOST, report(TO_IN, A), 2 * S_PS)
    assert [change.applied(EVERYTHING) for change in outcome.changes] == [Filter(False, frozenset({A}))]
    assert not outcome.queries
    assert router.heard(HOST, report(BLOCK, A), 3 * S_PS).changes[0].applied(Filter(False, frozenset({A}))) == Filter()


# ---- Older versions (RFC 3376, 7.3) ----


def test_a_host_of_version_2() -> None:
    router = querier()
    router.due(0)
    router.heard(HOST, report(IS_EX, version=2), S_PS)
    # Blocked sources, and those of a mode change, mean nothing while such a host is present.
    assert not router.heard(HOST, report(BLOCK, A), 2 * S_PS).changes
    assert not router.heard(HOST, report(TO_EX, A), 2 * S_PS).changes
    assert router.groups == {GROUP: EVERYTHING}
    assert router.heard(HOST, report(TO_IN, version=2), 3 * S_PS).queries
    # Its timer is over: version 3 again.
    router = querier()
    router.due(0)
    router.heard(HOST, report(IS_EX, version=2), 0)
    router.heard(HOST, report(IS_EX), 200 * S_PS)
    router.due(GMI_PS)
    router.heard(HOST, report(TO_EX, A), GMI_PS)
    assert A in router._groups[GROUP].sources


def test_a_host_of_version_1_cannot_leave() -> None:
    router = querier(fast_leave=True)
    router.due(0)
    router.heard(HOST, report(IS_EX, version=1), S_PS)
    assert not router.heard(HOST, report(TO_IN, version=2), 2 * S_PS).changes
    assert not router.heard(HOST, report(TO_IN, A), 2 * S_PS).queries
    sent(router, S_PS + GMI_PS)
    assert router.groups == {}


def test_mldv1_can_leave() -> None:
    group = IPv6Address("ff1e::5")
    router = Querier(IPv6Address("fe80::fe"), PARAMETERS, 0)
    router.due(0)
    host = IPv6Address("fe80::1")
    router.heard(host, report(IS_EX, group=group, version=1), S_PS)
    outcome = router.heard(host, report(TO_IN, group=group, version=1), 2 * S_PS)
    assert outcome.queries == [Query(2, group, S_PS, robustness=2, interval_s=125)]


# ---- Other queriers (RFC 3376, 6.6) ----


def test_the_lower_address_asks() -> None:
    router = querier(hears_queries=True)
    router.due(0)
    other = Query(3, None, 10 * S_PS, robustness=3, interval_s=60)
    router.heard(V4("10.0.0.255"), other, S_PS)
    assert router.is_querier
    router.heard(V4("0.0.0.0"), other, S_PS)
    assert router.is_querier
    router.heard(V4("10.0.0.2"), other, 2 * S_PS)
    assert not router.is_querier
    # The values of the querier are adopted: GMI 3 * 60 s + 10 s; it is missed after 3 * 60 s + 5 s (8.5).
    assert router.group_membership_interval_ps == 190 * S_PS
    router.heard(HOST, report(IS_EX), 3 * S_PS)
    assert not router.heard(HOST, report(TO_IN), 4 * S_PS).queries
    assert router.groups == {GROUP: EVERYTHING}
    # The querier asks; without the S flag timers are lowered.
    router.heard(V4("10.0.0.2"), Query(3, GROUP, S_PS, (), True, 3, 60), 4 * S_PS)
    router.due(7 * S_PS)
    assert router.groups == {GROUP: EVERYTHING}
    router.heard(V4("10.0.0.2"), Query(3, GROUP, S_PS, (), False, 3, 60), 8 * S_PS)
    router.due(10 * S_PS)
    assert router.groups == {}
    (first, *_) = sent(router, 200 * S_PS)
    assert first == (193_000, Query(3, None, 10 * S_PS, robustness=2, interval_s=125))
    assert router.is_querier


# ---- Refused messages ----


def test_groups_that_nobody_forwards_and_ssm() -> None:
    router = querier()
    for group, version, kind in (
        ("224.0.0.251", 3, TO_EX),
        ("232.1.1.1", 3, TO_EX),
        ("232.1.1.1", 2, IS_EX),
    ):
        assert not router.heard(HOST, report(kind, group=V4(group), version=version), S_PS).changes
    assert router.refused == {"link_local_group": 1, "ssm_without_source": 2}
    assert router.heard(HOST, report(ALLOW, A, group=V4("232.1.1.1")), S_PS).changes


def test_limits() -> None:
    router = querier(parameters=QuerierParameters(group_limit=1, source_limit=2))
    router.heard(HOST, report(ALLOW, A, B), S_PS)
    assert not router.heard(HOST, report(ALLOW, C), S_PS).changes
    assert not router.heard(HOST, report(TO_EX, group=V4("239.9.9.9")), S_PS).changes
    assert router.refused == {"source_limit": 1, "group_limit": 1}
    assert router.groups == {GROUP: Filter(False, frozenset({A, B}))}


def test_parameters_out_of_range_are_named() -> None:
    with pytest.raises(ParameterError, match="query_response_interval_s must be below"):
        QuerierParameters(query_interval_s=5, query_response_interval_s=10)
    with pytest.raises(ParameterError, match="robustness"):
        QuerierParameters(robustness=8)


def test_memory_and_timers_end_with_memberships() -> None:
    router = querier()
    for number in range(1000):
        router.heard(HOST, report(TO_EX, group=V4(0xEF000000 + number)), number)
    for number in range(1000):
        router.heard(HOST, report(TO_IN, group=V4(0xEF000000 + number)), S_PS + number)
    # Each is asked about twice, at 200 questions/s, and nothing is left behind.
    sent(router, 20 * S_PS)
    assert router.groups == {}
    sent(router, 2 * GMI_PS)
    assert not router._timers and not router._repeats and not router._armed and not router._asking
