"""The framework of experiments on a tiny experiment, and the consistency of the papers' numbers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import fmean

import polars as pl
import pytest
from holdfast_command import holdfast
from rich.console import Console

from holdfast import experiments, fingerprint, plots, reproduce, statistics
from holdfast.errors import ExperimentError
from holdfast.experiments import Criterion, Estimate, Experiment, Finding, Part, PublishedTable, gmpls_tcp_2001
from holdfast.experiments.gmpls_tcp_2001 import published, table8, topology

RUNS = """
from random import Random

def measure(point, seed):
    random = Random(f"{point['d_ms']} {seed}")
    return {"goodput": 100.0 / point["d_ms"] + 4 * random.random()}
"""

EXPERIMENT = """
from holdfast import plots, statistics
from holdfast.experiments import Criterion, Estimate, Experiment, Finding, Part, PublishedTable

MEAN = Criterion(4.0, "the draws differ by 4", Estimate.MEAN, 6, {"d_ms": 9})
TABLE = PublishedTable("table1", "Table 1, page 7", "goodput over d", ("d_ms",), ("goodput", "seeds"),
                       ((1, 102.0, None), (2, 52.0, 5), (4, 99.0, None)), criteria={"goodput": MEAN})

def goodput(setting):
    frame = setting.sweep("goodput", "tiny_runs:measure", [{"d_ms": d} for d in (1, 2, 5)])
    rows = statistics.summary(frame, ["d_ms"], "goodput")
    numbers = rows.select("d_ms", "low", "high", quantity=__import__("polars").lit("goodput"), ours="mean")
    return Finding(numbers)

def curve(setting):
    finding = goodput(setting)
    numbers = finding.numbers.rename({"ours": "mean"})
    figure = plots.intervals(numbers, "d_ms", "quantity", title="tiny", xlabel="d (ms)", ylabel="goodput")
    return Finding(figures={"": figure}, frames={"points": finding.numbers})

EXPERIMENT = Experiment("tiny", "A tiny paper", "Nobody, 2026", 6, (
    Part("table1", "Table 1, page 7", "goodput over d", goodput, 3, TABLE),
    Part("fig1", "Fig. 1, page 7", "the same, drawn", curve, 3),
))
"""


@pytest.fixture
def papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "papers"
    (folder / "tiny").mkdir(parents=True)
    (folder / "tiny/__init__.py").write_text(EXPERIMENT)
    (tmp_path / "tiny_runs.py").write_text(RUNS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(experiments, "__path__", [*experiments.__path__, str(folder)])
    fingerprint.fingerprint.cache_clear()
    yield folder
    sys.modules.pop("tiny_runs", None)
    sys.modules.pop("holdfast.experiments.tiny", None)


def test_a_part_has_the_papers_numbers_beside_ours(papers: Path, tmp_path: Path) -> None:
    console = Console(record=True, width=120)
    (comparison,) = reproduce.run(experiments.find("tiny"), ["table1"], tmp_path / "out", console=console).values()
    rows = {(row["d_ms"], row["quantity"]): row for row in comparison.to_dicts()}
    columns = ["quantity", "paper", "ours", "low", "high", "difference_low", "difference_high", "verdict"]
    assert list(comparison.columns) == ["d_ms", *columns]
    assert list(rows) == [(1, "goodput"), (2, "goodput"), (2, "seeds"), (4, "goodput"), (5, "goodput")]
    assert rows[1, "goodput"]["ours"] == pytest.approx(102, abs=2)
    assert rows[1, "goodput"]["verdict"] == "agrees"
    assert rows[1, "goodput"]["low"] < 102 < rows[1, "goodput"]["high"]
    # The paper's alone, and ours alone.
    assert (rows[4, "goodput"]["paper"], rows[4, "goodput"]["ours"], rows[4, "goodput"]["verdict"]) == (99, None, None)
    assert (rows[5, "goodput"]["paper"], rows[5, "goodput"]["verdict"]) == (None, None)
    csv = pl.read_csv(tmp_path / "out/tiny/table1.csv")
    assert csv.columns == comparison.columns
    assert csv["ours"].to_list() == pytest.approx(comparison["ours"].to_list(), abs=1e-6, nan_ok=True)
    assert json.loads((tmp_path / "out/tiny/table1.json").read_text()) == {
        "part": "table1",
        "place": "Table 1, page 7",
        "title": "goodput over d",
        "seeds": 6,
        "numbers": 5,
        "verdicts": {"agrees": 2, "differs": 0, "open": 0, "by definition": 0},
    }
    text = console.export_text()
    assert "table1 (Table 1, page 7): goodput over d" in text
    assert "6 seeds; of 2 of the paper's numbers 2 agree within the margin, 0 differ, 0 are open" in text


def test_what_differs_is_said(papers: Path, tmp_path: Path) -> None:
    text = (papers / "tiny/__init__.py").read_text()
    (papers / "tiny/__init__.py").write_text(text.replace("52.0", "20.0"))
    console = Console(record=True, width=120)
    comparison = reproduce.run(experiments.find("tiny"), ["table1"], tmp_path / "out", console=console)["table1"]
    assert comparison["verdict"].to_list() == ["agrees", "differs", None, None, None]
    text = console.export_text()
    assert "of 2 of the paper's numbers 1 agree within the margin, 1 differ" in text


def test_an_experiment_without_parts_says_so(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="none has no parts that can be run yet"):
        reproduce.run(Experiment("none", "", "", 1), [], tmp_path)
    with pytest.raises(ExperimentError, match="seeds is 0"):
        reproduce.run(experiments.find("gmpls_tcp_2001"), ["table8"], tmp_path, seeds=0)
    with pytest.raises(ExperimentError, match=r"first_seed is 18446744073709551615; 2 seeds from there on"):
        reproduce.run(experiments.find("gmpls_tcp_2001"), ["table8"], tmp_path, seeds=2, first_seed=2**64 - 1)


def test_one_seed_has_no_interval(papers: Path, tmp_path: Path) -> None:
    comparison = reproduce.run(experiments.find("tiny"), [], tmp_path / "out", seeds=1)["table1"]
    assert comparison["verdict"].to_list() == ["open", "open", None, None, None]
    assert (tmp_path / "out/tiny/fig1.svg").is_file()


def test_parts_share_their_runs_and_pictures_are_reproducible(papers: Path, tmp_path: Path) -> None:
    for out in ("one", "two"):
        reproduce.run(experiments.find("tiny"), [], tmp_path / out, seeds=3, jobs=1 if out == "one" else 2)
    files = ["table1.csv", "fig1.png", "fig1.svg", "fig1_points.csv", "sweeps/goodput/rows.parquet"]
    for file in files:
        assert (tmp_path / "one/tiny" / file).read_bytes() == (tmp_path / "two/tiny" / file).read_bytes(), file
    about = json.loads((tmp_path / "one/tiny/sweeps/goodput/sweep.json").read_text())
    assert (about["runs"], about["runs_of_this_call"]) == (9, 0)


def judged(criterion: Criterion, paper: float, ours: tuple[float, float, float], seeds: int, decimals: int = 2) -> str:
    """Return the verdict that compares our number (value, low, high) with the paper's."""
    table = PublishedTable("t", "Table 1", "", ("d",), ("x",), ((1, paper),), decimals, {"x": criterion})
    part = Part("t", "Table 1", "", lambda setting: Finding(), 1, table)
    value, low, high = ours
    numbers = pl.DataFrame({"d": [1], "quantity": ["x"], "ours": [value], "low": [low], "high": [high]})
    comparison = reproduce.compare(part, Finding(numbers), seeds)
    assert comparison is not None
    verdict: str = comparison["verdict"].item()
    return verdict


def test_rounding_of_the_paper_is_allowed_for() -> None:
    exact = Criterion(0.0, "exact")
    assert judged(exact, 0.12, (0.1151, 0.1151, 0.1151), 1) == "open"
    assert judged(exact, 0.12, (0.1149, 0.1149, 0.1149), 1) == "differs"


@pytest.mark.parametrize(
    ("interval", "seeds", "verdict"),
    [
        ((0.1, -0.3, 0.5), 100, "agrees"),
        ((0.1, -9.0, 9.2), 100, "open"),  # a wide interval says nothing, and does not agree
        ((0.8, 0.7, 0.9), 100, "agrees"),  # another number for certain, and near enough
        ((0.8, 0.2, 1.4), 100, "open"),  # the paper's own chance is in it
        ((1.5, 1.2, 1.8), 100, "differs"),
        ((0.0, -float("inf"), float("inf")), 1, "open"),
    ],
)
def test_a_mean(interval: tuple[float, float, float], seeds: int, verdict: str) -> None:
    assert judged(Criterion(1.0, "", Estimate.MEAN, 100), 0.0, interval, seeds) == verdict


def test_numbers_of_one_system_differ_in_one_of_twenty() -> None:
    """Check, with the paper's seeds and ours drawn from one distribution, that both estimates have the error that they state."""
    random = Random(1)
    mean, proportion = Criterion(0.1, "", Estimate.MEAN, 150), Criterion(1.0, "", Estimate.PROPORTION, 150)
    differ = {"mean": 0, "proportion": 0}
    trials = 1000
    for _ in range(trials):
        paper, ours = ([random.gauss(0, 1) for _ in range(150)] for _ in range(2))
        low, high = statistics.mean_interval(ours)
        differ["mean"] += judged(mean, fmean(paper), (fmean(ours), low, high), 150) == "differs"
        positive = sum(each > 0.5 for each in ours)
        low, high = statistics.wilson_interval(positive, 150)
        printed = 100 * sum(each > 0.5 for each in paper) / 150
        entry = (100 * positive / 150, 100 * low, 100 * high)
        differ["proportion"] += judged(proportion, printed, entry, 150) == "differs"
    assert 0.03 <= differ["mean"] / trials <= 0.07
    assert 0.03 <= differ["proportion"] / trials <= 0.07


def test_what_follows_from_a_definition_is_not_judged() -> None:
    assert judged(Criterion(1.0, "", by_definition={"d": 1}), 0.0, (0.0, 0.0, 0.0), 5) == "by definition"
    assert judged(Criterion(1.0, "", by_definition={}), 0.0, (9.0, 9.0, 9.0), 5) == "by definition"
    assert judged(Criterion(1.0, "", by_definition={"d": 2}), 0.0, (0.0, 0.0, 0.0), 5) == "agrees"


def test_every_number_of_a_part_that_is_run_says_when_it_agrees() -> None:
    for experiment in reproduce.everything():
        for part in experiment.parts:
            if part.published is not None:
                assert set(part.published.columns) == set(part.published.criteria), part.name
                assert all(each.reason for each in part.published.criteria.values()), part.name


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (None, "found no numbers"),
        (pl.DataFrame({"d": [1], "quantity": ["x"], "ours": [1.0]}), "without low, high"),
        (pl.DataFrame({"e": [1], "quantity": ["x"], "ours": [1.0], "low": [1.0], "high": [1.0]}), "found numbers by"),
        (
            pl.DataFrame({"d": [1, 1], "quantity": ["x"] * 2, "ours": [1.0] * 2, "low": [1.0] * 2, "high": [1.0] * 2}),
            "two numbers",
        ),
        (
            pl.DataFrame({"d": [1], "quantity": ["x"], "ours": [1.0], "low": [1.0], "high": [1.0]}),
            "does not say when its x and ours agree",
        ),
    ],
)
def test_numbers_that_do_not_fit(numbers: pl.DataFrame | None, message: str) -> None:
    table = PublishedTable("t", "Table 1", "", ("d",), ("x",), ((1, 0.12),))
    with pytest.raises(ExperimentError, match=message):
        reproduce.compare(Part("t", "Table 1", "", lambda setting: Finding(), 1, table), Finding(numbers), 5)


COMMAND = """
import sys
from holdfast import experiments
experiments.__path__.append(sys.argv.pop(1))
from holdfast.cli import main
if __name__ == "__main__":
    main()
"""


def running(papers: Path, *arguments: str) -> subprocess.Popen[str]:
    script = papers.parent / "command.py"
    script.write_text(COMMAND)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(papers.parent), *sys.path]), "COLUMNS": "120"}
    return subprocess.Popen(
        [sys.executable, str(script), str(papers), "reproduce", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=papers.parent,
        env=environment,
    )


def command(papers: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    with running(papers, *arguments) as process:
        output, errors = process.communicate(timeout=300)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def here(papers: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in this process, which knows the experiments of ``papers``."""
    return holdfast("reproduce", *arguments, cwd=papers.parent)


def test_the_command(papers: Path) -> None:
    result = command(papers, "--list")
    assert result.returncode == 0, result.stderr
    assert "A tiny paper; 6 seeds" in result.stdout
    assert "36" in result.stdout
    assert "gmpls_tcp_2001" in result.stdout
    result = command(papers, "tiny", "table1", "--seeds", "2", "--first-seed", "7", "--out", "others")
    assert result.returncode == 0, result.stderr
    assert pl.read_parquet(papers.parent / "others/tiny/sweeps/goodput/rows.parquet")["seed"].unique().to_list() == [
        7,
        8,
    ]
    assert json.loads((papers.parent / "others/tiny/table1.json").read_text())["first_seed"] == 7
    assert "2 seeds (7 to 8); of 2 of" in result.stdout
    result = command(papers, "tiny", "fig1", "table1", "--seeds", "3", "--jobs", "2")
    assert result.returncode == 0, result.stderr
    assert "interval" in result.stdout
    assert "results in out/experiments/tiny/" in result.stdout
    assert (papers.parent / "out/experiments/tiny/fig1.png").is_file()


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_says_that_it_can_go_on(papers: Path, sign: signal.Signals) -> None:
    (papers.parent / "tiny_runs.py").write_text(
        "import time\n" + RUNS.replace("    random =", "    time.sleep(0.2)\n    random =")
    )
    with running(papers, "tiny", "table1", "--seeds", "100", "--jobs", "2") as process:
        journal = papers.parent / "out/experiments/tiny/sweeps/goodput/journal.jsonl"
        deadline = time.monotonic() + 200
        while time.monotonic() < deadline and not (journal.exists() and journal.read_text().count("\n") >= 2):
            time.sleep(0.05)
        process.send_signal(sign)
        _, errors = process.communicate(timeout=200)
    assert process.returncode == 130
    assert "interrupted; the same command continues from here" in errors
    assert "Traceback" not in errors
    assert journal.read_text().endswith("\n")
    # The processes that worked are gone: nobody holds the journal or adds to it.
    finished = journal.read_text()
    time.sleep(0.5)
    assert journal.read_text() == finished


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent"], "there is no experiment 'absent' (known: bier_tofino_2021, gmpls_tcp_2001"),
        (["tiny", "table9"], "tiny has no part 'table9' (known: table1, fig1)"),
        (["tiny", "--seeds", "0"], "--seeds"),
        (["tiny", "--jobs", "0"], "--jobs"),
        (["tiny", "--ray", "no-such-host:1"], "Ray"),
    ],
)
def test_wrong_arguments(papers: Path, arguments: list[str], message: str) -> None:
    result = here(papers, *arguments)
    assert result.returncode not in (0, 130)
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_every_experiment_has_its_parts() -> None:
    assert "gmpls_tcp_2001" in experiments.names()
    for name in experiments.names():
        experiment = experiments.find(name)
        folder = Path(experiments.__path__[0]) / name
        assert experiment.name == name
        assert (folder / "README.md").is_file()
        assert (folder / "published.py").is_file()
        parts = [part.name for part in experiment.parts]
        assert len(set(parts)) == len(parts)


def test_gmpls_table_4_is_a_column_of_table_5() -> None:
    for d_ms in published.D_MS:
        in_table_5 = published.TABLE_5.value("goodput_change_percent", d_ms=d_ms, delta_ms=5)
        assert published.TABLE_4.value("goodput_change_percent", d_ms=d_ms) == in_table_5


def test_gmpls_changes_of_rtt_follow_from_d() -> None:
    for table in (published.TABLE_4, published.TABLE_6):
        for d_ms in published.D_MS:
            change = 100 * 2 * (d_ms - published.LINK_DELAY_MS) / published.MEAN_RTT_MS
            assert table.value("rtt_change_percent", d_ms=d_ms) == round(change, 2)


def test_gmpls_proportions_are_of_whole_seeds() -> None:
    for table in (published.TABLE_3, published.TABLE_4, published.TABLE_6):
        for _, column, value in table.entries():
            if column in ("worse_percent", "best_percent", "optical_better_percent"):
                seeds = round(value / 100 * published.SEEDS)
                assert value == round(100 * seeds / published.SEEDS, 2), (table.name, column)
    for table in (published.TABLE_3, published.TABLE_4):
        assert table.frame()["best_percent"].sum() == pytest.approx(100, abs=0.01)
    assert published.OPTICAL_TIMING.frame()["best_percent"].sum() == 100


def test_gmpls_baselines_are_zero_and_trends_are_the_papers() -> None:
    assert published.TABLE_3.rows[0][1:3] == (0, 0)
    assert published.TABLE_4.rows[0][1:4] == (0, 0, 0)
    table_5 = published.TABLE_5.frame()
    assert table_5.filter(pl.col("d_ms") == 1)["goodput_change_percent"].to_list() == [0.0] * 5
    for d_ms in published.D_MS[2:]:
        over_delta = table_5.filter(pl.col("d_ms") == d_ms)["goodput_change_percent"].to_list()
        assert all(later < earlier for earlier, later in pairwise(over_delta))
    for delta_ms in published.DELTA_MS:
        over_d = table_5.filter(pl.col("delta_ms") == delta_ms)["goodput_change_percent"].to_list()
        assert all(later < earlier for earlier, later in pairwise(over_d[1:]))
    assert len(table_5) == len(published.D_MS) * len(published.DELTA_MS)
    assert [row[0] for row in published.TABLE_3.rows] == list(published.TIMING_DELTA_MS)
    assert [row[0] for row in published.OPTICAL_TIMING.rows] == list(published.OPTICAL_TIMING_DELTA_MS)


def test_gmpls_case_study() -> None:
    for scenario in published.SCENARIOS:
        # Section 8.1: a + c = 50 ms and b = 1 ms make an RTT of 216 ms with the mean access delay and two more milliseconds.
        assert (scenario.a_ms + scenario.c_ms, scenario.b_ms) == (50, 1)
        working_ms = sum(published.ACCESS_DELAY_MS) / 2 + 2 + scenario.a_ms + scenario.b_ms + scenario.c_ms
        assert 2 * working_ms == published.CASE_STUDY_MEAN_RTT_MS
        assert scenario.dp_ms == 3 * scenario.dl_ms
        # Section 8.2: the order of the extra delays.
        extra = [scenario.rtt_change_ms(mechanism) for mechanism in ("local", "path", "loopbackvar", "loopback")]
        assert extra[0] < extra[1] == extra[2] < extra[3] == 2 * scenario.dp_ms + 100
        assert scenario.switching_delay_ms("path", 5) == 5 + scenario.a_ms
        assert scenario.reverse_switching_delay_ms("path", 5) == 5 + scenario.c_ms
        assert scenario.switching_delay_ms("loopback", 5) == scenario.switching_delay_ms("local", 5) == 5
    assert [scenario.name for scenario in published.SCENARIOS] == ["A", "B", "C", "D"]


def test_gmpls_networks_have_the_delays_of_table_7() -> None:
    assert list(topology.CASES) == [scenario.name for scenario in published.SCENARIOS]
    for scenario in published.SCENARIOS:
        case = topology.CASES[scenario.name]
        assert (case.dl, case.dp, case.a, case.b, case.c) == published.TABLE_7.frame().row(
            by_predicate=pl.col("scenario") == scenario.name
        )[1:]


@pytest.mark.parametrize(
    ("scenario", "mechanism", "delta_ms"),
    [("A", "path", 5.0), ("B", "loopbackvar", 50.0), ("C", "local", 0.0), ("D", "loopback", 5.0)],
)
def test_gmpls_table_8_is_what_packets_do(scenario: str, mechanism: str, delta_ms: float) -> None:
    row = table8.measure({"scenario": scenario, "mechanism": mechanism, "delta_ms": delta_ms}, 7)
    (expected,) = [each for each in published.SCENARIOS if each.name == scenario]
    # The next packet after the switch comes within 50 us, and sending takes a few microseconds.
    assert 0 <= row["switching_delay_ms"] - expected.switching_delay_ms(mechanism, delta_ms) < 0.06
    assert 0 <= row["reverse_delay_ms"] - expected.reverse_switching_delay_ms(mechanism, delta_ms) < 0.06
    assert row["rtt_change_ms"] == pytest.approx(expected.rtt_change_ms(mechanism), abs=0.01)
    assert published.TABLE_8.value("rtt_change_ms", scenario=scenario, mechanism=mechanism) == expected.rtt_change_ms(
        mechanism
    )


def test_gmpls_mechanisms_have_their_looks() -> None:
    for name in (*published.MECHANISMS, *published.SWITCH_BACK):
        assert plots.style(name).label
    assert gmpls_tcp_2001.EXPERIMENT.seeds == published.SEEDS
    assert len({table.name for table in published.TABLES}) == len(published.TABLES)


def test_an_experiment_without_a_quick_version_says_so(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"^gmpls_tcp_2001 has no quick version; give parts and --seeds$"):
        reproduce.run(gmpls_tcp_2001.EXPERIMENT, [], tmp_path, quick=True)
    assert list(tmp_path.iterdir()) == []
