"""Rows of numbers with intervals, as parts of experiments give them (:attr:`Finding.numbers`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from holdfast import statistics


def row(key: Mapping[str, Any], quantity: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a number; ``found`` has its mean and interval."""
    return {**key, "quantity": quantity, "ours": found["mean"], "low": found["low"], "high": found["high"]}


def exact(value: float) -> dict[str, float]:
    """Return mean and interval of a number without chance."""
    return dict.fromkeys(("mean", "low", "high"), value)


def summaries(frame: pl.DataFrame, by: Sequence[str], quantities: Sequence[str]) -> pl.DataFrame:
    """Return the mean over seeds of each quantity by these keys."""
    return pl.DataFrame(
        [
            row({name: each[name] for name in by}, quantity, each)
            for quantity in quantities
            for each in statistics.summary(frame, by, quantity).iter_rows(named=True)
        ]
    )
