"""Requests for more than a client's share are refused, dropped or cut at once, and the server continues."""

from __future__ import annotations

import queue
import socket
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from conftest import Bench, make_bench
from p4.v1 import p4runtime_pb2 as p4
from p4.v1 import p4runtime_pb2_grpc as p4_grpc

from holdfast.p4runtime import P4RuntimeError, Server, limits
from holdfast.p4runtime.server import _Backlog, _End, _Stream


@pytest.fixture
def bench() -> Bench:
    return make_bench()


@pytest.fixture
def server(bench: Bench) -> Iterator[Server]:
    with Server([bench.device], "127.0.0.1:0") as server:
        yield server


def stub(server: Server) -> Any:
    options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    return p4_grpc.P4RuntimeStub(grpc.insecure_channel(server.address, options=options))


def code(call: Any) -> str:
    with pytest.raises(grpc.RpcError) as raised:
        list(call())
    name: str = raised.value.code().name
    return name


@pytest.mark.parametrize(
    "method", ["Write", "Read", "SetForwardingPipelineConfig", "GetForwardingPipelineConfig", "Capabilities"]
)
def test_what_cannot_be_decoded_is_an_invalid_argument(server: Server, method: str) -> None:
    with grpc.insecure_channel(server.address) as channel:
        call = channel.unary_stream if method == "Read" else channel.unary_unary
        path = f"/p4.v1.P4Runtime/{method}"
        with pytest.raises(grpc.RpcError) as raised:
            list(call(path)(b"\xff\xff\xff", timeout=60))
        assert raised.value.code().name == "INVALID_ARGUMENT"
        assert raised.value.details() == f"this is no {method}Request"


def test_a_request_has_a_bounded_number_of_elements(
    server: Server, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two megabytes of empty elements are refused before the switch is asked for any."""
    bench.primary()
    monkeypatch.setattr(bench.device, "_target", None)
    read = p4.ReadRequest(device_id=1, entities=[p4.Entity()] * 1_000_000)
    assert code(lambda: stub(server).Read(read)) == "RESOURCE_EXHAUSTED"
    write = p4.WriteRequest(device_id=1, updates=[p4.Update()] * 1_000_000)
    write.election_id.low = 1
    assert code(lambda: [stub(server).Write(write)]) == "RESOURCE_EXHAUSTED"
    with pytest.raises(
        P4RuntimeError, match=f"has {limits.MAX_READ_ENTITIES + 1} entities; {limits.MAX_READ_ENTITIES} are taken"
    ):
        bench.device.read(p4.ReadRequest(device_id=1, entities=[p4.Entity()] * (limits.MAX_READ_ENTITIES + 1)))


@pytest.mark.parametrize(
    "what", ["updates", "matches of an update", "entities", "matches of an entity", "metadata", "P4Info"]
)
def test_a_request_is_measured_before_it_is_decoded(server: Server, bench: Bench, what: str) -> None:
    """A field of two bytes becomes an element of a hundred: 32 MB of them took 17 to 34 s and up to 2 GB."""
    bench.primary()
    kind = p4.WriteRequest.DESCRIPTOR.fields_by_name
    updates, entities = kind["updates"].number, p4.ReadRequest.DESCRIPTOR.fields_by_name["entities"].number
    table, match = (
        p4.Entity.DESCRIPTOR.fields_by_name["table_entry"].number,
        p4.TableEntry.DESCRIPTOR.fields_by_name["match"].number,
    )
    entry = field(table, field(match, b"") * (4 << 20))
    method, data = {
        "updates": ("Write", field(updates, b"") * (4 << 20)),
        "matches of an update": ("Write", field(updates, field(2, entry))),
        "entities": ("Read", field(entities, b"") * (4 << 20)),
        "matches of an entity": ("Read", field(entities, entry)),
        "metadata": ("StreamChannel", field(2, field(2, b"") * (4 << 20))),
        "P4Info": ("SetForwardingPipelineConfig", field(5, field(1, field(2, b"") * (9 << 20)))),
    }[what]
    path = f"/p4.v1.P4Runtime/{method}"
    begin = time.process_time()
    with grpc.insecure_channel(server.address, options=[("grpc.max_send_message_length", -1)]) as channel:
        if method == "StreamChannel":
            assert code(lambda: channel.stream_stream(path)(iter([data]), timeout=60)) == "RESOURCE_EXHAUSTED"
        elif method == "Read":
            assert code(lambda: channel.unary_stream(path)(data, timeout=60)) == "RESOURCE_EXHAUSTED"
        else:
            assert code(lambda: [channel.unary_unary(path)(data, timeout=60)]) == "RESOURCE_EXHAUSTED"
    # Client and server.
    assert time.process_time() - begin < 1.0


def field(number: int, content: bytes) -> bytes:
    """A message or string as a field of a serialized message."""
    size, length = len(content), bytearray()
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + content


def test_an_error_carries_back_little_of_the_packet(bench: Bench) -> None:
    answers: list[Any] = []
    session = bench.device.open(answers.append)
    arbitration = p4.StreamMessageRequest()
    arbitration.arbitration.device_id = 1
    bench.device.handle(session, arbitration)
    answers.clear()
    huge = p4.StreamMessageRequest(packet=p4.PacketOut(payload=bytes(8 << 20)))
    huge.packet.metadata.add(metadata_id=1, value=bytes(8 << 20))
    bench.device.handle(session, huge)
    huge = p4.StreamMessageRequest()
    huge.other.value = bytes(8 << 20)
    bench.device.handle(session, huge)
    assert len(answers) == 2
    assert all(answer.HasField("error") and answer.ByteSize() < 2 * limits.MAX_ECHOED_BYTES for answer in answers)
    assert len(answers[0].error.packet_out.packet_out.payload) == limits.MAX_ECHOED_BYTES
    small = p4.StreamMessageRequest(packet=p4.PacketOut(payload=b"which"))
    bench.device.handle(session, small)
    assert answers[2].error.packet_out.packet_out == small.packet


def message(size: int) -> Any:
    return p4.StreamMessageResponse(packet=p4.PacketIn(payload=bytes(size)))


def test_what_waits_is_counted_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a stream, and of all; arbitration is never dropped, and what a stream held is given back when it is gone."""
    monkeypatch.setattr(limits, "MAX_QUEUED_BYTES", 1000)
    monkeypatch.setattr(limits, "MAX_QUEUED_BYTES_IN_ALL", 1500)
    backlog = _Backlog()
    one, other = _Stream(backlog), _Stream(backlog)
    for _ in range(10):
        one.send(message(200))
    assert one.dropped == 6
    for _ in range(10):
        other.send(message(200))
    assert other.dropped == 7
    one.send(p4.StreamMessageResponse(arbitration=p4.MasterArbitrationUpdate(device_id=1)))
    for _ in range(4):
        assert one.take().HasField("packet")
    assert one.take().HasField("arbitration")
    one.discard()
    other.discard()
    one.send(message(1))
    assert one.dropped == 7
    assert backlog.take(limits.MAX_QUEUED_BYTES_IN_ALL)
    with pytest.raises(queue.Empty):
        other.take(0.01)
    other.end()
    assert isinstance(other.take(), _End)


def test_a_stream_whose_arbitration_is_not_read_ends() -> None:
    """It is never dropped, so what would need more room has no stream any more."""
    stream = _Stream(_Backlog())
    for _ in range(10 * limits.MAX_QUEUED_ARBITRATIONS):
        stream.send(p4.StreamMessageResponse(arbitration=p4.MasterArbitrationUpdate(device_id=1)))
    for _ in range(limits.MAX_QUEUED_ARBITRATIONS):
        assert not isinstance(stream.take(), _End)
    last = stream.take()
    assert isinstance(last, _End)
    assert last.error is not None
    assert last.error.code == "RESOURCE_EXHAUSTED"
    with pytest.raises(queue.Empty):
        stream.take(0.01)


def test_a_role_has_a_short_name(bench: Bench) -> None:
    arbitration = p4.StreamMessageRequest()
    arbitration.arbitration.device_id = 1
    arbitration.arbitration.role.name = "r" * (limits.MAX_ROLE_NAME_BYTES + 1)
    with pytest.raises(P4RuntimeError, match="a role's name has at most 256 bytes"):
        bench.device.handle(bench.device.open(lambda message: None), arbitration)


def test_a_silent_stream_ends(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream without arbitration holds a worker for the handshake's time and no longer."""
    monkeypatch.setattr(limits, "STREAM_HANDSHAKE_S", 0.2)
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    silent = stub(server).StreamChannel(iter(requests.get, None))
    assert code(lambda: silent) == "DEADLINE_EXCEEDED"
    requests.put(None)
    # One that has spoken may be silent from then on.
    monkeypatch.setattr(limits, "STREAM_HANDSHAKE_S", 2.0)
    requests = queue.SimpleQueue()
    greeting = p4.StreamMessageRequest()
    greeting.arbitration.device_id = 1
    requests.put(greeting)
    stream = stub(server).StreamChannel(iter(requests.get, None))
    assert next(stream).HasField("arbitration")
    time.sleep(2.5)
    assert stream.is_active()
    requests.put(None)
    stream.cancel()


def test_a_connection_that_says_nothing_holds_no_worker(server: Server) -> None:
    host, _, port = server.address.rpartition(":")
    silent = [socket.create_connection((host, int(port))) for _ in range(100)]
    try:
        assert stub(server).Capabilities(p4.CapabilitiesRequest(), timeout=60).p4runtime_api_version
    finally:
        for each in silent:
            each.close()
