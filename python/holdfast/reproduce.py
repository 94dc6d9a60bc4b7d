"""``holdfast reproduce``: runs parts of an experiment and puts the paper's numbers beside ours.

For each part ``<out>/<experiment>/`` gets ``<part>.csv``, its pictures as PNG and SVG, and ``<part>.json`` with seeds and counts.
The columns of the CSV are the keys as printed, ``quantity``, and ``ours`` with its interval ``low`` to ``high``. Where the paper
prints numbers there are also ``paper``, the interval of the difference, ``difference_low`` to ``difference_high``, and the
``verdict`` on it. The runs themselves are in ``sweeps/`` there; an interrupted command goes on from them. Which numbers, and how
they are found, is the experiment's.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table

from holdfast import experiments, plots, whole_files
from holdfast.errors import ExperimentError
from holdfast.experiments import (
    AGREES,
    BY_DEFINITION,
    DIFFERS,
    OPEN,
    Experiment,
    Finding,
    Part,
    PublishedTable,
    Setting,
)
from holdfast.terminal import Grid

LARGEST_SEED = 2**64 - 1
NUMBERS = ("quantity", "ours", "low", "high")
JUDGED = ("paper", "difference_low", "difference_high", "verdict")


def run(
    experiment: Experiment,
    parts: Sequence[str],
    out: Path,
    *,
    seeds: int | None = None,
    first_seed: int = 1,
    jobs: int = 1,
    ray: str | None = None,
    console: Console | None = None,
    progress: Console | None = None,
    quick: bool = False,
) -> dict[str, pl.DataFrame]:
    """Run ``parts`` of an experiment, or all if empty; return the comparison with the paper of each part that has numbers.

    ``seeds``: how many, from ``first_seed`` on; the experiment's number if None. ``quick``: run the experiment's quick version;
    raises :class:`ExperimentError` if it has none. ``console`` gets the tables, ``progress`` the progress bars. ``ray``: address of
    a Ray cluster on which the seeds run, if any.
    """
    chosen = [experiment.part(name) for name in dict.fromkeys(parts)] or list(experiment.parts)
    if not chosen:
        raise ExperimentError(f"{experiment.name} has no parts that can be run yet")
    if quick and experiment.quick_seeds is None:
        raise ExperimentError(f"{experiment.name} has no quick version; give parts and --seeds")
    usual = experiment.quick_seeds if quick else experiment.seeds
    count = usual if seeds is None else seeds
    assert count is not None
    if count < 1:
        raise ExperimentError(f"seeds is {count}; it must be at least 1")
    if not 0 <= first_seed <= LARGEST_SEED - count + 1:
        raise ExperimentError(
            f"first_seed is {first_seed}; {count} seeds from there on must lie between 0 and 2^64 - 1"
        )
    setting = Setting(
        tuple(range(first_seed, first_seed + count)),
        out / experiment.name,
        jobs=jobs,
        ray=ray,
        console=progress,
        quick=quick,
    )
    setting.out.mkdir(parents=True, exist_ok=True)
    comparisons = {}
    for part in chosen:
        if progress is not None:
            progress.print(f"{part.name}: {part.title}", highlight=False)
        comparison = write(setting, part, part.find(setting))
        if comparison is not None:
            comparisons[part.name] = comparison
            if console is not None:
                console.print(headline(part, comparison, setting.seeds), markup=False, highlight=False)
                console.print(table(part, comparison))
    return comparisons


def write(setting: Setting, part: Part, finding: Finding) -> pl.DataFrame | None:
    """Write a part's files to the setting's folder; return the comparison with the paper, or None if the part has no numbers."""
    comparison = compare(part, finding, len(setting.seeds))
    _write(setting, part, finding, comparison)
    return comparison


def compare(part: Part, finding: Finding, seeds: int) -> pl.DataFrame | None:
    """Return the paper's numbers beside ours (over ``seeds`` seeds) in the paper's order, then numbers that only we have.

    ``verdict`` and the interval that it is on are those of the column's :class:`~holdfast.experiments.Criterion`; null where one of
    the two numbers is missing. A part of which the paper prints no numbers has ours alone. Returns None if a part has no numbers;
    raises :class:`ExperimentError` if the paper has some, or if the columns of ours are not as required.
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
    if part.published is None:
        return finding.numbers.select(*keys, *NUMBERS)
    rows: list[dict[str, Any]] = []
    for where, quantity, paper in part.published.entries():
        found = ours.pop((*where.values(), quantity), None)
        judged = _judged(part.published, where, quantity, paper, found, seeds) if found else {}
        rows.append({**where, **_row(quantity, found), "paper": paper, **judged})
    rows += [{**dict(zip(keys, entry, strict=False)), **_row(entry[-1], found)} for entry, found in ours.items()]
    types = dict.fromkeys(("paper", "ours", "low", "high", "difference_low", "difference_high"), pl.Float64)
    frame = pl.DataFrame(
        [dict.fromkeys(JUDGED) | row for row in rows],
        infer_schema_length=None,
        schema_overrides={**types, "verdict": pl.String},
    )
    return frame.select(*keys, "quantity", "paper", "ours", "low", "high", *JUDGED[1:])


def _row(quantity: str, found: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"quantity": quantity, **{name: found[name] if found else None for name in NUMBERS[1:]}}


def _judged(
    published: PublishedTable,
    where: Mapping[str, Any],
    quantity: str,
    paper: float,
    found: Mapping[str, Any],
    seeds: int,
) -> dict[str, Any]:
    criterion = published.criteria.get(quantity)
    if criterion is None:
        raise ExperimentError(f"{published.place} does not say when its {quantity} and ours agree")
    if criterion.defined(where):
        return {"verdict": BY_DEFINITION}
    if found["low"] is None or found["high"] is None:
        return {}
    low, high = criterion.difference(paper, found["ours"], found["low"], found["high"], seeds)
    verdict = criterion.verdict((low, high), published.rounding + 1e-12)
    return {"difference_low": low, "difference_high": high, "verdict": verdict}


def counts(comparison: pl.DataFrame) -> dict[str, int]:
    """Return how many of the paper's numbers have each verdict (agrees, differs, open, by definition)."""
    verdicts = comparison["verdict"].to_list() if "paper" in comparison.columns else []
    return {verdict: verdicts.count(verdict) for verdict in (AGREES, DIFFERS, OPEN, BY_DEFINITION)}


def in_words(comparison: pl.DataFrame) -> str:
    """Describe in a clause how many of the paper's numbers agree with ours, and how many follow from their definition.

    It is empty if there are neither.
    """
    found = counts(comparison)
    judged = found[AGREES] + found[DIFFERS] + found[OPEN]
    defined = f"{found[BY_DEFINITION]} follow from their definition and are not counted"
    if judged == 0:
        return f"of the paper's numbers {defined}" if found[BY_DEFINITION] else ""
    words = f"of {judged} of the paper's numbers {found[AGREES]} agree within the margin, {found[DIFFERS]} differ, "
    words += f"{found[OPEN]} are open"
    return words + (f"; {defined}" if found[BY_DEFINITION] else "")


def headline(part: Part, comparison: pl.DataFrame, seeds: Sequence[int]) -> str:
    """Return a part's title and seeds, and how many of the paper's numbers agree with ours, as two lines of text."""
    words = in_words(comparison)
    which = f" ({seeds[0]} to {seeds[-1]})" if seeds[0] != 1 else ""
    return f"{part.name} ({part.place}): {part.title}\n{len(seeds)} seeds{which}" + (f"; {words}" if words else "")


COLOURED = {AGREES: f"[green]{AGREES}[/]", DIFFERS: f"[red]{DIFFERS}[/]"}


def table(part: Part, comparison: pl.DataFrame) -> Grid:
    """Return a comparison as a table for a terminal; our numbers have one decimal more than the paper's."""
    keys = [c for c in comparison.columns if c not in (*NUMBERS, *(JUDGED if part.published else ()))]
    result = Grid(names=len(keys) + 1)
    for key in (*keys, ""):
        result.add_column(key.replace("_", " "), overflow="fold")
    beside = part.published is not None
    result.add_numbers(*(("paper", "ours", "interval") if beside else ("ours", "interval")))
    if beside:
        result.add_column("", overflow="fold")
    decimals = part.published.decimals if part.published else 2
    for row in comparison.iter_rows(named=True):
        low, high = (_number(row[name], decimals + 1) for name in ("low", "high"))
        ours = (_number(row["ours"], decimals + 1), f"{low} .. {high}" if row["low"] is not None else "")
        verdict = COLOURED.get(row["verdict"], row["verdict"] or "") if beside else ""
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
    if setting.seeds[0] != 1:
        about["first_seed"] = setting.seeds[0]
    if comparison is not None:
        about |= {"numbers": len(comparison), "verdicts": counts(comparison)}
    whole_files.write_text(setting.out / f"{part.name}.json", json.dumps(about, indent=2) + "\n")


def _write_csv(frame: pl.DataFrame, path: Path) -> None:
    """Write a table as CSV with six decimals, so that the file is the same on every machine."""
    whole_files.write(path, frame.with_columns(pl.col(pl.Float64).round(6)).write_csv)


def _file(part: Part, name: str) -> str:
    return f"{part.name}_{name}" if name else part.name


def listing(found: Iterable[Experiment]) -> Table:
    """Return a table for a terminal: every part of every experiment, with its place in the paper and number of runs."""
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
    """Return all experiments, in the order of their names."""
    return [experiments.find(name) for name in experiments.names()]
