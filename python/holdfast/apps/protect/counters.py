"""Reads what both ends of a connection have counted: from cells of the program's registers and counters to rows for people."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from holdfast.apps.protect import program
from holdfast.apps.protect.acceptance import PATHS
from holdfast.apps.protect.connection import Connection, ConnectionStatistics, PathStatistics
from holdfast.p4runtime.client import Client
from holdfast.p4runtime.errors import P4RuntimeError

if TYPE_CHECKING:
    import polars as pl

log = logging.getLogger(__name__)

_WHOLE_FROM = 10_000
"""Cells from which on it is quicker to read the whole counter."""


def read_statistics(clients: Mapping[str, Client], connection: Connection) -> ConnectionStatistics:
    """Read all counters of one connection from its ingress and its egress, and return them."""
    ingress, egress = clients[connection.ingress], clients[connection.egress]
    protected = ingress.counter(program.PROTECTED, connection.index)
    paths = tuple(_path_statistics(connection, egress))
    return ConnectionStatistics(
        connection=str(connection),
        protected_packets=protected[0],
        protected_bytes=protected[1],
        mtu_exceeded=ingress.counter(program.MTU_EXCEEDED, connection.index)[0],
        last_sent_sn=ingress.register(program.LAST_SENT, connection.index),
        accepted_packets=sum(path.passed_packets for path in paths),
        accepted_bytes=sum(path.passed_bytes for path in paths),
        discarded_packets=sum(path.discarded_packets for path in paths),
        discarded_bytes=sum(path.discarded_bytes for path in paths),
        lost=egress.register(program.LOST, connection.egress_index),
        resets=egress.counter(program.RESETS, connection.egress_index)[0],
        last_accepted_sn=egress.register(program.LAST_ACCEPTED, connection.egress_index),
        flow_packets=sum(
            ingress.direct_counter(program.FLOW_TABLES[flow.version], flow.match(), priority)[0]
            for flow, priority in connection.flows
        ),
        paths=paths,
    )


def _path_statistics(connection: Connection, egress: Client) -> Iterable[PathStatistics]:
    for number, path in enumerate(connection.paths, start=1):
        cell = PATHS * connection.egress_index + number - 1
        passed, discarded = egress.counter(program.PASSED, cell), egress.counter(program.DISCARDED, cell)
        yield PathStatistics(
            connection=str(connection),
            path=number,
            nodes=str(path),
            passed_packets=passed[0],
            passed_bytes=passed[1],
            discarded_packets=discarded[0],
            discarded_bytes=discarded[1],
            rogue=egress.counter(program.ROGUE, cell)[0],
            out_of_order=egress.counter(program.OUT_OF_ORDER, cell)[0],
        )


def connections_table(rows: Sequence[ConnectionStatistics]) -> pl.DataFrame:
    """Return a row of counts per connection, for the connection as a whole."""
    import polars as pl

    names = [f.name for f in fields(ConnectionStatistics) if f.name != "paths"]
    schema = {name: pl.String if name == "connection" else pl.Int64 for name in names}
    return pl.DataFrame([{name: getattr(row, name) for name in names} for row in rows], schema=schema)


def paths_table(rows: Sequence[ConnectionStatistics]) -> pl.DataFrame:
    """Return a row per connection and path with the path's counts."""
    import polars as pl

    schema = {f.name: pl.String if f.name in ("connection", "nodes") else pl.Int64 for f in fields(PathStatistics)}
    return pl.DataFrame([asdict(path) for row in rows for path in row.paths], schema=schema)


def brought_by_path(
    clients: Mapping[str, Client], connections: Sequence[Connection]
) -> dict[Connection, tuple[list[int], list[int]]]:
    """Return by connection two lists with a number per path: packets that the egress passed on, and copies that it discarded.

    Connections whose egress does not answer are left out.
    """
    cells: dict[str, list[int]] = {}
    for connection in connections:
        first = PATHS * connection.egress_index
        cells.setdefault(connection.egress, []).extend(range(first, first + len(connection.paths)))
    read: dict[tuple[str, str], dict[int, int]] = {}
    for egress, wanted in cells.items():
        try:
            for counter in (program.PASSED, program.DISCARDED):
                read[egress, counter] = _cells(clients[egress], counter, wanted)
        except P4RuntimeError as error:
            log.warning("%s does not tell what it has counted: %s", egress, error)
    result = {}
    for connection in connections:
        if (connection.egress, program.DISCARDED) not in read:
            continue
        first = PATHS * connection.egress_index
        own = range(first, first + len(connection.paths))
        passed = [read[connection.egress, program.PASSED][cell] for cell in own]
        result[connection] = passed, [read[connection.egress, program.DISCARDED][cell] for cell in own]
    return result


def _cells(client: Client, counter: str, wanted: Sequence[int]) -> dict[int, int]:
    if len(wanted) >= _WHOLE_FROM:
        return {cell: packets for cell, (packets, _) in client.counters(counter).items()}
    return {cell: client.counter(counter, cell)[0] for cell in wanted}
