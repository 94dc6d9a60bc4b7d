"""A traffic matrix as CSV: a line for each demand, or a square of the rates from the nodes of the lines to those of the columns.

.. code-block:: text

    source,destination,rate,payload_bytes        from,h1,h2,h3
    h1,h4,10Mbps,1000                            h1,,2Mbps,1e6
    h2,h5,500kbit,                               h2,1Mbps,,0

A demand is a UDP stream of constant packets with that rate of IPv4 packets; a number without a unit is in bits per second. A node
is a host, or a switch with one host, which is meant then. Empty cells and zeros are no demands.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from holdfast import units
from holdfast.compare.traffic_file import TrafficFile, UdpEntry
from holdfast.errors import ParameterError, ScenarioError, first_mistake
from holdfast.regular_files import MOST_TEXT_BYTES, read_regular
from holdfast.suggestions import unknown
from holdfast.terminal import excerpt
from holdfast.topology import Topology

PAYLOAD_BYTES: Final = 1000
"""Of the packets of a demand that does not say."""

HEADERS_BYTES: Final = 28
"""Of IPv4 and UDP."""

LIST: Final = ("source", "destination", "rate", "payload_bytes")

MOST_DEMANDS: Final = 20_000


def read(path: Path, topology: Topology) -> TrafficFile:
    """Return the traffic of a file. Raises :class:`ScenarioError` with the file and the line for a mistake in it."""
    try:
        text = read_regular(path, MOST_TEXT_BYTES, ScenarioError).decode()
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}: this is not text in UTF-8") from None
    reader = csv.reader(text.lstrip("\ufeff").splitlines())
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(row)]
    except csv.Error as error:
        raise ScenarioError(f"{path}:{reader.line_num}: not CSV: {error}") from None
    if len(rows) < 2:
        raise ScenarioError(f"{path}: there are no demands: a line of headings and a line for each are expected")
    demands = _List(path, topology) if rows[0][1][0] == LIST[0] else _Square(path, topology)
    demands.headings(rows[0][1])
    for line, row in rows[1:]:
        if len(row) != len(rows[0][1]):
            raise ScenarioError(f"{path}:{line}: {len(row)} cells; the first line has {len(rows[0][1])}")
        demands.add(line, row)
    if not demands.found:
        raise ScenarioError(f"{path}: there are no demands: all rates are zero")
    return TrafficFile(udp=demands.found)


class _Demands(ABC):
    """The demands of a file as they are read."""

    def __init__(self, path: Path, topology: Topology) -> None:
        self.path, self.topology = path, topology
        self.found: list[UdpEntry] = []

    @abstractmethod
    def headings(self, row: list[str]) -> None:
        """Check the first line, and keep what it says."""

    @abstractmethod
    def add(self, line: int, row: list[str]) -> None:
        """Add the demands of another line."""

    def error(self, line: int, message: str) -> ScenarioError:
        """Return an error about a line, for the caller to raise."""
        return ScenarioError(f"{self.path}:{line}: {excerpt(message)}")

    def host(self, line: int, name: str) -> str:
        """Return the host that a name means: its own, or the only one of a switch."""
        topology = self.topology
        if name in topology.hosts:
            return name
        if name not in topology.switches:
            raise self.error(line, unknown("node", name, [*topology.hosts, *topology.switches]))
        at = [host for host in topology.hosts if topology.attachment(host).switch == name]
        if len(at) != 1:
            raise self.error(line, f"switch {name!r} has {len(at)} hosts; name a host")
        return at[0]

    def demand(self, line: int, source: str, destination: str, rate: str, payload: str = "") -> None:
        """Add a stream with a rate in bits per second, unless that is nothing."""
        if not (bps := self._bps(line, rate)):
            return
        if len(self.found) == MOST_DEMANDS:
            raise self.error(line, f"there are more than {MOST_DEMANDS:,} demands")
        try:
            payload_bytes = int(payload or PAYLOAD_BYTES)
        except ValueError:
            raise self.error(line, f"payload_bytes: {payload!r} is no whole number") from None
        ends = self.host(line, source), self.host(line, destination)
        per_s = bps / (8 * max(1, payload_bytes + HEADERS_BYTES))
        try:
            entry = UdpEntry(source=ends[0], destination=ends[1], payload_bytes=payload_bytes, packets_per_s=per_s)
        except ValidationError as error:
            raise self.error(line, first_mistake(error)) from None
        self.found.append(entry)

    def _bps(self, line: int, rate: str) -> float:
        try:
            value = float(rate or 0)
        except ValueError:
            try:
                value = float(units.RATE.read(rate))
            except ParameterError as error:
                raise self.error(line, error.sentence) from None
        if not 0 <= value < 1e15:
            raise self.error(line, f"{rate} is no rate")
        return value


class _List(_Demands):
    """A line for each demand."""

    def headings(self, row: list[str]) -> None:
        """Take the columns; the first three of :data:`LIST` are needed."""
        for name in row:
            if name not in LIST or row.count(name) > 1:
                raise self.error(
                    1, unknown("column", name, LIST) if name not in LIST else f"column {name!r} is there twice"
                )
        if missing := [name for name in LIST[:3] if name not in row]:
            raise self.error(1, f"there is no column {missing[0]!r}; the columns are {', '.join(LIST)}")
        self.columns = row

    def add(self, line: int, row: list[str]) -> None:
        """Add the demand of a line."""
        cells = dict(zip(self.columns, row, strict=True))
        self.demand(line, cells["source"], cells["destination"], cells["rate"], cells.get("payload_bytes", ""))


class _Square(_Demands):
    """The rates from the node of a line to those of the columns."""

    def headings(self, row: list[str]) -> None:
        """Take the nodes behind the first cell."""
        self.nodes = [self.host(1, name) for name in row[1:]]

    def add(self, line: int, row: list[str]) -> None:
        """Add the demands of a line; a node has none to itself."""
        source = self.host(line, row[0])
        for destination, rate in zip(self.nodes, row[1:], strict=True):
            if destination != source:
                self.demand(line, source, destination, rate)
