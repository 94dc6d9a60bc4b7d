"""The registry of what is compared. A mechanism is one :class:`Mechanism` in :data:`MECHANISMS`: a name, and how to build it.

Those of flows with many receivers are in :mod:`holdfast.compare.multicast_mechanisms`. The mechanisms' behaviour is in ``apps``;
their measurement is not known here. All of them are given the same primary paths where they ask for any.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise

from holdfast.apps import mpls
from holdfast.apps.mpls.lsp import MAX_HOPS
from holdfast.apps.protect import (
    Acceptance,
    ProtectController,
    compile_protect,
)
from holdfast.apps.protect.program import OVERHEAD_BYTES
from holdfast.apps.router import IpFrrController, RouterController, compile_ipfrr, compile_router
from holdfast.compare import competitor, multicast_mechanisms, telemetry
from holdfast.compare.mechanism import Built, Mechanism, Setting
from holdfast.compare.traffic_file import Pair, TrafficFile
from holdfast.errors import ExtensionError, ScenarioError
from holdfast.extensions import Door, absolute, is_place
from holdfast.paths import NoDisjointPathsError, ShortestPaths, detour, disjoint_path, disjoint_paths, path_by_cost
from holdfast.topology import Topology

HISTORY = 128
"""Numbers that 1+1-vector remembers, the most there can be: paths may differ by so many packets of a connection."""

REPAIR_TUNNEL_BYTES = 20
"""The bytes of the IPv4 header that the tunnel of a remote alternate adds."""


_COLOUR = re.compile("#[0-9A-Fa-f]{6}")


# Each program is compiled once per process.
_router_program, _ipfrr_program, _mpls_program = map(cache, (compile_router, compile_ipfrr, mpls.compile_mpls))
_protect_program = cache(partial(compile_protect, {"HISTORY_BITS": str(HISTORY)}))


def _router(setting: Setting, *, reroute: bool) -> Built:
    controller = RouterController(reroute=reroute, reaction_delay_ms=setting.reaction_delay_ms)
    return Built(_router_program(), controller, delivers=_Routes(setting.topology).delivers)


class _Routes:
    """Where the routers' paths lead before a failure."""

    def __init__(self, topology: Topology) -> None:
        self._topology, self._paths = topology, ShortestPaths.of(topology)

    def delivers(self, down: frozenset[int], source: str, destination: str) -> bool:
        """Return True if no link of the path from a host to another is down."""
        number = self._paths.number
        node, last = (number[self._topology.attachment(host).switch] for host in (source, destination))
        while (hop := self._paths.next_hop(node, last)) is not None and hop.link not in down:
            node = hop.neighbour
        return node == last


class _FastReroutePairs(IpFrrController):
    """IP fast reroute; the pairs on whose ways some router has no alternate are listed."""

    def __init__(self, setting: Setting, unprotected: list[Pair]) -> None:
        super().__init__(reaction_delay_ms=setting.reaction_delay_ms, mtu=setting.mtu_for(REPAIR_TUNNEL_BYTES))
        self._pairs, self._unprotected = setting.pairs, unprotected

    def on_start(self) -> None:
        """Install routes and alternates; remember the pairs without an alternate somewhere."""
        super().on_start()
        for pair in self._pairs:
            a, b = (self.topology.attachment(host).switch for host in pair)
            if not (self._is_covered(a, b) and self._is_covered(b, a)):
                self._unprotected.append(pair)

    def _is_covered(self, switch: str, destination: str) -> bool:
        """Return True if each router on the way to another has an alternate for its next hop."""
        alternates = self.alternates
        while (hop := alternates.primary(switch, destination)) is not None:
            if alternates.alternate(switch, destination) is None:
                return False
            switch = alternates.paths.nodes[hop.neighbour]
        return True

    def delivers(self, down: frozenset[int], source: str, destination: str) -> bool:
        """Follow a packet from a host to another: by next hops that are up, or by alternates, as those of a router behind may be.

        Return False if it comes to a link that is down, or again to where it was.
        """
        alternates, passed = self.alternates, set[str]()
        nodes = alternates.paths.nodes
        switch, last = (self.topology.attachment(host).switch for host in (source, destination))
        while switch != last and switch not in passed:
            passed.add(switch)
            hop, alternate = alternates.primary(switch, last), alternates.alternate(switch, last)
            if hop is not None and hop.link not in down:
                switch = nodes[hop.neighbour]
            elif alternate is None or alternate.hop.link in down:
                return False
            else:
                node = alternate.hop.neighbour
                # Routes of tunnels have no alternates.
                while alternate.pq_node is not None and node != alternate.pq_node:
                    inner = alternates.paths.next_hop(node, alternate.pq_node)
                    if inner is None or inner.link in down:
                        return False
                    node = inner.neighbour
                switch = nodes[node]
        return switch == last


def _ip_frr(setting: Setting) -> Built:
    unprotected: list[Pair] = []
    controller = _FastReroutePairs(setting, unprotected)
    return Built(_ipfrr_program(), controller, unprotected, delivers=controller.delivers)


def _mpls(setting: Setting, *, mechanism: mpls.Mechanism) -> Built:
    """Build an MPLS network with a pair of LSPs for each two switches whose hosts have traffic with each other.

    Raise :class:`ScenarioError` if a path has more links than an LSP may have.
    """
    topology = setting.topology
    mpls.add_port_events(topology)
    unprotected: list[Pair] = []
    connections = []
    all_ways: dict[tuple[str, str], _Ways] = {}
    for (a, b), pairs in _by_switches(topology, setting.pairs).items():
        if a == b:
            continue
        ways = _local_ways(topology, a, b) if mechanism == mpls.Mechanism.LOCAL else _end_to_end_ways(topology, a, b)
        if len(ways.path) - 1 > MAX_HOPS:
            raise ScenarioError(
                f"mpls: the path {a} to {b} has {len(ways.path) - 1} links, and an LSP has at most {MAX_HOPS}"
            )
        all_ways[a, b] = ways
        if not ways.protected:
            unprotected += pairs
        recovery = mpls.Recovery(mechanism if ways.backup or ways.detours else mpls.Mechanism.NONE)
        hosts_a, hosts_b = ({_at(topology, pair, switch): None for pair in pairs} for switch in (a, b))
        connections.append(
            mpls.Connection(
                list(hosts_a),
                list(hosts_b),
                recovery=recovery,
                path=ways.path,
                backup=ways.backup,
                detours=ways.detours,
            )
        )

    def delivers(down: frozenset[int], source: str, destination: str) -> bool:
        a, b = (topology.attachment(host).switch for host in (source, destination))
        # Both directions take the same nodes.
        found = all_ways.get((a, b)) or all_ways.get((b, a))
        return a == b or (found is not None and found.deliver(topology, down))

    return Built(_mpls_program(), mpls.MplsController(connections=connections), unprotected, delivers=delivers)


@dataclass(frozen=True)
class _Ways:
    """The path of an LSP, with its backup or detours. ``protected``: these help whichever of the path's links fails."""

    path: list[str]
    protected: bool
    backup: list[str] | None = None
    detours: dict[tuple[str, str], list[str]] | None = None

    def deliver(self, topology: Topology, down: frozenset[int]) -> bool:
        """Return True if packets arrive while links are down: by the path, its detours, or the backup."""

        def is_up(way: Sequence[str]) -> bool:
            return all(topology.graph.edges[hop]["link"] not in down for hop in pairwise(way))

        if self.detours is not None:
            around = self.detours
            return all(is_up(hop) or (hop in around and is_up(around[hop])) for hop in pairwise(self.path))
        return is_up(self.path) or (self.backup is not None and is_up(self.backup))


def _local_ways(topology: Topology, a: str, b: str) -> _Ways:
    """Return the routers' path from switch ``a`` to ``b``, and a detour around each of its links for which there is one."""
    path = path_by_cost(topology, a, b)
    found = {hop: detour(topology, *hop) for hop in pairwise(path)}
    detours = {hop: way for hop, way in found.items() if way is not None and len(way) - 1 <= MAX_HOPS}
    return _Ways(path, len(detours) == len(found), detours=detours)


def _end_to_end_ways(topology: Topology, a: str, b: str) -> _Ways:
    """Return the routers' path and a disjoint backup, or else the cheapest pair of disjoint paths.

    Paths with more links than an LSP can have are not used; the result is unprotected if nothing else is left.
    """
    path = path_by_cost(topology, a, b)
    if (backup := disjoint_path(topology, path)) is not None and len(backup) - 1 <= MAX_HOPS:
        return _Ways(path, protected=True, backup=backup)
    try:
        first, second = disjoint_paths(topology, a, b, disjoint="link")
    except NoDisjointPathsError:
        return _Ways(path, protected=False)
    # An LSP goes from switch to switch, always over the cheapest of parallel links.
    shared = _neighbours(first.nodes) & _neighbours(second.nodes)
    if shared or max(len(first.links), len(second.links)) > MAX_HOPS:
        return _Ways(path, protected=False)
    return _Ways(list(first.nodes), protected=True, backup=list(second.nodes))


def _neighbours(path: Sequence[str]) -> set[frozenset[str]]:
    return {frozenset(hop) for hop in pairwise(path)}


def _by_switches(topology: Topology, pairs: Sequence[Pair]) -> dict[tuple[str, str], list[Pair]]:
    """Return the pairs of hosts by the pair of their switches.

    Opposite directions of two switches have one key, in the direction that comes first.
    """
    groups: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        a, b = (topology.attachment(name).switch for name in pair)
        groups.setdefault((b, a) if (b, a) in groups else (a, b), []).append(pair)
    return groups


def _at(topology: Topology, pair: Pair, switch: str) -> str:
    """Return the host of ``pair`` that is attached to ``switch``."""
    return pair[0] if topology.attachment(pair[0]).switch == switch else pair[1]


class _ProtectPairs(ProtectController):
    """1+1 protection of all pairs that can have it; the others are routed, and listed."""

    def __init__(self, setting: Setting, acceptance: Acceptance, unprotected: list[Pair]) -> None:
        super().__init__(
            reroute=False,
            reaction_delay_ms=setting.reaction_delay_ms,
            mtu=setting.mtu_for(OVERHEAD_BYTES),
            acceptance=acceptance,
        )
        self._pairs = setting.pairs
        self._unprotected = unprotected
        self._routes = _Routes(setting.topology)

    def on_start(self) -> None:
        """Install routes, then protected connections for all pairs; remember the pairs without disjoint paths."""
        super().on_start()
        with self.together():
            for a, b in self._pairs:
                ends = [self.topology.attachment(name).switch for name in (a, b)]
                if ends[0] == ends[1]:
                    continue
                try:
                    for ingress, egress in (ends, ends[::-1]):
                        self._connect(ingress, egress)
                except NoDisjointPathsError:
                    self._unprotected.append((a, b))
                    continue
                self.protect_hosts(a, b)
                self.protect_hosts(b, a)

    def delivers(self, down: frozenset[int], source: str, destination: str) -> bool:
        """Return True if a path of the hosts' connection has no link that is down, or their route if they have no connection."""
        if (source, destination) in self._unprotected or (destination, source) in self._unprotected:
            return self._routes.delivers(down, source, destination)
        ends = [self.topology.attachment(name).switch for name in (source, destination)]
        connection = self.find_connection(*ends)
        paths = () if connection is None else connection.path_set.paths
        return ends[0] == ends[1] or any(down.isdisjoint(path.links) for path in paths)

    def _connect(self, ingress: str, egress: str) -> None:
        """Add a connection over paths without a common node, or else without a common link.

        Raise NoDisjointPathsError if there are none.
        """
        if self.find_connection(ingress, egress) is None:
            try:
                self.add_connection(ingress, egress, disjoint="node")
            except NoDisjointPathsError:
                self.add_connection(ingress, egress, disjoint="link")


def _protect(setting: Setting, *, acceptance: Acceptance) -> Built:
    unprotected: list[Pair] = []
    controller = _ProtectPairs(setting, acceptance, unprotected)
    return Built(_protect_program(), controller, unprotected, delivers=controller.delivers)


MECHANISMS: dict[str, Mechanism] = {
    mechanism.name: mechanism
    for mechanism in (
        Mechanism(
            "static",
            "routes are installed once, and nobody reacts",
            ("#C2410C", "#FB923C"),
            partial(_router, reroute=False),
            with_telemetry=partial(telemetry.router, reroute=False),
            protects="nothing",
        ),
        Mechanism(
            "reroute",
            "the controller learns of the failure and installs new routes",
            ("#1D4ED8", "#60A5FA"),
            partial(_router, reroute=True),
            with_telemetry=partial(telemetry.router, reroute=True),
            protects="restored",
        ),
        Mechanism(
            "ip-frr",
            "each router has a loop-free alternate next hop, or a tunnel to one, until the controller has new routes",
            ("#7C3AED", "#A78BFA"),
            _ip_frr,
            protects="prepared",
        ),
        Mechanism(
            "mpls-local",
            "the switch before the failed link sends around it",
            ("#0E7490", "#22D3EE"),
            partial(_mpls, mechanism=mpls.Mechanism.LOCAL),
            protects="prepared",
        ),
        Mechanism(
            "mpls-path",
            "the ingress is told, and changes to a disjoint backup path",
            ("#A16207", "#FACC15"),
            partial(_mpls, mechanism=mpls.Mechanism.PATH),
            protects="prepared",
        ),
        Mechanism(
            "mpls-loopback",
            "the switch before the failed link sends back to the ingress, and from there on the backup path",
            ("#BE185D", "#F472B6"),
            partial(_mpls, mechanism=mpls.Mechanism.LOOPBACK),
            protects="prepared",
        ),
        Mechanism(
            "1+1",
            "everything is sent on two disjoint paths, and what is newer than all before is accepted (P4-Protect's window)",
            ("#15803D", "#4ADE80"),
            partial(_protect, acceptance=Acceptance("window", reset_ms=0)),
            protects="prepared",
            loses="at the repair, packets on the shorter path overtake those on the longer one, which the window then takes for"
            " old; 1+1-vector knows each number, and loses none",
        ),
        Mechanism(
            "1+1-vector",
            "everything is sent on two disjoint paths, and the first copy of each packet is accepted (IEEE 802.1CB's vector)",
            ("#4D7C0F", "#A3E635"),
            partial(_protect, acceptance=Acceptance("vector", history=HISTORY)),
            protects="prepared",
        ),
    )
}
"""The mechanisms for flows with one receiver by name, in the order of tables."""


STATIC, COPIES = "static", "ingress-replication"
"""The names of the baselines: for flows with one receiver, and if all flows have several receivers."""


def known() -> dict[str, Mechanism]:
    """Return all mechanisms by name; those for multicast are included."""
    return MECHANISMS | multicast_mechanisms.MECHANISMS


def _checked(value: object) -> Mechanism:
    """Return ``value`` if it is a mechanism that can be shown and run.

    Raise :class:`ExtensionError` if it is not. It comes from a file or package outside Holdfast.
    """
    if not isinstance(value, Mechanism):
        kind = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
        raise ExtensionError(f"it is {kind}, not a holdfast.compare.mechanism.Mechanism")
    if not isinstance(value.name, str) or re.fullmatch(r"\w[\w.+-]{0,39}", value.name) is None:
        raise ExtensionError(f"its name {value.name!r} is not 1 to 40 letters, digits, '_', '.', '+' and '-'")
    if value.name in known():
        raise ExtensionError(f"its name {value.name!r} is that of one of Holdfast's mechanisms")
    if not callable(value.build):
        raise ExtensionError(
            f"its build is a {type(value.build).__name__}, not a function that builds it for a Setting"
        )
    if not (
        isinstance(value.colour, tuple) and [bool(_COLOUR.fullmatch(str(each))) for each in value.colour] == [True] * 2
    ):
        raise ExtensionError(
            f"its colour {value.colour!r} is not a pair, on white and on black, such as ('#0F766E', '#5EEAD4')"
        )
    return value


OUTSIDE: Door[Mechanism] = Door("holdfast.mechanisms", "mechanism", _checked, lambda: known())
"""Mechanisms from outside the package."""


def outside(text: str) -> Mechanism:
    """Return the mechanism at a place, ``module:NAME`` or ``FILE.py:NAME``, or the one that an installed package calls ``text``.

    Raise :class:`ExtensionError` with one sentence that names it if there is none, or if it cannot be used.
    """
    if is_place(text):
        return replace(OUTSIDE.read(text), origin=absolute(text))
    found = OUTSIDE.load(text)
    if found.name != text:
        raise ExtensionError(f"mechanism {text!r} of an installed package calls itself {found.name!r}")
    return replace(found, origin=OUTSIDE.place(text))


def of_run(name: str, origin: str | None) -> Mechanism:
    """Return the mechanism of a run: one of Holdfast's by its name, or one from outside by the place of its ``origin``."""
    return known()[name] if origin is None else outside(origin)


def baseline(traffic: TrafficFile) -> str:
    """Return the name of the baseline: that for multicast if all flows are multicast, else static routing."""
    return COPIES if all(ends.group is not None for ends in traffic.flows()) else STATIC


def defaults(traffic: TrafficFile) -> list[str]:
    """Return the names that are compared by default: the multicast mechanisms if all flows have several receivers."""
    return list(MECHANISMS if baseline(traffic) == STATIC else multicast_mechanisms.MECHANISMS)


def with_telemetry(names: Sequence[str] | None, baseline: str) -> list[str]:
    """Return the mechanisms of ``names`` that can report by INT, or all that can if ``names`` is None.

    Raise :class:`ScenarioError` for a named mechanism that cannot.
    """
    able = [name for name, mechanism in MECHANISMS.items() if mechanism.with_telemetry is not None]
    if baseline not in able:
        raise ScenarioError(f"--telemetry int is for flows with one receiver: {baseline} has no INT")
    for name in names or ():
        if name in known() and name not in able:
            raise ScenarioError(
                f"--telemetry int: the program of mechanism {name!r} has no INT; these mechanisms have it: {', '.join(able)}"
            )
    return able if names is None else list(names)


def find(names: Sequence[str], baseline: str = STATIC) -> list[Mechanism]:
    """Return the mechanism ``baseline``, then those in ``names``, those from outside last (:func:`outside`).

    Raise :class:`ScenarioError` for unknown and repeated names, and :class:`ExtensionError` for a mechanism from outside that
    cannot be used.
    """
    by_name = known()
    if strangers := [name for name in names if name not in by_name]:
        places = [name for name in strangers if is_place(name)]
        try:
            competitor.check(dict.fromkeys([*by_name, *OUTSIDE.names(), *places]), names)
        except ScenarioError as error:
            raise ScenarioError(f"{error}; an own one is FILE.py:NAME or MODULE:NAME") from None
        by_name |= {name: outside(name) for name in strangers}
    found = competitor.find(by_name, names, baseline)
    for name, count in Counter(each.name for each in found).items():
        if count > 1:
            raise ScenarioError(f"mechanism {name!r} is given twice")
    return found
