"""IPv6 of modelled hosts: packets checked by scapy, through the router, and through 1+1 protection with a cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoReply, ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from holdfast import Ping, SimulatedNetwork, TcpOptions, TcpTransfer, UdpStream
from holdfast._core import HoldfastError, read_pcap
from holdfast.apps.protect import ProtectController, compile_protect
from holdfast.apps.protect.program import ROUTES
from holdfast.apps.protect.test_takeover import successor
from holdfast.apps.router import IpFrrController, RouterController, compile_ipfrr, compile_router
from holdfast.errors import NetworkError, TopologyError
from holdfast.link import Ordering
from holdfast.results import tcp_flows
from holdfast.topologies import listing, load
from holdfast.topology import Topology

MODEST = TcpOptions(window_limit_bytes=30_000)
"""No queue overflows."""
ENDS: dict[str, Any] = {"source": "h1", "destination": "h2", "family": "ipv6"}


def two_ways(ordering: Ordering | None = None) -> Topology:
    """Return a topology with h1 at a, h2 at z, and two paths between a and z, of which the first is cheaper."""
    t = Topology("two ways")
    t.add_host("h1", ipv6="2001:db8:1::10/64")
    t.add_host("h2", ipv6="2001:db8:2::20/56")
    for name in ("a", "m1", "m2", "z"):
        t.add_switch(name)
    t.add_link("h1", "a", delay_ms=0.01)
    t.add_link("z", "h2", delay_ms=0.01, ordering=ordering)
    for i in (1, 2):
        t.add_link("a", f"m{i}", delay_ms=1, cost=i, rate_bps=100_000_000)
        t.add_link(f"m{i}", "z", delay_ms=1, cost=i, rate_bps=100_000_000)
    return t


def routed(topology: Topology, *, reroute: bool = False) -> SimulatedNetwork:
    return SimulatedNetwork(topology, compile_router(), [RouterController(reroute=reroute, reaction_delay_ms=1)])


def captured(file: Path) -> list[Packet]:
    return [Ether(frame) for _, frame in read_pcap(file)]


def recomputed(packet: Packet) -> bytes:
    """Return the packet's bytes with checksums and lengths computed by scapy."""
    fresh = packet.copy()
    ip = fresh[IPv6]
    del ip.plen
    for layer, field in ((UDP, "chksum"), (TCP, "chksum"), (ICMPv6EchoRequest, "cksum"), (ICMPv6EchoReply, "cksum")):
        if layer in fresh:
            delattr(fresh[layer], field)
    if UDP in fresh:
        del fresh[UDP].len
    return bytes(fresh)


def test_what_is_on_the_wire(tmp_path: Path) -> None:
    """Check every header field of streams, pings, replies and TCP, with checksums computed by scapy."""
    network = routed(two_ways())
    stream = network.add(
        UdpStream(**ENDS, packets_per_s=1000, payload_bytes=101, stop_s=0.01, source_port=7, destination_port=9)
    )
    ping = network.add(Ping(**ENDS, interval_ms=5, stop_s=0.02, payload_bytes=33))
    tcp = network.add_tcp(
        TcpTransfer(**ENDS, application="transfer", transfer_bytes=5000, dscp=34, options=TcpOptions(ecn=True))
    )
    network.capture("h1", 0, str(tmp_path / "h1.pcap"))
    network.capture("h2", 0, str(tmp_path / "h2.pcap"))
    network.run(2)
    assert network.statistics(stream).delivered == 10
    assert network.statistics(ping).delivered == 4
    assert tcp_flows(network, [tcp])["bytes_received"].to_list() == [5000]

    sent, received = captured(tmp_path / "h1.pcap"), captured(tmp_path / "h2.pcap")
    h1, h2 = "2001:db8:1::10", "2001:db8:2::20"
    kinds = {"udp": 0, "request": 0, "reply": 0, "tcp": 0}
    for packet in (*sent, *received):
        ip = packet[IPv6]
        assert packet.type == 0x86DD
        assert (ip.version, ip.fl, len(packet)) == (6, 0, 54 + ip.plen)
        assert recomputed(packet) == bytes(packet)
        if UDP in packet:
            kinds["udp"] += 1
            assert (ip.src, ip.dst, ip.tc, packet[UDP].sport, packet[UDP].dport) == (h1, h2, 0, 7, 9)
            assert len(packet[UDP].payload) == 101
        elif ICMPv6EchoRequest in packet:
            kinds["request"] += 1
            assert (ip.src, ip.dst, ip.nh, len(packet[ICMPv6EchoRequest].data)) == (h1, h2, 58, 33)
        elif ICMPv6EchoReply in packet:
            kinds["reply"] += 1
            assert (ip.src, ip.dst) == (h2, h1)
        else:
            kinds["tcp"] += 1
            # ECN-capable are segments with data alone (RFC 3168).
            assert ip.tc == 34 << 2 | (2 if Raw in packet[TCP] else 0)
    assert kinds["udp"] == 20 and kinds["request"] == kinds["reply"] == 8 and kinds["tcp"] > 10
    # Three routers on the way.
    assert {packet[IPv6].hlim for packet in sent if packet[IPv6].src == h1} == {64}
    assert {packet[IPv6].hlim for packet in received if packet[IPv6].src == h1} == {61}
    syn = next(packet for packet in sent if TCP in packet)
    # 1448 over IPv4, 20 bytes less here.
    assert dict(syn[TCP].options)["MSS"] == 1428


def test_both_families_side_by_side() -> None:
    """Check that IPv6 takes the same path as IPv4 with the same traffic, also around a cut."""
    network = routed(two_ways(), reroute=True)
    flows = {
        family: (
            network.add(UdpStream(**{**ENDS, "family": family}, packets_per_s=1000, payload_bytes=100, stop_s=0.5)),
            network.add(Ping(**{**ENDS, "family": family}, interval_ms=10, stop_s=0.5)),
            network.add_tcp(
                TcpTransfer(
                    **{**ENDS, "family": family}, application="transfer", transfer_bytes=1_000_000, options=MODEST
                )
            ),
        )
        for family in ("ipv4", "ipv6")
    }
    network.set_link("a-m1", up=False, at_s=0.2)
    network.run(5)
    v4, v6 = flows["ipv4"], flows["ipv6"]
    for kind in (0, 1):
        statistics = [network.statistics(flow[kind]) for flow in (v4, v6)]
        lost = [each.lost for each in statistics]
        # Of one there may be one more on the way than of the other when the link fails.
        assert min(lost) > 0
        assert max(lost) - min(lost) <= 1
        assert statistics[0].sent == statistics[1].sent
    ends = tcp_flows(network, [v4[2], v6[2]])
    assert ends["bytes_received"].to_list() == [1_000_000] * 2
    assert ends["failure"].to_list() == [None, None]


@pytest.mark.parametrize("ordering", [None, Ordering(max_delay_ms=10, take_any_ms=50)])
def test_protection_loses_nothing_at_a_cut(ordering: Ordering | None) -> None:
    """Check streams, pings and TCP of both families, in connections that both families share."""
    topology = two_ways(ordering)
    controller = ProtectController(protect=[("h1", "h2")], reaction_delay_ms=1, mtu=1600)
    network = SimulatedNetwork(topology, compile_protect(), [controller], detection_delay_ms=10)
    streams = [
        network.add(UdpStream(**{**ENDS, "family": family}, packets_per_s=1000, payload_bytes=200, stop_s=1))
        for family in ("ipv4", "ipv6")
    ]
    streams += [network.add(Ping(**{**ENDS, "family": family}, interval_ms=7, stop_s=1)) for family in ("ipv4", "ipv6")]
    transfers = [
        network.add_tcp(
            TcpTransfer(**{**ENDS, "family": family}, application="transfer", transfer_bytes=2_000_000, options=MODEST)
        )
        for family in ("ipv4", "ipv6")
    ]
    network.set_link("a-m1", up=False, at_s=0.1)
    network.run(3)
    for flow in streams:
        statistics = network.statistics(flow)
        assert (statistics.lost, statistics.duplicated, statistics.reordered) == (0, 0, 0)
    ends = tcp_flows(network, transfers)
    assert ends["bytes_received"].to_list() == [2_000_000] * 2
    assert ends["bytes_retransmitted"].to_list() == [0, 0]
    forth = controller.find_connection("a", "z")
    assert forth is not None
    assert [flow.version for flow, _ in forth.flows] == [4, 6]
    assert controller.statistics(forth).protected_packets > 2 * (1000 + 143 + 2_000_000 // 1448)


def test_a_controller_that_takes_over_finds_the_routes_of_ipv6() -> None:
    network = SimulatedNetwork(
        two_ways(), compile_protect(), [ProtectController(protect=[("h1", "h2")], reaction_delay_ms=1, mtu=1600)]
    )
    client = network.clients["a"]
    routes = ROUTES.ipv6
    of_others = {"hdr.ipv6.dst_addr": "2001:db8:99::/48"}
    client.insert(routes, of_others, "drop", {})

    def entries() -> list[tuple[object, object, object]]:
        return sorted((str(e.match), e.action, str(e.params)) for e in client.read_table(routes))

    before = entries()
    assert len(before) == 3
    heir = successor(network)
    assert entries() == before
    assert heir.taken_over is not None
    assert (heir.taken_over.flows, heir.taken_over.restored, heir.taken_over.removed) == (4, 0, 0)


def test_programs_without_a_table_for_ipv6_route_ipv4_alone() -> None:
    network = SimulatedNetwork(two_ways(), compile_ipfrr(), [IpFrrController(reaction_delay_ms=1)])
    flows = [network.add(Ping(**{**ENDS, "family": family}, interval_ms=10, stop_s=0.1)) for family in ("ipv4", "ipv6")]
    network.run(1)
    assert [network.statistics(flow).delivered for flow in flows] == [10, 0]


def test_what_cannot_be() -> None:
    t = Topology()
    t.add_host("h1", ipv6="2001:db8:1::1/64")
    for address, message in (
        ("2001:db8:1::7/48", "overlapping"),
        ("ff02::1/64", "not an address that packets are routed to"),
        ("fe80::1/64", "not an address that packets are routed to"),
        ("10.0.0.1/24", "ipv6"),
    ):
        with pytest.raises(TopologyError, match=message):
            t.add_host("h2", ipv6=address)
        assert list(t.hosts) == ["h1"]
    # What was refused has not taken an IPv4 subnet either.
    t.add_host("h2")
    t.add_switch("s")
    t.add_link("h1", "s")
    t.add_link("h2", "s")
    network = routed(t)
    ping = Ping(**ENDS, stop_s=1)
    with pytest.raises(NetworkError, match="host 'h2' has no IPv6 address"):
        network.add(ping)
    with pytest.raises(NetworkError, match="host 'h2' has no IPv6 address"):
        network.add_tcp(TcpTransfer(**ENDS))
    with pytest.raises(ValidationError, match="family"):
        Ping.model_validate({**ENDS, "family": "ipv5", "stop_s": 1})
    with pytest.raises(HoldfastError, match="other family"):
        network._core.add_ping(**ping.model_copy(update={"destination": "10.0.2.1"}).model_dump())
    with pytest.raises(HoldfastError, match="payload_bytes"):
        long = ping.model_copy(update={"destination": "2001:db8::1", "payload_bytes": 65_535 - 47})
        network._core.add_ping(**long.model_dump())


def test_every_host_of_any_topology(tmp_path: Path) -> None:
    t = load("ring:4")
    t.add_ipv6()
    assert [str(host.ipv6) for host in t.hosts.values()] == [f"2001:db8:0:{n}::1/64" for n in (1, 2, 3, 4)]
    assert any(line.endswith(" 10.0.3.1/24 2001:db8:0:3::1/64") for line in listing(t))
    network = routed(t)
    pings = [
        network.add(Ping(source=a, destination=b, family="ipv6", interval_ms=10, stop_s=0.1))
        for a in t.hosts
        for b in t.hosts
        if a != b
    ]
    network.run(1)
    assert {network.statistics(ping).lost for ping in pings} == {0}
    # Those that have one keep it, and a file has them all.
    mixed = Topology("mixed")
    mixed.add_host("h1", ipv6="2001:db8:7::1/64")
    mixed.add_host("h2")
    mixed.add_switch("s")
    mixed.add_link("h1", "s")
    mixed.add_link("h2", "s")
    mixed.add_ipv6("fd00:1::/48")
    assert [str(host.ipv6) for host in mixed.hosts.values()] == ["2001:db8:7::1/64", "fd00:1:0:2::1/64"]
    (tmp_path / "mixed.yaml").write_text(mixed.to_yaml())
    assert load(str(tmp_path / "mixed.yaml")).hosts == mixed.hosts
    for prefix, message in (("fd00::/49", "longer than 48"), ("fd00::1/48", "host bits"), ("10.0.0.0/8", "prefix")):
        with pytest.raises(TopologyError, match=message):
            mixed.add_ipv6(prefix)


def test_linux_fills_packets_of_the_same_length() -> None:
    assert TcpOptions.linux("cubic").mss == 1448
    assert TcpOptions.linux("cubic", family="ipv6").mss == 1428


def test_expired_hop_limits_are_counted(tmp_path: Path) -> None:
    """Check that hop limits of 0 and 1 are not forwarded and 2 is; a header of another version is malformed."""
    network = routed(two_ways())
    network.capture("a", 2, str(tmp_path / "a.pcap"))
    mac = network.topology.port_mac("a", 1).hex(":")
    for hop_limit in (0, 1, 2):
        frame = Ether(dst=mac) / IPv6(src="2001:db8:1::10", dst="2001:db8:2::20", hlim=hop_limit) / UDP() / b"x"
        network.send_frame("h1", bytes(frame))
    wrong = bytearray(bytes(frame))
    wrong[14] = 0x50
    network.send_frame("h1", bytes(wrong))
    network.send_frame("h1", bytes(Ether(dst=mac) / IP(src="10.0.1.1", dst="10.0.2.1", ttl=1) / UDP()))
    network.run(1)
    (out,) = captured(tmp_path / "a.pcap")
    assert out[IPv6].hlim == 1
    client = network.clients["a"]
    assert client.counter("RouterIngress.ttl_expired", 0)[0] == 3
    assert client.counter("RouterIngress.malformed", 0)[0] == 1
