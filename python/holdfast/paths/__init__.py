"""Paths through a topology's switches, and by what rule one of several equally good ones is chosen. Nothing is installed here.

- ``shortest``: the routers' paths. Of equally cheap ones that whose next node comes first in the topology's order, at every node;
  of parallel links the cheapest, or else that which was declared first.
- ``backup``: what an LSP has besides its path: the cheapest path that avoids nodes or links, by Dijkstra's algorithm.
- ``disjoint``: sets of disjoint paths at the least total cost, and what forbids one more. Of equally cheap sets one with the fewest
  links, always the same.
"""

from holdfast.paths.backup import cheapest_path, detour, disjoint_path
from holdfast.paths.disjoint import Disjoint, NoDisjointPathsError, Path, disjoint_paths, ends_of, path_along, path_over
from holdfast.paths.shortest import UNREACHABLE, Hop, ShortestPaths, path_by_cost, path_delay_ms

__all__ = [
    "UNREACHABLE",
    "Disjoint",
    "Hop",
    "NoDisjointPathsError",
    "Path",
    "ShortestPaths",
    "cheapest_path",
    "detour",
    "disjoint_path",
    "disjoint_paths",
    "ends_of",
    "path_along",
    "path_by_cost",
    "path_delay_ms",
    "path_over",
]
