"""Section 5.2: the load of links before the failure, and of LSR5-LSR6 when switched and fixed flows meet there at once.

The paper's 180 % are twice the access links' 90 %: the flows send that much until they notice. So a load is what a link is given,
whether it takes it or drops it, and it is counted before the first round trip over the new path is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from holdfast import results
from holdfast.experiments import Setting
from holdfast.experiments.gmpls_tcp_2001 import goodput, published, runs, timing
from holdfast.network import SimulatedNetwork

SHARED_LINK = "LSR5-LSR6"
BEFORE_S = 1.0
"""The time before the failure."""

FROM_S, UNTIL_S = 0.02, 0.07
"""After the failure: the first packets over the backup reach LSR5 after a link's 10 ms; no source hears of it within 70 ms."""

POINTS = [
    point
    for percent in (published.TIMING_ACCESS_PERCENT, published.TIMING_LOW_ACCESS_PERCENT)
    for point in timing.points("timing", (0,), percent)
]


def measure(point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Run one point; return the loads of backbone links in percent of their rate, before the failure and after the switch.

    ``before_percent``: of the most loaded link. ``met_percent``: of LSR5-LSR6, where switched and fixed flows meet.
    """
    network = runs.prepare(point, seed).network
    network.run(published.FAILURE_S - BEFORE_S)
    early = _given(network)
    network.run(published.FAILURE_S)
    before = _given(network)
    network.run(published.FAILURE_S + FROM_S)
    start = _given(network)
    network.run(published.FAILURE_S + UNTIL_S)
    end = _given(network)
    full = point["rate_mbps"] * 1e6 / (8 * runs.PACKET_BYTES)
    return {
        "before_percent": 100.0 * max(before[name] - early[name] for name in before) / (full * BEFORE_S),
        "met_percent": 100.0 * (end[SHARED_LINK] - start[SHARED_LINK]) / (full * (UNTIL_S - FROM_S)),
    }


def _given(network: SimulatedNetwork) -> dict[str, int]:
    """Return by backbone link the packets that were offered to it towards the receivers until now, dropped ones included.

    Acknowledgments, which are smaller, are not counted: they go the other way.
    """
    links = results.links(network).with_columns(name=pl.concat_str("sender", "receiver", separator="-"))
    backbone = [f"{a}-{b}" for a, b in TOWARDS_RECEIVERS]
    return dict(links.filter(pl.col("name").is_in(backbone)).select("name", "offered").rows())


TOWARDS_RECEIVERS = (
    ("LSR4", "LSR1"),
    ("LSR1", "LSR2"),
    ("LSR2", "LSR3"),
    ("LSR1", "LSR5"),
    ("LSR8", "LSR5"),
    ("LSR5", "LSR6"),
    ("LSR6", "LSR7"),
    ("LSR6", "LSR2"),
)


def measured(setting: Setting) -> pl.DataFrame:
    """Run the simulations of loads, with both rates of the access links, and return a row per run."""
    return setting.sweep("loads", f"{__name__}:measure", goodput.with_defaults(POINTS))
