"""Topologies: addresses, ports, and refusal of invalid ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import TopologyError
from holdfast.link import Jitter
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
        (lambda t: t.add_host("h3", "10.9.9.9"), "no room"),
        (lambda t: t.add_host("h3", "10.9.9.0/24"), "host 'h3': 10.9.9.0 is the network address of 10.9.9.0/24"),
        (lambda t: t.add_host("h3", "10.9.9.255/24"), "10.9.9.255 is the broadcast address of 10.9.9.0/24"),
        (lambda t: t.add_host("h3", "10.9.9.254/24"), "10.9.9.254 is its gateway's address, the last of the subnet"),
        (lambda t: t.add_host("h3", "224.0.0.1/24"), "224.0.0.1 is no address of a host"),
        (lambda t: t.port_towards("s1", "s9"), "no link between switches 's1' and 's9'"),
        (lambda t: t.find_link("s1-s9"), "no link"),
        (lambda t: t.find_link("s1-s2#" + "9" * 5000), "no link"),
    ],
)
def test_what_could_not_run_is_refused(action, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TopologyError, match=message):
        action(square())


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
