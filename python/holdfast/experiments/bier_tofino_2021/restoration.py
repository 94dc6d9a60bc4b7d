"""Figure 11: the time that a cut of a link interrupts multicast, by the reaction: the controller, BIER-FRR, and IP-FRR beneath it.

The network is that of Figure 10: a traffic generator at the Tofino, which is the BFIR, and two BFERs, each linked with it and with
the other. The first has the only subscriber. The link to it is cut, and the time until the subscriber gets something again is
measured.

The time of a controller of their own in the paper is a parameter here: signalling and computation until routes are written, and
until BIFTs are. They are :data:`IP_MS` and :data:`BIER_MS`, so the two numbers that rest on them follow from the parameters, as
0.6 ms does from :data:`DETECTION_MS`. The test covers the rest: the times that count in each case, and that nothing comes
on top but the time to the next packet. A slower way to the controller, by :data:`SIGNALLING_MS`, delays just the cases that wait
for it. :mod:`restoration_live` measures our own controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from holdfast import statistics
from holdfast.apps.bier.controller import BierController
from holdfast.errors import ExperimentError
from holdfast.experiments import Finding, Setting
from holdfast.experiments.bier_tofino_2021 import domain, drawing, published
from holdfast.experiments.rows import row
from holdfast.network import SimulatedNetwork
from holdfast.parameters import PS_PER_MS
from holdfast.sweep import Point
from holdfast.topology import Topology
from holdfast.traffic import UdpStream

SOURCE, SUBSCRIBER = "generator", "subscriber"
TOFINO, BMV2_1, BMV2_2 = domain.BFR, "bmv2_1", "bmv2_2"
CUT = f"{TOFINO}-{BMV2_1}"
GROUP = "239.1.1.1"

CASES = tuple((row[0], row[1]) for row in published.FIGURE_11.rows)
"""With or without BIER-FRR and IP-FRR."""

DETECTION_MS = 0.5
"""The time from the cut to the switch's port being down."""

IP_MS, BIER_MS = 35.4, 75.4
"""The times from the detection to the new routes and to the new BIFTs: the rest of 36 and 76 ms."""

SIGNALLING_MS = (0.0, 5.0, 20.0)
"""The delay between the switch and its controller, each way. In the paper they are next to each other."""

RATE_BPS = 100_000_000
PAYLOAD_BYTES = 1472
INTERVAL_MS = (PAYLOAD_BYTES + 28 + 14 + 24) * 8 / RATE_BPS * 1000
"""The interval between packets: 0.12 ms."""

BEFORE_MS, AFTER_MS = 5.0, 130.0

POINTS: list[Point] = [
    {"bier_frr": bier_frr, "ip_frr": ip_frr, "signalling_ms": signalling_ms}
    for bier_frr, ip_frr in CASES
    for signalling_ms in SIGNALLING_MS
]


def figure_10(rate_bps: int = 100_000_000_000) -> Topology:
    """Build the network of Figure 10: a source at the Tofino, two BMv2 switches in a triangle with it, and a subscriber."""
    topology = Topology("figure-10")
    for switch in (TOFINO, BMV2_1, BMV2_2):
        topology.add_switch(switch)
    topology.add_host(SOURCE)
    topology.add_host(SUBSCRIBER)
    for a, b in ((SOURCE, TOFINO), (SUBSCRIBER, BMV2_1), (TOFINO, BMV2_1), (TOFINO, BMV2_2), (BMV2_2, BMV2_1)):
        topology.add_link(a, b, rate_bps=rate_bps)
    return topology


def controller(topology: Topology, point: Mapping[str, Any], ip_ms: float, bier_ms: float) -> BierController:
    """Build a controller that reroutes after a failure, with or without BIER-FRR and IP-FRR as ``point`` says.

    ``ip_ms`` and ``bier_ms``: the delays until the controller has new IP routes and new BIER entries.
    """
    return domain.controller(
        topology,
        {(SOURCE, GROUP): [SUBSCRIBER]},
        frr="tunnel" if point["bier_frr"] else "none",
        ip_frr=point["ip_frr"],
        reroute=True,
        ip_delay_ms=ip_ms,
        bier_delay_ms=bier_ms,
    )


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Run one failure; return the time from the cut to the next arrival at the subscriber in ms, and packets lost and duplicated.

    The moment of the cut between two packets is drawn from the seed. Raises :class:`ExperimentError` if nothing arrives after the
    cut.
    """
    topology = figure_10()
    there_and_back_ms = 2 * point["signalling_ms"]
    reacting = controller(topology, point, IP_MS + there_and_back_ms, BIER_MS + there_and_back_ms)
    program = domain.bier_program("recirculate")
    network = SimulatedNetwork(topology, program, [reacting], seed=seed, detection_delay_ms=DETECTION_MS)
    cut_ms = BEFORE_MS + Random(f"cut {seed}").uniform(0, INTERVAL_MS)
    end_s = (BEFORE_MS + AFTER_MS) / 1000
    stream = UdpStream(
        source=SOURCE,
        destination=GROUP,
        packets_per_s=1000 / INTERVAL_MS,
        payload_bytes=PAYLOAD_BYTES,
        stop_s=end_s,
    )
    flow = network.add(stream)
    network.set_link(CUT, up=False, at_s=cut_ms / 1000)
    network.run(end_s + 0.001)
    found = network.statistics(flow, host=SUBSCRIBER)
    cut_ps = cut_ms * PS_PER_MS
    # Packets past the link when it was cut still arrive.
    on_the_way_ps = found.latency_max_ps or 0
    times_ps = network.received(flow, host=SUBSCRIBER).received_ps
    back_ps = min((time_ps for time_ps in times_ps if time_ps > cut_ps + on_the_way_ps), default=None)
    if back_ps is None:
        raise ExperimentError(f"nothing arrives within {AFTER_MS:g} ms after the cut")
    return {
        "restoration_ms": (back_ps - cut_ps) / PS_PER_MS,
        "lost": found.lost,
        "duplicated": found.duplicated,
        "reordered": found.reordered,
    }


def find(setting: Setting) -> Finding:
    """Return the finding of Figure 11: the restoration of each case in ms, with the paper's signalling and with slower one."""
    frame = setting.sweep("restoration", f"{__name__}:measure", POINTS)
    return Finding(numbers(frame), {"": draw(frame)}, {"runs": frame})


def numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row per case and quantity: restoration in ms, packets lost and packets duplicated.

    A case has BIER-FRR, IP-FRR, both or none. Rows with slower signalling say so in the name of the quantity.
    """
    rows: list[dict[str, Any]] = []
    for value in ("restoration_ms", "lost", "duplicated"):
        found = statistics.summary(frame, ["bier_frr", "ip_frr", "signalling_ms"], value)
        for each in found.iter_rows(named=True):
            signalling = each["signalling_ms"]
            suffix = f"_with_signalling_of_{signalling:g}_ms" if signalling else ""
            rows.append(row({name: each[name] for name in ("bier_frr", "ip_frr")}, value + suffix, each))
    return pl.DataFrame(rows)


def draw(frame: pl.DataFrame) -> Figure:
    """Draw Figure 11: restoration time in ms by case, the paper's bars and ours for each delay of signalling."""
    series = {}
    for signalling_ms in SIGNALLING_MS:
        chosen = frame.filter(pl.col("signalling_ms") == signalling_ms)
        label = "simulated" + (f", {signalling_ms:g} ms of signalling" if signalling_ms else "")
        series[label] = statistics.summary(chosen, ["bier_frr", "ip_frr"], "restoration_ms")
    return drawing.restoration(series, title="Restoration of BIER after a cut, computation and signalling as stated")
