"""Table 2 and Figure 14: the rate at the last of n next hops for multicast at the line rate, with k recirculation ports.

The network is that of Figure 12: a source, a BFIR, the BFR that is studied, and n BFERs with a subscriber each. All links and the
recirculation ports have 100 Gb/s, simulated at that rate. The source sends as many packets as fill the line to the BFR with their
BIER headers on, so what a next hop gets is counted in BIER frames: the share of them that reach its subscriber, times the rate.

Where the capacity does not suffice, whose packet finds the place that becomes free in a full queue decides: one that goes round
again, or a fresh one. With a constant latency of the switch, a packet that comes back always has the same phase within the time of
a transmission, so the result depends on that phase. The paper does not give it (nor the size of frames, nor the latency); we run
eight phases, with arrivals that jitter by some transmissions, and give the range. Arrivals that do not jitter are a series of
their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from holdfast import statistics
from holdfast.apps.bier.program import header_bytes
from holdfast.apps.ipmc import IpmcController, channel_of, compile_ipmc
from holdfast.experiments import Finding, Setting
from holdfast.experiments.bier_tofino_2021 import domain, drawing, load, model, provisioning, published
from holdfast.network import SimulatedNetwork
from holdfast.parameters import PS_PER_S
from holdfast.sweep import Point
from holdfast.topology import Topology
from holdfast.traffic import UdpStream

SOURCE, BFIR, BFR = "source", "bfir", domain.BFR
GROUP = "239.1.1.1"

QUEUE_PACKETS = provisioning.QUEUE_PACKETS
"""The queue in front of each recirculation port. While it is full, its length changes nothing."""

PHASES = 8
"""The number of latencies that are tried, evenly over the time of a transmission."""

JITTER_FRAMES = 4.0
"""Arrivals at the BFR are late by 0 to so many transmissions."""

WARM_UP_US, MEASURED_US = 100, 500

FRAME_BYTES = load.FRAME_BYTES + header_bytes()
"""The bytes of a packet with its BIER header."""


def point(
    next_hops: int,
    ports: int,
    phase: float = 0.5,
    *,
    replication: str = "recirculate",
    jitter_frames: float = JITTER_FRAMES,
    measured_us: int = MEASURED_US,
) -> Point:
    """Return a point of the sweep: the parameters of one network.

    ``phase``: when a recirculated packet comes back, in transmission times after the packet that set it free.
    """
    return {
        "ports": ports,
        "next_hops": next_hops,
        "phase": phase,
        "replication": replication,
        "jitter_frames": jitter_frames,
        "measured_us": measured_us,
    }


def phases(next_hops: int, ports: int, jitter_frames: float) -> list[Point]:
    """Return a point per phase where the recirculation ports do not suffice for ``next_hops``, and one point where they do."""
    number = 1 if ports >= next_hops - 1 else PHASES
    return [point(next_hops, ports, (i + 0.5) / number, jitter_frames=jitter_frames) for i in range(number)]


CASES = [(n, k) for k in published.RECIRCULATION_PORTS for n in published.NEXT_HOPS]
POINTS = [
    *(each for n, k in CASES for each in phases(n, k, JITTER_FRAMES)),
    *(point(n, published.IPMC, replication="ipmc") for n in published.NEXT_HOPS),
]
EVEN_POINTS = [each for n, k in CASES if k < n - 1 for each in phases(n, k, 0.0)]


def subscriber(next_hop: int) -> str:
    """Return the name of the host behind a next hop. Next hops count from 1, in the order in which the BFR serves them."""
    return f"h{next_hop}"


def figure_12(next_hops: int, ports: int, phase: float, jitter_frames: float, frame_bytes: int) -> Topology:
    """Build the network of Figure 12: source, BFIR, the BFR with ``ports`` recirculation ports, and BFERs with subscribers.

    Links behind the BFR have queues for frames that jitter brings together.
    """
    topology = Topology("figure-12")
    frame_s = (frame_bytes + load.OVERHEAD_BYTES) * 8 / load.LINE_BPS
    recirculation = {"ports": ports, "rate_bps": load.LINE_BPS, "queue_packets": QUEUE_PACKETS}
    latency_ms = round(load.PASS_MS / 1000 / frame_s) * frame_s * 1000
    topology.add_switch(BFIR)
    topology.add_switch(
        BFR,
        queueing={"recirculation": recirculation} if ports else None,
        latency_ms=latency_ms + phase * frame_s * 1000,
    )
    line = {"rate_bps": load.LINE_BPS, "queue_packets": 1000}
    topology.add_host(SOURCE)
    topology.add_link(SOURCE, BFIR, **line)
    late = {"distribution": "uniform", "high_ms": jitter_frames * frame_s * 1000} if jitter_frames else None
    topology.add_link(BFIR, BFR, jitter=late, **line)
    for number in range(1, next_hops + 1):
        topology.add_switch(f"bfer{number}")
        topology.add_host(subscriber(number))
        topology.add_link(BFR, f"bfer{number}", **line)
        topology.add_link(f"bfer{number}", subscriber(number), **line)
    return topology


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Run one network; return the throughput of the first and the last next hop in Gb/s of frames, and recirculation counts."""
    next_hops, ports = point["next_hops"], point["ports"]
    ipmc = point["replication"] == "ipmc"
    frame_bytes = load.FRAME_BYTES if ipmc else FRAME_BYTES
    topology = figure_12(next_hops, ports, point["phase"], point["jitter_frames"], frame_bytes)
    subscribers = [subscriber(number) for number in range(1, next_hops + 1)]
    network = _network(topology, point["replication"], subscribers, seed)
    start_s, end_s = WARM_UP_US * 1e-6, (WARM_UP_US + point["measured_us"]) * 1e-6
    packets_per_s = load.line_packets_per_s(frame_bytes)
    stream = UdpStream(
        source=SOURCE,
        destination=GROUP,
        packets_per_s=packets_per_s,
        payload_bytes=load.PAYLOAD_BYTES,
        stop_s=end_s,
    )
    flow = network.add(stream)
    network.run(end_s)
    found = load.recirculated(network, BFR)
    gbps = published.LINE_GBPS / packets_per_s / (end_s - start_s)
    counts = {}
    for name, host in (("first", subscribers[0]), ("last", subscribers[-1])):
        times_ps = network.received(flow, host=host).received_ps
        counts[name] = sum(1 for time_ps in times_ps if time_ps >= start_s * PS_PER_S)
    return {
        "first_gbps": counts["first"] * gbps,
        "last_gbps": counts["last"] * gbps,
        "loss_of_a_pass": found.loss,
        "utilisation": found.utilisation,
        "max_packets": found.max_packets,
    }


def _network(topology: Topology, replication: str, subscribers: Sequence[str], seed: int) -> SimulatedNetwork:
    if replication == "ipmc":
        members = {channel_of(topology, GROUP, SOURCE): subscribers}
        trees = IpmcController(members, reroute=False, reaction_delay_ms=0.0)
        return SimulatedNetwork(topology, compile_ipmc(), [trees], seed=seed)
    bfr_ids = {f"bfer{number}": number for number in range(1, len(subscribers) + 1)}
    controller = domain.controller(topology, {(SOURCE, GROUP): subscribers}, bfr_ids=bfr_ids)
    return SimulatedNetwork(topology, domain.bier_program(replication), [controller], seed=seed)


def find(setting: Setting) -> Finding:
    """Return the finding of Table 2 and Figure 14: the rate of the last next hop in Gb/s, by the model and simulated."""
    frame = setting.sweep("throughput", f"{__name__}:measure", POINTS)
    # Nothing in them is random.
    even = setting.one_run().sweep("throughput_even", f"{__name__}:measure", EVEN_POINTS)
    frames = {"runs": frame, "even_runs": even}
    return Finding(numbers(frame, even), {"": draw(frame, even), "phases": draw_phases(frame, even)}, frames)


def by_phase(frame: pl.DataFrame, even: pl.DataFrame) -> pl.DataFrame:
    """Return a row per port count, next hops, jitter and phase: the last next hop's mean throughput in Gb/s with its interval.

    Only networks whose recirculation ports do not suffice are included.
    """
    short = pl.concat([frame.filter(pl.col("ports") > 0, pl.col("ports") < pl.col("next_hops") - 1), even])
    keys = ["ports", "next_hops", "jitter_frames", "phase"]
    return statistics.summary(short, keys, "last_gbps")


def numbers(frame: pl.DataFrame, even: pl.DataFrame) -> pl.DataFrame:
    """Return a row per number of ports, number of next hops and quantity, with its value ``ours`` and its range in Gb/s.

    ``measured_gbps`` (from ``frame``) is the mean over all phases, with a range from the lowest to the highest end of the phases'
    confidence intervals. ``even_gbps`` (from ``even``) is the mean of the phases' means, from the lowest to the highest of these.
    ``model_gbps`` is the model's exact result. A phase is the time, within that of a transmission, at which a recirculated packet
    comes back.
    """
    rows: list[dict[str, Any]] = []
    for quantity, chosen, ends in (("measured_gbps", frame, ("low", "high")), ("even_gbps", even, ("mean", "mean"))):
        found = statistics.summary(chosen, ["ports", "next_hops", "phase"], "last_gbps")
        for (ports, next_hops), group in found.group_by(["ports", "next_hops"], maintain_order=True):
            key = {"ports": ports, "next_hops": next_hops, "quantity": quantity}
            interval = {"low": group[ends[0]].min(), "high": group[ends[1]].max()}
            rows.append(key | {"ours": group["mean"].mean()} | interval)
    for next_hops, ports in CASES:
        exact = model.throughput_gbps(next_hops, next_hops, ports)
        key = {"ports": ports, "next_hops": next_hops, "quantity": "model_gbps"}
        rows.append(key | {"ours": exact, "low": exact, "high": exact})
    return pl.DataFrame(rows).select("ports", "next_hops", "quantity", "ours", "low", "high")


def draw(frame: pl.DataFrame, even: pl.DataFrame) -> Figure:
    """Draw Figure 14: the last next hop's throughput in Gb/s by next hops and ports, of the paper, the model and our runs."""
    rows = numbers(frame, even).iter_rows(named=True)
    ours = {(row["ports"], row["next_hops"], row["quantity"]): row for row in rows}
    columns = []
    for ports in (*published.RECIRCULATION_PORTS, published.IPMC):
        for next_hops in published.NEXT_HOPS:
            found = ours[ports, next_hops, "measured_gbps"]
            exact = ours.get((ports, next_hops, "model_gbps"))
            where = f"{ports} port{'s' * (ports > 1)}" if ports else "IPMC"
            columns.append(
                {
                    "label": f"{next_hops} NH\n{where}",
                    "paper": published.TABLE_2.value("measured_gbps", ports=ports, next_hops=next_hops),
                    "model": exact["ours"] if exact else None,
                    **{name: found[name] for name in ("ours", "low", "high")},
                }
            )
    return drawing.throughput(columns, title="Throughput of the last next hop, simulated at 100 Gb/s")


def draw_phases(frame: pl.DataFrame, even: pl.DataFrame) -> Figure:
    """Draw throughput in Gb/s over the phase where ports do not suffice, with the paper's measurement and the model."""
    panels = []
    for (ports, next_hops), group in by_phase(frame, even).group_by(["ports", "next_hops"], maintain_order=True):
        panels.append(
            {
                "title": f"{next_hops} next hops, {ports} port{'s' * (ports > 1)}",
                "paper": published.TABLE_2.value("measured_gbps", ports=ports, next_hops=next_hops),
                "model": model.throughput_gbps(next_hops, next_hops, ports),
                "rows": group,
            }
        )
    return drawing.phases(panels)
