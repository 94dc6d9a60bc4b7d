"""Disjoint paths: sets of paths that share no node, or no link, with the least total cost, and the cut that prevents one more.

Successive shortest paths (Suurballe, Bhandari): each further path is the cheapest one in the residual network of the earlier paths.
It may take links back from them, so that the set is the cheapest of all sets. This module knows only the topology's map: no
tunnels, addresses or tables of switches.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from holdfast.errors import NetworkError
from holdfast.topology import Topology

Disjoint: TypeAlias = Literal["node", "link"]
"""What two paths may not have in common: nodes other than the ends, and links (``node``), or only links (``link``)."""


@dataclass(frozen=True)
class Path:
    """A way through the switches: ``nodes`` from end to end, the indices of the ``links`` between them, their total cost."""

    nodes: tuple[str, ...]
    links: tuple[int, ...]
    cost: int

    def __str__(self) -> str:
        return "-".join(self.nodes)

    @property
    def interior(self) -> frozenset[str]:
        """The nodes between the ends."""
        return frozenset(self.nodes[1:-1])

    def shares(self, other: Path, disjoint: Disjoint) -> bool:
        """Return True if the two paths share a link or, with ``disjoint`` "node", an inner node."""
        links = not set(self.links).isdisjoint(other.links)
        return links or (disjoint == "node" and not self.interior.isdisjoint(other.interior))


class NoDisjointPathsError(NetworkError):
    """There are fewer disjoint paths than wanted.

    ``found``: their number. ``cut_nodes``, ``cut_links`` (indices): as many nodes and links, of which every path uses one.
    """

    def __init__(self, message: str, found: int, cut_nodes: tuple[str, ...], cut_links: tuple[int, ...]) -> None:
        super().__init__(message)
        self.found = found
        self.cut_nodes = cut_nodes
        self.cut_links = cut_links


def path_along(topology: Topology, nodes: Sequence[str]) -> Path:
    """Return the path through ``nodes``, over the cheapest of parallel links.

    Raises :class:`NetworkError` if two are not neighbours.
    """
    if len(nodes) < 2 or len(set(nodes)) != len(nodes):
        raise NetworkError(f"a path has two nodes or more, and none twice, unlike {'-'.join(nodes)}")
    links = []
    for a, b in pairwise(nodes):
        if not topology.graph.has_edge(a, b):
            raise NetworkError(f"{a} and {b} are not neighbours")
        links.append(topology.graph.edges[a, b]["link"])
    return Path(tuple(nodes), tuple(links), sum(topology.links[i].cost for i in links))


def path_over(topology: Topology, ingress: str, links: Sequence[int]) -> Path:
    """Return the path from ``ingress`` over links, by index.

    Raises :class:`NetworkError` if a link does not begin where the last ended.
    """
    nodes, indices = [ingress], list(links)
    for index in indices:
        link = topology.links[index]
        if nodes[-1] not in (link.a, link.b):
            raise NetworkError(f"link {link.name} does not begin at {nodes[-1]}")
        nodes.append(link.b if link.a == nodes[-1] else link.a)
    return Path(tuple(nodes), tuple(indices), sum(topology.links[i].cost for i in indices))


def ends_of(name: str) -> tuple[tuple[str, int], tuple[str, int]]:
    """Parse a name as :attr:`holdfast.topology.Link.ends` forms it into (switch, port) of each end. Raises ValueError."""
    match = re.fullmatch(r"([^:]+):([0-9]+)-([^:]+):([0-9]+)", name)
    if match is None:
        raise ValueError(f"{name!r} names no link with the ports of both ends, as in 's1:1-s2:2'")
    a, a_port, b, b_port = match.groups()
    return (a, int(a_port)), (b, int(b_port))


def disjoint_paths(
    topology: Topology,
    ingress: str,
    egress: str,
    count: int = 2,
    *,
    disjoint: Disjoint = "node",
    avoid_nodes: Collection[str] = (),
    avoid_links: Collection[int] = (),
) -> list[Path]:
    """Return ``count`` disjoint paths between two switches with the least total cost, the cheapest path first.

    The paths avoid ``avoid_nodes`` and ``avoid_links`` (indices). Of equally cheap sets of paths one with the fewest links is
    chosen, always the same. Raises :class:`NoDisjointPathsError`, which names the cut, if there are fewer paths.
    """
    for end in (ingress, egress):
        if end not in topology.switches:
            raise NetworkError(f"there is no switch {end!r}")
        if end in avoid_nodes:
            raise NoDisjointPathsError(f"{end}, an end of the connection, is down or to be avoided", 0, (end,), ())
    if ingress == egress:
        raise NetworkError(f"{ingress} is both ends of the connection; there is no path to protect")
    if count < 1:
        raise NetworkError(f"{count} paths were asked for; there must be one at least")
    flow = _Flow(topology, ingress, egress, count, disjoint, frozenset(avoid_nodes), frozenset(avoid_links))
    found = 0
    while found < count and flow.augment():
        found += 1
    if found < count:
        nodes, links = flow.cut()
        avoided = bool(avoid_nodes or avoid_links)
        message = _why(topology, (ingress, egress), count, disjoint, avoided, nodes, links)
        raise NoDisjointPathsError(message, found, nodes, links)
    order = {name: i for i, name in enumerate(topology.switches)}
    paths = [flow.take_path() for _ in range(count)]
    return sorted(paths, key=lambda path: (path.cost, len(path.links), [order[n] for n in path.nodes], path.links))


def _why(
    topology: Topology,
    ends: tuple[str, str],
    count: int,
    disjoint: Disjoint,
    avoided: bool,
    nodes: tuple[str, ...],
    links: tuple[int, ...],
) -> str:
    left = " in what is left of the network" if avoided else ""
    where = f"from {ends[0]} to {ends[1]}{left}"
    names = topology.link_names()
    cut = [f"node {node}" for node in nodes] + [f"link {names[link]}" for link in links]
    if not cut:
        return f"there is no path {where}"
    numbers = {2: "two", 3: "three", 4: "four"}
    wanted = "no path" if count == 1 else f"no {numbers.get(count, count)} {disjoint}-disjoint paths"
    through = cut[0] if len(cut) == 1 else "one of " + ", ".join(cut)
    return f"there are {wanted} {where}: every path uses {through}"


@dataclass(slots=True)
class _Arc:
    """An arc of the residual network. Its reverse is the one with the number that differs in the last bit."""

    head: int
    weight: int
    capacity: int
    link: int | None
    """None: the inside of a node."""


class _Flow:
    """A flow of units from an ingress to an egress. Each node is two vertices, ``2 i`` (in) and ``2 i + 1`` (out)."""

    def __init__(
        self,
        topology: Topology,
        ingress: str,
        egress: str,
        count: int,
        disjoint: Disjoint,
        avoid_nodes: frozenset[str],
        avoid_links: frozenset[int],
    ) -> None:
        self.topology = topology
        self.names = list(topology.switches)
        number = {name: i for i, name in enumerate(self.names)}
        self.source, self.target = 2 * number[ingress] + 1, 2 * number[egress]
        self.arcs: list[_Arc] = []
        self.leaving: list[list[int]] = [[] for _ in range(2 * len(self.names))]
        self.potential = [0] * len(self.leaving)
        for name, i in number.items():
            if name not in avoid_nodes:
                shared = disjoint == "link" or name in (ingress, egress)
                self._add(2 * i, 2 * i + 1, 0, count if shared else 1, None)
        # A unit of cost weighs more than all links together, so that their number decides between equal costs only.
        scale = len(topology.links) + 1
        for index, link in enumerate(topology.links):
            if index in avoid_links or link.a not in number or link.b not in number:
                continue
            for a, b in ((number[link.a], number[link.b]), (number[link.b], number[link.a])):
                self._add(2 * a + 1, 2 * b, link.cost * scale + 1, 1, index)

    def _add(self, tail: int, head: int, weight: int, capacity: int, link: int | None) -> None:
        self.leaving[tail].append(len(self.arcs))
        self.arcs.append(_Arc(head, weight, capacity, link))
        self.leaving[head].append(len(self.arcs))
        self.arcs.append(_Arc(tail, -weight, 0, link))

    def augment(self) -> bool:
        """Send one more unit of flow along the cheapest path of the residual network. Returns False if there is none."""
        distance: list[int | None] = [None] * len(self.leaving)
        by: list[int] = [-1] * len(self.leaving)
        distance[self.source] = 0
        heap = [(0, self.source)]
        while heap:
            reached, vertex = heapq.heappop(heap)
            if reached > (distance[vertex] or 0):
                continue
            for index in self.leaving[vertex]:
                arc = self.arcs[index]
                if not arc.capacity:
                    continue
                length = reached + arc.weight + self.potential[vertex] - self.potential[arc.head]
                known = distance[arc.head]
                if known is None or length < known:
                    distance[arc.head], by[arc.head] = length, index
                    heapq.heappush(heap, (length, arc.head))
        there = distance[self.target]
        if there is None:
            return False
        for vertex, reached_at in enumerate(distance):
            # Distances beyond the target, or out of reach, are bounded by the target's: reduced costs stay at or above zero.
            self.potential[vertex] += there if reached_at is None else min(reached_at, there)
        vertex = self.target
        while vertex != self.source:
            self.arcs[by[vertex]].capacity -= 1
            self.arcs[by[vertex] ^ 1].capacity += 1
            vertex = self.arcs[by[vertex] ^ 1].head
        return True

    def take_path(self) -> Path:
        """Remove the path of one unit from the flow, and return it. The flow has no cycles, so the path has none."""
        vertex, nodes, links = self.source, [self.names[self.source // 2]], []
        while vertex != self.target:
            index = next(i for i in self.leaving[vertex] if i % 2 == 0 and self.arcs[i ^ 1].capacity)
            self.arcs[index ^ 1].capacity -= 1
            link = self.arcs[index].link
            vertex = self.arcs[index].head
            if link is not None:
                links.append(link)
                nodes.append(self.names[vertex // 2])
        return Path(tuple(nodes), tuple(links), sum(self.topology.links[i].cost for i in links))

    def cut(self) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Return a smallest cut between ingress and egress, as nodes and link indices, after :meth:`augment` has failed."""
        reached = {self.source}
        waiting = [self.source]
        while waiting:
            for index in self.leaving[waiting.pop()]:
                arc = self.arcs[index]
                if arc.capacity and arc.head not in reached:
                    reached.add(arc.head)
                    waiting.append(arc.head)
        nodes, links = [], []
        for vertex in sorted(reached):
            for index in self.leaving[vertex]:
                arc = self.arcs[index]
                if index % 2 == 0 and arc.head not in reached:
                    if arc.link is None:
                        nodes.append(self.names[vertex // 2])
                    else:
                        links.append(arc.link)
        return tuple(nodes), tuple(links)
