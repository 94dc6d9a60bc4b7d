"""IP fast reroute: routes with alternates for ``ipfrr.p4``, computed before anything fails.

What happens between a failure and the controller's reaction happens in the data plane alone. Then the routes are those of
:class:`RouterController`, with the alternates of the network that is left. Micro-loops, while some routers know of a failure and
others do not, are not prevented.
"""

from __future__ import annotations

import ipaddress

from holdfast._core import Program
from holdfast.apps.router.alternates import Alternates, LinkCoverage, Protection, link_coverage
from holdfast.apps.router.controller import HERE, RouterController, TableEntry
from holdfast.apps.router.shortest_paths import Hop, ShortestPaths
from holdfast.errors import NetworkError

LOOPBACKS = ipaddress.IPv4Network("10.255.0.0/16")
"""Where the switches' own addresses, the ends of repair tunnels, are taken from, by switch index; the program's default."""

OVERHEAD_BYTES = 20
"""The outer header of a repair tunnel."""


def compile_ipfrr(defines: dict[str, str] | None = None) -> Program:
    """Compiles ``ipfrr.p4``. ``defines`` may set CPU_PORT."""
    return Program.compile(str(HERE / "ipfrr.p4"), defines=defines or {})


class IpFrrController(RouterController):
    """Routes as :class:`RouterController`, each with its alternate: an LFA, or where there is none a remote LFA.

    IPv6 is not routed: its program has no table for it.

    ``reroute``: whether routes and alternates are computed again, after the reaction delay, for what is left of the network.
    ``mtu``: the longest IPv4 packet that links between switches take, where their ``mtu_bytes`` does not say. What would not fit
    through its repair tunnel is dropped, and counted.
    """

    table = "IpfrrIngress.ipv4_lpm"
    forward = "IpfrrIngress.forward"
    route_key = "dst_addr"

    def __init__(
        self, *, reaction_delay_ms: float, reroute: bool = True, remote_lfa: bool = True, mtu: int = 1500
    ) -> None:
        super().__init__(reroute=reroute, reaction_delay_ms=reaction_delay_ms)
        if not OVERHEAD_BYTES + 20 <= mtu <= 65535:
            raise NetworkError(f"mtu is {mtu} bytes; a repair tunnel needs {OVERHEAD_BYTES + 20} to 65535")
        self.remote_lfa = remote_lfa
        self.mtu = mtu
        self._alternates: Alternates | None = None
        self._tunnels: dict[int, set[int]] = {}

    def on_start(self) -> None:
        """Interfaces and loopback addresses, then routes and alternates."""
        for host in self.topology.hosts.values():
            if host.address.network.overlaps(LOOPBACKS):
                raise NetworkError(f"host {host.name!r}: {host.address} is in {LOOPBACKS}, which is the switches'")
        for name, client in self.clients.items():
            with client.batch():
                client.insert("IpfrrIngress.loopbacks", {"hdr.tunnel.dst_addr": self.loopback(name)}, "NoAction", {})
                for port in self._core_ports(name):
                    match = {"standard_metadata.ingress_port": port}
                    client.insert("IpfrrIngress.interfaces", match, "NoAction", {})
        super().on_start()

    def _core_ports(self, switch: str) -> list[int]:
        switches = self.topology.switches
        links = [link for link in self.topology.links if link.a in switches and link.b in switches]
        return [x.a_port for x in links if x.a == switch] + [x.b_port for x in links if x.b == switch]

    def loopback(self, switch: str) -> str:
        """The switch's own address."""
        return str(LOOPBACKS[self.topology.switches[switch].index])

    @property
    def alternates(self) -> Alternates:
        """Those that are installed. Raises :class:`NetworkError` before the controller has started."""
        if self._alternates is None:
            raise NetworkError("the controller has not started; there are no alternates yet")
        return self._alternates

    def coverage(self) -> list[Protection]:
        """How every route between two switches is protected now; destinations are the switches with hosts."""
        return self.alternates.coverage()

    def link_coverage(self) -> list[LinkCoverage]:
        """The same, counted by link and direction; links that no route uses are not in it."""
        return link_coverage(self.coverage())

    def _install(self) -> None:
        """The tunnels' routes first, on all switches, so that there is nowhere an alternate whose tunnel leads nowhere."""
        paths = ShortestPaths.of(self.topology, self._failed_links())
        attached = {self.topology.attachment(host).switch for host in self.topology.hosts}
        self._alternates = Alternates(paths, attached, remote_lfa=self.remote_lfa)
        tunnels, routes = self._tunnel_routes(paths), self._routes(paths)
        for switch, client in self.clients.items():
            installed = self._installed.get(switch, {})
            self._installed[switch] = installed | tunnels[switch]
            self._replace(client, installed, self._installed[switch])
        for switch, client in self.clients.items():
            wanted = routes[switch] | tunnels[switch]
            self._replace(client, self._installed[switch], wanted)
            self._installed[switch] = wanted

    def _tunnel_routes(self, paths: ShortestPaths) -> dict[str, dict[str, TableEntry]]:
        """Routes to the loopback addresses of PQ nodes, where tunnels go, by switch and prefix; they have no alternates.

        Where a tunnel has ever gone it can still go, as packets may be on their way in it.
        """
        for first, pq_node in self.alternates.tunnels():
            self._tunnels.setdefault(pq_node, set()).add(first)
        routes: dict[str, dict[str, TableEntry]] = {name: {} for name in paths.nodes}
        for pq_node, passed in sorted(self._tunnels.items()):
            prefix = f"{self.loopback(paths.nodes[pq_node])}/32"
            for start in sorted(passed):
                node = start
                while (hop := paths.next_hop(node, pq_node)) and prefix not in routes[paths.nodes[node]]:
                    switch = paths.nodes[node]
                    routes[switch][prefix] = self.entry(self.link_route(switch, hop.link))
                    passed.add(node)
                    node = hop.neighbour
        return routes

    def entry_towards(self, switch: str, destination: str, hop: Hop) -> TableEntry:
        """With the alternate, if there is one."""
        _, parameters = super().entry_towards(switch, destination, hop)
        alternate = self.alternates.alternate(switch, destination)
        if alternate is None:
            return self.forward, parameters
        port, src_mac, dst_mac = self.link_route(switch, alternate.hop.link)
        parameters |= {"alternate_port": port, "alternate_src_mac": src_mac, "alternate_dst_mac": dst_mac}
        if alternate.pq_node is None:
            return "IpfrrIngress.forward_or_lfa", parameters
        pq_node = self.loopback(self.alternates.paths.nodes[alternate.pq_node])
        mtu = self._tunnel_mtu(alternate.hop, alternate.pq_node)
        parameters |= {"loopback": self.loopback(switch), "pq_node": pq_node, "mtu": mtu}
        return "IpfrrIngress.forward_or_remote_lfa", parameters

    def _tunnel_mtu(self, first: Hop, pq_node: int) -> int:
        """Of the link to the neighbour, and of those from there to the PQ node."""
        mtu, hop = 65535, first
        while True:
            mtu = min(mtu, self.topology.links[hop.link].mtu_bytes or self.mtu)
            following = self.alternates.paths.next_hop(hop.neighbour, pq_node)
            if following is None:
                return mtu
            hop = following
