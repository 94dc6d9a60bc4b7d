"""Writes files whole: a reader always finds the old file or the new one, never a part, even after a full disk or an interrupt.

Text is UTF-8, whatever the locale.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


def write_text(path: Path, text: str) -> None:
    """Write a text to a file in UTF-8; the file changes completely or, on an error, not at all."""
    write(path, lambda unfinished: unfinished.write_text(text, encoding="utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes to a file; the file changes completely or, on an error, not at all."""
    write(path, lambda unfinished: unfinished.write_bytes(content))


def write_parquet(path: Path, frame: pl.DataFrame) -> None:
    """Write a table to a file in Parquet's format; the file changes completely or, on an error, not at all."""
    content = BytesIO()  # polars' own writer has other errors for a full disk than OSError
    frame.write_parquet(content)
    write_bytes(path, content.getvalue())


def write_csv(path: Path, frame: pl.DataFrame) -> None:
    """Write a table to a file as CSV (RFC 4180), lists as JSON; the file changes completely or, on an error, not at all."""
    import polars as pl

    lists = [name for name, kind in frame.schema.items() if isinstance(kind, pl.List)]
    flat = frame.with_columns(
        pl.Series(name, [None if each is None else json.dumps(each.to_list()) for each in frame[name]], dtype=pl.String)
        for name in lists
    )
    content = BytesIO()
    flat.write_csv(content)
    write_bytes(path, content.getvalue())


def write(path: Path, fill: Callable[[Path], object]) -> None:
    """Call ``fill`` to write a new file beside ``path``, then replace ``path`` by this file.

    If ``path`` is a file that is not regular (a device, a pipe), ``fill`` writes to it directly. Raises the errors of ``fill``, and
    OSError.
    """
    _check_links(path)
    path = Path(os.path.realpath(path))  # a link stays one
    if path.exists() and not path.is_file():
        fill(path)
        return
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    # The ending tells some writers the format. Nobody can have put a link there: the name is drawn, and must be free.
    unfinished = path.with_name(f"unfinished-{os.urandom(8).hex()}-{path.name}")
    os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666))
    try:
        fill(unfinished)
        if path.exists():
            shutil.copymode(path, unfinished)
        unfinished.replace(path)
    except BaseException as error:
        with suppress(OSError):
            unfinished.unlink()
        if isinstance(error, OSError) and error.filename in (None, str(unfinished)):
            error.filename = str(path)
        raise


def _check_links(path: Path) -> None:
    """Raise PermissionError if ``path`` goes through a link that another user made in a directory for all, such as ``/tmp``.

    The kernel's rule (``fs.protected_symlinks``, proc(5)), which it applies when a link is followed, and not when it is read.
    """
    for each in (path.absolute(), *path.absolute().parents):
        if each.is_symlink():
            directory, owner = each.parent.stat(), each.lstat().st_uid
            for_all = directory.st_mode & stat.S_ISVTX and directory.st_mode & stat.S_IWOTH
            if for_all and owner not in (os.geteuid(), directory.st_uid):
                raise PermissionError(errno.EACCES, "another user's link in a directory for all", str(each))


__all__ = ["write", "write_bytes", "write_csv", "write_parquet", "write_text"]
