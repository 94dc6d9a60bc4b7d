"""Commands with the names and options of BMv2's: p4c, simple_switch_grpc, simple_switch_CLI; and shims, for PATH."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from holdfast import whole_files
from holdfast.cli.programs import compile_or_fail, load_or_fail, preprocess_or_fail, write_p4info
from holdfast.cli.shared import Executor, console, fail, interruptible, say, writing
from holdfast.terminal import printable
from holdfast.version import version

if TYPE_CHECKING:
    from holdfast.bmv2 import compiler_options

_COMM = Path("/proc/self/comm")
_LOG_PER_S = 1000
"""Packets per second in the log: BMv2 shows all."""


class Verbatim(TyperCommand):
    """A command that takes its words as they are, ``--`` and ``--help`` included."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Leave all words to the command."""
        ctx.args = list(args)
        return []


def compiler(context: typer.Context) -> None:
    """Compile a program, with the options of BMv2's compilers; it is written in the place of BMv2's JSON."""
    from holdfast.bmv2 import compiler_options

    name = context.info_name or compiler_options.DRIVER
    options = compiler_options.parse(name, context.args, version())
    _say_ignored(options.ignored)
    _write_preprocessed(options)
    if options.only_preprocess:
        return
    program = compile_or_fail(options.source, list(options.defines), list(options.includes))
    if program.warnings and options.warnings_are_errors:
        fail("there are warnings, and --Werror was given")
    if f'arch: "{options.architecture}"' not in program.p4info:
        fail(f"{options.source} is not for the architecture {options.architecture}: give --arch, or another program")
    if options.program is not None:
        with writing(options.program):
            options.program.parent.mkdir(parents=True, exist_ok=True)
            whole_files.write_bytes(options.program, program.artifact())
    for file, ending in options.p4info:
        write_p4info(file, program, ending)


def _write_preprocessed(options: compiler_options.CompilerOptions) -> None:
    """Write what the options want of the program after the preprocessor: its text, and the rule for ``make``."""
    rule = options.dependencies
    if not (options.only_preprocess or options.printed or rule):
        return
    text, plain, files = preprocess_or_fail(
        options.source, list(options.defines), list(options.includes), warn=options.only_preprocess
    )
    if options.printed is not None:
        _write_or_print(options.printed, plain)
    if rule is not None:
        _write_or_print(rule.file, rule.rule([file for file in files if Path(file).exists()]))
    if options.only_preprocess and (rule is None or rule.file != options.preprocessed):
        _write_or_print(options.preprocessed, text)


def _write_or_print(file: Path | None, text: str) -> None:
    """Write a text to a file, whose directory is created if it is not there, or to standard output."""
    if file is None:
        sys.stdout.write(printable(text))
        return
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        whole_files.write_text(file, text)


def switch(context: typer.Context) -> None:
    """Run a switch with the options of BMv2's simple_switch_grpc (needs root)."""
    from holdfast.bmv2 import switch_options
    from holdfast.live import switch as live_switch

    name = context.info_name or "simple_switch_grpc"
    options = switch_options.parse(name, context.args, version())
    _say_ignored(options.ignored)
    if options.pcap is not None and not options.pcap.is_dir():
        fail(f"--pcap: there is no directory {str(options.pcap)!r}")
    _be_called(name)
    program = None if options.program is None else load_or_fail(options.program, [], [], None, needs_p4info=True)
    with interruptible():
        live_switch.run(
            program,
            [live_switch.parse_port(text) for text in options.interfaces],
            io="auto",
            address=options.address,
            tls=live_switch.tls_files(options.certificate, options.key, options.client_ca),
            # Whoever gives an address beyond loopback means it, as BMv2 listens there without being told.
            insecure=options.explicit_address and options.client_ca is None,
            pipeline_roles=(),
            copies_per_s=live_switch.COPIES_PER_S,
            device_id=options.device_id,
            cpu_port=options.cpu_port,
            executor=Executor.JIT.value,
            metrics=None,
            console=console,
            records=live_switch.Records(options.pcap, options.log, _LOG_PER_S, options.dump_bytes),
            thrift_port=options.thrift_port,
            thrift_needed=options.explicit_thrift_port,
        )


def runtime_cli(context: typer.Context) -> None:
    """Carry out the commands of BMv2's simple_switch_CLI, from standard input, at a running switch of this network namespace."""
    from holdfast.bmv2 import runtime_cli as cli

    if not cli.main(context.args, version()):
        raise typer.Exit(1)


def shims(
    directory: Annotated[Path, typer.Argument(help="Directory for PATH; it is created if it is not there.")],
) -> None:
    """Write commands with BMv2's names (p4c, simple_switch_grpc, simple_switch_CLI) that run Holdfast, for scripts of others.

    Put the directory in front of PATH: PATH="DIRECTORY:$PATH" ./runptf.sh. Clients that import p4.tmp need
    PYTHONPATH="DIRECTORY/python".
    """
    from holdfast.bmv2 import shims as commands

    with writing(directory):
        written = commands.write(directory)
    names = ", ".join(path.name for path in written)
    console.print(f"{directory}: {names}", markup=False, highlight=False, soft_wrap=True)


def _say_ignored(ignored: tuple[str, ...]) -> None:
    if ignored:
        say("note", f"ignored: {', '.join(ignored)}")


def _be_called(name: str) -> None:
    """Give the process the name of BMv2's, by which scripts end it (pkill simple_switch)."""
    try:
        _COMM.write_text(name[:15], encoding="ascii")
    except OSError:
        say("warning", f"this process cannot be called {name}, so scripts may not find it by that name")
