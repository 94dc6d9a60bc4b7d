"""Random failures of links, one at a time, under all that the controller does: nothing is lost, nothing reported."""

from __future__ import annotations

import random

import pytest

from holdfast import SimulatedNetwork, UdpStream
from holdfast._core import Program
from holdfast.apps.protect import Acceptance, LatentErrorDetection, ProtectController
from holdfast.apps.protect.test_controller import MTU, NOTHING, entries
from holdfast.apps.protect.test_takeover import successor
from holdfast.topologies import load

END_S = 4.0


@pytest.mark.parametrize("seed", range(4))
def test_one_failure_at_a_time(program: Program, seed: int) -> None:
    rng = random.Random(seed)
    t = load("grid:4x4")
    hosts = list(t.hosts)
    pairs = sorted({tuple(rng.sample(hosts, 2)) for _ in range(5)})
    parameters: dict[str, object] = {
        "repair": True,
        "wait_to_restore_ms": 150,
        "acceptance": Acceptance("vector"),
        "latent_errors": LatentErrorDetection(period_ms=300, reset_period_ms=1500),
    }
    controller = ProtectController(protect=pairs, reaction_delay_ms=10, mtu=MTU, **parameters)  # type: ignore[arg-type]
    network = SimulatedNetwork(t, program, [controller], detection_delay_ms=10, seed=seed)
    flows = [
        network.add(UdpStream(source=a, destination=b, packets_per_s=1000, payload_bytes=100, stop_s=END_S - 0.5))
        for a, b in pairs
    ]
    links = [link.name for link in t.links if link.a in t.switches and link.b in t.switches]
    at_s = 0.2
    while at_s < END_S - 1:
        link, down_s = rng.choice(links), rng.uniform(0.02, 0.4)
        network.set_link(link, up=False, at_s=at_s)
        network.set_link(link, up=True, at_s=at_s + down_s)
        at_s += down_s + rng.uniform(0.06, 0.3)
    network.run(END_S / 2)
    heir = successor(network, **parameters)
    assert heir.taken_over is not None
    assert heir.taken_over.connections == len({(c.ingress, c.egress) for c in controller.connections})
    network.run(END_S)
    for flow in flows:
        statistics = network.statistics(flow)
        assert (statistics.lost, statistics.duplicated) == (0, 0)
    assert controller.repairs or heir.repairs
    assert controller.alarms == heir.alarms == []
    for connection in heir.connections:
        heir.remove_connection(connection)
    network.run(END_S + 0.5)
    assert entries(heir) == NOTHING
