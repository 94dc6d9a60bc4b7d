"""Backups of BIER next hops, computed before anything fails, from distances alone. Nothing here knows ports, addresses or packets.

S is the switch that repairs, E its next hop, D a BFER, T a next-next-hop (E's next hop for some D), N another neighbour of S, P a
node where a tunnel of a remote loop-free alternate ends (a PQ node of RFC 7490), and D(x, y) the distance.

- ``tunnel`` (tunnel-based BIER-FRR): BIER in IP to E (link protection), or to each T with those bits that E would send there (node
  protection). E's own bit, and those of every T that nothing but E leads to, go to E around the link, in case only the link died.
- ``lfa`` (LFA-based BIER-FRR, draft-ietf-bier-frr): plain BIER to an N for each D, else a tunnel to a P.

A tunnel whose route to the loopback at its end would use what failed takes a not-via address (RFC 6981): the address of an
interface, whose routes do not pass the node at the other end of the interface's link. This is the IP fast reroute of tunnels.

**No repair can make a loop, whatever fails.** There are three kinds, and each has an argument of its own:

1. *Nearer*: N (or P) is nearer to D than S is. All other hops lead nearer to D, too, and so do any number of such repairs.
2. *Around the node*: no shortest path from S over N (over P) to D has E in it. If E is what failed, the packet meets no other
   failure. If only the link S-E did, the same holds: E is the end of it.
3. *To E itself*, in a tunnel that nobody repairs: its routes have no alternates, and who ends a tunnel does not repair what was in
   it. The packet arrives at E, which is nearer to every D that S sends there, or it is lost (E is what failed). E's own bit may go
   in a tunnel to a router whose only next hop to E is E: with the same end.

So the tunnel that carries E's own bit ends at the last router before a failed E. It does not circle among E's neighbours, as hosts'
packets to a failed router do in IP fast reroute by alternates.

Each repair is for bits that no other repair of this switch is for, and every bit has one way: nothing is duplicated.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from holdfast.paths import UNREACHABLE, Hop, ShortestPaths

FastReroute: TypeAlias = Literal["none", "tunnel", "lfa"]
Protect: TypeAlias = Literal["link", "node"]


class NotVia(NamedTuple):
    """The address of ``end``'s interface on a link (RFC 6981). Routes to it do not pass the link's other end, ``avoided``."""

    end: int
    link: int
    avoided: int


class Repair(NamedTuple):
    """A repair by node S for the failure of its link to E.

    ``hop``: its first hop; of a tunnel, that of the underlay's route to ``end``. ``end``: the tunnel's last node; None: no tunnel,
    plain BIER. ``not_via``: the tunnel's address if it is not the end's loopback.
    """

    hop: Hop
    end: int | None
    not_via: NotVia | None


_Wish: TypeAlias = tuple[int, Hop, int, int, Protect]
"""The arguments of :meth:`Underlay.tunnel`."""


class Underlay:
    """IP routes between switches, as the tunnels need them: ``paths`` to loopbacks, and not-via addresses (RFC 6981)."""

    def __init__(self, paths: ShortestPaths, *, ip_frr: bool) -> None:
        self.paths = paths
        self.ip_frr = ip_frr
        # By address, distances with the number of links that were gone then, of all that are by now.
        self._avoiding: dict[NotVia, tuple[list[int], int]] = {}
        self._gone: list[tuple[int, Hop]] = []
        self._tunnels: dict[_Wish, Repair | None] = {}
        # By link, the tunnels whose choice depends on it, and some that did once.
        self._over: dict[int, set[_Wish]] = {}
        self._before: tuple[Underlay, Collection[int]] | None = None
        """The underlay that it was made from by losing links, until somebody asks for tunnels."""

    def route(self, node: int, end: int) -> list[Hop]:
        """Return the hops of the route from ``node`` to the loopback of ``end``; empty where no path leads."""
        hops = []
        while (hop := self.paths.next_hop(node, end)) is not None:
            hops.append(hop)
            node = hop.neighbour
        return hops

    def tunnel(self, s: int, failed: Hop, end: int, interface: int, protect: Protect) -> Repair | None:
        """Return a tunnel from ``s`` to ``end`` that avoids the link ``failed``; None if there is no way.

        With ``protect`` "node" it also avoids the node behind that link. ``interface``: the link from ``end`` to the node to be
        avoided, which has the not-via address. Without IP fast reroute the tunnel always ends at the loopback: it works as soon as
        the underlay's routes do.
        """
        wish = (s, failed, end, interface, protect)
        self._inherit()
        if wish not in self._tunnels:
            repair = self._tunnels[wish] = self._find(*wish)
            for hop in self._considered(s, end, repair):
                # They are shared with earlier underlays, in which a wish too many costs nothing.
                self._over.setdefault(hop.link, set()).add(wish)
        return self._tunnels[wish]

    def _find(self, s: int, failed: Hop, end: int, interface: int, protect: Protect) -> Repair | None:
        route = self.route(s, end)
        avoided = protect == "node" and any(hop.neighbour == failed.neighbour for hop in route)
        if route and (not self.ip_frr or (route[0].link != failed.link and not avoided)):
            return Repair(route[0], end, None)
        not_via = NotVia(end, interface, failed.neighbour if protect == "node" else s)
        hop = self.not_via_hop(s, not_via, failed.link) if self.ip_frr else None
        return None if hop is None else Repair(hop, end, not_via)

    def tunnel_route(self, start: int, end: int, not_via: NotVia | None) -> list[Hop]:
        """Return the hops of a tunnel to a loopback (``not_via`` is None) or a not-via address; empty where no path leads."""
        if not_via is None:
            return self.route(start, end)
        # The avoided node itself begins with another link than the address's.
        hop = self.not_via_hop(start, not_via, not_via.link)
        hops = []
        while hop is not None:
            hops.append(hop)
            hop = None if hop.neighbour == end else self.not_via_hop(hop.neighbour, not_via)
        return hops

    def not_via_hop(self, node: int, not_via: NotVia, without: int | None = None) -> Hop | None:
        """Return the first hop from ``node`` to a not-via address; None if there is no way.

        ``node`` may be the avoided node. ``without``: a failed link that is not used.
        """
        distance = self.distances_avoiding(not_via)
        best, chosen = UNREACHABLE, None
        for hop in self.paths.hops[node]:
            cost = hop.cost + distance[hop.neighbour]
            if cost < best and hop.link != without:
                best, chosen = cost, hop
        return chosen

    def without(self, links: Collection[int]) -> Loss:
        """Return what the failure of ``links`` changes, with the underlay that is left.

        Routes and tunnels that did not use them stay.
        """
        paths, moved = self.paths.without(links)
        left = Underlay(paths, ip_frr=self.ip_frr)
        left._gone = self._gone + self.paths.ends_of(links)
        left._over = self._over
        left._before = (self, links) if self.known[0] else None
        stale = {wish for link in links for wish in self._over.get(link, ())}
        return Loss(self, left, moved, {(s, failed) for s, failed, *_ in stale}, self.known)

    @property
    def known(self) -> tuple[int, int]:
        """How many tunnels, and how many nodes' distances, have been computed so far."""
        self._inherit()
        return len(self._tunnels), self.paths.known

    def _inherit(self) -> None:
        """Copy from the earlier underlay the tunnels and distances that are still valid.

        There are many, so this is delayed until one is needed: failures are repaired first.
        """
        if self._before is None:
            return
        (before, links), self._before = self._before, None
        before._inherit()
        self._avoiding, self._tunnels = dict(before._avoiding), dict(before._tunnels)
        for wish in {wish for link in links for wish in self._over.get(link, ())}:
            self._tunnels.pop(wish, None)

    def _considered(self, s: int, end: int, repair: Repair | None) -> list[Hop]:
        if repair is None or repair.not_via is None:
            return self.route(s, end)
        return self.route(s, end) + self.tunnel_route(s, end, repair.not_via)

    def distances_avoiding(self, not_via: NotVia) -> list[int]:
        """Return by node its distance to a not-via address over paths that do not cross the avoided node."""
        self._inherit()
        known = self._avoiding.get(not_via)
        if known is not None and known[1] == len(self._gone):
            return known[0]
        if known is None:
            distances = _distances_without(self.paths, not_via.end, not_via.avoided)
        else:
            distances = self.paths.lengthened(known[0], self._gone[known[1] :])[1]
        self._avoiding[not_via] = distances, len(self._gone)
        return distances


@dataclass(frozen=True)
class Loss:
    """The effect of failed links on an underlay: ``before`` it lost them and ``after``.

    ``moved``: by destination, the nodes whose next hops may have changed. ``rerouted``: the pairs (S, hop to E) whose tunnels may
    have changed.
    """

    before: Underlay
    after: Underlay
    moved: Mapping[int, Collection[int]]
    rerouted: Collection[tuple[int, Hop]]
    _known: tuple[int, int]

    @property
    def is_complete(self) -> bool:
        """True if the loss covers all tunnels and distances that were asked for before it."""
        return self.before.known == self._known


def _distances_without(paths: ShortestPaths, start: int, avoided: int) -> list[int]:
    distance = [UNREACHABLE] * len(paths.nodes)
    distance[start] = 0
    heap = [(0, start)]
    while heap:
        here, at = heapq.heappop(heap)
        if here > distance[at]:
            continue
        for hop in paths.hops[at]:
            there = here + hop.cost
            if there < distance[hop.neighbour] and hop.neighbour != avoided:
                distance[hop.neighbour] = there
                heapq.heappush(heap, (there, hop.neighbour))
    return distance


Repairs: TypeAlias = dict[Repair, list[int]]
"""The destinations of each repair."""

NextHopOf: TypeAlias = Callable[[int, int], Hop | None]
"""Returns the hop that a node takes to a destination, or None."""
