"""Trees in networks: the packets that each host gets, and the changes by a failure, a join and a leave."""

from __future__ import annotations

import random

import pytest

from holdfast import SimulatedNetwork, UdpStream, topologies
from holdfast._core import Program
from holdfast.apps.ipmc import IpmcController, channel, channel_of
from holdfast.control.membership.channels import Channel
from holdfast.errors import NetworkError

GROUP = "239.1.1.1"
RATE = 1000


def network_of(
    program: Program, spec: str, controller: IpmcController, *, detection_delay_ms: float = 10.0
) -> SimulatedNetwork:
    return SimulatedNetwork(topologies.load(spec), program, [controller], detection_delay_ms=detection_delay_ms)


def of(spec: str, source: str, group: str = GROUP) -> Channel:
    return channel_of(topologies.load(spec), group, source)


def stream(network: SimulatedNetwork, source: str, stop_s: float = 1.0) -> int:
    return network.add(UdpStream(source=source, destination=GROUP, packets_per_s=RATE, stop_s=stop_s))


def received(network: SimulatedNetwork, flow: int, host: str) -> int:
    return len(network.received(flow, host=host).sequence)


def entries_of(network: SimulatedNetwork) -> int:
    """Return the number of entries for channels, in the tables of all switches together."""
    tables = [f"ipv{version}_{kind}" for version in (4, 6) for kind in ("sources", "groups")]
    return sum(len(client.read_table(table)) for client in network.clients.values() for table in tables)


@pytest.mark.parametrize("spec", ["abilene", "fat-tree:4", "waxman:30,seed=3", "grid:3x4"])
def test_each_member_gets_each_packet_once_and_nobody_else_any(program: Program, spec: str) -> None:
    hosts = list(topologies.load(spec).hosts)
    source, *others = random.Random(spec).sample(hosts, min(9, len(hosts)))
    members, strangers = others[: len(others) // 2 + 1], others[len(others) // 2 + 1 :]
    controller = IpmcController({of(spec, source): members}, reroute=False, reaction_delay_ms=0)
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
    controller = IpmcController({of("ring:4", "h1"): ["h2", "h3"]}, reroute=reroute, reaction_delay_ms=20)
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
    channel = of("line:4", "h1")
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
    members = {channel(GROUP): ["h3", "h9"]}
    controller = IpmcController(members, roots={GROUP: root}, reroute=False, reaction_delay_ms=0)
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
        ("10.0.0.1", "h1", "is not a multicast group"),
        ("nonsense", "h1", "is not a channel"),
        ("224.0.0.22", "h1", "a group of one link"),
        ("ff15::1", "h1", "'h1' has no IPv6 address"),
        (GROUP, "h9", "no host 'h9'"),
    ],
)
def test_what_makes_no_channel_is_one_sentence(group: str, source: str, message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        of("line:2", source, group)


def test_what_cannot_be_joined_is_one_sentence(program: Program) -> None:
    controller = IpmcController(reroute=False, reaction_delay_ms=0)
    network_of(program, "line:2", controller)
    for joined, host, message in (
        (of("line:2", "h1"), "h7", "no host 'h7'"),
        (channel(GROUP), "h2", "no switch is the root"),
        (channel(GROUP, "10.9.9.9"), "h2", "no host has the address 10.9.9.9"),
    ):
        with pytest.raises(NetworkError, match=message):
            controller.join(joined, host)
    with pytest.raises(NetworkError, match="no member"):
        controller.leave(of("line:2", "h1"), "h2")
    with pytest.raises(NetworkError, match="no switch 's9'"):
        network_of(program, "line:2", IpmcController(roots={GROUP: "s9"}, reroute=False, reaction_delay_ms=0))


def test_a_join_writes_what_it_changes(program: Program) -> None:
    """The tree gets a branch; switches not on it, and other channels, are not written."""
    topology = topologies.load("line:4")
    others = {channel_of(topology, f"239.2.0.{number}", "h1"): ["h2", "h3", "h4"] for number in range(20)}
    joined = of("line:4", "h1")
    controller = IpmcController(others | {joined: ["h2"]}, reroute=False, reaction_delay_ms=0)
    network = SimulatedNetwork(topology, program, [controller])
    before = {name: client.updates_sent for name, client in network.clients.items()}
    controller.join(joined, "h3")
    # At s2 another copy; at s3 a group and an entry.
    written = {name: client.updates_sent - before[name] for name, client in network.clients.items()}
    assert written == {"s1": 0, "s2": 1, "s3": 2, "s4": 0}


def test_members_of_any_source_get_what_others_joined_by_name(program: Program) -> None:
    topology = topologies.load("ring:5")
    specific, shared = channel_of(topology, GROUP, "h1"), channel(GROUP)
    controller = IpmcController({specific: ["h2"]}, roots={GROUP: "s1"}, reroute=False, reaction_delay_ms=0)
    network = SimulatedNetwork(topology, program, [controller])
    flow = stream(network, "h1")
    controller.join(shared, "h4")
    network.run(2.0)
    assert [received(network, flow, host) for host in ("h2", "h3", "h4")] == [RATE, 0, RATE]
