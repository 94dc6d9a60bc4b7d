"""One plane, packet by packet: sessions both ways, control, spoofed and broken packets, MSS, usage and rates."""

from __future__ import annotations

import dataclasses
import queue
import time
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.dhcp6 import DHCP6_Solicit
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_NOP
from scapy.layers.inet6 import ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RS, ICMPv6NDOptSrcLLAddr, IPv6
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.layers.ppp import PPP, PPPoE
from scapy.packet import Packet, Raw

from holdfast._core import Program
from holdfast.apps.bng.conftest import (
    ACCESS,
    ACCESS_QINQ,
    CORE,
    CORE_MAC,
    EDGES,
    GATEWAY_MAC,
    LIMITED,
    QINQ_MAC,
    ROUTER_MAC,
    Bench,
    discovery,
    down,
    lcp,
    on_line,
    session,
    up,
)
from holdfast.apps.bng.edges import ControlRates, Rate
from holdfast.apps.bng.program import Variant
from holdfast.apps.bng.sessions import CHUNK
from holdfast.apps.bng.single import SinglePlane
from holdfast.errors import HoldfastError, NetworkError
from holdfast.p4runtime import GrpcClient, Server
from holdfast.subscribers.plane import Line, Rates, Session, Usage

LINES = {
    "untagged": Line(ACCESS),
    "one tag": Line(ACCESS, 100),
    "two tags": Line(ACCESS, 100, 7),
    "802.1ad": Line(ACCESS_QINQ, 4094, 1),
}
SERVER, SERVER_V6 = "198.51.100.9", "2001:db8:5::9"


def v4(of: Session, payload: Packet | None = None, **fields: object) -> Packet:
    rest = payload or UDP(sport=1000, dport=2000) / Raw(b"x" * 50)
    return IP(**({"src": str(of.ipv4), "dst": SERVER, "ttl": 64, "tos": 0xB8} | fields)) / rest


def v6(of: Session, payload: Packet | None = None, **fields: object) -> Packet:
    assert of.ipv6_prefix is not None
    rest = payload or UDP(sport=1000, dport=2000) / Raw(b"x" * 50)
    return IPv6(**({"src": str(of.ipv6_prefix[5]), "dst": SERVER_V6, "hlim": 64, "tc": 0xB8} | fields)) / rest


def to_v4(of: Session, payload: Packet | None = None, **fields: object) -> Packet:
    return v4(of, payload, **({"src": SERVER, "dst": str(of.ipv4)} | fields))


def to_v6(of: Session, payload: Packet | None = None, **fields: object) -> Packet:
    assert of.ipv6_prefix is not None
    return v6(of, payload, **({"src": SERVER_V6, "dst": str(of.ipv6_prefix[5])} | fields))


@pytest.fixture(params=LINES, ids=lambda name: name.replace(" ", "-"))
def line(request: pytest.FixtureRequest) -> Line:
    return LINES[request.param]


def test_ipv4_of_a_session_goes_to_the_core_and_back(bench: Bench, line: Line) -> None:
    one = session(77, line)
    bench.plane.install([one])
    sent = bench.receive(line.port, up(one, v4(one)))
    assert sent == [(CORE, bytes(Ether(src=CORE_MAC, dst=ROUTER_MAC) / v4(one, ttl=63)))]
    mac = one.mac.hex(":")
    sent = bench.receive(CORE, down(to_v4(one)))
    gateway = QINQ_MAC if line.port == ACCESS_QINQ else GATEWAY_MAC
    frame = Ether(src=gateway, dst=mac, type=0x8864) / PPPoE(sessionid=77) / PPP(proto=0x21) / to_v4(one, ttl=63)
    assert sent == [(line.port, on_line(line, frame, 0x88A8 if line.port == ACCESS_QINQ else 0x8100))]


def test_ipv6_of_a_session_goes_to_the_core_and_back(bench: Bench, line: Line) -> None:
    one = session(78, line)
    assert one.delegated is not None
    bench.plane.install([one])
    for address in (str(one.ipv6_prefix[9]), str(one.delegated[2**70 + 9])):  # type: ignore[index]
        sent = bench.receive(line.port, up(one, v6(one, src=address)))
        assert sent == [(CORE, bytes(Ether(src=CORE_MAC, dst=ROUTER_MAC) / v6(one, src=address, hlim=63)))]
        sent = bench.receive(CORE, down(to_v6(one, dst=address)))
        gateway = QINQ_MAC if line.port == ACCESS_QINQ else GATEWAY_MAC
        frame = (
            Ether(src=gateway, dst=one.mac.hex(":"), type=0x8864)
            / PPPoE(sessionid=78)
            / PPP(proto=0x57)
            / to_v6(one, dst=address, hlim=63)
        )
        assert sent == [(line.port, on_line(line, frame, 0x88A8 if line.port == ACCESS_QINQ else 0x8100))]


def test_the_checksum_follows_the_hop_count(fast_bench: Callable[..., Bench]) -> None:
    bench, one = fast_bench(), session(1)
    bench.plane.install([one])
    for ttl in range(2, 256):
        for number in (0, ttl * 251 % 65536, 0xFFFF):
            [(_, frame)] = bench.receive(ACCESS, up(one, v4(one, ttl=ttl, id=number)))
            assert frame[14:] == bytes(v4(one, ttl=ttl - 1, id=number))


def test_a_padded_frame_counts_its_ip_bytes(bench: Bench) -> None:
    one = session(3)
    bench.plane.install([one])
    bench.receive(ACCESS, up(one, v4(one, UDP() / b"")) + bytes(30))
    bench.receive(CORE, down(to_v6(one, UDP() / b"")) + bytes(10))
    bench.receive(CORE, down(to_v4(one, UDP() / b"xyz")))
    assert bench.plane.usage([3]) == {3: Usage(1, 28, 2, 48 + 31)}


def test_bytes_behind_a_packet_end_at_the_gateway(bench: Bench, line: Line) -> None:
    """Each byte that leaves behind the headers of its link is one of usage, whatever followed the packet."""
    one = session(5, line)
    bench.plane.install([one])
    left = {"up": 0, "down": 0}
    for trailer in (b"", b"\0", bytes(17), b"x" * 1000):
        for payload in (b"", b"p" * 50, b"p" * (1492 - 48)):
            for packet in (v4(one, UDP() / payload), v6(one, UDP() / payload)):
                inside = up(one, packet)
                for frame in (inside + trailer, with_padding(inside, len(bytes(packet)), trailer)):
                    [(_, sent)] = bench.receive(line.port, frame)
                    assert len(sent) == 14 + len(bytes(packet))
                    left["up"] += len(sent) - 14
            for packet in (to_v4(one, UDP() / payload), to_v6(one, UDP() / payload)):
                [(_, sent)] = bench.receive(CORE, down(packet) + trailer)
                head = 14 + 8 + 4 * (bool(line.s_tag) + bool(line.c_tag))
                assert len(sent) == head + len(bytes(packet))
                left["down"] += len(sent) - head
    used = bench.plane.usage([5])[5]
    assert (used.bytes_up, used.bytes_down) == (left["up"], left["down"])


def with_padding(frame: bytes, packet_bytes: int, padding: bytes) -> bytes:
    """Return ``frame`` with PPP padding (RFC 1661, section 2) that the length in the PPPoE header includes."""
    at = len(frame) - packet_bytes - 4
    return frame[:at] + (2 + packet_bytes + len(padding)).to_bytes(2) + frame[at + 2 :] + padding


def test_options_of_ipv4_are_kept(bench: Bench) -> None:
    one = session(4)
    bench.plane.install([one])
    packet = v4(one, options=[IPOption_NOP()] * 8, ttl=9)
    [(_, frame)] = bench.receive(ACCESS, up(one, packet))
    assert frame[14:] == bytes(v4(one, options=[IPOption_NOP()] * 8, ttl=8))


# ---- Control ----


def test_discovery_and_ppp_reach_the_control_plane_without_tags(bench: Bench, line: Line) -> None:
    mac = "02:aa:00:00:00:01"
    one = session(9, line)
    frames = [
        (discovery(line, 0x09, mac), Line(line.port)),
        (discovery(line, 0x19, mac), Line(line.port)),
        (discovery(line, 0xA7, mac, 5), Line(line.port)),
    ]
    for protocol in (0xC021, 0xC023, 0xC223, 0x8021, 0x8057, 0x80FD):
        body = b"\x01\x01\x00\x04"
        frames.append((up(one, Raw(body), protocol=protocol), line))
    for frame, _ in frames:
        assert bench.reason(line.port, frame) == "passes"
    assert [where for where, _ in bench.heard] == [line] * len(frames)
    tags = 4 * (bool(line.s_tag) + bool(line.c_tag))
    assert [frame for _, frame in bench.heard] == [frame[:12] + frame[12 + tags :] for frame, _ in frames]


def test_a_frame_of_the_control_plane_gets_the_tags_of_its_line(bench: Bench, line: Line) -> None:
    frame = Ether(src=GATEWAY_MAC, dst="02:aa:00:00:00:01", type=0x8863) / PPPoE(code=7) / b"\x01\x01\x00\x00"
    bench.plane.send(line, bytes(frame))
    assert bench.sent == [(line.port, on_line(line, frame, 0x88A8 if line.port == ACCESS_QINQ else 0x8100))]


def test_an_echo_is_answered_in_the_data_plane(bench: Bench, line: Line) -> None:
    one = session(10, line)
    bench.plane.install([one])
    request = up(one, lcp(9, 0xCAFE, b"data"))
    [(port, reply)] = bench.receive(line.port, request)
    expected = up(one, lcp(10, one.magic, b"data"))
    assert port == line.port and reply == expected[6:12] + expected[:6] + expected[12:]
    assert not bench.heard and bench.plane.echoes() == 1
    # Our own number comes back: the line is a loop.
    assert bench.receive(line.port, up(one, lcp(9, one.magic))) == []
    # Replies, and requests of sessions that are being set up, are for the control plane.
    bench.receive(line.port, up(one, lcp(10, 0xCAFE)))
    bench.receive(line.port, up(session(11, line), lcp(9, 0xCAFE)))
    assert len(bench.heard) == 3 and bench.plane.echoes() == 1


def test_echoes_that_cannot_be_have_no_answer(bench: Bench) -> None:
    one = session(10)
    bench.plane.install([one])
    assert bench.reason(ACCESS, up(one, Raw(b"\x09\x01\x00\x07\x00\x00\x00\x01"))) == "malformed"
    assert bench.reason(ACCESS, up(one, Raw(b"\x09\x01\x00\x09\x00\x00\x00\x01"))) == "malformed"
    assert bench.reason(ACCESS, up(one, Raw(b"\x09\x01\x00\x08\x00\x00\x01"))) == "truncated"
    assert bench.reason(ACCESS, up(one, lcp(9, 1), mac="02:00:00:00:00:77")) == "wrong_mac"


def test_router_discovery_and_dhcpv6_of_sessions(bench: Bench) -> None:
    one = session(12)
    bench.plane.install([one])
    local = "fe80::c"
    packets = [
        IPv6(src=local, dst="ff02::2", hlim=255) / ICMPv6ND_RS(),
        IPv6(src="::", dst="ff02::2", hlim=255) / ICMPv6ND_RS(),
        IPv6(src=local, dst="fe80::1", hlim=255) / ICMPv6ND_NS(tgt="fe80::1"),
        IPv6(src=local, dst="fe80::1", hlim=255) / ICMPv6ND_NA(tgt=local),
        IPv6(src=local, dst="ff02::1:2", hlim=1) / UDP(sport=546, dport=547) / DHCP6_Solicit(),
    ]
    for packet in packets:
        assert bench.reason(ACCESS, up(one, packet)) == "passes"
    assert len(bench.heard) == len(packets)
    spoofed = IPv6(src="fe80::d", dst="ff02::2", hlim=255) / ICMPv6ND_RS()
    assert bench.reason(ACCESS, up(one, spoofed)) == "spoofed_address"


def test_the_core_learns_our_addresses_and_those_of_sessions(bench: Bench) -> None:
    one = session(13)
    bench.plane.install([one])
    for address in ("192.0.2.1", str(one.ipv4)):
        request = Ether(src=ROUTER_MAC, dst="ff:ff:ff:ff:ff:ff") / ARP(
            op=1, hwsrc=ROUTER_MAC, psrc="192.0.2.254", pdst=address
        )
        [(port, frame)] = bench.receive(CORE, bytes(request))
        reply = Ether(frame)
        assert (port, reply.dst, reply.src) == (CORE, ROUTER_MAC, CORE_MAC)
        assert (reply[ARP].op, reply[ARP].hwsrc, reply[ARP].psrc, reply[ARP].pdst) == (
            2,
            CORE_MAC,
            address,
            "192.0.2.254",
        )
    stranger = Ether(src=ROUTER_MAC, dst="ff:ff:ff:ff:ff:ff") / ARP(op=1, psrc="192.0.2.254", pdst="192.0.2.7")
    assert bench.receive(CORE, bytes(stranger)) == []
    for target in ("2001:db8:ffff::1", str(one.ipv6_prefix[5]), str(one.delegated[5])):  # type: ignore[index]
        request = (
            Ether(src=ROUTER_MAC, dst="33:33:ff:00:00:01")
            / IPv6(src="2001:db8:ffff::2", dst="ff02::1:ff00:1", hlim=255)
            / ICMPv6ND_NS(tgt=target)
            / ICMPv6NDOptSrcLLAddr(lladdr=ROUTER_MAC)
        )
        [(port, frame)] = bench.receive(CORE, bytes(request))
        answer = Ether(frame)
        assert (port, answer.dst, answer[ICMPv6ND_NA].tgt, answer[ICMPv6ND_NA].lladdr) == (
            CORE,
            ROUTER_MAC,
            target,
            CORE_MAC,
        )
        checked = IPv6(bytes(answer[IPv6]))
        sum_ = checked[ICMPv6ND_NA].cksum
        del checked[ICMPv6ND_NA].cksum
        assert IPv6(bytes(checked))[ICMPv6ND_NA].cksum == sum_
    broken = bytearray(bytes(request))
    broken[-1] ^= 1
    assert bench.receive(CORE, bytes(broken)) == []


# ---- Dropped packets ----


def test_reasons_of_a_line(bench: Bench) -> None:
    one, other = session(20), session(21)
    bench.plane.install([one, other])
    assert bench.reason(ACCESS, up(one, v4(one))) == "passes"
    cases = {
        "unknown_port": None,
        "unknown_session": up(one, v4(one), number=22),
        "wrong_line": up(one, v4(one), line=other.line),
        "wrong_mac": up(one, v4(one), mac=other.mac.hex(":")),
        "other_gateway": up(one, v4(one), dst="02:00:00:00:00:77"),
        "spoofed_address": up(one, v4(one, src=str(other.ipv4))),
        "bogus_address": up(one, v4(one, dst="224.0.0.22")),
        "ttl_expired": up(one, v4(one, ttl=1)),
        "bad_checksum": up(one, v4(one, chksum=0x1234)),
        "too_big": up(one, v4(one, UDP() / bytes(1473))),
    }
    for reason, frame in cases.items():
        if frame is not None:
            assert bench.reason(ACCESS, frame) == reason
    assert bench.reason(5, up(one, v4(one))) == "unknown_port"
    assert bench.reason(ACCESS, up(one, v4(one, dst="255.255.255.255"))) == "bogus_address"
    assert bench.reason(ACCESS, up(one, v6(one, src=str(other.ipv6_prefix[1])))) == "spoofed_address"  # type: ignore[index]
    assert bench.reason(ACCESS, up(one, v6(one, src="fe80::14"))) == "spoofed_address"
    assert bench.reason(ACCESS, up(one, v6(one, ICMPv6EchoRequest(), dst="ff02::1"))) == "bogus_address"
    assert bench.reason(ACCESS, up(one, v6(one, dst="fe80::1"))) == "bogus_address"
    assert bench.reason(ACCESS, up(one, v6(one, hlim=1))) == "ttl_expired"
    assert bench.reason(ACCESS, up(one, v4(one))[:-1]) == "truncated"
    assert bench.reason(ACCESS, up(one, v4(one))[:30]) == "truncated"
    assert bench.reason(ACCESS, up(one, Raw(b"\x55" + bytes(v4(one))[1:]), protocol=0x21)) == "malformed"
    assert bench.reason(ACCESS, up(one, v4(one, len=19))) == "malformed"
    assert bench.reason(ACCESS, discovery(one.line, 0x07, "02:00:00:00:00:33")) == "malformed"
    assert bench.reason(ACCESS, discovery(one.line, 0x09, "02:00:00:00:00:33", 1)) == "malformed"
    assert bench.reason(ACCESS, discovery(one.line, 0x09, "03:00:00:00:00:33")) == "malformed"
    assert bench.reason(ACCESS, discovery(one.line, 0xA7, "02:00:00:00:00:33", 20)) == "wrong_mac"
    assert bench.reason(ACCESS, discovery(Line(ACCESS, 4095), 0x09, "02:00:00:00:00:33")) == "bad_tags"
    assert bench.reason(ACCESS, discovery(Line(ACCESS, 0, 5), 0x09, "02:00:00:00:00:33")) == "bad_tags"
    assert bench.reason(ACCESS, down(v4(one))) == "ethertype"
    assert not bench.heard


def test_reasons_of_the_core(bench: Bench) -> None:
    one = session(20, peer_mru=1000)
    bench.plane.install([one])
    assert bench.reason(CORE, down(to_v4(one, UDP() / bytes(972)))) == "passes"
    assert bench.reason(CORE, down(to_v4(one, UDP() / bytes(973)))) == "too_big"
    assert bench.reason(CORE, down(to_v6(one, UDP() / bytes(952)))) == "passes"
    assert bench.reason(CORE, down(to_v6(one, UDP() / bytes(953)))) == "too_big"
    assert bench.reason(CORE, down(to_v4(one, dst="10.9.9.9"))) == "no_subscriber"
    assert bench.reason(CORE, down(to_v6(one, dst="2001:db8:1:15::1"))) == "no_subscriber"
    assert bench.reason(CORE, down(to_v4(one), mac=GATEWAY_MAC)) == "other_gateway"
    assert bench.reason(CORE, down(to_v4(one, ttl=1))) == "ttl_expired"
    assert bench.reason(CORE, down(to_v4(one))[:-1]) == "truncated"
    assert bench.reason(CORE, up(one, v4(one))) == "ethertype"
    assert bench.reason(CORE, bytes(Ether(src=ROUTER_MAC, dst=CORE_MAC, type=0x88CC) / bytes(46))) == "ethertype"


SOURCES = {
    "0.0.0.0": False, "0.1.2.3": False, "127.0.0.1": False, "224.0.0.1": False, "239.9.9.9": False, "240.0.0.1": False,
    "255.255.255.255": False, "1.0.0.1": True, "126.255.255.255": True, "128.0.0.1": True, "223.255.255.254": True,
    "::": False, "::1": False, "::ffff:1.2.3.4": False, "fe80::1": False, "febf::1": False, "ff02::1": False, "ff0e::9": False,
    "fec0::1": True, "fe7f::1": True, "fd00::1": True, "2001:db8::1": True,
}  # fmt: skip


@pytest.mark.parametrize("source", SOURCES)
def test_what_no_router_forwards_reaches_no_subscriber(bench: Bench, source: str) -> None:
    one = session(21)
    bench.plane.install([one])
    packet = to_v6(one, src=source) if ":" in source else to_v4(one, src=source)
    assert bench.reason(CORE, down(packet)) == ("passes" if SOURCES[source] else "bogus_address")
    assert bench.plane.usage([21])[21].packets_down == SOURCES[source]


def test_a_session_has_what_it_has_negotiated(bench: Bench) -> None:
    four = session(30, ipv6_interface=None, ipv6_prefix=None, delegated=None)
    six = session(31, ipv4=None)
    bench.plane.install([four, six])
    assert bench.reason(ACCESS, up(four, v4(four))) == "passes"
    assert bench.reason(ACCESS, up(four, v6(six))) == "not_negotiated"
    assert bench.reason(ACCESS, up(six, v4(four))) == "not_negotiated"
    assert bench.reason(ACCESS, up(six, v6(six))) == "passes"
    assert bench.reason(ACCESS, up(six, v6(six, src="::1"))) == "spoofed_address"


# ---- MSS ----


def syn(mss: int | None, before: list[tuple[str, object]], flags: str = "S") -> TCP:
    options = [*before, *([("MSS", mss)] if mss is not None else [])]
    return TCP(sport=40000, dport=443, seq=1, flags=flags, options=options)


LAYOUTS: list[list[tuple[str, object]]] = [
    [],
    [("NOP", None)],
    [("NOP", None)] * 3,
    [("SAckOK", b"")],
    [("Timestamp", (1, 2)), ("NOP", None), ("WScale", 7)],
    [("NOP", None)] * 36,
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=range(len(LAYOUTS)))
@pytest.mark.parametrize("mss", [536, 1452, 1453, 1460, 8960, 65535])
def test_the_mss_is_lowered_to_what_fits(bench: Bench, layout: list[tuple[str, object]], mss: int) -> None:
    one = session(40)
    bench.plane.install([one])
    for version, most in ((4, 1452), (6, 1432)):
        make_up, make_down, hop = (v4, to_v4, "ttl") if version == 4 else (v6, to_v6, "hlim")
        for flags in ("S", "SA"):
            for payload in (b"", b"early data"):
                sent, expected = (syn(value, layout, flags) / payload for value in (mss, min(mss, most)))
                [(_, frame)] = bench.receive(ACCESS, up(one, make_up(one, sent)))
                assert frame[14:] == bytes(make_up(one, expected, **{hop: 63}))
                [(_, frame)] = bench.receive(CORE, down(make_down(one, sent)))
                assert frame.endswith(bytes(make_down(one, expected, **{hop: 63})))


def test_segments_without_a_readable_mss_pass_as_they_are(bench: Bench) -> None:
    one, free = session(41), session(42, mss_clamp=False)
    bench.plane.install([one, free])

    def passed(of: Session, segment: Packet, **fields: object) -> int:
        before = bench.client.counter("unparsed", 0)[0]
        [(_, frame)] = bench.receive(ACCESS, up(of, v4(of, segment, **fields)))
        assert frame[14:] == bytes(v4(of, segment, **fields, ttl=63))
        return bench.client.counter("unparsed", 0)[0] - before

    def raw(options: bytes, flags: int = 2) -> Packet:
        header = b"\x9c\x40\x01\xbb" + bytes(8) + bytes(((20 + len(options)) // 4 << 4, flags)) + bytes(6)
        return Raw(header + options)

    assert passed(one, syn(None, [])) == 0
    assert passed(one, syn(None, [("SAckOK", b"")])) == 0
    assert passed(one, syn(9000, [], "A")) == 0
    assert passed(free, syn(9000, [])) == 0
    assert passed(one, syn(9000, []), frag=5, proto=6) == 0
    assert passed(one, raw(b"\x02\x03\x23\x28"), proto=6) == 1  # an MSS of another length
    assert passed(one, raw(b"\x08\x00\x23\x28"), proto=6) == 1  # an option without a length
    assert passed(one, raw(b"\x08\x01\x23\x28"), proto=6) == 1
    assert passed(one, raw(b"\x01\x02\x04\x23") / Raw(b"\x28more"), proto=6) == 1  # the value is beyond the header
    assert passed(one, raw(b"\x05\x28\x02\x04"), proto=6) == 0  # an option beyond the header hides it
    assert passed(one, Raw(b"\x9c\x40\x01\xbb" + bytes(8) + b"\x40\x02" + bytes(6)), proto=6) == 1


def test_the_mss_behind_options_of_ipv4(bench: Bench) -> None:
    one = session(43)
    bench.plane.install([one])
    options = [IPOption_NOP()] * 4
    [(_, frame)] = bench.receive(ACCESS, up(one, v4(one, syn(9000, []), options=options)))
    assert frame[14:] == bytes(v4(one, syn(1452, []), options=options, ttl=63))


# ---- Usage and rates ----


def test_usage_outlives_a_replacement_but_no_removal(bench: Bench) -> None:
    one = session(50)
    bench.plane.install([one])
    bench.receive(ACCESS, up(one, v4(one)))
    bench.plane.install([dataclasses.replace(one, ipv4=IPv4Address("10.7.7.7"), delegated=None)])
    moved = dataclasses.replace(one, ipv4=IPv4Address("10.7.7.7"))
    assert bench.reason(ACCESS, up(one, v4(one))) == "spoofed_address"
    assert bench.reason(CORE, down(to_v4(one))) == "no_subscriber"
    assert bench.reason(ACCESS, up(moved, v4(moved))) == "passes"
    used = Usage(2, 156, 0, 0)
    assert bench.plane.usage([50, 51]) == {50: used}
    assert bench.plane.remove([51, 50]) == {50: used}
    assert bench.plane.usage([50]) == {} and bench.plane.installed() == {}
    assert bench.reason(ACCESS, up(moved, v4(moved))) == "unknown_session"
    assert bench.reason(CORE, down(to_v4(moved))) == "no_subscriber"
    bench.plane.install([one])
    assert bench.plane.usage([50]) == {50: Usage()}


def throughput(bench: Bench, port: int, frame: bytes, packets: int, interval_us: int) -> int:
    return sum(bool(bench.receive(port, frame, interval_us)) for _ in range(packets))


def test_rates_change_under_traffic(fast_bench: Callable[..., Bench]) -> None:
    bench = fast_bench()
    one, other = session(60, rates=Rates(8_000_000, 16_000_000)), session(61)
    bench.plane.install([one, other])
    frame = up(one, v4(one, UDP() / bytes(1000 - 28 - 30 - 0)))  # 1,000 bytes with two tags and PPPoE
    assert len(frame) == 1000
    # 40,000 packets/s for a second are 320 Mbit/s; a tenth of a second may come at once.
    assert throughput(bench, ACCESS, frame, 40_000, 25) == pytest.approx(1_100, rel=0.01)
    back = down(to_v4(one, UDP() / bytes(1000 - 42)))
    assert throughput(bench, CORE, back, 40_000, 25) == pytest.approx(2_200, rel=0.01)
    assert throughput(bench, ACCESS, up(other, v4(other)), 1_000, 1) == 1_000
    bench.plane.install([dataclasses.replace(one, rates=Rates(None, 80_000_000))])
    assert throughput(bench, ACCESS, frame, 10_000, 25) == 10_000
    assert throughput(bench, CORE, back, 40_000, 25) == pytest.approx(11_000, rel=0.01)
    used = bench.plane.usage([60])[60]
    assert used.packets_up == pytest.approx(11_100, rel=0.01) and used.bytes_up == used.packets_up * 970
    bench.plane.remove([60])
    bench.plane.install([session(60)])
    assert throughput(bench, CORE, back, 10_000, 1) == 10_000
    assert bench.plane.drops()["rate_up"] > 0 and bench.plane.drops()["rate_down"] > 0


# ---- Installing and reading back ----


def test_a_new_controller_finds_everything(bench: Bench) -> None:
    sessions = [
        session(1, rates=Rates(1_000_001, None)),
        session(2, ipv4=None, mss_clamp=False, peer_mru=1500),
        session(
            3, Line(ACCESS_QINQ, 7), ipv6_interface=None, ipv6_prefix=None, delegated=IPv6Network("2001:db8:f::/48")
        ),
        session(65534, Line(ACCESS), magic=0),
    ]
    bench.plane.install(sessions)
    bench.receive(ACCESS, up(sessions[0], v4(sessions[0])))
    before = bench.client.updates_sent
    again = bench.restart()
    assert again.installed() == {each.session_id: each for each in sessions}
    again.install(sessions)
    assert (
        bench.client.updates_sent == before + 3
    )  # the rates of lines and access nodes, which have too many cells to read
    assert again.usage([1]) == {1: Usage(1, 78)}
    assert bench.reason(ACCESS, up(sessions[0], v4(sessions[0]))) == "passes"
    assert set(again.remove([1, 2, 3, 65534])) == {1, 2, 3, 65534}
    assert not bench.client.read_table("subscribers_v6")


def test_addresses_move_between_sessions_in_one_batch(bench: Bench) -> None:
    one, two = session(1), session(2)
    bench.plane.install([one, two])
    swapped = [dataclasses.replace(one, ipv4=two.ipv4), dataclasses.replace(two, ipv4=one.ipv4)]
    bench.plane.install(swapped)
    assert bench.plane.installed() == {each.session_id: each for each in swapped}
    [(_, frame)] = bench.receive(CORE, down(to_v4(one)))
    assert frame[:6] == two.mac


def test_an_address_has_one_session(bench: Bench) -> None:
    one = session(1)
    bench.plane.install([one])
    with pytest.raises(HoldfastError, match="session 3: another session has the same address"):
        bench.plane.install([session(2), session(3, ipv4=one.ipv4)])
    assert bench.plane.installed() == {1: one}
    assert bench.reason(ACCESS, up(session(2), v4(session(2)))) == "unknown_session"


@pytest.mark.parametrize("failing", ["second batch", "reading of usage"])
def test_a_removal_that_fails_half_way_is_finished_by_the_next(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    sessions = [session(number, rates=LIMITED) for number in range(1, 2 * CHUNK)]
    bench.plane.install(sessions)
    bench.receive(ACCESS, up(sessions[0], v4(sessions[0])))
    used = bench.plane.usage([1])[1]
    assert used.packets_up == 1
    batch, calls = bench.client.batch, []

    def fail(*given: object) -> None:
        raise HoldfastError("refused")

    def fail_second(*given: object, **named: object) -> object:
        calls.append(given)
        if len(calls) == 2:
            fail()
        return batch(*given, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        if failing == "second batch":
            patch.setattr(bench.client, "batch", fail_second)
        else:
            patch.setattr(bench.client, "register_cells", fail)
        with pytest.raises(HoldfastError, match="refused"):
            bench.plane.remove([each.session_id for each in sessions])
    removed = bench.plane.remove([each.session_id for each in sessions])
    assert removed.keys() == {each.session_id for each in sessions}
    assert removed[1] == used
    assert bench.plane.installed() == {}
    bench.plane.install(sessions)
    assert bench.plane.usage([1])[1].packets_up == 0


BAD: list[tuple[dict[str, object], str]] = [
    ({"session_id": 0}, "session 0: identifiers are 1 to 65534"),
    ({"session_id": 65535}, "session 65535: identifiers are 1 to 65534"),
    ({"line": Line(CORE)}, "port 9 is no access port"),
    ({"line": Line(ACCESS, 0, 5)}, "a line with one tag has it as S-tag"),
    ({"line": Line(ACCESS, 4095)}, "the S-tag is 4095"),
    ({"mac": b"\x03" + bytes(5)}, "is no station's MAC address"),
    ({"mac": b"\x02" + bytes(6)}, "is no station's MAC address"),
    ({"magic": 1 << 32}, "more than 32 bits"),
    ({"peer_mru": 67}, "an MRU of 67"),
    ({"ipv6_prefix": IPv6Network("2001:db8::/63")}, "is no /64"),
    ({"delegated": IPv6Network("2001:db8::/65")}, "longer than /64"),
    ({"delegated": IPv6Network("::/8")}, "no prefix of hosts"),
    ({"ipv4": IPv4Address(0)}, "no host's address"),
    ({"rates": Rates(7, None)}, "a rate up of 7 bit/s"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=lambda value: value if isinstance(value, str) else "")
def test_sessions_that_cannot_be(programs: dict[Variant, Program], change: dict[str, object], message: str) -> None:
    bench = Bench(programs["single"])
    with pytest.raises(NetworkError, match=message):
        bench.plane.install([session(1), dataclasses.replace(session(2), **change)])  # type: ignore[arg-type]
    assert bench.plane.installed() == {}


# ---- Spoofing, against a model ----

POOL = [session(number, line) for number, line in enumerate([*LINES.values(), Line(ACCESS, 100, 8)], 1)]
ADDRESSES = [str(each.ipv4) for each in POOL] + ["10.0.0.200", "0.0.0.0"]
ADDRESSES_V6 = [
    str(prefix[offset])
    for each in POOL
    for prefix, offset in (
        (each.ipv6_prefix, 1),
        (each.ipv6_prefix, 2**64 - 1),
        (each.delegated, 2**72 - 1),
        (each.delegated, 0),
    )
    if prefix is not None
] + ["2001:db8:1:99::1", "2001:db8:2::1", "fe80::1", "::", "::2", "2001:db9:0:600::1"]


def model(number: int, line: Line, mac: str, source: str, version: int) -> str:
    """Return "passes", or the reason why an upstream packet must be dropped, by rules that share no code with ``bng.p4``."""
    found = [each for each in POOL if each.session_id == number]
    if not found:
        return "unknown_session"
    [of] = found
    if of.line != line:
        return "wrong_line"
    if of.mac.hex(":") != mac:
        return "wrong_mac"
    if version == 4:
        return "passes" if source == str(of.ipv4) else "spoofed_address"
    owned = [prefix for prefix in (of.ipv6_prefix, of.delegated) if prefix is not None]
    packed = IPv6(src=source)
    in_one = any(
        int.from_bytes(bytes(packed)[8:24], "big") >> (128 - p.prefixlen)
        == int(p.network_address) >> (128 - p.prefixlen)
        for p in owned
    )
    return "passes" if in_one else "spoofed_address"


@pytest.fixture(scope="module", params=["jit", "interpreter"])
def pool_bench(programs: dict[Variant, Program], request: pytest.FixtureRequest) -> Bench:
    bench = Bench(programs["single"], request.param)
    bench.plane.install(POOL)
    return bench


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_only_a_session_sends_as_itself(pool_bench: Bench, data: st.DataObject) -> None:
    of = data.draw(st.sampled_from(POOL))
    other = data.draw(st.sampled_from(POOL))
    version = data.draw(st.sampled_from([4, 6]))
    number = data.draw(st.sampled_from([of.session_id, of.session_id, other.session_id, 99]))
    where = data.draw(st.sampled_from([of.line, of.line, other.line]))
    mac = data.draw(st.sampled_from([of.mac, of.mac, other.mac])).hex(":")
    if version == 4:
        source = data.draw(st.sampled_from([str(of.ipv4), *ADDRESSES]))
        inner: Packet = IP(src=source, dst=SERVER) / ICMP()
    else:
        source = data.draw(st.sampled_from(ADDRESSES_V6))
        inner = IPv6(src=source, dst=SERVER_V6) / UDP()
    frame = up(of, inner, number=number, line=where, mac=mac)
    assert pool_bench.reason(where.port, frame) == model(number, where, mac, source, version)


# ---- Storms ----


def test_a_line_that_storms_starves_no_other(fast_bench: Callable[..., Bench]) -> None:
    """100,000 PADI/s of one line for two seconds: sessions lose nothing, and an honest line is heard."""
    bench = fast_bench()
    established, loud, honest = session(70, Line(ACCESS, 100, 1)), Line(ACCESS, 100, 2), Line(ACCESS, 100, 3)
    bench.plane.install([established])
    storm = [discovery(loud, 9, f"02:bb:00:00:{number >> 8:02x}:{number & 255:02x}") for number in range(512)]
    packet, honest_padi = up(established, v4(established)), discovery(honest, 9, "02:cc:00:00:00:01")
    passed = asked = 0
    for number in range(200_000):
        bench.receive(ACCESS, storm[number % 512], 10)
        if number % 20 == 0:
            passed += bool(bench.receive(ACCESS, packet, 0))
        if number % 20_000 == 19_999:
            bench.receive(ACCESS, honest_padi, 0)
            asked += 1
    assert passed == 10_000
    heard = [line for line, _ in bench.heard]
    assert heard.count(honest) == asked == 10
    padi = EDGES.control.padi
    assert heard.count(loud) <= 2 * padi.per_s + padi.burst + 100
    assert bench.plane.drops()["line_rate"] > 150_000


def test_lines_that_storm_together_leave_every_line_its_committed_rate(fast_bench: Callable[..., Bench]) -> None:
    """64 lines with 1,600 PADI/s each are beyond what the controller takes of all; a line within its own rate is heard."""
    control = ControlRates(line_peak=Rate(per_s=2_000, burst=2_000), padi=Rate(per_s=500, burst=500))
    bench = fast_bench(edges=EDGES.model_copy(update={"control": control}))
    loud = [discovery(Line(ACCESS, 200 + number, number), 9, "02:bb:00:00:00:01") for number in range(1, 65)]
    honest, in_setup = discovery(Line(ACCESS, 100, 3), 9, "02:cc:00:00:00:01"), session(71, Line(ACCESS, 100, 4))
    asked = 0
    for number in range(200_000):
        bench.receive(ACCESS, loud[number % 64], 10)
        if number % 20_000 == 19_999:
            bench.receive(ACCESS, honest, 0)
            bench.receive(ACCESS, up(in_setup, lcp(1, 5)), 0)
            asked += 1
    heard = [line for line, _ in bench.heard]
    assert heard.count(Line(ACCESS, 100, 3)) == heard.count(in_setup.line) == asked
    assert bench.plane.drops()["control_rate"] > 100_000
    assert len(heard) < 10_000


def test_an_access_node_that_writes_inner_tags_leaves_others_their_committed_rate(
    fast_bench: Callable[..., Bench],
) -> None:
    """2,048 inner tags of one outer tag are within the rates of their lines, and fill the rate of all lines' committed packets."""
    bench = fast_bench(edges=EDGES)
    loud = [discovery(Line(ACCESS, 200, number), 9, "02:bb:00:00:00:01") for number in range(1, 2049)]
    in_setup = session(71, Line(ACCESS, 100, 4))
    honest = [discovery(Line(ACCESS, 100, 3), 9, "02:cc:00:00:00:01"), up(in_setup, lcp(1, 5))]
    asked = 0
    for number in range(300_000):
        bench.receive(ACCESS, loud[number * 7 % 2048], 20)
        if number % 20_000 == 19_999:
            for each in honest:
                bench.receive(ACCESS, each, 0)
            asked += 1
    heard = [line for line, _ in bench.heard]
    assert heard.count(Line(ACCESS, 100, 3)) == heard.count(in_setup.line) == asked
    control = EDGES.control
    of_node = [control.node_committed, control.padi]
    assert len(heard) - 2 * asked <= sum(6 * rate.per_s + rate.burst for rate in of_node)
    assert bench.plane.drops()["node_rate"] > 100_000


# ---- Scale ----


def test_16000_sessions(fast_bench: Callable[..., Bench]) -> None:
    bench = fast_bench()
    lines = [Line(ACCESS, number // 4000 + 1, number % 4000 + 1) for number in range(16_000)]
    sessions = [session(number, lines[number - 1]) for number in range(1, 16_001)]
    bench.plane.install(sessions)
    for one in sessions[:: 16_000 // 200]:
        assert bench.reason(ACCESS, up(one, v4(one))) == "passes"
        [(_, frame)] = bench.receive(CORE, down(to_v6(one)))
        assert frame[:6] == one.mac and frame[24:26] == one.session_id.to_bytes(2, "big")
    assert bench.plane.installed() == {each.session_id: each for each in sessions}
    used = bench.plane.remove(range(1, 16_001))
    assert sum(each.packets_up for each in used.values()) == sum(each.packets_down for each in used.values()) == 200
    assert bench.plane.installed() == {}


def test_tags_are_recognised_whatever_their_ethertype(bench: Bench) -> None:
    mac = "02:aa:00:00:00:01"
    body = PPPoE(code=9) / b"\x01\x01\x00\x00"
    for outer in (Dot1Q, Dot1AD):
        frame = Ether(src=mac, dst="ff:ff:ff:ff:ff:ff") / outer(vlan=5, prio=3) / Dot1Q(vlan=6, type=0x8863) / body
        bench.receive(ACCESS, bytes(frame))
    assert [line for line, _ in bench.heard] == [Line(ACCESS, 5, 6)] * 2
    bench.heard.clear()
    priority = Ether(src=mac, dst="ff:ff:ff:ff:ff:ff") / Dot1Q(vlan=0, prio=6, type=0x8863) / body
    bench.receive(ACCESS, bytes(priority))
    assert [line for line, _ in bench.heard] == [Line(ACCESS)]


def test_the_same_over_grpc(programs: dict[Variant, Program]) -> None:
    """As a live gateway has it: another controller takes over, over a socket, and the client's own thread hands frames over."""
    bench = Bench(programs["single"])
    one, two = session(1), session(2, rates=Rates(1_000_000, 2_000_000))
    bench.plane.install([one])
    heard: queue.SimpleQueue[tuple[Line, bytes]] = queue.SimpleQueue()
    with Server([bench.device], "127.0.0.1:0") as server, GrpcClient(server.address, election_id=2) as client:
        plane = SinglePlane(client, EDGES)
        plane.receive(lambda line, frame: heard.put((line, frame)))
        plane.listen()
        assert plane.installed() == {1: one}
        plane.install([two])
        assert plane.installed() == {1: one, 2: two}
        bench.receive(ACCESS, up(one, v4(one)))
        assert plane.usage([1, 2]) == {1: Usage(1, 78), 2: Usage()}
        padi = discovery(Line(ACCESS, 7), 9, "02:aa:00:00:00:01")
        [(_, packet)] = bench.switch.process(ACCESS, padi, bench.now_ps)
        bench.device.packet_in(packet)
        line, frame = heard.get(timeout=60)
        assert (line, frame) == (Line(ACCESS, 7), padi[:12] + padi[16:])
        bench.sent = []
        plane.send(line, frame)
        deadline = time.monotonic() + 60
        while not bench.sent and time.monotonic() < deadline:
            time.sleep(0.01)
        assert bench.sent == [(ACCESS, padi)]
        assert plane.remove([1]) == {1: Usage(1, 78)}
