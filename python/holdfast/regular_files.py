"""Reads files that users name: regular files, up to a size. A pipe or a device may have no end, and may never answer.

It also tells whether a file is in other users' hands.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from holdfast.errors import HoldfastError

MOST_TEXT_BYTES = 64 << 20
"""Of a file that people or tools write as text."""


def read_regular(path: Path, most_bytes: int, kind: type[HoldfastError], what: str = "") -> bytes:
    """Read a regular file of at most ``most_bytes``. If that fails, raise a ``kind`` that says why, ``what`` before the path.

    It never waits for somebody who writes, and reads no more than ``most_bytes`` and one.
    """
    shown = f"{what} {path}".lstrip() if str(path).isprintable() else f"{what} {str(path)!r}".lstrip()
    try:
        # A device can notice that it is opened.
        if not stat.S_ISREG(path.stat().st_mode):
            raise kind(f"{shown}: this is not a regular file")
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise kind(f"{shown}: this is not a regular file")
            content = _read(descriptor, most_bytes + 1)
        finally:
            os.close(descriptor)
    except BlockingIOError:
        raise kind(f"{shown}: reading it would wait for more") from None
    except OSError as error:
        raise kind(f"{shown}: {error.strerror or error}") from None
    except ValueError:
        raise kind(f"{shown}: no file has such a name") from None
    if len(content) > most_bytes:
        size = f"{most_bytes >> 20} MiB" if most_bytes >> 20 else f"{most_bytes >> 10} KiB"
        raise kind(f"{shown}: longer than {size}")
    return content


def doubt(path: Path, *, secret: bool = False) -> str | None:
    """Return why a file that decides what this process does, or holds its secrets, is in other users' hands; None if it is not.

    The user who called ``sudo`` is trusted with it: that user chose the file.
    """
    try:
        found = path.stat()
    except OSError:
        return None
    trusted = {0, os.geteuid(), int(sudo) if (sudo := os.environ.get("SUDO_UID", "")).isdecimal() else 0}
    if found.st_uid not in trusted:
        return f"{path} belongs to another user, who can change it"
    if found.st_mode & stat.S_IWOTH:
        return f"every user can change {path} (chmod o-w)"
    if secret and found.st_mode & stat.S_IROTH:
        return f"every user can read the secrets in {path} (chmod o-r)"
    return None


def _read(descriptor: int, most_bytes: int) -> bytes:
    """Read up to ``most_bytes``, to the end of the file: one of unknown length, as in /proc, has an end here, too."""
    content = bytearray()
    while part := os.read(descriptor, min(1 << 20, most_bytes - len(content))):
        content += part
    return bytes(content)


__all__ = ["MOST_TEXT_BYTES", "doubt", "read_regular"]
