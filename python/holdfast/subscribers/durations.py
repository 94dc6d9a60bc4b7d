"""Durations that no change of the day's time moves, also when another process measures their end than their beginning.

A clock for timers starts anywhere, so its times mean something to processes with the same clock alone: its epoch names it. The
machine's clock is the same for all processes from one start of the machine to the next (clock_gettime(2), CLOCK_MONOTONIC).
"""

from __future__ import annotations

from holdfast.subscribers.plane import Clock


def epoch(clock: Clock) -> str:
    """Return the name of a clock, which tells it from clocks of other machine starts; empty for a simulation's."""
    found = getattr(clock, "epoch", "")
    return found if isinstance(found, str) else ""


def elapsed_s(clock: Clock, then_s: float | None, then_epoch: str) -> float | None:
    """Return the seconds since ``then_s`` of the clock named ``then_epoch``; None if that is another clock, or lies ahead.

    Clocks without a name are taken for the same one, unless the time is from before their start.
    """
    now, own = clock.now(), epoch(clock)
    if then_s is None or then_epoch != own or then_s > now or (not own and then_s < 0):
        return None
    return now - then_s
