"""The first table in real time: our switch on this machine, one process or three. Its figures are this machine's."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from holdfast.errors import LiveError
from holdfast.experiments import Finding, Part, Setting
from holdfast.experiments.pppoe_split_plane import drawing, live_runs
from holdfast.experiments.pppoe_split_plane.rows import summaries
from holdfast.experiments.this_machine import disturbance, machine
from holdfast.live.hosts import check_machine

QUANTITIES = {
    "latency_p50_ms": "median latency (ms)",
    "latency_ms": "mean latency (ms)",
    "forwarded_per_s": "forwarded under full load (packets/s)",
    "offered_per_s": "offered then (packets/s)",
}


def found(frame: pl.DataFrame, where: pl.DataFrame) -> Finding:
    """The part, of its runs."""
    title = f"As processes of this machine, {disturbance(where)}"
    figure = drawing.over(frame, "packets", "packets", QUANTITIES, title, logs=True)
    numbers = summaries(frame, ["packets", "plane"], [*QUANTITIES, "total_ms", "lost"])
    return Finding(numbers, {"": figure}, {"runs": frame, "machine": where})


def find(setting: Setting) -> Finding:
    """One run at a time whatever ``jobs`` says; nothing but the reason where it cannot run."""
    try:
        check_machine(("ip",))
    except LiveError as error:
        if setting.console is not None:
            setting.console.print(f"table1_live is not run: {error}", highlight=False)
        return Finding(frames={"skipped": pl.DataFrame({"reason": [str(error)]})})
    where = machine()
    frame = replace(setting, jobs=1, ray=None).sweep("live", f"{live_runs.__name__}:measure", live_runs.POINTS)
    return found(frame, where)


PARTS = (
    Part(
        "table1_live",
        "first table",
        "the same with our switch on this machine (needs root)",
        find,
        len(live_runs.POINTS),
    ),
)
