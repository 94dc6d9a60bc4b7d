"""Delivery trees: from a root to some switches, along the paths of routers. No groups, ports or tables here.

The paths of :class:`~holdfast.paths.shortest.ShortestPaths` from one switch make a tree: where two of them meet, both have the same
way from the root, as every node takes the first of its equally good next hops.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from holdfast.paths.shortest import ShortestPaths


@dataclass
class Branch:
    """A switch of a tree, by its links in the tree (indices): the one towards the root (None at the root), and the others."""

    incoming: int | None
    outgoing: list[int] = field(default_factory=list)


def shortest_path_tree(paths: ShortestPaths, root: str, leaves: Iterable[str]) -> dict[str, Branch]:
    """Return the tree of shortest paths from ``root`` to ``leaves``: a branch for each switch by name, the root first.

    Leaves that no path reaches are left out; the root is always in the tree.
    """
    tree = {root: Branch(None)}
    for leaf in leaves:
        node, target = paths.number[root], paths.number[leaf]
        while (hop := paths.next_hop(node, target)) is not None:
            here, there = paths.nodes[node], paths.nodes[hop.neighbour]
            if there not in tree:
                tree[there] = Branch(hop.link)
                tree[here].outgoing.append(hop.link)
            node = hop.neighbour
    return tree
