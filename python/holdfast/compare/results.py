"""The whole command: run, summarise, write. Interrupted, it goes on where it stopped when it is called again.

In the folder: ``cases.parquet`` (a row per mechanism, failure and seed), ``flows.parquet`` (a row per flow of each run),
``receivers.parquet`` (a row per receiver of each run's flows with several; without such a flow there is none),
``telemetry.parquet`` (with ``--telemetry int``: a row per run, output port and interval),
``summary.json``, ``report.html``, and ``runs/``, where finished runs are kept. The same scenario and seeds give the same
bytes in all files but those in ``runs/``, unless it is live.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import polars as pl
from rich.console import Console

from holdfast import sweep, whole_files
from holdfast.compare import advice, live, report, runs, telemetry, traffic_file
from holdfast.compare.comparison import Comparison
from holdfast.compare.mechanism import Mechanism
from holdfast.compare.rows import Row
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
    """Run every mechanism under every failure with every seed, write the results to ``out``, and return them.

    ``console`` shows the progress. A live scenario makes one run at a time, whatever ``jobs`` says; when all are done, another call
    measures again.
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
    # A process that has built a network and run it undisturbed goes on with its failures.
    together = ("mechanism", "network_seed")
    code = _code_of(mechanisms)
    frame = sweep.run(measured, points, [0], out / "runs", jobs=jobs, console=console, together=together, code=code)
    rows = _rows(frame)
    comparison = Comparison(scenario, mechanisms, seeds, rows)
    if scenario.live:
        comparison = _again(comparison, points, rows, out / "runs", console)
    whole_files.write(out / "cases.parquet", comparison.case_frame().write_parquet)
    whole_files.write(out / "flows.parquet", comparison.flow_frame().write_parquet)
    if (receivers := comparison.receiver_frame()) is not None:
        whole_files.write(out / "receivers.parquet", receivers.write_parquet)
    if scenario.telemetry:
        whole_files.write(out / "telemetry.parquet", telemetry.frame(comparison.telemetry_rows()).write_parquet)
    whole_files.write_text(out / "summary.json", json.dumps(summary(comparison), indent=2) + "\n")
    report.write(comparison, out / "report.html")
    return comparison


def _again(
    comparison: Comparison, points: Sequence[sweep.Point], rows: Sequence[Row], folder: Path, console: Console | None
) -> Comparison:
    """Repeat all runs of each mechanism and seed whose run without a failure was disturbed, a few times at most.

    Return the comparison with the new runs.
    """
    (folder / "journal.jsonl").unlink()
    kept = {(row["mechanism"], row["failure"], row["network_seed"]): row for row in rows}
    for attempt in range(1, live.ATTEMPTS):
        if not (disturbed := comparison.disturbed()):
            break
        if console is not None:
            for (mechanism, _), why in disturbed.items():
                console.print(f"{mechanism} again: {why}", highlight=False, markup=False, soft_wrap=True)
        again: list[sweep.Point] = [
            {**point, "attempt": attempt}
            for point in points
            if (point["mechanism"], point["network_seed"]) in disturbed
        ]
        code = _code_of(comparison.mechanisms)
        frame = sweep.run(live.measured, again, [0], folder / f"again-{attempt}", console=console, code=code)
        (folder / f"again-{attempt}" / "journal.jsonl").unlink()
        kept |= {(row["mechanism"], row["failure"], row["network_seed"]): row for row in _rows(frame)}
        comparison = Comparison(comparison.scenario, comparison.mechanisms, comparison.seeds, list(kept.values()))
    return comparison


def _code_of(mechanisms: Sequence[Mechanism]) -> Callable[[sweep.Point], str]:
    """Return a function that gives the hash of the code of a point's mechanism, for :func:`holdfast.sweep.run`."""
    codes = {mechanism.name: mechanism.code() for mechanism in mechanisms}
    return lambda point: codes[str(point["mechanism"])]


def _rows(frame: pl.DataFrame) -> list[Row]:
    return cast(list[Row], frame.to_dicts())


def summary(comparison: Comparison) -> dict[str, object]:
    """Return the content of ``summary.json``: the input, the mechanisms in the order of their ranks, the advice and the notes."""
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
        "doubts": comparison.doubts,
        "advice": advice.advice(comparison),
        "notes": advice.notes(comparison),
        "mechanisms": [comparison.summary_of(each) for each in comparison.summaries],
    }
