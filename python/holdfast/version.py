"""The version, with the commit where it is known: in a wheel of ``make release``, and in a checkout."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

from holdfast import _core

ROOT = Path(__file__).parents[2]
"""The root directory of the repository, if the package is installed from it in editable mode."""


def version() -> str:
    """Return the package's version, followed by its commit in brackets, which ends in "-dirty" if files were changed since."""
    # Each command imports this module, and few ask.
    from importlib import metadata

    number = metadata.version("holdfast")
    commit = _core.COMMIT or _of_checkout()
    return number if commit is None else f"{number} ({commit})"


def _of_checkout() -> str | None:
    """Return the commit of the checkout that this package is in, or None if it is in none or git is missing."""
    if not (ROOT / ".git").exists():
        return None
    with suppress(OSError, subprocess.SubprocessError):
        words = ("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*")
        return subprocess.run(words, capture_output=True, text=True, timeout=10, check=True).stdout.strip() or None
    return None
