"""A gateway of several switches in a network: control and sessions through the balancer, handover, lost planes, and storms."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import ICMPv6ND_RS, IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.layers.ppp import PPP, PPPoE
from scapy.packet import Raw
from scapy.utils import rdpcap

from holdfast import SimulatedNetwork
from holdfast._core import Program, Switch
from holdfast.apps.bng.balancing import assigned, bucket_of
from holdfast.apps.bng.conftest import discovery, lcp, on_line, session
from holdfast.apps.bng.controller import SplitCables, SplitGateway
from holdfast.apps.bng.edges import AccessPort, CorePort, Edges, Route
from holdfast.apps.bng.program import BUCKETS, Variant
from holdfast.apps.bng.split import SplitPlane
from holdfast.control.domain import refused
from holdfast.errors import NetworkError
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device
from holdfast.subscribers.plane import Clock, Line, Rates, Session, UserPlane
from holdfast.topology import PacketGenerator, Topology
from holdfast.traffic import UdpStream

HOMES = Path(__file__).parent / "access.p4"
UPLINK = 20
GATEWAY = "02:00:00:00:00:01"
PLANES = {"forward1": (1, 11, 12), "forward2": (1, 21, 22), "forward3": (1, 31, 32)}
SUBSCRIBERS = 8


def lines() -> list[Line]:
    """Return the subscribers' lines: the first SUBSCRIBERS of the access port, whose buckets are spread over all planes."""
    return [Line(1, 100, 10 + number) for number in range(SUBSCRIBERS)]


class Gateway:
    """Homes, a balancer, an authentication plane, three forwarding planes and a server, in a simulation."""

    def __init__(self, programs: dict[str, Program], storm: PacketGenerator | None = None, **given: Any) -> None:
        topology = Topology("split")
        for name in ("homes", "balancer", "authentication", *PLANES):
            topology.add_switch(name)
        for number in range(SUBSCRIBERS):
            topology.add_host(f"home{number}", f"10.0.{number}.1/24")
            topology.add_link(f"home{number}", "homes", b_port=number + 1, delay_ms=0.01)
        topology.add_host("server", "198.51.100.9/24")
        topology.add_link("homes", "balancer", a_port=UPLINK, b_port=1, delay_ms=1)
        topology.add_link("authentication", "balancer", a_port=1, b_port=2, delay_ms=0.05)
        topology.add_link("server", "balancer", b_port=3, delay_ms=1)
        for name, (trunk, access, core) in PLANES.items():
            topology.add_link(name, "balancer", a_port=trunk, b_port=access, delay_ms=0.05)
            topology.add_link(name, "balancer", a_port=2, b_port=core, delay_ms=0.05)
        if storm is not None:
            topology.packet_generators.append(storm)
        core_mac = topology.port_mac("balancer", 3).hex(":")
        server_mac = topology.hosts["server"].mac.hex(":")
        self.edges = Edges(
            access=(AccessPort(port=1, mac=GATEWAY),),
            core=(CorePort(port=2, mac=core_mac, addresses=(IPv4Address("198.51.100.254"),)),),
            routes=(Route(prefix=IPv4Network("0.0.0.0/0"), port=2, next_hop_mac=server_mac),),
        )
        self.cables = SplitCables("balancer", ("authentication", 1, 2), PLANES, {server_mac: 3})
        self.heard: list[tuple[Line, bytes]] = []
        self.sessions = [
            session(number + 1, line, ipv4=IPv4Address(f"10.0.{number}.1"), mac=bytes((2, 9, 0, 0, 0, number)))
            for number, line in enumerate(lines())
        ]
        self.controller = SplitGateway(self.cables, self.edges, self.start, reaction_delay_ms=1, drain_ms=5)
        loaded = {"homes": programs["homes"], "balancer": programs["balancer"], "authentication": programs["auth"]}
        loaded |= dict.fromkeys(PLANES, programs["forward"])
        self.network = SimulatedNetwork(topology, loaded, [self.controller], **given)
        self._dial()

    def start(self, plane: UserPlane, clock: Clock) -> None:
        """Start the control plane of these tests, which installs all sessions and records the frames that it receives."""
        self.clock = clock
        plane.receive(lambda line, frame: self.heard.append((line, frame)))
        plane.install(self.sessions)

    def _dial(self) -> None:
        client, topology = self.network.clients["homes"], self.network.topology
        for number, each in enumerate(self.sessions):
            host, port = topology.hosts[f"home{number}"], number + 1
            number_, line = each.session_id, each.line
            client.insert(
                "homes",
                {"port": port},
                "dial",
                {
                    "uplink": UPLINK,
                    "session_id": number_,
                    "s_vid": line.s_tag,
                    "c_vid": line.c_tag,
                    "mac": each.mac,
                    "gateway": GATEWAY,
                },
            )
            key = {"session_id": number_, "s_vid": line.s_tag, "c_vid": line.c_tag, "mac": each.mac}
            mac = topology.port_mac("homes", port)
            client.insert(
                "hosts",
                {**key, "address": str(host.address.ip)},
                "deliver",
                {"port": port, "host_mac": host.mac, "our_mac": mac},
            )

    @property
    def plane(self) -> SplitPlane:
        return self.controller.user_plane

    def streams(self, per_s: float, stop_s: float, start_s: float = 0.0) -> list[tuple[int, Session, bool]]:
        """Add flows to and from all subscribers, with ``per_s`` packets per second in all.

        Return for each its number, its session, and True if it is upstream.
        """
        rate = per_s / (2 * SUBSCRIBERS)
        found = []
        for number, each in enumerate(self.sessions):
            for is_up in (True, False):
                ends = (f"home{number}", "server") if is_up else ("server", f"home{number}")
                stream = UdpStream(
                    source=ends[0],
                    destination=ends[1],
                    packets_per_s=rate,
                    payload_bytes=100,
                    source_port=5000 + number,
                    destination_port=6000 + 2 * number + is_up,
                    start_s=start_s,
                    stop_s=stop_s,
                    log_packets=False,
                )
                found.append((self.network.add(stream), each, is_up))
        return found

    def check_usage(self, flows: list[tuple[int, Session, bool]]) -> None:
        """Check that the usage of each session counts every packet that arrived, once."""
        used = self.plane.usage(each.session_id for each in self.sessions)
        for flow, each, is_up in flows:
            packets = self.network.statistics(flow).delivered
            one = used[each.session_id]
            assert (one.packets_up, one.bytes_up) == (packets, 128 * packets) if is_up else True
            assert (one.packets_down, one.bytes_down) == (packets, 128 * packets) if not is_up else True

    @property
    def wrong_sessions(self) -> int:
        return self.network.clients["homes"].counter("wrong_session", 0)[0]


@pytest.fixture(scope="module")
def all_programs(programs: dict[Variant, Program], balancer: Program) -> dict[str, Program]:
    return {**programs, "balancer": balancer, "homes": Program.compile(str(HOMES))}


@pytest.fixture
def gateway(all_programs: dict[str, Program]) -> Callable[..., Gateway]:
    return lambda *given, **named: Gateway(all_programs, *given, **named)


# ---- Which plane ----


def test_a_plane_that_leaves_moves_no_other_lines() -> None:
    all_three, two = assigned(PLANES), assigned(["forward1", "forward3"])
    assert all(two[bucket] == name for bucket, name in all_three.items() if name != "forward2")
    assert all(BUCKETS / 3 * 0.9 < count < BUCKETS / 3 * 1.1 for count in Counter(all_three.values()).values())
    moved = Counter(two[bucket] for bucket, name in all_three.items() if name == "forward2")
    assert min(moved.values()) > BUCKETS / 6 * 0.8
    with pytest.raises(NetworkError, match="no forwarding plane is left"):
        assigned([])


def test_the_balancer_has_the_same_buckets(gateway: Callable[..., Gateway]) -> None:
    at = gateway()
    assert set(at.plane.planes.values()) != {0} and sum(at.plane.planes.values()) == SUBSCRIBERS
    flows = at.streams(10_000, 0.1)
    at.network.run(0.2)
    assert all(at.network.statistics(flow).lost == 0 for flow, _, _ in flows)
    at.check_usage(flows)
    assert at.wrong_sessions == 0
    assert at.plane.drops() == {name: {} for name in (*PLANES, "authentication", "balancer")}
    assert len({bucket_of(each.line) for each in at.sessions}) == SUBSCRIBERS


# ---- Control ----


def test_discovery_and_ppp_take_the_authentication_plane(gateway: Callable[..., Gateway]) -> None:
    at = gateway()
    [one, *_] = at.sessions
    stranger = Line(1, 7)

    def of(inner: Any, protocol: int) -> bytes:
        frame = (
            Ether(src=one.mac.hex(":"), dst=GATEWAY, type=0x8864)
            / PPPoE(sessionid=one.session_id)
            / PPP(proto=protocol)
        )
        return on_line(one.line, frame / inner)

    frames = [
        discovery(stranger, 9, "02:33:00:00:00:01"),
        discovery(stranger, 0x19, "02:33:00:00:00:01"),
        of(lcp(1, 5), 0xC021),
        of(lcp(10, 5), 0xC021),
        of(Raw(b"\x01\x01\x00\x04"), 0x8021),
        of(IPv6(src=str(one.ipv6_interface), dst="ff02::2", hlim=255) / ICMPv6ND_RS(), 0x57),
    ]
    for number, frame in enumerate(frames):
        send_up(at, frame, number + 1)
    at.network.run(0.05)
    where, tags = [stranger] * 2 + [one.line] * 4, {stranger: 4, one.line: 8}
    assert at.heard == [
        (line, frame[:12] + frame[12 + tags[line] :]) for line, frame in zip(where, frames, strict=True)
    ]
    # Echoes are answered by the plane of the session, and nothing else reaches a plane that does not know it.
    send_up(at, of(lcp(9, 5), 0xC021), 60)
    at.network.run(0.1)
    assert len(at.heard) == 6
    assert at.network.clients[at.plane.serving(one.line)].counter("echoes", 0)[0] == 1
    assert at.wrong_sessions == 0  # the answer is no packet of a host


def send_up(at: Gateway, frame: bytes, at_ms: float) -> None:
    """Send a frame into the balancer's access port at the network time ``at_ms`` milliseconds."""
    at.network.add_packet_generator(
        PacketGenerator(switch="balancer", port=1, packet=frame, period_ms=1, count=1, start_ms=at_ms)
    )


def test_a_frame_of_the_control_plane_reaches_its_line(gateway: Callable[..., Gateway], tmp_path: Path) -> None:
    at = gateway()
    at.network.capture("homes", UPLINK, tmp_path / "line.pcap")
    frames = []
    for line in (Line(1), Line(1, 5), Line(1, 5, 6)):
        frame = Ether(src=GATEWAY, dst="02:33:00:00:00:01", type=0x8863) / PPPoE(code=7) / Raw(b"\x01\x01\x00\x00")
        at.plane.send(line, bytes(frame))
        frames.append(on_line(line, frame))
    at.network.run(0.05)
    assert [bytes(packet) for packet in rdpcap(str(tmp_path / "line.pcap"))] == frames


def test_the_core_finds_subscribers(gateway: Callable[..., Gateway], tmp_path: Path) -> None:
    at = gateway()
    at.network.capture("balancer", 3, tmp_path / "core.pcap")
    server = at.network.topology.hosts["server"].mac.hex(":")
    for number, address in enumerate(("10.0.3.1", "198.51.100.254", "10.0.77.1")):
        request = Ether(src=server, dst="ff:ff:ff:ff:ff:ff") / ARP(
            op=1, hwsrc=server, psrc="198.51.100.9", pdst=address
        )
        at.network.add_packet_generator(
            PacketGenerator(
                switch="balancer", port=3, packet=bytes(request), period_ms=1, count=1, start_ms=10 * number + 10
            )
        )
    at.network.run(0.1)
    answers = [packet[ARP] for packet in rdpcap(str(tmp_path / "core.pcap")) if packet[ARP].op == 2]
    assert [answer.psrc for answer in answers] == ["10.0.3.1", "198.51.100.254"]


# ---- Handover ----


def test_a_planned_handover_loses_no_packet_at_100000_packets_per_second(gateway: Callable[..., Gateway]) -> None:
    at = gateway()
    flows = at.streams(100_000, 0.5)
    done: list[float] = []
    before = at.plane.planes
    at.network.run(0.1)
    at.plane.drain("forward1", lambda: done.append(at.clock.now()))
    at.network.run(0.2)
    assert at.plane.planes["forward1"] == 0 and sum(at.plane.planes.values()) == SUBSCRIBERS
    assert done == [pytest.approx(0.105)]
    at.plane.undrain("forward1", lambda: done.append(at.clock.now()))
    at.network.run(0.3)
    assert at.plane.planes == before
    # Back and forth before the first has finished.
    at.plane.drain("forward2")
    at.network.run(0.301)
    at.plane.undrain("forward2")
    at.network.run(0.302)
    at.plane.drain("forward3")
    at.network.run(0.6)
    assert at.plane.planes["forward3"] == 0 and sum(at.plane.planes.values()) == SUBSCRIBERS
    statistics = [at.network.statistics(flow) for flow, _, _ in flows]
    assert sum(each.sent for each in statistics) == pytest.approx(50_000, rel=0.01)
    assert sum(each.lost + each.duplicated for each in statistics) == 0
    assert at.wrong_sessions == 0
    assert at.plane.drops() == {name: {} for name in (*PLANES, "authentication", "balancer")}
    at.check_usage(flows)
    assert at.plane.installed() == {each.session_id: each for each in at.sessions}


def test_a_lost_plane_costs_its_sessions_the_time_of_detection(gateway: Callable[..., Gateway]) -> None:
    at = gateway(detection_delay_ms=2)
    flows = at.streams(100_000, 0.5)
    victim = at.plane.serving(at.sessions[0].line)
    on_victim = {each.session_id for each in at.sessions if at.plane.serving(each.line) == victim}
    at.network.set_node(victim, up=False, at_s=0.1)
    at.network.run(0.1)
    heard = at.plane.usage(on_victim)
    at.network.run(0.4)
    assert victim not in at.plane.planes and sum(at.plane.planes.values()) == SUBSCRIBERS
    at.network.set_node(victim, up=True)
    at.network.run(0.6)
    assert at.plane.planes[victim] == len(on_victim)
    rate = 100_000 / (2 * SUBSCRIBERS)
    for flow, each, _ in flows:
        lost = at.network.statistics(flow).lost
        # Detection, reaction, and what was on its way.
        assert (0.003 * rate <= lost <= 0.006 * rate) if each.session_id in on_victim else lost == 0
    assert at.wrong_sessions == 0
    used = at.plane.usage(on_victim)
    assert all(used[number].packets_up > heard[number].packets_up > 0 for number in on_victim)


def test_several_planes_are_lost_at_once(gateway: Callable[..., Gateway]) -> None:
    """As when the machine of both dies: their sessions are never made on the other one that is gone."""
    at = gateway()
    flows = at.streams(10_000, 0.2)
    at.network.run(0.05)
    at.plane.lost("forward1", "forward2")
    assert at.plane.planes == {"forward3": SUBSCRIBERS}
    at.network.run(0.3)
    assert at.plane.installed() == {each.session_id: each for each in at.sessions}
    assert all(at.network.statistics(flow).delivered > 0 for flow, _, _ in flows)
    assert at.wrong_sessions == 0
    with pytest.raises(NetworkError):
        at.plane.lost("forward3")
    assert at.plane.planes == {"forward3": SUBSCRIBERS}


def empty(at: Gateway, switch: str) -> None:
    """Remove all entries from a switch, which is then like one that was switched off and on."""
    client = at.network.clients[switch]
    client.set_pipeline(at.network.programs[switch])
    assert not [entry for table in client.p4info.message.tables for entry in client.read_table(table.preamble.name)]


def test_the_last_plane_returns_without_its_tables(gateway: Callable[..., Gateway]) -> None:
    at = gateway(detection_delay_ms=2)
    at.streams(10_000, 0.4)
    for name, at_s in (("forward1", 0.1), ("forward2", 0.11), ("forward3", 0.2)):
        at.network.set_node(name, up=False, at_s=at_s)
    at.network.run(0.19)
    assert at.plane.planes == {"forward3": SUBSCRIBERS}
    heard = at.plane.usage(each.session_id for each in at.sessions)
    at.network.run(0.3)
    assert at.plane.planes == {"forward3": SUBSCRIBERS}
    empty(at, "forward3")
    at.network.set_node("forward3", up=True)
    at.network.run(0.4)
    assert at.plane.installed() == {each.session_id: each for each in at.sessions}
    rate = 10_000 / (2 * SUBSCRIBERS)
    used = at.plane.usage(each.session_id for each in at.sessions)
    for each in at.sessions:
        # The count before, and the packets since then: 0.1 s less detection and reaction.
        since = used[each.session_id].packets_up - heard[each.session_id].packets_up
        assert 0.08 * rate <= since <= 0.1 * rate + 1
    # The others come back one after the other, empty, too; of what is sent since then, nothing is lost.
    late = at.streams(10_000, 1, start_s=0.4)
    for name in ("forward1", "forward2"):
        empty(at, name)
        at.network.set_node(name, up=True)
        at.network.run(at.clock.now() + 0.1)
    assert sum(at.plane.planes.values()) == SUBSCRIBERS and 0 not in at.plane.planes.values()
    at.network.run(1.1)
    assert all(at.network.statistics(flow).lost == 0 for flow, _, _ in late)
    assert at.wrong_sessions == 0


@pytest.mark.parametrize("failing", ["balancer", "forward1"])
def test_a_session_that_cannot_be_removed_is_removed_later(
    gateway: Callable[..., Gateway], monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    at = gateway()
    one = next(each for each in at.sessions if at.plane.serving(each.line) == "forward1")

    def fail(*given: object, **named: object) -> None:
        raise NetworkError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(at.network.clients[failing], "batch", fail)
        with pytest.raises(NetworkError, match="gone"):
            at.plane.remove([one.session_id])
    assert list(at.plane.remove([one.session_id])) == [one.session_id]
    assert one.session_id not in at.plane.installed()
    # Its address is free.
    at.plane.install([dataclasses.replace(one, session_id=99)])


@pytest.mark.parametrize("failing", ["balancer", *PLANES])
def test_a_session_that_cannot_be_changed_is_as_it_was(
    gateway: Callable[..., Gateway], monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """One call changes a session of each plane, and one of the switches refuses what it is to have."""
    at = gateway()
    before = at.plane.installed()
    chosen = {at.plane.serving(each.line): each for each in at.sessions}
    changed = [
        dataclasses.replace(each, ipv4=IPv4Address(f"10.9.{number}.1"), rates=Rates(10**6, 10**6))
        for number, each in enumerate(chosen.values())
    ]
    batch, calls = at.network.clients[failing].batch, []

    def fail_once(*given: object, **named: object) -> object:
        calls.append(given)
        if len(calls) == 1:
            raise NetworkError("refused")
        return batch(*given, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(at.network.clients[failing], "batch", fail_once)
        with pytest.raises(NetworkError, match="refused"):
            at.plane.install(changed)
    assert at.plane.installed() == before
    at.plane.install(changed)
    assert at.plane.installed() == before | {each.session_id: each for each in changed}
    at.plane.remove(before)
    # No entry of any of them is left: everybody's old and new addresses are free.
    fresh = [dataclasses.replace(each, session_id=100 + number) for number, each in enumerate((*at.sessions, *changed))]
    taken: set[object] = set()
    for each in fresh:
        if each.ipv6_prefix not in taken:
            taken.add(each.ipv6_prefix)
            at.plane.install([each])


def test_usage_of_planes_is_kept_until_a_session_is_removed_from_all(
    gateway: Callable[..., Gateway], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = gateway()
    at.streams(10_000, 0.1)
    at.network.run(0.15)
    numbers = [each.session_id for each in at.sessions]
    used = at.plane.usage(numbers)
    assert all(each.packets_up for each in used.values())

    def fail(*given: object, **named: object) -> None:
        raise NetworkError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(at.network.clients["forward3"], "batch", fail)
        with pytest.raises(NetworkError, match="gone"):
            at.plane.remove(numbers)
    assert at.plane.remove(numbers) == used


def test_a_plane_that_returns_takes_the_lines_of_the_last_that_failed(gateway: Callable[..., Gateway]) -> None:
    at = gateway()
    for name in PLANES:
        at.network.set_node(name, up=False, at_s=0.1)
    flows = at.streams(10_000, 0.5, start_s=0.25)
    at.network.run(0.2)
    assert list(at.plane.planes.values()) == [SUBSCRIBERS]
    [last] = at.plane.planes
    first = next(each for each in PLANES if each != last)
    empty(at, first)
    at.network.set_node(first, up=True)
    at.network.run(0.25)
    assert at.plane.planes == {first: SUBSCRIBERS}
    at.network.run(0.6)
    assert all(at.network.statistics(flow).lost == 0 for flow, _, _ in flows)
    assert at.plane.installed() == {each.session_id: each for each in at.sessions}
    assert at.wrong_sessions == 0


@pytest.mark.parametrize("switch", ["balancer", "authentication"])
def test_a_switch_returns_without_its_tables(gateway: Callable[..., Gateway], switch: str) -> None:
    """Sessions stay on their planes, with their usage. Without the authentication plane, their packets pass meanwhile."""
    at = gateway()
    flows = at.streams(10_000, 0.4)
    planes = at.plane.planes
    at.network.set_node(switch, up=False, at_s=0.1)
    at.network.run(0.2)
    empty(at, switch)
    at.network.set_node(switch, up=True)
    at.network.run(0.21)
    assert at.plane.planes == planes
    stranger = Line(1, 7)
    send_up(at, discovery(stranger, 9, "02:33:00:00:00:01"), 220)
    at.network.run(0.5)
    assert [line for line, _ in at.heard] == [stranger]
    for flow, _, _ in flows:
        lost = at.network.statistics(flow).lost
        assert 0.09 <= lost / (10_000 / (2 * SUBSCRIBERS)) <= 0.11 if switch == "balancer" else lost == 0
    if switch == "authentication":
        at.check_usage(flows)
    assert at.plane.drops()[switch] == {}
    assert at.wrong_sessions == 0


def test_a_drained_plane_serves_nobody_until_it_may(gateway: Callable[..., Gateway]) -> None:
    at = gateway()
    flows = at.streams(10_000, 0.5)
    at.plane.drain("forward1")
    at.network.run(0.1)
    # It stays drained when another plane is lost and comes back, when it is off itself, and when the controller is another.
    for name in ("forward2", "forward1"):
        at.network.set_node(name, up=False)
        at.network.run(at.clock.now() + 0.05)
        empty(at, name)
        at.network.set_node(name, up=True)
        at.network.run(at.clock.now() + 0.05)
        assert at.plane.planes["forward1"] == 0 and at.plane.planes["forward2"] > 0
    at.sessions, kept = [], at.sessions
    at.controller.on_start()
    at.sessions = kept
    assert at.plane.drained == {"forward1"}
    with pytest.raises(
        NetworkError, match="there is no forwarding plane 'forward9'; there are forward1, forward2, forward3"
    ):
        at.plane.drain("forward9")
    at.plane.drain("forward2")
    with pytest.raises(NetworkError, match="no forwarding plane but 'forward3' is left"):
        at.plane.drain("forward3")
    at.network.run(0.4)
    assert at.plane.planes == {"forward1": 0, "forward2": 0, "forward3": SUBSCRIBERS}
    # Rather than no plane, those that are drained.
    at.plane.lost("forward3")
    assert sum(at.plane.planes.values()) == SUBSCRIBERS and 0 not in at.plane.planes.values()
    at.plane.undrain("forward1")
    at.network.run(0.6)
    assert at.plane.planes == {"forward1": SUBSCRIBERS, "forward2": 0}
    assert all(at.network.statistics(flow).delivered > 0 for flow, _, _ in flows)
    assert at.wrong_sessions == 0


def test_a_plane_joins_while_no_controller_is_there(gateway: Callable[..., Gateway]) -> None:
    at = gateway()
    at.plane.lost("forward1")
    at.sessions, kept = [], at.sessions
    at.controller.on_start()
    at.network.run(0.1)
    assert sum(at.plane.planes.values()) == SUBSCRIBERS and 0 not in at.plane.planes.values()
    assert at.plane.installed() == {each.session_id: each for each in kept}


def test_a_plane_fails_in_the_middle_of_its_handover(gateway: Callable[..., Gateway]) -> None:
    """Its usage is what was asked for last, on whichever plane its sessions are."""
    at = gateway()
    at.streams(10_000, 0.2)
    at.network.run(0.1)
    heard = at.plane.usage(each.session_id for each in at.sessions)
    at.plane.drain("forward1")
    at.plane.lost("forward1")
    used = at.plane.usage(each.session_id for each in at.sessions)
    assert all(used[number].packets_up >= heard[number].packets_up > 0 for number in heard)
    at.network.run(0.3)
    assert at.plane.installed() == {each.session_id: each for each in at.sessions}


def test_a_plane_fails_while_it_takes_the_sessions_of_another(
    gateway: Callable[..., Gateway], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing has changed then, and it can be tried again without it."""
    at = gateway()
    planes = at.plane.planes

    def fail(*given: object, **named: object) -> None:
        raise NetworkError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(at.network.clients["forward2"], "batch", fail)
        with pytest.raises(NetworkError, match="gone"):
            at.plane.lost("forward1")
    assert at.plane.planes["forward1"] == planes["forward1"]
    at.plane.lost("forward1", "forward2")
    assert at.plane.planes == {"forward3": SUBSCRIBERS}
    assert at.plane.installed() == {each.session_id: each for each in at.sessions}


def test_a_session_changes_during_its_handover(gateway: Callable[..., Gateway]) -> None:
    at = gateway()
    flows = at.streams(10_000, 0.3)
    at.network.run(0.1)
    one, two, three, *_ = at.sessions
    for name in PLANES:
        at.plane.drain(name)
        at.network.run(at.clock.now() + 0.001)
        at.plane.undrain(name)
    at.plane.install([dataclasses.replace(one, delegated=None)])
    gone = at.plane.remove([two.session_id])
    elsewhere = dataclasses.replace(three, line=Line(1, 3, 999))
    at.plane.install([elsewhere])
    at.network.run(0.4)
    assert at.plane.installed() == {
        each.session_id: each for each in [dataclasses.replace(one, delegated=None), elsewhere, *at.sessions[3:]]
    }
    assert sum(at.plane.planes.values()) == SUBSCRIBERS - 1
    flows_of_two = [at.network.statistics(flow) for flow, each, is_up in flows if each is two and is_up]
    assert gone[two.session_id].packets_up == flows_of_two[0].delivered
    assert at.plane.usage([two.session_id]) == {}
    at.check_usage([each for each in flows if each[1] is one])


def test_a_new_controller_ends_a_handover(gateway: Callable[..., Gateway], monkeypatch: pytest.MonkeyPatch) -> None:
    at = gateway()
    flows = at.streams(20_000, 0.4)
    at.network.run(0.1)
    monkeypatch.setattr(at.clock, "call_later", lambda *given: None)  # timers end with their controller
    at.plane.drain("forward1")
    at.network.run(0.101)
    assert sum(at.plane.planes.values()) > SUBSCRIBERS  # some are on two planes
    at.sessions, kept = [], at.sessions
    at.controller.on_start()
    assert at.plane.planes["forward1"] == 0 and sum(at.plane.planes.values()) == SUBSCRIBERS
    assert at.plane.installed() == {each.session_id: each for each in kept}
    at.network.run(0.5)
    at.sessions = kept
    lost = sum(at.network.statistics(flow).lost for flow, _, _ in flows)
    assert lost <= 10  # those on their way through the old plane
    at.check_usage(flows)


def test_an_address_has_one_session_on_all_planes(gateway: Callable[..., Gateway]) -> None:
    at = gateway()
    [one, *others] = at.sessions
    other = next(each for each in others if at.plane.serving(each.line) != at.plane.serving(one.line))
    with pytest.raises(
        NetworkError, match=f"session {one.session_id}: session {other.session_id} has the same address"
    ):
        at.plane.install([dataclasses.replace(one, ipv4=other.ipv4)])
    with pytest.raises(NetworkError, match="session 91: session 90 has the same address"):
        at.plane.install([session(90, Line(1, 5)), session(91, Line(1, 6), delegated=session(90).delegated)])
    assert at.plane.installed() == {each.session_id: each for each in at.sessions}
    swapped = [dataclasses.replace(one, ipv4=other.ipv4), dataclasses.replace(other, ipv4=one.ipv4)]
    at.plane.install(swapped)
    assert at.plane.installed() == {each.session_id: each for each in at.sessions} | {
        each.session_id: each for each in swapped
    }
    at.plane.remove([one.session_id])
    at.plane.install([dataclasses.replace(other, ipv4=other.ipv4)])


# ---- Storms ----


def test_a_storm_of_discovery_costs_established_sessions_nothing(gateway: Callable[..., Gateway]) -> None:
    """100,000 PADI/s for a second into the access port that carries the sessions."""
    padi = discovery(Line(1, 100, 4000), 9, "02:44:00:00:00:01")
    at = gateway(PacketGenerator(switch="balancer", port=1, packet=padi, period_ms=0.01, count=100_000))
    flows = at.streams(50_000, 1)
    honest = discovery(Line(1, 100, 4001), 9, "02:44:00:00:00:02")
    for second in range(5):
        send_up(at, honest, 100 + 200 * second)
    at.network.run(1.1)
    assert sum(at.network.statistics(flow).lost for flow, _, _ in flows) == 0
    at.check_usage(flows)
    heard = Counter(line for line, _ in at.heard)
    assert heard[Line(1, 100, 4001)] == 5
    control = at.edges.control
    assert heard[Line(1, 100, 4000)] <= control.padi.per_s + control.padi.burst + 100
    assert at.plane.drops()["authentication"]["line_rate"] > 80_000


def test_what_a_line_may_not_send_ends_at_the_balancer(gateway: Callable[..., Gateway]) -> None:
    at = gateway()
    tagged = Ether(src="02:44:00:00:00:01", dst=GATEWAY, type=0x9100) / Raw(b"\x00\x05\x88\x63" + bytes(50))
    plain = Ether(src="02:44:00:00:00:01", dst=GATEWAY) / IP(src="10.0.0.1", dst="198.51.100.9") / UDP()
    for number, frame in enumerate((tagged, plain)):
        send_up(at, bytes(frame), number + 1)
    at.network.run(0.05)
    assert at.plane.drops()["balancer"] == {"ethertype": 2}


ACCESS_AT, PLANE_AT, PLANE_CORE_AT, CORE_AT, UNKNOWN_AT = 1, 2, 3, 4, 5


@pytest.mark.parametrize("kind", ["discovery", "session", "ipv4", "neighbour"])
def test_port_tags_come_from_planes_alone(balancer: Program, executor: Any, kind: str) -> None:
    """Checks that they are refused, and counted there, from lines, the core, a plane's core side and a port without a role."""
    switch = Switch(balancer, executor=executor)
    client = LocalClient(Device(1, switch, executor=executor))
    client.set_pipeline(balancer)
    for role, port in enumerate((ACCESS_AT, PLANE_AT, PLANE_CORE_AT, CORE_AT), start=1):
        client.insert("ports", {"port": port}, "set_role", {"number": role})
    client.insert("uplinks", {"mac": GATEWAY}, "to_uplink", {"port": CORE_AT})
    client.set_default("authentication", "to_plane", {"port": PLANE_AT})
    inner = {"discovery": b"\x88\x63", "session": b"\x88\x64", "ipv4": b"\x08\0", "neighbour": b"\x08\x06"}[kind]
    tagged = bytes(Ether(src="02:44:00:00:00:01", dst=GATEWAY, type=0x9100) / Raw(b"\0\7" + inner + bytes(50)))
    edges = (ACCESS_AT, PLANE_CORE_AT, CORE_AT, UNKNOWN_AT)
    for number, port in enumerate(edges, start=1):
        assert [switch.process(port, tagged) for _ in range(number)] == [[]] * number
    assert switch.process(PLANE_AT, tagged) == [(7, tagged[:12] + inner + bytes(50))]
    counted = {port: refused(client, port) for port in (*edges, PLANE_AT)}
    assert counted == {**dict(zip(edges, (1, 2, 3, 4), strict=True)), PLANE_AT: 0}


def test_ipv6_packets_of_any_length_pass_the_balancer_unchanged(balancer: Program, executor: Any) -> None:
    """Check both ways between the core and a plane's core side, also for packets that end with the IPv6 header."""
    switch = Switch(balancer, executor=executor)
    client = LocalClient(Device(1, switch, executor=executor))
    client.set_pipeline(balancer)
    for role, port in enumerate((ACCESS_AT, PLANE_AT, PLANE_CORE_AT, CORE_AT), start=1):
        client.insert("ports", {"port": port}, "set_role", {"number": role})
    client.insert("uplinks", {"mac": GATEWAY}, "to_uplink", {"port": CORE_AT})
    client.insert("destinations_v6", {"prefix": (0x20010DB8 << 32, 32)}, "belong_v6", {"bucket": 5})
    client.insert("buckets", {"bucket": 5}, "serve", {"access": PLANE_AT, "core": PLANE_CORE_AT})
    lost = []
    for next_header in range(256):
        for length in (0, 1, 2, 3, 4, 24, 32, 100):
            inner = bytes.fromhex("60000000") + length.to_bytes(2) + bytes((next_header, 64)) + bytes(16)
            for kind in (0, 128, 133, 135) if next_header == 58 and length else (128,):
                packet = inner + bytes.fromhex("20010db8") + bytes(12) + bytes((kind, *range(1, 100)))[:length]
                frame = bytes.fromhex(GATEWAY.replace(":", "") + "060000000009 86dd") + packet
                for port, out in ((PLANE_CORE_AT, CORE_AT), (CORE_AT, PLANE_CORE_AT)):
                    if port == CORE_AT and kind == 135:
                        continue  # a neighbour of the core, which asks the gateway
                    if switch.process(port, frame) != [(out, frame)]:
                        lost.append((next_header, length, kind, port))
    assert lost == []
