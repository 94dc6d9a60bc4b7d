"""Section 7.1: what is lost where working path and backup meet again, packet by packet at the links behind the merge point.

The paper says that merging matters where that buffer overflows, and expects it for d = 50 and 100 ms. Here the drops are counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from holdfast import results, statistics
from holdfast.experiments import Finding, Setting
from holdfast.experiments.gmpls_tcp_2001 import goodput, published, runs, switch_back

AFTER_S = 0.5
"""For how long after the switch-back drops count; both paths together last 0.1 s at most."""

DROPS = "queue_drops"
POINTS = switch_back.points(published.D_MS, ("electrical",))


def drops(point: Mapping[str, Any], seed: int) -> dict[str, int]:
    """Packets that LSR2 and LSR3 dropped towards B in the :data:`AFTER_S` after the switch-back, and in as long before it."""
    network = runs.prepare(point, seed).network
    counts = []
    for end_s in (published.REPAIR_S - AFTER_S, published.REPAIR_S, published.REPAIR_S + AFTER_S):
        network.run(end_s)
        behind = pl.concat_str("sender", "receiver", separator="-").is_in(["LSR2-LSR3", "LSR3-B"])
        counts.append(int(results.links(network).filter(behind)[DROPS].sum()))
    return {"merge_drops": counts[2] - counts[1], "drops_before": counts[1] - counts[0]}


def measured(setting: Setting) -> pl.DataFrame:
    """The runs."""
    return setting.sweep("merge", f"{__name__}:drops", goodput.with_defaults(POINTS))


def overflowing(frame: pl.DataFrame) -> list[int]:
    """For which d more than a packet was lost, in the mean of the seeds."""
    lost = statistics.summary(frame, ["d_ms"], "merge_drops")
    return [row["d_ms"] for row in lost.iter_rows(named=True) if row["mean"] > 1.0]


def find(setting: Setting) -> Finding:
    """Drops by d."""
    frame = measured(setting)
    return Finding(
        pl.concat(
            [
                statistics.summary(frame, ["d_ms"], value).select(
                    "d_ms", quantity=pl.lit(value), ours="mean", low="low", high="high"
                )
                for value in ("merge_drops", "drops_before")
            ]
        )
    )
