"""The controller of the routers: a route to each host in each switch, along the cheapest paths of the map."""

from ipaddress import IPv4Network

import networkx as nx

from holdfast import Controller


class Router(Controller):
    """Installs routes at the start. ``reaction_delay_ms``: from an event to the handler, in a simulation."""

    def __init__(self, *, reaction_delay_ms: float = 10.0) -> None:
        super().__init__(reaction_delay_ms=reaction_delay_ms)
        self.ports: dict[tuple[str, IPv4Network], int] = {}

    def on_start(self) -> None:
        """Install the routes of the whole map."""
        self.install(self.topology.graph)

    def install(self, graph: nx.Graph) -> None:
        """Give each switch its next port to each host, as far as ``graph`` has a path."""
        for name, host in self.topology.hosts.items():
            place = self.topology.attachment(name)
            for switch in self.clients:
                if switch == place.switch:
                    self.route(switch, host.address.network, place.port, host.mac)
                elif nx.has_path(graph, switch, place.switch):
                    path = nx.shortest_path(graph, switch, place.switch, weight="cost")
                    self.route(switch, host.address.network, self.topology.port_towards(switch, path[1]), host.mac)

    def route(self, switch: str, network: IPv4Network, port: int, mac: str) -> None:
        """Insert a route, or modify the one that is there."""
        before = self.ports.get((switch, network))
        if before == port:
            return
        self.ports[switch, network] = port
        write = self.clients[switch].insert if before is None else self.clients[switch].modify
        write("routes", {"dst": network}, "forward", {"port": port, "dst_mac": mac})
