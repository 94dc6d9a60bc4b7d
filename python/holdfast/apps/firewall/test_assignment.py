"""Addresses that are granted by DHCP and DHCPv6, or claimed by duplicate address detection: only their holders may use them."""

from __future__ import annotations

import ipaddress
import struct
from typing import Any

import pytest

from holdfast._core import Program
from holdfast.apps.firewall.assignment import CLAIM_LIFETIME_S, Assignments, Onward
from holdfast.apps.firewall.program import Variant
from holdfast.apps.firewall.rules import RuleSet
from holdfast.apps.firewall.tests import packets as make

LAN, OTHER, UNTRUSTED, SERVER = 1, 2, 3, 4
BROADCAST = b"\xff" * 6
LEASE_S = 600


def rules() -> RuleSet:
    return RuleSet.model_validate(
        {
            "zones": {"lan": {}, "core": {}},
            "ports": [
                {"port": LAN, "zone": "lan", "authenticated": True},
                {"port": OTHER, "zone": "lan", "authenticated": True},
                {"port": UNTRUSTED, "zone": "lan"},
                {"port": SERVER, "zone": "core", "senders": "mac", "dhcp_server": True, "router": True},
            ],
            "bindings": [
                {"port": SERVER, "mac": "02:00:00:00:00:04"},
                {"port": OTHER, "mac": "02:00:00:00:00:02", "addresses": ["10.0.0.2", "2001:db8::2"]},
            ],
            "addresses_per_port": 3,
            "rules": [{"name": "all", "action": "allow"}],
        }
    )


@pytest.fixture
def bridge(standalone: Any, programs: dict[Variant, Program], executor: str) -> Any:
    return standalone(programs["bridged"], rules(), executor)


def dhcp(
    kind: int, mac: bytes, *, answers: bool = False, address: str = "0.0.0.0", ciaddr: str = "0.0.0.0", xid: int = 7
) -> bytes:
    """Return a frame with a DHCP message (RFC 2131) of type ``kind``, from a client or with ``answers`` from the server.

    It has options 53 and 51 of RFC 2132: the message type and the lease time.
    """
    message = struct.pack("!BBBBIHH", 2 if answers else 1, 1, 6, 0, xid, 0, 0x8000)
    message += (
        ipaddress.IPv4Address(ciaddr).packed + ipaddress.IPv4Address(address).packed + bytes(8) + mac.ljust(16, b"\0")
    )
    message += bytes(192) + b"\x63\x82\x53\x63" + bytes((53, 1, kind, 0, 51, 4)) + LEASE_S.to_bytes(4, "big") + b"\xff"
    if answers:
        packet = make.ipv4("10.0.0.254", "255.255.255.255", 17, make.udp(67, 68, message))
        return make.ethernet(BROADCAST, make.mac(4), 0x0800, packet)
    packet = make.ipv4("0.0.0.0", "255.255.255.255", 17, make.udp(68, 67, message))
    return make.ethernet(BROADCAST, mac, 0x0800, packet)


def dhcpv6(kind: int, mac: bytes, addresses: list[str], *, answers: bool = False, lifetime_s: int = LEASE_S) -> bytes:
    """Return a frame with a DHCPv6 message (RFC 8415) of type ``kind`` that has one identity association with ``addresses``."""
    inner = b"".join(
        struct.pack("!HH", 5, 24) + ipaddress.IPv6Address(a).packed + struct.pack("!II", lifetime_s, lifetime_s)
        for a in addresses
    )
    message = bytes((kind, 0, 0, 9)) + struct.pack("!HH", 1, 4) + bytes(4)
    message += struct.pack("!HHIII", 3, 12 + len(inner), 1, 0, 0) + inner
    ports = (547, 546) if answers else (546, 547)
    src, dst = ("fe80::4", "fe80::1") if answers else ("fe80::1", "ff02::1:2")
    packet = make.ipv6(src, dst, 17, make.udp(*ports, message))
    return make.ethernet(mac if answers else b"\x33\x33\0\1\0\2", make.mac(4) if answers else mac, 0x86DD, packet)


def claim(mac: bytes, target: str) -> bytes:
    """Return a station's neighbour solicitation by which it looks for duplicates of an address (RFC 4862, section 5.4)."""
    packet = make.ipv6("::", "ff02::1:ff00:1", 58, make.neighbour(135, target), hop_limit=255)
    return make.ethernet(b"\x33\x33\xff\0\0\1", mac, 0x86DD, packet)


def uses(mac: bytes, src: str) -> bytes:
    """Return a frame with a UDP datagram from a station to the server, with the source address ``src``."""
    dst = "2001:db8::4" if ":" in src else "10.0.0.254"
    return make.ethernet(make.mac(4), mac, 0x86DD if ":" in src else 0x0800, make.ip(src, dst, 17, make.udp(1, 2)))


def test_dhcp_grants_an_address_for_its_time(bridge: Any) -> None:
    me = make.mac(1)
    assert bridge.reason(LAN, uses(me, "10.0.0.1")) == "spoofed_mac"
    request = dhcp(3, me)
    assert bridge.receive(LAN, request) == [(SERVER, request)], "only to servers"
    answer = dhcp(5, me, answers=True, address="10.0.0.1")
    assert bridge.receive(SERVER, answer) == [(LAN, answer)], "only to who asked"
    assert bridge.reason(LAN, uses(me, "10.0.0.1")) == "passes"
    assert bridge.reason(LAN, uses(me, "10.0.0.9")) == "spoofed_address"
    assert bridge.reason(OTHER, uses(me, "10.0.0.1")) == "spoofed_mac"
    asks = make.ethernet(BROADCAST, me, 0x0806, make.arp(1, me, "10.0.0.1", "10.0.0.254"))
    assert sorted(out for out, _ in bridge.receive(LAN, asks)) == [OTHER, UNTRUSTED, SERVER]
    bridge.elapse(LEASE_S * 1_000_000)
    assert bridge.reason(LAN, uses(me, "10.0.0.1")) == "spoofed_mac"


def test_a_release_ends_a_binding(bridge: Any) -> None:
    me = make.mac(1)
    bridge.receive(LAN, dhcp(3, me))
    bridge.receive(SERVER, dhcp(5, me, answers=True, address="10.0.0.1"))
    bridge.receive(LAN, dhcp(7, make.mac(9), ciaddr="10.0.0.1"))
    assert len(bridge.controller.learnt("s1")) == 1, "another's release"
    bridge.receive(LAN, dhcp(7, me, ciaddr="10.0.0.1"))
    assert bridge.controller.learnt("s1") == []
    assert bridge.reason(LAN, uses(me, "10.0.0.1")) == "spoofed_mac"


def test_only_authenticated_ports_get_addresses_and_only_servers_grant_them(bridge: Any) -> None:
    me = make.mac(1)
    assert bridge.reason(UNTRUSTED, dhcp(3, me)) == "no_controller"
    assert bridge.reason(UNTRUSTED, claim(me, "fe80::1")) == "no_controller"
    assert bridge.reason(OTHER, dhcp(5, me, answers=True, address="10.0.0.1")) == "rogue_server"
    assert bridge.receive(SERVER, dhcp(5, me, answers=True, address="10.0.0.1")) == [], "nobody asked"
    assert bridge.receive(LAN, dhcp(3, make.mac(9)).replace(make.mac(9), make.mac(1), 1)) == [], (
        "in the name of another"
    )
    packet = make.ipv4("10.0.0.9", "10.0.0.254", 17, make.udp(68, 67, bytes(300)))
    assert bridge.receive(LAN, make.ethernet(BROADCAST, me, 0x0800, packet)) == [], "from an address of nobody"
    bridge.receive(LAN, dhcp(3, me))
    assert bridge.receive(SERVER, dhcp(5, make.mac(2), answers=True, address="10.0.0.1")) == [], "an answer to another"
    assert bridge.controller.refused("s1") == {"unasked": 2, "foreign": 2}
    assert bridge.controller.learnt("s1") == []


def test_nobody_takes_an_address_or_a_station_of_others(bridge: Any) -> None:
    thief = make.mac(5)
    bridge.receive(LAN, dhcp(3, thief))
    assert bridge.receive(SERVER, dhcp(5, thief, answers=True, address="10.0.0.2")) == []
    assert bridge.receive(LAN, claim(thief, "2001:db8::2")) == []
    # The MAC address of a station at another port would draw its packets here.
    assert bridge.receive(LAN, claim(make.mac(2), "fe80::77")) == []
    assert bridge.receive(LAN, claim(make.mac(4), "fe80::77")) == []
    assert bridge.controller.refused("s1") == {"taken": 4}
    assert bridge.reason(OTHER, uses(make.mac(2), "10.0.0.2")) == "passes"


def test_the_first_who_claims_an_address_has_it(bridge: Any) -> None:
    first, second = make.mac(1), make.mac(5)
    wanted = claim(first, "2001:db8::1")
    assert sorted(bridge.receive(LAN, wanted)) == [(OTHER, wanted), (UNTRUSTED, wanted), (SERVER, wanted)]
    assert bridge.receive(OTHER, claim(second, "2001:db8::1")) == []
    assert bridge.reason(LAN, uses(first, "2001:db8::1")) == "passes"
    assert bridge.reason(OTHER, uses(second, "2001:db8::1")) == "spoofed_mac"
    defence = make.ipv6("2001:db8::1", "ff02::1", 58, make.neighbour(136, "2001:db8::1"), hop_limit=255)
    assert len(bridge.receive(LAN, make.ethernet(b"\x33\x33\0\0\0\1", first, 0x86DD, defence))) == 3
    bridge.elapse(CLAIM_LIFETIME_S * 1_000_000)
    assert len(bridge.receive(OTHER, claim(second, "2001:db8::1"))) == 3


def test_a_port_has_so_many_addresses(bridge: Any) -> None:
    for number in range(1, 4):
        assert bridge.receive(LAN, claim(make.mac(1), f"2001:db8::1:{number}"))
    assert bridge.receive(LAN, claim(make.mac(1), "2001:db8::1:4")) == []
    assert bridge.controller.refused("s1") == {"too_many": 1}
    assert bridge.receive(OTHER, claim(make.mac(6), "2001:db8::1:4"))


def test_dhcpv6_grants_addresses(bridge: Any) -> None:
    me = make.mac(1)
    assert bridge.receive(LAN, dhcpv6(3, me, []))[0][0] == SERVER
    reply = dhcpv6(7, me, ["2001:db8::8", "2001:db8::9"], answers=True)
    assert bridge.receive(SERVER, reply) == [(LAN, reply)]
    assert bridge.reason(LAN, uses(me, "2001:db8::8")) == "passes"
    assert bridge.reason(LAN, uses(me, "2001:db8::9")) == "passes"
    bridge.receive(LAN, dhcpv6(8, me, ["2001:db8::8"]))
    assert bridge.reason(LAN, uses(me, "2001:db8::8")) == "spoofed_address"
    assert bridge.reason(LAN, uses(me, "2001:db8::9")) == "passes"


def test_the_controller_takes_so_much_from_a_port(standalone: Any, programs: dict[Variant, Program]) -> None:
    few = rules().model_copy(update={"controller_per_port": type(rules().controller_per_port)(per_s=1, burst=2)})
    bridge = standalone(programs["bridged"], few)
    reasons = []
    for _ in range(4):
        before = bridge.drops()
        bridge.receive(LAN, dhcp(3, make.mac(1)))
        reasons.append(bridge.drops() != before)
    assert reasons == [False, False, True, True] and bridge.drops() == {"controller_rate": 2}


def test_nothing_that_cannot_be_read_is_believed() -> None:
    """Every cut of every message: an answer or a refusal, never an error."""
    for frame in (dhcp(3, make.mac(1)), dhcpv6(3, make.mac(1), ["2001:db8::8"]), claim(make.mac(1), "2001:db8::1")):
        for length in range(14, len(frame)):
            state = Assignments(16)
            answer = state.hear(frame[:length], 1, 0)
            assert isinstance(answer, str | Onward)
