"""Fixtures of this application's tests: one switch with its user plane, frames of lines, and sessions."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any

import pytest
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from scapy.layers.ppp import PPP, PPPoE
from scapy.packet import Packet, Raw

from holdfast._core import Program, Switch
from holdfast.apps.bng.edges import AccessPort, CorePort, Edges, Route
from holdfast.apps.bng.program import VARIANTS, Variant, compile_balancer, compile_bng
from holdfast.apps.bng.single import SinglePlane
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device
from holdfast.subscribers.plane import Line, Rates, Session

CPU_PORT = 510
ACCESS, ACCESS_QINQ, CORE = 1, 2, 9
GATEWAY_MAC, QINQ_MAC, CORE_MAC, ROUTER_MAC = (
    "02:00:00:00:00:01",
    "02:00:00:00:00:02",
    "02:00:00:00:00:09",
    "06:00:00:00:00:09",
)
US = 1_000_000
"""Picoseconds in a microsecond."""

EDGES = Edges(
    access=(
        AccessPort(port=ACCESS, mac=GATEWAY_MAC),
        AccessPort(port=ACCESS_QINQ, mac=QINQ_MAC, s_tpid=0x88A8),
    ),
    core=(CorePort(port=CORE, mac=CORE_MAC, addresses=(IPv4Address("192.0.2.1"), IPv6Address("2001:db8:ffff::1"))),),
    routes=(
        Route(prefix=IPv4Network("0.0.0.0/0"), port=CORE, next_hop_mac=ROUTER_MAC),
        Route(prefix=IPv6Network("::/0"), port=CORE, next_hop_mac=ROUTER_MAC),
    ),
)


def session(number: int, line: Line | None = None, **changes: Any) -> Session:
    """Return a session with an IPv4 address, a /64 and a delegated /56, all derived from ``number``; ``changes`` replace values."""
    values: dict[str, Any] = {
        "session_id": number,
        "line": line or Line(ACCESS, 100, number % 4094 + 1),
        "mac": b"\x02\x01" + number.to_bytes(4, "big"),
        "magic": 0x12340000 + number,
        "ipv4": IPv4Address("10.0.0.0") + number,
        "ipv6_interface": IPv6Address("fe80::") + number,
        "ipv6_prefix": IPv6Network((0x20010DB8_0001 << 80 | number << 64, 64)),
        "delegated": IPv6Network((0x20010DB9 << 96 | number << 72, 56)),
    }
    return Session(**(values | changes))


def on_line(line: Line, frame: Packet, tpid: int = 0x8100) -> bytes:
    """Return ``frame`` with the tags of ``line``; ``tpid`` is the EtherType of the outer tag."""
    payload, kind = frame.payload, frame.type
    header = Ether(src=frame.src, dst=frame.dst)
    if line.c_tag:
        outer = Dot1AD if tpid == 0x88A8 else Dot1Q
        return bytes(header / outer(vlan=line.s_tag) / Dot1Q(vlan=line.c_tag, type=kind) / payload)
    if line.s_tag:
        outer = Dot1AD if tpid == 0x88A8 else Dot1Q
        return bytes(header / outer(vlan=line.s_tag, type=kind) / payload)
    return bytes(Ether(src=frame.src, dst=frame.dst, type=kind) / payload)


def gateway_mac(line: Line) -> str:
    """Return the MAC address that the gateway has on the port of ``line``."""
    return QINQ_MAC if line.port == ACCESS_QINQ else GATEWAY_MAC


def up(of: Session, inner: Packet, **changes: Any) -> bytes:
    """Return the frame of a packet that a session's subscriber sends: in PPP, PPPoE and the VLAN tags of its line.

    ``changes`` may replace ``mac``, ``dst``, ``line``, ``number`` and ``protocol``.
    """
    protocol = {IP: 0x0021, IPv6: 0x0057}.get(type(inner), 0xC021)
    line = changes.get("line", of.line)
    frame = (
        Ether(src=changes.get("mac", of.mac.hex(":")), dst=changes.get("dst", gateway_mac(line)), type=0x8864)
        / PPPoE(sessionid=changes.get("number", of.session_id))
        / PPP(proto=changes.get("protocol", protocol))
        / inner
    )
    return on_line(line, frame, 0x88A8 if line.port == ACCESS_QINQ else 0x8100)


def down(inner: Packet, mac: str = CORE_MAC) -> bytes:
    """Return the Ethernet frame of a packet that the core's router sends to the gateway's address ``mac``."""
    return bytes(Ether(src=ROUTER_MAC, dst=mac) / inner)


def discovery(line: Line, code: int, mac: str, number: int = 0, payload: bytes = b"\x01\x01\x00\x00") -> bytes:
    """Return a PPPoE discovery frame (RFC 2516) with code ``code`` as host ``mac`` sends it on ``line``; a PADI is a broadcast."""
    to = "ff:ff:ff:ff:ff:ff" if code == 9 else gateway_mac(line)
    frame = Ether(src=mac, dst=to, type=0x8863) / PPPoE(code=code, sessionid=number) / Raw(payload)
    return on_line(line, frame, 0x88A8 if line.port == ACCESS_QINQ else 0x8100)


def lcp(code: int, magic: int, data: bytes = b"", identifier: int = 7) -> Raw:
    """Return an LCP packet with code ``code``, magic number ``magic`` and ``data``."""
    return Raw(bytes((code, identifier)) + (8 + len(data)).to_bytes(2, "big") + magic.to_bytes(4, "big") + data)


@pytest.fixture(scope="session")
def programs() -> dict[Variant, Program]:
    """Return the compiled program of each variant of ``bng.p4``."""
    return {variant: compile_bng(variant) for variant in VARIANTS}


@pytest.fixture(scope="session")
def balancer() -> Program:
    """Return the compiled program ``balancer.p4``."""
    return compile_balancer()


class Bench:
    """A switch and its user plane without a network: the test is the wire, the clock and the control plane."""

    def __init__(self, program: Program, executor: str = "jit", edges: Edges = EDGES) -> None:
        self.switch = Switch(program, executor=executor)  # type: ignore[arg-type]
        self.sent: list[tuple[int, bytes]] = []
        self.device = Device(1, self.switch, executor=executor, packet_out=self._packet_out)  # type: ignore[arg-type]
        self.client = LocalClient(self.device)
        self.client.set_pipeline(program)
        self.edges = edges
        self.now_ps = US
        self.heard: list[tuple[Line, bytes]] = []
        self.plane = self.restart()

    def restart(self) -> SinglePlane:
        """Create a new controller for the same switch, which keeps its entries, and return the controller."""
        self.plane = SinglePlane(self.client, self.edges)
        self.plane.receive(lambda line, frame: self.heard.append((line, frame)))
        return self.plane

    def _packet_out(self, packet: bytes) -> None:
        self.sent += self.switch.process(CPU_PORT, packet, self.now_ps)

    def receive(self, port: int, frame: bytes, after_us: int = 1000) -> list[tuple[int, bytes]]:
        """Send a frame into ``port`` after ``after_us`` microseconds; return (port, frame) of what switch and controller send."""
        self.sent = []
        self.now_ps += after_us * US
        for out, packet in self.switch.process(port, frame, self.now_ps):
            if out == CPU_PORT:
                self.plane.packet_in(packet[2:], {"ingress_port": int.from_bytes(packet[:2], "big") >> 7})
            else:
                self.sent.append((out, packet))
        return self.sent

    def reason(self, port: int, frame: bytes) -> str:
        """Send a frame and return the reason of its drop; "passes" if it is forwarded, "nothing" if nothing is sent or counted."""
        before, heard = self.plane.drops(), len(self.heard)
        sent = self.receive(port, frame)
        after = self.plane.drops()
        gone = [name for name, packets in after.items() if packets != before.get(name, 0)]
        if sent or len(self.heard) > heard or not gone:
            assert not gone
            return "passes" if sent or len(self.heard) > heard else "nothing"
        [name] = gone
        assert after[name] == before.get(name, 0) + 1
        return name


@pytest.fixture(params=["jit", "interpreter"])
def executor(request: pytest.FixtureRequest) -> Any:
    """Return an executor of the program, ``jit`` or ``interpreter``; each test runs once with both."""
    return request.param


@pytest.fixture
def bench(programs: dict[Variant, Program], executor: Any) -> Bench:
    """Return a switch with its user plane: the variant ``single``."""
    return Bench(programs["single"], executor)


@pytest.fixture
def fast_bench(programs: dict[Variant, Program]) -> Callable[..., Bench]:
    """Return a function that makes a bench whose switch runs as machine code, for tests with many packets."""
    return lambda **given: Bench(programs["single"], "jit", **given)


LIMITED = Rates(up_bit_s=8_000_000, down_bit_s=16_000_000)
