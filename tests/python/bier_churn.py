"""Hosts join and leave groups by IGMP and MLD all the time: who misses a packet, who gets one too late, and the controller's time.

As a script it runs a minute of virtual time at full size: ``python tests/python/bier_churn.py [GROUPS [CHANGES_PER_S [SECONDS]]]``;
the suite runs a small one. Each host joins a group once and leaves it once, so that its counters of the group tell everything.
"""

from __future__ import annotations

import random
import sys
import time
from dataclasses import dataclass, field
from typing import Literal

from holdfast import SimulatedNetwork
from holdfast.apps.bier import BierController, compile_bier
from holdfast.control.membership.overlay import OverlayParameters
from holdfast.parameters import PS_PER_S
from holdfast.scheduler import Scheduler
from holdfast.topologies import load
from holdfast.traffic import UdpStream

Family = Literal["ipv4", "ipv6"]

REACTION_S = 0.01
"""From a report at the edge to the tables."""
WIRE_S = 0.1
"""More than a report and a packet are under way, in all queues."""
PACKETS_PER_S = 20
"""Of each group."""


@dataclass
class Churn:
    """``missed``, ``late``, ``strangers``: what was wrong, in sentences; there must be none.

    ``controller_s``: its own processor time, with the writes of switches in the same process.
    """

    joins: int = 0
    leaves: int = 0
    delivered: int = 0
    late_s: float = 0.0
    """After a leave, at most; the timer allows ``timer_s``."""
    timer_s: float = 0.0
    first_s: float = 0.0
    """From a join to the first packet, at most."""
    missed: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    controller_s: float = 0.0
    requests: int = 0
    updates: int = 0

    @property
    def changes_per_s(self) -> float:
        """The number of joins and leaves per second that the controller sustains."""
        return (self.joins + self.leaves) / self.controller_s


class _Timed(Scheduler):
    """Measures what controllers do."""

    def __init__(self) -> None:
        super().__init__()
        self.spent_s = 0.0

    def run_due(self, now_ps: int) -> None:
        begin = time.thread_time()
        super().run_due(now_ps)
        self.spent_s += time.thread_time() - begin


@dataclass(frozen=True)
class _Group:
    address: str
    family: Family
    source: str
    sources: tuple[str, ...]
    """The sources that are joined; none: all."""
    start_s: float


def churn(topology_name: str, *, groups: int, changes_per_s: float, seconds: float, seed: int = 1) -> Churn:
    """Run random joins and leaves of members, and return what the controller and the switches spent.

    Half of the groups are for any source and half for a named one; a third of all are IPv6 groups.
    """
    topology = load(topology_name)
    topology.add_ipv6()
    generator = random.Random(seed)
    hosts = list(topology.hosts)
    parameters = OverlayParameters()
    controller = BierController(ip_delay_ms=REACTION_S * 1e3, bier_delay_ms=REACTION_S * 1e3, overlay=parameters)
    network = SimulatedNetwork(topology, compile_bier(), [controller], seed=seed)
    timed = _Timed()
    timed._pending, timed._added = network._scheduler._pending, network._scheduler._added
    network._scheduler = timed

    flows: list[_Group] = []
    for number in range(groups):
        family: Family = "ipv6" if number % 3 == 2 else "ipv4"
        source, specific = generator.choice(hosts), number % 2 == 1
        host = topology.hosts[source]
        if family == "ipv4":
            address, owner = f"{232 if specific else 239}.1.{number >> 8}.{number & 255}", host.address
        else:
            assert host.ipv6 is not None
            address, owner = f"ff{'3e' if specific else '1e'}::1:{number:x}", host.ipv6
        sources = (str(owner.ip),) if specific else ()
        flows.append(_Group(address, family, source, sources, generator.uniform(0, 1 / PACKETS_PER_S)))
    for each in flows:
        network.add(
            UdpStream(
                source=each.source,
                destination=each.address,
                family=each.family,
                packets_per_s=PACKETS_PER_S,
                start_s=each.start_s,
                stop_s=seconds,
                payload_bytes=64,
                log_packets=False,
            )
        )
    pairs = [(host, number) for number in range(groups) for host in hosts if host != flows[number].source]
    stays: dict[tuple[str, int], tuple[float, float]] = {}
    for pair in generator.sample(pairs, min(len(pairs), int(changes_per_s * seconds / 2))):
        stay_s = generator.uniform(0.1, 0.3) * seconds
        join_s = generator.uniform(0, seconds - stay_s)
        stays[pair] = join_s, join_s + stay_s
    for (host, number), (join_s, leave_s) in stays.items():
        network.join(host, flows[number].address, sources=flows[number].sources, at_s=join_s)
        network.leave(host, flows[number].address, at_s=leave_s)
    before = [(client.requests_sent, client.updates_sent) for client in network.clients.values()]
    found = Churn(len(stays), len(stays), timer_s=parameters.last_member_query_time_ps / PS_PER_S)
    network.run(seconds + found.timer_s + 1)
    found.controller_s = timed.spent_s
    clients = network.clients.values()
    found.requests = sum(client.requests_sent for client in clients) - sum(requests for requests, _ in before)
    found.updates = sum(client.updates_sent for client in clients) - sum(updates for _, updates in before)
    for host, number in pairs:
        _check(network, found, host, flows[number], stays.get((host, number)))
    return found


def _check(network: SimulatedNetwork, found: Churn, host: str, group: _Group, stay: tuple[float, float] | None) -> None:
    got = network.group_statistics(host, group.address)
    name = f"{host} in {group.address}"
    if stay is None:
        if got.received or got.unwanted:
            found.strangers.append(f"{name} never joined: {got}")
        return
    join_s, leave_s = stay
    found.delivered += got.received
    sure = int((leave_s - WIRE_S - join_s - WIRE_S - REACTION_S) * PACKETS_PER_S)
    period_s = 1 / PACKETS_PER_S
    if got.received < sure or got.duplicates or got.out_of_order or got.first_ps is None:
        found.missed.append(f"{name} from {join_s:.3f} to {leave_s:.3f} s, {sure} packets or more: {got}")
        return
    first_s = got.first_ps / PS_PER_S - join_s
    found.first_s = max(found.first_s, first_s)
    if first_s > REACTION_S + WIRE_S + period_s or got.longest_gap_ps > 1.1 * period_s * PS_PER_S:
        found.missed.append(f"{name} from {join_s:.3f} s, the first after {first_s:.3f} s: {got}")
    if got.last_unwanted_ps is not None:
        late_s = got.last_unwanted_ps / PS_PER_S - leave_s
        found.late_s = max(found.late_s, late_s)
        if late_s > found.timer_s + REACTION_S + WIRE_S:
            found.late.append(f"{name} left at {leave_s:.3f} s: {got}")


def main() -> None:
    """Run with the numbers on the command line (groups, changes per s, seconds), and print the results."""
    given = [float(argument) for argument in sys.argv[1:]]
    groups, changes_per_s, seconds = (*given, *(1000, 500, 60)[len(given) :])
    begin = time.perf_counter()
    found = churn("abilene:hosts=3", groups=int(groups), changes_per_s=changes_per_s, seconds=seconds)
    print(f"{groups:.0f} groups, {found.joins} joins and {found.leaves} leaves in {seconds:g} s")
    print(
        f"delivered {found.delivered}; to strangers {len(found.strangers)}, missed {len(found.missed)}, late {len(found.late)}"
    )
    print(
        f"a first packet at most {found.first_s:.3f} s after the join, a last one {found.late_s:.3f} s after the leave"
    )
    print(
        f"the controller: {found.controller_s:.1f} s, so {found.changes_per_s:.0f} joins and leaves/s; "
        f"{found.requests} requests, {found.updates} updates; in all {time.perf_counter() - begin:.1f} s"
    )
    for problem in (*found.strangers, *found.missed, *found.late)[:20]:
        print(problem)
    if found.strangers or found.missed or found.late:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
