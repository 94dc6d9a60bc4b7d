"""Source and sink, byte by byte from the specification: modes, indicators, next protocols, checksums, the edge of the domain."""

from __future__ import annotations

from typing import Any

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.packet import Packet, Raw

from holdfast.apps.telemetry.conftest import (
    COLLECTOR_PORT,
    DOMAIN_ID,
    DSCP,
    HOST,
    LEFT,
    NODE_AND_PORTS,
    NODE_ID,
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
from holdfast.apps.telemetry.program import INT_UDP_PORT
from holdfast.apps.telemetry.watchlist import Watch

OWN_HOP = words(NODE_ID, HOST << 16 | RIGHT)


def watch(**fields: object) -> Watch:
    return Watch(**{"instructions": NODE_AND_PORTS, "hops": 8, **fields})  # type: ignore[arg-type]


def of(node: Node, packet: Packet, port: int = HOST) -> list[tuple[int, bytes]]:
    """Send a packet into ``port``, and return (port, frame) of what leaves, without telemetry reports."""
    return [(out, data) for out, data in node.send(packet, port) if out != COLLECTOR_PORT]


@pytest.mark.parametrize("dscp", [0, 0x2E, DSCP])
def test_a_source_of_md_by_dscp(compiled: Compile, executor: str, kind: str, v6: bool, dscp: int) -> None:
    """Section 6.1: the shim keeps the DSCP, the node pushes its own metadata, and the count is one less than the limit."""
    node = Node(compiled(), executor, watches=[watch()])
    body = shim(1, 0, 5, dscp << 2) + md_header(NODE_AND_PORTS, 2, 7) + OWN_HOP + b"payload"
    assert of(node, l4(kind, b"payload", v6=v6, dscp=dscp)) == [
        frame_out(l4(kind, body, v6=v6, dscp=DSCP, ttl=63), RIGHT)
    ]


def test_a_source_of_mx_by_dscp(compiled: Compile, executor: str, kind: str, v6: bool) -> None:
    """Section 6.2."""
    node = Node(compiled(), executor, watches=[watch(mode="mx")])
    body = shim(3, 0, 3, 0x2E << 2) + mx_header(NODE_AND_PORTS) + b"payload"
    # Hop ML and the count are reserved here.
    assert of(node, l4(kind, b"payload", v6=v6, dscp=0x2E)) == [
        frame_out(l4(kind, body, v6=v6, dscp=DSCP, ttl=63), RIGHT)
    ]


def test_a_source_of_xd_changes_nothing(compiled: Compile, executor: str, kind: str, v6: bool) -> None:
    node = Node(compiled(), executor, watches=[watch(mode="xd")])
    assert of(node, l4(kind, b"payload", v6=v6)) == [frame_out(l4(kind, b"payload", v6=v6, ttl=63), RIGHT)]
    assert node.counted() == {"reports": 1}


@pytest.mark.parametrize("mode", ["md", "mx"])
def test_udp_by_port(compiled: Compile, executor: str, mode: str, v6: bool) -> None:
    """Sections 6.5 and 6.6: NPT 1, the shim keeps the port."""
    node = Node(compiled(udp_port=INT_UDP_PORT), executor, watches=[watch(mode=mode)], by_port=True)
    md = shim(1, 1, 5, 2000) + md_header(NODE_AND_PORTS, 2, 7) + OWN_HOP
    body = (md if mode == "md" else shim(3, 1, 3, 2000) + mx_header(NODE_AND_PORTS)) + b"payload"
    expected = l4("udp", body, v6=v6, ttl=63, dport=INT_UDP_PORT)
    assert of(node, l4("udp", b"payload", v6=v6)) == [frame_out(expected, RIGHT)]


def inner_of(packet: Packet) -> bytes:
    """Return the bytes behind the IP header."""
    return bytes(packet)[40 if packet.version == 6 else 20 :]


PROTOCOLS = {"tcp": 6, "udp": 17, "icmp": 1, "icmpv6": 58}


def any_packet(kind: str, v6: bool, ttl: int = 64) -> Packet:
    if kind in ("tcp", "udp"):
        return l4(kind, b"payload", v6=v6, ttl=ttl)
    if v6:
        return IPv6(src="2001:db8:1::1", dst="2001:db8:2::1", hlim=ttl) / ICMPv6EchoRequest(data=b"ping")
    return IP(src="10.0.1.1", dst="10.0.2.1", ttl=ttl, id=7) / ICMP() / Raw(b"ping")


@pytest.mark.parametrize("mode", ["md", "mx"])
@pytest.mark.parametrize("kind", ["tcp", "udp", "icmp"])
def test_a_new_udp_header(compiled: Compile, executor: str, kind: str, mode: str, v6: bool) -> None:
    """Sections 6.3 and 6.4: NPT 2, the shim keeps the protocol; UDP without checksum, its source port by flow."""
    node = Node(
        compiled(udp_port=INT_UDP_PORT), executor, watches=[watch(mode=mode, new_udp_header=True)], by_port=True
    )
    original = any_packet(kind, v6)
    ((port, out),) = of(node, original)
    assert port == RIGHT
    source_port = int.from_bytes(out[14 + (40 if v6 else 20) :][:2], "big")
    assert source_port >= 0xC000
    protocol = PROTOCOLS["icmpv6" if v6 and kind == "icmp" else kind]
    md = shim(1, 2, 5, protocol) + md_header(NODE_AND_PORTS, 2, 7) + OWN_HOP
    body = (md if mode == "md" else shim(3, 2, 3, protocol) + mx_header(NODE_AND_PORTS)) + inner_of(original)
    ip = original.copy()
    ip.remove_payload()
    for field in ("len", "plen", "chksum", "proto", "nh"):
        if field in ip.fields:
            delattr(ip, field)
    if v6:
        ip.hlim = 63
    else:
        ip.ttl = 63
    expected = ip / UDP(sport=source_port, dport=INT_UDP_PORT, chksum=0) / Raw(body)
    assert (port, out) == frame_out(expected, RIGHT)


def test_flows_get_different_source_ports(compiled: Compile) -> None:
    node = Node(compiled(udp_port=INT_UDP_PORT), watches=[watch()], by_port=True)
    outs = [of(node, IP(src="10.0.1.1", dst="10.0.2.1") / TCP(sport=port))[0][1] for port in range(1, 40)]
    assert len({out[34:36] for out in outs}) > 30
    assert outs[0] == of(node, IP(src="10.0.1.1", dst="10.0.2.1") / TCP(sport=1))[0][1]


@pytest.mark.parametrize("mask", [0x10, 0x30])
def test_a_bit_of_the_dscp_as_indicator(executor: str, mask: int) -> None:
    """The other bits stay what they are, for quality of service (section 5.6.2)."""
    from holdfast.apps.telemetry.program import compile_telemetry

    program = compile_telemetry(defines={"INT_DSCP": "0x10", "INT_DSCP_MASK": hex(mask)})
    node = Node(program, executor, watches=[watch()])
    ((_, out),) = of(node, l4("tcp", b"", dscp=0x2E))
    assert out[15] >> 2 == 0x2E & ~mask | 0x10


def test_a_udp_checksum_of_zero_stays_zero(compiled: Compile, executor: str, kind: str) -> None:
    """TCP's zero is a checksum like any other."""
    node = Node(compiled(), executor, watches=[watch()])
    ((_, out),) = of(node, l4(kind, b"payload", chksum=0))
    at = 14 + 20 + (16 if kind == "tcp" else 6)
    assert (out[at : at + 2] == b"\0\0") == (kind == "udp")


def test_the_source_needs_room_for_headers(compiled: Compile, executor: str, v6: bool) -> None:
    """Too long for the headers: no INT. Room for the headers alone: INT with the M bit, no metadata, and the limit as count."""
    original = l4("udp", bytes(100), v6=v6)
    length = len(bytes(original))
    node = Node(compiled(), executor, watches=[watch()], mtu=length + 15)
    assert of(node, original) == [frame_out(l4("udp", bytes(100), v6=v6, ttl=63), RIGHT)]
    assert node.counted() == {"not_sourced": 1}
    for mtu in (length + 16, length + 23):
        node = Node(compiled(), executor, watches=[watch()], mtu=mtu)
        body = shim(1, 0, 3, 0) + md_header(NODE_AND_PORTS, 2, 8, m=1) + bytes(100)
        assert of(node, original) == [frame_out(l4("udp", body, v6=v6, dscp=DSCP, ttl=63), RIGHT)]
        assert node.counted() == {"sourced": 1, "mtu_exceeded": 1}
    node = Node(compiled(), executor, watches=[watch()], mtu=length + 24)
    assert len(of(node, original)[0][1]) == 14 + length + 24


def test_a_source_with_checksum_complement(compiled: Compile, executor: str, kind: str) -> None:
    """The checksum is the one of the host, and still right."""
    layer = TCP if kind == "tcp" else UDP
    node = Node(compiled(), executor, watches=[watch(instructions=0x8001)])
    original = IP(bytes(l4(kind, b"payload")))
    ((_, out),) = of(node, original)
    received = IP(out[14:])
    assert received[layer].chksum == original[layer].chksum
    again = received.copy()
    del again[layer].chksum
    assert IP(bytes(again))[layer].chksum == original[layer].chksum


@pytest.mark.parametrize(
    ("fields", "matches"),
    [
        ({}, True),
        ({"source": "10.0.1.0/24"}, True),
        ({"source": "10.0.3.0/24"}, False),
        ({"destination": "10.0.2.1"}, True),
        ({"destination": "10.0.2.2"}, False),
        ({"protocol": 6}, True),
        ({"protocol": 17}, False),
        ({"protocol": 6, "source_port": 1000, "destination_port": 2000}, True),
        ({"protocol": 6, "source_port": 1001}, False),
        ({"protocol": 6, "destination_port": 2000 & ~0xF, "destination_port_mask": 0xFFF0}, True),
        ({"protocol": 6, "destination_port": 0x1000, "destination_port_mask": 0xF000}, False),
        ({"version": 6}, False),
    ],
)
def test_the_watchlist(compiled: Compile, fields: dict[str, object], matches: bool) -> None:
    node = Node(compiled(), watches=[watch(**fields)])
    of(node, l4("tcp", b""))
    assert node.counted().get("sourced", 0) == int(matches)


def test_the_first_entry_counts(compiled: Compile) -> None:
    node = Node(compiled(), watches=[watch(destination="10.0.2.1", hops=3), watch(hops=9)])
    ((_, out),) = of(node, l4("tcp", b""))
    assert out[14 + 40 + 4 + 3] == 2


@pytest.mark.parametrize("sampling", [0.0, 0.25, 1.0])
def test_sampling(compiled: Compile, executor: str, sampling: float) -> None:
    node = Node(compiled(), executor, watches=[watch(sampling=sampling)])
    packets = 2000
    for _ in range(packets):
        of(node, l4("udp", b""))
    share = node.counted().get("sourced", 0) / packets
    if sampling in (0.0, 1.0):
        assert share == sampling
    else:
        # Five standard deviations.
        assert abs(share - sampling) < 5 * (sampling * (1 - sampling) / packets) ** 0.5


def test_nothing_is_sourced_inside_the_domain(compiled: Compile, executor: str) -> None:
    """Packets that another source has passed over, by sampling say, stay without INT."""
    node = Node(compiled(), executor, watches=[watch()])
    assert of(node, l4("tcp", b"payload"), LEFT) == [frame_out(l4("tcp", b"payload", ttl=63), RIGHT)]


def test_fragments_are_not_sourced(compiled: Compile, executor: str) -> None:
    node = Node(compiled(udp_port=INT_UDP_PORT), executor, watches=[watch()], by_port=True)
    for flags, offset in (("MF", 0), ("MF", 5), (0, 5)):
        packet, expected = l4("udp", b"payload"), l4("udp", b"payload", ttl=63)
        for each in (packet, expected):
            each.flags, each.frag = flags, offset
        assert of(node, packet) == [frame_out(expected, RIGHT)]
    assert node.counted()["not_sourced"] == 3


def test_the_indicator_of_strangers_is_cleared(compiled: Compile, executor: str, kind: str, v6: bool) -> None:
    """A host's packet with INT's DSCP and bytes like INT headers is no INT, and must not be taken for it further on."""
    node = Node(compiled(), executor)
    body = shim(1, 0, 5, 0) + md_header(NODE_AND_PORTS, 2, 7) + OWN_HOP
    assert of(node, l4(kind, body, v6=v6, dscp=DSCP)) == [frame_out(l4(kind, body, v6=v6, ttl=63), RIGHT)]
    assert node.counted() == {"refused": 1}


def test_the_port_of_strangers_is_dropped(compiled: Compile, executor: str) -> None:
    node = Node(compiled(udp_port=INT_UDP_PORT), executor)
    assert of(node, l4("udp", b"x" * 20, dport=INT_UDP_PORT)) == []
    assert node.counted() == {"refused": 1}


@pytest.mark.parametrize("options", [[], [IPOption(b"\x01\x01\x01\x01")]], ids=["", "options"])
def test_first_fragments_to_the_port_are_dropped_too(compiled: Compile, executor: str, options: list[object]) -> None:
    """They passed, with shim and stack. Bytes of later ones are no port, and those from the domain are as they were."""
    node = Node(compiled(udp_port=INT_UDP_PORT), executor)

    def fragment(offset: int, port: int, flags: str = "MF", **fields: object) -> Any:
        packet = l4("udp", b"x" * 24, dport=port, **fields)
        packet.flags, packet.frag, packet.options = flags, offset, options
        return packet

    for flags in ("MF", "MF+DF", "MF+evil"):
        assert of(node, fragment(0, INT_UDP_PORT, flags)) == []
    assert node.counted() == {"refused": 3}
    for offset, port in ((5, INT_UDP_PORT), (0, INT_UDP_PORT - 1)):
        assert of(node, fragment(offset, port)) == [frame_out(fragment(offset, port, ttl=63), RIGHT)]
    from_domain = fragment(0, INT_UDP_PORT, back=True)
    assert of(node, from_domain, RIGHT) == [frame_out(fragment(0, INT_UDP_PORT, back=True, ttl=63), HOST)]
    assert node.counted()["refused"] == 3


STACKS = pytest.mark.parametrize("hops", [0, 1, 5, 126])


@STACKS
@pytest.mark.parametrize("mode", ["md", "mx"])
def test_a_sink_by_dscp(compiled: Compile, executor: str, mode: str, kind: str, v6: bool, hops: int) -> None:
    """The packet comes out as it went in: DSCP, lengths, checksums."""
    if mode == "mx" and hops > 1:
        hops = 0
    node = Node(compiled(), executor)
    stack = b"".join(words(i, 0xFFFFFFFF - 77 * i) for i in range(hops))
    header = md_header(NODE_AND_PORTS, 2, 7) if mode == "md" else mx_header(NODE_AND_PORTS)
    body = shim(1 if mode == "md" else 3, 0, 3 + 2 * hops, 0x2E << 2) + header + stack + b"payload"
    packet = l4(kind, body, v6=v6, dscp=DSCP, back=True)
    assert of(node, packet, RIGHT) == [frame_out(l4(kind, b"payload", v6=v6, dscp=0x2E, back=True, ttl=63), HOST)]
    assert node.counted()["sunk"] == 1


@pytest.mark.parametrize("chksum", [None, 0])
def test_a_sink_of_udp_by_port(compiled: Compile, executor: str, v6: bool, chksum: int | None) -> None:
    node = Node(compiled(udp_port=INT_UDP_PORT), executor)
    sums = {} if chksum is None else {"chksum": chksum}
    body = shim(1, 1, 5, 2000) + md_header(NODE_AND_PORTS, 2, 7) + words(1, 2) + b"payload"
    packet = l4("udp", body, v6=v6, back=True, dport=INT_UDP_PORT, **sums)
    assert of(node, packet, RIGHT) == [frame_out(l4("udp", b"payload", v6=v6, back=True, ttl=63, **sums), HOST)]


@pytest.mark.parametrize("kind", ["tcp", "udp", "icmp"])
def test_source_and_sink_of_a_new_udp_header(compiled: Compile, executor: str, kind: str, v6: bool) -> None:
    """The sink restores the source's packet. In between only the TTL has changed."""
    source = Node(compiled(udp_port=INT_UDP_PORT), executor, watches=[watch(new_udp_header=True)], by_port=True)
    ((_, out),) = of(source, any_packet(kind, v6))
    sink = Node(compiled(udp_port=INT_UDP_PORT), executor, by_port=True)
    # To the same addresses, which are at the sink's edge there.
    if v6:
        sink.client.insert("ipv6_lpm", {"hdr.ipv6.dst_addr": ("2001:db8:2::1", 128)}, "forward_v6",
                           {"port": HOST, "src_mac": 1, "dst_mac": 2})  # fmt: skip
    else:
        sink.client.insert("ipv4_lpm", {"hdr.ipv4.dst_addr": "10.0.2.1/32"}, "forward",
                           {"port": HOST, "src_mac": 1, "dst_mac": 2})  # fmt: skip
    got = [data for port, data in sink.process(out, LEFT) if port == HOST]
    assert [data[14:] for data in got] == [bytes(any_packet(kind, v6, ttl=62))]


def test_every_checksum_survives_source_and_sink(compiled: Compile) -> None:
    """Over all values of a word in the payload, so over all checksums; those at the ends of the range too."""
    for kind in ("tcp", "udp"):
        source = Node(compiled(), watches=[watch()])
        sink = Node(compiled())
        sink.client.insert("ipv4_lpm", {"hdr.ipv4.dst_addr": "10.0.2.1/32"}, "forward",
                           {"port": HOST, "src_mac": 1, "dst_mac": 2})  # fmt: skip
        base = int.from_bytes(bytes(l4(kind, bytes(2)))[36 if kind == "tcp" else 26 :][:2], "big")
        for word in {0, 1, 2, 0xFFFF, 0x8000, *(base + d & 0xFFFF for d in range(-3, 4)), *range(5, 0x10000, 977)}:
            ((_, out),) = of(source, l4(kind, word.to_bytes(2, "big")))
            got = [data for port, data in sink.process(out, LEFT) if port == HOST]
            assert [d[14:] for d in got] == [bytes(l4(kind, word.to_bytes(2, "big"), ttl=62))], (kind, word)


def test_a_discarded_packet(compiled: Compile, executor: str) -> None:
    """The D flag: reported, then dropped."""
    node = Node(compiled(), executor)
    body = shim(1, 0, 5, 0) + md_header(NODE_AND_PORTS, 2, 7, d=1) + words(1, 2)
    assert [port for port, _ in node.send(l4("udp", body, dscp=DSCP, back=True), RIGHT)] == [COLLECTOR_PORT]
    assert node.counted() == {"sunk": 1, "discarded": 1, "reports": 1}
    # A source sets it for flows of probes.
    node = Node(compiled(), executor, watches=[watch(discard=True)])
    ((_, out),) = of(node, l4("udp", b""))
    assert out[14 + 28 + 4] == 0x28


@pytest.mark.parametrize("length", [0, 1, 2, 10])
def test_the_sink_takes_out_what_it_does_not_know(compiled: Compile, executor: str, length: int) -> None:
    """A type without a format yet, and another version: nothing is reported."""
    node = Node(compiled(), executor)
    body = shim(2, 0, length, 0x2E << 2) + bytes(range(4 * length)) + b"payload"
    assert node.send(l4("udp", body, dscp=DSCP, back=True), RIGHT) == [
        frame_out(l4("udp", b"payload", dscp=0x2E, back=True, ttl=63), HOST)
    ]
    body = shim(1, 0, 3, 0x2E << 2) + md_header(NODE_AND_PORTS, 2, 7, version=3) + b"payload"
    assert node.send(l4("udp", body, dscp=DSCP, back=True), RIGHT) == [
        frame_out(l4("udp", b"payload", dscp=0x2E, back=True, ttl=63), HOST)
    ]


def test_domain_ids(compiled: Compile) -> None:
    node = Node(compiled(), watches=[watch()])
    ((_, out),) = of(node, l4("udp", b""))
    assert out[14 + 28 + 4 + 6 :][:2] == DOMAIN_ID.to_bytes(2, "big")
