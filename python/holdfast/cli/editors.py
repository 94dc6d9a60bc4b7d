"""Commands around source text: the server of editors, and the formatter."""

from __future__ import annotations

import difflib
import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from holdfast import whole_files
from holdfast._core import HoldfastError, format_source, serve_language
from holdfast.cli.programs import check_includes, macros
from holdfast.cli.shared import Defines, Includes, fail, say, writing
from holdfast.regular_files import MOST_TEXT_BYTES, read_regular


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


def fmt(
    files: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="P4 files, or directories of them, searched recursively.")
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; the exit status is 1 if a file would change.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Write nothing; print what would change.")] = False,
) -> None:
    """Format P4 files in place: indentation, blanks within lines, and columns that are aligned already.

    Line breaks, comments and preprocessor lines stay. Nothing but blanks changes.
    """
    changed = failed = False
    for file in _sources(files):
        try:
            text = read_regular(file, MOST_TEXT_BYTES, HoldfastError).decode()
            formatted = format_source(text)
        except UnicodeDecodeError:
            say("error", f"{file}: it is not UTF-8")
            failed = True
            continue
        except HoldfastError as error:
            say("error", f"{file}: {error}")
            failed = True
            continue
        if formatted == text:
            continue
        changed = True
        if diff:
            lines = (text.splitlines(keepends=True), formatted.splitlines(keepends=True))
            sys.stdout.writelines(difflib.unified_diff(*lines, str(file), str(file)))
        elif check:
            say("note", f"{file} would change")
        else:
            with writing(file):
                whole_files.write_bytes(file, formatted.encode())
    raise typer.Exit(1 if failed or (check and changed) else 0)


def _sources(places: list[Path]) -> list[Path]:
    """Return files, and the P4 files in directories, in order. A place that is missing ends the command."""
    found: list[Path] = []
    for place in places:
        if not place.exists():
            fail(f"there is no file {str(place)!r}")
        found += sorted(place.rglob("*.p4")) if place.is_dir() else [place]
    return found
