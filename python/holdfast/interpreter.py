"""Starts processes of our own interpreter. This is the only place that does, so that no file of the working directory runs in one.

``python -m`` and ``python -c`` look for every module in the working directory first (CWE-427): there, a file ``json.py`` of whoever
may write would run with the rights of the process, which is often root. ``-P`` (Python 3.11) leaves that directory out.
``PYTHONPATH`` is kept: the code that this process runs is the code that it starts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path

_SAFE = "PYTHONSAFEPATH"
"""The environment variable that has the effect of Python's option ``-P``, for interpreters that libraries start."""


def module(name: str, *arguments: str) -> list[str]:
    """Return the command line that runs an installed module as a program, with this interpreter and its flags of isolation."""
    return [sys.executable, *_inherited(), "-P", "-m", name, *arguments]


def module_here(name: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module as a program with this interpreter, the user's working directory in its path.

    For commands that are shown to users, not started: modules in the directory can be theirs.
    """
    return [sys.executable, "-m", name, *arguments]


def script(path: str | Path, *arguments: str) -> list[str]:
    """Return the command line of a program that needs the standard library alone; the interpreter ignores ``PYTHON*`` variables."""
    return [sys.executable, "-I", str(path), *arguments]


def _inherited() -> list[str]:
    """Return those of this interpreter's flags (``-I``, ``-E``, ``-s``) that decide where modules are imported from."""
    if sys.flags.isolated:
        return ["-I"]
    chosen = {"-E": sys.flags.ignore_environment, "-s": sys.flags.no_user_site}
    return [flag for flag, given in chosen.items() if given]


class _Process(SpawnProcess):
    """A process of :mod:`multiprocessing` that starts without the working directory. It gets this one's ``sys.path`` afterwards."""

    def start(self) -> None:
        """Start the process as :class:`multiprocessing.Process` does, but without the working directory in its module path."""
        self._before = os.environ.get(_SAFE)
        with _safe():
            super().start()

    def run(self) -> None:
        """Run the target, with the environment variable that :meth:`start` had set for this process restored."""
        if self._before is None:
            os.environ.pop(_SAFE, None)
        super().run()


class _Context(SpawnContext):
    Process = _Process


def context() -> SpawnContext:
    """Return the context in which to make processes of :mod:`multiprocessing`, and start its helper, the resource tracker."""
    with _safe():
        resource_tracker.ensure_running()
    return _Context()


@contextmanager
def _safe() -> Iterator[None]:
    """Set an environment variable so that interpreters started within the context leave the working directory out of their path."""
    before = os.environ.get(_SAFE)
    os.environ[_SAFE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE]
        else:
            os.environ[_SAFE] = before


__all__ = ["context", "module", "module_here", "script"]
