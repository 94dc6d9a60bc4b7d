"""Attacks: spoofed addresses, floods of new flows at the table's size, fragments, cut headers, forged segments."""

from __future__ import annotations

import random
from typing import Any

import pytest

from holdfast._core import Program
from holdfast.apps.firewall.program import DISPLACED, YIELDED, Variant
from holdfast.apps.firewall.rules import RuleSet
from holdfast.apps.firewall.tests import packets as make

INSIDE, OUTSIDE = 1, 2
CELLS = 4 << 8
HOST, PEER = "10.0.1.1", "203.0.113.9"


def rules(**changes: Any) -> RuleSet:
    return RuleSet.model_validate(
        {
            "zones": {"inside": {}, "outside": {}},
            "ports": [{"port": INSIDE, "zone": "inside"}, {"port": OUTSIDE, "zone": "outside", "senders": "mac"}],
            "bindings": [
                {"port": INSIDE, "mac": "02:00:00:00:00:01", "addresses": [HOST, "2001:db8:1::1"]},
                {"port": OUTSIDE, "mac": "02:00:00:00:00:02"},
            ],
            "new_flows_per_source": {"per_s": 10**9, "burst": 10**9},
            "rules": [{"name": "all", "action": "allow"}],
            **changes,
        }
    )


@pytest.fixture
def bridge(standalone: Any, programs: dict[Variant, Program], executor: str) -> Any:
    return standalone(programs["bridged"], rules(), executor)


def from_host(payload: bytes, protocol: int = make.TCP, **fields: Any) -> bytes:
    return make.ethernet(make.mac(2), make.mac(1), 0x0800, make.ipv4(HOST, PEER, protocol, payload, **fields))


def from_peer(payload: bytes, protocol: int = make.TCP, src: str = PEER) -> bytes:
    return make.ethernet(make.mac(1), make.mac(2), 0x0800, make.ipv4(src, HOST, protocol, payload))


def established(bridge: Any, port: int) -> None:
    """Open a TCP connection from ``port`` of the host inside, through the firewall."""
    for sender, segment in (
        (INSIDE, make.tcp(port, 80, make.SYN, seq=99)),
        (OUTSIDE, make.tcp(80, port, make.SYN | make.ACK, seq=999, ack=100)),
        (INSIDE, make.tcp(port, 80, make.ACK, seq=100, ack=1000)),
    ):
        assert bridge.receive(sender, from_host(segment) if sender == INSIDE else from_peer(segment))


def data(port: int) -> bytes:
    return from_host(make.tcp(port, 80, make.ACK, seq=100, ack=1000, payload=b"x"))


def test_spoofed_senders_are_dropped(bridge: Any) -> None:
    """The thesis's injection tests (section 3.4): known MAC addresses from elsewhere, and stations that nobody knows."""
    good = make.udp(1, 2)
    assert bridge.reason(INSIDE, from_host(good, make.UDP)) == "passes"
    assert bridge.reason(OUTSIDE, from_host(good, make.UDP)) == "spoofed_mac"
    assert bridge.reason(7, from_host(good, make.UDP)) == "unknown_port"
    unknown = make.ethernet(make.mac(2), make.mac(4), 0x0800, make.ipv4(HOST, PEER, 17, good))
    assert bridge.reason(INSIDE, unknown) == "spoofed_mac"
    other = make.ethernet(make.mac(2), make.mac(1), 0x0800, make.ipv4("10.0.1.2", PEER, 17, good))
    assert bridge.reason(INSIDE, other) == "spoofed_address"
    v6 = make.ethernet(make.mac(2), make.mac(1), 0x86DD, make.ipv6("2001:db8:1::2", "2001:db8:9::1", 17, good))
    assert bridge.reason(INSIDE, v6) == "spoofed_address"
    mapped = make.ethernet(make.mac(2), make.mac(1), 0x86DD, make.ipv6(f"::ffff:{HOST}", "2001:db8:9::1", 17, good))
    assert bridge.reason(INSIDE, mapped) == "bogus_address"
    to_nobody = make.ethernet(make.mac(4), make.mac(1), 0x0800, make.ipv4(HOST, PEER, 17, good))
    assert bridge.reason(INSIDE, to_nobody) == "no_route"
    lie = make.ethernet(b"\xff" * 6, make.mac(1), 0x0806, make.arp(2, make.mac(1), "10.0.1.9", HOST))
    assert bridge.reason(INSIDE, lie) == "spoofed_address"
    claims = make.neighbour(136, "2001:db8:1::9")
    advertised = make.ipv6("2001:db8:1::1", "ff02::1", 58, claims, hop_limit=255)
    assert (
        bridge.reason(INSIDE, make.ethernet(b"\x33\x33\0\0\0\1", make.mac(1), 0x86DD, advertised)) == "spoofed_address"
    )
    router = make.ipv6("2001:db8:1::1", "ff02::1", 58, make.icmp(134, payload=bytes(8)), hop_limit=255)
    assert bridge.reason(INSIDE, make.ethernet(b"\x33\x33\0\0\0\1", make.mac(1), 0x86DD, router)) == "rogue_server"
    server = make.ipv4(HOST, "255.255.255.255", 17, make.udp(67, 68, bytes(300)))
    assert bridge.reason(INSIDE, make.ethernet(b"\xff" * 6, make.mac(1), 0x0800, server)) == "rogue_server"


def test_nothing_hides_in_fragments_options_and_cut_headers(bridge: Any) -> None:
    segment = make.tcp(5, 80, make.SYN)
    assert bridge.reason(INSIDE, from_host(segment, flags=1)) == "fragment"
    assert bridge.reason(INSIDE, from_host(segment[8:], flags=0, offset=1)) == "fragment"
    for options in (b"\x01\x01\x01\x00", b"\x83\x07\x04\x0a\0\0\1\0", bytes((0x94, 4, 0, 0))):
        assert bridge.reason(INSIDE, from_host(segment, options=options)) == "ip_options"
    whole = from_host(make.tcp(5, 80, make.SYN, options=make.window_scale(7) + bytes(4)))
    for length in range(14, 66):
        assert bridge.reason(INSIDE, whole[:length]) == "truncated", length
    for length in range(14):
        assert bridge.reason(INSIDE, whole[:length]) == "truncated", length
    assert bridge.reason(INSIDE, from_host(segment, total_len=39)) == "malformed"
    assert bridge.reason(INSIDE, from_host(make.tcp(5, 80, make.SYN, data_offset=4))) == "malformed"
    assert bridge.reason(INSIDE, from_host(make.tcp(5, 80, make.SYN, options=b"\x05\x01\0\0"))) == "malformed"
    for next_header, reason in (
        (0, "extension_header"),
        (60, "extension_header"),
        (43, "extension_header"),
        (44, "fragment"),
    ):
        packet = make.ipv6("2001:db8:1::1", "2001:db8:9::1", next_header, bytes((6, 0, 0, 0, 0, 0, 0, 0)) + segment)
        assert bridge.reason(INSIDE, make.ethernet(make.mac(2), make.mac(1), 0x86DD, packet)) == reason


def test_forged_segments_do_not_get_into_a_connection(bridge: Any) -> None:
    established(bridge, 5000)
    rng = random.Random(4)
    for _ in range(100):
        far = rng.randrange(70_000, 2**32 - 140_000)
        assert bridge.reason(OUTSIDE, from_peer(make.tcp(80, 5000, make.RST, seq=1000 + far))) == "tcp_reset"
        assert bridge.reason(OUTSIDE, from_peer(make.tcp(80, 5000, make.ACK, seq=1000 + far, ack=100))) == "tcp_window"
        assert bridge.reason(OUTSIDE, from_peer(make.tcp(80, 5000, make.ACK, seq=1000, ack=100 + far))) == "tcp_window"
    # A first segment passes if the rules let its sender begin; nobody answers it, so it changes nothing.
    assert bridge.reason(OUTSIDE, from_peer(make.tcp(80, 5000, make.SYN, seq=7))) == "passes"
    assert (
        bridge.reason(OUTSIDE, from_peer(make.tcp(80, 5000, make.SYN | make.FIN | make.ACK, seq=1000, ack=100)))
        == "tcp_flags"
    )
    quoted = make.ipv4(HOST, PEER, 6, make.tcp(5000, 80, make.ACK, seq=77_777))
    assert bridge.reason(OUTSIDE, from_peer(make.icmp(3, 1, payload=quoted[:28]), make.ICMP)) == "icmp_unrelated"
    assert bridge.reason(INSIDE, data(5000)) == "passes"


def test_a_reset_ends_a_connection_only_if_the_receiver_believes_it(bridge: Any) -> None:
    established(bridge, 5000)
    assert bridge.reason(OUTSIDE, from_peer(make.tcp(80, 5000, make.RST, seq=1000))) == "passes"
    # The host answers a reset that it does not believe, and the connection goes on for its whole time.
    assert bridge.reason(INSIDE, data(5000)) == "passes"
    bridge.elapse(20_000_000)
    assert bridge.reason(INSIDE, data(5000)) == "passes"
    assert bridge.reason(OUTSIDE, from_peer(make.tcp(80, 5000, make.RST, seq=1000))) == "passes"
    bridge.elapse(10_000_001)
    assert bridge.reason(INSIDE, data(5000)) == "tcp_no_state"


def test_a_flood_of_new_flows_harms_no_established_one(bridge: Any) -> None:
    """More first segments than the table has cells: half-open flows displace each other, and connections go on."""
    ports = range(10_000, 10_200)
    for port in ports:
        established(bridge, port)
    rng = random.Random(1)
    passed = 0
    for _ in range(3 * CELLS):
        src = f"198.51.{rng.randrange(256)}.{rng.randrange(1, 255)}"
        segment = make.tcp(rng.randrange(65536), rng.randrange(65536), make.SYN, seq=rng.getrandbits(32))
        passed += bool(bridge.receive(OUTSIDE, from_peer(segment, src=src)))
    assert passed > 2.9 * CELLS
    assert bridge.client.counter(DISPLACED, 0)[0] > CELLS
    assert all(bridge.receive(INSIDE, data(port)) for port in ports)
    # And somebody new gets in, because the flood gives way.
    established(bridge, 30_000)


def test_a_full_table_of_one_source_refuses_its_new_flows(bridge: Any) -> None:
    """Assured flows keep their cells; a flow of the same source that finds none is refused, and comes in when one is over."""
    alive, refused = [], 0
    for port in range(1024, 1024 + 2 * CELLS):
        if bridge.receive(INSIDE, from_host(make.tcp(port, 80, make.SYN, seq=99))):
            answer = make.tcp(80, port, make.SYN | make.ACK, seq=999, ack=100)
            assert bridge.receive(OUTSIDE, from_peer(answer))
            assert bridge.receive(INSIDE, from_host(make.tcp(port, 80, make.ACK, seq=100, ack=1000)))
            alive.append(port)
        else:
            refused += 1
    assert bridge.drops() == {"table_full": refused}
    assert 0.95 * CELLS < len(alive) <= CELLS
    assert all(bridge.receive(INSIDE, data(port)) for port in alive)
    bridge.elapse(7_440_000_001)
    established(bridge, 60_000)


def assure(bridge: Any, sender: int, source: str, destination: str, port: int) -> bool:
    """Begin a UDP flow from ``sender``.

    Return True if the firewall passes its first packet, after the other end's answer passed too.
    """
    version = 6 if ":" in source else 4
    wrap, ether_type = (make.ipv6, 0x86DD) if version == 6 else (make.ipv4, 0x0800)
    macs = (make.mac(2), make.mac(1)) if sender == INSIDE else (make.mac(1), make.mac(2))
    query = make.ethernet(*macs, ether_type, wrap(source, destination, make.UDP, make.udp(port, 53)))
    answer = make.ethernet(*macs[::-1], ether_type, wrap(destination, source, make.UDP, make.udp(53, port)))
    if not bridge.receive(sender, query):
        return False
    assert bridge.receive(INSIDE + OUTSIDE - sender, answer), "what began is answered"
    return True


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("greedy", [INSIDE, OUTSIDE])
def test_a_source_with_all_cells_keeps_nobody_out(bridge: Any, greedy: int, family: int) -> None:
    """A source whose flows are all answered fills the table; others begin flows all the same, at the cost of its flows alone."""
    host, peer = (HOST, PEER) if family == 4 else ("2001:db8:1::1", "2001:db8:9::9")
    rng = random.Random(1)
    modest = [f"198.51.100.{number}" for number in range(1, 101)]
    early = [(source, 2000 + number) for number, source in enumerate(modest)]
    assert all(assure(bridge, OUTSIDE, source, HOST, port) for source, port in early)
    for number in range(3 * CELLS):
        # An IPv6 host may have all addresses of its network.
        source, destination = (host, peer) if greedy == INSIDE else (peer, host)
        if family == 6 and greedy == OUTSIDE:
            source = f"2001:db8:9:0:{rng.getrandbits(16):x}::{number + 1:x}"
        assure(bridge, greedy, source, destination, 1024 + number)
    assert bridge.drops()["table_full"] > CELLS
    assert bridge.client.counter(YIELDED, 0)[0] == 0, "a source takes nothing from those with fewer flows"
    late = [(f"192.0.2.{number}", 3000 + number) for number in range(1, 201)]
    began = [assure(bridge, OUTSIDE, source, HOST, port) for source, port in late]
    assert sum(began) >= 0.97 * len(late)
    assert bridge.client.counter(YIELDED, 0)[0] >= 0.8 * sum(began), "few cells were free"
    for source, port in early:
        assert bridge.receive(OUTSIDE, from_peer(make.udp(port, 53), make.UDP, src=source))
        assert bridge.receive(
            INSIDE,
            make.ethernet(make.mac(2), make.mac(1), 0x0800, make.ipv4(HOST, source, make.UDP, make.udp(53, port))),
        )


def test_a_source_begins_so_many_flows_and_no_more(
    standalone: Any, programs: dict[Variant, Program], executor: str
) -> None:
    limited = rules(new_flows_per_source={"per_s": 10, "burst": 20})
    bridge = standalone(programs["bridged"], limited, executor)
    reasons = [bridge.reason(INSIDE, from_host(make.udp(port, 53), make.UDP)) for port in range(1000, 1030)]
    assert reasons == 20 * ["passes"] + 10 * ["flow_rate"]
    assert bridge.reason(INSIDE, from_host(make.udp(1000, 53), make.UDP)) == "passes", "a flow that has begun goes on"
    assert bridge.reason(OUTSIDE, from_peer(make.udp(9, 9), make.UDP)) == "passes", "another source"
    bridge.elapse(100_000)
    assert bridge.reason(INSIDE, from_host(make.udp(2000, 53), make.UDP)) == "passes"


def test_the_log_is_sampled_by_reason(standalone: Any, programs: dict[Variant, Program]) -> None:
    bridge = standalone(programs["bridged"], rules(log_per_reason={"per_s": 1, "burst": 3}))
    for port in range(10):
        assert bridge.reason(OUTSIDE, from_host(make.udp(port, 53), make.UDP)) == "spoofed_mac"
    assert bridge.reason(INSIDE, from_host(make.udp(7, 53), make.UDP, flags=1)) == "fragment"
    bridge.collect_log()
    log = [(entry.reason, entry.port, entry.src_port) for entry in bridge.controller.log]
    assert log == [("spoofed_mac", 2, 0), ("spoofed_mac", 2, 1), ("spoofed_mac", 2, 2), ("fragment", 1, 0)]
    assert bridge.controller.log[0].src_addr == 0xFFFF0A000101
