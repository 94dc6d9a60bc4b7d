"""A RADIUS client (RFC 2865, 2866, 2869, 3162, 4818) for a gateway: authentication and accounting with several servers.

It writes what is asked and reads what answers mean, sans I/O. Whom to ask is :mod:`radius_servers`' business, whose turn it is
:mod:`login_queue`'s, and when a record is sent :mod:`accounting_delivery`'s. Message-Authenticator is the first attribute of each
Access-Request and demanded in each answer (CVE-2024-3596).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Any

from pyrad import packet as pyrad

from holdfast.subscribers import durations
from holdfast.subscribers import radius_attributes as avp
from holdfast.subscribers.accounting import Kind, Record
from holdfast.subscribers.accounting_delivery import Delivery, MemoryQueue, Queue
from holdfast.subscribers.authentication import Answer, Question, Verdict, unservable
from holdfast.subscribers.configuration import Radius
from holdfast.subscribers.login_queue import Login, LoginQueue
from holdfast.subscribers.plane import Clock, Line, Rates, Session
from holdfast.subscribers.radius_servers import SLOTS, Request, Servers, Transmit

log = logging.getLogger(__name__)

_FRAMED, _PPP, _ETHERNET, _BY_RADIUS = 2, 1, 15, 1
_ASSIGNED_BY_NAS = b"\xff\xff\xff\xfe"
_LONGEST, _LONGEST_PASSWORD = 253, 128
"""Bytes of an attribute's value (RFC 2865, section 5) and of a password (section 5.2)."""
_LONGEST_OF_VENDOR = _LONGEST - 6
_LONGEST_MESSAGE = 1000
"""Bytes of text for a subscriber: they must fit into one packet of CHAP, which cannot be in parts."""
_LONGEST_CLASSES = 2048
"""Bytes of all Class attributes: accounting must repeat them within a packet of 4096 (RFC 2865, section 3)."""

_MOST_WARNINGS = 1000

_LOST = {
    "superseded": "another login of this session has begun",
    "displaced": "too many logins are under way; those of other lines have their turn",
    "overflow": "too many logins wait",
}
"""The refusal of a login that loses its place."""

LOGINS = SLOTS - 1
"""Logins under way at once; the identifier that is left is for asking whether a server is alive."""

LOGINS_OF_A_LINE = 256
WAITING_LOGINS = 4096
"""Logins of one line under way, and those of all that wait. Of a session there is one under way, and one that waits."""

Attribute = tuple[Any, bytes]


class _Login(Login):
    """A question with its answer, and the request that asks it while it is under way."""

    def __init__(self, question: Question, answer: Answer) -> None:
        super().__init__(question.line, (question.session_id, question.accounting_id))
        self.question, self.answer = question, answer
        self.request: Request | None = None


class RadiusClient:
    """An :class:`Authenticator` and an :class:`Accountant`.

    One login of a session is under way, and lines take turns (:class:`LoginQueue`): a newer login of a session takes the place of
    the one that waits, and leaves when the one under way is answered, or ``timeout_s`` old and then given up. Each question is
    answered once. Accounting records wait in ``queue`` until a server has acknowledged them (:class:`Delivery`).
    """

    def __init__(
        self,
        settings: Radius,
        clock: Clock,
        transmit: Transmit,
        *,
        random: Callable[[int], bytes],
        wall: Callable[[], float],
        queue: Queue | None = None,
    ) -> None:
        self._settings, self._clock, self._random, self._wall = settings, clock, random, wall
        self.queue: Queue = MemoryQueue() if queue is None else queue
        self.events: Counter[str] = Counter()
        self.servers = Servers(settings, clock, transmit, random, self.events)
        self.logins = LoginQueue(LOGINS, LOGINS_OF_A_LINE, WAITING_LOGINS)
        self._advancing = False
        self._delivery = Delivery(self.queue, clock, settings.dead_s, self._send_record)
        self._warned: set[str] = set()
        self._delivery.pump()

    @property
    def dead_until(self) -> list[float | None]:
        """For each server, None while it answers logins, else the clock's time in seconds at which it is tried again."""
        return self.servers.dead_until(False)

    # Authenticator

    def authenticate(self, question: Question, answer: Answer) -> None:
        """Start a login at the servers; ``answer`` is called with the verdict, which is a refusal if no server answers."""
        hindrance = _too_long(question)
        if hindrance is not None:
            self.events["too-long"] += 1
            answer(Verdict(False, hindrance))
            return
        login = _Login(question, answer)
        before = self.logins.of_session(login.line, login.session)
        for lost, why in self.logins.offer(login):
            self._refuse(lost, why)
        if before is not None:
            self._supersede(before)
        self._advance()

    def withdraw(self, line: Line, session_id: int, accounting_id: str) -> None:
        """Remove the logins of a session that has ended; their ``answer`` is not called."""
        login = self.logins.withdraw(line, (session_id, accounting_id))
        if login is not None:
            self._let_go(login)
            self._advance()

    def _advance(self) -> None:
        """Start waiting logins as long as the number under way is below its limit."""
        if self._advancing:  # an answer has led to another question
            return
        self._advancing = True
        try:
            while (found := self.logins.take()) is not None:
                login, loser = found
                if loser is not None:
                    self._let_go(loser)
                    self._refuse(loser, "displaced")
                self._ask(login)
        finally:
            self._advancing = False

    def _supersede(self, login: Any) -> None:
        """End a login under way that a newer one of its session replaces: now if it was repeated, else at its first repetition."""
        request: Request = login.request
        request.obsolete = True
        if request.tries > 1 or len(request.tried) > 1:
            self._let_go(login)
            self._refuse(login, "superseded")

    def _let_go(self, login: Any) -> None:
        """Remove a login from those under way, and release its request."""
        self.logins.done(login)
        self.servers.release(login.request)

    def _refuse(self, login: Any, why: str) -> None:
        self.events[why] += 1
        login.answer(Verdict(False, _LOST[why]))

    def _ask(self, login: Any) -> None:
        """Send a login as an Access-Request to the best server."""
        question: Question = login.question
        credentials = question.credentials

        def build(packet: Any) -> None:
            attributes = _identity(avp.USER_NAME, credentials.user)
            if credentials.password is not None:
                attributes.append((avp.USER_PASSWORD, packet.PwCrypt(credentials.password)))
            else:
                attributes.append((avp.CHAP_PASSWORD, bytes((credentials.identifier,)) + credentials.response))
                attributes.append((avp.CHAP_CHALLENGE, credentials.challenge))
            attributes += self._port(question.session_id, question.line, question.mac, question.called)
            attributes += _identity(avp.AGENT_CIRCUIT_ID, question.circuit_id)
            attributes += _identity(avp.AGENT_REMOTE_ID, question.remote_id)
            attributes.append((avp.ACCT_SESSION_ID, question.accounting_id.encode()))
            _add(packet, attributes)
            packet.add_message_authenticator()

        def answered(reply: Any) -> None:
            self.logins.done(login)
            login.answer(self._judge(reply))
            self._advance()

        def failed() -> None:
            self.logins.done(login)
            if request.obsolete:
                self._refuse(login, "superseded")
            else:
                self.events["unanswered"] += 1
                signed = "no answer of an authentication server is signed"
                login.answer(Verdict(False, signed if request.unsigned else "no authentication server answers"))
            self._advance()

        login.request = request = Request(False, build, answered, failed, credentials.user)
        self.servers.send(request)

    def _judge(self, reply: Any) -> Verdict:
        """Return the verdict in a server's answer.

        Counts the kind of answer, and logs refusals by this gateway and unknown attributes.
        """
        found = verdict(reply)
        if reply.code == pyrad.AccessReject:
            self.events["rejected"] += 1
        elif reply.code == pyrad.AccessChallenge:
            self.events["challenged"] += 1
        elif not found.accepted:
            self.events["not-served"] += 1
            self._warn(f"a login is refused that RADIUS accepts: {found.message}")
        else:
            self.events["accepted"] += 1
            for each in avp.passed_over(reply):
                self.events["passed-over"] += 1
                self._warn(f"RADIUS: {each} is unknown here and without effect")
        return found

    def _warn(self, sentence: str) -> None:
        """Log a warning once; after ``_MOST_WARNINGS`` different sentences, log no further ones."""
        if sentence not in self._warned and len(self._warned) < _MOST_WARNINGS:
            self._warned.add(sentence)
            log.warning("%s", sentence)

    # Accountant

    def account(self, record: Record) -> None:
        """Queue an accounting record, which is kept until a server has acknowledged it."""
        self._delivery.put(record)

    def together(self) -> AbstractContextManager[None]:
        """Return a context that saves records put within it together with all else written to the state file, then sends them."""
        return self._delivery.together()

    def account_gateway(self, kind: Kind) -> None:
        """Send an Accounting-On or -Off record, as the gateway begins without sessions, or ends (RFC 2866, section 5.1)."""
        clock_s, epoch = self._clock.now(), durations.epoch(self._clock)
        self.account(Record(kind, self._random(8).hex(), b"", None, int(self._wall()), clock_s=clock_s, epoch=epoch))

    def received(self, server: int, accounting: bool, channel: int, data: bytes) -> None:
        """Process a datagram that a server sent to ``channel``, the number of the client's socket for this server.

        ``accounting``: True for the server's accounting port, False for its authentication port.
        """
        self.servers.received(server, accounting, channel, data)

    # The rest is the client's own.

    def _port(self, session_id: int, line: Line, mac: bytes, called: bytes) -> list[Attribute]:
        return [
            *self.servers.nas,
            (avp.NAS_PORT, session_id.to_bytes(4, "big")),
            (avp.NAS_PORT_TYPE, _ETHERNET.to_bytes(4, "big")),
            (avp.NAS_PORT_ID, port_id(line).encode()),
            *_identity(avp.CALLED_STATION_ID, called),
            (avp.CALLING_STATION_ID, mac_text(mac).encode()),
            (avp.SERVICE_TYPE, _FRAMED.to_bytes(4, "big")),
            (avp.FRAMED_PROTOCOL, _PPP.to_bytes(4, "big")),
        ]

    def _send_record(self, record: Record, acknowledged: Callable[[], None], failed: Callable[[bool], None]) -> None:
        def answered(_: Any) -> None:
            self.events["accounted"] += 1
            acknowledged()

        def unanswered() -> None:
            self.events["unaccounted"] += 1
            failed(request.heard)

        request = Request(
            True, lambda packet: _add(packet, self._record(record)), answered, unanswered, record.user,
            pyrad.AccountingRequest,
        )  # fmt: skip
        self.servers.send(request)

    def _record(self, record: Record) -> list[Attribute]:
        delay_s = durations.elapsed_s(self._clock, record.clock_s, record.epoch)
        if delay_s is None:
            delay_s = max(0.0, int(self._wall()) - record.time_s)
        values = (
            (avp.ACCT_STATUS_TYPE, record.kind),
            (avp.ACCT_DELAY_TIME, min(int(delay_s), 0xFFFFFFFF)),
            (avp.EVENT_TIMESTAMP, record.time_s),
        )
        attributes = _identity(avp.USER_NAME, record.user)
        attributes += [(kind, int(value).to_bytes(4, "big")) for kind, value in values]
        attributes.append((avp.ACCT_SESSION_ID, record.accounting_id.encode()))
        if record.session is None:
            return attributes + self.servers.nas
        return attributes + self._record_of(record, record.session)

    def _record_of(self, record: Record, session: Session) -> list[Attribute]:
        """Return the RADIUS attributes of a session's accounting record."""
        usage = record.usage
        attributes: list[Attribute] = [(avp.ACCT_AUTHENTIC, _BY_RADIUS.to_bytes(4, "big"))]
        attributes += self._port(session.session_id, session.line, session.mac, record.called)
        attributes += _identity(avp.AGENT_CIRCUIT_ID, record.circuit_id)
        attributes += _identity(avp.AGENT_REMOTE_ID, record.remote_id)
        attributes += [(avp.CLASS, each) for each in record.classes]
        attributes += _identity(avp.CHARGEABLE_USER_IDENTITY, record.chargeable)
        if session.ipv4 is not None:
            attributes.append((avp.FRAMED_IP_ADDRESS, session.ipv4.packed))
        for kind, prefix in (
            (avp.FRAMED_IPV6_PREFIX, session.ipv6_prefix),
            (avp.DELEGATED_IPV6_PREFIX, session.delegated),
        ):
            if prefix is not None:
                attributes.append((kind, bytes((0, prefix.prefixlen)) + prefix.network_address.packed))
        if record.kind is not Kind.START:
            counts = (
                (avp.ACCT_INPUT_OCTETS, usage.bytes_up),
                (avp.ACCT_OUTPUT_OCTETS, usage.bytes_down),
                (avp.ACCT_INPUT_GIGAWORDS, usage.bytes_up >> 32),
                (avp.ACCT_OUTPUT_GIGAWORDS, usage.bytes_down >> 32),
                (avp.ACCT_INPUT_PACKETS, usage.packets_up),
                (avp.ACCT_OUTPUT_PACKETS, usage.packets_down),
                (avp.ACCT_SESSION_TIME, record.duration_s),
            )
            attributes += [(kind, (value & 0xFFFFFFFF).to_bytes(4, "big")) for kind, value in counts]
        if record.cause is not None:
            attributes.append((avp.ACCT_TERMINATE_CAUSE, int(record.cause).to_bytes(4, "big")))
        return attributes


def verdict(reply: Any) -> Verdict:
    """Return the verdict in an Access-Accept, Access-Reject or Access-Challenge.

    A challenge cannot be passed on in PAP or CHAP, so it is a refusal (RFC 2865, section 4.4). So is an Access-Accept with an
    attribute that asks for a service that this gateway lacks (section 1.1), or that has a wrong length (section 5).
    """
    message = b" ".join(reply.get(avp.REPLY_MESSAGE, []))[:_LONGEST_MESSAGE].decode(errors="replace")
    if reply.code == pyrad.AccessChallenge:
        return Verdict(False, message or "the server asks for more than a password")
    if reply.code != pyrad.AccessAccept:
        return Verdict(False, message)
    why = avp.hindrance(reply)
    if why is None and sum(2 + len(each) for each in reply.get(avp.CLASS, ())) > _LONGEST_CLASSES:
        why = f"Class: accounting cannot repeat more than {_LONGEST_CLASSES} bytes"
    if why is not None:
        return Verdict(False, f"not served here: {why}")
    address = _first(reply, avp.FRAMED_IP_ADDRESS)
    dns = [_first(reply, kind) for kind in (avp.MS_PRIMARY_DNS, avp.MS_SECONDARY_DNS)]
    found = Verdict(
        True,
        message,
        ipv4=IPv4Address(address) if address and address != _ASSIGNED_BY_NAS else None,
        ipv4_pool=(_first(reply, avp.FRAMED_POOL) or b"").decode(errors="replace"),
        ipv6_prefix=prefix(_first(reply, avp.FRAMED_IPV6_PREFIX)),
        delegated=prefix(_first(reply, avp.DELEGATED_IPV6_PREFIX)),
        dns=tuple(IPv4Address(each) for each in dns if each),
        rates=rates(reply),
        session_timeout_s=number(reply, avp.SESSION_TIMEOUT) or 0,
        idle_timeout_s=number(reply, avp.IDLE_TIMEOUT) or 0,
        interim_s=number(reply, avp.ACCT_INTERIM_INTERVAL) or 0,
        classes=tuple(reply.get(avp.CLASS, ())),
        user=_first(reply, avp.USER_NAME) or b"",
        chargeable=_first(reply, avp.CHARGEABLE_USER_IDENTITY) or b"",
        dns6=tuple(IPv6Address(each) for each in reply.get(avp.DNS_SERVER_IPV6_ADDRESS, ())),
    )
    why = unservable(found)
    return found if why is None else Verdict(False, f"not served here: {why}")


def rates(packet: Any) -> Rates | None:
    """Return the rate limits in a packet, in bit/s (WISPr attributes); None if there are none."""
    up, down = number(packet, avp.WISPR_MAX_UP), number(packet, avp.WISPR_MAX_DOWN)
    return None if up is None and down is None else Rates(up or None, down or None)


def number(packet: Any, kind: Any) -> int | None:
    """Return the value of a packet's integer attribute of 4 octets; None if the packet has no such attribute."""
    value = _first(packet, kind, 4)
    return None if value is None else int.from_bytes(value, "big")


def port_id(line: Line) -> str:
    """Return the NAS-Port-Id of an access line: ``port:S-tag.C-tag``."""
    return f"{line.port}:{line.s_tag}.{line.c_tag}"


def mac_text(mac: bytes) -> str:
    """Return a MAC address as text for the Calling-Station-Id, such as 02-00-00-00-00-0A (RFC 3580, section 3.21)."""
    return mac.hex("-").upper()


def _first(packet: Any, kind: Any, size: int | None = None) -> bytes | None:
    values: list[bytes] = packet.get(kind, [])
    return values[0] if values and (size is None or len(values[0]) == size) else None


def prefix(value: bytes | None) -> IPv6Network | None:
    """Return the prefix in an attribute's value (RFC 3162, section 2.3); None if the value is missing or malformed.

    The value is a reserved octet, the length in bits, and as many octets as that length needs.
    """
    if value is None or not 2 <= len(value) <= 18 or value[1] > 128 or len(value) - 2 < (value[1] + 7) // 8:
        return None
    return IPv6Network((value[2:].ljust(16, b"\0"), value[1]), strict=False)


def _identity(kind: Any, value: bytes) -> list[Attribute]:
    """Return a list with one attribute, or an empty list if ``value`` is empty: RFC 2865, section 5, forbids empty attributes."""
    return [(kind, value)] if value else []


def _too_long(question: Question) -> str | None:
    """Return which part of a login is too long for RADIUS; None if no part is.

    No part is shortened, as the result could name another subscriber.
    """
    credentials = question.credentials
    for name, value, most in (
        ("user name", credentials.user, _LONGEST),
        ("password", credentials.password or b"", _LONGEST_PASSWORD),
        ("access line's circuit id", question.circuit_id, _LONGEST_OF_VENDOR),
        ("access line's remote id", question.remote_id, _LONGEST_OF_VENDOR),
    ):
        if len(value) > most:
            return f"the {name} is too long: {len(value)} bytes, and RADIUS carries {most}"
    return None


def _add(packet: Any, attributes: Iterable[Attribute]) -> None:
    for kind, value in attributes:
        packet.setdefault(kind, []).append(value)
