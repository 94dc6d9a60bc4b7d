"""Packets through one node, byte by byte: IPv4 and IPv6, two to four copies, connections within connections, too large ones."""

from __future__ import annotations

import struct

import pytest

from holdfast._core import Program, Switch
from holdfast.apps.protect import compile_protect
from holdfast.apps.protect.tests.differential import ipv4_header
from holdfast.control.desired import Writer
from holdfast.control.domain import domain_registers
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device

OWN = "10.255.0.1"
FAR = ("10.254.0.2", "10.254.0.3", "10.254.0.4", "10.254.0.5")
HERE = ("10.254.9.2", "10.254.9.3")
TRAFFIC_CLASS = 0x28
V6_HOST = bytes.fromhex("20010db8000200000000000000000001")


@pytest.fixture(scope="module")
def program() -> Program:
    return compile_protect({"CONNECTIONS": "16", "NESTED_ENDS": "1"})


def ip(text: str) -> bytes:
    return bytes(map(int, text.split(".")))


def v4(destination: str, payload: bytes = bytes(10), protocol: int = 17, ttl: int = 64) -> bytes:
    header = bytearray(ipv4_header(20 + len(payload), protocol, ip("10.0.1.1"), ip(destination)))
    return with_ttl(bytes(header) + payload, ttl)


def with_ttl(packet: bytes, ttl: int) -> bytes:
    """Return an IPv4 packet with another TTL and the checksum that belongs to it."""
    words = bytearray(packet[:20])
    words[8], words[10], words[11] = ttl, 0, 0
    total = sum(struct.unpack("!10H", words))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    words[10:12] = struct.pack("!H", total ^ 0xFFFF)
    return bytes(words) + packet[20:]


def v6(payload: bytes, next_header: int = 17, hops: int = 64, destination: bytes = V6_HOST) -> bytes:
    return (
        struct.pack("!IHBB", 6 << 28 | TRAFFIC_CLASS << 20 | 5, len(payload), next_header, hops)
        + bytes(15)
        + b"\1"
        + destination
        + payload
    )


def udp(port: int, size: int = 8) -> bytes:
    return struct.pack("!HHHH", 1000, port, size, 0) + bytes(size - 8)


def protected(inner: bytes, destination: str, sn: int, cid: int = 5, next_protocol: int = 4) -> bytes:
    """Return a packet in a tunnel to ``destination``: outer header, protection header, and ``inner``."""
    header = ipv4_header(28 + len(inner), 253, ip(OWN), ip(destination))
    return header + cid.to_bytes(3, "big") + sn.to_bytes(4, "big") + bytes((next_protocol,)) + inner


def frame(packet: bytes) -> bytes:
    return bytes(12) + (b"\x86\xdd" if packet[0] >> 4 == 6 else b"\x08\x00") + packet


class Node:
    """Ingress of connection 3 (``copies`` paths), egress of connection 5 on two paths, router."""

    def __init__(self, program: Program, executor: str, copies: int = 2, mtu: int = 200) -> None:
        self.switch = Switch(program, executor=executor)  # type: ignore[arg-type]
        self.client = LocalClient(Device(1, self.switch, executor=executor))
        self.client.set_pipeline(program)
        Writer(self.client).write(domain_registers(frozenset({7})))
        for path, address in enumerate(HERE):
            self.client.insert("tunnel_endpoints", {"hdr.tunnel.dst_addr": address}, "end_path", {"number": path})
        for cid in (5, 6):
            params = {"index": cid, "history_length": 8, "reset_timeout_us": 0}
            self.client.insert("egress_connections", {"hdr.protection.cid": cid}, "select_vector", params)
        route = {"src_mac": 0xA, "dst_mac": 0xB}
        self.client.insert("ipv4_lpm", {"dst_addr": "10.0.0.0/8"}, "forward", {"port": 9} | route)
        self.client.insert("ipv6_lpm", {"hdr.ipv6.dst_addr": "2001:db8::/32"}, "forward_v6", {"port": 8} | route)
        self.client.multicast_group(1, [(port, port) for port in range(1, copies + 1)])
        for port in range(1, copies + 1):
            key = {"meta.multicast_group": 1, "standard_metadata.egress_rid": port}
            to = {"src_mac": port, "dst_mac": 16 + port, "dst_ip": FAR[port - 1]}
            self.client.insert("tunnel_copies", key, "send_copy", to)
        self.protect = {"index": 3, "cid": 5, "src_ip": OWN, "dst_ip": FAR[0], "m_grp": 1, "mtu": mtu}

    def add_flow(self, table: str, match: dict[str, tuple[int, int]]) -> None:
        self.client.insert(table, match, "protect", self.protect, priority=1)

    def send(self, packet: bytes) -> list[tuple[int, bytes]]:
        return [(port, out[14:]) for port, out in sorted(self.switch.process(7, frame(packet)))]


@pytest.fixture(params=["jit", "interpreter"])
def executor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def expected_copies(
    inner: bytes, sn: int, copies: int = 2, next_protocol: int = 4, tos: int = 0
) -> list[tuple[int, bytes]]:
    found = []
    for path in range(copies):
        outer = bytearray(protected(inner, FAR[path], sn, next_protocol=next_protocol))
        outer[1] = tos
        outer[4:6] = struct.pack("!H", sn)
        outer[6] = 0x40
        found.append((path + 1, with_ttl(bytes(outer), 64)))
    return found


@pytest.mark.parametrize("copies", [2, 3, 4])
def test_copies_on_every_path(program: Program, executor: str, copies: int) -> None:
    node = Node(program, executor, copies)
    node.add_flow("protected_flows", {"meta.dst_port": (53, 0xFFFF)})
    packet = v4("10.0.2.1", udp(53))
    for sn in (1, 2, 3):
        assert node.send(packet) == expected_copies(with_ttl(packet, 63), sn, copies)
    other = v4("10.0.2.1", udp(54))
    assert node.send(other) == [(9, with_ttl(other, 63))]


def test_ipv6_in_the_same_connection(program: Program, executor: str) -> None:
    """Its flows have a table of their own; number, copies and counters are the connection's."""
    node = Node(program, executor)
    node.add_flow("protected_flows", {"meta.dst_port": (53, 0xFFFF)})
    host = (int.from_bytes(V6_HOST, "big"), 2**128 - 1)
    node.add_flow("protected_flows_v6", {"hdr.ipv6.dst_addr": host, "meta.dst_port": (53, 0xFFFF)})
    assert node.send(v4("10.0.2.1", udp(53))) == expected_copies(v4("10.0.2.1", udp(53), ttl=63), 1)
    inner = v6(udp(53), hops=63)
    assert node.send(v6(udp(53))) == expected_copies(inner, 2, next_protocol=41, tos=TRAFFIC_CLASS)
    assert node.send(v6(udp(54))) == [(8, v6(udp(54), hops=63))], "no flow: routed"
    assert node.send(v6(udp(53), next_header=58)) == [(8, v6(udp(53), next_header=58, hops=63))], "no ports"
    assert node.send(v6(udp(53), hops=1)) == []
    assert node.send(v6(udp(53), destination=bytes(16))) == [], "no route"


def test_ipv6_leaves_the_tunnel(program: Program, executor: str) -> None:
    node = Node(program, executor)
    inner = v6(udp(53))
    out = node.switch.process(7, frame(protected(inner, HERE[0], 77, next_protocol=41)))
    assert out == [(8, (0xB).to_bytes(6, "big") + (0xA).to_bytes(6, "big") + b"\x86\xdd" + v6(udp(53), hops=63))]
    assert node.send(protected(inner, HERE[1], 77, next_protocol=41)) == [], "the second copy"
    assert node.client.counter("passed", 4 * 5)[0] == 1
    assert node.client.counter("discarded", 4 * 5 + 1)[0] == 1


def test_the_number_stays_in_front_for_a_port_that_orders(program: Program, executor: str) -> None:
    node = Node(program, executor)
    route = {"src_mac": 0xA, "dst_mac": 0xB, "port": 6}
    node.client.insert("ipv4_lpm", {"dst_addr": "10.0.3.0/24"}, "forward_in_order", route)
    host = V6_HOST.hex(":", 2)
    node.client.insert("ipv6_lpm", {"hdr.ipv6.dst_addr": f"{host}/128"}, "forward_v6_in_order", route)
    for sn, inner, next_protocol in ((77, v4("10.0.3.1", udp(53)), 4), (78, v6(udp(53)), 41)):
        out = node.switch.process(7, frame(protected(inner, HERE[0], sn, next_protocol=next_protocol)))
        left = with_ttl(inner, 63) if next_protocol == 4 else v6(udp(53), hops=63)
        ethernet = (0xB).to_bytes(6, "big") + (0xA).to_bytes(6, "big")
        number = (5).to_bytes(3, "big") + sn.to_bytes(4, "big") + bytes((next_protocol,))
        assert out == [(6, ethernet + b"\x88\xb5" + number + left)]
        # A packet that came in no tunnel has no number.
        assert node.switch.process(7, frame(inner)) == [(6, ethernet + frame(inner)[12:14] + left)]
    other = protected(v4("10.0.3.1", udp(53)), "10.0.3.9", 9)
    assert node.send(other) == [(6, with_ttl(other, 63))], "another's tunnel"


def test_a_router_on_the_way_sees_only_the_outer_header(program: Program, executor: str) -> None:
    node = Node(program, executor)
    for inner, protocol in ((v4("10.0.2.1", udp(53)), 4), (v6(udp(53)), 41), (bytes(12), 99)):
        packet = protected(inner, "10.7.7.7", 1, next_protocol=protocol)
        assert node.send(packet) == [(9, with_ttl(packet, 63))]


def test_a_connection_within_another(program: Program, executor: str) -> None:
    """On its way a tunnel's packet is protected again, by its outer header, and afterwards routed on as it came."""
    node = Node(program, executor)
    node.add_flow(
        "protected_flows",
        {"hdr.ipv4.protocol": (253, 0xFF), "hdr.ipv4.dst_addr": (int.from_bytes(ip("10.7.7.7")), 2**32 - 1)},
    )
    packet = protected(v4("10.0.2.1", udp(53)), "10.7.7.7", 1000)
    sent = node.send(packet)
    assert sent == expected_copies(with_ttl(packet, 63), 1)
    assert node.send(protected(v4("10.0.2.1", udp(53)), "10.7.7.8", 1000))[0][0] == 9, "another tunnel"
    inside = protected(v6(udp(53)), "10.7.7.7", 1001, next_protocol=41)
    assert node.send(inside) == expected_copies(with_ttl(inside, 63), 2)

    end = Node(program, executor)
    assert end.send(protected(with_ttl(packet, 63), HERE[0], 1)) == [(9, with_ttl(packet, 62))]
    assert end.send(protected(with_ttl(packet, 63), HERE[1], 1)) == []


def test_two_connections_that_end_here(program: Program, executor: str) -> None:
    """The packet goes round; each of the two eliminates its own copies."""
    node = Node(program, executor)
    innermost = v4("10.0.2.1", udp(53))
    for sn in (1, 2):
        for inner_path in (0, 1):
            inner = protected(innermost, HERE[inner_path], 40 + sn, cid=6)
            for outer_path in (0, 1):
                out = node.send(protected(inner, HERE[outer_path], 2 * sn + inner_path, cid=5))
                first = inner_path == outer_path == 0
                assert out == ([(9, with_ttl(innermost, 63))] if first else [])
    counts = [
        node.client.counter(name, 4 * cid + path)[0]
        for name in ("passed", "discarded")
        for cid in (5, 6)
        for path in (0, 1)
    ]
    assert counts == [4, 0, 2, 0, 0, 4, 0, 2]


def test_what_leaves_a_connection_enters_the_next(program: Program, executor: str) -> None:
    """A node that is egress of one and ingress of another."""
    node = Node(program, executor)
    node.add_flow("protected_flows", {"meta.dst_port": (53, 0xFFFF)})
    inner = v4("10.0.2.1", udp(53))
    assert node.send(protected(inner, HERE[0], 9)) == expected_copies(with_ttl(inner, 63), 1)
    assert node.send(protected(inner, HERE[1], 9)) == []


@pytest.mark.parametrize("kind", ["v4", "v6", "tunnel"])
def test_packets_too_large_for_the_tunnel(program: Program, executor: str, kind: str) -> None:
    """The largest that fits is sent, one byte more is dropped and counted, and takes no number."""
    node = Node(program, executor, mtu=200)
    node.add_flow("protected_flows", {})
    node.add_flow("protected_flows_v6", {})

    def packet(size: int) -> bytes:
        if kind == "v4":
            return v4("10.0.2.1", udp(53, size - 20))
        if kind == "v6":
            return v6(udp(53, size - 40))
        return protected(v4("10.0.2.1", udp(53, size - 48)), "10.7.7.7", 1)

    assert [len(out) for _, out in node.send(packet(172))] == [200, 200]
    assert node.send(packet(173)) == []
    assert node.client.counter("mtu_exceeded", 3)[0] == 1
    assert node.client.register("last_sent_sn", 3) == 1


UDP_PORT = 6635


@pytest.fixture(scope="module")
def udp_program() -> Program:
    return compile_protect({"CONNECTIONS": "16", "UDP_PORT": str(UDP_PORT)})


def in_udp(packet: bytes, source_port: int) -> bytes:
    """Return a packet of a tunnel with a UDP header between its outer header and its protection header."""
    header = bytearray(packet[:20])
    header[2:4] = struct.pack("!H", len(packet) + 8)
    header[9] = 17
    return (
        with_ttl(bytes(header), header[8])
        + struct.pack("!HHHH", source_port, UDP_PORT, len(packet) - 12, 0)
        + packet[20:]
    )


def test_tunnels_in_udp(udp_program: Program, executor: str) -> None:
    """All copies of a flow's packets have one source port, those of other flows others; the rest is as without UDP."""
    node = Node(udp_program, executor)
    node.add_flow("protected_flows", {"hdr.ipv4.protocol": (17, 0xFF)})
    node.add_flow("protected_flows_v6", {})
    source_ports = set()
    sn = 0
    for packet, after, next_protocol, tos in (
        *((v4("10.0.2.1", udp(port)), v4("10.0.2.1", udp(port), ttl=63), 4, 0) for port in range(50)),
        (v6(udp(53)), v6(udp(53), hops=63), 41, TRAFFIC_CLASS),
    ):
        for _ in range(2):
            sn += 1
            sent = node.send(packet)
            source_port = int.from_bytes(sent[0][1][20:22], "big")
            assert source_port >= 49152
            copies = expected_copies(after, sn, next_protocol=next_protocol, tos=tos)
            assert sent == [(port, in_udp(copy, source_port)) for port, copy in copies]
        source_ports.add(source_port)
    assert len(source_ports) > 45


def test_tunnels_in_udp_end(udp_program: Program, executor: str) -> None:
    node = Node(udp_program, executor)
    for inner, after in (
        (v4("10.0.2.1", udp(53)), v4("10.0.2.1", udp(53), ttl=63)),
        (v6(udp(53)), v6(udp(53), hops=63)),
    ):
        protocol = 41 if inner[0] >> 4 == 6 else 4
        sn = 10 if protocol == 4 else 11
        copies = [in_udp(protected(inner, address, sn, next_protocol=protocol), 50000) for address in HERE]
        assert [packet for _, packet in node.send(copies[0])] == [after]
        assert node.send(copies[1]) == []
    away = in_udp(protected(v4("10.0.2.1", udp(53)), "10.7.7.7", 1), 50000)
    assert node.send(away) == [(9, with_ttl(away, 63))], "not ours: routed"
    other = v4("10.0.2.1", udp(UDP_PORT - 1, 9))
    assert node.send(other) == [(9, with_ttl(other, 63))]
    node.add_flow("protected_flows", {"meta.dst_port": (UDP_PORT, 0xFFFF)})
    assert [len(packet) for _, packet in node.send(away)] == [len(away) + 36] * 2, "protected on its way"
