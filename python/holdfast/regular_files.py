"""Reads files that users name: regular files, up to a size. A pipe or a device may have no end, and may never answer.

It also tells whether a file is in other users' hands.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.numerals import is_numeral

MOST_TEXT_BYTES = 64 << 20
"""The largest text file that is read, whether written by people or by tools."""


def read_regular(path: Path, most_bytes: int, kind: type[HoldfastError], what: str = "") -> bytes:
    """Return the content of a regular file of at most ``most_bytes``. Raises ``kind``, with ``what`` and the path, if that fails.

    The function never waits for a writer, and reads at most one byte more than ``most_bytes``.
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


def trusted_users() -> set[int]:
    """Return the ids of the users whose files this process trusts: root, its own user, and the user who called ``sudo``."""
    sudo = os.environ.get("SUDO_UID", "")
    return {0, os.geteuid()} | ({int(sudo)} if is_numeral(sudo) else set())


def doubt(path: Path, *, secret: bool = False) -> str | None:
    """Return why other users could change or read a file that this process trusts; None if they cannot.

    ``secret``: the file holds secrets, so others must not read it either. The user who called ``sudo`` is trusted, as that user
    chose the file.
    """
    try:
        found = path.stat()
    except OSError:
        return None
    if found.st_uid not in trusted_users():
        return f"{path} belongs to another user, who can change it"
    if found.st_mode & stat.S_IWOTH:
        return f"every user can change {path} (chmod o-w)"
    if secret and found.st_mode & stat.S_IROTH:
        return f"every user can read the secrets in {path} (chmod o-r)"
    return None


def _read(descriptor: int, most_bytes: int) -> bytes:
    """Read an open file to its end, but at most ``most_bytes``; its length may be unknown, as in /proc."""
    content = bytearray()
    while part := os.read(descriptor, min(1 << 20, most_bytes - len(content))):
        content += part
    return bytes(content)


__all__ = ["MOST_TEXT_BYTES", "doubt", "read_regular"]
