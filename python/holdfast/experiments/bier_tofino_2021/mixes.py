"""Figure 17 and the provisioning rule for BIER: ports for mixes of unicast and multicast, by the formula and by trying.

A BFR has as many edge switches around it as the rule leaves ports for traffic, each with a host that sends unicast to another host
and multicast to a group of n others, as Poisson processes; the BFR recirculates n - 1 times. The load of the links to the BFR is
1/U. If the rule asks for two ports or more, one less is tried too; with less than the one internal port nothing could be
recirculated.

Frames to the BFR have one size. That matters: the paper's R counts packets, and a port carries bits. Some points have unicast
frames of a sixth of that size, with the ports of the rule, for a multicast portion that is counted in packets.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from random import Random
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from holdfast.experiments import Finding, Setting
from holdfast.experiments.bier_tofino_2021 import domain, drawing, load, model, provisioning, published, throughput
from holdfast.network import SimulatedNetwork
from holdfast.sweep import Point
from holdfast.topology import Topology
from holdfast.traffic import UdpStream

NEXT_HOPS = tuple(range(17))
"""The numbers of next hops for the formula. The figure has the even ones; the text speaks of odd ones too."""

TRIED = (6, 16)

UNIFORM, SMALL_UNICAST = provisioning.SIZES, "small unicast"
FRAME_BYTES = {
    UNIFORM: throughput.FRAME_BYTES,
    SMALL_UNICAST: (throughput.FRAME_BYTES + load.OVERHEAD_BYTES) // 6 - load.OVERHEAD_BYTES,
}
"""The bytes of unicast frames; multicast frames have the size of ``uniform`` with their BIER headers."""

KEYS = ("multicast_percent", "next_hops", "sizes", "missing_ports")


def point(
    multicast_percent: float, next_hops: int, missing: int, sizes: str = UNIFORM, run_ms: float = provisioning.RUN_MS
) -> Point:
    """Return a point of the sweep: a BFR with the ports that the rule gives, and ``missing`` recirculation ports less."""
    recirculations = model.recirculations(Fraction(str(multicast_percent)) / 100, next_hops)
    ports, needed = model.provision(recirculations, Fraction(published.UTILISATION_RATIO))
    return {
        "multicast_percent": multicast_percent,
        "next_hops": next_hops,
        "sizes": sizes,
        "missing_ports": missing,
        "ports": ports,
        "recirculation_ports": needed - missing,
        "load": float(ports * recirculations / published.UTILISATION_RATIO / (needed - missing)),
        "run_ms": run_ms,
    }


def _all_points() -> list[Point]:
    found = []
    for percent in published.MULTICAST_PERCENTS:
        for next_hops in TRIED:
            found.append(point(percent, next_hops, 0))
            if int(found[-1]["recirculation_ports"] or 0) > 1:
                found.append(point(percent, next_hops, 1))
    return found + [point(percent, 6, 0, SMALL_UNICAST) for percent in (2.5, 10.0)]


POINTS = _all_points()


def edges(ports: int, recirculation_ports: int) -> Topology:
    """Build the BFR with ``ports`` edge switches around it, and one host at each edge switch."""
    topology = Topology("bfr")
    recirculation = {
        "ports": recirculation_ports,
        "rate_bps": load.LINE_BPS,
        "queue_packets": provisioning.QUEUE_PACKETS,
    }
    topology.add_switch(domain.BFR, queueing={"recirculation": recirculation}, latency_ms=load.PASS_MS)
    line = {"rate_bps": load.LINE_BPS, "queue_packets": 1000}
    for number in range(1, ports + 1):
        topology.add_switch(f"edge{number}")
        topology.add_host(f"h{number}")
        topology.add_link(f"h{number}", f"edge{number}", **line)
        topology.add_link(f"edge{number}", domain.BFR, **line)
    return topology


def groups(ports: int, next_hops: int, seed: int) -> dict[tuple[str, str], list[str]]:
    """Draw a multicast group for the host of each port: ``next_hops`` other hosts. Return them by source and group address."""
    draw = Random(f"groups {seed}")
    found = {}
    for number in range(1, ports + 1):
        others = [f"h{other}" for other in range(1, ports + 1) if other != number]
        found[f"h{number}", f"239.2.0.{number}"] = draw.sample(others, next_hops)
    return found


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Run one mix of traffic; return loss and utilisation of the recirculation ports, and losses of the links behind the BFR.

    The links should lose nothing.
    """
    ports, next_hops = point["ports"], point["next_hops"]
    topology = edges(ports, point["recirculation_ports"])
    members = groups(ports, next_hops, seed)
    controller = domain.controller(topology, members)
    network = SimulatedNetwork(topology, domain.bier_program("recirculate"), [controller], seed=seed)
    multicast = point["multicast_percent"] / 100
    stop_s = point["run_ms"] / 1000
    unicast_bytes = FRAME_BYTES[point["sizes"]]
    # Packets per second of both together that load a link to 1/U.
    mean_bytes = multicast * FRAME_BYTES[UNIFORM] + (1 - multicast) * unicast_bytes
    packets_per_s = load.LINE_BPS / published.UTILISATION_RATIO / 8 / (mean_bytes + load.OVERHEAD_BYTES)
    headers_bytes = load.FRAME_BYTES - load.PAYLOAD_BYTES
    for number, (source, group) in enumerate(members, 1):
        common = {"source": source, "spacing": "poisson", "stop_s": stop_s}
        network.add(
            UdpStream(
                destination=f"h{number % ports + 1}",
                packets_per_s=packets_per_s * (1 - multicast),
                payload_bytes=unicast_bytes - headers_bytes,
                **common,
            )
        )
        network.add(
            UdpStream(
                destination=group,
                packets_per_s=packets_per_s * multicast,
                payload_bytes=load.PAYLOAD_BYTES,
                **common,
            )
        )
    found = provisioning.steady(network, domain.BFR, stop_s)
    recirculation = network.recirculation_statistics(domain.BFR)
    drops = network.node_counters(domain.BFR).queue_drops
    return found | {"lost_elsewhere": drops - sum(port.queue_drops for port in recirculation)}


def find(setting: Setting) -> Finding:
    """Return the finding of Figure 17: the ports by the formula, and the loss in runs of most of its points."""
    frame = setting.sweep("mixes", f"{__name__}:measure", POINTS)
    return Finding(numbers(frame), {"": draw(frame)}, {"runs": frame, "tried": provisioning.tried(frame, KEYS)})


def formula() -> pl.DataFrame:
    """Return a row per multicast portion (percent) and number of next hops: the physical ports in loopback mode (equation 3)."""
    rows = []
    for percent in published.MULTICAST_PERCENTS:
        for next_hops in NEXT_HOPS:
            recirculations = model.recirculations(Fraction(str(percent)) / 100, next_hops)
            _, needed = model.provision(recirculations, Fraction(published.UTILISATION_RATIO))
            rows.append(
                {"multicast_percent": percent, "next_hops": next_hops, "physical_ports": model.physical(needed)}
            )
    return pl.DataFrame(rows)


def numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row per multicast portion, next hops and quantity: ports by the formula (exact), and the runs' loss in percent."""
    keys = ["multicast_percent", "next_hops"]
    exact = formula().select(
        *keys,
        pl.lit("physical_ports").alias("quantity"),
        *(pl.col("physical_ports").cast(pl.Float64).alias(name) for name in ("ours", "low", "high")),
    )
    return pl.concat([exact, *provisioning.losses(frame, keys)])


def draw(frame: pl.DataFrame) -> Figure:
    """Draw Figure 17, and in a second panel the loss in the runs."""
    words = ("average number of next hops n", "{:g} % multicast")
    tried = provisioning.tried(frame, KEYS)
    return drawing.provisioning(formula(), tried, "next_hops", "multicast_percent", words)
