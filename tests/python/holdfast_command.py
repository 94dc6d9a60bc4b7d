"""Runs the command line like a user, in a process of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from holdfast import interpreter

COMMAND = tuple(interpreter.module("holdfast"))


def holdfast(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=300,
        check=False,
    )
