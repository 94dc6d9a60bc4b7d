"""Connected random topologies from a seed. Switches ``s1`` ... lie in a square; a link has the length of the distance of its ends.

Where the model leaves parts that do not reach each other, they are joined by the shortest links between them (Waxman) or by links
between switches drawn from the same seed (Erdos-Renyi), so that every topology can be used, and the number of links that were
added is small where the model is dense enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations, pairwise
from random import Random

from holdfast.errors import TopologyError
from holdfast.topologies.hosts import add_host_at
from holdfast.topologies.regular import RATE_BPS
from holdfast.topology import Position, Topology, propagation_delay_ms

Edge = tuple[int, int]

MAX_SIZE = 10_000
"""The most switches of a random topology; generating it takes less than a minute."""


def waxman(
    size: int,
    *,
    seed: int = 1,
    alpha: float = 0.25,
    beta: float = 0.6,
    side_km: float = 1000.0,
    hosts: int = 1,
    rate_bps: int = RATE_BPS,
) -> Topology:
    """Generate a topology by Waxman's model (JSAC 6(9), 1988).

    Two switches at distance d are linked with probability ``beta * exp(-d / (alpha * L))``, where L is the largest distance between
    two switches. A greater ``beta`` gives more links; a greater ``alpha`` gives more long links among them.
    """
    _check(size, hosts, side_km, seed)
    for name, value in (("alpha", alpha), ("beta", beta)):
        if not 0 < value <= 1:
            raise TopologyError(f"{name} is {value:g}; it must be above 0 and at most 1")
    random = Random(seed)
    positions = _positions(random, size, side_km)
    largest = max((math.dist(p, q) for p, q in combinations(positions, 2)), default=0.0) or 1.0
    edges = [
        (i, j)
        for i in range(size)
        for j in range(i + 1, size)
        if random.random() < beta * math.exp(-math.dist(positions[i], positions[j]) / (alpha * largest))
    ]
    edges += _shortest_joins(positions, _parts(size, edges))
    return _build(f"waxman_{size}_{seed}", positions, edges, hosts, rate_bps)


def erdos_renyi(
    size: int,
    *,
    seed: int = 1,
    p: float = 0.2,
    side_km: float = 1000.0,
    hosts: int = 1,
    rate_bps: int = RATE_BPS,
) -> Topology:
    """Generate a topology in which every pair of switches is linked with probability ``p`` (Gilbert's form of the model)."""
    _check(size, hosts, side_km, seed)
    if not 0 <= p <= 1:
        raise TopologyError(f"p is {p:g}; it must be between 0 and 1")
    random = Random(seed)
    positions = _positions(random, size, side_km)
    edges = [(i, j) for i in range(size) for j in range(i + 1, size) if random.random() < p]
    parts = _parts(size, edges)
    for one, other in pairwise(parts):
        edges.append((_drawn(random, one), _drawn(random, other)))
    return _build(f"erdos_renyi_{size}_{seed}", positions, edges, hosts, rate_bps)


def _check(size: int, hosts: int, side_km: float, seed: int) -> None:
    if size < 1:
        raise TopologyError(f"size is {size}; it must be at least 1")
    if size > MAX_SIZE:
        raise TopologyError(
            f"size is {size}; it must be at most {MAX_SIZE}, because every pair of switches is examined"
        )
    if hosts < 0:
        raise TopologyError(f"hosts is {hosts}; it must be at least 0")
    if not 0 < side_km < math.inf:
        raise TopologyError(f"side_km is {side_km:g}; it must be above 0")
    if seed < 0:
        # Python's generator would take its absolute value: two seeds for one topology.
        raise TopologyError(f"seed is {seed}; it must be at least 0")


def _positions(random: Random, size: int, side_km: float) -> list[Position]:
    return [(round(random.random() * side_km, 3), round(random.random() * side_km, 3)) for _ in range(size)]


def _drawn(random: Random, part: list[int]) -> int:
    """Return a random node of ``part``. Uses only :meth:`random.Random.random`, which is the same in all versions of Python."""
    return part[int(random.random() * len(part))]


def _parts(size: int, edges: Iterable[Edge]) -> list[list[int]]:
    """Return the connected parts of a graph as lists of node numbers, each sorted, ordered by their first nodes."""
    leader = list(range(size))

    def find(i: int) -> int:
        while leader[i] != i:
            leader[i] = leader[leader[i]]
            i = leader[i]
        return i

    for i, j in edges:
        a, b = sorted((find(i), find(j)))
        leader[b] = a
    parts: dict[int, list[int]] = {}
    for i in range(size):
        parts.setdefault(find(i), []).append(i)
    return list(parts.values())


def _shortest_joins(positions: list[Position], parts: list[list[int]]) -> list[Edge]:
    """Return the shortest links that join all parts to the first, one part after the other (Prim's algorithm).

    Of equally long links, the link whose ends have the lowest indices is chosen.
    """
    part_of = {i: part for part in parts for i in part}
    nearest = {j: (math.inf, -1) for part in parts[1:] for j in part}
    new, joins = parts[0], []
    while nearest:
        for i in new:
            here = positions[i]
            for j, near in nearest.items():
                distance = math.dist(here, positions[j])
                if distance <= near[0] and (distance, i) < near:
                    nearest[j] = (distance, i)
        (_, i), j = min((near, j) for j, near in nearest.items())
        joins.append((i, j))
        new = part_of[j]
        for member in new:
            del nearest[member]
    return joins


def _build(name: str, positions: list[Position], edges: Iterable[Edge], hosts: int, rate_bps: int) -> Topology:
    topology = Topology(name)
    for i, position in enumerate(positions):
        topology.add_switch(f"s{i + 1}", position=position)
    for i, j in sorted(tuple(sorted(edge)) for edge in edges):
        delay_ms = propagation_delay_ms(math.dist(positions[i], positions[j]))
        topology.add_link(f"s{i + 1}", f"s{j + 1}", rate_bps=rate_bps, delay_ms=delay_ms)
    for switch in list(topology.switches):
        for _ in range(hosts):
            add_host_at(topology, switch, rate_bps=rate_bps)
    return topology
