"""What mechanisms say that they protect before a run, against what runs lose."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import networkx as nx
import pytest
from holdfast_command import holdfast

from holdfast.compare import coverage, mechanisms, results, scenario
from holdfast.compare.comparison import Comparison
from holdfast.compare.coverage import Point
from holdfast.compare.mechanism import Built, Setting
from holdfast.errors import NetworkError
from holdfast.topology import Topology

NETWORK = """
switches: [s1, s2, s3, s4, s5]
hosts: {h1: , h2: , h3: , h4: , h5: }
link_defaults: {rate_bps: 1e8, delay_ms: 1}
links:
  - {a: h1, b: s1}
  - {a: h2, b: s2}
  - {a: h3, b: s3}
  - {a: h4, b: s4}
  - {a: h5, b: s5}
  - {a: s1, b: s2}
  - {a: s2, b: s3}
  - {a: s3, b: s4}
  - {a: s4, b: s1, cost: 10}
  - {a: s5, b: s1}
"""
"""A ring in which one link is dear, so that s2 and s3 have no alternate for each other (RFC 7490, section 8), and s5 beside it."""

PAIRS = [("h1", "h2"), ("h2", "h3"), ("h3", "h4"), ("h5", "h3"), ("h1", "h4")]

TRAFFIC = "udp:\n" + "".join(
    f"  - {{source: {a}, destination: {b}, packets_per_s: 200, payload_bytes: 100}}\n"
    for pair in PAIRS
    for a, b in (pair, pair[::-1])
)
"""In both directions: a pair is protected if both are."""

NAMES = ["reroute", "ip-frr", "mpls-local", "mpls-path", "mpls-loopback", "1+1", "1+1-vector"]
DETECTION_MS, REACTION_MS, DOWN_MS = 20, 100, 500


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> scenario.Scenario:
    folder = tmp_path_factory.mktemp("network")
    (folder / "network.yaml").write_text(NETWORK)
    (folder / "traffic.yaml").write_text(TRAFFIC)
    return scenario.build(
        str(folder / "network.yaml"),
        fail="all",
        traffic=folder / "traffic.yaml",
        when={
            "before_s": 0.1,
            "down_s": DOWN_MS / 1000,
            "after_s": 0.2,
            "detection_delay_ms": DETECTION_MS,
            "reaction_delay_ms": REACTION_MS,
        },
    )


def test_what_is_said_before_a_run_holds_in_it(given: scenario.Scenario, tmp_path: Path) -> None:
    chosen = mechanisms.find(NAMES)
    comparison: Comparison = results.run(given, chosen, [1], tmp_path)
    said = {
        each.mechanism: {one.pair: one.why for one in each.unprotected} for each in coverage.protected(given, chosen)
    }
    for mechanism, pair in product(chosen, PAIRS):
        places = [place for place, stream in enumerate(comparison.probes) if {*stream.hosts} == {*pair}]
        rows = [comparison.row(mechanism.name, failure, 1) for failure in given.failures]
        longest = max(row["outage_ms"][place] for row in rows for place in places)
        why = said[mechanism.name].get(pair)
        if why is None and mechanism.protects == "prepared":
            assert longest < DETECTION_MS + 10, (mechanism.name, pair)
        elif why is None:
            assert longest < DETECTION_MS + REACTION_MS + 10, (mechanism.name, pair)
        elif why.endswith("is on every way") or mechanism.protects == "nothing":
            assert longest >= DOWN_MS, (mechanism.name, pair)
        else:
            assert longest > DETECTION_MS + REACTION_MS - 10, (mechanism.name, pair)
    # Each of these says no to a wrong answer: the pair that no alternate helps, and the one that nothing can help.
    other = "there is another way, which the mechanism cannot use"
    assert said["ip-frr"] == dict.fromkeys(PAIRS, other) | {("h5", "h3"): "s5-s1 is on every way"}
    assert said["1+1"] == said["reroute"] == {("h5", "h3"): "s5-s1 is on every way"}
    assert set(said["static"].values()) == {coverage.NOTHING} and len(said["static"]) == 5


TWICE = """
switches: [s1, s2, s3, s4, s5]
hosts: {h1: , h2: , h3: , h4: , h5: }
link_defaults: {rate_bps: 1e8, delay_ms: 1}
links:
  - {a: h1, b: s1}
  - {a: h2, b: s2}
  - {a: h3, b: s3}
  - {a: h4, b: s4}
  - {a: h5, b: s5}
  - {a: s1, b: s2}
  - {a: s2, b: s3}
  - {a: s3, b: s4}
  - {a: s4, b: s1, cost: 3}
  - {a: s1, b: s3, cost: 2}
  - {a: s5, b: s1}
  - {a: s5, b: s4, cost: 2}
srlg:
  duct: [s1-s2, s3-s4, s4-s5]
  bridge: [s2-s3, s4-s1]
"""
"""Two ways at least between any hosts, three between some."""


@pytest.mark.parametrize("fail", ["pairs", "srlg", "random:2,of=both,draws=8"])
def test_what_is_said_of_several_failures_at_once_holds_in_their_runs(fail: str, tmp_path: Path) -> None:
    (tmp_path / "network.yaml").write_text(TWICE)
    (tmp_path / "traffic.yaml").write_text(TRAFFIC)
    times = {"before_s": 0.05, "down_s": 0.25, "after_s": 0.05, "detection_delay_ms": 20, "reaction_delay_ms": 80}
    where = str(tmp_path / "network.yaml")
    given = scenario.build(where, fail=fail, traffic=tmp_path / "traffic.yaml", when=times)
    chosen = mechanisms.find([name for name in NAMES if name not in ("mpls-loopback", "1+1-vector")])
    comparison: Comparison = results.run(given, chosen, [1], tmp_path / "out")
    kinds = set()
    for mechanism, said in zip(chosen, coverage.protected(given, chosen), strict=True):
        assert said.lacking is not None and said.mechanism == mechanism.name
        for failure, pair in product(given.failures, PAIRS):
            counted = {*comparison.measured(comparison.probes, failure)}
            places = [place for place in counted if {*comparison.probes[place].hosts} == {*pair}]
            if not places:
                assert pair not in said.lacking[failure]
                continue
            longest = max(comparison.row(mechanism.name, failure, 1)["outage_ms"][place] for place in places)
            is_left = pair not in coverage.separated(given.topology, PAIRS, [failure])[failure]
            is_lacking = pair in said.lacking[failure]
            kinds.add((is_left, is_lacking))
            if not is_left:
                low, high = 240, 1000
            elif mechanism.protects == "restored" or (is_lacking and mechanism.name == "ip-frr"):
                low, high = 0 if mechanism.protects == "restored" else 90, 115
            elif is_lacking:
                low, high = 240, 1000
            else:
                low, high = 0, 35
            assert low <= longest < high, (mechanism.name, failure, pair, longest)
    assert kinds >= {(True, False), (True, True)}


def test_points_of_failure_against_a_search() -> None:
    """In random networks with parallel links and hosts of two cards: take each link and switch away, and look."""
    for seed in range(60):
        graph = nx.gnm_random_graph(7, 8, seed=seed)
        topology = Topology("random")
        for node in graph:
            topology.add_switch(f"s{node}")
        for at, (a, b) in enumerate(graph.edges):
            topology.add_link(f"s{a}", f"s{b}")
            if at % 4 == 0:
                topology.add_link(f"s{a}", f"s{b}")
        two = {"interfaces": [{"address": "172.16.0.1/24"}]} if seed % 2 else {}
        for node in graph:
            if node != 6:
                topology.add_host(f"h{node}", **(two if node == 0 else {}))
                topology.add_link(f"h{node}", f"s{node}")
        if two:
            topology.add_link("h0", "s6")
        if not nx.is_connected(topology.graph):
            continue
        names = [
            name
            for name, link in zip(topology.link_names(), topology.links, strict=True)
            if "s" == link.a[0] == link.b[0]
        ]
        expected = {name for name in (*names, *topology.switches) if _separates(topology, name)}
        found = coverage.points(topology)
        assert {point.name for point in found} == expected, seed
        assert all(isinstance(point, Point) and 0 < len(point.alone) <= 3 for point in found)


def _separates(topology: Topology, name: str) -> bool:
    """Return True if hosts that still have a switch cannot reach each other without a link or a switch."""
    graph = nx.Graph()
    graph.add_nodes_from(node for node in topology.switches if node != name)
    for other, link in zip(topology.link_names(), topology.links, strict=True):
        if other != name and name not in (link.a, link.b) and {link.a, link.b} <= topology.switches.keys():
            graph.add_edge(link.a, link.b)
    at = [[place.switch for place in topology.attachments(host) if place.switch != name] for host in topology.hosts]
    parts = list(nx.connected_components(graph))
    reached = [{i for i, part in enumerate(parts) if part & set(switches)} for switches in at if switches]
    # A host with two cards is in two parts; the others' part has to be the one with most hosts.
    most = max(range(len(parts)), key=lambda i: sum(i in each for each in reached))
    return any(most not in each for each in reached)


def test_the_command_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "network.yaml").write_text(NETWORK)
    done = holdfast("compare", "network.yaml", "--coverage", "--mechanisms", "ip-frr,1+1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 link whose failure alone separates hosts:\n  s5-s1 separates h5\n" in done.stdout
    assert "1 switch whose failure alone separates hosts:\n  s1 separates h5\n" in done.stdout
    assert (
        "not protected by ip-frr\n  there is another way, which the mechanism cannot use:\n    h1-h3, " in done.stdout
    )
    assert all(len(line) <= 80 for line in done.stdout.splitlines()[1:]), done.stdout
    assert not (tmp_path / "out").exists()


def test_every_link_that_separates_a_pair_is_named() -> None:
    """Two bridges in a row: each of them is on every way."""
    topology = Topology("line")
    for name in ("s1", "s2", "s3"):
        topology.add_switch(name)
    for number in (1, 3):
        topology.add_host(f"h{number}")
        topology.add_link(f"h{number}", f"s{number}")
    topology.add_link("s1", "s2")
    topology.add_link("s2", "s3")
    assert coverage.separating(topology, [("h1", "h3")]) == {("h1", "h3"): ["s1-s2", "s2-s3"]}


def test_of_a_mechanism_whose_author_says_nothing_nothing_is_claimed(given: scenario.Scenario) -> None:
    (frr,) = [each for each in mechanisms.find(["ip-frr"]) if each.name == "ip-frr"]
    (found,) = coverage.protected(given, [replace(frr, protects=None)])
    assert found.kind == coverage.NOT_STATED
    assert any(
        line.split() == ["ip-frr", "-", "of", "5", *coverage.NOT_STATED.split()]
        for line in coverage.lines(given, [found])
    )


@pytest.mark.parametrize("more", [["--require", "lost < 5"], ["--junit", "j.xml"], ["--csv"], ["--out", "o"]])
def test_coverage_does_nothing_that_is_asked_besides(more: list[str], tmp_path: Path) -> None:
    done = holdfast("compare", "ring:3", "--coverage", *more, cwd=tmp_path)
    assert done.returncode == 1 and f"there is nothing for {more[0]}" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_mechanism_that_refuses_does_not_hide_the_others(given: scenario.Scenario) -> None:
    def refuse(setting: Setting) -> Built:
        raise NetworkError("there are too many pairs")

    chosen = mechanisms.find(["ip-frr"])
    found = coverage.protected(given, [replace(chosen[1], name="no", build=refuse), *chosen])
    assert [each.mechanism for each in found] == ["no", "static", "ip-frr"]
    assert any(line.endswith("- of 5  refuses: there are too many pairs") for line in coverage.lines(given, found))
