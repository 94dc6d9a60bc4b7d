#!/usr/bin/env python3
"""Table updates per second through P4Runtime: a controller in Python and the switch, in one process on one core.

``in process`` calls the device, ``gRPC`` goes over loopback. ``serialized`` sends requests that were built and serialized
before the clock starts, so it shows the switch (and gRPC) alone; the others build every request: ``messages`` fills in
protobuf messages by id, as fast controllers do; ``metadata`` also gives each entry metadata; ``names`` uses
:meth:`Client.insert` and related methods. Rates are medians, by the wall clock, or with ``--cpu`` by the processor time of
this process, for a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from rich.console import Console
from rich.table import Table

from holdfast import _core
from holdfast.p4runtime import Client, Device, GrpcClient, LocalClient, Server
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4

Call: TypeAlias = Callable[[], None]
Writer: TypeAlias = Callable[["Client", "Case", int, int, int], Call]
"""Prepares the writes of a kind of update, of all entries in batches, and returns the call that sends them."""

HERE = Path(__file__).parent
INSERT, MODIFY, DELETE = p4.Update.INSERT, p4.Update.MODIFY, p4.Update.DELETE


@dataclass(frozen=True)
class Rates:
    """Entries per second."""

    table: str
    way: str
    client: str
    entries: int
    batch: int
    inserts_per_s: float
    modifies_per_s: float
    deletes_per_s: float
    reads_per_s: float


@dataclass(frozen=True)
class Case:
    """A table, and its entries by number."""

    name: str
    program: str
    table: str
    action: str
    params: tuple[bytes, ...]
    names: dict[str, Any]
    match: Callable[[Any, int], None]
    named_match: Callable[[int], dict[str, Any]]


def lpm(message: Any, number: int) -> None:
    """Write the /24 prefix with index ``number`` above 10.0.0.0 into a match message."""
    message.lpm.value = (0x0A000000 + (number << 8)).to_bytes(4, "big")
    message.lpm.prefix_len = 24


def exact(message: Any, number: int) -> None:
    """Write the MAC address with index ``number`` above 02:00:00:00:00:00 into a match message."""
    message.exact.value = (0x0200_0000_0000 + number).to_bytes(6, "big")


CASES = (
    Case(
        "router, IPv4 lpm",
        "router.p4",
        "routes",
        "forward",
        (b"\x07", b"\x02\0\0\0\0\1", b"\x02\0\0\0\0\2"),
        {"port": 7, "src_addr": 0x0200_0000_0001, "dst_addr": 0x0200_0000_0002},
        lpm,
        lambda n: {"dst_addr": (0x0A000000 + (n << 8), 24)},
    ),
    Case(
        "Ethernet switch, exact",
        "l2_switch.p4",
        "destinations",
        "forward",
        (b"\x07",),
        {"port": 7},
        exact,
        lambda n: {"dst_addr": 0x0200_0000_0000 + n},
    ),
)


def requests(client: Client, case: Case, kind: int, entries: int, batch: int, metadata: bytes = b"") -> Iterator[Any]:
    """Yield ``WriteRequest`` messages of ``batch`` entries each; each message is made when it is needed."""
    table, action = client.p4info.tables[case.table], client.p4info.actions[case.action]
    params = list(zip((p.id for p in action.params), case.params, strict=True))
    (field_id,) = (f.id for f in table.fields)
    for start in range(0, entries, batch):
        request = p4.WriteRequest(device_id=1)
        request.election_id.low = client.election_id
        for number in range(start, min(start + batch, entries)):
            update = request.updates.add(type=kind)
            entry = update.entity.table_entry
            entry.table_id = table.id
            if metadata:
                entry.metadata = metadata
            case.match(entry.match.add(field_id=field_id), number)
            if kind != DELETE:
                entry.action.action.action_id = action.id
                for param_id, value in params:
                    entry.action.action.params.add(param_id=param_id, value=value)
        yield request


def send_serialized(client: Client, case: Case, kind: int, entries: int, batch: int) -> Call:
    """Build and serialize all requests by ids, and return a function that sends them."""
    serialized = [request.SerializeToString() for request in requests(client, case, kind, entries, batch)]

    def send() -> None:
        for request in serialized:
            client._call_write(request)

    return send


def write_messages(client: Client, case: Case, kind: int, entries: int, batch: int) -> None:
    """Write entries as messages with ids."""
    for request in requests(client, case, kind, entries, batch):
        client._call_write(request.SerializeToString())


def write_metadata(client: Client, case: Case, kind: int, entries: int, batch: int) -> None:
    """Write entries as messages with ids and metadata."""
    for request in requests(client, case, kind, entries, batch, b"a controller's own"):
        client._call_write(request.SerializeToString())


def write_names(client: Client, case: Case, kind: int, entries: int, batch: int) -> None:
    """Write entries by the names of table, fields and action, as controllers do."""
    for start in range(0, entries, batch):
        with client.batch():
            for number in range(start, min(start + batch, entries)):
                match = case.named_match(number)
                if kind == DELETE:
                    client.delete(case.table, match)
                elif kind == INSERT:
                    client.insert(case.table, match, case.action, case.names)
                else:
                    client.modify(case.table, match, case.action, case.names)


def while_timed(write: Callable[[Client, Case, int, int, int], None]) -> Writer:
    """Return a writer whose requests are built while its time is measured."""
    return lambda *which: partial(write, *which)


WRITERS: dict[str, Writer] = {
    "serialized": send_serialized,
    "messages": while_timed(write_messages),
    "metadata": while_timed(write_metadata),
    "names": while_timed(write_names),
}


def read(client: Client, case: Case, entries: int) -> None:
    """Read all entries as messages. Raises AssertionError if their number is not ``entries``."""
    entry = p4.TableEntry(table_id=client.p4info.tables[case.table].id)
    wanted = p4.ReadRequest(device_id=1, entities=[p4.Entity(table_entry=entry)])
    found = sum(len(response.entities) for response in client._call_read(wanted))
    if found != entries:
        raise AssertionError(f"{found} entries were read, {entries} written")


@contextmanager
def connected(case: Case, way: str, size: int) -> Iterator[Client]:
    """Yield a client that is connected to a switch with an empty table, ``way`` "in process" or over gRPC."""
    defines = {"ROUTES": str(size), "STATIONS": str(size)}
    program = _core.Program.compile(str(HERE / case.program), [str(HERE)], defines)
    device = Device(1, _core.Switch(program))
    device.load(program)
    if way == "in process":
        with LocalClient(device) as client:
            yield client
    else:
        with Server([device], "127.0.0.1:0") as server, GrpcClient(server.address) as remote:
            yield remote


def measure(case: Case, way: str, by: str, entries: int, batch: int, runs: int, now: Callable[[], float]) -> Rates:
    """Return the median rates of writing and reading over ``runs`` runs, in entries per second."""
    write = WRITERS[by]
    rates: dict[str, list[float]] = {}
    with connected(case, way, entries) as client:

        def timed(what: str, call: Call) -> None:
            start = now()
            call()
            rates.setdefault(what, []).append(entries / (now() - start))

        for _ in range(runs):
            timed("inserts_per_s", write(client, case, INSERT, entries, batch))
            timed("modifies_per_s", write(client, case, MODIFY, entries, batch))
            timed("reads_per_s", partial(read, client, case, entries))
            timed("deletes_per_s", write(client, case, DELETE, entries, batch))
    medians = {what: statistics.median(values) for what, values in rates.items()}
    return Rates(case.name, way, by, entries, batch, **medians)


def shown(results: list[Rates]) -> Table:
    """Return a table of the rates for a terminal."""
    table = Table(title="P4Runtime, entries per second on one core")
    for column in ("table", "way", "client", "batch", "insert", "modify", "delete", "read"):
        table.add_column(
            column, justify="right" if column in ("batch", "insert", "modify", "delete", "read") else "left"
        )
    for r in results:
        speeds = (r.inserts_per_s, r.modifies_per_s, r.deletes_per_s, r.reads_per_s)
        table.add_row(r.table, r.way, r.client, str(r.batch), *(f"{speed:,.0f}" for speed in speeds))
    return table


def main() -> None:
    """Measure the rates of all cases and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="few entries: shows that it works")
    parser.add_argument("--entries", type=int, default=50_000)
    parser.add_argument("--batch", type=int, default=500, help="updates in a request")
    parser.add_argument("--cpu", action="store_true", help="rates by processor time")
    parser.add_argument("--json", metavar="FILE", help="write the results there, too")
    options = parser.parse_args()
    entries, runs = (2_000, 1) if options.quick else (options.entries, 3)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    results = [
        measure(case, way, by, entries, options.batch, runs, time.process_time if options.cpu else time.perf_counter)
        for case in CASES
        for way in ("in process", "gRPC")
        for by in WRITERS
    ]
    Console(width=None if sys.stdout.isatty() else 120).print(shown(results))
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(r) for r in results], indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
