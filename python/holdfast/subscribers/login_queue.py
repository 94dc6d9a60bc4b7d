"""The order in which logins may be under way: one of each session, and lines take turns. It knows neither packets nor time.

A session that asks again and again has one question under way and one that waits, its last; a line that asks for many sessions
uses up its own share, and the first question of another line never waits for them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Login:
    """A login of a session on a line, in the queue. ``asked`` is the owner's own value."""

    line: Hashable
    session: Hashable
    asked: Any = None


@dataclass(eq=False)
class _Line:
    under_way: OrderedDict[Hashable, Login] = field(default_factory=OrderedDict)
    waiting: OrderedDict[Hashable, Login] = field(default_factory=OrderedDict)


class LoginQueue:
    """Logins of at most ``most`` sessions under way, ``most_of_a_line`` of them of one line, and ``waiting`` that wait for it.

    Besides, each session with a login under way may have one that waits for that. Every operation takes constant time, except
    when all room is taken and a line asks that has no part of it.
    """

    def __init__(self, most: int, most_of_a_line: int, waiting: int) -> None:
        self._most, self._most_of_a_line, self._most_waiting = most, most_of_a_line, waiting
        self._lines: dict[Hashable, _Line] = {}
        self._new: OrderedDict[Hashable, None] = OrderedDict()
        """Lines with a login that waits and none under way, in the order of their turns."""
        self._ready: OrderedDict[Hashable, None] = OrderedDict()
        """Lines with logins under way, and room for more, in the order of their turns."""
        self._next: dict[tuple[Hashable, Hashable], Login] = {}
        self.under_way = 0
        self.waiting = 0

    def __len__(self) -> int:
        return self.under_way + self.waiting + len(self._next)

    def of_session(self, line: Hashable, session: Hashable) -> Login | None:
        """Return a session's login that is under way, or None if there is none."""
        found = self._lines.get(line)
        return None if found is None else found.under_way.get(session)

    def offer(self, login: Login) -> list[tuple[Login, str]]:
        """Add a login. Returns the logins that lose their place, each with the reason; the new login may be among them."""
        line = self._lines.setdefault(login.line, _Line())
        if login.session in line.under_way:
            key = login.line, login.session
            before = self._next.get(key)
            self._next[key] = login
            return [] if before is None else [(before, "superseded")]
        before = line.waiting.get(login.session)
        if before is not None:  # it keeps the place in the line
            line.waiting[login.session] = login
            return [(before, "superseded")]
        lost = self._make_room(line)
        if lost is None:
            self._settle(login.line, line)
            return [(login, "overflow")]
        self._wait(login, line)
        return lost

    def take(self) -> tuple[Login, Login | None] | None:
        """Start the next login and return it, with a login under way that it displaces or None; return None if no login may start.

        If all places are taken, an access line that has none displaces the oldest login of the line that has most.
        """
        turns = self._new or self._ready
        if not turns:
            return None
        loser = None
        if self.under_way >= self._most:
            largest = max(self._lines.values(), key=lambda each: len(each.under_way))
            if turns is self._ready or len(largest.under_way) < 2:
                return None
            loser = next(iter(largest.under_way.values()))
            self.done(loser)
        name = next(iter(turns))
        line = self._lines[name]
        session, login = line.waiting.popitem(last=False)
        self.waiting -= 1
        line.under_way[session] = login
        self.under_way += 1
        turns.pop(name, None)
        self._settle(name, line)
        return login, loser

    def done(self, login: Login) -> None:
        """Remove a login from those under way; if its session has another login, that one is queued now."""
        line = self._lines.get(login.line)
        if line is None or line.under_way.get(login.session) is not login:
            return
        del line.under_way[login.session]
        self.under_way -= 1
        following = self._next.pop((login.line, login.session), None)
        if following is not None:
            self._wait(following, line)
        self._settle(login.line, line)

    def withdraw(self, line: Hashable, session: Hashable) -> Login | None:
        """Remove a session's waiting login. Returns the session's login under way, which goes on until :meth:`done`, or None."""
        found = self._lines.get(line)
        if found is None:
            return None
        self._next.pop((line, session), None)
        if found.waiting.pop(session, None) is not None:
            self.waiting -= 1
            self._settle(line, found)
        return found.under_way.get(session)

    def _make_room(self, line: _Line) -> list[tuple[Login, str]] | None:
        """Remove and return the waiting logins that lose their place, so that ``line`` can add one; None if ``line`` is refused.

        The newest login of the access line that has most leaves, with the reason. The list is empty if there is room.
        """
        if self.waiting < self._most_waiting:
            return []
        largest = max(self._lines.values(), key=lambda each: len(each.waiting))
        if line.waiting or len(largest.waiting) < 2:
            return None
        _, newest = largest.waiting.popitem()
        self.waiting -= 1
        return [(newest, "overflow")]

    def _wait(self, login: Login, line: _Line) -> None:
        line.waiting[login.session] = login
        self.waiting += 1
        self._settle(login.line, line)

    def _settle(self, name: Hashable, line: _Line) -> None:
        """Put an access line at the end of those that take turns if it may start a login; otherwise remove it from them."""
        turns = None
        if line.waiting and len(line.under_way) < self._most_of_a_line:
            turns = self._ready if line.under_way else self._new
            turns.setdefault(name)
        for each in (self._new, self._ready):
            if each is not turns:
                each.pop(name, None)
        if not line.waiting and not line.under_way:
            self._lines.pop(name, None)
