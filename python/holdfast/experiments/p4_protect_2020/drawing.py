"""Pictures that only this study has. :mod:`holdfast.plots` has the others, and all colours and markers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import polars as pl
from matplotlib.figure import Figure

from holdfast.plots import style

GRID = {"color": "#DDDDDD", "linewidth": 0.5}


def claim(frame: pl.DataFrame, readings: Mapping[str, float], paper_s: float) -> Figure:
    """Draw packets forwarded twice over the delay of the second path, and how many seconds the window lasts.

    ``frame`` has both in shares of the number space, ``twice`` and ``behind``. ``readings``: the window in seconds, by what is
    taken as a packet's size. ``paper_s``: the paper's window in seconds.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.2, 3.6), dpi=130, width_ratios=(3, 2))
    for key, rows in frame.group_by(["sn_bits"], maintain_order=True):
        bits = int(str(key[0]))
        shade = plt.get_cmap("viridis")(0.9 * (bits - 4) / 8)
        left.plot(
            rows["behind"].to_list(),
            rows["twice"].to_list(),
            color=shade,
            marker="osD^"[bits // 2 % 4],
            markersize=4.5,
            markerfacecolor="none",
            linewidth=0.7,
            label=f"{bits} bits, measured",
        )
    left.axvline(0.5, color="#444444", linewidth=1, linestyle="--", label="the window: half of the space")
    left.set_xlabel("how far path 2 is behind (packets, in number spaces)", fontsize=8)
    left.set_ylabel("forwarded twice (packets, in number spaces)", fontsize=8)
    left.set_title("How late a copy may come before it passes for a new packet", fontsize=9)
    names = list(readings)[::-1]
    bar = right.barh(names, [readings[name] for name in names], color=style("ours").colour, height=0.62)
    right.bar_label(bar, fmt="%.2f", fontsize=7, label_type="center", color="white")
    right.axvline(paper_s, color="#444444", linewidth=1.2, linestyle=":", label=f"paper: {paper_s:g} s")
    right.set_xlim(0, 1.25 * max(readings.values()))
    right.set_xlabel("window of 2^31 packets at 1 Tb/s (s)", fontsize=8)
    right.set_title("by what the 40 bytes count: bytes per copy", fontsize=9)
    _finished(figure, left)
    right.tick_params(labelsize=7)
    right.legend(fontsize=6.5, loc="upper right")
    figure.tight_layout()
    return figure


def bars(
    groups: Mapping[str, Sequence[tuple[str, float, float, float]]], looks: Mapping[str, str], *, title: str
) -> Figure:
    """Draw for each label a bar of each series of ``groups``, in percent of plain forwarding.

    A series, by its name in the legend, is a list of (label, value, low, high), with the same labels in all; a line reaches from
    low to high, and a value of NaN leaves the bar out. ``looks``: the colour of each series.
    """
    figure, axes = plt.subplots(figsize=(8.2, 3.8), dpi=130)
    names = list(groups)
    width = 0.8 / len(names)
    labels = [label for label, *_ in groups[names[0]]]
    for i, name in enumerate(names):
        values = [value for _, value, _, _ in groups[name]]
        places = [tick + (i - (len(names) - 1) / 2) * width for tick in range(len(labels))]
        reach = [
            [max(0.0, value - low) for _, value, low, _ in groups[name]],
            [max(0.0, high - value) for _, value, _, high in groups[name]],
        ]
        axes.bar(
            places,
            values,
            width * 0.94,
            yerr=reach,
            color=looks[name],
            error_kw={"elinewidth": 0.7, "capsize": 1.5, "ecolor": "#444444"},
            label=name,
        )
        for place, value in zip(places, values, strict=True):
            if value == value:
                # At the foot, where no interval's line is.
                axes.text(place, 6, f"{value:.0f}", fontsize=6.5, ha="center", va="bottom", color="white")
    axes.axhline(100, color="#444444", linewidth=0.7, linestyle=":")
    axes.set_xticks(range(len(labels)), labels, fontsize=7.5)
    # Room for the legend.
    axes.set_ylim(0, 1.25 * axes.get_ylim()[1])
    axes.set_ylabel("% of plain forwarding", fontsize=8)
    axes.set_title(title, fontsize=9)
    return _finished(figure, axes)


def timeline(scenarios: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw one panel per scenario, in which numbered packets lie on lanes over time.

    A scenario has a ``title``; ``lanes``, by name the list of (number, time in ms, True if the packet is forwarded); and
    ``missing``, the list of (lane, number, time in ms at which a lost packet would have come).
    """
    figure, grid = plt.subplots(1, len(scenarios), figsize=(4.1 * len(scenarios), 3.1), dpi=130, squeeze=False)
    for axes, scenario in zip(grid[0], scenarios, strict=True):
        lanes = scenario["lanes"]
        for height, (_, marks) in enumerate(reversed(lanes.items())):
            axes.axhline(height, color="#CCCCCC", linewidth=0.8, zorder=1)
            for number, time_ms, kept in marks:
                colour = plt.get_cmap("viridis")(0.22 * (number - 1))
                face = colour if kept else "white"
                axes.scatter([time_ms], [height], s=125, facecolor=face, edgecolor=colour, linewidth=1.2, zorder=3)
                text = "white" if kept else colour
                axes.text(
                    time_ms, height - 0.02, str(number), fontsize=7, ha="center", va="center", color=text, zorder=4
                )
        names = list(reversed(lanes))
        for lane, number, time_ms in scenario["missing"]:
            colour = plt.get_cmap("viridis")(0.22 * (number - 1))
            axes.scatter([time_ms], [names.index(lane)], s=60, color=colour, marker="x", linewidth=1.5, zorder=3)
        axes.set_yticks(range(len(lanes)), names, fontsize=7)
        axes.set_ylim(-0.6, len(lanes) - 0.4)
        axes.set_xlabel("time (ms)", fontsize=8)
        axes.tick_params(axis="x", labelsize=7)
        axes.set_title(scenario["title"], fontsize=8.5)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.tick_params(axis="y", length=0)
    figure.text(
        0.5,
        0.01,
        "filled: goes on (of the paths' copies, with the window); hollow: dropped; x: lost",
        fontsize=7,
        ha="center",
    )
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    return figure


def _finished(figure: Figure, axes: Any) -> Figure:
    axes.tick_params(labelsize=7)
    axes.grid(axis="y", **GRID)
    axes.set_axisbelow(True)
    axes.legend(fontsize=6.5)
    figure.tight_layout()
    return figure
