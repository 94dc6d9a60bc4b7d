"""Figures 2 to 4 as scenarios: four packets, two paths with scripted delays and losses, and the forwarded packets.

Figure 2: packet 3 is very late on path 1, and path 2's is forwarded. Figure 3: packet 3 is lost on path 1, and on path 2 it
comes after packet 4 of path 1. Figure 4: packets 2 and 3 change places on path 1, and path 2's packet 2 comes between them. The
paper's window loses a packet in the last two. Each is run with the vector algorithm too, which remembers what is missing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from holdfast import _core
from holdfast.experiments import Finding, Setting
from holdfast.experiments.p4_protect_2020 import drawing, setup
from holdfast.experiments.rows import exact, row
from holdfast.link import Jitter
from holdfast.network import SimulatedNetwork
from holdfast.parameters import PS_PER_MS
from holdfast.results import packets
from holdfast.sweep import Point
from holdfast.traffic import UdpStream

PACKETS = 4

START_MS = 1.0
"""The time at which packet 1 is sent; the others follow 1 ms apart."""

MODES = {"window": "protected", "vector": setup.VECTOR}
"""The forwarding mode of each acceptance algorithm."""


@dataclass(frozen=True)
class Script:
    """The two paths' treatment of packets 1 to 4: delays in ms, and the number of the packet that path 1 loses."""

    title: str
    path1_ms: tuple[float, ...]
    path2_ms: tuple[float, ...]
    lost: int | None = None

    def path1(self) -> dict[str, Any]:
        """Return the delays in ms and the lost packets of path 1 as options of a link."""
        lost = () if self.lost is None else (self.lost - 1,)
        return (
            {**_delays(self.path1_ms), "loss": {"model": "trace", "lost_packets": lost}}
            if lost
            else _delays(self.path1_ms)
        )

    def path2(self) -> dict[str, Any]:
        """Return the delays of path 2 in ms as options of a link."""
        return _delays(self.path2_ms)


def _delays(delays_ms: tuple[float, ...]) -> dict[str, Any]:
    return {"jitter": Jitter(distribution="trace", delays_ms=delays_ms)}


SCRIPTS = {
    "fig2": Script("Fig. 2: packet 3 is late on path 1", (0.5, 0.5, 3.0, 0.5), (0.8, 0.8, 0.8, 0.8)),
    "fig3": Script("Fig. 3: packet 3 is lost on path 1", (0.5, 0.5, 0.5, 0.5), (2.0, 2.0, 2.0, 2.0), lost=3),
    "fig4": Script("Fig. 4: path 1 has the order 1 3 2 4", (0.5, 2.15, 0.5, 0.5), (1.8, 1.8, 1.8, 1.8)),
}

POINTS: list[Point] = [{"figure": figure, "algorithm": algorithm} for figure in SCRIPTS for algorithm in MODES]


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Run one scenario; return numbers and times of the packets that arrive at the egress on each path, and at the host.

    Times are in ms since packet 1 was sent. Nothing is random, so every seed gives the same.
    """
    script = SCRIPTS[point["figure"]]
    line = {"rate_bps": 100_000_000_000}
    topology = setup.two_ends(1, clients=line, servers=line, path1=line | script.path1(), path2=line | script.path2())
    source, destination = setup.client(1), setup.server(1)
    program, controller = setup.forwarding(MODES[point["algorithm"]], [(source, destination)])
    network = SimulatedNetwork(topology, program, [controller], seed=seed)
    flow = network.add(
        UdpStream(
            source=source,
            destination=destination,
            packets_per_s=1000,
            start_s=START_MS / 1000,
            stop_s=(START_MS + PACKETS - 0.5) / 1000,
        )
    )
    with tempfile.TemporaryDirectory() as directory:
        ports = {path: topology.port_towards("s2", f"m{path}") for path in (1, 2)}
        for path, port in ports.items():
            network.capture("s2", port, Path(directory) / str(path))
        network.run(0.05)
        copies = {path: _core.read_pcap(Path(directory) / str(path)) for path in ports}
    result: dict[str, Any] = {}
    for path, frames in copies.items():
        result[f"path{path}_numbers"] = [int.from_bytes(frame[37:41], "big") for _, frame in frames]
        result[f"path{path}_ms"] = [_since(time_ps) for time_ps, _ in frames]
    arrived = packets(network, flow).drop_nulls("received_ps").sort("received_ps")
    return result | {
        "forwarded_numbers": [number + 1 for number in arrived["sequence"]],
        "forwarded_ms": [_since(time_ps) for time_ps in arrived["received_ps"]],
        "worst_delay_ms": max((arrived["received_ps"] - arrived["sent_ps"]).to_list()) / PS_PER_MS,
        "reordered": int(arrived["reordered"].sum()),
        "duplicated": int((arrived["copy"] > 0).sum()),
    }


def _since(time_ps: int) -> float:
    """Return ``time_ps`` in ms since packet 1 was sent, rounded to 0.01 ms so that serialisation does not show."""
    return round(time_ps / PS_PER_MS - START_MS, 2)


def find(setting: Setting) -> Finding:
    """Return the finding of Figures 2 to 4: packets forwarded, reordered and duplicated, with both acceptance algorithms."""
    frame = setting.one_run().sweep("scenarios", f"{__name__}:measure", POINTS)
    lists = [name for name, kind in frame.schema.items() if isinstance(kind, pl.List)]
    flat = frame.with_columns(pl.col(lists).cast(pl.List(pl.String)).list.join(" "))
    return Finding(numbers(frame), {"": draw(frame)}, {"events": flat})


def numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row per figure, algorithm and quantity: packets forwarded, reordered and duplicated, and the worst delay in ms."""
    rows = []
    for run in frame.iter_rows(named=True):
        key = {"figure": run["figure"], "algorithm": run["algorithm"]}
        measures = {"forwarded": len(run["forwarded_numbers"])}
        measures |= {name: run[name] for name in ("worst_delay_ms", "reordered", "duplicated")}
        rows += [row(key, quantity, exact(float(value))) for quantity, value in measures.items()]
    return pl.DataFrame(rows)


def draw(frame: pl.DataFrame) -> Figure:
    """Draw each scenario over time: packets sent, arrivals on each path, and what each algorithm forwards."""
    scenarios = []
    for figure, script in SCRIPTS.items():
        runs = {row["algorithm"]: row for row in frame.filter(pl.col("figure") == figure).iter_rows(named=True)}
        any_run = next(iter(runs.values()))
        lanes: dict[str, list[tuple[int, float, bool]]] = {
            "sent": [(number, number - 1.0, True) for number in range(1, PACKETS + 1)]
        }
        taken = {
            name: dict(zip(run["forwarded_numbers"], run["forwarded_ms"], strict=True)) for name, run in runs.items()
        }
        for path in (1, 2):
            arrivals = zip(any_run[f"path{path}_numbers"], any_run[f"path{path}_ms"], strict=True)
            lanes[f"path {path}"] = [
                (number, at_ms, _is_taken(taken["window"], number, at_ms)) for number, at_ms in arrivals
            ]
        for name, forwarded in taken.items():
            lanes[f"forwarded: {name}"] = [(number, at_ms, True) for number, at_ms in forwarded.items()]
        missing = (
            [] if script.lost is None else [("path 1", script.lost, script.lost - 1 + script.path1_ms[script.lost - 1])]
        )
        scenarios.append({"title": script.title, "lanes": lanes, "missing": missing})
    return drawing.timeline(scenarios)


def _is_taken(forwarded: Mapping[int, float], number: int, at_ms: float) -> bool:
    """Return True if the copy of packet ``number`` that arrived at ``at_ms`` is the one forwarded (within 0.05 ms)."""
    return number in forwarded and abs(forwarded[number] - at_ms) < 0.05


def lost(row: Mapping[str, Any]) -> set[int]:
    """Return the numbers of packets of which a copy arrived at the egress, but none was forwarded."""
    arrived = set(chain(row["path1_numbers"], row["path2_numbers"]))
    return arrived - set(row["forwarded_numbers"])
