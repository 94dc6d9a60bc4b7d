"""Packets lost by a cut with and without BIER-FRR; delays of convergence; a controller that takes a running network over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil, floor

import pytest

from holdfast import SimulatedNetwork
from holdfast.apps.bier import BierController, Bift, Coverage, compile_bier, failures
from holdfast.apps.bier.conftest import Compile
from holdfast.apps.bier.entries import bfer_configuration
from holdfast.apps.bier.one_plus_one import Streams
from holdfast.apps.bier.program import BIFT_GROUPS, CLUSTER_GROUPS, CLUSTER_TABLE, COUNTERS, RECEIVER_GROUPS
from holdfast.apps.bier.takeover import find
from holdfast.control.membership.members import channel
from holdfast.errors import NetworkError
from holdfast.p4runtime.client import Client
from holdfast.scheduler import Scheduler
from holdfast.topologies import load
from holdfast.topology import Topology
from holdfast.traffic import UdpStream

GROUP = "232.1.1.1"
RATE = 10_000
DETECTION_MS = 0.3


class Run:
    """A network with one stream of 10,000 packets/s to its other hosts, at most 20 of them."""

    def __init__(
        self,
        compiled: Compile,
        topology: Topology,
        *,
        source: str | None = None,
        stop_s: float = 0.25,
        **parameters: object,
    ) -> None:
        hosts = list(topology.hosts)
        self.topology, self.source = topology, source or hosts[0]
        self.receivers = [host for host in hosts if host != self.source][:20]
        self.channel = channel(GROUP, str(topology.hosts[self.source].address.ip))
        self.program = compiled("one-pass")
        self.parameters = {"ip_delay_ms": 10, "bier_delay_ms": 30} | parameters
        self.controller = BierController({self.channel: self.receivers}, **self.parameters)  # type: ignore[arg-type]
        self.network = SimulatedNetwork(topology, self.program, [self.controller], detection_delay_ms=DETECTION_MS)
        self.plan = self.controller.plan
        self.flow = self.network.add(
            UdpStream(source=self.source, destination=GROUP, packets_per_s=RATE, stop_s=stop_s, payload_bytes=64)
        )

    def lost(self) -> dict[str, int]:
        """Return the number of packets that each receiver lost. Fail if a receiver got a packet twice."""
        lost = {}
        for host in self.receivers:
            statistics = self.network.statistics(self.flow, host=host)
            assert statistics.duplicated == 0
            lost[host] = statistics.lost
        return lost

    def switch_of(self, host: str) -> str:
        return self.topology.attachment(host).switch

    def path(self, host: str) -> list[int]:
        """Return the indices of the links on the path from the source's switch to the switch of ``host``."""
        plan = self.plan
        node, target = (plan.paths.number[self.switch_of(name)] for name in (self.source, host))
        links = []
        while (hop := plan.next_hop((0, 0), node, target)) is not None:
            links.append(hop.link)
            node = hop.neighbour
        return links

    def window(self, host: str, links: frozenset[int], extra_ms: float = DETECTION_MS) -> range:
        """Return the range of packets that ``host`` may lose: those on the failed ``links``, and those sent in ``extra_ms``."""
        wires = [self.topology.links[link] for link in self.path(host) if link in links]
        if not wires:
            return range(1)
        bits = 8 * 400
        on_the_wire_ms = sum(wire.delay_ms + 1e3 * bits / (wire.rate_bps or 1e12) for wire in wires)
        least = (sum(wire.delay_ms for wire in wires) + extra_ms) * RATE / 1e3
        return range(floor(least), ceil((on_the_wire_ms + extra_ms) * RATE / 1e3) + 1)


@pytest.mark.parametrize(("frr", "protect"), [("tunnel", "link"), ("tunnel", "node"), ("lfa", "link")])
@pytest.mark.parametrize("link", ["Seattle-Denver", "Chicago-New_York"])
def test_a_cut_link_loses_what_is_on_the_wire_and_the_detections_time(
    compiled: Compile, frr: str, protect: str, link: str
) -> None:
    topology = load("abilene:hosts=2")
    run = Run(compiled, topology, frr=frr, protect=protect)
    failure = next(f for f in failures(topology, "link") if f.name == link)
    covered = Coverage(run.plan).lost(failure)
    run.network.set_link(link, up=False, at_s=0.1)
    run.network.run(2)
    met = 0
    for host, lost in run.lost().items():
        if (run.switch_of(run.source), run.switch_of(host)) in covered:
            assert lost > 200
        else:
            assert lost in run.window(host, failure.links), f"{host}: {lost}"
            met += lost > 0
    assert met or covered


def test_a_dead_switch_loses_what_was_in_its_links(compiled: Compile) -> None:
    topology = load("abilene:hosts=2")
    run = Run(compiled, topology, protect="node")
    failure = next(f for f in failures(topology, "node") if f.name == "Denver")
    assert not Coverage(run.plan).lost(failure)
    run.network.set_node("Denver", up=False, at_s=0.1)
    run.network.run(2)
    met = 0
    for host, lost in run.lost().items():
        if run.switch_of(host) != "Denver":
            assert lost in run.window(host, failure.links), f"{host}: {lost}"
            met += lost > 0
    assert met


@pytest.mark.parametrize(
    ("frr", "ip_frr", "outage_ms"),
    [("none", True, DETECTION_MS + 30), ("tunnel", False, DETECTION_MS + 10), ("tunnel", True, DETECTION_MS)],
)
def test_the_three_cases_of_the_paper(compiled: Compile, frr: str, ip_frr: bool, outage_ms: float) -> None:
    """Without any, until BIER has converged; with BIER-FRR alone, until IP has; with both, until the switch notices."""
    topology = load("ring:5")
    run = Run(compiled, topology, frr=frr, ip_frr=ip_frr)
    run.network.set_link("s1-s2", up=False, at_s=0.1)
    run.network.run(2)
    down = frozenset((topology.find_link("s1-s2"),))
    assert run.lost()["h2"] in run.window("h2", down, outage_ms)
    assert run.lost()["h2"] > 0


def test_without_reroute_repairs_last(compiled: Compile) -> None:
    run = Run(compiled, load("ring:5"), reroute=False)
    run.network.set_link("s1-s2", up=False, at_s=0.1)
    run.network.run(1)
    assert max(run.lost().values()) < 20
    counters = run.controller.clients["s1"].counter(COUNTERS["tunnel_repairs"], 0)
    assert counters[0] > 1490


@pytest.mark.parametrize("frr", ["none", "tunnel"])
def test_a_link_that_comes_back_costs_nothing(compiled: Compile, frr: str) -> None:
    run = Run(compiled, load("ring:5"), frr=frr)
    run.network.set_link("s1-s2", up=False, at_s=0.05)
    run.network.set_link("s1-s2", up=True, at_s=0.15)
    run.network.run(2)
    down = frozenset((run.topology.find_link("s1-s2"),))
    for host, lost in run.lost().items():
        assert lost in run.window(host, down, DETECTION_MS + (30 if frr == "none" else 0))
    entry = next(e for e in run.controller.plan.switches["s1"].bifts.values())[0]
    assert {neighbour.neighbour for neighbour in entry} == {"s2", "s5"}


def test_each_of_several_sets_gets_its_copy(compiled: Compile) -> None:
    """BFR-ids far apart: three set identifiers of 64 bits, one of them with the highest that there is for it."""
    topology = load("ring:5")
    numbers = {"s2": 64, "s3": 65, "s4": 128, "s5": 256 * 64}
    program = compiled("one-pass", bsl=64)
    joined = channel(GROUP, str(topology.hosts["h1"].address.ip))
    controller = BierController(
        {joined: ["h2", "h3", "h4", "h5"]}, ip_delay_ms=0, bier_delay_ms=0, bsl=64, bfr_ids=numbers
    )
    network = SimulatedNetwork(topology, program, [controller])
    flow = network.add(UdpStream(source="h1", destination=GROUP, packets_per_s=1000, stop_s=0.1, payload_bytes=64))
    network.run(1)
    for host in ("h2", "h3", "h4", "h5"):
        assert network.statistics(flow, host=host).delivered == 100
    assert controller.scheme.numbering.set_identifiers == (0, 1, 255)


def test_members_come_and_go(compiled: Compile) -> None:
    run = Run(compiled, load("ring:5"))
    run.network.run(0.1)
    run.controller.leave(run.channel, "h3")
    run.network.run(0.2)
    run.controller.join(run.channel, "h3")
    run.network.run(1)
    lost = run.lost()
    assert lost.pop("h3") == pytest.approx(1000, abs=30)
    assert set(lost.values()) == {0}
    with pytest.raises(NetworkError, match="there is no host 'h9'"):
        run.controller.join(run.channel, "h9")


def test_clusters_are_learnt_from_samples() -> None:
    """Two of three neighbours have receivers: they become a cluster, without a packet lost or sent twice."""
    topology = load("star:4")
    joined = channel(GROUP, str(topology.hosts["h1"].address.ip))
    controller = BierController({joined: ["h2", "h3"]}, ip_delay_ms=0, bier_delay_ms=0, clusters=8)
    program = compile_bier("clusters", defines={"CLUSTER_SAMPLING": "4"})
    network = SimulatedNetwork(topology, program, [controller])
    flow = network.add(UdpStream(source="h1", destination=GROUP, packets_per_s=RATE, stop_s=0.1, payload_bytes=64))
    network.run(1)
    hub = max(controller.plan.switches, key=lambda name: len(controller.plan.switches[name].bifts[Bift(0, 0)][0]))
    client = controller.clients[hub]
    assert len(client.read_table(CLUSTER_TABLE)) == 1
    (replicas,) = [replicas for number, replicas in client.multicast_groups().items() if number in CLUSTER_GROUPS]
    assert len(replicas) == 2
    for host in ("h2", "h3"):
        statistics = network.statistics(flow, host=host)
        assert (statistics.delivered, statistics.duplicated) == (1000, 0)
    heir = BierController({joined: ["h2", "h3"]}, ip_delay_ms=0, bier_delay_ms=0, clusters=8)
    heir.attach(network)
    heir.on_start()
    assert heir.taken_over


# ---- Taking over ----


def successor(run: Run, **parameters: object) -> BierController:
    """Start a new controller in place of the present one, without changing the switches, and return it."""
    controller = BierController({run.channel: run.receivers}, **run.parameters | parameters)  # type: ignore[arg-type]
    run.network.controllers = [controller]
    run.network._scheduler = Scheduler()
    controller.attach(run.network)
    controller.on_start()
    return controller


@pytest.fixture
def no_writes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """Yield a list of the batches that are written from now on; tests check that it stays empty."""
    batches: list[object] = []
    send = Client._send_batch

    def noted(self: Client, batch: object, atomicity: object) -> None:
        batches.append(batch)
        send(self, batch, atomicity)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Client, "_send_batch", noted)
        yield batches


@pytest.mark.parametrize("frr", ["none", "tunnel", "lfa"])
def test_a_successor_finds_everything_as_it_would_have_it(
    compiled: Compile, frr: str, request: pytest.FixtureRequest
) -> None:
    run = Run(compiled, load("abilene:hosts=2"), frr=frr, bfr_ids={"Denver": 200})
    run.network.run(0.1)
    batches = request.getfixturevalue("no_writes")
    heir = successor(run, bfr_ids=None)
    assert heir.taken_over
    assert heir.scheme.numbering == run.controller.scheme.numbering
    run.network.run(2)
    assert not batches
    assert set(run.lost().values()) == {0}
    heir.leave(run.channel, run.receivers[0])
    assert batches


def test_a_successor_with_other_wishes_loses_no_packet(compiled: Compile) -> None:
    """From no protection to node protection by tunnels, then to alternates, while the stream runs."""
    run = Run(compiled, load("abilene:hosts=2"), frr="none")
    run.network.run(0.1)
    first = successor(run, frr="tunnel", protect="node")
    run.network.run(0.15)
    second = successor(run, frr="lfa")
    run.network.run(0.2)
    assert first.taken_over
    assert second.taken_over
    run.network.run(3)
    assert set(run.lost().values()) == {0}


def test_a_successor_in_the_middle_of_a_failure_loses_no_more(compiled: Compile) -> None:
    """The predecessor has let IP converge, and dies before BIER does: packets are in repair tunnels."""
    topology = load("abilene:hosts=2")
    run = Run(compiled, topology)
    run.network.set_link("Seattle-Denver", up=False, at_s=0.1)
    run.network.run(0.12)
    heir = successor(run)
    assert heir.plan.unusable == {topology.find_link("Seattle-Denver")}
    run.network.run(3)
    for host, lost in run.lost().items():
        assert lost in run.window(host, heir.plan.unusable), f"{host}: {lost}"


def _leave_group(client: Client) -> None:
    client.multicast_group(RECEIVER_GROUPS.start, [(1, 0)])
    client.clone_session(RECEIVER_GROUPS.start, [(1, 0)])


def _leave_bift_group(client: Client) -> None:
    client.multicast_group(BIFT_GROUPS.start, [(1, 0)])
    client.clone_session(BIFT_GROUPS.start, [(1, 0)])


def _leave_session(client: Client) -> None:
    client.clone_session(1, [(1, 0)])


def _leave_channel(client: Client) -> None:
    _leave_group(client)
    entry = next(iter(bfer_configuration({channel("239.1.1.9", "10.0.0.1"): [1]}).entries))
    entry.write(client, "insert")


def _leave_stream(client: Client) -> None:
    Streams(client).add([channel("239.1.1.9", "10.0.0.1")], [])


@pytest.mark.parametrize("leave", [_leave_group, _leave_bift_group, _leave_session, _leave_channel, _leave_stream])
def test_whatever_an_earlier_controller_left_alone_is_taken_over(
    compiled: Compile, leave: Callable[[Client], None]
) -> None:
    """Nothing of it stays, and nothing is in the way of what is written."""
    protects = leave is _leave_stream
    topology = load("ring:4")
    program = compiled("one-pass", one_plus_one=protects)

    def started(prepare: Callable[[Client], None] | None) -> tuple[BierController, dict[str, object]]:
        network = SimulatedNetwork(topology, program, [])
        for client in network.clients.values() if prepare else ():
            prepare(client)  # type: ignore[misc]
        options = {"frr": "none", "reroute": False, "one_plus_one": True, "mtu": 2000} if protects else {}
        joined = channel("239.1.1.1", str(topology.hosts["h1"].address.ip))
        controller = BierController({joined: ["h2", "h3"]}, ip_delay_ms=0, bier_delay_ms=0, **options)  # type: ignore[arg-type]
        controller.attach(network)
        controller.on_start()
        found = {name: find(client, controller.bsl) for name, client in network.clients.items()}
        # Numbers of groups and registers may be others.
        return controller, {
            name: (len(each.channels.groups), {entry.key for entry in (*each.channels.entries, *each.streams)})
            for name, each in found.items()
        }

    first, wanted = started(None)
    assert not first.taken_over
    heir, state = started(leave)
    assert heir.taken_over
    assert state == wanted
