"""Section 5.4.2: how much later than the other a copy may come, before the acceptance window takes it for a new packet.

The paper says 1.6 s at 1 Tb/s with packets of 40 bytes and 32 bits. The window has W = 2^31 numbers, so a copy that is less than W
packets behind is recognised. That is computed here, and measured where it can be reached: in number spaces of a few bits, with a
stream whose second path is ever later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from holdfast.experiments import Finding, Setting
from holdfast.experiments.p4_protect_2020 import drawing, published, setup
from holdfast.network import SimulatedNetwork
from holdfast.sweep import Point
from holdfast.traffic import UdpStream

BITS = (4, 6, 8, 10)

PACKETS_PER_S = 1_000_000.0

START_S = 0.001

ROUNDS = 4
"""Of the number space, after the second path has caught up."""

ETHERNET_BYTES = 84
"""A frame of minimum size on the wire, with preamble and gap: that is what carries an IPv4 packet of 40 bytes."""


def points(bits: Sequence[int]) -> list[Point]:
    """Differences around half the space and around the whole one."""
    return [
        {"sn_bits": each, "packets_behind": behind}
        for each in bits
        for whole in (1 << each,)
        for behind in (
            0,
            whole // 4,
            *range(whole // 2 - 2, whole // 2 + 2),
            3 * whole // 4,
            whole - 1,
        )
    ]


POINTS = points(BITS)


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """One stream whose copies on path 2 come when path 1 is ``packets_behind`` ahead: what was forwarded twice, what was lost.

    Nothing is random, so any seed gives the same.
    """
    space = 1 << point["sn_bits"]
    later_ms = (point["packets_behind"] + 0.5) / PACKETS_PER_S * 1000
    rate = {"rate_bps": 1_000_000_000_000, "delay_ms": 0.0}
    topology = setup.two_ends(1, clients=rate, servers=rate, path1=rate, path2=rate | {"delay_ms": later_ms / 2})
    sender, receiver = setup.server(1), setup.client(1)
    program, controller = setup.forwarding("protected", [(sender, receiver)], point["sn_bits"])
    network = SimulatedNetwork(topology, program, [controller], seed=seed)
    packets = point["packets_behind"] + ROUNDS * space
    stop_s = START_S + packets / PACKETS_PER_S
    stream = UdpStream(
        source=sender,
        destination=receiver,
        packets_per_s=PACKETS_PER_S,
        payload_bytes=28,
        start_s=START_S,
        stop_s=stop_s,
    )
    flow = network.add(stream)
    network.run(stop_s + 2 * later_ms / 1000 + 0.001)
    statistics = network.core.statistics(flow)
    return {name: int(statistics[name] or 0) for name in ("sent", "delivered", "lost", "duplicated", "reordered")}


def seconds(packets: float, packet_bytes: int = published.CLAIM_PACKET_BYTES) -> float:
    """So many packets at the claim's rate."""
    return packets * packet_bytes * 8 / published.CLAIM_RATE_BPS


def find(setting: Setting) -> Finding:
    """The true limit in each space, and what it is with 32 bits."""
    frame = setup.one_run(setting).sweep("delay_difference", f"{__name__}:measure", POINTS)
    return Finding(numbers(frame), {"": draw(frame)}, {"runs": frame})


def numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """By number space: the largest difference without harm, of those tried; what W says; and the paper's case."""
    rows: list[dict[str, Any]] = []
    harm = frame.group_by(["sn_bits", "packets_behind"], maintain_order=True).agg(
        pl.col("duplicated", "lost", "reordered").max()
    )
    for (bits,), found in harm.group_by(["sn_bits"], maintain_order=True):
        harmless = found.filter(pl.col("duplicated") + pl.col("lost") + pl.col("reordered") == 0)
        limit = 2 ** (int(str(bits)) - 1) - 1
        rows += [
            _row(bits, "harmless_packets", max(harmless["packets_behind"])),
            _row(bits, "harmless_packets_expected", limit),
        ]
    bits = published.CLAIM_SN_BITS
    limit = 2 ** (bits - 1) - 1
    rows += [
        _row(bits, "delay_difference_s", seconds(limit)),
        _row(bits, "harmless_packets_expected", limit),
        _row(bits, "whole_space_s", seconds(2**bits)),
        _row(bits, "smallest_ethernet_frames_s", seconds(limit, ETHERNET_BYTES)),
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def _row(bits: object, quantity: str, value: float) -> dict[str, Any]:
    """Nothing is random here: the interval is the number."""
    return {"sn_bits": bits, "quantity": quantity, "ours": float(value), "low": float(value), "high": float(value)}


def draw(frame: pl.DataFrame) -> Figure:
    """What is forwarded twice, over the difference, both as shares of the number space; and where the paper's figure would be."""
    space = 2.0 ** pl.col("sn_bits")
    shares = frame.with_columns(behind=pl.col("packets_behind") / space, twice=pl.col("duplicated") / space)
    return drawing.shares(shares, published.CLAIM.value("delay_difference_s", sn_bits=32) / seconds(2**32))
