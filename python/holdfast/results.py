"""From the logs of a run to tables of them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from holdfast import _core
from holdfast.network import Network

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


def packets(core: _core.Network, flow: int, *, host: str | None = None) -> pl.DataFrame:
    """One row per packet sent and one per further copy that arrived, in the order of sending and arriving.

    Columns: ``sequence``, ``sent_ps``, ``received_ps`` (null: lost), ``copy`` (0 the first that arrived), ``reordered`` (RFC 4737:
    a later packet had arrived before). ``host``: what arrived there and not at the flow's destination, as of a multicast group.
    """
    sent = pl.DataFrame(_columns(core.sent(flow)), schema={"sequence": pl.Int64, "sent_ps": pl.Int64})
    received = pl.DataFrame(
        _columns(core.received(flow, host=host)),
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
    """One row per direction of each link: ``link`` (as ``set_link`` knows it), ``sender``, ``receiver`` and its counters so far."""
    rows = []
    topology = network.topology
    for name, link, link_id in zip(topology.link_names(), topology.links, network.link_ids, strict=True):
        counters = network.core.link_counters(link_id)
        for prefix, sender, receiver in (("a_to_b_", link.a, link.b), ("b_to_a_", link.b, link.a)):
            own = {name.removeprefix(prefix): n for name, n in counters.items() if name.startswith(prefix)}
            rows.append({"link": name, "sender": sender, "receiver": receiver, **own})
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
