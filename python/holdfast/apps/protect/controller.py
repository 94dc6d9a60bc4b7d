"""The controller of ``protect.p4``: routes, protection connections and protected flows.

A connection runs from a tunnel ingress (PTI) to a tunnel egress (PTE) over the cheapest pair of node-disjoint paths. Each path
has an address of its own at the PTE, and a host route along its nodes, so that the nodes in between need nothing but
destination routing and the two copies never meet.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import networkx as nx

from holdfast._core import Program
from holdfast.apps.router.controller import RouterController
from holdfast.errors import NetworkError

HERE = Path(__file__).parent

TUNNEL_ADDRESSES = ipaddress.IPv4Network("10.254.0.0/16")
"""Where the PTEs' addresses, one per connection and path, are taken from."""

NODE_ADDRESSES = ipaddress.IPv4Network("10.255.0.0/16")
"""Where the PTIs' addresses (sources of the outer headers) are taken from, by switch index."""

OVERHEAD_BYTES = 28
"""Outer IPv4 header and protection header."""

CONNECTIONS = 8192
"""Connections that a node holds; the program's default."""


def compile_protect(defines: dict[str, str] | None = None) -> Program:
    """Compiles ``protect.p4``. ``defines`` may set PROTECTION_PROTOCOL, SN_BITS, CONNECTIONS and CPU_PORT."""
    return Program.compile(str(HERE / "protect.p4"), defines=defines or {})


@dataclass(frozen=True)
class Flow:
    """A descriptor on the 5-tuple; what is None matches everything.

    Addresses are prefixes (``"10.0.1.0/24"``) or single addresses; ``protocol`` is a number; ports are numbers.
    """

    source: str | None = None
    destination: str | None = None
    protocol: int | None = None
    source_port: int | None = None
    destination_port: int | None = None

    def match(self) -> dict[str, tuple[int, int]]:
        """Value and mask by key field."""
        match: dict[str, tuple[int, int]] = {}
        for key, prefix in (("hdr.ipv4.src_addr", self.source), ("hdr.ipv4.dst_addr", self.destination)):
            if prefix is not None:
                network = ipaddress.IPv4Network(prefix)
                match[key] = (int(network.network_address), int(network.netmask))
        for key, number, limit in (
            ("hdr.ipv4.protocol", self.protocol, 0xFF),
            ("meta.src_port", self.source_port, 0xFFFF),
            ("meta.dst_port", self.destination_port, 0xFFFF),
        ):
            if number is not None:
                match[key] = (number, limit)
        return match


@dataclass
class Connection:
    """A protection connection. ``index`` is the PTI's register, ``cid`` the identifier at the PTE (its register, too)."""

    ingress: str
    egress: str
    cid: int
    index: int
    multicast_group: int
    paths: tuple[list[str], list[str]]
    addresses: tuple[str, str]
    mtu: int
    flows: list[tuple[Flow, int]] = field(default_factory=list)


class ProtectController(RouterController):
    """Routes as :class:`RouterController`, and manages 1+1 connections and flows.

    ``flows`` are protected from the start: pairs of hosts, both directions.
    """

    table = "ProtectIngress.protect_and_forward.ipv4_lpm"
    forward = "ProtectIngress.protect_and_forward.forward"
    route_key = "dst_addr"

    flow_table = "ProtectIngress.protect_and_forward.protected_flows"
    protect = "ProtectIngress.protect_and_forward.protect"
    last_sent = "ProtectIngress.protect_and_forward.last_sent_sn"
    endpoint_table = "ProtectIngress.decaps_ip.tunnel_endpoints"
    connection_table = "ProtectIngress.decaps_p.egress_connections"
    select_connection = "ProtectIngress.decaps_p.select_connection"
    last_accepted = "ProtectIngress.decaps_p.last_accepted_sn"
    copy_table = "ProtectEgress.tunnel_copies"
    send_copy = "ProtectEgress.send_copy"

    def __init__(
        self,
        *,
        protect: list[tuple[str, str]] | None = None,
        reroute: bool = False,
        reaction_delay_ms: float,
        mtu: int = 1500,
    ) -> None:
        super().__init__(reroute=reroute, reaction_delay_ms=reaction_delay_ms)
        if not OVERHEAD_BYTES + 20 <= mtu <= 65535:
            raise NetworkError(f"mtu is {mtu} bytes; a tunnel needs {OVERHEAD_BYTES + 20} to 65535")
        self.mtu = mtu
        self.connections: list[Connection] = []
        self._protect = protect or []

    def on_start(self) -> None:
        """Installs the routes, then the connections of the host pairs to protect."""
        super().on_start()
        for source, destination in self._protect:
            for a, b in ((source, destination), (destination, source)):
                self.protect_hosts(a, b)

    def protect_hosts(self, source: str, destination: str) -> Connection:
        """Protects everything from one host to another, over a connection between their switches."""
        ends = self.topology.attachment(source), self.topology.attachment(destination)
        connection = self.find_connection(ends[0].switch, ends[1].switch) or self.add_connection(
            ends[0].switch, ends[1].switch
        )
        self.add_flow(connection, Flow(f"{ends[0].host.address.ip}/32", f"{ends[1].host.address.ip}/32"))
        return connection

    def find_connection(self, ingress: str, egress: str) -> Connection | None:
        """The connection between two switches, if there is one."""
        return next((c for c in self.connections if (c.ingress, c.egress) == (ingress, egress)), None)

    def disjoint_paths(self, ingress: str, egress: str) -> tuple[list[str], list[str]]:
        """The pair of node-disjoint paths with the least total cost, the cheaper one first.

        A flow of two units through the graph with every node split into two halves joined by an edge that carries one unit.
        Raises :class:`NetworkError` where there is no such pair.
        """
        if ingress == egress:
            raise NetworkError(f"{ingress} is both ends of the connection; there is no path to protect")
        split: nx.DiGraph[tuple[str, str]] = nx.DiGraph()
        for node in self.topology.switches:
            capacity = 2 if node in (ingress, egress) else 1
            split.add_edge((node, "in"), (node, "out"), capacity=capacity, weight=0)
        for a, b, data in self.topology.graph.edges(data=True):
            split.add_edge((a, "out"), (b, "in"), capacity=1, weight=data["cost"])
            split.add_edge((b, "out"), (a, "in"), capacity=1, weight=data["cost"])
        split.nodes[ingress, "in"]["demand"] = -2
        split.nodes[egress, "out"]["demand"] = 2
        try:
            flow = nx.min_cost_flow(split)
        except nx.NetworkXUnfeasible:
            raise NetworkError(f"there are no two node-disjoint paths from {ingress} to {egress}") from None
        paths = [self._follow(flow, ingress, egress) for _ in range(2)]
        paths.sort(key=lambda path: (nx.path_weight(self.topology.graph, path, "cost"), len(path), path))
        return paths[0], paths[1]

    @staticmethod
    def _follow(flow: dict[tuple[str, str], dict[tuple[str, str], int]], ingress: str, egress: str) -> list[str]:
        """Takes one path out of an integral flow."""
        path = [ingress]
        while path[-1] != egress:
            hops = flow[path[-1], "out"]
            following = next(node for node, units in hops.items() if units)
            hops[following] -= 1
            path.append(following[0])
        return path

    def add_connection(self, ingress: str, egress: str) -> Connection:
        """Sets a connection up: registers reset at both ends, host routes, egress state, and the PTI's copies last."""
        paths = self.disjoint_paths(ingress, egress)
        number = _lowest_free({c.index for c in self.connections})
        if number >= CONNECTIONS:
            raise NetworkError(f"all {CONNECTIONS} connections are in use")
        addresses = (str(TUNNEL_ADDRESSES[2 * number + 2]), str(TUNNEL_ADDRESSES[2 * number + 3]))
        connection = Connection(ingress, egress, number, number, number + 1, paths, addresses, self.mtu)

        egress_client = self.clients[egress]
        egress_client.write_register(self.last_accepted, connection.cid, 0)
        with egress_client.batch():
            for address in addresses:
                egress_client.insert(self.endpoint_table, {"hdr.tunnel.dst_addr": address}, "NoAction", {})
            egress_client.insert(
                self.connection_table,
                {"hdr.protection.cid": connection.cid},
                self.select_connection,
                {"index": connection.cid},
            )
        for path, address in zip(paths, addresses, strict=True):
            for node, following in pairwise(path[1:]):
                port, next_mac = self.next_hop(node, following)
                route = (port, self.topology.port_mac(node, port), next_mac)
                self.write_route(self.clients[node], f"{address}/32", route, modify=False)
        self._add_copies(connection)
        self.connections.append(connection)
        return connection

    def _add_copies(self, connection: Connection) -> None:
        client = self.clients[connection.ingress]
        client.write_register(self.last_sent, connection.index, 0)
        replicas = []
        with client.batch():
            for instance, (path, address) in enumerate(
                zip(connection.paths, connection.addresses, strict=True), start=1
            ):
                port, next_mac = self.next_hop(connection.ingress, path[1])
                replicas.append((port, instance))
                client.insert(
                    self.copy_table,
                    {"meta.multicast_group": connection.multicast_group, "standard_metadata.egress_rid": instance},
                    self.send_copy,
                    {
                        "src_mac": self.topology.port_mac(connection.ingress, port),
                        "dst_mac": next_mac,
                        "dst_ip": address,
                    },
                )
            client.multicast_group(connection.multicast_group, replicas)

    def remove_connection(self, connection: Connection) -> None:
        """Removes the flows first, so that no packet is encapsulated towards a connection that is going away."""
        for flow, _ in list(connection.flows):
            self.remove_flow(connection, flow)
        client = self.clients[connection.ingress]
        with client.batch():
            for instance in (1, 2):
                client.delete(
                    self.copy_table,
                    {"meta.multicast_group": connection.multicast_group, "standard_metadata.egress_rid": instance},
                )
            client.delete_multicast_group(connection.multicast_group)
        for path, address in zip(connection.paths, connection.addresses, strict=True):
            for node in path[1:-1]:
                self.clients[node].delete(self.table, {self.route_key: f"{address}/32"})
        egress_client = self.clients[connection.egress]
        with egress_client.batch():
            for address in connection.addresses:
                egress_client.delete(self.endpoint_table, {"hdr.tunnel.dst_addr": address})
            egress_client.delete(self.connection_table, {"hdr.protection.cid": connection.cid})
        self.connections.remove(connection)

    def add_flow(self, connection: Connection, flow: Flow, priority: int = 1000) -> None:
        """Protects the packets that the flow describes. Of overlapping flows the one with the highest priority counts."""
        self.clients[connection.ingress].insert(
            self.flow_table,
            flow.match(),
            self.protect,
            {
                "index": connection.index,
                "cid": connection.cid,
                "src_ip": str(NODE_ADDRESSES[self.topology.switches[connection.ingress].index]),
                "dst_ip": connection.addresses[0],
                "m_grp": connection.multicast_group,
                "mtu": connection.mtu,
            },
            priority=priority,
        )
        connection.flows.append((flow, priority))

    def remove_flow(self, connection: Connection, flow: Flow) -> None:
        """Ends the protection of a flow; its packets are routed from then on."""
        for known, priority in connection.flows:
            if known == flow:
                self.clients[connection.ingress].delete(self.flow_table, flow.match(), priority=priority)
                connection.flows.remove((known, priority))
                return
        raise NetworkError(f"the connection {connection.ingress}-{connection.egress} has no flow {flow}")


def _lowest_free(used: set[int]) -> int:
    number = 0
    while number in used:
        number += 1
    return number
