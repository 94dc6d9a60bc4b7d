"""The domain's edge: BIER headers and packets to the switches' own addresses are refused where no switch is, and counted."""

from __future__ import annotations

import pytest
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import GRE, Dot1AD, Dot1Q, Ether
from scapy.packet import Packet, Raw

from holdfast import SimulatedNetwork, Topology, UdpStream
from holdfast.apps.bier import BierController, compile_bier
from holdfast.apps.bier.conftest import (
    GROUP,
    HOST,
    OWN,
    WEST,
    Bfr,
    Compile,
    bier_frame,
    header,
    host_frame,
    payload,
    sent_frame,
)
from holdfast.apps.bier.header import ETHERTYPE_BIER, ETHERTYPE_MPLS
from holdfast.apps.bier.planning import Bift
from holdfast.apps.bier.program import Replication
from holdfast.control.domain import refused
from holdfast.control.membership.members import channel

UNCONNECTED = 99
STREAM = "232.1.1.1"
OTHER_SWITCH = "10.255.0.77"
NOT_VIA = "10.254.0.5"


@pytest.fixture
def bfr(compiled: Compile, variant: Replication, executor: str) -> Bfr:
    bfr = Bfr(compiled(variant), executor=executor)
    return bfr.receive_channels({(None, GROUP): [HOST]}).send_channels({(None, GROUP): {Bift(0, 0): 0b10}})


@pytest.mark.parametrize("port", [HOST, UNCONNECTED])
def test_bier_of_hosts_is_refused(bfr: Bfr, port: int) -> None:
    """Checks BIER to receivers here and further on, of any version and length, whole and cut off."""
    other_version = bytearray(bier_frame(header(0b11110), payload()))
    other_version[19] |= 0x10
    other_length = bytearray(bier_frame(header(0b11110), payload()))
    other_length[20] = 0x40
    frames = [
        bier_frame(header(0b00011), payload()),
        bytes(other_version),
        bytes(other_length),
        bier_frame(header(0b11111), payload())[:40],
        bier_frame(header(0), b""),
    ]
    assert [bfr.send(frame, port) for frame in frames] == [[]] * len(frames)
    assert refused(bfr.client, port) == len(frames)
    assert bfr.send(bier_frame(header(0b10), payload()), WEST) == [sent_frame(header(0b10, ttl=19), payload(), WEST)]
    assert bfr.send(host_frame(payload()), HOST) != [], "multicast of hosts begins here"


@pytest.mark.parametrize("address", [str(OWN), OTHER_SWITCH, NOT_VIA])
def test_packets_of_hosts_to_switches_are_refused(bfr: Bfr, address: str) -> None:
    """Checks tunnels that end here or elsewhere, what looks like one, and none; fragments, and packets with options."""
    bier = bier_frame(header(0b11111), payload())[14:]
    gre = GRE(proto=ETHERTYPE_BIER) / Raw(bier)
    packets: list[Packet] = [
        IP(dst=address) / gre,
        IP(dst=address) / IP(dst="10.0.9.9") / UDP(),
        IP(dst=address) / IP(dst=address) / gre,
        IP(dst=address) / UDP() / Raw(bytes(9)),
        IP(dst=address, options=b"\1\1\1\0") / gre,
        IP(dst=address, flags="MF") / gre,
        IP(dst=address, frag=8, proto=47) / Raw(bytes(16)),
        IP(dst=address, proto=253) / Raw(bytes(16)),
    ]
    assert [bfr.send(bytes(Ether() / packet), HOST) for packet in packets] == [[]] * len(packets)
    assert bfr.counted() == {f"refused at {HOST}": len(packets)}


@pytest.mark.parametrize("tags", [[0x8100], [0x88A8], [0x88A8, 0x8100]], ids=str)
def test_tagged_frames_are_nothing(bfr: Bfr, tags: list[int]) -> None:
    """The program knows no VLANs: what is in a tag is not looked at."""
    frame = bier_frame(header(0b11111), payload())
    tagged = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    for tag in tags:
        tagged /= {0x8100: Dot1Q, 0x88A8: Dot1AD}[tag](vlan=1)
    tagged.lastlayer().type = ETHERTYPE_BIER
    assert bfr.send(bytes(tagged) + frame[14:], HOST) == []
    assert bfr.counted() == {}


def test_labels_of_hosts_are_refused(compiled: Compile) -> None:
    """Checks a network of MPLS, whose labels are all the domain's."""
    bfr = Bfr(compiled(encapsulation="mpls"))
    frame = bier_frame(header(0b10, nibble=5), payload(), mpls=True)
    other = bytes(Ether(type=ETHERTYPE_MPLS) / MPLS(label=16, s=0) / MPLS(label=17, s=1) / IP())
    assert [bfr.send(each, HOST) for each in (frame, other)] == [[], []]
    assert bfr.counted() == {f"refused at {HOST}": 2}
    assert len(bfr.send(frame, WEST)) == 1


@pytest.mark.parametrize("one_plus_one", [False, True])
def test_forged_bier_costs_receivers_nothing(one_plus_one: bool) -> None:
    """Sends genuine packets of the domain again and with other numbers, from each host and at a port of nobody."""
    t = Topology("square")
    for name in ("s1", "s2", "s3", "s4"):
        t.add_switch(name)
    for host, switch in (("h1", "s1"), ("h2", "s4"), ("h3", "s2")):
        t.add_host(host)
        t.add_link(host, switch)
    for a, b in (("s1", "s2"), ("s2", "s4"), ("s1", "s3"), ("s3", "s4")):
        t.add_link(a, b, delay_ms=0.1)

    def run(frames: list[bytes]) -> tuple[SimulatedNetwork, list[bytes]]:
        members = {channel(STREAM, str(t.hosts["h1"].address.ip)): ["h2", "h3"]}
        controller = BierController(members, ip_delay_ms=1, bier_delay_ms=2, one_plus_one=one_plus_one)
        network = SimulatedNetwork(t, compile_bier(one_plus_one=one_plus_one), [controller], seed=1)
        seen: list[bytes] = []
        flow = network.add(UdpStream(source="h1", destination=STREAM, packets_per_s=1000, start_s=0.1, stop_s=0.6))
        for number, frame in enumerate(frames):
            network.run(0.3 + number * 1e-3)
            for host in t.hosts:
                network.send_frame(host, frame)
        network.run(1.0)
        for host in ("h2", "h3"):
            statistics = network.statistics(flow, host=host)
            assert (statistics.sent, statistics.lost, statistics.duplicated) == (500, 0, 0), host
        return network, seen

    inner = bytes(IP(src=str(t.hosts["h1"].address.ip), dst=STREAM) / UDP(sport=5001, dport=5001) / Raw(bytes(64)))
    tag = bytes(12) + b"\xf1\xc1\0\0"
    frames = []
    for bits in (0b1, 0b10, 0b100, 0b1000, 0b1111, (1 << 256) - 1):
        for sub_domain in (0, 1):
            bift_id = Bift(sub_domain, 0).bift_id(256)
            frames.append(bier_frame(header(bits, bift_id=bift_id, bfir_id=1), inner))
            for number in (0, 60, 300, 40_000):
                numbered = tag + number.to_bytes(2, "big") + b"\x08\0" + inner
                frames.append(bier_frame(header(bits, bift_id=bift_id, bfir_id=1, proto=3), numbered))
    for unconnected_switch in t.switches:
        for number, frame in enumerate(frames):
            t.add_packet_generator(
                unconnected_switch, UNCONNECTED, frame, period_ms=1000, start_ms=300 + number, count=1
            )
    network, _ = run(frames)
    for place in map(t.attachment, t.hosts):
        assert refused(network.clients[place.switch], place.port) == len(frames)
    for switch, client in network.clients.items():
        assert refused(client, UNCONNECTED) == len(frames), switch
