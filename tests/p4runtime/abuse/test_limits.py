"""Limits that are chosen at the start of a switch."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest
from abuse.steady import WARM_UP_ENTRIES, request, steady
from p4.v1 import p4runtime_pb2 as p4

from holdfast.errors import HoldfastError
from holdfast.p4runtime import GrpcClient, P4RuntimeError, limits


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = {name: value for name, value in vars(limits).items() if name.isupper()}
    yield
    vars(limits).update(before)


def test_a_server_has_the_limits_that_were_set() -> None:
    """Check limits beside a steady stream and a primary that writes, whose stream is one of the two allowed."""
    most = WARM_UP_ENTRIES
    limits.change([f"MAX_WRITE_UPDATES={most}", "MAX_STREAMS=2", "STREAM_HANDSHAKE_S=0.5"])
    assert limits.STREAM_HANDSHAKE_S == 0.5
    with steady() as switch, GrpcClient(switch.server.address) as client:
        for _ in range(20):
            too_many = request(switch.device, p4.Update.INSERT, range(1, most + 2))
            with pytest.raises(
                P4RuntimeError, match=f"RESOURCE_EXHAUSTED: the request has {most + 1} updates; {most} "
            ):
                client._call_write(too_many.SerializeToString())
            with pytest.raises((P4RuntimeError, grpc.RpcError), match="the server takes 2 streams"):
                GrpcClient(switch.server.address, election_id=2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MAX_STREAM=5", "did you mean MAX_STREAMS"),
        ("MAX_STREAMS", "write NAME=VALUE"),
        ("change=5", "write NAME=VALUE"),
        ("MAX_STREAMS=0", "is no whole number above zero"),
        ("MAX_STREAMS=1.5", "is no whole number above zero"),
        ("MAX_STREAMS=", "is no whole number above zero"),
        ("READ_STALL_S=nan", "is no number above zero"),
        ("READ_STALL_S=inf", "is no number above zero"),
        ("MAX_STREAMS=99999999999", "at most 2147483647"),
        ("KEEPALIVE_S=2147483647", "at most 2000000"),
    ],
)
def test_what_is_no_limit(text: str, message: str) -> None:
    with pytest.raises(HoldfastError, match=message):
        limits.change([text])
