"""Upkeep of established sessions: timeouts and interim accounting, each at its time, and echoes and router advertisements in turn.

It does not know how a session is set up. Its clock is the gateway's, which no change of the day's time moves.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from holdfast.errors import HoldfastError
from holdfast.subscribers.accounting import Cause
from holdfast.subscribers.configuration import Configuration
from holdfast.subscribers.plane import Clock, Usage, UserPlane
from holdfast.subscribers.session import Phase, PppSession

_GRAIN_S = 0.1
"""The grain of timers in seconds: what is due within one is done at its end, so that usage is read for many sessions at once."""

_POLL_S = 1.0
_POLLED_PER_S = 2000
"""Sessions with an Idle-Timeout whose usage is read in a second; when there are more, each is read less often."""

_SLICES = 30
_SLACK = 64
_ROUNDING_S = 1e-6


class Upkeep:
    """Looks after the sessions of a gateway that are accounted.

    Session-Timeout and Acct-Interim-Interval count from the start of accounting, a tenth of a second late at most. An Idle-Timeout
    counts from when traffic was last seen, which is a second after it at most, or as many as there are 2,000 sessions with one.
    Sessions that were not heard of in ``echo_interval_s`` are sent an echo; the sessions take turns in it.
    """

    def __init__(
        self,
        configuration: Configuration,
        sessions: Mapping[int, PppSession],
        plane: UserPlane,
        clock: Clock,
        events: Counter[str],
        interim: Callable[[PppSession], None],
    ) -> None:
        """Create the object that watches ``sessions`` (timeouts, interim accounting, echo requests).

        Nothing runs before :meth:`start`. ``interim`` is called with a session each time an accounting interval of it ends.
        """
        self._configuration, self._sessions, self._plane, self._clock = configuration, sessions, plane, clock
        self._events, self._interim = events, interim
        self._due: list[tuple[float, int]] = []
        """A heap of times with numbers of sessions; those of sessions that have ended or have another time by now mean nothing."""
        self._idling: dict[int, PppSession] = {}
        self._slice = 0
        self._cancels: dict[str, Callable[[], None]] = {}

    def start(self) -> None:
        """Start the timers of echoes, usage and timeouts."""
        self._later("sweep", self._configuration.echo_interval_s / _SLICES, self._sweep)
        self._later("poll", _POLL_S, self._poll)
        self._arm()

    def stop(self) -> None:
        """Stop the timers; the sessions are not changed."""
        for cancel in self._cancels.values():
            cancel()
        self._cancels = {}

    def watch(self, session: PppSession) -> None:
        """Schedule timeouts and interim accounting of a session whose accounting starts, or whose timeouts have changed."""
        assert session.grant is not None
        if session.grant.idle_timeout_s:
            self._idling[session.id] = session
        else:
            self._idling.pop(session.id, None)
        due_s = self._next(session)
        if due_s == session.due_s:
            return
        session.due_s = due_s
        if due_s < math.inf:
            if len(self._due) > 2 * len(self._sessions) + _SLACK:
                self._due = [(each.due_s, number) for number, each in self._sessions.items() if each.due_s < math.inf]
                heapq.heapify(self._due)
            heapq.heappush(self._due, (due_s, session.id))
            if self._due[0][0] == due_s and self._cancels:
                self._arm()

    def _later(self, name: str, delay_s: float, action: Callable[[], None]) -> None:
        cancel = self._cancels.pop(name, None)
        if cancel is not None:
            cancel()
        self._cancels[name] = self._clock.call_later(delay_s, action)

    def _arm(self) -> None:
        if self._due:
            self._later("due", max(0.0, self._due[0][0] - self._clock.now()), self._fire)

    # Each session's own times.

    def _next(self, session: PppSession) -> float:
        """Return the clock's time in s at which a session next needs attention, rounded up; infinite if it never does."""
        grant = session.grant
        assert grant is not None
        times = []
        if grant.session_timeout_s:
            times.append(session.began_s + grant.session_timeout_s)
        if grant.idle_timeout_s:
            times.append(session.idle_since_s + grant.idle_timeout_s)
        if grant.interim_s:
            times.append(_boundary(session, session.interim_at_s) + grant.interim_s)
        return math.ceil(min(times) / _GRAIN_S - _ROUNDING_S) * _GRAIN_S if times else math.inf

    def _fire(self) -> None:
        now = self._clock.now()
        fired = []
        while self._due and self._due[0][0] <= now + _ROUNDING_S:
            due_s, number = heapq.heappop(self._due)
            session = self._sessions.get(number)
            if session is not None and session.due_s == due_s and session.phase is Phase.NETWORK:
                session.due_s = math.inf
                fired.append(session)
        known = self.read(each for each in fired if not _is_over(each, now))
        for each in fired:
            self._act(each, now, known)
            if self._is_there(each):
                self.watch(each)
        self._arm()

    def _act(self, session: PppSession, now: float, known: Collection[int]) -> None:
        grant = session.grant
        assert grant is not None
        if _is_over(session, now):
            session.terminate(Cause.SESSION_TIMEOUT)
            return
        if grant.idle_timeout_s and now - session.idle_since_s >= grant.idle_timeout_s - _ROUNDING_S:
            if session.id in known:
                session.terminate(Cause.IDLE_TIMEOUT)
                return
            session.idle_since_s += _POLL_S  # nobody knows whether it is idle: it is asked again
        if grant.interim_s:
            boundary_s = _boundary(session, now)
            if boundary_s > session.interim_at_s + _ROUNDING_S:
                session.interim_at_s = boundary_s
                self._interim(session)

    def _is_there(self, session: PppSession) -> bool:
        return self._sessions.get(session.id) is session and session.phase is Phase.NETWORK

    # Usage.

    def read(self, sessions: Iterable[PppSession]) -> Collection[int]:
        """Read the usage of sessions from the user plane; return the numbers of the sessions whose usage is known now."""
        asked = {each.id: each for each in sessions}
        if not asked:
            return ()
        try:
            usages = self._plane.usage(asked)
        except HoldfastError:
            self._events["plane-failures"] += 1
            return ()
        now = self._clock.now()
        for number, usage in usages.items():
            session = asked[number]
            last = session.last_usage
            session.counts(usage)
            if _packets(session.last_usage) != _packets(last):
                session.idle_since_s = now
        return usages.keys()

    def _poll(self) -> None:
        """Read the usage of all sessions that have an Idle-Timeout, and schedule the next reading."""
        self._idling = {number: each for number, each in self._idling.items() if self._is_there(each)}
        self.read(self._idling.values())
        self._later("poll", max(_POLL_S, len(self._idling) / _POLLED_PER_S), self._poll)

    # All in turn.

    def _sweep(self) -> None:
        """Send echoes and router advertisements to one slice of the sessions; each slice has its turn in every echo interval."""
        self._later("sweep", self._configuration.echo_interval_s / _SLICES, self._sweep)
        self._slice = (self._slice + 1) % _SLICES
        if self._slice == 0:  # usage is read at once for all: that is far cheaper than slice by slice
            self.read(each for each in self._sessions.values() if each.counted)
        due = [each for each in self._sessions.values() if each.id % _SLICES == self._slice and each.counted]
        for each in due:
            if each.phase is Phase.NETWORK:
                self._look_after(each)

    def _look_after(self, session: PppSession) -> None:
        quiet = session.last_usage.packets_up == session.seen_up and not session.heard
        session.seen_up, session.heard = session.last_usage.packets_up, False
        if not quiet:
            session.echoes = 0
        elif session.echoes >= self._configuration.echo_failures:
            session.vanish(Cause.LOST_CARRIER)
            return
        else:
            session.echoes += 1
            session.lcp.send_echo_request()
        if self._clock.now() - session.advertised_s >= self._configuration.advertisement_interval_s:
            session.advertise()


def _is_over(session: PppSession, now: float) -> bool:
    """Return True if a session has reached its Session-Timeout."""
    timeout_s = session.grant.session_timeout_s if session.grant is not None else 0
    return timeout_s > 0 and now - session.began_s >= timeout_s - _ROUNDING_S


def _boundary(session: PppSession, at_s: float) -> float:
    """Return the last time not after ``at_s`` that is a whole number of accounting intervals after the session's start."""
    assert session.grant is not None
    interval_s = session.grant.interim_s
    return session.began_s + math.floor((at_s - session.began_s) / interval_s + _ROUNDING_S) * interval_s


def _packets(usage: Usage) -> tuple[int, int]:
    return usage.packets_up, usage.packets_down
