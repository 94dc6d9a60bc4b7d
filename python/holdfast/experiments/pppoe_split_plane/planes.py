"""A gateway's planes without a network: switches joined by cables, whose work is measured as processor time.

Each switch is this program's, with its tables, on machine code. Frames run through them at once; the processor time that each
switch spends on subscribers' packets, on control frames, and on entries is kept apart.
The call from Python is part of it, for each switch that a frame passes.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from ipaddress import IPv4Network, IPv6Network
from itertools import chain, count
from typing import Literal, TypeAlias

from holdfast._core import Program, Switch
from holdfast.apps.bng import (
    AccessPort,
    AuthenticationPlane,
    Balancer,
    ControlRates,
    CorePort,
    Edges,
    ForwardingPlane,
    Rate,
    Route,
    SinglePlane,
    SplitPlane,
)
from holdfast.apps.bng.frames import untagged
from holdfast.experiments.pppoe_split_plane import setup
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device
from holdfast.subscribers.plane import Line

Kind: TypeAlias = Literal["data", "control", "entries"]

CPU_PORT, ACCESS, CORE = 510, 1, 2
GATEWAY_MAC, CORE_MAC, ROUTER_MAC = "02:00:00:00:00:0a", "02:00:00:00:00:09", "06:00:00:00:00:09"
PLENTY = Rate(per_s=1_000_000, burst=1_000_000)
EDGES = Edges(
    access=(AccessPort(port=ACCESS, mac=GATEWAY_MAC),),
    core=(CorePort(port=CORE, mac=CORE_MAC),),
    routes=(
        Route(prefix=IPv4Network("0.0.0.0/0"), port=CORE, next_hop_mac=ROUTER_MAC),
        Route(prefix=IPv6Network("::/0"), port=CORE, next_hop_mac=ROUTER_MAC),
    ),
    control=ControlRates(padi=PLENTY, discovery=PLENTY, ppp=PLENTY, committed=PLENTY),
)
"""No rate of control packets is in the way: the cost of a storm is to be seen."""

FORWARDING = {"forwarding": (11, 12), "forwarding2": (21, 22)}
"""Forwarding planes, with the balancer's ports to both sides of each; its port 1 is to lines, 2 to authentication, 3 to core."""


class VirtualClock:
    """Timers in the order of their time; nobody waits."""

    def __init__(self) -> None:
        self._now = 0.0
        self._numbers = count()
        self._waiting: list[tuple[float, int, Callable[[], None]]] = []
        self._cancelled: set[int] = set()

    def now(self) -> float:
        """Return the virtual time in seconds."""
        return self._now

    def call_later(self, delay_s: float, action: Callable[[], None]) -> Callable[[], None]:
        """Call ``action`` after ``delay_s`` seconds of virtual time; return a function that cancels the call."""
        number = next(self._numbers)
        heapq.heappush(self._waiting, (self._now + delay_s, number, action))
        return partial(self._cancelled.add, number)

    def forget_cancelled(self) -> None:
        """Remove cancelled timers from the queue, so that the objects that they refer to are freed."""
        self._waiting = [each for each in self._waiting if each[1] not in self._cancelled]
        self._cancelled.clear()
        heapq.heapify(self._waiting)

    def run(self, until_s: float) -> None:
        """Call the actions of all timers up to the virtual time ``until_s``, in order, and set the clock to ``until_s``."""
        while self._waiting and self._waiting[0][0] <= until_s:
            at_s, number, action = heapq.heappop(self._waiting)
            if number in self._cancelled:
                self._cancelled.discard(number)
                continue
            self._now = at_s
            action()
        self._now = until_s


class _TimedDevice(Device):
    """A switch's device that measures the processor time of writes of entries."""

    planes: Planes
    name: str

    def write_serialized(self, data: bytes) -> None:
        """Send a serialized P4Runtime write to the switch, and count its processor time as work on entries."""
        with self.planes.timed(self.name, "entries"):
            super().write_serialized(data)


class ControlClock:
    """The clock of the control plane: its timers' actions count as its work."""

    def __init__(self, planes: Planes) -> None:
        self._planes = planes

    def now(self) -> float:
        """Return the virtual time in seconds."""
        return self._planes.clock.now()

    def call_later(self, delay_s: float, action: Callable[[], None]) -> Callable[[], None]:
        """Call ``action`` after ``delay_s``, and count its processor time as the control plane's.

        Return a function that cancels the call.
        """
        return self._planes.clock.call_later(delay_s, partial(self._planes.in_control, action))


class _Node:
    """A switch of the gateway whose processor time is measured."""

    def __init__(self, planes: Planes, name: str, program: Program) -> None:
        self.name, self._planes = name, planes
        self.switch = Switch(program)
        self.device = _TimedDevice(
            1, self.switch, packet_out=lambda frame: planes.run(name, [(CPU_PORT, frame)], "control")
        )
        self.device.planes, self.device.name = planes, name
        self.client = LocalClient(self.device)
        self.client.set_pipeline(program)


class Planes:
    """A gateway of one plane or of several. ``deliver`` gets what leaves to a line; ``forwarding``: planes that forward, 1 or 2."""

    def __init__(
        self,
        plane: str,
        clock: VirtualClock,
        deliver: Callable[[Line, bytes], None] | None = None,
        edges: Edges = EDGES,
        *,
        forwarding: int = 1,
    ) -> None:
        self.plane, self.clock, self._deliver, self._edges = plane, clock, deliver, edges
        self.busy_ns: Counter[tuple[str, Kind]] = Counter()
        """Processor time by switch and kind of work."""
        self.control_ns = 0
        """Of the controller's handling of frames, without what switches did meanwhile."""
        self.to_core = self.to_lines = 0
        self._switches_ns = 0
        self._forwarding = {} if plane == "single" else dict(list(FORWARDING.items())[:forwarding])
        split = {"balancer": "balancer", "authentication": "auth", **dict.fromkeys(self._forwarding, "forward")}
        names = {"single": "single"} if plane == "single" else split
        self.nodes = {name: _Node(self, name, setup.programs()[program]) for name, program in names.items()}
        self._first = next(iter(self.nodes))
        self._core_port = CORE if plane == "single" else 3
        joined = {("balancer", 2): ("authentication", 1)} | {
            ("balancer", port): (name, side)
            for name, ports in self._forwarding.items()
            for side, port in enumerate(ports, 1)
        }
        self._cables = {} if plane == "single" else joined | {b: a for a, b in joined.items()}
        self.user_plane = self.attach()

    def attach(self) -> SinglePlane | SplitPlane:
        """Return a user plane for a new controller, which reads the sessions that are in the switches."""
        clients = {name: node.client for name, node in self.nodes.items()}
        if self.plane == "single":
            self.user_plane = SinglePlane(clients["single"], self._edges)
        else:
            self.user_plane = SplitPlane(
                self._edges,
                Balancer(clients["balancer"], {ROUTER_MAC: 3}),
                AuthenticationPlane(clients["authentication"], 1, 2),
                {name: ForwardingPlane(clients[name], 1, *ports) for name, ports in self._forwarding.items()},
                self.clock,
                drain_s=0,
            )
        return self.user_plane

    def from_lines(self, frames: Sequence[bytes], kind: Kind) -> None:
        """Send subscribers' frames into the gateway, one after the other; their processor time is counted as work of ``kind``."""
        self.run(self._first, [(ACCESS, frame) for frame in frames], kind)

    def from_core(self, frames: Sequence[bytes]) -> None:
        """Send packets from the core to subscribers into the gateway, one after the other."""
        self.run(self._first, [(self._core_port, frame) for frame in frames], "data")

    @contextmanager
    def timed(self, name: str, kind: Kind) -> Iterator[None]:
        """Count the processor time spent in this context as work of ``kind`` in the switch ``name``."""
        began = time.thread_time_ns()
        try:
            yield
        finally:
            took = time.thread_time_ns() - began
            self.busy_ns[name, kind] += took
            self._switches_ns += took

    def run(self, name: str, frames: Sequence[tuple[int, bytes]], kind: Kind) -> None:
        """Send ``frames`` into ports of the switch ``name``; pass its output on to the next switches or the control plane."""
        now_ps = round(self.clock.now() * 1e12) + 1_000_000
        process = self.nodes[name].switch.process
        with self.timed(name, kind):
            sent = [process(port, frame, now_ps) for port, frame in frames]
        onward: dict[str, list[tuple[int, bytes]]] = {}
        for out, packet in chain.from_iterable(sent):
            if out == CPU_PORT:
                port = int.from_bytes(packet[:2], "big") >> 7
                self.in_control(partial(self.user_plane.packet_in, packet[2:], {"ingress_port": port}))
            elif (name, out) in self._cables:
                other, port = self._cables[name, out]
                onward.setdefault(other, []).append((port, packet))
            elif out == ACCESS:
                self.to_lines += 1
                if self._deliver is not None:
                    self._deliver(*untagged(packet, out))
            else:
                self.to_core += 1
        for other, packets in onward.items():
            self.run(other, packets, kind)

    def in_control(self, action: Callable[[], None]) -> None:
        """Run ``action`` of the control plane, and count its processor time without that of the switches.

        Actions do not nest: a frame for the control plane waits until the present action has ended.
        """
        began, switches = time.thread_time_ns(), self._switches_ns
        action()
        self.control_ns += time.thread_time_ns() - began - (self._switches_ns - switches)

    def busy_s(self, kind: Kind | None = None) -> dict[str, float]:
        """Return by switch its processor time in seconds: of work of ``kind``, or of all work if ``kind`` is None."""
        return {
            name: sum(ns for (node, each), ns in self.busy_ns.items() if node == name and kind in (None, each)) / 1e9
            for name in self.nodes
        }
