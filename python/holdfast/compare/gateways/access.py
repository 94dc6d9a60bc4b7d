"""The access node's controller: modelled subscribers on their lines, and the entries that make their hosts' packets a session's.

It knows gateways by their MAC addresses and ports alone. Hosts' packets are the program's business (``apps/bng/access.p4``).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from holdfast import apps
from holdfast._core import Program
from holdfast.apps.bng.clock import NetworkClock
from holdfast.apps.bng.frames import tagged, untagged
from holdfast.controller import Controller
from holdfast.p4runtime.client import Client
from holdfast.subscribers.plane import Line
from holdfast.subscribers.subscriber import Account, Subscriber

NODE = "access"
"""The name of the access node's switch."""

DELAY_MS = 1.0
"""The delay from a frame for a subscriber to the subscriber's answer."""

OFFER_DELAY_S = 0.005
"""A subscriber whose gateway is another one hears of a gateway that much later, so that each has its part (PADO delay)."""

REDIAL_S = 0.5
"""The time that a subscriber that has lost its session waits before it dials again."""


@cache
def program() -> Program:
    """Compile the program of the access node, once per process."""
    return Program.compile(str(Path(apps.__path__[0]) / "bng" / "access.p4"))


@dataclass(frozen=True)
class Caller:
    """Somebody who dials: ``host`` is the host behind the line, None if nobody measures its packets. ``at_s``: when it dials."""

    number: int
    user: str
    password: str
    at_s: float
    host: str | None

    @property
    def line(self) -> Line:
        """The caller's own access line (a port and its VLAN tags), which identifies it to the gateways."""
        return Line(1, 100 + self.number // 4000, 1 + self.number % 4000)

    @property
    def mac(self) -> bytes:
        """The MAC address of the caller's home gateway."""
        return b"\x02\x0a" + self.number.to_bytes(4, "big")


@dataclass
class Online:
    """A caller's history: for each time that it came online the time, the session and its gateway."""

    model: Subscriber
    sessions: list[tuple[float, int, bytes]] = field(default_factory=list)
    entries: list[tuple[str, dict[str, int | bytes | str]]] = field(default_factory=list)


class AccessNode(Controller):
    """All callers. ``uplinks``: the node's ports, by the MAC address of the gateway there, in the order of preference."""

    def __init__(self, callers: list[Caller], uplinks: Mapping[bytes, int], *, seed: int, keepalive_s: float) -> None:
        super().__init__(reaction_delay_ms=DELAY_MS)
        self.callers, self._uplinks = callers, uplinks
        self._seed, self._keepalive_s = seed, keepalive_s
        self.online: list[Online] = []
        self._by_mac: dict[tuple[Line, bytes], Subscriber] = {}

    @property
    def client(self) -> Client:
        """The client that writes into the access node."""
        return self.clients[NODE]

    def on_start(self) -> None:
        """Schedule each subscriber to dial at its own time."""
        clock = NetworkClock(self.plane)
        for caller in self.callers:
            model = Subscriber(
                Account(
                    caller.user,
                    caller.password,
                    ipv6=False,
                    delegation=False,
                    redial_s=REDIAL_S,
                    keepalive_s=self._keepalive_s,
                ),
                caller.mac,
                clock,
                self._sender(caller),
                seed=random.Random(f"{self._seed} {caller.number}").getrandbits(32),
                up=self._up(caller),
            )
            self.online.append(Online(model))
            self._by_mac[caller.line, caller.mac] = model
            clock.call_later(caller.at_s, model.dial)

    def on_packet_in(self, switch: str, packet: bytes, metadata: Mapping[str, int]) -> None:
        """Hand a frame from a gateway to the subscriber whose access line and MAC address it has; ignore others."""
        if switch != NODE:
            return
        line, frame = untagged(packet, 1)
        model = self._by_mac.get((line, frame[:6]))
        if model is not None:
            model.receive(frame)

    def _sender(self, caller: Caller) -> Callable[[bytes], None]:
        """Return a function that sends a caller's frame to the gateway with its destination address.

        A frame to all stations is sent to every gateway, one after the other.
        """
        ports = list(self._uplinks.values())
        first = caller.number % len(ports)
        preferred = ports[first:] + ports[:first]

        def send(frame: bytes) -> None:
            wire = tagged(caller.line, frame, 0x8100, port_tag=False)
            if not frame[0] & 1:
                self.client.packet_out(wire, egress_port=self._uplinks[frame[:6]])
                return
            for place, port in enumerate(preferred):
                self._send_later(place * OFFER_DELAY_S, wire, port)

        return send

    def _send_later(self, delay_s: float, wire: bytes, port: int) -> None:
        if delay_s:
            self.plane.call_later(1000 * delay_s, lambda: self.client.packet_out(wire, egress_port=port))
        else:
            self.client.packet_out(wire, egress_port=port)

    def _up(self, caller: Caller) -> Callable[[Subscriber], None]:
        """Return a function that records that a caller is online, and installs entries for its host's packets."""

        def up(model: Subscriber) -> None:
            own = self.online[caller.number]
            own.sessions.append((self.plane.now_ps / 1e12, model.session, model.gateway))
            if caller.host is None:
                return
            for table, key in own.entries:
                self.client.delete(table, key)
            host, attachment = self.topology.hosts[caller.host], self.topology.attachment(caller.host)
            line, port = caller.line, attachment.port
            tags = {"s_vid": line.s_tag, "c_vid": line.c_tag}
            session: dict[str, int | bytes | str] = {"session_id": model.session, "mac": caller.mac, **tags}
            home: dict[str, int | bytes | str] = {"port": port}
            away: dict[str, int | bytes | str] = {**session, "address": str(host.address.ip)}
            uplink = self._uplinks[model.gateway]
            self.client.insert("homes", home, "dial", {"uplink": uplink, "gateway": model.gateway, **session})
            to_host: dict[str, int | bytes] = {
                "port": port,
                "host_mac": host.mac,
                "our_mac": self.topology.port_mac(NODE, port),
            }
            self.client.insert("hosts", away, "deliver", to_host)
            own.entries = [("homes", home), ("hosts", away)]

        return up
