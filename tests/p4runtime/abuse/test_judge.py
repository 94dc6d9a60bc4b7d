"""Tests of the judge of times: it refuses a switch that keeps writers waiting, and does not blame one for its machine."""

from __future__ import annotations

import random
import time

import pytest
from abuse.steady import LONGEST_WRITE_S, Taken, Writer, steady


def test_a_switch_that_keeps_its_primary_waiting_is_refused() -> None:
    with pytest.raises(AssertionError, match="a write of the primary took"), steady() as switch:
        with switch.device._lock:
            time.sleep(10 * LONGEST_WRITE_S)
        writes = switch.writer.writes
        while switch.writer.writes <= writes + 1:
            time.sleep(0.01)


def test_a_busy_interpreter_delays_the_control_as_well() -> None:
    """Sorts numbers, which takes the interpreter from all threads for longer than a write may take."""
    numbers = [random.random() for _ in range(2_000_000)]
    with steady() as switch:
        for _ in range(3):
            sorted(numbers)
            time.sleep(0.05)
        assert switch.writer.slowest.wall_s > 0


def test_a_write_without_an_answer_counts_as_far_as_it_waits() -> None:
    control = Writer("nowhere")
    control._spans = [(0.0, 1.0), (2.0, 2.5), (9.0, 12.0)]
    assert control.longest_during_s(Taken(3.0, end_s=4.0)) == 0.5
    assert control.longest_during_s(Taken(4.0, end_s=4.0)) == 1.0
    assert control.longest_during_s(Taken(1.0, end_s=5.0)) == 0.0
    control._due_s = 4.5
    assert control.longest_during_s(Taken(1.0, end_s=5.0)) == 0.5
