"""The controller of a gateway in a network: it makes the user plane of the network's switches, and hands packet-ins to it.

The control plane is given as a function that is called once, with the user plane and the network's clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.apps.bng.clock import NetworkClock
from holdfast.apps.bng.edges import Edges
from holdfast.apps.bng.single import SinglePlane
from holdfast.controller import Controller
from holdfast.errors import NetworkError
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
        """Takes over the switch, and starts the control plane."""
        client = self.clients.get(self.switch)
        if client is None:
            raise NetworkError(f"there is no switch {self.switch!r} for the gateway")
        self._user_plane = SinglePlane(client, self._edges)
        self._start(self._user_plane, NetworkClock(self.plane))

    def on_packet_in(self, switch: str, packet: bytes, metadata: Mapping[str, int]) -> None:
        """For the control plane, or ARP and neighbour discovery from the core."""
        if switch == self.switch:
            self.user_plane.packet_in(packet, metadata)
