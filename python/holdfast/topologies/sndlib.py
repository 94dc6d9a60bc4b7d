"""Reads networks of SNDlib (http://sndlib.zib.de), in XML and in its native format.

Nodes become switches, links become links. Of the capacities that a link may have, the rate is the one that is installed, or else
the largest that can be; they are in Mbit/s if ``<unit>`` says so, or else unknown. Geographical coordinates give delays. Demands,
costs and admissible paths are not part of a topology, and are left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NoReturn

from holdfast.errors import TopologyError
from holdfast.terminal import excerpt
from holdfast.topologies import graphml, link_rates
from holdfast.topologies.graphml_document import Document, Edge, Element
from holdfast.topologies.xml_file import Placed, tree
from holdfast.topology import Topology
from holdfast.wording import counted

_UNITS: Final = {"MBITPERSEC": 1e6, "GBITPERSEC": 1e9, "KBITPERSEC": 1e3, "BITPERSEC": 1.0}

_TOKEN: Final = re.compile(r"[()]|[^\s()]+")


def read_xml(path: Path, content: bytes, parameters: graphml.Parameters) -> Topology:
    """Return the topology in an XML file. Raises :class:`TopologyError` with the line of a mistake."""
    root = tree(path, content)
    structure = root.first("networkStructure") if root.tag == "network" else None
    if structure is None:
        raise TopologyError(f"{path}: not a network of SNDlib: there is no <networkStructure> in <network>")
    unit = _UNITS.get(root.words("meta", "unit").upper())
    geographical = True
    nodes, edges = [], []
    for part in structure.named("nodes"):
        geographical = part.get("coordinatesType", "geographical") == "geographical"
        for node in part.named("node"):
            place = [node.words("coordinates", name) for name in ("x", "y")]
            nodes.append(_node(path, node.get("id", ""), place, node.line, geographical=geographical))
    for part in structure.named("links"):
        for link in part.named("link"):
            ends = [link.words(name) for name in ("source", "target")]
            edges.append(_edge(link.get("id", ""), ends, _capacities(link), unit, link.line))
    remarks = _left_out(len(list(root.iter("demand"))), unit, edges)
    return _topology(path, nodes, edges, remarks, parameters)


def _capacities(link: Placed) -> list[str]:
    """Return the installed capacity of a link if it is above zero, or else the capacities of all its modules."""
    installed = link.words("preInstalledModule", "capacity")
    if (link_rates.number(installed) or 0) > 0:
        return [installed]
    modules = [module for part in link.named("additionalModules") for module in part.named("addModule")]
    return [module.words("capacity") for module in modules]


def _node(path: Path, name: str, place: list[str], line: int, *, geographical: bool) -> Element:
    if not name:
        raise TopologyError(f"{path}:{line}: a node without 'id'")
    keys = ("Longitude", "Latitude") if geographical else ("x", "y")
    return Element(name, line, {"label": name, **dict(zip(keys, place, strict=True))})


def _edge(name: str, ends: list[str], capacities: list[str], unit: float | None, line: int) -> Edge:
    numbers = [number for text in capacities if (number := link_rates.number(text)) is not None and number > 0]
    data = {"rate_bps": repr(max(numbers) * unit)} if numbers and unit else {}
    return Edge(name, line, data, source=ends[0], target=ends[1])


def _left_out(demands: int, unit: float | None, edges: list[Edge]) -> list[str]:
    found = [f"{counted(demands, 'demand')} left out"] if demands else []
    if unit is None and edges:
        found.append("the file does not say the unit of capacities, so they are not taken as rates")
    return found


def _topology(
    path: Path, nodes: list[Element], edges: list[Edge], remarks: list[str], parameters: graphml.Parameters
) -> Topology:
    known: dict[str, int] = {}
    for node in nodes:
        if node.id in known:
            raise TopologyError(
                f"{path}:{node.line}: node {node.id!r} is declared twice (first in line {known[node.id]})"
            )
        known[node.id] = node.line
    for edge in edges:
        for end in (edge.source, edge.target):
            if end not in known:
                raise TopologyError(f"{path}:{edge.line}: link {edge.id!r}: there is no node {end!r}")
    if not nodes:
        raise TopologyError(f"{path}: the network has no nodes")
    return graphml.from_document(path, Document(Element("", 0), nodes, edges, remarks), parameters)


class _Words:
    """The words of a text, with the line of each."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._words = [
            (match[0], number)
            for number, line in enumerate(text.splitlines(), 1)
            if not line.lstrip().startswith(("#", "?"))
            for match in _TOKEN.finditer(line)
        ]
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._words)

    @property
    def line(self) -> int:
        """The line of the next word, or of the last one behind the end."""
        return self._words[min(self._at, len(self._words) - 1)][1] if self._words else 1

    def error(self, message: str) -> NoReturn:
        """Raise :class:`TopologyError` with the file and the line of the next word."""
        raise TopologyError(f"{self._path}:{self.line}: {message}")

    def next(self, wanted: str = "") -> str:
        """Return the next word. Raises :class:`TopologyError` if there is none, or if it is not ``wanted``."""
        if not self:
            self.error(f"the file ends where {wanted or 'a word'!r} is expected")
        word = self._words[self._at][0]
        if wanted and word != wanted:
            self.error(f"{wanted!r} is expected, and here is {excerpt(repr(word), 60)}")
        self._at += 1
        return word

    def comes(self, word: str) -> bool:
        """Return True if ``word`` is the next word."""
        return bool(self) and self._words[self._at][0] == word

    def group(self) -> list[str]:
        """Read words in parentheses, and return them. Raises :class:`TopologyError` if the next word is no parenthesis."""
        self.next("(")
        found = []
        while not self.comes(")"):
            found.append(self.next())
            if found[-1] == "(":
                self.error("parentheses within parentheses")
        self.next(")")
        return found


def read_native(path: Path, content: bytes, parameters: graphml.Parameters) -> Topology:
    """Return the topology in a file of the native format. Raises :class:`TopologyError` with the line of a mistake."""
    if b"NODES" not in content.upper() or b"LINKS" not in content.upper():
        raise TopologyError(f"{path}: not a network of SNDlib's native format: there is no NODES or no LINKS in it")
    words = _Words(path, content.decode("utf-8", errors="replace"))
    places: list[tuple[str, list[str], int]] = []
    edges: list[Edge] = []
    demands, unit = 0, None
    while words:
        section = words.next().upper()
        words.next("(")
        if section not in ("NODES", "LINKS"):
            found, groups = _rest(words)
            demands += groups if section == "DEMANDS" else 0
            if section == "META" and "unit" in found[:-2]:
                unit = _UNITS.get(found[found.index("unit") + 2].upper())
            continue
        while not words.comes(")"):
            line, name = words.line, words.next()
            if section == "LINKS":
                edges.append(_native_link(words, name, unit, line))
                continue
            places.append((name, words.group(), line))
            if len(places[-1][1]) != 2:
                words.error(f"node {name!r} has {len(places[-1][1])} coordinates; 2 are expected")
        words.next(")")
    # The format does not say whether they are places on Earth or in a drawing.
    geographical = all(_is_on_earth(place) for _, place, _ in places)
    nodes = [_node(path, name, place, line, geographical=geographical) for name, place, line in places]
    return _topology(path, nodes, edges, _left_out(demands, unit, edges), parameters)


def _is_on_earth(place: list[str]) -> bool:
    longitude, latitude = (link_rates.number(text) for text in place)
    return longitude is not None and latitude is not None and abs(longitude) <= 180 and abs(latitude) <= 90


def _native_link(words: _Words, name: str, unit: float | None, line: int) -> Edge:
    """Read a link in the native format: ``( ends ) installed-capacity cost routing-cost setup-cost ( capacity cost ... )``.

    ``unit``: what a capacity of 1 is in bit/s; None if unknown, and the link then has no rate.
    """
    ends = words.group()
    if len(ends) != 2:
        words.error(f"link {name!r} has {len(ends)} ends; 2 are expected")
    numbers: list[str] = []
    while words and not words.comes("(") and len(numbers) < 4:
        numbers.append(words.next())
    modules = words.group() if words.comes("(") else []
    installed = (link_rates.number(numbers[0]) or 0) > 0 if numbers else False
    return _edge(name, ends, numbers[:1] if installed else modules[::2], unit, line)


def _rest(words: _Words) -> tuple[list[str], int]:
    """Return the words of a section up to its end, and the number of groups in it that are in no other."""
    found: list[str] = []
    depth, groups = 1, 0
    while depth:
        found.append(words.next())
        if found[-1] == "(":
            groups += depth == 1
            depth += 1
        depth -= found[-1] == ")"
    return found, groups
