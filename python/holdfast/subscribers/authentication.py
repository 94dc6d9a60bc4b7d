"""Authentication by PAP and CHAP: the question to an authenticator and its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Network
from typing import Protocol

from holdfast.subscribers.plane import Line, Rates


@dataclass(frozen=True)
class Credentials:
    """The credentials of a subscriber: a password (PAP), or identifier, challenge and response (CHAP)."""

    user: bytes
    password: bytes | None = None
    identifier: int = 0
    challenge: bytes = b""
    response: bytes = b""


@dataclass(frozen=True)
class Question:
    """Credentials and where they come from. ``called`` is the gateway that was dialled; identities are bytes, as on the wire."""

    credentials: Credentials
    session_id: int
    accounting_id: str
    line: Line
    mac: bytes
    circuit_id: bytes = b""
    remote_id: bytes = b""
    service: bytes = b""
    called: bytes = b""


@dataclass(frozen=True)
class Verdict:
    """An authenticator's answer. The gateway chooses the values that are None or empty.

    ``interim_s``: seconds between interim accounting records. Timeouts are RFC 2865's, 5.27 and 5.28.
    ``classes``: RADIUS Class values, to be repeated in accounting. ``user``: the name there, if not the subscriber's own.
    """

    accepted: bool
    message: str = ""
    ipv4: IPv4Address | None = None
    ipv4_pool: str = ""
    ipv6_prefix: IPv6Network | None = None
    delegated: IPv6Network | None = None
    dns: tuple[IPv4Address, ...] = ()
    rates: Rates | None = None
    session_timeout_s: int = 0
    idle_timeout_s: int = 0
    interim_s: int = 0
    classes: tuple[bytes, ...] = ()
    user: bytes = b""


Answer = Callable[[Verdict], None]
"""Takes the verdict; once."""


class Authenticator(Protocol):
    """Judges subscribers: a list of users, or RADIUS servers."""

    def authenticate(self, question: Question, answer: Answer) -> None:
        """Calls ``answer``, at once or later."""
