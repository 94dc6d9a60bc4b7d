"""The whole command: run, summarise, write. Interrupted, it goes on where it stopped when it is called again.

In the folder: ``cases.parquet`` (a row per mechanism, failure and seed), ``flows.parquet`` (a row per flow of each run),
``summary.json``, ``report.html``, and ``runs/``, where finished runs are kept. The same scenario and seeds give the same
bytes in all files but those in ``runs/``, unless it is live.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from holdfast import sweep
from holdfast.compare import advice, live, report, runs, traffic_file
from holdfast.compare.comparison import Comparison
from holdfast.compare.mechanisms import Mechanism
from holdfast.compare.scenario import NO_FAILURE, Scenario


def run(
    scenario: Scenario,
    mechanisms: Sequence[Mechanism],
    seeds: Sequence[int],
    out: Path,
    *,
    jobs: int = 1,
    console: Console | None = None,
) -> Comparison:
    """Runs every mechanism under every failure and writes the results to ``out``. ``console``: for the progress.

    A live scenario runs one thing at a time, whatever ``jobs`` says; when all is done, another call measures again.
    """
    if scenario.live:
        live.check(scenario, mechanisms, seeds)
        jobs = 1
    path = scenario.write(out / "runs").resolve()
    points: list[sweep.Point] = [
        {"scenario": str(path), "mechanism": mechanism.name, "network_seed": seed, "failure": failure}
        for mechanism in mechanisms
        for seed in seeds
        for failure in (NO_FAILURE, *scenario.failures)
    ]
    measured = live.measured if scenario.live else runs.measured
    frame = sweep.run(measured, points, [0], out / "runs", jobs=jobs, console=console)
    if scenario.live:
        (out / "runs" / "journal.jsonl").unlink()
    comparison = Comparison(scenario, mechanisms, seeds, frame.to_dicts())
    comparison.case_frame().write_parquet(out / "cases.parquet")
    comparison.flow_frame().write_parquet(out / "flows.parquet")
    (out / "summary.json").write_text(json.dumps(summary(comparison), indent=2) + "\n")
    report.write(comparison, out / "report.html")
    return comparison


def summary(comparison: Comparison) -> dict[str, Any]:
    """What ``summary.json`` has: the givens, the mechanisms in the order of their ranks, the advice and the notes."""
    scenario = comparison.scenario
    topology = scenario.topology
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
        "times": {
            **scenario.times.model_dump(),
            "failure_s": scenario.times.failure_s,
            "repair_s": scenario.times.repair_s,
        },
        "traffic": traffic_file.describe(scenario.traffic),
        "seeds": comparison.seeds,
        "advice": advice.advice(comparison),
        "notes": advice.notes(comparison),
        "mechanisms": [asdict(each) for each in comparison.summaries],
    }
