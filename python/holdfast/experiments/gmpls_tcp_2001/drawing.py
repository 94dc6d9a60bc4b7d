"""Pictures of goodput over time, with the same axes in all figures. It runs nothing."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from holdfast import plots


def goodput_over_time(
    rows: pl.DataFrame, over: str, panel: str | None = None, *, title: str, columns: int = 0
) -> Figure:
    """Draw goodput in % of the backbone's rate over time in s: a panel per value of ``panel``, a curve per value of ``over``."""
    return plots.curves(
        rows,
        "time_s",
        "goodput_percent",
        over,
        panel,
        title=title,
        xlabel="time (s)",
        ylabel="goodput (% of the backbone's rate)",
        columns=columns,
    )
