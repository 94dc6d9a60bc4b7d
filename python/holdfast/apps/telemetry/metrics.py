"""A collector's counts as families of metrics.

Flows have no series of their own: there may be too many. Of output ports and of reasons of drops those have some that were reported
first, up to ``MOST_SERIES``: whoever makes up nodes makes no page longer, and takes nobody's series away.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric

from holdfast.apps.telemetry.collector import LATENCY_BUCKETS_US, Collector
from holdfast.apps.telemetry.reports import REASONS
from holdfast.operations import exposition

_US_PER_S = 1_000_000
_PREFIX = "holdfast_int_"
_HOP = ("node", "port")

MOST_SERIES = 1000
"""Output ports, and pairs of a node and a reason, with series of their own."""


def families(collector: Collector) -> Iterator[Metric]:
    """Yield all metrics of a collector: totals, per hop, and reported drops."""
    yield from _totals(collector)
    yield from _of_hops(collector)
    yield exposition.family(
        "counter",
        _PREFIX + "dropped_total",
        "Reported drops, by reason (numbers of p4lang/switch).",
        ("node", "reason"),
        (((str(node), str(reason)), count) for (node, reason), count in collector.drops(first=MOST_SERIES).items()),
    )


def text(collector: Collector) -> str:
    """Return all metrics of a collector in Prometheus' text format."""
    return exposition.text(families(collector))


def _totals(collector: Collector) -> Iterator[Metric]:
    counts, malformed = collector.counts(), collector.malformed()
    counters = (
        ("packets_total", "UDP packets received.", counts.packets),
        ("bytes_total", "Bytes of UDP payload received.", counts.bytes),
        ("reports_total", "Reports decoded.", counts.reports),
        ("reports_lost_total", "Reports that sequence numbers show as lost.", counts.reports_lost),
        ("receive_drops_total", "UDP packets that the kernel had no room for.", collector.receive_drops),
        ("flows_evicted_total", "Flows that had to go for others.", counts.flows_evicted),
        ("hops_refused_total", "Metadata of output ports beyond the limit.", counts.hops_refused),
        ("reporters_refused_total", "Packets of reporters beyond the limit.", counts.reporters_refused),
        ("rows_refused_total", "Rows beyond the memory for those that wait for a file.", counts.rows_refused),
        ("rows_lost_total", "Rows that could not be written.", collector.rows_lost),
    )
    for name, about, value in counters:
        yield exposition.single("counter", _PREFIX + name, about, value)
    yield exposition.family(
        "counter",
        _PREFIX + "malformed_total",
        "UDP packets that are no reports, by the rule that they break.",
        ("reason",),
        (((reason,), malformed.get(reason, 0)) for reason in REASONS),
    )
    without_series = max(0, counts.drop_reasons - MOST_SERIES)
    gauges = (
        ("flows", "Flows in memory.", counts.flows),
        ("hops", "Output ports in memory.", counts.hops),
        ("hops_without_series", "Output ports without series of their own.", max(0, counts.hops - MOST_SERIES)),
        ("drop_reasons_without_series", "Pairs of a node and a reason without series of their own.", without_series),
    )
    for name, about, value in gauges:
        yield exposition.single("gauge", _PREFIX + name, about, value)


def _of_hops(collector: Collector) -> Iterator[Metric]:
    hops = [
        ((str(key.node_id), "unknown" if key.egress_port is None else str(key.egress_port)), state)
        for key, state in collector.hops(first=MOST_SERIES).items()
    ]
    packets = ((labels, state.packets) for labels, state in hops)
    yield exposition.family("counter", _PREFIX + "hop_packets_total", "Reported packets.", _HOP, packets)
    congested = ((labels, state.congested) for labels, state in hops)
    yield exposition.family("counter", _PREFIX + "hop_congested_total", "Reports of congestion.", _HOP, congested)
    about = "Queue that the last reported packet saw."
    last = ((labels, state.queue_last) for labels, state in hops if state.queue_last is not None)
    yield exposition.family("gauge", _PREFIX + "hop_queue_packets", about, _HOP, last)
    longest = ((labels, state.queue_max) for labels, state in hops)
    yield exposition.family("gauge", _PREFIX + "hop_queue_packets_max", "Longest queue reported.", _HOP, longest)
    yield exposition.histogram(
        _PREFIX + "hop_latency_seconds",
        "Time in the node.",
        _HOP,
        [f"{bound / _US_PER_S:g}" for bound in LATENCY_BUCKETS_US],
        (
            (labels, state.latency_buckets, state.latency_count, state.latency_sum / _US_PER_S)
            for labels, state in hops
            if state.latency_count
        ),
    )
