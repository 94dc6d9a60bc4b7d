"""The command ``holdfast``, also as ``python -m holdfast``. Ctrl-C ends it from here on, also while it imports its modules."""

from __future__ import annotations

from holdfast import interrupts


def main() -> None:
    """Entry point."""
    interrupts.end_quietly()
    from holdfast.cli import main as command

    command()


if __name__ == "__main__":
    main()
