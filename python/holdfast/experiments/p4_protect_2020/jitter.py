"""Figure 8: round-trip time deviation against uniform jitter on both paths, with and without protection.

The paper's jitter came from tc's netem, a value drawn uniformly per packet. Which values depends on the delay that it is given
beside. *Around* a delay that is large enough it is from 0 to 2J more than the least. At a delay of 0 it is *clipped*:
netem draws from -J to J, and a packet that should leave in the past leaves at once, so half of them have no delay
at all. The paper says only "uniformly distributed"; both are here.

In closed form, let X be a path's delay and M the smaller of two. A round trip has two of them, which scales all standard
deviations by the same square root of two. Around: X/2J is uniform, Var X = 4J^2/12 and Var M = 4J^2/18, so protection leaves
sqrt(2/3) = 82 % of the standard deviation. Clipped: P(X > x) = (1 - x/J)/2 and P(M > x) is its square, Var X = 5J^2/48 and
Var M = 5J^2/144, which leaves sqrt(1/3) = 58 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random
from statistics import fmean, pstdev
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from holdfast import statistics
from holdfast.experiments import Finding, Setting
from holdfast.experiments.p4_protect_2020 import setup
from holdfast.experiments.rows import exact, row
from holdfast.link import Jitter
from holdfast.network import SimulatedNetwork
from holdfast.parameters import PS_PER_MS
from holdfast.plots import intervals
from holdfast.results import packets
from holdfast.sweep import Point
from holdfast.traffic import Ping

LAWS = ("around", "clipped")

MODES = ("unprotected", "protected")

JITTERS_MS = (1.0, 2.0, 3.0, 4.0, 5.0)

PINGS = 1000

APART = 10.0
"""The interval between pings, in multiples of J: more than a round trip lasts, so that none overtakes another."""

CLOSE = (10.0, 2.0, 1.0, 0.5, 0.25, 0.1)
"""The intervals between pings of which some overtake others, in multiples of J."""

CLOSE_JITTER_MS = 5.0

DRAWS = PINGS
"""Delays in the list of a link's direction. A trace is the link's only law that can be clipped."""

MEASURES = ("average_deviation", "mdev", "successive_difference", "mean_delay")
"""Of the round trips: the mean absolute deviation from their mean; the standard deviation, called mdev by ping; the mean
difference of one from the next; their mean."""


def point(law: str, jitter_ms: float, mode: str, apart: float, pings: int) -> Point:
    """Return the parameters of one run as a point of the sweep. ``apart``: the interval of pings in multiples of the jitter."""
    return {"law": law, "jitter_ms": jitter_ms, "mode": mode, "apart": apart, "pings": pings}


def points(jitters_ms: Sequence[float], pings: int) -> list[Point]:
    """Return a point for each law of delays, jitter in ms, and mode, with or without protection."""
    return [point(law, each, mode, APART, pings) for law in LAWS for each in jitters_ms for mode in MODES]


POINTS = points(JITTERS_MS, PINGS)
CLOSE_POINTS = [
    point("around", CLOSE_JITTER_MS, mode, apart, PINGS) for apart in CLOSE for mode in (*MODES, setup.VECTOR)
]


def _delays(law: str, jitter_ms: float, draw: Random) -> tuple[float, ...]:
    """Draw a list of delays in ms that netem adds by ``law``: uniform from 0 to 2J, or uniform from -J to J but at least 0."""
    if law == "around":
        return tuple(draw.uniform(0, 2 * jitter_ms) for _ in range(DRAWS))
    return tuple(max(0.0, draw.uniform(-jitter_ms, jitter_ms)) for _ in range(DRAWS))


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Ping between two hosts over paths with jitter; return :func:`deviations` in ms, and the pings sent and returned.

    Both paths have jitter in both directions, each with its own draws.
    """
    draw = Random(f"jitter {seed}")

    def path() -> dict[str, Any]:
        there, back = (
            Jitter(distribution="trace", delays_ms=_delays(point["law"], point["jitter_ms"], draw)) for _ in range(2)
        )
        return line | {"jitter": there, "reverse": {"jitter": back}}

    line: dict[str, Any] = {"rate_bps": 100_000_000_000, "delay_ms": 0.01, "queue_packets": 1000}
    topology = setup.two_ends(1, clients=line, servers=line, path1=path(), path2=path())
    hosts = (setup.client(1), setup.server(1))
    program, controller = setup.forwarding(point["mode"], [hosts])
    network = SimulatedNetwork(topology, program, [controller], seed=seed)
    interval_ms = point["apart"] * point["jitter_ms"]
    stop_s = (point["pings"] - 0.5) * interval_ms / 1000
    flow = network.add(Ping(source=hosts[0], destination=hosts[1], interval_ms=interval_ms, stop_s=stop_s))
    network.run(stop_s + 8 * point["jitter_ms"] / 1000 + 1)
    frame = packets(network, flow)
    back = frame.filter(pl.col("received_ps").is_not_null() & (pl.col("copy") == 0))
    trips = ((back["received_ps"] - back["sent_ps"]) / PS_PER_MS).to_list()
    return {"sent": frame["sequence"].n_unique(), "returned": len(trips)} | deviations(trips)


def deviations(trips: Sequence[float]) -> dict[str, float]:
    """Return three deviations of the round-trip times ``trips``, and their mean; all are in milliseconds.

    They are the average deviation from the mean, ping's mdev (the standard deviation), and the mean difference of successive trips.
    """
    mean = fmean(trips)
    return {
        "average_deviation": fmean(abs(each - mean) for each in trips),
        "mdev": pstdev(trips),
        "successive_difference": fmean(abs(b - a) for a, b in pairwise(trips)),
        "mean_delay": mean,
    }


def closed_form_percent(law: str) -> float:
    """Return the standard deviation of the delay with protection in percent of that without, by the formula for ``law``."""
    return 100 * math.sqrt({"around": 2 / 3, "clipped": 1 / 3}[law])


def find(setting: Setting) -> Finding:
    """Return the finding of Figure 8: deviation of round trips with protection in % of that without, for both laws of jitter.

    A second figure has pings that follow each other closely.
    """
    frame = setting.sweep("jitter", f"{__name__}:measure", POINTS)
    close = setting.sweep("jitter_close", f"{__name__}:measure", CLOSE_POINTS)
    figures = {"": draw(frame), "close": draw_close(close)}
    return Finding(numbers(frame, close), figures, {"runs": frame, "close_runs": close})


def _ratios(frame: pl.DataFrame, by: Sequence[str], measure: str) -> pl.DataFrame:
    """Return a row per mode with protection and value of ``by``: ``measure`` in percent of that without protection.

    Runs with the same seed are compared.
    """
    found = statistics.paired(frame, [*by, "mode"], measure, {"mode": "unprotected"}, ratio=True)
    protected = found.filter(pl.col("mode") != "unprotected")
    return protected.with_columns((100 * (1 + pl.col(name))).alias(name) for name in ("mean", "low", "high"))


def numbers(frame: pl.DataFrame, close: pl.DataFrame) -> pl.DataFrame:
    """Return a row per law and quantity: deviation with protection in % of that without, and pings lost in %.

    Sums over all jitters are compared, for deviations are proportional to J. Then come rows for pings that are close together.
    """
    rows: list[dict[str, Any]] = []
    for measure_ in MEASURES:
        # One ratio per seed: of the sums over the jitters.
        sums = frame.group_by(["law", "mode", "seed"], maintain_order=True).agg(pl.col(measure_).sum())
        ratios = _ratios(sums, ["law"], measure_).iter_rows(named=True)
        rows += [row({"law": each["law"]}, f"{measure_}_percent", each) for each in ratios]
    rows += [row({"law": law}, "mdev_closed_form_percent", exact(closed_form_percent(law))) for law in LAWS]
    for quantity, found in (
        ("average_deviation_percent", _ratios(close, ["apart"], "average_deviation")),
        ("lost_percent", _lost(close)),
    ):
        pings = found.iter_rows(named=True)
        rows += [row({"law": "around"}, f"{quantity}_{_names(each)}", each) for each in pings]
    return pl.DataFrame(rows, infer_schema_length=None)


def _names(row: Mapping[str, Any]) -> str:
    algorithm = "window" if row["mode"] == "protected" else row["mode"]
    return f"{algorithm}_pings_{row['apart']:g}_j_apart"


def _lost(close: pl.DataFrame) -> pl.DataFrame:
    """Return a row per distance of pings and mode of protection: the mean percentage of pings without an answer."""
    lost = close.with_columns(lost_percent=100 * (1 - pl.col("returned") / pl.col("sent")))
    return statistics.summary(lost.filter(pl.col("mode") != "unprotected"), ["apart", "mode"], "lost_percent")


def draw(frame: pl.DataFrame) -> Figure:
    """Draw Figure 8: average deviation in ms over jitter in ms, a panel per law; dashed is half of that without protection."""
    named = frame.with_columns(
        netem=pl.when(pl.col("law") == "around").then(pl.lit("from 0 to 2J")).otherwise(pl.lit("max(0, -J to J)"))
    )
    found = statistics.summary(named, ["netem", "jitter_ms", "mode"], "average_deviation")
    figure = intervals(
        found,
        "jitter_ms",
        "mode",
        "netem",
        title="Round-trip times with jitter on both paths",
        xlabel="J (ms)",
        ylabel="average deviation (ms)",
    )
    for axes, (_, rows) in zip(figure.axes, found.group_by(["netem"], maintain_order=True), strict=True):
        without = rows.filter(pl.col("mode") == "unprotected")["mean"].to_list()
        axes.plot(
            range(len(without)),
            [each / 2 for each in without],
            color="#999999",
            linewidth=0.9,
            linestyle="--",
            label="paper: about half",
        )
        axes.set_ylim(bottom=0)
    figure.axes[0].legend(fontsize=6.5)
    return figure


def draw_close(close: pl.DataFrame) -> Figure:
    """Draw deviation in % of that without protection, and pings lost in %, by algorithm, over the distance of pings."""
    columns = ("apart", "mode", "mean", "low", "high")
    ratio = _ratios(close, ["apart"], "average_deviation").select(columns)
    both = pl.concat(
        [
            ratio.with_columns(what=pl.lit("average deviation, % of unprotected")),
            _lost(close).select(columns).with_columns(what=pl.lit("pings lost, %")),
        ]
    ).with_columns(pl.col("mode").replace({"protected": "window"}).alias("algorithm"))
    figure = intervals(
        both,
        "apart",
        "algorithm",
        "what",
        title="Pings close together: the window drops what is overtaken, the vector does not",
        xlabel="time between pings, in J",
        ylabel="%",
    )
    for axes in figure.axes:
        axes.set_title(axes.get_title().removeprefix("what "), fontsize=8)
    figure.axes[0].set_ylim(bottom=-4)
    return figure
