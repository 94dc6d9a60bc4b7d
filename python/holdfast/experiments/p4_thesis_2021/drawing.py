"""Pictures of this study, as the thesis has them: the standard stack or no INT in orange, its own in blue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import polars as pl
from matplotlib.figure import Figure

from holdfast import statistics
from holdfast.experiments.p4_thesis_2021.header_runs import MINIMUM_BYTES

GRID: dict[str, Any] = {"color": "#DDDDDD", "linewidth": 0.5}
BLUE, ORANGE = "#0072B2", "#E69F00"

STACK_LOOKS = {"standard": ("standard", ORANGE, "s"), "shorternet": ("Shorternet", BLUE, "o")}
INT_LOOKS = {"off": ("without INT", ORANGE, "s"), "thesis": ("with INT", BLUE, "o")}
FORMAT_LOOKS = {
    ("off", 1.0): ("without INT", ORANGE, "s", "-"),
    ("thesis", 1.0): ("the thesis's INT", BLUE, "o", "-"),
    ("md", 1.0): ("INT-MD", "#009E73", "^", "-"),
    ("md", 0.1): ("INT-MD, a tenth", "#009E73", "^", ":"),
    ("mx", 1.0): ("INT-MX", "#D55E00", "v", "-"),
    ("mx", 0.1): ("INT-MX, a tenth", "#D55E00", "v", ":"),
    ("xd", 1.0): ("INT-XD", "#CC79A7", "D", "-"),
    ("xd", 0.1): ("INT-XD, a tenth", "#CC79A7", "D", ":"),
}

SIZES = {"s": 7.5, "o": 5.0, "v": 6.5, "^": 4.0, "D": 3.0}
"""The sizes of markers: those drawn over others are smaller, so that all are seen where they have the same place."""


def _errorbars(axes: Any, rows: pl.DataFrame, x: str, label: str, colour: str, marker: str, line: str = "-") -> None:
    means, lows, highs = (rows[name].to_list() for name in ("mean", "low", "high"))
    reach = [
        [mean - low for mean, low in zip(means, lows, strict=True)],
        [high - mean for mean, high in zip(means, highs, strict=True)],
    ]
    axes.errorbar(
        rows[x].to_list(),
        means,
        yerr=reach if all(map(_finite, means, lows, highs)) else None,
        color=colour,
        marker=marker,
        markersize=SIZES[marker],
        linewidth=0.9,
        linestyle=line,
        capsize=2,
        label=label,
    )
    axes.tick_params(labelsize=7)


def _finite(*values: float) -> bool:
    return all(abs(value) < float("inf") for value in values)


def _lengths(axes: Any, marks: Sequence[int] = (74, 300, 850, 1514, 9000)) -> None:
    """Set up a logarithmic axis of packet lengths in bytes, and shade the lengths that Ethernet pads to its minimum."""
    axes.set_xscale("log")
    axes.axvspan(40, MINIMUM_BYTES, color="#EEEEEE", label=f"below {MINIMUM_BYTES} bytes Ethernet pads")
    axes.set_xticks(marks, [str(mark) for mark in marks])
    axes.minorticks_off()
    axes.set_xlabel("packet length (bytes)", fontsize=8)
    axes.grid(**GRID)


def over_lengths(frame: pl.DataFrame, value: str, label: str) -> Figure:
    """Draw a quantity over packet length in bytes, with a curve per stack, as in Figures 4.1, 4.3, 4.4 and 4.5."""
    figure, axes = plt.subplots(figsize=(5.6, 3.6), dpi=130)
    for stack, look in STACK_LOOKS.items():
        rows = statistics.summary(frame.filter(stack=stack), ["packet_bytes"], value)
        _errorbars(axes, rows, "packet_bytes", *look)
    _lengths(axes)
    axes.set_ylabel(label, fontsize=8)
    _from_zero(axes, value)
    axes.legend(fontsize=7)
    figure.tight_layout()
    return figure


def _from_zero(axes: Any, value: str) -> None:
    """Make the axis of a quantity logarithmic if it is bandwidth, else let it begin at 0."""
    if value == "bandwidth_bytes_per_s":
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)


def gain(gains: pl.DataFrame, theory: Callable[[float], float]) -> Figure:
    """Draw Figure 4.2: the gain in bandwidth in % over packet length in bytes, measured and by equation 4.2.

    ``theory`` returns the gain in % by that equation for a length in bytes.
    """
    figure, axes = plt.subplots(figsize=(5.6, 3.6), dpi=130)
    lengths = [MINIMUM_BYTES * 10 ** (i / 100) for i in range(219)]
    axes.plot(lengths, [theory(length) for length in lengths], color=ORANGE, linewidth=1.2, label="equation 4.2")
    _errorbars(axes, gains, "packet_bytes", "measured", BLUE, "o", "none")
    _lengths(axes)
    axes.set_yscale("log")
    axes.set_ylabel("gain in effective bandwidth (%)", fontsize=8)
    axes.legend(fontsize=7)
    figure.tight_layout()
    return figure


def minimum(numbers: pl.DataFrame) -> Figure:
    """Draw the bytes saved on the wire in % over the payload, measured, and computed with and without Ethernet's minimum length."""
    figure, axes = plt.subplots(figsize=(5.6, 3.6), dpi=130)
    rows = numbers.filter(quantity="saved_percent").rename({"ours": "mean"})
    _errorbars(axes, rows, "payload_bytes", "measured, with Ethernet's minimum", BLUE, "o", "none")
    payloads = [20 * 10 ** (i / 100) for i in range(266)]
    for lowest, style, label in ((MINIMUM_BYTES, "-", "computed, with it"), (0, "--", "computed, without it")):
        saved = [
            100 * (1 - (max(lowest, payload + 12) + 24) / (max(lowest, payload + 42) + 24)) for payload in payloads
        ]
        axes.plot(payloads, saved, color=ORANGE, linewidth=1.1, linestyle=style, label=label)
    axes.set_xscale("log")
    axes.set_xlabel("payload (bytes)", fontsize=8)
    axes.set_ylabel("saved on the wire (%)", fontsize=8)
    axes.set_ylim(bottom=0)
    axes.grid(**GRID)
    axes.legend(fontsize=7)
    figure.tight_layout()
    return figure


def by_switches(frame: pl.DataFrame, value: str, label: str, title: str) -> Figure:
    """Draw a quantity over the rate, with INT and without: a panel per number of switches (Figures 4.6 to 4.9 and 4.11)."""
    counts = frame["switches"].unique(maintain_order=True).to_list()
    figure, grid = plt.subplots(
        1, len(counts), sharey=True, figsize=(3.1 * len(counts) + 0.8, 3.4), dpi=130, squeeze=False
    )
    for axes, count in zip(grid[0], counts, strict=True):
        _with_and_without(axes, frame.filter(switches=count), value)
        axes.set_title(f"{count} switches", fontsize=9)
    # The panels share the scale, and setting one end of it ends its adaptation to what is drawn.
    grid[0][0].set_ylim(bottom=0)
    grid[0][0].set_ylabel(label, fontsize=8)
    grid[0][0].legend(fontsize=7)
    figure.suptitle(title, fontsize=9)
    figure.tight_layout()
    return figure


def two_flows(frame: pl.DataFrame, quantities: Mapping[str, str], title: str) -> Figure:
    """Draw quantities over the rate through four switches, with two flows to the left and one to the right (Figure 4.10).

    Figure 4.11 is drawn so too, with losses.
    """
    figure, grid = plt.subplots(
        len(quantities),
        2,
        sharex=True,
        sharey="row",
        figsize=(7.2, 2.4 * len(quantities) + 0.8),
        dpi=130,
        squeeze=False,
    )
    for line, (value, label) in zip(grid, quantities.items(), strict=True):
        for axes, flows in zip(line, (2, 1), strict=True):
            _with_and_without(axes, frame.filter(flows=flows), value)
            axes.set_xlabel("")
        line[0].set_ylim(bottom=0)
        line[0].set_ylabel(label, fontsize=8)
    for axes, name in zip(grid[0], ("two flows", "one flow"), strict=True):
        axes.set_title(name, fontsize=9)
    for axes in grid[-1]:
        axes.set_xlabel("transmitted bandwidth (Mb/s)", fontsize=8)
    grid[0][0].legend(fontsize=7)
    figure.suptitle(title, fontsize=9)
    figure.tight_layout()
    return figure


def _with_and_without(axes: Any, frame: pl.DataFrame, value: str) -> None:
    for mode, look in INT_LOOKS.items():
        rows = statistics.summary(frame.filter(mode=mode).sort("rate_mbps"), ["rate_mbps"], value)
        _errorbars(axes, rows, "rate_mbps", *look)
    axes.set_xlabel("transmitted bandwidth (Mb/s)", fontsize=8)
    axes.grid(**GRID)


def beyond(frame: pl.DataFrame, quantities: Mapping[str, str]) -> Figure:
    """Draw four quantities over the transmitted bandwidth in Mb/s, with a curve for every format of INT."""
    figure, grid = plt.subplots(2, 2, figsize=(9.2, 6.2), dpi=130)
    for axes, (value, label) in zip(grid.flat, quantities.items(), strict=True):
        for (mode, sampling), (name, colour, marker, line) in FORMAT_LOOKS.items():
            chosen = frame.filter(mode=mode, sampling=sampling).sort("rate_mbps")
            if len(chosen):
                rows = statistics.summary(chosen, ["rate_mbps"], value)
                _errorbars(axes, rows, "rate_mbps", name, colour, marker, line)
        axes.set_xlabel("transmitted bandwidth (Mb/s)", fontsize=8)
        axes.set_ylabel(label, fontsize=8)
        axes.set_ylim(bottom=0)
        axes.grid(**GRID)
    grid.flat[0].legend(fontsize=6.5)
    figure.suptitle("Five switches with other formats of INT", fontsize=9)
    figure.tight_layout()
    return figure


def live_lengths(frame: pl.DataFrame, quantities: Mapping[str, str], title: str) -> Figure:
    """Draw four quantities of runs in real time over packet length in bytes, with a curve per stack."""
    figure, grid = plt.subplots(2, 2, figsize=(9.2, 6.2), dpi=130)
    for axes, (value, label) in zip(grid.flat, quantities.items(), strict=True):
        for stack, look in STACK_LOOKS.items():
            _errorbars(
                axes, statistics.summary(frame.filter(stack=stack), ["packet_bytes"], value), "packet_bytes", *look
            )
        _lengths(axes, (74, 300, 850, 1514))
        axes.set_ylabel(label, fontsize=8)
        _from_zero(axes, value)
    grid.flat[0].legend(fontsize=6.5)
    figure.suptitle(title, fontsize=9)
    figure.tight_layout()
    return figure


def live_rates(frame: pl.DataFrame, quantities: Mapping[str, str], title: str) -> Figure:
    """Draw four quantities of runs in real time over the transmitted bandwidth in Mb/s, with INT and without."""
    figure, grid = plt.subplots(2, 2, figsize=(9.2, 6.2), dpi=130)
    for axes, (value, label) in zip(grid.flat, quantities.items(), strict=True):
        _with_and_without(axes, frame, value)
        axes.set_ylim(bottom=0)
        axes.set_ylabel(label, fontsize=8)
    grid.flat[0].legend(fontsize=6.5)
    figure.suptitle(title, fontsize=9)
    figure.tight_layout()
    return figure
