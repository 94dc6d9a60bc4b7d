"""Commands for own things: what installed packages offer, and what is wrong with it."""

from __future__ import annotations

from typing import Any

import typer

from holdfast.cli.shared import console


def extensions() -> None:
    """List the mechanisms, topologies, traffic and importers that installed packages offer, and why one of them cannot be used.

    docs/MECHANISMS.md says how a package offers them.
    """
    from holdfast.compare import mechanisms, scenario
    from holdfast.extensions import Door
    from holdfast.topologies import outside

    doors: tuple[Door[Any], ...] = (mechanisms.OUTSIDE, outside.GENERATED, scenario.TRAFFIC, outside.IMPORTED)
    refused = False
    for door in doors:
        found = list(door.installed())
        console.print(f"{door.group}: {'' if found else 'none'}", markup=False, highlight=False)
        for each in found:
            refused |= each.error is not None
            what = f"{each.name} ({each.place}, {each.package})"
            line = f"  {what}" if each.error is None else f"  {what} cannot be used: {each.error}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    if refused:
        raise typer.Exit(1)
