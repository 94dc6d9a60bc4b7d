"""Modelled hosts join and leave by their own IGMP and MLD: the packets they then get, with any version, filter and timer."""

from __future__ import annotations

import pytest

from holdfast import SimulatedNetwork
from holdfast.apps.bier import BierController
from holdfast.apps.bier.conftest import Compile
from holdfast.control.membership.overlay import OverlayParameters
from holdfast.errors import HoldfastError, NetworkError
from holdfast.measurements import GroupStatistics
from holdfast.topologies import load
from holdfast.traffic import MembershipVersion, UdpStream

RATE = 1000
LEAVE_S = 2.1
"""Two queries for last members, a second apart, the wire and the controller."""


def network_of(
    compiled: Compile, parameters: OverlayParameters | None = None, *, fast_leave: bool = False, seed: int = 1
) -> SimulatedNetwork:
    topology = load("abilene")
    topology.add_ipv6()
    overlay = parameters or OverlayParameters()
    controller = BierController(ip_delay_ms=10, bier_delay_ms=30, overlay=overlay, fast_leave=fast_leave)
    return SimulatedNetwork(topology, compiled("one-pass"), [controller], seed=seed)


def stream(source: str, group: str, *, stop_s: float, rate: int = RATE) -> UdpStream:
    family = "ipv6" if ":" in group else "ipv4"
    return UdpStream(
        source=source, destination=group, family=family, packets_per_s=rate, stop_s=stop_s, payload_bytes=64
    )


@pytest.mark.parametrize(
    ("version", "group"),
    [("igmpv2", "239.1.2.3"), ("igmpv3", "239.1.2.3"), ("mldv1", "ff1e::123"), ("mldv2", "ff1e::123")],
)
def test_a_host_gets_a_group_between_join_and_leave(compiled: Compile, version: MembershipVersion, group: str) -> None:
    network = network_of(compiled)
    source, member, late, never = list(network.topology.hosts)[:4]
    flow = network.add(stream(source, group, stop_s=8))
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


@pytest.mark.parametrize("version", ["igmpv2", "igmpv3", "mldv1", "mldv2"])
def test_a_fast_leave_ends_with_the_message(compiled: Compile, version: MembershipVersion) -> None:
    network = network_of(compiled, fast_leave=True)
    source, member = list(network.topology.hosts)[:2]
    group = "239.1.2.3" if version.startswith("igmp") else "ff1e::123"
    network.add(stream(source, group, stop_s=3))
    network.join(member, group, version=version)
    network.leave(member, group, at_s=1)
    network.run(4)
    got = network.group_statistics(member, group)
    assert 950 <= got.received <= 1000
    # The wire and the controller, and no query.
    assert got.unwanted <= 50
    assert got.last_unwanted_ps is None or got.last_unwanted_ps < 1.05e12


SHORT = OverlayParameters(query_interval_s=4, query_response_interval_s=1)
"""A membership that nobody confirms ends after 2 * 4 s + 1 s (RFC 3376, 8.4)."""


@pytest.mark.parametrize(
    ("version", "group"),
    [("igmpv2", "239.1.2.3"), ("igmpv3", "239.1.2.3"), ("mldv1", "ff1e::123"), ("mldv2", "ff1e::123")],
)
def test_answers_to_queries_keep_a_membership(compiled: Compile, version: MembershipVersion, group: str) -> None:
    network = network_of(compiled, SHORT)
    source, member = list(network.topology.hosts)[:2]
    network.add(stream(source, group, stop_s=40, rate=100))
    network.join(member, group, version=version)
    network.run(41)
    got = network.group_statistics(member, group)
    assert got.received >= 3990
    assert got.longest_gap_ps <= 1.1e10


def test_a_host_of_igmpv1_leaves_in_silence_and_is_forgotten(compiled: Compile) -> None:
    """RFC 1112 has no message for it: an unanswered query ends the membership."""
    network = network_of(compiled, SHORT)
    source, member = list(network.topology.hosts)[:2]
    network.add(stream(source, "239.1.2.3", stop_s=40, rate=100))
    network.join(member, "239.1.2.3", version="igmpv1")
    network.leave(member, "239.1.2.3", at_s=20)
    network.run(41)
    got = network.group_statistics(member, "239.1.2.3")
    assert 1990 <= got.received <= 2000
    # The last answer was at most an interval and a response before the leave.
    assert got.last_unwanted_ps is not None
    assert (20 + 9 - 5) * 1e12 <= got.last_unwanted_ps <= (20 + 9.1) * 1e12


@pytest.mark.parametrize("group", ["239.1.2.3", "232.1.2.3", "ff1e::123"])
def test_source_filters_choose_among_the_sources_of_a_group(compiled: Compile, group: str) -> None:
    network = network_of(compiled)
    one, two, includes, excludes, changes = list(network.topology.hosts)[:5]
    hosts = network.topology.hosts
    addresses = [str(host.ipv6.ip if ":" in group and host.ipv6 else host.address.ip) for host in hosts.values()]
    flows = [network.add(stream(source, group, stop_s=2)) for source in (one, two)]
    is_ssm = group.startswith("232.")
    network.join(includes, group, sources=addresses[:1])
    network.join(changes, group, sources=addresses[:1])
    network.join(changes, group, sources=addresses[1:2], at_s=1)
    network.join(excludes, group, sources=addresses[:1], excludes=True)
    network.run(3)

    def got(host: str) -> list[int]:
        return [network.statistics(flow, host=host).delivered for flow in flows]

    assert got(includes)[0] > 1900 and got(includes)[1] == 0
    # RFC 4604, section 2.2.1: in 232/8 there is no EXCLUDE.
    assert got(excludes)[0] == 0 and (got(excludes)[1] > 1900) != is_ssm
    assert 950 <= got(changes)[0] <= 1000 and 950 <= got(changes)[1] <= 1000
    assert network.group_statistics(changes, group).received == sum(got(changes))


def test_each_group_is_counted_by_itself(compiled: Compile) -> None:
    network = network_of(compiled)
    source, member = list(network.topology.hosts)[:2]
    groups = {"239.1.1.1": 100, "239.1.1.2": 300, "ff1e::1": 700}
    for group, rate in groups.items():
        network.add(stream(source, group, stop_s=1, rate=rate))
        network.join(member, group)
    network.run(2)
    counted = {group: network.group_statistics(member, group) for group in groups}
    for group, rate in groups.items():
        # The join takes the wire and the controller's time.
        assert 0.95 * rate <= counted[group].received <= rate
        assert counted[group].longest_gap_ps == pytest.approx(1e12 / rate, rel=1e-3)
    assert network.node_counters(member).unwanted == 0


def test_equal_seeds_give_equal_runs(compiled: Compile) -> None:
    def run(seed: int) -> list[GroupStatistics]:
        network = network_of(compiled, SHORT, seed=seed)
        source, *members = network.topology.hosts
        network.add(stream(source, "239.1.2.3", stop_s=10, rate=200))
        for number, member in enumerate(members):
            network.join(member, "239.1.2.3", at_s=number / 3, version="igmpv2" if number % 2 else "igmpv3")
            network.leave(member, "239.1.2.3", at_s=number / 3 + 4.7)
        network.run(14)
        return [network.group_statistics(member, "239.1.2.3") for member in members]

    assert run(1) == run(1)


def test_what_cannot_be_joined_is_an_error(compiled: Compile) -> None:
    network = network_of(compiled)
    host = next(iter(network.topology.hosts))
    with pytest.raises(HoldfastError, match="no host has joined"):
        network.group_statistics(host, "239.1.2.3")
    for group in ("10.0.1.1", "224.0.0.1", "ff02::1", "nonsense"):
        with pytest.raises(HoldfastError, match="group"):
            network.join(host, group)
    with pytest.raises(NetworkError, match="leave"):
        network.join(host, "239.1.2.3", excludes=False)
    with pytest.raises(HoldfastError, match="version"):
        network.join(host, "239.1.2.3", version="mldv2")
    for sources in (["239.1.1.1"], ["ff1e::1"], [f"10.0.{number}.1" for number in range(65)]):
        with pytest.raises(HoldfastError, match="sources"):
            network.join(host, "239.1.2.3", sources=sources)
    network.join(host, "239.1.2.3", version="igmpv2")
    with pytest.raises(HoldfastError, match="version"):
        network.join(host, "239.1.2.4", version="igmpv3")
