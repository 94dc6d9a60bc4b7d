"""Admission to discovery during a storm: windows of a second, per line and in all, in bounded memory."""

from __future__ import annotations

from holdfast.subscribers.plane import Line


class Admission:
    """Counts a second's packets of each line. A line that was quiet has all of ``in_all``; a loud one half of it.

    So lines that repeat themselves cannot use up the room of those that begin. Memory: two seconds' lines, at most ``lines`` each.
    """

    def __init__(self, per_line: int, in_all: int, lines: int = 65_536) -> None:
        self._per_line, self._in_all, self._lines = per_line, in_all, lines
        self._now: dict[Line, int] = {}
        self._before: dict[Line, int] = {}
        self._window = 0
        self._taken = 0

    def admits(self, line: Line, now_s: float) -> str | None:
        """Count a packet of an access line (a port and its VLAN tags). Return None if it may pass, else the limit that it exceeds.

        The limits are "lines" (lines with packets in this second), "line-rate" (packets of one line) and "rate" (packets of all).
        """
        if int(now_s) != self._window:
            self._before = self._now if int(now_s) == self._window + 1 else {}
            self._now, self._window, self._taken = {}, int(now_s), 0
        count = self._now.get(line)
        if count is None:
            if len(self._now) >= self._lines:
                return "lines"
            count = 0
        self._now[line] = count + 1
        if count >= self._per_line:
            return "line-rate"
        quiet = count == 0 and line not in self._before
        if self._taken >= (self._in_all if quiet else self._in_all // 2):
            return "rate"
        self._taken += 1
        return None
