"""A world from outside Holdfast, as a user writes one: runs, files, ranking, doubts, tables and report are the framework's."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest

from holdfast.cli.comparisons import show_comparison
from holdfast.compare.inputs import times
from holdfast.errors import ScenarioError

MODULE = '''
"""Pumps of a polder, of which some fail: no network, no packet."""

import random
from dataclasses import dataclass

from holdfast.compare import inputs
from holdfast.compare.competitor import Competitor
from holdfast.compare.ranking import Ranking
from holdfast.compare.world import World
from polder_rain import RAIN_PER_S


@dataclass(frozen=True)
class Pumps(Competitor):
    """So many pumps, each with its power from the grid or from a generator."""

    number: int
    generator: bool = False


class Polder(inputs.Scenario):
    """``seconds``: of rain. ``spread``: by which the rain of a second differs from its mean, in litres."""

    seconds: int = 20
    spread: int = 2


MECHANISMS = {
    each.name: each
    for each in (
        Pumps("one", "a single pump", ("#000000", "#ffffff"), 1),
        Pumps("two", "a pump in reserve", ("#0000ff", "#8888ff"), 2),
        Pumps("two-generator", "the same with a generator", ("#008800", "#88ff88"), 2, generator=True),
    )
}


def pumping(pumps, failure):
    """Return how many pumps work during a failure."""
    if failure == "grid" and not pumps.generator:
        return 0
    return pumps.number - (failure == "pump")


def measured(point, _):
    """Run the polder: a litre that no pump lifts is lost."""
    polder, pumps = inputs.read(Polder, point["scenario"]), MECHANISMS[point["mechanism"]]
    drawn = random.Random(point["network_seed"])
    lost = []
    for second in range(polder.seconds):
        rain = RAIN_PER_S + drawn.randint(-polder.spread, polder.spread)
        down = polder.times.failure_s <= second < polder.times.repair_s
        working = pumping(pumps, point["failure"] if down else "none")
        lost.append(max(0, rain - 2 * RAIN_PER_S * working))
    return {"lost": lost}


WORLD = World(command="polder", known=lambda: MECHANISMS, measured=measured, compared=Ranking)
'''

RUN = """
import sys
from pathlib import Path
from holdfast.compare.inputs import times
from polder import WORLD, Polder

if __name__ == "__main__":
    given = Polder(times=times({"before_s": 5, "down_s": 10, "after_s": 5}), failures=("pump", "grid"))
    WORLD.run(given, WORLD.choose(given, None), [1, 2, 3], Path(sys.argv[1]), jobs=int(sys.argv[2]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "polder.py").write_text(MODULE)
    (tmp_path / "polder_rain.py").write_text("RAIN_PER_S = 10\n")
    (tmp_path / "run.py").write_text(RUN)
    return tmp_path


@pytest.fixture
def polder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(folder))
    import polder  # type: ignore[import-not-found]

    yield polder
    for name in [name for name in sys.modules if name.startswith("polder")]:
        del sys.modules[name]


TIMES = times({"before_s": 5, "down_s": 10, "after_s": 5})


def test_its_mechanisms_are_ranked_and_reported(
    polder: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = polder.Polder(times=TIMES, failures=("pump", "grid"))
    world, out = polder.WORLD, tmp_path / "out"
    show_comparison(world, lambda: world.run(given, world.choose(given, None), [1, 2, 3], out), out)
    printed = " ".join(capsys.readouterr().out.split())
    summary = json.loads((out / "summary.json").read_text())
    found = {each["mechanism"]: each for each in summary["mechanisms"]}
    # One pump fails: one has none, the others have one. The grid fails: only the generator helps.
    assert [(name, each["rank"]) for name, each in found.items()] == [("two-generator", 1), ("two", 2), ("one", 3)]
    assert found["two-generator"]["lost_mean"] == 0
    assert found["one"]["lost_mean"] == pytest.approx(2 * found["two"]["lost_mean"])
    assert 80 < found["one"]["lost_mean"] < 120
    assert (found["two"]["worst_failure"], found["two"]["lost_worst"]) == ("grid", found["one"]["lost_worst"])
    assert summary["doubts"] == [] and summary["failures"] == ["pump", "grid"]
    advice = "two-generator loses fewest packets: 0 on average for a failure (two "
    assert summary["advice"].startswith(advice) and advice in printed
    page = unescape((out / "report.html").read_text())
    assert (
        "Made by <code>holdfast compare polder</code>" in page
        and "a pump in reserve" in page
        and summary["advice"] in page
    )
    cases = pl.read_parquet(out / "cases.parquet")
    assert cases.columns == ["mechanism", "failure", "seed", "lost", "lost_undisturbed", "lost_to_failure"]
    assert cases.height == 3 * 2 * 3 and cases["lost_undisturbed"].sum() == 0


def test_it_goes_on_where_it_stopped_on_any_number_of_processes(folder: Path) -> None:
    def run(out: str, jobs: int) -> int:
        """Return the number of runs that were made."""
        command = [sys.executable, "run.py", out, str(jobs)]
        subprocess.run(command, cwd=folder, check=True, timeout=300, capture_output=True)
        return int(json.loads((folder / out / "runs/sweep.json").read_text())["runs_of_this_call"])

    assert (run("one", 1), run("two", 2), run("one", 1)) == (27, 27, 0)
    for name in ("cases.parquet", "summary.json", "report.html"):
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes()
    # Its own code, and what that imports, is part of what results depend on.
    (folder / "polder_rain.py").write_text("RAIN_PER_S = 20\n")
    before = json.loads((folder / "one/summary.json").read_text())["mechanisms"][-1]["lost_mean"]
    assert run("one", 1) == 27
    after = json.loads((folder / "one/summary.json").read_text())["mechanisms"][-1]["lost_mean"]
    assert after == pytest.approx(2 * before, rel=0.1)


def test_what_it_loses_anyway_is_doubted(polder: ModuleType, tmp_path: Path) -> None:
    """Check that a polder which is flooded without any failure gets no ranking."""
    given = polder.Polder(times=TIMES, failures=("pump",), spread=200)
    found = polder.WORLD.run(given, polder.WORLD.choose(given, ["two"]), [1], tmp_path / "out")
    assert [each.rank for each in found.summaries] == [None, None]
    assert polder.WORLD.advice(found).startswith(
        "Unreliable, so there is neither ranking nor advice: without any failure"
    )
    assert "In no order." in (tmp_path / "out/report.html").read_text()
    with pytest.raises(ScenarioError, match="polder cannot run in real time"):
        polder.WORLD.run(given.model_copy(update={"live": True}), found.mechanisms, [1], tmp_path / "live")
    with pytest.raises(ScenarioError, match="there is no mechanism 'three'"):
        polder.WORLD.choose(given, ["three"])


def test_failures_that_a_mechanism_does_not_tell_apart_are_one_run(polder: ModuleType, tmp_path: Path) -> None:
    from dataclasses import replace

    calls: dict[str, str] = {"grid": "pump"}
    world = replace(
        polder.WORLD,
        same_as=lambda mechanism, failure: calls.get(failure, failure) if mechanism.name == "one" else failure,
    )
    given = polder.Polder(times=TIMES, failures=("pump", "grid"))
    found = world.run(given, world.choose(given, None), [1], tmp_path / "out")
    assert json.loads((tmp_path / "out/runs/sweep.json").read_text())["runs"] == 9 - 1
    assert [case.failure for case in found.cases_of("one")] == ["pump", "grid"]
    assert len({case.lost_to_failure for case in found.cases_of("one")}) == 1
