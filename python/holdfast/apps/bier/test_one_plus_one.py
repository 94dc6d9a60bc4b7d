"""1+1 BIER: two copies with one number, and of each number one that is delivered."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import rdpcap

from holdfast import SimulatedNetwork, UdpStream, topologies
from holdfast._core import Program
from holdfast.apps.bier import BierController, channel, one_plus_one, program
from holdfast.apps.bier.conftest import Compile
from holdfast.apps.bier.coverage import failures
from holdfast.control.membership.channels import Channel
from holdfast.paths import ShortestPaths
from holdfast.topology import Topology

GROUP = "239.1.1.1"
RATE = 10_000


@pytest.fixture(scope="module")
def compiled_for_it(compiled: Compile) -> Program:
    return compiled(one_plus_one=True)


def of(topology: Topology, source: str, group: str = GROUP) -> Channel:
    host = topology.hosts[source]
    interface = host.address if ip_address(group).version == 4 else host.ipv6
    assert interface is not None
    return channel(group, str(interface.ip))


def controller_of(members: dict[Channel, list[str]] | None = None) -> BierController:
    return BierController(
        members, ip_delay_ms=0, bier_delay_ms=0, frr="none", reroute=False, one_plus_one=True, mtu=2000
    )


def received(network: SimulatedNetwork, flow: int, host: str) -> tuple[int, int, int]:
    found = network.statistics(flow, host=host)
    return found.lost, found.duplicated, found.reordered


# ---- Packets on the wire ----


@pytest.mark.parametrize("version", [4, 6])
def test_a_copy_is_an_ethernet_frame_with_an_r_tag_behind_a_bier_header(
    compiled_for_it: Program, version: int, tmp_path: Path
) -> None:
    topology = topologies.load("ring:3")
    topology.add_ipv6()
    group = GROUP if version == 4 else "ff15::1"
    controller = controller_of({of(topology, "h1", group): ["h2"]})
    network = SimulatedNetwork(topology, compiled_for_it, [controller])
    source = str(of(topology, "h1", group)[0])
    packet: Packet = IP(src=source, dst=group, ttl=9) if version == 4 else IPv6(src=source, dst=group, hlim=9)
    frame = Ether(src="02:aa:00:00:00:01", dst="01:00:5e:01:01:01") / packet / UDP(sport=1, dport=2) / Raw(b"payload")
    ports = [topology.port_towards("s1", neighbour) for neighbour in ("s2", "s3")]
    for port in ports:
        network.capture("s1", port, tmp_path / f"{port}.pcap")
    for _ in range(3):
        network.send_frame("h1", bytes(frame))
    network.run(0.1)
    # Packets that s1 sends; the other direction is in the captures as well.
    sent = {
        port: [data for each in rdpcap(str(tmp_path / f"{port}.pcap")) if (data := bytes(each))[6:12] == mac]
        for port, mac in ((port, topology.port_mac("s1", port)) for port in ports)
    }
    for number in range(3):
        sub_domains = set()
        for port in ports:
            assert len(sent[port]) == 3
            data = sent[port][number]
            header, inner = data[14:58], data[58:]
            assert data[12:14] == bytes.fromhex("ab37")
            # RFC 8296, section 2: BIFT-id 20 (here packed: 3, sub-domain, set 0), TC 3, S 1, TTL 8.
            assert header[0] == 0x30 and header[2] >> 4 == 0
            sub_domains.add((header[0] & 0xF) << 12 | header[1] << 4 | header[2] >> 4)
            assert header[3] == 63
            # Protocol 3 is an Ethernet frame; the BFIR-id is s1's.
            assert header[9] & 0x3F == 3
            assert header[10:12] == bytes.fromhex("0001")
            # Destination, source, 802.1CB's EtherType; reserved, number, EtherType of the packet (IEEE 802.1CB, 7.8).
            assert inner[:14] == bytes.fromhex("01005e010101 02aa00000001 f1c1")
            assert inner[14:16] == bytes(2)
            assert int.from_bytes(inner[16:18], "big") == number
            assert inner[18:20] == bytes.fromhex("0800" if version == 4 else "86dd")
            hops = inner[20 + 8] if version == 4 else inner[20 + 7]
            assert hops == 8
            assert inner.endswith(b"payload")
        assert sub_domains == {0x0000, 0x0100}


# ---- The guarantee ----


def test_ways_share_no_link_and_no_switch_where_there_are_two() -> None:
    for spec in ("abilene", "fat-tree:4", "grid:4x4"):
        topology = topologies.load(spec)
        controller = controller_of()
        SimulatedNetwork(topology, _program(), [controller])
        paths = ShortestPaths.of(topology)
        ends = controller.plan.destinations
        for source in ends:
            for destination in ends:
                if source == destination:
                    continue
                one, other = one_plus_one.ways(controller.plan, source, destination)
                assert not {hop.link for hop in one} & {hop.link for hop in other}
                between = [{hop.neighbour for hop in way} - {destination} for way in (one, other)]
                assert not between[0] & between[1], (spec, paths.nodes[source], paths.nodes[destination])


def _program() -> Program:
    return program.compile_bier(one_plus_one=True)


@pytest.mark.parametrize("kind", ["link", "node"])
def test_a_cut_under_10000_packets_per_s_to_20_receivers_loses_nothing(compiled_for_it: Program, kind: str) -> None:
    """Of the links and switches on the way the ones that most receivers are behind; they stay down."""
    topology = topologies.load("grid:5x5,delay_ms=0.1")
    source, *receivers = (f"h{i}" for i in range(1, 26) if i not in (7, 9, 17, 19))
    assert len(receivers) == 20
    controller = controller_of({of(topology, source): receivers})
    network = SimulatedNetwork(topology, compiled_for_it, [controller], detection_delay_ms=50)
    flow = network.add(UdpStream(source=source, destination=GROUP, packets_per_s=RATE, stop_s=0.4))
    ends = {topology.attachment(host).switch for host in [source, *receivers]}
    behind: dict[str, int] = {}
    for failure in failures(topology, "link" if kind == "link" else "node"):
        if failure.node not in ends:
            behind[failure.name] = sum(
                any(hop.link in failure.links for hop in way)
                for host in receivers
                for way in one_plus_one.ways(
                    controller.plan,
                    *(controller.plan.paths.number[topology.attachment(h).switch] for h in (source, host)),
                )
            )
    cut = max(behind, key=lambda name: behind[name])
    assert behind[cut] >= 5
    (network.set_link if kind == "link" else network.set_node)(cut, up=False, at_s=0.15)
    network.run(1.0)
    assert {host: received(network, flow, host) for host in receivers} == dict.fromkeys(receivers, (0, 0, 0))


def test_what_comes_back_loses_and_duplicates_nothing(compiled_for_it: Program) -> None:
    topology = topologies.load("ring:6,delay_ms=0.1")
    controller = controller_of({of(topology, "h1"): ["h3", "h4", "h6"]})
    network = SimulatedNetwork(topology, compiled_for_it, [controller], detection_delay_ms=10)
    flow = network.add(UdpStream(source="h1", destination=GROUP, packets_per_s=RATE, stop_s=0.4))
    for at_s, up in ((0.1, False), (0.2, True), (0.25, False), (0.3, True)):
        network.set_link("s2-s3", up=up, at_s=at_s)
    network.run(1.0)
    for host in ("h3", "h4", "h6"):
        assert received(network, flow, host)[:2] == (0, 0)


def test_a_host_at_the_sources_switch_gets_one_copy(compiled_for_it: Program) -> None:
    topology = topologies.load("fat-tree:4")
    root = topology.attachment("h1").switch
    (beside,) = (name for name in topology.hosts if name != "h1" and topology.attachment(name).switch == root)
    controller = controller_of({of(topology, "h1"): [beside, "h9"]})
    network = SimulatedNetwork(topology, compiled_for_it, [controller])
    flow = network.add(UdpStream(source="h1", destination=GROUP, packets_per_s=1000, stop_s=0.2))
    network.run(1.0)
    assert [received(network, flow, host) for host in (beside, "h9")] == [(0, 0, 0)] * 2


# ---- Streams of a switch ----


def test_a_register_that_is_used_again_takes_any_number(
    compiled_for_it: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_plus_one, "STREAMS", 1)
    topology = topologies.load("ring:4,delay_ms=0.1")
    controller = controller_of({of(topology, "h1"): ["h3"]})
    network = SimulatedNetwork(topology, compiled_for_it, [controller])
    first = network.add(UdpStream(source="h1", destination=GROUP, packets_per_s=1000, stop_s=0.5))
    second = network.add(
        UdpStream(source="h2", destination="239.1.1.2", packets_per_s=1000, start_s=0.55, stop_s=0.8, source_port=6000)
    )
    network.run(0.52)
    controller.leave(of(topology, "h1"), "h3")
    client = network.clients["s3"]
    assert client.read_table(program.eliminated_table(4)) == []
    controller.join(of(topology, "h2", "239.1.1.2"), "h3")
    (entry,) = client.read_table(program.eliminated_table(4))
    assert entry.params["index"] == 0
    network.run(1.0)
    assert received(network, first, "h3") == received(network, second, "h3") == (0, 0, 0)


def test_a_controller_takes_streams_over(compiled_for_it: Program) -> None:
    topology = topologies.load("ring:4,delay_ms=0.1")
    channels = {of(topology, "h1"): ["h3"], of(topology, "h2"): ["h3", "h4"]}
    network = SimulatedNetwork(topology, compiled_for_it, [controller_of(channels)])

    def tables() -> dict[str, list[object]]:
        return {
            name: [entry for table in program.STREAM_TABLES for entry in client.read_table(table)]
            for name, client in network.clients.items()
        }

    before = tables()
    flow = network.add(UdpStream(source="h1", destination=GROUP, packets_per_s=1000, stop_s=0.4))
    network.run(0.2)
    again = controller_of(channels)
    again.attach(network)
    again.on_start()
    assert again.taken_over
    assert tables() == before
    network.run(1.0)
    assert received(network, flow, "h3") == (0, 0, 0)
