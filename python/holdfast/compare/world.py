"""A world of comparisons: what is simulated, what competes in it, and in which words its results are told.

Networks (:mod:`holdfast.compare.results`) and broadband gateways (:mod:`holdfast.compare.gateways`) are two. Another one is a
:class:`World` of its mechanisms and the function that makes a run; whatever else it does not say is as here. Runs, their
processes and files, the ranking, its doubts, the tables and the report are the same for all.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Generic, TypeVar

import polars as pl
from rich.console import Console

from holdfast import sweep, whole_files
from holdfast.compare import competitor, folders, page
from holdfast.compare.competitor import Competitor
from holdfast.compare.formats import count, listed, number, terminal_table
from holdfast.compare.inputs import NO_FAILURE, Scenario
from holdfast.compare.page import Column
from holdfast.compare.ranking import Ranking
from holdfast.compare.requirements import Measure, Requirement, Verdict, check, judge, sentences
from holdfast.errors import ScenarioError
from holdfast.terminal import Grid
from holdfast.version import version

G = TypeVar("G", bound=Scenario)
M = TypeVar("M", bound=Competitor)
R = TypeVar("R", bound=Ranking)

Measured = Callable[[Mapping[str, Any], int], Mapping[str, Any]]

ATTEMPTS = 3
"""A live mechanism's runs are made so many times in all if the undisturbed one was disturbed."""


# ---- The words of a world that has none of its own ----


def title(comparison: Ranking) -> str:
    """Return a line for the terminal: what fails and when, and the number of seeds."""
    times, failures = comparison.scenario.times, comparison.scenario.failures
    what = f"each of {len(failures)} failures" if len(failures) > 1 else failures[0]
    seeds = f", {len(comparison.seeds)} seeds" if len(comparison.seeds) > 1 else ""
    return f"{what}, from {times.failure_s:g} s to {times.repair_s:g} s of {times.end_s:g} s{seeds}"


def columns(comparison: Ranking) -> list[Column]:
    """Return the usual columns of a ranking: the mean loss to failures, that to the worst failure, and that without a failure."""
    return [
        ("lost", "mean", lambda s: count(s.lost_mean), comparison.clearly(lambda s: s.lost_mean)),
        ("worst failure", "lost", lambda s: f"{s.worst_failure}\n{count(s.lost_worst)}", None),
        ("lost without", "a failure", lambda s: number(s.lost_undisturbed), None),
    ]


def advice(comparison: Ranking, *, more: str = "") -> str:
    """Return one sentence that says which mechanisms lose least, and how the others compare, or why there is no ranking.

    ``more``: a clause at its end.
    """
    if comparison.unranked is not None:
        return f"{comparison.unranked}."
    first, *others = comparison.summaries
    if not others:
        return f"Only {first.mechanism} was run: there is nothing to compare it with."
    if all(each.rank == first.rank for each in others):
        return "As far as these failures go, no mechanism loses fewer packets than another."
    leaders = [each.mechanism for each in comparison.summaries if each.rank == first.rank]
    rest = [f"{each.mechanism} {count(each.lost_mean)}" for each in comparison.summaries if each.rank != first.rank]
    return (
        f"{listed(leaders)} {'loses' if len(leaders) == 1 else 'lose'} fewest packets: {count(first.lost_mean)} on average"
        f" for a failure ({', '.join(rest)}){more}."
    )


def notes(comparison: Ranking) -> list[str]:
    """Return the doubts about the results as sentences, without the one that the advice already contains."""
    return [f"Not reliable: {doubt}." for doubt in comparison.doubts if doubt not in (comparison.unranked or "")]


def rule(comparison: Ranking) -> str:
    """Return text that explains the order of the mechanisms and the bold numbers."""
    noise = f"{100 * comparison.noise.share:g} %"
    bold = f"Bold: within {noise} of the best of the column, unless all are."
    if comparison.unranked is not None:
        return f"In no order. {bold}"
    return (
        f"By packets lost to a failure, mean over the failures; mechanisms differ if it is by more than {noise} and, with several"
        f" seeds, with 95 % confidence, seed by seed. Those that do not differ have the same rank. {bold}"
    )


def input_of(comparison: Ranking) -> dict[str, object]:
    """Return the part of ``summary.json`` that describes the input: the failures and their times."""
    times = comparison.scenario.times
    return {
        "failures": list(comparison.scenario.failures),
        "times": {**times.model_dump(), "failure_s": times.failure_s, "repair_s": times.repair_s},
    }


@dataclass(frozen=True, kw_only=True)
class World(Generic[G, M, R]):
    """A world. Its scenarios, its mechanisms and its rankings are of the types ``G``, ``M`` and ``R``.

    - ``command``: what a user types for it after ``holdfast compare``. ``about``: a scenario in a few words.
    - ``known``: all mechanisms by name, the baseline first. ``chosen``: the baseline and the mechanisms with some names (None:
      all), where that depends on the scenario. ``check`` raises :class:`ScenarioError` if the runs cannot be made.
    - ``measures``: numbers that a requirement can limit, by the name that a user writes.
    - ``measured`` makes a run in any process, so a module has it, one that does not import what only draws or prints: results are
      made again when that code changes. It takes a point with ``scenario`` (the path of a file that the scenario has written),
      ``mechanism``, ``network_seed`` and ``failure``, of a mechanism from outside ``origin``, and a seed to be ignored. ``live``:
      the same in real time.
    - ``same_as``: the failure whose run is also that of another one, as a mechanism does not tell the two apart.
    - ``compared``: what follows from the rows of all runs.
    - ``frames``: tables that are written besides that of the cases, by the name of the file. ``input_of``: what ``summary.json``
      says of the scenario.
    - ``title``, ``tables``, ``legend``: the lines above a terminal's tables, the tables, and lines below.
    - ``heading``, ``subtitle``, ``columns``: of the report, and of the ranking in it. ``template``, ``parts``: of its page, and
      what that shows besides the parts that all have. ``definitions``: terms, and what they are. ``how``: what was simulated.
    - ``advice``, ``notes``, ``rule``: a sentence, the reservations with which the numbers must be read, and what the order means.
      ``why``: those of the notes that a report shows below its numbers.
    """

    command: str
    known: Callable[[], Mapping[str, M]]
    measured: Measured
    compared: Callable[[G, Sequence[M], Sequence[int], Sequence[Any]], R]
    measures: Mapping[str, Measure] = field(default_factory=dict)
    live: Measured | None = None
    about: Callable[[G], str] = lambda scenario: f"{len(scenario.failures)} failures"
    chosen: Callable[[G, Sequence[str] | None], list[M]] | None = None
    check: Callable[[G, Sequence[M], Sequence[int]], None] = lambda scenario, mechanisms, seeds: None
    same_as: Callable[[M, str], str] = lambda mechanism, failure: failure
    frames: Callable[[R], dict[str, pl.DataFrame]] = lambda comparison: {}
    input_of: Callable[[R], dict[str, object]] = input_of
    title: Callable[[R], str] = title
    tables: Callable[[R], list[Grid]] | None = None
    legend: Callable[[R], list[str]] = lambda comparison: []
    heading: Callable[[R], str] = title
    subtitle: Callable[[R], str] = lambda comparison: ""
    columns: Callable[[R], list[Column]] = columns
    template: str = "page.html"
    parts: Callable[[R], dict[str, object]] = lambda comparison: {}
    definitions: Sequence[tuple[str, str]] = ()
    how: str = "The same scenario and seeds give the same numbers."
    advice: Callable[[R], str] = advice
    notes: Callable[[R], list[str]] = notes
    rule: Callable[[R], str] = rule
    why: Callable[[R], list[str]] = lambda comparison: []

    def choose(self, scenario: G, names: Sequence[str] | None) -> list[M]:
        """Return the baseline and the mechanisms with these names, or all if ``names`` is None.

        Raise :class:`ScenarioError` for unknown and repeated names.
        """
        if self.chosen is not None:
            return self.chosen(scenario, names)
        known = self.known()
        return competitor.find(known, list(known) if names is None else names, next(iter(known)))

    def run(
        self,
        scenario: G,
        mechanisms: Sequence[M],
        seeds: Sequence[int],
        out: Path,
        *,
        jobs: int = 1,
        console: Console | None = None,
        csv: bool = False,
        requirements: Sequence[Requirement] = (),
        told: Callable[[sweep.Point, Mapping[str, Any]], None] | None = None,
        command: str = "",
        runs: Path | None = None,
    ) -> R:
        """Run every mechanism under every failure with every seed, write the results to ``out``, and return them.

        Interrupted, it goes on where it stopped when it is called again. ``console`` shows the progress. A live scenario makes
        one run at a time, whatever ``jobs`` says; when all are done, another call measures again. ``csv``: the tables are also
        written as CSV. ``requirements``: what is judged in the summary and the report (:mod:`holdfast.compare.requirements`).
        ``told``: called with the point and row of each run when it has finished. ``command``: what a user typed, for the report.
        ``runs``: where finished runs are kept, by default ``out/runs``. Raise :class:`ScenarioError` if a mechanism
        does not suit the scenario or cannot be found by the processes that run it.
        """
        self.check(scenario, mechanisms, seeds)
        check(requirements, [each.name for each in mechanisms])
        for mechanism in mechanisms:
            if mechanism.origin is None and mechanism.name not in self.known():
                raise ScenarioError(
                    f"mechanism {mechanism.name!r} is not known to the processes that run it: give MODULE:NAME or FILE.py:NAME"
                )
        folder = runs or out / "runs"
        path = str(scenario.write(folder).resolve())
        origins = {each.name: {"origin": each.origin} for each in mechanisms if each.origin is not None}
        codes = {mechanism.name: mechanism.code() for mechanism in mechanisms}
        keys = {
            (mechanism.name, seed, failure): (mechanism.name, seed, self.same_as(mechanism, failure))
            for mechanism, seed, failure in product(mechanisms, seeds, (NO_FAILURE, *scenario.failures))
        }
        points: list[sweep.Point] = [
            {"scenario": path, "mechanism": name, "network_seed": seed, "failure": failure, **origins.get(name, {})}
            for name, seed, failure in dict.fromkeys(keys.values())
        ]
        kept: dict[tuple[str, int, str], dict[str, Any]] = {}
        if (measured := self.live if scenario.live else self.measured) is None:
            raise ScenarioError(f"{self.command} cannot run in real time")

        def compare(points: Sequence[sweep.Point], folder: Path) -> R:
            """Make the runs of ``points`` that the folder does not have, and return what follows from all that were made."""
            frame = sweep.run(
                measured,
                points,
                [0],
                folder,
                jobs=1 if scenario.live else jobs,
                console=console,
                # A process that has built something and run it undisturbed goes on with its failures.
                together=("mechanism", "network_seed"),
                code=lambda point: codes[str(point["mechanism"])],
                told=told,
            )
            kept.update({(row["mechanism"], row["network_seed"], row["failure"]): row for row in frame.to_dicts()})
            rows = [{**kept[key], "failure": failure} for (_, _, failure), key in keys.items()]
            return self.compared(scenario, mechanisms, seeds, rows)

        comparison = compare(points, folder)
        if scenario.live:
            comparison = _again(comparison, compare, points, folder, console)
        out.mkdir(parents=True, exist_ok=True)
        for name, frame in {"cases": comparison.case_frame(), **self.frames(comparison)}.items():
            whole_files.write_parquet(out / f"{name}.parquet", frame)
            if csv:
                whole_files.write_csv(out / f"{name}.csv", frame)
        judged = self.judged(comparison, requirements)
        summary = {
            **self.summary(comparison),
            "requirements": [self.verdict(each) for each in judged],
            folders.KEY: folders.key(scenario, mechanisms, seeds),
        }
        whole_files.write_text(out / "summary.json", json.dumps(summary, indent=2) + "\n")
        self.report(comparison, out / "report.html", judged, command)
        return comparison

    def judged(self, comparison: R, requirements: Sequence[Requirement]) -> list[Verdict]:
        """Return who keeps to each requirement."""
        return [judge(comparison, each, self.measures) for each in requirements]

    def verdict(self, verdict: Verdict) -> dict[str, object]:
        """Return a verdict as it is written to files: whether it is met, by whom, and each mechanism's worst values."""
        return {
            "requirement": verdict.requirement.text,
            "met": verdict.is_met,
            "met_by": verdict.met_by,
            "withheld": verdict.withheld,
            "mechanisms": {
                name: [
                    {
                        "limit": each.limit.text,
                        "kept": each.is_kept,
                        # JSON has no infinity.
                        "worst": None if each.value is None or math.isinf(each.value) else each.value,
                        "failure": each.failure or None,
                    }
                    for each in found
                ]
                for name, found in verdict.findings.items()
            },
        }

    def summary(self, comparison: R) -> dict[str, object]:
        """Return the content of ``summary.json``: the input, the mechanisms in the order of their ranks, advice and notes."""
        return {
            **self.input_of(comparison),
            "seeds": comparison.seeds,
            "doubts": comparison.doubts,
            "advice": self.advice(comparison),
            "notes": self.notes(comparison),
            "mechanisms": [comparison.summary_of(each) for each in comparison.summaries],
        }

    def report(self, comparison: R, path: Path, judged: Sequence[Verdict] = (), command: str = "") -> None:
        """Write the report to ``path`` as one HTML file; the same comparison, verdicts and code always give the same bytes.

        ``command``: what a user typed for it.
        """
        styles = {each.name: page.style(self.known(), each.name) for each in comparison.mechanisms}
        why = self.why(comparison)
        values = {
            "title": self.heading(comparison),
            "subtitle": self.subtitle(comparison),
            "advice": self.advice(comparison),
            "unranked": comparison.unranked,
            "requirements": [(each.is_met, sentences(each, self.measures)) for each in judged],
            "colours": [(styles[each.name], each.colour) for each in comparison.mechanisms],
            "ranking": page.ranking(comparison, self.columns(comparison), styles),
            "rule": self.rule(comparison),
            "why": why,
            "notes": [note for note in self.notes(comparison) if note not in why],
            "mechanisms": [(each.name, each.what) for each in comparison.mechanisms],
            "definitions": self.definitions,
            "made_by": command or " ".join(("holdfast compare", *([self.command] if self.command else ()))),
            "version": version(),
            "seeds": _counted(comparison.seeds),
            "how": self.how,
            "files": ", ".join(f"{name}.parquet" for name in ("cases", *self.frames(comparison))),
        }
        page.write(path, self.template, {**values, **self.parts(comparison)})

    def shown(self, comparison: R) -> list[Grid]:
        """Return the tables for a terminal: those of this kind of comparison, or if it has none the columns of the ranking."""
        if self.tables is not None:
            return self.tables(comparison)
        chosen = self.columns(comparison)
        result = terminal_table([f"{heading}\n{unit}" for heading, unit, _, _ in chosen])
        for each in comparison.summaries:
            result.add_row(each.mechanism, *(show(each) for _, _, show, _ in chosen))
        return [result]


def _counted(seeds: Sequence[int]) -> str:
    """Return the seeds in words: ``seed 1``, or ``seeds 1 to 5``."""
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def _again(
    comparison: R,
    compare: Callable[[Sequence[sweep.Point], Path], R],
    points: Sequence[sweep.Point],
    folder: Path,
    console: Console | None,
) -> R:
    """Repeat all runs of each mechanism and seed that were disturbed, a few times at most.

    ``compare`` makes the runs of the given points with their files in a folder, and returns the comparison. ``console`` shows what
    is repeated and why. Return the comparison with the new runs.
    """
    (folder / "journal.jsonl").unlink()
    for attempt in range(1, ATTEMPTS):
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
        comparison = compare(again, folder / f"again-{attempt}")
        (folder / f"again-{attempt}" / "journal.jsonl").unlink()
    return comparison
