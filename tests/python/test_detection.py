"""Failure detection from Python: hellos between switches, and a controller's word."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import HoldfastError, SimulatedNetwork, Topology, UdpStream
from holdfast._core import read_pcap
from holdfast.apps.router import RouterController, compile_router
from holdfast.link import Bfd
from holdfast.measurements import Drops

BFD = Bfd(tx_ms=20, rx_ms=20, multiplier=3)


def triangle(bfd: Bfd | None) -> Topology:
    """Return a topology with h1 at s1, h2 at s2, and a detour by s3 around the link s1-s2."""
    t = Topology("triangle")
    for host in ("h1", "h2"):
        t.add_host(host)
    for switch in ("s1", "s2", "s3"):
        t.add_switch(switch)
    t.add_link("h1", "s1")
    t.add_link("h2", "s2")
    t.add_link("s1", "s2", delay_ms=1, bfd=bfd)
    t.add_link("s1", "s3", delay_ms=1, bfd=bfd)
    t.add_link("s3", "s2", delay_ms=1, bfd=bfd)
    return t


def silent(bfd: Bfd | None, *, seed: int = 1) -> tuple[SimulatedNetwork, int]:
    """Return a network that sends a packet every millisecond, and the flow's number.

    From 500 ms on, the link s1-s2 loses every packet to s2.
    """
    controller = RouterController(reroute=True, reaction_delay_ms=5)
    network = SimulatedNetwork(triangle(bfd), compile_router(), [controller], seed=seed, detection_delay_ms=10)
    flow = network.add(UdpStream(source="h1", destination="h2", packets_per_s=1000, stop_s=1.5))
    network.set_silent_loss("s1-s2", at_s=0.5, one_way=True)
    network.run(2)
    return network, flow


def test_a_silent_failure_lasts_without_hellos_and_is_routed_around_with_them() -> None:
    network, flow = silent(None)
    assert network.statistics(flow).lost == 1000, "from 0.5 s to the end"
    assert network.bfd_statistics("s1", 2) is None
    for seed in range(5):
        network, flow = silent(BFD, seed=seed)
        # Two to three intervals until s2 misses hellos; then s1 is told, and the controller takes 5 ms.
        assert 40 <= network.statistics(flow).lost <= 70
        deaf, other = network.bfd_statistics("s2", 2), network.bfd_statistics("s1", 2)
        assert deaf is not None
        assert other is not None
        assert (deaf.state, deaf.diagnostic, deaf.expired) == ("down", 1, 1)
        assert (other.state, other.expired, other.went_down) == ("init", 0, 1)
        assert network.port_is_up("s2", 2), "there is a signal"
    assert silent(BFD)[0].bfd_statistics("s1", 2) == silent(BFD)[0].bfd_statistics("s1", 2)


def test_hellos_do_not_flap_and_are_frames(tmp_path: Path) -> None:
    network = SimulatedNetwork(triangle(BFD), compile_router(), [RouterController(reroute=True, reaction_delay_ms=5)])
    path = tmp_path / "hellos.pcap"
    network.capture("s1", 2, path)
    network.run(10)
    frames = [bytes(frame) for _, frame in read_pcap(path)]
    statistics = network.bfd_statistics("s1", 2)
    assert statistics is not None
    assert (statistics.state, statistics.went_down, statistics.refused) == ("up", 0, 0)
    assert len(frames) == statistics.sent + statistics.received
    assert {len(frame) for frame in frames} == {66}
    assert {frame[:6].hex() for frame in frames} == {"01005e900001"}
    # Version 1, up, a multiplier of 3, 24 bytes; in UDP to port 3784, with a TTL of 255.
    assert {frame[42:46].hex() for frame in frames} == {"20c00318"}
    assert {(frame[22], frame[36:38].hex()) for frame in frames} == {(255, "0ec8")}


def test_a_controllers_word_takes_a_port_down() -> None:
    controller = RouterController(reroute=True, reaction_delay_ms=5)
    network = SimulatedNetwork(triangle(None), compile_router(), [controller])
    flow = network.add(UdpStream(source="h1", destination="h2", packets_per_s=1000, stop_s=1))
    network.set_silent_loss("s1-s2", at_s=0.2)
    network.call_later(300, lambda: network.declare_port("s1", 2))
    network.run(2)
    assert network.statistics(flow).lost in range(104, 107)
    with pytest.raises(HoldfastError, match="it has no link"):
        network.declare_port("s1", 9)


def test_drops_are_counted_by_reason_when_asked_for() -> None:
    network = SimulatedNetwork(triangle(None), compile_router(), [RouterController(reroute=False, reaction_delay_ms=0)])
    drops = network.count_drops()
    network.add(UdpStream(source="h1", destination="h2", packets_per_s=1000, stop_s=1))
    network.set_silent_loss("s1-s2", at_s=0.25)
    network.set_link("s1-s2", up=False, at_s=0.5)
    network.run(2)
    assert drops() == [Drops("s1", "loss", 250), Drops("s1", "link_down", 500)]


@pytest.mark.parametrize(
    "wrong", [{"tx_ms": 0.01}, {"rx_ms": 0}, {"multiplier": 0}, {"multiplier": 256}, {"interval": 3}]
)
def test_timers_that_cannot_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(HoldfastError):
        triangle(None).add_link("s1", "s2", bfd=wrong)


def test_from_yaml(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text("switches: [s1, s2]\nlinks:\n  - {a: s1, b: s2, bfd: {tx_ms: 3.3, rx_ms: 10, multiplier: 5}}\n")
    link = Topology.from_yaml(path).links[0]
    assert link.bfd == Bfd(tx_ms=3.3, rx_ms=10, multiplier=5)


def test_hosts_send_no_hellos() -> None:
    topology = triangle(None)
    topology.links[0] = topology.links[0].model_copy(update={"bfd": BFD})
    with pytest.raises(HoldfastError, match="BFD is between switches"):
        SimulatedNetwork(topology, compile_router())
