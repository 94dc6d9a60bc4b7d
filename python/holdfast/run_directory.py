"""The directory of this machine's running switches and gateways: their sockets, which only their user may open."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from holdfast.errors import LiveError

DIRECTORY = Path("/run/holdfast")
"""The directory of sockets. Beside these are the locks of live networks (``crates/ports``)."""


def made(directory: Path = DIRECTORY) -> Path:
    """Return ``directory``, which is created if it does not exist. Raises OSError if it cannot be created.

    Raises :class:`LiveError` if another user could put a socket or a link into the directory and so answer in our place.
    """
    if not directory.exists():
        before = os.umask(0o022)
        try:
            directory.mkdir(parents=True, exist_ok=True)
        finally:
            os.umask(before)
    found = directory.stat()
    others = stat.S_IWOTH if found.st_gid == 0 else stat.S_IWGRP | stat.S_IWOTH
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & others:
        raise LiveError(f"{directory}: other users may write into it (chown root {directory}; chmod 755 {directory})")
    return directory


__all__ = ["DIRECTORY", "made"]
