"""Pools of IPv4 addresses, of IPv6 prefixes and of session ids: the free ones, without a list of all.

Those that came back wait behind those never given, so that late packets of one subscriber do not meet the next. So few wait
that memory is bounded by the values in use, not by the sessions that there ever were.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Network
from typing import Generic, TypeVar

T = TypeVar("T")

MOST_RETURNED = 65_536
"""When as many have come back, the first of them is taken before those never given."""


class Pool(Generic[T]):
    """``size`` values, made from indexes. Deterministic: a function of the order of calls."""

    def __init__(self, size: int, value: Callable[[int], T], index: Callable[[T], int | None]) -> None:
        self.size = size
        self._value, self._index = value, index
        self._fresh: deque[tuple[int, int]] = deque(((0, size),) if size else ())
        """Ranges of those never given, each from its first index to before its last."""
        self._returned: OrderedDict[int, None] = OrderedDict()
        self._used: set[int] = set()

    @property
    def used(self) -> int:
        """The number of values that are taken."""
        return len(self._used)

    def has(self, value: T) -> bool:
        """Return True if a value belongs to the pool, free or taken."""
        return self._index(value) is not None

    @property
    def taken(self) -> set[T]:
        """The values that are taken."""
        return {self._value(index) for index in self._used}

    def take(self, obstacle: Callable[[T], T | None] | None = None) -> T | None:
        """Take a free value and return it, or None if no value is free.

        ``obstacle`` returns None for a value that can be taken, else the last of the consecutive values that cannot; these are
        skipped, and tried again when no other value is left.
        """
        if len(self._returned) >= MOST_RETURNED and (value := self._take_returned(obstacle)) is not None:
            return value
        value = self._take_fresh(obstacle)
        return self._take_returned(obstacle) if value is None else value

    def _take_fresh(self, obstacle: Callable[[T], T | None] | None) -> T | None:
        for _ in range(len(self._fresh)):
            index, end = self._fresh.popleft()
            while index < end:
                if index in self._used:
                    index += 1
                    continue
                value = self._value(index)
                free = self._beyond(value, obstacle)
                if free is None:
                    if index + 1 < end:
                        self._fresh.appendleft((index + 1, end))
                    self._used.add(index)
                    return value
                self._fresh.append((index, min(free, end)))
                index = free
        return None

    def _take_returned(self, obstacle: Callable[[T], T | None] | None) -> T | None:
        for _ in range(len(self._returned)):
            index, _ = self._returned.popitem(last=False)
            value = self._value(index)
            if self._beyond(value, obstacle) is None:
                self._used.add(index)
                return value
            self._returned[index] = None
        return None

    def _beyond(self, value: T, obstacle: Callable[[T], T | None] | None) -> int | None:
        """Return the index after the last value that ``obstacle`` reports; None if it reports that ``value`` can be taken."""
        last = None if obstacle is None else obstacle(value)
        if last is None:
            return None
        end = self._index(last)
        return self.size if end is None else end + 1

    def reserve(self, value: T) -> bool:
        """Mark a value as taken.

        Returns False if it was taken before; a value outside the pool is ignored, and True is returned.
        """
        index = self._index(value)
        if index is None:
            return True
        if index in self._used:
            return False
        self._used.add(index)
        self._returned.pop(index, None)
        return True

    def give_back(self, value: T) -> None:
        """Free a value. A value that is not the pool's or is free is ignored."""
        index = self._index(value)
        if index is not None and index in self._used:
            self._used.remove(index)
            if not any(first <= index < end for first, end in self._fresh):
                self._returned[index] = None


def addresses(network: IPv4Network, excluded: frozenset[IPv4Address]) -> Pool[IPv4Address]:
    """Return a pool of all host addresses of a network except the excluded ones."""
    first = int(network.network_address)
    edges = {first, int(network.broadcast_address)} if network.prefixlen < 31 else set()
    pool = Pool(
        network.num_addresses,
        lambda index: IPv4Address(first + index),
        lambda address: int(address) - first if address in network else None,
    )
    for each in sorted({*edges, *(int(each) for each in excluded if each in network)}):
        pool.reserve(IPv4Address(each))
    return pool


class Prefixes(Pool[IPv6Network]):
    """All prefixes of one length in a network."""

    def __init__(self, network: IPv6Network, length: int) -> None:
        self.network = network
        first, step = int(network.network_address), 1 << 128 - length
        super().__init__(
            1 << length - network.prefixlen,
            lambda index: IPv6Network((first + index * step, length)),
            lambda prefix: (
                (int(prefix.network_address) - first) // step
                if prefix.prefixlen == length and prefix.subnet_of(network)
                else None
            ),
        )


def session_ids(most: int) -> Pool[int]:
    """Return a pool of the numbers 1 to ``most``, at most 65,534, as 0 and 65,535 are reserved (RFC 2516, section 4)."""
    return Pool(most, lambda index: index + 1, lambda value: value - 1 if 1 <= value <= most else None)
