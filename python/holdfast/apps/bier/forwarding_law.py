"""RFC 8279's forwarding law (6.5 with F-BM, 6.7) on the plans of switches, packet by packet: a model to compare with.

It takes :class:`SwitchPlan` values and routes of tunnels as a switch gets them: ports, masks and addresses. It does not know how
they were chosen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from holdfast.apps.bier.planning import Bift, SwitchPlan
from holdfast.control.next_hop import NextHop
from holdfast.topology import Topology

TTL = 64


@dataclass
class Outcome:
    """``delivered``: copies by BFER. ``copies``: packets on links. ``expired``: packets whose TTL ran out, which is a loop."""

    delivered: Counter[str] = field(default_factory=Counter)
    copies: int = 0
    expired: int = 0


class Network:
    """Switches with these plans, some of whose links (by index) or switches are down.

    ``ends``: the addresses of a switch, besides its loopback, where tunnels end.
    """

    def __init__(
        self,
        topology: Topology,
        switches: Mapping[str, SwitchPlan],
        routes: Mapping[str, Mapping[IPv4Address, NextHop]],
        *,
        ends: Mapping[str, Collection[IPv4Address]] | None = None,
        down: frozenset[int] = frozenset(),
        dead: str | None = None,
    ) -> None:
        self._switches = switches
        self._routes = routes
        self._ends = ends or {}
        self._dead = dead
        self._ports: dict[tuple[str, int], str] = {}
        for index, link in enumerate(topology.links):
            if index not in down and dead not in (link.a, link.b):
                self._ports[link.a, link.a_port] = link.b
                self._ports[link.b, link.b_port] = link.a

    def send(self, switch: str, bift: Bift, bits: int, entropy: int) -> Outcome:
        """Send a packet with the BitString ``bits`` from the BFIR ``switch``; return its deliveries, copies and expired copies.

        ``entropy`` chooses a bucket of the BIFT, and so one of several equal paths.
        """
        outcome = Outcome()
        if switch != self._dead:
            self._forward(outcome, switch, bift, bits, entropy, TTL, from_tunnel=False)
        return outcome

    def _forward(
        self, outcome: Outcome, switch: str, bift: Bift, bits: int, entropy: int, ttl: int, *, from_tunnel: bool
    ) -> None:
        plan = self._switches[switch]
        if bits & plan.own[bift]:
            outcome.delivered[switch] += 1
            bits &= ~plan.own[bift]
        if bits and ttl <= 1:
            outcome.expired += 1
            return
        buckets = plan.bifts[bift]
        for entry in buckets[entropy % len(buckets)]:
            copy, bits = bits & entry.f_bm, bits & ~entry.f_bm
            if not copy:
                continue
            if (neighbour := self._ports.get((switch, entry.next_hop.port))) is not None:
                outcome.copies += 1
                self._forward(outcome, neighbour, bift, copy, entropy, ttl - 1, from_tunnel=False)
                continue
            for backup in () if from_tunnel else entry.backups:
                repaired, copy = copy & backup.f_bm, copy & ~backup.f_bm
                if not repaired:
                    continue
                if backup.tunnel is not None:
                    self._tunnel(outcome, switch, backup.tunnel[1], (bift, repaired, entropy, ttl - 1))
                elif (neighbour := self._ports.get((switch, backup.next_hop.port))) is not None:
                    outcome.copies += 1
                    self._forward(outcome, neighbour, bift, repaired, entropy, ttl - 1, from_tunnel=False)

    def _tunnel(self, outcome: Outcome, switch: str, end: IPv4Address, packet: tuple[Bift, int, int, int]) -> None:
        for _ in range(TTL):
            plan = self._switches[switch]
            if end == plan.loopback or end in self._ends.get(switch, ()):
                bift, bits, entropy, ttl = packet
                self._forward(outcome, switch, bift, bits, entropy, ttl, from_tunnel=True)
                return
            route = self._routes[switch].get(end)
            neighbour = None if route is None else self._ports.get((switch, route.port))
            if neighbour is None:
                return
            outcome.copies += 1
            switch = neighbour
        outcome.expired += 1
