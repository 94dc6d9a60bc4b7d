"""Costs of multicast besides packets: bytes against the best tree, state in the core, messages of a join.

- *best tree*: of each flow the smaller one, by links between switches, of the routers' shortest-path tree and Kou's
  approximation of a Steiner tree (at most twice the smallest; Acta Informatica 15, 1981). Its bytes are those of the flow's
  packets, once on each of its links.
- *core state*: entries and replicas that a switch holds for groups that neither begin nor end at it. BIER's is the same for any
  number of groups.
- *join*: after the traffic each receiver in turn leaves, and what the controller writes when it joins again is counted.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import networkx as nx
from networkx.algorithms.approximation import steiner_tree

from holdfast.compare import multicast_traffic
from holdfast.compare.mechanism import Built, Mechanism
from holdfast.compare.scenario import Scenario
from holdfast.compare.traffic_file import Ends, UdpEntry
from holdfast.network import Network
from holdfast.paths import path_by_cost
from holdfast.topology import Topology

WIRE_OVERHEAD_BYTES = 8 + 20 + 14 + 24
"""The bytes around a payload on the wire: UDP, IPv4 and Ethernet headers, and what the physical layer adds to a frame."""

GROUP_COUNTS = (1, 3, 10, 30, 100, 300, 1000)
"""The numbers of groups for which the curve of the core state is computed."""

JOINS = 40
"""Receivers whose joins are measured, at most."""


def best_tree_bytes(scenario: Scenario) -> float | None:
    """Return the bytes that the best multicast trees of all flows would carry in a run.

    None if there are TCP flows or pings, whose packets are not known beforehand.
    """
    if scenario.traffic.tcp or scenario.traffic.ping:
        return None
    return sum(
        _tree_bytes(scenario, entry, ends) for entry in scenario.traffic.udp for ends in scenario.traffic.ends(entry)
    )


def _tree_bytes(scenario: Scenario, entry: UdpEntry, ends: Ends) -> float:
    lasts_s = scenario.times.end_s - entry.begins_s(scenario.times.failure_s)
    packets = entry.packets_per_s * lasts_s
    return packets * (entry.payload_bytes + WIRE_OVERHEAD_BYTES) * best_tree_links(scenario.topology, ends)


def best_tree_links(topology: Topology, ends: Ends) -> int:
    """Return the number of links between switches of the smaller of two trees: of shortest paths, and of Steiner.

    The Steiner tree is Kou's approximation.
    """
    root, *leaves = (topology.attachment(host).switch for host in ends.hosts)
    shortest = {hop for leaf in leaves for hop in pairwise(path_by_cost(topology, root, leaf))}
    graph = nx.Graph(topology.graph.subgraph(topology.switches))
    steiner = steiner_tree(graph, [root, *leaves], method="kou") if set(leaves) - {root} else nx.Graph()
    return min(len(shortest), steiner.number_of_edges())


@dataclass(frozen=True)
class CoreState:
    """Entries and replicas per switch with so many groups."""

    groups: int
    mean: float
    most: int


@lru_cache(maxsize=2)
def _drawn(topology: Topology, count: int) -> tuple[Ends, ...]:
    return tuple(multicast_traffic.draw(topology, count))


def core_curve(topology: Topology, mechanism: Mechanism) -> list[CoreState]:
    """Return the state in the core's switches for growing numbers of groups, which are drawn as for the default traffic.

    It is empty if the mechanism does not say what state it needs.
    """
    if mechanism.core_state is None:
        return []
    drawn = _drawn(topology, GROUP_COUNTS[-1])
    return [_core(mechanism.core_state(topology, drawn[:count]), count) for count in GROUP_COUNTS]


def _core(states: Sequence[int], groups: int) -> CoreState:
    return CoreState(groups, statistics.fmean(states), max(states))


def join_cost(network: Network, built: Built, flows: Sequence[Ends]) -> tuple[float | None, float | None]:
    """Return (mean updates, mean write requests) that a join of one receiver causes in all switches together.

    Receivers leave and join again; all are members at the end. (None, None) if the mechanism does not learn of joins from its
    controller.
    """
    pairs = [(ends, receiver) for ends in flows if ends.group is not None for receiver in ends.receivers]
    if built.membership is None or not pairs:
        return None, None
    measured = pairs[:: -(-len(pairs) // JOINS)]
    updates, requests = 0, 0
    for ends, receiver in measured:
        built.membership(ends, receiver, False)
        before = [(client.updates_sent, client.requests_sent) for client in network.clients.values()]
        built.membership(ends, receiver, True)
        for client, (updates_before, requests_before) in zip(network.clients.values(), before, strict=True):
            updates += client.updates_sent - updates_before
            requests += client.requests_sent - requests_before
    return updates / len(measured), requests / len(measured)
