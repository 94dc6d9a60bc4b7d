"""``holdfast bench``: packets per second of P4 programs beside hand-written Rust of the same function.

The measuring itself is native (``crates/bench``); here is what to measure and how to show it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from holdfast import _core, whole_files
from holdfast.errors import HoldfastError
from holdfast.measurements import ProgramMeasurement, SimulationMeasurement, TableMeasurement
from holdfast.terminal import Grid

Measured = TypeVar("Measured")

SIZES_BYTES = (64, 512, 1500)
"""Packet sizes, from the first byte of the Ethernet header to the last of the payload."""


def run(
    programs: Sequence[str],
    sizes_bytes: Sequence[int],
    *,
    quick: bool,
    progress: Callable[[str], None],
) -> list[ProgramMeasurement]:
    """Measure each of ``programs`` (empty: all) with packets of each size in bytes (empty: :data:`SIZES_BYTES`).

    Return the results. ``quick``: measure with smaller tables and for a shorter time. ``progress`` is called with a sentence before
    each measurement. Raises :class:`HoldfastError` for unknown programs.
    """
    results = []
    for program in _named(programs, _core.Benchmark.programs(), "benchmark"):
        progress(f"{program}: compiling and filling tables")
        benchmark = _core.Benchmark(program, quick)
        for size_bytes in sizes_bytes or SIZES_BYTES:
            progress(f"{program}: {size_bytes} bytes")
            results.append(benchmark.measure(size_bytes))
    return results


def run_tables(tables: Sequence[str], *, quick: bool, progress: Callable[[str], None]) -> list[TableMeasurement]:
    """Measure each of ``tables`` on its own, or all known tables if ``tables`` is empty, and return the results.

    ``quick`` and ``progress`` are as in :func:`run`.
    """
    return _each(_named(tables, _core.tables(), "table"), _core.measure_table, quick, progress)


def run_simulations(
    scenarios: Sequence[str], *, quick: bool, progress: Callable[[str], None]
) -> list[SimulationMeasurement]:
    """Measure each of ``scenarios``, networks in virtual time, or all if ``scenarios`` is empty, and return the results.

    ``quick`` and ``progress`` are as in :func:`run`.
    """
    return _each(_named(scenarios, _core.simulations(), "simulation"), _core.measure_simulation, quick, progress)


def _named(names: Sequence[str], known: Sequence[str], what: str) -> Sequence[str]:
    """Return ``names``, or all ``known`` names if ``names`` is empty.

    Raises :class:`HoldfastError` for a name that is not known.
    """
    for name in names:
        if name not in known:
            raise HoldfastError(f"there is no {what} {name!r}; there are {', '.join(known)}")
    return names or known


def _each(
    names: Sequence[str], measure: Callable[[str, bool], Measured], quick: bool, progress: Callable[[str], None]
) -> list[Measured]:
    results = []
    for name in names:
        progress(name)
        results.append(measure(name, quick))
    return results


def record(result: ProgramMeasurement) -> dict[str, object]:
    """Return a program's result as the dictionary that is written to a JSON file: its fields, Gb/s, and ns per packet."""
    return asdict(result) | {
        "gb_per_s": gb_per_s(result),
        "ns_per_packet": 1e9 / result.packets_per_s,
        "handwritten_ns_per_packet": 1e9 / result.handwritten_packets_per_s,
    }


def simulation_record(result: SimulationMeasurement) -> dict[str, object]:
    """Return a simulation's result as the dictionary that is written to a JSON file: its fields and packets per second."""
    return asdict(result) | {
        "packets_per_s": _per_s(result.packets, result),
        "packet_hops_per_s": _per_s(result.packet_hops, result),
    }


def gb_per_s(result: ProgramMeasurement) -> float:
    """Return the rate at which packets arrive in Gb/s, without the preamble and gap that each packet has on the wire."""
    return result.packets_per_s * result.size_bytes * 8e-9


def _per_s(count: int, result: SimulationMeasurement) -> float | None:
    """Return a count per second of processor time, or None if the run was over before the processor's clock moved."""
    return count / result.processor_s if result.processor_s > 0 else None


def write_json(records: Sequence[dict[str, object]], file: Path) -> None:
    """Write a JSON file: a list with one object per result."""
    whole_files.write_text(file, json.dumps(list(records), indent=2) + "\n")


_OF_SIMULATION: Mapping[str, Callable[[SimulationMeasurement], str]] = {
    "scenario": lambda r: r.scenario,
    "switches": lambda r: f"{r.switches:,}",
    "packets": lambda r: f"{r.packets:,}",
    "hops": lambda r: f"{r.packet_hops:,}",
    "events": lambda r: f"{r.events:,}",
    "cpu\ns": lambda r: f"{r.processor_s:.3f}",
    "rate\nM/s": lambda r: "-" if (per_s := _per_s(r.packets, r)) is None else f"{per_s * 1e-6:.2f}",
    "time\nns/hop": lambda r: f"{r.processor_s * 1e9 / r.packet_hops:.0f}",
}

_OF_TABLE: Mapping[str, Callable[[TableMeasurement], str]] = {
    "table": lambda r: r.table,
    "entries": lambda r: f"{r.entries:,}",
    "inserts\n/s": lambda r: f"{r.inserts_per_s:,.0f}",
    "deletes\n/s": lambda r: f"{r.deletes_per_s:,.0f}",
    "longest\nus": lambda r: f"{r.longest_update_us:.0f}",
    "99.9 %\nus": lambda r: f"{r.p999_update_us:.1f}",
    "lookup\nns": lambda r: f"{r.lookup_ns:.1f}",
    "memory\nbytes": lambda r: f"{r.bytes_per_entry:.0f}",
}

_OF_PROGRAM: Mapping[str, Callable[[ProgramMeasurement], str]] = {
    "program": lambda r: r.program,
    "bytes": lambda r: str(r.size_bytes),
    "rate\nM/s": lambda r: f"{r.packets_per_s * 1e-6:.2f}",
    "\nGb/s": lambda r: f"{gb_per_s(r):.1f}",
    "time\nns": lambda r: f"{1e9 / r.packets_per_s:.1f}",
    "instructions\n": lambda r: "-" if (counted := r.instructions_per_packet) is None else f"{counted:.0f}",
    "hand\nM/s": lambda r: f"{r.handwritten_packets_per_s * 1e-6:.2f}",
    "ratio\n": lambda r: f"{r.ratio:.2f}",
}


def table_of_simulations(results: Sequence[SimulationMeasurement]) -> Grid:
    """Return a table of simulations' results that fits a terminal of 80 columns."""
    legend = ["rate: million packets in a second of cpu; time: of cpu for each hop of a packet"]
    return _table("simulated networks, one core, packets of 1,000 bytes or TCP", _OF_SIMULATION, results, legend)


def table_of_tables(results: Sequence[TableMeasurement]) -> Grid:
    """Return a table of the results of tables, such as inserts per second, that fits a terminal of 80 columns."""
    legend = ["longest, 99.9 %: time of an update; memory: for each entry"]
    return _table("tables on their own, one core", _OF_TABLE, results, legend)


def table(results: Sequence[ProgramMeasurement]) -> Grid:
    """Return a table of programs' results that fits a terminal of 80 columns."""
    legend = [
        "rate: million packets in a second; time, instructions: for each packet;",
        "hand: rate of the same function in Rust, written by hand; ratio: rate / hand",
    ]
    return _table("one core, in memory, medians", _OF_PROGRAM, results, legend)


def _table(
    title: str,
    columns: Mapping[str, Callable[[Measured], str]],
    results: Sequence[Measured],
    legend: Sequence[str],
) -> Grid:
    """Return a table with a row for each result, and a column for each of ``columns`` (a heading, and a function of the result).

    The first column, the result's name, is left empty where it repeats the row above.
    """
    shown = Grid(title=title, legend=legend)
    name, *others = columns
    shown.add_names(name)
    shown.add_numbers(*others)
    previous = None
    for result in results:
        first, *rest = (text(result) for text in columns.values())
        shown.add_row("" if first == previous else first, *rest)
        previous = first
    return shown
