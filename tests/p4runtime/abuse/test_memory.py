"""Memory of a server, in a process of its own, is back when what clients wrote is deleted, and stays so when they do it again.

It is compared with the memory of a server that is warm: one that has done a small part of the same once, because the first stream,
Read or digest loads code and begins threads. After each full round, memory may be ``MEMORY_TOLERANCE`` and ``PAGES_MB`` more than
that.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from abuse import soak
from abuse.steady import MEMORY_TOLERANCE, Moment, Taken, largest_lists, request
from p4.v1 import p4runtime_pb2 as p4
from p4.v1 import p4runtime_pb2_grpc as p4_grpc

from holdfast.p4runtime import GrpcClient

ROUNDS = 3

SMALL = 1 / 64
"""The part of a round that warms a server."""

PAGES_MB = 2
"""The allocator keeps a page as long as one small block in it is in use."""


class Remote:
    """The primary of a switch in another process."""

    def __init__(self, client: GrpcClient, address: str) -> None:
        self.client, self.address = client, address
        # What :func:`request` takes the program's P4Info from.
        self.device: Any = SimpleNamespace(
            owner=SimpleNamespace(running=SimpleNamespace(config=SimpleNamespace(p4info=client.p4info.message)))
        )

    def write(self, kind: int, numbers: range, *, batch: int, **more: Any) -> None:
        for start in range(numbers.start, numbers.stop, batch):
            part = range(start, min(start + batch, numbers.stop))
            self.client._call_write(request(self.device, kind, part, **more).SerializeToString())

    def read(self) -> int:
        wanted = p4.ReadRequest(device_id=1)
        wanted.entities.add().table_entry.SetInParent()
        return sum(len(response.entities) for response in self.client._stub.Read(wanted))


def first(entries: int, share: float) -> range:
    """Return the numbers from 1 to this share of ``entries``."""
    return range(1, int(entries * share) + 1)


def large_table(remote: Remote, share: float) -> None:
    """Fill the table, read all entries, and delete them in the order of insertion."""
    numbers = first(1 << 16, share)
    remote.write(p4.Update.INSERT, numbers, batch=1 << 14)
    assert remote.read() == len(numbers)
    remote.write(p4.Update.DELETE, numbers, batch=1 << 14)


def large_batch(remote: Remote, share: float) -> None:
    """Insert a large batch in one request, and delete it in another."""
    numbers = first(60_000, share)
    remote.write(p4.Update.INSERT, numbers, batch=len(numbers))
    remote.write(p4.Update.DELETE, numbers, batch=len(numbers))


def entries_with_metadata(remote: Remote, share: float) -> None:
    numbers = first(50_000, share)
    remote.write(p4.Update.INSERT, numbers, batch=10_000, metadata=bytes(100))
    assert remote.read() == len(numbers)
    remote.write(p4.Update.DELETE, numbers, batch=10_000)


def megabytes_of_metadata(remote: Remote, share: float) -> None:
    numbers = first(64, share)
    for number in numbers:
        remote.write(p4.Update.INSERT, range(number, number + 1), batch=1, metadata=bytes(1_000_000))
    remote.write(p4.Update.DELETE, numbers, batch=64)


def unread_reads(remote: Remote, share: float) -> None:
    numbers = first(50_000, share)
    remote.write(p4.Update.INSERT, numbers, batch=len(numbers))
    wanted = p4.ReadRequest(device_id=1)
    wanted.entities.add().table_entry.SetInParent()
    with grpc.insecure_channel(remote.address, options=[("grpc.http2.bdp_probe", 0)]) as channel:
        calls = [p4_grpc.P4RuntimeStub(channel).Read(wanted) for _ in range(70)]
        time.sleep(1)
        assert share == SMALL or sum(call.done() for call in calls) < len(calls)
        for call in calls:
            call.cancel()
    remote.write(p4.Update.DELETE, numbers, batch=len(numbers))


def unread_errors(remote: Remote, share: float) -> None:
    """Send packet-outs as a backup, and do not read the errors that answer them."""
    greeting = p4.StreamMessageRequest()
    greeting.arbitration.device_id = 1
    packet = p4.StreamMessageRequest(packet=p4.PacketOut(payload=bytes(1 << 20)))
    with grpc.insecure_channel(remote.address, options=[("grpc.http2.bdp_probe", 0)]) as channel:
        over = threading.Event()

        def messages() -> Iterator[p4.StreamMessageRequest]:
            yield greeting
            for _ in first(64, share):
                yield packet
            over.wait()

        call = p4_grpc.P4RuntimeStub(channel).StreamChannel(messages())
        time.sleep(2)
        over.set()
        call.cancel()


def idle_entries(remote: Remote, share: float) -> None:
    numbers = first(5000, share)
    remote.write(p4.Update.INSERT, numbers, batch=len(numbers), timeout_ns=1_000_000)
    time.sleep(2 * share)
    remote.write(p4.Update.DELETE, numbers, batch=len(numbers))


def digests(remote: Remote, share: float) -> None:
    """Make each packet send a digest, in lists that are never acknowledged."""
    configured = largest_lists(remote.client.p4info)
    remote.client._call_write(configured.SerializeToString())
    of_the_stream = range(0x020000000001, 0x020000000002)
    remote.write(p4.Update.INSERT, of_the_stream, batch=1)
    time.sleep(2 * max(share, 0.1))  # a list has 1,024, which take a tenth of a second
    remote.write(p4.Update.DELETE, of_the_stream, batch=1)
    configured.updates[0].type = p4.Update.DELETE
    remote.client._call_write(configured.SerializeToString())


@pytest.mark.parametrize(
    ("program", "action"),
    [
        ("steady.p4", large_table),
        ("steady.p4", large_batch),
        ("steady.p4", entries_with_metadata),
        ("steady.p4", megabytes_of_metadata),
        ("steady.p4", unread_reads),
        ("steady.p4", unread_errors),
        ("events.p4", idle_entries),
        ("events.p4", digests),
    ],
    ids=lambda of: of if isinstance(of, str) else of.__name__,
)
def test_memory_is_back(program: str, action: Callable[[Remote, float], None]) -> None:
    """Check that the server keeps no memory of what a client wrote, read or sent, however often."""
    with soak.server(program) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with GrpcClient(address, timeout_s=60) as client:
            remote = Remote(client, address)
            new_mb = soak.rss_mb(process.pid)
            action(remote, SMALL)
            warm_mb = settled_mb(process.pid, most=0, wait_s=5)
            most_mb = warm_mb * (1 + MEMORY_TOLERANCE) + PAGES_MB
            found_mb = []
            for _ in range(ROUNDS):
                action(remote, 1)
                found_mb.append(settled_mb(process.pid, most=most_mb))
    log_memory(action.__name__, [new_mb, warm_mb, *found_mb])
    assert max(found_mb) <= most_mb, (new_mb, warm_mb, found_mb)


def log_memory(name: str, memory_mb: list[float]) -> None:
    """Append a line to the file in ``HOLDFAST_ABUSE_LOG`` (see ``steady``).

    ``memory_mb``: that of the new server, of the warm one, and after each round.
    """
    if path := os.environ.get("HOLDFAST_ABUSE_LOG"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"test": f"test_memory_is_back[{name}]", "memory_mb": memory_mb}) + "\n")


def settled_mb(pid: int, most: float, wait_s: float = 10) -> float:
    """Wait until the server has at most ``most`` MB, or ``wait_s`` seconds; return its memory in MB.

    A server returns freed memory to the system after three seconds, later on a busy machine.
    """
    deadline = time.monotonic() + wait_s
    while (found := soak.rss_mb(pid)) > most and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def test_what_the_machine_takes_is_told_apart() -> None:
    """Check that waiting for a lock, or for work of this process, counts as slow, and waiting for a processor does not."""
    assert Taken(1.0, 0.1, 0.0).own_s == 1.0
    assert Taken(1.0, 0.9, 5.0).own_s == 0.9
    assert Taken(1.0, 0.1, 0.95).own_s == pytest.approx(0.1)
    assert Taken(0.1, 0.5, 0.0).own_s == 0.1
    begin = Moment.now()
    time.sleep(0.3)
    assert begin.taken().wall_s >= 0.3
    begin, end_s = Moment.now(), time.process_time() + 0.3
    while time.process_time() < end_s:
        pass
    assert begin.taken().own_s >= 0.25
