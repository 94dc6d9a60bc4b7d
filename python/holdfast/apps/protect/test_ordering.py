"""Order behind elimination: vector repairs what the faster path lost, and an ordering function in front of the host's link undoes
the disorder that this makes."""

from __future__ import annotations

import pytest

from holdfast import SimulatedNetwork, TcpTransfer, UdpStream
from holdfast._core import Program
from holdfast.apps.protect import Acceptance, ProtectController, compile_protect
from holdfast.topology import Topology

ORDERING = {"max_delay_ms": 5, "take_any_ms": 500}
VECTOR = Acceptance("vector", history=64)


def diamond(ordering: object = None, hosts: int = 2, host_mtu: int | None = None, rate_bps: float = 1e9) -> Topology:
    """Build a network of h1 at a and the other hosts at z, over a fast path that loses packets and one that takes 3 ms more.

    Both paths have jitter.
    """
    t = Topology("diamond")
    for name in ("a", "m1", "m2", "z"):
        t.add_switch(name)
    t.add_host("h1")
    t.add_link("h1", "a", rate_bps=rate_bps, queue_bytes=10_000_000)
    for i in range(2, hosts + 1):
        t.add_host(f"h{i}")
        t.add_link("z", f"h{i}", ordering=ordering if i == 2 else None, mtu_bytes=host_mtu)
    jitter = {"distribution": "uniform", "high_ms": 0.5}
    t.add_link("a", "m1", loss=0.1, jitter=jitter)
    t.add_link("m1", "z", jitter=jitter)
    t.add_link("a", "m2", delay_ms=1.5, jitter=jitter)
    t.add_link("m2", "z", delay_ms=1.5, jitter=jitter)
    return t


def build(program: Program, t: Topology, **parameters: object) -> tuple[SimulatedNetwork, ProtectController]:
    controller = ProtectController(reaction_delay_ms=1, mtu=1600, **parameters)  # type: ignore[arg-type]
    return SimulatedNetwork(t, program, [controller], seed=3), controller


def stream(network: SimulatedNetwork, destination: str = "h2") -> int:
    return network.add(
        UdpStream(source="h1", destination=destination, packets_per_s=5000, payload_bytes=1400, stop_s=0.4)
    )


def ordering_counters(network: SimulatedNetwork, link: str) -> dict[str, int]:
    counters = network.ordering_counters(link)
    assert counters is not None
    return counters


def test_vector_repairs_and_reorders(program: Program) -> None:
    network, _ = build(program, diamond(), protect=[("h1", "h2")], acceptance=VECTOR)
    flow = stream(network)
    network.run(1)
    statistics = network.statistics(flow)
    assert (statistics.sent, statistics.lost, statistics.duplicated) == (2000, 0, 0)
    assert statistics.reordered > 150


@pytest.mark.parametrize("sn_bits", [32, 8])
def test_order_is_restored(sn_bits: int) -> None:
    program = compile_protect({"SN_BITS": str(sn_bits)})
    ordering = {**ORDERING, "sequence_bits": sn_bits}
    # The MTU is that of the packet without its number.
    network, _ = build(program, diamond(ordering, host_mtu=1428), protect=[("h1", "h2")], acceptance=VECTOR)
    flow = stream(network)
    network.run(1)
    statistics = network.statistics(flow)
    assert (statistics.sent, statistics.lost, statistics.duplicated) == (2000, 0, 0)
    assert statistics.reordered == 0
    counters = ordering_counters(network, "z-h2")
    assert counters.held_back == counters.filled > 150
    assert counters.late == counters.timed_out == counters.held == 0
    # A packet waits for the slower path at most, not for the longest time allowed.
    assert statistics.latency_max_ps is not None
    assert statistics.latency_max_ps < 4.5e9


def test_a_buffer_that_is_too_small_loses_order_and_nothing_else(program: Program) -> None:
    t = diamond({**ORDERING, "buffer_packets": 2})
    network, _ = build(program, t, protect=[("h1", "h2")], acceptance=VECTOR)
    flow = stream(network)
    network.run(1)
    statistics = network.statistics(flow)
    counters = ordering_counters(network, "z-h2")
    assert statistics.lost == 0
    assert counters.overflowed > 0
    assert counters.max_held == 2
    assert statistics.reordered == counters.late > 0


def test_each_host_there_has_its_own_connection(program: Program) -> None:
    pairs = [("h1", "h2"), ("h1", "h3"), ("h1", "h2")]
    network, controller = build(program, diamond(ORDERING, hosts=3), protect=pairs, acceptance=VECTOR)
    ends = [(c.ingress, c.egress) for c in controller.connections]
    assert sorted(ends) == [("a", "z"), ("a", "z"), ("z", "a")]
    ordered, other = stream(network), stream(network, "h3")
    network.run(1)
    first, second = network.statistics(ordered), network.statistics(other)
    assert (first.lost, second.lost) == (0, 0)
    assert second.reordered > 100
    counters = ordering_counters(network, "z-h2")
    # The fast path lost the first packet here: the second one came first, and was taken as any.
    assert first.reordered == counters.late == 1
    # Had they a connection in common, the numbers of the other host's packets would have been waited for.
    assert counters.timed_out == 0
    # On the way back nothing is asked for, so what they share stays shared.
    assert network.ordering_counters(network.topology.link_names()[0]) is None


def test_what_is_not_protected_passes(program: Program) -> None:
    network, _ = build(program, diamond(ORDERING))
    flow = stream(network)
    network.run(1)
    statistics = network.statistics(flow)
    counters = ordering_counters(network, "z-h2")
    assert counters.untagged == statistics.delivered > 0
    assert counters.held_back == 0


def test_tcp_retransmits_nothing(program: Program) -> None:
    retransmitted = []
    for ordering in (None, ORDERING):
        # 25 packets in the difference of the delays: the history knows them all.
        t = diamond(ordering, rate_bps=1e8)
        network, _ = build(program, t, protect=[("h1", "h2")], acceptance=VECTOR)
        flow = network.add_tcp(
            TcpTransfer(source="h1", destination="h2", application="transfer", transfer_bytes=2_000_000)
        )
        network.run(5)
        statistics = network.tcp_statistics(flow)
        assert statistics.finished_ps is not None
        retransmitted.append(statistics.segments_retransmitted)
    assert retransmitted[0] > 0
    assert retransmitted[1] == 0
