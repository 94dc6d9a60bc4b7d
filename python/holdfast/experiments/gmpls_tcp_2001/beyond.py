"""Beyond the paper: its tables with today's TCPs, with ECN, and with 1+1 protection as a fifth mechanism of the case study.

Each TCP has what the current RFCs recommend (preset ``standard``: initial window of 10, limited transmit, delayed
acknowledgments of 200 ms) and the network and window of the 2001 runs. ECN is marks from half of a link's buffer on. The tables
have fewer rows than the paper's. The paper's numbers are not repeated here: they are of another TCP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from holdfast import plots, statistics
from holdfast.experiments import Finding, Setting
from holdfast.experiments.gmpls_tcp_2001 import goodput, longer_path, mechanisms, published, runs, switch_back, timing
from holdfast.sweep import Point

_TODAY: Point = {"preset": "standard", "delayed_ack_ms": 200}

TCPS: Mapping[str, Point] = {
    "newreno": {},
    "sack": {**_TODAY, "congestion": "newreno", "recovery": "sack"},
    "sack with ECN": {**_TODAY, "congestion": "newreno", "recovery": "sack", "ecn": True},
    "rack": {**_TODAY, "congestion": "newreno", "recovery": "rack-tlp"},
    "cubic": {**_TODAY, "congestion": "cubic", "recovery": "sack"},
    "cubic with ECN": {**_TODAY, "congestion": "cubic", "recovery": "sack", "ecn": True},
    "bbr": {**_TODAY, "congestion": "bbr", "recovery": "rack-tlp"},
}
"""The first is that of 2001, for comparison with the same seeds."""

TABLE_3_POINTS = timing.points("timing", published.TIMING_DELTA_MS, published.TIMING_ACCESS_PERCENT)
TABLE_5_POINTS = [
    *longer_path.points(published.D_MS, (longer_path.DELTA_MS,), end_s=6.5, curve_ms=0.0),
    *longer_path.points((1, 100), (100,), end_s=6.5, curve_ms=0.0),
]
TABLE_6_POINTS = switch_back.points((20, 50, 100), ("electrical", "optical"))
CASE_TCPS = ("newreno", "cubic")
CASE_POINTS: list[Point] = [
    {**mechanisms.POINTS[0], "mechanism": mechanism, "scenario": scenario.name, "curve_ms": 0.0}
    for mechanism in (*published.MECHANISMS, runs.PROTECT)
    for scenario in published.SCENARIOS
]


def points(of: Sequence[Point], tcps: Sequence[str] | None = None) -> list[Point]:
    """Return the points ``of`` once per TCP: for all TCPs, or for those named in ``tcps``; the points do not contain the name."""
    return [point for tcp in tcps or TCPS for point in goodput.with_defaults(of, **TCPS[tcp])]


def _measured(setting: Setting, name: str, of: Sequence[Point], tcps: Sequence[str] | None = None) -> pl.DataFrame:
    """Run the points ``of`` with each TCP; return a row per run, with the name of its TCP in the column ``tcp``.

    ``tcps``: their names; all if None.
    """
    frame = setting.sweep(name, goodput.MEASURE, points(of, tcps))
    each = len(of) * len(setting.seeds)
    return frame.with_columns(tcp=pl.Series([tcp for tcp in tcps or TCPS for _ in range(each)]))


def _changes(frame: pl.DataFrame, by: Sequence[str], baseline: Mapping[str, Any], value: str) -> pl.DataFrame:
    return goodput.change_numbers(frame, ["tcp", *by], value, baseline).filter(
        ~pl.all_horizontal(pl.col(name) == wanted for name, wanted in baseline.items())
    )


def _picture(numbers: pl.DataFrame, x: str, title: str, seeds: int, panel: str | None = None) -> Figure:
    rows = numbers.filter(pl.col("quantity") == "goodput_change_percent").rename({"ours": "mean"})
    return plots.intervals(
        rows,
        x,
        "tcp",
        panel,
        title=f"{title}, {seeds} seeds",
        xlabel=x.replace("_ms", " (ms)"),
        ylabel="goodput change (%)",
    )


def table3(setting: Setting) -> Finding:
    """Return a finding like Table 3 with today's TCPs: the change of goodput in % by switching delay, against no delay.

    The backup path is shared with other flows.
    """
    frame = _measured(setting, "beyond_table3", TABLE_3_POINTS)
    numbers = _changes(frame, ["delta_ms"], {"delta_ms": 0}, "after_failure")
    return Finding(
        numbers, {"": _picture(numbers, "delta_ms", "goodput against delta = 0, shared backup", len(setting.seeds))}
    )


def table5(setting: Setting) -> Finding:
    """Return a finding like Table 5 with today's TCPs: the change of goodput in % by length of the backup, against equal length."""
    frame = _measured(setting, "beyond_table5", TABLE_5_POINTS)
    numbers = _changes(frame, ["d_ms", "delta_ms"], {"d_ms": 1}, "after_failure")
    fast = numbers.filter(pl.col("delta_ms") == longer_path.DELTA_MS)
    return Finding(numbers, {"": _picture(fast, "d_ms", "goodput against d = 1 ms, delta = 5 ms", len(setting.seeds))})


def table6(setting: Setting) -> Finding:
    """Return a finding like Table 6 with today's TCPs: the change of goodput after the repair in %, optical against electrical."""
    frame = _measured(setting, "beyond_table6", TABLE_6_POINTS)
    numbers = _changes(frame, ["d_ms", "strategy"], {"strategy": "electrical"}, "after_repair").drop("strategy")
    return Finding(numbers, {"": _picture(numbers, "d_ms", "optical against electrical", len(setting.seeds))})


def fig19(setting: Setting) -> Finding:
    """Return a finding like Fig. 19 with two TCPs and five mechanisms: goodput in % of the achievable, by scenario.

    The fifth mechanism is 1+1 protection, which the paper does not have.
    """
    frame = _measured(setting, "beyond_case_study", CASE_POINTS, CASE_TCPS)
    figures, parts = {}, []
    for name, value, window_s, what in (
        ("a", "after_failure", published.CASE_STUDY_WINDOW_S, "2.5 s after the failure"),
        ("b", "after_repair", published.GOODPUT_WINDOW_S, "1.5 s after the repair"),
    ):
        rows = statistics.summary(
            goodput.achievable(frame, value, window_s), ["tcp", "mechanism", "scenario"], "achieved_percent"
        )
        figures[name] = plots.intervals(
            rows,
            "scenario",
            "mechanism",
            "tcp",
            title=f"goodput in the {what}, {len(setting.seeds)} seeds",
            xlabel="scenario",
            ylabel="goodput (% of the achievable)",
        )
        parts.append(
            rows.select(
                "tcp",
                "mechanism",
                "scenario",
                quantity=pl.lit(f"achieved_{value}_percent"),
                ours="mean",
                low="low",
                high="high",
            )
        )
    return Finding(pl.concat(parts), figures)
