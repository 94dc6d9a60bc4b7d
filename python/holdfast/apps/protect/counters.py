"""Reads what both ends of a connection have counted: from cells of the program's registers and counters to rows for people."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING

import polars as pl

from holdfast.apps.protect.acceptance import PATHS
from holdfast.apps.protect.connection import Connection, ConnectionStatistics, PathStatistics
from holdfast.p4runtime.client import Client
from holdfast.p4runtime.errors import P4RuntimeError

if TYPE_CHECKING:
    from holdfast.apps.protect.controller import ProtectController

log = logging.getLogger(__name__)

_WHOLE_FROM = 10_000
"""Cells from which on it is quicker to read the whole counter."""


def read_statistics(controller: ProtectController, connection: Connection) -> ConnectionStatistics:
    """All counts of one connection."""
    ingress, egress = controller.clients[connection.ingress], controller.clients[connection.egress]
    protected = ingress.counter(controller.protected, connection.index)
    paths = tuple(_path_statistics(controller, connection, egress))
    return ConnectionStatistics(
        connection=str(connection),
        protected_packets=protected[0],
        protected_bytes=protected[1],
        mtu_exceeded=ingress.counter(controller.mtu_exceeded, connection.index)[0],
        last_sent_sn=ingress.register(controller.last_sent, connection.index),
        accepted_packets=sum(path.passed_packets for path in paths),
        accepted_bytes=sum(path.passed_bytes for path in paths),
        discarded_packets=sum(path.discarded_packets for path in paths),
        discarded_bytes=sum(path.discarded_bytes for path in paths),
        lost=egress.register(controller.lost, connection.egress_index),
        resets=egress.counter(controller.resets, connection.egress_index)[0],
        last_accepted_sn=egress.register(controller.last_accepted, connection.egress_index),
        flow_packets=sum(
            ingress.direct_counter(controller.flow_tables[flow.version], flow.match(), priority)[0]
            for flow, priority in connection.flows
        ),
        paths=paths,
    )


def _path_statistics(controller: ProtectController, connection: Connection, egress: Client) -> Iterable[PathStatistics]:
    for number, path in enumerate(connection.paths, start=1):
        cell = PATHS * connection.egress_index + number - 1
        passed, discarded = egress.counter(controller.passed, cell), egress.counter(controller.discarded, cell)
        yield PathStatistics(
            connection=str(connection),
            path=number,
            nodes=str(path),
            passed_packets=passed[0],
            passed_bytes=passed[1],
            discarded_packets=discarded[0],
            discarded_bytes=discarded[1],
            rogue=egress.counter(controller.rogue, cell)[0],
            out_of_order=egress.counter(controller.out_of_order, cell)[0],
        )


def connections_table(rows: Sequence[ConnectionStatistics]) -> pl.DataFrame:
    """One row per connection, without its paths."""
    names = [f.name for f in fields(ConnectionStatistics) if f.name != "paths"]
    schema = {name: pl.String if name == "connection" else pl.Int64 for name in names}
    return pl.DataFrame([{name: getattr(row, name) for name in names} for row in rows], schema=schema)


def paths_table(rows: Sequence[ConnectionStatistics]) -> pl.DataFrame:
    """One row per connection and path."""
    schema = {f.name: pl.String if f.name in ("connection", "nodes") else pl.Int64 for f in fields(PathStatistics)}
    return pl.DataFrame([asdict(path) for row in rows for path in row.paths], schema=schema)


def brought_by_path(
    controller: ProtectController, connections: Sequence[Connection]
) -> dict[Connection, tuple[list[int], list[int]]]:
    """Packets passed and discarded, by path, of connections that may be many; without those whose egress does not answer."""
    cells: dict[str, list[int]] = {}
    for connection in connections:
        first = PATHS * connection.egress_index
        cells.setdefault(connection.egress, []).extend(range(first, first + len(connection.paths)))
    read: dict[tuple[str, str], dict[int, int]] = {}
    for egress, wanted in cells.items():
        try:
            for counter in (controller.passed, controller.discarded):
                read[egress, counter] = _cells(controller.clients[egress], counter, wanted)
        except P4RuntimeError as error:
            log.warning("%s does not tell what it has counted: %s", egress, error)
    result = {}
    for connection in connections:
        if (connection.egress, controller.discarded) not in read:
            continue
        first = PATHS * connection.egress_index
        own = range(first, first + len(connection.paths))
        passed = [read[connection.egress, controller.passed][cell] for cell in own]
        result[connection] = passed, [read[connection.egress, controller.discarded][cell] for cell in own]
    return result


def _cells(client: Client, counter: str, wanted: Sequence[int]) -> dict[int, int]:
    if len(wanted) >= _WHOLE_FROM:
        return {cell: packets for cell, (packets, _) in client.counters(counter).items()}
    return {cell: client.counter(counter, cell)[0] for cell in wanted}
