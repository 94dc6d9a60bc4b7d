"""Section 6: the cost of a longer backup path, for every switching delay (Tables 4 and 5, Figs. 10 to 14)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from matplotlib.figure import Figure

from holdfast import plots, statistics
from holdfast.experiments import Finding, Setting
from holdfast.experiments.gmpls_tcp_2001 import drawing, goodput, published
from holdfast.sweep import Point

DELTA_MS = 5
"""The switching delay of Table 4, Figs. 10 and 11, and of the switch-back."""


def points(ds_ms: Sequence[int], deltas_ms: Sequence[int], *, end_s: float, curve_ms: float) -> list[Point]:
    """Return a point of section 6 for each pair of a backup's length in ``ds_ms`` and a switching delay in ``deltas_ms``."""
    return [
        {
            "network": "rtt_change",
            "strategy": "electrical",
            "d_ms": d_ms,
            "delta_ms": delta_ms,
            "access_percent": published.ACCESS_PERCENT,
            "end_s": end_s,
            "window_s": published.GOODPUT_WINDOW_S,
            "curve_ms": curve_ms,
        }
        for d_ms in ds_ms
        for delta_ms in deltas_ms
    ]


POINTS = points(published.D_MS, published.DELTA_MS, end_s=published.REPAIR_S, curve_ms=published.CURVE_MS)


def measured(setting: Setting) -> pl.DataFrame:
    """Run the simulations of section 6 (a longer backup path) and return a row per run, with goodput in packets."""
    return setting.sweep("rtt_change", goodput.MEASURE, goodput.with_defaults(POINTS))


def _fast(setting: Setting) -> pl.DataFrame:
    return measured(setting).filter(pl.col("delta_ms") == DELTA_MS)


def table4(setting: Setting) -> Finding:
    """Return the finding of Table 4: changes of round trip and goodput in %, and how often goodput is best, by backup length d.

    The switching delay delta is 5 ms.
    """
    frame = _fast(setting)
    changes = goodput.change_numbers(frame, ["d_ms"], "after_failure", {"d_ms": 1})
    best = goodput.best_numbers(frame, "d_ms", "after_failure")
    return Finding(pl.concat([goodput.rtt_change_numbers(frame), changes, best]))


def table5(setting: Setting) -> Finding:
    """Return the finding of Table 5: the change of goodput in % by length d and switching delay delta, against d = 1 ms."""
    changes = goodput.change_numbers(measured(setting), ["d_ms", "delta_ms"], "after_failure", {"d_ms": 1})
    return Finding(changes.filter(pl.col("quantity") == "goodput_change_percent"))


def fig10(setting: Setting) -> Finding:
    """Return the finding of Fig. 10: goodput in % of the backbone's rate over time, per 100 ms, by the length d of the backup.

    The switching delay delta is 5 ms.
    """
    rows = goodput.curves(_fast(setting), ["d_ms"], "switched_curve")
    figure = drawing.goodput_over_time(
        rows,
        "d_ms",
        title=f"Fig. 10: goodput after the failure, delta = {DELTA_MS} ms, {len(setting.seeds)} seeds",
    )
    return Finding(figures={"": figure}, frames={"": rows})


def fig11(setting: Setting) -> Finding:
    """Return the finding of Fig.

    11: each run's goodput in % of that with d = 1 ms, as histograms by backup length d up to 50 ms.
    """
    frame = _fast(setting).filter(pl.col("d_ms") <= 50)
    rows = goodput.relative(frame, ["d_ms"], "after_failure", {"d_ms": 1})
    figure = plots.histograms(
        rows,
        "relative_percent",
        "d_ms",
        bin_width=1,
        title=f"Fig. 11: goodput relative to d = 1 ms, delta = {DELTA_MS} ms, {len(setting.seeds)} seeds",
        xlabel="goodput (% of that with d = 1 ms)",
    )
    return Finding(figures={"": figure}, frames={"": rows})


DRAWN_D_MS = (1, 20, 50, 100)
"""The lengths d that Fig. 12 shows; its data have all: d = 2 and 10 ms would lie over d = 1 ms."""


def fig12(setting: Setting) -> Finding:
    """Return the finding of Fig. 12: mean goodput over the seeds, in % of the backbone's rate, over the time from the failure on.

    There is a curve for each switching delay and length of the backup path.
    """
    rows = goodput.curves(measured(setting), ["delta_ms", "d_ms"], "switched_curve").sort(
        "delta_ms", "d_ms", "time_s", maintain_order=True
    )
    return Finding(figures={"": draw12(rows, len(setting.seeds))}, frames={"": rows})


def draw12(rows: pl.DataFrame, seeds: int) -> Figure:
    """Draw Fig. 12 from rows of goodput over time: a panel per delta, a curve per drawn d."""
    return drawing.goodput_over_time(
        rows.filter(pl.col("d_ms").is_in(DRAWN_D_MS)),
        "d_ms",
        "delta_ms",
        title=f"Fig. 12: goodput after the failure, {seeds} seeds",
        columns=3,
    )


def fig13(setting: Setting) -> Finding:
    """Return the finding of Fig.

    13: the share of seeds in which each backup length d has the highest goodput, by switching delay.
    """
    frame = measured(setting).sort("delta_ms", "d_ms", "seed")
    rows = statistics.best(frame, "d_ms", "after_failure", ["delta_ms"])
    figure = plots.proportions(
        rows,
        "delta_ms",
        "d_ms",
        title=f"Fig. 13: the backup length with the most goodput, {len(setting.seeds)} seeds",
        xlabel="delta (ms)",
    )
    return Finding(figures={"": figure}, frames={"": rows})


def fig14(setting: Setting) -> Finding:
    """Return the finding of Fig.

    14: goodput in the 1.5 s after the failure, in % of the achievable, by switching delay and length.
    """
    frame = goodput.achievable(measured(setting), "after_failure", published.GOODPUT_WINDOW_S)
    rows = statistics.summary(frame, ["delta_ms", "d_ms"], "achieved_percent")
    figure = plots.intervals(
        rows,
        "d_ms",
        "delta_ms",
        title=f"Fig. 14: goodput in the 1.5 s after the failure, {len(setting.seeds)} seeds",
        xlabel="d (ms)",
        ylabel="goodput (% of the achievable)",
    )
    return Finding(figures={"": figure}, frames={"": rows})
