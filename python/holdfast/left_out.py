"""What a reader leaves out of a file, said in one sentence with the number of things and where the first ones are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.terminal import excerpt

MOST_KINDS = 12
"""The most kinds of things that a message names."""

MOST_PLACES = 3
"""The most places that a message names for each kind."""


@dataclass
class LeftOut:
    """Things that a reader leaves out, by kind."""

    found: dict[str, list[str]] = field(default_factory=dict)
    """Places of each kind."""

    def add(self, what: str, place: str) -> None:
        """Record that something of the kind ``what``, at this place in the file, is left out."""
        self.found.setdefault(excerpt(what, 120), []).append(place)

    def sentence(self, path: Path | str) -> str:
        """Return a sentence about all that was left out of the file, for a warning; empty if nothing was."""
        if not self.found:
            return ""
        number = sum(map(len, self.found.values()))
        named = [f"{what} ({_places(places)})" for what, places in list(self.found.items())[:MOST_KINDS]]
        more = f" and {len(self.found) - MOST_KINDS} kinds more" if len(self.found) > MOST_KINDS else ""
        return f"{path}: {number} {'is' if number == 1 else 'are'} left out: {', '.join(named)}{more}"


def _places(places: Sequence[str]) -> str:
    more = f" and {len(places) - MOST_PLACES} more" if len(places) > MOST_PLACES else ""
    return ", ".join(excerpt(place, 60) for place in places[:MOST_PLACES]) + more
