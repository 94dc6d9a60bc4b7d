"""Section 7: return to the repaired path, merging or not, or staying on the backup (Table 6, Figs. 15 and 16)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from holdfast import plots, statistics
from holdfast.experiments import Finding, Setting
from holdfast.experiments.gmpls_tcp_2001 import goodput, published
from holdfast.experiments.gmpls_tcp_2001.longer_path import DELTA_MS
from holdfast.sweep import Point


def points(ds_ms: Sequence[int], strategies: Sequence[str]) -> list[Point]:
    """Return a point of section 7 for each pair of a backup's length in ``ds_ms`` and a strategy of switch-back."""
    return [
        {
            "network": "rtt_change",
            "strategy": strategy,
            "d_ms": d_ms,
            "delta_ms": DELTA_MS,
            "access_percent": published.ACCESS_PERCENT,
            "end_s": published.REPAIR_S + published.GOODPUT_WINDOW_S,
            "window_s": published.GOODPUT_WINDOW_S,
            "curve_ms": 0.0,
        }
        for d_ms in ds_ms
        for strategy in strategies
    ]


POINTS = points(published.D_MS, published.SWITCH_BACK)


def measured(setting: Setting) -> pl.DataFrame:
    """Run the simulations of section 7 (return to the repaired path) and return a row per run, with goodput in packets."""
    return setting.sweep("switch_back", goodput.MEASURE, goodput.with_defaults(POINTS))


def change(frame: pl.DataFrame) -> pl.DataFrame:
    """Compare the goodput after the repair of optical with that of electrical switch-back, in the runs of :func:`measured`.

    Return a row for each ``d_ms`` and ``quantity`` (the goodput's change in %, and the % of seeds in which optical is better, named
    as in the published table) with the value (``ours``) and its limits (``low``, ``high``).
    """
    both = frame.filter(pl.col("strategy") != "none")
    # "Better" is the other one being worse: equal ones are neither.
    ahead = statistics.paired(both, ["d_ms", "strategy"], "after_repair", {"strategy": "optical"}, ratio=True)
    ratio = goodput.change_numbers(both, ["d_ms", "strategy"], "after_repair", {"strategy": "electrical"})
    better = ahead.filter(pl.col("strategy") == "electrical").select(
        "d_ms",
        quantity=pl.lit("optical_better_percent"),
        ours=100.0 * pl.col("worse"),
        low=100.0 * pl.col("worse_low"),
        high=100.0 * pl.col("worse_high"),
    )
    changed = ratio.filter(pl.col("strategy") == "optical", pl.col("quantity") == "goodput_change_percent")
    return pl.concat([changed.drop("strategy"), better])


def table6(setting: Setting) -> Finding:
    """Return the finding of Table 6: changes of round trip and goodput in %, optical against electrical switch-back.

    There is a row for each length d of the backup path.
    """
    frame = measured(setting)
    electrical = frame.filter(pl.col("strategy") == "electrical")
    return Finding(pl.concat([goodput.rtt_change_numbers(electrical), change(frame)]))


def fig15(setting: Setting) -> Finding:
    """Return the finding of Fig. 15: the share of seeds in which each strategy of switch-back has the highest goodput.

    Goodput counts after the repair; the shares are by length d of the backup path.
    """
    rows = statistics.best(measured(setting), "strategy", "after_repair", ["d_ms"])
    figure = plots.proportions(
        rows,
        "d_ms",
        "strategy",
        title=f"Fig. 15: the strategy with the most goodput after the repair, {len(setting.seeds)} seeds",
        xlabel="d (ms)",
    )
    return Finding(figures={"": figure}, frames={"": rows})


def fig16(setting: Setting) -> Finding:
    """Return the finding of Fig. 16: each run's goodput with optical switch-back in % of that with electrical, as histograms."""
    both = measured(setting).filter(pl.col("strategy") != "none")
    rows = goodput.relative(both, ["d_ms", "strategy"], "after_repair", {"strategy": "electrical"})
    figure = plots.histograms(
        rows,
        "relative_percent",
        "d_ms",
        bin_width=1,
        title=f"Fig. 16: goodput of optical relative to electrical, {len(setting.seeds)} seeds",
        xlabel="goodput (% of electrical)",
    )
    return Finding(figures={"": figure}, frames={"": rows})
