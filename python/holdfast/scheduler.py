"""Schedules the work of controllers: an event becomes a call of a handler after the controller's reaction delay.

Times are picoseconds of the owner's clock. It does not read a clock, wait, or know the origin of events.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from holdfast.p4runtime.received import DigestList, IdleEntries, PacketIn

if TYPE_CHECKING:
    from holdfast.controller import Controller
    from holdfast.p4runtime.received import Event


class Scheduler:
    """Handlers with their times. Those of the same time are called in the order in which they were added."""

    def __init__(self) -> None:
        self._pending: list[tuple[int, int, Callable[[], None]]] = []
        self._added = 0

    def is_due(self, time_ps: int) -> bool:
        """Return True if a handler is to be called at ``time_ps`` or before."""
        return bool(self._pending) and self._pending[0][0] <= time_ps

    def next_ps_within(self, until_ps: int) -> int:
        """Return the time at which the next handler is due, in picoseconds, or ``until_ps`` if none is due by then."""
        return self._pending[0][0] if self.is_due(until_ps) else until_ps

    def add(self, time_ps: int, handler: Callable[[], None]) -> None:
        """Schedule a call of ``handler`` at ``time_ps``; handlers of the same time are called in the order of scheduling."""
        self._added += 1
        heapq.heappush(self._pending, (time_ps, self._added, handler))

    def add_port_change(
        self, controllers: Sequence[Controller], time_ps: int, switch: str, port: int, up: bool
    ) -> None:
        """Schedule each controller's reaction to a port that changed at ``time_ps``, one reaction delay later.

        ``up`` is the port's new state.
        """
        for controller in controllers:
            self.add(time_ps + controller.reaction_delay_ps, partial(controller.on_port_change, switch, port, up))

    def add_event(self, controllers: Sequence[Controller], time_ps: int, switch: str, event: Event) -> None:
        """Schedule each controller's reaction to an event that a switch's client got at ``time_ps``, one reaction delay later."""
        for controller in controllers:
            due_ps = time_ps + controller.reaction_delay_ps
            if isinstance(event, PacketIn):
                self.add(due_ps, partial(controller.on_packet_in, switch, event.payload, event.metadata))
            elif isinstance(event, DigestList):
                self.add(due_ps, partial(controller.on_digest, switch, event))
            elif isinstance(event, IdleEntries):
                self.add(due_ps, partial(controller.on_idle_timeout, switch, event))

    def run_due(self, now_ps: int) -> None:
        """Call all handlers that are due by ``now_ps``, including handlers that are scheduled by these calls."""
        while self.is_due(now_ps):
            heapq.heappop(self._pending)[2]()
