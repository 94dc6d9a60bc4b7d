"""The whole command: run, summarise, write. Interrupted, it goes on where it stopped when it is called again.

In the folder: ``cases.parquet`` (a row per mechanism, failure and seed), ``subscribers.parquet`` (a row per subscriber of each
run), ``summary.json``, ``report.html``, and ``runs/``, where finished runs are kept. The same scenario and seeds give the same
bytes in all files but those in ``runs/``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from holdfast import sweep, whole_files
from holdfast.compare.bng import report, runs, world
from holdfast.compare.bng.comparison import Comparison
from holdfast.compare.bng.mechanisms import Mechanism
from holdfast.compare.bng.scenario import NAME, NO_FAILURE, Scenario


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

    ``console`` shows the progress.
    """
    path = scenario.given.write(out / "runs").resolve()
    wanted = [
        (mechanism, seed, failure)
        for mechanism in mechanisms
        for seed in seeds
        for failure in (NO_FAILURE, *scenario.failures)
    ]
    keys = [(mechanism.name, seed, world.told_apart(mechanism, failure)) for mechanism, seed, failure in wanted]
    points: list[sweep.Point] = [
        {"scenario": str(path), "mechanism": name, "network_seed": seed, "failure": failure}
        for name, seed, failure in dict.fromkeys(keys)
    ]
    frame = sweep.run(runs.measured, points, [0], out / "runs", jobs=jobs, console=console)
    found = {(row["mechanism"], row["network_seed"], row["failure"]): row for row in frame.to_dicts()}
    rows = [found[key] | {"failure": failure} for key, (_, _, failure) in zip(keys, wanted, strict=True)]
    comparison = Comparison(scenario, mechanisms, seeds, rows)
    whole_files.write(out / "cases.parquet", comparison.case_frame().write_parquet)
    whole_files.write(out / "subscribers.parquet", comparison.subscriber_frame().write_parquet)
    whole_files.write_text(out / "summary.json", json.dumps(summary(comparison), indent=2) + "\n")
    report.write(comparison, out / "report.html")
    return comparison


def summary(comparison: Comparison) -> dict[str, object]:
    """Return the content of ``summary.json``: the input, the mechanisms in the order of their ranks, the advice and the notes."""
    scenario = comparison.scenario
    times = scenario.times
    return {
        "scenario": NAME,
        "failures": list(scenario.failures),
        "times": {**times.model_dump(), "failure_s": times.failure_s, "repair_s": times.repair_s},
        "subscribers": scenario.subscribers.model_dump(),
        "seeds": comparison.seeds,
        "advice": comparison.advice(),
        "notes": comparison.notes(),
        "mechanisms": [asdict(each) for each in comparison.summaries],
    }
