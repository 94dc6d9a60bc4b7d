"""Latent errors in a network: one path is silently dead while traffic flows, every port up; and what is well is not reported."""

from __future__ import annotations

import pytest

from holdfast import SimulatedNetwork, UdpStream
from holdfast._core import Program
from holdfast.apps.protect import (
    Acceptance,
    Alarm,
    Flow,
    LatentErrorDetection,
    ProtectController,
)
from holdfast.apps.protect.program import ROUTE_TABLE
from holdfast.apps.protect.test_controller import MTU, ladder
from holdfast.errors import NetworkError
from holdfast.link import Jitter
from holdfast.topology import Topology

PERIOD_MS = 300.0
DETECTION = LatentErrorDetection(period_ms=PERIOD_MS, reset_period_ms=10_000)


def build(
    program: Program, t: Topology, packets_per_s: float, stop_s: float = 1.9, **parameters: object
) -> tuple[SimulatedNetwork, ProtectController, int]:
    controller = ProtectController(
        protect=[("h1", "h2")], reaction_delay_ms=1, mtu=MTU, latent_errors=DETECTION, **parameters  # type: ignore[arg-type]
    )  # fmt: skip
    network = SimulatedNetwork(t, program, [controller])
    flow = network.add(
        UdpStream(source="h1", destination="h2", packets_per_s=packets_per_s, payload_bytes=100, stop_s=stop_s)
    )
    return network, controller, flow


@pytest.mark.parametrize("packets_per_s", [60, 1000, 20_000])
@pytest.mark.parametrize("algorithm", ["window", "vector", "match"])
def test_a_removed_entry_is_reported_within_a_period(program: Program, packets_per_s: float, algorithm: str) -> None:
    """A transit node loses the host route of one path."""
    heard: list[Alarm] = []
    network, controller, flow = build(
        program, ladder(), packets_per_s, acceptance=Acceptance(algorithm), on_alarm=heard.append  # type: ignore[arg-type]
    )  # fmt: skip
    there = controller.find_connection("a", "z")
    assert there is not None
    broken_ms = 730.0
    key = {"dst_addr": f"{there.addresses[1]}/32"}
    network.call_later(broken_ms, lambda: controller.clients["m2"].delete(ROUTE_TABLE, key))
    network.run(2)
    assert network.statistics(flow).lost == 0, "nobody would have noticed"
    (alarm,) = controller.alarms
    assert heard == [alarm]
    assert (alarm.connection, alarm.path, alarm.nodes, alarm.raised) == (str(there), 2, ("a", "m2", "z"), True)
    assert broken_ms < alarm.time_ps / 1e9 <= broken_ms + PERIOD_MS
    assert alarm.expected > alarm.seen
    frame = controller.alarms_table()
    assert frame.row(0, named=True)["nodes"] == "a-m2-z"


def test_a_link_that_loses_everything_with_its_ports_up(program: Program) -> None:
    t = ladder()
    t.links[2] = t.links[2].model_copy(update={"loss": 1.0})
    network, controller, _ = build(program, t, 1000)
    network.run(1)
    assert [(alarm.connection[:3], alarm.nodes, alarm.raised) for alarm in controller.alarms] == [
        ("a-z", ("a", "m1", "z"), True)
    ], "the way back carries nothing, so nothing is said of it"
    assert controller.alarms[0].time_ps / 1e9 <= PERIOD_MS


def test_what_is_well_again_is_said(program: Program) -> None:
    network, controller, _ = build(program, ladder(), 1000)
    there = controller.connections[0]
    m1 = controller.clients["m1"]
    key = {"dst_addr": f"{there.addresses[0]}/32"}
    (entry,) = m1.read_table(ROUTE_TABLE, key)
    network.call_later(400, lambda: m1.delete(ROUTE_TABLE, key))
    network.call_later(1000, lambda: m1.insert(ROUTE_TABLE, key, entry.action, entry.params))
    network.run(2)
    assert [(alarm.path, alarm.raised) for alarm in controller.alarms] == [(1, True), (1, False)]
    assert 1000 < controller.alarms[1].time_ps / 1e9 <= 1000 + 2 * PERIOD_MS


@pytest.mark.parametrize("packets_per_s", [3, 30, 3000])
@pytest.mark.parametrize("algorithm", ["window", "vector"])
def test_no_false_alarm_under_jitter(program: Program, packets_per_s: float, algorithm: str) -> None:
    """Paths of different delay, jitter of several packets, rare losses, a cut that the ports tell of, and pauses."""
    t = ladder()
    for i, link in enumerate(t.links[2:], start=2):
        jitter = Jitter(distribution="uniform", high_ms=4)
        t.links[i] = link.model_copy(update={"jitter": jitter, "loss": 0.001, "delay_ms": 1.0 + i})
    network, controller, _ = build(program, t, packets_per_s, acceptance=Acceptance(algorithm))  # type: ignore[arg-type]
    network.add(
        UdpStream(
            source="h1", destination="h2", packets_per_s=5000, payload_bytes=100, start_s=0.9, stop_s=1.0,
            source_port=6000,
        )
    )  # fmt: skip
    network.set_link("a-m2", up=False, at_s=1.2)
    network.set_link("a-m2", up=True, at_s=1.8)
    network.run(3)
    assert controller.alarms == []


@pytest.mark.parametrize("begin_ms", [401, 450, 480, 499])
@pytest.mark.parametrize("duration_ms", [12, 60, 95, 250])
def test_a_failure_between_two_readings_is_known(program: Program, begin_ms: int, duration_ms: int) -> None:
    """Ports have told of it, even if all is up again when the counters are read."""
    controller = ProtectController(
        protect=[("h1", "h2")], reaction_delay_ms=5, mtu=MTU, latent_errors=DETECTION, acceptance=Acceptance("vector")
    )
    network = SimulatedNetwork(ladder(), program, [controller], detection_delay_ms=10)
    network.add(UdpStream(source="h1", destination="h2", packets_per_s=20_000, payload_bytes=100, stop_s=1))
    network.set_link("a-m1", up=False, at_s=begin_ms / 1000)
    network.set_link("a-m1", up=True, at_s=(begin_ms + duration_ms) / 1000)
    network.run(1.2)
    assert controller.alarms == []


def test_a_silently_dead_path_is_left(program: Program) -> None:
    """With repair_latent the copy moves, and a cut of the other path loses nothing."""
    network, controller, flow = build(program, ladder(), 1000, repair=True, repair_latent=True)
    there = controller.find_connection("a", "z")
    assert there is not None
    key = {"dst_addr": f"{there.addresses[0]}/32"}
    network.call_later(400, lambda: controller.clients["m1"].delete(ROUTE_TABLE, key))
    network.set_link("a-m2", up=False, at_s=1.2)
    network.run(2)
    assert [str(path) for path in there.paths] == ["a-m3-z", "a-m2-z"]
    assert [(r.number, str(r.after)) for r in controller.repairs][:1] == [(1, "a-m3-z")]
    assert network.statistics(flow).lost == 0
    assert [alarm.path for alarm in controller.alarms if alarm.raised] == [1]


def test_counts_by_path(program: Program) -> None:
    network, controller, _ = build(program, ladder(), 1000, stop_s=0.1)
    network.run(0.5)
    statistics = controller.statistics(controller.connections[0])
    first, second = statistics.paths
    assert (first.nodes, first.path, second.nodes, second.path) == ("a-m1-z", 1, "a-m2-z", 2)
    assert first.passed_packets + second.passed_packets == statistics.accepted_packets == 100
    assert first.passed_packets + first.discarded_packets == 100
    assert second.passed_packets + second.discarded_packets == 100
    assert (statistics.lost, statistics.discarded_packets) == (0, 100)
    table = controller.paths_table()
    assert table["passed_packets"].sum() == 100
    assert table.height == 4


def test_changing_the_algorithm_under_traffic(program: Program) -> None:
    """Second copies that are under way while the algorithm changes are not taken for first ones."""
    t = ladder()
    t.links[4] = t.links[4].model_copy(update={"delay_ms": 8.0})
    network, controller, flow = build(program, t, 2000)
    there = controller.find_connection("a", "z")
    assert there is not None
    algorithms = [
        Acceptance("vector"), Acceptance("match"), Acceptance("vector", history=32), Acceptance("window", reset_ms=0),
        Acceptance("vector"), Acceptance("window"),
    ]  # fmt: skip
    for i, acceptance in enumerate(algorithms):
        network.call_later(
            200 * (i + 1), lambda acceptance=acceptance: controller.change_connection(there, acceptance=acceptance)
        )
    network.run(2.5)
    statistics = network.statistics(flow)
    # Match passes a copy whenever it is not of the last number: on paths of different delay, both.
    assert statistics.lost == 0
    assert 390 <= statistics.duplicated <= 420
    assert there.acceptance == Acceptance("window")


def test_parameters(program: Program) -> None:
    with pytest.raises(NetworkError, match="repair_latent needs"):
        ProtectController(reaction_delay_ms=0, repair_latent=True)
    with pytest.raises(NetworkError, match="on_alarm needs"):
        ProtectController(reaction_delay_ms=0, on_alarm=print)
    controller = ProtectController(reaction_delay_ms=0)
    assert controller.alarms == []
    SimulatedNetwork(ladder(), program, [controller])
    connection = controller.add_connection("a", "z")
    controller.add_flow(connection, Flow(protocol=6))
    assert controller.alarms_table().height == 0
