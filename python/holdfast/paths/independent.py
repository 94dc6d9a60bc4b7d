"""Independent trees: two trees towards each destination. The two ways from a node share what the graph makes any two share.

Both ways pass a cut vertex that is between the node and the destination, and both take a bridge; apart from these they have no
node and no link in common. Inside a block (a biconnected component) an st-numbering orders the nodes such that each one has a
neighbour before it and one behind it: one tree descends to the destination, the other ascends to the destination's partner and
crosses the link from there. This is the construction of maximally redundant trees (RFC 7811 has another one, Itai and Rodeh 1988
the first). This module knows no ports and no packets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from holdfast.paths.shortest import Hop, ShortestPaths
from holdfast.topology import Topology

WhichTree = Literal[0, 1]


class IndependentTrees:
    """Two trees towards each destination in the graph of ``paths``. They are computed when they are first needed."""

    def __init__(self, paths: ShortestPaths) -> None:
        self.nodes, self.number = paths.nodes, paths.number
        self._hops = paths.hops
        self._blocks = _blocks(paths.hops)
        self._at: list[list[int]] = [[] for _ in self.nodes]
        for index, block in enumerate(self._blocks):
            for node in sorted(block):
                self._at[node].append(index)
        self._rooted: dict[tuple[int, int], dict[int, tuple[Hop, Hop]]] = {}
        self._known: dict[int, dict[int, tuple[Hop, Hop]]] = {}

    @classmethod
    def of(cls, topology: Topology, unusable: Collection[int] = ()) -> IndependentTrees:
        """Return the trees of a topology's switches, without the links whose indices are in ``unusable``."""
        return cls(ShortestPaths.of(topology, unusable))

    def tree(self, which: WhichTree) -> Tree:
        """Return the first or the second trees of all destinations, as ``which`` says."""
        return Tree(self, which)

    def pair(self, node: int, destination: int) -> tuple[Hop, Hop] | None:
        """Return a node's next hops in the two trees of a destination; None if there is no path, or the node is the destination."""
        if destination not in self._known:
            self._known[destination] = self._towards(destination)
        return self._known[destination].get(node)

    def _towards(self, destination: int) -> dict[int, tuple[Hop, Hop]]:
        """Return both next hops towards a destination, for every node from which there is a path.

        Each block has its own root: the node of the block through which all paths to the destination leave the block.
        """
        pairs: dict[int, tuple[Hop, Hop]] = {}
        seen: set[int] = set()
        waiting = [destination]
        for root in waiting:
            for block in self._at[root]:
                if block not in seen:
                    seen.add(block)
                    if (block, root) not in self._rooted:
                        self._rooted[block, root] = _block_pairs(self._hops, self._blocks[block], root)
                    pairs |= self._rooted[block, root]
                    waiting += sorted(self._blocks[block] - {root})
        return pairs


@dataclass(frozen=True)
class Tree:
    """One of the two trees of every destination."""

    trees: IndependentTrees
    which: WhichTree

    def next_hops(self, node: int, destination: int) -> list[Hop]:
        """Return a list with the node's next hop in this tree; an empty one if there is no path, or the node is the destination."""
        pair = self.trees.pair(node, destination)
        return [] if pair is None else [pair[self.which]]


def _blocks(hops: list[list[Hop]]) -> list[set[int]]:
    """Return the nodes of each biconnected component (Hopcroft and Tarjan), computed without recursion."""
    blocks: list[set[int]] = []
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    for start in range(len(hops)):
        if start in order:
            continue
        order[start] = low[start] = len(order)
        below = [start]
        stack = [(start, -1, iter(hops[start]))]
        while stack:
            node, parent, rest = stack[-1]
            hop = next(rest, None)
            if hop is not None:
                there = hop.neighbour
                if there not in order:
                    order[there] = low[there] = len(order)
                    below.append(there)
                    stack.append((there, node, iter(hops[there])))
                elif there != parent:
                    low[node] = min(low[node], order[there])
                continue
            stack.pop()
            if parent >= 0:
                low[parent] = min(low[parent], low[node])
                if low[node] >= order[parent]:
                    at = below.index(node)
                    blocks.append({parent, *below[at:]})
                    del below[at:]
    return blocks


def _block_pairs(hops: list[list[Hop]], block: set[int], root: int) -> dict[int, tuple[Hop, Hop]]:
    """Return both next hops towards ``root`` of every other node of a block."""
    inside = {node: [hop for hop in hops[node] if hop.neighbour in block] for node in block}
    if len(block) == 2:
        (node,) = block - {root}
        return {node: (inside[node][0], inside[node][min(1, len(inside[node]) - 1)])}
    ordered = _st_order(inside, root)
    position = {node: i for i, node in enumerate(ordered)}
    partner = ordered[-1]
    across = next(hop for hop in inside[partner] if hop.neighbour == root)
    ascends = {partner: across}
    while True:
        pairs, cost = _descend_and_ascend(inside, ordered, position, ascends)
        # A neighbour of the root may take its link to it in the ascending tree, if that is a shorter way than descending by it.
        better = {}
        for node in ordered[1:-1]:
            direct = next((hop for hop in inside[node] if hop.neighbour == root), None)
            if direct is None or node in ascends:
                continue
            others = [
                hop.cost + cost[hop.neighbour][0]
                for hop in inside[node]
                if position[hop.neighbour] < position[node] and hop.link != direct.link
            ]
            if others and min(others) < cost[node][1]:
                better[node] = direct
        if not better:
            return pairs
        first = min(better, key=lambda node: position[node])
        ascends[first] = better[first]


def _descend_and_ascend(
    inside: dict[int, list[Hop]], ordered: list[int], position: dict[int, int], ascends: dict[int, Hop]
) -> tuple[dict[int, tuple[Hop, Hop]], dict[int, tuple[int, int]]]:
    """Return for each node the cheapest (descending, ascending) hops in the order, and their costs."""
    down: dict[int, Hop] = {}
    down_cost, up_cost = {ordered[0]: 0}, {ordered[0]: 0}
    for node in ordered[1:]:
        taken = ascends[node].link if node in ascends else None
        lower = [h for h in inside[node] if position[h.neighbour] < position[node] and h.link != taken]
        down[node] = min(lower, key=lambda hop: (hop.cost + down_cost[hop.neighbour], hop.neighbour, hop.link))
        down_cost[node] = down[node].cost + down_cost[down[node].neighbour]
    pairs = {}
    for node in reversed(ordered[1:]):
        if node in ascends:
            up = ascends[node]
        else:
            higher = [h for h in inside[node] if position[h.neighbour] > position[node]]
            up = min(higher, key=lambda hop: (hop.cost + up_cost[hop.neighbour], hop.neighbour, hop.link))
        up_cost[node] = up.cost + up_cost[up.neighbour]
        pairs[node] = (down[node], up)
    return pairs, {node: (down_cost[node], up_cost[node]) for node in ordered}


def _st_order(inside: dict[int, list[Hop]], root: int) -> list[int]:
    """Return an st-numbering of a biconnected graph of three nodes or more, the root first (Tarjan, "Two streamlined...", 1986)."""
    preorder, parent, low = _depth_first(inside, root)
    partner = preorder[1]
    before, after = {partner: root}, {root: partner}
    minus = {root: True}
    for node in preorder[2:]:
        above = parent[node]
        if minus.get(preorder[low[node]], False):
            _insert(before, after, node, between=(before.get(above), above))
            minus[above] = False
        else:
            _insert(before, after, node, between=(above, after.get(above)))
            minus[above] = True
    ordered = [root]
    while (following := after.get(ordered[-1])) is not None:
        ordered.append(following)
    return ordered


def _insert(before: dict[int, int], after: dict[int, int], node: int, between: tuple[int | None, int | None]) -> None:
    left, right = between
    if left is not None:
        before[node], after[left] = left, node
    if right is not None:
        after[node], before[right] = right, node


def _depth_first(inside: dict[int, list[Hop]], root: int) -> tuple[list[int], dict[int, int], dict[int, int]]:
    """Return the nodes in preorder, their parents, and for each node the least preorder number that its subtree links to."""
    preorder, number = [root], {root: 0}
    parent: dict[int, int] = {}
    low = {root: 0}
    stack: list[tuple[int, Iterable[Hop]]] = [(root, iter(inside[root]))]
    while stack:
        node, rest = stack[-1]
        for hop in rest:
            there = hop.neighbour
            if there not in number:
                number[there] = low[there] = len(preorder)
                preorder.append(there)
                parent[there] = node
                stack.append((there, iter(inside[there])))
                break
            low[node] = min(low[node], number[there]) if there != parent.get(node) else low[node]
        else:
            stack.pop()
            if node in parent:
                low[parent[node]] = min(low[parent[node]], low[node])
    return preorder, parent, low
