"""Figures 4.1 to 4.5 in real time: frames of two programs with raw sockets through three of our switches on this machine.

The thesis measured bmv2 on a laptop; this is our switch on this machine, whose cost per packet is not a simulated
parameter. Sender, switches and receiver share its processors, and what else runs on it takes part: its load is kept with the
results. Packets are as long as an interface of 1500 bytes takes. Needs root, and says so where it is missing.
"""

from __future__ import annotations

import itertools
import statistics as plain
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import polars as pl

from holdfast._core import Program
from holdfast.apps.router import RouterController
from holdfast.apps.shorternet import ShorternetController
from holdfast.controller import Controller
from holdfast.experiments import Finding, Part, Setting, this_machine
from holdfast.experiments.p4_thesis_2021 import drawing, header_runs, published, setup
from holdfast.experiments.p4_thesis_2021.firewall_runs import ip_packet
from holdfast.experiments.rows import summaries
from holdfast.experiments.this_machine import disturbance
from holdfast.live.hosts import hosts, preferred
from holdfast.network import LiveNetwork
from holdfast.sweep import Point
from holdfast.topology import Topology

LENGTHS_BYTES = (74, 300, 694, 850, 1514)
PACKETS = 20_000
"""The number of packets: they take 20 seconds."""
POINTS: list[Point] = header_runs.points(LENGTHS_BYTES, PACKETS)

HOST_STATIONS = {setup.SENDER: 101, setup.RECEIVER: 104}
"""The stations of hosts that speak Shorternet; the switches have the others."""

PORT = 5001

LATE_MS = 1.0
"""An event of the network that is later disturbs a run: frames are a millisecond apart."""


def header(topology: Topology, stack: str, length: int) -> bytes:
    """Return all bytes before the payload of a frame from h1 to h4 that is ``length`` bytes long with the headers of ``stack``."""
    udp_bytes = length - (34 if stack == "standard" else 4)
    udp = PORT.to_bytes(2, "big") * 2 + udp_bytes.to_bytes(2, "big") + bytes(2)
    if stack == "shorternet":
        return bytes((HOST_STATIONS[setup.RECEIVER], HOST_STATIONS[setup.SENDER], 17, 64)) + udp
    place = topology.attachment(setup.SENDER)
    source, destination = (topology.hosts[name].address.ip for name in (setup.SENDER, setup.RECEIVER))
    packet = ip_packet(source, destination, udp + bytes(udp_bytes - 8))
    return (topology.port_mac(place.switch, place.port) + place.host.mac + packet)[: published.HEADER_BYTES[stack]]


def network_of(stack: str) -> tuple[Topology, Program, Controller]:
    """Build three switches without an artificial delay; return topology, program and controller for ``stack``.

    Shorternet's hosts are stations.
    """
    topology = Topology("figure-3-2")
    for name in (setup.SENDER, setup.RECEIVER):
        topology.add_host(name)
    for name in setup.PATH:
        topology.add_switch(name)
    way = (setup.SENDER, *setup.PATH, setup.RECEIVER)
    for a, b in itertools.pairwise(way):
        topology.add_link(a, b, **setup.FAST)
    if stack == "standard":
        return topology, setup.router(), RouterController(reroute=False, reaction_delay_ms=0.0)
    return (
        topology,
        setup.shorternet(),
        ShorternetController(reaction_delay_ms=0.0, host_stations=HOST_STATIONS),
    )


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Send one flow in real time; return its :func:`measures`, named as by :func:`header_runs.measure`.

    A run with an event that is more than ``LATE_MS`` late is repeated (:func:`this_machine.in_time`).
    """
    return this_machine.in_time(lambda: measured_once(point), LATE_MS)


def measured_once(point: Mapping[str, Any]) -> dict[str, Any]:
    """Send one flow in real time; return its :func:`measures`, and ``max_lateness_ms``, the largest lateness of an event."""
    stack, length, count = point["stack"], point["packet_bytes"], point["packets"]
    topology, program, controller = network_of(stack)
    front = header(topology, stack, length)
    interval_ns = round(1e9 / published.PACKETS_PER_S)
    with ExitStack() as stack_:
        namespaces, interfaces = stack_.enter_context(hosts(topology))
        with preferred():
            network = stack_.enter_context(LiveNetwork(topology, program, [controller], interfaces=interfaces))
        sender, receiver = namespaces[setup.SENDER], namespaces[setup.RECEIVER]
        frame = front + bytes(length - len(front))
        arrivals = this_machine.send_frames(sender, receiver, frame, count, interval_ns, length)
        lateness_ps = network.wall_statistics().max_lateness_ps
    return measures(arrivals, count, length - len(front)) | {"max_lateness_ms": lateness_ps / 1e9}


def measures(arrivals: list[tuple[int, int, int]], count: int, payload: int) -> dict[str, Any]:
    """Return loss in percent, bandwidth in bytes/s, and mean latency and jitter in ms of ``arrivals``.

    An arrival is (number, time of sending in ns, time of arrival in ns), each packet once. ``count``: packets sent. ``payload``:
    bytes in a packet.
    """
    latencies_ms = [(at_ns - sent_ns) / 1e6 for _, sent_ns, at_ns in arrivals]
    lost = count - len({number for number, _, _ in arrivals})
    duration_s = (arrivals[-1][2] - arrivals[0][2]) / 1e9
    return {
        "lost_percent": 100 * lost / count,
        "bandwidth_bytes_per_s": payload * (len(arrivals) - 1) / duration_s,
        "latency_ms": plain.fmean(latencies_ms),
        "jitter_ms": plain.stdev(latencies_ms),
    }


QUANTITIES = {
    "bandwidth_bytes_per_s": "effective bandwidth (bytes/s)",
    "latency_ms": "mean latency (ms)",
    "lost_percent": "lost packets (%)",
    "jitter_ms": "jitter (ms)",
}


def found(frame: pl.DataFrame, where: pl.DataFrame) -> Finding:
    """Return the finding of Figures 4.1 to 4.5 in real time: a row per stack, packet length and quantity.

    ``where``: rows of :func:`this_machine.machine`.
    """
    title = f"Through three switches in real time, {disturbance(where)}"
    figure = drawing.live_lengths(frame, QUANTITIES, title)
    return Finding(
        summaries(frame, ["stack", "packet_bytes"], [*QUANTITIES]), {"": figure}, {"runs": frame, "machine": where}
    )


def find(setting: Setting) -> Finding:
    """Measure Figures 4.1 to 4.5 in real time, one run at a time whatever ``jobs`` says; if impossible, return only the reason."""
    return this_machine.find(setting, "headers_live", f"{__name__}:measure", POINTS, found, tools=("ip",))


PARTS = (
    Part(
        "headers_live",
        "Figs. 4.1 to 4.5, section 4.1",
        "the same with raw sockets and our switch on this machine (needs root)",
        find,
        len(POINTS),
    ),
)
