"""One switch with ``bier.p4``, byte by byte: its output for BIER packets and for multicast from hosts, and its counts."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from holdfast.apps.bier.conftest import (
    BIFT,
    EAST,
    GROUP,
    HOST,
    OTHER_HOST,
    PLAN,
    SOURCE,
    SOUTH,
    WEST,
    Bfr,
    Compile,
    bier_frame,
    delivered_frame,
    header,
    hop,
    host_frame,
    neighbour,
    payload,
    payload_v6,
    sent_frame,
)
from holdfast.apps.bier.entries import Configuration
from holdfast.apps.bier.header import PROTO_IPV6, BierHeader
from holdfast.apps.bier.planning import Bift
from holdfast.apps.bier.program import (
    FIRST_RECIRCULATION_SESSION,
    FORWARD,
    PROGRAM_BSLS,
    REPORT_RATE,
    REPORT_RATE_EXCEEDED,
    ROUTES,
    Replication,
)

GROUP_MAC = "01:00:5e:01:02:03"
GROUP_V6, SOURCE_V6 = IPv6Address("ff3e::1"), IPv6Address("2001:db8::1")
GROUP_V6_MAC = "33:33:00:00:00:01"


@pytest.fixture
def bfr(variant: Replication, executor: str, compiled: Compile) -> Bfr:
    return Bfr(compiled(variant), executor=executor)


# ---- BFR ----


def test_a_neighbour_gets_its_bits_and_one_from_the_ttl(bfr: Bfr) -> None:
    """RFC 8279, 6.5: BitString and F-BM; all other fields pass."""
    inner = payload()
    sent = bfr.send(bier_frame(header(0b1110, tc=5, nibble=3, oam=2, reserved=1), inner))
    fields = {"ttl": 19, "tc": 5, "nibble": 3, "oam": 2, "reserved": 1}
    assert sent == [
        sent_frame(header(0b0110, **fields), inner, WEST),
        sent_frame(header(0b1000, **fields), inner, EAST),
    ]
    assert bfr.counted() == {}


@pytest.mark.parametrize("bsl", PROGRAM_BSLS)
@pytest.mark.parametrize("encapsulation", ["ethernet", "mpls"])
def test_every_length_and_encapsulation(compiled: Compile, variant: Replication, bsl: int, encapsulation: str) -> None:
    mpls = encapsulation == "mpls"
    high = 1 << (bsl - 1)
    plan = replace(PLAN, bifts={BIFT: ((neighbour(WEST, 0b0110), neighbour(EAST, high | 0b1000)),)})
    bfr = Bfr(compiled(variant, bsl=bsl, encapsulation=encapsulation), plan, bsl=bsl)
    inner = payload()
    made = {"bsl": bsl, "bift_id": BIFT.bift_id(bsl), "nibble": 5 if mpls else 0}
    sent = bfr.send(bier_frame(header(high | 0b0100, **made), inner, mpls=mpls))
    assert sent == [
        sent_frame(header(0b0100, ttl=19, **made), inner, WEST, mpls=mpls),
        sent_frame(header(high, ttl=19, **made), inner, EAST, mpls=mpls),
    ]


def test_a_payload_of_any_protocol_passes(bfr: Bfr) -> None:
    for proto in range(64):
        inner = bytes(range(100))
        expected = [sent_frame(header(0b1000, proto=proto, ttl=19), inner, EAST)]
        assert bfr.send(bier_frame(header(0b1000, proto=proto), inner)) == expected


def test_several_tables_have_their_own_neighbours(compiled: Compile, variant: Replication) -> None:
    tables = {
        BIFT: ((neighbour(WEST, 0b10),),),
        Bift(0, 1): ((neighbour(EAST, 0b10),),),
        Bift(7, 0): ((neighbour(SOUTH, 0b10),),),
    }
    bfr = Bfr(compiled(variant), replace(PLAN, bifts=tables, own={}))
    for bift, port in zip(tables, (WEST, EAST, SOUTH), strict=True):
        made = {"bift_id": bift.bift_id(256)}
        assert bfr.send(bier_frame(header(0b10, **made), payload())) == [
            sent_frame(header(0b10, ttl=19, **made), payload(), port)
        ]


def test_entropy_chooses_the_bucket(compiled: Compile, variant: Replication) -> None:
    """RFC 8279, 6.7: packets of one entropy take one way for each bit."""
    buckets = tuple(
        (neighbour(WEST, 0b0010 if even else 0b1010), neighbour(EAST, 0b1100 if even else 0b0100))
        for even in (True, False)
    )
    bfr = Bfr(compiled(variant), replace(PLAN, bifts={BIFT: buckets}))
    for entropy, west in ((0x54320, 0b0010), (0x54321, 0b1010), (2, 0b0010), (3, 0b1010)):
        sent = bfr.send(bier_frame(header(0b1110, entropy=entropy), payload()))
        assert sent == [
            sent_frame(header(west, ttl=19, entropy=entropy), payload(), WEST),
            sent_frame(header(0b1110 & ~west, ttl=19, entropy=entropy), payload(), EAST),
        ]


@pytest.mark.parametrize("ports", [1, 2, 3])
def test_packets_go_round_by_looped_ports(compiled: Compile, ports: int) -> None:
    """A packet that leaves by a recirculation port comes in by it again; the ports take turns. n - 1 rounds for n next hops."""
    loops = range(31, 31 + ports)
    bfr = Bfr(compiled("recirculate", recirculation_ports=ports, looped_recirculation=True), domain=loops)
    sessions = {FIRST_RECIRCULATION_SESSION + number: ((port, 0),) for number, port in enumerate(loops)}
    bfr.wanted = replace(bfr.wanted, sessions={**bfr.wanted.sessions, **sessions})
    bfr.write(Configuration())
    sent, rounds, waiting = [], [], [(WEST, bier_frame(header(0b11110), payload()))]
    for port, frame in waiting:
        for out, copy in bfr.send(frame, port):
            (waiting if out in loops else sent).append((out, copy))
            rounds += [out] if out in loops else []
    copies = ((0b00110, WEST), (0b01000, EAST), (0b10000, SOUTH))
    assert sent == [sent_frame(header(bits, ttl=19), payload(), port) for bits, port in copies]
    assert rounds == [31, 31 + 1 % ports]


# ---- BFER ----


def test_a_payload_is_delivered_where_it_was_joined(bfr: Bfr) -> None:
    bfr.receive_channels({(None, GROUP): [HOST, OTHER_HOST]})
    for inner in (payload(), payload(length=1000, tos=0xB9)):
        passed = inner.copy()
        passed[IP].ttl = 31
        expected = [delivered_frame(passed, port, GROUP_MAC) for port in (HOST, OTHER_HOST)]
        assert bfr.send(bier_frame(header(1), inner)) == expected
    assert bfr.counted() == {}


def test_a_payload_of_ipv6_is_delivered(bfr: Bfr) -> None:
    bfr.receive_channels({(None, GROUP_V6): [HOST]})
    sent = bfr.send(bier_frame(header(1, proto=PROTO_IPV6), payload_v6()))
    assert sent == [delivered_frame(payload_v6(hlim=31), HOST, GROUP_V6_MAC)]


def test_own_bit_and_neighbours(bfr: Bfr) -> None:
    bfr.receive_channels({(None, GROUP): [HOST]})
    assert bfr.send(bier_frame(header(0b11111), payload())) == [
        delivered_frame(payload(ttl=31), HOST, GROUP_MAC),
        sent_frame(header(0b00110, ttl=19), payload(), WEST),
        sent_frame(header(0b01000, ttl=19), payload(), EAST),
        sent_frame(header(0b10000, ttl=19), payload(), SOUTH),
    ]


@pytest.mark.parametrize("version", [4, 6])
def test_a_source_of_its_own_comes_before_any_source(bfr: Bfr, version: int) -> None:
    group, source = (GROUP, SOURCE) if version == 4 else (GROUP_V6, SOURCE_V6)
    bfr.receive_channels({(source, group): [OTHER_HOST], (None, group): [HOST]})
    make = payload if version == 4 else payload_v6
    proto = {"proto": version}
    others = "10.9.9.9" if version == 4 else "2001:db8::9"
    assert [port for port, _ in bfr.send(bier_frame(header(1, **proto), make()))] == [OTHER_HOST]
    assert [port for port, _ in bfr.send(bier_frame(header(1, **proto), make(source=others)))] == [HOST]
    bfr.wanted = replace(bfr.wanted, entries=tuple(e for e in bfr.wanted.entries if "receivers" not in e.table))
    bfr.receive_channels({(source, group): [], (None, group): [HOST]})
    assert bfr.send(bier_frame(header(1, **proto), make())) == []
    assert bfr.counted() == {}


def test_ip_options_stay_with_the_payload(bfr: Bfr) -> None:
    bfr.receive_channels({(None, GROUP): [HOST]})
    inner = payload(options=[b"\x94\x04\x00\x00"])
    passed = payload(options=[b"\x94\x04\x00\x00"], ttl=31)
    assert bfr.send(bier_frame(header(1), inner)) == [delivered_frame(passed, HOST, GROUP_MAC)]


def test_a_damaged_checksum_stays_damaged(bfr: Bfr) -> None:
    """The receiver sees it: the TTL's difference is all that is added (RFC 1624)."""
    bfr.receive_channels({(None, GROUP): [HOST]})
    inner = bytearray(bytes(payload()))
    inner[10] ^= 0x40
    ((_, sent),) = bfr.send(bier_frame(header(1), bytes(inner)))
    right = bytes(payload(ttl=31))[10:12]
    assert sent[24:26] != right
    inner[8] -= 1
    assert int.from_bytes(sent[24:26], "big") == int.from_bytes(bytes(right), "big") ^ 0x4000


# ---- BFIR ----


def bfir(bfr: Bfr, **more: int) -> Bfr:
    return bfr.send_channels({(None, GROUP): {BIFT: 0b1110}, (None, GROUP_V6): {BIFT: 0b1000}}, **more)


def test_a_channel_gets_its_header(bfr: Bfr) -> None:
    """Every field as RFC 8296, section 2.2 and 3, has it; the payload is forwarded as a router does."""
    bfir(bfr)
    sent = bfr.send(host_frame(payload(tos=0xB9)), HOST)
    assert [port for port, _ in sent] == [WEST, EAST]
    entropies = set()
    for (port, data), bits in zip(sent, (0b0110, 0b1000), strict=True):
        made, inner = BierHeader.decode(data[14:])
        assert made == BierHeader(
            bift_id=0x30000, bit_string=bits, ttl=63, dscp=46, proto=4, bfir_id=1, s=1, entropy=made.entropy
        )
        assert data[:14] == sent_frame(made, b"", port)[1][:14]
        assert inner == bytes(payload(tos=0xB9, ttl=31))
        entropies.add(made.entropy)
    assert len(entropies) == 1


def test_a_channel_of_ipv6_gets_its_header(bfr: Bfr) -> None:
    bfir(bfr)
    ((port, data),) = bfr.send(host_frame(payload_v6(tc=0xB9, fl=5)), HOST)
    made, inner = BierHeader.decode(data[14:])
    assert port == EAST
    assert (made.proto, made.dscp, made.bit_string) == (6, 46, 0b1000)
    assert inner == bytes(payload_v6(tc=0xB9, fl=5, hlim=31))


def test_entropy_is_the_flows(bfr: Bfr) -> None:
    bfir(bfr)

    def entropy(packet: Packet) -> int:
        return BierHeader.decode(bfr.send(host_frame(packet), HOST)[0][1][14:])[0].entropy

    sources = [f"10.0.{i}.1" for i in range(30)]
    assert len({entropy(payload(source=source)) for source in sources}) > 25
    assert entropy(payload()) == entropy(payload(length=99, ttl=9, tos=3))
    assert entropy(payload_v6(fl=1)) != entropy(payload_v6(fl=2))


def test_a_copy_for_each_set(bfr: Bfr, compiled: Compile, variant: Replication) -> None:
    sets = [Bift(0, number) for number in range(4)]
    plan = replace(PLAN, bifts={bift: ((neighbour(WEST, 0b10), neighbour(EAST, 0b100)),) for bift in sets})
    channels = {(SOURCE, GROUP): {bift: 0b110 if bift.set_identifier % 2 else 0b100 for bift in sets}}
    bfr = Bfr(compiled(variant), plan).send_channels(channels)
    sent = [(port, BierHeader.decode(data[14:])) for port, data in bfr.send(host_frame(payload()), HOST)]
    assert [(port, made.bift_id & 0xFF, made.bit_string, made.ttl) for port, (made, _) in sent] == [
        (WEST, 1, 0b10, 63),
        (WEST, 3, 0b10, 63),
        *((EAST, number, 0b100, 63) for number in range(4)),
    ]
    assert {inner for _, (_, inner) in sent} == {bytes(payload(ttl=31))}


@pytest.mark.parametrize("sets", [1, 3])
def test_receivers_beside_the_sender(compiled: Compile, variant: Replication, sets: int) -> None:
    """A BFIR that is a BFER forwards the payload once, and not back to the sender."""
    bifts = {Bift(0, number): ((neighbour(WEST, 0b10),),) for number in range(sets)}
    plan = replace(PLAN, bifts=bifts)
    bfr = Bfr(compiled(variant), plan).send_channels(
        {(None, GROUP): {bift: 0b11 if bift == BIFT else 0b10 for bift in bifts}}
    )
    bfr.receive_channels({(None, GROUP): [HOST, OTHER_HOST]})
    sent = bfr.send(host_frame(payload()), HOST)
    assert sent[0] == delivered_frame(payload(ttl=31), OTHER_HOST, GROUP_MAC)
    assert [port for port, _ in sent[1:]] == [WEST] * sets
    assert {data[14 + 44 :] for _, data in sent[1:]} == {bytes(payload(ttl=31))}


@pytest.mark.parametrize("version", [4, 6])
def test_a_channel_of_its_own_comes_before_any_source(bfr: Bfr, version: int) -> None:
    group, source = (GROUP, SOURCE) if version == 4 else (GROUP_V6, SOURCE_V6)
    make = payload if version == 4 else payload_v6
    bfr.send_channels({(source, group): {BIFT: 0b1000}, (None, group): {BIFT: 0b10000}})
    assert [port for port, _ in bfr.send(host_frame(make()), HOST)] == [EAST]
    others = "10.9.9.9" if version == 4 else "2001:db8::9"
    assert [port for port, _ in bfr.send(host_frame(make(source=others)), HOST)] == [SOUTH]


def test_a_channel_without_receivers_is_known(bfr: Bfr) -> None:
    bfr.send_channels({(SOURCE, GROUP): {}, (None, GROUP): {BIFT: 0b10}})
    assert bfr.send(host_frame(payload()), HOST) == []
    assert bfr.counted() == {}


def test_the_mtu_is_the_bier_packets(bfr: Bfr) -> None:
    bfir(bfr, mtu=600)
    room = 600 - 44
    assert [len(data) for _, data in bfr.send(host_frame(payload(length=room - 28)), HOST)] == [14 + 600] * 2
    assert bfr.send(host_frame(payload(length=room - 27)), HOST) == []
    assert [len(data) for _, data in bfr.send(host_frame(payload_v6() / Raw(bytes(room - 68))), HOST)] == [614]
    assert bfr.send(host_frame(payload_v6() / Raw(bytes(room - 67))), HOST) == []
    assert bfr.counted() == {"mtu_exceeded": 2}


# ---- Drops, each with its counter ----


def assert_counted(bfr: Bfr, frame: bytes, counter: str, port: int = WEST) -> None:
    before = bfr.counted().get(counter, 0)
    assert bfr.send(frame, port) == []
    assert bfr.counted() == {counter: before + 1}


def test_a_wrong_version(bfr: Bfr) -> None:
    for version in range(1, 16):
        assert_counted(bfr, bier_frame(header(0b10, version=version), payload()), "wrong_version")


def test_a_wrong_bsl(bfr: Bfr) -> None:
    """Another length than the network's, whatever else the header says."""
    for bsl in (64, 128, 512, 1024, 2048, 4096):
        assert_counted(bfr, bier_frame(header(0b10, bsl=bsl), payload()), "wrong_bsl")
    frame = bytearray(bier_frame(header(0b10), payload()))
    frame[19] &= 0x0F
    assert_counted(bfr, bytes(frame), "wrong_bsl")


def test_an_unknown_bift(bfr: Bfr) -> None:
    assert_counted(bfr, bier_frame(header(0b10, bift_id=0x30001), payload()), "unknown_bift")


def test_bits_that_nobody_owns(bfr: Bfr) -> None:
    assert_counted(bfr, bier_frame(header(1 << 255 | 1 << 77), payload()), "unowned_bits")
    sent = bfr.send(bier_frame(header(1 << 255 | 0b1000), payload()))
    assert sent == [sent_frame(header(0b1000, ttl=19), payload(), EAST)]
    assert bfr.counted() == {"unowned_bits": 2}


def test_no_bits_are_nothing_to_do(bfr: Bfr) -> None:
    assert bfr.send(bier_frame(header(0), payload())) == []


def test_an_expired_ttl(bfr: Bfr) -> None:
    """A TTL of 1 reaches this switch and no other."""
    bfr.receive_channels({(None, GROUP): [HOST]})
    for ttl in (0, 1):
        assert_counted(bfr, bier_frame(header(0b10110, ttl=ttl), payload()), "ttl_expired")
    assert_counted(bfr, bier_frame(header(0b11, ttl=0), payload()), "ttl_expired")
    sent = bfr.send(bier_frame(header(0b11, ttl=1), payload()))
    assert sent == [delivered_frame(payload(ttl=31), HOST, GROUP_MAC)]
    assert bfr.counted() == {"ttl_expired": 4}
    assert bfr.send(bier_frame(header(0b1, ttl=1), payload())) == sent
    assert bfr.counted() == {"ttl_expired": 4}


def test_an_unknown_group_at_the_bfer(bfr: Bfr) -> None:
    bfr.receive_channels({(IPv4Address("10.9.9.9"), GROUP): [HOST]})
    assert_counted(bfr, bier_frame(header(1), payload()), "unknown_group")
    assert_counted(bfr, bier_frame(header(1, proto=3), payload()), "unknown_group")
    sent = bfr.send(bier_frame(header(0b1001), payload()))
    assert sent == [sent_frame(header(0b1000, ttl=19), payload(), EAST)]
    assert bfr.counted() == {"unknown_group": 3}


def test_a_payload_that_is_no_ip(bfr: Bfr) -> None:
    bfr.receive_channels({(None, GROUP): [HOST], (None, GROUP_V6): [HOST]})
    for inner in (payload(version=5), payload(ihl=4)):
        assert_counted(bfr, bier_frame(header(1), inner), "malformed_payload")
    assert_counted(bfr, bier_frame(header(1, proto=6), payload_v6(version=4)), "malformed_payload")


def test_a_payload_that_has_expired(bfr: Bfr) -> None:
    bfr.receive_channels({(None, GROUP): [HOST], (None, GROUP_V6): [HOST]})
    for ttl in (0, 1):
        assert_counted(bfr, bier_frame(header(1), payload(ttl=ttl)), "payload_ttl_expired")
        assert_counted(bfr, bier_frame(header(1, proto=6), payload_v6(hlim=ttl)), "payload_ttl_expired")


def test_every_cut_of_a_packet_is_malformed_or_another_payload(bfr: Bfr) -> None:
    """Headers are whole or counted, whatever the length."""
    frame = bier_frame(header(0b1000), payload())
    for length in range(14 + 44 + 20):
        assert bfr.send(frame[:length]) == []
    # Short of 14 bytes there is no Ethernet header either.
    assert bfr.counted() == {"malformed": 14 + 44 + 20}
    assert len(bfr.send(frame[: 14 + 44 + 20])) == 1


def test_multicast_that_no_channel_knows(bfr: Bfr) -> None:
    bfir(bfr)
    assert_counted(bfr, host_frame(payload(group="239.9.9.9")), "unknown_channel", HOST)
    assert_counted(bfr, host_frame(payload_v6(group="ff3e::9")), "unknown_channel", HOST)


def test_multicast_from_a_router_of_the_network(bfr: Bfr) -> None:
    """It would have sent BIER: IP multicast among switches would be a second way, and a loop."""
    bfir(bfr)
    assert_counted(bfr, host_frame(payload()), "foreign_multicast", WEST)


def test_an_expired_ttl_at_the_bfir(bfr: Bfr) -> None:
    bfir(bfr)
    for ttl in (0, 1):
        assert_counted(bfr, host_frame(payload(ttl=ttl)), "ip_ttl_expired", HOST)
        assert_counted(bfr, host_frame(payload_v6(hlim=ttl)), "ip_ttl_expired", HOST)


def test_damaged_multicast_is_not_forwarded(bfr: Bfr) -> None:
    bfir(bfr)
    assert_counted(bfr, host_frame(payload(chksum=1)), "malformed", HOST)


def test_link_local_multicast_stays_on_its_link(bfr: Bfr) -> None:
    bfr.send_channels({(None, IPv4Address("224.0.0.251")): {BIFT: 0b10}})
    for packet in (payload(group="224.0.0.251"), payload_v6(group="ff02::fb"), payload_v6(group="ff01::1")):
        assert bfr.send(host_frame(packet), HOST) == []
    assert bfr.counted() == {}


# ---- The controller's packets, and routes ----


MLD_TYPES = (130, 131, 132, 143)


@pytest.mark.parametrize("group", ["224.0.0.1", "224.0.0.22", "239.1.2.3"])
def test_igmp_is_the_controllers(bfr: Bfr, group: str) -> None:
    bfir(bfr)
    frame = host_frame(IP(src="10.0.1.1", dst=group, ttl=1, proto=2, options=[b"\x94\x04\x00\x00"]) / Raw(b"\x22" * 16))
    assert bfr.send(frame, HOST) == [(510, (HOST << 7).to_bytes(2, "big") + frame)]


@pytest.mark.parametrize("kind", [*MLD_TYPES, 128, 135])
def test_mld_is_the_controllers(bfr: Bfr, kind: int) -> None:
    # RFC 2711: a router alert with the value of MLD, and two bytes of padding.
    hop_by_hop = bytes([58, 0, 5, 2, 0, 0, 1, 0])
    packet = IPv6(src="fe80::1", dst="ff02::16", hlim=1, nh=0) / Raw(hop_by_hop + bytes([kind, 0, 0, 0]) + bytes(20))
    frame = host_frame(packet)
    punted = [(510, (HOST << 7).to_bytes(2, "big") + frame)]
    assert bfr.send(frame, HOST) == (punted if kind in MLD_TYPES else [])


def test_reports_of_a_port_beyond_its_rate_do_not_reach_the_controller(bfr: Bfr) -> None:
    bfr.client.configure_meter(REPORT_RATE, None, (10, 5, 10, 5))
    igmp = host_frame(IP(src="10.0.1.1", dst="224.0.0.22", ttl=1, proto=2) / Raw(b"\x22" * 16))
    hop_by_hop = bytes([58, 0, 5, 2, 0, 0, 1, 0])
    mld = host_frame(
        IPv6(src="fe80::1", dst="ff02::16", hlim=1, nh=0) / Raw(hop_by_hop + bytes([143, 0, 0, 0]) + bytes(20))
    )
    for port in (HOST, OTHER_HOST):
        sent = [bfr.switch.process(port, (igmp, mld)[step % 2], step * 10**10) for step in range(100)]
        # Five at once, and ten in the second.
        assert sum(map(len, sent)) == 14
    drops = bfr.client.counters(REPORT_RATE_EXCEEDED)
    assert {port: packets for port, (packets, _) in drops.items() if packets} == {HOST: 86, OTHER_HOST: 86}
    assert len(bfr.switch.process(HOST, igmp, 2 * 10**12)) == 1


def test_lldp_is_the_controllers_and_its_packets_go_out(bfr: Bfr) -> None:
    frame = bytes(Ether(type=0x88CC) / Raw(bytes(40)))
    assert bfr.send(frame) == [(510, (WEST << 7).to_bytes(2, "big") + frame)]
    assert bfr.send((SOUTH << 7).to_bytes(2, "big") + frame, 510) == [(SOUTH, frame)]


def test_unicast_is_routed(bfr: Bfr) -> None:
    entries = [
        ROUTES.entry(ip_network(prefix), FORWARD, hop(EAST).params()) for prefix in ("10.0.2.0/24", "2001:db8:2::/64")
    ]
    for entry in entries:
        entry.write(bfr.client, "insert")
    ether = {"src": hop(EAST).src_mac.to_bytes(6, "big"), "dst": hop(EAST).dst_mac.to_bytes(6, "big")}
    for packet, passed in (
        (IP(dst="10.0.2.9", ttl=9) / UDP(), IP(dst="10.0.2.9", ttl=8) / UDP()),
        (
            IP(dst="10.0.2.9", options=[b"\x94\x04\x00\x00"]) / UDP(),
            IP(dst="10.0.2.9", ttl=63, options=[b"\x94\x04\x00\x00"]) / UDP(),
        ),
        (IPv6(dst="2001:db8:2::9", hlim=9) / UDP(), IPv6(dst="2001:db8:2::9", hlim=8) / UDP()),
    ):
        assert bfr.send(host_frame(packet), HOST) == [(EAST, bytes(Ether(**ether) / passed))]
    assert bfr.send(host_frame(IP(dst="10.0.3.9") / UDP()), HOST) == []
    assert_counted(bfr, host_frame(IP(dst="10.0.2.9", ttl=1) / UDP()), "ip_ttl_expired", HOST)
    assert_counted(bfr, host_frame(IPv6(dst="2001:db8:2::9", hlim=1) / UDP()), "ip_ttl_expired", HOST)


def test_a_router_of_many_checksums(bfr: Bfr) -> None:
    """The TTL's difference in the checksum, against scapy's sum, for checksums all around."""
    ROUTES.entry(ip_network("10.0.2.0/24"), FORWARD, hop(EAST).params()).insert(bfr.client)
    for identification in [*range(0, 0x10000, 97), *range(0x7000, 0x7200)]:
        packet = IP(dst="10.0.2.9", ttl=2, id=identification, flags="DF") / UDP()
        passed = IP(dst="10.0.2.9", ttl=1, id=identification, flags="DF") / UDP()
        ((_, sent),) = bfr.send(host_frame(packet), HOST)
        assert sent[14:34] == bytes(passed)[:20]
