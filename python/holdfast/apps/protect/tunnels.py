"""The state of tunnels, and of the sets of them over which a PTI sends copies.

A tunnel is one path to a PTE, with an address of its own there and a host route along its nodes, so that the nodes in between need
nothing but destination routing and the copies never meet. A path set is a multicast group of the PTI with a tunnel per copy. All
connections over the same paths share both: a thousand connections need no more routes than one, and when a path fails one
write to one group moves all of them. Connections are not known here.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence

from holdfast.apps.protect.changes import Changes, Phase
from holdfast.apps.protect.connection import Copy, PathSet, Tunnel
from holdfast.apps.protect.entries import address_number, copy_entry, copy_group, endpoint_entry, tunnel_route
from holdfast.control.numbers import Numbers
from holdfast.paths import Disjoint, Path
from holdfast.topology import Topology

TUNNEL_ADDRESSES = ipaddress.IPv4Network("10.254.0.0/16")
"""The network of the PTEs' addresses, one per tunnel."""

GROUPS = 65_535
"""Multicast groups of a switch, from 1."""


class Tunnels:
    """All tunnels and path sets. Requested changes are only noted in :class:`Changes`, which the caller applies."""

    def __init__(self, topology: Topology, addresses: ipaddress.IPv4Network = TUNNEL_ADDRESSES) -> None:
        self._topology = topology
        self.addresses = addresses
        # The first two and the last are left out: some hosts take them for a network's or a broadcast address.
        self.numbers = Numbers(2, addresses.num_addresses - 2, f"tunnel addresses of {addresses}")
        self.groups = {name: Numbers(1, GROUPS, f"multicast groups of {name}") for name in topology.switches}
        self.tunnels: dict[tuple[str, tuple[int, ...], int], Tunnel] = {}
        self.path_sets: dict[tuple[str, int], PathSet] = {}
        self._shared: dict[tuple[str, Disjoint, tuple[Path, ...]], PathSet] = {}

    # ---- Path sets ----

    def acquire(self, changes: Changes, paths: Sequence[Path], disjoint: Disjoint) -> PathSet:
        """Return the path set over ``paths`` and count one more user of it; set it up first if no connection uses it yet."""
        ingress, egress = paths[0].nodes[0], paths[0].nodes[-1]
        path_set = self._shared.get((ingress, disjoint, tuple(paths)))
        if path_set is None:
            path_set = PathSet(ingress, egress, self.groups[ingress].take(), disjoint, tuple(paths))
            self._set_up(changes, path_set)
        path_set.users += 1
        changes.otherwise(lambda: _count(path_set, -1))
        return path_set

    def _set_up(self, changes: Changes, path_set: PathSet) -> None:
        group, ingress = path_set.group, path_set.ingress
        changes.otherwise(lambda: self.groups[ingress].give_back(group))
        self.adopt(path_set)
        changes.otherwise(lambda: self.forget(path_set))
        path_set.copies = [
            self._add_copy(changes, path_set, number, path, instance=number)
            for number, path in enumerate(path_set.preferred, start=1)
        ]
        changes.insert(Phase.COPY, ingress, copy_group(self._topology, path_set))

    def adopt(self, path_set: PathSet) -> None:
        """Add a path set that is already in the switches."""
        self.path_sets[path_set.ingress, path_set.group] = path_set
        self._shared.setdefault((path_set.ingress, path_set.disjoint, path_set.preferred), path_set)

    def forget(self, path_set: PathSet) -> None:
        """Remove a path set from this object, without writing to a switch."""
        del self.path_sets[path_set.ingress, path_set.group]
        key = (path_set.ingress, path_set.disjoint, path_set.preferred)
        if self._shared.get(key) is path_set:
            del self._shared[key]

    def release(self, changes: Changes, path_set: PathSet) -> None:
        """Count one user of a path set less.

        If no user is left, remove its copies, tunnels and multicast group from the switches.
        """
        path_set.users -= 1
        if path_set.users:
            return
        self.forget(path_set)
        changes.delete(Phase.UNCOPY, path_set.ingress, copy_group(self._topology, path_set))
        for copy in path_set.copies:
            self.drop_copy(changes, path_set, copy)
        changes.afterwards(lambda: self.groups[path_set.ingress].give_back(path_set.group))

    def move(self, changes: Changes, path_set: PathSet, paths: Sequence[Path]) -> list[Copy]:
        """Move the copies of a path set to ``paths``, from one packet to the next; return the copies that are replaced.

        The new tunnels are set up before the multicast group changes. Pass the returned copies to :meth:`drop_copy` when no packet
        is on their paths any more.
        """
        before, copies = list(path_set.copies), []
        used = {copy.instance for copy in before + path_set.leaving}
        for number, path in enumerate(paths, start=1):
            if (present := before[number - 1]).tunnel.path == path:
                copies.append(present)
                continue
            instance = next(i for i in range(1, 2 * len(used) + 2) if i not in used)
            used.add(instance)
            copies.append(self._add_copy(changes, path_set, number, path, instance))
        old = copy_group(self._topology, path_set)
        path_set.copies = copies

        left = [copy for copy in before if copy not in copies]
        path_set.leaving += left

        def back() -> None:
            path_set.copies = before
            path_set.leaving = [copy for copy in path_set.leaving if copy not in left]

        changes.otherwise(back)
        changes.modify(Phase.SWITCH, path_set.ingress, copy_group(self._topology, path_set), old)
        return left

    # ---- Copies ----

    def _add_copy(self, changes: Changes, path_set: PathSet, number: int, path: Path, instance: int) -> Copy:
        copy = Copy(instance, self._tunnel(changes, path, number))
        changes.insert(Phase.COPY, path_set.ingress, copy_entry(self._topology, path_set, copy))
        return copy

    def drop_copy(self, changes: Changes, path_set: PathSet, copy: Copy) -> None:
        """Remove a copy that the multicast group does not make any more, and its tunnel if no other copy uses it."""
        changes.delete(Phase.UNCOPY, path_set.ingress, copy_entry(self._topology, path_set, copy))
        if copy in path_set.leaving:
            path_set.leaving.remove(copy)
        tunnel = copy.tunnel
        tunnel.users -= 1
        if tunnel.users:
            return
        path = tunnel.path
        del self.tunnels[_key(path, tunnel.number)]
        for node in path.nodes[1:-1]:
            changes.delete(Phase.UNROUTE, node, tunnel_route(self._topology, tunnel, node))
        changes.delete(Phase.FORGET, path.nodes[-1], endpoint_entry(tunnel))
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
        """Return the tunnel with this number over ``path``, or None if there is none."""
        return self.tunnels.get(_key(path, number))

    def adopt_tunnel(self, path: Path, number: int, address: str) -> Tunnel:
        """Add a tunnel whose address is marked as used already, and return it."""
        tunnel = self.tunnels[_key(path, number)] = Tunnel(path, number, address)
        return tunnel

    def forget_tunnel(self, tunnel: Tunnel) -> None:
        """Remove a tunnel from this object, without writing to a switch, and free its address."""
        del self.tunnels[_key(tunnel.path, tunnel.number)]
        self.numbers.give_back(self.number_of(tunnel.address))

    def _undo_use(self, tunnel: Tunnel) -> Callable[[], None]:
        def undo() -> None:
            tunnel.users -= 1
            if not tunnel.users:
                self.forget_tunnel(tunnel)

        return undo

    def _install(self, changes: Changes, tunnel: Tunnel) -> None:
        changes.insert(Phase.RECEIVE, tunnel.path.nodes[-1], endpoint_entry(tunnel))
        for node in tunnel.path.nodes[1:-1]:
            changes.insert(Phase.ROUTE, node, tunnel_route(self._topology, tunnel, node))

    def number_of(self, address: str) -> int:
        """Return the position of ``address`` in the network of the tunnels' addresses."""
        return address_number(address) - int(self.addresses.network_address)


def _key(path: Path, number: int) -> tuple[str, tuple[int, ...], int]:
    return path.nodes[0], path.links, number


def _count(path_set: PathSet, step: int) -> None:
    path_set.users += step
