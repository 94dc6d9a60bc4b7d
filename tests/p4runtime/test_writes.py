"""Writes and reads of every entity, and the documented refusal of every wrong one, with raw messages on both cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from device_bench import Bench
from raw import (
    DELETE,
    INSERT,
    MODIFY,
    Raw,
    exact,
    failures,
    group,
    lpm,
    optional,
    range_,
    read,
    read_entries,
    request,
    session,
    ternary,
    update,
    write,
)

from holdfast.p4runtime import P4RuntimeError
from holdfast.p4runtime.stubs import any_pb2
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4

ROLLBACK = p4.WriteRequest.ROLLBACK_ON_ERROR
ATOMIC = p4.WriteRequest.DATAPLANE_ATOMIC


@pytest.fixture
def raw(bench: Bench) -> Raw:
    bench.primary()
    return Raw(bench.index)


def acl_entry(raw: Raw, **fields: Any) -> Any:
    matches = [
        exact(1, b"\x08\0"),
        ternary(2, b"\x0a\0\0\1", b"\xff\0\0\xff"),
        range_(3, b"\x14", b"\x40"),
        optional(4, b"\6"),
    ]
    return raw.entry("acl", matches, raw.action("to_cpu", b"\x03"), **{"priority": 10, **fields})


# ---- Table entries ----


def test_insert_read_modify_delete(bench: Bench, raw: Raw) -> None:
    write(bench.device, update(INSERT, table_entry=raw.route(metadata=b"mine", controller_metadata=7)))
    (found,) = read_entries(bench.device, raw.entry("ipv4_lpm"))
    assert found == raw.route(metadata=b"mine", controller_metadata=7)
    changed = raw.route(port=b"\x05")
    write(bench.device, update(MODIFY, table_entry=changed))
    assert read_entries(bench.device, raw.entry("ipv4_lpm")) == [changed]
    write(bench.device, update(DELETE, table_entry=raw.entry("ipv4_lpm", [lpm(1, b"\x0a\0\0\0", 8)])))
    assert read_entries(bench.device, raw.entry("ipv4_lpm")) == []


def test_all_match_kinds_read_back_as_written(bench: Bench, raw: Raw) -> None:
    write(bench.device, update(INSERT, table_entry=acl_entry(raw)))
    assert read_entries(bench.device, raw.entry("acl")) == [acl_entry(raw)]


def test_leading_zeros_are_accepted_and_read_back_short(bench: Bench, raw: Raw) -> None:
    long = raw.entry(
        "ipv4_lpm", [lpm(1, b"\0\0\x0a\0\0\0", 8)], raw.action("forward", b"\0\0\x01", b"\0" * 6 + b"\x02")
    )
    write(bench.device, update(INSERT, table_entry=long))
    assert read_entries(bench.device, raw.entry("ipv4_lpm")) == [raw.route()]
    assert [f.code for f in failures(bench.device, update(INSERT, table_entry=raw.route()))] == ["ALREADY_EXISTS"]


def test_dont_care_entry(bench: Bench, raw: Raw) -> None:
    everything = raw.entry("ipv4_lpm", [], raw.action("drop"))
    write(bench.device, update(INSERT, table_entry=everything))
    assert read_entries(bench.device, raw.entry("ipv4_lpm")) == [everything]
    write(bench.device, update(DELETE, table_entry=raw.entry("ipv4_lpm")))
    assert read_entries(bench.device, raw.entry("ipv4_lpm")) == []


def test_modify_without_action_keeps_it_and_replaces_metadata(bench: Bench, raw: Raw) -> None:
    write(bench.device, update(INSERT, table_entry=raw.route(metadata=b"old")))
    key = raw.entry("ipv4_lpm", [lpm(1, b"\x0a\0\0\0", 8)], metadata=b"new")
    write(bench.device, update(MODIFY, table_entry=key))
    assert read_entries(bench.device, raw.entry("ipv4_lpm")) == [raw.route(metadata=b"new")]
    missing = raw.entry("ipv4_lpm", [lpm(1, b"\x0b\0\0\0", 8)])
    assert [f.code for f in failures(bench.device, update(MODIFY, table_entry=missing))] == ["NOT_FOUND"]


def test_delete_looks_at_the_key_only(bench: Bench, raw: Raw) -> None:
    write(bench.device, update(INSERT, table_entry=raw.route()))
    nonsense = raw.entry("ipv4_lpm", [lpm(1, b"\x0a\0\0\0", 8)], raw.action("learn"), idle_timeout_ns=5)
    write(bench.device, update(DELETE, table_entry=nonsense))
    assert read_entries(bench.device, raw.entry("ipv4_lpm")) == []


def with_field(entry: Any, **fields: Any) -> Any:
    changed = p4.TableEntry()
    changed.CopyFrom(entry)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


WRONG_ENTRIES: list[tuple[str, str, str, Callable[[Raw], Any]]] = [
    ("unknown table", "INVALID_ARGUMENT", "no table has id 99", lambda r: with_field(r.route(), table_id=99)),
    ("no table", "INVALID_ARGUMENT", "no table has id 0", lambda r: with_field(r.route(), table_id=0)),
    ("action id", "INVALID_ARGUMENT", "no action has id 5",
     lambda r: r.entry("ipv4_lpm", [lpm(1, b"\x0a", 32)], p4.TableAction(action=p4.Action(action_id=5)))),
    ("action of another table", "INVALID_ARGUMENT", "of table 'BasicIngress.ipv4_lpm'",
     lambda r: r.entry("ipv4_lpm", [lpm(1, b"\x0a", 32)], r.action("learn"))),
    ("no action", "INVALID_ARGUMENT", "the action is unset", lambda r: r.entry("ipv4_lpm", [lpm(1, b"\x0a", 32)])),
    ("member of a direct table", "INVALID_ARGUMENT", "action_profile_member_id",
     lambda r: r.entry("ipv4_lpm", [lpm(1, b"\x0a", 32)], p4.TableAction(action_profile_member_id=1))),
    ("field too wide", "INVALID_ARGUMENT", "does not fit into 32 bits",
     lambda r: r.entry("ipv4_lpm", [lpm(1, b"\1\0\0\0\0", 32)], r.action("drop"))),
    ("empty value", "INVALID_ARGUMENT", "empty", lambda r: r.entry("ipv4_lpm", [lpm(1, b"", 32)], r.action("drop"))),
    ("param too wide", "INVALID_ARGUMENT", "does not fit into 9 bits", lambda r: r.route(port=b"\x02\0")),
    ("param empty", "INVALID_ARGUMENT", "empty", lambda r: r.route(port=b"")),
    ("param missing", "INVALID_ARGUMENT", "parameter 'port' is missing",
     lambda r: r.entry("ipv4_lpm", [lpm(1, b"\x0a", 32)],
                       p4.TableAction(action=p4.Action(action_id=r.index.actions["forward"].id)))),
    ("param unknown", "INVALID_ARGUMENT", "no parameter has id 9",
     lambda r: r.entry("ipv4_lpm", [lpm(1, b"\x0a", 32)], p4.TableAction(action=p4.Action(
         action_id=r.index.actions["drop"].id, params=[p4.Action.Param(param_id=9, value=b"\0")])))),
    ("param twice", "INVALID_ARGUMENT", "given twice",
     lambda r: r.entry("ipv4_lpm", [lpm(1, b"\x0a", 32)], p4.TableAction(action=p4.Action(
         action_id=r.index.actions["to_cpu"].id, params=[p4.Action.Param(param_id=1, value=b"\0")] * 2)))),
    ("match kind", "INVALID_ARGUMENT", "the match is exact, the field is lpm",
     lambda r: r.entry("ipv4_lpm", [exact(1, b"\x0a")], r.action("drop"))),
    ("match unset", "INVALID_ARGUMENT", "the match is unset",
     lambda r: r.entry("ipv4_lpm", [p4.FieldMatch(field_id=1)], r.action("drop"))),
    ("field id", "INVALID_ARGUMENT", "no match field has id 8",
     lambda r: r.entry("ipv4_lpm", [lpm(8, b"\x0a", 32)], r.action("drop"))),
    ("field twice", "INVALID_ARGUMENT", "given twice",
     lambda r: r.entry("ipv4_lpm", [lpm(1, b"\x0a", 32)] * 2, r.action("drop"))),
    ("exact field missing", "INVALID_ARGUMENT", "'hdr.ethernet.src_addr' is missing",
     lambda r: r.entry("learned", [], r.action("pass"))),
    ("prefix of 0", "INVALID_ARGUMENT", "leave a don't-care field out",
     lambda r: r.entry("ipv4_lpm", [lpm(1, b"\0", 0)], r.action("drop"))),
    ("prefix of 33", "INVALID_ARGUMENT", "a prefix of 33 bits in a field of 32",
     lambda r: r.entry("ipv4_lpm", [lpm(1, b"\0", 33)], r.action("drop"))),
    ("prefix below 0", "INVALID_ARGUMENT", "prefix length -1",
     lambda r: r.entry("ipv4_lpm", [lpm(1, b"\0", -1)], r.action("drop"))),
    ("bits behind the prefix", "INVALID_ARGUMENT", "behind its prefix",
     lambda r: r.entry("ipv4_lpm", [lpm(1, b"\x0a\0\0\1", 8)], r.action("drop"))),
    ("mask of 0", "INVALID_ARGUMENT", "holds everything",
     lambda r: r.entry("acl", [exact(1, b"\1"), ternary(2, b"\0", b"\0")], r.action("drop"), priority=1)),
    ("bits outside the mask", "INVALID_ARGUMENT", "where the mask has none",
     lambda r: r.entry("acl", [exact(1, b"\1"), ternary(2, b"\3", b"\1")], r.action("drop"), priority=1)),
    ("range upside down", "INVALID_ARGUMENT", "above the high end",
     lambda r: r.entry("acl", [exact(1, b"\1"), range_(3, b"\2", b"\1")], r.action("drop"), priority=1)),
    ("range of everything", "INVALID_ARGUMENT", "holds everything",
     lambda r: r.entry("acl", [exact(1, b"\1"), range_(3, b"\0", b"\xff\xff")], r.action("drop"), priority=1)),
    ("priority missing", "INVALID_ARGUMENT", "needs a priority above zero", lambda r: acl_entry(r, priority=0)),
    ("priority below zero", "INVALID_ARGUMENT", "needs a priority above zero", lambda r: acl_entry(r, priority=-1)),
    ("priority without need", "INVALID_ARGUMENT", "no priority", lambda r: r.route(priority=1)),
    ("default-only action", "PERMISSION_DENIED", "not allowed in an entry",
     lambda r: r.entry("acl", [exact(1, b"\1")], r.action("pass"), priority=1)),
    ("const table", "PERMISSION_DENIED", "constant",
     lambda r: r.entry("classes", [exact(1, b"\1")], r.action("set_class", b"\1"))),
    ("keyless table", "INVALID_ARGUMENT", "no key", lambda r: r.entry("keyless", [], r.action("pass"))),
    ("is_const", "INVALID_ARGUMENT", "is_const", lambda r: r.route(is_const=True)),
    ("insert default", "INVALID_ARGUMENT", "can only be modified",
     lambda r: r.entry("ipv4_lpm", [], r.action("drop"), is_default_action=True)),
    ("idle timeout", "INVALID_ARGUMENT", "idle_timeout_ns is given, but the program",
     lambda r: r.route(idle_timeout_ns=1)),
    ("time since last hit", "INVALID_ARGUMENT", "time_since_last_hit is given, but the program gives the table no",
     lambda r: r.route(time_since_last_hit=p4.TableEntry.IdleTimeout())),
    ("meter of a table without", "INVALID_ARGUMENT", "no direct meter",
     lambda r: r.route(meter_config=p4.MeterConfig())),
    ("counter of a table without", "INVALID_ARGUMENT", "no direct counter",
     lambda r: acl_entry(r, counter_data=p4.CounterData())),
    ("negative counter", "INVALID_ARGUMENT", "not negative",
     lambda r: r.route(counter_data=p4.CounterData(packet_count=-1))),
]  # fmt: skip


@pytest.mark.parametrize(("code", "text", "make"), [w[1:] for w in WRONG_ENTRIES], ids=[w[0] for w in WRONG_ENTRIES])
def test_wrong_inserts(bench: Bench, raw: Raw, code: str, text: str, make: Callable[[Raw], Any]) -> None:
    before = read_entries(bench.device, p4.TableEntry())
    for atomicity in (0, ROLLBACK):
        (failure,) = failures(bench.device, update(INSERT, table_entry=make(raw)), atomicity=atomicity)
        assert failure.code == code
        assert text in failure.message
    assert read_entries(bench.device, p4.TableEntry()) == before


def test_existence(bench: Bench, raw: Raw) -> None:
    write(bench.device, update(INSERT, table_entry=raw.route()))
    other = raw.route(prefix=b"\x0b\0\0\0")
    result = failures(
        bench.device,
        update(INSERT, table_entry=raw.route(port=b"\x09")),
        update(MODIFY, table_entry=other),
        update(DELETE, table_entry=other),
    )
    assert [(f.index, f.code) for f in result] == [(0, "ALREADY_EXISTS"), (1, "NOT_FOUND"), (2, "NOT_FOUND")]
    assert read_entries(bench.device, raw.entry("ipv4_lpm")) == [raw.route()]


def test_full_table(bench: Bench, raw: Raw) -> None:
    entries = [raw.entry("learned", [exact(1, bytes([i + 1]))], raw.action("pass")) for i in range(5)]
    write(bench.device, *(update(INSERT, table_entry=e) for e in entries[:4]))
    (failure,) = failures(bench.device, update(INSERT, table_entry=entries[4]))
    assert failure.code == "RESOURCE_EXHAUSTED"
    assert len(read_entries(bench.device, raw.entry("learned"))) == 4


def test_const_entries_are_read_and_cannot_be_touched(bench: Bench, raw: Raw) -> None:
    found = read_entries(bench.device, raw.entry("classes"))
    key = [exact(1, b"\xb8")]
    expected = raw.entry("classes", key, raw.action("set_class", b"\x07"), is_const=True)
    assert expected in found
    assert len(found) == 2
    for kind, action in ((MODIFY, raw.action("pass")), (DELETE, None)):
        (failure,) = failures(bench.device, update(kind, table_entry=raw.entry("classes", key, action)))
        assert failure.code == "PERMISSION_DENIED"
    assert read_entries(bench.device, raw.entry("classes")) == found


# ---- Default entries ----


def default(raw: Raw, table: str, action: Any = None, **fields: Any) -> Any:
    return raw.entry(table, [], action, is_default_action=True, **fields)


def test_default_entry(bench: Bench, raw: Raw) -> None:
    def current() -> Any:
        (found,) = read_entries(bench.device, default(raw, "ipv4_lpm"))
        return found

    assert current() == default(raw, "ipv4_lpm", raw.action("drop"))
    changed = default(raw, "ipv4_lpm", raw.action("to_cpu", b"\x01"), metadata=b"x")
    write(bench.device, update(MODIFY, table_entry=changed))
    assert current() == changed
    assert read_entries(bench.device, raw.entry("ipv4_lpm")) == []
    write(bench.device, update(MODIFY, table_entry=default(raw, "ipv4_lpm")))  # resets
    assert current() == default(raw, "ipv4_lpm", raw.action("drop"))


def test_default_entry_of_a_keyless_and_of_a_const_table(bench: Bench, raw: Raw) -> None:
    for table in ("keyless", "classes"):
        changed = default(raw, table, raw.action("set_class", b"\x05"))
        write(bench.device, update(MODIFY, table_entry=changed))
        assert read_entries(bench.device, default(raw, table)) == [changed]


@pytest.mark.parametrize(
    ("kind", "code", "make"),
    [
        (INSERT, "INVALID_ARGUMENT", lambda r: default(r, "ipv4_lpm", r.action("drop"))),
        (DELETE, "INVALID_ARGUMENT", lambda r: default(r, "ipv4_lpm")),
        (MODIFY, "INVALID_ARGUMENT", lambda r: default(r, "acl", r.action("drop"), priority=1)),
        (MODIFY, "INVALID_ARGUMENT", lambda r: with_match(default(r, "ipv4_lpm", r.action("drop")))),
        (MODIFY, "PERMISSION_DENIED", lambda r: default(r, "learned", r.action("pass"))),
        (MODIFY, "PERMISSION_DENIED", lambda r: default(r, "learned")),
        (MODIFY, "PERMISSION_DENIED", lambda r: default(r, "acl", r.action("to_cpu", b"\1"))),
        (MODIFY, "INVALID_ARGUMENT", lambda r: default(r, "ipv4_lpm", r.action("drop"), idle_timeout_ns=1)),
        (MODIFY, "INVALID_ARGUMENT", lambda r: default(r, "ipv4_lpm", r.action("learn"))),
    ],
    ids=["insert", "delete", "priority", "match", "const", "const-reset", "table-only", "idle-timeout", "action"],
)
def test_wrong_default_entries(bench: Bench, raw: Raw, kind: int, code: str, make: Callable[[Raw], Any]) -> None:
    (failure,) = failures(bench.device, update(kind, table_entry=make(raw)))
    assert failure.code == code


def with_match(entry: Any) -> Any:
    entry.match.append(lpm(1, b"\x0a", 32))
    return entry


def test_const_default_is_marked(bench: Bench, raw: Raw) -> None:
    (found,) = read_entries(bench.device, default(raw, "learned"))
    assert found.is_const
    assert found.action == raw.action("learn")


# ---- Reads of tables ----


def test_wildcards_and_filters(bench: Bench, raw: Raw) -> None:
    routes = [raw.route(), raw.route(prefix=b"\x0b\0\0\0", metadata=b"m", controller_metadata=3)]
    acl = [acl_entry(raw), acl_entry(raw, priority=11)]
    write(bench.device, *(update(INSERT, table_entry=e) for e in routes + acl))

    def found(**fields: Any) -> list[Any]:
        return read_entries(bench.device, p4.TableEntry(**fields))

    assert [e for e in found() if e.table_id != raw.index.tables["classes"].id] == routes + acl
    lpm_id, acl_id = raw.index.tables["ipv4_lpm"].id, raw.index.tables["acl"].id
    assert found(table_id=lpm_id) == routes
    assert found(table_id=lpm_id, match=routes[1].match) == [routes[1]]
    assert found(table_id=lpm_id, metadata=b"m") == [routes[1]]
    assert found(table_id=lpm_id, metadata=b"n") == []
    assert found(table_id=lpm_id, controller_metadata=3) == [routes[1]]
    assert found(table_id=lpm_id, action=raw.action("drop")) == []
    assert found(table_id=acl_id, priority=11) == [acl[1]]
    assert found(table_id=acl_id, match=acl[0].match) == acl
    assert found(table_id=acl_id, action=raw.action("to_cpu", b"\0")) == acl
    assert {e.table_id for e in found(is_default_action=True)} == {t.id for t in raw.index.tables}


@pytest.mark.parametrize(
    "fields",
    [
        {"table_id": 99},
        {"priority": 1},
        {"metadata": b"x"},
        {"match": [lpm(1, b"\1", 32)]},
    ],
)
def test_wrong_reads(bench: Bench, raw: Raw, fields: dict[str, Any]) -> None:
    with pytest.raises(P4RuntimeError) as e:
        read_entries(bench.device, p4.TableEntry(**fields))
    assert [f.code for f in e.value.failures] == ["INVALID_ARGUMENT"]


def test_a_read_gives_what_it_can(bench: Bench, raw: Raw) -> None:
    write(bench.device, update(INSERT, table_entry=raw.route()))
    good, bad = p4.Entity(table_entry=raw.entry("ipv4_lpm")), p4.Entity(table_entry=p4.TableEntry(table_id=99))
    found, error = [], None
    try:
        for response in bench.device.read(p4.ReadRequest(device_id=1, entities=[good, bad, good, p4.Entity()])):
            found += response.entities
    except P4RuntimeError as e:
        error = e
    assert len(found) == 2
    assert error is not None
    assert [(f.index, f.code) for f in error.failures] == [(1, "INVALID_ARGUMENT"), (3, "INVALID_ARGUMENT")]
    assert error.batch_size == 4


# ---- Direct counters ----


def test_direct_counter(bench: Bench, raw: Raw) -> None:
    data = p4.CounterData(packet_count=3, byte_count=300)
    write(bench.device, update(INSERT, table_entry=raw.route(counter_data=data)))
    (plain,) = read_entries(bench.device, raw.entry("ipv4_lpm"))
    assert not plain.HasField("counter_data")
    (counted,) = read_entries(bench.device, raw.entry("ipv4_lpm", counter_data=p4.CounterData()))
    assert counted.counter_data == data
    key = raw.entry("ipv4_lpm", [lpm(1, b"\x0a\0\0\0", 8)])
    cell = p4.DirectCounterEntry(table_entry=key, data=p4.CounterData(packet_count=9))
    write(bench.device, update(MODIFY, direct_counter_entry=cell))
    (found,) = read(bench.device, direct_counter_entry=p4.DirectCounterEntry(table_entry=key))
    assert found.direct_counter_entry == cell
    write(bench.device, update(MODIFY, table_entry=raw.route(port=b"\x07")))  # leaves the counter alone
    (found,) = read(bench.device, direct_counter_entry=p4.DirectCounterEntry(table_entry=key))
    assert found.direct_counter_entry == cell
    assert len(read(bench.device, direct_counter_entry=p4.DirectCounterEntry())) == 1


def test_failed_insert_leaves_the_counter(bench: Bench, raw: Raw) -> None:
    write(bench.device, update(INSERT, table_entry=raw.route(counter_data=p4.CounterData(packet_count=3))))
    again = update(INSERT, table_entry=raw.route(counter_data=p4.CounterData(packet_count=8)))
    assert [f.code for f in failures(bench.device, again)] == ["ALREADY_EXISTS"]
    (found,) = read_entries(bench.device, raw.entry("ipv4_lpm", counter_data=p4.CounterData()))
    assert found.counter_data.packet_count == 3


def test_wrong_direct_counters(bench: Bench, raw: Raw) -> None:
    key = raw.entry("ipv4_lpm", [lpm(1, b"\x0a\0\0\0", 8)])
    data = p4.CounterData()

    def code(kind: int, **fields: Any) -> str:
        (failure,) = failures(bench.device, update(kind, direct_counter_entry=p4.DirectCounterEntry(**fields)))
        return failure.code

    assert code(MODIFY, table_entry=key, data=data) == "NOT_FOUND"
    assert code(MODIFY, table_entry=key) == "NOT_FOUND"
    assert code(INSERT, table_entry=key, data=data) == "INVALID_ARGUMENT"
    assert code(DELETE, table_entry=key) == "INVALID_ARGUMENT"
    assert code(MODIFY, data=data) == "INVALID_ARGUMENT"
    assert code(MODIFY, table_entry=acl_entry(raw), data=data) == "INVALID_ARGUMENT"
    for wanted, expected in ((key, "NOT_FOUND"), (raw.entry("acl"), "INVALID_ARGUMENT")):
        with pytest.raises(P4RuntimeError) as e:
            read(bench.device, direct_counter_entry=p4.DirectCounterEntry(table_entry=wanted))
        assert [f.code for f in e.value.failures] == [expected]


# ---- Counters and registers ----


def test_counter(bench: Bench, raw: Raw) -> None:
    id = raw.index.counters["port_packets"].id
    cell = p4.CounterEntry(counter_id=id, index=p4.Index(index=3), data=p4.CounterData(packet_count=2, byte_count=99))
    write(bench.device, update(MODIFY, counter_entry=cell))
    (found,) = read(bench.device, counter_entry=p4.CounterEntry(counter_id=id, index=p4.Index(index=3)))
    assert found.counter_entry == cell
    everything = read(bench.device, counter_entry=p4.CounterEntry())
    assert len(everything) == 8
    assert sum(e.counter_entry.data.packet_count for e in everything) == 2
    write(
        bench.device, update(MODIFY, counter_entry=p4.CounterEntry(counter_id=id, data=p4.CounterData(packet_count=1)))
    )
    cells = read(bench.device, counter_entry=p4.CounterEntry(counter_id=id))
    assert [e.counter_entry.data.packet_count for e in cells] == [1] * 8
    write(
        bench.device, update(MODIFY, counter_entry=p4.CounterEntry(counter_id=id, index=p4.Index(index=3)))
    )  # no data
    assert read(bench.device, counter_entry=p4.CounterEntry(counter_id=id)) == cells


@pytest.mark.parametrize(
    ("kind", "index", "code"),
    [
        (MODIFY, 8, "OUT_OF_RANGE"),
        (MODIFY, -1, "INVALID_ARGUMENT"),
        (INSERT, 0, "INVALID_ARGUMENT"),
        (DELETE, 0, "INVALID_ARGUMENT"),
    ],
)
def test_wrong_counters(bench: Bench, raw: Raw, kind: int, index: int, code: str) -> None:
    id = raw.index.counters["port_packets"].id
    entry = p4.CounterEntry(counter_id=id, index=p4.Index(index=index), data=p4.CounterData())
    assert [f.code for f in failures(bench.device, update(kind, counter_entry=entry))] == [code]


def test_register(bench: Bench, raw: Raw) -> None:
    id = raw.index.registers["last_seen"].id

    def cell(index: int | None, value: bytes) -> Any:
        where = None if index is None else p4.Index(index=index)
        return p4.RegisterEntry(register_id=id, index=where, data={"bitstring": value})

    write(bench.device, update(MODIFY, register_entry=cell(5, b"\x01\x02")))
    (found,) = read(bench.device, register_entry=p4.RegisterEntry(register_id=id, index=p4.Index(index=5)))
    assert found.register_entry == cell(5, b"\x01\x02")
    write(bench.device, update(MODIFY, register_entry=cell(None, b"\x07")))
    for wanted in (p4.RegisterEntry(), p4.RegisterEntry(register_id=id)):
        found = read(bench.device, register_entry=wanted)
        assert [e.register_entry for e in found] == [cell(i, b"\x07") for i in range(16)]


@pytest.mark.parametrize(
    ("kind", "index", "data", "code"),
    [
        (MODIFY, 16, {"bitstring": b"\1"}, "OUT_OF_RANGE"),
        (MODIFY, -1, {"bitstring": b"\1"}, "INVALID_ARGUMENT"),
        (MODIFY, 0, {"bitstring": b"\1\0\0\0\0"}, "INVALID_ARGUMENT"),
        (MODIFY, 0, {"bitstring": b""}, "INVALID_ARGUMENT"),
        (MODIFY, 0, {"bool": True}, "INVALID_ARGUMENT"),
        (MODIFY, 0, None, "INVALID_ARGUMENT"),
        (INSERT, 0, {"bitstring": b"\1"}, "INVALID_ARGUMENT"),
        (DELETE, 0, {"bitstring": b"\1"}, "INVALID_ARGUMENT"),
    ],
)
def test_wrong_registers(bench: Bench, raw: Raw, kind: int, index: int, data: Any, code: str) -> None:
    entry = p4.RegisterEntry(register_id=raw.index.registers["last_seen"].id, index=p4.Index(index=index), data=data)
    assert [f.code for f in failures(bench.device, update(kind, register_entry=entry))] == [code]


# ---- Replication ----


def test_multicast_group(bench: Bench, raw: Raw) -> None:
    replicas = [
        p4.Replica(port=b"\x01", instance=1),
        p4.Replica(egress_port=2, instance=9),
        p4.Replica(port=b"\x01\x02"),
    ]
    made = group(5, replicas, metadata=b"g")
    write(bench.device, update(INSERT, packet_replication_engine_entry=made))
    for wanted in (group(5), group(0)):
        (found,) = read(bench.device, packet_replication_engine_entry=wanted)
        entry = found.packet_replication_engine_entry.multicast_group_entry
        assert sorted(map(str, entry.replicas)) == sorted(map(str, replicas))  # the order is not promised
        assert entry.metadata == b"g"
    changed = group(5, [p4.Replica(port=b"\x03")])
    write(bench.device, update(MODIFY, packet_replication_engine_entry=changed))
    assert [
        e.packet_replication_engine_entry for e in read(bench.device, packet_replication_engine_entry=group(0))
    ] == [changed]
    write(bench.device, update(DELETE, packet_replication_engine_entry=group(5)))
    assert read(bench.device, packet_replication_engine_entry=group(0)) == []
    with pytest.raises(P4RuntimeError) as e:
        read(bench.device, packet_replication_engine_entry=group(5))
    assert [f.code for f in e.value.failures] == ["NOT_FOUND"]


def test_clone_session(bench: Bench, raw: Raw) -> None:
    made = session(100, [p4.Replica(egress_port=510, instance=1)], class_of_service=2, packet_length_bytes=128)
    write(bench.device, update(INSERT, packet_replication_engine_entry=made))
    (found,) = read(bench.device, packet_replication_engine_entry=session(0))
    assert found.packet_replication_engine_entry == made
    write(bench.device, update(DELETE, packet_replication_engine_entry=session(100)))
    assert read(bench.device, packet_replication_engine_entry=session(0)) == []


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        (group(0), "INVALID_ARGUMENT"),
        (group(70000), "INVALID_ARGUMENT"),
        (group(1, [p4.Replica(port=b"\1"), p4.Replica(port=b"\1")]), "INVALID_ARGUMENT"),
        (group(1, [p4.Replica(port=b"\2\0")]), "OUT_OF_RANGE"),
        (group(1, [p4.Replica(port=b"")]), "OUT_OF_RANGE"),
        (group(1, [p4.Replica(egress_port=512)]), "OUT_OF_RANGE"),
        (group(1, [p4.Replica()]), "INVALID_ARGUMENT"),
        (group(1, [p4.Replica(port=b"\1", instance=65536)]), "INVALID_ARGUMENT"),
        (group(1, [p4.Replica(port=b"\1", backup_replicas=[p4.BackupReplica(port=b"\2")])]), "UNIMPLEMENTED"),
        (session(0), "INVALID_ARGUMENT"),
        (session(1, packet_length_bytes=-1), "INVALID_ARGUMENT"),
        (session(1, class_of_service=8), "INVALID_ARGUMENT"),
        (session(1, [p4.Replica()]), "INVALID_ARGUMENT"),
        (p4.PacketReplicationEngineEntry(), "INVALID_ARGUMENT"),
    ],
)
def test_wrong_replication(bench: Bench, raw: Raw, entry: Any, code: str) -> None:
    assert [f.code for f in failures(bench.device, update(INSERT, packet_replication_engine_entry=entry))] == [code]


def test_replication_existence(bench: Bench, raw: Raw) -> None:
    for make in (group, session):
        made = make(1, [p4.Replica(port=b"\1")])
        codes = [
            [f.code for f in failures(bench.device, update(kind, packet_replication_engine_entry=made))]
            for kind in (MODIFY, DELETE, INSERT, INSERT)
        ]
        assert codes == [["NOT_FOUND"], ["NOT_FOUND"], [], ["ALREADY_EXISTS"]]


# ---- What the program does not have ----

ABSENT: list[dict[str, Any]] = [
    {"extern_entry": p4.ExternEntry(extern_type_id=0x81, extern_id=1, entry=any_pb2.Any())},
    {"action_profile_member": p4.ActionProfileMember(action_profile_id=1)},
    {"action_profile_group": p4.ActionProfileGroup(action_profile_id=1)},
    {"meter_entry": p4.MeterEntry(meter_id=1)},
    {"direct_meter_entry": p4.DirectMeterEntry()},
    {"value_set_entry": p4.ValueSetEntry(value_set_id=1)},
]


@pytest.mark.parametrize("entity", ABSENT, ids=lambda e: next(iter(e)))
def test_entities_of_nothing(bench: Bench, raw: Raw, entity: dict[str, Any]) -> None:
    (failure,) = failures(bench.device, update(INSERT, **entity))
    assert failure.code == ("UNIMPLEMENTED" if "extern_entry" in entity else "INVALID_ARGUMENT")
    assert failure.message


def test_reading_the_entire_state(bench: Bench, raw: Raw) -> None:
    write(bench.device, update(INSERT, table_entry=raw.route()))
    kinds = [f for f in p4.Entity.DESCRIPTOR.fields if f.name != "packet_replication_engine_entry"]
    wanted = [p4.Entity(**{f.name: f.message_type._concrete_class()}) for f in kinds]
    wanted += [p4.Entity(packet_replication_engine_entry=e) for e in (group(0), session(0))]
    found = [e for r in bench.device.read(p4.ReadRequest(device_id=1, entities=wanted)) for e in r.entities]
    assert sum(e.HasField("table_entry") for e in found) == 3


@pytest.mark.parametrize("kind", [0, 4])
def test_no_type_or_unknown_type(bench: Bench, raw: Raw, kind: int) -> None:
    assert [f.code for f in failures(bench.device, update(kind, table_entry=raw.route()))] == ["INVALID_ARGUMENT"]


def test_no_entity(bench: Bench, raw: Raw) -> None:
    assert [f.code for f in failures(bench.device, p4.Update(type=INSERT))] == ["INVALID_ARGUMENT"]


# ---- Batches ----


def batch(raw: Raw) -> list[Any]:
    return [
        update(INSERT, table_entry=raw.route()),
        update(INSERT, table_entry=raw.route(port=b"\x02")),  # exists by then
        update(INSERT, packet_replication_engine_entry=group(1, [p4.Replica(port=b"\1")])),
        update(INSERT, table_entry=raw.route(prefix=b"\x0c\0\0\0", counter_data=p4.CounterData(packet_count=1))),
    ]


def test_continue_on_error(bench: Bench, raw: Raw) -> None:
    assert [(f.index, f.code) for f in failures(bench.device, *batch(raw))] == [(1, "ALREADY_EXISTS")]
    assert len(read_entries(bench.device, raw.entry("ipv4_lpm"))) == 2
    assert len(read(bench.device, packet_replication_engine_entry=group(0))) == 1


@pytest.mark.parametrize("atomicity", [ROLLBACK, ATOMIC])
def test_all_or_nothing(bench: Bench, raw: Raw, atomicity: int) -> None:
    codes = [f.code for f in failures(bench.device, *batch(raw), atomicity=atomicity)]
    assert codes == ["ABORTED", "ALREADY_EXISTS", "ABORTED", "ABORTED"]
    assert read_entries(bench.device, raw.entry("ipv4_lpm")) == []
    assert read(bench.device, packet_replication_engine_entry=group(0)) == []
    updates = batch(raw)
    del updates[1]
    write(bench.device, *updates, atomicity=atomicity)
    assert len(read_entries(bench.device, raw.entry("ipv4_lpm"))) == 2


@pytest.mark.parametrize("malformed", [False, True])
def test_each_failure_of_an_atomic_batch_has_its_own_error(bench: Bench, raw: Raw, *, malformed: bool) -> None:
    write(bench.device, update(INSERT, table_entry=raw.route()))
    elsewhere = raw.entry("ipv4_lpm", [lpm(1, b"\x0b\0\0\0", 8)])
    updates = [
        update(INSERT, packet_replication_engine_entry=group(1)),
        update(INSERT, table_entry=raw.route()),
        update(DELETE, table_entry=elsewhere),
        update(INSERT, packet_replication_engine_entry=group(1)),
        update(INSERT, table_entry=raw.route(port=b"" if malformed else b"\1")),
    ]
    codes = [f.code for f in failures(bench.device, *updates, atomicity=ROLLBACK)]
    last = "INVALID_ARGUMENT" if malformed else "ALREADY_EXISTS"
    assert codes == ["ABORTED", "ALREADY_EXISTS", "NOT_FOUND", "ALREADY_EXISTS", last]
    assert read(bench.device, packet_replication_engine_entry=group(0)) == []
    assert read_entries(bench.device, raw.entry("ipv4_lpm")) == [raw.route()]


def test_all_or_nothing_with_a_malformed_update(bench: Bench, raw: Raw) -> None:
    updates = [
        update(INSERT, table_entry=raw.route(metadata=b"m")),
        update(INSERT, digest_entry=p4.DigestEntry(digest_id=raw.index.digests["learn_t"].id)),
        update(INSERT, table_entry=raw.route(port=b"")),
    ]
    codes = [f.code for f in failures(bench.device, *updates, atomicity=ROLLBACK)]
    assert codes == ["ABORTED", "ABORTED", "INVALID_ARGUMENT"]
    assert read_entries(bench.device, raw.entry("ipv4_lpm")) == []
    assert read(bench.device, digest_entry=p4.DigestEntry()) == []
    write(bench.device, update(INSERT, table_entry=raw.route()))
    assert read_entries(bench.device, raw.entry("ipv4_lpm")) == [raw.route()]  # and no metadata left over


def test_a_batch_sees_its_own_updates(bench: Bench, raw: Raw) -> None:
    key = raw.entry("ipv4_lpm", [lpm(1, b"\x0a\0\0\0", 8)], metadata=b"later")
    for atomicity in (0, ROLLBACK):
        write(
            bench.device,
            update(INSERT, table_entry=raw.route()),
            update(MODIFY, table_entry=key),
            atomicity=atomicity,
        )
        assert read_entries(bench.device, raw.entry("ipv4_lpm")) == [raw.route(metadata=b"later")]
        codes = [
            f.code
            for f in failures(
                bench.device,
                update(DELETE, table_entry=raw.route()),
                update(MODIFY, table_entry=key),
                atomicity=atomicity,
            )
        ]
        assert codes == (["ABORTED", "NOT_FOUND"] if atomicity else ["NOT_FOUND"])
        if atomicity:
            write(bench.device, update(DELETE, table_entry=raw.route()))


def test_empty_batch_and_unknown_atomicity(bench: Bench, raw: Raw) -> None:
    write(bench.device)
    write(bench.device, atomicity=ROLLBACK)
    with pytest.raises(P4RuntimeError, match="atomicity") as e:
        bench.device.write(request(atomicity=9))
    assert e.value.code == "INVALID_ARGUMENT"
