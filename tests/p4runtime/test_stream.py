"""Packet-in, packet-out, digests, and errors on the stream."""

from __future__ import annotations

from typing import Any

import pytest
from device_bench import Bench
from hypothesis import given, settings
from hypothesis import strategies as st
from raw import DELETE, INSERT, MODIFY, failures, read, update

from holdfast._core import Pipeline, Program
from holdfast.p4runtime.errors import P4RuntimeError
from holdfast.p4runtime.p4info import parse_text
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4

EMPTY = """
#include <core.p4>
#include <v1model.p4>
struct headers_t {}
struct meta_t {}
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start { transition accept; }
}
control C(inout headers_t hdr, inout meta_t meta) { apply {} }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply {} }
V1Switch(P(), C(), I(), I(), C(), D()) main;
"""

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


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 70), min_size=1, max_size=6), st.binary(max_size=20), st.data())
def test_controller_headers_round_trip(widths: list[int], payload: bytes, data: st.DataObject) -> None:
    fields = "".join(f'metadata {{ id: {i} name: "f{i}" bitwidth: {w} }}' for i, w in enumerate(widths, 1))
    headers = "".join(
        f'controller_packet_metadata {{ preamble {{ id: {i} name: "{name}" }} {fields} }}'
        for i, name in ((1, "packet_in"), (2, "packet_out"))
    )
    # It has no P4Info of its own that a client's could contradict.
    program = Program.from_artifact(Program.compile_text(EMPTY, "empty.p4").ir_text.encode())
    pipeline = Pipeline(program, parse_text(headers).SerializeToString())
    values = [data.draw(st.integers(0, (1 << w) - 1)) for w in widths]
    out = p4.PacketOut(payload=payload)
    for i, value in enumerate(values, 1):
        out.metadata.add(metadata_id=i, value=value.to_bytes(9, "big"))
    packed = pipeline.packet_out(out.SerializeToString())
    assert len(packed) == (sum(widths) + 7) // 8 + len(payload)
    back = pipeline.packet_in(packed)
    assert back is not None
    message = p4.PacketIn.FromString(back)
    assert message.payload == payload
    assert [int.from_bytes(m.value, "big") for m in message.metadata] == values


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


def digest_entry(bench: Bench, **config: int) -> Any:
    id = bench.index.digests["learn_t"].id
    return p4.DigestEntry(digest_id=id, config=p4.DigestEntry.Config(**config))


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
