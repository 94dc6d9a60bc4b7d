"""Table 8: the switching time of each mechanism, and the increase of the round trip, measured with UDP and ping, without TCP.

The paper states both as formulas of Table 7's delays. Here they are found by looking at packets only: the switch is when the first
packet that took the backup passed the node that switches, and round trips are those of ping before and after the failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Any

import polars as pl

from holdfast._core import Program
from holdfast.apps.mpls import Mechanism, MplsController, Recovery, compile_mpls
from holdfast.errors import ExperimentError
from holdfast.experiments import Finding, Setting
from holdfast.experiments.gmpls_tcp_2001 import published
from holdfast.experiments.gmpls_tcp_2001.topology import CASES, FAILING_LINK, Case, Parameters, case_study
from holdfast.network import SimulatedNetwork
from holdfast.parameters import PS_PER_MS
from holdfast.results import packets
from holdfast.statistics import summary
from holdfast.sweep import Point
from holdfast.traffic import Ping, UdpStream

BACKBONE_BPS = 10_000_000_000
"""So fast that sending takes no time to speak of: the formulas are about propagation."""

PACKETS_PER_S = 20_000.0
"""So the moment of the switch is known to 50 us."""

EDGE_MS = 1.0
"""The delay of A-LSR0 and of LSR3-B, as in :mod:`holdfast.experiments.gmpls_tcp_2001.topology`."""

END_S = 8.0
"""The end of a run: there is no repair before."""


@cache
def _program() -> Program:
    return compile_mpls()


def measure(point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Measure switching delays and the change of the round-trip time in ms, for one mechanism in one scenario of Table 7.

    The seed draws the access delay and the times of sending.
    """
    random = Random(seed)
    low_ms, high_ms = published.ACCESS_DELAY_MS
    access_ms = low_ms + (high_ms - low_ms) * random.random()
    case, mechanism = CASES[point["scenario"]], Mechanism(point["mechanism"])
    scenario = case_study(
        Parameters(access_delays_ms=[access_ms], backbone_bps=BACKBONE_BPS), case, Recovery(mechanism)
    )
    network = SimulatedNetwork(
        scenario.topology,
        _program(),
        [MplsController(connections=scenario.connections)],
        seed=seed,
        detection_delay_ms=point["delta_ms"],
    )
    source, sink = scenario.sources[0], scenario.sink
    start_s = published.FAILURE_S - 0.2 + random.random() / PACKETS_PER_S
    streams = [
        network.add(
            UdpStream(
                source=a,
                destination=b,
                packets_per_s=PACKETS_PER_S,
                payload_bytes=100,
                start_s=start_s,
                stop_s=published.FAILURE_S + 0.4,
            )
        )
        for a, b in ((source, sink), (sink, source))
    ]
    ping = network.add(Ping(source=source, destination=sink, interval_ms=20, start_s=start_s - 1.0, stop_s=END_S - 1.0))
    network.set_link(FAILING_LINK, up=False, at_s=published.FAILURE_S)
    network.run(END_S)
    forth, back = (_arrived(network, flow) for flow in streams)
    forth_ms, back_ms = _to_the_switch(mechanism, case, access_ms)
    return {
        "switching_delay_ms": _switched_ms(forth) + forth_ms,
        "reverse_delay_ms": _switched_ms(back) + back_ms,
        "rtt_change_ms": _rtt_change_ms(_arrived(network, ping)),
    }


def _to_the_switch(mechanism: Mechanism, case: Case, access_ms: float) -> tuple[float, float]:
    """Return the delay in ms from each end to the node that switches there, as (from the sources, from the sink).

    That is the node before the failure, or for path protection the node at the path's end.
    """
    at_the_ingress = mechanism == Mechanism.PATH
    forth_ms = access_ms + EDGE_MS + (0.0 if at_the_ingress else case.a)
    return forth_ms, EDGE_MS + (0.0 if at_the_ingress else case.c)


def _arrived(network: SimulatedNetwork, flow: int) -> pl.DataFrame:
    """Return a row per packet that arrived: ``sent_ms``, relative to the failure, and its one-way ``delay_ms``."""
    failure_ps = round(published.FAILURE_S * 1000) * PS_PER_MS
    return (
        packets(network, flow)
        .drop_nulls("received_ps")
        .select(
            sent_ms=(pl.col("sent_ps") - failure_ps) / PS_PER_MS,
            delay_ms=(pl.col("received_ps") - pl.col("sent_ps")) / PS_PER_MS,
        )
    )


def _switched_ms(stream: pl.DataFrame) -> float:
    """Return when the first packet with a longer delay than the first packets was sent, in ms after the failure.

    Raise :class:`ExperimentError` if no packet took the backup path.
    """
    usual_ms = stream["delay_ms"][0]
    late = stream.filter(pl.col("delay_ms") > usual_ms + 0.5)
    if late.is_empty():
        raise ExperimentError("no packet took the backup path")
    return float(late["sent_ms"].to_list()[0])


def _rtt_change_ms(pings: pl.DataFrame) -> float:
    """Return the median round-trip time of the last second minus that before the failure, in ms."""
    before = pings.filter(pl.col("sent_ms") + pl.col("delay_ms") < 0)["delay_ms"].to_list()
    after = pings.filter(pl.col("sent_ms") > (END_S - published.FAILURE_S - 2.0) * 1000)["delay_ms"].to_list()
    return float(sorted(after)[len(after) // 2] - sorted(before)[len(before) // 2])


POINTS: tuple[Point, ...] = tuple(
    {"scenario": scenario.name, "mechanism": mechanism, "delta_ms": published.TABLE_8_DELTA_MS}
    for scenario in published.SCENARIOS
    for mechanism in published.MECHANISMS
)


def find(setting: Setting) -> Finding:
    """Return the finding of Table 8: switching delays and round-trip changes in ms, by scenario and mechanism."""
    frame = setting.sweep("table8", f"{__name__}:measure", POINTS)
    by = list(published.TABLE_8.keys)
    numbers = [
        summary(frame, by, quantity).select(*by, quantity=pl.lit(quantity), ours="mean", low="low", high="high")
        for quantity in published.TABLE_8.columns
    ]
    return Finding(pl.concat(numbers))
