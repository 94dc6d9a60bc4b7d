"""Disjoint paths compared with all sets of all paths of small graphs, and cuts with the graph without them; examples."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import NetworkError
from holdfast.paths import (
    Disjoint,
    NoDisjointPathsError,
    Path,
    ShortestPaths,
    cheapest_path,
    detour,
    disjoint_path,
    disjoint_paths,
    path_along,
    path_by_cost,
    path_delay_ms,
)
from holdfast.topologies import load
from holdfast.topology import Topology

Edges = list[tuple[int, int, int]]


def network(nodes: int, edges: Edges) -> Topology:
    t = Topology("random")
    for i in range(nodes):
        t.add_switch(f"s{i}")
    for a, b, cost in edges:
        t.add_link(f"s{a}", f"s{b}", cost=cost)
    return t


@st.composite
def graphs(draw: st.DrawFn) -> Topology:
    """Generate a topology of up to seven switches, with parallel links."""
    nodes = draw(st.integers(2, 7))
    pairs = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1), st.integers(1, 6))
    edges = draw(st.lists(pairs.filter(lambda e: e[0] != e[1]), max_size=12))
    return network(nodes, edges)


def all_paths(t: Topology, ingress: str, egress: str, avoid_nodes: set[str], avoid_links: set[int]) -> list[Path]:
    def extend(nodes: tuple[str, ...], links: tuple[int, ...]) -> Iterator[Path]:
        if nodes[-1] == egress:
            yield Path(nodes, links, sum(t.links[i].cost for i in links))
            return
        for index, link in enumerate(t.links):
            ends = (link.a, link.b)
            if index in avoid_links or nodes[-1] not in ends:
                continue
            following = ends[1 - ends.index(nodes[-1])]
            if following not in nodes and following not in avoid_nodes:
                yield from extend((*nodes, following), (*links, index))

    return list(extend((ingress,), ()))


def cheapest(paths: list[Path], count: int, disjoint: Disjoint) -> tuple[int, int] | None:
    """Return (cost, number of links) of the best set of ``count`` disjoint paths by trying all sets; None if there is none."""
    return min(
        (
            (sum(p.cost for p in chosen), sum(len(p.links) for p in chosen))
            for chosen in combinations(paths, count)
            if not any(a.shares(b, disjoint) for a, b in combinations(chosen, 2))
        ),
        default=None,
    )


@settings(max_examples=200)
@given(data=st.data(), t=graphs(), count=st.integers(1, 4), disjoint=st.sampled_from(["node", "link"]))
def test_like_brute_force(data: st.DataObject, t: Topology, count: int, disjoint: Disjoint) -> None:
    ends = ("s0", "s1")
    avoid_nodes = data.draw(st.sets(st.sampled_from(list(t.switches)), max_size=2).map(lambda s: s - set(ends)))
    avoid_links = data.draw(st.sets(st.integers(0, max(0, len(t.links) - 1)), max_size=2)) if t.links else set()
    candidates = all_paths(t, *ends, avoid_nodes, avoid_links)
    best = cheapest(candidates, count, disjoint)
    try:
        found = disjoint_paths(t, *ends, count, disjoint=disjoint, avoid_nodes=avoid_nodes, avoid_links=avoid_links)
    except NoDisjointPathsError as error:
        assert best is None
        # The cut is as small as the number of paths, and nothing leads around it.
        assert len(error.cut_nodes) + len(error.cut_links) == error.found < count
        assert disjoint == "node" or not error.cut_nodes
        assert not all_paths(t, *ends, avoid_nodes | set(error.cut_nodes), avoid_links | set(error.cut_links))
        assert cheapest(candidates, error.found, disjoint) is not None
        return
    assert set(found) <= set(candidates)
    assert not any(a.shares(b, disjoint) for a, b in combinations(found, 2))
    assert (sum(p.cost for p in found), sum(len(p.links) for p in found)) == best
    assert [p.cost for p in found] == sorted(p.cost for p in found)
    assert found == disjoint_paths(t, *ends, count, disjoint=disjoint, avoid_nodes=avoid_nodes, avoid_links=avoid_links)


def test_the_shortest_path_is_a_trap() -> None:
    """Check the classic trap: the shortest path uses links of both disjoint paths, so removing it first leaves no path."""
    t = Topology("trap")
    for name in "abcdef":
        t.add_switch(name)
    for x, y, cost in [("a", "b", 1), ("b", "c", 1), ("c", "f", 1), ("a", "d", 3), ("d", "c", 3)]:
        t.add_link(x, y, cost=cost)
    t.add_link("b", "e", cost=3)
    t.add_link("e", "f", cost=3)
    assert {str(path) for path in disjoint_paths(t, "a", "f")} == {"a-b-e-f", "a-d-c-f"}


def bowtie() -> Topology:
    """Return a topology of two triangles that share a node: it has link-disjoint paths, but no node-disjoint ones."""
    return network(5, [(0, 2, 1), (0, 2, 5), (2, 1, 1), (2, 3, 1), (3, 1, 1)])


def test_paths_that_share_a_node_but_no_link() -> None:
    t = bowtie()
    paths = disjoint_paths(t, "s0", "s1", disjoint="link")
    assert [path.nodes for path in paths] == [("s0", "s2", "s1"), ("s0", "s2", "s3", "s1")]
    assert {path.links[0] for path in paths} == {0, 1}, "the parallel links"


@pytest.mark.parametrize(
    ("count", "disjoint", "message"),
    [
        (2, "node", "no two node-disjoint paths from s0 to s1: every path uses node s2"),
        (3, "link", "no three link-disjoint paths from s0 to s1: every path uses one of link s0-s2, link s0-s2#2"),
    ],
)
def test_errors_name_the_cut(count: int, disjoint: Disjoint, message: str) -> None:
    with pytest.raises(NoDisjointPathsError, match=message):
        disjoint_paths(bowtie(), "s0", "s1", count, disjoint=disjoint)


def test_errors_of_the_other_kinds() -> None:
    t = bowtie()
    with pytest.raises(NetworkError, match="there is no path from s0 to s4"):
        disjoint_paths(t, "s0", "s4")
    with pytest.raises(NetworkError, match="there is no path from s0 to s1 in what is left of the network"):
        disjoint_paths(t, "s0", "s1", 1, avoid_nodes={"s2"})
    with pytest.raises(NetworkError, match="s1, an end of the connection, is down"):
        disjoint_paths(t, "s0", "s1", avoid_nodes={"s1"})
    with pytest.raises(NetworkError, match="both ends"):
        disjoint_paths(t, "s0", "s0")
    with pytest.raises(NetworkError, match="no switch 's9'"):
        disjoint_paths(t, "s0", "s9")
    with pytest.raises(NetworkError, match="s0 and s1 are not neighbours"):
        path_along(t, ["s0", "s1"])
    with pytest.raises(NetworkError, match="none twice"):
        path_along(t, ["s0", "s2", "s0"])


def test_given_nodes() -> None:
    assert path_along(bowtie(), ["s0", "s2", "s3"]) == Path(("s0", "s2", "s3"), (0, 3), 2)


def test_hundred_nodes_are_quick_enough() -> None:
    """Check a sample of pairs in a large network, whose paths take a few milliseconds each."""
    t = load("waxman:100")
    names = list(t.switches)
    planned = 0
    for a, b in list(pairwise(names))[:40]:
        try:
            paths = disjoint_paths(t, a, b, disjoint="link")
        except NoDisjointPathsError:
            continue
        planned += 1
        assert not paths[0].shares(paths[1], "link")
    assert planned > 20


@given(t=graphs())
def test_names_of_links_are_found_again(t: Topology) -> None:
    assert [t.find_link(name) for name in t.link_names()] == list(range(len(t.links)))


def squares(extra: list[tuple[str, str]] = []) -> Topology:  # noqa: B006
    """Return a topology in which a and d have two paths of equal cost, over c and over b.

    Switch c is declared before b, and e is linked to d.
    """
    topology = Topology()
    for name in ("a", "c", "b", "d", "e"):
        topology.add_switch(name)
    for left, right in [("a", "b"), ("b", "d"), ("a", "c"), ("c", "d"), ("d", "e"), *extra]:
        topology.add_link(left, right, delay_ms=1)
    return topology


def test_the_routers_path_goes_by_the_order_of_switches_and_not_of_links() -> None:
    topology = squares()
    assert path_by_cost(topology, "a", "e") == ["a", "c", "d", "e"]
    assert path_by_cost(topology, "e", "a") == ["e", "d", "c", "a"]
    assert path_by_cost(topology, "a", "a") == ["a"]
    paths = ShortestPaths.of(topology)
    hop = paths.next_hop(paths.number["a"], paths.number["e"])
    assert hop is not None and paths.nodes[hop.neighbour] == "c"
    lonely = squares()
    lonely.add_switch("f")
    with pytest.raises(NetworkError, match="there is no path from a to f"):
        path_by_cost(lonely, "a", "f")


def test_a_backup_path_avoids_nodes_or_else_links() -> None:
    topology = squares()
    assert disjoint_path(topology, ["a", "c", "d"]) == ["a", "b", "d"]
    assert disjoint_path(topology, ["a", "c", "d", "e"]) is None
    # Between c and e every other path goes through d, too: with a second link they need not share one.
    both = squares([("b", "e"), ("b", "c")])
    assert disjoint_path(both, ["a", "b", "e"]) == ["a", "c", "d", "e"]
    assert disjoint_path(both, ["a", "c", "b", "e"]) == ["a", "b", "d", "e"]


def test_a_detour_leads_around_a_link_if_anything_does() -> None:
    topology = squares()
    assert detour(topology, "a", "c") == ["a", "b", "d", "c"]
    assert detour(topology, "d", "e") is None
    assert cheapest_path(topology, "a", "d", without_nodes=["c"]) == ["a", "b", "d"]
    assert cheapest_path(topology, "a", "d", without_nodes=["c", "b"]) is None
    for ends in (("a", "nobody"), ("nobody", "d")):
        with pytest.raises(NetworkError, match="there is no switch 'nobody'"):
            cheapest_path(topology, *ends)


def test_delay_is_that_of_the_path_and_of_the_hosts_links() -> None:
    topology = squares()
    for host, switch in (("h1", "a"), ("h2", "e")):
        topology.add_host(host)
        topology.add_link(host, switch, delay_ms=0.25)
    assert path_delay_ms(topology, "h1", "h2") == 3.5
