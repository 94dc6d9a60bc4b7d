"""What the pages have in common: tabs that draw, the verbs at the bottom, and fields and buttons in one form."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from nicegui import ui

from holdfast.console.grammar import Grammar
from holdfast.errors import HoldfastError
from holdfast.web import charts
from holdfast.web.desk import Desk, Said

STYLE = Path(__file__).parent / "page.css"

MOST_SAID = 400
"""Lines of verbs and answers that a tab keeps."""

MOST_WORDS = 14
"""Of a completion that are shown."""


class Tab:
    """One tab of a browser. ``colours``: those of its scheme."""

    def __init__(self) -> None:
        self.client = ui.context.client
        self.colours = charts.LIGHT

    def recolour(self) -> None:
        """Draw in other colours."""


T = TypeVar("T", bound=Tab)


class Tabs(Generic[T]):
    """The tabs of a page, which ``make`` builds, and what reaches them from other threads."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._tabs: list[T] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    def each(self, act: Callable[[T], None]) -> None:
        """Have each tab do something, in the framework's thread. ``act`` is called with each tab."""
        loop = self._loop
        if loop is None or loop.is_closed():
            return

        def in_all() -> None:
            for tab in list(self._tabs):
                with tab.client:
                    act(tab)

        loop.call_soon_threadsafe(in_all)

    async def build(self) -> None:
        """Build a tab."""
        self._loop = asyncio.get_running_loop()
        ui.add_css(STYLE)
        tab = self._make()
        self._tabs.append(tab)
        tab.client.on_delete(lambda: self._close(tab))
        await tab.client.connected(timeout=60)
        # The token need not stay in the address: the browser has a cookie by now.
        ui.navigate.history.replace("/")
        ui.on("holdfast-dark", lambda event: _in_scheme(tab, dark=bool(event.args)))
        ui.run_javascript(
            "const dark = matchMedia('(prefers-color-scheme: dark)');"
            "dark.addEventListener('change', () => emitEvent('holdfast-dark', dark.matches));"
            "emitEvent('holdfast-dark', dark.matches);"
        )

    def _close(self, tab: T) -> None:
        if tab in self._tabs:
            self._tabs.remove(tab)


def _in_scheme(tab: Tab, *, dark: bool) -> None:
    colours = charts.DARK if dark else charts.LIGHT
    if colours is not tab.colours:
        tab.colours = colours
        tab.recolour()


class Verbs:
    """The part of a page in which lines are typed and their answers are shown."""

    def __init__(self, desk: Desk, grammar: Grammar, example: str, then: Callable[[Said], None]) -> None:
        """Build the part. ``then`` is called with what came of each line that was typed here."""
        self._desk, self._grammar, self._example, self._then = desk, grammar, f"any verb: {example}", then
        self._client = ui.context.client
        self._before: list[Said] = []
        with part("Verbs"):
            self.log = ui.log(max_lines=MOST_SAID).classes("said")
            self.log.props('tabindex=0 role=log aria-label="verbs and answers"')
            form = ui.element("form").classes("row")
            form.on("submit", self._obey_line, js_handler="(event) => {event.preventDefault(); emit();}")
            with form:
                self._line = ui.input("verb", on_change=self._complete).props("dense outlined autocapitalize=off")
                self._line.props('spellcheck=false input-style="font-family: ui-monospace, monospace"').classes("field")
                button("Obey").props("type=submit")
            self._hint = ui.label(self._example).classes("hint").props("aria-live=polite")
        before = desk.last()
        for said in before:
            self.say(said)
        self._before = before

    def do(self, line: str, then: Callable[[Said], None] | None = None) -> None:
        """Have the desk obey a line; ``then`` is called in the framework's thread if it went well."""
        loop = asyncio.get_running_loop()

        def done(said: Said) -> None:
            if then is not None and said.ok:
                loop.call_soon_threadsafe(self._in_tab, then, said)

        self._desk.run(line, done)

    def _in_tab(self, then: Callable[[Said], None], said: Said) -> None:
        with self._client:
            then(said)

    def say(self, said: Said) -> None:
        """Show a line and its answer, unless it was said before the tab was there and its news are late."""
        if any(said is each for each in self._before):
            return
        self.log.push(f"> {said.line}", classes="asked")
        if said.text:
            self.log.push(said.text, classes="" if said.ok else "refused")

    def _obey_line(self) -> None:
        line = (self._line.value or "").strip()
        if line:
            self.do(line, self._then)
            self._line.set_value("")

    def _complete(self) -> None:
        line = self._line.value or ""
        try:
            begun, found = self._grammar.complete(line)
        except HoldfastError:
            begun, found = "", []
        front = line[: len(line) - len(begun)]
        self._line.set_autocomplete([f"{front}{word}" for word in found[:MOST_WORDS]] if line else [])
        more = f" and {len(found) - MOST_WORDS} more" if len(found) > MOST_WORDS else ""
        completes = f"Tab completes: {'  '.join(found[:MOST_WORDS])}{more}"
        self._hint.set_text(completes if line and found else self._example)


class Legend:
    """The names of curves, each with its colour and form; without any, a sentence."""

    def __init__(self) -> None:
        """Build it without names."""
        with ui.element("div").classes("legend"):
            self._sentence = ui.label()
            self._lines = []
            for _ in range(charts.MOST_CURVES):
                with ui.element("span") as line:
                    self._lines.append((line, ui.element("i"), ui.label().style("display: inline")))
        self._shown: object = None

    def show(self, names: Sequence[str], colours: Sequence[str], sentence: str) -> None:
        """Show names with the colours of their curves, and a sentence in front."""
        if self._shown == (shown := (tuple(names), tuple(colours), sentence)):
            return
        self._shown = shown
        self._sentence.set_text(sentence)
        self._sentence.set_visibility(bool(sentence))
        for index, (line, mark, text) in enumerate(self._lines):
            line.set_visibility(index < len(names))
            if index < len(names):
                mark.style(replace=f"border-top-style: {charts.FORMS[index]}; color: {colours[index]}")
                text.set_text(names[index])


def part(title: str) -> Any:
    """Build a part of a page with a heading, and return it to be entered."""
    found = ui.element("section").classes("part")
    with found, ui.element("h2"):
        ui.label(title)
    return found


def choice(name: str, options: list[str], value: str | None, chosen: Callable[[str | None], None] | None = None) -> Any:
    """Build a field in which one of ``options`` is chosen; long lists are found by typing.

    ``value`` is chosen first; ``chosen`` is called with each later choice.
    """
    change = None if chosen is None else (lambda event: chosen(event.value))
    found = ui.select(options, label=name, value=value, with_input=len(options) > 8, on_change=change)
    return found.props("dense outlined options-dense").classes("field")


def field(name: str, example: str) -> Any:
    """Build a field for a word, with an example in it."""
    return ui.input(name, placeholder=example).props("dense outlined stack-label").classes("field")


def button(text: str, on_click: Callable[[], None] | None = None) -> Any:
    """Build a button."""
    return ui.button(text, color=None, on_click=on_click)


def set_text(label: Any, text: str) -> None:
    """Set a label's text; what stays is not sent."""
    if label.text != text:
        label.set_text(text)


__all__ = ["Legend", "Tab", "Tabs", "Verbs", "button", "choice", "field", "part", "set_text"]
