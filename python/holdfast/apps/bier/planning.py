"""The BIER plan of every switch: its BFR-id, its forwarding tables, and the backups of its neighbours' bits when a port is down.

A BitString is an integer: bit position ``p`` (1 to the BitString's length, BSL) is ``1 << (p - 1)``. This module knows the
topology's map alone: no program, no tables of a switch, no state of a port.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from ipaddress import IPv4Address, IPv4Network
from typing import Protocol, TypeAlias

from holdfast.apps.bier.protection import FastReroute, Loss, NotVia, Protect, Repair, Repairs, Underlay
from holdfast.apps.bier.protector import Protector
from holdfast.control.next_hop import NextHop, over_link
from holdfast.errors import NetworkError
from holdfast.paths import Hop, ShortestPaths
from holdfast.topology import Topology

LOOPBACKS = IPv4Network("10.255.0.0/16")
"""The network of the switches' own addresses, by switch index."""

NOT_VIA = IPv4Network("10.254.0.0/16")
"""The network of not-via addresses, by link index and end (:class:`holdfast.apps.bier.protection.NotVia`)."""

MAX_BFR_ID = 65535

BSL_CODES = {64: 1, 128: 2, 256: 3, 512: 4, 1024: 5, 2048: 6, 4096: 7}
"""The code of a BitString's length in a header (RFC 8296, 2.1.2)."""


def checked_bsl(bsl: int) -> int:
    """Return ``bsl``, a length of BitStrings in bits. Raise :class:`NetworkError` if BIER headers have no code for it."""
    if bsl not in BSL_CODES:
        raise NetworkError(f"a BitString has {', '.join(map(str, BSL_CODES))} bits, not {bsl}")
    return bsl


@dataclass(frozen=True, slots=True, order=True)
class Bift:
    """One forwarding table: sub-domain and set identifier, for the network's one BitString length."""

    sub_domain: int
    set_identifier: int

    def __post_init__(self) -> None:
        for what, value in (("sub-domain", self.sub_domain), ("set identifier", self.set_identifier)):
            if not 0 <= value <= 255:
                raise NetworkError(f"{what} {value} is not in 0 to 255")

    def bift_id(self, bsl: int) -> int:
        """Return the 20 bits that packets carry: the code of ``bsl`` (4 bits), sub-domain (8), set identifier (8).

        RFC 8296 leaves the numbers to the domain; this packing is an option of the expired draft-ietf-bier-non-mpls-bift-encoding.
        """
        return BSL_CODES[checked_bsl(bsl)] << 16 | self.sub_domain << 8 | self.set_identifier

    @classmethod
    def of_id(cls, bift_id: int) -> Bift:
        """Return the BIFT that a BIFT-id stands for; the length of BitStrings in it is ignored."""
        return cls(bift_id >> 8 & 255, bift_id & 255)


@dataclass(frozen=True, slots=True)
class Backup:
    """The backup of some of a neighbour's bits while the port towards it is down.

    ``tunnel``: the addresses of the outer IPv4 header: this switch's loopback and where the tunnel ends; ``next_hop`` is then the
    underlay's, towards that end. None: plain BIER to ``next_hop``.
    """

    next_hop: NextHop
    f_bm: int
    tunnel: tuple[IPv4Address, IPv4Address] | None


@dataclass(frozen=True, slots=True)
class NeighbourEntry:
    """A neighbour (BFR-NBR) with its forwarding bit mask (F-BM). The masks of its ``backups`` are disjoint."""

    neighbour: str
    next_hop: NextHop
    f_bm: int
    backups: tuple[Backup, ...]


@dataclass(frozen=True)
class SwitchPlan:
    """One switch.

    ``bfr_id``: 0 is a transit router without a bit of its own. ``bifts``: by table its ECMP buckets, one or a power of two, which
    entropy chooses between (RFC 8279, 6.7); the masks of each bucket are a partition of the bits that can be reached.
    ``own``: the switch's own bit by table, 0 where it has none.
    """

    bfr_id: int
    loopback: IPv4Address
    bifts: Mapping[Bift, tuple[tuple[NeighbourEntry, ...], ...]]
    own: Mapping[Bift, int]


# ---- Numbers ----


@dataclass(frozen=True)
class Numbering:
    """The BFR-ids of switches, 1 to 65,535: each is ``set identifier * bsl + bit position`` (RFC 8279, section 3)."""

    bsl: int
    bfr_ids: Mapping[str, int]

    def place(self, switch: str) -> tuple[int, int]:
        """Return (set identifier, bit as a BitString) of a switch that has a BFR-id."""
        set_identifier, position = divmod(self.bfr_ids[switch] - 1, self.bsl)
        return set_identifier, 1 << position

    def bit_strings(self, switches: Iterable[str]) -> dict[int, int]:
        """Return the BitStrings of ``switches`` by set identifier. Raise :class:`NetworkError` for one without a BFR-id."""
        strings: dict[int, int] = {}
        for switch in switches:
            if switch not in self.bfr_ids:
                raise NetworkError(f"switch {switch!r} has no BFR-id, and cannot receive")
            set_identifier, bit = self.place(switch)
            strings[set_identifier] = strings.get(set_identifier, 0) | bit
        return strings

    @cached_property
    def set_identifiers(self) -> tuple[int, ...]:
        """The set identifiers in use, ascending."""
        return tuple(sorted({self.place(switch)[0] for switch in self.bfr_ids}))


def number_switches(topology: Topology, bsl: int = 256, given: Mapping[str, int] | None = None) -> Numbering:
    """Return a numbering with a BFR-id for every switch with hosts, and for each switch in ``given``.

    BFR-ids that are not given are the smallest free ones, in the topology's order. They do not depend on links; pass earlier
    numbers in ``given`` to keep them when hosts and switches are added. Raise :class:`NetworkError` for an unknown switch, a number
    out of range or used twice, and a set identifier beyond 255.
    """
    numbers: dict[str, int] = {}
    owners: dict[int, str] = {}
    for switch, number in (given or {}).items():
        if switch not in topology.switches:
            raise NetworkError(f"BFR-id {number} is for {switch!r}, which is not a switch")
        if number in owners:
            raise NetworkError(f"BFR-id {number} is for both {owners[number]!r} and {switch!r}")
        numbers[switch] = _checked_number(switch, number, bsl)
        owners[number] = switch
    attached = {topology.attachment(host).switch for host in topology.hosts}
    free = 1
    for switch in topology.switches:
        if switch in attached and switch not in numbers:
            while free in owners:
                free += 1
            numbers[switch] = _checked_number(switch, free, bsl)
            owners[free] = switch
    return Numbering(checked_bsl(bsl), numbers)


def _checked_number(switch: str, number: int, bsl: int) -> int:
    most = min(MAX_BFR_ID, 256 * checked_bsl(bsl))
    if not 1 <= number <= most:
        raise NetworkError(f"BFR-id {number} of {switch!r} is not in 1 to {most}, the numbers that {bsl} bits have")
    return number


def loopback(topology: Topology, switch: str) -> IPv4Address:
    """Return the switch's own address, which identifies it as a router."""
    return _in(LOOPBACKS, topology.switches[switch].index)


def not_via_address(topology: Topology, nodes: Sequence[str], not_via: NotVia) -> IPv4Address:
    """Return the not-via address (RFC 6981) of an interface, that is, of one end of a link.

    Raise :class:`NetworkError` for a link beyond the 32,768 that have such addresses.
    """
    number = 2 * not_via.link + (topology.links[not_via.link].b == nodes[not_via.end])
    if number >= 1 << 16:
        raise NetworkError(f"link {not_via.link} has no not-via addresses; {NOT_VIA} has those of 32,768 links")
    return _in(NOT_VIA, number)


@lru_cache(maxsize=1 << 17)
def _in(network: IPv4Network, number: int) -> IPv4Address:
    return network[number]


# ---- Plans ----


class Trees(Protocol):
    """The paths of a sub-domain: for each destination a tree, or if nodes have several hops, equally good paths without loops."""

    def next_hops(self, node: int, destination: int) -> Sequence[Hop]:
        """Return the hops that ``node`` may take to ``destination``; empty where no path leads, and at the destination itself."""


TreesOf: TypeAlias = Callable[[ShortestPaths], Trees]
"""Makes a sub-domain's trees from the shortest paths without unusable links. Shortest paths are their own trees."""


def shortest(paths: ShortestPaths) -> Trees:
    """Return the trees of a sub-domain that uses shortest paths, which are ``paths`` themselves."""
    return paths


@dataclass(frozen=True)
class Scheme:
    """The parameters of a network's plan.

    ``sub_domains``: their trees. ``buckets``: the most ECMP buckets of a BIFT, a power of two. ``frr``, ``protect``, ``ip_frr``:
    see :mod:`holdfast.apps.bier.protection`; without ``ip_frr`` tunnels work when the underlay's routes do. ``lfa`` needs shortest
    paths.
    """

    numbering: Numbering
    sub_domains: Mapping[int, TreesOf] = field(default_factory=lambda: {0: shortest})
    buckets: int = 1
    frr: FastReroute = "tunnel"
    protect: Protect = "link"
    ip_frr: bool = True

    @property
    def is_shortest(self) -> bool:
        """True if all trees are those of shortest paths."""
        return all(trees is shortest for trees in self.sub_domains.values())

    def __post_init__(self) -> None:
        if self.buckets < 1 or self.buckets & (self.buckets - 1) or self.buckets > 256:
            raise NetworkError(f"a BIFT has 1, 2, 4 and so on up to 256 ECMP buckets, not {self.buckets}")
        if not self.sub_domains:
            raise NetworkError("a BIER domain has one sub-domain at least")
        for what, value, known in (
            ("frr", self.frr, ("none", "tunnel", "lfa")),
            ("protect", self.protect, ("link", "node")),
        ):
            if value not in known:
                raise NetworkError(f"{what} is {value!r}; it is {' or '.join(known)}")
        if self.frr == "lfa" and not self.is_shortest:
            raise NetworkError(
                "loop-free alternates are for sub-domains of shortest paths; protect other trees by tunnels"
            )


Tunnel: TypeAlias = tuple[int, int, NotVia | None]
"""The first node of a tunnel, its last node, and its address there if that is not the loopback."""

Lane: TypeAlias = tuple[int, int]
"""Sub-domain and ECMP bucket: within one lane, each bit of a packet has one path."""


_Sending: TypeAlias = tuple[Lane, int, Hop]
"""A node that sends bits to a hop in a lane."""


class Plan:
    """The plan of a network without its ``unusable`` links (indices): BIFTs, repairs and tunnels of all switches."""

    def __init__(
        self, topology: Topology, scheme: Scheme, unusable: Collection[int] = (), *, underlay: Underlay | None = None
    ) -> None:
        self.topology = topology
        self.scheme = scheme
        self.unusable = frozenset(unusable)
        self.underlay = underlay or Underlay(ShortestPaths.of(topology, unusable), ip_frr=scheme.ip_frr)
        self.paths = self.underlay.paths
        self._protector = Protector(self.underlay, scheme.frr, scheme.protect)
        self._trees = {number: trees(self.paths) for number, trees in scheme.sub_domains.items()}
        self.destinations = sorted(self.paths.number[switch] for switch in scheme.numbering.bfr_ids)
        self.lanes: list[Lane] = [(s, b) for s in sorted(self._trees) for b in range(scheme.buckets)]
        self.changed: Sequence[str] = self.paths.nodes
        """The switches that may have other plans than in the plan before."""
        self._sent: dict[tuple[Lane, int], dict[Hop, list[int]]] = {}
        self._next_hops: dict[tuple[str, int], NextHop] = {}
        # By lane and node, so that the next plan copies what is in the nodes that change.
        self._repairs: dict[tuple[Lane, int], dict[Hop, Repairs]] = {}
        self._entries: dict[tuple[Lane, int], dict[Hop, dict[int, NeighbourEntry | None]]] = {}

    def next_hop(self, lane: Lane, node: int, destination: int) -> Hop | None:
        """Return the hop to which ``node`` sends the bit of ``destination`` in ``lane``, that is (sub-domain, ECMP bucket).

        Return None where no path leads, and at the destination itself.
        """
        sub_domain, bucket = lane
        hops = self._trees[sub_domain].next_hops(node, destination)
        # Neighbours begin with different ones of their hops, so that the flows that one sends to another are divided again.
        return hops[(bucket + node) % len(hops)] if hops else None

    def sent(self, lane: Lane, node: int) -> dict[Hop, list[int]]:
        """Return by next hop the destinations whose bits ``node`` sends to it."""
        known = self._sent.get((lane, node))
        if known is None:
            known = self._sent[lane, node] = {}
            for destination in self.destinations:
                hop = self.next_hop(lane, node, destination)
                if hop is not None:
                    known.setdefault(hop, []).append(destination)
        return known

    def repairs(self, lane: Lane, node: int, hop: Hop) -> Repairs:
        """Return the repairs by which ``node`` reaches the destinations of ``hop`` while the port to ``hop`` is down."""
        if self.scheme.frr == "none":
            return {}
        known = self._repairs.setdefault((lane, node), {})
        if hop not in known:
            destinations = self.sent(lane, node).get(hop, [])
            known[hop] = self._protector.repairs(
                node, hop, destinations, lambda at, destination: self.next_hop(lane, at, destination)
            )
        return known[hop]

    # ---- Switches ----

    @cached_property
    def switches(self) -> dict[str, SwitchPlan]:
        """The plan of every switch, by name."""
        return {name: self._switch(name) for name in self.paths.nodes}

    def _switch(self, name: str) -> SwitchPlan:
        numbering = self.scheme.numbering
        bfr_id = numbering.bfr_ids.get(name, 0)
        place, bit = numbering.place(name) if bfr_id else (-1, 0)
        bifts, own = {}, {}
        for sub_domain in sorted(self._trees):
            for set_identifier in numbering.set_identifiers:
                bift = Bift(sub_domain, set_identifier)
                buckets = [self._bucket((sub_domain, b), name, set_identifier) for b in range(self.scheme.buckets)]
                bifts[bift] = _fewest(buckets)
                own[bift] = bit if set_identifier == place else 0
        return SwitchPlan(bfr_id, loopback(self.topology, name), bifts, own)

    def _bucket(self, lane: Lane, name: str, set_identifier: int) -> tuple[NeighbourEntry, ...]:
        node, entries = self.paths.number[name], []
        of_node = self._entries.setdefault((lane, node), {})
        for hop, destinations in sorted(self.sent(lane, node).items()):
            known = of_node.setdefault(hop, {})
            if set_identifier not in known:
                known[set_identifier] = None
                if f_bm := self._mask(destinations, set_identifier):
                    backups = tuple(self._backups(lane, name, hop, set_identifier))
                    next_hop = self._over(name, hop.link)
                    known[set_identifier] = NeighbourEntry(self.paths.nodes[hop.neighbour], next_hop, f_bm, backups)
            entries.append(known[set_identifier])
        return tuple(entry for entry in entries if entry is not None)

    def _backups(self, lane: Lane, name: str, hop: Hop, set_identifier: int) -> Iterator[Backup]:
        for repair, destinations in self.repairs(lane, self.paths.number[name], hop).items():
            f_bm = self._mask(destinations, set_identifier)
            if f_bm:
                tunnel = None
                if (end := self._end(repair)) is not None:
                    tunnel = (loopback(self.topology, name), end)
                yield Backup(self._over(name, repair.hop.link), f_bm, tunnel)

    def _over(self, name: str, link: int) -> NextHop:
        known = self._next_hops.get((name, link))
        if known is None:
            known = self._next_hops[name, link] = over_link(self.topology, name, link)
        return known

    def _mask(self, destinations: Iterable[int], set_identifier: int) -> int:
        mask = 0
        for destination in destinations:
            place, bit = self._places[destination]
            if place == set_identifier:
                mask |= bit
        return mask

    @cached_property
    def _places(self) -> dict[int, tuple[int, int]]:
        numbering = self.scheme.numbering
        return {self.paths.number[switch]: numbering.place(switch) for switch in numbering.bfr_ids}

    # ---- Tunnels ----

    def _end(self, repair: Repair) -> IPv4Address | None:
        if repair.not_via is not None:
            return self._address(repair.not_via)
        return None if repair.end is None else loopback(self.topology, self.paths.nodes[repair.end])

    def _address(self, not_via: NotVia) -> IPv4Address:
        return not_via_address(self.topology, self.paths.nodes, not_via)

    @property
    def tunnels(self) -> Collection[Tunnel]:
        """Every tunnel that some repair takes."""
        return self._uses.keys()

    @cached_property
    def _uses(self) -> dict[Tunnel, int]:
        """The number of repairs that take each tunnel."""
        if self.scheme.frr == "none":
            return {}
        nodes = range(len(self.paths.nodes))
        sending = [(lane, node, hop) for lane in self.lanes for node in nodes for hop in self.sent(lane, node)]
        return dict(Counter(tunnel for each in sending for tunnel in self._tunnels_of(each)))

    def _tunnels_of(self, sending: _Sending) -> list[Tunnel]:
        repairs = self.repairs(*sending)
        return [(sending[1], repair.end, repair.not_via) for repair in repairs if repair.end is not None]

    # ---- The next plan ----

    def after(self, unusable: Collection[int], *, underlay: Underlay | None = None, loss: Loss | None = None) -> Plan:
        """Return the plan without the ``unusable`` links; if links have only failed, compute only what depends on them.

        A plan with trees other than shortest paths is made anew, as trees depend on the whole graph. ``underlay``: the routes
        without these links; ``loss``: the change since this plan. Both are computed if they are None.
        """
        links = frozenset(unusable)
        if not self.scheme.is_shortest or not links >= self.unusable:
            return Plan(self.topology, self.scheme, links, underlay=underlay)
        before_switches = self.switches  # all of this plan is there from here on
        if loss is None or loss.before is not self.underlay or not loss.is_complete:
            loss = self.underlay.without(links - self.unusable)
        plan = Plan(self.topology, self.scheme, links, underlay=loss.after)
        plan._protector, rerouted = self._protector.after(loss)
        stale = {(lane, node, hop) for node, hop in rerouted for lane in self.lanes}
        plan._take_over(self, before_switches, stale | plan._move(self, loss.moved))
        return plan

    def _move(self, before: Plan, moved: Mapping[int, Collection[int]]) -> set[_Sending]:
        """Copy the next hops of ``before``, replace those that changed (``moved``), and return what has stale backups.

        What has stale backups is named as (lane, node, hop).
        """
        self._sent = dict(before._sent)
        stale: set[_Sending] = set()
        for destination, nodes in moved.items():
            for lane in self.lanes if destination in self._places else ():
                for node in nodes:
                    old, new = before.next_hop(lane, node, destination), self.next_hop(lane, node, destination)
                    if old != new:
                        stale |= self._change(before, (lane, node), destination, old, new)
        return stale

    def _change(
        self, before: Plan, at: tuple[Lane, int], destination: int, old: Hop | None, new: Hop | None
    ) -> set[_Sending]:
        lane, node = at
        sent = self._sent[at]
        if sent is before._sent[at]:
            sent = self._sent[at] = {hop: list(destinations) for hop, destinations in sent.items()}
        for hop in (old, new):
            if hop is not None and hop is old:
                sent[hop].remove(destination)
                if not sent[hop]:
                    del sent[hop]
            elif hop is not None:
                insort(sent.setdefault(hop, []), destination)
        stale = {(lane, node, hop) for hop in (old, new) if hop is not None}
        if self.scheme.frr == "tunnel" and self.scheme.protect == "node":
            # A neighbour that sends the destination here, and did, splits its backups by the next hop from here.
            for hop in before.paths.hops[node]:
                back = Hop(node, hop.link, hop.cost)
                if destination in before._sent[lane, hop.neighbour].get(back, ()):
                    stale.add((lane, hop.neighbour, back))
        return stale

    def _take_over(self, before: Plan, before_switches: Mapping[str, SwitchPlan], stale: set[_Sending]) -> None:
        """Copy repairs, entries, tunnels and switches from the plan ``before``, except for those in ``stale``."""
        self._uses = uses = dict(before._uses)
        self._repairs, self._entries, self._next_hops = dict(before._repairs), dict(before._entries), before._next_hops
        for at in {sending[:2] for sending in stale}:
            self._repairs[at] = dict(before._repairs.get(at, {}))
            self._entries[at] = dict(before._entries.get(at, {}))
        for sending in stale:
            lane, node, hop = sending
            for tunnel in before._tunnels_of(sending) if hop in self._repairs[lane, node] else ():
                uses[tunnel] -= 1
                if not uses[tunnel]:
                    del uses[tunnel]
            self._repairs[lane, node].pop(hop, None)
            self._entries[lane, node].pop(hop, None)
            for tunnel in self._tunnels_of(sending) if hop in self._sent[lane, node] else ():
                uses[tunnel] = uses.get(tunnel, 0) + 1
        nodes = sorted({node for _, node, _ in stale})
        self.changed = [self.paths.nodes[node] for node in nodes]
        self.switches = dict(before_switches)
        for name in self.changed:
            self.switches[name] = self._switch(name)


def not_via_addresses(topology: Topology, tunnels: Iterable[Tunnel]) -> dict[str, tuple[IPv4Address, ...]]:
    """Return by switch the not-via addresses of its interfaces at which some tunnel ends, in ascending order."""
    nodes = list(topology.switches)
    ends: dict[str, set[IPv4Address]] = {}
    for _, end, not_via in tunnels:
        if not_via is not None:
            ends.setdefault(nodes[end], set()).add(not_via_address(topology, nodes, not_via))
    return {name: tuple(sorted(addresses)) for name, addresses in ends.items()}


def tunnel_routes(
    topology: Topology, underlay: Underlay, tunnels: Iterable[Tunnel]
) -> dict[str, dict[IPv4Address, NextHop]]:
    """Return the routes to the ends of ``tunnels``, by switch on their way and by address.

    None of these routes has an alternate.
    """
    found = TunnelRoutes(topology)
    found.add(underlay, tunnels)
    return found.routes()


class TunnelRoutes:
    """The routes of tunnels, updated step by step. :meth:`take_changes` returns what has changed since its last call."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._nodes = list(topology.switches)
        self._passed: dict[Tunnel, list[tuple[tuple[int, IPv4Address], int]]] = {}
        # The link of a route, and how many tunnels take it.
        self._routes: dict[tuple[int, IPv4Address], tuple[int, int]] = {}
        self._ends: Counter[tuple[int, IPv4Address]] = Counter()
        self._over: dict[int, dict[Tunnel, None]] = {}
        self._changed: set[tuple[int, IPv4Address]] = set()
        self._changed_ends: set[tuple[int, IPv4Address]] = set()

    def add(self, underlay: Underlay, tunnels: Iterable[Tunnel]) -> None:
        """Add tunnels, with their routes at the switches on their way and the addresses where they end."""
        for tunnel in tunnels:
            if tunnel not in self._passed:
                self._add(underlay, tunnel)

    def remove(self, tunnels: Iterable[Tunnel]) -> None:
        """Remove tunnels, with those routes and ends that no other tunnel uses."""
        for tunnel in tunnels:
            if tunnel in self._passed:
                self._remove(tunnel)

    def reroute(self, underlay: Underlay, links: Collection[int]) -> None:
        """Route the tunnels that cross ``links``, which have failed, by the paths of ``underlay``."""
        for tunnel in dict.fromkeys(tunnel for link in links for tunnel in self._over.pop(link, ())):
            self._remove(tunnel)
            self._add(underlay, tunnel)

    def _add(self, underlay: Underlay, tunnel: Tunnel) -> None:
        node, end, not_via = tunnel
        if not_via is None:
            address = loopback(self._topology, self._nodes[end])
        else:
            address = not_via_address(self._topology, self._nodes, not_via)
            self._ends[end, address] += 1
            self._changed_ends.add((end, address))
        passed = self._passed[tunnel] = []
        for hop in underlay.tunnel_route(*tunnel):
            at = node, address
            link, users = self._routes.get(at, (hop.link, 0))
            # Where another tunnel passes on its old way, it is still to be routed again.
            self._routes[at] = (hop.link, users + 1)
            if not users or link != hop.link:
                self._changed.add(at)
            passed.append((at, hop.link))
            self._over.setdefault(hop.link, {})[tunnel] = None
            node = hop.neighbour

    def _remove(self, tunnel: Tunnel) -> None:
        for at, over in self._passed.pop(tunnel):
            self._over.get(over, {}).pop(tunnel, None)
            link, users = self._routes[at]
            if users > 1:
                self._routes[at] = (link, users - 1)
            else:
                del self._routes[at]
                self._changed.add(at)
        _, end, not_via = tunnel
        if not_via is not None:
            there = end, not_via_address(self._topology, self._nodes, not_via)
            self._ends[there] -= 1
            if not self._ends[there]:
                del self._ends[there]
                self._changed_ends.add(there)

    def routes(self) -> dict[str, dict[IPv4Address, NextHop]]:
        """Return the next hop of each tunnel, by switch on its way and by the address at its end."""
        found: dict[str, dict[IPv4Address, NextHop]] = {name: {} for name in self._nodes}
        for (node, address), (link, _) in self._routes.items():
            found[self._nodes[node]][address] = over_link(self._topology, self._nodes[node], link)
        return found

    def ends(self) -> Iterator[tuple[str, IPv4Address]]:
        """Return (switch, not-via address) for every not-via address at which a tunnel ends."""
        return ((self._nodes[node], address) for node, address in self._ends)

    def take_changes(self) -> TunnelChanges:
        """Return the changes of routes and of tunnels' ends since the last call of this method."""
        changes = TunnelChanges(
            [(self._nodes[node], address, self._next_hop(node, address)) for node, address in sorted(self._changed)],
            [
                (self._nodes[node], address, (node, address) in self._ends)
                for node, address in sorted(self._changed_ends)
            ],
        )
        self._changed, self._changed_ends = set(), set()
        return changes

    def _next_hop(self, node: int, address: IPv4Address) -> NextHop | None:
        found = self._routes.get((node, address))
        return None if found is None else over_link(self._topology, self._nodes[node], found[0])


@dataclass(frozen=True, slots=True)
class TunnelChanges:
    """Changes of tunnel routes: (switch, address, next hop or None if removed), and of ends: (switch, address, True if added)."""

    routes: list[tuple[str, IPv4Address, NextHop | None]]
    ends: list[tuple[str, IPv4Address, bool]]


def _fewest(buckets: list[tuple[NeighbourEntry, ...]]) -> tuple[tuple[NeighbourEntry, ...], ...]:
    """Return the shortest list of buckets that makes the same choices: halve the list while both halves are equal."""
    while len(buckets) > 1 and buckets[: len(buckets) // 2] == buckets[len(buckets) // 2 :]:
        del buckets[len(buckets) // 2 :]
    return tuple(buckets)
