"""What clients of BMv2 push and how: device id 0, the program in a message of its own, BMv2's JSON, a switch without a pipeline."""

from __future__ import annotations

import json

import pytest
from device_bench import Bench
from hypothesis import given
from hypothesis import strategies as st
from raw import INSERT, request, update

from holdfast import _core
from holdfast.live import no_pipeline
from holdfast.p4runtime import Device, LocalClient, P4RuntimeError, device_config
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4

ACTIONS = p4.SetForwardingPipelineConfigRequest
BMV2 = json.dumps({"header_types": [], "parsers": [], "pipelines": [], "__meta__": {"version": [2, 23]}}).encode()


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes((*found, number))


def wrapped(data: bytes, *, reassign: bool = True, extras: bytes = b"", first: bool = False) -> bytes:
    """Return a ``P4DeviceConfig`` with the fields 1 (a flag), 2 (pairs) and 3 (the bytes); ``first``: the bytes stand first."""
    field = b"\x1a" + varint(len(data)) + data
    others = (b"\x08\x01" if reassign else b"") + (b"\x12" + varint(len(extras)) + extras if extras else b"")
    return field + others if first else others + field


def push(bench: Bench, config: bytes, action: int = ACTIONS.VERIFY_AND_COMMIT, device_id: int = 1) -> None:
    request = p4.SetForwardingPipelineConfigRequest(device_id=device_id, action=action, config=bench.config())
    request.election_id.low = 1
    request.config.p4_device_config = config
    bench.device.set_forwarding_pipeline_config(request)


@pytest.mark.parametrize("more", [{}, {"reassign": False}, {"extras": b"\x0a\x00"}, {"first": True}])
def test_the_program_may_be_wrapped(bench: Bench, more: dict[str, object]) -> None:
    client = LocalClient(bench.device)
    config = wrapped(bench.program.artifact(), **more)  # type: ignore[arg-type]
    push(bench, config)
    assert client.p4info.tables["ipv4_lpm"]
    asked = p4.GetForwardingPipelineConfigRequest(device_id=1)
    answer = bench.device.get_forwarding_pipeline_config(asked)
    assert answer.config.p4_device_config == config, "it is returned as it came"


def test_the_same_program_in_another_wrapping_keeps_the_switch(bench: Bench) -> None:
    bench.primary()
    before = bench.device.owner.running
    push(bench, wrapped(bench.program.artifact()), ACTIONS.RECONCILE_AND_COMMIT)
    after = bench.device.owner.running
    assert before is not None
    assert after is not None
    assert after.core is before.core


@pytest.mark.parametrize("config", [BMV2, b"\n " + BMV2, wrapped(BMV2)], ids=["plain", "blanks", "wrapped"])
def test_the_json_of_bmv2_is_refused_with_a_hint(bench: Bench, config: bytes) -> None:
    LocalClient(bench.device)
    with pytest.raises(P4RuntimeError, match=r"BMv2's JSON.*holdfast compile.*holdfast p4c") as refused:
        push(bench, config)
    assert refused.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "config", [b"x", b"{}", b"[1]", b'{"parsers": 1', b"\x1a\x05abc", wrapped(b""), b"\x1a" + b"\xff" * 12, b"{" * 5000]
)
def test_other_bytes_are_no_program(bench: Bench, config: bytes) -> None:
    LocalClient(bench.device)
    with pytest.raises(P4RuntimeError, match=r"p4_device_config: not a compiled program") as refused:
        push(bench, config)
    assert refused.value.code == "INVALID_ARGUMENT"


@given(st.binary(max_size=60))
def test_any_bytes_are_looked_at_without_harm(config: bytes) -> None:
    assert isinstance(device_config.artifact(config), bytes)
    assert (
        device_config.artifact(wrapped(device_config.ARTIFACT_BEGINS + config))
        == device_config.ARTIFACT_BEGINS + config
    )


def test_device_id_zero_is_the_operators_choice(bench: Bench) -> None:
    device = Device(0, bench.switch)
    client = LocalClient(device)
    client.set_pipeline(bench.program)
    client.insert("ipv4_lpm", {"dst_addr": "10.0.0.0/8"}, "drop", {})
    assert len(client.read_table("ipv4_lpm")) == 1
    for wrong in (-1, 1 << 64):
        with pytest.raises(P4RuntimeError, match="is not between 0 and"):
            Device(wrong, bench.switch)


def test_a_request_without_a_device_id_is_for_no_other_device(bench: Bench) -> None:
    LocalClient(bench.device)
    with pytest.raises(P4RuntimeError, match="there is no device 0 here") as refused:
        push(bench, bench.program.artifact(), device_id=0)
    assert refused.value.code == "NOT_FOUND"


def test_a_switch_without_a_pipeline_drops_and_says_that_it_has_none(bench: Bench) -> None:
    switch = _core.Switch(no_pipeline.program())
    assert switch.process(1, bytes(60)) == []
    assert switch.drops() == {"ingress_drop": 1}
    device = Device(1, switch)
    client = LocalClient(device)
    for refused in (
        lambda: client.p4info,
        lambda: device.write_as_operator(p4.WriteRequest(device_id=1).SerializeToString()),
    ):
        with pytest.raises(P4RuntimeError, match="no forwarding pipeline config has been set") as error:
            refused()
        assert error.value.code == "FAILED_PRECONDITION"
    client.set_pipeline(bench.program)
    assert switch.program.name == bench.program.name


def test_the_operator_writes_whoever_is_the_primary(bench: Bench) -> None:
    client = bench.primary()
    entry = p4.WriteRequest(device_id=1, updates=[update(INSERT, table_entry=p4.TableEntry(table_id=1))])
    with pytest.raises(P4RuntimeError, match=r"\[0\]"):
        bench.device.write_as_operator(entry.SerializeToString())
    with pytest.raises(P4RuntimeError, match="there is no device 2 here"):
        bench.device.write_as_operator(p4.WriteRequest(device_id=2).SerializeToString())
    client.insert("ipv4_lpm", {"dst_addr": "10.0.0.0/8"}, "drop", {})
    table = client.p4info.tables["ipv4_lpm"].id
    found = next(bench.device.read(p4.ReadRequest(device_id=1, entities=[{"table_entry": {"table_id": table}}])))
    delete = p4.WriteRequest(device_id=1)
    delete.updates.add(type=p4.Update.DELETE, entity=found.entities[0])
    bench.device.write_as_operator(delete.SerializeToString())
    assert client.read_table("ipv4_lpm") == []
    assert client.is_primary


@pytest.mark.parametrize("field", ["max_timeout_ns", "max_list_size", "ack_timeout_ns"])
def test_the_negative_field_of_a_digest_is_named(bench: Bench, field: str) -> None:
    bench.primary()
    entry = p4.DigestEntry(digest_id=next(iter(bench.index.digests)).id)
    setattr(entry.config, field, -1)
    with pytest.raises(P4RuntimeError, match=f"{field} is negative"):
        bench.device.write(request(update(INSERT, digest_entry=entry)))
