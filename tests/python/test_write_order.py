"""Controllers write the same in the same order, whatever Python's hash seed is: no set of names decides anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_the_hash_seed_changes_nothing() -> None:
    script = Path(__file__).parent / "write_order.py"
    printed = {
        subprocess.run(
            [sys.executable, str(script)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1
    assert len(printed.pop().splitlines()) == 5
