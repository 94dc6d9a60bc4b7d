"""The registry of what subscribers are given: each IPv4 address and each prefix, of a pool or of nobody's, has one owner.

It decides whether a verdict can be granted before anything is promised, and gives back all that an owner has at once. It knows
neither the user plane nor how sessions begin and end.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Network
from itertools import pairwise
from typing import NamedTuple

from holdfast.subscribers import pools
from holdfast.subscribers.authentication import Verdict, unservable
from holdfast.subscribers.configuration import Configuration
from holdfast.subscribers.plane import Address, Session
from holdfast.subscribers.session import Grant, PppSession

_RESERVED = 0
"""The owner of what no subscriber may have: no session has this number (RFC 2516, section 4)."""


class Refusal(NamedTuple):
    """A verdict that cannot be granted. ``event`` is counted; ``holders``: the sessions that have what it names."""

    event: str
    reason: str
    holders: frozenset[int] = frozenset()


class _Held(NamedTuple):
    """The grants of one session. ``user`` is its name in accounting."""

    user: bytes
    ipv4: IPv4Address | None
    ipv6_prefix: IPv6Network | None
    delegated: IPv6Network | None

    @property
    def prefixes(self) -> list[IPv6Network]:
        """The session's prefixes; if one contains the other, only the one that contains the other."""
        both = [each for each in dict.fromkeys((self.ipv6_prefix, self.delegated)) if each is not None]
        return [each for each in both if not any(each is not other and each.subnet_of(other) for other in both)]


class _Ranges:
    """Disjoint ranges of the upper 64 bits of IPv6 addresses, and their owners."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._at: dict[int, tuple[int, int]] = {}

    def overlapping(self, prefix: IPv6Network) -> Iterator[tuple[int, int]]:
        """Yield (upper 64 bits of the last address, owner) of each range that overlaps the prefix."""
        first, last = _numbers(prefix)
        at = max(0, bisect_right(self._firsts, first) - 1)
        for each in self._firsts[at : bisect_right(self._firsts, last)]:
            if self._at[each][0] >= first:
                yield self._at[each]

    def add(self, prefix: IPv6Network, owner: int) -> None:
        """Add a prefix and the number of the session that owns it; the prefix must not overlap another one."""
        first, last = _numbers(prefix)
        insort(self._firsts, first)
        self._at[first] = last, owner

    def remove(self, prefix: IPv6Network) -> None:
        """Remove a prefix that :meth:`add` has added."""
        first, _ = _numbers(prefix)
        del self._firsts[bisect_left(self._firsts, first)], self._at[first]

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        return ((first, *self._at[first]) for first in self._firsts)


class Grants:
    """The addresses and prefixes of a gateway, and who has them.

    ``reserved``: addresses that no subscriber may have, besides the gateway's own and the edges of pools.
    """

    def __init__(self, configuration: Configuration, reserved: Iterable[Address] = ()) -> None:
        self._configuration = configuration
        six, own = configuration.ipv6, list(reserved)
        if configuration.address is not None:
            own.append(configuration.address)
        self._four: dict[IPv4Address, int] = {each: _RESERVED for each in own if isinstance(each, IPv4Address)}
        for network in configuration.pools.values():
            if network.prefixlen < 31:
                self._four |= dict.fromkeys((network.network_address, network.broadcast_address), _RESERVED)
        self._six = _Ranges()
        for prefix in dict.fromkeys(IPv6Network((each, 64), strict=False) for each in own if each.version == 6):
            self._six.add(prefix, _RESERVED)
        self._held: dict[int, _Held] = {}
        self._by_user: dict[bytes, set[int]] = {}
        taken = frozenset(self._four)
        self._pools = {name: pools.addresses(network, taken) for name, network in configuration.pools.items()}
        self._prefixes = pools.Prefixes(six.prefixes, 64) if six else None
        self._delegations = (
            pools.Prefixes(six.delegated, six.delegated_length) if six and six.delegated is not None else None
        )

    def take(self, session: PppSession, verdict: Verdict) -> Grant | Refusal:
        """Grant a session all that a verdict names, and pool entries where it names nothing.

        If one is missing, refuse and grant nothing.
        """
        why = self.hindrance(verdict)
        if why is not None:
            return Refusal("not-served", f"not served here: {why}")
        if session.id in self._held:
            return Refusal("not-served", "not served here: the session has its addresses")
        user = verdict.user or session.user
        named = _Held(user, verdict.ipv4, verdict.ipv6_prefix, verdict.delegated)
        holders = self._holders(named)
        if holders:
            event = "not-served" if _RESERVED in holders else "in-use"
            return Refusal(event, "not served here: the address or prefix is in use", frozenset(holders))
        self._hold(session.id, named)
        whole = self._complete(session.id, named, verdict.ipv4_pool)
        if whole is None:
            self.release(session.id)
            return Refusal("exhausted", "no address is free")
        return self._grant(session, verdict, whole)

    def hindrance(self, verdict: Verdict) -> str | None:
        """Return why the gateway could not grant any session what a verdict names, as a sentence; None if it could."""
        return unservable(verdict) or self._lacks(verdict)

    def restore(self, whole: Session, user: bytes) -> str | None:
        """Give a session of an earlier process its addresses back.

        Returns None, or the reason if another session has one of them.
        """
        named = _Held(user, whole.ipv4, whole.ipv6_prefix, whole.delegated)
        if whole.session_id in self._held or self._holders(named):
            return "its address or prefix is in use"
        self._hold(whole.session_id, named)
        return None

    def release(self, number: int) -> None:
        """Free the address and prefixes of a session; do nothing if the session has none."""
        held = self._held.pop(number, None)
        if held is None:
            return
        mine = self._by_user[held.user]
        mine.discard(number)
        if not mine:
            del self._by_user[held.user]
        if held.ipv4 is not None:
            del self._four[held.ipv4]
            for pool in self._pools.values():
                pool.give_back(held.ipv4)
        for prefix in held.prefixes:
            self._six.remove(prefix)
        if held.ipv6_prefix is not None and self._prefixes is not None:
            self._prefixes.give_back(held.ipv6_prefix)
        if held.delegated is not None and self._delegations is not None:
            self._delegations.give_back(held.delegated)

    def of_user(self, user: bytes) -> frozenset[int]:
        """Return the numbers of the user's sessions that have a grant."""
        return frozenset(self._by_user.get(user, ()))

    @property
    def owners(self) -> frozenset[int]:
        """The numbers of the sessions that have a grant."""
        return frozenset(self._held)

    def use(self) -> Counter[str]:
        """Return the number of entries in use by pool name."""
        use = Counter({name: pool.used for name, pool in self._pools.items()})
        for name, prefixes in (("ipv6-prefixes", self._prefixes), ("ipv6-delegated", self._delegations)):
            if prefixes is not None:
                use[name] = prefixes.used
        return use

    def violations(self) -> list[str]:
        """Return a sentence for each difference between what sessions own and what the pools mark as taken; for tests."""
        found = []
        four = {held.ipv4: number for number, held in self._held.items() if held.ipv4 is not None}
        if four != {each: owner for each, owner in self._four.items() if owner != _RESERVED}:
            found.append("the IPv4 addresses taken are not those of the owners")
        edges = {each for each, owner in self._four.items() if owner == _RESERVED}
        for name, network in self._configuration.pools.items():
            if self._pools[name].taken != {each for each in (*four, *edges) if each in network}:
                found.append(f"pool {name!r} is not what the owners have of it")
        ranges = sorted((*_numbers(each), number) for number, held in self._held.items() for each in held.prefixes)
        if ranges != [each for each in self._six if each[2] != _RESERVED]:
            found.append("the prefixes taken are not those of the owners")
        if any(one[1] >= other[0] for one, other in pairwise(ranges)):
            found.append("two owners have a prefix")
        mine = {each.ipv6_prefix for each in self._held.values()}
        if self._prefixes is not None and self._prefixes.taken != {
            each for each in mine if each is not None and self._prefixes.has(each)
        }:
            found.append("ipv6.prefixes is not what the owners have of it")
        mine = {each.delegated for each in self._held.values()}
        if self._delegations is not None and self._delegations.taken != {
            each for each in mine if each is not None and self._delegations.has(each)
        }:
            found.append("ipv6.delegated is not what the owners have of it")
        users = {(held.user, number) for number, held in self._held.items()}
        if users != {(user, number) for user, numbers in self._by_user.items() for number in numbers}:
            found.append("the users' sessions are not those of the owners")
        return found

    def _grant(self, session: PppSession, verdict: Verdict, whole: _Held) -> Grant:
        lcp, configuration = session.lcp, self._configuration
        return Grant(
            whole.user,
            Session(
                session_id=session.id,
                line=session.line,
                mac=session.mac,
                magic=lcp.magic,
                peer_mru=lcp.peer_mru,
                ipv4=whole.ipv4,
                ipv6_prefix=whole.ipv6_prefix,
                delegated=whole.delegated,
                rates=configuration.rates.rates() if verdict.rates is None else verdict.rates,
            ),
            verdict.dns or configuration.dns,
            verdict.session_timeout_s,
            verdict.idle_timeout_s,
            verdict.interim_s or (configuration.radius.interim_s if configuration.radius else 0),
            verdict.classes,
            verdict.chargeable,
            verdict.dns6,
        )

    def _lacks(self, verdict: Verdict) -> str | None:
        """Return why this configuration cannot give what a verdict names, so that the login is refused; None if it can."""
        configuration = self._configuration
        if configuration.address is None and (verdict.ipv4 is not None or verdict.ipv4_pool or verdict.dns):
            return "this gateway has no IPv4"
        if verdict.ipv4 is not None and verdict.ipv4 == configuration.address:
            return f"{verdict.ipv4} is the gateway's own address"
        if verdict.ipv4 is not None and self._four.get(verdict.ipv4) == _RESERVED:
            return f"{verdict.ipv4} is no subscriber's: it is an edge of a pool, or of the gateway's network"
        if verdict.ipv4 is None and verdict.ipv4_pool and verdict.ipv4_pool not in self._pools:
            return f"there is no pool {verdict.ipv4_pool!r}"
        if self._prefixes is None and verdict.ipv6_prefix is None and (verdict.delegated is not None or verdict.dns6):
            return "this gateway has no IPv6 prefixes"
        for source in (self._prefixes, self._delegations):
            for prefix in (verdict.ipv6_prefix, verdict.delegated):
                if source is not None and prefix is not None and source.size > 1 and source.network.subnet_of(prefix):
                    return f"{prefix} has the pool {source.network} of all subscribers in it"
        return None

    def _holders(self, named: _Held) -> set[int]:
        """Return the numbers of the sessions that own the IPv4 address in ``named``, or a prefix that overlaps one in it."""
        found = {self._four[named.ipv4]} if named.ipv4 in self._four else set()
        return found | {owner for prefix in named.prefixes for _, owner in self._six.overlapping(prefix)}

    def _hold(self, number: int, named: _Held) -> None:
        """Record free addresses and prefixes as owned by a session, and mark them as taken in their pools."""
        self._held[number] = named
        self._by_user.setdefault(named.user, set()).add(number)
        if named.ipv4 is not None:
            self._four[named.ipv4] = number
            for pool in self._pools.values():
                pool.reserve(named.ipv4)
        for prefix in named.prefixes:
            self._six.add(prefix, number)
        if named.ipv6_prefix is not None and self._prefixes is not None:
            self._prefixes.reserve(named.ipv6_prefix)
        if named.delegated is not None and self._delegations is not None:
            self._delegations.reserve(named.delegated)

    def _complete(self, number: int, named: _Held, pool_name: str) -> _Held | None:
        """Complete a session's addresses and prefixes from the pools where the verdict names none.

        Returns None if a pool is empty.
        """
        whole = named
        if named.ipv4 is None and self._pools:
            ipv4 = self._pools[pool_name or next(iter(self._pools))].take()
            if ipv4 is None:
                return None
            self._four[ipv4] = number
            whole = self._held[number] = whole._replace(ipv4=ipv4)
        if named.ipv6_prefix is None and self._prefixes is not None:
            prefix = self._prefix(number, self._prefixes)
            if prefix is None:
                return None
            whole = self._held[number] = whole._replace(ipv6_prefix=prefix)
        if named.delegated is None and self._delegations is not None:
            prefix = self._prefix(number, self._delegations)
            if prefix is None:
                return None
            whole = self._held[number] = whole._replace(delegated=prefix)
        return whole

    def _prefix(self, number: int, source: pools.Prefixes) -> IPv6Network | None:
        prefix = source.take(self._obstacle)
        if prefix is not None:
            self._six.add(prefix, number)
        return prefix

    def _obstacle(self, prefix: IPv6Network) -> IPv6Network | None:
        """Return the prefix as long as ``prefix`` that contains the end of the owned ranges that it overlaps.

        None without overlap.
        """
        last = max((last for last, _ in self._six.overlapping(prefix)), default=None)
        return None if last is None else IPv6Network((last << 64, prefix.prefixlen), strict=False)


def _numbers(prefix: IPv6Network) -> tuple[int, int]:
    """Return the upper 64 bits of a prefix's first and last address; the prefix length is at most 64."""
    first = int(prefix.network_address) >> 64
    return first, first + (1 << 64 - prefix.prefixlen) - 1
