"""Pictures, and the one registry of how each mechanism looks in all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import networkx as nx
import polars as pl
from matplotlib.figure import Figure

from holdfast.errors import HoldfastError
from holdfast.topology import Position, Topology

SPRING_LAYOUT_NODES = 499
"""Above that the layout by forces needs a library of its own, and the picture would be a ball of wool anyway."""


@dataclass(frozen=True)
class Style:
    """Label, colour and marker of a mechanism (colours from the Okabe-Ito palette, safe for colour-blind readers)."""

    label: str
    colour: str
    marker: str = "o"


STYLES: Mapping[str, Style] = {
    # What happens when a link fails.
    "static": Style("static: no reaction", "#D55E00", "x"),
    "reroute": Style("reroute: controller reacts", "#0072B2", "o"),
    "protect": Style("protect: 1+1 (P4-Protect)", "#009E73", "*"),
    "local": Style("local protection", "#56B4E9", "o"),
    "path": Style("path protection", "#E69F00", "s"),
    "loopback": Style("local loop-back", "#CC79A7", "^"),
    "loopbackvar": Style("loop-back variant", "#000000", "v"),
    # What happens when it is repaired.
    "none": Style("none: stays on the backup", "#999999", "x"),
    "electrical": Style("electrical: merge-capable", "#0072B2", "D"),
    "optical": Style("optical: not merge-capable", "#D55E00", "P"),
    # What the users' TCP does.
    "newreno": Style("NewReno, slow but steady", "#0072B2", "s"),
    "newreno-impatient": Style("NewReno, impatient", "#56B4E9", "^"),
    "sack": Style("SACK", "#009E73", "o"),
    "rack": Style("SACK with RACK-TLP", "#E69F00", "D"),
    "cubic": Style("CUBIC", "#D55E00", "v"),
    "bbr": Style("BBR", "#CC79A7", "P"),
    # Where a number is from.
    "paper": Style("paper", "#999999", "s"),
    "ours": Style("ours", "#0072B2", "*"),
}
"""Every mechanism, protocol and source of numbers, and how it looks in all pictures; :func:`style` looks one up."""


def style(name: str) -> Style:
    """How a mechanism looks."""
    if name not in STYLES:
        raise HoldfastError(f"nothing is drawn as {name!r} (known: {', '.join(STYLES)})")
    return STYLES[name]


def save(figure: Figure, *paths: Path) -> None:
    """Writes a figure as PNG or SVG, by the paths' suffixes; the same figure is the same bytes. Closes it."""
    for path in paths:
        suffix = path.suffix.lower()
        if suffix not in (".png", ".svg"):
            raise HoldfastError(f"cannot draw {str(path)!r}: pictures are .png or .svg")
        metadata = {"Software": None} if suffix == ".png" else {"Date": None, "Creator": None}
        with matplotlib.rc_context({"svg.hashsalt": "holdfast", "svg.fonttype": "none"}):
            try:
                figure.savefig(path, metadata=metadata)
            except OSError as error:
                raise HoldfastError(f"cannot write {str(path)!r}: {error.strerror}") from None
    plt.close(figure)


def delivered_over_time(
    path: Path,
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    offered_per_s: float,
    failure_s: float,
    repair_s: float,
    title: str,
    ylabel: str = "delivered packets/s",
) -> None:
    """One panel per mechanism, the failed interval shaded, written as PNG."""
    figure, axes = plt.subplots(len(curves), 1, sharex=True, sharey=True, figsize=(8, 1.7 * len(curves) + 0.9), dpi=130)
    for axis, (name, (times, rates)) in zip(axes, curves.items(), strict=True):
        look = style(name)
        axis.axvspan(failure_s, repair_s, color="#DDDDDD", zorder=0)
        axis.fill_between(times, rates, step="mid", color=look.colour, alpha=0.25, linewidth=0)
        axis.step(times, rates, where="mid", color=look.colour, linewidth=1.4)
        axis.axhline(offered_per_s, color="#888888", linewidth=0.7, linestyle=":")
        axis.set_title(look.label, loc="left", fontsize=9, color=look.colour, fontweight="bold")
        axis.set_ylim(0, offered_per_s * 1.3)
        axis.set_xlim(0, max(times))
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    axes[0].text(
        (failure_s + repair_s) / 2, offered_per_s * 1.12, "path 1 is cut", ha="center", fontsize=8, color="#555555"
    )
    axes[len(curves) // 2].set_ylabel(ylabel)
    axes[-1].set_xlabel("time (s)")
    figure.suptitle(title, fontsize=10)
    figure.tight_layout()
    save(figure, path)


def paper_beside_ours(
    comparison: pl.DataFrame, x: str, group: str | None = None, *, title: str, xlabel: str, ylabel: str
) -> Figure:
    """One panel per value of ``group``: our numbers with their intervals, and the paper's, over the column ``x``.

    ``comparison`` is what :func:`holdfast.reproduce.compare` returns. The values of ``x`` are set at equal distances.
    """
    panels = [("", comparison)]
    if group is not None:
        panels = [
            (f"{group.replace('_', ' ')} {key[0]}", rows)
            for key, rows in comparison.group_by([group], maintain_order=True)
        ]
    ticks = comparison[x].unique(maintain_order=True).to_list()
    size = (2.6 * len(panels) + 1.6, 3.4)
    figure, all_axes = plt.subplots(1, len(panels), sharey=True, figsize=size, dpi=130, squeeze=False)
    for axis, (name, rows) in zip(all_axes[0], panels, strict=True):
        _one_panel(axis, rows, [ticks.index(value) for value in rows[x]])
        axis.set_title(name, fontsize=8)
        axis.set_xticks(range(len(ticks)), [f"{tick:g}" if isinstance(tick, float) else str(tick) for tick in ticks])
        axis.set_xlabel(xlabel, fontsize=8)
        axis.tick_params(labelsize=7)
        axis.grid(axis="y", color="#DDDDDD", linewidth=0.5)
    all_axes[0][0].set_ylabel(ylabel, fontsize=8)
    all_axes[0][0].legend(fontsize=7)
    figure.suptitle(title, fontsize=9)
    figure.tight_layout()
    return figure


def _one_panel(axis: Any, rows: pl.DataFrame, places: Sequence[int]) -> None:
    for name, shift in (("paper", -0.08), ("ours", 0.08)):
        look = style(name)
        here = [
            (place + shift, row) for place, row in zip(places, rows.to_dicts(), strict=True) if row[name] is not None
        ]
        if not here:
            continue
        reach = None
        if name == "ours":
            # An interval that is unknown (one seed) or has no bounds is not drawn.
            bounds = [(row["ours"] - row["low"], row["high"] - row["ours"]) for _, row in here]
            reach = [
                [max(0.0, each) if math.isfinite(each) else 0.0 for each in side] for side in zip(*bounds, strict=True)
            ]
        axis.errorbar(
            [place for place, _ in here],
            [row[name] for _, row in here],
            yerr=reach,
            color=look.colour,
            marker=look.marker,
            markersize=5,
            linewidth=0.8,
            capsize=3,
            label=look.label,
        )


def draw_topology(topology: Topology, path: Path) -> None:
    """Switches where their positions are, or laid out by forces; hosts beside their switches; delays where links differ."""
    places = _places(topology)
    crowd = len(topology.switches)
    cores = [link for link in topology.links if link.a in topology.switches and link.b in topology.switches]
    names = {link.name for link in cores}
    delays = {link.delay_ms for link in cores}
    figure, axes = plt.subplots(figsize=(9, 6), dpi=130)
    for link in topology.links:
        (x1, y1), (x2, y2) = places[link.a], places[link.b]
        axes.plot((x1, x2), (y1, y2), color="#888888", linewidth=1.2 if link.name in names else 0.6, zorder=1)
        if link.name in names and crowd <= 40 and len(delays) > 1:
            label = f"{link.delay_ms:.3g} ms"
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
            axes.text((x1 + x2) / 2, (y1 + y2) / 2, label, fontsize=6, ha="center", va="center", bbox=box, zorder=2)
    for nodes, colour, marker, size in ((topology.switches, "#0072B2", "s", 60), (topology.hosts, "#E69F00", "o", 25)):
        axes.scatter(
            [places[n][0] for n in nodes], [places[n][1] for n in nodes], s=size, c=colour, marker=marker, zorder=3
        )
    if crowd <= 100:
        for name in topology.switches:
            axes.annotate(name, places[name], (0, 7), textcoords="offset points", fontsize=7, ha="center", zorder=4)
    delay = f", {delays.pop():.4g} ms per link" if len(delays) == 1 else ""
    axes.set_title(topology.name + delay, fontsize=10)
    axes.set_axis_off()
    axes.margins(0.08)
    figure.tight_layout()
    save(figure, path)


def _places(topology: Topology) -> dict[str, Position]:
    """Every node's place. Without a position for each switch, all of them are laid out anew, the same way each time."""
    placed = {name: switch.position for name, switch in topology.switches.items() if switch.position is not None}
    if len(placed) < len(topology.switches):
        forces = len(topology.switches) <= SPRING_LAYOUT_NODES
        layout = nx.spring_layout(topology.graph, seed=1) if forces else nx.circular_layout(topology.graph)
        placed = {name: (float(x), float(y)) for name, (x, y) in layout.items()}
    xs, ys = zip(*placed.values(), strict=True) if placed else ((0.0,), (0.0,))
    step = max(max(xs) - min(xs), max(ys) - min(ys)) * 0.18 / math.sqrt(len(placed) or 1) or 1.0
    neighbours: dict[str, int] = {}
    places = dict(placed)
    for name, host in topology.hosts.items():
        if host.position is not None:
            places[name] = host.position
            continue
        switch = topology.attachment(name).switch
        neighbours[switch] = neighbours.get(switch, 0) + 1
        angle = math.radians(205 + 40 * neighbours[switch])
        x, y = placed[switch]
        places[name] = (x + step * math.cos(angle), y + step * math.sin(angle))
    return places
