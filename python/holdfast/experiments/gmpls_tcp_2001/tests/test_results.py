"""The committed results are consistent: the README with the files, the files with the runs, and the runs with a rerun."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from holdfast import reproduce
from holdfast.experiments import Finding, Setting
from holdfast.experiments.gmpls_tcp_2001 import (
    EXPERIMENT,
    conclusions,
    fit,
    goodput,
    loads,
    longer_path,
    mechanisms,
    merge,
    published,
    runs,
    statements,
    switch_back,
    timing,
)
from holdfast.experiments.gmpls_tcp_2001.tests import report
from holdfast.experiments.gmpls_tcp_2001.tests.report import committed


def test_the_readme_is_what_the_files_say() -> None:
    assert report.COMMITTED.replaced(report.SECTIONS) == report.COMMITTED.readme.read_text(encoding="utf-8")


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
    """Check that the numbers and verdicts in ``finding`` are those that are committed for ``part``."""
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
        *conclusions.back(committed("switch_back"), merge.overflows(committed("merge"), merge.BEHIND)),
        *conclusions.cases(committed("case_study")),
    ]
    again = conclusions.rows(claims)
    kept = report.read("conclusions")
    assert kept["about"].to_list() == again["about"].to_list()
    assert kept["ours"].to_list() == pytest.approx(again["ours"].to_list(), abs=2e-3)
    assert kept["overall"].to_list() == again["overall"].to_list()


def test_statements_are_what_the_runs_say() -> None:
    """Every statement of the paper has a verdict, the one that follows from the committed runs."""
    again = statements.judge({name: committed(name) for name in report.RUNS})
    kept = report.read("statements")
    assert kept["statement"].unique(maintain_order=True).to_list() == [each.name for each in published.STATEMENTS]
    for name in ("statement", "overall", "about", "verdict", "bound"):
        assert kept[name].to_list() == again[name].to_list()
    for name in ("ours", "low", "high"):
        assert kept[name].to_list() == pytest.approx(again[name].to_list(), abs=2e-3)


def test_the_runs_have_the_seeds_that_the_command_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row of a file may be right while there are more seeds or fewer than a run of ``statements`` has."""

    def sweep(setting: Setting, name: str, function: str, points: Sequence[object]) -> pl.DataFrame:
        return pl.DataFrame({"seed": setting.seeds})

    monkeypatch.setattr(Setting, "sweep", sweep)
    for curves in ("timing_curves", "recovery_curves", "dip_curves"):
        monkeypatch.setattr(statements, curves, lambda frame: frame)
    taken = statements.measured(Setting(tuple(range(1, EXPERIMENT.seeds + 1)), tmp_path))
    assert taken.keys() == report.RUNS.keys()
    for name, frame in taken.items():
        assert committed(name)["seed"].unique().sort().to_list() == frame["seed"].to_list(), name


def test_both_readmes_count_the_statements() -> None:
    """Their sentences are by hand."""
    frame = report.read("statements")
    holds, refuted, undecided = (
        frame.filter(pl.col("overall") == verdict)["statement"].n_unique()
        for verdict in (conclusions.HOLDS, conclusions.REFUTED, conclusions.UNDECIDED)
    )
    words = f"{holds} hold, {refuted} are refuted and {undecided} are open"
    root = next(folder for folder in report.COMMITTED.folder.parents if (folder / "Cargo.toml").is_file())
    for readme in (report.COMMITTED.readme, root / "README.md"):
        assert words in readme.read_text(encoding="utf-8")


def test_merging_is_what_the_runs_say() -> None:
    again = merge.numbers(committed("merge"))
    assert report.read("merge")["ours"].to_list() == pytest.approx(again["ours"].to_list(), abs=2e-3)


def test_the_fit_is_what_its_runs_say() -> None:
    """Scores and numbers of the candidates that were left, with seeds that are not among those that chose."""
    frames = {table: report.read(f"fit_runs_{table}") for table in fit.POINTS}
    kept = report.read("fit").filter(pl.col("stage") == fit.HELD_OUT)
    finalists = kept.select(*fit.FACTORS).unique(maintain_order=True).rows()
    held = {}
    for table, frame in frames.items():
        seeds = set(frame.filter(~pl.col("seed").is_in(fit.selection_seeds()))["seed"])
        assert len(seeds) == report.seeds("fit")
        held[table] = frame.filter(pl.col("seed").is_in(seeds))
    again = fit.scores(held, finalists)
    for one in finalists:
        for target in (*fit.POINTS, fit.BOTH):
            of = kept.filter(
                *(pl.col(n) == v for n, v in zip(fit.FACTORS, one, strict=True)),
                pl.col("quantity") == f"score_{target}",
            )
            assert of["ours"].item() == pytest.approx(again[one][target], rel=1e-4)
    chosen = {
        table: frame.filter(pl.col("seed").is_in(fit.selection_seeds()[: fit.ROUNDS[0].seeds]))
        for table, frame in frames.items()
    }
    first = fit.scores(chosen, fit.CANDIDATES)
    assert set(fit.remaining(first, fit.ROUNDS[0].stay)) == set(
        report.read("fit").filter(pl.col("stage").str.starts_with("round 2")).select(*fit.FACTORS).rows()
    )


def test_a_rerun_of_the_fit_gives_the_committed_goodput() -> None:
    """Of the candidate that came first."""
    frame = report.read("fit_runs_table3")
    [best] = (
        report.read("fit")
        .filter(pl.col("stage") == fit.HELD_OUT, pl.col("quantity") == "rank_both", pl.col("ours") == 1)
        .select(*fit.FACTORS)
        .rows()
    )
    [point] = [each for each in fit.points("table3", [best]) if each["delta_ms"] == 50]
    seed = min(set(frame["seed"]) - set(fit.selection_seeds()))
    kept = frame.filter(
        *(pl.col(n) == v for n, v in zip(fit.FACTORS, best, strict=True)),
        pl.col("delta_ms") == 50,
        pl.col("seed") == seed,
    )
    assert round(runs.measure(point, seed)["after_failure"], 3) == kept["after_failure"].item()


def _again(points: list[dict[str, Any]], chosen: dict[str, Any]) -> pl.DataFrame:
    """Return a row of a new run with seed 2, of the point in ``points`` that has the values ``chosen``."""
    [point] = [p for p in goodput.with_defaults(points) if all(p[key] == wanted for key, wanted in chosen.items())]
    return pl.DataFrame([{**point, "seed": 2, **runs.measure(point, 2)}])


@pytest.mark.parametrize(
    ("name", "points", "chosen"),
    [
        ("dips", statements.curves_points(), {"d_ms": 20, "strategy": "optical"}),
        ("recovery", longer_path.POINTS, {"d_ms": 100, "delta_ms": 50}),
        ("timing_curves", timing.SHARED, {"delta_ms": 250}),
        ("half_longer", statements.HALF_LONGER, {"d_ms": statements.HALF_LONGER_D_MS}),
        ("case_study_repair", mechanisms.POINTS, {"mechanism": "path", "scenario": "B"}),
    ],
)
def test_a_rerun_gives_the_committed_runs_of_the_statements(
    name: str, points: list[dict[str, Any]], chosen: dict[str, Any]
) -> None:
    again = report.kept(name, _again(points, chosen))
    kept = pl.read_csv(report.COMMITTED.results / f"runs_{name}.csv")
    keys = [key for key in report.RUNS[name].keys if key in again.columns]
    assert (
        kept.join(again.select(*keys).unique(), on=keys, how="semi").filter(pl.col("seed") == 2).rows() == again.rows()
    )


def test_a_rerun_gives_the_committed_drops_and_loads() -> None:
    [far] = [each for each in goodput.with_defaults(merge.POINTS) if each["d_ms"] == 50]
    drops = committed("merge").filter(pl.col("d_ms") == 50, pl.col("seed") == 2)
    assert merge.drops(far, 2) == drops.select(report.RUNS["merge"].values).row(0, named=True)
    found = loads.measure(goodput.with_defaults(loads.POINTS)[0], 2)
    kept = committed("loads").filter(pl.col("access_percent") == 90, pl.col("seed") == 2)
    assert found == pytest.approx(kept.select(report.RUNS["loads"].values).row(0, named=True), abs=1e-3)


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
        ("unknown", 6.0, 8.0, conclusions.UNDECIDED),
    ],
)
def test_a_verdict(expected: str, low: float, high: float, verdict: str) -> None:
    bound = 5.0 if expected == "within" else 0.0
    assert conclusions.Claim("c", "a", "q", (low + high) / 2, low, high, expected, bound).verdict == verdict


def test_a_verdict_about_another_bound_or_centre() -> None:
    def verdict(expected: str, low: float, high: float, bound: float, centre: float = 0.0) -> str:
        return conclusions.Claim("c", "a", "q", (low + high) / 2, low, high, expected, bound, centre).verdict

    assert verdict("above", -9.0, -8.0, -10.0) == conclusions.HOLDS
    assert verdict("above", -12.0, -11.0, -10.0) == conclusions.REFUTED
    assert verdict("below", 80.0, 90.5, 91.0) == conclusions.HOLDS
    assert verdict("within", 1.8, 2.4, 0.5, 3.0) == conclusions.REFUTED
    assert verdict("within", 2.8, 3.2, 0.5, 3.0) == conclusions.HOLDS


def test_how_many_seeds_would_decide() -> None:
    """Half the distance takes four times as many; a decided statement needs none."""
    claim = conclusions.Claim("c", "a", "q", 1.0, -1.0, 3.0, "above", seeds=100)
    assert claim.seeds_needed == 400
    assert conclusions.Claim("c", "a", "q", 1.0, 0.5, 1.5, "above", seeds=100).seeds_needed is None


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
