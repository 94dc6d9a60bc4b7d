"""Parts that are measured in real time: whether they can be, and the conditions: the machine, and its other load."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from holdfast import interpreter
from holdfast._core import Namespace
from holdfast.errors import LiveError
from holdfast.experiments import Finding, Setting
from holdfast.live.hosts import LiveHost, check_machine
from holdfast.sweep import Point

SCRIPT = Path(__file__).with_name("packet_host.py")


def machine() -> pl.DataFrame:
    """Return one row that describes this machine: ``processor``, ``processors``, ``system``, and the one-minute ``load_before``."""
    cpuinfo = Path("/proc/cpuinfo")
    models = (
        re.findall(r"^model name\s*: (.*)$", cpuinfo.read_text(encoding="utf-8"), re.MULTILINE)
        if cpuinfo.is_file()
        else []
    )
    return pl.DataFrame(
        {
            "processor": [models[0] if models else platform.processor()],
            "processors": [os.cpu_count()],
            "system": [f"{platform.system()} {platform.release()}"],
            "load_before": [round(os.getloadavg()[0], 2)],
        }
    )


DISTURBED_LOAD = 0.5
"""The load average before a measurement from which on something else ran half of the time or more."""


def disturbance(machine: pl.DataFrame) -> str:
    """Return words for a headline: whether the machine was idle or busy, its load, and the number of its processors.

    ``machine``: rows of :func:`machine`, one per measurement.
    """
    loads, processors = machine["load_before"].to_list(), machine["processors"][0]
    load = " to ".join(dict.fromkeys(f"{each:g}" for each in (min(loads), max(loads))))
    kind = "a machine that was busy with other work" if max(loads) >= DISTURBED_LOAD else "an idle machine"
    return f"on {kind} (load {load} on {processors} processors)"


ATTEMPTS = 3
"""A run that the machine held up is made again, so many times in all."""


def in_time(run: Callable[[], Mapping[str, Any]], late_ms: float) -> dict[str, Any]:
    """Call ``run`` until its ``max_lateness_ms`` is at most ``late_ms``, ``ATTEMPTS`` times at most; return the last result.

    To the result is added ``repeated``: the number of runs before the last one.
    """
    repeated = 0
    while (found := run())["max_lateness_ms"] > late_ms and repeated < ATTEMPTS - 1:
        repeated += 1
    return {**found, "repeated": repeated}


def held_up(runs: pl.DataFrame, late_ms: float) -> str:
    """Return a sentence for the report: how many runs of :func:`in_time` were repeated, and how many stayed too late (ms)."""
    late = runs.filter(pl.col("max_lateness_ms") > late_ms).height
    return (
        f"{runs['repeated'].sum()} runs were made again because an event was more than {late_ms:g} ms late; "
        f"{late or 'none'} of {runs.height} stayed so"
    )


def find(
    setting: Setting,
    part: str,
    function: str,
    points: Sequence[Point],
    found: Callable[[pl.DataFrame, pl.DataFrame], Finding],
    *,
    tools: Sequence[str],
    sweep: str | None = None,
    numbers: pl.DataFrame | None = None,
) -> Finding:
    """Measure a part in real time and return its finding; where that is impossible, return a finding with the reason only.

    Runs are made one at a time, whatever ``jobs`` says. ``found`` makes the finding of the runs and the state of the machine.
    ``tools``: commands that are needed. ``sweep``: the name of the runs, if it is not the part's. ``numbers``: numbers of the
    finding where nothing can be measured.
    """
    try:
        check_machine(tools)
    except LiveError as error:
        if setting.console is not None:
            setting.console.print(f"{part} is not run: {error}", highlight=False)
        return Finding(numbers, frames={"skipped": pl.DataFrame({"reason": [str(error)]})})
    where = machine()
    return found(replace(setting, jobs=1, ray=None).sweep(sweep or part, function, points), where)


def send_frames(
    sender: LiveHost | Namespace,
    receiver: LiveHost | Namespace,
    frame: bytes,
    count: int,
    interval_ns: int,
    length: int,
) -> list[tuple[int, int, int]]:
    """Send ``frame`` ``count`` times at a constant rate with ``packet_host.py``, and return what arrived at ``receiver``.

    Returned per frame of ``length`` bytes: its number, and the times of sending and of arrival in nanoseconds. The last 18 bytes of
    a frame are overwritten. Raise :class:`LiveError` if fewer than two frames arrive.
    """
    seconds = 3 * count * interval_ns / 1e9 + 5  # the sender may be late
    script = interpreter.script(SCRIPT)
    words = [*receiver.exec_prefix, *script, "receive", str(count), str(length), str(seconds)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as receiving:
        try:
            assert receiving.stdout is not None
            if receiving.stdout.readline() != "ready\n":
                raise LiveError("the receiver does not start")
            words = [*script, "send", str(count), str(interval_ns), frame.hex()]
            sent = sender.run(words, check=False, timeout_s=60 + 2 * seconds)
            if sent.returncode:
                raise LiveError(f"the sender failed: {sent.stderr.strip().splitlines()[-1:]}")
            arrivals: list[tuple[int, int, int]] = json.loads(receiving.communicate(timeout=60 + seconds)[0])
        finally:
            receiving.kill()
    check_arrived(len(arrivals), count)
    return arrivals


def check_arrived(arrivals: int, count: int) -> None:
    """Raise :class:`LiveError` if fewer than two of ``count`` packets arrived."""
    if arrivals < 2:
        raise LiveError(f"of {count} packets {arrivals} arrived")
