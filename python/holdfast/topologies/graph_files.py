"""Reads graphs in GML and in node-link JSON, as networkx reads and writes them.

Both become the nodes, edges and data of :mod:`holdfast.topologies.graphml_document`, of which :mod:`holdfast.topologies.graphml`
makes the topology: the Internet Topology Zoo has its networks in GML, too, with the same data.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import networkx as nx

from holdfast.errors import TopologyError
from holdfast.terminal import excerpt
from holdfast.topologies import graphml
from holdfast.topologies.graphml_document import Document, Edge, Element
from holdfast.topology import Topology

MOST_ELEMENTS = 200_000
"""The most nodes and edges of a graph together."""

_REFUSALS = (
    nx.NetworkXException,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""The exceptions that networkx raises for files that are not valid."""


def read_gml(path: Path, content: bytes, parameters: graphml.Parameters) -> Topology:
    """Return the topology in a GML file. Raises :class:`TopologyError`."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    try:
        graph = nx.parse_gml(text.splitlines(), label="id")
    except _REFUSALS as error:
        raise TopologyError(f"{path}: not a graph in GML: {_words(error)}") from None
    return _topology(path, graph, parameters, "GML")


def fits(document: Any) -> bool:
    """Return True if a JSON value has the form of node-link data."""
    if not isinstance(document, dict) or not isinstance(document.get("nodes"), list):
        return False
    return any(isinstance(document.get(key), list) for key in ("links", "edges"))


def read_node_link(path: Path, document: Mapping[str, Any], parameters: graphml.Parameters) -> Topology:
    """Return the topology in a document for which :func:`fits` is true. Raises :class:`TopologyError`."""
    edges = "links" if isinstance(document.get("links"), list) else "edges"
    nodes = document["nodes"]
    if len(nodes) + len(document[edges]) > MOST_ELEMENTS:
        raise TopologyError(f"{path}: more than {MOST_ELEMENTS} nodes and edges")
    # Older files, and those of D3, name the ends of links by the positions of nodes.
    by_position = bool(nodes) and all(isinstance(node, dict) and "id" not in node for node in nodes)
    if by_position:
        document = {**document, "nodes": [{"label": node.get("name"), **node, "id": i} for i, node in enumerate(nodes)]}
    try:
        graph = nx.node_link_graph(dict(document), edges=edges)
    except _REFUSALS as error:
        raise TopologyError(f"{path}: not node-link data: {_words(error)}") from None
    known = {node["id"] for node in document["nodes"] if isinstance(node, dict) and _is_plain(node.get("id"))}
    for index, link in enumerate(document[edges]):
        for end in ("source", "target"):
            if _is_plain(link[end]) and link[end] not in known:
                raise TopologyError(f"{path}: {edges}.{index}: there is no node {excerpt(repr(link[end]), 80)}")
    return _topology(path, graph, parameters, "node-link JSON")


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float)


def _words(error: Exception) -> str:
    words = " ".join(str(error).split())
    return excerpt(f"{words} is missing" if isinstance(error, KeyError) else words or type(error).__name__, 200)


def _topology(path: Path, graph: nx.Graph[Any], parameters: graphml.Parameters, what: str) -> Topology:
    if graph.number_of_nodes() + graph.number_of_edges() > MOST_ELEMENTS:
        raise TopologyError(f"{path}: more than {MOST_ELEMENTS} nodes and edges")
    if not graph.number_of_nodes():
        raise TopologyError(f"{path}: the graph has no nodes")
    directed = graph.is_directed()
    nodes = [Element(str(node), 0, _texts(data)) for node, data in graph.nodes(data=True)]
    for node, name in zip(nodes, graph, strict=True):
        if isinstance(name, str) and not node.data.get("label"):
            node.data["label"] = name  # a text is a name already, unlike the numbers of GML
    edges = [
        Edge("", 0, _texts(data), source=str(a), target=str(b), directed=directed)
        for a, b, data in graph.edges(data=True)
    ]
    if len({node.id for node in nodes}) < len(nodes):
        raise TopologyError(f"{path}: two nodes of the {what} have the same identifier")
    return graphml.from_document(path, Document(Element("", 0, _texts(graph.graph)), nodes, edges, []), parameters)


def _texts(data: Mapping[Any, Any]) -> dict[str, str]:
    """Convert those data of a node or edge that are texts or numbers to texts. Without a ``label``, ``name`` becomes the label."""
    found = {str(key): _text(value) for key, value in data.items() if isinstance(value, str | int | float)}
    if not found.get("label") and found.get("name"):
        found["label"] = found["name"]
    return found


def _text(value: str | int | float) -> str:
    try:
        return str(value)
    except ValueError:  # a number of thousands of digits
        return ""
