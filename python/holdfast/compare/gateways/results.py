"""Comparisons of broadband gateways.

In the folder: ``cases.parquet`` (a row per mechanism, failure and seed), ``subscribers.parquet`` (a row per subscriber of each
run), ``summary.json``, ``report.html``, and ``runs/``, where finished runs are kept. The same scenario and seeds give the same
bytes in all files but those in ``runs/``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from holdfast.compare.gateways import report, runs, simulation
from holdfast.compare.gateways.comparison import Comparison, Summary
from holdfast.compare.gateways.mechanisms import MECHANISMS
from holdfast.compare.gateways.scenario import Scenario
from holdfast.compare.ranking import Case
from holdfast.compare.requirements import Measure
from holdfast.compare.world import World


def _about(scenario: Scenario) -> str:
    return f"gateways: {scenario.subscribers.subscribers} subscribers, {len(scenario.failures)} failures"


def _of(value: Callable[[Mapping[str, Any]], float | None]) -> Callable[[Comparison, Case, Summary], float | None]:
    return lambda _, case, __: value(case.measures)


def _or_never(value: float | None) -> float:
    return math.inf if value is None else value


MEASURES: Final[Mapping[str, Measure]] = {
    "lost": Measure("packets of subscribers that are lost to a failure", _of(lambda it: it["lost_to_failure"])),
    "outage": Measure("longest outage of a subscriber", _of(lambda it: it["outage_worst_ms"]), "ms"),
    "ended": Measure("subscribers whose session ended", _of(lambda it: it["subscribers"] - it["kept"])),
    "recovered": Measure(
        "time until the slowest subscriber lost no more", _of(lambda it: _or_never(it["recovered_ms"])), "ms"
    ),
    "refused": Measure("newcomers without a session at the end", _of(lambda it: it["newcomers"] - it["newcomers_in"])),
    "entries": Measure("table entries of all the gateways' switches", lambda _, __, summary: summary.entries),
}

WORLD = World(
    command="gateways",
    measures=MEASURES,
    about=_about,
    known=lambda: MECHANISMS,
    measured=runs.measured,
    same_as=simulation.told_apart,
    compared=Comparison,
    frames=lambda comparison: {"subscribers": comparison.subscriber_frame()},
    input_of=report.input_of,
    title=report.title,
    tables=report.tables,
    legend=report.legend,
    heading=report.heading,
    subtitle=report.subtitle,
    columns=report.columns,
    template="gateways/report.html",
    parts=report.parts,
    definitions=report.DEFINITIONS,
    how=report.HOW,
    advice=report.advice,
    notes=report.notes,
)
