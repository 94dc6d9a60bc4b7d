"""Packet-in, packet-out, digests, and errors on the stream."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Bench
from hypothesis import given
from hypothesis import strategies as st
from raw import DELETE, INSERT, MODIFY, failures, read, update, write

from holdfast.p4runtime import limits, packet_io
from holdfast.p4runtime.digests import DigestBuffers
from holdfast.p4runtime.errors import P4RuntimeError
from holdfast.p4runtime.p4info import ControllerHeader, Digest, Names, P4InfoIndex, Param
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4

INVALID_ARGUMENT, PERMISSION_DENIED, FAILED_PRECONDITION, UNIMPLEMENTED = 3, 7, 9, 12


class Stream:
    def __init__(self, bench: Bench, election_id: int = 1) -> None:
        self.device = bench.device
        self.received: list[Any] = []
        self.session = bench.device.open(self.received.append)
        message = p4.StreamMessageRequest()
        message.arbitration.device_id = 1
        message.arbitration.election_id.low = election_id
        self.send(message)
        self.received.clear()

    def send(self, message: Any) -> None:
        self.device.handle(self.session, message)

    def error(self) -> Any:
        (message,) = self.received
        self.received.clear()
        return message.error


@pytest.fixture
def stream(bench: Bench) -> Stream:
    bench.device.load(bench.program)
    return Stream(bench)


def packet_out(payload: bytes = b"data", *metadata: tuple[int, bytes]) -> Any:
    items = [p4.PacketMetadata(metadata_id=id, value=value) for id, value in metadata]
    return p4.StreamMessageRequest(packet=p4.PacketOut(payload=payload, metadata=items))


# ---- Packets ----


def test_packet_out(bench: Bench, stream: Stream) -> None:
    stream.send(packet_out(b"data", (2, b"\x01"), (1, b"\x01\x03")))  # 9 bits of 0x103, 7 bits of 1
    assert bench.packets_out == [b"\x81\x81data"]
    assert stream.received == []


@pytest.mark.parametrize(
    "metadata",
    [
        [],
        [(1, b"\1")],
        [(1, b"\1"), (2, b"\1"), (3, b"\1")],
        [(1, b"\1"), (1, b"\1"), (2, b"\1")],
        [(1, b"\2\0"), (2, b"\1")],
        [(1, b""), (2, b"\1")],
    ],
    ids=["none", "missing", "unknown", "twice", "too wide", "empty"],
)
def test_wrong_packet_out(bench: Bench, stream: Stream, metadata: list[tuple[int, bytes]]) -> None:
    message = packet_out(b"data", *metadata)
    stream.send(message)
    error = stream.error()
    assert error.canonical_code == INVALID_ARGUMENT
    assert error.packet_out.packet_out == message.packet
    assert bench.packets_out == []


def test_packet_out_of_a_backup_is_dropped(bench: Bench, stream: Stream) -> None:
    backup = Stream(bench, election_id=0)
    backup.send(packet_out(b"data", (1, b"\1"), (2, b"\0")))
    assert backup.error().canonical_code == PERMISSION_DENIED
    assert bench.packets_out == []


def test_packet_out_without_a_pipeline(bench: Bench) -> None:
    stream = Stream(bench)
    stream.send(packet_out())
    assert stream.error().canonical_code == FAILED_PRECONDITION


def test_packet_in_goes_to_the_primary(bench: Bench, stream: Stream) -> None:
    backup = Stream(bench, election_id=0)
    assert bench.device.packet_in(b"\x81\x82data")
    (message,) = stream.received
    assert message.packet.payload == b"data"
    assert [(m.metadata_id, m.value) for m in message.packet.metadata] == [(1, b"\x01\x03"), (2, b"\x02")]
    assert backup.received == []
    assert bench.device.split_packet_in(b"\x81\x82data") == (b"data", {"ingress_port": 0x103, "reason": 2})


def test_short_packet_in_is_counted(bench: Bench, stream: Stream) -> None:
    assert not bench.device.packet_in(b"\x81")
    assert bench.device.short_packet_ins == 1
    assert bench.device.split_packet_in(b"\x81") == (b"\x81", {})
    assert stream.received == []


def test_packet_in_without_pipeline_or_client(bench: Bench) -> None:
    assert bench.device.packet_in(b"data")
    stream = Stream(bench)
    assert bench.device.packet_in(b"data")
    assert stream.received[0].packet == p4.PacketIn(payload=b"data")


@given(st.lists(st.integers(1, 70), max_size=6), st.binary(max_size=20), st.data())
def test_controller_headers_round_trip(widths: list[int], payload: bytes, data: st.DataObject) -> None:
    header = ControllerHeader(1, "packet_out", Names("f", [Param(i + 1, f"f{i}", w) for i, w in enumerate(widths)]))
    values = [data.draw(st.integers(0, (1 << w) - 1)) for w in widths]
    out = p4.PacketOut(payload=payload)
    for i, value in enumerate(values):
        out.metadata.add(metadata_id=i + 1, value=value.to_bytes(9, "big"))
    packed = packet_io.packet_out_bytes(out, header)
    assert len(packed) == (sum(widths) + 7) // 8 + len(payload)
    back = packet_io.packet_in_message(packed, header)
    assert back.payload == payload
    assert [int.from_bytes(m.value, "big") for m in back.metadata] == values


# ---- Other stream messages ----


def test_other_and_empty_messages(stream: Stream) -> None:
    other = p4.StreamMessageRequest()
    other.other.type_url = "x"
    stream.send(other)
    error = stream.error()
    assert error.canonical_code == UNIMPLEMENTED
    assert error.other.other.type_url == "x"
    stream.send(p4.StreamMessageRequest())
    error = stream.error()
    assert error.canonical_code == INVALID_ARGUMENT
    assert error.WhichOneof("details") == "other"


def test_wrong_digest_ack(stream: Stream) -> None:
    ack = p4.StreamMessageRequest(digest_ack=p4.DigestListAck(digest_id=1, list_id=1))
    stream.send(ack)
    error = stream.error()
    assert error.canonical_code == INVALID_ARGUMENT
    assert error.digest_list_ack.digest_list_ack == ack.digest_ack


# ---- Digests ----

VALUE = 0x0200000000AA << 9 | 3  # learn_t { src_addr, port }


def digest_entry(bench: Bench, **config: int) -> Any:
    id = bench.index.digest("learn_t").id
    return p4.DigestEntry(digest_id=id, config=p4.DigestEntry.Config(**config))


def test_digest(bench: Bench, stream: Stream) -> None:
    id = bench.index.digest("learn_t").id
    bench.device.digest(id, VALUE, 5)
    assert stream.received == []  # not enabled
    entry = digest_entry(bench, max_list_size=1)
    write(bench.device, update(INSERT, digest_entry=entry))
    assert [e.digest_entry for e in read(bench.device, digest_entry=p4.DigestEntry())] == [entry]
    bench.device.digest(id, VALUE, 7)
    (message,) = stream.received
    (data,) = message.digest.data
    assert [m.bitstring for m in data.struct.members] == [b"\x02\0\0\0\0\xaa", b"\x03"]
    assert (message.digest.digest_id, message.digest.timestamp) == (id, 7)
    stream.received.clear()
    write(bench.device, update(DELETE, digest_entry=digest_entry(bench)))
    bench.device.digest(id, VALUE, 9)
    assert stream.received == []


def test_digests_are_collected_from_the_switch(bench: Bench, stream: Stream) -> None:
    if bench.kind == "real":
        pytest.skip("test_traffic does it with a packet")
    write(bench.device, update(INSERT, digest_entry=digest_entry(bench)))
    bench.switch.digests_waiting = [(bench.index.digest("learn_t").id, VALUE.to_bytes(8, "big"))]
    bench.device.collect_digests(3)
    (message,) = stream.received
    assert message.digest.data[0].struct.members[1].bitstring == b"\x03"
    bench.device.collect_digests(4)
    assert len(stream.received) == 1


def test_digest_settings_existence(bench: Bench, stream: Stream) -> None:
    entry = digest_entry(bench)
    codes = [
        [f.code for f in failures(bench.device, update(kind, digest_entry=entry))]
        for kind in (MODIFY, DELETE, INSERT, INSERT, MODIFY, DELETE)
    ]
    assert codes == [["NOT_FOUND"], ["NOT_FOUND"], [], ["ALREADY_EXISTS"], [], []]
    for wrong in (p4.DigestEntry(digest_id=1), digest_entry(bench, max_timeout_ns=-1)):
        assert [f.code for f in failures(bench.device, update(INSERT, digest_entry=wrong))] == ["INVALID_ARGUMENT"]
    with pytest.raises(P4RuntimeError) as e:
        read(bench.device, digest_entry=entry)
    assert [f.code for f in e.value.failures] == ["NOT_FOUND"]


def buffers(**config: int) -> tuple[DigestBuffers, list[Any]]:
    text = 'digests { preamble { id: 1 name: "d" } type_spec { bitstring { bit { bitwidth: 8 } } } }'
    index = P4InfoIndex.from_text(text)
    sent: list[Any] = []
    made = DigestBuffers(index.message.type_info, sent.append)
    digest: Digest = index.digest("d")
    made.configure(INSERT, digest, p4.DigestEntry.Config(**config))
    return made, sent


def values(message: Any) -> list[int]:
    return [int.from_bytes(d.bitstring, "big") for d in message.data]


def test_digests_are_grouped_by_number_and_time() -> None:
    made, sent = buffers(max_list_size=3, max_timeout_ns=100)
    for now, value in enumerate((1, 2, 2, 1)):
        made.add(1, value, now)
    assert sent == []
    assert made.next_due_ns() == 100
    made.add(1, 3, 50)
    assert [values(m) for m in sent] == [[1, 2, 3]]
    assert made.next_due_ns() is None
    made.add(1, 4, 60)
    made.flush_due(159)
    assert len(sent) == 1
    made.flush_due(160)
    assert values(sent[1]) == [4]
    assert sent[0].list_id != sent[1].list_id


def test_unacknowledged_digests_are_not_repeated() -> None:
    made, sent = buffers(max_list_size=1, ack_timeout_ns=100)
    made.add(1, 7, 0)
    made.add(1, 7, 99)
    assert len(sent) == 1
    made.add(1, 7, 100)  # its time is over
    assert len(sent) == 2
    made.add(1, 7, 101)
    made.acknowledge(1, sent[0].list_id)  # an old list: nothing
    made.add(1, 7, 102)
    assert len(sent) == 2
    made.acknowledge(1, sent[1].list_id)
    made.add(1, 7, 103)
    assert len(sent) == 3


def test_without_ack_timeout_everything_is_sent() -> None:
    made, sent = buffers()
    for now in range(3):
        made.add(1, 7, now)
    assert [values(m) for m in sent] == [[7]] * 3


def test_a_list_has_a_bounded_number_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the client allows: what waits for a list to fill is memory."""
    monkeypatch.setattr(limits, "MAX_DIGEST_LIST_VALUES", 5)
    for config in ({"max_list_size": 2**31 - 1, "max_timeout_ns": 2**62}, {"max_timeout_ns": 2**62}):
        made, sent = buffers(**config)
        for value in range(12):
            made.add(1, value, 0)
        assert [len(values(m)) for m in sent] == [5, 5]
