"""The controller of the routers that reacts: when a port goes down or comes up, it installs the paths that are left."""

from router import Router


class Reroute(Router):
    """Computes all paths anew after each change."""

    def on_start(self) -> None:
        """Install the routes of the whole map: no port is down."""
        self.down: set[tuple[str, int]] = set()
        super().on_start()

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        """Install the routes of the map without the links that are down."""
        if up:
            self.down.discard((switch, port))
        else:
            self.down.add((switch, port))
        graph = self.topology.graph.copy()
        for a, b in self.topology.graph.edges:
            ends = {(a, self.topology.port_towards(a, b)), (b, self.topology.port_towards(b, a))}
            if ends & self.down:
                graph.remove_edge(a, b)
        self.install(graph)
