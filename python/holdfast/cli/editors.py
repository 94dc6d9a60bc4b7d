"""The command that serves editors."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from holdfast._core import serve_language
from holdfast.cli.programs import check_includes, macros
from holdfast.cli.shared import Defines, Includes, fail


def lsp(
    define: Defines = [],  # noqa: B006
    include: Includes = [],  # noqa: B006
) -> None:
    """Serve an editor: errors while typing, completion, definitions, references, renaming, outline, formatting.

    The editor starts this command; docs/EDITORS.md has the lines for VS Code, Neovim, Emacs and Helix.
    """
    if sys.stdin.isatty():
        fail("lsp talks to an editor on its standard input, not to a terminal: see docs/EDITORS.md")
    check_includes(include)
    # The native core waits for the editor, and Python's handler would wait for the core.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    serve_language(_library(), [str(directory) for directory in include], macros(define))


def _library() -> Path:
    """Return the directory for copies of the files that are built into the compiler, to which editors go."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(cache) if cache.startswith("/") else Path("~/.cache").expanduser()
    return base / "holdfast" / "p4include"
