"""A comparison for those who read it elsewhere: Markdown for a merge request, JUnit's XML for a server that counts tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from holdfast.compare.ranking import Ranking
from holdfast.compare.requirements import Verdict, sentences
from holdfast.compare.world import World


def markdown(world: World[Any, Any, Any], comparison: Ranking, judged: Sequence[Verdict]) -> str:
    """Return the verdicts, the ranking, the advice and the notes as Markdown, with a table in GitHub's form."""
    columns = world.columns(comparison)
    headings = ["", "mechanism", *(f"{heading} ({unit})" if unit else heading for heading, unit, _, _ in columns)]
    rows = [
        [
            "" if each.rank is None else str(each.rank),
            each.mechanism,
            *(show(each).replace("\n", ", ") for _, _, show, _ in columns),
        ]
        for each in comparison.summaries
    ]
    lines = [f"## {_cell(world.heading(comparison))}", "", _text(world.subtitle(comparison)), ""]
    for verdict in judged:
        first, *others = sentences(verdict, world.measures)
        lines += [f"- **{_text(first)}**", *(f"  - {_text(each.strip())}" for each in others)]
    lines += [
        "",
        _row(headings),
        _row(["---"] * len(headings)),
        *map(_row, rows),
        "",
        _text(world.advice(comparison)),
        "",
    ]
    lines += [f"- {_text(note)}" for note in world.notes(comparison)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    """Return text for a cell or a heading: its lines joined, and without bars that would end the cell."""
    return ", ".join(_text(text).splitlines()).replace("|", "\\|")


def _text(text: str) -> str:
    """Return text in which nothing is markup: names of switches and links may have any signs."""
    for sign in ("\\", "`", "*", "_", "[", "]", "<"):
        text = text.replace(sign, "\\" + sign)
    return text


def junit(world: World[Any, Any, Any], comparison: Ranking, judged: Sequence[Verdict]) -> str:
    """Return JUnit's XML with a test case for each requirement, a failure if it is not met, an error if it was not judged."""
    withheld = sum(verdict.withheld is not None for verdict in judged)
    failed = sum(not verdict.is_met for verdict in judged) - withheld
    counts = {"tests": str(len(judged)), "failures": str(failed), "errors": str(withheld)}
    suites = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": world.heading(comparison), **counts})
    for verdict in judged:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": "holdfast.compare", "name": verdict.requirement.text}
        )
        first, *others = sentences(verdict, world.measures)
        if not verdict.is_met:
            kind = "failure" if verdict.withheld is None else "error"
            ElementTree.SubElement(case, kind, {"message": first}).text = "\n".join(others)
        else:
            ElementTree.SubElement(case, "system-out").text = "\n".join((first, *others))
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


__all__ = ["junit", "markdown"]
