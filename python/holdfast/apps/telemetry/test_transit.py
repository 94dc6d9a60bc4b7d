"""A transit node of INT-MD, byte by byte from the specification: each instruction, flag and limit."""

from __future__ import annotations

import struct

import pytest
from scapy.layers.inet import TCP, UDP
from scapy.packet import Packet

from holdfast.apps.telemetry.conftest import (
    DOMAIN_ID,
    DSCP,
    LEFT,
    NODE_ID,
    NOW_US,
    RIGHT,
    Compile,
    Node,
    frame_out,
    int_packet,
    l4,
    md_header,
    shim,
    words,
)

OLD_HOP = words(0xA, 0xB)

VALUES = {
    0: words(NODE_ID),
    1: words(LEFT << 16 | RIGHT),
    2: words(0),
    3: words(0),
    4: struct.pack(">Q", NOW_US),
    5: struct.pack(">Q", NOW_US),
    6: words(0x10000 + LEFT, 0x10000 + RIGHT),
    7: words(0),
    8: words(0xFFFFFFFF),
    **{bit: words(0xFFFFFFFF) for bit in range(9, 15)},
}
"""The node's answer to each bit but 15, on an idle link."""


@pytest.fixture(params=[False, True], ids=["full", "transit only"])
def node(request: pytest.FixtureRequest, compiled: Compile, executor: str) -> Node:
    return make(compiled, executor, transit=request.param)


def make(compiled: Compile, executor: str = "jit", *, transit: bool = True, **more: object) -> Node:
    return Node(compiled(transit_only=transit), executor, transit=transit, **more)  # type: ignore[arg-type]


def bit(number: int) -> int:
    return 1 << 15 - number


def expect(node: Node, sent: Packet, expected: Packet) -> None:
    assert node.send(sent, LEFT, NOW_US) == [frame_out(expected, RIGHT)]


def transit_value(number: int, node: Node) -> bytes:
    """Return the words that a node adds for an instruction; a program for transit only adds all ones (unknown) for utilisation."""
    known = {c.preamble.name for c in node.client.p4info.message.counters}
    if number == 7 and "TelemetryEgress.discarded" not in known:
        return words(0xFFFFFFFF)
    return VALUES[number]


@pytest.mark.parametrize("number", range(15))
def test_an_instruction(node: Node, number: int, v6: bool, kind: str) -> None:
    value = transit_value(number, node)
    ml = len(value) // 4
    old = bytes(range(4 * ml))
    sent = int_packet(kind, md_header(bit(number), ml, 8), old, v6=v6)
    expect(node, sent, int_packet(kind, md_header(bit(number), ml, 7), value + old, v6=v6, ttl=63))


def test_all_instructions_in_their_order(node: Node) -> None:
    """But for the complement, which follows everything."""
    bits = 0xFFFE
    value = b"".join(transit_value(number, node) for number in range(15))
    ml = len(value) // 4
    assert ml == 18
    sent = int_packet("tcp", md_header(bits, ml, 3), b"")
    expect(node, sent, int_packet("tcp", md_header(bits, ml, 2), value, ttl=63))


def ones_complement_sum(data: bytes) -> int:
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total >> 16) + (total & 0xFFFF)
    return total


def test_the_complement_leaves_the_checksum_as_it_was(node: Node, kind: str, v6: bool) -> None:
    header = 0x8001
    sent = int_packet(kind, md_header(header, 2, 8), words(1, 0), v6=v6)
    sent = type(sent)(bytes(sent))
    layer = TCP if kind == "tcp" else UDP
    before = sent[layer].chksum
    ((port, out),) = node.send(sent, LEFT, NOW_US)
    assert port == RIGHT
    received = type(sent)(out[14:])
    assert received[layer].chksum == before
    # It is right: scapy computes the same.
    again = received.copy()
    del again[layer].chksum
    assert type(sent)(bytes(again))[layer].chksum == before
    payload = bytes(received[layer].payload)
    node_id, complement = struct.unpack(">II", payload[16:24])
    assert node_id == NODE_ID
    assert complement >> 16 == 0


def test_a_complement_is_not_mistaken_for_the_reserved_value(node: Node) -> None:
    """A sum that needs no complement gets zero: only the reserved value is all ones."""
    sent = int_packet("tcp", md_header(0x8001, 2, 8), words(1, 0))
    changed = words(NODE_ID)
    # The fields that the node changes: node id, length of the shim, remaining hops, length of the packet.
    ((_, out),) = node.send(sent, LEFT, NOW_US)
    complement = struct.unpack(">I", out[14 + 20 + 20 + 16 + 4 :][:4])[0]
    total = ones_complement_sum(changed + words(2 << 16) + words(0xFFFFFFFE) + words(8) + words(complement))
    assert total in (0, 0xFFFF)


def test_without_a_checksum_the_complement_is_reserved(node: Node) -> None:
    sent = int_packet("udp", md_header(0x8001, 2, 8), b"", chksum=0)
    expected = int_packet("udp", md_header(0x8001, 2, 7), words(NODE_ID, 0xFFFFFFFF), ttl=63, chksum=0)
    expect(node, sent, expected)


def test_a_udp_checksum_of_zero_stays(node: Node, v6: bool) -> None:
    sent = int_packet("udp", md_header(bit(0), 1, 8), b"", v6=v6, chksum=0)
    expect(node, sent, int_packet("udp", md_header(bit(0), 1, 7), words(NODE_ID), v6=v6, ttl=63, chksum=0))


def test_a_checksum_of_zero(node: Node, kind: str) -> None:
    """The stack is chosen so that the sum is all ones: TCP sends zero, UDP ones (RFC 768)."""
    layer = TCP if kind == "tcp" else UDP

    def checksum(word: int) -> int:
        expected = int_packet(kind, md_header(bit(0), 1, 7), words(NODE_ID, word), ttl=63)
        return int(type(expected)(bytes(expected))[layer].chksum)

    word = checksum(0)  # one more in the stack is one less in the checksum
    assert checksum(word) == (0 if kind == "tcp" else 0xFFFF)
    expect(
        node,
        int_packet(kind, md_header(bit(0), 1, 8), words(word)),
        int_packet(kind, md_header(bit(0), 1, 7), words(NODE_ID, word), ttl=63),
    )


@pytest.mark.parametrize("e", [0, 1])
def test_no_hops_remain(node: Node, kind: str, e: int) -> None:
    """E is set, nothing is pushed, and the count stays."""
    sent = int_packet(kind, md_header(bit(0), 1, 0, e=e), OLD_HOP)
    expect(node, sent, int_packet(kind, md_header(bit(0), 1, 0, e=1), OLD_HOP, ttl=63))
    assert node.counted() == {"hops_exceeded": 1}


def test_the_last_hop(node: Node) -> None:
    sent = int_packet("tcp", md_header(bit(0), 1, 1), b"")
    expect(node, sent, int_packet("tcp", md_header(bit(0), 1, 0), words(NODE_ID), ttl=63))


@pytest.mark.parametrize("m", [0, 1])
@pytest.mark.parametrize("transit", [False, True])
def test_no_room_on_the_link(compiled: Compile, executor: str, kind: str, m: int, transit: bool) -> None:
    """M is set, and neither metadata nor count change; with one byte more of MTU the metadata fits."""
    sent = int_packet(kind, md_header(bit(0) | bit(4), 3, 8, m=m), OLD_HOP)
    grown = len(bytes(sent)) + 12
    node = make(compiled, executor, transit=transit, mtu=grown - 1)
    expect(node, sent, int_packet(kind, md_header(bit(0) | bit(4), 3, 8, m=1), OLD_HOP, ttl=63))
    assert node.counted() == {"mtu_exceeded": 1}
    node = make(compiled, executor, transit=transit, mtu=grown)
    hop = words(NODE_ID) + struct.pack(">Q", NOW_US)
    expect(node, sent, int_packet(kind, md_header(bit(0) | bit(4), 3, 7, m=m), hop + OLD_HOP, ttl=63))


def test_earlier_flags_stay(node: Node) -> None:
    header = {"d": 1, "e": 1, "m": 1, "ds_flags": 0x4000}
    sent = int_packet("tcp", md_header(bit(0), 1, 8, **header), b"")
    expect(node, sent, int_packet("tcp", md_header(bit(0), 1, 7, **header), words(NODE_ID), ttl=63))


@pytest.mark.parametrize("domain", [0, DOMAIN_ID, 0x5453])
def test_domain_specific_metadata_is_padded_with_ones(node: Node, domain: int) -> None:
    """Hop ML says how much of it there is; whose domain it is makes no difference, since none has instructions here."""
    header = {"domain": domain, "ds_instructions": 0xC000}
    for more in range(1, 31):
        sent = int_packet("udp", md_header(bit(0), 1 + more, 8, **header), b"")
        hop = words(NODE_ID) + b"\xff" * (4 * more)
        expect(node, sent, int_packet("udp", md_header(bit(0), 1 + more, 7, **header), hop, ttl=63))


def test_the_complement_follows_the_pad(node: Node) -> None:
    sent = int_packet("udp", md_header(0x8001, 4, 8), b"", chksum=0)
    hop = words(NODE_ID, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
    expect(node, sent, int_packet("udp", md_header(0x8001, 4, 7), hop, ttl=63, chksum=0))


def test_a_hop_length_below_what_is_asked_for(node: Node) -> None:
    """Nothing is added, and the count stays."""
    sent = int_packet("tcp", md_header(bit(4), 1, 8), OLD_HOP)
    expect(node, sent, int_packet("tcp", md_header(bit(4), 1, 8), OLD_HOP, ttl=63))
    assert node.counted() == {"not_pushed": 1}


def test_a_full_shim(node: Node) -> None:
    """Its length has 8 bits."""
    stack = bytes(4 * 251)
    sent = int_packet("tcp", md_header(bit(0), 1, 8), stack)
    expect(node, sent, int_packet("tcp", md_header(bit(0), 1, 7), words(NODE_ID) + stack, ttl=63))
    sent = int_packet("tcp", md_header(bit(0), 1, 8), bytes(4 * 252))
    expect(node, sent, int_packet("tcp", md_header(bit(0), 1, 8), bytes(4 * 252), ttl=63))
    assert node.counted() == {"not_pushed": 1}


def test_another_version_passes(node: Node) -> None:
    sent = int_packet("tcp", md_header(bit(0), 1, 8, version=1), OLD_HOP)
    expect(node, sent, int_packet("tcp", md_header(bit(0), 1, 8, version=1), OLD_HOP, ttl=63))


def test_a_destination_header_passes(node: Node) -> None:
    """Type 2 is the sink's alone."""
    body = shim(2, 0, 2, 0) + words(1, 2) + b"payload"
    expect(node, l4("udp", body, dscp=DSCP), l4("udp", body, dscp=DSCP, ttl=63))


def test_a_shim_too_short_for_its_header(node: Node) -> None:
    assert node.send(l4("tcp", shim(1, 0, 2, 0) + bytes(40), dscp=DSCP), LEFT) == []
    assert node.send(l4("tcp", shim(1, 0, 3, 0) + bytes(8), dscp=DSCP), LEFT) == []
    assert node.counted() == {"malformed": 2}


@pytest.mark.parametrize("length", [3, 200])
def test_a_shim_that_says_more_than_there_is(compiled: Compile, executor: str, length: int) -> None:
    """Where the stack is parsed it is malformed; a transit node never looks at the stack."""
    sent = l4("tcp", shim(1, 0, 60, 0) + md_header(bit(0), 1, 8) + bytes(length), dscp=DSCP)
    full = Node(compiled(), executor)
    assert full.send(sent, LEFT) == []
    assert full.counted() == {"malformed": 1}


def test_ipv4_options(node: Node) -> None:
    from scapy.layers.inet import IPOption_RR

    options = [IPOption_RR(length=11, pointer=4, routers=["0.0.0.0", "0.0.0.0"])]
    sent = int_packet("tcp", md_header(bit(0), 1, 8), b"")
    sent.options = options
    expected = int_packet("tcp", md_header(bit(0), 1, 7), words(NODE_ID), ttl=63)
    expected.options = options
    expect(node, sent, expected)


@pytest.mark.parametrize(("flags", "offset"), [("MF", 0), (0, 10)])
def test_a_fragment_is_no_int_packet(node: Node, flags: object, offset: int) -> None:
    sent = int_packet("udp", md_header(bit(0), 1, 8), b"")
    expected = int_packet("udp", md_header(bit(0), 1, 8), b"", ttl=63)
    for packet in (sent, expected):
        packet.flags, packet.frag = flags, offset
    expect(node, sent, expected)


def test_a_corrupted_checksum_stays_wrong(node: Node) -> None:
    """By as much as before: the receiver finds what happened earlier."""
    sent = int_packet("tcp", md_header(bit(0), 1, 8), b"")
    right = type(sent)(bytes(sent))
    right[TCP].chksum ^= 0x0100
    ((_, out),) = node.send(right, LEFT, NOW_US)
    received = type(sent)(out[14:])
    wrong = received[TCP].chksum
    del received[TCP].chksum
    assert type(sent)(bytes(received))[TCP].chksum != wrong
