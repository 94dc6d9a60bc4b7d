"""The committed results are consistent: the README with the files, and the files with reruns."""

from __future__ import annotations

import polars as pl
import pytest

from holdfast.experiments.pppoe_split_plane import tables_runs
from holdfast.experiments.pppoe_split_plane.tests import report


def test_the_readme_is_what_the_files_say() -> None:
    assert report.COMMITTED.replaced(report.SECTIONS) == report.COMMITTED.readme.read_text(encoding="utf-8")


@pytest.mark.parametrize("part", list(report.STORED))
def test_the_committed_numbers_are_what_the_committed_runs_say(part: str) -> None:
    report.COMMITTED.check_numbers(part, report.found_again(part))


@pytest.mark.parametrize("plane", ["single", "split"])
@pytest.mark.parametrize(("file", "load"), [("table1_runs", "one by one"), ("burst_runs", "burst")])
def test_a_rerun_of_a_seed_gives_the_committed_run(file: str, load: str, plane: str) -> None:
    """Not nearly: the simulation is deterministic, on every machine."""
    point = {"packets": 600, "plane": plane, "load": load}
    kept = report.read(file).filter(*(pl.col(key) == wanted for key, wanted in point.items()), seed=1)
    again = tables_runs.measure(point, 1)
    assert {name: round(value, 6) for name, value in again.items()} == {
        name: round(kept[name].item(), 6) for name in again
    }
