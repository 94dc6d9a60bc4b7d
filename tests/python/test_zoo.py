"""The 276 networks of the Internet Topology Zoo are read whole, written, read again, and a sample of them is compared.

S. Knight, H. X. Nguyen, N. Falkner, R. Bowden and M. Roughan, The Internet Topology Zoo, IEEE JSAC 29(9), 2011. The data are not in
this repository: they are looked for in ``shared/zoo`` beside it, or where ``HOLDFAST_ZOO`` says (a folder of the ``.graphml`` files
from https://topology-zoo.org), and without them all tests here are skipped.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest
from holdfast_command import holdfast_process

from holdfast.errors import TopologyWarning
from holdfast.topologies import load
from holdfast.topology import Topology

ZOO = Path(os.environ.get("HOLDFAST_ZOO") or Path(__file__).parents[3] / "shared" / "zoo")
FILES = sorted(ZOO.glob("*.graphml"))

pytestmark = pytest.mark.skipif(
    not FILES, reason="neither HOLDFAST_ZOO nor ../shared/zoo has the Internet Topology Zoo"
)

XML = "{http://graphml.graphdrawing.org/xmlns}"
UNITS = {"K": 1e3, "M": 1e6, "G": 1e9}


def read(file: Path) -> tuple[Topology, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TopologyWarning)
        topology = load(str(file))
    return topology, [str(each.message) for each in caught]


def test_all_are_there() -> None:
    assert len(FILES) == 276


def test_every_network_has_the_nodes_links_and_rates_of_its_file() -> None:
    told: Counter[str] = Counter()
    for file in FILES:
        root = ElementTree.parse(file).getroot()
        names = {key.get("id"): key.get("attr.name", "") for key in root.iter(f"{XML}key")}
        edges = [
            (edge, {names[each.get("key")]: each.text or "" for each in edge.iter(f"{XML}data")})
            for edge in root.iter(f"{XML}edge")
            if edge.get("source") != edge.get("target")
        ]
        topology, said = read(file)
        assert len(topology.switches) == len(list(root.iter(f"{XML}node"))), file
        links = [link for link in topology.links if link.a in topology.switches and link.b in topology.switches]
        assert len(links) == len(edges), file
        loops = len(list(root.iter(f"{XML}edge"))) - len(edges)
        assert sum("to itself" in each for each in said) == loops, (file, said)
        assumed = labelled = 0
        for link, (_, data) in zip(links, edges, strict=True):
            if "LinkSpeedRaw" in data:
                assert link.rate_bps == float(data["LinkSpeedRaw"]), (file, link)
            elif "LinkSpeed" in data:
                told["LinkSpeed"] += 1
                assert link.rate_bps == pytest.approx(float(data["LinkSpeed"]) * UNITS[data["LinkSpeedUnits"]]), (
                    file,
                    link,
                )
            elif link.rate_bps == 10**9 and "LinkLabel" not in data:
                assumed += 1
            else:
                labelled += link.rate_bps != 10**9
        said_of_all = "\n".join(said)
        found = re.search(r": (\d+) of \d+ links? ha(?:s|ve) no rate in the file, and 1 Gb/s here", said_of_all)
        assert (int(found[1]) if found else 0) >= assumed, (file, said)
        of_label = re.search(r": (\d+) rates? from the text of LinkLabel", said_of_all)
        assert (int(of_label[1]) if of_label else 0) >= labelled, (file, said)
        told.update(assumed=bool(found), labelled=bool(of_label))
    assert told["LinkSpeed"] == 55
    assert told["assumed"] > 200
    assert told["labelled"] > 30


def test_every_network_is_the_same_when_it_was_written_and_read_again(tmp_path: Path) -> None:
    apart = 0
    for file in FILES:
        topology, said = read(file)
        if len(topology.switches) > 100:
            continue
        path = tmp_path / f"{file.stem}.yaml"
        path.write_text(topology.to_yaml(), encoding="utf-8")
        again, warned = read(path)
        assert (again.name, again.switches, again.hosts, again.links) == (
            topology.name,
            topology.switches,
            topology.hosts,
            topology.links,
        )
        connected = len(topology.parts()) == 1
        apart += not connected
        assert any("no path leads" in each for each in said) != connected
        assert any("there is no path between" in each for each in warned) != connected
        part = topology.largest_part()
        part.check()
        assert list(part.switches) == sorted(topology.parts()[0], key=list(topology.switches).index)
        assert connected == (len(part.links) == len(topology.links))
    assert apart > 10


@pytest.mark.parametrize(
    ("name", "failures", "arguments"),
    [
        ("Abilene", 1, ("--fail", "New_York-Chicago")),
        ("Nsfnet", 2, ("--fail", "sample:2", "--mechanisms", "reroute,ip-frr")),
        ("Nordu1989", 1, ("--fail", "Copenhagen-Stockholm", "--mechanisms", "reroute,1+1")),
        ("Bandcon", 3, ("--largest", "--fail", "sample:3", "--mechanisms", "mpls-local")),
    ],
)
def test_a_sample_is_compared(name: str, failures: int, arguments: tuple[str, ...], tmp_path: Path) -> None:
    times = ("--before-s", "0.3", "--down-s", "0.5", "--after-s", "0.2")
    found = holdfast_process("compare", str(ZOO / f"{name}.graphml"), *arguments, *times, cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    summary = json.loads((tmp_path / "out/compare/summary.json").read_text())
    assert summary["failures"] == failures
    lost = {each["mechanism"]: each["lost_mean"] for each in summary["mechanisms"]}
    assert len(lost) > 1
    assert all(lost["static"] >= each for each in lost.values()), lost
    # What the file does not say is said beside the ranking.
    assert any("no rate in the file" in note for note in summary["notes"]) == (name in ("Nsfnet", "Bandcon")), summary[
        "notes"
    ]
