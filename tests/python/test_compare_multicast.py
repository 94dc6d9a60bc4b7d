"""``holdfast compare --traffic multicast``: the traffic, the mechanisms, and what they cost."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import networkx as nx
import pytest
from typer.testing import CliRunner

from holdfast import cli, topologies
from holdfast.compare import advice, drawing, multicast, multicast_traffic, results, scenario, traffic_file
from holdfast.compare import mechanisms as registry
from holdfast.compare.comparison import Comparison
from holdfast.compare.traffic_file import Ends
from holdfast.errors import ScenarioError

WHEN: dict[str, float | None] = {
    "before_s": 0.2,
    "down_s": 0.4,
    "after_s": 0.2,
    "detection_delay_ms": 20.0,
    "reaction_delay_ms": 40.0,
}


def givens(spec: str, fail: str) -> scenario.Scenario:
    return scenario.build(spec, fail=fail, traffic="multicast", when=WHEN)


def compared(spec: str, fail: str, out: Path, *names: str) -> Comparison:
    given = givens(spec, fail)
    chosen = registry.find(names or registry.defaults(given.traffic), registry.baseline(given.traffic))
    return results.run(given, chosen, [1], out)


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> tuple[Comparison, Path]:
    out = tmp_path_factory.mktemp("ring")
    return compared("ring:6", "all", out, "ipmc", "ipmc-reroute"), out


# ---- Traffic ----


@pytest.mark.parametrize("spec", ["abilene", "fat-tree:4", "waxman:40,seed=2", "ring:3"])
def test_drawn_groups_are_the_same_for_every_count_and_leave_the_sources_switch_out(spec: str) -> None:
    topology = topologies.load(spec)
    drawn = multicast_traffic.draw(topology, 50)
    assert drawn[:7] == multicast_traffic.draw(topologies.load(spec), 7)
    assert len({ends.group for ends in drawn}) == 50
    for ends in drawn:
        places = [topology.attachment(host).switch for host in ends.hosts]
        assert places[0] not in places[1:]
        assert len(ends.receivers) == len(set(ends.receivers)) <= 20
        assert len(ends.receivers) >= 2


def test_default_traffic_is_bounded_and_meets_what_fails() -> None:
    topology = topologies.load("abilene")
    (failure,) = (name for name in topology.switches if name == "Denver")
    traffic = multicast_traffic.default(topology, [frozenset((failure,))])
    assert 1 <= len(traffic.udp) <= multicast_traffic.GROUPS
    rates = {entry.packets_per_s for entry in traffic.udp}
    copies = sum(len(entry.to) for entry in traffic.udp)
    assert len(rates) == 1
    assert copies * rates.pop() <= multicast_traffic.COPIES_PER_S
    for entry in traffic.udp:
        assert entry.source is not None
        assert topology.attachment(entry.source).switch != failure
    first = traffic.flows()[0]
    assert frozenset((failure,)) in multicast_traffic._parts(topology, first)


def test_slow_links_have_fewer_groups() -> None:
    topology = topologies.load("ring:8,rate_bps=500000")
    traffic = multicast_traffic.default(topology)
    copies = sum(len(entry.to) for entry in traffic.udp)
    assert copies * traffic.udp[0].packets_per_s <= traffic_file.probes_per_s(topology)
    assert len(traffic.udp) < len(topology.hosts) // 2


def test_a_network_without_two_others_for_anybody_has_no_groups() -> None:
    with pytest.raises(ScenarioError, match="no host has two others"):
        multicast_traffic.default(topologies.load("line:2"))


# ---- Mechanisms ----


def test_the_baseline_follows_from_the_traffic(tmp_path: Path) -> None:
    given = givens("ring:6", "s1-s2")
    assert registry.baseline(given.traffic) == "ingress-replication"
    assert [each.name for each in registry.find(["ipmc"], "ingress-replication")] == ["ingress-replication", "ipmc"]
    path = tmp_path / "mixed.yaml"
    path.write_text("udp: [{source: h1, receivers: [h3, h4]}, {source: h1, destination: h3}]")
    mixed = scenario.build("ring:6", fail="s1-s2", traffic=path, when=WHEN)
    assert registry.baseline(mixed.traffic) == "static"
    assert registry.defaults(mixed.traffic) == list(registry.MECHANISMS)
    found = results.run(mixed, registry.find(["static", "ipmc"]), [1], tmp_path / "out")
    assert not found.is_multicast
    # A flow with one receiver is routed by the same program.
    assert all(sum(found.row(name, "none", 1)["lost"]) == 0 for name in ("static", "ipmc"))


def test_who_reacts_loses_less_and_trees_carry_less(ring: tuple[Comparison, Path]) -> None:
    by_name = {summary.mechanism: summary for summary in ring[0].summaries}
    copies, trees, rerouted = (by_name[name] for name in ("ingress-replication", "ipmc", "ipmc-reroute"))
    assert copies.lost_mean == pytest.approx(trees.lost_mean, rel=0.02)
    # 60 ms of 400.
    assert rerouted.lost_mean == pytest.approx(trees.lost_mean * 60 / 400, rel=0.1)
    assert trees.bytes_ratio < copies.bytes_ratio == 1
    assert trees.tree_ratio is not None
    assert copies.tree_ratio is not None
    assert 1 <= trees.tree_ratio < copies.tree_ratio
    assert (copies.core_state, copies.join_updates) == (0, 0)
    assert all(summary.join_updates and summary.core_state for summary in (trees, rerouted))
    for name in ("ingress-replication", "ipmc", "ipmc-reroute"):
        row = ring[0].row(name, "none", 1)
        assert sum(row["lost"]) == sum(row["duplicated"]) == sum(row["reordered"]) == 0


@pytest.mark.parametrize("fail", ["all", "nodes"])
def test_what_is_called_protected_loses_no_more_than_detection_and_the_wire(
    tmp_path: Path, fail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check also that 1+1 loses nothing where one of its paths remains."""
    monkeypatch.setattr(multicast, "GROUP_COUNTS", (1, 3))
    names = ("bier", "bier-frr-link", "bier-frr-node", "1+1-bier")
    found = compared("grid:2x3", fail, tmp_path, *names)
    by_name = {summary.mechanism: summary for summary in found.summaries}
    for name in names[1:]:
        given = [each for each in found.promises[name] if each.outage_ms is not None]
        assert given
        assert [each for each in given if not each.is_kept] == []
        assert by_name[name].promises == by_name[name].promises_kept == len(given)
    # The promise says something: without fast reroute the same receptions lose more.
    lost = {each.failure: each for each in found.promises["bier-frr-link"] if each.outage_ms}
    assert all(found.row("bier", failure, 1)["lost"][each.place] > each.allowed for failure, each in lost.items())
    if fail == "all":
        assert by_name["1+1-bier"].lost_mean == 0
        assert by_name["bier-frr-link"].lost_mean < by_name["bier"].lost_mean / 5
    assert found.promises["bier"] == []
    assert by_name["bier"].promises is None
    held = f"promises held in {len(given)} of {len(given)}: none of these lost more"
    assert any(note.startswith("1+1-bier protects") and held in note for note in advice.notes(found))
    assert "promises kept" in (tmp_path / "report.html").read_text()


# ---- Costs ----


def test_best_trees_are_no_larger_than_shortest_paths_and_no_smaller_than_steiner_trees() -> None:
    topology = topologies.load("waxman:24,seed=4")
    for ends in multicast_traffic.draw(topology, 12, 4):
        switches = {topology.attachment(host).switch for host in ends.hosts}
        assert multicast.best_tree_links(topology, ends) >= len(switches) - 1
    star = topologies.load("ring:6")
    # Receivers all around: five of the six links.
    assert multicast.best_tree_links(star, Ends("h1", ("h2", "h3", "h4", "h5", "h6"), "239.1.1.1")) == 5
    # A Steiner tree takes a detour that shortest paths do not: h1 to h4 goes over h3's side once that is there.
    grid = topologies.load("grid:3x3")
    places = {grid.attachment(host).switch: host for host in grid.hosts}
    corners = [places[name] for name in ("s1", "s3", "s7", "s9")]
    found = multicast.best_tree_links(grid, Ends(corners[0], tuple(corners[1:]), "239.1.1.1"))
    assert found == _smallest_tree(grid, [grid.attachment(host).switch for host in corners])


def _smallest_tree(topology: topologies.Topology, ends: list[str]) -> int:
    """Return the least number of links in a tree that connects the ends: the fewest switches that connect them, less one."""
    graph = nx.Graph(topology.graph.subgraph(topology.switches))
    others = [name for name in graph if name not in ends]
    sizes = [
        len(ends) + bin(mask).count("1") - 1
        for mask in range(1 << len(others))
        if nx.is_connected(graph.subgraph([*ends, *(name for i, name in enumerate(others) if mask >> i & 1)]))
    ]
    return min(sizes)


def test_best_tree_bytes_are_what_an_undisturbed_tree_carries(ring: tuple[Comparison, Path]) -> None:
    found = ring[0]
    carried = found.row("ipmc", "none", 1)["wire_bytes"]
    best = found.best_tree_bytes
    assert best is not None
    assert best <= carried * 1.001


def test_the_core_state_of_trees_grows_and_that_of_copies_does_not() -> None:
    topology = topologies.load("abilene")
    known = registry.known()
    trees = multicast.core_curve(topology, known["ipmc"])
    assert [point.groups for point in trees] == list(multicast.GROUP_COUNTS)
    assert all(a.mean < b.mean for a, b in pairwise(trees[1:]))
    assert all(point.most >= point.mean for point in trees)
    assert all(point.mean == 0 for point in multicast.core_curve(topology, known["ingress-replication"]))


# ---- Reports ----


def test_a_core_without_state_is_drawn_on_the_line_of_zero() -> None:
    """Check the drawing of ingress-replication, which is compared with nothing else."""
    assert 'class="curve b-a"' in drawing.growth([drawing.Line("none", "b-a", [(1, 0.0), (1000, 0.0)])])


def test_reports_have_what_multicast_costs(ring: tuple[Comparison, Path]) -> None:
    found, out = ring
    text = (out / "report.html").read_text()
    for words in ("State in the core", "a join", "best trees", "1000<small>groups", "ingress-replication"):
        assert words in text
    assert "TCP goodput lost" not in text
    assert "ingress-replication" in advice.advice(found)
    assert "plain routing" not in advice.advice(found)
    results.WORLD.report(found, out / "again.html")
    assert (out / "again.html").read_text() == text


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multicast, "GROUP_COUNTS", (1, 3))
    arguments = [
        "compare",
        "ring:4",
        "--traffic",
        "multicast",
        "--fail",
        "s1-s2",
        "--mechanisms",
        "ipmc-reroute",
        "--jobs",
        "1",
    ]
    times = ["--before-s", "0.2", "--down-s", "0.3", "--after-s", "0.1", "--out", str(tmp_path)]
    done = CliRunner().invoke(cli.app, arguments + times)
    assert done.exit_code == 0, done.output
    assert "ipmc-reroute" in done.output
    assert "ingress-replication" in done.output
    lines = [line for line in done.output.splitlines() if line.startswith(("ipmc", "ingress"))]
    assert all("…" not in line for line in lines)
