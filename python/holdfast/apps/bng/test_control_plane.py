"""The control plane on the P4 user plane, in virtual time: modelled subscribers, sessions, traffic and storms."""

from __future__ import annotations

import shutil
import struct
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest

from holdfast._core import Program
from holdfast.apps.bng.conftest import CPU_PORT, Bench
from holdfast.apps.bng.edges import AccessPort, CorePort, Edges, Route
from holdfast.apps.bng.frames import tagged, untagged
from holdfast.apps.bng.program import Variant
from holdfast.subscribers.gateway import Gateway, Reconciled
from holdfast.subscribers.plane import Line, Rates
from holdfast.subscribers.store import SqliteStore
from holdfast.subscribers.subscriber import Account, Subscriber
from holdfast.subscribers.tests.worlds import VirtualClock, configuration, seeded
from holdfast.subscribers.users import UserList

ACCESS, CORE = 1, 9
MAC, CORE_MAC, ROUTER_MAC = "02:00:00:00:00:0a", "02:00:00:00:00:09", "06:00:00:00:00:09"
EDGES = Edges(
    access=(AccessPort(port=ACCESS, mac=MAC),),
    core=(CorePort(port=CORE, mac=CORE_MAC),),
    routes=(
        Route(prefix="0.0.0.0/0", port=CORE, next_hop_mac=ROUTER_MAC),
        Route(prefix="::/0", port=CORE, next_hop_mac=ROUTER_MAC),
    ),
)
SERVER = IPv4Address("198.51.100.9")
DELAY_S = 0.0005


class World(Bench):
    """A switch on a virtual clock, its gateway, and subscribers on their lines."""

    def __init__(self, program: Program, store: Path | None = None, **changes: object) -> None:
        self.clock = VirtualClock()
        self.hosts: dict[tuple[Line, bytes], Subscriber] = {}
        self.to_core: list[bytes] = []
        self.frames: list[tuple[float, bytes]] | None = None
        self.store_path = store
        self.changes = changes
        self.seed = 0
        super().__init__(program, "jit", EDGES)
        self.start()

    def start(self) -> Reconciled:
        """Start a new control plane on the same switch, and return which earlier sessions it found."""
        self.seed += 1
        self.restart()
        values = configuration(**self.changes)
        self.store = None if self.store_path is None else SqliteStore(self.store_path)
        self.gateway = Gateway(
            values, self.plane, self.clock, UserList(values.users), random=seeded(self.seed), store=self.store,
            wall=self.clock.now,
        )  # fmt: skip
        found = self.gateway.reconcile()
        self.gateway.start()
        return found

    def kill(self) -> None:
        """Kill the control plane at once; its timers that are still in the clock do nothing."""
        self.gateway.upkeep.stop()
        self.gateway._installation._plane = self.gateway._plane = None  # type: ignore[assignment]
        self.plane.receive(lambda line, frame: None)
        if self.store is not None:
            self.store.close()

    def _packet_out(self, packet: bytes) -> None:
        self._deliver(self.switch.process(CPU_PORT, packet, self._now()))

    def _now(self) -> int:
        return round(self.clock.now() * 1e12) + 1_000_000

    def _deliver(self, sent: list[tuple[int, bytes]]) -> None:
        for port, frame in sent:
            if port == CPU_PORT:
                self.plane.packet_in(frame[2:], {"ingress_port": int.from_bytes(frame[:2], "big") >> 7})
            elif port == CORE:
                self.to_core.append(frame)
            else:
                self._note(frame)
                line, plain = untagged(frame, port)
                host = self.hosts.get((line, plain[:6]))
                if host is not None:
                    self.clock.call_later(DELAY_S, lambda host=host, plain=plain: host.receive(plain))  # type: ignore[misc]

    def _note(self, frame: bytes) -> None:
        if self.frames is not None:
            self.frames.append((self.clock.now(), frame))

    def frame(self, port: int, frame: bytes) -> None:
        """Send a frame into ``port`` of the switch now."""
        if port == ACCESS:
            self._note(frame)
        self._deliver(self.switch.process(port, frame, self._now()))

    def subscriber(self, number: int, *, line: Line | None = None, up: Callable[[Subscriber], None] | None = None,
                   packet: Callable[[bytes], None] | None = None, **account: object) -> Subscriber:  # fmt: skip
        line = line or Line(ACCESS, 1 + number // 4000, 1 + number % 4000)
        mac = b"\x02\x01" + number.to_bytes(4, "big")

        def send(frame: bytes) -> None:
            wire = tagged(line, frame, 0x8100, port_tag=False)
            self.clock.call_later(DELAY_S, lambda: self.frame(ACCESS, wire))

        host = Subscriber(
            Account("alice", "secret", **account), mac, self.clock, send, seed=number, up=up, packet=packet  # type: ignore[arg-type]
        )  # fmt: skip
        self.hosts[line, mac] = host
        return host


def ipv4_packet(source: IPv4Address, destination: IPv4Address, payload: bytes = b"data") -> bytes:
    head = struct.pack("!BBHHHBBH", 0x45, 0, 28 + len(payload), 1, 0, 64, 17, 0) + source.packed + destination.packed
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + (0xFFFF - ((total & 0xFFFF) + (total >> 16))).to_bytes(2, "big") + head[12:]
    return head + struct.pack("!HHHH", 5, 6, 8 + len(payload), 0) + payload


@pytest.fixture
def program(programs: dict[Variant, Program]) -> Program:
    return programs["single"]


def test_a_subscriber_dials_through_the_switch_and_traffic_flows(program: Program) -> None:
    world = World(program)
    heard: list[bytes] = []
    host = world.subscriber(5, packet=heard.append)
    host.dial()
    world.clock.run(1)
    assert host.state == "up", host.reason
    own = IPv4Address(host.ipv4)
    host.send(ipv4_packet(own, SERVER))
    host.send(ipv4_packet(IPv4Address("100.64.99.99"), SERVER))  # spoofed
    world.clock.run(0.1)
    assert len(world.to_core) == 1
    world.frame(CORE, bytes.fromhex("020000000009 060000000009 0800") + ipv4_packet(SERVER, own))
    world.clock.run(0.1)
    assert len(heard) == 1
    before = world.plane.echoes()
    host.echo()
    world.clock.run(0.1)
    assert world.plane.echoes() == before + 1  # the data plane answered
    assert host.counts.sent["echo replies"] == 1
    world.gateway.change_rates(world.gateway.sessions[host.session], Rates(1_000_000, 2_000_000))
    world.clock.run(0.1)
    assert world.plane.installed()[host.session].rates == Rates(1_000_000, 2_000_000)
    usage = world.plane.usage([host.session])[host.session]
    assert usage.packets_down == 1
    number = host.session
    host.hang_up()
    world.clock.run(1)
    assert number not in world.plane.installed()
    assert not world.gateway.sessions


def test_a_thousand_subscribers_and_none_is_confused_with_another(program: Program) -> None:
    world = World(program, limits={"padi_per_s": 20_000, "setups": 5000})
    hosts = [world.subscriber(number) for number in range(1000)]
    for at, each in enumerate(hosts):
        world.clock.call_later(at / 1000, each.dial)
    world.clock.run(5)
    assert Counter(each.state for each in hosts) == {"up": 1000}
    assert len({each.ipv4 for each in hosts}) == len({each.delegated for each in hosts}) == 1000
    installed = world.plane.installed()
    for each in hosts:
        assert installed[each.session].mac == each.mac
        assert installed[each.session].ipv4 == IPv4Address(each.ipv4)
        assert installed[each.session].ipv6_interface == IPv6Address(each.link_local)
    for each in hosts[::50]:
        each.hang_up()
    world.clock.run(1)
    assert set(world.plane.installed()) == set(world.gateway.sessions)
    assert len(world.gateway.sessions) == 980


def test_kill_of_the_control_plane_costs_no_session_a_packet(program: Program, tmp_path: Path) -> None:
    world = World(program, tmp_path / "state.db")
    heard: list[bytes] = []
    host = world.subscriber(1, packet=heard.append)
    others = [world.subscriber(number) for number in range(2, 50)]
    for each in (host, *others):
        each.dial()
    world.clock.run(3)
    own = IPv4Address(host.ipv4)
    sent = 0

    def traffic() -> None:
        nonlocal sent
        sent += 1
        host.send(ipv4_packet(own, SERVER))
        world.frame(CORE, bytes.fromhex("020000000009 060000000009 0800") + ipv4_packet(SERVER, own))
        world.clock.call_later(0.001, traffic)

    traffic()
    world.clock.run(1)
    world.kill()
    world.clock.run(2)
    host.echo()
    assert world.start() == Reconciled(49, 0, 0)
    world.clock.run(40)
    assert sent - 1 <= len(world.to_core) <= sent
    assert sent - 1 <= len(heard) <= sent
    assert host.counts.sent["echo replies"] == 1  # while nobody was there
    assert all(each.state == "up" and each.counts.lost == 0 for each in (host, *others))
    late = world.subscriber(99)
    late.dial()
    world.clock.run(1)
    assert late.state == "up"


def test_tshark_finds_nothing_malformed_from_setup_to_termination(program: Program, tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    world = World(program, max_payload=1500)
    world.frames = []
    chap = world.subscriber(1, max_payload=1500, rapid_commit=False, access_tags=bytes.fromhex("00000de9 0103616263"))
    pap = world.subscriber(2, pap=True)
    wrong = world.subscriber(3)
    wrong.account = Account("alice", "wrong")
    for each in (chap, pap, wrong):
        each.dial()
    world.clock.run(1)
    assert (chap.state, pap.state, wrong.state) == ("up", "up", "failed")
    chap.echo()
    chap.renew()
    chap.send(ipv4_packet(IPv4Address(chap.ipv4), SERVER))
    world.clock.run(1)
    chap.release()
    world.clock.run(1)
    chap.hang_up()
    world.gateway.kick([pap.session])
    world.clock.run(10)
    capture = tmp_path / "session.pcap"
    records = b"".join(
        struct.pack("<IIII", int(at), int(at % 1 * 1e6), len(frame), len(frame)) + frame for at, frame in world.frames
    )
    capture.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + records)

    def tshark(*words: str) -> list[str]:
        done = subprocess.run(
            ["tshark", "-n", "-r", str(capture), "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", *words],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.splitlines()

    complaints = tshark("-Y", "_ws.malformed || _ws.expert.severity >= 0x600000", "-T", "fields", "-e", "frame.number",
                        "-e", "_ws.expert.message")  # fmt: skip
    assert complaints == []
    protocols = Counter(tshark("-T", "fields", "-e", "_ws.col.Protocol"))
    assert {"PPPoED", "PPP LCP", "PPP CHAP", "PPP PAP", "PPP IPCP", "PPP IPV6CP", "ICMPv6", "DHCPv6"} <= set(protocols)
    assert tshark("-Y", "icmpv6.checksum.status == 0 || udp.checksum.status == 0") == []
    assert sum(protocols.values()) == len(world.frames) > 80


def test_a_storm_starves_nobody(program: Program) -> None:
    """100,000 PADI/s from one line and as many PADRs with forged cookies; established sessions lose nothing."""
    world = World(program)
    heard: list[bytes] = []
    host = world.subscriber(1, packet=heard.append)
    host.dial()
    world.clock.run(1)
    own = IPv4Address(host.ipv4)
    storm = Line(ACCESS, 77, 7)
    number = sent = 0

    def attack() -> None:
        nonlocal number, sent
        for _ in range(100):
            number += 1
            mac = b"\x06" + number.to_bytes(5, "big")
            padi = b"\xff" * 6 + mac + bytes.fromhex("8863 1109 0000 0004 0101 0000")
            padr = (
                bytes.fromhex("02000000000a")
                + mac
                + bytes.fromhex("8863 1119 0000 0024 0101 0000 0104 001c")
                + bytes(28)
            )
            for frame in (padi, padr, padr[:30], padi[:21]):
                world.frame(ACCESS, tagged(storm, frame, 0x8100, port_tag=False))
        host.send(ipv4_packet(own, SERVER))
        sent += 1
        world.frame(CORE, bytes.fromhex("020000000009 060000000009 0800") + ipv4_packet(SERVER, own))
        world.clock.call_later(0.001, attack)

    attack()
    world.clock.run(1)
    late = world.subscriber(2)
    began = world.clock.now()
    late.dial()
    cpu = time.process_time()
    world.clock.run(1)
    cpu = time.process_time() - cpu
    assert late.state == "up"
    assert late.up_s - began < 5
    assert sent - 1 <= len(heard) <= sent
    assert sent - 1 <= len(world.to_core) <= sent
    drops = world.plane.drops()
    assert drops["line_rate"] + drops.get("control_rate", 0) > 100_000
    # Of the packets that the meters let through, few cost more than a look.
    assert world.gateway.events["pado"] < 50
    assert len(world.gateway.sessions) == 2
