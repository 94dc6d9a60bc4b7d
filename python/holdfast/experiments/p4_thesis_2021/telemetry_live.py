"""Figures 4.6 to 4.8 in real time: iperf3 and ping of the kernel through the simulated switches' models on the wall clock.

The network is that of :mod:`telemetry_runs`, with the same processors and links; hosts are namespaces of this machine. Only the
hosts differ from the simulation: the times of iperf3's packets, and the kernel's answers to reports for which no program listens.
Needs root and iperf3, and says so where they are missing.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import polars as pl

from holdfast.errors import LiveError
from holdfast.experiments import Finding, Part, Setting, this_machine
from holdfast.experiments.p4_thesis_2021 import drawing, published, setup, telemetry_runs
from holdfast.experiments.rows import summaries
from holdfast.experiments.this_machine import disturbance
from holdfast.live.hosts import hosts, iperf3_report, preferred, start, wait_listening
from holdfast.network import LiveNetwork
from holdfast.sweep import Point

PORT = 5201
SECONDS = int(published.RUN_S)
LATE_MS = 13.0
"""An event of the network that is later disturbs a run: half of the least round trip."""

RATES_MBPS = (3.0, 4.5, 5.0, 5.5)
POINTS: list[Point] = [
    telemetry_runs.point(5, 1, mode, rate, run_s=SECONDS) for rate in RATES_MBPS for mode in ("off", "thesis")
]
KEYS = ["switches", "flows", "mode", "rate_mbps"]
QUANTITIES = {
    "bandwidth_mbps": "received bandwidth (Mb/s)",
    "latency_ms": "round-trip time of ping (ms)",
    "lost_percent": "lost packets (%)",
    "jitter_ms": "jitter (iperf3, ms)",
}


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Run one flow in real time; return its measures, named as by :func:`telemetry_runs.measure`.

    A run with an event that is more than ``LATE_MS`` late is repeated (:func:`this_machine.in_time`).
    """
    return this_machine.in_time(lambda: measured_once(point, seed), LATE_MS)


def measured_once(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Run one flow in real time; return its measures, and ``max_lateness_ms``, the largest lateness of an event.

    Raises :class:`LiveError` if iperf3 or ping fails.
    """
    topology = setup.line(point["switches"], setup.MACHINE_PACKETS_PER_S)
    program, controller = telemetry_runs.forwarding(point["mode"], 1.0)
    seconds = int(point["run_s"])
    with ExitStack() as stack:
        namespaces, interfaces = stack.enter_context(hosts(topology))
        with preferred():
            network = stack.enter_context(
                LiveNetwork(topology, program, [controller], interfaces=interfaces, seed=seed)
            )
        address = str(topology.hosts["b1"].address.ip)
        server = start(namespaces["b1"], "iperf3", "--server", "--one-off", "--json", "--port", str(PORT))
        stack.callback(server.kill)
        wait_listening(namespaces["b1"], (PORT,))
        pings = seconds * 10
        ping = start(namespaces["a1"], "ping", "-n", "-q", "-i", "0.1", "-c", str(pings), "-W", "2", address)
        stack.callback(ping.kill)
        client = start(
            namespaces["a1"],
            *("iperf3", "--client", address, "--port", str(PORT), "--udp", "--json"),
            *("--bitrate", f"{point['rate_mbps']}M", "--length", str(telemetry_runs.PAYLOAD_BYTES)),
            *("--time", str(seconds)),
        )
        stack.callback(client.kill)
        try:
            said = client.communicate(timeout=60 + seconds)[0]
            heard = server.communicate(timeout=60)[0]
            pinged = ping.communicate(timeout=60 + seconds)[0]
        except subprocess.TimeoutExpired:
            raise LiveError("iperf3 or ping did not end in time") from None
        lateness_ps = network.wall_statistics().max_lateness_ps
    iperf3_report(said, "iperf3 of a1")
    received = iperf3_report(heard, "iperf3 of b1")["end"]["sum"]
    times = re.search(r"= [\d.]+/([\d.]+)/", pinged)
    if times is None:
        raise LiveError("no ping came back")
    arrived = received["packets"] - received["lost_packets"]
    return {
        "bandwidth_mbps": arrived * telemetry_runs.PAYLOAD_BYTES * 8 / received["seconds"] / 1e6,
        "lost_percent": received["lost_percent"],
        "jitter_ms": received["jitter_ms"],
        "latency_ms": float(times[1]),
        "max_lateness_ms": lateness_ps / 1e9,
    }


def found(frame: pl.DataFrame, where: pl.DataFrame) -> Finding:
    """Return the finding of Figures 4.6 to 4.8 in real time: a row per rate, INT or none, and quantity; and the figure.

    ``where``: rows of :func:`this_machine.machine`.
    """
    title = f"Five switches in real time, kernel hosts with iperf3 and ping\n{disturbance(where)}"
    return Finding(
        summaries(frame, KEYS, [*QUANTITIES]),
        {"": drawing.live_rates(frame, QUANTITIES, title)},
        {"runs": frame, "machine": where},
    )


def find(setting: Setting) -> Finding:
    """Measure Figures 4.6 to 4.8 in real time, one run at a time whatever ``jobs`` says; if impossible, return only the reason."""
    return this_machine.find(
        setting, "telemetry_live", f"{__name__}:measure", POINTS, found, tools=("ip", "ping", "iperf3")
    )


PARTS = (
    Part(
        "telemetry_live",
        "Figs. 4.6 to 4.9, section 4.2",
        "five switches, with iperf3, ping and kernel hosts in real time (needs root)",
        find,
        len(POINTS),
    ),
)
