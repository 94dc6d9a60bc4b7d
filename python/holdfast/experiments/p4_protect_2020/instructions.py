"""Instructions per packet for Figure 6, counted by valgrind where it is installed: the same on every run, unlike times.

A process of its own runs all cases under callgrind. Between them it asks for its parent's process id, a call that it
otherwise never makes, and callgrind writes what it has counted at each.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from holdfast.errors import ExperimentError
from holdfast.experiments import Setting
from holdfast.experiments.p4_protect_2020 import setup
from holdfast.sweep import Point

PACKETS = 4096
"""Whole rounds of 256."""

SIZES_BYTES = (64,)
"""Fewer than are timed: but for copying, instructions are the same for all of them, and counting takes minutes."""

FEWEST_SEEDS = 3
"""With fewer, somebody takes a quick look, and does without what takes minutes."""

MARK = "getppid"


def counted(setting: Setting) -> pl.DataFrame:
    """One row per size with the instructions of every case; no row where there is no valgrind, or with few seeds."""
    why = None
    if shutil.which("valgrind") is None:
        why = "valgrind is not installed"
    elif len(setting.seeds) < FEWEST_SEEDS:
        why = f"that takes minutes, and {FEWEST_SEEDS} seeds at least"
    if why is not None:
        if setting.console is not None:
            setting.console.print(f"instructions are not counted: {why}", highlight=False)
        return pl.DataFrame(schema={"size_bytes": pl.Int64})
    points: list[Point] = [{"size_bytes": size, "packets": PACKETS} for size in SIZES_BYTES]
    return setup.one_run(setting).sweep("instructions", f"{__name__}:measure", points)


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Instructions per packet of each kind at both ends. Nothing depends on the seed."""
    del seed
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "callgrind"
        command = [
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={out}",
            f"--dump-before={MARK}*",
            sys.executable,
            "-m",
            __name__,
            *(str(point[name]) for name in ("size_bytes", "packets")),
        ]
        # The package is found where this one is, whatever the working directory; hashes and so their tables stay the same.
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONHASHSEED": "0"}
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, **environment}, check=False, timeout=3600
        )
        if done.returncode:
            raise ExperimentError(f"valgrind failed: {done.stderr.strip()[-300:]}")
        names = done.stdout.splitlines()
        totals = [_total(Path(f"{out}.{number}")) for number in range(1, 2 * len(names) + 1)]
    # The dump before a case's second mark is what the case took.
    return {name: totals[2 * i + 1] / point["packets"] for i, name in enumerate(names)}


def _total(dump: Path) -> int:
    found = re.search(r"^(?:summary|totals): (\d+)", dump.read_text(), re.MULTILINE)
    if found is None:
        raise ExperimentError(f"callgrind's {dump.name} has no total")
    return int(found[1])


def main(arguments: Iterable[str]) -> None:
    """Under callgrind: every case once, its packets between two marks; prints the names of the cases."""
    from holdfast.experiments.p4_protect_2020 import processing

    size_bytes, packets = map(int, arguments)
    for end, kinds in processing.KINDS.items():
        for kind in kinds:
            case = processing.Case.of(end, kind, size_bytes)
            case.run(256)
            os.getppid()
            case.run(packets)
            os.getppid()
            print(f"{end} {kind}")


if __name__ == "__main__":
    main(sys.argv[1:])
