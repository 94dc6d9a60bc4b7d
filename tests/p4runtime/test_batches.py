"""Several stream messages in one: who uses them, what they mean, and what a server refuses."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from device_bench import Bench
from google.protobuf import any_pb2
from p4.v1 import p4runtime_pb2 as p4
from p4.v1 import p4runtime_pb2_grpc as p4_grpc

from holdfast.p4runtime import GrpcClient, Server, limits, stream_batches
from holdfast.p4runtime.received import PacketIn
from holdfast.p4runtime.server import _Backlog, _Stream

PACKETS = [bytes((number,)) * (number + 20) for number in range(200)]


def until(condition: Callable[[], object]) -> None:
    end_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.005)


def packet_out(bench: Bench, payload: bytes) -> bytes:
    """Return the bytes that the switch receives for a packet-out without metadata."""
    return bench.device.owner.running.core.packet_out(p4.PacketOut(payload=payload).SerializeToString())  # type: ignore[union-attr]


@pytest.mark.parametrize("batches", [False, True])
def test_packets_go_both_ways_in_their_order(bench: Bench, batches: bool) -> None:
    bench.device.load(bench.program)
    with Server([bench.device], "127.0.0.1:0") as server, GrpcClient(server.address, batches=batches) as client:
        if batches:
            until(lambda: client._batched)
        header = client.p4info.packet_out
        assert header is not None
        sent = []
        for packet in PACKETS:
            client.packet_out(packet)
            sent.append(packet)
        until(lambda: len(bench.packets_out) == len(sent))
        assert [packet[-len(wanted) :] for packet, wanted in zip(bench.packets_out, sent, strict=True)] == sent
        size = len(bench.packets_out[0]) - len(sent[0])
        for packet in PACKETS:
            assert bench.device.packet_in(bytes(size + 8) + packet)
        found = []
        while len(found) < len(PACKETS):
            event = client.poll(30)
            assert event is not None
            if isinstance(event, PacketIn):
                found.append(event.payload)
        assert [packet[-20:] for packet in found] == [packet[-20:] for packet in PACKETS]


def test_what_waits_goes_in_one_message_and_is_counted() -> None:
    backlog = _Backlog()
    stream = _Stream(backlog)
    stream.batched = True
    for packet in PACKETS:
        stream.send(p4.StreamMessageResponse(packet=p4.PacketIn(payload=packet)))
    stream.end()
    batch = stream.take()
    assert stream_batches.is_batch(batch)
    messages = [p4.StreamMessageResponse.FromString(each) for each in stream_batches.messages_of(batch)]
    assert [each.packet.payload for each in messages] == PACKETS
    assert (stream._bytes, backlog._bytes) == (0, 0)
    assert not hasattr(stream.take(), "update")  # the end is behind them


def test_a_server_that_knows_none_gets_messages_one_by_one(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a server without batches answers one as any unknown message in ``other``, and that the client goes on without."""
    monkeypatch.setattr("holdfast.p4runtime.server.stream_batches.is_batch", lambda message: False)
    bench.device.load(bench.program)
    with Server([bench.device], "127.0.0.1:0") as server, GrpcClient(server.address, batches=True) as client:
        for packet in PACKETS:
            client.packet_out(packet)
        until(lambda: len(bench.packets_out) == len(PACKETS))
        assert not client._batched
        assert [type(client.poll(0)).__name__, client.poll(0.2)] == ["Arbitration", None]


def nested() -> bytes:
    return stream_batches.request([stream_batches.request([])])


def wrapped(value: bytes) -> bytes:
    message = p4.StreamMessageRequest(other=any_pb2.Any(type_url=stream_batches.TYPE_URL, value=value))
    return bytes(message.SerializeToString())


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (lambda: wrapped(b"\xff"), grpc.StatusCode.INVALID_ARGUMENT),
        (lambda: stream_batches.request([b"\xff"]), grpc.StatusCode.INVALID_ARGUMENT),
        (nested, grpc.StatusCode.INVALID_ARGUMENT),
        (lambda: stream_batches.request([b""] * (limits.MAX_BATCH_MESSAGES + 1)), grpc.StatusCode.RESOURCE_EXHAUSTED),
    ],
)
def test_malformed_batches_end_the_stream(bench: Bench, data: Callable[[], bytes], code: Any) -> None:
    bench.device.load(bench.program)
    first = p4.StreamMessageRequest()
    first.arbitration.device_id = 1
    first.arbitration.election_id.low = 1
    with Server([bench.device], "127.0.0.1:0") as server, grpc.insecure_channel(server.address) as channel:
        call = channel.stream_stream("/p4.v1.P4Runtime/StreamChannel")(iter([first.SerializeToString(), data()]))
        with pytest.raises(grpc.RpcError) as raised:
            list(call)
        assert raised.value.code() is code
        peer = p4_grpc.P4RuntimeStub(channel)
        assert peer.Capabilities(p4.CapabilitiesRequest()).p4runtime_api_version
