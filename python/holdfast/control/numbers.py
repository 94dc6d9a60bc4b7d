"""Numbers that a controller gives out and takes back: register indices, connection identifiers, groups, addresses."""

from __future__ import annotations

from collections import deque

from holdfast.errors import NetworkError


class Numbers:
    """Gives out the numbers ``first`` to ``last`` of one kind at one place; ``what`` is the error's text when none is left.

    Those never used come first, in order, and then those given back longest ago: packets still under way for a number's former
    owner should not meet the next one.
    """

    def __init__(self, first: int, last: int, what: str) -> None:
        self._next = first
        self._first, self._last = first, last
        self._what = what
        self._used: set[int] = set()
        self._returned: deque[int] = deque()
        self._touched: set[int] = set()

    def __len__(self) -> int:
        return len(self._used)

    def take(self) -> int:
        """Allocate a free number and return it. Raises :class:`NetworkError` if all are in use."""
        while self._next <= self._last and self._next in self._touched:
            self._next += 1
        if self._next <= self._last:
            number = self._next
            self._next += 1
        elif self._returned:
            number = self._returned.popleft()
        else:
            raise NetworkError(f"all {self._last - self._first + 1} {self._what} are in use")
        self._used.add(number)
        return number

    def claim(self, number: int) -> bool:
        """Mark a number as used and return True; return False if it is in use or out of range."""
        if number in self._used or not self._first <= number <= self._last:
            return False
        self._used.add(number)
        self._touched.add(number)
        if number in self._returned:
            self._returned.remove(number)
        return True

    def give_back(self, number: int) -> None:
        """Free a number that is in use. Raises :class:`KeyError` if it is not."""
        self._used.remove(number)
        self._touched.add(number)
        self._returned.append(number)

    def is_untouched(self, number: int) -> bool:
        """Return True if the number was never used, so that the switch still has the initial state for it."""
        return number not in self._touched
