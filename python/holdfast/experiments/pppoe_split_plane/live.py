"""The first table in real time: our switch on this machine, one process or three. Its figures are this machine's."""

from __future__ import annotations

import polars as pl

from holdfast.experiments import Finding, Part, Setting, this_machine
from holdfast.experiments.pppoe_split_plane import drawing, live_runs, published
from holdfast.experiments.rows import summaries
from holdfast.experiments.this_machine import disturbance

QUANTITIES = {
    "latency_p50_ms": "median latency (ms)",
    "latency_ms": "mean latency (ms)",
    "forwarded_per_s": "forwarded under full load (packets/s)",
    "offered_per_s": "offered then (packets/s)",
}


def found(frame: pl.DataFrame, where: pl.DataFrame) -> Finding:
    """Return the finding of Table 1 in real time: a row per number of packets, kind of gateway and quantity.

    ``where``: rows of :func:`this_machine.machine`.
    """
    title = f"As processes of this machine, {disturbance(where)}"
    figure = drawing.over(frame, "packets", "packets", QUANTITIES, title, logs=True)
    numbers = summaries(frame, ["packets", "plane"], [*QUANTITIES, "total_ms", "lost"])
    return Finding(numbers, {"": figure}, {"runs": frame, "machine": where})


def find(setting: Setting) -> Finding:
    """Measure Table 1 in real time, one run at a time whatever ``jobs`` says; where impossible, return only the reason."""
    points = [each for each in live_runs.POINTS if not setting.quick or each["packets"] == published.PACKETS[0]]
    once = setting.one_run() if setting.quick else setting
    return this_machine.find(
        once, "table1_live", f"{live_runs.__name__}:measure", points, found, tools=("ip",), sweep="live"
    )


PARTS = (
    Part(
        "table1_live",
        "first table",
        "the same with our switch on this machine (needs root)",
        find,
        len(live_runs.POINTS),
    ),
)
