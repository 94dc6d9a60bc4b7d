"""Reads the blocks of the documentation's pages: a fence has a language and may have a title."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def included(block: str) -> str:
    """Return a fenced block in which a line ``--8<-- "FILE"`` is replaced by that file of the repository."""
    return re.sub(
        r'^--8<-- "([^"]+)"\n',
        lambda found: (ROOT / found[1]).read_text(encoding="utf-8"),
        block,
        flags=re.MULTILINE,
    )
