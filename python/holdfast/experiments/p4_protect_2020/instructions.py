"""Instructions per packet for Figure 6, counted by valgrind if installed. Unlike times, runs of one build give equal counts.

A process of its own runs all cases under callgrind. Between them it asks for its parent's process id, a call that it
otherwise never makes, and callgrind writes what it has counted at each.

Counted is what the main thread does in Holdfast's native core and in the machine code that it generates. The C library is left out:
most of that is its allocator, and what this does for a packet depends on what the process has allocated before, so it differs from
run to run by several percent of a hop. Copying of memory is left out with it, which is why one size of packets is enough.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from holdfast import _core, interpreter
from holdfast.errors import ExperimentError
from holdfast.experiments import Setting
from holdfast.sweep import Point

PACKETS = 8192
"""Whole rounds, and less than a millisecond of virtual time, the part of a run after which the core looks at the wall clock."""

WARM_UP_PACKETS = 8192
"""The packets before the counted ones, so that what grows with the first packets has its size."""

SIZES_BYTES = (64,)
"""Fewer than are timed: without copying, instructions are the same for all of them, and counting takes minutes."""

COUNTED_OBJECTS = (Path(_core.__file__).name, "???")
"""The native core, and callgrind's name for code that is in no file."""

TIMEOUT_S = 3600

FEWEST_SEEDS = 3
"""With fewer, somebody takes a quick look, and does without what takes minutes."""

MARK = "getppid"
READY = "ready"


def counted(setting: Setting) -> pl.DataFrame:
    """Return a row per packet size with the instructions per packet of every program; no rows without valgrind or with few seeds.

    Where there are none, the console says why.
    """
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
    return setting.one_run().sweep("instructions", f"{__name__}:measure", points)


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Run all programs of both ends under valgrind; return the instructions per packet of each.

    They do not depend on the seed. Raises :class:`ExperimentError` if valgrind fails.
    """
    del seed
    with tempfile.TemporaryDirectory() as directory:
        out, go, said = (Path(directory) / name for name in ("callgrind", "go", "said"))
        command = [
            *("valgrind", "--tool=callgrind", "--instr-atstart=no", "--separate-threads=yes"),
            *(f"--callgrind-out-file={out}", f"--dump-before={MARK}*"),
            *interpreter.module(__name__, *(str(point[name]) for name in ("size_bytes", "packets")), str(go)),
        ]
        # The package is found where this one is, whatever the working directory; hashes and so their tables stay the same.
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONHASHSEED": "0"}
        with said.open("w") as output, (Path(directory) / "errors").open("w+") as errors:
            process = subprocess.Popen(command, stdout=output, stderr=errors, env={**os.environ, **environment})
            try:
                if _is_ready(process, said):
                    _instrument(process.pid)
                    go.touch()
                failed = process.wait(TIMEOUT_S) != 0
            except subprocess.TimeoutExpired:
                raise ExperimentError(f"valgrind was not done after {TIMEOUT_S:g} s") from None
            finally:
                process.kill()
                process.wait()
            if failed:
                errors.seek(0)
                raise ExperimentError(f"valgrind failed: {errors.read().strip()[-300:]}")
        names = said.read_text(encoding="utf-8").splitlines()[1:]
        # The dump before a case's second mark is what the case took. The main thread is the first.
        return {name: _total(Path(f"{out}.{2 * i}-01")) / point["packets"] for i, name in enumerate(names, 1)}


def _is_ready(process: subprocess.Popen[bytes], said: Path) -> bool:
    """Wait until the process has printed that it is ready, and return True; return False if it has ended.

    Raise :class:`ExperimentError` if it is not ready in time.
    """
    deadline = time.monotonic() + TIMEOUT_S
    while READY not in said.read_text(encoding="utf-8"):
        if process.poll() is not None:
            return False
        if time.monotonic() > deadline:
            raise ExperimentError(f"valgrind was not ready after {TIMEOUT_S:g} s")
        time.sleep(0.2)
    return True


def _instrument(pid: int) -> None:
    """Tell callgrind to count from now on; instrumented code is slow, so everything is prepared before.

    Raise :class:`ExperimentError` if callgrind does not obey.
    """
    command = ["callgrind_control", "-i", "on", str(pid)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ExperimentError(f"callgrind_control failed: {done.stderr.strip()[-300:]}")


def _total(dump: Path) -> int:
    """Return the instructions in :data:`COUNTED_OBJECTS` of one of callgrind's files (Callgrind Format Specification).

    A file has an object's full name once, with a number by which later lines refer to the object. A line of costs belongs to the
    object named last, but the line after ``calls=`` has the callee's costs, which are not counted. Raises :class:`ExperimentError`
    if there are none.
    """
    names: dict[str, str] = {}
    total, counts, is_call = 0, False, False
    for line in dump.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"(c?ob)=(\(\d+\))(?: (.+))?$", line):
            kind, number, name = found.groups()
            if name is not None:
                names[number] = Path(name).name
            if kind == "ob":
                counts = names[number] in COUNTED_OBJECTS
        elif line.startswith("calls="):
            is_call = True
        elif re.match(r"[+\-*\d]", line):
            if counts and not is_call:
                total += int(line.split()[-1])
            is_call = False
    if not total:
        raise ExperimentError(f"callgrind's {dump.name} has no instructions of {' or '.join(COUNTED_OBJECTS)}")
    return total


def _parent() -> str:
    """Return the parent's process id as text, without calling ``os.getppid``: that call is the mark for callgrind."""
    return Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1]


def main(arguments: Iterable[str]) -> None:
    """Run every program under callgrind, each with its packets between two marks; print the programs' names.

    Print that all is prepared, then wait until the file with the given name exists.
    """
    from holdfast.experiments.p4_protect_2020 import processing

    size_bytes, packets, go = arguments
    cases = {
        f"{end} {kind}": processing.Case.of(end, kind, int(size_bytes))
        for end, kinds in processing.KINDS.items()
        for kind in kinds
    }
    for case in cases.values():
        case.run(WARM_UP_PACKETS)
    print(READY, flush=True)
    parent = _parent()
    while not Path(go).exists():
        if _parent() != parent:
            sys.exit("the parent process has ended")
        time.sleep(0.02)
    for name, case in cases.items():
        os.getppid()
        case.run(int(packets))
        os.getppid()
        print(name)


if __name__ == "__main__":
    main(sys.argv[1:])
