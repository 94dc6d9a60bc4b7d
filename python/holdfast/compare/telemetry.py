"""``--telemetry int``: latency and queues of output ports in INT reports, before, during and after a failure.

A mechanism's routers run ``telemetry.p4`` instead of their own program, which routes alike: TCP and UDP carry INT-MD through the
network, and the switch of the receiver reports each packet to a collector, a host beside the others. Packets are longer for that,
and reports are traffic like any other: both are part of all figures. Nothing here reads what the simulator knows itself.

Latencies and times are microseconds of the switches' clocks; queues are packets in front of the one that reports. An interval is
that in which a packet left the port.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypedDict, get_args

from holdfast._core import Program, read_pcap
from holdfast.apps.telemetry import COLLECTOR_PORT, Instructions, TelemetryController, Watch, compile_telemetry
from holdfast.apps.telemetry.collector import Collector, Limits
from holdfast.compare.failures import failing
from holdfast.compare.inputs import Times
from holdfast.compare.mechanism import Built, Setting
from holdfast.compare.rows import PortRow, TelemetryRow
from holdfast.compare.traffic_file import Ends
from holdfast.errors import ScenarioError
from holdfast.link import Direction
from holdfast.network import Network
from holdfast.topology import Topology

if TYPE_CHECKING:
    import polars as pl

COLLECTOR: Final = "int_collector"

Interval = Literal["before", "failed", "repaired"]
INTERVALS: Final[tuple[Interval, ...]] = get_args(Interval)

HOPS = 16
"""The most hops whose metadata fit into a packet; packets on longer paths report as many, and are counted."""

INSTRUCTIONS = int(
    Instructions.NODE_ID | Instructions.PORTS | Instructions.LATENCY | Instructions.QUEUE | Instructions.EGRESS_TIME
)
HOP_BYTES, HEADER_BYTES = 24, 16

UDP_OFFSET = 14 + 20
"""The offset of the UDP header in a report's frame, which has no IP options."""


def add_collector(topology: Topology, flows: Sequence[Ends]) -> None:
    """Add the host that collects INT reports, at the switch with most receivers, so that most reports stay there.

    Raise :class:`ScenarioError` if a node has its name.
    """
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
    """Build a program and a controller that route like :mod:`holdfast.apps.router` and send INT reports.

    ``reroute``: whether the controller plans routes again after a failure.
    """
    watch = [Watch(protocol=protocol, instructions=INSTRUCTIONS, hops=HOPS, drops=False) for protocol in (6, 17)]
    controller = TelemetryController(
        watch,
        collector=COLLECTOR,
        mtu=setting.mtu_for(HEADER_BYTES + HOPS * HOP_BYTES),
        reroute=reroute,
        reaction_delay_ms=setting.reaction_delay_ms,
    )
    return Built(_program(), controller)


@dataclass
class _Port:
    packets: int = 0
    latency_sum: int = 0
    latency_max: int = 0
    queue_sum: int = 0
    queue_max: int = 0


class Reports:
    """Takes the collector's packets of a network, and sums them up by port and interval.

    Runs are forked copies of a process, in which the threads of polars do not exist: the sums are numpy's.
    """

    def __init__(self, times: Times, start_s: float = 0.0) -> None:
        """Make a collector like that of ``holdfast collect``, which decodes reports and keeps a row per hop.

        ``start_s``: when the run began, by the network's clock.
        """
        import numpy as np

        from holdfast.apps.telemetry.rows import ROWS

        self.collector = Collector(Limits(), with_rows=True)
        self._most_rows = ROWS
        self._bounds_us = np.array([round((start_s + at) * 1e6) for at in (times.failure_s, times.repair_s)], np.uint64)
        self._ports: dict[tuple[int, int, Interval], _Port] = {}

    def listen(self, network: Network) -> None:
        """Give each frame that reaches the collector's host from now on to :meth:`frame`."""
        network.add_frame_listener(COLLECTOR, self.frame)

    def frame(self, time_ps: int, frame: bytes) -> None:
        """Hand ``frame`` to the collector if it is a report: IPv4 and UDP to the collector's port."""
        to_port = int.from_bytes(frame[UDP_OFFSET + 2 : UDP_OFFSET + 4], "big")
        if frame[12:14] == b"\x08\x00" and frame[23] == 17 and to_port == COLLECTOR_PORT:
            self.collector.take(time_ps // 1000, frame[UDP_OFFSET + 8 :])
            if self.collector.core.rows >= self._most_rows:
                self._sum_up()

    def _sum_up(self) -> None:
        """Add the hops that came since the last call to the sums of their ports and intervals."""
        import numpy as np

        from holdfast.apps.telemetry.rows import NOT_KNOWN

        data, _ = self.collector.core.take_rows()
        rows = {name: np.frombuffer(values, "<u8") for name, values in data}
        columns = [rows[name] for name in ("node_id", "egress_port", "egress_time", "latency", "queue_occupancy")]
        is_known = np.logical_and.reduce([rows["dropped"] == 0, *(column != NOT_KNOWN for column in columns)])
        node, port, left_us, latency, queue = (column[is_known] for column in columns)
        keys = np.stack([node, port, np.searchsorted(self._bounds_us, left_us, side="right").astype(np.uint64)], axis=1)
        for key in np.unique(keys, axis=0):
            here = (keys == key).all(axis=1)
            at = (int(key[0]), int(key[1]), INTERVALS[int(key[2])])
            found = self._ports.setdefault(at, _Port())
            found.packets += int(here.sum())
            found.latency_sum += int(latency[here].sum())
            found.latency_max = max(found.latency_max, int(latency[here].max()))
            found.queue_sum += int(queue[here].sum())
            found.queue_max = max(found.queue_max, int(queue[here].max()))

    def row(self, topology: Topology) -> TelemetryRow:
        """Return a summary of all reports, with a row for each port and interval: packets, latency in microseconds, and queue."""
        self._sum_up()
        names = {switch.index: name for name, switch in topology.switches.items()}
        behind = {
            (end, port): other
            for link in topology.links
            for end, port, other in ((link.a, link.a_port, link.b), (link.b, link.b_port, link.a))
        }
        ports: list[PortRow] = [
            {
                "switch": names[node],
                "to": behind[names[node], port],
                "interval": interval,
                "packets": found.packets,
                "latency_mean_us": found.latency_sum / found.packets,
                "latency_max_us": found.latency_max,
                "queue_mean": found.queue_sum / found.packets,
                "queue_max": found.queue_max,
            }
            for (node, port, interval), found in sorted(self._ports.items())
            if (names.get(node), port) in behind
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


def read(captured: Path, times: Times, start_s: float, topology: Topology) -> TelemetryRow:
    """Return the summary of the reports in a capture at the collector's host, of a run that began at ``start_s``."""
    reports = Reports(times, start_s)
    for time_ps, frame in read_pcap(captured):
        reports.frame(time_ps, frame)
    return reports.row(topology)


class PortLine(TypedDict):
    """An output port in the three intervals; None where nothing was reported."""

    switch: str
    to: str
    before: PortRow | None
    failed: PortRow | None
    repaired: PortRow | None


LINES = 16
"""The most ports that are shown for each mechanism."""


def around(topology: Topology, failure: str, row: TelemetryRow, most: int = LINES) -> list[PortLine]:
    """Return the ports of the switches at the failure and next to it, ``most`` at most, those with the longest latencies."""
    found = failing(topology, failure)
    near = {end for i in found.links for end in (topology.links[i].a, topology.links[i].b)} | {*found.switches}
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
    """Return texts of latency in microseconds and queue in packets, each ``mean / largest``; hyphens if ``port`` is None."""
    if port is None:
        return "-", "-"
    return (
        f"{port['latency_mean_us']:,.0f} / {port['latency_max_us']:,}",
        f"{port['queue_mean']:.1f} / {port['queue_max']}",
    )


def frame(rows: Iterable[tuple[Mapping[str, object], TelemetryRow]]) -> pl.DataFrame:
    """Return a table with a row per run, port and interval, from (point, reports) pairs."""
    import polars as pl

    return pl.DataFrame(
        [{**point, **port} for point, row in rows for port in row["ports"]],
        infer_schema_length=None,
    )
