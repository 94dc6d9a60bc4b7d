"""The paper's statements in the text (:data:`~holdfast.experiments.gmpls_tcp_2001.published.STATEMENTS`), each judged by the runs.

A statement is one or more claims of :mod:`~holdfast.experiments.gmpls_tcp_2001.conclusions`, each a number with its 95 % interval
against a bound that is stated here with its reason. It holds if all its claims hold, is refuted if one is refuted, and is open
otherwise; for a claim that is open there is the number of seeds that would decide if the number stayed what it is. Intervals of
times and of quotients are a bootstrap's over the seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import Any

import polars as pl

from holdfast import statistics
from holdfast.experiments import Finding, Setting
from holdfast.experiments.gmpls_tcp_2001 import (
    conclusions,
    goodput,
    loads,
    longer_path,
    mechanisms,
    merge,
    published,
    runs,
    switch_back,
    timing,
)
from holdfast.experiments.gmpls_tcp_2001.conclusions import Claim, by_configuration, changes, mean_claim

CURVE_SEEDS = 20
"""The number of seeds of the runs whose curves are looked at: the first ones."""

DIP_SEEDS = 60
"""Half of them say when the dip is deepest, the others how deep it is then."""

TINY_POINTS = 5.0
"""Goodput has settled from when on it stays within this of its last second: the paper calls that a tiny drop (section 7.2)."""

DIP_REACH_POINTS = 2.5
"""About 5 % is nearer to 5 than to 0 or 10."""

ORDER_OF_A_SECOND_S = 0.5
"""A longer time is nearer to a second than to none."""

THREE_S, THREE_REACH_S = 3.0, 0.5
"""Times that round to three seconds."""

ACCEPTABLE_PERCENT = -10.0
HALF_LONGER_D_MS = 31
"""2 * (31 - 1) ms is half of 120 ms."""

SIMILAR_FACTOR = 10**0.5
"""Two harms are of the same order of magnitude if neither is more than half an order larger."""

LOAD_REACH_PERCENT = 10.0
"""Almost 180 % is nearer to 180 than to 160, the same with access links of 80 %."""

BEFORE_REACH_PERCENT = 1.0
"""A burst in a queue of the access link may leave within the second that is counted."""

RATE_MBPS: float = runs.UNKNOWNS["rate_mbps"]  # type: ignore[assignment]
RESAMPLES = 1000

Frames = Mapping[str, pl.DataFrame]
"""The runs by name, as :func:`measured` returns them."""


def curves_points() -> list[dict[str, Any]]:
    """Return the parameters of the switch-back's simulations for d = 10 and 20 ms, where the paper sees a small drop.

    Each simulation also records a curve, with a value every ``CURVE_MS`` milliseconds.
    """
    return [{**point, "curve_ms": published.CURVE_MS} for point in switch_back.points((10, 20), published.SWITCH_BACK)]


HALF_LONGER = longer_path.points((HALF_LONGER_D_MS,), (longer_path.DELTA_MS,), end_s=6.5, curve_ms=0.0)
POINT_COUNT = len(curves_points()) + len(HALF_LONGER) + len(loads.POINTS)
"""The points that no other part has."""


def measured(setting: Setting) -> dict[str, pl.DataFrame]:
    """Run the simulations by which the statements are judged; return the runs by name.

    Runs that other parts also need are included.
    """
    alone, dips, few = (
        replace(setting, seeds=setting.seeds[:count])
        for count in (published.OPTICAL_TIMING_SEEDS, DIP_SEEDS, CURVE_SEEDS)
    )
    shared, longer, cases = timing.measured(setting), longer_path.measured(setting), mechanisms.measured(setting)
    return {
        "timing": shared,
        "timing_low_access": timing.measured_low_access(setting),
        "timing_optical": timing.measured_alone(alone),
        "rtt_change": longer,
        "switch_back": switch_back.measured(setting),
        "merge": merge.measured(setting),
        "case_study": cases,
        "case_study_repair": cases,
        "timing_curves": timing_curves(first(shared, CURVE_SEEDS)),
        "recovery": recovery_curves(first(longer, CURVE_SEEDS)),
        "dips": dip_curves(dips.sweep("switch_back_curves", goodput.MEASURE, goodput.with_defaults(curves_points()))),
        "half_longer": dips.sweep("half_longer", goodput.MEASURE, goodput.with_defaults(HALF_LONGER)),
        "loads": loads.measured(few),
    }


def first(frame: pl.DataFrame, count: int) -> pl.DataFrame:
    """Return the runs of the ``count`` lowest seeds."""
    return frame.filter(pl.col("seed").is_in(sorted(frame["seed"].unique())[:count]))


def timing_curves(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row per run and set of flows, with its packets per 100 ms from the failure on, summed from bins of 10 ms."""
    each = round(published.CURVE_MS / published.TIMING_CURVE_MS)
    parts = []
    for name in ("switched", "fixed"):
        bins = [[sum(b[i : i + each]) for i in range(0, len(b), each)] for b in frame[f"{name}_curve"].to_list()]
        parts.append(
            frame.select("delta_ms", pl.lit(name).alias("flows"), "seed").with_columns(packets=pl.Series(bins))
        )
    return pl.concat(parts)


def recovery_curves(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row per run of section 6 with d = 100 ms: its packets per 100 ms from the failure on."""
    return frame.filter(pl.col("d_ms") == 100).select("delta_ms", "seed", packets="switched_curve")


def dip_curves(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row per run of section 7, with its packets per 100 ms from the switch-back on."""
    skipped = round((published.REPAIR_S - published.FAILURE_S) * 1000 / published.CURVE_MS)
    return frame.select("d_ms", "strategy", "seed", packets=pl.col("switched_curve").list.slice(skipped))


def percent_of_link(packets: float) -> float:
    """Return ``packets`` in an interval of a curve as goodput in percent of the backbone's rate."""
    return 100.0 * packets * 8 * runs.PACKET_BYTES / (RATE_MBPS * 1e6 * published.CURVE_MS / 1000)


def settled_s(curve: Sequence[float], reach: float = TINY_POINTS) -> float:
    """Return from which time in s a curve stays within ``reach`` percentage points of the mean of its last second.

    The curve is in percent. 0 if it always is.
    """
    level = _level(curve)
    for i in range(len(curve), 0, -1):
        if abs(curve[i - 1] - level) > reach:
            return i * published.CURVE_MS / 1000
    return 0.0


def arrived_s(curve: Sequence[float], reach: float = TINY_POINTS) -> float:
    """Return the time in s at which a curve first reaches the mean of its last second less ``reach`` percentage points."""
    level = _level(curve)
    return next(i for i, value in enumerate(curve) if value >= level - reach) * published.CURVE_MS / 1000


READINGS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "first within 5 points": arrived_s,
    "within 10 points for good": lambda curve: settled_s(curve, 2 * TINY_POINTS),
    "within 5 points for good": settled_s,
}
"""When goodput has recovered, or is stable: the paper does not say what it means by it."""

UNSAID: Mapping[str, Sequence[str]] = {
    "settling": ("within 10 points for good", "within 5 points for good"),
    "recovery": tuple(READINGS),
}
"""Statements with more than one reading. A verdict is what all readings say."""


def _level(curve: Sequence[float]) -> float:
    return fmean(curve[-round(1000 / published.CURVE_MS) :])


def _bootstrapped(
    statement: str,
    about: str,
    unit: str,
    seeds: int,
    statistic: Callable[[Sequence[int]], float],
    expected: str,
    **bounds: float,
) -> Claim:
    """Return a claim on ``statistic``, a function of the places of some seeds, with a bootstrap interval over the seeds."""

    def again(chosen: Sequence[float]) -> float:
        return statistic([int(i) for i in chosen])

    low, high = (
        statistics.bootstrap_interval(range(seeds), again, resamples=RESAMPLES) if seeds > 1 else (-math.inf, math.inf)
    )
    return Claim(statement, about, unit, statistic(range(seeds)), low, high, expected, seeds=seeds, **bounds)


def _mean_curve(curves: Sequence[Sequence[float]], chosen: Sequence[int]) -> list[float]:
    return [percent_of_link(fmean(values)) for values in zip(*(curves[i] for i in chosen), strict=True)]


def _all_delays_better(frames: Frames) -> list[Claim]:
    return conclusions.shared(frames["timing"])


def _settling(frames: Frames) -> list[Claim]:
    claims = []
    for reading in UNSAID["settling"]:
        for (delta_ms, flows), rows in frames["timing_curves"].group_by(["delta_ms", "flows"], maintain_order=True):
            claims.append(
                _until(
                    reading,
                    f"{reading}, delta {delta_ms}, {flows}",
                    rows["packets"].to_list(),
                    float(delta_ms) / 1000,
                    "above",
                    bound=ORDER_OF_A_SECOND_S,
                )
            )
    return claims


def _until(
    reading: str, about: str, curves: Sequence[Sequence[float]], start_s: float, expected: str, **bounds: float
) -> Claim:
    """Return a claim on the time in s that ``reading`` finds on the seeds' mean curve, minus ``start_s``.

    The curve and ``start_s`` count from the failure.
    """

    def time_s(chosen: Sequence[int]) -> float:
        return READINGS[reading](_mean_curve(curves, chosen)) - start_s

    return _bootstrapped(reading, about, "s", len(curves), time_s, expected, **bounds)


def _loads(frames: Frames) -> list[Claim]:
    claims = []
    for (percent,), rows in frames["loads"].group_by(["access_percent"], maintain_order=True):
        most, met = rows["before_percent"].to_list(), rows["met_percent"].to_list()
        about = f"access links of {percent:g} %: "
        claims += [
            mean_claim("", about + "most loaded before", "%", most, "below", percent + BEFORE_REACH_PERCENT),
            mean_claim("", about + "LSR5-LSR6, switched at once", "%", met, "within", LOAD_REACH_PERCENT, 2 * percent),
        ]
    return claims


def _low_access(frames: Frames) -> list[Claim]:
    best = [_best_delta_ms(frames[name]) for name in ("timing_low_access", "timing")]
    nearer = [best[0][seed] - best[1][seed] for seed in best[0]]
    return [mean_claim("", "best delta with 60 % - with 90 %", "ms", nearer, "below")]


def _best_delta_ms(frame: pl.DataFrame) -> dict[int, float]:
    """Return, by seed, the delay delta with the highest goodput after the failure, in ms; of equal ones the shortest."""
    best = frame.sort(["seed", "after_failure", "delta_ms"], descending=[False, True, False]).group_by(
        "seed", maintain_order=True
    )
    return {row["seed"]: float(row["delta_ms"]) for row in best.first().iter_rows(named=True)}


def _too_fast(frames: Frames) -> list[Claim]:
    goodputs = by_configuration(frames["timing"], ["delta_ms"], "after_failure")
    return [
        mean_claim("", f"delta {d[0]} - 50", "%", changes(goodputs, d, (50,)), "below") for d in goodputs if d[0] > 50
    ]


def _faster_better(frames: Frames) -> list[Claim]:
    goodputs = by_configuration(frames["timing_optical"], ["delta_ms"], "after_failure")
    return [
        mean_claim("", f"delta {b[0]} - {a[0]}", "%", changes(goodputs, b, a), "below")
        for a, b in pairwise(sorted(goodputs))
    ]


def _half_longer(frames: Frames) -> list[Claim]:
    fast = frames["rtt_change"].filter(pl.col("delta_ms") == longer_path.DELTA_MS)
    goodputs = dict(by_configuration(fast, ["d_ms"], "after_failure"))
    goodputs |= by_configuration(frames["half_longer"], ["d_ms"], "after_failure")
    return [
        mean_claim(
            "", f"d {d}, {(d - 1) / 0.6:.0f} % longer", "%", changes(goodputs, (d,), (1,)), "above", ACCEPTABLE_PERCENT
        )
        for d in (20, HALF_LONGER_D_MS)
    ]


def _recovery(frames: Frames) -> list[Claim]:
    claims = []
    for reading in UNSAID["recovery"]:
        for (delta_ms,), rows in frames["recovery"].group_by(["delta_ms"], maintain_order=True):
            curves = rows["packets"].to_list()
            bounds = {"bound": THREE_REACH_S, "centre": THREE_S}
            claims.append(_until(reading, f"{reading}, delta {delta_ms}", curves, 0.0, "within", **bounds))
    return claims


_Configuration = tuple[int, int]
"""A configuration: the backup's length d and the switching delay delta."""

SAME_SIZE: tuple[tuple[_Configuration, _Configuration, _Configuration], ...] = (
    ((10, 5), (100, 5), (10, 100)),
    ((1, 5), (100, 5), (1, 100)),
    ((1, 5), (50, 5), (1, 50)),
)
"""From where, to a longer path, to a longer delay. The first is that of section 8.2."""


def _path_as_delay(frames: Frames) -> list[Claim]:
    goodputs = by_configuration(frames["rtt_change"], ["d_ms", "delta_ms"], "after_failure")
    claims = []
    for start, path, delay in SAME_SIZE:
        base, longer, slower = (list(goodputs[key].values()) for key in (start, path, delay))

        def octaves(chosen: Sequence[int], base: Any = base, longer: Any = longer, slower: Any = slower) -> float:
            harms = [sum(base[i] - worse[i] for i in chosen) for worse in (longer, slower)]
            return math.log2(harms[0] / harms[1]) if min(harms) > 0 else math.copysign(math.inf, harms[0] - harms[1])

        about = f"log2 of the harm of d {path[0]} by that of delta {delay[1]}, from d {start[0]}, delta {start[1]}"
        claims.append(
            _bootstrapped("", about, "octaves", len(base), octaves, "within", bound=math.log2(SIMILAR_FACTOR))
        )
    return claims


def _alike(frames: Frames) -> list[Claim]:
    goodputs = by_configuration(frames["switch_back"], ["d_ms", "strategy"], "after_repair")
    pairs = (("optical", "electrical"), ("electrical", "none"), ("optical", "none"))
    return [
        mean_claim(
            "", f"{a} - {b}, d {d}", "%", changes(goodputs, (d, a), (d, b)), "within", published.SWITCH_BACK_POINTS
        )
        for d in (1, 2)
        for a, b in pairs
    ]


def _dip(frames: Frames) -> list[Claim]:
    claims = []
    for (d,), rows in frames["dips"].group_by(["d_ms"], maintain_order=True):
        of = {key[0]: found.sort("seed")["packets"].to_list() for key, found in rows.group_by(["strategy"])}
        levels = [fmean(curve) for curve in of["none"]]
        depth = {
            name: deepest(
                [
                    [percent_of_link(level - value) for value in curve[:DIP_BINS]]
                    for curve, level in zip(of[name], levels, strict=True)
                ]
            )
            for name in ("electrical", "optical")
        }
        more = [b - a for a, b in zip(depth["electrical"], depth["optical"], strict=True)]
        claims += [
            mean_claim("", f"electrical, d {d}", "pts", depth["electrical"], "within", DIP_REACH_POINTS, 5.0),
            mean_claim("", f"optical - electrical, d {d}", "pts", more, "above"),
        ]
    return claims


DIP_BINS = round(500 / published.CURVE_MS)
"""The bins in which the dip is looked for: within half a second of the switch-back."""


def deepest(drops: Sequence[Sequence[float]]) -> list[float]:
    """Return every seed's drop in the interval in which the mean drop is deepest.

    The deepest of several means is biased towards too deep, so each half of the seeds is measured where the other half is deepest.
    """
    halves = [drops[::2], drops[1::2] or drops]
    found: dict[int, float] = {}
    for half, other in ((0, 1), (1, 0)):
        where = max(range(len(drops[0])), key=lambda i, other=other: fmean(seed[i] for seed in halves[other]))  # type: ignore[misc]
        found |= {i: drops[i][where] for i in range(half, len(drops), 2)}
    return [found[i] for i in sorted(found)]


def _overflow(frames: Frames) -> list[Claim]:
    what = {merge.MERGE_POINT: "at LSR2-LSR3", merge.BEHIND: "at LSR2-LSR3 or LSR3-B"}
    seeds = frames["merge"]["seed"].n_unique()
    return [
        Claim(
            "",
            f"d {o.d_ms}, {what[where]}",
            "% of seeds",
            o.percent,
            o.low,
            o.high,
            "above",
            merge.OVERFLOWING_PERCENT,
            seeds=seeds,
        )
        for where in merge.LINKS
        for o in merge.overflows(frames["merge"], where)
        if o.d_ms >= 50
    ]


def _local_best(frames: Frames) -> list[Claim]:
    return [c for c in conclusions.cases(frames["case_study"]) if c.conclusion in (conclusions.LOCAL, conclusions.PATH)]


def _variant(frames: Frames) -> list[Claim]:
    return [
        c
        for c in conclusions.cases(frames["case_study"])
        if c.conclusion in (conclusions.BETWEEN, conclusions.NOT_IN_D)
    ]


def _repair(frames: Frames) -> list[Claim]:
    return conclusions.ahead(
        frames["case_study_repair"],
        "after_repair",
        published.GOODPUT_WINDOW_S,
        [
            *((one, other) for one in ("local",) for other in published.MECHANISMS if other != one),
            ("path", "loopback"),
            ("loopbackvar", "loopback"),
        ],
    )


def _steps(frames: Frames) -> list[Claim]:
    return [c for c in conclusions.longer(frames["rtt_change"]) if c.conclusion == conclusions.WITH_DELTA]


def _advantage(frames: Frames) -> list[Claim]:
    claims = conclusions.back(frames["switch_back"], merge.overflows(frames["merge"], merge.BEHIND))
    goodputs = by_configuration(frames["switch_back"], ["d_ms", "strategy"], "after_repair")
    far = changes(goodputs, (100, "optical"), (100, "electrical"))
    return [
        *(claim for claim in claims if claim.conclusion == conclusions.ELECTRICAL),
        mean_claim("", "optical - electrical, d 100", "%", far, "above"),
    ]


JUDGES: Mapping[str, Callable[[Frames], list[Claim]]] = {
    "all_delays_better": _all_delays_better,
    "settling": _settling,
    "loads": _loads,
    "low_access": _low_access,
    "too_fast": _too_fast,
    "faster_better": _faster_better,
    "half_longer": _half_longer,
    "recovery": _recovery,
    "path_as_delay": _path_as_delay,
    "steps": _steps,
    "alike": _alike,
    "dip": _dip,
    "advantage": _advantage,
    "overflow": _overflow,
    "local_best": _local_best,
    "variant": _variant,
    "repair": _repair,
}
"""The function that judges each statement, by the statement's name."""


def overall(statement: str, claims: Sequence[Claim]) -> str:
    """Return the verdict of ``statement`` from its claims.

    If the paper leaves the statement's meaning open, it is open unless all readings agree.
    """
    readings = UNSAID.get(statement)
    if readings is None:
        return conclusions.overall("", claims)
    verdicts = {
        conclusions.overall("", [claim for claim in claims if claim.conclusion == reading]) for reading in readings
    }
    return verdicts.pop() if len(verdicts) == 1 else conclusions.UNDECIDED


def judge(frames: Frames) -> pl.DataFrame:
    """Return a row per claim, with its own verdict, and in ``overall`` the verdict of its statement."""
    rows: list[dict[str, Any]] = []
    for statement in published.STATEMENTS:
        claims = JUDGES[statement.name](frames)
        rows += [
            {
                "statement": statement.name,
                "overall": overall(statement.name, claims),
                "about": claim.about,
                "verdict": claim.verdict,
                "bound": claim.in_words,
                "seeds_needed": claim.seeds_needed,
                "quantity": claim.quantity,
                "ours": claim.ours,
                "low": claim.low,
                "high": claim.high,
            }
            for claim in claims
        ]
    return pl.DataFrame(rows, infer_schema_length=None, schema_overrides={"seeds_needed": pl.Int64})


def find(setting: Setting) -> Finding:
    """Run the simulations that the statements are about, and return a row per claim with its verdict."""
    return Finding(judge(measured(setting)))
