"""Shortest-path routing by ``router.p4``, with or without reaction to failures.

With ``reroute`` the controller follows port changes: it plans the routes again without the links that are down, and writes what
changed. Without, it installs the routes once: the baseline that never reacts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from holdfast._core import Program
from holdfast.control import icmp_errors as icmp_errors_of
from holdfast.control.desired import Writer
from holdfast.control.entities import DefaultAction, Meter
from holdfast.control.link_state import LinkState
from holdfast.control.routes import Routing
from holdfast.control.subnets import check_routed
from holdfast.control.tables import TableEntry, has_table
from holdfast.controller import Controller, ControlPlane
from holdfast.discovery import Discovery, LinkDiscovery
from holdfast.errors import NetworkError
from holdfast.host import Address
from holdfast.p4runtime.client import Client
from holdfast.topology import Topology

HERE = Path(__file__).parent

ERRORS = "RouterIngress.errors"
"""The table of what becomes of packets about which there may be an error, with ``ROUTER_ICMP``."""

PORT_MTU = "RouterIngress.port_mtu"
"""The table of the longest packets of ports, with ``ROUTER_MTU``."""

ROUTED = 511
"""The port of a packet-out that the program routes."""

ERRORS_PER_S, BURST = 100, 50
"""ICMP errors about the packets of one port of a switch (RFC 1812, section 4.3.2.8)."""


def compile_router(defines: dict[str, str] | None = None) -> Program:
    """Compile ``router.p4`` with the preprocessor macros ``defines``."""
    return Program.compile(str(HERE / "router.p4"), defines=defines or {})


class RouterController(Controller):
    """Installs a route to every host's subnets on every switch (:class:`holdfast.control.routes.Routing`).

    With ``discovery`` the links between switches are those that are heard, and routes follow as new ones are. A link that is gone
    keeps its routes without ``reroute``, until its ports are heard elsewhere. With ``icmp_errors`` and the program's macro
    ``ROUTER_ICMP``, packets whose TTL expires are answered with ICMP, :data:`ERRORS_PER_S` of a port at most; with the macro
    ``ROUTER_MTU`` also those that are longer than a link's ``mtu_bytes``.
    """

    def __init__(
        self,
        *,
        reroute: bool,
        reaction_delay_ms: float,
        discovery: LinkDiscovery | None = None,
        icmp_errors: bool = False,
    ) -> None:
        super().__init__(reaction_delay_ms=reaction_delay_ms)
        self.reroute = reroute
        self.icmp_errors = icmp_errors
        self._addresses: icmp_errors_of.Addresses | None = None
        self._mtus: dict[tuple[str, int], int] = {}
        self._links = LinkState(discovery)

    def attach(self, plane: ControlPlane) -> None:
        """Create the routing, and the discovery of links if it is wanted.

        Raise :class:`NetworkError` if there are hosts to which the router cannot route.
        """
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
        """Install all routes, or start to discover links; have expired packets handed to the controller if it answers them."""
        if self.icmp_errors:
            for name, client in self.clients.items():
                if not has_table(client, ERRORS):
                    raise NetworkError(
                        f"switch {name}: its program answers nothing; compile router.p4 with ROUTER_ICMP"
                    )
            limit = Meter("RouterIngress.error_rate", None, (ERRORS_PER_S, BURST, ERRORS_PER_S, BURST))
            for name, client in self.clients.items():
                answered = DefaultAction(ERRORS, "RouterIngress.punt")
                Writer(client).write([answered, limit, *self._limits(name, client)])
        if self._links.is_discovered:
            self._links.discovery.start()
        else:
            self._install()

    def on_links_changed(self) -> None:
        """Install the routes of the new topology, after a link was discovered or lost."""
        self._install()

    def on_packet_in(self, switch: str, packet: bytes, metadata: Mapping[str, int]) -> None:
        """Answer an expired packet if that is wanted; process a discovery frame if links are discovered; ignore other packets."""
        if (version := icmp_errors_of.version_of(packet)) is not None:
            if self.icmp_errors:
                self._answer(switch, packet, metadata["ingress_port"], version)
            return
        if self._links.is_discovered:
            self._links.hear(switch, packet, metadata["ingress_port"])

    def _limits(self, switch: str, client: Client) -> list[TableEntry]:
        """Return the entries about the MTUs of a switch's ports, if its program has the table, and remember them."""
        if not has_table(client, PORT_MTU):
            return []
        for link in self.topology.links:
            for way, node, port in ((link, link.a, link.a_port), (link.reverse or link, link.b, link.b_port)):
                if node == switch and way.mtu_bytes is not None:
                    self._mtus[switch, port] = way.mtu_bytes
        ports = {port: mtu for (name, port), mtu in self._mtus.items() if name == switch}
        field = "standard_metadata.egress_spec"
        return [TableEntry(PORT_MTU, {field: port}, "RouterIngress.limit", {"mtu": mtu}) for port, mtu in ports.items()]

    def _error(self, switch: str, packet: bytes, source: Address, version: int) -> bytes | None:
        if icmp_errors_of.has_expired(packet, version):
            return icmp_errors_of.time_exceeded(packet, source)
        to = icmp_errors_of.destination(packet, version)
        port = None if to is None else self._routing.port_to(switch, to)
        mtu = None if port is None else self._mtus.get((switch, port))
        return None if mtu is None else icmp_errors_of.too_big(packet, source, mtu)

    def _answer(self, switch: str, packet: bytes, port: int, version: int) -> None:
        if self._addresses is None:
            self._addresses = icmp_errors_of.Addresses(self.topology)
        source = self._addresses.of(switch, port, version)
        error = None if source is None else self._error(switch, packet, source, version)
        if error is not None:
            self.clients[switch].packet_out(error, egress_port=ROUTED)

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        """Plan the routes again without links of which a port is down, if ``reroute`` is set."""
        if self._links.port_changed(switch, port, up) and self.reroute:
            self._install()

    def _install(self) -> None:
        self._routing.install(self.topology, self._links.down if self.reroute else self._links.replaced)
