"""Simulated hosts as people have them: shared subnets, ARP and neighbour discovery, several cards, VLANs, and who refuses what."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import _core
from holdfast.apps.bier import BierController, compile_bier
from holdfast.apps.ipmc import IpmcController, compile_ipmc
from holdfast.apps.mpls import MplsController, compile_mpls
from holdfast.apps.protect import ProtectController, compile_protect
from holdfast.apps.router import RouterController, compile_router
from holdfast.apps.shorternet import ShorternetController, compile_shorternet
from holdfast.apps.telemetry import TelemetryController, compile_telemetry
from holdfast.controller import Controller
from holdfast.errors import HoldfastError, NetworkError
from holdfast.live.tests.learning_switch import Learning, compiled, four_in_one_subnet, lan
from holdfast.network import SimulatedNetwork
from holdfast.topology import Topology
from holdfast.traffic import Ping, TcpTransfer, UdpStream


def pings(network: SimulatedNetwork, source: str, destination: str, count: int = 20, **fields: Any) -> int:
    """Add ``count`` pings, 10 ms apart, and return their flow."""
    start_s = network.now_ps / 1e12
    return network.add(
        Ping(
            source=source,
            destination=destination,
            interval_ms=10,
            start_s=start_s,
            stop_s=start_s + count / 100,
            **fields,
        )
    )


def answered(network: SimulatedNetwork, flow: int) -> tuple[int, int]:
    """Return how many pings were sent and answered."""
    found = network.statistics(flow)
    return found.sent, found.delivered


def test_a_learning_switch_answers_all_pings() -> None:
    learning = Learning()
    network = SimulatedNetwork(four_in_one_subnet(), compiled(), [learning])
    flows = [pings(network, *pair) for pair in (("h1", "h3"), ("h4", "h2"))]
    flows.append(pings(network, "h1", "h2", family="ipv6"))
    tcp = network.add_tcp(TcpTransfer(source="h2", destination="h4", application="transfer", transfer_bytes=50_000))
    network.run(2)
    assert [answered(network, flow) for flow in flows] == [(20, 20)] * 3
    assert network.tcp_statistics(tcp).finished_ps is not None
    assert {mac for _, mac, _ in learning.stations} == {
        int.from_bytes(h.mac, "big") for h in network.topology.hosts.values()
    }


def test_a_learning_switch_of_several_switches_finds_a_host_that_moved() -> None:
    hosts = [{"address": f"10.0.0.{n}/24", "gateway": "none"} for n in range(1, 5)]
    learning = Learning()
    network = SimulatedNetwork(lan(*hosts, switches=3), compiled(), [learning])
    flow = pings(network, "h1", "h3")
    network.run(1)
    assert answered(network, flow) == (20, 20)
    # h2 speaks with h3's addresses: the frames for these go to it from then on.
    place = network.topology.attachment("h2")
    frame = bytes.fromhex("ffffffffffff") + network.topology.hosts["h3"].mac + b"\x88\xb5" + bytes(46)
    network.send_frame("h2", frame)
    network.run(1.1)
    assert learning.stations[place.switch, int.from_bytes(frame[6:12], "big"), 0] == place.port


def test_two_cards_vlans_and_short_prefixes(tmp_path: Path) -> None:
    t = Topology()
    for name in ("s1", "s2"):
        t.add_switch(name)
    two = {"address": "10.1.0.2/24", "mac": "08:00:00:00:00:22"}
    t.add_host("h-1", "10.0.0.1/24", mac="08:00:00:00:01:11", gateway="10.0.0.2", interfaces=[two])
    t.add_host("h2", "10.0.0.2/24", gateway="none")
    t.add_host("h3", "10.1.0.3/24", gateway="none")
    t.add_host("v1", "10.2.0.0/31", vlan=5)
    t.add_host("v2", "10.2.0.1/31", vlan=5)
    t.add_host("a", "10.3.0.1/32", gateway="10.3.0.9", neighbours={"10.3.0.9": "08:00:00:00:03:09"}, vlan=6)
    t.add_host("b", "10.4.0.1/32", mac="08:00:00:00:03:09", gateway="10.3.0.1", vlan=6)
    for host, switch in (("h-1", "s1"), ("h-1", "s2"), ("h2", "s1"), ("h3", "s2")):
        t.add_link(host, switch)
    for name in ("v1", "v2", "a", "b"):
        t.add_link(name, "s1")
    learning = Learning()
    network = SimulatedNetwork(t, compiled(), [learning])
    network.capture("h-1", 1, tmp_path / "second.pcap")
    flows = [pings(network, *pair) for pair in (("h-1", "h2"), ("h-1", "h3"), ("h3", "h-1"), ("v1", "v2"), ("a", "b"))]
    network.run(1)
    assert [answered(network, flow) for flow in flows] == [(20, 20)] * 5
    assert network.link_counters("h-1-s2").a_to_b.packets >= 40
    assert len(_core.read_pcap(tmp_path / "second.pcap")) >= 80
    assert {vlan for _, mac, vlan in learning.stations if mac == 0x080000000309} == {6}
    # What no route leads to is refused, and who is in another VLAN is not heard.
    with pytest.raises(HoldfastError, match="host h2 has no route"):
        pings(network, "h2", "h3")
    with pytest.raises(HoldfastError, match="host h2 has no route"):
        network.add(UdpStream(source="h2", destination="v1", packets_per_s=1, start_s=2, stop_s=9))


def test_packets_to_nobody_are_counted() -> None:
    hosts = [{"address": f"10.0.0.{n}/24", "gateway": "10.0.0.99"} for n in (1, 2)]
    t = lan(*hosts, {"address": "10.1.0.1/24", "gateway": "none"})
    network = SimulatedNetwork(t, compiled(), [Learning()])
    flow = pings(network, "h1", "h3")
    network.run(10)
    assert answered(network, flow) == (20, 0)
    assert network.node_counters("h1").unresolved_drops == 20


def rows(t: Topology, capture: Path) -> list[Any]:
    """Return all that a run of pings, a stream and a connection tells."""
    network = SimulatedNetwork(t, compile_router(), [RouterController(reroute=True, reaction_delay_ms=1)], seed=3)
    network.capture("h1", 0, capture)
    ping = pings(network, "h1", "h2")
    stream = network.add(UdpStream(source="h2", destination="h1", packets_per_s=5000, stop_s=0.2, spacing="poisson"))
    tcp = network.add_tcp(TcpTransfer(source="h1", destination="h2", application="transfer", transfer_bytes=100_000))
    network.set_link("s1-s2", up=False, at_s=0.1)
    network.run(1)
    counters = [network.node_counters(name) for name in (*t.hosts, *t.switches)]
    return [
        network.received(ping),
        network.received(stream),
        network.tcp_statistics(tcp),
        counters,
        list(network.all_link_counters()),
    ]


def test_a_gateway_that_is_known_costs_no_event(tmp_path: Path) -> None:
    """The default gateway is known from the start; so is one that is given with its MAC address: not one packet differs."""

    def triangle(**fields: dict[str, Any]) -> Topology:
        t = Topology()
        for name in ("s1", "s2", "s3"):
            t.add_switch(name)
        for name in ("h1", "h2"):
            t.add_host(name, **fields.get(name, {}))
        for ends in (("h1", "s1"), ("s1", "s2"), ("s2", "h2"), ("s1", "s3"), ("s3", "s2")):
            t.add_link(*ends, rate_bps=10_000_000, delay_ms=1)
        return t

    plain = rows(triangle(), tmp_path / "h1.pcap")
    macs = {
        name: triangle().port_mac(place.switch, place.port)
        for name in ("h1", "h2")
        if (place := triangle().attachment(name))
    }
    given = {
        name: {"address": f"10.0.{n}.1/24", "gateway": f"10.0.{n}.9", "neighbours": {f"10.0.{n}.9": macs[name]}}
        for n, name in enumerate(("h1", "h2"), 1)
    }
    assert rows(triangle(**given), tmp_path / "given.pcap") == plain
    # No question is among the frames.
    assert {frame[12:14] for _, frame in _core.read_pcap(tmp_path / "h1.pcap")} == {b"\x08\x00"}


ROUTED: dict[str, tuple[Callable[[], Any], Callable[[], Controller]]] = {
    "the router": (compile_router, lambda: RouterController(reroute=True, reaction_delay_ms=1)),
    "the protected network": (compile_protect, lambda: ProtectController(reaction_delay_ms=1)),
    "the MPLS router": (compile_mpls, lambda: MplsController(reaction_delay_ms=1)),
    "the BIER domain": (compile_bier, lambda: BierController(ip_delay_ms=1, bier_delay_ms=1)),
    "the telemetry domain": (compile_telemetry, lambda: TelemetryController(collector=None, reaction_delay_ms=1)),
    "the multicast router": (compile_ipmc, lambda: IpmcController(reroute=False, reaction_delay_ms=1)),
    "ShorterNet": (compile_shorternet, lambda: ShorternetController(reaction_delay_ms=1)),
}


@pytest.mark.parametrize("what", ROUTED)
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"address": "10.0.1.2/24", "gateway": "10.0.1.254"}, r"hosts 'h1' and 'h2' are both in 10\.0\.1\.0/24"),
        ({"vlan": 5}, "host 'h2' is in VLAN 5"),
        ({"gateway": "10.0.2.9"}, "host 'h2' asks by ARP for its gateway 10.0.2.9"),
        ({"interfaces": [{"address": "10.9.0.1/24"}]}, "host 'h2' has 2 network cards"),
    ],
)
def test_what_routes_between_subnets_refuses_what_it_cannot_route(
    what: str, fields: dict[str, Any], message: str
) -> None:
    program, controller = ROUTED[what]
    t = Topology()
    t.add_switch("s1")
    t.add_host("h1")
    t.add_host("h2", **fields)
    for host in ("h1", "h2"):
        t.add_link(host, "s1")
    if what == "the router" and "interfaces" in fields:
        SimulatedNetwork(t, program(), [controller()])
        return
    with pytest.raises(NetworkError, match=message) as caught:
        SimulatedNetwork(t, program(), [controller()])
    assert what in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("what", ROUTED)
def test_what_routes_between_subnets_routes_to_31_and_32_bits(what: str) -> None:
    program, controller = ROUTED[what]
    t = Topology()
    t.add_switch("s1")
    t.add_host("h1", "10.0.0.1/31")
    known = {"gateway": "10.0.0.9", "neighbours": {"10.0.0.9": t.port_mac("s1", 2)}}
    t.add_host("h2", "10.0.0.2/32", **known)
    for host in ("h1", "h2"):
        t.add_link(host, "s1")
    network = SimulatedNetwork(t, program(), [controller()])
    flow = pings(network, "h1", "h2")
    network.run(1)
    assert answered(network, flow) == (20, 20)


def test_the_router_routes_to_both_cards_of_a_host() -> None:
    t = Topology()
    for name in ("s1", "s2"):
        t.add_switch(name)
    t.add_host("h1", interfaces=[{"address": "10.9.0.1/24"}])
    t.add_host("h2")
    t.add_host("h3", "10.9.1.1/24")
    for ends in (("h1", "s1"), ("h1", "s2"), ("h2", "s2"), ("h3", "s1"), ("s1", "s2")):
        t.add_link(*ends)
    network = SimulatedNetwork(t, compile_router(), [RouterController(reroute=True, reaction_delay_ms=1)])
    flows = [pings(network, "h1", "h2"), pings(network, "h2", "h1"), pings(network, "h3", "h1")]
    network.run(1)
    assert [answered(network, flow) for flow in flows] == [(20, 20)] * 3
    assert network.clients["s1"].read_table("RouterIngress.ipv4_lpm")
    prefixes = {str(entry.match) for entry in network.clients["s2"].read_table("RouterIngress.ipv4_lpm")}
    assert any(str(0x0A090000) in prefix for prefix in prefixes), prefixes
