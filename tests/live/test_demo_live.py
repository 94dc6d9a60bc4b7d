"""The demo with the kernel's hosts: the same ranking, and TCP through 1+1 without a retransmission timeout."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from holdfast.demo import DemoParameters
from holdfast.demo_live import run

COMMAND = [sys.executable, "-c", "from holdfast.cli import main; main()", "demo", "--live"]


def namespaces() -> set[str]:
    text = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in text.splitlines() if line}


def test_same_ranking_as_simulated(tmp_path: Path) -> None:
    before = namespaces()
    parameters = DemoParameters(jitter_ms=0, duration_s=6, failure_s=2, repair_s=4)
    rows = run(parameters, tmp_path)
    static, reroute, protect = rows["static"], rows["reroute"], rows["protect"]
    assert static.udp_lost > 1500
    # iperf3 catches up on what it could not send in time, so the count is of time only roughly.
    assert 20 < reroute.udp_lost < 600
    assert static.udp_lost > 2 * reroute.udp_lost
    assert protect.udp_lost < 20
    assert protect.ping_lost == 0
    assert protect.tcp_timeouts == 0
    assert static.tcp_timeouts > 0
    assert static.tcp_stall_ms > 1500
    assert json.loads((tmp_path / "summary.json").read_text())["protect"]["tcp_timeouts"] == 0
    assert namespaces() == before


def test_interrupted_it_leaves_nothing_behind(tmp_path: Path) -> None:
    before = namespaces()
    process = subprocess.Popen(
        [*COMMAND, "--out", str(tmp_path)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 20
    while namespaces() == before and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1.5)
    os.kill(process.pid, signal.SIGTERM)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    time.sleep(0.5)
    assert namespaces() == before
