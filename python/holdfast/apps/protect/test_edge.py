"""The domain's edge: tunnels and numbers that do not come from a node of the network are refused, and counted by port."""

from __future__ import annotations

from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from scapy.packet import Packet, Raw
from scapy.utils import rdpcap

from holdfast import SimulatedNetwork, Topology, UdpStream
from holdfast._core import Program
from holdfast.apps.protect import Acceptance, Flow, ProtectController, compile_protect
from holdfast.apps.protect.program import FORWARD_TUNNEL
from holdfast.apps.protect.test_forwarding import HERE, UDP_PORT, Node, in_udp, protected, udp, v4, with_ttl
from holdfast.control.domain import domain_ports, refused
from holdfast.discovery import LinkDiscovery

EDGE, DOMAIN = 6, 7
"""Ports of a node."""
MTU = 1600


@pytest.fixture(params=["jit", "interpreter"])
def executor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def send(node: Node, packet: bytes, port: int) -> list[bytes]:
    ethertype = b"\x86\xdd" if packet[0] >> 4 == 6 else b"\x08\x00"
    return [out[14:] for _, out in node.switch.process(port, bytes(12) + ethertype + packet)]


def with_options(packet: bytes) -> bytes:
    layer = IP(packet)
    layer.options, layer.ihl, layer.len, layer.chksum = [b"\x01\x01\x01\x00"], None, None, None
    return bytes(layer)


def fragment(packet: bytes, flags: int, offset: int) -> bytes:
    layer = IP(packet)
    layer.flags, layer.frag, layer.chksum = flags, offset, None
    return bytes(layer)


INNER = v4("10.0.2.1", udp(53))


@pytest.mark.parametrize("destination", [HERE[0], "10.7.7.7"])
@pytest.mark.parametrize(
    "kind", ["whole", "options", "first fragment", "last fragment", "no payload", "unknown payload"]
)
def test_tunnels_of_hosts_are_refused(executor: str, kind: str, destination: str) -> None:
    """Checks tunnels to every address, whether or not a node could take them apart."""
    node = Node(compile_protect({"CONNECTIONS": "16"}), executor)
    whole = protected(INNER, destination, 77)
    packet = {
        "whole": whole,
        "options": with_options(whole),
        "first fragment": fragment(whole, 1, 0),
        "last fragment": fragment(whole, 0, 9),
        "no payload": protected(b"", destination, 77, next_protocol=59),
        "unknown payload": protected(bytes(20), destination, 77, next_protocol=99),
    }[kind]
    assert send(node, packet, EDGE) == []
    assert refused(node.client, EDGE) == 1
    assert node.client.register("last_accepted_sn", 5) == 0, "the connection has not seen it"
    assert [send(node, protected(INNER, address, 7), DOMAIN) for address in HERE] == [[with_ttl(INNER, 63)], []]


def test_tunnels_in_udp_are_refused(executor: str) -> None:
    node = Node(compile_protect({"CONNECTIONS": "16", "UDP_PORT": str(UDP_PORT)}), executor)
    whole = in_udp(protected(INNER, HERE[0], 77), 50000)
    forged = [whole, with_options(whole), fragment(whole, 1, 0)]
    assert [send(node, packet, EDGE) for packet in forged] == [[]] * 3
    assert refused(node.client, EDGE) == 3
    assert send(node, protected(INNER, "10.7.7.7", 1), EDGE) != [], "protocol 253 is nobody's here"


def test_other_tunnels_bring_nothing_past_the_edge(executor: str) -> None:
    """IP in IP to the end of a tunnel is not taken apart: what is in it would come from a port of the domain next."""
    node = Node(compile_protect({"CONNECTIONS": "16", "NESTED_ENDS": "1"}), executor)
    forged = protected(INNER, HERE[0], 77)
    route = {"port": 9, "src_mac": 1, "dst_mac": 2}
    node.client.insert("ipv4_lpm", {"dst_addr": "10.254.0.0/16"}, FORWARD_TUNNEL, route)
    nested = v4(HERE[0], forged, protocol=4)
    assert send(node, nested, EDGE) == [], "the address is of tunnels alone"
    assert send(node, v4(HERE[0], udp(53)), EDGE) == []
    assert refused(node.client, EDGE) == 2
    # In a protected flow, it leaves the tunnel as it came, and ends there.
    assert send(node, protected(nested, HERE[0], 5), DOMAIN) == []
    assert node.client.register("last_accepted_sn", 5) == 5
    elsewhere = v4("10.0.2.1", forged, protocol=4)
    assert send(node, elsewhere, EDGE) == [with_ttl(elsewhere, 63)], "a host's own business"


def test_numbers_in_front_of_packets_are_refused(executor: str) -> None:
    """Checks numbers that are for the ordering function behind a port, and never come in."""
    node = Node(compile_protect({"CONNECTIONS": "16"}), executor)
    frame = bytes(12) + b"\x88\xb5" + bytes(8) + INNER
    assert node.switch.process(EDGE, frame) == []
    assert refused(node.client, EDGE) == 1


# ---- A network ----


def square() -> Topology:
    """Build the network h1 - s1 - (s2 or s3) - s4 - h2, with h3 at s2."""
    t = Topology("square")
    for name in ("s1", "s2", "s3", "s4"):
        t.add_switch(name)
    for host, switch in (("h1", "s1"), ("h2", "s4"), ("h3", "s2")):
        t.add_host(host)
        t.add_link(host, switch)
    for a, b in (("s1", "s2"), ("s2", "s4"), ("s1", "s3"), ("s3", "s4")):
        t.add_link(a, b, delay_ms=0.1)
    return t


def of_links(t: Topology) -> set[tuple[str, int]]:
    return {
        (name, port)
        for link in t.links
        for name, port, other in ((link.a, link.a_port, link.b), (link.b, link.b_port, link.a))
        if name in t.switches and other in t.switches
    }


def copies(tmp_path: Path) -> list[Packet]:
    """Return the copies of protected packets that an attacker between the switches has captured in an equal network."""
    t = square()
    controller = ProtectController(protect=[("h1", "h2")], reaction_delay_ms=10, mtu=MTU)
    network = SimulatedNetwork(t, compile_protect(), [controller], seed=1)
    network.add(UdpStream(source="h1", destination="h2", packets_per_s=1000, stop_s=0.1))
    for switch in ("s2", "s3"):
        network.capture(switch, t.port_towards(switch, "s4"), tmp_path / f"{switch}.pcap")
    network.run(0.2)
    return [
        packet[IP]
        for switch in ("s2", "s3")
        for packet in rdpcap(str(tmp_path / f"{switch}.pcap"))
        if IP in packet and packet[IP].proto == 253
    ]


ALGORITHMS = [Acceptance("window"), Acceptance("window", reset_ms=0), Acceptance("vector"), Acceptance("match")]


@pytest.mark.parametrize("tags", [[], [0x8100], [0x88A8], [0x88A8, 0x8100]], ids=lambda tags: "+".join(map(hex, tags)))
@pytest.mark.parametrize("acceptance", ALGORITHMS, ids=str)
def test_forged_copies_cost_a_connection_nothing(tmp_path: Path, acceptance: Acceptance, tags: list[int]) -> None:
    """Forges copies from each host and from a port that nothing is declared at; with numbers far ahead, next, and again."""
    seen = copies(tmp_path)
    forged = []
    for copy in (seen[-1], seen[0]):
        body = bytes(copy.payload)
        number = int.from_bytes(body[3:7], "big")
        for jump in (0, 1, 40, 63, 1 << 30, (1 << 31) - 1):
            payload = body[:3] + (number + 1 + jump & 0xFFFFFFFF).to_bytes(4, "big") + body[7:]
            forged.append(IP(src="10.0.3.1", dst=copy.dst, proto=253) / Raw(payload))
    frames = [_tagged(packet, tags) for packet in forged]

    t = square()
    unconnected = 99
    for number, frame in enumerate(frames):
        for switch in t.switches:
            t.add_packet_generator(switch, unconnected, frame, period_ms=1000, start_ms=300 + number, count=1)
    controller = ProtectController(protect=[("h1", "h2")], reaction_delay_ms=10, mtu=MTU, acceptance=acceptance)
    network = SimulatedNetwork(t, compile_protect(), [controller], seed=1)
    flow = network.add(UdpStream(source="h1", destination="h2", packets_per_s=1000, start_s=0.1, stop_s=0.6))
    for number, frame in enumerate(frames):
        network.run(0.35 + number * 1e-3)
        for host in t.hosts:
            network.send_frame(host, frame)
    network.run(1.0)
    statistics = network.statistics(flow)
    assert (statistics.sent, statistics.lost, statistics.duplicated) == (500, 0, 0)
    edges = [(place.switch, place.port) for place in map(t.attachment, t.hosts)]
    edges += [(switch, unconnected) for switch in t.switches]
    counted = {edge: refused(network.clients[edge[0]], edge[1]) for edge in edges}
    # The node knows no tags: a tagged frame is no packet of IP, and is dropped as such.
    assert counted == dict.fromkeys(edges, 0 if tags else len(frames))
    assert {port: refused(network.clients[port[0]], port[1]) for port in of_links(t)} == dict.fromkeys(of_links(t), 0)


def _tagged(packet: Packet, tags: list[int]) -> bytes:
    frame = Ether(dst="ff:ff:ff:ff:ff:ff", src="02:00:00:00:00:33")
    for tag in tags:
        frame /= {0x8100: Dot1Q, 0x88A8: Dot1AD}[tag](vlan=1)
    return bytes(frame / packet)


def test_hosts_reach_each_other_in_other_tunnels() -> None:
    """IP in IP between hosts is theirs, in a connection and beside one."""
    t = square()
    controller = ProtectController(protect=[("h1", "h2")], reaction_delay_ms=1, mtu=MTU)
    network = SimulatedNetwork(t, compile_protect(), [controller])
    got: list[bytes] = []
    network.add_frame_listener("h2", lambda _, frame: got.append(frame))
    inner = IP(src="10.0.1.1", dst="10.0.2.1", proto=253) / Raw(b"inner")
    for host in ("h1", "h3"):
        source = t.hosts[host].address.ip
        packet = IP(src=str(source), dst=str(t.hosts["h2"].address.ip)) / inner
        network.send_frame(host, bytes(Ether() / packet))
    network.run(0.1)
    assert [bytes(Ether(frame)[IP].payload) for frame in got] == [bytes(inner)] * 2


def test_the_domain_follows_discovery() -> None:
    """Nothing is the domain's before a link is heard; a link that is gone makes both of its ports edges."""
    t = square()
    controller = ProtectController(reaction_delay_ms=1, mtu=MTU, discovery=LinkDiscovery(interval_ms=100, settle_ms=20))
    network = SimulatedNetwork(t, compile_protect(), [controller], detection_delay_ms=1)

    def ports() -> set[tuple[str, int]]:
        return {(name, port) for name, client in network.clients.items() for port in domain_ports(client)}

    declared = of_links(t)
    assert ports() == set()
    network.run(1)
    assert ports() == declared
    network.set_link("s2-s4", up=False)
    network.run(2)
    assert declared - ports() == {("s2", t.port_towards("s2", "s4")), ("s4", t.port_towards("s4", "s2"))}
    network.set_link("s2-s4", up=True)
    network.run(3)
    assert ports() == declared


def test_flows_may_be_wide() -> None:
    """A flow of everything does not carry tunnels of hosts: they are refused before."""
    t = square()
    controller = ProtectController(reaction_delay_ms=1, mtu=MTU)
    network = SimulatedNetwork(t, compile_protect(), [controller])
    connection = controller.add_connection("s2", "s4")
    controller.add_flow(connection, Flow(destination="10.0.0.0/8"))
    address = connection.addresses[0]
    packet = IP(src="10.0.3.1", dst=address, proto=253) / Raw(bytes(28))
    network.send_frame("h3", bytes(Ether() / packet))
    network.run(0.1)
    assert controller.statistics(connection).protected_packets == 0
    assert refused(network.clients["s2"], t.attachment("h3").port) == 1
    # Something else to the address is protected as the flow says, and ends where it leaves the tunnel.
    network.send_frame("h3", bytes(Ether() / IP(src="10.0.3.1", dst=address) / UDP() / Raw(bytes(28))))
    network.run(0.2)
    assert controller.statistics(connection).accepted_packets == 1


def test_a_program_says_so_for_any_port(program: Program) -> None:
    """Every port of a switch that nobody has said anything of is an edge."""
    node = Node(program, "jit")
    for port in (*range(64), 200, 509):
        if port != DOMAIN:
            assert send(node, protected(INNER, HERE[0], 3), port) == []
            assert refused(node.client, port) == 1
