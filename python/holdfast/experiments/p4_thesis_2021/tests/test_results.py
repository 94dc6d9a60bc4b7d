"""The committed results are consistent: the README with the files, and the files with reruns."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from holdfast.experiments.p4_thesis_2021 import header_runs, setup, telemetry_runs
from holdfast.experiments.p4_thesis_2021.tests import fit, report
from holdfast.sweep import Point


def test_the_readme_is_what_the_files_say() -> None:
    assert report.COMMITTED.replaced(report.SECTIONS) == report.COMMITTED.readme.read_text(encoding="utf-8")


@pytest.mark.parametrize("part", list(report.STORED))
def test_the_committed_numbers_are_what_the_committed_runs_say(part: str) -> None:
    report.COMMITTED.check_numbers(part, report.found_again(part))


@pytest.mark.parametrize(
    ("file", "point", "measure", "values"),
    [
        ("minimum_runs", header_runs.PAYLOAD_POINTS[1], header_runs.measure, ("latency_ms", "wire_bytes")),
        (
            "congestion_runs",
            telemetry_runs.point(5, 1, "thesis", 5.0),
            telemetry_runs.measure,
            ("lost_percent", "latency_ms", "queue_drops"),
        ),
        (
            "beyond_runs",
            telemetry_runs.point(5, 1, "md", 2.0, sampling=0.1),
            telemetry_runs.measure,
            ("lost_percent", "jitter_ms", "bytes_between_switches"),
        ),
    ],
)
def test_a_rerun_of_a_seed_gives_the_committed_run(
    file: str, point: Point, measure: Any, values: tuple[str, ...]
) -> None:
    """Not nearly: the simulation is deterministic, on every machine."""
    kept = report.read(file).filter(*(pl.col(key) == wanted for key, wanted in point.items()), seed=1)
    again = measure(point, 1)
    assert {name: round(again[name], 6) for name in values} == {name: round(kept[name].item(), 6) for name in values}


@pytest.mark.parametrize("stack", list(fit.LATENCIES_MS))
def test_the_service_rates_are_those_that_fit(stack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rate = setup.SERVICE_PACKETS_PER_S[stack]
    monkeypatch.setitem(setup.SERVICE_PACKETS_PER_S, stack, rate)
    assert fit.latency_ms(stack, rate) == pytest.approx(fit.LATENCIES_MS[stack], rel=0.02)


def test_the_rate_of_the_tests_of_int_is_between_the_two_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    rate = setup.MACHINE_PACKETS_PER_S
    monkeypatch.setattr(setup, "MACHINE_PACKETS_PER_S", rate)
    assert fit.lost_percent(fit.UNCONGESTED_MBPS, rate) < 0.5
    assert fit.lost_percent(fit.CONGESTED_MBPS, rate) > 4
