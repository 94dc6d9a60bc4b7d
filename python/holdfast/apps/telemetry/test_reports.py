"""Reports byte by byte from the specification, as the program sends them; and what the decoder makes of them."""

from __future__ import annotations

import struct

import pytest
from scapy.layers.inet import IP, UDP
from scapy.packet import Packet, Raw

from holdfast.apps.telemetry import program
from holdfast.apps.telemetry.conftest import (
    COLLECTOR,
    COLLECTOR_PORT,
    DOMAIN_ID,
    DSCP,
    HOST,
    HW_ID,
    LEFT,
    NODE_AND_PORTS,
    NODE_ID,
    NOW_US,
    OWN,
    RIGHT,
    Compile,
    Node,
    frame_out,
    l4,
    md_header,
    mx_header,
    shim,
    words,
)
from holdfast.apps.telemetry.instructions import Instructions
from holdfast.apps.telemetry.program import INT_UDP_PORT
from holdfast.apps.telemetry.reports import Hop, decode
from holdfast.apps.telemetry.watchlist import Watch


def report_frame(
    sequence: int, md_bits: int, metadata: bytes, inner: bytes, *, d: int = 0, q: int = 0, f: int = 1, i: int = 0,
    domain: int = DOMAIN_ID, v6: bool = False,
) -> tuple[int, bytes]:  # fmt: skip
    """Return (port, frame) of a report as section 3 of the specification describes it.

    It has outer headers, the group header, the individual report header with the main contents of RepType 1, and the truncated
    packet.
    """
    assert len(inner) % 4 == 0
    length = (8 + len(metadata) + len(inner)) // 4
    group = struct.pack(">II", 2 << 28 | HW_ID << 22 | sequence, NODE_ID)
    individual = struct.pack(
        ">BBBB", 1 << 4 | (5 if v6 else 4), min(length, 0xFF), len(metadata) // 4, d << 7 | q << 6 | f << 5 | i << 4
    )
    main = struct.pack(">HHHH", md_bits, domain, 0, 0)
    body = group + individual + main + metadata + inner
    packet = (
        IP(src=str(OWN), dst=str(COLLECTOR), ttl=64, flags="DF", id=0)
        / UDP(sport=50000, dport=program.COLLECTOR_PORT, chksum=0)
        / Raw(body)
    )
    return frame_out(packet, COLLECTOR_PORT)


def reports_of(outs: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    return [out for out in outs if out[0] == COLLECTOR_PORT]


def headers(packet: Packet, length: int) -> bytes:
    """Return the first ``length`` bytes of a packet, after scapy has built all of it."""
    return bytes(packet)[:length]


def ip_bytes(v6: bool) -> int:
    return 40 if v6 else 20


L4_BYTES = {"tcp": 20, "udp": 8}


def test_a_sink_reports_the_stack_and_its_own_metadata(compiled: Compile, executor: str, kind: str, v6: bool) -> None:
    """Section 4.3: the stack is in the truncated packet, which is as it arrived but for its TTL."""
    node = Node(compiled(), executor)
    stack = words(0xA, 1 << 16 | 2, 0xB, 3 << 16 | 4)
    body = shim(1, 0, 7, 0x2E << 2) + md_header(NODE_AND_PORTS, 2, 6) + stack + b"payload"
    outs = node.send(l4(kind, body, v6=v6, dscp=DSCP, back=True), RIGHT, NOW_US)
    assert frame_out(l4(kind, b"payload", v6=v6, dscp=0x2E, back=True, ttl=63), HOST) in outs
    arrived = l4(kind, body, v6=v6, dscp=DSCP, back=True, ttl=63)
    inner = headers(arrived, ip_bytes(v6) + L4_BYTES[kind] + 4 + 12 + len(stack))
    assert reports_of(outs) == [report_frame(0, 0x4000, words(RIGHT << 16 | HOST), inner, v6=v6)]
    ((_, frame),) = reports_of(outs)
    (report,) = decode(frame[42:])
    assert [hop[:3] for hop in report.path()] == [(0xB, 3, 4), (0xA, 1, 2), (NODE_ID, RIGHT, HOST)]


REPORTED = {
    1: words(RIGHT << 16 | HOST),
    2: words(0),
    3: words(0),
    4: struct.pack(">Q", NOW_US),
    5: struct.pack(">Q", NOW_US),
    6: words(0x10000 + RIGHT, 0x10000 + HOST),
    7: words(0),
}


@pytest.mark.parametrize("mode", ["md", "mx"])
@pytest.mark.parametrize("number", range(16))
def test_an_instruction_in_a_report(compiled: Compile, executor: str, number: int, mode: str) -> None:
    """Bit 0 is in the group header; buffers, reserved bits and the complement are not available: their bits are clear."""
    node = Node(compiled(), executor)
    bits = 1 << 15 - number
    header = md_header(bits, 2, 6) if mode == "md" else mx_header(bits)
    body = shim(1 if mode == "md" else 3, 0, 3, 0) + header
    outs = node.send(l4("udp", body, dscp=DSCP, back=True), RIGHT, NOW_US)
    inner = headers(l4("udp", body, dscp=DSCP, back=True, ttl=63), 20 + 8 + 16)
    value = REPORTED.get(number, b"")
    assert reports_of(outs) == [report_frame(0, bits if value else 0, value, inner)]


def test_interfaces_that_are_not_known(compiled: Compile, executor: str) -> None:
    """Bit 6 is clear in reports; in a packet there are ones."""
    node = Node(compiled(), executor, interfaces=False)
    body = shim(1, 0, 3, 0) + md_header(0x0200, 2, 6)
    outs = node.send(l4("udp", body, dscp=DSCP, back=True), RIGHT, NOW_US)
    inner = headers(l4("udp", body, dscp=DSCP, back=True, ttl=63), 20 + 8 + 16)
    assert reports_of(outs) == [report_frame(0, 0, b"", inner)]
    pushed = shim(1, 0, 5, 0) + md_header(0x0200, 2, 5) + words(0xFFFFFFFF, 0xFFFFFFFF)
    assert node.send(l4("udp", body, dscp=DSCP), LEFT, NOW_US) == [
        frame_out(l4("udp", pushed, dscp=DSCP, ttl=63), RIGHT)
    ]


def test_every_node_of_mx_reports(compiled: Compile, executor: str, kind: str, v6: bool) -> None:
    """Source, transit and sink; the packet passes a transit node unchanged."""
    node = Node(compiled(), executor, watches=[Watch(mode="mx", instructions=NODE_AND_PORTS)])
    body = shim(3, 0, 3, 0) + mx_header(NODE_AND_PORTS) + b"payload"
    length = ip_bytes(v6) + L4_BYTES[kind] + 16

    outs = node.send(l4(kind, b"payload", v6=v6), HOST)
    marked = l4(kind, body, v6=v6, dscp=DSCP, ttl=63)
    assert frame_out(marked, RIGHT) in outs
    assert reports_of(outs) == [report_frame(0, 0x4000, words(HOST << 16 | RIGHT), headers(marked, length), v6=v6)]

    outs = node.send(marked, LEFT)
    passed = l4(kind, body, v6=v6, dscp=DSCP, ttl=62)
    assert frame_out(passed, RIGHT) in outs
    assert reports_of(outs) == [report_frame(1, 0x4000, words(LEFT << 16 | RIGHT), headers(passed, length), v6=v6)]

    outs = node.send(l4(kind, body, v6=v6, dscp=DSCP, back=True), RIGHT)
    arrived = l4(kind, body, v6=v6, dscp=DSCP, back=True, ttl=63)
    assert frame_out(l4(kind, b"payload", v6=v6, back=True, ttl=63), HOST) in outs
    assert reports_of(outs) == [report_frame(2, 0x4000, words(RIGHT << 16 | HOST), headers(arrived, length), v6=v6)]


def test_source_inserted_metadata_is_in_the_truncated_packet(compiled: Compile, executor: str) -> None:
    """Section 6.15: a sequence number and a flow id behind the header of INT-MX; the sink takes them out."""
    node = Node(compiled(udp_port=INT_UDP_PORT), executor, by_port=True)
    body = shim(3, 1, 5, 2000) + mx_header(0x9000, ds_instructions=0xC000) + words(15, 0x12345678) + b"payload"
    outs = node.send(l4("udp", body, dport=INT_UDP_PORT, back=True), RIGHT)
    assert frame_out(l4("udp", b"payload", back=True, ttl=63), HOST) in outs
    inner = headers(l4("udp", body, dport=INT_UDP_PORT, back=True, ttl=63), 20 + 8 + 4 + 12 + 8)
    assert reports_of(outs) == [report_frame(0, 0x1000, words(0), inner)]
    (report,) = decode(reports_of(outs)[0][1][42:])
    assert report.embedded is not None
    assert report.embedded.source_only == words(15, 0x12345678)
    assert report.flow is not None
    assert report.flow.destination_port == 2000


def test_xd(compiled: Compile, executor: str, kind: str, v6: bool) -> None:
    """Every node with the watchlist reports, wherever the packet comes from."""
    node = Node(compiled(), executor, watches=[Watch(mode="xd", instructions=NODE_AND_PORTS)])
    for sequence, port in enumerate((HOST, LEFT)):
        outs = node.send(l4(kind, b"payload", v6=v6), port)
        passed = l4(kind, b"payload", v6=v6, ttl=63)
        inner = headers(passed, ip_bytes(v6) + L4_BYTES[kind])
        assert reports_of(outs) == [report_frame(sequence, 0x4000, words(port << 16 | RIGHT), inner, v6=v6)]


def test_the_new_udp_header_is_in_the_report(compiled: Compile, executor: str, kind: str, v6: bool) -> None:
    """NPT 2, section 4.3: IP, UDP, shim, headers, stack, and the original TCP or UDP header, by which the flow is told."""
    watch = Watch(instructions=NODE_AND_PORTS, new_udp_header=True)
    source = Node(compiled(udp_port=INT_UDP_PORT), executor, watches=[watch], by_port=True)
    ((_, out),) = source.send(l4(kind, b"payload", v6=v6))
    sink = Node(compiled(udp_port=INT_UDP_PORT), executor, by_port=True)
    if v6:
        sink.client.insert("ipv6_lpm", {"hdr.ipv6.dst_addr": ("2001:db8:2::1", 128)}, "forward_v6",
                           {"port": HOST, "src_mac": 1, "dst_mac": 2})  # fmt: skip
    else:
        sink.client.insert("ipv4_lpm", {"hdr.ipv4.dst_addr": "10.0.2.1/32"}, "forward",
                           {"port": HOST, "src_mac": 1, "dst_mac": 2})  # fmt: skip
    ((_, frame),) = reports_of(sink.process(out, LEFT))
    arrived = bytearray(out[14:])
    arrived[7 if v6 else 8] -= 1
    if not v6:
        arrived[10:12] = bytes(IP(bytes(arrived[:10]) + b"\0\0" + bytes(arrived[12:20])))[10:12]
        rebuilt = IP(bytes(arrived))
        del rebuilt.chksum
        arrived = bytearray(bytes(rebuilt))
    inner = bytes(arrived)[: ip_bytes(v6) + 8 + 4 + 12 + 8 + L4_BYTES[kind]]
    assert (COLLECTOR_PORT, frame) == report_frame(0, 0x4000, words(LEFT << 16 | HOST), inner, v6=v6)
    (report,) = decode(frame[42:])
    assert report.flow is not None
    assert report.flow[2:] == (6 if kind == "tcp" else 17, 1000, 2000)


def test_source_and_sink_in_one(compiled: Compile, executor: str) -> None:
    """Between two ports at the edge there is nobody to embed anything for: the node reports, and the packet stays as it is."""
    node = Node(compiled(), executor, watches=[Watch(instructions=NODE_AND_PORTS)])
    node.client.insert(
        "ipv4_lpm", {"hdr.ipv4.dst_addr": "10.0.2.1/32"}, "forward", {"port": HOST, "src_mac": 1, "dst_mac": 2}
    )
    outs = node.send(l4("tcp", b"payload"))
    inner = headers(l4("tcp", b"payload", ttl=63), 40)
    assert reports_of(outs) == [report_frame(0, 0x4000, words(HOST << 16 | HOST), inner)]


def test_drops(compiled: Compile, executor: str) -> None:
    """D, and bit 15 with the reason; F only if the packet has INT headers. The packet is as it arrived."""
    node = Node(compiled(), executor, watches=[Watch(instructions=NODE_AND_PORTS)])
    where = words(HOST << 16 | 0xFFFF) + struct.pack(">Q", NOW_US)
    expired = l4("tcp", b"payload", ttl=1)
    outs = node.send(expired, HOST, NOW_US)
    assert outs == [
        report_frame(0, 0x4801, where + words(0xFF << 24 | 26 << 16), headers(expired, 40), d=1, f=0, domain=0)
    ]
    lost = l4("udp", b"payload")
    lost.dst = "10.9.9.9"
    outs = node.send(lost, HOST, NOW_US)
    assert outs == [
        report_frame(1, 0x4801, where + words(0xFF << 24 | 29 << 16), headers(lost, 28), d=1, f=0, domain=0)
    ]
    (report,) = decode(outs[0][1][42:])
    assert (report.dropped, report.drop_reason, report.hop.ingress_port, report.hop.egress_port) == (
        True,
        29,
        HOST,
        None,
    )
    # With INT headers, and without an entry for it.
    body = shim(1, 0, 5, 0) + md_header(NODE_AND_PORTS, 2, 7) + words(1, 2) + b"payload"
    tracked = l4("udp", body, dscp=DSCP, ttl=1)
    outs = node.send(tracked, LEFT, NOW_US)
    where = words(LEFT << 16 | 0xFFFF) + struct.pack(">Q", NOW_US)
    inner = headers(tracked, 20 + 8 + 16 + 8)
    assert outs == [report_frame(2, 0x4801, where + words(0xFF << 24 | 26 << 16), inner, d=1)]


def test_drops_that_nobody_watches(compiled: Compile, executor: str) -> None:
    node = Node(compiled(), executor, watches=[Watch(drops=False)])
    assert node.send(l4("tcp", b"", ttl=1)) == []
    assert Node(compiled(), executor).send(l4("tcp", b"", ttl=1)) == []


def test_a_node_that_reports_to_nobody_reports_no_drops(compiled: Compile, executor: str) -> None:
    node = Node(compiled(), executor, watches=[Watch(instructions=NODE_AND_PORTS)])
    node.client.reset_default("report_settings")
    assert node.send(l4("tcp", b"payload", ttl=1)) == []


def test_sampled_out_flows_still_report_drops(compiled: Compile) -> None:
    node = Node(compiled(), watches=[Watch(sampling=0.0)])
    assert len(node.send(l4("tcp", b"", ttl=1))) == 1


@pytest.mark.parametrize("hops", [100, 126])
def test_a_report_too_long_for_its_length(compiled: Compile, executor: str, hops: int) -> None:
    """0xFF: to the end of the UDP payload."""
    node = Node(compiled(), executor)
    stack = words(*range(2 * hops))
    body = shim(1, 0, 3 + 2 * hops, 0) + md_header(NODE_AND_PORTS, 2, 7) + stack + b"payload"
    outs = node.send(l4("tcp", body, dscp=DSCP, back=True), RIGHT)
    inner = headers(l4("tcp", body, dscp=DSCP, back=True, ttl=63), 40 + 16 + len(stack))
    assert reports_of(outs) == [report_frame(0, 0x4000, words(RIGHT << 16 | HOST), inner)]
    (report,) = decode(reports_of(outs)[0][1][42:])
    assert len(report.path()) == hops + 1


def test_changes_only(compiled: Compile, executor: str) -> None:
    """A flow is reported at its first packet, and when its way or its latency changes."""
    node = Node(
        compiled(),
        executor,
        watches=[Watch(mode="xd", instructions=NODE_AND_PORTS)],
        changes_only=True,
        latency_shift=4,
    )
    other = l4("tcp", b"")
    other.sport = 1
    sent = [
        (HOST, l4("tcp", b"")),
        (HOST, l4("tcp", b"x")),
        (HOST, other),
        (LEFT, l4("tcp", b"")),
        (LEFT, l4("tcp", b"")),
    ]
    assert [len(reports_of(node.send(packet, port))) for port, packet in sent] == [1, 0, 1, 1, 0]
    shorter = l4("tcp", b"", ttl=50)
    assert [len(reports_of(node.send(packet, LEFT))) for packet in (shorter, shorter)] == [1, 0]


def test_a_sink_reports_changes_of_the_path(compiled: Compile, executor: str) -> None:
    """More or fewer hops than before, though the ports here are the same."""
    node = Node(compiled(), executor, changes_only=True)
    counts = []
    for remaining in (6, 6, 5, 5, 6):
        body = shim(1, 0, 3, 0) + md_header(NODE_AND_PORTS, 2, remaining)
        counts.append(len(reports_of(node.send(l4("udp", body, dscp=DSCP, back=True), RIGHT))))
    assert counts == [1, 0, 1, 0, 1]


def test_without_a_reporter_nothing_is_reported(compiled: Compile, executor: str) -> None:
    node = Node(compiled(), executor, watches=[Watch(mode="xd")])
    node.client.reset_default(program.REPORT_SETTINGS)
    assert node.send(l4("tcp", b"payload")) == [frame_out(l4("tcp", b"payload", ttl=63), RIGHT)]
    assert node.counted() == {}


def test_sequence_numbers_have_22_bits(compiled: Compile) -> None:
    node = Node(compiled(), watches=[Watch(mode="xd")])
    node.client.write_register("TelemetryEgress.make_report.sequence", 0, (1 << 22) - 1)
    numbers = [decode(reports_of(node.send(l4("tcp", b"")))[0][1][42:])[0].sequence for _ in range(2)]
    assert numbers == [(1 << 22) - 1, 0]


def test_utilisation_is_of_the_last_complete_interval(compiled: Compile, executor: str) -> None:
    node = Node(compiled(), executor, watches=[Watch(mode="xd", instructions=int(Instructions.TX_UTILISATION))])
    frame = len(bytes(l4("udp", bytes(100)))) + 14
    interval_us = 1 << 14
    values = []
    for now_us in (0, 1, interval_us - 1, interval_us, interval_us + 5, 2 * interval_us, 4 * interval_us):
        ((_, report),) = reports_of(node.send(l4("udp", bytes(100)), HOST, now_us))
        values.append(decode(report[42:])[0].hop.tx_utilisation)
    assert values == [0, 0, 0, 3 * frame, 3 * frame, 2 * frame, 0]


def test_the_example_of_the_specification() -> None:
    """Report specification, section 4.1: level 1 interfaces and queue occupancy, a truncated IPv4 packet with TCP."""
    packet = bytes(l4("tcp", b""))[:40]
    data = (
        struct.pack(">II", 2 << 28 | 3 << 22 | 77, 0x11223344)
        + bytes([0x14, 14, 2, 0x20])
        + struct.pack(">HHHH", 0x5000, 0, 0, 0)
        + struct.pack(">HHI", 7, 8, 9 << 24 | 1000)
        + packet
    )
    (report,) = decode(data)
    assert (report.node_id, report.hw_id, report.sequence) == (0x11223344, 3, 77)
    assert report.hop == Hop(0x11223344, 7, 8, None, 9, 1000)
    assert str(report.flow) == "10.0.1.1:1000 > 10.0.2.1:2000 tcp"
    # Section 2.7: several in one packet, from the second on.
    two = decode(data + data[8:])
    assert [r.flow for r in two] == [report.flow, report.flow]
