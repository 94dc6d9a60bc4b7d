"""The metrics that compare live and simulated TCP, on simulations alone; tests/live has the comparison."""

from __future__ import annotations

import dataclasses

import polars as pl
import pytest

from holdfast.errors import HoldfastError
from holdfast.live.tests.agreement import BACK, CUT, Bound, after_cut, beginning, disturbance, rise, steady
from holdfast.live.tests.tcp import FRAME_PAYLOAD_BYTES, Observation, Scenario, simulate
from holdfast.traffic import TcpOptions


def changed(scenario: Scenario, **options: object) -> TcpOptions:
    return scenario.options().changed(TcpOptions.model_validate(options))


@pytest.fixture(scope="module")
def one_flow() -> Observation:
    return simulate(Scenario(congestion="reno", duration_s=12))


def test_rise_sums_counters_of_flows_between_two_times() -> None:
    frame = pl.DataFrame({"flow": [0, 0, 0, 1, 1], "time_s": [0.0, 1.0, 2.0, 1.0, 2.0], "count": [5, 10, 40, 100, 300]})
    assert rise(frame, "count", 1.0, 2.0) == 30 + 200
    assert rise(frame, "count", 0.5, 1.5) == 5 + 100
    assert rise(frame.drop("flow").head(3), "count", 0.0, 2.0) == 35


def test_a_saturated_bottleneck_by_three_ways_of_counting(one_flow: Observation) -> None:
    numbers = steady(one_flow)
    assert numbers["goodput_mbps"] == pytest.approx(10 * FRAME_PAYLOAD_BYTES / 1538, rel=0.01)
    # The queue by Little's law, beside what the sender measured: round trips without the way itself.
    srtt_ms = one_flow.sent.filter(pl.col("time_s") >= 5)["srtt_ms"].mean()
    assert isinstance(srtt_ms, float)
    assert numbers["queueing_ms"] == pytest.approx(srtt_ms - 42.5, abs=3)
    # And the window fills the path and that queue.
    segments = 10e6 / 8 / 1538 * (42.5 + numbers["queueing_ms"]) / 1000
    assert numbers["window_segments"] == pytest.approx(segments, rel=0.05)


def test_the_beginning_is_a_doubling_window_that_overshoots(one_flow: Observation) -> None:
    numbers = beginning(one_flow)
    # Lost is what one round trip of doubling sends beyond path and queue: 33 and 33 segments.
    assert 100 < numbers["peak_window_segments"] < 140
    assert 50 < numbers["first_retransmitted_segments"] < 90


def test_hystart_in_both_forms_and_none() -> None:
    scenario = Scenario(congestion="cubic", duration_s=5, rtt_ms=80)
    peaks = {
        hystart: beginning(simulate(scenario, options=scenario.options().changed(TcpOptions(hystart=hystart))))[
            "peak_window_segments"
        ]
        for hystart in (False, True, "classic")
    }
    # The classic form leaves slow start at once, HyStart++ grows more slowly for some rounds.
    assert peaks["classic"] < 150 < peaks[False], peaks
    assert peaks["classic"] < peaks[True] < peaks[False], peaks


def test_quick_acknowledgments_come_first() -> None:
    scenario = Scenario(congestion="reno", duration_s=0.2, sample_ms=5)
    # The first ten segments arrive 1.2 ms apart; the window grows with each acknowledgment, or with every second.
    steps = {
        quick: simulate(scenario, options=changed(scenario, quick_ack_segments=quick)).sent["cwnd_bytes"].to_list()
        for quick in (0, 1000)
    }
    assert steps[0] != steps[1000]
    assert all(a <= b for a, b in zip(steps[0], steps[1000], strict=True))


def test_what_a_cut_costs_depends_on_who_reacts() -> None:
    numbers = {
        reroute: after_cut(
            simulate(Scenario(congestion="reno", duration_s=14, failure_s=6, repair_s=8, reroute=reroute))
        )
        for reroute in (True, False)
    }
    assert numbers[True]["stall_s"] < 0.6
    assert numbers[False]["stall_s"] > 2
    assert numbers[False]["cut_timeouts"] >= 2
    assert all(n["recovery_s"] < 4 for n in numbers.values()), numbers
    assert numbers[True].keys() == (CUT | BACK).keys()


def test_the_same_seed_gives_the_same_observation() -> None:
    scenario = Scenario(congestion="cubic", flows=3, duration_s=3)
    first, again, other = (simulate(scenario, seed) for seed in (1, 1, 2))
    assert first.sent.equals(again.sent)
    assert first.bottleneck.equals(again.bottleneck)
    assert not first.sent.equals(other.sent)


def test_a_bound_is_the_larger_of_two() -> None:
    bound = Bound(0.1, 2.0, "ms", "delay")
    assert bound.allows(10, 12)
    assert not bound.allows(10, 12.1)
    assert bound.allows(100, 91)
    assert not bound.allows(100, 89)
    assert not bound.allows(100, float("nan"))


def test_a_late_clock_or_late_hosts_disturb(one_flow: Observation) -> None:
    assert disturbance(one_flow) == ""
    assert "mean" in disturbance(dataclasses.replace(one_flow, mean_lateness_ms=0.5))
    assert "21 ms" in disturbance(dataclasses.replace(one_flow, max_lateness_ms=21))
    assert "samples" in disturbance(dataclasses.replace(one_flow, late_samples=0.02))


def test_options_that_make_no_sense() -> None:
    scenario = Scenario(congestion="reno", duration_s=1)
    with pytest.raises(HoldfastError, match="delayed"):
        simulate(scenario, options=TcpOptions(delayed_ack_ms=0, quick_ack_segments=5))
    with pytest.raises(ValueError, match="before the end"):
        Scenario(congestion="reno", duration_s=5, failure_s=3, repair_s=6)
    with pytest.raises(ValueError, match="come together"):
        Scenario(congestion="reno", failure_s=3)
