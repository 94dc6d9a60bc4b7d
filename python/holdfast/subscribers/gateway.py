"""The gateway: joins discovery, sessions, addresses, authentication, accounting, storage and the user plane.

Sans I/O: frames come from a :class:`UserPlane`, time from a :class:`Clock`. The same code runs simulated and live, in one thread.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Network
from typing import Protocol

from holdfast.errors import HoldfastError
from holdfast.subscribers import dhcpv6_pd, pools, pppoe
from holdfast.subscribers.accounting import Accountant, Cause, Kind, Record
from holdfast.subscribers.admission import Admission
from holdfast.subscribers.authentication import Answer, Authenticator, Question, Verdict, unservable
from holdfast.subscribers.configuration import Configuration
from holdfast.subscribers.lcp import Authentication
from holdfast.subscribers.plane import Clock, Line, Rates, Session, Usage, UserPlane
from holdfast.subscribers.ppp import Protocol as PppProtocol
from holdfast.subscribers.ppp import Restart
from holdfast.subscribers.session import Grant, Phase, PppSession, Rules
from holdfast.subscribers.upkeep import Upkeep

log = logging.getLogger(__name__)

_METHODS = {"chap": Authentication.CHAP, "pap": Authentication.PAP}

BATCH_S = 0.002
"""The time that sessions to be installed wait for more, so that a storm of setups makes few writes."""

_MOST_WARNINGS = 100
"""Lines whose first refusal by a limit is logged; all refusals are counted."""


@dataclass(frozen=True)
class Stored:
    """The state that outlives the process: a session with all that its next control plane must know."""

    grant: Grant
    accounting_id: str
    started_s: float
    ipcp: bool
    interface: bytes | None
    bound: dhcpv6_pd.Bound
    released: bool
    peer_mru: int
    circuit_id: bytes = b""
    remote_id: bytes = b""
    service: bytes = b""


class Store(Protocol):
    """The store of sessions. Changes of one call are there together or not at all."""

    def load(self) -> list[Stored]:
        """All that is kept."""

    def save(self, put: Iterable[Stored], drop: Iterable[int]) -> None:
        """Keeps sessions, by session id, and forgets others."""


class Nobody:
    """An accountant where nobody bills, and a store that forgets."""

    def account(self, record: Record) -> None:
        """See :class:`Accountant`."""

    def load(self) -> list[Stored]:
        """See :class:`Store`."""
        return []

    def save(self, put: Iterable[Stored], drop: Iterable[int]) -> None:
        """See :class:`Store`."""


@dataclass(frozen=True)
class Reconciled:
    """The result of :meth:`Gateway.reconcile`: sessions kept, installed again, and removed because nobody knew them."""

    kept: int
    reinstalled: int
    removed: int


class Gateway:
    """A broadband network gateway's control plane.

    ``random`` gives unpredictable bytes; in a simulation, those of its seed. ``wall`` is Unix time.
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
        self.configuration, self.clock, self.random = configuration, clock, random
        self._plane, self._authenticator, self.wall = plane, authenticator, wall
        self._withdraw: Callable[[Line, int, str], None] | None = getattr(authenticator, "withdraw", None)
        self._accountant: Accountant = Nobody() if accountant is None else accountant
        self._store: Store = Nobody() if store is None else store
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
        self.setups = 0
        self.events: Counter[str] = Counter()
        self.drops: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        """Setups and logins refused, by the setting of ``limits`` that refused them."""
        self._warned: set[tuple[str, Line]] = set()
        self.draining = False
        self._admission = Admission(limits.padi_per_line_s, limits.padi_per_s)
        self._setup_admission = Admission(limits.padi_per_line_s, limits.padi_per_s)
        self._by_cookie: dict[bytes, PppSession] = {}
        self._by_mac: dict[bytes, list[PppSession]] = {}
        self._by_line: Counter[Line] = Counter()
        self._ids = pools.session_ids(limits.sessions)
        own = frozenset() if configuration.address is None else frozenset((configuration.address,))
        self._pools = {name: pools.addresses(network, own) for name, network in configuration.pools.items()}
        self._prefixes = pools.prefixes(six.prefixes, 64) if six else None
        self._delegations = (
            pools.prefixes(six.delegated, six.delegated_length) if six and six.delegated is not None else None
        )
        self._install: dict[int, PppSession] = {}
        self._ending: dict[int, PppSession] = {}
        self._installed: dict[int, Session | None] = {}
        self._held: dict[int, list[tuple[Line, bytes]]] = {}
        self._flushing: Callable[[], None] | None = None
        self.upkeep = Upkeep(
            configuration, self.sessions, plane, clock, self.events, lambda each: self._record(Kind.INTERIM, each)
        )
        plane.receive(self.receive)

    def start(self) -> None:
        """Begins to look after sessions: echoes, timeouts, interim accounting, router advertisements."""
        self.upkeep.start()

    def stop(self) -> None:
        """Stops timers; waiting changes are written. Sessions stay established in the user plane and in the store."""
        self.flush()
        self.upkeep.stop()

    def reconcile(self) -> Reconciled:
        """Takes up the sessions of an earlier process.

        One that both store and user plane have is kept without a packet lost. One that only the store has is installed again; one
        that only the user plane has is removed, and its subscriber gets a PADT.
        """
        there = self._plane.installed()
        kept = reinstalled = 0
        lost: list[int] = []
        for stored in self._store.load():
            session = self._restore(stored)
            if session is None:
                lost.append(stored.grant.session.session_id)
                continue
            if there.get(session.id) == session.wanted:
                kept += 1
            else:
                reinstalled += 1
                self._install[session.id] = session
            if session.id in there:
                self._installed[session.id] = there[session.id]
        strangers = [each for each in there.values() if each.session_id not in self.sessions]
        if strangers:
            self._plane.remove(each.session_id for each in strangers)
            for each in strangers:
                self._send(each.line, self.concentrator.terminate(each.mac, each.session_id))
        self._store.save((), lost)
        self.flush()
        return Reconciled(kept, reinstalled, len(strangers))

    # Notifications of the user plane.

    def receive(self, line: Line, frame: bytes) -> None:
        """A discovery or PPP control frame from a line, without VLAN tags."""
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
        if frame[6] & 1:
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
        self.setups += 1
        self._send(line, self.concentrator.confirm(request, session_id))
        session.start()

    def _hindrance(self, request: pppoe.SetupRequest) -> tuple[pppoe.Tag, str] | None:
        """Returns why a host cannot have a session now. A host at its limit loses its oldest session: it may have restarted.

        A host is a MAC address on a line: whoever has the address on another line has proved nothing before its login.
        """
        limits, line = self.configuration.limits, request.line
        if self.draining:
            return pppoe.Tag.AC_SYSTEM_ERROR, "the gateway takes no new sessions"
        if self.setups >= limits.setups:
            return self._refused_by("setups", line, pppoe.Tag.AC_SYSTEM_ERROR, "too many sessions are being set up")
        own = [each for each in self._by_mac.get(request.mac, ()) if each.line == line]
        if len(own) >= limits.sessions_per_mac:
            self.events["replaced"] += 1
            own[0].vanish(Cause.LOST_CARRIER)
        if self._by_line[line] >= limits.sessions_per_line:
            return self._refused_by(
                "sessions_per_line", line, pppoe.Tag.GENERIC_ERROR, "too many sessions on this line"
            )
        return None

    def _refused_by(self, limit: str, line: Line, tag: pppoe.Tag, sentence: str) -> tuple[pppoe.Tag, str]:
        """Counts a refusal by a limit, and logs the first one of each line: the limit may be too low for what the line is."""
        self.refusals[limit] += 1
        if (limit, line) not in self._warned and len(self._warned) < _MOST_WARNINGS:
            self._warned.add((limit, line))
            most = getattr(self.configuration.limits, limit)
            log.warning("line %d:%d.%d: %s (limits.%s is %d)", line.port, line.s_tag, line.c_tag, sentence, limit, most)
        return tag, sentence

    def _crowded(self, session: PppSession, user: bytes) -> str | None:
        """Returns why a host that has logged in is refused: its MAC address has its sessions on other lines, as another user.

        Those of the same user are its own, from before it moved: the oldest one ends.
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
        """See :class:`holdfast.subscribers.session.Owner`."""
        frame = pppoe.session_frame(session.mac, self.concentrator.mac, session.id, protocol, payload)
        if session.id in self._install:
            self._held.setdefault(session.id, []).append((session.line, frame))
        else:
            self._send(session.line, frame)

    def judge(self, question: Question, answer: Answer) -> None:
        """See :class:`holdfast.subscribers.session.Owner`."""
        self.events["authentication"] += 1
        self._authenticator.authenticate(replace(question, called=self._called), answer)

    def grant(self, session: PppSession, verdict: Verdict) -> Grant | str:
        """See :class:`holdfast.subscribers.session.Owner`."""
        why = unservable(verdict) or self._lacks(verdict)
        if why is not None:
            self.events["not-served"] += 1
            return f"not served here: {why}"
        crowded = self._crowded(session, verdict.user or session.user)
        if crowded is not None:
            return crowded
        taken = self._take(verdict)
        if taken is None:
            self.events["exhausted"] += 1
            return "no address is free"
        ipv4, prefix, delegated = taken
        lcp, configuration = session.lcp, self.configuration
        whole = Session(
            session_id=session.id,
            line=session.line,
            mac=session.mac,
            magic=lcp.magic,
            peer_mru=lcp.peer_mru,
            ipv4=ipv4,
            ipv6_prefix=prefix,
            delegated=delegated,
            rates=configuration.rates.rates() if verdict.rates is None else verdict.rates,
        )
        return Grant(
            verdict.user or session.user,
            whole,
            verdict.dns or configuration.dns,
            verdict.session_timeout_s,
            verdict.idle_timeout_s,
            verdict.interim_s or (configuration.radius.interim_s if configuration.radius else 0),
            verdict.classes,
            verdict.chargeable,
            verdict.dns6,
        )

    def changed(self, session: PppSession) -> None:
        """See :class:`holdfast.subscribers.session.Owner`."""
        self._install[session.id] = session
        self._flush_soon()

    def ended(self, session: PppSession) -> None:
        """See :class:`holdfast.subscribers.session.Owner`."""
        if self.sessions.get(session.id) is not session:
            return
        del self.sessions[session.id]
        self._by_cookie.pop(session.request.cookie, None)
        if not session.counted:
            self.setups -= 1
        mine = self._by_mac[session.mac]
        mine.remove(session)
        if not mine:
            del self._by_mac[session.mac]
        self._by_line[session.line] -= 1
        if not self._by_line[session.line]:
            del self._by_line[session.line]
        self._install.pop(session.id, None)
        for line, frame in self._held.pop(session.id, ()):
            self._send(line, frame)
        self.events["ended"] += 1
        if self._withdraw is not None:
            self._withdraw(session.line, session.id, session.accounting_id)
        self._send(session.line, self.concentrator.terminate(session.mac, session.id))
        self._ending[session.id] = session
        self._flush_soon()

    # Requests of operators.

    def kick(self, session_ids: Iterable[int], cause: Cause = Cause.ADMIN_RESET) -> int:
        """Terminates sessions; returns how many there were."""
        found = [self.sessions[each] for each in session_ids if each in self.sessions]
        for each in found:
            each.terminate(cause)
        return len(found)

    def drain(self) -> None:
        """Takes no new sessions from now on; those that are, stay."""
        self.draining = True

    def undrain(self) -> None:
        """Takes new sessions again."""
        self.draining = False

    def change_rates(self, session: PppSession, rates: Rates) -> None:
        """Other limits for a session; traffic does not stop."""
        session.change_rates(rates)

    def pool_use(self) -> Counter[str]:
        """The number of taken entries of each pool."""
        use = Counter({name: pool.used for name, pool in self._pools.items()})
        for name, prefixes in (("ipv6-prefixes", self._prefixes), ("ipv6-delegated", self._delegations)):
            if prefixes is not None:
                use[name] = prefixes.used
        use["session-ids"] = self._ids.used
        return use

    def flush(self) -> None:
        """Writes what waits: removals, then installations, then what subscribers may hear only afterwards."""
        if self._flushing is not None:
            self._flushing()
            self._flushing = None
        ending, self._ending = self._ending, {}
        installing, self._install = self._install, {}
        held, self._held = self._held, {}
        usages: dict[int, Usage] = {}
        gone = [each for each in ending if each in self._installed]
        wanted = {each.id: each.wanted for each in installing.values()}
        try:
            if gone:
                usages = self._plane.remove(gone)
            changes = {
                key: each for key, each in wanted.items() if each is not None and self._installed.get(key) != each
            }
            if changes:
                self._plane.install(changes.values())
        except HoldfastError:
            # The data plane's state is unknown: these sessions must go, and are removed again.
            self.events["plane-failures"] += 1
            self._ending = dict(ending)
            for each in installing.values():
                self._installed[each.id] = None
                each.vanish(Cause.NAS_ERROR)
            self._flush_later(1.0)
            return
        for number in gone:
            del self._installed[number]
        self._installed.update(changes)
        now = self.wall()
        self._store.save([self._stored(each, now) for each in installing.values() if each.established], list(ending))
        for key, each in ending.items():
            self._ids.give_back(key)
            if each.grant is not None:
                self._give_back(each.grant.session)
            if each.counted:
                each.last_usage = usages.get(key, each.last_usage)
                self._record(Kind.STOP, each)
        for each in installing.values():
            if each.established and not each.counted:
                each.counted = True
                each.started_s = now
                each.began_s = each.idle_since_s = each.interim_at_s = self.clock.now()
                self.setups -= 1
                self.events["established"] += 1
                self._record(Kind.START, each)
            if each.counted and each.phase is Phase.NETWORK:
                self.upkeep.watch(each)
        for frames in held.values():
            for line, frame in frames:
                self._send(line, frame)

    # The rest is the gateway's own.

    def _send(self, line: Line, frame: bytes) -> None:
        try:
            self._plane.send(line, frame)
        except HoldfastError:  # subscribers ask again; a lost connection shows in what is installed, too
            self.events["send-failures"] += 1

    def _enter(self, session: PppSession) -> None:
        self.sessions[session.id] = session
        self._by_mac.setdefault(session.mac, []).append(session)
        self._by_line[session.line] += 1

    def _take(self, verdict: Verdict) -> tuple[IPv4Address | None, IPv6Network | None, IPv6Network | None] | None:
        """Addresses by the verdict's word or from the pools; None, and nothing taken, if one is not to be had."""
        if verdict.ipv4 is not None:
            ipv4: IPv4Address | None = verdict.ipv4
            if not all(pool.reserve(verdict.ipv4) for pool in self._pools.values()):
                return None
        elif self._pools:
            pool = self._pools.get(verdict.ipv4_pool or next(iter(self._pools)))
            ipv4 = None if pool is None else pool.take()
            if ipv4 is None:
                return None
        else:
            ipv4 = None
        prefix, ok = _taken(self._prefixes, verdict.ipv6_prefix)
        if not ok:
            self._give_back(Session(0, Line(0), b"", 0, ipv4=ipv4))
            return None
        delegated, ok = _taken(self._delegations, verdict.delegated)
        if not ok:
            self._give_back(Session(0, Line(0), b"", 0, ipv4=ipv4, ipv6_prefix=prefix))
            return None
        return ipv4, prefix, delegated

    def _lacks(self, verdict: Verdict) -> str | None:
        """What a verdict names and this configuration has not: nothing of a verdict is left out in silence."""
        configuration = self.configuration
        if configuration.address is None and (verdict.ipv4 is not None or verdict.ipv4_pool or verdict.dns):
            return "this gateway has no IPv4"
        if verdict.ipv4 is not None and verdict.ipv4 == configuration.address:
            return f"{verdict.ipv4} is the gateway's own address"
        if verdict.ipv4 is None and verdict.ipv4_pool and verdict.ipv4_pool not in self._pools:
            return f"there is no pool {verdict.ipv4_pool!r}"
        if self._prefixes is None and verdict.ipv6_prefix is None and (verdict.delegated is not None or verdict.dns6):
            return "this gateway has no IPv6 prefixes"
        return None

    def _give_back(self, session: Session) -> None:
        if session.ipv4 is not None:
            for pool in self._pools.values():
                pool.give_back(session.ipv4)
        if session.ipv6_prefix is not None and self._prefixes is not None:
            self._prefixes.give_back(session.ipv6_prefix)
        if session.delegated is not None and self._delegations is not None:
            self._delegations.give_back(session.delegated)

    def _flush_soon(self) -> None:
        if self._flushing is None:
            self._flush_later(BATCH_S)

    def _flush_later(self, delay_s: float) -> None:
        if self._flushing is not None:
            self._flushing()
        self._flushing = self.clock.call_later(delay_s, self._flush_now)

    def _flush_now(self) -> None:
        self._flushing = None
        self.flush()

    def _stored(self, session: PppSession, now: float) -> Stored:
        assert session.grant is not None
        six = session.ipv6cp
        return Stored(
            session.grant,
            session.accounting_id,
            session.started_s or now,
            session.ipcp is not None and session.ipcp.opened,
            six.theirs if six is not None and six.opened else None,
            session.delegation_bound,
            session.delegation_released,
            session.request.max_payload,
            session.request.circuit_id,
            session.request.remote_id,
            session.request.service,
        )

    def _restore(self, stored: Stored) -> PppSession | None:
        """A session as it was; None if something else has its place by now."""
        whole = stored.grant.session
        if not self._ids.reserve(whole.session_id):
            return None
        request = pppoe.SetupRequest(
            whole.line, whole.mac, stored.service, stored.peer_mru, stored.circuit_id, stored.remote_id, b"", ()
        )
        session = PppSession(self, whole.session_id, request, stored.accounting_id, stored.peer_mru)
        session.user = stored.grant.user
        self._enter(session)
        if whole.ipv4 is not None:
            for pool in self._pools.values():
                pool.reserve(whole.ipv4)
        if whole.ipv6_prefix is not None and self._prefixes is not None:
            self._prefixes.reserve(whole.ipv6_prefix)
        if whole.delegated is not None and self._delegations is not None:
            self._delegations.reserve(whole.delegated)
        session.counted = True
        now = self.clock.now()
        session.began_s = now - max(0.0, self.wall() - stored.started_s)
        session.idle_since_s = session.interim_at_s = now
        session.restore(
            stored.grant,
            whole.magic,
            stored.ipcp,
            stored.interface,
            stored.bound,
            stored.released,
            stored.started_s,
        )
        self.upkeep.watch(session)
        self.events["restored"] += 1
        return session

    def _record(self, kind: Kind, session: PppSession) -> None:
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
            )
        )


def _taken(pool: pools.Pool[IPv6Network] | None, fixed: IPv6Network | None) -> tuple[IPv6Network | None, bool]:
    """A prefix by name or from a pool, and whether it could be had."""
    if fixed is not None:
        return fixed, pool is None or pool.reserve(fixed)
    if pool is None:
        return None, True
    prefix = pool.take()
    return prefix, prefix is not None
