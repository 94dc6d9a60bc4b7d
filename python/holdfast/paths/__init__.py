"""Paths through a topology's switches, and the tie-breaks between equally good ones. This package installs nothing.

- ``shortest``: the paths of routers. Of equally cheap paths, every node chooses the one whose next node comes first in the
  topology's order; of parallel links it chooses the cheapest, and of equally cheap ones the link that was declared first.
- ``backup``: backup paths and detours of LSPs: the cheapest path that avoids nodes or links, by Dijkstra's algorithm.
- ``independent``: two trees towards each destination whose ways share nothing that the graph does not make them share.
- ``disjoint``: sets of disjoint paths with the least total cost, and the cut that prevents one more. Of equally cheap sets it
  chooses one with the fewest links, always the same.
- ``delivery``: the trees that the routers' paths from one switch make.
"""

from holdfast.paths.backup import cheapest_path, detour, disjoint_path
from holdfast.paths.delivery import Branch, shortest_path_tree
from holdfast.paths.disjoint import Disjoint, NoDisjointPathsError, Path, disjoint_paths, ends_of, path_along, path_over
from holdfast.paths.independent import IndependentTrees
from holdfast.paths.shortest import UNREACHABLE, Hop, ShortestPaths, next_on_path, path_by_cost, path_delay_ms

__all__ = [
    "UNREACHABLE",
    "Branch",
    "Disjoint",
    "Hop",
    "IndependentTrees",
    "NoDisjointPathsError",
    "Path",
    "ShortestPaths",
    "cheapest_path",
    "detour",
    "disjoint_path",
    "disjoint_paths",
    "ends_of",
    "next_on_path",
    "path_along",
    "path_by_cost",
    "path_delay_ms",
    "path_over",
    "shortest_path_tree",
]
