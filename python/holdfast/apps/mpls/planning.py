"""The paths of LSPs: primaries, backups and detours, chosen or checked. A pure function of the map; nothing is installed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from holdfast.apps.mpls.lsp import MAX_HOPS, LastHop, Lsp, Mechanism, TtlModel
from holdfast.apps.mpls.program import EVENT_PORT
from holdfast.errors import NetworkError
from holdfast.paths import cheapest_path, disjoint_path
from holdfast.topology import Topology


class PathPlanner:
    """``explicit_null``: the TTL model of label 0, which belongs to no LSP."""

    def __init__(self, topology: Topology, explicit_null: TtlModel) -> None:
        self._topology = topology
        self._explicit_null = explicit_null

    def complete(
        self,
        lsp: Lsp,
        backup: Sequence[str] | None,
        detours: Mapping[tuple[str, str], Sequence[str]] | None,
    ) -> None:
        """Set the backup or detours that the mechanism of ``lsp`` needs: the given ones, or the cheapest.

        Raise :class:`NetworkError` if there are none, or if the mechanism has no use for the given ones.
        """
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

    def shortest_path(self, ingress: str, egress: str, without: Sequence[tuple[str, str]] = ()) -> list[str]:
        """Return the cheapest path from ``ingress`` to ``egress`` without the links ``without``; of equal ones always the same.

        Raise :class:`NetworkError` if there is none.
        """
        path = cheapest_path(self._topology, ingress, egress, without_links=without)
        if path is None:
            raise NetworkError(f"there is no path from {ingress} to {egress}")
        return path

    def disjoint_path(self, path: Sequence[str]) -> list[str]:
        """Return the cheapest path between the ends of ``path`` that shares neither an inner node nor a link with it.

        If there is none, return the cheapest path that shares no link. Raise :class:`NetworkError` if there is none either. All
        nodes of ``path`` must be in the topology.
        """
        other = disjoint_path(self._topology, path)
        if other is None:
            raise NetworkError(f"there is no path disjoint from {'-'.join(path)}")
        return other

    def _check(self, lsp: Lsp) -> None:
        hops = list(pairwise(lsp.path))
        if not 1 <= len(hops) <= MAX_HOPS or len(set(lsp.path)) != len(lsp.path):
            raise NetworkError(f"a path has 1 to {MAX_HOPS} links and no node twice, unlike {'-'.join(lsp.path)}")
        for a, b in hops:
            if (a, b) in lsp.tunnels:
                tunnel = lsp.tunnels[a, b]
                if (tunnel.ingress, tunnel.egress) != (a, b):
                    raise NetworkError(f"the tunnel from {a} to {b} is not an LSP between them")
            elif not self._topology.graph.has_edge(a, b):
                raise NetworkError(f"{a} and {b} are not neighbours")
        recovery = lsp.recovery
        if lsp.tunnels and recovery.mechanism != Mechanism.NONE:
            raise NetworkError("an LSP through tunnels does not recover by itself: protect the tunnels")
        far = lsp.recovery.mechanism.notifies or (not recovery.merge_capable and recovery.mechanism != Mechanism.LOCAL)
        if far and not any(generator.port == EVENT_PORT for generator in self._topology.packet_generators):
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
            if not self._topology.graph.has_edge(a, b):
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
