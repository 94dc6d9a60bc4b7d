"""A network with the gateways of one mechanism: access node, gateways, core, a server, subscribers, RADIUS, and what can fail."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any, Final

from holdfast._core import Program
from holdfast.apps.bng import (
    AccessPort,
    CorePort,
    Edges,
    Route,
    SingleGateway,
    SplitCables,
    SplitGateway,
    compile_balancer,
    compile_bng,
)
from holdfast.apps.bng.edges import mac_bytes
from holdfast.apps.router import compile_router
from holdfast.compare.gateways import access, core
from holdfast.compare.gateways.access import AccessNode, Caller
from holdfast.compare.gateways.core import Announced, Core
from holdfast.compare.gateways.mechanisms import Mechanism
from holdfast.compare.gateways.radius_server import Known, RadiusServer
from holdfast.compare.gateways.scenario import DIAL_S, TRAFFIC_S, Scenario
from holdfast.compare.inputs import NO_FAILURE
from holdfast.controller import Controller
from holdfast.network import SimulatedNetwork
from holdfast.subscribers.configuration import Configuration
from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.plane import Clock, UserPlane
from holdfast.subscribers.radius import RadiusClient
from holdfast.subscribers.store import SqliteStore
from holdfast.topology import Topology
from holdfast.traffic import UdpStream

SERVER: Final = "server"
SERVER_ADDRESS: Final = "198.51.100.9/24"
POOL: Final = IPv4Network("100.64.0.0/16")
FIRST_ADDRESS: Final = IPv4Address("100.64.1.0")
SECRET: Final = "between gateway and server"

CONTROL_DELAY_MS: Final = 2.0
"""The delay from a frame for the control plane to its answer."""

RADIUS_DELAY_S: Final = 0.002
"""The delay of a datagram to the RADIUS server or back."""

PAYLOAD_BYTES: Final = 200

LINK: Final[dict[str, Any]] = {"rate_bps": 10_000_000_000}
ACCESS_MS, CABLE_MS, CORE_MS = 0.5, 0.01, 0.5
"""Delays: of links to the access node, of cables within a gateway, and of links to the core."""

_ACCESS, _CORE = 1, 2
"""The ports of a gateway towards the access node and the core."""


@cache
def _programs() -> dict[str, Program]:
    """Compile the programs of all kinds of switches, once per process, and return them by kind."""
    return {
        "access": access.program(),
        "core": compile_router(),
        "balancer": compile_balancer(),
        "gateway": compile_bng("single"),
        "authentication": compile_bng("auth"),
        "forward": compile_bng("forward"),
    }


def _address(number: int) -> IPv4Address:
    """Return the IPv4 address of caller ``number``; each caller's host has a subnet of its own."""
    return FIRST_ADDRESS + 4 * number + 1


def _gateway_mac(number: int) -> str:
    return f"02:00:00:00:01:{number:02x}"


def _core_mac(number: int) -> str:
    return f"02:00:00:00:02:{number:02x}"


def topology(mechanism: Mechanism, subscribers: int) -> Topology:
    """Build the topology of a mechanism: its switches, the subscribers' hosts and a server, with positions for a drawing."""
    found = Topology(mechanism.name)
    found.add_switch(access.NODE, position=(0.0, 0.0))
    found.add_switch(core.NODE, position=(2.0, 0.0))
    found.add_host(SERVER, SERVER_ADDRESS)
    found.add_link(SERVER, core.NODE, b_port=1, delay_ms=CORE_MS, **LINK)
    for number in range(subscribers):
        host = f"home{number}"
        found.add_host(host, f"{_address(number)}/30")
        found.add_link(host, access.NODE, b_port=number + 1, delay_ms=CABLE_MS, **LINK)
    for number, name in enumerate(mechanism.names):
        height = 0.5 * (mechanism.gateways - 1) - number
        first = name if not mechanism.planes else "balancer"
        found.add_switch(first, position=(1.0, height))
        found.add_link(access.NODE, first, a_port=subscribers + 1 + number, b_port=_ACCESS, delay_ms=ACCESS_MS, **LINK)
        found.add_link(
            first, core.NODE, a_port=3 if mechanism.planes else _CORE, b_port=2 + number, delay_ms=CORE_MS, **LINK
        )
        if mechanism.planes:
            _add_planes(found, mechanism.planes)
    return found


def _add_planes(found: Topology, planes: int) -> None:
    found.add_switch("authentication", position=(1.0, 0.6))
    found.add_link("authentication", "balancer", a_port=1, b_port=2, delay_ms=CABLE_MS, **LINK)
    for number in range(planes):
        name = f"forward{number + 1}"
        found.add_switch(name, position=(1.0 + 0.5 * (2 * number - planes + 1), -0.6))
        for port, balancer_port in zip((_ACCESS, _CORE), _balancer_ports(number), strict=True):
            found.add_link(name, "balancer", a_port=port, b_port=balancer_port, delay_ms=CABLE_MS, **LINK)


def _balancer_ports(number: int) -> tuple[int, int]:
    """Return the two ports of the balancer to forwarding plane ``number``: on the subscribers' side and on the core's side."""
    return 10 * number + 11, 10 * number + 12


class _Life:
    """The lifetime of a process: when it is over, the process's timers no longer call anything."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self.over = clock, False

    def now(self) -> float:
        """Return the time in seconds, as :class:`Clock` does."""
        return self._clock.now()

    def call_later(self, delay_s: float, action: Callable[[], None]) -> Callable[[], None]:
        """Call ``action`` after ``delay_s`` unless the control process has been killed by then.

        Return a function that cancels the call.
        """
        return self._clock.call_later(delay_s, lambda: None if self.over else action())


class ControlProcess:
    """A gateway's control plane, which can be killed and started again: then it has what its predecessor left on disk."""

    def __init__(self, simulation: Simulation, number: int, name: str) -> None:
        self._simulation, self._number, self._name = simulation, number, name
        # SQLite's name for a database in memory: it outlives the process here, as a file does.
        self.store = SqliteStore(Path(":memory:"))
        self._lives = 0
        self._life: _Life | None = None
        self._plane: UserPlane | None = None
        self.gateway: Gateway | None = None
        self.radius: RadiusClient | None = None

    def start(self, plane: UserPlane, clock: Clock) -> None:
        """Start a new process of the control plane, which takes over the sessions that it finds in ``plane``."""
        self._lives += 1
        self._plane, self._life = plane, _Life(clock)
        configuration = self._simulation.configuration(self._number, self._name)
        assert configuration.radius is not None
        drawn = random.Random(f"{self._simulation.seed} {self._name} {self._lives}").randbytes
        radius = self.radius = RadiusClient(
            configuration.radius,
            self._life,
            self._transmit(self._life),
            random=drawn,
            wall=clock.now,
            queue=self.store,
        )
        self.gateway = Gateway(
            configuration,
            Announced(plane, self._name, self._simulation.core),
            self._life,
            radius,
            random=drawn,
            accountant=radius,
            store=self.store,
            wall=clock.now,
        )
        self.gateway.reconcile()
        self.gateway.start()

    def kill(self) -> None:
        """Kill the process of the control plane: its timers end, and frames from the user plane are dropped."""
        assert self._life is not None and self._plane is not None
        self._life.over = True
        self._plane.receive(lambda line, frame: None)

    def _transmit(self, life: _Life) -> Callable[[int, bool, int, bytes], None]:
        def transmit(server: int, accounting: bool, channel: int, data: bytes) -> None:
            def arrive() -> None:
                answer = self._simulation.radius.answer(data)
                if answer is not None:
                    life.call_later(RADIUS_DELAY_S, lambda: self._received(life, server, accounting, channel, answer))

            life.call_later(RADIUS_DELAY_S, arrive)

        return transmit

    def _received(self, life: _Life, server: int, accounting: bool, channel: int, answer: bytes) -> None:
        if life is self._life and self.radius is not None:
            self.radius.received(server, accounting, channel, answer)


class _Split(SplitGateway):
    """A split gateway that reacts to ports after a delay of its own, and to packets sooner."""

    def __init__(self, *given: Any, reaction_delay_ms: float) -> None:
        super().__init__(*given, reaction_delay_ms=CONTROL_DELAY_MS)
        self._port_delay_ms = reaction_delay_ms

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        """React to a change of a port's state as :class:`SplitGateway` does, but after the reaction delay."""
        react = super().on_port_change
        self.plane.call_later(self._port_delay_ms, lambda: react(switch, port, up))


class Simulation:
    """All of it. Time is zero, and nothing has run yet."""

    def __init__(self, given: Scenario, mechanism: Mechanism, seed: int) -> None:
        self.given, self.mechanism, self.seed = given, mechanism, seed
        crowd = given.subscribers
        drawn = random.Random(seed)
        self.topology = topology(mechanism, crowd.subscribers)
        self.callers = [
            Caller(number, f"subscriber{number}", f"secret{number}", drawn.uniform(0.0, DIAL_S), f"home{number}")
            for number in range(crowd.subscribers)
        ]
        self.callers += [
            Caller(crowd.subscribers + number, f"newcomer{number}", f"new{number}", at_s, None)
            for number, at_s in enumerate(given.newcomers)
        ]
        self.radius = RadiusServer(
            SECRET.encode(), {each.user: Known(each.password, _address(each.number)) for each in self.callers}
        )
        names = mechanism.names
        uplinks = {mac_bytes(_gateway_mac(at)): crowd.subscribers + 1 + at for at in range(len(names))}
        self.access = AccessNode(self.callers, uplinks, seed=seed, keepalive_s=crowd.keepalive_s)
        reaction_ms = given.times.reaction_delay_ms
        ways = {name: (2 + number, _core_mac(number)) for number, name in enumerate(names)}
        self.core = Core(ways, SERVER, reaction_delay_ms=reaction_ms)
        self.processes = [ControlProcess(self, number, name) for number, name in enumerate(names)]
        self.controllers = [self._controller(number, name) for number, name in enumerate(names)]
        controllers: list[Controller] = [self.core, *self.controllers, self.access]
        self.network = SimulatedNetwork(
            self.topology,
            {name: _programs()[_kind(name)] for name in self.topology.switches},
            controllers,
            seed=seed,
            detection_delay_ms=given.times.detection_delay_ms,
            executor=given.executor,
        )
        self.flows = [self._streams(caller, drawn) for caller in self.callers if caller.host is not None]

    def configuration(self, number: int, name: str) -> Configuration:
        """Return the configuration of the control plane of gateway ``number``, which is called ``name``."""
        return Configuration.model_validate(
            {
                "name": name,
                "mac": _gateway_mac(number),
                "address": str(POOL[1]),
                "pools": {"default": str(POOL)},
                "echo_interval_s": self.given.subscribers.keepalive_s,
                "radius": {
                    "servers": [{"host": "192.0.2.1", "secret": SECRET}],
                    "nas_identifier": name,
                    "timeout_s": 1.0,
                    "tries": 3,
                    "dead_s": 2.0,
                },
            }
        )

    def _controller(self, number: int, name: str) -> SingleGateway | _Split:
        next_hop = self.topology.port_mac(core.NODE, 2 + number).hex(":")
        edges = Edges(
            access=(AccessPort(port=_ACCESS, mac=_gateway_mac(number)),),
            core=(CorePort(port=_CORE, mac=_core_mac(number)),),
            routes=(Route(prefix=IPv4Network("0.0.0.0/0"), port=_CORE, next_hop_mac=next_hop),),
        )
        start = self.processes[number].start
        if not self.mechanism.planes:
            return SingleGateway(name, edges, start, reaction_delay_ms=CONTROL_DELAY_MS)
        planes = {f"forward{at + 1}": (_ACCESS, *_balancer_ports(at)) for at in range(self.mechanism.planes)}
        cables = SplitCables("balancer", ("authentication", 1, 2), planes, {next_hop: 3})
        return _Split(cables, edges, start, reaction_delay_ms=self.given.times.reaction_delay_ms)

    def _streams(self, caller: Caller, drawn: random.Random) -> tuple[int, int]:
        """Add a caller's UDP streams up and down, at a constant rate from a random moment on; return their flow numbers."""
        rate = self.given.subscribers.packets_per_s
        assert caller.host is not None
        found = []
        for source, destination in ((caller.host, SERVER), (SERVER, caller.host)):
            stream = UdpStream(
                source=source,
                destination=destination,
                packets_per_s=rate,
                payload_bytes=PAYLOAD_BYTES,
                start_s=TRAFFIC_S + drawn.uniform(0.0, 1.0 / rate),
                stop_s=self.given.times.end_s,
                source_port=5001 + caller.number,
            )
            found.append(self.network.add(stream))
        return found[0], found[1]

    # ---- Failures ----

    def schedule(self, failure: str) -> None:
        """Schedule ``failure`` and its repair; what fails belongs to the first gateway."""
        times = self.given.times
        down: Callable[[], None]
        up: Callable[[], None]
        if failure == NO_FAILURE:
            return
        if failure == "radius":
            down, up = self._radius(alive=False), self._radius(alive=True)
        elif failure == "controller":
            down, up = self.processes[0].kill, self.controllers[0].on_start
        elif failure == "access":
            name = failing(self.mechanism, failure)
            down, up = (lambda: self.network.set_link(name, up=False)), (lambda: self.network.set_link(name, up=True))
        else:
            name = failing(self.mechanism, failure)
            down, up = (lambda: self._switch_down(name)), (lambda: self._switch_up(name))
        self.network.call_later(1000 * times.failure_s, down)
        self.network.call_later(1000 * times.repair_s, up)

    def _radius(self, *, alive: bool) -> Callable[[], None]:
        def change() -> None:
            self.radius.alive = alive

        return change

    def _switch_down(self, name: str) -> None:
        """Turn off a gateway's switch; if the gateway has a single plane, also kill its control plane, which is in the same box."""
        self.network.set_node(name, up=False)
        if not self.mechanism.planes:
            self.processes[0].kill()

    def _switch_up(self, name: str) -> None:
        """Turn a gateway's switch on again, with empty tables.

        If the gateway has a single plane, its control plane starts anew and fills the tables; a split gateway learns of the switch
        by ports that come up.
        """
        self.network.clients[name].set_pipeline(self.network.programs[name])
        self.network.set_node(name, up=True)
        if not self.mechanism.planes:
            self.network.call_later(self.given.times.reaction_delay_ms, self.controllers[0].on_start)


SWITCHES: Final = {"plane": "forward1", "balancer": "balancer", "auth": "authentication"}
"""The switch of a split gateway that fails, by the name of the failure. A gateway of one plane has a single switch."""


def failing(mechanism: Mechanism, failure: str) -> str:
    """Return the name of the switch or link that fails in the topology of ``mechanism``; empty if a process fails."""
    if failure in SWITCHES:
        return SWITCHES[failure] if mechanism.planes else mechanism.names[0]
    if failure == "access":
        return f"{access.NODE}-{'balancer' if mechanism.planes else mechanism.names[0]}"
    return ""


def told_apart(mechanism: Mechanism, failure: str) -> str:
    """Return the name under which runs with ``failure`` are kept.

    A gateway with a single plane has one switch only, so failures of different switches are one and share their runs.
    """
    return "plane" if failure in SWITCHES and not mechanism.planes else failure


def _kind(switch: str) -> str:
    return switch.rstrip("0123456789")
