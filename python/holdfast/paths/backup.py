"""Backup paths and detours of LSPs: the cheapest path that avoids some nodes or links (Dijkstra). This module installs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import networkx as nx

from holdfast.errors import NetworkError
from holdfast.topology import Topology


def cheapest_path(
    topology: Topology,
    ingress: str,
    egress: str,
    *,
    without_nodes: Iterable[str] = (),
    without_links: Iterable[tuple[str, str]] = (),
) -> list[str] | None:
    """Return the cheapest path without ``without_nodes`` and the links between pairs in ``without_links``; None if none is left.

    Raise :class:`NetworkError` if one of the ends is no switch of the topology.
    """
    for end in (ingress, egress):
        if end not in topology.switches:
            raise NetworkError(f"there is no switch {end!r}")
    graph = topology.graph.copy()
    graph.remove_edges_from(without_links)
    graph.remove_nodes_from(without_nodes)
    try:
        return list(nx.dijkstra_path(graph, ingress, egress, weight="cost"))
    except nx.NetworkXNoPath:
        return None


def disjoint_path(topology: Topology, path: Sequence[str]) -> list[str] | None:
    """Return the cheapest other path between the same ends that shares no inner node with ``path``.

    If there is none, return the cheapest path that shares no link, or None.
    """
    links = list(pairwise(path))
    without_nodes = cheapest_path(topology, path[0], path[-1], without_nodes=path[1:-1], without_links=links)
    return without_nodes or cheapest_path(topology, path[0], path[-1], without_links=links)


def detour(topology: Topology, a: str, b: str) -> list[str] | None:
    """Return the cheapest path from ``a`` to ``b`` that does not use the links between these two; None if there is none."""
    return cheapest_path(topology, a, b, without_links=[(a, b)])
