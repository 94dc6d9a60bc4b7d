"""IP fast reroute in simulated networks, packet by packet: what is lost, and when it ends, with and without a controller."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from holdfast import SimulatedNetwork, Topology, UdpStream
from holdfast._core import Program
from holdfast.apps.router import IpFrrController, RouterController, compile_ipfrr
from holdfast.topology import PS_PER_MS

DETECTION_MS = 10.0
PACKETS_PER_MS = 4
FAILURE_S, REPAIR_S, STOP_S = 0.2, 0.5, 0.8
LINK: dict[str, Any] = {"rate_bps": 10_000_000_000, "delay_ms": 1}


@pytest.fixture(scope="module")
def program() -> Program:
    return compile_ipfrr()


def network_of(*links: tuple[str, str, int], hosts: tuple[str, ...] = ("s1", "s4")) -> Topology:
    """Switches in the order in which the links name them, hosts h1, h2... at some."""
    topology = Topology("test")
    for i in range(len(hosts)):
        topology.add_host(f"h{i + 1}")
    for name in sorted({name for link in links for name in link[:2]}):
        topology.add_switch(name)
    for i, switch in enumerate(hosts):
        topology.add_link(f"h{i + 1}", switch, **LINK)
    for a, b, cost in links:
        topology.add_link(a, b, cost=cost, **LINK)
    return topology


def square() -> Topology:
    """s1 to s4 over s2, or dearer over s3, which is node-protecting."""
    return network_of(("s1", "s2", 1), ("s2", "s4", 1), ("s1", "s3", 2), ("s3", "s4", 2))


def ring(size: int, far: str) -> Topology:
    return network_of(
        *((f"s{i + 1}", f"s{(i + 1) % size + 1}", 1) for i in range(size)),
        hosts=("s1", far),
    )


class Run:
    """A stream from h1 to h2 through a network in which something fails and is repaired."""

    def __init__(
        self,
        program: Program,
        topology: Topology,
        *,
        controller: RouterController | None = None,
        executor: str = "jit",
        payload_bytes: int = 100,
    ) -> None:
        self.controller = controller or IpFrrController(reroute=False, reaction_delay_ms=0)
        self.network = SimulatedNetwork(
            topology,
            program,
            [self.controller],
            detection_delay_ms=DETECTION_MS,
            executor=executor,  # type: ignore[arg-type]
        )
        self.flow = self.network.add(
            UdpStream(
                source="h1",
                destination="h2",
                packets_per_s=PACKETS_PER_MS * 1000,
                payload_bytes=payload_bytes,
                stop_s=STOP_S,
            )
        )

    def fail(self, name: str, *, repair: bool = True) -> Run:
        set_state = self.network.set_link if "-" in name else self.network.set_node
        set_state(name, up=False, at_s=FAILURE_S)
        if repair:
            set_state(name, up=True, at_s=REPAIR_S)
        self.network.run(STOP_S + 1)
        return self

    @property
    def lost(self) -> int:
        statistics = self.network.core.statistics(self.flow)
        return int(statistics["sent"] or 0) - int(statistics["delivered"] or 0)

    def delays_ms(self, begin_s: float, end_s: float) -> set[int]:
        """Of packets sent in a period, in whole milliseconds."""
        columns = self.network.core.received(self.flow)
        sent, received = (array("q", columns[name]) for name in ("sent_ps", "received_ps"))
        return {
            (there - here) // PS_PER_MS
            for here, there in zip(sent, received, strict=True)
            if begin_s * 1000 <= here / PS_PER_MS < end_s * 1000
        }

    def counted(self, switch: str, counter: str) -> int:
        return self.network.clients[switch].counter(f"IpfrrIngress.{counter}", 0)[0]


def near(count: int, expected_ms: float) -> bool:
    """The packets of a period, give or take one."""
    return abs(count - expected_ms * PACKETS_PER_MS) <= 1


def test_lfa_loses_what_detection_takes(program: Program) -> None:
    """And what is on the link when it fails: 1 ms of it. Nobody but s1 does anything, and no controller."""
    run = Run(program, square()).fail("s1-s2")
    assert near(run.lost, DETECTION_MS + 1)
    assert near(run.counted("s1", "lfa_repairs"), (REPAIR_S - FAILURE_S) * 1000)
    assert run.counted("s1", "remote_lfa_repairs") == run.counted("s1", "no_alternate") == 0
