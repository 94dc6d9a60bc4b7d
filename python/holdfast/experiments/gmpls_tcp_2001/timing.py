"""Section 5: the switching delay, where the switched flows join others (Table 3, Figs. 7 and 8) and where they do not."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from holdfast import plots
from holdfast.experiments import Finding, Setting
from holdfast.experiments.gmpls_tcp_2001 import drawing, goodput, published
from holdfast.sweep import Point

CURVE_END_S = 8.0
"""Figure 7 shows what happens until flows have settled."""


def points(
    network: str, deltas_ms: Sequence[int], access_percent: float, *, end_s: float = 6.5, curve_ms: float = 0.0
) -> list[Point]:
    """Return a point of section 5 for each switching delay in ``deltas_ms``; other parameters are the same for all."""
    return [
        {
            "network": network,
            "delta_ms": delta_ms,
            "access_percent": access_percent,
            "end_s": end_s,
            "window_s": published.GOODPUT_WINDOW_S,
            "curve_ms": curve_ms,
        }
        for delta_ms in deltas_ms
    ]


SHARED = points(
    "timing",
    published.TIMING_DELTA_MS,
    published.TIMING_ACCESS_PERCENT,
    end_s=CURVE_END_S,
    curve_ms=published.TIMING_CURVE_MS,
)
LOW_ACCESS = points("timing", published.TIMING_DELTA_MS, published.TIMING_LOW_ACCESS_PERCENT)
OPTICAL = points("timing_optical", published.OPTICAL_TIMING_DELTA_MS, published.TIMING_ACCESS_PERCENT)


def _numbers(frame: pl.DataFrame) -> pl.DataFrame:
    changes = goodput.change_numbers(frame, ["delta_ms"], "after_failure", {"delta_ms": 0})
    return pl.concat([changes, goodput.best_numbers(frame, "delta_ms", "after_failure")])


def measured(setting: Setting) -> pl.DataFrame:
    """Run the simulations of section 5.2 and return a row per run. Several parts share these runs."""
    return setting.sweep("timing", goodput.MEASURE, goodput.with_defaults(SHARED))


def table3(setting: Setting) -> Finding:
    """Return the finding of Table 3: the change of goodput in % by switching delay (delta), and how often it is worse.

    The baseline is delta = 0.
    """
    return Finding(_numbers(measured(setting)))


def low_access(setting: Setting) -> Finding:
    """Return Table 3's numbers with access links of 60 % of the backbone's rate, where the paper has 90 %."""
    return Finding(_numbers(measured_low_access(setting)))


def measured_low_access(setting: Setting) -> pl.DataFrame:
    """Run the simulations of section 5.2 with access links of 60 % of the backbone's rate; return a row per run."""
    return setting.sweep("timing_low_access", goodput.MEASURE, goodput.with_defaults(LOW_ACCESS))


def measured_alone(setting: Setting) -> pl.DataFrame:
    """Run the simulations of section 5.3, in which flows join no others; return a row per run."""
    return setting.sweep("timing_optical", goodput.MEASURE, goodput.with_defaults(OPTICAL))


def optical(setting: Setting) -> Finding:
    """Return the finding of section 5.3: goodput by delta, and the best delta, if the link fails for delta and nothing switches."""
    return Finding(_numbers(measured_alone(setting)))


def fig7(setting: Setting) -> Finding:
    """Return the finding of Fig.

    7: goodput over time in % of the backbone's rate, per 10 ms, by set of flows and switching delay.
    """
    frame = measured(setting)
    sets = [
        goodput.curves(frame, ["delta_ms"], f"{name}_curve").select(pl.lit(name).alias("flows"), pl.all())
        for name in ("switched", "fixed")
    ]
    rows = pl.concat(sets)
    figure = drawing.goodput_over_time(
        rows,
        "delta_ms",
        "flows",
        title=f"Fig. 7: goodput after the failure, {len(setting.seeds)} seeds",
    )
    return Finding(figures={"": figure}, frames={"": rows})


def fig8(setting: Setting) -> Finding:
    """Return the finding of Fig. 8: each run's goodput in % of that with an immediate switch, by switching delay, as histograms."""
    rows = goodput.relative(measured(setting), ["delta_ms"], "after_failure", {"delta_ms": 0})
    figure = plots.histograms(
        rows,
        "relative_percent",
        "delta_ms",
        bin_width=5,
        title=f"Fig. 8: goodput relative to delta = 0, {len(setting.seeds)} seeds",
        xlabel="goodput (% of that with delta = 0)",
    )
    return Finding(figures={"": figure}, frames={"": rows})
