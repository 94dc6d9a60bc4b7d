"""Loop-free alternates (RFC 5286), and remote ones where there are none (RFC 7490), of every switch for every destination.

The RFCs' letters: S is the switch that repairs, E its primary next hop, N another neighbour, D the destination, P a PQ node, and
D(x, y) the distance. Links are point-to-point, and a destination is at one switch. Shared risk groups are not modelled. Distances
are those before the failure, and nothing here knows ports or packets.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from holdfast.paths import UNREACHABLE, Hop, ShortestPaths


class AlternateKind(StrEnum):
    """The way that a packet takes around the primary next hop."""

    LFA = "lfa"
    REMOTE_LFA = "remote-lfa"


@dataclass(frozen=True, slots=True)
class Alternate:
    """S's alternate: it sends to N by a link, and if there is a PQ node, in a tunnel that ends there.

    ``node_protecting``: it works if E fails, too. ``downstream``: N (or P) is nearer to D than S is, so that alternates of several
    routers cannot make a loop of each other, whatever fails. ``cost``: of the way from S over N (and P) to D.
    """

    kind: AlternateKind
    hop: Hop
    pq_node: int | None
    node_protecting: bool
    downstream: bool
    cost: int


@dataclass(frozen=True, slots=True)
class Protection:
    """The protection of one switch's route to one destination switch: a row of the coverage.

    ``link`` is the index of the primary's. ``alternate`` and ``protects`` are ``none`` where there is nothing. ``last_hop``: the
    primary next hop is the destination, so that there is nothing to be had against its failure.
    """

    switch: str
    destination: str
    primary: str
    link: int
    alternate: str
    protects: str
    last_hop: bool
    neighbour: str | None
    pq_node: str | None
    downstream: bool
    cost: int
    alternate_cost: int | None


@dataclass(frozen=True, slots=True)
class LinkCoverage:
    """The destinations that a switch reaches by a link, counted by what protects them from its failure.

    ``*_node``: from the failure of the switch at its other end as well; ``*_link``: not from that.
    """

    link: int
    switch: str
    primary: str
    destinations: int
    lfa_node: int
    lfa_link: int
    remote_lfa_node: int
    remote_lfa_link: int
    unprotected: int


class Alternates:
    """The best alternate of every switch for every destination.

    Of the loop-free neighbours (inequality 1) the node-protecting ones come first (inequality 3), then downstream ones
    (inequality 2), then the cheapest way, then the order of the nodes. Of PQ nodes: node-protecting ones for this destination
    (RFC 8102), then the cheapest way, then the order of the nodes. A PQ node is asked for only where no neighbour will do.
    """

    def __init__(
        self, paths: ShortestPaths, destinations: Collection[str] | None = None, *, remote_lfa: bool = True
    ) -> None:
        self.paths = paths
        self.remote_lfa = remote_lfa
        self._distance = [paths.distances(i) for i in range(len(paths.nodes))]
        names = paths.nodes if destinations is None else destinations
        self._destinations = sorted({paths.number[name] for name in names})
        self._chosen: dict[tuple[int, int], Alternate] = {}
        self._primary: dict[tuple[int, int], Hop] = {}
        for s in range(len(paths.nodes)):
            self._choose(s)

    def primary(self, switch: str, destination: str) -> Hop | None:
        """Return the next hop before a failure; None at the destination itself, and where no path leads."""
        return self._primary.get((self.paths.number[switch], self.paths.number[destination]))

    def alternate(self, switch: str, destination: str) -> Alternate | None:
        """Return the alternate of ``switch`` for ``destination``, or None if it has none."""
        return self._chosen.get((self.paths.number[switch], self.paths.number[destination]))

    def tunnels(self) -> set[tuple[int, int]]:
        """Return (first switch behind the repairing one, PQ node at the end), as node numbers, of all tunnels of alternates."""
        chosen = self._chosen.values()
        return {(one.hop.neighbour, one.pq_node) for one in chosen if one.pq_node is not None}

    def _choose(self, s: int) -> None:
        """Choose the alternates of switch ``s`` for all destinations: neighbours first, then PQ nodes for the rest."""
        left: dict[Hop, list[int]] = {}
        for d in self._destinations:
            primary = self.paths.next_hop(s, d)
            if primary is None:
                continue
            self._primary[s, d] = primary
            alternate = self._best_neighbour(s, primary, d)
            if alternate is not None:
                self._chosen[s, d] = alternate
            elif self.remote_lfa:
                left.setdefault(primary, []).append(d)
        for primary, destinations in left.items():
            ways = self._ways(s, primary)
            for d in destinations:
                alternate = self._best_way(s, primary, d, ways)
                if alternate is not None:
                    self._chosen[s, d] = alternate

    # ---- RFC 5286 ----

    def _best_neighbour(self, s: int, primary: Hop, d: int) -> Alternate | None:
        to_d, from_s = self._distance[d], self._distance[s]
        s_to_d = to_d[s]
        from_e, e_to_d = self._distance[primary.neighbour], to_d[primary.neighbour]
        best: tuple[bool, bool, int] | None = None
        chosen = None
        for hop in self.paths.hops[s]:
            n = hop.neighbour
            n_to_d = to_d[n]
            if hop.link == primary.link or n_to_d >= from_s[n] + s_to_d:
                continue
            key = (n_to_d >= from_e[n] + e_to_d, n_to_d >= s_to_d, hop.cost + n_to_d)
            if best is None or key < best:
                best, chosen = key, hop
        if best is None or chosen is None:
            return None
        return Alternate(AlternateKind.LFA, chosen, None, not best[0], not best[1], best[2])

    # ---- RFC 7490 ----

    def p_space(self, node: int, s: int, protected: Hop) -> set[int]:
        """Return the nodes that ``node`` reaches by shortest paths of which none crosses the protected link of ``s``.

        Neither direction of the link may be crossed.
        """
        return {p for p in range(len(self.paths.nodes)) if self._avoids_link(node, p, s, protected)}

    def extended_p_space(self, s: int, protected: Hop) -> set[int]:
        """Return the union of the P-spaces of the neighbours of ``s`` (RFC 7490), except the one behind the protected link."""
        return {p for p, hops in self._first_hops(s, protected).items() if hops}

    def q_space(self, s: int, protected: Hop) -> set[int]:
        """Return the nodes from which no shortest path to the far end of the protected link crosses that link."""
        return {q for q in range(len(self.paths.nodes)) if self._avoids_link(q, protected.neighbour, s, protected)}

    def pq_nodes(self, s: int, protected: Hop) -> set[int]:
        """Return the nodes where a tunnel from ``s`` around the protected link may end."""
        return self.extended_p_space(s, protected) & self.q_space(s, protected) - {s}

    def _avoids_link(self, node: int, target: int, s: int, protected: Hop) -> bool:
        from_node, from_target, e, cost = (
            self._distance[node],
            self._distance[target],
            protected.neighbour,
            protected.cost,
        )
        whole = from_node[target]
        if whole == UNREACHABLE:
            return False
        return whole < from_node[s] + cost + from_target[e] and whole < from_node[e] + cost + from_target[s]

    def _first_hops(self, s: int, protected: Hop) -> dict[int, list[Hop]]:
        """Return, by node, the hops from ``s`` to neighbours whose P-space contains the node."""
        others = [hop for hop in self.paths.hops[s] if hop.link != protected.link]
        return {
            p: [hop for hop in others if self._avoids_link(hop.neighbour, p, s, protected)]
            for p in range(len(self.paths.nodes))
        }

    def _ways(self, s: int, protected: Hop) -> list[tuple[int, Hop, int]]:
        """Return (PQ node, cheapest hop towards it, cost of the path to it) for each PQ node.

        A PQ node is a node at which a tunnel around the protected link may end (RFC 7490).
        """
        q_space = self.q_space(s, protected)
        ways = []
        for p, hops in self._first_hops(s, protected).items():
            if p != s and p in q_space and hops:
                from_p = self._distance[p]
                cost, best = min((hop.cost + from_p[hop.neighbour], i) for i, hop in enumerate(hops))
                ways.append((p, hops[best], cost))
        return ways

    def _best_way(self, s: int, primary: Hop, d: int, ways: list[tuple[int, Hop, int]]) -> Alternate | None:
        """Return the best remote LFA for destination ``d``, which has no LFA; None if there is none.

        As there is no LFA, no check is needed that the tunnel avoids E, the next hop. If the path of a neighbour to P crossed E but
        not the link S-E, the neighbour would be in the Q-space, and an LFA.
        """
        to_d, from_e = self._distance[d], self._distance[primary.neighbour]
        e_to_d = to_d[primary.neighbour]
        best: tuple[bool, int, int] | None = None
        chosen = None
        for p, hop, cost in ways:
            key = (to_d[p] >= from_e[p] + e_to_d, cost + to_d[p], p)
            if best is None or key < best:
                best, chosen = key, hop
        if best is None or chosen is None:
            return None
        downstream = to_d[best[2]] < to_d[s]
        return Alternate(AlternateKind.REMOTE_LFA, chosen, best[2], not best[0], downstream, best[1])

    # ---- Coverage ----

    def coverage(self) -> list[Protection]:
        """Return a row per switch and destination behind another switch: its alternate, and the failures from which it protects."""
        names, rows = self.paths.nodes, []
        for (s, d), primary in sorted(self._primary.items(), key=lambda item: item[0]):
            chosen = self._chosen.get((s, d))
            rows.append(
                Protection(
                    switch=names[s],
                    destination=names[d],
                    primary=names[primary.neighbour],
                    link=primary.link,
                    alternate="none" if chosen is None else chosen.kind.value,
                    protects="none" if chosen is None else "node" if chosen.node_protecting else "link",
                    last_hop=primary.neighbour == d,
                    neighbour=None if chosen is None else names[chosen.hop.neighbour],
                    pq_node=None if chosen is None or chosen.pq_node is None else names[chosen.pq_node],
                    downstream=chosen is not None and chosen.downstream,
                    cost=self._distance[s][d],
                    alternate_cost=None if chosen is None else chosen.cost,
                )
            )
        return rows


def link_coverage(rows: Collection[Protection]) -> list[LinkCoverage]:
    """Return the rows of a coverage counted by link and direction, in the order of the links."""
    counts: dict[tuple[int, str, str], dict[str, int]] = {}
    for row in rows:
        count = counts.setdefault((row.link, row.switch, row.primary), {})
        what = "unprotected" if row.alternate == "none" else f"{row.alternate.replace('-', '_')}_{row.protects}"
        count[what] = count.get(what, 0) + 1
    columns = ("lfa_node", "lfa_link", "remote_lfa_node", "remote_lfa_link", "unprotected")
    return [
        LinkCoverage(link, switch, primary, sum(count.values()), *(count.get(column, 0) for column in columns))
        for (link, switch, primary), count in sorted(counts.items())
    ]
