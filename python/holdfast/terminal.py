"""Output to a terminal. No printed name, path or program can control the terminal, and no message is longer than a screen.

Control characters would move the cursor, set the title or change colours. They are shown as U+FFFD, as the compiler does. Nothing
here knows what is printed.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich import console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

_CONTROLS = {code: "\ufffd" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


MOST_LINES = 60
MOST_COLUMNS = 400
"""The most characters of a line (and ``MOST_LINES`` the most lines) of a message; the number of those cut off is
appended."""


def excerpt(text: str, most: int = MOST_COLUMNS) -> str:
    """Return the first ``most`` characters of a text, followed by the number of characters left out."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text) - most} more characters)"


def screenful(text: str, most_lines: int = MOST_LINES) -> str:
    """Return at most ``most_lines`` lines of a text, each cut at :data:`MOST_COLUMNS`, and a last line with the number left out."""
    lines = text.split("\n")
    shown = [excerpt(line) for line in lines[:most_lines]]
    if len(lines) > most_lines:
        shown.append(f"... and {len(lines) - most_lines} more lines")
    return "\n".join(shown)


def printable(text: str) -> str:
    """Replace the control characters in a text (C0, delete, C1), except line feed and tab, by U+FFFD."""
    return text.translate(_CONTROLS)


_IN_NAMES = _CONTROLS | dict.fromkeys(
    (0x09, 0x0A, 0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)), "\ufffd"
)
"""Replacements of characters in a name: control characters, and those that end a line or change the writing direction,
which could make it look like several cells or lines."""


def shown_name(text: str) -> str:
    """Return a name from an untrusted source on one line: control characters and marks of writing direction become U+FFFD."""
    return text.translate(_IN_NAMES)


class Console(console.Console):
    """rich's, but for what a text could make a terminal do. Colours come from styles, and so they stay."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as the parent class does, with the control characters in texts replaced."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)
