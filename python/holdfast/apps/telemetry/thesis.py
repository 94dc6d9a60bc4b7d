"""``thesis.p4``: the program, its controller, and its reports, which go back to senders."""

from __future__ import annotations

from typing import NamedTuple

from holdfast import _core
from holdfast.apps.telemetry import program
from holdfast.apps.telemetry.planning import port_roles
from holdfast.apps.telemetry.reports import MalformedReport
from holdfast.control.desired import Desired
from holdfast.control.domain import DomainPorts
from holdfast.control.entities import CloneSession, DefaultAction
from holdfast.control.link_state import LinkState
from holdfast.control.routes import Routing
from holdfast.control.subnets import check_routed
from holdfast.control.tables import TableEntry
from holdfast.controller import Controller, ControlPlane
from holdfast.errors import NetworkError
from holdfast.paths import ShortestPaths

DATA_PORT, REPORT_PORT = 1337, 1338
"""UDP ports of packets with INT, and of reports."""

FIRST_SESSION = 1000
"""The clone session of port p is this plus p, and sends out of that port."""


class ThesisHop(NamedTuple):
    """A switch's data: the time of departure in microseconds (32 bits), bytes that the port had sent, packets in its queue."""

    timestamp: int
    tx_bytes: int
    queue: int
    switch_id: int
    port: int


def decode_thesis_report(payload: bytes) -> tuple[int, tuple[ThesisHop, ...]]:
    """Return (original UDP port, hops) of a report; the hops are the switches of the packet's path, first one first.

    Raise :class:`MalformedReport` for a payload that is no report.
    """
    try:
        port, hops = _core.decode_thesis_report(payload)
    except _core.HoldfastError as error:
        raise MalformedReport(str(error)) from None
    return port, tuple(map(ThesisHop._make, hops))


def compile_thesis() -> _core.Program:
    """Compile ``thesis.p4``, the program with the thesis's format of INT."""
    return _core.Program.compile(str(program.HERE / "thesis.p4"))


class ThesisController(Controller):
    """Routes, and what each switch needs for the thesis's INT: its number, its ports, and a clone session for each port.

    ``mtu``: of links without ``mtu_bytes``. With ``reroute`` routes follow port changes.
    """

    def __init__(self, *, mtu: int = 1500, reroute: bool = False, reaction_delay_ms: float) -> None:
        super().__init__(reaction_delay_ms=reaction_delay_ms)
        if not 0 < mtu < 1 << 16:
            raise NetworkError(f"mtu is {mtu}; it must be from 1 to 65535")
        self.reroute = reroute
        self._mtu = mtu
        self._links = LinkState()

    def attach(self, plane: ControlPlane) -> None:
        """Create the routing, and the writer of the ports that lead to other switches."""
        super().attach(plane)
        check_routed(plane.topology, "the telemetry domain")
        self._links.attach(plane, self._install, self.reaction_delay_ps)
        self._domain = DomainPorts(plane.clients, self._links)
        self._routing = Routing(program.ROUTES, plane.clients, lambda topology, route: program.FORWARD)

    def on_start(self) -> None:
        """Configure all switches.

        Raise :class:`NetworkError` for a switch or port whose number does not fit into the 8 bits of the thesis's format.
        """
        self._domain.start()
        self._settings: dict[str, Desired] = {}
        roles = port_roles(self.topology, mtu=self._mtu, queue_threshold=0, queue_quota=0)
        for name, ports in roles.items():
            index = self.topology.switches[name].index
            if index > 0xFF or max(ports, default=0) > 0xFF:
                raise NetworkError(f"switch {name!r}: the thesis's format has 8 bits for switches and for ports")
            self._settings[name] = (
                DefaultAction(program.NODE, program.IDENTIFY, {"id": index}),
                *(CloneSession(FIRST_SESSION + port, ((port, 0),)) for port in sorted(ports)),
                *(
                    TableEntry(
                        program.PORT_SETTINGS,
                        {"standard_metadata.egress_port": port},
                        program.CONFIGURE,
                        {"link_mtu": role.mtu, "is_edge": int(role.edge)},
                    )
                    for port, role in sorted(ports.items())
                ),
            )
        self._install()

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        """Plan the routes again without links of which a port is down, if ``reroute`` is set."""
        if self._links.port_changed(switch, port, up) and self.reroute:
            self._install()

    def _install(self) -> None:
        paths = ShortestPaths.of(self.topology, self._links.down if self.reroute else ())
        for name, routes in self._routing.plan(self.topology, paths).items():
            self._routing.writers[name].write([*routes, *self._settings[name]])
