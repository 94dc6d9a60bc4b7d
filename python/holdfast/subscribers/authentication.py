"""Authentication by PAP and CHAP: the question to an authenticator and its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
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


_NO_HOSTS = [IPv4Network(each) for each in ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4")]
"""This network, loopback, link-local, multicast, and reserved with the broadcast address (RFC 6890)."""
_NO_PREFIXES = [IPv6Network(each) for each in ("::/8", "fe80::/10", "fec0::/10", "ff00::/8")]
"""Loopback and embedded IPv4 addresses, link-local, formerly site-local, multicast (RFC 4291, section 2.4; IANA's registry)."""

LEAST_RATE_BIT_S = 8


def unservable(verdict: Verdict) -> str | None:
    """Return why a session cannot have the addresses and prefixes that a verdict grants, as a sentence; None if it can.

    The prefix of router advertisements must be a /64: a subscriber ignores a prefix of another length (RFC 4862, section 5.5.3), so
    routing a longer or shorter prefix would give the subscriber nothing.
    """
    four = verdict.ipv4
    if four is not None and any(four in each for each in _NO_HOSTS):
        return f"{four} is no host's address"
    if verdict.ipv6_prefix is not None and verdict.ipv6_prefix.prefixlen != 64:
        return f"the IPv6 prefix {verdict.ipv6_prefix} is no /64, and a subscriber makes addresses in a /64 alone"
    if verdict.delegated is not None and not 1 <= verdict.delegated.prefixlen <= 64:
        return f"the delegated prefix {verdict.delegated} is none of /1 to /64"
    for prefix in (verdict.ipv6_prefix, verdict.delegated):
        if prefix is not None and any(prefix.overlaps(each) for each in _NO_PREFIXES):
            return f"{prefix} is no prefix of hosts"
    return None if verdict.rates is None else unlimitable(verdict.rates)


def unlimitable(rates: Rates) -> str | None:
    """Return why a meter, which counts whole bytes per second, cannot limit a session to these rates; None if it can."""
    for rate in (rates.up_bit_s, rates.down_bit_s):
        if rate is not None and not LEAST_RATE_BIT_S <= rate < 1 << 63:
            return f"a rate of {rate} bit/s is not in {LEAST_RATE_BIT_S} to 2^63"
    return None


Answer = Callable[[Verdict], None]
"""Is called once with the verdict."""


class Authenticator(Protocol):
    """Judges subscribers: a list of users, or RADIUS servers."""

    def authenticate(self, question: Question, answer: Answer) -> None:
        """Judge a login, and call ``answer`` with the verdict, at once or later.

        An authenticator may have a method ``withdraw(line, session_id, accounting_id)``, which is called when the session ends and
        no answer is needed any more.
        """
