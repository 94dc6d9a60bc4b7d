"""Output to a terminal. No printed name, path or program controls it, no message is longer than a screen, no column is cut.

Control characters would move the cursor, set the title or change colours. They are shown as U+FFFD, as the compiler does. Nothing
here knows what is printed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence

from rich import console
from rich.console import ConsoleOptions, RenderableType, RenderResult
from rich.measure import measure_renderables
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

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


class Grid(Table):
    """A table without lines. Where the terminal is too narrow for all columns, the others follow below, behind the same names.

    ``names``: how many columns on the left say what a row is. ``legend``: what the headings mean, a line each, below the table.
    """

    def __init__(self, *, title: str | None = None, names: int = 1, legend: Sequence[str] = ()) -> None:
        super().__init__(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0))
        self.names = names
        self.legend = tuple(legend)

    def add_names(self, *headings: str) -> None:
        """Add columns on the left, in which the rows' names are."""
        for heading in headings:
            self.add_column(heading, style="bold" if heading == headings[-1] else "", overflow="fold")

    def add_numbers(self, *headings: str) -> None:
        """Add columns of numbers, aligned at their right."""
        for heading in headings:
            self.add_column(heading, justify="right", overflow="fold")

    def __rich_console__(self, console: console.Console, options: ConsoleOptions) -> RenderResult:
        """Yield the parts of the table that fit below each other, and the legend."""
        for number, columns in enumerate(self._parts(console, options)):
            part = Table(
                title=None if number else self.title,
                title_justify="left",
                box=None,
                pad_edge=False,
                padding=self.padding,
            )
            part.columns = [copy.copy(column) for column in columns]
            for index, column in enumerate(part.columns):
                column._index = index
            part.rows = self.rows
            if number:
                yield Text("")
            yield from part.__rich_console__(console, options)
        if self.legend:
            yield Text("")
        for line in self.legend:
            yield Text(line, style="dim")

    def _parts(self, console: console.Console, options: ConsoleOptions) -> Iterator[list[Column]]:
        names, others = self.columns[: self.names], self.columns[self.names :]
        whole = options.update(max_width=10_000)

        def width(column: Column) -> int:
            # A space is between columns, and none at the end.
            return measure_renderables(console, whole, [column.header, *column.cells]).maximum + 1

        base = sum(map(width, names)) - 1
        part, used = [*names], base
        for column in others:
            if len(part) > len(names) and used + width(column) > options.max_width:
                yield part
                part, used = [*names], base
            part.append(column)
            used += width(column)
        yield part
