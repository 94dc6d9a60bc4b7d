"""Paths as the routers choose them, so that all mechanisms start from the same primary paths. Nothing is installed here."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import networkx as nx

from holdfast.errors import ScenarioError
from holdfast.topology import Topology


@lru_cache(maxsize=4096)
def _distances(topology: Topology, destination: str) -> dict[str, float]:
    """By switch. Topologies are compared by identity, so one that changes must not be asked before."""
    return dict(nx.single_source_dijkstra_path_length(topology.graph, destination, weight="cost"))


def path_by_cost(topology: Topology, ingress: str, egress: str) -> list[str]:
    """The switches on the way, by :class:`holdfast.apps.router.RouterController`'s rule for equally short paths."""
    distances = _distances(topology, egress)
    if ingress not in distances:
        raise ScenarioError(f"there is no path from {ingress} to {egress}")
    graph = topology.graph
    order = {name: i for i, name in enumerate(topology.switches)}
    path = [ingress]
    while path[-1] != egress:
        here = path[-1]
        path.append(
            min(
                (n for n in graph.neighbors(here) if distances[n] + graph.edges[here, n]["cost"] == distances[here]),
                key=order.__getitem__,
            )
        )
    return path


def path_delay_ms(topology: Topology, source: str, destination: str) -> float:
    """Propagation from host to host on that path."""
    ends = [topology.attachment(name) for name in (source, destination)]
    path = path_by_cost(topology, ends[0].switch, ends[1].switch)
    edges = topology.graph.edges
    links = [edges[hop]["link"] for hop in pairwise(path)]
    links += [topology.find_link(f"{end.host.name}-{end.switch}") for end in ends]
    return float(sum(topology.links[link].delay_ms for link in links))


def disjoint_path(topology: Topology, path: list[str]) -> list[str] | None:
    """The cheapest other path between the same ends without the nodes of this one, or else without its links, if there is one."""
    graph = topology.graph.copy()
    graph.remove_edges_from(pairwise(path))
    without_nodes = graph.copy()
    without_nodes.remove_nodes_from(path[1:-1])
    for each in (without_nodes, graph):
        try:
            return list(nx.dijkstra_path(each, path[0], path[-1], weight="cost"))
        except nx.NetworkXNoPath:
            continue
    return None


def detour(topology: Topology, a: str, b: str) -> list[str] | None:
    """The cheapest way around a link, if there is one."""
    graph = topology.graph.copy()
    graph.remove_edge(a, b)
    try:
        return list(nx.dijkstra_path(graph, a, b, weight="cost"))
    except nx.NetworkXNoPath:
        return None
