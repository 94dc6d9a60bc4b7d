"""The controller of ``shorternet.p4``: the ways between stations, and a context for each flow.

The edge that sees a flow first reports it. The edge that it leaves by gets its context, then the first one gets its number, so
that no frame precedes its context. An idle flow loses its number at once, and its context after ``linger_ms``, when no frame of it
can be on its way any more. After a frame that cannot be restored, the controller compares both edges with what they should have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast._core import Program
from holdfast.apps.shorternet.contexts import (
    Context,
    Contexts,
    Flow,
    context_table,
    flow_table,
)
from holdfast.apps.shorternet.planning import INGRESS, SHORT_PORTS, plan, short_ports, stations
from holdfast.control.desired import Desired, Scope, Writer, read_state
from holdfast.control.entities import Digest, Meter, ValueSet
from holdfast.control.link_state import LinkState
from holdfast.control.subnets import check_routed
from holdfast.control.tables import TableEntry, read_entries
from holdfast.controller import Controller, ControlPlane
from holdfast.errors import NetworkError
from holdfast.paths import ShortestPaths

if TYPE_CHECKING:
    from holdfast.p4runtime.received import DigestList, IdleEntries

HERE = Path(__file__).parent

CONTEXTS = 16_384
"""The program's default: flows that a switch shortens, and contexts that it restores, per version of IP."""

COUNTERS = {
    name.rpartition(".")[2]: name
    for name in (
        f"{INGRESS}.malformed",
        f"{INGRESS}.ttl_expired",
        f"{INGRESS}.no_station",
        f"{INGRESS}.no_host",
        f"{INGRESS}.unknown_protocol",
        f"{INGRESS}.shorten.whole",
        f"{INGRESS}.restore.no_context",
        f"{INGRESS}.restore.wrong_context",
        f"{INGRESS}.restore.wrong_length",
    )
}
"""Full names of the program's counters of one cell, by short name. All but ``whole`` count packets that are dropped."""

LEARNING = f"{INGRESS}.shorten.learning"
_ACK_TIMEOUT_NS = 1_000_000_000
_DIGESTS = ("flow_ipv4_t", "flow_ipv6_t", "lost_context_t")
_STATIC: Scope = {
    TableEntry: [f"{INGRESS}.{table}" for table in ("stations", "speakers", "edges", "ipv4_hosts", "ipv6_hosts")],
    ValueSet: (SHORT_PORTS,),
    Meter: ((LEARNING, 0),),
    Digest: _DIGESTS,
}
"""The kinds of all entries that a switch holds except contexts."""


def compile_shorternet(*, contexts: int = CONTEXTS) -> Program:
    """Compile ``shorternet.p4``. ``contexts``: room for flows and for contexts in each switch, per version of IP.

    Raise :class:`NetworkError` if it is not from 1 to 65536.
    """
    if not 1 <= contexts <= 1 << 16:
        raise NetworkError(f"contexts is {contexts}; it must be from 1 to 65536")
    return Program.compile(str(HERE / "shorternet.p4"), defines={"CONTEXTS": str(contexts)})


class ShorternetController(Controller):
    """Keeps the ways between stations, and contexts.

    ``idle_s``: a flow without packets for so long loses its context. ``linger_ms``: the longest that a frame may be on its way.
    ``flows_per_s``: the most new flows that each edge tells, in bursts of as many. ``contexts``: the program's number.
    ``host_stations``: hosts that speak Shorternet themselves, with their stations. ``reroute``: whether ways follow failed links.
    """

    def __init__(
        self,
        *,
        reaction_delay_ms: float,
        idle_s: float = 60.0,
        linger_ms: float = 1000.0,
        flows_per_s: int = 1000,
        contexts: int = CONTEXTS,
        host_stations: Mapping[str, int] | None = None,
        reroute: bool = True,
    ) -> None:
        super().__init__(reaction_delay_ms=reaction_delay_ms)
        if not 0.001 <= idle_s <= 86_400:
            raise NetworkError(f"idle_s is {idle_s:g}; it must be from 0.001 to 86400")
        if not 0 < linger_ms <= 3_600_000:
            raise NetworkError(f"linger_ms is {linger_ms:g}; it must be above 0 and at most 3600000")
        if flows_per_s < 1:
            raise NetworkError(f"flows_per_s is {flows_per_s}; it must be at least 1")
        self.reroute = reroute
        self.contexts = Contexts(contexts)
        self.counts: Counter[str] = Counter()
        """``allotted``, ``refused`` (no room), ``aged``, ``repaired`` (entries that an edge had lost or had wrong)."""
        self._idle_ns = round(idle_s * 1e9)
        self._linger_ms = linger_ms
        self._flows_per_s = flows_per_s
        self._host_stations = dict(host_stations or {})
        self._links = LinkState()

    def attach(self, plane: ControlPlane) -> None:
        """Create for each switch the objects that write its entries.

        Raise :class:`NetworkError` if there are hosts to which ShorterNet cannot route.
        """
        super().attach(plane)
        check_routed(plane.topology, "ShorterNet")
        self._links.attach(plane, self._install, self.reaction_delay_ps)
        self._static = {name: Writer(client) for name, client in plane.clients.items()}
        self._writers = {name: Writer(client) for name, client in plane.clients.items()}
        """The writers of contexts and flows, by switch."""

    def on_start(self) -> None:
        """Install the routes between stations, adopt an earlier controller's contexts, and enable digests of new and lost flows."""
        self._links.ask_ports()
        self._stations = stations(self.topology, self._host_stations)
        self._names = {number: name for name, number in self._stations.items()}
        ports = short_ports(self.topology, self._host_stations)
        rate = self._flows_per_s
        self._settings: dict[str, Desired] = {}
        for name, client in self.clients.items():
            self._static[name].adopt(read_state(client, _STATIC))
            self._settings[name] = (
                ValueSet(SHORT_PORTS, frozenset(ports[name])),
                Meter(LEARNING, 0, (rate, rate, rate, rate)),
                *(Digest(digest, 1_000_000, 64, _ACK_TIMEOUT_NS) for digest in _DIGESTS),
            )
        self._adopt()
        self._install()

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        """Plan the routes again without links of which a port is down, if ``reroute`` is set.

        Contexts do not depend on the routes.
        """
        if self._links.port_changed(switch, port, up) and self.reroute:
            self._install()

    def on_digest(self, switch: str, digest: DigestList) -> None:
        """Install contexts for new flows, and repair contexts that were missing at the receiver of a frame."""
        for value in digest.values:
            assert isinstance(value, dict)
            if digest.digest == "lost_context_t":
                self._mend(switch, value)
            else:
                self._learn(switch, Flow.of(4 if digest.digest == "flow_ipv4_t" else 6, value))
        self.clients[switch].acknowledge(digest)

    def on_idle_timeout(self, switch: str, idle: IdleEntries) -> None:
        """Remove the contexts of flows that the switch reports as idle."""
        for entry in idle.entries:
            for version in (4, 6):
                if entry.table != flow_table(version):
                    continue
                context = self.contexts.of(switch, Flow.of(version, entry.match))
                if context is not None:
                    self.counts["aged"] += 1
                    self._retire(context)

    def counter(self, switch: str, name: str) -> int:
        """Return the number of packets counted by the counter ``name`` of :data:`COUNTERS`."""
        return self.clients[switch].counter(COUNTERS[name], 0)[0]

    # ---- Ways ----

    def _install(self) -> None:
        paths = ShortestPaths.of(self.topology, self._links.down if self.reroute else ())
        for switch, entries in plan(self.topology, paths, self._host_stations).items():
            self._static[switch].write((*self._settings[switch], *entries))

    # ---- Contexts ----

    def _learn(self, switch: str, flow: Flow) -> None:
        if (context := self.contexts.of(switch, flow)) is not None:
            self._check(context)  # it was on its way, or the edge has lost it
            return
        receiver = self._edge_of(flow)
        if receiver is None or receiver == switch:
            return
        context = self.contexts.allot(flow, switch, receiver, self._stations[switch])
        if context is None:
            self.counts["refused"] += 1
            return
        self._writers[receiver].change([context.context_entry()])
        self._writers[switch].change([self._flow_entry(context)])
        self.counts["allotted"] += 1

    def _flow_entry(self, context: Context) -> TableEntry:
        return context.flow_entry()._replace(idle_timeout_ns=self._idle_ns)

    def _edge_of(self, flow: Flow) -> str | None:
        """Return the switch whose host has the flow's destination in its network, or None if there is none."""
        address = IPv4Address(flow.destination) if flow.version == 4 else IPv6Address(flow.destination)
        for name in self.topology.hosts:
            place = self.topology.attachment(name)
            for interface in (place.host.address, place.host.ipv6):
                if interface is not None and interface.version == flow.version and address in interface.network:
                    return place.switch
        return None

    def _retire(self, context: Context) -> None:
        self.contexts.retire(context)
        self._writers[context.sender].change(removed=[context.flow_entry().key])
        self.plane.call_later(self._linger_ms, partial(self._forget, context, context.context_entry()))

    def _forget(self, context: Context, entry: TableEntry) -> None:
        self._writers[context.receiver].change(removed=[entry.key])
        self.contexts.free(context)

    def _mend(self, switch: str, value: Mapping[str, object]) -> None:
        """Repair the context of a frame that could not be restored.

        If there is none, remove the flow entries that use its number.
        """
        station, protocol, number = value["station"], value["protocol"], value["id"]
        assert isinstance(station, int) and isinstance(protocol, int) and isinstance(number, int)
        context = self.contexts.numbered(station, protocol, number)
        if context is not None:
            self._check(context)
        elif (sender := self._names.get(station)) in self.clients:
            assert sender is not None
            self._remove_flows(sender, 4 if protocol == 253 else 6, number)

    def _check(self, context: Context) -> None:
        """Write the entries of a context that are missing or wrong in the switches, the receiver's first.

        The sender's is not written if the context is being removed.
        """
        self._repair(context.receiver, context.context_entry())
        if self.contexts.of(context.sender, context.flow) is context:  # it is not on its way out
            self._repair(context.sender, self._flow_entry(context))

    def _repair(self, switch: str, wanted: TableEntry) -> None:
        self._writers[switch].doubt([wanted])
        self.counts["repaired"] += self._writers[switch].change([wanted])

    def _remove_flows(self, sender: str, version: int, number: int) -> None:
        """Remove the entries of flows that ``sender`` shortens to ``number``, which belongs to no context."""
        found = read_entries(self.clients[sender], flow_table(version))
        wrong = [entry for entry in found if entry.params["context"] == number]
        self._writers[sender].doubt(wrong)
        self.counts["repaired"] += self._writers[sender].change(removed=[entry.key for entry in wrong])

    def _adopt(self) -> None:
        """Take over the contexts on which both edges agree, and remove all others, at the sending edges first."""
        restored: dict[tuple[int, int, int], tuple[str, TableEntry]] = {}
        for name, client in self.clients.items():
            tables = [table(version) for version in (4, 6) for table in (context_table, flow_table)]
            self._writers[name].adopt(read_entries(client, *tables))
            for version in (4, 6):
                for entry in read_entries(client, context_table(version)):
                    station, number = entry.match["station"], entry.match["context"]
                    assert isinstance(station, int) and isinstance(number, int)
                    restored[station, version, number] = (name, entry)
        for name, client in self.clients.items():
            station = self._stations[name]
            for version in (4, 6):
                for entry in read_entries(client, flow_table(version)):
                    number = entry.params["context"]
                    assert isinstance(number, int)
                    flow = Flow.of(version, entry.match)
                    receiver, found = restored.get((station, version, number), ("", None))
                    context = Context(flow, number, name, receiver, station)
                    if found is not None and found == context.context_entry() and receiver == self._edge_of(flow):
                        self.contexts.adopt(context)
                        del restored[station, version, number]
                    else:
                        self._writers[name].change(removed=[entry.key])
        for (station, version, number), (name, entry) in restored.items():
            # Frames with the number may still come.
            context = Context(Flow.of(version, entry.params), number, self._names.get(station, ""), name, station)
            self.contexts.reserve(context)
            self.plane.call_later(self._linger_ms, partial(self._forget, context, entry))
