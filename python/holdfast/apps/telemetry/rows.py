"""Reports as rows: one for each hop of each report. In Parquet files a file holds some ``ROWS`` of them, so memory is bounded.

A file that cannot be written ends nothing: its rows are counted as lost, and the next one is tried.
"""

from __future__ import annotations

import logging
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from holdfast import whole_files
from holdfast.apps.telemetry.collector import Collector
from holdfast.errors import LiveError

log = logging.getLogger(__name__)

ROWS = 100_000
"""After so many they are to be taken: some tens of megabytes. The packet that makes them so many may have more."""

MOST_ROWS = 4 * ROWS
"""Rows that wait for a file, while somebody listens: beyond, they are counted and not kept."""

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


COLUMNS: dict[str, str] = {
    "time_ns": "When the report came, since the epoch; of a capture the time in it.",
    "reporter": "The node that sent the report, by its identifier in it.",
    "hw_id": "The reporter's hardware subsystem.",
    "sequence": "The report's sequence number.",
    "dropped": "True: the packet was dropped.",
    "congested": "True: it met a congested queue.",
    "tracked": "True: it belongs to a watched flow.",
    "intermediate": "True: an intermediate report of a hop.",
    "drop_reason": "Why the packet was dropped, if the report says so.",
    "source": "The packet's source address.",
    "destination": "The packet's destination address.",
    "protocol": "IP protocol.",
    "source_port": "Port of TCP or UDP.",
    "destination_port": "Port of TCP or UDP.",
    "hop": "The hop's place on the path, from 0.",
    "hops": "Hops in the report.",
    "node_id": "The hop's node.",
    "ingress_port": "The port where the packet came in.",
    "egress_port": "The port where it left.",
    "latency": "Time in the node, in the node's own units.",
    "queue_id": "The queue in which it waited.",
    "queue_occupancy": "How full that was, in the node's own units.",
    "ingress_time": "By the node's clock, in its own units.",
    "egress_time": "By the node's clock, in its own units.",
    "ingress_interface": "Level-2 identifier of where it came in.",
    "egress_interface": "Level-2 identifier of where it left.",
    "tx_utilisation": "How much the output port was used, in the node's own units.",
    "buffer_id": "The buffer in which it was.",
    "buffer_occupancy": "How full that was, in the node's own units.",
}
"""What the columns of ``SCHEMA`` are; a value that a hop does not report is null."""

_FLOW = {name: SCHEMA[name] for name in ("source", "destination", "protocol", "source_port", "destination_port")}

NOT_KNOWN = (1 << 64) - 1
"""The value for "not known" in the columns of :meth:`ReportCollector.take_rows`."""


def take(collector: Collector) -> pl.DataFrame:
    """Return the rows that the collector has gathered since the last call, as a table with the columns of ``SCHEMA``."""
    columns, flows = collector.core.take_rows()
    numbers = pl.DataFrame({name: np.frombuffer(data, "<u8") for name, data in columns})
    known = [
        pl.when(pl.col(name) != NOT_KNOWN).then(pl.col(name)).cast(SCHEMA.get(name, pl.UInt64)) for name, _ in columns
    ]
    ends = pl.DataFrame(flows, schema=_FLOW, orient="row").with_row_index("flow").cast({"flow": pl.UInt64})
    joined = numbers.select(known).join(ends, on="flow", how="left", maintain_order="left")
    return joined.select(list(SCHEMA))


class RowWriter:
    """Writes ``reports-00000.parquet`` and so on into a directory. Close it at the end: rows not written yet are in memory."""

    def __init__(self, directory: Path, collector: Collector, rows_per_file: int = ROWS) -> None:
        """Create the directory for files of rows.

        Raise :class:`LiveError` if it cannot be created, or if it has such files already.
        """
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LiveError(f"cannot make the directory {str(directory)!r}: {error.strerror}") from None
        if any(directory.glob("reports-*.parquet")):
            raise LiveError(f"there are reports in {str(directory)!r} already; give another directory")
        self._directory, self._collector, self._rows_per_file = directory, collector, rows_per_file
        self._files = 0
        self.failure: str | None = None
        """The last failure to write a file; None if there was none."""

    def write_full(self) -> None:
        """Write a file if the collector has gathered enough rows to fill one; else do nothing."""
        if self._collector.core.rows >= self._rows_per_file:
            self._write()

    def close(self) -> None:
        """Write the remaining rows; if there were no reports at all, write a file without rows."""
        if self._collector.core.rows or not (self._files or self.failure):
            self._write()

    def _write(self) -> None:
        file = self._directory / f"reports-{self._files:05}.parquet"
        frame, content = take(self._collector), BytesIO()
        frame.write_parquet(content)
        try:
            whole_files.write_bytes(file, content.getvalue())
        except OSError as error:
            self._collector.rows_lost += frame.height
            if self.failure is None:
                log.warning("rows are lost: cannot write %r: %s", str(file), error.strerror or error)
            self.failure = f"cannot write {str(file)!r}: {error.strerror or error}"
        else:
            self._files += 1
