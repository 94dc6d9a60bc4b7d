"""``holdfast compare --live``: the kernel's hosts lose what simulated ones lose, by the same measures; nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl

from holdfast import demo
from holdfast.compare import advice, live, mechanisms, results

COMMAND = [sys.executable, "-c", "from holdfast.cli import main; main()"]
NAMES = ["static", "ip-frr", "mpls-path", "1+1-vector"]


def namespaces() -> set[str]:
    text = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in text.splitlines() if line}


def test_it_says_what_a_simulation_says(tmp_path: Path) -> None:
    """A packet per millisecond; down for 800 ms, noticed after 50; TCP of about 20 Mb/s by its window; transfers of 50 kB."""
    before = namespaces()
    given = demo.scenario(live=True, jitter_ms=0, before_s=0.6, down_s=0.8, after_s=0.4)
    found = results.run(given, mechanisms.find(NAMES), [1], tmp_path)
    assert namespaces() == before
    flows = found.flow_frame()
    late = found.late()
    calm = late["max_ms"] <= live.LATE_MS
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
    assert found.summaries[-1].mechanism == "static"
    assert 1.7 < by_name["1+1-vector"].bytes_ratio < 2.3
    assert by_name["static"].entries_mean == 2
    _check_tcp(flows, calm)
    _check_files(tmp_path)
    assert any("clock was late" in note for note in advice.notes(found))


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


def test_interrupted_it_leaves_nothing_behind(tmp_path: Path) -> None:
    before = namespaces()
    process = subprocess.Popen(
        [*COMMAND, "demo", "--live", "--out", str(tmp_path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not namespaces() - before and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1.5)
    os.kill(process.pid, signal.SIGTERM)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    # The guard has what an interrupted removal left.
    deadline = time.monotonic() + 60
    while namespaces() - before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not namespaces() - before
