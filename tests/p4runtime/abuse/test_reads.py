"""Reads of large tables are snapshots, and packets and writes continue beside them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import grpc
import pytest
from abuse.steady import SlowError, Steady, memory_mb, request, steady
from p4.v1 import p4runtime_pb2 as p4
from p4.v1 import p4runtime_pb2_grpc as p4_grpc

from holdfast.p4runtime import GrpcClient, P4RuntimeError, limits
from holdfast.p4runtime.server import _Reads

ENTRIES = 100_000

STEP_MS = 10.0
"""Of processor time. The goal is 1 ms; a busy machine has slower memory, and takes time that counts as ours."""


@pytest.fixture
def loaded() -> Iterator[Steady]:
    with steady() as found:
        with GrpcClient(found.server.address):  # so that it is the primary for fill
            found.fill(ENTRIES)
        yield found


def all_entries(device_id: int = 1, table: int = 0) -> p4.ReadRequest:
    return p4.ReadRequest(device_id=device_id, entities=[p4.Entity(table_entry=p4.TableEntry(table_id=table))])


def addresses(responses: list[p4.ReadResponse]) -> list[tuple[int, bytes]]:
    entries = [entity.table_entry for response in responses for entity in response.entities]
    return [
        (int.from_bytes(e.match[0].exact.value, "big"), e.action.action.params[0].value + e.metadata) for e in entries
    ]


@pytest.mark.parametrize("noted", [False, True], ids=["plain", "with metadata"])
@pytest.mark.parametrize("named", [False, True], ids=["all tables", "one table"])
def test_a_read_is_of_one_moment(*, noted: bool, named: bool) -> None:
    """Check this for writes during the Read (specification, "Parallelism of Read and Write Requests")."""
    with steady() as found:
        device = found.device
        with GrpcClient(found.server.address):
            found.fill(3000)
            if noted:
                device.write(request(device, p4.Update.INSERT, range(3001, 3004), metadata=b"m"))
            table = found.index.tables["addresses"].id if named else 0
            expected = sorted(addresses(list(device.read(all_entries(table=table)))))
            assert len(expected) == 3003 if noted else 3000
            responses = device.read(all_entries(table=table))
            first = next(responses)
            device.write(request(device, p4.Update.DELETE, range(1, 2001)))
            device.write(request(device, p4.Update.INSERT, range(5000, 9000)))
            device.write(request(device, p4.Update.INSERT, range(1, 100), metadata=b"other" if noted else b""))
            if noted:
                device.write(request(device, p4.Update.MODIFY, range(3001, 3004), metadata=b"other"))
            assert sorted(addresses([first, *responses])) == expected


def test_a_new_program_ends_a_read() -> None:
    with steady() as found, GrpcClient(found.server.address):
        found.fill(3000)
        responses = found.device.read(all_entries())
        next(responses)
        found.writer.may_be_refused = True
        found.device.load(found.device.switch.program)
        with pytest.raises(P4RuntimeError, match=r"ABORTED.*replaced"):
            list(responses)


def test_packets_and_writes_go_on_beside_reads(loaded: Steady) -> None:
    """Check packets and writes beside readers in a loop, of one table and of all tables.

    Such readers of 100,000 entries stopped packets for 100 ms and writes for 7 s before.
    """
    over = threading.Event()

    def loop(table: int) -> None:
        with grpc.insecure_channel(loaded.server.address) as channel:
            while not over.is_set():
                for _ in p4_grpc.P4RuntimeStub(channel).Read(all_entries(table=table)):
                    if over.is_set():
                        break

    table = loaded.index.tables["addresses"].id
    readers = [threading.Thread(target=loop, args=(table,)), threading.Thread(target=loop, args=(0,))]
    writes = loaded.writer.writes
    for reader in readers:
        reader.start()
    time.sleep(4)
    over.set()
    for reader in readers:
        reader.join()
    assert loaded.writer.writes - writes > 20
    loaded.judge_steps(50)


@pytest.mark.parametrize("kind", ["register", "counter"])
def test_packets_pass_while_a_million_cells_are_read(kind: str) -> None:
    """Check that packets no longer wait until all cells are read."""
    with steady() as found, GrpcClient(found.server.address) as client:
        wanted = p4.ReadRequest(device_id=1)
        if kind == "register":
            (register,) = client.p4info.registers
            wanted.entities.add().register_entry.register_id = register.id
        else:
            (counter,) = client.p4info.counters
            wanted.entities.add().counter_entry.counter_id = counter.id
        cells = sum(len(response.entities) for response in client._stub.Read(wanted))
        assert cells == 1 << 20
        found.judge_steps(STEP_MS)


def test_control_of_a_large_table_takes_short_steps() -> None:
    """Check that packets pass after each step while entries are added, changed, read and deleted."""
    with steady() as found, GrpcClient(found.server.address):
        found.fill(entries := 1 << 18)
        found.device.write(request(found.device, p4.Update.MODIFY, range(1, 1 << 14)))
        read = (len(response.entities) for response in found.device.read(all_entries()))
        assert sum(read) == entries
        for start in range(1, entries, 1 << 16):
            found.device.write(request(found.device, p4.Update.DELETE, range(start, start + (1 << 16))))
        assert not list(found.device.read(all_entries()))
        found.judge_steps(STEP_MS)


def test_a_batch_lets_packets_pass(loaded: Steady, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a batch that need not be atomic stops packets for a part of the time that an atomic one takes."""
    monkeypatch.setattr(limits, "MAX_ATOMIC_UPDATES", limits.MAX_WRITE_UPDATES)
    entries = range(ENTRIES + 1, ENTRIES + 150_001)
    with GrpcClient(loaded.server.address):
        loaded.device.write(request(loaded.device, p4.Update.INSERT, entries))
        read = (len(response.entities) for response in loaded.device.read(all_entries()))
        assert sum(read) == ENTRIES + len(entries)
        in_slices_ms = loaded.longest_command_ms()
        # An atomic one of a third of the size, so that the primary's writes are in time.
        atomic = range(entries.start, entries.start + len(entries) // 3)
        loaded.device.write(request(loaded.device, p4.Update.DELETE, atomic, atomicity=1))
        if in_slices_ms >= (at_once_ms := loaded.longest_command_ms()) / 2:
            raise SlowError(f"a slice took {in_slices_ms} ms, the whole at most {at_once_ms} ms")


def test_unread_reads_do_not_lock_others_out(loaded: Steady, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that 70 unread Reads do not take all workers, which made writes time out."""
    monkeypatch.setattr(limits, "READ_STALL_S", 2.0)
    wanted = all_entries(table=loaded.index.tables["addresses"].id)
    # A window that does not grow to the whole answer.
    options = [("grpc.http2.bdp_probe", 0)]
    with grpc.insecure_channel(loaded.server.address, options=options) as channel:
        stub, writes = p4_grpc.P4RuntimeStub(channel), loaded.writer.writes
        unread = [stub.Read(wanted) for _ in range(70)]
        time.sleep(1.5)
        assert loaded.writer.writes - writes > 10
        refused = 0
        for call in unread:
            if call.done() and call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED:
                refused += 1
        assert refused == 70 - limits.MAX_READS
        deadline = time.monotonic() + 20
        while loaded.server._servicer._reads._reads and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not loaded.server._servicer._reads._reads, "those that stall are cancelled"
        assert len(addresses(list(stub.Read(wanted)))) >= ENTRIES


def test_stalled_reads_are_those_that_wait_for_their_client() -> None:
    reads = _Reads()
    cancelled: list[str] = []
    waiting, computing = (reads.begin(lambda name=name: cancelled.append(name)) for name in ("waiting", "computing"))
    waiting.waits_since = 100.0
    reads.cancel_stalled(100.0 + limits.READ_STALL_S)
    assert cancelled == []
    reads.cancel_stalled(100.1 + limits.READ_STALL_S)
    assert cancelled == ["waiting"]
    reads.end(waiting)
    reads.end(computing)
    for _ in range(limits.MAX_READS):
        reads.begin(lambda: None)
    with pytest.raises(P4RuntimeError, match="RESOURCE_EXHAUSTED"):
        reads.begin(lambda: None)


def test_what_is_read_at_once_is_read_once() -> None:
    """Check a Read of 10 KB that asks 1,024 times for all multicast groups. It took 100 s and 6 GB before its first message."""
    with steady() as found, GrpcClient(found.server.address):
        written = p4.WriteRequest(device_id=1)
        written.election_id.low = 1
        for number in range(2, 102):
            entry = written.updates.add(type=p4.Update.INSERT).entity.packet_replication_engine_entry
            group = entry.multicast_group_entry
            group.multicast_group_id = number
            for instance in range(200):
                group.replicas.add(egress_port=1, instance=instance)
        found.device.write(written)
        wanted = p4.ReadRequest(device_id=1)
        for number in range(limits.MAX_READ_ENTITIES):
            entry = wanted.entities.add().packet_replication_engine_entry
            entry.multicast_group_entry.metadata = b"%d" % number  # which selects nothing
        before_mb = memory_mb()
        responses = found.device.read(wanted)
        for _ in range(3):
            assert len(next(responses).entities) >= 100
        assert memory_mb() - before_mb < 100
        found.judge_steps(STEP_MS)
        del responses
