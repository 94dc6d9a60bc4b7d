"""The BIER controller's own time after a failure: planning, and writing to all switches, which are in its process.

It repairs first, by routes and BIFTs, and then plans and writes the backups for the next failure. As a script it prints medians
over links of a topology in every protection mode: ``python tests/python/bier_convergence.py [TOPOLOGY [RUNS]]``; the suite runs a
small one. Delays of signalling, which scenarios state, are zero here.
"""

from __future__ import annotations

import gc
import random
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast import SimulatedNetwork
from holdfast._core import Program
from holdfast.apps.bier import BierController, compile_bier
from holdfast.apps.bier.protection import FastReroute, Protect
from holdfast.topologies import load

MODES: tuple[tuple[FastReroute, Protect], ...] = (
    ("none", "link"),
    ("tunnel", "link"),
    ("tunnel", "node"),
    ("lfa", "link"),
    ("lfa", "node"),
)


@dataclass(frozen=True)
class Convergence:
    """One link failed: processor time until the last switch was repaired, and until it was protected again; what was written."""

    link: str
    repaired_ms: float
    protected_ms: float
    switches: int
    updates: int


def failures(
    topology_name: str, program: Program, frr: FastReroute, protect: Protect, runs: int, *, seed: int = 1
) -> Iterator[Convergence]:
    """Yield the controller's times for failures of ``runs`` random links in turn, each repaired before the next."""
    topology = load(topology_name)
    controller = BierController(ip_delay_ms=0, bier_delay_ms=0, frr=frr, protect=protect)
    network = SimulatedNetwork(topology, program, [controller], seed=seed)
    between = [link for link in topology.links if link.a in topology.switches and link.b in topology.switches]
    for link in random.Random(seed).sample(between, runs):
        network.run(network.now_ps / 1e12 + 2)
        before = {name: (client.requests_sent, client.updates_sent) for name, client in network.clients.items()}
        # A collection of all that the network consists of is no part of what a failure costs.
        gc.collect()
        gc.freeze()
        begin = time.thread_time()
        controller.on_port_change(link.a, link.a_port, up=False)
        controller.on_port_change(link.b, link.b_port, up=False)
        repaired = time.thread_time()
        network._scheduler.run_due(network.now_ps)
        protected = time.thread_time()
        written = [
            client.updates_sent - before[name][1]
            for name, client in network.clients.items()
            if client.requests_sent > before[name][0]
        ]
        times_ms = (repaired - begin) * 1e3, (protected - begin) * 1e3
        yield Convergence(f"{link.a}-{link.b}", *times_ms, len(written), sum(written))
        controller.on_port_change(link.a, link.a_port, up=True)
        controller.on_port_change(link.b, link.b_port, up=True)


def main() -> None:
    """Print a row of times for each mode of fast reroute and protection."""
    topology = sys.argv[1] if len(sys.argv) > 1 else "waxman:100"
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    program = compile_bier()
    print(f"{topology}, {runs} links, medians (least to most) of processor time")
    print("frr     protect  repaired                    protected again              switches updates")
    for frr, protect in MODES:
        found = list(failures(topology, program, frr, protect, runs))
        columns = []
        for what in ("repaired_ms", "protected_ms"):
            times = sorted(getattr(each, what) for each in found)
            columns.append(f"{statistics.median(times):.1f} ms ({times[0]:.1f} to {times[-1]:.1f})")
        switches, updates = (
            statistics.median(getattr(each, what) for each in found) for what in ("switches", "updates")
        )
        print(f"{frr:<7} {protect:<8} {columns[0]:<27} {columns[1]:<28} {switches:>8.0f} {updates:>7.0f}", flush=True)


if __name__ == "__main__":
    main()
