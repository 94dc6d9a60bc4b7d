"""Sweeps: the same bytes from every runner, interruption and resumption, failures that name their run."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from rich.console import Console

from holdfast import demo, fingerprint, sweep, sweep_workers
from holdfast.errors import SweepError, TopologyError, located
from holdfast.extensions import module_of_file
from holdfast.sweep import Sweep
from holdfast.sweep_workers import _Worker

MODULE = """
import os, time
from pathlib import Path
from random import Random

def measure(point, seed):
    random = Random(f"{point} {seed}")
    time.sleep(random.random() * 0.02)
    return {"goodput": random.random(), "drops": int(random.random() * 100), "curve": [random.random() for _ in range(3)]}

def slow(point, seed):
    with open(os.environ["SWEEP_CALLS"], "a") as calls:
        calls.write(f"{point['d']} {seed}\\n")
    time.sleep(0.15)
    return {"value": point["d"] * 1000 + seed}

def sometimes(point, seed):
    if os.path.exists(os.environ["SWEEP_BROKEN"]) and (point["d"], seed) in ((1, 2), (2, 1)):
        if point["d"] == 2:
            os._exit(7)
        raise ValueError("the cable is cut")
    return slow(point, seed)

def mistaken(point, seed):
    from holdfast.errors import NetworkError
    raise NetworkError('nothing is called "9"')

def never(point, seed):
    raise RuntimeError("no")

def wrong(point, seed):
    return 3 if point["kind"] == "none" else {"a": object()}
"""

POINTS = [{"d": d, "mechanism": mechanism} for d in (1, 10) for mechanism in ("local", "path")]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "sweep_subject.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("SWEEP_CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("SWEEP_BROKEN", str(tmp_path / "broken"))
    fingerprint.fingerprint.cache_clear()
    yield "sweep_subject"
    sys.modules.pop("sweep_subject", None)


def calls(tmp_path: Path) -> list[str]:
    return (tmp_path / "calls").read_text().splitlines()


def test_the_same_bytes_with_one_process_and_two(module: str, tmp_path: Path) -> None:
    one = sweep.run(f"{module}:measure", POINTS, range(1, 6), tmp_path / "one")
    two = sweep.run(f"{module}:measure", POINTS, range(1, 6), tmp_path / "two", jobs=2)
    assert one.equals(two)
    assert (tmp_path / "one/rows.parquet").read_bytes() == (tmp_path / "two/rows.parquet").read_bytes()
    assert one.columns == ["d", "mechanism", "seed", "goodput", "drops", "curve"]
    assert one["seed"].to_list() == [1, 2, 3, 4, 5] * 4
    assert one["d"].to_list() == [1] * 10 + [10] * 10
    assert one["curve"].dtype == pl.List(pl.Float64)
    assert pl.read_parquet(tmp_path / "one/rows.parquet").equals(one)
    about = json.loads((tmp_path / "two/sweep.json").read_text())
    assert (about["runs"], about["runs_of_this_call"], about["workers"], about["seeds"]) == (20, 20, 2, [1, 2, 3, 4, 5])
    assert about["points"] == POINTS
    assert about["wall_s"] > 0
    # Nothing is left to do, and nothing changes.
    before = (tmp_path / "two/rows.parquet").read_bytes()
    assert sweep.run(f"{module}:measure", POINTS, range(1, 6), tmp_path / "two", jobs=2).equals(one)
    assert (tmp_path / "two/rows.parquet").read_bytes() == before
    assert json.loads((tmp_path / "two/sweep.json").read_text())["runs_of_this_call"] == 0


def test_each_run_is_told_when_it_has_finished_and_once_more_by_a_rerun(module: str, tmp_path: Path) -> None:
    for jobs in (1, 2, 2):
        told: list[tuple[object, ...]] = []
        rows = sweep.run(
            f"{module}:measure",
            POINTS,
            [1, 2],
            tmp_path / "told",
            jobs=jobs,
            told=lambda point, row, told=told: told.append((*point.values(), row["goodput"])),
        )
        assert sorted(told) == sorted(rows.select("d", "mechanism", "goodput").iter_rows())


def test_runs_that_belong_together_stay_with_a_process(module: str, tmp_path: Path) -> None:
    one = sweep.run(f"{module}:measure", POINTS, range(1, 6), tmp_path / "one")
    two = sweep.run(f"{module}:measure", POINTS, range(1, 6), tmp_path / "two", jobs=2, together=["mechanism"])
    assert one.equals(two)
    groups = [str(each) for each in "aaaabbbbcccc"]
    waiting = sweep_workers._Waiting(
        [sweep.Run({"group": each}, i, str(i)) for i, each in enumerate(groups)], ["group"]
    )
    first, second = SimpleNamespace(group=None), SimpleNamespace(group=None)
    taken = [waiting.next_for(worker)[0] for worker in (first, second, first, second, first, second, first, second)]
    assert taken == [0, 4, 1, 5, 2, 6, 3, 7]
    # The last group is begun by one, and the other helps, as there is nothing else.
    assert [waiting.next_for(worker)[0] for worker in (first, first, second, first)] == [8, 9, 10, 11]
    assert not waiting


def test_the_same_bytes_on_ray(module: str, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed; pip install 'holdfast[ray]'")
    here = sweep.run(f"{module}:measure", POINTS, range(1, 4), tmp_path / "here")
    ray = sweep.run(f"{module}:measure", POINTS, range(1, 4), tmp_path / "ray", jobs=2, ray="local")
    assert ray.equals(here)
    assert (tmp_path / "here/rows.parquet").read_bytes() == (tmp_path / "ray/rows.parquet").read_bytes()
    assert json.loads((tmp_path / "ray/sweep.json").read_text())["workers"] == "ray local"
    with pytest.raises(SweepError, match="the cable is cut"):
        (tmp_path / "broken").touch()
        sweep.run(f"{module}:sometimes", [{"d": 1}], [1, 2, 3], tmp_path / "broken_on_ray", jobs=2, ray="local")
    assert len((tmp_path / "broken_on_ray/journal.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:port", "auto"])
def test_a_cluster_that_is_not_there(module: str, address: str, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed; pip install 'holdfast[ray]'")
    with pytest.raises(SweepError, match=r"(there is no|cannot use the) Ray cluster at"):
        sweep.run(f"{module}:measure", POINTS, [1], tmp_path / "out", ray=address)


def test_without_ray_it_says_how_to_get_it(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SweepError, match=r"Ray is not installed here .*pip install 'holdfast\[ray\]'"):
        sweep.run(f"{module}:measure", POINTS, [1], tmp_path / "out", ray="local")


INTERRUPTED = """
import sys
from pathlib import Path
from holdfast import demo, fingerprint, sweep

if __name__ == "__main__":
    sweep.run("sweep_subject:slow", [{"d": 1}, {"d": 2}], range(10), Path(sys.argv[1]), jobs=int(sys.argv[2]))
"""


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_sweep_goes_on_where_it_stopped(module: str, jobs: int, tmp_path: Path) -> None:
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED)
    out = tmp_path / "out"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    with subprocess.Popen(
        [sys.executable, str(script), str(out), str(jobs)],
        env=environment,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        journal = out / "journal.jsonl"
        deadline = time.monotonic() + 200
        while time.monotonic() < deadline and not (journal.exists() and journal.read_text().count("\n") >= 3):
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=300)
    assert process.returncode != 0
    assert b"KeyboardInterrupt" in errors
    assert not (out / "rows.parquet").exists()
    finished = journal.read_text().count("\n")
    assert 3 <= finished < 20
    # A line that was torn off in the middle is as if it had never been.
    torn = journal.read_text()
    journal.write_text(torn[: torn.rstrip("\n").rindex("\n") + 20])
    (tmp_path / "calls").unlink()
    frame = sweep.run(f"{module}:slow", [{"d": 1}, {"d": 2}], range(10), out, jobs=jobs)
    assert frame["value"].to_list() == [1000 + seed for seed in range(10)] + [2000 + seed for seed in range(10)]
    assert len(calls(tmp_path)) == 20 - (finished - 1)
    sweep.run(f"{module}:slow", [{"d": 1}, {"d": 2}], range(10), tmp_path / "straight")
    assert (out / "rows.parquet").read_bytes() == (tmp_path / "straight/rows.parquet").read_bytes()


def test_processes_of_a_sweep_that_was_killed_end_in_silence(module: str, tmp_path: Path) -> None:
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    run = [sys.executable, str(script), str(tmp_path / "out"), "2"]
    with subprocess.Popen(run, env=environment, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 200
        while time.monotonic() < deadline and not (tmp_path / "calls").exists():
            time.sleep(0.01)
        process.kill()
        # Ends when the last of its processes has closed the pipe.
        _, errors = process.communicate(timeout=60)
    assert errors == b""


def test_a_script_that_its_processes_would_run_again_is_told_so(module: str, tmp_path: Path) -> None:
    script = tmp_path / "unguarded.py"
    call = 'sweep.run("sweep_subject:slow", [{"d": 1}], [1], Path(sys.argv[1]), jobs=2)'
    script.write_text(f"import sys\nfrom pathlib import Path\nfrom holdfast import sweep\n{call}\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    run = [sys.executable, str(script), str(tmp_path / "out")]
    ended = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode != 0
    assert 'call it under if __name__ == "__main__":' in ended.stderr


def test_a_place_that_cannot_be_written_to(module: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for out in (file, file / "below"):
        with pytest.raises(SweepError, match=f"cannot write to {out}: (File exists|Not a directory)"):
            sweep.run(f"{module}:slow", [{"d": 1}], [1], out)


def test_more_points_or_seeds_keep_what_is_there(module: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sweep.run(f"{module}:slow", [{"d": 1}], [1, 2], out)
    frame = sweep.run(f"{module}:slow", [{"d": 2}, {"d": 1}], [2, 1, 3], out)
    assert frame["value"].to_list() == [2002, 2001, 2003, 1002, 1001, 1003]
    assert len(calls(tmp_path)) == 6


def test_other_code_starts_anew(module: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sweep.run(f"{module}:slow", [{"d": 1}], [1, 2], out)
    with (tmp_path / "sweep_subject.py").open("a") as file:
        file.write("\nCHANGED = True\n")
    fingerprint.fingerprint.cache_clear()
    console = Console(record=True, width=200)
    sweep.run(f"{module}:slow", [{"d": 1}], [1, 2], out, console=console)
    assert len(calls(tmp_path)) == 4
    assert "2 finished runs of other code or other points are not used" in console.export_text()


def test_code_that_only_draws_does_not_make_results_old() -> None:
    reached = fingerprint.reachable("holdfast.experiments.gmpls_tcp_2001.table8")
    assert {
        "holdfast._core",
        "holdfast.network",
        "holdfast.topology",
        "holdfast.results",
        "holdfast.apps.mpls",
        "holdfast.apps.mpls.controller",
        "holdfast.experiments.gmpls_tcp_2001.topology",
        "holdfast.experiments.gmpls_tcp_2001.published",
        # Imported inside of functions.
        "holdfast.topologies.yaml_file",
    } <= reached.keys()
    assert (
        not {"holdfast.plots", "holdfast.cli", "holdfast.reproduce", "holdfast.experiments.gmpls_tcp_2001"}
        & reached.keys()
    )
    assert "holdfast.plots" in fingerprint.reachable("holdfast.demo")
    assert any(name.endswith("mpls.p4") for name in fingerprint._data())


def test_what_a_package_elsewhere_imports_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "elsewhere"
    (package / "deep").mkdir(parents=True)
    files = {
        "__init__.py": "",
        "runs.py": "import json\nfrom . import near\nfrom .deep import NAME, deepest\ndef f(point, seed): return {}\n",
        "near.py": "def g():\n    import elsewhere.far\n",
        "far.py": "",
        "unused.py": "",
        "deep/__init__.py": "from ..other import NAME\n",
        "deep/deepest.py": "",
        "other.py": "NAME = 1\n",
    }
    for name, text in files.items():
        (package / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    reached = fingerprint.reachable("elsewhere.runs")
    names = ("runs", "near", "far", "deep", "deep.deepest", "other")
    # "from . import near" takes a module, so the package's own __init__ does not count.
    assert set(reached) == {f"elsewhere.{name}" for name in names}
    before = fingerprint.fingerprint("elsewhere.runs")
    for name, changes in (("unused.py", False), ("far.py", True)):
        (package / name).write_text("CHANGED = True\n")
        fingerprint.fingerprint.cache_clear()
        assert (fingerprint.fingerprint("elsewhere.runs") != before) == changes


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failed_run_is_named_and_the_others_are_kept(module: str, jobs: int, tmp_path: Path) -> None:
    out = tmp_path / "out"
    points = [{"d": 1}, {"d": 3}] if jobs == 1 else [{"d": 1}, {"d": 2}]
    (tmp_path / "broken").touch()
    with pytest.raises(SweepError) as caught:
        sweep.run(f"{module}:sometimes", points, [1, 2, 3], out, jobs=jobs)
    message = str(caught.value)
    assert message.startswith(f"{jobs} of 6 runs failed;")
    assert 'The first was point {"d": 1}, seed 2:' in message
    assert "ValueError: the cable is cut" in message
    again = f"""{sys.executable} -m holdfast.sweep {module}:sometimes '{{"d": 1}}' 2"""
    assert message.endswith(again)
    assert len((out / "journal.jsonl").read_text().splitlines()) == 6 - jobs
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-m", "holdfast.sweep", f"{module}:sometimes", '{"d": 1}', "2"]
    alone = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert alone.returncode != 0
    assert "ValueError: the cable is cut" in alone.stderr
    (tmp_path / "broken").unlink()
    alone = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    assert json.loads(alone.stdout) == {"value": 1002}
    frame = sweep.run(f"{module}:sometimes", points, [1, 2, 3], out, jobs=jobs)
    assert len(frame) == 6
    assert json.loads((out / "sweep.json").read_text())["runs_of_this_call"] == jobs


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["holdfast.demo:run", "{", "1"], "the point is not JSON"),
        (["holdfast.demo:run", "3", "1"], "the point is a JSON object"),
        (["holdfast.demo:run", "{}", "x"], "the seed is 'x'"),
        (["holdfast.demo:absent", "{}", "1"], "there is no function 'holdfast.demo:absent'"),
    ],
)
def test_one_run_by_hand_says_what_is_wrong(arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit, match=f"error: {message}"):
        sweep.main(arguments)


def test_a_process_that_dies_is_named_by_its_run(module: str, tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    with pytest.raises(SweepError, match=r'point \{"d": 2\}, seed 1:\nits process ended with exit code 7'):
        sweep.run(f"{module}:sometimes", [{"d": 2}], [1, 2, 3], tmp_path / "out", jobs=2)
    assert len((tmp_path / "out/journal.jsonl").read_text().splitlines()) == 2


def test_an_interrupt_is_the_parents_business_from_the_first_moment(module: str) -> None:
    given = Sweep(f"{module}:slow", "any")
    worker = _Worker(given)
    try:
        assert worker.process.pid is not None
        os.kill(worker.process.pid, signal.SIGINT)
        worker.give(0, given.runs([{"d": 1}], [1])[0])
        outcome = worker.take()
        assert outcome.error is None, outcome.error
        os.kill(worker.process.pid, signal.SIGINT)
        worker.give(1, given.runs([{"d": 2}], [1])[0])
        assert worker.take().error is None
    finally:
        worker.stop()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_journal_that_was_damaged_costs_what_it_lost(module: str, tmp_path: Path) -> None:
    points = [{"d": 1}, {"d": 2}]
    whole = sweep.run(f"{module}:slow", points, [1], tmp_path / "out")
    journal = tmp_path / "out/journal.jsonl"
    first, second = journal.read_bytes().splitlines()
    journal.write_bytes(first + b"\n\xff\x00\r\n" + second[: len(second) // 2] + b"\xfe")
    assert sweep.run(f"{module}:slow", points, [1], tmp_path / "out").equals(whole)
    assert len(calls(tmp_path)) == 3
    kept, garbage, again = journal.read_bytes().splitlines()
    assert (kept, garbage, json.loads(again)["row"]) == (first, b"\xff\x00", json.loads(second)["row"])


@pytest.mark.parametrize(
    ("was", "is_now"),
    [(b'"row": {', b'"row": 5, "x": {'), (b'"seed": 1', b'"seed": 2'), (b": 2}", b": 3}"), (b"sha256", b"sha255")],
    ids=["no row", "another seed", "another value", "no checksum"],
)
def test_a_line_of_the_journal_that_was_changed_is_not_used(
    module: str, tmp_path: Path, was: bytes, is_now: bytes
) -> None:
    whole = sweep.run(f"{module}:slow", [{"d": 2}], [1], tmp_path / "out")
    journal = tmp_path / "out/journal.jsonl"
    line = journal.read_bytes()
    assert line.count(was) >= 1
    journal.write_bytes(line.replace(was, is_now, 1))
    said = Console(record=True, width=200, file=io.StringIO())
    assert sweep.run(f"{module}:slow", [{"d": 2}], [1], tmp_path / "out", console=said).equals(whole)
    assert len(calls(tmp_path)) == 2
    assert "1 lines of the journal are damaged; they are not used" in said.export_text()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_mistake_is_shown_as_its_line_and_sentence(module: str, jobs: int, tmp_path: Path) -> None:
    with pytest.raises(SweepError) as caught:
        sweep.run(f"{module}:mistaken", [{"d": 1}], [1, 2], tmp_path / "out", jobs=jobs)
    assert re.search(rf', seed 1:\n\S*{module}\.py:\d+: nothing is called "9"\nThis one again: ', str(caught.value))
    assert "Traceback" not in str(caught.value)
    with pytest.raises(SystemExit, match=r'^error: nothing is called "9"$'):
        sweep.main([f"{module}:mistaken", '{"d": 1}', "1"])


def test_it_gives_up_when_everything_fails(module: str, tmp_path: Path) -> None:
    with pytest.raises(SweepError, match=r"10 of 50 runs failed \(gave up after 10\)"):
        sweep.run(f"{module}:never", [{"d": 1}], range(50), tmp_path / "out")


def test_one_sweep_at_a_time_in_a_place(module: str, tmp_path: Path) -> None:
    with sweep._journal(tmp_path / "out/journal.jsonl"), pytest.raises(SweepError, match="another sweep is writing"):
        sweep.run(f"{module}:measure", POINTS, [1], tmp_path / "out")


@pytest.mark.parametrize(
    ("function", "points", "seeds", "jobs", "message"),
    [
        ("sweep_subject:absent", [{"d": 1}], [1], 1, "there is no function 'sweep_subject:absent'"),
        ("no_such_module:f", [{"d": 1}], [1], 1, "No module named 'no_such_module'"),
        ("nonsense", [{"d": 1}], [1], 1, "there is no function 'nonsense'"),
        ("sweep_subject:measure", [], [1], 1, "at least one point and one seed"),
        ("sweep_subject:measure", [{"d": 1}], [], 1, "at least one point and one seed"),
        ("sweep_subject:measure", [{"d": 1}], [1, 1], 1, "seed 1 is given twice"),
        ("sweep_subject:measure", [{"d": 1}, {"d": 1}], [1], 1, "is given twice"),
        ("sweep_subject:measure", [{"d": [1]}], [1], 1, "points are named numbers and texts"),
        ("sweep_subject:measure", [{"seed": 1}], [1], 1, "'seed' cannot be 1"),
        ("sweep_subject:measure", [{"d": 1}], [1], 0, "jobs is 0"),
        ("sweep_subject:measure", [{"drops": 1}], [1], 1, "returned 'drops', which is a column already"),
        ("sweep_subject:wrong", [{"kind": "none"}], [1], 1, "returned a int; it has to return a mapping"),
        ("sweep_subject:wrong", [{"kind": "list"}], [1], 1, "returned 'a' of type object"),
    ],
)
def test_sweeps_that_make_no_sense(
    module: str,
    function: str,
    points: list[dict[str, object]],
    seeds: list[int],
    jobs: int,
    message: str,
    tmp_path: Path,
) -> None:
    with pytest.raises(SweepError) as caught:
        sweep.run(function, points, seeds, tmp_path / "out", jobs=jobs)  # type: ignore[arg-type]
    assert message in str(caught.value)


def scenarios(folder: Path, *delays_ms: float) -> list[dict[str, object]]:
    """Return points of a sweep: a short demo for each detection delay in ms, with seeds 1 and 2 each."""
    givens = [demo.scenario(before_s=0.5, down_s=1, after_s=0.5, detection_delay_ms=delay_ms) for delay_ms in delays_ms]
    return [
        {"scenario": str(given.write(folder)), "mechanism": "reroute", "network_seed": seed, "failure": demo.FAILS}
        for given in givens
        for seed in (1, 2)
    ]


def test_a_simulation_in_a_sweep(tmp_path: Path) -> None:
    """Check that networks in other processes give the same results as in this process."""
    points = scenarios(tmp_path, 10.0, 50.0)
    here = sweep.run("holdfast.compare.runs:measured", points, [0], tmp_path / "here")  # type: ignore[arg-type]
    there = sweep.run("holdfast.compare.runs:measured", points, [0], tmp_path / "there", jobs=2)  # type: ignore[arg-type]
    assert (tmp_path / "here/rows.parquet").read_bytes() == (tmp_path / "there/rows.parquet").read_bytes()
    assert here.equals(there)
    # Another 40 ms at 1000 packets/s.
    lost = [each[0] for each in here["lost"].to_list()]
    assert [lost[2] - lost[0], lost[3] - lost[1]] == [40, 40]


def test_a_simulation_on_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed; pip install 'holdfast[ray]'")
    points = scenarios(tmp_path, 50.0)
    sweep.run("holdfast.compare.runs:measured", points, [0], tmp_path / "here")  # type: ignore[arg-type]
    sweep.run("holdfast.compare.runs:measured", points, [0], tmp_path / "ray", jobs=2, ray="local")  # type: ignore[arg-type]
    assert (tmp_path / "here/rows.parquet").read_bytes() == (tmp_path / "ray/rows.parquet").read_bytes()


def test_an_error_of_ours_names_the_line_outside_that_led_to_it(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "from holdfast.topologies import load\n\n\ndef wrong():\n    return load('nowhere.yaml')\n"
    )
    module = module_of_file(tmp_path / "own.py")
    with pytest.raises(TopologyError) as caught:
        module.wrong()
    assert located(caught.value).startswith(f"{tmp_path / 'own.py'}:5: ")
    assert located(TopologyError("never raised")) == "never raised"
