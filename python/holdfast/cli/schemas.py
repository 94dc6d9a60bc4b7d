"""The command that prints JSON schemas of the files that users write."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli import completions
from holdfast.cli.shared import console, errors, writing


def schema(
    name: Annotated[
        str | None,
        typer.Argument(
            help="topology, traffic, entries, rules, gateway or scenario.",
            show_default="list them",
            autocompletion=completions.schemas,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it to a file.", show_default="standard output")
    ] = None,
) -> None:
    """Print the JSON schema of a kind of files, with which editors complete and check them.

    An editor with yaml-language-server takes the schema that a file's first line names:
    # yaml-language-server: $schema=topology.schema.json
    """
    from holdfast import schemas, whole_files

    if name is None:
        for each in schemas.NAMES:
            console.print(f"{each}: {schemas.what(each)}", markup=False, highlight=False)
        return
    text = json.dumps(schemas.schema(name), indent=1) + "\n"
    if out is None:
        sys.stdout.write(text)
        return
    with writing(out):
        whole_files.write_text(out, text)
    errors.print(f"written to {out}", markup=False, highlight=False, soft_wrap=True)
