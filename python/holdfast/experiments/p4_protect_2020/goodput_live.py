"""Figure 7 with this machine's own TCP: iperf3 between network namespaces, through two switches in real time.

Every client and server is a namespace, joined by a veth pair to a network on the wall clock, in which the same programs forward as
in :mod:`goodput`. Senders, receivers, kernel and switches share this machine's processors, so what is measured is how much work
a packet is, not a line rate; only ratios within a run mean something. Other load of the machine takes part: the load when the
runs begin is kept, and the picture says it. The runs are one sitting, and intervals over them do not cover another sitting or
machine. Needs root and iperf3, and says so where they are missing.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from holdfast import statistics
from holdfast.errors import LiveError
from holdfast.experiments import Finding, Setting, this_machine
from holdfast.experiments.p4_protect_2020 import published, setup
from holdfast.experiments.p4_protect_2020.goodput import by_pairs_and_mode
from holdfast.live.hosts import hosts, iperf3_report, preferred, start, wait_listening
from holdfast.network import LiveNetwork
from holdfast.plots import intervals
from holdfast.sweep import Point

PORT = 5201

SECONDS = 1
"""Whole ones: iperf3 takes no others. Slow start is over within milliseconds."""


def points(pairs: Sequence[int], seconds: int) -> list[Point]:
    """Return a point for each number of client/server pairs; a run has all forwarding modes in turn."""
    return [{"pairs": count, "flows": published.FLOWS_PER_PAIR, "seconds": seconds} for count in pairs]


POINTS = points(published.PAIRS, SECONDS)


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Run iperf3 in every forwarding mode, one after the other; return the goodput of all pairs together in Gb/s by mode.

    Which mode is first depends on the seed, which is the number of the run.
    """
    turn = seed % len(published.MODES)
    order = published.MODES[turn:] + published.MODES[:turn]
    found = {mode: _run(point, mode) for mode in order}
    return {f"{mode}_gbps": found[mode] for mode in published.MODES}


def _run(point: Mapping[str, Any], mode: str) -> float:
    """Let all clients download at once with iperf3 through switches in one forwarding mode; return the goodput in Gb/s.

    Raises :class:`LiveError` if iperf3 fails or does not end.
    """
    fast = {"rate_bps": 100_000_000_000, "queue_packets": 2000}
    topology = setup.two_ends(point["pairs"], clients=fast, servers=fast, path1=fast, path2=fast, direct=True)
    pairs = [(setup.server(pair), setup.client(pair)) for pair in range(1, point["pairs"] + 1)]
    program, controller = setup.forwarding(mode, pairs)
    with hosts(topology) as (namespaces, interfaces), ExitStack() as stack:
        # It stands for the hardware between the hosts: were it to wait for its turn among dozens of iperf3 threads, rings would
        # overflow, and what is measured would be the scheduler.
        with preferred():
            stack.enter_context(LiveNetwork(topology, program, [controller], interfaces=interfaces))
        for server, _ in pairs:
            process = start(namespaces[server], "iperf3", "--server", "--one-off", "--port", str(PORT))
            stack.callback(process.kill)
            wait_listening(namespaces[server], (PORT,))
        clients = []
        for server, client in pairs:
            process = start(
                namespaces[client],
                *("iperf3", "--client", str(topology.hosts[server].address.ip), "--port", str(PORT)),
                *("--reverse", "--parallel", str(point["flows"]), "--json"),
                *("--time", str(point["seconds"])),
            )
            stack.callback(process.kill)
            clients.append(process)
        try:
            outputs = [process.communicate(timeout=60)[0] for process in clients]
        except subprocess.TimeoutExpired:
            raise LiveError("iperf3 did not end in time") from None
    reports = [iperf3_report(output, f"iperf3 of pair {pair}") for pair, output in enumerate(outputs, 1)]
    return sum(float(report["end"]["sum_received"]["bits_per_second"]) for report in reports) / 1e9


def found(frame: pl.DataFrame, machine: pl.DataFrame) -> Finding:
    """Return the finding of Figure 7 in real time: goodput in Gb/s and in % of plain forwarding, by number of host pairs and mode.

    ``frame``: a row per run of iperf3. ``machine``: rows of :func:`this_machine.machine`.
    """
    by_mode = long(frame)
    numbers = pl.DataFrame(by_pairs_and_mode(by_mode))
    return Finding(numbers, {"": draw(by_mode, machine)}, {"runs": frame, "machine": machine})


def find(setting: Setting) -> Finding:
    """Measure Figure 7 in real time, one run at a time whatever ``jobs`` says; where impossible, return only the reason."""
    return this_machine.find(
        setting, "fig7_live", f"{__name__}:measure", POINTS, found, tools=("ip", "ping", "iperf3"), sweep="goodput_live"
    )


def long(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row per run and mode with its ``goodput_gbps``, from rows with a column per mode."""
    columns = {f"{mode}_gbps": mode for mode in published.MODES}
    return frame.unpivot(
        list(columns), index=["pairs", "seed"], variable_name="mode", value_name="goodput_gbps"
    ).with_columns(pl.col("mode").replace(columns))


def draw(frame: pl.DataFrame, machine: pl.DataFrame) -> Figure:
    """Draw Figure 7 from runs in real time: goodput in Gb/s by pairs and mode."""
    figure = intervals(
        statistics.summary(frame, ["pairs", "mode"], "goodput_gbps"),
        "pairs",
        "mode",
        title=f"TCP goodput on one machine, iperf3 through veth\n{this_machine.disturbance(machine)}",
        xlabel="client/server pairs with 15 flows each",
        ylabel="goodput (Gb/s)",
    )
    figure.axes[0].set_ylim(bottom=0)
    figure.set_size_inches(5.2, 3.8)
    figure.tight_layout()
    return figure
