"""Checks files that decide for this process, and that it writes: nobody else may have made them, or replace them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from holdfast.errors import LiveError
from holdfast.regular_files import trusted_users


def check_directory(path: Path) -> None:
    """Raise :class:`LiveError` if another user could replace files in the directory of ``path``.

    A directory for all, with the sticky bit as ``/tmp``, passes: there, others can make files, but not move ours. The user who
    called ``sudo`` is trusted with a directory, as with a configuration: that user chose the place.
    """
    directory = Path(os.path.realpath(path.parent))
    try:
        found = directory.stat()
    except OSError:
        return  # there is no file either: what opens it says so
    others = stat.S_IWOTH if found.st_gid in (0, os.getegid()) else stat.S_IWGRP | stat.S_IWOTH
    if found.st_uid not in trusted_users():
        raise LiveError(f"{directory}: it belongs to another user, who can replace {path.name}")
    if found.st_mode & others and not found.st_mode & stat.S_ISVTX:
        raise LiveError(f"{directory}: other users may write into it, and replace {path.name} (chmod go-w {directory})")


def check(path: Path) -> bool:
    """Return True if the file exists. Raises :class:`LiveError` if it is a link, of another user, or not a regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _refusal(path, error) from None
    try:
        _check_owner(path, descriptor)
    finally:
        os.close(descriptor)
    return True


def make(path: Path) -> None:
    """Create a file that only its user can read and lock, unless it exists. Raises :class:`LiveError` as :func:`check` does."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        try:
            _check_owner(path, descriptor)
            os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _refusal(path, error) from None


def _check_owner(path: Path, descriptor: int) -> None:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise LiveError(f"{path}: this is not a regular file")
    if found.st_uid != os.geteuid():
        raise LiveError(f"{path}: it belongs to another user")


def _refusal(path: Path, error: OSError) -> LiveError:
    return LiveError(f"{path}: {'a link is not followed' if path.is_symlink() else error.strerror}")


__all__ = ["check", "check_directory", "make"]
