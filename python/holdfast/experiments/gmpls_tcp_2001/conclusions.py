"""The paper's conclusions, each as numbers with 95 % intervals and what these say: holds, refuted, or open.

A verdict is computed. A claim that a number is above (or below) zero holds if the whole interval is, is refuted if the whole
interval is on the other side, and is open otherwise. A conclusion of several claims holds if all do, and is refuted if one is
(:data:`SOME`: if all are). What runs produce the numbers is the other parts' business.
"""

from __future__ import annotations

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
"""Path and loop-back are close if they differ by less than so many points of the achievable goodput."""

MERGE_PERCENT = 1.0
"""Merging does not matter if optical and electrical differ by less."""

LARGE_D_MS = (20, 50, 100)


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
    """``above`` or ``below`` zero, or ``within`` a bound to both sides of it."""
    bound: float = 0.0

    @property
    def verdict(self) -> str:
        """What the interval says."""
        if self.expected == "within":
            if -self.bound < self.low and self.high < self.bound:
                return HOLDS
            return REFUTED if self.low > self.bound or self.high < -self.bound else UNDECIDED
        low, high = (self.low, self.high) if self.expected == "above" else (-self.high, -self.low)
        if low > 0:
            return HOLDS
        return REFUTED if high < 0 else UNDECIDED


SOME, OPTICAL, WITH_D, WITH_DELTA, MERGE, LOCAL, PATH, BETWEEN, NOT_IN_D = (
    "shared",
    "not shared",
    "longer",
    "slower",
    "merge",
    "local",
    "path",
    "variant",
    "variant in D",
)
CONCLUSIONS: Mapping[str, str] = {
    SOME: "some delay beats delta = 0 where the backup is shared",
    OPTICAL: "delta = 0 is best where the backup is not shared",
    WITH_D: "the penalty of a longer backup grows with d",
    WITH_DELTA: "the penalty of a longer backup grows with delta",
    MERGE: "merging matters only when buffers overflow",
    LOCAL: "local is best",
    PATH: "path and loop-back are close",
    BETWEEN: "loopbackvar lies between local and loop-back in A, B and C",
    NOT_IN_D: "loopbackvar gains nothing over loop-back in D",
}
"""In a table's words, and in full."""


def overall(conclusion: str, claims: Sequence[Claim]) -> str:
    """Of all claims of a conclusion together."""
    verdicts = [claim.verdict for claim in claims]
    if conclusion == SOME:
        return HOLDS if HOLDS in verdicts else REFUTED if set(verdicts) == {REFUTED} else UNDECIDED
    return REFUTED if REFUTED in verdicts else HOLDS if set(verdicts) == {HOLDS} else UNDECIDED


def _claim(
    conclusion: str, about: str, quantity: str, values: Sequence[float], expected: str, bound: float = 0.0
) -> Claim:
    return Claim(conclusion, about, quantity, fmean(values), *statistics.mean_interval(values), expected, bound)


Goodputs = Mapping[tuple[Any, ...], Mapping[int, float]]
"""By configuration and seed."""


def _by_configuration(frame: pl.DataFrame, by: Sequence[str], value: str) -> Goodputs:
    result: dict[tuple[Any, ...], dict[int, float]] = {}
    for row in frame.iter_rows(named=True):
        result.setdefault(tuple(row[name] for name in by), {})[row["seed"]] = row[value]
    return result


def _changes(goodputs: Goodputs, one: tuple[Any, ...], base: tuple[Any, ...]) -> list[float]:
    """In percent, seed by seed."""
    return [100.0 * (value / goodputs[base][seed] - 1.0) for seed, value in goodputs[one].items()]


def shared(frame: pl.DataFrame) -> list[Claim]:
    """Of Table 3's runs."""
    goodputs = _by_configuration(frame, ["delta_ms"], "after_failure")
    return [_claim(SOME, f"delta {d[0]}", "%", _changes(goodputs, d, (0,)), "above") for d in goodputs if d != (0,)]


def alone(frame: pl.DataFrame) -> list[Claim]:
    """Of section 5.3's runs: every delay against none."""
    goodputs = _by_configuration(frame, ["delta_ms"], "after_failure")
    return [_claim(OPTICAL, f"delta {d[0]}", "%", _changes(goodputs, d, (0,)), "below") for d in goodputs if d != (0,)]


def longer(frame: pl.DataFrame) -> list[Claim]:
    """Of Table 5's runs: each step of d for each delta; for each d from 20 ms on, the largest delta against the smallest."""
    goodputs = _by_configuration(frame, ["d_ms", "delta_ms"], "after_failure")
    ds, deltas = (sorted({key[i] for key in goodputs}) for i in (0, 1))
    penalties = {key: _changes(goodputs, key, (1, key[1])) for key in goodputs}

    def difference(one: tuple[Any, ...], other: tuple[Any, ...]) -> list[float]:
        return [a - b for a, b in zip(penalties[one], penalties[other], strict=True)]

    claims = [
        _claim(WITH_D, f"d {a} to {b}, delta {t}", "pts", difference((b, t), (a, t)), "below")
        for t in deltas
        for a, b in pairwise(ds)
        if a >= 2
    ]
    return claims + [
        _claim(
            WITH_DELTA,
            f"d {d}, delta {deltas[0]} to {deltas[-1]}",
            "pts",
            difference((d, deltas[-1]), (d, deltas[0])),
            "below",
        )
        for d in LARGE_D_MS
        if d in ds
    ]


def back(frame: pl.DataFrame, overflowing: Sequence[int]) -> list[Claim]:
    """Of Table 6's runs: optical is better for the d where buffers behind the merge point overflow, and as good elsewhere."""
    goodputs = _by_configuration(frame, ["d_ms", "strategy"], "after_repair")
    claims = []
    for d in sorted({key[0] for key in goodputs}):
        changes = _changes(goodputs, (d, "optical"), (d, "electrical"))
        where = "overflows" if d in overflowing else "does not"
        claims.append(
            _claim(
                MERGE,
                f"d {d}, {where}",
                "%",
                changes,
                "above" if d in overflowing else "within",
                MERGE_PERCENT,
            )
        )
    return claims


def cases(frame: pl.DataFrame) -> list[Claim]:
    """Of Fig. 19(a)'s runs, in points of the achievable goodput."""
    achieved = goodput.achievable(frame, "after_failure", published.CASE_STUDY_WINDOW_S)
    goodputs = _by_configuration(achieved, ["mechanism", "scenario"], "achieved_percent")

    def ahead(conclusion: str, one: str, other: str, scenario: str, expected: str) -> Claim:
        pairs = goodputs[one, scenario], goodputs[other, scenario]
        values = [pairs[0][seed] - pairs[1][seed] for seed in pairs[0]]
        return _claim(
            conclusion,
            f"{SHORT.get(one, one)} - {SHORT.get(other, other)}, {scenario}",
            "pts",
            values,
            expected,
            CLOSE_POINTS,
        )

    names = [scenario.name for scenario in published.SCENARIOS]
    return [
        *(ahead(LOCAL, "local", m, s, "above") for s in names for m in published.MECHANISMS if m != "local"),
        *(ahead(PATH, "path", "loopback", s, "within") for s in names),
        *(ahead(BETWEEN, "local", "loopbackvar", s, "above") for s in names[:3]),
        *(ahead(BETWEEN, "loopbackvar", "loopback", s, "above") for s in names[:3]),
        ahead(NOT_IN_D, "loopbackvar", "loopback", "D", "below"),
    ]


def rows(claims: Sequence[Claim]) -> pl.DataFrame:
    """One row per claim, each with its conclusion's verdict too."""
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
    """All of them, from the runs of sections 5 to 8; section 5.3 has fewer seeds."""
    fewer = replace(setting, seeds=setting.seeds[: published.OPTICAL_TIMING_SEEDS])
    return Finding(
        rows(
            [
                *shared(timing.measured(setting)),
                *alone(timing.measured_alone(fewer)),
                *longer(longer_path.measured(setting)),
                *back(switch_back.measured(setting), merge.overflowing(merge.measured(setting))),
                *cases(mechanisms.measured(setting)),
            ]
        )
    )


FASTER_MBPS = 34.0
"""Where a loop holds more packets in proportion to the buffers."""

FASTER_POINTS: list[Point] = [
    {**point, "end_s": published.FAILURE_S + published.CASE_STUDY_WINDOW_S, "curve_ms": 0.0}
    for point in mechanisms.POINTS
]


def find_faster(setting: Setting) -> Finding:
    """The conclusions of the case study at another rate: how much they depend on it."""
    points = goodput.with_defaults(FASTER_POINTS, rate_mbps=FASTER_MBPS)
    return Finding(rows(cases(setting.sweep("case_study_faster", goodput.MEASURE, points))))
