"""The data plane answers for a gateway's own addresses, byte for byte as the controller does, and without it."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scapy.layers.inet6 import ICMPv6ND_NS, ICMPv6NDOptSrcLLAddr, IPv6
from scapy.layers.l2 import ARP, Ether

from holdfast._core import Program, Switch
from holdfast.apps.bng.conftest import CORE, CORE_MAC, CPU_PORT, EDGES, ROUTER_MAC, Bench
from holdfast.apps.bng.entries import own_addresses
from holdfast.apps.bng.frames import arp_reply, neighbour_advertisement
from holdfast.apps.bng.program import (
    BALANCER_OWN,
    BALANCER_OWN_V4,
    BALANCER_OWN_V6,
    BALANCER_PORTS,
    ROLES,
    SET_ROLE,
    Variant,
)
from holdfast.control.desired import Writer
from holdfast.control.tables import TableEntry
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device

[CORE_PORT] = [each for each in EDGES.core if each.port == CORE]
OWN_V4 = next(each for each in CORE_PORT.addresses if each.version == 4)
OWN_V6 = next(each for each in CORE_PORT.addresses if each.version == 6)
MAC = bytes.fromhex(CORE_MAC.replace(":", ""))


@pytest.fixture(params=["single", "balancer"])
def switch(
    request: pytest.FixtureRequest, programs: dict[Variant, Program], balancer: Program, executor: str
) -> Switch:
    """Return a switch with the entries for the gateway's addresses, and without a controller."""
    if request.param == "single":
        return Bench(programs["single"], executor).switch
    found = Switch(balancer, executor=executor)  # type: ignore[arg-type]
    client = LocalClient(Device(1, found, executor=executor))  # type: ignore[arg-type]
    client.set_pipeline(balancer)
    core = TableEntry(BALANCER_PORTS, {"port": CORE}, SET_ROLE, {"number": ROLES["core"]})
    Writer(client).write([core, *own_addresses(CORE_PORT, CORE, (BALANCER_OWN_V4, BALANCER_OWN_V6, BALANCER_OWN))])
    return found


macs = st.binary(min_size=6, max_size=6).map(lambda raw: bytes((raw[0] & 0xFE, *raw[1:])).hex(":"))
v6 = st.integers(1, 2**128 - 1).map(lambda number: str(IPv6Address(number)))
requests = st.one_of(
    st.builds(
        lambda mac, sender, psrc, pdst, op, dst: (
            Ether(src=mac, dst=dst, type=0x0806) / ARP(op=op, hwsrc=sender, psrc=psrc, pdst=pdst)
        ),
        macs,
        macs,
        st.one_of(st.just("0.0.0.0"), st.just(str(OWN_V4)), st.ip_addresses(v=4).map(str)),
        st.one_of(st.just(str(OWN_V4)), st.just(str(OWN_V4)), st.just("192.0.2.77")),
        st.sampled_from([1, 1, 1, 2, 3]),
        st.sampled_from(["ff:ff:ff:ff:ff:ff", CORE_MAC]),
    ),
    st.builds(
        lambda mac, source, target, to, hops, traffic: (
            Ether(src=mac, dst="33:33:ff:00:00:01", type=0x86DD)
            / IPv6(src=source, dst=to, hlim=hops, tc=traffic, fl=traffic)
            / ICMPv6ND_NS(tgt=target)
            / ICMPv6NDOptSrcLLAddr(lladdr=mac)
        ),
        macs,
        st.one_of(st.just("::"), v6, v6),
        st.one_of(st.just(str(OWN_V6)), st.just(str(OWN_V6)), v6),
        st.one_of(st.just("ff02::1:ff00:1"), st.just(str(OWN_V6)), v6),
        st.sampled_from([255, 255, 255, 254]),
        st.integers(0, 255),
    ),
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    request=requests,
    trailer=st.sampled_from([b"", bytes(18), b"x" * 900]),
    flip=st.one_of(st.none(), st.integers(0, 85)),
)
def test_the_data_plane_answers_as_the_controller_would(
    switch: Switch, request: Ether, trailer: bytes, flip: int | None
) -> None:
    frame = bytearray(bytes(request))
    if flip is not None and flip < len(frame):
        frame[flip] ^= 1 << flip % 8
    heard = bytes(frame) + trailer
    wanted = arp_reply(heard, MAC, lambda each: each == OWN_V4)
    wanted = wanted or neighbour_advertisement(heard, MAC, lambda each: each == OWN_V6)
    sent = switch.process(CORE, heard, 10**9)
    if wanted is not None and (flip is None or sent[0][0] == CORE):
        assert sent == [(CORE, wanted)]
    else:
        # The controller, or nobody, hears it; a checksum that was wrong is wrong in the answer, too.
        answers = [packet for port, packet in sent if port != CPU_PORT]
        assert all(is_wrong(packet) for packet in answers)


def is_wrong(answer: bytes) -> bool:
    """Return True for an ICMPv6 message whose checksum is wrong (RFC 4443, section 2.3), so that no host accepts it."""
    summed = answer[22:] + len(answer[54:]).to_bytes(4) + (58).to_bytes(4)
    total = sum(int.from_bytes(summed[at : at + 2]) for at in range(0, len(summed), 2))
    return answer[12:14] == b"\x86\xdd" and total % 0xFFFF != 0


def test_a_router_that_asks_again_and_again_needs_no_controller(switch: Switch) -> None:
    """The control plane may be away for long: at any rate, each probe of a router is answered."""
    arp = Ether(src=ROUTER_MAC, dst=CORE_MAC) / ARP(op=1, hwsrc=ROUTER_MAC, psrc="192.0.2.254", pdst=str(OWN_V4))
    source = str(IPv6Address(int(IPv6Address(str(OWN_V6))) + 8))
    solicitation = (
        Ether(src=ROUTER_MAC, dst=CORE_MAC)
        / IPv6(src=source, dst=str(OWN_V6), hlim=255)
        / ICMPv6ND_NS(tgt=str(OWN_V6))
        / ICMPv6NDOptSrcLLAddr(lladdr=ROUTER_MAC)
    )
    for number in range(5_000):
        for request in (arp, solicitation):
            [(port, answer)] = switch.process(CORE, bytes(request), 10**9 + number * 1000)
            assert port == CORE and answer[:6].hex(":") == ROUTER_MAC


def test_other_ports_do_not_answer(switch: Switch) -> None:
    arp = Ether(src=ROUTER_MAC, dst="ff:ff:ff:ff:ff:ff") / ARP(
        op=1, hwsrc=ROUTER_MAC, pdst=str(IPv4Address(str(OWN_V4)))
    )
    assert switch.process(400, bytes(arp), 10**9) == []
