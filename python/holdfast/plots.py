"""Pictures, and the registry of each mechanism's colour and marker in all of them."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.colors

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import polars as pl
from matplotlib.figure import Figure

from holdfast import whole_files
from holdfast.errors import HoldfastError
from holdfast.placement import places_of
from holdfast.topology import Topology

# A matplotlibrc of the working directory changes no picture, and has nothing run (``text.usetex``).
matplotlib.rcdefaults()


@dataclass(frozen=True)
class Style:
    """Label, colour and marker of a mechanism (colours from the Okabe-Ito palette, safe for colour-blind readers)."""

    label: str
    colour: str
    marker: str = "o"


STYLES: Mapping[str, Style] = {
    # Reactions to a link failure.
    "static": Style("static: no reaction", "#D55E00", "x"),
    "reroute": Style("reroute: controller reacts", "#0072B2", "o"),
    "local": Style("local protection", "#56B4E9", "o"),
    "path": Style("path protection", "#E69F00", "s"),
    "loopback": Style("local loop-back", "#CC79A7", "^"),
    "loopbackvar": Style("loop-back variant", "#000000", "v"),
    # Reactions to its repair.
    "none": Style("none: stays on the backup", "#999999", "x"),
    "electrical": Style("electrical: merge-capable", "#0072B2", "D"),
    "optical": Style("optical: not merge-capable", "#D55E00", "P"),
    # TCP variants of the users.
    "newreno": Style("NewReno, slow but steady", "#0072B2", "s"),
    "newreno-impatient": Style("NewReno, impatient", "#56B4E9", "^"),
    "sack": Style("SACK", "#009E73", "o"),
    "rack": Style("SACK with RACK-TLP", "#E69F00", "D"),
    "cubic": Style("CUBIC", "#D55E00", "v"),
    "bbr": Style("BBR", "#CC79A7", "P"),
    "hpcc": Style("HPCC", "#009E73", "P"),
    "dctcp": Style("DCTCP from line rate, marks above 300 kB", "#0072B2", "v"),
    "dctcp-30k": Style("DCTCP, marks above 30 kB", "#56B4E9", "s"),
    # Forwarding in P4-Protect's study, and acceptance at its receiver.
    "plain": Style("plain: IP router", "#999999", "^"),
    "unprotected": Style("unprotected: P4-Protect, other traffic", "#D55E00", "s"),
    "protected": Style("protected: P4-Protect, 1+1", "#009E73", "D"),
    "window": Style("window: the paper's", "#009E73", "v"),
    "vector": Style("vector: 802.1CB's", "#CC79A7", "o"),
    # The source of a number.
    "kernel": Style("Linux, live", "#D55E00", "D"),
    "simulated": Style("simulated", "#0072B2", "^"),
    "paper": Style("paper", "#999999", "s"),
    "ours": Style("ours", "#0072B2", "*"),
    "ns-3": Style("ns-3", "#D55E00", "o"),
    "ns-2": Style("ns-2", "#E69F00", "P"),
}
"""The style in all pictures of every mechanism, protocol and source of numbers; :func:`style` looks one up."""


def style(name: str) -> Style:
    """Return the style of a mechanism. Raises :class:`HoldfastError` if no mechanism has this name."""
    if name not in STYLES:
        raise HoldfastError(f"there is no style {name!r} (known: {', '.join(STYLES)})")
    return STYLES[name]


def save(figure: Figure, *paths: Path) -> None:
    """Write a figure as PNG or SVG, by the paths' suffixes, and close it; the same figure gives the same bytes.

    Raises :class:`HoldfastError` for another suffix, or if a file cannot be written.
    """
    for path in paths:
        suffix = path.suffix.lower()
        if suffix not in (".png", ".svg"):
            raise HoldfastError(f"cannot draw {str(path)!r}: pictures are .png or .svg")
        metadata = {"Software": None} if suffix == ".png" else {"Date": None, "Creator": None}
        with matplotlib.rc_context({"svg.hashsalt": "holdfast", "svg.fonttype": "none"}):
            try:
                whole_files.write(path, partial(figure.savefig, metadata=metadata))
            except OSError as error:
                raise HoldfastError(f"cannot write {str(path)!r}: {error.strerror}") from None
    plt.close(figure)


@dataclass(frozen=True)
class Curves:
    """A quantity over time, by row of the picture, in bins from time zero on."""

    label: str
    values: Mapping[str, Sequence[float]]


def over_time(
    path: Path,
    columns: Sequence[Curves],
    *,
    rows: Mapping[str, tuple[str, str]],
    bin_s: float,
    shaded_s: tuple[float, float],
    title: str,
) -> None:
    """Draw quantities over time: a row of panels for each of ``rows``, a column for each quantity.

    ``rows``: by name, a short label and a colour. ``shaded_s``: the interval in seconds that is shaded in all panels.
    """
    size = (4.8 * len(columns), 1.5 * len(rows) + 0.9)
    figure, axes = plt.subplots(
        len(rows), len(columns), sharex=True, sharey="col", figsize=size, dpi=130, squeeze=False
    )
    for line, (name, (what, colour)) in zip(axes, rows.items(), strict=True):
        for axis, column in zip(line, columns, strict=True):
            values = column.values[name]
            times = [(i + 0.5) * bin_s for i in range(len(values))]
            axis.axvspan(*shaded_s, color="#DDDDDD", zorder=0)
            axis.fill_between(times, values, step="mid", color=colour, alpha=0.25, linewidth=0)
            axis.step(times, values, where="mid", color=colour, linewidth=1.2)
            axis.set_ylim(0, 1.15 * max(max(each, default=0.0) for each in column.values.values()) or 1.0)
            axis.set_xlim(0, len(values) * bin_s)
            for side in ("top", "right"):
                axis.spines[side].set_visible(False)
        line[0].set_title(name, loc="left", fontsize=9, color=colour, fontweight="bold")
        line[0].set_title(what, loc="right", fontsize=8, color="#555555")
    for first, last, column in zip(axes[0], axes[-1], columns, strict=True):
        first.text(0.0, 1.28, column.label, transform=first.transAxes, fontsize=9)
        last.set_xlabel("time (s)")
    figure.suptitle(title, fontsize=10)
    figure.tight_layout()
    save(figure, path)


def _looks(names: Sequence[Any]) -> dict[Any, Style]:
    """Return a style for each name: a mechanism's own, or for values of a parameter a shade from dark to bright and a marker."""
    shades = plt.get_cmap("viridis")
    return {
        name: STYLES[name]
        if name in STYLES
        else Style(
            f"{name:g}" if isinstance(name, float) else str(name),
            matplotlib.colors.to_hex(shades(0.9 * i / max(1, len(names) - 1))),
            "osD^vP*Xh<>p"[i % 12],
        )
        for i, name in enumerate(names)
    }


def _distinct(frame: pl.DataFrame, column: str) -> list[Any]:
    return frame[column].unique(maintain_order=True).to_list()


def _panels(frame: pl.DataFrame, panel: str | None) -> list[tuple[str, pl.DataFrame]]:
    if panel is None:
        return [("", frame)]
    groups = frame.group_by([panel], maintain_order=True)
    name = f"{panel.removesuffix('_ms')} = {{}} ms" if panel.endswith("_ms") else f"{panel.replace('_', ' ')} {{}}"
    return [(name.format(key[0]), rows) for key, rows in groups]


def _side_by_side(
    panels: Sequence[tuple[str, pl.DataFrame]],
    title: str,
    xlabel: str,
    ylabel: str,
    width: float = 2.6,
    columns: int = 0,
) -> tuple[Figure, list[Any]]:
    """Make a figure with an axis for each panel; return both. The axes share the vertical scale.

    ``columns``: panels in a row, 0 for all.
    """
    columns = min(columns or len(panels), len(panels))
    rows = math.ceil(len(panels) / columns)
    size = (width * columns + 1.6, 3.4 if rows == 1 else 2.7 * rows + 0.5)
    figure, grid = plt.subplots(rows, columns, sharey=True, figsize=size, dpi=130, squeeze=False)
    axes = [axis for row in grid for axis in row]
    for axis in axes[len(panels) :]:
        axis.remove()
    axes = axes[: len(panels)]
    for axis, (name, _) in zip(axes, panels, strict=True):
        axis.set_title(name, fontsize=8)
        axis.set_xlabel(xlabel, fontsize=8)
        axis.tick_params(labelsize=7)
        axis.grid(axis="y", color="#DDDDDD", linewidth=0.5)
        axis.set_axisbelow(True)
    for row in grid:
        row[0].set_ylabel(ylabel, fontsize=8)
    figure.suptitle(title, fontsize=9)
    return figure, axes


def _finish(figure: Figure, axes: Sequence[Any], legend: str = "", *, beside: bool = False) -> Figure:
    """Add a legend, fit the layout and return the figure.

    ``legend``: the legend's title; empty for none. With ``beside``, the legend is to the right of the last panel, and a title that
    ends with ``_ms`` gets its unit in brackets. Otherwise it is in the first panel.
    """
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0} if beside else {}
    where = axes[-1] if beside else axes[0]
    title = f"{legend.removesuffix('_ms')} (ms)" if beside and legend.endswith("_ms") else legend.replace("_", " ")
    drawn = where.legend(fontsize=7 if beside else 6.5, title=title or None, title_fontsize=7, **place)
    # Where the last row has a place left, the legend takes no room from the panels.
    drawn.set_in_layout(not beside or where.get_subplotspec().is_last_col())
    figure.tight_layout()
    return figure


def curves(
    frame: pl.DataFrame,
    x: str,
    value: str,
    over: str,
    panel: str | None = None,
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    columns: int = 0,
) -> Figure:
    """Draw ``value`` over ``x`` (mostly time), with a curve for each value of ``over`` and a panel for each value of ``panel``.

    Panels stand beside each other; ``columns`` above 0 limits the panels in a row.
    """
    looks = _looks(_distinct(frame, over))
    panels = _panels(frame, panel)
    figure, axes = _side_by_side(panels, title, xlabel, ylabel, width=3.4, columns=columns)
    for axis, (_, rows) in zip(axes, panels, strict=True):
        for key, curve in rows.group_by([over], maintain_order=True):
            look = looks[key[0]]
            axis.plot(curve[x].to_list(), curve[value].to_list(), color=look.colour, linewidth=1.3, label=look.label)
    return _finish(figure, axes, over, beside=True)


def intervals(
    frame: pl.DataFrame,
    x: str,
    over: str,
    panel: str | None = None,
    *,
    title: str,
    xlabel: str,
    ylabel: str,
) -> Figure:
    """Draw means with their confidence intervals (:func:`holdfast.statistics.summary`) over ``x``, at equal distances.

    There is a curve for each value of the column ``over``, and a panel for each value of the column ``panel``, if given.
    """
    ticks, names = _distinct(frame, x), _distinct(frame, over)
    looks = _looks(names)
    panels = _panels(frame, panel)
    figure, axes = _side_by_side(panels, title, xlabel, ylabel, width=3.4)
    for axis, (_, rows) in zip(axes, panels, strict=True):
        for key, points in rows.group_by([over], maintain_order=True):
            look = looks[key[0]]
            shift = 0.15 * (names.index(key[0]) / max(1, len(names) - 1) - 0.5)
            means, lows, highs = (points[name].to_list() for name in ("mean", "low", "high"))
            axis.errorbar(
                [ticks.index(tick) + shift for tick in points[x]],
                means,
                yerr=_reach(means, lows, highs),
                color=look.colour,
                marker=look.marker,
                markersize=4.5,
                linewidth=0.7,
                capsize=2,
                label=look.label,
            )
        _set_ticks(axis, ticks)
    return _finish(figure, axes, over, beside=True)


def proportions(
    frame: pl.DataFrame, x: str, over: str, *, title: str, xlabel: str, ylabel: str = "best in % of the seeds"
) -> Figure:
    """Draw bars, in percent, of how often each value of the column ``over`` is best, with its confidence interval.

    ``frame``: what :func:`holdfast.statistics.best` has returned. Bars are grouped by the column ``x``.
    """
    ticks, names = _distinct(frame, x), _distinct(frame, over)
    looks = _looks(names)
    figure, axes = _side_by_side([("", frame)], title, xlabel, ylabel, width=5.4)
    width = 0.8 / len(names)
    for i, name in enumerate(names):
        rows = frame.filter(pl.col(over) == name)
        percent = [[100 * each for each in rows[column]] for column in ("best", "best_low", "best_high")]
        axes[0].bar(
            [ticks.index(tick) + (i - (len(names) - 1) / 2) * width for tick in rows[x]],
            percent[0],
            width,
            yerr=_reach(*percent),
            color=looks[name].colour,
            error_kw={"elinewidth": 0.7, "capsize": 1.5, "ecolor": "#444444"},
            label=looks[name].label,
        )
    _set_ticks(axes[0], ticks)
    return _finish(figure, axes, over)


def histograms(
    frame: pl.DataFrame,
    value: str,
    over: str,
    *,
    bin_width: float,
    title: str,
    xlabel: str,
    ylabel: str = "% of the seeds",
) -> Figure:
    """Draw the distribution of ``value`` for each value of ``over``, markers at the starts of bins and a normal fit.

    Raises :class:`HoldfastError` if ``bin_width`` is not above 0.
    """
    if bin_width <= 0:
        raise HoldfastError(f"bin_width is {bin_width:g}; it must be above 0")
    looks = _looks(_distinct(frame, over))
    figure, axes = _side_by_side([("", frame)], title, xlabel, ylabel, width=5.4)
    for key, rows in frame.group_by([over], maintain_order=True):
        values, look = rows[value].to_list(), looks[key[0]]
        bins = Counter(math.floor(each / bin_width) for each in values)
        axes[0].plot(
            [bin_width * each for each in sorted(bins)],
            [100 * bins[each] / len(values) for each in sorted(bins)],
            color=look.colour,
            marker=look.marker,
            markersize=4,
            linestyle="none",
            label=look.label,
        )
        if len(values) > 1 and (deviation := statistics.stdev(values)) > 0:
            fit = statistics.NormalDist(statistics.fmean(values), deviation)
            xs = [fit.mean + deviation * step / 20 for step in range(-70, 71)]
            axes[0].plot(xs, [100 * bin_width * fit.pdf(each) for each in xs], color=look.colour, linewidth=0.8)
    return _finish(figure, axes, over)


def _reach(values: Sequence[float], lows: Sequence[float], highs: Sequence[float]) -> list[list[float]]:
    """Return the lengths of the intervals below and above the values; 0 where an interval is unbounded, as with a single seed."""
    return [
        [max(0.0, value - low) if math.isfinite(low) else 0.0 for value, low in zip(values, lows, strict=True)],
        [max(0.0, high - value) if math.isfinite(high) else 0.0 for value, high in zip(values, highs, strict=True)],
    ]


def _set_ticks(axis: Any, ticks: Sequence[Any]) -> None:
    axis.set_xticks(range(len(ticks)), [f"{tick:g}" if isinstance(tick, float) else str(tick) for tick in ticks])


def draw_topology(topology: Topology, path: Path) -> None:
    """Draw a topology's switches at their positions, or laid out by forces, with hosts beside them.

    Label delays in ms if links differ.
    """
    places = places_of(topology)
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
