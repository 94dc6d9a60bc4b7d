"""Makes topologies of GraphML files in the format of the Internet Topology Zoo.

:mod:`holdfast.topologies.graphml_document` reads the file, and says what of it is left out. Every node becomes a switch, named
after its label, or its identifier if it has none: letters, marks and digits of any script are kept, everything else becomes one
``_``, and a name that is taken gets a number. Every edge becomes a link, parallel ones too; a directed edge and one back are one
link. Edges from a node to itself are left out with a warning. Of the data in the file these are used:

- ``Latitude`` and ``Longitude`` of nodes: their positions, and the links' delays, as the great circle at two thirds of the speed
  of light, as if fibre went straight. A link with an end somewhere unknown gets ``default_delay_ms``, with a warning.
- ``LinkSpeedRaw`` of edges, in bits per second: the link's rate; or else ``LinkSpeed`` with ``LinkSpeedUnits``; or else a rate in
  ``LinkLabel`` (:mod:`holdfast.topologies.link_rates`). Otherwise ``default_rate_bps``, with a warning; a given ``rate_bps``
  overrides all.
- ``rate_bps``, or a text with a unit in ``bandwidth``, ``capacity`` or ``bw``: the rate, too. ``delay_ms``, or a text with a unit
  in ``delay`` or ``latency``: the delay, before the one by places. ``cost``: a whole number above zero, the link's cost.
- ``x`` and ``y`` of nodes without a place on Earth: their positions, which say nothing of delays.
- ``Network`` or ``label`` of the graph: the topology's name, or else the file's.

With ``hosts`` each switch gets one host, ``h1`` and so on in the order of the file. Data of the file about time, provenance or the
roles of nodes are not looked at.
"""

from __future__ import annotations

import math
import unicodedata
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast import units
from holdfast.errors import ParameterError, TopologyError, TopologyWarning
from holdfast.numerals import is_numeral
from holdfast.topologies import graphml_document, link_rates
from holdfast.topologies.graphml_document import Document, Edge, Element
from holdfast.topologies.hosts import add_host_at
from holdfast.topology import Position, Topology, great_circle_km, is_letter, propagation_delay_ms
from holdfast.wording import counted

MOST_NAMED = 8
"""The most nodes or links that a warning names."""

_SOURCES: tuple[tuple[str, Callable[[Mapping[str, str]], float | None]], ...] = (
    ("LinkSpeedRaw", link_rates.raw_bps),
    ("LinkSpeed", link_rates.speed_bps),
    ("LinkLabel", lambda data: link_rates.label_bps(data.get("LinkLabel", ""))),
    ("rate_bps", link_rates.plain_bps),
)
"""The attributes that can state the rate of an edge, the most reliable first, each with the function that reads it."""


def read(
    path: Path,
    *,
    hosts: bool,
    rate_bps: int | None,
    default_rate_bps: int,
    default_delay_ms: float,
    host_link: Mapping[str, Any],
) -> Topology:
    """Read a topology from a GraphML file; see :meth:`holdfast.topology.Topology.from_graphml`."""
    document = graphml_document.read(path)
    parameters = Parameters(hosts, rate_bps, default_rate_bps, default_delay_ms, host_link)
    return from_document(path, document, parameters, stacklevel=4)


@dataclass(frozen=True)
class Parameters:
    """The parameters of :meth:`holdfast.topology.Topology.from_graphml`, which every file of nodes and edges has."""

    hosts: bool = True
    rate_bps: int | None = None
    default_rate_bps: int = 1_000_000_000
    default_delay_ms: float = 1.0
    host_link: Mapping[str, Any] = field(default_factory=dict)


def from_document(path: Path, document: Document, parameters: Parameters, stacklevel: int = 3) -> Topology:
    """Return the topology of nodes, edges and their data. Raises :class:`TopologyError`, and warns of what is assumed."""
    rate_bps, default_rate_bps = parameters.rate_bps, parameters.default_rate_bps
    default_delay_ms, host_link = parameters.default_delay_ms, parameters.host_link
    found = _Reading(_graph_name(document.graph, path), rate_bps, default_rate_bps, default_delay_ms)
    topology = found.topology
    try:
        found.add_switches(document.nodes)
        found.add_links(document.edges)
        if parameters.hosts:
            for switch in list(topology.switches):
                add_host_at(topology, switch, **host_link)
    except TopologyError as error:
        raise TopologyError(f"{path}: {error}") from None
    for remark in (*document.remarks, *found.remarks()):
        warnings.warn(f"{path}: {remark}", TopologyWarning, stacklevel=stacklevel)
    return topology


def named(names: Sequence[str]) -> str:
    """Return the first :data:`MOST_NAMED` names as text, followed by "and N more" if there are more."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _graph_name(graph: Element, path: Path) -> str:
    return (graph.data.get("Network") or graph.data.get("label") or "").strip() or path.stem


@dataclass
class _Reading:
    """A topology in the making, with what was assumed."""

    name: str
    rate_bps: int | None
    default_rate_bps: int
    default_delay_ms: float
    switch: dict[str, str] = field(default_factory=dict)
    """The switch of each node's identifier."""
    unlabelled: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    loops: list[str] = field(default_factory=list)
    back: int = 0
    one_way: int = 0
    unplaced: int = 0
    places: set[str] = field(default_factory=set)
    """The switches with a place on Earth."""
    rates: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """The links, by index, whose rate is from each place."""
    contradicted: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.topology = Topology(self.name)
        self._numbers: Counter[str] = Counter()
        self.links = 0

    def add_switches(self, nodes: Sequence[Element]) -> None:
        """Add a switch for each node, named by the node's label, else by its id."""
        for node in nodes:
            label = node.data.get("label", "").strip()
            name = self._legal_name(label or node.id)
            self.switch[node.id] = name
            if not label:
                self.unlabelled.append(name)
            place = _position(name, node.data)
            if place is not None:
                self.places.add(name)
            self.topology.add_switch(name, position=place or _drawn_at(node.data))

    def _legal_name(self, label: str) -> str:
        """Return a legal switch name made of a label: ``São_Paulo_BR`` for ``São Paulo (BR)``.

        Names of the form that hosts get (``h1``) are changed.
        """
        plain = "".join(c for c in unicodedata.normalize("NFC", label) if unicodedata.category(c) != "Cf")
        words = "".join(c if is_letter(c) else " " for c in plain).split()
        name = "_".join(words) or f"s{len(self.topology.switches) + 1}"
        if name[0] == "h" and is_numeral(name[1:]):
            name = f"s_{name}"
        if name not in self.topology.switches:
            return name
        number = max(2, self._numbers[name])
        while f"{name}_{number}" in self.topology.switches:
            number += 1
        self._numbers[name] = number + 1
        self.doubled.append(f"{name}_{number}")
        return self.doubled[-1]

    def add_links(self, edges: Sequence[Edge]) -> None:
        """Add a link for each edge; a directed edge and a directed edge in the other direction share a link."""
        waiting: defaultdict[tuple[str, str], list[tuple[Edge, list[Edge]]]] = defaultdict(list)
        links: list[tuple[Edge, list[Edge]]] = []
        for edge in edges:
            if edge.source == edge.target:
                self.loops.append(self.switch[edge.source])
                continue
            if edge.directed and (there := waiting[edge.target, edge.source]):
                there.pop(0)[1].append(edge)
                self.back += 1
                continue
            link: tuple[Edge, list[Edge]] = (edge, [])
            links.append(link)
            if edge.directed:
                waiting[edge.source, edge.target].append(link)
        self.one_way = sum(len(left) for left in waiting.values())
        for edge, back in links:
            self._add_link(edge, back)
        self.links = len(self.topology.links)

    def _add_link(self, edge: Edge, back: Sequence[Edge]) -> None:
        a, b = self.switch[edge.source], self.switch[edge.target]
        ends = self.topology.switches[a].position, self.topology.switches[b].position
        if (told := _delay_ms(edge, f"{a}-{b}")) is not None:
            delay_ms = told
        elif ends[0] is None or ends[1] is None or not {a, b} <= self.places:
            self.unplaced += 1
            delay_ms = self.default_delay_ms
        else:
            delay_ms = propagation_delay_ms(great_circle_km(ends[0], ends[1]))
        rate = self._rate_bps(edge, f"{a}-{b}")
        reverse = {}
        for other in back:
            if (there := self._rate_bps(other, f"{b}-{a}", known=rate)) != rate:
                reverse = {"reverse": {"rate_bps": there}}
        cost = edge.data.get("cost", "").strip()
        more = {"cost": int(cost)} if is_numeral(cost) and int(cost) else {}
        self.topology.add_link(a, b, rate_bps=rate, delay_ms=delay_ms, **more, **reverse)

    def _rate_bps(self, edge: Edge, name: str, known: int | None = None) -> int:
        """Return the rate in bit/s of the link to be added next.

        ``known``: the rate of the other direction, used if the edge has none.
        """
        if self.rate_bps:
            return self.rate_bps
        try:
            rates = [(source, rate(edge.data)) for source, rate in _SOURCES]
        except TopologyError as error:
            raise TopologyError(f"link {name}: {error}") from None
        told = [(source, bps) for source, bps in rates if bps is not None]
        link = len(self.topology.links)
        if len(told) > 1 and max(told[0][1], told[1][1]) > min(told[0][1], told[1][1]) * (1 + link_rates.AGREE):
            self.contradicted.append(link)
        source, bps = told[0] if told else ("", known or self.default_rate_bps)
        if told or known is None:
            self.rates[source].append(link)
        return round(bps)

    def remarks(self) -> list[str]:
        """Return a sentence for each assumption made about the file, such as about names, loops and delays."""
        topology, found = self.topology, []
        if self.unlabelled:
            found.append(f"{counted(len(self.unlabelled), 'node')} without a label: {named(self.unlabelled)}")
        if self.doubled:
            found.append(f"names that are taken get a number: {named(self.doubled)}")
        for name, number in Counter(self.loops).items():
            edges = "the edge from {0} to itself is" if number == 1 else "{1} edges from {0} to itself are"
            found.append(f"{edges.format(name, number)} left out")
        if self.back:
            found.append(f"{counted(self.back, 'edge')} back: each is the other way of a link")
        if self.one_way:
            found.append(f"{counted(self.one_way, 'edge')} of one direction alone: the links carry both ways")
        if self.unplaced:
            have = "1 link has" if self.unplaced == 1 else f"{self.unplaced} links have"
            found.append(f"{have} an end without coordinates; delay there is {self.default_delay_ms:g} ms")
        names = topology.link_names() if self.rates else []
        if assumed := self.rates.get(""):
            have = f"{len(assumed)} of {counted(self.links, 'link')} {'has' if len(assumed) == 1 else 'have'}"
            rate = f"{self.default_rate_bps / 1e9:g} Gb/s"
            found.append(f"{have} no rate in the file, and {rate} here: {named([names[i] for i in assumed])}")
        if labelled := self.rates.get("LinkLabel"):
            which = named([names[i] for i in dict.fromkeys(labelled)])
            found.append(f"{counted(len(labelled), 'rate')} from the text of LinkLabel: {which}")
        if self.contradicted:
            which = named([names[i] for i in self.contradicted])
            found.append(f"LinkSpeedRaw, LinkSpeed and LinkLabel say different rates, and the first counts: {which}")
        if len(parts := topology.parts()) > 1:
            apart = [name for part in parts[1:] for name in part]
            found.append(f"no path leads from {parts[0][0]} to {named(apart)} (--largest leaves them out)")
        return found


def _delay_ms(edge: Edge, name: str) -> float | None:
    """Return the delay of an edge in milliseconds; None if it has none.

    Raises :class:`TopologyError` for an invalid ``delay_ms``.
    """
    text = edge.data.get("delay_ms", "").strip()
    if text:
        delay = link_rates.number(text)
        if delay is None or not 0 <= delay < math.inf:
            raise TopologyError(f"link {name}: delay_ms {text!r} is not a delay")
        return delay
    for key in ("delay", "latency"):
        with suppress(ParameterError):
            return units.time_ms(edge.data.get(key, ""))
    return None


def _drawn_at(data: Mapping[str, str]) -> Position | None:
    """Return the position of a node in a drawing (its data ``x`` and ``y``); None if it has none."""
    x, y = (link_rates.number(data.get(key, "")) for key in ("x", "y"))
    return None if x is None or y is None or not (math.isfinite(x) and math.isfinite(y)) else (x, y)


def _position(name: str, data: Mapping[str, str]) -> Position | None:
    texts = [data.get(key, "").strip() for key in ("Longitude", "Latitude")]
    if not all(texts):
        return None
    longitude, latitude = (link_rates.number(text) for text in texts)
    if longitude is None or latitude is None:
        raise TopologyError(f"node {name!r}: Latitude and Longitude are not numbers")
    if not (-180 <= longitude <= 180 and -90 <= latitude <= 90):
        raise TopologyError(f"node {name!r}: latitude {latitude:g}, longitude {longitude:g} is not a place on Earth")
    return longitude, latitude
