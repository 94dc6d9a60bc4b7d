"""The password of a subscriber that dials: from a file, the environment or a terminal.

A word of the command line is none of these: every user of the machine can read it (proc(5), ``/proc/PID/cmdline``).
"""

from __future__ import annotations

import getpass
import os
import sys
from pathlib import Path

from holdfast.errors import LiveError
from holdfast.regular_files import doubt, read_regular

VARIABLE = "HOLDFAST_PASSWORD"
_MOST_BYTES = 4096


def password(user: str, file: Path | None) -> str:
    """Return a user's password: the first line of ``file``, or the environment variable's value, or what is typed at the terminal.

    A ``file`` of ``-`` is the standard input. Bytes that are not UTF-8 become surrogates (PEP 383). Raises :class:`LiveError` if
    the file cannot be read, if other users can read it, and if there is neither a password nor a terminal.
    """
    if file is not None:
        return _of_file(file)
    given = os.environ.pop(VARIABLE, None)  # programs that this one starts need it not
    if given is not None:
        return given
    if sys.stdin is None or not sys.stdin.isatty():
        raise LiveError(f"no password: give --password-file, set {VARIABLE}, or run this on a terminal")
    return getpass.getpass(f"Password of {user}: ")


def _of_file(file: Path) -> str:
    if str(file) == "-":
        content = sys.stdin.buffer.readline(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise LiveError(f"the password is longer than {_MOST_BYTES} bytes")
    else:
        why = doubt(file, secret=True)
        if why is not None:
            raise LiveError(why)
        content = read_regular(file, _MOST_BYTES, LiveError)
    return content.partition(b"\n")[0].removesuffix(b"\r").decode("utf-8", "surrogateescape")
