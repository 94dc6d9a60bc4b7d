"""Trees in networks: who gets what, and what a failure, a join and a leave change."""

from __future__ import annotations

import random

import pytest

from holdfast import SimulatedNetwork, UdpStream, topologies
from holdfast._core import Program
from holdfast.apps.ipmc import Channel, IpmcController
from holdfast.errors import NetworkError

GROUP = "239.1.1.1"
RATE = 1000


def network_of(
    program: Program, spec: str, controller: IpmcController, *, detection_delay_ms: float = 10.0
) -> SimulatedNetwork:
    return SimulatedNetwork(topologies.load(spec), program, [controller], detection_delay_ms=detection_delay_ms)


def stream(network: SimulatedNetwork, source: str, stop_s: float = 1.0) -> int:
    return network.add(UdpStream(source=source, destination=GROUP, packets_per_s=RATE, stop_s=stop_s))


def received(network: SimulatedNetwork, flow: int, host: str) -> int:
    return len(network.received(flow, host=host).sequence)


def entries_of(network: SimulatedNetwork) -> int:
    """Entries of channels in all switches."""
    tables = [f"ipv{version}_{kind}" for version in (4, 6) for kind in ("sources", "groups")]
    return sum(len(client.read_table(table)) for client in network.clients.values() for table in tables)


@pytest.mark.parametrize("spec", ["abilene", "fat-tree:4", "waxman:30,seed=3", "grid:3x4"])
def test_each_member_gets_each_packet_once_and_nobody_else_any(program: Program, spec: str) -> None:
    hosts = list(topologies.load(spec).hosts)
    source, *others = random.Random(spec).sample(hosts, min(9, len(hosts)))
    members, strangers = others[: len(others) // 2 + 1], others[len(others) // 2 + 1 :]
    controller = IpmcController({Channel(GROUP, source): members}, reroute=False, reaction_delay_ms=0)
    network = network_of(program, spec, controller)
    flow = stream(network, source)
    network.run(2.0)
    for member in members:
        found = network.statistics(flow, host=member)
        assert (found.sent, found.lost, found.duplicated, found.reordered) == (RATE, 0, 0, 0)
    for stranger in strangers:
        assert received(network, flow, stranger) == 0


@pytest.mark.parametrize("reroute", [False, True])
def test_a_failure_costs_detection_and_reaction_with_reroute_and_its_time_without(
    program: Program, reroute: bool
) -> None:
    controller = IpmcController({Channel(GROUP, "h1"): ["h2", "h3"]}, reroute=reroute, reaction_delay_ms=20)
    network = network_of(program, "ring:4", controller)
    flow = stream(network, "h1")
    network.set_link("s1-s2", up=False, at_s=0.3)
    network.set_link("s1-s2", up=True, at_s=0.8)
    network.run(1.5)
    lost = network.statistics(flow, host="h2").lost
    assert lost == pytest.approx(RATE * (0.03 if reroute else 0.5), abs=4)
    assert network.statistics(flow, host="h2").duplicated == 0


def test_join_and_leave_change_the_tree_and_leave_nothing_behind(program: Program) -> None:
    controller = IpmcController(reroute=False, reaction_delay_ms=0)
    network = network_of(program, "line:4", controller)
    channel = Channel(GROUP, "h1")
    flow = stream(network, "h1", stop_s=4.0)
    controller.join(channel, "h4")
    assert entries_of(network) == 4
    network.run(1.0)
    controller.join(channel, "h2")
    controller.leave(channel, "h4")
    assert controller.members(channel) == ["h2"]
    assert entries_of(network) == 2
    network.run(2.0)
    controller.leave(channel, "h2")
    assert entries_of(network) == 0
    assert all(not client.multicast_groups() for client in network.clients.values())
    network.run(5.0)
    for host in ("h2", "h4"):
        assert received(network, flow, host) == pytest.approx(RATE, abs=4)
    assert received(network, flow, "h3") == 0


def test_any_host_of_a_switch_may_send_to_a_shared_channel(program: Program) -> None:
    topology = topologies.load("fat-tree:4")
    root = topology.attachment("h1").switch
    controller = IpmcController({Channel(GROUP, root): ["h3", "h9"]}, reroute=False, reaction_delay_ms=0)
    network = SimulatedNetwork(topology, program, [controller])
    senders = [name for name in topology.hosts if topology.attachment(name).switch == root]
    assert len(senders) == 2
    flows = [stream(network, name) for name in senders]
    elsewhere = stream(network, "h16")
    network.run(2.0)
    assert [received(network, flow, host) for flow in flows for host in ("h3", "h9")] == [RATE] * 4
    assert received(network, elsewhere, "h9") == 0


@pytest.mark.parametrize(
    ("group", "source", "message"),
    [
        ("10.0.0.1", "h1", "is no multicast group"),
        ("nonsense", "h1", "is no multicast group"),
        ("224.0.0.22", "h1", "a group of one link"),
        ("ff02::16", "h1", "a group of one link"),
        (GROUP, "h9", "no host and no switch 'h9'"),
        ("ff15::1", "h1", "'h1' has no IPv6 address"),
    ],
)
def test_what_makes_no_channel_is_one_sentence(program: Program, group: str, source: str, message: str) -> None:
    controller = IpmcController(reroute=False, reaction_delay_ms=0)
    network_of(program, "line:2", controller)
    with pytest.raises(NetworkError, match=message):
        controller.join(Channel(group, source), "h2")
    with pytest.raises(NetworkError, match="no host 'h7'"):
        controller.join(Channel(GROUP, "h1"), "h7")
    with pytest.raises(NetworkError, match="no member"):
        controller.leave(Channel(GROUP, "h1"), "h2")
