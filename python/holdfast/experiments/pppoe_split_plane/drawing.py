"""The pictures. They do not know how the numbers came about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import polars as pl
from matplotlib.figure import Figure

from holdfast import statistics
from holdfast.experiments.pppoe_split_plane import published

LOOKS = {"single": ("single plane", "#0072B2", "o"), "split": ("split planes", "#D55E00", "s")}
GRID: dict[str, Any] = {"alpha": 0.3}


def _errorbars(axes: Any, frame: pl.DataFrame, over: str, value: str, **look: Any) -> None:
    rows = statistics.summary(frame.sort(over), [over], value)
    mean = rows["mean"]
    lower, upper = ((rows[end] - mean).abs().replace([float("inf")], [0.0]) for end in ("low", "high"))
    axes.errorbar(rows[over], mean, yerr=(lower, upper), markersize=4, capsize=2, linewidth=1, **look)


def table1(frame: pl.DataFrame) -> Figure:
    """The paper's rows and ours; both tables in milliseconds per packet, so that the row that is left out is there."""
    figure, axes = plt.subplots(figsize=(7.2, 4.2), dpi=130)
    for plane, (label, colour, marker) in LOOKS.items():
        printed = [published.ms_per_packet(count, plane) for count in published.PACKETS]
        axes.plot(published.PACKETS, printed, marker, color=colour, fillstyle="none", label=f"paper, {label}")
        own = frame.filter(plane=plane)
        _errorbars(axes, own, "packets", "latency_ms", color=colour, marker=".", label=f"ours, {label}")
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("packets")
    axes.set_ylabel("ms per packet")
    axes.legend(fontsize=8)
    axes.grid(**GRID)
    figure.tight_layout()
    return figure


def table2(frame: pl.DataFrame) -> Figure:
    """What the paper calls average latency is proportional to the packets."""
    figure, axes = plt.subplots(figsize=(7.2, 4.2), dpi=130)
    for plane, (label, colour, marker) in LOOKS.items():
        column = 1 + published.PLANES.index(plane)
        printed = [each[column] for each in published.LATENCIES]
        axes.plot(published.PACKETS, printed, marker, color=colour, fillstyle="none", label=f"paper, {label}")
        _errorbars(
            axes, frame.filter(plane=plane), "packets", "total_ms", color=colour, marker=".", label=f"ours, {label}"
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("packets")
    axes.set_ylabel("sum of latencies (ms)")
    axes.legend(fontsize=8)
    axes.grid(**GRID)
    figure.tight_layout()
    return figure


def burst(frame: pl.DataFrame) -> Figure:
    """The paper's first ten rows and a burst."""
    figure, axes = plt.subplots(figsize=(7.2, 4.2), dpi=130)
    counts = frame["packets"].unique(maintain_order=True).to_list()
    for plane, (label, colour, marker) in LOOKS.items():
        printed = [published.ms_per_packet(count, plane) for count in counts]
        axes.plot(counts, printed, marker, color=colour, fillstyle="none", label=f"paper, {label}")
        _errorbars(
            axes, frame.filter(plane=plane), "packets", "latency_ms", color=colour, marker=".", label=f"burst, {label}"
        )
    axes.set_ylim(bottom=0)
    axes.set_xlabel("packets")
    axes.set_ylabel("mean latency (ms)")
    axes.legend(fontsize=8)
    axes.grid(**GRID)
    figure.tight_layout()
    return figure


def over(frame: pl.DataFrame, key: str, label: str, quantities: Mapping[str, str], title: str, *, logs: bool) -> Figure:
    """All quantities over a key, both kinds of gateway."""
    lines = (len(quantities) + 1) // 2
    figure, grid = plt.subplots(lines, 2, figsize=(9.2, 2.9 * lines + 0.6), dpi=130, squeeze=False)
    for axes, (value, name) in zip(grid.flat, quantities.items(), strict=False):
        for plane, (plane_label, colour, marker) in LOOKS.items():
            own = frame.filter(plane=plane).drop_nulls(value)
            if len(own):
                _errorbars(axes, own, key, value, color=colour, marker=marker, label=plane_label)
        if logs:
            axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.set_xlabel(label, fontsize=8)
        axes.set_ylabel(name, fontsize=8)
        axes.grid(**GRID)
    for axes in grid.flat[len(quantities) :]:
        axes.set_visible(False)
    grid.flat[0].legend(fontsize=7)
    figure.suptitle(title, fontsize=9)
    figure.tight_layout()
    return figure
