"""GraphML files of all kinds, against an independent count of their elements: nothing is lost or assumed without a word."""

from __future__ import annotations

import re
import time
import unicodedata
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

import pytest
from holdfast_command import holdfast
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import TopologyError, TopologyWarning
from holdfast.topologies import link_rates, load
from holdfast.topology import Topology

GRAPHML = "http://graphml.graphdrawing.org/xmlns"


def read(path: Path, content: str | bytes, *, largest: bool = False) -> tuple[Topology, list[str]]:
    """Return the topology in a file and the warnings about it."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        topology = load(str(path), hosts=False, largest=largest)
    assert all(issubclass(each.category, TopologyWarning) for each in caught)
    said = [str(each.message) for each in caught]
    assert all(each.startswith(f"{path}: ") and "\n" not in each for each in said)
    return topology, [each.removeprefix(f"{path}: ") for each in said]


def graph(*parts: str, keys: str = "", kind: str = "undirected") -> str:
    return f'<graphml xmlns="{GRAPHML}">{keys}<graph edgedefault="{kind}">{"".join(parts)}</graph></graphml>'


def key(name: str, of: str = "node", kind: str = "string", default: str | None = None) -> str:
    inside = "" if default is None else f"<default>{default}</default>"
    return f'<key id="{name}" for="{of}" attr.name="{name}" attr.type="{kind}">{inside}</key>'


def node(name: str, **data: str) -> str:
    return f'<node id="{name}">{_data(data)}</node>'


def edge(a: str, b: str, **data: str) -> str:
    return f'<edge source="{a}" target="{b}">{_data(data)}</edge>'


def _data(data: dict[str, str]) -> str:
    return "".join(f'<data key="{name}">{text}</data>' for name, text in data.items())


SPEEDS = key("LinkSpeed", "edge") + key("LinkSpeedUnits", "edge") + key("LinkSpeedRaw", "edge", "double")
AB = node("a") + node("b")


@pytest.mark.parametrize(
    ("data", "rate_bps"),
    [
        ({"LinkSpeed": "34", "LinkSpeedUnits": "M"}, 34_000_000),
        ({"LinkSpeed": "2.5", "LinkSpeedUnits": "G"}, 2_500_000_000),
        ({"LinkSpeed": " 64 ", "LinkSpeedUnits": "kbps"}, 64_000),
        ({"LinkSpeed": "1", "LinkSpeedUnits": "Tbit/s"}, 10**12),
        ({"LinkSpeed": "0.02", "LinkSpeedUnits": "G", "LinkSpeedRaw": "20000000.0"}, 20_000_000),
        ({"LinkSpeed": "10 Gbps"}, 10**10),
        ({"LinkSpeedRaw": "1.55e8"}, 155_000_000),
        ({"LinkLabel": "STM-16"}, 2_488_320_000),
        ({"LinkLabel": "Ring 2.5 Gbit/s"}, 2_500_000_000),
    ],
)
def test_a_rate_is_read_wherever_the_file_has_it(data: dict[str, str], rate_bps: int, tmp_path: Path) -> None:
    keys = SPEEDS + key("LinkLabel", "edge")
    topology, said = read(tmp_path / "net.graphml", graph(AB, edge("a", "b", **data), keys=keys))
    assert [link.rate_bps for link in topology.links] == [rate_bps]
    assert not any("no rate" in each for each in said)
    # As a default of the keys, too, and behind a value of its own that another edge has.
    keys = "".join(
        key(name, "edge", default=data.get(name))
        for name in ("LinkSpeed", "LinkSpeedUnits", "LinkLabel", "LinkSpeedRaw")
    )
    topology, _ = read(
        tmp_path / "net.graphml", graph(AB, edge("a", "b"), edge("a", "b", LinkSpeedRaw="5e6"), keys=keys)
    )
    assert [link.rate_bps for link in topology.links] == [rate_bps, 5_000_000]


@pytest.mark.parametrize(
    "data", [{}, {"LinkSpeed": "34"}, {"LinkSpeed": "fast", "LinkSpeedUnits": "M"}, {"LinkSpeedRaw": ""}]
)
def test_a_rate_that_is_assumed_is_said(data: dict[str, str], tmp_path: Path) -> None:
    edges = edge("a", "b", **data) + edge("a", "b", LinkSpeedRaw="1e6") + edge("b", "a", **data)
    topology, said = read(tmp_path / "net.graphml", graph(AB, edges, keys=SPEEDS))
    assert [link.rate_bps for link in topology.links] == [10**9, 10**6, 10**9]
    assert "2 of 3 links have no rate in the file, and 1 Gb/s here: a-b, b-a#3" in said


@pytest.mark.parametrize(
    ("label", "rate_bps"),
    [
        ("45 Mbps DS-3", 45e6),
        ("OC192/STM64", 9953.28e6),
        ("OC-48", 2488.32e6),
        ("STM-4x2", 1244.16e6),
        ("2x10Gb/s", 20e9),
        ("8*GbE", 8e9),
        ("3 x 622Mbps", 1866e6),
        ("E1", 2.048e6),
        ("9600 bit/s", 9600),
        ("10GE", 10e9),
        *((text, None) for text in ("1-20Gbps", "< 10 Gbps", "<45Mb", "155Mbs/1Gbps", "CANARIE N*10Gbit/s", "10 GB/s")),
        *(
            (text, None)
            for text in ("TAT-14", "Completion 2007-2008", "1Q 2003", "Blue", "GigE/FE/ATM", "9" * 400 + " Gbps")
        ),
    ],
)
def test_a_label_tells_a_rate_if_it_tells_one(label: str, rate_bps: float | None) -> None:
    assert link_rates.label_bps(label) == (None if rate_bps is None else pytest.approx(rate_bps))


def test_a_label_of_any_length_takes_no_time() -> None:
    begin_s = time.process_time()
    for label in ("1" + " " * 10**6, "1 " * 10**6, "1-" * 10**6, "9" * 10**6):
        assert link_rates.label_bps(label) is None
    assert time.process_time() - begin_s < 1


def test_names_keep_their_script(tmp_path: Path) -> None:
    labels = [
        "Zürich",
        "北京",
        "Москва",
        "Łódź",
        "दिल्ली",
        "القاهرة",
        "São Paulo (BR)",
        "서울",
        "Zu\u0308rich",
        "5",
        "No",
    ]
    nodes = "".join(node(str(i), label=text) for i, text in enumerate(labels))
    edges = "".join(edge("0", str(i)) for i in range(1, len(labels)))
    topology, said = read(tmp_path / "net.graphml", graph(nodes, edges, keys=key("label")))
    names = [*labels[:6], "São_Paulo_BR", "서울", "Zürich_2", "5", "No"]
    assert list(topology.switches) == names
    assert "names that are taken get a number: Zürich_2" in said
    (tmp_path / "net.yaml").write_text(topology.to_yaml(), encoding="utf-8")
    assert "北京" in topology.to_yaml()
    assert list(load(str(tmp_path / "net.yaml")).switches) == names
    (tmp_path / "net.yaml").write_text(topology.to_yaml(ascii_only=True), encoding="ascii")
    assert list(load(str(tmp_path / "net.yaml")).switches) == names


@pytest.mark.parametrize("kind", ["int", "long", "double", "boolean", "string", "integer", "strange"])
def test_labels_of_any_type_are_names(kind: str, tmp_path: Path) -> None:
    nodes = node("x", label="5") + node("y", label="5") + node("z") + node("w", label="1.50")
    edges = edge("x", "y") + edge("y", "z") + edge("z", "w")
    topology, said = read(tmp_path / "net.graphml", graph(nodes, edges, keys=key("label", kind=kind)))
    assert list(topology.switches) == ["5", "5_2", "z", "1_50"]
    assert "1 node without a label: z" in said


SQUARE = graph(node("a") + node("b") + node("c"), edge("a", "b"), edge("b", "c"))


@pytest.mark.parametrize(
    ("content", "nodes", "links", "said"),
    [
        (SQUARE.replace(f' xmlns="{GRAPHML}"', ""), 3, 2, []),
        (re.sub(r"<(/?)(\w)", r"<\1g:\2", SQUARE).replace("xmlns=", "xmlns:g="), 3, 2, []),
        (
            SQUARE.replace("</graph>", '<hyperedge><endpoint node="a"/><endpoint node="b"/></hyperedge></graph>'),
            3,
            2,
            ["1 hyperedge left out"],
        ),
        (
            SQUARE.replace('<node id="a"></node>', '<node id="a"><port name="n"/><port name="s"/></node>').replace(
                'source="a"', 'source="a" sourceport="n"'
            ),
            3,
            2,
            ["1 edge at ports of nodes: the ports are not used", "2 ports left out"],
        ),
        (
            SQUARE.replace(
                "</node><node",
                f"<graph edgedefault='directed'>{node('d')}{node('e')}{edge('d', 'e')}</graph></node><node",
                1,
            ),
            5,
            3,
            [
                "1 nested graph read as parts of the graph around",
                "1 edge of one direction alone: the links carry both ways",
            ],
        ),
        (
            SQUARE.replace("</graphml>", f"<graph>{node('a')}{node('d')}{edge('a', 'd')}</graph></graphml>"),
            3,
            2,
            ["the first of 2 graphs is taken", "not taken in all: 1 graph, 2 nodes, 1 edge"],
        ),
        (
            SQUARE.replace("</graph>", f"<group>{node('d')}{edge('a', 'd')}</group></graph>"),
            3,
            2,
            ["<group> in <graph> is not GraphML: left out (1 of it)", "not taken in all: 1 node, 1 edge"],
        ),
        (
            SQUARE.replace("</graph>", "<x:node xmlns:x='urn:x'/></graph>"),
            3,
            2,
            ["<node of urn:x> in <graph> is not GraphML: left out (1 of it)", "not taken in all: 1 node"],
        ),
        (
            SQUARE.replace("</graph>", f"</graph>{node('d')}"),
            3,
            2,
            ["<node> in <graphml> is not GraphML: left out (1 of it)", "not taken in all: 1 node"],
        ),
        (
            SQUARE.replace("</graph>", edge("a", "b") + edge("b", "a") + edge("c", "c") * 2 + "</graph>"),
            3,
            4,
            ["2 edges from c to itself are left out"],
        ),
        (
            graph(AB, edge("a", "b"), edge("b", "a"), edge("b", "a"), kind="directed"),
            2,
            2,
            [
                "1 edge back: each is the other way of a link",
                "1 edge of one direction alone: the links carry both ways",
            ],
        ),
        (
            SQUARE.replace(' edgedefault="undirected"', ""),
            3,
            2,
            ["a graph does not say edgedefault; its edges are taken as undirected"],
        ),
        (SQUARE.replace("<edge", "some text<edge"), 3, 2, ["text in <graph> is not GraphML: left out (2 of it)"]),
        (
            SQUARE.replace("</node>", '<data key="k">v</data></node>'),
            3,
            2,
            ["data of 'k', a key that is not declared, left out (3 of it)"],
        ),
        (SQUARE.replace("</node>", "<!-- <node id='z'/> --><?php <node id='z'/> ?></node>"), 3, 2, []),
        ("\ufeff" + SQUARE, 3, 2, []),
        (('<?xml version="1.0" encoding="UTF-16"?>' + SQUARE).encode("utf-16"), 3, 2, []),
        (('<?xml version="1.0" encoding="Shift_JIS"?>' + SQUARE).encode("shift_jis"), 3, 2, []),
        (('<?xml version="1.0" encoding="gb18030"?>' + SQUARE.replace('"b"', '"北京"')).encode("gb18030"), 3, 2, []),
        (
            ('<?xml version="1.0" encoding="iso-8859-2"?>' + SQUARE.replace('"b"', '"Łódź"')).encode("iso-8859-2"),
            3,
            2,
            [],
        ),
    ],
)
def test_whatever_else_graphml_holds_is_taken_or_said(
    content: str | bytes, nodes: int, links: int, said: Sequence[str], tmp_path: Path
) -> None:
    topology, all_said = read(tmp_path / "net.graphml", content)
    assert (len(topology.switches), len(topology.links)) == (nodes, links)
    ordinary = ("without a label", "no rate", "without coordinates", "no path leads")
    assert [each for each in all_said if not any(word in each for word in ordinary)] == list(said)


DTD = '<?xml version="1.0"?>\n<!DOCTYPE graphml [<!ENTITY city "Zürich"><!ENTITY outside SYSTEM "/etc/passwd">'
LOL = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (graph(AB, edge("a", "x")), ":1: an edge between 'a' and 'x': there is no node 'x'"),
        (graph(AB, "\n", node("a")), ":2: node 'a' is declared twice (first in line 1)"),
        (graph("<node/>"), ":1: <node> without 'id'"),
        (graph(AB, '<edge source="a"/>'), ":1: <edge> without 'target'"),
        (graph(AB, '<edge source="a" target="b" directed="maybe"/>'), ":1: directed is 'maybe'; it is true or false"),
        (graph(AB, kind="sideways"), ":1: edgedefault is 'sideways'; it is directed or undirected"),
        (graph(AB, keys="<key/>"), ":1: <key> without 'id'"),
        (graph(AB, keys=key("k") + key("k")), ":1: key 'k' is declared twice (first in line 1)"),
        (graph("<node id='a'><data>5</data></node>"), ":1: <data> without 'key'"),
        (graph(node("a") * 0), ": the graph has no nodes"),
        (f'<graphml xmlns="{GRAPHML}"/>', ": not a graph in GraphML: there is no <graph>"),
        ("<svg/>", ":1: the first element is <svg>, not <graphml> of GraphML"),
        ("", ":1: not XML: no element found"),
        ("<graphml>\n<graph>", ":2: not XML: no element found"),
        (graph(AB) + "<graphml/>", ":1: not XML: junk after document element"),
        (SQUARE.encode("utf-16")[:-1], ":1: not XML: "),
        (SQUARE.replace('"a"', '"ä"').encode("latin-1"), ":1: not XML: not well-formed (invalid token)"),
        ('<?xml version="1.0" encoding="klingon"?>' + SQUARE, ": not XML in an encoding that can be read (klingon)"),
        (b'<?xml version="1.0" encoding="shift_jis"?>\x81', ": not XML in an encoding that can be read (shift_jis)"),
        (
            DTD + "]>" + graph(node("a", label="&outside;"), keys=key("label")),
            ":2: an entity refers to another file, which is not read",
        ),
        (
            DTD.replace(" [", ' SYSTEM "x.dtd" [') + "]>" + graph(node("a", label="&nowhere;"), keys=key("label")),
            ":2: the entity &nowhere; is not declared in the file",
        ),
        (DTD + "]>" + graph(node("a", label="&nowhere;"), keys=key("label")), ":2: not XML: undefined entity"),
        (
            DTD + '<!ENTITY l0 "' + "lol" * 100 + '">' + LOL + "]>" + graph(node("a", label="&l9;")),
            ":2: not XML: limit on input amplification",
        ),
        (
            graph('<node id="a"><data key="label">x</data><data key="label">y</data></node>', keys=key("label")),
            ":1: node 'a' has two values of 'label'",
        ),
    ],
)
def test_a_file_that_is_no_graph_is_one_sentence_with_its_line(
    content: str | bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "net.graphml"
    with pytest.raises(TopologyError) as caught:
        read(path, content)
    assert str(caught.value).startswith(f"{path}{message}"), caught.value
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["abc", "NaN", "INF", "-INF", "1e400", "-1e400", "91", "1_0", "٤٢", "0x10", "1,5", "4 2"]
)
def test_a_place_that_is_no_number_or_not_on_earth_is_one_sentence(text: str, tmp_path: Path) -> None:
    keys = key("Latitude") + key("Longitude")
    with pytest.raises(
        TopologyError, match=r"net.graphml: node 'a': (Latitude and Longitude are not|latitude .* is not a)"
    ):
        read(tmp_path / "net.graphml", graph(node("a", Latitude=text, Longitude="8"), keys=keys))


@pytest.mark.parametrize("text", ["abc", "NaN", "INF", "-5", "0", "1e-9", "1e400", "1e30", "1_000", "٤٢"])
@pytest.mark.parametrize("name", ["LinkSpeedRaw", "LinkSpeed"])
def test_a_number_that_is_no_rate_is_one_sentence(name: str, text: str, tmp_path: Path) -> None:
    data = {name: text, "LinkSpeedUnits": "M" if name == "LinkSpeed" else ""}
    try:
        topology, said = read(tmp_path / "net.graphml", graph(AB, edge("a", "b", **data), keys=SPEEDS))
    except TopologyError as error:
        assert re.search(r"net.graphml: link a-b: (LinkSpeed|rate_bps)", str(error)), error
    else:
        # What is no number at all may be words that people wrote; then the default is said.
        assert name == "LinkSpeed"
        assert link_rates.number(text) is None
        assert any("no rate in the file" in each for each in said)
        assert topology.links[0].rate_bps == 10**9


def test_data_of_yed_gives_the_label(tmp_path: Path) -> None:
    keys = '<key for="node" id="d6" yfiles.type="nodegraphics"/><key for="edge" id="d9" yfiles.type="edgegraphics"/>'
    label = '<y:NodeLabel x="4">{}<y:LabelModel/></y:NodeLabel><y:NodeLabel>below</y:NodeLabel>'
    nodes = "".join(
        f'<node id="n{i}"><data key="d6"><y:ShapeNode><y:Geometry height="30"/>{label.format(text)}</y:ShapeNode></data></node>'
        for i, text in enumerate(("Köln", "<![CDATA[A & B]]>", ""))
    )
    edges = '<edge source="n0" target="n1"><data key="d9"><y:PolyLineEdge><y:node/></y:PolyLineEdge></data></edge>'
    text = graph(nodes, edges, edge("n1", "n2"), keys=keys).replace(
        "xmlns=", 'xmlns:y="http://www.yworks.com/xml/graphml" xmlns=', 1
    )
    topology, said = read(tmp_path / "net.graphml", text)
    assert list(topology.switches) == ["Köln", "A_B", "n2"]
    assert "1 node without a label: n2" in said
    # Elements in other data are said: their text counts.
    nodes = '<node id="n0"><data key="label"><b>Köln</b> am Rhein</data></node>'
    topology, said = read(tmp_path / "net.graphml", graph(nodes, keys=key("label")))
    assert list(topology.switches) == ["Köln_am_Rhein"]
    assert "1 datum with elements in it: their text alone is taken" in said


def test_a_group_of_yed_is_a_node_if_an_edge_ends_at_it(tmp_path: Path) -> None:
    group = (
        f'<node id="g" yfiles.foldertype="group"><graph edgedefault="undirected">{node("a")}{node("b")}</graph></node>'
    )
    topology, said = read(tmp_path / "net.graphml", graph(group, node("c"), edge("a", "b"), edge("b", "c")))
    assert (list(topology.switches), len(topology.links)) == (["a", "b", "c"], 2)
    assert "1 group without edges left out; the nodes in it are taken" in said
    topology, _ = read(
        tmp_path / "net.graphml", graph(group, node("c"), edge("a", "b"), edge("b", "g"), edge("g", "c"))
    )
    assert list(topology.switches) == ["g", "a", "b", "c"]
    alone = '<node id="g" yfiles.foldertype="folder"><graph edgedefault="undirected"/></node>'
    with pytest.raises(TopologyError, match="no nodes but groups"):
        read(tmp_path / "net.graphml", graph(alone))


def test_both_ways_of_a_directed_link_have_their_own_rate(tmp_path: Path) -> None:
    edges = (
        edge("a", "b", LinkSpeedRaw="8e6")
        + edge("b", "a", LinkSpeedRaw="1e6")
        + edge("a", "b", LinkSpeedRaw="2e6")
        + edge("b", "a")
    )
    topology, _ = read(tmp_path / "net.graphml", graph(AB, edges, keys=SPEEDS, kind="directed"))
    rates = [(link.rate_bps, link.reverse and link.reverse.rate_bps) for link in topology.links]
    assert rates == [(8_000_000, 1_000_000), (2_000_000, None)]


def test_contradictions_are_said(tmp_path: Path) -> None:
    edges = edge("a", "b", LinkSpeedRaw="1e7", LinkSpeed="34", LinkSpeedUnits="M")
    topology, said = read(tmp_path / "net.graphml", graph(AB, edges, keys=SPEEDS))
    assert topology.links[0].rate_bps == 10**7
    assert "LinkSpeedRaw, LinkSpeed and LinkLabel say different rates, and the first counts: a-b" in said


TWO_PARTS = graph(
    *(node(name) for name in "zabcd"), edge("a", "b"), edge("b", "c"), edge("c", "a"), edge("d", "z"), edge("a", "b")
)


def test_a_graph_in_parts_is_kept_or_its_largest_part_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "net.graphml"
    topology, said = read(file, TWO_PARTS)
    assert len(topology.switches) == 5
    assert "no path leads from a to z, d (--largest leaves them out)" in said
    part, said = read(file, TWO_PARTS, largest=True)
    assert (list(part.switches), part.link_names()) == (["a", "b", "c"], ["a-b", "b-c", "c-a", "a-b#2"])
    assert "only the largest part, 3 of 5 switches; without z, d" in said
    for arguments, counts in (((), "5 switches, 5 hosts, 10 links"), (("--largest",), "3 switches, 3 hosts, 7 links")):
        written = holdfast("topology", "net.graphml", "--yaml", *arguments, cwd=tmp_path)
        assert written.returncode == 0, written.stderr
        (tmp_path / "net.yaml").write_text(written.stdout)
        again = holdfast("topology", "net.yaml", cwd=tmp_path)
        assert again.returncode == 0, again.stderr
        assert counts in again.stdout
    refused = holdfast("compare", "net.graphml", cwd=tmp_path)
    assert refused.returncode == 1
    assert "no path between hosts" in refused.stderr
    assert "--largest compares the largest part" in refused.stderr.replace("\n", " ")


def test_many_nodes_of_one_name_take_no_longer_than_others(tmp_path: Path) -> None:
    begin_s = time.process_time()
    nodes = "".join(node(str(i), label="None") for i in range(20_000))
    topology, _ = read(tmp_path / "net.graphml", graph(nodes, keys=key("label")))
    assert list(topology.switches)[-1] == "None_20000"
    assert time.process_time() - begin_s < 20


# The generator. It writes files from a few nodes and edges in all the ways above together.

LABELS = st.one_of(
    st.sampled_from(
        ["Köln", "北京", "दिल्ली", "A & B", "x < y", "]] >", "", " ", "5", "h1", "None", "Köln", "a", "a.b", "?"]
    ),
    st.integers(-5, 5).map(str),
    st.text(st.characters(blacklist_categories=("Cs", "Cc", "Cn", "Co")), max_size=5),
)
NUMBERS = st.sampled_from(["0", "8", "-7.5", "1e1", "", "NaN", "INF", "1e400", "91", "abc", "8", "8", "8"])
RATES = st.sampled_from(["34", "2.5", "1", "155", "", "0", "-1", "NaN", "fast", "1e9", "10", "10"])
UNITS = st.sampled_from(["M", "G", "K", "", "Mbps", "parsec", "M", "G"])


@dataclass
class Written:
    """A file in the making."""

    draw: st.DrawFn
    prefix: str = ""

    def chance(self, one_in: int = 6) -> bool:
        return self.draw(st.integers(1, one_in)) == 1

    def tag(self, name: str, inside: str = "", /, **attributes: str) -> str:
        given = "".join(f" {key.replace('__', '.')}={quoteattr(value)}" for key, value in attributes.items())
        return f"<{self.prefix}{name}{given}>{inside}</{self.prefix}{name}>"

    def data(self, name: str, text: str) -> str:
        shown = f"<![CDATA[{text}]]>" if self.chance() and "]]>" not in text else escape(text)
        return self.tag("data", shown, key=f"k{name}")

    def node(self, name: str, inside: str = "") -> str:
        parts = [self.data("label", self.draw(LABELS))] if not self.chance() else []
        if not self.chance(3):
            parts += [self.data(axis, self.draw(NUMBERS)) for axis in ("Latitude", "Longitude") if not self.chance()]
        if self.chance(10):
            parts.append(self.tag("port", name="p"))
        return self.tag("node", "".join(parts) + inside, id=name)

    def edge(self, names: Sequence[str]) -> str:
        ends = [self.draw(st.sampled_from(names)) for _ in range(2)]
        if self.chance(60):
            ends[1] = "nowhere"
        parts = []
        if not self.chance(3):
            parts.append(self.data("LinkSpeed", self.draw(RATES)))
            parts.append(self.data("LinkSpeedUnits", self.draw(UNITS)))
        if self.chance():
            parts.append(self.data("LinkSpeedRaw", self.draw(RATES)))
        more = {"directed": self.draw(st.sampled_from(["true", "false"]))} if self.chance() else {}
        return self.tag("edge", "".join(parts), source=ends[0], target=ends[1], **more)

    def graph(self, names: Sequence[str], nested: str = "") -> str:
        nodes = [self.node(name) for name in names]
        if nested:
            nodes[0] = self.node(names[0], nested)
        if self.chance(60):
            nodes.append(self.node(names[0]))
        edges = [self.edge(names) for _ in range(self.draw(st.integers(0, 6)))]
        if self.chance():
            edges.append(self.tag("hyperedge", "".join(self.tag("endpoint", node=name) for name in names[:2])))
        if self.chance():
            edges.append("<!-- <node id='no'/> -->")
        if self.chance(10):
            edges.append(f'<x:stray xmlns:x="urn:x">{self.tag("node", id="stray")}</x:stray>')
        if self.chance():
            edges, nodes = nodes, edges
        kind = self.draw(st.sampled_from([{"edgedefault": "undirected"}, {"edgedefault": "directed"}, {}]))
        return self.tag("graph", "".join(nodes + edges), **kind)

    def keys(self) -> str:
        label = self.draw(st.sampled_from(["string", "int", "double"]))
        kinds = {"label": ("node", label), "Latitude": ("node", "double"), "Longitude": ("node", "double")}
        kinds |= {
            "LinkSpeed": ("edge", "string"),
            "LinkSpeedUnits": ("edge", "string"),
            "LinkSpeedRaw": ("edge", "double"),
        }
        defaults = {"LinkSpeed": "10", "LinkSpeedUnits": "M", "label": "default"}
        return "".join(
            self.tag(
                "key",
                self.tag("default", defaults[name]) if name in defaults and self.chance() else "",
                id=f"k{name}",
                attr__name=name,
                attr__type=kind,
                **{"for": of},
            )
            for name, (of, kind) in kinds.items()
        )


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Generate the bytes of a GraphML file, valid or not."""
    form = draw(st.sampled_from(["default", "prefix", "none"]))
    it = Written(draw, "g:" if form == "prefix" else "")
    names = [f"n{i}" for i in range(draw(st.integers(1, 5)))]
    nested = it.graph([f"{names[0]}::{i}" for i in range(2)]) if it.chance() else ""
    graphs = it.graph(names, nested)
    if it.chance(10):
        graphs += it.graph(["other", "n0"])
    parts = [it.keys(), graphs]
    space = {"default": f' xmlns="{GRAPHML}"', "prefix": f' xmlns:g="{GRAPHML}"', "none": ""}[form]
    body = "".join(parts[::-1] if it.chance() else parts)
    text = f"<{it.prefix}graphml{space}>{body}</{it.prefix}graphml>"
    encoding = draw(st.sampled_from(["utf-8", "utf-16", "utf-8-sig", "ascii"]))
    if encoding in ("utf-16", "ascii"):
        text = f'<?xml version="1.0" encoding="{encoding}"?>{text}'
    return text.encode(encoding, "xmlcharrefreplace")


def local(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def number(pattern: str, said: Sequence[str]) -> int:
    """Return the sum of the numbers that ``pattern`` finds in sentences."""
    return sum(int(match[1]) for each in said for match in re.finditer(pattern, each))


def rate_of(element: ElementTree.Element, defaults: dict[str, str]) -> str:
    """Return ``yes``, ``no``, or ``wrong`` for an edge that has a rate, has none, or has an invalid one."""
    given = {each.get("key", "")[1:]: each.text or "" for each in element if local(each) == "data"}
    data = {name: text.strip() for name, text in (defaults | given).items()}
    raw, speed, units = data.get("LinkSpeedRaw", ""), data.get("LinkSpeed", ""), data.get("LinkSpeedUnits", "")
    if raw:
        return "yes" if raw[0].isdigit() and raw != "0" else "wrong"
    if speed in ("0", "-1", "NaN"):
        return "wrong"
    return "yes" if speed and speed[0].isdigit() and units not in ("", "parsec") else "no"


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(files())
def test_any_file_is_taken_as_it_is_counted_or_refused_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "net.graphml"
    root = ElementTree.fromstring(content)
    counts = Counter(local(each) for each in root.iter())
    try:
        topology, said = read(path, content)
    except TopologyError as error:
        assert str(error).startswith(str(path)), error
        assert "\n" not in str(error)
        return
    lost = {what: number(rf"not taken in all:.*?(\d+) {what}", said) for what in ("node", "edge")}
    assert counts["node"] == len(topology.switches) + lost["node"], said
    loops = number(r"^(\d+) edges from \S+ to itself are", said) + sum("the edge from" in each for each in said)
    back = number(r"^(\d+) edges? back:", said)
    assert counts["edge"] == len(topology.links) + lost["edge"] + loops + back, said
    if not lost["node"]:
        for what in ("hyperedge", "port"):
            assert number(rf"^(\d+) {what}s? left out", said) == counts[what], said
    first = next(each for each in root if local(each) == "graph")
    if not lost["node"] and not back:
        defaults = {
            key.get("attr.name", ""): inside.text or ""
            for key in root
            if local(key) == "key" and key.get("for") == "edge"
            for inside in key
        }
        edges = [each for each in first.iter() if local(each) == "edge" and each.get("source") != each.get("target")]
        kinds = Counter(rate_of(each, defaults) for each in edges)
        assert kinds["wrong"] == 0
        assert number(r"^(\d+) of \d+ links? ha(?:s|ve) no rate in the file", said) == kinds["no"], said
    labels = [
        unicodedata.normalize("NFC", inside.text)
        for each in first.iter()
        if local(each) == "node"
        for inside in each
        if inside.get("key") == "klabel" and inside.text and inside.text.isalpha()
    ]
    assert {text for text in labels if text.isalpha()} <= set(topology.switches)
    (tmp_path / "net.yaml").write_text(topology.to_yaml(), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopologyWarning)
        again = load(str(tmp_path / "net.yaml"))
    assert (again.name, again.switches, again.links) == (topology.name, topology.switches, topology.links)
