"""A flood of LLDP frames at one port takes nothing from others: a switch hands over so many of each port in a second."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal

import pytest

from holdfast import SimulatedNetwork
from holdfast._core import Program, Switch
from holdfast.apps.protect import ProtectController, compile_protect
from holdfast.apps.router import RouterController, compile_router
from holdfast.control.tables import has_meter
from holdfast.controller import Controller
from holdfast.discovery import RATE, RATE_EXCEEDED, LinkDiscovery
from holdfast.lldp import NEAREST_BRIDGE
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device
from holdfast.topologies import load

APPS = Path(__file__).resolve().parents[2] / "python/holdfast/apps"

FRAME = NEAREST_BRIDGE + bytes(6) + b"\x88\xcc" + bytes(1400)

OWN_RATE = {"firewall/firewall.p4": "FirewallIngress.controller_rate"}
"""Programs with a rate of their own for all that they hand to their controllers, whose tests are beside them."""


def punting() -> list[str]:
    """Return the programs of applications, without their parts, that know LLDP."""
    texts = {path: path.read_text() for path in APPS.glob("*/*.p4")}
    return sorted(
        str(path.relative_to(APPS)) for path, text in texts.items() if "ETHERTYPE_LLDP" in text and "V1Switch(" in text
    )


@pytest.mark.parametrize("executor", ["interpreter", "jit"])
@pytest.mark.parametrize("path", sorted(set(punting()) - OWN_RATE.keys()))
def test_each_program_hands_over_so_many_of_a_port(path: str, executor: Literal["jit", "interpreter"]) -> None:
    program = Program.compile(str(APPS / path), defines={})
    switch = Switch(program, executor=executor)
    client = LocalClient(Device(1, switch))
    client.set_pipeline(program)
    client.configure_meter(RATE, None, (20, 20, 20, 20))

    def handed(port: int, frames: int, now_ps: int) -> int:
        sent = (switch.process(port, FRAME, now_ps) for _ in range(frames))
        return sum(1 for packets in sent for out, _ in packets if out == switch.cpu_port)

    assert handed(1, 5000, 10**12) == 20
    # The neighbour of the flooded port is heard, and the flooded port again when a second has passed.
    assert handed(2, 1, 10**12) == 1
    assert handed(1, 5000, 2 * 10**12) == 20
    assert client.counter(RATE_EXCEEDED, 1)[0] == 2 * (5000 - 20)


@pytest.mark.parametrize("path", OWN_RATE)
def test_other_programs_have_a_rate_of_their_own(path: str) -> None:
    program = Program.compile(str(APPS / path), defines={})
    client = LocalClient(Device(1, Switch(program)))
    client.set_pipeline(program)
    assert path in punting()
    assert has_meter(client, OWN_RATE[path])


PROGRAMS: dict[str, tuple[type[Controller], Program]] = {
    "router": (RouterController, compile_router()),
    "protect": (ProtectController, compile_protect()),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_flooding_host_leaves_the_map_and_the_controller_alone(name: str) -> None:
    controller_class, program = PROGRAMS[name]
    heard: Counter[int] = Counter()

    class Counting(controller_class):  # type: ignore[misc,valid-type]
        def on_packet_in(self, switch: str, packet: bytes, metadata: dict[str, int]) -> None:
            if switch == place.switch:
                heard[metadata["ingress_port"]] += 1
            super().on_packet_in(switch, packet, metadata)

    topology = load("ring:4")
    place = topology.attachment("h1")
    others = {"reroute": True} if name == "router" else {}
    controller = Counting(discovery=LinkDiscovery(), reaction_delay_ms=1, **others)
    network = SimulatedNetwork(topology, program, [controller])
    for tick in range(1, 31):
        for _ in range(100):
            network.send_frame("h1", FRAME)
        network.run(tick / 10)
    assert heard[place.port] <= 20 * (1 + 3)
    present = len(controller.discovery.topology.present().links)
    assert present == len(topology.links)
    assert network.clients[place.switch].counter(RATE_EXCEEDED, place.port)[0] > 2_800


def test_without_discovery_hardly_any_frame_is_handed_over() -> None:
    network = SimulatedNetwork(load("ring:4"), compile_router(), [RouterController(reroute=True, reaction_delay_ms=1)])
    for _ in range(100):
        network.send_frame("h1", FRAME)
    network.run(1)
    place = network.topology.attachment("h1")
    assert network.clients[place.switch].counter(RATE_EXCEEDED, place.port)[0] == 99
