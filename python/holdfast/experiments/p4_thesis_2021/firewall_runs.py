"""Injected packets against the firewall of the thesis, in its network (sections 3.4 and 4.4)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from holdfast._core import Program
from holdfast.apps.firewall import FirewallController, RuleSet, compile_firewall
from holdfast.apps.firewall.program import Variant
from holdfast.errors import ExperimentError
from holdfast.network import SimulatedNetwork
from holdfast.sweep import Point
from holdfast.topology import Topology

PACKETS = 100
"""The number of packets of each kind."""

INSIDE = ("h1", "h2", "h3")
"""The hosts that are in the network from the beginning; h4 comes later."""

CASES: dict[str, tuple[str, str, str, bool]] = {
    "of an inside host": ("h1", "h1", "h3", False),
    "with the addresses of an inside host, from the port of another": ("h2", "h1", "h3", False),
    "with the addresses of an inside host, from the port of host 4": ("h4", "h1", "h3", False),
    "of host 4, before it has an entry": ("h4", "h4", "h1", False),
    "to host 4, before it has an entry": ("h1", "h1", "h4", False),
    "of host 4, with an entry": ("h4", "h4", "h1", True),
    "to host 4, with an entry": ("h1", "h1", "h4", True),
    "with the addresses of host 4, from the port of another, with an entry": ("h2", "h4", "h1", True),
}
"""The host that injects packets, the one whose addresses they have, their destination, and whether host 4 has its entry."""

POINTS: list[Point] = [
    {"packets": name, "variant": variant, "family": family}
    for name in CASES
    for variant in ("bindings", "routed")
    for family in ("ipv4", "ipv6")
]
"""The thesis's firewall has bindings alone and IPv4 alone; ours has rules and flows and IPv6 too."""


def figure_3_2() -> Topology:
    """Build the network of Figure 3.2: hosts h1 and h2 at s1, h3 and h4 at s2, and s3 between s1 and s2."""
    topology = Topology("figure-3-2")
    for host in ("h1", "h2", "h3", "h4"):
        topology.add_host(host, ipv6=f"2001:db8:{host[1]}::1/64")
    for switch in ("s1", "s2", "s3"):
        topology.add_switch(switch)
    for a, b in (("h1", "s1"), ("h2", "s1"), ("h3", "s2"), ("h4", "s2"), ("s1", "s3"), ("s3", "s2")):
        topology.add_link(a, b)
    return topology


def rules(*hosts: str) -> RuleSet:
    """Return rules that bind each of ``hosts`` to its port, and allow everything between them."""
    return RuleSet.model_validate(
        {
            "zones": {"hosts": {"hosts": list(hosts)}, "core": {"switches": True}},
            "rules": [{"name": "all", "action": "allow"}],
        }
    )


def udp_frame(topology: Topology, at: str, of: str, to: str, family: str, port: int) -> bytes:
    """Return a frame of UDP with the source address of host ``of`` and the destination ``to``, as the host ``at`` would send it."""
    place, owner, receiver = topology.attachment(at), topology.hosts[of], topology.hosts[to]
    gateway = topology.port_mac(place.switch, place.port)
    data = bytes(32)
    source: IPv4Address | IPv6Address
    destination: IPv4Address | IPv6Address
    if family == "ipv4":
        source, destination = owner.address.ip, receiver.address.ip
    else:
        assert owner.ipv6 is not None and receiver.ipv6 is not None
        source, destination = owner.ipv6.ip, receiver.ipv6.ip
    length = 8 + len(data)
    pseudo = source.packed + destination.packed + struct.pack(">HH", 17, length)
    udp = struct.pack(">HHHH", port, 5001, length, 0)
    udp = udp[:6] + struct.pack(">H", _checksum(pseudo + udp + data) or 0xFFFF) + data
    return gateway + owner.mac + ip_packet(source, destination, udp)


def ip_packet(source: IPv4Address | IPv6Address, destination: IPv4Address | IPv6Address, data: bytes) -> bytes:
    """Return a UDP packet in IPv4 or IPv6, as the addresses are, with its EtherType in front."""
    if source.version == 6:
        return (
            b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, len(data), 17, 64) + source.packed + destination.packed + data
        )
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(data), 1, 0, 64, 17, 0) + source.packed + destination.packed
    return b"\x08\x00" + head[:10] + struct.pack(">H", _checksum(head)) + head[12:] + data


def _checksum(data: bytes) -> int:
    """Return the Internet checksum of ``data``, whose length is even (RFC 1071)."""
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


@cache
def _program(variant: Variant) -> Program:
    """Compile the firewall program in this variant, once per process and variant."""
    return compile_firewall(variant, {"WAY_BITS": "8"})


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Inject packets; return the percentage that arrived, and the reasons for which others were dropped, as a list in text.

    Raises :class:`ExperimentError` if the packets that arrived or were dropped are not all.
    """
    at, of, to, granted = CASES[point["packets"]]
    controller = FirewallController(rules(*INSIDE), reaction_delay_ms=1)
    topology = figure_3_2()
    network = SimulatedNetwork(topology, _program(point["variant"]), [controller], seed=seed)
    network.run(0.01)
    if granted:
        controller.replace(rules(*INSIDE, "h4"))
        network.run(0.02)
    before = network.node_counters(to).received
    for number in range(PACKETS):
        network.send_frame(at, udp_frame(topology, at, of, to, point["family"], 1024 + number))
    network.run(0.1)
    delivered = network.node_counters(to).received - before
    reasons: dict[str, int] = {}
    for switch in topology.switches:
        for reason, (packets, _) in controller.drops(switch).items():
            reasons[reason] = reasons.get(reason, 0) + packets
    if delivered + sum(reasons.values()) != PACKETS:
        raise ExperimentError(f"of {PACKETS} packets {delivered} arrived and {sum(reasons.values())} were dropped")
    return {"delivered_percent": 100 * delivered / PACKETS, "reasons": ", ".join(sorted(reasons)) or "none"}
