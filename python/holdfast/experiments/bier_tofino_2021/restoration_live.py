"""Figure 11 in real time: the network of :mod:`restoration` between namespaces, our own controller, a receiver of the kernel.

The switches run on the wall clock, the controller talks P4Runtime to them over gRPC and takes the time that it takes; nothing is
added. The sender and the subscriber are ordinary programs with a socket (:mod:`multicast_host`), and arrivals are the kernel's time
stamps. Detection is simulated, as all links are, with the same delay as in :mod:`restoration`. Everything shares this machine's
processors, so what else runs on it takes part; its load is kept with the results. Needs root, and says so where it is missing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from holdfast import statistics
from holdfast.errors import LiveError
from holdfast.experiments import Finding, Setting
from holdfast.experiments.bier_tofino_2021 import domain, drawing, restoration
from holdfast.experiments.this_machine import disturbance, machine
from holdfast.live.hosts import check_machine, hosts, preferred, start
from holdfast.network import LiveNetwork
from holdfast.parameters import PS_PER_MS, PS_PER_S
from holdfast.sweep import Point

PORT = 5001
INTERVAL_NS = 200_000
"""Between packets: what a restoration can be told to."""

BEFORE_S, AFTER_S = 0.2, 0.6

POINTS: list[Point] = [{"bier_frr": bier_frr, "ip_frr": ip_frr} for bier_frr, ip_frr in restoration.CASES]


ATTEMPTS = 5
"""A run in which the machine held the sender up, so that no packet met the cut, is repeated as often at most."""


def measure(point: Mapping[str, Any], _: int) -> dict[str, Any]:
    """The time from the cut to the next arrival, how many packets were lost, and how late the network's clock was at most."""
    for attempt in range(ATTEMPTS):
        try:
            return _run(point) | {"repeated": attempt}
        except UndisturbedError:
            continue
    raise LiveError(f"no packet met the cut in {ATTEMPTS} runs")


class UndisturbedError(Exception):
    """No packet met the cut."""


def _run(point: Mapping[str, Any]) -> dict[str, Any]:
    topology = restoration.figure_10(rate_bps=1_000_000_000)
    controller = restoration.controller(topology, point, 0.0, 0.0)
    program = domain.bier_program("recirculate")
    receiver = topology.hosts[restoration.SUBSCRIBER].address.ip
    sender = topology.hosts[restoration.SOURCE].address.ip
    run = (sys.executable, str(Path(__file__).with_name("multicast_host.py")))
    with ExitStack() as stack:
        namespaces, interfaces = stack.enter_context(hosts(topology))
        with preferred():
            network = stack.enter_context(
                LiveNetwork(
                    topology,
                    program,
                    [controller],
                    interfaces=interfaces,
                    detection_delay_ms=restoration.DETECTION_MS,
                )
            )
        seconds = BEFORE_S + AFTER_S
        told = (restoration.GROUP, str(PORT))
        subscriber = start(namespaces[restoration.SUBSCRIBER], *run, "receive", str(receiver), *told, str(seconds + 2))
        stack.callback(subscriber.kill)
        _wait_ready(subscriber)
        source = start(namespaces[restoration.SOURCE], *run, "send", str(sender), *told, str(seconds), str(INTERVAL_NS))
        stack.callback(source.kill)
        _wait_ready(source)
        before = network.wall_statistics()
        now_ps, realtime_ns = network.now_ps, time.time_ns()
        cut_ps = now_ps + round(BEFORE_S * PS_PER_S)
        network.set_link(restoration.CUT, up=False, at_s=cut_ps / PS_PER_S)
        cut_ns = realtime_ns + (cut_ps - now_ps) // 1000
        try:
            text = subscriber.communicate(timeout=60)[0]
        except subprocess.TimeoutExpired:
            raise LiveError("the subscriber did not end in time") from None
        late_ps = max(network.wall_statistics().max_lateness_ps, before.max_lateness_ps)
    return restored(json.loads(text), cut_ns) | {"max_lateness_ms": late_ps / PS_PER_MS}


def _wait_ready(program: subprocess.Popen[str]) -> None:
    assert program.stdout is not None
    if (said := program.stdout.readline().strip()) != "ready":
        raise LiveError(f"a host does not start: {said}")


def restored(arrivals: list[tuple[int, int]], cut_ns: int) -> dict[str, Any]:
    """What arrivals, each a number with a time, say of a cut. The first lost packet tells which arrivals were still before it."""
    numbers = sorted({number for number, _ in arrivals})
    gaps = [(b - a, b) for a, b in pairwise(numbers)]
    missing, next_number = max(gaps, default=(1, 0))
    if missing == 1:
        raise UndisturbedError
    back_ns = min(at_ns for number, at_ns in arrivals if number >= next_number)
    return {
        "restoration_ms": (back_ns - cut_ns) / 1e6,
        "lost": missing - 1,
        "lost_elsewhere": sum(gap - 1 for gap, _ in gaps) - (missing - 1),
        "duplicated": len(arrivals) - len(numbers),
    }


def find(setting: Setting) -> Finding:
    """One run at a time whatever ``jobs`` says; nothing but the reason where it cannot run."""
    try:
        check_machine(("ip",))
    except LiveError as error:
        if setting.console is not None:
            setting.console.print(f"fig11_live is not run: {error}", highlight=False)
        reason = pl.DataFrame({"reason": [str(error)]})
        return Finding(numbers(pl.DataFrame()), frames={"skipped": reason})
    where = machine()
    frame = replace(setting, jobs=1, ray=None).sweep("restoration_live", f"{__name__}:measure", POINTS)
    return Finding(numbers(frame), {"": draw(frame, where)}, {"runs": frame, "machine": where})


def numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """By case: restoration, and what was lost; nothing of nothing."""
    schema = {"bier_frr": pl.Boolean, "ip_frr": pl.Boolean, "quantity": pl.String}
    rows: list[dict[str, Any]] = []
    for value in ("restoration_ms", "lost") if len(frame) else ():
        for row in statistics.summary(frame, ["bier_frr", "ip_frr"], value).iter_rows(named=True):
            key = {name: row[name] for name in ("bier_frr", "ip_frr")}
            rows.append(key | {"quantity": value, "ours": row["mean"], "low": row["low"], "high": row["high"]})
    return pl.DataFrame(rows, schema=schema | dict.fromkeys(("ours", "low", "high"), pl.Float64))


def draw(frame: pl.DataFrame, where: pl.DataFrame) -> Figure:
    """As Figure 11, with the paper's bars."""
    found = statistics.summary(frame, ["bier_frr", "ip_frr"], "restoration_ms")
    title = f"Restoration of BIER after a cut, in real time with our controller\n{disturbance(where)}"
    return drawing.restoration({"ours, live": found}, title=title)
