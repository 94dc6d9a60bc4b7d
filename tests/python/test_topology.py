"""Topologies: addresses, ports, and refusal of invalid ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.apps.router import compile_router
from holdfast.errors import TopologyError, TopologyWarning
from holdfast.link import Jitter
from holdfast.network import SimulatedNetwork
from holdfast.topology import Topology


def square() -> Topology:
    t = Topology("square")
    t.add_host("h1")
    t.add_host("h2")
    for name in ("s1", "s2", "s3", "s4"):
        t.add_switch(name)
    t.add_link("h1", "s1")
    t.add_link("s1", "s2")
    t.add_link("s2", "s4")
    t.add_link("s1", "s3", cost=2)
    t.add_link("s3", "s4", cost=2)
    t.add_link("s4", "h2")
    return t


def test_ports_and_addresses_are_guessable() -> None:
    t = square()
    assert [(link.a_port, link.b_port) for link in t.links] == [(0, 1), (2, 1), (2, 1), (3, 1), (2, 2), (3, 0)]
    assert str(t.hosts["h2"].address) == "10.0.2.1/24"
    assert str(t.hosts["h2"].gateway) == "10.0.2.254"
    assert t.attachment("h2").switch == "s4"
    assert t.port_towards("s1", "s3") == 3
    assert t.port_mac("s4", 3) == bytes((2, 1, 0, 4, 0, 3))
    assert t.find_link("s2-s1") == 1


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda t: t.add_host("h1"), "declared twice"),
        (lambda t: t.add_switch("a b"), "use letters"),
        (lambda t: t.add_link("h1", "s2"), "has a link already"),
        (lambda t: t.add_link("s1", "s9"), "no node 's9'"),
        (lambda t: t.add_link("s1", "s1"), "same node"),
        (lambda t: t.add_link("s1", "s4", rate_bps=0), "rate_bps"),
        (lambda t: t.add_link("s1", "s4", delay_ms=-1), "delay_ms"),
        (lambda t: t.add_link("s1", "s4", loss=2), "loss"),
        (lambda t: t.add_link("s1", "s4", speed=1), "speed"),
        (lambda t: t.add_link("s1", "s4", a_port=2), "port 2 of 's1' is taken"),
        (lambda t: t.add_host("h3", "10.0.1.9/16"), "overlapping"),
        (
            lambda t: t.add_host("h3", "10.9.9.0/24"),
            "host 'h3': address: 10.9.9.0 is the network address of 10.9.9.0/24",
        ),
        (lambda t: t.add_host("h3", "10.9.9.255/24"), "10.9.9.255 is the broadcast address of 10.9.9.0/24"),
        (lambda t: t.add_host("h3", "10.9.9.254/24"), "10.9.9.254 is its gateway's address, the last of the subnet"),
        (lambda t: t.add_host("h3", "224.0.0.1/24"), "224.0.0.1 is no address of a host"),
        (lambda t: t.add_host("h3", "10.0.1.1/24"), "hosts 'h1' and 'h3' have the same address 10.0.1.1"),
        (lambda t: t.add_host("h3", mac="02:00:00:00:00:01"), "host 'h1' and host 'h3' have the same MAC address"),
        (lambda t: t.add_host("h3", mac="02:01:00:01:00:02"), "port 2 of switch 's1' and host 'h3' have the same MAC"),
        (
            lambda t: t.add_host("h3", mac="01:00:5e:00:00:01"),
            "mac: 01:00:5e:00:00:01 is not the MAC address of one station",
        ),
        (lambda t: t.add_host("h3", mac="08:00"), "mac: '08:00' is no MAC address"),
        (lambda t: t.add_host("h3", gateway="10.0.3.1"), "10.0.3.1 is its own gateway"),
        (lambda t: t.add_host("h3", gateway="none of them"), "gateway"),
        (lambda t: t.add_host("h3", neighbours={"10.0.3.2": "here"}), r"neighbours.10.0.3.2: 'here' is no MAC address"),
        (
            lambda t: t.add_host("h3", interfaces=[{"address": "10.0.3.2/24"}]),
            "two of its network cards are in 10.0.3.0/24",
        ),
        (
            lambda t: t.add_host("h3", interfaces=[{"address": "10.0.2.1/24"}]),
            "hosts 'h2' and 'h3' have the same address",
        ),
        (lambda t: t.add_host("h3", vlan=4095), "vlan"),
        (lambda t: t.add_host("h3", commands=[" "]), "commands: a command has words"),
        (lambda t: t.add_host("h3", namespace="a/b"), "namespace: 'a/b' is no network namespace"),
        (lambda t: t.add_host("h3", gatewey="10.0.3.9"), "gatewey"),
        (lambda t: t.add_host("-h3"), "'-' between others"),
        (lambda t: t.add_link("h1", "s2", a_port=1), "port|network cards"),
        (lambda t: t.add_switch("s5", device_id=2), "switches 's2' and 's5' have the same device_id 2"),
        (lambda t: t.add_switch("s5", grpc="localhost"), "grpc: 'localhost' is not the address of a server"),
        (lambda t: t.port_towards("s1", "s9"), "no link between switches 's1' and 's9'"),
        (lambda t: t.find_link("s1-s9"), "no link"),
        (lambda t: t.find_link("s1-s2#" + "9" * 5000), "no link"),
    ],
)
def test_what_could_not_run_is_refused(action, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TopologyError, match=message):
        action(square())


def test_a_refused_host_leaves_nothing_behind() -> None:
    t = square()
    with pytest.raises(TopologyError, match="the same MAC"):
        t.add_host("h3", "10.7.0.1/24", mac="02:00:00:00:00:01", interfaces=[{"address": "10.8.0.1/16"}])
    t.add_host("h3", "10.7.0.1/23", interfaces=[{"address": "10.8.0.1/17"}])


def test_hosts_share_a_subnet_and_have_the_addresses_that_they_are_given() -> None:
    t = Topology()
    one = t.add_host("h1", "10.0.0.1/24", mac="08:00:00:00:01:11", gateway="10.0.0.10")
    two = t.add_host("h2", "10.0.0.2/24", mac=b"\x08\0\0\0\2\x22", gateway="none", neighbours={"10.0.0.1": one.mac})
    assert [one.mac.hex(":"), two.mac.hex(":")] == ["08:00:00:00:01:11", "08:00:00:00:02:22"]
    assert (str(one.gateway), two.gateway, one.has_own_gateway) == ("10.0.0.10", None, True)
    assert two.neighbours == {one.address.ip: one.mac}
    # RFC 3021: of a /31 both addresses are hosts', and a /32 has no other address.
    pair = [t.add_host(f"p{i}", f"10.0.1.{i}/31") for i in (0, 1)]
    assert [str(host.gateway) for host in pair] == ["10.0.1.1", "10.0.1.0"]
    assert t.add_host("alone", "10.0.1.2/32").gateway is None
    t.add_ipv6()
    assert t.hosts["h1"].mac == one.mac
    assert str(t.hosts["h2"].ipv6) == "2001:db8:0:2::1/64"


def test_links_take_a_hosts_network_cards_in_order() -> None:
    t = Topology()
    host = t.add_host(
        "h1", interfaces=[{"address": "10.5.0.1/24"}, {"address": "10.6.0.1/24", "mac": "08:00:00:00:00:09"}]
    )
    for name in ("s1", "s2", "s3"):
        t.add_switch(name)
    assert [t.add_link("s1", "h1", b_port=1).b_port, t.add_link("h1", "s2").a_port, t.add_link("h1", "s3").a_port] == [
        1,
        0,
        2,
    ]
    assert [(place.switch, place.card) for place in t.attachments("h1")] == [("s2", 0), ("s1", 1), ("s3", 2)]
    assert t.attachment("h1").switch == "s2"
    assert [card.mac.hex(":") for card in host.cards] == ["02:00:00:00:00:01", "02:00:00:01:00:01", "08:00:00:00:00:09"]
    with pytest.raises(TopologyError, match="host 'h1' has a link at each of its 3 network cards"):
        t.add_link("h1", "s1")
    t.check()  # The host is in all three parts.
    assert list(t.largest_part().hosts) == ["h1"]


def test_names_with_hyphens_name_one_link_or_say_which_ones() -> None:
    t = Topology()
    for name in ("a", "a-b", "b-c", "c", "a-a"):
        t.add_switch(name)
    t.add_link("a", "b-c")
    t.add_link("a-b", "c")
    t.add_link("a-a", "a")
    assert t.link_names() == ["a:1-b-c:1", "a-b:1-c:1", "a-a-a"]
    assert [t.find_link(name) for name in t.link_names()] == [0, 1, 2]
    assert [t.find_link("c:1-a-b:1"), t.find_link("b-c-a")] == [1, 0]
    with pytest.raises(TopologyError, match="'a-b-c' can be any of the links a:1-b-c:1, a-b:1-c:1"):
        t.find_link("a-b-c")
    assert [t.is_forward("a:1-b-c:1"), t.is_forward("b-c-a")] == [True, False]
    with pytest.raises(TopologyError, match="both directions of the link a-a:1-a:2"):
        t.is_forward("a-a-a")
    t.add_link("a", "b-c")
    assert [t.find_link(name) for name in t.link_names()] == [0, 1, 2, 3]


def test_a_simulated_host_runs_no_commands_and_says_so() -> None:
    t = Topology()
    t.add_switch("s1", cpu_port=300)
    t.add_host("h1", commands=["echo a", "echo b"])
    t.add_link("h1", "s1")
    with pytest.warns(TopologyWarning, match="^host 'h1' is simulated, and runs no commands: 'echo a', 'echo b'$"):
        network = SimulatedNetwork(t, compile_router())
    assert network.devices["s1"].switch.cpu_port == 300


EVERYTHING = """\
hosts:
  h-1:
    address: 10.0.1.1/24
    mac: 12:34:56:12:34:56
    gateway: 10.0.1.10
    neighbours: {10.0.1.10: 08:00:00:00:01:00, "2001:db8::9": "08:00:00:00:01:01"}
    commands: [ip route show, "true"]
    vlan: 7
    namespace: "pid:12"
  h2: {address: 10.0.1.2/24, gateway: none, interfaces: [{address: 10.5.0.1/31, mac: 08:00:00:00:00:05}, {address: 10.6.0.1/32}]}
  h3:
switches:
  s1: {program: a.p4, entries: e.json, device_id: 5, grpc: "127.0.0.1:50051", cpu_port: 500}
  s-2:
links:
- {a: h-1, b: s1}
- {a: h2, b: s1}
- {a: h2, b: s-2}
- {a: h3, b: s1}
- {a: s1, b: s-2}
"""


def test_what_hosts_and_switches_are_given_survives_a_file(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(EVERYTHING)
    one = Topology.from_yaml(tmp_path / "one.yaml")
    host = one.hosts["h-1"]
    assert (host.mac.hex(":"), host.vlan, host.namespace) == ("12:34:56:12:34:56", 7, "pid:12")
    assert {str(address): mac.hex(":") for address, mac in host.neighbours.items()} == {
        "10.0.1.10": "08:00:00:00:01:00",
        "2001:db8::9": "08:00:00:00:01:01",
    }
    assert one.switches["s1"].program == str(tmp_path / "a.p4")
    assert [one.switches[name].device_id for name in ("s1", "s-2")] == [5, 2]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "two.yaml").write_text(one.to_yaml())
    two = Topology.from_yaml(tmp_path / "other" / "two.yaml")
    for kind in ("hosts", "switches"):
        nodes, again = ({name: node.model_dump() for name, node in getattr(each, kind).items()} for each in (one, two))
        assert nodes == again
    assert two.to_yaml() == one.to_yaml()
    assert one.largest_part().to_yaml() == one.copy().to_yaml() == one.to_yaml()


def test_jitter_bounds() -> None:
    with pytest.raises(ValueError, match="below"):
        Jitter(distribution="uniform", low_ms=2, high_ms=1)


def test_yaml(tmp_path: Path) -> None:
    file = tmp_path / "pair.yaml"
    file.write_text(
        "hosts: {h1: , h2: {address: 192.168.7.1/24}}\nswitches: [s1]\n"
        "links: [{a: h1, b: s1, delay_ms: 0.5}, {a: s1, b: h2, jitter: {distribution: uniform, high_ms: 1}}]\n"
    )
    t = Topology.from_yaml(file)
    assert t.name == "pair"
    assert str(t.hosts["h2"].address) == "192.168.7.1/24"
    assert t.links[0].delay_ms == 0.5
    file.write_text("hosts: [h1]\n")
    with pytest.raises(TopologyError, match=r"pair\.yaml: host 'h1' has no link"):
        Topology.from_yaml(file)
    with pytest.raises(TopologyError, match="No such file"):
        Topology.from_yaml(tmp_path / "absent.yaml")
