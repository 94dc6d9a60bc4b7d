"""The prompt: reads lines, obeys them, and shows what the verbs say, until ``quit`` or the end of the input.

With prompt_toolkit it has completion and a history; without, or if the input is no terminal, it reads plain lines.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from holdfast.console import controllers
from holdfast.console.session import Result, Session
from holdfast.errors import HoldfastError
from holdfast.terminal import printable, screenful

PROMPT = "holdfast> "

MOST_LINES = 2000
"""Of a result that are shown."""


def show(result: Result) -> None:
    """Print what a verb says."""
    if result.text and not result.shown:
        sys.stdout.write(printable(screenful(result.text, MOST_LINES)) + "\n")
        sys.stdout.flush()


def _say(error: BaseException) -> None:
    sys.stdout.flush()
    text = controllers.of_user(error) or (
        f"error: {error}" if isinstance(error, HoldfastError) else controllers.told(error)
    )
    sys.stderr.write(printable(screenful(text)) + "\n")
    sys.stderr.flush()


def run(session: Session) -> None:
    """Obey lines until ``quit``, or the end of the input. Ctrl-C ends a verb, not the session."""
    read = _reader(session)
    session.echo = lambda _, result: show(result)
    while not session.ended:
        try:
            _show_failures(session)
            line = read()
        except KeyboardInterrupt:
            if session.ended or sys.stdin.isatty():
                continue
            raise  # there is nobody who would type another line
        except EOFError:
            return
        try:
            show(session.do(line))
        except KeyboardInterrupt:
            sys.stdout.write("\ninterrupted\n")
        except Exception as error:  # noqa: BLE001 - a controller is the user's code, and its failure ends no session
            _say(error)


def _show_failures(session: Session) -> None:
    """Show what controllers have raised since the last verb."""
    try:
        session.clock.check()
    except Exception as error:  # noqa: BLE001 - a controller is the user's code
        _say(error)


def _reader(session: Session) -> Callable[[], str]:
    """Return a function that reads a line; it raises EOFError at the end of the input."""
    if not sys.stdin.isatty():
        lines = iter(sys.stdin.readline, "")

        def plain() -> str:
            for line in lines:
                return str(line)
            raise EOFError

        return plain
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import FileHistory, InMemoryHistory
    except ImportError:
        return _plain
    history: Any = InMemoryHistory()
    if (file := _history_file()) is not None:
        history = FileHistory(str(file))
    prompt: Any = PromptSession(history=history, completer=_completer(session), complete_while_typing=False)
    return lambda: str(prompt.prompt(PROMPT))


def _plain() -> str:
    return input(PROMPT)


def _history_file() -> Path | None:
    """Return the file of the lines of former sessions, or None if the user has no place for it."""
    base = os.environ.get("XDG_STATE_HOME") or (Path.home() / ".local/state")
    folder = Path(base) / "holdfast"
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = folder / "history"
        file.touch(mode=0o600)
        return file
    return None


def _completer(session: Session) -> Any:
    from prompt_toolkit.completion import Completer, Completion
    from prompt_toolkit.document import Document

    class Verbs(Completer):
        """Completes words of verbs from the session's grammar."""

        def get_completions(self, document: Document, complete_event: object) -> Iterator[Completion]:
            begun, words = session.grammar.complete(document.text_before_cursor)
            for word in words:
                yield Completion(word if word.endswith("/") else f"{word} ", start_position=-len(begun))

    return Verbs()


__all__ = ["run", "show"]
