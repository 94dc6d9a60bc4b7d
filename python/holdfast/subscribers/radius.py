"""A RADIUS client (RFC 2865, 2866, 2869, 3162, 4818) for a gateway: authentication and accounting with several servers.

pyrad encodes packets and verifies answers. Retransmission, fail-over and the queue of accounting records are here, sans I/O.
Message-Authenticator is the first attribute of each Access-Request and demanded in each answer (CVE-2024-3596).
"""

from __future__ import annotations

import logging
import struct
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Any, Protocol

from pyrad import packet as pyrad
from pyrad.dictionary import Dictionary

from holdfast.subscribers import radius_attributes as avp
from holdfast.subscribers.accounting import OF_THE_GATEWAY, Kind, Record
from holdfast.subscribers.authentication import Answer, Question, Verdict, unservable
from holdfast.subscribers.configuration import Radius
from holdfast.subscribers.plane import Clock, Line, Rates, Session

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

DICTIONARY = Dictionary()
"""Empty: attributes are octets here. With none at all, pyrad would not take vendors' attributes apart."""

_ANSWERS = {
    False: (pyrad.AccessAccept, pyrad.AccessReject, pyrad.AccessChallenge),
    True: (pyrad.AccountingResponse,),
}
_MOST_WARNINGS = 1000

CHANNELS = 8
"""Source ports to each server and purpose: each has 256 requests under way (RFC 2865, section 2.5)."""

WINDOW = 256
"""Accounting records under way at once; the others wait in the queue."""

Attribute = tuple[Any, bytes]


class Queue(Protocol):
    """Accounting records that no server has acknowledged yet, kept in order of their numbers."""

    def put(self, record: Record) -> None:
        """Keeps a record."""

    def after(self, number: int, most: int) -> list[tuple[int, Record]]:
        """The first records beyond a number."""

    def done(self, number: int) -> None:
        """A server has it."""

    def __len__(self) -> int: ...


class MemoryQueue:
    """A queue that ends with the process."""

    def __init__(self) -> None:
        self._records: dict[int, Record] = {}
        self._last = 0

    def put(self, record: Record) -> None:
        """See :class:`Queue`."""
        self._last += 1
        self._records[self._last] = record

    def after(self, number: int, most: int) -> list[tuple[int, Record]]:
        """See :class:`Queue`."""
        found = []
        for each, record in self._records.items():
            if each > number:
                found.append((each, record))
                if len(found) == most:
                    break
        return found

    def done(self, number: int) -> None:
        """See :class:`Queue`."""
        self._records.pop(number, None)

    def __len__(self) -> int:
        return len(self._records)


Transmit = Callable[[int, bool, int, bytes], None]
"""Sends a datagram to a server (its index), for accounting or not, from one of the channels."""


@dataclass(eq=False)
class _Request:
    """Something asked for, until it is answered or given up."""

    accounting: bool
    build: Callable[[Any], None]
    answered: Callable[[Any], None]
    failed: Callable[[], None]
    server: int = -1
    slot: int = -1
    packet: Any = None
    wire: bytes = b""
    tries: int = 0
    tried: set[int] = field(default_factory=set)
    cancel: Callable[[], None] | None = None
    unsigned: bool = False


class RadiusClient:
    """An :class:`Authenticator` and an :class:`Accountant`.

    A server that does not answer ``tries`` times is dead for ``dead_s`` and its requests go to the next one. Afterwards one request
    at a time is sent to it until it answers. Accounting records wait in ``queue`` until a server has acknowledged them.
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
        self._settings, self._clock, self._transmit = settings, clock, transmit
        self._random, self._wall = random, wall
        self.queue: Queue = MemoryQueue() if queue is None else queue
        self.events: Counter[str] = Counter()
        servers = len(settings.servers)
        self._under_way: dict[tuple[int, bool, int], _Request] = {}
        self._next_slot: Counter[tuple[int, bool]] = Counter()
        self._waiting: deque[_Request] = deque()
        self.dead_until: list[float | None] = [None] * servers
        self._probing: list[_Request | None] = [None] * servers
        self._accounted = 0
        self._accounting: set[int] = set()
        self._alone: int | None = None
        self._retry: Callable[[], None] | None = None
        self._warned: set[str] = set()
        self._nas: list[Attribute] = []
        if settings.nas_identifier:
            self._nas.append((avp.NAS_IDENTIFIER, settings.nas_identifier.encode()))
        if settings.nas_address is not None:
            self._nas.append((avp.NAS_IP_ADDRESS, settings.nas_address.packed))
        self._pump()

    # Authenticator

    def authenticate(self, question: Question, answer: Answer) -> None:
        """Asks a server; without any answer the verdict is a refusal."""
        credentials = question.credentials
        hindrance = _too_long(question)
        if hindrance is not None:
            self.events["too-long"] += 1
            answer(Verdict(False, hindrance))
            return

        def build(request: Any) -> None:
            attributes = _identity(avp.USER_NAME, credentials.user)
            if credentials.password is not None:
                attributes.append((avp.USER_PASSWORD, request.PwCrypt(credentials.password)))
            else:
                attributes.append((avp.CHAP_PASSWORD, bytes((credentials.identifier,)) + credentials.response))
                attributes.append((avp.CHAP_CHALLENGE, credentials.challenge))
            attributes += self._port(question.session_id, question.line, question.mac, question.called)
            attributes += _identity(avp.AGENT_CIRCUIT_ID, question.circuit_id)
            attributes += _identity(avp.AGENT_REMOTE_ID, question.remote_id)
            attributes.append((avp.ACCT_SESSION_ID, question.accounting_id.encode()))
            _add(request, attributes)
            request.add_message_authenticator()

        def answered(reply: Any) -> None:
            answer(self._judge(reply))

        def failed() -> None:
            self.events["unanswered"] += 1
            why = (
                "no answer of an authentication server is signed"
                if request.unsigned
                else "no authentication server answers"
            )
            answer(Verdict(False, why))

        request = _Request(False, build, answered, failed)
        self._send(request)

    def _judge(self, reply: Any) -> Verdict:
        """The verdict of an answer, with what is to be counted and logged of it."""
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
        """Logs a sentence once."""
        if sentence not in self._warned and len(self._warned) < _MOST_WARNINGS:
            self._warned.add(sentence)
            log.warning("%s", sentence)

    # Accountant

    def account(self, record: Record) -> None:
        """Keeps a record until a server has it."""
        self.queue.put(record)
        self._pump()

    def account_gateway(self, kind: Kind) -> None:
        """Tells servers that the gateway begins without sessions, or ends (RFC 2866, section 5.1: Accounting-On and -Off)."""
        self.account(Record(kind, self._random(8).hex(), b"", None, int(self._wall())))

    def received(self, server: int, accounting: bool, channel: int, data: bytes) -> None:
        """A datagram from a server, on a channel."""
        if len(data) < 20:
            self.events["malformed"] += 1
            return
        request = self._under_way.get((server, accounting, channel << 8 | data[1]))
        if request is None:
            self.events["late"] += 1
            return
        reply = self._verified(request, data)
        if reply is None:
            return
        self.dead_until[server] = None
        self._probing[server] = None
        self._release(request)
        request.answered(reply)

    # The rest is the client's own.

    def _verified(self, request: _Request, data: bytes) -> Any:
        """The answer in a datagram; None if it is none: then it is as if nothing had come (RFC 2865, section 3)."""
        try:
            reply = request.packet.CreateReply(packet=data)
            good = (
                reply.code in _ANSWERS[request.accounting] and whole(data) and request.packet.VerifyReply(reply, data)
            )
        except (pyrad.PacketError, ValueError, KeyError, struct.error):
            good = False
        if not good:  # forged, or the secrets differ
            self.events["invalid"] += 1
            return None
        if (
            self._settings.require_message_authenticator
            and not request.accounting
            and avp.MESSAGE_AUTHENTICATOR not in reply
        ):
            request.unsigned = True
            self.events["unsigned"] += 1
            self._warn(
                f"RADIUS server {self._settings.servers[request.server].host} answers without Message-Authenticator, so its "
                "answers do not count. Have it sign them (FreeRADIUS before 3.2.5: Message-Authenticator := 0x00 in its reply "
                "list), or set require_message_authenticator: false"
            )
            return None
        return reply

    def _port(self, session_id: int, line: Line, mac: bytes, called: bytes) -> list[Attribute]:
        return [
            *self._nas,
            (avp.NAS_PORT, session_id.to_bytes(4, "big")),
            (avp.NAS_PORT_TYPE, _ETHERNET.to_bytes(4, "big")),
            (avp.NAS_PORT_ID, port_id(line).encode()),
            *_identity(avp.CALLED_STATION_ID, called),
            (avp.CALLING_STATION_ID, mac_text(mac).encode()),
            (avp.SERVICE_TYPE, _FRAMED.to_bytes(4, "big")),
            (avp.FRAMED_PROTOCOL, _PPP.to_bytes(4, "big")),
        ]

    def _pump(self) -> None:
        """Sends accounting records while there is room in the window.

        A record of the gateway is alone under way: an Accounting-On that comes late would end sessions that began after it.
        """
        while self._retry is None and self._alone is None and len(self._accounting) < WINDOW:
            found = self.queue.after(self._accounted, WINDOW - len(self._accounting))
            if not found:
                return
            for number, record in found:
                alone = record.kind in OF_THE_GATEWAY
                if alone and self._accounting:
                    return
                self._accounted = number
                if number not in self._accounting:
                    self._accounting.add(number)
                    self._alone = number if alone else None
                    self._send_record(number, record)
                if alone:
                    break

    def _send_record(self, number: int, record: Record) -> None:
        def build(request: Any) -> None:
            _add(request, self._record(record))

        def answered(_: Any) -> None:
            self.events["accounted"] += 1
            self.queue.done(number)
            self._over(number)
            self._pump()

        def failed() -> None:
            # The record waits for a better time: with all that follow it.
            self.events["unaccounted"] += 1
            self._over(number)
            self._accounted = min(self._accounted, number - 1)
            if self._retry is None:
                self._retry = self._clock.call_later(self._settings.dead_s, self._retry_accounting)

        self._send(_Request(True, build, answered, failed))

    def _over(self, number: int) -> None:
        """A record is not under way any more."""
        self._accounting.discard(number)
        if self._alone == number:
            self._alone = None

    def _retry_accounting(self) -> None:
        self._retry = None
        self._pump()

    def _record(self, record: Record) -> list[Attribute]:
        values = (
            (avp.ACCT_STATUS_TYPE, record.kind),
            (avp.ACCT_DELAY_TIME, max(0, int(self._wall()) - record.time_s)),
            (avp.EVENT_TIMESTAMP, record.time_s),
        )
        attributes = _identity(avp.USER_NAME, record.user)
        attributes += [(kind, int(value).to_bytes(4, "big")) for kind, value in values]
        attributes.append((avp.ACCT_SESSION_ID, record.accounting_id.encode()))
        if record.session is None:
            return attributes + self._nas
        return attributes + self._record_of(record, record.session)

    def _record_of(self, record: Record, session: Session) -> list[Attribute]:
        """The attributes of a session's record."""
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

    def _send(self, request: _Request) -> None:
        """To the best server that was not tried, or nowhere."""
        server = self._choose(request)
        if server is None:
            request.failed()
            return
        request.tried.add(server)
        request.server, request.tries = server, 0
        slot = self._free_slot(server, request.accounting)
        if slot is None:
            request.tried.discard(server)
            self._waiting.append(request)
            return
        request.slot = slot
        secret = self._settings.servers[server].secret.encode()
        identifier = slot & 0xFF
        if request.accounting:
            request.packet = pyrad.AcctPacket(id=identifier, secret=secret, dict=DICTIONARY)
        else:
            request.packet = pyrad.AuthPacket(
                id=identifier, secret=secret, authenticator=self._random(16), dict=DICTIONARY
            )
        request.build(request.packet)
        request.wire = request.packet.RequestPacket()
        self._under_way[server, request.accounting, slot] = request
        if self.dead_until[server] is not None and self._probing[server] is None:
            self._probing[server] = request
        self._try(request)

    def _choose(self, request: _Request) -> int | None:
        now = self._clock.now()
        rest = [each for each in range(len(self._settings.servers)) if each not in request.tried]
        for each in rest:
            until = self.dead_until[each]
            if until is None or (until <= now and self._probing[each] is None):
                return each
        # All are dead: the one that has been so for longest, since something must be tried.
        return min(rest, key=lambda each: self.dead_until[each] or 0.0, default=None)

    def _free_slot(self, server: int, accounting: bool) -> int | None:
        last = self._next_slot[server, accounting]
        for step in range(CHANNELS << 8):
            slot = (last + step) % (CHANNELS << 8)
            if (server, accounting, slot) not in self._under_way:
                self._next_slot[server, accounting] = slot + 1
                return slot
        return None

    def _try(self, request: _Request) -> None:
        """Sends it, again and ever more seldom (RFC 5080, section 2.2.1)."""
        delay = self._settings.timeout_s * 2**request.tries
        request.tries += 1
        self.events["sent"] += 1
        request.cancel = self._clock.call_later(delay, lambda: self._timeout(request))
        self._transmit(request.server, request.accounting, request.slot >> 8, request.wire)

    def _timeout(self, request: _Request) -> None:
        request.cancel = None
        if request.tries < self._settings.tries:
            self.events["repeated"] += 1
            self._try(request)
            return
        server = request.server
        self.events["dead"] += self.dead_until[server] is None
        self.dead_until[server] = self._clock.now() + self._settings.dead_s
        self._probing[server] = None
        # Other requests that wait for this server would wait in vain.
        stranded = [each for each in self._under_way.values() if each.server == server]
        for each in stranded:
            self._release(each)
        for each in stranded:
            self._send(each)

    def _release(self, request: _Request) -> None:
        if request.cancel is not None:
            request.cancel()
            request.cancel = None
        self._under_way.pop((request.server, request.accounting, request.slot), None)
        if self._waiting:
            self._clock.call_later(0, self._send_waiting)

    def _send_waiting(self) -> None:
        if self._waiting:
            self._send(self._waiting.popleft())


def verdict(reply: Any) -> Verdict:
    """The verdict of an Access-Accept, Access-Reject or Access-Challenge.

    A challenge cannot be passed on in PAP or CHAP, so it is a refusal (RFC 2865, section 4.4), and so is an Access-Accept with an
    attribute that asks for what is not given here (section 1.1) or has a wrong length (section 5).
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
    """Rates in a packet; None if there are none."""
    up, down = number(packet, avp.WISPR_MAX_UP), number(packet, avp.WISPR_MAX_DOWN)
    return None if up is None and down is None else Rates(up or None, down or None)


def number(packet: Any, kind: Any) -> int | None:
    """An integer attribute."""
    value = _first(packet, kind, 4)
    return None if value is None else int.from_bytes(value, "big")


def port_id(line: Line) -> str:
    """NAS-Port-Id of a line: port and VLAN tags."""
    return f"{line.port}:{line.s_tag}.{line.c_tag}"


def mac_text(mac: bytes) -> str:
    """Calling-Station-Id of a MAC address (RFC 3580, section 3.21)."""
    return mac.hex("-").upper()


def _first(packet: Any, kind: Any, size: int | None = None) -> bytes | None:
    values: list[bytes] = packet.get(kind, [])
    return values[0] if values and (size is None or len(values[0]) == size) else None


def prefix(value: bytes | None) -> IPv6Network | None:
    """The prefix of an attribute (RFC 3162, section 2.3): reserved, length in bits, and as many octets as are needed."""
    if value is None or not 2 <= len(value) <= 18 or value[1] > 128 or len(value) - 2 < (value[1] + 7) // 8:
        return None
    return IPv6Network((value[2:].ljust(16, b"\0"), value[1]), strict=False)


def whole(data: bytes) -> bool:
    """Whether the attributes of a packet fill its length, each at least a header long."""
    at, end = 20, int.from_bytes(data[2:4], "big")
    while at + 2 <= end and data[at + 1] >= 2:
        at += data[at + 1]
    return at == end


def _identity(kind: Any, value: bytes) -> list[Attribute]:
    """An attribute as long as its value; none at all for an empty one (RFC 2865, section 5: it must be left out)."""
    return [(kind, value)] if value else []


def _too_long(question: Question) -> str | None:
    """Why a question cannot be asked. Nothing is cut to fit: the server would judge somebody else."""
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
