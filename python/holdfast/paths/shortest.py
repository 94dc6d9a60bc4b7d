"""Distances, next hops and paths between switches, over the usable links, by the rule of the routers.

Costs are whole, at least 1, and equal in both directions of a link, so comparisons are exact. Links are undirected edges;
parallel links are several edges. This module knows no ports and no packets.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from holdfast.errors import NetworkError
from holdfast.topology import Topology

UNREACHABLE = 1 << 62
"""The distance of a node to which no path leads."""


class Hop(NamedTuple):
    """A link as one of its ends sees it: the node at the other end, by number, the link's index, and its cost."""

    neighbour: int
    link: int
    cost: int


class ShortestPaths:
    """The shortest paths of the graph with these nodes and ``edges``; an edge is two nodes, the index of a link, and its cost.

    Nodes are numbered in their order. Distances from a node are computed when somebody asks for them.
    """

    def __init__(self, nodes: Sequence[str], edges: Collection[tuple[str, str, int, int]]) -> None:
        self.nodes = list(nodes)
        self.number = {name: i for i, name in enumerate(self.nodes)}
        self.hops: list[list[Hop]] = [[] for _ in self.nodes]
        """By node, in the order of the neighbours; of parallel links the cheaper first, then that which was declared first."""
        for a, b, link, cost in edges:
            i, j = self.number[a], self.number[b]
            self.hops[i].append(Hop(j, link, cost))
            self.hops[j].append(Hop(i, link, cost))
        for hops in self.hops:
            hops.sort(key=lambda hop: (hop.neighbour, hop.cost, hop.link))
        self._distances: dict[int, list[int]] = {}

    @classmethod
    def of(cls, topology: Topology, unusable: Collection[int] = ()) -> ShortestPaths:
        """Return the shortest paths of a topology's switches, without the links whose indices are in ``unusable``."""
        switches = topology.switches
        links = enumerate(topology.links)
        return cls(
            list(switches),
            [(x.a, x.b, i, x.cost) for i, x in links if i not in unusable and x.a in switches and x.b in switches],
        )

    def distances(self, node: int) -> list[int]:
        """Return the cost from a node to every node, by number (Dijkstra). As costs have no direction, it is also the cost back."""
        known = self._distances.get(node)
        if known is not None:
            return known
        distance = [UNREACHABLE] * len(self.nodes)
        distance[node] = 0
        heap = [(0, node)]
        while heap:
            here, at = heapq.heappop(heap)
            if here > distance[at]:
                continue
            for hop in self.hops[at]:
                there = here + hop.cost
                if there < distance[hop.neighbour]:
                    distance[hop.neighbour] = there
                    heapq.heappush(heap, (there, hop.neighbour))
        self._distances[node] = distance
        return distance

    @property
    def known(self) -> int:
        """The number of nodes from which distances have been computed."""
        return len(self._distances)

    def next_hop(self, node: int, destination: int) -> Hop | None:
        """Return the first hop of a shortest path, or None if no path exists or ``node`` is the destination.

        Of several such hops the first of :attr:`hops` is returned.
        """
        return self._first_hop(node, self.distances(destination))

    def next_hops_to(self, destination: int) -> list[Hop | None]:
        """Return the next hop of each node towards a destination, indexed by node number; None as for :meth:`next_hop`."""
        distance = self.distances(destination)
        return [self._first_hop(node, distance) for node in range(len(self.nodes))]

    def _first_hop(self, node: int, distance: Sequence[int]) -> Hop | None:
        here = distance[node]
        if here in (0, UNREACHABLE):
            return None
        # Routes of a large network ask half a million times: a generator would take twice as long.
        for hop in self.hops[node]:
            if distance[hop.neighbour] + hop.cost == here:
                return hop
        raise AssertionError("a distance is that over some hop")

    def next_hops(self, node: int, destination: int) -> list[Hop]:
        """Return the first hops of all shortest paths, in the order of :attr:`hops`.

        Empty if there is no path or none is needed.
        """
        distance = self.distances(destination)
        here = distance[node]
        if here in (0, UNREACHABLE):
            return []
        return [hop for hop in self.hops[node] if distance[hop.neighbour] + hop.cost == here]

    def without(self, links: Collection[int]) -> tuple[ShortestPaths, dict[int, set[int]]]:
        """Return the paths without ``links``, and by destination the nodes whose next hops may have changed.

        Distances are computed again only where a lost link was part of a path, and only for destinations whose distances are known.
        """
        left = ShortestPaths(self.nodes, ())
        left.hops = list(self.hops)
        gone = self.ends_of(links)
        for node in {node for node, _ in gone}:
            left.hops[node] = [hop for hop in self.hops[node] if hop.link not in links]
        moved: dict[int, set[int]] = {}
        for destination, distance in self._distances.items():
            nodes, left._distances[destination] = left.lengthened(distance, gone)
            if nodes:
                moved[destination] = nodes
        return left, moved

    def farther_than(self, before: ShortestPaths) -> dict[int, list[int]]:
        """Return, by node, the nodes that are farther from it than in ``before``, from which :meth:`without` made this object.

        Only nodes whose distances are known, and that have changed distances, are keys.
        """
        found = {}
        for node, distance in self._distances.items():
            old = before._distances.get(node, distance)
            if old is not distance:
                others = [other for other, (one, two) in enumerate(zip(old, distance, strict=True)) if one != two]
                if others:
                    found[node] = others
        return found

    def is_on_the_way(self, node: int, hop: Hop, destination: int) -> bool:
        """Return True if ``hop`` of ``node`` is the first hop of a shortest path to the destination."""
        distance = self.distances(destination)
        return distance[node] != UNREACHABLE and distance[hop.neighbour] + hop.cost == distance[node]

    def ends_of(self, links: Collection[int]) -> list[tuple[int, Hop]]:
        """Return (node, hop) for each end of these links: the node at that end, and its hop over the link to the other end."""
        return [(node, hop) for node, hops in enumerate(self.hops) for hop in hops if hop.link in links]

    def lengthened(self, distance: list[int], gone: Collection[tuple[int, Hop]]) -> tuple[set[int], list[int]]:
        """Return the nodes with changed next hops, and the distances after some links were lost.

        ``distance``: the distances before. ``gone``: the ends of the lost links, from :meth:`ends_of`. If no distance has changed,
        ``distance`` itself is returned. It may be that of a graph without some node, whose distance is unreachable.
        """
        ends = {node for node, hop in gone if distance[hop.neighbour] + hop.cost == distance[node] != UNREACHABLE}
        if not ends:
            return ends, distance
        farther, found = self._farther(distance, ends)
        return ends | farther | {
            hop.neighbour
            for node in farther
            for hop in self.hops[node]
            if distance[node] + hop.cost == distance[hop.neighbour]
        }, found

    def _farther(self, distance: list[int], ends: Collection[int]) -> tuple[set[int], list[int]]:
        """Return the nodes that are farther than ``distance`` after ``ends`` have lost a next hop, and the new distances."""
        farther: set[int] = set()
        heap = [(distance[node], node) for node in ends]
        heapq.heapify(heap)
        while heap:
            here, node = heapq.heappop(heap)
            if node in farther or any(
                distance[hop.neighbour] + hop.cost == here and hop.neighbour not in farther for hop in self.hops[node]
            ):
                continue
            farther.add(node)
            for hop in self.hops[node]:
                if distance[hop.neighbour] == here + hop.cost:
                    heapq.heappush(heap, (distance[hop.neighbour], hop.neighbour))
        if not farther:
            return farther, distance
        found = list(distance)
        for node in farther:
            found[node] = UNREACHABLE
        heap = []
        for node in farther:
            reached = (found[hop.neighbour] + hop.cost for hop in self.hops[node] if hop.neighbour not in farther)
            heap.append((min(reached, default=UNREACHABLE), node))
        heapq.heapify(heap)
        while heap:
            here, node = heapq.heappop(heap)
            if here >= found[node]:
                continue
            found[node] = here
            for hop in self.hops[node]:
                if hop.neighbour in farther and here + hop.cost < found[hop.neighbour]:
                    heapq.heappush(heap, (here + hop.cost, hop.neighbour))
        return farther, found


@lru_cache(maxsize=4)
def _known(topology: Topology) -> ShortestPaths:
    """Return the shortest paths of a topology, computed once.

    Topologies are compared by identity, so a topology must not change after its first use with this function.
    """
    return ShortestPaths.of(topology)


def next_on_path(topology: Topology, node: str, egress: str) -> str:
    """Return the next switch from ``node`` on the routers' path if all links are up.

    Raises :class:`NetworkError` if there is none.
    """
    paths = _known(topology)
    hop = paths.next_hop(paths.number[node], paths.number[egress])
    if hop is None:
        raise NetworkError(f"there is no path from {node} to {egress}")
    return paths.nodes[hop.neighbour]


def path_by_cost(topology: Topology, ingress: str, egress: str) -> list[str]:
    """Return the switches on the routers' path from ingress to egress if all links are up."""
    path = [ingress]
    while path[-1] != egress:
        path.append(next_on_path(topology, path[-1], egress))
    return path


def path_delay_ms(topology: Topology, source: str, destination: str) -> float:
    """Return the propagation delay in milliseconds from host to host along the routers' path, the hosts' links included."""
    ends = [topology.attachment(name) for name in (source, destination)]
    path = path_by_cost(topology, ends[0].switch, ends[1].switch)
    edges = topology.graph.edges
    links = [edges[hop]["link"] for hop in pairwise(path)]
    links += [topology.find_link(f"{end.host.name}-{end.switch}") for end in ends]
    return float(sum(topology.links[link].delay_ms for link in links))
