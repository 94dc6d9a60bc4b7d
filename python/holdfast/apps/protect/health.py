"""Latent errors: one path is dead while traffic still flows, and nobody would notice before the other fails (802.1CB, 7.4.4).

The PTE's counters are read periodically. Each path brings a copy of every packet, so what a path has brought is compared with what
the connection has passed on. The standard's test says that something is missing; counting by path says where. The reaction to an
alarm is decided elsewhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from holdfast.errors import NetworkError
from holdfast.parameters import PS_PER_MS

READINGS_PER_PERIOD = 3
"""So that a path that falls silent at any time is silent for two whole intervals within one period."""


@dataclass(frozen=True)
class LatentErrorDetection:
    """When to raise an alarm; the names are 802.1CB's, the defaults those in use.

    A path is in alarm if it has brought more than ``difference`` packets fewer than the connection has passed on, since the last
    ``reset_period_ms`` began, at two readings in a row (there are three in a ``period_ms``); or if it brought nothing at all
    since ``silent_packets`` packets were passed, an interval ago, which finds dead paths under light load. Packets that can be
    under way on the slower path are not missing: as many packets as the connection passes in ``delay_difference_ms``.
    """

    period_ms: float = 2000.0
    difference: int = 100
    reset_period_ms: float = 30_000.0
    silent_packets: int = 5
    delay_difference_ms: float = 10.0

    def __post_init__(self) -> None:
        if not 0 < self.period_ms <= self.reset_period_ms:
            raise NetworkError(
                f"period_ms is {self.period_ms}; it must be above zero and at most reset_period_ms ({self.reset_period_ms})"
            )
        if self.difference < 1 or self.silent_packets < 1:
            raise NetworkError("difference and silent_packets are 1 at least")
        if self.delay_difference_ms < 0:
            raise NetworkError(f"delay_difference_ms is {self.delay_difference_ms}; it cannot be negative")


@dataclass(frozen=True)
class Alarm:
    """An alarm about a path that delivers too few packets, or (``raised`` is false) its end.

    ``expected`` and ``seen``: packets in the period before.
    """

    time_ps: int
    connection: str
    path: int
    """Its number, from 1."""
    nodes: tuple[str, ...]
    expected: int
    seen: int
    raised: bool


@dataclass(frozen=True)
class _Reading:
    """Counters at one time: packets passed, at least; packets that each path delivered.

    Paths that were down since the last reading.
    """

    expected: int
    brought: tuple[int, ...]
    down: tuple[bool, ...]


@dataclass
class Watched:
    """The state of a connection's paths.

    ``nodes``: of each path; when they change, counting begins anew.
    """

    nodes: tuple[tuple[str, ...], ...]
    readings: deque[_Reading] = field(default_factory=lambda: deque(maxlen=READINGS_PER_PERIOD + 1))
    base: list[int] = field(default_factory=list)
    """By path, CurBaseDifference: the packets missing when the reset period began."""
    rebased_ps: int = 0
    in_alarm: set[int] = field(default_factory=set)


class HealthMonitor:
    """Turns readings into alarms. It reads nothing itself."""

    def __init__(self, detection: LatentErrorDetection, on_alarm: Callable[[Alarm], None] | None = None) -> None:
        self.detection = detection
        self.alarms: list[Alarm] = []
        """The alarms, raised and cleared ones, in order."""
        self._on_alarm = on_alarm
        self._watched: dict[str, Watched] = {}

    @property
    def interval_ms(self) -> float:
        """The time between readings, in milliseconds."""
        return self.detection.period_ms / READINGS_PER_PERIOD

    def active(self) -> list[tuple[str, int]]:
        """Return (name of the connection, number of the path) of every path that is in alarm."""
        return [(name, number) for name, watched in self._watched.items() for number in sorted(watched.in_alarm)]

    def keep(self, connections: Mapping[str, object]) -> None:
        """Remove the readings of all connections that are not in ``connections``."""
        self._watched = {name: watched for name, watched in self._watched.items() if name in connections}

    def read(
        self,
        now_ps: int,
        connection: str,
        nodes: tuple[tuple[str, ...], ...],
        passed: Sequence[int],
        discarded: Sequence[int],
        known_down: Sequence[bool],
    ) -> None:
        """Store a reading of a connection's counters, which are a number per path, and raise or clear alarms.

        ``passed``: the copies that the egress passed on; ``discarded``: the second copies that it discarded. Paths in
        ``known_down`` raise no alarm.
        """
        watched = self._watched.get(connection)
        brought = tuple(p + d for p, d in zip(passed, discarded, strict=True))
        # With the window, a packet that was overtaken is passed by no path, though one has brought it.
        reading = _Reading(max(sum(passed), *brought), brought, tuple(known_down))
        if watched is None or watched.nodes != nodes or _ran_backwards(watched.readings, reading):
            watched = self._watched[connection] = Watched(nodes)
        if not watched.base or now_ps - watched.rebased_ps >= self.detection.reset_period_ms * PS_PER_MS:
            watched.base = [reading.expected - b for b in brought]
            watched.rebased_ps = now_ps
        watched.readings.append(reading)
        for number, down in enumerate(known_down, start=1):
            if down:
                watched.base[number - 1] = reading.expected - brought[number - 1]
                watched.in_alarm.discard(number)
            else:
                self._judge(now_ps, connection, watched, number)

    def _judge(self, now_ps: int, connection: str, watched: Watched, number: int) -> None:
        readings, i = watched.readings, number - 1
        first, last = readings[0], readings[-1]
        expected, seen = last.expected - first.expected, last.brought[i] - first.brought[i]
        bad = self._is_short(watched, i) or self._is_silent(readings, i)
        if number in watched.in_alarm:
            if len(readings) > READINGS_PER_PERIOD and seen and expected - seen <= max(1, expected // 10):
                watched.in_alarm.remove(number)
                self._tell(Alarm(now_ps, connection, number, watched.nodes[i], expected, seen, raised=False))
                watched.base[i] = last.expected - last.brought[i]
        elif bad:
            watched.in_alarm.add(number)
            self._tell(Alarm(now_ps, connection, number, watched.nodes[i], expected, seen, raised=True))

    def _is_short(self, watched: Watched, i: int) -> bool:
        """Return True if path ``i`` has delivered too few packets, now and at the previous reading.

        The tolerance covers packets that are under way on a slower path.
        """
        if len(watched.readings) < 2:
            return False
        *_, before, last = watched.readings
        steps = pairwise(reading.expected for reading in watched.readings)
        fastest_per_ms = max(now - then for then, now in steps) / self.interval_ms
        tolerated = self.detection.difference + fastest_per_ms * self.detection.delay_difference_ms
        return all(r.expected - r.brought[i] - watched.base[i] > tolerated for r in (before, last))

    def _is_silent(self, readings: deque[_Reading], i: int) -> bool:
        """Return True if path ``i`` delivered nothing in the last two intervals, though others delivered enough in the first one.

        Packets that the others delivered in the second interval may still be under way on a slower path. A path that was down in
        the first interval is not silent, as it could not deliver any.
        """
        if len(readings) < 3:
            return False
        before, middle, last = readings[-3], readings[-2], readings[-1]
        return (
            not middle.down[i]
            and last.brought[i] == before.brought[i]
            and middle.expected - before.expected >= self.detection.silent_packets
        )

    def _tell(self, alarm: Alarm) -> None:
        self.alarms.append(alarm)
        if self._on_alarm is not None:
            self._on_alarm(alarm)


def _ran_backwards(readings: deque[_Reading], reading: _Reading) -> bool:
    """Return True if a counter is lower than at the previous reading, because it was reset meanwhile."""
    return bool(readings) and any(now < then for now, then in zip(reading.brought, readings[-1].brought, strict=True))
