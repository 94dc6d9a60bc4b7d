"""The controller of a gateway in a network: it makes the user plane of the network's switches, and hands packet-ins to it.

The control plane is given as a function that is called once, with the user plane and the network's clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from holdfast.apps.bng.clock import NetworkClock
from holdfast.apps.bng.edges import Edges
from holdfast.apps.bng.single import SinglePlane
from holdfast.apps.bng.split import AuthenticationPlane, Balancer, ForwardingPlane, SplitPlane
from holdfast.controller import Controller
from holdfast.errors import NetworkError
from holdfast.p4runtime.client import Client
from holdfast.subscribers.plane import Clock, UserPlane

StartControl = Callable[[UserPlane, Clock], None]


class SingleGateway(Controller):
    """A gateway of one switch, which has the variant ``single``."""

    def __init__(self, switch: str, edges: Edges, start: StartControl, *, reaction_delay_ms: float) -> None:
        super().__init__(reaction_delay_ms=reaction_delay_ms)
        self.switch = switch
        self._edges = edges
        self._start = start
        self._user_plane: SinglePlane | None = None

    @property
    def user_plane(self) -> SinglePlane:
        """The user plane. Raises :class:`NetworkError` before the network has started."""
        if self._user_plane is None:
            raise NetworkError("the gateway's network has not started yet")
        return self._user_plane

    def on_start(self) -> None:
        """Create the user plane on the gateway's switch, and start the control plane.

        Raise :class:`NetworkError` if there is no such switch.
        """
        client = self.clients.get(self.switch)
        if client is None:
            raise NetworkError(f"there is no switch {self.switch!r} for the gateway")
        self._user_plane = SinglePlane(client, self._edges)
        self._start(self._user_plane, NetworkClock(self.plane))

    def on_packet_in(self, switch: str, packet: bytes, metadata: Mapping[str, int]) -> None:
        """Hand a packet from the gateway's switch to the user plane: for the control plane, or ARP and neighbour discovery."""
        if switch == self.switch:
            self.user_plane.packet_in(packet, metadata)


@dataclass(frozen=True)
class SplitCables:
    """The cables between the switches of a split gateway, by their names and the balancer's ports.

    ``authentication`` and ``planes``: a switch, its port towards lines, and the balancer's ports to it; the core ports of planes
    are those of the edges. ``uplinks``: the balancer's ports towards the core, by the MAC address of the next hop.
    """

    balancer: str
    authentication: tuple[str, int, int]
    planes: Mapping[str, tuple[int, int, int]]
    uplinks: Mapping[str, int]


class SplitGateway(Controller):
    """A gateway of an authentication plane and forwarding planes behind a balancer."""

    def __init__(
        self, cables: SplitCables, edges: Edges, start: StartControl, *, reaction_delay_ms: float, drain_ms: float = 50
    ) -> None:
        super().__init__(reaction_delay_ms=reaction_delay_ms)
        self._cables, self._edges, self._start, self._drain_ms = cables, edges, start, drain_ms
        self._user_plane: SplitPlane | None = None

    @property
    def user_plane(self) -> SplitPlane:
        """The user plane. Raises :class:`NetworkError` before the network has started."""
        if self._user_plane is None:
            raise NetworkError("the gateway's network has not started yet")
        return self._user_plane

    def on_start(self) -> None:
        """Create the user plane on the gateway's switches, and start the control plane.

        Forwarding planes that are down are added when they come up, unless all are down.
        """
        cables, clock = self._cables, NetworkClock(self.plane)
        name, trunk, port = cables.authentication
        there = [each for each in cables.planes if self._is_up(each)] or list(cables.planes)
        self._user_plane = SplitPlane(
            self._edges,
            Balancer(self._client(cables.balancer), cables.uplinks),
            AuthenticationPlane(self._client(name), trunk, port),
            {each: self._ports(each) for each in there},
            clock,
            drain_s=self._drain_ms / 1000,
        )
        self._start(self._user_plane, clock)

    def _ports(self, name: str) -> ForwardingPlane:
        return ForwardingPlane(self._client(name), *self._cables.planes[name])

    def _is_up(self, name: str) -> bool:
        """Return True if both links between the balancer and a forwarding plane are up."""
        _, *ports = self._cables.planes[name]
        return all(self.plane.port_is_up(self._cables.balancer, each) for each in ports)

    def _client(self, switch: str) -> Client:
        client = self.clients.get(switch)
        if client is None:
            raise NetworkError(f"there is no switch {switch!r} for the gateway")
        return client

    def on_packet_in(self, switch: str, packet: bytes, metadata: Mapping[str, int]) -> None:
        """Hand a packet from one of the gateway's switches to the user plane.

        It is for the control plane, or ARP or neighbour discovery from the core.
        """
        if switch in (self._cables.balancer, self._cables.authentication[0], *self._cables.planes):
            self.user_plane.packet_in(packet, metadata)

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        """Remove a forwarding plane when one of its two links goes down, and add it again when both are up.

        The last plane is not removed: it keeps its access lines. A switch that comes back gets the entries that it lacks; that the
        balancer is back, which reports nothing while it is off, is known from the authentication plane's port.
        """
        cables, user_plane = self._cables, self.user_plane
        name, trunk, authentication_port = cables.authentication
        if up and (switch, port) == (name, trunk):
            user_plane.restore_balancer()
        if switch != cables.balancer:
            return
        if up and port == authentication_port:
            user_plane.restore_authentication()
        for name, (_, *ports) in cables.planes.items():
            if port not in ports:
                continue
            if up and self._is_up(name):
                if name in user_plane.planes:
                    user_plane.restore(name)
                else:
                    user_plane.add(name, self._ports(name))
            self._leave_planes_that_are_off()

    def _leave_planes_that_are_off(self) -> None:
        planes = list(self.user_plane.planes)
        off = [each for each in planes if not self._is_up(each)]
        if gone := off[: len(planes) - 1]:
            self.user_plane.lost(*gone)
