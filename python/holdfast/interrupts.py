"""Handles Ctrl-C in the command. It imports very little, because even the first import can be interrupted."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

STATUS = 130
"""The exit status of a command that was interrupted, as shells define it: 128 plus the number of SIGINT."""


def _end(_signal: int, _frame: FrameType | None) -> NoReturn:
    os.write(2, b"interrupted\n")
    os._exit(STATUS)


def end_quietly() -> None:
    """End the process at once on Ctrl-C from now on, for as long as nothing must be cleaned up.

    A KeyboardInterrupt instead could be raised in the middle of an import, and show as a traceback or be lost. A process that was
    started with Ctrl-C ignored, as in the background of a script, keeps ignoring it.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _end)


@contextmanager
def raised() -> Iterator[None]:
    """Raise KeyboardInterrupt on Ctrl-C and SIGTERM within the context, so that code there can clean up, such as namespaces.

    In a process that ignores Ctrl-C, Ctrl-C stays ignored.
    """

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    if before[signal.SIGINT] is signal.SIG_IGN:
        del before[signal.SIGINT]
    for number in before:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
