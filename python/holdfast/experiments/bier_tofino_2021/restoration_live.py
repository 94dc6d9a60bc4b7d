"""Figure 11 in real time: the network of :mod:`restoration` between namespaces, our own controller, a receiver of the kernel.

The switches run on the wall clock, the controller talks P4Runtime to them over gRPC and takes the time that it takes; nothing is
added. Sender and subscriber are ordinary programs (:mod:`live_stream`), and arrivals are the kernel's time stamps. Detection is
simulated, as all links are, with the same delay as in :mod:`restoration`. Everything shares this machine's processors, so what else
runs on it takes part; its load is kept with the results. Needs root, and says so where it is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from holdfast import statistics
from holdfast.errors import LiveError
from holdfast.experiments import Finding, Setting, this_machine
from holdfast.experiments.bier_tofino_2021 import domain, drawing, live_stream, restoration
from holdfast.experiments.rows import summaries
from holdfast.experiments.this_machine import disturbance
from holdfast.parameters import PS_PER_MS
from holdfast.sweep import Point

STREAM = live_stream.Stream(
    restoration.GROUP,
    restoration.SOURCE,
    [restoration.SUBSCRIBER],
    interval_ns=200_000,
    # Fits the links' MTU with a BIER header and a tunnel's on it.
    payload_bytes=1400,
    before_s=0.2,
    after_s=0.6,
)
"""A restoration can be told to the interval between packets."""

POINTS: list[Point] = [{"bier_frr": bier_frr, "ip_frr": ip_frr} for bier_frr, ip_frr in restoration.CASES]


ATTEMPTS = 5
"""A run in which the machine held the sender up, so that no packet met the cut, is repeated as often at most."""


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Cut a link in real time; return the times that :func:`restored` finds, and the largest lateness of the network's clock.

    The moment of the cut between two packets is drawn from the seed. A run in which no packet met the cut is repeated; after
    ``ATTEMPTS`` such runs :class:`LiveError` is raised.
    """
    for attempt in range(ATTEMPTS):
        try:
            return _run(point, seed) | {"repeated": attempt}
        except UndisturbedError:
            continue
    raise LiveError(f"no packet met the cut in {ATTEMPTS} runs")


class UndisturbedError(Exception):
    """No packet met the cut."""


def _run(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    topology = restoration.figure_10(rate_bps=1_000_000_000)
    later_s = Random(f"cut {seed}").uniform(0, STREAM.interval_ns) / 1e9
    observed = live_stream.observe(
        topology,
        domain.bier_program("recirculate"),
        restoration.controller(topology, point, 0.0, 0.0),
        replace(STREAM, before_s=STREAM.before_s + later_s),
        lambda network, at_s: network.set_link(restoration.CUT, up=False, at_s=at_s),
        detection_ms=restoration.DETECTION_MS,
    )
    return restored(observed) | {"max_lateness_ms": observed.max_lateness_ps / PS_PER_MS}


def restored(observed: live_stream.Observed) -> dict[str, Any]:
    """Return the times of a cut in ms: the restoration, and its part after the failure was detected.

    The first lost packet tells which arrivals were before the cut. ``after_detection_ms``: from the detection to the first arrival
    of a repaired packet, without ``waited_ms``, the time in which no packet was sent between the last lost one and the repaired
    one. Raises UndisturbedError if no packet was lost, and :class:`LiveError` if nothing arrived after the cut.
    """
    host = restoration.SUBSCRIBER
    arrivals, sent_ns = observed.arrivals[host], observed.sent_ns
    runs: list[list[int]] = []
    for number in observed.lost(host):
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    if not runs:
        raise UndisturbedError
    cut = max(runs, key=len)
    back = min(((at_ns, number) for number, at_ns in arrivals if number > cut[-1]), default=None)
    if back is None:
        raise LiveError("nothing arrived after the cut")
    back_ns, number = back
    detected_ns = observed.failure_ns + round(restoration.DETECTION_MS * 1e6)
    waited_ns = max(0, sent_ns[number] - max(detected_ns, sent_ns[cut[-1]]))
    return {
        "restoration_ms": (back_ns - observed.failure_ns) / 1e6,
        "after_detection_ms": (back_ns - detected_ns - waited_ns) / 1e6,
        "waited_ms": waited_ns / 1e6,
        "lost": len(cut),
        "lost_elsewhere": sum(map(len, runs)) - len(cut),
        "duplicated": len(arrivals) - len({number for number, _ in arrivals}),
    }


def found(frame: pl.DataFrame, where: pl.DataFrame) -> Finding:
    """Return the finding of Figure 11 in real time: a row per case and quantity (ms, packets), the bars, the runs, the machine.

    ``where``: rows of :func:`this_machine.machine`.
    """
    return Finding(numbers(frame), {"": draw(frame, where)}, {"runs": frame, "machine": where})


def find(setting: Setting) -> Finding:
    """Measure Figure 11 in real time, one run at a time whatever ``jobs`` says; where impossible, return only the reason."""
    return this_machine.find(
        setting,
        "fig11_live",
        f"{__name__}:measure",
        POINTS,
        found,
        tools=("ip",),
        sweep="restoration_live",
        numbers=numbers(pl.DataFrame()),
    )


def numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row per case and quantity: restoration in ms, its part after detection in ms, and packets lost.

    The table is empty if ``frame`` has no runs.
    """
    keys = ["bier_frr", "ip_frr"]
    if len(frame):
        return summaries(frame, keys, ["restoration_ms", "after_detection_ms", "lost"])
    schema = {"bier_frr": pl.Boolean, "ip_frr": pl.Boolean, "quantity": pl.String}
    return pl.DataFrame(schema=schema | dict.fromkeys(("ours", "low", "high"), pl.Float64))


def draw(frame: pl.DataFrame, where: pl.DataFrame) -> Figure:
    """Draw Figure 11: restoration time in ms by case, the paper's bars and those measured in real time."""
    found = statistics.summary(frame, ["bier_frr", "ip_frr"], "restoration_ms")
    title = f"Restoration of BIER after a cut, in real time with our controller\n{disturbance(where)}"
    return drawing.restoration({"ours, live": found}, title=title)
