"""Fixtures of the tests of ``bier.p4``: compiled programs, and one switch with neighbours and receivers around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from ipaddress import IPv4Address
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from holdfast._core import Program, Switch
from holdfast.apps.bier import program
from holdfast.apps.bier.entries import (
    Configuration,
    bfer_configuration,
    bfir_configuration,
    port_configuration,
    switch_configuration,
)
from holdfast.apps.bier.header import ETHERTYPE_BIER, ETHERTYPE_MPLS, BierHeader
from holdfast.apps.bier.planning import Backup, Bift, NeighbourEntry, SwitchPlan
from holdfast.apps.bier.program import Replication, compile_bier
from holdfast.control.desired import Writer
from holdfast.control.domain import domain_registers, refused
from holdfast.control.membership.channels import Channel
from holdfast.control.next_hop import NextHop
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device

Compile = Callable[..., Program]

HOST, OTHER_HOST = 1, 2
"""Ports with receivers and senders."""
WEST, EAST, SOUTH = 11, 12, 13
"""Ports with switches of the network behind them."""
OWN = IPv4Address("10.255.0.1")
GROUP = IPv4Address("239.1.2.3")
SOURCE = IPv4Address("10.0.1.1")
BIFT = Bift(0, 0)


@pytest.fixture(scope="session")
def compiled() -> Compile:
    """Return :func:`compile_bier` with a cache: the same arguments are compiled once."""
    return cache(compile_bier)


@pytest.fixture(params=["one-pass", "recirculate", "clusters"])
def variant(request: pytest.FixtureRequest) -> Replication:
    """Return a way to replicate packets; each test runs once with every way."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=["jit", "interpreter"])
def executor(request: pytest.FixtureRequest) -> str:
    """Return an executor of the program, ``jit`` or ``interpreter``; each test runs once with both."""
    return str(request.param)


def hop(port: int) -> NextHop:
    """Return a next hop at a port, with MAC addresses that end in the port's number."""
    return NextHop(port, 0x020100000000 + port, 0x020200000000 + port)


def neighbour(port: int, f_bm: int, *backups: Backup) -> NeighbourEntry:
    """Return the entry of the neighbour ``n<port>`` behind a port, with its F-BM and backups."""
    return NeighbourEntry(f"n{port}", hop(port), f_bm, backups)


PLAN = SwitchPlan(
    1, OWN, {BIFT: ((neighbour(WEST, 0b0110), neighbour(EAST, 0b1000), neighbour(SOUTH, 0b10000)),)}, {BIFT: 1}
)
"""Bit 1 is the switch's own, 2 and 3 are west, 4 is east, 5 south."""


class Bfr:
    """One switch. ``domain``: ports with switches behind them, besides those of its neighbours."""

    def __init__(
        self,
        compiled: Program,
        plan: SwitchPlan = PLAN,
        *,
        executor: str = "jit",
        bsl: int = 256,
        domain: Iterable[int] = (),
    ) -> None:
        self.plan, self.bsl = plan, bsl
        self.switch = Switch(compiled, executor=executor)  # type: ignore[arg-type]
        self.client = LocalClient(Device(1, self.switch, executor=executor))  # type: ignore[arg-type]
        self.client.set_pipeline(compiled)
        self.writer = Writer(self.client)
        neighbours = [entry for buckets in plan.bifts.values() for bucket in buckets for entry in bucket]
        core = {entry.next_hop.port for entry in neighbours} | {
            backup.next_hop.port for entry in neighbours for backup in entry.backups
        }
        hosts = (HOST, OTHER_HOST)
        macs = {port: hop(port).src_mac for port in hosts}
        Writer(self.client).write(domain_registers(frozenset(core | set(domain))))
        self.wanted = port_configuration({*hosts, *core}, macs) | switch_configuration(plan, bsl=bsl)
        self.write(Configuration())

    def write(self, more: Configuration) -> Bfr:
        """Add ``more`` to the switch's configuration, write the differences, and return this object."""
        self.wanted = self.wanted | more
        self.writer.write(self.wanted)
        return self

    def send_channels(self, channels: Mapping[Channel, Mapping[Bift, int]], *, mtu: int = 1500) -> Bfr:
        """Write the entries that the switch needs as the BFIR of ``channels``, and return this object."""
        return self.write(bfir_configuration(self.plan, channels, bsl=self.bsl, mtu=mtu))

    def receive_channels(self, channels: Mapping[Channel, Iterable[int]]) -> Bfr:
        """Write the entries that the switch needs as the BFER of ``channels``, and return this object."""
        return self.write(bfer_configuration(channels))

    def down(self, *ports: int) -> Bfr:
        """Set these ports to down, and return this object."""
        for port in ports:
            self.switch.set_port_up(port, False)
        return self

    def send(self, packet: bytes, port: int = WEST) -> list[tuple[int, bytes]]:
        """Send ``packet`` into ``port``, and return (port, frame) of what leaves, sorted by port."""
        return sorted((out, bytes(sent)) for out, sent in self.switch.process(port, packet, 0))

    def counted(self) -> dict[str, int]:
        """Return those counters of the program that are not 0, by short name, in packets."""
        counts = {name: self.client.counter(full, 0)[0] for name, full in program.COUNTERS.items()}
        counts |= {f"refused at {port}": refused(self.client, port) for port in (HOST, OTHER_HOST, WEST, EAST, SOUTH)}
        return {name: count for name, count in counts.items() if count}


def payload(*, length: int = 20, group: object = GROUP, source: object = SOURCE, **fields: Any) -> Packet:
    """Return a multicast IPv4 packet with UDP and ``length`` zero bytes; ``fields`` replace those of the IPv4 header."""
    values: dict[str, Any] = {"src": str(source), "dst": str(group), "ttl": 32, **fields}
    return IP(**values) / UDP(sport=1, dport=2) / Raw(bytes(length))


def payload_v6(*, group: str = "ff3e::1", source: str = "2001:db8::1", **fields: Any) -> Packet:
    """Return a multicast IPv6 packet with UDP and 20 zero bytes; ``fields`` replace those of the IPv6 header."""
    values: dict[str, Any] = {"src": source, "dst": group, "hlim": 32, **fields}
    return IPv6(**values) / UDP(sport=1, dport=2) / Raw(bytes(20))


def header(bits: int, **fields: int) -> BierHeader:
    """Return a BIER header with the BitString ``bits``; ``fields`` replace its other values."""
    values = {"bift_id": BIFT.bift_id(256), "entropy": 0x54321, "dscp": 46, "bfir_id": 9, "ttl": 20, **fields}
    return BierHeader(bit_string=bits, **values)


def bier_frame(header: BierHeader, inner: Packet | bytes, port: int = WEST, *, mpls: bool = False) -> bytes:
    """Return the frame of a BIER packet as the neighbour behind ``port`` sends it to the switch."""
    ether = Ether(src=hop(port).dst_mac.to_bytes(6, "big"), dst=hop(port).src_mac.to_bytes(6, "big"))
    ether.type = ETHERTYPE_MPLS if mpls else ETHERTYPE_BIER
    return bytes(ether)[:14] + header.encode() + bytes(inner)


def sent_frame(header: BierHeader, inner: Packet | bytes, port: int, *, mpls: bool = False) -> tuple[int, bytes]:
    """Return (port, frame) of a BIER packet as the switch sends it out of ``port``."""
    to, of = hop(port).dst_mac.to_bytes(6, "big"), hop(port).src_mac.to_bytes(6, "big")
    ethertype = ETHERTYPE_MPLS if mpls else ETHERTYPE_BIER
    return port, to + of + ethertype.to_bytes(2, "big") + header.encode() + bytes(inner)


def host_frame(inner: Packet) -> bytes:
    """Return the frame of an IP packet as a host sends it."""
    return bytes(Ether(src="02:00:00:00:00:01", dst="01:00:5e:00:00:00") / inner)


def delivered_frame(inner: Packet, port: int, dst_mac: str) -> tuple[int, bytes]:
    """Return (port, frame) of an IP packet as the switch delivers it to a receiver at ``port``."""
    ether = Ether(src=hop(port).src_mac.to_bytes(6, "big"), dst=dst_mac)
    return port, bytes(ether / inner)
