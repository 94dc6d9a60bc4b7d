"""BFR-ids, BIFTs and ECMP buckets against RFC 8279 and against shortest paths found by networkx."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.apps.bier.planning import Bift, Plan, Scheme, number_switches, tunnel_routes
from holdfast.apps.bier.protection import FastReroute, Protect
from holdfast.apps.bier.test_protection import RED_AND_BLUE, REPAIRS, left_of, networks
from holdfast.errors import NetworkError
from holdfast.topologies import load
from holdfast.topology import Topology


def test_a_bift_id_packs_length_sub_domain_and_set() -> None:
    assert Bift(0, 0).bift_id(256) == 0x30000
    assert Bift(0x12, 0x34).bift_id(64) == 0x11234
    assert Bift(255, 255).bift_id(4096) == 0x7FFFF
    with pytest.raises(NetworkError, match=r"a BitString has 64, .* bits, not 100"):
        Bift(0, 0).bift_id(100)
    with pytest.raises(NetworkError, match="sub-domain 256 is not in 0 to 255"):
        Bift(256, 0)
    with pytest.raises(NetworkError, match="set identifier -1 is not in 0 to 255"):
        Bift(0, -1)


def test_a_number_is_a_set_and_a_position() -> None:
    """RFC 8279, section 3: with a BitStringLength of 256, BFR-id 256 is bit 256 of set 0, and 257 is bit 1 of set 1."""
    topology = load("line:3")
    numbering = number_switches(topology, 256, {"s1": 256, "s2": 257, "s3": 1})
    assert numbering.place("s1") == (0, 1 << 255)
    assert numbering.place("s2") == (1, 1)
    assert numbering.place("s3") == (0, 1)
    assert numbering.bit_strings(["s1", "s2", "s3"]) == {0: 1 << 255 | 1, 1: 1}
    assert numbering.set_identifiers == (0, 1)


def test_numbers_stay_as_hosts_come_and_links_go() -> None:
    topology = load("ring:5,hosts=0")
    for name in ("s2", "s4"):
        topology.add_host(f"h{name}")
        topology.add_link(f"h{name}", name)
    first = number_switches(topology)
    assert first.bfr_ids == {"s2": 1, "s4": 2}
    topology.add_host("h1")
    topology.add_link("h1", "s1")
    assert number_switches(topology, given=first.bfr_ids).bfr_ids == {"s2": 1, "s4": 2, "s1": 3}


@pytest.mark.parametrize(
    ("bsl", "given", "message"),
    [
        (256, {"s9": 1}, "is for 's9', which is not a switch"),
        (256, {"s1": 7, "s2": 7}, "BFR-id 7 is for both 's1' and 's2'"),
        (256, {"s1": 0}, "BFR-id 0 of 's1' is not in 1 to 65535"),
        (1024, {"s1": 65536}, "not in 1 to 65535"),
        (64, {"s1": 16385}, "not in 1 to 16384, the numbers that 64 bits have"),
        (77, {}, "a BitString has 64, .* bits, not 77"),
    ],
)
def test_numbers_out_of_range_are_errors(bsl: int, given: dict[str, int], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        number_switches(load("line:2"), bsl, given)
    assert number_switches(load("line:2"), 256, {"s1": 65535}).place("s1") == (255, 1 << 254)


@given(networks())
@settings(max_examples=40, deadline=None)
def test_each_bucket_is_a_partition_along_shortest_paths(topology: Topology) -> None:
    """RFC 8279, 6.7: the F-BMs of a bucket do not overlap, and cover whatever can be reached."""
    numbering = number_switches(topology, 64)
    plan = Plan(topology, Scheme(numbering, buckets=4, frr="none"))
    graph = left_of(plan, frozenset())
    for link in topology.links:
        if link.a in topology.switches and link.b in topology.switches:
            edge = graph.edges[link.a, link.b]
            edge["cost"] = min(link.cost, edge.get("cost", link.cost))
    ports = {(x.a, x.a_port): (x.b, x.cost) for x in topology.links} | {
        (x.b, x.b_port): (x.a, x.cost) for x in topology.links
    }
    for name, switch in plan.switches.items():
        buckets = switch.bifts[Bift(0, 0)]
        assert len(buckets) in (1, 2, 4)
        distance = nx.single_source_dijkstra_path_length(graph, name, weight="cost")
        reachable = [other for other in numbering.bfr_ids if other in distance and other != name]
        for bucket in buckets:
            for a, b in combinations(bucket, 2):
                assert not a.f_bm & b.f_bm
            covered = 0
            for entry in bucket:
                covered |= entry.f_bm
                neighbour, cost = ports[name, entry.next_hop.port]
                assert neighbour == entry.neighbour
                for other in reachable:
                    if entry.f_bm & numbering.place(other)[1]:
                        beyond = nx.dijkstra_path_length(graph, neighbour, other, weight="cost")
                        assert cost + beyond == distance[other]
            assert covered == numbering.bit_strings(reachable).get(0, 0)


@given(networks(), st.sampled_from(REPAIRS), st.sampled_from([1, 2]), st.data())
@settings(max_examples=25, deadline=None)
def test_a_plan_after_another_is_the_plan(
    topology: Topology, repairs: tuple[FastReroute, Protect], buckets: int, data: st.DataObject
) -> None:
    """After any failures, one link after another or several at once, and repairs."""
    scheme = Scheme(number_switches(topology, 64), buckets=buckets, frr=repairs[0], protect=repairs[1])
    links = [i for i, link in enumerate(topology.links) if link.a in topology.switches and link.b in topology.switches]
    plan = Plan(topology, scheme)
    down: frozenset[int] = frozenset()
    for _ in range(3):
        changes = data.draw(st.sets(st.sampled_from(links), max_size=3))
        down = down ^ changes if data.draw(st.booleans()) else down | changes
        plan, whole = plan.after(down), Plan(topology, scheme, down)
        assert plan.switches == whole.switches
        assert plan.tunnels == whole.tunnels
        assert tunnel_routes(topology, plan.underlay, plan.tunnels) == tunnel_routes(
            topology, whole.underlay, whole.tunnels
        )


def test_equally_long_ways_share_by_entropy() -> None:
    plan = Plan(load("ring:4"), Scheme(number_switches(load("ring:4")), buckets=2, frr="none"))
    buckets = plan.switches["s1"].bifts[Bift(0, 0)]
    opposite = plan.scheme.numbering.place("s3")[1]
    ways = [next(entry.neighbour for entry in bucket if entry.f_bm & opposite) for bucket in buckets]
    assert sorted(ways) == ["s2", "s4"]
    # All buckets alike are one.
    assert len(plan.switches["s1"].bifts[Bift(0, 0)]) == 2
    line = load("line:3")
    assert len(Plan(line, Scheme(number_switches(line), buckets=8)).switches["s2"].bifts[Bift(0, 0)]) == 1


def test_sub_domains_have_trees_of_their_own() -> None:
    topology = load("ring:5")
    plan = Plan(topology, Scheme(number_switches(topology), RED_AND_BLUE, frr="none"))
    bit = plan.scheme.numbering.place("s3")[1]
    ways = set()
    for sub_domain in (0, 1):
        ((*entries,),) = plan.switches["s1"].bifts[Bift(sub_domain, 0)]
        ways |= {entry.neighbour for entry in entries if entry.f_bm & bit}
    assert ways == {"s2", "s5"}


def test_a_transit_router_has_no_bit() -> None:
    topology = load("fat-tree:4")
    switches = Plan(topology, Scheme(number_switches(topology))).switches
    transit = [plan for plan in switches.values() if plan.bfr_id == 0]
    assert len(transit) == 12
    assert all(set(plan.own.values()) == {0} for plan in transit)
    own = [plan.own[Bift(0, 0)] for plan in switches.values() if plan.bfr_id]
    assert sorted(own) == [1 << i for i in range(8)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"buckets": 3}, "1, 2, 4 and so on up to 256 ECMP buckets, not 3"),
        ({"buckets": 512}, "not 512"),
        ({"sub_domains": {}}, "one sub-domain at least"),
        ({"frr": "fast"}, "frr is 'fast'; it is none or tunnel or lfa"),
        ({"protect": "srlg"}, "protect is 'srlg'; it is link or node"),
    ],
)
def test_schemes_out_of_range_are_errors(change: dict[str, object], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        Scheme(number_switches(load("line:2")), **change)  # type: ignore[arg-type]
