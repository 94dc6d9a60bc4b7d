"""Experiments reproduce figures and tables of papers, with the paper's own numbers beside ours.

An experiment is a package here, ``<paper>``, with an ``EXPERIMENT``, its published numbers as data, one module per figure or table,
and a README with the results. A part of it is a function from a :class:`Setting` (seeds, where, how) to a :class:`Finding`
(numbers with intervals, pictures); :mod:`holdfast.reproduce` runs it, compares and writes. The same function with few seeds is a
test. Nothing here runs a network.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure
from rich.console import Console

from holdfast import statistics, sweep
from holdfast.errors import ExperimentError


class Estimate(Enum):
    """The kind of a printed number, and so the distance that chance may have moved it."""

    MEAN = "mean"
    """Over the paper's seeds."""
    PROPORTION = "proportion"
    """Of the paper's seeds, in percent."""
    EXACT = "exact"
    """A formula, a count that nothing random changes, or a number without a word of how it was found."""


AGREES, DIFFERS, OPEN, BY_DEFINITION = "agrees", "differs", "open", "by definition"
"""The verdicts on a printed number; see :class:`Criterion`."""


@dataclass(frozen=True)
class Criterion:
    """When a printed number and ours agree.

    The verdict is on the 95 % interval of the difference, ours less the paper's. The interval covers the chance of both sides;
    ``estimate`` and the paper's ``seeds`` give the paper's. The verdict is

    - ``agrees`` if the whole interval lies within ``margin`` (in the column's unit) to both sides of 0,
    - else ``differs`` if the interval, widened by the paper's rounding, does not contain 0,
    - else ``open``: the interval decides neither.

    So a wide interval never agrees, and of numbers that are the same at most one in twenty differs by chance. If the paper leaves
    open what decides (a baseline, a reading), an experiment may give the range over it as the interval, and says so.

    ``reason``: why that margin, in a sentence. A margin is at most half of the effects that the paper's conclusions rest on, so two
    numbers that agree keep the order that matters.
    ``by_definition``: in rows with these keys (all rows, if there are none) the number follows from its definition or from the
    configuration, so it is no evidence and is not judged; None if there are no such rows.
    """

    margin: float
    reason: str
    estimate: Estimate = Estimate.EXACT
    seeds: int = 0
    by_definition: Mapping[str, Any] | None = None

    def defined(self, row: Mapping[str, Any]) -> bool:
        """Return True if the number in ``row`` follows from its definition, as a baseline's change of 0 % does."""
        keys = self.by_definition
        return keys is not None and all(row[name] == value for name, value in keys.items())

    def difference(self, paper: float, ours: float, low: float, high: float, seeds: int) -> tuple[float, float]:
        """Return the 95 % interval of our number minus the paper's number ``paper``, in the unit of both.

        ``low`` and ``high`` are the ends of the interval of our number, which comes from ``seeds`` seeds. The result is unbounded
        if ``low`` or ``high`` is not finite.
        """
        if not math.isfinite(high - low):
            return -math.inf, math.inf
        if self.estimate is Estimate.MEAN:
            return statistics.difference_of_means(low, high, seeds, paper, self.seeds)
        if self.estimate is Estimate.PROPORTION:
            percent = (ours / 100, low / 100, high / 100, paper / 100)
            below, above = statistics.difference_of_proportions(*percent, self.seeds)
            return 100 * below, 100 * above
        return low - paper, high - paper

    def verdict(self, difference: tuple[float, float], rounding: float) -> str:
        """Return AGREES, DIFFERS or OPEN for ``difference``, an interval of our number minus the paper's.

        AGREES: the whole interval is within the margin. DIFFERS: otherwise, and more than ``rounding``, half a unit of the paper's
        last digit, from 0. OPEN: neither.
        """
        low, high = difference
        if -self.margin <= low and high <= self.margin:
            return AGREES
        return DIFFERS if low > rounding or high < -rounding else OPEN


@dataclass(frozen=True)
class PublishedTable:
    """Numbers as a paper prints them: ``keys`` name a row, ``columns`` are what is printed in it.

    ``decimals``: the number that the paper gives, so half a unit of the last one is its rounding. ``criteria``: by column, when the
    number and ours agree; each column of a part that is run has one.
    """

    name: str
    place: str
    title: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    decimals: int = 2
    criteria: Mapping[str, Criterion] = field(default_factory=dict)

    @property
    def rounding(self) -> float:
        """Half a unit of the last decimal that the paper prints."""
        return 0.5 * 10.0**-self.decimals

    def frame(self) -> pl.DataFrame:
        """Return the table as printed: one row per printed row, with its keys and columns."""
        names = (*self.keys, *self.columns)
        return pl.DataFrame([dict(zip(names, row, strict=True)) for row in self.rows], infer_schema_length=None)

    def entries(self) -> Iterator[tuple[dict[str, Any], str, float]]:
        """Yield every printed number as (keys of its row, name of its column, number); empty cells are left out."""
        for row in self.frame().iter_rows(named=True):
            for column in self.columns:
                if row[column] is not None:
                    yield {key: row[key] for key in self.keys}, column, row[column]

    def value(self, column: str, **keys: Any) -> Any:
        """Return the entry in ``column`` of the printed row with these keys. Raise :class:`ExperimentError` if no row has them."""
        for row in self.frame().iter_rows(named=True):
            if all(row[key] == wanted for key, wanted in keys.items()):
                return row[column]
        raise ExperimentError(f"{self.place} has no row {keys}")


@dataclass(frozen=True)
class Setting:
    """With which seeds an experiment runs, where its results go, and what runs it."""

    seeds: tuple[int, ...]
    out: Path
    jobs: int = 1
    ray: str | None = None
    console: Console | None = None
    quick: bool = False
    """A few small points of each part, to see that all of it works: not for conclusions."""

    def sweep(self, name: str, function: str, points: Sequence[sweep.Point]) -> pl.DataFrame:
        """Run ``function`` for every point with every seed, and return a row per run.

        The runs are kept in ``out/sweeps/<name>``; parts that need the same runs share them by using the same name.
        """
        where = self.out / "sweeps" / name
        return sweep.run(function, points, self.seeds, where, jobs=self.jobs, ray=self.ray, console=self.console)

    def one_run(self) -> Setting:
        """Return a copy of this setting with its first seed alone, for results that are the same with every seed."""
        return replace(self, seeds=self.seeds[:1])


@dataclass(frozen=True)
class Finding:
    """The results of a part.

    ``numbers``: one row per number, with the published table's keys, ``quantity`` (its column), ``ours``, and the interval ``low``
    to ``high``. ``figures`` by name, the empty one for the part's own; ``frames``: the plotted data, where that is not ``numbers``.
    """

    numbers: pl.DataFrame | None = None
    figures: Mapping[str, Figure] = field(default_factory=dict)
    frames: Mapping[str, pl.DataFrame] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """A figure or table: ``name`` as in ``table3`` or ``fig14``, where it is in the paper, and what finds the same here.

    ``points``: the number of points of its sweep, so that people know what they start. ``published`` is None where the paper prints
    no numbers, as for most figures.
    """

    name: str
    place: str
    title: str
    find: Callable[[Setting], Finding]
    points: int
    published: PublishedTable | None = None


@dataclass(frozen=True)
class Experiment:
    """A paper: its title and reference, its parts, and with how many seeds it was done."""

    name: str
    title: str
    reference: str
    seeds: int
    parts: tuple[Part, ...] = ()
    quick_seeds: int | None = None
    """The number of seeds of its quick version; None if it has none."""

    def part(self, name: str) -> Part:
        """Return the part with this name. Raise :class:`ExperimentError` if the experiment has none."""
        for part in self.parts:
            if part.name == name:
                return part
        known = ", ".join(part.name for part in self.parts) or "none yet"
        raise ExperimentError(f"{self.name} has no part {name!r} (known: {known})")


def names() -> list[str]:
    """Return the names of all experiments, which are the names of their packages, sorted."""
    packages = (module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)
    return sorted(name for name in packages if name != "tests")


def find(name: str) -> Experiment:
    """Import the package of the experiment ``name`` and return the experiment. Raise :class:`ExperimentError` if there is none."""
    if name not in names():
        raise ExperimentError(f"there is no experiment {name!r} (known: {', '.join(names())})")
    experiment: Experiment = importlib.import_module(f"{__name__}.{name}").EXPERIMENT
    return experiment
