"""The user plane's sessions, and the writes that make it equal to what sessions want: one's failure costs no other.

It does not know why a session is wanted, or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from holdfast.errors import HoldfastError
from holdfast.subscribers.plane import Session, Usage, UserPlane, is_out_of_reach


@dataclass
class Outcome:
    """The result of writes. ``usages``: the last ones of removed sessions.

    ``refused``: why, of sessions that the user plane does not take; it has of each what it had before. ``unreached``: why, of
    sessions of which nobody knows what it has, because it does not answer.
    """

    usages: dict[int, Usage] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    unreached: dict[int, str] = field(default_factory=dict)

    def __contains__(self, number: int) -> bool:
        """Return True if the write of the session with this number failed."""
        return number in self.refused or number in self.unreached

    def why(self, number: int) -> str:
        """Return why the write of the session with this number failed."""
        return self.refused.get(number) or self.unreached[number]


class Installation:
    """The sessions in the user plane, as far as they are known. ``events`` counts batches and single writes that fail."""

    def __init__(self, plane: UserPlane, events: Counter[str]) -> None:
        self._plane, self._events = plane, events
        self._known: dict[int, Session | None] = {}
        """The sessions by number; None for one of which nobody knows what the user plane has."""

    def __contains__(self, number: int) -> bool:
        """Return True if the user plane has the session with this number, or may have it."""
        return number in self._known

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of the sessions that the user plane has, or may have."""
        return frozenset(self._known)

    def read(self) -> dict[int, Session]:
        """Read and return the user plane's sessions by number.

        Raises a :class:`HoldfastError` if the user plane does not answer.
        """
        there = self._plane.installed()
        self._known = dict(there)
        return there

    def usage(self, numbers: Iterable[int]) -> dict[int, Usage]:
        """Return the usage of the given sessions that are installed, by number; empty if the user plane fails."""
        there = [each for each in numbers if each in self._known]
        try:
            return self._plane.usage(there) if there else {}
        except HoldfastError:
            self._events["plane-failures"] += 1
            return {}

    def remove(self, numbers: Iterable[int]) -> Outcome:
        """Remove the given sessions that are installed, in one batch, or one by one if that fails; return usages and failures."""
        outcome = Outcome()
        gone = [each for each in numbers if each in self._known]

        def remove(some: list[int]) -> None:
            outcome.usages |= self._plane.remove(some)
            for each in some:
                del self._known[each]

        self._write(gone, remove, outcome)
        return outcome

    def install(self, wanted: Mapping[int, Session]) -> Outcome:
        """Install the sessions that the user plane lacks or has in another state, in one batch; return which failed, and why.

        If the user plane refuses the batch, they are installed one by one.
        """
        outcome = Outcome()
        changes = [number for number, each in wanted.items() if self._known.get(number) != each]

        def install(some: list[int]) -> None:
            self._plane.install([wanted[each] for each in some])
            self._known |= {each: wanted[each] for each in some}

        before = set(self._known)
        self._write(changes, install, outcome)
        for each in (*outcome.refused, *outcome.unreached):
            if each in outcome.unreached or each not in before:
                self._known[each] = None
        return outcome

    def _write(self, numbers: list[int], write: Callable[[list[int]], None], outcome: Outcome) -> None:
        """Write sessions in one batch. If the user plane refuses the batch, write one by one as long as the user plane answers."""
        if not numbers:
            return
        try:
            write(numbers)
            return
        except HoldfastError as error:
            self._events["plane-failures"] += 1
            failure = error
        if len(numbers) == 1 or is_out_of_reach(failure):
            _note(numbers, failure, outcome)
            return
        for at, each in enumerate(numbers):
            try:
                write([each])
            except HoldfastError as error:
                if is_out_of_reach(error):
                    _note(numbers[at:], error, outcome)
                    return
                _note([each], error, outcome)


def _note(numbers: Iterable[int], error: HoldfastError, outcome: Outcome) -> None:
    failed = outcome.unreached if is_out_of_reach(error) else outcome.refused
    failed.update(dict.fromkeys(numbers, str(error)))
