"""Enums and errors without a representation are their names in ``P4Data``, and a tuple's members are a value set's fields."""

from __future__ import annotations

from typing import Any

import pytest
from device_bench import HERE
from raw import INSERT, MODIFY, Raw, exact, failures, read, ternary, update, write

from holdfast import _core
from holdfast.p4runtime import Device, DigestList, LocalClient, P4InfoIndex
from holdfast.p4runtime.p4data import from_p4data, to_p4data, to_plain
from holdfast.p4runtime.stubs import p4data_pb2
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4

Setting = tuple[Device, LocalClient, Raw]


@pytest.fixture
def setting() -> Setting:
    # Without a number that is translated to another width, which digests cannot hold.
    text = (HERE.parent / "p4/accept/control_plane_types.p4").read_text()
    text = text.replace("port_t port; zone_t zone; tuple", "zone_t zone; tuple").replace("(port_t) 4, ", "")
    program = _core.Program.compile_text(text)
    device = Device(1, _core.Switch(program, executor="interpreter"), executor="interpreter")
    client = LocalClient(device)
    client.set_pipeline(program)
    return device, client, Raw(P4InfoIndex.from_text(program.p4info))


def test_a_register_of_an_enum_holds_names(setting: Setting) -> None:
    device, client, raw = setting
    register = raw.index.registers["modes"].id

    def cell(name: str) -> Any:
        data = p4data_pb2.P4Data(enum=name)
        return p4.RegisterEntry(register_id=register, index=p4.Index(index=2), data=data)

    write(device, update(MODIFY, register_entry=cell("Slow")))
    wanted = p4.RegisterEntry(register_id=register, index=p4.Index(index=2))
    assert read(device, register_entry=wanted) == [p4.Entity(register_entry=cell("Slow"))]
    assert client.registers("modes") == {0: 0, 1: 0, 2: 1, 3: 0}
    wrong = [cell("Medium"), cell("")]
    assert [[f.code for f in failures(device, update(MODIFY, register_entry=w))] for w in wrong] == [
        ["INVALID_ARGUMENT"]
    ] * 2


def test_a_digest_with_enums_and_errors_is_names(setting: Setting) -> None:
    device, client, _ = setting
    client.enable_digest("learnt_t")
    device.switch.process(1, bytes([1, 2, 3]))
    device.collect_digests(10**9)
    (digest,) = [event for event in iter(client.poll, None) if isinstance(event, DigestList)]
    (value,) = digest.values
    assert isinstance(value, dict)
    assert (value["why"], value["pair"], value["reason"], value["signed"]) == ("NoMatch", [1, "Off"], 255, -5)


def test_the_members_of_a_tuple_are_fields(setting: Setting) -> None:
    device, _, raw = setting
    for name, matches in (
        ("pairs", [exact(1, b"\x01"), exact(2, b"\x7f")]),
        ("keys", [ternary(1, b"\x01", b"\x0f"), exact(2, b"\x02"), exact(3, b"\x03")]),
    ):
        value_set = raw.index.value_sets[name].id
        entry = p4.ValueSetEntry(value_set_id=value_set, members=[p4.ValueSetMember(match=matches)])
        write(device, update(MODIFY, value_set_entry=entry))
        assert read(device, value_set_entry=p4.ValueSetEntry(value_set_id=value_set)) == [
            p4.Entity(value_set_entry=entry)
        ]


def test_the_client_knows_names(setting: Setting) -> None:
    _, _, raw = setting
    spec, types = raw.index.digests["learnt_t"].type_spec, raw.index.message.type_info
    member = next(m.type_spec for m in types.structs["learnt_t"].members if m.name == "why")
    data = to_p4data(member, types, 2)
    assert (data.error, from_p4data(member, types, data), to_plain(member, types, 2)) == ("NoMatch", 2, "NoMatch")
    assert spec.struct.name == "learnt_t"


def test_members_that_are_translated_to_another_width_are_not_guessed() -> None:
    program = _core.Program.compile(str(HERE.parent / "p4/accept/control_plane_types.p4"))
    device = Device(1, _core.Switch(program, executor="interpreter"), executor="interpreter")
    LocalClient(device).set_pipeline(program)
    digest = P4InfoIndex.from_text(program.p4info).digests["learnt_t"].id
    entry = p4.DigestEntry(digest_id=digest, config=p4.DigestEntry.Config())
    assert [f.code for f in failures(device, update(INSERT, digest_entry=entry))] == ["UNIMPLEMENTED"]
