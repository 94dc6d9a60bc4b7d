"""The committed results are consistent: the README with the files, and the files with reruns."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from holdfast.experiments.bier_tofino_2021 import (
    EXPERIMENT,
    mixes,
    passes,
    provisioning,
    replication,
    restoration,
    throughput,
)
from holdfast.experiments.bier_tofino_2021.tests import report
from holdfast.sweep import Point


def test_the_readme_is_what_the_files_say() -> None:
    assert report.COMMITTED.replaced(report.SECTIONS) == report.COMMITTED.readme.read_text(encoding="utf-8")


@pytest.mark.parametrize("part", [part.name for part in EXPERIMENT.parts])
def test_the_committed_numbers_are_what_the_committed_runs_say(part: str) -> None:
    report.COMMITTED.check_numbers(part, report.found_again(part))


@pytest.mark.parametrize(
    ("part", "point", "measure", "values"),
    [
        ("table2", throughput.POINTS[2], throughput.measure, ("last_gbps", "loss_of_a_pass")),
        ("fig11", restoration.POINTS[0], restoration.measure, ("restoration_ms", "lost")),
        ("fig15", passes.POINTS[0], passes.measure, ("sent", "lost", "loss_of_a_pass")),
        ("fig16", provisioning.POINTS[1], provisioning.measure, ("offered", "lost", "max_packets")),
        ("fig17", mixes.POINTS[0], mixes.measure, ("offered", "lost", "max_packets")),
        ("beyond", replication.POINTS[2], replication.measure, ("last_gbps", "copies_sent")),
    ],
)
def test_a_rerun_of_a_seed_gives_the_committed_run(
    part: str, point: Point, measure: Any, values: tuple[str, ...]
) -> None:
    """Not nearly: the simulation is deterministic, on every machine."""
    keys = {key: wanted for key, wanted in point.items() if key != "load"}
    kept = report.read(f"{part}_runs").filter(*(pl.col(key) == wanted for key, wanted in keys.items()), seed=1)
    found = measure(point, 1)
    assert {name: round(found[name], 6) for name in values} == {name: kept[name].item() for name in values}
