"""The thesis's format, byte by byte from its figures 3.4 and 3.5, and a path of switches against the simulator's captures."""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.packet import Packet, Raw

from holdfast import SimulatedNetwork, UdpStream, _core
from holdfast._core import Program, Switch
from holdfast.apps.telemetry import MalformedReport
from holdfast.apps.telemetry.conftest import HOST, LEFT, NOW_US, RIGHT, frame_in, frame_out, hop
from holdfast.apps.telemetry.test_network import Log, depth, line
from holdfast.apps.telemetry.thesis import (
    DATA_PORT,
    REPORT_PORT,
    ThesisController,
    ThesisHop,
    compile_thesis,
    decode_thesis_report,
)
from holdfast.control.desired import Writer
from holdfast.control.domain import domain_registers, refused
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device

SWITCH_ID = 9


@cache
def thesis() -> Program:
    return compile_thesis()


class Node:
    """A host at the edge, a switch to the left and to the right."""

    def __init__(self, executor: str, *, mtu: int = 1500) -> None:
        self.switch = Switch(thesis(), executor=executor)  # type: ignore[arg-type]
        client = LocalClient(Device(1, self.switch, executor=executor))  # type: ignore[arg-type]
        client.set_pipeline(thesis())
        Writer(client).write(domain_registers(frozenset((LEFT, RIGHT))))
        self.client = client
        client.set_default("node", "identify", {"id": SWITCH_ID})
        for prefix, port in (("10.0.1.0/24", HOST), ("10.0.2.0/24", RIGHT)):
            client.insert("ipv4_lpm", {"hdr.ipv4.dst_addr": prefix}, "forward", hop(port).params())
        for port in (HOST, LEFT, RIGHT):
            client.insert(
                "port_settings", {"egress_port": port}, "configure", {"link_mtu": mtu, "is_edge": port == HOST}
            )
            client.clone_session(1000 + port, [(port, 0)])

    def send(self, packet: Packet, port: int) -> list[tuple[int, bytes]]:
        outs = self.switch.process(port, frame_in(packet, port), NOW_US * 1_000_000)
        return sorted((out, bytes(data)) for out, data in outs)


def udp(body: bytes, *, port: int = 2000, back: bool = False, ttl: int = 64, checksum: int | None = 0) -> Packet:
    src, dst = ("10.0.1.1", "10.0.2.1")[:: -1 if back else 1]
    header = UDP(sport=1000, dport=port) if checksum is None else UDP(sport=1000, dport=port, chksum=checksum)
    return IP(src=src, dst=dst, ttl=ttl, id=3) / header / Raw(body)


def own(port: int, tx_bytes: int = 0) -> bytes:
    return struct.pack(">IIHBB", NOW_US & 0xFFFFFFFF, tx_bytes, 0, SWITCH_ID, port)


OLD = struct.pack(">IIHBB", 11, 22, 33, 44, 55)


def test_data_and_reports_of_hosts_are_refused(executor: str) -> None:
    """A sink would take what follows for headers, and a sender a report for its own."""
    node = Node(executor)
    data = udp(struct.pack(">BH", 1, 2000) + OLD + b"payload", port=DATA_PORT)
    for packet in (data, udp(b"x", port=DATA_PORT), udp(b"x" * 40, port=REPORT_PORT)):
        assert node.send(packet, HOST) == []
    assert refused(node.client, HOST) == 3
    assert len(node.send(data, LEFT)) == 1


def test_a_source(executor: str) -> None:
    node = Node(executor)
    first, second = udp(b"payload", checksum=None), udp(b"x", checksum=None)
    body = struct.pack(">BH", 1, 2000) + own(RIGHT) + b"payload"
    assert node.send(first, HOST) == [frame_out(udp(body, port=DATA_PORT, ttl=63), RIGHT)]
    body = struct.pack(">BH", 1, 2000) + own(RIGHT, len(bytes(first)) + 14 + 15) + b"x"
    assert node.send(second, HOST) == [frame_out(udp(body, port=DATA_PORT, ttl=63), RIGHT)]


def test_a_transit_switch(executor: str) -> None:
    packet = udp(struct.pack(">BH", 1, 2000) + OLD + b"payload", port=DATA_PORT)
    body = struct.pack(">BH", 2, 2000) + own(RIGHT) + OLD + b"payload"
    assert Node(executor).send(packet, LEFT) == [frame_out(udp(body, port=DATA_PORT, ttl=63), RIGHT)]


def test_a_sink(executor: str) -> None:
    """The packet as it was, without a checksum, and the report to its sender, out of the port it came in by."""
    packet = udp(struct.pack(">BH", 2, 2000) + OLD + OLD + b"payload", port=DATA_PORT, back=True)
    body = struct.pack(">BH", 3, 2000) + own(HOST) + OLD + OLD
    report = udp(body, port=REPORT_PORT, ttl=64)
    macs = hop(HOST)
    ethernet = macs.src_mac.to_bytes(6, "big") + macs.dst_mac.to_bytes(6, "big") + b"\x08\x00"
    expected = [frame_out(udp(b"payload", back=True, ttl=63), HOST), (RIGHT, ethernet + bytes(report))]
    assert Node(executor).send(packet, RIGHT) == expected


def test_reports_and_other_protocols_stay_as_they_are(executor: str) -> None:
    node = Node(executor)
    assert node.send(udp(OLD, port=REPORT_PORT), LEFT) == [frame_out(udp(OLD, port=REPORT_PORT, ttl=63), RIGHT)]
    tcp = IP(src="10.0.1.1", dst="10.0.2.1") / TCP()
    assert node.send(tcp, HOST) == [frame_out(IP(src="10.0.1.1", dst="10.0.2.1", ttl=63) / TCP(), RIGHT)]


@pytest.mark.parametrize(("room", "grows"), [(15, True), (14, False)])
def test_the_mtu(executor: str, room: int, grows: bool) -> None:
    packet = udp(bytes(100))
    ((_, out),) = Node(executor, mtu=len(bytes(packet)) + room).send(packet, HOST)
    assert (len(out) == len(bytes(packet)) + 14 + 15) is grows


def test_what_is_no_report() -> None:
    for payload in (b"", b"\x01\x00", b"\x01\0\0" + bytes(11), b"\0\0\0" + bytes(12)):
        with pytest.raises(MalformedReport):
            decode_thesis_report(payload)
    assert decode_thesis_report(b"\x01\x07\xd0" + OLD) == (2000, (ThesisHop(11, 22, 33, 44, 55),))


def test_senders_get_what_happened(tmp_path: Path) -> None:
    """Every packet's report says times, queues and bytes of all six switches as the captures do."""
    topology = line()
    network = SimulatedNetwork(topology, thesis(), [ThesisController(reaction_delay_ms=1)])
    log = Log(network, tmp_path)
    network.capture("h1", 0, tmp_path / "h1.pcap")
    flow = network.add(UdpStream(source="h1", destination="h2", packets_per_s=3000, payload_bytes=972, stop_s=0.02))
    network.run(until_s=0.1)
    assert network.statistics(flow).lost == 0
    reports = [
        decode_thesis_report(frame[42:])[1]
        for _, frame in _core.read_pcap(tmp_path / "h1.pcap")
        if frame[23] == 17 and int.from_bytes(frame[36:38], "big") == REPORT_PORT
    ]
    assert len(reports) == network.statistics(flow).sent == 60
    assert {tuple(it.switch_id for it in report) for report in reports} == {(1, 2, 3, 4, 5, 6)}
    for name, packets in log.read().items():
        index = topology.switches[name].index
        streams = {key: times for key, times in packets.items() if len(key) == 24 and len(times) == 2}
        expected = sorted(
            (times[1][0] // 1_000_000, depth(packets, key), times[1][1]) for key, times in streams.items()
        )
        got = sorted((it.timestamp, it.queue, it.port) for report in reports for it in report if it.switch_id == index)
        assert got == expected
    # Bytes that left before: frames of 1014 bytes, longer by 15 at first and by 12 at each switch.
    assert [report[1].tx_bytes for report in reports[:3]] == [0, 1041, 2082]
    assert max(it.queue for report in reports for it in report) > 3
