"""Which failures lose whom, in spite of fast reroute: pairs of a BFIR and a BFER, per failed link or switch of a plan.

Each bit is followed on its own along next hops and repairs, as the plan has them in terms of the graph. Packets, masks and tables
are not known here. A switch that fails, and its own hosts, are in no pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.apps.bier.planning import Lane, Plan, Scheme
from holdfast.apps.bier.protection import Protect, Repair
from holdfast.paths import Hop
from holdfast.topology import Topology

Pair = tuple[str, str]
"""The names of a BFIR and a BFER."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A link between switches, or a switch with all its links. ``name`` is the link's or the switch's."""

    kind: Protect
    name: str
    links: frozenset[int]
    node: str | None = None


def failures(topology: Topology, kind: Protect) -> Iterator[Failure]:
    """Yield the failure of every link between switches (``kind`` is "link"), or of every switch ("node")."""
    names = topology.link_names()
    between = [
        i for i, link in enumerate(topology.links) if link.a in topology.switches and link.b in topology.switches
    ]
    if kind == "link":
        for index in between:
            yield Failure("link", names[index], frozenset((index,)))
        return
    for switch in topology.switches:
        ends = (i for i in between if switch in (topology.links[i].a, topology.links[i].b))
        yield Failure("node", switch, frozenset(ends), switch)


@dataclass(frozen=True, slots=True)
class Row:
    """The effect of one failure, as numbers of pairs (BFIR, BFER).

    ``pairs``: all. ``on_the_way``: those whose path crosses the failed element. ``lost``: those of these that lose packets until
    BIER converges. ``parted``: those between which no path is left. ``examples``: the first lost pairs between which a path is
    left.
    """

    failure: str
    kind: Protect
    pairs: int
    on_the_way: int
    lost: int
    parted: int
    examples: tuple[Pair, ...]


class Coverage:
    """Which pairs (BFIR, BFER) of a plan lose packets, and which are protected, when the next link or switch fails."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._names = plan.paths.nodes
        self._numbered = set(plan.destinations)
        self._repair: dict[tuple[Lane, int, Hop], dict[int, Repair]] = {}
        self._behind: dict[tuple[Lane, int], dict[int, list[int]]] = {}

    def lost(self, failure: Failure, sub_domain: int = 0) -> frozenset[Pair]:
        """Return the pairs (BFIR, BFER) of which at least one flow loses packets in ``failure``."""
        return frozenset(pair for pair, delivered in self._met(failure, sub_domain) if not delivered)

    def protected(self, failure: Failure, sub_domain: int = 0) -> frozenset[Pair]:
        """Return the pairs (BFIR, BFER) whose path crosses the failed element and which lose no packet."""
        met = list(self._met(failure, sub_domain))
        return frozenset(pair for pair, _ in met) - {pair for pair, delivered in met if not delivered}

    def rows(self, kind: Protect, sub_domain: int = 0) -> Iterator[Row]:
        """Yield a row for each failure of ``kind``: how many pairs' paths cross it, how many pairs lose packets or are parted."""
        for failure in failures(self._plan.topology, kind):
            met = list(self._met(failure, sub_domain))
            lost = {pair for pair, delivered in met if not delivered}
            part = self._parts(failure)
            apart = {pair for pair in lost if part[pair[0]] != part[pair[1]]}
            alive = len(self._numbered) - (failure.node in self._plan.scheme.numbering.bfr_ids)
            yield Row(
                failure.name,
                kind,
                alive * (alive - 1),
                len({pair for pair, _ in met}),
                len(lost),
                len(apart),
                tuple(sorted(lost - apart)[:3]),
            )

    def _parts(self, failure: Failure) -> dict[str, int]:
        """Return by switch the number of its connected part of the network after ``failure``."""
        hops, part = self._plan.paths.hops, [-1] * len(self._names)
        for start in range(len(self._names)):
            if part[start] < 0:
                part[start] = start
                waiting = [start]
                while waiting:
                    for hop in hops[waiting.pop()]:
                        if part[hop.neighbour] < 0 and hop.link not in failure.links:
                            part[hop.neighbour] = start
                            waiting.append(hop.neighbour)
        return dict(zip(self._names, part, strict=True))

    def _met(self, failure: Failure, sub_domain: int) -> Iterator[tuple[Pair, bool]]:
        """Yield (pair, True if its packets arrive) for pairs (BFIR, BFER) whose path crosses the failed element.

        A pair may come several times, once for each lane (ECMP bucket) of the sub-domain.
        """
        down = None if failure.node is None else self._plan.paths.number[failure.node]
        for lane in self._plan.lanes:
            if lane[0] != sub_domain:
                continue
            for destination in self._plan.destinations:
                if destination == down:
                    continue
                for node in self._repairers(lane, destination, failure, down):
                    delivered = self._arrives(lane, node, destination, failure)
                    for source in self._sources(lane, node, destination, failure):
                        if source in self._numbered and source != down:
                            yield (self._names[source], self._names[destination]), delivered

    def _repairers(self, lane: Lane, destination: int, failure: Failure, down: int | None) -> Iterator[int]:
        ends = (self._plan.topology.links[link] for link in sorted(failure.links))
        for node in sorted({self._plan.paths.number[end] for link in ends for end in (link.a, link.b)}):
            hop = self._plan.next_hop(lane, node, destination)
            if node != down and hop is not None and hop.link in failure.links:
                yield node

    def _sources(self, lane: Lane, node: int, destination: int, failure: Failure) -> Iterable[int]:
        """Return ``node``, and all nodes whose path to ``destination`` leads through ``node`` over links that work."""
        if (lane, destination) not in self._behind:
            behind: dict[int, list[int]] = {}
            for each in range(len(self._names)):
                hop = self._plan.next_hop(lane, each, destination)
                if hop is not None:
                    behind.setdefault(hop.neighbour, []).append(each)
            self._behind[lane, destination] = behind
        found = [node]
        for each in found:
            for before in self._behind[lane, destination].get(each, ()):
                hop = self._plan.next_hop(lane, before, destination)
                if hop is not None and hop.link not in failure.links:
                    found.append(before)
        return found

    def _arrives(self, lane: Lane, node: int, destination: int, failure: Failure) -> bool:
        """Return True if a packet that ``node`` sends to ``destination`` arrives in spite of ``failure``.

        A packet that has left a tunnel is not repaired a second time at the tunnel's end.
        """
        from_tunnel = False
        for _ in range(4 * len(self._names)):
            if node == destination:
                return True
            hop = self._plan.next_hop(lane, node, destination)
            if hop is None:
                return False
            repair = None
            if hop.link in failure.links:
                repair = None if from_tunnel else self._repair_of(lane, node, hop).get(destination)
                if repair is None:
                    return False
                route = self._route(repair)
                if any(step.link in failure.links for step in route):
                    return False
                hop = route[-1]
            node, from_tunnel = hop.neighbour, repair is not None and repair.end is not None
        return False

    def _repair_of(self, lane: Lane, node: int, hop: Hop) -> Mapping[int, Repair]:
        key = lane, node, hop
        if key not in self._repair:
            repairs = self._plan.repairs(lane, node, hop)
            self._repair[key] = {destination: repair for repair, them in repairs.items() for destination in them}
        return self._repair[key]

    def _route(self, repair: Repair) -> list[Hop]:
        if repair.end is None:
            return [repair.hop]
        return [
            repair.hop,
            *self._plan.underlay.tunnel_route(repair.hop.neighbour, repair.end, repair.not_via),
        ]


def coverage_report(topology: Topology, scheme: Scheme) -> list[Row]:
    """Return how many pairs lose packets in the first sub-domain: a row for every failure of one link and of one switch."""
    coverage = Coverage(Plan(topology, scheme))
    first = min(scheme.sub_domains)
    return [row for kind in ("link", "node") for row in coverage.rows(kind, first)]


def table(rows: Iterable[Row]) -> Iterator[str]:
    """Yield lines of text: a heading, each failure that loses packets, then one sum for links and one for switches."""
    rows = list(rows)
    yield f"{'failure':<24} {'on the way':>10} {'lost':>8} {'of these parted':>16}  for example"
    for row in rows:
        if row.lost:
            examples = ", ".join(f"{a} to {b}" for a, b in row.examples)
            yield f"{row.kind + ' ' + row.failure:<24} {row.on_the_way:>10} {row.lost:>8} {row.parted:>16}  {examples}".rstrip()
    for kind in ("link", "node"):
        those = [row for row in rows if row.kind == kind]
        met, lost, parted = (sum(getattr(row, what) for row in those) for what in ("on_the_way", "lost", "parted"))
        harmless = sum(not row.lost for row in those)
        kept = 100 * (met - lost) / (met - parted) if met > parted else 100.0
        yield (
            f"{kind} failures: {harmless} of {len(those)} lose nobody; of {met - parted} pairs that can be saved, "
            f"{met - lost} are ({kept:.2f} %)"
        )


def as_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the rows as dictionaries of values that JSON can represent."""
    return [
        {
            "failure": row.failure,
            "kind": row.kind,
            "pairs": row.pairs,
            "on_the_way": row.on_the_way,
            "lost": row.lost,
            "parted": row.parted,
            "examples": [list(pair) for pair in row.examples],
        }
        for row in rows
    ]
