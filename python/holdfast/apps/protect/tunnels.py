"""Tunnels, and the sets of them over which a PTI sends copies.

A tunnel is one path to a PTE, with an address of its own there and a host route along its nodes, so that the nodes in between need
nothing but destination routing and the copies never meet. A path set is a multicast group of the PTI with a tunnel per copy. All
connections over the same paths share both: a thousand connections need no more routes than one, and when a path fails one
write to one group moves all of them. What a connection is, is not known here.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from holdfast.apps.protect.changes import Changes, Phase
from holdfast.apps.protect.numbers import Numbers
from holdfast.apps.protect.paths import Disjoint, Path, link_ends
from holdfast.p4runtime.client import Client
from holdfast.topology import Topology

TUNNEL_ADDRESSES = ipaddress.IPv4Network("10.254.0.0/16")
"""Where the PTEs' addresses, one per tunnel, are taken from."""

GROUPS = 65_535
"""Multicast groups of a switch, from 1."""

ENDPOINT_TABLE = "ProtectIngress.decaps_ip.tunnel_endpoints"
END_PATH = "ProtectIngress.decaps_ip.end_path"
COPY_TABLE = "ProtectEgress.tunnel_copies"
SEND_COPY = "ProtectEgress.send_copy"
ROUTE_TABLE = "ProtectIngress.protect_and_forward.ipv4_lpm"
ROUTE_KEY = "dst_addr"
FORWARD = "ProtectIngress.protect_and_forward.forward"


@dataclass(eq=False)
class Tunnel:
    """A path, and the PTE's address on it. ``number`` is that of the copy that takes it, from 1: the PTE counts by it, from 0."""

    path: Path
    number: int
    address: str
    users: int = 0


@dataclass(frozen=True)
class Copy:
    """A replica of a group: its instance number (the egress' ``egress_rid``), and where it goes."""

    instance: int
    tunnel: Tunnel


@dataclass(eq=False)
class PathSet:
    """Where a PTI's group sends copies. ``preferred``: the paths that it was set up with, and returns to after repairs."""

    ingress: str
    egress: str
    group: int
    disjoint: Disjoint
    preferred: tuple[Path, ...]
    copies: list[Copy] = field(default_factory=list)
    leaving: list[Copy] = field(default_factory=list)
    """Not made any more, but still there for packets under way."""
    users: int = 0

    @property
    def paths(self) -> list[Path]:
        """The paths that copies take now, by their number."""
        return [copy.tunnel.path for copy in self.copies]

    def __str__(self) -> str:
        return f"{self.ingress}-{self.egress} group {self.group}"


def hop(topology: Topology, node: str, link_index: int) -> tuple[int, bytes, bytes]:
    """Port, source and destination MAC address of what a switch sends over a link."""
    link = topology.links[link_index]
    ends = ((link.a, link.a_port), (link.b, link.b_port))
    (_, port), (there, there_port) = ends if link.a == node else ends[::-1]
    return port, topology.port_mac(node, port), topology.port_mac(there, there_port)


class Tunnels:
    """All tunnels and path sets. What is asked for here is only noted in :class:`Changes`, which the caller applies."""

    def __init__(self, topology: Topology, addresses: ipaddress.IPv4Network = TUNNEL_ADDRESSES) -> None:
        self.topology = topology
        self.addresses = addresses
        # The first two and the last are left out: some hosts take them for a network's or a broadcast address.
        self.numbers = Numbers(2, addresses.num_addresses - 2, f"tunnel addresses of {addresses}")
        self.groups = {name: Numbers(1, GROUPS, f"multicast groups of {name}") for name in topology.switches}
        self.tunnels: dict[tuple[str, tuple[int, ...], int], Tunnel] = {}
        self.path_sets: dict[tuple[str, int], PathSet] = {}
        self._shared: dict[tuple[str, Disjoint, tuple[Path, ...]], PathSet] = {}

    # ---- Path sets ----

    def acquire(self, changes: Changes, paths: Sequence[Path], disjoint: Disjoint) -> PathSet:
        """The path set over these paths, for one more user; set up unless others have it already."""
        ingress, egress = paths[0].nodes[0], paths[0].nodes[-1]
        key = (ingress, disjoint, tuple(paths))
        path_set = self._shared.get(key)
        if path_set is None:
            path_set = PathSet(ingress, egress, self.groups[ingress].take(), disjoint, tuple(paths))
            changes.otherwise(lambda: self.groups[ingress].give_back(path_set.group))
            self._note(changes, path_set)
            path_set.copies = [
                self._add_copy(changes, path_set, number, path, instance=number)
                for number, path in enumerate(paths, start=1)
            ]
            replicas = self.replicas(path_set)
            changes.add(
                Phase.COPY,
                ingress,
                lambda client: client.multicast_group(path_set.group, replicas),
                lambda client: client.delete_multicast_group(path_set.group),
            )
        path_set.users += 1
        changes.otherwise(lambda: _count(path_set, -1))
        return path_set

    def _note(self, changes: Changes, path_set: PathSet) -> None:
        self.adopt(path_set)
        changes.otherwise(lambda: self.forget(path_set))

    def adopt(self, path_set: PathSet) -> None:
        """Counts a path set among those that there are."""
        self.path_sets[path_set.ingress, path_set.group] = path_set
        self._shared.setdefault((path_set.ingress, path_set.disjoint, path_set.preferred), path_set)

    def forget(self, path_set: PathSet) -> None:
        """Counts it no more."""
        del self.path_sets[path_set.ingress, path_set.group]
        key = (path_set.ingress, path_set.disjoint, path_set.preferred)
        if self._shared.get(key) is path_set:
            del self._shared[key]

    def release(self, changes: Changes, path_set: PathSet) -> None:
        """One user less; without any the path set is taken down."""
        path_set.users -= 1
        if path_set.users:
            return
        self.forget(path_set)
        changes.add(Phase.UNCOPY, path_set.ingress, lambda client: client.delete_multicast_group(path_set.group))
        for copy in path_set.copies:
            self.drop_copy(changes, path_set, copy)
        changes.afterwards(lambda: self.groups[path_set.ingress].give_back(path_set.group))

    def replicas(self, path_set: PathSet) -> list[tuple[int, int]]:
        """(port, instance) of a path set's group."""
        return [
            (hop(self.topology, path_set.ingress, copy.tunnel.path.links[0])[0], copy.instance)
            for copy in path_set.copies
        ]

    def move(self, changes: Changes, path_set: PathSet, paths: Sequence[Path]) -> list[Copy]:
        """Sends the copies over these paths, by number, from one packet to the next.

        The new tunnels are there before the group changes. The copies that it returns are what was left behind, for
        :meth:`drop_copy` when nothing is under way on them any more.
        """
        before, copies = list(path_set.copies), []
        used = {copy.instance for copy in before + path_set.leaving}
        for number, path in enumerate(paths, start=1):
            old = before[number - 1]
            if old.tunnel.path == path:
                copies.append(old)
                continue
            instance = next(i for i in range(1, 2 * len(used) + 2) if i not in used)
            used.add(instance)
            copies.append(self._add_copy(changes, path_set, number, path, instance))
        old_replicas = self.replicas(path_set)
        path_set.copies = copies
        replicas = self.replicas(path_set)
        group = path_set.group

        left = [copy for copy in before if copy not in copies]
        path_set.leaving += left

        def back() -> None:
            path_set.copies = before
            path_set.leaving = [copy for copy in path_set.leaving if copy not in left]

        changes.otherwise(back)
        changes.add(
            Phase.SWITCH,
            path_set.ingress,
            lambda client: client.multicast_group(group, replicas, verb="modify"),
            lambda client: client.multicast_group(group, old_replicas, verb="modify"),
        )
        return left

    # ---- Copies ----

    def _add_copy(self, changes: Changes, path_set: PathSet, number: int, path: Path, instance: int) -> Copy:
        copy = Copy(instance, self._tunnel(changes, path, number))
        changes.add(
            Phase.COPY,
            path_set.ingress,
            lambda client: self.write_copy(client, path_set, copy),
            lambda client: client.delete(COPY_TABLE, copy_key(path_set.group, instance)),
        )
        return copy

    def write_copy(self, client: Client, path_set: PathSet, copy: Copy) -> None:
        """Writes where a replica goes, with what a controller that comes later must know to go on."""
        path = copy.tunnel.path
        _, src_mac, dst_mac = hop(self.topology, path_set.ingress, path.links[0])
        client.insert(
            COPY_TABLE,
            copy_key(path_set.group, copy.instance),
            SEND_COPY,
            {"src_mac": src_mac, "dst_mac": dst_mac, "dst_ip": copy.tunnel.address},
            metadata=_json(
                {
                    "number": copy.tunnel.number,
                    "links": self._names(path),
                    "preferred": [self._names(preferred) for preferred in path_set.preferred],
                    "disjoint": path_set.disjoint,
                }
            ),
        )

    def _names(self, path: Path) -> list[str]:
        return [link_ends(self.topology.links[index]) for index in path.links]

    def drop_copy(self, changes: Changes, path_set: PathSet, copy: Copy) -> None:
        """Removes a copy that its group does not make any more, and its tunnel if it was the last user."""
        key = copy_key(path_set.group, copy.instance)
        changes.add(Phase.UNCOPY, path_set.ingress, lambda client: client.delete(COPY_TABLE, key))
        if copy in path_set.leaving:
            path_set.leaving.remove(copy)
        tunnel = copy.tunnel
        tunnel.users -= 1
        if tunnel.users:
            return
        path = tunnel.path
        del self.tunnels[_key(path, tunnel.number)]
        for node in path.nodes[1:-1]:
            changes.add(Phase.UNROUTE, node, lambda client: client.delete(ROUTE_TABLE, route_key(tunnel.address)))
        changes.add(
            Phase.FORGET, path.nodes[-1], lambda client: client.delete(ENDPOINT_TABLE, endpoint_key(tunnel.address))
        )
        changes.afterwards(lambda: self.numbers.give_back(self.number_of(tunnel.address)))

    # ---- Tunnels ----

    def _tunnel(self, changes: Changes, path: Path, number: int) -> Tunnel:
        key = _key(path, number)
        tunnel = self.tunnels.get(key)
        if tunnel is None:
            tunnel = self.tunnels[key] = Tunnel(path, number, str(self.addresses[self.numbers.take()]))
            self._install(changes, tunnel)
        tunnel.users += 1
        changes.otherwise(self._undo_use(tunnel))
        return tunnel

    def find(self, path: Path, number: int) -> Tunnel | None:
        """The tunnel of this number over a path, if there is one."""
        return self.tunnels.get(_key(path, number))

    def adopt_tunnel(self, path: Path, number: int, address: str) -> Tunnel:
        """Counts a tunnel, whose address is claimed already, among those that there are."""
        tunnel = self.tunnels[_key(path, number)] = Tunnel(path, number, address)
        return tunnel

    def forget_tunnel(self, tunnel: Tunnel) -> None:
        """Counts it no more; its address is free again."""
        del self.tunnels[_key(tunnel.path, tunnel.number)]
        self.numbers.give_back(self.number_of(tunnel.address))

    def _undo_use(self, tunnel: Tunnel) -> Callable[[], None]:
        def undo() -> None:
            tunnel.users -= 1
            if not tunnel.users:
                self.forget_tunnel(tunnel)

        return undo

    def _install(self, changes: Changes, tunnel: Tunnel) -> None:
        changes.add(
            Phase.RECEIVE,
            tunnel.path.nodes[-1],
            lambda client: self.write_endpoint(client, tunnel),
            lambda client: client.delete(ENDPOINT_TABLE, endpoint_key(tunnel.address)),
        )
        for node in tunnel.path.nodes[1:-1]:
            changes.add(
                Phase.ROUTE,
                node,
                self.route_writer(tunnel, node),
                lambda client: client.delete(ROUTE_TABLE, route_key(tunnel.address)),
            )

    def write_endpoint(self, client: Client, tunnel: Tunnel) -> None:
        """Writes a tunnel's address to its PTE."""
        client.insert(ENDPOINT_TABLE, endpoint_key(tunnel.address), END_PATH, {"number": tunnel.number - 1})

    def route_writer(self, tunnel: Tunnel, node: str, *, modify: bool = False) -> Callable[[Client], None]:
        """Writes the host route of a tunnel to a node on its way."""
        port, src_mac, dst_mac = self.route(tunnel, node)

        def write(client: Client) -> None:
            (client.modify if modify else client.insert)(
                ROUTE_TABLE,
                route_key(tunnel.address),
                FORWARD,
                {"port": port, "src_mac": src_mac, "dst_mac": dst_mac},
            )

        return write

    def route(self, tunnel: Tunnel, node: str) -> tuple[int, bytes, bytes]:
        """Where a node on its way sends a tunnel's packets."""
        return hop(self.topology, node, tunnel.path.links[tunnel.path.nodes.index(node)])

    def number_of(self, address: str) -> int:
        """An address' place among the tunnels' addresses."""
        return int(ipaddress.IPv4Address(address)) - int(self.addresses.network_address)


def copy_key(group: int, instance: int) -> dict[str, int]:
    """The key of a replica in the copies' table."""
    return {"meta.multicast_group": group, "standard_metadata.egress_rid": instance}


def endpoint_key(address: str) -> dict[str, str]:
    """The key of a tunnel's address at its PTE."""
    return {"hdr.tunnel.dst_addr": address}


def route_key(address: str) -> dict[str, str]:
    """The key of a tunnel's host route."""
    return {ROUTE_KEY: f"{address}/32"}


def _key(path: Path, number: int) -> tuple[str, tuple[int, ...], int]:
    return path.nodes[0], path.links, number


def _count(path_set: PathSet, step: int) -> None:
    path_set.users += step


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
