"""Regular topologies: line, ring, star, full mesh, grid and fat-tree. Switches are ``s1``, ``s2`` ..., hosts ``h1``, ``h2`` ...

All take the rate and delay of the links between switches; a host's link has the same rate and the delay of
:data:`holdfast.topologies.hosts.HOST_DELAY_MS`. ``hosts`` is the number of hosts at each switch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from holdfast.errors import TopologyError
from holdfast.topologies.hosts import add_host_at
from holdfast.topology import Position, Topology

RATE_BPS = 1_000_000_000
DELAY_MS = 1.0


def _at_least(what: str, value: int, least: int) -> None:
    if value < least:
        raise TopologyError(f"{what} is {value}; it must be at least {least}")


def _build(
    name: str,
    positions: Iterable[Position],
    links: Iterable[tuple[int, int]],
    hosts: int,
    rate_bps: int,
    delay_ms: float,
) -> Topology:
    """Build a topology with a switch at each position, ``links`` between switch numbers (from 0), then the hosts."""
    _at_least("hosts", hosts, 0)
    topology = Topology(name)
    for i, position in enumerate(positions):
        topology.add_switch(f"s{i + 1}", position=position)
    for a, b in links:
        topology.add_link(f"s{a + 1}", f"s{b + 1}", rate_bps=rate_bps, delay_ms=delay_ms)
    for switch in list(topology.switches):
        for _ in range(hosts):
            add_host_at(topology, switch, rate_bps=rate_bps)
    return topology


def _circle(size: int) -> Iterable[Position]:
    radius = size / (2 * math.pi)
    for i in range(size):
        angle = math.pi / 2 - 2 * math.pi * i / size
        yield round(radius * math.cos(angle), 6), round(radius * math.sin(angle), 6)


def line(size: int, *, hosts: int = 1, rate_bps: int = RATE_BPS, delay_ms: float = DELAY_MS) -> Topology:
    """Build a topology of ``size`` switches in a row."""
    _at_least("size", size, 1)
    links = ((i, i + 1) for i in range(size - 1))
    return _build(f"line_{size}", ((float(i), 0.0) for i in range(size)), links, hosts, rate_bps, delay_ms)


def ring(size: int, *, hosts: int = 1, rate_bps: int = RATE_BPS, delay_ms: float = DELAY_MS) -> Topology:
    """Build a topology of ``size`` switches in a circle; ``size`` is at least 3."""
    _at_least("size", size, 3)
    links = ((i, (i + 1) % size) for i in range(size))
    return _build(f"ring_{size}", _circle(size), links, hosts, rate_bps, delay_ms)


def star(leaves: int, *, hosts: int = 1, rate_bps: int = RATE_BPS, delay_ms: float = DELAY_MS) -> Topology:
    """Build a topology of a central switch ``s1`` and ``leaves`` switches linked to it; every switch has hosts, ``s1`` too."""
    _at_least("leaves", leaves, 1)
    links = ((0, i + 1) for i in range(leaves))
    return _build(f"star_{leaves}", [(0.0, 0.0), *_circle(leaves)], links, hosts, rate_bps, delay_ms)


def mesh(size: int, *, hosts: int = 1, rate_bps: int = RATE_BPS, delay_ms: float = DELAY_MS) -> Topology:
    """Build a topology of ``size`` switches in which every two are linked."""
    _at_least("size", size, 1)
    links = ((i, j) for i in range(size) for j in range(i + 1, size))
    return _build(f"mesh_{size}", _circle(size), links, hosts, rate_bps, delay_ms)


def grid(rows: int, columns: int, *, hosts: int = 1, rate_bps: int = RATE_BPS, delay_ms: float = DELAY_MS) -> Topology:
    """Build a topology of ``rows`` by ``columns`` switches, numbered row by row, linked along rows and columns."""
    _at_least("rows", rows, 1)
    _at_least("columns", columns, 1)
    links = [(i, i + 1) for i in range(rows * columns) if (i + 1) % columns]
    links += [(i, i + columns) for i in range((rows - 1) * columns)]
    positions = ((float(i % columns), float(-(i // columns))) for i in range(rows * columns))
    return _build(f"grid_{rows}x{columns}", positions, links, hosts, rate_bps, delay_ms)


def fat_tree(k: int, *, rate_bps: int = RATE_BPS, delay_ms: float = 0.001, hosts: int | None = None) -> Topology:
    """Build the fat-tree of k-port switches of Al-Fares, Loukissas and Vahdat (SIGCOMM 2008, section 3).

    ``k`` pods of ``k/2`` edge switches (``e<pod>.<n>``) and ``k/2`` aggregation switches (``a<pod>.<n>``), ``(k/2)**2`` core
    switches (``c<n>``), and ``k/2`` hosts at each edge switch: ``k**3/4`` with full bisection bandwidth. ``hosts``: another
    number per edge switch. An edge switch has its hosts at its first ports; aggregation switch ``n`` of every pod is linked to the
    core switches from ``(n-1)*k/2 + 1`` to ``n*k/2``, so a core switch has pod ``p`` at port ``p``.
    """
    _at_least("k", k, 2)
    if k % 2:
        raise TopologyError(f"k is {k}; a fat-tree needs an even number of ports")
    half = k // 2
    per_edge = half if hosts is None else hosts
    _at_least("hosts", per_edge, 0)
    topology = Topology(f"fat_tree_{k}")
    width = k * half
    for n in range(half * half):
        topology.add_switch(f"c{n + 1}", position=((n + 0.5) * width / (half * half), 3.0))
    for pod in range(k):
        for kind, height in (("a", 2.0), ("e", 1.0)):
            for n in range(half):
                topology.add_switch(f"{kind}{pod + 1}.{n + 1}", position=(pod * half + n + 0.5, height))
    for pod in range(k):
        edges = [f"e{pod + 1}.{n + 1}" for n in range(half)]
        for edge in edges:
            for _ in range(per_edge):
                add_host_at(topology, edge, rate_bps=rate_bps, delay_ms=delay_ms)
        for n in range(half):
            for edge in edges:
                topology.add_link(edge, f"a{pod + 1}.{n + 1}", rate_bps=rate_bps, delay_ms=delay_ms)
    for pod in range(k):
        for n in range(half):
            for core in range(n * half, (n + 1) * half):
                topology.add_link(f"a{pod + 1}.{n + 1}", f"c{core + 1}", rate_bps=rate_bps, delay_ms=delay_ms)
    return topology
