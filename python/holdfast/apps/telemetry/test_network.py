"""A telemetry domain in simulation: reports agree with the simulator's own captures, to the unit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast import SimulatedNetwork, TcpTransfer, Topology, UdpStream, _core
from holdfast.apps.telemetry import (
    COLLECTOR_PORT,
    INT_UDP_PORT,
    Instructions,
    Report,
    TelemetryController,
    Watch,
    decode,
)
from holdfast.apps.telemetry.conftest import Compile
from holdfast.apps.telemetry.program import HERE, compile_telemetry
from holdfast.apps.telemetry.watchlist import DEFAULT_INSTRUCTIONS
from holdfast.errors import NetworkError

SWITCHES = 6
PAYLOAD = 972
EVERYTHING = DEFAULT_INSTRUCTIONS | int(Instructions.INTERFACES | Instructions.TX_UTILISATION)


def line(switches: int = SWITCHES, **slow: object) -> Topology:
    """Build h1 and h3 - s1 - ... - s6 - h2, with a collector at the last switch; the third link is slower than the others."""
    topology = Topology("line")
    for name in ("h1", "h2", "h3", "c"):
        topology.add_host(name)
    for number in range(1, switches + 1):
        topology.add_switch(f"s{number}")
    topology.add_ipv6()
    topology.add_link("h1", "s1", rate_bps=1e9, delay_ms=0.01)
    topology.add_link("h3", "s1", rate_bps=1e9, delay_ms=0.013)
    for number in range(1, switches):
        rate = 20e6 if number == 3 else 100e6 + number * 1e6
        topology.add_link(f"s{number}", f"s{number + 1}", rate_bps=rate, delay_ms=0.1 * number + 0.0007)
    topology.add_link(f"s{switches}", "h2", rate_bps=1e9, delay_ms=0.01)
    topology.add_link(f"s{switches}", "c", rate_bps=1e9, delay_ms=0.01)
    return topology


def managed() -> Topology:
    """Build the network of :func:`line` with the collector at a switch of its own, to which all other switches have a link.

    So reports do not wait in the queues of packets.
    """
    topology = Topology("managed")
    for name in ("h1", "h2", "h3", "c"):
        topology.add_host(name)
    for number in range(1, SWITCHES + 2):
        topology.add_switch(f"s{number}")
    topology.add_ipv6()
    for link in line().links:
        if link.b != "c":
            topology.add_link(link.a, link.b, rate_bps=link.rate_bps, delay_ms=link.delay_ms)
    for number in range(1, SWITCHES + 1):
        topology.add_link(f"s{number}", f"s{SWITCHES + 1}", cost=100)
    topology.add_link(f"s{SWITCHES + 1}", "c")
    return topology


def collected(capture: Path) -> list[tuple[int, Report]]:
    """Return (arrival time in ps, report) of each report that reached the collector, from its capture."""
    found = []
    for time_ps, frame in _core.read_pcap(capture):
        if frame[12:14] == b"\x08\x00" and frame[23] == 17 and int.from_bytes(frame[36:38], "big") == COLLECTOR_PORT:
            found += [(time_ps, report) for report in decode(frame[42:])]
    return found


class Log:
    """The simulator's captures of each packet at each switch: arrival, departure, queue."""

    def __init__(self, network: SimulatedNetwork, folder: Path) -> None:
        self._folder, self._topology = folder, network.topology
        self._ports = [
            (link_end, port)
            for link in network.topology.links
            for link_end, port in ((link.a, link.a_port), (link.b, link.b_port))
            if link_end in network.topology.switches
        ]
        for switch, port in self._ports:
            network.capture(switch, port, folder / f"{switch}-{port}.pcap")
        network.capture("c", 0, folder / "c.pcap")

    def read(self) -> dict[str, dict[bytes, list[tuple[int, int]]]]:
        """Return by switch and packet the list of (time in ps, port), in the order of time."""
        seen: dict[str, dict[bytes, list[tuple[int, int]]]] = {}
        for switch, port in self._ports:
            for time_ps, frame in _core.read_pcap(self._folder / f"{switch}-{port}.pcap"):
                seen.setdefault(switch, {}).setdefault(identity(frame), []).append((time_ps, port))
        for packets in seen.values():
            for times in packets.values():
                times.sort()
        return seen


def identity(frame: bytes) -> bytes:
    """Return the bytes of the payload that identify a packet of a UDP stream: flow, number and time, whatever headers precede."""
    return frame[-PAYLOAD : -PAYLOAD + 24] if len(frame) >= PAYLOAD + 28 else frame


def run(tmp_path: Path, compiled: Compile, mode: str, *, family: str = "ipv4", by_port: bool = False, **more: object):
    port = INT_UDP_PORT if by_port else None
    topology = managed()
    watch = Watch(mode=mode, instructions=EVERYTHING, protocol=17)  # type: ignore[arg-type]
    controller = TelemetryController(
        [watch],
        collector="c",
        udp_port=port,
        domain_id=7,
        reaction_delay_ms=1,
        **more,  # type: ignore[arg-type]
    )
    network = SimulatedNetwork(topology, compiled(udp_port=port), [controller])
    log = Log(network, tmp_path)
    flows = [
        network.add(
            UdpStream(
                source=source,
                destination="h2",
                packets_per_s=rate,
                payload_bytes=PAYLOAD,
                stop_s=0.02,
                family=family,
                source_port=source_port,
                start_s=start_s,
            )
        )
        for source, rate, source_port, start_s in (("h1", 1700, 5001, 0.0), ("h3", 1300, 5003, 0.001))
    ]
    network.run(until_s=0.1)
    return network, controller, flows, log


def depth(log: dict[bytes, list[tuple[int, int]]], packet: bytes) -> int:
    """Return how many packets waited for a port's transmitter when ``packet`` arrived."""
    (arrived, _), (_, port) = log[packet]
    waiting = 0
    for other, times in log.items():
        if other == packet or len(times) != 2 or times[1][1] != port:
            continue
        waiting += times[0][0] < arrived and times[1][0] > arrived
    return waiting


@pytest.mark.parametrize("mode", ["md", "mx", "xd"])
@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
@pytest.mark.parametrize("by_port", [False, True], ids=["DSCP", "UDP port"])
def test_six_switches_report_what_happened(
    tmp_path: Path, compiled: Compile, mode: str, family: str, by_port: bool
) -> None:
    network, _, flows, log = run(tmp_path, compiled, mode, family=family, by_port=by_port)
    assert all(network.statistics(flow).lost == 0 for flow in flows)
    sent = sum(network.statistics(flow).sent for flow in flows)
    topology = network.topology
    seen = log.read()
    names = {switch.index: name for name, switch in topology.switches.items()}
    reports = [report for _, report in collected(tmp_path / "c.pcap")]
    assert len(reports) == sent * (1 if mode == "md" else SWITCHES)
    hops = [hop for report in reports for hop in report.path()]
    assert len(hops) == sent * SWITCHES
    expected = []
    for name, packets in seen.items():
        for packet, times in packets.items():
            if len(packet) != 24 or len(times) != 2:
                continue
            (arrived_ps, in_port), (left_ps, out_port) = times
            arrived_us, left_us = arrived_ps // 1_000_000, left_ps // 1_000_000
            expected.append(
                (name, in_port, out_port, left_us - arrived_us, 0, depth(packets, packet), arrived_us, left_us)
            )
    got = [
        (
            names[hop.node_id],
            hop.ingress_port,
            hop.egress_port,
            hop.latency,
            hop.queue_id,
            hop.queue_occupancy,
            hop.ingress_time,
            hop.egress_time,
        )
        for hop in hops
    ]
    assert sorted(got) == sorted(expected)
    # There was something to see.
    assert max(hop.queue_occupancy for hop in hops) > 3
    assert max(hop.latency for hop in hops) > 1000
    for hop in hops:
        assert hop.ingress_interface == hop.node_id << 16 | hop.ingress_port
        assert hop.egress_interface == hop.node_id << 16 | hop.egress_port


def test_a_core_for_transit_alone(tmp_path: Path, compiled: Compile) -> None:
    """Switches without hosts may have the program that does nothing else."""
    topology = line()
    watch = Watch(instructions=EVERYTHING)
    controller = TelemetryController([watch], collector="c", reaction_delay_ms=1)
    core = compiled(transit_only=True)
    programs = {name: compiled() if name in ("s1", "s6") else core for name in topology.switches}
    network = SimulatedNetwork(topology, programs, [controller])
    network.capture("c", 0, tmp_path / "c.pcap")
    flow = network.add(UdpStream(source="h1", destination="h2", packets_per_s=500, stop_s=0.02))
    network.run(until_s=0.1)
    assert network.statistics(flow).lost == 0
    reports = [report for _, report in collected(tmp_path / "c.pcap")]
    assert [[hop.node_id for hop in report.path()] for report in reports] == [list(range(1, 7))] * 10


def test_hosts_are_not_at_transit_switches(compiled: Compile) -> None:
    controller = TelemetryController(collector=None, reaction_delay_ms=1)
    with pytest.raises(NetworkError, match="host 'h1' is at switch 's1', whose program is for transit alone"):
        SimulatedNetwork(line(), compiled(transit_only=True), [controller])


@pytest.mark.parametrize("by_port", [False, True], ids=["DSCP", "UDP port"])
def test_tcp_does_not_notice(tmp_path: Path, compiled: Compile, by_port: bool) -> None:
    """A transfer between hosts whose packets carry INT: all of it arrives, and nothing is corrupted."""
    port = INT_UDP_PORT if by_port else None
    topology = line()
    controller = TelemetryController([Watch()], collector="c", udp_port=port, mtu=2000, reaction_delay_ms=1)
    network = SimulatedNetwork(topology, compiled(udp_port=port), [controller])
    network.capture("c", 0, tmp_path / "c.pcap")
    transfer = network.add_tcp(
        TcpTransfer(source="h1", destination="h2", application="transfer", transfer_bytes=200_000)
    )
    network.run(until_s=3)
    assert network.tcp_statistics(transfer).finished_ps is not None
    reports = [report for _, report in collected(tmp_path / "c.pcap")]
    assert len(reports) > 150
    assert {len(report.path()) for report in reports} == {SWITCHES}
    assert {report.flow.protocol for report in reports if report.flow} == {6}


def test_the_mtu_of_links(tmp_path: Path, compiled: Compile) -> None:
    """Where a link has no room for another hop, M is set; the packets arrive all the same."""
    topology = line()
    # 1000 bytes of IP, 16 of headers and 44 for each of six hops.
    controller = TelemetryController(
        [Watch(instructions=EVERYTHING)], collector="c", mtu=1000 + 16 + 3 * 44, reaction_delay_ms=1
    )
    network = SimulatedNetwork(topology, compiled(), [controller])
    network.capture("c", 0, tmp_path / "c.pcap")
    flow = network.add(UdpStream(source="h1", destination="h2", packets_per_s=500, payload_bytes=972, stop_s=0.01))
    network.run(until_s=0.1)
    assert network.statistics(flow).lost == 0
    reports = [report for _, report in collected(tmp_path / "c.pcap")]
    assert len(reports) == 5
    for report in reports:
        assert report.embedded is not None
        assert report.embedded.mtu_exceeded
        assert [hop.node_id for hop in report.path()] == [1, 2, 3, 6]
    assert controller.counters("s4")["mtu_exceeded"] == 5


def test_congested_queues(tmp_path: Path, compiled: Compile) -> None:
    """Packets behind a queue of the threshold are reported, watched or not, up to the quota of a congestion."""
    topology = line()
    controller = TelemetryController(collector="c", queue_threshold=5, queue_quota=7, reaction_delay_ms=1)
    network = SimulatedNetwork(topology, compiled(), [controller])
    network.capture("c", 0, tmp_path / "c.pcap")
    network.add(UdpStream(source="h1", destination="h2", packets_per_s=4000, stop_s=0.02))
    network.add(UdpStream(source="h1", destination="h2", packets_per_s=4000, start_s=0.1, stop_s=0.12))
    network.run(until_s=0.3)
    reports = [report for _, report in collected(tmp_path / "c.pcap")]
    assert len(reports) == 14
    for report in reports:
        assert (report.node_id, report.congested, report.tracked, report.dropped) == (3, True, False, False)
        assert report.hop.queue_occupancy is not None
        assert report.hop.queue_occupancy >= 5


def test_reports_take_another_way_after_a_failure(tmp_path: Path, compiled: Compile) -> None:
    topology = Topology("ring")
    for name in ("h1", "h2", "c"):
        topology.add_host(name)
    for number in range(1, 5):
        topology.add_switch(f"s{number}")
    topology.add_link("h1", "s1")
    topology.add_link("h2", "s3")
    topology.add_link("c", "s3")
    for a, b in ((1, 2), (2, 3), (3, 4), (4, 1)):
        topology.add_link(f"s{a}", f"s{b}", rate_bps=1e9, delay_ms=0.1)
    controller = TelemetryController(
        [Watch(mode="xd")], collector="c", changes_only=True, latency_shift=31, reroute=True, reaction_delay_ms=1
    )
    network = SimulatedNetwork(topology, compiled(), [controller])
    network.capture("c", 0, tmp_path / "c.pcap")
    network.add(UdpStream(source="h1", destination="h2", packets_per_s=1000, stop_s=0.1))
    network.set_link("s2-s3", up=False, at_s=0.05)
    network.run(until_s=0.3)
    # Each change of the way is reported once by each switch on the new one, and by nobody again.
    nodes = [report.node_id for _, report in collected(tmp_path / "c.pcap")]
    assert [sorted(nodes[:3]), sorted(nodes[3:])] == [[1, 2, 3], [1, 3, 4]]


def test_the_watchlist_changes_while_packets_flow(compiled: Compile) -> None:
    topology = line()
    controller = TelemetryController(collector="c", reaction_delay_ms=1)
    network = SimulatedNetwork(topology, compiled(), [controller])
    network.add(UdpStream(source="h1", destination="h2", packets_per_s=1000, stop_s=0.1))
    network.run(until_s=0.05)
    assert controller.counters("s1")["sourced"] == 0
    controller.watch([Watch(source="10.0.1.0/24")])
    network.run(until_s=0.2)
    assert controller.counters("s1")["sourced"] == 50
    assert controller.counters("s6")["sunk"] == 50
    controller.watch([])
    assert controller.watchlist == ()


@pytest.mark.parametrize(
    ("watch", "more", "message"),
    [
        ({"protocol": 1}, {}, "it is behind TCP and UDP alone"),
        ({"new_udp_header": True}, {}, "new_udp_header needs"),
        ({"mode": "mx"}, {"collector": None}, "mode mx is reports alone"),
        ({}, {"domain_id": 1 << 16}, "domain_id is 65536; it must be from 0 to 65535"),
    ],
)
def test_what_a_domain_cannot_have(watch: dict[str, object], more: dict[str, object], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        TelemetryController([Watch(**watch)], **{"collector": "c", "reaction_delay_ms": 1, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"source": "10.0.0.0/8", "destination": "2001:db8::/32"}, "both versions of IP"),
        ({"instructions": 0x0040}, "instructions 9 to 14 are reserved"),
        ({"mode": "xd", "instructions": 0x0001}, "a checksum complement belongs to mode md"),
        ({"source_port": 5}, "ports need a protocol"),
        ({"protocol": 6, "source_port": 5, "source_port_mask": 4}, "source_port has bits outside source_port_mask"),
        ({"source_port_mask": 4}, "source_port_mask needs source_port"),
        ({"sampling": 1.5}, "sampling"),
        ({"hops": 0}, "hops"),
    ],
)
def test_what_cannot_be_watched(fields: dict[str, object], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        Watch(**fields)  # type: ignore[arg-type]


def test_the_example_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (program,) = re.findall(r"```python\n(.*?)```", (HERE / "README.md").read_text(), re.DOTALL)
    exec(program, names := {})
    reports = [report for _, report in collected(tmp_path / "reports.pcap")]
    # A half of 1000 packets is watched.
    assert 400 < len(reports) < 600
    assert {hop.node_id for hop in reports[0].path()} == set(range(1, 7))
    assert names["network"].statistics(0).lost == 0


@pytest.mark.parametrize("transit_only", [False, True])
@pytest.mark.parametrize(
    ("of_program", "of_controller"), [(INT_UDP_PORT, None), (None, INT_UDP_PORT), (INT_UDP_PORT, INT_UDP_PORT + 1)]
)
def test_a_program_of_another_indicator_is_refused(
    of_program: int | None, of_controller: int | None, transit_only: bool
) -> None:
    """Sources and sinks would not understand each other: each watched packet would be lost, and nothing would tell why."""
    program = compile_telemetry(udp_port=of_program, transit_only=transit_only)
    controller = TelemetryController(
        collector=None, udp_port=of_controller, hosts_in_domain=transit_only, reaction_delay_ms=1
    )
    with pytest.raises(NetworkError, match=f"give udp_port={of_program}"):
        SimulatedNetwork(managed(), program, [controller])
    controller = TelemetryController(
        collector=None, udp_port=of_program, hosts_in_domain=transit_only, reaction_delay_ms=1
    )
    SimulatedNetwork(managed(), program, [controller])
