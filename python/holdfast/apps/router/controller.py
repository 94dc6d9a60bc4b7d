"""Shortest-path routing by ``router.p4``, with or without reaction to failures.

With ``reroute`` the controller follows port changes: it plans the routes again without the links that are down, and writes what
changed. Without, it installs the routes once: the baseline that never reacts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from holdfast._core import Program
from holdfast.control.link_state import LinkState
from holdfast.control.routes import Routing
from holdfast.control.subnets import check_routed
from holdfast.controller import Controller, ControlPlane
from holdfast.discovery import Discovery, LinkDiscovery
from holdfast.topology import Topology

HERE = Path(__file__).parent


def compile_router(defines: dict[str, str] | None = None) -> Program:
    """Compile ``router.p4`` with the preprocessor macros ``defines``."""
    return Program.compile(str(HERE / "router.p4"), defines=defines or {})


class RouterController(Controller):
    """Installs a route to every host's subnets on every switch (:class:`holdfast.control.routes.Routing`).

    With ``discovery`` the links between switches are those that are heard, and routes follow as new ones are. A link that is gone
    keeps its routes without ``reroute``, until its ports are heard elsewhere.
    """

    def __init__(self, *, reroute: bool, reaction_delay_ms: float, discovery: LinkDiscovery | None = None) -> None:
        super().__init__(reaction_delay_ms=reaction_delay_ms)
        self.reroute = reroute
        self._links = LinkState(discovery)

    def attach(self, plane: ControlPlane) -> None:
        """Create the routing, and the discovery of links if it is wanted."""
        super().attach(plane)
        check_routed(plane.topology, "the router", several_cards=True)
        self._links.attach(plane, self.on_links_changed, self.reaction_delay_ps)
        self._routing = Routing.of_router(plane.clients)

    @property
    def topology(self) -> Topology:
        """The network's topology: as it is declared, or as it was discovered."""
        return self._links.topology

    @property
    def discovery(self) -> Discovery:
        """The object that discovers links. Raises :class:`NetworkError` if the controller takes the declared topology."""
        return self._links.discovery

    def on_start(self) -> None:
        """Install all routes, or start to discover links."""
        if self._links.is_discovered:
            self._links.discovery.start()
        else:
            self._install()

    def on_links_changed(self) -> None:
        """Install the routes of the new topology, after a link was discovered or lost."""
        self._install()

    def on_packet_in(self, switch: str, packet: bytes, metadata: Mapping[str, int]) -> None:
        """Process a discovery frame if links are discovered; ignore other packets."""
        if self._links.is_discovered:
            self._links.hear(switch, packet, metadata["ingress_port"])

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        """Plan the routes again without links of which a port is down, if ``reroute`` is set."""
        if self._links.port_changed(switch, port, up) and self.reroute:
            self._install()

    def _install(self) -> None:
        self._routing.install(self.topology, self._links.down if self.reroute else self._links.replaced)
