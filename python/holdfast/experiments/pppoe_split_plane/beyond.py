"""Costs and gains of a split with our planes: new sessions beside traffic, and sessions up to 64,000. Not in the paper."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from holdfast.experiments import Finding, Part, Setting
from holdfast.experiments.pppoe_split_plane import dial_runs, drawing, scale_runs, storm_runs
from holdfast.experiments.rows import summaries
from holdfast.experiments.this_machine import disturbance, machine

QUICK_SESSIONS, QUICK_DIALS = 1000, 200
"""The numbers in the quick version of the parts."""

STORM_QUANTITIES = {
    "packets_per_s": "packets/s, a core for each switch",
    "packets_per_s_one_core": "packets/s, all switches on one core",
    "planes_us_per_setup": "planes' time for a setup (us)",
    "control_us_per_setup": "control plane's time for a setup (us)",
}
SCALE_QUANTITIES = {
    "packets_per_s": "packets/s, a core for each switch",
    "setups_per_s": "setups/s of the control plane",
    "memory_mb": "memory (MB)",
    "recover_s": "restart of the control plane (s of processor time)",
}
STORM_MORE = (
    "ns_per_packet",
    "entries_us_per_setup",
    "setups_per_s",
    "left_percent",
    "ns_per_padi",
    "lost",
    "failed_setups",
)
DIAL_QUANTITIES = {
    "setup_s": "all setups: planes and control plane (s of processor time)",
    "packets_per_s": "packets/s, a core for each switch",
    "memory_mb": "memory (MB)",
    "restart_s": "restart of the control plane (s of processor time)",
}
DIAL_MORE = (
    "setups_per_s",
    "control_ms_first",
    "control_ms_last",
    "planes_ms_first",
    "planes_ms_last",
    "whole_s",
    "taken_over",
    "takeover_s",
)
SCALE_MORE = (
    "ns_up",
    "ns_down",
    "installs_per_s",
    "control_ms_per_setup",
    "planes_ms_per_setup",
    "upkeep_percent",
    "read_s",
)


def found_storm(frame: pl.DataFrame, where: pl.DataFrame) -> Finding:
    """Return the finding on new sessions beside traffic: a row per storm, kind of gateway and quantity, from the runs.

    ``where``: rows of :func:`this_machine.machine`.
    """
    names = [*STORM_QUANTITIES, *STORM_MORE]
    rows = _summaries(frame, ["storm", "plane"], names)
    beside = frame.filter(pl.col("storm").str.ends_with("setups") | (pl.col("storm") == "none"))
    setups = pl.col("storm").replace_strict({name: float(dials) for name, (dials, _) in storm_runs.STORMS.items()})
    title = f"New sessions beside {storm_runs.PACKETS:,} packets, {disturbance(where)}"
    figure = drawing.over(
        beside.with_columns(setups=setups), "setups", "setups beside the packets", STORM_QUANTITIES, title, logs=False
    )
    return Finding(rows, {"": figure}, {"runs": frame, "machine": where})


def found_scale(frame: pl.DataFrame, where: pl.DataFrame) -> Finding:
    """Return the finding on many sessions at one gateway: a row per number of sessions, kind of gateway and quantity.

    ``where``: rows of :func:`this_machine.machine`.
    """
    numbers = summaries(frame, ["sessions", "plane"], [*SCALE_QUANTITIES, *SCALE_MORE])
    title = f"Sessions of one gateway, {disturbance(where)}"
    figure = drawing.over(frame, "sessions", "sessions", SCALE_QUANTITIES, title, logs=True)
    return Finding(numbers, {"": figure}, {"runs": frame, "machine": where})


def found_dial(frame: pl.DataFrame, where: pl.DataFrame) -> Finding:
    """Return the finding on many subscribers that dial: a row per number of sessions, kind of gateway and quantity.

    ``where``: rows of :func:`this_machine.machine`.
    """
    names = [*DIAL_QUANTITIES, *DIAL_MORE]
    rows = _summaries(frame, ["sessions", "plane"], names)
    title = f"Subscribers that dial, {disturbance(where)}"
    figure = drawing.over(frame, "sessions", "sessions", DIAL_QUANTITIES, title, logs=True)
    return Finding(rows, {"": figure}, {"runs": frame, "machine": where})


def find_storm(setting: Setting) -> Finding:
    """Measure the costs of new sessions beside traffic, one run at a time, and return the finding."""
    where = machine()
    points = [each for each in storm_runs.POINTS if not setting.quick or each["storm"] in ("none", "10 setups")]
    return found_storm(_alone(setting).sweep("storm", f"{storm_runs.__name__}:measure", points), where)


def find_scale(setting: Setting) -> Finding:
    """Measure the costs of one gateway with many sessions, one run at a time, and return the finding."""
    where = machine()
    points = [each for each in scale_runs.POINTS if not setting.quick or each["sessions"] == QUICK_SESSIONS]
    return found_scale(_alone(setting).sweep("scale", f"{scale_runs.__name__}:measure", points), where)


def find_dial(setting: Setting) -> Finding:
    """Measure the costs of many subscribers that dial at one gateway, one run at a time, and return the finding."""
    where = machine()
    points = dial_runs.points(QUICK_DIALS) if setting.quick else dial_runs.POINTS
    return found_dial(_alone(setting).sweep("dial", f"{dial_runs.__name__}:measure", points), where)


def _summaries(frame: pl.DataFrame, by: list[str], names: list[str]) -> pl.DataFrame:
    """Return a row per combination of ``by`` and quantity: the mean over the runs in which the quantity is known."""
    known = {name: own for name in names if len(own := frame.drop_nulls(name))}
    return pl.concat([summaries(own, by, [name]) for name, own in known.items()])


def _alone(setting: Setting) -> Setting:
    """Return the setting with one run at a time, because processor times are measured.

    The quick version of the experiment has one seed, so its numbers have no intervals.
    """
    return replace(setting.one_run() if setting.quick else setting, jobs=1, ray=None)


PARTS = (
    Part(
        "storm",
        "not in the paper",
        "new sessions beside established traffic: what the planes and the control plane need",
        find_storm,
        len(storm_runs.POINTS),
    ),
    Part(
        "scale",
        "not in the paper",
        "1 to 64,000 sessions: forwarding, setups, memory, restart",
        find_scale,
        len(scale_runs.POINTS),
    ),
    Part(
        "dial",
        "not in the paper",
        "up to 64,000 subscribers dial: setup, forwarding, memory, restart, and the loss of a forwarding plane",
        find_dial,
        len(dial_runs.POINTS),
    ),
)
