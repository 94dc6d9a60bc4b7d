"""The controller of ``ipmc.p4``: unicast routes, and a shortest-path tree for each channel that hosts have joined.

With ``reroute`` it plans routes and trees again, at once, when a link goes down or comes back. It does not listen to IGMP or MLD:
somebody calls :meth:`IpmcController.join` and :meth:`IpmcController.leave`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from pathlib import Path

from holdfast._core import Program
from holdfast.apps.ipmc.planning import ANY_PORT, GROUPS, Root, interfaces, tree
from holdfast.control.desired import Desired, Entity, Key
from holdfast.control.link_state import LinkState
from holdfast.control.membership.channels import Channel, ChannelChange
from holdfast.control.membership.members import SourcePlaces, StaticMembers
from holdfast.control.numbers import Numbers
from holdfast.control.routes import Routing
from holdfast.control.subnets import check_routed
from holdfast.controller import Controller, ControlPlane
from holdfast.errors import NetworkError
from holdfast.paths import ShortestPaths

HERE = Path(__file__).parent


def compile_ipmc(defines: dict[str, str] | None = None) -> Program:
    """Compile ``ipmc.p4`` with the preprocessor macros ``defines``."""
    return Program.compile(str(HERE / "ipmc.p4"), defines=defines or {})


class IpmcController(Controller):
    """Keeps routes and trees in every switch, one P4Runtime batch for each switch that something changes at.

    ``members``: the hosts that have joined each channel from the beginning. ``roots``: by group, the switch whose hosts may send to
    (*,G).
    """

    def __init__(
        self,
        members: Mapping[Channel, Iterable[str]] | None = None,
        *,
        roots: Mapping[str, str] | None = None,
        reroute: bool,
        reaction_delay_ms: float,
    ) -> None:
        super().__init__(reaction_delay_ms=reaction_delay_ms)
        self.reroute = reroute
        self._links = LinkState()
        self._first_members = dict(members or {})
        self._roots = {ip_address(group): switch for group, switch in (roots or {}).items()}

    def attach(self, plane: ControlPlane) -> None:
        """Create the routing, and check the members and roots.

        Raise :class:`NetworkError` for a host or a switch that does not exist.
        """
        super().attach(plane)
        check_routed(plane.topology, "the multicast router")
        self._links.attach(plane, self._install, self.reaction_delay_ps)
        self._routing = Routing.of_router(plane.clients)
        self._sources = SourcePlaces(self.topology)
        for group, switch in self._roots.items():
            if switch not in self.topology.switches:
                raise NetworkError(f"{group}: there is no switch {switch!r} to be its root")
        self._free = Numbers(1, GROUPS, "groups, the most that a switch can have,")
        self._numbers: dict[Channel, int] = {}
        self._trees: dict[Channel, Mapping[str, Desired]] = {}
        self._static = StaticMembers(self.topology, self._first_members)
        for channel in self._static.channels:
            self._root(channel)

    def on_start(self) -> None:
        """Install the routes, and the trees of all channels that have members."""
        self._interfaces = interfaces(self.topology)
        self._install()

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        """Plan routes and trees again without the links of which a port is down, if ``reroute`` is set."""
        if self._links.port_changed(switch, port, up) and self.reroute:
            self._install()

    def members(self, channel: Channel) -> list[str]:
        """Return the hosts that have joined ``channel``, in the order in which they joined."""
        return self._static.members(channel)

    def join(self, channel: Channel, host: str) -> None:
        """Add ``host`` to the members of ``channel``.

        Raise :class:`NetworkError` if there is no such host, no such source, or no root for (*,G).
        """
        self._root(channel)
        self.members_changed(self._static.join(channel, host))

    def leave(self, channel: Channel, host: str) -> None:
        """Remove ``host`` from the members of ``channel``. Raise :class:`NetworkError` if it is not a member."""
        self.members_changed(self._static.leave(channel, host))

    def members_changed(self, changes: Iterable[ChannelChange]) -> None:
        """Plan the trees of the changed channels again, and write the entries that differ: one batch for each switch."""
        put: dict[str, list[Entity]] = {}
        removed: dict[str, list[Key]] = {}
        for channel in dict.fromkeys(change.channel for change in changes):
            before, after = self._trees.pop(channel, {}), self._tree(channel)
            for switch, part in after.items():
                if before.get(switch) != part:
                    put.setdefault(switch, []).extend(part)
            for switch in [switch for switch in before if switch not in after]:
                removed.setdefault(switch, []).extend(each.key for each in before[switch])
            if channel in self._static.channels:
                self._trees[channel] = after
            else:
                self._free.give_back(self._numbers.pop(channel))
        for switch in sorted(put.keys() | removed.keys()):
            self._routing.writers[switch].change(put.get(switch, ()), removed.get(switch, ()))

    def _tree(self, channel: Channel) -> Mapping[str, Desired]:
        if channel not in self._numbers:
            self._numbers[channel] = self._free.take()
        members = self._static.channels.get(channel, {})
        return tree(self.topology, self._paths, channel, self._root(channel), members, self._numbers[channel])

    def _root(self, channel: Channel) -> Root:
        source, group = channel
        if source is None:
            if group not in self._roots:
                raise NetworkError(f"{group}: no switch is the root of (*,G); name it in roots")
            return Root(self._roots[group], ANY_PORT)
        host = self._sources.host(source)
        if host is None:
            raise NetworkError(f"{group}: no host has the address {source}")
        place = self.topology.attachment(host)
        return Root(place.switch, place.port)

    def _install(self) -> None:
        topology = self.topology
        self._paths = ShortestPaths.of(topology, self._links.down if self.reroute else ())
        routes = self._routing.plan(topology, self._paths)
        trees: dict[str, list[Entity]] = {name: [] for name in routes}
        for channel in self._static.channels:
            found = self._trees[channel] = self._tree(channel)
            for switch, part in found.items():
                trees[switch] += part
        for switch, entries in routes.items():
            self._routing.writers[switch].write([*entries, *trees[switch], *self._interfaces[switch]])
