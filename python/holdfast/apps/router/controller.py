"""Shortest-path routing for ``router.p4`` and every program that contains its ``ipv4_lpm`` table.

With ``reroute`` the controller follows port changes: it removes failed links from its map, computes the shortest paths
again, and writes what changed. Without, it installs the routes once: the baseline that never reacts.
"""

from __future__ import annotations

import ipaddress
from pathlib import Path

import networkx as nx

from holdfast._core import Program
from holdfast.controller import Controller
from holdfast.p4runtime.client import Client

HERE = Path(__file__).parent

Route = tuple[int, bytes, bytes]
"""Port, source MAC, destination MAC."""


def compile_router(defines: dict[str, str] | None = None) -> Program:
    """Compiles ``router.p4``."""
    return Program.compile(str(HERE / "router.p4"), defines=defines or {})


class RouterController(Controller):
    """Installs a route to every host's subnet on every switch, by shortest path over the links' costs.

    Of equally short paths the one whose nodes come first in the topology's order is chosen, on every switch alike.
    """

    table = "RouterIngress.ipv4_lpm"
    forward = "RouterIngress.forward"

    def __init__(self, *, reroute: bool, reaction_delay_ms: float) -> None:
        super().__init__(reaction_delay_ms=reaction_delay_ms)
        self.reroute = reroute
        self._down: set[tuple[str, int]] = set()
        self._installed: dict[str, dict[str, Route]] = {}

    def on_start(self) -> None:
        """Installs all routes."""
        self._install()

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        """Routes around ports that are down at either end."""
        if not self.reroute:
            return
        if up:
            self._down.discard((switch, port))
        else:
            self._down.add((switch, port))
        self._install()

    def _usable_graph(self) -> nx.Graph[str]:
        graph = self.topology.graph.copy()
        for a, b, data in list(graph.edges(data=True)):
            link = self.topology.links[data["link"]]
            if (link.a, link.a_port) in self._down or (link.b, link.b_port) in self._down:
                graph.remove_edge(a, b)
        return graph

    def _routes(self) -> dict[str, dict[str, Route]]:
        """By switch and prefix."""
        graph = self._usable_graph()
        order = {name: i for i, name in enumerate(self.topology.switches)}
        routes: dict[str, dict[str, Route]] = {name: {} for name in self.topology.switches}
        for host in self.topology.hosts:
            attachment = self.topology.attachment(host)
            prefix = str(attachment.host.address.network)
            distance = nx.single_source_dijkstra_path_length(graph, attachment.switch, weight="cost")
            for switch in distance:
                if switch == attachment.switch:
                    port, next_mac = attachment.port, attachment.host.mac
                else:
                    next_switch = min(
                        (
                            n
                            for n in graph.neighbors(switch)
                            if distance[n] + graph.edges[switch, n]["cost"] == distance[switch]
                        ),
                        key=order.__getitem__,
                    )
                    port, next_mac = self.next_hop(switch, next_switch)
                routes[switch][prefix] = (port, self.topology.port_mac(switch, port), next_mac)
        return routes

    def next_hop(self, switch: str, neighbour: str) -> tuple[int, bytes]:
        """The port towards a neighbour and the neighbour's MAC address there."""
        port = self.topology.port_towards(switch, neighbour)
        return port, self.topology.port_mac(neighbour, self.topology.port_towards(neighbour, switch))

    def _install(self) -> None:
        for switch, wanted in self._routes().items():
            self._replace(self.clients[switch], self._installed.get(switch, {}), wanted)
            self._installed[switch] = wanted

    def _replace(self, client: Client, installed: dict[str, Route], wanted: dict[str, Route]) -> None:
        """One batch per switch with only what differs. A prefix that became unreachable is removed."""
        with client.batch():
            for prefix in installed.keys() - wanted.keys():
                client.delete(self.table, {self.route_key: prefix})
            for prefix in sorted(wanted, key=ipaddress.IPv4Network):
                if prefix not in installed:
                    self.write_route(client, prefix, wanted[prefix], modify=False)
                elif installed[prefix] != wanted[prefix]:
                    self.write_route(client, prefix, wanted[prefix], modify=True)

    route_key = "hdr.ipv4.dst_addr"

    def write_route(self, client: Client, prefix: str, route: Route, *, modify: bool) -> None:
        """Inserts or modifies one route."""
        port, src_mac, dst_mac = route
        write = client.modify if modify else client.insert
        write(
            self.table,
            {self.route_key: prefix},
            self.forward,
            {"port": port, "src_mac": src_mac, "dst_mac": dst_mac},
        )
