"""The controller of ``firewall.p4``: a rule set in every switch, bindings of stations, and routes if the program is a router.

It composes planning (:mod:`entries`), what is in each switch (:mod:`writer`), learnt bindings (:mod:`assignment`) and routes
(:mod:`holdfast.control.routes`). No packet of a flow waits for it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.apps.firewall import program
from holdfast.apps.firewall.assignment import Assignments, Onward
from holdfast.apps.firewall.entries import Station
from holdfast.apps.firewall.rules import Port, RuleSet
from holdfast.apps.firewall.sources import holders
from holdfast.apps.firewall.writer import FirewallWriter
from holdfast.control.link_state import LinkState
from holdfast.control.routes import Routing
from holdfast.control.subnets import check_routed
from holdfast.controller import Controller, ControlPlane
from holdfast.discovery import LinkDiscovery
from holdfast.errors import NetworkError
from holdfast.topology import Topology

if TYPE_CHECKING:
    from holdfast.p4runtime.received import DigestList

LOG_ENTRIES = 10_000
"""The most entries that are kept of a controller's log; older ones are forgotten."""


@dataclass(frozen=True)
class Dropped:
    """A dropped packet: when the controller heard of it, where, why, and what it was. Ports of ICMP errors are those inside."""

    time_ps: int
    switch: str
    reason: str
    port: int
    src_mac: int
    dst_mac: int
    ether_type: int
    src_addr: int
    dst_addr: int
    protocol: int
    src_port: int
    dst_port: int


@dataclass
class _Switch:
    """The controller's state of one switch."""

    writer: FirewallWriter
    ports: list[Port]
    fixed: list[Station]
    assignments: Assignments
    refused: Counter[str] = field(default_factory=Counter)

    def stations(self) -> list[Station]:
        learnt = [Station(each.port, each.mac, (each.address,)) for each in self.assignments.learnt.values()]
        return self.fixed + learnt


class FirewallController(Controller):
    """Keeps a rule set in all switches of a network.

    Ports and bindings are those of the rule set; the hosts of a topology and the links between its switches are bound without being
    declared, if a zone names them. A host that no zone names has no access. ``reroute``: routes follow port changes.
    """

    def __init__(
        self, rules: RuleSet, *, reroute: bool = True, reaction_delay_ms: float, discovery: LinkDiscovery | None = None
    ) -> None:
        super().__init__(reaction_delay_ms=reaction_delay_ms)
        self.rules = rules
        self.reroute = reroute
        self.log: deque[Dropped] = deque(maxlen=LOG_ENTRIES)
        self._links = LinkState(discovery)
        self._switches: dict[str, _Switch] = {}
        self._routing: Routing | None = None

    def attach(self, plane: ControlPlane) -> None:
        """Create a writer and an object for learnt bindings for each switch, and the routing if the program is a router."""
        super().attach(plane)
        self._links.attach(plane, self._route, self.reaction_delay_ps)
        secret = plane.secret()
        for name, client in plane.clients.items():
            writer = FirewallWriter(client, secret)
            self._switches[name] = _Switch(writer, [], [], Assignments(self.rules.addresses_per_port))
        if any(not switch.writer.bridged for switch in self._switches.values()):
            check_routed(plane.topology, "the firewall", several_cards=True)
            self._routing = Routing(program.ROUTES, plane.clients, lambda topology, route: program.FORWARD)

    @property
    def topology(self) -> Topology:
        """The network's topology: as it is declared, or as it was discovered."""
        return self._links.topology

    def on_start(self) -> None:
        """Take over the entries that the switches hold, and install the rule set and the routes.

        Raise :class:`NetworkError` if a zone names hosts that do not exist.
        """
        self._check_hosts(self.rules)
        for switch in self._switches.values():
            switch.writer.adopt()
        self.replace(self.rules)
        if self._links.is_discovered:
            self._links.discovery.start()
        else:
            self._route()

    def _check_hosts(self, rules: RuleSet) -> None:
        for name, zone in rules.zones.items():
            for host in zone.hosts:
                if host not in self.topology.hosts:
                    raise NetworkError(f"zone {name!r} names host {host!r}, which is not there")

    def replace(self, rules: RuleSet) -> None:
        """Replace the rule set in every switch; each switch changes in one step, so no packet is judged by parts of both.

        Flows that were allowed before are judged by the new rules with their next packet, unless the rule set says ``established:
        keep``.
        """
        self._check_hosts(rules)
        self.rules = rules
        for name, switch in self._switches.items():
            switch.ports = list(self._ports(name))
            switch.fixed = list(self._stations(name))
            self._refresh(switch)
            switch.writer.replace(rules, switch.ports, switch.stations())
        self._write_sources()

    def _refresh(self, switch: _Switch) -> None:
        switch.assignments.static = {address: each.mac for each in switch.fixed for address in each.addresses}
        switch.assignments.static_macs = {each.mac: each.port for each in switch.fixed}

    def _write_sources(self) -> None:
        """Write to each switch from which source addresses each of its ports may send.

        Links may send from those of other switches.
        """
        stations = {name: switch.stations() for name, switch in self._switches.items()}
        for name, switch in self._switches.items():
            elsewhere = [station for other in stations if other != name for station in stations[other]]
            far = [port for other, it in self._switches.items() if other != name for port in it.ports]
            links = [port for _, (at, port) in self._links.ends() if at == name]
            switch.writer.sources.write(holders(stations[name], switch.ports, elsewhere, far, links))

    def _ports(self, switch: str) -> Iterator[Port]:
        """Yield the ports that the rule set declares for ``switch``, then those of hosts and links that zones name."""
        declared = list(self.rules.ports_of(switch))
        yield from declared
        taken = {port.port for port in declared}
        for name, zone in self.rules.zones.items():
            for host in zone.hosts:
                for place in self.topology.attachments(host):
                    if place.switch == switch and place.port not in taken:
                        yield Port(port=place.port, zone=name)
            if zone.switches:
                for _, (at, port) in self._links.ends():
                    if at == switch and port not in taken:
                        yield Port(port=port, zone=name, senders="mac", transit=True)

    def _stations(self, switch: str) -> Iterator[Station]:
        for binding in self.rules.bindings_of(switch):
            yield Station(binding.port, binding.mac, tuple(binding.addresses))
        for host in dict.fromkeys(host for zone in self.rules.zones.values() for host in zone.hosts):
            for place in self.topology.attachments(host):
                if place.switch == switch:
                    addresses = tuple(each.ip for each in place.interface.interfaces_of_ip)
                    yield Station(place.port, int.from_bytes(place.interface.mac, "big"), addresses)
        if any(zone.switches for zone in self.rules.zones.values()):
            for index, (at, port) in self._links.ends():
                link = self.topology.links[index]
                there = (link.b, link.b_port) if (link.a, link.a_port) == (at, port) else (link.a, link.a_port)
                if at == switch:
                    yield Station(port, int.from_bytes(self.topology.port_mac(*there), "big"))

    def _route(self) -> None:
        if self._routing is not None:
            self._routing.install(self.topology, self._links.down if self.reroute else self._links.replaced)

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        """Plan the routes again without links of which a port is down, if ``reroute`` is set."""
        if self._links.port_changed(switch, port, up) and self.reroute:
            self._route()

    # ---- Notifications of switches ----

    def on_digest(self, switch: str, digest: DigestList) -> None:
        """Add the dropped packets that a digest reports to the log, and acknowledge the digest."""
        for value in digest.values:
            if isinstance(value, Mapping):
                numbers = {name: int(str(number)) for name, number in value.items()}
                reason = program.REASONS[numbers.pop("reason")]
                self.log.append(Dropped(self.plane.now_ps, switch, reason, **numbers))
        self.clients[switch].acknowledge(digest)

    def on_packet_in(self, switch: str, packet: bytes, metadata: Mapping[str, int]) -> None:
        """Process discovery frames, and packets that assign or claim addresses (DHCP, duplicate address detection) at a bridge."""
        port = metadata["ingress_port"]
        if packet[12:14] == b"\x88\xcc":
            if self._links.is_discovered:
                self._links.hear(switch, packet, port)
            return
        here = self._switches[switch]
        before = dict(here.assignments.learnt)
        answer = here.assignments.hear(packet, port, self.plane.now_ps)
        if here.assignments.learnt != before:
            self._write_stations(switch)
        if isinstance(answer, str):
            here.refused[answer] += 1
        else:
            self._pass_on(switch, packet, port, answer)

    def _pass_on(self, switch: str, packet: bytes, port: int, onward: Onward) -> None:
        here = self._switches[switch]
        for role in here.ports:
            wanted = role.dhcp_server if onward.to == "servers" else onward.to in ("all", role.port)
            if wanted and role.port != port:
                self.clients[switch].packet_out(packet, egress_port=role.port)

    def _write_stations(self, switch: str) -> None:
        here = self._switches[switch]
        here.writer.write_stations(self.rules, here.ports, here.stations())
        self._write_sources()
        expiry_ps = here.assignments.next_expiry_ps()
        if expiry_ps is not None:
            delay_ms = max(0, expiry_ps - self.plane.now_ps) / 1e9
            self.plane.call_later(delay_ms, lambda: self._expire(switch))

    def _expire(self, switch: str) -> None:
        if self._switches[switch].assignments.expire(self.plane.now_ps):
            self._write_stations(switch)

    # ---- Requests of operators ----

    def learnt(self, switch: str) -> list[Station]:
        """Return the bindings of addresses to ports that a switch has learnt.

        Raise :class:`NetworkError` if there is no such switch.
        """
        return [Station(each.port, each.mac, (each.address,)) for each in self._at(switch).assignments.learnt.values()]

    def refused(self, switch: str) -> dict[str, int]:
        """Return, by reason, how many packets that assign or claim addresses were not passed on at ``switch``.

        Raise :class:`NetworkError` if there is no such switch.
        """
        return dict(self._at(switch).refused)

    def drops(self, switch: str) -> dict[str, tuple[int, int]]:
        """Return (packets, bytes) that a switch has dropped, by reason. Raise :class:`NetworkError` if there is no such switch."""
        return self._at(switch).writer.drops()

    def hits(self, switch: str) -> dict[str, int]:
        """Return how many packets each rule of the active rule set has decided about in ``switch``, by rule name.

        Raise :class:`NetworkError` if there is no such switch.
        """
        return self._at(switch).writer.hits()

    def _at(self, switch: str) -> _Switch:
        if switch not in self._switches:
            raise NetworkError(f"there is no switch {switch!r}")
        return self._switches[switch]
