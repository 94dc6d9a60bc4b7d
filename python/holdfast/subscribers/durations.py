"""Durations that no change of the day's time moves, also when another process measures their end than their beginning.

A clock for timers starts anywhere, so its times mean something to processes with the same clock alone: its epoch names it. The
machine's clock is the same for all processes from one start of the machine to the next (clock_gettime(2), CLOCK_MONOTONIC).
"""

from __future__ import annotations

from holdfast.subscribers.plane import Clock


def epoch(clock: Clock) -> str:
    """Return the name of a clock, which differs after each start of the machine; it is empty for a simulation's clock."""
    found = getattr(clock, "epoch", "")
    return found if isinstance(found, str) else ""


def elapsed_s(clock: Clock, then_s: float | None, then_epoch: str) -> float | None:
    """Return the seconds since ``then_s`` on the clock named ``then_epoch``; None if that is another clock, or ``then_s`` is ahead.

    Clocks without a name are taken for the same clock, unless ``then_s`` is negative.
    """
    now, own = clock.now(), epoch(clock)
    if then_s is None or then_epoch != own or then_s > now or (not own and then_s < 0):
        return None
    return now - then_s
