"""Idle entries, digests and endlessly recirculating packets, beside a steady stream and a primary that writes."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from abuse.steady import Steady, largest_lists, memory_mb, request, served, steady
from p4.v1 import p4runtime_pb2 as p4
from raw import read

from holdfast.p4runtime import GrpcClient, P4RuntimeError, limits
from holdfast.p4runtime.received import IdleEntries


@pytest.fixture
def switch() -> Iterator[Steady]:
    with steady("events.p4") as steady_switch:
        yield steady_switch


def test_an_idle_timeout_has_a_least(switch: Steady) -> None:
    with GrpcClient(switch.server.address), pytest.raises(P4RuntimeError) as raised:
        switch.device.write(request(switch.device, p4.Update.INSERT, range(1, 2), timeout_ns=30))
    (failure,) = raised.value.failures
    assert failure.code == "INVALID_ARGUMENT"
    assert "the least idle timeout is 1000000 ns, not 30" in failure.message


def test_thousands_of_idle_entries_leave_packets_and_writes_their_time(switch: Steady) -> None:
    named: list[int] = []
    with GrpcClient(switch.server.address) as client, served(switch):
        entries = range(1, 2001)
        switch.device.write(request(switch.device, p4.Update.INSERT, entries, timeout_ns=1_000_000))
        time.sleep(0.5)
        before_mb, writes = memory_mb(), switch.writer.writes
        time.sleep(2)
        with switch.within(2):
            switch.device.write(request(switch.device, p4.Update.DELETE, entries))
        grown_mb = memory_mb() - before_mb
        while (event := client.poll(0.5)) is not None:
            if isinstance(event, IdleEntries):
                named.append(len(event.entries))
    assert sum(named) > 2000, "each is named, and named again"
    assert max(named) <= limits.MAX_IDLE_ENTRIES
    assert switch.writer.writes - writes > 20
    # It was 1.5 GB in 9 s.
    assert grown_mb < 32


def test_digests_with_a_huge_list_and_timeout_are_bounded(switch: Steady) -> None:
    lists: list[int] = []
    with GrpcClient(switch.server.address) as client, served(switch):
        client.on_digest = lambda digest_list: lists.append(len(digest_list.values))
        configured = largest_lists(switch.index)
        switch.device.write(configured)
        # The stream's own address: each of its packets sends a digest now.
        switch.device.write(request(switch.device, p4.Update.INSERT, range(0x020000000001, 0x020000000002)))
        time.sleep(1)
        before_mb = memory_mb()
        time.sleep(3)
        grown_mb = memory_mb() - before_mb
        configured.updates[0].type = p4.Update.DELETE
        with switch.within(2):
            switch.device.write(configured)
    assert lists and set(lists) == {1024}
    # The deletion took 60 s, and memory grew by 10 MB/s.
    assert grown_mb < 16


def rounds(switch: Steady, packets: int) -> int:
    """Return how often packets that double and recirculate without end passed egress within a hundredth of a second."""
    with GrpcClient(switch.server.address):
        session = p4.WriteRequest(device_id=1)
        session.election_id.low = 1
        clone = session.updates.add(type=p4.Update.INSERT).entity.packet_replication_engine_entry.clone_session_entry
        clone.session_id = 1
        clone.replicas.add(egress_port=2, instance=1)
        switch.device.write(session)
        for _ in range(packets):
            switch.device.switch.packet_out(bytes(12) + b"\x88\xb5" + bytes(50))
            time.sleep(0.01)
    assert switch.device.switch.drops()["recirculation_limit"] > packets
    (counter,) = switch.index.counters
    (cell,) = read(switch.device, counter_entry=p4.CounterEntry(counter_id=counter.id))
    return int(cell.counter_entry.data.packet_count)


def test_packets_that_go_round_have_a_rate(switch: Steady) -> None:
    """Check that each packet makes a burst of 512 copies after its first three rounds (1, 2 and 4 copies), where it made 4,096."""
    assert 100 * 7 < rounds(switch, 100) <= 100 * (7 + 512)


def test_the_rate_is_the_one_that_was_asked_for() -> None:
    with steady("events.p4", copies_per_s=0) as switch:
        assert rounds(switch, 20) == 20 * 7
