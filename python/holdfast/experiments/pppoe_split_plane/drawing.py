"""The pictures. They do not know how the numbers came about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    """Draw Table 1 in ms per packet over the number of packets: the paper's rows and ours, for both kinds of gateway.

    The row that the paper's first table leaves out is known in ms per packet, so it is drawn too.
    """
    figure, axes = _beside(frame, published.PACKETS, published.ms_per_packet, "latency_ms", "ours")
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    return _labelled(figure, axes, "ms per packet")


def table2(frame: pl.DataFrame) -> Figure:
    """Draw Table 2 over the number of packets: the sum of latencies in ms, the paper's and ours, for both kinds of gateway.

    The paper calls it the average latency, but it grows in proportion to the packets.
    """
    printed = {each[0]: each[1:] for each in published.LATENCIES}
    figure, axes = _beside(
        frame, published.PACKETS, lambda count, plane: printed[count][published.PLANES.index(plane)], "total_ms", "ours"
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    return _labelled(figure, axes, "sum of latencies (ms)")


def burst(frame: pl.DataFrame) -> Figure:
    """Draw the mean latency in ms over the number of packets: the paper's first ten rows, and packets sent all at once."""
    counts = frame["packets"].unique(maintain_order=True).to_list()
    figure, axes = _beside(frame, counts, published.ms_per_packet, "latency_ms", "burst")
    axes.set_ylim(bottom=0)
    return _labelled(figure, axes, "mean latency (ms)")


def _beside(
    frame: pl.DataFrame, counts: Sequence[int], printed: Callable[[int, str], float], value: str, name: str
) -> tuple[Figure, Any]:
    """Draw the paper's numbers (``printed``) and ours (``value`` of ``frame``) over packets, for both kinds of gateway.

    Return the figure and its axes.
    """
    figure, axes = plt.subplots(figsize=(7.2, 4.2), dpi=130)
    for plane, (label, colour, marker) in LOOKS.items():
        paper = [printed(count, plane) for count in counts]
        axes.plot(counts, paper, marker, color=colour, fillstyle="none", label=f"paper, {label}")
        own = frame.filter(plane=plane)
        _errorbars(axes, own, "packets", value, color=colour, marker=".", label=f"{name}, {label}")
    return figure, axes


def _labelled(figure: Figure, axes: Any, quantity: str) -> Figure:
    axes.set_xlabel("packets")
    axes.set_ylabel(quantity)
    axes.legend(fontsize=8)
    axes.grid(**GRID)
    figure.tight_layout()
    return figure


def over(frame: pl.DataFrame, key: str, label: str, quantities: Mapping[str, str], title: str, *, logs: bool) -> Figure:
    """Draw each of ``quantities`` (a label by column) over the column ``key``, a curve per kind of gateway.

    ``label`` is that of the axis of ``key``, which is logarithmic with ``logs``.
    """
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
