"""Taking over: what a controller finds in the switches when it starts after another one, which may have been killed at any point.

The switches' entries carry, as P4Runtime metadata, what a controller must know of them. What is whole is adopted as it is, and
no register is written: sequence numbers go on. What is half is finished or removed. Nothing is known here of how changes are made;
only what their leftovers look like.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.apps.protect.changes import Changes, Phase
from holdfast.apps.protect.connection import Connection, Flow
from holdfast.apps.protect.numbers import Numbers
from holdfast.apps.protect.paths import Path, ends_of, path_over
from holdfast.apps.protect.tunnels import (
    COPY_TABLE,
    ENDPOINT_TABLE,
    ROUTE_TABLE,
    Copy,
    PathSet,
    Tunnel,
    copy_key,
    endpoint_key,
    route_key,
)
from holdfast.apps.router.controller import TableEntry, has_table
from holdfast.errors import HoldfastError, NetworkError
from holdfast.p4runtime.client import Client
from holdfast.p4runtime.received import Entry

if TYPE_CHECKING:
    from holdfast.apps.protect.controller import ProtectController


@dataclass(frozen=True)
class TakeOver:
    """What was found: ``connections`` and ``flows`` that go on; entries of theirs that were ``restored``; leftovers ``removed``."""

    connections: int
    flows: int
    restored: int
    removed: int


@dataclass(frozen=True)
class _Found:
    """What a switch holds."""

    routes: dict[str, TableEntry]
    """By prefix; of IPv6 those to hosts."""
    groups: dict[int, list[tuple[int, int]]]
    copies: dict[tuple[int, int], Entry]
    endpoints: dict[str, Entry]
    connections: dict[int, Entry]
    flows: list[Entry]


def take_over(controller: ProtectController) -> TakeOver | None:
    """Adopts what the switches hold; None if they hold nothing. The controller has nothing of its own yet."""
    found = {name: _read(controller, client) for name, client in controller.clients.items()}
    if not any(_is_filled(f) for f in found.values()):
        return None
    return _Takeover(controller, found).run()


def _is_filled(found: _Found) -> bool:
    return bool(found.routes or found.groups or found.copies or found.endpoints or found.connections or found.flows)


def _read(controller: ProtectController, client: Client) -> _Found:
    routes = {
        f"{ipaddress.IPv4Address(address)}/{length}": entry for (address, length), entry in _routes(client, ROUTE_TABLE)
    }
    subnets = {host.ipv6.network for host in controller.topology.hosts.values() if host.ipv6 is not None}
    if subnets and has_table(client, controller.table_v6):
        for key, entry in _routes(client, controller.table_v6):
            # What leads elsewhere is not this controller's.
            if (network := ipaddress.IPv6Network(key)) in subnets:
                routes[str(network)] = entry
    return _Found(
        routes,
        client.multicast_groups(),
        {(_number(e, "multicast_group"), _number(e, "egress_rid")): e for e in client.read_table(COPY_TABLE)},
        {str(ipaddress.IPv4Address(_number(e, "dst_addr"))): e for e in client.read_table(ENDPOINT_TABLE)},
        {_number(e, "cid"): e for e in client.read_table(controller.connection_table)},
        [e for table in controller.flow_tables.values() if has_table(client, table) for e in client.read_table(table)],
    )


def _routes(client: Client, table: str) -> Iterator[tuple[tuple[int, int], TableEntry]]:
    """A table of routes: address, length of the prefix, and entry."""
    for entry in client.read_table(table):
        (match,) = entry.match.values()
        assert isinstance(match, tuple)
        parameters = {
            name: int(value).to_bytes(6, "big") if name.endswith("_mac") else value
            for name, value in entry.params.items()
        }
        yield (match[0], match[1]), (entry.action, parameters)


def _number(entry: Entry, field: str) -> int:
    value = next(value for name, value in entry.match.items() if name.rsplit(".", 1)[-1] == field)
    assert isinstance(value, int)
    return value


def _metadata(entry: Entry) -> dict[str, Any] | None:
    """What the entry's controller left in it; None if it was none of ours."""
    try:
        value = json.loads(entry.metadata)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


class _Takeover:
    """One take-over."""

    def __init__(self, controller: ProtectController, found: dict[str, _Found]) -> None:
        self.controller = controller
        self.tunnels = controller.tunnels
        self.found = found
        self.changes = Changes()
        self.restored = 0
        self.removed = 0
        self.known_flows: dict[tuple[str, int], Connection] = {}
        self.leftovers: list[tuple[Phase, str, Callable[[Client], None]]] = []
        self.reserved: list[Callable[[], None]] = []

    def run(self) -> TakeOver:
        """Adopts, and writes what is missing or too much."""
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
        self.changes.apply(self.controller.clients)
        if self.leftovers:
            self.controller.when_drained(self._remove_leftovers)
        flows = sum(len(connection.flows) for connection in self.controller.connections)
        return TakeOver(len(self.controller.connections), flows, self.restored, self.removed)

    def _remove(self, phase: Phase, switch: str, write: Callable[[Client], None]) -> None:
        self.removed += 1
        self.changes.add(phase, switch, write)

    def _remove_later(self, phase: Phase, switch: str, write: Callable[[Client], None]) -> None:
        """Of what packets may still be under way on."""
        self.removed += 1
        self.leftovers.append((phase, switch, write))

    def _reserve(self, numbers: Numbers, number: int) -> None:
        """Nobody gets this number before the leftovers are removed."""
        if numbers.claim(number):
            self.reserved.append(partial(numbers.give_back, number))

    def _remove_leftovers(self, changes: Changes) -> None:
        for phase, switch, write in self.leftovers:
            changes.add(phase, switch, write)
        for give_back in self.reserved:
            changes.afterwards(give_back)

    def _restore(self, phase: Phase, switch: str, write: Callable[[Client], None]) -> None:
        self.restored += 1
        self.changes.add(phase, switch, write)

    # ---- Path sets ----

    def _adopt_path_sets(self, name: str, found: _Found) -> None:
        """The groups whose copies are all there and understood; and no copies but those."""
        for group, replicas in sorted(found.groups.items()):
            path_set = self._path_set(name, group, replicas, found)
            if path_set is None or not self.tunnels.groups[name].claim(group):
                self._remove(Phase.UNCOPY, name, partial(_delete_group, group))
                continue
            for copy in path_set.copies:
                copy.tunnel.users += 1
            self.tunnels.adopt(path_set)
            if dict(replicas) != dict(self.tunnels.replicas(path_set)):
                replicas_now = self.tunnels.replicas(path_set)
                self._restore(Phase.SWITCH, name, partial(_modify_group, group, replicas_now))
        for group, instance in sorted(found.copies):
            path_set = self.tunnels.path_sets.get((name, group))
            if path_set is None or instance not in {copy.instance for copy in path_set.copies}:
                self._remove(Phase.UNCOPY, name, partial(_delete, COPY_TABLE, copy_key(group, instance)))

    def _path_set(self, name: str, group: int, replicas: list[tuple[int, int]], found: _Found) -> PathSet | None:
        noted = [(instance, found.copies.get((group, instance))) for _, instance in replicas]
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
        """Where a copy goes, or should. Raises where there is no such link, or where no discovery could find it."""
        found = [self.controller.find_link(*ends_of(name), in_use=in_use) for name in links]
        return path_over(self.controller.topology, ingress, found)

    def _adopt_tunnel(self, path: Path, number: int, address: int) -> Tunnel:
        """Raises :class:`NetworkError` where two tunnels would have an address, or one tunnel two."""
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
        """Nobody uses it: its controller was killed before or after somebody did."""
        self._remove(Phase.UNCOPY, path_set.ingress, partial(_delete_group, path_set.group))
        for copy in path_set.copies:
            copy.tunnel.users -= 1
            key = copy_key(path_set.group, copy.instance)
            self._remove(Phase.UNCOPY, path_set.ingress, partial(_delete, COPY_TABLE, key))
        self.tunnels.forget(path_set)
        self.changes.afterwards(partial(self.tunnels.groups[path_set.ingress].give_back, path_set.group))

    # ---- Connections ----

    def _adopt_connection(self, egress: str, cid: int, entry: Entry) -> None:
        controller, noted = self.controller, _metadata(entry)
        connection = None if noted is None else self._connection(egress, cid, entry, noted)
        if connection is None:
            key = {"hdr.protection.cid": cid}
            self._remove_later(Phase.FORGET, egress, partial(_delete, controller.connection_table, key))
            controller.reserve_egress(egress, cid, int(entry.params.get("index", -1)), self._reserve)
            return
        connection.path_set.users += 1
        controller.adopt(connection)
        self.known_flows[connection.ingress, connection.index] = connection

    def _connection(self, egress: str, cid: int, entry: Entry, noted: dict[str, Any]) -> Connection | None:
        path_set = self.tunnels.path_sets.get((noted.get("ingress", ""), noted.get("group", 0)))
        if path_set is None or path_set.egress != egress:
            return None
        connection = self.controller.connection_from(noted, entry, egress, cid, path_set)
        return connection if connection is not None and self.controller.claim(connection) else None

    def _adopt_flow(self, ingress: str, entry: Entry) -> None:
        controller, noted = self.controller, _metadata(entry)
        connection = self.known_flows.get((ingress, int(entry.params.get("index", -1))))
        try:
            flow = None if noted is None else Flow(**noted)
            if flow is not None and controller.flow_tables[flow.version] != entry.table:
                flow = None
        except (TypeError, ValueError, NetworkError):
            flow = None
        if connection is None or flow is None:
            key = dict(entry.match)
            self._remove(Phase.STOP, ingress, partial(_delete, entry.table, key, priority=entry.priority))
            return
        controller.adopt_flow(connection, flow, entry.priority)
        if (entry.params["m_grp"], entry.params["mtu"]) != (connection.multicast_group, connection.mtu):
            # A change was under way; the connection's entry has the last word.
            write = partial(controller.write_flow, connection, flow, entry.priority, modify=True)
            self._restore(Phase.SWITCH, ingress, write)

    # ---- Tunnels and routes ----

    def _compare_tunnels(self) -> None:
        """Host routes and addresses: exactly those of the tunnels that are in use."""
        endpoints: dict[str, set[str]] = {name: set() for name in self.found}
        routes: dict[str, set[str]] = {name: set() for name in self.found}
        for tunnel in list(self.tunnels.tunnels.values()):
            if not tunnel.users:
                self.tunnels.forget_tunnel(tunnel)
                continue
            end = tunnel.path.nodes[-1]
            endpoints[end].add(tunnel.address)
            if tunnel.address not in self.found[end].endpoints:
                self._restore(Phase.RECEIVE, end, partial(_write_endpoint, self.controller, tunnel))
            for node in tunnel.path.nodes[1:-1]:
                prefix = f"{tunnel.address}/32"
                routes[node].add(prefix)
                wanted = self.controller.entry(self.tunnels.route(tunnel, node))
                present = prefix in self.found[node].routes
                if not present or self.found[node].routes[prefix] != wanted:
                    self._restore(Phase.ROUTE, node, self.tunnels.route_writer(tunnel, node, modify=present))
        for name, found in self.found.items():
            for address in sorted(found.endpoints.keys() - endpoints[name]):
                self._remove_later(Phase.FORGET, name, partial(_delete, ENDPOINT_TABLE, endpoint_key(address)))
                self._reserve(self.tunnels.numbers, self.tunnels.number_of(address))
            for prefix in sorted(found.routes.keys() - routes[name]):
                if self._is_tunnel(prefix):
                    address = prefix.partition("/")[0]
                    self._remove_later(Phase.UNROUTE, name, partial(_delete, ROUTE_TABLE, route_key(address)))
                    self._reserve(self.tunnels.numbers, self.tunnels.number_of(address))

    def _is_tunnel(self, prefix: str) -> bool:
        network = ipaddress.ip_network(prefix)
        return isinstance(network, ipaddress.IPv4Network) and network.subnet_of(self.tunnels.addresses)

    def _adopt_routes(self) -> None:
        """The hosts' routes, of which the base class then writes what differs."""
        for name, found in self.found.items():
            kept = {prefix: entry for prefix, entry in found.routes.items() if not self._is_tunnel(prefix)}
            self.controller.adopt_routes(name, kept)


def _delete(table: str, key: dict[str, Any], client: Client, priority: int | None = None) -> None:
    client.delete(table, key, priority=priority)


def _delete_group(group: int, client: Client) -> None:
    client.delete_multicast_group(group)


def _modify_group(group: int, replicas: list[tuple[int, int]], client: Client) -> None:
    client.multicast_group(group, replicas, verb="modify")


def _write_endpoint(controller: ProtectController, tunnel: Tunnel, client: Client) -> None:
    controller.tunnels.write_endpoint(client, tunnel)
