"""Topologies from outside the package: generators, and importers of further formats.

A generator is a function of numbers, as those of :data:`holdfast.topologies.GENERATORS`; an importer is a function that takes the
path of a file. Both return a topology.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from holdfast.errors import ExtensionError
from holdfast.extensions import Door
from holdfast.topology import Topology

Generator: TypeAlias = Callable[..., Topology]

MININET: Final = "mininet"
"""The prefix of a Mininet file's path, at the place where the name of an importer could stand."""


def _function(value: object) -> Generator:
    if isinstance(value, type) or not callable(value):
        raise ExtensionError(f"it is a {type(value).__name__}, not a function that returns a Topology")
    return value


def _own() -> set[str]:
    from holdfast.topologies import GENERATORS

    return {*GENERATORS, MININET}


GENERATED: Final[Door[Generator]] = Door("holdfast.topologies", "topology", _function, _own)
IMPORTED: Final[Door[Generator]] = Door("holdfast.importers", "importer", _function, _own)


def generator(text: str) -> tuple[str, Generator, str] | None:
    """Return the name, the function and the parameters' text of a generator that is not Holdfast's own; None if there is none.

    ``text`` is ``FILE.py:NAME:PARAMETERS``, or ``NAME:PARAMETERS`` with a name that an installed package offers. Raise
    :class:`ExtensionError` for a generator that cannot be used.
    """
    file, is_place, rest = text.partition(".py:")
    if is_place:
        name, _, parameters = rest.partition(":")
        place = f"{file}.py:{name}"
        return place, GENERATED.read(place), parameters
    name, _, parameters = text.partition(":")
    return (name, GENERATED.load(name), parameters) if name in GENERATED.names() else None


def imported(text: str) -> Topology | None:
    """Return the topology in the file of ``NAME:FILE``, read by an installed package's importer; None if there is no such importer.

    Raise :class:`ExtensionError` for an importer that cannot be used or does not return a topology.
    """
    name, has_file, file = text.partition(":")
    if not has_file or name not in IMPORTED.names():
        return None
    reader = IMPORTED.load(name)
    return IMPORTED.called(text, lambda: reader(Path(file)), Topology)
