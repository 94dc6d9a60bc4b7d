"""Hosts join and leave by IGMPv3 frames: the hosts that get the stream, those that do not any more, and a take-over."""

from __future__ import annotations

from ipaddress import IPv4Address

from holdfast import SimulatedNetwork
from holdfast.apps.bier import BierController
from holdfast.apps.bier.channels import delivered_channels as delivered
from holdfast.apps.bier.conftest import Compile
from holdfast.apps.bier.takeover import find
from holdfast.control.membership import frames, igmp
from holdfast.control.membership.members import channel
from holdfast.control.membership.messages import RecordKind, checksum
from holdfast.control.membership.overlay import OverlayParameters
from holdfast.scheduler import Scheduler
from holdfast.topologies import load
from holdfast.topology import Topology
from holdfast.traffic import UdpStream

GROUP = "239.1.2.3"
RATE = 1000


def report(topology: Topology, host: str, kind: RecordKind, group: str = GROUP, *sources: str) -> bytes:
    """Return the frame of an IGMPv3 report with one record for ``group``, as ``host`` sends it (RFC 3376, 4.2)."""
    packed = b"".join(IPv4Address(source).packed for source in sources)
    record = bytes((kind, 0)) + len(sources).to_bytes(2, "big") + IPv4Address(group).packed + packed
    message = b"\x22\0\0\0\0\0\0\1" + record
    message = message[:2] + checksum(message).to_bytes(2, "big") + message[4:]
    own = topology.hosts[host]
    head = b"\x46\xc0" + (24 + len(message)).to_bytes(2, "big") + b"\0\0\0\0\1\2\0\0"
    head += own.address.ip.packed + igmp.REPORTS_V3.packed + igmp.ROUTER_ALERT
    head = head[:10] + checksum(head).to_bytes(2, "big") + head[12:]
    return frames.group_mac(igmp.REPORTS_V3) + own.mac + b"\x08\0" + head + message


class Run:
    """Abilene with one source and a stream to the group for so long."""

    def __init__(self, compiled: Compile, *, stop_s: float, fast_leave: bool = False, rate: int = RATE) -> None:
        self.topology = load("abilene")
        self.source, *self.hosts = self.topology.hosts
        self.controller = BierController(
            ip_delay_ms=10, bier_delay_ms=30, overlay=OverlayParameters(), fast_leave=fast_leave
        )
        self.network = SimulatedNetwork(self.topology, compiled("one-pass"), [self.controller])
        stream = UdpStream(source=self.source, destination=GROUP, packets_per_s=rate, stop_s=stop_s, payload_bytes=64)
        self.flow = self.network.add(stream)

    def say(self, host: str, kind: RecordKind, *sources: str) -> None:
        self.network.send_frame(host, report(self.topology, host, kind, GROUP, *sources))

    def count(self, host: str) -> int:
        return self.network.statistics(self.flow, host=host).delivered


def test_members_get_the_stream_from_the_join_to_the_end_of_the_timer(compiled: Compile) -> None:
    run = Run(compiled, stop_s=6)
    early, late, never = run.hosts[:3]
    run.say(early, RecordKind.CHANGE_TO_EXCLUDE)
    run.network.run(1)
    run.say(late, RecordKind.CHANGE_TO_EXCLUDE)
    run.network.run(2)
    # Two queries for last members, a second apart, and nobody answers.
    run.say(early, RecordKind.CHANGE_TO_INCLUDE)
    run.network.run(7)
    # The join takes the wire and the controller's 10 ms; the leave besides 2 s.
    received = run.network.received(run.flow, host=early)
    assert received.sequence[0] <= 40
    assert 4000 <= received.sequence[-1] <= 4040
    assert list(received.sequence) == list(range(received.sequence[0], received.sequence[-1] + 1))
    begin = run.network.received(run.flow, host=late).sequence[0]
    assert 1000 < begin <= 1040
    assert run.count(late) == 6000 - begin
    assert run.count(never) == 0


def test_a_fast_leave_ends_with_the_report(compiled: Compile) -> None:
    run = Run(compiled, stop_s=2, fast_leave=True)
    host = run.hosts[0]
    run.say(host, RecordKind.CHANGE_TO_EXCLUDE)
    run.network.run(1)
    run.say(host, RecordKind.CHANGE_TO_INCLUDE)
    run.network.run(3)
    assert run.network.received(run.flow, host=host).sequence[-1] <= 1040


def test_an_excluded_source_is_not_delivered(compiled: Compile) -> None:
    run = Run(compiled, stop_s=1)
    one, other, alone = run.hosts[:3]
    source = str(run.topology.hosts[run.source].address.ip)
    run.say(one, RecordKind.CHANGE_TO_EXCLUDE)
    run.say(other, RecordKind.CHANGE_TO_EXCLUDE, source)
    run.say(alone, RecordKind.ALLOW_NEW_SOURCES, source)
    run.network.run(2)
    assert run.count(one) > 950
    assert run.count(alone) > 950
    assert run.count(other) == 0


def test_a_controller_that_takes_over_loses_no_packet_and_learns_memberships_again(compiled: Compile) -> None:
    rate = 100
    run = Run(compiled, stop_s=290, rate=rate)
    stays, goes = run.hosts[:2]
    run.say(stays, RecordKind.CHANGE_TO_EXCLUDE)
    run.say(goes, RecordKind.CHANGE_TO_EXCLUDE)
    run.network.run(1)
    network = run.network
    before = run.count(stays)
    found = delivered({name: find(client, 256).channels for name, client in network.clients.items()})
    assert run.controller.overlay is not None
    assert found == run.controller.overlay.channels
    successor = BierController(ip_delay_ms=10, bier_delay_ms=30, overlay=OverlayParameters())
    network.controllers[:] = [successor]
    network._scheduler = Scheduler()
    successor.attach(network)
    successor.on_start()
    assert successor.taken_over and successor.overlay is not None
    assert successor.overlay.channels == {channel(GROUP): found[channel(GROUP)]}
    # The host that stays answers general queries; the other one is gone and says nothing.
    for second in (2, 100, 200):
        network.run(second)
        run.say(stays, RecordKind.MODE_IS_EXCLUDE)
    network.run(300)
    counts = run.network.statistics(run.flow, host=stays)
    assert counts.delivered > before + 285 * rate
    assert network.received(run.flow, host=stays).sequence[-1] == 290 * rate - 1
    assert counts.duplicated == 0
    sequence = network.received(run.flow, host=stays).sequence
    assert list(sequence) == list(range(sequence[0], sequence[0] + len(sequence)))
    # The Group Membership Interval after the take-over: 260 s.
    assert 260 * rate <= network.received(run.flow, host=goes).sequence[-1] <= 262 * rate


def test_a_controller_that_takes_over_learns_what_changed_while_it_was_away(compiled: Compile) -> None:
    """One host stays, one leaves and one joins while nobody listens; the stream of the first loses nothing."""
    rate, stop_s = 100, 40
    topology = load("abilene")
    source, stays, goes, comes = list(topology.hosts)[:4]
    # A membership that nobody confirms ends after 2 x 10 s and 1 s.
    parameters = OverlayParameters(query_interval_s=10, query_response_interval_s=1)
    network = SimulatedNetwork(
        topology, compiled("one-pass"), [BierController(ip_delay_ms=10, bier_delay_ms=30, overlay=parameters)]
    )
    stream = UdpStream(source=source, destination=GROUP, packets_per_s=rate, stop_s=stop_s, payload_bytes=64)
    flow = network.add(stream)
    network.join(stays, GROUP)
    network.join(goes, GROUP)
    network.run(2)
    network.controllers.clear()
    network._scheduler = Scheduler()
    network.leave(goes, GROUP, at_s=3)
    network.join(comes, GROUP, at_s=3)
    network.run(6)
    assert network.group_statistics(comes, GROUP).received == 0
    successor = BierController(ip_delay_ms=10, bier_delay_ms=30, overlay=parameters)
    network.controllers.append(successor)
    successor.attach(network)
    successor.on_start()
    network.run(stop_s + 1)
    assert successor.taken_over
    got = network.group_statistics(stays, GROUP)
    assert got.received == network.statistics(flow, host=stays).delivered >= (stop_s - 0.1) * rate
    assert (got.duplicates, got.out_of_order) == (0, 0)
    assert got.longest_gap_ps <= 1.1e12 / rate
    late = network.group_statistics(comes, GROUP)
    # It answers the first general query within its response interval.
    assert late.first_ps is not None and 6e12 < late.first_ps < 7.1e12
    assert late.received >= (stop_s - 7.1) * rate
    gone = network.group_statistics(goes, GROUP)
    assert gone.last_unwanted_ps is not None and 3e12 < gone.last_unwanted_ps <= (6 + 21 + 0.1) * 1e12
