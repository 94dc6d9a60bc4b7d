"""Addresses of one port as senders at another: refused, counted, and without effect on whose they are (RFC 2827)."""

from __future__ import annotations

import random
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from holdfast import SimulatedNetwork, Topology, UdpStream
from holdfast._core import Program
from holdfast.apps.firewall import FirewallController
from holdfast.apps.firewall.entries import Station
from holdfast.apps.firewall.program import PORT_SETS, SOURCES, Variant, compile_firewall
from holdfast.apps.firewall.rules import Port, RuleSet
from holdfast.apps.firewall.sources import NOWHERE, SourceWriter, holders
from holdfast.apps.firewall.tests import packets as make
from holdfast.control.tables import read_entries

INSIDE, SERVERS, OUTSIDE, UPLINK, BRANCH = 1, 2, 3, 4, 5
HOST, HOST6 = "10.0.1.1", "2001:db8:1::1"
SERVER, SERVER6 = "10.0.2.1", "2001:db8:2::1"
PEER, PEER6 = "198.51.100.1", "2001:db8:9::1"
BRANCH_HOST, BRANCH6 = "10.7.1.9", "2001:db8:7::9"
UNKNOWN, UNKNOWN6 = "10.0.1.77", "2001:db8:1::77"
MACS = {INSIDE: 1, SERVERS: 2, OUTSIDE: 3, UPLINK: 4, BRANCH: 5}


def rules(**changes: Any) -> RuleSet:
    return RuleSet.model_validate(
        {
            "zones": {"inside": {}, "servers": {"may": "reply"}, "outside": {}},
            "ports": [
                {"port": INSIDE, "zone": "inside", "networks": ["10.0.1.0/24", "2001:db8:1::/64"]},
                {"port": SERVERS, "zone": "servers"},
                {"port": OUTSIDE, "zone": "outside", "senders": "mac", "router": True},
                {"port": UPLINK, "zone": "outside", "senders": "any"},
                {
                    "port": BRANCH,
                    "zone": "inside",
                    "senders": "mac",
                    "networks": ["10.7.0.0/16", "2001:db8:7::/48", "10.0.1.128/25"],
                },
            ],
            "bindings": [
                {"port": INSIDE, "mac": "02:00:00:00:00:01", "addresses": [HOST, HOST6]},
                {"port": SERVERS, "mac": "02:00:00:00:00:02", "addresses": [SERVER, SERVER6]},
                {"port": OUTSIDE, "mac": "02:00:00:00:00:03"},
                {"port": BRANCH, "mac": "02:00:00:00:00:05"},
            ],
            "new_flows_per_source": {"per_s": 1, "burst": 20},
            "limits": {"web": {"packets_per_s": 1, "burst_packets": 30}},
            "rules": [{"name": "all", "action": "allow", "limit": "web"}],
            **changes,
        }
    )


@pytest.fixture
def bridge(standalone: Any, programs: dict[Variant, Program], executor: str) -> Any:
    return standalone(programs["bridged"], rules(), executor)


def frame(port: int, src: str, dst: str, payload: bytes, protocol: int = make.TCP, to: int = SERVERS) -> bytes:
    """Return a frame with the MAC address that is bound at ``port``."""
    packet = make.ip(src, dst, protocol, payload)
    return make.ethernet(make.mac(MACS[to]), make.mac(MACS[port]), 0x86DD if ":" in src else 0x0800, packet)


def state(bridge: Any) -> object:
    """Return the contents of all registers of flows."""
    registers = ("flow_keys", "flow_states")
    return [bridge.client.registers(f"FirewallIngress.judge_flow.{name}") for name in registers]


SPOOFED = [
    pytest.param(port, src, dst, id=f"{src}@{port}")
    for port in (OUTSIDE, UPLINK)
    for src, dst in (
        (HOST, SERVER),
        (HOST6, SERVER6),
        (SERVER, HOST),
        (SERVER6, HOST6),
        (UNKNOWN, SERVER),
        (UNKNOWN6, SERVER6),
        (BRANCH_HOST, SERVER),
        (BRANCH6, SERVER6),
    )
] + [
    pytest.param(BRANCH, HOST, SERVER, id="bound to another inside port"),
    pytest.param(BRANCH, UNKNOWN, SERVER, id="in the network of another inside port"),
    pytest.param(BRANCH, PEER, SERVER, id="outside address from inside"),
    pytest.param(BRANCH, PEER6, SERVER6, id="outside address of IPv6 from inside"),
    pytest.param(INSIDE, PEER, SERVER, id="outside address from a host"),
    pytest.param(INSIDE, UNKNOWN, SERVER, id="address of its own network that is not the host's"),
    pytest.param(SERVERS, HOST, PEER, id="inside address from servers"),
]


@pytest.mark.parametrize(("port", "src", "dst"), SPOOFED)
def test_an_address_of_elsewhere_makes_no_state_and_uses_no_limit(bridge: Any, port: int, src: str, dst: str) -> None:
    protocol = 58 if ":" in src else 1
    before = state(bridge)
    segments = [
        (make.TCP, make.tcp(5555, 80, make.SYN)),
        (make.TCP, make.tcp(5555, 80, make.ACK, seq=5, ack=6)),
        (make.TCP, make.tcp(5555, 80, make.RST, seq=5)),
        (make.UDP, make.udp(5555, 53)),
        (protocol, make.icmp(8 if protocol == 1 else 128, 0, 7, 1)),
        (47, bytes(20)),
    ]
    to = SERVERS if dst in (SERVER, SERVER6) else INSIDE if dst in (HOST, HOST6) else OUTSIDE
    for _ in range(8):
        for number, segment in segments:
            assert bridge.reason(port, frame(port, src, dst, segment, number, to)) == "spoofed_address"
    assert state(bridge) == before
    assert bridge.drops() == {"spoofed_address": 48}
    # The limit of the rule and that of the source's new flows are as they were.
    if src in (HOST, HOST6) and dst != PEER:
        results = [
            bridge.reason(INSIDE, frame(INSIDE, src, dst, make.tcp(2000 + at, 80, make.SYN), make.TCP, SERVERS))
            for at in range(20)
        ]
        assert results == ["passes"] * 20


@pytest.mark.parametrize(
    ("port", "src", "dst"),
    [
        (OUTSIDE, PEER, SERVER),
        (OUTSIDE, PEER6, SERVER6),
        (UPLINK, PEER, SERVER),
        (BRANCH, BRANCH_HOST, SERVER),
        (BRANCH, BRANCH6, SERVER6),
        (BRANCH, "10.0.1.129", SERVER),
        (INSIDE, HOST, SERVER),
        (INSIDE, HOST6, SERVER6),
    ],
)
def test_an_address_passes_where_it_belongs(bridge: Any, port: int, src: str, dst: str) -> None:
    assert bridge.reason(port, frame(port, src, dst, make.tcp(5555, 80, make.SYN))) == "passes"


@pytest.mark.parametrize("version", [4, 6])
def test_a_forged_packet_does_not_get_into_a_flow_nor_keep_it(bridge: Any, version: int) -> None:
    src, dst = (HOST, SERVER) if version == 4 else (HOST6, SERVER6)
    assert bridge.reason(INSIDE, frame(INSIDE, src, dst, make.udp(9, 53), make.UDP)) == "passes"
    answer = frame(SERVERS, dst, src, make.udp(53, 9), make.UDP, INSIDE)
    for _ in range(29):
        bridge.elapse(1_000_000)
        for port in (OUTSIDE, UPLINK, BRANCH):
            assert bridge.reason(port, frame(port, src, dst, make.udp(9, 53), make.UDP)) == "spoofed_address"
            forged = frame(port, dst, src, make.udp(53, 9), make.UDP, INSIDE)
            assert bridge.reason(port, forged) == "spoofed_address"
    bridge.elapse(2_000_000)
    assert bridge.reason(SERVERS, answer) == "reply_only", "the flow is over: nobody has answered it"


@pytest.mark.parametrize("version", [4, 6])
def test_an_error_from_an_address_of_elsewhere_is_refused(bridge: Any, version: int) -> None:
    src, dst = (HOST, PEER) if version == 4 else (HOST6, PEER6)
    other = SERVER if version == 4 else SERVER6
    protocol, kind = (1, 3) if version == 4 else (58, 1)
    segment = make.udp(9, 53)
    assert bridge.reason(INSIDE, frame(INSIDE, src, dst, segment, make.UDP, OUTSIDE)) == "passes"
    quoted = make.ip(src, dst, make.UDP, segment)
    error = make.icmp(kind, 1, payload=quoted)
    assert bridge.reason(OUTSIDE, frame(OUTSIDE, other, src, error, protocol, INSIDE)) == "spoofed_address"
    assert bridge.reason(OUTSIDE, frame(OUTSIDE, dst, src, error, protocol, INSIDE)) == "passes"
    # One that quotes what somebody else sent goes to nobody.
    stranger = make.icmp(kind, 1, payload=make.ip(other, dst, make.UDP, segment))
    assert bridge.reason(OUTSIDE, frame(OUTSIDE, dst, src, stranger, protocol, INSIDE)) == "icmp_unrelated"


@pytest.mark.parametrize("variant", ["routed", "bridged"])
@pytest.mark.parametrize(
    "src",
    [
        "0.0.0.0",
        "0.1.2.3",
        "127.0.0.1",
        "127.255.0.9",
        "224.0.0.5",
        "239.1.1.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "ff02::1",
        "ff0e::7",
        "::ffff:10.0.1.1",
        "::10.0.1.1",
        "::127.0.0.1",
    ],
)
def test_addresses_that_nobody_has_come_from_no_port(
    standalone: Any, programs: dict[Variant, Program], executor: str, variant: Variant, src: str
) -> None:
    switch = standalone(programs[variant], rules(), executor)
    dst = SERVER6 if ":" in src else SERVER
    for port in (INSIDE, SERVERS, OUTSIDE, UPLINK, BRANCH):
        assert switch.reason(port, frame(port, src, dst, make.udp(1, 53), make.UDP)) == "bogus_address"


@pytest.mark.parametrize(("src", "dst"), [("169.254.7.7", SERVER), (PEER, "169.254.7.7"), ("fe80::7", SERVER6)])
def test_a_router_forwards_no_addresses_of_one_link(
    standalone: Any, programs: dict[Variant, Program], executor: str, src: str, dst: str
) -> None:
    router = standalone(programs["routed"], rules(), executor)
    assert router.reason(OUTSIDE, frame(OUTSIDE, src, dst, make.udp(1, 53), make.UDP)) == "bogus_address"


def test_fragments_with_an_address_of_elsewhere_make_no_state(bridge: Any) -> None:
    before = state(bridge)
    for flags, offset in ((1, 0), (0, 7), (1, 7)):
        packet = make.ipv4(HOST, SERVER, 17, make.udp(1, 53), flags=flags, offset=offset)
        sent = make.ethernet(make.mac(2), make.mac(3), 0x0800, packet)
        assert bridge.reason(OUTSIDE, sent) == "fragment"
    packet = make.ipv6(HOST6, SERVER6, 44, bytes((17, 0, 0, 1, 0, 0, 0, 1)) + make.udp(1, 53))
    assert bridge.reason(OUTSIDE, make.ethernet(make.mac(2), make.mac(3), 0x86DD, packet)) == "fragment"
    assert state(bridge) == before


def test_a_bridge_takes_a_station_from_its_port_alone(bridge: Any) -> None:
    """Checks a port where anybody may send, too: bridges behind others would look for the station at this one."""
    for station in (INSIDE, SERVERS, OUTSIDE, BRANCH):
        packet = make.ip(PEER, SERVER, make.UDP, make.udp(1, 53))
        sent = make.ethernet(make.mac(2), make.mac(MACS[station]), 0x0800, packet)
        assert bridge.reason(UPLINK, sent) == "spoofed_mac"
    announced = make.ethernet(b"\xff" * 6, make.mac(1), 0x0806, make.arp(1, make.mac(1), PEER, SERVER))
    assert bridge.reason(UPLINK, announced) == "spoofed_mac"
    assert bridge.reason(UPLINK, frame(UPLINK, PEER, SERVER, make.udp(1, 53), make.UDP)) == "passes"


@pytest.mark.parametrize("port", [OUTSIDE, UPLINK, BRANCH])
def test_nobody_answers_or_claims_for_another_port(bridge: Any, port: int) -> None:
    own, broadcast = make.mac(MACS[port]), b"\xff" * 6
    for operation in (1, 2):
        spoof = make.ethernet(broadcast, own, 0x0806, make.arp(operation, own, HOST, SERVER))
        assert bridge.reason(port, spoof) == "spoofed_address"
    probe = make.ethernet(broadcast, own, 0x0806, make.arp(1, own, "0.0.0.0", HOST))
    assert bridge.reason(port, probe) == "spoofed_address"
    for kind, source, target in ((136, HOST6, HOST6), (135, HOST6, SERVER6), (135, "::", HOST6)):
        packet = make.ipv6(source, "ff02::1", 58, make.neighbour(kind, target), hop_limit=255)
        sent = make.ethernet(b"\x33\x33\0\0\0\1", own, 0x86DD, packet)
        assert bridge.reason(port, sent) == "spoofed_address", (kind, source, target)
    # A router may answer for others, but not for those who are elsewhere; nobody else may.
    packet = make.ipv6("fe80::9", "ff02::1", 58, make.neighbour(136, HOST6), hop_limit=255)
    assert bridge.reason(port, make.ethernet(b"\x33\x33\0\0\0\1", own, 0x86DD, packet)) == "spoofed_address"
    for sender in ("127.0.0.1", "224.0.0.1", "0.0.0.9"):
        lie = make.ethernet(broadcast, own, 0x0806, make.arp(2, own, sender, SERVER))
        assert bridge.reason(port, lie) == "bogus_address"
    good = BRANCH_HOST if port == BRANCH else PEER
    assert bridge.receive(port, make.ethernet(broadcast, own, 0x0806, make.arp(2, own, good, SERVER)))


def test_the_rates_of_zones_are_apart(standalone: Any, programs: dict[Variant, Program], executor: str) -> None:
    """Checks that the flows that one zone begins with an address that nobody has reserved leave those of another alone."""
    loose = rules(rules=[{"name": "all", "action": "allow"}], bindings=[])
    ports = [{"port": port, "zone": zone, "senders": "any"} for port, zone in ((1, "inside"), (3, "outside"))]
    ports.append({"port": 2, "zone": "servers", "senders": "any"})
    data = {**loose.model_dump(mode="json", by_alias=True), "ports": ports}
    data["bindings"] = [{"port": SERVERS, "mac": "02:00:00:00:00:02"}]
    bridge = standalone(programs["bridged"], RuleSet.model_validate(data), executor)
    got = [bridge.reason(OUTSIDE, frame(OUTSIDE, HOST, SERVER, make.udp(1000 + at, 53), make.UDP)) for at in range(30)]
    assert got == 20 * ["passes"] + 10 * ["flow_rate"]
    got = [bridge.reason(INSIDE, frame(INSIDE, HOST, SERVER, make.udp(3000 + at, 53), make.UDP)) for at in range(20)]
    assert got == 20 * ["passes"]


def test_hosts_of_other_switches_come_from_links_alone() -> None:
    """Checks two switches: an outside host of the second sends with the address of an inside host of the first."""
    topology = Topology("two")
    for switch in ("s1", "s2"):
        topology.add_switch(switch)
    topology.add_link("s1", "s2")
    for host, switch in (("h1", "s1"), ("h2", "s2"), ("h3", "s2")):
        topology.add_host(host)
        topology.add_link(host, switch)
    outside = topology.attachment("h3")
    everything = {
        "zones": {"inside": {"hosts": ["h1", "h2"]}, "outside": {}, "core": {"switches": True}},
        "ports": [{"port": outside.port, "switch": "s2", "zone": "outside", "senders": "any"}],
        "rules": [{"name": "all", "action": "allow"}],
    }
    controller = FirewallController(RuleSet.model_validate(everything), reaction_delay_ms=1)
    network = SimulatedNetwork(topology, {"s1": routed(), "s2": routed()}, [controller])
    flow = network.add(UdpStream(source="h1", destination="h2", packets_per_s=100, stop_s=1))
    hosts = topology.hosts
    forged = make.ethernet(
        topology.port_mac("s2", outside.port),
        hosts["h3"].mac,
        0x0800,
        make.ip(str(hosts["h1"].address.ip), str(hosts["h2"].address.ip), make.UDP, make.udp(1, 2)),
    )
    for _ in range(50):
        network.send_frame("h3", forged)
    network.run(1.5)
    assert network.statistics(flow).delivered == 100
    assert controller.drops("s2")["spoofed_address"][0] == 50
    assert "spoofed_address" not in controller.drops("s1")


def routed() -> Program:
    return compile_firewall("routed", {"WAY_BITS": "8", "RULES": "64"})


# ---- The entries ----


def test_an_address_that_is_learnt_belongs_to_its_port(bridge: Any) -> None:
    claim = "2001:db8:1::aa"
    granted = rules(
        ports=[
            {"port": INSIDE, "zone": "inside", "authenticated": True},
            {"port": SERVERS, "zone": "servers"},
            {"port": OUTSIDE, "zone": "outside", "senders": "mac"},
        ],
        bindings=[
            {"port": INSIDE, "mac": "02:00:00:00:00:01", "addresses": [HOST, HOST6]},
            {"port": SERVERS, "mac": "02:00:00:00:00:02", "addresses": [SERVER, SERVER6]},
            {"port": OUTSIDE, "mac": "02:00:00:00:00:03"},
        ],
    )
    bridge.controller.replace(granted)
    spoof = frame(OUTSIDE, claim, SERVER6, make.udp(1, 53), make.UDP)
    assert bridge.reason(OUTSIDE, spoof) == "passes", "it is nobody's"
    packet = make.ipv6("::", "ff02::1:ff00:aa", 58, make.neighbour(135, claim), hop_limit=255)
    bridge.receive(INSIDE, make.ethernet(b"\x33\x33\xff\0\0\xaa", make.mac(1), 0x86DD, packet))
    assert bridge.reason(OUTSIDE, spoof) == "spoofed_address"
    bridge.elapse(14_401_000_000)
    assert bridge.reason(OUTSIDE, spoof) == "passes"


@pytest.mark.parametrize("seed", range(4))
def test_changes_of_holders_make_what_writing_all_would(
    standalone: Any, programs: dict[Variant, Program], seed: int
) -> None:
    client, rng = standalone(programs["bridged"], rules()).client, random.Random(seed)
    writer = SourceWriter(client)
    writer.adopt()
    wanted: dict[tuple[int, int], frozenset[int]] = {}
    for step in range(40):
        for _ in range(rng.randrange(5)):
            length = rng.choice((104, 112, 128))
            key = ((0xFFFF << 32 | 10 << 24 | rng.randrange(4) << 16) >> 128 - length << 128 - length, length)
            if rng.random() < 0.3:
                wanted.pop(key, None)
            else:
                wanted[key] = frozenset(rng.sample(range(1, 5), rng.randrange(4)))
        writer.write(wanted)
        sets: dict[int, set[int]] = {}
        for entry in read_entries(client, PORT_SETS):
            sets.setdefault(int(str(entry.match["set"])), set()).add(int(str(entry.match["port"])))
        found = {}
        for entry in read_entries(client, SOURCES):
            number = int(entry.params["number"])
            found[entry.match["address"]] = sets.get(number, set() if number == NOWHERE else {number})
        assert found == wanted
        assert {frozenset(it) for it in sets.values()} == {it for it in wanted.values() if len(it) > 1}
        if step % 10 == 9:
            writer = SourceWriter(client)
            writer.adopt()
            requests = client.requests_sent
            writer.write(wanted)
            assert client.requests_sent == requests, "a successor that wants the same writes nothing"


def test_holders_are_ports_here_and_links_for_those_elsewhere() -> None:
    here, there = (Station(port, 1, (ip_address(text),)) for port, text in ((1, "10.0.0.1"), (7, "10.0.0.2")))
    port = Port(port=2, zone="z", networks=[ip_network("10.0.0.0/8")])
    far = Port(port=9, zone="z", networks=[ip_network("10.0.0.0/8"), ip_network("10.9.0.0/16")])
    mapped = 0xFFFF << 32
    assert holders([here], [port], [there], [far], [4, 5]) == {
        (mapped + 0x0A000001, 128): {1},
        (mapped + 0x0A000002, 128): {4, 5},
        (mapped + 0x0A000000, 104): {2, 4, 5},
        (mapped + 0x0A090000, 112): {4, 5},
    }


def test_networks_of_a_transit_port_are_an_error() -> None:
    port = {"port": 1, "zone": "core", "senders": "mac", "transit": True, "networks": ["10.0.0.0/8"]}
    with pytest.raises(ValueError, match="where they enter"):
        RuleSet.model_validate({"zones": {"core": {}}, "ports": [port]})
