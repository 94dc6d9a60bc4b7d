"""The parts of reports: a page that needs no other file, cells of tables, choices, and lists of terms.

Styles and the few lines of script stand in ``report.css`` and ``report.js`` and are put into the page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

from holdfast.compare import drawing
from holdfast.compare.terminal import number

HERE = Path(__file__).parent

NONE = "\N{EN DASH}"


def page(title: str, body: str, more_style: str) -> str:
    """Return a whole HTML page with its styles and scripts."""
    style = (HERE / "report.css").read_text(encoding="utf-8") + more_style
    script = (HERE / "report.js").read_text(encoding="utf-8")
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<style>\n{style}</style>\n</head>\n<body>\n{body}\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def colours(styles: Sequence[tuple[str, tuple[str, str]]]) -> str:
    """Return CSS rules for both schemes: each class with its colour on white and on black."""

    def rules(shade: int) -> str:
        return "\n".join(
            f".curve.{style} {{ stroke: {colour[shade]}; }} .area.{style}, .dot.{style}"
            f" {{ fill: {colour[shade]}; }} .swatch.{style} {{ background: {colour[shade]}; }}"
            for style, colour in styles
        )

    return f"{rules(0)}\n@media (prefers-color-scheme: dark) {{\n{rules(1)}\n}}\n"


def cell(shown: str, heading: str, unit: str, *, best: bool) -> str:
    """Return a table's cell, its first line large, the second small. Where the table is too wide, cells say what they are.

    A terminal's hyphen for nothing is a dash here.
    """
    shown = "\n".join(NONE if line == number(None) else line for line in shown.split("\n"))
    first, _, second = shown.partition("\n")
    small = f"<small>{escape(second)}</small>" if second else ""
    label = f"{heading} ({unit})" if unit else heading
    return f'<td{" class=best" if best else ""} data-head="{escape(label)}"><span>{escape(first)}{small}</span></td>'


def choice_buttons(choices: Sequence[tuple[str, str]], pressed: str) -> str:
    """Return a button for each (name, value), of which one is pressed."""
    found = []
    for name, value in choices:
        state = "true" if name == pressed else "false"
        found.append(f'<button type="button" value="{escape(value)}" aria-pressed="{state}">{escape(name)}</button>')
    return "".join(found)


def for_both(draw: Callable[..., str]) -> str:
    """Draw a picture for wide windows and one for phones, of which the style shows one."""
    widths = {"wide": drawing.WIDE, "narrow": drawing.NARROW}
    return "".join(f'<div class="{name}">{draw(width=width)}</div>' for name, width in widths.items())


def listed(items: Sequence[tuple[str, str]]) -> str:
    """Return an HTML list of terms and what they are."""
    return "<dl>" + "".join(f"<dt>{escape(term)}</dt><dd>{escape(words)}</dd>" for term, words in items) + "</dl>"
