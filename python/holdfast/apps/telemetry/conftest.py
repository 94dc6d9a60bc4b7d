"""Fixtures of the tests of ``telemetry.p4``: compiled programs, one switch, and packets written from the specifications."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import cache
from ipaddress import IPv4Address
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from holdfast._core import Program, Switch
from holdfast.apps.telemetry import program
from holdfast.apps.telemetry.entries import (
    PortRole,
    Reporter,
    switch_configuration,
    transit_configuration,
    watch_entries,
)
from holdfast.apps.telemetry.instructions import Instructions
from holdfast.apps.telemetry.program import compile_telemetry
from holdfast.apps.telemetry.watchlist import Watch
from holdfast.control.desired import Writer
from holdfast.control.domain import refused
from holdfast.control.next_hop import NextHop
from holdfast.control.tables import TableEntry
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device

Compile = Callable[..., Program]

HOST, LEFT, RIGHT, COLLECTOR_PORT = 1, 11, 12, 20
"""Ports: a host at the edge, two INT nodes, and the way to the collector."""
HOST_NET, RIGHT_NET = "10.0.1.0/24", "10.0.2.0/24"
HOST_NET_V6, RIGHT_NET_V6 = "2001:db8:1::/64", "2001:db8:2::/64"
NODE_ID = 0x01020304
DOMAIN_ID = 0xABCD
OWN, COLLECTOR = IPv4Address("10.255.0.1"), IPv4Address("10.0.9.9")
MTU = 1500
DSCP = 0x17
"""The DSCP that indicates INT."""
HW_ID = 5
NOW_US = 0x12_3456_789A
NODE_AND_PORTS = int(Instructions.NODE_ID | Instructions.PORTS)
EXECUTORS = ("jit", "interpreter")


@pytest.fixture(scope="session")
def compiled() -> Compile:
    """Return :func:`compile_telemetry` with a cache: the same arguments are compiled once."""
    return cache(compile_telemetry)


@pytest.fixture(params=EXECUTORS)
def executor(request: pytest.FixtureRequest) -> str:
    """Return an executor of the program, such as ``jit``; each test runs once with every one."""
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["IPv4", "IPv6"])
def v6(request: pytest.FixtureRequest) -> bool:
    """Return True if the test is to use IPv6, False for IPv4; a test runs once with each."""
    return bool(request.param)


@pytest.fixture(params=["tcp", "udp"])
def kind(request: pytest.FixtureRequest) -> str:
    """Return the transport protocol behind which INT is, ``tcp`` or ``udp``; each test runs once with both."""
    return str(request.param)


def hop(port: int) -> NextHop:
    """Return a next hop at a port, with MAC addresses that end in the port's number."""
    return NextHop(port, 0x020100000000 + port, 0x020200000000 + port)


class Node:
    """One switch: 10.0.1.0/24 is at its edge, 10.0.2.0/24 behind another INT node."""

    def __init__(
        self,
        compiled: Program,
        executor: str = "jit",
        *,
        watches: Iterable[Watch] = (),
        by_port: bool = False,
        mtu: int = MTU,
        transit: bool = False,
        load: bool = False,
        interfaces: bool = True,
        queue_threshold: int = 0,
        queue_quota: int = 0,
        **reporter: Any,
    ) -> None:
        self.switch = Switch(compiled, executor=executor)  # type: ignore[arg-type]
        self.client = LocalClient(Device(1, self.switch, executor=executor))  # type: ignore[arg-type]
        self.client.set_pipeline(compiled)
        for prefix, port in ((HOST_NET, HOST), (RIGHT_NET, RIGHT)):
            self.client.insert("ipv4_lpm", {"hdr.ipv4.dst_addr": prefix}, "forward", hop(port).params())
        for prefix, port in ((HOST_NET_V6, HOST), (RIGHT_NET_V6, RIGHT)):
            address, length = prefix.split("/")
            self.client.insert(
                "ipv6_lpm", {"hdr.ipv6.dst_addr": (address, int(length))}, "forward_v6", hop(port).params()
            )
        ports = {
            port: PortRole(
                mtu=mtu,
                edge=port == HOST,
                interface=0x10000 + port,
                queue_threshold=queue_threshold,
                queue_quota=queue_quota,
                rate_bps=1_000_000_000,
            )
            for port in (HOST, LEFT, RIGHT)
        }
        if transit:
            configuration = transit_configuration(NODE_ID, ports, load=load)
        else:
            entries = watch_entries(list(watches), domain_id=DOMAIN_ID, by_port=by_port)
            to = Reporter(hop(COLLECTOR_PORT), OWN, COLLECTOR, 50000, program.COLLECTOR_PORT, hw_id=HW_ID, **reporter)
            configuration = switch_configuration(NODE_ID, ports, entries, to)
        if not interfaces:
            configuration = tuple(
                each for each in configuration if not isinstance(each, TableEntry) or "interfaces" not in each.table
            )
        Writer(self.client).write(configuration)

    def process(self, packet: bytes, port: int, now_us: int = 0) -> list[tuple[int, bytes]]:
        """Send a frame into ``port``, and return (port, frame) of what leaves, sorted by port."""
        return sorted((out, bytes(sent)) for out, sent in self.switch.process(port, packet, now_us * 1_000_000))

    def send(self, packet: Packet, port: int = HOST, now_us: int = 0) -> list[tuple[int, bytes]]:
        """Send an IP packet into ``port``, and return (port, frame) of what leaves, sorted by port."""
        return self.process(frame_in(packet, port), port, now_us)

    def counted(self) -> dict[str, int]:
        """Return those counters of the program that are not 0, by short name, in packets."""
        known = {c.preamble.name for c in self.client.p4info.message.counters}
        counts = {name: self.client.counter(full, 0)[0] for name, full in program.COUNTERS.items() if full in known}
        counts["refused"] = refused(self.client, HOST)
        return {name: count for name, count in counts.items() if count}


def frame_in(packet: Packet, port: int) -> bytes:
    """Return the frame of a packet as it arrives at ``port``."""
    macs = hop(port)
    return bytes(Ether(src=macs.dst_mac.to_bytes(6, "big"), dst=macs.src_mac.to_bytes(6, "big")) / packet)


def frame_out(packet: Packet, port: int) -> tuple[int, bytes]:
    """Return (port, frame) of a packet as it leaves by ``port``."""
    macs = hop(port)
    return port, bytes(Ether(src=macs.src_mac.to_bytes(6, "big"), dst=macs.dst_mac.to_bytes(6, "big")) / packet)


def shim(kind: int, npt: int, length: int, original: int) -> bytes:
    """Return the shim of section 5.6.2: Type 4, NPT 2, R 2, Length 8, and the 16 bits that depend on NPT."""
    return struct.pack(">BBH", kind << 4 | npt << 2, length, original)


def md_header(
    instructions: int, hop_ml: int, remaining: int, *, d: int = 0, e: int = 0, m: int = 0, domain: int = DOMAIN_ID,
    ds_instructions: int = 0, ds_flags: int = 0, version: int = 2,
) -> bytes:  # fmt: skip
    """Return the INT-MD header of section 5.7.

    The numbers are widths in bits::

        Ver 4, D, E, M, R 12, Hop ML 5, RemainingHopCnt 8
        bitmap 16, domain 16
        DS instruction 16, DS flags 16
    """
    first = version << 28 | d << 27 | e << 26 | m << 25 | hop_ml << 8 | remaining
    return struct.pack(">IHHHH", first, instructions, domain, ds_instructions, ds_flags)


def mx_header(instructions: int, *, d: int = 0, domain: int = DOMAIN_ID, ds_instructions: int = 0) -> bytes:
    """Return the INT-MX header of section 5.8.

    The numbers are widths in bits::

        Ver 4, D, R 27
        bitmap 16, domain 16
        DS instruction 16, DS flags 16
    """
    return struct.pack(">IHHHH", 2 << 28 | d << 27, instructions, domain, ds_instructions, 0)


def words(*values: int) -> bytes:
    """Return 32-bit words as bytes, in network order."""
    return struct.pack(f">{len(values)}I", *values)


def l4(
    kind: str, payload: bytes, *, v6: bool = False, dscp: int = 0, ttl: int = 64, back: bool = False, **fields: Any
) -> Packet:
    """Return a packet from 10.0.1.1 to 10.0.2.1 (``back``: the other way); scapy computes lengths and checksums."""
    v4, six = ("10.0.1.1", "10.0.2.1"), ("2001:db8:1::1", "2001:db8:2::1")
    src, dst = (six if v6 else v4)[:: -1 if back else 1]
    ip = (
        IPv6(src=src, dst=dst, hlim=ttl, tc=dscp << 2 | 1)
        if v6
        else IP(src=src, dst=dst, ttl=ttl, tos=dscp << 2 | 1, id=7)
    )
    header: Packet
    if kind == "tcp":
        header = TCP(sport=1000, dport=2000, seq=5, ack=6, flags="PA", window=99, **fields)
    else:
        header = UDP(**{"sport": 1000, "dport": 2000, **fields})
    return ip / header / Raw(payload)


def int_packet(kind: str, header: bytes, stack: bytes, *, int_type: int = 1, **more: Any) -> Packet:
    """Return a packet with an INT shim, ``header`` and ``stack``, then a payload; its DSCP indicates INT."""
    return l4(kind, shim(int_type, 0, 3 + len(stack) // 4, 0x2E << 2) + header + stack + b"payload", dscp=DSCP, **more)
