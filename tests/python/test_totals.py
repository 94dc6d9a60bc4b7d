"""Streams without a log of their packets: the same numbers, in memory that does not grow."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest

from holdfast import HoldfastError, Jitter, SimulatedNetwork, Topology, UdpStream, results
from holdfast.apps.router import RouterController, compile_router
from holdfast.errors import ParameterError
from holdfast.parameters import PS_PER_MS

LOGGED_BYTES = 32
PERCENTILES = ("latency_p50_ps", "latency_p99_ps")


def network(loss: float = 0.0) -> SimulatedNetwork:
    t = Topology("line")
    t.add_host("h1")
    t.add_host("h2")
    t.add_switch("s1")
    t.add_link("h1", "s1", delay_ms=0.01)
    jitter = Jitter(distribution="uniform", low_ms=0, high_ms=1) if loss else None
    t.add_link("s1", "h2", delay_ms=0.01, loss=loss, jitter=jitter)
    return SimulatedNetwork(t, compile_router(), [RouterController(reroute=False, reaction_delay_ms=1)])


def stream(packets: int, *, log_packets: bool) -> UdpStream:
    return UdpStream(
        source="h1",
        destination="h2",
        packets_per_s=100_000,
        payload_bytes=100,
        stop_s=packets / 100_000,
        log_packets=log_packets,
    )


def test_totals_are_what_the_log_says() -> None:
    both = []
    for log_packets in (True, False):
        net = network(loss=0.1)
        flow = net.add(stream(3000, log_packets=log_packets))
        net._core.apply(target={"node": "h1"}, up=False, at_ps=5 * PS_PER_MS)
        net._core.apply(target={"node": "h1"}, up=True, at_ps=6 * PS_PER_MS)
        net.run(0.1)
        both.append(net.statistics(flow))
        assert net.statistics(flow, host="h2") == both[-1]
        assert net.statistics(flow, host="h1").delivered == 0
    log, totals = both
    assert log.sent == 2900
    assert min(log.lost, log.reordered) > 100
    assert totals == replace(log, **dict.fromkeys(PERCENTILES))


def test_what_needs_the_log_says_so() -> None:
    net = network()
    flow = net.add(stream(10, log_packets=False))
    net.run(1)
    for ask in (net.sent, net.received, lambda it: results.packets(net, it)):
        with pytest.raises(HoldfastError, match=r"flow 0 keeps totals alone.*log_packets"):
            ask(flow)
    with pytest.raises(HoldfastError, match="log_packets"):
        net.received(flow, host="h2")
    with pytest.raises(ParameterError, match="log_packets=False belongs to constant spacing"):
        UdpStream(source="h1", destination="h2", stop_s=1, spacing="poisson", log_packets=False)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def growth(packets: int, *, log_packets: bool) -> int:
    """Return by how many bytes the memory grows while ``packets`` packets are sent, after a hundredth as many."""
    net = network()
    flow = net.add(stream(packets, log_packets=log_packets))
    net.run(0.01 * packets / 100_000)
    before = resident_bytes()
    net.run(1 + packets / 100_000)
    assert net.statistics(flow).delivered == packets
    return resident_bytes() - before


def test_memory_does_not_grow_without_a_log() -> None:
    # In a new process each: what earlier tests have freed would be used again, and nothing would grow.
    def alone(packets: int, *, log_packets: bool) -> int:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            return pool.submit(growth, packets, log_packets=log_packets).result()

    few, many = (alone(packets, log_packets=False) for packets in (100_000, 400_000))
    assert max(few, many) < 1 << 20
    # What is measured does show a log.
    assert alone(400_000, log_packets=True) > 400_000 * LOGGED_BYTES / 2
