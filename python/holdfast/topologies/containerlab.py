"""Reads containerlab's ``NAME.clab.yml``: nodes by kind, and links between their interfaces.

A node of kind ``linux`` is a host; with a link to another host, the one of the two with more links is a switch. Nodes of all other
kinds are switches, as bridges are; their own software does not run here. ``exec`` of hosts gives addresses, routes, MAC addresses,
and commands; settings of ``defaults``, ``kinds`` and ``groups`` count. An interface's last number is its port, where it is free.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from holdfast.errors import TopologyError
from holdfast.regular_files import MOST_TEXT_BYTES, read_regular
from holdfast.suggestions import unknown
from holdfast.topologies import host_commands
from holdfast.topologies.draft import Draft
from holdfast.topologies.p4lang import natural
from holdfast.topology import Topology
from holdfast.yaml_model import Located, compose, reading

MOST_VALUES = 400_000
"""The most keys and values of a file."""

HOST_KINDS: Final = ("linux", "k8s-kind", "ext-container")

NOT_NODES: Final = ("host", "mgmt-net", "macvlan", "vxlan", "vxlan-stitch", "dummy")
"""Names of ends of links that are no nodes of the lab."""


def read(path: Path) -> Topology:
    """Return the topology in a file. Raises :class:`TopologyError` with the line of a mistake."""
    with reading(path, TopologyError):
        text = read_regular(path, MOST_TEXT_BYTES, TopologyError).decode()
        # Lines of templates for environment variables, ${NAME:=value}, stand for their default.
        loader, root = compose(re.sub(r"\$\{[A-Za-z_]\w*:?[=-]([^{}\n]*)\}", r"\1", text), MOST_VALUES)
        try:
            document = None if root is None else loader.construct_document(root)
        except (yaml.YAMLError, ValueError) as error:
            raise TopologyError(f"{path}: not YAML: {' '.join(str(error).split())[:200]}") from None
    lab = document.get("topology") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(lab, dict) or not isinstance(lab.get("nodes"), dict):
        raise TopologyError(f"{path}: not a lab of containerlab: there is no 'topology' with 'nodes' in it")
    name = document.get("name")
    lines: Located[Any] = Located(path, document, root)
    return _Lab(path, name if isinstance(name, str) and name else path.name.split(".")[0], lab, lines).topology()


@dataclass
class _End:
    """An end of a link, with the addresses that the link gives it."""

    node: str
    interface: str
    addresses: dict[str, Any]


class _Lab:
    """A lab in a file, and what becomes of its nodes."""

    def __init__(self, path: Path, name: str, lab: dict[str, Any], lines: Located[Any]) -> None:
        self._lab = lab
        self._lines = lines
        self._draft = Draft(path, name)
        self._ports: dict[str, dict[str, int]] = {}
        """The port of each interface, by switch."""
        self._interfaces: dict[str, list[str]] = {}
        """The interfaces that have links, by node."""

    def _line(self, place: str) -> str:
        return f"line {self._lines.line(place)}"

    def topology(self) -> Topology:
        """Return the topology of the lab: its nodes as switches and hosts, and the links between them.

        Raises :class:`TopologyError`, with the line of the file, if it describes none.
        """
        draft, nodes = self._draft, self._lab["nodes"]
        links = list(self._links())
        for _, a, b, _ in links:
            for end in (a, b):
                self._interfaces.setdefault(end.node, []).append(end.interface)
        kinds = {}
        for name, given in nodes.items():
            with draft.at(self._line(f"topology.nodes.{name}")):
                if not isinstance(name, str) or not isinstance(given, dict | None):
                    raise draft.error("a node has a name, and a mapping of its settings")
                kinds[name] = str(self._setting(given or {}, "kind") or "nothing")
        switches = self._switches(kinds, [(a.node, b.node) for _, a, b, _ in links])
        for name, given in nodes.items():
            with draft.at(self._line(f"topology.nodes.{name}")):
                self._add_node(name, given or {}, kinds[name], is_switch=name in switches)
        for place, a, b, fields in links:
            with draft.at(place):
                draft.link(a.node, b.node, a_port=self._port(a), b_port=self._port(b), **fields)
        return draft.finish()

    def _setting(self, node: Mapping[str, Any], key: str) -> Any:
        """Return a setting of a node: its own, or else the one of its group, its kind or the defaults; None if none is set."""
        for settings in self._settings(node):
            if settings.get(key) is not None:
                return settings[key]
        return None

    def _settings(self, node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        group = _mapping(_mapping(self._lab.get("groups")).get(node.get("group")))
        defaults = _mapping(self._lab.get("defaults"))
        kind = node.get("kind") or group.get("kind") or defaults.get("kind")
        yield from (node, group, _mapping(_mapping(self._lab.get("kinds")).get(kind)), defaults)

    def _links(self) -> Iterator[tuple[str, _End, _End, dict[str, Any]]]:
        """Yield each link between nodes: its place in the file, its two ends with their interfaces, and its fields."""
        links = self._lab.get("links") or []
        if not isinstance(links, list):
            raise self._draft.error("links: a list is expected")
        for index, link in enumerate(links):
            place = self._line(f"topology.links.{index}")
            with self._draft.at(place):
                if not isinstance(link, dict):
                    raise self._draft.error("a link is a mapping with 'endpoints'")
                if found := self._link(link):
                    yield place, *found

    def _link(self, link: dict[str, Any]) -> tuple[_End, _End, dict[str, Any]] | None:
        draft = self._draft
        kind = link.get("type", "veth")
        if kind != "veth":
            draft.leave_out(f"links of type {kind}")
            return None
        given = link.get("endpoints")
        if not isinstance(given, list) or len(given) != 2:
            raise draft.error("a link has two endpoints: ['a:eth1', 'b:eth1']")
        ends = [self._end(each) for each in given]
        if other := [end.node for end in ends if end.node in NOT_NODES and end.node not in self._lab["nodes"]]:
            draft.leave_out(f"links to {other[0]}")
            return None
        for end in ends:
            if end.node not in self._lab["nodes"]:
                raise draft.error(unknown("node", end.node, map(str, self._lab["nodes"])))
        for key in ("ipv4", "ipv6"):
            addresses = link.get(key)
            for end, address in zip(ends, addresses if isinstance(addresses, list) else (), strict=False):
                end.addresses.setdefault(key, address)
        for key in link:
            if key not in ("type", "endpoints", "mtu", "labels", "vars", "ipv4", "ipv6"):
                draft.leave_out(f"{key} of links")
        mtu = link.get("mtu")
        if mtu is not None and (not isinstance(mtu, int) or isinstance(mtu, bool)):
            raise draft.error(f"mtu is {mtu!r}; a number of bytes is expected")
        return ends[0], ends[1], {"mtu_bytes": mtu} if mtu is not None else {}

    def _end(self, end: Any) -> _End:
        addresses: dict[str, Any] = {}
        if isinstance(end, dict):
            node, interface = end.get("node"), end.get("interface")
            addresses = {key: end[key] for key in ("mac", "ipv4", "ipv6") if end.get(key) is not None}
        else:
            node, _, interface = end.partition(":") if isinstance(end, str) else (None, "", None)
        if not isinstance(node, str) or not isinstance(interface, str) or not node or not interface:
            raise self._draft.error(f"{end!r} is no endpoint such as 'srl1:e1-1'")
        return _End(node, interface, addresses)

    @staticmethod
    def _switches(kinds: Mapping[str, str], links: list[tuple[str, str]]) -> set[str]:
        """Return the nodes that are switches: all that are not Linux, and of two linked Linux nodes the one with more links."""
        switches = {name for name, kind in kinds.items() if kind not in HOST_KINDS}
        degree = Counter(end for link in links for end in link)
        for a, b in sorted(links, key=lambda link: -max(degree[link[0]], degree[link[1]])):
            if a not in switches and b not in switches and max(degree[a], degree[b]) > 1:
                switches.add(a if degree[a] >= degree[b] else b)
        return switches

    def _add_node(self, name: str, given: dict[str, Any], kind: str, *, is_switch: bool) -> None:
        draft = self._draft
        if is_switch:
            if kind in ("bridge", "ovs-bridge"):
                draft.switch(name, kind="bridge")
                return
            draft.switch(name)
            if kind in HOST_KINDS:
                draft.leave_out(f"the software of nodes of kind {kind} between hosts, which become switches")
            else:
                draft.leave_out(f"the software of nodes of kind {kind}, which become switches")
            if self._setting(given, "startup-config") is not None:
                draft.leave_out("startup-config of nodes")
            return
        host = draft.host(name, gateway="none")
        commands: list[str] = []
        for settings in reversed(list(self._settings(given))):
            more = settings.get("exec") or []
            if not isinstance(more, list) or not all(isinstance(each, str) for each in more):
                raise draft.error("exec: a list of commands is expected")
            commands += [each for each in more if each not in commands]
        host_commands.take(host, commands, self._cards(name).get)
        if self._setting(given, "binds"):
            draft.leave_out("binds of hosts")

    def _cards(self, node: str) -> dict[str, int]:
        """Return the number of each network card of a host, by the name of the interface, in the order of these names."""
        return {name: card for card, name in enumerate(sorted(self._interfaces.get(node, ()), key=natural))}

    def _port(self, end: _End) -> int:
        """Return the port of an interface: a host's card, or in a switch the last number in its name if that is free."""
        draft, node, interface = self._draft, end.node, end.interface
        used = self._ports.setdefault(node, {})
        if interface in used:
            raise draft.error(f"interface {interface!r} of {node!r} has two links")
        if (host := draft.hosts.get(node)) is not None:
            used[interface] = self._cards(node)[interface]
            for key, address in end.addresses.items():
                host.card(used[interface]).setdefault({"ipv4": "address"}.get(key, key), str(address))
            return used[interface]
        numbers = re.findall(r"[0-9]{1,4}", interface)
        wanted = int(numbers[-1]) if numbers else 0
        if not 1 <= wanted <= 509 or wanted in used.values():
            wanted = next(port for port in range(1, 1 << 16) if port not in used.values())
        used[interface] = wanted
        return wanted


def _mapping(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}
