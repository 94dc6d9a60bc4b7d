"""A list on the page: a table of a few rows with a filter and pages, whose cells are sent only when they change."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from nicegui import ui
from nicegui.element import Element

ROWS = 10
"""On a page."""


@dataclass(frozen=True)
class Row:
    """A row. The first cell is a button that chooses ``key``; with ``action``, the last one is a button with this word."""

    key: Hashable
    cells: Sequence[str]
    chosen: bool = False
    action: str = ""
    what: str = ""
    """What the buttons are about, for those who hear them."""


class RowList:
    """The rows of ``headings``; :meth:`show` fills them."""

    def __init__(
        self,
        name: str,
        headings: Sequence[str],
        empty: str,
        choose: Callable[[Any], None] | None,
        act: Callable[[Any], None] | None = None,
        *,
        changed: Callable[[], None],
    ) -> None:
        """Build an empty list.

        A heading with an asterisk is left out on narrow screens. ``choose``: None if first cells are no buttons. ``empty``: what is
        said without any row. ``changed``: demands :meth:`show` of other rows. ``act``: what a button in the last column does; None
        without buttons. ``choose`` and ``act`` get the row's key.
        """
        self._choose, self._act, self._page, self._filter = choose, act, 0, ""
        self._changed = changed
        self._keys: list[Hashable] = [None] * ROWS
        with ui.element("div").classes("wide").props(f'tabindex=0 role=region aria-label="{name}"') as self._box:
            table = ui.element("table").classes("list")
            with table:
                with ui.element("thead"), ui.element("tr"):
                    for heading in headings:
                        with ui.element("th").props("scope=col").classes(_width(heading)):
                            ui.label(heading.removesuffix("*") or "\N{NO-BREAK SPACE}")
                with ui.element("tbody"):
                    self._rows = [self._row(index, headings) for index in range(ROWS)]
        self._empty = ui.label(empty).classes("empty")
        with ui.element("div").classes("row") as self._foot:
            self._search = ui.input(f"find in {name}", on_change=self._filtered).props("dense outlined debounce=150")
            self._search.classes("field")
            ui.button("previous", color=None, on_click=lambda: self._turn(-1)).props(f'aria-label="previous {name}"')
            ui.button("next", color=None, on_click=lambda: self._turn(1)).props(f'aria-label="next {name}"')
            self._where = ui.label().classes("faint")

    def _row(self, index: int, headings: Sequence[str]) -> tuple[Element, list[Any]]:
        cells: list[Any] = []
        with ui.element("tr") as row:
            for column, heading in enumerate(headings):
                with ui.element("td").classes("words" if column == 0 else _width(heading)):
                    if column == 0 and self._choose is not None:
                        cell: Any = ui.element("button").classes("plain").props('type=button aria-pressed="false"')
                        cell.on("click", partial(self._chosen, index))
                        with cell:
                            cells.append((cell, ui.element("span")))
                    elif self._act is not None and column == len(headings) - 1:
                        cell = ui.element("button").classes("plain").props("type=button")
                        cell.on("click", partial(self._acted, index))
                        with cell:
                            cells.append((cell, ui.element("span")))
                    else:
                        cells.append(ui.label())
        row.set_visibility(False)
        return row, cells

    def _chosen(self, index: int, _: object) -> None:
        assert self._choose is not None
        self._choose(self._keys[index])

    def _acted(self, index: int, _: object) -> None:
        assert self._act is not None
        self._act(self._keys[index])

    def _filtered(self) -> None:
        self._filter, self._page = (self._search.value or "").strip().lower(), 0
        self._changed()

    def _turn(self, step: int) -> None:
        self._page += step
        self._changed()

    def show(self, names: Sequence[str], row: Callable[[int], Row]) -> None:
        """Show what has these names, as far as the filter leaves it, on the page where the list is.

        ``row`` is called for the indices of what is seen.
        """
        wanted = self._filter
        found = [index for index, name in enumerate(names) if wanted in name.lower()] if wanted else range(len(names))
        pages = max(1, -(-len(found) // ROWS))
        self._page = self._page % pages
        shown = [row(index) for index in found[self._page * ROWS : (self._page + 1) * ROWS]]
        for index, (element, cells) in enumerate(self._rows):
            visible = index < len(shown)
            _see(element, visible)
            if visible:
                self._keys[index] = shown[index].key
                self._fill(cells, shown[index])
        _see(self._empty, not found)
        _see(self._foot, len(names) > ROWS or bool(wanted))
        _see(self._box, bool(found))
        _text(self._where, f"{len(found)} in all, page {self._page + 1} of {pages}")

    def _fill(self, cells: list[Any], row: Row) -> None:
        for column, cell in enumerate(cells):
            if not isinstance(cell, tuple):
                _text(cell, row.cells[column])
                continue
            button, text = cell
            word = row.cells[0] if column == 0 else row.action
            if text._text != word:
                text._text = word
                text.update()
            wanted = {"aria-pressed": str(row.chosen).lower()} if column == 0 else {"aria-label": f"{word} {row.what}"}
            if any(button.props.get(name) != value for name, value in wanted.items()):
                button.props.update(wanted)
                button.update()
            if column:
                _see(button, bool(word))


def _width(heading: str) -> str:
    return "optional" if heading.endswith("*") else ""


def _see(element: Any, visible: bool) -> None:
    if element.visible != visible:
        element.set_visibility(visible)


def _text(label: Any, text: str) -> None:
    if label.text != text:
        label.set_text(text)


__all__ = ["ROWS", "Row", "RowList"]
