"""Fixtures of this application's tests."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from holdfast._core import Program, Switch
from holdfast.apps.firewall.controller import FirewallController
from holdfast.apps.firewall.program import VARIANTS, Variant, compile_firewall
from holdfast.apps.firewall.rules import RuleSet
from holdfast.p4runtime.client import Client, LocalClient
from holdfast.p4runtime.device import Device
from holdfast.topology import Topology

SMALL = {"WAY_BITS": "8", "RULES": "64"}
CPU_PORT = 510


@pytest.fixture(scope="session")
def programs() -> dict[Variant, Program]:
    """Return the compiled program of each variant of ``firewall.p4``, with room for few flows."""
    return {variant: compile_firewall(variant, SMALL) for variant in VARIANTS}


class Standalone:
    """A switch and its controller without a network: the test is the wire and the clock."""

    def __init__(self, program: Program, rules: RuleSet, executor: str = "jit") -> None:
        self.switch = Switch(program, executor=executor)  # type: ignore[arg-type]
        self.sent: list[tuple[int, bytes]] = []
        self.device = Device(1, self.switch, executor=executor, packet_out=self._packet_out)  # type: ignore[arg-type]
        self.client = LocalClient(self.device)
        self.client.set_pipeline(program)
        self.topology = Topology("standalone")
        self.topology.add_switch("s1")
        self.now_us = 1
        self.timers: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self.controller = FirewallController(rules, reaction_delay_ms=0)
        self.client.on_digest = lambda digest: self.controller.on_digest("s1", digest)
        self.controller.attach(self)
        self.controller.on_start()

    # The control plane for the controller.

    @property
    def clients(self) -> Mapping[str, Client]:
        """The client of the one switch, by its name."""
        return {"s1": self.client}

    @property
    def now_ps(self) -> int:
        """The time of the test's clock, in picoseconds."""
        return self.now_us * 1_000_000

    def port_is_up(self, switch: str, port: int) -> bool:
        """Return True: in these tests all ports are always up."""
        return True

    def secret(self) -> bytes:
        """Return a fixed secret of 32 bytes, from which hash keys are made, instead of a random one."""
        return bytes(range(32))

    def call_later(self, delay_ms: float, handler: Callable[[], None]) -> None:
        """Store ``handler``, which :meth:`elapse` calls when ``delay_ms`` milliseconds have passed."""
        self.timers.append((self.now_us + round(delay_ms * 1000), next(self._numbers), handler))

    def _packet_out(self, packet: bytes) -> None:
        self.sent += self.switch.process(CPU_PORT, packet, self.now_ps)

    # Actions of a test.

    def elapse(self, time_us: int) -> None:
        """Advance the clock by ``time_us`` microseconds, and call the stored handlers that have become due."""
        self.now_us += time_us
        for timer in sorted(self.timers):
            if timer[0] <= self.now_us:
                self.timers.remove(timer)
                timer[2]()

    def receive(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """Send a frame into ``port``, and return (port, frame) of all frames that the switch and the controller send."""
        self.sent = []
        self.elapse(1)
        for out, packet in self.switch.process(port, frame, self.now_ps):
            if out == CPU_PORT:
                ingress = int.from_bytes(packet[:2], "big") >> 7
                self.controller.on_packet_in("s1", packet[2:], {"ingress_port": ingress})
            else:
                self.sent.append((out, packet))
        return self.sent

    def collect_log(self) -> None:
        """Advance the clock by a second, so that the switch's digests of dropped packets are due, and deliver them."""
        self.elapse(1_000_000)
        self.switch.set_now_ps(self.now_ps)
        self.device.collect_digests(self.now_us * 1000)

    def drops(self) -> dict[str, int]:
        """Return how many packets were dropped, by reason."""
        return {reason: packets for reason, (packets, _) in self.controller.drops("s1").items()}

    def reason(self, port: int, frame: bytes) -> str:
        """Send a frame and return the reason why it is dropped, or "passes"."""
        before = self.drops()
        if self.receive(port, frame):
            assert self.drops() == before
            return "passes"
        after = self.drops()
        [reason] = [name for name, packets in after.items() if packets != before.get(name, 0)]
        assert after[reason] == before.get(reason, 0) + 1
        return reason


@pytest.fixture
def standalone() -> type[Standalone]:
    """Return the class :class:`Standalone`, a switch with a controller and without a network."""
    return Standalone


@pytest.fixture(params=["jit", "interpreter"])
def executor(request: pytest.FixtureRequest) -> Any:
    """Return an executor of the program, ``jit`` or ``interpreter``; each test runs once with both."""
    return request.param
