"""The solutions of the P4 tutorials' exercises compile and forward, on both executors.

The programs are not in this repository: ``HOLDFAST_TUTORIALS`` names a checkout of p4lang/tutorials, and without it all tests here
are skipped. The tests read the programs and the entries of their first switch from there; packets and expectations are ours.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from holdfast._core import Program, Switch
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device

CHECKOUT = os.environ.get("HOLDFAST_TUTORIALS")
EXERCISES = Path(CHECKOUT or ".") / "exercises"

pytestmark = pytest.mark.skipif(CHECKOUT is None, reason="HOLDFAST_TUTORIALS names no checkout of p4lang/tutorials")

HOST, GATEWAY = "08:00:00:00:01:11", "08:00:00:00:01:00"


@dataclass
class Bench:
    """The first switch of an exercise with its own entries."""

    switch: Switch
    client: LocalClient
    config: dict[str, Any]

    def send(self, port: int, packet: Packet | bytes, now_ps: int = 0) -> list[tuple[int, bytes]]:
        return self.switch.process(port, bytes(packet), now_ps)

    def route(self, dst: str) -> tuple[int, str]:
        """Return (port, MAC address) to which the longest matching prefix in the entries' file leads."""
        best: tuple[int, int, str] | None = None
        for entry in self.config["table_entries"]:
            if entry["table"] == "MyIngress.ipv4_lpm" and "match" in entry:
                address, length = entry["match"]["hdr.ipv4.dstAddr"]
                network = ip_network(f"{address}/{length}", strict=False)
                if ip_address(dst) in network and (best is None or length > best[0]):
                    best = (length, entry["action_params"]["port"], entry["action_params"]["dstAddr"])
        assert best is not None, dst
        return best[1], best[2]


def datagram(dst: str, layer: Packet | None = None, ttl: int = 64, src: str = "10.0.1.1") -> Packet:
    return (
        Ether(src=HOST, dst=GATEWAY) / IP(src=src, dst=dst, ttl=ttl) / (layer or UDP(dport=4321)) / Raw(b"P4 is cool")
    )


def routed(packet: Packet, mac: str, **fields: int) -> bytes:
    """Return the bytes of a packet as a router forwards it to ``mac``, with checksums computed by scapy."""
    expected = packet.copy()
    expected[Ether].src, expected[Ether].dst = packet[Ether].dst, mac
    expected[IP].ttl -= 1
    for name, value in fields.items():
        setattr(expected[IP], name, value)
    return bytes(expected)


def program(name: str) -> Path:
    (path,) = [*(EXERCISES / name / "solution").glob("*.p4")] or [*(EXERCISES / name).glob("*.p4")]
    return path


def entries(name: str) -> dict[str, Any]:
    """Return the entries of s1 in an exercise: the solution's own if it has some."""
    found = [*(EXERCISES / name).glob("solution/s1-runtime.json"), *(EXERCISES / name).glob("**/s1-runtime.json")]
    return dict(json.loads(found[0].read_text())) if found else {"table_entries": []}


def field(value: Any) -> Any:
    """Convert a match of the exercise's file: a value, a list of one value, or a list of a value and a prefix length."""
    if not isinstance(value, list):
        return value
    return tuple(value) if len(value) > 1 else value[0]


def install(client: LocalClient, config: dict[str, Any]) -> None:
    for entry in config.get("table_entries", []):
        if entry.get("default_action"):
            client.set_default(entry["table"], entry["action_name"], entry["action_params"])
        else:
            match = {key: field(value) for key, value in entry["match"].items()}
            client.insert(entry["table"], match, entry["action_name"], entry["action_params"])
    for group in config.get("multicast_group_entries", []):
        replicas = [(replica["egress_port"], replica["instance"]) for replica in group["replicas"]]
        client.multicast_group(group["multicast_group_id"], replicas)
    for session in config.get("clone_session_entries", []):
        replicas = [(replica["egress_port"], replica["instance"]) for replica in session["replicas"]]
        client.clone_session(session["clone_session_id"], replicas)


def basic(bench: Bench) -> None:
    for dst in ("10.0.1.1", "10.0.2.2", "10.0.3.3", "10.0.4.4"):
        port, mac = bench.route(dst)
        packet = datagram(dst)
        assert bench.send(1, packet) == [(port, routed(packet, mac))]
    assert bench.send(1, datagram("192.0.2.1")) == []
    assert bench.send(1, Ether(type=0x86DD) / Raw(bytes(60)))[0][0] == 0, "what is not IPv4 keeps egress_spec 0"


def basic_tunnel(bench: Bench) -> None:
    port, mac = bench.route("10.0.2.2")
    packet = datagram("10.0.2.2")
    assert bench.send(1, packet) == [(port, routed(packet, mac))]
    for tunnel in (1, 2, 3):
        inside = bytes(datagram("10.0.3.3"))
        encapsulated = inside[:12] + struct.pack(">HHH", 0x1212, 0x0800, tunnel) + inside[14:]
        assert bench.send(1, encapsulated) == [(tunnel, encapsulated)]
    assert bench.send(1, inside[:12] + struct.pack(">HHH", 0x1212, 0x0800, 99) + inside[14:]) == []


def calc(bench: Bench) -> None:
    head, back = bytes(Ether(src=HOST, dst=GATEWAY, type=0x1234)), bytes(Ether(src=GATEWAY, dst=HOST, type=0x1234))
    a, b = 0xFFFF0003, 0x12345
    results = {"+": (a + b) % 2**32, "-": a - b, "&": a & b, "|": a | b, "^": a ^ b}
    for operator, result in results.items():
        question = b"P4\x01" + operator.encode() + struct.pack(">II", a, b)
        answer = back + question + struct.pack(">I", result)
        assert bench.send(3, head + question + bytes(4)) == [(3, answer)], operator
    assert bench.send(3, head + b"P4\x01*" + bytes(12)) == []
    assert bench.send(3, head + b"Q4\x01+" + bytes(12)) == []


def ecn(bench: Bench) -> None:
    port, mac = bench.route("10.0.2.2")
    for tos in (0, 1, 2, 3):
        packet = datagram("10.0.2.2")
        packet[IP].tos = tos
        # Alone in its queue nothing is marked.
        assert bench.send(2, packet) == [(port, routed(packet, mac))]


def firewall(bench: Bench) -> None:
    def out(flags: str) -> Packet:
        return datagram("10.0.3.3", TCP(sport=1000, dport=80, flags=flags))

    def back(dport: int) -> Packet:
        return datagram("10.0.1.1", TCP(sport=80, dport=dport, flags="SA"), src="10.0.3.3")

    (out_port, out_mac), (back_port, back_mac) = bench.route("10.0.3.3"), bench.route("10.0.1.1")
    assert bench.send(3, back(1000)) == [], "nobody asked for it"
    assert bench.send(1, out("A")) == [(out_port, routed(out("A"), out_mac))]
    assert bench.send(3, back(1000)) == [], "only a SYN opens the way"
    assert bench.send(1, out("S")) == [(out_port, routed(out("S"), out_mac))]
    assert bench.send(3, back(1000)) == [(back_port, routed(back(1000), back_mac))]
    assert bench.send(3, back(1001)) == [], "another flow"
    assert bench.send(2, back(1001)) == [(back_port, routed(back(1001), back_mac))], "inside there is no firewall"


def link_monitor(bench: Bench) -> None:
    port, _ = bench.route("10.0.2.2")
    packet = datagram("10.0.2.2")
    for _ in range(3):
        ((left_at, _),) = bench.send(1, packet)
        assert left_at == port

    def probe(sent_ps: int) -> tuple[int, bytes]:
        head = bytes(Ether(src=HOST, dst="ff:ff:ff:ff:ff:ff", type=0x812))
        ((left_at, left),) = bench.send(1, head + bytes([0, port]), sent_ps)
        assert left[:14] == head
        return left_at, left[14:]

    second_ps = 10**12
    for sent_ps, last, count in ((second_ps, 0, 3 * len(packet) + 16), (3 * second_ps, 10**6, 16)):
        left_at, left = probe(sent_ps)
        hops, switch_and_end, out, byte_count = struct.unpack(">BBBI", left[:7])
        assert (left_at, hops, switch_and_end, out, byte_count) == (port, 1, 0x81, port, count)
        times = int.from_bytes(left[7:13]), int.from_bytes(left[13:19])
        assert times == (last, sent_ps // 10**6)
        assert left[19:] == bytes([port])


def load_balance(bench: Bench) -> None:
    hops = {
        entry["action_params"]["port"]: entry["action_params"]
        for entry in bench.config["table_entries"]
        if entry["action_name"] == "MyIngress.set_nhop"
    }
    chosen = set()
    for sport in range(1000, 1040):
        packet = datagram("10.0.0.1", TCP(sport=sport, dport=80, chksum=0))
        ((port, left),) = bench.send(1, packet)
        hop = hops[port]
        expected = routed(packet, hop["nhop_dmac"], dst=hop["nhop_ipv4"])
        assert left == expected[:6] + bytes.fromhex("080000000100") + expected[12:]
        assert bench.send(1, packet) == [(port, left)], "a flow stays on its path"
        chosen.add(port)
    assert chosen == set(hops), "flows use all paths"
    assert bench.send(1, datagram("10.0.9.9")) == []


def mri(bench: Bench) -> None:
    port, mac = bench.route("10.0.2.2")
    plain = datagram("10.0.2.2")
    assert bench.send(1, plain) == [(port, routed(plain, mac))]
    base = bytearray(bytes(datagram("10.0.2.2"))[14:])
    ends, payload = bytes(base[12:20]), bytes(base[20:])

    def header(words: int, length: int, ttl: int) -> bytes:
        """Return the IPv4 header with its options and a checksum that leaves the options out, as the program computes it."""
        head = struct.pack(">BBHHHBBH", 0x40 | words, 0, length, 1, 0, ttl, 17, 0)
        total = sum(struct.unpack(">10H", head + ends))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        return head[:10] + struct.pack(">H", total ^ 0xFFFF) + ends

    length = 24 + len(payload)
    sent = header(6, length, 64) + struct.pack(">BBH", 31, 4, 0) + payload
    traced = header(8, length + 8, 63) + struct.pack(">BBHII", 31, 12, 1, 1, 0) + payload
    front = bytes.fromhex(mac.replace(":", "")) + bytes.fromhex(GATEWAY.replace(":", "")) + b"\x08\x00"
    assert bench.send(1, bytes(Ether(src=HOST, dst=GATEWAY, type=0x800)) + sent) == [(port, front + traced)]


def multicast(bench: Bench) -> None:
    (group,) = bench.config["multicast_group_entries"]
    ports = [replica["egress_port"] for replica in group["replicas"]]
    packet = Ether(src=HOST, dst="ff:ff:ff:ff:ff:ff") / Raw(bytes(50))
    for sender in ports:
        assert bench.send(sender, packet) == [(port, bytes(packet)) for port in ports if port != sender]
    known = Ether(src=HOST, dst="08:00:00:00:02:22") / Raw(bytes(50))
    assert bench.send(1, known) == [(2, bytes(known))]


def p4runtime(bench: Bench) -> None:
    """Check a tunnel, with the entries that the exercise's controller writes for both of its ends."""
    client, inside = bench.client, "MyIngress.myTunnel_exact"
    client.insert(
        "MyIngress.ipv4_lpm", {"hdr.ipv4.dstAddr": ("10.0.2.2", 32)}, "MyIngress.myTunnel_ingress", {"dst_id": 100}
    )
    client.insert(inside, {"hdr.myTunnel.dst_id": 100}, "MyIngress.myTunnel_forward", {"port": 2})
    client.insert(inside, {"hdr.myTunnel.dst_id": 200}, "MyIngress.myTunnel_egress", {"dstAddr": HOST, "port": 1})
    plain = bytes(datagram("10.0.2.2"))
    encapsulated = plain[:12] + struct.pack(">HHH", 0x1212, 0x0800, 100) + plain[14:]
    assert bench.send(1, plain) == [(2, encapsulated)]
    arriving = plain[:12] + struct.pack(">HHH", 0x1212, 0x0800, 200) + plain[14:]
    assert bench.send(2, arriving) == [(1, bytes.fromhex(HOST.replace(":", "")) + plain[6:])]
    assert client.counter("MyIngress.ingressTunnelCounter", 100) == (1, len(plain))
    # The header is invalid when it is counted: a field of it is zero.
    assert client.counter("MyIngress.egressTunnelCounter", 0) == (1, len(arriving))


def qos(bench: Bench) -> None:
    port, mac = bench.route("10.0.2.2")
    for layer, dscp in ((UDP(dport=4321), 46), (TCP(dport=4321), 44)):
        packet = datagram("10.0.2.2", layer)
        assert bench.send(2, packet) == [(port, routed(packet, mac, tos=dscp << 2))]


def source_routing(bench: Bench) -> None:
    packet = datagram("10.0.2.2")
    ethernet, inner = bytes(packet)[:12], packet[IP].copy()

    def sent(ports: list[int], ttl: int) -> bytes:
        """Return the frame that leaves, with its checksum unchanged, as the exercise does not update it."""
        labels = b"".join(struct.pack(">H", p | (0x8000 if i + 1 == len(ports) else 0)) for i, p in enumerate(ports))
        ip = bytearray(bytes(inner))
        ip[8] = ttl
        return ethernet + (b"\x12\x34" if ports else b"\x08\x00") + labels + bytes(ip)

    assert bench.send(1, sent([2, 3, 1], 64)) == [(2, sent([3, 1], 63))]
    assert bench.send(3, sent([3, 1], 63)) == [(3, sent([1], 62))]
    assert bench.send(1, sent([1], 62)) == [(1, sent([], 61))]
    assert bench.send(1, packet) == []


def flowcache(bench: Bench) -> None:
    cpu = 510
    bench.client.clone_session(57, [(cpu, 1)])
    packet = datagram("10.0.2.2")
    ((port, punted),) = bench.send(3, packet)
    assert (port, punted[-len(packet) :]) == (cpu, bytes(packet))
    head = punted[: -len(packet)]
    # The port it came from, that the flow is unknown, no operation.
    assert int.from_bytes(head[:-2]) == 3
    assert head[-2:] == bytes([1, 0])
    bench.client.insert(
        "MyIngress.flow_cache",
        {"hdr.ipv4.protocol": 17, "hdr.ipv4.srcAddr": "10.0.1.1", "hdr.ipv4.dstAddr": "10.0.2.2"},
        "MyIngress.cached_action",
        {"port": 2, "decrement_ttl": 1, "new_dscp": 5, "dst_eth_addr": "08:00:00:00:02:22"},
    )
    expected = packet.copy()
    expected[Ether].dst, expected[IP].ttl, expected[IP].tos = "08:00:00:00:02:22", 63, 5 << 2
    assert bench.send(3, packet) == [(2, bytes(expected))]
    packet_out = struct.pack(">BBI", 1, 0, 4) + bytes(packet)
    assert bench.send(cpu, packet_out) == [(4, bytes(packet))]


SCENARIOS: dict[str, Callable[[Bench], None]] = {
    scenario.__name__: scenario
    for scenario in (
        basic,
        basic_tunnel,
        calc,
        ecn,
        firewall,
        flowcache,
        link_monitor,
        load_balance,
        mri,
        multicast,
        p4runtime,
        qos,
        source_routing,
    )
}


@pytest.fixture(params=["jit", "interpreter"])
def executor(request: pytest.FixtureRequest) -> Iterator[str]:
    yield str(request.param)


@pytest.mark.parametrize("name", SCENARIOS)
def test_solution_forwards(name: str, executor: Any) -> None:
    compiled = Program.compile(str(program(name)))
    switch = Switch(compiled, executor=executor)
    client = LocalClient(Device(1, switch, executor=executor))
    client.set_pipeline(compiled)
    config = entries(name)
    install(client, config)
    SCENARIOS[name](Bench(switch, client, config))


def test_every_exercise_has_a_scenario() -> None:
    exercises = {path.parent.parent.name for path in EXERCISES.glob("*/solution/*")}
    assert exercises == set(SCENARIOS)


MISSING = {
    # Egress tests `hdr.ipv4.ecn` of whatever is sent.
    "ecn": [("W1180", "hdr.ipv4.ecn")],
    # The counter of the controller's packets has its index from an IPv4 header that the parser does not parse.
    "flowcache": [("W1180", "hdr.ipv4.dstAddr")],
    # A switch without an entry for its number sends a probe with none.
    "link_monitor": [("W1182", "hdr.probe_data[0].swid")],
    # The hash takes the ports of TCP from any packet of IPv4.
    "load_balance": [("W1180", "hdr.tcp.srcPort")],
    # The tunnel is removed before its number is used.
    "p4runtime": [("W1180", "hdr.myTunnel.dst_id")],
}
"""What the solutions read or send that may not be there: real, each of them. The check must find these and no others."""


@pytest.mark.parametrize("name", SCENARIOS)
def test_solution_reads_what_is_there(name: str) -> None:
    found = [(d.code, d.message.split("`")[1]) for d in Program.examine(str(program(name)))]
    assert found == MISSING.get(name, [])
