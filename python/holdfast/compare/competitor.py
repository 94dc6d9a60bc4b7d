"""What competes in a comparison, in any world: a name, words, colours, and code of which results are the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TypeVar

from holdfast.errors import ScenarioError
from holdfast.extensions import loaded
from holdfast.fingerprint import of_code


@dataclass(frozen=True)
class Competitor:
    """A mechanism. ``colour``: on white, and on black.

    ``files``: files, or folders of them, that its runs read: when they change, results are not reused. Of modules and P4 programs,
    and of files that the mechanism's modules name, this is found out (:mod:`holdfast.fingerprint`). ``origin``: the place of a
    mechanism from outside Holdfast (:mod:`holdfast.extensions`), from which the processes that run it load it.
    """

    name: str
    what: str
    colour: tuple[str, str]
    files: tuple[Path, ...] = field(default=(), kw_only=True)
    origin: str | None = field(default=None, kw_only=True)

    def code(self) -> str:
        """Return a hash of the mechanism's code outside of Holdfast; empty if there is none."""
        own = [getattr(self, each.name) for each in fields(self) if each.name not in Competitor.__dataclass_fields__]
        origin = () if self.origin is None else (loaded(self.origin)[0].__name__,)
        return of_code([type(self), *own], self.files, origin)


C = TypeVar("C", bound=Competitor)


def check(known: Mapping[str, object], names: Sequence[str]) -> None:
    """Raise :class:`ScenarioError` for a name that is not known, or is given twice."""
    for name in names:
        if name not in known:
            raise ScenarioError(f"there is no mechanism {name!r} (known: {', '.join(known)})")
        if list(names).count(name) > 1:
            raise ScenarioError(f"mechanism {name!r} is given twice")


def find(known: Mapping[str, C], names: Sequence[str], baseline: str) -> list[C]:
    """Return the mechanism ``baseline``, then those in ``names`` in the order in which they are known.

    Raise :class:`ScenarioError` for unknown and repeated names.
    """
    check(known, names)
    return [known[baseline], *(each for name, each in known.items() if name in names and name != baseline)]
