"""Routes with a backup port, chosen before the failure: RFC 5286's loop-free alternates, where there is one."""

from functools import cache
from ipaddress import IPv4Network
from pathlib import Path

import networkx as nx

from holdfast import Controller, Program
from holdfast.compare.mechanism import Built, Mechanism, Setting
from holdfast.control.desired import Writer
from holdfast.control.next_hop import NextHop, to_host, to_neighbour
from holdfast.control.tables import TableEntry


@cache
def program() -> Program:
    return Program.compile(str(Path(__file__).parent / "backup.p4"))


class BackupController(Controller):
    """Gives every switch its routes and their backups, and new ones when a port goes down or comes up."""

    def on_start(self) -> None:
        self.down: set[tuple[str, int]] = set()
        self.writers = {switch: Writer(client) for switch, client in self.clients.items()}
        self.install()

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        (self.down.discard if up else self.down.add)((switch, port))
        self.install()

    def install(self) -> None:
        topology = self.topology
        graph = topology.graph.copy()
        graph.remove_edges_from(
            [
                (a, b)
                for a, b in graph.edges
                if self.down & {(a, topology.port_towards(a, b)), (b, topology.port_towards(b, a))}
            ]
        )
        cost = dict(nx.all_pairs_dijkstra_path_length(graph, weight="cost"))
        for switch, writer in self.writers.items():
            routes = []
            for name, host in topology.hosts.items():
                place = topology.attachment(name)
                if switch == place.switch:
                    first = backup = to_host(topology, place)
                elif place.switch in cost[switch]:
                    first, backup = (
                        to_neighbour(topology, switch, each) for each in ways(graph, cost, switch, place.switch)
                    )
                else:
                    continue
                routes.append(route(host.address.network, first, backup))
            writer.write(routes)


def ways(graph: nx.Graph, cost: dict[str, dict[str, float]], switch: str, end: str) -> tuple[str, str]:
    """Return the next switch on the shortest path from ``switch`` to ``end``, and a loop-free alternate, or the same again."""
    near = sorted(
        (each for each in graph[switch] if end in cost[each]),
        key=lambda each: graph.edges[switch, each]["cost"] + cost[each][end],
    )
    # From an alternate the shortest path does not lead back (RFC 5286, inequality 1).
    safe = [each for each in near[1:] if cost[each][end] < cost[each][switch] + cost[switch][end]]
    return near[0], (safe or near)[0]


def route(network: IPv4Network, first: NextHop, backup: NextHop) -> TableEntry:
    """Return the table entry of a route, with the names of ``backup.p4``."""
    match = {"hdr.ipv4.dst_addr": (int(network.network_address), network.prefixlen)}
    parameters = {**first.params(), **{f"backup_{name}": value for name, value in backup.params().items()}}
    return TableEntry("BackupIngress.routes", match, "BackupIngress.forward", parameters)


def build(setting: Setting) -> Built:
    return Built(program(), BackupController(reaction_delay_ms=setting.reaction_delay_ms))


BACKUP = Mechanism(
    "backup", "a switch sends to a backup port while the port of a route is down", ("#0F766E", "#5EEAD4"), build
)
