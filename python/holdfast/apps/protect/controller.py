"""The controller of ``protect.p4``: routes, protection connections and protected flows, at run time.

A connection runs from a tunnel ingress (PTI) to a tunnel egress (PTE) over the cheapest set of disjoint paths. What was set up is
in the switches, with all that a controller must know to go on: one that starts where another one was killed takes over.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path as FilePath
from typing import Any

import polars as pl

from holdfast._core import Program
from holdfast.apps.protect.acceptance import PATHS, Acceptance
from holdfast.apps.protect.changes import Changes, Phase
from holdfast.apps.protect.connection import Connection, ConnectionStatistics, Flow
from holdfast.apps.protect.counters import brought_by_path, connections_table, paths_table, read_statistics
from holdfast.apps.protect.health import Alarm, HealthMonitor, LatentErrorDetection
from holdfast.apps.protect.numbers import Numbers
from holdfast.apps.protect.paths import Disjoint, NoDisjointPathsError, Path, disjoint_paths, path_along
from holdfast.apps.protect.repair import Repair, Repairer
from holdfast.apps.protect.takeover import TakeOver, take_over
from holdfast.apps.protect.tunnels import TUNNEL_ADDRESSES, PathSet, Tunnels
from holdfast.apps.router.controller import RouterController, TableEntry, has_table
from holdfast.controller import ControlPlane
from holdfast.discovery import LinkDiscovery, Port
from holdfast.errors import NetworkError
from holdfast.p4runtime import p4data
from holdfast.p4runtime.client import Client
from holdfast.p4runtime.received import Entry
from holdfast.parameters import PS_PER_MS

HERE = FilePath(__file__).parent

NODE_ADDRESSES = ipaddress.IPv4Network("10.255.0.0/16")
"""Where the PTIs' addresses (sources of the outer headers) are taken from, by switch index."""

PROTECTION_PROTOCOL = 253
"""Protocol number of outer headers; the program's default."""

OVERHEAD_BYTES = 28
"""Outer IPv4 header and protection header."""

CONNECTIONS = 8192
"""Connections that a node can be the PTI of, and those it can be the PTE of; the program's default."""

MAX_PATHS = 4
"""Copies of a packet, at most."""


def compile_protect(defines: dict[str, str] | None = None) -> Program:
    """Compiles ``protect.p4``.

    ``defines`` may set PROTECTION_PROTOCOL, UDP_PORT, SN_BITS, HISTORY_BITS, CONNECTIONS, CPU_PORT and NESTED_ENDS; the README says
    what they are.
    """
    return Program.compile(str(HERE / "protect.p4"), defines=defines or {})


class ProtectController(RouterController):
    """Routes as :class:`RouterController`, and manages 1+1 connections and flows.

    ``protect``: pairs of hosts, protected both ways from the start. ``paths``, ``disjoint`` and ``acceptance``: what a connection
    gets unless it asks for something else. ``mtu``: bytes that the links between the nodes carry. ``drain_ms``: how long what a
    change has left behind stays, for the packets that are still under way there.

    ``repair``: after a failure, sends the lost copy along another path while the others carry on (:attr:`repairs` has what was
    done), and with ``wait_to_restore_ms`` returns to the first paths when they have been whole for so long.

    ``latent_errors``: reads the PTEs' counters, and raises an alarm (in :attr:`alarms`, and to ``on_alarm``) about a path that
    silently brings too little, as soon as :class:`LatentErrorDetection` says. With ``repair_latent`` its copy is then moved, too.

    ``discovery``: finds the links between switches itself, instead of believing the map, and plans and repairs by what it has found
    (:attr:`discovery`). Pairs to protect that have no paths yet are in :attr:`waiting`, and connected as soon as they have.

    Methods change switches at once; :meth:`together` collects what several of them write. Call them from handlers
    (:meth:`on_start`, or given to the network's ``call_later``), one at a time.
    """

    table = "ProtectIngress.protect_and_forward.ipv4_lpm"
    forward = "ProtectIngress.protect_and_forward.forward"
    forward_in_order = "ProtectIngress.protect_and_forward.forward_in_order"
    route_key = "dst_addr"
    table_v6 = "ProtectIngress.protect_and_forward.ipv6_lpm"
    actions_v6: Mapping[str, str] = {
        forward: "ProtectIngress.protect_and_forward.forward_v6",
        forward_in_order: "ProtectIngress.protect_and_forward.forward_v6_in_order",
    }

    flow_table = "ProtectIngress.protect_and_forward.protected_flows"
    flow_tables = {4: flow_table, 6: "ProtectIngress.protect_and_forward.protected_flows_v6"}
    """By version of IP."""
    protect = "ProtectIngress.protect_and_forward.protect"
    last_sent = "ProtectIngress.protect_and_forward.encapsulate.last_sent_sn"
    protected = "ProtectIngress.protect_and_forward.encapsulate.protected"
    mtu_exceeded = "ProtectIngress.protect_and_forward.encapsulate.mtu_exceeded"
    connection_table = "ProtectIngress.decaps_p.egress_connections"
    select_connection = "ProtectIngress.decaps_p.select_connection"
    last_accepted = "ProtectIngress.decaps_p.acceptance.last_accepted_sn"
    history = "ProtectIngress.decaps_p.acceptance.history"
    lost = "ProtectIngress.decaps_p.acceptance.lost"
    resets = "ProtectIngress.decaps_p.acceptance.resets"
    passed = "ProtectIngress.decaps_p.acceptance.passed"
    discarded = "ProtectIngress.decaps_p.acceptance.discarded"
    rogue = "ProtectIngress.decaps_p.acceptance.rogue"
    out_of_order = "ProtectIngress.decaps_p.acceptance.out_of_order"

    ingress_state = ((last_sent,), (protected, mtu_exceeded))
    """Registers and counters that a PTI keeps by connection."""
    egress_state = ((last_accepted, history, lost), (resets,))
    """Registers and counters that a PTE keeps by connection."""
    path_counters = (passed, discarded, rogue, out_of_order)
    """Counters that a PTE keeps by connection and path, PATHS cells per connection."""

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
        super().__init__(reroute=reroute, reaction_delay_ms=reaction_delay_ms, discovery=discovery)
        self.mtu = _checked_mtu(mtu)
        self.path_count = _checked_count(paths)
        self.disjoint: Disjoint = disjoint
        if drain_ms < 0:
            raise NetworkError(f"drain_ms is {drain_ms}; it cannot be negative")
        self.drain_ms = drain_ms
        if wait_to_restore_ms is not None and (wait_to_restore_ms < 0 or not repair):
            raise NetworkError("wait_to_restore_ms cannot be negative, and belongs to repair=True")
        self._repairer = Repairer(self, wait_to_restore_ms) if repair else None
        self._repair_is_due = False
        self.acceptance = acceptance or Acceptance()
        if repair_latent and not (repair and latent_errors):
            raise NetworkError("repair_latent needs repair=True and latent_errors")
        if on_alarm is not None and latent_errors is None:
            raise NetworkError("on_alarm needs latent_errors")
        self._health = None if latent_errors is None else HealthMonitor(latent_errors, self._on_alarm)
        self._repair_latent = repair_latent
        self._alarm_handler = on_alarm
        self.tunnel_addresses = ipaddress.IPv4Network(tunnel_addresses)
        self._protect = protect or []
        self._connections: dict[tuple[str, int], Connection] = {}
        self._by_ends: dict[tuple[str, str], list[Connection]] = {}
        self._owner: dict[tuple[str, Flow], Connection] = {}
        self._planned: dict[tuple[object, ...], list[Path]] = {}
        self._failed: set[tuple[str, int]] = set()
        self._lately_down: frozenset[int] = frozenset()
        """Links that were down at some time since the counters were read last."""
        self._open: Changes | None = None
        self._waiting: dict[tuple[str, str], str] = {}
        self._keeps_routes = False
        self.taken_over: TakeOver | None = None
        """What was found in the switches at the start; None if nothing."""

    def attach(self, plane: ControlPlane) -> None:
        """Prepares the numbers of every switch."""
        super().attach(plane)
        names = list(self.topology.switches)
        self.tunnels = Tunnels(self.topology, self.tunnel_addresses)
        self._indices = {name: Numbers(0, CONNECTIONS - 1, f"connections of PTI {name}") for name in names}
        self._egress_indices = {name: Numbers(0, CONNECTIONS - 1, f"connections of PTE {name}") for name in names}
        self._cids = {name: Numbers(0, 2**24 - 1, f"connection identifiers of PTE {name}") for name in names}
        for host in self.topology.hosts.values():
            for own in (self.tunnel_addresses, NODE_ADDRESSES):
                if host.address.network.overlaps(own):
                    raise NetworkError(f"host {host.name!r} is in {own}, which belongs to the tunnels")

    def on_start(self) -> None:
        """Takes over what the switches hold already; then the routes, and connections for the host pairs to protect.

        A controller that starts beside switches that have just been loaded finds nothing there, and begins anew.
        """
        self.taken_over = take_over(self)
        pairs = [pair for a, b in self._protect for pair in ((a, b), (b, a))]
        if self._discovery is None:
            self._ask_ports()
            super().on_start()
            with self.together():
                for source, destination in pairs:
                    self.protect_hosts(source, destination)
        else:
            self._waiting = dict.fromkeys(pairs, "links are being discovered")
            if self.taken_over is not None:
                # What was routed stays so until links had their time to be heard.
                self._keeps_routes = True
                self.plane.call_later(self._discovery.hold_ps / PS_PER_MS, self._release_routes)
            super().on_start()
        self._repair_soon()
        self._watch()

    def _ask_ports(self) -> None:
        for switch, port in self._link_ports():
            if not self.plane.port_is_up(switch, port):
                self._failed.add((switch, port))
                if self.reroute:
                    self._down.add((switch, port))

    def _link_ports(self) -> Iterator[tuple[str, int]]:
        for link in self.topology.links:
            for node, port in ((link.a, link.a_port), (link.b, link.b_port)):
                if node in self.topology.switches:
                    yield node, port

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        """Takes note of it, lets routes follow if ``reroute`` is set, and copies if ``repair`` is."""
        self._failed.discard((switch, port)) if up else self._failed.add((switch, port))
        self._lately_down |= self._down_links()
        super().on_port_change(switch, port, up)
        self._repair_soon()

    def on_links_changed(self) -> None:
        """Lets routes and copies follow what was discovered or is gone, and tries what has been waiting."""
        self._lately_down |= self._down_links()
        if not self._keeps_routes:
            super().on_links_changed()
        if self.discovery.is_settled:
            self._try_waiting()
        self._repair_soon()

    def _release_routes(self) -> None:
        self._keeps_routes = False
        self.on_links_changed()

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

    @property
    def waiting(self) -> dict[tuple[str, str], str]:
        """The reason why a pair of hosts has no connection yet, for each such pair."""
        return dict(self._waiting)

    def find_link(self, one: Port, other: Port, *, in_use: bool) -> int:
        """The index of the link between two ports, of which an entry says that it was there.

        One that is in use is believed in until discovery has had the time to hear it. Raises :class:`NetworkError` without one.
        """
        if self._discovery is not None:
            return self._discovery.presume(one, other, is_there=in_use)
        for index, link in enumerate(self.topology.links):
            if {one, other} == {(link.a, link.a_port), (link.b, link.b_port)}:
                return index
        raise NetworkError(f"there is no link between {one[0]}:{one[1]} and {other[0]}:{other[1]}")

    def _repair_soon(self) -> None:
        """Once for everything that is told at this instant: a node that fails is told by all its neighbours."""
        if self._repairer is not None and not self._repair_is_due:
            self._repair_is_due = True
            self.plane.call_later(0, self._repair)

    def _repair(self) -> None:
        self._repair_is_due = False
        if self._repairer is not None:
            self._repairer.run(self._down_links())

    @property
    def repairs(self) -> list[Repair]:
        """What became of copies whose path failed, in order."""
        return [] if self._repairer is None else self._repairer.repairs

    # ---- Changes ----

    @contextmanager
    def together(self) -> Iterator[None]:
        """Everything done inside is written at its end, in one batch per switch and phase, or not at all if a switch refuses.

        What a later step inside would write over an earlier one's does not belong together.
        """
        if self._open is not None:
            yield
            return
        changes = self._open = Changes()
        try:
            yield
        except BaseException:
            changes.abandon()
            raise
        finally:
            self._open = None
        changes.apply(self.clients)

    @contextmanager
    def changes(self) -> Iterator[Changes]:
        """What is collected now: that of :meth:`together`, or else what is written at the end of this block."""
        with self.together():
            assert self._open is not None
            yield self._open

    def when_drained(self, remove: Callable[[Changes], None]) -> None:
        """Takes down what was left behind, when nothing is under way on it any more."""

        def run() -> None:
            changes = Changes()
            remove(changes)
            changes.apply(self.clients, lenient=True)

        if self.drain_ms:
            self.plane.call_later(self.drain_ms, run)
        else:
            run()

    # ---- Connections ----

    @property
    def connections(self) -> list[Connection]:
        """All connections, in the order in which they were added."""
        return list(self._connections.values())

    def find_connection(self, ingress: str, egress: str) -> Connection | None:
        """The first connection between two switches, if there is one."""
        return next(iter(self._by_ends.get((ingress, egress), ())), None)

    def disjoint_paths(
        self, ingress: str, egress: str, count: int | None = None, disjoint: Disjoint | None = None
    ) -> list[Path]:
        """The cheapest set of disjoint paths without links that are down (:func:`holdfast.apps.protect.paths.disjoint_paths`)."""
        down = self._down_links()
        key = (ingress, egress, count or self.path_count, disjoint or self.disjoint, down, len(self.topology.links))
        if key not in self._planned:
            if len(self._planned) > 100_000:
                self._planned.clear()
            try:
                self._planned[key] = disjoint_paths(
                    self.topology,
                    ingress,
                    egress,
                    count or self.path_count,
                    disjoint=disjoint or self.disjoint,
                    avoid_links=down,
                )
            except NoDisjointPathsError as error:
                if self._discovery is None or self._discovery.is_settled:
                    raise
                message = f"{error} (links are still being discovered)"
                raise NoDisjointPathsError(message, error.found, error.cut_nodes, error.cut_links) from None
        return self._planned[key]

    def _down_links(self) -> frozenset[int]:
        """Links that are down at one end at least, or not there."""
        if self._discovery is not None:
            return self._discovery.topology.absent
        if not self._failed:
            return frozenset()
        return frozenset(
            i
            for i, link in enumerate(self.topology.links)
            if (link.a, link.a_port) in self._failed or (link.b, link.b_port) in self._failed
        )

    def protect_hosts(self, source: str, destination: str) -> Connection:
        """Protects everything from one host to another, over a connection between their switches: IPv4, and IPv6 if both have it.

        The connection is shared with other hosts, unless packets are put in order behind the egress: then each destination
        there has its own, as numbers that went elsewhere would be waited for.
        """
        ends = self.topology.attachment(source), self.topology.attachment(destination)
        connection = self._find_for(destination, ends[0].switch, ends[1].switch) or self.add_connection(
            ends[0].switch, ends[1].switch
        )
        a, b = (end.host for end in ends)
        flows = [Flow(f"{a.address.ip}/32", f"{b.address.ip}/32")]
        if a.ipv6 and b.ipv6 and has_table(self.clients[connection.ingress], self.flow_tables[6]):
            flows.append(Flow(f"{a.ipv6.ip}/128", f"{b.ipv6.ip}/128"))
        with self.together():
            for flow in flows:
                if (connection.ingress, flow) not in self._owner:
                    self.add_flow(connection, flow)
        return connection

    def _find_for(self, destination: str, ingress: str, egress: str) -> Connection | None:
        if not self._orders_behind(egress):
            return self.find_connection(ingress, egress)
        host = self.topology.hosts[destination]
        prefixes = [f"{host.address.ip}/32", *([] if host.ipv6 is None else [f"{host.ipv6.ip}/128"])]
        candidates = self._by_ends.get((ingress, egress), ())
        return next((c for c in candidates if all(flow.destination in prefixes for flow, _ in c.flows)), None)

    def _orders_behind(self, egress: str) -> bool:
        hosts = (host for host in self.topology.hosts if self.topology.puts_in_order(host))
        return any(self.topology.attachment(host).switch == egress for host in hosts)

    def host_entry(self, host: str) -> TableEntry:
        """With an ordering function in front of the host's link, accepted packets keep their numbers as far as that."""
        action, parameters = super().host_entry(host)
        return (self.forward_in_order if self.topology.puts_in_order(host) else action), parameters

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
        """Sets a connection up. Nothing enters it before it has a flow.

        ``paths``: the nodes of each path; without them the cheapest ``count`` disjoint ones. ``cid``: the identifier in its
        packets, which no other connection to this PTE has; without it a free one.
        """
        acceptance = self._fitting(egress, acceptance or self.acceptance)
        chosen = self._choose(ingress, egress, paths, count, disjoint)
        with self.changes() as changes:
            index = self._take(changes, self._indices[ingress])
            egress_index = self._take(changes, self._egress_indices[egress])
            number = self._take(changes, self._cids[egress], cid)
            path_set = self.tunnels.acquire(changes, chosen, disjoint or self.disjoint)
            connection = Connection(
                ingress,
                egress,
                number,
                index,
                egress_index,
                path_set,
                _checked_mtu(mtu or self.mtu),
                acceptance,
            )
            self._clear(changes, ingress, self._indices[ingress], index, self.ingress_state)
            self._clear(changes, egress, self._egress_indices[egress], egress_index, self.egress_state)
            self._clear_paths(changes, egress, egress_index)
            changes.add(
                Phase.RECEIVE,
                egress,
                partial(self.write_connection, connection, modify=False),
                lambda client: client.delete(self.connection_table, self._connection_key(connection)),
            )
            self.adopt(connection)
            changes.otherwise(lambda: self._forget(connection))
        return connection

    def _choose(
        self,
        ingress: str,
        egress: str,
        paths: Sequence[Sequence[str]] | None,
        count: int | None,
        disjoint: Disjoint | None,
    ) -> list[Path]:
        if paths is None:
            return self.disjoint_paths(ingress, egress, _checked_count(count or self.path_count), disjoint)
        chosen = [path_along(self.topology, nodes) for nodes in paths]
        _checked_count(len(chosen))
        for i, path in enumerate(chosen):
            if (path.nodes[0], path.nodes[-1]) != (ingress, egress):
                raise NetworkError(f"{path} does not lead from {ingress} to {egress}")
            for other in chosen[:i]:
                if path.shares(other, disjoint or self.disjoint):
                    raise NetworkError(f"{other} and {path} are not {disjoint or self.disjoint}-disjoint")
        return chosen

    @staticmethod
    def _take(changes: Changes, numbers: Numbers, wanted: int | None = None) -> int:
        if wanted is None:
            wanted = numbers.take()
        elif not numbers.claim(wanted):
            raise NetworkError(f"connection identifier {wanted} is in use, or is none")
        changes.otherwise(lambda: numbers.give_back(wanted))
        return wanted

    @staticmethod
    def _clear(
        changes: Changes, switch: str, numbers: Numbers, index: int, state: tuple[tuple[str, ...], tuple[str, ...]]
    ) -> None:
        """Starts a connection's registers and counters anew, unless nobody has used them yet."""
        if numbers.is_untouched(index):
            return
        for register in state[0]:
            changes.add(Phase.RECEIVE, switch, lambda client, name=register: client.write_register(name, index, 0))  # type: ignore[misc]
        for counter in state[1]:
            changes.add(Phase.RECEIVE, switch, lambda client, name=counter: client.write_counter(name, index))  # type: ignore[misc]

    def _clear_paths(self, changes: Changes, egress: str, index: int) -> None:
        if self._egress_indices[egress].is_untouched(index):
            return
        for counter in self.path_counters:
            for cell in range(PATHS * index, PATHS * index + PATHS):
                changes.add(Phase.RECEIVE, egress, lambda client, name=counter, at=cell: client.write_counter(name, at))  # type: ignore[misc]

    def adopt(self, connection: Connection) -> None:
        """Counts a connection, whose numbers are taken already, among those that there are."""
        self._connections[connection.egress, connection.cid] = connection
        self._by_ends.setdefault((connection.ingress, connection.egress), []).append(connection)

    def _forget(self, connection: Connection) -> None:
        del self._connections[connection.egress, connection.cid]
        self._by_ends[connection.ingress, connection.egress].remove(connection)

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
        """Changes a connection that carries traffic, without losing a packet.

        What is None stays. New paths are there before the first packet takes them, and the old ones until the last one has left
        them. Sequence numbers go on; another acceptance algorithm takes everything before the last number for seen.
        """
        self._check(connection)
        before = replace(connection)
        moved = paths is not None or count is not None or disjoint is not None
        kind = disjoint or before.path_set.disjoint
        wanted = count or len(before.path_set.copies)
        chosen = self._choose(connection.ingress, connection.egress, paths, wanted, kind) if moved else []
        mtu = _checked_mtu(mtu or connection.mtu)
        if acceptance is not None:
            self._fitting(connection.egress, acceptance)
        with self.changes() as changes:

            def back() -> None:
                connection.path_set, connection.mtu = before.path_set, before.mtu
                connection.acceptance = before.acceptance

            changes.otherwise(back)
            connection.mtu = mtu
            if moved:
                connection.path_set = self.tunnels.acquire(changes, chosen, kind)
            if acceptance is not None and acceptance != before.acceptance:
                connection.acceptance = acceptance
                changes.add(Phase.RECEIVE, connection.egress, partial(self._take_for_seen, connection))
            changes.add(
                Phase.RECEIVE,
                connection.egress,
                partial(self.write_connection, connection, modify=True),
                partial(self.write_connection, before, modify=True),
            )
            for flow, priority in connection.flows:
                changes.add(
                    Phase.SWITCH,
                    connection.ingress,
                    partial(self.write_flow, connection, flow, priority, modify=True),
                    partial(self.write_flow, before, flow, priority, modify=True),
                )
            if moved:
                changes.afterwards(
                    lambda: self.when_drained(lambda later: self.tunnels.release(later, before.path_set))
                )

    def _take_for_seen(self, connection: Connection, client: Client) -> None:
        """Fills the history, unless there was no packet yet: second copies that are under way must not be taken for first ones."""
        if client.register(self.last_accepted, connection.egress_index):
            client.write_register(self.history, connection.egress_index, (1 << self._history_bits(client)) - 1)

    def _fitting(self, egress: str, acceptance: Acceptance) -> Acceptance:
        """The program would cut a history longer than its own, and discard what the caller expects to pass."""
        if acceptance.algorithm == "vector" and acceptance.history > (bits := self._history_bits(self.clients[egress])):
            raise NetworkError(
                f"{egress} runs a program with histories of {bits}; {acceptance.history} needs another HISTORY_BITS"
            )
        return acceptance

    def _history_bits(self, client: Client) -> int:
        return p4data.width_of(client.p4info.registers[self.history].type_spec, client.p4info.message.type_info)

    def remove_connection(self, connection: Connection) -> None:
        """Removes the flows at once, and the rest when the packets under way have arrived."""
        self._check(connection)
        with self.changes() as changes:
            for flow, _ in list(connection.flows):
                self.remove_flow(connection, flow)
            self._forget(connection)
            changes.otherwise(lambda: self.adopt(connection))
            # A later controller takes it for a leftover from now on.
            changes.add(
                Phase.STOP,
                connection.egress,
                partial(self.write_connection, connection, modify=True, leaving=True),
                partial(self.write_connection, connection, modify=True),
            )
            changes.afterwards(lambda: self.when_drained(partial(self._take_down, connection)))

    def _take_down(self, connection: Connection, changes: Changes) -> None:
        self.tunnels.release(changes, connection.path_set)
        key = self._connection_key(connection)
        changes.add(Phase.FORGET, connection.egress, lambda client: client.delete(self.connection_table, key))

        def give_back() -> None:
            self._indices[connection.ingress].give_back(connection.index)
            self._egress_indices[connection.egress].give_back(connection.egress_index)
            self._cids[connection.egress].give_back(connection.cid)

        changes.afterwards(give_back)

    def _check(self, connection: Connection) -> None:
        if self._connections.get((connection.egress, connection.cid)) is not connection:
            raise NetworkError(f"connection {connection} is not there any more")

    # ---- Flows ----

    def add_flow(self, connection: Connection, flow: Flow, priority: int = 1000) -> None:
        """Protects the packets that the flow describes. Of overlapping flows the one with the highest priority counts."""
        self._check(connection)
        owner = self._owner.get((connection.ingress, flow))
        if owner is not None:
            raise NetworkError(f"{flow} is protected by connection {owner} already")
        flow.match()
        with self.changes() as changes:
            changes.add(
                Phase.SWITCH,
                connection.ingress,
                partial(self.write_flow, connection, flow, priority, modify=False),
                lambda client: client.delete(self.flow_tables[flow.version], flow.match(), priority=priority),
            )
            self.adopt_flow(connection, flow, priority)
            changes.otherwise(lambda: self._forget_flow(connection, flow, priority))

    def adopt_flow(self, connection: Connection, flow: Flow, priority: int) -> None:
        """Counts a flow among its connection's."""
        connection.flows.append((flow, priority))
        self._owner[connection.ingress, flow] = connection

    def _forget_flow(self, connection: Connection, flow: Flow, priority: int) -> None:
        connection.flows.remove((flow, priority))
        del self._owner[connection.ingress, flow]

    def remove_flow(self, connection: Connection, flow: Flow) -> None:
        """Ends the protection of a flow; its packets are routed from then on."""
        priority = next((priority for known, priority in connection.flows if known == flow), None)
        if priority is None:
            raise NetworkError(f"connection {connection} has no {flow}")
        with self.changes() as changes:
            changes.add(
                Phase.STOP,
                connection.ingress,
                lambda client: client.delete(self.flow_tables[flow.version], flow.match(), priority=priority),
                partial(self.write_flow, connection, flow, priority, modify=False),
            )
            self._forget_flow(connection, flow, priority)
            changes.otherwise(lambda: self.adopt_flow(connection, flow, priority))

    def nest(self, inner: Connection, outer: Connection, priority: int = 1000) -> list[Flow]:
        """Protects a connection's copies again, on the way from one node to another that they cross.

        The flows, which it returns, describe the inner tunnels, and so everything that goes through them. When the inner connection
        has moved to other paths, remove them and nest it again.
        """
        self._check(inner)
        if inner.mtu + OVERHEAD_BYTES > outer.mtu:
            raise NetworkError(
                f"packets of connection {inner} have up to {inner.mtu} bytes, too many for {outer}, whose mtu is {outer.mtu}"
            )
        flows = []
        for copy in inner.path_set.copies:
            between = copy.tunnel.path.nodes[1:-1]
            if outer.ingress in between and outer.egress in between[between.index(outer.ingress) + 1 :]:
                flows.append(Flow(destination=f"{copy.tunnel.address}/32", protocol=PROTECTION_PROTOCOL))
        if not flows:
            raise NetworkError(
                f"no path of connection {inner} goes from {outer.ingress} on to {outer.egress} on its way"
            )
        with self.together():
            for flow in flows:
                self.add_flow(outer, flow, priority)
        return flows

    # ---- Entries ----

    def write_flow(self, connection: Connection, flow: Flow, priority: int, client: Client, *, modify: bool) -> None:
        """Writes a flow's entry to the PTI."""
        (client.modify if modify else client.insert)(
            self.flow_tables[flow.version],
            flow.match(),
            self.protect,
            {
                "index": connection.index,
                "cid": connection.cid,
                "src_ip": str(NODE_ADDRESSES[self.topology.switches[connection.ingress].index]),
                "dst_ip": connection.addresses[0],
                "m_grp": connection.multicast_group,
                "mtu": connection.mtu,
            },
            priority=priority,
            metadata=as_metadata(flow.fields()),
        )

    def write_connection(self, connection: Connection, client: Client, *, modify: bool, leaving: bool = False) -> None:
        """Writes a connection's entry to the PTE, with what a controller that comes later must know to go on."""
        action, parameters = connection.acceptance.action(connection.egress_index)
        (client.modify if modify else client.insert)(
            self.connection_table,
            self._connection_key(connection),
            f"ProtectIngress.decaps_p.{action}",
            parameters,
            metadata=b"" if leaving else as_metadata(self._noted(connection)),
        )

    @staticmethod
    def _noted(connection: Connection) -> dict[str, object]:
        return {
            "ingress": connection.ingress,
            "index": connection.index,
            "group": connection.path_set.group,
            "mtu": connection.mtu,
        }

    @staticmethod
    def connection_from(
        noted: Mapping[str, Any], entry: Entry, egress: str, cid: int, path_set: PathSet
    ) -> Connection | None:
        """The connection that an entry of the PTE is of; None if it is of none."""
        try:
            index, mtu, egress_index = noted["index"], _checked_mtu(noted["mtu"]), int(entry.params["index"])
            acceptance = Acceptance.of(entry.action, entry.params)
        except (KeyError, TypeError, NetworkError):
            return None
        return Connection(noted["ingress"], egress, cid, index, egress_index, path_set, mtu, acceptance)

    def claim(self, connection: Connection) -> bool:
        """Takes the numbers of a connection that was found; false, and none taken, if one is another's."""
        taken: list[tuple[Numbers, int]] = []
        for numbers, number in (
            (self._indices[connection.ingress], connection.index),
            (self._egress_indices[connection.egress], connection.egress_index),
            (self._cids[connection.egress], connection.cid),
        ):
            if not isinstance(number, int) or not numbers.claim(number):
                for other, given in taken:
                    other.give_back(given)
                return False
            taken.append((numbers, number))
        return True

    def reserve_egress(self, egress: str, cid: int, egress_index: int, reserve: Callable[[Numbers, int], None]) -> None:
        """Reserves the PTE's numbers of a leftover."""
        reserve(self._cids[egress], cid)
        reserve(self._egress_indices[egress], egress_index)

    def adopt_routes(self, switch: str, routes: dict[str, TableEntry]) -> None:
        """Notes the routes to hosts that a switch has already."""
        self._installed[switch] = routes

    @staticmethod
    def _connection_key(connection: Connection) -> dict[str, int]:
        return {"hdr.protection.cid": connection.cid}

    # ---- Statistics ----

    def statistics(self, connection: Connection) -> ConnectionStatistics:
        """What both ends have counted of a connection."""
        self._check(connection)
        return read_statistics(self, connection)

    def statistics_table(self) -> pl.DataFrame:
        """One row per connection, with the columns of :class:`ConnectionStatistics` (but for its paths)."""
        return connections_table([read_statistics(self, connection) for connection in self.connections])

    def paths_table(self) -> pl.DataFrame:
        """One row per connection and path, with the columns of :class:`PathStatistics`."""
        return paths_table([read_statistics(self, connection) for connection in self.connections])

    # ---- Latent errors ----

    @property
    def alarms(self) -> list[Alarm]:
        """Paths that bring too little, or do again what they should, in order."""
        return [] if self._health is None else self._health.alarms

    def alarms_table(self) -> pl.DataFrame:
        """One row per alarm, raised or cleared, with the columns of :class:`Alarm`."""
        rows = [{**asdict(alarm), "nodes": "-".join(alarm.nodes)} for alarm in self.alarms]
        types = {"connection": pl.String, "nodes": pl.String, "raised": pl.Boolean}
        return pl.DataFrame(rows, schema={f.name: types.get(f.name, pl.Int64) for f in fields(Alarm)})

    def _watch(self) -> None:
        """Reads the counters of all connections, and comes back."""
        if self._health is None:
            return
        now_ps, down = self.plane.now_ps, self._down_links() | self._lately_down
        self._lately_down = frozenset()
        connections = self.connections
        for connection, (passed, discarded) in brought_by_path(self, connections).items():
            paths = connection.paths
            self._health.read(
                now_ps,
                str(connection),
                tuple(path.nodes for path in paths),
                passed,
                discarded,
                [not down.isdisjoint(path.links) for path in paths],
            )
        self._health.keep({str(connection): None for connection in connections})
        self.plane.call_later(self._health.interval_ms, self._watch)

    def _on_alarm(self, alarm: Alarm) -> None:
        if alarm.raised and self._repair_latent and self._repairer is not None:
            connection = next(c for c in self._connections.values() if str(c) == alarm.connection)
            self._repairer.suspect(connection.path_set, connection.paths[alarm.path - 1])
            self._repair_soon()
        if self._alarm_handler is not None:
            self._alarm_handler(alarm)


def as_metadata(value: object) -> bytes:
    """What an entry carries for a later controller."""
    return json.dumps(value, separators=(",", ":")).encode()


def _checked_mtu(mtu: int) -> int:
    if not OVERHEAD_BYTES + 20 <= mtu <= 65535:
        raise NetworkError(f"mtu is {mtu} bytes; a tunnel needs {OVERHEAD_BYTES + 20} to 65535")
    return mtu


def _checked_count(count: int) -> int:
    if not 2 <= count <= MAX_PATHS:
        raise NetworkError(f"a connection has 2 to {MAX_PATHS} paths, not {count}")
    return count
