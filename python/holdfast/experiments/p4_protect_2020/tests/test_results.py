"""The committed results are consistent: the README with the files, and the files with reruns."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from holdfast.experiments.p4_protect_2020 import (
    EXPERIMENT,
    delay_difference,
    goodput,
    instructions,
    jitter,
    processing,
    published,
    scenarios,
)
from holdfast.experiments.p4_protect_2020.tests import report
from holdfast.experiments.tests.committed import Committed
from holdfast.sweep import Point


def test_the_readme_is_what_the_files_say() -> None:
    assert report.COMMITTED.replaced(report.SECTIONS) == report.COMMITTED.readme.read_text(encoding="utf-8")


@pytest.mark.parametrize("part", ["claim", "fig6", "fig7", "fig7_live", "fig8"])
def test_the_committed_numbers_are_what_the_committed_runs_say(part: str) -> None:
    report.COMMITTED.check_numbers(part, report.found_again(part))


def test_what_is_said_of_figure_6() -> None:
    """With every baseline unprotected traffic is below the paper's, the PTE's protected traffic above it, in the paper's order."""
    rows = report.read("fig6")
    compared = rows.drop_nulls("paper")
    assert compared["verdict"].to_list() == ["differs", "open", "differs", "differs"]
    below, _, also_below, above = compared.iter_rows(named=True)
    assert all(each["high"] < each["paper"] for each in (below, also_below))
    assert above["low"] > above["paper"]
    for name in processing.BASELINES:
        assert processing.in_order(rows, "PTI", name)
        assert processing.in_order(rows, "PTE", name)


def test_a_sitting_is_added_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "COMMITTED", Committed(EXPERIMENT, tmp_path))
    report.COMMITTED.results.mkdir()
    runs = pl.DataFrame({"size_bytes": [64, 64], "seed": [1, 2], "PTI drops": [270.5, 280.25]})
    machine = pl.DataFrame({"processor": ["one"], "load_before": [3.0]})

    def reread() -> dict[str, pl.DataFrame]:
        return {name: report.COMMITTED.read(name) for name in report.SITTINGS}

    first = dict(zip(report.SITTINGS, (runs, machine), strict=True))
    report.add_sitting(dict.fromkeys(report.SITTINGS), first)
    report.add_sitting(reread(), first)
    assert reread()["fig6_sittings"]["sitting"].to_list() == [1, 1]
    report.add_sitting(reread(), {**first, "fig6_sittings": runs.with_columns(pl.col("PTI drops") + 1)})
    assert reread()["fig6_sittings"]["sitting"].to_list() == [1, 1, 2, 2]
    assert reread()["fig6_machines"]["sitting"].to_list() == [1, 2]


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_instructions_counted_again_are_nearly_the_committed_ones() -> None:
    """A small form, in another build and maybe on another processor: the same ratios but for a tenth."""
    counted = pl.DataFrame([{"size_bytes": 64, **instructions.measure({"size_bytes": 64, "packets": 1024}, 1)}])
    kept = report.read("fig6_instructions")
    for end, modes in processing.FORWARDING.items():
        for mode in modes:
            for name in processing.BASELINES:
                again, before = (
                    processing.relative(frame.row(0, named=True), end, mode, name) for frame in (counted, kept)
                )
                assert again == pytest.approx(before, rel=0.1)


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
            "fig7",
            goodput.POINTS,
            {"host_gbps": published.LINE_RATE_GBPS, "pairs": 4, "mode": "plain"},
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
