"""Beyond the thesis: HPCC, which steers by INT, beside DCTCP and CUBIC, in an incast of 32 to 1 and in a fat tree.

The network is the paper's (Li and others, SIGCOMM 2019, section 5.1) with all times a hundred times as long, and rates a hundredth:
hosts have 1 Gb/s where the paper has 100, the round trip T is 1.3 ms where it is 13 microseconds. Products of rates and delays are
the same, and so are windows, queues in bytes and slowdowns. The reason is v1model's clock of microseconds.

All switches run ``telemetry.p4`` for transit alone with the load instruction, under every algorithm; their packets wait in the
traffic manager. HPCC's segments carry INT: 16 bytes and 8 per hop, and so do the acknowledgments. The others carry none.

*Slowdown*: time from the SYN to the last byte, over that of the same bytes in an empty network without INT. *Queue*: bytes that
wait at a port towards a host, sampled at equal times: of the incast at the receiver's until the last long flow is over, of the fat
tree at all of them while flows arrive.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import polars as pl
from matplotlib.figure import Figure

from holdfast.experiments import Finding, Part, Setting
from holdfast.experiments.p4_thesis_2021.hpcc_runs import (
    ALGORITHMS,
    CLASSES,
    POINTS,
    QUANTITIES,
    TREE_POINTS,
    TREE_QUANTITIES,
)
from holdfast.experiments.rows import summaries
from holdfast.plots import style

RUNS = "holdfast.experiments.p4_thesis_2021.hpcc_runs"


def find_incast(setting: Setting) -> Finding:
    """Queue and slowdowns of every algorithm and buffer."""
    frame = setting.sweep("hpcc_incast", f"{RUNS}:measure_incast", POINTS)
    found = summaries(frame, ("buffer", "algorithm"), QUANTITIES)
    return Finding(found, {"": draw(found, "buffer", GROUPS, "{} at each port")}, {"runs": frame})


def find_tree(setting: Setting) -> Finding:
    """Queues and slowdowns of every algorithm and load."""
    frame = setting.sweep("hpcc_fat_tree", f"{RUNS}:measure_tree", TREE_POINTS)
    found = summaries(frame, ("load", "algorithm"), TREE_QUANTITIES)
    return Finding(found, {"": draw(found, "load", TREE_GROUPS, "load {:.0%}")}, {"runs": frame})


Groups = tuple[tuple[str, tuple[str, ...]], ...]

GROUPS: Groups = (
    ("queue at the receiver's port (kB)", ("queue_p50_kb", "queue_p95_kb", "queue_p99_kb", "queue_max_kb")),
    ("slowdown", ("long_p50", "long_p99", "short_p50", "short_p99")),
)
TREE_GROUPS: Groups = (
    ("queues at hosts' ports (kB)", ("queue_p95_kb", "queue_p99_kb", "queue_max_kb")),
    ("slowdown", tuple(f"{name}_p{percent}" for name in CLASSES for percent in (50, 95, 99))),
)
LEAST = 0.1
"""What is less is drawn there: the scales are logarithmic."""


def draw(found: pl.DataFrame, by: str, groups: Groups, title: str) -> Figure:
    """Queues and slowdowns with their intervals, a row of panels for each value of ``by``."""
    values = list(dict.fromkeys(found[by]))
    figure, axes = plt.subplots(len(values), len(groups), figsize=(9.0, 2.7 * len(values)), dpi=130, squeeze=False)
    for places, value in zip(axes, values, strict=True):
        for axis, (label, quantities) in zip(places, groups, strict=True):
            for number, algorithm in enumerate(ALGORITHMS):
                shown = found.filter(pl.col(by) == value, pl.col("algorithm") == algorithm)
                rows = {row["quantity"]: row for row in shown.iter_rows(named=True)}
                _points(axis, [rows[quantity] for quantity in quantities], algorithm, 0.12 * (number - 1.5))
            axis.set_yscale("log")
            names = [name.removesuffix("_kb").replace("_", "\n") for name in quantities]
            axis.set_xticks(range(len(quantities)), names)
            axis.tick_params(labelsize=7)
            axis.set_ylabel(label, fontsize=8)
            axis.set_title(title.format(value), fontsize=8)
            axis.grid(axis="y", color="#DDDDDD", linewidth=0.5)
    axes[0][-1].legend(fontsize=7)
    figure.tight_layout()
    return figure


def _points(axis: Any, rows: Sequence[Mapping[str, Any]], algorithm: str, shift: float) -> None:
    look = style(algorithm)
    means = [max(row["ours"], LEAST) for row in rows]
    below = [
        mean - max(row["low"], LEAST) if math.isfinite(row["low"]) else 0.0
        for mean, row in zip(means, rows, strict=True)
    ]
    above = [row["high"] - mean if math.isfinite(row["high"]) else 0.0 for mean, row in zip(means, rows, strict=True)]
    axis.errorbar(
        [place + shift for place in range(len(rows))],
        means,
        yerr=[[max(0.0, reach) for reach in below], [max(0.0, reach) for reach in above]],
        color=look.colour,
        marker=look.marker,
        markersize=4.5,
        linewidth=0,
        elinewidth=0.8,
        capsize=2,
        label=look.label,
    )


PARTS = (
    Part("hpcc_incast", "beyond the thesis", "HPCC by INT, DCTCP and CUBIC: 32 to 1", find_incast, len(POINTS)),
    Part("hpcc_fat_tree", "beyond the thesis", "The same in a fat tree, web search", find_tree, len(TREE_POINTS)),
)
