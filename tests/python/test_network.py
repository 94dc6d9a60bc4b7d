"""The interface of the simulated network: controllers' events and times, and refusals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    HoldfastError,
    NetworkError,
    Ping,
    Program,
    SimulatedNetwork,
    TcpOptions,
    TcpTransfer,
    Topology,
    UdpStream,
    results,
)
from holdfast._core import read_pcap
from holdfast.apps.router import RouterController, compile_router
from holdfast.controller import Controller
from holdfast.p4runtime import DigestList, IdleEntries
from holdfast.parameters import PS_PER_MS


def line() -> Topology:
    t = Topology("line")
    t.add_host("h1")
    t.add_host("h2")
    t.add_switch("s1")
    t.add_switch("s2")
    t.add_link("h1", "s1")
    t.add_link("s1", "s2", delay_ms=1)
    t.add_link("s2", "h2")
    return t


class Watcher(Controller):
    """Routes s1's way to h2 to itself and writes down what happens when."""

    def __init__(self, reaction_delay_ms: float) -> None:
        super().__init__(reaction_delay_ms=reaction_delay_ms)
        self.seen: list[tuple[object, ...]] = []
        self.network: SimulatedNetwork | None = None

    def now_ms(self) -> float:
        assert self.network is not None
        return self.network.now_ps / PS_PER_MS

    def on_start(self) -> None:
        self.clients["s1"].insert(
            "RouterIngress.ipv4_lpm", {"hdr.ipv4.dst_addr": "10.0.2.0/24"}, "RouterIngress.punt", {}
        )
        self.plane.call_later(5, lambda: self.seen.append(("timer", self.now_ms())))

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        self.seen.append(("port", self.now_ms(), switch, port, up))

    def on_packet_in(self, switch: str, packet: bytes, metadata: Mapping[str, int]) -> None:
        self.seen.append(("packet", round(self.now_ms()), switch, dict(metadata), packet[12:14].hex()))


def test_events_reach_controllers_after_detection_and_reaction() -> None:
    watcher = Watcher(reaction_delay_ms=20)
    network = SimulatedNetwork(line(), compile_router(), [watcher], detection_delay_ms=10)
    watcher.network = network
    network.add(UdpStream(source="h1", destination="h2", packets_per_s=10, start_s=0.05, stop_s=0.1))
    network.set_link("s1-s2", up=False, at_s=0.2)
    network.set_link("s1-s2", up=True, at_s=0.3)
    network.run(1)
    assert sorted(watcher.seen, key=lambda event: (event[1], str(event))) == [
        ("timer", 5.0),
        ("packet", 70, "s1", {"ingress_port": 1, "_pad": 0}, "0800"),
        ("port", 230.0, "s1", 2, False),
        ("port", 230.0, "s2", 1, False),
        ("port", 330.0, "s1", 2, True),
        ("port", 330.0, "s2", 1, True),
    ]


def test_a_failed_switch_is_routed_around_only_where_there_is_a_way() -> None:
    controller = RouterController(reroute=True, reaction_delay_ms=1)
    network = SimulatedNetwork(line(), compile_router(), [controller], detection_delay_ms=1)
    flow = network.add(Ping(source="h1", destination="h2", interval_ms=10, stop_s=0.3))
    network.set_node("s2", up=False, at_s=0.1)
    network.set_node("s2", up=True, at_s=0.2)
    network.run(1)
    statistics = network.statistics(flow)
    assert statistics.sent == 30
    assert statistics.lost == 11


def poisson_times(seed: int) -> list[int]:
    network = SimulatedNetwork(
        line(), compile_router(), [RouterController(reroute=False, reaction_delay_ms=0)], seed=seed
    )
    flow = network.add(UdpStream(source="h1", destination="h2", packets_per_s=2000, spacing="poisson", stop_s=1))
    network.run(1.1)
    assert network.statistics(flow).lost == 0
    return network.sent(flow).sent_ps.tolist()


def test_a_poisson_stream_is_drawn_from_the_seed() -> None:
    times = poisson_times(1)
    assert times == poisson_times(1) != poisson_times(2)
    # Mean 2000, standard deviation 45; gaps differ.
    assert 1800 < len(times) < 2200
    gaps = [b - a for a, b in pairwise(times)]
    assert min(gaps) * 50 < max(gaps)


def test_refusals() -> None:
    program = compile_router()
    with pytest.raises(NetworkError, match="no program for switch 's2'"):
        SimulatedNetwork(line(), {"s1": program})
    with pytest.raises(NetworkError, match="negative"):
        SimulatedNetwork(line(), program, detection_delay_ms=-1)
    with pytest.raises(NetworkError, match="negative"):
        RouterController(reroute=True, reaction_delay_ms=-1)
    with pytest.raises(NetworkError, match="there is a program for 's3', which is not a switch of the topology"):
        SimulatedNetwork(line(), {"s1": program, "s2": program, "s3": program})
    for seed in (-1, 1 << 64, 1.0):
        with pytest.raises(NetworkError, match=f"seed is {seed}; it must be a whole number from 0"):
            SimulatedNetwork(line(), program, seed=seed)  # type: ignore[arg-type]
    network = SimulatedNetwork(line(), program)
    with pytest.raises(NetworkError, match="no host 'h9'"):
        network.add(Ping(source="h1", destination="h9", stop_s=1))
    with pytest.raises(NetworkError, match="no switch 'h1'"):
        network.set_node("h1", up=False)


@pytest.mark.parametrize(
    ("time", "message"),
    [
        (-1, "is -1; it cannot be negative"),
        (math.nan, "is nan; it must be a number"),
        ("soon", "is 'soon'; it must be a number"),
        (math.inf, "is inf; it must be at most 9e"),
        (1e30, r"is 1e\+30; it must be at most 9e"),
    ],
)
def test_times_that_are_none(time: Any, message: str) -> None:
    network = SimulatedNetwork(line(), compile_router())
    for parameter, give in (
        ("until_s", lambda: network.run(time)),
        ("at_s", lambda: network.set_link("s1-s2", up=False, at_s=time)),
        ("at_s", lambda: network.set_node("s1", up=False, at_s=time)),
        ("delay_ms", lambda: network.call_later(time, lambda: None)),
        ("detection_delay_ms", lambda: SimulatedNetwork(line(), compile_router(), detection_delay_ms=time)),
        ("reaction_delay_ms", lambda: RouterController(reroute=True, reaction_delay_ms=time)),
    ):
        with pytest.raises(NetworkError, match=f"^{parameter} {message}"):
            give()
    network.run(0.5)
    assert network.now_ps == 500 * PS_PER_MS


def test_times_that_have_passed() -> None:
    network = SimulatedNetwork(line(), compile_router())
    network.run(2)
    network.run(2)
    stream = {"source": "h1", "destination": "h2", "start_s": 1}
    for parameter, give in (
        ("until_s", lambda: network.run(1)),
        ("at_s", lambda: network.set_link("s1-s2", up=False, at_s=1)),
        ("at_s", lambda: network.set_node("s1", up=False, at_s=1)),
        ("start_s", lambda: network.add(UdpStream(**stream, stop_s=3))),
        ("start_s", lambda: network.add(Ping(**stream, stop_s=3))),
        ("start_s", lambda: network.add_tcp(TcpTransfer(**stream))),
    ):
        with pytest.raises(NetworkError, match=f"^{parameter} is 1 s, which has passed: it is 2 s"):
            give()


def test_captures(tmp_path: Path) -> None:
    topology = line()
    topology.add_packet_generator("s1", 9, bytes(60), period_ms=1, count=3)
    network = SimulatedNetwork(topology, compile_router(), [RouterController(reroute=False, reaction_delay_ms=0)])
    for node, port, message in (
        ("s9", 1, "there is no host or switch 's9'"),
        ("h1", 1, r"'h1' has no port 1 \(known: 0\)"),
        ("s1", 7, r"'s1' has no port 7 \(known: 1, 2, 9, 510\)"),
        ("s1", 1, "No such file or directory"),
    ):
        with pytest.raises(HoldfastError, match=message):
            network.capture(node, port, tmp_path / "absent/x.pcap")
    ways = {"h1": 0, "s1": 2, "s2": 1, "h2": 0}
    for node, port in ways.items():
        network.capture(node, port, tmp_path / f"{node}.pcap")
    network.capture("s1", 9, tmp_path / "generated.pcap")
    network.add(UdpStream(source="h1", destination="h2", stop_s=0.01))
    network.run(1)
    times = [[time for time, _ in read_pcap(tmp_path / f"{node}.pcap")] for node in ways]
    assert [len(of_node) for of_node in times] == [10] * 4
    # 1,042 bytes and the physical layer's 24 take 8.528 us at 1 Gb/s; the link between the switches adds a millisecond.
    assert [t - times[0][0] for t in (times[1][0], times[2][0], times[3][0])] == [
        8_528_000,
        1_017_056_000,
        1_025_584_000,
    ]
    assert [data for _, data in read_pcap(tmp_path / "generated.pcap")] == [bytes(60)] * 3


def test_traffic_that_makes_no_sense_is_one_sentence() -> None:
    pair = {"source": "h1", "destination": "h2", "stop_s": 1}
    for refused, message in (
        (lambda: UdpStream(**{**pair, "stop_s": math.inf}), "UdpStream: stop_s: Input should be a finite number"),
        (
            lambda: UdpStream(**pair, packets_per_s=1e-320),
            "UdpStream: packets_per_s: Input should be greater than or.*",
        ),
        (lambda: Ping(**pair, interval_ms=1e-9), "Ping: interval_ms: Input should be greater than or equal to 0.00001"),
        (lambda: UdpStream(**pair, rate=1), r"UdpStream: rate: unknown key \(known: source, .*"),
        (lambda: UdpStream(source="h1", destination="h2"), "UdpStream: stop_s: Field required"),
        (lambda: UdpStream(**pair, start_s=2), r"UdpStream: stop_s \(1\) is before start_s \(2\)"),
        (lambda: Ping(**pair, start_s=2), r"Ping: stop_s \(1\) is before start_s \(2\)"),
        (lambda: Ping(**pair, interval_ms=1e30), "Ping: interval_ms: Input should be less than or equal to 9000000000"),
        (lambda: TcpOptions.linux("bbr"), "TcpOptions: congestion: Linux has 'reno' and 'cubic' here, not 'bbr'"),
    ):
        with pytest.raises(HoldfastError, match=f"^{message}$"):
            refused()


FLOODING = """
#include <core.p4>
#include <v1model.p4>
struct headers_t {}
struct metadata_t {}
parser P(packet_in b, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control C(inout headers_t h, inout metadata_t m) { apply {} }
control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply { s.mcast_grp = 1; } }
control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply {} }
control D(packet_out b, in headers_t h) { apply {} }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


def test_a_stream_to_a_multicast_group() -> None:
    star = Topology("star")
    star.add_switch("s1")
    for host, delay_ms in (("h1", 0), ("h2", 1), ("h3", 2)):
        star.add_host(host)
        star.add_link(host, "s1", delay_ms=delay_ms)
    network = SimulatedNetwork(star, Program.compile_text(FLOODING, "flooding.p4"))
    network.clients["s1"].multicast_group(1, [(2, 1), (3, 1)])
    flow = network.add(UdpStream(source="h1", destination="239.1.2.3", stop_s=0.01))
    network.set_link("h3-s1", up=False, at_s=0.0055)
    network.run(1)
    near, far = (results.packets(network, flow, host=host) for host in ("h2", "h3"))
    assert near["received_ps"].null_count() == 0 and near.height == far.height == 10
    # The sixth left at 5 ms and was on the way for 2; the fourth had arrived.
    assert far["received_ps"].is_null().to_list() == [False] * 4 + [True] * 6
    assert (far["received_ps"] - near["received_ps"])[:4].to_list() == [PS_PER_MS] * 4
    assert network.statistics(flow, host="h3").lost == 6
    with pytest.raises(NetworkError, match=r"no host '10\.9\.9\.9'"):
        network.add(UdpStream(source="h1", destination="10.9.9.9", stop_s=2))


LEARNING = """
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
struct headers_t { ethernet_t ethernet; }
struct metadata_t {}
struct learned_t { bit<48> address; bit<9> port; }
parser P(packet_in b, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start { b.extract(h.ethernet); transition accept; }
}
control C(inout headers_t h, inout metadata_t m) { apply {} }
control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    apply {
        digest<learned_t>(1, { h.ethernet.src, s.ingress_port });
        s.egress_spec = s.ingress_port == 1 ? 9w2 : 9w1;
    }
}
control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply {} }
control D(packet_out b, in headers_t h) { apply { b.emit(h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


class Learner(Controller):
    """Writes down which address was learned where, and when."""

    def __init__(self) -> None:
        super().__init__(reaction_delay_ms=3)
        self.learned: list[tuple[str, object]] = []

    def on_start(self) -> None:
        for client in self.clients.values():
            client.enable_digest("learned_t", max_timeout_ns=2_000_000, max_list_size=10, ack_timeout_ns=0)

    def on_digest(self, switch: str, digest: DigestList) -> None:
        self.learned += [(switch, value) for value in digest.values]
        self.clients[switch].acknowledge(digest)


def test_digests_reach_controllers() -> None:
    learner = Learner()
    network = SimulatedNetwork(line(), Program.compile_text(LEARNING), [learner])
    network.add(UdpStream(source="h1", destination="h2", packets_per_s=1000, stop_s=0.004))
    network.run(1)
    # Four packets in 3 ms, lists of 2 ms without repetitions: two lists from each switch.
    assert len(learner.learned) == 4
    assert {switch for switch, _ in learner.learned} == {"s1", "s2"}
    assert {str(value) for _, value in learner.learned} == {"{'address': 2199023255553, 'port': 1}"}


AGING = LEARNING.replace(
    "    apply {\n        digest",
    """    action forward(bit<9> port) { s.egress_spec = port; }
    table known {
        key = { h.ethernet.src: exact; }
        actions = { forward; NoAction; }
        default_action = NoAction();
        support_timeout = true;
    }
    apply {
        known.apply();
        digest""",
)


class Ager(Controller):
    """Removes what is idle, and writes down when."""

    def __init__(self) -> None:
        super().__init__(reaction_delay_ms=3)
        self.network: SimulatedNetwork | None = None
        self.removed: list[tuple[float, str, object]] = []

    def on_start(self) -> None:
        for source in (0x0200_0000_0001, 0x0200_0000_0063):  # h1, and nobody
            match = {"src": source}
            self.clients["s1"].insert("known", match, "forward", {"port": 2}, metadata=b"m", idle_timeout_ns=10_000_000)

    def on_idle_timeout(self, switch: str, idle: IdleEntries) -> None:
        assert self.network is not None
        for entry in idle.entries:
            assert (entry.metadata, entry.idle_timeout_ns) == (b"m", 10_000_000)
            (source,) = entry.match.values()
            assert isinstance(source, int)
            self.clients[switch].delete("known", {"src": source})
            self.removed.append((self.network.now_ps / PS_PER_MS, switch, source))


def test_idle_entries_reach_controllers() -> None:
    ager = Ager()
    network = ager.network = SimulatedNetwork(line(), Program.compile_text(AGING), [ager])
    network.add(UdpStream(source="h1", destination="h2", packets_per_s=1000, stop_s=0.03))
    network.run(1)
    (first, second) = ager.removed
    assert first == (13.0, "s1", 0x0200_0000_0063)  # after ten milliseconds without a packet, and the reaction
    assert second[1:] == ("s1", 0x0200_0000_0001)
    assert 41 < second[0] < 43
    assert ager.clients["s1"].read_table("known") == []
