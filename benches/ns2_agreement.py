#!/usr/bin/env python3
"""benches/ns2_agreement.py [--quick] [--jobs N] [--seeds N] [--out FOLDER]: the NewReno of 2001 here and in ns-2.

Both sides run the same networks: the timing study of gmpls_tcp_2001 (Table 3) with the study's draws, and dumbbells with 1 to 100
flows. Python draws start times and access delays for both. Prints tables; with --out also writes them, the runs as CSV and a
picture; fails if a bound is exceeded. docs/VALIDATION.md explains the bounds.

Skips with a reason if ns-2 (Debian: ns2) is missing.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

from holdfast import plots
from holdfast.apps.router.controller import RouterController, compile_router
from holdfast.experiments.gmpls_tcp_2001 import goodput, published, runs, topology
from holdfast.measurements import TcpStatistics
from holdfast.network import SimulatedNetwork
from holdfast.topology import Topology
from holdfast.traffic import TcpOptions, TcpTransfer

PROGRAM = Path(__file__).parent / "ns2" / "network.tcl"
WINDOW = int(runs.UNKNOWNS["window_packets"])
ACK_BYTES = 79
"""What an acknowledgment has in ns-2. So it takes as long as here: 82 bytes with a label, on a link that is 1.042 times as fast."""

# The packet that is being sent does not count here. ns-2's DropTail drops what finds limit_ - 1 packets waiting behind it, in 2001
# as in 2.35: its limit of 50 holds 49.
LIMIT_EXTRA = 1

SAMPLE_S = 0.1
FIRST_SEED = 11
"""The seeds before it were looked at while this was written, before the bounds."""


# The timing study.


@dataclass(frozen=True)
class Timing:
    """The study's run with one seed and switching delay, in one of the simulators."""

    delta_ms: int
    seed: int
    ns2: bool

    def row(self) -> dict[str, object]:
        """Return a row for a run: new packets in order before and after the failure, timeouts and retransmitted packets."""
        (point,) = goodput.with_defaults(
            [
                {
                    "network": "timing",
                    "delta_ms": self.delta_ms,
                    "access_percent": published.TIMING_ACCESS_PERCENT,
                    "end_s": 6.5,
                    "window_s": published.GOODPUT_WINDOW_S,
                    "curve_ms": 0.0,
                }
            ]
        )
        found = self._ns2(point) if self.ns2 else runs.measure(point, self.seed)
        names = ("before_failure", "after_failure", "timeouts", "segments_retransmitted")
        named = {"simulator": "ns-2" if self.ns2 else "ours", "delta_ms": self.delta_ms, "seed": self.seed}
        return named | {name: float(found[name]) for name in names}

    def _ns2(self, point: Mapping[str, Any]) -> dict[str, float]:
        draws = runs._Draws(self.seed, point["source_nodes"], point["flows_per_source_node"])
        parameters = topology.Parameters(
            access_delays_ms=draws.access_delays_ms("S"),
            fixed_access_delays_ms=draws.access_delays_ms("F"),
            backbone_bps=round(point["rate_mbps"] * 1e6),
            access_percent=point["access_percent"],
            buffer_packets=point["buffer_packets"],
            timing_link_ms=point["timing_link_ms"],
        )
        scenario = topology.timing(parameters)
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "arrivals"
            lines = [
                *_beginning(point["window_packets"]),
                *_links(scenario.topology),
                *_switch_over(scenario, published.FAILURE_S + self.delta_ms / 1000),
                f"fail {published.FAILURE_S} {' '.join(topology.FAILING_LINK.split('-'))}",
                f"set arrivals [open {trace} w]",
                "watch LSR3 B $arrivals",
                "watch LSR7 D $arrivals",
            ]
            each = point["flows_per_source_node"]
            for sources, sink, prefix in (
                (scenario.sources, scenario.sink, "S"),
                (scenario.fixed_sources, scenario.fixed_sink, "F"),
            ):
                for i, start_s in enumerate(draws.starts_s(prefix)):
                    lines.append(f"flow {sources[i // each]} {sink} {start_s:.9f}")
            flows = [line for line in _run(lines, point["end_s"], Path(folder)) if line[0] == "flow"]
            new = list(_new_in_order(trace))
        begin, window = published.FAILURE_S, point["window_s"]
        return {
            "before_failure": sum(packets for time_s, packets in new if begin - window <= time_s < begin),
            "after_failure": sum(packets for time_s, packets in new if begin <= time_s < begin + window),
            "timeouts": sum(int(line[2]) for line in flows),
            "segments_retransmitted": sum(int(line[3]) for line in flows),
        }


def _beginning(window: int) -> list[str]:
    return [f"acknowledgments {ACK_BYTES}", f"window {window}"]


def _links(network: Topology) -> Iterator[str]:
    for link in network.links:
        yield f"link {link.a} {link.b} {link.rate_bps} {link.delay_ms / 1000:.9f} {(link.queue_packets or 0) + LIMIT_EXTRA}"


def _switch_over(scenario: topology.Scenario, at_s: float) -> Iterator[str]:
    """Yield ns-2 commands that route packets around the failing link, in both directions.

    Inner nodes of the detour have these routes from the beginning, its ends from ``at_s`` seconds on.
    """
    (detour,) = (scenario.connections[0].detours or {}).values()
    for here, there in pairwise(detour):
        yield f"route {at_s if here == detour[0] else 0.0} {here} {scenario.sink} {there}"
        for source in scenario.sources:
            yield f"route {at_s if there == detour[-1] else 0.0} {there} {source} {here}"


def _run(lines: Sequence[str], end_s: float, folder: Path) -> list[list[str]]:
    """Run ns-2 with ``lines`` of Tcl for ``end_s`` seconds of virtual time; return the words of each line that it prints."""
    calls = folder / "calls.tcl"
    calls.write_text("\n".join([*lines, f"end {end_s}"]) + "\n", encoding="utf-8")
    command = [str(shutil.which("ns")), str(PROGRAM), str(calls)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    if done.stderr:
        raise RuntimeError(f"ns-2 says: {done.stderr}")
    return [line.split() for line in done.stdout.splitlines()]


def _new_in_order(trace: Path) -> Iterator[tuple[float, int]]:
    """Yield (time in s, number) whenever packets became new and in order at the receivers. Packet 0 of a flow is the SYN."""
    expected: dict[str, int] = defaultdict(int)
    waiting: dict[str, set[int]] = defaultdict(set)
    with trace.open(encoding="utf-8") as lines:
        for line in lines:
            kind, time_s, _, _, protocol, _, _, flow, _, _, packet, _ = line.split()
            if kind != "r" or protocol != "tcp" or int(packet) < expected[flow]:
                continue
            waiting[flow].add(int(packet))
            first = expected[flow]
            while expected[flow] in waiting[flow]:
                waiting[flow].remove(expected[flow])
                expected[flow] += 1
            if expected[flow] > first:
                yield float(time_s), expected[flow] - max(first, 1)


# Dumbbells.


@dataclass(frozen=True)
class Case:
    """Flows from access links of their own (10 to 100 ms) over one bottleneck (10 ms)."""

    flows: int
    rate_mbps: float
    buffer: int
    window: int = WINDOW
    seconds: float = 60.0
    warm_up_s: float = 10.0

    @property
    def name(self) -> str:
        """The case's name in tables."""
        return f"{self.flows} x {self.rate_mbps:g} Mb/s, {self.buffer} packets, window {self.window}"

    def delays_ms(self, seed: int) -> list[float]:
        """Return random delays of the access links, one per flow, in milliseconds."""
        draws = random.Random(f"access delay {seed}")
        return [draws.uniform(*published.ACCESS_DELAY_MS) for _ in range(self.flows)]

    def starts_s(self, seed: int) -> list[float]:
        """Return random starts of the flows in seconds."""
        draws = random.Random(f"start {seed}")
        return [draws.uniform(*published.START_S) for _ in range(self.flows)]


GRID = {
    # A lone flow has no chance in it but its round trip.
    Case(1, 2, 20, window=128): 3,
    Case(10, 10, 50): 3,
    Case(30, 10, 50): 3,
    # What the study has.
    Case(100, 10, 50): 3,
}
"""Dumbbells, and how many seeds."""
QUICK = {Case(1, 2, 20, window=128, seconds=20.0, warm_up_s=5.0): 1, Case(30, 10, 50, seconds=20.0, warm_up_s=5.0): 1}
PICTURED = 0
"""The case whose packets in flight are drawn."""


@dataclass(frozen=True)
class Dumbbell:
    """One simulation of a dumbbell."""

    case: Case
    seed: int
    ns2: bool

    def rows(self) -> list[dict[str, object]]:
        """Return a row per sample: the packets counted so far, and the packets in flight at its time."""
        columns = ("time_s", "through", "drops", "timeouts", "in_flight", "acknowledged")
        named = {"case": self.case.name, "simulator": "ns-2" if self.ns2 else "ours", "seed": self.seed}
        samples = self._ns2() if self.ns2 else self._ours()
        return [named | dict(zip(columns, sample, strict=True)) for sample in samples]

    def _network(self, wire: float) -> Topology:
        """Build the dumbbell.

        ``wire``: the size of a packet with all overhead, relative to ns-2's, by which rates are multiplied so that they carry
        equally many packets per second.
        """
        case = self.case
        network = Topology("dumbbell")
        for router in ("r0", "r1"):
            network.add_switch(router)
        network.add_link(
            "r0", "r1", rate_bps=round(case.rate_mbps * 1e6 * wire), delay_ms=10, queue_packets=case.buffer
        )
        network.add_host("sink")
        network.add_link("r1", "sink", rate_bps=round(1e9 * wire), delay_ms=1, queue_packets=1000)
        for i, delay_ms in enumerate(case.delays_ms(self.seed)):
            network.add_host(f"h{i}")
            network.add_link(f"h{i}", "r0", rate_bps=round(1e8 * wire), delay_ms=delay_ms, queue_packets=1000)
        return network

    def _ns2(self) -> Iterator[tuple[float, ...]]:
        case = self.case
        lines = [
            *_beginning(case.window),
            *_links(self._network(1.0)),
            *(f"flow h{i} sink {start_s:.9f}" for i, start_s in enumerate(case.starts_s(self.seed))),
            "count r0 r1",
            f'$ns at {SAMPLE_S} "sample {SAMPLE_S}"',
        ]
        with tempfile.TemporaryDirectory() as folder:
            for line in _run(lines, case.seconds + SAMPLE_S / 2, Path(folder)):
                if line[0] == "sample":
                    yield tuple(map(float, line[1:]))

    def _ours(self) -> Iterator[tuple[float, ...]]:
        case = self.case
        wire = runs.ACCESS_WIRE_BYTES / runs.PACKET_BYTES
        network = SimulatedNetwork(
            self._network(wire), compile_router(), [RouterController(reroute=False, reaction_delay_ms=0)]
        )
        window_bytes = case.window * runs.PAYLOAD_BYTES
        options = TcpOptions(
            preset="ns2-2001",
            mss=runs.PAYLOAD_BYTES,
            window_limit_bytes=window_bytes,
            initial_ssthresh_bytes=window_bytes,
        )
        flows = [
            network.add_tcp(TcpTransfer(source=f"h{i}", destination="sink", start_s=start_s, options=options))
            for i, start_s in enumerate(case.starts_s(self.seed))
        ]
        for sample in range(1, round(case.seconds / SAMPLE_S) + 1):
            network.run(sample * SAMPLE_S)
            now = [network.tcp_statistics(flow) for flow in flows]
            counters = network.link_counters(network.topology.link_names()[0])

            def total(name: str, now: Sequence[TcpStatistics] = now) -> int:
                return sum(getattr(flow, name) for flow in now)

            yield (
                round(sample * SAMPLE_S, 6),
                counters.a_to_b.packets,
                counters.a_to_b.queue_drops,
                total("timeouts"),
                total("flight_bytes") / runs.PAYLOAD_BYTES,
                total("bytes_acknowledged") / runs.PAYLOAD_BYTES,
            )


# What is compared, and how far it may be apart.

BEFORE_AFTER = 0.05
"""Of goodput in the timing study, as a ratio. It is in order: which of the packets that arrived were lost before is chance."""
CHANGE_POINTS = 1.5
"""Of Table 3's changes, in points."""
COUNTS = 0.05
"""Of timeouts and packets sent again, as a ratio; in dumbbells of losses and timeouts."""
THROUGHPUT = 0.005
"""A dumbbell whose buffer is never empty has no other."""
IN_FLIGHT = 0.05
STANDARD_ERRORS = 2.0
"""What chance may add to each bound of the timing study, of differences seed by seed."""


@dataclass(frozen=True)
class Compared:
    """A number of both, and its bound: the two may differ by so much, in the number's unit."""

    network: str
    what: str
    ours: float
    ns2: float
    bound: float

    @property
    def within(self) -> bool:
        """True if ours and ns-2's number differ by no more than the bound."""
        return abs(self.ours - self.ns2) <= self.bound


def _standard_error(values: Sequence[float]) -> float:
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def compare_timing(frame: pl.DataFrame) -> Iterator[Compared]:
    """Yield comparisons of goodput, Table 3's changes, timeouts and retransmissions, whose differences are taken seed by seed."""
    both = frame.filter(simulator="ours").join(frame.filter(simulator="ns-2"), on=["delta_ms", "seed"], suffix="_ns2")
    none = both.filter(delta_ms=0)
    for delta_ms in sorted(both["delta_ms"].unique()):
        rows = both.filter(delta_ms=delta_ms)
        for name, what, allowed in (
            ("before_failure", "goodput in 1.5 s before, packets", BEFORE_AFTER),
            ("after_failure", "goodput in 1.5 s after, packets", BEFORE_AFTER),
            ("timeouts", "timeouts", COUNTS),
            ("segments_retransmitted", "sent again, packets", COUNTS),
        ):
            if name == "before_failure" and delta_ms != 0:
                continue
            ours, theirs = rows[name].to_list(), rows[f"{name}_ns2"].to_list()
            differences = [a - b for a, b in zip(ours, theirs, strict=True)]
            bound = allowed * statistics.mean(theirs) + STANDARD_ERRORS * _standard_error(differences)
            yield Compared(
                f"timing study, delta {delta_ms} ms", what, statistics.mean(ours), statistics.mean(theirs), bound
            )
        if delta_ms:
            changed = rows.join(none, on="seed", suffix="_none")
            ours, theirs = (
                (100 * (changed[f"after_failure{end}"] / changed[f"after_failure{end_none}"] - 1)).to_list()
                for end, end_none in (("", "_none"), ("_ns2", "_ns2_none"))
            )
            differences = [a - b for a, b in zip(ours, theirs, strict=True)]
            bound = CHANGE_POINTS + STANDARD_ERRORS * _standard_error(differences)
            yield Compared(
                f"timing study, delta {delta_ms} ms",
                "Table 3: goodput against delta 0, %",
                statistics.mean(ours),
                statistics.mean(theirs),
                bound,
            )


def measured(samples: pl.DataFrame, case: Case) -> dict[str, float]:
    """Return the numbers of one run by name, without its first seconds."""
    after = samples.filter(pl.col("time_s") > case.warm_up_s + SAMPLE_S / 2)
    before = samples.filter(pl.col("time_s") <= case.warm_up_s + SAMPLE_S / 2).tail(1)

    def grown(column: str) -> float:
        return float(after[column][-1]) - float(before[column][0])

    through, drops = grown("through"), grown("drops")
    seconds = case.seconds - case.warm_up_s
    return {
        "throughput": through / seconds,
        "goodput": grown("acknowledged") / seconds,
        "drops": drops,
        "loss": 100 * drops / (through + drops),
        "in_flight": float(after["in_flight"].mean() or 0.0) / case.flows,  # type: ignore[arg-type]
        "timeouts": grown("timeouts"),
    }


def compare_dumbbells(samples: pl.DataFrame, cases: Sequence[Case]) -> Iterator[Compared]:
    """Yield for each case the comparison of our means over the seeds with ns-2's."""
    for case in cases:
        of_case = samples.filter(case=case.name)
        means: dict[str, dict[str, float]] = {}
        for simulator in ("ours", "ns-2"):
            each = [measured(run, case) for _, run in of_case.filter(simulator=simulator).group_by("seed")]
            means[simulator] = {name: statistics.mean(row[name] for row in each) for name in each[0]}
        ours, ns2 = means["ours"], means["ns-2"]
        seeds = of_case["seed"].n_unique()

        def chance(name: str, ours: dict[str, float] = ours, ns2: dict[str, float] = ns2, seeds: int = seeds) -> float:
            """Return the relative error of a count that chance explains: three standard deviations of a Poisson variable."""
            events = max(1.0, min(ours[name], ns2[name]) * seeds)
            return 3 / math.sqrt(events)

        yield Compared(
            case.name,
            "throughput, packets/s",
            ours["throughput"],
            ns2["throughput"],
            THROUGHPUT * ns2["throughput"],
        )
        yield Compared(
            case.name, "goodput, packets/s", ours["goodput"], ns2["goodput"], 2 * THROUGHPUT * ns2["goodput"]
        )
        yield Compared(case.name, "loss rate, %", ours["loss"], ns2["loss"], (COUNTS + chance("drops")) * ns2["loss"])
        yield Compared(
            case.name, "in flight per flow, packets", ours["in_flight"], ns2["in_flight"], IN_FLIGHT * ns2["in_flight"]
        )
        yield Compared(
            case.name,
            "timeouts",
            ours["timeouts"],
            ns2["timeouts"],
            (COUNTS + chance("timeouts")) * max(1.0, ns2["timeouts"]),
        )


def table(compared: Sequence[Compared]) -> Iterator[str]:
    """Yield the lines of a Markdown table of the comparisons."""
    yield "| network | number | ours | ns-2 | difference | bound |"
    yield "|---|---|---:|---:|---:|---:|"
    for row in compared:
        mark = "" if row.within else " **outside**"
        difference = row.ours - row.ns2
        yield f"| {row.network} | {row.what} | {row.ours:.4g} | {row.ns2:.4g} | {difference:+.3g}{mark} | {row.bound:.3g} |"


def draw(samples: pl.DataFrame, case: Case, compared: Sequence[Compared], *paths: Path) -> None:
    """Draw the packets in flight of a single flow over time, and the changes of Table 3."""
    figure, (left, right) = plots.plt.subplots(1, 2, figsize=(10, 3.2), dpi=130, width_ratios=(2, 1))
    run = samples.filter(case=case.name, seed=FIRST_SEED)
    for simulator, width in (("ns-2", 2.6), ("ours", 1.1)):
        curve = run.filter(pl.col("simulator") == simulator)
        look = plots.style(simulator)
        left.plot(curve["time_s"], curve["in_flight"], color=look.colour, linewidth=width, label=look.label)
    left.set_title(case.name, fontsize=9)
    left.set_xlabel("time (s)", fontsize=8)
    left.set_ylabel("packets in flight", fontsize=8)
    left.legend(fontsize=7)
    changes = [row for row in compared if row.what.startswith("Table 3")]
    for simulator, offset in (("ours", -0.1), ("ns-2", 0.1)):
        look = plots.style(simulator)
        values = [row.ours if simulator == "ours" else row.ns2 for row in changes]
        right.plot(
            [x + offset for x in range(len(changes))],
            values,
            color=look.colour,
            marker=look.marker,
            linestyle="none",
            label=look.label,
        )
    right.errorbar(
        [x + 0.1 for x in range(len(changes))],
        [row.ns2 for row in changes],
        yerr=[row.bound for row in changes],
        color="#BBBBBB",
        linestyle="none",
        zorder=0,
    )
    right.axhline(0, color="#888888", linewidth=0.7)
    right.set_xticks(range(len(changes)), [row.network.split(", ")[1] for row in changes])
    right.set_xlim(-0.6, len(changes) - 0.4)
    right.set_ylabel("goodput against delta 0 (%)", fontsize=8)
    right.set_title("Table 3, and the bounds (grey)", fontsize=9)
    for axis in (left, right):
        axis.tick_params(labelsize=7)
    figure.tight_layout()
    plots.save(figure, *paths)


def main() -> int:
    """Simulate with both simulators, compare and draw; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two small dumbbells and two seeds of the timing study")
    parser.add_argument("--jobs", type=int, default=2, help="simulations at a time")
    parser.add_argument("--seeds", type=int, help="of the timing study (60, or 2 with --quick)")
    parser.add_argument("--out", type=Path, help="folder for tables.md, the runs and the picture")
    options = parser.parse_args()
    if shutil.which("ns") is None:
        print("skipped: ns-2 is not installed (Debian: apt install ns2)")
        return 0
    seeds = options.seeds or (2 if options.quick else 60)
    deltas_ms = (0, 50) if options.quick else (0, 50, 250)
    grid = QUICK if options.quick else GRID
    studied = [
        Timing(delta_ms, seed, ns2)
        for seed in range(FIRST_SEED, FIRST_SEED + seeds)
        for delta_ms in deltas_ms
        for ns2 in (False, True)
    ]
    dumbbells = [
        Dumbbell(case, seed, ns2)
        for case, count in grid.items()
        for seed in range(FIRST_SEED, FIRST_SEED + count)
        for ns2 in (False, True)
    ]
    with ProcessPoolExecutor(options.jobs, initializer=partial(os.nice, 5)) as pool:
        samples = pl.DataFrame([row for rows in pool.map(Dumbbell.rows, dumbbells) for row in rows])
        studies = pl.DataFrame(list(pool.map(Timing.row, studied)))
    compared = [*compare_timing(studies), *compare_dumbbells(samples, list(grid))]
    text = "\n".join(table(compared))
    print(text)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "tables.md").write_text(text + "\n", encoding="utf-8")
        studies.write_csv(options.out / "ns2-timing.csv")
        draw(
            samples,
            list(grid)[PICTURED],
            compared,
            *(options.out / f"ns2.{ending}" for ending in ("png", "svg")),
        )
    outside = [row for row in compared if not row.within]
    for row in outside:
        print(f"outside of its bound: {row.network}: {row.what}: {row.ours:.4g} here, {row.ns2:.4g} in ns-2")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
