"""Connections within connections, and flows of IPv6, set up by the controller."""

from __future__ import annotations

import pytest

from holdfast import SimulatedNetwork
from holdfast._core import Program
from holdfast.apps.protect import Acceptance, Flow, ProtectController
from holdfast.apps.protect.program import FLOW_TABLES
from holdfast.apps.protect.test_controller import MTU, NOTHING, entries, ladder, stream
from holdfast.apps.protect.test_takeover import dump, successor
from holdfast.errors import NetworkError
from holdfast.topology import Topology


def segment() -> Topology:
    """Build a network from a to z with two paths: over w, or over x and y, which m1 and m2 connect with each other."""
    t = Topology("segment")
    t.add_host("h1")
    t.add_host("h2")
    for name in ("a", "w", "x", "m1", "m2", "y", "z"):
        t.add_switch(name)
    t.add_link("h1", "a")
    t.add_link("h2", "z")
    for a, b in [("a", "w"), ("w", "z"), ("a", "x"), ("x", "m1"), ("m1", "y"), ("x", "m2"), ("m2", "y"), ("y", "z")]:
        t.add_link(a, b, delay_ms=0.1, mtu_bytes=MTU + 28 if {a, b} & {"m1", "m2"} else MTU)
    return t


@pytest.mark.parametrize("nested", [True, False])
def test_a_segment_is_protected_again(program: Program, nested: bool) -> None:
    """Two failures at once, one of them in the segment: without the connection within, all is lost."""
    controller = ProtectController(
        protect=[("h1", "h2")], reaction_delay_ms=1, mtu=MTU, acceptance=Acceptance("vector")
    )
    network = SimulatedNetwork(segment(), program, [controller])
    inner = controller.find_connection("a", "z")
    assert inner is not None
    assert [str(path) for path in inner.paths] == ["a-w-z", "a-x-m1-y-z"]
    outer = controller.add_connection("x", "y", mtu=MTU + 28)
    if nested:
        (flow,) = controller.nest(inner, outer)
        assert (flow.protocol, flow.destination) == (253, f"{inner.addresses[1]}/32")
    sent = stream(network)
    network.set_link("a-w", up=False, at_s=0.3)
    network.set_link("x-m1", up=False, at_s=0.3)
    network.run(1.5)
    statistics = network.statistics(sent)
    if not nested:
        assert 695 <= statistics.lost <= 705
        return
    assert (statistics.lost, statistics.duplicated, statistics.reordered) == (0, 0, 0)
    within = controller.statistics(outer)
    assert within.protected_packets == within.accepted_packets == 1000
    assert controller.statistics(inner).accepted_packets == 1000
    before = dump(controller)
    heir = successor(network)
    assert dump(heir) == before
    for connection in heir.connections:
        heir.remove_connection(connection)
    network.run(2)
    assert entries(heir) == NOTHING


def test_what_cannot_be_nested(program: Program) -> None:
    controller = ProtectController(protect=[("h1", "h2")], reaction_delay_ms=1, mtu=MTU)
    SimulatedNetwork(segment(), program, [controller])
    inner = controller.connections[0]
    with pytest.raises(NetworkError, match="too many for x-y#0, whose mtu is 1600"):
        controller.nest(inner, controller.add_connection("x", "y"))
    with pytest.raises(NetworkError, match="no path of connection a-z#0 goes from y on to x"):
        controller.nest(inner, controller.add_connection("y", "x", mtu=MTU + 28))
    with pytest.raises(NetworkError, match="goes from a on to y"):
        controller.nest(inner, controller.add_connection("a", "y", mtu=MTU + 28))


def test_flows_of_ipv6(program: Program) -> None:
    controller = ProtectController(reaction_delay_ms=1, mtu=MTU)
    network = SimulatedNetwork(ladder(), program, [controller])
    connection = controller.add_connection("a", "z")
    flows = [Flow("2001:db8:1::/48", "2001:db8:2::1", 6, None, 443), Flow("::/0"), Flow(destination="10.0.2.0/24")]
    for flow in flows:
        controller.add_flow(connection, flow)
    a = controller.clients["a"]
    assert len(a.read_table(FLOW_TABLES[6])) == 2
    assert len(a.read_table(FLOW_TABLES[4])) == 1
    controller.change_connection(connection, mtu=1500)
    assert {entry.params["mtu"] for entry in a.read_table(FLOW_TABLES[6])} == {1500}
    assert controller.statistics(connection).flow_packets == 0
    heir = successor(network)
    (found,) = heir.connections
    assert {flow for flow, _ in found.flows} == set(flows)
    heir.remove_connection(found)
    assert a.read_table(FLOW_TABLES[6]) == []


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        (Flow("10.0.1.1/24"), "'10.0.1.1/24' is not a prefix"),
        (Flow("nowhere"), "'nowhere' is not a prefix"),
        (Flow("10.0.1.0/24", "2001:db8::1"), "not of the same version"),
    ],
)
def test_flows_that_are_none(program: Program, flow: Flow, message: str) -> None:
    controller = ProtectController(reaction_delay_ms=1, mtu=MTU)
    SimulatedNetwork(ladder(), program, [controller])
    connection = controller.add_connection("a", "z")
    with pytest.raises(NetworkError, match=message):
        controller.add_flow(connection, flow)
    assert connection.flows == []
