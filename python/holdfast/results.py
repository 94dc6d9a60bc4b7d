"""From the logs of a run to the rows that people read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from holdfast import _core
from holdfast.network import Network
from holdfast.topology import PS_PER_MS

QUEUE_COUNTS = (
    "offered",
    "taken",
    "queue_drops",
    "red_drops",
    "marked",
    "down_drops",
    "packets",
    "bytes",
    "max_packets",
    "max_bytes",
)
"""What is counted at a queue of a traffic manager."""


@dataclass(frozen=True)
class Row:
    """What one mechanism did to one stream.

    ``longest_outage_ms``: the longest time between two packets reaching the receiver, beyond the sender's interval (its mean).
    ``jitter_ms``: mean absolute difference of the latencies of consecutive packets (RFC 3550 without its smoothing).
    ``relative_bytes``: bytes on the links between switches, relative to the first mechanism of the comparison.
    """

    sent: int
    delivered: int
    lost: int
    duplicated: int
    reordered: int
    longest_outage_ms: float
    latency_mean_ms: float | None
    latency_p99_ms: float | None
    jitter_ms: float | None
    relative_bytes: float


def packets(core: _core.Network, flow: int) -> pl.DataFrame:
    """One row per packet sent and one per further copy that arrived, in the order of sending and arriving.

    Columns: ``sequence``, ``sent_ps``, ``received_ps`` (null: lost), ``copy`` (0 the first that arrived), ``reordered`` (RFC 4737:
    a later packet had arrived before).
    """
    sent = pl.DataFrame(_columns(core.sent(flow)), schema={"sequence": pl.Int64, "sent_ps": pl.Int64})
    received = pl.DataFrame(
        _columns(core.received(flow)),
        schema={"sequence": pl.Int64, "sent_ps": pl.Int64, "received_ps": pl.Int64},
    )
    first = received.with_columns(copy=pl.int_range(pl.len()).over("sequence"))
    arrivals = first.with_columns(
        reordered=(pl.col("copy") == 0) & (pl.col("sequence") < pl.col("sequence").cum_max()),
    )
    return (
        sent.join(arrivals.drop("sent_ps"), on="sequence", how="left", maintain_order="left_right")
        .with_columns(pl.col("copy").fill_null(0), pl.col("reordered").fill_null(value=False))
        .select("sequence", "sent_ps", "received_ps", "copy", "reordered")
    )


def links(network: Network) -> pl.DataFrame:
    """One row per direction of each link: ``link``, ``sender``, ``receiver`` and its counters so far."""
    rows = []
    for link, link_id in zip(network.topology.links, network.link_ids, strict=True):
        counters = network.core.link_counters(link_id)
        for prefix, sender, receiver in (("a_to_b_", link.a, link.b), ("b_to_a_", link.b, link.a)):
            own = {name.removeprefix(prefix): n for name, n in counters.items() if name.startswith(prefix)}
            rows.append({"link": link.name, "sender": sender, "receiver": receiver, **own})
    return pl.DataFrame(rows, infer_schema_length=None)


def queues(network: Network) -> pl.DataFrame:
    """One row per queue of each switch with a traffic manager: ``switch``, ``port``, ``queue`` and its statistics.

    Port and queue are null for the queue in front of a recirculation port. A port is there with all its queues, once it had a
    packet.
    """
    schema = {
        "switch": pl.String,
        "port": pl.Int64,
        "queue": pl.Int64,
        **dict.fromkeys(QUEUE_COUNTS, pl.Int64),
        "mean_packets": pl.Float64,
        "mean_bytes": pl.Float64,
    }
    rows = [
        {"switch": switch, **statistics}
        for switch in network.topology.switches
        for statistics in network.core.queue_statistics(switch)
    ]
    return pl.DataFrame(rows, schema=schema)


def goodput(core: _core.Network, flow: int, bins: int) -> pl.Series:
    """New bytes in order at the server of a TCP connection, by bin of the width that the transfer asked for, ``bins`` of them."""
    counts = memoryview(core.tcp_goodput(flow)).cast("q").tolist()[:bins]
    return pl.Series("goodput_bytes", counts + [0] * (bins - len(counts)), dtype=pl.Int64)


def tcp_window(core: _core.Network, flow: int) -> pl.DataFrame:
    """The client's window over time, one row per change; the transfer must have asked for it with ``log_window``.

    Columns: ``time_ps``, ``cwnd_bytes``, ``ssthresh_bytes``, ``flight_bytes``, ``srtt_ps``.
    """
    return pl.DataFrame(_columns(core.tcp_window(flow)))


def tcp_flows(core: _core.Network, flows: Sequence[int]) -> pl.DataFrame:
    """One row per TCP connection: ``flow`` and what the core's ``tcp_statistics`` says of it."""
    rows = [{"flow": flow, **core.tcp_statistics(flow)} for flow in flows]
    text = {"client_state": pl.String, "server_state": pl.String, "failure": pl.String}
    names = rows[0] if rows else ()
    return pl.DataFrame(rows, schema={name: text.get(name, pl.Int64) for name in names})


def _columns(raw: dict[str, bytes]) -> dict[str, pl.Series]:
    return {name: pl.Series(name, memoryview(data).cast("q").tolist(), dtype=pl.Int64) for name, data in raw.items()}


def summarise(core: _core.Network, flow: int, relative_bytes: float) -> Row:
    """The row of one flow, from the network's own statistics (``net``'s statistics.rs has the definitions)."""
    statistics = core.statistics(flow)

    def count(name: str) -> int:
        return int(statistics[name] or 0)

    def milliseconds(name: str) -> float | None:
        """To nanoseconds, which is finer than anything that is claimed."""
        value = statistics[name]
        return None if value is None else round(value / PS_PER_MS, 6)

    return Row(
        sent=count("sent"),
        delivered=count("delivered"),
        lost=count("lost"),
        duplicated=count("duplicated"),
        reordered=count("reordered"),
        longest_outage_ms=milliseconds("longest_outage_ps") or 0.0,
        latency_mean_ms=milliseconds("latency_mean_ps"),
        latency_p99_ms=milliseconds("latency_p99_ps"),
        jitter_ms=milliseconds("mean_delay_variation_ps"),
        relative_bytes=round(relative_bytes, 4),
    )


def write_summary(path: Path, rows: dict[str, Row]) -> None:
    """Writes ``{mechanism: row}`` as JSON, byte for byte the same for the same rows."""
    path.write_text(json.dumps({name: asdict(row) for name, row in rows.items()}, indent=2) + "\n")


def bin_counts(frame: pl.DataFrame, bin_ms: float, until_s: float) -> tuple[Sequence[float], Sequence[float]]:
    """Packets delivered per second over time (first copies, by arrival): bin centres in seconds, and rates."""
    bins = round(until_s * 1000 / bin_ms)
    width_ps = round(bin_ms * PS_PER_MS)
    counts = [0] * bins
    arrived = frame.filter((pl.col("copy") == 0) & pl.col("received_ps").is_not_null())
    for received_ps in arrived["received_ps"]:
        if (index := received_ps // width_ps) < bins:
            counts[index] += 1
    centres = [(i + 0.5) * bin_ms / 1000 for i in range(bins)]
    return centres, [count * 1000 / bin_ms for count in counts]
