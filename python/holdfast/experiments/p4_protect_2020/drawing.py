"""Pictures that only this study has; the others are in :mod:`holdfast.plots`, and all looks are registered there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import polars as pl
from matplotlib.figure import Figure

from holdfast.plots import style

GRID = {"color": "#DDDDDD", "linewidth": 0.5}


def shares(frame: pl.DataFrame, paper: float) -> Figure:
    """Copies forwarded twice over how far the second path is behind, in shares of the number space (``behind``, ``twice``)."""
    figure, axes = plt.subplots(figsize=(6.4, 3.6), dpi=130)
    for key, rows in frame.group_by(["sn_bits"], maintain_order=True):
        bits = int(str(key[0]))
        shade = plt.get_cmap("viridis")(0.9 * (bits - 4) / 8)
        axes.plot(
            rows["behind"].to_list(),
            rows["twice"].to_list(),
            color=shade,
            marker="osD^"[bits // 2 % 4],
            markersize=4.5,
            markerfacecolor="none",
            linewidth=0.7,
            label=f"{bits} bits, measured",
        )
    axes.axvline(0.5, color=style("ours").colour, linewidth=1, linestyle="--", label="the window: half of the space")
    axes.axvline(paper, color=style("paper").colour, linewidth=1.2, label="what 1.6 s would be: 1.16 times the space")
    axes.set_xlabel("how far path 2 is behind (packets, in number spaces)", fontsize=8)
    axes.set_ylabel("forwarded twice (packets, in number spaces)", fontsize=8)
    axes.set_title("How late a copy may come before it passes for a new packet", fontsize=9)
    return _finished(figure, axes)


def bars(
    groups: Mapping[str, Sequence[tuple[str, float, float, float]]], looks: Mapping[str, str], *, title: str
) -> Figure:
    """Grouped bars in percent of plain forwarding: per group (label, value, low, high), NaN where there is none."""
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
        bar = axes.bar(
            places,
            values,
            width * 0.94,
            yerr=reach,
            color=looks[name],
            error_kw={"elinewidth": 0.7, "capsize": 1.5, "ecolor": "#444444"},
            label=name,
        )
        known = [f"{value:.0f}" if value == value else "" for value in values]
        axes.bar_label(bar, known, fontsize=6, padding=2)
    axes.axhline(100, color="#444444", linewidth=0.7, linestyle=":")
    axes.set_xticks(range(len(labels)), labels, fontsize=7.5)
    axes.set_ylabel("% of plain forwarding", fontsize=8)
    axes.set_title(title, fontsize=9)
    return _finished(figure, axes)


def timeline(scenarios: Sequence[Mapping[str, Any]]) -> Figure:
    """One panel per scenario: numbered packets on lanes over time.

    A scenario has a ``title``, ``lanes``: name to a list of (number, time in ms, whether it goes on), and what is ``missing``:
    (lane, number, when it would have come).
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
