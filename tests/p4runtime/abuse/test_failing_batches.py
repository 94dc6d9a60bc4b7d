"""A batch of which every update fails costs no more than one that succeeds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import grpc
import pytest
from abuse.steady import Steady, request, steady
from p4.v1 import p4runtime_pb2 as p4

from holdfast._core import Failures
from holdfast.p4runtime import GrpcClient, P4RuntimeError, limits
from holdfast.p4runtime.errors import to_status

UPDATES = 200_000
ROOM = {"default": 1.5, "own": 2.5}
"""The work of a failing batch may be that of a successful one, so many times: other processes run too. Our own
client asks for 1.5 MiB of details, which it decodes in this process."""


@pytest.fixture
def switch() -> Iterator[Steady]:
    with steady() as found:
        yield found


def default_client(switch: Steady) -> Callable[[bytes], str]:
    """Return a function that sends a write as a client that accepts 8 KiB of metadata, gRPC's default."""
    channel = grpc.insecure_channel(switch.server.address, options=[("grpc.max_send_message_length", -1)])
    write = channel.unary_unary("/p4.v1.P4Runtime/Write")

    def call(data: bytes) -> str:
        try:
            write(data, timeout=60)
        except grpc.RpcError as e:
            assert e.code().name == "UNKNOWN"
            return str(e.details())
        return ""

    return call


def own_client(switch: Steady, client: GrpcClient) -> Callable[[bytes], str]:
    def call(data: bytes) -> str:
        try:
            client._call_write(data)
        except P4RuntimeError as e:
            assert e.batch_size <= UPDATES
            assert [failure.index for failure in e.failures] == list(range(len(e.failures)))
            return e.message
        return ""

    return call


@pytest.mark.parametrize("kind", ["default", "own"])
def test_a_failing_batch_costs_no_more_than_a_successful_one(switch: Steady, kind: str) -> None:
    """Checks a batch whose errors do not fit into the answer: it took 14 s, 5.7 times a successful batch."""
    with GrpcClient(switch.server.address, timeout_s=60) as client:
        call = default_client(switch) if kind == "default" else own_client(switch, client)
        numbers = range(1, UPDATES + 1)
        insert = request(switch.device, p4.Update.INSERT, numbers).SerializeToString()
        delete = request(switch.device, p4.Update.DELETE, numbers).SerializeToString()
        took_s: dict[bool, float] = {True: 0.0, False: 0.0}
        for _ in range(2):
            for data, fails in ((insert, False), (insert, True), (delete, False), (delete, True)):
                begin = time.process_time()
                message = call(data)
                took_s[fails] += time.process_time() - begin
                assert message.startswith(f"{UPDATES} of {UPDATES} elements of the write failed") == fails
        assert took_s[True] <= ROOM[kind] * took_s[False], took_s


def test_an_error_is_cut_before_it_is_made() -> None:
    """Checks the cost and the size, whatever the number of failures and the length of their messages."""
    failures = Failures()
    failures.add(0, limits.MAX_WRITE_UPDATES, "NOT_FOUND", 5, "m" * 1000)
    error = P4RuntimeError("UNKNOWN", "all of them failed", failures, limits.MAX_WRITE_UPDATES)
    begin = time.process_time()
    status = to_status(error, limits.ERROR_DETAILS_BYTES)
    assert time.process_time() - begin < 0.05
    assert status.ByteSize() <= limits.ERROR_DETAILS_BYTES
    assert len(status.details) > 50
    assert len(str(error)) < 30_000
    detail = p4.Error()
    assert status.details[0].Unpack(detail)
    assert detail.canonical_code == 5
