"""A program of PSA under P4Runtime: translated ports, groups, and packets by what was written."""

from __future__ import annotations

from pathlib import Path

import pytest
from raw import INSERT, Raw, exact, read_entries, update, write

from holdfast import _core
from holdfast.p4runtime import Device, LocalClient, P4InfoIndex
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4

PROGRAM = Path(__file__).parents[1] / "p4/accept/psa.p4"


@pytest.mark.parametrize("executor", ["interpreter", "jit"])
def test_entries_and_groups_of_psa(executor: str) -> None:
    program = _core.Program.compile(str(PROGRAM))
    kind = "jit" if executor == "jit" else "interpreter"
    switch = _core.Switch(program, executor=kind)
    assert switch.cpu_port == 0xFFFFFFFD
    device = Device(1, switch, executor=kind)
    LocalClient(device).set_pipeline(program)
    raw = Raw(P4InfoIndex.from_text(program.p4info))
    group = p4.MulticastGroupEntry(
        multicast_group_id=7, replicas=[p4.Replica(port=b"\x04", instance=1), p4.Replica(port=b"\x05", instance=2)]
    )
    write(
        device,
        update(INSERT, packet_replication_engine_entry=p4.PacketReplicationEngineEntry(multicast_group_entry=group)),
    )
    entries = [
        raw.entry("ports", [exact(1, b"\x00")], raw.action("forward", b"\x03", b"\x2a"), priority=1),
        raw.entry("ports", [exact(1, b"\x01")], raw.action("replicate", b"\x07"), priority=1),
    ]
    write(device, *(update(INSERT, table_entry=e) for e in entries))
    read = read_entries(device, p4.TableEntry())
    assert [e.match for e in read] == [e.match for e in entries]
    packet = b"\x01" + bytes(4) + b"rest"
    assert device.switch.process(0, packet) == [(3, b"\x2a\x00\x00\x00\x03rest")]
    assert device.switch.process(1, packet) == [(4, b"\x00\x00\x00\x00\x04rest"), (5, b"\x00\x00\x00\x00\x05rest")]
    assert device.switch.process(2, packet) == []
