"""The controller of ``ipmc.p4``: unicast routes, and a shortest-path tree for each channel that hosts have joined.

With ``reroute`` it plans routes and trees again, at once, when a link goes down or comes back. It does not listen to IGMP or MLD:
somebody calls :meth:`IpmcController.join` and :meth:`IpmcController.leave`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from holdfast._core import Program
from holdfast.apps.ipmc.planning import GROUPS, Channel, interfaces, plan
from holdfast.control.link_state import LinkState
from holdfast.control.routes import RouteTables, Routing
from holdfast.controller import Controller, ControlPlane
from holdfast.errors import NetworkError
from holdfast.paths import ShortestPaths

HERE = Path(__file__).parent

FORWARD = "RouterIngress.forward"

TABLES = RouteTables(
    ipv4="RouterIngress.ipv4_lpm",
    key="hdr.ipv4.dst_addr",
    ipv6="RouterIngress.ipv6_lpm",
    key_v6="hdr.ipv6.dst_addr",
    actions_v6={FORWARD: "RouterIngress.forward_v6"},
)


def compile_ipmc(defines: dict[str, str] | None = None) -> Program:
    """Compiles ``ipmc.p4``."""
    return Program.compile(str(HERE / "ipmc.p4"), defines=defines or {})


class IpmcController(Controller):
    """Keeps routes and trees in every switch, one P4Runtime batch for each switch that something changes at.

    ``members``: who has joined what from the beginning.
    """

    def __init__(
        self, members: Mapping[Channel, Iterable[str]] | None = None, *, reroute: bool, reaction_delay_ms: float
    ) -> None:
        super().__init__(reaction_delay_ms=reaction_delay_ms)
        self.reroute = reroute
        self._links = LinkState()
        self._members: dict[Channel, dict[str, None]] = {}
        self._numbers: dict[Channel, int] = {}
        for channel, hosts in (members or {}).items():
            self._number(channel)
            self._members[channel] = dict.fromkeys(hosts)

    def attach(self, plane: ControlPlane) -> None:
        """Prepares the routes."""
        super().attach(plane)
        self._links.attach(plane, self._install, self.reaction_delay_ps)
        self._routing = Routing(TABLES, plane.clients, lambda topology, route: FORWARD)

    def on_start(self) -> None:
        """Installs routes, and the trees of those who have joined. Raises :class:`NetworkError` for a host that is not there."""
        for channel, hosts in self._members.items():
            channel.key(self.topology)
            for host in hosts:
                self._check(host)
        self._interfaces = interfaces(self.topology)
        self._install()

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        """Plans again without the links whose ports are down at either end."""
        if self._links.port_changed(switch, port, up) and self.reroute:
            self._install()

    def members(self, channel: Channel) -> list[str]:
        """The hosts that have joined, in the order in which they did."""
        return list(self._members.get(channel, ()))

    def join(self, channel: Channel, host: str) -> None:
        """Adds a member. Raises :class:`NetworkError` if there is no such host, or no such source."""
        self._check(host)
        channel.root(self.topology)
        channel.key(self.topology)
        if host not in self._members.setdefault(channel, {}):
            self._number(channel)
            self._members[channel][host] = None
            self._install()

    def leave(self, channel: Channel, host: str) -> None:
        """Takes a member out. Raises :class:`NetworkError` if it is none."""
        if host not in self._members.get(channel, ()):
            raise NetworkError(f"{host!r} is no member of {channel.group} from {channel.source}")
        del self._members[channel][host]
        if not self._members[channel]:
            del self._members[channel], self._numbers[channel]
        self._install()

    def _check(self, host: str) -> None:
        if host not in self.topology.hosts:
            raise NetworkError(f"there is no host {host!r}")

    def _number(self, channel: Channel) -> None:
        """The lowest free number for a channel that has none."""
        if channel in self._numbers:
            return
        taken = set(self._numbers.values())
        number = next((i for i in range(1, GROUPS + 1) if i not in taken), None)
        if number is None:
            raise NetworkError(f"there are {GROUPS} groups already, the most that a switch can have")
        self._numbers[channel] = number

    def _install(self) -> None:
        topology = self.topology
        paths = ShortestPaths.of(topology, self._links.down if self.reroute else ())
        routes = self._routing.plan(topology, paths)
        for switch, forwarding in plan(topology, paths, self._members, self._numbers).items():
            entries = routes[switch] + self._interfaces[switch] + forwarding.entries
            self._routing.writers[switch].write(entries, forwarding.groups)
