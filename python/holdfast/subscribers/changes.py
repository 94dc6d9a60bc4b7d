"""Carries out what sessions' states demand: in the user plane, in the store and in accounting, many sessions at once.

By their order, nothing is forwarded that is not kept and accounted: who leaves is kept as ending, then removed, then accounted and
forgotten; who is to forward is kept as being set up, then installed, then accounted and kept as forwarding, and only then told so.
What is accounted and what is kept change in one transaction: whenever the process dies, the next one can tell what is missing. One
session's failure is that session's alone.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from holdfast.subscribers import durations
from holdfast.subscribers.accounting import Cause, Kind
from holdfast.subscribers.installation import Installation
from holdfast.subscribers.keeping import Keeping, Stored
from holdfast.subscribers.plane import Clock, Session, Usage
from holdfast.subscribers.session import Grant, PppSession

log = logging.getLogger(__name__)

BATCH_S = 0.002
"""The time that sessions to be installed wait for more, so that a storm of setups makes few writes."""

RETRY_S = 1.0
"""The time after which what failed is tried again: a removal, a change of an established session, all if the plane is away."""

_MOST_HELD = 64
"""Frames of one session that wait for its installation."""

_MOST_WARNINGS = 1000


class Owner(Protocol):
    """The gateway, as far as :class:`Changes` needs it."""

    sessions: dict[int, PppSession]
    clock: Clock
    events: Counter[str]
    drops: Counter[str]

    def wall(self) -> float:
        """Return the Unix time in seconds."""

    def record(self, kind: Kind, session: PppSession) -> None:
        """Write an accounting record of this kind about a session."""

    def together(self) -> AbstractContextManager[None]:
        """Return a context that writes records and sessions in one transaction, and sends the records after it."""

    def forwards(self, session: PppSession) -> None:
        """Mark a session as forwarding: the user plane has it in its present state."""

    def free(self, number: int) -> None:
        """Free an ended session's number and addresses for other sessions, as nothing is left of it."""

    def send_frame(self, session: PppSession, frame: bytes) -> None:
        """Send an Ethernet frame to a session's subscriber."""


class Changes:
    """The sessions whose changed state has to be written. Each of them is in one of the three collections below, or in none."""

    def __init__(self, owner: Owner, installation: Installation, keeping: Keeping) -> None:
        self._owner, self._installation, self._keeping = owner, installation, keeping
        self._changed: dict[int, PppSession] = {}
        self._ended: dict[int, PppSession | None] = {}
        """None: a session of which only the user plane knows."""
        self._postponed: dict[int, PppSession | None] = {}
        self._altered: dict[int, tuple[Grant, list[Callable[[str | None], None]]]] = {}
        """The former grant of each session, and the functions that are told whether the user plane takes what is granted now."""
        self._held: dict[int, list[bytes]] = {}
        self._timer: Callable[[], None] | None = None
        self._retry: Callable[[], None] | None = None
        self._marking: Callable[[], None] | None = None
        self._marked: set[int] = set()
        """Sessions that end, and that the store has marked as ending."""
        self._returning: set[int] = set()
        """Restored sessions that the user plane does not have yet."""
        self._away = False
        """True if the user plane did not answer last: then it is asked once in a while, however much there is to change."""
        self._warned: set[tuple[int, str]] = set()

    def changed(self, session: PppSession) -> None:
        """Schedule a write of a session's state to user plane, store and accounting.

        Nothing is scheduled for a session that is unknown, or that neither was installed nor is to be.
        """
        if self._owner.sessions.get(session.id) is not session:
            return
        if not session.counted and session.id not in self._installation and session.wanted is None:
            return
        self._changed[session.id] = session
        self._soon()

    def ended(self, session: PppSession) -> None:
        """Schedule the removal of an ended session, and send the frames that waited for its installation."""
        self._changed.pop(session.id, None)
        self._postponed.pop(session.id, None)
        self._returning.discard(session.id)
        self._ended[session.id] = session
        self._tell(session.id, "the session has ended")
        self._say(session)
        self._soon()

    def forget(self, number: int) -> None:
        """Schedule the removal of a session that the user plane has and the gateway does not know."""
        self._ended[number] = None
        self._soon()

    def alter(self, session: PppSession, grant: Grant, done: Callable[[str | None], None]) -> None:
        """Replace a session's grant and schedule the write.

        Then call ``done`` with None, or with the reason if the write failed.
        """
        assert session.grant is not None
        _, waiting = self._altered.setdefault(session.id, (session.grant, []))
        waiting.append(done)
        session.grant = grant
        self._changed[session.id] = session
        self._soon()

    def take_up(self, session: PppSession) -> None:
        """Schedule the installation of a stored session that the user plane lacks.

        If the user plane refuses it, the session ends.
        """
        self._returning.add(session.id)
        self.changed(session)

    def read(self, session: PppSession) -> None:
        """Store the state of a forwarding session with its latest usage, so that a restarted process continues from there."""
        if session.id in self._keeping and session.id not in self._marked and session.id not in self._ended:
            self._keeping.keep({session.id: self._stored(session)})

    def hold(self, session: PppSession, frame: bytes) -> bool:
        """Return True if a frame has to wait until the session's state is written, and queue the frame; else return False.

        If the session's queue is full, the frame is dropped and counted.
        """
        number = session.id
        away = number in self._postponed and not session.counted
        if not away and number not in self._changed and number not in self._held:
            return False
        waiting = self._held.setdefault(session.id, [])
        if len(waiting) < _MOST_HELD:
            waiting.append(frame)
        else:
            self._owner.drops["held"] += 1
        return True

    @property
    def leaving(self) -> frozenset[int]:
        """The numbers of ended sessions that are not removed everywhere yet, so that their numbers and addresses are not free."""
        sessions = self._owner.sessions
        books = {**self._postponed, **self._ended}
        return frozenset(number for number, each in books.items() if each is None or sessions.get(number) is not each)

    @property
    def waiting(self) -> frozenset[int]:
        """The numbers of the sessions whose state is not written yet."""
        return frozenset((*self._changed, *self._ended, *self._postponed))

    def stop(self) -> None:
        """Write all pending changes, including those that failed before, and cancel the timers."""
        self._again()
        for cancel in (self._timer, self._retry, self._marking):
            if cancel is not None:
                cancel()
        self._timer = self._retry = self._marking = None

    def flush(self) -> None:
        """Write all scheduled changes to the user plane, the store and the accounting now."""
        if self._timer is not None:
            self._timer()
            self._timer = None
        changed, self._changed = self._changed, {}
        ended, self._ended = self._ended, {}
        wanted = {number: each.wanted for number, each in changed.items()}
        staying = {number: whole for number, whole in wanted.items() if whole is not None}
        leaving = ended | {number: each for number, each in changed.items() if number not in staying}
        self._mark(leaving)
        removed = self._installation.remove(leaving)
        gone = {number: each for number, each in leaving.items() if number not in removed}
        with self._owner.together():
            for number, session in gone.items():
                self._close(session, removed.usages.get(number))
            unkept = self._keeping.keep({number: self._stored(changed[number]) for number in staying}, gone)
        self._marked -= gone.keys()
        for number, session in leaving.items():
            if number in removed:
                self._owner.events["removal-failures"] += 1
                self._warn(number, "cannot be removed from the user plane", removed.why(number))
                self._postpone(number, session)
            elif number in ended:
                self._owner.free(number)
            elif session is not None:
                self._tell(number, None)
                self._say(session)
        self._install(changed, staying, unkept)
        self._away |= bool(removed.unreached)
        if self._keeping.behind:
            self._retry_later()

    def _install(
        self, changed: Mapping[int, PppSession], staying: Mapping[int, Session], unkept: Mapping[int, str]
    ) -> None:
        """Write the stored sessions of ``staying`` to the user plane.

        ``unkept``: by number, why the store did not take a session.
        """
        installed = self._installation.install({key: each for key, each in staying.items() if key not in unkept})
        there = [changed[number] for number in staying if number not in unkept and number not in installed]
        unsaid = self._begin([each for each in there if not each.counted])
        for number in staying:
            if number in unkept:
                self._fail(changed[number], "unkept", "cannot be kept", unkept[number])
            elif number in installed.unreached:
                self._revert(changed[number], installed.why(number))
                self._postpone(number, changed[number])
            elif number in installed:
                why = installed.why(number)
                self._fail(changed[number], "install-failures", "is refused by the user plane", why)
            else:
                self._settle(changed[number])
            if number in unsaid:
                self._owner.events["unkept"] += 1
                self._warn(number, "forwards, and is kept as one that is being set up", unsaid[number])
                self._postpone(number, changed[number])
        self._away = bool(installed.unreached)

    def _begin(self, sessions: Collection[PppSession]) -> dict[int, str]:
        """Account the start of sessions and store them as forwarding. Returns by number why the store did not take a session."""
        if not sessions:
            return {}
        with self._owner.together():
            for each in sessions:
                each.counted = True
                each.started_s = self._owner.wall()
                each.began_s = each.idle_since_s = each.interim_at_s = self._owner.clock.now()
                self._owner.record(Kind.START, each)
            return self._keeping.keep({each.id: self._stored(each) for each in sessions})

    def _mark(self, leaving: Mapping[int, PppSession | None]) -> None:
        """Store the final usage of sessions that end and mark them as ending, so that a restarted process does not restore them.

        ``leaving``: by number, the sessions that end; None for a session of which only the user plane knows.
        """
        if self._marking is not None:
            self._marking()
            self._marking = None
        ending = {
            number: each
            for number, each in leaving.items()
            if each is not None and each.counted and number in self._keeping and number not in self._marked
        }
        for number, usage in ({} if self._away else self._installation.usage(ending)).items():
            ending[number].counts(usage)
        rows = {number: self._stored(each, each.cause or Cause.NAS_ERROR) for number, each in ending.items()}
        refused = self._keeping.keep(rows) if rows else {}
        self._marked |= rows.keys() - refused.keys()

    def _settle(self, session: PppSession) -> None:
        """Report that the user plane has a session in its present state, then send the frames that waited for this."""
        self._returning.discard(session.id)
        self._owner.forwards(session)
        self._tell(session.id, None)
        self._say(session)

    def _close(self, session: PppSession | None, usage: Usage | None) -> None:
        """Account the stop of a session that the user plane has removed.

        ``usage`` is its last usage, or None if it is not known.
        """
        if session is None or not session.counted:
            return
        if usage is not None:
            session.counts(usage)
        self._owner.record(Kind.STOP, session)
        session.counted = False

    def _fail(self, session: PppSession, event: str, what: str, why: str) -> None:
        """Handle a failed write of a session: end the session if it is being set up, or if its new user plane refuses it.

        If it forwards, keep it and schedule a retry.
        """
        reverted = self._revert(session, why)
        self._owner.events[event] += 1
        self._warn(session.id, what, why)
        if not session.counted or (event == "install-failures" and session.id in self._returning):
            session.vanish(Cause.NAS_ERROR)
        elif reverted:
            self.changed(session)  # what is kept of it is as before
            self._say(session)
        else:
            self._postpone(session.id, session)
            self._say(session)

    def _revert(self, session: PppSession, why: str) -> bool:
        """Restore a session's grant from before its alteration and report ``why`` to the requester.

        Returns False if nothing was altered.
        """
        before = self._altered.get(session.id)
        if before is None:
            return False
        session.grant = before[0]
        self._tell(session.id, why)
        return True

    def _tell(self, number: int, why: str | None) -> None:
        _, waiting = self._altered.pop(number, (None, ()))
        for done in waiting:
            done(why)

    def _say(self, session: PppSession) -> None:
        for frame in self._held.pop(session.id, ()):
            self._owner.send_frame(session, frame)

    def _postpone(self, number: int, session: PppSession | None) -> None:
        self._postponed[number] = session
        self._retry_later()

    def _retry_later(self) -> None:
        if self._retry is None:
            self._retry = self._owner.clock.call_later(RETRY_S, self._again)

    def _again(self) -> None:
        """Schedule the changes that failed before once more, and write all scheduled changes."""
        self._retry = None
        postponed, self._postponed = self._postponed, {}
        for number, session in postponed.items():
            if session is not None and self._owner.sessions.get(number) is session:
                self._changed.setdefault(number, session)
            else:
                self._ended.setdefault(number, session)
        self.flush()

    def _soon(self) -> None:
        if self._timer is None:
            self._timer = self._owner.clock.call_later(RETRY_S if self._away else BATCH_S, self._now)
        if self._away and self._marking is None:
            self._marking = self._owner.clock.call_later(BATCH_S, self._mark_now)

    def _mark_now(self) -> None:
        """Mark the leaving sessions in the store, although a user plane that does not answer keeps them from being removed."""
        self._marking = None
        gone = {number: each for number, each in self._changed.items() if each.wanted is None}
        self._mark(self._ended | gone)

    def _now(self) -> None:
        self._timer = None
        self.flush()

    def _warn(self, number: int, what: str, why: str) -> None:
        if (number, what) not in self._warned and len(self._warned) < _MOST_WARNINGS:
            self._warned.add((number, what))
            log.warning("session %d %s: %s", number, what, why)

    def _stored(self, session: PppSession, cause: Cause | None = None) -> Stored:
        """Return the row that the store keeps of a session; a ``cause`` marks the row as ending."""
        assert session.grant is not None
        clock = self._owner.clock
        clock_s = clock.now()
        six = session.ipv6cp
        began_s = session.began_s if session.counted else clock_s
        return Stored(
            session.grant,
            session.accounting_id,
            session.started_s or self._owner.wall(),
            session.ipcp is not None and session.ipcp.opened,
            six.theirs if six is not None and six.opened else None,
            session.delegation_bound,
            session.delegation_released,
            session.request.max_payload,
            session.request.circuit_id,
            session.request.remote_id,
            session.request.service,
            session.opened,
            began_s,
            durations.epoch(clock),
            clock_s - began_s,
            session.counted,
            cause,
            session.last_usage,
            session.earlier_usage,
        )
