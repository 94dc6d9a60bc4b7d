"""Translated fields of every match kind: the match is in fact exact, or left out (specification, "Translation of Match Fields")."""

from __future__ import annotations

from typing import Any

import pytest
from device_bench import HERE
from raw import INSERT, Raw, failures, lpm, range_, read_entries, ternary, update, write

from holdfast import _core
from holdfast.p4runtime import Device, LocalClient, P4InfoIndex, P4RuntimeError, PacketIn
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4

Setting = tuple[Device, LocalClient, Raw]

PORTS = {"Ethernet0": 3, "Ethernet1": 4}
VRFS = {"blue": 5, "red": 6}
ZONES = {1_000_000: 1, 2_000_000: 200}
GIVEN = {"port_t": PORTS, "vrf_t": VRFS, "example.org/zone": ZONES}
MILLION, TWO_MILLION = b"\x0f\x42\x40", b"\x1e\x84\x80"
ONES = b"\xff" * 4


def make(translations: Any) -> Setting:
    program = _core.Program.compile(str(HERE / "translated_matches.p4"))
    assert [w.message for w in program.warnings] == []
    device = Device(1, _core.Switch(program, executor="interpreter"), executor="interpreter", translations=translations)
    client = LocalClient(device)
    client.set_pipeline(program)
    return device, client, Raw(P4InfoIndex.from_text(program.p4info))


@pytest.fixture
def given() -> Setting:
    """Return a device with a table of what each translated value stands for."""
    return make(GIVEN)


# Tables, a match, a priority, and a packet (VRF and zone) that it takes and one that it does not.
TAKEN = [
    ("by_ternary", ternary(1, b"blue", b"\xff" * 4), 1, (5, 9), (7, 9)),
    ("by_ternary", ternary(2, TWO_MILLION, ONES), 1, (0, 200), (0, 201)),
    ("by_lpm", lpm(1, MILLION, 32), 0, (0, 1), (0, 0)),
    ("by_string_lpm", lpm(1, b"red", 24), 0, (6, 0), (7, 0)),
    ("by_range", range_(1, b"red", b"red"), 1, (6, 0), (5, 0)),
    ("by_range", range_(2, MILLION, MILLION), 1, (0, 1), (0, 2)),
]


@pytest.mark.parametrize(("table", "match", "priority", "taken", "left"), TAKEN)
def test_a_whole_value_is_matched_and_read_back(
    given: Setting, table: str, match: Any, priority: int, taken: tuple[int, int], left: tuple[int, int]
) -> None:
    device, _, raw = given
    entry = raw.entry(table, [match], raw.action("forward", b"Ethernet1"), priority=priority)
    write(device, update(INSERT, table_entry=entry))
    assert read_entries(device, p4.TableEntry(table_id=entry.table_id)) == [entry]
    assert device.switch.process(1, bytes(taken)) == [(4, bytes(taken))]
    assert device.switch.process(1, bytes(left))[0][0] == 510


REFUSED = [
    ("by_ternary", ternary(1, b"blue", b"\xff\xff\xff\x00"), 1),
    ("by_ternary", ternary(1, b"blue", b"\xff"), 1),
    ("by_ternary", ternary(2, MILLION, b"\xff"), 1),
    ("by_ternary", ternary(1, b"green", b"\xff" * 5), 1),
    ("by_lpm", lpm(1, MILLION, 31), 0),
    ("by_lpm", lpm(1, MILLION, 8), 0),
    ("by_string_lpm", lpm(1, b"red", 23), 0),
    ("by_range", range_(1, b"blue", b"red"), 1),
    ("by_range", range_(2, MILLION, TWO_MILLION), 1),
]


@pytest.mark.parametrize(("table", "match", "priority"), REFUSED)
@pytest.mark.parametrize("translations", [None, GIVEN], ids=["identity", "given"])
def test_parts_of_translated_values_are_refused(translations: Any, table: str, match: Any, priority: int) -> None:
    device, _, raw = make(translations)
    if translations is None and b"green" in match.SerializeToString():
        pytest.skip("any string is a value")
    entry = raw.entry(table, [match], raw.action("forward", b"Ethernet1"), priority=priority)
    assert [f.code for f in failures(device, update(INSERT, table_entry=entry))] == ["INVALID_ARGUMENT"]


def test_numbers_that_mean_themselves_in_another_width() -> None:
    device, _, raw = make(None)
    match = [ternary(2, b"\x07", ONES)]
    entry = raw.entry("by_ternary", match, raw.action("forward", b"9"), priority=1)
    prefix = raw.entry("by_lpm", [lpm(1, b"\x08", 32)], raw.action("forward", b"9"))
    write(device, update(INSERT, table_entry=entry), update(INSERT, table_entry=prefix))
    assert read_entries(device, p4.TableEntry()) == [entry, prefix]
    for zone, port in ((7, 9), (8, 9), (6, 510)):
        assert device.switch.process(1, bytes([0, zone]))[0][0] == port


def test_the_client_takes_and_gives_values_of_each_kind(given: Setting) -> None:
    _, client, _ = given
    keys: list[tuple[str, dict[str, Any], int | None]] = [
        ("by_ternary", {"meta.vrf": "blue", "meta.zone": (1_000_000, 0xFFFF_FFFF)}, 3),
        ("by_lpm", {"meta.zone": (2_000_000, 32)}, None),
        ("by_string_lpm", {"meta.vrf": "red"}, None),
        ("by_range", {"meta.vrf": "red", "meta.zone": (1_000_000, 1_000_000)}, 2),
    ]
    for table, match, priority in keys:
        client.insert(table, match, "forward", {"port": "Ethernet0"}, priority=priority)
        (entry,) = client.read_table(table)
        assert (entry.match, entry.params) == (match, {"port": "Ethernet0"})
    with pytest.raises(P4RuntimeError, match="translated"):
        client.insert("by_lpm", {"meta.zone": (0, 8)}, "forward", {"port": "Ethernet0"})


@pytest.mark.parametrize(
    ("translations", "port", "zone"), [(GIVEN, "Ethernet0", 1_000_000), (None, "3", 1)], ids=["given", "identity"]
)
def test_the_headers_of_the_controller_are_translated(translations: Any, port: str, zone: int) -> None:
    device, client, _ = make(translations)
    ((leaves_at, packet),) = device.switch.process(3, bytes([0, 1]))
    assert leaves_at == 510
    # Nine bits of port, seven that are hidden, eight of zone, and the packet.
    assert packet == bytes([1, 0x80, 1, 0, 1])
    device.packet_in(packet)
    events = [event for event in iter(client.poll, None) if isinstance(event, PacketIn)]
    assert events == [PacketIn(bytes([0, 1]), {"ingress_port": port, "zone": zone})]
    sent: list[bytes] = []
    other = Device(2, device.switch, executor="interpreter", packet_out=sent.append, translations=translations)
    with LocalClient(other) as sender:
        sender.set_pipeline(_core.Program.compile(str(HERE / "translated_matches.p4")))
        sender.packet_out(b"\x00\x01", egress_port=port)
        with pytest.raises(P4RuntimeError, match="it is a string"):
            sender.packet_out(b"", egress_port=3)
    assert sent == [bytes([0, 3, 0, 1])]


def test_types_without_a_uri_have_nothing_in_common() -> None:
    device, _, raw = make(None)
    names = [b"name%d" % i for i in range(1, 15)]
    for name in names:
        entry = raw.entry("by_string_lpm", [lpm(1, name, 8 * len(name))], raw.action("forward", name))
        write(device, update(INSERT, table_entry=entry))
    assert len(read_entries(device, p4.TableEntry())) == len(names)
