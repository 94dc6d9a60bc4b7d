"""The committed results: the README is what the files say, the files what the runs say, and the runs what a rerun gives."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from holdfast import reproduce
from holdfast.experiments import Finding
from holdfast.experiments.gmpls_tcp_2001 import (
    EXPERIMENT,
    conclusions,
    goodput,
    longer_path,
    mechanisms,
    merge,
    report,
    runs,
    switch_back,
    timing,
)


def committed(sweep: str) -> pl.DataFrame:
    return pl.read_csv(report.COMMITTED.results / f"runs_{sweep}.csv")


def test_the_readme_is_what_the_files_say() -> None:
    readme = report.COMMITTED.readme.read_text()
    assert report.COMMITTED.replaced(readme, report.SECTIONS) == readme


@pytest.mark.parametrize(
    ("part", "sweep", "by", "value", "baseline"),
    [
        ("table3", "timing", ["delta_ms"], "after_failure", {"delta_ms": 0}),
        ("low_access", "timing_low_access", ["delta_ms"], "after_failure", {"delta_ms": 0}),
        ("table5", "rtt_change", ["d_ms", "delta_ms"], "after_failure", {"d_ms": 1}),
    ],
)
def test_changes_are_what_the_runs_say(
    part: str, sweep: str, by: list[str], value: str, baseline: dict[str, Any]
) -> None:
    changes = goodput.change_numbers(committed(sweep), by, value, baseline)
    check(part, Finding(changes.filter(pl.col("quantity") == "goodput_change_percent")))


def test_table6_is_what_the_runs_say() -> None:
    check("table6", Finding(switch_back.change(committed("switch_back"))))


def check(part: str, finding: Finding) -> None:
    """The committed numbers of a part that are in a finding, and the verdicts on the paper's."""
    assert finding.numbers is not None
    found = reproduce.compare(EXPERIMENT.part(part), finding, report.seeds(part))
    assert found is not None
    keys = found.columns[: found.columns.index("quantity") + 1]
    both = report.read(part).join(found.drop_nulls("ours"), on=keys, how="inner", suffix="_again")
    assert both.height == finding.numbers.height
    for name in ("ours", "low", "high"):
        assert both[name].to_list() == pytest.approx(both[f"{name}_again"].to_list(), abs=2e-3)
    if "paper" in both.columns:
        assert both["verdict"].to_list() == both["verdict_again"].to_list()


def test_verdicts_are_what_the_runs_say() -> None:
    """With the runs rounded, verdicts stay and numbers hardly move."""
    claims = [
        *conclusions.shared(committed("timing")),
        *conclusions.alone(committed("timing_optical")),
        *conclusions.longer(committed("rtt_change")),
        *conclusions.back(committed("switch_back"), merge.overflowing(committed("merge"))),
        *conclusions.cases(
            committed("case_study").with_columns(
                rate_mbps=pl.lit(runs.DEFAULTS["rate_mbps"]), access_percent=pl.lit(80.0)
            )
        ),
    ]
    again = conclusions.rows(claims)
    kept = report.read("conclusions")
    assert kept["about"].to_list() == again["about"].to_list()
    assert kept["ours"].to_list() == pytest.approx(again["ours"].to_list(), abs=2e-3)
    assert kept["overall"].to_list() == again["overall"].to_list()


@pytest.mark.parametrize(
    ("sweep", "points", "chosen", "value"),
    [
        ("timing", timing.SHARED, {"delta_ms": 50}, "after_failure"),
        ("rtt_change", longer_path.POINTS, {"d_ms": 100, "delta_ms": 5}, "after_failure"),
        ("switch_back", switch_back.POINTS, {"d_ms": 50, "strategy": "optical"}, "after_repair"),
        ("case_study", mechanisms.POINTS, {"mechanism": "loopbackvar", "scenario": "D"}, "after_failure"),
    ],
)
def test_a_rerun_of_a_seed_gives_the_committed_goodput(
    sweep: str, points: list[dict[str, Any]], chosen: dict[str, Any], value: str
) -> None:
    """Not nearly: the simulation is deterministic, on every machine."""
    [point] = [p for p in goodput.with_defaults(points) if all(p[key] == wanted for key, wanted in chosen.items())]
    kept = committed(sweep).filter(*(pl.col(key) == wanted for key, wanted in chosen.items()), pl.col("seed") == 2)
    assert round(runs.measure(point, 2)[value], 3) == kept[value].item()


@pytest.mark.parametrize(
    ("expected", "low", "high", "verdict"),
    [
        ("above", 1.0, 2.0, conclusions.HOLDS),
        ("above", -1.0, 2.0, conclusions.UNDECIDED),
        ("above", -2.0, -1.0, conclusions.REFUTED),
        ("below", -2.0, -1.0, conclusions.HOLDS),
        ("below", 1.0, 2.0, conclusions.REFUTED),
        ("within", -4.0, 4.9, conclusions.HOLDS),
        ("within", 4.0, 6.0, conclusions.UNDECIDED),
        ("within", 6.0, 8.0, conclusions.REFUTED),
    ],
)
def test_a_verdict(expected: str, low: float, high: float, verdict: str) -> None:
    assert conclusions.Claim("c", "a", "q", (low + high) / 2, low, high, expected, 5.0).verdict == verdict


def test_verdicts_together() -> None:
    """One claim that holds is enough where some delay is asked for; else all have to."""

    def claim(low: float, high: float) -> conclusions.Claim:
        return conclusions.Claim("c", "a", "q", 0.0, low, high, "above")

    holds, refuted, undecided = claim(1, 2), claim(-2, -1), claim(-1, 1)
    assert conclusions.overall(conclusions.SOME, [holds, refuted]) == conclusions.HOLDS
    assert conclusions.overall(conclusions.SOME, [undecided, refuted]) == conclusions.UNDECIDED
    assert conclusions.overall(conclusions.LOCAL, [holds, refuted]) == conclusions.REFUTED
    assert conclusions.overall(conclusions.LOCAL, [holds, undecided]) == conclusions.UNDECIDED
    assert conclusions.overall(conclusions.LOCAL, [holds, holds]) == conclusions.HOLDS
