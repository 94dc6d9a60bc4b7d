"""Code that the parts share, from rows of :mod:`~holdfast.experiments.gmpls_tcp_2001.runs` to the paper's columns and axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from holdfast import statistics
from holdfast.experiments.gmpls_tcp_2001 import published, runs
from holdfast.sweep import Point

MEASURE = "holdfast.experiments.gmpls_tcp_2001.runs:measure"


def change_numbers(frame: pl.DataFrame, by: Sequence[str], value: str, baseline: Mapping[str, Any]) -> pl.DataFrame:
    """Return rows with ``goodput_change_percent`` and ``worse_percent`` for each combination of the columns ``by``.

    Runs are compared with the run of ``baseline`` that has the same seed. ``worse_percent`` is the percentage of seeds with less
    goodput than the baseline.
    """
    changes = statistics.paired(frame, by, value, baseline, ratio=True)
    return pl.concat(
        [
            _percent(changes, by, "goodput_change_percent", "mean", "low", "high"),
            _percent(changes, by, "worse_percent", "worse", "worse_low", "worse_high"),
        ]
    )


def best_numbers(frame: pl.DataFrame, over: str, value: str) -> pl.DataFrame:
    """Return rows with ``best_percent``: in how many % of the seeds each value of the column ``over`` gives the best goodput."""
    return _percent(statistics.best(frame, over, value), [over], "best_percent", "best", "best_low", "best_high")


def _percent(rows: pl.DataFrame, by: Sequence[str], quantity: str, ours: str, low: str, high: str) -> pl.DataFrame:
    return rows.select(
        *by,
        quantity=pl.lit(quantity),
        ours=100.0 * pl.col(ours),
        low=100.0 * pl.col(low),
        high=100.0 * pl.col(high),
    )


def rtt_change_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return rows with ``rtt_change_percent`` by ``d_ms``: the growth of the round trip's propagation by a longer backup.

    It is relative to the mean propagation before the failure, with the access delays that the seeds drew.
    """
    longer = frame.with_columns(change=200.0 * (pl.col("d_ms") - published.LINK_DELAY_MS) / pl.col("base_rtt_ms"))
    return statistics.summary(longer, ["d_ms"], "change").select(
        "d_ms", quantity=pl.lit("rtt_change_percent"), ours="mean", low="low", high="high"
    )


def relative(frame: pl.DataFrame, by: Sequence[str], value: str, baseline: Mapping[str, Any]) -> pl.DataFrame:
    """Return a row per run: its goodput in percent of its baseline's with the same seed. The baseline has no rows itself."""
    keys = [column for column in by if column not in baseline]
    base = frame.filter(*(pl.col(name) == wanted for name, wanted in baseline.items()))
    joined = frame.join(base.select(*keys, "seed", base=value), on=[*keys, "seed"], how="left", maintain_order="left")
    others = joined.filter(~pl.all_horizontal(pl.col(name) == wanted for name, wanted in baseline.items()))
    return others.select(*by, "seed", relative_percent=100.0 * pl.col(value) / pl.col("base"))


def achievable(frame: pl.DataFrame, value: str, window_s: float) -> pl.DataFrame:
    """Add the column ``achieved_percent``: goodput in percent of the packets that the access links carry in ``window_s``."""
    most = pl.col("rate_mbps") * 1e6 * pl.col("access_percent") / 100 * window_s / (8 * runs.PACKET_BYTES)
    return frame.with_columns(achieved_percent=100.0 * pl.col(value) / most)


def curves(frame: pl.DataFrame, by: Sequence[str], column: str) -> pl.DataFrame:
    """Return goodput over time in percent of the backbone's rate: the mean over seeds, by ``by`` and interval.

    ``time_s`` is the end of the interval, in seconds.
    """
    width_s = pl.col("curve_ms") / 1000
    packets_per_s = pl.col("rate_mbps") * 1e6 / (8 * runs.PACKET_BYTES)
    rows = (
        frame.select(*by, "seed", "curve_ms", "rate_mbps", packets=pl.col(column))
        .with_columns(interval=pl.int_ranges(1, pl.col("packets").list.len() + 1))
        .explode("packets", "interval")
        .with_columns(
            time_s=(published.FAILURE_S + pl.col("interval") * width_s).round(3),
            goodput_percent=100.0 * pl.col("packets") / (width_s * packets_per_s),
        )
    )
    return rows.group_by([*by, "time_s"], maintain_order=True).agg(pl.col("goodput_percent").mean())


def with_defaults(points: Sequence[Point], **chosen: Any) -> list[Point]:
    """Return each point with ``chosen``, and then the defaults, for the parameters that the point itself leaves out."""
    return [{**runs.DEFAULTS, **chosen, **point} for point in points]
