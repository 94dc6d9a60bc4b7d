"""Comparisons of networks: hosts with flows in a topology, of which a link or a switch fails.

In the folder: ``cases.parquet`` (a row per mechanism, failure and seed), ``flows.parquet`` (a row per flow of each run),
``receivers.parquet`` (a row per receiver of each run's flows with several; without such a flow there is none),
``telemetry.parquet`` (with ``--telemetry int``: a row per run, output port and interval),
``summary.json``, ``report.html``, and ``runs/``, where finished runs are kept. The same scenario and seeds give the same
bytes in all files but those in ``runs/``, unless it is live.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from rich.table import Table

from holdfast.compare import advice, live, mechanisms, report, runs, telemetry, terminal, traffic_file, world
from holdfast.compare.comparison import Comparison
from holdfast.compare.mechanism import Mechanism
from holdfast.compare.scenario import Scenario
from holdfast.compare.world import World
from holdfast.errors import ScenarioError


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


def _tables(comparison: Comparison) -> list[Table]:
    more = [terminal.telemetry_table(comparison)] if comparison.scenario.telemetry else []
    return [terminal.table(comparison), *more]


WORLD = World(
    command="",
    about=_about,
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
)

run = WORLD.run
