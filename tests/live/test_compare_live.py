"""``holdfast compare --live``: the kernel's hosts have the losses of simulated ones, and the runs leave no state."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from holdfast import demo, interpreter
from holdfast.compare import advice, live, mechanisms, results, scenario

COMMAND = interpreter.module("holdfast")
NAMES = ["static", "ip-frr", "mpls-path", "1+1-vector"]


def lock_of(process: Path) -> Path | None:
    """Return the lock that is held for the names of a process's namespaces; None for a process that has made none."""
    with suppress(FileNotFoundError):
        for descriptor in (process / "fd").iterdir():
            with suppress(FileNotFoundError):
                if re.fullmatch(r"/run/holdfast/\d+\.lock", str(held := descriptor.readlink())):
                    return held
    return None


def _is_free(lock: Path) -> bool:
    """Return True if nobody holds a lock. Its file goes with the last of what it stands for."""
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False
    return True


def left_behind() -> set[str]:
    """Return the namespaces of processes that have ended. Others on this machine make and remove their own meanwhile."""
    found = set()
    for each in Path("/run/netns").glob("hf*-*"):
        lock = Path("/run/holdfast", f"{each.name.partition('-')[0].removeprefix('hf')}.lock")
        if _is_free(lock) and each.exists():
            found.add(each.name)
    return found


def made_namespaces(group: int) -> bool:
    """Return True if a process of a process group has made namespaces."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(ProcessLookupError):
            if os.getpgid(int(process.name)) == group and (lock := lock_of(process)) is not None:
                return any(Path("/run/netns").glob(f"hf{lock.stem}-*"))
    return False


def test_it_says_what_a_simulation_says(tmp_path: Path) -> None:
    """Compare live losses with simulated ones.

    A packet is sent per millisecond; the link is down for 800 ms, which is noticed after 50 ms; TCP has about 20 Mb/s by its
    window, and transfers of 50 kB.
    """
    given = demo.scenario(live=True, jitter_ms=0, before_s=0.6, down_s=0.8, after_s=0.4)
    found = results.run(given, mechanisms.find(NAMES), [1], tmp_path)
    assert not left_behind()
    flows = found.flow_frame()
    calm = found.doubts == []
    udp = {
        (row["mechanism"], row["failure"]): row for row in flows.filter(pl.col("kind") == "udp").iter_rows(named=True)
    }
    for name in NAMES:
        undisturbed = udp[name, "none"]
        assert undisturbed["sent"] == 1800
        assert undisturbed["lost"] <= 5 or not calm
        assert undisturbed["latency_ms"] > 2.02
        assert undisturbed["latency_ms"] < 12 or not calm
    assert 780 <= udp["static", "s1-s2"]["lost"] <= 850
    assert 780 <= udp["static", "s1-s2"]["outage_ms"] <= 850
    if calm:
        assert 40 <= udp["ip-frr", "s1-s2"]["lost"] <= 90
        assert 40 <= udp["mpls-path", "s1-s2"]["lost"] <= 90
        assert udp["1+1-vector", "s1-s2"]["lost"] <= 5
        assert udp["1+1-vector", "s1-s2"]["outage_ms"] < 30
    by_name = {summary.mechanism: summary for summary in found.summaries}
    assert found.summaries[0].mechanism == "1+1-vector" or not calm
    assert found.summaries[-1].mechanism == "static" or not calm
    assert advice.advice(found).startswith("1+1-vector loses" if calm else "Unreliable")
    assert 1.7 < by_name["1+1-vector"].bytes_ratio < 2.3
    assert by_name["static"].entries_mean == 2
    _check_tcp(flows, calm)
    _check_files(tmp_path)
    assert any("clock was late" in note for note in advice.notes(found))


@pytest.mark.parametrize("mechanism", ["ingress-replication", "ipmc", "bier"])
def test_a_flow_with_several_receivers(tmp_path: Path, mechanism: str) -> None:
    """Check that no packet arrives behind the failed link for 500 ms, if the source sends to each receiver or to their group."""
    path = tmp_path / "traffic.yaml"
    path.write_text("udp: [{source: h1, receivers: [h2, h3, h4], packets_per_s: 200}]\n")
    when: dict[str, float | None] = {"before_s": 0.5, "down_s": 0.5, "after_s": 0.5}
    given = scenario.build("ring:4", fail="s1-s2", traffic=path, when=when, live=True)
    found = results.run(given, mechanisms.find([mechanism], "ingress-replication"), [1], tmp_path)
    of_failure = (pl.col("failure") == "s1-s2") & (pl.col("mechanism") == mechanism)
    frame = pl.read_parquet(tmp_path / "receivers.parquet").filter(of_failure)
    assert frame["receiver"].to_list() == ["h2", "h3", "h4"]
    assert frame["sent"].to_list() == [300, 300, 300]
    h2, h3, h4 = frame["lost"].to_list()
    assert 95 <= h2 <= 115 and 95 <= h3 <= 115
    assert h4 <= 3 or found.doubts
    (flow,) = found.flow_frame().filter(of_failure).to_dicts()
    assert (flow["sent"], flow["lost"]) == (900, h2 + h3 + h4)
    assert flow["outage_ms"] == frame["outage_ms"].max()


def _check_tcp(flows: pl.DataFrame, calm: bool) -> None:
    bulk = {
        (row["mechanism"], row["failure"]): row for row in flows.filter(pl.col("kind") == "bulk").iter_rows(named=True)
    }
    still, cut = bulk["1+1-vector", "none"], bulk["1+1-vector", "s1-s2"]
    # 1.2 s of 23 Mb/s, which the round trip in this machine makes a little less.
    assert 1_200_000 < still["goodput_bytes"] < 3_600_000
    assert bulk["static", "s1-s2"]["goodput_bytes"] < 0.5 * bulk["static", "none"]["goodput_bytes"]
    if calm:
        assert cut["timeouts"] in (0, None)
        assert cut["goodput_bytes"] > 0.8 * still["goodput_bytes"]
    transfers = flows.filter((pl.col("kind") == "transfer") & (pl.col("failure") == "none"))
    assert transfers.height == 4 * len(NAMES)
    assert all(5 < each < 500 for each in transfers["completion_ms"])


def _check_files(out: Path) -> None:
    summary = json.loads((out / "summary.json").read_text())
    assert summary["live"]["max_ms"] > 0
    report = (out / "report.html").read_text()
    assert "s1-s2 fails (live)" in report
    assert "simulated" not in report
    # What is finished is measured again when it is asked for again.
    assert not (out / "runs/journal.jsonl").exists()


def test_switches_report_by_int_in_real_time(tmp_path: Path) -> None:
    """Check that reports tell of both paths around the cut in the interval in which each carries the traffic."""
    given = demo.scenario(live=True, jitter_ms=0, before_s=0.6, down_s=0.8, after_s=0.4, telemetry=True)
    found = results.run(given, mechanisms.find(["static", "reroute"]), [1], tmp_path)
    assert not left_behind()
    packets = {
        (row["mechanism"], row["failure"], row["switch"], row["to"], row["interval"]): row["packets"]
        for row in pl.read_parquet(tmp_path / "telemetry.parquet").iter_rows(named=True)
    }
    for mechanism in ("static", "reroute"):
        for failure in ("none", "s1-s2"):
            # A packet of UDP per millisecond, and TCP's beside them.
            assert packets[mechanism, failure, "s1", "s2", "before"] > 500
            assert (mechanism, failure, "s1", "s3", "before") not in packets
        assert packets[mechanism, "none", "s1", "s2", "failed"] > 700
        assert packets.get((mechanism, "s1-s2", "s1", "s2", "failed"), 0) < 10
    assert packets["reroute", "s1-s2", "s1", "s3", "failed"] > 300
    assert ("static", "s1-s2", "s1", "s3", "failed") not in packets
    reported = found.telemetry_of("static", "none")
    assert reported is not None and (reported["malformed"], reported["reports_lost"]) == (0, 0)


def test_a_disturbed_baseline_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the hosts for 300 ms of the first undisturbed run, so that TCP delivers less in it than with the failure."""
    runs: list[tuple[str, str]] = []
    run = live._run

    def counted(path: str, mechanism: str, seed: int, failure: str, origin: str | None) -> dict[str, Any]:
        runs.append((mechanism, failure))
        return run(path, mechanism, seed, failure, origin)

    class Halted(live._Process):
        def begin(self, start_ns: int) -> None:
            super().begin(start_ns)
            if runs == [("static", "none")]:
                for after_s, what in ((0.5, signal.SIGSTOP), (0.8, signal.SIGCONT)):
                    threading.Timer(after_s, self._process.send_signal, (what,)).start()

    monkeypatch.setattr(live, "_run", counted)
    monkeypatch.setattr(live, "_Process", Halted)
    given = demo.scenario(live=True, jitter_ms=0, before_s=0.6, down_s=0.4, after_s=0.4)
    found = results.run(given, mechanisms.find(["static", "1+1-vector"]), [1], tmp_path)
    assert runs.count(("static", "none")) >= 2
    assert found.late()["repeated"] >= 1
    # Whatever else happens on this machine: no headline stands on a gain by a failure.
    gained = [each for each in found.summaries if (each.goodput_lost_percent or 0.0) < -10]
    assert not gained or advice.advice(found).startswith("Unreliable")


def test_an_application_that_writes_at_a_rate_does_so_in_the_kernel(tmp_path: Path) -> None:
    path = tmp_path / "traffic.yaml"
    path.write_text(
        "pairs: [[h1, h3]]\nudp: [{packets_per_s: 100}]\ntcp: [{rate_bps: 2e6}, {options: {congestion: newreno}, rate_bps: 2e6}]\n"
    )
    when = {"before_s": 0.5, "down_s": 0.5, "after_s": 1.0}
    given = scenario.build("ring:4", fail="s3-s4", traffic=path, when=when, live=True)
    found = results.run(given, mechanisms.find(["static"]), [1], tmp_path / "out")
    for delivered in found.row("static", "none", 1)["goodput_bytes"]:
        assert 0.5 * 2e6 < 8 * delivered / 1.5 < 1.3 * 2e6 or found.doubts


def test_interrupted_it_leaves_nothing_behind(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "demo", "--live", "--out", str(tmp_path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while not made_namespaces(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1.5)
    os.kill(process.pid, signal.SIGTERM)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    # The guard has what an interrupted removal left.
    deadline = time.monotonic() + 60
    while left_behind() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left_behind()


def test_a_mechanism_from_a_file_runs_in_real_time(tmp_path: Path) -> None:
    """Run the mechanism of docs/MECHANISMS.md, which loses packets until its switch has noticed, 50 ms after the failure."""
    mine = Path(__file__).parents[2] / "examples/backup_port/backup.py"
    given = demo.scenario(live=True, jitter_ms=0, before_s=0.6, down_s=0.8, after_s=0.4)
    found = results.run(given, mechanisms.find([f"{mine}:BACKUP"]), [1], tmp_path / "out")
    assert not left_behind()
    lost = {each.mechanism: each.lost_mean for each in found.summaries}
    assert 20 < lost["backup"] < lost["static"] / 2
