"""Stateful objects through the native core: profiles, meters, value sets, idle timeouts, digests, port state, generators."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from controlled import controlled, insert

from holdfast._core import HoldfastError, Network, Program, Switch
from holdfast.errors import TopologyError
from holdfast.measurements import DirectionCounters, FlowStatistics, GeneratorCounters, NodeCounters
from holdfast.network import SimulatedNetwork
from holdfast.p4runtime import DigestList, Group, IdleEntries, LocalClient, Member, limits
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4
from holdfast.topology import PacketGenerator, Topology
from holdfast.traffic import UdpStream

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


@pytest.fixture(scope="module")
def program() -> Program:
    return Program.compile_text(SOURCE, "stateful.p4")


@pytest.fixture(params=["jit", "interpreter"])
def switch(program: Program, request: pytest.FixtureRequest) -> Switch:
    return Switch(program, executor=request.param)


def out(switch: Switch, kind: int, flow: int = 0, now_ps: int = 0) -> list[tuple[int, int]]:
    return [(p, data[2]) for p, data in switch.process(0, bytes([kind, flow, 0]), now_ps)]


def test_groups_choose_and_watch_ports(switch: Switch) -> None:
    client = controlled(switch)
    for n in (1, 2, 3):
        client.profile_member("selector", n, "forward", {"port": n})
    client.profile_group("selector", 7, {1: 1, 2: 2, 3: 1}, watch_ports={2: 5, 3: 6})
    client.insert("balance", {"kind": 9}, Group(7))
    used = {flow: out(switch, 9, flow)[0][0] for flow in range(256)}
    assert {p: list(used.values()).count(p) for p in (1, 2, 3)} == {1: 64, 2: 128, 3: 64}
    switch.set_port_up(5, False)
    assert not switch.port_is_up(5)
    assert {out(switch, 9, flow)[0][0] for flow in range(256)} == {1, 3}
    switch.set_port_up(5, True)
    assert {flow: out(switch, 9, flow)[0][0] for flow in range(256)} == used
    selected = json.loads(switch.trace(0, bytes([9, 1, 0])))
    (table,) = [e for e in selected["events"] if e["event"] == "table" and "balance" in e["table"]]
    assert table["selection"]["group"] == 7
    assert table["selection"]["member"] == used[1]


def metered(client: LocalClient, kind: int, *rates: int) -> None:
    """Insert an entry into table ``metered`` whose direct meter has these rates."""
    info = client.p4info.tables["metered"]
    request = p4.WriteRequest(device_id=1)
    request.election_id.low = client.election_id
    entry = request.updates.add(type=p4.Update.INSERT).entity.table_entry
    entry.table_id = info.id
    entry.match.add(field_id=1).exact.value = bytes([kind])
    entry.action.action.action_id = info.actions["colour"].id
    entry.action.action.params.add(param_id=1, value=b"\1")
    config = entry.meter_config
    config.cir, config.cburst, config.pir, config.pburst = rates
    client._device.write(request)


def test_meters(switch: Switch) -> None:
    metered(controlled(switch), 3, 1, 2, 2, 3)
    assert [out(switch, 3)[0][1] for _ in range(4)] == [0, 0, 1, 2]
    assert out(switch, 3, now_ps=S) == [(1, 0)]


def test_value_sets(switch: Switch) -> None:
    client = controlled(switch)
    client.profile_member("selector", 1, "forward", {"port": 1})
    client.insert("balance", {"kind": 9}, Member(1))
    request = p4.WriteRequest(device_id=1)
    request.election_id.low = client.election_id
    members = request.updates.add(type=p4.Update.MODIFY).entity.value_set_entry
    members.value_set_id = client.p4info.value_sets["special"].id
    members.members.add().match.add(field_id=1).exact.value = b"\x09"
    client._device.write(request)
    assert out(switch, 9) == [(1, 0xEE)]
    members.ClearField("members")
    client._device.write(request)
    assert out(switch, 9) == [(1, 0)]


def test_a_trace_shows_assignments_on_request(switch: Switch) -> None:
    metered(controlled(switch), 3, 1, 1, 1, 1)
    text = switch.trace(0, b"\x03\x00\x00", text=True)
    assert "green" in text
    assert "standard_metadata.egress_spec =" not in text
    kinds = [e["event"] for e in json.loads(switch.trace(0, b"\x03\x00\x00"))["events"]]
    assert "direct_meter" in kinds
    assert "assign" not in kinds
    trace = json.loads(switch.trace(0, b"\x03\x00\x00", assignments=True))
    assigned = [e for e in trace["events"] if e["event"] == "assign"]
    assert any("egress_spec" in e["variable"] and e["at"].startswith("stateful.p4:") for e in assigned)


def idle(client: LocalClient) -> list[int]:
    """Return the kinds of the entries of table ``metered`` that the switch reports as idle."""
    client._device.collect_idle(0)
    found = []
    while (event := client.poll()) is not None:
        assert isinstance(event, IdleEntries)
        found += [int(str(entry.match["h.data.kind"])) for entry in event.entries]
    return found


def learning(client: LocalClient, kind: int, timeout_ns: int = 0) -> None:
    insert(client, "metered", [kind], "learn", timeout_ns=timeout_ns)


def test_idle_entries_alone(switch: Switch) -> None:
    client = controlled(switch)
    learning(client, 3, 5_000_000)
    assert switch.next_deadline_ps() == 5 * MS
    out(switch, 3, now_ps=2 * MS)
    switch.set_now_ps(6 * MS)
    assert idle(client) == []
    switch.set_now_ps(7 * MS)
    assert idle(client) == [3]
    with pytest.raises(HoldfastError, match="run back"):
        switch.set_now_ps(6 * MS)


# ---- In a network ----


def hosts(network: Network, program: Program) -> Switch:
    switch = network.add_switch("s1", program)
    for n in (1, 2):
        network.add_host(f"h{n}", cards=[{"mac": f"02:00:00:00:00:0{n}", "address": f"10.0.0.{n}/24"}])
        network.add_link(a="s1", a_port=n, b=f"h{n}", b_port=0, a_to_b={"rate_bps": 10**9})
    return switch


def notifications(network: Network, until_ps: int) -> list[tuple[str, int]]:
    found = []
    while network.now_ps < until_ps:
        found += [(n.kind, n.time_ps) for n in network.run(until_ps)]
    return found


def test_idle_timeouts_come_by_themselves(program: Program) -> None:
    network = Network()
    client = controlled(hosts(network, program))
    network.run(MS)
    for kind in (3, 4):
        learning(client, kind, 10_000_000)
    network.run(4 * MS)
    network.send_frame("h1", b"\x03\x00\x00")
    # The digest of that packet, which nobody asked for, is announced at once; entry 4 is idle ten milliseconds after its insertion.
    (digest,) = network.run(30 * MS)
    assert (digest.kind, digest.time_ps // MS) == ("digest", 4)
    client._device.collect_digests(0)
    assert [(n.kind, n.time_ps) for n in network.run(30 * MS)] == [("idle_timeout", 11 * MS)]
    assert idle(client) == [4]
    client.delete("metered", {"kind": 4})
    (second,) = network.run(30 * MS)
    assert (second.kind, second.time_ps // MS) == ("idle_timeout", 14)
    assert idle(client) == [3]
    # It stays idle, and is named again after each timeout; until it is taken, once.
    assert [time // MS for _, time in notifications(network, 60 * MS)] == [24]
    assert idle(client) == [3]


def test_what_is_not_taken_is_announced_again(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_IDLE_ENTRIES", 2)
    monkeypatch.setattr(limits, "MAX_DIGESTS_TAKEN", 2)
    network = Network()
    switch = hosts(network, program)
    client = controlled(switch)
    for kind in range(3, 8):
        learning(client, kind, 10_000_000)
    taken = []
    for _ in range(3):
        (notification,) = network.run(15 * MS)
        assert (notification.kind, notification.time_ps) == ("idle_timeout", 10 * MS)
        taken.append(len(idle(client)))
    assert taken == [2, 2, 1]
    assert network.run(15 * MS) == []
    digests: list[DigestList] = []
    client.on_digest = digests.append
    client.enable_digest("learn_t")
    for kind in (3, 4, 5):
        network.send_frame("h1", bytes([kind, 0, 0]))
    for count in (2, 3):
        assert [n.kind for n in network.run(19 * MS)] == ["digest"]
        assert network.run(19 * MS) == [], "said once"
        client._device.collect_digests(0)
        assert len(digests) == count
    assert network.run(19 * MS) == []
    assert switch.digests_lost() == 0


def test_digest_lists_are_due_in_network_time(program: Program) -> None:
    network = Network()
    client = controlled(hosts(network, program))
    client.enable_digest("learn_t", max_timeout_ns=5_000_000, max_list_size=3, ack_timeout_ns=50_000_000)
    learning(client, 3)
    digests: list[DigestList] = []
    client.on_digest = digests.append

    def learn(at_ms: int, *flows: int) -> None:
        assert notifications(network, at_ms * MS) == []
        for flow in flows:
            network.send_frame("h1", bytes([3, flow, 0]))

    def taken() -> list[list[object]]:
        digests.clear()
        client._device.collect_digests(0)
        return [[value["flow"] for value in each.values if isinstance(value, dict)] for each in digests]

    learn(1, 1, 2)
    (due,) = network.run(20 * MS)
    assert (due.kind, due.time_ps // MS) == ("digest", 6)
    assert taken() == [[1, 2]]
    (first,) = digests
    learn(10, 1, 2, 3, 4, 5)
    (full,) = network.run(20 * MS)
    assert full.time_ps // MS == 10, "three messages are a list"
    assert taken() == [[3, 4, 5]]
    client.acknowledge(first)
    learn(12, 1, 3)
    assert [(k, t // MS) for k, t in notifications(network, 30 * MS)] == [("digest", 17)]
    assert taken() == [[1]]


def square(program: Program, detection_ms: int) -> tuple[Network, Switch, list[int]]:
    """Return a network h1 - s1 = s2 - h2 with two links in the middle, at ports 2 and 3 of both switches, s1, and these links."""
    network = Network(detection_delay_ps=detection_ms * MS)
    switches = [network.add_switch(name, program) for name in ("s1", "s2")]
    links = [
        network.add_link(a="s1", a_port=p, b="s2", b_port=p, a_to_b={"rate_bps": 10**9, "delay_ms": 0.1})
        for p in (2, 3)
    ]
    for n in (1, 2):
        network.add_host(f"h{n}", cards=[{"mac": f"02:00:00:00:00:0{n}", "address": f"10.0.0.{n}/24"}])
        network.add_link(a=f"s{n}", a_port=1, b=f"h{n}", b_port=0, a_to_b={"rate_bps": 10**9})
    return network, switches[0], links


@pytest.mark.parametrize("by_alarm", [False, True])
def test_a_program_switches_over_without_a_controller(by_alarm: bool) -> None:
    program = Program.compile_text(PROTECT, "protect.p4", defines={"BY_ALARM": "1"} if by_alarm else {})

    def run() -> tuple[FlowStatistics, list[tuple[str, int]], int]:
        network, switch, links = square(program, detection_ms=7)
        alarm = PacketGenerator(switch="s1", port=9, packet=bytes.fromhex(ALARM), on_port_down=True, port_offset=14)
        generator = network.add_packet_generator(**alarm.model_dump())
        stream = UdpStream(source="h1", destination="h2", payload_bytes=100, stop_s=0.1)
        flow = network.add_udp_stream(**stream.model_dump())
        assert switch.port_is_up(2)
        assert not switch.port_is_up(4), "nothing is connected there"
        network.apply(target={"link": links[0]}, up=False, at_ps=50 * MS + MS // 2)
        told = notifications(network, 200 * MS)
        assert not switch.port_is_up(2)
        return network.snapshot(FlowStatistics, flow=flow)[0], told, generated(network, generator)

    statistics, told, alarms = run()
    # Packets 51 to 57 leave before the loss of signal is detected, seven milliseconds after the cut. Nobody else is asked.
    assert (statistics.sent, statistics.lost) == (100, 7)
    assert set(told) == {("port_change", 57 * MS + MS // 2)}
    assert alarms == 1
    assert run() == (statistics, told, alarms)


def generated(network: Network, generator: int) -> int:
    (counters,) = network.snapshot(GeneratorCounters, generator=generator)
    return counters.packets


def test_a_periodic_generator() -> None:
    program = Program.compile_text(PROTECT, "protect.p4")
    network, _, _ = square(program, detection_ms=0)
    frame = b"\2" * 6 + b"\4" * 6 + b"\x08\x00"
    often = network.add_packet_generator(switch="s1", port=1, packet=frame, period_ms=1, start_ms=3)
    thrice = network.add_packet_generator(switch="s2", port=2, packet=frame, period_ms=2, count=3)
    notifications(network, 10 * MS)
    assert (generated(network, often), generated(network, thrice)) == (8, 3)
    assert network.snapshot(NodeCounters, node="s1")[0].received == 8
    assert network.snapshot(DirectionCounters, link=0)[0].packets == 8
    network.apply(target={"node": "s1"}, up=False)
    notifications(network, 15 * MS)
    assert generated(network, often) == 8, "a switch that is down generates nothing"
    network.apply(target={"node": "s1"}, up=True)
    notifications(network, 16 * MS)
    assert generated(network, often) == 9
    for wrong in (
        {},
        {"period_ms": 0},
        {"period_ms": -1},
        {"period_ms": 1, "on_port_down": True},
        {"period_ms": 1, "port_offset": 0},
        {"on_port_down": True, "port_offset": 13},
        {"on_port_down": True, "on_port_up": True},
        {"on_port_up": True, "count": 2},
        {"period_ms": 1, "start_ms": 1e-9},
    ):
        with pytest.raises(HoldfastError):
            network.add_packet_generator(switch="s1", port=1, packet=frame, **wrong)
    with pytest.raises(HoldfastError):
        network.add_packet_generator(switch="h1", port=1, packet=frame, period_ms=1)


def test_a_new_program_finds_the_ports_as_they_are(program: Program) -> None:
    protect = Program.compile_text(PROTECT, "protect.p4")
    network, switch, links = square(program, detection_ms=0)
    network.apply(target={"link": links[0]}, up=False)
    network.run(MS)
    switch.set_program(protect)
    assert [port for port, up in controlled(switch).registers("port_up").items() if up] == [1, 3]


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
