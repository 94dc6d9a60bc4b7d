"""The parts of reports, and the page that shows them: tables, pictures over time, and pictures for wide and narrow windows.

``page.html`` is what all reports have, ``parts.html`` draws these parts; each report's own template is an extension of the page.
Every value that a template shows is escaped unless it is :class:`Markup`. Styles and the few lines of script stand in
``report.css`` and ``report.js``; they are put into the page, which needs no other file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from holdfast import whole_files
from holdfast.compare import drawing
from holdfast.compare.formats import number
from holdfast.compare.ranking import Less, Ranking

NONE = "\N{EN DASH}"

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


Column = tuple[str, str, Callable[[Any], str], Less | None]
"""Heading, what stands below it, how a summary is shown, and the test of whether one is better than another, if there is one."""


@dataclass(frozen=True)
class Cell:
    """A table's cell, its first line large, the second small; ``best``: it is bold. The heading and the unit are the column's."""

    shown: str
    heading: str
    unit: str
    best: bool = False

    @property
    def lines(self) -> list[str]:
        """The lines of text, with a dash in place of the hyphen by which a terminal shows that there is no value."""
        return [NONE if line == number(None) else line for line in self.shown.split("\n", 1)]

    @property
    def label(self) -> str:
        """The heading and unit that the cell shows itself where the table is too wide to have headings."""
        return f"{self.heading} ({self.unit})" if self.unit else self.heading


@dataclass(frozen=True)
class TableRow:
    """A table's row: its name, with a swatch of the class ``style`` if there is one, and words before and after it."""

    name: str
    cells: Sequence[Cell]
    style: str = ""
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Table:
    """A table: the heading of the rows' names, heading and unit of each other column, and the rows."""

    names: str
    columns: Sequence[tuple[str, str]]
    rows: Sequence[TableRow]


@dataclass(frozen=True)
class Lane:
    """A mechanism's pictures over time, each with its heading, and small lines of text below the mechanism's name."""

    name: str
    style: str
    pictures: Sequence[tuple[str, Markup]]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Lanes:
    """What happened during a failure: lanes below headings, and words below all. ``widths`` are the columns' in CSS."""

    failure: str
    widths: str
    headings: Sequence[str]
    lanes: Sequence[Lane]
    words: str


def write(path: Path, template: str, values: Mapping[str, object]) -> None:
    """Render ``template``, a file in this folder, with ``values``, and write the HTML page to ``path``.

    Raise jinja2's ``UndefinedError`` if the template uses a name that is not in ``values``.
    """
    whole_files.write_text(path, TEMPLATES.get_template(template).render(values))


def style(known: Iterable[str], name: str) -> str:
    """Return the CSS class with the colour of mechanism ``name``: numbered by its place in ``known``, else made from its name."""
    names = list(known)
    return f"m{names.index(name)}" if name in names else f"mx{name.encode().hex()}"


def ranking(comparison: Ranking, columns: Sequence[Column], styles: Mapping[str, str]) -> Table:
    """Return the ranking as a table, best mechanism first; cells that no other mechanism beats in their column are bold.

    ``styles``: the CSS class of each mechanism.
    """
    best = [set() if less is None else comparison.best(less) for _, _, _, less in columns]
    rows = [
        TableRow(
            summary.mechanism,
            [
                Cell(show(summary), heading, unit, summary.mechanism in ahead)
                for (heading, unit, show, _), ahead in zip(columns, best, strict=True)
            ],
            styles[summary.mechanism],
            before="" if summary.rank is None else f"{summary.rank}. ",
        )
        for summary in comparison.summaries
    ]
    return Table("mechanism", [(heading, unit) for heading, unit, _, _ in columns], rows)


def times_to_choose(all_lanes: Sequence[Lanes]) -> list[tuple[str, str]]:
    """Return (failure, value) for each of the buttons that choose during which failure curves are shown."""
    return [(lanes.failure, f"f{i}") for i, lanes in enumerate(all_lanes)]


def for_both(draw: Callable[..., Markup]) -> Mapping[str, Markup]:
    """Draw a picture by ``draw``, a function of its width, twice: for wide windows (``wide``) and for phones (``narrow``).

    The page's style shows one of them.
    """
    return {"wide": draw(width=drawing.WIDE), "narrow": draw(width=drawing.NARROW)}
