"""Which choice of what the paper leaves open comes closest to Tables 3 and 5.

Distance to a table: the root of the sum of squared differences between our and its goodput changes, in proportion to the root
of the sum of its squares. 0 is agreement, 1 is as bad as saying that nothing ever changes. That to both is their mean. Table 4's
goodput is a column of Table 5. Table 6 is left out: its changes are below 1 %, which takes far more seeds to see than a fit can
have. Rate, buffer and window are varied together, everything else alone around :data:`UNKNOWNS`.

For every candidate the two numbers that conclusions hang on are there too: what a delay of 50 ms gains where the backup is shared,
and what a backup of 100 ms costs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import matplotlib.pyplot as plt
import polars as pl
from matplotlib.figure import Figure

from holdfast import statistics
from holdfast.experiments import Finding, PublishedTable, Setting
from holdfast.experiments.gmpls_tcp_2001 import goodput, longer_path, published, timing
from holdfast.experiments.gmpls_tcp_2001.runs import UNKNOWNS
from holdfast.sweep import Point

RATES_MBPS = (10.0, 20.0)
BUFFERS_PACKETS = (50, 100)
WINDOWS_PACKETS = (20, 32, 64)
"""Varied together: ns-2's buffer and window are 50 and 20."""

OTHERS: tuple[tuple[str, Any], ...] = (
    ("rate_mbps", 34.0),
    ("buffer_packets", 25),
    ("timing_link_ms", 1.0),
    ("timing_link_ms", 20.0),
    ("recovery", "newreno-impatient"),
    ("rto_minimum_ms", 200),
    ("delayed_ack_ms", 100),
)
"""Varied one at a time."""

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
    "table3": timing.points("timing", (0, 50, 250, 1000), published.TIMING_ACCESS_PERCENT),
    "table5": longer_path.points((1, 20, 50, 100), (5, 100), end_s=6.5, curve_ms=0.0),
}
"""Table 3 without delta = 500 ms, and Table 5's first and last column without d = 2 and 10 ms."""

TABLES = {"table3": published.TABLE_3, "table5": published.TABLE_5}

_COMPARED: Mapping[str, tuple[list[str], str, Mapping[str, Any]]] = {
    "table3": (["delta_ms"], "after_failure", {"delta_ms": 0}),
    "table5": (["d_ms", "delta_ms"], "after_failure", {"d_ms": 1}),
}
"""How each table's change is formed: by which columns, of what, against what."""

HANGING_ON: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "delta_50_ms_change_percent": ("table3", {"delta_ms": 50}),
    "d_100_ms_change_percent": ("table5", {"d_ms": 100, "delta_ms": 5}),
}

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
    frames = {table: setting.sweep(f"fit_{table}", goodput.MEASURE, candidate_points(table)) for table in POINTS}
    found = [(unknowns, _numbers(frames, unknowns)) for unknowns in CANDIDATES]
    found.sort(key=lambda each: each[1]["distance"][0])
    rows = [
        {**unknowns, "quantity": name, "ours": value, "low": low, "high": high}
        for unknowns, numbers in found
        for name, (value, low, high) in numbers.items()
    ]
    numbers = pl.DataFrame(rows, schema_overrides={"low": pl.Float64, "high": pl.Float64})
    return Finding(numbers, {"": _picture(numbers, len(setting.seeds))})


FASTER: tuple[Mapping[str, Any], ...] = tuple(
    {**UNKNOWNS, "rate_mbps": rate_mbps, "buffer_packets": buffer, "window_packets": 64}
    for rate_mbps, buffer in ((34.0, 100), (34.0, 200), (155.0, 200), (155.0, 500))
)
"""What section 5 may have had, if it had not what sections 6 to 8 had: more packets on their way per flow."""


def faster_points() -> list[Point]:
    """Table 3's, for these."""
    return [point for unknowns in FASTER for point in goodput.with_defaults(POINTS["table3"], **unknowns)]


def find_faster(setting: Setting) -> Finding:
    """Distances of :data:`FASTER` to Table 3 alone, and the changes themselves."""
    frame = setting.sweep("fit_faster", goodput.MEASURE, faster_points())
    rows: list[dict[str, Any]] = []
    for unknowns in FASTER:
        changes = _changes("table3", frame.filter(pl.col(n) == v for n, v in unknowns.items()))
        near = distance(list(_against(TABLES["table3"], changes).values()))
        rows.append({**unknowns, "quantity": "distance_table3", "ours": near, "low": None, "high": None})
        for found in statistics.summary(changes, ["delta_ms"], "change").iter_rows(named=True):
            name = f"delta_{found['delta_ms']}_ms_change_percent"
            rows.append(
                {**unknowns, "quantity": name, "ours": found["mean"], "low": found["low"], "high": found["high"]}
            )
    return Finding(pl.DataFrame(rows, schema_overrides={"low": pl.Float64, "high": pl.Float64}))


def _as_run(table: str, unknowns: Mapping[str, Any]) -> dict[str, Any]:
    """Only the timing study has links of that delay; elsewhere candidates that differ in nothing else are one."""
    return dict(unknowns) if table == "table3" else {**unknowns, "timing_link_ms": UNKNOWNS["timing_link_ms"]}


def candidate_points(table: str) -> list[Point]:
    """Every candidate's points for a table, each once."""
    points = [
        point for unknowns in CANDIDATES for point in goodput.with_defaults(POINTS[table], **_as_run(table, unknowns))
    ]
    return list({tuple(point.items()): point for point in points}.values())


Interval = tuple[float, float | None, float | None]


def _numbers(frames: Mapping[str, pl.DataFrame], unknowns: Mapping[str, Any]) -> dict[str, Interval]:
    """A candidate's distances and its two changes, each with its interval."""
    changes = {
        table: _changes(table, frame.filter(pl.col(n) == v for n, v in _as_run(table, unknowns).items()))
        for table, frame in frames.items()
    }
    pairs = {table: list(_against(TABLES[table], found).values()) for table, found in changes.items()}
    seeds = range(len(next(iter(pairs.values()))))

    def overall(drawn: Sequence[float]) -> float:
        return sum(distance([of_seeds[int(i)] for i in drawn]) for of_seeds in pairs.values()) / len(pairs)

    low, high = (
        statistics.bootstrap_interval(seeds, overall, resamples=RESAMPLES) if len(seeds) > 1 else (-math.inf, math.inf)
    )
    result: dict[str, Interval] = {"distance": (overall(seeds), low, high)}
    result |= {f"distance_{table}": (distance(of_seeds), None, None) for table, of_seeds in pairs.items()}
    for name, (table, keys) in HANGING_ON.items():
        values = changes[table].filter(pl.col(n) == v for n, v in keys.items())["change"].to_list()
        result[name] = (fmean(values), *statistics.mean_interval(values))
    return result


def _picture(numbers: pl.DataFrame, seeds: int) -> Figure:
    """Every candidate's distances, the best on top; with the interval where there is one."""
    candidates = numbers.filter(pl.col("quantity") == "distance").select(UNKNOWNS.keys()).rows(named=True)
    figure, axis = plt.subplots(figsize=(7, 0.26 * len(candidates) + 1.4), dpi=130)
    for name, colour, marker in (
        ("distance", "#000000", "o"),
        ("distance_table3", "#0072B2", "s"),
        ("distance_table5", "#D55E00", "^"),
    ):
        rows = numbers.filter(pl.col("quantity") == name)
        ours = rows["ours"].to_list()
        heights = [-i for i in range(len(ours))]
        axis.plot(ours, heights, marker, color=colour, markersize=4, label=name.replace("_", " to ", 1))
        if name == "distance":
            axis.hlines(heights, rows["low"].to_list(), rows["high"].to_list(), color=colour, linewidth=0.8)
    axis.set_yticks([-i for i in range(len(candidates))], [_label(each) for each in candidates])
    axis.tick_params(labelsize=7)
    axis.grid(axis="x", color="#DDDDDD", linewidth=0.5)
    axis.set_xlim(left=0)
    axis.set_xlabel("distance (0: agreement, 1: no effect)", fontsize=8)
    axis.set_title(f"distance to the paper's tables, {seeds} seeds; * is what is used", fontsize=9)
    axis.legend(fontsize=7)
    figure.tight_layout()
    return figure


def _label(candidate: Mapping[str, Any]) -> str:
    """Rate, buffer and window, and what else is not as usual."""
    others = [
        f"{name} {value:g}" if isinstance(value, float | int) else str(value)
        for name, value in candidate.items()
        if name not in ("rate_mbps", "buffer_packets", "window_packets") and value != UNKNOWNS[name]
    ]
    name = f"{candidate['rate_mbps']:g} Mb/s, {candidate['buffer_packets']}, {candidate['window_packets']}"
    return ", ".join([name, *others]) + (" *" if dict(candidate) == dict(UNKNOWNS) else "")
