"""Link discovery between switches whose cables move and fail, with attackers at some ports: no link is found that is not there.

Two attackers who pass every frame on between them are a cable, as far as frames can tell: that alone may make a link.
"""

from __future__ import annotations

import heapq
import itertools
import struct
import sys
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from attacks.sequences import Room, Step, Steps, World
from attacks.stored import stored
from holdfast.discovery import Discovery, LinkDiscovery
from holdfast.parameters import PS_PER_S
from holdfast.topology import Topology

Port = tuple[str, int]
SWITCHES, PORTS = ("s1", "s2", "s3", "s4"), range(1, 7)
HOST_PORT = 1
"""The port of each switch that a declared host is at, from which no link can come."""
INTERVAL_S, HOLD_S, SETTLE_S = 1.0, 3.5, 0.2
SLACK_S = 0.5
LLDP = b"\x01\x80\xc2\x00\x00\x0e"
MOST_CALLS = 1500
"""Function calls for one frame of up to 1,500 bytes."""


class Sender:
    """A switch's client, as far as discovery needs one."""

    def __init__(self, world: DiscoveryUnderAttack, switch: str) -> None:
        self._world, self._switch = world, switch

    def packet_out(self, frame: bytes, *, egress_port: int) -> None:
        """Send a frame out of a port of the switch, as a packet-out does."""
        self._world.sent((self._switch, egress_port), frame)


class DiscoveryUnderAttack(World):
    """The world, which is the controller's control plane too. ``make`` builds the discovery: tests plant faults in it."""

    def __init__(self, seed: int, make: Callable[..., Discovery] = Discovery) -> None:
        super().__init__()
        self.random = Random(seed)
        self.now_ps = 0
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self.topology = Topology("attacked")
        for switch in SWITCHES:
            self.topology.add_switch(switch)
        for number, switch in enumerate(SWITCHES):
            self.topology.add_host(f"h{number}")
            self.topology.add_link(f"h{number}", switch, b_port=HOST_PORT)
        free = [(switch, port) for switch in SWITCHES for port in PORTS if port != HOST_PORT]
        self.random.shuffle(free)
        self.cables: dict[Port, Port] = {}
        self.attackers = [free.pop() for _ in range(4)] + [(switch, HOST_PORT) for switch in SWITCHES[:2]]
        self.down: set[Port] = set()
        for _ in range(6):
            self.plug(free)
        self.free = free
        self.captured: dict[Port, list[bytes]] = {port: [] for port in self.attackers}
        self.relayed_s: dict[tuple[Port, Port], float] = {}
        """The time at which a frame of one attacker's port (first) last went in at another's (second)."""
        self.moved_s: dict[frozenset[Port], float] = {}
        """The time at which a cable was last plugged, or a port of it came up."""
        self.gone_s: dict[frozenset[Port], float] = {}
        self.caused_s = 0.0
        self.frames = 0
        self.profiled = self.random.random() < 0.2
        self.calls = 0
        settings = LinkDiscovery(
            interval_ms=1000 * INTERVAL_S, hold_ms=1000 * HOLD_S, settle_ms=1000 * SETTLE_S, ports=len(PORTS)
        )
        self.discovery = make(self, settings, self._changed)
        self.discovery.prepare()
        self.discovery.start()
        self.run(3 * INTERVAL_S)
        self.empty = self._stored()

    # The control plane.

    @property
    def clients(self) -> Mapping[str, Any]:
        """The switches' clients, by switch."""
        return {switch: Sender(self, switch) for switch in SWITCHES}

    def port_is_up(self, switch: str, port: int) -> bool:
        """Return True unless a step has taken the port down."""
        return (switch, port) not in self.down

    def secret(self) -> bytes:
        """Return 32 bytes that are determined by the seed."""
        return self.random.randbytes(32)

    def call_later(self, delay_ms: float, handler: Callable[[], None]) -> None:
        """Call ``handler`` once, ``delay_ms`` milliseconds of virtual time from now."""
        heapq.heappush(self._timers, (self.now_ps + round(delay_ms * 1e9), next(self._numbers), handler))

    # Wires.

    @property
    def now_s(self) -> float:
        """The seconds since the beginning."""
        return self.now_ps / PS_PER_S

    def plug(self, free: list[Port]) -> None:
        """Connect two of the ``free`` ports, of two different switches, by a cable."""
        for one, other in itertools.combinations(free, 2):
            if one[0] != other[0]:
                free.remove(one)
                free.remove(other)
                self.cables[one], self.cables[other] = other, one
                return

    def sent(self, port: Port, frame: bytes) -> None:
        """Carry a frame that discovery sends out of a port to the other end of the cable, or to the attacker there."""
        self.frames += 1
        if port in self.captured:
            self.captured[port] = [*self.captured[port][-9:], frame]
        peer = self.cables.get(port)
        if peer is not None and port not in self.down and peer not in self.down:
            self.call_later(0.2, lambda: self._arrive(port, peer, frame))

    def _arrive(self, port: Port, peer: Port, frame: bytes) -> None:
        if self.cables.get(port) == peer and not {port, peer} & self.down:
            self.discovery.hear(peer[0], frame, peer[1])

    def inject(self, port: Port, frame: bytes) -> None:
        """Hand an attacker's frame to discovery, as received at ``port``; check how many calls discovery makes."""
        self.packets += 1
        if not self.profiled:
            self.discovery.hear(port[0], frame, port[1])
            return
        self.calls = 0
        sys.setprofile(self._count)
        try:
            self.discovery.hear(port[0], frame, port[1])
        finally:
            sys.setprofile(None)
        if self.calls > MOST_CALLS:
            self.broken("work of one packet", f"{self.calls} calls for {frame.hex()}")

    def _count(self, _frame: Any, event: str, _argument: Any) -> None:
        self.calls += event == "call"

    def run(self, duration_s: float) -> None:
        """Run for ``duration_s`` of virtual time, and check the laws every tenth of a second."""
        until_ps = self.now_ps + round(duration_s * PS_PER_S)
        while self.now_ps < until_ps:
            piece_ps = min(until_ps, self.now_ps + PS_PER_S // 10)
            while self._timers and self._timers[0][0] <= piece_ps:
                self.now_ps, _, handler = heapq.heappop(self._timers)
                handler()
            self.now_ps = piece_ps
            self.check()

    def _changed(self) -> None:
        if self.now_s - self.caused_s > HOLD_S + INTERVAL_S + SETTLE_S + SLACK_S and self.discovery.is_settled:
            self.broken(
                "the map changes without a cause", f"at {self.now_s:.1f} s, the last cause was at {self.caused_s:.1f} s"
            )

    # Steps and laws.

    def play(self, step: Step) -> None:
        """Execute one step of a sequence, then check the laws."""
        port = self.attackers[step.actor % len(self.attackers)]
        state = f"{len(self.links())} links, {len(self.discovery.incidents)} incidents"
        done = STEPS.acts[step.name](self, port, Random(step.seed))
        self.log.append(f"{self.now_s:8.3f} {port[0]}:{port[1]} {step.name} {done}")
        self.states[state, f"{step.name} {done.partition(' ')[0]}"] += 1
        self.run(Random(step.seed).choice((0.0, 0.1, 0.1, 1.0)))

    def links(self) -> set[frozenset[Port]]:
        """Return the links on discovery's map, each as a set of two ports."""
        found = self.discovery.topology.present()
        return {
            frozenset(((it.a, it.a_port), (it.b, it.b_port)))
            for it in found.links
            if it.a in SWITCHES and it.b in SWITCHES
        }

    def _is_relayed(self, link: frozenset[Port]) -> bool:
        one, other = sorted(link)
        oldest_s = min(self.relayed_s.get((one, other), -1e9), self.relayed_s.get((other, one), -1e9))
        return self.now_s - oldest_s <= HOLD_S + INTERVAL_S + SLACK_S

    def check(self) -> None:
        """Check that the controller's map has the links that are cabled, and no others."""
        links = self.links()
        cabled = {frozenset(each) for each in self.cables.items() if not set(each) & self.down}
        for link in links - cabled:
            if self.now_s - self.gone_s.get(link, -1e9) > HOLD_S + SLACK_S and not self._is_relayed(link):
                self.broken("a link that is not there", f"{sorted(link)} at {self.now_s:.1f} s")
        for link in cabled - links:
            if self.now_s - self.moved_s.get(link, 0.0) > 2 * INTERVAL_S + SLACK_S:
                self.broken("a cable is not on the map", f"{sorted(link)} at {self.now_s:.1f} s")
        for link in links:
            if any(port[1] == HOST_PORT for port in link):
                self.broken("a link at a host's port", f"{sorted(link)}")
        ports = len(SWITCHES) * len(PORTS)
        if len(self.discovery.incidents) > 7 * ports or self._stored() > 60 * ports + 200:
            self.broken("state is bounded", f"{len(self.discovery.incidents)} incidents, {self._stored()} entries")
        if self.frames > 20 + 1000.0 * self.now_s:
            self.broken("frames per second", f"{self.frames} in {self.now_s:.1f} s")

    def _stored(self) -> int:
        kept = {
            name: each for name, each in vars(self.discovery).items() if name not in ("_plane", "_settings", "topology")
        }
        return stored(kept, ("holdfast.discovery", "collections"))

    def end(self) -> None:
        """Run without attacks until hold times are over, then check that the map has exactly the links that are cabled."""
        self.run(HOLD_S + 3 * INTERVAL_S)
        cabled = {frozenset(each) for each in self.cables.items() if not set(each) & self.down}
        if self.links() != cabled:
            self.broken("the map when all is quiet", f"{self.links() ^ cabled}")


# What attackers, cables and time do.

Act = Callable[[DiscoveryUnderAttack, Port, Random], str]
STEPS: Steps[Act] = Steps()
step = STEPS.step


def tlv(kind: int, value: bytes) -> bytes:
    """Return the bytes of a TLV (IEEE 802.1AB, 8.4)."""
    return struct.pack("!H", kind << 9 | len(value)) + value


@step(6)
def pass_on(world: DiscoveryUnderAttack, port: Port, random: Random) -> str:
    """Send frames again that this or another attacker has received: early or late, once or often."""
    source = random.choice(world.attackers)
    frames = world.captured[source]
    if not frames:
        return "nothing"
    for _ in range(random.choice((1, 1, 3))):
        frame = random.choice((frames[-1], frames[-1], random.choice(frames)))
        world.relayed_s[source, port] = world.caused_s = world.now_s
        world.inject(port, frame)
    return "own" if source == port else "other's"


@step(4)
def relay(world: DiscoveryUnderAttack, port: Port, random: Random) -> str:
    """Relay all frames between two attackers, both ways, for a while, as a cable between them would."""
    other = random.choice(world.attackers)
    for _ in range(random.choice((2, 5))):
        for one, two in ((port, other), (other, port)):
            if world.captured[one]:
                world.relayed_s[one, two] = world.caused_s = world.now_s
                world.inject(two, world.captured[one][-1])
        world.run(INTERVAL_S)
    return f"{'same' if other[0] == port[0] else 'other'}-switch"


@step(5)
def forge(world: DiscoveryUnderAttack, port: Port, random: Random) -> str:
    """Send forged frames that name any port.

    A frame is made from nothing, carries the signature of another, or is a changed one.
    """
    kind = random.choice(("anew", "changed", "renamed"))
    victim = (random.choice(SWITCHES), random.choice(PORTS))
    source = random.choice(world.attackers)
    frames = world.captured[source]
    for _ in range(random.choice((1, 5, 30))):
        if kind == "anew" or not frames:
            body = tlv(1, b"\7" + victim[0].encode()) + tlv(2, b"\7" + str(victim[1]).encode()) + tlv(3, b"\0\x78")
            body += tlv(127, random.randbytes(random.choice((0, 4, 44, 500)))) + tlv(0, b"")
            frame = LLDP + random.randbytes(6) + b"\x88\xcc" + body
        else:
            changed = bytearray(random.choice(frames))
            if kind == "changed":
                # What is changed may be behind what is signed: then the frame is passed on.
                world.relayed_s[source, port] = world.caused_s = world.now_s
                for _ in range(random.choice((1, 1, 4))):
                    changed[random.randrange(14, len(changed))] = random.randrange(256)
            frame = bytes(changed)
            if kind == "renamed":
                for name in SWITCHES:
                    frame = frame.replace(name.encode(), victim[0].encode())
        if frame not in frames:
            world.inject(port, frame)
    return kind


@step(3)
def damage(world: DiscoveryUnderAttack, port: Port, random: Random) -> str:
    """Send frames that are not LLDP, truncated, or very long."""
    for _ in range(random.choice((1, 10))):
        body = random.randbytes(random.choice((0, 1, 2, 40, 1480)))
        if random.random() < 0.5:
            body = b"".join(
                tlv(random.randrange(128), random.randbytes(random.randrange(4)))
                for _ in range(random.choice((3, 300)))
            )
        world.inject(
            port,
            (LLDP + random.randbytes(6) + random.choice((b"\x88\xcc", b"\x08\0")) + body)[
                : random.choice((14, 60, 1514))
            ],
        )
    return "sent"


@step(3)
def cut(world: DiscoveryUnderAttack, port: Port, random: Random) -> str:
    """Remove a cable or plug one in, while no port changes its state."""
    world.caused_s = world.now_s
    if world.cables and random.random() < 0.6:
        one = random.choice(sorted(world.cables))
        other = world.cables.pop(one)
        del world.cables[other]
        world.free += [one, other]
        world.gone_s[frozenset((one, other))] = world.now_s
        return "pulled"
    random.shuffle(world.free)
    before = set(map(frozenset, world.cables.items()))
    world.plug(world.free)
    for link in set(map(frozenset, world.cables.items())) - before:
        world.moved_s[link] = world.now_s
    return "plugged"


@step(3)
def port_changes(world: DiscoveryUnderAttack, port: Port, random: Random) -> str:
    """Take a port down or bring one up, and notify discovery of this."""
    world.caused_s = world.now_s
    chosen = (
        random.choice(sorted(world.down))
        if world.down and random.random() < 0.6
        else random.choice(sorted(world.cables) or [port])
    )
    up = chosen in world.down
    if up:
        world.down.discard(chosen)
    else:
        world.down.add(chosen)
    peer = world.cables.get(chosen)
    if peer is not None:
        (world.moved_s if up else world.gone_s)[frozenset((chosen, peer))] = world.now_s
    world.discovery.port_changed(*chosen, up)
    return "up" if up else "down"


@step(4)
def wait(world: DiscoveryUnderAttack, port: Port, random: Random) -> str:
    """Run for a random time without attacks."""
    duration_s = random.choice((0.1, 0.5, 1.0, 3.0, 5.0, 20.0))
    world.run(duration_s)
    return f"{duration_s} s"


ROOM = Room("attack-discovery", DiscoveryUnderAttack, STEPS.weights)
