"""The registry's part for flows with several receivers: who copies, and who reacts to a failure.

Memberships are static: the receivers of a flow are members of its group from the beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from holdfast._core import Program
from holdfast.apps.ipmc import Channel, IpmcController, compile_ipmc, plan
from holdfast.apps.router import RouterController, compile_router
from holdfast.compare.mechanism import Built, Mechanism, Setting
from holdfast.compare.traffic_file import Ends
from holdfast.paths import ShortestPaths
from holdfast.topology import Topology


@cache
def _router_program() -> Program:
    """Compiled once per process, as the others."""
    return compile_router()


@cache
def _ipmc_program() -> Program:
    return compile_ipmc()


def _copies(setting: Setting) -> Built:
    controller = RouterController(reroute=False, reaction_delay_ms=setting.reaction_delay_ms)
    # Who receives is told to the source alone.
    return Built(_router_program(), controller, membership=lambda ends, receiver, joins: None)


def _ipmc(setting: Setting, *, reroute: bool) -> Built:
    members = {channel(ends): ends.receivers for ends in setting.flows if ends.group is not None}
    controller = IpmcController(members, reroute=reroute, reaction_delay_ms=setting.reaction_delay_ms)

    def membership(ends: Ends, receiver: str, joins: bool) -> None:
        (controller.join if joins else controller.leave)(channel(ends), receiver)

    return Built(_ipmc_program(), controller, membership=membership)


def channel(ends: Ends) -> Channel:
    """Of a flow with several receivers."""
    assert ends.group is not None
    return Channel(ends.group, ends.source)


def _ipmc_core(topology: Topology, flows: Sequence[Ends]) -> list[int]:
    members = {channel(ends): ends.receivers for ends in flows}
    numbers = {each: number for number, each in enumerate(members, start=1)}
    size = dict.fromkeys(topology.switches, 0)
    place = {name: topology.attachment(name).switch for name in topology.hosts}
    edges = {numbers[channel(ends)]: {place[host] for host in ends.hosts} for ends in flows}
    for switch, forwarding in plan(topology, ShortestPaths.of(topology), members, numbers).items():
        for number, replicas in forwarding.groups.items():
            if switch not in edges[number]:
                size[switch] += 1 + len(replicas)
    return list(size.values())


MECHANISMS: dict[str, Mechanism] = {
    mechanism.name: mechanism
    for mechanism in (
        Mechanism(
            "ingress-replication",
            "the source sends a copy to each receiver; routes are installed once, and nobody reacts",
            ("#C2410C", "#FB923C"),
            _copies,
            core_state=lambda topology, flows: [0] * len(topology.switches),
        ),
        Mechanism(
            "ipmc",
            "IP multicast: each group has a shortest-path tree of entries in the switches, installed once, and nobody reacts",
            ("#1D4ED8", "#60A5FA"),
            partial(_ipmc, reroute=False),
            multicast=True,
            core_state=_ipmc_core,
        ),
        Mechanism(
            "ipmc-reroute",
            "IP multicast: the controller learns of the failure and installs new trees",
            ("#0E7490", "#22D3EE"),
            partial(_ipmc, reroute=True),
            multicast=True,
            core_state=_ipmc_core,
        ),
    )
}
"""By name, in the order of tables."""
