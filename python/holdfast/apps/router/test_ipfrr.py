"""IP fast reroute in simulated networks, packet by packet: losses, and their end, with and without a controller."""

from __future__ import annotations

import random
from collections import Counter
from ipaddress import ip_address
from itertools import pairwise, permutations
from typing import Any

import pytest

from holdfast import NetworkError, SimulatedNetwork, Topology, UdpStream
from holdfast._core import Program
from holdfast.apps.router import (
    Alternates,
    IpFrrController,
    Protection,
    RouterController,
    compile_ipfrr,
    compile_router,
)
from holdfast.apps.router.ipfrr import TABLES as IPFRR_TABLES
from holdfast.control.routes import ROUTER_TABLES
from holdfast.parameters import PS_PER_MS
from holdfast.paths import ShortestPaths
from holdfast.topologies import by_name

DETECTION_MS = 10.0
PACKETS_PER_MS = 4
FAILURE_S, REPAIR_S, STOP_S = 0.2, 0.5, 0.8
LINK: dict[str, Any] = {"rate_bps": 10_000_000_000, "delay_ms": 1}


def network_of(*links: tuple[str, str, int], hosts: tuple[str, ...] = ("s1", "s4")) -> Topology:
    """Build a network of ``links`` (end, end, cost), with hosts h1, h2, ... at the switches ``hosts``."""
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
    """Build a network from s1 to s4 over s2, or at a higher cost over s3, which is a node-protecting alternate."""
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
        statistics = self.network.statistics(self.flow)
        return int(statistics.sent or 0) - int(statistics.delivered or 0)

    def delays_ms(self, begin_s: float, end_s: float) -> set[int]:
        """Return the different delays, in whole ms, of packets sent from ``begin_s`` to ``end_s``."""
        log = self.network.received(self.flow)
        sent, received = log.sent_ps, log.received_ps
        return {
            (there - here) // PS_PER_MS
            for here, there in zip(sent, received, strict=True)
            if begin_s * 1000 <= here / PS_PER_MS < end_s * 1000
        }

    def counted(self, switch: str, counter: str) -> int:
        return self.network.clients[switch].counter(f"IpfrrIngress.{counter}", 0)[0]


def near(count: int, expected_ms: float) -> bool:
    """Return True if ``count`` is the number of packets sent in ``expected_ms``, give or take one."""
    return abs(count - expected_ms * PACKETS_PER_MS) <= 1


def test_lfa_loses_what_detection_takes(program: Program) -> None:
    """And what is on the link when it fails: 1 ms of it. Nobody but s1 does anything, and no controller."""
    run = Run(program, square()).fail("s1-s2")
    assert near(run.lost, DETECTION_MS + 1)
    assert near(run.counted("s1", "lfa_repairs"), (REPAIR_S - FAILURE_S) * 1000)
    assert run.counted("s1", "remote_lfa_repairs") == run.counted("s1", "no_alternate") == 0
    sequence = run.network.received(run.flow).sequence
    assert list(sequence) == sorted(set(sequence)), "the detour is longer: nothing is overtaken but at the repair"


def test_without_an_alternate_all_is_lost(program: Program) -> None:
    """s2 has none for a failure of s2-s4: its other neighbour, s1, would send everything back."""
    run = Run(program, square(), controller=IpFrrController(reroute=False, remote_lfa=False, reaction_delay_ms=0))
    run.fail("s2-s4")
    # From when the first packet is lost on the link until s2 sees that the link is back.
    assert near(run.lost, (REPAIR_S - FAILURE_S) * 1000 + DETECTION_MS + 1)
    assert near(run.counted("s2", "no_alternate"), (REPAIR_S - FAILURE_S) * 1000)


@pytest.mark.parametrize("failing", ["s1-s2", "s2"])
def test_node_protecting_lfa(program: Program, failing: str) -> None:
    """The alternate over s3 does not touch s2. A failed switch loses what is on both its links."""
    run = Run(program, square()).fail(failing, repair=False)
    assert near(run.lost, DETECTION_MS + (2 if failing == "s2" else 1))
    (row,) = [r for r in run.controller.coverage() if (r.switch, r.destination) == ("s1", "s4")]  # type: ignore[attr-defined]
    assert (row.alternate, row.protects, row.neighbour, row.cost, row.alternate_cost) == ("lfa", "node", "s3", 2, 4)


@pytest.mark.parametrize("failing", ["s1-s2", "s2"])
def test_remote_lfa_on_a_ring(program: Program, failing: str) -> None:
    """To s3 over s2; s6 would send it back. The only PQ node is s4, and from there s3 is one hop."""
    run = Run(program, ring(6, "s3")).fail(failing)
    assert near(run.lost, DETECTION_MS + (2 if failing == "s2" else 1)), "nothing is lost at the repair"
    repaired = run.counted("s1", "remote_lfa_repairs")
    assert near(repaired, (REPAIR_S - FAILURE_S) * 1000)
    assert run.counted("s4", "decapsulated") == repaired
    assert run.delays_ms(0, FAILURE_S - 0.01) == run.delays_ms(REPAIR_S + 0.02, STOP_S) == {4}
    assert run.delays_ms(FAILURE_S + 0.02, REPAIR_S - 0.01) == {6}
    for i in range(1, 7):
        assert run.counted(f"s{i}", "ttl_expired") == run.counted(f"s{i}", "malformed") == 0


def test_without_remote_alternates_the_ring_is_not_protected(program: Program) -> None:
    run = Run(
        program, ring(6, "s3"), controller=IpFrrController(reroute=False, remote_lfa=False, reaction_delay_ms=0)
    ).fail("s1-s2")
    assert near(run.lost, (REPAIR_S - FAILURE_S) * 1000 + DETECTION_MS + 1)
    assert run.counted("s1", "remote_lfa_repairs") == 0


@pytest.mark.parametrize(("payload_bytes", "fits"), [(1452, True), (1453, False)])
def test_the_mtu_counts_the_tunnel(program: Program, payload_bytes: int, fits: bool) -> None:
    run = Run(program, ring(6, "s3"), payload_bytes=payload_bytes).fail("s1-s2")
    outage_ms = (REPAIR_S - FAILURE_S) * 1000
    assert near(run.counted("s1", "remote_lfa_repairs" if fits else "mtu_exceeded"), outage_ms)
    assert run.counted("s1", "mtu_exceeded" if fits else "remote_lfa_repairs") == 0
    # Packets that are not tunnelled do not get through until the link is back.
    assert near(run.lost, DETECTION_MS + 1 if fits else outage_ms + DETECTION_MS + 1)


@pytest.mark.parametrize(("payload_bytes", "fits"), [(952, True), (953, False)])
def test_the_mtu_of_a_tunnel_is_its_smallest_links(program: Program, payload_bytes: int, fits: bool) -> None:
    """The second link of three takes 1000 bytes, the tunnel's 20 among them; the others take more than the controller's mtu."""
    topology = ring(6, "s3")
    for i, link in enumerate(topology.links):
        takes = 1000 if link.name == "s5-s6" else 3000
        topology.links[i] = link.model_copy(update={"mtu_bytes": takes})
    controller = IpFrrController(reroute=False, reaction_delay_ms=0, mtu=100)
    run = Run(program, topology, controller=controller, payload_bytes=payload_bytes).fail("s1-s2")
    assert near(run.counted("s1", "remote_lfa_repairs" if fits else "mtu_exceeded"), (REPAIR_S - FAILURE_S) * 1000)
    assert near(run.lost, DETECTION_MS + 1) == fits


def entries(network: SimulatedNetwork, table: str) -> dict[str, dict[str, Any]]:
    """Return the ports and addresses in the routes of ``table``, by switch and prefix."""
    found: dict[str, dict[str, Any]] = {}
    for name, client in network.clients.items():
        rows = found[name] = {}
        for entry in client.read_table(table):
            (prefix,) = entry.match.values()
            params = {key: entry.params[key] for key in ("port", "src_mac", "dst_mac")}
            if prefix[0] < int(ip_address("10.255.0.0")):  # type: ignore[index, operator]
                rows[str(prefix)] = params
    return found


@pytest.mark.parametrize("name", ["nsfnet", "grid:3x3"])
def test_the_controller_converges_as_without_fast_reroute(program: Program, name: str) -> None:
    """After each of a few failures and repairs; and the alternates are those of what is left."""
    topology = by_name(name)
    plain = RouterController(reroute=True, reaction_delay_ms=50)
    frr = IpFrrController(reaction_delay_ms=50)
    networks = [
        (SimulatedNetwork(topology, compile_router(), [plain], detection_delay_ms=5), ROUTER_TABLES.ipv4),
        (SimulatedNetwork(topology, program, [frr], detection_delay_ms=5), IPFRR_TABLES.ipv4),
    ]
    links = [link.name for link in topology.links if link.a in topology.switches and link.b in topology.switches]
    first, second = links[0], links[-1]
    seen = []
    for i, (link, up) in enumerate([(first, False), (second, False), (first, True), (second, True)]):
        tables = []
        for network, table in networks:
            network.set_link(link, up=up, at_s=i + 0.5)
            network.run(i + 1)
            tables.append(entries(network, table))
        assert tables[0] == tables[1]
        assert all(tables[0].values())
        seen.append(tables[0])
        failed = {topology.find_link(name) for name, gone in ((first, i < 2), (second, 0 < i < 3)) if gone}
        for row in frr.coverage():
            assert row.link not in failed
        expected = Alternates(ShortestPaths.of(topology, failed)).coverage()
        assert frr.coverage() == expected
    assert seen[0] != seen[1] != seen[2] != seen[3]


def test_with_reroute_nothing_more_is_lost(program: Program) -> None:
    """The controller's change of routes, to the same path here, and back after the repair, loses nothing; without IP fast
    reroute its reaction is lost, too."""
    frr = Run(program, ring(6, "s3"), controller=IpFrrController(reaction_delay_ms=100)).fail("s1-s2")
    assert near(frr.lost, DETECTION_MS + 1)
    assert near(frr.counted("s1", "remote_lfa_repairs"), 100)
    assert frr.delays_ms(FAILURE_S + 0.02, FAILURE_S + 0.1) == {6}
    plain = Run(compile_router(), ring(6, "s3"), controller=RouterController(reroute=True, reaction_delay_ms=100))
    assert near(plain.fail("s1-s2").lost, DETECTION_MS + 100 + 1)


def pairs_topology(seed: int) -> Topology:
    """Build seven switches with a host each, random links, and costs of 1 to 3."""
    rng = random.Random(seed)
    topology = Topology("random")
    for i in range(1, 8):
        topology.add_host(f"h{i}")
        topology.add_switch(f"s{i}")
        topology.add_link(f"h{i}", f"s{i}", **LINK)
    links = {(rng.randint(1, i - 1), i) for i in range(2, 8)}
    links |= {(i, j) for i in range(1, 8) for j in range(i + 1, 8) if rng.random() < 0.2}
    for i, j in sorted(links):
        topology.add_link(f"s{i}", f"s{j}", cost=rng.randint(1, 3), **LINK)
    return topology


PERIOD_S = 1
"""In which one element fails, packets are sent, and it comes back: later than a packet in a loop lives."""


def test_every_failure_between_all_pairs(program: Program) -> None:
    """In a few networks every link, then every switch, fails once; exactly the pairs that the coverage protects get through."""
    outcomes: Counter[tuple[str, str]] = Counter()
    for seed in range(4):
        outcomes += every_failure(program, pairs_topology(seed))
    assert min(outcomes["link", kind] for kind in ("unaffected", "lfa", "remote-lfa", "none")) > 5
    assert min(outcomes["switch", kind] for kind in ("lfa", "remote-lfa")) > 0


def every_failure(program: Program, topology: Topology) -> Counter[tuple[str, str]]:
    """Check that packets between hosts arrive as predicted while each link or switch is down; count them by (element, reason).

    If a switch fails, its neighbour's alternate helps if it is node-protecting. A link-protecting one may help or not; then packets
    may loop until their TTL ends. Packets to the failed switch itself loop or are dropped. Packets of which nothing is predicted
    are not counted.
    """
    controller = IpFrrController(reroute=False, reaction_delay_ms=0)
    network = SimulatedNetwork(topology, program, [controller], detection_delay_ms=1)
    links = [link.name for link in topology.links if link.a in topology.switches]
    failures = [*links, *topology.switches]
    stream = {"packets_per_s": 1 / PERIOD_S, "start_s": PERIOD_S / 2, "stop_s": PERIOD_S * len(failures)}
    flows = {
        (a, b): network.add(UdpStream(source=a, destination=b, **stream)) for a, b in permutations(topology.hosts, 2)
    }
    for i, name in enumerate(failures):
        set_state = network.set_link if "-" in name else network.set_node
        set_state(name, up=False, at_s=(i + 0.2) * PERIOD_S)
        set_state(name, up=True, at_s=(i + 0.8) * PERIOD_S)
        network.run((i + 1) * PERIOD_S)
        if "-" in name:
            assert all(network.clients[s].counter("IpfrrIngress.ttl_expired", 0)[0] == 0 for s in topology.switches)
    protection = {(row.switch, row.destination): row for row in controller.coverage()}
    outcomes: Counter[tuple[str, str]] = Counter()
    for (a, b), flow in flows.items():
        arrived = set(network.received(flow).sequence)
        for i, name in enumerate(failures):
            expected, how = fate(protection, f"s{a[1:]}", f"s{b[1:]}", name)
            if expected is not None:
                assert (i in arrived) == expected, f"{a} to {b}, {name}: {how}"
                outcomes["link" if "-" in name else "switch", how] += 1
    return outcomes


def fate(
    protection: dict[tuple[str, str], Protection], source: str, destination: str, failed: str
) -> tuple[bool | None, str]:
    """Return True if a packet arrives while ``failed`` is down, False if not, None if it may or may not; and the reason."""
    path = [source]
    while path[-1] != destination:
        path.append(protection[path[-1], destination].primary)
    if failed in (source, destination):
        return False, "end"
    hops = [hop for hop in pairwise(path) if failed == hop[1] or set(failed.split("-")) == set(hop)]
    if not hops:
        return True, "unaffected"
    row = protection[hops[0][0], destination]
    if "-" in failed:
        return row.alternate != "none", row.alternate
    return {"node": True, "link": None, "none": False}[row.protects], row.alternate


def test_a_parallel_link_is_used_at_once_and_then(program: Program) -> None:
    """By the data plane as an alternate, and by both controllers after their reaction."""
    topology = network_of(("s1", "s2", 1), ("s1", "s2", 3), hosts=("s1", "s2"))
    frr = Run(program, topology, controller=IpFrrController(reaction_delay_ms=100)).fail("s1-s2")
    assert near(frr.lost, DETECTION_MS + 1)
    assert near(frr.counted("s1", "lfa_repairs"), 100)
    plain = Run(compile_router(), topology, controller=RouterController(reroute=True, reaction_delay_ms=100))
    assert near(plain.fail("s1-s2").lost, DETECTION_MS + 100 + 1)


@pytest.mark.parametrize("topology", [square(), ring(6, "s3")], ids=["lfa", "remote lfa"])
def test_both_executors_and_every_run_are_alike(program: Program, topology: Topology) -> None:
    def log(executor: str) -> tuple[object, ...]:
        run = Run(program, topology, executor=executor).fail("s1-s2")
        counters = {
            (name, counter.name): client.counters(counter.name)
            for name, client in run.network.clients.items()
            for counter in client.p4info.counters
        }
        return run.network.received(run.flow), counters

    assert log("jit") == log("interpreter") == log("jit")


def test_a_hundred_switches(program: Program) -> None:
    """Their alternates are computed and installed; a host on the other side of a long ring is reached around the failure."""
    topology = ring(100, "s40")
    run = Run(program, topology).fail("s1-s2")
    assert near(run.lost, DETECTION_MS + 1)
    assert run.counted("s1", "remote_lfa_repairs") > 0
    assert all(row.unprotected == 0 for row in run.controller.link_coverage())  # type: ignore[attr-defined]


def test_what_is_refused() -> None:
    with pytest.raises(NetworkError, match="a repair tunnel needs 40 to 65535"):
        IpFrrController(reaction_delay_ms=0, mtu=39)
    with pytest.raises(NetworkError, match="there are no alternates yet"):
        IpFrrController(reaction_delay_ms=0).coverage()
    topology = Topology("addresses")
    topology.add_host("h1", "10.255.3.1/24")
    topology.add_switch("s1")
    topology.add_link("h1", "s1")
    with pytest.raises(NetworkError, match=r"host 'h1': 10\.255\.3\.1/24 is in 10\.255\.0\.0/16"):
        SimulatedNetwork(topology, compile_ipfrr(), [IpFrrController(reaction_delay_ms=0)])
