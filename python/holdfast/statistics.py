"""Statistics over seeds: means with confidence intervals, paired comparisons, proportions.

Intervals of means are Student's, those of proportions Wilson's; both assume that the seeds are independent, and Student's that
means are close to normal. Nothing here knows what was measured.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random
from typing import Any

import polars as pl

from holdfast.errors import SweepError

MANY = 10_000
"""The degrees of freedom from which on quantiles of Student's distribution are computed from the normal
distribution."""


@cache
def student_quantile(confidence: float, degrees: int) -> float:
    """Return the half-width, in standard errors, of a two-sided Student interval with this ``confidence``.

    ``degrees``: the degrees of freedom. Raises :class:`SweepError` if there is no such interval.
    """
    if not 0 < confidence < 1 or degrees < 1:
        raise SweepError(f"no interval with confidence {confidence:g} and {degrees} degrees of freedom")
    normal = statistics.NormalDist().inv_cdf((1 + confidence) / 2)
    if degrees > MANY:
        return normal + (normal**3 + normal) / (4 * degrees)
    low, high = 0.0, normal
    while _student_within(high, degrees) < confidence:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if _student_within(middle, degrees) < confidence else (low, middle)
    return high


def _student_within(t: float, degrees: int) -> float:
    """Return the probability that a value of Student's distribution lies between ``-t`` and ``t``.

    Computed by the finite sums for whole degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4).
    """
    angle = math.atan(t / math.sqrt(degrees))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = degrees % 2
    term, total = (cosine, cosine) if odd else (1.0, 1.0)
    if degrees == 1:
        return 2 * angle / math.pi
    for n in range(2 + odd, degrees, 2):
        term *= cosine * cosine * (n - 1) / n
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Return Student's confidence interval of the mean as (low, high); it is (-inf, inf) for a single value."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return -math.inf, math.inf
    reach = student_quantile(confidence, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return mean - reach, mean + reach


def wilson_interval(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval (low, high) of a proportion; it stays within 0 and 1, and is not empty at 0 or 1.

    Raises :class:`SweepError` if ``successes`` is not from 0 to ``trials``, or ``trials`` is 0.
    """
    if not 0 <= successes <= trials or trials == 0:
        raise SweepError(f"{successes} successes in {trials} trials are not a proportion")
    z = statistics.NormalDist().inv_cdf((1 + confidence) / 2)
    p, squared = successes / trials, z * z / trials
    centre = (p + squared / 2) / (1 + squared)
    reach = z * math.sqrt((p * (1 - p) + squared / 4) / trials) / (1 + squared)
    # At the ends one bound is exact, and rounding would miss it.
    low = 0.0 if successes == 0 else max(0.0, centre - reach)
    return low, 1.0 if successes == trials else min(1.0, centre + reach)


def difference_of_means(
    low: float, high: float, seeds: int, reference: float, reference_seeds: int
) -> tuple[float, float]:
    """Return the interval (low, high) of our mean less a reference mean of which only the value and the number of seeds are known.

    ``low`` and ``high`` are Student's interval of our mean over ``seeds`` seeds. The reference is taken to spread over its seeds as
    ours does, as it is if both come from one system: this is the two-sample t interval with ``seeds`` - 1 degrees of freedom.
    Return (-inf, inf) if our interval is not finite. Raise :class:`SweepError` for fewer than one seed.
    """
    if seeds < 1 or reference_seeds < 1:
        raise SweepError(f"no difference of means of {seeds} and {reference_seeds} seeds")
    ours, reach = (low + high) / 2, (high - low) / 2
    if not math.isfinite(reach):
        return -math.inf, math.inf
    reach *= math.sqrt(1 + seeds / reference_seeds)
    return ours - reference - reach, ours - reference + reach


def difference_of_proportions(
    ours: float, low: float, high: float, reference: float, reference_trials: int, confidence: float = 0.95
) -> tuple[float, float]:
    """Return Newcombe's interval of our proportion less a reference proportion (Statistics in Medicine 17, 1998, method 10).

    ``low`` and ``high`` are Wilson's interval of ours; the reference is the proportion of ``reference_trials`` nearest to
    ``reference``. Raises :class:`SweepError` if ``reference`` is not from 0 to 1.
    """
    successes = round(reference * reference_trials)
    if not 0 <= successes <= reference_trials:
        raise SweepError(f"{reference:g} is not a proportion")
    reference_low, reference_high = wilson_interval(successes, reference_trials, confidence)
    reference = successes / reference_trials
    below = math.hypot(ours - low, reference_high - reference)
    above = math.hypot(high - ours, reference - reference_low)
    return ours - reference - below, ours - reference + above


def bootstrap_interval(
    values: Sequence[float],
    statistic: Callable[[Sequence[float]], float] = statistics.median,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 1,
) -> tuple[float, float]:
    """Return the bootstrap's percentile interval (low, high) of a statistic without a formula.

    Equal values give equal intervals.
    """
    random = Random(seed)
    drawn = sorted(statistic([values[int(random.random() * len(values))] for _ in values]) for _ in range(resamples))
    tail = (1 - confidence) / 2
    return drawn[math.floor(tail * (resamples - 1))], drawn[math.ceil((1 - tail) * (resamples - 1))]


def summary(frame: pl.DataFrame, by: Sequence[str], value: str, confidence: float = 0.95) -> pl.DataFrame:
    """Return a row per group, in the frame's order: ``by``, ``n``, ``mean``, ``median``, ``sd``, ``low``, ``high``.

    ``low`` and ``high`` are the confidence interval of the mean.
    """
    rows = []
    for key, group in _groups(frame, by):
        values = _values(group, value)
        low, high = mean_interval(values, confidence)
        rows.append(
            {
                **key,
                "n": len(values),
                "mean": statistics.fmean(values),
                "median": statistics.median(values),
                "sd": statistics.stdev(values) if len(values) > 1 else None,
                "low": low,
                "high": high,
            }
        )
    return pl.DataFrame(rows)


def paired(
    frame: pl.DataFrame,
    by: Sequence[str],
    value: str,
    baseline: Mapping[str, Any],
    *,
    ratio: bool = False,
    confidence: float = 0.95,
) -> pl.DataFrame:
    """Compare each group with a baseline seed by seed, so that effects of a seed on both cancel.

    The baseline of a row is the row with the same seed and the same ``by`` columns except those in ``baseline``, which have the
    values given there. What is compared is the difference, or with ``ratio`` the quotient minus 1. Columns: those of
    :func:`summary`, then ``worse``, the proportion of seeds below their baseline, and its Wilson interval ``worse_low`` and
    ``worse_high``. Raises :class:`SweepError` if ``baseline`` has columns that are not in ``by``, or no row is the baseline.
    """
    if missing := baseline.keys() - set(by):
        raise SweepError(f"the baseline's columns have to be among {list(by)}; {sorted(missing)} are not")
    keys = [column for column in by if column not in baseline]
    base = frame.filter(*(pl.col(column) == wanted for column, wanted in baseline.items()))
    base_of = {tuple(row[c] for c in (*keys, "seed")): row[value] for row in base.iter_rows(named=True)}
    if not base_of:
        raise SweepError(f"no row is the baseline {dict(baseline)}")
    change = []
    for row in frame.iter_rows(named=True):
        reference = base_of.get(tuple(row[c] for c in (*keys, "seed")))
        if reference is None:
            raise SweepError(f"seed {row['seed']} has no baseline {dict(baseline)} for { ({c: row[c] for c in keys}) }")
        if ratio and not reference:
            raise SweepError(f"seed {row['seed']}: the baseline's {value} is 0, so nothing is a multiple of it")
        change.append(row[value] / reference - 1 if ratio else row[value] - reference)
    changed = frame.select(*by, "seed").with_columns(change=pl.Series(change, dtype=pl.Float64))
    worse = []
    for _, group in _groups(changed, by):
        below = sum(each < 0 for each in group["change"])
        low, high = wilson_interval(below, len(group), confidence)
        worse.append({"worse": below / len(group), "worse_low": low, "worse_high": high})
    return pl.concat([summary(changed, by, "change", confidence), pl.DataFrame(worse)], how="horizontal")


def best(frame: pl.DataFrame, over: str, value: str, by: Sequence[str] = (), confidence: float = 0.95) -> pl.DataFrame:
    """Return how often each value of the column ``over`` has the highest ``value`` of its seed, within the groups ``by``.

    Of equal values the first wins. Columns: ``by``, ``over``, ``n`` (seeds), ``best`` (the proportion), and its Wilson interval.
    """
    rows = []
    for key, group in _groups(frame, by):
        winners: list[Any] = []
        for _, runs in _groups(group, ["seed"]):
            values = _values(runs, value)
            winners.append(runs[over][values.index(max(values))])
        for choice in group[over].unique(maintain_order=True):
            low, high = wilson_interval(winners.count(choice), len(winners), confidence)
            proportion = winners.count(choice) / len(winners)
            rows.append(
                {**key, over: choice, "n": len(winners), "best": proportion, "best_low": low, "best_high": high}
            )
    return pl.DataFrame(rows)


def _groups(frame: pl.DataFrame, by: Sequence[str]) -> list[tuple[dict[str, Any], pl.DataFrame]]:
    if frame.is_empty():
        raise SweepError("there are no runs to summarise")
    if missing := [column for column in (*by,) if column not in frame.columns]:
        raise SweepError(f"there is no column {missing[0]!r} (known: {', '.join(frame.columns)})")
    if not by:
        return [({}, frame)]
    return [(dict(zip(by, key, strict=True)), group) for key, group in frame.group_by(list(by), maintain_order=True)]


def _values(frame: pl.DataFrame, value: str) -> list[float]:
    if value not in frame.columns:
        raise SweepError(f"there is no column {value!r} (known: {', '.join(frame.columns)})")
    values = frame[value].to_list()
    if any(each is None or not math.isfinite(each) for each in values):
        raise SweepError(f"column {value!r} has values that are missing or not finite")
    return values
