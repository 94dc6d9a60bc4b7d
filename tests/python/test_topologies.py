"""Topologies from generators, YAML and GraphML files, against their definitions and against files with mistakes."""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import time
import warnings
from collections.abc import Callable
from ipaddress import ip_address
from itertools import combinations, pairwise
from pathlib import Path

import networkx as nx
import pytest
from holdfast_command import COMMAND, holdfast

from holdfast import plots, results, topologies
from holdfast._core import Program
from holdfast.apps.router import RouterController, compile_router
from holdfast.errors import HoldfastError, TopologyError, TopologyWarning
from holdfast.network import SimulatedNetwork
from holdfast.topologies import backbones, load, waxman, yaml_file
from holdfast.topology import Topology, great_circle_km, propagation_delay_ms
from holdfast.traffic import UdpStream


def same(one: Topology, other: Topology) -> bool:
    return (one.name, one.hosts, one.switches, one.links, one.packet_generators, one.shared_risks) == (
        other.name,
        other.hosts,
        other.switches,
        other.links,
        other.packet_generators,
        other.shared_risks,
    )


@pytest.mark.parametrize(
    ("text", "switches", "hosts", "core_links", "diameter"),
    [
        ("line:5", 5, 5, 4, 4),
        ("ring:6", 6, 6, 6, 3),
        ("star:4,hosts=2", 5, 10, 4, 2),
        ("mesh:5", 5, 5, 10, 1),
        ("grid:3x4,hosts=0", 12, 0, 17, 5),
        ("fat-tree:4", 20, 16, 32, 4),
        ("fat-tree:6", 45, 54, 108, 4),
        ("nsfnet", 14, 14, 21, 3),
        ("abilene", 11, 11, 14, 5),
    ],
)
def test_generators_have_the_size_and_shape_of_their_definition(
    text: str, switches: int, hosts: int, core_links: int, diameter: int
) -> None:
    t = load(text)
    assert (len(t.switches), len(t.hosts), len(t.links)) == (switches, hosts, core_links + hosts)
    assert nx.diameter(t.graph) == diameter
    assert t.graph.number_of_edges() == core_links
    t.check()


def test_fat_tree_is_that_of_al_fares() -> None:
    k = 4
    t = load(f"fat-tree:{k}")
    for name in t.switches:
        ports = {p for link in t.links for n, p in ((link.a, link.a_port), (link.b, link.b_port)) if n == name}
        assert ports == set(range(1, k + 1)), name
    for core in (f"c{n}" for n in range(1, k * k // 4 + 1)):
        for pod in range(1, k + 1):
            (aggregation,) = [n for n in t.graph[core] if n.startswith(f"a{pod}.")]
            assert t.port_towards(core, aggregation) == pod
    # As many disjoint shortest paths between pods as there are core switches.
    paths = list(nx.all_shortest_paths(t.graph, "e1.1", "e4.2"))
    assert {path[2] for path in paths} == {"c1", "c2", "c3", "c4"}


def test_random_topologies_are_connected_and_follow_from_the_seed() -> None:
    for name in ("waxman:40,seed={}", "erdos-renyi:40,p=0.02,seed={}", "erdos-renyi:12,p=0,seed={}"):
        drawn = [load(name.format(seed)) for seed in range(5)]
        assert all(len(t.parts()) == 1 for t in drawn)
        assert same(drawn[3], load(name.format(3)))
        assert not same(drawn[3], drawn[4])
    assert len(load("erdos-renyi:12,p=0,hosts=0").links) == 11
    assert len(load("erdos-renyi:12,p=1,hosts=0").links) == 66


def test_joining_what_does_not_hang_together_takes_no_longer_than_drawing() -> None:
    begin_s = time.process_time()
    t = waxman(1500, beta=1e-9, alpha=0.001, hosts=0)
    assert time.process_time() - begin_s < 30
    assert (len(t.links), len(t.parts())) == (1499, 1)
    # Of points alone it is the shortest tree that there is.
    t = waxman(150, beta=1e-9, alpha=0.001, hosts=0)
    ends = {name: switch.position or (0.0, 0.0) for name, switch in t.switches.items()}
    complete: nx.Graph[str] = nx.Graph()
    complete.add_weighted_edges_from((a, b, math.dist(ends[a], ends[b])) for a, b in combinations(ends, 2))
    shortest = nx.minimum_spanning_tree(complete, algorithm="kruskal")
    assert {frozenset((link.a, link.b)) for link in t.links} == {frozenset(edge) for edge in shortest.edges}


def test_random_topologies_are_those_of_their_seeds() -> None:
    texts = (
        load(f"waxman:{size},beta={beta},alpha={alpha},seed={seed}").to_yaml()
        for size in (2, 5, 20)
        for beta, alpha in (("0.000001", "0.01"), ("0.05", "0.25"), ("0.2", "0.25"), ("0.6", "0.01"))
        for seed in (1, 2, 3)
    )
    assert hashlib.sha256("".join(texts).encode()).hexdigest()[:16] == "3ccc3d0f51fa90e3"


def test_a_waxman_link_is_as_long_as_the_way() -> None:
    t = load("waxman:30,seed=2,hosts=0")
    for link in t.links:
        a, b = t.switches[link.a].position, t.switches[link.b].position
        assert a and b
        assert link.delay_ms == propagation_delay_ms(math.dist(a, b))
    dense, sparse = (load(f"waxman:60,hosts=0,beta={beta}") for beta in (0.9, 0.1))
    assert len(dense.links) > 3 * len(sparse.links)


def test_nsfnet_distances_fit_the_map() -> None:
    """Compare published lengths with distances of coordinates from another source, so that swapped cities would show."""
    ratios = {
        link: km / great_circle_km(backbones.NSFNET_SITES[link[0]], backbones.NSFNET_SITES[link[1]])
        for link, km in backbones.NSFNET_LINKS_KM.items()
    }
    assert all(0.74 < ratio < 1.4 for ratio in ratios.values())
    assert sum(0.9 < ratio < 1.1 for ratio in ratios.values()) >= 13
    assert min(nx.degree(load("nsfnet").graph), key=lambda pair: pair[1])[1] == 2
    assert nx.node_connectivity(load("nsfnet").graph) == 2
    t = load("nsfnet")
    assert t.links[t.find_link("Salt_Lake_City-Ann_Arbor")].delay_ms == pytest.approx(12.008, abs=0.001)


def test_great_circle() -> None:
    assert great_circle_km((0, 0), (90, 0)) == pytest.approx(6371 * math.pi / 2)
    assert great_circle_km((10, 90), (-120, -90)) == pytest.approx(6371 * math.pi)
    # Frankfurt airport to New York JFK: 6,190 km or so in every table of distances.
    assert great_circle_km((8.57, 50.03), (-73.78, 40.64)) == pytest.approx(6195, abs=15)
    assert propagation_delay_ms(1000) == pytest.approx(5.003461)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("torus:3", "there is no topology 'torus'"),
        ("ring", "write ring:SIZE"),
        ("ring:2", "size is 2; it must be at least 3"),
        ("ring:x5", "write ring:SIZE"),
        ("ring:five", "a whole number is expected"),
        ("ring:5,colour=1", "'colour=1' is not a size or a parameter"),
        ("ring:5,hosts=0.5", "a whole number is expected"),
        ("ring:5,rate_bps=0", "rate_bps"),
        ("ring:5,delay_ms=nan", "a number is expected"),
        ("grid:3", "write grid:ROWSxCOLUMNS"),
        ("fat-tree:3", "even number of ports"),
        ("waxman:5,alpha=2", "alpha is 2"),
        ("waxman:5,seed=-1", "seed is -1; it must be at least 0"),
        ("erdos-renyi:5,seed=-1", "seed is -1; it must be at least 0"),
        ("erdos-renyi:5,p=-1", "p is -1"),
        ("abilene:hosts=-1", "hosts is -1"),
        ("absent.yaml", "absent.yaml: No such file"),
        ("absent.graphml", "absent.graphml: No such file"),
    ],
)
def test_names_that_mean_nothing(text: str, message: str) -> None:
    with pytest.raises(TopologyError) as caught:
        load(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["grid:2x3,hosts=2", "abilene", "fat-tree:2", "waxman:9,rate_bps=2.5e9"])
def test_yaml_and_back(text: str, tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    one = load(text)
    file.write_text(one.to_yaml())
    assert same(one, load(str(file)))


def test_yaml_and_back_with_everything(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(
        """
name: all of it
hosts:
  h1:
  h2: {address: 192.168.7.1/24, position: [4, 0.5]}
switches: {s1: {position: [0, 1]}, s2: }
link_defaults: {rate_bps: 1e9, loss: 0.25}
links:
  - {a: h1, b: s1, delay_ms: 0.5}
  - {a: s1, b: s2, rate_bps: 10_000_000, jitter: {distribution: normal, mean_ms: 2, sigma_ms: 1}, cost: 3}
  - {a: s2, b: s1, b_port: 40}
  - {a: s2, b: h2, loss: 0}
packet_generators:
  - {switch: s1, port: 9, packet: "0200aa", period_ms: 1.5, count: 3}
srlg: {duct: [s2-s1, "s1-s2#2"], one: [s1-s2]}
"""
    )
    one = load(str(file))
    assert one.name == "all of it"
    assert [(link.rate_bps, link.loss) for link in one.links] == [
        (10**9, 0.25),
        (10**7, 0.25),
        (10**9, 0.25),
        (10**9, 0.0),
    ]
    assert one.switches["s1"].position == (0, 1)
    assert one.hosts["h2"].position == (4, 0.5)
    assert one.find_link("s1-s2") == one.find_link("s2-s1#1") == 1
    assert one.find_link("s1-s2#2") == 2
    assert one.packet_generators[0].packet == b"\x02\x00\xaa"
    assert one.shared_risks == {"duct": (1, 2), "one": (1,)} == one.copy().shared_risks
    again = tmp_path / "again.yaml"
    again.write_text(one.to_yaml())
    assert same(one, load(str(again)))


def test_yaml_includes(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/core.yaml").write_text("name: core\nswitches: [s1, s2]\nlinks: [{a: s1, b: s2}]\n")
    (tmp_path / "parts/more.yaml").write_text("include: core.yaml\nhosts: [h1]\nlinks: [{a: h1, b: s1}]\n")
    (tmp_path / "whole.yaml").write_text("include: [parts/more.yaml]\nhosts: [h2]\nlinks: [{a: h2, b: s2}]\n")
    t = load(str(tmp_path / "whole.yaml"))
    assert t.name == "whole"
    assert [link.name for link in t.links] == ["s1-s2", "h1-s1", "h2-s2"]
    (tmp_path / "parts/core.yaml").write_text("include: ../whole.yaml\n")
    with pytest.raises(TopologyError, match=r"core.yaml:1: .*whole.yaml -> more.yaml -> core.yaml -> whole.yaml$"):
        load(str(tmp_path / "whole.yaml"))


def test_inclusions_are_bounded(tmp_path: Path) -> None:
    (tmp_path / "0.yaml").write_text("hosts: []\n")
    for i in range(1, 60):
        (tmp_path / f"{i}.yaml").write_text(f"include: [{i - 1}.yaml, {i - 1}.yaml]\n")
    assert yaml_file._Files().parse(tmp_path / "9.yaml").keys() == {"include"}
    with pytest.raises(TopologyError, match=r"^[^\n]*: a topology has at most 1000 files, each inclusion count"):
        load(str(tmp_path / "12.yaml"))
    with pytest.raises(TopologyError, match=r"10.yaml:1: files include each other more than 50 deep$"):
        load(str(tmp_path / "59.yaml"))
    (tmp_path / "name.yaml").write_text('include: "\\0"\n')
    with pytest.raises(TopologyError, match=r"name.yaml:1: no file has such a name, '\\x00'$"):
        load(str(tmp_path / "name.yaml"))


PAIR = "hosts: [h1, h2]\nswitches: [s1]\nlinks:\n- {a: h1, b: s1}\n- {a: s1, b: h2}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PAIR.replace("s1]", "s1, s2, s1]"), ":2: node 's1' is declared twice"),
        (PAIR + "switches: [s2]\n", ":6: 'switches' is declared twice (first in line 2)"),
        ("", ": this file declares no switch and no host"),
        ("null\n", ": this file declares no switch and no host"),
        ("name: empty\n", ": this file declares no switch and no host"),
        ("hosts:\n  h1:\n  h1:\n", ":3: 'h1' is declared twice (first in line 2)"),
        (PAIR.replace("b: h2", "b: h2, rate_bps: -5"), ":5: link s1-h2: rate_bps: Input should be greater than 0"),
        (PAIR.replace("b: h2", "b: h2, rate_bps: fast"), ":5: rate_bps: 'fast' is not a rate, such as 10Mbps"),
        (PAIR.replace("b: h2", "b: h9"), ":5: link s1-h9: there is no node 'h9' (known: h1, h2, s1)"),
        (PAIR.replace("a: s1, ", ""), ":5: one of the links lacks 'a'"),
        (PAIR.replace("a: s1", "a: 1"), ":5: a: 1 is not the name of a node"),
        (PAIR.replace("b: h2", "b: h2, speed: 4"), ":5: speed: unknown key (known: "),
        (PAIR.replace("- {a: s1, b: h2}\n", ""), ": host 'h2' has no link"),
        (
            PAIR + "packet_generators:\n- {switch: s1, port: 9, packet: 'ff', period_ms: 1.0e-9}\n",
            ":7: packet generator of 's1': period_ms: Input should be greater than or equal to",
        ),
        (
            PAIR + f"packet_generators:\n- {{switch: s1, port: 9, packet: 'ff', period_ms: 1, count: {10**26}}}\n",
            ":7: packet generator of 's1': count: Input should be less than",
        ),
        ("include: other.yaml\n", ":1: there is no file"),
        ("include: topology.yaml\n", ":1: files include each other in a circle: topology.yaml -> topology.yaml"),
        (
            "switches: {s1: {colour: red}}\n",
            ":1: colour: unknown key (known: kind, position, queueing, latency_ms, processor",
        ),
        ("switches: {s1: {position: 7}}\n", ":1: switch 's1': position"),
        ("switches: 7\n", ":1: switches: a list of names, or a mapping of names to options expected, and here is 7"),
        ("switches: [[s1]]\n", ":1: the name of one of the switches expected, and here is a list"),
        ("links: {a: s1}\n", ":1: links: a list expected, and here is a mapping"),
        ("link_defaults: {a: s1}\n", ":1: link_defaults cannot have 'a'"),
        ("nodes: [s1]\n", ":1: unknown key 'nodes' (known: name, include"),
        ("- s1\n", ":1: a mapping of name, include"),
        ("hosts: [h1\n", ":2: not YAML"),
        ("links: &l\n  - *l\n", ":1: an alias that contains itself"),
        ("name: 2026-99-99\n", ":1: '2026-99-99' is not a value"),
        ("hosts: {h1: {address: 10.0.0.0.1/8}}\n", ":1: host 'h1': address"),
        (PAIR + "srlg: [h1-s1]\n", ":6: srlg: a mapping of names to lists of links expected, and here is a list"),
        (
            PAIR + "srlg: {duct: h1-s1}\n",
            ":6: the links of the shared risk group 'duct', a list, expected, and here is ",
        ),
        (PAIR + "srlg:\n  duct: [s1-h1, s1-s9]\n", ":7: there is no link 's1-s9' (known: h1-s1, s1-h2)"),
        (PAIR + "srlg: {duct: [s1-h1, h1-s1]}\n", ":6: shared risk group 'duct' has a link twice"),
        (PAIR + "srlg: {duct: []}\n", ":6: shared risk group 'duct' has no links"),
        (PAIR + "srlg: {s1: [s1-h1]}\n", ":6: shared risk group 's1' has the name of a node"),
        (PAIR + "srlg: {s1-h1: [s1-h1]}\n", ":6: shared risk group 's1-h1' has the name of a link"),
        (PAIR + "srlg: {a+b: [s1-h1]}\n", ":6: shared risk group name 'a+b': use letters"),
    ],
)
def test_mistakes_in_yaml_are_one_sentence_with_the_line(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "topology.yaml"
    file.write_text(text)
    with pytest.raises(TopologyError) as caught:
        load(str(file))
    assert str(caught.value).startswith(f"{file}{message}"), caught.value
    assert "\n" not in str(caught.value)


GRAPHML = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="Latitude" attr.type="double" for="node" id="n1" />
  <key attr.name="Longitude" attr.type="double" for="node" id="n2" />
  <key attr.name="label" attr.type="string" for="node" id="n3" />
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="e1" />
  <key attr.name="Network" attr.type="string" for="graph" id="g1" />
  <graph edgedefault="undirected">
    <data key="g1">Test Net</data>
    <node id="0"><data key="n3">K\u00f6ln</data><data key="n1">50.94</data><data key="n2">6.96</data></node>
    <node id="1"><data key="n3">Paris (FR)</data><data key="n1">48.86</data><data key="n2">2.35</data></node>
    <node id="2"><data key="n3">Paris/FR</data><data key="n1">48.86</data><data key="n2">2.35</data></node>
    <node id="3"><data key="n3">?</data></node>
    <node id="4"><data key="n3">Far</data></node>
    <edge source="0" target="1"><data key="e1">2500000000.0</data></edge>
    <edge source="0" target="1"><data key="e1">622000000.0</data></edge>
    <edge source="1" target="2" />
    <edge source="2" target="3" />
    <edge source="2" target="2" />
  </graph>
</graphml>
"""


def test_graphml(tmp_path: Path) -> None:
    file = tmp_path / "net.graphml"
    file.write_text(GRAPHML)
    with pytest.warns(TopologyWarning) as caught:
        t = load(str(file), default_delay_ms=3.0)
    assert sorted(str(warning.message).partition(": ")[2] for warning in caught) == [
        "1 link has an end without coordinates; delay there is 3 ms",
        "2 of 4 links have no rate in the file, and 1 Gb/s here: Paris_FR-Paris_FR_2, Paris_FR_2-s4",
        "names that are taken get a number: Paris_FR_2",
        "no path leads from Köln to Far (--largest leaves them out)",
        "the edge from Paris_FR_2 to itself is left out",
    ]
    assert t.name == "Test Net"
    assert list(t.switches) == ["Köln", "Paris_FR", "Paris_FR_2", "s4", "Far"]
    assert t.switches["Köln"].position == (6.96, 50.94)
    core = t.links[:4]
    assert [link.name for link in core] == ["Köln-Paris_FR", "Köln-Paris_FR", "Paris_FR-Paris_FR_2", "Paris_FR_2-s4"]
    assert [link.rate_bps for link in core] == [2_500_000_000, 622_000_000, 10**9, 10**9]
    # Cologne to Paris is 404 km.
    assert core[0].delay_ms == core[1].delay_ms == pytest.approx(404 / 199.861, abs=0.02)
    assert (core[2].delay_ms, core[3].delay_ms) == (0.0, 3.0)
    assert t.find_link("Paris_FR-Köln#2") == 1
    assert [t.attachment(f"h{i + 1}").switch for i in range(5)] == list(t.switches)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopologyWarning)
        bare = Topology.from_graphml(file, hosts=False, rate_bps=10**7)
    assert not bare.hosts
    assert {link.rate_bps for link in bare.links} == {10**7}


def test_directed_graphml_has_one_link_for_both_ways(tmp_path: Path) -> None:
    file = tmp_path / "net.graphml"
    edges = "".join(f'<edge source="{a}" target="{b}" />' for a, b in ("ab", "ba", "bc", "ab"))
    nodes = "".join(f'<node id="{n}" />' for n in "abc")
    file.write_text(
        f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed">{nodes}{edges}</graph></graphml>'
    )
    with warnings.catch_warnings(), pytest.warns(TopologyWarning, match="3 links have an end without coordinates"):
        warnings.filterwarnings("ignore", "(?!.*without coordinates)", TopologyWarning)
        assert [link.name for link in load(str(file), hosts=False).links] == ["a-b", "b-c", "a-b"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("50.94", "95", "node 'Köln': latitude 95, longitude 6.96 is not a place on Earth"),
        ("622000000.0", "-1.0", "link Köln-Paris_FR: LinkSpeedRaw '-1.0' is not a rate"),
        ("</graphml>", "", "not XML"),
        ("<graph ", "<gruph ", "not XML"),
        (GRAPHML[GRAPHML.index("<node") : GRAPHML.index("  </graph>")], "", "the graph has no nodes"),
    ],
)
def test_mistakes_in_graphml(old: str, new: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "net.graphml"
    file.write_text(GRAPHML.replace(old, new))
    with warnings.catch_warnings(), pytest.raises(TopologyError, match=str(file)) as caught:
        warnings.simplefilter("ignore", TopologyWarning)
        load(str(file))
    assert message in str(caught.value)


@pytest.fixture(scope="module")
def router() -> Program:
    return compile_router()


def test_a_backbone_carries_packets_at_the_speed_of_light(router: Program) -> None:
    t = load("abilene")
    network = SimulatedNetwork(t, router, [RouterController(reroute=False, reaction_delay_ms=0)])
    hosts = {t.attachment(name).switch: name for name in t.hosts}
    flow = network.add(UdpStream(source=hosts["Seattle"], destination=hosts["New_York"], packets_per_s=10, stop_s=1.0))
    network.run(2.0)
    statistics = network.statistics(flow)
    assert statistics.delivered == statistics.sent == 10
    hops = nx.shortest_path(t.graph, "Seattle", "New_York")
    delay_ms = 0.02 + sum(t.links[t.graph.edges[a, b]["link"]].delay_ms for a, b in pairwise(hops))
    assert statistics.latency_mean_ps / 1e9 == pytest.approx(delay_ms, abs=0.05)


@pytest.mark.parametrize("text", ["abilene", "fat-tree:4", "line:1"])
def test_pictures_are_the_same_each_time(text: str, tmp_path: Path) -> None:
    t = load(text)
    for suffix in ("png", "svg"):
        one, other = (tmp_path / f"{i}.{suffix}" for i in range(2))
        plots.draw_topology(t, one)
        plots.draw_topology(t, other)
        assert one.read_bytes() == other.read_bytes()
        assert one.stat().st_size > 1000
    with pytest.raises(HoldfastError, match=r"pictures are \.png or \.svg"):
        plots.draw_topology(t, tmp_path / "t.gif")


def test_a_topology_without_positions_can_be_drawn(tmp_path: Path) -> None:
    t = Topology("plain")
    for name in ("s1", "s2", "s3"):
        t.add_switch(name)
    t.add_host("h1")
    t.add_link("s1", "s2")
    t.add_link("s2", "s3")
    t.add_link("h1", "s3")
    plots.draw_topology(t, tmp_path / "t.svg")
    text = (tmp_path / "t.svg").read_text()
    assert all(name in text for name in t.switches)


def test_no_two_mechanisms_look_the_same() -> None:
    looks = [(style.colour, style.marker) for style in plots.STYLES.values()]
    assert len(set(looks)) == len(looks)
    with pytest.raises(HoldfastError, match="there is no style 'magic'"):
        plots.style("magic")


def test_the_command(tmp_path: Path) -> None:
    result = holdfast("topology", "nsfnet")
    assert result.returncode == 0, result.stderr
    assert "14 switches, 14 hosts, 35 links" in result.stdout
    assert "Salt_Lake_City-Ann_Arbor" in result.stdout
    result = holdfast("topology", "ring:3", "--yaml", "--draw", str(tmp_path / "ring.svg"))
    assert result.returncode == 0, result.stderr
    (tmp_path / "ring.yaml").write_text(result.stdout)
    assert same(load(str(tmp_path / "ring.yaml")), load("ring:3"))
    assert (tmp_path / "ring.svg").read_text().startswith("<?xml")
    (tmp_path / "net.graphml").write_text(GRAPHML)
    result = holdfast("topology", "net.graphml", cwd=tmp_path)
    assert result.returncode == 0
    assert "warning: net.graphml: no path leads from Köln to Far" in result.stderr.replace("\n", " ")
    result = holdfast("topology", "torus:3")
    assert result.returncode == 1
    assert "there is no topology 'torus'" in result.stderr
    assert "Traceback" not in result.stderr


def test_parallel_links_are_shown_by_the_names_that_find_them(tmp_path: Path) -> None:
    file = tmp_path / "twice.yaml"
    file.write_text(
        "switches: [s1, s2, s3]\nlinks:\n- {a: s1, b: s2}\n- {a: s2, b: s1}\n- {a: s1, b: s2}\n- {a: s2, b: s3}\n"
    )
    t = load(str(file))
    assert t.link_names() == ["s1-s2", "s2-s1#2", "s1-s2#3", "s2-s3"]
    assert [t.find_link(name) for name in t.link_names()] == [0, 1, 2, 3]
    shown = [line.split()[0] for line in holdfast("topology", str(file)).stdout.splitlines()[2:]]
    assert shown == t.link_names()
    with pytest.raises(TopologyError, match=r"known: s1-s2, s2-s1#2, s1-s2#3, s2-s3"):
        t.find_link("s1-s2#4")
    network = SimulatedNetwork(t, compile_router(), [], seed=1)
    assert results.links(network)["link"].to_list() == [name for name in t.link_names() for _ in range(2)]


def shown_on_a_terminal(*arguments: str) -> list[str]:
    """Return the lines that the command ``topology`` writes to a terminal."""
    primary, secondary = os.openpty()
    with os.fdopen(primary, "rb", 0) as terminal:
        process = subprocess.Popen([*COMMAND, "topology", *arguments], stdout=secondary, stderr=subprocess.DEVNULL)
        os.close(secondary)
        text = b""
        try:
            while part := terminal.read(1 << 16):
                text += part
        except OSError:  # its end
            pass
        assert process.wait(timeout=60) == 0
    return text.decode().splitlines()


def test_a_large_topology_is_summarised_on_a_terminal() -> None:
    t = load("fat-tree:8")
    whole = list(topologies.listing(t))
    assert len(whole) == 2 + len(t.links)
    assert holdfast("topology", "fat-tree:8").stdout.splitlines() == whole
    assert shown_on_a_terminal("fat-tree:8", "--all") == whole
    title, degrees, headings, *rows, more = shown_on_a_terminal("fat-tree:8")
    assert title == whole[0] == "fat_tree_8: 80 switches, 128 hosts, 384 links"
    assert degrees == "256 links are between switches: 4 to 8 at each, 6.4 on average"
    assert headings.split() == whole[1].split()
    assert [row.split() for row in rows] == [row.split() for row in whole[2:42]]
    assert more.startswith("... and 344 more; --all")
    # What is small enough is whole.
    assert shown_on_a_terminal("ring:4") == list(topologies.listing(load("ring:4")))


def test_showing_a_topology_takes_about_as_long_as_making_it() -> None:
    # Processor time of this process, because neighbours do not count. It was fifteen times as much, and is a quarter.
    def spent(work: Callable[[], object]) -> float:
        begin = time.process_time()
        work()
        return time.process_time() - begin

    t = load("waxman:200,beta=1")
    assert len(list(topologies.listing(t))) == len(t.links) + 2 > 3000
    made = min(spent(lambda: load("waxman:200,beta=1")) for _ in range(3))
    shown = min(spent(lambda: list(topologies.listing(t))) for _ in range(3))
    assert shown < 4 * made


README = Path(topologies.__file__).parent / "README.md"


def test_every_generator_is_described() -> None:
    text = README.read_text()
    for name in topologies.GENERATORS:
        assert f"| `{topologies.usage(name)}` |" in text, name


def test_the_hosts_of_the_readme_are_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").write_text(README.read_text().split("```yaml\n")[2].split("```")[0])
    hosts = load(str(tmp_path / "hosts.yaml")).hosts
    assert (str(hosts["h1"].gateway), hosts["h1"].neighbours) == (
        "10.0.1.10",
        {ip_address("10.0.1.10"): bytes.fromhex("080000000100")},
    )
    assert (str(hosts["h2"].gateway), hosts["h3"].gateway, hosts["h3"].vlan) == ("10.0.2.3", None, 5)
    assert len(hosts["h5"].cards) == 2


def test_the_yaml_of_the_readme_is_what_it_says(tmp_path: Path) -> None:
    text = README.read_text().split("```yaml\n")[1].split("```")[0]
    (tmp_path / "access.yaml").write_text("switches: [s9]\n")
    (tmp_path / "square.yaml").write_text(text)
    t = load(str(tmp_path / "square.yaml"))
    assert list(t.switches) == ["s9", "s1", "s2"]
    assert {link.rate_bps for link in t.links} == {10**9}
    # The module's own text has the same.
    assert [line.strip() for line in text.splitlines() if "include" not in line and "port:" not in line] == [
        line.strip()
        for line in (yaml_file.__doc__ or "").split("yaml\n")[1].split("\nThe fields are")[0].splitlines()
        if line.strip() and "include" not in line and "port:" not in line
    ]
