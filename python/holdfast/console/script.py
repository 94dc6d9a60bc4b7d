"""Files of verbs, one a line: a script ends at the first verb that is refused, and the error has its file and line.

Blank lines and lines that begin with ``#`` are nothing. A script also ends at a command in a host that fails, unless it is expected
to (``expect h1 false fails``). Echo requests without an answer and lost packets are results, for ``expect`` to judge.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.console.controllers import of_user
from holdfast.errors import ConsoleError, HoldfastError
from holdfast.regular_files import MOST_TEXT_BYTES, read_regular

if TYPE_CHECKING:
    from holdfast.console.session import Session


class ScriptError(ConsoleError):
    """A verb of a file that was refused, or went wrong. Its text begins with the file and the line."""


def run(session: Session, path: Path) -> None:
    """Obey the lines of a file until its end or the verb ``quit``. Raises :class:`ScriptError` with file and line."""
    if not path.is_file():
        raise ConsoleError(f"there is no file {str(path)!r}")
    try:
        lines = read_regular(path, MOST_TEXT_BYTES, ConsoleError).decode().splitlines()
    except UnicodeDecodeError:
        raise ConsoleError(f"{path}: not UTF-8 text") from None
    for number, line in enumerate(lines, 1):
        if session.ended:
            return
        try:
            result = session.do(line)
        except ScriptError as error:
            raise ScriptError(f"{path}:{number}: {error}") from None
        except Exception as error:
            said = of_user(error)
            if said is None and not isinstance(error, HoldfastError):
                raise
            raise ScriptError(f"{path}:{number}: {said or error}") from error
        if session.echo is not None:
            session.echo(line, result)
        if result.failed_command and not line.strip().startswith("expect"):
            raise ScriptError(f"{path}:{number}: the command ended with status {result.values['status']:.0f}")


__all__ = ["ScriptError", "run"]
