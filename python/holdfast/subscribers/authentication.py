"""Authentication by PAP and CHAP: the question to an authenticator and its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network
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
    ``chargeable``: Chargeable-User-Identity, for accounting as well. ``dns6``: name servers over IPv6.
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
    chargeable: bytes = b""
    dns6: tuple[IPv6Address, ...] = ()


def unservable(verdict: Verdict) -> str | None:
    """Why a subscriber cannot be given what a verdict says; None if it can.

    The prefix of router advertisements must be a /64: a subscriber ignores one of another length (RFC 4862, section 5.5.3), so
    routing a longer or shorter one would give it nothing.
    """
    four = verdict.ipv4
    if four is not None and (four.is_multicast or four.is_loopback or int(four) in (0, 0xFFFFFFFF)):
        return f"{four} is no host's address"
    if verdict.ipv6_prefix is not None and verdict.ipv6_prefix.prefixlen != 64:
        return f"the IPv6 prefix {verdict.ipv6_prefix} is no /64, and a subscriber makes addresses in a /64 alone"
    if verdict.delegated is not None and not 1 <= verdict.delegated.prefixlen <= 64:
        return f"the delegated prefix {verdict.delegated} is longer than /64"
    for prefix in (verdict.ipv6_prefix, verdict.delegated):
        if prefix is not None and (
            not int(prefix.network_address) >> 64 or prefix.is_multicast or prefix.is_link_local or prefix.is_loopback
        ):
            return f"{prefix} is no prefix of hosts"
    if verdict.rates is not None:
        for rate in (verdict.rates.up_bit_s, verdict.rates.down_bit_s):
            if rate is not None and not 8 <= rate < 1 << 63:
                return f"a rate of {rate} bit/s is not in 8 to 2^63"
    return None


Answer = Callable[[Verdict], None]
"""Takes the verdict; once."""


class Authenticator(Protocol):
    """Judges subscribers: a list of users, or RADIUS servers."""

    def authenticate(self, question: Question, answer: Answer) -> None:
        """Calls ``answer``, at once or later.

        An authenticator may have a method ``withdraw(line, session_id, accounting_id)``: the session has ended, and nobody waits
        for an answer.
        """
