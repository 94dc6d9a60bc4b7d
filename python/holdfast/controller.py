"""The base class of controllers: event handlers and a P4Runtime-shaped client per switch.

The same class is driven in process and in virtual time when simulated, and over gRPC when live. Its decisions take effect
``reaction_delay_ms`` after the event reaches it; in simulation that is a stated parameter, never zero by accident.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from holdfast.errors import NetworkError
from holdfast.link import SequenceHeader
from holdfast.parameters import ps_of_ms
from holdfast.topology import Topology

if TYPE_CHECKING:
    from holdfast.p4runtime.client import Client
    from holdfast.p4runtime.received import DigestList, IdleEntries


class ControlPlane(Protocol):
    """The control plane that a controller is attached to."""

    @property
    def topology(self) -> Topology:
        """The network's map."""

    @property
    def clients(self) -> Mapping[str, Client]:
        """A P4Runtime client for each switch that the controller is responsible for, by the switch's name."""

    @property
    def now_ps(self) -> int:
        """The time on the network's clock, in picoseconds."""

    def port_is_up(self, switch: str, port: int) -> bool:
        """Return True if a port has a signal now, as far as the network knows. A controller that starts late must ask for this."""

    def secret(self) -> bytes:
        """Return 32 bytes that nobody else can know, different at each call.

        Under the virtual clock they come from the network's seed.
        """

    def call_later(self, delay_ms: float, handler: Callable[[], None]) -> None:
        """Call ``handler`` once, ``delay_ms`` milliseconds from now on the network's clock."""


class Controller:
    """Base of all controllers. Override the handlers that matter.

    ``reaction_delay_ms``: from the moment an event (after its detection) is known to the controller's handler being run.
    It stands for everything between: the control channel, computation, and the switch's installation of the result.
    """

    sequence_headers: tuple[SequenceHeader, ...] = ()
    """Headers with sequence numbers that its program leaves in front of packets, for ordering functions of links."""

    def __init__(self, *, reaction_delay_ms: float) -> None:
        self.reaction_delay_ps = ps_of_ms("reaction_delay_ms", reaction_delay_ms)
        self._plane: ControlPlane | None = None

    def attach(self, plane: ControlPlane) -> None:
        """Attach the controller to a network. The network calls this once, before :meth:`on_start`."""
        self._plane = plane

    @property
    def plane(self) -> ControlPlane:
        """The network, as the controller sees it. Raises :class:`NetworkError` before the controller is attached."""
        if self._plane is None:
            raise NetworkError(f"{type(self).__name__} is not attached to a network yet")
        return self._plane

    @property
    def topology(self) -> Topology:
        """The network's map."""
        return self.plane.topology

    @property
    def clients(self) -> Mapping[str, Client]:
        """A P4Runtime client for each switch, by the switch's name."""
        return self.plane.clients

    def on_start(self) -> None:
        """Configure the switches at time zero, after their pipelines are loaded.

        This runs without reaction delay, as it is the initial configuration.
        """

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        """Handle a switch's notice that one of its ports came up (``up`` is True) or went down."""

    def on_packet_in(self, switch: str, packet: bytes, metadata: Mapping[str, int]) -> None:
        """Handle a packet that a switch has sent to its CPU port; ``metadata`` are the fields of the packet-in header."""

    def on_digest(self, switch: str, digest: DigestList) -> None:
        """Handle a list of digest messages that a switch has sent; acknowledge it with the switch's client."""

    def on_idle_timeout(self, switch: str, idle: IdleEntries) -> None:
        """Handle a switch's notice that table entries have not been hit for as long as their timeout."""
