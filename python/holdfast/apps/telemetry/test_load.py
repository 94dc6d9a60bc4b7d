"""The load of an output port, byte by byte, and HPCC, which reads it from the network."""

from __future__ import annotations

import struct

import pytest
from scapy.layers.inet import TCP

from holdfast import SimulatedNetwork, TcpTransfer
from holdfast.apps.telemetry import TelemetryController, compile_telemetry
from holdfast.apps.telemetry.conftest import (
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
    words,
)
from holdfast.apps.telemetry.program import LOAD_DOMAIN, LOAD_RATES_BPS, rate_code
from holdfast.errors import HoldfastError, NetworkError
from holdfast.topology import Topology
from holdfast.traffic import TcpOptions

LOAD = 0x8000
GAP = 24
ONES = words(0xFFFFFFFF)


def load_word(rate: int, time_us: int, sent_bytes: int, queue_bytes: int) -> bytes:
    """Return the 8 bytes that a node with these values adds for the load instruction.

    Widths in bits: rate 4, time 24, transmitted 20 (in units of 128 bytes), queue 16 (in units of 64 bytes).
    """
    fields = (rate << 60, (time_us & 0xFFFFFF) << 36, (sent_bytes >> 7 & 0xFFFFF) << 16, queue_bytes >> 6)
    return struct.pack(">Q", sum(fields))


@pytest.fixture
def node(compiled: Compile, executor: str) -> Node:
    return Node(compiled(transit_only=True, load=True), executor, transit=True, load=True)


def header(
    remaining: int, flags: int, *, instructions: int = 0, ml: int = 2, ds: int = LOAD, domain: int = LOAD_DOMAIN
) -> bytes:
    return md_header(instructions, ml, remaining, domain=domain, ds_instructions=ds, ds_flags=flags)


def test_the_load_and_the_path(node: Node, kind: str, v6: bool) -> None:
    """Scapy computes the checksums of what is expected: those of the node are right for all that it changed."""
    old = bytes(range(8))
    expected_length = len(bytes(int_packet(kind, header(8, 0), old, v6=v6))) + 14 + 8
    path = 0xBEEF
    for number in (1, 2):
        sent = number * (expected_length + GAP)
        got = node.send(int_packet(kind, header(8, path), old, v6=v6), LEFT, NOW_US)
        stack = load_word(3, NOW_US, sent, 0) + old
        expected = int_packet(kind, header(7, path ^ NODE_ID & 0xFFFF), stack, v6=v6, ttl=63)
        assert got == [frame_out(expected, RIGHT)]


def test_all_that_leaves_the_port_counts_and_the_counter_wraps(node: Node) -> None:
    plain = l4("udp", b"x" * 1400)
    each = len(bytes(plain)) + 14 + GAP
    for _ in range(300):
        node.send(plain, LEFT)
    ((_, out),) = node.send(int_packet("tcp", header(8, 0), b""), LEFT)
    (word,) = struct.unpack(">Q", out[14 + 20 + 20 + 16 :][:8])
    assert word >> 16 & 0xFFFFF == 300 * each + len(out) + GAP >> 7
    node.client.write_register("TelemetryEgress.sent_bytes", RIGHT, (1 << 27) - 1)
    ((_, out),) = node.send(int_packet("tcp", header(8, 0), b""), LEFT)
    (word,) = struct.unpack(">Q", out[14 + 20 + 20 + 16 :][:8])
    assert word >> 16 & 0xFFFFF == len(out) + GAP - 1 >> 7


def test_beside_other_instructions(node: Node) -> None:
    """Baseline metadata first, then the load, then the complement."""
    before = len(bytes(int_packet("tcp", header(8, 0, instructions=0x8000, ml=3), b""))) + 14 + 12
    got = node.send(int_packet("tcp", header(8, 0, instructions=0x8000, ml=3), b""), LEFT)
    stack = words(NODE_ID) + load_word(3, 0, before + GAP, 0)
    expected = int_packet("tcp", header(7, NODE_ID & 0xFFFF, instructions=0x8000, ml=3), stack, ttl=63)
    assert got == [frame_out(expected, RIGHT)]
    # With the complement the checksum stays: so it is right for what is there.
    ((_, out),) = node.send(int_packet("tcp", header(8, 0, instructions=1, ml=3), b""), LEFT)
    received = type(expected)(out[14:])
    checksum = received[TCP].chksum
    del received[TCP].chksum
    assert type(expected)(bytes(received))[TCP].chksum == checksum


@pytest.mark.parametrize(
    ("domain", "ds", "instructions", "ml"),
    [(1, LOAD, 0, 2), (LOAD_DOMAIN, 0x4000, 0, 2), (LOAD_DOMAIN, 0xC000, 0, 3), (LOAD_DOMAIN, LOAD, 0x0040, 3)],
    ids=["another domain", "another instruction", "one more", "a reserved one"],
)
def test_what_is_not_known_is_ones_and_no_path(node: Node, domain: int, ds: int, instructions: int, ml: int) -> None:
    fields = {"instructions": instructions, "ml": ml, "ds": ds, "domain": domain}
    got = node.send(int_packet("tcp", header(8, 5, **fields), b""), LEFT)
    expected = int_packet("tcp", header(7, 5, **fields), ONES * ml, ttl=63)
    assert got == [frame_out(expected, RIGHT)]


def test_an_echo_passes_as_it_is(node: Node) -> None:
    sent = int_packet("tcp", header(6, 3), bytes(range(16)), int_type=2)
    expected = int_packet("tcp", header(6, 3), bytes(range(16)), int_type=2, ttl=63)
    assert node.send(sent, LEFT) == [frame_out(expected, RIGHT)]


def test_rates_have_codes() -> None:
    assert [rate_code(rate) for rate in LOAD_RATES_BPS] == list(range(1, 15))
    assert rate_code(None) == 0
    with pytest.raises(NetworkError, match="a link's rate is 3,000,000 b/s; the load has codes for 10,000,000"):
        rate_code(3_000_000)
    with pytest.raises(NetworkError, match="transit_only"):
        compile_telemetry(load=True)


RATE_BPS = 100_000_000
DELAY_MS = 0.5
PACKET_MS = (1000 + 40 + 12 + 14 + 16 + 16 + GAP) * 8 / RATE_BPS * 1000
BASE_RTT_MS = 2 * 3 * DELAY_MS + 3 * PACKET_MS + 0.05


def dumbbell(senders: int) -> Topology:
    """Build a network with ``senders`` at s1 and a receiver at s2; the link between the switches is the bottleneck."""
    topology = Topology()
    for name in ("s1", "s2"):
        topology.add_switch(name, queueing={"mode": "traffic_manager"})
    topology.add_link("s1", "s2", rate_bps=RATE_BPS, delay_ms=DELAY_MS, queue_packets=1000)
    for number in range(senders):
        topology.add_host(f"h{number}")
        topology.add_link("s1", f"h{number}", rate_bps=RATE_BPS, delay_ms=DELAY_MS, queue_packets=1000)
    topology.add_host("sink")
    topology.add_link("s2", "sink", rate_bps=RATE_BPS, delay_ms=DELAY_MS, queue_packets=1000)
    return topology


HPCC = TcpOptions(
    congestion="hpcc",
    recovery="rack-tlp",
    mss=1000,
    timestamps=True,
    delayed_ack_ms=0,
    hpcc_rate_bps=RATE_BPS,
    hpcc_base_rtt_ms=BASE_RTT_MS,
)


def run(options: TcpOptions, senders: int = 4) -> tuple[list[int], int, int]:
    """Run TCP transfers through a bottleneck; return the bytes from each sender in seconds 1 to 2, and two counts.

    They are the most packets in the queue during that time, and the segments sent again.
    """
    topology = dumbbell(senders)
    controller = TelemetryController(collector=None, hosts_in_domain=True, reaction_delay_ms=1)
    network = SimulatedNetwork(topology, compile_telemetry(transit_only=True, load=True), [controller], seed=1)
    flows = [
        network.add_tcp(TcpTransfer(source=f"h{n}", destination="sink", start_s=0.1 + 0.01 * n, options=options))
        for n in range(senders)
    ]
    network.run(until_s=1)
    before = [network.tcp_statistics(flow).bytes_received for flow in flows]
    waiting = 0
    for step in range(1000):
        network.run(until_s=1 + step / 1000)
        waiting = max(waiting, *(queue.packets for queue in network.queue_statistics("s1")))
    network.run(until_s=2)
    statistics = [network.tcp_statistics(flow) for flow in flows]
    got = [after.bytes_received - earlier for after, earlier in zip(statistics, before, strict=True)]
    return got, waiting, sum(flow.segments_retransmitted for flow in statistics)


def test_hpcc_uses_the_link_and_leaves_the_queue_empty() -> None:
    """Four senders share 95 % of the bottleneck and wait for next to nothing; CUBIC fills any queue."""
    got, waiting, again = run(HPCC)
    wire_share = sum(got) / 1000 * (1000 + 20 + 20 + 12 + 14 + 16 + 16 + GAP) * 8 / RATE_BPS
    assert 0.9 < wire_share < 1.0
    assert waiting <= 8
    assert again == 0
    assert min(got) > 0.7 * max(got)
    cubic = TcpOptions(congestion="cubic", recovery="rack-tlp", mss=1000, timestamps=True, window_limit_bytes=1 << 20)
    _, waiting, _ = run(cubic)
    assert waiting > 100


def test_hpcc_over_switches_that_know_no_load_keeps_its_first_window() -> None:
    """INT headers alone do no harm."""
    topology = dumbbell(1)
    controller = TelemetryController(collector=None, hosts_in_domain=True, reaction_delay_ms=1)
    network = SimulatedNetwork(topology, compile_telemetry(transit_only=True), [controller])
    transfer = TcpTransfer(
        source="h0", destination="sink", application="transfer", transfer_bytes=500_000, start_s=0.1, options=HPCC
    )
    flow = network.add_tcp(transfer)
    network.run(until_s=1)
    statistics = network.tcp_statistics(flow)
    assert statistics.bytes_received == 500_000
    assert statistics.segments_retransmitted == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"congestion": "hpcc", "recovery": "sack"}, "the rate of HPCC must be from 1 kb/s to 1 Tb/s"),
        ({"congestion": "hpcc", "hpcc_rate_bps": 10**9}, "HPCC needs selective acknowledgments"),
        ({"congestion": "dctcp"}, "DCTCP needs ECN"),
        ({"congestion": "dctcp", "ecn": True}, "DCTCP needs an acknowledgment for each segment"),
        ({"congestion": "cubic", "hpcc_stages": 3}, 'hpcc_\\* options belong to the congestion "hpcc"'),
    ],
)
def test_options_that_make_no_sense(options: dict[str, object], message: str) -> None:
    network = SimulatedNetwork(dumbbell(1), compile_telemetry(transit_only=True), [])
    with pytest.raises(HoldfastError, match=message):
        network.add_tcp(TcpTransfer(source="h0", destination="sink", options=TcpOptions.model_validate(options)))
