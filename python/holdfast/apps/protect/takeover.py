"""Taking over: a controller's findings in the switches when it starts after another one, which may have been killed at any point.

The switches' entries carry, as P4Runtime metadata, what a controller must know of them. Complete connections are adopted as they
are, and no register is written: sequence numbers go on. Incomplete ones are finished or removed. This module does not know how
changes are made, only what their leftovers look like.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.apps.protect.acceptance import Acceptance
from holdfast.apps.protect.changes import Changes, Phase, Transactions
from holdfast.apps.protect.connection import Connection, Copy, Flow, PathSet, Tunnel, checked_mtu
from holdfast.apps.protect.entries import copy_group, endpoint_entry, flow_entry, tunnel_route
from holdfast.apps.protect.program import CONNECTION_TABLE, COPY_TABLE, ENDPOINT_TABLE, FLOW_TABLES, ROUTES
from holdfast.apps.protect.registry import Registry
from holdfast.apps.protect.tunnels import Tunnels
from holdfast.control.desired import Entity
from holdfast.control.entities import MulticastGroup
from holdfast.control.link_state import LinkState
from holdfast.control.numbers import Numbers
from holdfast.control.routes import Prefix, Routing
from holdfast.control.tables import TableEntry, read_entries
from holdfast.errors import HoldfastError, NetworkError
from holdfast.p4runtime.client import Client, Verb
from holdfast.paths import Path, ends_of, path_over
from holdfast.topology import Topology


@dataclass(frozen=True)
class TakeOver:
    """What a take-over did, in numbers: ``connections`` and ``flows`` kept, their entries ``restored``, leftovers ``removed``."""

    connections: int
    flows: int
    restored: int
    removed: int


@dataclass(frozen=True)
class _Found:
    """The entries of a switch."""

    routes: dict[Prefix, TableEntry]
    """Of IPv6 those to hosts."""
    groups: dict[int, list[tuple[int, int]]]
    copies: dict[tuple[int, int], TableEntry]
    """By group and instance."""
    endpoints: dict[str, TableEntry]
    """By address."""
    connections: dict[int, TableEntry]
    """By identifier."""
    flows: list[TableEntry]

    @property
    def is_filled(self) -> bool:
        """True if an earlier controller has left anything in the switch."""
        return bool(self.routes or self.groups or self.copies or self.endpoints or self.connections or self.flows)


@dataclass(frozen=True)
class State:
    """The parts of a controller that a take-over fills. They have nothing of their own yet."""

    clients: Mapping[str, Client]
    links: LinkState
    routing: Routing
    tunnels: Tunnels
    registry: Registry
    transactions: Transactions


def take_over(state: State) -> TakeOver | None:
    """Take over the connections that an earlier controller has left in the switches; return None if it has left nothing."""
    topology = state.links.topology
    found = {name: _read(topology, client) for name, client in state.clients.items()}
    return _Takeover(state, found).run() if any(f.is_filled for f in found.values()) else None


def _read(topology: Topology, client: Client) -> _Found:
    return _Found(
        dict(_routes(topology, client)),
        client.multicast_groups(),
        {(_number(e, "multicast_group"), _number(e, "egress_rid")): e for e in read_entries(client, COPY_TABLE)},
        {str(ipaddress.IPv4Address(_number(e, "dst_addr"))): e for e in read_entries(client, ENDPOINT_TABLE)},
        {_number(e, "cid"): e for e in read_entries(client, CONNECTION_TABLE)},
        [entry for table in FLOW_TABLES.values() for entry in read_entries(client, table)],
    )


def _routes(topology: Topology, client: Client) -> Iterator[tuple[Prefix, TableEntry]]:
    """Yield (prefix, entry) of the routes in a switch that this controller may have written.

    Routes of IPv6 are only those to networks of hosts.
    """
    for entry in read_entries(client, ROUTES.ipv4):
        yield ipaddress.IPv4Network(_prefix(entry)), entry
    subnets = {host.ipv6.network for host in topology.hosts.values() if host.ipv6 is not None}
    for entry in read_entries(client, ROUTES.ipv6) if subnets else []:
        if (network := ipaddress.IPv6Network(_prefix(entry))) in subnets:
            yield network, entry


def _prefix(entry: TableEntry) -> tuple[int, int]:
    (match,) = entry.match.values()
    assert isinstance(match, tuple)
    return match


def _number(entry: TableEntry, field: str) -> int:
    value = next(value for name, value in entry.match.items() if name.rsplit(".", 1)[-1] == field)
    assert isinstance(value, int)
    return value


def _metadata(entry: TableEntry) -> dict[str, Any] | None:
    """Return the metadata of an entry, decoded from JSON; None if this application did not write it."""
    try:
        value = json.loads(entry.metadata)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


class _Takeover:
    """One take-over."""

    def __init__(self, state: State, found: dict[str, _Found]) -> None:
        self.state = state
        self.topology = state.links.topology
        self.tunnels = state.tunnels
        self.registry = state.registry
        self.found = found
        self.changes = Changes()
        self.restored = 0
        self.removed = 0
        self.known_flows: dict[tuple[str, int], Connection] = {}
        self.leftovers: list[tuple[Phase, str, Entity]] = []
        self.reserved: list[Callable[[], None]] = []

    def run(self) -> TakeOver:
        """Adopt the connections in the switches, write missing entries, and remove leftover ones; return what was done."""
        for name, found in self.found.items():
            self._adopt_path_sets(name, found)
        for name, found in self.found.items():
            for cid, entry in found.connections.items():
                self._adopt_connection(name, cid, entry)
        for name, found in self.found.items():
            for entry in found.flows:
                self._adopt_flow(name, entry)
        for path_set in list(self.tunnels.path_sets.values()):
            if not path_set.users:
                self._remove_path_set(path_set)
        self._compare_tunnels()
        self._adopt_routes()
        self.changes.apply(self.state.clients)
        if self.leftovers:
            self.state.transactions.when_drained(self._remove_leftovers)
        flows = sum(len(connection.flows) for connection in self.registry)
        return TakeOver(len(self.registry), flows, self.restored, self.removed)

    def _remove(self, phase: Phase, switch: str, entity: Entity) -> None:
        self.removed += 1
        self.changes.delete(phase, switch, entity)

    def _remove_later(self, phase: Phase, switch: str, entity: Entity) -> None:
        """Schedule the removal of a leftover entry for later, as packets on the way may still match it."""
        self.removed += 1
        self.leftovers.append((phase, switch, entity))

    def _reserve(self, numbers: Numbers, number: int) -> None:
        """Reserve a number until the leftover entries that use it are removed, so that no new connection gets it."""
        if numbers.claim(number):
            self.reserved.append(partial(numbers.give_back, number))

    def _remove_leftovers(self, changes: Changes) -> None:
        for phase, switch, entity in self.leftovers:
            changes.delete(phase, switch, entity)
        for give_back in self.reserved:
            changes.afterwards(give_back)

    def _restore(self, phase: Phase, switch: str, entity: Entity, verb: Verb) -> None:
        self.restored += 1
        self.changes.add(phase, switch, (verb, entity))

    # ---- Path sets ----

    def _adopt_path_sets(self, name: str, found: _Found) -> None:
        """Adopt the multicast groups of ``name`` whose copies are complete and understood; remove other groups and copies."""
        for group, present in sorted(found.groups.items()):
            path_set = self._path_set(name, group, present, found)
            if path_set is None or not self.tunnels.groups[name].claim(group):
                self._remove(Phase.UNCOPY, name, MulticastGroup(group, ()))
                continue
            for copy in path_set.copies:
                copy.tunnel.users += 1
            self.tunnels.adopt(path_set)
            wanted = copy_group(self.topology, path_set)
            if dict(present) != dict(wanted.replicas):
                self._restore(Phase.SWITCH, name, wanted, "modify")
        for (group, instance), entry in sorted(found.copies.items(), key=lambda item: item[0]):
            path_set = self.tunnels.path_sets.get((name, group))
            if path_set is None or instance not in {copy.instance for copy in path_set.copies}:
                self._remove(Phase.UNCOPY, name, entry)

    def _path_set(self, name: str, group: int, present: list[tuple[int, int]], found: _Found) -> PathSet | None:
        noted = [(instance, found.copies.get((group, instance))) for _, instance in present]
        described = [(instance, e, _metadata(e)) for instance, e in noted if e is not None]
        try:
            described.sort(key=lambda item: item[2]["number"])  # type: ignore[index]
            first = described[0][2]
            assert first is not None
            preferred = tuple(self._path(name, links, in_use=False) for links in first["preferred"])
            if [item[2]["number"] for item in described] != list(range(1, len(preferred) + 1)):  # type: ignore[index]
                return None
            path_set = PathSet(name, preferred[0].nodes[-1], group, first["disjoint"], preferred)
            for instance, entry, noted_of in described:
                assert noted_of is not None
                path = self._path(name, noted_of["links"], in_use=True)
                tunnel = self._adopt_tunnel(path, noted_of["number"], int(entry.params["dst_ip"]))
                path_set.copies.append(Copy(instance, tunnel))
        except (HoldfastError, KeyError, TypeError, ValueError, AttributeError, IndexError, AssertionError):
            # Not ours, or of another topology.
            return None
        return path_set

    def _path(self, ingress: str, links: list[str], *, in_use: bool) -> Path:
        """Return the path from ``ingress`` over the named links. ``in_use``: it is that of a copy, not only the intended one.

        Raise an exception if a link does not exist, or if discovery cannot find it.
        """
        found = [self.state.links.find(*ends_of(name), in_use=in_use) for name in links]
        return path_over(self.topology, ingress, found)

    def _adopt_tunnel(self, path: Path, number: int, address: int) -> Tunnel:
        """Adopt a tunnel and return it. Raise :class:`NetworkError` if its address and another tunnel's contradict each other."""
        known = self.tunnels.find(path, number)
        text = str(ipaddress.IPv4Address(address))
        if known is not None:
            if known.address != text:
                raise NetworkError(f"the tunnel over {path} has two addresses")
            return known
        if not self.tunnels.numbers.claim(self.tunnels.number_of(text)):
            raise NetworkError(f"two tunnels have the address {text}")
        return self.tunnels.adopt_tunnel(path, number, text)

    def _remove_path_set(self, path_set: PathSet) -> None:
        """Remove a path set that no connection uses.

        The earlier controller was killed before a connection used it, or after the last one did.
        """
        self._remove(Phase.UNCOPY, path_set.ingress, copy_group(self.topology, path_set))
        for copy in path_set.copies:
            copy.tunnel.users -= 1
            entry = self.found[path_set.ingress].copies[path_set.group, copy.instance]
            self._remove(Phase.UNCOPY, path_set.ingress, entry)
        self.tunnels.forget(path_set)
        self.changes.afterwards(partial(self.tunnels.groups[path_set.ingress].give_back, path_set.group))

    # ---- Connections ----

    def _adopt_connection(self, egress: str, cid: int, entry: TableEntry) -> None:
        noted = _metadata(entry)
        connection = None if noted is None else self._connection(egress, cid, entry, noted)
        if connection is None:
            self._remove_later(Phase.FORGET, egress, entry)
            self.registry.reserve_egress(egress, cid, int(entry.params.get("index", -1)), self._reserve)
            return
        connection.path_set.users += 1
        self.registry.adopt(connection)
        self.known_flows[connection.ingress, connection.index] = connection

    def _connection(self, egress: str, cid: int, entry: TableEntry, noted: dict[str, Any]) -> Connection | None:
        path_set = self.tunnels.path_sets.get((noted.get("ingress", ""), noted.get("group", 0)))
        if path_set is None or path_set.egress != egress:
            return None
        try:
            index, mtu, egress_index = noted["index"], checked_mtu(noted["mtu"]), int(entry.params["index"])
            acceptance = Acceptance.of(str(entry.action), entry.params)
        except (KeyError, TypeError, NetworkError):
            return None
        connection = Connection(noted["ingress"], egress, cid, index, egress_index, path_set, mtu, acceptance)
        return connection if self.registry.claim(connection) else None

    def _adopt_flow(self, ingress: str, entry: TableEntry) -> None:
        noted = _metadata(entry)
        connection = self.known_flows.get((ingress, int(entry.params.get("index", -1))))
        try:
            flow = None if noted is None else Flow(**noted)
            if flow is not None and FLOW_TABLES[flow.version] != entry.table:
                flow = None
        except (TypeError, ValueError, NetworkError):
            flow = None
        if connection is None or flow is None or entry.priority is None:
            self._remove(Phase.STOP, ingress, entry)
            return
        self.registry.adopt_flow(connection, flow, entry.priority)
        if (entry.params["m_grp"], entry.params["mtu"]) != (connection.multicast_group, connection.mtu):
            # A change was under way; the connection's entry has the last word.
            self._restore(Phase.SWITCH, ingress, flow_entry(self.topology, connection, flow, entry.priority), "modify")

    # ---- Tunnels and routes ----

    def _compare_tunnels(self) -> None:
        """Write and remove routes and endpoint entries until they are exactly those of the tunnels in use."""
        endpoints: dict[str, set[str]] = {name: set() for name in self.found}
        routes: dict[str, set[Prefix]] = {name: set() for name in self.found}
        for tunnel in list(self.tunnels.tunnels.values()):
            if not tunnel.users:
                self.tunnels.forget_tunnel(tunnel)
                continue
            end = tunnel.path.nodes[-1]
            endpoints[end].add(tunnel.address)
            if tunnel.address not in self.found[end].endpoints:
                self._restore(Phase.RECEIVE, end, endpoint_entry(tunnel), "insert")
            address = ipaddress.IPv4Network(tunnel.address)
            for node in tunnel.path.nodes[1:-1]:
                routes[node].add(address)
                wanted = tunnel_route(self.topology, tunnel, node)
                present = self.found[node].routes.get(address)
                if present != wanted:
                    self._restore(Phase.ROUTE, node, wanted, "insert" if present is None else "modify")
        for name, found in self.found.items():
            for unused in sorted(found.endpoints.keys() - endpoints[name]):
                self._remove_later(Phase.FORGET, name, found.endpoints[unused])
                self._reserve(self.tunnels.numbers, self.tunnels.number_of(unused))
            for prefix in sorted(filter(self._is_tunnel, found.routes.keys() - routes[name]), key=str):
                self._remove_later(Phase.UNROUTE, name, found.routes[prefix])
                self._reserve(self.tunnels.numbers, self.tunnels.number_of(str(prefix.network_address)))

    def _is_tunnel(self, prefix: Prefix) -> bool:
        return isinstance(prefix, ipaddress.IPv4Network) and prefix.subnet_of(self.tunnels.addresses)

    def _adopt_routes(self) -> None:
        """Adopt the routes to hosts; the routing later writes what differs."""
        for name, found in self.found.items():
            kept = [entry for prefix, entry in found.routes.items() if not self._is_tunnel(prefix)]
            self.state.routing.writers[name].adopt(kept)
