"""The directory of this machine's running switches and gateways: their sockets, which only their user may open."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.errors import LiveError

DIRECTORY = Path("/run/holdfast")
"""The directory of the sockets of running switches and gateways; it also holds the locks of live networks
(``crates/ports``)."""

_LOCK = "sockets.lock"
_PATIENCE_S = 10.0


def socket_path(name: str) -> Path:
    """Return the path of the Unix socket called ``name`` in :data:`DIRECTORY`."""
    return DIRECTORY / f"{name}.sock"


def made(directory: Path | None = None) -> Path:
    """Return ``directory`` (by default :data:`DIRECTORY`); create it if it does not exist.

    Raises :class:`LiveError` if it cannot be created, or if another user could put a socket or a link into the directory and so
    answer in our place.
    """
    directory = DIRECTORY if directory is None else directory
    try:
        if not directory.exists():
            before = os.umask(0o022)
            try:
                directory.mkdir(parents=True, exist_ok=True)
            finally:
                os.umask(before)
        found = directory.stat()
    except OSError as error:
        raise LiveError(f"{directory}: {error.strerror}") from None
    others = stat.S_IWOTH if found.st_gid == 0 else stat.S_IWGRP | stat.S_IWOTH
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & others:
        raise LiveError(f"{directory}: other users may write into it (chown root {directory}; chmod 755 {directory})")
    return directory


def is_left_behind(path: Path) -> bool:
    """Return True if nobody listens at a socket: its process was killed, or the socket does not exist.

    Raises OSError for a path that no socket can have.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_PATIENCE_S)
        try:
            connection.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return True
        except OSError as error:
            if error.errno is None:
                raise  # no socket can have such a path
            # Somebody is there, who does not answer this user, or not now.
        return False


def listening(path: Path, taken: str) -> socket.socket:
    """Return a Unix socket that listens at ``path`` and that only this user may connect to, from the first moment.

    A socket that a killed process left behind is replaced. Raises :class:`LiveError` with the sentence ``taken`` if somebody
    listens there, and others if the directory is not to be trusted or cannot be written.
    """
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _alone_in(made(path.parent)):
            if not is_left_behind(path):
                raise LiveError(taken)
            path.unlink(missing_ok=True)
            before = os.umask(0o177)
            try:
                opened.bind(str(path))
            finally:
                os.umask(before)
            opened.listen()
    except OSError as error:
        opened.close()
        raise LiveError(f"cannot listen on {path}: {error.strerror or error}") from None
    except BaseException:
        opened.close()
        raise
    return opened


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Lock the directory within the context, so that no two processes replace the same abandoned socket."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(directory / _LOCK, flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def clear(pattern: str) -> None:
    """Remove the sockets whose names match ``pattern`` and whose processes were killed."""
    directory = made()
    with suppress(OSError), _alone_in(directory):
        for path in directory.glob(pattern):
            if is_left_behind(path):
                path.unlink(missing_ok=True)


def inode(path: Path) -> int | None:
    """Return the inode number of the file at ``path``; None if there is none."""
    with suppress(OSError):
        return path.lstat().st_ino
    return None


__all__ = ["DIRECTORY", "clear", "inode", "is_left_behind", "listening", "made", "socket_path"]
