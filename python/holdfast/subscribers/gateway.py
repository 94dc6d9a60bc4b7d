"""The gateway: joins discovery, sessions, addresses, authentication, accounting, storage and the user plane.

Sans I/O: frames come from a :class:`UserPlane`, time from a :class:`Clock`. The same code runs simulated and live, in one thread.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from holdfast.errors import HoldfastError
from holdfast.subscribers import dhcpv6_pd, durations, pools, pppoe
from holdfast.subscribers.accounting import Accountant, Cause, Kind, Record
from holdfast.subscribers.admission import Admission
from holdfast.subscribers.authentication import Answer, Authenticator, Question, Verdict, unlimitable
from holdfast.subscribers.changes import Changes
from holdfast.subscribers.configuration import Configuration
from holdfast.subscribers.grants import Grants, Refusal
from holdfast.subscribers.installation import Installation
from holdfast.subscribers.keeping import Keeping, Store, Stored
from holdfast.subscribers.lcp import Authentication
from holdfast.subscribers.plane import Clock, Line, Rates, Session, UserPlane, plane_addresses
from holdfast.subscribers.ppp import Protocol as PppProtocol
from holdfast.subscribers.ppp import Restart
from holdfast.subscribers.session import Grant, Phase, PppSession, Rules
from holdfast.subscribers.setup_turns import SetupTurns
from holdfast.subscribers.upkeep import Upkeep

log = logging.getLogger(__name__)

_METHODS = {"chap": Authentication.CHAP, "pap": Authentication.PAP}

_NOBODY = bytes(6)

_MOST_WARNINGS = 100
"""Lines whose first refusal by a limit is logged; all refusals are counted."""


class Nobody:
    """An accountant that discards records, and a store that keeps nothing."""

    def account(self, record: Record) -> None:
        """Discard the accounting record."""

    def load(self) -> list[Stored]:
        """Return an empty list, as nothing is stored."""
        return []

    def save(self, put: Iterable[Stored], drop: Iterable[int]) -> None:
        """Discard the sessions, as nothing is stored."""


@dataclass(frozen=True)
class Reconciled:
    """The result of :meth:`Gateway.reconcile`: sessions kept, installed again, and removed because nobody knew them."""

    kept: int
    reinstalled: int
    removed: int


class Gateway:
    """A broadband network gateway's control plane.

    ``random`` gives unpredictable bytes; in a simulation, those of its seed. ``wall`` is Unix time. No subscriber may have the
    gateway's own addresses: those of the configuration, and those that the user plane says are its own, if it does.
    """

    def __init__(
        self,
        configuration: Configuration,
        plane: UserPlane,
        clock: Clock,
        authenticator: Authenticator,
        *,
        random: Callable[[int], bytes],
        accountant: Accountant | None = None,
        store: Store | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.configuration, self.clock, self.random, self.wall = configuration, clock, random, wall
        self._plane, self._authenticator = plane, authenticator
        self._withdraw: Callable[[Line, int, str], None] | None = getattr(authenticator, "withdraw", None)
        self._accountant: Accountant = Nobody() if accountant is None else accountant
        self._together: Callable[[], AbstractContextManager[None]] = getattr(accountant, "together", nullcontext)
        mac = configuration.mac_bytes
        limits, six = configuration.limits, configuration.ipv6
        self.rules = Rules(
            name=configuration.name,
            authentication=tuple(_METHODS[each] for each in configuration.authentication),
            address=configuration.address,
            dns6=six.dns if six else (),
            interface=mac[:3] + b"\xff\xfe" + mac[3:],
            duid=dhcpv6_pd.duid(mac),
            setup_timeout_s=limits.setup_timeout_s,
            restart=Restart(),
            lease_s=six.lease_s if six else 3600,
        )
        self._called = mac.hex("-").upper().encode()
        """Called-Station-Id (RFC 2865, section 5.30), written as RFC 3580, section 3.20, has it."""
        cookies = pppoe.Cookies(random(32), random)
        self.concentrator = pppoe.Concentrator(
            mac, configuration.name, configuration.services, configuration.max_payload, cookies
        )
        self.sessions: dict[int, PppSession] = {}
        self._setting_up: set[int] = set()
        self._turns = SetupTurns()
        self.events: Counter[str] = Counter()
        self.drops: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        """Setups and logins refused, by the setting of ``limits`` that refused them."""
        self._warned: set[tuple[str, Line]] = set()
        self._refused: set[tuple[bytes, str]] = set()
        """Users and reasons that are logged; all refusals are counted."""
        self.draining = False
        self._admission = Admission(limits.padi_per_line_s, limits.padi_per_s)
        self._setup_admission = Admission(limits.padi_per_line_s, limits.padi_per_s)
        self._by_cookie: dict[bytes, PppSession] = {}
        self._by_mac: dict[bytes, list[PppSession]] = {}
        self._by_line: Counter[Line] = Counter()
        self._ids = pools.session_ids(limits.sessions)
        self._grants = Grants(configuration, plane_addresses(plane))
        self._installation = Installation(plane, self.events)
        self._keeping = Keeping(Nobody() if store is None else store, self.events)
        self._changes = Changes(self, self._installation, self._keeping)
        self.upkeep = Upkeep(configuration, self.sessions, plane, clock, self.events, self._interim)
        plane.receive(self.receive)

    def start(self) -> None:
        """Start the periodic work on sessions: echoes, timeouts, interim accounting and router advertisements."""
        self.upkeep.start()

    def stop(self) -> None:
        """Stop the timers and write pending changes. Sessions stay in the user plane and in the store."""
        self._changes.stop()
        self.upkeep.stop()

    def reconcile(self) -> Reconciled:
        """Restore the sessions of an earlier process. A session that both store and user plane have is kept without a packet lost.

        A session that only the store has is installed again, or ends if the user plane refuses it. A session that only the user
        plane has is removed, and its subscriber gets a PADT. The same happens to a session that has ended, which gets its
        accounting Stop, and to one that has not begun, which had no Start and so gets no Stop.
        """
        there = self._installation.read()
        kept = 0
        returning: list[PppSession] = []
        over: dict[int, Session] = {}
        for stored in sorted(self._keeping.load(), key=lambda each: not each.goes_on):  # what ends is in nobody's way
            session = self._made_of(stored, stored.grant.session.session_id in there)
            if not self._restore(stored, session):
                over[session.id] = stored.grant.session
                if stored.accounted:
                    self._changes.ended(session)
                else:
                    self._changes.forget(session.id)
            elif there.get(session.id) == session.wanted:
                kept += 1
            elif session.id in there:
                returning.append(session)
                self.changed(session)
            else:
                returning.append(session)
                self._changes.take_up(session)
        strangers = {
            number: each for number, each in there.items() if number not in self.sessions and number not in over
        }
        for number, each in strangers.items():
            self._grants.restore(each, b"")  # until it is removed, nobody else has what it has
            self._changes.forget(number)
        for number, each in (over | strangers).items():
            self._ids.reserve(number)
            self._send(each.line, self.concentrator.terminate(each.mac, number))
        self.flush()
        if any(self.sessions.get(each.id) is not each for each in returning):
            self.flush()  # their Stops come before whatever the process says of itself
        self.upkeep.read(self.sessions.values())
        reinstalled = sum(self.sessions.get(each.id) is each for each in returning)
        return Reconciled(kept, reinstalled, sum(number in there for number in (*over, *strangers)))

    # Notifications of the user plane.

    def receive(self, line: Line, frame: bytes) -> None:
        """Process a PPPoE discovery or PPP control frame from an access line (a port and its VLAN tags); the frame has no tags."""
        kind = frame[12:14]
        try:
            if kind == pppoe.SESSION:
                self._receive_session(line, frame)
            elif kind == pppoe.DISCOVERY and len(frame) >= 20:
                self._receive_discovery(line, frame)
            else:
                self.drops["ethertype"] += 1
        except pppoe.MalformedError as error:
            self.drops[str(error)] += 1

    def _receive_session(self, line: Line, frame: bytes) -> None:
        destination, source, session_id, protocol, payload = pppoe.read_session(frame)
        if destination != self.concentrator.mac:
            self.drops["destination"] += 1
            return
        session = self.sessions.get(session_id)
        if session is None:
            self.drops["no-session"] += 1
            # Its session died with an earlier gateway: a PADT lets the subscriber redial at once (section 5.5).
            if protocol == PppProtocol.LCP and self._setup_admission.admits(line, self.clock.now()) is None:
                self._send(line, self.concentrator.terminate(source, session_id))
        elif session.mac != source or session.line != line:
            self.drops["spoofed"] += 1
        else:
            session.receive(protocol, payload)

    def _receive_discovery(self, line: Line, frame: bytes) -> None:
        code, destination = frame[15], frame[:6]
        if frame[6] & 1 or frame[6:12] in (_NOBODY, self.concentrator.mac):
            self.drops["source"] += 1
            return
        if destination != self.concentrator.mac and (code != pppoe.Code.PADI or destination != pppoe.BROADCAST):
            self.drops["destination"] += 1
            return
        now = self.clock.now()
        if code == pppoe.Code.PADI:
            self.events["padi"] += 1
            why = "draining" if self.draining else self._admission.admits(line, now)
            if why is not None:
                self.drops[why] += 1
                return
            offer = self.concentrator.offer(pppoe.read_discovery(frame), line, now)
            if offer is None:
                self.drops["service"] += 1
            else:
                self.events["pado"] += 1
                self._send(line, offer)
        elif code == pppoe.Code.PADR:
            self.events["padr"] += 1
            why = self._setup_admission.admits(line, now)
            if why is not None:
                self.drops[why] += 1
                return
            self._setup(pppoe.read_discovery(frame), line, now)
        elif code == pppoe.Code.PADT:
            packet = pppoe.read_discovery(frame)
            session = self.sessions.get(packet.session_id)
            if session is None:
                self.drops["no-session"] += 1
            elif session.mac != packet.source or session.line != line:
                self.drops["spoofed"] += 1
            else:
                self.events["padt"] += 1
                session.vanish(Cause.USER_REQUEST)
        else:
            self.drops["code"] += 1

    def _setup(self, padr: pppoe.Discovery, line: Line, now: float) -> None:
        request = self.concentrator.request(padr, line, now)
        if isinstance(request, bytes):
            self.events["refused"] += 1
            self._send(line, request)
            return
        again = self._by_cookie.get(request.cookie)
        if again is not None:  # the PADS was lost
            self._send(line, self.concentrator.confirm(again.request, again.id))
            return
        error = self._hindrance(request)
        session_id = self._ids.take() if error is None else None
        if session_id is None:
            tag, sentence = error or self._refused_by("sessions", line, pppoe.Tag.AC_SYSTEM_ERROR, "no session is free")
            self.events["refused"] += 1
            self._send(line, self.concentrator.refuse(request, tag, sentence))
            return
        session = PppSession(self, session_id, request, self.random(8).hex(), request.max_payload)
        self._enter(session)
        self._by_cookie[request.cookie] = session
        self._send(line, self.concentrator.confirm(request, session_id))
        session.start()

    def _hindrance(self, request: pppoe.SetupRequest) -> tuple[pppoe.Tag, str] | None:
        """Return why a host may not have a session now, as (PPPoE tag, sentence); None if it may.

        A host at its limit loses its oldest session. A host is a MAC address on an access line: a host with the same address on
        another line has proved nothing before its login.
        """
        limits, line = self.configuration.limits, request.line
        if self.draining:
            return pppoe.Tag.AC_SYSTEM_ERROR, "the gateway takes no new sessions"
        own = [each for each in self._by_mac.get(request.mac, ()) if each.line == line]
        replaces = len(own) >= limits.sessions_per_mac
        if self._by_line[line] - replaces >= limits.sessions_per_line:
            return self._refused_by(
                "sessions_per_line", line, pppoe.Tag.GENERIC_ERROR, "too many sessions on this line"
            )
        if self.setups >= limits.setups and not self._gives_way(line):
            return self._refused_by("setups", line, pppoe.Tag.AC_SYSTEM_ERROR, "too many sessions are being set up")
        if replaces:
            self.events["replaced"] += 1
            own[0].vanish(Cause.LOST_CARRIER)
        return None

    def _gives_way(self, line: Line) -> bool:
        """End an unfinished setup to make room for a new one of the access line ``line``; return True.

        The setup is one of the line or access node that has more of them than ``line``; return False if there is none.
        """
        number = self._turns.in_favour_of(line)
        if number is None:
            return False
        self.events["displaced"] += 1
        self.sessions[number].vanish(Cause.NAS_REQUEST)
        return True

    def _refused_by(self, limit: str, line: Line, tag: pppoe.Tag, sentence: str) -> tuple[pppoe.Tag, str]:
        """Count a refusal by a limit and log the first of each access line, as the limit may be too low.

        Return ``tag`` and ``sentence``.
        """
        self.refusals[limit] += 1
        if (limit, line) not in self._warned and len(self._warned) < _MOST_WARNINGS:
            self._warned.add((limit, line))
            most = getattr(self.configuration.limits, limit)
            log.warning("line %d:%d.%d: %s (limits.%s is %d)", line.port, line.s_tag, line.c_tag, sentence, limit, most)
        return tag, sentence

    def _crowded(self, session: PppSession, user: bytes) -> str | None:
        """Return why a host that has logged in may not have a further session, as a sentence; None if it may.

        At the limit, the host's oldest session of the same user, from before the host moved to this access line, ends to make room;
        a host without such a session is refused.
        """
        limits = self.configuration.limits
        others = [each for each in self._by_mac[session.mac] if each.phase is Phase.NETWORK and each is not session]
        if len(others) < limits.sessions_per_mac:
            return None
        mine = next((each for each in others if each.grant is not None and each.grant.user == user), None)
        if mine is None:
            return self._refused_by(
                "sessions_per_mac", session.line, pppoe.Tag.GENERIC_ERROR, "this host has sessions on another line"
            )[1]
        self.events["replaced"] += 1
        mine.vanish(Cause.LOST_CARRIER)
        return None

    # Requests of sessions: see session.Owner.

    def send_ppp(self, session: PppSession, protocol: int, payload: bytes) -> None:
        """Send a PPP packet to a session's subscriber, now or when the session's pending state has been written."""
        frame = pppoe.session_frame(session.mac, self.concentrator.mac, session.id, protocol, payload)
        if not self._changes.hold(session, frame):
            self._send(session.line, frame)

    def judge(self, question: Question, answer: Answer) -> None:
        """Start the authentication of a login; ``answer`` is called with the verdict, possibly later."""
        self.events["authentication"] += 1
        self._authenticator.authenticate(replace(question, called=self._called), answer)

    def grant(self, session: PppSession, verdict: Verdict) -> Grant | str:
        """Return the addresses and limits granted to a subscriber whose login was accepted, or the reason for a refusal."""
        user = verdict.user or session.user
        why = self._grants.hindrance(verdict)
        granted: Grant | Refusal | None = None if why is None else Refusal("not-served", f"not served here: {why}")
        if granted is None:
            crowded = self._crowded(session, user) or self._occupied(session, user)
            if crowded is not None:
                return crowded
            granted = self._grants.take(session, verdict)
        if isinstance(granted, Refusal) and granted.holders and self._replace(session, user, granted.holders):
            granted = self._grants.take(session, verdict)
        if isinstance(granted, Refusal):
            self.events[granted.event] += 1
            self._log_refusal(user, granted)
            return granted.reason
        self._turns.discard(session.id)
        return granted

    def changed(self, session: PppSession) -> None:
        """Schedule a write of a session's changed state to user plane, store and accounting."""
        self._changes.changed(session)

    def ended(self, session: PppSession) -> None:
        """Remove an ended session from the gateway's records, schedule its removal elsewhere, and send its subscriber a PADT."""
        if self.sessions.get(session.id) is not session:
            return
        del self.sessions[session.id]
        self._setting_up.discard(session.id)
        self._turns.discard(session.id)
        self._by_cookie.pop(session.request.cookie, None)
        mine = self._by_mac[session.mac]
        mine.remove(session)
        if not mine:
            del self._by_mac[session.mac]
        self._by_line[session.line] -= 1
        if not self._by_line[session.line]:
            del self._by_line[session.line]
        self.events["ended"] += 1
        if self._withdraw is not None:
            self._withdraw(session.line, session.id, session.accounting_id)
        self._changes.ended(session)
        self._send(session.line, self.concentrator.terminate(session.mac, session.id))

    def failed(self, session: PppSession, error: Exception) -> None:
        """Handle an exception in a session, which is a mistake of this program: count it, log the first, end this session alone."""
        self.events["faults"] += 1
        if self.events["faults"] == 1:
            log.error(
                "session %d is ended by a mistake of this program; others are counted", session.id, exc_info=error
            )
        try:
            session.vanish(Cause.NAS_ERROR)
        except Exception:  # noqa: BLE001 - whatever is wrong with it, it must go
            self.ended(session)

    # Requests of changes: see changes.Owner.

    def forwards(self, session: PppSession) -> None:
        """Mark a session as established, as the user plane now has it, and schedule its timeouts."""
        if session.opened and not session.established:
            session.establish()
            self._setting_up.discard(session.id)
            self.events["established"] += 1
        self.upkeep.watch(session)

    def free(self, number: int) -> None:
        """Free an ended session's number and addresses for other sessions."""
        self._ids.give_back(number)
        self._grants.release(number)

    def send_frame(self, session: PppSession, frame: bytes) -> None:
        """Send an Ethernet frame to a session's line."""
        self._send(session.line, frame)

    # Requests of operators.

    def kick(self, session_ids: Iterable[int], cause: Cause = Cause.ADMIN_RESET) -> int:
        """Start the termination of the given sessions that exist; return how many these are."""
        found = [self.sessions[each] for each in session_ids if each in self.sessions]
        for each in found:
            each.terminate(cause)
        return len(found)

    def may_forward(self, session: PppSession) -> bool:
        """Return True if the user plane has the session, or may have it after a write whose outcome is unknown."""
        return session.id in self._installation

    def drain(self) -> None:
        """Refuse new sessions from now on; sessions that exist stay."""
        self.draining = True

    def undrain(self) -> None:
        """Accept new sessions again, after :meth:`drain`."""
        self.draining = False

    @property
    def setups(self) -> int:
        """The number of sessions that are not established yet."""
        return len(self._setting_up)

    def change_rates(
        self, session: PppSession, rates: Rates, done: Callable[[str | None], None] = lambda why: None
    ) -> None:
        """Schedule new rate limits for a session without a stop of its traffic, then call ``done`` with None or why it failed."""
        grant = session.grant
        if grant is None:
            done("the session has not logged in")
        else:
            self._alter(session, replace(grant, session=replace(grant.session, rates=rates)), done)

    def change(self, session: PppSession, grant: Grant) -> str | None:
        """Replace a session's grant at once. Returns None, or the reason of a failure, after which the old grant still holds."""
        found: list[str | None] = []
        self._alter(session, grant, found.append)
        self.flush()
        return found[0]

    def _alter(self, session: PppSession, grant: Grant, done: Callable[[str | None], None]) -> None:
        why = unlimitable(grant.session.rates)
        if why is None and (session.phase is not Phase.NETWORK or self.sessions.get(session.id) is not session):
            why = "the session has ended"
        if why is not None:
            done(why)
        else:
            self._changes.alter(session, grant, done)

    def pool_use(self) -> Counter[str]:
        """Return the number of entries in use by pool name."""
        use = self._grants.use()
        use["session-ids"] = self._ids.used
        return use

    def flush(self) -> None:
        """Write scheduled changes now: removals, the store, then installations; finally send the frames that waited for these."""
        self._changes.flush()

    def violations(self) -> list[str]:
        """Return the contradictions in the gateway's records as sentences; tests call this after each step.

        Checked is: a session that forwards is accounted; entries taken from pools are those that sessions have; a session that is
        not established has a time at which it ends.
        """
        found = self._grants.violations()
        live, leaving = self.sessions, self._changes.leaving
        if any(number != each.id for number, each in live.items()) or not leaving.isdisjoint(live):
            found.append("a number has two sessions")
        if self._ids.taken != live.keys() | leaving:
            found.append("the numbers taken are not those of the sessions")
        granted = {number for number, each in live.items() if each.grant is not None}
        if not granted <= self._grants.owners <= granted | leaving:
            found.append("the owners of addresses are not the sessions that were granted some")
        for number, each in live.items():
            if each.counted != (number in self._installation) and number not in self._changes.waiting:
                found.append(f"session {number} is installed or accounted, but not both")
            if each.counted and number not in self._keeping and number not in self._changes.waiting:
                found.append(f"session {number} is accounted and not kept")
            if each.wanted is not None and each.phase is not Phase.NETWORK:
                found.append(f"session {number} forwards in phase {each.phase.value}")
            if not each.established and not each.ends_by_itself:
                found.append(f"session {number} is not established and has no deadline")
            if each.established == (number in self._setting_up):
                found.append(f"session {number} is counted wrongly among those being set up")
        if not self._installation.numbers <= live.keys() | leaving:
            found.append("something forwards that is no session's")
        if sum(self._by_line.values()) != len(live) or sum(map(len, self._by_mac.values())) != len(live):
            found.append("lines or hosts have other sessions than there are")
        if not self._setting_up <= live.keys():
            found.append("a session that has ended is being set up")
        turns = {number for number in live if number in self._turns}
        if len(turns) != len(self._turns) or not turns <= self._setting_up - granted:
            found.append("a session that has logged in, or has ended, may have to give way to a new one")
        return found

    # The rest is the gateway's own.

    def _send(self, line: Line, frame: bytes) -> None:
        try:
            self._plane.send(line, frame)
        except HoldfastError:  # subscribers ask again; a lost connection shows in what is installed, too
            self.events["send-failures"] += 1

    def _enter(self, session: PppSession) -> None:
        self.sessions[session.id] = session
        self._setting_up.add(session.id)
        self._turns.add(session.id, session.line)
        self._by_mac.setdefault(session.mac, []).append(session)
        self._by_line[session.line] += 1

    def _occupied(self, session: PppSession, user: bytes) -> str | None:
        """Return why a user who already has a session is refused another one (``single_session``), as a sentence.

        None if not refused.
        """
        setting = self.configuration.single_session
        others = self._grants.of_user(user) - {session.id}
        if setting == "off" or not user or not others or self._replace(session, user, others):
            return None
        self.events["single-session"] += 1
        return "this user has a session"

    def _replace(self, session: PppSession, user: bytes, holders: frozenset[int]) -> bool:
        """End the user's sessions that a new session may replace; return True if the user has no other sessions besides.

        Sessions on the new session's line or with its MAC address are the same host's from before it started anew. Others end if
        the setting ``single_session`` is "replace".
        """
        live = [each for each in (self.sessions.get(number) for number in holders) if each is not None]
        mine = [
            each
            for each in live
            if each.grant is not None
            and each.grant.user == user
            and (self.configuration.single_session == "replace" or session.line == each.line or session.mac == each.mac)
        ]
        if len(mine) < len(live):
            return False
        for each in mine:
            self.events["replaced"] += 1
            each.vanish(Cause.LOST_CARRIER)
        self.flush()  # what they had is free then, unless the user plane does not let them go
        return True

    def _log_refusal(self, user: bytes, refusal: Refusal) -> None:
        if len(self._refused) < _MOST_WARNINGS and (user, refusal.reason) not in self._refused:
            self._refused.add((user, refusal.reason))
            log.warning("user %r is refused: %s", user, refusal.reason)

    def _made_of(self, stored: Stored, forwards: bool) -> PppSession:
        """Return a session object for a stored session of an earlier process. ``forwards``: the user plane has this session."""
        whole = stored.grant.session
        request = pppoe.SetupRequest(
            whole.line, whole.mac, stored.service, stored.peer_mru, stored.circuit_id, stored.remote_id, b"", ()
        )
        session = PppSession(self, whole.session_id, request, stored.accounting_id, stored.peer_mru)
        session.user = stored.grant.user
        lasted_s = durations.elapsed_s(self.clock, stored.began_s, stored.epoch)
        if lasted_s is None:
            # The machine was started anew: the day's time is all that is left, and may have been set back.
            lasted_s = max(stored.lasted_s, self.wall() - stored.started_s)
        if stored.cause is not None and not forwards:
            lasted_s = stored.lasted_s
        session.began_s = self.clock.now() - lasted_s
        session.idle_since_s = session.interim_at_s = self.clock.now()
        session.grant, session.cause, session.counted = stored.grant, stored.cause, stored.accounted
        session.started_s, session.last_usage = stored.started_s, stored.usage
        session.earlier_usage = stored.earlier if forwards else stored.usage
        return session

    def _restore(self, stored: Stored, session: PppSession) -> bool:
        """Restore a stored session. Returns False if it has ended, or if another session has its address or prefix now."""
        whole = stored.grant.session
        why = self._grants.restore(whole, stored.grant.user)
        if not stored.goes_on:
            return False
        if why is not None:
            log.warning("session %d of an earlier process is not taken up: %s", session.id, why)
            session.cause = Cause.NAS_REBOOT
            return False
        self._ids.reserve(session.id)
        self._enter(session)
        session.restore(
            stored.grant,
            whole.magic,
            stored.ipcp,
            stored.interface,
            stored.bound,
            stored.released,
            stored.started_s,
            stored.established,
        )
        self._turns.discard(session.id)
        if session.established:
            self._setting_up.discard(session.id)
        self.upkeep.watch(session)
        self.events["restored"] += 1
        return True

    def _interim(self, session: PppSession) -> None:
        """Write an interim accounting record, and store the same usage, so that no record after a restart reports less."""
        with self._together():
            self.record(Kind.INTERIM, session)
            self._changes.read(session)

    def together(self) -> AbstractContextManager[None]:
        """Return a context that writes records and sessions in one transaction, and sends the records after it."""
        return self._together()

    def record(self, kind: Kind, session: PppSession) -> None:
        """Write an accounting record of this kind about a session."""
        grant = session.grant
        assert grant is not None
        self._accountant.account(
            Record(
                kind,
                session.accounting_id,
                grant.user,
                grant.session,
                int(self.wall()),
                int(self.clock.now() - session.began_s + 0.001),  # timers are exact, and their sums are not
                session.last_usage,
                session.cause if kind is Kind.STOP else None,
                grant.classes,
                session.request.circuit_id,
                session.request.remote_id,
                self._called,
                grant.chargeable,
                self.clock.now(),
                durations.epoch(self.clock),
            )
        )
