"""The commands of simple_switch_CLI against a device: what they write, what they print, and what they say of mistakes."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from holdfast import _core
from holdfast.bmv2 import runtime_cli
from holdfast.bmv2.runtime_cli import RuntimeCli
from holdfast.bmv2.runtime_commands import CommandError, MulticastNodes
from holdfast.errors import LiveError
from holdfast.p4runtime import Device, LocalClient

SOURCE = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<48> mac; bit<32> ip; bit<16> port; bit<8> tag; }
struct headers { h_t h; }
struct metadata {}
parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition accept; }
}
control C(inout headers h, inout metadata m) { apply {} }
control I(inout headers h, inout metadata m, inout standard_metadata_t s) {
    counter(8, CounterType.packets_and_bytes) seen;
    direct_counter(CounterType.packets) hits;
    register<bit<32>>(8) last;
    meter(4, MeterType.packets) police;
    action_selector(HashAlgorithm.crc16, 32w16, 32w10) ways;
    action forward(bit<9> port, bit<48> mac) { s.egress_spec = port; h.h.mac = mac; }
    action flood() { s.mcast_grp = 1; }
    action drop() { mark_to_drop(s); }
    table routes { key = { h.h.ip: lpm; } actions = { forward; flood; drop; } default_action = drop; counters = hits; }
    table rules {
        key = { h.h.ip: ternary; h.h.port: range; h.h.tag: optional; h.h.mac: exact; }
        actions = { forward; drop; }
    }
    table balanced { key = { h.h.tag: exact; h.h.ip: selector; } actions = { forward; drop; } implementation = ways; }
    apply { seen.count(0); last.write(1, h.h.ip); routes.apply(); rules.apply(); balanced.apply(); }
}
control E(inout headers h, inout metadata m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in headers h) { apply { p.emit(h.h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""

Run = Callable[..., str]


@pytest.fixture
def switch() -> _core.Switch:
    return _core.Switch(_core.Program.compile_text(SOURCE, "cli.p4"))


@pytest.fixture
def client(switch: _core.Switch) -> Iterator[LocalClient]:
    with LocalClient(Device(1, switch)) as client:
        client.set_pipeline(switch.program)
        yield client


@pytest.fixture
def run(client: LocalClient) -> Run:
    def run(*lines: str, failed: int = 0) -> str:
        """Run lines in a session of their own, and return what they printed, without the prompts."""
        cli = RuntimeCli(client, lambda: "0: veth0", io.StringIO("\n".join(lines)))
        cli.stdout = io.StringIO()
        cli.cmdloop()
        said = cli.stdout.getvalue().partition("\n")[2].replace(cli.prompt, "")
        assert cli.failed == failed, said
        return said

    return run


def packet(ip: str, tag: int = 0) -> bytes:
    return bytes(6) + bytes(map(int, ip.split("."))) + bytes((0, 80, tag)) + bytes(47)


def test_entries_forward_packets_and_have_handles(run: Run, switch: _core.Switch, client: LocalClient) -> None:
    said = run(
        "table_set_default routes flood",
        "table_add routes forward 10.0.1.0/24 => 1 00:00:00:00:01:01   # to the left",
        "",
        "table_add I.routes I.forward 10.0.2.99/24 => 0x2 00:00:00:00:01:02",
        "table_add routes drop 0.0.0.0/0 =>",
    )
    assert [line.split()[-1] for line in said.splitlines() if "with handle" in line] == ["0", "1", "2"]
    assert [port for port, _ in switch.process(5, packet("10.0.2.7"))] == [2]
    assert client.read_default("routes").action == "I.flood"
    assert client.read_table("routes")[0].match != {}
    assert "hits[1]= (60 bytes, 1 packets)" in run("counter_read hits 1")
    run("table_delete routes 0", "table_modify routes drop 1")
    assert switch.process(5, packet("10.0.2.7")) == []
    assert "with handle 0" in run("table_add routes forward 10.0.3.0/24 => 3 0"), "the lowest that is free"
    dump = run("table_dump routes", "table_num_entries routes")
    assert (
        "Dumping entry 0x1\nMatch key:\n* h.h.ip              : LPM       0a000200/24\nAction entry: I.drop - \n"
        in dump
    )
    assert "Dumping default entry\nAction entry: I.flood - \n" in dump
    assert dump.endswith("3\n\n")
    run("table_clear routes", "table_reset_default routes")
    assert client.read_table("routes") == []
    assert client.read_default("routes").action == "I.drop"


def test_the_lowest_priority_is_the_first(run: Run, client: LocalClient) -> None:
    run(
        "table_add rules drop 10.0.0.1&&&0xff000000 1->5 7 1 => 10",
        "table_add rules forward 0&&&0 0->0xffff 7 0x1 => 3 1:2:3:4:5:6 1",
    )
    by_priority = sorted(client.read_table("rules"), key=lambda entry: -entry.priority)
    assert [entry.action for entry in by_priority] == ["I.forward", "I.drop"]
    assert by_priority[0].match == {"h.h.tag": 7, "h.h.mac": 1}
    assert by_priority[1].match == {"h.h.ip": (0x0A000000, 0xFF000000), "h.h.port": (1, 5), "h.h.tag": 7, "h.h.mac": 1}
    assert "Priority: 10" in run("table_dump_entry rules 0")


def test_entries_of_a_controller_have_numbers_too(run: Run, client: LocalClient) -> None:
    client.insert("routes", {"h.h.ip": "10.9.0.0/16"}, "I.drop", {})
    client.insert("routes", {"h.h.ip": "10.8.0.0/16"}, "I.drop", {}, metadata=b"mine")
    handles = [int(line.split()[-1], 16) for line in run("table_dump routes").splitlines() if "entry 0x" in line]
    assert len(set(handles)) == 2
    assert min(handles) > 1 << 20
    run(f"table_delete routes {handles[0]}")
    assert len(client.read_table("routes")) == 1


def test_members_and_groups(run: Run, client: LocalClient, switch: _core.Switch) -> None:
    said = run(
        "act_prof_create_member ways forward 4 0",
        "act_prof_create_member ways forward 5 0",
        "act_prof_create_group ways",
        "act_prof_add_member_to_group ways 1 1",
        "act_prof_add_member_to_group ways 2 1",
        "act_prof_remove_member_from_group ways 1 1",
        "table_indirect_add_with_group balanced 7 => 1",
        "table_indirect_add balanced 8 => 1",
    )
    assert "Member has been created with handle 2" in said
    assert client.profile_groups("ways") == {1: ({2: 1}, {}, 0)} or client.profile_groups("ways")[1][0] == {2: 1}
    assert [port for port, _ in switch.process(1, packet("1.1.1.1", 7))] == [5]
    assert [port for port, _ in switch.process(1, packet("1.1.1.1", 8))] == [4]
    run("table_delete balanced 0", "act_prof_delete_group ways 1", "act_prof_delete_member ways 2")


def test_registers_counters_and_meters(run: Run, client: LocalClient, switch: _core.Switch) -> None:
    switch.process(1, packet("1.2.3.4"))
    said = run("register_read last 1", "register_write last 2 0xff", "register_read last", "counter_read seen 0")
    assert f"last[1]= {0x01020304}\n" in said
    assert f"last= 0, {0x01020304}, 255, 0, 0, 0, 0, 0\n" in said
    assert "seen[0]= (60 bytes, 1 packets)\n" in said
    run("register_reset last", "counter_write seen 1 3 4", "counter_reset seen")
    assert set(client.registers("last").values()) == {0}
    assert set(client.counters("seen").values()) == {(0, 0)}
    said = run(
        "meter_array_set_rates police 0.5:1 1:1", "meter_set_rates police 2 1:10 2.5:20", "meter_get_rates police 2"
    )
    assert client.meter_rates("police")[0] == (500_000, 1, 1_000_000, 1)
    assert "1: info rate = 2.5, burst size = 20" in said


def test_multicast_and_mirroring(run: Run, client: LocalClient) -> None:
    run(
        "mc_mgrp_create 1",
        "mc_node_create 0 1 2",
        "mc_node_create 7 3",
        "mc_node_associate 1 0",
        "mc_node_associate 1 1",
        "mirroring_add 5 4",
        "mirroring_add 5 3",
    )
    assert sorted(client.multicast_groups()[1]) == [(1, 0), (2, 0), (3, 7)]
    assert client.clone_sessions() == {5: [(3, 0)]}
    # Another session knows the nodes from the groups.
    said = run("mc_dump", "mc_node_update 1 3 4", "mirroring_add_mc 6 1", "mirroring_get 6")
    assert "group 1: nodes 0, 1" in said
    assert sorted(client.multicast_groups()[1]) == [(1, 0), (2, 0), (3, 7), (4, 7)]
    assert len(client.clone_sessions()[6]) == 4
    run("mc_node_dissociate 1 0", "mc_node_destroy 1", "mirroring_delete 6")
    assert client.multicast_groups()[1] == []
    run("mc_mgrp_destroy 1")
    assert client.multicast_groups() == {}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("table_add rout forward 10.0.0.0/8 => 1 0", "no table 'rout'; did you mean 'I.routes'?"),
        ("table_add routes forwrd 10.0.0.0/8 => 1 0", "no action 'forwrd' of table 'I.routes'"),
        ("table_add routes forward 10.0.0.0/8 => 1", "has 2 parameters, not 1: port, mac"),
        ("table_add routes forward 10.0.0.0 => 1 0", "write a prefix, such as 10.0.0.0/8"),
        ("table_add routes forward 10.0.0.0/33 => 1 0", "a prefix of 33 bits in a field of 32"),
        ("table_add routes forward 10.0.0.0/8 1 => 1 0", "has 1 match fields, not 2: h.h.ip (lpm)"),
        ("table_add routes forward 10.0.0.0/8 => 512 0", "does not fit into 9 bits"),
        ("table_add rules drop 0&&&0 1->5 7 1", "there is no '=>' behind the match fields"),
        ("table_add rules drop 0&&&0 1->5 7 1 => x", "the priority is 'x'"),
        ("table_add rules drop 0&&&0 1 7 1 => 3", "write low->high"),
        ("table_add", "table_add TABLE ACTION"),
        ("table_delete routes 3", "has no entry with handle 3"),
        ("table_delete routes", "usage: table_delete TABLE HANDLE"),
        ("register_read last 9", "last"),
        ("register_write last 0 0x1ffffffff", "does not fit into 32 bits"),
        ("mc_mgrp_destroy 9", "there is no multicast group 9"),
        ("mc_node_associate 1 0", "there is no multicast node 0"),
        ("mc_node_create 1 2 | 3", "link aggregation"),
        ("mirroring_add 0 1", "is not between 1 and"),
        ("meter_set_rates police 0 1 2", "is not RATE:BURST"),
        ("set_queue_rate 10", "a live switch has no queues"),
        ("tabel_add x", "unknown command 'tabel_add'"),
    ],
)
def test_mistakes_are_named_and_the_next_line_follows(run: Run, line: str, says: str) -> None:
    said = run(line, "show_ports", failed=1)
    assert "Error: " in said
    assert says in said
    assert "0: veth0" in said


def test_help_and_names(run: Run, client: LocalClient) -> None:
    said = run("help", "help table_add", "show_tables", "show_actions", "table_info routes", "exit", "show_ports")
    assert "Add an entry; the lowest priority is the first: table_add TABLE ACTION KEY" in said
    assert "mk=h.h.ip(lpm, 32)" in said
    assert "port(9), mac(48)" in said
    assert "veth0" not in said
    cli = RuntimeCli(client, str, io.StringIO())
    assert cli.completenames("table_d") == ["table_delete", "table_dump", "table_dump_entry"]
    assert cli.completedefault("rou") == ["routes"]


def test_a_node_has_one_group() -> None:
    nodes = MulticastNodes({3: [(1, 2), (4, 2)]})
    assert nodes.replicas(3) == [(1, 2), (4, 2)]
    assert nodes.create(9, [7]) == 1
    nodes.create_group(4)
    for wrong in (lambda: nodes.associate(4, 0), lambda: nodes.dissociate(4, 1), lambda: nodes.create_group(3)):
        with pytest.raises(CommandError):
            wrong()
    assert nodes.replicas(4) == []
    assert nodes.destroy(0) == [3]
    assert nodes.create(5, []) == 0


def test_a_dump_shows_each_kind_of_match_and_the_counts(run: Run, switch: _core.Switch) -> None:
    dump = run(
        "table_add rules drop 10.0.0.1&&&0xff000000 1->5 7 00:00:00:00:00:01 => 10",
        "table_add rules drop 0&&&0 0->0xffff 9 00:00:00:00:00:02 => 11",
        "table_dump rules",
    )
    lines = [" ".join(line.split()) for line in dump.splitlines() if line.startswith("* h.h.")]
    assert lines == [
        "* h.h.ip : TERNARY 0a000000 &&& ff000000",
        "* h.h.port : RANGE 0001 -> 0005",
        "* h.h.tag : OPTIONAL 07 &&& ff",
        "* h.h.mac : EXACT 000000000001",
        "* h.h.ip : TERNARY 00000000 &&& 00000000",
        "* h.h.port : RANGE 0000 -> ffff",
        "* h.h.tag : OPTIONAL 09 &&& ff",
        "* h.h.mac : EXACT 000000000002",
    ]
    run("table_add routes forward 10.0.1.0/24 => 1 00:00:00:00:01:01")
    assert "Counter: 0 bytes, 0 packets\n" in run("table_dump_entry routes 0")
    assert "hits[0]= (0 bytes, 0 packets)" in run("counter_read hits 0")
    for _ in range(2):
        switch.process(5, packet("10.0.1.7"))
    assert "Counter: 120 bytes, 2 packets\n" in run("table_dump_entry routes 0")


def test_actions_are_shown_with_their_parameters(run: Run) -> None:
    shown = {line.split()[0]: " ".join(line.split()[1:]) for line in run("show_actions").splitlines() if line}
    assert shown["I.forward"] == "[port(9), mac(48)]"
    assert shown["I.flood"] == shown["I.drop"] == "[]"


def test_sessions_of_clones_begin_with_one(run: Run, client: LocalClient) -> None:
    run("mirroring_add 1 2")
    assert list(client.clone_sessions()) == [1]
    assert "mirroring session 0 is not between 1 and " in run("mirroring_add 0 2", failed=1)


def test_the_only_switch_needs_no_thrift_port(monkeypatch: pytest.MonkeyPatch) -> None:
    def running(*ports: int) -> None:
        found = [SimpleNamespace(is_here=True, device_id=at, port=port) for at, port in enumerate(ports)]
        elsewhere = SimpleNamespace(is_here=False, device_id=99, port=9090)
        monkeypatch.setattr(runtime_cli.control, "running_switches", lambda: [*found, elsewhere])

    monkeypatch.setattr(runtime_cli, "_thrift_port", lambda each: each.port)
    running(9095)
    assert runtime_cli.find(None).device_id == runtime_cli.find(9095).device_id == 0
    running(9095, 9090)
    assert runtime_cli.find(None).device_id == runtime_cli.find(9090).device_id == 1
    running(9090, 9090)
    with pytest.raises(LiveError, match="device ids 0, 1 were all started with Thrift port 9090"):
        runtime_cli.find(None)
    running()
    with pytest.raises(LiveError, match="no switch of this network namespace was started with Thrift port 9090"):
        runtime_cli.find(None)
