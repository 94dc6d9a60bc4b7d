"""Networks of :mod:`holdfast.experiments.p4_thesis_2021.hpcc`: an incast and a fat tree, and what queues and flows did there."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

from holdfast import topologies
from holdfast._core import Program
from holdfast.apps.telemetry import TelemetryController, compile_telemetry
from holdfast.network import SimulatedNetwork
from holdfast.paths import path_delay_ms
from holdfast.sweep import Point
from holdfast.topology import Topology
from holdfast.traffic import TcpOptions, TcpTransfer

SCALE = 100
"""The factor by which times are longer, and rates lower, than the paper's."""

HOST_BPS = 1_000_000_000
TRUNK_BPS = 40_000_000_000
"""Ten times the paper's 4: the switches before the receiver's have no queues, as with the many links of its fat tree."""

LINK_MS = 0.15
BASE_RTT_MS = 1.3
SEGMENT_BYTES = 1000
HEADERS_BYTES = 14 + 20 + 32
WIRE_BYTES = 24
"""Frame check sequence, preamble and gap."""

INT_BYTES = 16 + 3 * 8
"""The bytes of INT in a segment at the receiver, behind three switches."""

RACKS, SENDERS_OF_RACK = 4, 8
INCAST_BYTES = 500_000
SHORT_BYTES = 10_000
SHORT_FLOWS = 40
INCAST_S = RACKS * SENDERS_OF_RACK * INCAST_BYTES * (1 + (HEADERS_BYTES + WIRE_BYTES) / SEGMENT_BYTES) * 8 / HOST_BPS
"""The time that the receiver's link needs for all of it."""

BUFFERS: Mapping[str, int] = {"32 MB": 32_000_000, "1 MB": 1_000_000}
"""The bytes of the queue at each port. The paper's switches share 32 MB.

With as much at each port nothing is lost, as there, where PFC sees to it.
"""

MARK_BYTES = {"dctcp": 300_000, "dctcp-30k": 30_000}
"""DCTCP's threshold: 30 kB per 10 Gb/s of the unscaled rate; and a tenth of it: a seventh of rate times round trip is 23 kB."""

ALGORITHMS = ("hpcc", "dctcp", "dctcp-30k", "cubic")

SAMPLE_S = 0.0001
QUANTITIES = (
    "queue_p50_kb",
    "queue_p95_kb",
    "queue_p99_kb",
    "queue_max_kb",
    "long_p50",
    "long_p99",
    "short_p50",
    "short_p99",
    "lost",
    "int_percent",
)
"""Queues in kilobytes, slowdowns of long and short flows, packets dropped, and the share of INT in the bytes that hosts sent."""

POINTS: list[Point] = [{"buffer": buffer, "algorithm": algorithm} for buffer in BUFFERS for algorithm in ALGORITHMS]


@cache
def program() -> Program:
    """Compile ``telemetry.p4`` for transit switches, with the instruction for load, once per process."""
    return compile_telemetry(transit_only=True, load=True)


def options(algorithm: str, rate_bps: int = HOST_BPS, base_rtt_ms: float = BASE_RTT_MS) -> TcpOptions:
    """Return a host's TCP options: those common to all algorithms, and those of ``algorithm``.

    All times are a hundred times as long: unscaled, the first timeout is 1 ms and the least timeout 0.1 ms.
    """
    common = TcpOptions(
        mss=SEGMENT_BYTES,
        recovery="rack-tlp",
        timestamps=True,
        delayed_ack_ms=0,
        nagle=False,
        window_limit_bytes=1 << 26,
        rto_minimum_ms=10.0,
        rto_granularity_ms=1.0,
        rto_initial_ms=100.0,
    )
    if algorithm == "hpcc":
        return common.changed(TcpOptions(congestion="hpcc", hpcc_rate_bps=rate_bps, hpcc_base_rtt_ms=base_rtt_ms))
    if algorithm == "cubic":
        return common.changed(TcpOptions(congestion="cubic"))
    dctcp = TcpOptions(congestion="dctcp", ecn=True)
    if algorithm == "dctcp":
        # As in the HPCC authors' simulator, it begins at the rate of the link, with HPCC's first window.
        first = math.ceil(rate_bps / 8 * base_rtt_ms / 1000 / SEGMENT_BYTES)
        dctcp = dctcp.changed(TcpOptions(initial_window_segments=first))
    return common.changed(dctcp)


def incast_topology(algorithm: str, buffer: int) -> Topology:
    """Build the incast: four racks of eight senders and one host for short flows each, a spine, and the receiver's rack.

    ``algorithm``: the hosts' congestion control; for DCTCP, queues mark packets above its threshold in ``MARK_BYTES``. ``buffer``:
    bytes of the queue at each port.
    """
    topology = Topology("incast")
    mark = {"mark_above": {"bytes": MARK_BYTES[algorithm]}} if algorithm in MARK_BYTES else {}
    line = {"delay_ms": LINK_MS, "queue_bytes": buffer, **mark}
    for name in ("spine", "last", *(f"rack{number}" for number in range(1, RACKS + 1))):
        topology.add_switch(name, queueing={"mode": "traffic_manager"})
    topology.add_host("receiver")
    topology.add_link("last", "receiver", rate_bps=HOST_BPS, **line)
    topology.add_link("spine", "last", rate_bps=TRUNK_BPS, **line)
    for rack in range(1, RACKS + 1):
        topology.add_link(f"rack{rack}", "spine", rate_bps=TRUNK_BPS, **line)
        for name in (*(f"h{rack}_{number}" for number in range(1, SENDERS_OF_RACK + 1)), f"short{rack}"):
            topology.add_host(name)
            topology.add_link(name, f"rack{rack}", rate_bps=HOST_BPS, **line)
    return topology


def ideal_s(size: int, rate_bps: int = HOST_BPS, base_rtt_ms: float = 8 * LINK_MS) -> float:
    """Return the least time of a transfer of ``size`` bytes, in seconds, without INT.

    It is the handshake, the segments at the host's rate, and the propagation of the last segment.
    """
    segments = math.ceil(size / SEGMENT_BYTES)
    wire = size + segments * (HEADERS_BYTES + WIRE_BYTES)
    return 1.5 * base_rtt_ms / 1000 + wire * 8 / rate_bps


def measure_incast(point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Run the incast once; return the queue at the receiver's port in kB, and slowdowns of the flows."""
    algorithm = point["algorithm"]
    topology = incast_topology(algorithm, BUFFERS[point["buffer"]])
    controller = TelemetryController(collector=None, hosts_in_domain=True, reaction_delay_ms=1)
    network = SimulatedNetwork(topology, program(), [controller], seed=seed)
    draws = Random(f"incast {seed}")
    own = options(algorithm)
    first_s = 0.01
    starts: dict[int, tuple[float, int]] = {}
    long_flows, short_flows = [], []

    def transfer(source: str, size: int, start_s: float) -> int:
        flow = network.add_tcp(
            TcpTransfer(
                source=source,
                destination="receiver",
                application="transfer",
                transfer_bytes=size,
                start_s=start_s,
                options=own,
            )
        )
        starts[flow] = (start_s, size)
        return flow

    for rack in range(1, RACKS + 1):
        for number in range(1, SENDERS_OF_RACK + 1):
            # All at once but for 1 microsecond of the paper's time.
            long_flows.append(transfer(f"h{rack}_{number}", INCAST_BYTES, first_s + draws.uniform(0, SCALE * 1e-6)))
    for number in range(SHORT_FLOWS):
        start_s = first_s + draws.uniform(0, INCAST_S)
        short_flows.append(transfer(f"short{number % RACKS + 1}", SHORT_BYTES, start_s))
    (port,) = [link.a_port for link in topology.links if link.b == "receiver"]
    waiting: list[int] = []
    now_s, last_s = first_s, first_s + 40 * INCAST_S
    network.run(now_s)
    while now_s < last_s and any(network.tcp_statistics(flow).finished_ps is None for flow in long_flows):
        for _ in range(20):
            now_s += SAMPLE_S
            network.run(now_s)
            waiting.append(sum(queue.bytes for queue in network.queue_statistics("last") if queue.port == port))
    network.run(now_s + 1)
    return {
        **_queue(waiting),
        **_slowdowns(network, starts, long_flows, "long"),
        **_slowdowns(network, starts, short_flows, "short"),
        "lost": _lost(network),
        "int_percent": _int_percent(network, algorithm, starts),
    }


# ---- The fat tree ----

TREE_K, TREE_TRUNK_BPS, TREE_LINK_MS = 4, 4_000_000_000, 0.1
"""16 hosts where the paper has 320; rates and delays of links are the paper's, scaled."""

WEB_SEARCH = (
    (0, 0), (10_000, 15), (20_000, 20), (30_000, 30), (50_000, 40), (80_000, 53), (200_000, 60), (1_000_000, 70),
    (2_000_000, 80), (5_000_000, 90), (10_000_000, 97), (30_000_000, 100),
)  # fmt: skip
"""Bytes of flows with percents of them that are no larger, as the authors' generator of traffic has them; linear in between."""

LOADS = (0.3, 0.5)
ARRIVALS_S = 0.5
CLASSES: Mapping[str, tuple[int, int]] = {
    "short": (0, 30_000),
    "middle": (30_000, 1_000_000),
    "long": (1_000_000, 30_000_000),
}
"""Classes of flows by bytes: above the first number, up to the second."""

TREE_SAMPLE_S = 0.001
TREE_QUANTITIES = (
    "queue_p95_kb",
    "queue_p99_kb",
    "queue_max_kb",
    *(f"{name}_p{percent}" for name in CLASSES for percent in (50, 95, 99)),
    "lost",
    "unfinished",
)

TREE_POINTS: list[Point] = [{"load": load, "algorithm": algorithm} for load in LOADS for algorithm in ALGORITHMS]


def mean_size() -> float:
    """Return the mean size of the flows of the web search load, in bytes."""
    return sum((low + high) / 2 * (above - below) / 100 for (low, below), (high, above) in pairwise(WEB_SEARCH))


def draw_size(draws: Random) -> int:
    """Draw the size of a flow from the web search load, in bytes."""
    percent = draws.uniform(0, 100)
    for (low, below), (high, above) in pairwise(WEB_SEARCH):
        if percent <= above:
            return max(1, round(low + (high - low) * (percent - below) / (above - below)))
    return WEB_SEARCH[-1][0]


def tree_topology(algorithm: str) -> Topology:
    """Build the fat tree, in which the links of hosts are the bottlenecks: others carry whatever hosts may send."""
    plain = topologies.fat_tree(TREE_K)
    mark = {"mark_above": {"bytes": MARK_BYTES[algorithm]}} if algorithm in MARK_BYTES else {}
    topology = Topology(plain.name)
    for name in plain.switches:
        topology.add_switch(name, queueing={"mode": "traffic_manager"})
    for name in plain.hosts:
        topology.add_host(name)
    for link in plain.links:
        edge = bool(plain.hosts.keys() & {link.a, link.b})
        topology.add_link(
            link.a,
            link.b,
            rate_bps=HOST_BPS if edge else TREE_TRUNK_BPS,
            delay_ms=TREE_LINK_MS,
            queue_bytes=BUFFERS["32 MB"],
            **mark,
        )
    return topology


def measure_tree(point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Run the fat tree once, with Poisson arrivals of flows between random hosts; return queues in kB and slowdowns."""
    found = web_search(tree_topology(point["algorithm"]), point, seed, HOST_BPS, BASE_RTT_MS, ARRIVALS_S)
    del found["queue_p50_kb"]
    return found


# ---- The testbed ----

TESTBED_BPS = 100_000_000
TESTBED_RTT_MS = 2.25
"""For T of 9 microseconds and hosts with 25 Gb/s: the scale is 250 here, as INT has no code for 250 Mb/s."""

TESTBED_RACKS, TESTBED_HOSTS = 2, 16
TESTBED_TRUNK_BPS = 4_000_000_000
TESTBED_LINK_MS, TESTBED_TRUNK_MS = 0.286, 0.192
"""With a segment's and its acknowledgment's own time the round trip is the paper's: 1.35 ms in a rack, and 2.125 ms across."""

TESTBED_ARRIVALS_S = 5.0
"""A flow of the greatest size takes half of it, alone."""

TESTBED_QUANTITIES = ("queue_p50_kb", "queue_p95_kb", "queue_p99_kb", "queue_max_kb", "lost")
TESTBED_POINTS: list[Point] = [{"load": load, "algorithm": "hpcc"} for load in LOADS]


def testbed_topology() -> Topology:
    """Build two racks of 16 hosts, each host with one of its two links, and a switch with enough capacity between the racks."""
    topology = Topology("testbed")
    topology.add_switch("agg", queueing={"mode": "traffic_manager"})
    for rack in range(1, TESTBED_RACKS + 1):
        topology.add_switch(f"tor{rack}", queueing={"mode": "traffic_manager"})
        trunk = {"rate_bps": TESTBED_TRUNK_BPS, "delay_ms": TESTBED_TRUNK_MS}
        topology.add_link(f"tor{rack}", "agg", **trunk, queue_bytes=BUFFERS["32 MB"])
        for number in range(1, TESTBED_HOSTS + 1):
            name = f"h{rack}_{number}"
            topology.add_host(name)
            line = {"rate_bps": TESTBED_BPS, "delay_ms": TESTBED_LINK_MS}
            topology.add_link(name, f"tor{rack}", **line, queue_bytes=BUFFERS["32 MB"])
    return topology


def measure_testbed(point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Run HPCC once in the testbed, with the load of :func:`measure_tree`; return the queues in kB.

    Slowdowns are left out, since the last flows do not end within the run.
    """
    found = web_search(testbed_topology(), point, seed, TESTBED_BPS, TESTBED_RTT_MS, TESTBED_ARRIVALS_S)
    return {name: found[name] for name in TESTBED_QUANTITIES}


# ---- Both ----


def web_search(
    topology: Topology, point: Mapping[str, Any], seed: int, host_bps: int, base_rtt_ms: float, arrivals_s: float
) -> dict[str, float]:
    """Run the web search load between all hosts of ``topology``; return queues at the hosts' ports in kB, and slowdowns."""
    algorithm, load = point["algorithm"], point["load"]
    controller = TelemetryController(collector=None, hosts_in_domain=True, reaction_delay_ms=1)
    network = SimulatedNetwork(topology, program(), [controller], seed=seed)
    draws = Random(f"web search {load} {seed}")
    hosts = list(topology.hosts)
    own = options(algorithm, host_bps, base_rtt_ms)
    # Of the bytes on the wire without INT.
    wire = 1 + (HEADERS_BYTES + WIRE_BYTES) / SEGMENT_BYTES
    flows_per_s = load * host_bps / 8 / (mean_size() * wire) * len(hosts)
    flows: dict[int, tuple[float, int, float]] = {}
    start_s = 0.01
    while (start_s := start_s + draws.expovariate(flows_per_s)) < 0.01 + arrivals_s:
        source, destination = draws.sample(hosts, 2)
        size = draw_size(draws)
        flow = network.add_tcp(
            TcpTransfer(
                source=source,
                destination=destination,
                application="transfer",
                transfer_bytes=size,
                start_s=start_s,
                options=own,
            )
        )
        flows[flow] = (start_s, size, ideal_s(size, host_bps, 2 * path_delay_ms(topology, source, destination)))
    edges = {
        (end, port)
        for link in topology.links
        for end, port, other in ((link.a, link.a_port, link.b), (link.b, link.b_port, link.a))
        if other in topology.hosts
    }
    waiting: list[int] = []
    now_s = 0.01
    while now_s < 0.01 + arrivals_s:
        now_s += TREE_SAMPLE_S
        network.run(now_s)
        for switch in topology.switches:
            by_port: dict[int, int] = {}
            for queue in network.queue_statistics(switch):
                by_port[queue.port] = by_port.get(queue.port, 0) + queue.bytes
            waiting += [by_port.get(port, 0) for end, port in edges if end == switch]
    last_s = now_s + 4
    while now_s < last_s and any(network.tcp_statistics(flow).finished_ps is None for flow in flows):
        now_s += 0.1
        network.run(now_s)
    found = _queue(waiting)
    slowdowns: dict[str, list[float]] = {name: [] for name in CLASSES}
    unfinished = 0
    for flow, (begun_s, size, least_s) in flows.items():
        finished_ps = network.tcp_statistics(flow).finished_ps
        unfinished += finished_ps is None
        took_s = (now_s if finished_ps is None else finished_ps / 1e12) - begun_s
        (name,) = (name for name, (above, most) in CLASSES.items() if above < size <= most)
        slowdowns[name].append(took_s / least_s)
    for name, values in slowdowns.items():
        for percent in (50, 95, 99):
            found[f"{name}_p{percent}"] = percentile(values, percent)
    return {**found, "lost": _lost(network), "unfinished": unfinished}


# ---- All ----


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest of ``values`` that at least ``percent`` percent of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def _queue(waiting: Sequence[int]) -> dict[str, float]:
    found = {f"queue_p{percent}_kb": percentile(waiting, percent) / 1000 for percent in (50, 95, 99)}
    return {**found, "queue_max_kb": max(waiting) / 1000}


def _slowdowns(
    network: SimulatedNetwork, starts: Mapping[int, tuple[float, int]], flows: Sequence[int], name: str
) -> dict[str, float]:
    slowdowns = []
    for flow in flows:
        start_s, size = starts[flow]
        finished_ps = network.tcp_statistics(flow).finished_ps
        slowdowns.append(math.inf if finished_ps is None else (finished_ps / 1e12 - start_s) / ideal_s(size))
    return {f"{name}_p{percent}": percentile(slowdowns, percent) for percent in (50, 99)}


def _lost(network: SimulatedNetwork) -> int:
    """Return the number of packets that full queues dropped in switches and in hosts."""
    topology = network.topology
    switches = sum(network.node_counters(name).queue_drops for name in topology.switches)
    counters = [(link, network.link_counters(link.name)) for link in topology.links]
    return switches + sum(
        (each.a_to_b if link.a in topology.hosts else each.b_to_a).queue_drops
        for link, each in counters
        if topology.hosts.keys() & {link.a, link.b}
    )


def _int_percent(network: SimulatedNetwork, algorithm: str, flows: Iterable[int]) -> float:
    """Return INT headers in percent of the bytes sent to the receiver; SYN segments, one per flow, carry no INT.

    0 if the algorithm is not ``hpcc``.
    """
    if algorithm != "hpcc":
        return 0.0
    segments = sum(network.tcp_statistics(flow).segments_sent - 1 for flow in flows)
    return 100 * segments * INT_BYTES / network.link_counters("last-receiver").a_to_b.frame_bytes
