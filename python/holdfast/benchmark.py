"""``holdfast bench``: packets per second of P4 programs beside hand-written Rust of the same function.

The measuring itself is native (``crates/bench``); here is what to measure and how to show it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.table import Table

from holdfast import whole_files
from holdfast._core import Benchmark, BenchmarkResult, SimulationBenchmark, TableBenchmark
from holdfast.errors import HoldfastError

SIZES_BYTES = (64, 512, 1500)
"""Packet sizes, from the first byte of the Ethernet header to the last of the payload."""


def run(
    programs: Sequence[str],
    sizes_bytes: Sequence[int],
    *,
    quick: bool,
    progress: Callable[[str], None],
) -> list[BenchmarkResult]:
    """Measures each program (all if none is named) with each size (the usual ones if none is)."""
    results = []
    for program in _named(programs, Benchmark.programs(), "benchmark"):
        progress(f"{program}: compiling and filling tables")
        benchmark = Benchmark(program, quick)
        for size_bytes in sizes_bytes or SIZES_BYTES:
            progress(f"{program}: {size_bytes} bytes")
            results.append(benchmark.measure(size_bytes))
    return results


def _named(names: Sequence[str], known: Sequence[str], what: str) -> Sequence[str]:
    """Those that are named, or all."""
    for name in names:
        if name not in known:
            raise HoldfastError(f"there is no {what} {name!r}; there are {', '.join(known)}")
    return names or known


def record(result: BenchmarkResult) -> dict[str, object]:
    """The object that is written to a file."""
    return {
        "program": result.program,
        "size_bytes": result.size_bytes,
        "packets_per_s": result.packets_per_s,
        "handwritten_packets_per_s": result.handwritten_packets_per_s,
        "ratio": result.ratio,
        "gb_per_s": gb_per_s(result),
        "ns_per_packet": 1e9 / result.packets_per_s,
        "handwritten_ns_per_packet": 1e9 / result.handwritten_packets_per_s,
        "instructions_per_packet": result.instructions_per_packet,
        "handwritten_instructions_per_packet": result.handwritten_instructions_per_packet,
        "outputs_per_packet": result.outputs_per_packet,
        "spread": result.spread,
    }


def gb_per_s(result: BenchmarkResult) -> float:
    """Gigabits per second of packets that arrive, without what only the wire adds."""
    return result.packets_per_s * result.size_bytes * 8e-9


def write_json(records: Sequence[dict[str, object]], file: Path) -> None:
    """Writes a list with an object per result."""
    whole_files.write_text(file, json.dumps(list(records), indent=2) + "\n")


def run_tables(tables: Sequence[str], *, quick: bool, progress: Callable[[str], None]) -> list[TableBenchmark]:
    """Measures each table (all if none is named) on its own."""
    results = []
    for table in _named(tables, TableBenchmark.tables(), "table"):
        progress(table)
        results.append(TableBenchmark.measure(table, quick))
    return results


def table_record(result: TableBenchmark) -> dict[str, object]:
    """The object that is written to a file."""
    return {
        "table": result.table,
        "entries": result.entries,
        "inserts_per_s": result.inserts_per_s,
        "deletes_per_s": result.deletes_per_s,
        "longest_update_us": result.longest_update_us,
        "p999_update_us": result.p999_update_us,
        "lookup_ns": result.lookup_ns,
        "bytes_per_entry": result.bytes_per_entry,
    }


def run_simulations(
    scenarios: Sequence[str], *, quick: bool, progress: Callable[[str], None]
) -> list[SimulationBenchmark]:
    """Measures each scenario (all if none is named): networks in virtual time."""
    results = []
    for scenario in _named(scenarios, SimulationBenchmark.scenarios(), "simulation"):
        progress(scenario)
        results.append(SimulationBenchmark.measure(scenario, quick))
    return results


def simulation_record(result: SimulationBenchmark) -> dict[str, object]:
    """The object that is written to a file."""
    return {
        "scenario": result.scenario,
        "switches": result.switches,
        "packets": result.packets,
        "packet_hops": result.packet_hops,
        "drops": result.drops,
        "events": result.events,
        "simulated_s": result.simulated_s,
        "goodput_bps": result.goodput_bps,
        "processor_s": result.processor_s,
        "packets_per_s": _per_s(result.packets, result),
        "packet_hops_per_s": _per_s(result.packet_hops, result),
    }


def _per_s(count: int, result: SimulationBenchmark) -> float | None:
    """None if it was over before the processor's clock moved."""
    return count / result.processor_s if result.processor_s > 0 else None


def table_of_simulations(results: Sequence[SimulationBenchmark]) -> Table:
    """For a terminal of 80 columns."""
    headings = (
        "switches",
        "packets",
        "hops",
        "events",
        "CPU\n(s)",
        "M packets\nper s",
        "ns per\nhop",
    )
    shown = _empty("simulated networks, one core, packets of 1,000 bytes or TCP", "scenario", headings)
    for result in results:
        shown.add_row(
            result.scenario,
            f"{result.switches:,}",
            f"{result.packets:,}",
            f"{result.packet_hops:,}",
            f"{result.events:,}",
            f"{result.processor_s:.3f}",
            "-" if (packets_per_s := _per_s(result.packets, result)) is None else f"{packets_per_s * 1e-6:.2f}",
            f"{result.processor_s * 1e9 / result.packet_hops:.0f}",
        )
    return shown


def _empty(title: str, name: str, headings: Sequence[str]) -> Table:
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    shown.add_column(name, style="bold", no_wrap=True)
    for heading in headings:
        shown.add_column(heading, justify="right", no_wrap=True)
    return shown


def table_of_tables(results: Sequence[TableBenchmark]) -> Table:
    """For a terminal of 80 columns."""
    headings = (
        "entries",
        "inserts\nper s",
        "deletes\nper s",
        "longest\nupdate (us)",
        "99.9 %\n(us)",
        "lookup\n(ns)",
        "bytes per\nentry",
    )
    shown = _empty("tables on their own, one core", "table", headings)
    for result in results:
        shown.add_row(
            result.table,
            f"{result.entries:,}",
            f"{result.inserts_per_s:,.0f}",
            f"{result.deletes_per_s:,.0f}",
            f"{result.longest_update_us:.0f}",
            f"{result.p999_update_us:.1f}",
            f"{result.lookup_ns:.1f}",
            f"{result.bytes_per_entry:.0f}",
        )
    return shown


def table(results: Sequence[BenchmarkResult]) -> Table:
    """For a terminal of 80 columns."""
    headings = ("bytes", "M packets/s", "Gb/s", "ns per\npacket", "instr. per\npacket", "by hand\nM packets/s", "ratio")
    shown = _empty("one core, in memory, medians", "program", headings)
    previous = None
    for result in results:
        counted = result.instructions_per_packet
        shown.add_row(
            result.program if result.program != previous else "",
            str(result.size_bytes),
            f"{result.packets_per_s * 1e-6:.2f}",
            f"{gb_per_s(result):.1f}",
            f"{1e9 / result.packets_per_s:.1f}",
            "-" if counted is None else f"{counted:.0f}",
            f"{result.handwritten_packets_per_s * 1e-6:.2f}",
            f"{result.ratio:.2f}",
        )
        previous = result.program
    return shown
