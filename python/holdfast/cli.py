"""The command line. Each command is a few lines that call other modules."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.progress import MofNCompleteColumn, Progress
from rich.table import Table
from rich.text import Text

from holdfast import interrupts, whole_files
from holdfast._core import CompileError, HoldfastError, Program
from holdfast.errors import ScenarioError, TopologyWarning
from holdfast.regular_files import MOST_TEXT_BYTES, read_regular
from holdfast.subscribers import commands as bng
from holdfast.terminal import Console, printable

if TYPE_CHECKING:
    from holdfast.compare.comparison import Comparison
    from holdfast.stf import Report

app = typer.Typer(
    name="holdfast",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
# Names and addresses may contain emoji codes, as in "ring:x:".
console = Console(emoji=False)
errors = Console(stderr=True, emoji=False)


ENTRIES_EXAMPLE = "tables: {ipv4_lpm: [{match: {hdr.ipv4.dst_addr: 10.0.0.0/8}, action: drop}]}"


class Executor(StrEnum):
    """The two executors of the switch."""

    JIT = "jit"
    INTERPRETER = "interpreter"


class Telemetry(StrEnum):
    """What a comparison can be told by."""

    INT = "int"


class Scenario(StrEnum):
    """What ``compare`` compares in place of a topology that is given."""

    BNG = "bng"


class Io(StrEnum):
    """How frames leave a live port."""

    AUTO = "auto"
    AF_PACKET = "af_packet"
    AF_XDP = "af_xdp"


FIRST_LINKS = 40
"""How many links of a large topology are shown on a terminal."""

TEXT_BYTES = 1 << 16
"""The part of a file that is searched for bytes that are not text."""

ARTIFACT_BEGINS = b"holdfast_ir "

MAX_PORT = 510
"""The last port of a switch. The modules that know it take long to import."""

COPIES_PER_S = 200_000
"""Of :data:`holdfast._core.COPIES_PER_S`, likewise."""

MAX_SEEDS = 100_000
MAX_JOBS = 1024

MAX_ARTIFACT_BYTES = 1 << 30

Defines = Annotated[list[str], typer.Option("--define", "-D", metavar="NAME[=VALUE]", help="Preprocessor macro.")]
DeviceId = Annotated[int, typer.Option(help="P4Runtime device id of the switch.")]
P4Info = Annotated[
    Path | None,
    typer.Option(
        "--p4info", help="P4Info of a compiled program.", show_default="NAME.p4info.txtpb beside NAME.holdfast"
    ),
]
TelemetryOption = Annotated[
    Telemetry | None,
    typer.Option(
        "--telemetry",
        help="int: switches report latency and queue of each port by INT-MD, and the report shows them before, during and after"
        " the failure. Of mechanisms whose program has INT: static and reroute, which then run telemetry.p4 (16 bytes of headers"
        " and 24 per hop in TCP and UDP, and reports to a collector, all in the figures). Not live.",
    ),
]
Includes = Annotated[list[Path], typer.Option("--include", "-I", help="Directory to search for #include <...>.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"holdfast {version('holdfast')}\n")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """P4_16 compiler, software switch, and a network on two clocks. Cut a link and measure the loss."""


def _say(kind: str, message: object) -> None:
    """One line on standard error, never wrapped, so that programs can search it."""
    errors.print(f"{kind}: {message}", markup=False, highlight=False, soft_wrap=True)


def fail(message: str) -> NoReturn:
    """Ends the command with one clear message."""
    _say("error", message)
    raise typer.Exit(1)


def _check_folder(file: Path | None) -> None:
    """Ends the command before the work if it could not write its results."""
    if file is not None and not file.absolute().parent.is_dir():
        fail(f"there is no directory for {str(file)!r}")


@contextmanager
def _writing(file: Path) -> Iterator[None]:
    """Reports a failure to write a requested file."""
    try:
        yield
    except OSError as error:
        fail(f"cannot write {str(file)!r}: {error.strerror}")


def _progress(text: str) -> None:
    """Shows progress on a terminal."""
    errors.print(Text(text, style="dim"))


def macros(defines: list[str]) -> dict[str, str]:
    """``NAME=VALUE`` and ``NAME``, which means 1, by name."""
    return {name: value if given else "1" for name, given, value in (d.partition("=") for d in defines)}


def _check_includes(includes: list[Path]) -> None:
    for directory in includes:
        if not directory.is_dir():
            fail(f"-I: there is no directory {str(directory)!r}")


def _check_source(source: Path, includes: list[Path]) -> None:
    if source.is_dir():
        fail(f"{str(source)!r} is a directory, not a program")
    if not source.is_file():
        fail(f"there is no file {str(source)!r}")
    with source.open("rb") as file:
        if b"\0" in file.read(TEXT_BYTES):
            fail(f"{str(source)!r} is not P4 source: it contains bytes that are not text")
    _check_includes(includes)


def examine(source: Path, defines: list[str], includes: list[Path], as_json: bool) -> None:
    """Prints what a program reads that may not be there; ends the command with 1 if there is something."""
    _check_source(source, includes)
    found = Program.examine(str(source), include_dirs=[str(i) for i in includes], defines=macros(defines))
    if as_json:
        names = ("code", "severity", "message", "file", "line", "column", "rendered")
        sys.stdout.write(json.dumps([{name: getattr(d, name) for name in names} for d in found], indent=2) + "\n")
    else:
        sys.stderr.write("".join(f"{d.rendered}\n" for d in found))
    raise typer.Exit(1 if found else 0)


def compile_or_fail(source: Path, defines: list[str], includes: list[Path], library: bool = False) -> Program:
    """Compiles, printing warnings; diagnostics go to standard error as they are.

    A file without `main` ends the command: with success if ``library`` says that having checked it is enough.
    """
    _check_source(source, includes)
    try:
        program = Program.compile(str(source), include_dirs=[str(i) for i in includes], defines=macros(defines))
    except CompileError as error:
        sys.stderr.write(f"{error}\n")
        raise typer.Exit(0 if library and all(d.severity == "warning" for d in error.diagnostics) else 1) from None
    for warning in program.warnings:
        sys.stderr.write(f"{warning.rendered}\n")
    return program


def _is_artifact(file: Path) -> bool:
    """Whether `compile` wrote the file; otherwise it counts as source."""
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        return stream.read(len(ARTIFACT_BEGINS)) == ARTIFACT_BEGINS


def load_or_fail(
    file: Path, defines: list[str], includes: list[Path], p4info: Path | None, *, needs_p4info: bool
) -> Program:
    """A program from its source, or from the output of `compile` with its P4Info."""
    if not _is_artifact(file):
        if p4info is not None:
            fail(f"--p4info belongs to a compiled program, and {str(file)!r} is source")
        return compile_or_fail(file, defines, includes)
    if defines or includes:
        fail(f"{str(file)!r} is compiled: -D and -I belong to source")
    beside = p4info or file.with_suffix(".p4info.txtpb")
    text = ""
    if beside.exists():
        try:
            text = read_regular(beside, MOST_TEXT_BYTES, HoldfastError).decode()
        except UnicodeDecodeError:
            fail(f"{str(beside)!r} is not a P4Info in protobuf text format")
    elif p4info is not None or needs_p4info:
        fail(f"there is no P4Info {str(beside)!r} of the compiled program: give it with --p4info, or compile again")
    try:
        artifact = read_regular(file, MAX_ARTIFACT_BYTES, HoldfastError)
    except HoldfastError as error:
        fail(str(error))
    try:
        return Program.from_artifact(artifact, text)
    except HoldfastError as error:
        fail(f"{file}: {error}")


@app.command()
def demo(
    live: Annotated[bool, typer.Option("--live", help="Real namespaces, kernel TCP, real time (needs root).")] = False,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Same seed, same result, byte for byte (unless live).")
    ] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Directory for the results.", show_default="out/demo or out/demo-live")
    ] = None,
    jitter_ms: Annotated[
        float | None,
        typer.Option(min=0, help="Uniform jitter per link between switches.", show_default="0.1, live: 0"),
    ] = None,
    detection_delay_ms: Annotated[float, typer.Option(help="Time from the cut to its detection by the switch.")] = 50.0,
    reaction_delay_ms: Annotated[
        float, typer.Option(help="Time from the detection to the controller's new routes.")
    ] = 100.0,
    executor: Annotated[Executor, typer.Option(help="Executor of the packets.")] = Executor.JIT,
    telemetry: TelemetryOption = None,
) -> None:
    """Cut a link under UDP, TCP and a ping, and compare four mechanisms on a square of two paths."""
    from holdfast import demo as square

    built = square.scenario(
        live=live,
        jitter_ms=(0.0 if live else 0.1) if jitter_ms is None else jitter_ms,
        executor=executor.value,
        detection_delay_ms=detection_delay_ms,
        reaction_delay_ms=reaction_delay_ms,
        telemetry=telemetry is not None,
    )
    folder = out or Path("out/demo-live" if live else "out/demo")
    _show_comparison(lambda: square.run(built, folder, seed=seed, console=errors), folder)


def _show_comparison(run: Callable[[], Comparison], out: Path) -> None:
    """Runs it, and prints the ranking, the advice and the notes on them."""
    from holdfast.compare import advice, terminal

    try:
        with interrupts.raised():
            found = run()
    except KeyboardInterrupt:
        errors.print("interrupted; the same command continues from here", soft_wrap=True)
        raise typer.Exit(interrupts.STATUS) from None
    console.print(Text(f"{terminal.title(found)}\n", style="italic"))
    console.print(terminal.table(found))
    if found.scenario.telemetry:
        console.print("")
        console.print(terminal.telemetry_table(found))
    console.print(Text(f"\n{advice.advice(found)}\n"))
    for note in advice.notes(found):
        console.print(Text(f"* {note}", style="dim"))
    _say_where(out)


def _say_where(out: Path) -> None:
    console.print(f"results in {out}/; open {out}/report.html", markup=False, highlight=False, soft_wrap=True)


@app.command("compile")
def compile_command(
    source: Annotated[Path, typer.Argument(help="P4_16 program for v1model or PSA.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Compiled program (device config).")] = None,
    p4info: Annotated[Path | None, typer.Option("--p4info", help="P4Info in protobuf text format.")] = None,
    emit_ir: Annotated[bool, typer.Option("--emit-ir", help="Print the intermediate representation.")] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Write nothing; name reads of invalid headers and variables without a value, with the path there.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --check: print JSON.")] = False,
    define: Defines = [],  # noqa: B006
    include: Includes = [],  # noqa: B006
) -> None:
    """Compile a program and write NAME.holdfast and NAME.p4info.txtpb into the current directory.

    A file without `main` is only checked.
    """
    if _is_artifact(source):
        fail(f"{str(source)!r} is compiled already: compile takes source")
    if as_json and not check:
        fail("--json belongs to --check")
    if check:
        if output is not None or p4info is not None or emit_ir:
            fail("--check writes nothing: leave out --output, --p4info and --emit-ir")
        examine(source, define, include, as_json)
    program = compile_or_fail(source, define, include, library=True)
    artifact = program.artifact()
    if emit_ir:
        sys.stdout.write(artifact.decode())
        return
    output = output or Path(f"{source.stem}.holdfast")
    p4info = p4info or Path(f"{source.stem}.p4info.txtpb")
    with _writing(output):
        whole_files.write_bytes(output, artifact)
    with _writing(p4info):
        whole_files.write_text(p4info, program.p4info)
    console.print(f"{output}: {len(artifact)} bytes, {p4info}: P4Info", markup=False, highlight=False, soft_wrap=True)


@app.command()
def trace(
    source: Annotated[Path, typer.Argument(help="P4_16 program for v1model or PSA, or its compiled form.")],
    packet: Annotated[str, typer.Option(help="Hexadecimal bytes, or a capture file (pcap, pcapng).")],
    entries: Annotated[
        Path | None,
        typer.Option(
            help=f"Entries to install first (YAML), as in {ENTRIES_EXAMPLE}; also multicast_groups, clone_sessions, registers."
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=MAX_PORT, help="Ingress port of the packet.")] = 1,
    assignments: Annotated[
        bool, typer.Option("--assignments", help="Also show every assignment to a variable.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    p4info: P4Info = None,
    define: Defines = [],  # noqa: B006
    include: Includes = [],  # noqa: B006
) -> None:
    """Show the path of a packet through a program, step by step."""
    from holdfast import tracing

    program = load_or_fail(source, define, include, p4info, needs_p4info=entries is not None)
    packets = tracing.read_packets(packet)
    traces = tracing.trace(program, entries, packets, port, text=not as_json, assignments=assignments)
    if as_json:
        sys.stdout.write(json.dumps([json.loads(trace) for trace in traces], indent=2) + "\n")
    else:
        # One by one: the traces of a large capture do not fit into memory.
        for number, text in enumerate(traces):
            sys.stdout.write(printable(f"\n{text}" if number else text))


@app.command()
def switch(
    source: Annotated[
        Path, typer.Argument(help="P4_16 program, or its compiled form; a P4Runtime client may replace it.")
    ],
    interface: Annotated[
        list[str], typer.Option("--interface", "-i", metavar="PORT@NAME", help="Add a port (repeatable).")
    ] = [],  # noqa: B006
    grpc: Annotated[str, typer.Option(help="Address of the P4Runtime server.")] = "127.0.0.1:9559",
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Let every client that reaches the address write, even if it is not loopback."),
    ] = False,
    tls_certificate: Annotated[Path | None, typer.Option(help="PEM file of the server's certificate.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM file of the certificate's key.")] = None,
    tls_client_ca: Annotated[
        Path | None, typer.Option(help="PEM file of the authority of clients' certificates.")
    ] = None,
    client_rights: Annotated[
        Path | None,
        typer.Option(metavar="YAML", help="Rights of certificates: to read, to write as a role, to set the pipeline."),
    ] = None,
    pipeline_role: Annotated[
        list[str],
        typer.Option(metavar="ROLE", help="A role that may replace the program; the default role always may."),
    ] = [],  # noqa: B006
    limit: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=VALUE", help="Change a limit for P4Runtime clients, as in docs/SECURITY.md (repeatable)."
        ),
    ] = [],  # noqa: B006
    copies_per_s: Annotated[
        int,
        typer.Option(
            min=0,
            help="Maximum of resubmissions, recirculations and clones per second beyond the first two of each packet.",
        ),
    ] = COPIES_PER_S,
    device_id: DeviceId = 1,
    cpu_port: Annotated[
        int | None,
        typer.Option(
            min=0, max=MAX_PORT, help="Port of the controller; by default, that of the architecture (v1model: 510)."
        ),
    ] = None,
    executor: Annotated[Executor, typer.Option(help="Executor of the packets.")] = Executor.JIT,
    io: Annotated[
        Io, typer.Option(help="How frames leave: af_xdp is faster, af_packet is visible to tc and tcpdump.")
    ] = Io.AUTO,
    p4info: P4Info = None,
    define: Defines = [],  # noqa: B006
    include: Includes = [],  # noqa: B006
) -> None:
    """Run a switch on Linux interfaces, controlled over P4Runtime (needs root)."""
    from holdfast.live import switch as live_switch
    from holdfast.p4runtime import limits

    limits.change(limit)
    program = load_or_fail(source, define, include, p4info, needs_p4info=True)
    with interrupts.raised():
        live_switch.run(
            program,
            [live_switch.parse_port(text) for text in interface],
            io=io.value,
            address=grpc,
            tls=live_switch.tls_files(tls_certificate, tls_key, tls_client_ca, client_rights),
            insecure=insecure,
            pipeline_roles=pipeline_role,
            copies_per_s=copies_per_s,
            device_id=device_id,
            cpu_port=cpu_port,
            executor=executor.value,
            console=console,
        )


class Executors(StrEnum):
    """One of the executors, or both and a comparison."""

    JIT = "jit"
    INTERPRETER = "interpreter"
    BOTH = "both"


STATUS_STYLES = {"passed": "green", "passed without packets": "cyan", "failed": "bold red", "skipped": "yellow"}


@app.command()
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
    """Run packet tests in p4c's script format on both executors. The exit status is 1 if one fails."""
    from holdfast import stf as suite

    _check_folder(json_file)
    _check_includes(include)
    where = ", ".join(map(str, places))
    try:
        chosen = suite.scripts(places, pattern)
    except OSError as error:
        fail(f"cannot read {error.filename or where!r}: {error.strerror or error}")
    if not chosen:
        fail(f"there is no script {pattern + '.stf'!r} in {where!r}")
    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    bar = Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)
    with interrupts.raised(), bar:
        task = bar.add_task("", total=len(chosen))
        show = partial(bar.update, task, advance=1)
        report = suite.run(
            chosen, executor.value, [str(i) for i in include], macros(define), lambda name: show(description=name)
        )
    if json_file:
        with _writing(json_file):
            whole_files.write_text(json_file, json.dumps(report.json(), indent=2) + "\n")
    _print_cases(report, all_cases)
    if report.count("failed"):
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


@app.command()
def bench(
    program: Annotated[list[str], typer.Option("--program", "-p", help="Measure only this program (repeatable).")] = [],  # noqa: B006
    size: Annotated[
        list[int], typer.Option("--size", "-s", min=64, max=9000, help="Packet size in bytes (repeatable).")
    ] = [],  # noqa: B006
    quick: Annotated[bool, typer.Option("--quick", help="Small tables and few packets, for a quick check.")] = False,
    output: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write the results to this file.")
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Measure a switch on veth pairs instead (needs root).")] = False,
    io: Annotated[Io, typer.Option(help="With --live: how frames leave.")] = Io.AUTO,
    tables: Annotated[
        bool, typer.Option("--tables", help="Measure tables alone instead; --program selects some.")
    ] = False,
    simulation: Annotated[
        bool, typer.Option("--simulation", help="Measure networks in virtual time instead; --program selects some.")
    ] = False,
) -> None:
    """Measure packets per second of P4 programs on one core, beside hand-written Rust of the same function."""
    _check_folder(output)
    if live:
        if program:
            fail("--live measures the router only: leave out --program")
        _bench_live(size, io, quick, output)
        return
    from holdfast import benchmark

    if tables and simulation:
        fail("--tables and --simulation measure different things: give one of them")
    if simulation:
        if size:
            fail("--simulation has packets of its own: leave out --size")
        simulated = benchmark.run_simulations(program, quick=quick, progress=_progress)
        console.print(benchmark.table_of_simulations(simulated))
        records = [benchmark.simulation_record(result) for result in simulated]
    elif tables:
        if size:
            fail("--tables measures no packets: leave out --size")
        measured = benchmark.run_tables(program, quick=quick, progress=_progress)
        console.print(benchmark.table_of_tables(measured))
        records = [asdict(result) for result in measured]
    else:
        results = benchmark.run(program, size, quick=quick, progress=_progress)
        console.print(benchmark.table(results))
        if all(result.instructions_per_packet is None for result in results):
            console.print(
                "[dim]Instructions are not counted: this machine does not give access to its processor's counters.[/]"
            )
        records = [benchmark.record(result) for result in results]
    if output is not None:
        with _writing(output):
            benchmark.write_json(records, output)


def _bench_live(size: list[int], io: Io, quick: bool, output: Path | None) -> None:
    from holdfast.live import benchmark

    if reason := benchmark.reason_against():
        console.print(f"skipped: {reason}", highlight=False)
        return
    with interrupts.raised():
        results = benchmark.run(size, io=io.value, quick=quick, progress=_progress)
    console.print(benchmark.table(results))
    for result in results:
        console.print(f"{result.size_bytes} bytes, sent by {result.io}; limited by: {result.limit}", highlight=False)
    if output is not None:
        with _writing(output):
            benchmark.write_json(results, output)


@app.command()
def topology(
    spec: Annotated[
        str,
        typer.Argument(
            help="A file (.yaml, .graphml), or a name: line:4, ring:5, star:3, mesh:4, grid:3x4, fat-tree:4, "
            "waxman:20,seed=3, erdos-renyi:20,p=0.1, nsfnet, abilene; then PARAMETER=VALUE as in ring:5,delay_ms=2,hosts=0."
        ),
    ],
    as_yaml: Annotated[bool, typer.Option("--yaml", help="Write the topology as YAML to standard output.")] = False,
    draw: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the topology (.svg or .png).")] = None,
    every_link: Annotated[
        bool, typer.Option("--all", help=f"Show every link on a terminal, instead of the first {FIRST_LINKS}.")
    ] = False,
) -> None:
    """Show, convert or draw a topology. Links have the names that other commands use."""
    from holdfast import topologies

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TopologyWarning)
        loaded = topologies.load(spec)
    for warning in caught:
        _say("warning", warning.message)
    if draw is not None:
        from holdfast import plots

        plots.draw_topology(loaded, draw)
        errors.print(f"drawn in {draw}", markup=False, highlight=False, soft_wrap=True)
    if as_yaml:
        sys.stdout.write(loaded.to_yaml())
    elif draw is None:
        most = None if every_link or not sys.stdout.isatty() else FIRST_LINKS
        sys.stdout.writelines(f"{printable(line)}\n" for line in topologies.listing(loaded, most))


@app.command()
def reproduce(
    experiment: Annotated[str | None, typer.Argument(help="Name of the experiment, as in --list.")] = None,
    part: Annotated[
        list[str] | None, typer.Argument(help="Figures and tables, such as table3 fig14. The default is all.")
    ] = None,
    show: Annotated[
        bool,
        typer.Option("--list", help="List experiments or parts, and their runs."),
    ] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, max=MAX_SEEDS, help="Number of seeds.", show_default="as many as in the paper")
    ] = None,
    first_seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=2**32 - 1,
            help="First seed. Choose parameters with some seeds and judge them with others.",
        ),
    ] = 1,
    jobs: Annotated[int, typer.Option(min=1, max=MAX_JOBS, help="Processes on this machine.")] = 1,
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Use a Ray cluster; local starts one with --jobs processors."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory for the results; each experiment has its own below it.")] = Path(
        "out/experiments"
    ),
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Few seeds, and few small points of each part, to see that all of it works."),
    ] = False,
) -> None:
    """Reproduce the figures and tables of a paper, with its numbers beside ours.

    After an interrupt, the same command continues where it stopped.
    """
    from holdfast import experiments
    from holdfast import reproduce as reproduction

    if experiment is None or show:
        known = reproduction.everything() if experiment is None else [experiments.find(experiment)]
        console.print(reproduction.listing(known))
        return
    chosen = experiments.find(experiment)
    try:
        with interrupts.raised():
            reproduction.run(
                chosen,
                part or [],
                out,
                seeds=seeds,
                first_seed=first_seed,
                jobs=jobs,
                ray=ray,
                console=console,
                progress=errors,
                quick=quick,
            )
    except KeyboardInterrupt:
        errors.print("interrupted; the same command continues from here", soft_wrap=True)
        raise typer.Exit(interrupts.STATUS) from None
    console.print(f"results in {out / experiment}/", markup=False, highlight=False, soft_wrap=True)


@app.command()
def compare(
    topology: Annotated[
        str | None,
        typer.Argument(
            help="A file (.yaml, .graphml), or a name such as abilene, ring:5, waxman:100; see the command topology. "
            "Left out with --scenario."
        ),
    ] = None,
    scenario: Annotated[
        Scenario | None,
        typer.Option(
            help="In place of a topology. bng: subscribers behind one gateway of a single plane, two of them, or one whose planes "
            "are split behind a balancer; sessions, losses and time to recover when something of it fails.",
            show_default=False,
        ),
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Run in real time with network namespaces as hosts and the kernel's TCP (needs root): at most 32 switches, 32 "
            "hosts, half an hour. By default 6 host pairs have UDP, 3 of them TCP.",
        ),
    ] = False,
    fail: Annotated[
        str,
        typer.Option(
            metavar="LINK|NODE|all|nodes",
            help="A link A-B, a switch, every link between switches in turn, or every switch in turn. With --scenario bng plane, "
            "controller, radius, access, or all of them in turn.",
        ),
    ] = "all",
    traffic: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|multicast",
            help="UDP, TCP and ping in YAML; holdfast.compare.traffic_file documents the format. multicast: up to 8 groups with a "
            "source and up to 20 receivers each, half of the hosts at most, drawn always alike; UDP of 20 to 500 packets/s, all "
            "copies together at most 16,000 per second and a third of the slowest link.",
            show_default="16 host pairs, up to 50 in networks "
            "of more than 32 hosts, with UDP of 20 to 500 packets/s, together at most a third of the slowest link; for 16 of them "
            "(in such networks 8) a TCP connection of about 5 Mb/s, and four TCP transfers of 50 kB around the failure, less if "
            "links are slow: at most half of any link, even if each pair uses its cheapest path and a disjoint one; a pair that "
            "could not have 0.5 Mb/s has no TCP",
        ),
    ] = None,
    mechanisms: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Mechanisms to compare; static is always included, and ingress-replication if all flows have several receivers.",
            show_default="all mechanisms, or all of multicast if all flows have several receivers",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, max=MAX_SEEDS, help="Number of seeds; every mechanism has the same seeds.")
    ] = 1,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MAX_JOBS,
            help="Processes; the results do not depend on their number.",
            show_default="one for each processor",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Directory for the results.", show_default="out/compare, out/compare-live or out/compare-bng"
        ),
    ] = None,
    before_s: Annotated[
        float | None,
        typer.Option(
            help="Seconds from the beginning to the failure.", show_default="1; with --fail all or nodes 0.5; bng 8"
        ),
    ] = None,
    down_s: Annotated[
        float | None,
        typer.Option(
            help="Seconds from the failure to the repair.", show_default="2; with --fail all or nodes 1.5; bng 8"
        ),
    ] = None,
    after_s: Annotated[
        float | None,
        typer.Option(
            help="Seconds from the repair to the end.", show_default="1; with --fail all or nodes 0.5; bng 12"
        ),
    ] = None,
    detection_delay_ms: Annotated[float, typer.Option(help="Time from a failure to its detection by a switch.")] = 50.0,
    reaction_delay_ms: Annotated[
        float, typer.Option(help="Time from the detection to a controller's new routes.")
    ] = 100.0,
    executor: Annotated[Executor, typer.Option(help="Executor of the packets.")] = Executor.JIT,
    telemetry: TelemetryOption = None,
    subscribers: Annotated[int | None, typer.Option(help="Of --scenario bng, 2 to 400.", show_default="50")] = None,
    packets_per_s: Annotated[
        float | None, typer.Option(help="Of each subscriber in each direction.", show_default="50")
    ] = None,
    newcomers_per_s: Annotated[
        float | None, typer.Option(help="Other subscribers that dial while something is down.", show_default="4")
    ] = None,
    keepalive_s: Annotated[
        float | None,
        typer.Option(
            help="Seconds between LCP echoes; a session is over when three in a row are not answered.", show_default="1"
        ),
    ] = None,
) -> None:
    """Fail a link, a switch, or every link under each mechanism, and compare losses, outages and costs.

    Losses without the failure are subtracted, seed by seed. Mechanisms that differ by less than a margin, which the report
    states, share a rank. There is no ranking if losses without a failure are as large as its cost, or if a live run was disturbed.

    After an interrupt, the same command continues where it stopped.
    """
    from holdfast.compare import mechanisms as registry
    from holdfast.compare import results
    from holdfast.compare import scenario as scenarios

    given = None if mechanisms is None else [name.strip() for name in mechanisms.split(",")]
    processes = jobs or len(os.sched_getaffinity(0))
    crowd: dict[str, float | None] = {
        "subscribers": subscribers,
        "packets_per_s": packets_per_s,
        "newcomers_per_s": newcomers_per_s,
        "keepalive_s": keepalive_s,
    }
    times: dict[str, float | None] = {
        "before_s": before_s,
        "down_s": down_s,
        "after_s": after_s,
        "detection_delay_ms": detection_delay_ms,
        "reaction_delay_ms": reaction_delay_ms,
    }
    if scenario is not None:
        scenarios.check_alone(
            scenario.value,
            {"TOPOLOGY": topology, "--live": live or None, "--traffic": traffic, "--telemetry": telemetry},
        )
        _compare_gateways(fail, given, range(1, seeds + 1), out, processes, executor, times, crowd)
        return
    if topology is None:
        raise ScenarioError("give a topology, or --scenario bng")
    for name, value in crowd.items():
        if value is not None:
            raise ScenarioError(f"--{name.replace('_', '-')} belongs to --scenario bng")
    registry.find(given or ())
    file = None if traffic is None else Path(traffic)
    built = scenarios.build(
        topology,
        fail=fail,
        traffic=scenarios.MULTICAST if traffic == scenarios.MULTICAST else file,
        executor=executor.value,
        when=times,
        live=live,
        telemetry=telemetry is not None,
    )
    baseline = registry.baseline(built.traffic)
    if telemetry is not None:
        given = registry.with_telemetry(given, baseline)
    chosen = registry.find(given or registry.defaults(built.traffic), baseline)
    folder = out or Path("out/compare-live" if live else "out/compare")
    _show_comparison(
        lambda: results.run(built, chosen, range(1, seeds + 1), folder, jobs=processes, console=errors), folder
    )


def _compare_gateways(
    fail: str,
    names: Sequence[str] | None,
    seeds: Sequence[int],
    out: Path | None,
    jobs: int,
    executor: Executor,
    times: Mapping[str, float | None],
    crowd: Mapping[str, float | None],
) -> None:
    """``compare --scenario bng``."""
    from holdfast.compare.bng import mechanisms, results, scenario, terminal

    chosen = mechanisms.find(names)
    built = scenario.build(fail=fail, when=times, subscribers=crowd, executor=executor.value)
    folder = out or Path("out/compare-bng")
    try:
        with interrupts.raised():
            found = results.run(built, chosen, seeds, folder, jobs=jobs, console=errors)
    except KeyboardInterrupt:
        errors.print("interrupted; the same command continues from here", soft_wrap=True)
        raise typer.Exit(interrupts.STATUS) from None
    console.print(Text(f"{terminal.title(found)}\n", style="italic"))
    console.print(terminal.table(found))
    console.print(Text(f"\n{found.advice()}\n"))
    for note in (*terminal.failures(found), *found.notes()):
        console.print(Text(f"* {note}", style="dim"))
    _say_where(folder)


@app.command()
def collect(
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS:PORT", help="Where reports arrive, over UDP.")
    ] = "0.0.0.0:32766",
    capture: Annotated[
        Path | None,
        typer.Option(help="Read the reports of a capture (pcap, pcapng) instead; --listen says their port."),
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option(help="Directory for Parquet files with a row for each hop of each report.")
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS:PORT", help="Serve metrics for Prometheus at http://ADDRESS:PORT/metrics."),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--for", min=0.1, help="Seconds to listen.", show_default="until interrupted")
    ] = None,
    flows: Annotated[
        int, typer.Option(min=1, max=10_000_000, help="Flows in memory; beyond, the oldest one goes.")
    ] = 100_000,
    dscp: Annotated[int, typer.Option(min=0, max=63, help="DSCP of packets with INT in the domain.")] = 0x17,
    udp_port: Annotated[
        int, typer.Option(min=1, max=65535, help="UDP port of packets with INT in the domain.")
    ] = 54321,
    live: Annotated[
        bool, typer.Option(help="Show a table while listening.", show_default="on a terminal")
    ] = sys.stdout.isatty(),
) -> None:
    """Collect telemetry reports (v2.0): flows, paths, latencies, queues and drops.

    What arrives faster than it can be handled is counted; so is what is malformed.
    """
    from holdfast.apps.telemetry import collect as collecting
    from holdfast.apps.telemetry.collector import Limits

    collecting.run(
        collecting.Settings(
            listen=listen,
            capture=capture,
            parquet=parquet,
            metrics=metrics,
            seconds=seconds,
            limits=Limits(flows=flows),
            dscp=dscp,
            udp_port=udp_port,
            live=live,
        ),
        console,
    )


ports = typer.Typer(no_args_is_help=True, help="Ports of a running holdfast switch.")
app.add_typer(ports, name="port")


@ports.command("list")
def port_list(device_id: DeviceId = 1, as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Show the counters of the ports."""
    from holdfast.live import control
    from holdfast.live import switch as live_switch

    rows = control.request(device_id, verb="list")
    if as_json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
    else:
        console.print(live_switch.statistics_table(rows))


@ports.command("add")
def port_add(
    port: Annotated[str, typer.Argument(metavar="PORT@NAME", help="Port and interface, such as 2@veth2.")],
    device_id: DeviceId = 1,
    io: Annotated[Io, typer.Option(help="How frames leave.")] = Io.AUTO,
) -> None:
    """Add an interface as a port of the running switch."""
    from holdfast.live import control
    from holdfast.live import switch as live_switch

    number, name = live_switch.parse_port(port)
    control.request(device_id, verb="add", port=number, interface=name, io=io.value)


@ports.command("remove")
def port_remove(
    port: Annotated[int, typer.Argument(min=0, max=MAX_PORT, help="Number of the port.")],
    device_id: DeviceId = 1,
) -> None:
    """Remove a port from the running switch, and print its counters."""
    from holdfast.live import control
    from holdfast.live import switch as live_switch

    console.print(live_switch.statistics_table(control.request(device_id, verb="remove", port=port)))


class FastReroute(StrEnum):
    """How BIER packets get around a failure without a controller."""

    NONE = "none"
    TUNNEL = "tunnel"
    LFA = "lfa"


class Protect(StrEnum):
    """What BIER-FRR gets packets around."""

    LINK = "link"
    NODE = "node"


bier = typer.Typer(no_args_is_help=True, help="Multicast by Bit Index Explicit Replication.")
app.add_typer(bier, name="bier")


@bier.command("coverage")
def bier_coverage(
    topology: Annotated[str, typer.Argument(help="A file or a name, as for 'holdfast topology'.")],
    frr: Annotated[
        FastReroute, typer.Option(help="Fast reroute, by tunnels or by loop-free alternates.")
    ] = FastReroute.TUNNEL,
    protect: Annotated[
        Protect, typer.Option(help="Against the failure of links alone, or of switches too.")
    ] = Protect.LINK,
    as_json: Annotated[bool, typer.Option("--json", help="Print every failure as JSON.")] = False,
) -> None:
    """Show which single failures lose packets between which switches, until the controller has reacted."""
    from holdfast import topologies
    from holdfast.apps.bier import coverage
    from holdfast.apps.bier.planning import Scheme, number_switches

    loaded = topologies.load(topology)
    rows = coverage.coverage_report(loaded, Scheme(number_switches(loaded), frr=frr.value, protect=protect.value))
    if as_json:
        sys.stdout.write(json.dumps(coverage.as_json(rows), indent=2) + "\n")
    else:
        sys.stdout.writelines(f"{printable(line)}\n" for line in coverage.table(rows))


firewall = typer.Typer(no_args_is_help=True, help="Rule files of the firewall.")
app.add_typer(firewall, name="firewall")
app.add_typer(bng.app, name="bng")

RulesFile = Annotated[Path, typer.Argument(metavar="RULES", help="A rule file (YAML); apps/firewall documents it.")]


@firewall.command("check")
def firewall_check(
    rules: RulesFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check a rule file, and find the rules that are shadowed, redundant or contradictory. Status 1 if there are any."""
    from holdfast.apps.firewall import report
    from holdfast.apps.firewall.rules import read

    located = read(rules)
    findings = report.findings(located)
    if as_json:
        sys.stdout.write(json.dumps(findings, indent=2) + "\n")
    else:
        sys.stdout.writelines(f"{printable(line)}\n" for line in report.sentences(located, findings))
    if findings:
        raise typer.Exit(1)


@firewall.command("show")
def firewall_show(
    rules: RulesFile,
    grpc: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="P4Runtime server of a switch with these rules, to show its counters."),
    ] = None,
    device_id: DeviceId = 1,
) -> None:
    """Show the rules in the order in which they are asked, and of a running switch what they and other checks decided."""
    from holdfast.apps.firewall import report
    from holdfast.apps.firewall.rules import read

    loaded = read(rules).value
    counts = None if grpc is None else report.counts(grpc, device_id)
    console.print(report.rules_table(loaded, counts))
    if counts is not None:
        console.print(report.drops_table(counts))


@app.command()
def doctor() -> None:
    """Show the features that this machine supports, and the reasons against others."""
    from holdfast import doctor as checks

    table = Table(title="holdfast doctor", title_justify="left")
    for column in ("check", "result", "meaning"):
        table.add_column(column)
    for check in checks.run():
        table.add_row(check.name, "[green]yes[/]" if check.ok else "[yellow]no[/]", Text(check.detail))
    console.print(table)


def main() -> None:
    """Entry point: every error of the family, and of the system, ends in one message and exit status 1."""
    interrupts.end_quietly()
    try:
        app(prog_name="holdfast")
    except HoldfastError as error:
        _say("error", error)
        sys.exit(1)
    except OSError as error:
        # For example a full disk, or a folder that is a file: a traceback would not help.
        where = f"{error.filename}: " if error.filename is not None else ""
        _say("error", f"{where}{error.strerror or error}")
        sys.exit(1)
    except KeyboardInterrupt:
        errors.print("interrupted")
        sys.exit(interrupts.STATUS)
