"""Repair: the lost half of a path set gets another path while the other half carries on, and returns when the first is back.

1+1 survives one failure by itself; after it, it is as vulnerable as plain routing, until somebody finds another path for the copy
that is lost. Which links are down is told here, not found out; the tunnels move a copy without losing packets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from holdfast.apps.protect.changes import Changes, Transactions
from holdfast.apps.protect.connection import Copy, PathSet
from holdfast.apps.protect.tunnels import Tunnels
from holdfast.control.link_state import LinkState
from holdfast.controller import ControlPlane
from holdfast.p4runtime.errors import P4RuntimeError
from holdfast.paths import NoDisjointPathsError, Path, disjoint_paths


@dataclass(frozen=True)
class Repair:
    """The repair of one copy of a path set. ``reason``: ``"failed"``, ``"restored"``, or why there is no other path."""

    time_ps: int
    path_set: str
    number: int
    before: Path
    after: Path | None
    """None: there is no other path; the copy is still sent where it was."""
    reason: str


class Repairer:
    """Moves copies between paths.

    ``wait_to_restore_ms``: the time that the preferred paths must have been whole before copies return to them (ITU-T G.808.1);
    None: they stay where they are.
    """

    def __init__(
        self,
        plane: ControlPlane,
        links: LinkState,
        tunnels: Tunnels,
        transactions: Transactions,
        wait_to_restore_ms: float | None,
    ) -> None:
        self._plane = plane
        self._links = links
        self._tunnels = tunnels
        self._transactions = transactions
        self._is_due = False
        self._wait_to_restore_ms = wait_to_restore_ms
        self._waiting: dict[PathSet, int] = {}
        """The number of the wait, by path set, after which the path set returns to its preferred paths."""
        self._waits = 0
        self._hopeless: dict[PathSet, tuple[frozenset[int], int]] = {}
        """Path sets that no path could be found for, with the links that were down then, and how many there were in all."""
        self._suspects: dict[PathSet, list[Path]] = {}
        """Paths by path set that delivered nothing although none of their links is known to be down."""
        self.repairs: list[Repair] = []

    def suspect(self, path_set: PathSet, path: Path) -> None:
        """Mark a path of a path set as unusable though none of its links is known to be down; the next run replaces it."""
        suspects = self._suspects.setdefault(path_set, [])
        if path not in suspects:
            suspects.append(path)

    def run_soon(self) -> None:
        """Schedule one call of the repair for all changes of this moment: when a node fails, each of its neighbours reports it."""
        if not self._is_due:
            self._is_due = True
            self._plane.call_later(0, self._run)

    def _run(self) -> None:
        """Move each path set with a failed path to other paths, and schedule the return of the others to their preferred paths."""
        self._is_due = False
        down = self._links.down
        path_sets = list(self._tunnels.path_sets.values())
        for gone in (self._suspects.keys() | self._hopeless.keys()) - set(path_sets):
            self._suspects.pop(gone, None)
            self._hopeless.pop(gone, None)
        for path_set in path_sets:
            bad = down.union(*(path.links for path in self._suspects.get(path_set, ())))
            if any(not bad.isdisjoint(path.links) for path in path_set.paths):
                self._waiting.pop(path_set, None)
                self._repair(path_set, bad)
            else:
                self._hopeless.pop(path_set, None)
                self._consider_return(path_set, bad)

    def _repair(self, path_set: PathSet, down: frozenset[int]) -> None:
        situation = down, len(self._links.topology.links)
        if self._hopeless.get(path_set) == situation:
            return
        try:
            paths = self._replacements(path_set, down)
        except NoDisjointPathsError as error:
            self._hopeless[path_set] = situation
            for number, path in enumerate(path_set.paths, start=1):
                if not down.isdisjoint(path.links):
                    self._note(path_set, number, path, None, str(error))
            return
        self._hopeless.pop(path_set, None)
        self._move(path_set, paths, "failed")

    def _replacements(self, path_set: PathSet, down: frozenset[int]) -> list[Path]:
        """Return other paths in place of the failed ones, disjoint from the intact ones.

        If there are none, new paths for all copies.
        """
        topology, kind = self._links.topology, path_set.disjoint
        whole = {i: path for i, path in enumerate(path_set.paths) if down.isdisjoint(path.links)}
        lost = len(path_set.paths) - len(whole)
        try:
            found = disjoint_paths(
                topology,
                path_set.ingress,
                path_set.egress,
                lost,
                disjoint=kind,
                avoid_nodes=frozenset(chain(*(p.interior for p in whole.values()))) if kind == "node" else frozenset(),
                avoid_links=down.union(*(path.links for path in whole.values())),
            )
        except NoDisjointPathsError:
            if not whole:
                raise
            everything = disjoint_paths(
                topology, path_set.ingress, path_set.egress, len(path_set.paths), disjoint=kind, avoid_links=down
            )
            whole = {i: path for i, path in whole.items() if path in everything}
            found = [path for path in everything if path not in whole.values()]
        following = iter(found)
        return [whole[i] if i in whole else next(following) for i in range(len(path_set.paths))]

    def _consider_return(self, path_set: PathSet, down: frozenset[int]) -> None:
        if self._wait_to_restore_ms is None or path_set.paths == list(path_set.preferred):
            return
        if any(not down.isdisjoint(path.links) for path in path_set.preferred):
            self._waiting.pop(path_set, None)
        elif path_set not in self._waiting:
            self._waits += 1
            self._waiting[path_set] = self._waits
            self._plane.call_later(self._wait_to_restore_ms, partial(self._return, path_set, self._waits))

    def _return(self, path_set: PathSet, wait: int) -> None:
        """Move a path set back to its preferred paths.

        Do nothing if ``wait`` is not its present wait, as something has failed since.
        """
        if self._waiting.get(path_set) != wait:
            return
        del self._waiting[path_set]
        if path_set.users:
            self._move(path_set, path_set.preferred, "restored")

    def _move(self, path_set: PathSet, paths: Sequence[Path], reason: str) -> None:
        before = path_set.paths
        try:
            with self._transactions.changes() as changes:
                left = self._tunnels.move(changes, path_set, paths)
                changes.afterwards(lambda: self._transactions.when_drained(partial(self._drop, path_set, left)))
        except P4RuntimeError as error:
            # A switch refuses, or is out of reach; the next event is the next chance.
            for number, (old, new) in enumerate(zip(before, paths, strict=True), start=1):
                if old != new:
                    self._note(path_set, number, old, None, str(error))
            return
        for number, (old, new) in enumerate(zip(before, paths, strict=True), start=1):
            if old != new:
                self._note(path_set, number, old, new, reason)

    def _drop(self, path_set: PathSet, left: Sequence[Copy], changes: Changes) -> None:
        for copy in left:
            self._tunnels.drop_copy(changes, path_set, copy)

    def _note(self, path_set: PathSet, number: int, before: Path, after: Path | None, reason: str) -> None:
        self.repairs.append(Repair(self._plane.now_ps, str(path_set), number, before, after, reason))
