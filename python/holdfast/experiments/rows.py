"""Rows of numbers with intervals, as parts of experiments give them (:attr:`Finding.numbers`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from holdfast import statistics


def row(key: Mapping[str, Any], quantity: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of ``Finding.numbers``: the keys, the quantity, and ``ours``, ``low`` and ``high`` from ``found``.

    ``found`` has the mean and the ends of its interval as ``mean``, ``low`` and ``high``.
    """
    return {**key, "quantity": quantity, "ours": found["mean"], "low": found["low"], "high": found["high"]}


def exact(value: float) -> dict[str, float]:
    """Return ``mean``, ``low`` and ``high``, all equal to ``value``: the interval of a number that does not depend on chance."""
    return dict.fromkeys(("mean", "low", "high"), value)


def summaries(frame: pl.DataFrame, by: Sequence[str], quantities: Sequence[str]) -> pl.DataFrame:
    """Return one row per combination of ``by`` and quantity: the mean over the seeds, and its 95 % interval."""
    return pl.DataFrame(
        [
            row({name: each[name] for name in by}, quantity, each)
            for quantity in quantities
            for each in statistics.summary(frame, by, quantity).iter_rows(named=True)
        ]
    )
