"""Shares the setups that may be under way among lines: who has many gives way to who has few, and none to its like.

Lines with the same outer tag are one access node's, and share as one first: what a subscriber writes as an inner tag into its own
frames makes it many lines there, and no more than one access node.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from holdfast.subscribers.plane import Line

_Key = TypeVar("_Key", bound=Hashable)
_Node = tuple[int, int]


class SetupTurns:
    """Sessions that have not logged in, by their lines. Each call takes constant time, on average."""

    def __init__(self) -> None:
        self._lines: dict[int, Line] = {}
        self._sessions: dict[Line, dict[int, None]] = {}
        self._nodes: _Counts[_Node] = _Counts()
        self._of_node: dict[_Node, _Counts[Line]] = {}

    def __contains__(self, session_id: int) -> bool:
        return session_id in self._lines

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, session_id: int, line: Line) -> None:
        """Add a session to those of its line that are being set up."""
        self._lines[session_id] = line
        self._sessions.setdefault(line, {})[session_id] = None
        self._nodes.add(_node(line))
        self._of_node.setdefault(_node(line), _Counts()).add(line)

    def discard(self, session_id: int) -> None:
        """Remove a session that has logged in or ended; nothing happens if it is unknown."""
        line = self._lines.pop(session_id, None)
        if line is None:
            return
        del self._sessions[line][session_id]
        if not self._sessions[line]:
            del self._sessions[line]
        self._nodes.remove(_node(line))
        self._of_node[_node(line)].remove(line)
        if not self._of_node[_node(line)].most():
            del self._of_node[_node(line)]

    def in_favour_of(self, line: Line) -> int | None:
        """Return the session that makes room for a new one of ``line``, or None.

        It is None unless another line or access node has two setups more. The session is the youngest of the fullest line of the
        fullest access node, as its setup has got least far.
        """
        own = _node(line)
        fullest = own if self._nodes.most() < self._nodes[own] + 2 else self._nodes.leader()
        lines = self._of_node.get(fullest)
        if lines is None or (fullest == own and lines.most() < lines[line] + 2):
            return None
        return next(reversed(self._sessions[lines.leader()]))


class _Counts(Generic[_Key]):
    """Counts of keys, and the key that has most."""

    def __init__(self) -> None:
        self._counts: dict[_Key, int] = {}
        self._by_count: dict[int, dict[_Key, None]] = {}
        self._most = 0

    def __getitem__(self, key: _Key) -> int:
        return self._counts.get(key, 0)

    def most(self) -> int:
        """Return the largest count."""
        return self._most

    def leader(self) -> _Key:
        """Return a key with the largest count, which is not 0."""
        return next(iter(self._by_count[self._most]))

    def add(self, key: _Key) -> None:
        """Add one to the count of ``key``."""
        self._move(key, self[key] + 1)

    def remove(self, key: _Key) -> None:
        """Subtract one from the count of ``key``."""
        self._move(key, self[key] - 1)

    def _move(self, key: _Key, count: int) -> None:
        before = self._counts.pop(key, 0)
        if before:
            del self._by_count[before][key]
            if not self._by_count[before]:
                del self._by_count[before]
        if count:
            self._counts[key] = count
            self._by_count.setdefault(count, {})[key] = None
        if count > self._most or self._most not in self._by_count:
            self._most = count  # counts change by one


def _node(line: Line) -> _Node:
    return line.port, line.s_tag


__all__ = ["SetupTurns"]
