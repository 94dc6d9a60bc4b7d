"""The delivery of accounting records: each waits in a queue until a server has acknowledged it, and few wait for others.

It knows neither packets nor servers: a function sends a record, and says what has become of it.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from holdfast.subscribers.accounting import OF_THE_GATEWAY, Record
from holdfast.subscribers.plane import Clock

WINDOW = 256
"""Records under way at once; the others wait in the queue."""

_AGAIN = WINDOW // 4
"""The most records under way that were sent in vain before: new ones do not wait for a realm whose server is away."""

_TRIALS = 4
"""The most records under way at once while no server answers."""

_HOLDS = 8
"""Failures after which a record holds up the gateway's own records no longer."""


_ALONE = 2
"""Failures after which a record of the gateway holds up the others no longer."""

log = logging.getLogger(__name__)


class Queue(Protocol):
    """Accounting records that no server has acknowledged yet, kept in order of their numbers."""

    def put(self, record: Record) -> None:
        """Add a record at the end of the queue, with the next number."""

    def after(self, number: int, most: int) -> list[tuple[int, Record]]:
        """Return up to ``most`` records whose numbers are above ``number``, each as (number, record), in ascending order."""

    def done(self, number: int) -> None:
        """Remove the record with this number from the queue, as a server has acknowledged it."""

    def together(self) -> AbstractContextManager[None]:
        """Return a context that writes the records put within it, and all else written within it, in one transaction."""

    def __len__(self) -> int: ...


class MemoryQueue:
    """A queue in memory, which is lost when the process ends."""

    def __init__(self) -> None:
        self._records: dict[int, Record] = {}
        self._last = 0

    def put(self, record: Record) -> None:
        """Add a record at the end of the queue, with the next number; the records are lost when the process ends."""
        self._last += 1
        self._records[self._last] = record

    def after(self, number: int, most: int) -> list[tuple[int, Record]]:
        """Return up to ``most`` records whose numbers are above ``number``, each as (number, record), in ascending order."""
        found = []
        for each, record in self._records.items():
            if each > number:
                found.append((each, record))
                if len(found) == most:
                    break
        return found

    def done(self, number: int) -> None:
        """Remove the record with this number, as a server has acknowledged it; do nothing if the queue does not have it."""
        self._records.pop(number, None)

    def together(self) -> AbstractContextManager[None]:
        """Return a context that does nothing, as this queue has no transactions."""
        return nullcontext()

    def __len__(self) -> int:
        return len(self._records)


Send = Callable[[Record, Callable[[], None], Callable[[bool], None]], None]
"""Sends a record, and calls one of two functions once: it is acknowledged; or it is not, with whether servers answered others."""


class Delivery:
    """Sends records in the order of their numbers. One that is sent in vain comes again after ``pause_s``, behind new ones.

    A record of the gateway is alone under way: an Accounting-On that comes late would end sessions that began after it. It waits
    for all before it, except for those that servers do not take again and again. When it has failed itself, it comes again beside
    others, until a server takes one of those and not it: then it is dropped, because sessions have begun (RFC 2866, 2).
    """

    def __init__(self, queue: Queue, clock: Clock, pause_s: float, send: Send) -> None:
        self.queue, self._clock, self._pause_s, self._send = queue, clock, pause_s, send
        self._last = 0
        """The number of the last record that was sent, of those that were sent for the first time."""
        self._under_way: set[int] = set()
        self._again: list[tuple[float, int]] = []
        """A heap of times and numbers of records that were sent in vain."""
        self._failures: dict[int, int] = {}
        """The number of failures of each record that was sent in vain."""
        self._holders: set[int] = set()
        """The records sent in vain that hold up the gateway's own records."""
        self._repeated: set[int] = set()
        self._not_taken: dict[int, float] = {}
        """The gateway's own records that failed and hold up others no longer, each with the time from which it is sent again."""
        self._dropped: set[int] = set()
        """The gateway's own records that are dropped but still under way."""
        self._alone: int | None = None
        self._paused_until_s = 0.0
        self._silent = self._held = False
        self._wake: Callable[[], None] | None = None

    def put(self, record: Record) -> None:
        """Add a record to the queue and send the records that may be sent now; a server's acknowledgment removes a record."""
        self.queue.put(record)
        self.pump()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Delay the sending of records that are put within the context until the queue and the store have written all of it."""
        self._held = True
        try:
            with self.queue.together():
                yield
        finally:
            self._held = False
        self.pump()

    def pump(self) -> None:
        """Send new records and failed ones that are due, up to the limit of unanswered records, and set the timer for the rest."""
        if self._held:
            return
        self._send_not_taken()
        self._send_new()
        self._send_again()
        self._wake_up_later()

    @property
    def _room(self) -> int:
        if self._not_taken and not self._not_taken.keys() & self._under_way:
            return 0  # others go behind it, so that a server that is back has it first
        most = _TRIALS if self._silent else WINDOW
        return 0 if self._alone is not None else most - len(self._under_way)

    def _send_not_taken(self) -> None:
        now = self._clock.now()
        for number in [each for each, due_s in self._not_taken.items() if due_s <= now and each not in self._under_way]:
            found = self.queue.after(number - 1, 1)
            if found and found[0][0] == number:
                self._begin(number, found[0][1])
            else:
                del self._not_taken[number]

    def _send_new(self) -> None:
        while self._room > 0 and self._clock.now() >= self._paused_until_s:
            found = self.queue.after(self._last, self._room)
            if not found:
                return
            for number, record in found:
                alone = record.kind in OF_THE_GATEWAY
                if alone and self._not_taken:
                    self._drop_not_taken("before the next one")
                if alone and (self._under_way or self._holders):
                    return
                self._last = number
                self._alone = number if alone else None
                self._begin(number, record)
                if alone:
                    return

    def _send_again(self) -> None:
        now = self._clock.now()
        while self._again and self._again[0][0] <= now and self._room > 0 and len(self._repeated) < _AGAIN:
            _, number = heapq.heappop(self._again)
            found = self.queue.after(number - 1, 1)
            if found and found[0][0] == number:
                self._repeated.add(number)
                self._begin(number, found[0][1])
            else:
                self._forget(number)

    def _begin(self, number: int, record: Record) -> None:
        self._under_way.add(number)
        alone = self._alone == number
        self._send(record, lambda: self._acknowledged(number), lambda heard: self._failed(number, alone, heard))

    def _acknowledged(self, number: int) -> None:
        self._over(number)
        self._forget(number)
        self._dropped.discard(number)
        self.queue.done(number)
        self._not_taken.pop(number, None)
        self._drop_not_taken("though others")
        if self._silent:  # all that failed for want of a server may come at once
            self._silent = False
            self._again = [(self._clock.now(), each) for _, each in self._again]
            heapq.heapify(self._again)
        self.pump()

    def _drop_not_taken(self, when: str) -> None:
        for each in self._not_taken:
            log.warning("no accounting server takes the gateway's Accounting-On or -Off, %s: it is dropped", when)
            self.queue.done(each)
            self._forget(each)
        self._dropped.update(self._not_taken.keys() & self._under_way)
        self._not_taken.clear()

    def _failed(self, number: int, alone: bool, heard: bool) -> None:
        self._over(number)
        self._silent = self._silent or not heard
        if number in self._dropped:
            self._dropped.discard(number)
            self.pump()
            return
        self._failures[number] = failures = self._failures.get(number, 0) + 1
        again_s = self._clock.now() + self._pause_s
        if alone and failures < _ALONE:
            self._last, self._paused_until_s = number - 1, again_s
        elif alone or number in self._not_taken:
            self._not_taken[number] = again_s
        else:
            heapq.heappush(self._again, (again_s, number))
            (self._holders.add if failures < _HOLDS else self._holders.discard)(number)
        self.pump()

    def _over(self, number: int) -> None:
        """Remove a record's number from the records that wait for a server's answer."""
        self._under_way.discard(number)
        self._repeated.discard(number)
        if self._alone == number:
            self._alone = None

    def _forget(self, number: int) -> None:
        self._failures.pop(number, None)
        self._holders.discard(number)

    def _wake_up_later(self) -> None:
        if self._wake is not None:
            self._wake()
            self._wake = None
        now, times = self._clock.now(), []
        if self._again and len(self._repeated) < _AGAIN:
            times.append(self._again[0][0])
        times += [self._paused_until_s, *self._not_taken.values()]
        due = [each for each in times if each > now]
        if due:
            self._wake = self._clock.call_later(min(due) - now, self._woken)

    def _woken(self) -> None:
        self._wake = None
        self.pump()
