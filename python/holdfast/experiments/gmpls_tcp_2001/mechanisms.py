"""Section 8, the case study: four mechanisms in the four scenarios of Table 7 (Figs. 18 and 19).

The paper leaves delta open there; here it is 5 ms, as in its Fig. 10.
"""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from holdfast import plots, statistics
from holdfast.experiments import Finding, Setting
from holdfast.experiments.gmpls_tcp_2001 import drawing, goodput, published
from holdfast.sweep import Point

POINTS: list[Point] = [
    {
        "network": "case_study",
        "mechanism": mechanism,
        "scenario": scenario.name,
        "delta_ms": published.TABLE_8_DELTA_MS,
        "access_percent": published.ACCESS_PERCENT,
        "end_s": published.REPAIR_S + published.GOODPUT_WINDOW_S,
        "window_s": published.CASE_STUDY_WINDOW_S,
        "curve_ms": published.CURVE_MS,
    }
    for mechanism in published.MECHANISMS
    for scenario in published.SCENARIOS
]


def measured(setting: Setting) -> pl.DataFrame:
    """Run the simulations of section 8 (the case study) and return a row per run, with goodput in packets."""
    return setting.sweep("case_study", goodput.MEASURE, goodput.with_defaults(POINTS))


def fig18(setting: Setting) -> Finding:
    """Return the finding of Fig. 18: goodput in % of the backbone's rate over time until the repair, a panel per mechanism."""
    rows = goodput.curves(measured(setting), ["mechanism", "scenario"], "switched_curve")
    rows = rows.filter(pl.col("time_s") <= published.REPAIR_S)
    return Finding(figures={"": draw18(rows, len(setting.seeds))}, frames={"": rows})


def draw18(rows: pl.DataFrame, seeds: int) -> Figure:
    """Draw Fig. 18 from rows of goodput over time: a panel per mechanism, a curve per scenario."""
    return drawing.goodput_over_time(
        rows,
        "scenario",
        "mechanism",
        title=f"Fig. 18: goodput after the failure, {seeds} seeds",
        columns=2,
    )


def fig19(setting: Setting) -> Finding:
    """Return the finding of Fig. 19: goodput after the failure (a) and after the repair (b), in % of the achievable."""
    frame = measured(setting)
    figures, frames = {}, {}
    for name, value, window_s, what in (
        ("a", "after_failure", published.CASE_STUDY_WINDOW_S, "2.5 s after the failure"),
        ("b", "after_repair", published.GOODPUT_WINDOW_S, "1.5 s after the repair"),
    ):
        achieved = goodput.achievable(frame, value, window_s)
        frames[name] = statistics.summary(achieved, ["mechanism", "scenario"], "achieved_percent")
        figures[name] = plots.intervals(
            frames[name],
            "scenario",
            "mechanism",
            title=f"Fig. 19({name}): goodput in the {what}, {len(setting.seeds)} seeds",
            xlabel="scenario",
            ylabel="goodput (% of the achievable)",
        )
    return Finding(figures=figures, frames=frames)
