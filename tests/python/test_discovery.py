"""Link discovery finds the wired links, despite failures, losses, wrong declarations and forged frames of hosts."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import SimulatedNetwork, UdpStream, lldp
from holdfast._core import Program
from holdfast.apps.router import RouterController, compile_router
from holdfast.controller import ControlPlane
from holdfast.discovery import DiscoveredTopology, Discovery, Incident, LinkDiscovery
from holdfast.errors import NetworkError
from holdfast.parameters import PS_PER_MS
from holdfast.topology import Topology

QUICK = LinkDiscovery(interval_ms=20, settle_ms=12)
PROGRAM = compile_router()

Wire = frozenset[tuple[str, int]]


class Misdeclared:
    """A network whose controllers are given another map than the one it was built by."""

    def __init__(self, plane: ControlPlane, topology: Topology) -> None:
        self._plane = plane
        self.topology = topology

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plane, name)


class Router(RouterController):
    """Discovers, and counts what it is told."""

    def __init__(self, settings: LinkDiscovery, declared: Topology | None = None, **parameters: Any) -> None:
        super().__init__(**{"reroute": True, "reaction_delay_ms": 1, **parameters}, discovery=settings)
        self.declared = declared
        self.changed_ms: list[float] = []

    def attach(self, plane: ControlPlane) -> None:
        super().attach(plane if self.declared is None else Misdeclared(plane, self.declared))  # type: ignore[arg-type]

    def on_links_changed(self) -> None:
        self.changed_ms.append(self.plane.now_ps / PS_PER_MS)
        super().on_links_changed()


def run(
    t: Topology,
    settings: LinkDiscovery = QUICK,
    declared: Topology | None = None,
    until_s: float = 0.1,
    **parameters: Any,
) -> tuple[SimulatedNetwork, Router]:
    controller = Router(settings, declared, **parameters)
    network = SimulatedNetwork(t, PROGRAM, [controller], detection_delay_ms=2)
    network.run(until_s)
    return network, controller


def wires(t: Topology, indices: Iterable[int] | None = None) -> set[Wire]:
    """Return the links between switches as sets of their two ports, only those in ``indices`` if given."""
    links = [link for i, link in enumerate(t.links) if indices is None or i in indices]
    return {
        frozenset({(x.a, x.a_port), (x.b, x.b_port)}) for x in links if x.a in t.switches and x.b in t.switches
    }  # fmt: skip


def found(discovery: Discovery) -> set[Wire]:
    """Return the links that were discovered, and check that each view of the map has the same ones."""
    topology = discovery.topology
    present = wires(topology.present())
    assert present == wires(topology, set(range(len(topology.links))) - topology.absent)
    assert {(a, b) for a, b in topology.graph.edges} == {(a, b) for a, b in topology.present().graph.edges}
    return present


def line(*names: str, **parameters: Any) -> Topology:
    t = Topology("line")
    for name in names:
        t.add_switch(name)
    for a, b in pairwise(names):
        t.add_link(a, b, delay_ms=1, **parameters)
    t.add_host("h1")
    t.add_host("h2")
    t.add_link("h1", names[0])
    t.add_link("h2", names[-1])
    return t


# ---- What is wired is found ----


def random_network(rng: random.Random, told: float) -> Topology:
    """Return a random topology of two to seven switches with parallel links and hosts.

    A port tells that its link failed with probability ``told``.
    """
    t = Topology("random")
    names = [t.add_switch(f"s{i}").name for i in range(rng.randint(2, 7))]
    for _ in range(rng.randint(1, 14)):
        if rng.random() < 0.15:
            host = t.add_host(f"h{len(t.hosts)}")
            t.add_link(host.name, rng.choice(names))
        else:
            a, b = rng.sample(names, 2)
            silent = {} if rng.random() < told else {"detection_delay_ms": 3.6e6}
            t.add_link(a, b, delay_ms=rng.uniform(0, 8), **silent)
    return t


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), told=st.sampled_from([0.0, 0.5, 1.0]), loss=st.sampled_from([0.0, 0.0, 0.2]))
def test_after_failures_and_repairs(seed: int, told: float, loss: float) -> None:
    """Check failures and repairs of links, directions and switches, notified or not, with and without losses."""
    rng = random.Random(seed)
    t = random_network(rng, told)
    if loss:
        t.links[:] = [link.model_copy(update={"loss": loss}) for link in t.links]
    # Ten frames in a row are lost once in ten million.
    controller = Router(LinkDiscovery(interval_ms=20, hold_ms=200 if loss else None, settle_ms=12))
    network = SimulatedNetwork(t, PROGRAM, [controller], detection_delay_ms=2, seed=seed)
    converged_s = 0.3
    network.run(converged_s)
    names = [link for i, link in enumerate(t.links) if {link.a, link.b} <= t.switches.keys()]
    assert found(controller.discovery) == wires(t)
    state = {id(link): [True, True] for link in names}
    switch_up = dict.fromkeys(t.switches, True)
    numbers = {id(link): [x for x in names if {x.a, x.b} == {link.a, link.b}].index(link) + 1 for link in names}
    for _ in range(rng.randint(1, 4)):
        now_s = network.now_ps / 1e12
        for _ in range(rng.randint(1, 6)):
            at_s, up = now_s + rng.uniform(0, 0.1), rng.random() < 0.5
            now_s = at_s
            if not names or rng.random() < 0.2:
                switch = rng.choice(list(t.switches))
                network.set_node(switch, up=up, at_s=at_s)
                switch_up[switch] = up
                continue
            link = rng.choice(names)
            ways = rng.choice([(0, 1), (0,), (1,)])
            a, b = (link.b, link.a) if ways == (1,) else (link.a, link.b)
            twins = [x for x in names if {x.a, x.b} == {a, b}]
            # find_link counts parallel links however they are declared, and takes the direction from the name.
            if len(ways) == 1 and any((x.a, x.b) != (link.a, link.b) for x in twins):
                ways = (0, 1)
            network.set_link(f"{a}-{b}#{numbers[id(link)]}", up=up, at_s=at_s, one_way=len(ways) == 1)
            for way in ways:
                state[id(link)][way] = up
        network.run(now_s + converged_s)
        whole = [x for x in names if all(state[id(x)]) and switch_up[x.a] and switch_up[x.b]]
        expected = {frozenset({(x.a, x.a_port), (x.b, x.b_port)}) for x in whole}
        assert found(controller.discovery) == expected
        one_way = {
            ((x.a, x.a_port), (x.b, x.b_port))[:: 1 if way == 0 else -1]
            for x in names
            for way in (0, 1)
            if state[id(x)][way] and not state[id(x)][1 - way] and switch_up[x.a] and switch_up[x.b]
        }
        # A port that has no signal is known to be down; nothing is heard of it then, in either direction.
        assert set(controller.discovery.one_way) <= one_way
        if told == 0.0:
            assert set(controller.discovery.one_way) == one_way
    assert controller.discovery.incidents == []
    assert controller.discovery.is_settled


@pytest.mark.parametrize("ports", [5, {"a": {1, 2, 3, 4}, "b": [1, 2], "c": (1, 2, 3)}])
def test_a_map_that_is_wrong(ports: Any) -> None:
    """Check a declared map with swapped ends, a link too many and one too few: the real links are found and used."""
    t, declared = Topology("wired"), Topology("declared")
    for one in (t, declared):
        for name in ("a", "b", "c"):
            one.add_switch(name)
        one.add_host("h1")
        one.add_host("h2")
        one.add_link("h1", "a", a_port=0, b_port=4)
        one.add_link("h2", "c", a_port=0, b_port=3)
    t.add_link("a", "b", a_port=1, b_port=2)
    t.add_link("b", "c", a_port=1, b_port=1)
    t.add_link("c", "a", a_port=2, b_port=3)
    declared.add_link("a", "b", a_port=1, b_port=1, cost=5)
    declared.add_link("b", "c", a_port=2, b_port=2, cost=7)
    declared.add_link("a", "c", a_port=2, b_port=1)
    network, controller = run(t, LinkDiscovery(interval_ms=20, settle_ms=10, ports=ports), declared)
    assert found(controller.discovery) == wires(t)
    # The costs are those that the map gives to the ports: a:1-b:2 the greater one of 5 and 7.
    costs = {frozenset((x.a, x.b)): x.cost for x in controller.topology.links if x.a in t.switches}
    assert costs == {frozenset("ab"): 7, frozenset("bc"): 5, frozenset("ac"): 7}
    flow = network.add(
        UdpStream(source="h1", destination="h2", packets_per_s=1000, payload_bytes=50, start_s=0.1, stop_s=0.2)
    )
    network.run(0.3)
    assert network.statistics(flow).delivered == 100
    assert controller.discovery.incidents == []


def test_a_link_that_was_declared_so_is_as_declared() -> None:
    t = line("a", "b", cost=3, rate_bps=10_000_000)
    _, controller = run(t)
    assert t.links[0] in controller.topology.links


def test_nothing_is_told_before_all_is_found() -> None:
    """Check for one change with all links at first, one at once for a failure, and one for a return, sooner than the interval."""
    t = line("a", "b", "c", "d")
    network, controller = run(t, LinkDiscovery(interval_ms=500, settle_ms=10), until_s=0.3)
    # Six ports, 1 ms from frame to frame; delay and reaction; settled.
    assert len(controller.changed_ms) == 1
    assert 17 <= controller.changed_ms[0] <= 21
    network.set_link("b-c", up=False, at_s=0.3)
    network.set_link("b-c", up=True, at_s=0.35)
    network.run(0.5)
    assert controller.changed_ms[1] == pytest.approx(303), "detection and reaction"
    # Noticed, reacted to; a frame each, delay and reaction; settled.
    assert len(controller.changed_ms) == 3
    assert 353 + 2 + 10 < controller.changed_ms[2] < 353 + 5 + 10
    assert found(controller.discovery) == wires(t)


def test_a_slow_controller() -> None:
    """Check a controller that gets frames later than the hold time, and that still reports all links at once."""
    t = line("a", "b", "c")
    network, controller = run(t, reaction_delay_ms=200, until_s=0.5)
    assert controller.changed_ms == [pytest.approx(4 + 200 + 12, abs=3)]
    network.run(2)
    assert len(controller.changed_ms) == 1
    assert found(controller.discovery) == wires(t)
    assert controller.discovery.incidents == []


def test_a_direction_that_comes_back_is_asked_for() -> None:
    """Check that both ports of a link send a frame at once when one direction returns, as only one of them is notified."""
    t = line("a", "b")
    network, controller = run(t, LinkDiscovery(interval_ms=500, settle_ms=10), until_s=0.3)
    network.set_link("a-b", up=False, at_s=0.3, one_way=True)
    network.run(0.31)
    assert found(controller.discovery) == set()
    network.set_link("a-b", up=True, at_s=0.32, one_way=True)
    network.run(0.35)
    assert found(controller.discovery) == wires(t)


def test_a_silent_failure_ends_with_the_hold_time() -> None:
    t = line("a", "b", detection_delay_ms=3.6e6)
    network, controller = run(t, LinkDiscovery(interval_ms=20, hold_ms=50, settle_ms=1), reroute=True)
    assert found(controller.discovery) == wires(t)
    network.set_link("a-b", up=False, at_s=0.1)
    network.run(0.125)
    assert found(controller.discovery) == wires(t)
    network.run(0.16)
    assert found(controller.discovery) == set()
    prefixes = {name: len(client.read_table("RouterIngress.ipv4_lpm")) for name, client in network.clients.items()}
    assert prefixes == {"a": 1, "b": 1}, "the own host's"


def test_without_reroute_routes_stay() -> None:
    """Check that a failure changes no route, as on declared maps, but that a new link gives the first routes."""
    t = line("a", "b")
    network, controller = run(t, reroute=False)
    network.set_link("a-b", up=False)
    network.run(0.3)
    assert found(controller.discovery) == set()
    assert [len(client.read_table("RouterIngress.ipv4_lpm")) for client in network.clients.values()] == [2, 2]


def test_a_run_is_the_same_again(tmp_path: Any) -> None:
    """Check that equal seeds give equal bytes, and that another seed signs frames with another key."""

    def captured(seed: int) -> tuple[bytes, list[str]]:
        controller = Router(QUICK)
        network = SimulatedNetwork(random_network(random.Random(5), 0.5), PROGRAM, [controller], seed=seed)
        network.capture("s0", 1, tmp_path / f"{seed}.pcap")
        network.run(0.2)
        return (tmp_path / f"{seed}.pcap").read_bytes(), [link.name for link in controller.topology.links]

    assert captured(1) == captured(1)
    assert len(captured(1)[0]) == len(captured(2)[0]) > 500
    assert captured(1)[0] != captured(2)[0]


# ---- What hosts make up ----


def test_a_host_makes_no_links() -> None:
    """Check a host, at a port that is declared as a link's, that sends forged, foreign, broken and repeated frames."""
    t, declared = line("a", "b", "c"), line("a", "b", "c")
    t.add_host("m1")
    t.add_link("m1", "a")
    t.add_host("m2")
    t.add_link("m2", "c")
    declared.add_link("a", "c")
    told: list[Incident] = []
    settings = LinkDiscovery(interval_ms=20, settle_ms=10, on_incident=told.append)
    network, controller = run(t, settings, declared)
    discovery = controller.discovery
    assert found(discovery) == wires(t)
    mac, key = t.hosts["m1"].mac, bytes(32)
    heard = lldp.frame(mac, "c", 3, 4, network.now_ps, discovery._key)
    head = lldp.NEAREST_BRIDGE + mac + b"\x88\xcc"
    network.send_frame("m1", lldp.frame(mac, "c", 3, 4, network.now_ps, key))
    network.send_frame("m1", head + bytes.fromhex("02030763 0403073301 060200ff 0000"))
    network.send_frame("m1", head + bytes.fromhex("020507306d31 040307300a 06020078 0000"))
    network.send_frame("m1", head + b"\xff" * 50)
    network.run(0.11)
    assert found(discovery) == wires(t)
    assert {(i.kind, i.switch, i.port) for i in told} >= {("forged", "a", 3), ("malformed", "a", 3)}
    # A genuine frame of c:3, carried to a:3 behind the switches' backs: half a link, and a link is two halves.
    network.send_frame("m1", heard)
    network.run(0.12)
    assert found(discovery) == wires(t)
    assert discovery.one_way == [(("c", 3), ("a", 3))]
    # The same a second time, and after its time.
    network.send_frame("m2", heard)
    network.run(0.13)
    assert [str(i) for i in told if i.switch == "c"] == ["c:3: a frame of the same switch (of c:3)"]
    network.run(0.3)
    network.send_frame("m1", heard)
    network.run(0.31)
    assert "replayed" in {i.kind for i in told}
    assert found(discovery) == wires(t)
    # At a host's own port nothing counts, however genuine.
    network.send_frame("h1", lldp.frame(mac, "b", 1, 4, network.now_ps, discovery._key))
    network.run(0.32)
    assert [i.claimed for i in told if i.kind == "misplaced"] == [("b", 1)]
    assert found(discovery) == wires(t)


def test_a_flood_is_counted_and_not_kept() -> None:
    t = line("a", "b")
    network, controller = run(t)
    rng = random.Random(1)
    head = lldp.NEAREST_BRIDGE + bytes(6) + b"\x88\xcc"
    for i in range(300):
        network.send_frame("h1", head + rng.randbytes(rng.randint(0, 100)))
        network.run(0.1 + i / 10_000)
    network.run(0.2)
    assert found(controller.discovery) == wires(t)
    assert sum(i.count for i in controller.discovery.incidents) == 300
    assert len(controller.discovery.incidents) <= 3


# ---- What no network of this package does: cables that are moved, hubs, loops ----


class Cables:
    """Stands for a network: ports, and where a frame out of each arrives, which may change, and be several."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.now_ps = 0
        self.to: dict[tuple[str, int], list[tuple[str, int]]] = {}
        self.sent_ms: list[float] = []
        self.changes = 0
        self._pending: list[tuple[int, int, Any]] = []
        self._order = 0
        self.clients = {name: self._client(name) for name in topology.switches}
        self.discovery: Discovery

    def _client(self, name: str) -> Any:
        class Client:
            def packet_out(_self, packet: bytes, egress_port: int) -> None:
                self.sent_ms.append(self.now_ps / PS_PER_MS)
                for at, port in self.to.get((name, egress_port), []):
                    self.call_later(1, lambda at=at, port=port: self.discovery.hear(at, packet, port))

        return Client()

    def secret(self) -> bytes:
        return bytes(32)

    def port_is_up(self, switch: str, port: int) -> bool:
        return True

    def call_later(self, delay_ms: float, handler: Any) -> None:
        self._order += 1
        self._pending.append((self.now_ps + round(delay_ms * PS_PER_MS), self._order, handler))

    def join(self, *ports: tuple[str, int]) -> None:
        for port in ports:
            self.to[port] = [other for other in ports if other != port]

    def begin(self, settings: LinkDiscovery) -> Discovery:
        def changed() -> None:
            self.changes += 1

        self.discovery = Discovery(self, settings, changed)  # type: ignore[arg-type]
        self.discovery.prepare()
        self.discovery.start()
        return self.discovery

    def run(self, until_ms: float) -> None:
        while self._pending and min(self._pending)[0] <= until_ms * PS_PER_MS:
            first = min(self._pending, key=lambda item: item[:2])
            self._pending.remove(first)
            self.now_ps = first[0]
            first[2]()
        self.now_ps = round(until_ms * PS_PER_MS)


def four() -> Cables:
    t = Topology("cables")
    for name in ("a", "b", "c", "d"):
        t.add_switch(name)
    return Cables(t)


SETTINGS = LinkDiscovery(interval_ms=100, settle_ms=10, ports=2)


def test_a_cable_that_is_moved() -> None:
    """Check that the old link is removed as soon as a frame comes in at another port, although no port changes its state."""
    cables = four()
    cables.join(("a", 1), ("b", 1))
    discovery = cables.begin(SETTINGS)
    cables.run(60)
    assert found(discovery) == {frozenset({("a", 1), ("b", 1)})}
    cables.to.clear()
    cables.join(("a", 1), ("c", 2))
    cables.run(250)
    assert found(discovery) == {frozenset({("a", 1), ("c", 2)})}
    assert discovery.topology.replaced == discovery.topology.absent == {0}
    cables.to.clear()
    cables.join(("a", 1), ("b", 1))
    cables.run(500)
    assert found(discovery) == {frozenset({("a", 1), ("b", 1)})}
    assert [(x.a, x.b) for x in discovery.topology.links] == [("a", "b"), ("a", "c")], "indices are for ever"
    assert discovery.topology.replaced == {1}
    assert cables.changes == 1 + 2 + 2


def test_two_cables_that_are_swapped() -> None:
    cables = four()
    cables.join(("a", 1), ("b", 1))
    cables.join(("c", 1), ("d", 1))
    discovery = cables.begin(SETTINGS)
    cables.run(60)
    cables.join(("a", 1), ("d", 1))
    cables.join(("c", 1), ("b", 1))
    cables.run(250)
    assert found(discovery) == {frozenset({("a", 1), ("d", 1)}), frozenset({("c", 1), ("b", 1)})}


def test_what_is_no_link() -> None:
    """Check a loop, a ring of directions and a hub: none makes a link, except between the hub's nearest ports."""
    cables = four()
    cables.join(("a", 1), ("a", 2))
    cables.to |= {("b", 1): [("c", 1)], ("c", 1): [("d", 1)], ("d", 1): [("b", 1)]}
    discovery = cables.begin(SETTINGS)
    cables.run(500)
    assert found(discovery) == set()
    assert {(i.kind, i.switch) for i in discovery.incidents} == {("loop", "a")}
    assert len(discovery.one_way) == 3
    cables.to.clear()
    cables.join(("b", 1), ("c", 1), ("d", 1))
    cables.run(1000)
    assert found(discovery) == {frozenset({("b", 1), ("c", 1)})}
    assert {i.kind for i in discovery.incidents} == {"loop", "elsewhere"}
    changes = cables.changes
    cables.run(2000)
    assert cables.changes == changes, "it does not flap"


@pytest.mark.parametrize("ports", [2, 100])
def test_frames_are_bounded(ports: int) -> None:
    """Check the number of frames over any time, whatever ports do, and that every port sends regularly."""
    cables = four()
    cables.join(("a", 1), ("b", 1))
    discovery = cables.begin(LinkDiscovery(interval_ms=200, settle_ms=10, ports=ports, frames_per_s=500))
    count = len(discovery.ports)
    for i in range(400):
        cables.call_later(3 * i, lambda: discovery.port_changed("a", 1, False))
        cables.call_later(3 * i + 1, lambda: discovery.port_changed("a", 1, True))
    cables.run(4000)
    gaps = [after - before for before, after in pairwise(cables.sent_ms)]
    assert min(gaps) == 2
    assert max(gaps[count:]) <= 201 / count + 2
    interval_ms = max(200, 2 * count)
    regular = 1 + (4000 - 2 * count) / interval_ms
    assert 0.97 * regular * count < discovery.frames_sent < 1.03 * regular * count + 1300
    assert found(discovery) == {frozenset({("a", 1), ("b", 1)})}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"interval_ms": 0}, "interval_ms is 0"),
        ({"interval_ms": float("nan")}, "interval_ms is nan"),
        ({"frames_per_s": -1}, "frames_per_s is -1"),
        ({"frames_per_s": 2e6}, "1000000 at most"),
        ({"settle_ms": -1}, "settle_ms is -1"),
        ({"default_cost": 0}, "default_cost is 0"),
        ({"interval_ms": 100, "hold_ms": 100}, "must be above interval_ms"),
        ({"ports": {"x": [1]}}, "ports of unknown switches: x"),
        ({"ports": {"a": [510]}}, "0 to 509"),
        ({"ports": 500, "hold_ms": 1500}, "one every 2000 ms; hold_ms"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        four().begin(LinkDiscovery(**arguments))


def test_a_program_without_controller_headers() -> None:
    plain = Program.compile(str(Path(__file__).parents[1] / "p4" / "run" / "recirculate.p4"))
    with pytest.raises(NetworkError, match="switch 'a' cannot discover links: its program has no packet_out header"):
        SimulatedNetwork(line("a", "b"), plain, [Router(QUICK)])


def test_what_a_controller_without_it_says() -> None:
    t = line("a", "b")
    controller = RouterController(reroute=False, reaction_delay_ms=0)
    SimulatedNetwork(t, PROGRAM, [controller])
    with pytest.raises(NetworkError, match="does not discover links"):
        _ = controller.discovery
    assert controller.topology is t


def test_a_link_of_another_time() -> None:
    """Check that links of a former controller count as present for the hold time, unless one of their ports is down."""
    cables = four()
    discovery = Discovery(cables, SETTINGS, lambda: None)  # type: ignore[arg-type]
    cables.discovery = discovery
    assert isinstance(discovery.topology, DiscoveredTopology)
    discovery.prepare()
    discovery.port_changed("c", 1, False)
    discovery.presume(("a", 1), ("b", 1), is_there=True)
    discovery.presume(("a", 2), ("b", 2), is_there=False)
    discovery.presume(("c", 1), ("d", 1), is_there=True)
    for one, other in ((("a", 9), ("b", 1)), (("a", 1), ("x", 1)), (("a", 1), ("a", 2))):
        with pytest.raises(NetworkError):
            discovery.presume(one, other, is_there=True)
    discovery.start()
    cables.join(("a", 2), ("b", 2))
    assert found(discovery) == {frozenset({("a", 1), ("b", 1)})}
    cables.run(200)
    assert found(discovery) == {frozenset({("a", 1), ("b", 1)}), frozenset({("a", 2), ("b", 2)})}
    cables.run(400)
    assert found(discovery) == {frozenset({("a", 2), ("b", 2)})}
