"""IP fast reroute: routes with alternates for ``ipfrr.p4``, computed before anything fails.

Between a failure and the controller's reaction the data plane acts alone. Then the routes are those of
:class:`RouterController`, with the alternates of the network that is left. Micro-loops, while some routers know of a failure and
others do not, are not prevented.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping

from holdfast._core import Program
from holdfast.apps.router.alternates import Alternate, Alternates, LinkCoverage, Protection, link_coverage
from holdfast.apps.router.controller import HERE
from holdfast.control.desired import Writer
from holdfast.control.domain import DomainPorts
from holdfast.control.link_state import LinkState
from holdfast.control.next_hop import over_link
from holdfast.control.routes import HopParams, Route, RouteTables, routes_to
from holdfast.control.subnets import check_routed
from holdfast.control.tables import TableEntry
from holdfast.controller import Controller, ControlPlane
from holdfast.errors import NetworkError
from holdfast.paths import Hop, ShortestPaths
from holdfast.topology import Topology

LOOPBACKS = ipaddress.IPv4Network("10.255.0.0/16")
"""The network of the switches' own addresses, the ends of repair tunnels, by switch index; the program's default."""

OVERHEAD_BYTES = 20
"""The outer header of a repair tunnel."""

FORWARD = "IpfrrIngress.forward"
TABLES = RouteTables(ipv4="IpfrrIngress.ipv4_lpm", key="dst_addr")


def compile_ipfrr(defines: dict[str, str] | None = None) -> Program:
    """Compile ``ipfrr.p4``. ``defines`` may set CPU_PORT."""
    return Program.compile(str(HERE / "ipfrr.p4"), defines=defines or {})


def loopback(topology: Topology, switch: str) -> ipaddress.IPv4Address:
    """Return a switch's own IPv4 address, at which repair tunnels to it end."""
    return LOOPBACKS[topology.switches[switch].index]


class FastRerouteEntries:
    """The entries of routes, of their alternates and of repair tunnels, in a network without some of its links.

    ``mtu``: the longest IPv4 packet of links that do not say. It changes nothing in the switches.
    """

    def __init__(self, topology: Topology, unusable: Collection[int], *, remote_lfa: bool, mtu: int) -> None:
        self._topology = topology
        self._mtu = mtu
        self._paths = ShortestPaths.of(topology, unusable)
        self._params = HopParams(topology)
        self._protected: dict[tuple[str, Hop | None, Hop, int | None], tuple[str, dict[str, int | str]]] = {}
        attached = {place.switch for place in topology.all_attachments()}
        self.alternates = Alternates(self._paths, attached, remote_lfa=remote_lfa)

    def routes(self) -> dict[str, list[TableEntry]]:
        """Return the entries of the routes to hosts, with their alternates, by switch."""
        entries: dict[str, list[TableEntry]] = {name: [] for name in self._topology.switches}
        for place in self._topology.all_attachments():
            matches = TABLES.host_matches(place, ipv6=False)
            for route in routes_to(self._paths, place):
                entries[route.switch] += TABLES.entries(matches, *self._encode(route))
        return entries

    def _encode(self, route: Route) -> tuple[str, Mapping[str, int | str]]:
        """Return the action and parameters of a route's entry: plain, or with the alternate to use while the port is down.

        Routes with the same hops share the parameters, which callers must not change.
        """
        alternate = None if route.hop is None else self.alternates.alternate(route.switch, route.destination.switch)
        if alternate is None:
            return FORWARD, self._params.of(route)
        key = route.switch, route.hop, alternate.hop, alternate.pq_node
        found = self._protected.get(key)
        if found is None:
            found = self._protected[key] = self._with_alternate(route, alternate)
        return found

    def _with_alternate(self, route: Route, alternate: Alternate) -> tuple[str, dict[str, int | str]]:
        switch, params = route.switch, dict(self._params.of(route))
        other = over_link(self._topology, switch, alternate.hop.link)
        params |= {f"alternate_{name}": value for name, value in other.params().items()}
        if alternate.pq_node is None:
            return "IpfrrIngress.forward_or_lfa", params
        pq_node = self._paths.nodes[alternate.pq_node]
        params |= {
            "loopback": int(loopback(self._topology, switch)),
            "pq_node": int(loopback(self._topology, pq_node)),
            "mtu": self._tunnel_mtu(alternate.hop, alternate.pq_node),
        }
        return "IpfrrIngress.forward_or_remote_lfa", params

    def _tunnel_mtu(self, first: Hop, pq_node: int) -> int:
        """Return the smallest MTU in bytes of the links on a tunnel's way: that of its ``first`` hop, and those on to the PQ node.

        A PQ node is the end of a tunnel by remote LFA (RFC 7490).
        """
        mtu, hop = 65535, first
        while True:
            mtu = min(mtu, self._topology.links[hop.link].mtu_bytes or self._mtu)
            following = self._paths.next_hop(hop.neighbour, pq_node)
            if following is None:
                return mtu
            hop = following

    def tunnel_routes(self, passed: Mapping[int, Collection[int]]) -> dict[int, dict[int, TableEntry]]:
        """Return, by PQ node and by node on the way, the route to the PQ node's loopback address.

        ``passed``: by PQ node, the nodes at which tunnels to it begin. These routes have no alternates.
        """
        routes: dict[int, dict[int, TableEntry]] = {}
        for pq_node, starts in sorted(passed.items()):
            prefix = ipaddress.IPv4Network(loopback(self._topology, self._paths.nodes[pq_node]))
            there = routes[pq_node] = {}
            for node in sorted(starts):
                while (hop := self._paths.next_hop(node, pq_node)) and node not in there:
                    params = over_link(self._topology, self._paths.nodes[node], hop.link).params()
                    there[node] = TABLES.entry(prefix, FORWARD, params)
                    node = hop.neighbour
        return routes


class IpFrrController(Controller):
    """Routes as :class:`RouterController`, each with its alternate: an LFA, or where there is none a remote LFA.

    IPv6 is not routed: its program has no table for it.

    ``reroute``: whether routes and alternates are computed again, after the reaction delay, for what is left of the network.
    ``mtu``: the longest IPv4 packet that links between switches take, where their ``mtu_bytes`` does not say. A packet that would
    not fit through its repair tunnel is dropped, and counted.
    """

    def __init__(
        self, *, reaction_delay_ms: float, reroute: bool = True, remote_lfa: bool = True, mtu: int = 1500
    ) -> None:
        super().__init__(reaction_delay_ms=reaction_delay_ms)
        if not OVERHEAD_BYTES + 20 <= mtu <= 65535:
            raise NetworkError(f"mtu is {mtu} bytes; a repair tunnel needs {OVERHEAD_BYTES + 20} to 65535")
        self.reroute = reroute
        self.remote_lfa = remote_lfa
        self.mtu = mtu
        self._links = LinkState()
        self._writers: dict[str, Writer] = {}
        self._alternates: Alternates | None = None
        self._whole: FastRerouteEntries | None = None
        self._passed: dict[int, set[int]] = {}
        """By PQ node, the nodes that its tunnels have ever passed: packets may still be on their way in them."""

    def attach(self, plane: ControlPlane) -> None:
        """Create for each switch the object that writes its routes.

        Raise :class:`NetworkError` if there are hosts to which the router cannot route.
        """
        super().attach(plane)
        check_routed(self.topology, "the router", several_cards=True)
        self._links.attach(plane, self._install, self.reaction_delay_ps)
        self._domain = DomainPorts(plane.clients, self._links)
        self._writers = {name: Writer(client) for name, client in plane.clients.items()}

    def on_start(self) -> None:
        """Write the ports that lead to routers; then the addresses at which tunnels end, routes and alternates.

        Raise :class:`NetworkError` if a host's network overlaps the loopback addresses.
        """
        for place in self.topology.all_attachments():
            if (address := place.interface.address).network.overlaps(LOOPBACKS):
                raise NetworkError(f"host {place.host.name!r}: {address} is in {LOOPBACKS}, which is the switches'")
        self._domain.start()
        self._install()

    def loopback(self, switch: str) -> str:
        """Return the address of the switch itself, as text."""
        return str(loopback(self.topology, switch))

    @property
    def alternates(self) -> Alternates:
        """The alternates that are installed. Raises :class:`NetworkError` before the controller has started."""
        if self._alternates is None:
            raise NetworkError("the controller has not started; there are no alternates yet")
        return self._alternates

    def coverage(self) -> list[Protection]:
        """Return a row per switch and destination switch with hosts: how the present route is protected."""
        return self.alternates.coverage()

    def link_coverage(self) -> list[LinkCoverage]:
        """Return how present routes are protected, counted by link and direction; links without routes are left out."""
        return link_coverage(self.coverage())

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        """Plan routes and alternates again without links of which a port is down, if ``reroute`` is set."""
        if self._links.port_changed(switch, port, up) and self.reroute:
            self._install()

    def _plan(self, unusable: frozenset[int]) -> FastRerouteEntries:
        """Return the entries for the network without the ``unusable`` links.

        Those of the whole network are cached, as they are needed again when links have been repaired.
        """
        if unusable:
            return FastRerouteEntries(self.topology, unusable, remote_lfa=self.remote_lfa, mtu=self.mtu)
        if self._whole is None:
            self._whole = FastRerouteEntries(self.topology, unusable, remote_lfa=self.remote_lfa, mtu=self.mtu)
        return self._whole

    def _install(self) -> None:
        """Install all routes. Those of tunnels are written first on all switches, so that no alternate's tunnel leads nowhere."""
        unusable = self._links.down if self.reroute else frozenset()
        plan = self._plan(frozenset(unusable))
        self._alternates = plan.alternates
        for first, pq_node in plan.alternates.tunnels():
            self._passed.setdefault(pq_node, set()).add(first)
        tunnels: dict[str, list[TableEntry]] = {name: [] for name in self.topology.switches}
        for pq_node, entries in plan.tunnel_routes(self._passed).items():
            self._passed[pq_node].update(entries)
            for node, entry in entries.items():
                tunnels[plan.alternates.paths.nodes[node]].append(entry)
        routes = plan.routes()
        for switch, writer in self._writers.items():
            writer.change([*tunnels[switch], self._tunnel_end(switch)])
        for switch, writer in self._writers.items():
            writer.write([*routes[switch], *tunnels[switch], self._tunnel_end(switch)])

    def _tunnel_end(self, switch: str) -> TableEntry:
        """Return the entry by which a switch decapsulates packets in tunnels to its own address."""
        match = {"hdr.tunnel.dst_addr": int(loopback(self.topology, switch))}
        return TableEntry("IpfrrIngress.loopbacks", match, "NoAction")
