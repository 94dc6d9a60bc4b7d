"""Pictures that only this study has. :mod:`holdfast.plots` has the colours of mechanisms and of sources of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import polars as pl
from matplotlib.figure import Figure

from holdfast.experiments.bier_tofino_2021 import model, published
from holdfast.plots import style

GRID = {"color": "#DDDDDD", "linewidth": 0.5}


def shade(number: int, of: int) -> Any:
    """Return the colour of curve ``number`` (from 0) among ``of`` curves that are drawn in an order."""
    return plt.get_cmap("viridis")(0.9 * number / max(1, of - 1))


def provisioning(curves: pl.DataFrame, tried: pl.DataFrame, x: str, by: str, words: tuple[str, str]) -> Figure:
    """Draw two panels: the ports by the formula over ``x``, a curve per value of ``by``; and the loss in the runs.

    The runs have as many ports as the formula says, or one less. ``words``: the label of ``x``, and the label of a curve with a
    place for its number.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.2, 3.8), dpi=130, width_ratios=(3, 2))
    groups = list(curves.group_by([by], maintain_order=True))
    for number, (key, rows) in enumerate(groups):
        left.plot(
            rows[x].to_list(),
            rows["physical_ports"].to_list(),
            color=shade(number, len(groups)),
            marker="osD^v"[number % 5],
            markersize=4,
            markerfacecolor="none",
            linewidth=0.8,
            label=words[1].format(key[0]),
        )
    left.set_xlabel(words[0], fontsize=8)
    left.set_ylabel("physical recirculation ports", fontsize=8)
    left.set_title("Equation 3", fontsize=9)
    losses(right, tried)
    finished(figure, left, right)
    return figure


def losses(axes: Any, tried: pl.DataFrame) -> None:
    """Draw the percentage of packets lost in recirculation ports over their load, in multiples of the ports' rate."""
    sizes = pl.col("sizes") if "sizes" in tried.columns else pl.lit("uniform")
    looks = (
        ("ports of the rule", "#0072B2", "o", (pl.col("missing_ports") == 0) & (sizes == "uniform")),
        ("one port less", "#D55E00", "v", pl.col("missing_ports") == 1),
        ("ports of the rule, small unicast frames", "#009E73", "s", sizes != "uniform"),
    )
    for label, colour, marker, chosen in looks:
        rows = tried.filter(chosen)
        if len(rows):
            loads, lost = rows["load"].to_list(), rows["loss_percent"].to_list()
            axes.scatter(loads, lost, s=16, color=colour, marker=marker, label=label, zorder=3)
    ends = [x / 100 for x in range(60, 201)]
    axes.plot(
        ends,
        [100 * max(0.0, 1 - 1 / x) for x in ends],
        color="#999999",
        linewidth=0.8,
        label="1 - 1/load: a single pass",
    )
    axes.axvline(1, color="#444444", linewidth=0.7, linestyle=":")
    axes.set_xlim(0, max(1.3, 1.05 * max(tried["load"].to_list())))
    axes.set_ylim(bottom=-0.5, top=1.15 * max(1.0, *tried["loss_percent"].to_list()))
    axes.set_xlabel("load by the formula, in multiples of the ports' rate", fontsize=8)
    axes.set_ylabel("lost of what came to a recirculation port (%)", fontsize=8)
    axes.set_title("Simulated", fontsize=9)


def passes(numbers: Sequence[int], frame: pl.DataFrame) -> Figure:
    """Draw the loss after several passes over the loss of one pass: curves of the formula, points of the runs."""
    figure, axes = plt.subplots(figsize=(5.6, 4.0), dpi=130)
    losses = [10 ** (-4 + 4 * step / 100) for step in range(101)]
    for number, count in enumerate(numbers):
        colour = shade(number, len(numbers))
        axes.plot(losses, [model.loss_after(count, p) for p in losses], color=colour, linewidth=1, label=f"n = {count}")
        rows = frame.filter(pl.col("passes") == count)
        axes.scatter(rows["loss_of_a_pass"].to_list(), rows["loss"].to_list(), s=9, color=colour, marker="o", zorder=3)
    axes.scatter([], [], s=9, color="#444444", label="simulated")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("loss probability p of a pass", fontsize=8)
    axes.set_ylabel("loss probability after n passes", fontsize=8)
    axes.set_title("Loss after several recirculations", fontsize=9)
    finished(figure, axes)
    return figure


def throughput(columns: Sequence[Mapping[str, Any]], *, title: str) -> Figure:
    """Draw the throughput of the last next hop in Gb/s as bars, three per row of ``columns``: paper, model, and ours.

    A row has ``label``, ``paper``, ``model``, and ``ours`` with its interval ``low`` to ``high``.
    """
    figure, axes = plt.subplots(figsize=(10.2, 3.8), dpi=130)
    places = list(range(len(columns)))
    width = 0.27
    looks = {"paper": style("paper").colour, "model": "#E69F00", "ours": style("ours").colour}
    labels = {"paper": "paper: measured M(i)", "model": "model: T(i), exact", "ours": "simulated, over all phases"}
    for i, name in enumerate(looks):
        values = [column[name] for column in columns]
        at = [place + (i - 1) * width for place in places]
        shown = [(x, value) for x, value in zip(at, values, strict=True) if value is not None]
        axes.bar([x for x, _ in shown], [y for _, y in shown], width * 0.94, color=looks[name], label=labels[name])
    for place, column in zip(places, columns, strict=True):
        middle, low, high = column["ours"], column["low"], column["high"]
        if high - low > 0.5:
            axes.errorbar(
                [place + width],
                [middle],
                yerr=[[middle - low], [high - middle]],
                color="#222222",
                capsize=2,
                linewidth=0.8,
            )
    axes.set_xticks(places, [column["label"] for column in columns], fontsize=7)
    axes.set_ylabel("throughput of the last next hop (Gb/s)", fontsize=8)
    axes.set_ylim(0, 128)
    axes.set_title(title, fontsize=9)
    finished(figure, axes)
    axes.legend(fontsize=6.5, ncol=3, loc="upper center")
    return figure


def phases(panels: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw throughput over the phase, one panel per item of ``panels``.

    A panel has the ``rows`` of runs with and without jitter, the ``paper``'s number and the ``model``'s number.
    """
    figure, all_axes = plt.subplots(1, len(panels), figsize=(3.5 * len(panels), 3.6), dpi=130, sharey=True)
    for axes, panel in zip(all_axes, panels, strict=True):
        for jitters, label, marker in ((True, "arrivals jitter", "o"), (False, "arrivals do not", "x")):
            rows = panel["rows"].filter((pl.col("jitter_frames") > 0) == jitters).sort("phase")
            means = rows["mean"].to_list()
            axes.plot(
                rows["phase"].to_list(),
                means,
                color=style("ours").colour if jitters else "#999999",
                marker=marker,
                markersize=4,
                linewidth=0.8 if jitters else 0,
                label=label,
            )
        axes.axhline(panel["model"], color="#E69F00", linewidth=1, label="model, exact")
        axes.axhline(panel["paper"], color="#444444", linewidth=1, linestyle="--", label="paper, measured")
        axes.set_xlabel("phase of packets that come back\n(transmissions)", fontsize=8)
        axes.set_xlim(0, 1)
        axes.set_title(panel["title"], fontsize=9)
    all_axes[0].set_ylabel("throughput of the last next hop (Gb/s)", fontsize=8)
    finished(figure, *all_axes)
    return figure


WAYS = {
    ("recirculate", 1): ("recirculate, 1 port", "#D55E00", "x"),
    ("recirculate", 4): ("recirculate, 4 ports", "#E69F00", "v"),
    ("recirculate", -1): ("recirculate, n - 1 ports", "#999999", "s"),
    ("one-pass", 0): ("one-pass", "#0072B2", "o"),
    ("clusters", 0): ("clusters", "#009E73", "D"),
}


def replication(*measures: pl.DataFrame) -> Figure:
    """Draw three panels over the number of next hops, with a curve for each way to replicate.

    The panels show throughput in Gb/s, passes per packet, and copies made and dropped per packet.
    """
    labels = ("throughput of the last next hop (Gb/s)", "passes of a packet", "copies made and dropped, per packet")
    figure, all_axes = plt.subplots(1, len(measures), figsize=(4.0 * len(measures), 3.7), dpi=130)
    for axes, frame, label in zip(all_axes, measures, labels, strict=True):
        for (way, ports), (name, colour, marker) in WAYS.items():
            rows = frame.filter(pl.col("replication") == way, pl.col("ports") == ports)
            axes.plot(
                rows["next_hops"].to_list(),
                rows["mean"].to_list(),
                color=colour,
                marker=marker,
                markersize=4.5,
                markerfacecolor="none",
                linewidth=0.8,
                label=name,
            )
        axes.set_xscale("log", base=2)
        axes.set_xticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"])
        axes.set_xlabel("next hops of 32 neighbours", fontsize=8)
        axes.set_ylabel(label, fontsize=8)
        axes.set_ylim(bottom=0)
    finished(figure, *all_axes)
    return figure


CASES = {
    (False, False): "neither",
    (False, True): "IP-FRR only",
    (True, False): "BIER-FRR only",
    (True, True): "BIER-FRR and IP-FRR",
}


def restoration(series: Mapping[str, pl.DataFrame], *, title: str) -> Figure:
    """Draw the restoration time of each case in ms as bars on a logarithmic scale: the paper's, and those of ``series``.

    ``series``: by label, the means with their intervals.
    """
    figure, axes = plt.subplots(figsize=(8.2, 3.8), dpi=130)
    width = 0.8 / (len(series) + 1)
    paper = [published.FIGURE_11.value("restoration_ms", bier_frr=b, ip_frr=i) for b, i in CASES]
    bars = axes.bar(
        [x - 0.4 + width / 2 for x in range(4)], paper, width * 0.92, color=style("paper").colour, label="paper"
    )
    axes.bar_label(bars, fmt="%g", fontsize=6.5)
    for number, (label, found) in enumerate(series.items(), 1):
        rows = {(row["bier_frr"], row["ip_frr"]): row for row in found.iter_rows(named=True)}
        chosen = [rows[case] for case in CASES]
        means = [row["mean"] for row in chosen]
        reach = [
            [max(0.0, row["mean"] - max(row["low"], 0.01)) for row in chosen],
            [max(0.0, row["high"] - row["mean"]) for row in chosen],
        ]
        at = [x - 0.4 + (number + 0.5) * width for x in range(4)]
        colour = shade(number - 1, max(2, len(series)))
        bars = axes.bar(at, means, width * 0.92, color=colour, label=label)
        if all(each < float("inf") for each in reach[1]):
            axes.errorbar(at, means, yerr=reach, color="#222222", linewidth=0, elinewidth=0.8, capsize=2)
        axes.bar_label(bars, fmt="%.3g", fontsize=6.5)
    axes.set_yscale("log")
    axes.set_ylim(0.1, 500)
    axes.set_xticks(range(4), list(CASES.values()), fontsize=7.5)
    axes.set_ylabel("until the subscriber receives again (ms)", fontsize=8)
    axes.set_title(title, fontsize=9)
    finished(figure, axes)
    return figure


def finished(figure: Figure, *all_axes: Any) -> None:
    """Finish a figure: set small type, draw a grid and a legend in each of ``all_axes``, and fit the layout."""
    for axes in all_axes:
        axes.tick_params(labelsize=7)
        axes.grid(**GRID)
        axes.set_axisbelow(True)
        axes.legend(fontsize=6.5)
    figure.tight_layout()
