"""The native core through its typed interface: switches, their control plane, networks on both clocks."""

from __future__ import annotations

import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast import _core
from holdfast._core import (
    CloneSession,
    CompileError,
    ControlError,
    CounterCell,
    DirectCounterCell,
    HoldfastError,
    MulticastGroup,
    Network,
    Program,
    RegisterCell,
    Switch,
    TableEntry,
)
from holdfast.p4runtime.p4info import parse_text

SOURCE = """
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
struct headers { ethernet_t ethernet; }
struct metadata { bit<8> mark; }
struct learn_t { bit<48> src; bit<16> type; }

parser P(packet_in packet, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start { packet.extract(h.ethernet); transition accept; }
}
control Check(inout headers h, inout metadata m) { apply {} }
control In(inout headers h, inout metadata m, inout standard_metadata_t s) {
    register<bit<17>>(8) seen;
    counter(4, CounterType.packets_and_bytes) arrived;
    direct_counter(CounterType.packets_and_bytes) l2_counter;

    action forward(bit<9> port) { s.egress_spec = port; }
    action multicast(bit<16> group) { s.mcast_grp = group; }
    action copy(bit<9> port) { s.egress_spec = port; clone(CloneType.I2E, 7); }
    action learn() { digest<learn_t>(1, { h.ethernet.src, h.ethernet.type }); mark_to_drop(s); }
    action drop() { mark_to_drop(s); }
    action mark(bit<8> value) { m.mark = value; }

    table l2 {
        key = { h.ethernet.dst: exact; }
        actions = { forward; multicast; copy; learn; @defaultonly drop; }
        default_action = drop();
        counters = l2_counter;
        size = 4;
    }
    table acl {
        key = {
            h.ethernet.type: ternary;
            h.ethernet.src: lpm;
            s.ingress_port: range;
            h.ethernet.dst: optional;
        }
        actions = { mark; NoAction; }
        default_action = NoAction();
    }
    table fixed {
        key = { s.ingress_port: exact; }
        actions = { mark; NoAction; }
        const default_action = NoAction();
        const entries = { 3: mark(3); }
    }
    apply {
        bit<17> count;
        acl.apply();
        fixed.apply();
        seen.read(count, (bit<32>) m.mark);
        seen.write((bit<32>) m.mark, count + 1);
        arrived.count((bit<32>) s.ingress_port);
        l2.apply();
    }
}
control Out(inout headers h, inout metadata m, inout standard_metadata_t s) { apply {} }
control Sum(inout headers h, inout metadata m) { apply {} }
control Emit(packet_out packet, in headers h) { apply { packet.emit(h.ethernet); } }
V1Switch(P(), Check(), In(), Out(), Sum(), Emit()) main;
"""

MAC = {n: bytes((2, 0, 0, 0, 0, n)) for n in range(1, 10)}


def frame(dst: int, src: int = 9, ethertype: int = 0x0800, payload: bytes = b"payload") -> bytes:
    return MAC[dst] + MAC[src] + ethertype.to_bytes(2, "big") + payload


@pytest.fixture(scope="module")
def program() -> Program:
    return Program.compile_text(SOURCE, "core.p4")


class Ids:
    """P4Runtime ids by name."""

    def __init__(self, program: Program) -> None:
        self.info = parse_text(program.p4info)

    def __getattr__(self, kind: str) -> dict[str, int]:
        return {o.preamble.alias: o.preamble.id for o in getattr(self.info, kind)}


@pytest.fixture(scope="module")
def ids(program: Program) -> Ids:
    return Ids(program)


@pytest.fixture(params=["jit", "interpreter"])
def switch(program: Program, request: pytest.FixtureRequest) -> Switch:
    return Switch(program, executor=request.param)


def l2(ids: Ids, dst: int, action: str, value: int | None = None) -> TableEntry:
    args = {} if value is None else {1: value.to_bytes(2, "big")}
    return TableEntry(ids.tables["l2"], {1: ("exact", MAC[dst])}, ids.actions[action], args)


def insert(switch: Switch, *entities: _core.Entity) -> None:
    results = switch.write([("insert", e) for e in entities])
    assert results == [None] * len(entities)


def refused(switch: Switch, operation: Any, entity: _core.Entity) -> tuple[str, str]:
    (result,) = switch.write([(operation, entity)])
    assert result is not None
    return result


# ---- Programs ----


def test_a_program_with_errors_says_where(tmp_path: Path) -> None:
    with pytest.raises(CompileError) as caught:
        Program.compile_text(SOURCE.replace("count + 1", "cuont + 1"), "wrong.p4")
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.severity, diagnostic.file) == ("error", "wrong.p4")
    assert diagnostic.line == 1 + SOURCE[: SOURCE.index("count + 1")].count("\n")
    assert "cuont" in diagnostic.message
    assert diagnostic.rendered in str(caught.value)
    assert "^" in diagnostic.rendered
    with pytest.raises(HoldfastError, match=r"absent\.p4"):
        Program.compile(str(tmp_path / "absent.p4"))


def test_includes_and_defines(tmp_path: Path) -> None:
    (tmp_path / "ports.p4").write_text("#ifdef PORT\n#define OUT PORT\n#else\n#define OUT 1\n#endif\n")
    source = '#include "ports.p4"\n' + SOURCE.replace("drop();\n        counters", "forward(OUT);\n        counters")
    path = tmp_path / "main.p4"
    path.write_text(source)
    assert Switch(Program.compile(str(path))).process(0, frame(1)) == [(1, frame(1))]
    program = Program.compile_text(source, include_dirs=[str(tmp_path)], defines={"PORT": "6"})
    assert Switch(program).process(0, frame(1)) == [(6, frame(1))]


def test_an_artifact_is_the_program(program: Program, ids: Ids) -> None:
    loaded = Program.from_artifact(program.artifact())
    assert loaded.name == program.name == "core"
    assert loaded.artifact() == program.artifact()
    assert (loaded.p4info, loaded.warnings) == ("", [])
    switch = Switch(loaded)
    insert(switch, l2(ids, 1, "forward", 5))
    assert switch.process(0, frame(1)) == [(5, frame(1))]
    for garbage in (b"", b"\xff", b"holdfast_ir 1", program.artifact()[:-20]):
        with pytest.raises(ControlError) as caught:
            Program.from_artifact(garbage)
        assert caught.value.code == "INVALID_ARGUMENT"


def test_set_program_starts_afresh(switch: Switch, program: Program, ids: Ids) -> None:
    insert(switch, l2(ids, 1, "forward", 5))
    assert switch.program is program
    other = Program.compile_text(SOURCE.replace("size = 4", "size = 5"), "other.p4")
    switch.set_program(other)
    assert switch.program is other
    assert [e for e in switch.table_entries() if not e.is_const] == []


# ---- One switch ----


def test_packets_go_where_entries_say(switch: Switch, ids: Ids) -> None:
    insert(
        switch,
        l2(ids, 1, "forward", 5),
        l2(ids, 2, "multicast", 3),
        l2(ids, 3, "copy", 4),
        MulticastGroup(3, [(1, 0), (2, 7)]),
        CloneSession(7, [(9, 1)], packet_length_bytes=16),
    )
    assert switch.process(0, frame(1)) == [(5, frame(1))]
    assert switch.process(0, frame(2)) == [(1, frame(2)), (2, frame(2))]
    copies = switch.process(0, frame(3))
    assert sorted(copies) == [(4, frame(3)), (9, frame(3)[:16])]
    assert switch.process(0, frame(4)) == []
    assert switch.drops() == {"ingress_drop": 1}
    assert switch.multicast_groups() == [MulticastGroup(3, [(1, 0), (2, 7)])]
    assert switch.clone_sessions() == [CloneSession(7, [(9, 1)], packet_length_bytes=16)]


def test_a_ternary_table_by_priority(switch: Switch, ids: Ids) -> None:
    mark = ids.actions["mark"]

    def rule(value: int, priority: int, **matches: _core.Match) -> TableEntry:
        numbers = {"type": 1, "src": 2, "port": 3, "dst": 4}
        by_id = {numbers[name]: match for name, match in matches.items()}
        return TableEntry(ids.tables["acl"], by_id, mark, {1: bytes([value])}, priority)

    insert(
        switch,
        rule(1, 1),
        rule(2, 10, type=("ternary", b"\x08\x00", b"\xff\x00")),
        rule(4, 20, src=("lpm", b"\x02\x00\x00\x00\x00\x00", 40), port=("range", b"\x02", b"\x03")),
        rule(5, 30, dst=("optional", MAC[7])),
    )
    for packet, port in (
        (frame(1, ethertype=0x86DD), 0),
        (frame(1, ethertype=0x0806), 0),
        (frame(1), 2),
        (frame(1, src=1), 1),
        (frame(7), 2),
    ):
        switch.process(port, packet)
    values = {c.index: int.from_bytes(c.value, "big") for c in switch.registers(ids.registers["seen"])}
    assert values == {0: 0, 1: 1, 2: 2, 3: 0, 4: 1, 5: 1, 6: 0, 7: 0}

    entries = switch.table_entries(ids.tables["acl"])
    assert [(e.priority, sorted(e.matches)) for e in entries] == [(1, []), (10, [1]), (20, [2, 3]), (30, [4])]
    assert entries[1] == rule(2, 10, type=("ternary", b"\x08\x00", b"\xff\x00"))
    assert entries[2].matches[2] == ("lpm", b"\x02\0\0\0\0\0", 40)
    assert entries[2].matches[3] == ("range", b"\0\x02", b"\0\x03")
    assert entries[3].matches[4] == ("optional", MAC[7])
    # What was read can be written.
    assert switch.write([("delete", e) for e in entries]) == [None] * 4
    assert switch.table_entries(ids.tables["acl"]) == []


def test_defaults_and_constants(switch: Switch, ids: Ids) -> None:
    table = ids.tables["l2"]
    (default,) = switch.table_entries(table, include_default=True)
    assert (default.is_default, default.action_id, default.is_const) == (True, ids.actions["drop"], False)
    change = TableEntry(table, action_id=ids.actions["forward"], args={1: b"\x06"}, is_default=True)
    assert switch.write([("modify", change)]) == [None]
    assert switch.process(0, frame(1)) == [(6, frame(1))]
    assert switch.write([("modify", TableEntry(table, is_default=True))]) == [None]
    assert switch.process(0, frame(1)) == []
    assert refused(switch, "insert", change)[0] == "INVALID_ARGUMENT"

    fixed = ids.tables["fixed"]
    entry, default = switch.table_entries(fixed, include_default=True)
    assert (entry.is_const, entry.matches, entry.args) == (True, {1: ("exact", b"\0\x03")}, {1: b"\x03"})
    assert default.is_const
    assert refused(switch, "delete", entry)[0] == "PERMISSION_DENIED"
    assert refused(switch, "modify", TableEntry(fixed, is_default=True))[0] == "PERMISSION_DENIED"


def test_registers_and_counters(switch: Switch, ids: Ids) -> None:
    seen, arrived = ids.registers["seen"], ids.counters["arrived"]
    assert switch.write([("modify", RegisterCell(seen, 0, b"\x01\xff\xff"))]) == [None]
    insert(switch, l2(ids, 1, "forward", 5))
    switch.process(2, frame(1))
    # The register has 17 bits and wraps around.
    assert switch.registers(seen, 0) == [RegisterCell(seen, 0, b"\0\0\0")]
    assert len(switch.registers(seen)) == 8
    length = len(frame(1))
    assert switch.counters(arrived, 2) == [CounterCell(arrived, 2, 1, length)]
    assert switch.write([("modify", CounterCell(arrived, 2))]) == [None]
    assert [c.packets for c in switch.counters(arrived)] == [0, 0, 0, 0]

    (entry,) = switch.table_entries(ids.tables["l2"])
    assert entry.counter == (1, length)
    assert switch.write([("modify", DirectCounterCell(entry, 10, 1000))]) == [None]
    switch.process(2, frame(1))
    assert switch.table_entries(ids.tables["l2"])[0].counter == (11, 1000 + length)

    for read in (
        lambda: switch.registers(seen, 8),
        lambda: switch.registers(seen, 2**64 - 1, 2),
        lambda: switch.counters(arrived, 9, 5),
        lambda: switch.counters(arrived, 4),
    ):
        with pytest.raises(ControlError) as caught:
            read()
        assert caught.value.code == "OUT_OF_RANGE"


def test_digests_are_taken_once(switch: Switch, ids: Ids) -> None:
    insert(switch, l2(ids, 1, "learn"))
    switch.process(0, frame(1, src=5))
    switch.process(0, frame(1, src=6, ethertype=0x1234))
    (digest,) = ids.digests.values()
    assert switch.take_digests() == [(digest, MAC[5] + b"\x08\x00"), (digest, MAC[6] + b"\x12\x34")]
    assert switch.take_digests() == []


def test_refusals(switch: Switch, ids: Ids) -> None:
    table, acl, forward = ids.tables["l2"], ids.tables["acl"], ids.actions["forward"]
    good = l2(ids, 1, "forward", 5)
    insert(switch, good)

    def entry(matches: dict[int, Any], action: int = forward, args: Any = None, **more: Any) -> TableEntry:
        return TableEntry(more.pop("table", table), matches, action, {1: b"\5"} if args is None else args, **more)

    key: dict[int, Any] = {1: ("exact", MAC[2])}
    mark: dict[str, Any] = {"table": acl, "action": ids.actions["mark"]}
    cases: list[tuple[str, str, _core.Entity, str]] = [
        ("ALREADY_EXISTS", "insert", good, "l2"),
        ("NOT_FOUND", "modify", entry(key), "no such entry"),
        ("NOT_FOUND", "delete", entry(key), "no such entry"),
        ("NOT_FOUND", "insert", entry(key, table=0x02FFFFFF), "table"),
        ("NOT_FOUND", "insert", entry(key, action=0x01FFFFFF), "action"),
        ("INVALID_ARGUMENT", "insert", entry(key, action=0), "action"),
        ("INVALID_ARGUMENT", "insert", entry(key, action=ids.actions["mark"]), "mark"),
        ("INVALID_ARGUMENT", "insert", entry(key, action=ids.actions["drop"], args={}), "defaultonly"),
        ("INVALID_ARGUMENT", "insert", entry(key, args={}), "port is missing"),
        ("INVALID_ARGUMENT", "insert", entry(key, args={1: b"\5", 2: b"\5"}), "parameter with id 2"),
        ("INVALID_ARGUMENT", "insert", entry(key, args={1: b"\2\0"}), "10 bits"),
        ("INVALID_ARGUMENT", "insert", entry(key, args={1: b""}), "at least one byte"),
        ("INVALID_ARGUMENT", "insert", entry({}), "exact match is missing"),
        ("INVALID_ARGUMENT", "insert", entry({2: ("exact", b"\1")}), "match field with id 2"),
        ("INVALID_ARGUMENT", "insert", entry({1: ("exact", b"\1" + bytes(6))}), "does not fit"),
        ("INVALID_ARGUMENT", "insert", entry({1: ("lpm", MAC[2], 8)}), "the match is lpm, the field exact"),
        ("INVALID_ARGUMENT", "insert", entry(key, priority=1), "priority"),
        ("INVALID_ARGUMENT", "insert", entry({}, **mark), "priority"),
        ("INVALID_ARGUMENT", "insert", entry({}, priority=-1, **mark), "priority"),
        ("INVALID_ARGUMENT", "insert", entry({1: ("ternary", b"\1", b"\2")}, priority=1, **mark), "mask"),
        ("INVALID_ARGUMENT", "insert", entry({1: ("ternary", b"\0", b"\0")}, priority=1, **mark), "don't-care"),
        ("INVALID_ARGUMENT", "insert", entry({2: ("lpm", b"\1", 8)}, priority=1, **mark), "prefix"),
        ("INVALID_ARGUMENT", "insert", entry({2: ("lpm", b"\0", 0)}, priority=1, **mark), "don't-care"),
        ("INVALID_ARGUMENT", "insert", entry({2: ("lpm", b"\0", 49)}, priority=1, **mark), "between 1 and 48"),
        ("INVALID_ARGUMENT", "insert", entry({2: ("lpm", b"\0", -1)}, priority=1, **mark), "between 1 and 48"),
        ("INVALID_ARGUMENT", "insert", entry({3: ("range", b"\2", b"\1")}, priority=1, **mark), "lowest"),
        ("INVALID_ARGUMENT", "insert", entry({3: ("range", b"\0", b"\1\xff")}, priority=1, **mark), "don't-care"),
        ("INVALID_ARGUMENT", "modify", entry(key, is_default=True), "no matches"),
        ("INVALID_ARGUMENT", "insert", RegisterCell(ids.registers["seen"], 0, b"\0"), "modified"),
        ("INVALID_ARGUMENT", "modify", RegisterCell(ids.registers["seen"], 0, b"\2\0\0"), "18 bits"),
        ("OUT_OF_RANGE", "modify", RegisterCell(ids.registers["seen"], 8, b"\0"), "8 cells"),
        ("NOT_FOUND", "modify", RegisterCell(7, 0, b"\0"), "register"),
        ("OUT_OF_RANGE", "modify", CounterCell(ids.counters["arrived"], 4), "4 cells"),
        ("NOT_FOUND", "modify", CounterCell(7, 0), "counter"),
        ("NOT_FOUND", "modify", DirectCounterCell(entry(key)), "no such entry"),
        ("INVALID_ARGUMENT", "insert", MulticastGroup(0, [(1, 1)]), "1 to 65535"),
        ("INVALID_ARGUMENT", "insert", MulticastGroup(1, [(511, 1)]), "511"),
        ("INVALID_ARGUMENT", "insert", MulticastGroup(1, [(1, 65536)]), "16 bits"),
        ("INVALID_ARGUMENT", "insert", MulticastGroup(1, [(1, 1), (1, 1)]), "twice"),
        ("NOT_FOUND", "modify", MulticastGroup(1), "multicast group"),
        ("INVALID_ARGUMENT", "insert", CloneSession(1, class_of_service=8), "class of service"),
        ("INVALID_ARGUMENT", "insert", CloneSession(1, class_of_service=256), "class of service"),
        ("NOT_FOUND", "delete", CloneSession(1), "clone session"),
    ]
    for code, operation, entity, text in cases:
        got, message = refused(switch, operation, entity)
        assert (got, text in message) == (code, True), f"{operation} {entity!r}: {got}: {message}"
    assert switch.table_entries(table) == [good_as_read(good)]
    assert switch.table_entries(acl) == []


def good_as_read(entry: TableEntry) -> TableEntry:
    entry.counter = (0, 0)
    return entry


def test_a_full_table(switch: Switch, ids: Ids) -> None:
    insert(switch, *(l2(ids, n, "forward", n) for n in range(1, 5)))
    assert refused(switch, "insert", l2(ids, 5, "forward", 5))[0] == "RESOURCE_EXHAUSTED"


def test_a_batch_goes_on_or_goes_back(switch: Switch, ids: Ids) -> None:
    table = ids.tables["l2"]
    insert(switch, l2(ids, 1, "forward", 1))
    before = switch.table_entries(table)

    def batch(wrong: _core.Update) -> list[_core.Update]:
        return [
            ("modify", l2(ids, 1, "forward", 2)),
            ("insert", l2(ids, 2, "forward", 2)),
            wrong,
            ("insert", MulticastGroup(1, [(1, 1)])),
        ]

    fails_in_the_switch: _core.Update = ("delete", l2(ids, 3, "forward", 3))
    fails_in_the_program: _core.Update = ("insert", TableEntry(1))
    for wrong in (fails_in_the_switch, fails_in_the_program):
        results = switch.write(batch(wrong), "rollback_on_error")
        assert [r and r[0] for r in results] == ["ABORTED", "ABORTED", "NOT_FOUND", "ABORTED"]
        assert switch.table_entries(table) == before
        assert switch.multicast_groups() == []
    results = switch.write(batch(fails_in_the_switch), "continue_on_error")
    assert [r and r[0] for r in results] == [None, None, "NOT_FOUND", None]
    assert len(switch.table_entries(table)) == 2
    assert switch.write(batch(fails_in_the_switch)[:0], "rollback_on_error") == []


def test_misuse_raises(program: Program, ids: Ids) -> None:
    switch = Switch(program)
    with pytest.raises(TypeError):
        switch.write([("insert", 5)])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        switch.write([5])  # type: ignore[list-item]
    for call in (
        lambda: switch.write([("upsert", MulticastGroup(1))]),  # type: ignore[list-item]
        lambda: switch.write([], "perhaps"),  # type: ignore[arg-type]
        lambda: switch.write([("insert", TableEntry(1, {1: ("fuzzy", b"\1")}))]),
        lambda: switch.write([("insert", TableEntry(1, {1: ("lpm", b"\1")}))]),
        lambda: switch.table_entries(5),
        lambda: switch.registers(5),
        lambda: switch.counters(5),
        lambda: Switch(program, executor="fast"),  # type: ignore[arg-type]
        lambda: Switch(program, cpu_port=511),
        lambda: switch.process(511, b""),
        lambda: switch.packet_out(b""),
    ):
        with pytest.raises(HoldfastError):
            call()
    with pytest.raises(ControlError, match="direct") as caught:
        direct = next(c.preamble.id for c in ids.info.direct_counters)
        switch.counters(direct)
    assert caught.value.code == "INVALID_ARGUMENT"


def test_a_trace_tells_what_happened(program: Program, ids: Ids) -> None:
    switch = Switch(program, executor="jit")
    insert(switch, l2(ids, 1, "forward", 5))
    text = switch.trace(2, frame(1))
    assert '"program":"core"' in text.replace(" ", "")
    assert "forward" in text
    # The trace was a packet like any other.
    assert switch.counters(ids.counters["arrived"], 2)[0].packets == 1
    assert switch.process(2, frame(1)) == [(5, frame(1))]


# ---- Networks ----

MS = 1_000_000_000
S = 1000 * MS


def two_hosts(program: Program, ids: Ids, *, seed: int = 1, detection_ms: int = 0) -> tuple[Network, Switch, list[int]]:
    """h1 and h2 in one subnet, behind ports 1 and 2 of s1."""
    network = Network(seed=seed, detection_delay_ps=detection_ms * MS)
    switch = network.add_switch("s1", program, latency_ps=1000)
    links = []
    for n in (1, 2):
        network.add_host(f"h{n}", mac=MAC[n], ipv4=f"10.0.0.{n}", prefix_len=24, gateway_mac=MAC[9])
        links.append(
            network.add_link(
                "s1", n, f"h{n}", 0, rate_bps=100_000_000, delay_ps=MS // 10, jitter=("uniform", 0, MS // 100)
            )
        )
        insert(switch, l2(ids, n, "forward", n))
    return network, switch, links


def stream(network: Network, stop_ps: int, destination: str = "h2") -> int:
    return network.add_udp_stream(
        "h1", destination, packets_per_s=1000, payload_bytes=100, start_ps=network.now_ps, stop_ps=stop_ps
    )


def columns(data: dict[str, bytes]) -> dict[str, list[int]]:
    return {name: list(memoryview(column).cast("q")) for name, column in data.items()}


def test_a_stream_a_ping_and_a_failure(program: Program, ids: Ids) -> None:
    def run() -> tuple[Any, ...]:
        network, switch, links = two_hosts(program, ids, detection_ms=2)
        flow = stream(network, S)
        ping = network.add_ping("h1", "h2", interval_ps=100 * MS, start_ps=0, stop_ps=S)
        network.set_link_state(links[1], False, at_ps=300 * MS)
        network.set_link_state(links[1], True, at_ps=500 * MS)
        changes = []
        while notifications := network.run(2 * S):
            changes += [(n.kind, n.node, n.port, n.up, n.time_ps) for n in notifications]
        assert network.now_ps == 2 * S
        return (
            changes,
            columns(network.sent(flow)),
            columns(network.received(flow)),
            columns(network.received(ping)),
            [network.link_counters(link) for link in links],
            network.node_counters("s1"),
            switch.counters(ids.counters["arrived"], 1)[0].packets,
        )

    first = run()
    changes, sent, received, replies, links, node, arrived = first
    assert changes == [
        ("port_change", "s1", 2, False, 302 * MS),
        ("port_change", "s1", 2, True, 502 * MS),
    ]
    assert sent["sequence"] == list(range(1000))
    assert sent["sent_ps"] == [i * MS for i in range(1000)]
    assert 799 <= len(received["sequence"]) <= 801
    latencies = [r - s for s, r in zip(received["sent_ps"], received["received_ps"], strict=True)]
    assert 2 * MS // 10 <= min(latencies) <= max(latencies) < 3 * MS // 10
    assert replies["sequence"] == [0, 1, 2, 5, 6, 7, 8, 9]
    lost = 1010 - len(received["sequence"]) - len(replies["sequence"])
    assert links[1]["a_to_b_down_drops"] + links[1]["b_to_a_down_drops"] == lost
    assert links[0]["b_to_a_packets"] == arrived == 1010
    assert node["received"] == links[0]["b_to_a_delivered"] + links[1]["b_to_a_delivered"]
    # All of it again, exactly.
    assert run() == first


def test_an_address_that_many_have(program: Program, ids: Ids) -> None:
    network, switch, _ = two_hosts(program, ids)
    group = TableEntry(
        ids.tables["l2"], {1: ("exact", bytes.fromhex("01005e010203"))}, ids.actions["multicast"], {1: b"\1"}
    )
    insert(switch, group, MulticastGroup(1, [(1, 0), (2, 0)]))
    flow = stream(network, 10 * MS, "239.1.2.3")
    assert network.run(S) == []
    assert columns(network.received(flow, host="h2"))["sequence"] == list(range(10))
    assert columns(network.received(flow))["sequence"] == []
    with pytest.raises(HoldfastError, match="s1"):
        network.received(flow, host="s1")


def test_packet_in_packet_out_and_digest(program: Program, ids: Ids, tmp_path: Path) -> None:
    network, switch, _links = two_hosts(program, ids)
    network.capture("s1", 2, tmp_path / "s1.pcap")
    insert(switch, l2(ids, 3, "forward", 510), l2(ids, 4, "learn"))
    network.send_frame("h1", frame(3))
    network.send_frame("h1", frame(4, src=8))
    seen = []
    while notifications := network.run(S):
        seen += notifications
    assert [(n.kind, n.node) for n in seen] == [("packet_in", "s1"), ("digest", "s1")]
    assert seen[0].data == frame(3)
    assert switch.take_digests() == [(next(iter(ids.digests.values())), MAC[8] + b"\x08\x00")]
    switch.packet_out(frame(2, ethertype=0x1234, payload=b"from the controller"))
    notifications = network.run(2 * S)
    assert [(n.kind, n.node, n.data) for n in notifications] == [
        ("host_frame", "h2", frame(2, ethertype=0x1234, payload=b"from the controller"))
    ]
    assert network.run(2 * S) == []
    assert switch.counters(ids.counters["arrived"])[1].packets == 2
    ((time_ps, captured),) = _core.read_pcap(tmp_path / "s1.pcap")
    assert (captured, S <= time_ps < 2 * S) == (frame(2, ethertype=0x1234, payload=b"from the controller"), True)
    assert network.port_is_up("s1", 2)
    network.set_node_state("h2", False)
    assert not network.port_is_up("s1", 2)
    assert network.corrupted(stream(network, 2 * S + MS)) == 0


def test_a_network_refuses(program: Program, ids: Ids) -> None:
    network, switch, links = two_hosts(program, ids)
    network.run(S)
    host = {"mac": MAC[3], "ipv4": "10.0.0.3", "prefix_len": 24, "gateway_mac": MAC[9]}
    for call, text in (
        (lambda: network.add_switch("s1", program), "s1"),
        (lambda: network.add_switch("s2", program, executor="slow"), "slow"),
        (lambda: network.add_switch("s2", program, cpu_port=600), "cpu_port"),
        (lambda: network.add_host("h3", **{**host, "mac": b"\2"}), "6 bytes"),
        (lambda: network.add_host("h3", **{**host, "ipv4": "10.0.0"}), "10.0.0"),
        (lambda: network.add_host("h3", **{**host, "prefix_len": 33}), "prefix_len"),
        (lambda: network.add_link("s1", 3, "nobody", 0, rate_bps=1), "nobody"),
        (lambda: network.add_link("s1", 1, "s1", 4, rate_bps=1), "port 1"),
        (lambda: network.add_link("s1", 3, "s1", 4, rate_bps=0), "rate_bps"),
        (lambda: network.add_link("s1", 3, "s1", 4, rate_bps=1, loss=1.5), "loss"),
        (lambda: network.add_link("s1", 3, "s1", 4, rate_bps=1, jitter=("poisson", 1, 1)), "poisson"),
        (lambda: network.add_link("s1", 3, "s1", 4, rate_bps=1, jitter=("normal", 1, -1)), "negative"),
        (lambda: network.set_link_state(99, True), "99"),
        (lambda: network.set_link_state(links[0], True, at_ps=1), "passed"),
        (lambda: network.set_node_state("nobody", True), "nobody"),
        (lambda: network.run(1), "passed"),
        (lambda: network.sent(5), "5"),
        (lambda: network.received(5), "5"),
        (lambda: network.link_counters(5), "5"),
        (lambda: network.poll(0.0), "start"),
        (lambda: network.poll(-1.0), "timeout_s"),
        (lambda: network.wall_statistics(), "not running"),
        (lambda: switch.process(1, b""), "s1"),
        (lambda: switch.trace(1, b""), "s1"),
    ):
        with pytest.raises(HoldfastError, match=text):
            call()


def test_the_wall_clock(program: Program, ids: Ids) -> None:
    network, switch, links = two_hosts(program, ids)
    flow = stream(network, 3 * S)
    network.start()
    with pytest.raises(HoldfastError, match="running already"):
        network.start()
    with pytest.raises(HoldfastError, match="stop"):
        network.run(S)
    started = time.monotonic()
    # The control plane works while packets flow.
    assert switch.write([("modify", l2(ids, 2, "forward", 2))]) == [None]
    assert len(switch.table_entries(ids.tables["l2"])) == 2
    switch.packet_out(frame(1, ethertype=0x1234, payload=b"live"))
    notifications = network.poll(60)
    assert [(n.kind, n.node, n.data) for n in notifications] == [
        ("host_frame", "h1", frame(1, ethertype=0x1234, payload=b"live"))
    ]
    # Late enough for a machine that is busy with something else meanwhile.
    network.set_link_state(links[0], False, at_ps=2 * S)
    (change,) = network.poll(60)
    assert (change.kind, change.port, change.up, change.time_ps) == ("port_change", 1, False, 2 * S)
    # Other threads run while one polls.
    ticks = []
    poller = threading.Thread(target=lambda: network.poll(0.2))
    poller.start()
    while poller.is_alive():
        ticks.append(network.now_ps)
        time.sleep(0.005)
    assert len(ticks) > 1
    assert ticks == sorted(ticks)
    assert network.wall_statistics()["events"] > 300
    elapsed_ps = (time.monotonic() - started) * S
    assert elapsed_ps / 2 < network.now_ps < elapsed_ps + S
    network.stop()
    network.stop()
    received = columns(network.received(flow))["sequence"]
    # What was on its way when the link failed is lost, and all after it.
    assert received == list(range(len(received)))
    assert 1995 <= len(received) <= 2001
    # Time goes on from there, on either clock.
    assert network.run(network.now_ps + S) == []


def test_a_switch_of_a_running_network_gets_a_new_program(program: Program, ids: Ids) -> None:
    network, switch, _ = two_hosts(program, ids)
    network.start()
    try:
        switch.set_program(program)
        assert switch.table_entries(ids.tables["l2"]) == []
        insert(switch, l2(ids, 1, "forward", 1))
        switch.packet_out(frame(1, ethertype=0x1234))
        assert [n.kind for n in network.poll(60)] == ["host_frame"]
        network.set_node_state("s1", False)
        with pytest.raises(HoldfastError, match="before start"):
            network.add_interface("i1", "eth0")
    finally:
        network.stop()


def test_a_long_run_can_be_interrupted(tmp_path: Path) -> None:
    script = tmp_path / "long.py"
    script.write_text(
        "from holdfast._core import Network\n"
        "network = Network()\n"
        "for n in (1, 2):\n"
        "    network.add_host(f'h{n}', mac=bytes((2, 0, 0, 0, 0, n)), ipv4=f'10.0.0.{n}', prefix_len=24,"
        " gateway_mac=bytes((2, 0, 0, 0, 0, 9)))\n"
        "network.add_link('h1', 0, 'h2', 0, rate_bps=10**9)\n"
        "end = 10**18\n"
        "network.add_udp_stream('h1', 'h2', packets_per_s=10000, payload_bytes=24, start_ps=0, stop_ps=end)\n"
        "print('ready', flush=True)\n"
        "try:\n"
        "    network.run(end)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(2)
        try:
            out, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert out == "interrupted\n"


# ---- The rest ----


def test_captures(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    frames = [(1_000_000_001_000, frame(1)), (1_000_000_002_999, b"")]
    _core.write_pcap(path, frames)
    assert _core.read_pcap(str(path)) == [frames[0], (1_000_000_002_000, b"")]
    # The time of day, as captures on the wall clock have it.
    today = [(1_800_000_000 * 10**12 + 5000, frame(1)), (1_800_000_000 * 10**12 + 6000, frame(2))]
    _core.write_pcap(path, today)
    assert _core.read_pcap(path) == today
    with pytest.raises(OSError, match="32 bits"):
        _core.write_pcap(path, [(2**32 * 10**12, b"")])
    with pytest.raises(HoldfastError, match="beyond"):
        _core.write_pcap(path, [(2**100, b"")])
    with pytest.raises(FileNotFoundError):
        _core.read_pcap(tmp_path / "absent.pcap")
    path.write_bytes(b"not a capture")
    with pytest.raises(HoldfastError, match="pcap"):
        _core.read_pcap(path)
    path.write_bytes(struct.pack("<IHHiIII IIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 113, 0, 0, 1, 1) + b"x")
    with pytest.raises(HoldfastError, match="113"):
        _core.read_pcap(path)


def test_records_compare_and_show_themselves() -> None:
    entry = TableEntry(1, {2: ("exact", b"\3")}, 4, {5: b"\6"}, 7)
    assert repr(entry) == (
        "TableEntry(table_id=1, matches={2: ('exact', b'\\x03')}, action_id=4, args={5: b'\\x06'}, priority=7, "
        "is_default=False)"
    )
    assert entry == TableEntry(1, {2: ("exact", b"\3")}, 4, {5: b"\6"}, 7)
    assert entry != TableEntry(1, {2: ("exact", b"\4")}, 4, {5: b"\6"}, 7)
    assert entry != 1
    assert MulticastGroup(1, [(2, 3)]) != MulticastGroup(1, [(2, 4)])
    # Every record has its own dictionaries.
    assert TableEntry(1).matches is not TableEntry(1).matches


def test_the_probe_tells_about_everything() -> None:
    findings = _core.probe()
    assert {"AF_PACKET", "AF_XDP", "CAP_NET_RAW", "cores", "ip", "iperf3", "perf counters", "ping"} <= findings.keys()
    assert all(detail for _, detail in findings.values())
    assert findings["AF_PACKET"][0] == (_core.interfaces_ready() is None)
