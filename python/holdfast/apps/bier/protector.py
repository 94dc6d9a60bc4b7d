"""Which repairs a switch has for what it sends over a next hop: tunnels to the next switches, or loop-free alternates.

Why no repair makes a loop is in ``protection``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from holdfast.apps.bier.alternates import Alternates
from holdfast.apps.bier.protection import FastReroute, Loss, NextHopOf, Protect, Repair, Repairs, Underlay
from holdfast.paths import Hop


class Protector:
    """Chooses repairs. ``underlay`` has the paths that BIER's are made of, before anything fails."""

    def __init__(self, underlay: Underlay, frr: FastReroute, protect: Protect) -> None:
        self._underlay = underlay
        self._frr = frr
        self._protect: Protect = protect
        self._alternates = Alternates(underlay.paths, protect)

    def after(self, loss: Loss) -> tuple[Protector, Collection[tuple[int, Hop]]]:
        """Return the protector for the underlay after ``loss``, and the pairs (S, hop to E) whose repairs may have changed."""
        protector = Protector(loss.after, self._frr, self._protect)
        if self._frr != "lfa":
            return protector, loss.rerouted
        protector._alternates, changed = self._alternates.after(loss.after.paths, loss.moved)
        return protector, changed

    def repairs(self, s: int, primary: Hop, destinations: Sequence[int], next_hop: NextHopOf) -> Repairs:
        """Return the repairs for ``destinations``, to which S sends over ``primary``; a destination in none of them has no backup.

        ``next_hop``: returns E's hop towards a destination. S, by number, is the switch in front of the failure, and E the
        neighbour behind ``primary``.
        """
        if self._frr == "none":
            return {}
        if self._frr == "lfa":
            return _grouped((d, self._alternates.of(s, primary, d)) for d in destinations)
        return _grouped(self._tunnels(s, primary, destinations, next_hop))

    # ---- Tunnels ----

    def _tunnels(
        self, s: int, primary: Hop, destinations: Sequence[int], next_hop: NextHopOf
    ) -> Iterable[tuple[int, Repair | None]]:
        e, around_link = primary.neighbour, self._to_neighbour(s, primary)
        ways: dict[int, Repair | None] = {}
        for d in destinations:
            following = next_hop(e, d) if self._protect == "node" else None
            if following is None:
                yield d, around_link
                continue
            t = following.neighbour
            if t not in ways:
                ways[t] = self._underlay.tunnel(s, primary, t, following.link, "node")
            yield d, ways[t] or around_link

    def _to_neighbour(self, s: int, primary: Hop) -> Repair | None:
        return self._underlay.tunnel(s, primary, primary.neighbour, primary.link, "link")


def _grouped(chosen: Iterable[tuple[int, Repair | None]]) -> Repairs:
    repairs: Repairs = {}
    for d, repair in chosen:
        if repair is not None:
            repairs.setdefault(repair, []).append(d)
    return repairs
