"""Modelled hosts join and leave by their own IGMP and MLD: what they then get, whatever the version, and what they are not told."""

from __future__ import annotations

import pytest

from holdfast import SimulatedNetwork
from holdfast.apps.bier import BierController
from holdfast.apps.bier.conftest import Compile
from holdfast.control.membership.overlay import OverlayParameters
from holdfast.errors import NetworkError
from holdfast.topologies import load
from holdfast.traffic import MembershipVersion, UdpStream

RATE = 1000
LEAVE_S = 2.1
"""Two queries for last members, a second apart, the wire and the controller."""


def network_of(compiled: Compile) -> SimulatedNetwork:
    topology = load("abilene")
    topology.add_ipv6()
    controller = BierController(ip_delay_ms=10, bier_delay_ms=30, overlay=OverlayParameters())
    return SimulatedNetwork(topology, compiled("one-pass"), [controller])


@pytest.mark.parametrize(
    ("version", "group"),
    [("igmpv2", "239.1.2.3"), ("igmpv3", "239.1.2.3"), ("mldv1", "ff1e::123"), ("mldv2", "ff1e::123")],
)
def test_a_host_gets_a_group_between_join_and_leave(compiled: Compile, version: MembershipVersion, group: str) -> None:
    network = network_of(compiled)
    source, member, late, never = list(network.topology.hosts)[:4]
    family = "ipv4" if version.startswith("igmp") else "ipv6"
    stream = UdpStream(source=source, destination=group, family=family, packets_per_s=RATE, stop_s=8, payload_bytes=64)
    flow = network.add(stream)
    network.join(member, group, version=version)
    network.join(late, group, version=version, at_s=2)
    network.leave(member, group, at_s=4)
    network.run(9)
    got = network.group_statistics(member, group)
    assert got.duplicates == got.out_of_order == 0
    assert got.first_ps is not None and got.first_ps < 0.1e12
    # Once joined it misses none, and the network goes on for the time of the leave alone.
    assert 3900 <= got.received <= 4001
    assert got.last_unwanted_ps is None or got.last_unwanted_ps <= (4 + LEAVE_S) * 1e12
    after = network.group_statistics(late, group)
    assert after.first_ps is not None and 2e12 < after.first_ps < 2.1e12
    assert after.received == network.statistics(flow, host=late).delivered >= 5900
    assert after.longest_gap_ps <= 1.1e9
    assert network.group_statistics(never, group).received == 0
    assert network.statistics(flow, host=never).delivered == 0


def test_a_source_that_is_excluded_is_not_received(compiled: Compile) -> None:
    network = network_of(compiled)
    source, member, other = list(network.topology.hosts)[:3]
    address = str(network.topology.hosts[source].address.ip)
    network.add(UdpStream(source=source, destination="239.1.2.3", packets_per_s=RATE, stop_s=1, payload_bytes=64))
    network.join(member, "239.1.2.3", sources=[address])
    network.join(other, "239.1.2.3", sources=[address], excludes=True)
    network.run(2)
    assert network.group_statistics(member, "239.1.2.3").received > 900
    assert network.group_statistics(other, "239.1.2.3").received == 0


def test_what_cannot_be_joined_is_an_error(compiled: Compile) -> None:
    network = network_of(compiled)
    host = next(iter(network.topology.hosts))
    with pytest.raises(NetworkError, match="no host has joined"):
        network.group_statistics(host, "239.1.2.3")
    for group in ("10.0.1.1", "224.0.0.1", "ff02::1", "nonsense"):
        with pytest.raises(NetworkError, match="group"):
            network.join(host, group)
    with pytest.raises(NetworkError, match="leave"):
        network.join(host, "239.1.2.3", excludes=False)
    with pytest.raises(NetworkError, match="version"):
        network.join(host, "239.1.2.3", version="mldv2")
