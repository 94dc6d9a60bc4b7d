"""A row of the tables: so many packets of a subscriber through a gateway in simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from holdfast import results
from holdfast.experiments.pppoe_split_plane import published, setup
from holdfast.parameters import PS_PER_MS, PS_PER_S
from holdfast.sweep import Point
from holdfast.traffic import UdpStream

SPARE_S = 60.0
"""The time for packets that still wait at the end."""


def points(packets: Sequence[int], load: str = "one by one") -> list[Point]:
    """Return a point for each number of packets and each kind of gateway (single plane or split)."""
    return [{"packets": count, "plane": plane, "load": load} for count in packets for plane in published.PLANES]


POINTS = points(published.PACKETS)
BURST_POINTS = points([count for count in published.PACKETS if count <= 600], "burst")


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Send the packets of one row; return their latencies in ms, the packets lost, and the packets/s that arrived.

    The rate is taken between the first and the last arrival.
    """
    plane, load, count = point["plane"], point["load"], point["packets"]
    network = setup.network(plane, setup.SERVICE_MS[load][plane], seed)
    burst = load == "burst"
    rate = setup.BURST_PACKETS_PER_S if burst else setup.PACKETS_PER_S
    # A Poisson process has as many packets as it has: of more than are wanted, the first count.
    duration_s = (count - 0.5) / rate if burst else (count + 6 * count**0.5 + 20) / rate
    flow = network.add(
        UdpStream(
            source="home",
            destination="server",
            packets_per_s=rate,
            spacing="constant" if burst else "poisson",
            payload_bytes=setup.PAYLOAD_BYTES,
            start_s=1.0,
            stop_s=1.0 + duration_s,
        )
    )
    network.run(1.0 + duration_s + SPARE_S)
    sent = results.packets(network, flow).head(count)
    arrived = sent.drop_nulls("received_ps")
    latencies_ms = (arrived["received_ps"] - arrived["sent_ps"]) / PS_PER_MS
    first, last = (arrived.select(pick).item() for pick in (pl.col("received_ps").min(), pl.col("received_ps").max()))
    return {
        "sent": len(sent),
        "lost": len(sent) - len(arrived),
        "latency_ms": latencies_ms.mean(),
        "total_ms": latencies_ms.sum(),
        "packets_per_s": (len(arrived) - 1) / ((last - first) / PS_PER_S),
    }
