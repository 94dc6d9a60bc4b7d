"""Comparisons of networks: hosts with flows in a topology, of which a link or a switch fails.

In the folder: ``cases.parquet`` (a row per mechanism, failure and seed), ``flows.parquet`` (a row per flow of each run),
``receivers.parquet`` (a row per receiver of each run's flows with several; without such a flow there is none),
``telemetry.parquet`` (with ``--telemetry int``: a row per run, output port and interval),
``summary.json``, ``report.html``, and ``runs/``, where finished runs are kept. The same scenario and seeds give the same
bytes in all files but those in ``runs/``, unless it is live.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import polars as pl

from holdfast.compare import advice, live, mechanisms, report, runs, telemetry, terminal, traffic_file, world
from holdfast.compare.comparison import Comparison
from holdfast.compare.figures import Case, Summary
from holdfast.compare.mechanism import Mechanism
from holdfast.compare.requirements import Measure
from holdfast.compare.scenario import Scenario
from holdfast.compare.world import World
from holdfast.errors import ScenarioError
from holdfast.terminal import Grid


def _about(scenario: Scenario) -> str:
    topology = scenario.topology
    return f"{topology.name}: {len(topology.switches)} switches, {len(topology.links)} links"


def _chosen(scenario: Scenario, names: Sequence[str] | None) -> list[Mechanism]:
    """Return the traffic's baseline, and the mechanisms with these names, or all for such traffic if ``names`` is None.

    With telemetry, only mechanisms whose program reports by INT are included. Raise :class:`ScenarioError` for a named one that
    does not.
    """
    baseline = mechanisms.baseline(scenario.traffic)
    if scenario.telemetry:
        names = mechanisms.with_telemetry(names, baseline)
    found = mechanisms.find(mechanisms.defaults(scenario.traffic) if names is None else names, baseline)
    for each in found:
        if scenario.telemetry and each.with_telemetry is None:
            raise ScenarioError(f"--telemetry int: the program of mechanism {each.name!r} has no INT")
    return found


def default_names(scenario: Scenario) -> list[str]:
    """Return the names of the mechanisms that are compared if none are given: all for such traffic.

    With telemetry, they are those whose program reports by INT.
    """
    return [each.name for each in _chosen(scenario, None)]


def _check(scenario: Scenario, mechanisms: Sequence[Mechanism], seeds: Sequence[int]) -> None:
    if scenario.live:
        live.check(scenario, mechanisms, seeds)


def _frames(comparison: Comparison) -> dict[str, pl.DataFrame]:
    found = {"flows": comparison.flow_frame()}
    if (receivers := comparison.receiver_frame()) is not None:
        found["receivers"] = receivers
    if comparison.scenario.telemetry:
        found["telemetry"] = telemetry.frame(comparison.telemetry_rows())
    return found


def _input_of(comparison: Comparison) -> dict[str, object]:
    scenario, topology = comparison.scenario, comparison.scenario.topology
    return {
        "topology": {
            "name": topology.name,
            "switches": len(topology.switches),
            "hosts": len(topology.hosts),
            "links": len(topology.links),
        },
        "live": comparison.late() if scenario.live else None,
        "fail": scenario.fail,
        "failures": len(scenario.failures),
        "times": world.input_of(comparison)["times"],
        "traffic": traffic_file.describe(scenario.traffic),
    }


def _lost_of_goodput(comparison: Comparison, case: Case, _: Summary) -> float | None:
    """Return the percentage of TCP's goodput lost: 0 where the failure hit none of the connections; None if it was not measured."""
    return 0.0 if comparison.bulk and not case.connections else case.goodput_lost_percent


def _completion(comparison: Comparison, case: Case, _: Summary) -> float | None:
    """Return the longest time in ms of the affected transfers: infinity if one was not finished, 0 where the failure hit none.

    Return None if the traffic has no transfers.
    """
    if not case.transfers:
        return 0.0 if comparison.transfers else None
    return math.inf if case.transfers_unfinished else case.completion_worst_ms


def _only_counted(value: Callable[[Case], float]) -> Callable[[Comparison, Case, Summary], float | None]:
    return lambda comparison, case, _: None if comparison.uncounted or not case.sent else value(case)


MEASURES: Final[Mapping[str, Measure]] = {
    "lost": Measure(
        "packets of UDP and pings that are lost to a failure", _only_counted(lambda it: it.lost_to_failure)
    ),
    "outage": Measure("longest time without an arrival of any stream", _only_counted(lambda it: it.outage_ms), "ms"),
    "reordered": Measure("packets behind a later one", _only_counted(lambda it: it.reordered)),
    "duplicated": Measure("further copies that arrive", _only_counted(lambda it: it.duplicated)),
    "tcp": Measure("part of affected TCP connections' goodput that is lost", _lost_of_goodput, "%"),
    "transfer": Measure("longest time of an affected TCP transfer", _completion, "ms"),
    "latency": Measure(
        "added to that of plain routing while it is down", lambda _, case, __: case.added_latency_ms, "ms"
    ),
    "bytes": Measure("bytes carried, by those of plain routing", lambda _, __, summary: summary.bytes_ratio),
    "state": Measure("table entries of a switch, on average", lambda _, __, summary: summary.entries_mean),
}


def _tables(comparison: Comparison) -> list[Grid]:
    one = len(comparison.flows) == len(comparison.scenario.failures) == 1
    worst = [] if one or comparison.uncounted is not None else [terminal.worst_table(comparison)]
    more = [terminal.telemetry_table(comparison)] if comparison.scenario.telemetry else []
    return [terminal.table(comparison), *(each for each in worst if each.row_count), *more]


WORLD = World(
    command="",
    about=_about,
    measures=MEASURES,
    known=mechanisms.known,
    chosen=_chosen,
    check=_check,
    measured=runs.measured,
    live=live.measured,
    compared=Comparison,
    frames=_frames,
    input_of=_input_of,
    title=terminal.title,
    tables=_tables,
    heading=report.heading,
    subtitle=report.subtitle,
    columns=report.columns,
    template="report.html",
    parts=report.parts,
    advice=advice.advice,
    notes=advice.notes,
    rule=report.rule,
    why=advice.reasons,
)

run = WORLD.run
