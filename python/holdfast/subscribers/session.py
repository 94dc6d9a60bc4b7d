"""One subscriber's PPP session from the PADS on: link, authentication, network, and its end (RFC 1661, section 3).

It decides what the session may do and when it is over. Its owner, the gateway, sends, installs, accounts and gives addresses.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from ipaddress import IPv4Address, IPv6Address
from typing import Protocol

from holdfast.subscribers import dhcpv6_pd, ipv6, ppp
from holdfast.subscribers.accounting import Cause
from holdfast.subscribers.authentication import Answer, Credentials, Question, Verdict
from holdfast.subscribers.chap import Chap
from holdfast.subscribers.ipcp import Ipcp
from holdfast.subscribers.ipv6cp import Ipv6cp
from holdfast.subscribers.lcp import Authentication, Lcp
from holdfast.subscribers.pap import Pap
from holdfast.subscribers.plane import Clock, Session, Usage
from holdfast.subscribers.pppoe import SetupRequest

_ROUTER_LIFETIME_S = 1800
_AGREED = (ppp.State.ACK_SENT, ppp.State.OPENED)
_OVER = (ppp.State.INITIAL, ppp.State.CLOSED, ppp.State.STOPPED)
_ECHO_REPLY = bytes((ppp.Code.ECHO_REPLY,))

MOST_PACKETS = 200
"""Packets that are sent in a session before it is established: requests of all protocols, answers to as many, and some to spare."""


class Phase(Enum):
    """RFC 1661, section 3.2."""

    ESTABLISH = "establish"
    AUTHENTICATE = "authenticate"
    NETWORK = "network"
    TERMINATE = "terminate"


@dataclass(frozen=True)
class Rules:
    """The parameters of all sessions of a gateway."""

    name: str
    authentication: tuple[Authentication, ...]
    address: IPv4Address | None
    dns6: tuple[IPv6Address, ...]
    interface: bytes
    duid: bytes
    setup_timeout_s: float
    restart: ppp.Restart
    lease_s: int


@dataclass(frozen=True)
class Grant:
    """The values that a subscriber was given when it was accepted. ``user`` is its name in accounting."""

    user: bytes
    session: Session
    dns: tuple[IPv4Address, ...]
    session_timeout_s: int = 0
    idle_timeout_s: int = 0
    interim_s: int = 0
    classes: tuple[bytes, ...] = ()
    chargeable: bytes = b""
    dns6: tuple[IPv6Address, ...] = ()


class Owner(Protocol):
    """The gateway, as a session sees it."""

    rules: Rules
    clock: Clock

    def random(self, size: int) -> bytes:
        """Return ``size`` unpredictable bytes."""

    def send_ppp(self, session: PppSession, protocol: int, payload: bytes) -> None:
        """Send a PPP packet to the session's subscriber; it waits until the user plane has what the packet announces."""

    def judge(self, question: Question, answer: Answer) -> None:
        """Start the authentication of a login; ``answer`` is called with the verdict, possibly later."""

    def grant(self, session: PppSession, verdict: Verdict) -> Grant | str:
        """Return the grant of an accepted subscriber, or the reason why there is none."""

    def changed(self, session: PppSession) -> None:
        """Handle a change of the session's phase, of ``session.wanted``, or of other state that must survive the process."""

    def ended(self, session: PppSession) -> None:
        """Handle the end of the session; ``session.cause`` is the reason."""

    def failed(self, session: PppSession, error: Exception) -> None:
        """Handle an exception in the session, which is a mistake of this program: end this session and no other."""


class _Timers:
    """The owner's clock for one session: a mistake in what a timer does is that session's alone."""

    def __init__(self, session: PppSession, clock: Clock) -> None:
        self._session, self.now, self._clock = session, clock.now, clock

    def call_later(self, delay_s: float, action: Callable[[], None]) -> Callable[[], None]:
        """Call ``action`` after ``delay_s`` seconds, and end the session if it raises an exception.

        Return a function that cancels this.
        """
        return self._clock.call_later(delay_s, lambda: self._session.safely(action))


class PppSession:
    """A session of the control plane. ``wanted`` is what the user plane must forward; nothing before the first network protocol.

    Until it is established, it has one deadline and so many packets, which nothing that the subscriber says renews; and so it has,
    a shorter one, when it terminates. ``established``: a network protocol was opened, and the user plane has the session.

    ``counted``: the gateway has installed it, and accounts it.
    """

    def __init__(self, owner: Owner, session_id: int, request: SetupRequest, accounting_id: str, mru: int) -> None:
        self.id, self.line, self.mac, self.request = session_id, request.line, request.mac, request
        self.accounting_id = accounting_id
        self.phase = Phase.ESTABLISH
        self.cause: Cause | None = None
        self.grant: Grant | None = None
        self.delegation_bound: dhcpv6_pd.Bound = False
        self.delegation_released = False
        self._delegated_until_s = 0.0
        self.opened = self.established = False
        self.counted = False
        self.user = b""
        self.started_s = 0.0
        self.heard = True
        self.echoes = 0
        self.last_usage = Usage()
        """The usage that was read last, from all user planes that had the session."""
        self.earlier_usage = Usage()
        """The part of the session's usage that the present user plane does not count."""
        self.seen_up = 0
        self.began_s = self.idle_since_s = self.interim_at_s = self.advertised_s = 0.0
        self._next_advertisement_s = 0.0
        self._advertisement_owed = False
        self.due_s = math.inf
        self._owner = owner
        self._clock: Clock = _Timers(self, owner.clock)
        self._mru = mru
        self._deadline: Callable[[], None] | None = None
        self._sent = 0
        self._auth: Pap | Chap | None = None
        self.ipcp: Ipcp | None = None
        self.ipv6cp: Ipv6cp | None = None
        self.lcp = Lcp(
            self,
            self._send,
            self._clock,
            owner.rules.restart,
            mru=mru,
            authentication=owner.rules.authentication,
            random=owner.random,
        )

    def start(self) -> None:
        """Start the link negotiation and the time limit of the setup; called when the PADS is sent."""
        self._end_in(self._owner.rules.setup_timeout_s, self._too_late)
        self.lcp.open()
        self.lcp.up()

    @property
    def wanted(self) -> Session | None:
        """The session as the user plane must have it now; None if it must not have it. It follows from the phase and agreements.

        The user plane has a session in the network phase only (RFC 1661, section 3.4). There, a subscriber may send as soon as it
        has our acknowledgment, so a protocol is installed before that is sent. Its delegated prefix is its own from then on, until
        it releases it. While protocols are negotiated again, a session without addresses remains, so that its counters do.
        """
        protocols = [each for each in (self.ipcp, self.ipv6cp) if each is not None]
        if self.phase is not Phase.NETWORK or self.grant is None or not any(each.acknowledged for each in protocols):
            return None
        six = self.ipv6cp is not None and self.ipv6cp.state in _AGREED
        whole = self.grant.session
        return replace(
            whole,
            ipv4=whole.ipv4 if self.ipcp is not None and self.ipcp.state in _AGREED else None,
            ipv6_interface=ipv6.link_local(self.ipv6cp.theirs) if six and self.ipv6cp else None,
            ipv6_prefix=whole.ipv6_prefix if six else None,
            delegated=whole.delegated if six and not self.delegation_released else None,
        )

    def receive(self, protocol: int, payload: bytes) -> None:
        """Process a PPP packet of the subscriber, whatever is in it. Raises nothing."""
        self.safely(lambda: self._receive(protocol, payload))

    def safely(self, action: Callable[[], None]) -> None:
        """Call ``action``. If it raises an exception, which is a mistake of this program, end this session and no other."""
        try:
            action()
        except Exception as error:  # noqa: BLE001 - reported, logged and counted by the owner
            self._owner.failed(self, error)

    def _receive(self, protocol: int, payload: bytes) -> None:
        """Process a PPP packet; it is silently discarded if the phase of its protocol has not begun (RFC 1661, section 3.4)."""
        # An answered echo is not a reason to ask less often.
        self.heard = self.heard or protocol != ppp.Protocol.LCP or payload[:1] != _ECHO_REPLY
        if protocol == ppp.Protocol.LCP:
            self.lcp.receive(payload)
        elif self.phase is Phase.NETWORK:
            self._receive_network(protocol, payload)
        elif self.phase is Phase.AUTHENTICATE:
            self._receive_authentication(protocol, payload)

    def _judged(self, asked: Pap | Chap, verdict: Verdict) -> None:
        """Handle the verdict on a login, unless the link has gone down since or another login has begun."""
        if self.phase is not Phase.AUTHENTICATE or self._auth is not asked or self.grant is not None:
            return
        grant = self._owner.grant(self, verdict) if verdict.accepted else verdict.message
        asked.decide(isinstance(grant, Grant), grant if isinstance(grant, str) else verdict.message)
        if isinstance(grant, str):
            self.terminate(Cause.NAS_ERROR if verdict.accepted else Cause.USER_ERROR)
            return
        self.grant, self.user = grant, grant.user
        self._make_network(grant)
        self._enter(Phase.NETWORK)
        for each in (self.ipcp, self.ipv6cp):
            if each is not None:
                each.open()
                each.up()

    def terminate(self, cause: Cause) -> None:
        """Start to end the session by asking the peer to close the link; the session ends when it answers or time runs out."""
        if self.phase is Phase.TERMINATE:
            return
        self._give_up(cause)
        self.lcp.close()
        self._end_if_closed()

    def counts(self, counted: Usage) -> None:
        """Update the session's usage from the user plane's counts; it never decreases, even if these began anew (RFC 2869, 2.1)."""
        self.last_usage = self.usage_with(counted)
        self.earlier_usage = self.last_usage.with_each(operator.sub, counted)

    def usage_with(self, counted: Usage) -> Usage:
        """Return what the session's usage is if the user plane has counted ``counted``; no count is below the last known one."""
        return self.earlier_usage.with_each(operator.add, counted).with_each(max, self.last_usage)

    def vanish(self, cause: Cause) -> None:
        """End the session at once without a PPP packet, as after a PADT or if the subscriber does not answer."""
        self._give_up(cause)
        self._finish()

    def establish(self) -> None:
        """Cancel the deadline of the setup, as a network protocol is open and the user plane has the session."""
        self.established = True
        self._stop_deadline()

    def advertise(self, lifetime_s: int = _ROUTER_LIFETIME_S) -> None:
        """Send a router advertisement if IPv6 is open. ``lifetime_s``: the router lifetime in seconds."""
        if (
            self.ipv6cp is None
            or not self.ipv6cp.opened
            or self.grant is None
            or self.grant.session.ipv6_prefix is None
        ):
            return
        rules = self._owner.rules
        self.advertised_s = self._clock.now()
        self._next_advertisement_s = self.advertised_s + ipv6.MIN_DELAY_BETWEEN_RAS_S
        self._send(
            ppp.Protocol.IPV6,
            ipv6.router_advertisement(
                ipv6.link_local(rules.interface),
                self.grant.session.ipv6_prefix,
                min(self._mru, max(1280, self.lcp.peer_mru)),
                self.grant.dns6 or rules.dns6,
                lifetime_s,
            ),
        )

    def _advertise_when_due(self) -> None:
        """Answer a router solicitation, and all that come before the time of the answer (RFC 4861, section 6.2.6)."""
        if self._advertisement_owed:
            return
        delay_s = self._next_advertisement_s - self._clock.now()
        if delay_s <= 0:
            self.advertise()
            return
        self._advertisement_owed = True
        self._clock.call_later(delay_s, self._advertise_owed)

    def _advertise_owed(self) -> None:
        self._advertisement_owed = False
        if self.phase is Phase.NETWORK:
            self._advertise_when_due()

    def restore(
        self,
        grant: Grant,
        magic: int,
        ipcp: bool,
        interface: bytes | None,
        bound: dhcpv6_pd.Bound,
        released: bool,
        started_s: float,
        established: bool = True,
    ) -> None:
        """Restore a session that an earlier process installed.

        ``magic``: LCP's magic number. ``ipcp``: whether IPCP was open. ``interface``: the peer's interface identifier, None if
        IPv6CP was not open. ``bound``: what the DHCPv6 client of the delegated prefix is known by; ``released``: whether it has
        given the prefix back. If the session was not ``established``, the time limit of its setup starts again.
        """
        self.grant, self.phase = grant, Phase.NETWORK
        if established:
            self.opened = self.established = True
        else:
            self._end_in(self._owner.rules.setup_timeout_s, self._too_late)
        self.delegation_bound, self.delegation_released, self.started_s = bound, released, started_s
        self._delegated_until_s = self._clock.now() + 2 * self._owner.rules.lease_s
        self.lcp.magic, self.lcp.peer_mru = magic, grant.session.peer_mru
        self.lcp.restore()
        self._make_network(grant)
        if self.ipv6cp is not None and interface is not None:
            self.ipv6cp.theirs = interface
        for each, was_open in ((self.ipcp, ipcp), (self.ipv6cp, interface is not None)):
            if each is not None and was_open:
                each.restore()
            elif each is not None:
                each.acknowledged = True  # it was installed, so something was
                each.open()
                each.up()

    # Notifications of LCP.

    def link_up(self) -> None:
        """Start the authentication, as LCP has opened."""
        if self.phase is not Phase.ESTABLISH:
            return
        self._enter(Phase.AUTHENTICATE)
        rules = self._owner.rules
        if self.lcp.authentication is Authentication.PAP:
            self._auth = Pap(self._send, self._ask)
        else:
            self._auth = Chap(
                self._send,
                self._ask,
                lambda: self.terminate(Cause.LOST_CARRIER),
                self._clock,
                rules.restart,
                name=rules.name,
                identifier=self._owner.random(1)[0],
                challenge=self._owner.random(16),
            )
        self._auth.start()

    def link_down(self) -> None:
        """End the session after its login; before its login, start the negotiation again.

        LCP left the state Opened, by a Terminate-Request or because the subscriber negotiates anew.
        """
        if self.phase is Phase.NETWORK:
            # A new login would need other addresses and new accounting: the subscriber must redial.
            self._give_up(Cause.USER_REQUEST)
            self._end_in(0, self._finish)  # not at once: LCP has its answer to send
        elif self.phase is Phase.AUTHENTICATE:
            self._stop_network()
            self._enter(Phase.ESTABLISH)

    def link_finished(self) -> None:
        """End the session, as LCP is closed or the subscriber does not answer."""
        self._give_up(Cause.LOST_CARRIER)
        self._finish()

    def protocol_rejected(self, protocol: int) -> None:
        """Close the protocol that the subscriber does not know; if it is the protocol of the login, terminate the session."""
        if self.phase is Phase.AUTHENTICATE and protocol == self._login_protocol:
            self.terminate(Cause.USER_ERROR)
        for each in (self.ipcp, self.ipv6cp):
            if each is not None and each.protocol == protocol:
                each.handle(ppp.Event.REJECT_FATAL)

    def echo_replied(self) -> None:
        """Set the number of unanswered Echo-Requests to zero."""
        self.echoes = 0

    # The rest is this session's own.

    def _enter(self, phase: Phase) -> None:
        """Change the phase and report this to the owner, so that the user plane follows; only this method changes the phase."""
        self.phase = phase
        self._owner.changed(self)

    def _give_up(self, cause: Cause) -> None:
        """Begin the end of the session, unless it has begun: stop its forwarding, and set the time at which it is over."""
        self._stop_network()
        if self.phase is Phase.TERMINATE:
            return
        restart = self._owner.rules.restart
        self.cause = cause
        self._end_in(restart.restart_s * (restart.max_terminate + 1), self._finish)
        self._enter(Phase.TERMINATE)

    def _send(self, protocol: int, payload: bytes) -> None:
        if not self.established:
            self._sent += 1
            if self._sent > MOST_PACKETS:
                if self.phase is not Phase.TERMINATE:
                    self._end_in(0, self._too_late)
                return
        self._owner.send_ppp(self, protocol, payload)

    @property
    def _login_protocol(self) -> ppp.Protocol:
        return ppp.Protocol.PAP if isinstance(self._auth, Pap) else ppp.Protocol.CHAP

    def _ask(self, credentials: Credentials) -> None:
        request, auth = self.request, self._auth
        assert auth is not None
        self.user = credentials.user
        self._owner.judge(
            Question(
                credentials,
                self.id,
                self.accounting_id,
                self.line,
                self.mac,
                request.circuit_id,
                request.remote_id,
                request.service,
            ),
            lambda verdict: self.safely(lambda: self._judged(auth, verdict)),
        )

    def _make_network(self, grant: Grant) -> None:
        rules, session = self._owner.rules, grant.session
        if session.ipv4 is not None and rules.address is not None:
            self.ipcp = Ipcp(
                self._send,
                self._clock,
                rules.restart,
                ours=rules.address,
                theirs=session.ipv4,
                dns=grant.dns,
                agreed=lambda: self._owner.changed(self),
                changed=self._network_changed,
                finished=self._network_finished,
            )
        if session.ipv6_prefix is not None:
            self.ipv6cp = Ipv6cp(
                self._send,
                self._clock,
                rules.restart,
                ours=rules.interface,
                suggestion=self._owner.random(8),
                agreed=lambda: self._owner.changed(self),
                changed=self._ipv6_changed,
                finished=self._network_finished,
            )

    def _network_changed(self, up: bool) -> None:
        if self.phase is not Phase.NETWORK:
            return
        self.opened |= up
        self._owner.changed(self)

    def _network_finished(self) -> None:
        """End the session if no network protocol is open or negotiating any more."""
        if self.phase is Phase.NETWORK and all(
            each is None or each.state in _OVER for each in (self.ipcp, self.ipv6cp)
        ):
            self.terminate(Cause.USER_REQUEST if self.opened else Cause.USER_ERROR)

    def _ipv6_changed(self, up: bool) -> None:
        self._network_changed(up)
        if up:
            self.advertise()

    def _receive_network(self, protocol: int, payload: bytes) -> None:
        if protocol == ppp.Protocol.IPCP and self.ipcp is not None:
            self.ipcp.receive(payload)
        elif protocol == ppp.Protocol.IPV6CP and self.ipv6cp is not None:
            self.ipv6cp.receive(payload)
        elif protocol == ppp.Protocol.IPV6 and self.ipv6cp is not None:
            if self.ipv6cp.opened:
                self._receive_ipv6(payload)
        elif protocol in (ppp.Protocol.PAP, ppp.Protocol.CHAP):
            self._receive_authentication(protocol, payload)  # its answer may be lost: it asks again
        elif protocol != ppp.Protocol.IPV4:
            self.lcp.reject_protocol(protocol, payload)

    def _receive_authentication(self, protocol: int, payload: bytes) -> None:
        if self._auth is not None and protocol == self._login_protocol:
            self._auth.receive(payload)

    def _receive_ipv6(self, payload: bytes) -> None:
        received = ipv6.read(payload)
        if received is None or self.grant is None:
            return
        if received.solicitation:
            self._advertise_when_due()
        elif received.target is not None:
            own = ipv6.link_local(self._owner.rules.interface)
            if received.target == own:
                self._send(ppp.Protocol.IPV6, ipv6.neighbour_advertisement(own, received.source))
        elif received.destination_port == dhcpv6_pd.SERVER_PORT:
            rules = self._owner.rules
            whole, now = self.grant.session, self._clock.now()
            lease = dhcpv6_pd.Lease(
                whole.delegated, self.grant.dns6 or rules.dns6, rules.lease_s, 2 * rules.lease_s, whole.ipv6_prefix
            )
            # A binding that nobody renewed is over; another IA may have the prefix then.
            bound = self.delegation_bound if now < self._delegated_until_s else False
            outcome = dhcpv6_pd.respond(
                received.payload, rules.duid, lease, bound, unicast=not received.destination.is_multicast
            )
            if outcome.bound is not None:
                self._delegated_until_s = now + lease.valid_s
                if outcome.bound != self.delegation_bound:
                    self.delegation_bound = outcome.bound
                    self.delegation_released = not outcome.bound
                    self._owner.changed(self)
            if outcome.reply is not None:
                self._send(
                    ppp.Protocol.IPV6,
                    ipv6.udp(
                        ipv6.link_local(rules.interface),
                        received.source,
                        dhcpv6_pd.SERVER_PORT,
                        dhcpv6_pd.CLIENT_PORT,
                        outcome.reply,
                    ),
                )

    def _too_late(self) -> None:
        self._deadline = None
        self.terminate(Cause.USER_ERROR)

    @property
    def ends_by_itself(self) -> bool:
        """True if a deadline is set at which the session ends."""
        return self._deadline is not None

    def _end_in(self, delay_s: float, action: Callable[[], None]) -> None:
        """Set the session's only deadline: call ``action`` in ``delay_s`` seconds."""
        self._stop_deadline()
        self._deadline = self._clock.call_later(delay_s, action)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline()
            self._deadline = None

    def _stop_network(self) -> None:
        if self._auth is not None:
            self._auth.stop()
        for each in (self.ipcp, self.ipv6cp):
            if each is not None:
                each.stop()

    def _end_if_closed(self) -> None:
        if self.lcp.state in (ppp.State.INITIAL, ppp.State.STARTING, ppp.State.CLOSED):
            self._finish()

    def _finish(self) -> None:
        self._stop_deadline()
        self.lcp.stop()
        self._stop_network()
        self._owner.ended(self)
