"""The paths of connections: chosen on the links that are up, or checked if somebody else has chosen them. Nothing is written."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.apps.protect.program import MAX_PATHS
from holdfast.control.link_state import LinkState
from holdfast.errors import NetworkError
from holdfast.paths import Disjoint, NoDisjointPathsError, Path, disjoint_paths, path_along

_CACHED = 100_000


class PathPlanner:
    """Chooses disjoint paths. ``count`` and ``disjoint``: the defaults for connections that state neither."""

    def __init__(self, links: LinkState, count: int, disjoint: Disjoint) -> None:
        self._links = links
        self.count = checked_count(count)
        self.disjoint: Disjoint = disjoint
        self._planned: dict[tuple[object, ...], list[Path]] = {}

    def disjoint_paths(self, ingress: str, egress: str, count: int, disjoint: Disjoint) -> list[Path]:
        """Return the cheapest ``count`` disjoint paths over links that are up (:func:`holdfast.paths.disjoint_paths`).

        Raise NoDisjointPathsError if there are none.
        """
        topology, down = self._links.topology, self._links.down
        key = (ingress, egress, count, disjoint, down, len(topology.links))
        if key not in self._planned:
            if len(self._planned) > _CACHED:
                self._planned.clear()
            try:
                self._planned[key] = disjoint_paths(
                    topology, ingress, egress, count, disjoint=disjoint, avoid_links=down
                )
            except NoDisjointPathsError as error:
                if self._links.is_settled:
                    raise
                message = f"{error} (links are still being discovered)"
                raise NoDisjointPathsError(message, error.found, error.cut_nodes, error.cut_links) from None
        return self._planned[key]

    def choose(
        self,
        ingress: str,
        egress: str,
        paths: Sequence[Sequence[str]] | None,
        count: int | None,
        disjoint: Disjoint | None,
    ) -> list[Path]:
        """Return the paths along the nodes in ``paths``; if it is None, the cheapest ``count`` disjoint paths.

        ``count`` and ``disjoint`` may be None for the defaults. Raise :class:`NetworkError` for paths that cannot be used.
        """
        kind = disjoint or self.disjoint
        if paths is None:
            return self.disjoint_paths(ingress, egress, checked_count(count or self.count), kind)
        chosen = [path_along(self._links.topology, nodes) for nodes in paths]
        checked_count(len(chosen))
        for i, path in enumerate(chosen):
            if (path.nodes[0], path.nodes[-1]) != (ingress, egress):
                raise NetworkError(f"{path} does not lead from {ingress} to {egress}")
            for other in chosen[:i]:
                if path.shares(other, kind):
                    raise NetworkError(f"{other} and {path} are not {kind}-disjoint")
        return chosen


def checked_count(count: int) -> int:
    """Return ``count``, a number of paths. Raise :class:`NetworkError` if a connection cannot have that number of paths."""
    if not 2 <= count <= MAX_PATHS:
        raise NetworkError(f"a connection has 2 to {MAX_PATHS} paths, not {count}")
    return count
