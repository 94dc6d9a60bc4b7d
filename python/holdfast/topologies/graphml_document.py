"""Reads GraphML as text: nodes, edges and their data. Nothing here knows switches or links.

The format is that of *The GraphML File Format* (http://graphml.graphdrawing.org/specification.html). A document is read element by
element. Everything that it holds is taken, refused in one sentence with its line, or counted in :attr:`Document.remarks`: a node
or an edge is never lost without a word.

- The first graph counts. Graphs inside nodes or edges are read into it; further graphs beside it are left out, with a remark.
- Edges that name nodes which are not declared, doubled identifiers and missing ones are errors.
- Hyperedges, ports, locators, and elements at a place where GraphML has none of that name, are left out, with a remark.
- The text of ``<data>`` is all text in it, whatever elements stand around it. In data for yEd (``yfiles.type``) it is the first
  label, under the name ``label``.
- A group of yEd (``yfiles.foldertype``) frames the nodes of its graph. It is no node unless an edge ends at it.
- Declared defaults (``<default>`` of ``<key>``) count for elements without that data, wherever in the file their key stands.
- Entities that stand in the file itself are replaced; nothing outside of the file is opened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn

from holdfast.errors import TopologyError
from holdfast.regular_files import MOST_TEXT_BYTES, read_regular
from holdfast.topologies.xml_file import new_parser, parse
from holdfast.wording import counted

CHILDREN: Final[Mapping[str, frozenset[str]]] = {
    "graphml": frozenset({"desc", "key", "data", "graph"}),
    "key": frozenset({"desc", "default"}),
    "graph": frozenset({"desc", "data", "node", "edge", "hyperedge", "locator"}),
    "node": frozenset({"desc", "data", "port", "graph", "locator"}),
    "edge": frozenset({"desc", "data", "graph"}),
    "hyperedge": frozenset({"desc", "data", "endpoint", "graph"}),
    "port": frozenset({"desc", "data", "port"}),
    "endpoint": frozenset({"desc"}),
}
"""The elements that may stand in each element, by GraphML's schema. Elements that are not listed may contain any."""

TRUE, FALSE = ("true", "1"), ("false", "0")

LABEL, MARK = "\0", "\1"
"""Characters that mark, in the text of data, the begin of a yEd label, and the begin or end of any other element; XML
allows neither in a text."""


@dataclass
class Element:
    """A node, an edge or the graph. ``data``: the text of each named datum, defaults included."""

    id: str
    line: int
    data: dict[str, str] = field(default_factory=dict)
    given: list[tuple[str, str, int]] = field(default_factory=list)
    """Key, text and line of each datum, as they stand in the file."""


@dataclass
class Edge(Element):
    """An edge between two nodes, by their identifiers."""

    source: str = ""
    target: str = ""
    directed: bool = False


@dataclass
class Document:
    """A graph as a file has it, and what was left out or assumed, one sentence each."""

    graph: Element
    nodes: list[Element]
    edges: list[Edge]
    remarks: list[str]


@dataclass
class _Key:
    """A declaration of data."""

    name: str
    of: str
    graphical: bool
    line: int
    default: str | None = None


def read(path: Path) -> Document:
    """Parse a file. Raises :class:`TopologyError`, with the line if it is known, if the file is not a GraphML file with a graph."""
    content = read_regular(path, MOST_TEXT_BYTES, TopologyError)
    return parse(path, content, lambda each: _Reader(path, each)).document()


class _Reader:
    """The state of reading: the elements around the current place, and what is known so far."""

    def __init__(self, path: Path, content: bytes | str) -> None:
        self._path = path
        self._keys: dict[str, _Key] = {}
        self._graph: Element | None = None
        self._nodes: dict[str, Element] = {}
        self._groups: set[str] = set()
        self._edges: list[Edge] = []
        self._elements: list[Element] = []
        self._open: list[str] = []
        self._owners: list[Element] = []
        self._directed: list[bool] = []
        self._namespace = ""
        self._text: list[str] | None = None
        self._key = ""
        self._inside = 0
        self._skipped = 0
        self._left_out: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._parser = new_parser(path)
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.Parse(content, True)

    def _error(self, message: str, line: int | None = None) -> NoReturn:
        raise TopologyError(f"{self._path}:{line or self._parser.CurrentLineNumber}: {message}")

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        namespace, _, tag = name.rpartition(" ")
        if not self._open:
            if tag != "graphml":
                self._error(f"the first element is <{tag}>, not <graphml> of GraphML")
            self._namespace = namespace
        elif self._skipped:
            self._skipped += 1
            if tag in ("node", "edge", "graph"):
                self._left_out[tag] += 1
            return
        elif self._text is not None:
            self._inside += 1
            self._text.append(LABEL if tag in ("NodeLabel", "EdgeLabel") else MARK)
            return
        elif namespace != self._namespace or tag not in CHILDREN[self._open[-1]]:
            self._skip(tag if namespace == self._namespace else f"{tag} of {namespace or 'no namespace'}", tag)
            return
        elif tag in ("desc", "locator", "port", "endpoint", "hyperedge"):
            self._counts[tag] += 1
            self._skipped = 1
            return
        self._begin(tag, attributes)

    def _skip(self, what: str, tag: str) -> None:
        """Skip an element that is not allowed at its place, and count it."""
        self._counts[f"<{what}> in <{self._open[-1]}>"] += 1
        self._skipped = 1
        if tag in ("node", "edge", "graph"):
            self._left_out[tag] += 1

    def _begin(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Process the start tag of an element of GraphML."""
        if tag == "graph" and not self._begin_graph(attributes):
            return
        if tag in ("data", "default"):
            self._text, self._inside = [], 0
            if tag == "data":
                self._key = self._attribute(attributes, "key", tag)
        elif tag == "key":
            self._begin_key(attributes)
        elif tag == "node":
            self._begin_node(attributes)
        elif tag == "edge":
            self._begin_edge(attributes)
        self._open.append(tag)

    def _attribute(self, attributes: Mapping[str, str], name: str, tag: str) -> str:
        if name not in attributes:
            self._error(f"<{tag}> without {name!r}")
        return attributes[name]

    def _begin_graph(self, attributes: Mapping[str, str]) -> bool:
        """Start a graph and return True; return False for a second graph beside the first, which is skipped."""
        element = Element(attributes.get("id", ""), self._parser.CurrentLineNumber)
        if self._graph is None:
            self._graph = element
            self._elements.append(element)
        elif self._open[-1] == "graphml":
            self._counts["further"] += 1
            self._left_out["graph"] += 1
            self._skipped = 1
            return False
        else:
            self._counts["nested"] += 1
        default = attributes.get("edgedefault")
        if default is None:
            self._counts["edgedefault"] += 1
        elif default not in ("directed", "undirected"):
            self._error(f"edgedefault is {default!r}; it is directed or undirected")
        self._directed.append(default == "directed")
        self._owners.append(element)
        return True

    def _begin_key(self, attributes: Mapping[str, str]) -> None:
        key = self._attribute(attributes, "id", "key")
        if key in self._keys:
            self._error(f"key {key!r} is declared twice (first in line {self._keys[key].line})")
        graphical = attributes.get("yfiles.type") in ("nodegraphics", "edgegraphics")
        name = "label" if graphical else attributes.get("attr.name", "")
        self._keys[key] = _Key(name, attributes.get("for", "all"), graphical, self._parser.CurrentLineNumber)
        self._key = key

    def _begin_node(self, attributes: Mapping[str, str]) -> None:
        node = Element(self._attribute(attributes, "id", "node"), self._parser.CurrentLineNumber)
        if node.id in self._nodes:
            self._error(f"node {node.id!r} is declared twice (first in line {self._nodes[node.id].line})")
        self._nodes[node.id] = node
        if "yfiles.foldertype" in attributes:
            self._groups.add(node.id)
        self._elements.append(node)
        self._owners.append(node)

    def _begin_edge(self, attributes: Mapping[str, str]) -> None:
        edge = Edge(attributes.get("id", ""), self._parser.CurrentLineNumber)
        edge.source, edge.target = (self._attribute(attributes, end, "edge") for end in ("source", "target"))
        directed = attributes.get("directed")
        if directed is not None and directed not in TRUE + FALSE:
            self._error(f"directed is {directed!r}; it is true or false")
        edge.directed = self._directed[-1] if directed is None else directed in TRUE
        self._counts["at ports"] += "sourceport" in attributes or "targetport" in attributes
        self._edges.append(edge)
        self._elements.append(edge)
        self._owners.append(edge)

    def _characters(self, text: str) -> None:
        if self._text is not None and not self._skipped:
            self._text.append(text)
        elif not self._skipped and text.strip():
            self._counts[f"text in <{self._open[-1]}>"] += 1

    def _end(self, _: str) -> None:
        if self._skipped:
            self._skipped -= 1
            return
        if self._text is not None and self._inside:
            self._inside -= 1
            self._text.append(MARK)
            return
        tag = self._open.pop()
        if tag == "data":
            assert self._text is not None
            if self._owners:
                self._owners[-1].given.append((self._key, "".join(self._text), self._parser.CurrentLineNumber))
            self._text = None
        elif tag == "default":
            self._keys[self._key].default = "".join(self._text or ())
            self._text = None
        elif tag in ("graph", "node", "edge"):
            self._owners.pop()
            if tag == "graph":
                self._directed.pop()

    def document(self) -> Document:
        """Check that edges end at known nodes, name their data, and return the document with remarks on what was left out."""
        if self._graph is None:
            raise TopologyError(f"{self._path}: not a graph in GraphML: there is no <graph>")
        if not self._nodes:
            raise TopologyError(f"{self._path}: the graph has no nodes")
        for edge in self._edges:
            for end in (edge.source, edge.target):
                if end not in self._nodes:
                    self._error(
                        f"an edge between {edge.source!r} and {edge.target!r}: there is no node {end!r}", edge.line
                    )
        for edge in self._edges:
            self._groups -= {edge.source, edge.target}
        self._counts["groups"] = len(self._groups)
        for group in self._groups:
            del self._nodes[group]
        if not self._nodes:
            raise TopologyError(f"{self._path}: the graph has no nodes but groups")
        strange: Counter[str] = Counter()
        for element in self._elements:
            self._name_data(element, strange)
        undeclared = [
            f"data of {key!r}, a key that is not declared, left out ({n} of it)" for key, n in strange.items()
        ]
        remarks = [*self._remarks(), *undeclared]
        return Document(self._graph, list(self._nodes.values()), self._edges, remarks)

    def _name_data(self, element: Element, strange: Counter[str]) -> None:
        """Fill the element's ``data`` from its given values, then from the defaults of keys for elements of its kind."""
        kind = "edge" if isinstance(element, Edge) else "graph" if element is self._graph else "node"
        for name, marked, line in element.given:
            key = self._keys.get(name)
            if key is None:
                strange[name] += 1
                continue
            text = self._plain(key, marked)
            if element.data.setdefault(key.name, text) != text and not key.graphical and key.name:
                what = f"{kind} {element.id!r}" if element.id else f"this {kind}"
                self._error(f"{what} has two values of {key.name!r}", line)
        given = {name for name, _, _ in element.given}
        for name, key in self._keys.items():
            if key.default is not None and name not in given and key.of in (kind, "all"):
                element.data.setdefault(key.name, self._plain(key, key.default))

    def _plain(self, key: _Key, marked: str) -> str:
        """Return the text of data without the marks of nested elements; of yEd's graphical data, the first label's text."""
        if key.graphical:
            return marked.partition(LABEL)[2].partition(MARK)[0].strip()
        self._counts["elements"] += LABEL in marked or MARK in marked
        return marked.replace(LABEL, "").replace(MARK, "")

    def _remarks(self) -> list[str]:
        """Return a sentence for each kind of thing that was left out or assumed, with its number."""
        counts, left_out = self._counts, self._left_out
        found = []
        if further := counts.pop("further", 0):
            found.append(f"the first of {further + 1} graphs is taken")
        if nested := counts.pop("nested", 0):
            found.append(f"{counted(nested, 'nested graph')} read as parts of the graph around")
        if groups := counts.pop("groups", 0):
            found.append(f"{counted(groups, 'group')} without edges left out; the nodes in it are taken")
        if counts.pop("edgedefault", 0):
            found.append("a graph does not say edgedefault; its edges are taken as undirected")
        if at_ports := counts.pop("at ports", 0):
            found.append(f"{counted(at_ports, 'edge')} at ports of nodes: the ports are not used")
        if elements := counts.pop("elements", 0):
            found.append(f"{counted(elements, 'datum', 'data')} with elements in it: their text alone is taken")
        counts.pop("desc", 0)
        for tag in ("hyperedge", "port", "locator"):
            if number := counts.pop(tag, 0):
                found.append(f"{counted(number, tag)} left out")
        found += [f"{what} is not GraphML: left out ({number} of it)" for what, number in counts.items() if number]
        if lost := [counted(left_out[tag], tag) for tag in ("graph", "node", "edge") if left_out[tag]]:
            found.append(f"not taken in all: {', '.join(lost)}")
        return found
