"""RADIUS servers of a world (RFC 2865, 2866, 5997): they answer late, twice, wrongly or not at all, and keep what they get."""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from attacks.authorization_frames import attribute
from attacks.gateway_world import Epoch
from holdfast.subscribers.authentication import Answer, Question, Verdict
from holdfast.subscribers.radius import MemoryQueue, RadiusClient

ACCESS_REQUEST, ACCEPT, REJECT, ACCOUNTING_REQUEST, ACCOUNTING_RESPONSE, STATUS_SERVER = 1, 2, 3, 4, 5, 12
USER_NAME, USER_PASSWORD, CHAP_PASSWORD, FRAMED_IP_ADDRESS, SESSION_TIMEOUT, IDLE_TIMEOUT = 1, 2, 3, 8, 27, 28
STATUS_TYPE, SESSION_ID, INPUT_PACKETS, OUTPUT_PACKETS, CHAP_CHALLENGE = 40, 44, 47, 48, 60
MESSAGE_AUTHENTICATOR, INTERIM_INTERVAL, FRAMED_IPV6_PREFIX, DELEGATED_PREFIX = 80, 85, 97, 123

Users = Mapping[bytes, tuple[bytes, Verdict, float | None]]


def attributes_of(data: bytes) -> dict[int, bytes]:
    """Return the values of a RADIUS packet's attributes by type; of equal types the first."""
    found: dict[int, bytes] = {}
    at = 20
    while at + 2 <= len(data) and data[at + 1] >= 2:
        found.setdefault(data[at], data[at + 2 : at + data[at + 1]])
        at += data[at + 1]
    return found


def revealed(hidden: bytes, authenticator: bytes, secret: bytes) -> bytes:
    """Return the password in a User-Password attribute (RFC 2865, section 5.2)."""
    clear, before = b"", authenticator
    for at in range(0, len(hidden), 16):
        mask = hashlib.md5(secret + before).digest()
        before = hidden[at : at + 16]
        clear += bytes(a ^ b for a, b in zip(before, mask, strict=True))
    return clear.rstrip(b"\0")


def answer(request: bytes, code: int, pairs: list[tuple[int, bytes]], secret: bytes) -> bytes:
    """Return a RADIUS server's answer.

    It has a Message-Authenticator over the request's authenticator (RFC 2869, 5.14), and a Response Authenticator (RFC 2865, 3).
    """
    rest = b"".join(attribute(kind, value) for kind, value in pairs)
    head = struct.pack("!BBH", code, request[1], 20 + 18 + len(rest))
    over = bytes(16) if code == ACCOUNTING_RESPONSE else request[4:20]
    signature = hmac.digest(secret, head + over + attribute(MESSAGE_AUTHENTICATOR, bytes(16)) + rest, "md5")
    body = attribute(MESSAGE_AUTHENTICATOR, signature) + rest
    return head + hashlib.md5(head + request[4:20] + body + secret).digest() + body


def prefix(network: Any) -> bytes:
    """Return the value of an IPv6 prefix attribute (RFC 3162, section 2.3)."""
    return bytes((0, network.prefixlen)) + network.network_address.packed


class RadiusWorld:
    """Servers, and the client of the gateway between them and it. The client is an authenticator and an accountant."""

    def __init__(self, settings: Any, users: Users, random: Random) -> None:
        self._settings, self._users, self._random = settings, users, random
        self._secret = settings.servers[0].secret.encode()
        self.queue = MemoryQueue()
        self.silent = False
        self.loss = 0.0
        self.asked = 0
        self.stops: dict[bytes, tuple[int, int]] = {}
        """Packets up and down, by Acct-Session-Id."""
        self.wrong: list[str] = []

    def boot(self, clock: Epoch, own: Epoch, wall: Callable[[], float], books: Any) -> None:
        """Create the RADIUS client of a new process. ``own``: the clock of the servers."""
        self._clock, self._books = own, books
        self.client = RadiusClient(
            self._settings, clock, self._transmit, random=self._random.randbytes, wall=wall, queue=self.queue
        )

    def authenticate(self, question: Question, answer: Answer) -> None:
        """Pass a login on to the RADIUS client, and count it."""
        self.asked += 1
        self.client.authenticate(question, answer)

    def account(self, record: Any) -> None:
        """Record an accounting record in the books, and pass it to the RADIUS client."""
        self._books.account(record)
        self.client.account(record)

    def _transmit(self, server: int, accounting: bool, channel: int, data: bytes) -> None:
        if self.silent or self._random.random() < self.loss:
            return
        found = self._account(data) if accounting and data[0] == ACCOUNTING_REQUEST else self._judge(data)
        if found is None:
            return
        delay_s, reply = found
        times = [delay_s] if self._random.random() < 0.95 else [delay_s, delay_s + 5.0]
        if self._random.random() < 0.05:
            forged = reply[:4] + self._random.randbytes(16) + reply[20:]
            self._clock.call_later(0.0005, lambda: self.client.received(server, accounting, channel, forged))
        for each in times:
            self._clock.call_later(each, lambda: self.client.received(server, accounting, channel, reply))

    def _judge(self, data: bytes) -> tuple[float, bytes] | None:
        found = attributes_of(data)
        unsigned = data[:20]
        at = 20
        while at < len(data):  # over zeros in its place (RFC 2869, section 5.14)
            value = bytes(data[at + 1] - 2) if data[at] == MESSAGE_AUTHENTICATOR else data[at + 2 : at + data[at + 1]]
            unsigned += data[at : at + 2] + value
            at += data[at + 1]
        if hmac.digest(self._secret, unsigned, "md5") != found.get(MESSAGE_AUTHENTICATOR):
            self.wrong.append("an unsigned request")
        if data[0] == STATUS_SERVER:
            return 0.002, answer(data, ACCEPT, [], self._secret)
        password, verdict, delay_s = self._users.get(found.get(USER_NAME, b""), (b"", Verdict(False), 0.0))
        if delay_s is None:
            return None
        if USER_PASSWORD in found:
            right = revealed(found[USER_PASSWORD], data[4:20], self._secret) == password
        else:
            said, challenge = found.get(CHAP_PASSWORD, bytes(17)), found.get(CHAP_CHALLENGE, data[4:20])
            right = hashlib.md5(said[:1] + password + challenge).digest() == said[1:]
        if not (right and verdict.accepted):
            return 0.002 + delay_s, answer(data, REJECT, [], self._secret)
        pairs = [
            (FRAMED_IP_ADDRESS, verdict.ipv4.packed if verdict.ipv4 else b""),
            (FRAMED_IPV6_PREFIX, prefix(verdict.ipv6_prefix) if verdict.ipv6_prefix else b""),
            (DELEGATED_PREFIX, prefix(verdict.delegated) if verdict.delegated else b""),
            *(
                (kind, value.to_bytes(4, "big") if value else b"")
                for kind, value in (
                    (SESSION_TIMEOUT, verdict.session_timeout_s),
                    (IDLE_TIMEOUT, verdict.idle_timeout_s),
                    (INTERIM_INTERVAL, verdict.interim_s),
                )
            ),
        ]
        return 0.002 + delay_s, answer(data, ACCEPT, [each for each in pairs if each[1]], self._secret)

    def _account(self, data: bytes) -> tuple[float, bytes]:
        if hashlib.md5(data[:4] + bytes(16) + data[20:] + self._secret).digest() != data[4:20]:
            self.wrong.append("an accounting request with a wrong authenticator")
        found = attributes_of(data)
        if found.get(STATUS_TYPE) == (2).to_bytes(4, "big"):
            up, down = (int.from_bytes(found.get(kind, b""), "big") for kind in (INPUT_PACKETS, OUTPUT_PACKETS))
            self.stops[found.get(SESSION_ID, b"")] = up, down
        return 0.002, answer(data, ACCOUNTING_RESPONSE, [], self._secret)
