"""Pairs on the discovered map: they wait for it, follow it, and survive failures that no port tells of and a new controller."""

from __future__ import annotations

import random
from typing import Any

import pytest

from holdfast import SimulatedNetwork, UdpStream
from holdfast._core import Program
from holdfast.apps.protect import Flow, ProtectController
from holdfast.apps.protect.program import COPY_TABLE
from holdfast.apps.protect.test_controller import MTU, NOTHING, entries, ladder
from holdfast.apps.protect.test_takeover import dump, kill_at_write, successor
from holdfast.discovery import LinkDiscovery
from holdfast.paths import NoDisjointPathsError, disjoint_paths
from holdfast.scheduler import Scheduler
from holdfast.topologies import load
from holdfast.topology import Topology

DISCOVERY = LinkDiscovery(interval_ms=20, hold_ms=70, settle_ms=10)


class Elsewhere(ProtectController):
    """Is given a map that is not the network's."""

    declared: Topology

    def attach(self, plane: Any) -> None:
        declared = self.declared

        class Plane:
            topology = declared

            def __getattr__(self, name: str) -> Any:
                return getattr(plane, name)

        super().attach(Plane())  # type: ignore[arg-type]


def build(program: Program, t: Topology, **parameters: Any) -> tuple[SimulatedNetwork, ProtectController]:
    controller = ProtectController(
        reaction_delay_ms=1, mtu=MTU, **{"protect": [("h1", "h2")], "discovery": DISCOVERY} | parameters
    )  # type: ignore[arg-type]
    return SimulatedNetwork(t, program, [controller], detection_delay_ms=2), controller


def stream(network: SimulatedNetwork, start_s: float, stop_s: float) -> int:
    return network.add(
        UdpStream(
            source="h1", destination="h2", packets_per_s=1000, payload_bytes=100, start_s=start_s, stop_s=stop_s
        )
    )  # fmt: skip


def silent(t: Topology) -> Topology:
    """Change the topology so that no port ever reports a failure of its link, and return it."""
    t.links[:] = [link.model_copy(update={"detection_delay_ms": 1e8}) for link in t.links]
    return t


def routes_of(controller: ProtectController) -> dict[str, list[str]]:
    """Return the paths of each connection by its name; the first from a to z is a-z#0."""
    return {str(connection): [str(path) for path in connection.paths] for connection in controller.connections}


def test_pairs_wait_for_the_map(program: Program) -> None:
    network, controller = build(program, ladder())
    assert controller.waiting == dict.fromkeys([("h1", "h2"), ("h2", "h1")], "links are being discovered")
    with pytest.raises(NoDisjointPathsError, match=r"no path from a to z \(links are still being discovered\)"):
        controller.add_connection("a", "z")
    assert entries(controller) == NOTHING
    network.run(0.1)
    assert controller.waiting == {}
    assert routes_of(controller) == {"a-z#0": ["a-m1-z", "a-m2-z"], "z-a#0": ["z-m1-a", "z-m2-a"]}, "the cheapest ones"
    flow = stream(network, 0.1, 0.5)
    network.run(0.6)
    statistics = network.statistics(flow)
    assert (statistics.sent, statistics.lost, statistics.duplicated) == (400, 0, 0)
    assert controller.statistics(controller.connections[0]).protected_packets == 400


def test_a_pair_without_paths_waits_and_says_why(program: Program) -> None:
    """A single path at first; with the second one the connection is there."""
    t = ladder(2)
    controller = ProtectController(protect=[("h1", "h2")], reaction_delay_ms=1, mtu=MTU, discovery=DISCOVERY)
    network = SimulatedNetwork(t, program)
    network.set_link("a-m2", up=False)
    network.run(0.01)
    network.controllers = [controller]
    controller.attach(network)
    controller.on_start()
    network.run(0.2)
    why = "there are no two node-disjoint paths from a to z: every path uses link a-m1"
    assert controller.waiting[("h1", "h2")] == why
    assert controller.connections == []
    plain = stream(network, 0.2, 0.3)
    network.run(0.4)
    assert network.statistics(plain).lost == 0, "packets are routed meanwhile"
    network.set_link("a-m2", up=True)
    network.run(0.5)
    assert controller.waiting == {}
    assert len(controller.connections) == 2


@pytest.mark.parametrize("is_silent", [True, False])
def test_failures_one_after_the_other(program: Program, is_silent: bool) -> None:
    """Failures that ports tell are repaired at once, others after the hold time; nothing is lost either way."""
    t = silent(ladder()) if is_silent else ladder()
    network, controller = build(program, t, repair=True, wait_to_restore_ms=50)
    flow = stream(network, 0.1, 1.5)
    network.set_link("a-m1", up=False, at_s=0.3)
    network.set_link("m2-z", up=False, at_s=0.5)
    network.set_link("a-m1", up=True, at_s=0.45)
    network.set_link("m2-z", up=True, at_s=1.0)
    network.run(1.6)
    statistics = network.statistics(flow)
    assert (statistics.lost, statistics.duplicated) == (0, 0)
    there = [r for r in controller.repairs if r.path_set.startswith("a-z")]
    assert [(str(r.before), str(r.after), r.reason) for r in there[:1]] == [("a-m1-z", "a-m3-z", "failed")]
    late_ms = there[0].time_ps / 1e9 - 300
    assert (45 < late_ms <= 75) if is_silent else late_ms == pytest.approx(3)
    assert routes_of(controller)["a-z#0"] == ["a-m1-z", "a-m2-z"], "in the end it is as it was"


def test_one_direction_fails_silently(program: Program) -> None:
    """The way there is dead and the way back is not: the link is none, and both ways are repaired."""
    network, controller = build(program, silent(ladder()), repair=True)
    flow = stream(network, 0.1, 1.0)
    network.set_link("a-m1", up=False, at_s=0.3, one_way=True)
    network.set_link("a-m2", up=False, at_s=0.5)
    network.run(1.1)
    assert network.statistics(flow).lost == 0
    assert controller.discovery.one_way == [(("m1", 1), ("a", 2))]


def test_a_path_that_nobody_knew(program: Program) -> None:
    """Both declared paths fail, and what saves the connection is a link that was not on the map."""
    t, declared = ladder(), ladder()
    t.add_link("a", "z", cost=100, delay_ms=1)
    controller = Elsewhere(
        protect=[("h1", "h2")],
        reaction_delay_ms=1,
        mtu=MTU,
        repair=True,
        discovery=LinkDiscovery(interval_ms=20, settle_ms=10, ports=6),
    )
    controller.declared = declared
    network = SimulatedNetwork(t, program, [controller], detection_delay_ms=2)
    flow = stream(network, 0.1, 1.0)
    for at_s, name in ((0.3, "a-m1"), (0.5, "a-m2")):
        network.set_link(name, up=False, at_s=at_s)
    network.run(1.1)
    assert network.statistics(flow).lost == 0
    assert sorted(routes_of(controller)["a-z#0"]) == ["a-m3-z", "a-z"]


def test_crossed_cables(program: Program) -> None:
    """The map says a:2-m1:1 and a:3-m2:1, the cables are the other way round: by the map every copy would be lost."""
    t, declared = Topology("wired"), ladder(2)
    for host in ("h1", "h2"):
        t.add_host(host)
    for name in declared.switches:
        t.add_switch(name)
    for link in declared.links:
        port = {2: 3, 3: 2}.get(link.a_port, link.a_port) if link.a == "a" else link.a_port
        t.add_link(link.a, link.b, a_port=port, b_port=link.b_port, delay_ms=link.delay_ms)
    lost = {}
    for discovery in (None, DISCOVERY):
        controller = Elsewhere(protect=[("h1", "h2")], reaction_delay_ms=1, mtu=MTU, discovery=discovery)
        controller.declared = declared
        network = SimulatedNetwork(t, program, [controller])
        flow = stream(network, 0.2, 0.3)
        network.run(0.4)
        lost[discovery] = network.statistics(flow).lost
    assert lost == {None: 100, DISCOVERY: 0}


# ---- Taking over ----


def test_the_next_controller_touches_nothing(program: Program) -> None:
    """Before it has heard a frame it has taken over what is there, by links that the entries name; then it hears the same."""
    network, controller = build(program, ladder(4))
    network.run(0.1)
    other = controller.add_connection("a", "z", count=3, mtu=1400, cid=900)
    controller.add_flow(other, Flow(protocol=6), priority=7)
    flow = stream(network, 0.1, 1.0)
    network.run(0.5)
    before = dump(controller)
    with pytest.MonkeyPatch.context() as patch:
        kill_at_write(patch, 0)
        heir = successor(network, protect=[("h1", "h2")], discovery=DISCOVERY, repair=True)
        assert heir.taken_over is not None
        assert (heir.taken_over.connections, heir.taken_over.restored, heir.taken_over.removed) == (3, 0, 0)
        network.run(1.2)
    assert dump(heir) == before
    assert routes_of(heir) == routes_of(controller)
    assert heir.waiting == {}
    assert network.statistics(flow).lost == 0
    for connection in heir.connections:
        heir.remove_connection(connection)
    network.run(1.5)
    assert entries(heir) == NOTHING


def test_it_follows_what_happened_in_between(program: Program) -> None:
    """A link failed while there was no controller, and no port told: the hold time after its start the next one repairs."""
    network, controller = build(program, silent(ladder()), repair=True)
    network.run(0.2)
    assert routes_of(controller)["a-z#0"] == ["a-m1-z", "a-m2-z"]
    network.controllers = []
    network._scheduler = Scheduler()
    network.set_link("m1-z", up=False)
    network._core.run(round(0.3e12))
    heir = successor(network, protect=[("h1", "h2")], discovery=DISCOVERY, repair=True)
    flow = stream(network, 0.3, 1.0)
    assert routes_of(heir)["a-z#0"] == ["a-m1-z", "a-m2-z"]
    network.set_link("m2-z", up=False, at_s=0.5)
    network.run(1.1)
    assert [str(r.after) for r in heir.repairs if r.path_set.startswith("a-z") and r.after][:1] == ["a-m3-z"]
    assert network.statistics(flow).lost == 0


@pytest.mark.parametrize("before", [None, DISCOVERY])
@pytest.mark.parametrize("after", [None, DISCOVERY])
def test_with_and_without_discovery(
    program: Program, before: LinkDiscovery | None, after: LinkDiscovery | None
) -> None:
    """Independent of the former one's map: entries name links by their ports. Parallel links stay what they are."""
    t = Topology("parallel")
    for host in ("h1", "h2"):
        t.add_host(host)
    t.add_switch("a")
    t.add_switch("z")
    t.add_link("h1", "a")
    t.add_link("h2", "z")
    # Nearer links are heard first, and numbered before the others.
    for delay_ms in (5, 1, 3):
        t.add_link("a", "z", delay_ms=delay_ms, cost=10 - delay_ms)
    network, controller = build(program, t, discovery=before)
    network.run(0.1)
    ports = {str(c): [client_port(controller, c.ingress, i) for i in range(2)] for c in controller.connections}
    assert len(ports) == 2
    flow = stream(network, 0.1, 0.9)
    network.run(0.4)
    held = dump(controller)
    heir = successor(network, protect=[("h1", "h2")], discovery=after)
    network.run(1.0)
    assert dump(heir) == held
    assert {str(c): [client_port(heir, c.ingress, i) for i in range(2)] for c in heir.connections} == ports
    assert network.statistics(flow).lost == 0


def client_port(controller: ProtectController, switch: str, copy: int) -> int:
    """Return the port by which the first connection of ``switch`` sends copy ``copy``, by the controller's topology."""
    (connection, *_) = [c for c in controller.connections if c.ingress == switch]
    link = controller.topology.links[connection.paths[copy].links[0]]
    return link.a_port if link.a == switch else link.b_port


@pytest.mark.parametrize("seed", range(3))
def test_random_silent_failures_one_at_a_time(program: Program, seed: int) -> None:
    """On a grid whose ports never tell and whose links lose a discovery frame now and then; a new controller in the middle."""
    rng = random.Random(seed)
    t = silent(load("grid:3x4"))
    hosts = list(t.hosts)
    pairs = sorted({tuple(rng.sample(hosts, 2)) for _ in range(4)})
    parameters: dict[str, Any] = {"protect": pairs, "repair": True, "wait_to_restore_ms": 60, "discovery": DISCOVERY}
    network, controller = build(program, t, **parameters)
    links = [link.name for link in t.links if link.a in t.switches and link.b in t.switches]
    network.run(0.2)
    assert not controller.waiting
    for ends in {(c.ingress, c.egress) for c in controller.connections}:
        cost = sum(path.cost for path in controller.find_connection(*ends).paths)  # type: ignore[union-attr]
        assert cost == sum(path.cost for path in disjoint_paths(t, *ends)), "as good as on the true map"
    flows = [
        network.add(UdpStream(source=a, destination=b, packets_per_s=500, payload_bytes=100, start_s=0.2, stop_s=2.5))
        for a, b in pairs
    ]
    at_s = 0.3
    while at_s < 2.2:
        link, down_s = rng.choice(links), rng.uniform(0.02, 0.3)
        network.set_link(link, up=False, at_s=at_s)
        network.set_link(link, up=True, at_s=at_s + down_s)
        at_s += down_s + rng.uniform(0.2, 0.3)
    network.run(1.2)
    heir = successor(network, **parameters)
    assert heir.taken_over is not None
    assert len(heir.connections) == len(controller.connections)
    network.run(3.0)
    for flow in flows:
        statistics = network.statistics(flow)
        assert (statistics.lost, statistics.duplicated) == (0, 0)
    assert controller.repairs or heir.repairs
    assert all(client.multicast_groups() for name, client in heir.clients.items() if client.read_table(COPY_TABLE))
