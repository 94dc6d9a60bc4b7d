"""The paper's conclusions, each as numbers with 95 % intervals and what these say: holds, refuted, or undecided.

A verdict is computed. A claim that a number is above (or below) zero holds if the whole interval is, is refuted if the whole
interval is on the other side, and is undecided otherwise. A conclusion of several claims holds if all do, and is refuted if one is
(:data:`SOME`: if all are). What runs produce the numbers is the other parts' business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any

import polars as pl

from holdfast import statistics
from holdfast.experiments import Finding, Setting
from holdfast.experiments.gmpls_tcp_2001 import goodput, longer_path, mechanisms, published, switch_back, timing

HOLDS, REFUTED, UNDECIDED = "holds", "refuted", "undecided"

CLOSE_POINTS = 5.0
"""Path and loop-back are close if they differ by less than so many points of the achievable goodput."""

MERGE_PERCENT = 1.0
"""Merging does not matter if optical and electrical differ by less."""

LARGE_D_MS = (20, 50, 100)


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


SOME = "some delay beats delta = 0 where the backup is shared"
OPTICAL = "delta = 0 is best where the backup is not shared"
WITH_D = "the penalty grows with d"
WITH_DELTA = "the penalty grows with delta"
MERGE = "merging matters only when buffers overflow"
LOCAL = "local is best"
PATH = "path and loop-back are close"
BETWEEN = "loopbackvar lies between local and loop-back in A, B and C"
NOT_IN_D = "and not in D"
CONCLUSIONS = (SOME, OPTICAL, WITH_D, WITH_DELTA, MERGE, LOCAL, PATH, BETWEEN, NOT_IN_D)


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
    return [
        _claim(SOME, f"delta = {d[0]} ms", "goodput_change_percent", _changes(goodputs, d, (0,)), "above")
        for d in goodputs
        if d != (0,)
    ]


def alone(frame: pl.DataFrame) -> list[Claim]:
    """Of section 5.3's runs: every delay against none."""
    goodputs = _by_configuration(frame, ["delta_ms"], "after_failure")
    return [
        _claim(OPTICAL, f"delta = {d[0]} ms", "goodput_change_percent", _changes(goodputs, d, (0,)), "below")
        for d in goodputs
        if d != (0,)
    ]


def longer(frame: pl.DataFrame) -> list[Claim]:
    """Of Table 5's runs: each step of d for each delta; for each d from 20 ms on, the largest delta against the smallest."""
    goodputs = _by_configuration(frame, ["d_ms", "delta_ms"], "after_failure")
    ds, deltas = (sorted({key[i] for key in goodputs}) for i in (0, 1))
    penalties = {key: _changes(goodputs, key, (1, key[1])) for key in goodputs}

    def difference(one: tuple[Any, ...], other: tuple[Any, ...]) -> list[float]:
        return [a - b for a, b in zip(penalties[one], penalties[other], strict=True)]

    claims = [
        _claim(WITH_D, f"d = {b} against {a} ms, delta = {t} ms", "points", difference((b, t), (a, t)), "below")
        for t in deltas
        for a, b in pairwise(ds)
        if a >= 2
    ]
    return claims + [
        _claim(
            WITH_DELTA,
            f"d = {d} ms, delta = {deltas[-1]} against {deltas[0]} ms",
            "points",
            difference((d, deltas[-1]), (d, deltas[0])),
            "below",
        )
        for d in LARGE_D_MS
        if d in ds
    ]


def back(frame: pl.DataFrame, overflowing: Sequence[int]) -> list[Claim]:
    """Of Table 6's runs: optical is better where the merge point's buffer overflows, and not better elsewhere."""
    goodputs = _by_configuration(frame, ["d_ms", "strategy"], "after_repair")
    claims = []
    for d in sorted({key[0] for key in goodputs}):
        changes = _changes(goodputs, (d, "optical"), (d, "electrical"))
        where = "overflows" if d in overflowing else "no overflow"
        claims.append(
            _claim(
                MERGE,
                f"optical against electrical, d = {d} ms, {where}",
                "goodput_change_percent",
                changes,
                "above" if d in overflowing else "within",
                MERGE_PERCENT,
            )
        )
    return claims


def overflowing(points: Sequence[Mapping[str, Any]]) -> list[int]:
    """For which d the merge point's buffer overflows at full load: what both inputs bring in d - 1 ms beyond the link's rate.

    The access links fill one input; the other brings as much again until the backup is empty.
    """
    found = []
    for point in points:
        excess = (2 * point["access_percent"] / 100 - 1) * point["rate_mbps"] * 1e6 / (8 * 1000)
        if excess * (point["d_ms"] - published.LINK_DELAY_MS) / 1000 > point["buffer_packets"]:
            found.append(point["d_ms"])
    return sorted(set(found))


def cases(frame: pl.DataFrame) -> list[Claim]:
    """Of Fig. 19(a)'s runs, in points of the achievable goodput."""
    achieved = goodput.achievable(frame, "after_failure", published.CASE_STUDY_WINDOW_S)
    goodputs = _by_configuration(achieved, ["mechanism", "scenario"], "achieved_percent")

    def ahead(conclusion: str, one: str, other: str, scenario: str, expected: str) -> Claim:
        pairs = goodputs[one, scenario], goodputs[other, scenario]
        values = [pairs[0][seed] - pairs[1][seed] for seed in pairs[0]]
        return _claim(conclusion, f"{one} - {other}, {scenario}", "points", values, expected, CLOSE_POINTS)

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
                "together": overall(claim.conclusion, of[claim.conclusion]),
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
    """All of them, from the runs of sections 5 to 8."""
    return Finding(
        rows(
            [
                *shared(timing.measured(setting)),
                *alone(timing.measured_alone(setting)),
                *longer(longer_path.measured(setting)),
                *back(switch_back.measured(setting), overflowing(goodput.with_defaults(switch_back.POINTS))),
                *cases(mechanisms.measured(setting)),
            ]
        )
    )
