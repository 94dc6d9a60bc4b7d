"""Statistics against published tables and closed forms."""

from __future__ import annotations

import math
import statistics

import polars as pl
import pytest

from holdfast.errors import SweepError
from holdfast.statistics import (
    best,
    bootstrap_interval,
    mean_interval,
    paired,
    student_quantile,
    summary,
    wilson_interval,
)


@pytest.mark.parametrize(
    ("confidence", "degrees", "quantile"),
    # Closed forms for 1, 2 and 4 degrees of freedom, then the printed tables of Student's distribution.
    [
        (0.95, 1, math.tan(math.pi * 0.475)),
        (0.95, 2, 0.95 * math.sqrt(2 / (1 - 0.95**2))),
        (0.90, 2, 0.90 * math.sqrt(2 / (1 - 0.90**2))),
        (0.95, 3, 3.182446),
        (0.95, 4, 2.776445),
        (0.95, 5, 2.570582),
        (0.95, 10, 2.228139),
        (0.99, 10, 3.169273),
        (0.95, 30, 2.042272),
        (0.95, 149, 1.976013),
        (0.95, 1000, 1.962339),
        (0.95, 1_000_000, 1.959966),
    ],
)
def test_student_quantiles(confidence: float, degrees: int, quantile: float) -> None:
    assert student_quantile(confidence, degrees) == pytest.approx(quantile, abs=2e-6)


def test_the_two_ways_to_student_meet() -> None:
    assert student_quantile(0.95, 10_000) == pytest.approx(student_quantile(0.95, 10_001), abs=1e-7)


def test_mean_interval() -> None:
    # Mean 3, standard deviation sqrt(2.5), 4 degrees of freedom.
    low, high = mean_interval([1, 2, 3, 4, 5])
    assert (low + high) / 2 == pytest.approx(3)
    assert high - 3 == pytest.approx(2.776445 * math.sqrt(2.5) / math.sqrt(5), abs=1e-5)
    assert mean_interval([7.0]) == (-math.inf, math.inf)


def test_wilson_interval() -> None:
    z2 = statistics.NormalDist().inv_cdf(0.975) ** 2
    assert wilson_interval(0, 10) == (0.0, pytest.approx(z2 / (10 + z2)))
    assert wilson_interval(10, 10) == (pytest.approx(10 / (10 + z2)), 1.0)
    # Newcombe (Statistics in Medicine 17, 1998), table I: 81 of 263, and 15 of 148.
    assert wilson_interval(81, 263) == (pytest.approx(0.2553, abs=5e-5), pytest.approx(0.3662, abs=5e-5))
    assert wilson_interval(15, 148) == (pytest.approx(0.0624, abs=5e-5), pytest.approx(0.1605, abs=5e-5))
    with pytest.raises(SweepError, match="not a proportion"):
        wilson_interval(3, 2)


def test_bootstrap() -> None:
    values = [float(i) for i in range(101)]
    low, high = bootstrap_interval(values, statistics.fmean)
    reach = 1.96 * statistics.stdev(values) / math.sqrt(101)
    assert low == pytest.approx(50 - reach, abs=1)
    assert high == pytest.approx(50 + reach, abs=1)
    assert bootstrap_interval(values) == bootstrap_interval(values)
    assert bootstrap_interval(values, seed=2) != bootstrap_interval(values)
    assert bootstrap_interval([4.0] * 9) == (4.0, 4.0)


GOODPUT = pl.DataFrame(
    {
        "d": [1, 1, 1, 2, 2, 2, 5, 5, 5],
        "seed": [1, 2, 3] * 3,
        "good": [10.0, 20.0, 40.0, 11.0, 18.0, 44.0, 5.0, 10.0, 20.0],
    }
)


def test_summary() -> None:
    rows = summary(GOODPUT, ["d"], "good").to_dicts()
    assert [row["d"] for row in rows] == [1, 2, 5]
    assert [row["n"] for row in rows] == [3, 3, 3]
    assert rows[0]["mean"] == pytest.approx(70 / 3)
    assert rows[0]["median"] == 20
    assert rows[0]["sd"] == pytest.approx(statistics.stdev([10, 20, 40]))
    assert (rows[0]["low"] + rows[0]["high"]) / 2 == pytest.approx(70 / 3)
    assert summary(GOODPUT, [], "good")["n"].to_list() == [9]


def test_paired_comparison() -> None:
    ratios = paired(GOODPUT, ["d"], "good", {"d": 1}, ratio=True).to_dicts()
    assert ratios[0]["mean"] == ratios[0]["sd"] == ratios[0]["worse"] == 0
    # +10 %, -10 %, +10 %
    assert ratios[1]["mean"] == pytest.approx(0.1 / 3)
    assert ratios[1]["worse"] == pytest.approx(1 / 3)
    assert (ratios[1]["worse_low"], ratios[1]["worse_high"]) == wilson_interval(1, 3)
    # Exactly half, whatever the seed: the interval vanishes, though the goodputs differ by a factor of four.
    assert ratios[2]["low"] == ratios[2]["high"] == -0.5
    differences = paired(GOODPUT, ["d"], "good", {"d": 1}).to_dicts()
    assert differences[2]["mean"] == pytest.approx(-35 / 3)


def test_paired_comparison_within_groups() -> None:
    both = pl.concat(
        [
            GOODPUT.with_columns(delta=pl.lit(0)),
            GOODPUT.with_columns(delta=pl.lit(50), good=pl.col("good") * pl.col("d")),
        ]
    )
    rows = paired(both, ["d", "delta"], "good", {"d": 1}, ratio=True)
    means = {(row["d"], row["delta"]): row["mean"] for row in rows.to_dicts()}
    assert means[1, 0] == means[1, 50] == 0
    assert means[5, 0] == pytest.approx(-0.5)
    assert means[5, 50] == pytest.approx(1.5)


def test_which_is_best() -> None:
    rows = best(GOODPUT, over="d", value="good").to_dicts()
    assert [(row["d"], row["n"], row["best"]) for row in rows] == [
        (1, 3, pytest.approx(1 / 3)),
        (2, 3, pytest.approx(2 / 3)),
        (5, 3, 0),
    ]
    assert (rows[2]["best_low"], rows[2]["best_high"]) == wilson_interval(0, 3)
    ties = GOODPUT.with_columns(good=pl.lit(1.0))
    assert best(ties, over="d", value="good")["best"].to_list() == [1, 0, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: summary(GOODPUT, ["x"], "good"), "there is no column 'x'"),
        (lambda: summary(GOODPUT, ["d"], "bad"), "there is no column 'bad'"),
        (lambda: summary(GOODPUT.clear(), ["d"], "good"), "no runs"),
        (lambda: summary(GOODPUT.with_columns(good=pl.lit(math.nan)), ["d"], "good"), "not finite"),
        (lambda: paired(GOODPUT, ["d"], "good", {"d": 9}), "no row is the baseline"),
        (lambda: paired(GOODPUT, ["d"], "good", {"delta": 9}), "have to be among"),
        (lambda: paired(GOODPUT.head(8).tail(7), ["d"], "good", {"d": 1}), "seed 1 has no baseline"),
        (
            lambda: paired(GOODPUT.with_columns(good=pl.lit(0)), ["d"], "good", {"d": 1}, ratio=True),
            "baseline's good is 0",
        ),
        (lambda: student_quantile(0.95, 0), "degrees of freedom"),
    ],
)
def test_what_has_no_statistics(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(SweepError, match=message):
        call()
