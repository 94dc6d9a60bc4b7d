"""``--telemetry int``: what INT reports say about latency and queues of output ports, before, during and after a failure.

A mechanism's routers run ``telemetry.p4`` instead of their own program, which routes alike: TCP and UDP carry INT-MD through the
network, and the switch of the receiver reports each packet to a collector, a host beside the others. Packets are longer for that,
and reports are traffic like any other: both are part of all figures. Nothing here reads what the simulator knows itself.

Latencies and times are microseconds of the switches' clocks; queues are packets in front of the one that reports. An interval is
that in which a packet left the port.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final, Literal, TypedDict, get_args

import polars as pl

from holdfast._core import Program
from holdfast.apps.telemetry import COLLECTOR_PORT, Instructions, TelemetryController, Watch, compile_telemetry
from holdfast.apps.telemetry import rows as report_rows
from holdfast.apps.telemetry.collector import Collector, Limits
from holdfast.compare.mechanism import Built, Setting
from holdfast.compare.rows import PortRow, TelemetryRow
from holdfast.compare.scenario import Times
from holdfast.compare.traffic_file import Ends
from holdfast.errors import ScenarioError
from holdfast.link import Direction
from holdfast.network import Network
from holdfast.topology import Topology

COLLECTOR: Final = "int_collector"

Interval = Literal["before", "failed", "repaired"]

HOPS = 16
"""That a packet has room for; one on a longer path reports as many, and is counted."""

INSTRUCTIONS = int(
    Instructions.NODE_ID | Instructions.PORTS | Instructions.LATENCY | Instructions.QUEUE | Instructions.EGRESS_TIME
)
HOP_BYTES, HEADER_BYTES = 24, 16

UDP_OFFSET = 14 + 20
"""Of reports, which have no IP options."""

PORT = ("node_id", "egress_port")


def add_collector(topology: Topology, flows: Sequence[Ends]) -> None:
    """Adds the collector, at the switch with most receivers: so most reports go no further than their sink."""
    if COLLECTOR in topology.hosts or COLLECTOR in topology.switches:
        raise ScenarioError(f"the topology has a node {COLLECTOR!r}, which is the name of the reports' collector")
    at = Counter(topology.attachment(receiver).switch for ends in flows for receiver in ends.receivers)
    switch = max(topology.switches, key=lambda name: at[name])
    topology.add_host(COLLECTOR)
    topology.add_link(switch, COLLECTOR, Direction(rate_bps=10_000_000_000))


@cache
def _program() -> Program:
    return compile_telemetry()


def router(setting: Setting, *, reroute: bool) -> Built:
    """What routes like the router of :mod:`holdfast.apps.router`, and reports."""
    watch = [Watch(protocol=protocol, instructions=INSTRUCTIONS, hops=HOPS, drops=False) for protocol in (6, 17)]
    controller = TelemetryController(
        watch,
        collector=COLLECTOR,
        mtu=setting.mtu_for(HEADER_BYTES + HOPS * HOP_BYTES),
        reroute=reroute,
        reaction_delay_ms=setting.reaction_delay_ms,
    )
    return Built(_program(), controller)


class Reports:
    """Takes the collector's packets of a network, and sums them up by port and interval."""

    def __init__(self, times: Times) -> None:
        """The collector of ``holdfast collect`` decodes and counts; hops come from the rows of its reports."""
        self.collector = Collector(Limits(), with_rows=True)
        failure_us, repair_us = (round(at * 1e6) for at in (times.failure_s, times.repair_s))
        left = pl.col("egress_time")
        self._interval = (
            pl.when(left >= repair_us)
            .then(pl.lit("repaired"))
            .when(left >= failure_us)
            .then(pl.lit("failed"))
            .otherwise(pl.lit("before"))
        )
        self._sums = [self._sum_up()]

    def listen(self, network: Network) -> None:
        """From now on."""
        network.add_frame_listener(COLLECTOR, self.frame)

    def frame(self, time_ps: int, frame: bytes) -> None:
        """A frame that reached the collector's host."""
        to_port = int.from_bytes(frame[UDP_OFFSET + 2 : UDP_OFFSET + 4], "big")
        if frame[12:14] == b"\x08\x00" and frame[23] == 17 and to_port == COLLECTOR_PORT:
            self.collector.take(time_ps // 1000, frame[UDP_OFFSET + 8 :])
            if self.collector.core.rows >= report_rows.ROWS:
                self._sums.append(self._sum_up())

    def _sum_up(self) -> pl.DataFrame:
        """The hops that came since the last time, by port and interval."""
        latency, queue = pl.col("latency").cast(pl.UInt64), pl.col("queue_occupancy").cast(pl.UInt64)
        return (
            report_rows.take(self.collector)
            .filter(~pl.col("dropped"))
            .drop_nulls([*PORT, "latency", "queue_occupancy", "egress_time"])
            .group_by(*PORT, self._interval.alias("interval"))
            .agg(
                packets=pl.len().cast(pl.UInt64),
                latency_sum=latency.sum(),
                latency_max=latency.max(),
                queue_sum=queue.sum(),
                queue_max=queue.max(),
            )
        )

    def row(self, topology: Topology) -> TelemetryRow:
        """All that was reported."""
        self._sums.append(self._sum_up())
        sums = ("packets", "latency_sum", "queue_sum")
        by_port = pl.concat(self._sums).group_by(*PORT, "interval")
        found = by_port.agg(*(pl.col(name).sum() for name in sums), pl.col("latency_max", "queue_max").max())
        names = {switch.index: name for name, switch in topology.switches.items()}
        behind = {
            (end, port): other
            for link in topology.links
            for end, port, other in ((link.a, link.a_port, link.b), (link.b, link.b_port, link.a))
        }
        ports: list[PortRow] = [
            {
                "switch": names[it["node_id"]],
                "to": behind[names[it["node_id"]], it["egress_port"]],
                "interval": it["interval"],
                "packets": it["packets"],
                "latency_mean_us": it["latency_sum"] / it["packets"],
                "latency_max_us": it["latency_max"],
                "queue_mean": it["queue_sum"] / it["packets"],
                "queue_max": it["queue_max"],
            }
            for it in found.sort(*PORT, "interval").iter_rows(named=True)
            if (names.get(it["node_id"]), it["egress_port"]) in behind
        ]
        counts, flows = self.collector.counts(), self.collector.flows().values()
        return {
            "reports": counts.reports,
            "reports_lost": counts.reports_lost,
            "malformed": sum(self.collector.malformed().values()),
            "hops_exceeded": sum(flow.hops_exceeded for flow in flows),
            "mtu_exceeded": sum(flow.mtu_exceeded for flow in flows),
            "ports": ports,
        }


INTERVALS: Final[tuple[Interval, ...]] = get_args(Interval)


class PortLine(TypedDict):
    """An output port in the three intervals; None where nothing was reported."""

    switch: str
    to: str
    before: PortRow | None
    failed: PortRow | None
    repaired: PortRow | None


LINES = 16
"""Of ports that are shown for each mechanism."""


def around(topology: Topology, failure: str, row: TelemetryRow, most: int = LINES) -> list[PortLine]:
    """The ports of switches at the failure and beside it; if there are too many, those with the longest latencies."""
    if failure in topology.switches:
        near = {failure}
    else:
        link = topology.links[topology.find_link(failure)]
        near = {link.a, link.b}
    near |= {other for link in topology.links for one, other in ((link.a, link.b), (link.b, link.a)) if one in near}
    lines: dict[tuple[str, str], PortLine] = {}
    for port in row["ports"]:
        if port["switch"] in near and port["to"] != COLLECTOR:
            line = lines.setdefault(
                (port["switch"], port["to"]),
                {"switch": port["switch"], "to": port["to"], "before": None, "failed": None, "repaired": None},
            )
            line[port["interval"]] = port
    order = list(topology.switches)
    shown = sorted(lines.values(), key=_longest_us, reverse=True)[:most]
    return sorted(shown, key=lambda line: (order.index(line["switch"]), line["to"]))


def _longest_us(line: PortLine) -> int:
    found = (line[interval] for interval in INTERVALS)
    return max(port["latency_max_us"] for port in found if port is not None)


def cells(port: PortRow | None) -> tuple[str, str]:
    """Latency and queue, mean and largest, as text."""
    if port is None:
        return "-", "-"
    return (
        f"{port['latency_mean_us']:,.0f} / {port['latency_max_us']:,}",
        f"{port['queue_mean']:.1f} / {port['queue_max']}",
    )


def frame(rows: Iterable[tuple[Mapping[str, object], TelemetryRow]]) -> pl.DataFrame:
    """A row per run, port and interval."""
    return pl.DataFrame(
        [{**point, **port} for point, row in rows for port in row["ports"]],
        infer_schema_length=None,
    )
