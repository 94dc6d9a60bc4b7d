"""One router's treatment of a packet: the label stack byte by byte against scapy's, TTL by RFC 3443, and drops."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, UDP, IPOption_NOP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from holdfast._core import Program, Switch
from holdfast.apps.mpls import Fec
from holdfast.apps.mpls.lsr import Hop, Lsr
from holdfast.control.desired import Writer
from holdfast.control.domain import domain_registers, refused
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device

CORE, EDGE = 1, 2
LSP = 7
OUT = Hop(3, bytes.fromhex("020000000003"), bytes.fromhex("020000000033"))
HOST = Hop(EDGE, bytes.fromhex("020000000002"), bytes.fromhex("020000000022"))


@dataclass
class Router:
    """A switch that stands alone, with what :class:`Lsr` gives every router and a route to a host."""

    switch: Switch
    client: LocalClient
    lsr: Lsr

    def send(self, packet: Packet | bytes, port: int = CORE) -> list[tuple[int, bytes]]:
        return self.switch.process(port, bytes(packet))

    def one(self, packet: Packet | bytes, port: int = CORE) -> bytes:
        """Send a packet into ``port``, and return the one packet that leaves, which must leave by port 3."""
        ((out_port, data),) = self.send(packet, port)
        assert out_port == OUT.port
        return data

    def count(self, counter: str, index: int = 0) -> int:
        return self.client.counter(f"MplsIngress.{counter}", index)[0]

    def swap(self, label: int, out_label: int | None, *, uniform: bool = True, hop: Hop = OUT) -> None:
        nhlfe = self.lsr.add_nhlfe(LSP, hop, out_label, labelled=True, uniform=uniform, push_ttl=0)
        params = {"lsp": LSP, "nhlfe": nhlfe.number, "port": nhlfe.port, "backup": 0}
        self.lsr.add_ilm(LSP, label, "label_switch", params)

    def push(self, fec: Fec, label: int | None, *, ttl: int = 0, hop: Hop = OUT) -> None:
        nhlfe = self.lsr.add_nhlfe(LSP, hop, label, labelled=False, uniform=ttl == 0, push_ttl=ttl)
        self.lsr.add_fec(fec, {"lsp": LSP, "nhlfe": nhlfe.number, "port": nhlfe.port, "backup": 0})

    def pop(self, label: int, *, uniform: bool = True) -> None:
        self.lsr.add_ilm(LSP, label, "pop", {"lsp": LSP, "uniform": int(uniform)})


@pytest.fixture(params=["jit", "interpreter"])
def router(program: Program, request: pytest.FixtureRequest) -> Router:
    switch = Switch(program, executor=request.param)
    client = LocalClient(Device(1, switch, executor=request.param))
    client.set_pipeline(program)
    Writer(client).write(domain_registers(frozenset({CORE})))
    lsr = Lsr(client)
    neighbour = Hop(CORE, bytes.fromhex("020000000001"), bytes.fromhex("020000000011"))
    lsr.start([neighbour], explicit_null_uniform=True)
    lsr.add_route("10.0.9.0/24", HOST)
    return Router(switch, client, lsr)


def ip(ttl: int = 64, dst: str = "10.0.2.1", tos: int = 0, **fields: object) -> Packet:
    return IP(src="10.0.1.1", dst=dst, ttl=ttl, tos=tos, **fields) / UDP(sport=1, dport=2) / Raw(b"holdfast" * 4)


def ether(ethertype: int = 0x8847) -> Packet:
    return Ether(src="02:00:00:00:00:aa", dst="02:00:00:00:00:bb", type=ethertype)


def labels(*stack: tuple[int, int], tc: int = 0) -> Packet:
    """Return a label stack of (label, TTL) pairs, the top one first; ``tc`` is the traffic class of each."""
    packet: Packet | None = None
    for i, (label, ttl) in enumerate(stack):
        entry = MPLS(label=label, cos=tc, s=int(i == len(stack) - 1), ttl=ttl)
        packet = entry if packet is None else packet / entry
    assert packet is not None
    return packet


def sent(hop: Hop, payload: Packet, ethertype: int = 0x8847) -> bytes:
    """Return the frame with ``payload`` as the router sends it to ``hop``."""
    return hop.dst_mac + hop.src_mac + ethertype.to_bytes(2, "big") + bytes(payload)


# ---- Push ----


def test_a_pushed_label_is_the_standards(router: Router) -> None:
    router.push(Fec(destination="10.0.2.0/24"), 0xABCDE)
    data = router.one(ether(0x0800) / ip(tos=0xB8), port=EDGE)
    # Label 20 bits, traffic class 3, bottom of stack 1, TTL 8: RFC 3032, section 2.1.
    assert data[14:18] == bytes.fromhex("abcdeb3f")
    assert data == sent(OUT, labels((0xABCDE, 63), tc=5) / ip(ttl=63, tos=0xB8))
    assert router.count("lsp_traffic", LSP) == 1


@pytest.mark.parametrize("model_ttl", [0, 255])
def test_push_uniform_and_pipe(router: Router, model_ttl: int) -> None:
    router.push(Fec(destination="10.0.2.0/24"), 100, ttl=model_ttl)
    expected = labels((100, 9 if model_ttl == 0 else 255)) / ip(ttl=9)
    assert router.one(ether(0x0800) / ip(ttl=10), port=EDGE) == sent(OUT, expected)


def test_options_and_what_is_below_survive_a_push(router: Router) -> None:
    router.push(Fec(destination="10.0.2.0/24"), 100)
    options = [IPOption_NOP()] * 4
    expected = labels((100, 63)) / ip(ttl=63, options=options)
    assert router.one(ether(0x0800) / ip(options=options), port=EDGE) == sent(OUT, expected)


def test_four_labels_at_once(router: Router) -> None:
    tunnel = Hop(OUT.port, OUT.src_mac, OUT.dst_mac, ((201, 0), (202, 255), (203, 0)))
    router.push(Fec(destination="10.0.2.0/24"), 200, ttl=77, hop=tunnel)
    expected = labels((203, 255), (202, 255), (201, 77), (200, 77), tc=1) / ip(ttl=63, tos=0x20)
    assert router.one(ether(0x0800) / ip(tos=0x20), port=EDGE) == sent(OUT, expected)


def test_classes_come_before_prefixes_and_the_port_counts(router: Router) -> None:
    router.push(Fec(destination="10.0.0.0/16"), 16)
    router.push(Fec(destination="10.0.2.0/24"), 17)
    router.push(Fec(destination="10.0.2.1/32", source="10.0.1.0/24", protocol=17, diffserv=0x10), 18)
    router.push(Fec(ingress_port=5, priority=2000), 19)
    router.push(Fec(destination="10.0.3.0/24", ingress_port=6), 20)

    def label(packet: Packet, port: int = EDGE) -> int:
        return int(MPLS(router.one(ether(0x0800) / packet, port)[14:18]).label)

    assert label(ip(dst="10.0.7.1")) == 16
    assert label(ip()) == 17
    assert label(ip(tos=0x10)) == 18
    assert label(ip(tos=0x10), port=5) == 19
    assert label(ip(dst="10.0.3.1"), port=6) == 20
    assert label(ip(dst="10.0.3.1"), port=7) == 16


@pytest.mark.parametrize("ttl", [0, 1])
def test_ttl_expires_at_the_ingress(router: Router, ttl: int) -> None:
    router.push(Fec(destination="10.0.2.0/24"), 16)
    assert router.send(ether(0x0800) / ip(ttl=ttl), port=EDGE) == []
    assert router.count("ttl_expired") == 1


# ---- Swap ----


def test_swap_keeps_everything_but_label_and_ttl(router: Router) -> None:
    router.swap(1000, 0xFFFFF)
    packet = ether() / labels((1000, 40), (55, 7), tc=6) / ip(ttl=3)
    expected = labels((0xFFFFF, 39), (55, 7), tc=6) / ip(ttl=3)
    assert router.one(packet) == sent(OUT, expected)


def test_a_stack_deeper_than_what_is_read_is_switched_by_its_top(router: Router) -> None:
    router.swap(1000, 1001)
    below = [(label, 9) for label in range(20, 27)]
    expected = labels((1001, 39), *below) / ip()
    assert router.one(ether() / labels((1000, 40), *below) / ip()) == sent(OUT, expected)


def test_what_is_below_a_label_need_not_be_ip(router: Router) -> None:
    router.swap(1000, 1001)
    for payload in (b"\x00\x00\x00\x01frame", b"", b"\x45"):
        expected = sent(OUT, labels((1001, 39)) / Raw(payload))
        assert router.one(ether() / labels((1000, 40)) / Raw(payload)) == expected


def test_a_damaged_header_below_labels_stays_damaged(router: Router) -> None:
    router.swap(1000, None)
    damaged = bytearray(bytes(ip(ttl=9)))
    damaged[4] ^= 0x10
    data = router.one(ether() / labels((1000, 40)) / Raw(bytes(damaged)))
    inner = IP(data[14:])
    assert inner.ttl == 39
    correct = IP(bytes(inner))
    del correct.chksum
    assert IP(bytes(correct)).chksum != inner.chksum


def test_swap_and_push_into_a_tunnel(router: Router) -> None:
    router.swap(1000, 500, hop=Hop(OUT.port, OUT.src_mac, OUT.dst_mac, ((600, 0), (700, 255))))
    expected = labels((700, 255), (600, 29), (500, 29), tc=3) / ip()
    assert router.one(ether() / labels((1000, 30), tc=3) / ip()) == sent(OUT, expected)


@pytest.mark.parametrize("ttl", [0, 1])
def test_ttl_expires_on_the_way(router: Router, ttl: int) -> None:
    router.swap(1000, 1001)
    assert router.send(ether() / labels((1000, ttl)) / ip()) == []
    assert router.count("ttl_expired", LSP) == 1


# ---- Pop ----


@pytest.mark.parametrize(("uniform", "ttl"), [(True, 29), (False, 64)])
def test_penultimate_hop_popping_of_the_last_label(router: Router, uniform: bool, ttl: int) -> None:
    """Short pipe: the label's TTL is decremented and forgotten, the packet's own untouched (RFC 3443, section 3.3)."""
    router.swap(1000, None, uniform=uniform)
    expected = sent(OUT, ip(ttl=ttl), 0x0800)
    assert router.one(ether() / labels((1000, 30)) / ip(ttl=64)) == expected
    assert router.send(ether() / labels((1000, 1)) / ip(ttl=64)) == []


@pytest.mark.parametrize(("uniform", "ttl", "tc"), [(True, 29, 4), (False, 8, 1)])
def test_penultimate_hop_popping_of_an_outer_label(router: Router, uniform: bool, ttl: int, tc: int) -> None:
    router.swap(1000, None, uniform=uniform)
    packet = ether() / MPLS(label=1000, cos=4, s=0, ttl=30) / labels((55, 8), (56, 9), tc=1) / ip()
    expected = sent(OUT, MPLS(label=55, cos=tc, s=0, ttl=ttl) / labels((56, 9), tc=1) / ip())
    assert router.one(packet) == expected


@pytest.mark.parametrize(("uniform", "ttl"), [(True, 29), (False, 63)])
def test_the_egress_pops_and_routes(router: Router, uniform: bool, ttl: int) -> None:
    router.pop(1000, uniform=uniform)
    packet = ether() / labels((1000, 30)) / ip(ttl=64, dst="10.0.9.1")
    assert router.send(packet) == [(EDGE, sent(HOST, ip(ttl=ttl, dst="10.0.9.1"), 0x0800))]


@pytest.mark.parametrize(("uniform", "outer", "inner", "passes"), [
    (True, 2, 64, True),
    (True, 1, 64, False),
    (False, 1, 64, True),
    (False, 0, 64, False),
    (False, 64, 1, False),
    (True, 64, 1, True),
])  # fmt: skip
def test_ttl_expires_at_the_egress(router: Router, uniform: bool, outer: int, inner: int, passes: bool) -> None:
    router.pop(1000, uniform=uniform)
    out = router.send(ether() / labels((1000, outer)) / ip(ttl=inner, dst="10.0.9.1"))
    assert len(out) == int(passes)
    assert router.count("ttl_expired", LSP) == int(not passes)


def test_explicit_null_is_popped_like_a_label(router: Router) -> None:
    packet = ether() / labels((0, 20), tc=7) / ip(dst="10.0.9.1")
    assert router.send(packet) == [(EDGE, sent(HOST, ip(ttl=19, dst="10.0.9.1"), 0x0800))]


@pytest.mark.parametrize(("uniform", "ttl", "tc"), [(True, 29, 4), (False, 8, 1)])
def test_the_end_of_a_tunnel_switches_by_the_label_below(router: Router, uniform: bool, ttl: int, tc: int) -> None:
    router.pop(1000, uniform=uniform)
    router.swap(55, 66)
    packet = ether() / MPLS(label=1000, cos=4, s=0, ttl=30) / labels((55, 9), tc=1) / ip()
    assert router.one(packet) == sent(OUT, MPLS(label=66, cos=tc, s=1, ttl=ttl) / ip())


def test_three_tunnels_end_at_one_router(router: Router) -> None:
    for label in (1000, 1001, 1002):
        router.pop(label, uniform=False)
    router.swap(55, 66)
    packet = ether() / labels((1000, 30), (1001, 30), (1002, 30), (55, 9)) / ip()
    assert router.one(packet) == sent(OUT, labels((66, 8)) / ip())


# ---- Refusals ----


def test_labels_from_outside_and_unknown_ones_are_dropped(router: Router) -> None:
    router.swap(1000, 1001)
    assert router.send(ether() / labels((1000, 30)) / ip(), port=EDGE) == []
    assert router.send(bytes(ether()) + b"\0\0", port=EDGE) == [], "not even a label"
    assert router.send(ether() / labels((13, 255)) / Raw(b"\x10\0\x7f\xf8" + bytes(4)), port=EDGE) == [], "a notice"
    assert refused(router.client, EDGE) == 3
    for label in (999, 2, 3):
        assert router.send(ether() / labels((label, 30)) / ip()) == []
    assert router.count("unknown_label") == 3
    assert router.send(ether() / labels((13, 1)) / Raw(b"\x10\x00\x7f\xf8")) == []


def test_router_alert_goes_to_the_controller(router: Router) -> None:
    packet = bytes(ether() / labels((1, 30), (1000, 30)) / ip())
    assert router.send(packet) == [(510, (CORE << 7).to_bytes(2, "big") + packet)]


def test_events_from_outside_are_dropped(router: Router) -> None:
    for port in (EDGE, CORE):
        assert router.send(ether(0x88B5) / Raw(b"\0\3\0\0"), port=port) == []
    assert router.send(ether(0x88B5) / Raw(b"\0\3\1\0"), port=EDGE) == []
    assert router.count("malformed") == 1, "a router speaks of its own end of a link alone"
    assert refused(router.client, EDGE) == 2
    assert router.client.registers("MplsIngress.remote_defect.remote_defect", EDGE) == {EDGE: 0}


@pytest.mark.parametrize("damage", ["checksum", "version", "short", "not ip"])
def test_malformed_packets_are_counted(router: Router, damage: str) -> None:
    router.pop(1000)
    router.push(Fec(destination="10.0.2.0/24"), 16)
    data = bytearray(bytes(ip()))
    if damage == "checksum":
        data[10] ^= 1
    elif damage == "version":
        data[0] = 0x44
    elif damage == "short":
        del data[12:]
    else:
        data[0] = 0x60
    assert router.send(bytes(ether(0x0800)) + bytes(data), port=EDGE) == []
    assert router.count("malformed") == 1
    if damage != "checksum":  # which nobody looks at below labels
        assert router.send(bytes(ether() / labels((1000, 9))) + bytes(data)) == []
        assert router.count("malformed") == 2


def test_fewer_bytes_than_a_label(router: Router) -> None:
    assert router.send(bytes(ether()) + b"\0\0\0") == []
    assert router.count("malformed") == 1
