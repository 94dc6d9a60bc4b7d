"""New sessions beside established traffic: the cost of both for the planes of a gateway, measured at the same time.

Established subscribers send and receive; others dial (:class:`holdfast.subscribers.subscriber.Subscriber`: discovery, LCP, CHAP,
IPCP, IPv6CP, router advertisement, prefix delegation), and the whole control plane answers them. Time is virtual, work is this
machine's processor time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address
from typing import Any

from holdfast.apps.bng import ControlRates, Edges
from holdfast.apps.bng.frames import tagged
from holdfast.experiments.pppoe_split_plane import published
from holdfast.experiments.pppoe_split_plane.frames import downstream, upstream
from holdfast.experiments.pppoe_split_plane.planes import (
    CORE_MAC,
    EDGES,
    GATEWAY_MAC,
    ROUTER_MAC,
    ControlClock,
    Planes,
    VirtualClock,
)
from holdfast.subscribers.configuration import Configuration
from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.keeping import Store
from holdfast.subscribers.plane import Line, Session
from holdfast.subscribers.subscriber import Account, Subscriber
from holdfast.subscribers.users import UserList
from holdfast.sweep import Point

PACKETS = 50_000
"""The packets of established subscribers in a run, half of them in each direction."""

SWITCHES = ("single", "balancer", "authentication", "forwarding")

ESTABLISHED = 1000
PAYLOAD_BYTES = 470
"""The bytes of a UDP payload: packets of 498 bytes of IP, about the mean of the Internet's."""

TICKS = 500
TICK_S = 0.002
TAIL_S = 2.0
"""The time in which the last setups end."""

ACCESS_S = 0.0005
"""The delay between subscriber and gateway."""

STORMS: dict[str, tuple[int, int]] = {
    "none": (0, 0),
    "10 setups": (10, 0),
    "100 setups": (100, 0),
    "500 setups": (500, 0),
    "50000 PADI": (0, 50_000),
}
"""Setups and PADIs of one line during the packets. A PADI storm meets the default rates of control packets."""

POINTS: list[Point] = [{"storm": storm, "plane": plane} for storm in STORMS for plane in published.PLANES]

FIRST_NEW_MAC = 1 << 20


def configuration() -> Configuration:
    """Return the gateway's configuration, with limits so high that every subscriber may dial at once."""
    return Configuration.model_validate(
        {
            "mac": GATEWAY_MAC,
            "address": "100.64.0.1",
            "pools": {"default": "100.64.0.0/16"},
            "ipv6": {"prefixes": "2001:db8:1::/48", "delegated": "2001:db8:8000::/34"},
            "users": {"alice": {"password": "secret"}},
            "limits": {"padi_per_s": 1_000_000, "setups": 65_000},
        }
    )


def line_of(number: int) -> Line:
    """Return the line of subscriber ``number``; no two subscribers share one."""
    return Line(1, 1 + number // 4000, 1 + number % 4000)


def established(number: int) -> Session:
    """Return session ``number`` of the traffic, which the control plane does not know.

    Its address is outside the control plane's pool, and its identifier is one of the last.
    """
    mac = b"\x02\x01" + number.to_bytes(4, "big")
    return Session(65_535 - number, line_of(number), mac, number, ipv4=IPv4Address("10.0.0.0") + number)


class Subscribers:
    """Modelled subscribers of a gateway, on their lines."""

    def __init__(
        self, plane: str, *, seed: int, edges: Edges = EDGES, store: Store | None = None, forwarding: int = 1
    ) -> None:
        self.clock = VirtualClock()
        self.planes = Planes(plane, self.clock, self._deliver, edges, forwarding=forwarding)
        self.seed, self._store = seed, store
        self._hosts: dict[tuple[Line, bytes], Subscriber] = {}
        self.gateway = self.control()

    def control(self) -> Gateway:
        """Build a new control plane for the user plane and return it; it has not yet read any sessions."""
        values = configuration()
        self.gateway = Gateway(
            values,
            self.planes.user_plane,
            ControlClock(self.planes),
            UserList(values.users),
            random=random.Random(self.seed).randbytes,
            store=self._store,
            wall=self.clock.now,
        )
        return self.gateway

    def forget(self) -> None:
        """Disconnect all subscribers: frames no longer reach them, their timers are cancelled, and their memory is freed."""
        for host in self._hosts.values():
            host.vanish()
        self._hosts = {}
        self.clock.forget_cancelled()

    def _deliver(self, line: Line, frame: bytes) -> None:
        host = self._hosts.get((line, frame[:6]))
        if host is not None:
            self.clock.call_later(ACCESS_S, lambda: host.receive(frame))

    def dial(self, number: int) -> Subscriber:
        """Make a new subscriber on line ``number``, let it dial at once, and return it."""
        line, mac = line_of(number), b"\x02\x01" + (FIRST_NEW_MAC + number).to_bytes(4, "big")

        def send(frame: bytes) -> None:
            wire = tagged(line, frame, 0x8100, port_tag=False)
            self.clock.call_later(ACCESS_S, lambda: self.planes.from_lines([wire], "control"))

        host = self._hosts[line, mac] = Subscriber(
            Account("alice", "secret"), mac, self.clock, send, seed=self.seed * 100_000 + number
        )
        host.dial()
        return host


def traffic(sessions: int, packets: int, seed: int, make: Callable[[int], Session]) -> tuple[list[bytes], list[bytes]]:
    """Return frames of randomly drawn sessions, upstream and downstream, ``packets`` of each.

    At most ``packets`` different sessions send; ``make`` makes a session of its number.
    """
    drawn = random.Random(seed)
    own = [make(number) for number in sorted(drawn.sample(range(1, sessions + 1), min(sessions, packets)))]
    chosen = [drawn.choice(own) for _ in range(packets)]
    up = {each: upstream(each, GATEWAY_MAC, PAYLOAD_BYTES) for each in own}
    down = {each: downstream(each, CORE_MAC, ROUTER_MAC, PAYLOAD_BYTES) for each in own}
    return [up[each] for each in chosen], [down[each] for each in chosen]


def padi(number: int) -> bytes:
    """Return a PADI frame (a request for gateways, RFC 2516) from a station that has not been seen before."""
    frame = b"\xff" * 6 + b"\x06" + number.to_bytes(5, "big") + bytes.fromhex("8863 1109 0000 0004 0101 0000")
    return tagged(Line(1, 4000, 7), frame + bytes(36), 0x8100, port_tag=False)


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Measure one storm; times per packet and per setup are of all switches together.

    ``setups_per_s``: as many as the control plane can do with a core of its own. ``left_percent``: of the packet rate without a
    storm, when the control plane does ``setups_per_s``, with a core for each switch.
    """
    return storm(point["plane"], *STORMS[point["storm"]], seed=seed, packets=PACKETS)


def storm(plane: str, setups: int, padis: int, *, seed: int, packets: int) -> dict[str, Any]:
    """Run ``setups`` dialling subscribers and ``padis`` PADIs beside ``packets`` established packets; return the costs."""
    edges = EDGES.model_copy(update={"control": ControlRates()}) if padis else EDGES
    world = Subscribers(plane, seed=seed, edges=edges)
    planes, clock = world.planes, world.clock
    planes.user_plane.install([established(number) for number in range(1, ESTABLISHED + 1)])
    ups, downs = traffic(ESTABLISHED, packets // 2 // TICKS, seed, established)
    planes.from_lines(ups, "data")
    planes.from_core(downs)
    planes.busy_ns.clear()
    planes.control_ns = planes.to_core = planes.to_lines = 0
    hosts: list[Subscriber] = []
    delivered = 0
    for tick in range(TICKS):
        for _ in range((tick + 1) * setups // TICKS - tick * setups // TICKS):
            hosts.append(world.dial(ESTABLISHED + 1 + len(hosts)))
        asked = range(tick * padis // TICKS, (tick + 1) * padis // TICKS)
        planes.from_lines([padi(number) for number in asked], "control")
        before = planes.to_core
        planes.from_lines(ups, "data")
        delivered += planes.to_core - before
        before = planes.to_lines
        planes.from_core(downs)
        delivered += planes.to_lines - before
        clock.run(clock.now() + TICK_S)
    clock.run(clock.now() + TAIL_S)
    sent = TICKS * (len(ups) + len(downs))
    done = sum(host.state == "up" for host in hosts)
    busy, data = planes.busy_s(), planes.busy_s("data")
    control, entries = planes.busy_s("control"), planes.busy_s("entries")
    storm_s = {name: control[name] + entries[name] for name in busy}
    setups_per_s = 1e9 * setups / planes.control_ns if setups else None
    return {
        "lost": sent - delivered,
        "failed_setups": setups - done,
        "ns_per_packet": 1e9 * sum(data.values()) / sent,
        "packets_per_s": sent / max(busy.values()),
        "packets_per_s_one_core": sent / sum(busy.values()),
        "planes_us_per_setup": 1e6 * sum(storm_s.values()) / setups if setups else None,
        "entries_us_per_setup": 1e6 * sum(entries.values()) / setups if setups else None,
        "control_us_per_setup": planes.control_ns / 1e3 / setups if setups else None,
        "setups_per_s": setups_per_s,
        "left_percent": 100 * left(data, {name: storm_s[name] / setups * setups_per_s for name in busy})
        if setups_per_s is not None
        else None,
        "ns_per_padi": 1e9 * sum(control.values()) / padis if padis else None,
        **{f"{name}_busy_s": busy.get(name) for name in SWITCHES},
    }


def left(data_s: Mapping[str, float], shares: Mapping[str, float]) -> float:
    """Return the share of the packet rate that remains while a storm takes the share ``shares`` of each switch's core.

    ``data_s``: the processor time of each switch for packets, in seconds.
    """
    return max(data_s.values()) / max(data_s[name] / max(1e-9, 1 - shares[name]) for name in data_s)
