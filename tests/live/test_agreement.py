"""One flow of the kernel's TCP through wall-clock links has the same first slow start and sawtooth as a modelled host's."""

from __future__ import annotations

import pytest

from holdfast.live.tests.agreement import BEGINNING, BEGINNING_WITH_HYSTART, STEADY, beginning, disturbance, steady
from holdfast.live.tests.tcp import Observation, Scenario, run_live, simulate


def undisturbed(scenario: Scenario) -> Observation:
    reasons = []
    for _ in range(4):
        seen = run_live(scenario)
        reason = disturbance(seen)
        if not reason:
            return seen
        reasons.append(reason)
    pytest.skip(f"the machine is too busy: {'; '.join(reasons)}")


@pytest.mark.parametrize("congestion", ["reno", "cubic"])
def test_the_kernel_and_the_model_agree(congestion: str) -> None:
    scenario = Scenario.model_validate({"congestion": congestion, "duration_s": 8})
    live = undisturbed(scenario)
    simulated = simulate(scenario)
    numbers = [steady(seen) | beginning(seen) for seen in (live, simulated)]
    first = BEGINNING_WITH_HYSTART if congestion == "cubic" else BEGINNING
    for name, bound in (STEADY | first).items():
        assert bound.twice().allows(numbers[0][name], numbers[1][name]), (name, numbers)
    # Nothing was compared with nothing.
    assert numbers[0]["goodput_mbps"] > 8
    assert numbers[0]["peak_window_segments"] > 50
    assert numbers[0]["first_retransmitted_segments"] > 0
