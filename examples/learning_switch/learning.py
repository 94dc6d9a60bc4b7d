"""The controller of a learning switch: a digest says where a source is; from then on frames go to it alone."""

from holdfast import Controller
from holdfast.p4runtime.received import DigestList


class LearningSwitch(Controller):
    """Learns addresses. ``reaction_delay_ms``: from a digest to the new entries, in a simulation."""

    def __init__(self, *, reaction_delay_ms: float = 1.0) -> None:
        super().__init__(reaction_delay_ms=reaction_delay_ms)
        self.ports: dict[tuple[str, int], int] = {}

    def on_start(self) -> None:
        """Flood to all ports, and ask for digests."""
        for name, client in self.clients.items():
            ports = [link.a_port for link in self.topology.links if link.a == name]
            ports += [link.b_port for link in self.topology.links if link.b == name]
            client.multicast_group(1, [(port, 1) for port in ports])
            client.enable_digest("learnt_t")

    def on_digest(self, switch: str, digest: DigestList) -> None:
        """Install an address at the port where it was seen."""
        client = self.clients[switch]
        for each in digest.values:
            address, port = each["address"], each["port"]
            before = self.ports.get((switch, address))
            if before == port:
                continue
            self.ports[switch, address] = port
            if before is None:
                client.insert("destinations", {"dst": address}, "forward", {"port": port})
            else:
                client.delete("sources", {"src": address, "ingress_port": before})
                client.modify("destinations", {"dst": address}, "forward", {"port": port})
            client.insert("sources", {"src": address, "ingress_port": port}, "NoAction")
        client.acknowledge(digest)
