"""A BIER domain whose hosts join by IGMP and MLD: attackers on some ports, honest members on others, and the laws between them.

The network is simulated, with the real program and controller; its tables of channels are small, so that they are soon full.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from random import Random
from typing import Any

from attacks import membership_frames as wire
from attacks.membership_frames import Record, Sender
from attacks.sequences import Room, Step, Steps, World
from attacks.stored import stored
from holdfast._core import Program
from holdfast.apps.bier import program as bier_program
from holdfast.apps.bier.controller import BierController
from holdfast.control.membership.overlay import OverlayParameters
from holdfast.network import SimulatedNetwork
from holdfast.topology import Topology
from holdfast.traffic import UdpStream

TABLE = 64
"""Entries of each table of channels."""
GROUPS, SOURCES = 8, 24
LIMITS = {"group_limit": GROUPS, "source_limit": SOURCES, "channels_per_port": 40, "channels": 64}
"""The limits that the controller is told, as far as its parameters have fields of these names."""
PER_S = 20.0
MOST_CALLS, MOST_CALLS_OF_A_SOURCE = 6000, 120
"""Function calls of the controller for one frame, and besides for each of its sources."""
ASKS_S = 126.0
"""A port with hosts is asked at least that often: the Query Interval (RFC 3376, section 8.2) and some to spare."""
MEMBERSHIP_S = 261.0
"""The Group Membership Interval (RFC 3376, section 8.4)."""
SETTLES_S = 1.0

ATTACKERS, HONEST, SOURCE, QUIET = ("bad1", "bad2", "bad3"), ("good1", "good2", "good3"), "source", "quiet"
PLACES = {"s1": ("source", "bad1", "good1"), "s2": ("bad2", "good2"), "s3": ("bad3", "good3", "quiet")}
CHANNELS = (("239.1.1.1", False), ("232.1.1.1", True), ("ff1e::1", False), ("ff3e::1", True))
"""Groups with streams, and whether members name the source."""
OTHER_GROUPS = ("239.1.1.2", "239.9.9.9", "232.1.1.2", "224.0.0.5", "224.0.1.1")
OTHER_GROUPS_V6 = ("ff1e::2", "ff3e::2", "ff02::5", "ff0e::9")


@cache
def compiled() -> Program:
    """Compile the BIER program with small tables of channels."""
    here = bier_program.HERE
    with tempfile.TemporaryDirectory() as folder:
        apps = Path(folder) / "apps"
        shutil.copytree(here, apps / here.name, ignore=lambda _, names: [it for it in names if not it.endswith(".p4")])
        for path in here.parent.glob("*.p4"):
            shutil.copy(path, apps / path.name)
        channels = apps / here.name / "channels.p4"
        text = channels.read_text(encoding="utf-8")
        channels.write_text(text.replace("size = 65536;", f"size = {TABLE};"), encoding="utf-8")
        try:
            bier_program.HERE = apps / here.name
            return bier_program.compile_bier()
        finally:
            bier_program.HERE = here


def topology() -> Topology:
    """Return a topology of three switches in a ring, with hosts that have IPv4 and IPv6 addresses."""
    made = Topology("attacked")
    for switch in PLACES:
        made.add_switch(switch)
    number = 0
    for switch, names in PLACES.items():
        for name in names:
            number += 1
            made.add_host(name, f"10.0.{number}.1/24", ipv6=f"2001:db8:0:{number}::1/64")
            made.add_link(name, switch)
    for a, b in (("s1", "s2"), ("s2", "s3"), ("s3", "s1")):
        made.add_link(a, b)
    return made


class Watched(BierController):
    """The controller, with a count of the calls that a frame costs."""

    watch: Callable[[str, bytes, Mapping[str, int], Callable[[], None]], None]

    def on_packet_in(self, switch: str, packet: bytes, metadata: Mapping[str, int]) -> None:
        """Pass a packet-in to ``watch``, which calls :class:`BierController`'s handler."""
        self.watch(switch, packet, metadata, lambda: super(Watched, self).on_packet_in(switch, packet, metadata))


class Member:
    """An honest host's join of a channel with a stream, and what it has received of it."""

    def __init__(self, host: str, channel: int) -> None:
        self.host, self.channel = host, channel
        self.since_s: float | None = None
        self.delivered = 0


class MembershipUnderAttack(World):
    """The world. ``make`` builds the controller: tests plant faults in it."""

    def __init__(self, seed: int, make: Callable[..., Watched] = Watched) -> None:
        super().__init__()
        self.random = Random(seed)
        self.topology = topology()
        fields = OverlayParameters.model_fields
        limits = {name: value for name, value in LIMITS.items() if name in fields}
        if self.random.random() < 0.3:
            limits.pop("channels", None)  # the tables are full before the limit is reached
        self.limits = limits
        self.profiled = self.random.random() < 0.2
        self.controller = make(ip_delay_ms=1, bier_delay_ms=1, overlay=OverlayParameters(**limits))
        self.controller.watch = self._watch
        self.network = SimulatedNetwork(self.topology, compiled(), [self.controller], seed=seed & 0xFFFF)
        self.now_s = 0.0
        self.calls = 0
        self.asked: dict[tuple[str, int], float] = {}
        for name, client in self.network.clients.items():
            client.packet_out = self._counted(name, client.packet_out)  # type: ignore[method-assign]
        source = self.topology.hosts[SOURCE]
        assert source.address is not None and source.ipv6 is not None
        self.source = source
        self.flows = [
            self.network.add(
                UdpStream(
                    source=SOURCE,
                    destination=group,
                    family="ipv6" if ":" in group else "ipv4",
                    packets_per_s=PER_S,
                    stop_s=1e5,
                    payload_bytes=64,
                    log_packets=False,
                )
            )
            for group, _ in CHANNELS
        ]
        self.members = [Member(host, channel) for host in HONEST for channel in range(len(CHANNELS))]
        for member in self.members[::2]:
            self.join(member)
        self.run(3.0)
        self.empty = self._stored()
        self.packets = 0

    # The network.

    def _counted(self, switch: str, send: Callable[..., None]) -> Callable[..., None]:
        def packet_out(frame: bytes, *, egress_port: int) -> None:
            if frame[12:14] == b"\x08\0":
                self.asked[switch, egress_port] = self.now_s
            send(frame, egress_port=egress_port)

        return packet_out

    def _watch(self, switch: str, packet: bytes, metadata: Mapping[str, int], go_on: Callable[[], None]) -> None:
        if not self.profiled:
            go_on()
            return
        self.calls = 0
        sys.setprofile(self._count)
        try:
            go_on()
        finally:
            sys.setprofile(None)
        most = MOST_CALLS + MOST_CALLS_OF_A_SOURCE * (len(packet) // 4)
        if self.calls > most:
            self.broken(
                "work of one packet", f"{self.calls} calls for {len(packet)} bytes from {switch}: {packet.hex()[:200]}"
            )

    def _count(self, _frame: Any, event: str, _argument: Any) -> None:
        self.calls += event == "call"

    def send(self, host: str, frame: bytes) -> None:
        """Send a frame from an attacker's host."""
        self.packets += 1
        self.network.send_frame(host, frame)

    def join(self, member: Member) -> None:
        """Join a member's channel as an honest host."""
        group, named = CHANNELS[member.channel]
        interface = self.source.ipv6 if ":" in group else self.source.address
        assert interface is not None
        self.network.join(member.host, group, sources=[str(interface.ip)] if named else ())
        member.since_s, member.delivered = self.now_s, self._delivered(member)

    def leave(self, member: Member) -> None:
        """Leave a member's channel as an honest host."""
        self.network.leave(member.host, CHANNELS[member.channel][0])
        member.since_s = None

    def _delivered(self, member: Member) -> int:
        return self.network.statistics(self.flows[member.channel], host=member.host).delivered

    def run(self, duration_s: float) -> None:
        """Run for ``duration_s`` seconds in pieces, and check the laws after each piece."""
        left = duration_s
        while left > 1e-9:
            piece = min(left, 50.0)
            left -= piece
            before_s = self.now_s
            if piece >= 0.5:
                for member in self.members:
                    member.delivered = self._delivered(member)
            self.now_s = before_s + piece
            self.network.run(self.now_s)
            if piece >= 0.5:
                self._check_members(before_s)
            self.check()

    # Steps and laws.

    def play(self, step: Step) -> None:
        """Execute one step of a sequence, then check the laws."""
        host = ATTACKERS[step.actor % len(ATTACKERS)]
        overlay = self.controller.overlay
        assert overlay is not None
        state = f"{min(9, len(overlay.channels) // 6)}x6 channels, {self._owned(host) // 10}x10 of the port"
        done = STEPS.acts[step.name](self, host, Random(step.seed))
        self.run(Random(step.seed).choice((0.0001, 0.01, 0.01, 0.1)))
        self.log.append(f"{self.now_s:10.4f} {host} {step.name} {done}")
        self.states[state, f"{step.name} {done.partition(' ')[0]}"] += 1

    def _owned(self, host: str) -> int:
        place = self.topology.attachment(host)
        overlay = self.controller.overlay
        assert overlay is not None
        return sum(max(1, len(it.sources)) for it in overlay.filters((place.switch, place.port)).values())

    def _check_members(self, before_s: float) -> None:
        """Check that each honest member gets all packets of its streams, except those right after its join.

        Members that joined later are not checked if tables are smaller than the controller was told, as they may be full.
        """
        for member in self.members:
            if member.since_s is None or (member.since_s > 0 and "channels" not in self.limits):
                continue
            duration_s = self.now_s - max(before_s, member.since_s + SETTLES_S)
            got = self._delivered(member) - member.delivered
            if got < PER_S * duration_s - 3:
                group = CHANNELS[member.channel][0]
                self.broken(
                    "honest member gets nothing", f"{member.host} got {got} packets of {group} in {duration_s:.1f} s"
                )

    def check(self) -> None:
        """Check the limits on channels, that queries reach all ports, and that hosts that have not joined get no stream."""
        overlay = self.controller.overlay
        assert overlay is not None
        for host in (*ATTACKERS, *HONEST):
            most = min(2 * GROUPS * SOURCES, 2 * self.limits.get("channels_per_port", 1 << 30))
            if (owned := self._owned(host)) > most:
                self.broken("channels of a port", f"{owned} of {host}")
        if "channels" in self.limits and len(overlay.channels) > self.limits["channels"]:
            self.broken("channels of all ports", f"{len(overlay.channels)}")
        for host in (*ATTACKERS, *HONEST):
            place = self.topology.attachment(host)
            if self.now_s - self.asked.get((place.switch, place.port), 0.0) > ASKS_S + 50.0:
                self.broken("port is not asked", f"{host} since {self.asked.get((place.switch, place.port))} s")
        quiet = self.network.link_counters(f"{QUIET}-{self.topology.attachment(QUIET).switch}").b_to_a.packets
        if quiet > 30 + self.now_s / 10:  # queries are rarer than packets of a stream
            self.broken("stream for a host that has not joined", f"{quiet} packets in {self.now_s:.0f} s")

    def _stored(self) -> int:
        return stored(self.controller.overlay, ("holdfast.control.membership", "collections"))

    def end(self) -> None:
        """Make all honest hosts leave and the attackers fall silent, then check that no state is left."""
        for member in self.members:
            self.leave(member)
        self.run(MEMBERSHIP_S + 300.0)
        overlay = self.controller.overlay
        assert overlay is not None
        if overlay.channels:
            self.broken("channels left when all have left", f"{list(overlay.channels)[:5]}")
        if (left := self._stored() - self.empty) > 40:
            self.broken("state left when all have left", f"{left} entries more than at the beginning")
        for name, client in self.network.clients.items():
            for version in (4, 6):
                for any_source in (False, True):
                    for table in (bier_program.receiver_table, bier_program.channel_table):
                        found = list(client.read_table(table(version, any_source=any_source)))
                        if found:
                            self.broken("entries left when all have left", f"{len(found)} in {name}")


# What attackers do.

Act = Callable[[MembershipUnderAttack, str, Random], str]
STEPS: Steps[Act] = Steps()
step = STEPS.step


def sender(world: MembershipUnderAttack, host: str, random: Random, version: int) -> Sender:
    """Draw the sender of an attacker's frame of IP version ``version``.

    Mostly its TTL, Router Alert and checksum are right, else wrong. Its IPv4 address is its own, another host's, the router's, an
    unused one or 0.0.0.0; its IPv6 address is a link-local one, rarely another host's.
    """
    own = world.topology.hosts[host]
    other = world.topology.hosts[random.choice(HONEST)]
    if version == 6:
        address = IPv6Address(f"fe80::{random.choice((1, 7, 0xFFFF)):x}")
        if random.random() < 0.1:
            address = other.ipv6.ip if other.ipv6 else address
    else:
        choices = (
            own.address.ip,
            own.address.ip,
            other.address.ip,
            IPv4Address(0),
            own.address.ip + 7,
            IPv4Address("10.0.0.1"),
        )
        address = random.choice(choices)
    right = random.random() < 0.9
    return Sender(
        own.mac,
        address,
        1 if right else random.choice((0, 2, 64)),
        right or random.random() < 0.5,
        0 if right else random.choice((0, 1)),
    )


def _group(random: Random, version: int) -> Any:
    own = [group for group, _ in CHANNELS if (":" in group) == (version == 6)]
    if random.random() < 0.4:
        text = random.choice(own + list(OTHER_GROUPS_V6 if version == 6 else OTHER_GROUPS))
    else:
        text = (
            f"ff3e::{random.randrange(1, 1 << 16):x}"
            if version == 6
            else f"{random.choice((232, 239))}.2.{random.randrange(8)}.{random.randrange(256)}"
        )
    return IPv6Address(text) if version == 6 else IPv4Address(text)


def _sources(world: MembershipUnderAttack, random: Random, version: int) -> tuple[Any, ...]:
    count = random.choice((0, 1, 1, 3, SOURCES, SOURCES + 1, 300 if version == 4 else 80))
    first = random.randrange(1, 1 << 15)
    made: list[Any] = [
        IPv6Address((0x20010DB8 << 96) + first + at) if version == 6 else IPv4Address((10 << 24) + first + at)
        for at in range(count)
    ]
    if random.random() < 0.4 and world.source.address and world.source.ipv6:
        made.append(world.source.ipv6.ip if version == 6 else world.source.address.ip)
    return tuple(made)


@step(10)
def report(world: MembershipUnderAttack, host: str, random: Random) -> str:
    """Send a report with records of any kind: about the attacker's own groups, the streams', and groups that none may join."""
    version = random.choice((4, 4, 6))
    count = random.choice((1, 1, 1, 2, 8, 40))
    station = sender(world, host, random, version)
    kind = random.choice((1, 2, 3, 4, 5, 5, 5, 6, 0, 9))
    records = []
    for _ in range(count):
        sources = _sources(world, random, version) if count < 8 else _sources(world, random, version)[:4]
        records.append(
            Record(kind if random.random() < 0.7 else random.randrange(1, 7), _group(random, version), sources)
        )
    world.send(host, wire.report(station, records)[: random.choice((1500, 9000))])
    return f"{version}-{kind} {count} records"


@step(4)
def report_many(world: MembershipUnderAttack, host: str, random: Random) -> str:
    """Join many channels by one report after another, as far as the limits allow."""
    version = random.choice((4, 4, 6))
    station = sender(world, host, random, version)
    for _ in range(random.choice((5, 20, 60))):
        group = _group(random, version)
        sources = _sources(world, random, version)[:SOURCES]
        world.send(
            host,
            wire.report(
                station, [Record(random.choice((wire.ALLOW, wire.TO_INCLUDE, wire.TO_EXCLUDE)), group, sources)]
            ),
        )
    return f"{version}"


@step(3)
def older_report(world: MembershipUnderAttack, host: str, random: Random) -> str:
    """Send reports and leaves of an older protocol version."""
    version = random.choice((4, 6))
    kind = random.choice(
        (wire.MLD_REPORT, wire.MLD_DONE) if version == 6 else (wire.REPORT_V1, wire.REPORT_V2, wire.LEAVE)
    )
    for _ in range(random.choice((1, 1, 30))):
        world.send(host, wire.older(sender(world, host, random, version), kind, _group(random, version)))
    return f"{kind}"


@step(5)
def query(world: MembershipUnderAttack, host: str, random: Random) -> str:
    """Send a query as if from a router, of any version, with random group, interval, robustness and response time."""
    version = random.choice((4, 4, 6))
    group = random.choice((None, None, _group(random, version)))
    sources = _sources(world, random, version)[:40] if group is not None and random.random() < 0.5 else ()
    asked = wire.query(
        sender(world, host, random, version),
        group,
        sources,
        version=random.choice((1, 2, 3, 3, 3)),
        code=random.choice((0, 1, 100, 255)),
        interval=random.choice((0, 1, 125, 255)),
        flags=random.choice((0, 1, 2, 7, 8, 10, 15)),
    )
    world.send(host, asked)
    return f"{version}-{'general' if group is None else 'specific'}"


@step(3)
def damage(world: MembershipUnderAttack, host: str, random: Random) -> str:
    """Send a report with random changes."""
    version = random.choice((4, 6))
    for _ in range(random.choice((1, 5))):
        frame = bytearray(
            wire.report(
                sender(world, host, random, version),
                [Record(5, _group(random, version), _sources(world, random, version)[:5])],
            )
        )
        for _ in range(random.choice((1, 1, 4))):
            frame[random.randrange(12, len(frame))] = random.randrange(256)
        world.send(host, bytes(frame[: random.choice((len(frame), random.randrange(14, len(frame) + 1)))]))
    return f"{version}"


@step(2)
def flood(world: MembershipUnderAttack, host: str, random: Random) -> str:
    """Send one report 50 or 200 times."""
    version = random.choice((4, 6))
    frame = wire.report(
        sender(world, host, random, version),
        [Record(random.randrange(1, 7), _group(random, version), _sources(world, random, version)[:30])],
    )
    for _ in range(random.choice((50, 200))):
        world.send(host, frame)
    return f"{version}"


@step(3)
def change_members(world: MembershipUnderAttack, host: str, random: Random) -> str:
    """Join or leave as an honest host."""
    member = random.choice(world.members)
    if member.since_s is None:
        world.join(member)
        return f"join {member.host} {CHANNELS[member.channel][0]}"
    world.leave(member)
    return f"leave {member.host} {CHANNELS[member.channel][0]}"


@step(6)
def wait(world: MembershipUnderAttack, host: str, random: Random) -> str:
    """Run for a random time without any step."""
    duration_s = random.choice((0.05, 0.5, 2.0, 2.0, 11.0, 130.0, 270.0))
    world.run(duration_s)
    return f"{duration_s} s"


ROOM = Room("attack-membership", MembershipUnderAttack, STEPS.weights)
