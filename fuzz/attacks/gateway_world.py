"""The surroundings of a gateway under attack: time, a user plane that counts and may fail, a judge, books and a store.

All of them implement the public protocols of ``holdfast.subscribers`` and observe; none knows how the gateway works.
"""

from __future__ import annotations

import hashlib
import heapq
import hmac
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from holdfast.errors import HoldfastError
from holdfast.p4runtime.errors import P4RuntimeError
from holdfast.subscribers.accounting import NO_USAGE, Record
from holdfast.subscribers.authentication import Answer, Question, Verdict
from holdfast.subscribers.plane import Line, Session, Usage

START, STOP, INTERIM = 1, 2, 3
"""Acct-Status-Type (RFC 2866, section 5.1)."""

Action = Callable[[], None]


class Time:
    """Virtual time, with timers that can be counted. Those of one epoch end together, as a process's do."""

    def __init__(self) -> None:
        self._now = 0.0
        self._queue: list[tuple[float, int]] = []
        self._actions: dict[int, tuple[object, Action]] = {}
        self._numbers = itertools.count()

    def now(self) -> float:
        """Return the seconds since the beginning."""
        return self._now

    def later(self, delay_s: float, action: Action, epoch: object = None) -> Action:
        """Call ``action`` in ``delay_s`` seconds; return a function that cancels this.

        ``epoch``: the owner, whose end cancels it, too.
        """
        number = next(self._numbers)
        self._actions[number] = epoch, action
        heapq.heappush(self._queue, (self._now + delay_s, number))
        return lambda: self._actions.pop(number, None) and None

    def end(self, epoch: object) -> None:
        """Cancel all timers that belong to ``epoch``."""
        self._actions = {number: each for number, each in self._actions.items() if each[0] is not epoch}

    def waiting(self, epoch: object) -> int:
        """Return the number of timers that belong to ``epoch``."""
        return sum(each[0] is epoch for each in self._actions.values())

    def run(self, duration_s: float) -> None:
        """Advance the clock by ``duration_s`` seconds and call the timers that are due."""
        until = self._now + duration_s
        while self._queue and self._queue[0][0] <= until:
            at, number = heapq.heappop(self._queue)
            found = self._actions.pop(number, None)
            if found is not None:
                self._now = max(self._now, at)
                found[1]()
        self._now = until


class Epoch:
    """The clock of one process (``holdfast.subscribers.plane.Clock``)."""

    def __init__(self, time: Time) -> None:
        self._time = time

    def now(self) -> float:
        """Return the seconds since the beginning."""
        return self._time.now()

    def call_later(self, delay_s: float, action: Action) -> Action:
        """Call ``action`` in ``delay_s`` seconds unless the process has ended by then; return a function that cancels this."""
        return self._time.later(delay_s, action, self)

    def end(self) -> None:
        """End the process, so that none of its timers is called any more."""
        self._time.end(self)

    @property
    def waiting(self) -> int:
        """The number of timers that are set."""
        return self._time.waiting(self)


@dataclass
class Episode:
    """A session's time in the plane, from its installation to its removal."""

    session: Session
    since_s: float
    sure: bool
    """True if the gateway was told that it is installed."""
    accounted: bool
    usage: Usage = NO_USAGE


REFUSE, HALF, LOST = "refuse", "half", "lost"
"""Failures of a write: nothing is done; the first half is; all is, and the answer is lost."""


class CountingPlane:
    """A user plane in memory that refuses what the real one cannot have: an address or a prefix twice, or a wrong value."""

    def __init__(self, time: Time, deliver: Callable[[Line, bytes], None]) -> None:
        self._time, self._deliver = time, deliver
        self.table: dict[int, Session] = {}
        self.episodes: dict[int, Episode] = {}
        self.over: list[Episode] = []
        self.removed: dict[int, Usage] = {}
        self.fault: str | None = None
        self.failures = 0
        self.handler: Callable[[Line, bytes], None] | None = None
        self.sends = 0
        self.is_accounted: Callable[[int], bool] = lambda number: False

    def _fail(self) -> None:
        self.failures += 1
        if self.fault == LOST:
            raise P4RuntimeError("UNAVAILABLE", "nobody knows whether the user plane has done it")
        raise HoldfastError("the user plane has not done it")

    def install(self, sessions: Iterable[Session]) -> None:
        """Install sessions: all, half or none of them, as the present fault says."""
        wanted = list(sessions)
        if self.fault == REFUSE:
            self._fail()
        if self.fault == HALF:
            wanted = wanted[: len(wanted) // 2]
        for each in wanted:
            if self._cannot(each):
                self._fail()
            self._put(each)
        if self.fault is not None:
            self._fail()

    def _put(self, session: Session) -> None:
        if session.session_id not in self.table:
            accounted = self.is_accounted(session.session_id)
            self.episodes[session.session_id] = Episode(session, self._time.now(), self.fault is None, accounted)
        self.table[session.session_id] = session
        self.episodes[session.session_id].session = session

    def _cannot(self, session: Session) -> bool:
        rates = (session.rates.up_bit_s, session.rates.down_bit_s)
        if any(each is not None and not 8 <= each < 1 << 63 for each in rates):
            return True
        if session.ipv6_prefix is not None and session.ipv6_prefix.prefixlen != 64:
            return True
        if session.delegated is not None and not 1 <= session.delegated.prefixlen <= 64:
            return True
        own = {session.ipv4, session.ipv6_prefix, session.delegated} - {None}
        return any(
            own & {each.ipv4, each.ipv6_prefix, each.delegated}
            for number, each in self.table.items()
            if number != session.session_id
        )

    def remove(self, session_ids: Iterable[int]) -> dict[int, Usage]:
        """Remove sessions and return their last usage: all, half or none of them, as the present fault says."""
        numbers = list(session_ids)
        if self.fault == REFUSE:
            self._fail()
        gone = {}
        for number in numbers[: len(numbers) // 2] if self.fault == HALF else numbers:
            if self.table.pop(number, None) is not None:
                episode = self.episodes.pop(number)
                self.over.append(episode)
                gone[number] = episode.usage
                if self.fault is None:
                    self.removed[number] = episode.usage
        if self.fault is not None:
            self._fail()
        return gone

    def usage(self, session_ids: Iterable[int]) -> dict[int, Usage]:
        """Return the usage of sessions. Raises an error while there is a fault."""
        if self.fault is not None:
            self._fail()
        return {each: self.episodes[each].usage for each in session_ids if each in self.episodes}

    def installed(self) -> dict[int, Session]:
        """Return the sessions that the plane forwards."""
        return dict(self.table)

    def send(self, line: Line, frame: bytes) -> None:
        """Send a frame to a line, and count it."""
        self.sends += 1
        self._deliver(line, frame)

    def receive(self, handler: Callable[[Line, bytes], None]) -> None:
        """Set the handler that is called with each control frame and its line."""
        self.handler = handler

    def traffic(self, talks: Callable[[Session], bool]) -> None:
        """Count a packet down every session, and one up each session for which ``talks`` returns True."""
        for number, session in self.table.items():
            episode = self.episodes[number]
            old, up = episode.usage, talks(session)
            episode.usage = Usage(
                old.packets_up + up, old.bytes_up + 100 * up, old.packets_down + 1, old.bytes_down + 1000
            )


class Judge:
    """An authenticator that knows users by name: password, verdict, and the seconds that it thinks (None: for ever)."""

    def __init__(self, users: dict[bytes, tuple[bytes, Verdict, float | None]], clock: Epoch) -> None:
        self.users, self.clock = users, clock
        self.asked = 0

    def authenticate(self, question: Question, answer: Answer) -> None:
        """Judge a login by the table of users, and answer after the user's delay, or never."""
        self.asked += 1
        credentials = question.credentials
        password, verdict, delay_s = self.users.get(credentials.user, (b"", Verdict(False), 0.0))
        if credentials.password is not None:
            right = credentials.password == password
        else:
            whole = bytes((credentials.identifier,)) + password + credentials.challenge
            right = hmac.compare_digest(hashlib.md5(whole).digest(), credentials.response)
        said = verdict if right and verdict.accepted else Verdict(False, "no")
        if delay_s == 0.0:
            answer(said)
        elif delay_s is not None:
            self.clock.call_later(delay_s, lambda: answer(said))


class Books:
    """An accountant that checks each record as it comes. ``wrong`` has what it found."""

    def __init__(self, plane: CountingPlane) -> None:
        self._plane = plane
        self.open: dict[str, Record] = {}
        self.closed: set[str] = set()
        self.usages: dict[str, Usage] = {}
        self.sessions: dict[int, str] = {}
        self.wrong: list[tuple[str, str]] = []
        self.records = 0
        plane.is_accounted = self.sessions.__contains__

    def account(self, record: Record) -> None:
        """Record an accounting record, and what contradicts earlier ones, such as a second Start."""
        self.records += 1
        session = record.session
        if session is None:
            return
        key, number, kind = record.accounting_id, session.session_id, int(record.kind)
        if kind == START:
            if key in self.open or key in self.closed:
                self.wrong.append(("accounting starts twice", key))
            if number in self.sessions:
                self.wrong.append(("two accountings of one session", str(number)))
            self.open[key], self.sessions[number] = record, key
            if number in self._plane.episodes:
                self._plane.episodes[number].accounted = True
        elif key not in self.open:
            self.wrong.append((f"record of kind {kind} outside of an accounting", f"session {number}"))
        elif kind == STOP:
            self._close(record, number)

    def _close(self, record: Record, number: int) -> None:
        del self.open[record.accounting_id]
        self.sessions.pop(number, None)
        self.closed.add(record.accounting_id)
        self.usages[record.accounting_id] = record.usage
        there = self._plane.episodes.get(number)
        forwarded = self._plane.removed.pop(number, None)
        if there is not None and there.session.mac == record.session.mac:  # type: ignore[union-attr]
            self.wrong.append(("forwards after its accounting", f"session {number}"))
        if forwarded is not None and record.usage != forwarded:
            self.wrong.append(("usage", f"session {number}: {record.usage} is accounted, {forwarded} was forwarded"))


class Disk:
    """A store of sessions that may be full."""

    def __init__(self) -> None:
        self.rows: dict[int, object] = {}
        self.full = False
        self.failures = 0

    def load(self) -> list[object]:
        """Return all stored rows, ordered by number."""
        return [self.rows[number] for number in sorted(self.rows)]

    def save(self, put: Iterable[object], drop: Iterable[int]) -> None:
        """Write rows and delete others. Raises :class:`HoldfastError` while the disk is full."""
        put, drop = list(put), list(drop)
        if self.full and (put or drop):
            self.failures += 1
            raise HoldfastError("the disk is full")
        for number in drop:
            self.rows.pop(number, None)
        for each in put:
            self.rows[each.grant.session.session_id] = each  # type: ignore[attr-defined]
