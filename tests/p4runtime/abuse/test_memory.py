"""Memory of a server, in a process of its own, is back when what clients wrote is deleted, and stays so when they do it again."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from abuse import soak
from abuse.steady import MEMORY_TOLERANCE, Moment, Taken, request
from p4.v1 import p4runtime_pb2 as p4

from holdfast.p4runtime import GrpcClient

ROUNDS = 3


class Remote:
    """The primary of a switch in another process."""

    def __init__(self, client: GrpcClient) -> None:
        self.client = client
        # What :func:`request` takes the program's P4Info from.
        self.device: Any = SimpleNamespace(
            _running=SimpleNamespace(config=SimpleNamespace(p4info=client.p4info.message))
        )

    def write(self, kind: int, numbers: range, *, batch: int, **more: Any) -> None:
        for start in range(numbers.start, numbers.stop, batch):
            part = range(start, min(start + batch, numbers.stop))
            self.client._call_write(request(self.device, kind, part, **more))

    def read(self) -> int:
        wanted = p4.ReadRequest(device_id=1)
        wanted.entities.add().table_entry.SetInParent()
        return sum(len(response.entities) for response in self.client._stub.Read(wanted))


def large_table(remote: Remote) -> None:
    """Filled, read, and emptied in the order of insertion."""
    numbers = range(1, (1 << 18) + 1)
    remote.write(p4.Update.INSERT, numbers, batch=1 << 16)
    assert remote.read() == len(numbers)
    remote.write(p4.Update.DELETE, numbers, batch=1 << 16)


def large_batch(remote: Remote) -> None:
    """In one request each."""
    numbers = range(1, 150_001)
    remote.write(p4.Update.INSERT, numbers, batch=len(numbers))
    remote.write(p4.Update.DELETE, numbers, batch=len(numbers))


def entries_with_metadata(remote: Remote) -> None:
    numbers = range(1, 50_001)
    remote.write(p4.Update.INSERT, numbers, batch=10_000, metadata=bytes(100))
    assert remote.read() == len(numbers)
    remote.write(p4.Update.DELETE, numbers, batch=10_000)


def megabytes_of_metadata(remote: Remote) -> None:
    for number in range(1, 65):
        remote.write(p4.Update.INSERT, range(number, number + 1), batch=1, metadata=bytes(1_000_000))
    remote.write(p4.Update.DELETE, range(1, 65), batch=64)


@pytest.mark.parametrize("action", [large_table, large_batch, entries_with_metadata, megabytes_of_metadata])
def test_memory_is_back(action: Callable[[Remote], None]) -> None:
    with soak.server("steady.p4") as process:
        assert process.stdout is not None
        with GrpcClient(process.stdout.readline().strip(), timeout_s=60) as client:
            remote = Remote(client)
            remote.write(p4.Update.INSERT, range(1, 1000), batch=1000)
            assert remote.read() == 999
            remote.write(p4.Update.DELETE, range(1, 1000), batch=1000)
            before_mb = soak.rss_mb(process.pid)
            after_mb = []
            for _ in range(ROUNDS):
                action(remote)
                after_mb.append(settled_mb(process.pid, most=before_mb * (1 + MEMORY_TOLERANCE)))
    assert all(mb <= before_mb * (1 + MEMORY_TOLERANCE) for mb in after_mb), (before_mb, after_mb)


def settled_mb(pid: int, most: float) -> float:
    """The server gives memory back within a second or two; on a busy machine later."""
    deadline = time.monotonic() + 20
    while (found := soak.rss_mb(pid)) > most and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def test_what_the_machine_takes_is_told_apart() -> None:
    """A write that waited for a lock, or for work of this process, was slow; one that waited for a processor was not."""
    assert Taken(1.0, 0.1, 0.0).own_s == 1.0
    assert Taken(1.0, 0.9, 5.0).own_s == 0.9
    assert Taken(1.0, 0.1, 0.95).own_s == pytest.approx(0.1)
    assert Taken(0.1, 0.5, 0.0).own_s == 0.1
    begin = Moment.now()
    time.sleep(0.3)
    assert begin.taken().wall_s >= 0.3
    begin = Moment.now()
    while time.process_time() - begin.cpu_s < 0.3:
        pass
    assert begin.taken().own_s >= 0.25
