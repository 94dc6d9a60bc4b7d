"""Shares the setups that may be under way among lines: who has many gives way to who has few, and none to its like.

Lines with the same outer tag are one access node's, and share as one first: what a subscriber writes as an inner tag into its own
frames makes it many lines there, and no more than one access node.
"""

from __future__ import annotations

from holdfast.subscribers.counts import Counts
from holdfast.subscribers.plane import AccessNode, Line


class SetupTurns:
    """Sessions that have not logged in, by their lines. Each call takes constant time, on average."""

    def __init__(self) -> None:
        self._lines: dict[int, Line] = {}
        self._sessions: dict[Line, dict[int, None]] = {}
        self._nodes: Counts[AccessNode] = Counts()
        self._of_node: dict[AccessNode, Counts[Line]] = {}

    def __contains__(self, session_id: int) -> bool:
        return session_id in self._lines

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, session_id: int, line: Line) -> None:
        """Add a session to those of its access line that are being set up."""
        self._lines[session_id] = line
        self._sessions.setdefault(line, {})[session_id] = None
        self._nodes.add(line.access_node)
        self._of_node.setdefault(line.access_node, Counts()).add(line)

    def discard(self, session_id: int) -> None:
        """Remove a session that has logged in or ended; nothing happens if it is unknown."""
        line = self._lines.pop(session_id, None)
        if line is None:
            return
        del self._sessions[line][session_id]
        if not self._sessions[line]:
            del self._sessions[line]
        self._nodes.remove(line.access_node)
        self._of_node[line.access_node].remove(line)
        if not self._of_node[line.access_node].most():
            del self._of_node[line.access_node]

    def in_favour_of(self, line: Line) -> int | None:
        """Return the session that makes room for a new one of ``line``, or None.

        It is None unless another line or access node has two setups more. The session is the youngest of the fullest line of the
        fullest access node, as its setup has got least far.
        """
        own = line.access_node
        fullest = own if self._nodes.most() < self._nodes[own] + 2 else self._nodes.leader()
        lines = self._of_node.get(fullest)
        if lines is None or (fullest == own and lines.most() < lines[line] + 2):
            return None
        return next(reversed(self._sessions[lines.leader()]))


__all__ = ["SetupTurns"]
