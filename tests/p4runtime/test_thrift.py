"""BMv2's Thrift interface: what calls do at a device, what their answers are, and how they look on the wire."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from holdfast import _core
from holdfast.bmv2 import thrift_types as types
from holdfast.bmv2.thrift_methods import Switch
from holdfast.bmv2.thrift_server import ThriftServer
from holdfast.errors import LiveError
from holdfast.live.control import PortRow, Ports
from holdfast.p4runtime import Device, LocalClient

SOURCE = """
#include <core.p4>
#include <v1model.p4>
header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header ip_t { bit<32> src; bit<32> dst; }
struct headers { eth_t eth; ip_t ip; }
struct meta { bit<8> color; }
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t s) {
    value_set<bit<16>>(4) kinds;
    state start { p.extract(hdr.eth); transition select(hdr.eth.type) { kinds: ip; default: accept; } }
    state ip { p.extract(hdr.ip); transition accept; }
}
control V(inout headers hdr, inout meta m) { apply {} }
control I(inout headers hdr, inout meta m, inout standard_metadata_t s) {
    counter(16, CounterType.packets_and_bytes) ports;
    register<bit<64>>(8) cells;
    meter(4, MeterType.bytes) shared;
    direct_counter(CounterType.packets) hits;
    direct_meter<bit<8>>(MeterType.packets) each;
    action_selector(HashAlgorithm.crc16, 64, 16) ways;
    action drop() { mark_to_drop(s); }
    action forward(bit<48> mac, bit<9> port) {
        hdr.eth.dst = mac; s.egress_spec = port; ports.count((bit<32>) port); cells.write(1, 5);
        shared.execute_meter<bit<8>>(0, m.color);
    }
    action copies(bit<16> group) { s.mcast_grp = group; }
    action metered(bit<9> port) { s.egress_spec = port; each.read(m.color); }
    table routes {
        key = { hdr.ip.dst: lpm; }
        actions = { forward; drop; NoAction; }
        default_action = drop(); counters = hits; support_timeout = true; size = 64;
    }
    table rules {
        key = { hdr.eth.src: ternary; hdr.eth.type: range; hdr.ip.isValid(): exact; hdr.eth.dst: optional; }
        actions = { metered; drop; NoAction; }
        meters = each; size = 64;
    }
    table paths {
        key = { hdr.eth.type: exact; hdr.ip.src: selector; }
        actions = { copies; drop; }
        implementation = ways; size = 16;
    }
    apply { if (hdr.ip.isValid()) { routes.apply(); } rules.apply(); paths.apply(); }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


class Bmv2Client:
    """A client as BMv2's tools are: services beside each other on one connection."""

    def __init__(self, port: int) -> None:
        self.socket = TSocket("127.0.0.1", port)
        self._transport = TBufferedTransport(self.socket)
        self._protocol = TBinaryProtocol(self._transport)
        self._transport.open()

    def call(self, service: str, name: str, /, **given: Any) -> Any:
        """Call a method and return its result. Raises its exception."""
        method = types.SERVICES[service].get(name)
        self._protocol.writeMessageBegin(f"{service}:{name}" if service != "none" else name, TMessageType.CALL, 7)
        (method.parameters(**given) if method else types.Struct()).write(self._protocol)
        self._protocol.writeMessageEnd()
        self._transport.flush()
        answered, kind, sequence = self._protocol.readMessageBegin()
        assert (answered, sequence) == (name, 7)
        if kind == TMessageType.EXCEPTION:
            failure = TApplicationException()
            failure.read(self._protocol)
            raise failure
        assert method is not None
        result: Any = method.result()
        result.read(self._protocol)
        if getattr(result, "ouch", None) is not None:
            raise result.ouch
        return getattr(result, "success", None)

    def table(self, name: str, table: str, /, **given: Any) -> Any:
        """Call a method of a table."""
        return self.call("standard", f"bm_mt_{name}", context=0, table=table, **given)

    def object(self, name: str, it: str, /, **given: Any) -> Any:
        """Call a method of a counter, meter, register or value set."""
        return self.call("standard", f"bm_{name}", context=0, name=it, **given)

    def copies(self, name: str, /, **given: Any) -> Any:
        """Call a method of the replication engine."""
        return self.call("simple_pre_lag", f"bm_mc_{name}", context=0, **given)


@pytest.fixture(scope="module")
def program() -> _core.Program:
    return _core.Program.compile_text(SOURCE)


@pytest.fixture
def client(program: _core.Program) -> Iterator[LocalClient]:
    with LocalClient(Device(5, _core.Switch(program))) as client:
        client.set_pipeline(program)
        yield client


@pytest.fixture
def server(client: LocalClient) -> Iterator[ThriftServer]:
    row = PortRow(port=3, interface="veth0", up=True, io="xdp", **dict.fromkeys(list(PortRow.model_fields)[4:], 0))
    with ThriftServer(Switch(lambda: client, lambda _: Ports(ports=[row]), 5, 0)) as server:
        yield server


@pytest.fixture
def bmv2(server: ThriftServer) -> Bmv2Client:
    return Bmv2Client(server.server_address[1])


def prefix(address: str, length: int) -> list[types.Struct]:
    key = bytes(map(int, address.split(".")))
    return [types.MatchParam(type=types.LPM, lpm=types.Lpm(key=key, prefix_length=length))]


FORWARD = {"action": "forward", "data": [b"\0\0\0\0\0\1", b"\0\2"]}


def test_entries_of_a_table(bmv2: Bmv2Client, client: LocalClient) -> None:
    """Check that entries come, change and go by their handles, and that they are P4Runtime's."""
    none = types.EntryOptions()
    add = {"options": none, **FORWARD}
    assert bmv2.table("add_entry", "I.routes", key=prefix("10.0.1.7", 24), **add) == 0
    assert bmv2.table("add_entry", "routes", key=prefix("10.0.2.2", 32), **add) == 1
    entries = client.read_table("routes")
    assert {entry.match["hdr.ip.dst"] for entry in entries if not entry.is_default} == {
        (0x0A000100, 24),
        (0x0A000202, 32),
    }
    with pytest.raises(types.InvalidTableOperation) as refused:
        bmv2.table("add_entry", "routes", key=prefix("10.0.1.0", 24), **add)
    assert refused.value.code == 17, "DUPLICATE_ENTRY"
    bmv2.table("delete_entry", "routes", handle=0)
    assert bmv2.table("add_entry", "routes", key=prefix("0.0.0.0", 0), **add) == 0, "the lowest free handle"
    bmv2.table("modify_entry", "routes", handle=1, action="drop", data=[])
    bmv2.table("set_entry_ttl", "routes", handle=1, timeout_ms=5000)
    first, second = bmv2.table("get_entries", "routes")
    assert (first.match_key[0].lpm.prefix_length, first.options.priority) == (0, -1)
    assert (first.action_entry.action_name, first.action_entry.action_data) == ("I.forward", FORWARD["data"])
    assert (second.entry_handle, second.action_entry.action_name, second.life.timeout_ms) == (1, "I.drop", 5000)
    found = bmv2.table("get_entry_from_key", "routes", key=prefix("10.0.2.2", 32), options=none)
    assert found == second == bmv2.table("get_entry", "routes", handle=1)
    bmv2.table("write_counter", "routes", handle=1, value=types.CounterValue(bytes=0, packets=9))
    assert bmv2.table("read_counter", "routes", handle=1).packets == 9
    bmv2.table("reset_counters", "routes")
    assert bmv2.table("read_counter", "routes", handle=1).packets == 0
    bmv2.table("set_default_action", "routes", action="NoAction", data=[])
    assert bmv2.table("get_default_entry", "routes").action_name == "NoAction"
    bmv2.table("clear_entries", "routes", reset_default_entry=True)
    assert bmv2.table("get_num_entries", "routes") == 0
    assert bmv2.table("get_default_entry", "routes").action_name == "I.drop"


def rule(kind: int = 0x806) -> list[types.Struct]:
    return [
        types.MatchParam(type=types.TERNARY, ternary=types.Ternary(key=b"\0\0\x0a\1\2\3", mask=b"\xff\xff\xff\0\0\0")),
        types.MatchParam(type=types.RANGE, range=types.Range(start=b"\x08\0", end_=kind.to_bytes(2, "big"))),
        types.MatchParam(type=types.VALID, valid=types.Valid(key=True)),
        types.MatchParam(type=types.TERNARY, ternary=types.Ternary(key=bytes(6), mask=bytes(6))),
    ]


def test_keys_and_priorities(bmv2: Bmv2Client, client: LocalClient) -> None:
    """Check every kind of match, that BMv2's first priority is the highest, and the rates of a direct meter."""
    add = {"action": "metered", "data": [b"\2"]}
    assert bmv2.table("add_entry", "rules", key=rule(), options=types.EntryOptions(priority=10), **add) == 0
    assert bmv2.table("add_entry", "rules", key=rule(0x900), options=types.EntryOptions(priority=11), **add) == 1
    first, second = sorted(client.read_table("rules"), key=lambda entry: -entry.priority)[:2]
    assert first.match == {
        "hdr.eth.src": (0x0A000000, 0xFFFFFF000000),
        "hdr.eth.type": (0x800, 0x806),
        "hdr.ip.$valid$": 1,
    }
    assert second.match["hdr.eth.type"] == (0x800, 0x900)
    shown = bmv2.table("get_entry", "rules", handle=0)
    assert [param.type for param in shown.match_key] == [types.TERNARY, types.RANGE, types.EXACT, types.TERNARY]
    assert (shown.options.priority, shown.match_key[3].ternary.mask) == (10, bytes(6))
    assert bmv2.table("get_meter_rates", "rules", handle=0) == []
    rates = [types.MeterRate(units_per_micros=0.001, burst_size=3), types.MeterRate(units_per_micros=0.5, burst_size=4)]
    bmv2.table("set_meter_rates", "rules", handle=0, rates=rates)
    assert bmv2.table("get_meter_rates", "rules", handle=0) == rates
    assert bmv2.table("get_entry", "rules", handle=0).action_entry == shown.action_entry


@pytest.mark.parametrize(
    ("name", "given", "code"),
    [
        ("get_num_entries", {"table": "none"}, 7),
        ("add_entry", {"table": "routes", "key": prefix("10.0.0.0", 8), "action": "none", "data": []}, 8),
        ("add_entry", {"table": "routes", "key": prefix("10.0.0.0", 8), "action": "forward", "data": []}, 26),
        ("add_entry", {"table": "routes", "key": [], **FORWARD}, 18),
        ("add_entry", {"table": "rules", "key": rule(), "action": "drop", "data": []}, 18),
        ("add_entry", {"table": "paths", "key": prefix("1.1.1.1", 8), "action": "drop", "data": []}, 18),
        ("delete_entry", {"table": "routes", "handle": 9}, 2),
        ("set_entry_ttl", {"table": "rules", "handle": 0, "timeout_ms": 1}, 2),
        ("reset_counters", {"table": "rules"}, 4),
        ("act_prof_create_group", {"profile": "none"}, 23),
        ("act_prof_get_group", {"profile": "ways", "group": 3}, 2),
    ],
)
def test_codes_of_tables(bmv2: Bmv2Client, name: str, given: dict[str, Any], code: int) -> None:
    with pytest.raises(types.InvalidTableOperation) as refused:
        bmv2.call("standard", f"bm_mt_{name}", context=0, options=types.EntryOptions(), **given)
    assert refused.value.code == code


def test_members_and_groups(bmv2: Bmv2Client) -> None:
    def ways(name: str, **given: Any) -> Any:
        return bmv2.call("standard", f"bm_mt_act_prof_{name}", context=0, profile="ways", **given)

    group, member = ways("create_group"), ways("add_member", action="copies", data=[b"\7"])
    ways("add_member_to_group", member=member, group=group)
    ways("modify_member", member=member, action="copies", data=[b"\x08"])
    assert ways("get_member", member=member).action_data == [b"\0\x08"]
    assert ways("get_members") == [ways("get_member", member=member)]
    assert ways("get_groups") == [types.ProfileGroup(grp_handle=group, mbr_handles=[member])]
    kind = [types.MatchParam(type=types.EXACT, exact=types.Exact(key=b"\x08\0"))]
    handle = bmv2.table("indirect_ws_add_entry", "paths", key=kind, group=group, options=types.EntryOptions())
    assert bmv2.table("get_entry", "paths", handle=handle).action_entry.grp_handle == group
    bmv2.table("indirect_modify_entry", "paths", handle=handle, member=member)
    assert bmv2.table("get_entry", "paths", handle=handle).action_entry.mbr_handle == member
    bmv2.table("indirect_delete_entry", "paths", handle=handle)
    ways("remove_member_from_group", member=member, group=group)
    ways("delete_group", group=group)
    ways("delete_member", member=member)
    assert (ways("get_groups"), ways("get_members")) == ([], [])


def test_cells(bmv2: Bmv2Client) -> None:
    bmv2.object("counter_write", "ports", index=3, value=types.CounterValue(bytes=5, packets=10))
    assert bmv2.object("counter_read", "I.ports", index=3) == types.CounterValue(bytes=5, packets=10)
    bmv2.object("counter_reset_all", "ports")
    assert bmv2.object("counter_read", "ports", index=3).packets == 0
    bmv2.object("register_write", "cells", index=3, value=-1)
    bmv2.object("register_write_range", "cells", index=0, end=2, value=9)
    assert bmv2.object("register_read_all", "cells") == [9, 9, 0, -1, 0, 0, 0, 0]
    bmv2.object("register_reset", "cells")
    assert bmv2.object("register_read", "cells", index=3) == 0
    rates = [
        types.MeterRate(units_per_micros=0.1, burst_size=100),
        types.MeterRate(units_per_micros=0.2, burst_size=200),
    ]
    bmv2.object("meter_array_set_rates", "shared", rates=rates)
    assert bmv2.object("meter_get_rates", "shared", index=2) == rates
    bmv2.object("parse_vset_add", "kinds", value=b"\x08\0")
    bmv2.object("parse_vset_add", "kinds", value=b"\x08\6")
    bmv2.object("parse_vset_remove", "kinds", value=b"\x08\0")
    assert bmv2.object("parse_vset_get", "kinds") == [b"\x08\6"]
    for name, failure in (
        ("counter_read", types.InvalidCounterOperation),
        ("register_read", types.InvalidRegisterOperation),
    ):
        for it, code in (("none", 1), ("ports" if "counter" in name else "cells", 2)):
            with pytest.raises(failure) as refused:
                bmv2.object(name, it, index=99)
            assert refused.value.code == code, (name, it)


def test_copies_and_sessions(bmv2: Bmv2Client, client: LocalClient) -> None:
    assert bmv2.copies("mgrp_create", group=4) == 4
    node = bmv2.copies("node_create", instance=7, ports="100110", lags="")
    bmv2.copies("node_associate", group=4, node=node)
    assert client.multicast_groups() == {4: [(1, 7), (2, 7), (5, 7)]}
    assert json.loads(bmv2.copies("get_entries"))["l2_handles"] == [{"handle": node, "ports": [1, 2, 5], "lags": []}]
    bmv2.call("simple_pre", "bm_mc_node_update", context=0, node=node, ports="1")
    bmv2.call("simple_switch", "mirroring_session_add", session=100, config=types.Session(port=3))
    bmv2.call("simple_switch", "mirroring_session_add", session=101, config=types.Session(mgid=4))
    assert client.clone_sessions() == {100: [(3, 0)], 101: [(0, 7)]}
    assert bmv2.call("simple_switch", "mirroring_session_get", session=100).port == 3
    bmv2.call("simple_switch", "mirroring_session_delete", session=100)
    with pytest.raises(types.InvalidMirroringOperation):
        bmv2.call("simple_switch", "mirroring_session_get", session=100)
    bmv2.copies("node_dissociate", group=4, node=node)
    bmv2.copies("node_destroy", node=node)
    bmv2.copies("mgrp_destroy", group=4)
    assert client.multicast_groups() == {}
    with pytest.raises(types.InvalidMcOperation):
        bmv2.copies("node_associate", group=4, node=0)


def test_the_switch(bmv2: Bmv2Client) -> None:
    """Check what a client learns of the switch and its program, and that its state can be set back."""
    (port,) = bmv2.call("standard", "bm_dev_mgr_show_ports")
    assert (port.port_num, port.iface_name, port.is_up) == (3, "veth0", True)
    assert bmv2.call("standard", "bm_mgmt_get_info").device_id == 5
    before = bmv2.call("simple_switch", "get_time_elapsed_us")
    assert bmv2.call("simple_switch", "get_time_elapsed_us") > before >= 0
    assert bmv2.call("simple_switch", "get_time_since_epoch_us") > 10**15
    made = json.loads(bmv2.call("standard", "bm_get_config"))
    (block,) = made["pipelines"]
    tables = {table["name"]: table for table in block["tables"]}
    assert [tables[f"I.{name}"]["match_type"] for name in ("routes", "rules", "paths")] == ["lpm", "range", "exact"]
    assert [tables[f"I.{name}"]["type"] for name in ("routes", "paths")] == ["simple", "indirect_ws"]
    assert tables["I.routes"]["key"][0]["target"] == ["ip", "dst"]
    assert [key["match_type"] for key in tables["I.rules"]["key"]] == ["ternary", "range", "exact", "ternary"]
    assert made["register_arrays"][0] | {"id": 0} == {"name": "I.cells", "id": 0, "size": 8, "bitwidth": 64}
    assert {meter["name"]: meter["type"] for meter in made["meter_arrays"]} == {
        "I.shared": "bytes",
        "I.each": "packets",
    }
    assert [counter["is_direct"] for counter in made["counter_arrays"]] == [False, True]
    bmv2.table("add_entry", "routes", key=prefix("10.0.0.0", 8), options=types.EntryOptions(), **FORWARD)
    bmv2.object("register_write", "cells", index=3, value=7)
    bmv2.copies("mgrp_create", group=4)
    bmv2.call("standard", "bm_reset_state")
    assert bmv2.table("get_num_entries", "routes") == 0
    assert bmv2.object("register_read", "cells", index=3) == 0
    assert json.loads(bmv2.copies("get_entries"))["mgrps"] == []


def test_calls_that_are_none(bmv2: Bmv2Client, server: ThriftServer) -> None:
    """Check that a method that is not there, and one without its parameters, are refused, and the connection goes on."""
    for service, name, says in (
        ("standard", "bm_load_new_config", "there is no method standard:bm_load_new_config"),
        ("simple_switch", "bm_reset_state", "there is no method"),
    ):
        with pytest.raises(TApplicationException, match=says):
            bmv2.call(service, name)
    with pytest.raises(TApplicationException, match="bm_register_write needs name, index, value"):
        bmv2.call("standard", "bm_register_write", context=0)
    with pytest.raises(types.InvalidRegisterOperation):
        bmv2.object("register_write_range", "cells", index=-5, end=-3, value=1)
    assert bmv2.table("get_num_entries", "routes") == 0
    for nonsense in (b"GET / HTTP/1.1\r\n\r\n", b"\x80\x01\0\1\x7f\xff\xff\xff", b"\x80\x01\0\2\0\0\0\0\0\0\0\0\0"):
        with socket.create_connection(server.server_address[:2], timeout=30) as connection:
            connection.sendall(nonsense)
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(100) == b""
    with pytest.raises(LiveError, match=f"^Thrift port {server.server_address[1]}: "):
        ThriftServer(Switch(lambda: None, lambda _: Ports(ports=[]), 5, server.server_address[1]))  # type: ignore[arg-type, return-value]


def text(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value


def field(kind: int, at: int, value: bytes) -> bytes:
    return struct.pack(">bh", kind, at) + value


def number(value: int) -> bytes:
    return struct.pack(">i", value)


def add_entry() -> bytes:
    """Return a call in bytes, as BMv2's interface files number its fields."""
    lpm = field(11, 1, text(b"\x0a\0\1\0")) + field(8, 2, number(24)) + b"\0"
    param = field(8, 1, number(1)) + field(12, 3, lpm) + b"\0"
    call = b"\x80\x01\x00\x01" + text(b"standard:bm_mt_add_entry") + number(1)
    call += field(8, 1, number(0)) + field(11, 2, text(b"I.routes"))
    call += field(15, 3, b"\x0c" + number(1) + param) + field(11, 4, text(b"I.forward"))
    return call + field(15, 5, b"\x0b" + number(2) + text(bytes(6)) + text(b"\0\2")) + field(12, 6, b"\0") + b"\0"


def test_a_call_on_the_wire(server: ThriftServer, client: LocalClient) -> None:
    answer = b"\x80\x01\x00\x02" + text(b"bm_mt_add_entry") + number(1) + field(8, 0, number(0)) + b"\0"
    with socket.create_connection(server.server_address[:2], timeout=30) as connection:
        connection.sendall(add_entry())
        assert connection.recv(len(answer), socket.MSG_WAITALL) == answer
    (entry,) = [each for each in client.read_table("routes") if not each.is_default]
    assert (entry.match, entry.params["port"]) == ({"hdr.ip.dst": (0x0A000100, 24)}, 2)


def damaged(seed: int) -> bytes:
    """Return the bytes of a call of which some are changed, left out or repeated."""
    chance, call = random.Random(seed), bytearray(add_entry())
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(call))
        match chance.randrange(3):
            case 0:
                call[at] = chance.choice((0, 1, 11, 12, 15, 127, 128, 255, chance.randrange(256)))
            case 1:
                del call[at : at + chance.randint(1, 8)]
            case _:
                call[at:at] = call[at : at + chance.randint(1, 8)]
    return bytes(call)


NESTED = b"\x80\x01\x00\x01" + text(b"standard:no_such_call") + number(1) + 5_000 * field(12, 1, b"")


def test_damaged_calls_end_their_connection_and_nothing_else(
    server: ThriftServer, bmv2: Bmv2Client, caplog: pytest.LogCaptureFixture
) -> None:
    for call in (NESTED, *map(damaged, range(300))):
        with socket.create_connection(server.server_address[:2], timeout=30) as connection:
            connection.sendall(call)
            connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionResetError):
                while connection.recv(4096):
                    pass
    assert bmv2.table("get_num_entries", "I.routes") >= 0
    assert caplog.records == []


def test_an_error_of_the_server_is_logged(
    server: ThriftServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a mistake")

    monkeypatch.setattr("holdfast.bmv2.thrift_server._answer", broken)
    with socket.create_connection(server.server_address[:2], timeout=30) as connection:
        connection.sendall(add_entry())
        assert connection.recv(1) == b""
    assert [record.exc_info is not None for record in caplog.records] == [True]
