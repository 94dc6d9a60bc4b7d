"""Section 5.4.2: the delay of a copy behind the other beyond which the acceptance window takes it for a new packet.

The window has W = 2^31 numbers, so a copy that is less than W packets behind is recognised. That is measured where it can be
reached: in number spaces of a few bits, with a stream whose second path is ever later.

The paper says that this is 1.6 s at 1 Tb/s with packets of 40 bytes. Whether it is depends on what the 40 bytes count: 0.69 s
if a copy is 40 bytes and nothing else takes time, 1.82 s if they are the protected packet, to which the tunnel adds 28 bytes and
Ethernet 38. :data:`READINGS` has these and what is between; the paper does not say which it means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from holdfast.apps.protect.program import OVERHEAD_BYTES
from holdfast.experiments import Finding, PublishedTable, Setting
from holdfast.experiments.p4_protect_2020 import drawing, published, setup
from holdfast.experiments.rows import exact, row
from holdfast.network import SimulatedNetwork
from holdfast.sweep import Point
from holdfast.traffic import UdpStream

BITS = (4, 6, 8, 10)

PACKETS_PER_S = 1_000_000.0

START_S = 0.001

ROUNDS = 4
"""How often a run goes through the number space after the second path has caught up."""

HEADER_BYTES, FCS_BYTES, PREAMBLE_BYTES, GAP_BYTES = 14, 4, 8, 12
"""Of an Ethernet frame on the wire; all copies here are above its least payload but one, see :data:`LEAST_PAYLOAD_BYTES`."""

LEAST_PAYLOAD_BYTES = 46

TUNNELLED_BYTES = published.CLAIM_PACKET_BYTES + OVERHEAD_BYTES
FRAMED_BYTES = TUNNELLED_BYTES + HEADER_BYTES + FCS_BYTES

READINGS = {
    "copy": ("the copy, with all headers", published.CLAIM_PACKET_BYTES),
    "tunnel": ("the packet; its tunnel adds 28", TUNNELLED_BYTES),
    "untunnelled": (
        "the packet; Ethernet adds padding, header, FCS, preamble and gap, the tunnel nothing",
        LEAST_PAYLOAD_BYTES + HEADER_BYTES + FCS_BYTES + PREAMBLE_BYTES + GAP_BYTES,
    ),
    "frame": ("the packet; its tunnel adds 28, Ethernet header and FCS", FRAMED_BYTES),
    "preamble": ("the packet; its tunnel adds 28, Ethernet header, FCS and preamble", FRAMED_BYTES + PREAMBLE_BYTES),
    "wire": (
        "the packet; its tunnel adds 28, Ethernet header, FCS, preamble and gap",
        FRAMED_BYTES + PREAMBLE_BYTES + GAP_BYTES,
    ),
}
"""Meanings of the claim's 40 bytes, and the bytes of the line that a copy then takes."""


def points(bits: Sequence[int]) -> list[Point]:
    """Return a point per number of bits and delay of the second copy, in packets.

    The delays are around half of the number space and around the whole of it.
    """
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
    """Run a stream whose copies on path 2 come when path 1 is ``packets_behind`` packets ahead.

    Return the packets duplicated, lost and reordered. Nothing is random, so every seed gives the same.
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
    statistics = network.statistics(flow)
    return {name: getattr(statistics, name) for name in ("sent", "delivered", "lost", "duplicated", "reordered")}


def seconds(packets: float, packet_bytes: int = published.CLAIM_PACKET_BYTES) -> float:
    """Return how many seconds ``packets`` packets of ``packet_bytes`` take at the rate of the paper's claim."""
    return packets * packet_bytes * 8 / published.CLAIM_RATE_BPS


def find(setting: Setting) -> Finding:
    """Return the finding of section 5.4.2: the largest delay of a copy that does no harm, by bits of the sequence numbers."""
    frame = setting.one_run().sweep("delay_difference", f"{__name__}:measure", POINTS)
    return Finding(numbers(frame), {"": draw(frame)}, {"runs": frame})


def numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row per number of bits and quantity: the largest harmless delay in packets, measured and expected.

    For the paper's number of bits, the delay is in seconds too.
    """
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
    by_reading = {name: seconds(limit, copy_bytes) for name, (_, copy_bytes) in READINGS.items()}
    least, most = min(by_reading.values()), max(by_reading.values())
    rows += [
        _row(bits, "delay_difference_s", by_reading["copy"]) | {"low": least, "high": most},
        _row(bits, "harmless_packets_expected", limit),
        *(_row(bits, f"{name}_s", value) for name, value in by_reading.items()),
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def bytes_for(claim: PublishedTable = published.CLAIM) -> range:
    """Return the range of packet sizes on the line, in bytes, for which the window lasts as long as ``claim`` says.

    The time is rounded to as many decimals as the paper prints.
    """
    bits = published.CLAIM_SN_BITS
    printed = claim.value("delay_difference_s", sn_bits=bits)
    fitting = [n for n in range(1, 1000) if round(seconds(2 ** (bits - 1) - 1, n), claim.decimals) == printed]
    return range(fitting[0], fitting[-1] + 1)


def _row(bits: object, quantity: str, value: float) -> dict[str, Any]:
    """Return the row of a number by ``sn_bits``. Nothing is random, so the ends of its interval are the number itself."""
    return row({"sn_bits": bits}, quantity, exact(float(value)))


def draw(frame: pl.DataFrame) -> Figure:
    """Draw two panels: packets forwarded twice over the delay of a copy, and the window of 32 bits in seconds.

    Packets and delays in the first panel are shares of the number space.
    """
    space = 2.0 ** pl.col("sn_bits")
    shares = frame.with_columns(behind=pl.col("packets_behind") / space, twice=pl.col("duplicated") / space)
    limit = 2 ** (published.CLAIM_SN_BITS - 1) - 1
    readings = {f"{name}: {size} bytes": seconds(limit, size) for name, (_, size) in READINGS.items()}
    return drawing.claim(shares, readings, published.CLAIM.value("delay_difference_s", sn_bits=published.CLAIM_SN_BITS))
