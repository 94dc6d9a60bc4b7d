"""Large networks in a comparison: the traffic that is chosen, failures that are drawn, and paths that are too long for some."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path

import pytest
from holdfast_command import holdfast

from holdfast import topologies
from holdfast.apps.mpls.lsp import MAX_HOPS
from holdfast.compare import runs, scenario, traffic_file
from holdfast.compare.traffic_file import LONGEST_PATH, PAIRS, PAIRS_MAX, Pair
from holdfast.errors import ScenarioError
from holdfast.paths import path_by_cost
from holdfast.topology import Topology

TIMES: dict[str, float | None] = {"before_s": 0.3, "down_s": 0.4, "after_s": 0.2}


def all_pairs(topology: Topology, through: frozenset[str]) -> list[Pair]:
    """Return all pairs of hosts in the order of their definition: those far apart first.

    Then half of those that the failure meets come first.
    """
    hosts = list(topology.hosts)
    switch = {name: topology.attachment(name).switch for name in hosts}
    known: dict[frozenset[str], Pair] = {}
    for distance in range(len(hosts) // 2, 0, -1):
        for i, a in enumerate(hosts):
            b = hosts[(i + distance) % len(hosts)]
            if switch[a] != switch[b] and not {frozenset((switch[a],)), frozenset((switch[b],))} & {through}:
                known.setdefault(frozenset((a, b)), (a, b))
    paths = {pair: path_by_cost(topology, *(switch[host] for host in pair)) for pair in known.values()}
    pairs = [pair for pair, path in paths.items() if len(path) - 1 <= LONGEST_PATH]
    parts = {
        pair: {*map(frozenset, itertools.pairwise(paths[pair])), *(frozenset((name,)) for name in paths[pair])}
        for pair in pairs
    }
    met = [pair for pair in pairs if through in parts[pair]]
    wanted = min(PAIRS_MAX, max(PAIRS, len(hosts) // 2))
    met_first = met[: wanted // 2]
    return [*met_first, *[pair for pair in pairs if pair not in met][: wanted - len(met_first)]]


@pytest.mark.parametrize(
    "name",
    [
        "line:2",
        "line:9",
        "line:40",
        "ring:7",
        "star:6",
        "star:4,hosts=3",
        "grid:4x4,hosts=2",
        "waxman:40,seed=3",
        "fat-tree:4",
    ],
)
def test_pairs_are_the_same_as_if_all_had_been_looked_at(name: str) -> None:
    topology = topologies.load(name)
    links = [link for link in topology.links if link.a in topology.switches and link.b in topology.switches]
    for link in (links[0], links[len(links) // 2], links[-1]):
        for through in (frozenset((link.a, link.b)), frozenset((link.a,))):
            found = traffic_file._default_pairs(topology, [through])
            assert found == all_pairs(topology, through), (name, through)
            assert len({frozenset(pair) for pair in found}) == len(found)


@pytest.mark.parametrize("name", ["line:400", "grid:20x20", "waxman:400,beta=0.05", "star:400"])
def test_the_choice_of_pairs_takes_seconds_in_any_network_of_hundreds(name: str) -> None:
    topology = topologies.load(name)
    links = [link for link in topology.links if link.a in topology.switches and link.b in topology.switches]
    begin_s = time.process_time()
    for link in (links[0], links[len(links) // 2]):
        for through in ([frozenset((link.a, link.b))], [frozenset((link.a,))], []):
            assert traffic_file._default_pairs(topology, through)
    assert time.process_time() - begin_s < 20


def test_no_pair_is_farther_apart_than_an_lsp_is_long() -> None:
    assert LONGEST_PATH == MAX_HOPS
    topology = topologies.load("line:80")
    for through in ([], [frozenset(("s40", "s41"))], [frozenset(("s40",))]):
        pairs = traffic_file._default_pairs(topology, through)
        lengths = [abs(int(a[1:]) - int(b[1:])) for a, b in pairs]
        assert len(pairs) == 40
        assert max(lengths) == LONGEST_PATH


def measured(
    topology: str, fail: str, names: list[str], folder: Path, out: Path | None = None
) -> dict[str, runs.RunRow]:
    built = scenario.build(topology, fail=fail, when=TIMES)
    path = str(built.write(folder))
    return {name: runs.Prepared(path, name, 1).run(built.failures[0]) for name in names}


def test_a_way_around_that_is_too_long_for_an_lsp_is_no_protection(tmp_path: Path) -> None:
    """Check a ring of 66 switches, in which every other path is too long."""
    built = scenario.build("ring:66", fail="s10-s11", when=TIMES)
    path = str(built.write(tmp_path))
    for name in ("mpls-path", "mpls-local"):
        prepared = runs.Prepared(path, name, 1)
        assert len(prepared.built.unprotected) == len(prepared.setting.pairs), name
        assert prepared.run(built.failures[0])


def test_parallel_links_are_no_second_way_of_an_lsp(tmp_path: Path) -> None:
    """Check two paths that share two switches with two links between them."""
    text = """
hosts: [h1, h2]
switches: [s1, s2, s3, s4, s5, s6]
links:
- {a: h1, b: s1}
- {a: h2, b: s6}
- {a: s1, b: s2}
- {a: s1, b: s3}
- {a: s3, b: s2}
- {a: s2, b: s4}
- {a: s2, b: s4}
- {a: s4, b: s6}
- {a: s4, b: s5}
- {a: s5, b: s6}
"""
    file = tmp_path / "net.yaml"
    file.write_text(text)
    rows = measured(str(file), "s2-s4", ["mpls-local", "mpls-path", "mpls-loopback"], tmp_path / "runs")
    assert len(rows) == 3


def test_a_sample_of_failures_follows_from_its_seed(tmp_path: Path) -> None:
    drawn = {
        fail: scenario.build("abilene", fail=fail).failures
        for fail in ("sample:4", "sample:4,seed=1", "sample:4,seed=2")
    }
    every = scenario.build("abilene", fail="all").failures
    assert drawn["sample:4"] == drawn["sample:4,seed=1"] != drawn["sample:4,seed=2"]
    for names in drawn.values():
        assert len(set(names)) == 4
        assert list(names) == [name for name in every if name in names]
    assert scenario.build("abilene", fail="sample:14").failures == every
    assert any(names != drawn["sample:4"] for names in drawn.values())
    found = holdfast(
        "compare", "ring:5", "--fail", "sample:2,seed=3", "--mechanisms", "reroute", "--before-s", "0.3", "--down-s", "0.4",
        "--after-s", "0.2", cwd=tmp_path,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert (
        found.stderr.startswith("ring: 5 switches, 10 links; 2 mechanisms, 6 runs")
        or "2 mechanisms, 6 runs" in found.stderr.splitlines()[0]
    )
    assert "each of 2 links down" in found.stdout
    assert "2 of 5 links, drawn by sample:2,seed=3" in " ".join(found.stdout.split())
    summary = json.loads((tmp_path / "out/compare/summary.json").read_text())
    assert (summary["fail"], summary["failures"]) == ("sample:2,seed=3", 2)


@pytest.mark.parametrize(
    "fail",
    ["sample:", "sample:0", "sample:6", "sample:x", "sample:-1", "sample:2,seed=", "sample:2,seed=x", "sample:1e9"],
)
def test_a_sample_that_cannot_be_drawn_is_one_sentence(fail: str) -> None:
    with pytest.raises(ScenarioError, match=f"--fail {fail}: "):
        scenario.build("ring:5", fail=fail)


def test_a_switch_that_fails_is_not_called_as_the_run_without_a_failure(tmp_path: Path) -> None:
    file = tmp_path / "net.yaml"
    file.write_text(
        "hosts: [h1, h2]\nswitches: [none, s2]\nlinks:\n- {a: h1, b: none}\n- {a: h2, b: s2}\n- {a: none, b: s2}\n"
    )
    assert scenario.build(str(file), fail="none-s2").failures == ("none-s2",)
    for fail in ("nodes", "none"):
        with pytest.raises(ScenarioError, match="cannot be called 'none'"):
            scenario.build(str(file), fail=fail)


def test_a_copy_of_a_topology_is_apart_from_it() -> None:
    topology = topologies.load("fat-tree:4")
    other = topology.copy()
    assert other.to_yaml() == topology.to_yaml()
    before = topology.to_yaml()
    switch = next(iter(other.switches))
    other.add_host("late")
    other.add_link("late", switch)
    other.add_ipv6()
    assert topology.to_yaml() == before
    topology.add_host("late")
    topology.add_link("late", switch)
    topology.add_ipv6()
    assert topology.to_yaml() == other.to_yaml()
