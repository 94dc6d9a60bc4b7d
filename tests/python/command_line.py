"""Describes the command line from its own declarations, for the site and as man pages.

``python tests/python/command_line.py DIRECTORY`` writes the man pages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from holdfast import cli
from holdfast.cli import comparisons
from holdfast.version import version

HEAD = """# Command line

This page is made of the commands' own declarations; `holdfast COMMAND --help` prints the same.
"""


@dataclass(frozen=True)
class Command:
    """A command, as its help tells it."""

    name: str
    usage: str
    help: str
    arguments: list[tuple[str, str]]
    options: list[tuple[str, str]]


def commands() -> list[Command]:
    """Return the command ``holdfast`` and those below it that are not hidden, in the order of its help."""
    return list(_commands(typer.main.get_command(cli.app), "holdfast", None))


def _commands(command: Any, name: str, parent: Any) -> Iterator[Command]:
    context = command.context_class(command, info_name=name, parent=parent)
    usage = " ".join((name, *command.collect_usage_pieces(context)))
    records: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
    for parameter in command.get_params(context):
        if (record := parameter.get_help_record(context)) is not None:
            records[parameter.param_type_name].append(record)
    text = "\n\n".join(each for each in (command.help, command.epilog) if each)
    yield Command(name, usage, text, records["argument"], records["option"])
    for each in getattr(command, "commands", {}).values():
        if not each.hidden:
            yield from _commands(each, f"{name} {each.name}", context)
    if isinstance(command, comparisons.Compare):
        for world in comparisons.OTHERS:
            yield from _commands(comparisons.other(world), f"{name} {world}", context)


def page() -> str:
    """Return the site's page."""
    parts = [HEAD]
    for command in commands():
        parts += [f"## `{command.name}`\n", f"<code>{_plain(command.usage)}</code>\n", f"{_plain(command.help)}\n"]
        for heading, records in (("Arguments", command.arguments), ("Options", command.options)):
            if records:
                parts += [f"**{heading}**\n", *(_definition(*record) for record in records)]
    return "\n".join(parts)


def _definition(name: str, text: str) -> str:
    return f"<code>{_plain(name)}</code>\n:   {_plain(' '.join(text.split()))}\n"


def _plain(text: str) -> str:
    """Return a text in which Markdown finds nothing to do, but for code in backticks."""
    return re.sub(r"[|\[\]*_<]", lambda found: f"&#{ord(found[0])};", text.replace("&", "&amp;"))


def manual(command: Command, others: list[Command]) -> str:
    """Return a command's man page."""
    first, _, rest = command.help.partition("\n\n")
    title = command.name.replace(" ", "-")
    lines = [
        f'.TH "{title.upper()}" "1" "" "holdfast {_roff(version())}" "Holdfast"',
        ".SH NAME",
        rf"{_roff(title)} \- {_roff(' '.join(first.split()))}",
        ".SH SYNOPSIS",
        _roff(command.usage),
    ]
    if rest:
        lines += [".SH DESCRIPTION", *_paragraphs(rest)]
    for heading, records in (("ARGUMENTS", command.arguments), ("OPTIONS", command.options)):
        if records:
            lines.append(f".SH {heading}")
            for name, text in records:
                lines += [".TP", rf"\fB{_roff(name)}\fR", _roff(" ".join(text.split()))]
    below = [each for each in others if each.name.rpartition(" ")[0] == command.name]
    if below:
        lines.append(".SH COMMANDS")
        for each in below:
            lines += [
                ".TP",
                rf"\fB{_roff(each.name)}\fR(1)".replace(" ", r"\-"),
                _roff(" ".join(each.help.partition("\n\n")[0].split())),
            ]
    return "\n".join(lines) + "\n"


def _paragraphs(text: str) -> Iterator[str]:
    for i, each in enumerate(text.split("\n\n")):
        if i:
            yield ".PP"
        yield _roff(" ".join(each.split()))


def _roff(text: str) -> str:
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"^([.'])", r"\\&\1", text)


def main() -> None:
    """Write the man page of each command into the directory that is given."""
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    found = commands()
    for command in found:
        (directory / f"{command.name.replace(' ', '-')}.1").write_text(manual(command, found), encoding="utf-8")


if __name__ == "__main__":
    main()
