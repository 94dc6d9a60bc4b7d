"""The controller of ``mpls.p4``: paths, labels, LSPs and what they do when a link fails.

It works before the failure only. A mechanism is a set of entries: at which nodes an LSP has a second NHLFE, where that leads,
and who is sent notices. When a link fails the data plane finds all it needs there; this controller does nothing about it. Paths
are chosen in ``planning``, entries in ``setup``; a node's tables are in ``lsr``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from holdfast.apps.mpls.lsp import Connection, Fec, LastHop, Lsp, LspStatistics, Recovery, TtlModel, one_of
from holdfast.apps.mpls.lsr import (
    BACKUP_TRAFFIC,
    DISCARDED,
    LOOPED,
    LSP_TRAFFIC,
    NOTICES_RECEIVED,
    NOTICES_SENT,
    ON_BACKUP,
    SWITCHOVERS,
    TTL_EXPIRED,
    Hop,
    Lsr,
    Value,
)
from holdfast.apps.mpls.planning import PathPlanner
from holdfast.apps.mpls.program import EVENT_PORT, LSPS
from holdfast.apps.mpls.setup import Setup, failed_hops, hop_towards
from holdfast.control.domain import DomainPorts
from holdfast.control.link_state import LinkState
from holdfast.control.next_hop import to_host
from holdfast.control.subnets import check_routed
from holdfast.controller import Controller, ControlPlane
from holdfast.errors import NetworkError


class MplsController(Controller):
    """Sets up LSPs, with all that their recovery needs, and takes them down.

    ``connections`` are there from the start. ``explicit_null``: the TTL model of label 0, which belongs to no LSP.
    """

    def __init__(
        self,
        *,
        connections: Sequence[Connection] = (),
        explicit_null: TtlModel = TtlModel.UNIFORM,
        reaction_delay_ms: float = 0.0,
    ) -> None:
        super().__init__(reaction_delay_ms=reaction_delay_ms)
        self._connections = connections
        self._explicit_null = explicit_null
        self.lsps: dict[int, Lsp] = {}
        self.lsrs: dict[str, Lsr] = {}
        self._bindings: dict[int, dict[str, Value]] = {}
        """The action parameters that send a class of packets into an LSP, by LSP."""
        self._routes: set[tuple[str, str]] = set()

    def attach(self, plane: ControlPlane) -> None:
        """Create the path planner, and the object that writes into each switch which of its ports lead to other routers.

        Nothing is written yet. Raise :class:`NetworkError` if there are hosts to which an MPLS router cannot route.
        """
        super().attach(plane)
        check_routed(plane.topology, "the MPLS router")
        self._planner = PathPlanner(self.topology, self._explicit_null)
        links = LinkState()
        links.attach(plane, lambda: None, self.reaction_delay_ps)
        self._domain = DomainPorts(plane.clients, links)

    def on_start(self) -> None:
        """Write the domain's ports, each router's own entries and the routes to its hosts; then set up the connections.

        Raise :class:`NetworkError` if a link uses the port of the switches' agents.
        """
        for link in self.topology.links:
            if EVENT_PORT in (link.a_port, link.b_port):
                raise NetworkError(f"link {link.name}: port {EVENT_PORT} belongs to the switches' agents")
        self._domain.start()
        graph = self.topology.graph
        for name in self.topology.switches:
            self.lsrs[name] = Lsr(self.clients[name])
            neighbours = [hop_towards(self.topology, name, neighbour, {}) for neighbour in graph.neighbors(name)]
            self.lsrs[name].start(neighbours, self._explicit_null == TtlModel.UNIFORM)
        for name in self.topology.hosts:
            place = self.topology.attachment(name)
            there = to_host(self.topology, place)
            hop = Hop(there.port, there.src_mac, there.dst_mac)
            self.lsrs[place.switch].add_route(str(place.host.address.network), hop)
        for connection in self._connections:
            self.connect(connection)

    # ---- Setting up ----

    def connect(self, connection: Connection) -> tuple[Lsp, Lsp]:
        """Set up two LSPs along the same nodes, one in each direction, for packets between two sets of hosts; return both.

        Where the path does not reach a host's switch, the switches in between route plain IPv4. Raise :class:`NetworkError` if
        there is no such path.
        """
        sides = [connection.hosts_a, connection.hosts_b]
        ends = [self.topology.attachment(side[0]).switch for side in sides]
        path = list(connection.path or self._planner.shortest_path(ends[0], ends[1]))
        backup = connection.backup
        detours = connection.detours
        forth = self.add_lsp(
            path,
            recovery=connection.recovery,
            backup=backup,
            detours=detours,
            ttl=connection.ttl,
            last_hop=connection.last_hop,
        )
        back = self.add_lsp(
            path[::-1],
            recovery=connection.recovery,
            backup=None if backup is None else list(backup)[::-1],
            detours=None if detours is None else {(b, a): list(way)[::-1] for (a, b), way in detours.items()},
            ttl=connection.ttl,
            last_hop=connection.last_hop,
        )
        self._attach(forth, *sides)
        self._attach(back, *sides[::-1])
        return forth, back

    def _attach(self, lsp: Lsp, sources: Sequence[str], destinations: Sequence[str]) -> None:
        """Send packets to the hosts ``destinations`` into an LSP, and add the routes to and from it.

        The routes lead from the switches of ``sources`` to the ingress, and from the egress to the destinations' switches.
        """
        for name in destinations:
            place = self.topology.attachment(name)
            prefix = str(place.host.address.network)
            self.add_fec(lsp, Fec(destination=prefix))
            self._route(prefix, self._planner.shortest_path(lsp.egress, place.switch))
            for source in sources:
                self._route(prefix, self._planner.shortest_path(self.topology.attachment(source).switch, lsp.ingress))

    def _route(self, prefix: str, path: Sequence[str]) -> None:
        """Route ``prefix`` along the nodes of ``path``, except at switches that have this route already."""
        for node, following in pairwise(path):
            if (node, prefix) not in self._routes:
                self._routes.add((node, prefix))
                self.lsrs[node].add_route(prefix, hop_towards(self.topology, node, following, {}))

    def add_lsp(
        self,
        path: Sequence[str],
        *,
        recovery: Recovery | None = None,
        backup: Sequence[str] | None = None,
        detours: Mapping[tuple[str, str], Sequence[str]] | None = None,
        ttl: TtlModel = TtlModel.UNIFORM,
        last_hop: LastHop = LastHop.PHP,
        tunnels: Mapping[tuple[str, str], Lsp] | None = None,
    ) -> Lsp:
        """Set up an LSP along the nodes of ``path``, which are neighbours or the ends of LSPs in ``tunnels``; return it.

        ``recovery``: what it does when a link fails; None for nothing. ``backup``: the whole other path, by default the cheapest
        disjoint one. ``detours``: by link, for mechanism *local*, by default the shortest ways around. No packet enters an LSP
        before it has a class of packets (:meth:`add_fec`). Raise :class:`NetworkError` if the path or a part of these cannot be
        used, or if all LSPs are in use.
        """
        number = next((n for n in range(1, LSPS) if n not in self.lsps), None)
        if number is None:
            raise NetworkError(f"all {LSPS - 1} LSPs that a network can have are in use")
        ttl, last_hop = one_of(TtlModel, "ttl", ttl), one_of(LastHop, "last_hop", last_hop)
        lsp = Lsp(number, list(path), recovery or Recovery(), ttl, last_hop, dict(tunnels or {}))
        for tunnel in lsp.tunnels.values():
            self._check_set_up(tunnel)
        self._planner.complete(lsp, backup, detours)
        self.lsps[number] = lsp
        try:
            self._bindings[number] = Setup(self.topology, self.lsrs, lsp).run()
        except BaseException:
            self.remove_lsp(lsp)
            raise
        return lsp

    def _check_set_up(self, lsp: Lsp) -> None:
        if self.lsps.get(lsp.number) is not lsp:
            raise NetworkError(f"LSP {lsp.number} from {lsp.ingress} to {lsp.egress} is not set up")

    def add_fec(self, lsp: Lsp, fec: Fec) -> None:
        """Add a forwarding equivalence class to an LSP: its ingress sends the packets that match ``fec`` into it.

        Raise :class:`NetworkError` if the LSP is not set up, or if the class names addresses that are not IPv4.
        """
        self._check_set_up(lsp)
        self.lsrs[lsp.ingress].add_fec(fec, self._bindings[lsp.number])
        lsp.fecs.append(fec)

    def remove_fec(self, lsp: Lsp, fec: Fec) -> None:
        """Remove a forwarding equivalence class from an LSP; its packets are then matched with the other classes.

        Raise :class:`NetworkError` if the LSP does not have it.
        """
        if fec not in lsp.fecs:
            raise NetworkError(f"LSP {lsp.number} has no {fec}")
        self.lsrs[lsp.ingress].remove_fec(fec)
        lsp.fecs.remove(fec)

    def remove_lsp(self, lsp: Lsp) -> None:
        """Remove an LSP, its classes of packets first, so that no packet enters it meanwhile.

        Raise :class:`NetworkError` if it is not set up, or if another LSP uses it as a tunnel.
        """
        self._check_set_up(lsp)
        users = [other.number for other in self.lsps.values() if lsp in other.tunnels.values()]
        if users:
            raise NetworkError(f"LSP {lsp.number} is a tunnel of LSP {users[0]}")
        for fec in list(lsp.fecs):
            self.remove_fec(lsp, fec)
        for lsr in self.lsrs.values():
            lsr.remove(lsp.number)
        self._bindings.pop(lsp.number, None)
        del self.lsps[lsp.number]

    def resynchronise(self) -> None:
        """Write to the ingress of each LSP which of the LSP's links are down, as known at the nodes next to them.

        A notice of a repair is lost if another link on its path to the ingress is down. Then the LSP stays on its backup until this
        call.
        """
        for lsp in self.lsps.values():
            if lsp.recovery.mechanism.notifies:
                self.lsrs[lsp.ingress].set_failed_hops(lsp.number, failed_hops(self.topology, self.lsrs, lsp))

    # ---- Reading ----

    def statistics(self, lsp: Lsp) -> LspStatistics:
        """Return the counters of an LSP, from the time when it was set up."""

        def by_node(counter: str) -> dict[str, int]:
            counts = {name: lsr.packets(counter, lsp.number) for name, lsr in self.lsrs.items()}
            return {name: packets for name, packets in counts.items() if packets}

        offered = self.clients[lsp.ingress].counter(LSP_TRAFFIC, lsp.number)
        return LspStatistics(
            offered_packets=offered[0],
            offered_bytes=offered[1],
            traffic=by_node(LSP_TRAFFIC),
            backup=by_node(BACKUP_TRAFFIC),
            looped=self.lsrs[lsp.ingress].packets(LOOPED, lsp.number),
            discarded=by_node(DISCARDED),
            ttl_expired=sum(by_node(TTL_EXPIRED).values()),
            switchovers=by_node(SWITCHOVERS),
            notices_sent=sum(by_node(NOTICES_SENT).values()),
            notices_received=self.lsrs[lsp.ingress].packets(NOTICES_RECEIVED, lsp.number),
        )

    def on_backup(self, lsp: Lsp) -> list[str]:
        """Return the nodes that have switched an LSP to its backup path, each as of the last packet that it forwarded."""
        return [name for name in self.lsrs if self.clients[name].register(ON_BACKUP, lsp.number)]
