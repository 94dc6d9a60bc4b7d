"""What a collector keeps of telemetry reports: flows with their paths and latencies, hops with their queues and drops, and counts.

Memory is bounded by :class:`Limits`: of flows, the one that was reported longest ago goes; of hops and reporters, what comes beyond
the limit is counted and not kept. It does not know where reports come from, and who reads what it keeps.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import Field

from holdfast.apps.telemetry.program import INT_DSCP, INT_UDP_PORT
from holdfast.apps.telemetry.reports import FlowKey, Hop, MalformedReport, Report, decode
from holdfast.parameters import Parameters

LATENCY_BUCKETS_US = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 1_000_000)
"""Upper bounds of the histogram of a hop's latency."""

NodePath = tuple[int, ...]


class Limits(Parameters):
    """How much a collector keeps."""

    flows: int = Field(default=100_000, ge=1, le=10_000_000)
    hops: int = Field(default=100_000, ge=1, le=10_000_000)
    """Output ports of nodes."""
    reporters: int = Field(default=10_000, ge=1, le=10_000_000)


class HopKey(NamedTuple):
    """An output port of a node; None if the reports do not say which."""

    node_id: int
    egress_port: int | None


@dataclass(slots=True)
class HopState:
    """An output port of a node, as reports tell of it. Latencies and times are in microseconds, queues in packets."""

    packets: int = 0
    latency_count: int = 0
    latency_sum: int = 0
    latency_max: int = 0
    latency_last: int | None = None
    latency_buckets: list[int] = field(default_factory=lambda: [0] * (len(LATENCY_BUCKETS_US) + 1))
    queue_last: int | None = None
    queue_max: int = 0
    tx_utilisation: int | None = None
    congested: int = 0
    """Reports of congestion."""

    def take(self, hop: Hop) -> None:
        """One more packet."""
        self.packets += 1
        latency = hop.latency
        if latency is not None:
            self.latency_count += 1
            self.latency_sum += latency
            self.latency_last = latency
            if latency > self.latency_max:
                self.latency_max = latency
            self.latency_buckets[bisect_left(LATENCY_BUCKETS_US, latency)] += 1
        queue = hop.queue_occupancy
        if queue is not None:
            self.queue_last = queue
            if queue > self.queue_max:
                self.queue_max = queue
        if hop.tx_utilisation is not None:
            self.tx_utilisation = hop.tx_utilisation


@dataclass(slots=True)
class FlowState:
    """A flow. ``path``: its nodes, the first one first; in INT-MX and INT-XD as far as they have reported."""

    reports: int = 0
    first_ns: int = 0
    last_ns: int = 0
    path: NodePath = ()
    path_changes: int = 0
    latency_last: int | None = None
    """Sum over the nodes of the last report that holds a whole path."""
    latency_max: int = 0
    drops: int = 0
    drop_reason: int | None = None
    hops_exceeded: int = 0
    mtu_exceeded: int = 0
    by_ttl: dict[int, int] = field(default_factory=dict)
    """Of nodes that report one by one: TTL that a packet had there."""


@dataclass(slots=True)
class ReporterState:
    """A hardware subsystem of a node."""

    next_sequence: int
    reports: int = 0
    lost: int = 0
    """Numbers that were passed over. A report that arrives late is taken out again."""


SEQUENCES = 1 << 22
REORDERED = 1 << 12
"""A number that is so little behind the expected one is of a report that was overtaken."""


class Collector:
    """Takes the payloads of UDP packets; whatever is in them, it raises nothing."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        dscp: int = INT_DSCP,
        dscp_mask: int = 0x3F,
        udp_port: int = INT_UDP_PORT,
        on_report: Callable[[int, Report], None] | None = None,
    ) -> None:
        """``dscp``, ``udp_port``: the domain's indicators. ``on_report``: gets each report with its time in nanoseconds."""
        self.limits = limits or Limits()
        self._indicators = {"dscp": dscp, "dscp_mask": dscp_mask, "udp_port": udp_port}
        self._on_report = on_report
        self.packets = self.bytes = self.reports = 0
        self.malformed: Counter[str] = Counter()
        """UDP packets, by the rule that they break."""
        self.receive_drops = 0
        """Packets that the kernel had no room for."""
        self.flows_evicted = self.hops_refused = self.reporters_refused = 0
        self.flows: OrderedDict[FlowKey, FlowState] = OrderedDict()
        self.hops: dict[HopKey, HopState] = {}
        self.drops: Counter[tuple[int, int]] = Counter()
        """Reported drops by node and reason."""
        self.reporters: dict[tuple[int, int], ReporterState] = {}

    def take(self, now_ns: int, payload: bytes) -> None:
        """A UDP packet's payload, with the time of its arrival."""
        self.packets += 1
        self.bytes += len(payload)
        try:
            reports = decode(payload, **self._indicators)
        except MalformedReport as error:
            self.malformed[error.reason] += 1
            return
        if reports:
            first = reports[0]
            self._sequence(first.node_id, first.hw_id, first.sequence, len(reports))
        for report in reports:
            self._take(now_ns, report)

    def reports_lost(self) -> int:
        """Of all reporters."""
        return sum(reporter.lost for reporter in self.reporters.values())

    def _sequence(self, node_id: int, hw_id: int, sequence: int, reports: int) -> None:
        """One number belongs to a packet, that may hold several reports."""
        key = (node_id, hw_id)
        state = self.reporters.get(key)
        if state is None:
            if len(self.reporters) >= self.limits.reporters:
                self.reporters_refused += 1
                return
            state = self.reporters[key] = ReporterState(sequence)
        state.reports += reports
        ahead = (sequence - state.next_sequence) % SEQUENCES
        if ahead < SEQUENCES - REORDERED:
            state.lost += ahead
            state.next_sequence = (sequence + 1) % SEQUENCES
        elif state.lost:
            state.lost -= 1

    def _take(self, now_ns: int, report: Report) -> None:
        self.reports += 1
        if self._on_report is not None:
            self._on_report(now_ns, report)
        path = report.path()
        if report.dropped:
            if len(self.drops) < self.limits.hops or (report.node_id, report.drop_reason or 0) in self.drops:
                self.drops[report.node_id, report.drop_reason or 0] += 1
            else:
                self.hops_refused += 1
            # The reporting node has sent the packet nowhere.
            path = path[:-1]
        for hop in path:
            state = self._hop(hop)
            if state is not None:
                state.take(hop)
        if report.congested and (state := self._hop(report.hop)) is not None:
            state.congested += 1
        if report.flow is not None:
            self._take_flow(now_ns, report, report.flow)

    def _hop(self, hop: Hop) -> HopState | None:
        if hop.node_id is None:
            return None
        key = HopKey(hop.node_id, hop.egress_port)
        state = self.hops.get(key)
        if state is None:
            if len(self.hops) >= self.limits.hops:
                self.hops_refused += 1
                return None
            state = self.hops[key] = HopState()
        return state

    def _take_flow(self, now_ns: int, report: Report, key: FlowKey) -> None:
        flows = self.flows
        state = flows.get(key)
        if state is None:
            if len(flows) >= self.limits.flows:
                flows.popitem(last=False)
                self.flows_evicted += 1
            state = flows[key] = FlowState(first_ns=now_ns)
        else:
            flows.move_to_end(key)
        state.reports += 1
        state.last_ns = now_ns
        if report.dropped:
            state.drops += 1
            state.drop_reason = report.drop_reason
            return
        if not report.tracked:
            return
        embedded = report.embedded
        if embedded is not None and embedded.mode == "md":
            state.hops_exceeded += embedded.hops_exceeded
            state.mtu_exceeded += embedded.mtu_exceeded
            hops = report.path()
            latency = _sum(hop.latency for hop in hops)
            nodes = tuple(hop.node_id for hop in hops if hop.node_id is not None)
        else:
            latency = None
            state.by_ttl[report.ttl] = report.node_id
            nodes = _in_order(state.by_ttl, report)
        if nodes != state.path:
            # Nodes that report one by one make a path longer without changing it.
            if state.path and not _extends(nodes, state.path):
                state.path_changes += 1
            state.path = nodes
        if latency is not None:
            state.latency_last = latency
            if latency > state.latency_max:
                state.latency_max = latency


def _sum(values: Iterable[int | None]) -> int | None:
    """None if one is unknown."""
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _in_order(by_ttl: dict[int, int], report: Report) -> NodePath:
    """Nodes by the TTL that packets had there, which falls along the path. A node is only where it was seen last."""
    for ttl in [ttl for ttl, node in by_ttl.items() if node == report.node_id and ttl != report.ttl]:
        del by_ttl[ttl]
    return tuple(by_ttl[ttl] for ttl in sorted(by_ttl, reverse=True))


def _extends(longer: NodePath, shorter: NodePath) -> bool:
    """Whether all nodes of one path are on the other, in the same order."""
    rest = iter(longer)
    return all(node in rest for node in shorter)
