"""A firewall between inside hosts, servers and the outside: attackers at its ports, honest flows through it, and laws of both.

The switch runs the real program, with few cells for flows and sources, so that they are soon contended for.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Mapping
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from random import Random

from attacks import ip_frames as wire
from attacks.ip_frames import ACK, FIN, ICMP, ICMPV6, RST, SYN, TCP, UDP, Address
from attacks.sequences import Room, Step, Steps, World
from holdfast._core import Program, Switch
from holdfast.apps.firewall import program as firewall_program
from holdfast.apps.firewall.controller import FirewallController
from holdfast.apps.firewall.program import compile_firewall
from holdfast.apps.firewall.rules import RuleSet
from holdfast.p4runtime.client import Client, LocalClient
from holdfast.p4runtime.device import Device
from holdfast.topology import Topology

SMALL = {"WAY_BITS": "7", "RULES": "64", "SOURCE_BITS": "6"}
CPU_PORT = 510
ROUTER = bytes.fromhex("0200000000fe")
INSIDE, SERVERS, OUTSIDE = 1, 2, 3
"""Ports, each of a zone of that name."""
NEIGHBOUR = bytes.fromhex("020000000201")
"""The router at the outside, behind which all others are."""
NEW_PER_S, NEW_BURST = 50, 100
LONGEST_S = 7440.0
"""No flow lives longer without a packet (RFC 5382)."""
FAR = 1 << 28
"""Numbers that are farther off than this are in no window."""


def station(port: int, number: int) -> tuple[bytes, tuple[Address, Address]]:
    """Return the MAC address and the (IPv4, IPv6) addresses of a bound host at a port."""
    mac = bytes((2, 0, 0, 0, port - 1, number))
    return mac, (IPv4Address(f"10.0.{port}.{number}"), IPv6Address(f"2001:db8:{port}::{number}"))


STATIONS = {port: [station(port, number) for number in (1, 2, 3)] for port in (INSIDE, SERVERS)}
"""The third inside host is an attacker's, and so is the third server."""
PEERS: list[Address] = [IPv4Address("198.51.100.1"), IPv6Address("2001:db8:9::1")]
"""Addresses of honest hosts outside."""

RULES = RuleSet.model_validate(
    {
        "zones": {"inside": {}, "servers": {"may": "reply"}, "outside": {}},
        "ports": [
            {"port": INSIDE, "zone": "inside"},
            {"port": SERVERS, "zone": "servers"},
            {"port": OUTSIDE, "zone": "outside", "senders": "mac"},
        ],
        "bindings": [
            *(
                {"port": port, "mac": mac.hex(":"), "addresses": [str(it) for it in addresses]}
                for port, found in STATIONS.items()
                for mac, addresses in found
            ),
            {"port": OUTSIDE, "mac": NEIGHBOUR.hex(":")},
        ],
        "new_flows_per_source": {"per_s": NEW_PER_S, "burst": NEW_BURST},
        "rules": [
            {"name": "web", "action": "allow", "to": "servers", "protocol": "tcp", "destination_ports": [80, 443]},
            {
                "name": "names",
                "action": "allow",
                "from": "inside",
                "to": "outside",
                "protocol": "udp",
                "destination_ports": 53,
            },
            {"name": "out", "action": "allow", "from": "inside", "to": "outside", "protocol": "tcp"},
            {"name": "ping", "action": "allow", "from": "inside", "protocol": "icmp"},
            {"name": "ping6", "action": "allow", "from": "inside", "protocol": "icmpv6"},
        ],
    }
)

Key = frozenset[tuple[Address, int]]


def kept(frame: bytes) -> bytes:
    """Return the bytes of a frame that a router must not change: all but MAC addresses, TTL and its checksum, or hop limit."""
    if frame[12:14] == b"\x08\0":
        return frame[12:22] + frame[23:24] + frame[26:]
    return frame[12:21] + frame[22:]


@cache
def compiled() -> Program:
    """Compile the routed firewall with few register cells."""
    return compile_firewall("routed", SMALL)


class Connection:
    """An honest connection or exchange between two ends, with the state that both keep."""

    def __init__(
        self, protocol: int, ends: tuple[tuple[int, bytes, Address], tuple[int, bytes, Address]], ports: tuple[int, int]
    ) -> None:
        self.protocol, self.ends, self.ports = protocol, ends, ports
        self.next = [0, 0]
        self.open = False

    @property
    def key(self) -> Key:
        """Both ends as (address, port), the same for both directions."""
        return frozenset((end[2], port) for end, port in zip(self.ends, self.ports, strict=True))

    def frame(self, who: int, body: bytes) -> bytes:
        """Return a frame from end ``who`` (0: the end that began) to the other end."""
        (_, mac, source), (_, _, to) = self.ends[who], self.ends[1 - who]
        return wire.frame(mac, ROUTER, source, to, self.protocol, body)

    def segment(self, who: int, flags: int, data: bytes = b"") -> bytes:
        """Return a frame with the next TCP segment of end ``who``, and advance the sequence numbers of the connection."""
        ports = self.ports if who == 0 else self.ports[::-1]
        body = wire.tcp(ports, self.next[who], self.next[1 - who] if flags & ACK else 0, flags, data)
        self.next[who] += len(data) + bool(flags & SYN) + bool(flags & FIN)
        return self.frame(who, body)


class FirewallUnderAttack(World):
    """The world, which is the controller's control plane too. ``make`` builds the controller: tests plant faults in it."""

    def __init__(self, seed: int, make: Callable[..., FirewallController] = FirewallController) -> None:
        super().__init__()
        self.random = Random(seed)
        executor = self.random.choice(("jit", "jit", "interpreter"))
        self.switch = Switch(compiled(), executor=executor)  # type: ignore[arg-type]
        self.device = Device(1, self.switch, executor=executor, packet_out=lambda packet: None)  # type: ignore[arg-type]
        self.client = LocalClient(self.device)
        self.client.set_pipeline(compiled())
        self.topology = Topology("attacked")
        self.topology.add_switch("s1")
        self.now_us = 1_000_000
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self.controller = make(RULES, reaction_delay_ms=0)
        self.client.on_digest = lambda digest: self.controller.on_digest("s1", digest)
        self.controller.attach(self)
        self.controller.on_start()
        self._route()
        self.connections: list[Connection] = []
        self.begun: dict[Key, int] = {}
        """The time at which a flow was last used from an end that may begin it."""
        self.passed = 0
        self.isn = 0
        self.last_begun_us = 0
        self.packets = 0
        for _ in range(3):
            self.begin(Random(seed))

    # The control plane for the controller.

    @property
    def clients(self) -> Mapping[str, Client]:
        """The client of the one switch, by its name."""
        return {"s1": self.client}

    @property
    def now_ps(self) -> int:
        """The time on the world's clock, in picoseconds."""
        return self.now_us * 1_000_000

    def port_is_up(self, switch: str, port: int) -> bool:
        """Return True: no port of this world goes down."""
        return True

    def secret(self) -> bytes:
        """Return the same secret in every world."""
        return bytes(range(32))

    def call_later(self, delay_ms: float, handler: Callable[[], None]) -> None:
        """Call ``handler`` when :meth:`elapse` reaches the time ``delay_ms`` from now."""
        heapq.heappush(self._timers, (self.now_us + round(delay_ms * 1000), next(self._numbers), handler))

    def process(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """Send a frame through the switch. Returns (port, frame) for each frame that leaves it."""
        return [(to, bytes(sent)) for to, sent in self.switch.process(port, frame, self.now_ps)]

    def _route(self) -> None:
        def to(address: str, length: int, port: int, mac: bytes) -> None:
            four = ":" not in address
            table = firewall_program.ROUTES.ipv4 if four else firewall_program.ROUTES.ipv6
            field = "hdr.ipv4.dst_addr" if four else "hdr.ipv6.dst_addr"
            hop = {"port": port, "src_mac": int.from_bytes(ROUTER, "big"), "dst_mac": int.from_bytes(mac, "big")}
            action = firewall_program.FORWARD + ("" if four else "_v6")
            self.client.insert(table, {field: (int(ip_address(address)), length)}, action, hop)

        for port, found in STATIONS.items():
            for mac, addresses in found:
                for each in addresses:
                    to(str(each), 32 if each.version == 4 else 128, port, mac)
        to("198.51.0.0", 16, OUTSIDE, NEIGHBOUR)
        to("2001:db8:9::", 48, OUTSIDE, NEIGHBOUR)

    # Packets and time.

    def elapse(self, time_us: int) -> None:
        """Advance the clock by ``time_us`` microseconds, and call the controller's timers that are due."""
        until = self.now_us + time_us
        while self._timers and self._timers[0][0] <= until:
            self.now_us, _, handler = heapq.heappop(self._timers)
            handler()
        self.now_us = until

    def receive(self, port: int, frame: bytes) -> int | None:
        """Send a frame and return the port at which it leaves, or None. Checks what must hold for every frame."""
        self.packets += 1
        self.elapse(1)
        out = [(to, sent) for to, sent in self.process(port, frame) if to != CPU_PORT]
        if not out:
            return None
        self.passed += 1
        if len(out) > 1:
            self.broken("a packet is copied", frame.hex())
        to, sent = out[0]
        if kept(sent) != kept(frame):
            self.broken("a packet is changed", f"{frame.hex()} to {sent.hex()}")
        self._check_passage(port, to, frame)
        return to

    def _check_passage(self, port: int, to: int, frame: bytes) -> None:
        four = frame[12:14] == b"\x08\0"
        source = ip_address(frame[26:30]) if four else ip_address(frame[22:38])
        target = ip_address(frame[30:34]) if four else ip_address(frame[38:54])
        protocol = frame[23] if four else frame[20]
        for other, found in STATIONS.items():
            if other != port and any(source in addresses for _, addresses in found):
                self.broken("an address of another port passes", f"{source} from port {port}: {frame.hex()}")
        if port != OUTSIDE and not any(frame[6:12] == mac and source in addresses for mac, addresses in STATIONS[port]):
            self.broken("an unbound sender passes", frame.hex())
        if protocol not in (TCP, UDP):
            return
        body = frame[34 if four else 54 :]
        key = frozenset(((source, int.from_bytes(body[:2], "big")), (target, int.from_bytes(body[2:4], "big"))))
        if port == INSIDE or (to == SERVERS and body[2:4] in (b"\0\x50", b"\x01\xbb")):
            self.begun[key] = self.now_us
        elif self.now_us - self.begun.get(key, -(1 << 62)) > LONGEST_S * 1e6:
            self.broken("a flow begins where none may", f"from port {port} to {to}: {frame.hex()}")

    # Honest flows.

    def begin(self, random: Random) -> None:
        """Begin a flow of an honest host, which must pass the firewall, as honest hosts have few flows."""
        version = random.randrange(2)
        inside = (INSIDE, STATIONS[INSIDE][random.randrange(2)])
        kind = random.choice(("tcp", "tcp", "udp", "echo", "web", "web"))
        peer = (OUTSIDE, NEIGHBOUR, PEERS[version])
        ends = ((inside[0], inside[1][0], inside[1][1][version]), peer)
        self.isn += 1
        mine = 20_000 + self.isn % 20_000
        if kind == "web":
            server = STATIONS[SERVERS][random.randrange(2)]
            ends = (random.choice((ends[0], peer)), (SERVERS, server[0], server[1][version]))
        protocol = {"udp": UDP, "echo": ICMPV6 if version else ICMP}.get(kind, TCP)
        connection = Connection(protocol, ends, (mine, {"udp": 53, "web": 80}.get(kind, 443)))
        connection.next = [random.randrange(1 << 32), random.randrange(1 << 32)]
        self.elapse(30_000)  # an honest source is far below its rate of new flows
        if protocol == TCP:
            for who, flags in ((0, SYN), (1, SYN | ACK), (0, ACK)):
                self.honest(connection, who, connection.segment(who, flags), "begins")
            connection.open = True
            self.connections.append(connection)
            if len(self.connections) > 12:
                self.close(self.connections[0])
        else:
            self.exchange(connection)

    def honest(self, connection: Connection, who: int, frame: bytes, what: str) -> None:
        """Send a frame of an honest end, and check that it reaches the other end."""
        if self.receive(connection.ends[who][0], frame) != connection.ends[1 - who][0]:
            law = "an honest flow cannot begin" if what == "begins" and who == 0 else "an honest packet is dropped"
            reasons = {name: count for name, (count, _) in self.controller.drops("s1").items() if count}
            self.broken(law, f"{what}, end {who} of {connection.ends}, {connection.ports}; drops {reasons}")

    def exchange(self, connection: Connection) -> None:
        """Send data of an honest connection in both directions, with acknowledgments, and check that all of it arrives."""
        if connection.protocol == TCP:
            for who, data in ((0, b"x" * 100), (1, b"y" * 300), (0, b"")):
                self.honest(connection, who, connection.segment(who, ACK, data), "goes on")
            return
        for who in (0, 1):
            if connection.protocol == UDP:
                body = wire.udp(connection.ports if who == 0 else connection.ports[::-1], b"name")
            else:
                body = wire.echo(connection.ends[0][2].version, connection.ports[0], 1, reply=who == 1)
            self.honest(connection, who, connection.frame(who, body), "begins")

    def close(self, connection: Connection) -> None:
        """Close an honest connection by FIN segments from both ends."""
        self.connections.remove(connection)
        for who, flags in ((0, FIN | ACK), (1, FIN | ACK), (0, ACK)):
            self.honest(connection, who, connection.segment(who, flags), "closes")

    # Steps and laws.

    def play(self, step: Step) -> None:
        """Execute one step of a sequence, then check the laws."""
        random = Random(step.seed)
        state = f"{len(self.connections)} connections, {min(len(self.begun), 200) // 20}x20 flows"
        done = STEPS.acts[step.name](self, random)
        self.log.append(f"{self.now_us / 1e6:12.6f} {step.name} {done}")
        self.states[state, f"{step.name} {done.partition(' ')[0]}"] += 1
        for connection in self.connections:
            self.exchange(connection)
        self.check()

    def check(self) -> None:
        """Check that each packet is counted once, as passed or as dropped; call :meth:`broken` if the counts differ."""
        dropped = sum(count for count, _ in self.controller.drops("s1").values())
        if dropped + self.passed != self.packets:
            self.broken(
                "packets are counted",
                f"{self.packets} were sent, {self.passed} passed, {dropped} are counted as dropped",
            )

    def end(self) -> None:
        """Wait until all flows have timed out, then check that only packets that begin a flow pass."""
        left = list(self.connections)
        self.elapse(round(LONGEST_S * 1e6) + 2_000_000)
        for connection in left:
            for who in (0, 1):
                if self.receive(connection.ends[who][0], connection.segment(who, ACK, b"late")) is not None:
                    self.broken("flows left when all have left", f"{connection.ends} {connection.ports}")
        self.connections.clear()
        self.begin(self.random)
        self.check()


# What attackers do.

Act = Callable[[FirewallUnderAttack, Random], str]
STEPS: Steps[Act] = Steps()
step = STEPS.step


def outsider(random: Random, version: int) -> Address:
    """Return the address of a host outside: one of a few, or a random one."""
    number = random.choice((2, 3, random.randrange(2, 60_000)))
    return (
        IPv6Address((0x20010DB80009 << 80) + number)
        if version
        else IPv4Address((198 << 24) + (51 << 16) + (1 << 8) + number)
    )


@step(5)
def forge(world: FirewallUnderAttack, random: Random) -> str:
    """Send forged segments of an honest connection from outside, with sequence numbers that are far off.

    They have the address of the connection's end there, or of another host.
    """
    if not world.connections:
        return "nothing"
    connection = random.choice(world.connections)
    who = random.randrange(2)
    flags = random.choice((SYN, SYN | ACK, ACK, ACK | FIN, RST, RST | ACK, 0, SYN | FIN))
    from_outside = connection.ends[who][0] == OUTSIDE
    for _ in range(random.choice((1, 3, 20))):
        sequence = connection.next[who] + random.randrange(FAR, (1 << 32) - FAR)
        acknowledged = connection.next[1 - who] + random.randrange(FAR, (1 << 32) - FAR)
        ports = connection.ports if who == 0 else connection.ports[::-1]
        body = wire.tcp(
            ports, sequence, acknowledged, flags, b"z" * random.choice((0, 1, 500)), random.choice((0, 1, 65535))
        )
        frame = wire.frame(NEIGHBOUR, ROUTER, connection.ends[who][2], connection.ends[1 - who][2], TCP, body)
        passes = world.receive(OUTSIDE, frame)
        if passes is not None and not flags & SYN and (not from_outside or len(body) > 20):
            world.broken("a forged segment passes", frame.hex())
    return f"{flags} {'own' if from_outside else 'foreign'}"


@step(4)
def take_address(world: FirewallUnderAttack, random: Random) -> str:
    """Begin flows with the address of an inside host or a server, from outside or from an inside attacker's station."""
    port = random.choice((OUTSIDE, OUTSIDE, INSIDE, SERVERS))
    version = random.randrange(2)
    mac = NEIGHBOUR if port == OUTSIDE else STATIONS[port][2][0]
    victim = STATIONS[random.choice((INSIDE, SERVERS))][random.randrange(2)][1][version]
    web = random.random() < 0.6
    to = STATIONS[SERVERS][random.randrange(2)][1][version] if web else outsider(random, version)
    for _ in range(random.choice((1, 30, 300))):
        ports = random.randrange(1, 1 << 16), 80 if web else random.choice((53, 443))
        body = wire.tcp(ports, random.randrange(1 << 32), 0, SYN) if random.random() < 0.8 else wire.udp(ports)
        world.receive(port, wire.frame(mac, ROUTER, victim, to, TCP if len(body) >= 20 else UDP, body))
    return f"at-{port}"


@step(4)
def flood(world: FirewallUnderAttack, random: Random) -> str:
    """Begin very many flows to servers and inside hosts, from one or from any address outside."""
    version = random.randrange(2)
    kind = random.choice(("one", "any"))
    source = outsider(random, version)
    for _ in range(random.choice((50, 400, 1200))):
        if kind == "any":
            source = outsider(random, version)
        to = STATIONS[random.choice((SERVERS, SERVERS, INSIDE))][random.randrange(3)][1][version]
        body = wire.tcp((random.randrange(1, 1 << 16), random.choice((80, 443, 22))), random.randrange(1 << 32), 0, SYN)
        world.receive(OUTSIDE, wire.frame(NEIGHBOUR, ROUTER, source, to, TCP, body))
    return kind


@step(3)
def flood_from_inside(world: FirewallUnderAttack, random: Random) -> str:
    """Begin very many flows from an inside host, in its own name."""
    version = random.randrange(2)
    mac, addresses = STATIONS[INSIDE][2]
    kind = random.choice(("tcp", "udp", "echo"))
    for _ in range(random.choice((50, 400))):
        ports = random.randrange(1, 1 << 16), 53 if kind == "udp" else 443
        to, number = outsider(random, version), random.randrange(1 << 16)
        protocol = {"tcp": TCP, "udp": UDP}.get(kind, ICMPV6 if version else ICMP)
        body = {"tcp": wire.tcp(ports, number, 0, SYN), "udp": wire.udp(ports)}.get(
            kind, wire.echo(4 + 2 * version, number, 1)
        )
        world.receive(INSIDE, wire.frame(mac, ROUTER, addresses[version], to, protocol, body))
    return kind


@step(3)
def answer_unasked(world: FirewallUnderAttack, random: Random) -> str:
    """Send to inside hosts answers that they have not asked for, and packets that begin flows."""
    version = random.randrange(2)
    source = random.choice((outsider(random, version), PEERS[version]))
    to = STATIONS[INSIDE][random.randrange(3)][1][version]
    kind = random.choice(("udp", "syn-ack", "ack", "echo", "error"))
    for _ in range(random.choice((1, 20))):
        ports = random.choice((53, 443)), random.randrange(1 << 16)
        protocol, body = (
            TCP,
            wire.tcp(
                ports, random.randrange(1 << 32), random.randrange(1 << 32), ACK | (SYN if kind == "syn-ack" else 0)
            ),
        )
        if kind == "udp":
            protocol, body = UDP, wire.udp(ports, b"answer")
        elif kind == "echo":
            protocol, body = ICMPV6 if version else ICMP, wire.echo(4 + 2 * version, ports[1], 1, reply=True)
        elif kind == "error":
            quoted = wire.frame(NEIGHBOUR, ROUTER, to, source, UDP, wire.udp((ports[1], 53)))[14:]
            protocol, body = ICMPV6 if version else ICMP, wire.unreachable(4 + 2 * version, quoted)
        world.receive(OUTSIDE, wire.frame(NEIGHBOUR, ROUTER, source, to, protocol, body))
    return kind


@step(3)
def error_about(world: FirewallUnderAttack, random: Random) -> str:
    """Send ICMP errors that quote an honest connection with its ports, but with wrong sequence numbers."""
    if not world.connections:
        return "nothing"
    connection = random.choice(world.connections)
    who = random.randrange(2)
    (_, mac, source), (_, _, to) = connection.ends[who], connection.ends[1 - who]
    ports = connection.ports if who == 0 else connection.ports[::-1]
    body = wire.tcp(ports, connection.next[who] + random.randrange(FAR, (1 << 32) - FAR), 0, ACK)
    quoted = wire.frame(mac, ROUTER, source, to, TCP, body)[14:]
    version = source.version
    error = wire.unreachable(version, quoted)
    world.receive(
        OUTSIDE,
        wire.frame(NEIGHBOUR, ROUTER, outsider(random, version == 6), source, ICMPV6 if version == 6 else ICMP, error),
    )
    return f"end-{who}"


@step(3)
def damage(world: FirewallUnderAttack, random: Random) -> str:
    """Send fragments, and truncated or changed frames, to any port."""
    port = random.choice((INSIDE, SERVERS, OUTSIDE, 9))
    version = random.randrange(2)
    mac, addresses = (NEIGHBOUR, None) if port in (OUTSIDE, 9) else STATIONS[port][2]
    for _ in range(random.choice((1, 10))):
        source = outsider(random, version) if addresses is None else addresses[version]
        to = STATIONS[random.choice((INSIDE, SERVERS))][random.randrange(2)][1][version]
        body = wire.tcp((random.randrange(1 << 16), 80), random.randrange(1 << 32), 0, random.randrange(64))
        whole = bytearray(
            wire.frame(
                mac, ROUTER, source, to, random.choice((TCP, UDP, 47, 41)), body, random.choice((0, 0x2000, 0x1000, 1))
            )
        )
        for _ in range(random.choice((0, 1, 3))):
            whole[random.choice((12, 13, *range(14, len(whole))))] = random.randrange(256)
        frame = bytes(whole[: random.choice((len(whole), random.randrange(14, len(whole) + 1)))])
        spoils = any(
            it.packed in frame
            for found in STATIONS.values()
            for _, each in found[:2]
            for it in each
            if frame.find(it.packed) in (26, 22)
        )
        if not spoils:
            world.receive(port, frame)
    return f"at-{port}"


@step(5)
def newcomers(world: FirewallUnderAttack, random: Random) -> str:
    """Begin flows of honest hosts, and close some."""
    for _ in range(random.choice((1, 1, 3))):
        world.begin(random)
    if world.connections and random.random() < 0.5:
        world.close(random.choice(world.connections))
    return "begin"


@step(4)
def wait(world: FirewallUnderAttack, random: Random) -> str:
    """Run for a random time in which no connection sends."""
    seconds = random.choice((0.001, 0.1, 1.0, 9.0, 31.0, 250.0, 3600.0))
    world.elapse(round(seconds * 1e6))
    return f"{seconds} s"


@step(1)
def replace(world: FirewallUnderAttack, random: Random) -> str:
    """Replace the rule set by an equal one, as an operator; flows must not notice."""
    world.controller.replace(world.controller.rules)
    return "rules"


@step(1)
def collect(world: FirewallUnderAttack, random: Random) -> str:
    """Collect the digests of dropped packets for the controller."""
    world.elapse(1_000_000)
    world.switch.set_now_ps(world.now_ps)
    world.device.collect_digests(world.now_us * 1000)
    return f"{min(len(world.controller.log), 1000) // 100}x100"


ROOM = Room("attack-firewall", FirewallUnderAttack, STEPS.weights)
