"""Figure 7: TCP goodput of 1 to 4 client/server pairs with 15 flows each, plain, unprotected and protected, simulated at line rate.

Clients download from their servers over a trunk of 100 Gb/s; with protection, over two. Two things are built in, not found.
Modelled hosts have no processor to be slow: at 100 Gb/s, which the paper's have, one pair fills the trunk. That fewer than four do
not fill it comes from :data:`SLOW_HOST_GBPS`, the rate of the servers' links in a second series, which is chosen for that. And
modelled switches forward at line rate whatever their program does, so a mode can cost goodput only by its headers or by what TCP
makes of it. Runs are short: a round trip is some microseconds, and filling the link takes two or three milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from holdfast import statistics
from holdfast.experiments import Finding, Setting
from holdfast.experiments.p4_protect_2020 import published, setup
from holdfast.experiments.rows import row
from holdfast.network import SimulatedNetwork
from holdfast.plots import intervals, style
from holdfast.results import goodput, tcp_flows
from holdfast.sweep import Point
from holdfast.traffic import TcpOptions, TcpTransfer

LINE_BPS = round(published.LINE_RATE_GBPS * 1e9)

SLOW_HOST_GBPS = 30.0
"""Chosen so that four fill the trunk and three do not: between 25 and 33."""

LINK_DELAY_MS = 0.0005
QUEUE_PACKETS = 1000

START_MS = 0.1
"""Flows start within it, at times drawn from the seed; that is all that the seed does."""


def points(pairs: Sequence[int], hosts_gbps: Sequence[float], warm_up_ms: int, measured_ms: int) -> list[Point]:
    """Return a point for each rate of hosts in Gb/s, number of client/server pairs, and forwarding mode."""
    return [
        {
            "host_gbps": host_gbps,
            "pairs": count,
            "mode": mode,
            "flows": published.FLOWS_PER_PAIR,
            "warm_up_ms": warm_up_ms,
            "measured_ms": measured_ms,
        }
        for host_gbps in hosts_gbps
        for count in pairs
        for mode in published.MODES
    ]


WARM_UP_MS, MEASURED_MS = 4, 6

FOUR_SLOW_MS = (16, 8)
"""The same for four pairs of slow hosts. Their slow start ends with losses at the trunk, not at their own links, and what waits for
these to be repaired is counted when they are: until then goodput is above the line rate for some milliseconds."""


def _all_points() -> list[Point]:
    """Return the points of the study; where one pair fills the line, only one and four pairs are run."""
    line, slow = [published.LINE_RATE_GBPS], [SLOW_HOST_GBPS]
    found: list[Point] = []
    for count in published.PAIRS:
        if count in (1, 4):
            found += points([count], line, WARM_UP_MS, MEASURED_MS)
        found += points([count], slow, *(FOUR_SLOW_MS if count == 4 else (WARM_UP_MS, MEASURED_MS)))
    return found


POINTS = _all_points()


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Run TCP downloads; return the goodput of all flows together in Gb/s after the warm-up, and the segments sent again."""
    pairs = range(1, point["pairs"] + 1)
    line = {"rate_bps": LINE_BPS, "delay_ms": LINK_DELAY_MS, "queue_packets": QUEUE_PACKETS}
    slow = line | {"rate_bps": round(point["host_gbps"] * 1e9)}
    topology = setup.two_ends(point["pairs"], clients=line, servers=slow, path1=line, path2=line, direct=True)
    hosts = [(setup.server(pair), setup.client(pair)) for pair in pairs]
    program, controller = setup.forwarding(point["mode"], hosts)
    # The committed results have the order of packets of one instant that there is without lookahead.
    network = SimulatedNetwork(topology, program, [controller], seed=seed, lookahead=False)
    draw = Random(seed)
    flows = [
        network.add_tcp(
            TcpTransfer(
                source=server,
                destination=client,
                destination_port=5001 + flow,
                start_s=draw.uniform(0, START_MS / 1000),
                options=TcpOptions.linux("cubic"),
                goodput_bin_ms=1,
            )
        )
        for server, client in hosts
        for flow in range(point["flows"])
    ]
    end_ms = point["warm_up_ms"] + point["measured_ms"]
    network.run(end_ms / 1000)
    received = sum(
        int(goodput(network, flow, end_ms).slice(point["warm_up_ms"], point["measured_ms"]).sum()) for flow in flows
    )
    senders = tcp_flows(network, flows)
    return {
        "goodput_gbps": received * 8 / point["measured_ms"] / 1e6,
        "segments_retransmitted": int(senders["segments_retransmitted"].sum()),
        "timeouts": int(senders["timeouts"].sum()),
    }


def find(setting: Setting) -> Finding:
    """Return the finding of Figure 7: TCP goodput in Gb/s by pairs and forwarding mode, and in % of plain forwarding."""
    frame = setting.sweep("goodput", f"{__name__}:measure", POINTS)
    return Finding(numbers(frame), {"": draw(frame)}, {"runs": frame})


def numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row per number of pairs, mode and quantity: goodput in Gb/s, and in % of plain forwarding.

    Rows without a suffix, with which the paper is compared, have hosts slower than the line, as the paper's were; four pairs have
    the same goodput with fast hosts.
    """
    rows: list[dict[str, Any]] = []
    for host_gbps, suffix in ((SLOW_HOST_GBPS, ""), (published.LINE_RATE_GBPS, "_hosts_at_line_rate")):
        chosen = frame.filter(pl.col("host_gbps") == host_gbps)
        if not chosen.is_empty():
            rows += by_pairs_and_mode(chosen, suffix)
    return pl.DataFrame(rows, infer_schema_length=None)


def by_pairs_and_mode(frame: pl.DataFrame, suffix: str = "") -> list[dict[str, Any]]:
    """Return a row per number of pairs and mode with goodput in Gb/s, and with goodput in % of plain forwarding.

    Each is a mean over seeds with its 95 % interval; percentages are of the run with the same seed.
    """
    keys = ["pairs", "mode"]
    relative = statistics.paired(frame, keys, "goodput_gbps", {"mode": "plain"}, ratio=True)
    percent = relative.filter(pl.col("mode") != "plain").with_columns((pl.col("mean", "low", "high") + 1) * 100)
    return [
        row({key: each[key] for key in keys}, quantity + suffix, each)
        for quantity, found in (
            ("goodput_gbps", statistics.summary(frame, keys, "goodput_gbps")),
            ("relative_percent", percent),
        )
        for each in found.iter_rows(named=True)
    ]


def draw(frame: pl.DataFrame) -> Figure:
    """Draw Figure 7: goodput in Gb/s by pairs and mode, a panel per rate of the hosts, with the range that the text gives."""
    chosen = pl.lit(f", chosen so that {len(published.PAIRS) - 1} do not fill it")
    named = frame.with_columns(
        pl.concat_str(
            pl.lit("at "),
            pl.col("host_gbps").cast(pl.Int64),
            pl.lit(" Gb/s"),
            pl.when(pl.col("host_gbps") == SLOW_HOST_GBPS).then(chosen).otherwise(pl.lit("")),
        ).alias("hosts")
    )
    found = statistics.summary(named, ["hosts", "pairs", "mode"], "goodput_gbps")
    figure = intervals(
        found,
        "pairs",
        "mode",
        "hosts",
        title="TCP goodput over a trunk of 100 Gb/s, simulated",
        xlabel="client/server pairs with 15 flows each",
        ylabel="goodput (Gb/s)",
    )
    pairs = max(published.PAIRS)
    around = published.FIGURE_7.value("goodput_gbps", pairs=pairs, mode="plain")
    low, high = (around + side * published.FIGURE_7.rounding for side in (-1, 1))
    place = found["pairs"].unique(maintain_order=True).to_list().index(pairs)
    for axes in figure.axes:
        axes.fill_between([place - 0.2, place + 0.2], low, high, color=style("paper").colour, alpha=0.4, linewidth=0)
        axes.text(place + 0.2, low - 1, "paper: around 90", fontsize=6.5, ha="right", va="top", color="#444444")
        axes.set_ylim(bottom=0)
    figure.tight_layout()
    return figure
