"""``holdfast compare gateways``: what its failures cost is what they must cost, its files, and its error messages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from holdfast_command import holdfast
from typer.testing import CliRunner

from holdfast import compare, results
from holdfast.cli import app
from holdfast.compare import columns
from holdfast.compare.gateways import report, runs, scenario
from holdfast.compare.gateways.comparison import Comparison
from holdfast.compare.gateways.mechanisms import MECHANISMS
from holdfast.compare.gateways.radius_server import RadiusServer
from holdfast.compare.gateways.results import WORLD
from holdfast.compare.gateways.scenario import Scenario
from holdfast.compare.gateways.simulation import Simulation
from holdfast.compare.requirements import read
from holdfast.errors import ScenarioError

SMALL: dict[str, float | None] = {"subscribers": 8, "packets_per_s": 20, "newcomers_per_s": 2}
WHEN: dict[str, float | None] = {"before_s": 6, "down_s": 6, "after_s": 8}
FAILURES = len(scenario.FAILURES)
NAMES = list(MECHANISMS)


def given(fail: str = "all", **changes: float) -> Scenario:
    return scenario.build(fail=fail, when=WHEN, subscribers={**SMALL, **changes})


def example() -> tuple[str, list[str]]:
    """Return the command of the README, with the scenario of this file, and the lines that it prints."""
    text = (Path(compare.__file__).parent / "README.md").read_text()
    [(command, table)] = re.findall(r"```\n\$ holdfast (compare gateways .*)\n((?:.*\n)*?)```\n", text)
    return command, table.splitlines()


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Run the example of the README; return what the command prints and the folder of its results."""
    out = tmp_path_factory.mktemp("bng")
    done = CliRunner().invoke(app, [*example()[0].split(), "--jobs", "1", "--out", str(out)], env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    return done.stdout, out


@pytest.fixture(scope="module")
def compared(printed: tuple[str, Path]) -> tuple[Comparison, Path]:
    """Return the comparison of the runs that the example has made."""
    asked, out = given(), printed[1]
    found = WORLD.run(asked, WORLD.choose(asked, None), [1], out)
    assert json.loads((out / "runs/sweep.json").read_text())["runs_of_this_call"] == 0
    return found, out


def part(comparison: Comparison, mechanism: str, failure: str) -> Any:
    [summary] = [each for each in comparison.summaries if each.mechanism == mechanism]
    return SimpleNamespace(**summary.parts[failure])


def test_columns_are_described(compared: tuple[Comparison, Path]) -> None:
    _, out = compared
    for name, words in (("cases", columns.GATEWAY_CASES), ("subscribers", columns.SUBSCRIBERS)):
        assert results.read(out)[name].columns == list(words)


def test_every_measure_can_be_required(compared: tuple[Comparison, Path]) -> None:
    comparison, _ = compared
    text = "split: lost < 1e6, outage <= 1h, ended < 1000, recovered < 1h, refused < 1000, entries < 1e6"
    generous, strict = WORLD.judged(comparison, [read(each, WORLD.measures) for each in (text, "single: ended < 1")])
    assert len(generous.findings["split"]) == len(WORLD.measures)
    assert generous.is_met and not strict.is_met


def test_nothing_is_lost_without_a_failure(compared: tuple[Comparison, Path]) -> None:
    comparison, _ = compared
    for name in NAMES:
        row = comparison.row(name, "none", 1)
        assert row["lost"] == row["duplicated"] == [0] * 8
        assert row["outage_ms"] == row["recovered_ms"] == [0.0] * 8
        assert all(row["kept"]) and all(row["online"])
        # Eight subscribers and twelve newcomers, each with the record of its start.
        assert (row["accounted"], row["records_waiting"], row["wrong_session"]) == (20, 0, 0)
        assert len(row["setup_ms"]) == 12 and max(row["setup_ms"]) < 100
        assert all(each > 0 for each in row["sent"])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("failure", ["controller", "radius"])
def test_established_sessions_do_not_need_a_controller_or_radius(
    compared: tuple[Comparison, Path], name: str, failure: str
) -> None:
    found = part(compared[0], name, failure)
    assert (found.kept_mean, found.lost_mean, found.outage_worst_ms, found.recovered_ms) == (8, 0, 0.0, 0.0)
    assert found.newcomers_in == 12
    if (name, failure) == ("pair", "controller"):
        assert found.setup_worst_ms < 100
    else:  # who dials first waits until it is back
        assert found.setup_worst_ms > 4000


def test_the_sessions_of_a_plane_are_made_on_the_other(compared: tuple[Comparison, Path]) -> None:
    """Check that only packets of sessions on this plane are lost, for the 150 ms of detection and reaction."""
    found = part(compared[0], "split-2", "plane")
    assert found.kept_mean == 8
    assert 150 <= found.outage_worst_ms <= 220
    assert 100 <= found.recovered_ms <= 170
    row = compared[0].row("split-2", "plane", 1)
    hit = [lost for lost in row["lost"] if lost]
    assert 0 < len(hit) < 8
    assert all(4 <= lost <= 8 for lost in hit)


def test_half_of_a_pair_dials_again(compared: tuple[Comparison, Path]) -> None:
    for failure in ("plane", "access"):
        found = part(compared[0], "pair", failure)
        assert (found.kept_mean, found.unrecovered) == (4, 0)
        # Three echoes of a second each, half a second's patience, and a setup; one in a second may just have been answered.
        assert 3000 < found.recovered_ms < 5600
        assert found.setup_worst_ms < 100


@pytest.mark.parametrize(
    ("name", "failure"),
    [("single", "plane"), ("split", "plane"), ("split", "balancer"), ("split-2", "balancer"), ("single", "access")],
)
def test_without_another_way_all_are_out_until_the_repair(
    compared: tuple[Comparison, Path], name: str, failure: str
) -> None:
    found = part(compared[0], name, failure)
    assert (found.kept_mean, found.unrecovered) == (0, 0)
    assert 6000 <= found.outage_worst_ms <= 6000 + 3000 + 1500
    assert all(compared[0].row(name, failure, 1)["online"])


@pytest.mark.parametrize("name", ["split", "split-2"])
def test_established_sessions_do_not_need_the_authentication_plane(
    compared: tuple[Comparison, Path], name: str
) -> None:
    """Check that new subscribers wait until the authentication plane is back with its tables."""
    found = part(compared[0], name, "auth")
    assert (found.kept_mean, found.lost_mean, found.outage_worst_ms, found.recovered_ms) == (8, 0, 0.0, 0.0)
    assert found.newcomers_in == 12
    assert 4000 < found.setup_worst_ms < 6000 + 4000


def test_a_gateway_of_one_plane_is_one_switch(compared: tuple[Comparison, Path]) -> None:
    for name in ("single", "pair"):
        rows = [compared[0].row(name, failure, 1) for failure in ("plane", "balancer", "auth")]
        assert rows[0]["lost"] == rows[1]["lost"] == rows[2]["lost"] != [0] * 8
        assert [each["failure"] for each in rows] == ["plane", "balancer", "auth"]


def test_a_session_outlives_an_outage_that_keepalives_do_not_notice() -> None:
    patient = given("access", keepalive_s=10, newcomers_per_s=0)
    row = runs.run(Simulation(patient, MECHANISMS["single"], 1), "access")
    assert all(row["kept"])
    assert all(abs(each - 6000) < 200 for each in row["outage_ms"])


def test_a_run_that_ends_early_has_subscribers_that_have_not_recovered() -> None:
    short = scenario.build(fail="plane", when={**WHEN, "after_s": 0.1}, subscribers={**SMALL, "newcomers_per_s": 0})
    rows = [
        {
            "mechanism": "single",
            "failure": failure,
            "network_seed": 1,
            **runs.run(Simulation(short, MECHANISMS["single"], 1), failure),
        }
        for failure in ("none", "plane")
    ]
    comparison = Comparison(short, [MECHANISMS["single"]], [1], rows)
    [summary] = comparison.summaries
    assert summary.parts["plane"]["unrecovered"] > 0
    assert summary.recovered_ms is summary.parts["plane"]["recovered_ms"] is summary.newcomers_in_percent is None
    assert report.recovered(summary.parts["plane"]).endswith(" never")


def test_ranks_follow_the_packets_that_are_lost(compared: tuple[Comparison, Path]) -> None:
    comparison, _ = compared
    summaries = comparison.summaries
    assert [each.rank for each in summaries] == sorted(each.rank for each in summaries)
    assert summaries[0].rank == 1
    of = {each.mechanism: each for each in summaries}
    assert summaries[0].lost_mean == min(each.lost_mean for each in summaries)
    assert comparison.lost_less(of["split-2"], of["single"]) and not comparison.lost_less(of["single"], of["split-2"])
    for one in summaries:
        assert one.lost_mean == pytest.approx(sum(each["lost_mean"] for each in one.parts.values()) / FAILURES)


def made_up(lost: Mapping[str, list[int]]) -> Comparison:
    """Return a comparison of mechanisms that lose this many packets by the plane's failure, seed by seed."""
    rows = []
    base: dict[str, Any] = {
        "sent": [1000],
        "duplicated": [0],
        "outage_ms": [0.0],
        "recovered_ms": [0.0],
        "kept": [True],
        "online": [True],
        "setup_ms": [],
        "delivered_curve": [1],
        "online_curve": [1],
        "entries": [1],
        **dict.fromkeys(("wrong_session", "accounted", "records_waiting"), 0),
    }
    for name, costs in lost.items():
        for seed, cost in enumerate(costs, 1):
            for failure, own in (("none", 0), ("plane", cost)):
                rows.append({"mechanism": name, "failure": failure, "network_seed": seed, "lost": [own], **base})
    chosen = [each for name, each in MECHANISMS.items() if name in lost]
    return Comparison(given("plane"), chosen, range(1, 1 + len(next(iter(lost.values())))), rows)


def test_what_seeds_cannot_tell_apart_has_one_rank() -> None:
    unsure = made_up({"single": [190, 230, 210], "pair": [200, 215, 205], "split-2": [10, 11, 10]})
    assert {each.mechanism: each.rank for each in unsure.summaries} == {"split-2": 1, "single": 2, "pair": 2}
    sure = made_up({"single": [200, 300, 250], "pair": [100, 190, 150]})
    assert {each.mechanism: each.rank for each in sure.summaries} == {"pair": 1, "single": 2}
    near = made_up({"single": [100], "pair": [96]})
    assert {each.mechanism: each.rank for each in near.summaries} == {"pair": 1, "single": 1}
    assert WORLD.advice(near) == "As far as these failures go, no mechanism loses fewer packets than another."
    alone = made_up({"single": [5]})
    assert WORLD.advice(alone) == "Only single was run: there is nothing to compare it with."
    low, high = (unsure.summaries[0].parts["plane"][name] for name in ("lost_low", "lost_high"))
    assert low < 10.4 < high


def test_files_have_every_case_and_subscriber(compared: tuple[Comparison, Path]) -> None:
    comparison, out = compared
    cases, subscribers = (pl.read_parquet(out / f"{name}.parquet") for name in ("cases", "subscribers"))
    assert cases.height == 4 * FAILURES and subscribers.height == 4 * (FAILURES + 1) * 8
    for case in cases.iter_rows(named=True):
        own = subscribers.filter(mechanism=case["mechanism"], failure=case["failure"])
        assert (own["lost"].sum(), own["kept"].sum()) == (case["lost"], case["kept"])
    summary = json.loads((out / "summary.json").read_text())
    assert [each["mechanism"] for each in summary["mechanisms"]] == [each.mechanism for each in comparison.summaries]
    assert summary["advice"] == WORLD.advice(comparison)


def test_the_report_shows_each_mechanism_and_failure(compared: tuple[Comparison, Path]) -> None:
    comparison, out = compared
    text = unescape((out / "report.html").read_text())
    for name in NAMES:
        assert text.count(f"<b>{name}</b>") == 1 + FAILURES + 1  # the ranking, each failure, the networks
    for failure, what in scenario.FAILURES.items():
        assert f"{failure}: {what}" in text
    assert WORLD.advice(comparison) in text
    assert text.count("aria-label") == 4 * FAILURES * 2 + 4 * 2
    for note in WORLD.notes(comparison):
        assert note in text


def test_the_same_seed_gives_the_same_files_on_any_number_of_processes(tmp_path: Path) -> None:
    few = scenario.build(
        fail="plane", when={**WHEN, "down_s": 2, "after_s": 4}, subscribers={**SMALL, "subscribers": 4}
    )
    for folder, jobs in (("one", 1), ("two", 2)):
        WORLD.run(few, [MECHANISMS["single"]], [1, 2], tmp_path / folder, jobs=jobs)
    for name in ("cases.parquet", "subscribers.parquet", "summary.json", "report.html"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_the_interpreter_agrees() -> None:
    few = given("plane", subscribers=2)
    rows = [
        runs.run(Simulation(few.model_copy(update={"executor": executor}), MECHANISMS["single"], 3), "plane")
        for executor in ("jit", "interpreter")
    ]
    assert rows[0] == rows[1]


def test_another_seed_is_another_run() -> None:
    rows = [runs.run(Simulation(given("plane"), MECHANISMS["single"], seed), "plane") for seed in (1, 2)]
    assert rows[0]["lost"] != rows[1]["lost"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fail", "all", "gateways"], "error: gateways is no topology: its name comes first, before any option"),
        (
            ["gateways", "--fail", "s1"],
            "error: there is no failure 's1' of gateways (known: plane, balancer, auth, controller, radius, access; all is"
            " each in turn)",
        ),
        (
            ["gateways", "--mechanisms", "single,mpls"],
            "error: there is no mechanism 'mpls' (known: single, pair, split, split-2)",
        ),
        (
            ["gateways", "--subscribers", "1"],
            "error: --subscribers: Input should be greater than or equal to 2",
        ),
        (
            ["gateways", "--before-s", "2"],
            "error: --before-s: 2 is too early for gateways: subscribers dial in the first 2 seconds and have traffic from 4"
            " on; give at least 6",
        ),
        (["gateways", "--down-s", "0"], "error: --down-s: Input should be greater than 0"),
        (
            ["gateways", "--subscribers", "400", "--packets-per-s", "10000"],
            "error: 400 subscribers would send and receive 192000000 packets, and a run has at most 20000000: give fewer"
            " subscribers, a lower --packets-per-s or shorter times",
        ),
        (
            ["gateways", "--newcomers-per-s", "50", "--down-s", "300"],
            "error: 15000 newcomers would dial in 300 s, and a run has at most 10000: give a lower --newcomers-per-s or --down-s",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_sentence(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = holdfast("compare", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert " ".join(done.stderr.split()) == message
    assert list(tmp_path.iterdir()) == []


def test_the_command_prints_the_tables_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    words = "compare gateways --fail plane --mechanisms split-2 --subscribers 4 --packets-per-s 10 --newcomers-per-s 1"
    words += f" --before-s 6 --down-s 2 --after-s 4 --jobs 1 --out {tmp_path}"
    first, second = (CliRunner().invoke(app, words.split()) for _ in range(2))
    assert first.exit_code == second.exit_code == 0
    assert first.stdout == second.stdout
    assert "split-2" in first.stdout and "4/4" in first.stdout
    assert json.loads((tmp_path / "runs" / "sweep.json").read_text())["runs_of_this_call"] == 0


def test_the_example_of_the_readme_is_what_the_command_prints(printed: tuple[str, Path]) -> None:
    lines = [line.rstrip() for line in printed[0].splitlines()]
    wanted = example()[1]
    assert len(wanted) == 2 + FAILURES * len(NAMES)
    first = lines.index(wanted[0])
    assert lines[first : first + len(wanted)] == wanted


OWN = {"--subscribers", "--packets-per-s", "--newcomers-per-s", "--keepalive-s"}
OF_NETWORKS = {"--live", "--largest", "--traffic", "--telemetry"}


def test_each_world_has_its_own_options_alone() -> None:
    """Check that no command knows an option that it would have to refuse, and that a topology is asked for where it is needed."""

    def said(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["compare", *arguments], env={"COLUMNS": "200"})
        return done.exit_code, " ".join(done.output.replace("│", " ").split())

    options = [set(re.findall(r"--[a-z-]+", said(*world, "--help")[1])) for world in ([], ["gateways"])]
    assert options[0] >= OF_NETWORKS and not OWN & options[0]
    assert options[1] >= OWN and not OF_NETWORKS & options[1]
    assert {"--fail", "--mechanisms", "--seeds", "--jobs", "--out", "--down-s", "--executor"} <= options[0] & options[1]
    assert "holdfast compare gateways --help" in said("--help")[1]
    assert "plane, balancer, auth, controller, radius, access, or all of them in turn" in said("gateways", "--help")[1]
    for arguments in (["gateways", "--live"], ["ring:4", "--subscribers", "9"], ["gateways", "ring:4"], []):
        status, text = said(*arguments)
        assert status == 2 and "holdfast compare" in text


def test_the_radius_server_trusts_only_what_is_signed() -> None:
    server = RadiusServer(b"secret of both", {})
    for request in (b"", bytes(20), b"\x01\x01\x00\x14" + bytes(16), b"\x04\x01\x00\x14" + bytes(16)):
        assert server.answer(request) is None
    assert server.events == {"not authentic": 2}
    server.alive = False
    assert server.answer(bytes(20)) is None
    assert server.events["unheard"] == 1


def test_an_unknown_mechanism_is_refused() -> None:
    with pytest.raises(ScenarioError, match="there is no mechanism 'x'"):
        WORLD.choose(given(), ["x"])
    with pytest.raises(ScenarioError, match="mechanism 'pair' is given twice"):
        WORLD.choose(given(), ["pair", "pair"])
    assert [each.name for each in WORLD.choose(given(), ["pair"])] == ["single", "pair"]
