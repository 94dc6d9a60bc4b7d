#!/usr/bin/env python3
"""fuzz/membership.py SECONDS: sends IGMP and MLD messages, right, wrong and damaged, to a controller's edge in this process.

For any frames, at any times:

* nothing is raised, and each frame is heard, counted as malformed or unexpected, or belongs to another protocol;
* the channels are those that the definition makes of the ports' filters;
* the changes that are told, one after the other, make the channels;
* no port has more channels than it may have, nor have all together;
* queries are messages that a host can read.

FUZZ_SEED repeats a run. The frames before a finding are kept in FUZZ_FINDINGS (default: target/fuzz/findings).
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from random import Random
from typing import Any, cast

from session import Session

from holdfast.control.membership import frames, igmp, mld
from holdfast.control.membership.channels import Channel, ChannelChange, wanted_channels
from holdfast.control.membership.family import IGMP, MLD
from holdfast.control.membership.messages import Malformed, Query, checksum
from holdfast.control.membership.overlay import EdgePort, Overlay, OverlayParameters, link_local
from holdfast.controller import ControlPlane

RESET_EVERY = 500  # frames, so that a finding is short
MAC = bytes.fromhex("020000000001")
GROUPS_V4 = [IPv4Address(text) for text in ("239.1.2.3", "239.1.2.4", "232.1.1.1", "224.0.0.5")]
GROUPS_V6 = [IPv6Address(text) for text in ("ff1e::1", "ff3e::2", "ff02::5")]
SOURCES_V4 = [IPv4Address(f"10.0.0.{number}") for number in range(1, 4)]
SOURCES_V6 = [IPv6Address(f"2001:db8::{number}") for number in range(1, 4)]


@dataclass
class Plane:
    """Time, and packet-outs that are checked."""

    now_ps: int = 0
    clients: dict[str, Plane] = field(default_factory=dict)
    pending: list[tuple[int, int, Callable[[], None]]] = field(default_factory=list)
    added: int = 0

    def call_later(self, delay_ms: float, handler: Callable[[], None]) -> None:
        self.added += 1
        heapq.heappush(self.pending, (self.now_ps + round(delay_ms * 1e9), self.added, handler))

    def advance(self, to_ps: int) -> None:
        while self.pending and self.pending[0][0] <= to_ps:
            self.now_ps, _, handler = heapq.heappop(self.pending)
            handler()
        self.now_ps = to_ps

    def packet_out(self, frame: bytes, *, egress_port: int) -> None:
        _, message = frames.parse(frame)
        assert isinstance(message, Query), message


class Edge:
    """An overlay with its channels made of the changes that it told."""

    def __init__(self, random: Random) -> None:
        self.plane = Plane()
        self.plane.clients = {"s1": self.plane, "s2": self.plane}
        self.told: dict[Channel, dict[str, frozenset[int]]] = {}
        ports = {
            (switch, port): EdgePort(
                MAC, IPv4Address("10.0.0.254"), link_local(MAC), fast_leave=port == 2, router=port == 1
            )
            for switch in ("s1", "s2")
            for port in (1, 2)
        }
        limits = {"group_limit": 3, "source_limit": 2, "channels_per_port": 4, "channels": random.choice([6, 12, 1000])}
        self.overlay = Overlay(ports, OverlayParameters(**limits))  # type: ignore[arg-type]
        self.overlay.changed(self._changed)
        self.overlay.start(cast(ControlPlane, self.plane))
        self.random = random

    def _changed(self, changes: list[ChannelChange]) -> None:
        for change in changes:
            switches = self.told.setdefault(change.channel, {})
            if change.ports is None:
                del switches[change.switch]
            else:
                switches[change.switch] = change.ports
            if not switches:
                del self.told[change.channel]

    def hear(self, frame: bytes) -> None:
        """Pass a frame to the edge's overlay after a random time, and check what must hold then."""
        random, overlay = self.random, self.overlay
        self.plane.advance(self.plane.now_ps + random.choice([0, 10**9, 10**12, 10**14]))
        before = overlay.heard + overlay.unexpected + overlay.malformed.total()
        taken = overlay.on_packet_in(random.choice(["s1", "s2"]), frame, random.choice([1, 2, 3]))
        assert overlay.heard + overlay.unexpected + overlay.malformed.total() == before + taken
        assert overlay.malformed[Malformed.OTHER_PROTOCOL] == 0
        filters = {(place, group): it for place in overlay.ports for group, it in overlay.filters(place).items()}
        assert dict(overlay.channels) == wanted_channels(filters) == self.told
        assert len(overlay.channels) <= overlay.parameters.channels
        assert all(overlay.channels_at(place) <= 2 * overlay.parameters.channels_per_port for place in overlay.ports)


def message(random: Random) -> bytes:
    """Return a frame with a random but well-formed message of IGMP or MLD."""
    v4 = random.random() < 0.5
    family = IGMP if v4 else MLD
    groups: list[Any] = list(GROUPS_V4 if v4 else GROUPS_V6)
    sources: list[Any] = list(SOURCES_V4 if v4 else SOURCES_V6)
    kind = random.choice([0x11, 0x12, 0x16, 0x17, 0x22, 0x22, 0x22] if v4 else [130, 131, 132, 143, 143, 143])
    group = random.choice(groups).packed
    head = bytes((kind, random.choice([0, 1, 100, 255]), 0, 0))
    if kind in (0x22, 143):
        records = b""
        count = random.choice([0, 1, 1, 2, 5])
        for _ in range(count):
            named = random.sample(sources, random.randrange(len(sources)))
            auxiliary = random.choice([0, 0, 0, 1])
            records += bytes((random.randrange(8), auxiliary)) + len(named).to_bytes(2, "big")
            records += random.choice(groups).packed + b"".join(it.packed for it in named) + bytes(4 * auxiliary)
        data = head + bytes(2) + count.to_bytes(2, "big") + records
    else:
        asked = group if random.random() < 0.7 else bytes(len(group))
        data = head + (b"" if v4 else random.randbytes(2) + bytes(2)) + asked
        if kind in (0x11, 130) and random.random() < 0.6:
            query = Query(family.latest, None, 0, tuple(random.sample(sources, random.randrange(3))), robustness=2)
            data += family.behind_group(query)
    return frame_v4(data, random) if v4 else frame_v6(data, random)


def frame_v4(data: bytes, random: Random) -> bytes:
    """Return an IPv4 frame with an IGMP message."""
    data = data[:2] + checksum(data).to_bytes(2, "big") + data[4:]
    head = b"\x46\xc0" + (24 + len(data)).to_bytes(2, "big") + b"\0\0\0\0\1\2\0\0"
    head += random.choice(SOURCES_V4).packed + igmp.REPORTS_V3.packed + igmp.ROUTER_ALERT
    return bytes(12) + b"\x08\0" + head[:10] + checksum(head).to_bytes(2, "big") + head[12:] + data


def frame_v6(data: bytes, random: Random) -> bytes:
    """Return an IPv6 frame with an MLD message."""
    addresses = IPv6Address(f"fe80::{random.randrange(1, 9)}").packed + mld.REPORTS_V2.packed
    total = checksum(addresses + len(data).to_bytes(4, "big") + b"\0\0\0\x3a" + data)
    data = data[:2] + total.to_bytes(2, "big") + data[4:]
    options = b"\x3a\0" + mld.ROUTER_ALERT + b"\1\0"
    head = b"\x60\0\0\0" + (len(options) + len(data)).to_bytes(2, "big") + b"\0\1"
    return bytes(12) + b"\x86\xdd" + head + addresses + options + data


def damaged(frame: bytes, random: Random) -> bytes:
    """Return a frame that is truncated, has bytes changed or added, or consists of random bytes."""
    kind = random.randrange(4)
    if kind == 0:
        return frame[: random.randrange(len(frame) + 1)]
    if kind == 1:
        changed = bytearray(frame)
        for _ in range(random.choice([1, 1, 2, 8])):
            changed[random.randrange(len(changed))] = random.randrange(256)
        return bytes(changed)
    if kind == 2:
        return frame + random.randbytes(random.randrange(64))
    return frame[: random.choice([0, 14, 38])] + random.randbytes(random.randrange(80))


def main() -> int:
    """Run for the seconds on the command line; return 1 if a check failed, else 0."""
    session = Session("membership", "frame")
    random, heard, malformed = session.random, 0, 0
    edge, history = Edge(random), list[bytes]()
    while session.goes_on():
        frame = message(random)
        if random.random() < 0.4:
            frame = damaged(frame, random)
        history.append(frame)
        try:
            edge.hear(frame)
        except Exception:  # noqa: BLE001 - whatever it is, it is a finding
            return session.found("\n".join(it.hex() for it in history).encode())
        if len(history) == RESET_EVERY:
            heard, malformed = heard + edge.overlay.heard, malformed + edge.overlay.malformed.total()
            edge, history = Edge(random), []
    return session.nothing_found(f"{heard} heard, {malformed} malformed")


if __name__ == "__main__":
    sys.exit(main())
