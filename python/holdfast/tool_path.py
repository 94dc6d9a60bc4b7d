"""Decides where a root process finds its tools. It imports very little: the command calls it before everything else."""

from __future__ import annotations

import os
import stat


def leave_others_directories() -> None:
    """Remove the directories that other users may change from a root process's ``PATH``, from which it starts tools such as ``ip``.

    Removed are the working directory (an empty or a relative entry), and directories that another user than root owns or all may
    write. For other users nothing is changed.
    """
    if os.geteuid() == 0 and (path := os.environ.get("PATH")) is not None:
        os.environ["PATH"] = os.pathsep.join(each for each in path.split(os.pathsep) if _is_roots(each))


def _is_roots(directory: str) -> bool:
    if not os.path.isabs(directory):  # noqa: PTH117 - a Path would make an empty name the working directory
        return False
    try:
        found = os.stat(directory)  # noqa: PTH116 - likewise
    except OSError:
        return False
    return found.st_uid == 0 and not found.st_mode & stat.S_IWOTH


__all__ = ["leave_others_directories"]
