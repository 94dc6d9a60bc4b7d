"""Fits the paper's open parameters to its Tables 3 and 5: some seeds choose the parameters, others judge them.

:data:`FACTORS` are varied together. A candidate's score for a table is the logarithm of the likelihood of the paper's numbers if
its 150 seeds were drawn as ours are: normal for each mean change, whose variance is the candidate's own over seeds divided by their
number, ours and the paper's (of few seeds that of all entries together); and beta-binomial for each proportion of seeds that are
worse. The entries of a table share a baseline and are not independent, so scores rank candidates and are no probabilities; the
certainty of the ranks comes from a bootstrap over the seeds. Table 3's means and proportions imply a spread
(:func:`implied_spread`).

:data:`ROUNDS` halves the candidates, with more seeds each time. The remaining candidates, and the one that the other parts use, are
judged with the setting's seeds, which may not be among those that chose. In each round half of the places are for the best at both
tables together, half for the best at Table 3 alone: section 5 might have had another network than section 6.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import NormalDist, fmean, stdev, variance
from typing import Any

import matplotlib.pyplot as plt
import polars as pl
from matplotlib.figure import Figure

from holdfast import statistics
from holdfast.errors import ExperimentError
from holdfast.experiments import Finding, Setting
from holdfast.experiments.gmpls_tcp_2001 import goodput, longer_path, published, timing
from holdfast.experiments.gmpls_tcp_2001.runs import UNKNOWNS
from holdfast.sweep import Point

FACTORS: Mapping[str, tuple[Any, ...]] = {
    "rate_mbps": (10.0, 20.0),
    "buffer_packets": (50, 100),
    "window_packets": (20, 32, 64),
    "timing_link_ms": (10.0, 20.0, 40.0),
    "rto_minimum_ms": (200, 1000),
}
"""ns-2's window is 20, its buffer 50; its least timeout was 0.2 s until May 2001, 1 s after it."""

Candidate = tuple[Any, ...]
"""A value of each factor."""

CANDIDATES: tuple[Candidate, ...] = tuple(product(*FACTORS.values()))
USED: Candidate = tuple(UNKNOWNS[name] for name in FACTORS)
"""The candidate of all other parts."""

POINTS: Mapping[str, Sequence[Point]] = {
    "table3": timing.points("timing", (0, 50, 250, 1000), published.TIMING_ACCESS_PERCENT),
    "table5": longer_path.points((1, 50, 100), (longer_path.DELTA_MS,), end_s=6.5, curve_ms=0.0),
}
"""Table 3 without delta = 500 ms; of Table 5 the entries of delta = 5 ms with changes that few seeds can tell from none."""

BOTH = "both"

_COMPARED: Mapping[str, tuple[list[str], Mapping[str, Any]]] = {
    "table3": (["delta_ms"], {"delta_ms": 0}),
    "table5": (["d_ms", "delta_ms"], {"d_ms": 1}),
}
"""By which columns a table's goodput is compared, and against what."""

WORSE: Mapping[str, Mapping[tuple[Any, ...], float]] = {
    "table3": {(row[0],): row[2] for row in published.TABLE_3.rows},
    "table5": {},
}
"""The proportions of seeds that are worse that are scored, in percent."""

MEANS: Mapping[str, Mapping[tuple[Any, ...], float]] = {
    "table3": {(row[0],): row[1] for row in published.TABLE_3.rows},
    "table5": {(row[0], row[1]): row[2] for row in published.TABLE_5.rows},
}

SELECTION_FIRST_SEED = 1001


@dataclass(frozen=True)
class Round:
    """The number of new seeds for every candidate that is left, and of those that stay for each of the two targets."""

    seeds: int
    stay: int


ROUNDS: tuple[Round, ...] = (Round(2, 5), Round(3, 2))
OWN_VARIANCE_SEEDS = 10
"""The least number with which an entry has a variance of its own; of fewer that would be too uncertain."""

RESAMPLES = 400
ROUNDING_VARIANCE = 10.0 ** (-2 * published.TABLE_3.decimals) / 12
"""The variance that the paper's rounding adds: uniform in the last decimal that it prints."""

Changes = Mapping[tuple[Any, ...], Sequence[float]]
"""The changes of goodput in percent of every seed, in the order of the seeds, by entry of a table."""


def implied_spread(change_percent: float, worse_percent: float) -> float:
    """Return the standard deviation of a normal law with mean ``change_percent``, below 0 in ``worse_percent`` of its draws."""
    return -change_percent / NormalDist().inv_cdf(worse_percent / 100)


def score(table: str, changes: Changes) -> float:
    """Return the natural logarithm of the likelihood of the paper's numbers in ``table``, given our changes by entry and seed."""
    seeds = len(next(iter(changes.values())))
    pooled = fmean(variance(values) for values in changes.values())
    total = 0.0
    for entry, values in changes.items():
        spread = pooled if seeds < OWN_VARIANCE_SEEDS else variance(values)
        square = spread * (1 / published.SEEDS + 1 / seeds) + ROUNDING_VARIANCE
        total -= 0.5 * (math.log(2 * math.pi * square) + (MEANS[table][entry] - fmean(values)) ** 2 / square)
        if entry in WORSE[table]:
            below = sum(value < 0 for value in values)
            times = round(WORSE[table][entry] / 100 * published.SEEDS)
            total += _beta_binomial(times, published.SEEDS, below + 0.5, seeds - below + 0.5)
    return total


def _beta_binomial(successes: int, trials: int, a: float, b: float) -> float:
    """Return the natural logarithm of the probability of ``successes`` in ``trials`` by a beta-binomial law with ``a``, ``b``."""

    def beta(x: float, y: float) -> float:
        return math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y)

    ways = math.lgamma(trials + 1) - math.lgamma(successes + 1) - math.lgamma(trials - successes + 1)
    return ways + beta(successes + a, trials - successes + b) - beta(a, b)


def changes_of(table: str, frame: pl.DataFrame) -> dict[tuple[Any, ...], list[float]]:
    """Return one candidate's changes of goodput in percent against the baseline, one per seed, by entry of ``table``."""
    by, baseline = _COMPARED[table]
    relative = goodput.relative(frame.sort("seed", maintain_order=True), by, "after_failure", baseline)
    result: dict[tuple[Any, ...], list[float]] = {}
    for row in relative.iter_rows(named=True):
        result.setdefault(tuple(row[name] for name in by), []).append(row["relative_percent"] - 100.0)
    return result


def as_run(table: str, candidate: Candidate) -> Candidate:
    """Return the candidate with the values that are used in the runs of ``table``.

    Only Table 3's runs have links of ``timing_link_ms``; for other tables it is set to its default, so candidates that differ in
    nothing else become equal.
    """
    if table == "table3":
        return candidate
    return tuple(
        UNKNOWNS[name] if name == "timing_link_ms" else value for name, value in zip(FACTORS, candidate, strict=True)
    )


def points(table: str, candidates: Sequence[Candidate]) -> list[Point]:
    """Return the points of a table's sweep for all candidates; candidates that :func:`as_run` makes equal are run once."""
    different = dict.fromkeys(as_run(table, candidate) for candidate in candidates)
    return [
        point
        for one in different
        for point in goodput.with_defaults(POINTS[table], **dict(zip(FACTORS, one, strict=True)))
    ]


RUN_COLUMNS: Mapping[str, list[str]] = {table: [*FACTORS, *by, "seed"] for table, (by, _) in _COMPARED.items()}
"""The columns that name a run of a table."""

Frames = dict[str, pl.DataFrame]
"""Runs by table."""


def _measured(setting: Setting, name: str, candidates: Sequence[Candidate]) -> Frames:
    return {
        table: setting.sweep(f"fit_{name}_{table}", goodput.MEASURE, points(table, candidates)).select(
            *RUN_COLUMNS[table], "after_failure"
        )
        for table in POINTS
    }


def changes_by_candidate(
    table: str, frame: pl.DataFrame, candidates: Sequence[Candidate]
) -> dict[Candidate, dict[Any, list[float]]]:
    """Return each candidate's changes of goodput in percent, by entry of ``table`` and seed."""
    runs = dict(frame.group_by(list(FACTORS)).__iter__())
    return {candidate: changes_of(table, runs[as_run(table, candidate)]) for candidate in candidates}


def scores(frames: Frames, candidates: Sequence[Candidate]) -> dict[Candidate, dict[str, float]]:
    """Return for each candidate (a set of parameter values) its score for each table, and their sum under the key ``BOTH``.

    A score is the natural logarithm of the likelihood of the paper's numbers (:func:`score`): higher is better.
    """
    of = {table: changes_by_candidate(table, frame, candidates) for table, frame in frames.items()}
    result = {}
    for candidate in candidates:
        each = {table: score(table, changes[candidate]) for table, changes in of.items()}
        result[candidate] = {**each, BOTH: sum(each.values())}
    return result


def remaining(scored: Mapping[Candidate, Mapping[str, float]], stay: int) -> list[Candidate]:
    """Return the candidates for the next round: the ``stay`` best for both tables and the ``stay`` best for Table 3, in turns."""
    orders = [sorted(scored, key=lambda one: scored[one][target], reverse=True) for target in (BOTH, "table3")]
    return list(dict.fromkeys(order[place] for place in range(min(stay, len(scored))) for order in orders))


def selection_seeds() -> tuple[int, ...]:
    """Return the seeds of all rounds that choose candidates; the fit must be judged with other seeds."""
    return tuple(range(SELECTION_FIRST_SEED, SELECTION_FIRST_SEED + sum(each.seeds for each in ROUNDS)))


def find(setting: Setting) -> Finding:
    """Fit the open parameters: run all rounds, then judge the remaining candidates with the setting's seeds.

    Raise :class:`ExperimentError` if one of these seeds has chosen candidates, or if there is only one.
    """
    if both := set(setting.seeds) & set(selection_seeds()):
        raise ExperimentError(f"seed {min(both)} chooses candidates; the fit has to be judged with other seeds")
    if len(setting.seeds) < 2:
        raise ExperimentError("the fit compares spreads over seeds, so it has to be judged with at least 2 of them")
    left, seeds = list(CANDIDATES), selection_seeds()
    frames: Frames = {}
    rows: list[dict[str, Any]] = []
    parts: list[Frames] = []
    done = 0
    for number, one in enumerate(ROUNDS, 1):
        new = _measured(replace(setting, seeds=seeds[done : done + one.seeds]), f"round{number}", left)
        parts.append(new)
        frames = {table: pl.concat([frames[table], frame]) if frames else frame for table, frame in new.items()}
        done += one.seeds
        scored = scores({table: _only(table, frame, left) for table, frame in frames.items()}, left)
        rows += _score_rows(f"round {number}, {done} seeds", scored)
        left = remaining(scored, one.stay)
    finalists = list(dict.fromkeys([*left, USED]))
    held = _measured(setting, "holdout", finalists)
    rows += judged(held, finalists)
    numbers = pl.DataFrame(rows, infer_schema_length=None)
    kept = {
        f"runs_{table}": pl.concat([*(part[table] for part in parts), held[table]]).with_columns(
            pl.col("after_failure").round(3)
        )
        for table in POINTS
    }
    return Finding(numbers, {"": picture(numbers, len(setting.seeds))}, kept)


def _only(table: str, frame: pl.DataFrame, candidates: Sequence[Candidate]) -> pl.DataFrame:
    """Return the runs of ``frame`` that belong to one of ``candidates``."""
    wanted = pl.DataFrame(
        list(dict.fromkeys(as_run(table, one) for one in candidates)), schema=list(FACTORS), orient="row"
    )
    return frame.join(wanted.cast({n: frame.schema[n] for n in FACTORS}), on=list(FACTORS), how="semi")


def _score_rows(stage: str, scored: Mapping[Candidate, Mapping[str, float]]) -> list[dict[str, Any]]:
    return [
        _row(candidate, stage, f"score_{target}", value)
        for candidate, each in scored.items()
        for target, value in each.items()
    ]


def _row(
    candidate: Candidate, stage: str, quantity: str, ours: float, low: float | None = None, high: float | None = None
) -> dict[str, Any]:
    names = dict(zip(FACTORS, candidate, strict=True))
    return {**names, "stage": stage, "quantity": quantity, "ours": ours, "low": low, "high": high}


HELD_OUT = "held out"


def judged(frames: Frames, finalists: Sequence[Candidate]) -> list[dict[str, Any]]:
    """Return rows for each finalist: scores, ranks, distances from the paper, and changes, with seeds that chose nothing."""
    of = {table: changes_by_candidate(table, frame, finalists) for table, frame in frames.items()}
    scored = scores(frames, finalists)
    rows = _score_rows(HELD_OUT, scored)
    firsts, ahead = _bootstrap(of, finalists)
    for candidate in finalists:
        for target in (*POINTS, BOTH):
            rank = sorted((s[target] for s in scored.values()), reverse=True).index(scored[candidate][target]) + 1
            rows.append(_row(candidate, HELD_OUT, f"rank_{target}", float(rank)))
            rows.append(_row(candidate, HELD_OUT, f"first_{target}_percent", firsts[target][candidate]))
            difference = scored[candidate][target] - scored[USED][target]
            rows.append(_row(candidate, HELD_OUT, f"score_{target}_above_used", difference, *ahead[target][candidate]))
        for table, changes in of.items():
            rows += _entries(candidate, table, changes[candidate])
    return rows


def _bootstrap(
    of: Mapping[str, Mapping[Candidate, Changes]], finalists: Sequence[Candidate]
) -> tuple[dict[str, dict[Candidate, float]], dict[str, dict[Candidate, tuple[float, float]]]]:
    """Return two results over resampled seeds, each by target and finalist.

    First, in how many percent of the resamples the finalist has the highest score. Second, the 95 % interval of its score minus
    that of the parameters in use (``USED``).
    """
    seeds = len(next(iter(of["table3"][USED].values())))
    drawn: list[dict[str, dict[Candidate, float]]] = []

    def again(chosen: Sequence[float]) -> float:
        each: dict[str, dict[Candidate, float]] = {
            table: {
                candidate: score(table, {key: [values[int(i)] for i in chosen] for key, values in found.items()})
                for candidate, found in changes.items()
            }
            for table, changes in of.items()
        }
        each[BOTH] = {candidate: sum(each[table][candidate] for table in of) for candidate in finalists}
        drawn.append(each)
        return 0.0

    statistics.bootstrap_interval(range(seeds), again, resamples=RESAMPLES)
    firsts: dict[str, dict[Candidate, float]] = {}
    ahead: dict[str, dict[Candidate, tuple[float, float]]] = {}
    for target in (*of, BOTH):
        winners = [max(finalists, key=each[target].__getitem__) for each in drawn]
        firsts[target] = {one: 100.0 * winners.count(one) / len(winners) for one in finalists}
        ahead[target] = {}
        for one in finalists:
            differences = sorted(each[target][one] - each[target][USED] for each in drawn)
            tail = round(0.025 * (len(differences) - 1))
            ahead[target][one] = (differences[tail], differences[-1 - tail])
    return firsts, ahead


def _entries(candidate: Candidate, table: str, changes: Changes) -> list[dict[str, Any]]:
    """Return rows for one candidate, for every entry of ``table``.

    They are the mean change in percent with its interval, its spread over seeds, its distance from the paper in percentage points
    and in standard errors of the difference, and the percentage of seeds that are worse.
    """
    rows = []
    names = _COMPARED[table][0]
    for entry, values in changes.items():
        where = "_".join(f"{name.removesuffix('_ms')}_{value}" for name, value in zip(names, entry, strict=True))
        mean, deviation = fmean(values), stdev(values)
        apart = mean - MEANS[table][entry]
        error = deviation * math.sqrt(1 / len(values) + 1 / published.SEEDS)
        rows += [
            _row(candidate, HELD_OUT, f"{table}_{where}_change_percent", mean, *statistics.mean_interval(values)),
            _row(candidate, HELD_OUT, f"{table}_{where}_spread_percent", deviation),
            _row(candidate, HELD_OUT, f"{table}_{where}_apart_points", apart),
            _row(candidate, HELD_OUT, f"{table}_{where}_apart_errors", apart / error),
        ]
        if entry in WORSE[table]:
            below = sum(value < 0 for value in values)
            low, high = statistics.wilson_interval(below, len(values))
            rows.append(
                _row(
                    candidate,
                    HELD_OUT,
                    f"{table}_{where}_worse_percent",
                    100.0 * below / len(values),
                    100.0 * low,
                    100.0 * high,
                )
            )
    return rows


def label(candidate: Candidate) -> str:
    """Return a candidate's parameters in words: rate in Mb/s, buffer and window in packets, link delay in ms, timeout in s."""
    rate, buffer, window, link_ms, rto_ms = candidate
    return f"{rate:g} Mb/s, buffer {buffer}, window {window}, links {link_ms:g} ms, timeout {rto_ms / 1000:g} s"


def picture(numbers: pl.DataFrame, seeds: int) -> Figure:
    """Draw the mean changes of Table 3 for every finalist beside the paper's, the best for both tables on top."""
    held = numbers.filter(pl.col("stage") == HELD_OUT)
    order = held.filter(pl.col("quantity") == f"score_{BOTH}").sort("ours", descending=True).select(*FACTORS).rows()
    drawn = {point["delta_ms"]: MEANS["table3"][point["delta_ms"],] for point in POINTS["table3"] if point["delta_ms"]}
    figure, grid = plt.subplots(
        1, len(drawn), sharey=True, figsize=(9.5, 0.35 * len(order) + 1.6), dpi=130, squeeze=False
    )
    axes = list(grid[0])
    for axis, (delta_ms, paper) in zip(axes, drawn.items(), strict=True):
        found = held.filter(pl.col("quantity") == f"table3_delta_{delta_ms}_change_percent")
        of = {tuple(row[name] for name in FACTORS): row for row in found.iter_rows(named=True)}
        for height, one in enumerate(order):
            row = of[one]
            axis.plot([row["low"], row["high"]], [-height, -height], color="#0072B2", linewidth=1.2)
            axis.plot([row["ours"]], [-height], "o", color="#0072B2", markersize=4)
        axis.axvline(paper, color="#D55E00", linewidth=1.2)
        axis.axvline(0, color="#999999", linewidth=0.6)
        axis.set_title(f"delta = {delta_ms} ms", fontsize=8)
        axis.set_xlabel("goodput change (%)", fontsize=7)
        axis.tick_params(labelsize=7)
    axes[0].set_yticks(
        [-height for height in range(len(order))],
        [label(one) + (" *" if one == USED else "") for one in order],
        fontsize=6.5,
    )
    figure.suptitle(
        f"Table 3 with the candidates that were left, {seeds} seeds that chose nothing; line: the paper; *: used",
        fontsize=8.5,
    )
    figure.tight_layout()
    return figure
