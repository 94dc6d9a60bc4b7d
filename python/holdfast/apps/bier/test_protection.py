"""The law of protection: whom coverage calls protected gets every packet once, nobody gets one twice, and no packet circles."""

from __future__ import annotations

from ipaddress import IPv4Address
from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import topologies
from holdfast.apps.bier.coverage import Coverage, failures
from holdfast.apps.bier.forwarding_law import Network
from holdfast.apps.bier.planning import (
    Bift,
    Plan,
    Scheme,
    TreesOf,
    not_via_addresses,
    number_switches,
    shortest,
    tunnel_routes,
)
from holdfast.apps.bier.protection import FastReroute, Protect
from holdfast.control.next_hop import NextHop
from holdfast.errors import NetworkError
from holdfast.paths import IndependentTrees
from holdfast.topology import Topology

REPAIRS: list[tuple[FastReroute, Protect]] = [
    ("none", "link"),
    ("tunnel", "link"),
    ("tunnel", "node"),
    ("lfa", "link"),
    ("lfa", "node"),
]

RED_AND_BLUE: dict[int, TreesOf] = {
    0: lambda paths: IndependentTrees(paths).tree(0),
    1: lambda paths: IndependentTrees(paths).tree(1),
}


@st.composite
def networks(draw: st.DrawFn) -> Topology:
    """Draw a network of 3 to 8 switches, some with hosts, perhaps in a ring, with more links of any cost, some parallel."""
    size = draw(st.integers(3, 8))
    topology = Topology("random")
    for i in range(size):
        topology.add_switch(f"s{i}")
    ring = [(i, (i + 1) % size) for i in range(size)] if draw(st.booleans()) else []
    ends = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(lambda pair: pair[0] != pair[1])
    unit = draw(st.booleans())
    for a, b in ring + draw(st.lists(ends, min_size=1, max_size=size + 3)):
        topology.add_link(f"s{a}", f"s{b}", cost=1 if unit else draw(st.integers(1, 5)))
    for i in draw(st.sets(st.integers(0, size - 1), min_size=2)):
        topology.add_host(f"h{i}")
        topology.add_link(f"h{i}", f"s{i}")
    return topology


def routes_of(plan: Plan) -> dict[str, dict[IPv4Address, NextHop]]:
    return tunnel_routes(plan.topology, plan.underlay, plan.tunnels)


def ends_of(plan: Plan) -> dict[str, tuple[IPv4Address, ...]]:
    return not_via_addresses(plan.topology, plan.tunnels)


def check(plan: Plan) -> None:
    """Check packets from every BFIR under every failure: they arrive once where coverage says so, and none circles for ever."""
    topology, scheme = plan.topology, plan.scheme
    switches, routes, ends, coverage = plan.switches, routes_of(plan), ends_of(plan), Coverage(plan)
    bfers = list(scheme.numbering.bfr_ids)
    nothing = [(None, None)]
    for kind, failure in nothing + [(k, f) for k in ("link", "node") for f in failures(topology, k)]:
        down = frozenset() if failure is None else failure.links
        dead = None if failure is None else failure.node
        network = Network(topology, switches, routes, ends=ends, down=down, dead=dead)
        for sub_domain in scheme.sub_domains:
            lost = frozenset() if failure is None else coverage.lost(failure, sub_domain)
            for bfir in bfers:
                for entropy in range(scheme.buckets):
                    for place, bits in scheme.numbering.bit_strings(bfers).items():
                        outcome = network.send(bfir, Bift(sub_domain, place), bits, entropy)
                        what = f"{kind} {failure} {bfir} {outcome}"
                        assert outcome.expired == 0, what
                        assert all(count == 1 for count in outcome.delivered.values()), what
                        if bfir == dead:
                            continue
                        for bfer in bfers:
                            if scheme.numbering.place(bfer)[0] != place or bfer == dead:
                                continue
                            reachable = plan.next_hop(plan.lanes[0], *(plan.paths.number[x] for x in (bfir, bfer)))
                            wanted = (bfir == bfer or reachable is not None) and (bfir, bfer) not in lost
                            got = outcome.delivered[bfer]
                            assert got == wanted or (scheme.buckets > 1 and not wanted), f"{what} {bfer} {wanted}"


@given(networks(), st.sampled_from(REPAIRS), st.sampled_from([1, 2, 4]), st.sampled_from([True, True, False]))
@settings(max_examples=60, deadline=None)
def test_what_coverage_calls_protected_is(
    topology: Topology, repairs: tuple[FastReroute, Protect], buckets: int, ip_frr: bool
) -> None:
    frr, protect = repairs
    scheme = Scheme(number_switches(topology, 64), buckets=buckets, frr=frr, protect=protect, ip_frr=ip_frr)
    check(Plan(topology, scheme))


@given(networks(), st.sampled_from(["link", "node"]))
@settings(max_examples=20, deadline=None)
def test_tunnels_protect_independent_trees_too(topology: Topology, protect: Protect) -> None:
    check(Plan(topology, Scheme(number_switches(topology, 64), RED_AND_BLUE, protect=protect)))


@given(networks())
@settings(max_examples=20, deadline=None)
def test_independent_trees_lose_no_bfer_in_both_sub_domains(topology: Topology) -> None:
    """1+1 BIER: whom one failure parts from nobody is reached in one of two sub-domains, without any repair."""
    plan = Plan(topology, Scheme(number_switches(topology, 64), RED_AND_BLUE, frr="none"))
    coverage = Coverage(plan)
    for kind in ("link", "node"):
        for failure in failures(topology, kind):
            left = left_of(plan, failure.links)
            for bfir, bfer in coverage.lost(failure, 0) & coverage.lost(failure, 1):
                assert not nx.has_path(left, bfir, bfer)


def left_of(plan: Plan, down: frozenset[int]) -> nx.Graph[str]:
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(plan.topology.switches)
    for index, link in enumerate(plan.topology.links):
        if index not in down and link.a in plan.topology.switches and link.b in plan.topology.switches:
            graph.add_edge(link.a, link.b)
    return graph


@given(networks())
@settings(max_examples=20, deadline=None)
def test_tunnels_save_whatever_is_not_parted(topology: Topology) -> None:
    """Of a failed link everybody; of a failed switch, with node protection, those whose way goes on at a neighbour that is left."""
    for protect in ("link", "node"):
        plan = Plan(topology, Scheme(number_switches(topology, 64), protect=protect))
        coverage = Coverage(plan)
        for kind in ("link", "node") if protect == "node" else ("link",):
            for failure in failures(topology, kind):
                left = left_of(plan, failure.links)
                for bfir, bfer in coverage.lost(failure):
                    if kind == "link":
                        assert not nx.has_path(left, bfir, bfer)
                        continue
                    path = [bfir]
                    while path[-1] != bfer:
                        hop = plan.next_hop((0, 0), *(plan.paths.number[name] for name in (path[-1], bfer)))
                        assert hop is not None
                        path.append(plan.paths.nodes[hop.neighbour])
                    at = path.index(failure.name)
                    assert not nx.has_path(left, path[at - 1], path[at + 1])


@pytest.mark.parametrize("name", ["abilene", "fat-tree:4", "ring:5"])
@pytest.mark.parametrize(("frr", "protect"), REPAIRS)
def test_the_law_on_known_topologies(name: str, frr: FastReroute, protect: Protect) -> None:
    topology = topologies.load(name)
    check(Plan(topology, Scheme(number_switches(topology), buckets=2, frr=frr, protect=protect)))


def test_node_protection_splits_the_mask_by_next_next_hops() -> None:
    """The paper's node protection: B-F-BM is the failed next hop's F-BM and the next-next-hop's, and E's own bit goes to E."""
    topology = topologies.load("ring:6")
    numbering = number_switches(topology)
    plan = Plan(topology, Scheme(numbering, protect="node"))
    bit = {name: numbering.place(name)[1] for name in topology.switches}
    ((entries,),) = [plan.switches["s1"].bifts[Bift(0, 0)]]
    to_s2 = next(entry for entry in entries if entry.neighbour == "s2")
    own = bit["s2"]
    around = to_s2.f_bm & ~own
    assert around == sum(bit[name] for name in ("s3", "s4") if to_s2.f_bm & bit[name]) != 0
    by_mask = {backup.f_bm: backup.tunnel for backup in to_s2.backups}
    assert set(by_mask) == {own, around}
    assert by_mask[own] is not None
    assert by_mask[own][0] == plan.switches["s1"].loopback
    assert by_mask[own][1] in ends_of(plan)["s2"]
    assert by_mask[around] is not None
    assert by_mask[around][1] in ends_of(plan)["s3"]


def test_a_tunnel_for_a_dead_switch_ends_beside_it() -> None:
    """The copy for the failed switch's own bit takes the detour once, and is dropped by the switch's other neighbour."""
    topology = topologies.load("ring:6")
    plan = Plan(topology, Scheme(number_switches(topology), protect="node"))
    network = Network(topology, plan.switches, routes_of(plan), ends=ends_of(plan), dead="s2")
    bits = plan.scheme.numbering.bit_strings(["s2"])[0]
    outcome = network.send("s1", Bift(0, 0), bits, 0)
    assert (dict(outcome.delivered), outcome.copies, outcome.expired) == ({}, 4, 0)


def test_a_repair_tunnel_takes_the_other_way_round_the_ring() -> None:
    topology = topologies.load("ring:6")
    plan = Plan(topology, Scheme(number_switches(topology)))
    down = next(iter(failures(topology, "link")))
    assert topology.links[next(iter(down.links))].name == "s1-s2"
    hops, routes = ["s1"], routes_of(plan)
    end = next(b.tunnel for e in plan.switches["s1"].bifts[Bift(0, 0)][0] if e.neighbour == "s2" for b in e.backups)
    assert end is not None
    ports = {(x.a, x.a_port): x.b for x in topology.links} | {(x.b, x.b_port): x.a for x in topology.links}
    while end[1] in routes[hops[-1]]:
        hops.append(ports[hops[-1], routes[hops[-1]][end[1]].port])
    assert list(pairwise(hops)) == [("s1", "s6"), ("s6", "s5"), ("s5", "s4"), ("s4", "s3"), ("s3", "s2")]


def test_alternates_are_for_shortest_paths() -> None:
    topology = topologies.load("ring:4")
    with pytest.raises(NetworkError, match="loop-free alternates are for sub-domains of shortest paths"):
        Scheme(number_switches(topology), RED_AND_BLUE, frr="lfa")
    assert Scheme(number_switches(topology), {0: shortest}, frr="lfa").frr == "lfa"
