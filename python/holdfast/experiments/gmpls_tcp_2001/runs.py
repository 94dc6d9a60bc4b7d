"""One run of the study: a network, its TCP flows, a failure and a repair, and the data received, in total and over time.

A point (the columns of a sweep) has everything that is varied, the unknowns of :data:`UNKNOWNS` included; start times and access
delays are the seed's alone. So a seed is the same load in every configuration, and differences can be taken seed by seed. The
meaning of the runs is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from random import Random
from statistics import fmean
from typing import Any

import numpy as np
import polars as pl

from holdfast._core import Program
from holdfast.apps.mpls import Mechanism, MplsController, Recovery, compile_mpls
from holdfast.apps.protect import compile_protect
from holdfast.errors import ExperimentError
from holdfast.experiments.gmpls_tcp_2001 import published
from holdfast.experiments.gmpls_tcp_2001.protected import ProtectedPath
from holdfast.experiments.gmpls_tcp_2001.topology import (
    CASES,
    FAILING_LINK,
    Parameters,
    Scenario,
    case_study,
    rtt_change,
    timing,
)
from holdfast.network import SimulatedNetwork
from holdfast.results import tcp_flows
from holdfast.sweep import Point
from holdfast.traffic import TcpOptions, TcpTransfer

UNKNOWNS: Point = {
    "rate_mbps": 10.0,
    "buffer_packets": 50,
    "timing_link_ms": 10.0,
    "window_packets": 32,
    "congestion": "newreno",
    "recovery": "newreno-slow-but-steady",
    "rto_minimum_ms": 1000,
    "delayed_ack_ms": 0,
}
"""Values left open by the paper: TCP as ns-2 had it in that month, the rest as Tables 3 and 5 suggested. ``fit`` varies them."""

DEFAULTS: Point = {
    "source_nodes": published.SOURCE_NODES,
    "flows_per_source_node": published.FLOWS_PER_SOURCE_NODE,
    "preset": "ns2-2001",
    "ecn": False,
    **UNKNOWNS,
}
"""Common values of all points of a part, unless they say otherwise. With ``ecn``, links mark from half of their buffer on."""

PACKET_BYTES = 1000
"""ns-2's packet, in which it counts no header; here it is the IPv4 packet."""

PAYLOAD_BYTES = 960

LABELLED_WIRE_BYTES = PACKET_BYTES + 4 + 14 + 24
ACCESS_WIRE_BYTES = PACKET_BYTES + 14 + 24
"""The size of such a packet on a link between routers and on an access link: a label, Ethernet's header, and 24 bytes of the
physical layer. Rates are scaled by that, so a link carries as many packets per second as in ns-2."""

PROTECT = "protect"
"""The mechanism that is 1+1 protection; the others are :class:`holdfast.apps.mpls.Mechanism`."""

BIN_MS = 10
"""Resolution in which goodput is kept; :data:`holdfast.experiments.gmpls_tcp_2001.published.CURVE_MS` is a multiple."""


@cache
def _program() -> Program:
    """Compile the MPLS program, once per process."""
    return compile_mpls()


@cache
def _protect_program() -> Program:
    return compile_protect()


@dataclass(frozen=True)
class Prepared:
    """A network with its traffic and failures, before it runs; flows by set; until when it is to run; the mean propagation."""

    network: SimulatedNetwork
    sets: Mapping[str, list[int]]
    end_s: float
    base_rtt_ms: float


def prepare(point: Mapping[str, Any], seed: int) -> Prepared:
    """Build the network of ``point`` with its traffic and failures, and return what is to be run until ``end_s``.

    The network is named by the point's ``network``: ``timing``, ``timing_optical``, ``rtt_change`` or ``case_study``.
    """
    draws = _Draws(seed, point["source_nodes"], point["flows_per_source_node"])
    scenario = _scenario(point, draws)
    protects = point.get("mechanism") == PROTECT
    network = SimulatedNetwork(
        scenario.topology,
        _protect_program() if protects else _program(),
        [
            ProtectedPath(scenario.sources, scenario.sink, "LSR0", "LSR3")
            if protects
            else MplsController(connections=scenario.connections)
        ],
        seed=seed,
        detection_delay_ms=0.0 if point["network"] == "timing_optical" else point["delta_ms"],
        # The committed results have the order of packets of one instant that there is without.
        lookahead=False,
    )
    end_s = min(float(point["end_s"]), published.END_S)
    sets = {
        "switched": _transfers(network, scenario.sources, scenario.sink, draws.starts_s("S"), point),
        "fixed": _transfers(network, scenario.fixed_sources, scenario.fixed_sink, draws.starts_s("F"), point),
    }
    _fail(network, point, end_s)
    base_rtt_ms = 2 * (fmean(draws.access_delays_ms("S")) + _fixed_delay_ms(scenario))
    return Prepared(network, sets, end_s, base_rtt_ms)


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Run a point with a seed; return goodput in packets, and the senders' timeouts and retransmitted segments.

    Goodput counts packets that were new and in order at the receivers: ``before_failure`` and ``after_repair`` in 1.5 s,
    ``after_failure`` in ``window_s``, and curves in bins of ``curve_ms`` from the failure on if that is not 0. ``after_repair`` is
    None if the run ends earlier.
    """
    run = prepare(point, seed)
    run.network.run(run.end_s)
    return {"base_rtt_ms": run.base_rtt_ms} | _result(run.network, run.sets, point, run.end_s)


@dataclass(frozen=True)
class _Draws:
    """The random numbers of a seed. Each set of numbers has a generator of its own, so none depends on which others are drawn."""

    seed: int
    source_nodes: int
    flows_per_source_node: int

    def access_delays_ms(self, prefix: str) -> list[float]:
        """Draw an access delay for each source node, in milliseconds; ``prefix`` names the set of flows."""
        random = Random(f"access delay {prefix} {self.seed}")
        low_ms, high_ms = published.ACCESS_DELAY_MS
        return [low_ms + (high_ms - low_ms) * random.random() for _ in range(self.source_nodes)]

    def starts_s(self, prefix: str) -> list[float]:
        """Draw a start for each flow, in seconds, in the order of source nodes; ``prefix`` names the set of flows."""
        random = Random(f"start {prefix} {self.seed}")
        low_s, high_s = published.START_S
        flows = self.source_nodes * self.flows_per_source_node
        return [low_s + (high_s - low_s) * random.random() for _ in range(flows)]


def _scenario(point: Mapping[str, Any], draws: _Draws) -> Scenario:
    network = point["network"]
    parameters = Parameters(
        access_delays_ms=draws.access_delays_ms("S"),
        fixed_access_delays_ms=draws.access_delays_ms("F"),
        backbone_bps=round(point["rate_mbps"] * 1e6 * LABELLED_WIRE_BYTES / PACKET_BYTES),
        access_percent=point["access_percent"] * ACCESS_WIRE_BYTES / LABELLED_WIRE_BYTES,
        buffer_packets=point["buffer_packets"],
        mark_above=point["buffer_packets"] // 2 if point["ecn"] else None,
        timing_link_ms=point["timing_link_ms"],
    )
    if network == "timing":
        return timing(parameters)
    if network == "timing_optical":
        return timing(parameters, recovery=Recovery(), shared=False)
    if network == "rtt_change":
        strategy = point["strategy"]
        recovery = Recovery(Mechanism.LOCAL, revertive=strategy != "none", merge_capable=strategy != "optical")
        return rtt_change(parameters, point["d_ms"], recovery=recovery)
    if network == "case_study":
        mechanism = point["mechanism"]
        switching = None if mechanism == PROTECT else Recovery(Mechanism(mechanism))
        return case_study(parameters, CASES[point["scenario"]], switching)
    raise ExperimentError(f"there is no network {network!r}")


def _fixed_delay_ms(scenario: Scenario) -> float:
    """Return the one-way propagation delay from A to the sink on the working path, in milliseconds."""
    connections = scenario.connections
    path = (connections[0].path if connections else None) or ["LSR0", "LSR1", "LSR2", "LSR3"]
    nodes = ["A", *path, scenario.sink]
    links = [scenario.topology.find_link(f"{a}-{b}") for a, b in pairwise(nodes)]
    return float(sum(scenario.topology.links[link].delay_ms for link in links))


def _transfers(
    network: SimulatedNetwork, sources: Iterable[str], sink: str | None, starts_s: list[float], point: Mapping[str, Any]
) -> list[int]:
    window_bytes = point["window_packets"] * PAYLOAD_BYTES
    options = TcpOptions(
        preset=point["preset"],
        mss=PAYLOAD_BYTES,
        ecn=point["ecn"],
        window_limit_bytes=window_bytes,
        initial_ssthresh_bytes=window_bytes,
        congestion=point["congestion"],
        recovery=point["recovery"],
        rto_minimum_ms=point["rto_minimum_ms"],
        delayed_ack_ms=point["delayed_ack_ms"],
    )
    each = point["flows_per_source_node"]
    return [
        network.add_tcp(
            TcpTransfer(source=name, destination=sink, start_s=start_s, options=options, goodput_bin_ms=BIN_MS)
        )
        for i, name in enumerate(sources)
        if sink is not None
        for start_s in starts_s[i * each : (i + 1) * each]
    ]


def _fail(network: SimulatedNetwork, point: Mapping[str, Any], end_s: float) -> None:
    """Schedule the failure of the link at 5 s, and its repair; switches react ``delta_ms`` after each.

    The repair is also noticed after ``delta_ms``, and the paper's switch-back is at 10 s, so the link comes back ``delta_ms``
    before 10 s; nothing uses it until then. The optical timing study has no switch: there the failure itself lasts ``delta_ms``.
    """
    network.set_link(FAILING_LINK, up=False, at_s=published.FAILURE_S)
    delta_s = point["delta_ms"] / 1000
    if point["network"] == "timing_optical":
        network.set_link(FAILING_LINK, up=True, at_s=published.FAILURE_S + delta_s)
    elif end_s > published.REPAIR_S:
        network.set_link(FAILING_LINK, up=True, at_s=published.REPAIR_S - delta_s)


def _result(
    network: SimulatedNetwork, sets: Mapping[str, list[int]], point: Mapping[str, Any], end_s: float
) -> dict[str, Any]:
    bins = {name: _packets(network, flows, end_s) for name, flows in sets.items()}
    both = bins["switched"] + bins["fixed"]
    window_s = point["window_s"]
    result: dict[str, Any] = {
        "before_failure": _total(both, published.FAILURE_S - published.GOODPUT_WINDOW_S, published.GOODPUT_WINDOW_S),
        "after_failure": _total(both, published.FAILURE_S, window_s),
        "after_repair": _total(both, published.REPAIR_S, published.GOODPUT_WINDOW_S)
        if end_s >= published.REPAIR_S + published.GOODPUT_WINDOW_S
        else None,
    }
    if point["curve_ms"]:
        for name, flows in sets.items():
            if flows:
                result[f"{name}_curve"] = _curve(bins[name], int(point["curve_ms"]))
    senders = tcp_flows(network, [flow for flows in sets.values() for flow in flows])
    return result | {name: int(senders[name].sum()) for name in ("timeouts", "segments_retransmitted")}


def _packets(network: SimulatedNetwork, flows: list[int], end_s: float) -> pl.Series:
    """Return the goodput of ``flows`` together, in packets per bin of ``BIN_MS``, until ``end_s``."""
    count = round(end_s * 1000 / BIN_MS)
    total = np.zeros(count, dtype=np.int64)
    for flow in flows:
        bins = np.asarray(network.tcp_goodput(flow))[:count]
        total[: len(bins)] += bins
    return pl.Series("packets", total) / PAYLOAD_BYTES


def _total(bins: pl.Series, start_s: float, length_s: float) -> float:
    return float(bins.slice(round(start_s * 1000 / BIN_MS), round(length_s * 1000 / BIN_MS)).sum())


def _curve(bins: pl.Series, width_ms: int) -> list[float]:
    """Return the packets from the failure on, summed per ``width_ms``."""
    after = bins.slice(round(published.FAILURE_S * 1000 / BIN_MS)).to_list()
    each = width_ms // BIN_MS
    return [sum(after[i : i + each]) for i in range(0, len(after), each)]
