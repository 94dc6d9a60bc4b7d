"""A flow of the thesis's benchmark through three switches, with standard or short headers (sections 3.2.1 and 4.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from holdfast import results
from holdfast._core import Program
from holdfast.apps.router import RouterController
from holdfast.controller import Controller
from holdfast.experiments.p4_thesis_2021 import published, setup
from holdfast.network import SimulatedNetwork
from holdfast.parameters import PS_PER_MS, PS_PER_S
from holdfast.sweep import Point
from holdfast.traffic import UdpStream

STACKS = tuple(published.HEADER_BYTES)

PAYLOADS_BYTES = (28, 32, 48, 258, 1472, 8958)
"""For the comparison of packets that carry as much: short packets, where Ethernet's minimum counts, and long ones. A simulated
stream has 28 at least."""

MINIMUM_BYTES = 60
"""The least bytes of an Ethernet frame without its check sequence: shorter ones are padded (IEEE 802.3, 4.2.3.3)."""

WIRE_BYTES = 24
"""The bytes of a frame on the wire besides: check sequence, preamble, gap."""

SPARE_S = 5.0
"""The time for packets that are still on their way at the end."""


def points(lengths_bytes: Sequence[int], packets: int) -> list[Point]:
    """Return a point for each packet length in bytes and stack (standard or short headers)."""
    return [{"stack": s, "packet_bytes": length, "packets": packets} for length in lengths_bytes for s in STACKS]


def payload_points(payloads_bytes: Sequence[int], packets: int) -> list[Point]:
    """Return a point for each payload in bytes and stack; ``packet_bytes`` is the payload plus the stack's header."""
    header = published.HEADER_BYTES
    return [
        {"stack": s, "packet_bytes": payload + header[s], "packets": packets}
        for payload in payloads_bytes
        for s in STACKS
    ]


POINTS = points(published.LENGTHS_BYTES, published.PACKETS)
PAYLOAD_POINTS = payload_points(PAYLOADS_BYTES, 1000)


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Send one flow through three switches; return bandwidth in bytes/s, latency and jitter in ms, and loss in percent.

    Bandwidth is payload over the time from the first to the last arrival, as in equation 3.4. ``wire_bytes``: the length of a
    packet on the link s1-s3, with Ethernet's minimum and everything around a frame.
    """
    stack, packets = point["stack"], point["packets"]
    topology = setup.header_path(stack, setup.SERVICE_PACKETS_PER_S[stack])
    programs: dict[str, Program]
    controllers: list[Controller]
    if stack == "standard":
        programs = dict.fromkeys(topology.switches, setup.router())
        controllers = [RouterController(reroute=False, reaction_delay_ms=0.0)]
    else:
        programs = dict.fromkeys(topology.switches, setup.shorternet())
        ends = ((setup.SENDER, setup.RECEIVER), (setup.RECEIVER, setup.SENDER))
        scripts = (setup.SENDER_SCRIPT, setup.RECEIVER_SCRIPT)
        for name, (host, other) in zip(scripts, ends, strict=True):
            programs[name] = setup.script(topology, name, host, other)
        controllers = [setup.Stations()]
    network = SimulatedNetwork(topology, programs, controllers, seed=seed)
    payload = point["packet_bytes"] - published.HEADER_BYTES[stack]
    stop_s = (packets - 0.5) / published.PACKETS_PER_S
    flow = network.add(
        UdpStream(
            source=setup.SENDER,
            destination=setup.RECEIVER,
            packets_per_s=published.PACKETS_PER_S,
            payload_bytes=payload,
            stop_s=stop_s,
        )
    )
    network.run(stop_s + SPARE_S)
    frame = results.packets(network, flow)
    arrived = frame.drop_nulls("received_ps")
    latencies_ms = (arrived["received_ps"] - arrived["sent_ps"]) / PS_PER_MS
    first, last = (arrived.select(pick).item() for pick in (pl.col("received_ps").min(), pl.col("received_ps").max()))
    crossed = network.link_counters("s1-s3").a_to_b
    return {
        "sent": len(frame),
        "lost": len(frame) - len(arrived),
        "lost_percent": 100 * (1 - len(arrived) / len(frame)),
        "bandwidth_bytes_per_s": payload * (len(arrived) - 1) / ((last - first) / PS_PER_S),
        "latency_ms": latencies_ms.mean(),
        "jitter_ms": latencies_ms.std(),
        "wire_bytes": crossed.bytes / crossed.packets,
    }
