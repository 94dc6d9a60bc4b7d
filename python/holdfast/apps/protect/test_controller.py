"""Connections and flows at run time: the switches' entries, the counts, and changes that lose no packet."""

from __future__ import annotations

import time

import pytest

from holdfast import SimulatedNetwork, UdpStream
from holdfast._core import Program
from holdfast.apps.protect import Acceptance, Flow, ProtectController
from holdfast.apps.protect.program import (
    CONNECTION_TABLE,
    COPY_TABLE,
    ENDPOINT_TABLE,
    FLOW_TABLES,
    FORWARD,
    ROUTE_TABLE,
)
from holdfast.errors import NetworkError
from holdfast.p4runtime.errors import P4RuntimeError
from holdfast.results import packets
from holdfast.topology import Topology

MTU = 1600
PACKETS_PER_S = 1000
TUNNELS = 10 << 8 | 254
"""The first half of tunnels' addresses."""


def ladder(rungs: int = 3) -> Topology:
    """Build a network of two hosts at a and z, with ``rungs`` paths between a and z of equal delay and growing cost."""
    t = Topology("ladder")
    t.add_host("h1")
    t.add_host("h2")
    for name in ("a", "z", *(f"m{i}" for i in range(1, rungs + 1))):
        t.add_switch(name)
    t.add_link("h1", "a")
    t.add_link("h2", "z")
    for i in range(1, rungs + 1):
        t.add_link("a", f"m{i}", delay_ms=1, cost=i)
        t.add_link(f"m{i}", "z", delay_ms=1, cost=i)
    return t


def build(program: Program, t: Topology, **parameters: object) -> tuple[SimulatedNetwork, ProtectController]:
    controller = ProtectController(reaction_delay_ms=1, mtu=MTU, **parameters)  # type: ignore[arg-type]
    return SimulatedNetwork(t, program, [controller]), controller


def stream(network: SimulatedNetwork, stop_s: float = 1.0) -> int:
    return network.add(
        UdpStream(source="h1", destination="h2", packets_per_s=PACKETS_PER_S, payload_bytes=100, stop_s=stop_s)
    )


def entries(controller: ProtectController) -> dict[str, int]:
    """Return the number of flows, copies, groups and other entries of connections in all switches, by kind."""
    clients = controller.clients.values()
    return {
        "flows": sum(len(c.read_table(FLOW_TABLES[4])) for c in clients),
        "copies": sum(len(c.read_table(COPY_TABLE)) for c in clients),
        "groups": sum(len(c.multicast_groups()) for c in clients),
        "endpoints": sum(len(c.read_table(ENDPOINT_TABLE)) for c in clients),
        "connections": sum(len(c.read_table(CONNECTION_TABLE)) for c in clients),
        "routes": sum(
            e.match["dst_addr"][0] >> 16 == TUNNELS
            for c in clients
            for e in c.read_table(ROUTE_TABLE)  # type: ignore[index,operator]
        ),
    }


NOTHING = dict.fromkeys(["flows", "copies", "groups", "endpoints", "connections", "routes"], 0)


def test_add_and_remove_leave_nothing_behind(program: Program) -> None:
    network, controller = build(program, ladder(), protect=[("h1", "h2")])
    there, back = controller.connections
    assert [str(path) for path in there.paths] == ["a-m1-z", "a-m2-z"]
    assert entries(controller) == {
        "flows": 2, "copies": 4, "groups": 2, "endpoints": 4, "connections": 2, "routes": 4,
    }  # fmt: skip
    flow = stream(network, 0.5)
    network.run(1.0)
    assert network.statistics(flow).lost == 0
    statistics = controller.statistics(there)
    assert statistics.protected_packets == statistics.accepted_packets == statistics.flow_packets == 500
    assert statistics.discarded_packets == 500, "the second copies"
    assert statistics.last_sent_sn == statistics.last_accepted_sn == 500
    assert controller.statistics(back).protected_packets == 0
    frame = controller.statistics_table()
    assert frame["protected_packets"].to_list() == [500, 0]
    controller.remove_connection(there)
    controller.remove_connection(back)
    with pytest.raises(NetworkError, match="not there any more"):
        controller.statistics(there)
    network.run(1.2)
    assert entries(controller) == NOTHING
    assert not controller.tunnels.tunnels
    assert not controller.tunnels.path_sets


def test_numbers_are_of_each_end_alone(program: Program) -> None:
    """The same identifiers are used towards different egresses, and each end counts its own connections."""
    t = ladder()
    t.add_link("m1", "m2")
    network, controller = build(program, t)
    first = controller.add_connection("a", "z")
    second = controller.add_connection("a", "m1")
    third = controller.add_connection("m2", "z")
    assert [(c.index, c.egress_index, c.cid) for c in (first, second, third)] == [(0, 0, 0), (1, 0, 0), (0, 1, 1)]
    chosen = controller.add_connection("a", "z", cid=70_000)
    assert chosen.cid == 70_000
    assert chosen.path_set is first.path_set, "connections over the same paths share them"
    with pytest.raises(NetworkError, match="70000 is in use"):
        controller.add_connection("m2", "z", cid=70_000)
    controller.add_flow(chosen, Flow("10.0.1.1/32", "10.0.2.1/32"))
    flow = stream(network, 0.1)
    network.run(0.5)
    assert network.statistics(flow).lost == 0
    assert controller.statistics(chosen).accepted_packets == 100


def test_a_number_is_used_again_last_and_starts_anew(program: Program) -> None:
    network, controller = build(program, ladder(), drain_ms=0)
    connection = controller.add_connection("a", "z", cid=5)
    controller.add_flow(connection, Flow("10.0.1.1/32", "10.0.2.1/32"))
    stream(network, 0.1)
    network.run(0.2)
    controller.remove_connection(connection)
    again = controller.add_connection("a", "z", cid=5)
    assert (again.index, again.egress_index) == (1, 1), "numbers never used come first"
    for numbers in (controller.registry.indices["a"], controller.registry.egress_indices["z"]):
        while numbers.take() < 8191:
            pass
    third = controller.add_connection("a", "z")
    assert (third.index, third.egress_index) == (0, 0)
    assert controller.statistics(third).protected_packets == 0
    assert controller.statistics(third).last_sent_sn == controller.statistics(third).last_accepted_sn == 0


def test_a_change_loses_no_packet(program: Program) -> None:
    """Other paths, more paths, fewer paths and another MTU, one after the other under a stream; sequence numbers go on."""
    network, controller = build(program, ladder(4), protect=[("h1", "h2")])
    connection = controller.find_connection("a", "z")
    assert connection is not None
    flow = stream(network)
    changes = [
        {"paths": [["a", "m3", "z"], ["a", "m4", "z"]]},
        {"count": 2, "mtu": 1550},
        {"paths": [["a", "m1", "z"], ["a", "m3", "z"]]},
    ]
    for i, change in enumerate(changes):
        network.call_later(200 * (i + 1), lambda change=change: controller.change_connection(connection, **change))
    network.run(1.5)
    statistics = network.statistics(flow)
    assert (statistics.lost, statistics.duplicated, statistics.reordered) == (0, 0, 0)
    assert controller.statistics(connection).last_accepted_sn == 1000
    assert [str(path) for path in connection.paths] == ["a-m1-z", "a-m3-z"]
    assert connection.mtu == 1550
    crossed = {name: controller.clients[name].read_table(ROUTE_TABLE) for name in ("m1", "m2", "m3", "m4")}
    tunnels = {name: len(rows) - 2 for name, rows in crossed.items()}
    assert tunnels == {"m1": 2, "m2": 1, "m3": 1, "m4": 0}, "two of them are the way back's"


def test_what_cannot_be_is_refused_and_leaves_nothing(program: Program) -> None:
    _, controller = build(program, ladder())
    for arguments, message in (
        ({"paths": [["a", "m1", "z"], ["a", "m1", "z"]]}, "not node-disjoint"),
        ({"paths": [["a", "m1", "z"], ["z", "m2", "a"]]}, "does not lead from a to z"),
        ({"paths": [["a", "m1", "z"]]}, "2 to 4 paths, not 1"),
        ({"count": 4}, "no four node-disjoint paths from a to z"),
        ({"count": 5}, "2 to 4 paths, not 5"),
        ({"mtu": 40}, "mtu is 40"),
        ({"cid": 1 << 24}, "is none"),
    ):
        with pytest.raises(NetworkError, match=message):
            controller.add_connection("a", "z", **arguments)  # type: ignore[arg-type]
        assert entries(controller) == NOTHING
        assert not controller.connections
    connection = controller.add_connection("a", "z")
    controller.add_flow(connection, Flow(protocol=6))
    with pytest.raises(NetworkError, match=r"is protected by connection a-z#\d already"):
        controller.add_flow(connection, Flow(protocol=6))
    with pytest.raises(NetworkError, match="has no Flow"):
        controller.remove_flow(connection, Flow(protocol=17))
    assert len(controller.registry.indices["a"]) == len(controller.registry.cids["z"]) == 1, (
        "refused ones gave their numbers back"
    )


def test_a_switch_that_refuses_leaves_no_half(program: Program) -> None:
    """Somebody else has put an entry where the connection's is to be: everything is taken back, at all switches."""
    _, controller = build(program, ladder())
    controller.clients["m2"].insert(
        ROUTE_TABLE, {"dst_addr": "10.254.0.3/32"}, FORWARD, {"port": 1, "src_mac": 0, "dst_mac": 0}
    )
    before = entries(controller)
    with pytest.raises(P4RuntimeError, match="ALREADY_EXISTS"):
        controller.add_connection("a", "z")
    assert entries(controller) == before
    assert not controller.connections
    assert not controller.tunnels.tunnels
    assert not controller.tunnels.path_sets


def test_thousands_of_connections_at_a_node(program: Program) -> None:
    """Two thousand, with a flow each, over three path sets; the time is of this process, with a loaded machine in mind."""
    network, controller = build(program, ladder())
    ways = [("m1", "m2"), ("m2", "m3"), ("m3", "m1")]
    begin = time.process_time()
    with controller.together():
        for i in range(2000):
            paths = [["a", way, "z"] for way in ways[i % 3]]
            connection = controller.add_connection("a", "z", paths=paths)
            controller.add_flow(connection, Flow("10.0.1.1/32", "10.0.2.1/32", 17, 5001, 5000 + i))
    added_s = time.process_time() - begin
    assert entries(controller) == {
        "flows": 2000, "copies": 6, "groups": 3, "endpoints": 6, "connections": 2000, "routes": 6,
    }  # fmt: skip
    ids = [
        network.add(
            UdpStream(
                source="h1", destination="h2", packets_per_s=1000, payload_bytes=50, stop_s=0.02,
                destination_port=5000 + i,
            )
        )
        for i in (0, 1, 2, 998, 1999)
    ]  # fmt: skip
    network.run(0.1)
    assert all(network.statistics(i).lost == 0 for i in ids)
    assert controller.statistics(controller.connections[1999]).accepted_packets == 20
    begin = time.process_time()
    with controller.together():
        for connection in controller.connections:
            controller.remove_connection(connection)
    network.run(0.3)
    removed_s = time.process_time() - begin
    assert entries(controller) == NOTHING
    print(f"2000 connections: added in {added_s:.2f} s of processor time, removed in {removed_s:.2f} s")
    assert added_s < 10
    assert packets(network, ids[0]).height == 20


def test_a_history_longer_than_the_programs_is_refused(program: Program) -> None:
    """The program would cut it without a word."""
    network, controller = build(program, ladder(), acceptance=Acceptance("vector", 65))
    network.run(0.01)
    with pytest.raises(NetworkError, match="histories of 64"):
        controller.add_connection("a", "z")
    assert entries(controller) == NOTHING
    connection = controller.add_connection("a", "z", acceptance=Acceptance("vector", 64))
    with pytest.raises(NetworkError, match="histories of 64"):
        controller.change_connection(connection, acceptance=Acceptance("vector", 128))
    assert connection.acceptance.history == 64
