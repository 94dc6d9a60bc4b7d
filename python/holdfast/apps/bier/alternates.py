"""Loop-free alternates: the repair of a destination's bit when its next hop is unreachable. From distances alone.

S, E, D, N and P, and why none of these repairs makes a loop: ``protection``. When links go, a repair is chosen again only if a
distance or a route that it was chosen by is another one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from holdfast.apps.bier.protection import Protect, Repair
from holdfast.paths import UNREACHABLE, Hop, ShortestPaths


class _Choice(NamedTuple):
    """A repair, and whether nodes beyond S's neighbours were candidates."""

    repair: Repair | None
    is_wide: bool


_End: TypeAlias = tuple[int, int, Hop, int]
"""An end for a tunnel: its distance, the node, the first hop, and the nodes that the tunnel passes, as a bit set."""


class Alternates:
    """The repairs that have been asked for, by node S, failed next hop E and destination D.

    Without ``node`` protection a repair need only avoid the link to E, not E itself.
    """

    def __init__(self, paths: ShortestPaths, protect: Protect) -> None:
        self._paths = paths
        self._protect = protect
        self._known: dict[tuple[int, Hop], dict[int, _Choice]] = {}
        self._ends: dict[int, list[_End]] = {}
        # By destination, each node's first hop, and the nodes behind it on the way as bits.
        self._ways: dict[int, list[tuple[Hop | None, int]]] = {}

    def of(self, s: int, primary: Hop, d: int) -> Repair | None:
        """Return the repair by which node ``s`` reaches node ``d`` while its link to ``primary`` is down; None if there is none.

        With node protection, a repair around the next hop is preferred to one around the link alone; then the cheapest; then the
        first in the order of the nodes. A neighbour is preferred to a remote alternate (RFC 7490) that protects no better, and both
        to a tunnel to the next hop.
        """
        known = self._known.setdefault((s, primary), {})
        if d not in known:
            known[d] = self._choose(s, primary, d)
        return known[d].repair

    def after(
        self, paths: ShortestPaths, moved: Mapping[int, Collection[int]]
    ) -> tuple[Alternates, set[tuple[int, Hop]]]:
        """Return the alternates after some links have failed, and the pairs (node S, next hop) whose repairs may have changed.

        ``paths``: the shortest paths without these links. ``moved``: by destination, the nodes whose next hops may have changed
        (:meth:`ShortestPaths.without`).
        """
        left = Alternates(paths, self._protect)
        left._ways = {p: ways for p, ways in self._ways.items() if p not in moved}
        farther = {node: _bits(others) for node, others in paths.farther_than(self._paths).items()}
        rerouted = self._rerouted(moved)
        left._ends = {s: ends for s, ends in self._ends.items() if s not in rerouted and s not in farther}
        changed = set()
        for (s, primary), choices in self._known.items():
            hops, e = paths.hops[s], primary.neighbour
            if primary not in hops:
                continue
            near = _bits(hop.neighbour for hop in hops) | 1 << s
            # Distances from E to S's neighbours; and what only those beyond are chosen by.
            every = len(hops) != len(self._paths.hops[s]) or farther.get(e, 0) & near
            every_wide = every or e in moved or s in farther or s in rerouted
            stale = [
                d
                for d, choice in choices.items()
                if every or farther.get(d, 0) & near or (choice.is_wide and (every_wide or d in farther))
            ]
            if not stale:
                left._known[s, primary] = choices
                continue
            known = left._known[s, primary] = dict(choices)
            for d in stale:
                if not paths.is_on_the_way(s, primary, d):
                    del known[d]
                    continue
                known[d] = left._choose(s, primary, d)
                if known[d].repair != choices[d].repair:
                    changed.add((s, primary))
        return left, changed

    def _rerouted(self, moved: Mapping[int, Collection[int]]) -> set[int]:
        """Return the nodes with a cached path that passes a node whose next hop to the path's end is in ``moved``."""
        found: set[int] = set()
        for p, nodes in moved.items():
            if p in self._ways:
                bits = _bits(nodes)
                found.update(node for node, (_, passed) in enumerate(self._ways[p]) if (passed | 1 << node) & bits)
        return found

    # ---- Choosing ----

    def _choose(self, s: int, primary: Hop, d: int) -> _Choice:
        to_d, to_e = self._paths.distances(d), self._paths.distances(primary.neighbour)
        # No shortest path from a node to D has E in it. Then none has S in it either, whose way to D is over E.
        from_e, here = to_d[primary.neighbour], to_d[s]
        node = self._protect == "node"
        best: tuple[bool, int] | None = None
        chosen = None
        for hop in self._paths.hops[s]:
            there = to_d[hop.neighbour]
            around = there < to_e[hop.neighbour] + from_e
            if hop.link == primary.link or not (around or there < here):
                continue
            key = (node and not around, hop.cost + there)
            if best is None or key < best:
                best, chosen = key, Repair(hop, None, None)
        if best is not None and not best[0]:
            return _Choice(chosen, False)
        remote = self._remote(s, primary, to_d, to_e)
        if remote is not None and (best is None or not remote[0]):
            return _Choice(remote[1], True)
        return _Choice(chosen or self._to_neighbour(s, primary, d), True)

    def _remote(self, s: int, primary: Hop, to_d: list[int], to_e: list[int]) -> tuple[bool, Repair] | None:
        """Return the best loop-free tunnel to a PQ node, as (True if node protection was wanted and is missing, repair).

        None if there is no such tunnel. Tunnels take the routes to loopbacks as they are, so the PQ nodes are of RFC 7490's
        P-space, not of the extended one.
        """
        node, e = self._protect == "node", primary.neighbour
        from_e, here = to_d[e], to_d[s]
        best = (True, UNREACHABLE, 0)
        chosen = None
        for distance, p, first, passed in self._ends_from(s):
            if distance > best[1] and not best[0]:
                break  # All others are farther, too.
            there = to_d[p]
            around = there < to_e[p] + from_e and not passed >> e & 1
            if (around or there < here) and first.link != primary.link and p != e:
                key = (node and not around, distance + there, p)
                if key < best:
                    best, chosen = key, Repair(first, p, None)
        return None if chosen is None else (best[0], chosen)

    def _ends_from(self, s: int) -> list[_End]:
        """Return (distance, node, first hop, nodes passed) of each node that a tunnel from ``s`` can reach, nearest first."""
        known = self._ends.get(s)
        if known is None:
            from_s = self._paths.distances(s)
            ways = ((p, *self._way(s, p)) for p in range(len(from_s)))
            known = self._ends[s] = sorted(
                (from_s[p], p, first, passed) for p, first, passed in ways if first is not None
            )
        return known

    def _way(self, s: int, p: int) -> tuple[Hop | None, int]:
        ways = self._ways.get(p)
        if ways is None:
            paths, distance = self._paths, self._paths.distances(p)
            ways = self._ways[p] = [(None, 0)] * len(distance)
            for node in sorted(range(len(distance)), key=distance.__getitem__):
                first = paths.next_hop(node, p)
                if first is not None:
                    ways[node] = first, ways[first.neighbour][1] | 1 << first.neighbour
        return ways[s]

    def _to_neighbour(self, s: int, primary: Hop, d: int) -> Repair | None:
        """Return a tunnel to E, the neighbour behind ``primary``, or if ``d`` is E, to a router next to E; None if there is none.

        The router next to E forwards the bit without repair. No tunnel uses the failed link, and the tunnel to the router does not
        cross E.
        """
        e = primary.neighbour
        first = self._paths.next_hop(s, e)
        if first is not None and first.link != primary.link:
            return Repair(first, e, None)
        if d != e:
            return None
        for p in dict.fromkeys(hop.neighbour for hop in self._paths.hops[e]):
            first, passed = self._way(s, p)
            if first is None or first.link == primary.link or passed >> e & 1:
                continue
            if [last.neighbour for last in self._paths.next_hops(p, e)] == [e]:
                return Repair(first, p, None)
        return None


def _bits(nodes: Iterable[int]) -> int:
    bits = 0
    for node in nodes:
        bits |= 1 << node
    return bits
