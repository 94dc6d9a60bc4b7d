"""Independent trees: what the two ways from a node share is what the graph makes every pair of ways share."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import topologies
from holdfast.paths import Hop, IndependentTrees
from holdfast.paths.independent import Tree
from holdfast.topology import Topology

Graph = tuple[int, list[tuple[int, int, int]]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Generate a graph as (number of nodes, links of two ends and a cost).

    It may be a tree, several islands, or dense, and may have parallel links.
    """
    size = draw(st.integers(2, 12))
    ends = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1), st.integers(1, 5)).filter(
        lambda e: e[0] != e[1]
    )
    return size, draw(st.lists(ends, min_size=1, max_size=3 * size))


def network(graph: Graph) -> Topology:
    topology = Topology()
    for i in range(graph[0]):
        topology.add_switch(f"s{i}")
    for a, b, cost in graph[1]:
        topology.add_link(f"s{a}", f"s{b}", cost=cost)
    return topology


def way(tree: Tree, node: int, destination: int) -> list[Hop]:
    hops: list[Hop] = []
    while node != destination:
        (hop,) = tree.next_hops(node, destination)
        hops.append(hop)
        node = hop.neighbour
        assert len(hops) < len(tree.trees.nodes), "the way has a circle"
    return hops


def check(topology: Topology) -> None:
    trees = IndependentTrees.of(topology)
    graph: nx.MultiGraph[int] = nx.MultiGraph()
    graph.add_nodes_from(range(len(trees.nodes)))
    for index, link in enumerate(topology.links):
        if link.a in topology.switches and link.b in topology.switches:
            graph.add_edge(trees.number[link.a], trees.number[link.b], key=index)
    simple: nx.Graph[int] = nx.Graph(graph)
    for destination in graph:
        for node in graph:
            if node == destination or not nx.has_path(graph, node, destination):
                assert trees.pair(node, destination) is None
                continue
            ways = [way(trees.tree(which), node, destination) for which in (0, 1)]
            inner = [{hop.neighbour for hop in w[:-1]} for w in ways]
            links = [{hop.link for hop in w} for w in ways]
            # Menger: what both ways pass is what separates the two nodes, each alone.
            for shared in inner[0] & inner[1]:
                without = simple.copy()
                without.remove_node(shared)
                assert not nx.has_path(without, node, destination)
            for shared in links[0] & links[1]:
                a, b = topology.links[shared].a, topology.links[shared].b
                less = graph.copy()
                less.remove_edge(trees.number[a], trees.number[b], key=shared)
                assert not nx.has_path(less, node, destination)
            for w in ways:
                for before, after in pairwise([node, *(hop.neighbour for hop in w)]):
                    assert graph.has_edge(before, after)


@given(graphs())
@settings(max_examples=60, deadline=None)
def test_two_ways_share_only_cut_vertices_and_bridges(graph: Graph) -> None:
    check(network(graph))


@pytest.mark.parametrize("name", ["fat-tree:4", "abilene", "grid:3x3"])
def test_trees_of_known_topologies(name: str) -> None:
    check(topologies.load(name))


def test_a_ring_is_walked_in_both_directions() -> None:
    topology = network((5, [(i, (i + 1) % 5, 1) for i in range(5)]))
    trees = IndependentTrees.of(topology)
    ways = [[hop.neighbour for hop in way(trees.tree(which), 2, 0)] for which in (0, 1)]
    assert sorted(ways) == [[1, 0], [3, 4, 0]]


def test_a_link_that_cannot_be_used_is_not() -> None:
    topology = network((4, [(0, 1, 1), (1, 2, 1), (2, 0, 1), (2, 3, 1), (3, 0, 1)]))
    trees = IndependentTrees.of(topology, unusable={2})
    assert {hop.link for which in (0, 1) for hop in way(trees.tree(which), 2, 0)} == {0, 1, 3, 4}
