"""A BIER domain that nothing fails in: who receives what is fixed, and all switches are told at the beginning.

It does not know joins, failures, or what is measured; ``apps/bier`` has the controller that does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from ipaddress import IPv4Address

from holdfast._core import Program
from holdfast.apps.bier import program
from holdfast.apps.bier.entries import (
    Channel,
    Configuration,
    bfer_configuration,
    bfir_configuration,
    cluster_configuration,
    port_configuration,
    switch_configuration,
)
from holdfast.apps.bier.planning import Bift, Plan, Scheme, number_switches
from holdfast.apps.bier.program import Replication, compile_bier
from holdfast.apps.bier.writer import ConfigurationWriter
from holdfast.control.next_hop import over_link, to_host
from holdfast.control.routes import plan_routes
from holdfast.control.tables import TableEntry
from holdfast.controller import Controller, ControlPlane
from holdfast.paths import ShortestPaths

UNLINKED_PORT = 500
"""Where copies go that are recirculated: a port without a link, at which nothing waits but at the recirculation ports."""

BFR = "bfr"
"""The switch that is studied."""


@cache
def bier_program(replication: Replication) -> Program:
    """Compiled once per process."""
    return compile_bier(replication)


class FixedDomain(Controller):
    """Tells every switch its BIFTs, channels and routes at the beginning.

    ``members``: hosts by channel, which is a sending host and a group's address. ``bfr_ids``: of switches, where the order matters.
    ``clusters``: at :data:`BFR`, the sets of neighbours, by name, that have multicast groups of their own.
    """

    def __init__(
        self,
        members: Mapping[tuple[str, str], Iterable[str]],
        *,
        bfr_ids: Mapping[str, int] | None = None,
        clusters: Iterable[frozenset[str]] = (),
        unicast: bool = False,
    ) -> None:
        super().__init__(reaction_delay_ms=0.0)
        self._members = {channel: list(hosts) for channel, hosts in members.items()}
        self._bfr_ids = bfr_ids
        self._clusters = list(clusters)
        self._unicast = unicast

    def attach(self, plane: ControlPlane) -> None:
        """Keeps a writer for every switch."""
        super().attach(plane)
        self._writers = {name: ConfigurationWriter(client) for name, client in plane.clients.items()}

    def on_start(self) -> None:
        """Writes everything."""
        topology = self.topology
        numbering = number_switches(topology, program.DEFAULT_BSL, self._bfr_ids)
        plan = Plan(topology, Scheme(numbering, frr="none", ip_frr=False))
        senders: dict[str, dict[Channel, dict[Bift, int]]] = {}
        receivers: dict[str, dict[Channel, list[int]]] = {}
        for (source, group), hosts in self._members.items():
            channel = (topology.hosts[source].address.ip, IPv4Address(group))
            places = [topology.attachment(host) for host in hosts]
            bits = numbering.bit_strings(place.switch for place in places)
            bifts = {Bift(0, number): string for number, string in bits.items()}
            senders.setdefault(topology.attachment(source).switch, {})[channel] = bifts
            for place in places:
                receivers.setdefault(place.switch, {}).setdefault(channel, []).append(place.port)
        routes = self._routes()
        for name, writer in self._writers.items():
            own = plan.switches[name]
            wanted = self._ports(name) | switch_configuration(own) | Configuration(tuple(routes.get(name, ())))
            wanted |= bfir_configuration(own, senders.get(name, {}), mtu=9000)
            wanted |= bfer_configuration(receivers.get(name, {}))
            if name == BFR and self._clusters:
                [bucket] = own.bifts[Bift(0, 0)]
                places_of = {entry.neighbour: place for place, entry in enumerate(bucket)}
                sets = [frozenset(places_of[name] for name in names) for names in self._clusters]
                wanted |= cluster_configuration(own, {(Bift(0, 0), 0): sets})
            writer.write(wanted)

    def _ports(self, switch: str) -> Configuration:
        """Links to other switches, and ports that may have receivers."""
        topology = self.topology
        core = [
            over_link(topology, switch, index).port
            for index, link in enumerate(topology.links)
            if switch in (link.a, link.b) and {link.a, link.b} <= topology.switches.keys()
        ]
        places = [topology.attachment(host) for host in topology.hosts]
        edge = {place.port: to_host(topology, place).src_mac for place in places if place.switch == switch}
        return port_configuration([*core, *edge], core, edge, (UNLINKED_PORT,))

    def _routes(self) -> dict[str, list[TableEntry]]:
        """By switch, the entries of unicast routes to all hosts."""
        routes: dict[str, list[TableEntry]] = {}
        topology = self.topology
        for route in plan_routes(topology, ShortestPaths.of(topology)) if self._unicast else ():
            params = route.next_hop(topology).params()
            entries = program.ROUTES.host_entries(route.destination, program.FORWARD, params, ipv6=False)
            routes.setdefault(route.switch, []).extend(entries)
        return routes
