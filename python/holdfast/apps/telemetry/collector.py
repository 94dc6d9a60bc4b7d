"""The state of a collector of reports: flows with their paths and latencies, hops with their queues and drops, and counts.

``crates/telemetry`` decodes and keeps; here are its values. Memory is bounded by :class:`Limits`: of flows, the one that was
reported longest ago goes; of hops and reporters, what comes beyond the limit is counted and not kept. One thread may receive while
others read.
"""

from __future__ import annotations

from typing import NamedTuple

from pydantic import Field

from holdfast import _core
from holdfast.apps.telemetry.program import INT_DSCP, INT_UDP_PORT
from holdfast.apps.telemetry.reports import FlowKey
from holdfast.parameters import Parameters

LATENCY_BUCKETS_US = _core.LATENCY_BUCKETS
"""Upper bounds of the histogram of a hop's latency."""


class Limits(Parameters):
    """The limits of a collector's memory."""

    flows: int = Field(default=100_000, ge=1, le=10_000_000)
    hops: int = Field(default=100_000, ge=1, le=10_000_000)
    """Output ports of nodes."""
    reporters: int = Field(default=10_000, ge=1, le=10_000_000)


class HopKey(NamedTuple):
    """The key of a hop: a node and its output port, None if the reports do not say which."""

    node_id: int
    egress_port: int | None


class HopState(NamedTuple):
    """The state of an output port of a node, as reported. Latencies and times are in microseconds, queues in packets."""

    packets: int
    latency_count: int
    latency_sum: int
    latency_max: int
    latency_last: int | None
    latency_buckets: list[int]
    queue_last: int | None
    queue_max: int
    tx_utilisation: int | None
    congested: int
    """Reports of congestion."""


class FlowState(NamedTuple):
    """A flow. ``path``: its nodes, the first one first; in INT-MX and INT-XD as far as they have reported."""

    reports: int
    first_ns: int
    last_ns: int
    path: list[int]
    path_changes: int
    latency_last: int | None
    """Sum over the nodes of the last report that holds a whole path."""
    latency_max: int
    drops: int
    drop_reason: int | None
    hops_exceeded: int
    mtu_exceeded: int


class ReporterState(NamedTuple):
    """The state of a reporter, which is a hardware subsystem of a node."""

    reports: int
    lost: int
    """Numbers that were passed over. A report that arrives late is taken out again."""


class Counts(NamedTuple):
    """Counts of the reports taken, and of those not kept."""

    packets: int
    bytes: int
    reports: int
    reports_lost: int
    """By the sequence numbers of all reporters."""
    flows: int
    """The number of flows in memory."""
    flows_evicted: int
    hops: int
    """The number of hops in memory."""
    hops_refused: int
    drops: int
    """The number of reported drops."""
    drop_reasons: int
    """Pairs of a node and a reason, in memory."""
    reporters_refused: int
    rows_refused: int


class Collector:
    """Collects telemetry reports from the payloads of UDP packets; no payload makes it raise."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        dscp: int = INT_DSCP,
        dscp_mask: int = 0x3F,
        udp_port: int = INT_UDP_PORT,
        with_rows: bool = False,
        most_rows: int | None = None,
    ) -> None:
        """Create a collector without reports. ``limits``: how many flows, hops and reporters it keeps; None for the defaults.

        ``dscp`` (by its mask) and ``udp_port`` are the domain's indicators of INT. ``with_rows``: keep a row per hop of all reports
        for :mod:`.rows`. When ``most_rows`` rows wait to be taken, further hops are counted but get no row.
        """
        it = limits or Limits()
        self.core = _core.ReportCollector(
            it.flows,
            it.hops,
            it.reporters,
            dscp=dscp,
            dscp_mask=dscp_mask,
            udp_port=udp_port,
            with_rows=with_rows,
            most_rows=most_rows,
        )
        self.receive_drops = 0
        """Packets that the kernel had no room for."""
        self.left = 0
        """Packets that were still in the kernel when the time for the last ones was over."""
        self.rows_lost = 0
        """Rows that could not be written."""

    def take(self, now_ns: int, payload: bytes) -> None:
        """Process a UDP payload that arrived at ``now_ns`` nanoseconds."""
        self.core.take(now_ns, payload)

    def counts(self) -> Counts:
        """Return all counts of packets and reports: received, lost, refused and others."""
        return Counts(**self.core.counts())

    def malformed(self) -> dict[str, int]:
        """Return how many UDP packets broke each rule of the specification; rules that none broke are left out."""
        return {rule: count for rule, count in self.core.malformed().items() if count}

    def flows(self, busiest: int | None = None) -> dict[FlowKey, FlowState]:
        """Return all flows, the one reported last at the end; with ``busiest``, only that many, those with most reports."""
        return {FlowKey._make(key): FlowState._make(state) for key, state in self.core.flows(busiest)}

    def hops(self, *, first: int | None = None, slowest: int | None = None) -> dict[HopKey, HopState]:
        """Return hops by node and port: all, or only the ``first`` ones reported, or the ``slowest`` ones."""
        hops = self.core.hops(first=first, slowest=slowest)
        return {HopKey._make(key): HopState._make(state) for key, state in hops}

    def drops(self, *, first: int | None = None) -> dict[tuple[int, int], int]:
        """Return the number of reported drops by (node, reason): of all, or only of the ``first`` pairs reported."""
        return self.core.drops(first=first)

    def reporters(self) -> dict[tuple[int, int], ReporterState]:
        """Return the state of each reporter by (node, hardware subsystem)."""
        return {key: ReporterState._make(state) for key, state in self.core.reporters().items()}
