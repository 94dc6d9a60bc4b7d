"""The overlay with a plane that stands in for a network: packet-ins and time go in, packet-outs and changes come out."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Any, cast

import pytest

from holdfast.control.membership import frames, igmp
from holdfast.control.membership.channels import ChannelChange
from holdfast.control.membership.messages import Malformed, Query, checksum
from holdfast.control.membership.overlay import EdgePort, Overlay, OverlayParameters, edge_ports, link_local
from holdfast.controller import ControlPlane
from holdfast.errors import NetworkError
from holdfast.topology import Topology

S_PS = 1_000_000_000_000
GROUP = IPv4Address("239.1.2.3")
MAC = bytes.fromhex("020000000001")


class Client:
    def __init__(self) -> None:
        self.sent: list[tuple[int, bytes]] = []

    def packet_out(self, packet: bytes, egress_port: int) -> None:
        self.sent.append((egress_port, packet))


class Plane:
    def __init__(self, *switches: str) -> None:
        self.clients: Mapping[str, Any] = {switch: Client() for switch in switches}
        self.now_ps = 0
        self.calls: list[tuple[int, int, Callable[[], None]]] = []
        self._added = 0

    def call_later(self, delay_ms: float, handler: Callable[[], None]) -> None:
        self._added += 1
        heapq.heappush(self.calls, (self.now_ps + round(delay_ms * 1e9), self._added, handler))

    def run_until(self, until_ps: int) -> None:
        while self.calls and self.calls[0][0] <= until_ps:
            self.now_ps, _, handler = heapq.heappop(self.calls)
            handler()
        self.now_ps = until_ps


def report(body: str) -> bytes:
    """Return an IGMPv3 frame from a host; its only record is ``body``, in hexadecimal digits."""
    data = bytes.fromhex(f"22000000{0:04x}0001{body}")
    data = data[:2] + checksum(data).to_bytes(2, "big") + data[4:]
    head = bytes.fromhex(f"46c0{24 + len(data):04x}00000000010200000a000001e000001694040000")
    total = checksum(head)
    packet = head[:10] + total.to_bytes(2, "big") + head[12:] + data
    return frames.group_mac(igmp.REPORTS_V3) + MAC + b"\x08\0" + packet


JOIN = report("04000000ef010203")
LEAVE = report("03000000ef010203")


def started(*places: tuple[str, int], **given: Any) -> tuple[Overlay, Plane, list[list[ChannelChange]]]:
    plane = Plane(*{switch for switch, _ in places})
    port = EdgePort(MAC, IPv4Address("10.0.0.254"), link_local(MAC), **given)
    overlay = Overlay(dict.fromkeys(places, port), OverlayParameters())
    told: list[list[ChannelChange]] = []
    overlay.changed(told.append)
    overlay.start(cast(ControlPlane, plane))
    return overlay, plane, told


def test_joins_and_leaves_are_told_and_time_ends_what_was_left() -> None:
    overlay, plane, told = started(("s1", 1), ("s2", 4))
    assert overlay.on_packet_in("s1", JOIN, 1)
    assert overlay.channels == {(None, GROUP): {"s1": frozenset({1})}}
    overlay.on_packet_in("s2", JOIN, 4)
    overlay.on_packet_in("s1", LEAVE, 1)
    plane.run_until(2 * S_PS - 1)
    assert len(told) == 2
    plane.run_until(2 * S_PS)
    assert told[2] == [ChannelChange((None, GROUP), "s1", None)]
    assert overlay.channels == {(None, GROUP): {"s2": frozenset({4})}}
    assert overlay.heard == 3


def test_queries_leave_by_their_ports() -> None:
    _, plane, _ = started(("s1", 1))
    plane.run_until(60 * S_PS)
    sent = [(port, frames.parse(packet)) for port, packet in plane.clients["s1"].sent]
    address, own = IPv4Address("10.0.0.254"), IPv6Address("fe80::ff:fe00:1")
    assert own == link_local(MAC)
    four, six = (Query(version, None, 10 * S_PS, robustness=2, interval_s=125) for version in (3, 2))
    assert sent == [(1, (address, four)), (1, (own, six))] * 2


def test_what_is_no_message_is_counted() -> None:
    overlay, _, told = started(("s1", 1))
    assert not overlay.on_packet_in("s1", bytes(12) + b"\x08\x06" + bytes(46), 1)
    assert overlay.on_packet_in("s1", JOIN[:-1], 1)
    assert overlay.on_packet_in("s1", JOIN[:-1] + b"\xff", 1)
    assert overlay.on_packet_in("s1", JOIN, 7)
    assert overlay.malformed == {Malformed.TRUNCATED: 1, Malformed.CHECKSUM: 1}
    assert (overlay.unexpected, overlay.heard, told) == (1, 0, [])


def test_a_controller_that_takes_over_changes_nothing_until_hosts_do() -> None:
    plane = Plane("s1")
    source = IPv4Address("10.9.0.1")
    port = EdgePort(MAC, IPv4Address("10.0.0.254"))
    overlay = Overlay({("s1", 1): port, ("s1", 2): port})
    told: list[list[ChannelChange]] = []
    overlay.changed(told.append)
    adopted = {(None, GROUP): {"s1": frozenset({1, 2})}, (source, GROUP): {"s1": frozenset({2})}}
    overlay.start(cast(ControlPlane, plane), adopted)
    assert overlay.channels == adopted
    assert not overlay.is_settled
    plane.run_until(100 * S_PS)
    assert overlay.is_settled
    assert told == []
    # Port 1 no longer excludes the source; port 2 says nothing, and its membership ends.
    overlay.on_packet_in("s1", JOIN, 1)
    assert told == [[ChannelChange((source, GROUP), "s1", None)]]
    plane.run_until(260 * S_PS)
    assert overlay.channels == {(None, GROUP): {"s1": frozenset({1})}}


def test_calls_do_not_pile_up() -> None:
    overlay, plane, _ = started(("s1", 1), ("s1", 2))
    for _ in range(50):
        overlay.on_packet_in("s1", JOIN, 1)
        overlay.on_packet_in("s1", LEAVE, 1)
        plane.run_until(plane.now_ps + S_PS)
    plane.run_until(plane.now_ps + 1000 * S_PS)
    assert len(plane.calls) <= 3


def test_the_edge_of_a_map() -> None:
    topology = Topology()
    topology.add_switch("s1")
    for name in ("h1", "h2"):
        topology.add_host(name)
        topology.add_link("s1", name)
    ports = edge_ports(topology, fast_leave=["h2"])
    assert [port.fast_leave for port in ports.values()] == [False, True]
    place = topology.attachment("h1")
    port = ports["s1", place.port]
    assert (port.mac, port.ipv4) == (topology.port_mac("s1", place.port), topology.hosts["h1"].gateway)
    with pytest.raises(NetworkError, match="no host 'h9'"):
        edge_ports(topology, fast_leave=["h9"])
    with pytest.raises(NetworkError, match="link-local"):
        EdgePort(MAC, None, IPv6Address("2001:db8::1"))
