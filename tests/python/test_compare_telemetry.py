"""``--telemetry int``: what reports say of ports is what the simulator's own captures say, to the unit."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from holdfast import _core
from holdfast.compare import inputs, mechanisms, results, runs, telemetry
from holdfast.compare.inputs import times
from holdfast.compare.measures import add_traffic
from holdfast.compare.scenario import Scenario
from holdfast.compare.traffic_file import TrafficFile, UdpEntry
from holdfast.demo import two_paths
from holdfast.errors import ScenarioError
from holdfast.link import Direction
from holdfast.network import SimulatedNetwork

FAILS = "s1-s2"

Happened = dict[tuple[str, str, str], list[tuple[int, int]]]
"""By switch, node behind the output port, and interval: latency in microseconds and packets ahead in the queue, of each packet."""


def given(**more: object) -> Scenario:
    """Return a scenario of Poisson streams that load links to four fifths, so that queues build up, and a failure of their path."""
    edge = Direction(rate_bps=1_000_000_000, delay_ms=0.01)
    core = Direction(rate_bps=10_000_000, delay_ms=0.3, queue_packets=1000)
    streams = [
        UdpEntry(packets_per_s=rate, payload_bytes=1000, spacing="poisson", start_s=start_s)
        for rate, start_s in ((500.0, 0.0), (400.0, 0.001))
    ]
    return Scenario(
        topology=two_paths("slow", edge=edge, core=core),
        traffic=TrafficFile(pairs=[("h1", "h2")], udp=streams),
        times=times(
            {
                "before_s": 0.3,
                "down_s": 0.3,
                "after_s": 0.3,
                "detection_delay_ms": 10.0,
                "reaction_delay_ms": 10.0,
                **more,
            }
        ),
        failures=(FAILS,),
        fail=FAILS,
        own_traffic=True,
        telemetry=True,
    )


def captured(network: SimulatedNetwork, folder: Path) -> list[tuple[str, str, Path]]:
    """Start to capture all ports of all switches; return (switch, neighbour, file) of each."""
    found = []
    for link in network.topology.links:
        for end, port, other in ((link.a, link.a_port, link.b), (link.b, link.b_port, link.a)):
            if end in network.topology.switches:
                found.append((end, other, folder / f"{end}-{other}.pcap"))
                network.capture(end, port, found[-1][2])
    return found


def identity(frame: bytes) -> bytes | None:
    """Return the flow, sequence number and time in a stream's packet as bytes; None for other frames."""
    return frame[-1000 : -1000 + 24] if len(frame) > 1000 and frame[23] == 17 else None


def happened(files: list[tuple[str, str, Path]], times_s: tuple[float, float]) -> Happened:
    """Return what happened to each packet in each switch, computed from captures alone."""
    seen: dict[str, dict[bytes, list[tuple[int, int, str]]]] = {}
    for switch, to, file in files:
        for time_ps, frame in _core.read_pcap(file):
            if (packet := identity(frame)) is not None:
                seen.setdefault(switch, {}).setdefault(packet, []).append((time_ps, -frame[22], to))
    found: Happened = {}
    for switch, packets in seen.items():
        # Of two at the same time the one with the smaller TTL leaves.
        passed = [
            ((came[0], came[2]), (left[0], left[2]))
            for came, left in (sorted(passes) for passes in packets.values() if len(passes) == 2)
        ]
        for (came_ps, _), (left_ps, to) in passed:
            interval = ("before", "failed", "repaired")[sum(left_ps >= at_s * 1e12 for at_s in times_s)]
            # There already, and not gone: ahead in the queue.
            ahead = sum(other == to and came < came_ps < left for (came, _), (left, other) in passed)
            latency = left_ps // 1_000_000 - came_ps // 1_000_000
            found.setdefault((switch, to, interval), []).append((latency, ahead))
    return found


@pytest.mark.parametrize("mechanism", ["static", "reroute"])
def test_reports_agree_with_the_simulator(tmp_path: Path, mechanism: str) -> None:
    """Check for each port and interval the number of packets, and the means and maxima of latency and queue."""
    asked = given()
    setting = runs.setting_of(str(asked.write(tmp_path)), asked)
    build = mechanisms.known()[mechanism].with_telemetry
    assert build is not None
    built = build(setting)
    topology = setting.topology
    network = SimulatedNetwork(topology, built.program, [built.controller], detection_delay_ms=10)
    reports = telemetry.Reports(asked.times)
    reports.listen(network)
    files = captured(network, tmp_path)
    add_traffic(network, asked, multicast=False)
    runs.schedule(network, FAILS, asked.times.failure_s, asked.times.repair_s)
    network.run(asked.times.end_s + inputs.DRAIN_S)
    row = reports.row(topology)
    assert (row["reports_lost"], row["malformed"], row["hops_exceeded"], row["mtu_exceeded"]) == (0, 0, 0, 0)
    expected = happened(files, (asked.times.failure_s, asked.times.repair_s))
    # What left a switch before the failure and was lost behind it has no report: INT-MD tells of what arrives.
    arrived = sum(len(packets) for (switch, _, _), packets in expected.items() if switch == "s4")
    assert row["reports"] == arrived
    got = {(port["switch"], port["to"], port["interval"]): port for port in row["ports"]}
    compared = 0
    for key, port in got.items():
        packets = expected[key]
        if key[0] in ("s1", "s2") and len(packets) != port["packets"]:
            # Packets that the failure ended on the way are in the captures alone.
            assert 0 < len(packets) - port["packets"] < 60, key
            continue
        compared += 1
        latencies, queues = zip(*packets, strict=True)
        assert port["packets"] == len(packets)
        assert (port["latency_max_us"], port["queue_max"]) == (max(latencies), max(queues))
        assert port["latency_mean_us"] == pytest.approx(sum(latencies) / len(packets))
        assert port["queue_mean"] == pytest.approx(sum(queues) / len(packets))
    assert compared >= 5
    # There was something to see, and the other path has it while the failure lasts.
    assert got["s1", "s2", "before"]["queue_max"] > 3
    assert ("s1", "s3", "failed") in got if mechanism == "reroute" else True
    assert ("s1", "s2", "failed") not in got


def test_the_report_shows_ports_around_the_cut(tmp_path: Path) -> None:
    asked = given()
    names = mechanisms.with_telemetry(None, mechanisms.STATIC)
    comparison = results.run(asked, mechanisms.find(names), [1], tmp_path)
    text = (tmp_path / "report.html").read_text()
    assert "Latency and queues around s1-s2, by INT" in text
    assert "s1 → s3" in text
    assert "The collector got" in text
    frame = pl.read_parquet(tmp_path / "telemetry.parquet")
    assert set(frame["mechanism"]) == {"static", "reroute"}
    shown = frame.filter(mechanism="reroute", failure=FAILS, switch="s1", to="s3", interval="failed")
    assert shown["packets"].item() > 100
    row = comparison.telemetry_of("reroute", FAILS)
    assert row is not None
    lines = telemetry.around(asked.topology, FAILS, row)
    assert [(line["switch"], line["to"]) for line in lines][:2] == [("s1", "s2"), ("s1", "s3")]
    assert len(telemetry.around(asked.topology, FAILS, row, most=1)) == 1


def test_what_has_no_int() -> None:
    with pytest.raises(
        ScenarioError, match="the program of mechanism '1\\+1' has no INT; these mechanisms have it: static, reroute"
    ):
        mechanisms.with_telemetry(["static", "1+1"], mechanisms.STATIC)
    with pytest.raises(ScenarioError, match="flows with one receiver"):
        mechanisms.with_telemetry(None, mechanisms.COPIES)
    topology = given().topology
    topology.add_host(telemetry.COLLECTOR)
    with pytest.raises(ScenarioError, match="'int_collector'"):
        telemetry.add_collector(topology, [])
