"""Alternates against the RFCs' definitions, by brute force: all shortest paths of random graphs, one by one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from itertools import combinations, pairwise

import networkx as nx
import pytest

from holdfast.apps.router import AlternateKind, Alternates, link_coverage
from holdfast.paths import Hop, ShortestPaths

GRAPHS = 40

Edge = tuple[str, str, int, int]


def random_edges(rng: random.Random) -> tuple[list[str], list[Edge]]:
    """Return five to nine nodes and the edges that connect them, with costs of 1 to 4 and without parallel edges."""
    nodes = [f"s{i}" for i in range(rng.randrange(5, 10))]
    pairs = {(nodes[rng.randrange(i)], nodes[i]) for i in range(1, len(nodes))}
    pairs |= {pair for pair in combinations(nodes, 2) if rng.random() < rng.choice((0.0, 0.15, 0.3))}
    highest = rng.choice((1, 2, 4))
    return nodes, [(a, b, i, rng.randint(1, highest)) for i, (a, b) in enumerate(sorted(pairs))]


class BruteForce:
    """The definitions, on a networkx graph."""

    def __init__(self, nodes: list[str], edges: list[Edge]) -> None:
        self.graph: nx.Graph[str] = nx.Graph()
        self.graph.add_nodes_from(nodes)
        self.graph.add_weighted_edges_from((a, b, cost) for a, b, _, cost in edges)
        self.distance = dict(nx.all_pairs_dijkstra_path_length(self.graph))
        self.second: dict[tuple[str, str], set[str]] = {}
        self.on_paths: dict[tuple[str, str], set[str]] = {}
        self.links: dict[tuple[str, str], set[frozenset[str]]] = {}
        for a in nodes:
            for b in nodes:
                paths = list(nx.all_shortest_paths(self.graph, a, b, "weight"))
                self.second[a, b] = {path[1] for path in paths if a != b}
                self.on_paths[a, b] = {node for path in paths for node in path}
                self.links[a, b] = {frozenset(link) for path in paths for link in pairwise(path)}

    def passes(self, a: str, b: str, node: str) -> bool:
        """Return True if some shortest path from ``a`` to ``b`` contains ``node``."""
        return node in self.on_paths[a, b]

    def crosses(self, a: str, b: str, x: str, y: str) -> bool:
        """Return True if some shortest path from ``a`` to ``b`` crosses the link x-y, in either direction."""
        return frozenset((x, y)) in self.links[a, b]

    def cost(self, a: str, b: str) -> int:
        return int(self.graph.edges[a, b]["weight"])

    def p_space(self, a: str, s: str, e: str) -> set[str]:
        return {p for p in self.graph if not self.crosses(a, p, s, e)}

    def extended_p_space(self, s: str, e: str) -> set[str]:
        return set().union(*(self.p_space(n, s, e) for n in self.graph[s] if n != e))

    def q_space(self, s: str, e: str) -> set[str]:
        return {q for q in self.graph if not self.crosses(q, e, s, e)}

    def pq_nodes(self, s: str, e: str) -> set[str]:
        return self.extended_p_space(s, e) & self.q_space(s, e) - {s}


@cache
def cases() -> list[tuple[BruteForce, ShortestPaths]]:
    drawn = [random_edges(random.Random(seed)) for seed in range(GRAPHS)]
    return [(BruteForce(nodes, edges), ShortestPaths(nodes, edges)) for nodes, edges in drawn]


def routes(brute: BruteForce, paths: ShortestPaths) -> Iterator[tuple[str, str, str]]:
    """Yield (S, E, D) of every route: switch, next hop and destination."""
    for s in paths.nodes:
        for d in paths.nodes:
            hop = paths.next_hop(paths.number[s], paths.number[d])
            assert (hop is None) == (s == d)
            if hop is not None:
                yield s, paths.nodes[hop.neighbour], d


def test_next_hops_are_the_first_of_the_shortest_paths() -> None:
    for brute, paths in cases():
        for s, e, d in routes(brute, paths):
            assert paths.distances(paths.number[s])[paths.number[d]] == brute.distance[s][d]
            assert e == min(brute.second[s, d], key=paths.number.__getitem__)


def test_loop_free_alternates_are_rfc_5286s() -> None:
    """Inequality 1: no shortest path from N to D has S in it. 3: none has E in it. 2: N is nearer to D than S is."""
    kinds = set()
    for brute, paths in cases():
        alternates = Alternates(paths, remote_lfa=False)
        for s, e, d in routes(brute, paths):
            loop_free = [n for n in brute.graph[s] if n != e and not brute.passes(n, d, s)]
            expected = min(
                (
                    (
                        brute.passes(n, d, e),
                        brute.distance[n][d] >= brute.distance[s][d],
                        brute.cost(s, n) + brute.distance[n][d],
                        paths.number[n],
                    )
                    for n in loop_free
                ),
                default=None,
            )
            chosen = alternates.alternate(s, d)
            if chosen is None:
                assert expected is None
                continue
            assert chosen.kind == AlternateKind.LFA
            assert expected == (
                not chosen.node_protecting,
                not chosen.downstream,
                chosen.cost,
                chosen.hop.neighbour,
            )
            kinds.add(expected[:2])
    assert len(kinds) == 4, "each of node-protecting, downstream, both and neither"


def test_p_space_and_q_space_are_rfc_7490s() -> None:
    sizes = set()
    for brute, paths in cases():
        alternates = Alternates(paths)
        for s in paths.nodes:
            for hop in paths.hops[paths.number[s]]:
                e = paths.nodes[hop.neighbour]
                i = paths.number[s]

                def named(space: set[int], paths: ShortestPaths = paths) -> set[str]:
                    return {paths.nodes[n] for n in space}

                assert named(alternates.p_space(i, i, hop)) == brute.p_space(s, s, e)
                assert named(alternates.extended_p_space(i, hop)) == brute.extended_p_space(s, e)
                assert named(alternates.q_space(i, hop)) == brute.q_space(s, e)
                assert named(alternates.pq_nodes(i, hop)) == brute.pq_nodes(s, e)
                sizes.add(len(brute.pq_nodes(s, e)))
    assert {0, 1, 2} <= sizes


def test_remote_alternates_are_the_best_pq_nodes() -> None:
    """Used where there is no neighbour only, and there wherever a PQ node exists; neither leg of the way crosses the link."""
    found = set()
    for brute, paths in cases():
        alternates, local = Alternates(paths), Alternates(paths, remote_lfa=False)
        for s, e, d in routes(brute, paths):
            chosen = alternates.alternate(s, d)
            if local.alternate(s, d) is not None:
                assert chosen == local.alternate(s, d)
                continue
            pq_nodes = brute.pq_nodes(s, e)
            assert (chosen is None) == (not pq_nodes)
            if chosen is None:
                continue
            assert chosen.kind == AlternateKind.REMOTE_LFA and chosen.pq_node is not None
            n, p = paths.nodes[chosen.hop.neighbour], paths.nodes[chosen.pq_node]
            assert p in pq_nodes and n != e
            assert not brute.crosses(n, p, s, e) and not brute.crosses(p, d, s, e)
            assert chosen.node_protecting == (not brute.passes(n, p, e) and not brute.passes(p, d, e))
            assert chosen.cost == brute.cost(s, n) + brute.distance[n][p] + brute.distance[p][d]
            protecting = {
                (brute.cost(s, x) + brute.distance[x][q] + brute.distance[q][d])
                for q in pq_nodes
                for x in brute.graph[s]
                if x != e and not brute.passes(x, q, e) and not brute.passes(q, d, e)
            }
            assert chosen.node_protecting == bool(protecting)
            if protecting:
                assert chosen.cost == min(protecting)
            found.add(chosen.node_protecting)
    assert found == {True, False}


def walk(paths: ShortestPaths, alternates: Alternates, s: str, d: str, failed: int) -> bool:
    """Return True if a packet gets from ``s`` to ``d`` while link ``failed`` is down and each switch uses only its alternates."""
    at, tunnel = paths.number[s], None
    for _ in range(4 * len(paths.nodes)):
        if tunnel == at:
            tunnel = None
        if tunnel is None and at == paths.number[d]:
            return True
        hop = paths.next_hop(at, paths.number[d] if tunnel is None else tunnel)
        assert hop is not None
        if hop.link == failed:
            chosen = None if tunnel is not None else alternates.alternate(paths.nodes[at], d)
            if chosen is None:
                return False
            hop, tunnel = chosen.hop, chosen.pq_node
            assert hop.link != failed
        at = hop.neighbour
    raise AssertionError(f"from {s} to {d} without link {failed}: a loop")


def test_no_single_link_makes_a_loop_or_loses_what_is_protected() -> None:
    for seed in range(GRAPHS):
        nodes, edges = random_edges(random.Random(seed))
        paths = ShortestPaths(nodes, edges)
        alternates = Alternates(paths)
        for _, _, failed, _ in edges:
            for row in alternates.coverage():
                if row.link == failed:
                    assert walk(paths, alternates, row.switch, row.destination, failed) == (row.alternate != "none")
                else:
                    walk(paths, alternates, row.switch, row.destination, failed)


def test_a_parallel_link_is_an_alternate() -> None:
    paths = ShortestPaths(["s1", "s2", "s3"], [("s1", "s2", 0, 1), ("s1", "s2", 1, 5), ("s2", "s3", 2, 1)])
    alternates = Alternates(paths)
    assert alternates.primary("s1", "s3") == Hop(1, 0, 1)
    chosen = alternates.alternate("s1", "s3")
    assert chosen is not None
    assert (chosen.kind, chosen.hop.link, chosen.node_protecting) == (AlternateKind.LFA, 1, False)
    assert alternates.alternate("s2", "s3") is None


def test_a_network_in_two_parts() -> None:
    edges = [("s1", "s2", 0, 1), ("s2", "s3", 1, 1), ("s3", "s1", 2, 1), ("s4", "s5", 3, 1)]
    alternates = Alternates(ShortestPaths(["s1", "s2", "s3", "s4", "s5"], edges))
    assert alternates.primary("s1", "s4") is None and alternates.alternate("s1", "s4") is None
    assert alternates.extended_p_space(0, Hop(1, 0, 1)) == {0, 1, 2}
    rows = {(row.switch, row.destination): row for row in alternates.coverage()}
    assert len(rows) == 8
    assert rows["s1", "s2"].alternate == "lfa" and rows["s4", "s5"].alternate == "none"


@pytest.mark.parametrize("size", [3, 4, 5, 100])
def test_coverage_of_rings(size: int) -> None:
    """Every destination is protected, the far end by an LFA: from the neighbour the other way round is shorter than back over S."""
    nodes = [f"s{i}" for i in range(size)]
    paths = ShortestPaths(nodes, [(nodes[i], nodes[(i + 1) % size], i, 1) for i in range(size)])
    rows = Alternates(paths).coverage()
    assert len(rows) == size * (size - 1)
    for row in rows:
        there, back = ((int(row.destination[1:]) - int(row.switch[1:])) * sign % size for sign in (1, -1))
        assert row.cost == min(there, back)
        assert row.alternate == ("lfa" if abs(there - back) < 2 else "remote-lfa")
        assert row.last_hop == (row.cost == 1)
        assert row.protects == ("link" if row.last_hop else "node")
    links = link_coverage(rows)
    assert sum(x.destinations for x in links) == len(rows)
    assert all(x.unprotected == 0 and x.lfa_link + x.remote_lfa_link == 1 for x in links)


def test_a_tree_has_no_alternates() -> None:
    paths = ShortestPaths(["s1", "s2", "s3"], [("s1", "s2", 0, 1), ("s2", "s3", 1, 1)])
    alternates = Alternates(paths, ["s3"])
    assert [(x.switch, x.link, x.destinations, x.unprotected) for x in link_coverage(alternates.coverage())] == [
        ("s1", 0, 1, 1),
        ("s2", 1, 1, 1),
    ]
