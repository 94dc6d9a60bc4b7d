"""Reads and writes topologies as YAML files. Every error in a file is one sentence that begins with the file and the line.

.. code-block:: yaml

    name: square                       # the file's name if left out
    include: access.yaml               # or a list; paths are relative to this file; their declarations come first
    hosts:
      h1:                              # 10.0.<n>.1/24, in the order of declaration
      h2: {address: 192.168.7.1/24, ipv6: "2001:db8:0:2::1/64", position: [4, 0]}
    switches: [s1, s2]                 # or a mapping, {s1: {program: router.p4}, s2: {device_id: 7}}
    link_defaults: {rate_bps: 1e9}     # for this file's links
    links:
      - {a: h1, b: s1, delay_ms: 0.01}
      - {a: s1, b: s2, delay_ms: 2, jitter: {distribution: uniform, high_ms: 1}}
      - {a: s2, b: h2}
    packet_generators:
      - {switch: s1, port: 9, packet: "0200", period_ms: 10}
    srlg: {duct: [s1-s2]}              # shared risk groups: links that fail together (holdfast compare --fail srlg)

The fields are those of :class:`holdfast.host.Host`, :class:`holdfast.topology.SwitchNode`, :class:`holdfast.topology.Link` and
:class:`holdfast.topology.PacketGenerator`; they are checked there. The names of a
switch's ``program`` and ``entries`` are relative to the file. This module knows files and lines, not networks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel
from yaml.constructor import SafeConstructor

from holdfast.errors import ParameterError, TopologyError, TopologyWarning
from holdfast.host import MAC_TEXT, Card, Host, mac_text
from holdfast.parameters import spelled_out
from holdfast.regular_files import MOST_TEXT_BYTES, read_regular
from holdfast.suggestions import unknown
from holdfast.terminal import excerpt
from holdfast.topology import Link, PacketGenerator, SwitchNode, Topology
from holdfast.yaml_model import compose, reading

R = TypeVar("R")

KEYS = ("name", "include", "hosts", "switches", "link_defaults", "links", "packet_generators", "srlg")

MOST_FILES, DEEPEST = 1000, 50
"""The most files that are read for a topology, and the deepest nesting of includes; their size is limited as
:mod:`holdfast.regular_files` states."""

MOST_VALUES = 1_200_000
"""The most keys and values in all files of a topology: as many as the links of the largest fat-tree, ``fat-tree:48``,
take."""

GIVEN = ("name", "index")
"""Fields of nodes that follow from their name and their position in the file, and are not written."""

ENDS = {"a", "b", "a_port", "b_port"}
"""Fields of links that differ from link to link, and so have no defaults."""

_FOUND = {type(None): "nothing", dict: "a mapping", list: "a list", str: "a text"}


@dataclass(frozen=True)
class Node:
    """A value in a file and where it stands."""

    file: Path
    line: int
    value: Any

    def error(self, message: str) -> TopologyError:
        """Return an error about this value, with its file and line, for the caller to raise."""
        return TopologyError(f"{self.file}:{self.line}: {excerpt(message)}")

    def expect(self, kind: type[R], what: str) -> R:
        """Return the value if it is of type ``kind``. Otherwise raises :class:`TopologyError` with ``what``, which is expected."""
        if not isinstance(self.value, kind):
            raise self.error(f"{what} expected, and here is {_FOUND.get(type(self.value), repr(self.value))}")
        return self.value

    def mapping(self, what: str) -> dict[str, Node]:
        """Return the value as a mapping, empty if there is no value. Raises :class:`TopologyError` for any other value."""
        return {} if self.value is None else self.expect(dict, what)

    def plain(self) -> Any:
        """Return the value as plain dictionaries, lists and scalars, without line numbers."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value


def read(path: Path) -> Topology:
    """Read a topology file and the files that it includes; warn of hosts that cannot reach each other.

    Raises :class:`TopologyError` for a mistake in a file, or a host without a link.
    """
    topology = Topology(path.stem)
    files = _Files()
    root = files.parse(path)
    _add_document(topology, root, path, (path.resolve(),), files)
    for name, node in files.shared_risks:
        links: list[Node] = node.expect(list, f"the links of the shared risk group {name!r}, a list,")
        with _at(node):
            topology.add_shared_risk(name, [link.expect(str, "the name of a link") for link in links])
    if "name" in root:
        topology.name = root["name"].expect(str, "a name")
    if not topology.switches and not topology.hosts:
        raise TopologyError(f"{path}: this file declares no switch and no host")
    try:
        for host in topology.hosts:
            topology.attachment(host)
    except TopologyError as error:
        raise TopologyError(f"{path}: {error}") from None
    try:
        topology.check()
    except TopologyError as error:
        warnings.warn(f"{path}: {error}", TopologyWarning, stacklevel=3)
    return topology


class _Files:
    """The files of a topology, bounded together: a few that include each other twice stand for any number."""

    def __init__(self) -> None:
        self._left, self._left_bytes = MOST_FILES, MOST_TEXT_BYTES
        self._left_values = MOST_VALUES
        self.shared_risks: list[tuple[str, Node]] = []
        """The groups of all files: a group can have links of several."""

    def parse(self, path: Path) -> dict[str, Node]:
        """Parse a file into its values by key.

        Raises :class:`TopologyError` for a mistake, or for too many files or bytes in all.
        """
        if not self._left:
            raise TopologyError(f"{path}: a topology has at most {MOST_FILES} files, each inclusion counted")
        self._left -= 1
        with reading(path, TopologyError):
            content = read_regular(path, MOST_TEXT_BYTES, TopologyError)
            self._left_bytes -= len(content)
            if self._left_bytes < 0:
                raise TopologyError(f"{path}: with it the topology's files have more than {MOST_TEXT_BYTES >> 20} MiB")
            loader, composed = compose(content.decode(), self._left_values)
            self._left_values = loader.values_left
        return _document(path, composed)


def _document(path: Path, composed: yaml.Node | None) -> dict[str, Node]:
    root = Node(path, 1, None) if composed is None else _node(path, composed)
    document = root.mapping("a mapping of " + ", ".join(KEYS))
    for key, node in document.items():
        if key not in KEYS:
            raise node.error(unknown("key", key, KEYS))
    return document


def _node(path: Path, node: yaml.Node) -> Node:
    """Convert YAML's nodes to values with line numbers.

    Raises :class:`TopologyError` for a doubled key, which YAML's own loader would accept, and for keys and values that are none.
    """
    line = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        return Node(path, line, [_node(path, item) for item in node.value])
    if not isinstance(node, yaml.MappingNode):
        if MAC_TEXT.fullmatch(node.value):
            # Of digits alone it would be a number of base 60.
            return Node(path, line, node.value)
        try:
            return Node(path, line, SafeConstructor().construct_document(node))
        except (ValueError, yaml.YAMLError):
            raise TopologyError(f"{path}:{line}: {excerpt(repr(node.value))} is not a value") from None
    mapping: dict[str, Node] = {}
    for key_node, value_node in node.value:
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
        where = Node(path, key_node.start_mark.line + 1, key)
        if not isinstance(key, str) or key == "<<":
            raise where.error("keys are plain words here")
        if key in mapping:
            raise where.error(f"{key!r} is declared twice (first in line {mapping[key].line})")
        value = _node(path, value_node)
        mapping[key] = Node(path, where.line, value.value)
    return Node(path, line, mapping)


@contextmanager
def _at(node: Node) -> Iterator[None]:
    """Raise each :class:`TopologyError` of the enclosed code again as an error at the file and line of ``node``."""
    try:
        yield
    except TopologyError as error:
        raise node.error(str(error)) from None


def _add_document(
    topology: Topology, document: dict[str, Node], path: Path, chain: tuple[Path, ...], files: _Files
) -> None:
    if "include" in document:
        _include(topology, document["include"], path, chain, files)
    for name, node in _named(document.get("hosts"), "hosts"):
        fields = _fields(node, Host, "a mapping of options", GIVEN)
        with _at(node):
            topology.add_host(name, **fields)
    for name, node in _named(document.get("switches"), "switches"):
        fields = _fields(node, SwitchNode, "a mapping of options", GIVEN)
        with _at(node):
            topology.add_switch(name, **_beside(path, fields))
    defaults: dict[str, Any] = {}
    if (given := document.get("link_defaults")) is not None:
        for key in ENDS & given.mapping("link_defaults: a mapping").keys():
            raise given.value[key].error(f"link_defaults cannot have {key!r}, which differs from link to link")
        defaults = _fields(given, Link, "link_defaults: a mapping")
    _add_each(
        document.get("links"), "links", Link, ("a", "b"), lambda **fields: topology.add_link(**{**defaults, **fields})
    )
    generators = document.get("packet_generators")
    needed = ("switch", "port", "packet")
    _add_each(generators, "packet_generators", PacketGenerator, needed, topology.add_packet_generator)
    if (groups := document.get("srlg")) is not None:
        files.shared_risks += groups.mapping("srlg: a mapping of names to lists of links").items()


def _include(topology: Topology, node: Node, path: Path, chain: tuple[Path, ...], files: _Files) -> None:
    for entry in node.value if isinstance(node.value, list) else [node]:
        name = entry.expect(str, "the name of a file")
        included = path.parent / name
        try:
            resolved, is_there = included.resolve(), included.exists()
        except (OSError, ValueError):
            raise entry.error(f"no file has such a name, {name!r}") from None
        if resolved in chain:
            names = " -> ".join(file.name for file in (*chain[chain.index(resolved) :], resolved))
            raise entry.error(f"files include each other in a circle: {names}")
        if not is_there:
            raise entry.error(f"there is no file {str(included)!r} to include")
        if len(chain) == DEEPEST:
            raise entry.error(f"files include each other more than {DEEPEST} deep")
        _add_document(topology, files.parse(included), included, (*chain, resolved), files)


def _named(node: Node | None, what: str) -> Iterator[tuple[str, Node]]:
    """Yield each name with its options, from a list of names (no options) or from a mapping of names to options."""
    if node is None or node.value is None:
        return
    if isinstance(node.value, list):
        for entry in node.value:
            yield entry.expect(str, f"the name of one of the {what}"), Node(entry.file, entry.line, None)
    else:
        yield from node.mapping(f"{what}: a list of names, or a mapping of names to options").items()


def _fields(node: Node, model: type[BaseModel], what: str, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a mapping as fields of ``model`` in their own units.

    Raises :class:`TopologyError` with the line of a key that ``model`` does not have, or that is among ``without``.
    """
    fields = node.mapping(what)
    try:
        return spelled_out(model, {key: value.plain() for key, value in fields.items()}, without)
    except ParameterError as error:
        raise fields.get(error.field, node).error(f"{error.field}: {error.sentence}") from None


def _beside(path: Path, fields: dict[str, Any]) -> dict[str, Any]:
    """Return a switch's fields with the names of files, which are relative to the topology's file, as absolute ones."""
    names = {key: fields[key] for key in ("program", "entries") if isinstance(fields.get(key), str)}
    return {**fields, **{key: str((path.parent / name).absolute()) for key, name in names.items()}}


def _add_each(
    node: Node | None, what: str, model: type[BaseModel], needed: tuple[str, ...], add: Callable[..., object]
) -> None:
    if node is None or node.value is None:
        return
    entries: list[Node] = node.expect(list, f"{what}: a list")
    for entry in entries:
        fields = _fields(entry, model, f"one of the {what}, a mapping,")
        if missing := [key for key in needed if key not in fields]:
            raise entry.error(f"one of the {what} lacks {' and '.join(repr(key) for key in missing)}")
        with _at(entry):
            for key in ("a", "b", "switch"):
                if key in fields and not isinstance(fields[key], str):
                    raise TopologyError(f"{key}: {fields[key]!r} is not the name of a node")
            add(**fields)


def write(topology: Topology, *, ascii_only: bool = False) -> str:
    """Return YAML text that reads as the same topology. Default values are left out.

    ``ascii_only``: all other characters are escaped, for an output that cannot encode them.
    """
    hosts = {name: _host(host) or None for name, host in topology.hosts.items()}
    switches = {name: _switch(switch) or None for name, switch in topology.switches.items()}
    document: dict[str, Any] = {"name": topology.name}
    if hosts:
        document["hosts"] = hosts
    document["switches"] = switches if any(switches.values()) else list(switches)
    document["links"] = [_link(link) for link in topology.links]
    if topology.packet_generators:
        document["packet_generators"] = [
            {**_options(generator, set()), "packet": generator.packet.hex()} for generator in topology.packet_generators
        ]
    if topology.shared_risks:
        names = topology.link_names()
        document["srlg"] = {name: [names[i] for i in links] for name, links in topology.shared_risks.items()}
    form: dict[str, Any] = {
        "sort_keys": False,
        "default_flow_style": None,
        "width": 120,
        "allow_unicode": not ascii_only,
    }
    text: str = yaml.dump(document, Dumper=_Dumper, **form)
    return text


def _host(host: Host) -> dict[str, Any]:
    """Return the fields that a host was given, as values of YAML, even addresses that equal the defaults of its place."""
    found = _options(host, Host.model_fields.keys() - host.given().keys())
    if "gateway" in host.given():
        found["gateway"] = "none" if host.gateway is None else str(host.gateway)
    for name in ("mac", "neighbours", "interfaces", "commands"):
        found.pop(name, None)
    if "mac" in host.given():
        found["mac"] = mac_text(host.mac)
    if host.neighbours:
        found["neighbours"] = {str(address): mac_text(mac) for address, mac in host.neighbours.items()}
    if host.interfaces:
        found["interfaces"] = [_card(card) for card in host.interfaces]
    if host.commands:
        found["commands"] = list(host.commands)
    return found


def _card(card: Card) -> dict[str, Any]:
    given = {"mac": mac_text(card.mac)} if "mac" in card.model_fields_set else {}
    return {**_options(card, {"mac"}), **given}


def _switch(switch: SwitchNode) -> dict[str, Any]:
    found = _options(switch, {"name", "index", "device_id"})
    return {**found, "device_id": switch.device_id} if "device_id" in switch.model_fields_set else found


def _link(link: Link) -> dict[str, Any]:
    """Return the fields of a link for YAML, its ends first.

    Parameters that ``reverse`` gives are included even if they equal the defaults of links.
    """
    ends = ("a", "b", "a_port", "b_port")
    found = {**{name: getattr(link, name) for name in ends}, **_options(link, set(ends))}
    if link.reverse is not None:
        found["reverse"] = link.reverse.model_dump(exclude_unset=True, exclude_none=True)
    return found


def _options(model: BaseModel, without: set[str]) -> dict[str, Any]:
    """Return those fields of a model that differ from the defaults, except ``without``, as values of YAML."""
    fields = model.model_dump(mode="python", exclude_defaults=True, exclude=without)
    return {key: _yaml_value(value) for key, value in fields.items()}


def _yaml_value(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, bool | int | float | str | bytes | dict) else str(value)


class _Dumper(yaml.SafeDumper):
    """Without aliases, and nothing is written as nothing."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(type(None), lambda dumper, _: dumper.represent_scalar("tag:yaml.org,2002:null", ""))
