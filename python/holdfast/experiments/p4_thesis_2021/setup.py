"""Common setup of the simulated parts: the thesis's bmv2 switches, and its networks.

A bmv2 switch is a program on a processor that others use too. It is modelled as :class:`holdfast.link.Processor`: one packet at a
time, from all ports, at a rate; :data:`BMV2_QUEUE_PACKETS` wait. The rates are fitted, each to one statement of the thesis, and
everything else is judged with them. All switches of the thesis ran on one laptop, so in the tests of INT each of n switches on
the way has 1/n of one rate. Other work of the laptop is not modelled.
"""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path
from typing import Any

from holdfast._core import Program
from holdfast.apps.router import compile_router
from holdfast.apps.shorternet import compile_shorternet
from holdfast.apps.shorternet.planning import INGRESS, SHORT_PORTS
from holdfast.control.desired import Writer
from holdfast.control.entities import ValueSet
from holdfast.control.tables import TableEntry
from holdfast.controller import Controller
from holdfast.errors import ExperimentError
from holdfast.experiments.p4_thesis_2021 import published
from holdfast.link import Processor
from holdfast.topology import Topology

BMV2_QUEUE_PACKETS = 64
"""Of bmv2's queues between ingress and egress, unless it is told otherwise (simple_switch, version 1.14)."""

LINK_QUEUE_PACKETS = 1000
"""Of an interface of Linux, unless it is told otherwise; Mininet's links of a bandwidth have it."""

SERVICE_PACKETS_PER_S = {"standard": 1530.0, "shorternet": 3320.0}
"""The service rate of each of three switches, fitted to mean latencies of 4 and 1 ms (Figure 4.3), with exponential times."""

MACHINE_PACKETS_PER_S = 4320.0
"""Of all switches of the tests of INT together, fitted to the bandwidth from which on five switches lose (Figure 4.6)."""

PATH = ("s1", "s3", "s2")
"""The switches on the path from h1 to h4 (section 3.2.1)."""

SENDER, RECEIVER = "h1", "h4"
SENDER_SCRIPT, RECEIVER_SCRIPT = "a1", "a4"
"""The gateways between the simulated hosts, which speak IP, and the short headers that the thesis's scripts wrote and read."""

STATIONS = {SENDER: 1, RECEIVER: 4}
"""The addresses of stations in the short header."""

FAST: dict[str, Any] = {"rate_bps": 10_000_000_000, "queue_packets": LINK_QUEUE_PACKETS}
"""Links that have nothing to do with the results."""


def bmv2(packets_per_s: float) -> Processor:
    """Return the processor of one of the thesis's bmv2 switches, with a mean rate of ``packets_per_s``."""
    return Processor(packets_per_s=packets_per_s, service="exponential", queue_packets=BMV2_QUEUE_PACKETS)


def header_path(stack: str, packets_per_s: float) -> Topology:
    """Build the part of the network of Figure 3.2 that the test's packets cross, for one stack of headers.

    Raise :class:`ExperimentError` for an unknown stack.
    """
    if stack not in published.HEADER_BYTES:
        raise ExperimentError(f"there are no headers {stack!r} (known: {', '.join(published.HEADER_BYTES)})")
    topology = Topology("figure-3-2")
    topology.add_host(SENDER)
    topology.add_host(RECEIVER)
    for name in PATH:
        topology.add_switch(name, processor=bmv2(packets_per_s))
    ends = [(SENDER, PATH[0]), (PATH[-1], RECEIVER)]
    if stack == "shorternet":
        for script in (SENDER_SCRIPT, RECEIVER_SCRIPT):
            topology.add_switch(script)
        ends = [
            (SENDER, SENDER_SCRIPT),
            (SENDER_SCRIPT, PATH[0]),
            (PATH[-1], RECEIVER_SCRIPT),
            (RECEIVER_SCRIPT, RECEIVER),
        ]
    for a, b in (*ends, *itertools.pairwise(PATH)):
        topology.add_link(a, b, **FAST)
    return topology


@cache
def router() -> Program:
    """Compile the router program, once per process."""
    return compile_router()


@cache
def shorternet() -> Program:
    """Compile the Shorternet program, once per process."""
    return compile_shorternet()


def script(topology: Topology, name: str, host: str, other: str) -> Program:
    """Compile the program that stands for the script next to ``host``; it sends to the station of host ``other``."""
    port = {
        peer: own
        for link in topology.links
        for node, own, peer in ((link.a, link.a_port, link.b), (link.b, link.b_port, link.a))
        if node == name
    }
    neighbour = next(peer for peer in port if peer != host)
    own = topology.hosts[host]
    values = {
        "HOST_PORT": port[host],
        "NETWORK_PORT": port[neighbour],
        "HOST_MAC": int.from_bytes(own.mac, "big"),
        "GATEWAY_MAC": int.from_bytes(topology.port_mac(name, port[host]), "big"),
        "HOST_ADDRESS": int(own.address.ip),
        "OTHER_ADDRESS": int(topology.hosts[other].address.ip),
        "OWN_STATION": STATIONS[host],
        "OTHER_STATION": STATIONS[other],
    }
    return Program.compile(
        str(Path(__file__).with_name("script.p4")), defines={name: str(value) for name, value in values.items()}
    )


class Stations(Controller):
    """Writes the thesis's entries: one per station, with the output port, in each switch of the path."""

    def __init__(self) -> None:
        super().__init__(reaction_delay_ms=0.0)

    def on_start(self) -> None:
        """Write the forwarding entries of the stations; a packet needs one table lookup and one action, as in the thesis."""
        way = [SENDER_SCRIPT, *PATH, RECEIVER_SCRIPT]
        ports = {(link.a, link.b): link.a_port for link in self.topology.links} | {
            (link.b, link.a): link.b_port for link in self.topology.links
        }
        for before, name, behind in zip(way, way[1:], way[2:], strict=False):
            Writer(self.clients[name]).write(
                [
                    ValueSet(SHORT_PORTS, frozenset((ports[name, before], ports[name, behind]))),
                    *(
                        TableEntry(
                            f"{INGRESS}.stations",
                            {"station": station},
                            f"{INGRESS}.forward",
                            {"port": ports[name, neighbour]},
                        )
                        for station, neighbour in ((STATIONS[SENDER], before), (STATIONS[RECEIVER], behind))
                    ),
                ]
            )


def line(switches: int, packets_per_s: float, *, flows: int = 1, collector: bool = False) -> Topology:
    """Build the network of Figure 3.7 with ``switches`` switches, which share ``packets_per_s``; links have the thesis's bandwidth.

    Flow i is from host a<i> at the first switch to host b<i> at the last. ``collector``: add a host for reports at the first
    switch, where the thesis has it too.
    """
    topology = Topology(f"line-{switches}")
    names = [f"s{number}" for number in range(1, switches + 1)]
    for name in names:
        topology.add_switch(name, processor=bmv2(packets_per_s / switches))
    capped = {"rate_bps": published.RATE_BPS, "queue_packets": LINK_QUEUE_PACKETS}
    for flow in range(1, flows + 1):
        for host, switch in ((f"a{flow}", names[0]), (f"b{flow}", names[-1])):
            topology.add_host(host)
            topology.add_link(host, switch, **capped)
    if collector:
        topology.add_host("collector")
        topology.add_link("collector", names[0], **FAST)
    for a, b in itertools.pairwise(names):
        topology.add_link(a, b, **capped)
    return topology
