"""Every node is PTI, PTE and router at once: all pairs of hosts of a ring with a chord, protected, under failures."""

from __future__ import annotations

from itertools import permutations

import pytest

from holdfast import SimulatedNetwork, UdpStream
from holdfast._core import Program
from holdfast.apps.protect import Acceptance, ProtectController
from holdfast.apps.protect.test_controller import MTU, NOTHING, entries
from holdfast.apps.protect.test_takeover import dump, successor
from holdfast.topology import Topology


def ring(nodes: int = 5) -> Topology:
    t = Topology("ring")
    for i in range(nodes):
        t.add_host(f"h{i}")
        t.add_switch(f"s{i}")
        t.add_link(f"h{i}", f"s{i}")
    for i in range(nodes):
        t.add_link(f"s{i}", f"s{(i + 1) % nodes}", delay_ms=0.5)
    t.add_link("s0", "s2", delay_ms=0.5, cost=2)
    return t


@pytest.mark.parametrize("failing", ["s0-s1", "s2-s3", "s0-s2"])
def test_any_link_fails(program: Program, failing: str) -> None:
    t = ring()
    pairs = [("h0", "h1"), ("h0", "h2"), ("h0", "h3"), ("h1", "h2"), ("h1", "h3"), ("h2", "h4"), ("h3", "h4")]
    controller = ProtectController(protect=pairs, reaction_delay_ms=1, mtu=MTU, acceptance=Acceptance("vector"))
    network = SimulatedNetwork(t, program, [controller])
    both = [*pairs, *((b, a) for a, b in pairs), ("h1", "h4"), ("h4", "h1")]
    flows = {
        (a, b): network.add(UdpStream(source=a, destination=b, packets_per_s=1000, payload_bytes=100, stop_s=0.5))
        for a, b in both
    }
    network.set_link(failing, up=False, at_s=0.2)
    network.set_link(failing, up=True, at_s=0.3)
    network.run(1)
    for (a, b), flow in flows.items():
        statistics = network.statistics(flow)
        if (a, b) in both[: 2 * len(pairs)]:
            assert (statistics.lost, statistics.duplicated) == (0, 0), f"{a} to {b}"
    # Each node sent, received and passed on what is others'.
    table = controller.statistics_table()
    assert (table["protected_packets"] == table["accepted_packets"]).all()
    assert table["protected_packets"].sum() == 500 * 2 * len(pairs)
    for i in range(5):
        assert any(c.ingress == f"s{i}" for c in controller.connections)
        assert any(c.egress == f"s{i}" for c in controller.connections)
        assert any(f"s{i}" in path.interior for c in controller.connections for path in c.paths)
    # The same numbers mean different connections at different nodes.
    assert len({(c.egress, c.cid) for c in controller.connections}) == len(controller.connections)
    assert len({c.cid for c in controller.connections}) < len(controller.connections) / 2


def test_full_mesh_set_up_taken_over_and_removed(program: Program) -> None:
    t = ring()
    pairs = [(f"h{i}", f"h{k}") for i, k in permutations(range(5), 2) if i < k]
    controller = ProtectController(protect=pairs, reaction_delay_ms=1, mtu=MTU)
    network = SimulatedNetwork(t, program, [controller])
    assert len(controller.connections) == 20
    before = dump(controller)
    heir = successor(network)
    assert dump(heir) == before
    with heir.together():
        for connection in heir.connections:
            heir.remove_connection(connection)
    network.run(0.5)
    assert entries(heir) == NOTHING
