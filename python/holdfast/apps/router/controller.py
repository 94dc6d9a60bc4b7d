"""Shortest-path routing for ``router.p4`` and every program that contains its ``ipv4_lpm`` table, and maybe its ``ipv6_lpm`` table.

With ``reroute`` the controller follows port changes: it removes failed links from its map, computes the shortest paths
again, and writes what changed. Without, it installs the routes once: the baseline that never reacts. The map is the declared one,
or with ``discovery`` the one that is found.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path

from holdfast._core import Program
from holdfast.apps.router.shortest_paths import Hop, ShortestPaths
from holdfast.controller import Controller, ControlPlane
from holdfast.discovery import Discovery, LinkDiscovery
from holdfast.errors import NetworkError
from holdfast.p4runtime.client import Client
from holdfast.topology import Host, Topology

HERE = Path(__file__).parent

Route = tuple[int, bytes, bytes]
"""Port, source MAC, destination MAC."""

TableEntry = tuple[str, dict[str, int | str | bytes]]
"""What stands behind a prefix: an action and its parameters."""


def compile_router(defines: dict[str, str] | None = None) -> Program:
    """Compiles ``router.p4``."""
    return Program.compile(str(HERE / "router.p4"), defines=defines or {})


def has_table(client: Client, table: str) -> bool:
    """Whether a switch's program has this table: those of IPv6 can be left out."""
    return any(known.preamble.name == table for known in client.p4info.message.tables)


def _prefix_order(prefix: str) -> tuple[int, int, int]:
    """Of prefixes of both versions of IP."""
    network = ipaddress.ip_network(prefix)
    return network.version, int(network.network_address), network.prefixlen


def _check_controller_headers(switch: str, client: Client) -> None:
    """Discovery tells by them where a frame is to leave, and where one came in."""
    for name, header, wanted in (
        ("packet_out", client.p4info.packet_out, "egress_port"),
        ("packet_in", client.p4info.packet_in, "ingress_port"),
    ):
        if header is None or all(part.name != wanted for part in header.fields):
            raise NetworkError(
                f"switch {switch!r} cannot discover links: its program has no {name} header with {wanted}"
            )


class RouterController(Controller):
    """Installs a route to every host's subnet on every switch, by shortest path over the links' costs.

    Of equally short paths the one whose nodes come first in the topology's order is chosen, on every switch alike; of parallel
    links the cheapest that works.

    The route to a host's IPv6 subnet is the one to its IPv4 subnet; switches whose program has no table for it get none.

    With ``discovery`` the links between switches are those that are heard, and routes follow as new ones are. A link that is gone
    keeps its routes without ``reroute``, until its ports are heard elsewhere.
    """

    table = "RouterIngress.ipv4_lpm"
    forward = "RouterIngress.forward"
    route_key = "hdr.ipv4.dst_addr"

    table_v6 = "RouterIngress.ipv6_lpm"
    route_key_v6 = "hdr.ipv6.dst_addr"
    actions_v6: Mapping[str, str] = {"RouterIngress.forward": "RouterIngress.forward_v6"}
    """By the action of an entry for IPv4, the one that does the same for IPv6."""

    def __init__(self, *, reroute: bool, reaction_delay_ms: float, discovery: LinkDiscovery | None = None) -> None:
        super().__init__(reaction_delay_ms=reaction_delay_ms)
        self.reroute = reroute
        self._discovery_settings = discovery
        self._discovery: Discovery | None = None
        self._down: set[tuple[str, int]] = set()
        self._installed: dict[str, dict[str, TableEntry]] = {}

    def attach(self, plane: ControlPlane) -> None:
        """Prepares the discovery, if there is one."""
        super().attach(plane)
        if self._discovery_settings is not None:
            for name, client in plane.clients.items():
                _check_controller_headers(name, client)
            self._discovery = Discovery(
                plane, self._discovery_settings, self.on_links_changed, reaction_delay_ps=self.reaction_delay_ps
            )
            self._discovery.prepare()

    @property
    def topology(self) -> Topology:
        """The network's map: as it is declared, or as it was discovered."""
        return super().topology if self._discovery is None else self._discovery.topology

    @property
    def discovery(self) -> Discovery:
        """What is known of links. Raises :class:`NetworkError` if the controller takes the declared map."""
        if self._discovery is None:
            raise NetworkError(f"{type(self).__name__} does not discover links, or is not attached to a network yet")
        return self._discovery

    def on_start(self) -> None:
        """Installs all routes, or begins to discover links."""
        if self._discovery is None:
            self._install()
        else:
            self._discovery.start()

    def on_links_changed(self) -> None:
        """Something was discovered, or is gone."""
        self._install()

    def on_packet_in(self, switch: str, packet: bytes, metadata: Mapping[str, int]) -> None:
        """Hears discovery frames."""
        if self._discovery is not None:
            self._discovery.hear(switch, packet, metadata["ingress_port"])

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        """Routes around ports that are down at either end."""
        if self._discovery is not None:
            self._discovery.port_changed(switch, port, up)
            return
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
        """By index: the links between switches that no route takes, as a port is down at either end, or as they are not there."""
        if self._discovery is not None:
            return self._discovery.topology.absent if self.reroute else self._discovery.topology.replaced
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
        with_ipv6 = any(host.ipv6 is not None for host in self.topology.hosts.values())
        route_ipv6 = {name for name, client in self.clients.items() if with_ipv6 and has_table(client, self.table_v6)}

        def add(switch: str, host: Host, entry: TableEntry) -> None:
            routes[switch][str(host.address.network)] = entry
            if host.ipv6 is not None and switch in route_ipv6:
                action, parameters = entry
                routes[switch][str(host.ipv6.network)] = self.actions_v6[action], parameters

        for host in self.topology.hosts:
            attachment = self.topology.attachment(host)
            destination = paths.number[attachment.switch]
            add(attachment.switch, attachment.host, self.host_entry(host))
            for node, switch in enumerate(paths.nodes):
                hop = paths.next_hop(node, destination)
                if hop is not None:
                    add(switch, attachment.host, self.entry_towards(switch, attachment.switch, hop))
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
            for prefix in sorted(installed.keys() - wanted.keys(), key=_prefix_order):
                client.delete(*self._place(prefix))
            changed = [prefix for prefix, entry in wanted.items() if installed.get(prefix) != entry]
            for prefix in sorted(changed, key=_prefix_order):
                self._write(client, prefix, wanted[prefix], modify=prefix in installed)

    def _write(self, client: Client, prefix: str, entry: TableEntry, *, modify: bool) -> None:
        write = client.modify if modify else client.insert
        action, parameters = entry
        write(*self._place(prefix), action, parameters)

    def _place(self, prefix: str) -> tuple[str, dict[str, str]]:
        """Table and key of a route."""
        return (self.table_v6, {self.route_key_v6: prefix}) if ":" in prefix else (self.table, {self.route_key: prefix})
