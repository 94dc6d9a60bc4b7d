"""The committed results: the README is what the files say, and reruns give what the files say."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from holdfast import reproduce
from holdfast.experiments import Finding
from holdfast.experiments.p4_protect_2020 import (
    EXPERIMENT,
    delay_difference,
    goodput,
    goodput_live,
    jitter,
    processing,
    published,
    report,
    scenarios,
)
from holdfast.sweep import Point


def test_the_readme_is_what_the_files_say() -> None:
    readme = report.COMMITTED.readme.read_text()
    assert report.COMMITTED.replaced(readme, report.SECTIONS) == readme


def check(part: str, numbers: pl.DataFrame) -> None:
    """The committed numbers of a part are those that its committed runs give."""
    found = reproduce.compare(EXPERIMENT.part(part), Finding(numbers), report.COMMITTED.seeds(part))
    assert found is not None
    kept = report.read(part)
    assert kept.columns == found.columns
    keys = found.columns[: found.columns.index("quantity") + 1]
    assert kept.select(keys).rows() == found.select(keys).rows()
    if "paper" in kept.columns:
        assert kept["verdict"].to_list() == found["verdict"].to_list()
    for name in ("ours", "low", "high"):
        assert kept[name].to_list() == pytest.approx(found[name].to_list(), rel=1e-4, abs=1e-4)


def test_figure_6_is_what_the_runs_say() -> None:
    check("fig6", processing.numbers(report.read("fig6_runs"), report.read("fig6_instructions")))


def test_figure_7_is_what_the_runs_say() -> None:
    check("fig7", goodput.numbers(report.read("fig7_runs")))
    check("fig7_live", goodput_live.numbers(goodput_live.long(report.read("fig7_live_runs"))))


def test_figure_8_is_what_the_runs_say() -> None:
    check("fig8", jitter.numbers(report.read("fig8_runs"), report.read("fig8_close_runs")))


def test_the_limits_are_what_the_runs_say() -> None:
    check("claim", delay_difference.numbers(report.read("claim_runs")))


@pytest.mark.parametrize(
    ("part", "points", "chosen", "measure", "values"),
    [
        (
            "fig7",
            goodput.POINTS,
            {"host_gbps": goodput.SLOW_HOST_GBPS, "pairs": 2, "mode": "protected"},
            goodput.measure,
            ("goodput_gbps", "segments_retransmitted"),
        ),
        (
            "fig8",
            jitter.POINTS,
            {"law": "clipped", "jitter_ms": 2.0, "mode": "protected"},
            jitter.measure,
            ("average_deviation", "mdev", "returned"),
        ),
        (
            "fig8_close",
            jitter.CLOSE_POINTS,
            {"apart": 0.5, "mode": "protected"},
            jitter.measure,
            ("average_deviation", "returned"),
        ),
        (
            "claim",
            delay_difference.POINTS,
            {"sn_bits": 10, "packets_behind": 512},
            delay_difference.measure,
            ("sent", "delivered", "lost", "duplicated"),
        ),
    ],
)
def test_a_rerun_of_a_seed_gives_the_committed_run(
    part: str, points: list[Point], chosen: dict[str, Any], measure: Any, values: tuple[str, ...]
) -> None:
    """Not nearly: the simulation is deterministic, on every machine."""
    [point] = [p for p in points if all(p[key] == wanted for key, wanted in chosen.items())]
    kept = report.read(f"{part}_runs").filter(
        *(pl.col(key) == wanted for key, wanted in point.items()), pl.col("seed") == 1
    )
    found = measure(point, 1)
    assert {name: round(found[name], 6) for name in values} == {name: kept[name].item() for name in values}


def test_a_rerun_of_the_scenarios_gives_the_committed_events() -> None:
    for row in report.read("scenarios_events").iter_rows(named=True):
        found = scenarios.measure(row, 1)
        for name in ("path1_numbers", "path1_ms", "path2_numbers", "path2_ms", "forwarded_numbers", "forwarded_ms"):
            assert row[name] == " ".join(map(str, found[name]))


def test_the_papers_figure_is_no_multiple_of_the_window() -> None:
    """What the README says of where 1.6 s could be from: the whole space, with 46 to 48 bytes."""
    seconds = {size: round(delay_difference.seconds(2**32, size), 1) for size in range(40, 60)}
    assert [
        size for size, value in seconds.items() if value == published.CLAIM.value("delay_difference_s", sn_bits=32)
    ] == [46, 47, 48]
