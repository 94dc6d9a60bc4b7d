"""The world of the control plane's tests: a virtual clock, a user plane in memory, and a gateway between it and subscribers."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable
from itertools import count

from holdfast.errors import HoldfastError
from holdfast.subscribers.configuration import Configuration
from holdfast.subscribers.plane import Line, Session, Usage


class VirtualClock:
    """Runs timers in order of time."""

    def __init__(self) -> None:
        self._now = 0.0
        self._numbers = count()
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._cancelled: set[int] = set()

    def now(self) -> float:
        """Return the virtual time in seconds."""
        return self._now

    def call_later(self, delay_s: float, action: Callable[[], None]) -> Callable[[], None]:
        """Call ``action`` when the virtual clock has advanced by ``delay_s`` seconds; return a function that cancels this."""
        number = next(self._numbers)
        heapq.heappush(self._queue, (self._now + delay_s, number, action))
        return lambda: self._cancelled.add(number)

    def run(self, duration_s: float) -> None:
        """Call all timers due in the next ``duration_s`` seconds in order, and advance the clock by ``duration_s``."""
        end = self._now + duration_s
        while self._queue and self._queue[0][0] <= end:
            at, number, action = heapq.heappop(self._queue)
            if number in self._cancelled:
                self._cancelled.discard(number)
                continue
            self._now = at
            action()
        self._now = end


class MemoryPlane:
    """A user plane that keeps what it is told, counts what tests say, and hands frames over at once or after a delay."""

    def __init__(self, clock: VirtualClock, delay_s: float = 0.0005) -> None:
        self.clock, self.delay_s = clock, delay_s
        self.table: dict[int, Session] = {}
        self.traffic: dict[int, Usage] = {}
        self.sent: list[tuple[Line, bytes]] = []
        self.trace: list[tuple[float, Line, bytes]] | None = None
        self.writes: list[int] = []
        self.failing = False
        self.hosts: dict[tuple[Line, bytes], Callable[[bytes], None]] = {}
        self.handler: Callable[[Line, bytes], None] | None = None

    def install(self, sessions: Iterable[Session]) -> None:
        """Add or replace sessions in memory. Raise :class:`HoldfastError` if the user plane is set to fail."""
        sessions = list(sessions)
        if self.failing:
            raise HoldfastError("the data plane is away")
        if sessions:
            self.writes.append(len(sessions))
        for each in sessions:
            self.table[each.session_id] = each
            self.traffic.setdefault(each.session_id, Usage())

    def remove(self, session_ids: Iterable[int]) -> dict[int, Usage]:
        """Remove sessions and return their usage by session id. Raise :class:`HoldfastError` if the user plane is set to fail."""
        if self.failing:
            raise HoldfastError("the data plane is away")
        gone = {}
        for each in session_ids:
            if self.table.pop(each, None) is not None:
                gone[each] = self.traffic.pop(each)
        return gone

    def usage(self, session_ids: Iterable[int]) -> dict[int, Usage]:
        """Return the usage of the given sessions that are installed, by session id."""
        return {each: self.traffic[each] for each in session_ids if each in self.traffic}

    def installed(self) -> dict[int, Session]:
        """Return a copy of the installed sessions, by session id."""
        return dict(self.table)

    def send(self, line: Line, frame: bytes) -> None:
        """Hand a frame to the subscriber's host after ``delay_s`` seconds, or store it in ``sent`` if there is no such host."""
        if self.trace is not None:
            self.trace.append((self.clock.now(), line, frame))
        host = self.hosts.get((line, frame[:6]))
        if host is not None:
            self.clock.call_later(self.delay_s, lambda: host(frame))
        else:
            self.sent.append((line, frame))

    def receive(self, handler: Callable[[Line, bytes], None]) -> None:
        """Set the handler that is called with each frame from a subscriber."""
        self.handler = handler

    def from_line(self, line: Line, frame: bytes) -> None:
        """Hand a subscriber's frame over to the gateway after ``delay_s`` seconds."""
        if self.trace is not None:
            self.trace.append((self.clock.now(), line, frame))
        self.clock.call_later(self.delay_s, lambda: self.handler and self.handler(line, frame))


MAC = bytes.fromhex("02000000000a")


def configuration(**changes: object) -> Configuration:
    """Return a gateway's configuration for tests; ``changes`` replace top-level settings."""
    values: dict[str, object] = {
        "name": "ac-1",
        "mac": "02:00:00:00:00:0a",
        "address": "100.64.0.1",
        "pools": {"default": "100.64.0.0/16"},
        "dns": ["192.0.2.53", "192.0.2.54"],
        "ipv6": {
            "prefixes": "2001:db8:1::/48",
            "delegated": "2001:db8:8000::/34",
            "delegated_length": 56,
            "dns": ["2001:db8::53"],
        },
        "users": {"alice": {"password": "secret"}},
    }
    return Configuration.model_validate({**values, **changes})


def seeded(seed: int) -> Callable[[int], bytes]:
    """Return a function that returns as many pseudo-random bytes as asked, the same for the same ``seed``."""
    return random.Random(seed).randbytes
