"""The registry's part for flows with several receivers: the switches that copy, and those that react to a failure.

Memberships are static: the receivers of a flow are members of its group from the beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial

from holdfast._core import Program
from holdfast.apps.bier import (
    BierController,
    Coverage,
    Failure,
    Plan,
    Scheme,
    compile_bier,
    failures,
    number_switches,
)
from holdfast.apps.bier.entries import switch_configuration
from holdfast.apps.bier.one_plus_one import SUB_DOMAINS, ways
from holdfast.apps.bier.planning import shortest, tunnel_routes
from holdfast.apps.bier.program import TAG_BYTES, TUNNEL_OVERHEAD_BYTES, header_bytes
from holdfast.apps.bier.protection import FastReroute, Protect
from holdfast.apps.ipmc import IpmcController, Root, compile_ipmc, tree
from holdfast.apps.router import RouterController, compile_router
from holdfast.compare.mechanism import Built, Mechanism, Setting
from holdfast.compare.traffic_file import Ends
from holdfast.control.membership.channels import Channel
from holdfast.control.membership.members import StaticMembers, channel_of
from holdfast.paths import ShortestPaths
from holdfast.topology import Topology


@cache
def _router_program() -> Program:
    """Compile the router program, once per process."""
    return compile_router()


@cache
def _ipmc_program() -> Program:
    return compile_ipmc()


def _copies(setting: Setting) -> Built:
    controller = RouterController(reroute=False, reaction_delay_ms=setting.reaction_delay_ms)
    # Only the source is told the receivers.
    return Built(_router_program(), controller, membership=lambda ends, receiver, joins: None)


def _ipmc(setting: Setting, *, reroute: bool) -> Built:
    topology = setting.topology
    members = {channel(topology, ends): ends.receivers for ends in setting.flows if ends.group is not None}
    controller = IpmcController(members, reroute=reroute, reaction_delay_ms=setting.reaction_delay_ms)

    def membership(ends: Ends, receiver: str, joins: bool) -> None:
        (controller.join if joins else controller.leave)(channel(topology, ends), receiver)

    return Built(_ipmc_program(), controller, membership=membership)


def channel(topology: Topology, ends: Ends) -> Channel:
    """Return the multicast channel, a source and a group, of a flow with several receivers."""
    assert ends.group is not None
    return channel_of(topology, ends.group, ends.source)


def _ipmc_core(topology: Topology, flows: Sequence[Ends]) -> list[int]:
    members = StaticMembers(topology, {channel(topology, ends): ends.receivers for ends in flows})
    roots = {channel(topology, ends): topology.attachment(ends.source) for ends in flows}
    numbers = {each: number for number, each in enumerate(roots, start=1)}
    size = dict.fromkeys(topology.switches, 0)
    place = {name: topology.attachment(name).switch for name in topology.hosts}
    edges = {numbers[channel(topology, ends)]: {place[host] for host in ends.hosts} for ends in flows}

    paths = ShortestPaths.of(topology)
    for each, at in members.channels.items():
        number, root = numbers[each], Root(roots[each].switch, roots[each].port)
        for switch, (group, _) in tree(topology, paths, each, root, at, number).items():
            if switch not in edges[number]:
                size[switch] += 1 + len(group.replicas)
    return list(size.values())


# ---- BIER ----


@cache
def _bier_program(*, one_plus_one: bool) -> Program:
    return compile_bier(one_plus_one=one_plus_one)


@dataclass(frozen=True)
class _Way:
    """The way that a BIER domain survives a failure."""

    reroute: bool = False
    frr: FastReroute = "none"
    protect: Protect = "link"
    one_plus_one: bool = False

    def scheme(self, topology: Topology) -> Scheme:
        """Return the BIER scheme of the domain's switches: sub-domains, backups and protection."""
        trees = SUB_DOMAINS if self.one_plus_one else {0: shortest}
        return Scheme(number_switches(topology), trees, frr=self.frr, protect=self.protect)


def _bier(setting: Setting, *, way: _Way) -> Built:
    topology = setting.topology
    overhead = header_bytes() + TUNNEL_OVERHEAD_BYTES + TAG_BYTES
    controller = BierController(
        {channel(topology, ends): ends.receivers for ends in setting.flows if ends.group is not None},
        ip_delay_ms=setting.reaction_delay_ms,
        bier_delay_ms=setting.reaction_delay_ms,
        frr=way.frr,
        protect=way.protect,
        reroute=way.reroute,
        one_plus_one=way.one_plus_one,
        mtu=setting.mtu_for(overhead),
    )

    def membership(ends: Ends, receiver: str, joins: bool) -> None:
        (controller.join if joins else controller.leave)(channel(topology, ends), receiver)

    promise = None
    if way.one_plus_one:
        promise = _TwoWays(topology, controller).promise
    elif way.frr != "none":
        promise = _Covered(topology, controller, setting.detection_delay_ms).promise
    return Built(_bier_program(one_plus_one=way.one_plus_one), controller, membership=membership, promise=promise)


def _failure(topology: Topology, name: str) -> Failure:
    kind: Protect = "node" if name in topology.switches else "link"
    return next(each for each in failures(topology, kind) if each.name == name)


class _Covered:
    """The promise of fast reroute, by the coverage of the plan before the failure: a pair that it covers is out until detection."""

    def __init__(self, topology: Topology, controller: BierController, detection_delay_ms: float) -> None:
        self._topology, self._controller, self._detection_delay_ms = topology, controller, detection_delay_ms

    def promise(self, failure: str, ends: Ends, receiver: str) -> float | None:
        """Return the longest outage in ms that is promised to a receiver; None if nothing is promised.

        It is 0 if the failure is not on the receiver's path, else the detection delay.
        """
        pair = tuple(self._topology.attachment(host).switch for host in (ends.source, receiver))
        lost, met = self._pairs(failure)
        if pair in lost:
            return None
        return self._detection_delay_ms if pair in met else 0.0

    @lru_cache(maxsize=1)  # noqa: B019 - asked for one receiver after the other
    def _pairs(self, failure: str) -> tuple[frozenset[tuple[str, str]], frozenset[tuple[str, str]]]:
        found = _failure(self._topology, failure)
        return self._coverage.lost(found), self._coverage.protected(found)

    @cached_property
    def _coverage(self) -> Coverage:
        return Coverage(self._controller.plan)


class _TwoWays:
    """The promise of 1+1: a pair of which one way stays loses nothing."""

    def __init__(self, topology: Topology, controller: BierController) -> None:
        self._topology, self._controller = topology, controller

    def promise(self, failure: str, ends: Ends, receiver: str) -> float | None:
        """Return 0 ms if one of the receiver's two paths survives the failure, else None.

        The paths are those of the plan before the failure, as no controller reacts.
        """
        plan, found = self._controller.plan, _failure(self._topology, failure)
        places = [self._topology.attachment(host).switch for host in (ends.source, receiver)]
        both = ways(plan, *(plan.paths.number[place] for place in places))
        return 0.0 if any(all(hop.link not in found.links for hop in way) for way in both) else None


@lru_cache(maxsize=8)
def _bier_state(topology: Topology, way: _Way) -> tuple[int, ...]:
    """Return each switch's number of entries: of BIFTs with backups, replicas, and routes of tunnels.

    It is the same for any groups.
    """
    plan = Plan(topology, way.scheme(topology))
    routes = tunnel_routes(topology, plan.underlay, plan.tunnels)
    sizes = []
    for name, switch in plan.switches.items():
        found = switch_configuration(switch)
        sizes.append(len(found.entries) + sum(map(len, found.groups.values())) + len(routes[name]))
    return tuple(sizes)


def _of_bier(name: str, what: str, colour: tuple[str, str], way: _Way) -> Mechanism:
    return Mechanism(
        name,
        what,
        colour,
        partial(_bier, way=way),
        multicast=True,
        core_state=lambda topology, flows: list(_bier_state(topology, way)),
        protects="prepared" if way.frr != "none" or way.one_plus_one else "restored" if way.reroute else "nothing",
    )


MECHANISMS: dict[str, Mechanism] = {
    mechanism.name: mechanism
    for mechanism in (
        Mechanism(
            "ingress-replication",
            "the source sends a copy to each receiver; routes are installed once, and nobody reacts",
            ("#C2410C", "#FB923C"),
            _copies,
            core_state=lambda topology, flows: [0] * len(topology.switches),
            protects="nothing",
        ),
        Mechanism(
            "ipmc",
            "IP multicast: each group has a shortest-path tree of entries in the switches, installed once, and nobody reacts",
            ("#1D4ED8", "#60A5FA"),
            partial(_ipmc, reroute=False),
            multicast=True,
            core_state=_ipmc_core,
            protects="nothing",
        ),
        Mechanism(
            "ipmc-reroute",
            "IP multicast: the controller learns of the failure and installs new trees",
            ("#0E7490", "#22D3EE"),
            partial(_ipmc, reroute=True),
            multicast=True,
            core_state=_ipmc_core,
            protects="restored",
        ),
        _of_bier(
            "bier",
            "BIER: packets name their receivers' switches, and switches hold no state of groups; nobody reacts",
            ("#7C3AED", "#A78BFA"),
            _Way(),
        ),
        _of_bier(
            "bier-reroute",
            "BIER: the controller learns of the failure and installs new forwarding tables",
            ("#BE185D", "#F472B6"),
            _Way(reroute=True),
        ),
        _of_bier(
            "bier-frr-link",
            "BIER-FRR: a switch tunnels around a link that is down to the next switch, until the controller has new tables",
            ("#A16207", "#FACC15"),
            _Way(reroute=True, frr="tunnel"),
        ),
        _of_bier(
            "bier-frr-node",
            "BIER-FRR: a switch tunnels around the next switch to those behind it, until the controller has new tables",
            ("#4D7C0F", "#A3E635"),
            _Way(reroute=True, frr="tunnel", protect="node"),
        ),
        _of_bier(
            "1+1-bier",
            "BIER over two independent trees: each packet is numbered (IEEE 802.1CB), its first copy is delivered; nobody reacts",
            ("#15803D", "#4ADE80"),
            _Way(one_plus_one=True),
        ),
    )
}
"""The mechanisms for multicast by name, in the order of tables."""
