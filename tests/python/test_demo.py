"""The demo's results and files. The tests of ``compare`` cover the shared code."""

from __future__ import annotations

import io
import json
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from holdfast import demo
from holdfast.compare import advice, mechanisms, runs, terminal
from holdfast.compare.comparison import Comparison
from holdfast.errors import HoldfastError, ScenarioError

BRIEF = {"before_s": 0.5, "down_s": 1.5, "after_s": 0.5}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Comparison, Path]:
    out = tmp_path_factory.mktemp("demo")
    return demo.run(demo.scenario(), out), out


def test_what_the_cut_costs(found: tuple[Comparison, Path]) -> None:
    flows = found[0].flow_frame().filter(pl.col("failure") == demo.FAILS)
    udp = {row["mechanism"]: row for row in flows.filter(pl.col("kind") == "udp").iter_rows(named=True)}
    assert list(udp) == list(demo.MECHANISMS)
    assert all(row["sent"] == 10_000 for row in udp.values())
    vector = udp["1+1-vector"]
    assert (vector["lost"], vector["duplicated"], vector["reordered"]) == (0, 0, 0)
    assert vector["outage_ms"] < 2
    # Four seconds of packets, and the few that were on the link when it broke.
    assert 4000 <= udp["static"]["lost"] <= 4005
    # 50 ms of detection, and 100 ms of reaction where the controller is needed.
    assert 50 <= udp["ip-frr"]["lost"] <= 55
    assert 150 <= udp["reroute"]["lost"] <= 155
    assert 150 <= udp["reroute"]["outage_ms"] <= 155
    bulk = {row["mechanism"]: row for row in flows.filter(pl.col("kind") == "bulk").iter_rows(named=True)}
    assert bulk["1+1-vector"]["timeouts"] == 0
    assert bulk["static"]["timeouts"] > bulk["reroute"]["timeouts"] >= 1
    assert bulk["static"]["goodput_bytes"] < 0.2 * bulk["reroute"]["goodput_bytes"]


def test_files(found: tuple[Comparison, Path]) -> None:
    _, out = found
    summary = json.loads((out / "summary.json").read_text())
    assert [each["mechanism"] for each in summary["mechanisms"]] == ["1+1-vector", "ip-frr", "reroute", "static"]
    assert pl.read_parquet(out / "cases.parquet").height == len(demo.MECHANISMS)
    assert (out / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert "link s1-s2 fails" in (out / "report.html").read_text()


def test_the_readme_shows_what_it_prints(found: tuple[Comparison, Path]) -> None:
    comparison, _ = found
    said = io.StringIO()
    console = Console(file=said, width=80, color_system=None)
    for part in (f"{terminal.title(comparison)}\n", terminal.table(comparison), f"\n{advice.advice(comparison)}"):
        console.print(part, highlight=False)
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    shown = readme.partition("$ make demo\n")[2].partition("```")[0]
    assert [line.rstrip() for line in said.getvalue().splitlines()] == shown.splitlines()


def test_same_seed_same_bytes_other_seed_other_bytes(tmp_path: Path) -> None:
    for folder, seed in (("one", 1), ("again", 1), ("other", 2)):
        demo.run(demo.scenario(**BRIEF), tmp_path / folder, seed=seed)
    for name in ("summary.json", "flows.parquet", "report.html"):
        one, again, other = ((tmp_path / folder / name).read_bytes() for folder in ("one", "again", "other"))
        assert one == again
        assert one != other


def measured(tmp_path: Path, mechanism: str, **changes: float | str) -> dict[str, list[int]]:
    path = demo.scenario(**{**BRIEF, **changes}).write(tmp_path)  # type: ignore[arg-type]
    return runs.Prepared(str(path), mechanism, 1).run(demo.FAILS)


@pytest.mark.parametrize("mechanism", demo.MECHANISMS)
def test_both_executors_give_the_same_run(mechanism: str, tmp_path: Path) -> None:
    fast, slow = (measured(tmp_path, mechanism, executor=executor) for executor in ("jit", "interpreter"))
    assert fast == slow


@pytest.mark.parametrize("delays", [(0, 10), (10, 0), (30, 200), (200, 1000)])
def test_reroute_loses_what_its_delays_say(delays: tuple[int, int], tmp_path: Path) -> None:
    detection, reaction = delays
    row = measured(tmp_path, "reroute", detection_delay_ms=detection, reaction_delay_ms=reaction)
    assert detection + reaction <= row["lost"][0] <= detection + reaction + 5


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"jitter_ms": -1}, "high_ms"),
        ({"jitter_ms": float("nan")}, "high_ms"),
        ({"detection_delay_ms": -1}, "--detection-delay-ms"),
        ({"reaction_delay_ms": float("inf")}, "--reaction-delay-ms"),
        ({"down_s": 0}, "--down-s"),
    ],
)
def test_senseless_parameters_are_refused(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(HoldfastError, match=message):
        demo.scenario(**wrong)


def test_the_mechanisms_are_known() -> None:
    assert [each.name for each in mechanisms.find(demo.MECHANISMS)] == list(demo.MECHANISMS)
    with pytest.raises(ScenarioError):
        mechanisms.find(["protect"])
