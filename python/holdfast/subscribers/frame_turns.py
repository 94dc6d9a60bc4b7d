"""Lets frames that wait for the control plane take turns: who sends many waits behind its own frames, and nobody else does.

Access nodes (port and outer tag) take turns, and within each its lines do, since a subscriber may write inner tags of its own and
be many lines. A turn is a frame, whatever its size.
"""

from __future__ import annotations

from collections import OrderedDict, deque

from holdfast.subscribers.counts import Counts
from holdfast.subscribers.plane import AccessNode, Line
from holdfast.subscribers.pppoe import DISCOVERY, Code

_PADI = DISCOVERY + bytes((0x11, Code.PADI))

MOST_WAITING = 20_000
"""Frames that wait, without PADIs."""

MOST_BEGINNINGS = 500
"""PADIs that wait: a subscriber whose PADI is dropped asks again."""

BEFORE_A_BEGINNING = 64
"""Frames that go before a PADI while others wait. A setup takes about a dozen: what began still ends faster than more begins."""


def is_beginning(frame: bytes) -> bool:
    """Return True if a frame is a PADI, which begins a setup (RFC 2516, section 5.1)."""
    return frame[12:16] == _PADI


class FrameTurns:
    """The frames that wait. Each call takes constant time, on average. ``overflowed`` counts frames that lost their place.

    A PADI waits until nothing else does, or :data:`BEFORE_A_BEGINNING` other frames have gone before it: setups that began are
    finished before others begin. Otherwise, with more subscribers than the control plane can serve, all would wait longer than
    they have patience for, and none would come online. It does not wait for ever: otherwise one access node's other frames would
    keep all subscribers from dialling.
    """

    def __init__(self, most: int = MOST_WAITING, most_beginnings: int = MOST_BEGINNINGS) -> None:
        self._others, self._beginnings = _Turns(most), _Turns(most_beginnings)
        self._went_before = 0
        self.overflowed = 0

    def __len__(self) -> int:
        return len(self._others) + len(self._beginnings)

    def put(self, line: Line, frame: bytes) -> tuple[Line, bytes] | None:
        """Queue a frame of an access line; return the (line, frame) that is dropped for it if the queue is full, else None.

        The newest frame of the fullest line of the fullest access node is dropped.
        """
        lost = (self._beginnings if is_beginning(frame) else self._others).put(line, frame)
        self.overflowed += lost is not None
        return lost

    def take(self) -> tuple[Line, bytes] | None:
        """Remove and return the next (line, frame), as access lines and access nodes take turns; None if no frame waits.

        A PADI is next only if no other frame waits, or after :data:`BEFORE_A_BEGINNING` other frames.
        """
        if not len(self._beginnings):
            self._went_before = 0
            return self._others.take()
        if not len(self._others) or self._went_before >= BEFORE_A_BEGINNING:
            self._went_before = 0
            return self._beginnings.take()
        self._went_before += 1
        return self._others.take()


class _Turns:
    """Frames by access node and line, whose orders are those of turns: each that has taken one goes to the end."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._frames: OrderedDict[AccessNode, OrderedDict[Line, deque[bytes]]] = OrderedDict()
        self._nodes: Counts[AccessNode] = Counts()
        self._lines: dict[AccessNode, Counts[Line]] = {}
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    def put(self, line: Line, frame: bytes) -> tuple[Line, bytes] | None:
        """Add a frame; return the (line, frame) that is dropped for it if the queue is full, perhaps this one, else None."""
        node = line.access_node
        self._frames.setdefault(node, OrderedDict()).setdefault(line, deque()).append(frame)
        self._nodes.add(node)
        self._lines.setdefault(node, Counts()).add(line)
        self._waiting += 1
        if self._waiting <= self._most:
            return None
        # Among equals it is the one that comes: none costs its like a place.
        fullest = node if self._nodes[node] == self._nodes.most() else self._nodes.leader()
        lines = self._lines[fullest]
        loser = line if fullest == node and lines[line] == lines.most() else lines.leader()
        lost = self._frames[fullest][loser].pop()
        self._gone(loser)
        return loser, lost

    def take(self) -> tuple[Line, bytes] | None:
        """Remove and return the (line, frame) whose turn it is; None if no frame waits."""
        if not self._frames:
            return None
        node, lines = next(iter(self._frames.items()))
        line, frames = next(iter(lines.items()))
        frame = frames.popleft()
        lines.move_to_end(line)
        self._frames.move_to_end(node)
        self._gone(line)
        return line, frame

    def _gone(self, line: Line) -> None:
        """Count one frame of ``line`` less, and delete the entries of the line and its access node if they have none left."""
        node = line.access_node
        self._waiting -= 1
        self._nodes.remove(node)
        self._lines[node].remove(line)
        if not self._frames[node][line]:
            del self._frames[node][line]
            if not self._frames[node]:
                del self._frames[node], self._lines[node]


__all__ = ["BEFORE_A_BEGINNING", "MOST_BEGINNINGS", "MOST_WAITING", "FrameTurns", "is_beginning"]
