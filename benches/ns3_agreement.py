#!/usr/bin/env python3
"""benches/ns3_agreement.py [--quick] [--part PART] [--jobs N] [--out FOLDER]: TCP here and in ns-3 on the same dumbbells.

``tcp``: NewReno, SACK and CUBIC; 1 to 100 flows; several rates, round trips and buffers. ``queues``: BBR, RED and ECN. Both
simulators get the same random start times. Compares throughput, rate of losses and marks and mean congestion window after the first
seconds, and shows the first seconds, too. Prints tables; with --out also writes them, runs.csv, comparison.csv and pictures; fails
if a bound is exceeded. docs/VALIDATION.md explains the bounds.

Skips with a reason if a C++ compiler or ns-3 (Debian: libns3-dev) is missing.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from ns3_dumbbell import build

from holdfast import plots
from holdfast.apps.router.controller import RouterController, compile_router
from holdfast.measurements import TcpStatistics
from holdfast.network import SimulatedNetwork
from holdfast.topology import Topology
from holdfast.traffic import TcpOptions, TcpTransfer

SEGMENT_BYTES = 1448
NS3_WIRE_BYTES = 1502
"""A segment with timestamps, in IPv4, behind the two bytes of PPP."""
WIRE_BYTES = 1538
"""The same in Ethernet, with preamble and gap."""
SAMPLE_S = 0.05
STARTS_MS = 1000.0
"""Flows begin in the first second."""


@dataclass(frozen=True)
class Managed:
    """RED's thresholds as shares of what the queue holds; or marks on all that find more than the lower one waiting."""

    minimum: float
    maximum: float | None = None
    max_p: float = 1.0
    weight: float = 1.0
    ecn: bool = True

    def ours(self, packets: int) -> dict[str, Any]:
        """Return the options of our link whose queue holds ``packets`` packets."""
        low = round(self.minimum * packets)
        if self.maximum is None:
            return {"mark_above": {"packets": low}}
        return {
            "red": {
                "min_packets": low,
                "max_packets": round(self.maximum * packets),
                "max_p": self.max_p,
                "weight": self.weight,
                "gentle": True,
                "ecn": self.ecn,
                "mean_packet_bytes": WIRE_BYTES,
            }
        }

    def ns3(self, packets: int) -> list[str]:
        """Return the options of the ns-3 program for a queue of ``packets`` packets.

        Thresholds are lower by one: one more packet waits in ns-3's device, and ns-3 marks a packet that finds exactly the
        threshold.
        """
        low = round(self.minimum * packets)
        if self.maximum is None:
            return [f"--minimum={low}", f"--maximum={low}", "--ecn=true", "--always=true"]
        return [
            f"--minimum={low - 1}",
            f"--maximum={round(self.maximum * packets) - 1}",
            f"--max-p={self.max_p}",
            f"--weight={self.weight}",
            "--gentle=true",
            f"--ecn={str(self.ecn).lower()}",
        ]


@dataclass(frozen=True)
class Algorithm:
    """The same algorithm as both have it, and what the queue does before it is full."""

    options: Mapping[str, object]
    ns3: Sequence[str]
    managed: Managed | None = None


# What RFCs leave open and ns-3 decides: a segment per acknowledgment in slow start and congestion avoidance for NewReno, bytes in
# CUBIC's slow start; the threshold as the window after a recovery; no region in which CUBIC is as fast as Reno.
_NEWRENO = {"increase": "per-ack", "timestamps": True, "congestion": "newreno"}
_SACK = Algorithm({**_NEWRENO, "recovery": "sack"}, ("--congestion=ns3::TcpNewReno", "--sack=true"))
_CUBIC = Algorithm(
    {"timestamps": True, "congestion": "cubic", "recovery": "sack", "cubic_tcp_friendly": False},
    ("--congestion=ns3::TcpCubic", "--sack=true"),
)
_RED = Managed(minimum=1 / 6, maximum=1 / 2, max_p=0.1, weight=0.002, ecn=False)
# With delayed acknowledgments, ns-3's receiver forgets that a CWR answers the mark of the segment before it.
_ECN = {"ecn": True, "delayed_ack_ms": 0}
_UNDELAYED = "--every=1"
ALGORITHMS = {
    "newreno": Algorithm(
        {**_NEWRENO, "recovery": "newreno-impatient", "newreno_exit": "ssthresh"},
        ("--congestion=ns3::TcpNewReno", "--sack=false"),
    ),
    "sack": _SACK,
    # ns-3 with one function replaced: the threshold is RFC 5681's.
    "sack, RFC threshold": Algorithm(_SACK.options, ("--congestion=FlightSizeNewReno", "--sack=true")),
    "cubic": _CUBIC,
    "bbr": Algorithm(
        {"timestamps": True, "congestion": "bbr", "recovery": "sack"}, ("--congestion=ns3::TcpBbr", "--sack=true")
    ),
    "sack, RED": Algorithm(_SACK.options, _SACK.ns3, _RED),
    "sack, RED with ECN": Algorithm({**_SACK.options, **_ECN}, (*_SACK.ns3, _UNDELAYED), replace(_RED, ecn=True)),
    "sack, marks from half": Algorithm({**_SACK.options, **_ECN}, (*_SACK.ns3, _UNDELAYED), Managed(minimum=1 / 2)),
    "cubic, RED with ECN": Algorithm({**_CUBIC.options, **_ECN}, (*_CUBIC.ns3, _UNDELAYED), replace(_RED, ecn=True)),
    "cubic, marks from half": Algorithm({**_CUBIC.options, **_ECN}, (*_CUBIC.ns3, _UNDELAYED), Managed(minimum=1 / 2)),
}


@dataclass(frozen=True)
class Case:
    """A dumbbell and how long it is watched."""

    flows: int
    rate_mbps: int
    rtt_ms: int
    buffer_bdp: float
    seconds: float = 60.0
    warm_up_s: float = 10.0

    @property
    def packets(self) -> int:
        """The number of packets that the queue holds."""
        bdp = self.rate_mbps * 1e6 * self.rtt_ms * 1e-3 / 8 / NS3_WIRE_BYTES
        return max(1, round(bdp * self.buffer_bdp))

    @property
    def name(self) -> str:
        """The case's name in tables and pictures."""
        return f"{self.flows} x {self.rate_mbps} Mb/s, {self.rtt_ms} ms, {self.buffer_bdp:g} BDP"


GRID = {
    # A single flow's start changes nothing: one seed.
    Case(1, 10, 40, 0.5): 1,
    Case(1, 10, 40, 1.0): 1,
    Case(1, 10, 40, 2.0): 1,
    Case(1, 20, 40, 1.0): 1,
    Case(1, 50, 20, 1.0, seconds=40.0): 1,
    Case(10, 10, 40, 1.0): 3,
    Case(10, 20, 80, 0.5, seconds=40.0): 2,
    Case(10, 20, 80, 1.0, seconds=40.0): 2,
    Case(100, 50, 80, 1.0, seconds=20.0, warm_up_s=5.0): 2,
}
"""Dumbbells, and how many seeds."""
QUICK = {Case(1, 10, 40, 1.0, seconds=20.0, warm_up_s=5.0): 1}
_MARKING = ("sack, RED", "sack, RED with ECN", "sack, marks from half", "cubic, RED with ECN", "cubic, marks from half")
PLANS: Mapping[str, Sequence[tuple[Mapping[Case, int], Sequence[str]]]] = {
    "tcp": ((GRID, ("newreno", "sack", "sack, RFC threshold", "cubic")),),
    "queues": (
        ({Case(1, 10, 40, 1.0): 1, Case(1, 10, 40, 4.0): 1, Case(10, 20, 80, 4.0, seconds=40.0): 2}, ("bbr",)),
        ({Case(10, 10, 40, 1.0, seconds=30.0): 1}, ("bbr",)),
        ({Case(1, 10, 40, 2.0): 3, Case(10, 20, 80, 1.0, seconds=40.0): 2}, _MARKING),
    ),
}
"""What is simulated, by part: dumbbells with seeds, and with which algorithms."""
QUICK_PLANS: Mapping[str, Sequence[tuple[Mapping[Case, int], Sequence[str]]]] = {
    "tcp": ((QUICK, ("newreno", "sack", "sack, RFC threshold", "cubic")),),
    "queues": ((QUICK, ("bbr", "sack, marks from half")),),
}
PICTURED = Case(1, 10, 40, 0.5)
"""Whose windows are drawn."""


@dataclass(frozen=True)
class Run:
    """One simulation."""

    case: Case
    algorithm: str
    seed: int
    ns3_program: Path | None

    def starts_ms(self) -> list[float]:
        """Return random starts of the flows in milliseconds, rounded to microseconds."""
        draws = random.Random(self.seed)
        return [round(draws.uniform(0, STARTS_MS), 3) for _ in range(self.case.flows)]

    def rows(self) -> list[dict[str, object]]:
        """Return a row per sample: what was counted up to its time, and the windows at its time."""
        samples = self._ours() if self.ns3_program is None else self._ns3(self.ns3_program)
        columns = (
            "time_s",
            "received_bytes",
            "segments",
            "drops",
            "recoveries",
            "timeouts",
            "windows_bytes",
            "window_bytes",
            "marks",
        )
        named = {
            "case": self.case.name,
            "simulator": "ours" if self.ns3_program is None else "ns-3",
            "algorithm": self.algorithm,
            "seed": self.seed,
        }
        return [named | dict(zip(columns, sample, strict=True)) for sample in samples]

    def _ns3(self, program: Path) -> Iterator[tuple[float, ...]]:
        case, managed = self.case, ALGORITHMS[self.algorithm].managed
        command = [
            str(program),
            *ALGORITHMS[self.algorithm].ns3,
            f"--RngRun={self.seed}",
            f"--flows={case.flows}",
            f"--rate={case.rate_mbps}Mbps",
            f"--delay={case.rtt_ms / 2 - 2:g}",
            f"--packets={case.packets - 1 if managed else case.packets}",
            *(managed.ns3(case.packets) if managed else ()),
            f"--seconds={case.seconds}",
            f"--sample={SAMPLE_S}",
            "--starts=" + ",".join(f"{start:.3f}" for start in self.starts_ms()),
        ]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for line in output.splitlines():
            if line.startswith("sample "):
                time_s, *counts = line.split()[1:]
                yield (float(time_s), *map(int, counts))

    def _ours(self) -> Iterator[tuple[float, ...]]:
        case = self.case
        topology = Topology("dumbbell")
        for router in ("r0", "r1"):
            topology.add_switch(router)
        # The same time for a segment, whatever surrounds it.
        rate_bps = round(case.rate_mbps * 1e6 * WIRE_BYTES / NS3_WIRE_BYTES)
        managed = ALGORITHMS[self.algorithm].managed
        topology.add_link(
            "r0",
            "r1",
            rate_bps=rate_bps,
            delay_ms=case.rtt_ms / 2 - 2,
            queue_packets=case.packets,
            **(managed.ours(case.packets) if managed else {}),
        )
        for side in (0, 1):
            for i in range(case.flows):
                topology.add_host(f"h{side}.{i}")
                topology.add_link(f"h{side}.{i}", f"r{side}", rate_bps=10_000_000_000, delay_ms=1, queue_packets=10_000)
        controllers = [RouterController(reroute=False, reaction_delay_ms=0)]
        network = SimulatedNetwork(topology, compile_router(), controllers, seed=self.seed)
        options = TcpOptions.model_validate(ALGORITHMS[self.algorithm].options)
        flows = [
            network.add_tcp(
                TcpTransfer(source=f"h0.{i}", destination=f"h1.{i}", start_s=start_ms / 1000, options=options)
            )
            for i, start_ms in enumerate(self.starts_ms())
        ]
        for sample in range(1, round(case.seconds / SAMPLE_S) + 1):
            network.run(sample * SAMPLE_S)
            now = [network.tcp_statistics(flow) for flow in flows]
            counters = network.link_counters(network.topology.link_names()[0])
            drops = counters.a_to_b.queue_drops + counters.a_to_b.red_drops

            def total(name: str, now: Sequence[TcpStatistics] = now) -> int:
                return sum(getattr(flow, name) for flow in now)

            counted = (
                total("bytes_received"),
                total("segments_sent"),
                drops,
                total("fast_recoveries"),
                total("timeouts"),
            )
            windows = (total("cwnd_bytes"), now[0].cwnd_bytes)
            yield (round(sample * SAMPLE_S, 6), *counted, *windows, counters.a_to_b.marked)


def measured(samples: pl.DataFrame, case: Case) -> list[dict[str, object]]:
    """Return a row per run and part: goodput, throughput of the bottleneck, loss rate, mean window.

    The parts are the first seconds, and the steady state after them.
    """
    rows: list[dict[str, object]] = []
    for (simulator, algorithm, seed), run in samples.group_by(["simulator", "algorithm", "seed"], maintain_order=True):
        for part, begin_s, end_s in (("start", 0.0, case.warm_up_s), ("steady", case.warm_up_s, case.seconds)):
            inside = run.filter(pl.col("time_s").is_between(begin_s + SAMPLE_S / 2, end_s + SAMPLE_S / 2))
            before = run.filter(pl.col("time_s") < begin_s + SAMPLE_S / 2).tail(1)

            def grown(column: str, inside: pl.DataFrame = inside, before: pl.DataFrame = before) -> int:
                return int(inside[column][-1]) - (int(before[column][0]) if before.height else 0)

            sent, dropped = grown("segments"), grown("drops")
            delivered = grown("received_bytes")
            mbps = 8e-6 / (end_s - begin_s)
            rows.append(
                {
                    "case": case.name,
                    "algorithm": algorithm,
                    "simulator": simulator,
                    "seed": seed,
                    "part": part,
                    "throughput_mbps": (sent - dropped) * SEGMENT_BYTES * mbps,
                    "goodput_mbps": delivered * mbps,
                    "loss_percent": 100 * (dropped + grown("marks")) / sent,
                    "window_segments": float(inside["windows_bytes"].mean() or 0.0) / case.flows / SEGMENT_BYTES,
                    "needless_percent": 100 * (sent - dropped - delivered / SEGMENT_BYTES) / sent,
                    "recoveries": grown("recoveries"),
                    "signals": dropped + grown("marks"),
                }
            )
    return rows


METRICS = {"throughput_mbps": "throughput", "loss_percent": "losses and marks", "window_segments": "mean window"}
"""What is compared, and how pictures call it."""

# How far the steady parts may be apart, as ratios of ours to ns-3's, where nothing systematic is known: chance of many flows, and
# where the interval cuts the cycles between losses: one more or one fewer of them, at most a tenth of the window on average.
SLACK = {"throughput_mbps": (0.01, 0.0), "loss_percent": (0.10, 1.0), "window_segments": (0.03, 0.1)}
"""Of each metric: always, and divided by the number of loss events."""


MOST_NEEDLESS = 1.0
"""Percent. Where ns-3 sends more than that of what had arrived, there are no bounds: nobody describes what it does then."""


def truncated_cubic(window: float) -> tuple[float, float]:
    """Return the factors on CUBIC's loss rate and mean window if its curve is cut to whole segments, as in ns-3.

    The curve is back at W_max when it is less than a segment below it, 1.36 s before K, and the loss comes then.
    """
    w_max = window / (1 - 0.3 / 4)
    k_s = (0.3 * w_max / 0.4) ** (1 / 3)
    early_s = min((1 / 0.4) ** (1 / 3), 0.9 * k_s)
    cut_s = k_s - early_s
    # Means of W_max - 0.4 (K - t)^3 up to K and up to the cut; there whole segments are half of one above it, on average.
    full, cut = w_max - 0.1 * k_s**3, w_max - 0.1 * (k_s**4 - early_s**4) / cut_s + 0.5
    return cut_s / k_s, full / cut


MANAGED_SLACK = {"throughput_mbps": 0.02, "loss_percent": 0.10, "window_segments": 0.05}
"""The same where RED drops or marks: the queue may run empty, and which packet is chosen is chance. The signals' own number adds
two standard deviations of a Poisson variable."""

BBR_MARGIN = 0.01
"""ns-3 paces, as Linux does, at 0.99 of what the draft says."""
BBR_SLACK = {"throughput_mbps": 0.01, "window_segments": 0.05}


def bbr_bounds(window: float) -> dict[str, tuple[float, float]]:
    """Return the least and largest ratio allowed of ours to ns-3's for BBR, by metric.

    ``window``: the mean window in segments. ns-3's is larger than ours by 2 segments, which an acknowledgment stands for, and by 2
    more in one of the eight phases: by 2.25 in the mean.
    """
    more = 2.25 / window
    return {
        "throughput_mbps": (1 - BBR_SLACK["throughput_mbps"], 1 + BBR_MARGIN + BBR_SLACK["throughput_mbps"]),
        # Both lose where the window is more than the path and its queue hold. How much is a matter of phases.
        "loss_percent": (0.5, 2.0),
        "window_segments": (1 - more - BBR_SLACK["window_segments"], 1 + BBR_SLACK["window_segments"]),
    }


def bounds(case: Case, algorithm: str, window: float, events: int, signals: int = 0) -> dict[str, tuple[float, float]]:
    """Return the least and largest ratio of ours to ns-3's in the steady part, by metric.

    ``window``: the mean window in segments; ``events``: the number of fast recoveries; ``signals``: the number of packets dropped
    or marked.
    """
    if algorithm == "bbr":
        return bbr_bounds(window)
    low = {"throughput_mbps": 1.0, "loss_percent": 1.0, "window_segments": 1.0}
    high = dict(low)
    managed = ALGORITHMS[algorithm].managed
    if managed is not None:
        if algorithm.startswith("cubic"):
            low["loss_percent"], high["window_segments"] = truncated_cubic(window)
        elif not managed.ecn:
            # The lower threshold after a recovery, as below.
            high["window_segments"] += 1 / window
            high["loss_percent"] += 2 / (2 / 3 * window)
        chance = {"loss_percent": 2 / max(1, signals) ** 0.5}
        apart = {name: slack + chance.get(name, 0.0) for name, slack in MANAGED_SLACK.items()}
        return {name: (low[name] - apart[name], high[name] + apart[name]) for name in METRICS}
    if algorithm == "cubic":
        low["loss_percent"], high["window_segments"] = truncated_cubic(window)
    elif algorithm != "sack, RFC threshold":
        # Each of ns-3's recoveries ends up to two segments lower: half of the four that it leaves out of FlightSize. So its cycles,
        # of half the largest window, are two segments longer and one segment lower on average; where the queue runs empty,
        # that is throughput, too, of one flow at a time.
        high["window_segments"] += 1 / window
        high["loss_percent"] += 2 / (2 / 3 * window)
        if case.buffer_bdp < 1:
            high["throughput_mbps"] += 1 / window / case.flows
    slack = {name: always + per_event / max(1, events) for name, (always, per_event) in SLACK.items()}
    return {name: (low[name] - slack[name], high[name] + slack[name]) for name in METRICS}


UNANCHORED = {(Case(10, 10, 40, 1.0, seconds=30.0).name, "bbr"): ("loss_percent",)}
"""Numbers without bounds: where the windows of BBR overflow path and queue all the time, more than twice as much is lost here, and
nobody knows yet which side is wrong."""


def comparison(runs: pl.DataFrame, cases: Sequence[Case]) -> pl.DataFrame:
    """Return the means over the seeds, ours beside ns-3's, with their ratio and its bounds."""
    by_name = {case.name: case for case in cases}
    rows = []
    for (name, algorithm, part), group in runs.group_by(["case", "algorithm", "part"], maintain_order=True):
        ours, ns3 = (group.filter(pl.col("simulator") == simulator) for simulator in ("ours", "ns-3"))
        events = min(int(ours["recoveries"].sum()), int(ns3["recoveries"].sum()))
        signals = min(int(ours["signals"].sum()), int(ns3["signals"].sum()))
        allowed = bounds(by_name[str(name)], str(algorithm), _mean(ours, "window_segments"), events, signals)
        comparable = part == "steady" and _mean(ns3, "needless_percent") <= MOST_NEEDLESS
        for metric in METRICS:
            bounded = comparable and metric not in UNANCHORED.get((str(name), str(algorithm)), ())
            low, high = allowed[metric] if bounded else (None, None)
            here, there = _mean(ours, metric), _mean(ns3, metric)
            ratio = here / there if there else None
            rows.append(
                {
                    "case": name,
                    "algorithm": algorithm,
                    "part": part,
                    "metric": metric,
                    "seeds": ours.height,
                    "ours": here,
                    "ns3": there,
                    "ratio": ratio,
                    "low": low,
                    "high": high,
                    "within": None if low is None or high is None or ratio is None else low <= ratio <= high,
                    "ours_goodput_mbps": _mean(ours, "goodput_mbps"),
                    "ns3_goodput_mbps": _mean(ns3, "goodput_mbps"),
                    "ours_needless_percent": _mean(ours, "needless_percent"),
                    "ns3_needless_percent": _mean(ns3, "needless_percent"),
                }
            )
    return pl.DataFrame(rows)


def _mean(rows: pl.DataFrame, column: str) -> float:
    return float(rows[column].cast(pl.Float64).mean() or 0.0)


def tables(table: pl.DataFrame) -> Iterator[str]:
    """Yield lines of Markdown: a table of the steady parts with ratios and bounds, then one of the first seconds."""
    for part, title in (("steady", "After the first seconds"), ("start", "The first seconds (no bounds)")):
        titles = [
            "throughput (Mb/s)",
            "losses and marks (%)",
            "mean window (segments)",
            "goodput (Mb/s)",
            "needless (%)",
        ]
        yield f"{title}, ours / ns-3:"
        yield ""
        yield "| dumbbell | algorithm | " + " | ".join(titles) + " |"
        yield "|---|---|" + "---:|" * len(titles)
        shown = table.filter(pl.col("part") == part)
        for (case, algorithm), rows in shown.group_by(["case", "algorithm"], maintain_order=True):
            row = rows.row(0, named=True)
            cells = [_cell(row) for row in rows.rows(named=True)]
            cells.append(f"{row['ours_goodput_mbps']:.2f} / {row['ns3_goodput_mbps']:.2f}")
            # What is under way at the ends of the interval makes it a little less than nothing.
            cells.append(
                " / ".join(f"{max(0.0, row[name]):.1f}" for name in ("ours_needless_percent", "ns3_needless_percent"))
            )
            yield f"| {case} | {algorithm} | " + " | ".join(cells) + " |"
        yield ""


def _cell(row: Mapping[str, Any]) -> str:
    text = f"{row['ours']:.4g} / {row['ns3']:.4g}"
    if row["ratio"] is None or row["part"] == "start":
        return text
    if row["low"] is None:
        return f"{text}: {row['ratio']:.3f}"
    mark = "" if row["within"] else "**outside** "
    return f"{text}: {mark}{row['ratio']:.3f} ({row['low']:.2f} to {row['high']:.2f})"


LOOKS = {"newreno": "newreno-impatient"}
"""Whose look in pictures an algorithm has, where that is not its own name up to the first comma."""


def look_of(algorithm: str) -> plots.Style:
    """Return the style of an algorithm in pictures."""
    return plots.style(LOOKS.get(algorithm, algorithm.split(",", maxsplit=1)[0]))


def draw_ratios(table: pl.DataFrame, *paths: Path) -> None:
    """Draw the ratios with their bounds in a panel per metric, and a line per case and algorithm."""
    steady = table.filter(pl.col("part") == "steady")
    lines = steady.select("case", "algorithm").unique(maintain_order=True).rows()
    figure, axes = plots.plt.subplots(1, 3, sharey=True, figsize=(11, 0.2 * len(lines) + 1.4), dpi=130)
    for axis, (metric, title) in zip(axes, METRICS.items(), strict=True):
        for y, (case, algorithm) in enumerate(lines):
            row = steady.filter(case=case, algorithm=algorithm, metric=metric).row(0, named=True)
            look = look_of(algorithm)
            if row["low"] is not None:
                axis.plot(
                    [row["low"], row["high"]], [y, y], color="#DDDDDD", linewidth=5, solid_capstyle="butt", zorder=1
                )
            hollow = "," in algorithm
            if row["ratio"] is None:
                continue
            axis.plot(
                row["ratio"],
                y,
                color=look.colour,
                marker=look.marker,
                markersize=4.5,
                markerfacecolor="white" if hollow else None,
            )
        axis.axvline(1, color="#888888", linewidth=0.7, zorder=0)
        axis.set_title(title, fontsize=9)
        axis.set_xlabel("ours / ns-3", fontsize=8)
        axis.tick_params(labelsize=7)
    axes[0].set_yticks(range(len(lines)), [f"{case}: {algorithm}" for case, algorithm in lines])
    axes[0].invert_yaxis()
    figure.suptitle(
        "TCP on dumbbells here and in ns-3, after the first seconds: ratios, and their bounds (grey)", fontsize=9
    )
    figure.tight_layout()
    plots.save(figure, *paths)


def draw_windows(samples: pl.DataFrame, *paths: Path) -> None:
    """Draw the congestion window of one flow over time, with a panel per algorithm."""
    names = [name for name in ("newreno", "sack", "cubic") if name in samples["algorithm"]]
    shown = samples.filter(pl.col("algorithm").is_in(names) & (pl.col("time_s") <= 30)).with_columns(
        (pl.col("window_bytes") / SEGMENT_BYTES).alias("window"),
        pl.col("algorithm").replace({name: look_of(name).label for name in names}),
    )
    figure, axes = plots.plt.subplots(
        len(names), 1, sharex=True, figsize=(8, 1.9 * len(names) + 0.7), dpi=130, squeeze=False
    )
    for axis, (key, rows) in zip(axes[:, 0], shown.group_by(["algorithm"], maintain_order=True), strict=True):
        for simulator, curve in rows.group_by(["simulator"], maintain_order=True):
            look = plots.style(str(simulator[0]))
            axis.plot(curve["time_s"], curve["window"], color=look.colour, linewidth=1.1, label=look.label)
        axis.set_title(str(key[0]), loc="left", fontsize=9)
        # What fast recovery inflates without selective acknowledgments goes far beyond; the first one only.
        axis.set_ylim(0, 1.4 * float(rows.filter(pl.col("time_s") > 5)["window"].max() or 1.0))
        axis.tick_params(labelsize=7)
        axis.grid(axis="y", color="#DDDDDD", linewidth=0.5)
    axes[0, 0].legend(fontsize=7, loc="upper right")
    axes[-1, 0].set_xlabel("time (s)", fontsize=8)
    axes[len(names) // 2, 0].set_ylabel("congestion window (segments)", fontsize=8)
    figure.suptitle(f"Congestion window of one flow: {str(samples['case'][0]).split(' x ')[-1]}", fontsize=9)
    figure.tight_layout()
    plots.save(figure, *paths)


def draw_start(samples: pl.DataFrame, *paths: Path) -> None:
    """Draw drops and received bytes in the first seconds, as means over the seeds."""
    early = samples.filter((pl.col("time_s") <= 10) & (pl.col("algorithm") != "sack, RFC threshold"))
    means = early.group_by(["algorithm", "simulator", "time_s"], maintain_order=True).agg(
        pl.col("drops").mean(), (pl.col("received_bytes").mean() * 1e-6).alias("megabytes")
    )
    figure, grid = plots.plt.subplots(2, 3, sharex=True, sharey="row", figsize=(9, 4.4), dpi=130)
    for column, (key, rows) in enumerate(means.group_by(["algorithm"], maintain_order=True)):
        for simulator, curve in rows.group_by(["simulator"], maintain_order=True):
            look = plots.style(str(simulator[0]))
            for axis, name in zip(grid[:, column], ("megabytes", "drops"), strict=True):
                axis.plot(curve["time_s"], curve[name], color=look.colour, linewidth=1.2, label=look.label)
                axis.tick_params(labelsize=7)
                axis.grid(axis="y", color="#DDDDDD", linewidth=0.5)
        grid[0, column].set_title(look_of(str(key[0])).label, fontsize=8)
        grid[1, column].set_xlabel("time (s)", fontsize=8)
    grid[0, 0].set_ylabel("in order at the receivers (MB)", fontsize=7)
    grid[1, 0].set_ylabel("packets dropped", fontsize=7)
    grid[0, 0].legend(fontsize=7)
    figure.suptitle(f"The first seconds: {samples['case'][0]}, means of {samples['seed'].n_unique()} seeds", fontsize=9)
    figure.tight_layout()
    plots.save(figure, *paths)


def simulate(
    plan: Sequence[tuple[Mapping[Case, int], Sequence[str]]], program: Path, jobs: int
) -> Iterator[tuple[Case, pl.DataFrame]]:
    """Yield each case with its samples from both simulators, for all algorithms and seeds."""
    with ProcessPoolExecutor(jobs) as pool:
        for grid, algorithms in plan:
            for case, seeds in grid.items():
                runs = [
                    Run(case, algorithm, seed, ns3)
                    for algorithm in algorithms
                    for seed in range(1, seeds + 1)
                    for ns3 in (None, program)
                ]
                yield case, pl.DataFrame([row for rows in pool.map(Run.rows, runs) for row in rows])


def main() -> int:
    """Simulate with both simulators, compare and draw; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one small dumbbell, 20 s")
    parser.add_argument("--part", choices=[*PLANS], action="append", help="both, if not given")
    parser.add_argument("--jobs", type=int, default=2, help="simulations at a time")
    parser.add_argument(
        "--out", type=Path, help="folder for runs.csv, comparison.csv and the pictures; without, only the table"
    )
    options = parser.parse_args()
    plans = QUICK_PLANS if options.quick else PLANS
    plan = [step for part in options.part or PLANS for step in plans[part]]
    cases = list(dict.fromkeys(case for grid, _ in plan for case in grid))
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        if isinstance(program, str):
            print(f"skipped: {program}")
            return 0
        runs: list[dict[str, object]] = []
        kept: dict[Case, pl.DataFrame] = {}
        for case, samples in simulate(plan, program, options.jobs):
            runs += measured(samples, case)
            kept[case] = pl.concat([kept[case], samples]) if case in kept else samples
            print(f"simulated {case.name}", file=sys.stderr, flush=True)
    frame = pl.DataFrame(runs)
    table = comparison(frame, cases)
    text = "\n".join(tables(table))
    print(text)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "tables.md").write_text(text, encoding="utf-8")
        frame.write_csv(options.out / "runs.csv", float_precision=4)
        table.write_csv(options.out / "comparison.csv", float_precision=4)
        draw_ratios(table, *_pictures(options.out / "ns3-ratios"))
        if not options.part or "tcp" in options.part:
            draw_windows(kept.get(PICTURED, next(iter(kept.values()))), *_pictures(options.out / "ns3-windows"))
            draw_start(
                next(reversed([kept[case] for case in GRID if case in kept])), *_pictures(options.out / "ns3-start")
            )
    outside = table.filter(pl.col("within").eq(False)).rows(named=True)
    for row in outside:
        print(f"outside of its bounds: {row['case']}, {row['algorithm']}: {row['metric']}: {row['ratio']:.3f}")
    return 1 if outside else 0


def _pictures(path: Path) -> tuple[Path, Path]:
    return path.with_suffix(".png"), path.with_suffix(".svg")


if __name__ == "__main__":
    sys.exit(main())
