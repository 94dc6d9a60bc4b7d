"""The folder of a comparison's results: each comparison has its own, and a repeated one that of the first time.

A summary names the comparison that it is of. Nothing is run or written here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from holdfast.compare.competitor import Competitor
from holdfast.compare.inputs import Scenario
from holdfast.errors import HoldfastError
from holdfast.result_folder import ResultFolder

KEY = "comparison"
"""What a summary calls the hash."""


def key(scenario: Scenario, mechanisms: Sequence[Competitor], seeds: Sequence[int]) -> str:
    """Return a hash of all that a comparison is of: scenario, failures, mechanisms and seeds."""
    of = (
        scenario.model_dump_json(exclude_defaults=True),
        scenario.failures,
        [(each.name, each.origin) for each in mechanisms],
        list(seeds),
    )
    return hashlib.sha256(json.dumps(of).encode()).hexdigest()[:16]


def found_in(folder: Path) -> str | None:
    """Return the key of the comparison whose results are in a folder, an empty text if nobody knows, or None if there are none."""
    if not (folder / "summary.json").exists():
        return None
    try:
        found = ResultFolder.summary_of(folder).get(KEY)
    except HoldfastError:
        return ""
    return found if isinstance(found, str) else ""


def own(base: Path, wanted: str, *, again: bool) -> Path:
    """Return ``base``, or ``base-2`` and so on: the first without results, or with those of the comparison ``wanted``.

    ``again``: such a comparison measures anew, and gets another folder.
    """
    for number in count(1):
        folder = base if number == 1 else base.with_name(f"{base.name}-{number}")
        known = found_in(folder)
        if known is None or (known == wanted and not again):
            return folder
    raise AssertionError("numbers have no end")
