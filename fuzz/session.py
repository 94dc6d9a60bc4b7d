"""Options of all fuzzers in Python: their time, their seed, and the folder of findings."""

from __future__ import annotations

import os
import sys
import time
import traceback
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parent.parent


class Session:
    """A run for the seconds of the first argument, with the seed ``FUZZ_SEED``."""

    def __init__(self, name: str, unit: str) -> None:
        self.name, self.unit = name, unit
        self.seed = int(os.environ.get("FUZZ_SEED", time.time_ns() % (1 << 32)))
        self.random = Random(self.seed)
        self.count = 0
        self._end = time.monotonic() + float(sys.argv[1])

    def goes_on(self) -> bool:
        """Count a step, and return True until the session's time is over."""
        self.count += 1
        return time.monotonic() < self._end

    def found(self, what: bytes) -> int:
        """Write the input ``what`` and the current exception to a file of findings; return the exit status 1."""
        findings = Path(os.environ.get("FUZZ_FINDINGS", ROOT / "target/fuzz/findings"))
        findings.mkdir(parents=True, exist_ok=True)
        path = findings / f"{self.name}-{self.seed}-{self.count}"
        path.write_bytes(what + b"\n# " + traceback.format_exc().replace("\n", "\n# ").encode())
        print(f"{self.name}: {self.unit} {self.count} with FUZZ_SEED={self.seed}, see {path}", file=sys.stderr)
        traceback.print_exc()
        return 1

    def nothing_found(self, more: str) -> int:
        """Print the number of steps and that nothing was found; return the exit status 0."""
        print(f"{self.name}: {self.count - 1} {self.unit}s (seed {self.seed}), {more}, nothing found")
        return 0
