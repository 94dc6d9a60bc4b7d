"""Calls in progress: each client's share of them, and how long their requests may take to arrive.

gRPC hands a call over when its headers arrive; its request may come later, or never. Streams have limits of their own.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.p4runtime import limits
from holdfast.p4runtime.errors import P4RuntimeError


@dataclass(eq=False)
class Call:
    """One call in progress."""

    client: str
    """Whose it is; "" for those of this machine, which have no share."""
    cancel: Callable[[], object]
    since_s: float


class Calls:
    """The calls in progress of a server.

    A call whose request does not arrive is cancelled, so that it keeps no other call out for long.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._waiting: dict[Call, None] = {}
        """Calls whose request has not arrived whole, the oldest first."""

    def begin(self, client: str, cancel: Callable[[], object]) -> Call:
        """Count one more call of a client; ``cancel`` is called if the call must end early.

        Raises RESOURCE_EXHAUSTED if the client has as many calls in progress as one client may.
        """
        with self._lock:
            if client and self._counts[client] >= limits.MAX_CALLS_PER_CLIENT:
                raise P4RuntimeError(
                    "RESOURCE_EXHAUSTED",
                    f"the server takes {limits.MAX_CALLS_PER_CLIENT} calls of one client at a time",
                )
            now_s = time.monotonic()
            late = self._take_oldest(len(self._waiting) + 1 - limits.MAX_WAITING_CALLS, now_s)
            call = Call(client, cancel, now_s)
            self._counts[client] += 1
            self._waiting[call] = None
        for each in late:
            each.cancel()
        return call

    def arrived(self, call: Call) -> None:
        """Record that the whole request of a call has arrived."""
        with self._lock:
            self._waiting.pop(call, None)

    def end(self, call: Call) -> None:
        """Remove a finished call, which no longer counts for its client."""
        with self._lock:
            self._waiting.pop(call, None)
            self._counts[call.client] -= 1
            if not self._counts[call.client]:
                del self._counts[call.client]

    def waiting(self) -> int:
        """Return the number of calls whose request has not arrived yet."""
        with self._lock:
            return len(self._waiting)

    def cancel_late(self, now_s: float) -> None:
        """Cancel calls whose request has not arrived in time: after ``REQUEST_S`` seconds, or sooner if too many calls wait.

        Must be called from time to time.
        """
        with self._lock:
            late = [call for call in self._waiting if now_s - call.since_s > limits.REQUEST_S]
            for call in late:
                del self._waiting[call]
            crowd = len(self._waiting) - limits.MAX_SLOW_CALLS
            late += self._take_oldest(crowd, now_s - limits.CROWDED_REQUEST_S)
        for call in late:
            call.cancel()

    def _take_oldest(self, number: int, before_s: float) -> list[Call]:
        """Remove and return up to ``number`` calls that have waited since before ``before_s``.

        Each is the oldest such call of the client that has most waiting calls.
        """
        if number <= 0:
            return []
        counts = Counter(call.client for call in self._waiting)
        old: dict[str, list[Call]] = {}
        for call in reversed(self._waiting):
            if call.since_s <= before_s:
                old.setdefault(call.client, []).append(call)
        taken: list[Call] = []
        while old and len(taken) < number:
            most = max(old, key=counts.__getitem__)
            call = old[most].pop()
            if not old[most]:
                del old[most]
            counts[most] -= 1
            del self._waiting[call]
            taken.append(call)
        return taken
