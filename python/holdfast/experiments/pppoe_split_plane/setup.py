"""The simulated parts' networks: a subscriber's home, a gateway of one plane or of several, and a server.

The paper's switches are bmv2 in a virtual machine. Of a gateway, one thing takes time: the plane that forwards handles a packet in
:data:`SERVICE_MS`, one after the other. It is modelled as the link into it, which is as slow as that. All packets have the same
size, so all take the same time. The balancer takes none, because the paper gives no time for one.
"""

from __future__ import annotations

from functools import cache
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from holdfast import apps
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
from holdfast.controller import Controller
from holdfast.experiments.pppoe_split_plane import published
from holdfast.network import SimulatedNetwork
from holdfast.subscribers.plane import Clock, Line, Session, UserPlane
from holdfast.topology import Topology

HOMES = Path(apps.__path__[0]) / "bng" / "access.p4"
GATEWAY_MAC = "02:00:00:00:00:01"
SERVER_ADDRESS = "198.51.100.9/24"
HOME_ADDRESS = IPv4Address("10.0.0.1")
LINE = Line(1, 100, 10)

PAYLOAD_BYTES = 1000
WIRE_BYTES = 14 + 8 + 8 + 28 + PAYLOAD_BYTES + 24
"""The bytes of a packet on a subscriber's line: Ethernet, two tags, PPPoE and PPP, IP and UDP, and what the wire adds."""

PACKETS_PER_S = 0.4
"""The rate of the subscriber's Poisson process. The paper gives no load; this is a tenth of what the planes take."""

BURST_PACKETS_PER_S = 1e6
QUEUE_PACKETS = 64
"""The length of bmv2's queue (simple_switch), in packets."""

FAST: dict[str, Any] = {"rate_bps": 10_000_000_000}


def mean_fitted_ms(plane: str) -> float:
    """Return the mean latency in ms of the rows of Table 1 to which the service time is fitted, for one kind of gateway."""
    column = 1 + published.PLANES.index(plane)
    return sum(float(row[column]) for row in published.SPEEDS if row[0] in published.FITTED) / len(published.FITTED)


def service_ms(plane: str, load: str) -> float:
    """Return the service time of a packet in ms with which the mean latency is that of :func:`mean_fitted_ms`.

    ``one by one``: at a Poisson load of ``r`` packets/s the latency is s + r s²/(2 (1 - r s)), the formula of Pollaczek and
    Khinchine for a fixed service time s. ``burst``: all packets of a row come at once, and those that find room in the queue wait
    for those before them.
    """
    wanted_s = mean_fitted_ms(plane) / 1000
    if load == "burst":
        # The first packet is in service while others wait.
        waiting = [min(count, QUEUE_PACKETS + 1) for count in published.FITTED]
        return 1000 * wanted_s / (sum((count + 1) / 2 for count in waiting) / len(waiting))
    low, high = 0.0, wanted_s
    for _ in range(60):
        middle = (low + high) / 2
        busy = PACKETS_PER_S * middle
        if middle + busy * middle / (2 * (1 - busy)) < wanted_s:
            low = middle
        else:
            high = middle
    return 1000 * low


SERVICE_MS = {load: {plane: service_ms(plane, load) for plane in published.PLANES} for load in ("one by one", "burst")}
"""The service time of a packet in ms, fitted, by load and kind of gateway."""


@cache
def programs() -> dict[str, Program]:
    """Compile the programs of all switches, once per process, and return them by name."""
    return {
        "homes": Program.compile(str(HOMES)),
        "balancer": compile_balancer(),
        **{variant: compile_bng(variant) for variant in ("single", "auth", "forward")},
    }


def slow(service_ms: float) -> dict[str, Any]:
    """Return options of a link that takes ``service_ms`` milliseconds per packet, as a plane of the gateway does."""
    return {"rate_bps": round(WIRE_BYTES * 8 / (service_ms / 1000)), "queue_packets": QUEUE_PACKETS}


def session() -> Session:
    """Return the session of the one subscriber, with the address of the host ``home``."""
    return Session(1, LINE, b"\x02\x09\0\0\0\x01", magic=7, ipv4=HOME_ADDRESS)


def _start(plane: UserPlane, clock: Clock) -> None:
    plane.receive(lambda line, frame: None)
    plane.install([session()])


def network(plane: str, service_ms: float, seed: int) -> SimulatedNetwork:
    """Build a simulated network with one gateway (``plane``: single or split) between ``home`` and ``server``."""
    topology = Topology(plane)
    topology.add_host("home", f"{HOME_ADDRESS}/24")
    topology.add_host("server", SERVER_ADDRESS)
    topology.add_switch("homes")
    topology.add_link("home", "homes", b_port=1, **FAST)
    loaded = {"homes": programs()["homes"]}
    controller: Controller
    if plane == "single":
        topology.add_switch("gateway")
        topology.add_link("homes", "gateway", a_port=20, b_port=1, **slow(service_ms))
        topology.add_link("server", "gateway", b_port=2, **FAST)
        loaded["gateway"] = programs()["single"]
        core_switch, core_port = "gateway", 2
    else:
        for name, program in (("balancer", "balancer"), ("authentication", "auth"), ("forwarding", "forward")):
            topology.add_switch(name)
            loaded[name] = programs()[program]
        topology.add_link("homes", "balancer", a_port=20, b_port=1, **FAST)
        topology.add_link("server", "balancer", b_port=3, **FAST)
        topology.add_link("authentication", "balancer", a_port=1, b_port=2, **FAST)
        topology.add_link("balancer", "forwarding", a_port=11, b_port=1, **slow(service_ms))
        topology.add_link("forwarding", "balancer", a_port=2, b_port=12, **FAST)
        core_switch, core_port = "balancer", 3
    server_mac = topology.hosts["server"].mac.hex(":")
    edges = Edges(
        access=(AccessPort(port=1, mac=GATEWAY_MAC),),
        core=(CorePort(port=2, mac=topology.port_mac(core_switch, core_port).hex(":")),),
        routes=(Route(prefix=IPv4Network("0.0.0.0/0"), port=2, next_hop_mac=server_mac),),
    )
    if plane == "single":
        controller = SingleGateway("gateway", edges, _start, reaction_delay_ms=1)
    else:
        cables = SplitCables("balancer", ("authentication", 1, 2), {"forwarding": (1, 11, 12)}, {server_mac: 3})
        controller = SplitGateway(cables, edges, _start, reaction_delay_ms=1)
    found = SimulatedNetwork(topology, loaded, [controller], seed=seed)
    one = session()
    found.clients["homes"].insert(
        "homes",
        {"port": 1},
        "dial",
        {"uplink": 20, "session_id": one.session_id, "s_vid": LINE.s_tag, "c_vid": LINE.c_tag, "mac": one.mac,
         "gateway": GATEWAY_MAC},
    )  # fmt: skip
    return found
