"""Entries in the files that people have: p4lang's runtime JSON, commands of simple_switch_CLI, YAML."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from holdfast import HoldfastError, Program
from holdfast._core import Switch
from holdfast.control.desired import Desired, read_state
from holdfast.control.entities import (
    CloneSession,
    DefaultAction,
    Meter,
    MulticastGroup,
    ProfileGroup,
    ProfileMember,
    Register,
    ValueSet,
)
from holdfast.control.tables import TableEntry
from holdfast.entries_files import commands, install, load
from holdfast.entries_files.commands import HIGHEST
from holdfast.errors import EntriesError, EntriesWarning, ScenarioError
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device
from holdfast.p4runtime.received import Group, Member

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t { bit<32> src; bit<32> dst; }
struct headers { ethernet_t ethernet; ipv4_t ipv4; }
struct metadata { bit<2> colour; }
parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t s) {
    value_set<bit<16>>(4) kinds;
    state start {
        p.extract(h.ethernet);
        transition select(h.ethernet.type) { kinds: ip; 0x800: ip; default: accept; }
    }
    state ip { p.extract(h.ipv4); transition accept; }
}
control C(inout headers h, inout metadata m) { apply {} }
control I(inout headers h, inout metadata m, inout standard_metadata_t s) {
    register<bit<32>>(8) seen;
    meter(4, MeterType.bytes) rates;
    direct_meter<bit<2>>(MeterType.packets) each;
    action drop() { mark_to_drop(s); }
    action forward(bit<48> mac, bit<9> port) { h.ethernet.dst = mac; s.egress_spec = port; }
    action read() { each.read(m.colour); }
    table routes {
        key = { h.ipv4.dst: lpm; }
        actions = { forward; drop; NoAction; }
        default_action = NoAction();
        support_timeout = true;
    }
    table acl {
        key = { h.ipv4.src: ternary; h.ethernet.type: range; s.ingress_port: exact; }
        actions = { drop; NoAction; }
    }
    table metered {
        key = { h.ethernet.src: exact; }
        actions = { read; NoAction; }
        meters = each;
    }
    action_selector(HashAlgorithm.crc16, 16, 8) paths;
    table balanced {
        key = { h.ipv4.dst: exact; h.ipv4.src: selector; }
        actions = { forward; NoAction; }
        implementation = paths;
    }
    action_profile(16) profile;
    table shared {
        key = { h.ipv4.dst: exact; }
        actions = { forward; NoAction; }
        implementation = profile;
    }
    apply {
        bit<32> n;
        seen.read(n, 0);
        rates.execute_meter(0, m.colour);
        routes.apply(); acl.apply(); metered.apply(); balanced.apply(); shared.apply();
    }
}
control E(inout headers h, inout metadata m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in headers h) { apply { p.emit(h.ethernet); p.emit(h.ipv4); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""

MAC = 0x080000000111
DST = 0x0A000101


@pytest.fixture(scope="module")
def program() -> Program:
    """Return a program with an object of each kind."""
    return Program.compile_text(PROGRAM)


def holds(program: Program, wanted: Desired) -> Desired:
    """Return what a switch holds that was told ``wanted``, of the kinds and places in it."""
    device = Device(1, Switch(program, executor="interpreter"), executor="interpreter")
    device.load(program)
    install(wanted, device)
    scope: dict[Any, dict[Any, None]] = {}
    for entity in wanted:
        scope.setdefault(type(entity), {})[entity.place] = None
    return read_state(LocalClient(device, election_id=2), scope)


def the_same(a: Desired, b: Desired) -> bool:
    """Return True if both hold equal objects, in any order."""
    return {entity.key: entity for entity in a} == {entity.key: entity for entity in b}


RUNTIME = {
    "target": "bmv2",
    "p4info": "build/x.p4.p4info.txtpb",
    "bmv2_json": "build/x.json",
    "table_entries": [
        {"table": "I.routes", "default_action": True, "action_name": "I.drop", "action_params": {}},
        {
            "table": "I.routes",
            "match": {"h.ipv4.dst": ["10.0.1.1", 32]},
            "action_name": "I.forward",
            "action_params": {"mac": "08:00:00:00:01:11", "port": 1},
            "idle_timeout_ns": 5_000_000_000,
        },
        {
            "table": "acl",
            "match": {
                "h.ipv4.src": ["10.0.0.0", "255.0.0.0"],
                "h.ethernet.type": [0x800, 0x8FF],
                "s.ingress_port": [2],
            },
            "priority": 7,
            "action_name": "drop",
            "action_params": {},
            "_comment": "a remark",
        },
        {"table": "acl", "match": {"s.ingress_port": -1}, "priority": 3, "action_name": "NoAction"},
    ],
    "multicast_group_entries": [
        {"multicast_group_id": 1, "replicas": [{"egress_port": 1, "instance": 1}, {"egress_port": 2, "instance": 1}]}
    ],
    "clone_session_entries": [
        {"clone_session_id": 5, "replicas": [{"egress_port": 3, "instance": 1}], "packet_length_bytes": 64}
    ],
}

WANTED: Desired = (
    DefaultAction("I.routes", "I.drop", {}),
    TableEntry(
        "I.routes",
        {"h.ipv4.dst": (DST, 32)},
        "I.forward",
        {"mac": MAC, "port": 1},
        idle_timeout_ns=5_000_000_000,
    ),
    TableEntry(
        "I.acl",
        {"h.ipv4.src": (0x0A000000, 0xFF000000), "h.ethernet.type": (0x800, 0x8FF), "s.ingress_port": 2},
        "I.drop",
        {},
        7,
    ),
    TableEntry("I.acl", {"s.ingress_port": 511}, "NoAction", {}, 3),
    MulticastGroup(1, ((1, 1), (2, 1))),
    CloneSession(5, ((3, 1),), 64),
)


def test_runtime_json_is_what_a_switch_then_holds(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "s1-runtime.json"
    path.write_text(json.dumps(RUNTIME))
    wanted = load(path, program)
    assert wanted == WANTED
    assert the_same(holds(program, wanted), wanted)


COMMANDS = """\
# remarks, and // these
// of people
table_set_default routes drop
table_add routes forward 10.0.1.1/32 => 08:00:00:00:01:11 1
table_add I.routes I.forward 10.0.2.77/24 => 8:0:0:0:1:11 0x2   # bits that do not count
table_add routes drop 0.0.0.0/0 =>
table_add acl I.drop 10.1.2.3&&&255.0.0.0 0x800->0x8ff 2 => 0
table_add acl NoAction 0&&&0 0->0xffff 3 => 10
table_set_timeout routes 0 5000
table_modify routes forward 1 08:00:00:00:01:11 7
table_add routes drop 10.3.0.0/16 =>
table_delete routes 3
table_add metered read 08:00:00:00:01:11 =>
table_add metered NoAction 08:00:00:00:01:12 =>
meter_set_rates each 0 0.001:10 0.002:20
mc_mgrp_create 1
mc_node_create 4 1 2
mc_node_create 0 3 | 1
mc_node_associate 1 0
mc_node_associate 1 1
mirroring_add 5 3
mirroring_add_mc 6 1
register_write seen 3 17
register_write I.seen 3 18
meter_array_set_rates rates 0.5:100 1:200
act_prof_create_member paths forward 08:00:00:00:01:11 1
act_prof_create_member paths forward 08:00:00:00:01:11 2
act_prof_create_group paths
act_prof_add_member_to_group paths 0 0
act_prof_add_member_to_group paths 1 0
table_indirect_add_with_group balanced 10.0.1.1 => 0
table_indirect_add balanced 10.0.1.2 => 1
pvs_add kinds 0x86dd
pvs_add P.kinds 0x8100
counter_reset whatever
"""

COMMANDED: Desired = (
    ProfileMember("I.paths", 1, "I.forward", {"mac": MAC, "port": 1}),
    ProfileMember("I.paths", 2, "I.forward", {"mac": MAC, "port": 2}),
    ProfileGroup("I.paths", 1, {1: 1, 2: 1}),
    MulticastGroup(1, ((1, 4), (2, 4), (3, 0))),
    CloneSession(5, ((3, 0),)),
    CloneSession(6, ((1, 4), (2, 4), (3, 0))),
    ValueSet("P.kinds", frozenset({0x86DD, 0x8100})),
    Register("I.seen", 3, 18),
    Meter("I.rates", None, (500_000, 100, 1_000_000, 200)),
    TableEntry(
        "I.routes", {"h.ipv4.dst": (DST, 32)}, "I.forward", {"mac": MAC, "port": 1}, idle_timeout_ns=5_000_000_000
    ),
    TableEntry("I.routes", {"h.ipv4.dst": (0x0A000200, 24)}, "I.forward", {"mac": MAC, "port": 7}),
    TableEntry("I.routes", {}, "I.drop", {}),
    TableEntry(
        "I.acl",
        {"h.ipv4.src": (0x0A000000, 0xFF000000), "h.ethernet.type": (0x800, 0x8FF), "s.ingress_port": 2},
        "I.drop",
        {},
        HIGHEST,
    ),
    TableEntry("I.acl", {"s.ingress_port": 3}, "NoAction", {}, HIGHEST - 10),
    TableEntry("I.metered", {"h.ethernet.src": MAC}, "I.read", {}, rates=(1000, 10, 2000, 20)),
    TableEntry("I.metered", {"h.ethernet.src": MAC + 1}, "NoAction", {}),
    TableEntry("I.balanced", {"h.ipv4.dst": DST}, Group(1)),
    TableEntry("I.balanced", {"h.ipv4.dst": DST + 1}, Member(2)),
    DefaultAction("I.routes", "I.drop", {}),
)


def test_commands_are_what_a_switch_then_holds(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "s1-commands.txt"
    path.write_text(COMMANDS)
    with pytest.warns(EntriesWarning, match=r"s1-commands.txt: 1 is left out: link aggregation groups .* \(18\)$"):
        wanted = load(path, program)
    assert wanted == COMMANDED
    assert the_same(holds(program, wanted), wanted)


MADE = "act_prof_create_member profile forward 08:00:00:00:01:11 1\nact_prof_create_member profile NoAction\n"
GROUPED = f"{MADE.replace('profile', 'paths')}act_prof_create_group paths\nact_prof_create_group paths\n"
SECOND = ProfileMember("I.profile", 2, "NoAction", {})
ROUTE = "table_add routes drop 10.1.0.0/16 =>\n"

TAKEN_BACK: list[tuple[str, Desired]] = [
    ("table_set_default routes drop\ntable_set_default metered read\ntable_reset_default routes", (
        DefaultAction("I.metered", "I.read", {}),
    )),
    (f"{ROUTE}table_add metered read 1 =>\ntable_clear routes", (
        TableEntry("I.metered", {"h.ethernet.src": 1}, "I.read", {}),
    )),
    (f"{ROUTE}table_delete routes 0\n{ROUTE}", (TableEntry("I.routes", {"h.ipv4.dst": (0x0A010000, 16)}, "I.drop", {}),)),
    (f"{MADE}act_prof_delete_member profile 0", (SECOND,)),
    (f"{MADE}act_prof_delete_member shared 0", (SECOND,)),  # the table that the profile implements
    (f"{MADE}act_prof_modify_member profile NoAction 0", (ProfileMember("I.profile", 1, "NoAction", {}), SECOND)),
    (f"{MADE}act_prof_modify_member profile forward 1 => fe:00:00:00:01:11 2\nact_prof_delete_member profile 0", (
        ProfileMember("I.profile", 2, "I.forward", {"mac": 0xFE0000000111, "port": 2}),
    )),
    (f"{GROUPED}act_prof_delete_group paths 0", (
        ProfileMember("I.paths", 1, "I.forward", {"mac": MAC, "port": 1}),
        ProfileMember("I.paths", 2, "NoAction", {}),
        ProfileGroup("I.paths", 2, {}),
    )),
    (f"{MADE}table_indirect_add shared 10.0.1.1 => 1\nact_prof_delete_member profile 0", (
        SECOND, TableEntry("I.shared", {"h.ipv4.dst": DST}, Member(2)),
    )),
    ("register_write seen 1 5\nregister_write seen 2 6\nmeter_set_rates rates 0 1:1 2:2\nregister_reset seen", (
        Meter("I.rates", 0, (1_000_000, 1, 2_000_000, 2)),
    )),
    ("meter_set_rates rates 0 1:1 2:2\nregister_write seen 0 5\nmeter_array_set_rates rates 0.5:100 1:200", (
        Register("I.seen", 0, 5), Meter("I.rates", None, (500_000, 100, 1_000_000, 200)),
    )),
    ("pvs_add kinds 1\npvs_add kinds 2\npvs_remove kinds 1", (ValueSet("P.kinds", frozenset({2})),)),
    ("pvs_add kinds 1\npvs_clear kinds", ()),
]  # fmt: skip
"""Commands that change or take back what others before them have done, and what remains."""


@pytest.mark.parametrize(("commands", "remains"), TAKEN_BACK)
def test_what_is_taken_back_is_gone_and_the_rest_remains(
    program: Program, tmp_path: Path, commands: str, remains: Desired
) -> None:
    path = tmp_path / "commands.txt"
    path.write_text(commands + "\n")
    wanted = load(path, program)
    assert the_same(wanted, remains) and len(wanted) == len(remains)
    assert the_same(holds(program, wanted), wanted)


@pytest.mark.parametrize("command", sorted({line.split()[0] for each, _ in TAKEN_BACK for line in each.splitlines()}))
@pytest.mark.parametrize("words", [0, 9])
def test_a_command_says_how_it_is_written(program: Program, tmp_path: Path, command: str, words: int) -> None:
    path = tmp_path / "commands.txt"
    path.write_text(f"{ROUTE}{command} {'routes ' * words}\n")
    with pytest.raises(EntriesError, match=r"commands\.txt:2: "):
        load(path, program)


def test_a_file_of_remarks_alone_has_no_commands() -> None:
    assert commands.are_in(b"# remarks\n\ntable_add routes drop =>\n")
    assert not commands.are_in(b"") and not commands.are_in(b"# remarks\n\n") and not commands.are_in(b"{}\n")


def test_what_no_device_of_p4runtime_has_is_named_once(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "commands"
    path.write_text("set_queue_rate 100\nset_queue_rate 50 2\ntable_dump routes\nset_crc16_parameters a 1 2 3 a b\n")
    with pytest.warns(EntriesWarning) as caught:
        assert load(path, program) == ()
    assert [str(each.message) for each in caught] == [
        f"{path}: 4 are left out: set_queue_rate (1, 2), commands that only show something (3), set_crc16_parameters (4)"
    ]


def test_an_entry_that_names_an_action_gets_a_member_of_the_tables_profile(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "s1-runtime.json"
    forward = {"action_name": "forward", "action_params": {"mac": "08:00:00:00:01:11", "port": 1}}
    entries = [{"table": "shared", "match": {"h.ipv4.dst": f"10.0.1.{i}"}, **forward} for i in (1, 2)]
    path.write_text(json.dumps({"table_entries": entries}))
    wanted = load(path, program)
    assert [type(entity) for entity in wanted] == [ProfileMember, TableEntry, TableEntry]
    assert the_same(holds(program, wanted), wanted)


YAML = """\
tables:
  routes:
    - {match: {dst: 10.0.1.1}, action: forward, params: {mac: "08:00:00:00:01:11", port: 1}, idle_timeout: 5s}
    - {action: drop, default: true}
  acl:
    - match: {h.ipv4.src: 10.0.0.0/8, type: [0x800, 0x8ff], ingress_port: 2}
      action: drop
      priority: 7
multicast_groups: {1: [[1, 1], [2, 1]]}
registers: {seen: {3: 18}}
"""


def test_yaml_is_the_same_as_json(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "entries.yaml"
    path.write_text(YAML)
    assert load(path, program) == (*WANTED[1:2], WANTED[0], WANTED[2], WANTED[4], Register("I.seen", 3, 18))


def entry(**changes: Any) -> dict[str, Any]:
    """Return the file of one entry, with changes of its keys; None takes a key away."""
    item = {
        "table": "routes",
        "match": {"h.ipv4.dst": ["10.0.1.1", 32]},
        "action_name": "forward",
        "action_params": {"mac": MAC, "port": 1},
        **changes,
    }
    return {"table_entries": [{key: value for key, value in item.items() if value is not None}]}


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ([], ": the file is an object"),
        ({}, ": there is none of table_entries, multicast_group_entries, clone_session_entries in it"),
        ({"table_entrys": []}, ": unknown key 'table_entrys'; did you mean 'table_entries'?"),
        ({"table_entries": {}}, ": table_entries: a list is expected"),
        ({"table_entries": [3]}, ":1: table_entries.0: an entry is an object"),
        (entry(table=None), ":1: table_entries.0: 'table' is missing"),
        (entry(table=3), ":1: table_entries.0: table is 3; a name is expected"),
        (entry(table="route"), ":1: table_entries.0: no table 'route'; did you mean 'I.routes'?"),
        (entry(action_name="forwrd"), ":1: table_entries.0: no action 'forwrd' of table 'I.routes'; did you mean"),
        (entry(action_nam="x"), ":1: table_entries.0: unknown key 'action_nam'; did you mean 'action_name'"),
        (entry(action_params={"mac": 1}), ":1: table_entries.0: action 'I.forward' needs port in action_params"),
        (entry(action_params={"mac": 1, "prot": 1}), ":1: table_entries.0: no parameter 'prot' of action"),
        (
            entry(action_params={"mac": "1.2.3.4", "port": 1}),
            ":1: table_entries.0: action 'I.forward', parameter 'mac'",
        ),
        (
            entry(action_params={"mac": 1, "port": 512}),
            ":1: table_entries.0: action 'I.forward', parameter 'port': 512",
        ),
        (
            entry(action_params={"mac": 1, "port": 1.5}),
            ":1: table_entries.0: action 'I.forward', parameter 'port': 1.5",
        ),
        (entry(match={"h.ipv4.dest": 1}), ":1: table_entries.0: no match field 'h.ipv4.dest' of table"),
        (
            entry(match={"h.ipv4.dst": ["10.0.1.1", 24]}),
            ":1: table_entries.0: table 'I.routes', match field 'h.ipv4.dst'",
        ),
        (entry(match={"h.ipv4.dst": [1, 2, 3]}), ":1: table_entries.0: [1, 2, 3] has 3 elements; a pair has two"),
        (entry(match={"h.ipv4.dst": {}}), ":1: table_entries.0: table 'I.routes', match field 'h.ipv4.dst': {} is no"),
        (entry(match=[1]), ":1: table_entries.0: match: an object with a value for each name"),
        (entry(match={"dst": 1, "h.ipv4.dst": 1}), ":1: table_entries.0: match field 'h.ipv4.dst' is given twice"),
        (entry(default_action=True), ":1: table_entries.0: a default action has no match"),
        (entry(idle_timeout_ns=-1), ":1: table_entries.0: "),
        (
            entry(table="acl", match={"s.ingress_port": 1}, action_name="drop", action_params={}),
            ":1: table_entries.0: table 'I.acl' has fields that are ternary, range or optional: give a priority above 0",
        ),
        (
            {"table_entries": entry()["table_entries"] * 2},
            ":1: table_entries.1: this is there twice (first at table_entries.0): the later one would replace it",
        ),
        (
            {"multicast_group_entries": [{"multicast_group_id": 1, "replicas": [{"egress_prot": 1}]}]},
            ":1: multicast_group_entries.0: unknown key 'egress_prot'; did you mean 'egress_port'?",
        ),
        ({"clone_session_entries": [{"replicas": []}]}, ":1: clone_session_entries.0: 'clone_session_id' is missing"),
    ],
)
def test_a_mistake_in_json_is_one_sentence_with_its_place(
    document: object, sentence: str, program: Program, tmp_path: Path
) -> None:
    path = tmp_path / "s1-runtime.json"
    path.write_text(json.dumps(document))
    with pytest.raises(EntriesError) as error:
        load(path, program)
    assert str(error.value).startswith(f"{path}{sentence}"), error.value
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", ":1: not JSON: "),
        ('{"table_entries": [],\n "table_entries": []}', ": 'table_entries' is declared twice in one object"),
        ('{"table_entries": [NaN]}', ": NaN is no number in JSON"),
        ("[" * 100_000, ": it is nested too deeply"),
        ('{"table_entries": [' + "9" * 5000 + "]}", ": a number of 5000 digits"),
        ("\xff\xfe", ":1: not JSON: "),
        ('{"\xff": 3}', ": this is not text in UTF-8"),
    ],
)
def test_what_is_no_json_is_one_sentence(text: str, sentence: str, program: Program, tmp_path: Path) -> None:
    path = tmp_path / "s1-runtime.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(EntriesError) as error:
        load(path, program)
    assert str(error.value).startswith(f"{path}{sentence}")


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("table_ad routes drop 0/0 =>", "unknown command 'table_ad'; did you mean 'table_add'"),
        ("table_add routes", "table_add has 1 words behind it; write table_add TABLE ACTION"),
        ("table_add routs drop 10.0.0.0/8 =>", "no table 'routs'; did you mean"),
        ("table_add routes dropp 10.0.0.0/8 =>", "no action 'dropp' of table 'I.routes'; did you mean"),
        ("table_add routes drop 10.0.0.0/8", "there is no '=>' behind the match fields"),
        ("table_add routes drop 10.0.0.0 =>", "match field 'h.ipv4.dst' is '10.0.0.0'; write a prefix"),
        ("table_add routes drop 10.0.0.0/33 =>", "match field 'h.ipv4.dst': a prefix of 33 bits in a field of 32"),
        ("table_add routes drop 10.0.0.0/8 2 =>", "table 'I.routes' has 1 match fields, not 2: h.ipv4.dst (lpm)"),
        ("table_add routes forward 10.0.0.0/8 => 1", "action 'I.forward' has 2 parameters, not 1: mac, port"),
        ("table_add routes forward 10.0.0.0/8 => x 1", "action 'I.forward', parameter 'mac': 'x' is no number"),
        ("table_add acl drop 1&&&1 1->2 1 =>", "table 'I.acl' needs a priority as the last word"),
        ("table_add acl drop 1 1->2 1 => 3", "match field 'h.ipv4.src' is '1'; write value&&&mask"),
        ("table_add acl drop 1&&&1 1 1 => 3", "match field 'h.ethernet.type' is '1'; write low->high"),
        ("table_add acl drop 1&&&1 2->1 1 => 3", "table 'I.acl', match field 'h.ethernet.type': the low end"),
        ("table_delete routes 0", "there is no entry of table 'I.routes' with the handle 0 here"),
        ("mc_node_associate 1 0", "there is no node 0 here"),
        ("mc_mgrp_create x", "the group is 'x'; a number is expected"),
        ("register_write seen 99 1", "register 'I.seen'"),
        ("register_write sen 0 1", "no register 'sen'; did you mean"),
        ("meter_set_rates rates 0 1:2", "meter_set_rates has 3 words behind it"),
        ("meter_set_rates rates 0 1:2 x", "'x' is not RATE:BURST"),
        ("act_prof_add_member_to_group paths 0 0", "there is no member 0 here"),
    ],
)
def test_a_mistake_in_commands_is_one_sentence_with_the_line(
    command: str, sentence: str, program: Program, tmp_path: Path
) -> None:
    path = tmp_path / "s1-commands.txt"
    path.write_text(f"# first\ntable_clear routes\n\n{command}\n")
    with pytest.raises(EntriesError) as error:
        load(path, program)
    assert str(error.value).startswith(f"{path}:4: {sentence}"), error.value
    assert "\n" not in str(error.value)


def test_a_mistake_in_yaml_is_one_sentence_with_the_line(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "entries.yaml"
    for text, sentence in (
        (YAML.replace("action: drop\n", "action: drp\n"), ":6: no action 'drp' of table 'I.acl'; did you mean"),
        (YAML.replace("seen: {3: 18}", "seen: {99: 18}"), ":10: register 'I.seen'"),
        (YAML.replace("priority: 7", "prority: 7"), ":8: tables.acl.0.prority: unknown key; did you mean 'priority'?"),
        (YAML.replace("10.0.1.1}", "10.0.1.256}"), ":3: "),
    ):
        path.write_text(text)
        with pytest.raises(ScenarioError) as error:
            load(path, program)
        assert str(error.value).startswith(f"{path}{sentence}"), error.value


@pytest.mark.parametrize("name", ["s1-runtime.json", "s1-commands.txt", "entries.yaml"])
@pytest.mark.filterwarnings("ignore::holdfast.errors.EntriesWarning")
def test_a_changed_file_is_read_or_refused_in_one_sentence(name: str, program: Program, tmp_path: Path) -> None:
    text = {
        "s1-runtime.json": json.dumps(RUNTIME, indent=1),
        "s1-commands.txt": COMMANDS,
        "entries.yaml": "# remark\n" + YAML,
    }[name]
    drawn = random.Random(name)
    path = tmp_path / name
    read = 0
    for _ in range(300):
        content = bytearray(text.encode())
        for _ in range(drawn.choice((1, 1, 3))):
            at = drawn.randrange(len(content))
            kind = drawn.randrange(4)
            if kind == 0:
                content[at] = drawn.randrange(256)
            elif kind == 1:
                del content[at : at + drawn.randint(1, 30)]
            elif kind == 2:
                content[at:at] = content[at : at + drawn.randint(1, 30)]
            else:
                content[at:at] = drawn.choice([b"-", b"9" * 30, b"[", b"}", b" null ", b"\xff", b"&&&", b"=>", b'"'])
        path.write_bytes(bytes(content))
        try:
            load(path, program)
            read += 1
        except HoldfastError as error:
            assert str(error).startswith(str(path)), error
            assert "\n" not in str(error), error
    assert 0 < read < 300
