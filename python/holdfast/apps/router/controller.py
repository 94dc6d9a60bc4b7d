"""Shortest-path routing for ``router.p4`` and every program that contains its ``ipv4_lpm`` table.

With ``reroute`` the controller follows port changes: it removes failed links from its map, computes the shortest paths
again, and writes what changed. Without, it installs the routes once: the baseline that never reacts.
"""

from __future__ import annotations

import ipaddress
from pathlib import Path

from holdfast._core import Program
from holdfast.apps.router.shortest_paths import Hop, ShortestPaths
from holdfast.controller import Controller
from holdfast.p4runtime.client import Client

HERE = Path(__file__).parent

Route = tuple[int, bytes, bytes]
"""Port, source MAC, destination MAC."""

TableEntry = tuple[str, dict[str, int | str | bytes]]
"""What stands behind a prefix: an action and its parameters."""


def compile_router(defines: dict[str, str] | None = None) -> Program:
    """Compiles ``router.p4``."""
    return Program.compile(str(HERE / "router.p4"), defines=defines or {})


class RouterController(Controller):
    """Installs a route to every host's subnet on every switch, by shortest path over the links' costs.

    Of equally short paths the one whose nodes come first in the topology's order is chosen, on every switch alike; of parallel
    links the cheapest that works.
    """

    table = "RouterIngress.ipv4_lpm"
    forward = "RouterIngress.forward"
    route_key = "hdr.ipv4.dst_addr"

    def __init__(self, *, reroute: bool, reaction_delay_ms: float) -> None:
        super().__init__(reaction_delay_ms=reaction_delay_ms)
        self.reroute = reroute
        self._down: set[tuple[str, int]] = set()
        self._installed: dict[str, dict[str, TableEntry]] = {}

    def on_start(self) -> None:
        """Installs all routes."""
        self._install()

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        """Routes around ports that are down at either end."""
        if not self.reroute:
            return
        before = self._failed_links()
        if up:
            self._down.discard((switch, port))
        else:
            self._down.add((switch, port))
        # The other end of a link tells nothing new.
        if self._failed_links() != before:
            self._install()

    def _failed_links(self) -> frozenset[int]:
        """By index: the links between switches with a port that is down at either end."""
        switches = self.topology.switches
        return frozenset(
            i
            for i, link in enumerate(self.topology.links)
            if link.a in switches
            and link.b in switches
            and ((link.a, link.a_port) in self._down or (link.b, link.b_port) in self._down)
        )

    def _routes(self, paths: ShortestPaths) -> dict[str, dict[str, TableEntry]]:
        """By switch and prefix."""
        routes: dict[str, dict[str, TableEntry]] = {name: {} for name in self.topology.switches}
        for host in self.topology.hosts:
            attachment = self.topology.attachment(host)
            prefix = str(attachment.host.address.network)
            destination = paths.number[attachment.switch]
            routes[attachment.switch][prefix] = self.host_entry(host)
            for node, switch in enumerate(paths.nodes):
                hop = paths.next_hop(node, destination)
                if hop is not None:
                    routes[switch][prefix] = self.entry_towards(switch, attachment.switch, hop)
        return routes

    def entry_towards(self, switch: str, destination: str, hop: Hop) -> TableEntry:
        """The entry of ``switch`` for the hosts at another switch, whose next hop is ``hop``."""
        return self.entry(self.link_route(switch, hop.link))

    def host_entry(self, host: str) -> TableEntry:
        """The entry of the host's switch for the host."""
        return self.entry(self.host_route(host))

    def host_route(self, host: str) -> Route:
        """From the host's switch to the host."""
        attachment = self.topology.attachment(host)
        return attachment.port, self.topology.port_mac(attachment.switch, attachment.port), attachment.host.mac

    def link_route(self, switch: str, link: int) -> Route:
        """From a switch to the other end of a link between switches, given by index."""
        there = self.topology.links[link]
        ends = [(there.a, there.a_port), (there.b, there.b_port)]
        (_, port), (neighbour, neighbour_port) = ends if there.a == switch else ends[::-1]
        return port, self.topology.port_mac(switch, port), self.topology.port_mac(neighbour, neighbour_port)

    def next_hop(self, switch: str, neighbour: str) -> tuple[int, bytes]:
        """The port towards a neighbour and the neighbour's MAC address there."""
        port = self.topology.port_towards(switch, neighbour)
        return port, self.topology.port_mac(neighbour, self.topology.port_towards(neighbour, switch))

    def entry(self, route: Route) -> TableEntry:
        """The table entry that takes this route, always."""
        port, src_mac, dst_mac = route
        return self.forward, {"port": port, "src_mac": src_mac, "dst_mac": dst_mac}

    def _install(self) -> None:
        paths = ShortestPaths.of(self.topology, self._failed_links())
        for switch, wanted in self._routes(paths).items():
            self._replace(self.clients[switch], self._installed.get(switch, {}), wanted)
            self._installed[switch] = wanted

    def _replace(self, client: Client, installed: dict[str, TableEntry], wanted: dict[str, TableEntry]) -> None:
        """One batch per switch with only what differs. A prefix that became unreachable is removed."""
        with client.batch():
            for prefix in sorted(installed.keys() - wanted.keys(), key=ipaddress.IPv4Network):
                client.delete(self.table, {self.route_key: prefix})
            changed = [prefix for prefix, entry in wanted.items() if installed.get(prefix) != entry]
            for prefix in sorted(changed, key=ipaddress.IPv4Network):
                self._write(client, prefix, wanted[prefix], modify=prefix in installed)

    def write_route(self, client: Client, prefix: str, route: Route, *, modify: bool) -> None:
        """Inserts or modifies one route."""
        self._write(client, prefix, self.entry(route), modify=modify)

    def _write(self, client: Client, prefix: str, entry: TableEntry, *, modify: bool) -> None:
        write = client.modify if modify else client.insert
        action, parameters = entry
        write(self.table, {self.route_key: prefix}, action, parameters)
