#!/usr/bin/env python3
"""fuzz/contexts.py SECONDS: sends packets through two Shorternet gateways, and spoils their contexts and frames meanwhile.

For any packets, and any contexts that the far edge has, has lost or has wrong:

* a packet comes out as it went in, to the last byte, or it does not come out and is counted with a reason;
* a damaged frame gives one packet at most, and is counted otherwise;
* a number never stands for two contexts of an edge at one time, and no edge has more contexts than its room.

A wrong context differs by 16 bits in a row at most, which a CRC-16 always finds. FUZZ_SEED repeats a run. The steps before a
are kept in FUZZ_FINDINGS (default: target/fuzz/findings).
"""

from __future__ import annotations

import sys
from random import Random

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from session import Session

from holdfast.apps.shorternet.conftest import CORE, HOST, HOST_MAC, PORT_MAC, Edge, compiled
from holdfast.apps.shorternet.contexts import FIELDS, Context, Contexts, Flow
from holdfast.control.tables import TableEntry

RESET_EVERY = 300  # steps, so that a finding is short
SHORTEST_BYTES = 60
"""Of a frame: shorter ones are padded."""
ROOM = 8
"""Contexts per edge and version: so few that they run out."""

WIDTHS = {"diffserv": 8, "flags": 3, "ttl": 8, "protocol": 8, "src_port": 16, "dst_port": 16, "traffic_class": 8}
WIDTHS |= {"flow_label": 16, "next_header": 8, "hop_limit": 8, "src_addr": 16, "dst_addr": 16}
"""Bits of each field that may be wrong."""


class Gateways:
    """Two edges, with the contexts that a controller has given them, some spoilt."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.near, self.far = Edge(compiled(), 1), Edge(compiled(), 2)
        self.contexts = Contexts(ROOM)
        self.installed: dict[Context, TableEntry | None] = {}
        self.log: list[str] = []
        self.came = self.dropped = 0

    def step(self) -> None:
        """Do one random step: send a packet or a damaged frame, or change a context."""
        kind = self.random.randrange(10)
        if kind < 6:
            self.send()
        elif kind == 6:
            self.damaged()
        elif kind == 7:
            self.spoil()
        elif kind == 8:
            self.end()
        else:
            self.learn()
        self.check_numbers()

    def packet(self) -> bytes:
        """Return a random IP packet of one of few flows."""
        random = self.random
        layers = (
            UDP(sport=random.choice((1, 2)), dport=2),
            TCP(sport=1, dport=2, seq=random.randrange(1 << 32)),
            ICMP(seq=random.randrange(9)),
        )
        body = random.choice(layers) / Raw(random.randbytes(random.choice((0, 1, 5, 30, 200))))
        if random.random() < 0.6:
            head = IP(
                src="10.0.1.1",
                dst="10.0.2.1",
                tos=random.choice((0, 3)),
                ttl=random.choice((1, 64)),
                id=random.randrange(1 << 16),
            )
            head.flags = random.choice(("", "DF", "MF"))
        else:
            head = IPv6(src="2001:db8:1::1", dst="2001:db8:2::1", fl=random.choice((0, 5)), hlim=random.choice((1, 64)))
        packet = bytearray(bytes(head / body))
        if random.random() < 0.2:
            place = random.randrange(40 if packet[0] >> 4 == 6 else 20, len(packet) + 1)
            packet[place : place + 1] = random.randbytes(random.choice((0, 1, 2)))
        return bytes(packet)

    def shortened(self) -> tuple[bytes, bytes] | None:
        """Send a packet through the near edge.

        Returns the packet and the frame that it becomes, or None if the edge dropped it, which it must count.
        """
        packet = self.packet()
        ether_type = 0x0800 if packet[0] >> 4 == 4 else 0x86DD
        frame = bytes(Ether(src=HOST_MAC, dst=PORT_MAC, type=ether_type))[:14] + packet
        if self.random.random() < 0.5:
            frame = frame.ljust(60, b"\0")
        before = self._drops(self.near)
        out = self.near.send(frame)
        self.log.append(f"in {packet.hex()}")
        if not out:
            assert self._drops(self.near) == before + 1
            return None
        ((port, short),) = out
        assert port == CORE
        return packet, short

    @staticmethod
    def _drops(edge: Edge) -> int:
        return sum(count for name, count in edge.counted().items() if name != "whole")

    def send(self) -> None:
        """Send a packet through both edges, padded to Ethernet's minimum or not, and check that the same packet leaves."""
        if (made := self.shortened()) is None:
            return
        packet, short = made
        if self.random.random() < 0.5:
            short = short.ljust(60, b"\0")
        before = self._drops(self.far)
        out = self.far.send(short, CORE)
        if not out:
            self.dropped += 1
            assert self._drops(self.far) == before + 1
            return
        self.came += 1
        ((port, frame),) = out
        assert port == HOST and self._drops(self.far) == before
        # What is behind a packet in a frame of the shortest length is Ethernet's padding.
        said = int.from_bytes(packet[2:4], "big") if packet[0] >> 4 == 4 else 40 + int.from_bytes(packet[4:6], "big")
        own = min(len(packet), said) if len(packet) <= SHORTEST_BYTES - 14 else len(packet)
        assert frame[14 : 14 + own] == packet[:own], frame.hex()
        assert len(frame) >= 14 + own and (own < len(packet) or not any(frame[14 + own :])), frame.hex()

    def damaged(self) -> None:
        """Send a packet through both edges, its frame changed or cut short between them.

        Check that the far edge passes one frame or counts one drop.
        """
        if (made := self.shortened()) is None:
            return
        frame = bytearray(made[1])
        for _ in range(self.random.choice((1, 1, 3))):
            frame[self.random.randrange(len(frame))] = self.random.randrange(256)
        data = bytes(frame[: self.random.randrange(len(frame) + 1)] if self.random.random() < 0.4 else frame)
        self.log.append(f"damaged {data.hex()}")
        before = self._drops(self.far)
        out = self.far.send(data, CORE)
        assert len(out) + self._drops(self.far) - before == 1

    def learn(self) -> None:
        """Create contexts for the flows that the near edge reported by digests, if there is room.

        Discard the far edge's digests.
        """
        for value in self.near.digests():
            version = 4 if "ttl" in value else 6
            if "id" in value:
                continue
            flow = Flow.of(version, value)
            if self.contexts.of(self.near.name, flow) is not None:
                continue
            context = self.contexts.allot(flow, self.near.name, self.far.name, self.near.station)
            if context is None:
                continue
            self.log.append(f"context {context}")
            self.far.add(context.context_entry())
            self.near.add(context.flow_entry())
            self.installed[context] = context.context_entry()
        self.far.digests()

    def spoil(self) -> None:
        """Remove a context's entry at the far edge, replace it by one with another flow's fields, or restore it."""
        if not self.installed:
            return
        context = self.random.choice(list(self.installed))
        there = self.installed[context]
        if there is not None:
            there.write(self.far.client, "delete")
        kind = self.random.randrange(3)
        wanted: TableEntry | None = context.context_entry()
        if kind == 0:
            wanted = None
        elif kind == 1 and wanted is not None:
            name = self.random.choice(FIELDS[context.flow.version])
            value = int(wanted.params[name]) ^ self.random.randrange(1, 1 << WIDTHS[name])
            wanted = TableEntry(wanted.table, wanted.match, wanted.action, {**wanted.params, name: value})
        self.log.append(f"far {context.number}: {wanted}")
        if wanted is not None:
            self.far.add(wanted)
        self.installed[context] = wanted

    def end(self) -> None:
        """End a context: remove its number at the near edge first, then its entry at the far edge."""
        if not self.installed:
            return
        context = self.random.choice(list(self.installed))
        self.log.append(f"end {context.number}")
        context.flow_entry().write(self.near.client, "delete")
        self.contexts.retire(context)
        there = self.installed.pop(context)
        if there is not None:
            there.write(self.far.client, "delete")
        self.contexts.free(context)

    def check_numbers(self) -> None:
        """Check that no number stands for two contexts, and that contexts do not exceed the room for them."""
        for version in (4, 6):
            numbers = [context.number for context in self.contexts if context.flow.version == version]
            assert len(numbers) == len(set(numbers)) <= ROOM


def main() -> int:
    """Run for the seconds on the command line; return 1 if a check failed, else 0."""
    session = Session("contexts", "step")
    came = dropped = 0
    gateways = Gateways(session.random)
    while session.goes_on():
        try:
            gateways.step()
        except Exception:  # noqa: BLE001 - whatever it is, it is a finding
            return session.found("\n".join(gateways.log).encode())
        if session.count % RESET_EVERY == 0:
            came, dropped = came + gateways.came, dropped + gateways.dropped
            gateways = Gateways(session.random)
    came, dropped = came + gateways.came, dropped + gateways.dropped
    return session.nothing_found(f"{came} packets came as they went, {dropped} were dropped")


if __name__ == "__main__":
    sys.exit(main())
