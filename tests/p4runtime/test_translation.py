"""Translated types, whose values differ between controller and switch: strings, and numbers with a given mapping."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from raw import INSERT, MODIFY, Raw, exact, failures, lpm, optional, read, read_entries, update, write

from holdfast import _core
from holdfast.p4runtime import Device, LocalClient, P4InfoIndex, P4RuntimeError
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4

HERE = Path(__file__).parent


def device_of(translations: Any = None) -> tuple[Device, LocalClient, Raw]:
    program = _core.Program.compile(str(HERE / "translated.p4"))
    switch = _core.Switch(program, executor="interpreter")
    device = Device(1, switch, executor="interpreter", translations=translations)
    client = LocalClient(device)
    client.set_pipeline(program)
    return device, client, Raw(P4InfoIndex.from_text(program.p4info))


def packet(zone: int, flow: int = 1) -> bytes:
    return flow.to_bytes(4, "big") + bytes([zone])


def zone(raw: Raw, number: int, vrf: bytes) -> Any:
    return raw.entry("zones", [exact(1, bytes([number]))], raw.action("set_vrf", vrf))


def route(raw: Raw, vrf: bytes, port: bytes) -> Any:
    return raw.entry("routes", [exact(1, vrf), lpm(2, b"\0", 8)], raw.action("forward", port))


def test_strings_mean_the_same_everywhere_and_are_read_back() -> None:
    device, _, raw = device_of()
    entries = [zone(raw, 1, b"blue"), zone(raw, 2, b"red"), route(raw, b"red", b"7"), route(raw, b"blue", b"Ethernet0")]
    write(device, *(update(INSERT, table_entry=e) for e in entries))
    assert read_entries(device, p4.TableEntry()) == entries
    (port_of_red,) = device.switch.process(0, packet(2))
    assert port_of_red[0] == 7  # a decimal string is its own number while that is free
    (port_of_blue,) = device.switch.process(0, packet(1))
    assert port_of_blue[0] not in (0, 7)
    write(device, update(MODIFY, table_entry=route(raw, b"red", b"Ethernet0")))
    assert device.switch.process(0, packet(2))[0][0] == port_of_blue[0]
    wanted = p4.TableEntry(table_id=entries[2].table_id, match=entries[2].match)
    assert read_entries(device, wanted) == [route(raw, b"red", b"Ethernet0")]


def test_members_and_sets_too() -> None:
    device, _, raw = device_of()
    action = raw.action("forward", b"Ethernet4").action
    item = p4.ActionProfileAction(action=action, weight=1)
    shot = p4.TableAction(action_profile_action_set=p4.ActionProfileActionSet(action_profile_actions=[item]))
    entry = raw.entry("spread", [optional(1, b"green")], shot, priority=1)
    write(device, update(INSERT, table_entry=entry))
    assert read_entries(device, p4.TableEntry()) == [entry]
    device, _, raw = device_of()
    profile = raw.index.action_profiles["next_hops"].id
    member = p4.ActionProfileMember(action_profile_id=profile, member_id=1, action=action)
    write(device, update(INSERT, action_profile_member=member))
    assert read(device, action_profile_member=p4.ActionProfileMember()) == [p4.Entity(action_profile_member=member)]


def test_a_given_mapping_is_all_there_is() -> None:
    translations = {
        "example.org/port": {"Ethernet0": 3, "Ethernet1": 4},
        "example.org/zone": {1_000_000: 1, 2_000_000: 2},
    }
    device, _, raw = device_of(translations)
    entry = raw.entry("zones", [exact(1, b"\x0f\x42\x40")], raw.action("set_vrf", b"blue"))
    write(device, update(INSERT, table_entry=entry), update(INSERT, table_entry=route(raw, b"blue", b"Ethernet1")))
    assert device.switch.process(0, packet(1))[0][0] == 4
    assert read_entries(device, p4.TableEntry()) == [entry, route(raw, b"blue", b"Ethernet1")]
    for wrong in (route(raw, b"red", b"Ethernet2"), zone(raw, 1, b"blue")):
        (failure,) = failures(device, update(INSERT, table_entry=wrong))
        assert failure.code == "INVALID_ARGUMENT"
        assert "is not translated" in failure.message


@pytest.mark.parametrize("vrf", [b"", b"\xff"])
def test_what_is_no_string(vrf: bytes) -> None:
    device, _, raw = device_of()
    assert [f.code for f in failures(device, update(INSERT, table_entry=zone(raw, 1, vrf)))] == ["INVALID_ARGUMENT"]


def test_more_strings_than_the_switch_has_values() -> None:
    device, _, raw = device_of()
    outcomes = [failures(device, update(INSERT, table_entry=zone(raw, i, b"vrf%d" % i))) for i in range(1, 20)]
    assert outcomes[:15] == [[]] * 15
    assert all(outcomes[15:])
    assert len(read_entries(device, p4.TableEntry())) == 15


def test_the_client_takes_and_gives_strings() -> None:
    _, client, _ = device_of()
    client.insert("routes", {"vrf": "blue", "flow": "10.0.0.0/8"}, "forward", {"port": "Ethernet0"})
    (entry,) = client.read_table("routes")
    assert entry.match == {"meta.vrf": "blue", "hdr.h.flow": (0x0A00_0000, 8)}
    assert entry.params == {"port": "Ethernet0"}
    with pytest.raises(P4RuntimeError, match="it is a string"):
        client.insert("routes", {"vrf": 5}, "forward", {"port": "Ethernet0"})


def test_reconciling_keeps_what_strings_mean() -> None:
    device, client, raw = device_of()
    entries = [zone(raw, 1, b"blue"), route(raw, b"blue", b"Ethernet0")]
    write(device, *(update(INSERT, table_entry=e) for e in entries))
    before = device.switch.process(0, packet(1))
    client.set_pipeline(_core.Program.compile(str(HERE / "translated.p4")), action="reconcile_and_commit")
    assert read_entries(device, p4.TableEntry()) == entries
    write(device, update(INSERT, table_entry=zone(raw, 3, b"blue")))
    assert device.switch.process(0, packet(3)) == [(before[0][0], packet(3))]
