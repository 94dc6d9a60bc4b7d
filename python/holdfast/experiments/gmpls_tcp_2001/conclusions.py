"""The paper's conclusions, each as numbers with 95 % intervals and a verdict: holds, refuted, or open.

A verdict is computed. A claim that a number is above (or below) a bound holds if the whole interval is, is refuted if the whole
interval is on the other side, and is open otherwise. A conclusion of several claims holds if all do, and is refuted if one is
(:data:`SOME`: if all are). The other parts choose the runs that produce the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean
from typing import Any

import polars as pl

from holdfast import statistics
from holdfast.experiments import Finding, Setting
from holdfast.experiments.gmpls_tcp_2001 import goodput, longer_path, mechanisms, merge, published, switch_back, timing
from holdfast.sweep import Point

HOLDS, REFUTED, UNDECIDED = "holds", "refuted", "open"

CLOSE_POINTS = 5.0
"""Path and loop-back are close if they differ by less of the achievable goodput: section 7.2 calls 5 % of the link's rate tiny."""

MERGE_PERCENT = published.SWITCH_BACK_POINTS
"""Merging does not matter if optical and electrical differ by less; the paper reads 0.39 % in Table 6 as an advantage."""

ELECTRICAL_D_MS = (10, 20, 50)
"""The values for which the paper has electrical ahead (Table 6 and its text)."""

LARGE_D_MS = (10, 20, 50, 100)
"""A backup of 2 ms changes less than seeds do."""


SHORT = {"loopbackvar": "variant"}


@dataclass(frozen=True)
class Claim:
    """A number in percent (or points) with its interval, and what the paper says of it."""

    conclusion: str
    about: str
    quantity: str
    ours: float
    low: float
    high: float
    expected: str
    """``above`` or ``below`` the bound, or ``within`` the bound to both sides of ``centre``.

    ``unknown`` if it hangs on something that is open.
    """
    bound: float = 0.0
    centre: float = 0.0
    seeds: int = 0

    @property
    def verdict(self) -> str:
        """The verdict that the interval gives: holds, refuted or open."""
        if self.expected == "within":
            low, high = self.low - self.centre, self.high - self.centre
            if -self.bound < low and high < self.bound:
                return HOLDS
            return REFUTED if low > self.bound or high < -self.bound else UNDECIDED
        if self.expected == "unknown":
            return UNDECIDED
        low, high = self.low - self.bound, self.high - self.bound
        if self.expected == "below":
            low, high = -high, -low
        if low > 0:
            return HOLDS
        return REFUTED if high < 0 else UNDECIDED

    @property
    def in_words(self) -> str:
        """The condition of the claim in words, as in ``above 0`` or ``within 2 of 10``."""
        if self.expected == "within":
            return f"within {self.bound:g} of {self.centre:g}"
        return f"{self.expected} {self.bound:g}" if self.expected != "unknown" else self.expected

    @property
    def seeds_needed(self) -> int | None:
        """About how many seeds would decide the claim, if the number did not change with more seeds.

        None if it is decided, or if no number of seeds would decide it.
        """
        if self.verdict != UNDECIDED or not self.seeds or not math.isfinite(self.high - self.low):
            return None
        bounds = [self.bound] if self.expected != "within" else [self.centre - self.bound, self.centre + self.bound]
        bound = min(bounds, key=lambda each: abs(self.ours - each))
        away = abs(self.ours - bound)
        reach = self.ours - self.low if self.ours > bound else self.high - self.ours
        return math.ceil(self.seeds * (reach / away) ** 2) if away else None


SOME, OPTICAL, WITH_D, WITH_DELTA, MERGE, ELECTRICAL, LOCAL, PATH, BETWEEN, NOT_IN_D = (
    "shared",
    "not shared",
    "longer",
    "slower",
    "merge",
    "electrical",
    "local",
    "path",
    "variant",
    "variant in D",
)
CONCLUSIONS: Mapping[str, str] = {
    SOME: "some delay beats delta = 0 where the backup is shared",
    OPTICAL: "delta = 0 is best where the backup is not shared",
    WITH_D: "the penalty of a longer backup grows with d",
    WITH_DELTA: "the penalty of a longer backup grows with each step of delta",
    MERGE: "optical is ahead where buffers overflow behind the merge point, and as good elsewhere",
    ELECTRICAL: "electrical is better for d = 10 to 50 ms",
    LOCAL: "local is best",
    PATH: "path and loop-back are close",
    BETWEEN: "loopbackvar lies between local and loop-back in A, B and C",
    NOT_IN_D: "loopbackvar gains nothing over loop-back in D",
}
"""The conclusions: in a table's words, and in full."""


def overall(conclusion: str, claims: Sequence[Claim]) -> str:
    """Return the verdict of ``conclusion`` from the verdicts of its claims: holds, refuted or open.

    It is refuted if one claim is, and holds if all claims hold; the conclusion :data:`SOME` holds if one claim does.
    """
    verdicts = [claim.verdict for claim in claims]
    if conclusion == SOME:
        return HOLDS if HOLDS in verdicts else REFUTED if set(verdicts) == {REFUTED} else UNDECIDED
    return REFUTED if REFUTED in verdicts else HOLDS if set(verdicts) == {HOLDS} else UNDECIDED


def mean_claim(
    conclusion: str,
    about: str,
    quantity: str,
    values: Sequence[float],
    expected: str,
    bound: float = 0.0,
    centre: float = 0.0,
) -> Claim:
    """Return a claim on the mean of ``values``, one per seed, with its 95 % interval.

    The claim: the mean is above or below ``bound``, or within ``bound`` of ``centre``, as ``expected`` says.
    """
    low, high = statistics.mean_interval(values)
    return Claim(conclusion, about, quantity, fmean(values), low, high, expected, bound, centre, len(values))


Goodputs = Mapping[tuple[Any, ...], Mapping[int, float]]
"""Goodput in packets, by configuration and then by seed."""


def by_configuration(frame: pl.DataFrame, by: Sequence[str], value: str) -> Goodputs:
    """Return the column ``value`` of the runs, first by configuration (the values of the columns ``by``), then by seed."""
    result: dict[tuple[Any, ...], dict[int, float]] = {}
    for row in frame.iter_rows(named=True):
        result.setdefault(tuple(row[name] for name in by), {})[row["seed"]] = row[value]
    return result


def changes(goodputs: Goodputs, one: tuple[Any, ...], base: tuple[Any, ...]) -> list[float]:
    """Return by how many percent configuration ``one`` differs from ``base``, one number per seed."""
    return [100.0 * (value / goodputs[base][seed] - 1.0) for seed, value in goodputs[one].items()]


def shared(frame: pl.DataFrame) -> list[Claim]:
    """Return a claim per switching delay of Table 3: its change of goodput in % against no delay is above 0.

    The backup path is shared with other flows.
    """
    goodputs = by_configuration(frame, ["delta_ms"], "after_failure")
    return [mean_claim(SOME, f"delta {d[0]}", "%", changes(goodputs, d, (0,)), "above") for d in goodputs if d != (0,)]


def alone(frame: pl.DataFrame) -> list[Claim]:
    """Return a claim per switching delay of section 5.3: its change of goodput in % against no delay is below 0."""
    goodputs = by_configuration(frame, ["delta_ms"], "after_failure")
    return [
        mean_claim(OPTICAL, f"delta {d[0]}", "%", changes(goodputs, d, (0,)), "below") for d in goodputs if d != (0,)
    ]


def longer(frame: pl.DataFrame) -> list[Claim]:
    """Return the claims on Table 5: how the loss of goodput changes with each step of d and of the delay delta.

    Each step of d is taken for each delta, each step of delta for each d from 10 ms on.
    """
    goodputs = by_configuration(frame, ["d_ms", "delta_ms"], "after_failure")
    ds, deltas = (sorted({key[i] for key in goodputs}) for i in (0, 1))
    penalties = {key: changes(goodputs, key, (1, key[1])) for key in goodputs}

    def difference(one: tuple[Any, ...], other: tuple[Any, ...]) -> list[float]:
        return [a - b for a, b in zip(penalties[one], penalties[other], strict=True)]

    claims = [
        mean_claim(WITH_D, f"d {a} to {b}, delta {t}", "pts", difference((b, t), (a, t)), "below")
        for t in deltas
        for a, b in pairwise(ds)
        if a >= 2
    ]
    return claims + [
        mean_claim(WITH_DELTA, f"d {d}, delta {a} to {b}", "pts", difference((d, b), (d, a)), "below")
        for d in LARGE_D_MS
        if d in ds
        for a, b in pairwise(deltas)
    ]


def back(frame: pl.DataFrame, overflows: Sequence[merge.Overflow]) -> list[Claim]:
    """Return the claims on Table 6: the goodput of optical switch-back against electrical, in %, one per length d.

    They depend on whether buffers overflow behind the merge point (``overflows``).
    """
    goodputs = by_configuration(frame, ["d_ms", "strategy"], "after_repair")
    ahead = {d: changes(goodputs, (d, "optical"), (d, "electrical")) for d in sorted({key[0] for key in goodputs})}
    claims = []
    for d, values in ahead.items():
        overflow = {each.d_ms: each.verdict for each in overflows}[d]
        about = f"optical - electrical, d {d}, " + {True: "overflows", False: "does not", None: "not known"}[overflow]
        if overflow is None:
            low, high = statistics.mean_interval(values)
            claims.append(Claim(MERGE, about, "%", fmean(values), low, high, "unknown"))
        else:
            claims.append(
                mean_claim(MERGE, about, "%", values, *(("above",) if overflow else ("within", MERGE_PERCENT)))
            )
    return claims + [
        mean_claim(ELECTRICAL, f"optical - electrical, d {d}", "%", ahead[d], "below")
        for d in ELECTRICAL_D_MS
        if d in ahead
    ]


def cases(frame: pl.DataFrame) -> list[Claim]:
    """Return the claims on Fig. 19(a): differences between mechanisms in percentage points of the achievable goodput."""
    value, window_s = "after_failure", published.CASE_STUDY_WINDOW_S
    names = [scenario.name for scenario in published.SCENARIOS]
    others = [("local", mechanism) for mechanism in published.MECHANISMS if mechanism != "local"]
    return [
        *ahead(frame, value, window_s, others, conclusion=LOCAL),
        *ahead(frame, value, window_s, [("path", "loopback")], "within", conclusion=PATH),
        *ahead(frame, value, window_s, [("local", "loopbackvar")], scenarios=names[:3], conclusion=BETWEEN),
        *ahead(frame, value, window_s, [("loopbackvar", "loopback")], scenarios=names[:3], conclusion=BETWEEN),
        *ahead(frame, value, window_s, [("loopbackvar", "loopback")], "below", scenarios=["D"], conclusion=NOT_IN_D),
    ]


def ahead(
    frame: pl.DataFrame,
    value: str,
    window_s: float,
    pairs: Sequence[tuple[str, str]],
    expected: str = "above",
    *,
    scenarios: Sequence[str] | None = None,
    conclusion: str = "",
) -> list[Claim]:
    """Return a claim per scenario and pair of mechanisms: the first one's goodput minus the second one's.

    Goodput is in percent of the achievable, so the difference is in percentage points. ``scenarios``: their names; all if None.
    """
    goodputs = by_configuration(
        goodput.achievable(frame, value, window_s), ["mechanism", "scenario"], "achieved_percent"
    )
    claims = []
    for scenario in scenarios or [each.name for each in published.SCENARIOS]:
        for one, other in pairs:
            better, worse = goodputs[one, scenario], goodputs[other, scenario]
            about = f"{SHORT.get(one, one)} - {SHORT.get(other, other)}, {scenario}"
            values = [better[seed] - worse[seed] for seed in better]
            claims.append(
                mean_claim(conclusion, about, "pts", values, expected, CLOSE_POINTS if expected == "within" else 0.0)
            )
    return claims


def rows(claims: Sequence[Claim]) -> pl.DataFrame:
    """Return a row per claim, with its own verdict, and in ``overall`` the verdict of its conclusion."""
    of = {name: [claim for claim in claims if claim.conclusion == name] for name in CONCLUSIONS}
    return pl.DataFrame(
        [
            {
                "conclusion": claim.conclusion,
                "overall": overall(claim.conclusion, of[claim.conclusion]),
                "about": claim.about,
                "verdict": claim.verdict,
                "quantity": claim.quantity,
                "ours": claim.ours,
                "low": claim.low,
                "high": claim.high,
            }
            for claim in claims
        ]
    )


def find(setting: Setting) -> Finding:
    """Run the simulations of sections 5 to 8 and return a row per claim with its verdict. Section 5.3 has fewer seeds."""
    fewer = replace(setting, seeds=setting.seeds[: published.OPTICAL_TIMING_SEEDS])
    return Finding(
        rows(
            [
                *shared(timing.measured(setting)),
                *alone(timing.measured_alone(fewer)),
                *longer(longer_path.measured(setting)),
                *back(switch_back.measured(setting), merge.overflows(merge.measured(setting), merge.BEHIND)),
                *cases(mechanisms.measured(setting)),
            ]
        )
    )


FASTER_MBPS = 34.0
"""A rate at which a loop holds more packets in proportion to the buffers."""

FASTER_POINTS: list[Point] = [
    {**point, "end_s": published.FAILURE_S + published.CASE_STUDY_WINDOW_S, "curve_ms": 0.0}
    for point in mechanisms.POINTS
]


def find_faster(setting: Setting) -> Finding:
    """Run the case study at ``FASTER_MBPS`` and return a row per claim with its verdict, to see if it depends on the rate."""
    points = goodput.with_defaults(FASTER_POINTS, rate_mbps=FASTER_MBPS)
    return Finding(rows(cases(setting.sweep("case_study_faster", goodput.MEASURE, points))))
