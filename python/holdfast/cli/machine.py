"""Commands about this machine: bench, doctor."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from holdfast.cli.shared import Io, check_folder, console, fail, interruptible, progress, writing


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
    check_folder(output)
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
        simulated = benchmark.run_simulations(program, quick=quick, progress=progress)
        console.print(benchmark.table_of_simulations(simulated))
        records = [benchmark.simulation_record(result) for result in simulated]
    elif tables:
        if size:
            fail("--tables measures no packets: leave out --size")
        measured = benchmark.run_tables(program, quick=quick, progress=progress)
        console.print(benchmark.table_of_tables(measured))
        records = [asdict(result) for result in measured]
    else:
        results = benchmark.run(program, size, quick=quick, progress=progress)
        console.print(benchmark.table(results))
        if all(result.instructions_per_packet is None for result in results):
            console.print(
                "[dim]Instructions are not counted: this machine does not give access to its processor's counters.[/]"
            )
        records = [benchmark.record(result) for result in results]
    if output is not None:
        with writing(output):
            benchmark.write_json(records, output)


def _bench_live(size: list[int], io: Io, quick: bool, output: Path | None) -> None:
    from holdfast.live import benchmark

    if reason := benchmark.reason_against():
        console.print(f"skipped: {reason}", highlight=False)
        return
    with interruptible():
        results = benchmark.run(size, io=io.value, quick=quick, progress=progress)
    console.print(benchmark.table(results))
    for result in results:
        console.print(f"{result.size_bytes} bytes, sent by {result.io}; limited by: {result.limit}", highlight=False)
    if output is not None:
        with writing(output):
            benchmark.write_json(results, output)


def doctor() -> None:
    """Show the features that this machine supports, and the reasons against others."""
    from holdfast import doctor as checks

    table = Table(title="holdfast doctor", title_justify="left")
    for column in ("check", "result", "meaning"):
        table.add_column(column, overflow="fold")
    for check in checks.run():
        table.add_row(check.name, "[green]yes[/]" if check.ok else "[yellow]no[/]", Text(check.detail))
    console.print(table)
