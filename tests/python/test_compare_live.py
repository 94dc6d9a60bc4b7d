"""``holdfast compare --live`` without root: its refusals, and its measures applied to the simulation."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from holdfast import demo
from holdfast.compare import flows, live, measures, mechanisms, runs, scenario
from holdfast.errors import HoldfastError, LiveError
from holdfast.live import traffic_host
from holdfast.parameters import PS_PER_S

TRAFFIC = "pairs: [[h1, h2]]\n"


def built(tmp_path: Path, traffic: str, topology: str = "ring:4", fail: str = "s1-s2") -> scenario.Scenario:
    path = tmp_path / "traffic.yaml"
    path.write_text(TRAFFIC + traffic)
    return scenario.build(topology, fail=fail, traffic=path, live=True)


def check(given: scenario.Scenario, seeds: int = 1) -> None:
    live.check(given, mechanisms.find(["static", "reroute"]), range(seeds))


@pytest.mark.parametrize(
    ("traffic", "message"),
    [
        ("udp: [{payload_bytes: 1473}]", "udp.0: payload_bytes is 1473; a live host's interface takes at most 1472"),
        ("ping: [{payload_bytes: 9000}]", "ping.0: payload_bytes is 9000"),
        ("udp: [{packets_per_s: 30000}]", "30000 probes/s; live there can be at most 20000"),
        ("tcp: [{count: 65}]", "65 TCP connections; live there can be at most 64"),
        ("tcp: [{options: {recovery: sack}}]", "tcp.0: options.recovery is not the kernel's to choose"),
    ],
)
def test_traffic_that_cannot_be_live(traffic: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(HoldfastError) as error:
        check(built(tmp_path, traffic))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_too_much_for_real_time(tmp_path: Path) -> None:
    with pytest.raises(HoldfastError, match=r"fat_tree_8 has .* in real time there can be at most 32"):
        check(scenario.build("fat-tree:8", fail="all", live=True))
    given = built(tmp_path, "udp: [{}]", fail="all")
    with pytest.raises(HoldfastError, match="runs in real time would take about"):
        check(given, seeds=100)


def test_a_machine_that_cannot_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = built(tmp_path, "udp: [{}]")
    monkeypatch.setattr("holdfast.live.hosts._core.interfaces_ready", lambda: "this needs root")
    monkeypatch.setattr("holdfast.live.hosts.shutil.which", lambda _: "/bin/true")
    with pytest.raises(LiveError, match="cannot open network interfaces: this needs root"):
        check(given)
    monkeypatch.setattr("holdfast.live.hosts.shutil.which", lambda _: None)
    with pytest.raises(LiveError, match=r"not installed: ip \(Debian packages iproute2\)"):
        check(given)


@pytest.mark.parametrize("mechanism", ["static", "reroute", "mpls-local", "1+1"])
def test_streams_are_counted_as_the_core_counts_them(mechanism: str, tmp_path: Path) -> None:
    path = demo.scenario(jitter_ms=3.0, before_s=0.5, down_s=0.5, after_s=0.5).write(tmp_path)
    prepared = runs.Prepared(str(path), mechanism, 1)
    network, given = prepared.network, prepared.scenario
    runs.schedule(network, demo.FAILS, 0.5, 1.0)
    network.run(2.0)
    reordered = 0
    for reception, (number, host) in zip(flows.receptions_of(given), prepared.instruments, strict=True):
        flow = reception.flow
        if not flow.is_probe:
            continue
        expected = measures._simulated_stream(network, measures.Instrument(number, host))
        log = network.received(number)
        columns = (log.sequence, log.sent_ps, log.received_ps)
        sent_ps = network.sent(number).sent_ps.tolist()
        interval_ps = round(PS_PER_S / live._per_s(flow))
        found = measures.stream_of(sent_ps, list(zip(*columns, strict=True)), interval_ps, constant=True)
        assert found == expected
        reordered += found.reordered
    assert reordered > 0 or mechanism == "1+1", "jitter of three intervals lets packets overtake"


def test_what_the_sender_is_late_by_is_not_an_outage() -> None:
    received = [(0, 0, 1), (1, 10, 11), (2, 55, 56), (3, 60, 61), (5, 80, 81)]
    stream = measures.stream_of([0, 10, 55, 60, 70, 80], received, 10, constant=True)
    assert (stream.lost, stream.outage_ps) == (1, 10)
    assert measures.stream_of([0, 10, 55, 60, 70, 80], received, 10, constant=False).outage_ps == 35
    assert measures.stream_of([0, 10, 20], [], 10, constant=True).outage_ps == 30
    assert measures.stream_of([], [], 10, constant=True).outage_ps == 0
    # An outage that never ends.
    assert measures.stream_of([0, 10, 20, 30], [(0, 0, 1)], 10, constant=True).outage_ps == 19


def test_streams_leave_when_they_should() -> None:
    constant = {"begin_ns": 5, "end_ns": 1_000_000, "interval_ns": 333.25}
    times = list(traffic_host.schedule(constant))
    assert times[:3] == [5, 338, 672 - 1 + (round(666.5) - 666)]
    assert len(times) == 3001
    drawn = {**constant, "poisson_seed": 7}
    times = list(traffic_host.schedule(drawn))
    assert times == list(traffic_host.schedule(drawn))
    assert 2700 < len(times) < 3300
    assert times != sorted(set(range(5, 1_000_000, 333)))


def test_echo_requests_have_the_right_checksum() -> None:
    draw = random.Random(1)
    for length in range(40):
        data = draw.randbytes(length)
        whole = data + bytes(length % 2) + struct.pack("!H", traffic_host.checksum(data))
        assert traffic_host.checksum(whole) == 0
