"""Two edges, byte by byte: the frame of a packet with a context, and that the IP packet comes out as it went in."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_RR
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from holdfast._core import Program
from holdfast.apps.shorternet.conftest import CORE, HOST, HOST_MAC, PORT_MAC, Edge, compiled

SRC, DST, SRC_V6, DST_V6 = "10.0.1.1", "10.0.2.1", "2001:db8:1::1", "2001:db8:2::1"
EXECUTORS = ("jit", "interpreter")


def crc16(data: bytes) -> int:
    """Return the CRC-16/ARC of ``data``: polynomial 0x8005, reflected, initial value 0."""
    value = 0
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0xA001 if value & 1 else 0)
    return value


def udp(payload: int = 100, **fields: object) -> Packet:
    return (
        IP(src=SRC, dst=DST, id=4711, tos=0x2E, flags="DF", ttl=17, **fields)
        / UDP(sport=1000, dport=2000)
        / Raw(b"x" * payload)
    )


def ethernet(ip: bytes, version: int = 4) -> bytes:
    """Return an IP packet as the Ethernet frame that the edge sends to its host."""
    kind = 0x0800 if version == 4 else 0x86DD
    return bytes(Ether(src=PORT_MAC, dst=HOST_MAC, type=kind))[:14] + ip


@pytest.fixture(params=EXECUTORS)
def edges(program: Program, request: pytest.FixtureRequest) -> tuple[Edge, Edge]:
    return Edge(program, 1, request.param), Edge(program, 2, request.param)


def test_a_packet_without_a_context_travels_whole(edges: tuple[Edge, Edge]) -> None:
    near, far = edges
    packet = bytes(udp())
    ((port, frame),) = near.send(udp())
    assert (port, frame) == (CORE, bytes((2, 1, 4, 64)) + packet)
    assert far.send(frame, CORE) == [(HOST, ethernet(packet))]
    (told,) = near.digests()
    assert told["diffserv"] == 0x2E and told["ttl"] == 17 and told["flags"] == 2
    assert near.counted() == {"whole": 1}


def test_udp_over_ipv4_has_13_bytes_instead_of_42(edges: tuple[Edge, Edge]) -> None:
    near, far = edges
    near.send(udp())
    (context,) = near.learn(far, 0x1234)
    packet = bytes(udp())
    ((_, frame),) = near.send(udp())
    checked = packet[1:6] + bytes((2,)) + packet[8:10] + packet[12:20] + packet[20:24]  # flags are 3 bits and 5 zeros
    checked = packet[1:2] + packet[2:4] + packet[4:6] + bytes((0x40,)) + checked[6:]
    header = bytes((2, 1, 253, 64)) + bytes((0x12, 0x34, 0x40)) + crc16(checked).to_bytes(2, "big")
    assert frame == header + packet[4:6] + packet[26:28] + b"x" * 100
    assert len(frame) - 100 == 13
    assert far.send(frame, CORE) == [(HOST, ethernet(packet))]
    assert context.flow.profile == 1


def test_sizes_of_the_other_headers(edges: tuple[Edge, Edge]) -> None:
    near, far = edges
    payload = Raw(b"y" * 100)
    cases = (
        (IP(src=SRC, dst=DST) / TCP(sport=1, dport=2, seq=3, ack=4, flags="A") / payload, 54, 27),
        (IP(src=SRC, dst=DST) / ICMP() / payload, 34 + 8, 11 + 8),
        (IPv6(src=SRC_V6, dst=DST_V6, fl=77) / UDP(sport=1, dport=2) / payload, 62, 11),
        (IPv6(src=SRC_V6, dst=DST_V6) / TCP(sport=1, dport=2) / payload, 74, 25),
        (IPv6(src=SRC_V6, dst=DST_V6) / ICMPv6EchoRequest() / payload, 54 + 8, 9 + 8),
    )
    for number, (packet, before, after) in enumerate(cases):
        near.send(packet)
        near.learn(far, number)
        ((_, frame),) = near.send(packet)
        assert len(bytes(packet)) + 14 - 100 == before
        assert len(frame) - 100 == after, packet.summary()
        version = 6 if IPv6 in packet else 4
        assert far.send(frame, CORE) == [(HOST, ethernet(bytes(packet), version))]


@pytest.mark.parametrize("payload", [0, 1, 18, 46, 47, 48, 49])
def test_frames_that_ethernet_pads_on_either_link_come_out_right(edges: tuple[Edge, Edge], payload: int) -> None:
    near, far = edges
    packet = bytes(udp(payload))
    near.send(udp(payload))
    near.learn(far, 1)
    frame = bytes(Ether(src=HOST_MAC, dst=PORT_MAC, type=0x800))[:14] + packet
    frame += bytes(max(0, 60 - len(frame)))
    ((_, short),) = near.send(frame)
    assert len(short) == 13 + payload
    padded = short + bytes(max(0, 60 - len(short)))
    assert far.send(padded, CORE) == [(HOST, ethernet(packet))]


def never_shortened() -> list[bytes]:
    """Return frames that the edge must not shorten, because no context could restore their headers."""
    ether = bytes(Ether(src=HOST_MAC, dst=PORT_MAC, type=0x800))[:14]
    wrong_udp = bytearray(bytes(udp()))
    wrong_udp[24:26] = (99).to_bytes(2, "big")
    return [
        ether + bytes(IP(src=SRC, dst=DST, flags="MF") / UDP(sport=1, dport=2) / Raw(bytes(64))),
        ether + bytes(IP(src=SRC, dst=DST, frag=4, proto=17) / Raw(bytes(64))),
        ether + bytes(IP(src=SRC, dst=DST, options=[IPOption_RR()]) / UDP(sport=1, dport=2) / Raw(bytes(64))),
        ether + bytes(wrong_udp),
        ether + bytes(udp()) + b"trailer behind a long packet",
        ether + bytes(IP(src=SRC, dst=DST, proto=6) / Raw(b"xx")) + bytes(24),
    ]


@pytest.mark.parametrize("number", range(6))
def test_what_cannot_be_put_back_travels_whole(edges: tuple[Edge, Edge], number: int) -> None:
    near, far = edges
    frame = never_shortened()[number]
    assert near.send(frame) == [(CORE, bytes((2, 1, 4, 64)) + frame[14:])]
    assert near.digests() == []
    assert far.send(bytes((2, 1, 4, 64)) + frame[14:], CORE) == [(HOST, ethernet(frame[14:]))]


def test_another_value_in_a_field_of_the_context_is_another_flow(edges: tuple[Edge, Edge]) -> None:
    near, far = edges
    near.send(udp())
    near.learn(far, 1)
    for changed in (
        IP(src=SRC, dst=DST, tos=0x2F, flags="DF", ttl=17),
        IP(src=SRC, dst=DST, tos=0x2E, flags="DF", ttl=16),
        IP(src=SRC, dst=DST, tos=0x2E, ttl=17),
        IP(src="10.0.1.2", dst=DST, tos=0x2E, flags="DF", ttl=17),
    ):
        packet = changed / UDP(sport=1000, dport=2000) / Raw(bytes(100))
        ((_, frame),) = near.send(packet)
        assert frame[2] == 4 and frame[4:] == bytes(packet)
        assert len(near.digests()) == 1


def test_a_context_that_is_lost_or_another_drops_and_tells(edges: tuple[Edge, Edge]) -> None:
    near, far = edges
    near.send(udp())
    (context,) = near.learn(far, 7)
    ((_, frame),) = near.send(udp())
    entry = context.context_entry()
    entry.write(far.client, "delete")
    assert far.send(frame, CORE) == []
    assert far.counted() == {"no_context": 1}
    assert far.digests() == [{"station": 1, "protocol": 253, "id": 7}]
    for name, value in (("dst_addr", 0x0A000202), ("ttl", 18), ("src_port", 1001), ("diffserv", 0), ("flags", 0)):
        wrong = type(entry)(entry.table, entry.match, entry.action, {**entry.params, name: value})
        wrong.insert(far.client)
        assert far.send(frame, CORE) == []
        assert far.digests() == [{"station": 1, "protocol": 253, "id": 7}]
        wrong.delete(far.client)
    assert far.counted() == {"no_context": 1, "wrong_context": 5}


def test_frames_for_others_pass_untouched_but_for_ttl(edges: tuple[Edge, Edge]) -> None:
    near, _ = edges
    for protocol, rest in ((17, b"abc"), (253, b""), (4, b"\x99"), (254, bytes(20))):
        assert near.send(bytes((9, 8, protocol, 5)) + rest, CORE) == [(CORE, bytes((9, 8, protocol, 4)) + rest)]
    assert near.send(bytes((9, 8, 17, 1)), CORE) == near.send(bytes((9, 8, 17, 0)), CORE) == []
    assert near.send(bytes((77, 8, 17, 9)), CORE) == []
    assert near.send(b"\x01\x02\x03", CORE) == []
    assert near.counted() == {"ttl_expired": 2, "no_station": 1, "malformed": 1}


@pytest.mark.parametrize(
    ("frame", "counter"),
    [
        (bytes((1, 2, 17, 9)) + bytes(40), "unknown_protocol"),
        (bytes((1, 2, 253, 9, 0, 0)), "malformed"),
        (bytes((1, 2, 253, 9, 0, 0, 0x40, 0, 0, 0, 0)), "malformed"),
        (bytes((1, 2, 254, 9, 0, 0, 0x7F, 0, 0, 0, 0)), "wrong_length"),
        (bytes((1, 2, 4, 9)) + bytes(udp())[:19], "malformed"),
        (bytes((1, 2, 4, 9)) + bytes(udp()), "no_host"),
        (bytes((1, 2, 6, 9)), "unknown_protocol"),
    ],
)
def test_what_an_edge_cannot_take_is_counted(edges: tuple[Edge, Edge], frame: bytes, counter: str) -> None:
    near, _ = edges
    assert near.send(frame, CORE) == []
    assert near.counted() == {counter: 1}


def test_the_controller_is_told_of_so_many_flows(edges: tuple[Edge, Edge]) -> None:
    near, _ = edges
    near.client.configure_meter("learning", 0, (10, 10, 10, 10))
    for port in range(100):
        near.send(IP(src=SRC, dst=DST) / UDP(sport=port, dport=1) / Raw(bytes(60)))
    assert 1 <= len(near.digests()) <= 20


@st.composite
def packets(draw: st.DrawFn) -> bytes:
    """Draw an IP packet of one of a few flows, valid or not."""
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    if rng.random() < 0.7:
        head = IP(
            src=SRC,
            dst=DST,
            tos=rng.choice((0, 3)),
            ttl=rng.choice((1, 64)),
            flags=rng.choice(("", "DF", "MF")),
            id=rng.randrange(1 << 16),
            frag=rng.choice((0, 0, 0, 3)),
        )
    else:
        head = IPv6(src=SRC_V6, dst=DST_V6, fl=rng.choice((0, 5)), hlim=rng.choice((1, 64)))
    body = rng.choice(
        (UDP(sport=1, dport=2), TCP(sport=1, dport=2, seq=rng.randrange(1 << 32)), ICMP(seq=rng.randrange(9)))
    )
    packet = bytearray(bytes(head / body / Raw(rng.randbytes(rng.choice((0, 1, 5, 30, 200))))))
    if rng.random() < 0.3:  # not the IP header's, whose checksum would be wrong
        place = rng.randrange(40 if packet[0] >> 4 == 6 else 20, len(packet))
        packet[place] = rng.randrange(256)
    return bytes(packet)


@settings(max_examples=30, deadline=None)
@given(st.lists(packets(), min_size=1, max_size=60), st.booleans())
def test_random_packets_come_out_as_they_went_in(sent: list[bytes], padded: bool) -> None:
    near, far = Edge(compiled(), 1), Edge(compiled(), 2)
    number = 0
    for packet in sent:
        version = packet[0] >> 4
        frame = bytes(Ether(src=HOST_MAC, dst=PORT_MAC, type=0x800 if version == 4 else 0x86DD))[:14] + packet
        if padded:
            frame += bytes(max(0, 60 - len(frame)))
        ((_, short),) = near.send(frame)
        if padded:
            short += bytes(max(0, 60 - len(short)))
        ((port, out),) = far.send(short, CORE)
        assert port == HOST
        assert out[: 14 + len(packet)] == ethernet(packet, version)
        assert not any(out[14 + len(packet) :])
        number += len(near.learn(far, number))
    assert far.counted() == {}


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=80), st.sampled_from((4, 41, 253, 254)))
def test_random_bytes_are_dropped_or_delivered_and_executors_agree(data: bytes, protocol: int) -> None:
    frame = bytes((2, 1, protocol, 9)) + data
    results = []
    for executor in EXECUTORS:
        far = Edge(compiled(), 2, executor)
        results.append((far.send(frame, CORE), far.counted()))
    assert results[0] == results[1]
    assert len(results[0][0]) + sum(results[0][1].values()) == 1
