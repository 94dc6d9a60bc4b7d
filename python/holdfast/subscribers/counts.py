"""Counts of keys that say which key has most, in constant time: the fullest line, the fullest access node."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)


class Counts(Generic[_Key]):
    """Counts of keys, and the key that has most."""

    def __init__(self) -> None:
        self._counts: dict[_Key, int] = {}
        self._by_count: dict[int, OrderedDict[_Key, None]] = {}  # whose first key is found in constant time
        self._most = 0

    def __getitem__(self, key: _Key) -> int:
        return self._counts.get(key, 0)

    def most(self) -> int:
        """Return the largest of all counts; 0 if there is none."""
        return self._most

    def leader(self) -> _Key:
        """Return a key with the largest count; at least one count must be above 0."""
        return next(iter(self._by_count[self._most]))

    def add(self, key: _Key) -> None:
        """Add one to the count of ``key``."""
        self._move(key, self[key] + 1)

    def remove(self, key: _Key) -> None:
        """Subtract one from the count of ``key``."""
        self._move(key, self[key] - 1)

    def _move(self, key: _Key, count: int) -> None:
        before = self._counts.pop(key, 0)
        if before:
            del self._by_count[before][key]
            if not self._by_count[before]:
                del self._by_count[before]
        if count:
            self._counts[key] = count
            self._by_count.setdefault(count, OrderedDict())[key] = None
        if count > self._most or self._most not in self._by_count:
            self._most = count  # counts change by one

    def __len__(self) -> int:
        return len(self._counts)


__all__ = ["Counts"]
