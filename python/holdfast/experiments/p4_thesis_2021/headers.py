"""Table 4.1 and Figures 4.1 to 4.5: the gain of the short header, over packet lengths.

All come from the same runs (:mod:`.header_runs`). Ethernet pads packets below 60 bytes; so a packet that is short because its
headers are is not shorter on the wire than that, and a figure that ends there says so. The thesis compares packets of the same
length, which is not what a sender sees: that a datagram with the same payload is 30 bytes shorter, or less. The study has both.
"""

from __future__ import annotations

from typing import Any

import polars as pl
from matplotlib.figure import Figure

from holdfast import statistics
from holdfast.experiments import Finding, Part, Setting
from holdfast.experiments.p4_thesis_2021 import drawing, header_runs, published
from holdfast.experiments.rows import exact, row, summaries

ALL = "all lengths"

MINIMUM_TITLE = "bytes on the wire of packets with the same payload; Ethernet's minimum included"


def _runs(setting: Setting) -> pl.DataFrame:
    return setting.sweep("headers", f"{header_runs.__name__}:measure", header_runs.POINTS)


def theory_percent(packet_bytes: float) -> float:
    """Return the gain in payload of the short header over the standard one, in %, at a packet length in bytes (equation 4.2)."""
    long, short = (packet_bytes - published.HEADER_BYTES[stack] for stack in ("standard", "shorternet"))
    return 100 * (short / long - 1)


def gains(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row per packet length: the gain of the short header in effective bandwidth in %, compared with the same seed."""
    found = statistics.paired(
        frame, ["packet_bytes", "stack"], "bandwidth_bytes_per_s", {"stack": "standard"}, ratio=True
    )
    return found.filter(stack="shorternet").with_columns(pl.col("mean", "low", "high") * 100)


def gain_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row per packet length and quantity: the gain in %, measured (``gain_percent``) and by equation 4.2."""
    rows = []
    for each in gains(frame).iter_rows(named=True):
        rows.append(row({"packet_bytes": each["packet_bytes"]}, "gain_percent", each))
        theory = exact(theory_percent(each["packet_bytes"]))
        rows.append(row({"packet_bytes": each["packet_bytes"]}, "theory_percent", theory))
    return pl.DataFrame(rows)


def by_stack(frame: pl.DataFrame, value: str) -> pl.DataFrame:
    """Return a row per stack and packet length in bytes: the mean of the quantity ``value`` over seeds, and its interval."""
    return summaries(frame, ["stack", "packet_bytes"], [value])


def comparison(frame: pl.DataFrame, value: str) -> pl.DataFrame:
    """Return rows over all packet lengths: each stack's mean, and how much less the short header has, in ms and in %.

    Stacks are compared with the same seed.
    """
    means = frame.group_by(["stack", "seed"], maintain_order=True).agg(pl.col(value).mean())
    rows: list[dict[str, Any]] = []
    for quantity, ratio, factor in (("difference_ms", False, -1), ("reduction_percent", True, -100)):
        found = statistics.paired(means, ["stack"], value, {"stack": "standard"}, ratio=ratio)
        [each] = found.filter(stack="shorternet").iter_rows(named=True)
        turned = {"mean": factor * each["mean"], "low": factor * each["high"], "high": factor * each["low"]}
        rows.append(row({"over": ALL}, quantity, turned))
    for each in statistics.summary(means, ["stack"], value).iter_rows(named=True):
        rows.append(row({"over": ALL}, f"{each['stack']}_ms", each))
    for each in statistics.summary(frame, ["stack", "packet_bytes"], value).iter_rows(named=True):
        rows.append(row({"over": f"{each['packet_bytes']} bytes"}, f"{each['stack']}_ms", each))
    return pl.DataFrame(rows)


def minimum_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return rows by payload in bytes: the bytes on the wire with each stack, and how many percent the short header saves."""
    header = pl.col("stack").replace_strict(published.HEADER_BYTES)
    with_payload = frame.with_columns(payload_bytes=pl.col("packet_bytes") - header)
    rows = []
    for each in statistics.summary(with_payload, ["payload_bytes", "stack"], "wire_bytes").iter_rows(named=True):
        rows.append(row({"payload_bytes": each["payload_bytes"]}, f"{each['stack']}_wire_bytes", each))
    saved = statistics.paired(with_payload, ["payload_bytes", "stack"], "wire_bytes", {"stack": "standard"}, ratio=True)
    for each in saved.filter(stack="shorternet").iter_rows(named=True):
        turned = {"mean": -100 * each["mean"], "low": -100 * each["high"], "high": -100 * each["low"]}
        rows.append(row({"payload_bytes": each["payload_bytes"]}, "saved_percent", turned))
    return pl.DataFrame(rows)


def found(name: str, frame: pl.DataFrame) -> Finding:
    """Return the finding of the part ``name`` (table41, fig41 to fig45, minimum) from the runs in ``frame``."""
    figures: dict[str, Figure]
    match name:
        case "table41":
            return Finding(gain_numbers(frame), frames={"runs": frame})
        case "fig41":
            figures = {"": drawing.over_lengths(frame, "bandwidth_bytes_per_s", "effective bandwidth (bytes/s)")}
            return Finding(by_stack(frame, "bandwidth_bytes_per_s"), figures)
        case "fig42":
            return Finding(gain_numbers(frame), {"": drawing.gain(gains(frame), theory_percent)})
        case "fig43":
            figures = {"": drawing.over_lengths(frame, "latency_ms", "mean latency (ms)")}
            return Finding(comparison(frame, "latency_ms"), figures)
        case "fig44":
            figures = {"": drawing.over_lengths(frame, "lost_percent", "lost packets (%)")}
            return Finding(by_stack(frame, "lost_percent"), figures)
        case "fig45":
            figures = {"": drawing.over_lengths(frame, "jitter_ms", "jitter: standard deviation of the latency (ms)")}
            return Finding(comparison(frame, "jitter_ms"), figures)
        case _:
            numbers = minimum_numbers(frame)
            return Finding(numbers, {"": drawing.minimum(numbers)}, {"runs": frame})


def find_minimum(setting: Setting) -> Finding:
    """Return the finding on bytes on the wire by payload: what the short header saves despite Ethernet's minimum length."""
    sweep = setting.sweep("payloads", f"{header_runs.__name__}:measure", header_runs.PAYLOAD_POINTS)
    return found("minimum", sweep)


def _part(name: str, place: str, title: str, table: Any = None) -> Part:
    return Part(name, place, title, lambda setting: found(name, _runs(setting)), len(header_runs.POINTS), table)


PARTS = (
    _part("table41", published.TABLE_4_1.place, published.TABLE_4_1.title, published.TABLE_4_1),
    _part("fig41", "Fig. 4.1, section 4.1.1", "effective bandwidth over packet lengths"),
    _part("fig42", "Fig. 4.2, section 4.1.1", "gain of the short header, measured and computed"),
    _part("fig43", published.LATENCY.place, published.LATENCY.title, published.LATENCY),
    _part("fig44", published.LOSS.place, published.LOSS.title, published.LOSS),
    _part("fig45", published.JITTER.place, published.JITTER.title, published.JITTER),
    Part("minimum", "not in the thesis", MINIMUM_TITLE, find_minimum, len(header_runs.PAYLOAD_POINTS)),
)
