"""The command line. Each command is a few lines that call other modules; this file lists them."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from holdfast import interrupts
from holdfast._core import HoldfastError
from holdfast.cli import (
    applications,
    bmv2,
    comparisons,
    consoles,
    editors,
    extensions,
    machine,
    networks,
    programs,
    schemas,
    switches,
)
from holdfast.cli.shared import WithPage, errors, say
from holdfast.subscribers import commands as bng
from holdfast.version import version

app = typer.Typer(
    name="holdfast",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"holdfast {version()}\n")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Compile P4_16, run it in a software switch and in networks on two clocks, cut a link, and measure the loss."""


app.command()(networks.demo)
app.command(cls=WithPage)(consoles.run)
app.command("compile")(programs.compile_command)
app.command()(programs.trace)
app.command(cls=WithPage)(switches.switch)
app.command()(programs.stf)
app.command()(editors.fmt)
app.command()(editors.lsp)
app.command()(machine.bench)
app.command()(networks.topology)
app.command()(networks.reproduce)
app.command(cls=comparisons.Compare)(comparisons.compare)
app.command()(applications.collect)
app.add_typer(switches.ports, name="port")
app.add_typer(applications.bier, name="bier")
app.add_typer(applications.firewall, name="firewall")
app.add_typer(bng.app, name="bng")
app.command()(extensions.extensions)
app.command()(schemas.schema)
app.command()(machine.doctor)
for name in ("p4c", "p4c-bm2-ss", "p4c-bm2-psa"):
    app.command(name, cls=bmv2.Verbatim, hidden=name != "p4c")(bmv2.compiler)
for name in ("simple_switch_grpc", "simple_switch"):
    app.command(name, cls=bmv2.Verbatim, hidden=name != "simple_switch_grpc")(bmv2.switch)
app.command("simple_switch_CLI", cls=bmv2.Verbatim)(bmv2.runtime_cli)
app.command()(bmv2.shims)


_EXTRA_OF = {"matplotlib": "compare", "numpy": "compare", "polars": "compare"}
"""The extra of the package that installs a module which only some commands need."""


def main() -> None:
    """Run the command line. Errors of Holdfast and of the system end with one message and exit status 1."""
    interrupts.end_quietly()
    try:
        app(prog_name="holdfast")
    except HoldfastError as error:
        say("error", error)
        sys.exit(1)
    except ModuleNotFoundError as error:
        if (extra := _EXTRA_OF.get((error.name or "").partition(".")[0])) is None:
            raise
        say("error", f"this needs {error.name}, which is not installed: pip install 'holdfast[{extra}]'")
        sys.exit(1)
    except OSError as error:
        # For example a full disk, or a folder that is a file: a traceback would not help.
        where = f"{error.filename}: " if error.filename is not None else ""
        say("error", f"{where}{error.strerror or error}")
        sys.exit(1)
    except KeyboardInterrupt:
        errors.print("interrupted")
        sys.exit(interrupts.STATUS)
