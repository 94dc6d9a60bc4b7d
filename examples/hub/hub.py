"""The controller of a hub: puts all ports into its multicast group, once."""

from holdfast import Controller


class Hub(Controller):
    """Floods. The ports of a switch are those of its links."""

    def __init__(self, *, group: int = 1) -> None:
        super().__init__(reaction_delay_ms=0)
        self.group = group

    def on_start(self) -> None:
        """Write the group of each switch."""
        for name, client in self.clients.items():
            ports = [link.a_port for link in self.topology.links if link.a == name]
            ports += [link.b_port for link in self.topology.links if link.b == name]
            client.multicast_group(self.group, [(port, 1) for port in ports])
