"""Stateful objects through the native core: profiles, meters, value sets, idle timeouts, digests, port state, generators."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast._core import (
    ActionProfileGroup,
    ActionProfileMember,
    CounterCell,
    DigestConfig,
    DirectMeterCell,
    Entity,
    HoldfastError,
    MeterCell,
    Network,
    Program,
    RegisterCell,
    Switch,
    TableEntry,
    ValueSetMembers,
)
from holdfast.errors import TopologyError
from holdfast.network import SimulatedNetwork
from holdfast.p4runtime.p4info import parse_text
from holdfast.topology import Topology

MS = 1_000_000_000
S = 1000 * MS

SOURCE = """
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> kind; bit<8> flow; bit<8> result; }
struct headers { data_t data; }
struct metadata { }
struct learn_t { bit<8> kind; bit<8> flow; }

parser P(packet_in packet, out headers h, inout metadata m, inout standard_metadata_t s) {
    value_set<bit<8>>(4) special;
    state start {
        packet.extract(h.data);
        transition select(h.data.kind) { special: mark; _: accept; }
    }
    state mark { h.data.result = 0xee; transition accept; }
}
control Check(inout headers h, inout metadata m) { apply { } }
control In(inout headers h, inout metadata m, inout standard_metadata_t s) {
    action_selector(HashAlgorithm.crc32, 32w16, 32w16) selector;
    direct_meter<bit<8>>(MeterType.packets) rate;
    meter(4, MeterType.bytes) cells;
    counter(4, CounterType.packets) hits;
    register<bit<12>>(1024) values;

    action forward(bit<9> port) { s.egress_spec = port; }
    action drop() { mark_to_drop(s); }
    action colour(bit<9> port) { s.egress_spec = port; rate.read(h.data.result); }
    action learn() { digest<learn_t>(1, { h.data.kind, h.data.flow }); mark_to_drop(s); }

    table balance {
        key = { h.data.kind: exact; h.data.flow: selector; }
        actions = { forward; drop; }
        default_action = drop();
        implementation = selector;
    }
    table metered {
        key = { h.data.kind: exact; }
        actions = { colour; learn; @defaultonly NoAction; }
        default_action = NoAction();
        meters = rate;
        support_timeout = true;
    }
    apply {
        if (!metered.apply().hit) {
            balance.apply();
        }
    }
}
control Out(inout headers h, inout metadata m, inout standard_metadata_t s) { apply { } }
control Deparse(packet_out packet, in headers h) { apply { packet.emit(h.data); } }
V1Switch(P(), Check(), In(), Out(), Check(), Deparse()) main;
"""

PROTECT = """
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header alarm_t { bit<16> port; }
struct headers { ethernet_t ethernet; alarm_t alarm; }
struct metadata { }

parser P(packet_in packet, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start {
        packet.extract(h.ethernet);
        transition select(h.ethernet.type) { 0x88b5: alarm; _: accept; }
    }
    state alarm { packet.extract(h.alarm); transition accept; }
}
control Check(inout headers h, inout metadata m) { apply { } }
control In(inout headers h, inout metadata m, inout standard_metadata_t s) {
    @port_state register<bit<1>>(512) port_up;
    register<bit<16>>(1) failed;
    apply {
        bit<1> first_is_up;
        bit<16> alarmed;
        if (h.alarm.isValid()) {
            failed.write(0, h.alarm.port);
            mark_to_drop(s);
        } else if (s.ingress_port == 1) {
#ifdef BY_ALARM
            failed.read(alarmed, 0);
            first_is_up = alarmed == 2 ? 1w0 : 1w1;
#else
            port_up.read(first_is_up, 2);
#endif
            s.egress_spec = first_is_up == 1 ? 9w2 : 9w3;
        } else {
            s.egress_spec = 1;
        }
    }
}
control Out(inout headers h, inout metadata m, inout standard_metadata_t s) { apply { } }
control Deparse(packet_out packet, in headers h) { apply { packet.emit(h); } }
V1Switch(P(), Check(), In(), Out(), Check(), Deparse()) main;
"""

ALARM = "ffffffffffff" + "020000000000" + "88b5" + "0000"


class Ids:
    """P4Runtime ids by the last part of the name."""

    def __init__(self, program: Program) -> None:
        info = parse_text(program.p4info)
        lists = [info.tables, info.actions, info.action_profiles, info.meters, info.direct_meters, info.counters]
        for objects in [*lists, info.registers, info.digests, info.value_sets]:
            for object in objects:
                setattr(self, object.preamble.name.rsplit(".", 1)[-1], object.preamble.id)

    def __getattr__(self, name: str) -> int:
        raise AttributeError(name)


@pytest.fixture(scope="module")
def program() -> Program:
    return Program.compile_text(SOURCE, "stateful.p4")


@pytest.fixture(scope="module")
def ids(program: Program) -> Ids:
    return Ids(program)


@pytest.fixture(params=["jit", "interpreter"])
def switch(program: Program, request: pytest.FixtureRequest) -> Switch:
    return Switch(program, executor=request.param)


def write(switch: Switch, operation: str, *entities: Entity) -> list[str | None]:
    results = switch.write([(operation, entity) for entity in entities])  # type: ignore[misc]
    return [result[0] if result else None for result in results]


def exact(table: int, kind: int, **rest: object) -> TableEntry:
    return TableEntry(table, {1: ("exact", bytes([kind]))}, **rest)  # type: ignore[arg-type]


def port(n: int) -> dict[int, bytes]:
    return {1: n.to_bytes(2, "big")}


def out(switch: Switch, kind: int, flow: int = 0, now_ps: int = 0) -> list[tuple[int, int]]:
    return [(p, data[2]) for p, data in switch.process(0, bytes([kind, flow, 0]), now_ps)]


def test_groups_choose_and_watch_ports(switch: Switch, ids: Ids) -> None:
    members = [ActionProfileMember(ids.selector, n, ids.forward, port(n)) for n in (1, 2, 3)]
    group = ActionProfileGroup(ids.selector, 7, [(1, 1, None), (2, 2, 5), (3, 1, 6)])
    entry = exact(ids.balance, 9, group_id=7)
    assert write(switch, "insert", group) == ["NOT_FOUND"]
    assert write(switch, "insert", *members, group, entry) == [None] * 5
    assert switch.action_profile_members(ids.selector) == members
    assert switch.action_profile_groups() == [group]
    assert switch.table_entries(ids.balance) == [entry]
    used = {flow: out(switch, 9, flow)[0][0] for flow in range(256)}
    assert {p: list(used.values()).count(p) for p in (1, 2, 3)} == {1: 64, 2: 128, 3: 64}
    switch.set_port_up(5, False)
    assert not switch.port_is_up(5)
    assert {out(switch, 9, flow)[0][0] for flow in range(256)} == {1, 3}
    switch.set_port_up(5, True)
    assert {flow: out(switch, 9, flow)[0][0] for flow in range(256)} == used
    assert write(switch, "delete", members[0], group) == ["FAILED_PRECONDITION"] * 2
    selected = json.loads(switch.trace(0, bytes([9, 1, 0])))
    (table,) = [e for e in selected["events"] if e["event"] == "table" and "balance" in e["table"]]
    assert table["selection"]["group"] == 7
    assert table["selection"]["member"] == used[1]


def test_one_shot_sets_are_read_as_written(switch: Switch, ids: Ids) -> None:
    actions = [(ids.forward, port(4), 1, None), (ids.forward, port(5), 3, 8)]
    entry = exact(ids.balance, 9, action_set=actions)
    assert write(switch, "insert", entry) == [None]
    assert switch.table_entries(ids.balance) == [entry]
    assert {out(switch, 9, flow)[0][0] for flow in range(50)} == {4, 5}
    member = ActionProfileMember(ids.selector, 1, ids.forward, port(1))
    assert write(switch, "insert", member) == ["INVALID_ARGUMENT"]
    plain = exact(ids.balance, 8, action_id=ids.forward, args=port(1))
    both = exact(ids.balance, 8, member_id=1, action_id=ids.forward, args=port(1))
    assert write(switch, "insert", plain, both) == ["INVALID_ARGUMENT"] * 2
    with pytest.raises(HoldfastError, match="one of"):
        write(switch, "insert", exact(ids.balance, 8, member_id=1, group_id=1))


def test_meters(switch: Switch, ids: Ids) -> None:
    config = (1, 2, 2, 3)
    entry = exact(ids.metered, 3, action_id=ids.colour, args=port(1), meter_config=config)
    assert write(switch, "insert", entry) == [None]
    assert [out(switch, 3)[0][1] for _ in range(4)] == [0, 0, 1, 2]
    assert out(switch, 3, now_ps=S) == [(1, 0)]
    (read,) = switch.table_entries(ids.metered)
    assert read.meter_config == config
    assert read.meter_counters == ((3, 9), (1, 3), (1, 3))
    assert write(switch, "modify", DirectMeterCell(read, None)) == [None]
    assert switch.table_entries(ids.metered)[0].meter_config is None
    cells = [MeterCell(ids.cells, index, config) for index in (1, 2)]
    assert write(switch, "modify", *cells) == [None, None]
    assert [cell.index for cell in switch.meters(ids.cells, configured=True)] == [1, 2]
    assert [cell.config for cell in switch.meters(ids.cells)] == [None, config, config, None]
    assert switch.meters(ids.cells, 1)[0].counters == ((0, 0), (0, 0), (0, 0))
    assert write(switch, "modify", MeterCell(ids.cells, None, None)) == [None]
    assert switch.meters(ids.cells, configured=True) == []
    assert write(switch, "modify", MeterCell(ids.cells, 4, config), MeterCell(ids.rate, 0)) == [
        "OUT_OF_RANGE",
        "INVALID_ARGUMENT",
    ]


def test_arrays_as_a_whole(switch: Switch, ids: Ids) -> None:
    assert switch.registers(ids.values, nonzero=True) == []
    assert write(switch, "modify", RegisterCell(ids.values, 77, b"\x05")) == [None]
    assert switch.registers(ids.values, nonzero=True) == [RegisterCell(ids.values, 77, b"\x00\x05")]
    assert write(switch, "modify", RegisterCell(ids.values, None, b"\x07")) == [None]
    assert {cell.value for cell in switch.registers(ids.values)} == {b"\x00\x07"}
    assert write(switch, "modify", CounterCell(ids.hits, None, 3)) == [None]
    assert [cell.packets for cell in switch.counters(ids.hits, nonzero=True)] == [3] * 4


def test_value_sets(switch: Switch, ids: Ids) -> None:
    members = ValueSetMembers(ids.special, [{1: ("exact", b"\x03")}, {1: ("exact", b"\x09")}])
    assert write(switch, "modify", members) == [None]
    assert switch.value_set_members() == [members]
    write(switch, "insert", exact(ids.balance, 9, action_set=[(ids.forward, port(1), 1, None)]))
    assert out(switch, 9) == [(1, 0xEE)]
    assert write(switch, "modify", ValueSetMembers(ids.special, [])) == [None]
    assert out(switch, 9) == [(1, 0)]
    too_many = ValueSetMembers(ids.special, [{1: ("exact", bytes([n]))} for n in range(5)])
    assert write(switch, "modify", too_many, ValueSetMembers(99, [])) == ["RESOURCE_EXHAUSTED", "NOT_FOUND"]


def test_a_trace_shows_assignments_on_request(switch: Switch, ids: Ids) -> None:
    entry = exact(ids.metered, 3, action_id=ids.colour, args=port(1), meter_config=(1, 1, 1, 1))
    write(switch, "insert", entry)
    text = switch.trace(0, b"\x03\x00\x00", text=True)
    assert "green" in text
    assert "standard_metadata.egress_spec =" not in text
    kinds = [e["event"] for e in json.loads(switch.trace(0, b"\x03\x00\x00"))["events"]]
    assert "direct_meter" in kinds
    assert "assign" not in kinds
    trace = json.loads(switch.trace(0, b"\x03\x00\x00", assignments=True))
    assigned = [e for e in trace["events"] if e["event"] == "assign"]
    assert any("egress_spec" in e["variable"] and e["at"].startswith("stateful.p4:") for e in assigned)


def test_idle_entries_alone(switch: Switch, ids: Ids) -> None:
    entry = exact(ids.metered, 3, action_id=ids.learn, idle_timeout_ns=5_000_000)
    assert write(switch, "insert", entry) == [None]
    assert switch.next_deadline_ps() == 5 * MS
    out(switch, 3, now_ps=2 * MS)
    switch.set_now_ps(6 * MS)
    assert switch.take_idle_entries() == []
    switch.set_now_ps(7 * MS)
    (idle,) = switch.take_idle_entries()
    assert (idle.table_id, idle.idle_ns, idle.idle_timeout_ns) == (ids.metered, 5_000_000, 5_000_000)
    with pytest.raises(HoldfastError, match="run back"):
        switch.set_now_ps(6 * MS)


# ---- In a network ----


def hosts(network: Network, program: Program) -> Switch:
    switch = network.add_switch("s1", program)
    for n in (1, 2):
        network.add_host(
            f"h{n}", mac=bytes([2, 0, 0, 0, 0, n]), ipv4=f"10.0.0.{n}", prefix_len=24, gateway_mac=b"\2" * 6
        )
        network.add_link("s1", n, f"h{n}", 0, rate_bps=10**9)
    return switch


def notifications(network: Network, until_ps: int) -> list[tuple[str, int]]:
    found = []
    while network.now_ps < until_ps:
        found += [(n.kind, n.time_ps) for n in network.run(until_ps)]
    return found


def test_idle_timeouts_come_by_themselves(program: Program, ids: Ids) -> None:
    network = Network()
    switch = hosts(network, program)
    network.run(MS)
    entries = [exact(ids.metered, kind, action_id=ids.learn, idle_timeout_ns=10_000_000) for kind in (3, 4)]
    assert write(switch, "insert", *entries) == [None, None]
    network.run(4 * MS)
    network.send_frame("h1", b"\x03\x00\x00")
    # The digest of that packet is announced at once; entry 4 is idle ten milliseconds after its insertion.
    (digest,) = network.run(30 * MS)
    assert (digest.kind, digest.time_ps // MS) == ("digest", 4)
    assert switch.take_digests() == [(ids.learn_t, b"\x03\x00")]
    assert [(n.kind, n.time_ps) for n in network.run(30 * MS)] == [("idle_timeout", 11 * MS)]
    assert [e.matches for e in switch.take_idle_entries()] == [{1: ("exact", b"\x04")}]
    write(switch, "delete", entries[1])
    (second,) = network.run(30 * MS)
    assert (second.kind, second.time_ps // MS) == ("idle_timeout", 14)
    assert [e.matches for e in switch.take_idle_entries()] == [{1: ("exact", b"\x03")}]
    # It stays idle, and is named again after each timeout; until it is taken, once.
    assert [time // MS for _, time in notifications(network, 60 * MS)] == [24]
    assert len(switch.take_idle_entries()) == 1


def test_what_is_not_taken_is_announced_again(program: Program, ids: Ids) -> None:
    network = Network()
    switch = hosts(network, program)
    entries = [exact(ids.metered, kind, action_id=ids.learn, idle_timeout_ns=10_000_000) for kind in range(3, 8)]
    assert write(switch, "insert", *entries) == [None] * 5
    taken = []
    for _ in range(3):
        (idle,) = network.run(15 * MS)
        assert (idle.kind, idle.time_ps) == ("idle_timeout", 10 * MS)
        taken.append(len(switch.take_idle_entries(2)))
    assert taken == [2, 2, 1]
    assert network.run(15 * MS) == []
    for kind in (3, 4, 5):
        network.send_frame("h1", bytes([kind, 0, 0]))
    assert [n.kind for n in network.run(19 * MS)] == ["digest"]
    assert network.run(19 * MS) == [], "said once"
    assert len(switch.take_digests(2)) == 2
    assert [n.kind for n in network.run(19 * MS)] == ["digest"]
    assert len(switch.take_digests(2)) == 1
    assert network.run(19 * MS) == []
    assert switch.digests_lost() == 0


def test_digest_lists_are_due_in_network_time(program: Program, ids: Ids) -> None:
    network = Network()
    switch = hosts(network, program)
    config = DigestConfig(ids.learn_t, max_timeout_ns=5_000_000, max_list_size=3, ack_timeout_ns=50_000_000)
    assert write(switch, "insert", config) == [None]
    assert write(switch, "insert", config) == ["ALREADY_EXISTS"]
    assert switch.digest_configs() == [config]
    write(switch, "insert", exact(ids.metered, 3, action_id=ids.learn))

    def learn(at_ms: int, *flows: int) -> None:
        assert notifications(network, at_ms * MS) == []
        for flow in flows:
            network.send_frame("h1", bytes([3, flow, 0]))

    learn(1, 1, 2)
    (due,) = network.run(20 * MS)
    assert (due.kind, due.time_ps // MS) == ("digest", 6)
    (digests,) = switch.take_digest_lists()
    assert (digests.digest_id, digests.list_id, digests.time_ps) == (ids.learn_t, 1, due.time_ps)
    assert digests.messages == [b"\x03\x01", b"\x03\x02"]
    learn(10, 1, 2, 3, 4, 5)
    (full,) = network.run(20 * MS)
    assert full.time_ps // MS == 10, "three messages are a list"
    assert [d.messages for d in switch.take_digest_lists()] == [[b"\x03\x03", b"\x03\x04", b"\x03\x05"]]
    assert switch.acknowledge_digest(ids.learn_t, 1)
    assert not switch.acknowledge_digest(ids.learn_t, 1)
    learn(12, 1, 3)
    assert [(k, t // MS) for k, t in notifications(network, 30 * MS)] == [("digest", 17)]
    assert [d.messages for d in switch.take_digest_lists()] == [[b"\x03\x01"]]
    assert write(switch, "delete", config) == [None]
    assert switch.digest_configs() == []


def square(program: Program, detection_ms: int) -> tuple[Network, Switch, list[int]]:
    """h1 - s1 = s2 - h2 with two links in the middle, ports 2 and 3 of both."""
    network = Network(detection_delay_ps=detection_ms * MS)
    switches = [network.add_switch(name, program) for name in ("s1", "s2")]
    links = [network.add_link("s1", p, "s2", p, rate_bps=10**9, delay_ps=MS // 10) for p in (2, 3)]
    for n in (1, 2):
        network.add_host(
            f"h{n}", mac=bytes([2, 0, 0, 0, 0, n]), ipv4=f"10.0.0.{n}", prefix_len=24, gateway_mac=b"\2" * 6
        )
        network.add_link(f"s{n}", 1, f"h{n}", 0, rate_bps=10**9)
    return network, switches[0], links


@pytest.mark.parametrize("by_alarm", [False, True])
def test_a_program_switches_over_without_a_controller(by_alarm: bool) -> None:
    program = Program.compile_text(PROTECT, "protect.p4", defines={"BY_ALARM": "1"} if by_alarm else {})

    def run() -> tuple[dict[str, int | float | None], list[tuple[str, int]], int]:
        network, switch, links = square(program, detection_ms=7)
        generator = network.add_packet_generator("s1", 9, bytes.fromhex(ALARM), on_port_down=True, port_offset=14)
        flow = network.add_udp_stream("h1", "h2", packets_per_s=1000, payload_bytes=100, start_ps=0, stop_ps=100 * MS)
        assert switch.port_is_up(2)
        assert not switch.port_is_up(4), "nothing is connected there"
        network.set_link_state(links[0], False, 50 * MS + MS // 2)
        told = notifications(network, 200 * MS)
        assert not switch.port_is_up(2)
        return network.statistics(flow), told, network.packets_generated(generator)

    statistics, told, alarms = run()
    # Packets 51 to 57 leave before the loss of signal is detected, seven milliseconds after the cut. Nobody else is asked.
    assert (statistics["sent"], statistics["lost"]) == (100, 7)
    assert set(told) == {("port_change", 57 * MS + MS // 2)}
    assert alarms == 1
    assert run() == (statistics, told, alarms)


def test_a_periodic_generator() -> None:
    program = Program.compile_text(PROTECT, "protect.p4")
    network, _, _ = square(program, detection_ms=0)
    frame = b"\2" * 6 + b"\4" * 6 + b"\x08\x00"
    often = network.add_packet_generator("s1", 1, frame, period_ps=MS, start_ps=3 * MS)
    thrice = network.add_packet_generator("s2", 2, frame, period_ps=2 * MS, count=3)
    notifications(network, 10 * MS)
    assert (network.packets_generated(often), network.packets_generated(thrice)) == (8, 3)
    assert network.node_counters("s1")["received"] == 8
    assert network.link_counters(0)["a_to_b_packets"] == 8
    network.set_node_state("s1", False)
    notifications(network, 15 * MS)
    assert network.packets_generated(often) == 8, "a switch that is down generates nothing"
    network.set_node_state("s1", True)
    notifications(network, 16 * MS)
    assert network.packets_generated(often) == 9
    for wrong in (
        {"period_ps": 0},
        {"period_ps": MS, "on_port_down": True},
        {"period_ps": MS, "port_offset": 0},
        {"on_port_down": True, "port_offset": 13},
        {"on_port_down": True, "on_port_up": True},
        {"on_port_up": True, "count": 2},
        {"period_ps": MS, "start_ps": 1},
    ):
        with pytest.raises(HoldfastError):
            network.add_packet_generator("s1", 1, frame, **wrong)  # type: ignore[arg-type]
    with pytest.raises(HoldfastError):
        network.add_packet_generator("h1", 1, frame, period_ps=MS)


def test_a_new_program_finds_the_ports_as_they_are(program: Program) -> None:
    protect = Program.compile_text(PROTECT, "protect.p4")
    network, switch, links = square(program, detection_ms=0)
    network.set_link_state(links[0], False)
    network.run(MS)
    switch.set_program(protect)
    info = parse_text(protect.p4info)
    (register,) = [r.preamble.id for r in info.registers if r.preamble.name.endswith("port_up")]
    up = [cell.index for cell in switch.registers(register, nonzero=True)]
    assert up == [1, 3]


def test_generators_of_a_topology(tmp_path: Path) -> None:
    file = tmp_path / "square.yaml"
    file.write_text(f"""
        hosts: {{h1: {{}}, h2: {{}}}}
        switches: [s1]
        links: [{{a: h1, b: s1}}, {{a: s1, b: h2}}]
        packet_generators:
          - {{switch: s1, port: 9, packet: "{ALARM}", period_ms: 2, count: 4}}
          - {{switch: s1, port: 9, packet: "{ALARM}", on_port_down: true, port_offset: 14}}
          - {{switch: s1, port: 9, packet: "{ALARM}", on_port_up: true, port_offset: 14}}
    """)
    network = SimulatedNetwork(Topology.from_yaml(file), Program.compile_text(PROTECT, "protect.p4"))
    network.set_link("s1-h2", up=False, at_s=0.003)
    network.run(0.01)
    assert [network.packets_generated(i) for i in network.generator_ids] == [4, 1, 0]
    network.set_link("s1-h2", up=True, at_s=0.013)
    network.run(0.02)
    assert [network.packets_generated(i) for i in network.generator_ids] == [4, 1, 1]
    topology = Topology.from_yaml(file)
    for wrong in (
        {"period_ms": 1, "on_port_down": True},
        {},
        {"on_port_down": True, "port_offset": 15},
        {"on_port_down": True, "on_port_up": True},
        {"on_port_up": True, "count": 1},
    ):
        with pytest.raises(TopologyError):
            topology.add_packet_generator("s1", 9, ALARM, **wrong)
    with pytest.raises(TopologyError, match="no switch"):
        topology.add_packet_generator("h1", 9, ALARM, period_ms=1)
