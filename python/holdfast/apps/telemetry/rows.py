"""Reports as rows in Parquet files: one for each hop of each report. A file holds up to ``ROWS`` of them, so memory is bounded."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Any

import polars as pl

from holdfast.apps.telemetry.reports import Report
from holdfast.errors import LiveError

ROWS = 100_000
"""Of a file, at most: some tens of megabytes before they are written."""

SCHEMA: dict[str, Any] = {
    "time_ns": pl.Int64,
    "reporter": pl.UInt32,
    "hw_id": pl.UInt8,
    "sequence": pl.UInt32,
    "dropped": pl.Boolean,
    "congested": pl.Boolean,
    "tracked": pl.Boolean,
    "intermediate": pl.Boolean,
    "drop_reason": pl.UInt8,
    "source": pl.String,
    "destination": pl.String,
    "protocol": pl.UInt8,
    "source_port": pl.UInt16,
    "destination_port": pl.UInt16,
    "hop": pl.UInt16,
    "hops": pl.UInt16,
    "node_id": pl.UInt32,
    "ingress_port": pl.UInt16,
    "egress_port": pl.UInt16,
    "latency": pl.UInt32,
    "queue_id": pl.UInt8,
    "queue_occupancy": pl.UInt32,
    "ingress_time": pl.UInt64,
    "egress_time": pl.UInt64,
    "ingress_interface": pl.UInt32,
    "egress_interface": pl.UInt32,
    "tx_utilisation": pl.UInt32,
    "buffer_id": pl.UInt8,
    "buffer_occupancy": pl.UInt32,
}
"""``hop``: its place on the path, from 0. Times and latencies of hops are in the nodes' own units."""


class RowWriter:
    """Writes ``reports-00000.parquet`` and so on into a directory. Close it at the end: what is not written yet is in memory."""

    def __init__(self, directory: Path, rows_per_file: int = ROWS) -> None:
        """Makes the directory. Raises :class:`LiveError` if it cannot, or if there are such files already."""
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LiveError(f"cannot make the directory {str(directory)!r}: {error.strerror}") from None
        if any(directory.glob("reports-*.parquet")):
            raise LiveError(f"there are reports in {str(directory)!r} already; give another directory")
        self._directory, self._rows_per_file = directory, rows_per_file
        self._rows: list[tuple[object, ...]] = []
        self._files = 0

    def take(self, time_ns: int, report: Report) -> None:
        """Adds the rows of a report. Raises :class:`LiveError` if a file is full and cannot be written."""
        flow = report.flow
        ends: tuple[object, ...] = (None,) * 5
        if flow is not None:
            ends = (str(ip_address(flow.source)), str(ip_address(flow.destination)), *flow[3:])
        path = report.path()
        head = (
            time_ns, report.node_id, report.hw_id, report.sequence, report.dropped, report.congested, report.tracked,
            report.intermediate, report.drop_reason, *ends,
        )  # fmt: skip
        for number, hop in enumerate(path):
            self._rows.append((*head, number, len(path), *hop))
        if len(self._rows) >= self._rows_per_file:
            self._write()

    def close(self) -> None:
        """Writes what is left; of no reports at all, a file without rows."""
        if self._rows or not self._files:
            self._write()

    def _write(self) -> None:
        file = self._directory / f"reports-{self._files:05}.parquet"
        try:
            pl.DataFrame(self._rows, schema=SCHEMA, orient="row").write_parquet(file)
        except OSError as error:
            raise LiveError(f"cannot write {str(file)!r}: {error}") from None
        self._files += 1
        self._rows = []
