"""Pictures, and the one registry of how each mechanism looks in all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt


@dataclass(frozen=True)
class Style:
    """Label and colour of a mechanism (colours from the Okabe-Ito palette, safe for colour-blind readers)."""

    label: str
    colour: str


STYLES: Mapping[str, Style] = {
    "static": Style("static: no reaction", "#D55E00"),
    "reroute": Style("reroute: controller reacts", "#0072B2"),
    "protect": Style("protect: 1+1 (P4-Protect)", "#009E73"),
}


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
        style = STYLES[name]
        axis.axvspan(failure_s, repair_s, color="#DDDDDD", zorder=0)
        axis.fill_between(times, rates, step="mid", color=style.colour, alpha=0.25, linewidth=0)
        axis.step(times, rates, where="mid", color=style.colour, linewidth=1.4)
        axis.axhline(offered_per_s, color="#888888", linewidth=0.7, linestyle=":")
        axis.set_title(style.label, loc="left", fontsize=9, color=style.colour, fontweight="bold")
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
    figure.savefig(path, metadata={"Software": None})
    plt.close(figure)
