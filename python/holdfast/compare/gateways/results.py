"""Comparisons of broadband gateways.

In the folder: ``cases.parquet`` (a row per mechanism, failure and seed), ``subscribers.parquet`` (a row per subscriber of each
run), ``summary.json``, ``report.html``, and ``runs/``, where finished runs are kept. The same scenario and seeds give the same
bytes in all files but those in ``runs/``.
"""

from __future__ import annotations

from holdfast.compare.gateways import report, runs, simulation
from holdfast.compare.gateways.comparison import Comparison
from holdfast.compare.gateways.mechanisms import MECHANISMS
from holdfast.compare.gateways.scenario import Scenario
from holdfast.compare.world import World


def _about(scenario: Scenario) -> str:
    return f"gateways: {scenario.subscribers.subscribers} subscribers, {len(scenario.failures)} failures"


WORLD = World(
    command="gateways",
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
