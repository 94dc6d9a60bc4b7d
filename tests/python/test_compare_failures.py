"""Which failures ``--fail`` names, and what fails at once in each."""

from __future__ import annotations

import math

import pytest

from holdfast.compare import failures, scenario
from holdfast.errors import ScenarioError
from holdfast.topologies import load
from holdfast.topology import Topology


@pytest.fixture
def ring() -> Topology:
    topology = load("ring:5")
    topology.add_shared_risk("duct", ["s1-s2", "s3-s4"])
    topology.add_shared_risk("alone", ["s5-s1"])
    return topology


def test_names_say_what_fails_at_once(ring: Topology) -> None:
    links = {name: ring.find_link(name) for name in failures.link_names(ring)}
    for name, of_links, switches, words in (
        ("s1-s2", ["s1-s2"], (), "link"),
        ("s2", [], ("s2",), "switch"),
        ("duct", ["s1-s2", "s3-s4"], (), "shared risk group"),
        ("s1-s2+s2-s3", ["s1-s2", "s2-s3"], (), "pair of links"),
        ("s1-s2+s2-s3+s3-s4", ["s1-s2", "s2-s3", "s3-s4"], (), "set of links"),
        ("s1+s2", [], ("s1", "s2"), "pair of switches"),
        ("s1-s2+s4", ["s1-s2"], ("s4",), "set of links and switches"),
    ):
        assert failures.read(ring, name).names == (name,)
        found = failures.failing(ring, name)
        assert found == (tuple(links[each] for each in of_links), switches)
        assert failures.kind(ring, name) == words
        at = {i for i, link in enumerate(ring.links) if {link.a, link.b} & set(switches)}
        assert failures.links_down(ring, name) == {*found.links, *at}
        assert failures.cut_off(ring, name) == {f"h{switch[1:]}" for switch in switches}
        single = name if "+" not in name and name != "duct" else None
        assert failures.single(ring, name) == single
    assert failures.single(ring, "alone") == "s5-s1"


def test_all_pairs_or_as_many_as_are_drawn(ring: Topology) -> None:
    every = failures.read(ring, "pairs")
    assert len(every.names) == len(set(every.names)) == 10 and not every.note
    some = failures.read(ring, "pairs:4")
    assert len(some.names) == 4 and set(some.names) < set(every.names)
    assert some.note == "The failures are 4 of 10 pairs of links, drawn with seed 1."
    assert failures.read(ring, "pairs:4,seed=1") == some and failures.read(ring, "pairs:4,seed=2").names != some.names
    assert failures.read(ring, "pairs:10").names == every.names
    large = failures.read(load("waxman:40"), "pairs")
    assert len(large.names) == failures.MOST_PAIRS and "drawn with seed 1" in large.note


def test_sets_are_drawn_each_once(ring: Topology) -> None:
    three = failures.read(ring, "random:3")
    assert len(three.names) == math.comb(5, 3) and not three.note
    assert all(failures.kind(ring, name) == "set of links" for name in three.names)
    both = failures.read(ring, "random:2,draws=30,of=both,seed=3")
    assert (
        len(set(both.names)) == 30
        and both.note == "The failures are 30 of 45 sets of 2 links and switches, drawn with seed 3."
    )
    assert {failures.kind(ring, name) for name in both.names} >= {"pair of links", "set of links and switches"}
    assert failures.read(ring, "random:1,of=switches").names == tuple(ring.switches)
    # Every set is as likely as another: of 10 pairs, 3,000 draws of one each.
    counts: dict[str, int] = {}
    for seed in range(3000):
        (name,) = failures.read(ring, f"random:2,draws=1,seed={seed}").names
        counts[name] = counts.get(name, 0) + 1
    assert len(counts) == 10 and all(abs(count - 300) < 5 * math.sqrt(300) for count in counts.values())


def test_groups_of_the_largest_part_have_its_links() -> None:
    topology = Topology("parts")
    for name in ("x1", "x2", "s1", "s2", "s3"):
        topology.add_switch(name)
    for a, b in (("x1", "x2"), ("s1", "s2"), ("s2", "s3")):
        topology.add_link(a, b)
    topology.add_shared_risk("both", ["x1-x2", "s2-s3"])
    topology.add_shared_risk("gone", ["x1-x2"])
    part = topology.largest_part()
    assert {name: [part.link_names()[i] for i in links] for name, links in part.shared_risks.items()} == {
        "both": ["s2-s3"]
    }


@pytest.mark.parametrize(
    ("topology", "fail", "message"),
    [
        ("ring:4", "srlg", "ring_4 has no shared risk groups; its file has them under srlg, by name"),
        ("ring:4", "pairs:7", "--fail pairs:7: there are 6 pairs of links; draw 1 to 6 of them"),
        ("ring:4", "pairs:0", "--fail pairs:0: there are 6 pairs of links; draw 1 to 6 of them"),
        ("ring:4", "pairs:2,3", "--fail pairs:2,3: write pairs:N or pairs:N,seed=S with whole numbers"),
        ("line:2", "pairs", "--fail pairs: line_2 has one link between switches, and no two that could fail"),
        ("ring:4", "random:5", "--fail random:5: ring_4 has 4 of what should fail; draw 1 to 4"),
        ("ring:4", "random:two", "--fail random:two: write random:K or random:K,draws=N,seed=S,of=links"),
        ("ring:4", "random:2,draws=7", "--fail random:2,draws=7: there are 6 sets of 2 links; draw 1 to 6 of them"),
        ("ring:4", "random:2,of=hosts", "--fail random:2,of=hosts: write random:K"),
        ("ring:4", "s1-s2+s2-s1", "--fail s1-s2+s2-s1: something is named twice"),
        ("ring:4", "s1-s2+h1", "'h1' is a host; nothing protects against that"),
        ("ring:4", "s1-s2+h1-s1", "link h1-s1 is the only one of host 'h1'"),
        ("ring:4", "s1+", "there is no switch '' (known: s1, s2, s3, s4; a link is A-B"),
        ("ring:4", "duct", "there is no switch 'duct' (known: s1, s2, s3, s4; a link is A-B"),
    ],
)
def test_what_cannot_fail_is_one_sentence(topology: str, fail: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario.build(topology, fail=fail)
    assert str(caught.value).startswith(message), caught.value
