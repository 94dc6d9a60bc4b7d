"""An action selector of two tables with different actions: an entry may use only the actions of its table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from device_bench import HERE
from raw import INSERT, MODIFY, Raw, exact, request, update

from holdfast import _core
from holdfast.p4runtime import Device, LocalClient, P4InfoIndex, P4RuntimeError
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4


@pytest.fixture
def setting() -> Iterator[tuple[Device, Raw]]:
    program = _core.Program.compile(str(HERE.parent / "p4/run/action_profiles_different.p4"))
    device = Device(1, _core.Switch(program, executor="interpreter"), executor="interpreter")
    with LocalClient(device) as client:
        client.set_pipeline(program)
        yield device, Raw(P4InfoIndex.from_text(program.p4info))


def test_the_profile_names_both_tables(setting: tuple[Device, Raw]) -> None:
    _, raw = setting
    assert set(raw.index.action_profiles["shared"].table_ids) == {raw.index.tables[name].id for name in "ab"}


def test_the_client_knows_the_actions_of_both_tables() -> None:
    program = _core.Program.compile(str(HERE.parent / "p4/run/action_profiles_different.p4"))
    with LocalClient(Device(1, _core.Switch(program, executor="interpreter"), executor="interpreter")) as client:
        client.set_pipeline(program)
        for number, action in enumerate(("first", "second", "both"), 1):
            info = client.p4info.actions[action]
            client.profile_member("shared", number, action, {param.name: 1 for param in info.params})
        with pytest.raises(P4RuntimeError, match="nothing"):
            client.profile_member("shared", 4, "nothing")


def test_an_entry_names_what_its_table_can_run(setting: tuple[Device, Raw]) -> None:
    device, raw = setting
    profile = raw.index.action_profiles["shared"].id

    def outcome(kind: int, **entity: Any) -> str:
        try:
            device.write(request(update(kind, **entity)))
        except P4RuntimeError as e:
            return str(e.failures[0].code)
        return "OK"

    def member(kind: int, id: int, action: str) -> str:
        call = raw.action(action, b"\1").action
        of_profile = p4.ActionProfileMember(action_profile_id=profile, member_id=id, action=call)
        return outcome(kind, action_profile_member=of_profile)

    def group(kind: int, id: int, *members: int) -> str:
        shares = [p4.ActionProfileGroup.Member(member_id=m, weight=1) for m in members]
        of_profile = p4.ActionProfileGroup(action_profile_id=profile, group_id=id, members=shares)
        return outcome(kind, action_profile_group=of_profile)

    def entry(table: str, key: int, **action: int) -> str:
        return outcome(INSERT, table_entry=raw.entry(table, [exact(1, bytes([key]))], p4.TableAction(**action)))

    assert [member(INSERT, 1, "first"), member(INSERT, 2, "second"), member(INSERT, 3, "both")] == ["OK"] * 3
    assert entry("a", 1, action_profile_member_id=2) == "INVALID_ARGUMENT"
    assert entry("b", 1, action_profile_member_id=1) == "INVALID_ARGUMENT"
    assert entry("a", 1, action_profile_member_id=1) == "OK"
    assert entry("b", 1, action_profile_member_id=3) == "OK"
    # What an entry of `a` names cannot become what `a` has not; what nobody names can.
    assert member(MODIFY, 1, "second") == "INVALID_ARGUMENT"
    assert member(MODIFY, 2, "first") == "OK"
    assert member(MODIFY, 2, "second") == "OK"
    assert member(MODIFY, 1, "both") == "OK"
    assert entry("b", 2, action_profile_member_id=1) == "OK"
    assert member(MODIFY, 1, "first") == "INVALID_ARGUMENT"
    # Groups likewise, directly and through their members.
    assert [group(INSERT, 1, 2, 3), group(INSERT, 2, 3)] == ["OK"] * 2
    assert entry("a", 3, action_profile_group_id=1) == "INVALID_ARGUMENT"
    assert entry("a", 3, action_profile_group_id=2) == "OK"
    assert group(MODIFY, 2, 2, 3) == "INVALID_ARGUMENT"
    assert group(MODIFY, 2, 1, 3) == "OK"
    assert group(MODIFY, 1, 1) == "OK"
    assert member(MODIFY, 3, "second") == "INVALID_ARGUMENT"
