"""Beyond the paper: the same BFR with three ways to replicate, and up to 32 next hops.

The BFR of :mod:`throughput` has 32 neighbours, of which n are next hops of the packets that come at the line rate. ``recirculate``
is the paper's way, with one, four and n - 1 recirculation ports. ``one-pass`` makes a copy for every neighbour, and egress drops
those without a bit; ``clusters`` has a multicast group for the n neighbours, as a controller learns it from their BitStrings. Both
need no recirculation port. Their cost is copies in the switch, which are counted; egress takes no time here, so these
copies have no effect on throughput. In hardware they take the rate of its multicast engine and egress pipeline.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from holdfast import statistics
from holdfast.controller import Controller
from holdfast.experiments import Finding, Setting
from holdfast.experiments.bier_tofino_2021 import domain, drawing, load, published, throughput
from holdfast.network import SimulatedNetwork
from holdfast.parameters import PS_PER_S
from holdfast.sweep import Point
from holdfast.traffic import UdpStream

NEIGHBOURS = 32
NEXT_HOPS = (1, 2, 4, 8, 16, 32)

ALL = -1
"""The value in place of a number of recirculation ports: n - 1 of them."""

WARM_UP_US, MEASURED_US = 150, 100

RECIRCULATE, ONE_PASS, CLUSTERS = "recirculate", "one-pass", "clusters"


def point(replication: str, next_hops: int, ports: int) -> Point:
    """Return a point of the sweep: one network with a way to replicate; ``ports`` counts recirculation ports."""
    return {
        "replication": replication,
        "next_hops": next_hops,
        "ports": ports,
        "neighbours": NEIGHBOURS,
        "measured_us": MEASURED_US,
    }


POINTS = [
    *(point(RECIRCULATE, n, ports) for ports in (1, 4, ALL) for n in NEXT_HOPS),
    *(point(way, n, 0) for way in (ONE_PASS, CLUSTERS) for n in NEXT_HOPS),
]


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Run one network; return the last next hop's throughput in Gb/s of BIER frames, and costs per packet.

    The costs are passes through ingress, copies sent, and copies dropped.
    """
    next_hops, replication = point["next_hops"], point["replication"]
    ports = max(1, next_hops - 1) if point["ports"] == ALL else point["ports"]
    topology = throughput.figure_12(point["neighbours"], ports, 0.5, throughput.JITTER_FRAMES, throughput.FRAME_BYTES)
    members = {(throughput.SOURCE, throughput.GROUP): [throughput.subscriber(n) for n in range(1, next_hops + 1)]}
    bfr_ids = {f"bfer{number}": number for number in range(1, point["neighbours"] + 1)}
    bier = domain.controller(topology, members, bfr_ids=bfr_ids)
    controllers: list[Controller] = [bier]
    if replication == CLUSTERS:
        controllers.append(domain.Clusters(bier, [[f"bfer{n}" for n in range(1, next_hops + 1)]]))
    network = SimulatedNetwork(topology, domain.bier_program(replication), controllers, seed=seed)
    packets_per_s = load.line_packets_per_s(throughput.FRAME_BYTES)
    start_s, end_s = WARM_UP_US * 1e-6, (WARM_UP_US + point["measured_us"]) * 1e-6
    stream = UdpStream(
        source=throughput.SOURCE,
        destination=throughput.GROUP,
        packets_per_s=packets_per_s,
        payload_bytes=load.PAYLOAD_BYTES,
        stop_s=end_s,
    )
    flow = network.add(stream)
    network.run(start_s)
    before = _counts(network)
    network.run(end_s)
    after = _counts(network)
    received = after["received"] - before["received"]
    times_ps = network.received(flow, host=throughput.subscriber(next_hops)).received_ps
    arrived = sum(1 for time_ps in times_ps if time_ps >= start_s * PS_PER_S)
    per_packet = {name: (after[name] - before[name]) / received for name in after if name != "received"}
    return {"last_gbps": arrived * published.LINE_GBPS / packets_per_s / (end_s - start_s), **per_packet}


def _counts(network: SimulatedNetwork) -> dict[str, int]:
    """Return what the BFR has counted until now: packets received, passes through ingress, copies sent and copies dropped."""
    counters = network.node_counters(domain.BFR)
    ports = network.recirculation_statistics(domain.BFR)
    return {
        "received": counters.received,
        "passes": counters.received + sum(port.passes for port in ports),
        "copies_sent": counters.sent,
        "copies_dropped": network.devices[domain.BFR].switch.drops().get("egress_drop", 0),
    }


def find(setting: Setting) -> Finding:
    """Return the finding on ways to replicate: throughput, passes and copies by the number of next hops (not in the paper)."""
    frame = setting.sweep("replication", f"{__name__}:measure", POINTS)
    return Finding(numbers(frame), {"": draw(frame)}, {"runs": frame})


def numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row per way to replicate, recirculation ports, next hops and quantity: the mean with its 95 % interval."""
    keys = ["replication", "ports", "next_hops"]
    found = []
    for value in ("last_gbps", "passes", "copies_sent", "copies_dropped"):
        rows = statistics.summary(frame, keys, value)
        found.append(rows.select(*keys, pl.lit(value).alias("quantity"), pl.col("mean").alias("ours"), "low", "high"))
    return pl.concat(found)


def draw(frame: pl.DataFrame) -> Figure:
    """Draw three panels over the number of next hops: throughput of the last one, passes, and copies dropped."""
    return drawing.replication(
        statistics.summary(frame, ["replication", "ports", "next_hops"], "last_gbps"),
        statistics.summary(frame, ["replication", "ports", "next_hops"], "passes"),
        statistics.summary(frame, ["replication", "ports", "next_hops"], "copies_dropped"),
    )
