"""The controller of ``protect.p4``: routes, protection connections and protected flows, at run time.

A connection runs from a tunnel ingress (PTI) to a tunnel egress (PTE) over the cheapest set of disjoint paths. Connections that
were set up are in the switches, with all that a controller must know to go on: one that starts where another one was killed takes
over.

This file composes the parts and handles events: paths are chosen in ``planning``, numbers and connections are kept in ``registry``
and ``tunnels``, entries are encoded in ``entries``, and ``changes`` writes them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from functools import partial
from typing import TYPE_CHECKING

from holdfast.apps.protect import program
from holdfast.apps.protect.acceptance import Acceptance
from holdfast.apps.protect.changes import Changes, Phase, Transactions
from holdfast.apps.protect.connection import Connection, ConnectionStatistics, Flow, checked_mtu
from holdfast.apps.protect.counters import connections_table, paths_table, read_statistics
from holdfast.apps.protect.entries import cleared_egress, cleared_ingress, connection_entry, flow_entry
from holdfast.apps.protect.health import Alarm, LatentErrorDetection
from holdfast.apps.protect.planning import PathPlanner
from holdfast.apps.protect.registry import Registry
from holdfast.apps.protect.repair import Repair, Repairer
from holdfast.apps.protect.takeover import State, TakeOver, take_over
from holdfast.apps.protect.tunnels import TUNNEL_ADDRESSES, Tunnels
from holdfast.apps.protect.watch import LatentErrorWatch
from holdfast.control.desired import Entity
from holdfast.control.domain import DomainPorts
from holdfast.control.entities import Register
from holdfast.control.link_state import LinkState
from holdfast.control.routes import Route, Routing
from holdfast.control.subnets import check_routed
from holdfast.control.tables import has_table
from holdfast.controller import Controller, ControlPlane
from holdfast.discovery import Discovery, LinkDiscovery
from holdfast.errors import NetworkError
from holdfast.p4runtime import p4data
from holdfast.p4runtime.client import Client
from holdfast.parameters import PS_PER_MS
from holdfast.paths import Disjoint, NoDisjointPathsError
from holdfast.topology import Topology

if TYPE_CHECKING:
    import polars as pl


class ProtectController(Controller):
    """Routes as :class:`holdfast.apps.router.RouterController`, and manages 1+1 connections and flows.

    ``protect``: pairs of hosts, protected both ways from the start. ``paths``, ``disjoint`` and ``acceptance``: the defaults of a
    connection. ``mtu``: bytes that the links between the nodes carry. ``drain_ms``: the time that entries left behind by a change
    stay, for the packets that are still under way there.

    ``repair``: after a failure, sends the lost copy along another path while the others carry on (:attr:`repairs` has what was
    done), and with ``wait_to_restore_ms`` returns to the first paths when they have been whole for so long.

    ``latent_errors``: reads the PTEs' counters, and raises an alarm (in :attr:`alarms`, and to ``on_alarm``) about a path that
    silently brings too little, as soon as :class:`LatentErrorDetection` says. With ``repair_latent`` its copy is then moved, too.

    ``discovery``: finds the links between switches itself, instead of believing the map, and plans and repairs by what it has found
    (:attr:`discovery`). Pairs to protect that have no paths yet are in :attr:`waiting`, and connected as soon as they have.

    Methods change switches at once; :meth:`together` collects what several of them write. Call them from handlers
    (:meth:`on_start`, or given to the network's ``call_later``), one at a time.
    """

    sequence_headers = (program.PROTECTION_HEADER,)

    def __init__(
        self,
        *,
        protect: list[tuple[str, str]] | None = None,
        reroute: bool = False,
        reaction_delay_ms: float,
        mtu: int = 1500,
        paths: int = 2,
        disjoint: Disjoint = "node",
        drain_ms: float = 100.0,
        repair: bool = False,
        wait_to_restore_ms: float | None = None,
        tunnel_addresses: str = str(TUNNEL_ADDRESSES),
        acceptance: Acceptance | None = None,
        latent_errors: LatentErrorDetection | None = None,
        on_alarm: Callable[[Alarm], None] | None = None,
        repair_latent: bool = False,
        discovery: LinkDiscovery | None = None,
    ) -> None:
        super().__init__(reaction_delay_ms=reaction_delay_ms)
        if drain_ms < 0:
            raise NetworkError(f"drain_ms is {drain_ms}; it cannot be negative")
        if wait_to_restore_ms is not None and (wait_to_restore_ms < 0 or not repair):
            raise NetworkError("wait_to_restore_ms cannot be negative, and belongs to repair=True")
        if repair_latent and not (repair and latent_errors):
            raise NetworkError("repair_latent needs repair=True and latent_errors")
        if on_alarm is not None and latent_errors is None:
            raise NetworkError("on_alarm needs latent_errors")
        self.reroute = reroute
        self.mtu = checked_mtu(mtu)
        self.acceptance = acceptance or Acceptance()
        self._protect = protect or []
        self._drain_ms = drain_ms
        self._repair = repair
        self._wait_to_restore_ms = wait_to_restore_ms
        self._latent_errors = latent_errors
        self._alarm_handler = on_alarm
        self._repair_latent = repair_latent
        self._tunnel_addresses = ipaddress.IPv4Network(tunnel_addresses)
        self._links = LinkState(discovery)
        self._planner = PathPlanner(self._links, paths, disjoint)
        self._repairer: Repairer | None = None
        self._watch: LatentErrorWatch | None = None
        self._waiting: dict[tuple[str, str], str] = {}
        self._keeps_routes = False
        self.taken_over: TakeOver | None = None
        """What was taken over from the switches at the start; None if nothing was."""

    def attach(self, plane: ControlPlane) -> None:
        """Create the parts of the controller that need to know the network.

        Raise :class:`NetworkError` for a host in a network that belongs to the tunnels.
        """
        super().attach(plane)
        check_routed(plane.topology, "the protected network")
        self._links.attach(plane, self.on_links_changed, self.reaction_delay_ps)
        for host in self.topology.hosts.values():
            for own in (self._tunnel_addresses, program.NODE_ADDRESSES):
                if host.address.network.overlaps(own):
                    raise NetworkError(f"host {host.name!r} is in {own}, which belongs to the tunnels")
        self._domain = DomainPorts(plane.clients, self._links)
        self._routing = Routing(program.ROUTES, plane.clients, _forwarding_action)
        self.registry = Registry(self.topology.switches)
        self.tunnels = Tunnels(self.topology, self._tunnel_addresses)
        self._transactions = Transactions(plane, self._drain_ms)
        if self._repair:
            self._repairer = Repairer(plane, self._links, self.tunnels, self._transactions, self._wait_to_restore_ms)
        if self._latent_errors is not None:
            self._watch = LatentErrorWatch(plane, self._links, self.registry, self._latent_errors, self._on_alarm)

    @property
    def topology(self) -> Topology:
        """The network's topology: as it is declared, or as it was discovered."""
        return self._links.topology

    @property
    def discovery(self) -> Discovery:
        """The object that discovers links. Raises :class:`NetworkError` if the controller takes the declared topology."""
        return self._links.discovery

    # ---- Events ----

    def on_start(self) -> None:
        """Take over the entries that the switches hold; then install routes, and connections for the pairs of hosts to protect.

        Switches that have just been loaded hold nothing, so the controller installs everything.
        """
        self._domain.start()
        self.taken_over = take_over(
            State(self.clients, self._links, self._routing, self.tunnels, self.registry, self._transactions)
        )
        pairs = [pair for a, b in self._protect for pair in ((a, b), (b, a))]
        if self._links.is_discovered:
            self._waiting = dict.fromkeys(pairs, "links are being discovered")
            if self.taken_over is not None:
                # Routes stay until links had their time to be heard.
                self._keeps_routes = True
                self.plane.call_later(self.discovery.hold_ps / PS_PER_MS, self._release_routes)
            self.discovery.start()
        else:
            self._links.ask_ports()
            self._install_routes()
            with self.together():
                for source, destination in pairs:
                    self.protect_hosts(source, destination)
        self._repair_soon()
        if self._watch is not None:
            self._watch.run()

    def on_packet_in(self, switch: str, packet: bytes, metadata: Mapping[str, int]) -> None:
        """Process a discovery frame if links are discovered; ignore other packets."""
        if self._links.is_discovered:
            self._links.hear(switch, packet, metadata["ingress_port"])

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        """Record a port's state; then change routes if ``reroute`` is set, and move copies to other paths if ``repair`` is set."""
        changed = self._links.port_changed(switch, port, up)
        self._note_down()
        if changed and self.reroute:
            self._install_routes()
        self._repair_soon()

    def on_links_changed(self) -> None:
        """Adapt routes and copies to links that were discovered or lost, and connect pairs of hosts that had no paths before."""
        self._domain.install()
        self._note_down()
        if not self._keeps_routes:
            self._install_routes()
        if self._links.is_settled:
            self._try_waiting()
        self._repair_soon()

    def _install_routes(self) -> None:
        self._routing.install(self.topology, self._links.down if self.reroute else self._links.replaced)

    def _release_routes(self) -> None:
        self._keeps_routes = False
        self.on_links_changed()

    def _note_down(self) -> None:
        if self._watch is not None:
            self._watch.note_down()

    def _repair_soon(self) -> None:
        if self._repairer is not None:
            self._repairer.run_soon()

    def _on_alarm(self, alarm: Alarm) -> None:
        if alarm.raised and self._repair_latent and self._repairer is not None:
            connection = next(c for c in self.registry if str(c) == alarm.connection)
            self._repairer.suspect(connection.path_set, connection.paths[alarm.path - 1])
            self._repairer.run_soon()
        if self._alarm_handler is not None:
            self._alarm_handler(alarm)

    def _try_waiting(self) -> None:
        done = []
        with self.together():
            for source, destination in self._waiting:
                try:
                    self.protect_hosts(source, destination)
                except NoDisjointPathsError as error:
                    self._waiting[source, destination] = str(error)
                else:
                    done.append((source, destination))
        for pair in done:
            del self._waiting[pair]

    # ---- Hosts ----

    @property
    def waiting(self) -> dict[tuple[str, str], str]:
        """The reason why a pair of hosts has no connection yet, for each pair that is still to be protected."""
        return dict(self._waiting)

    def protect_hosts(self, source: str, destination: str) -> Connection:
        """Protect all packets from host ``source`` to ``destination``; return the connection between their switches.

        IPv6 is protected too if both hosts have it. Other hosts may share the connection. They do not if packets are put in order
        behind the egress: then each destination there has its own, as it would wait for numbers of packets to others.
        """
        ends = self.topology.attachment(source), self.topology.attachment(destination)
        connection = self._find_for(destination, ends[0].switch, ends[1].switch) or self.add_connection(
            ends[0].switch, ends[1].switch
        )
        a, b = (end.host for end in ends)
        flows = [Flow(f"{a.address.ip}/32", f"{b.address.ip}/32")]
        if a.ipv6 and b.ipv6 and has_table(self.clients[connection.ingress], program.FLOW_TABLES[6]):
            flows.append(Flow(f"{a.ipv6.ip}/128", f"{b.ipv6.ip}/128"))
        with self.together():
            for flow in flows:
                if self.registry.owner(connection.ingress, flow) is None:
                    self.add_flow(connection, flow)
        return connection

    def _find_for(self, destination: str, ingress: str, egress: str) -> Connection | None:
        if not self._orders_behind(egress):
            return self.find_connection(ingress, egress)
        host = self.topology.hosts[destination]
        prefixes = [f"{host.address.ip}/32", *([] if host.ipv6 is None else [f"{host.ipv6.ip}/128"])]
        candidates = self.registry.between(ingress, egress)
        return next((c for c in candidates if all(flow.destination in prefixes for flow, _ in c.flows)), None)

    def _orders_behind(self, egress: str) -> bool:
        hosts = (host for host in self.topology.hosts if self.topology.puts_in_order(host))
        return any(self.topology.attachment(host).switch == egress for host in hosts)

    # ---- Connections ----

    @contextmanager
    def together(self) -> Iterator[None]:
        """Collect the changes made in the ``with`` block, and write them when the outermost such block ends.

        There is one batch per switch and phase, in the order of ``Phase``. If a switch refuses a batch, earlier insertions and
        modifications of entries are undone (deletions and register writes are not), and its error is raised. If the block raises,
        nothing is written. Two operations that change the same entry need separate blocks.
        """
        with self._transactions.changes():
            yield

    @property
    def connections(self) -> list[Connection]:
        """All connections, in the order in which they were added."""
        return list(self.registry)

    def find_connection(self, ingress: str, egress: str) -> Connection | None:
        """Return the first connection from ``ingress`` to ``egress``, or None if there is none."""
        return next(iter(self.registry.between(ingress, egress)), None)

    def add_connection(
        self,
        ingress: str,
        egress: str,
        *,
        paths: Sequence[Sequence[str]] | None = None,
        count: int | None = None,
        disjoint: Disjoint | None = None,
        mtu: int | None = None,
        cid: int | None = None,
        acceptance: Acceptance | None = None,
    ) -> Connection:
        """Set up a connection from ``ingress`` to ``egress`` and return it. No packet enters it before it has a flow.

        ``paths``: the nodes of each path; by default the cheapest ``count`` disjoint paths. ``mtu``: the paths' MTU in bytes, by
        default the controller's. ``cid``: the identifier in its packets, which no other connection to this PTE (tunnel egress) has;
        by default a free one. ``acceptance``: which copies the egress accepts, by default as the controller's. Raise
        :class:`NetworkError` if there are no such paths, or if no number or identifier is free.
        """
        acceptance = self._fitting(egress, acceptance or self.acceptance)
        chosen = self._planner.choose(ingress, egress, paths, count, disjoint)
        registry = self.registry
        with self._transactions.changes() as changes:
            index, egress_index, number = registry.take(changes, ingress, egress, cid)
            path_set = self.tunnels.acquire(changes, chosen, disjoint or self._planner.disjoint)
            connection = Connection(
                ingress, egress, number, index, egress_index, path_set, checked_mtu(mtu or self.mtu), acceptance
            )
            # Nobody has used the state of an untouched number yet.
            if not registry.indices[ingress].is_untouched(index):
                changes.set(Phase.RECEIVE, ingress, cleared_ingress(index))
            if not registry.egress_indices[egress].is_untouched(egress_index):
                changes.set(Phase.RECEIVE, egress, cleared_egress(egress_index))
            changes.insert(Phase.RECEIVE, egress, connection_entry(connection))
            registry.adopt(connection)
            changes.otherwise(lambda: registry.forget(connection))
        return connection

    def change_connection(
        self,
        connection: Connection,
        *,
        paths: Sequence[Sequence[str]] | None = None,
        count: int | None = None,
        disjoint: Disjoint | None = None,
        mtu: int | None = None,
        acceptance: Acceptance | None = None,
    ) -> None:
        """Change a connection that carries traffic, without losing a packet.

        Arguments are those of :meth:`add_connection`; values that are None stay as they are. New paths are installed before the
        first packet takes them, and old ones are removed after the last one has left them. Sequence numbers continue; with another
        ``acceptance``, everything before the last number counts as seen.
        """
        self.registry.check(connection)
        before = replace(connection)
        moved = paths is not None or count is not None or disjoint is not None
        kind = disjoint or before.path_set.disjoint
        wanted = count or len(before.path_set.copies)
        ends = connection.ingress, connection.egress
        chosen = self._planner.choose(*ends, paths, wanted, kind) if moved else []
        mtu = checked_mtu(mtu or connection.mtu)
        if acceptance is not None:
            self._fitting(connection.egress, acceptance)
        with self._transactions.changes() as changes:

            def back() -> None:
                connection.path_set, connection.mtu = before.path_set, before.mtu
                connection.acceptance = before.acceptance

            changes.otherwise(back)
            connection.mtu = mtu
            if moved:
                connection.path_set = self.tunnels.acquire(changes, chosen, kind)
            if acceptance is not None and acceptance != before.acceptance:
                connection.acceptance = acceptance
                changes.set(Phase.RECEIVE, connection.egress, _all_seen(connection, self.clients[connection.egress]))
            changes.modify(Phase.RECEIVE, connection.egress, connection_entry(connection), connection_entry(before))
            for flow, priority in connection.flows:
                entry, old = (flow_entry(self.topology, it, flow, priority) for it in (connection, before))
                changes.modify(Phase.SWITCH, connection.ingress, entry, old)
            if moved:
                left = before.path_set
                changes.afterwards(
                    lambda: self._transactions.when_drained(lambda later: self.tunnels.release(later, left))
                )

    def _fitting(self, egress: str, acceptance: Acceptance) -> Acceptance:
        """Return ``acceptance``. Raise :class:`NetworkError` if its history is longer than the program of the egress supports.

        The program would cut such a history, and discard packets that the caller expects to pass.
        """
        if acceptance.algorithm == "vector" and acceptance.history > (bits := _history_bits(self.clients[egress])):
            raise NetworkError(
                f"{egress} runs a program with histories of {bits}; {acceptance.history} needs another HISTORY_BITS"
            )
        return acceptance

    def remove_connection(self, connection: Connection) -> None:
        """Remove a connection: its flows at once, its other entries when the packets on the way have arrived.

        Raise :class:`NetworkError` if it was removed before.
        """
        self.registry.check(connection)
        with self._transactions.changes() as changes:
            for flow, _ in list(connection.flows):
                self.remove_flow(connection, flow)
            self.registry.forget(connection)
            changes.otherwise(lambda: self.registry.adopt(connection))
            # Without its metadata a later controller takes it for a leftover.
            entry = connection_entry(connection)
            changes.modify(Phase.STOP, connection.egress, entry._replace(metadata=b""), entry)
            changes.afterwards(lambda: self._transactions.when_drained(partial(self._take_down, connection)))

    def _take_down(self, connection: Connection, changes: Changes) -> None:
        self.tunnels.release(changes, connection.path_set)
        changes.delete(Phase.FORGET, connection.egress, connection_entry(connection))
        changes.afterwards(lambda: self.registry.give_back(connection))

    # ---- Flows ----

    def add_flow(self, connection: Connection, flow: Flow, priority: int = 1000) -> None:
        """Protect the packets that ``flow`` describes; of overlapping flows the one with the highest priority counts.

        Raise :class:`NetworkError` if a connection protects it already, or if the connection was removed.
        """
        self.registry.check(connection)
        owner = self.registry.owner(connection.ingress, flow)
        if owner is not None:
            raise NetworkError(f"{flow} is protected by connection {owner} already")
        entry = flow_entry(self.topology, connection, flow, priority)
        with self._transactions.changes() as changes:
            changes.insert(Phase.SWITCH, connection.ingress, entry)
            self.registry.adopt_flow(connection, flow, priority)
            changes.otherwise(lambda: self.registry.forget_flow(connection, flow, priority))

    def remove_flow(self, connection: Connection, flow: Flow) -> None:
        """End the protection of a flow; its packets are routed from then on.

        Raise :class:`NetworkError` if the connection does not have it.
        """
        priority = next((priority for known, priority in connection.flows if known == flow), None)
        if priority is None:
            raise NetworkError(f"connection {connection} has no {flow}")
        entry = flow_entry(self.topology, connection, flow, priority)
        with self._transactions.changes() as changes:
            changes.add(Phase.STOP, connection.ingress, ("delete", entry), ("insert", entry))
            self.registry.forget_flow(connection, flow, priority)
            changes.otherwise(lambda: self.registry.adopt_flow(connection, flow, priority))

    def nest(self, inner: Connection, outer: Connection, priority: int = 1000) -> list[Flow]:
        """Protect the copies of connection ``inner`` again by connection ``outer``, between two nodes that they cross.

        The returned flows describe the inner tunnels, and so everything in them. When the inner connection has moved to other
        paths, remove these flows and nest it again. Raise :class:`NetworkError` if its packets are too large.
        """
        self.registry.check(inner)
        if inner.mtu + program.OVERHEAD_BYTES > outer.mtu:
            raise NetworkError(
                f"packets of connection {inner} have up to {inner.mtu} bytes, too many for {outer}, whose mtu is {outer.mtu}"
            )
        flows = []
        for copy in inner.path_set.copies:
            between = copy.tunnel.path.nodes[1:-1]
            if outer.ingress in between and outer.egress in between[between.index(outer.ingress) + 1 :]:
                flows.append(Flow(destination=f"{copy.tunnel.address}/32", protocol=program.PROTECTION_PROTOCOL))
        if not flows:
            raise NetworkError(
                f"no path of connection {inner} goes from {outer.ingress} on to {outer.egress} on its way"
            )
        with self.together():
            for flow in flows:
                self.add_flow(outer, flow, priority)
        return flows

    # ---- Reading ----

    def statistics(self, connection: Connection) -> ConnectionStatistics:
        """Return the counters of a connection, read from its ingress and its egress.

        Raise :class:`NetworkError` if the connection was removed.
        """
        self.registry.check(connection)
        return read_statistics(self.clients, connection)

    def statistics_table(self) -> pl.DataFrame:
        """Return a row per connection, with the columns of :class:`ConnectionStatistics` except its paths."""
        return connections_table([read_statistics(self.clients, connection) for connection in self.registry])

    def paths_table(self) -> pl.DataFrame:
        """Return a row per connection and path, with the columns of :class:`PathStatistics`."""
        return paths_table([read_statistics(self.clients, connection) for connection in self.registry])

    @property
    def repairs(self) -> list[Repair]:
        """The copies whose path failed, and how each was moved to another path, in the order of the repairs."""
        return [] if self._repairer is None else self._repairer.repairs

    @property
    def alarms(self) -> list[Alarm]:
        """The alarms about paths that bring too few packets, raised and cleared ones, in order."""
        return [] if self._watch is None else self._watch.alarms

    def alarms_table(self) -> pl.DataFrame:
        """Return a row for each alarm that was raised or cleared, with the columns of :class:`Alarm`."""
        import polars as pl

        rows = [{**asdict(alarm), "nodes": "-".join(alarm.nodes)} for alarm in self.alarms]
        types = {"connection": pl.String, "nodes": pl.String, "raised": pl.Boolean}
        return pl.DataFrame(rows, schema={f.name: types.get(f.name, pl.Int64) for f in fields(Alarm)})


def _forwarding_action(topology: Topology, route: Route) -> str:
    """Return the action of a route's table entry.

    If packets are put in order before a host's link, the action keeps their sequence numbers as far as there.
    """
    in_order = route.hop is None and topology.puts_in_order(route.destination.host.name)
    return program.FORWARD_IN_ORDER if in_order else program.FORWARD


def _history_bits(client: Client) -> int:
    return p4data.width_of(client.p4info.registers[program.HISTORY].type_spec, client.p4info.message.type_info)


def _all_seen(connection: Connection, client: Client) -> list[Entity]:
    """Return the register write that marks all recent numbers as seen at the egress; empty if no packet has come yet.

    So second copies that are still on their way do not pass as first copies.
    """
    if not client.register(program.LAST_ACCEPTED, connection.egress_index):
        return []
    return [Register(program.HISTORY, connection.egress_index, (1 << _history_bits(client)) - 1)]
