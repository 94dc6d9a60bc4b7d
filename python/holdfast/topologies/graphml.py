"""Reads GraphML files in the format of the Internet Topology Zoo as topologies.

Every node of the graph becomes a switch, named after its label: letters and digits are kept, everything else becomes one ``_``,
and a name that is taken gets a number. Every edge becomes a link, parallel ones too; of a directed graph an edge and one back
are one link. Edges from a node to itself are left out with a warning. Of the data in the file these are used:

- ``Latitude`` and ``Longitude`` of nodes: their positions, and the links' delays, as the great circle at two thirds of the speed
  of light, as if fibre went straight. A link with an end somewhere unknown gets ``default_delay_ms``, with a warning.
- ``LinkSpeedRaw`` of edges, in bits per second: the link's rate. Otherwise ``default_rate_bps``; a given ``rate_bps`` overrides
  both.

With ``hosts`` each switch gets one host, ``h1`` and so on in the order of the file. Data of the file about time, provenance or the
roles of nodes are not looked at.
"""

from __future__ import annotations

import math
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import networkx as nx

from holdfast.errors import TopologyError, TopologyWarning
from holdfast.regular_files import MOST_TEXT_BYTES, read_regular
from holdfast.topologies.hosts import add_host_at
from holdfast.topology import Position, Topology, great_circle_km, propagation_delay_ms


def read(
    path: Path,
    *,
    hosts: bool,
    rate_bps: int | None,
    default_rate_bps: int,
    default_delay_ms: float,
    host_link: Mapping[str, Any],
) -> Topology:
    """Reads a file; see :meth:`holdfast.topology.Topology.from_graphml`."""
    graph = _parse(path)
    topology = Topology(_graph_name(graph, path))
    names: dict[Any, str] = {}
    try:
        for node, data in graph.nodes(data=True):
            names[node] = _legal_name(data.get("label") or str(node), topology)
            topology.add_switch(names[node], position=_position(path, names[node], data))
        unplaced = _add_links(topology, graph, names, path, rate_bps, default_rate_bps, default_delay_ms)
        if hosts:
            for switch in list(topology.switches):
                add_host_at(topology, switch, **host_link)
    except TopologyError as error:
        raise TopologyError(f"{path}: {error}") from None
    if unplaced:
        links = "1 link has" if unplaced == 1 else f"{unplaced} links have"
        _warn(f"{path}: {links} an end without coordinates; delay there is {default_delay_ms:g} ms")
    if len(parts := topology.parts()) > 1:
        apart = ", ".join(name for part in parts[1:] for name in part)
        _warn(f"{path}: no path leads from {parts[0][0]} to {apart}")
    return topology


def _warn(text: str) -> None:
    warnings.warn(text, TopologyWarning, stacklevel=4)


def _parse(path: Path) -> nx.MultiGraph[Any]:
    content = read_regular(path, MOST_TEXT_BYTES, TopologyError)
    try:
        graph: Any = nx.read_graphml(BytesIO(content), force_multigraph=True)
    except ParseError as error:
        raise TopologyError(f"{path}:{error.position[0]}: not XML: {error}") from None
    except (nx.NetworkXError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise TopologyError(f"{path}: not a graph in GraphML: {error}") from None
    if graph.number_of_nodes() == 0:
        raise TopologyError(f"{path}: the graph has no nodes")
    multigraph: nx.MultiGraph[Any] = graph
    return multigraph


def _edges(graph: nx.MultiGraph[Any]) -> Iterator[tuple[Any, Any, Mapping[str, Any]]]:
    """The edges; those of a directed graph without the ones that lead back."""
    waiting: Counter[tuple[Any, Any]] = Counter()
    for source, target, data in graph.edges(data=True):
        if graph.is_directed() and waiting[target, source]:
            waiting[target, source] -= 1
        else:
            waiting[source, target] += 1
            yield source, target, data


def _graph_name(graph: nx.MultiGraph[Any], path: Path) -> str:
    return str(graph.graph.get("Network") or graph.graph.get("label") or path.stem)


def _legal_name(label: str, topology: Topology) -> str:
    """``São Paulo (BR)`` is ``Sao_Paulo_BR``; names that hosts get are not given away."""
    plain = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode()
    words = "".join(c if c.isalnum() else " " for c in plain).split()
    name = "_".join(words) or f"s{len(topology.switches) + 1}"
    if name[0] == "h" and name[1:].isdecimal():
        name = f"s_{name}"
    if name not in topology.switches:
        return name
    number = 2
    while f"{name}_{number}" in topology.switches:
        number += 1
    return f"{name}_{number}"


def _position(path: Path, name: str, data: Mapping[str, Any]) -> Position | None:
    try:
        longitude, latitude = float(data["Longitude"]), float(data["Latitude"])
    except KeyError:
        return None
    except (TypeError, ValueError):
        raise TopologyError(f"node {name!r}: Latitude and Longitude are not numbers") from None
    if not (-180 <= longitude <= 180 and -90 <= latitude <= 90):
        raise TopologyError(f"node {name!r}: latitude {latitude:g}, longitude {longitude:g} is not a place on Earth")
    return longitude, latitude


def _rate_bps(data: Mapping[str, Any], edge: str) -> int | None:
    if "LinkSpeedRaw" not in data:
        return None
    try:
        rate = float(data["LinkSpeedRaw"])
    except (TypeError, ValueError):
        rate = math.nan
    if not 1 <= rate < math.inf:
        raise TopologyError(f"link {edge}: LinkSpeedRaw {data['LinkSpeedRaw']!r} is not a rate in bits per second")
    return round(rate)


def _add_links(
    topology: Topology,
    graph: nx.MultiGraph[Any],
    names: Mapping[Any, str],
    path: Path,
    rate_bps: int | None,
    default_rate_bps: int,
    default_delay_ms: float,
) -> int:
    """Adds the links; returns how many have a delay that is not from coordinates."""
    unplaced = 0
    for source, target, data in _edges(graph):
        a, b = names[source], names[target]
        if a == b:
            _warn(f"{path}: the edge from {a} to itself is left out")
            continue
        ends = topology.switches[a].position, topology.switches[b].position
        if ends[0] is None or ends[1] is None:
            unplaced += 1
            delay_ms = default_delay_ms
        else:
            delay_ms = propagation_delay_ms(great_circle_km(ends[0], ends[1]))
        rate = rate_bps or _rate_bps(data, f"{a}-{b}") or default_rate_bps
        topology.add_link(a, b, rate_bps=rate, delay_ms=delay_ms)
    return unplaced
