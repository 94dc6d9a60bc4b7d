"""``holdfast reproduce``: runs parts of an experiment and puts the paper's numbers beside ours.

For each part ``<out>/<experiment>/`` gets ``<part>.csv`` (keys as printed, ``quantity``, ``paper``, ``ours``, ``low``, ``high``,
``inside``), its pictures as PNG and SVG, and ``<part>.json`` with seeds and counts. The runs themselves are in ``sweeps/`` there;
an interrupted command goes on from them. Which numbers, and how they are found, is the experiment's.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table

from holdfast import experiments, plots
from holdfast.errors import ExperimentError
from holdfast.experiments import Experiment, Finding, Part, PublishedTable, Setting

NUMBERS = ("quantity", "ours", "low", "high")


def run(
    experiment: Experiment,
    parts: Sequence[str],
    out: Path,
    *,
    seeds: int | None = None,
    jobs: int = 1,
    ray: str | None = None,
    console: Console | None = None,
    progress: Console | None = None,
) -> dict[str, pl.DataFrame]:
    """Runs the named parts, or all; returns the comparison of each that has numbers. ``seeds``: how many, from 1 on.

    ``console`` gets the tables, ``progress`` the progress bars.
    """
    chosen = [experiment.part(name) for name in dict.fromkeys(parts)] or list(experiment.parts)
    if not chosen:
        raise ExperimentError(f"{experiment.name} has no parts that can be run yet")
    count = experiment.seeds if seeds is None else seeds
    if count < 1:
        raise ExperimentError(f"seeds is {count}; it must be at least 1")
    setting = Setting(tuple(range(1, count + 1)), out / experiment.name, jobs=jobs, ray=ray, console=progress)
    setting.out.mkdir(parents=True, exist_ok=True)
    comparisons = {}
    for part in chosen:
        if progress is not None:
            progress.print(f"{part.name}: {part.title}", highlight=False)
        finding = part.find(setting)
        comparison = compare(part, finding)
        _write(setting, part, finding, comparison)
        if comparison is not None:
            comparisons[part.name] = comparison
            if console is not None:
                console.print(headline(part, comparison, count), markup=False, highlight=False)
                console.print(table(part, comparison))
    return comparisons


def compare(part: Part, finding: Finding) -> pl.DataFrame | None:
    """The paper's numbers beside ours, in the paper's order; what only we have comes last.

    ``inside``: whether the paper's number, within its rounding, lies in our interval; null where one of the two is missing.
    """
    if finding.numbers is None:
        if part.published is not None:
            raise ExperimentError(f"{part.name} found no numbers to put beside those of {part.published.place}")
        return None
    keys = [column for column in finding.numbers.columns if column not in NUMBERS]
    if missing := [column for column in NUMBERS if column not in finding.numbers.columns]:
        raise ExperimentError(f"{part.name} found numbers without {', '.join(missing)}")
    if part.published is not None and keys != list(part.published.keys):
        raise ExperimentError(
            f"{part.name} found numbers by {keys}; {part.published.place} has them by {part.published.keys}"
        )
    ours: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in finding.numbers.iter_rows(named=True):
        entry = (*(row[key] for key in keys), row["quantity"])
        if entry in ours:
            raise ExperimentError(f"{part.name} found two numbers for {entry}")
        ours[entry] = row
    rows: list[dict[str, Any]] = []
    for where, quantity, paper in part.published.entries() if part.published else ():
        found = ours.pop((*where.values(), quantity), None)
        rows.append({**where, **_beside(quantity, paper, found, part.published)})
    rows += [
        {**dict(zip(keys, entry, strict=False)), **_beside(found["quantity"], None, found, None)}
        for entry, found in ours.items()
    ]
    types = {"paper": pl.Float64, "ours": pl.Float64, "low": pl.Float64, "high": pl.Float64, "inside": pl.Boolean}
    return pl.DataFrame(rows, infer_schema_length=None, schema_overrides=types)


def _beside(
    quantity: str, paper: float | None, found: dict[str, Any] | None, published: PublishedTable | None
) -> dict[str, Any]:
    ours, low, high = (found[name] for name in ("ours", "low", "high")) if found else (None, None, None)
    inside = None
    if not (paper is None or published is None or low is None or high is None) and math.isfinite(high - low):
        rounding = 0.5 * 10.0**-published.decimals + 1e-12
        inside = low - rounding <= paper <= high + rounding
    return {"quantity": quantity, "paper": paper, "ours": ours, "low": low, "high": high, "inside": inside}


def headline(part: Part, comparison: pl.DataFrame, seeds: int) -> str:
    """What a part is, and how many of the paper's numbers it confirms."""
    judged = comparison["inside"].drop_nulls()
    verdict = (
        f"; {judged.sum()} of {len(judged)} of the paper's numbers lie in our 95 % intervals" if len(judged) else ""
    )
    return f"{part.name} ({part.place}): {part.title}\n{seeds} seeds{verdict}"


def table(part: Part, comparison: pl.DataFrame) -> Table:
    """A comparison for a terminal; ours with a decimal more than the paper's."""
    result = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    keys = [c for c in comparison.columns if c not in (*NUMBERS, "paper", "inside")]
    for key in keys:
        result.add_column(key.replace("_", " "), no_wrap=True)
    result.add_column("", no_wrap=True)
    beside = part.published is not None
    for heading in ("paper", "ours", "95 % interval") if beside else ("ours", "95 % interval"):
        result.add_column(heading, justify="right", no_wrap=True)
    if beside:
        result.add_column("")
    decimals = part.published.decimals if part.published else 2
    for row in comparison.iter_rows(named=True):
        low, high = (_number(row[name], decimals + 1) for name in ("low", "high"))
        ours = (_number(row["ours"], decimals + 1), f"{low} .. {high}" if row["low"] is not None else "")
        verdict = {True: "[green]inside[/]", False: "[red]outside[/]", None: ""}[row["inside"]]
        result.add_row(
            *(f"{row[key]:g}" if isinstance(row[key], float) else str(row[key]) for key in keys),
            row["quantity"].replace("_", " "),
            *((_number(row["paper"], decimals), *ours, verdict) if beside else ours),
        )
    return result


def _number(value: float | None, decimals: int) -> str:
    if value is None:
        return ""
    return f"{value:.{max(0, decimals)}f}" if math.isfinite(value) else "unknown"


def _write(setting: Setting, part: Part, finding: Finding, comparison: pl.DataFrame | None) -> None:
    if comparison is not None:
        _write_csv(comparison, setting.out / f"{part.name}.csv")
    for name, frame in finding.frames.items():
        _write_csv(frame, setting.out / f"{_file(part, name)}.csv")
    for name, figure in finding.figures.items():
        file = _file(part, name)
        plots.save(figure, setting.out / f"{file}.png", setting.out / f"{file}.svg")
    about: dict[str, Any] = {"part": part.name, "place": part.place, "title": part.title, "seeds": len(setting.seeds)}
    if comparison is not None:
        judged = comparison["inside"].drop_nulls()
        about |= {"numbers": len(comparison), "compared": len(judged), "inside": int(judged.sum())}
    (setting.out / f"{part.name}.json").write_text(json.dumps(about, indent=2) + "\n")


def _write_csv(frame: pl.DataFrame, path: Path) -> None:
    """Six decimals are finer than anything that is claimed, and the same on every machine."""
    frame.with_columns(pl.col(pl.Float64).round(6)).write_csv(path)


def _file(part: Part, name: str) -> str:
    return f"{part.name}_{name}" if name else part.name


def listing(found: Iterable[Experiment]) -> Table:
    """Everything that can be reproduced, and how much that is."""
    result = Table(title="holdfast reproduce EXPERIMENT [PART...]", title_justify="left", box=None, pad_edge=False)
    for heading in ("experiment", "part", "in the paper", "what it shows"):
        result.add_column(heading, overflow="fold")
    result.add_column("runs", justify="right", no_wrap=True)
    for experiment in found:
        runs = sum(part.points for part in experiment.parts) * experiment.seeds
        about = f"[bold]{experiment.title}[/]; {experiment.seeds} seeds"
        result.add_row(f"[bold]{experiment.name}[/]", "", "", about, str(runs) if experiment.parts else "none yet")
        for part in experiment.parts:
            result.add_row("", part.name, part.place, part.title, str(part.points * experiment.seeds))
    return result


def everything() -> list[Experiment]:
    """All experiments."""
    return [experiments.find(name) for name in experiments.names()]
