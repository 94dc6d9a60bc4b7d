"""What fails at once, by the failure's name: a link, a switch, a shared risk group of the topology, or several joined by ``+``.

``--fail`` says which failures there are, each in turn: of every kind all, or some that are drawn with a seed. Nothing fails here.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from holdfast.compare.inputs import ALL
from holdfast.errors import ScenarioError
from holdfast.topology import Topology

NODES: Final = "nodes"
"""A value of ``fail``: every switch in turn, as ``all`` is every link between switches."""

SRLG: Final = "srlg"
"""A value of ``fail``: every shared risk group of the topology in turn."""

PAIRS: Final = "pairs"
"""A value of ``fail``: every two links between switches at once, or ``pairs:N,seed=S``: so many of these."""

SAMPLE: Final = "sample"
"""``sample:N`` or ``sample:N,seed=S``: N of the links between switches in turn, drawn with the seed (1 by default)."""

RANDOM: Final = "random"
"""``random:K``: sets of K links at once, drawn. ``of=``: links, switches, or both; ``draws=``: how many; ``seed=``."""

MOST_PAIRS: Final = 200
"""With more pairs of links than that, ``pairs`` alone draws so many."""

DRAWS: Final = 20
"""The sets that ``random:K`` draws if it does not say."""

MOST: Final = 10_000
"""The most sets that can be drawn."""

JOINED: Final = "+"
"""Stands between the names of what fails at once. Names of nodes have no such sign."""


class Failing(NamedTuple):
    """What fails at once. ``links``: their indices in the topology; ``switches``: their names."""

    links: tuple[int, ...]
    switches: tuple[str, ...]


@dataclass(frozen=True)
class Failures:
    """The failures of ``--fail``, each in turn, by name.

    ``through``: of a single failure, what default traffic should lead through: links (two ends) and switches (one name).
    ``note``: which of how many were drawn, empty if none were.
    """

    names: tuple[str, ...]
    several: bool
    through: tuple[frozenset[str], ...] = ()
    note: str = ""


def failing(topology: Topology, failure: str) -> Failing:
    """Return what fails at once in a failure of this name. Raises :class:`TopologyError` if something is not in the topology."""
    if failure in topology.shared_risks:
        return Failing(topology.shared_risks[failure], ())
    names = failure.split(JOINED)
    switches = tuple(name for name in names if name in topology.switches)
    return Failing(tuple(topology.find_link(name) for name in names if name not in topology.switches), switches)


def single(topology: Topology, failure: str) -> str | None:
    """Return the link or switch by its name if a failure is of one alone, else None."""
    found = failing(topology, failure)
    if len(found.links) + len(found.switches) != 1:
        return None
    return found.switches[0] if found.switches else topology.link_names()[found.links[0]]


def links_down(topology: Topology, failure: str) -> frozenset[int]:
    """Return the indices of all links that are down in a failure: those that fail, and all of a switch that fails."""
    found = failing(topology, failure)
    gone = set(found.switches)
    at_switches = (i for i, link in enumerate(topology.links) if gone and {link.a, link.b} & gone)
    return frozenset((*found.links, *at_switches))


def cut_off(topology: Topology, failure: str) -> set[str]:
    """Return the hosts at a switch that fails: nothing can help them."""
    gone = set(failing(topology, failure).switches)
    return {name for name in topology.hosts if topology.attachment(name).switch in gone} if gone else set()


def kind(topology: Topology, failure: str) -> str:
    """Return in words what fails at once: ``link``, ``switch``, ``pair of links``, ``shared risk group`` or ``set of links``."""
    if failure in topology.shared_risks:
        return "shared risk group"
    found = failing(topology, failure)
    if len(found.links) + len(found.switches) == 1:
        return "switch" if found.switches else "link"
    if found.links and found.switches:
        return "set of links and switches"
    what, count = ("links", len(found.links)) if found.links else ("switches", len(found.switches))
    return f"{'pair' if count == 2 else 'set'} of {what}"


def plural(kind: str) -> str:
    """Return the plural of a :func:`kind`."""
    first, space, rest = kind.partition(" of ")
    return f"{first}{'es' if first.endswith('switch') else 's'}{space}{rest}"


def link_names(topology: Topology) -> list[str]:
    """Return the names of the links between switches, in the topology's order."""
    named = zip(topology.link_names(), topology.links, strict=True)
    return [name for name, link in named if {link.a, link.b} <= topology.switches.keys()]


def read(topology: Topology, fail: str) -> Failures:
    """Return the failures that ``--fail`` names. Raises :class:`ScenarioError` if there are none in the topology."""
    if fail == ALL:
        return Failures(tuple(_links(topology)), several=True)
    if fail == NODES and NODES not in topology.switches:
        return Failures(tuple(topology.switches), several=True)
    if fail == SRLG and SRLG not in topology.switches:
        if not topology.shared_risks:
            raise ScenarioError(f"{topology.name} has no shared risk groups; its file has them under srlg, by name")
        for name in topology.shared_risks:
            _check(topology, name)
        return Failures(tuple(topology.shared_risks), several=True)
    word, colon, given = fail.partition(":")
    if word in _DRAWN and (colon or (word == PAIRS and PAIRS not in topology.switches)):
        return _DRAWN[word](topology, fail, given)
    return _one(topology, fail)


def _links(topology: Topology) -> list[str]:
    if not (names := link_names(topology)):
        raise ScenarioError(f"{topology.name}: there are no links between switches that could fail")
    return names


def _options(fail: str, given: str, form: str, **defaults: str) -> dict[str, str]:
    """Return the number before the first comma as ``count``, and the options behind it. ``form``: what the user should write."""
    count, *rest = given.split(",")
    options = dict(part.partition("=")[::2] for part in rest)
    numbers = [count, *(value for name, value in options.items() if name != "of")]
    whole = all(re.fullmatch("[0-9]{1,9}", value) for value in numbers)
    if not whole or options.keys() - defaults.keys() or len(options) < len(rest):
        raise ScenarioError(f"--fail {fail}: write {form} with whole numbers")
    return {**defaults, **options, "count": count}


def _sample(topology: Topology, fail: str, given: str) -> Failures:
    options = _options(fail, given, f"{SAMPLE}:N or {SAMPLE}:N,seed=S", seed="1")
    names, count = link_names(topology), int(options["count"])
    if not 1 <= count <= len(names):
        raise ScenarioError(
            f"--fail {fail}: {topology.name} has {len(names)} links between switches; draw 1 to {len(names)}"
        )
    drawn = random.Random(int(options["seed"])).sample(range(len(names)), count)
    note = f"The failures are {count} of {len(names)} links, drawn by {fail}."
    return Failures(tuple(names[i] for i in sorted(drawn)), several=True, note=note)


def _pairs(topology: Topology, fail: str, given: str) -> Failures:
    names = _links(topology)
    if (count := math.comb(len(names), 2)) == 0:
        raise ScenarioError(f"--fail {fail}: {topology.name} has one link between switches, and no two that could fail")
    if not given and count <= MOST_PAIRS:
        return Failures(tuple(map(JOINED.join, itertools.combinations(names, 2))), several=True)
    form = f"{PAIRS}:N or {PAIRS}:N,seed=S"
    options = _options(fail, given or str(MOST_PAIRS), form, seed="1")
    return _drawn(fail, names, 2, int(options["count"]), int(options["seed"]), "pairs of links", form)


def _random(topology: Topology, fail: str, given: str) -> Failures:
    form = f"{RANDOM}:K or {RANDOM}:K,draws=N,seed=S,of=links (or switches, or both)"
    options = _options(fail, given, form, draws=str(DRAWS), seed="1", of="links")
    of = {
        "links": lambda: _links(topology),
        "switches": lambda: list(topology.switches),
        "both": lambda: [*link_names(topology), *topology.switches],
    }
    if options["of"] not in of:
        raise ScenarioError(f"--fail {fail}: write {form}")
    names, size, count = of[options["of"]](), int(options["count"]), int(options["draws"])
    if not 1 <= size <= len(names):
        raise ScenarioError(
            f"--fail {fail}: {topology.name} has {len(names)} of what should fail; draw 1 to {len(names)}"
        )
    what = options["of"] if options["of"] != "both" else "links and switches"
    # All of them, where there are not so many: a default is no wish.
    count = min(count, math.comb(len(names), size)) if "draws=" not in fail else count
    return _drawn(fail, names, size, count, int(options["seed"]), f"sets of {size} {what}", form)


def _drawn(fail: str, names: Sequence[str], size: int, count: int, seed: int, what: str, form: str) -> Failures:
    """Draw ``count`` different sets of ``size`` names, each as likely as another, in the order of the names."""
    every = math.comb(len(names), size)
    if not 1 <= count <= min(every, MOST):
        raise ScenarioError(
            f"--fail {fail}: there are {every:,} {what}; draw 1 to {min(every, MOST):,} of them ({form})"
        )
    drawn: set[tuple[int, ...]] = set()
    if count == every:
        drawn = set(itertools.combinations(range(len(names)), size))
    numbers = random.Random(seed)
    while len(drawn) < count:
        drawn.add(tuple(sorted(numbers.sample(range(len(names)), size))))
    chosen = tuple(JOINED.join(names[i] for i in each) for each in sorted(drawn))
    note = f"The failures are {count:,} of {every:,} {what}, drawn with seed {seed}." if count < every else ""
    return Failures(chosen, several=True, note=note)


_DRAWN: dict[str, Callable[[Topology, str, str], Failures]] = {SAMPLE: _sample, PAIRS: _pairs, RANDOM: _random}


def _one(topology: Topology, fail: str) -> Failures:
    """Return the single failure of a link, a switch, a shared risk group, or of several joined by ``+``."""
    if fail not in topology.shared_risks:
        for name in fail.split(JOINED):
            if name in topology.hosts:
                raise ScenarioError(f"{name!r} is a host; nothing protects against that: give a link or a switch")
            if name not in topology.switches and "-" not in name:
                known = [*topology.switches, *topology.shared_risks]
                more = f" and {len(known) - 20} more" if len(known) > 20 else ""
                raise ScenarioError(
                    f"there is no switch {name!r} (known: {', '.join(known[:20])}{more}; a link is A-B, "
                    f"all every link, nodes every switch, pairs every two links, {SAMPLE}:N some links)"
                )
        parts = [*failing(topology, fail).links, *failing(topology, fail).switches]
        if len(set(parts)) < len(parts):
            raise ScenarioError(f"--fail {fail}: something is named twice")
    found = _check(topology, fail)
    ends = [frozenset((topology.links[i].a, topology.links[i].b)) for i in found.links]
    return Failures((fail,), several=False, through=(*ends, *(frozenset((name,)) for name in found.switches)))


def _check(topology: Topology, failure: str) -> Failing:
    """Return what fails. Raises :class:`ScenarioError` if a link of a host is among it."""
    found = failing(topology, failure)
    names = topology.link_names()
    for i in found.links:
        for end in (topology.links[i].a, topology.links[i].b):
            if end in topology.hosts:
                where = f"{failure}: " if failure in topology.shared_risks else ""
                raise ScenarioError(
                    f"{where}link {names[i]} is the only one of host {end!r}; nothing protects against that: give a link between"
                    " switches"
                )
    return found
