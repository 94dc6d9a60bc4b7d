"""The parts at tiny size: they measure what they claim, and every part writes its files."""

from __future__ import annotations

from fractions import Fraction

import pytest

from holdfast.experiments.bier_tofino_2021 import (
    live_stream,
    load,
    mixes,
    model,
    passes,
    provisioning,
    published,
    replication,
    restoration,
    restoration_live,
    throughput,
)
from holdfast.network import SimulatedNetwork


def test_whole_passes_have_the_mean() -> None:
    assert load.passes(Fraction(2)) == {2: 1}
    assert load.passes(Fraction(1, 4)) == {0: Fraction(3, 4), 1: Fraction(1, 4)}
    assert load.passes(Fraction(5, 2)) == {2: Fraction(1, 2), 3: Fraction(1, 2)}


@pytest.mark.parametrize("line_bps", [load.LINE_BPS, load.LINE_BPS // 100])
def test_packets_recirculate_as_often_as_they_ask(line_bps: int) -> None:
    """And nothing depends on the line rate, if all times are in proportion."""
    topology = load.star(3, 2, 100, line_bps)
    network = SimulatedNetwork(topology, load.rounds_program(), seed=1)
    stop_s = 100e-6 * load.LINE_BPS / line_bps
    flows = load.add_ring(network, 3, load.passes(Fraction(3, 2)), 0.1, stop_s)
    network.run(10 * stop_s)
    sent = [network.statistics(flow).sent for flow in flows]
    assert all(network.statistics(flow).delivered == count for flow, count in zip(flows, sent, strict=True))
    assert min(sent) > 20
    found = load.recirculated(network)
    assert found.offered == sum(count * (1 + n % 2) for n, count in enumerate(sent))
    assert found.lost == 0
    # Of a tenth of the run, half a transmission for each packet at each of two ports.
    seconds_each = (load.FRAME_BYTES + load.OVERHEAD_BYTES) * 8 / line_bps
    assert found.utilisation == pytest.approx(found.offered * seconds_each / 2 / (10 * stop_s), rel=1e-6)


def test_a_port_less_than_the_rule_says_loses_the_excess() -> None:
    as_many, one_less = (
        provisioning.measure(provisioning.point(Fraction(1), 4, missing, 0.4), 1) for missing in (0, 1)
    )
    assert as_many["lost"] == 0
    [excess] = [p["load"] for p in provisioning.POINTS if (p["recirculations"], p["utilisation_ratio"]) == (1, 4)][1:]
    assert one_less["loss_percent"] == pytest.approx(100 * (1 - 1 / excess), abs=6)
    assert one_less["utilisation"] > 0.99


@pytest.mark.parametrize("missing", [0, 1])
def test_the_rule_for_bier(missing: int) -> None:
    found = mixes.measure(mixes.point(10.0, 6, missing, run_ms=0.4), 1)
    assert found["lost_elsewhere"] == 0
    assert (found["lost"] > 0) == (missing > 0)
    assert (found["utilisation"] > 0.99) == (missing > 0)


def test_packets_of_other_sizes_break_the_rule() -> None:
    found = mixes.measure(mixes.point(2.5, 8, 0, mixes.SMALL_UNICAST, run_ms=0.1), 1)
    assert found["loss_percent"] > 5


def test_recirculation_is_enough_or_not() -> None:
    """The last next hop gets everything with n - 1 ports, and traditional multicast needs none."""
    enough = throughput.measure(throughput.point(3, 2, measured_us=50), 1)
    assert enough["last_gbps"] == pytest.approx(100, rel=0.01)
    assert enough["loss_of_a_pass"] == 0
    ipmc = throughput.measure(throughput.point(3, published.IPMC, replication="ipmc", measured_us=50), 1)
    assert ipmc["last_gbps"] == pytest.approx(100, rel=0.01)


def test_the_phase_decides_whose_packets_are_lost() -> None:
    """Packets that come back soon find the place that they made free; late ones find it taken."""
    early, late = (throughput.measure(throughput.point(3, 1, phase, measured_us=200), 1) for phase in (0.05, 0.95))
    assert early["last_gbps"] > 45
    assert late["last_gbps"] < 35
    for found in (early, late):
        # Packets that came through the port: all first passes that were carried, and the second passes of those.
        carried = 2 - 2 * found["loss_of_a_pass"]
        assert found["first_gbps"] == pytest.approx(100, rel=0.01)
        assert found["utilisation"] > 0.99
        assert 0 < carried < 2


@pytest.mark.parametrize(("bier_frr", "ip_frr"), restoration.CASES)
def test_what_reacts_decides_how_long_a_cut_lasts(bier_frr: bool, ip_frr: bool) -> None:
    waits_ms = {(True, True): 0.0, (True, False): restoration.IP_MS}.get((bier_frr, ip_frr), restoration.BIER_MS)
    found = restoration.measure({"bier_frr": bier_frr, "ip_frr": ip_frr, "signalling_ms": 3.0}, 1)
    waits_ms += 2 * 3.0 * (waits_ms > 0)
    at_least = restoration.DETECTION_MS + waits_ms
    assert at_least <= found["restoration_ms"] <= at_least + restoration.INTERVAL_MS + 0.01
    assert found["duplicated"] == found["reordered"] == 0
    assert found["lost"] == pytest.approx(at_least / restoration.INTERVAL_MS, abs=1.1)


def test_what_arrivals_say_of_a_cut() -> None:
    """It came at 4.5 ms and was detected at 5 ms; 7 is the next packet that arrived; 9 was lost elsewhere, and 2 came twice."""
    sent_ns = [number * 1_000_000 for number in range(11)]
    numbers = (0, 1, 2, 2, 3, 8, 7, 10)
    arrivals = [(number, sent_ns[number] + (600_000 if number == 7 else 700_000)) for number in numbers]
    observed = live_stream.Observed(sent_ns, {restoration.SUBSCRIBER: arrivals}, 4_500_000, 0)
    assert restoration_live.restored(observed) == {
        "restoration_ms": 3.1,
        # Packets 4 to 6 are lost, so the repair came between 6 ms and 7 ms.
        "after_detection_ms": 1.6,
        "waited_ms": 1.0,
        "lost": 3,
        "lost_elsewhere": 1,
        "duplicated": 1,
    }
    everything = {restoration.SUBSCRIBER: [(number, at_ns) for number, at_ns in enumerate(sent_ns)]}
    with pytest.raises(restoration_live.UndisturbedError):
        restoration_live.restored(live_stream.Observed(sent_ns, everything, 4_500_000, 0))


@pytest.mark.parametrize(
    ("way", "passes_made", "dropped"),
    [("recirculate", 3, 0), ("one-pass", 1, 6), ("clusters", 1, 0)],
)
def test_what_each_way_to_replicate_costs(way: str, passes_made: int, dropped: int) -> None:
    """Three next hops of eight neighbours, besides the BFIR; all get everything."""
    ports = replication.ALL if way == "recirculate" else 0
    small = {**replication.point(way, 3, ports), "neighbours": 8, "measured_us": 20}
    found = replication.measure(small, 1)
    assert found["last_gbps"] == pytest.approx(100, rel=0.05)
    assert found["passes"] == pytest.approx(passes_made, rel=0.05)
    assert found["copies_sent"] == pytest.approx(3, rel=0.05)
    assert found["copies_dropped"] == pytest.approx(dropped, abs=0.01)


def test_loss_of_passes_is_that_of_the_formula() -> None:
    found = passes.measure({"passes": 6, "target": 0.1, "run_ms": 0.3}, 1)
    assert 0.05 < found["loss_of_a_pass"] < 0.2
    assert found["loss"] == pytest.approx(model.loss_after(6, found["loss_of_a_pass"]), rel=0.1)
