"""Runs the command line like a user: in this process, or in one of its own where the process is what a test is about.

A process takes a second or two of the processor for imports before its first line, so most tests call :func:`holdfast`. What reads
users' code, which a process imports once, is interrupted, or writes to what is no file needs :func:`holdfast_process`.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from holdfast import __main__, interpreter

COMMAND = tuple(interpreter.module("holdfast"))


def holdfast_process(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=300,
        check=False,
    )


def holdfast(
    *arguments: str, cwd: Path | None = None, stdin: str = "", together: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run the command in this process, and return its status and what it wrote; an exception that it does not handle is raised.

    ``together``: what it wrote to standard error is in its output, where a terminal would show it.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    err = out if together else err
    status = 0
    with _as_before(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        sys.stdin, sys.argv = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"), ["holdfast", *arguments]
        if cwd is not None:
            os.chdir(cwd)
        try:
            __main__.main()
        except SystemExit as end:
            assert end.code is None or isinstance(end.code, int)
            status = end.code or 0
    said = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    said[1] = "" if together else said[1]
    return subprocess.CompletedProcess(arguments, status, *said)


@contextlib.contextmanager
def _as_before() -> Iterator[None]:
    """Give back what the command changes of the process that it runs in: signals, directory, environment, path of modules."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    directory, environment, path = Path.cwd(), dict(os.environ), list(sys.path)
    stdin, argv = sys.stdin, sys.argv
    try:
        yield
    finally:
        sys.stdin, sys.argv = stdin, argv
        sys.path[:] = path
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(directory)
        for number, handler in handlers.items():
            signal.signal(number, handler)
