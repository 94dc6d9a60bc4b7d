"""Where the nodes of a topology stand in a picture, whoever draws it. Pages need no matplotlib, which takes long to import."""

from __future__ import annotations

import math

import networkx as nx

from holdfast.topology import Position, Topology

SPRING_LAYOUT_NODES = 499
"""The most nodes that are placed by a force-directed layout: for more, networkx needs SciPy, and the drawing would be
unreadable."""


def places_of(topology: Topology) -> dict[str, Position]:
    """Return the position of every node.

    Unless every switch has a position, all switches are laid out anew, always the same way.
    """
    placed = {name: switch.position for name, switch in topology.switches.items() if switch.position is not None}
    if len(placed) < len(topology.switches):
        forces = len(topology.switches) <= SPRING_LAYOUT_NODES
        layout = nx.spring_layout(topology.graph, seed=1) if forces else nx.circular_layout(topology.graph)
        placed = {name: (float(x), float(y)) for name, (x, y) in layout.items()}
    xs, ys = zip(*placed.values(), strict=True) if placed else ((0.0,), (0.0,))
    step = max(max(xs) - min(xs), max(ys) - min(ys)) * 0.18 / math.sqrt(len(placed) or 1) or 1.0
    neighbours: dict[str, int] = {}
    places = dict(placed)
    for name, host in topology.hosts.items():
        if host.position is not None:
            places[name] = host.position
            continue
        switch = topology.attachment(name).switch
        neighbours[switch] = neighbours.get(switch, 0) + 1
        angle = math.radians(205 + 40 * neighbours[switch])
        x, y = placed[switch]
        places[name] = (x + step * math.cos(angle), y + step * math.sin(angle))
    return places
