"""Tells the formats of topology files apart, by their ending and their content, and reads each with its reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Final

from holdfast import json_file
from holdfast.errors import TopologyError
from holdfast.regular_files import MOST_TEXT_BYTES, read_regular
from holdfast.topologies import containerlab, graph_files, graphml, mininet_files, p4lang, p4utils, sndlib
from holdfast.topology import Topology

ENDINGS: Final = (".json", ".gml", ".xml", ".txt", ".native", ".snd")
"""Endings of files whose format is recognised here by their content; those of YAML and GraphML are not among them."""

MININET: Final = "mininet:"


def is_file_of(text: str) -> bool:
    """Return True if ``text`` names a file for :func:`read` by its ending, or a script by ``mininet:``."""
    return text.startswith(MININET) or Path(text).suffix.lower() in ENDINGS or is_containerlab(text)


def is_containerlab(text: str) -> bool:
    """Return True if a file's name is one of containerlab's: ``NAME.clab.yml`` or ``NAME.clab.yaml``."""
    return text.lower().endswith((".clab.yml", ".clab.yaml"))


def read(text: str, parameters: Mapping[str, Any]) -> Topology:
    """Return the topology in a file, whose format is recognised, or the one that a Mininet script builds.

    Raises :class:`TopologyError`, also if the file has none of the formats.
    """
    if text.startswith(MININET):
        return _without(parameters, text, lambda: mininet_files.read(text.removeprefix(MININET)))
    path = Path(text)
    if is_containerlab(text):
        return _without(parameters, text, lambda: containerlab.read(path))
    content = read_regular(path, MOST_TEXT_BYTES, TopologyError)
    suffix = path.suffix.lower()
    if suffix == ".json":
        document = json_file.parse(path, content, TopologyError)
        for reader in (p4utils, p4lang):
            if reader.fits(document):
                return _without(parameters, text, partial(reader.read, path, document, content))
        if graph_files.fits(document):
            return graph_files.read_node_link(path, document, _chosen(parameters))
        raise TopologyError(
            f"{path}: this is no topology: a JSON file has hosts, switches and links (p4lang), topology (p4-utils), "
            "or nodes and links (node-link data)"
        )
    if suffix == ".gml":
        return graph_files.read_gml(path, content, _chosen(parameters))
    if suffix == ".xml":
        return sndlib.read_xml(path, content, _chosen(parameters))
    return sndlib.read_native(path, content, _chosen(parameters))


def _without(parameters: Mapping[str, Any], text: str, read: Callable[[], Topology]) -> Topology:
    """Return what ``read`` returns. Raises :class:`TopologyError` if there are parameters, which only files of graphs take."""
    if parameters:
        raise TopologyError(
            f"{text}: {', '.join(parameters)} can be given for GraphML, GML, node-link and SNDlib files only"
        )
    return read()


def _chosen(parameters: Mapping[str, Any]) -> graphml.Parameters:
    """Return the parameters as an object. Those that it has no field for are parameters of the links to hosts."""
    own = [each.name for each in fields(graphml.Parameters) if each.name != "host_link"]
    given = {name: value for name, value in parameters.items() if name in own}
    return graphml.Parameters(**given, host_link={n: v for n, v in parameters.items() if n not in own})
