"""Turns the logs of a run into tables, and opens folders of results (:func:`read`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from operator import attrgetter
from typing import Any

import polars as pl

from holdfast.measurements import QueueStatistics, RecirculationStatistics, TcpStatistics
from holdfast.network import Network
from holdfast.result_folder import ResultFolder as ResultFolder
from holdfast.result_folder import read as read


def packets(network: Network, flow: int, *, host: str | None = None) -> pl.DataFrame:
    """Return a table with a row per packet sent and a row per further copy that arrived, in the order of sending and arriving.

    Columns: ``sequence``, ``sent_ps``, ``received_ps`` (null: lost), ``copy`` (0 for the first that arrived), ``reordered`` (RFC
    4737: a later packet had arrived before). ``host``: count arrivals at this member of a multicast group, not at the flow's
    destination.
    """
    sent = pl.DataFrame(asdict(network.sent(flow)), schema={"sequence": pl.Int64, "sent_ps": pl.Int64})
    received = pl.DataFrame(
        asdict(network.received(flow, host=host)),
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
    """Return the counters of links so far, a row per direction of each link.

    Columns: ``link`` (as ``set_link`` knows it), ``sender``, ``receiver``, and the counters.
    """
    rows = []
    topology = network.topology
    for name, link in zip(topology.link_names(), topology.links, strict=True):
        counters = network.link_counters(name)
        for sender, receiver, own in ((link.a, link.b, counters.a_to_b), (link.b, link.a, counters.b_to_a)):
            rows.append({"link": name, "sender": sender, "receiver": receiver, **asdict(own)})
    return pl.DataFrame(rows, infer_schema_length=None)


def queues(network: Network) -> pl.DataFrame:
    """Return a row per queue of each switch with a traffic manager: ``switch``, ``port``, ``queue`` and its statistics.

    A port's queues appear once the port has had a packet.
    """
    return _by_switch(network, QueueStatistics, network.queue_statistics)


def recirculation(network: Network) -> pl.DataFrame:
    """Return a row per recirculation port of each switch: ``switch``, ``port`` and its statistics."""
    return _by_switch(network, RecirculationStatistics, network.recirculation_statistics)


def _by_switch(network: Network, kind: type, read: Callable[[str], Sequence[Any]]) -> pl.DataFrame:
    columns = {it.name: pl.Float64 if it.type == "float" else pl.Int64 for it in fields(kind)}
    rows = [{"switch": switch, **asdict(found)} for switch in network.topology.switches for found in read(switch)]
    return pl.DataFrame(rows, schema={"switch": pl.String, **columns})


def goodput(network: Network, flow: int, bins: int) -> pl.Series:
    """Return the new bytes received in order by a TCP connection's server, in each of ``bins`` bins of the transfer's width."""
    counts = network.tcp_goodput(flow).tolist()[:bins]
    return pl.Series("goodput_bytes", counts + [0] * (bins - len(counts)), dtype=pl.Int64)


def tcp_window(network: Network, flow: int) -> pl.DataFrame:
    """Return the TCP client's window over time, with a row per change; the transfer must have been added with ``log_window``.

    Columns: ``time_ps``, ``cwnd_bytes``, ``ssthresh_bytes``, ``flight_bytes``, ``srtt_ps``.
    """
    return pl.DataFrame(asdict(network.tcp_window(flow)))


def tcp_flows(network: Network, flows: Sequence[int]) -> pl.DataFrame:
    """Return a row per TCP connection: ``flow`` and its :class:`holdfast.measurements.TcpStatistics`."""
    names = [field.name for field in fields(TcpStatistics)]
    values = attrgetter(*names)
    rows = [(flow, *values(network.tcp_statistics(flow))) for flow in flows]
    text = {"client_state": pl.String, "server_state": pl.String, "failure": pl.String}
    return pl.DataFrame(rows, schema={name: text.get(name, pl.Int64) for name in ("flow", *names)}, orient="row")
