"""ICMP errors of the router: who gets which, about what none is sent, and how many there are."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from scapy.layers.inet import ICMP, IP, UDP, IPerror, IPOption_Router_Alert
from scapy.layers.inet6 import (
    ICMPv6EchoRequest,
    ICMPv6PacketTooBig,
    ICMPv6TimeExceeded,
    IPerror6,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
)
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from holdfast import SimulatedNetwork, Topology
from holdfast.apps.router import RouterController, compile_router
from holdfast.apps.router.controller import BURST, ERRORS_PER_S
from holdfast.control.icmp_errors import Addresses, time_exceeded
from holdfast.errors import NetworkError
from holdfast.topologies import load

HOST, ROUTER = IPv4Address("10.0.1.1"), IPv4Address("10.0.1.254")
HOST_V6, ROUTER_V6 = IPv6Address("2001:db8:1::1"), IPv6Address("2001:db8:1::ff")


def of(packet: Packet, **ethernet: str) -> Packet | None:
    """Return the error about a packet as Scapy reads it."""
    source = ROUTER if isinstance(packet, IP) else ROUTER_V6
    found = time_exceeded(bytes(Ether(dst="02:01:00:01:00:01", **ethernet) / packet), source)
    return None if found is None else Ether(found)


def checked(error: Packet) -> Packet:
    """Check the checksums of an error: Scapy computes them anew if they are left out."""
    again = error.copy()
    for layer, field in ((IP, "chksum"), (ICMP, "chksum"), (ICMPv6TimeExceeded, "cksum")):
        if layer in again:
            again[layer].delfieldval(field)
    assert bytes(again) == bytes(error)
    return error


@pytest.mark.parametrize("size", [0, 1, 7, 8, 63, 64, 511, 520, 521, 1400])
@pytest.mark.parametrize("options", [[], [IPOption_Router_Alert()]])
def test_it_contains_what_fits_of_the_packet(size: int, options: list[object]) -> None:
    sent = IP(
        bytes(IP(src=str(HOST), dst="10.0.9.1", ttl=1, options=options) / UDP(sport=5, dport=6) / Raw(bytes(size)))
    )
    error = of(sent)
    assert error is not None
    checked(error)
    assert (error[IP].src, error[IP].dst, error[IP].tos, error[IP].ttl) == (str(ROUTER), str(HOST), 0xC0, 64)
    assert (error[ICMP].type, error[ICMP].code) == (11, 0)
    assert bytes(error[ICMP])[8:] == bytes(sent)[: 576 - 28]
    assert error[IPerror].dst == "10.0.9.1"
    assert len(error[IP]) <= 576


@pytest.mark.parametrize("size", [0, 9, 1183, 1184, 1185, 1400])
def test_it_contains_what_fits_of_the_ipv6_packet(size: int) -> None:
    sent = IPv6(bytes(IPv6(src=str(HOST_V6), dst="2001:db8:9::1", hlim=1) / UDP() / Raw(bytes(size))))
    error = of(sent)
    assert error is not None
    checked(error)
    assert (error[IPv6].src, error[IPv6].dst) == (str(ROUTER_V6), str(HOST_V6))
    assert (error[ICMPv6TimeExceeded].code, error[IPerror6].dst) == (0, "2001:db8:9::1")
    assert bytes(error[ICMPv6TimeExceeded])[8:] == bytes(sent)[: 1280 - 48]
    assert len(error[IPv6]) <= 1280


V4, V6 = IP(src=str(HOST), dst="10.0.9.1", ttl=1), IPv6(src=str(HOST_V6), dst="2001:db8:9::1", hlim=1)


@pytest.mark.parametrize(
    "packet",
    [
        V4 / ICMP(type="echo-request"),
        V4 / ICMP(type="echo-reply"),
        V4 / ICMP(type="timestamp-request"),
        IP(src=str(HOST), dst="10.0.9.1", ttl=1, flags="MF") / UDP() / Raw(bytes(8)),
        V6 / ICMPv6EchoRequest(),
        V6 / IPv6ExtHdrDestOpt() / UDP(),
        V6 / IPv6ExtHdrFragment(offset=0, m=1) / UDP(),
    ],
)
def test_queries_and_first_fragments_are_answered(packet: Packet) -> None:
    error = of(packet)
    assert error is not None
    checked(error)


@pytest.mark.parametrize(
    "packet",
    [
        *(V4 / ICMP(type=kind) / Raw(bytes(28)) for kind in (3, 4, 5, 11, 12, 41, 200)),
        IP(src=str(HOST), dst="10.0.9.1", ttl=1, frag=1) / Raw(bytes(8)),
        IP(src=str(HOST), dst="10.0.9.1", ttl=1, proto=1, len=20),
        *(IP(src=str(HOST), dst=to, ttl=1) / UDP() for to in ("224.0.0.1", "239.1.2.3", "255.255.255.255", "0.0.0.0")),
        *(IP(src=by, dst="10.0.9.1", ttl=1) / UDP() for by in ("0.0.0.0", "127.0.0.1", "224.0.0.5", "255.255.255.255")),
        *(
            IPv6(src=str(HOST_V6), dst="2001:db8:9::1", nh=58) / Raw(bytes((k, 0, 0, 0)))
            for k in (1, 2, 3, 4, 100, 137)
        ),
        V6 / IPv6ExtHdrDestOpt(nh=58) / Raw(bytes((3, 0, 0, 0))),
        V6 / IPv6ExtHdrFragment(offset=1, nh=17) / Raw(bytes(8)),
        IPv6(src="::", dst="2001:db8:9::1") / UDP(),
        IPv6(src="ff02::1", dst="2001:db8:9::1") / UDP(),
        IPv6(src=str(HOST_V6), dst="ff02::1") / UDP(),
    ],
)
def test_there_is_no_error_about(packet: Packet) -> None:
    assert of(packet) is None


def test_there_is_no_error_about_a_frame_to_many() -> None:
    for mac in ("ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01"):
        frame = bytes(Ether(dst=mac) / V4 / UDP())
        assert time_exceeded(frame, ROUTER) is None


def test_any_cut_packet_is_no_fault() -> None:
    """Check all beginnings of packets, with lengths in them that are too long or wrong."""
    for packet in (V4 / UDP() / Raw(bytes(20)), V6 / IPv6ExtHdrDestOpt() / IPv6ExtHdrFragment() / UDP()):
        whole = bytes(Ether() / packet)
        for size in range(len(whole)):
            assert time_exceeded(whole[:size], ROUTER if isinstance(packet, IP) else ROUTER_V6) is None
        for at in range(14, len(whole)):
            broken = whole[:at] + bytes((whole[at] ^ 0xFF,)) + whole[at + 1 :]
            time_exceeded(broken, ROUTER if isinstance(packet, IP) else ROUTER_V6)


def test_addresses_of_routers() -> None:
    topology = Topology("t")
    topology.add_switch("s1")
    topology.add_switch("s2")
    topology.add_host("h1", "10.0.1.1/24", ipv6="2001:db8:1::1/64")
    topology.add_host("h2", "10.255.0.7/24", ipv6="fdff::77/64")
    topology.add_link("h1", "s1", b_port=1)
    topology.add_link("s1", "s2", a_port=2, b_port=2)
    topology.add_link("h2", "s2", b_port=1)
    addresses = Addresses(topology)
    assert addresses.of("s1", 1, 4) == topology.hosts["h1"].gateway
    assert addresses.of("s1", 2, 4) == ip_address("192.0.0.8"), "a host has 10.255.0.1's subnet"
    assert addresses.of("s1", 2, 6) is None


class Path:
    """A line of routers between two hosts, and what comes back to the first."""

    def __init__(self, *, answers: bool = True, mtu: int | None = None) -> None:
        self.topology = _line(mtu)
        controller = RouterController(reroute=True, reaction_delay_ms=1, icmp_errors=answers)
        program = compile_router({"ROUTER_MTU" if mtu else "ROUTER_ICMP": "1"})
        self.network = SimulatedNetwork(self.topology, program, [controller], seed=1)
        self.came: list[Packet] = []
        self.network.add_frame_listener("h1", lambda _, frame: self.came.append(Ether(frame)))
        self.network.run(1)

    def send(self, make: Callable[[], Packet], count: int = 1) -> list[Packet]:
        self.came.clear()
        h1 = self.topology.hosts["h1"]
        gateway = self.topology.port_mac("s1", 1).hex(":")
        for _ in range(count):
            self.network.send_frame("h1", bytes(Ether(src=h1.mac.hex(":"), dst=gateway) / make()))
        self.network.run(self.network.now_ps / 1e12 + 1)
        return list(self.came)


def _line(mtu: int | None) -> Topology:
    topology = Topology("line")
    for name in ("s1", "s2", "s3"):
        topology.add_switch(name)
    for name, at in (("h1", "s1"), ("h2", "s3")):
        topology.add_host(name)
        topology.add_link(name, at, b_port=1)
    topology.add_link("s1", "s2", a_port=2, b_port=2, delay_ms=1)
    topology.add_link("s2", "s3", a_port=3, b_port=3, delay_ms=1, mtu_bytes=mtu)
    topology.add_ipv6()
    return topology


def test_a_path_hop_by_hop() -> None:
    path = Path()
    h1, h2 = path.topology.hosts["h1"], path.topology.hosts["h2"]
    hops = []
    for ttl in (1, 2, 3):
        (answer,) = path.send(lambda ttl=ttl: IP(src=str(h1.address.ip), dst=str(h2.address.ip), ttl=ttl) / UDP())  # type: ignore[misc]
        assert answer[ICMP].type == 11
        assert answer.dst == h1.mac.hex(":")
        assert answer[IP].ttl == 64 - ttl
        hops.append(answer[IP].src)
    assert hops == [str(h1.gateway), "10.255.0.2", "10.255.0.3"]
    assert h1.ipv6 is not None and h2.ipv6 is not None
    hops = []
    for limit in (1, 2, 3):
        packet = IPv6(src=str(h1.ipv6.ip), dst=str(h2.ipv6.ip), hlim=limit) / UDP()
        (answer,) = path.send(lambda packet=packet: packet)  # type: ignore[misc]
        hops.append(answer[IPv6].src)
    assert hops == ["fdff::1", "fdff::2", "fdff::3"]


def test_nobody_answers_unless_it_is_wanted() -> None:
    path = Path(answers=False)
    h1, h2 = path.topology.hosts["h1"], path.topology.hosts["h2"]
    assert path.send(lambda: IP(src=str(h1.address.ip), dst=str(h2.address.ip), ttl=1) / UDP()) == []


def test_errors_are_few() -> None:
    """Check that a flood of expired packets has the burst answered, and what the rate allows meanwhile."""
    path = Path()
    h1, h2 = path.topology.hosts["h1"], path.topology.hosts["h2"]
    answers = path.send(lambda: IP(src=str(h1.address.ip), dst=str(h2.address.ip), ttl=1) / UDP(), count=500)
    assert BURST <= len(answers) <= BURST + ERRORS_PER_S // 10
    path.network.run(path.network.now_ps / 1e12 + 1)
    assert len(path.send(lambda: IP(src=str(h1.address.ip), dst=str(h2.address.ip), ttl=1) / UDP())) == 1


def test_an_error_that_expires_is_not_answered() -> None:
    path = Path()
    h1, h2 = path.topology.hosts["h1"], path.topology.hosts["h2"]
    error = IP(src=str(h1.address.ip), dst=str(h2.address.ip), ttl=1) / ICMP(type=11) / Raw(bytes(28))
    assert path.send(lambda: error) == []


def test_the_sender_learns_what_is_too_long() -> None:
    """Check both IP versions at the border of the MTU, and that the packet is quoted as it was sent to that router."""
    path = Path(mtu=1000)
    h1, h2 = path.topology.hosts["h1"], path.topology.hosts["h2"]
    assert h1.ipv6 is not None and h2.ipv6 is not None

    def v4(size: int, flags: str = "DF", ttl: int = 64) -> Packet:
        return IP(src=str(h1.address.ip), dst=str(h2.address.ip), flags=flags, ttl=ttl) / UDP() / Raw(bytes(size - 28))

    def v6(size: int) -> Packet:
        return IPv6(src=str(h1.ipv6.ip), dst=str(h2.ipv6.ip)) / UDP() / Raw(bytes(size - 48))  # type: ignore[union-attr]

    for make in (v4, v6):
        assert path.send(lambda make=make: make(1000)) == []  # type: ignore[misc]
        assert len(path.send(lambda make=make: make(1001))) == 1  # type: ignore[misc]
    assert path.send(lambda: v4(1001, flags="")) == [], "it would have to be cut"
    (answer,) = path.send(lambda: v4(1400))
    assert (answer[IP].src, answer[ICMP].type, answer[ICMP].code, answer[ICMP].nexthopmtu) == ("10.255.0.2", 3, 4, 1000)
    assert answer[IPerror].ttl == 63
    assert answer[IPerror].chksum == IP(bytes(IP(bytes(v4(1400, ttl=63))))).chksum
    checked(answer)
    (answer,) = path.send(lambda: v6(1400))
    assert (answer[IPv6].src, answer[ICMPv6PacketTooBig].mtu, answer[IPerror6].hlim) == ("fdff::2", 1000, 63)
    (answer,) = path.send(lambda: v4(1400, ttl=2))
    assert answer[ICMP].type == 11, "time exceeded comes first"
    counted = path.network.client("s2").counters("RouterIngress.mtu_exceeded")
    assert counted[0][0] == 5


def test_a_program_that_answers_nothing_is_refused() -> None:
    with pytest.raises(
        NetworkError, match=r"^switch s1: its program answers nothing; compile router\.p4 with ROUTER_ICMP$"
    ):
        SimulatedNetwork(
            load("ring:3"), compile_router(), [RouterController(reroute=True, reaction_delay_ms=1, icmp_errors=True)]
        )
