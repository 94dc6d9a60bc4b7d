"""Routes to hosts: planned from a map, encoded for a program's route tables, and kept in the switches.

A program with these tables has an LPM table for IPv4, and may have one for IPv6. This module does not know
how a program protects routes.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from holdfast.control.desired import Writer
from holdfast.control.next_hop import NextHop, over_link, to_host
from holdfast.control.tables import EntryKey, MatchValue, TableEntry, entry_key, has_table
from holdfast.host import Address
from holdfast.p4runtime.client import Client
from holdfast.p4runtime.limits import MAX_ATOMIC_UPDATES
from holdfast.paths import Hop, ShortestPaths
from holdfast.topology import Attachment, Topology

Prefix: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

Match: TypeAlias = tuple[str, dict[str, MatchValue]]
"""A table, and the match of a route's entry in it, which is the same on all switches."""


@dataclass(frozen=True, slots=True)
class Route:
    """The route of a switch to a host. ``hop`` is None at the switch that the host is attached to."""

    switch: str
    destination: Attachment
    hop: Hop | None

    def next_hop(self, topology: Topology) -> NextHop:
        """Return the next hop of packets to the route's host."""
        if self.hop is None:
            return to_host(topology, self.destination)
        return over_link(topology, self.switch, self.hop.link)


def routes_to(paths: ShortestPaths, destination: Attachment) -> Iterator[Route]:
    """Yield a route to a host for every switch from which a path leads to it."""
    yield Route(destination.switch, destination, None)
    hops = paths.next_hops_to(paths.number[destination.switch])
    for switch, hop in zip(paths.nodes, hops, strict=True):
        if hop is not None:
            yield Route(switch, destination, hop)


@dataclass(frozen=True)
class RouteTables:
    """The route tables of a program, by their full names, with their keys."""

    ipv4: str
    key: str
    ipv6: str = ""
    """Empty: the program does not route IPv6."""
    key_v6: str = ""
    actions_v6: Mapping[str, str] = field(default_factory=dict)
    """By the action of an entry for IPv4, the one that does the same for IPv6."""

    def match(self, prefix: Prefix) -> Match:
        """Return the name of the table for a prefix, and the match of the prefix's entry."""
        value = int(prefix.network_address), prefix.prefixlen
        return (self.ipv4, {self.key: value}) if prefix.version == 4 else (self.ipv6, {self.key_v6: value})

    def host_matches(self, place: Attachment, *, ipv6: bool) -> list[Match]:
        """Return (table, match) of each of a host's subnets; with ``ipv6`` also of its IPv6 subnet, if it has one."""
        return [self.match(prefix) for prefix in _prefixes(place, ipv6=ipv6)]

    def entry(self, prefix: Prefix, action: str, params: Mapping[str, int | str]) -> TableEntry:
        """Return the table entry of a prefix; ``action`` is the name of the IPv4 action, also for IPv6."""
        (entry,) = self.entries([self.match(prefix)], action, params)
        return entry

    def entries(self, matches: Iterable[Match], action: str, params: Mapping[str, int | str]) -> list[TableEntry]:
        """Return the table entries with these matches; ``action`` is the name of the IPv4 action, also for IPv6."""
        return [
            TableEntry(table, match, action if table == self.ipv4 else self.actions_v6[action], params)
            for table, match in matches
        ]

    def host_keys(self, place: Attachment, *, ipv6: bool) -> list[EntryKey]:
        """Return the keys of the table entries of a host's IPv4 subnet and, with ``ipv6``, of its IPv6 subnet, if it has one."""
        return [entry_key(table, match) for table, match in self.host_matches(place, ipv6=ipv6)]

    def ipv6_switches(self, topology: Topology, clients: Mapping[str, Client]) -> set[str]:
        """Return the switches whose programs have the IPv6 table; none if no host has an IPv6 address."""
        if not self.ipv6 or all(place.interface.ipv6 is None for place in topology.all_attachments()):
            return set()
        return {name for name, client in clients.items() if has_table(client, self.ipv6)}


ROUTER_FORWARD = "RouterIngress.forward"

ROUTER_TABLES = RouteTables(
    ipv4="RouterIngress.ipv4_lpm",
    key="hdr.ipv4.dst_addr",
    ipv6="RouterIngress.ipv6_lpm",
    key_v6="hdr.ipv6.dst_addr",
    actions_v6={ROUTER_FORWARD: "RouterIngress.forward_v6"},
)
"""The tables of ``router.p4``, and of programs that are made from it."""


def _prefixes(place: Attachment, *, ipv6: bool) -> list[Prefix]:
    card = place.interface
    prefixes: list[Prefix] = [card.address.network]
    if ipv6 and card.ipv6 is not None:
        prefixes.append(card.ipv6.network)
    return prefixes


class HopParams:
    """The parameters of routes' actions. Routes over the same link share one mapping."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._known: dict[tuple[str, int], dict[str, int | str]] = {}

    def of(self, route: Route) -> Mapping[str, int | str]:
        """Return the action parameters of a route's next hop; the caller must not change them, as they are shared."""
        if route.hop is None:
            return route.next_hop(self._topology).params()
        key = route.switch, route.hop.link
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = route.next_hop(self._topology).params()
        return found


@dataclass
class _Planned:
    """The routes that are installed: planned in full without some links, and now without some more."""

    topology: Topology
    size: tuple[int, int, int]
    """Hosts, switches and links of the map, which may grow."""
    unusable: frozenset[int]
    full: ShortestPaths
    paths: ShortestPaths
    moved: dict[int, set[int]]
    """By destination, the nodes whose next hops may be others now than in ``full``."""


class Routing:
    """Keeps in every switch a route to every host's subnets, by shortest path over the links' costs.

    Of equally short paths the one whose nodes come first in the topology's order is chosen, on every switch alike; of parallel
    links the cheapest that works. The route to a host's IPv6 subnet is the one to its IPv4 subnet. ``action`` gives the action of a
    route.
    """

    def __init__(
        self, tables: RouteTables, clients: Mapping[str, Client], action: Callable[[Topology, Route], str]
    ) -> None:
        self._tables = tables
        self._clients = clients
        self._action = action
        self._planned: _Planned | None = None
        self.writers = {name: Writer(client, most=MAX_ATOMIC_UPDATES) for name, client in clients.items()}

    @classmethod
    def of_router(cls, clients: Mapping[str, Client]) -> Routing:
        """Return a routing that uses the tables of ``router.p4``."""
        return cls(ROUTER_TABLES, clients, lambda topology, route: ROUTER_FORWARD)

    def install(self, topology: Topology, unusable: Collection[int]) -> None:
        """Compute the routes without ``unusable`` links (indices), and write what differs from before, in one batch per switch.

        All routes are computed once per map. When more links become unusable, only the routes over these links are computed again.
        """
        planned, size = self._planned, (len(topology.hosts), len(topology.switches), len(topology.links))
        gone = frozenset(unusable)
        if planned is None or planned.topology is not topology or planned.size != size or not gone >= planned.unusable:
            paths = ShortestPaths.of(topology, unusable)
            for switch, entries in self.plan(topology, paths).items():
                self.writers[switch].write(entries)
            self._planned = _Planned(topology, size, gone, paths, paths, {})
            return
        after, moved = planned.full.without(gone - planned.unusable)
        both = {node: moved.get(node, set()) | planned.moved.get(node, set()) for node in (*moved, *planned.moved)}
        self.reroute(topology, planned.paths, after, both)
        planned.paths, planned.moved = after, moved

    def port_to(self, switch: str, address: Address) -> int | None:
        """Return the port of a switch's longest route to an address, of what is installed; None if there is none."""
        table, key = (
            (self._tables.ipv4, self._tables.key) if address.version == 4 else (self._tables.ipv6, self._tables.key_v6)
        )
        longest, port = -1, None
        for entry in self.writers[switch].installed.values():
            if (
                isinstance(entry, TableEntry)
                and entry.table == table
                and isinstance(match := entry.match.get(key), tuple)
            ):
                value, length = match
                if length > longest and (int(value) ^ int(address)) >> (address.max_prefixlen - length) == 0:
                    longest, port = length, int(entry.params["port"])
        return port

    def reroute(
        self, topology: Topology, before: ShortestPaths, after: ShortestPaths, moved: Mapping[int, Collection[int]]
    ) -> None:
        """Write the routes that differ after some links were lost, in one batch per switch.

        ``moved``: by destination the nodes whose next hops may have changed (:meth:`ShortestPaths.without`).
        """
        places: dict[int, list[Attachment]] = {}
        for place in topology.all_attachments():
            places.setdefault(after.number[place.switch], []).append(place)
        ipv6 = self._tables.ipv6_switches(topology, self._clients)
        params = HopParams(topology)
        put: dict[str, list[TableEntry]] = {}
        removed: dict[str, list[EntryKey]] = {}
        for destination, hosts in places.items():
            for node in sorted(moved.get(destination, ())):
                hop = after.next_hop(node, destination)
                if hop == before.next_hop(node, destination):
                    continue
                switch = after.nodes[node]
                for place in hosts:
                    route = Route(switch, place, hop)
                    if hop is not None:
                        matches = self._tables.host_matches(place, ipv6=switch in ipv6)
                        entries = self._tables.entries(matches, self._action(topology, route), params.of(route))
                        put.setdefault(switch, []).extend(entries)
                    else:
                        removed.setdefault(switch, []).extend(self._tables.host_keys(place, ipv6=switch in ipv6))
        for switch in (name for name in topology.switches if name in put or name in removed):
            self.writers[switch].change(put.get(switch, ()), removed.get(switch, ()))

    def plan(self, topology: Topology, paths: ShortestPaths) -> dict[str, list[TableEntry]]:
        """Return the table entries of the routes to all hosts, as a list for each switch by its name."""
        wanted: dict[str, list[TableEntry]] = {name: [] for name in topology.switches}
        ipv6 = self._tables.ipv6_switches(topology, self._clients)
        params = HopParams(topology)
        for place in topology.all_attachments():
            plain, both = (self._tables.host_matches(place, ipv6=whether) for whether in (False, True))
            for route in routes_to(paths, place):
                matches = both if route.switch in ipv6 else plain
                wanted[route.switch] += self._tables.entries(matches, self._action(topology, route), params.of(route))
        return wanted
