"""The command ``holdfast``, also as ``python -P -m holdfast``. From here on Ctrl-C ends it, even during its imports."""

from __future__ import annotations

import io
import sys

from holdfast import interrupts


def main() -> None:
    """Run the command ``holdfast``. From its first line on, Ctrl-C ends the process at once and without a traceback."""
    interrupts.end_quietly()
    _say_everything()
    from holdfast import tool_path

    tool_path.leave_others_directories()
    if sys.argv[1:] == ["--version"]:
        # Other programs ask this often: it is answered without the command line's imports.
        from holdfast.version import version

        print(f"holdfast {version()}")
        return
    from holdfast.cli import main as command

    command()


def _say_everything() -> None:
    """Make standard output write a character that the locale cannot encode as a backslash escape, and raise no error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    main()
