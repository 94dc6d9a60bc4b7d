"""A program of PSA under P4Runtime: translated ports, groups, and packets by what was written."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from raw import INSERT, Raw, exact, read_entries, update, write

from holdfast import SimulatedNetwork, _core
from holdfast.errors import HoldfastError
from holdfast.p4runtime import Device, LocalClient, P4InfoIndex
from holdfast.p4runtime.errors import P4RuntimeError
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4
from holdfast.parameters import PS_PER_S
from holdfast.topology import Topology

PROGRAM = Path(__file__).parents[1] / "p4/accept/psa.p4"
CPU, RECIRCULATE = 0xFFFFFFFD, 0xFFFFFFFA

V1MODEL = """
#include <core.p4>
#include <v1model.p4>
struct headers_t {}
struct meta_t {}
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply { sm.egress_spec = sm.ingress_port == 510 ? 9w3 : 9w510; }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply {} }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""

COPIES = """
#include <core.p4>
#include <psa.p4>
struct headers_t {}
struct empty_t {}
parser IP(packet_in packet, out headers_t hdr, inout empty_t meta, in psa_ingress_parser_input_metadata_t istd,
          in empty_t a, in empty_t b) {
    state start { transition accept; }
}
control I(inout headers_t hdr, inout empty_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    apply {
        if (istd.packet_path == PSA_PacketPath_t.RECIRCULATE) {
            send_to_port(ostd, (PortId_t)3);
        } else if (istd.ingress_port == PSA_PORT_CPU) {
            send_to_port(ostd, (PortId_t)4);
        } else if (istd.ingress_port == (PortId_t)1) {
            multicast(ostd, (MulticastGroup_t)7);
        } else if (istd.ingress_port == (PortId_t)2) {
            ostd.clone = true;
            ostd.clone_session_id = (CloneSessionId_t)9;
            ingress_drop(ostd);
        } else {
            send_to_port(ostd, PSA_PORT_CPU);
        }
    }
}
control ID(packet_out packet, out empty_t a, out empty_t b, out empty_t c, inout headers_t hdr, in empty_t meta,
           in psa_ingress_output_metadata_t istd) { apply {} }
parser EP(packet_in packet, out headers_t hdr, inout empty_t meta, in psa_egress_parser_input_metadata_t istd,
          in empty_t a, in empty_t b, in empty_t c) {
    state start { transition accept; }
}
control E(inout headers_t hdr, inout empty_t meta, in psa_egress_input_metadata_t istd,
          inout psa_egress_output_metadata_t ostd) { apply {} }
control ED(packet_out packet, out empty_t a, out empty_t b, inout headers_t hdr, in empty_t meta,
           in psa_egress_output_metadata_t istd, in psa_egress_deparser_input_metadata_t edstd) { apply {} }
IngressPipeline(IP(), I(), ID()) ingress;
EgressPipeline(EP(), E(), ED()) egress;
PSA_Switch(ingress, PacketReplicationEngine(), egress, BufferingQueueingEngine()) main;
"""


def compiled(source: str, tmp_path: Path) -> _core.Program:
    file = tmp_path / "program.p4"
    file.write_text(source)
    return _core.Program.compile(str(file))


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


@pytest.mark.parametrize("executor", ["interpreter", "jit"])
def test_copies_go_to_the_controller_and_round_again(executor: Literal["jit", "interpreter"], tmp_path: Path) -> None:
    """PSA 1.2, sections 6.2 and 6.5: a copy goes to each port of its group or session that exists, these two included."""
    program = compiled(COPIES, tmp_path)
    device = Device(1, _core.Switch(program, executor=executor), executor=executor)
    client = LocalClient(device)
    client.set_pipeline(program)
    client.multicast_group(7, [(5, 1), (CPU, 2), (RECIRCULATE, 3)])
    client.clone_session(9, [(CPU, 1), (600, 2), (RECIRCULATE, 1)])
    assert client.multicast_groups() == {7: [(5, 1), (CPU, 2), (RECIRCULATE, 3)]}
    assert sorted(device.switch.process(1, b"data")) == [(3, b"data"), (5, b"data"), (CPU, b"data")]
    assert sorted(device.switch.process(2, b"data")) == [(3, b"data"), (600, b"data"), (CPU, b"data")]
    for port in (0xFFFFFFFE, 0xFFFFFFFB, 0xFFFFFFFF):
        with pytest.raises(P4RuntimeError, match=str(port)):
            client.multicast_group(8, [(port, 1)])
    with pytest.raises(HoldfastError):
        client.multicast_group(8, [(1 << 32, 1)])


def test_the_cpu_port_follows_the_architecture(tmp_path: Path) -> None:
    """A program of another architecture has another port to the controller: packet-ins and packet-outs go on."""
    psa, v1model = compiled(COPIES, tmp_path), compiled(V1MODEL, tmp_path)
    topology = Topology()
    topology.add_switch("s1")
    for host in ("h1", "h2", "h3", "h4"):
        topology.add_host(host)
        topology.add_link(host, "s1", b_port={"h1": 9, "h2": 3, "h3": 4, "h4": 8}[host])
    network = SimulatedNetwork(topology, psa)
    heard: list[str] = []
    for host in ("h2", "h3"):
        network.add_frame_listener(host, lambda _, __, host=host: heard.append(host))
    client = network.clients["s1"]
    for program, cpu_port, receiver in ((psa, CPU, "h3"), (v1model, 510, "h2"), (psa, CPU, "h3"), (v1model, 510, "h2")):
        client.set_pipeline(program)
        device = network.devices["s1"]
        assert device.switch.cpu_port == cpu_port
        before = network.node_counters("s1").packet_ins
        network.send_frame("h1", bytes(60))
        network.run(network.now_ps / PS_PER_S + 0.1)
        assert network.node_counters("s1").packet_ins == before + 1
        heard.clear()
        client.packet_out(b"\xff" * 6 + bytes(54))
        network.run(network.now_ps / PS_PER_S + 0.1)
        assert heard == [receiver]


def test_a_cpu_port_that_was_asked_for_stays(tmp_path: Path) -> None:
    psa, v1model = compiled(COPIES, tmp_path), compiled(V1MODEL, tmp_path)
    switch = _core.Switch(v1model, cpu_port=64)
    switch.set_program(psa)
    assert switch.cpu_port == 64
    switch = _core.Switch(psa, cpu_port=CPU)
    with pytest.raises(HoldfastError, match="cpu_port"):
        switch.set_program(v1model)
    assert switch.cpu_port == CPU
