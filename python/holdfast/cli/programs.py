"""Commands for one program: compile, trace, stf. The command switch loads its program here, too."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from holdfast import whole_files
from holdfast._core import CompileError, Diagnostic, HoldfastError, Program
from holdfast.cli.shared import (
    ENTRIES_FORMATS,
    MAX_PORT,
    Defines,
    Includes,
    P4Info,
    check_folder,
    console,
    errors,
    fail,
    interruptible,
    say,
    warned_of,
    writing,
)
from holdfast.errors import EntriesWarning
from holdfast.regular_files import MOST_TEXT_BYTES, read_regular
from holdfast.terminal import printable, screenful

if TYPE_CHECKING:
    from holdfast.stf import Report

ENTRIES_EXAMPLE = "tables: {ipv4_lpm: [{match: {hdr.ipv4.dst_addr: 10.0.0.0/8}, action: drop}]}"


TEXT_BYTES = 1 << 16
"""The part of a file that is searched for bytes that are not text."""

ARTIFACT_BEGINS = b"holdfast_ir "
"""Of :data:`holdfast.p4runtime.device_config.ARTIFACT_BEGINS`: that module takes long to import."""

MAX_ARTIFACT_BYTES = 1 << 30

TRACE_LINES = 2000
"""Lines that are printed of the trace of one packet, which a program can resubmit thousands of times; JSON has all of it."""


def macros(defines: list[str]) -> dict[str, str]:
    """Return the values of macros by name from ``NAME=VALUE``, or ``NAME``, whose value is 1."""
    return {name: value if given else "1" for name, given, value in (d.partition("=") for d in defines)}


def check_includes(includes: list[Path]) -> None:
    """End the command with an error if a directory for includes does not exist."""
    for directory in includes:
        if not directory.is_dir():
            fail(f"-I: there is no directory {str(directory)!r}")


def _check_source(source: Path, includes: list[Path]) -> None:
    if source.is_dir():
        fail(f"{str(source)!r} is a directory, not a program")
    if not source.exists():
        fail(f"there is no file {str(source)!r}")
    if not source.is_file():
        fail(f"{str(source)!r} is not a regular file")
    with source.open("rb") as file:
        if b"\0" in file.read(TEXT_BYTES):
            fail(f"{str(source)!r} is not P4 source: it contains bytes that are not text")
    check_includes(includes)


@dataclass(frozen=True)
class Reporting:
    """Where the compiler's diagnostics go: to standard error for people, or as JSON to standard output; and to a SARIF file."""

    as_json: bool = False
    sarif: Path | None = None

    def report(self, found: Sequence[Diagnostic], rendered: str) -> None:
        """Write the diagnostics of a compilation; ``rendered`` is their text."""
        from holdfast import diagnostics

        if self.sarif is not None:
            with writing(self.sarif):
                whole_files.write_text(self.sarif, json.dumps(diagnostics.sarif(found), indent=2) + "\n")
        if self.as_json:
            sys.stdout.write(diagnostics.json_lines(found))
        elif rendered:
            sys.stderr.write(f"{screenful(rendered)}\n")


def examine(source: Path, defines: list[str], includes: list[Path], reporting: Reporting) -> None:
    """Print where a program may read a value that is not set; end the command with status 1 if there is such a place, else 0."""
    _check_source(source, includes)
    found = Program.examine(str(source), include_dirs=[str(i) for i in includes], defines=macros(defines))
    reporting.report(found, "\n".join(d.rendered for d in found))
    raise typer.Exit(1 if found else 0)


def compile_or_fail(
    source: Path,
    defines: list[str],
    includes: list[Path],
    library: bool = False,
    reporting: Reporting = Reporting(),
) -> Program:
    """Compile a program and report its warnings. On errors, report them and end the command with status 1.

    A file without `main` ends the command: with success if ``library`` is True, so that a check is enough.
    """
    _check_source(source, includes)
    try:
        program = Program.compile(str(source), include_dirs=[str(i) for i in includes], defines=macros(defines))
    except CompileError as error:
        reporting.report(error.diagnostics, str(error))
        raise typer.Exit(0 if library and all(d.severity == "warning" for d in error.diagnostics) else 1) from None
    reporting.report(program.warnings, "\n".join(warning.rendered for warning in program.warnings))
    return program


def preprocess_or_fail(
    source: Path, defines: list[str], includes: list[Path], *, warn: bool
) -> tuple[str, str, list[str]]:
    """Return a program after the preprocessor, with and without the places in the source, and the files it was read from.

    Errors end the command with status 1. ``warn``: its warnings are printed, as nothing else will print them.
    """
    _check_source(source, includes)
    try:
        text, plain, files, warnings = Program.preprocess(
            str(source), include_dirs=[str(i) for i in includes], defines=macros(defines)
        )
    except CompileError as error:
        sys.stderr.write(f"{screenful(str(error))}\n")
        raise typer.Exit(1) from None
    if warn and warnings:
        rendered = "\n".join(warning.rendered for warning in warnings)
        sys.stderr.write(f"{screenful(rendered)}\n")
    return text, plain, files


def _is_artifact(file: Path) -> bool:
    """Return True if the command ``compile`` wrote the file, and False if it is source or missing."""
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        return stream.read(len(ARTIFACT_BEGINS)) == ARTIFACT_BEGINS


def load_or_fail(
    file: Path, defines: list[str], includes: list[Path], p4info: Path | None, *, needs_p4info: bool
) -> Program:
    """Load a program from its source, or from the output of the command ``compile`` and its P4Info.

    A mistake ends the command with one message and status 1.
    """
    if not _is_artifact(file):
        if p4info is not None:
            fail(f"--p4info belongs to a compiled program, and {str(file)!r} is source")
        return compile_or_fail(file, defines, includes)
    if defines or includes:
        fail(f"{str(file)!r} is compiled: -D and -I belong to source")
    beside = p4info or file.with_suffix(".p4info.txtpb")
    if p4info is not None and not p4info.exists():
        fail(f"there is no P4Info {str(p4info)!r}")
    try:
        text = _p4info_text(beside) if beside.exists() else ""
        artifact = read_regular(file, MAX_ARTIFACT_BYTES, HoldfastError)
    except HoldfastError as error:
        fail(str(error))
    try:
        program = Program.from_artifact(artifact, text)
    except HoldfastError as error:
        fail(f"{file}: {error}")
    if needs_p4info and not program.p4info:  # the compiler writes it into the program, too
        fail(f"there is no P4Info {str(beside)!r} of the compiled program: give it with --p4info, or compile again")
    return program


def _p4info_text(file: Path) -> str:
    """Return the P4Info of a file in text format. Raises HoldfastError if the file is none."""
    if file.suffix in (".bin", ".pb", ".json"):
        from holdfast.p4runtime import p4info_files  # protobuf takes long to import

        return p4info_files.read_text(file)
    try:
        return read_regular(file, MOST_TEXT_BYTES, HoldfastError).decode()
    except UnicodeDecodeError:
        raise HoldfastError(f"{str(file)!r} is not a P4Info in protobuf text format") from None


def write_p4info(file: Path, program: Program, ending: str | None = None) -> None:
    """Write the P4Info of a program in the format of an ending, by default the file's.

    A failure ends the command with one message.
    """
    from holdfast.p4runtime import p4info_files

    with writing(file):
        whole_files.write_bytes(file, p4info_files.encoded(program, ending or file.suffix))


def compile_command(
    source: Annotated[Path, typer.Argument(help="P4_16 program for v1model or PSA.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Compiled program (device config), or the directory for both files."),
    ] = None,
    p4info: Annotated[
        Path | None,
        typer.Option(
            "--p4info", help="P4Info: .bin is protobuf's binary format, .json its JSON, others its text format."
        ),
    ] = None,
    emit_ir: Annotated[bool, typer.Option("--emit-ir", help="Print the intermediate representation.")] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Write nothing; name reads of invalid headers and variables without a value, with the path there.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print errors and warnings to standard output, a JSON object a line.")
    ] = False,
    sarif: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write errors and warnings as SARIF 2.1.0.")
    ] = None,
    define: Defines = [],  # noqa: B006
    include: Includes = [],  # noqa: B006
) -> None:
    """Compile a program and write NAME.holdfast and NAME.p4info.txtpb into the current directory, or that of --output.

    A file without `main` is only checked.
    """
    if _is_artifact(source):
        fail(f"{str(source)!r} is compiled already: compile takes source")
    if as_json and emit_ir:
        fail("--json and --emit-ir both print to standard output")
    check_folder(sarif)
    reporting = Reporting(as_json, sarif)
    if check:
        if output is not None or p4info is not None or emit_ir:
            fail("--check writes nothing: leave out --output, --p4info and --emit-ir")
        examine(source, define, include, reporting)
    program = compile_or_fail(source, define, include, library=True, reporting=reporting)
    artifact = program.artifact()
    if emit_ir:
        sys.stdout.write(program.ir_text)
        return
    folder = output if output is not None and output.is_dir() else Path()
    output = folder / f"{source.stem}.holdfast" if output in (None, folder) else output
    p4info = p4info or folder / f"{source.stem}.p4info.txtpb"
    with writing(output):
        whole_files.write_bytes(output, artifact)
    write_p4info(p4info, program)
    if not as_json:
        console.print(
            f"{output}: {len(artifact)} bytes, {p4info}: P4Info", markup=False, highlight=False, soft_wrap=True
        )


def trace(
    source: Annotated[Path, typer.Argument(help="P4_16 program for v1model or PSA, or its compiled form.")],
    packet: Annotated[str, typer.Option(help="Hexadecimal bytes, or a capture file (pcap, pcapng).")],
    entries: Annotated[
        Path | None,
        typer.Option(
            help=f"Entries to install first: {ENTRIES_FORMATS}, as in {ENTRIES_EXAMPLE}; also multicast_groups, "
            "clone_sessions, registers."
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=MAX_PORT, help="Ingress port of the packet.")] = 1,
    assignments: Annotated[
        bool, typer.Option("--assignments", help="Also show every assignment to a variable.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    most: Annotated[int, typer.Option("--packets", min=1, help="Packets of a capture that run and are shown.")] = 100,
    p4info: P4Info = None,
    define: Defines = [],  # noqa: B006
    include: Includes = [],  # noqa: B006
) -> None:
    """Show the path of a packet through a program, step by step."""
    from holdfast import tracing

    program = load_or_fail(source, define, include, p4info, needs_p4info=entries is not None)
    packets = tracing.read_packets(packet)
    left_out = max(len(packets) - most, 0)
    with warned_of(EntriesWarning):
        traces = tracing.trace(program, entries, packets, port, text=not as_json, assignments=assignments)
    if as_json:
        sys.stdout.write(json.dumps([json.loads(trace) for trace in islice(traces, most)], indent=2) + "\n")
    else:
        # One by one: the traces of a large capture do not fit into memory.
        for number, text in enumerate(islice(traces, most)):
            shown = screenful(text, TRACE_LINES)
            sys.stdout.write(printable(f"\n{shown}" if number else shown))
    if left_out:
        say("note", f"{left_out} more packets are not shown: --packets {len(packets)} shows them")


class Executors(StrEnum):
    """One of the executors, or both and a comparison."""

    JIT = "jit"
    INTERPRETER = "interpreter"
    BOTH = "both"


STATUS_STYLES = {"passed": "green", "passed without packets": "cyan", "failed": "bold red", "skipped": "yellow"}


def stf(
    places: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Scripts NAME.stf beside programs NAME.p4, or directories of them, searched recursively.",
        ),
    ],
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write the results to this file.")
    ] = None,
    executor: Annotated[Executors, typer.Option(help="Executor of the packets.")] = Executors.BOTH,
    pattern: Annotated[str, typer.Option("--filter", metavar="GLOB", help="Run only scripts whose names match.")] = "*",
    all_cases: Annotated[bool, typer.Option("--all", help="Also list passed tests.")] = False,
    define: Defines = [],  # noqa: B006
    include: Includes = [],  # noqa: B006
) -> None:
    """Run packet tests in p4c's script format on both executors. The exit status is 1 if one fails, or if all are skipped."""
    from holdfast import stf as suite

    check_folder(json_file)
    check_includes(include)
    where = ", ".join(map(str, places))
    try:
        chosen = suite.scripts(places, pattern)
    except OSError as error:
        fail(f"cannot read {error.filename or where!r}: {error.strerror or error}")
    if not chosen:
        fail(f"there is no script {pattern + '.stf'!r} in {where!r}")
    from rich.progress import MofNCompleteColumn, Progress

    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    bar = Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)
    with interruptible(), bar:
        task = bar.add_task("", total=len(chosen))
        show = partial(bar.update, task, advance=1)
        report = suite.run(
            chosen, executor.value, [str(i) for i in include], macros(define), lambda name: show(description=name)
        )
    if json_file:
        with writing(json_file):
            whole_files.write_text(json_file, json.dumps(report.json(), indent=2) + "\n")
    _print_cases(report, all_cases)
    if report.count("failed") or report.count("skipped") == len(report.cases):
        raise typer.Exit(1)


def _print_cases(report: Report, all_cases: bool) -> None:
    table = Table(title="packet tests", title_justify="left", box=None, pad_edge=False)
    for column in ("name", "status", "reason"):
        table.add_column(column, overflow="fold")
    for case in report.cases:
        if all_cases or case.status != "passed":
            table.add_row(Text(case.name), Text(case.status, STATUS_STYLES[case.status]), Text(case.reason))
    if table.row_count:
        console.print(table)
    counts = (f"[{style}]{report.count(status)} {status}[/]" for status, style in STATUS_STYLES.items())
    console.print(", ".join(counts), highlight=False)
