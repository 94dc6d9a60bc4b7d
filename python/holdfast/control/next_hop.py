"""Next hops: a packet's output port and its MAC addresses on the link. Pure functions of the map."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.topology import Attachment, Topology


@dataclass(frozen=True, slots=True)
class NextHop:
    """A port with the source and destination MAC addresses of its link, as numbers."""

    port: int
    src_mac: int
    dst_mac: int

    def params(self) -> dict[str, int | str]:
        """Return the parameters of a forwarding action by name: ``port``, ``src_mac`` and ``dst_mac``."""
        return {"port": self.port, "src_mac": self.src_mac, "dst_mac": self.dst_mac}


def over_link(topology: Topology, switch: str, index: int) -> NextHop:
    """Return the next hop of a switch over the link with this index, which must lead from it to another switch."""
    link = topology.links[index]
    ends = ((link.a, link.a_port), (link.b, link.b_port))
    (_, port), (there, there_port) = ends if link.a == switch else ends[::-1]
    return NextHop(port, _mac(topology.port_mac(switch, port)), _mac(topology.port_mac(there, there_port)))


def to_neighbour(topology: Topology, switch: str, neighbour: str) -> NextHop:
    """Return the next hop of a switch to a neighbour, over the cheapest link between them."""
    port, there_port = topology.port_towards(switch, neighbour), topology.port_towards(neighbour, switch)
    return NextHop(port, _mac(topology.port_mac(switch, port)), _mac(topology.port_mac(neighbour, there_port)))


def to_host(topology: Topology, place: Attachment) -> NextHop:
    """Return the next hop from a host's switch to the host."""
    return NextHop(place.port, _mac(topology.port_mac(place.switch, place.port)), _mac(place.interface.mac))


def _mac(address: bytes) -> int:
    return int.from_bytes(address, "big")
