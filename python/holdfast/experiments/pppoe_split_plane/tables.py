"""The paper's two tables in simulation, the gain over their rows, and what a burst would have looked like."""

from __future__ import annotations

from typing import Any

import polars as pl

from holdfast import statistics
from holdfast.experiments import Finding, Part, Setting
from holdfast.experiments.pppoe_split_plane import drawing, published, tables_runs
from holdfast.experiments.rows import exact, row

QUICK_ROWS = (*published.FITTED, 60, published.LEFT_OUT)
"""The rows of the quick version: some that are fitted, one that is judged, and the one that is left out."""


def _runs(setting: Setting) -> pl.DataFrame:
    points = [each for each in tables_runs.POINTS if not setting.quick or each["packets"] in QUICK_ROWS]
    return setting.sweep("tables", f"{tables_runs.__name__}:measure", points)


def gains(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row per number of packets: how many percent less time the split plane needs, compared with the same seed."""
    found = statistics.paired(frame, ["packets", "plane"], "latency_ms", {"plane": "single"}, ratio=True)
    return found.filter(plane="split").select(
        "packets", mean=-100 * pl.col("mean"), low=-100 * pl.col("high"), high=-100 * pl.col("low")
    )


def table1_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row per number of packets and quantity of Table 1: ms by kind of gateway, and the gain in percent.

    Packets per second are ours alone.
    """
    rows: list[dict[str, Any]] = []
    printed = frame.filter(pl.col("packets") != published.LEFT_OUT)
    for value, quantity in (("latency_ms", "ms"), ("packets_per_s", "packets_per_s")):
        for each in statistics.summary(printed, ["packets", "plane"], value).iter_rows(named=True):
            rows.append(row(_key1(each["packets"]), f"{each['plane']}_{quantity}", each))
    rows += [row(_key1(each["packets"]), "gain_percent", each) for each in gains(printed).iter_rows(named=True)]
    return pl.DataFrame(rows)


def _key1(packets: int) -> dict[str, Any]:
    return {"packets": packets, "fitted": packets in published.FITTED}


def table2_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row per number of packets and kind of gateway of Table 2: the sum of all packets' latencies in ms.

    The paper prints it as the average latency.
    """
    rows = []
    for each in statistics.summary(frame, ["packets", "plane"], "total_ms").iter_rows(named=True):
        key = {"packets": each["packets"], "in_table_1": each["packets"] != published.LEFT_OUT}
        rows.append(row(key, f"{each['plane']}_ms", each))
    return pl.DataFrame(rows)


def gain_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the mean gain over the rows of Table 1 in percent, and the gain in the row that the paper leaves out."""
    pairs = frame.pivot(on="plane", index=["packets", "seed"], values="latency_ms")
    pairs = pairs.with_columns(gain=100 * (1 - pl.col("split") / pl.col("single")))
    printed = pairs.filter(~pl.col("packets").is_in([*published.FITTED, published.LEFT_OUT]))
    mean = printed.group_by("seed", maintain_order=True).agg(pl.col("gain").mean()).with_columns(rows=pl.lit(""))
    [over] = statistics.summary(mean, ["rows"], "gain").iter_rows(named=True)
    names = [name for name, _ in published.GAIN.rows]
    rows = [row({"rows": names[0]}, "gain_percent", over)]
    last = gains(frame).filter(packets=published.LEFT_OUT)
    rows += [row({"rows": names[1]}, "gain_percent", each) for each in last.iter_rows(named=True)]
    rows.append(row({"rows": "the fitted rows"}, "gain_percent", exact(_fitted_gain())))
    return pl.DataFrame(rows)


def _fitted_gain() -> float:
    rows = [each for each in published.SPEEDS if each[0] in published.FITTED]
    return 100 * (1 - sum(each[2] for each in rows) / sum(each[1] for each in rows))


def find_table1(setting: Setting) -> Finding:
    """Return the finding of Table 1: latency in ms and gain in percent by number of packets, simulated."""
    frame = _runs(setting)
    return Finding(table1_numbers(frame), {"": drawing.table1(frame)}, {"runs": frame})


def find_table2(setting: Setting) -> Finding:
    """Return the finding of Table 2: the sum of latencies in ms by number of packets, simulated."""
    frame = _runs(setting)
    return Finding(table2_numbers(frame), {"": drawing.table2(frame)})


def find_gain(setting: Setting) -> Finding:
    """Return the finding on the paper's statement of the mean gain of the split plane, in percent, simulated."""
    return Finding(gain_numbers(_runs(setting)))


def find_burst(setting: Setting) -> Finding:
    """Return the finding of another reading of Table 1, in which all packets of a row are sent at once."""
    # Nothing in it is random.
    points = [each for each in tables_runs.BURST_POINTS if not setting.quick or each["packets"] in QUICK_ROWS]
    return burst(setting.one_run().sweep("burst", f"{tables_runs.__name__}:measure", points))


def burst(frame: pl.DataFrame) -> Finding:
    """Return the finding on a burst from its runs: mean latency in ms and packets lost, by packets and kind of gateway."""
    rows = [
        row({"packets": each["packets"], "plane": each["plane"]}, quantity, exact(each[quantity]))
        for quantity in ("latency_ms", "lost")
        for each in frame.iter_rows(named=True)
    ]
    numbers = pl.DataFrame(rows, schema_overrides=dict.fromkeys(("ours", "low", "high"), pl.Float64))
    return Finding(numbers, {"": drawing.burst(frame)}, {"runs": frame})


PARTS = (
    Part(
        "table1",
        published.TABLE_1.place,
        published.TABLE_1.title,
        find_table1,
        len(tables_runs.POINTS),
        published.TABLE_1,
    ),
    Part(
        "table2",
        published.TABLE_2.place,
        published.TABLE_2.title,
        find_table2,
        len(tables_runs.POINTS),
        published.TABLE_2,
    ),
    Part("gain", published.GAIN.place, published.GAIN.title, find_gain, len(tables_runs.POINTS), published.GAIN),
    Part(
        "burst",
        "not in the paper",
        "the first table, had its packets come at once",
        find_burst,
        len(tables_runs.BURST_POINTS),
    ),
)
