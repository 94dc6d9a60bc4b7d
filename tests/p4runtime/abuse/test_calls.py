"""Calls whose request never comes keep nobody out, beside a steady stream and a primary that writes."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from abuse.steady import Steady, request, steady
from abuse.test_trust import Authority, guarded
from p4.v1 import p4runtime_pb2 as p4

from holdfast.p4runtime import GrpcClient, P4RuntimeError, limits
from holdfast.p4runtime.calls import Calls

METHODS = ("Write", "Read", "SetForwardingPipelineConfig", "GetForwardingPipelineConfig", "Capabilities")
LONGEST_S = 2.0
"""Of a controller's call, and of the beginning of its stream."""


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = {name: value for name, value in vars(limits).items() if name.isupper()}
    yield
    vars(limits).update(before)


@contextmanager
def silent_calls(address: str, number: int, credentials: grpc.ChannelCredentials | None = None) -> Iterator[list[Any]]:
    """Start ``number`` calls, of all methods in turn, whose requests never come, and yield them.

    Each connection has as many calls as one may have.
    """
    over = threading.Event()

    def says_nothing() -> Iterator[bytes]:
        over.wait()
        yield from ()

    options = [("grpc.use_local_subchannel_pool", 1)]
    channels = []
    calls = []
    try:
        for at in range(number):
            if at % limits.MAX_CALLS_PER_CONNECTION == 0:
                channels.append(
                    grpc.insecure_channel(address, options)
                    if credentials is None
                    else grpc.secure_channel(address, credentials, options)
                )
            method = f"/p4.v1.P4Runtime/{METHODS[at % len(METHODS)]}"
            calls.append(channels[-1].stream_unary(method).future(says_nothing()))
        yield calls
    finally:
        over.set()
        for channel in channels:
            channel.close()


def controls(switch: Steady, credentials: grpc.ChannelCredentials | None, seconds: float) -> None:
    """Read and write as the primary for ``seconds``, and open streams of new controllers; check that each is answered at once."""
    address = switch.server.address
    writes = [request(switch.device, kind, range(1, 2)) for kind in (p4.Update.INSERT, p4.Update.DELETE)]
    for write in writes:
        write.election_id.low = 1000
    wanted = p4.ReadRequest(device_id=1)
    wanted.entities.add().table_entry.SetInParent()

    def reads() -> None:
        assert sum(len(response.entities) for response in primary._call_read(wanted)) > 0

    def joins(election_id: int) -> None:
        with GrpcClient(address, election_id=election_id, credentials=credentials) as backup:
            assert not backup.is_primary

    with GrpcClient(address, election_id=1000, credentials=credentials) as primary:
        assert primary.is_primary
        deadline = time.monotonic() + seconds
        at = 0
        while time.monotonic() < deadline:
            for step in (
                partial(primary._call_write, writes[0].SerializeToString()),
                reads,
                partial(primary._call_write, writes[1].SerializeToString()),
                partial(joins, at % 900 + 1),
            ):
                with switch.within(LONGEST_S):
                    step()
            at += 1
            time.sleep(0.05)
        assert at > 1


def workers() -> int:
    return sum(thread.name.startswith("p4runtime") for thread in threading.enumerate())


def ended(calls: list[Any]) -> Counter[str]:
    return Counter(call.code().name for call in calls if call.done())


PATIENCE_S = limits.REQUEST_S - 5
"""Less than the time after which a call without a request ends anyway. What must end sooner takes a second on an idle machine."""


def wait_until_over(calls: list[Any], left: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while sum(not call.done() for call in calls) > left and time.monotonic() < deadline:
        time.sleep(0.05)
    assert sum(not call.done() for call in calls) <= left


def test_calls_without_a_request_keep_no_controller_out(tmp_path: Path) -> None:
    """Check that clients without rights, or with the right to read, cannot take all calls.

    With two connections each they could, for ever.
    """
    number = limits.MAX_CALLS
    with guarded(tmp_path) as (switch, authority), ExitStack() as stack:
        address = switch.server.address
        sign(authority)
        controller = authority.credentials("controller")
        nobody = stack.enter_context(silent_calls(address, number, authority.credentials("nobody")))
        wait_until_over(nobody, 0)
        assert ended(nobody) == {"PERMISSION_DENIED": number}
        watcher = stack.enter_context(silent_calls(address, number, authority.credentials("watcher")))
        controls(switch, controller, 4)
        assert workers() <= limits.MAX_CALLS + limits.MAX_STREAMS + limits.MAX_SILENT_STREAMS + 1
        wait_until_over(watcher, limits.MAX_SLOW_CALLS)
        found = ended(watcher)
        assert set(found) == {"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "CANCELLED"}
        assert found["PERMISSION_DENIED"] == sum(METHODS[at % 5] in ("Write", METHODS[2]) for at in range(number))
        assert len(watcher) - sum(found.values()) > limits.MAX_SLOW_CALLS - 5, "a few may wait"
        assert ended(nobody) == {"PERMISSION_DENIED": number}


def sign(authority: Authority) -> None:
    authority.sign("controller")
    authority.sign("watcher", "URI:spiffe://lab/monitor")
    authority.sign("nobody")


def test_calls_without_a_request_end_on_an_address_of_this_machine() -> None:
    """Check calls to a local address, where all processes count as one client without a limit.

    Late calls must be cancelled soon to make room.
    """
    with steady() as switch, silent_calls(switch.server.address, 2 * limits.MAX_CALLS) as calls:
        wait_until_over(calls, limits.MAX_SLOW_CALLS)
        assert set(ended(calls)) <= {"RESOURCE_EXHAUSTED", "CANCELLED"}
        controls(switch, None, 2)
        assert workers() <= limits.MAX_CALLS + limits.MAX_STREAMS + limits.MAX_SILENT_STREAMS + 1


def test_a_call_without_a_request_ends_after_its_time() -> None:
    limits.change(["REQUEST_S=3"])
    with steady() as switch, silent_calls(switch.server.address, 20) as calls:
        time.sleep(0.7)
        assert not ended(calls)
        wait_until_over(calls, 0)
        assert ended(calls) == {"CANCELLED": 20}
        controls(switch, None, 1)


def test_the_client_with_most_calls_makes_room() -> None:
    """Check that neither another client's slow call, nor a new or complete one, is cancelled for the client with most calls."""
    calls = Calls()
    cancelled: list[str] = []

    def begin(client: str, name: str) -> Any:
        return calls.begin(client, lambda: cancelled.append(name))

    begin("honest", "slow")
    whole = begin("flood", "whole")
    calls.arrived(whole)
    share = limits.MAX_CALLS_PER_CLIENT
    for at in range(share - 1):
        begin("flood", f"flood {at}")
    with pytest.raises(P4RuntimeError, match=f"RESOURCE_EXHAUSTED: the server takes {share} calls of one client"):
        begin("flood", "too many")
    now_s = time.monotonic()
    calls.cancel_late(now_s)
    assert not cancelled, "they came just now"
    calls.cancel_late(now_s + 2 * limits.CROWDED_REQUEST_S)
    surplus = share - limits.MAX_SLOW_CALLS
    assert cancelled == [f"flood {at}" for at in range(surplus)], "the oldest first"
    assert calls.waiting() == limits.MAX_SLOW_CALLS
    calls.cancel_late(now_s + 2 * limits.REQUEST_S)
    assert len(cancelled) == share
    assert "whole" not in cancelled
    with pytest.raises(P4RuntimeError):
        begin("flood", "until they have ended, they count")
    calls.end(whole)
    begin("flood", "one more")


def test_more_calls_than_may_wait_take_the_places_of_the_oldest() -> None:
    calls = Calls()
    cancelled: list[int] = []
    for at in range(3 * limits.MAX_WAITING_CALLS):
        calls.begin("", lambda at=at: cancelled.append(at))
        assert calls.waiting() <= limits.MAX_WAITING_CALLS
    assert cancelled == list(range(2 * limits.MAX_WAITING_CALLS))


def test_a_client_has_its_share_of_reads(tmp_path: Path) -> None:
    """Check that a client cannot use all Reads that the server answers at a time.

    A client that may read could, by not taking the answers.
    """
    with guarded(tmp_path) as (switch, authority), ExitStack() as stack:
        sign(authority)
        # A window that does not grow to the whole answer.
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.http2.bdp_probe", 0)]
        wanted = p4.ReadRequest(device_id=1)
        wanted.entities.add().table_entry.SetInParent()
        controller = stack.enter_context(
            GrpcClient(switch.server.address, credentials=authority.credentials("controller"))
        )
        switch.fill(40_000)
        with grpc.secure_channel(switch.server.address, authority.credentials("watcher"), options) as channel:
            read = channel.unary_stream("/p4.v1.P4Runtime/Read", p4.ReadRequest.SerializeToString)
            reads = [read(wanted) for _ in range(3 * limits.MAX_READS)]
            deadline = time.monotonic() + PATIENCE_S
            while sum(not each.done() for each in reads) > limits.MAX_READS_PER_CLIENT and time.monotonic() < deadline:
                time.sleep(0.02)
            assert set(ended(reads)) == {"RESOURCE_EXHAUSTED"}
            assert len(switch.server._servicer._reads._reads) == limits.MAX_READS_PER_CLIENT
            assert sum(len(each.entities) for each in controller._call_read(wanted)) == 40_000
