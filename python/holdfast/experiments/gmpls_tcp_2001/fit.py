"""Which choice of what the paper leaves open comes closest to Tables 3, 5 and 6.

Distance to a table: the root of the sum of squared differences between our and its goodput changes, in proportion to the root of
the sum of its squares. 0 is agreement, 1 is as bad as saying that nothing ever changes. That to all is the mean of the three (Table
4's goodput is a column of Table 5). Rate, buffer and window are varied together, every other unknown alone around :data:`UNKNOWNS`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from holdfast import plots, statistics
from holdfast.experiments import Finding, PublishedTable, Setting
from holdfast.experiments.gmpls_tcp_2001 import goodput, longer_path, published, switch_back, timing
from holdfast.experiments.gmpls_tcp_2001.runs import UNKNOWNS
from holdfast.sweep import Point

RATES_MBPS = (10.0, 15.0, 20.0, 25.0, 34.0, 45.0)
BUFFERS_PACKETS = (50, 100, 200)
WINDOWS_PACKETS = (20, 64)
OTHERS: tuple[tuple[str, Any], ...] = (
    ("recovery", "newreno-impatient"),
    ("rto_minimum_ms", 200),
    ("delayed_ack_ms", 100),
)

CANDIDATES: tuple[Mapping[str, Any], ...] = (
    *(
        {**UNKNOWNS, "rate_mbps": rate_mbps, "buffer_packets": buffer, "window_packets": window}
        for rate_mbps in RATES_MBPS
        for buffer in BUFFERS_PACKETS
        for window in WINDOWS_PACKETS
    ),
    *({**UNKNOWNS, name: value} for name, value in OTHERS),
)

POINTS: Mapping[str, Sequence[Point]] = {
    "table3": timing.points("timing", published.TIMING_DELTA_MS, published.TIMING_ACCESS_PERCENT),
    "table5": longer_path.points((1, 10, 20, 50, 100), (5, 20, 100), end_s=6.5, curve_ms=0.0),
    "table6": switch_back.points((10, 20, 50, 100), ("electrical", "optical")),
}
"""Where the tables say something: without d = 2 ms, and with three of five delays."""

TABLES = {"table3": published.TABLE_3, "table5": published.TABLE_5, "table6": published.TABLE_6}

_COMPARED: Mapping[str, tuple[list[str], str, Mapping[str, Any]]] = {
    "table3": (["delta_ms"], "after_failure", {"delta_ms": 0}),
    "table5": (["d_ms", "delta_ms"], "after_failure", {"d_ms": 1}),
    "table6": (["d_ms", "strategy"], "after_repair", {"strategy": "electrical"}),
}
"""How each table's change is formed: by which columns, of what, against what."""

RESAMPLES = 400


def _changes(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Of every run: the goodput's change in percent, with the table's keys."""
    by, value, baseline = _COMPARED[table]
    return goodput.relative(frame, by, value, baseline).with_columns(change=pl.col("relative_percent") - 100.0)


def _against(table: PublishedTable, changes: pl.DataFrame) -> dict[int, list[tuple[float, float]]]:
    """By seed: our changes beside the paper's."""
    pairs: dict[int, list[tuple[float, float]]] = {}
    for row in changes.iter_rows(named=True):
        paper = table.value("goodput_change_percent", **{key: row[key] for key in table.keys})
        pairs.setdefault(row["seed"], []).append((row["change"], paper))
    return pairs


def distance(seeds: Sequence[Sequence[tuple[float, float]]]) -> float:
    """Of the seeds' mean changes to the paper's."""
    papers = [paper for _, paper in seeds[0]]
    means = [sum(seed[i][0] for seed in seeds) / len(seeds) for i in range(len(papers))]
    return math.dist(means, papers) / math.hypot(*papers)


def find(setting: Setting) -> Finding:
    """Distances of all candidates, with intervals of a bootstrap over the seeds, the best first."""
    frames = {
        table: setting.sweep(
            f"fit_{table}",
            goodput.MEASURE,
            [point for unknowns in CANDIDATES for point in goodput.with_defaults(points, **unknowns)],
        )
        for table, points in POINTS.items()
    }
    found = [(unknowns, _distances(frames, unknowns)) for unknowns in CANDIDATES]
    found.sort(key=lambda each: each[1]["distance"][0])
    rows = [
        {**unknowns, "quantity": name, "ours": value, "low": low, "high": high}
        for unknowns, distances in found
        for name, (value, low, high) in distances.items()
    ]
    numbers = pl.DataFrame(rows, schema_overrides={"low": pl.Float64, "high": pl.Float64})
    return Finding(numbers, {"": _picture(numbers, len(setting.seeds))})


def _distances(
    frames: Mapping[str, pl.DataFrame], unknowns: Mapping[str, Any]
) -> dict[str, tuple[float, float | None, float | None]]:
    chosen = [pl.col(name) == value for name, value in unknowns.items()]
    pairs = {
        table: list(_against(TABLES[table], _changes(table, frame.filter(*chosen))).values())
        for table, frame in frames.items()
    }
    seeds = range(len(next(iter(pairs.values()))))
    result: dict[str, tuple[float, float | None, float | None]] = {
        f"distance_{table}": (distance(of_seeds), None, None) for table, of_seeds in pairs.items()
    }

    def overall(drawn: Sequence[float]) -> float:
        return sum(distance([of_seeds[int(i)] for i in drawn]) for of_seeds in pairs.values()) / len(pairs)

    low, high = (
        statistics.bootstrap_interval(seeds, overall, resamples=RESAMPLES) if len(seeds) > 1 else (-math.inf, math.inf)
    )
    return {"distance": (overall(seeds), low, high), **result}


def _picture(numbers: pl.DataFrame, seeds: int) -> Figure:
    """The distance over the rate, a curve per buffer and window."""
    together = ("rate_mbps", "buffer_packets", "window_packets")
    base = [pl.col(name) == value for name, value in UNKNOWNS.items() if name not in together]
    rows = (
        numbers.filter(*base)
        .sort("buffer_packets", "window_packets", "rate_mbps")
        .with_columns(buffer_and_window=pl.format("{} and {}", "buffer_packets", "window_packets"))
    )
    panels = pl.DataFrame({"quantity": ["distance", *(f"distance_{table}" for table in TABLES)]})
    return plots.curves(
        panels.join(rows, on="quantity", how="left", maintain_order="left_right"),
        "rate_mbps",
        "ours",
        "buffer_and_window",
        "quantity",
        title=f"distance to the paper's tables, {seeds} seeds",
        xlabel="backbone rate (Mb/s)",
        ylabel="distance (0: agreement, 1: no effect)",
    )
