"""The bounds of the comparison with ns-3: their allowances, and when they hold. It does not need ns-3."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benches"))

from ns3_agreement import ALGORITHMS, METRICS, PLANS, UNANCHORED, Case, Managed, bounds, comparison, truncated_cubic

FULL_BUFFER = Case(1, 10, 40, 1.0)
SHORT_BUFFER = Case(1, 10, 40, 0.5)


def width(allowed: dict[str, tuple[float, float]], metric: str) -> tuple[float, float]:
    low, high = allowed[metric]
    return 1 - low, high - 1


def test_where_both_do_the_same_only_chance_is_allowed_for() -> None:
    allowed = bounds(FULL_BUFFER, "sack, RFC threshold", window=40, events=100)
    for metric, slack in {"throughput_mbps": 0.01, "loss_percent": 0.11, "window_segments": 0.031}.items():
        assert width(allowed, metric) == pytest.approx((slack, slack))


def test_fewer_losses_leave_more_to_chance() -> None:
    by_events = [bounds(FULL_BUFFER, "sack, RFC threshold", 40, events) for events in (1000, 100, 10, 1, 0)]
    for metric in ("loss_percent", "window_segments"):
        widths = [width(allowed, metric)[0] for allowed in by_events]
        assert widths[:4] == sorted(set(widths[:4]))
        assert widths[4] == widths[3]
    assert len({allowed["throughput_mbps"] for allowed in by_events}) == 1


@pytest.mark.parametrize("algorithm", ["newreno", "sack"])
def test_ns3s_lower_threshold_moves_one_side_by_a_segment_of_the_window(algorithm: str) -> None:
    usual = bounds(FULL_BUFFER, "sack, RFC threshold", 40, 100)
    allowed = bounds(FULL_BUFFER, algorithm, 40, 100)
    assert allowed["throughput_mbps"] == usual["throughput_mbps"]
    for metric, more in (("window_segments", 1 / 40), ("loss_percent", 3 / 40)):
        assert allowed[metric][0] == usual[metric][0]
        assert allowed[metric][1] == pytest.approx(usual[metric][1] + more)


def test_a_queue_that_runs_empty_costs_ns3_throughput_too() -> None:
    one = width(bounds(SHORT_BUFFER, "sack", 40, 100), "throughput_mbps")
    assert one == pytest.approx((0.01, 0.01 + 1 / 40))
    ten = width(bounds(Case(10, 10, 40, 0.5), "sack", 40, 100), "throughput_mbps")
    assert ten == pytest.approx((0.01, 0.01 + 1 / 400))


def numerically(window: float, steps: int = 100_000) -> tuple[float, float]:
    """Return the same ratios as ``truncated_cubic``, computed in steps.

    A cycle of CUBIC's curve is followed to its W_max and to a segment below it.
    """
    w_max = window / 0.925
    k_s = (w_max * 0.3 / 0.4) ** (1 / 3)
    curve = [w_max - 0.4 * (k_s * (1 - (step + 0.5) / steps)) ** 3 for step in range(steps)]
    before = [value for value in curve if value < w_max - 1]
    return len(before) / steps, (sum(curve) / steps) / (sum(before) / len(before) + 0.5)


@pytest.mark.parametrize("window", [15.0, 40.0, 150.0])
def test_cubics_curve_cut_to_whole_segments(window: float) -> None:
    assert truncated_cubic(window) == pytest.approx(numerically(window), rel=1e-4)


def test_large_windows_of_cubic_agree_and_tiny_ones_have_bounds_all_the_same() -> None:
    assert truncated_cubic(1e9) == pytest.approx((1, 1), abs=0.01)
    shorter, larger = truncated_cubic(1.0)
    assert shorter == pytest.approx(0.1)
    assert larger > 0
    low, high = bounds(FULL_BUFFER, "cubic", 40, 1000)["loss_percent"]
    assert low == pytest.approx(numerically(40)[0] - 0.101, rel=1e-3)
    assert high == pytest.approx(1.101)


def runs(ours: float, needless_percent: float = 0.0, part: str = "steady") -> pl.DataFrame:
    """Return a run of ns-3, and a run of ours whose throughput is ``ours`` times as high."""
    return pl.DataFrame(
        [
            {
                "case": FULL_BUFFER.name,
                "algorithm": "sack",
                "simulator": simulator,
                "seed": 1,
                "part": part,
                "throughput_mbps": 10.0 * factor,
                "goodput_mbps": 10.0 * factor,
                "loss_percent": 1.0,
                "window_segments": 40.0,
                "needless_percent": needless_percent,
                "recoveries": 100,
                "signals": 100,
            }
            for simulator, factor in (("ours", ours), ("ns-3", 1.0))
        ]
    )


def within(frame: pl.DataFrame) -> dict[str, bool | None]:
    return {row["metric"]: row["within"] for row in comparison(frame, [FULL_BUFFER]).iter_rows(named=True)}


def test_a_ratio_beyond_its_bound_is_outside() -> None:
    assert within(runs(1.009)) == dict.fromkeys(METRICS, True)
    assert within(runs(1.011)) == {"throughput_mbps": False, "loss_percent": True, "window_segments": True}
    assert within(runs(0.989))["throughput_mbps"] is False


def test_where_nothing_is_bounded_nothing_is_outside() -> None:
    assert within(runs(2.0, part="start")) == dict.fromkeys(METRICS)
    assert within(runs(2.0, needless_percent=1.1)) == dict.fromkeys(METRICS)


def test_each_algorithm_is_in_one_part() -> None:
    parts = [{algorithm for _, algorithms in plan for algorithm in algorithms} for plan in PLANS.values()]
    assert sorted(name for part in parts for name in part) == sorted(ALGORITHMS)


def test_what_has_no_anchor_is_shown_and_not_judged() -> None:
    (case, algorithm), metrics = next(iter(UNANCHORED.items()))
    frame = runs(1.0).with_columns(case=pl.lit(case), algorithm=pl.lit(algorithm))
    cases = [case for plan in PLANS.values() for grid, _ in plan for case in grid]
    found = {row["metric"]: row["within"] for row in comparison(frame, cases).iter_rows(named=True)}
    assert {metric for metric, within in found.items() if within is None} == set(metrics)


def test_bbr_may_be_a_percent_faster_than_ns3_and_have_its_extra_segments_less() -> None:
    allowed = bounds(FULL_BUFFER, "bbr", 45, 0)
    assert width(allowed, "throughput_mbps") == pytest.approx((0.01, 0.02))
    assert width(allowed, "window_segments") == pytest.approx((0.1, 0.05))


def test_red_leaves_more_to_chance_and_most_where_it_chose_few_packets() -> None:
    few, many = (bounds(FULL_BUFFER, "sack, RED with ECN", 40, 0, signals) for signals in (4, 400))
    assert width(few, "loss_percent") == pytest.approx((1.1, 1.1))
    assert width(many, "loss_percent") == pytest.approx((0.2, 0.2))
    assert few["window_segments"] == many["window_segments"] == pytest.approx((0.95, 1.05))
    # Only where RED drops does a recovery end lower in ns-3.
    dropped = bounds(FULL_BUFFER, "sack, RED", 40, 0, 400)
    assert dropped["window_segments"][1] == pytest.approx(1.075)


def test_thresholds_count_the_packet_that_waits_in_ns3s_device() -> None:
    red = Managed(minimum=1 / 6, maximum=1 / 2, max_p=0.1, weight=0.002, ecn=False)
    ours = red.ours(66)["red"]
    assert (ours["min_packets"], ours["max_packets"]) == (11, 33)
    assert {"--minimum=10", "--maximum=32", "--ecn=false"} <= set(red.ns3(66))
    # Marked is what finds more than 33 here, and 33 behind the one in the device there.
    assert Managed(minimum=1 / 2).ours(66) == {"mark_above": {"packets": 33}}
    assert {"--minimum=33", "--maximum=33", "--always=true"} <= set(Managed(minimum=1 / 2).ns3(66))
