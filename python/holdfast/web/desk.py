"""Obeys the verbs of all tabs and tells them what came of it. One for a session; it knows no framework.

Each verb runs in a thread, as at a prompt of its own: a ping that waits keeps no other button from working.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from holdfast.console import controllers
from holdfast.console.session import Result
from holdfast.errors import HoldfastError
from holdfast.terminal import printable, screenful

MOST_AT_A_TIME = 32
"""Verbs of the page that run at the same time."""

MOST_LINES = 400
"""Of a result that are shown."""


MOST_KEPT = 30
"""Lines with their answers, for tabs that are opened later."""


@dataclass(frozen=True)
class Said:
    """A line that was obeyed, or refused, and what is said of it."""

    line: str
    text: str
    ok: bool
    result: Result | None = None


class Obeys(Protocol):
    """What obeys lines: a session, or the verbs of a switch."""

    ended: bool
    listeners: list[Callable[[str, Result], None]]

    def do(self, line: str) -> Result:
        """Obey a line. Raises a HoldfastError with one sentence."""


class Desk:
    """Runs lines, and calls ``listeners`` with each line that was obeyed, also at the prompt; in any thread."""

    def __init__(self, session: Obeys) -> None:
        self.session = session
        self.listeners: list[Callable[[Said], None]] = []
        self._last: deque[Said] = deque(maxlen=MOST_KEPT)
        self._telling = threading.Lock()
        self._room = threading.BoundedSemaphore(MOST_AT_A_TIME)
        self._mine = threading.local()
        session.listeners.append(self._heard)

    def _heard(self, line: str, result: Result) -> None:
        """Tell of a line that the prompt has run."""
        if not getattr(self._mine, "runs", False):
            self._tell(Said(line, printable(screenful(result.text, MOST_LINES)), result.ok, result))

    def _tell(self, said: Said) -> None:
        with self._telling:
            self._last.append(said)
        for listener in list(self.listeners):
            listener(said)

    def last(self) -> list[Said]:
        """Return what was said last, for a tab that is opened later."""
        with self._telling:
            return list(self._last)

    def run(self, line: str, done: Callable[[Said], None]) -> None:
        """Obey a line in a thread, and call ``done`` there in the end."""
        if not self._room.acquire(blocking=False):
            done(Said(line, f"{MOST_AT_A_TIME} verbs run already", ok=False))
            return
        threading.Thread(target=self._run, args=(line, done), name="holdfast-verb", daemon=True).start()

    def _run(self, line: str, done: Callable[[Said], None]) -> None:
        try:
            said = self.obey(line)
        finally:
            self._room.release()
        done(said)
        self._tell(said)
        if self.session.ended:
            # The main thread waits for lines or for a signal; this is the one that ends both.
            os.kill(os.getpid(), signal.SIGTERM)

    def obey(self, line: str) -> Said:
        """Obey a line here, and return what is said of it."""
        self._mine.runs = True
        try:
            result = self.session.do(line)
        except Exception as error:  # noqa: BLE001 - a controller is the user's code, and its failure ends no page
            text = controllers.of_user(error) or (
                str(error) if isinstance(error, HoldfastError) else controllers.told(error)
            )
            return Said(line, printable(screenful(text, MOST_LINES)), ok=False)
        finally:
            self._mine.runs = False
        return Said(line, printable(screenful(result.text, MOST_LINES)), result.ok, result)


__all__ = ["Desk", "Obeys", "Said"]
