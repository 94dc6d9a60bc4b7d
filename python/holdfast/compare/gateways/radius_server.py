"""A RADIUS server for simulations (RFC 2865, 2866): accounts with CHAP passwords and fixed addresses, and what was accounted.

Its packets are written and read here, and share no code with the client's.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections import Counter
from dataclasses import dataclass
from ipaddress import IPv4Address

_REQUEST, _ACCEPT, _REJECT, _ACCOUNTING, _ACCOUNTED = 1, 2, 3, 4, 5
_USER, _CHAP_PASSWORD, _FRAMED_ADDRESS, _STATUS, _SESSION, _CHALLENGE, _AUTHENTICATOR = 1, 3, 8, 40, 44, 60, 80


@dataclass(frozen=True)
class Known:
    """A subscriber's password and address."""

    password: str
    address: IPv4Address


class RadiusServer:
    """Answers requests while it is ``alive``. ``records``: accounting records by status (1 start, 2 stop, 3 interim), each once."""

    def __init__(self, secret: bytes, users: dict[str, Known]) -> None:
        self._secret, self._users = secret, users
        self.alive = True
        self.events: Counter[str] = Counter()
        self.records: Counter[int] = Counter()
        self._accounted: set[tuple[bytes, bytes]] = set()

    def answer(self, request: bytes) -> bytes | None:
        """Return the answer to a datagram; None if the server is down, or if the datagram is not an authentic request."""
        if not self.alive:
            self.events["unheard"] += 1
            return None
        if len(request) < 20 or struct.unpack_from("!H", request, 2)[0] != len(request):
            return None
        attributes = _attributes(request)
        if request[0] == _ACCOUNTING and self._authentic_accounting(request):
            return self._account(request, attributes)
        if request[0] == _REQUEST and self._authentic(request, attributes):
            return self._authenticate(request, attributes)
        self.events["not authentic"] += 1
        return None

    def _authentic_accounting(self, request: bytes) -> bool:
        """Return True if an accounting request has the right Request Authenticator (RFC 2866, section 3)."""
        return hashlib.md5(request[:4] + bytes(16) + request[20:] + self._secret).digest() == request[4:20]

    def _authentic(self, request: bytes, attributes: dict[int, bytes]) -> bool:
        """Return True if the request has a Message-Authenticator that is right (RFC 3579, section 3.2)."""
        given = attributes.get(_AUTHENTICATOR, b"")
        plain = request.replace(given, bytes(16), 1) if len(given) == 16 else b""
        return bool(plain) and hmac.compare_digest(hmac.digest(self._secret, plain, "md5"), given)

    def _authenticate(self, request: bytes, attributes: dict[int, bytes]) -> bytes:
        user = self._users.get(attributes.get(_USER, b"").decode(errors="replace"))
        chap, challenge = attributes.get(_CHAP_PASSWORD, b""), attributes.get(_CHALLENGE, request[4:20])
        if user is not None and len(chap) == 17:
            right = hashlib.md5(chap[:1] + user.password.encode() + challenge).digest()
            if hmac.compare_digest(right, chap[1:]):
                self.events["accepted"] += 1
                return self._signed(request, _ACCEPT, bytes((_FRAMED_ADDRESS, 6)) + user.address.packed)
        self.events["rejected"] += 1
        return self._signed(request, _REJECT, b"")

    def _account(self, request: bytes, attributes: dict[int, bytes]) -> bytes:
        status = attributes.get(_STATUS, bytes(4))
        record = attributes.get(_SESSION, b""), status + (b"" if status[-1] < 3 else request[4:20])
        if record not in self._accounted:
            self._accounted.add(record)
            self.records[status[-1]] += 1
        return self._signed(request, _ACCOUNTED, b"")

    def _signed(self, request: bytes, code: int, body: bytes) -> bytes:
        """Return an answer that begins with a Message-Authenticator and has a Response Authenticator (RFC 2865, section 3)."""
        head = struct.pack("!BBH", code, request[1], 38 + len(body))
        over = bytes(16) if code == _ACCOUNTED else request[4:20]
        empty = bytes((_AUTHENTICATOR, 18)) + bytes(16) + body
        signed = empty[:2] + hmac.digest(self._secret, head + over + empty, "md5") + body
        return head + hashlib.md5(head + request[4:20] + signed + self._secret).digest() + signed


def _attributes(packet: bytes) -> dict[int, bytes]:
    """Return the value of each attribute type, the last one of several; vendor-specific attributes are not decoded."""
    found, at = {}, 20
    while at + 2 <= len(packet) and packet[at + 1] >= 2:
        found[packet[at]] = packet[at + 2 : at + packet[at + 1]]
        at += packet[at + 1]
    return found
