"""A hub in the controller: each frame comes as a packet-in, and leaves as packet-outs by all other ports."""

from collections.abc import Mapping

from holdfast import Controller


class Flood(Controller):
    """Counts the frames, and floods them. ``reaction_delay_ms``: what a frame waits for it in a simulation."""

    def __init__(self, *, reaction_delay_ms: float = 0.5) -> None:
        super().__init__(reaction_delay_ms=reaction_delay_ms)
        self.frames = 0

    def on_packet_in(self, switch: str, packet: bytes, metadata: Mapping[str, int]) -> None:
        """Send a frame out of the other ports of its switch."""
        self.frames += 1
        for link in self.topology.links:
            for node, port in ((link.a, link.a_port), (link.b, link.b_port)):
                if node == switch and port != metadata["ingress_port"]:
                    self.clients[switch].packet_out(packet, egress_port=port)
