"""The links between switches and their states, in the view of one controller: declared with port changes, or discovered.

It does not know how a controller reacts to a failed link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from holdfast.control.desired import Writer, read_state
from holdfast.control.entities import Meter
from holdfast.control.tables import has_meter
from holdfast.discovery import RATE, Discovery, LinkDiscovery, Port
from holdfast.errors import NetworkError
from holdfast.p4runtime.client import Client
from holdfast.topology import Topology

if TYPE_CHECKING:
    from holdfast.controller import ControlPlane


class LinkState:
    """Links by their index in :attr:`topology`. With ``discovery``, links are those that are heard, whatever the map declares."""

    def __init__(self, discovery: LinkDiscovery | None = None) -> None:
        self._settings = discovery
        self._discovery: Discovery | None = None
        self._plane: ControlPlane | None = None
        self._links: dict[Port, int] = {}
        self._down_ports: set[Port] = set()
        self._down: frozenset[int] = frozenset()

    def attach(self, plane: ControlPlane, on_change: Callable[[], None], reaction_delay_ps: int) -> None:
        """Prepare the discovery of links, or read the declared links. ``on_change`` is called when a discovered map has changed."""
        self._plane = plane
        if self._settings is not None:
            for name, client in plane.clients.items():
                _check_controller_headers(name, client)
        # Without discovery nobody reads the frames: as few as can be are handed over.
        rate = 1 if self._settings is None else self._settings.frames_heard_per_s
        for client in plane.clients.values():
            if has_meter(client, RATE):
                writer = Writer(client)
                writer.adopt(read_state(client, {Meter: ((RATE, None),)}))
                writer.write((Meter(RATE, None, (rate, rate, rate, rate)),))
        if self._settings is not None:
            self._discovery = Discovery(plane, self._settings, on_change, reaction_delay_ps=reaction_delay_ps)
            self._discovery.prepare()
        else:
            self._links = {port: index for index, port in self.ends()}

    @property
    def topology(self) -> Topology:
        """The network's map, declared or discovered. Raises :class:`NetworkError` before the controller is attached."""
        if self._discovery is not None:
            return self._discovery.topology
        if self._plane is None:
            raise NetworkError("the controller is not attached to a network yet")
        return self._plane.topology

    @property
    def is_discovered(self) -> bool:
        """True if links are discovered, and not declared."""
        return self._settings is not None

    @property
    def is_settled(self) -> bool:
        """True if there was time for a frame over every link, or links are declared."""
        return self._discovery is None or self._discovery.is_settled

    @property
    def discovery(self) -> Discovery:
        """The discovery. Raises :class:`NetworkError` if the map is the declared one, or nothing is attached yet."""
        if self._discovery is None:
            raise NetworkError("the controller does not discover links, or is not attached to a network yet")
        return self._discovery

    @property
    def down(self) -> frozenset[int]:
        """The indices of links that are down at one end at least, or known and absent."""
        return self._down if self._discovery is None else self._discovery.topology.absent

    @property
    def replaced(self) -> frozenset[int]:
        """The indices of absent links whose ports are in other links now; empty without discovery."""
        return frozenset() if self._discovery is None else self._discovery.topology.replaced

    def ask_ports(self) -> None:
        """Read the states of all ports from the switches, as earlier changes were not notified. Does nothing with discovery."""
        if self._discovery is None and self._plane is not None:
            self._down_ports = {port for _, port in self.ends() if not self._plane.port_is_up(*port)}
            self._down = self._links_down()

    def port_changed(self, switch: str, port: int, up: bool) -> bool:
        """Record that a port is ``up`` or down; return True if :attr:`down` has changed.

        With discovery, False is returned, and ``on_change`` is called instead.
        """
        if self._discovery is not None:
            self._discovery.port_changed(switch, port, up)
            return False
        (self._down_ports.discard if up else self._down_ports.add)((switch, port))
        link = self._links.get((switch, port))
        if link is None:
            return False
        wire = self.topology.links[link]
        ends = (wire.a, wire.a_port), (wire.b, wire.b_port)
        before = self._down
        is_down = not self._down_ports.isdisjoint(ends)
        self._down = before | {link} if is_down else before - {link}
        # The other end of a link tells nothing new.
        return self._down != before

    def _links_down(self) -> frozenset[int]:
        return frozenset(index for port, index in self._links.items() if port in self._down_ports)

    def ends(self) -> Iterator[tuple[int, Port]]:
        """Yield the index of the link and the (switch, port) of both ends of each link between switches."""
        topology = self.topology
        for index, link in enumerate(topology.links):
            if link.a in topology.switches and link.b in topology.switches:
                yield index, (link.a, link.a_port)
                yield index, (link.b, link.b_port)

    def domain_ports(self) -> dict[str, frozenset[int]]:
        """Return by switch the ports that lead to other switches.

        These are the ports of all declared links, or of the discovered links that are present.
        """
        absent: frozenset[int] = frozenset() if self._discovery is None else self._discovery.topology.absent
        found: dict[str, set[int]] = {}
        for index, (switch, port) in self.ends():
            if index not in absent:
                found.setdefault(switch, set()).add(port)
        return {switch: frozenset(ports) for switch, ports in found.items()}

    def host_ports(self) -> frozenset[Port]:
        """Return the (switch, port) of every declared host."""
        topology = self.topology
        return frozenset((place.switch, place.port) for place in map(topology.attachment, topology.hosts))

    def hear(self, switch: str, packet: bytes, ingress_port: int) -> None:
        """Pass a packet-in to the discovery; do nothing if links are declared."""
        if self._discovery is not None:
            self._discovery.hear(switch, packet, ingress_port)

    def find(self, one: Port, other: Port, *, in_use: bool) -> int:
        """Return the index of the link between two ports, for a controller that finds the link in an entry of a switch.

        With discovery, a link that is ``in_use`` counts as present until there was time for a frame over it. Raises
        :class:`NetworkError` if there is no such link.
        """
        if self._discovery is not None:
            return self._discovery.presume(one, other, is_there=in_use)
        for index, link in enumerate(self.topology.links):
            if {one, other} == {(link.a, link.a_port), (link.b, link.b_port)}:
                return index
        raise NetworkError(f"there is no link between {one[0]}:{one[1]} and {other[0]}:{other[1]}")


def _check_controller_headers(switch: str, client: Client) -> None:
    """Raise :class:`NetworkError` if a switch's program lacks the controller headers that discovery needs.

    They carry the egress port of a packet-out and the ingress port of a packet-in.
    """
    for name, header, wanted in (
        ("packet_out", client.p4info.packet_out, "egress_port"),
        ("packet_in", client.p4info.packet_in, "ingress_port"),
    ):
        if header is None or all(part.name != wanted for part in header.fields):
            raise NetworkError(
                f"switch {switch!r} cannot discover links: its program has no {name} header with {wanted}"
            )
