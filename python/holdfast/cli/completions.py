"""What the shell completes: names of topologies, mechanisms, experiments and kinds of files.

Each press of a key starts a process, so nothing is imported that is not asked for.
"""

from __future__ import annotations


def topologies(incomplete: str) -> list[str]:
    """Return the names of generated topologies that begin so; of those with sizes, with a colon. The shell adds the files."""
    from inspect import signature

    from holdfast.topologies import GENERATORS

    sized = {
        name: any(p.default is p.empty for p in signature(each).parameters.values())
        for name, each in GENERATORS.items()
    }
    return [f"{name}:" if sizes else name for name, sizes in sized.items() if name.startswith(incomplete)]


def mechanisms(incomplete: str) -> list[str]:
    """Return the list that was begun with each mechanism that continues it."""
    from holdfast.compare.mechanisms import MECHANISMS
    from holdfast.compare.multicast_mechanisms import MECHANISMS as MULTICAST

    before, comma, begun = incomplete.rpartition(",")
    given = before.split(",")
    return [
        f"{before}{comma}{name}" for name in (*MECHANISMS, *MULTICAST) if name.startswith(begun) and name not in given
    ]


def experiments(incomplete: str) -> list[str]:
    """Return the names of experiments that begin so."""
    from holdfast import experiments as found

    return [name for name in found.names() if name.startswith(incomplete)]


def schemas(incomplete: str) -> list[str]:
    """Return the kinds of files that begin so."""
    from holdfast.schemas import NAMES

    return [name for name in NAMES if name.startswith(incomplete)]
