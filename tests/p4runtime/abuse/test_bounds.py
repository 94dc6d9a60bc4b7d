"""Requests for more than a client's share are refused, dropped or cut at once, beside a steady stream and a primary that writes."""

from __future__ import annotations

import queue
import socket
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from abuse.steady import Moment, Steady, steady
from device_bench import make_bench
from p4.v1 import p4runtime_pb2 as p4
from p4.v1 import p4runtime_pb2_grpc as p4_grpc

from holdfast.p4runtime import GrpcClient, P4RuntimeError, Server, limits
from holdfast.p4runtime.server import _Backlog, _End, _Stream


@pytest.fixture
def switch() -> Iterator[Steady]:
    with steady() as found:
        yield found


def stub(server: Server) -> Any:
    options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    return p4_grpc.P4RuntimeStub(grpc.insecure_channel(server.address, options=options))


def code(call: Any) -> str:
    with pytest.raises(grpc.RpcError) as raised:
        list(call())
    name: str = raised.value.code().name
    return name


def test_what_cannot_be_decoded_is_an_invalid_argument(switch: Steady) -> None:
    methods = ("Write", "Read", "SetForwardingPipelineConfig", "GetForwardingPipelineConfig", "Capabilities")
    with grpc.insecure_channel(switch.server.address) as channel:
        for method in methods * 20:
            call = channel.unary_stream if method == "Read" else channel.unary_unary
            path = f"/p4.v1.P4Runtime/{method}"
            with pytest.raises(grpc.RpcError) as raised:
                list(call(path)(b"\xff\xff\xff", timeout=60))
            assert raised.value.code().name == "INVALID_ARGUMENT"
            assert raised.value.details() == f"this is no {method}Request"


def test_what_is_too_long_does_not_reach_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make_bench()
    bench.primary()
    monkeypatch.setattr(bench.device, "_target", None)
    with pytest.raises(
        P4RuntimeError, match=f"has {limits.MAX_READ_ENTITIES + 1} entities; {limits.MAX_READ_ENTITIES} are taken"
    ):
        bench.device.read(p4.ReadRequest(device_id=1, entities=[p4.Entity()] * (limits.MAX_READ_ENTITIES + 1)))
    write = p4.WriteRequest(device_id=1, updates=[p4.Update()] * (limits.MAX_WRITE_UPDATES + 1))
    write.election_id.low = 1
    with pytest.raises(P4RuntimeError, match=f"has {limits.MAX_WRITE_UPDATES + 1} updates"):
        bench.device.write(write)


def test_a_request_is_measured_before_it_is_decoded(switch: Steady) -> None:
    """Check that a request of tiny fields is refused early, as each two bytes become an object of a hundred.

    Decoding 2 MB of them took 44 s, and 32 MB up to 2 GB of memory.
    """
    kind = p4.WriteRequest.DESCRIPTOR.fields_by_name
    updates, entities = kind["updates"].number, p4.ReadRequest.DESCRIPTOR.fields_by_name["entities"].number
    table, match = (
        p4.Entity.DESCRIPTOR.fields_by_name["table_entry"].number,
        p4.TableEntry.DESCRIPTOR.fields_by_name["match"].number,
    )
    entry = field(table, field(match, b"") * (4 << 20))
    huge = {
        "a million updates": ("Write", field(updates, b"") * 1_000_000),
        "a million entities": ("Read", field(entities, b"") * 1_000_000),
        "updates": ("Write", field(updates, b"") * (4 << 20)),
        "matches of an update": ("Write", field(updates, field(2, entry))),
        "entities": ("Read", field(entities, b"") * (4 << 20)),
        "matches of an entity": ("Read", field(entities, entry)),
        "metadata": ("StreamChannel", field(2, field(2, b"") * (4 << 20))),
        "P4Info": ("SetForwardingPipelineConfig", field(5, field(1, field(2, b"") * (9 << 20)))),
    }
    options = [("grpc.max_send_message_length", -1)]
    with GrpcClient(switch.server.address), grpc.insecure_channel(switch.server.address, options=options) as channel:
        for what, (method, data) in huge.items():
            path = f"/p4.v1.P4Runtime/{method}"
            begin = Moment.now()
            if method == "StreamChannel":
                found = code(lambda path=path, data=data: channel.stream_stream(path)(iter([data]), timeout=60))
            elif method == "Read":
                found = code(lambda path=path, data=data: channel.unary_stream(path)(data, timeout=60))
            else:
                found = code(lambda path=path, data=data: [channel.unary_unary(path)(data, timeout=60)])
            assert found == "RESOURCE_EXHAUSTED", what
            assert begin.taken().cpu_s < 1.0, what  # client and server


def field(number: int, content: bytes) -> bytes:
    """Return the bytes of a message or string field in a serialized message."""
    size, length = len(content), bytearray()
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + content


def test_an_error_carries_back_little_of_the_packet(switch: Steady) -> None:
    answers: list[Any] = []
    device = switch.device
    # Whoever left before may be noticed only now: what the others hear of that is not asked for here.
    session = device.open(lambda answer: answers.append(answer) if answer.HasField("error") else None)
    arbitration = p4.StreamMessageRequest()
    arbitration.arbitration.device_id = 1
    device.handle(session, arbitration)
    huge = p4.StreamMessageRequest(packet=p4.PacketOut(payload=bytes(8 << 20)))
    huge.packet.metadata.add(metadata_id=1, value=bytes(8 << 20))
    device.handle(session, huge)
    huge = p4.StreamMessageRequest()
    huge.other.value = bytes(8 << 20)
    device.handle(session, huge)
    assert len(answers) == 2
    assert all(answer.ByteSize() < 2 * limits.MAX_ECHOED_BYTES for answer in answers)
    assert len(answers[0].error.packet_out.packet_out.payload) == limits.MAX_ECHOED_BYTES
    small = p4.StreamMessageRequest(packet=p4.PacketOut(payload=b"which"))
    device.handle(session, small)
    assert answers[2].error.packet_out.packet_out == small.packet


def message(size: int) -> Any:
    return p4.StreamMessageResponse(packet=p4.PacketIn(payload=bytes(size)))


def test_what_waits_is_counted_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the limits of one stream and of all; arbitration is never dropped, and a closed stream frees its bytes."""
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
    """Check that a stream ends if its arbitration updates, which are never dropped, need more room than allowed."""
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


def test_a_role_has_a_short_name(switch: Steady) -> None:
    arbitration = p4.StreamMessageRequest()
    arbitration.arbitration.device_id = 1
    arbitration.arbitration.role.name = "r" * (limits.MAX_ROLE_NAME_BYTES + 1)
    for _ in range(1000):
        session = switch.device.open(lambda message: None)
        with pytest.raises(P4RuntimeError, match="a role's name has at most 256 bytes"):
            switch.device.handle(session, arbitration)
        switch.device.close(session)


def test_a_silent_stream_ends(switch: Steady, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a stream without arbitration holds a worker for no longer than the handshake's time."""
    monkeypatch.setattr(limits, "STREAM_HANDSHAKE_S", 0.2)
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    silent = stub(switch.server).StreamChannel(iter(requests.get, None))
    assert code(lambda: silent) == "DEADLINE_EXCEEDED"
    requests.put(None)
    # One that has spoken may be silent from then on.
    monkeypatch.setattr(limits, "STREAM_HANDSHAKE_S", 2.0)
    requests = queue.SimpleQueue()
    greeting = p4.StreamMessageRequest()
    greeting.arbitration.device_id = 1
    requests.put(greeting)
    stream = stub(switch.server).StreamChannel(iter(requests.get, None))
    assert next(stream).HasField("arbitration")
    time.sleep(2.5)
    assert stream.is_active()
    requests.put(None)
    stream.cancel()


def test_a_connection_that_says_nothing_holds_no_worker(switch: Steady) -> None:
    host, _, port = switch.server.address.rpartition(":")
    silent = [socket.create_connection((host, int(port))) for _ in range(100)]
    try:
        assert stub(switch.server).Capabilities(p4.CapabilitiesRequest(), timeout=60).p4runtime_api_version
    finally:
        for each in silent:
            each.close()
