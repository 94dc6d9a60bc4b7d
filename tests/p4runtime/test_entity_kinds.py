"""Members, groups, one-shot sets, meters, value sets and roles, on the native core."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from raw import DELETE, INSERT, MODIFY, Raw, exact, failures, lpm, read, read_entries, request, update, write

from holdfast import _core
from holdfast.p4runtime import Device, LocalClient, P4InfoIndex, P4RuntimeError
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def program() -> Any:
    return _core.Program.compile(str(HERE / "stateful.p4"))


@pytest.fixture
def device(program: Any) -> Iterator[Device]:
    device = Device(1, _core.Switch(program, executor="interpreter"), executor="interpreter")
    with LocalClient(device) as client:
        client.set_pipeline(program)
        yield device


@pytest.fixture
def raw(program: Any) -> Raw:
    return Raw(P4InfoIndex.from_text(program.p4info))


def profile(raw: Raw, name: str = "ecmp") -> int:
    return raw.index.action_profiles[name].id


def forward(raw: Raw, port: int) -> Any:
    return raw.action("forward", bytes([port])).action


def member(raw: Raw, id: int, port: int = 1, **fields: Any) -> dict[str, Any]:
    fields = {"action": forward(raw, port), "action_profile_id": profile(raw)} | fields
    return {"action_profile_member": p4.ActionProfileMember(member_id=id, **fields)}


def group(raw: Raw, id: int, members: Any = (), **fields: Any) -> dict[str, Any]:
    of_group = [
        m if isinstance(m, p4.ActionProfileGroup.Member) else p4.ActionProfileGroup.Member(member_id=m, weight=1)
        for m in members
    ]
    fields = {"action_profile_id": profile(raw)} | fields
    return {"action_profile_group": p4.ActionProfileGroup(group_id=id, members=of_group, **fields)}


def route(raw: Raw, **action: Any) -> dict[str, Any]:
    action = action or {"action_profile_group_id": 1}
    return {"table_entry": raw.entry("routes", [lpm(1, b"\x0a\0\0\0", 8)], p4.TableAction(**action))}


def codes(device: Device, *updates: Any, atomicity: int = 0) -> list[str]:
    return [f.code for f in failures(device, *updates, atomicity=atomicity)]


def ecmp(device: Device, raw: Raw) -> None:
    """Write members 1 to 3, a group of these, and a route to the group."""
    write(device, *(update(INSERT, **member(raw, i, i)) for i in (1, 2, 3)))
    write(device, update(INSERT, **group(raw, 1, [1, 2, 3])))
    write(device, update(INSERT, **route(raw)))


def packet(flow: int, kind: int = 0, path: int = 0) -> bytes:
    return flow.to_bytes(4, "big") + kind.to_bytes(2, "big") + bytes([0, path])


def ports(device: Device, flow: int = 0x0A00_0001) -> set[int]:
    """Return the ports to which packets go that differ only in the field that the selector hashes."""
    return {port for path in range(64) for port, _ in device.switch.process(0, packet(flow, path=path))}


# ---- Action profiles ----


def test_a_group_spreads_and_is_read_back(device: Device, raw: Raw) -> None:
    ecmp(device, raw)
    assert ports(device) == {1, 2, 3}
    assert read_entries(device, p4.TableEntry()) == [route(raw)["table_entry"]]
    members = read(device, action_profile_member=p4.ActionProfileMember())
    assert [m.action_profile_member for m in members] == [member(raw, i, i)["action_profile_member"] for i in (1, 2, 3)]
    (found,) = read(device, action_profile_group=p4.ActionProfileGroup(action_profile_id=profile(raw)))
    assert found.action_profile_group == group(raw, 1, [1, 2, 3])["action_profile_group"]
    write(device, update(MODIFY, **group(raw, 1, [2])))
    assert ports(device) == {2}
    write(device, update(MODIFY, **member(raw, 2, 7)))
    assert ports(device) == {7}


def test_members_and_groups_one_by_one(device: Device, raw: Raw) -> None:
    ecmp(device, raw)
    wanted = p4.ActionProfileMember(action_profile_id=profile(raw), member_id=2)
    (found,) = read(device, action_profile_member=wanted)
    assert found == p4.Entity(**member(raw, 2, 2))
    for unknown in (
        {"action_profile_member": p4.ActionProfileMember(action_profile_id=profile(raw), member_id=9)},
        {"action_profile_group": p4.ActionProfileGroup(action_profile_id=profile(raw), group_id=9)},
        {"action_profile_member": p4.ActionProfileMember(action_profile_id=5)},
        {"action_profile_member": p4.ActionProfileMember(member_id=1)},
    ):
        with pytest.raises(P4RuntimeError) as e:
            read(device, **unknown)
        assert e.value.failures[0].code in ("NOT_FOUND", "INVALID_ARGUMENT")


Wrong = Callable[[Raw], tuple[int, dict[str, Any]]]
WRONG: dict[str, tuple[str, Wrong]] = {
    "a member again": ("ALREADY_EXISTS", lambda r: (INSERT, member(r, 1))),
    "a member that is not there": ("NOT_FOUND", lambda r: (MODIFY, member(r, 9))),
    "no member to delete": ("NOT_FOUND", lambda r: (DELETE, member(r, 9))),
    "a member of a group": ("FAILED_PRECONDITION", lambda r: (DELETE, member(r, 1))),
    "member zero": ("INVALID_ARGUMENT", lambda r: (INSERT, member(r, 0))),
    "an unknown profile": ("INVALID_ARGUMENT", lambda r: (INSERT, member(r, 4, action_profile_id=7))),
    "a member without action": ("INVALID_ARGUMENT", lambda r: (INSERT, member(r, 4, action=None))),
    "another table's action": (
        "INVALID_ARGUMENT",
        lambda r: (INSERT, member(r, 4, action=r.action("encapsulate", b"\1").action)),
    ),
    "a group again": ("ALREADY_EXISTS", lambda r: (INSERT, group(r, 1))),
    "a group of nobody": ("NOT_FOUND", lambda r: (INSERT, group(r, 2, [9]))),
    "a group in use": ("FAILED_PRECONDITION", lambda r: (DELETE, group(r, 1))),
    "no group to delete": ("NOT_FOUND", lambda r: (DELETE, group(r, 2))),
    "group zero": ("INVALID_ARGUMENT", lambda r: (INSERT, group(r, 0))),
    "another size of group": ("INVALID_ARGUMENT", lambda r: (MODIFY, group(r, 1, [1], max_size=5))),
    "a negative size of group": ("INVALID_ARGUMENT", lambda r: (INSERT, group(r, 2, max_size=-1))),
    "a member twice": ("INVALID_ARGUMENT", lambda r: (INSERT, group(r, 2, [1, 1]))),
    "no weight": (
        "INVALID_ARGUMENT",
        lambda r: (INSERT, group(r, 2, [p4.ActionProfileGroup.Member(member_id=1)])),
    ),
    "a port too high": (
        "INVALID_ARGUMENT",
        lambda r: (INSERT, group(r, 2, [p4.ActionProfileGroup.Member(member_id=1, weight=1, watch_port=b"\2\0")])),
    ),
    "a negative port": (
        "INVALID_ARGUMENT",
        lambda r: (INSERT, group(r, 2, [p4.ActionProfileGroup.Member(member_id=1, weight=1, watch=-1)])),
    ),
    "a group without selector": (
        "INVALID_ARGUMENT",
        lambda r: (INSERT, group(r, 2, action_profile_id=profile(r, "tunnels"))),
    ),
    "a plain action": ("INVALID_ARGUMENT", lambda r: (MODIFY, route(r, action=forward(r, 1)))),
    "an unknown member in an entry": ("NOT_FOUND", lambda r: (MODIFY, route(r, action_profile_member_id=9))),
    "an unknown group in an entry": ("NOT_FOUND", lambda r: (MODIFY, route(r, action_profile_group_id=9))),
    "member zero in an entry": ("INVALID_ARGUMENT", lambda r: (MODIFY, route(r, action_profile_member_id=0))),
    "a group where there is no selector": (
        "INVALID_ARGUMENT",
        lambda r: (
            INSERT,
            {"table_entry": r.entry("encapsulation", [exact(1, b"\1")], p4.TableAction(action_profile_group_id=1))},
        ),
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_profile_updates(device: Device, raw: Raw, case: str) -> None:
    ecmp(device, raw)
    before = everything(device)
    code, make = WRONG[case]
    kind, entity = make(raw)
    assert codes(device, update(kind, **entity)) == [code]
    assert codes(device, update(DELETE, **route(raw)), update(kind, **entity), atomicity=1)[1:] in ([code], [])
    if everything(device) != before:  # the entry was what the other one depended on
        assert code == "FAILED_PRECONDITION" or case == "a plain action"


def everything(device: Device) -> list[Any]:
    kinds: list[dict[str, Any]] = [
        {"table_entry": p4.TableEntry(meter_config=p4.MeterConfig(), counter_data=p4.CounterData())},
        {"action_profile_member": p4.ActionProfileMember()},
        {"action_profile_group": p4.ActionProfileGroup()},
        {"meter_entry": p4.MeterEntry()},
        {"direct_meter_entry": p4.DirectMeterEntry()},
        {"direct_counter_entry": p4.DirectCounterEntry()},
        {"value_set_entry": p4.ValueSetEntry()},
    ]
    return [entity for kind in kinds for entity in read(device, **kind)]


def test_a_profile_has_room_for_its_members(device: Device, raw: Raw) -> None:
    tunnels = {"action": raw.action("encapsulate", b"\5").action, "action_profile_id": profile(raw, "tunnels")}
    write(device, *(update(INSERT, **member(raw, i, **tunnels)) for i in range(1, 5)))
    assert codes(device, update(INSERT, **member(raw, 5, **tunnels))) == ["RESOURCE_EXHAUSTED"]
    entry = raw.entry("encapsulation", [exact(1, b"\1")], p4.TableAction(action_profile_member_id=2))
    write(device, update(INSERT, table_entry=entry))
    assert read_entries(device, p4.TableEntry(table_id=entry.table_id)) == [entry]
    assert codes(device, update(DELETE, **member(raw, 2, **tunnels))) == ["FAILED_PRECONDITION"]
    write(device, update(DELETE, table_entry=entry))
    write(device, update(DELETE, **member(raw, 2, **tunnels)))


def test_watched_ports(device: Device, raw: Raw) -> None:
    """Check ports given as bytes or as the deprecated number, each read back as written.

    Members whose port is down are not chosen.
    """
    members = [
        p4.ActionProfileGroup.Member(member_id=1, weight=1, watch_port=b"\1"),
        p4.ActionProfileGroup.Member(member_id=2, weight=2, watch=2),
        p4.ActionProfileGroup.Member(member_id=3, weight=1),
    ]
    write(device, *(update(INSERT, **member(raw, i, i)) for i in (1, 2, 3)))
    write(device, update(INSERT, **group(raw, 1, members, max_size=5)), update(INSERT, **route(raw)))
    (found,) = read(device, action_profile_group=p4.ActionProfileGroup())
    assert found == p4.Entity(**group(raw, 1, members, max_size=5))
    assert ports(device) == {1, 2, 3}
    device.switch.set_port_up(2, False)
    assert ports(device) == {1, 3}
    device.switch.set_port_up(1, False)
    assert ports(device) == {3}
    device.switch.set_port_up(2, True)
    assert ports(device) == {2, 3}


def one_shot(raw: Raw, *actions: tuple[int, int], **fields: Any) -> dict[str, Any]:
    items = [p4.ActionProfileAction(action=forward(raw, port), weight=weight) for port, weight in actions]
    return route(raw, action_profile_action_set=p4.ActionProfileActionSet(action_profile_actions=items, **fields))


def test_one_shot_sets(device: Device, raw: Raw) -> None:
    entry = one_shot(raw, (1, 1), (2, 2), (2, 1))
    entry["table_entry"].action.action_profile_action_set.action_profile_actions[1].watch = 2
    entry["table_entry"].action.action_profile_action_set.action_profile_actions[2].watch_port = b"\3"
    write(device, update(INSERT, **entry))
    assert read_entries(device, p4.TableEntry()) == [entry["table_entry"]]
    assert ports(device) == {1, 2}
    write(device, update(MODIFY, **one_shot(raw, (5, 1))))
    assert ports(device) == {5}
    assert codes(device, update(MODIFY, **one_shot(raw, (5, 0)))) == ["INVALID_ARGUMENT"]
    assert codes(device, update(MODIFY, **one_shot(raw, (5, -1)))) == ["INVALID_ARGUMENT"]
    assert ports(device) == {5}
    write(device, update(DELETE, **one_shot(raw)))
    assert read_entries(device, p4.TableEntry()) == []


def test_the_modes_of_a_set_are_the_selectors(device: Device, raw: Raw) -> None:
    same = one_shot(raw, (1, 1), action_selection_mode=1, size_semantics=1)
    write(device, update(INSERT, **same))
    assert read_entries(device, p4.TableEntry()) == [same["table_entry"]]
    for other in ({"action_selection_mode": 2}, {"size_semantics": 2}, {"group_action": forward(raw, 1)}):
        assert codes(device, update(MODIFY, **one_shot(raw, (1, 1), **other))) == ["UNIMPLEMENTED"]


# ---- Meters ----

RATE = p4.MeterConfig(cir=1, cburst=2, pir=1, pburst=4)
RATES = {"cir": 10, "cburst": 20, "pir": 30, "pburst": 40}


def rate(raw: Raw, index: int | None = 3, **fields: Any) -> dict[str, Any]:
    message = p4.MeterEntry(meter_id=raw.index.meters["port_rates"].id, **fields)
    if index is not None:
        message.index.index = index
    return {"meter_entry": message}


def test_indexed_meters(device: Device, raw: Raw) -> None:
    config = p4.MeterConfig(**RATES)
    assert read(device, **rate(raw)) == [p4.Entity(**rate(raw))]
    write(device, update(MODIFY, **rate(raw, config=config)))
    assert read(device, **rate(raw)) == [p4.Entity(**rate(raw, config=config))]
    assert len(read(device, **rate(raw, None))) == 16
    assert len(read(device, meter_entry=p4.MeterEntry())) == 16
    write(device, update(MODIFY, **rate(raw, None, config=config)))
    assert all(e.meter_entry.config == config for e in read(device, **rate(raw, None)))
    write(device, update(MODIFY, **rate(raw)))
    assert read(device, **rate(raw)) == [p4.Entity(**rate(raw))]


@pytest.mark.parametrize(
    ("kind", "index", "fields", "code"),
    [
        (INSERT, 3, {}, "INVALID_ARGUMENT"),
        (DELETE, 3, {}, "INVALID_ARGUMENT"),
        (MODIFY, -1, {}, "INVALID_ARGUMENT"),
        (MODIFY, 16, {}, "OUT_OF_RANGE"),
        (MODIFY, 3, {"config": p4.MeterConfig(cir=-1)}, "INVALID_ARGUMENT"),
        (MODIFY, 3, {"config": p4.MeterConfig(**RATES, eburst=1)}, "INVALID_ARGUMENT"),
        (
            MODIFY,
            3,
            {"counter_data": p4.MeterCounterData(red=p4.CounterData(packet_count=1))},
            "INVALID_ARGUMENT",
        ),
    ],
)
def test_wrong_meters(device: Device, raw: Raw, kind: int, index: int, fields: dict[str, Any], code: str) -> None:
    assert codes(device, update(kind, **rate(raw, index, **fields))) == [code]


def test_meters_mark_and_count(device: Device, raw: Raw) -> None:
    """Check bursts of 100 and 200 bytes with packets of 8 bytes: twelve are green, twelve more yellow, the rest red."""
    write(device, update(MODIFY, **rate(raw, 0, config=p4.MeterConfig(cir=1, cburst=100, pir=1, pburst=200))))
    ecmp(device, raw)
    colours = [out[6] for _ in range(30) for _, out in device.switch.process(0, packet(0x0A00_0001))]
    assert colours == [0] * 12 + [1] * 13 + [2] * 5
    (found,) = read(device, **rate(raw, 0, counter_data=p4.MeterCounterData()))
    counted = found.meter_entry.counter_data
    assert [c.packet_count for c in (counted.green, counted.yellow, counted.red)] == [12, 13, 5]
    config = found.meter_entry.config
    write(device, update(MODIFY, **rate(raw, 0, config=config)))
    assert read(device, **rate(raw, 0, counter_data=p4.MeterCounterData())) == [found]
    write(device, update(MODIFY, **rate(raw, 0, config=config, counter_data=p4.MeterCounterData())))
    (found,) = read(device, **rate(raw, 0, counter_data=p4.MeterCounterData()))
    assert found.meter_entry.config == config
    assert found.meter_entry.counter_data.green.packet_count == 0


def policer(raw: Raw, **fields: Any) -> Any:
    return raw.entry("policers", [exact(1, b"\1")], raw.action("police"), **fields)


def key(entry: Any) -> Any:
    return p4.TableEntry(table_id=entry.table_id, match=entry.match)


def direct_meter(raw: Raw, **fields: Any) -> dict[str, Any]:
    return {"direct_meter_entry": p4.DirectMeterEntry(table_entry=key(policer(raw)), **fields)}


def test_direct_meters(device: Device, raw: Raw) -> None:
    config = p4.MeterConfig(**RATES)
    assert codes(device, update(MODIFY, **direct_meter(raw))) == ["NOT_FOUND"]
    write(device, update(INSERT, table_entry=policer(raw, meter_config=config)))
    wanted = p4.TableEntry(table_id=policer(raw).table_id, meter_config=p4.MeterConfig())
    assert read_entries(device, wanted) == [policer(raw, meter_config=config)]
    assert read_entries(device, p4.TableEntry(table_id=wanted.table_id)) == [policer(raw)]
    assert read(device, direct_meter_entry=p4.DirectMeterEntry()) == [p4.Entity(**direct_meter(raw, config=config))]
    write(device, update(MODIFY, **direct_meter(raw)))
    assert read_entries(device, wanted) == [policer(raw)]
    write(device, update(MODIFY, **direct_meter(raw, config=config)))
    assert read(device, **direct_meter(raw)) == [p4.Entity(**direct_meter(raw, config=config))]
    write(device, update(MODIFY, table_entry=policer(raw)))  # without a configuration: the default one
    assert read_entries(device, wanted) == [policer(raw)]
    without_action = policer(raw, meter_config=config)
    without_action.ClearField("action")
    write(device, update(MODIFY, table_entry=without_action))
    assert read_entries(device, wanted) == [policer(raw, meter_config=config)]


def test_a_direct_meter_polices(device: Device, raw: Raw) -> None:
    write(device, update(INSERT, table_entry=policer(raw, meter_config=RATE)))
    write(device, update(INSERT, **one_shot(raw, (1, 1))))
    entry = raw.entry("routes", [], one_shot(raw, (1, 1))["table_entry"].action)
    write(device, update(INSERT, table_entry=entry))
    wanted = raw.index.value_sets["wanted_kinds"].id
    members = [p4.ValueSetMember(match=[exact(1, b"\0")])]
    write(device, update(MODIFY, value_set_entry=p4.ValueSetEntry(value_set_id=wanted, members=members)))
    assert [len(device.switch.process(0, packet(1))) for _ in range(6)] == [1, 1, 1, 1, 0, 0]
    message = direct_meter(raw, counter_data=p4.MeterCounterData())
    (found,) = read(device, **message)
    counted = found.direct_meter_entry.counter_data
    assert [c.packet_count for c in (counted.green, counted.yellow, counted.red)] == [2, 2, 2]
    zero = p4.TableEntry(table_id=policer(raw).table_id, meter_counter_data=p4.MeterCounterData(), meter_config=RATE)
    zero.match.extend(policer(raw).match)
    write(device, update(MODIFY, table_entry=zero))
    (found,) = read(device, **message)
    assert not found.direct_meter_entry.counter_data.green.packet_count
    assert found.direct_meter_entry.config == RATE
    plain = p4.TableEntry(table_id=entry.table_id)
    assert all(not e.HasField("meter_counter_data") for e in read_entries(device, plain))


def test_entries_without_what_they_ask_for(device: Device, raw: Raw) -> None:
    learned = raw.entry("learned", [exact(1, b"\1")], raw.action("forward", b"\1"))
    for fields in (
        {"meter_config": p4.MeterConfig()},
        {"meter_counter_data": p4.MeterCounterData()},
        {"counter_data": p4.CounterData()},
        {"idle_timeout_ns": -1},
        {"time_since_last_hit": p4.TableEntry.IdleTimeout()},
    ):
        entry = p4.TableEntry(**fields)
        entry.MergeFrom(learned)
        assert codes(device, update(INSERT, table_entry=entry)) == ["INVALID_ARGUMENT"]
    assert codes(device, update(INSERT, table_entry=policer(raw, idle_timeout_ns=1))) == ["INVALID_ARGUMENT"]


def test_an_error_has_one_cause(device: Device, raw: Raw) -> None:
    """Check that what could be refused for several reasons names the one."""

    def said(kind: int, **entity: Any) -> str:
        with pytest.raises(P4RuntimeError) as refused:
            device.write(request(update(kind, **entity)))
        return refused.value.failures[0].message

    learned = raw.entry("learned", action=raw.action("forward", b"\1"), is_default_action=True)
    learned.idle_timeout_ns = 5
    assert said(MODIFY, table_entry=learned).endswith("idle_timeout_ns is given, but the default entry is never idle")
    for field in ("cir", "cburst", "pir", "pburst"):
        entry = policer(raw)
        setattr(entry.meter_config, field, -1)
        assert f"{field} is negative" in said(INSERT, table_entry=entry)


# ---- Idle timeouts ----


def test_idle_timeouts_are_kept(device: Device, raw: Raw) -> None:
    entry = raw.entry("learned", [exact(1, b"\1")], raw.action("forward", b"\1"), idle_timeout_ns=1_000_000)
    write(device, update(INSERT, table_entry=entry))
    assert read_entries(device, p4.TableEntry(table_id=entry.table_id)) == [entry]
    device.switch.process(0, packet(1), 5_000_000)
    device.switch.process(0, packet(2), 12_000_000)
    wanted = p4.TableEntry(table_id=entry.table_id, time_since_last_hit=p4.TableEntry.IdleTimeout())
    (found,) = read_entries(device, wanted)
    assert found.time_since_last_hit.elapsed_ns == 7_000
    without_action = p4.TableEntry()
    without_action.CopyFrom(entry)
    without_action.ClearField("action")
    without_action.idle_timeout_ns = 7_000_000
    write(device, update(MODIFY, table_entry=without_action))
    (found,) = read_entries(device, p4.TableEntry(table_id=entry.table_id))
    assert (found.idle_timeout_ns, found.action) == (7_000_000, entry.action)
    write(device, update(DELETE, table_entry=entry))
    write(device, update(INSERT, table_entry=entry), update(MODIFY, table_entry=without_action), atomicity=1)
    (found,) = read_entries(device, p4.TableEntry(table_id=entry.table_id))
    assert (found.idle_timeout_ns, found.action) == (7_000_000, entry.action)


def test_idle_notifications(device: Device, raw: Raw) -> None:
    """Check one notification per table, with key, timeout and metadata, repeated after each timeout, to roles with that table."""
    sent: list[Any] = []
    streams = {}
    for role in ("", "policy"):
        session = device.open(lambda message, role=role: sent.append((role, message)))
        arbitration = p4.MasterArbitrationUpdate(device_id=1, role=p4.Role(name=role) if role else None)
        arbitration.election_id.low = 1_000
        device.handle(session, p4.StreamMessageRequest(arbitration=arbitration))
        streams[role] = session
    entries = [
        raw.entry(
            "learned",
            [exact(1, bytes([i]))],
            raw.action("forward", b"\1"),
            idle_timeout_ns=i * 1_000_000,
            metadata=b"m",
        )
        for i in (1, 2, 9)
    ]
    device.write(request(*(update(INSERT, table_entry=e) for e in entries), election_id=1_000))
    sent.clear()
    device.switch.set_now_ps(3_000_000_000)
    device.collect_idle(77)
    assert {role for role, _ in sent} == {"", "policy"}
    notification = sent[0][1].idle_timeout_notification
    assert notification.timestamp == 77
    expected = []
    for entry in entries[:2]:
        expected.append(p4.TableEntry())
        expected[-1].CopyFrom(entry)
        expected[-1].ClearField("action")
    assert list(notification.table_entry) == expected
    sent.clear()
    device.collect_idle(78)
    assert sent == []
    device.switch.process(0, packet(9), 8_000_000_000)
    device.switch.set_now_ps(9_500_000_000)
    device.collect_idle(79)
    named = {m.match[0].exact.value for m in sent[0][1].idle_timeout_notification.table_entry}
    assert named == {b"\1", b"\2"}


# ---- Value sets ----


def kinds(raw: Raw, *values: bytes) -> dict[str, Any]:
    members = [p4.ValueSetMember(match=[exact(1, value)]) for value in values]
    return {"value_set_entry": p4.ValueSetEntry(value_set_id=raw.index.value_sets["wanted_kinds"].id, members=members)}


def test_value_sets(device: Device, raw: Raw) -> None:
    assert read(device, value_set_entry=p4.ValueSetEntry()) == [p4.Entity(**kinds(raw))]
    write(device, update(MODIFY, **kinds(raw, b"\1", b"\2\3")))
    assert read(device, **kinds(raw)) == [p4.Entity(**kinds(raw, b"\1", b"\2\3"))]
    for kind, values, code in (
        (INSERT, [b"\1"], "INVALID_ARGUMENT"),
        (DELETE, [], "INVALID_ARGUMENT"),
        (MODIFY, [b"\1", b"\0\1"], "ALREADY_EXISTS"),
        (MODIFY, [b"\1", b"\2", b"\3", b"\4", b"\5"], "RESOURCE_EXHAUSTED"),
        (MODIFY, [b"\1\0\0"], "INVALID_ARGUMENT"),
        (MODIFY, [b""], "INVALID_ARGUMENT"),
    ):
        assert codes(device, update(kind, **kinds(raw, *values))) == [code]
    write(device, update(MODIFY, **kinds(raw)))
    assert read(device, **kinds(raw)) == [p4.Entity(**kinds(raw))]


# ---- Batches over all of it ----


def test_a_batch_of_everything_is_all_or_nothing(device: Device, raw: Raw) -> None:
    ecmp(device, raw)
    write(device, update(INSERT, table_entry=policer(raw)))
    before = everything(device)
    batch = [
        update(INSERT, **member(raw, 4)),
        update(MODIFY, **group(raw, 1, [4])),
        update(DELETE, **member(raw, 1)),
        update(MODIFY, **rate(raw, None, config=p4.MeterConfig(**RATES))),
        update(MODIFY, **direct_meter(raw, config=p4.MeterConfig(**RATES))),
        update(MODIFY, **kinds(raw, b"\1")),
        update(MODIFY, table_entry=policer(raw, counter_data=p4.CounterData(packet_count=5))),
        update(DELETE, **route(raw)),
        update(DELETE, **group(raw, 1)),
        update(DELETE, table_entry=policer(raw)),
    ]
    for atomicity in (1, 2):
        outcome = codes(device, *batch, update(DELETE, **member(raw, 9)), atomicity=atomicity)
        assert outcome == ["ABORTED"] * 10 + ["NOT_FOUND"]
        assert everything(device) == before
    write(device, *batch, atomicity=1)
    assert everything(device) != before


def test_reconciling_keeps_everything(device: Device, raw: Raw, program: Any) -> None:
    ecmp(device, raw)
    config = p4.MeterConfig(**RATES)
    write(device, update(INSERT, table_entry=policer(raw, meter_config=config, metadata=b"m")))
    write(device, update(MODIFY, **rate(raw, config=config)), update(MODIFY, **kinds(raw, b"\1")))
    timed = raw.entry("learned", [exact(1, b"\1")], raw.action("forward", b"\1"), idle_timeout_ns=5_000_000)
    write(device, update(INSERT, table_entry=timed))
    before = everything(device)
    message = p4.SetForwardingPipelineConfigRequest(device_id=1)
    message.election_id.low = 1
    message.action = p4.SetForwardingPipelineConfigRequest.RECONCILE_AND_COMMIT
    message.config.p4info.CopyFrom(raw.index.message)
    message.config.p4_device_config = program.artifact()
    device.set_forwarding_pipeline_config(message)
    assert everything(device) == before
    assert ports(device) == {1, 2, 3}


def test_saved_writes_are_committed(device: Device, raw: Raw, program: Any) -> None:
    client = LocalClient(device, election_id=1_000)
    client.set_pipeline(program, action="verify_and_save")
    device.write(request(update(INSERT, **member(raw, 1, 6)), election_id=1_000))
    device.write(request(update(INSERT, **route(raw, action_profile_member_id=1)), election_id=1_000))
    assert ports(device) == {0}
    client.set_pipeline(action="commit")
    assert ports(device) == {6}


# ---- Roles ----


def test_roles_may_what_is_theirs_or_everybodys(device: Device, raw: Raw) -> None:
    clients = {role: LocalClient(device, election_id=5, role=role) for role in ("policy", "statistics")}
    assert all(c.is_primary for c in clients.values())
    marks = p4.RegisterEntry(register_id=raw.index.registers["marks"].id)
    marks.index.index = 1
    marks.data.bitstring = b"\7"

    def outcome(role: str, *updates: Any) -> list[str]:
        try:
            device.write(request(*updates, election_id=5, role=role))
        except P4RuntimeError as e:
            return [f.code for f in e.failures]
        return []

    learned = raw.entry("learned", [exact(1, b"\1")], raw.action("forward", b"\1"))
    assert outcome("statistics", update(INSERT, table_entry=policer(raw))) == ["PERMISSION_DENIED"]
    assert outcome("policy", update(INSERT, table_entry=policer(raw))) == []
    assert outcome("statistics", update(MODIFY, **direct_meter(raw))) == ["PERMISSION_DENIED"]
    assert outcome("policy", update(MODIFY, register_entry=marks)) == ["PERMISSION_DENIED"]
    assert outcome("statistics", update(MODIFY, register_entry=marks)) == []
    assert outcome("statistics", update(INSERT, table_entry=learned)) == []
    assert outcome("policy", update(DELETE, table_entry=learned)) == []
    for role, count in (("", 1), ("policy", 1), ("statistics", 0)):
        wanted = p4.ReadRequest(device_id=1, role=role, entities=[p4.Entity(table_entry=p4.TableEntry())])
        assert sum(len(r.entities) for r in device.read(wanted)) == count
    named = p4.Entity(table_entry=p4.TableEntry(table_id=policer(raw).table_id))
    with pytest.raises(P4RuntimeError) as e:
        list(device.read(p4.ReadRequest(device_id=1, role="statistics", entities=[named])))
    assert e.value.failures[0].code == "PERMISSION_DENIED"
