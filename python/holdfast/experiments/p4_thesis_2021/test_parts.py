"""The parts at tiny size: they measure what they claim, and every part writes its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from holdfast import SimulatedNetwork, UdpStream, _core, reproduce
from holdfast.errors import ExperimentError, LiveError
from holdfast.experiments import this_machine
from holdfast.experiments.p4_thesis_2021 import (
    EXPERIMENT,
    firewall_runs,
    header_runs,
    headers,
    headers_live,
    published,
    setup,
    telemetry,
    telemetry_runs,
)

LIVE = ("headers_live", "telemetry_live")


def test_the_short_header_is_the_thesis_s(tmp_path: Path) -> None:
    """Four bytes and UDP, on every link between the scripts; the payload is as long as the thesis says."""
    topology = setup.header_path("shorternet", 5000.0)
    programs = dict.fromkeys(topology.switches, setup.shorternet())
    for name, (host, other) in {
        setup.SENDER_SCRIPT: (setup.SENDER, setup.RECEIVER),
        setup.RECEIVER_SCRIPT: (setup.RECEIVER, setup.SENDER),
    }.items():
        programs[name] = setup.script(topology, name, host, other)
    network = SimulatedNetwork(topology, programs, [setup.Stations()], seed=1)
    port = next(link.b_port for link in topology.links if (link.a, link.b) == ("s1", "s3"))
    network.capture("s3", port, tmp_path / "s3.pcap")
    flow = network.add(UdpStream(source=setup.SENDER, destination=setup.RECEIVER, payload_bytes=62, stop_s=0.0995))
    network.run(1.0)
    assert network.statistics(flow).delivered == 100
    frames = [frame for _, frame in _core.read_pcap(tmp_path / "s3.pcap")]
    assert len(frames) == 100
    assert {(len(frame), frame[:3]) for frame in frames} == {(74, bytes((4, 1, 17)))}
    assert {frame[3] for frame in frames} == {63}


def test_effective_bandwidth_is_payload_per_time() -> None:
    for stack, payload in (("standard", 32), ("shorternet", 62)):
        found = header_runs.measure({"stack": stack, "packet_bytes": 74, "packets": 2000}, 1)
        assert found["lost"] == 0
        assert found["bandwidth_bytes_per_s"] == pytest.approx(1000 * payload, rel=0.01)
        assert found["wire_bytes"] == 74 + header_runs.WIRE_BYTES


def test_ethernet_s_minimum_takes_the_gain_of_short_packets() -> None:
    measured = {
        stack: header_runs.measure({"stack": stack, "packet_bytes": 28 + header, "packets": 100}, 1)["wire_bytes"]
        for stack, header in published.HEADER_BYTES.items()
    }
    assert measured == {"standard": 70 + 24, "shorternet": header_runs.MINIMUM_BYTES + 24}


def test_the_table_s_gains_follow_from_its_formula() -> None:
    for keys, _, printed in published.TABLE_4_1.entries():
        assert headers.theory_percent(keys["packet_bytes"]) == pytest.approx(printed, abs=0.01)


@pytest.mark.parametrize("mode", telemetry_runs.MODES)
def test_every_format_of_int_passes_the_flow(mode: str) -> None:
    found = telemetry_runs.measure(telemetry_runs.point(3, 1, mode, 1.0, run_s=1.0), 1)
    assert found["lost_percent"] == found["pings_lost_percent"] == 0
    assert found["bandwidth_mbps"] == pytest.approx(1.0, rel=0.03)
    assert found["latency_ms"] > 5


def test_reports_are_as_many_as_packets_and_less_with_sampling() -> None:
    """By the bytes between switches: without INT the packets alone, with MX a report of each switch for each packet."""
    sent = {
        (mode, share): telemetry_runs.measure(telemetry_runs.point(3, 1, mode, 1.0, sampling=share, run_s=2.0), 1)[
            "bytes_between_switches"
        ]
        for mode, share in (("off", 1.0), ("thesis", 1.0), ("md", 1.0), ("md", 0.1), ("mx", 1.0), ("xd", 1.0))
    }
    assert sent["off", 1.0] < sent["md", 0.1] < sent["thesis", 1.0] < sent["md", 1.0]
    assert sent["off", 1.0] < sent["xd", 1.0] < sent["mx", 1.0]


def test_five_switches_with_int_are_congested_first() -> None:
    found = {
        switches: telemetry_runs.measure(telemetry_runs.point(switches, 1, "thesis", 5.5, run_s=4.0), 1)
        for switches in (3, 5)
    }
    assert found[3]["queue_drops"] == 0
    assert found[5]["queue_drops"] > 0
    assert found[5]["lost_percent"] > telemetry.CONGESTED_PERCENT


def test_the_onset_is_the_lowest_rate_that_loses() -> None:
    rows = [
        {"switches": 5, "flows": 1, "mode": "thesis", "rate_mbps": rate, "seed": seed, "latency_ms": 1.0}
        | {"lost_percent": 9.0 if rate >= onset else 1.0}
        for seed, onset in ((1, 4.0), (2, 5.0))
        for rate in (3.0, 4.0, 5.0)
    ]
    [row] = telemetry.onsets(pl.DataFrame(rows)).iter_rows(named=True)
    assert (row["ours"], row["low"], row["high"]) == (4.5, 4.0, 5.0)


def test_statements_can_fail() -> None:
    """Numbers that contradict all of them."""
    rows = [
        {"switches": n, "flows": flows, "mode": mode, "rate_mbps": rate, "seed": 1}
        | {
            "bandwidth_mbps": rate if mode == "off" else 0.5 * rate,
            "latency_ms": 10.0 / n if mode == "thesis" else 10.0 * n,
            "lost_percent": 5.0,
            "jitter_ms": 1.0 if mode == "off" else 9.0,
        }
        for n, flows in ((3, 1), (4, 1), (5, 1), (4, 2))
        for mode in ("off", "thesis")
        for rate in (1.0, 3.0, 4.5, 5.0, 6.0)
    ]
    found = telemetry.statement_numbers(pl.DataFrame(rows))
    # That the gap grows with the rate holds in these too, as half of the bandwidth is missing at every rate.
    assert found["ours"].sum() == 1
    assert len(found) == len(published.STATEMENTS.rows)


@pytest.mark.parametrize("case", list(firewall_runs.CASES))
def test_injected_packets(case: str) -> None:
    found = firewall_runs.measure({"packets": case, "variant": "bindings", "family": "ipv4"}, 1)
    wanted = published.FIREWALL.value("delivered_percent", packets=case) if case in _published() else 0
    assert found["delivered_percent"] == wanted
    assert (found["reasons"] == "none") == (wanted == 100)


def _published() -> set[str]:
    return {row[0] for row in published.FIREWALL.rows}


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(ExperimentError, match="no headers 'long'"):
        setup.header_path("long", 1.0)
    with pytest.raises(ExperimentError, match="no mode 'int' of INT"):
        telemetry_runs.forwarding("int", 1.0)


def test_measures_of_live_arrivals() -> None:
    arrivals = [(0, 0, 1_000_000), (1, 1_000_000, 4_000_000), (3, 3_000_000, 5_000_000)]
    found = headers_live.measures(arrivals, 4, 100)
    assert found["lost_percent"] == 25
    assert found["latency_ms"] == pytest.approx(2)
    assert found["jitter_ms"] == pytest.approx(1)
    assert found["bandwidth_bytes_per_s"] == pytest.approx(100 * 2 / 0.004)
    with pytest.raises(LiveError, match="of 9 packets 1 arrived"):
        this_machine.check_arrived(len(arrivals[:1]), 9)


def test_a_run_that_was_held_up_is_made_again() -> None:
    def found(*lateness_ms: float) -> dict[str, Any]:
        runs = iter({"max_lateness_ms": late} for late in lateness_ms)
        return this_machine.in_time(lambda: next(runs), 2.0)

    assert found(2.0) == {"max_lateness_ms": 2.0, "repeated": 0}
    assert found(9.0, 1.0) == {"max_lateness_ms": 1.0, "repeated": 1}
    assert found(9.0, 8.0, 7.0) == {"max_lateness_ms": 7.0, "repeated": 2}
    runs = pl.DataFrame([found(2.0), found(9.0, 1.0), found(9.0, 8.0, 7.0)])
    assert this_machine.held_up(runs, 2.0) == (
        "3 runs were made again because an event was more than 2 ms late; 1 of 3 stayed so"
    )


def test_headers_of_live_frames_are_what_the_thesis_says() -> None:
    for stack, size in published.HEADER_BYTES.items():
        topology, *_ = headers_live.network_of(stack)
        assert len(headers_live.header(topology, stack, 300)) == size


@pytest.mark.parametrize("part", LIVE)
def test_live_says_why_it_is_not_run(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(*_: object) -> None:
        raise LiveError("cannot open network interfaces: not root")

    monkeypatch.setattr(this_machine, "check_machine", check)
    reproduce.run(EXPERIMENT, [part], tmp_path, seeds=1)
    said = pl.read_csv(tmp_path / EXPERIMENT.name / f"{part}_skipped.csv")
    assert said["reason"].to_list() == ["cannot open network interfaces: not root"]


SIMULATED = [
    part.name for part in (*headers.PARTS, *telemetry.PARTS, EXPERIMENT.part("firewall")) if part.name not in LIVE
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run all simulated parts with two seeds and small parameters, and return the folder of the results."""
    out = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(header_runs, "POINTS", header_runs.points(published.LENGTHS_BYTES, 50))
        patch.setattr(header_runs, "PAYLOAD_POINTS", header_runs.payload_points((28, 100), 20))
        rates = (1.0, 3.0, 4.5, 5.0, 6.0)
        patch.setattr(telemetry_runs, "POINTS", telemetry_runs.points(rates, 0.3))
        patch.setattr(telemetry_runs, "BEYOND_POINTS", telemetry_runs.beyond_points((1.0,), 0.3))
        reproduce.run(EXPERIMENT, SIMULATED, out, seeds=2)
    return out / EXPERIMENT.name


@pytest.mark.parametrize("name", SIMULATED)
def test_a_part(results: Path, name: str) -> None:
    rows = pl.read_csv(results / f"{name}.csv", infer_schema_length=None)
    published_table = EXPERIMENT.part(name).published
    if published_table is not None:
        assert rows["paper"].drop_nulls().len() == sum(1 for _ in published_table.entries())
    assert rows["ours"].null_count() == 0
    assert rows["ours"].is_finite().all()
    if name not in ("table41", "congestion", "statements", "firewall"):
        assert (results / f"{name}.png").stat().st_size > 5000
        assert "</svg>" in (results / f"{name}.svg").read_text(encoding="utf-8")
