"""A directory for ``PATH`` with commands of BMv2's names that run Holdfast."""

from __future__ import annotations

import shlex
from pathlib import Path

from holdfast import interpreter, whole_files

COMMANDS = ("p4c", "p4c-bm2-ss", "p4c-bm2-psa", "simple_switch_grpc", "simple_switch", "simple_switch_CLI")


def write(directory: Path) -> list[Path]:
    """Write the commands into a directory, which is created if it does not exist, and return their paths. Raises OSError."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for command in COMMANDS:
        path = directory / command
        started = shlex.join(interpreter.module("holdfast", command))
        whole_files.write_text(path, f'#!/bin/sh\nexec {started} "$@"\n')
        path.chmod(0o755)
        written.append(path)
    return written


__all__ = ["COMMANDS", "write"]
