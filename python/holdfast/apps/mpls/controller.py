"""The controller of ``mpls.p4``: paths, labels, LSPs and what they do when a link fails.

It works before the failure only. A mechanism is a set of entries: at which nodes an LSP has a second NHLFE, where that leads,
and who is sent notices. When a link fails the data plane finds all it needs there; this controller does nothing about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, pairwise

import networkx as nx

from holdfast.apps.mpls.lsp import (
    MAX_HOPS,
    Connection,
    Fec,
    LastHop,
    Lsp,
    LspStatistics,
    Mechanism,
    Recovery,
    TtlModel,
    one_of,
)
from holdfast.apps.mpls.lsr import (
    BACKUP_TRAFFIC,
    DISCARDED,
    EXPLICIT_NULL,
    FAILED_HOPS,
    LOOPED,
    LSP_TRAFFIC,
    NHLFE_REMIND,
    NOTICES_RECEIVED,
    NOTICES_SENT,
    ON_BACKUP,
    SWITCHOVERS,
    TTL_EXPIRED,
    Hop,
    Lsr,
    Nhlfe,
)
from holdfast.apps.mpls.program import EVENT_PORT, LSPS
from holdfast.controller import Controller
from holdfast.errors import NetworkError

PIPE_TTL = 255
"""The TTL of labels in the pipe model."""

_PRIMARY, _BACKUP = 1, 2


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
        self._bindings: dict[int, dict[str, int | bytes]] = {}
        self._routes: set[tuple[str, str]] = set()

    def on_start(self) -> None:
        """Interfaces, routes to the hosts at each switch, and the connections."""
        for link in self.topology.links:
            if EVENT_PORT in (link.a_port, link.b_port):
                raise NetworkError(f"link {link.name}: port {EVENT_PORT} belongs to the switches' agents")
        graph = self.topology.graph
        for name in self.topology.switches:
            self.lsrs[name] = Lsr(self.clients[name])
            neighbours = [self._hop(name, neighbour, {}) for neighbour in graph.neighbors(name)]
            self.lsrs[name].start(neighbours, self._explicit_null == TtlModel.UNIFORM)
        for name in self.topology.hosts:
            place = self.topology.attachment(name)
            hop = Hop(place.port, self.topology.port_mac(place.switch, place.port), place.host.mac)
            self.lsrs[place.switch].add_route(str(place.host.address.network), hop)
        for connection in self._connections:
            self.connect(connection)

    # ---- Setting up ----

    def connect(self, connection: Connection) -> tuple[Lsp, Lsp]:
        """A pair of LSPs along the same nodes, one in each direction, for the packets between two sets of hosts.

        Where the path does not reach a host's switch, the switches in between route plain IPv4.
        """
        sides = [connection.hosts_a, connection.hosts_b]
        ends = [self.topology.attachment(side[0]).switch for side in sides]
        path = list(connection.path or self.shortest_path(ends[0], ends[1]))
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
        """Sends what goes to these destinations into an LSP, and routes it to the ingress and from the egress."""
        for name in destinations:
            place = self.topology.attachment(name)
            prefix = str(place.host.address.network)
            self.add_fec(lsp, Fec(destination=prefix))
            self._route(prefix, self.shortest_path(lsp.egress, place.switch))
            for source in sources:
                self._route(prefix, self.shortest_path(self.topology.attachment(source).switch, lsp.ingress))

    def _route(self, prefix: str, path: Sequence[str]) -> None:
        """Routes a prefix along a path, but where that is done already."""
        for node, following in pairwise(path):
            if (node, prefix) not in self._routes:
                self._routes.add((node, prefix))
                self.lsrs[node].add_route(prefix, self._hop(node, following, {}))

    def shortest_path(self, ingress: str, egress: str, without: Sequence[tuple[str, str]] = ()) -> list[str]:
        """The path of the least cost that avoids these links; of equal ones always the same."""
        graph = self.topology.graph.copy()
        graph.remove_edges_from(without)
        try:
            return list(nx.dijkstra_path(graph, ingress, egress, weight="cost"))
        except nx.NetworkXNoPath:
            raise NetworkError(f"there is no path from {ingress} to {egress}") from None

    def disjoint_path(self, path: Sequence[str]) -> list[str]:
        """The cheapest path between the same ends without the nodes of this one, or else without its links."""
        graph = self.topology.graph.copy()
        graph.remove_nodes_from(path[1:-1])
        graph.remove_edges_from(pairwise(path))
        if nx.has_path(graph, path[0], path[-1]):
            return list(nx.dijkstra_path(graph, path[0], path[-1], weight="cost"))
        try:
            return self.shortest_path(path[0], path[-1], list(pairwise(path)))
        except NetworkError:
            raise NetworkError(f"there is no path disjoint from {'-'.join(path)}") from None

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
        """Sets an LSP up along the nodes of ``path``, which are neighbours, or the ends of LSPs in ``tunnels``.

        ``backup`` is the whole other path, by default the cheapest disjoint one; ``detours`` of *local* are given by link, by
        default the shortest ways around. Nothing enters an LSP before it has a class of packets (:meth:`add_fec`).
        """
        number = next((n for n in range(1, LSPS) if n not in self.lsps), None)
        if number is None:
            raise NetworkError(f"all {LSPS - 1} LSPs are in use")
        ttl, last_hop = one_of(TtlModel, "ttl", ttl), one_of(LastHop, "last_hop", last_hop)
        lsp = Lsp(number, list(path), recovery or Recovery(), ttl, last_hop, dict(tunnels or {}))
        self._check(lsp)
        mechanism = lsp.recovery.mechanism
        if backup is not None and not mechanism.has_backup:
            raise NetworkError(f"a backup path is of no use to an LSP that recovers by {mechanism.value!r}")
        if detours and mechanism != Mechanism.LOCAL:
            raise NetworkError(f"detours are of no use to an LSP that recovers by {mechanism.value!r}")
        if mechanism == Mechanism.LOCAL:
            lsp.detours = self._detours(lsp, detours)
        elif mechanism.has_backup:
            lsp.backup = list(backup) if backup is not None else self.disjoint_path(lsp.path)
            self._check_backup(lsp, lsp.backup, (lsp.ingress, lsp.egress))
        self.lsps[number] = lsp
        try:
            _Setup(self, lsp).run()
        except BaseException:
            self.remove_lsp(lsp)
            raise
        return lsp

    def _check(self, lsp: Lsp) -> None:
        hops = list(pairwise(lsp.path))
        if not 1 <= len(hops) <= MAX_HOPS or len(set(lsp.path)) != len(lsp.path):
            raise NetworkError(f"a path has 1 to {MAX_HOPS} links and no node twice, unlike {'-'.join(lsp.path)}")
        for a, b in hops:
            if (a, b) in lsp.tunnels:
                tunnel = lsp.tunnels[a, b]
                if self.lsps.get(tunnel.number) is not tunnel or (tunnel.ingress, tunnel.egress) != (a, b):
                    raise NetworkError(f"the tunnel from {a} to {b} is not an LSP between them")
            elif not self.topology.graph.has_edge(a, b):
                raise NetworkError(f"{a} and {b} are not neighbours")
        recovery = lsp.recovery
        if lsp.tunnels and recovery.mechanism != Mechanism.NONE:
            raise NetworkError("an LSP through tunnels does not recover by itself: protect the tunnels")
        far = lsp.recovery.mechanism.notifies or (not recovery.merge_capable and recovery.mechanism != Mechanism.LOCAL)
        if far and not any(generator.port == EVENT_PORT for generator in self.topology.packet_generators):
            raise NetworkError("nobody would tell the ends of a failure: call add_port_events(topology) first")
        if not recovery.merge_capable and lsp.last_hop != LastHop.LABEL:
            raise NetworkError(
                "a merge point that is not merge-capable tells its inputs by label: use last_hop='label'"
            )
        if lsp.last_hop == LastHop.EXPLICIT_NULL and lsp.ttl != self._explicit_null:
            raise NetworkError(f"label 0 is of the {self._explicit_null} model in this network")

    def _check_backup(self, lsp: Lsp, way: Sequence[str], ends: tuple[str, str]) -> None:
        name = "-".join(way)
        if len(way) < 2 or (way[0], way[-1]) != ends or len(set(way)) != len(way):
            raise NetworkError(f"{name} does not lead from {ends[0]} to {ends[1]}")
        if ends == (lsp.ingress, lsp.egress):
            shared = {frozenset(link) for link in pairwise(way)} & {frozenset(link) for link in pairwise(lsp.path)}
            if shared:
                raise NetworkError(f"{name} shares the link {'-'.join(sorted(shared.pop()))} with what it protects")
        for a, b in pairwise(way):
            if not self.topology.graph.has_edge(a, b):
                raise NetworkError(f"{a} and {b} are not neighbours")

    def _detours(self, lsp: Lsp, given: Mapping[tuple[str, str], Sequence[str]] | None) -> dict[int, list[str]]:
        hops = list(pairwise(lsp.path))
        detours: dict[int, list[str]] = {}
        if given is not None and (unknown := given.keys() - set(hops)):
            raise NetworkError(f"the path has no link {'-'.join(unknown.pop())}")
        for i, (a, b) in enumerate(hops):
            if given is None:
                way = self.shortest_path(a, b, [(a, b)])
            elif (a, b) in given:
                way = list(given[a, b])
            else:
                continue
            self._check_backup(lsp, way, (a, b))
            if frozenset((a, b)) in {frozenset(link) for link in pairwise(way)}:
                raise NetworkError(f"{'-'.join(way)} uses the link that it leads around")
            detours[i] = way
        return detours

    def _check_set_up(self, lsp: Lsp) -> None:
        if self.lsps.get(lsp.number) is not lsp:
            raise NetworkError(f"LSP {lsp.number} from {lsp.ingress} to {lsp.egress} is not set up")

    def add_fec(self, lsp: Lsp, fec: Fec) -> None:
        """Sends a class of packets into an LSP."""
        self._check_set_up(lsp)
        self.lsrs[lsp.ingress].add_fec(fec, self._bindings[lsp.number])
        lsp.fecs.append(fec)

    def remove_fec(self, lsp: Lsp, fec: Fec) -> None:
        """Takes that back; the packets are then looked up among the other classes."""
        if fec not in lsp.fecs:
            raise NetworkError(f"LSP {lsp.number} has no {fec}")
        self.lsrs[lsp.ingress].remove_fec(fec)
        lsp.fecs.remove(fec)

    def remove_lsp(self, lsp: Lsp) -> None:
        """Takes an LSP down, its classes first, so that no packet enters what is going away."""
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
        """Tells the ingresses of LSPs which links are down, as the nodes beside these know it.

        A notice of a repair is lost if another link between was down. Then the LSP stays on its backup until it is told again.
        """
        for lsp in self.lsps.values():
            if lsp.recovery.mechanism.notifies:
                self.clients[lsp.ingress].write_register(FAILED_HOPS, lsp.number, self._failed_hops(lsp))

    def _failed_hops(self, lsp: Lsp) -> int:
        failed = 0
        for i, (node, following) in enumerate(pairwise(lsp.path)):
            if i > 0 and not self.lsrs[node].port_is_up(self.topology.port_towards(node, following)):
                failed |= 1 << i
        return failed

    # ---- Reading ----

    def statistics(self, lsp: Lsp) -> LspStatistics:
        """An LSP's counters, from when it was set up."""

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
        """The nodes that have switched an LSP to its backup (as of the last packet that each of them saw)."""
        return [name for name in self.lsrs if self.clients[name].register(ON_BACKUP, lsp.number)]

    # ---- Hops ----

    def _hop(self, node: str, following: str, tunnels: Mapping[tuple[str, str], Lsp]) -> Hop:
        if (tunnel := tunnels.get((node, following))) is not None:
            inner = self._hop(node, tunnel.path[1], tunnel.tunnels)
            label = _first_label(tunnel)
            ttl = PIPE_TTL if tunnel.ttl == TtlModel.PIPE else 0
            labels = () if label is None else ((label, ttl),)
            return Hop(inner.port, inner.src_mac, inner.dst_mac, (*labels, *inner.tunnel))
        port = self.topology.port_towards(node, following)
        there = self.topology.port_towards(following, node)
        return Hop(port, self.topology.port_mac(node, port), self.topology.port_mac(following, there))


def _first_label(lsp: Lsp) -> int | None:
    return lsp.labels.get(lsp.path[1])


class _Setup:
    """One LSP being set up, from its egress to its ingress, so that nothing leads to what is not there yet."""

    def __init__(self, controller: MplsController, lsp: Lsp) -> None:
        self.controller = controller
        self.lsp = lsp
        self.number = lsp.number
        self.uniform = lsp.ttl == TtlModel.UNIFORM
        self.push_ttl = 0 if self.uniform else PIPE_TTL
        self.last = len(lsp.path) - 1
        self.primaries: dict[int, Nhlfe] = {}
        self.backups: dict[int, Nhlfe] = {}

    def run(self) -> None:
        lsp, recovery = self.lsp, self.lsp.recovery
        self._egress_label()
        for i in range(1, self.last):
            lsp.labels[lsp.path[i]] = self.lsr(i).allocate_label(self.number)
        reverse: dict[int, int] = {}
        if lsp.backup is not None:
            first = self._way(lsp.backup)
            self.backups[0] = self._nhlfe(0, lsp.backup[1], first, labelled=False)
            if recovery.mechanism.loops or recovery.mechanism.notifies:
                reverse = self._reverse(lsp.backup, first)
        # From the last link to the first: a detour merges into what follows its link, which must be there.
        for i in reversed(range(self.last)):
            following = lsp.path[i + 1]
            self.primaries[i] = self._nhlfe(i, following, lsp.labels.get(following), labelled=i > 0)
            if i in lsp.detours:
                way = lsp.detours[i]
                self.backups[i] = self._nhlfe(i, way[1], self._way(way), labelled=i > 0)
            if i > 0:
                self._transit(i)
        if recovery.mechanism.notifies:
            self._notices(reverse)
        if not recovery.merge_capable and lsp.backup is not None:
            self._notices_downstream()
        self._registers()
        self.controller._bindings[self.number] = self._switch_params(0)

    def lsr(self, i: int) -> Lsr:
        """The router at a position of the path."""
        return self.controller.lsrs[self.lsp.path[i]]

    def _nhlfe(self, i: int, following: str, label: int | None, *, labelled: bool) -> Nhlfe:
        return self._nhlfe_at(self.lsp.path[i], following, label, labelled=labelled)

    def _nhlfe_at(self, node: str, following: str, label: int | None, *, labelled: bool) -> Nhlfe:
        hop = self.controller._hop(node, following, self.lsp.tunnels)
        return self.controller.lsrs[node].add_nhlfe(
            self.number, hop, label, labelled=labelled, uniform=self.uniform, push_ttl=self.push_ttl
        )

    def _egress_label(self) -> None:
        lsp = self.lsp
        if lsp.last_hop == LastHop.LABEL:
            lsp.labels[lsp.egress] = self.lsr(self.last).allocate_label(self.number)
            self._pop(lsp.labels[lsp.egress], _PRIMARY)
        elif lsp.last_hop == LastHop.EXPLICIT_NULL:
            lsp.labels[lsp.egress] = EXPLICIT_NULL

    def _pop(self, label: int, side: int) -> None:
        """The end of the LSP, by the primary or another way."""
        params: dict[str, int | bytes] = {"lsp": self.number, "uniform": int(self.uniform)}
        action = "pop"
        if self._single_input(self.last):
            action = "merge_pop"
            params |= {"input": side, "primary_port": self._port(self.last, self.last - 1)}
        self.lsr(self.last).add_ilm(self.number, label, action, params)

    def _single_input(self, i: int) -> bool:
        """Whether a node of the path is a merge point that takes one input at a time."""
        lsp = self.lsp
        merges = (i - 1 in lsp.detours) if lsp.backup is None else i == self.last
        return merges and not lsp.recovery.merge_capable

    def _port(self, i: int, j: int) -> int:
        return self.controller._hop(self.lsp.path[i], self.lsp.path[j], {}).port

    def _switch_params(self, i: int) -> dict[str, int | bytes]:
        primary, backup = self.primaries[i], self.backups.get(i)
        reminds = i > 0 and self.lsp.recovery.mechanism == Mechanism.PATH
        no_backup = NHLFE_REMIND if reminds else 0
        return {
            "lsp": self.number,
            "nhlfe": primary.number,
            "port": primary.port,
            "backup": no_backup if backup is None else backup.number,
        }

    def _transit(self, i: int, label: int | None = None) -> None:
        """A node on the way; ``label``: one with which packets come back from a detour."""
        params = self._switch_params(i)
        action = "label_switch"
        if self._single_input(i):
            action = "merge_switch"
            side = _PRIMARY if label is None else _BACKUP
            params |= {"input": side, "primary_port": self._port(i, i - 1)}
        self.lsr(i).add_ilm(self.number, self.lsp.labels[self.lsp.path[i]] if label is None else label, action, params)

    def _way(self, way: Sequence[str]) -> int | None:
        """Sets another way up to where it meets the path again, and gives its first label."""
        meets = self.lsp.path.index(way[-1])
        if meets < self.last:
            label: int | None = self.lsr(meets).allocate_label(self.number)
            assert label is not None
            self._transit(meets, label)
        elif self.lsp.last_hop == LastHop.LABEL:
            label = self.lsr(meets).allocate_label(self.number)
            self._pop(label, _BACKUP)
        else:
            label = self.lsp.labels.get(self.lsp.egress)
        for node, following in reversed(list(pairwise(way[1:]))):
            nhlfe = self._nhlfe_at(node, following, label, labelled=True)
            lsr = self.controller.lsrs[node]
            label = lsr.allocate_label(self.number)
            params = {"lsp": self.number, "nhlfe": nhlfe.number, "port": nhlfe.port, "backup": 0}
            lsr.add_ilm(self.number, label, "label_switch", params)
        return label

    def _reverse(self, backup: Sequence[str], first: int | None) -> dict[int, int]:
        """The LSP back to the ingress, which notices and looped packets take; its labels by position."""
        mechanism = self.lsp.recovery.mechanism
        labels: dict[int, int] = {}
        if self.last < 2:
            return labels
        onward = self._nhlfe(0, backup[1], first, labelled=True)
        labels[0] = self.lsr(0).allocate_label(self.number)
        self.lsr(0).add_ilm(
            self.number,
            labels[0],
            "reverse_end",
            {
                "lsp": self.number,
                "nhlfe": onward.number,
                "notify": int(mechanism == Mechanism.LOOPBACKVAR),
            },
        )
        for i in range(1, self.last):
            nhlfe = self._nhlfe(i, self.lsp.path[i - 1], labels[i - 1], labelled=True)
            if mechanism.loops:
                self.backups[i] = nhlfe
            if i < self.last - 1:
                labels[i] = self.lsr(i).allocate_label(self.number)
                params = {"lsp": self.number, "nhlfe": nhlfe.number, "port": nhlfe.port, "backup": 0}
                self.lsr(i).add_ilm(self.number, labels[i], "label_switch", params)
        return labels

    def _notices(self, reverse: Mapping[int, int]) -> None:
        """Each node that has the ingress behind it tells it when the next link changes."""
        for i in range(1, self.last):
            hop = self.controller._hop(self.lsp.path[i], self.lsp.path[i - 1], {})
            self.lsr(i).add_notice(self.number, self.primaries[i].port, hop, reverse[i - 1], i)

    def _notices_downstream(self) -> None:
        """The node behind a failure tells a merge point further on that nothing more will come."""
        for i in range(1, self.last):
            following = self.lsp.path[i + 1]
            hop = self.controller._hop(self.lsp.path[i], following, {})
            self.lsr(i).add_notice(self.number, self._port(i, i - 1), hop, self.lsp.labels[following], i - 1)

    def _registers(self) -> None:
        recovery = self.lsp.recovery
        # The number may have been another LSP's.
        for node in {*self.lsp.path, *(self.lsp.backup or ()), *chain(*self.lsp.detours.values())}:
            self.controller.lsrs[node].clear_counters(self.number)
        for i in range(self.last + 1):
            # Where the ingress decides, others follow the link: when packets come again, it has decided that they should.
            follows = i > 0 and recovery.mechanism.notifies
            self.lsr(i).reset(self.number, 0 if follows else recovery.wait_to_restore_us)
        if recovery.mechanism.notifies:
            self.lsr(0).client.write_register(FAILED_HOPS, self.number, self.controller._failed_hops(self.lsp))
