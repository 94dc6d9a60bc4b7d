"""Beyond the thesis: HPCC, which steers by INT, beside DCTCP and CUBIC, in an incast of 32 to 1 and in a fat tree.

The network is the paper's (Li and others, SIGCOMM 2019, section 5.1) with all times a hundred times as long, and rates a hundredth:
hosts have 1 Gb/s where the paper has 100, the round trip T is 1.3 ms where it is 13 microseconds. Products of rates and delays are
the same, and so are windows, queues in bytes and slowdowns. The reason is v1model's clock of microseconds.

A third network is the paper's testbed, for which it prints queue lengths; there times are 250 times as long.

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

from holdfast.experiments import Criterion, Finding, Part, PublishedTable, Setting
from holdfast.experiments.p4_thesis_2021.hpcc_runs import (
    ALGORITHMS,
    CLASSES,
    POINTS,
    QUANTITIES,
    TESTBED_POINTS,
    TESTBED_QUANTITIES,
    TREE_POINTS,
    TREE_QUANTITIES,
)
from holdfast.experiments.rows import exact, row, summaries
from holdfast.plots import style

RUNS = "holdfast.experiments.p4_thesis_2021.hpcc_runs"


def find_incast(setting: Setting) -> Finding:
    """Return the finding of the incast: queues and slowdowns of flows by buffer and algorithm (HPCC, DCTCP, CUBIC)."""
    return found_incast(setting.sweep("hpcc_incast", f"{RUNS}:measure_incast", POINTS))


def found_incast(frame: pl.DataFrame) -> Finding:
    """Return the incast's finding from its runs: a row per buffer, algorithm and quantity, and the figure."""
    found = summaries(frame, ("buffer", "algorithm"), QUANTITIES)
    return Finding(found, {"": draw(found, "buffer", GROUPS, "{} at each port")}, {"runs": frame})


def find_tree(setting: Setting) -> Finding:
    """Return the finding of the fat tree: queues and slowdowns of flows by load and algorithm (HPCC, DCTCP, CUBIC)."""
    return found_tree(setting.sweep("hpcc_fat_tree", f"{RUNS}:measure_tree", TREE_POINTS))


def found_tree(frame: pl.DataFrame) -> Finding:
    """Return the fat tree's finding from its runs: a row per load, algorithm and quantity, and the figure."""
    found = summaries(frame, ("load", "algorithm"), TREE_QUANTITIES)
    return Finding(found, {"": draw(found, "load", TREE_GROUPS, "load {:.0%}")}, {"runs": frame})


QUEUES_KB: Mapping[tuple[float, str], float] = {
    (0.3, "queue_p50_kb"): 0.0,
    (0.5, "queue_p50_kb"): 0.0,
    (0.5, "queue_p95_kb"): 19.7,
    (0.5, "queue_p99_kb"): 22.9,
}
"""The paper's numbers of its testbed's switches under web search load, by load (sections 1 and 5.2); DCQCN had 1.1 and 2.1 MB."""

MARGIN = 0.1
"""A queue is below the paper's if the upper end of its interval is by this share, and as long if it is 0 like the paper's."""


def _statement(load: float, quantity: str) -> str:
    percent = quantity.removeprefix("queue_p").removesuffix("_kb")
    return (
        f"load {100 * load:g} %: {percent} % of the time the queue is no longer than {QUEUES_KB[load, quantity]:g} kB"
    )


NO_LOSS = "at both loads no packet is lost"

QUEUES = PublishedTable(
    name="hpcc_testbed",
    place="HPCC, sections 1 and 5.2",
    title="queues of HPCC in its authors' testbed, web search; 1: it is so",
    keys=("statement",),
    columns=("holds",),
    rows=(*((_statement(*key), 1) for key in QUEUES_KB), (NO_LOSS, 1)),
    decimals=0,
    criteria={"holds": Criterion(0.0, "it is so or not")},
)


def testbed_numbers(runs: pl.DataFrame) -> pl.DataFrame:
    """Return a row per statement of HPCC's authors (``holds`` is 1 or 0), and a row per load and quantity.

    A statement on a queue holds if the upper end of our interval is below the printed number by :data:`MARGIN`.
    """
    found = summaries(runs, ("load",), TESTBED_QUANTITIES)
    most = {(each["load"], each["quantity"]): each["high"] for each in found.iter_rows(named=True)}
    rows = [
        row({"statement": _statement(*key)}, "holds", exact(float(most[key] <= (1 - MARGIN) * paper)))
        for key, paper in QUEUES_KB.items()
    ]
    rows.append(row({"statement": NO_LOSS}, "holds", exact(float(runs["lost"].sum() == 0))))
    loads = pl.format("load {} %", (100 * pl.col("load")).cast(pl.Int64)).alias("statement")
    return pl.concat([pl.DataFrame(rows), found.select(loads, "quantity", "ours", "low", "high")])


def find_testbed(setting: Setting) -> Finding:
    """Return the finding of HPCC's testbed: queues in kB by load, in the network for which its authors print numbers."""
    return found_testbed(setting.sweep("hpcc_testbed", f"{RUNS}:measure_testbed", TESTBED_POINTS))


def found_testbed(frame: pl.DataFrame) -> Finding:
    """Return the testbed's finding from its runs: the authors' statements and every quantity, without a figure."""
    return Finding(testbed_numbers(frame), frames={"runs": frame})


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
"""The least value drawn; lower values are drawn there, as the scales are logarithmic."""


def draw(found: pl.DataFrame, by: str, groups: Groups, title: str) -> Figure:
    """Draw queues and slowdowns of the algorithms with their intervals, a row of panels for each value of ``by``."""
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
    # Above the panels: in each of them it would cover points.
    figure.legend(*axes[0][-1].get_legend_handles_labels(), fontsize=7, loc="upper center", ncols=len(ALGORITHMS))
    figure.tight_layout(rect=(0, 0, 1, 0.96))
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
    Part("hpcc_testbed", QUEUES.place, QUEUES.title, find_testbed, len(TESTBED_POINTS), QUEUES),
)
