"""The clock of a network's controllers, as state machines of the subscribers' control plane take it."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.controller import ControlPlane

_PS_PER_S = 1_000_000_000_000


class NetworkClock:
    """`Clock` in the time of a network, simulated or live."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def now(self) -> float:
        """Return the network's time, simulated or real, in seconds since its start."""
        return self._plane.now_ps / _PS_PER_S

    def call_later(self, delay_s: float, action: Callable[[], None]) -> Callable[[], None]:
        """Call ``action`` after ``delay_s`` seconds of the network's time; return a function that cancels the call."""
        waiting = [action]

        def call() -> None:
            while waiting:
                waiting.pop()()

        self._plane.call_later(delay_s * 1000, call)
        return waiting.clear
