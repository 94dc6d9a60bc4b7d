"""Writes files whole: a reader always finds the old file or the new one, never a part, even after a full disk or an interrupt.

Text is UTF-8, whatever the locale.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Writes UTF-8."""
    write(path, lambda unfinished: unfinished.write_text(text, encoding="utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Writes bytes."""
    write(path, lambda unfinished: unfinished.write_bytes(content))


def write(path: Path, fill: Callable[[Path], object]) -> None:
    """Has a file filled beside its place, and puts it there.

    An existing file that is not regular (a device, a pipe) is filled itself. Raises the errors of ``fill``, and OSError.
    """
    path = Path(os.path.realpath(path))  # a link stays one
    if path.exists() and not path.is_file():
        fill(path)
        return
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    # The ending tells some writers the format.
    unfinished = path.with_name(f"unfinished-{path.name}")
    try:
        fill(unfinished)
        if path.exists():
            shutil.copymode(path, unfinished)
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise


__all__ = ["write", "write_bytes", "write_text"]
