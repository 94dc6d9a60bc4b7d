"""Reads the PTEs' counters of all connections periodically, for the detection of latent errors (:mod:`.health`).

The reaction to an alarm is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.apps.protect.counters import brought_by_path
from holdfast.apps.protect.health import Alarm, HealthMonitor, LatentErrorDetection
from holdfast.apps.protect.registry import Registry
from holdfast.control.link_state import LinkState
from holdfast.controller import ControlPlane


class LatentErrorWatch:
    """Reads the counters periodically after :meth:`run`; stores alarms in :attr:`alarms`, and calls ``on_alarm`` with each."""

    def __init__(
        self,
        plane: ControlPlane,
        links: LinkState,
        registry: Registry,
        detection: LatentErrorDetection,
        on_alarm: Callable[[Alarm], None],
    ) -> None:
        self._plane = plane
        self._links = links
        self._registry = registry
        self._health = HealthMonitor(detection, on_alarm)
        self._lately_down: frozenset[int] = frozenset()
        """Links that were down at some time since the counters were read last."""

    @property
    def alarms(self) -> list[Alarm]:
        """The alarms, raised and cleared ones, in order."""
        return self._health.alarms

    def note_down(self) -> None:
        """Record the links that are down now: packets missing on paths over them are not latent errors."""
        self._lately_down |= self._links.down

    def run(self) -> None:
        """Read the counters of all connections, and schedule the next reading."""
        now_ps, down = self._plane.now_ps, self._links.down | self._lately_down
        self._lately_down = frozenset()
        connections = list(self._registry)
        for connection, (passed, discarded) in brought_by_path(self._plane.clients, connections).items():
            paths = connection.paths
            self._health.read(
                now_ps,
                str(connection),
                tuple(path.nodes for path in paths),
                passed,
                discarded,
                [not down.isdisjoint(path.links) for path in paths],
            )
        self._health.keep({str(connection): None for connection in connections})
        self._plane.call_later(self._health.interval_ms, self.run)
