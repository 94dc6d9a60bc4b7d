"""Section 7.1: losses where working path and backup meet again, packet by packet at the links behind the merge point.

The paper says that merging matters where that buffer overflows, and that it does for d = 50 and 100 ms. Here the drops are counted:
at the merge point's own interface, LSR2-LSR3, which the paper names, and at that and the last link, LSR3-B, together. The last link
has the access links' rate, so what is too much for it waits there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from holdfast import results, statistics
from holdfast.experiments import Finding, Setting
from holdfast.experiments.gmpls_tcp_2001 import goodput, published, runs, switch_back

AFTER_S = 0.5
"""The time after the switch-back in which drops count, and before it; both paths together last 0.1 s at most."""

MERGE_POINT, BEHIND = "merge_point", "behind"
LINKS: Mapping[str, tuple[str, ...]] = {MERGE_POINT: ("LSR2-LSR3",), BEHIND: ("LSR2-LSR3", "LSR3-B")}

OVERFLOWING_PERCENT = 50.0
"""A buffer overflows for some d if in more than half of the seeds it drops more after the switch-back than before."""

DROPS = "queue_drops"
POINTS = switch_back.points(published.D_MS, ("electrical",))


def drops(point: Mapping[str, Any], seed: int) -> dict[str, int]:
    """Run one point; return the packets that links behind the merge point dropped towards B, around the switch-back.

    They are counted by link in the :data:`AFTER_S` seconds after the switch-back and in as long a time before it.
    """
    network = runs.prepare(point, seed).network
    counts = []
    for end_s in (published.REPAIR_S - AFTER_S, published.REPAIR_S, published.REPAIR_S + AFTER_S):
        network.run(end_s)
        links = results.links(network).with_columns(name=pl.concat_str("sender", "receiver", separator="-"))
        counts.append({where: int(links.filter(pl.col("name").is_in(n))[DROPS].sum()) for where, n in LINKS.items()})
    before, after, later = counts
    found = {}
    for where in LINKS:
        found[f"{where}_drops"] = later[where] - after[where]
        found[f"{where}_drops_before"] = after[where] - before[where]
    return found


def measured(setting: Setting) -> pl.DataFrame:
    """Run the simulations of section 7.1 and return a row per run, with the packets dropped at each link."""
    return setting.sweep("merge", f"{__name__}:drops", goodput.with_defaults(POINTS))


@dataclass(frozen=True)
class Overflow:
    """The percentage of the seeds in which more is dropped after the switch-back than before, with Wilson's interval."""

    d_ms: int
    where: str
    percent: float
    low: float
    high: float

    @property
    def verdict(self) -> bool | None:
        """True if the buffer overflows, False if not; None if the interval leaves it open."""
        if self.low > OVERFLOWING_PERCENT:
            return True
        return False if self.high < OVERFLOWING_PERCENT else None


def overflows(frame: pl.DataFrame, where: str) -> list[Overflow]:
    """Return per backup length d the percentage of seeds with more drops at ``where`` after the switch-back than before it."""
    found = []
    for (d_ms,), rows in frame.group_by(["d_ms"], maintain_order=True):
        more = int((rows[f"{where}_drops"] > rows[f"{where}_drops_before"]).sum())
        low, high = statistics.wilson_interval(more, len(rows))
        found.append(Overflow(d_ms, where, 100.0 * more / len(rows), 100.0 * low, 100.0 * high))
    return found


def numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row per d and quantity, for each link: seeds with an overflow in %, and mean drops after and before."""
    parts = []
    for where in LINKS:
        rows = [
            {"d_ms": o.d_ms, "quantity": f"{where}_overflow_percent", "ours": o.percent, "low": o.low, "high": o.high}
            for o in overflows(frame, where)
        ]
        parts.append(pl.DataFrame(rows))
        parts += [
            statistics.summary(frame, ["d_ms"], value).select(
                "d_ms", quantity=pl.lit(value), ours="mean", low="low", high="high"
            )
            for value in (f"{where}_drops", f"{where}_drops_before")
        ]
    return pl.concat(parts)


def find(setting: Setting) -> Finding:
    """Return the finding of section 7.1: seeds with an overflow in %, and drops behind the merge point, by backup length d."""
    return Finding(numbers(measured(setting)))
