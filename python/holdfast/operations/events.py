"""What happens in a running program, for those who listen: each has a queue, and loses what has no room in it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_MOST_WAITING = 256
"""The most events that wait for a listener; of further ones it gets the number only."""


class Listener:
    """The queue of one listener's events. ``lost`` counts events for which it had no room."""

    def __init__(self) -> None:
        self._waiting: queue.Queue[tuple[str, Mapping[str, Any]]] = queue.Queue(_MOST_WAITING)
        self.lost = 0

    def put(self, kind: str, data: Mapping[str, Any]) -> None:
        """Add an event to the queue; if it is full, count the event as lost."""
        try:
            self._waiting.put_nowait((kind, data))
        except queue.Full:
            self.lost += 1

    def next(self, timeout_s: float) -> tuple[str, Mapping[str, Any]] | None:
        """Return the next event as (kind, data); None if none comes within ``timeout_s`` seconds.

        Lost events are reported as an event.
        """
        if self.lost and self._waiting.empty():
            lost, self.lost = self.lost, 0
            return "lost", {"events": lost}
        try:
            return self._waiting.get(timeout=timeout_s)
        except queue.Empty:
            return None


class Events:
    """Tells listeners what happens. Callable from any thread; without listeners it costs nothing."""

    def __init__(self) -> None:
        self._listeners: set[Listener] = set()
        self._changing = threading.Lock()

    def publish(self, kind: str, **data: Any) -> None:
        """Send an event to all listeners. ``kind`` is a word; ``data`` must be values of JSON."""
        with self._changing:
            for each in self._listeners:
                each.put(kind, data)

    @contextmanager
    def listener(self) -> Iterator[Listener]:
        """Yield a listener that receives the events published within the context."""
        listener = Listener()
        with self._changing:
            self._listeners.add(listener)
        try:
            yield listener
        finally:
            with self._changing:
                self._listeners.discard(listener)


__all__ = ["Events", "Listener"]
