"""One switch with ``ipfrr.p4``, byte by byte: the packets into a repair tunnel, those out of one, and the drops."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from scapy.layers.inet import IP, UDP, IPOption_RR
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from holdfast._core import Program, Switch
from holdfast.control.desired import Writer
from holdfast.control.domain import domain_registers, refused
from holdfast.discovery import RATE
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device

HOST, PRIMARY, ALTERNATE = 1, 2, 3
OWN, PQ_NODE, OTHER = "10.255.0.1", "10.255.0.5", "10.255.0.9"
MTU = 600
SRC_MACS = {port: f"02:01:00:01:00:0{port}" for port in (HOST, PRIMARY, ALTERNATE)}
DST_MACS = {port: f"02:02:00:01:00:0{port}" for port in (HOST, PRIMARY, ALTERNATE)}


class Router:
    """10.0.1.0/24 is a host here; 10.0.2.0/24 has an LFA, 10.0.3.0/24 a remote one, 10.0.4.0/24 none."""

    def __init__(self, program: Program, executor: str = "jit") -> None:
        self.switch = Switch(program, executor=executor)  # type: ignore[arg-type]
        self.client = LocalClient(Device(1, self.switch, executor=executor))  # type: ignore[arg-type]
        self.client.set_pipeline(program)
        self.client.insert("loopbacks", {"hdr.tunnel.dst_addr": OWN}, "NoAction")
        Writer(self.client).write(domain_registers(frozenset((PRIMARY, ALTERNATE))))
        lfa = {
            "alternate_port": ALTERNATE,
            "alternate_src_mac": SRC_MACS[ALTERNATE],
            "alternate_dst_mac": DST_MACS[ALTERNATE],
        }
        self.route("10.0.1.0/24", "forward", HOST, {})
        self.route("10.0.2.0/24", "forward_or_lfa", PRIMARY, lfa)
        self.route(
            "10.0.3.0/24", "forward_or_remote_lfa", PRIMARY, {**lfa, "loopback": OWN, "pq_node": PQ_NODE, "mtu": MTU}
        )
        self.route("10.0.4.0/24", "forward", PRIMARY, {})
        self.route(f"{PQ_NODE}/32", "forward", ALTERNATE, {})
        self.route(f"{OTHER}/32", "forward", PRIMARY, {})

    def route(self, prefix: str, action: str, port: int, alternate: dict[str, int | str]) -> None:
        params = {"port": port, "src_mac": SRC_MACS[port], "dst_mac": DST_MACS[port], **alternate}
        self.client.insert("ipv4_lpm", {"dst_addr": prefix}, action, params)

    def down(self, *ports: int) -> Router:
        for port in ports:
            self.switch.set_port_up(port, False)
        return self

    def send(self, packet: Packet | bytes, port: int = HOST) -> list[tuple[int, bytes]]:
        data = packet if isinstance(packet, bytes) else bytes(Ether(src=DST_MACS[port], dst=SRC_MACS[port]) / packet)
        return [(out, bytes(sent)) for out, sent in self.switch.process(port, data, 0)]

    def counted(self, name: str) -> int:
        return self.client.counter(f"IpfrrIngress.{name}", 0)[0]


def udp(destination: str, *, payload: int = 40, **fields: object) -> Packet:
    return IP(src="10.0.1.1", dst=destination, **{"ttl": 64, **fields}) / UDP(sport=1, dport=2) / Raw(bytes(payload))


def tunnel(inner: Packet, destination: str, **fields: object) -> Packet:
    return IP(**{"src": OTHER, "dst": destination, "ttl": 60, "proto": 4, "flags": "DF", "id": 0, **fields}) / inner


def frame(port: int, packet: Packet) -> tuple[int, bytes]:
    """Return (port, frame) of ``packet`` as it leaves by ``port``; scapy fills in checksums and lengths."""
    return port, bytes(Ether(src=SRC_MACS[port], dst=DST_MACS[port]) / packet)


OPTIONS = [IPOption_RR(length=11, pointer=4, routers=["0.0.0.0", "0.0.0.0"])]


def test_the_primary_while_its_port_is_up(program: Program) -> None:
    router = Router(program).down(ALTERNATE)
    for destination in ("10.0.2.1", "10.0.3.1", "10.0.4.1"):
        assert router.send(udp(destination)) == [frame(PRIMARY, udp(destination, ttl=63))]


def test_an_lfa_is_another_next_hop(program: Program) -> None:
    router = Router(program).down(PRIMARY)
    assert router.send(udp("10.0.2.1")) == [frame(ALTERNATE, udp("10.0.2.1", ttl=63))]
    assert router.send(udp("10.0.4.1")) == []
    assert (router.counted("lfa_repairs"), router.counted("no_alternate")) == (1, 1)


@pytest.mark.parametrize("options", [[], OPTIONS], ids=["no options", "options"])
def test_a_remote_lfa_is_a_tunnel(program: Program, options: list[object]) -> None:
    router = Router(program).down(PRIMARY)
    packet = udp("10.0.3.1", options=options, tos=0xB9, id=77)
    passed = udp("10.0.3.1", options=options, tos=0xB9, id=77, ttl=63)
    expected = tunnel(passed, PQ_NODE, src=OWN, ttl=64, tos=0xB9)
    assert router.send(packet) == [frame(ALTERNATE, expected)]
    assert router.counted("remote_lfa_repairs") == 1


def test_back_to_the_primary_with_its_port(program: Program) -> None:
    router = Router(program).down(PRIMARY)
    assert router.send(udp("10.0.3.1"))[0][0] == ALTERNATE
    router.switch.set_port_up(PRIMARY, True)
    assert router.send(udp("10.0.3.1"))[0][0] == PRIMARY


def test_an_alternate_whose_port_is_down_is_none(program: Program) -> None:
    router = Router(program).down(PRIMARY, ALTERNATE)
    assert router.send(udp("10.0.2.1")) == router.send(udp("10.0.3.1")) == []
    assert router.counted("no_alternate") == 2


@pytest.mark.parametrize("options", [[], OPTIONS], ids=["no options", "options"])
def test_the_mtu_is_the_outer_packets(program: Program, options: list[object]) -> None:
    room = MTU - 20 - 20 - 8 - (12 if options else 0)
    router = Router(program).down(PRIMARY)
    ((_, sent),) = router.send(udp("10.0.3.1", options=options, payload=room))
    assert len(sent) == 14 + MTU
    assert router.send(udp("10.0.3.1", options=options, payload=room + 1)) == []
    assert (router.counted("remote_lfa_repairs"), router.counted("mtu_exceeded")) == (1, 1)


@pytest.mark.parametrize("options", [[], OPTIONS], ids=["no options", "options"])
def test_a_tunnel_ends(program: Program, options: list[object]) -> None:
    """With any TTL there; the packet's own counts from then on."""
    router = Router(program)
    packet = udp("10.0.1.9", options=options)
    expected = [frame(HOST, udp("10.0.1.9", options=options, ttl=63))]
    assert router.send(tunnel(packet, OWN), ALTERNATE) == expected
    assert router.send(tunnel(packet, OWN, ttl=1), ALTERNATE) == expected
    assert router.send(tunnel(udp("10.0.1.9", ttl=1), OWN), ALTERNATE) == []
    assert (router.counted("decapsulated"), router.counted("ttl_expired")) == (3, 1)


def test_what_comes_out_of_a_tunnel_is_repaired_like_any_packet(program: Program) -> None:
    router = Router(program).down(PRIMARY)
    expected = tunnel(udp("10.0.3.1", ttl=63), PQ_NODE, src=OWN, ttl=64)
    assert router.send(tunnel(udp("10.0.3.1"), OWN), ALTERNATE) == [frame(ALTERNATE, expected)]


def test_a_tunnel_passes(program: Program) -> None:
    """Its own TTL counts, and nothing inside changes."""
    router = Router(program)
    inner = udp("10.0.3.1", ttl=1, options=OPTIONS)
    assert router.send(tunnel(inner, OTHER), ALTERNATE) == [frame(PRIMARY, tunnel(inner, OTHER, ttl=59))]
    assert router.send(tunnel(inner, OTHER, ttl=1), ALTERNATE) == []
    assert (router.counted("ttl_expired"), router.counted("decapsulated")) == (1, 0)


def test_a_tunnel_is_not_repaired(program: Program) -> None:
    """Nor would it be if its route had an alternate."""
    router = Router(program).down(PRIMARY)
    assert router.send(tunnel(udp("10.0.3.1"), OTHER), ALTERNATE) == []
    lfa = {"alternate_port": HOST, "alternate_src_mac": SRC_MACS[HOST], "alternate_dst_mac": DST_MACS[HOST]}
    router.route("10.255.0.77/32", "forward_or_lfa", PRIMARY, lfa)  # type: ignore[arg-type]
    assert router.send(tunnel(udp("10.0.3.1"), "10.255.0.77"), ALTERNATE) == []
    assert router.counted("no_alternate") == 2


@pytest.mark.parametrize("destination", [OWN, OTHER])
def test_tunnels_of_hosts_are_dropped(program: Program, destination: str) -> None:
    router = Router(program)
    assert router.send(tunnel(udp("10.0.3.1"), destination), HOST) == []
    others = [
        IP(dst=destination) / UDP() / Raw(bytes(9)),
        IP(dst=destination, options=b"\1\1\1\0") / udp("10.0.3.1"),
        IP(dst=destination, flags="MF") / udp("10.0.3.1"),
        IP(dst=destination, frag=9, proto=4) / Raw(bytes(40)),
    ]
    assert [router.send(packet, HOST) for packet in others] == [[]] * 4
    assert refused(router.client, HOST) == 5


def test_other_ip_in_ip_is_payload(program: Program) -> None:
    """With any content, and also if it is too short for an IPv4 header."""
    router = Router(program)
    for inner in (udp("10.0.3.1", ttl=1), Raw(b"\x45"), Raw(b"\xff" * 40)):
        packet = IP(src="10.0.1.1", dst="10.0.4.1", proto=4) / inner
        passed = IP(src="10.0.1.1", dst="10.0.4.1", proto=4, ttl=63) / inner
        assert router.send(packet) == [frame(PRIMARY, passed)]


NOT_ECT, ECT_1, ECT_0, CE = range(4)


@pytest.mark.parametrize("outer", range(4))
@pytest.mark.parametrize("inner", range(4))
def test_congestion_marks_come_out_of_the_tunnel(program: Program, inner: int, outer: int) -> None:
    """RFC 6040, figure 4."""
    expected: int | None = inner
    if outer == CE:
        expected = None if inner == NOT_ECT else CE
    elif (inner, outer) == (ECT_0, ECT_1):
        expected = ECT_1
    router = Router(program)
    sent = router.send(tunnel(udp("10.0.1.9", tos=0xA0 | inner), OWN, tos=0x50 | outer), ALTERNATE)
    assert sent == ([] if expected is None else [frame(HOST, udp("10.0.1.9", tos=0xA0 | expected, ttl=63))])
    assert router.counted("congestion_unmarkable") == (expected is None)


def test_damaged_headers_are_dropped_where_they_are_seen(program: Program) -> None:
    router = Router(program)
    whole = bytes(Ether() / tunnel(udp("10.0.1.9"), OWN))
    broken = [
        whole[:22] + bytes((whole[22] ^ 1,)) + whole[23:],  # the outer TTL
        whole[:42] + bytes((whole[42] ^ 1,)) + whole[43:],  # the inner one
        whole[:50],
        bytes(Ether() / tunnel(udp("10.0.1.9", version=6), OWN)),
        bytes(Ether() / tunnel(udp("10.0.1.9", version=6), OTHER)),
    ]
    for data in broken:
        assert router.send(data, ALTERNATE) == []
    assert router.counted("malformed") == len(broken)


def test_what_never_is_a_tunnel_header(program: Program) -> None:
    """With options, or fragmented, it is a packet for an address that nobody has."""
    router = Router(program)
    for fields in ({"options": OPTIONS}, {"flags": "MF"}, {"frag": 5}):
        assert router.send(tunnel(udp("10.0.1.9"), OWN, **fields), ALTERNATE) == []
    assert router.counted("decapsulated") == router.counted("malformed") == 0


def random_frame(rng: random.Random) -> bytes:
    packet = udp(
        f"10.0.{rng.randrange(6)}.1",
        ttl=rng.choice((0, 1, 2, 64, 255)),
        tos=rng.randrange(256),
        options=rng.choice(([], OPTIONS)),
        payload=rng.choice((0, 40, MTU - 48, MTU - 47)),
    )
    if rng.random() < 0.5:
        destination = rng.choice((OWN, PQ_NODE, OTHER, "10.0.4.1"))
        packet = tunnel(packet, destination, ttl=rng.choice((0, 1, 2, 60)), tos=rng.randrange(256))
    data = bytearray(bytes(Ether() / packet))
    if rng.random() < 0.02:
        data[12:14] = b"\x88\xcc"
    if rng.random() < 0.1:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    if rng.random() < 0.1:
        del data[rng.randrange(len(data)) :]
    return bytes(data)


def test_the_executors_agree(program: Program) -> None:
    """Random packets while ports go down and up; every counter counts something."""
    rng = random.Random(1)
    routers = [Router(program, executor) for executor in ("jit", "interpreter")]
    for router in routers:
        router.client.configure_meter(RATE, None, (1, 1, 1, 1))
    for _ in range(1500):
        if rng.random() < 0.1:
            port, up = rng.choice((PRIMARY, ALTERNATE)), rng.random() < 0.5
            for router in routers:
                router.switch.set_port_up(port, up)
        port, data = rng.choice((HOST, PRIMARY, ALTERNATE)), random_frame(rng)
        outputs = [router.send(data, port) for router in routers]
        assert outputs[0] == outputs[1], data.hex()
    names = [counter.name for counter in routers[0].client.p4info.counters]
    counts = [
        Counter({name: sum(packets for packets, _ in router.client.counters(name).values()) for name in names})
        for router in routers
    ]
    assert counts[0] == counts[1]
    assert all(counts[0][name] for name in names)
