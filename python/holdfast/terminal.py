"""Output to a terminal. No printed name, path or program can control the terminal.

Control characters would move the cursor, set the title or change colours. They are shown as U+FFFD, as the compiler does. Nothing
here knows what is printed.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich import console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

_CONTROLS = {code: "\ufffd" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


def printable(text: str) -> str:
    """The text with other control characters than line feed and tab replaced (C0, delete, C1)."""
    return text.translate(_CONTROLS)


class Console(console.Console):
    """rich's, but for what a text could make a terminal do. Colours come from styles, and so they stay."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As rich's."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)
