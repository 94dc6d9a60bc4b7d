"""A collector of telemetry reports between honest reporters, with losses on their way, and attackers who send what they like.

All arrives in UDP payloads, which nobody authenticates: attackers have other node numbers, as many as they want.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from attacks.sequences import Room, Step, Steps, World
from holdfast.apps.telemetry import metrics, showing
from holdfast.apps.telemetry.collector import Collector, HopKey, Limits
from holdfast.apps.telemetry.rows import take

NODE_AND_PORTS_AND_LATENCY = 0xE000
"""Metadata bits: node id, level 1 interfaces, hop latency (Telemetry Report v2.0, 3.3)."""
DROP_BIT = 0x0001
TRACKED, CONGESTED, DROPPED = 0x2, 0x4, 0x8
HONEST = (1, 2, 3)
"""Numbers of honest nodes."""
LONGEST_PAGE = 4 << 20
"""Bytes of the page of metrics, however many hops attackers make up."""
LONGEST_VIEW = 200
"""Lines of the view that an operator is shown."""


def packet(port: int, length: int = 60) -> bytes:
    """Write the beginning of an Ethernet frame with UDP in IPv4, in whole words."""
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, length - 14, 0, 0, 64, 17, 0, b"\x0a\0\0\1", b"\x0a\0\0\2")
    whole = bytes(12) + b"\x08\0" + head + struct.pack("!HHHH", 1000 + port, 53, length - 34, 0)
    return whole + bytes(-len(whole) % 4)


def individual(
    hop: tuple[int, int, int], *, flags: int = TRACKED, reason: int | None = None, inner: bytes = b""
) -> bytes:
    """Return an individual report of INT-XD about a hop (node, egress port, latency), with a drop's ``reason`` and a packet."""
    node, port, latency = hop
    bits, metadata = NODE_AND_PORTS_AND_LATENCY, struct.pack("!IHHI", node, 1, port, latency)
    if reason is not None:
        bits, flags = bits | DROP_BIT, DROPPED
        metadata += struct.pack("!BBH", 0, reason, 0)
    body = struct.pack("!HHHH", bits, 0, 0, 0) + metadata + inner
    return struct.pack("!BBBB", 0x10 | (3 if inner else 0), len(body) // 4, len(metadata) // 4, flags << 4) + body


def group(node: int, sequence: int, reports: bytes, hardware: int = 0, version: int = 2) -> bytes:
    """Return a report's payload: the group header (3.1), then the individual reports."""
    return struct.pack("!II", version << 28 | hardware << 22 | sequence & 0x3FFFFF, node) + reports


class Reporter:
    """An honest node, and what was sent of it and lost."""

    def __init__(self, node: int, sequence: int) -> None:
        self.node, self.sequence = node, sequence
        self.arrived = self.lost = 0
        self.gap = 0
        """Reports lost since the last one that arrived: nobody can know of them yet."""
        self.hops: Counter[int] = Counter()
        self.latency = 0


class CollectorUnderAttack(World):
    """The world. ``make`` builds the collector: tests plant faults in it."""

    def __init__(self, seed: int, make: Callable[..., Collector] = Collector) -> None:
        super().__init__()
        random = Random(seed)
        self.limits = Limits(
            flows=random.choice((20, 200, 100_000)),
            hops=random.choice((10, 300, 100_000)),
            reporters=random.choice((5, 50, 10_000)),
        )
        self.with_rows = random.random() < 0.5
        self.collector = make(self.limits, with_rows=self.with_rows)
        self.now_ns = 10**18
        self.bytes = self.hops = self.malformed = self.well_formed = self.rows = 0
        self.reporters = [Reporter(node, random.choice((0, 5, (1 << 22) - 3))) for node in HONEST]
        for each in self.reporters:
            self.honest(each, random)
        self.packets = len(self.reporters)

    def take(self, payload: bytes, hops: int | None) -> None:
        """Hand a payload to the collector. ``hops``: the number of hops in a well-formed payload; None for any other payload."""
        self.packets += 1
        self.bytes += len(payload)
        self.now_ns += 1000
        before = sum(self.collector.malformed().values()) if hops is None else 0
        self.collector.take(self.now_ns, payload)
        if hops is not None:
            self.hops += hops
            self.well_formed += 1
        elif sum(self.collector.malformed().values()) == before:
            self.hops = -(1 << 40)  # what it was worth is not known here

    def honest(self, reporter: Reporter, random: Random, *, arrives: bool = True) -> None:
        """Send an honest node's report of a hop; unless ``arrives``, the report is lost on its way."""
        reporter.sequence = reporter.sequence + 1 & 0x3FFFFF
        if not arrives:
            reporter.gap += 1
            return
        port, latency = random.randrange(2), random.randrange(1000)
        inner = packet(reporter.node) if random.random() < 0.5 else b""
        self.take(group(reporter.node, reporter.sequence, individual((reporter.node, port, latency), inner=inner)), 1)
        reporter.arrived += 1
        reporter.lost, reporter.gap = reporter.lost + reporter.gap, 0
        reporter.hops[port] += 1

    # Steps and laws.

    def play(self, step: Step) -> None:
        """Execute one step of a sequence, then check the laws."""
        counts = self.collector.counts()
        state = f"hops {'full' if counts.hops_refused else 'free'}, reporters {'full' if counts.reporters_refused else 'free'}"
        done = STEPS.acts[step.name](self, Random(step.seed))
        self.log.append(f"{step.name} {done}")
        self.states[state, f"{step.name} {done.partition(' ')[0]}"] += 1
        for each in self.reporters:
            self.honest(each, Random(step.seed))
        self.check()

    def check(self) -> None:
        """Check that the collector counts every packet, and that its memory is bounded."""
        counts, malformed = self.collector.counts(), sum(self.collector.malformed().values())
        if counts.packets != self.packets:
            self.broken("packets are counted", f"{self.packets} were taken, {counts.packets} are counted")
        if malformed > self.packets - self.well_formed:
            self.broken(
                "well-formed packets are understood",
                f"{malformed} of {self.packets} are malformed, {self.well_formed} are well-formed",
            )
        hops, reporters = self.collector.hops(), self.collector.reporters()
        sizes = {"flows": len(self.collector.flows()), "hops": len(hops), "reporters": len(reporters)}
        for name, size in sizes.items():
            if size > getattr(self.limits, name):
                self.broken("memory is bounded", f"{size} {name}, and {getattr(self.limits, name)} are allowed")
        kept = sum(each.packets for each in hops.values()) + sum(self.collector.drops().values())
        if self.hops >= 0 and kept + counts.hops_refused != self.hops:
            self.broken(
                "hops are counted", f"{self.hops} were reported, {kept} are kept, {counts.hops_refused} are refused"
            )
        self._check_honest(hops, reporters)

    def _check_honest(self, hops: Any, reporters: Any) -> None:
        for each in self.reporters:
            known = reporters.get((each.node, 0))
            if known is None or (known.reports, known.lost) != (each.arrived, each.lost):
                self.broken(
                    "losses of a reporter",
                    f"node {each.node}: {known}; {each.arrived} arrived and {each.lost} were lost",
                )
            for port, count in each.hops.items():
                found = hops.get(HopKey(each.node, port))
                if found is not None and found.packets != count and self.limits.hops > 1000:
                    self.broken("an honest hop", f"node {each.node}, port {port}: {found.packets} of {count} packets")
                if found is None and self.limits.hops > 1000:
                    self.broken("an honest hop", f"node {each.node}, port {port} is not kept")

    def end(self) -> None:
        """Export all data, and check that pages and rows are bounded and complete."""
        page = metrics.text(self.collector)
        if len(page) > LONGEST_PAGE:
            self.broken("the page of metrics is bounded", f"{len(page)} bytes for {len(self.collector.hops())} hops")
        showing.view(self.collector)
        if (
            len(showing.flow_table(self.collector).rows) > LONGEST_VIEW
            or len(showing.hop_table(self.collector).rows) > LONGEST_VIEW
        ):
            self.broken("what is shown is bounded", f"{len(showing.hop_table(self.collector).rows)} lines")
        if self.with_rows and self.hops >= 0:
            rows = take(self.collector).height
            if rows != self.hops:
                self.broken("rows are complete", f"{rows} rows of {self.hops} hops")


# What attackers do.

Act = Callable[[CollectorUnderAttack, Random], str]
STEPS: Steps[Act] = Steps()
step = STEPS.step


@step(5)
def report(world: CollectorUnderAttack, random: Random) -> str:
    """Send reports of an honest node, some of which may be lost."""
    reporter = random.choice(world.reporters)
    lossy = random.random() < 0.5
    for _ in range(random.choice((1, 5, 40))):
        world.honest(reporter, random, arrives=not (lossy and random.random() < 0.3))
    return "lossy" if lossy else "whole"


@step(5)
def make_up_hops(world: CollectorUnderAttack, random: Random) -> str:
    """Send reports of hops that do not exist: of very many nodes, or of very many ports."""
    count = random.choice((10, 400, 4000))
    wide = random.random() < 0.5
    for number in range(count):
        node = 1000 + (random.getrandbits(31) if wide else number % 50)
        reason = random.randrange(256) if random.random() < 0.3 else None
        world.take(
            group(node, number, individual((node, random.randrange(60_000), 5), reason=reason), random.randrange(64)), 1
        )
    return f"{count}"


@step(4)
def make_up_flows(world: CollectorUnderAttack, random: Random) -> str:
    """Send one node's reports of very many flows."""
    count = random.choice((10, 400, 2000))
    for number in range(count):
        world.take(group(500, number, individual((500, 1, 5), inner=packet(random.randrange(60_000)))), 1)
    return f"{count}"


@step(3)
def jump(world: CollectorUnderAttack, random: Random) -> str:
    """Send reports with random sequence numbers, some with many individual reports in one payload."""
    for _ in range(random.choice((1, 30))):
        many = random.choice((1, 1, 20))
        node = 600 + random.randrange(4)
        body = b"".join(individual((node, at, 5)) for at in range(many))
        world.take(group(node, random.getrandbits(22), body, random.randrange(64)), many)
    return "numbers"


@step(4)
def damage(world: CollectorUnderAttack, random: Random) -> str:
    """Send damaged reports and random bytes, but none in the name of an honest node."""
    for _ in range(random.choice((1, 20, 200))):
        if random.random() < 0.3:
            payload = random.randbytes(random.choice((0, 1, 7, 8, 11, 12, 40, 1400)))
        else:
            whole = bytearray(
                group(700, 1, individual((700, 1, 5), inner=packet(1)), version=random.choice((2, 2, 1, 15)))
            )
            for _ in range(random.choice((1, 1, 4))):
                whole[random.randrange(8, len(whole))] = random.randrange(256)
            payload = bytes(whole[: random.choice((len(whole), random.randrange(len(whole) + 1)))])
        if int.from_bytes(payload[4:8], "big") not in HONEST and not any(
            payload[at : at + 4] == struct.pack("!I", node) for node in HONEST for at in range(8, len(payload))
        ):
            world.take(payload, None)
    return "sent"


@step(2)
def scrape(world: CollectorUnderAttack, random: Random) -> str:
    """Read the page of metrics, and render the tables."""
    page = metrics.text(world.collector)
    if len(page) > LONGEST_PAGE:
        world.broken("the page of metrics is bounded", f"{len(page)} bytes for {len(world.collector.hops())} hops")
    showing.view(world.collector)
    return f"{len(page) >> 20} MB"


ROOM = Room("attack-collector", CollectorUnderAttack, STEPS.weights, longest=40)
