"""The parts at tiny size: they measure what they claim, and every part writes its files."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from holdfast import reproduce
from holdfast.errors import ExperimentError, LiveError
from holdfast.experiments import Setting
from holdfast.experiments.pppoe_split_plane import (
    EXPERIMENT,
    dial_runs,
    live_runs,
    published,
    scale_runs,
    setup,
    storm_runs,
    tables_runs,
)
from holdfast.live.hosts import check_machine


def test_the_printed_gain_follows_from_the_printed_times() -> None:
    for _, single, split, gain in published.SPEEDS:
        assert 100 * (1 - split / single) == pytest.approx(gain, abs=0.06)
    assert published.mean_gain_percent() == pytest.approx(7.5, abs=0.05)


def test_the_second_table_is_the_first_times_the_packets() -> None:
    for packets, single, split, _ in published.SPEEDS:
        for plane, printed in (("single", single), ("split", split)):
            assert published.ms_per_packet(packets, plane) == pytest.approx(printed, abs=0.006)


def test_the_row_that_is_left_out_is_slower_with_a_split_plane() -> None:
    assert {row[0] for row in published.LATENCIES} - {row[0] for row in published.SPEEDS} == {published.LEFT_OUT}
    single, split = (published.ms_per_packet(published.LEFT_OUT, plane) for plane in published.PLANES)
    assert split / single == pytest.approx(1.0134, abs=1e-4)


@pytest.mark.parametrize("plane", published.PLANES)
def test_the_service_time_gives_the_mean_of_the_fitted_rows(plane: str) -> None:
    point = {"packets": 20_000, "plane": plane, "load": "one by one"}
    found = tables_runs.measure(point, 1)
    assert (found["sent"], found["lost"]) == (20_000, 0)
    assert found["latency_ms"] == pytest.approx(setup.mean_fitted_ms(plane), rel=0.01)
    assert found["total_ms"] == pytest.approx(20_000 * found["latency_ms"])
    assert found["packets_per_s"] == pytest.approx(setup.PACKETS_PER_S, rel=0.03)


def test_a_burst_waits_for_itself_and_loses_what_has_no_room() -> None:
    time_ms = setup.SERVICE_MS["burst"]["single"]
    short, long = (
        tables_runs.measure({"packets": count, "plane": "single", "load": "burst"}, 1) for count in (30, 300)
    )
    assert short["lost"] == 0
    assert short["latency_ms"] == pytest.approx(15.5 * time_ms, rel=0.01)
    assert long["lost"] == 300 - setup.QUEUE_PACKETS - 1
    assert long["packets_per_s"] == pytest.approx(1000 / time_ms, rel=0.01)


@pytest.mark.parametrize("plane", published.PLANES)
def test_a_storm_sets_all_up_and_loses_nothing(plane: str) -> None:
    found = storm_runs.storm(plane, 5, 0, seed=1, packets=2000)
    assert (found["lost"], found["failed_setups"]) == (0, 0)
    assert found["planes_us_per_setup"] > found["entries_us_per_setup"] > 0
    assert found["control_us_per_setup"] > 0
    quiet = storm_runs.storm(plane, 0, 0, seed=1, packets=2000)
    assert quiet["setups_per_s"] is None
    names = {"single"} if plane == "single" else {"balancer", "authentication", "forwarding"}
    assert {name for name in ("single", "balancer", "authentication", "forwarding") if quiet[f"{name}_busy_s"]} <= names


def test_a_storm_of_padi_costs_the_forwarding_plane_nothing() -> None:
    quiet, loud = (storm_runs.storm("split", 0, count, seed=1, packets=2000) for count in (0, 2000))
    assert loud["lost"] == 0
    assert quiet["authentication_busy_s"] == 0
    assert loud["authentication_busy_s"] > 0
    assert loud["ns_per_padi"] > 0


@pytest.mark.parametrize("plane", published.PLANES)
def test_a_restart_finds_every_session(plane: str, tmp_path: Path) -> None:
    """The measurement fails if a session is not kept, a packet lost or a setup refused."""
    found = scale_runs.scale(plane, 20, seed=1, packets=100, setups=2, folder=tmp_path)
    assert found["recover_s"] >= found["read_s"] > 0
    assert found["ns_up"] > 0 < found["ns_down"]


@pytest.mark.parametrize("plane", published.PLANES)
def test_subscribers_dial_and_a_lost_plane_costs_none_of_them_its_session(plane: str, tmp_path: Path) -> None:
    """The measurement fails if a subscriber is not in, a session is not taken up, or a packet is lost before or after."""
    found = dial_runs.dial(plane, 40, seed=1, packets=100, folder=tmp_path)
    assert found["setup_s"] > 0 < found["restart_s"]
    assert min(found[f"{who}_ms_{when}"] for who in ("control", "planes") for when in ("first", "last")) > 0
    if plane == "split":
        assert 0 < found["taken_over"] < 40 and found["takeover_s"] > 0
    else:
        assert found["taken_over"] is found["takeover_s"] is None


def test_the_quick_version_has_few_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, list[dict[str, object]]] = {}

    def sweep(self: Setting, name: str, function: str, points: list[dict[str, object]]) -> None:
        asked[name] = points
        raise ExperimentError("not in this test")

    monkeypatch.setattr(Setting, "sweep", sweep)
    for part in ("storm", "scale", "dial", "table1_live"):
        with contextlib.suppress(ExperimentError):
            reproduce.run(EXPERIMENT, [part], tmp_path, quick=True)
    assert {each["storm"] for each in asked["storm"]} == {"none", "10 setups"}
    assert {each["sessions"] for each in asked["scale"]} == {1000}
    assert {each["sessions"] for each in asked["dial"]} == {200}
    if "live" in asked:  # needs root
        assert {each["packets"] for each in asked["live"]} == {30}


@pytest.mark.parametrize("plane", published.PLANES)
def test_packets_pass_processes_of_this_machine(plane: str) -> None:
    try:
        check_machine(("ip",))
    except LiveError as error:
        pytest.skip(str(error))
    found = live_runs.measure({"packets": 20, "plane": plane}, 1)
    assert found["lost"] == 0
    assert 0 < found["latency_p50_ms"] < 1000
    assert found["forwarded_per_s"] > 100


def test_the_simulated_parts_write_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = tables_runs.points([30, published.LEFT_OUT])
    monkeypatch.setattr(tables_runs, "POINTS", points)
    monkeypatch.setattr(tables_runs, "BURST_POINTS", tables_runs.points([30], "burst"))
    names = ["table2", "burst"]
    found = reproduce.run(EXPERIMENT, names, tmp_path, seeds=2)
    assert found["table2"].filter(packets=published.LEFT_OUT)["verdict"].to_list() == ["differs", "differs"]
    for name in names:
        for suffix in ("csv", "json", "png", "svg"):
            assert (tmp_path / EXPERIMENT.name / f"{name}.{suffix}").stat().st_size > 0
