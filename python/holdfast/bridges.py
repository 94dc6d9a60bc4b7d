"""Bridges of a network: switches of the kind ``bridge``, which learn where stations are and flood the rest, without any controller.

They are switches like others for links, failures, captures and traces. Controllers are given no clients of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import networkx as nx

from holdfast import _core
from holdfast.errors import NetworkError
from holdfast.p4runtime.client import Client
from holdfast.topology import Topology

GROUP = 1
"""The multicast group of all ports."""


@cache
def program() -> _core.Program:
    """Return the compiled program, which is the same for all bridges."""
    return _core.Program.compile(str(Path(__file__).parent / "bridge.p4"))


def check(topology: Topology) -> None:
    """Raise :class:`NetworkError` if bridges are in a loop, in which a flooded frame would go round for ever."""
    between: nx.MultiGraph[str] = nx.MultiGraph()
    between.add_nodes_from(topology.bridges)
    for link in topology.links:
        if link.a in topology.bridges and link.b in topology.bridges:
            between.add_edge(link.a, link.b)
    if between.number_of_nodes():
        try:
            loop = nx.find_cycle(between)
        except nx.NetworkXNoCycle:
            return
        names = ", ".join(dict.fromkeys(edge[0] for edge in loop))
        raise NetworkError(f"the bridges {names} are in a loop, and have no spanning tree: take a link out")


def start(topology: Topology, clients: Mapping[str, Client]) -> None:
    """Put all ports of each bridge into its group. ``clients``: of the bridges."""
    for name, client in clients.items():
        client.multicast_group(GROUP, [(port, 1) for port in topology.ports(name)])


__all__ = ["check", "program", "start"]
