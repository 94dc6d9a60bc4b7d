"""Long batches let other clients have their turn, and the refused rest of a batch has its errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from abuse.steady import Moment, Steady, request, steady
from p4.v1 import p4runtime_pb2 as p4

from holdfast import switch_owner
from holdfast.p4runtime import GrpcClient, P4RuntimeError, limits

UPDATES = 30_000
LONG = 60_000
"""The updates of a batch that no election waits for: so many that none ends before it, however busy the machine is."""


@pytest.fixture
def switch() -> Iterator[Steady]:
    with steady() as found:
        yield found


class Batch:
    """With metadata, so that it takes its time; in a thread."""

    def __init__(self, steady: Steady, client: GrpcClient, updates: int = UPDATES) -> None:
        self.failures: dict[int, str] = {}
        self.took_s = 0.0
        self._steady, self._client = steady, client
        self._message = request(steady.device, p4.Update.INSERT, range(1, updates + 1), metadata=b"m")
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        begin = time.monotonic()
        try:
            self._client._call_write(self._message.SerializeToString())
        except P4RuntimeError as e:
            self.failures = {failure.index: failure.code for failure in e.failures}
        self.took_s = time.monotonic() - begin

    def start(self) -> None:
        self._thread.start()
        while not self.applied():
            time.sleep(0.001)

    def join(self) -> None:
        self._thread.join()

    def applied(self) -> int:
        """Return the number of entries that the batch has written so far."""
        return self._steady.device.written()


def test_a_new_primary_does_not_wait_for_a_long_batch(switch: Steady) -> None:
    """Check that a new primary need not wait for the end of the old one's batch.

    It took 7 s for 200,000 updates, during which one command delayed packets by 0.4 s.
    """
    with GrpcClient(switch.server.address, timeout_s=60) as old:
        batch = Batch(switch, old, LONG)
        batch.start()
        begin = Moment.now()
        with GrpcClient(switch.server.address, election_id=2) as new:
            assert new.is_primary
            waited = begin.taken()
            applied = batch.applied()
            batch.join()
            assert 0 < applied < LONG
            # As many of the rest as an answer has room for.
            assert list(batch.failures) == list(range(applied, applied + len(batch.failures)))
            assert set(batch.failures.values()) == {"PERMISSION_DENIED"}
            assert batch.applied() == applied, "nothing of the old primary's comes after"
    switch.judge(waited, 0.5, "the election")
    switch.judge_steps(5)


def test_a_short_write_waits_for_nobody(switch: Steady, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("holdfast.switch_owner.time.sleep", waits.append)
    with GrpcClient(switch.server.address):
        slice = limits.UPDATES_PER_SLICE
        for size, slices in ((1, 1), (slice, 1), (slice + 1, 2)):
            switch.device.write(
                request(switch.device, p4.Update.INSERT, range(size << 11, (size << 11) + size), metadata=b"m")
            )
            assert waits == [switch_owner._TURN_S] * (slices - 1)


def test_a_new_pipeline_ends_a_long_batch(switch: Steady) -> None:
    with GrpcClient(switch.server.address, timeout_s=60) as client:
        batch = Batch(switch, client)
        batch.start()
        switch.writer.may_be_refused = True
        client.set_pipeline(switch.device.switch.program)
        batch.join()
        assert set(batch.failures.values()) == {"ABORTED"}
        assert batch.failures[UPDATES - 1] == "ABORTED"
        assert batch.applied() == 0


@pytest.mark.parametrize("metadata", [b"", b"m"], ids=["plain", "with metadata"])
@pytest.mark.parametrize("atomicity", [1, 2], ids=["rollback", "atomic"])
def test_an_atomic_batch_has_a_bounded_size(switch: Steady, metadata: bytes, atomicity: int) -> None:
    with GrpcClient(switch.server.address) as client:

        def write(updates: int) -> None:
            numbers = range(1, updates + 1)
            client._call_write(
                request(
                    switch.device, p4.Update.INSERT, numbers, metadata=metadata, atomicity=atomicity
                ).SerializeToString()
            )

        with pytest.raises(P4RuntimeError, match="RESOURCE_EXHAUSTED: the batch has 4097 updates; 4096 are taken"):
            write(limits.MAX_ATOMIC_UPDATES + 1)
        write(limits.MAX_ATOMIC_UPDATES)
    switch.judge_steps(50)
