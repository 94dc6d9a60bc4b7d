"""Failures one after the other: the connections that repair saves, those it cannot, and the way back."""

from __future__ import annotations

import pytest

from holdfast import SimulatedNetwork, UdpStream
from holdfast._core import Program
from holdfast.apps.protect import Flow, ProtectController
from holdfast.apps.protect.program import COPY_TABLE
from holdfast.apps.protect.test_controller import MTU, NOTHING, entries, ladder, stream
from holdfast.apps.protect.test_takeover import successor
from holdfast.errors import NetworkError
from holdfast.topology import Topology


def run(
    program: Program, t: Topology, failures: list[tuple[float, str, bool]], until_s: float = 1.5, **parameters: object
) -> tuple[ProtectController, dict[str, int | float | None], SimulatedNetwork]:
    """Run a stream of one second with ``failures``: (time in s, name of a link or switch, True if it comes up).

    Detection takes 10 ms, reaction 20 ms. Return the controller, measures of the stream, and the network.
    """
    controller = ProtectController(protect=[("h1", "h2")], reaction_delay_ms=20, mtu=MTU, **parameters)  # type: ignore[arg-type]
    network = SimulatedNetwork(t, program, [controller], detection_delay_ms=10)
    flow = stream(network)
    for at_s, what, up in failures:
        set_state = network.set_node if what in t.switches else network.set_link
        set_state(what, up=up, at_s=at_s)
    network.run(until_s)
    return controller, network.statistics(flow), network


TWO_FAILURES = [(0.2, "a-m1", False), (0.5, "a-m2", False)]


def test_two_failures_in_a_row_lose_nothing(program: Program) -> None:
    controller, statistics, _ = run(program, ladder(), TWO_FAILURES, repair=True)
    assert (statistics.lost, statistics.duplicated, statistics.reordered) == (0, 0, 0)
    there = [r for r in controller.repairs if r.path_set.startswith("a-z")]
    assert [(r.number, str(r.before), str(r.after), r.reason) for r in there[:1]] == [(1, "a-m1-z", "a-m3-z", "failed")]
    assert there[0].time_ps == 230_000_000_000, "failure, detection and reaction"
    assert (there[1].number, there[1].after) == (2, None)
    assert there[1].reason == (
        "there are no two node-disjoint paths from a to z in what is left of the network: every path uses link a-m3"
    )
    assert len(there) == 2


def test_without_repair_the_second_one_loses(program: Program) -> None:
    controller, statistics, _ = run(program, ladder(), TWO_FAILURES)
    assert 495 < statistics.lost < 505
    assert controller.repairs == []


@pytest.mark.parametrize("second", ["m2", "m2-z", "z-m2"])
def test_a_node_and_then_what_is_left(program: Program, second: str) -> None:
    """A failed node is told by both its neighbours, and costs one repair."""
    controller, statistics, _ = run(program, ladder(), [(0.2, "m1", False), (0.5, second, False)], repair=True)
    assert statistics.lost == 0
    assert [str(r.after) for r in controller.repairs if r.reason == "failed"] == ["a-m3-z", "z-m3-a"]


def test_as_soon_as_something_is_repaired_so_is_the_path_set(program: Program) -> None:
    """Three failures: the third is survived because a link that came back was taken."""
    failures = [*TWO_FAILURES, (0.6, "a-m1", True), (0.8, "a-m3", False)]
    controller, statistics, _ = run(program, ladder(), failures, repair=True)
    assert statistics.lost == 0
    moved = [(r.number, str(r.after)) for r in controller.repairs if r.path_set.startswith("a-z") and r.after]
    assert moved == [(1, "a-m3-z"), (2, "a-m1-z")]


def test_return_to_the_preferred_paths(program: Program) -> None:
    failures = [(0.2, "a-m1", False), (0.3, "a-m1", True), (0.35, "a-m1", False), (0.5, "a-m1", True)]
    controller, statistics, network = run(program, ladder(), failures, repair=True, wait_to_restore_ms=100)
    assert statistics.lost == 0
    there = [r for r in controller.repairs if r.path_set.startswith("a-z")]
    assert [(r.time_ps // 10**9, str(r.after), r.reason) for r in there] == [
        (230, "a-m3-z", "failed"),
        (630, "a-m1-z", "restored"),
    ]
    for connection in controller.connections:
        controller.remove_connection(connection)
    network.run(2)
    assert entries(controller) == NOTHING


def test_without_waiting_to_restore_it_stays(program: Program) -> None:
    controller, _, _ = run(program, ladder(), [(0.2, "a-m1", False), (0.5, "a-m1", True)], repair=True)
    assert {str(path) for path in controller.connections[0].paths} == {"a-m3-z", "a-m2-z"}
    with pytest.raises(NetworkError, match="belongs to repair=True"):
        ProtectController(reaction_delay_ms=0, wait_to_restore_ms=5)


def trap() -> Topology:
    """Build a network that has two disjoint paths after the failure, but none disjoint from the surviving one: both must move."""
    t = Topology("trap")
    t.add_host("h1")
    t.add_host("h2")
    for name in ("a", "b", "c", "d", "e", "f", "g"):
        t.add_switch(name)
    t.add_link("h1", "a")
    t.add_link("f", "h2")
    for x, y, cost in [
        ("a", "b", 1), ("b", "c", 1), ("c", "f", 1), ("a", "d", 4), ("d", "c", 4), ("b", "e", 4), ("e", "f", 4),
        ("a", "g", 1), ("g", "f", 1),
    ]:  # fmt: skip
        t.add_link(x, y, cost=cost, delay_ms=0.1)
    return t


def test_the_half_that_carries_on_moves_if_it_must(program: Program) -> None:
    failures = [(0.2, "a-g", False), (0.5, "d-c", False)]
    controller, statistics, _ = run(program, trap(), failures, repair=True)
    assert statistics.lost == 0
    there = [r for r in controller.repairs if r.path_set.startswith("a-f")]
    assert {(str(r.before), str(r.after)) for r in there[:2]} == {("a-g-f", "a-b-e-f"), ("a-b-c-f", "a-d-c-f")}


def test_three_copies(program: Program) -> None:
    controller, statistics, _ = run(
        program, ladder(4), [(0.2, "a-m1", False), (0.21, "m3-z", False), (0.5, "a-m2", False)], repair=True, paths=3
    )
    assert statistics.lost == 0
    assert any(str(r.after) == "a-m4-z" for r in controller.repairs)


def test_all_connections_of_a_path_set_move_at_once(program: Program) -> None:
    """Five hundred connections, one group: a repair is a handful of writes."""
    t = ladder()
    controller = ProtectController(reaction_delay_ms=20, mtu=MTU, repair=True)
    network = SimulatedNetwork(t, program, [controller], detection_delay_ms=10)
    with controller.together():
        for _ in range(500):
            controller.add_connection("a", "z")
    network.set_link("a-m1", up=False, at_s=0.1)
    network.run(0.3)
    assert len(controller.repairs) == 1
    assert all(str(c.paths[0]) == "a-m3-z" for c in controller.connections)


def test_repaired_and_then_taken_over(program: Program) -> None:
    """The next controller knows where copies go now, where they should return to, and that a link is down."""
    controller, _, network = run(program, ladder(), [(0.2, "a-m1", False)], 0.4, repair=True)
    heir = successor(network, repair=True, wait_to_restore_ms=50)
    assert heir.taken_over is not None
    assert (heir.taken_over.restored, heir.taken_over.removed) == (0, 0)
    assert {str(c): c.paths for c in heir.connections} == {str(c): c.paths for c in controller.connections}
    network.set_link("a-m1", up=True, at_s=0.5)
    network.run(0.7)
    there = heir.find_connection("a", "z")
    assert there is not None
    assert [str(path) for path in there.paths] == ["a-m1-z", "a-m2-z"]
    flow = network.add(
        UdpStream(source="h1", destination="h2", packets_per_s=1000, payload_bytes=100, start_s=0.71, stop_s=0.8)
    )
    network.run(1)
    assert network.statistics(flow).lost == 0


def test_a_switch_that_refuses_is_asked_again(program: Program) -> None:
    """Somebody has filled the group's next instance; when that is gone, the next event repairs."""
    controller = ProtectController(protect=[("h1", "h2")], reaction_delay_ms=20, mtu=MTU, repair=True)
    network = SimulatedNetwork(ladder(), program, [controller], detection_delay_ms=10)
    flow = stream(network)
    there = controller.connections[0]
    a = controller.clients["a"]
    key = {"meta.multicast_group": there.multicast_group, "standard_metadata.egress_rid": 3}
    a.insert(COPY_TABLE, key, "send_copy", {"src_mac": 0, "dst_mac": 0, "dst_ip": 0})
    network.set_link("a-m1", up=False, at_s=0.2)
    network.run(0.3)
    (refused,) = [r for r in controller.repairs if r.path_set.startswith("a-z")]
    assert refused.after is None
    assert "ALREADY_EXISTS" in refused.reason
    assert [str(path) for path in there.paths] == ["a-m1-z", "a-m2-z"]
    a.delete(COPY_TABLE, key)
    network.set_link("m1-z", up=False, at_s=0.3)
    network.run(0.5)
    assert [str(path) for path in there.paths] == ["a-m3-z", "a-m2-z"]
    network.run(1.5)
    assert network.statistics(flow).lost == 0


def test_routes_follow_and_copies_do_too(program: Program) -> None:
    """Unprotected packets are routed around the failure, protected ones are not lost."""
    controller = ProtectController(protect=[], reroute=True, repair=True, reaction_delay_ms=20, mtu=MTU)
    network = SimulatedNetwork(ladder(), program, [controller], detection_delay_ms=10)
    connection = controller.add_connection("a", "z")
    controller.add_flow(connection, Flow(destination="10.0.2.1/32", protocol=17, destination_port=6000))
    plain = stream(network)
    safe = network.add(
        UdpStream(
            source="h1", destination="h2", packets_per_s=1000, payload_bytes=100, stop_s=1, destination_port=6000
        )
    )  # fmt: skip
    network.set_link("a-m1", up=False, at_s=0.2)
    network.run(1.5)
    assert network.statistics(safe).lost == 0
    assert 28 <= network.statistics(plain).lost <= 32
