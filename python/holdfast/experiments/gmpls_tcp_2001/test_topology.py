"""The networks have the paper's round-trip times and shared links."""

from __future__ import annotations

import pytest

from holdfast import Ping, SimulatedNetwork, TopologyError, UdpStream
from holdfast.apps.mpls import Mechanism, MplsController, Recovery, compile_mpls
from holdfast.experiments.gmpls_tcp_2001.topology import (
    CASES,
    FAILING_LINK,
    Parameters,
    Scenario,
    case_study,
    rtt_change,
    timing,
)
from holdfast.parameters import PS_PER_MS

FAST = Parameters(access_delays_ms=[55], backbone_bps=10_000_000_000)
"""The mean of access delays, and no time to speak of for sending."""


def run(scenario: Scenario, source: str, sink: str, *, fail: bool) -> tuple[SimulatedNetwork, float]:
    controller = MplsController(connections=scenario.connections)
    network = SimulatedNetwork(scenario.topology, compile_mpls(), [controller])
    flow = network.add(Ping(source=source, destination=sink, interval_ms=50, start_s=1, stop_s=2))
    network.set_link(FAILING_LINK, up=not fail, at_s=0.1)
    network.run(4)
    statistics = network.statistics(flow)
    assert statistics.lost == 0
    return network, float(statistics.latency_p50_ps or 0) / PS_PER_MS


@pytest.mark.parametrize("name", CASES)
def test_round_trips_of_the_case_study(name: str) -> None:
    """216 ms on average (section 8.1), and what table 8 adds to it."""
    case = CASES[name]
    assert case.a + case.b + case.c == 51
    for mechanism, extra in (
        (Mechanism.LOCAL, 2 * case.dl),
        (Mechanism.PATH, 2 * case.dp),
        (Mechanism.LOOPBACK, 2 * case.dp + 2 * case.a + 2 * case.c),
    ):
        scenario = case_study(FAST, case, Recovery(mechanism))
        assert run(scenario, "S0", "B", fail=False)[1] == pytest.approx(216, abs=0.1)
        assert run(scenario, "S0", "B", fail=True)[1] == pytest.approx(216 + extra, abs=0.1)


@pytest.mark.parametrize("d_ms", [1, 2, 10, 20, 50, 100])
def test_round_trips_of_the_rtt_study(d_ms: float) -> None:
    """120 ms on average, and 2(d - 1) ms more on the backup (section 6.1)."""
    scenario = rtt_change(FAST, d_ms)
    assert run(scenario, "S0", "B", fail=False)[1] == pytest.approx(120, abs=0.1)
    assert run(scenario, "S0", "B", fail=True)[1] == pytest.approx(120 + 2 * (d_ms - 1), abs=0.1)


@pytest.mark.parametrize("shared", [True, False])
def test_the_timing_study_shares_a_link_after_the_failure(shared: bool) -> None:
    scenario = timing(FAST, shared=shared)
    assert bool(scenario.fixed_sources) == shared
    network, _ = run(scenario, "S0", "B", fail=True)
    assert network.link_counters("LSR5-LSR6").a_to_b.packets == 20
    if scenario.fixed_sink is not None:
        network, _ = run(scenario, "F0", scenario.fixed_sink, fail=False)
        assert network.link_counters("LSR5-LSR6").a_to_b.packets == 20


def test_rates_and_buffers() -> None:
    """A source at full speed gets 80 % of the backbone's rate; a burst finds the buffer's packets, and one under way."""
    parameters = Parameters(access_delays_ms=[1, 2], backbone_bps=8_000_000, buffer_packets=50)
    scenario = rtt_change(parameters, 1)
    network = SimulatedNetwork(scenario.topology, compile_mpls(), [MplsController(connections=scenario.connections)])
    flow = network.add(UdpStream(source="S0", destination="B", packets_per_s=1000, payload_bytes=1000 - 42, stop_s=10))
    network.run(12)
    statistics = network.statistics(flow)
    # 24 bytes more take time on the wire.
    assert statistics.delivered == pytest.approx(10 * 6_400_000 / (8 * 1024), abs=60)
    burst = network.add(
        UdpStream(source="S0", destination="B", packets_per_s=10**8, payload_bytes=958, start_s=20, stop_s=20.000001)
    )
    network.run(22)
    assert network.statistics(burst).sent == 100
    assert network.statistics(burst).delivered == 51


def test_parameters_out_of_range() -> None:
    for wrong in ({"access_percent": 0}, {"backbone_bps": -1}, {"buffer_packets": 0}, {"access_delays_ms": []}):
        with pytest.raises(TopologyError):
            Parameters(**{"access_delays_ms": [10], **wrong})  # type: ignore[arg-type]
