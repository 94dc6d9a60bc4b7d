"""Numbers of one kind at one node, by the LSP that owns them: labels, NHLFEs, instances of notices. Nothing is installed here."""

from __future__ import annotations

from collections import defaultdict

from holdfast.errors import NetworkError


class OwnedNumbers:
    """The numbers ``first`` to ``last``, of which the lowest free one is allocated. ``exhausted``: the error when none is left."""

    def __init__(self, first: int, last: int, exhausted: str) -> None:
        self._first, self._last = first, last
        self._exhausted = exhausted
        self._used: set[int] = set()
        self._owned: dict[int, list[int]] = defaultdict(list)

    def __len__(self) -> int:
        return len(self._used)

    def allocate(self, owner: int) -> int:
        """Allocate and return the lowest free number for ``owner``. Raise :class:`NetworkError` if there is none."""
        number = self._first
        while number in self._used:
            number += 1
        if number > self._last:
            raise NetworkError(self._exhausted)
        self._used.add(number)
        self._owned[owner].append(number)
        return number

    def release(self, owner: int) -> list[int]:
        """Free all numbers of ``owner``, and return them in the order of their allocation."""
        numbers = self._owned.pop(owner, [])
        self._used.difference_update(numbers)
        return numbers
