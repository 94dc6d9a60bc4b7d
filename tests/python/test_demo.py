"""The demo's promises, on the demo itself."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from pydantic import ValidationError

from holdfast.demo import MECHANISMS, DemoParameters, run, simulate

SUMMARY_KEYS = [
    "sent",
    "delivered",
    "lost",
    "duplicated",
    "reordered",
    "longest_outage_ms",
    "latency_mean_ms",
    "latency_p99_ms",
    "jitter_ms",
    "relative_bytes",
]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("demo")
    run(DemoParameters(), directory)
    return directory


def test_summary(out: Path) -> None:
    summary = json.loads((out / "summary.json").read_text())
    assert list(summary) == list(MECHANISMS)
    assert all(list(row) == SUMMARY_KEYS for row in summary.values())
    assert all(row["sent"] == 10_000 for row in summary.values())
    assert all(row["sent"] == row["delivered"] + row["lost"] for row in summary.values())
    protect, static, reroute = summary["protect"], summary["static"], summary["reroute"]
    assert (protect["lost"], protect["duplicated"], protect["reordered"]) == (0, 0, 0)
    assert protect["longest_outage_ms"] < 1
    # Four seconds of packets, and the few that were on the link when it broke.
    assert 4000 <= static["lost"] <= 4005
    # 50 ms of detection and 100 ms of reaction.
    assert 150 <= reroute["lost"] <= 155
    assert 150 <= reroute["longest_outage_ms"] <= 155
    assert static["relative_bytes"] == 1
    # Two copies in six seconds of ten, one in four, each 28 bytes longer.
    assert 1.6 < protect["relative_bytes"] / reroute["relative_bytes"] < 1.7


def test_raw_packets_and_picture(out: Path) -> None:
    frame = pl.read_parquet(out / "packets.parquet")
    assert frame.columns == ["mechanism", "flow", "sequence", "copy", "sent_ps", "received_ps", "reordered"]
    lost = frame.filter((pl.col("flow") == "udp") & pl.col("received_ps").is_null()).group_by("mechanism").len()
    summary = json.loads((out / "summary.json").read_text())
    assert dict(lost.iter_rows()) == {name: row["lost"] for name, row in summary.items() if row["lost"]}
    assert (out / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_same_seed_same_bytes_other_seed_other_bytes(out: Path, tmp_path: Path) -> None:
    run(DemoParameters(), tmp_path / "again")
    run(DemoParameters(seed=2), tmp_path / "other")
    for name in ("summary.json", "packets.parquet"):
        assert (out / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
        assert (out / name).read_bytes() != (tmp_path / "other" / name).read_bytes()


@pytest.mark.parametrize("name", MECHANISMS)
def test_both_executors_give_the_same_run(name: str) -> None:
    brief = {"duration_s": 1.0, "failure_s": 0.3, "repair_s": 0.7, "detection_delay_ms": 20, "reaction_delay_ms": 30}
    fast = simulate(name, DemoParameters.model_validate(brief))
    slow = simulate(name, DemoParameters.model_validate(brief | {"executor": "interpreter"}))
    assert fast.packets.equals(slow.packets)
    assert fast.network.bytes_on_wire() == slow.network.bytes_on_wire()


@pytest.mark.parametrize("delays", [(0, 10), (10, 0), (30, 200), (200, 1000)])
def test_reroute_loses_what_its_delays_say(delays: tuple[int, int]) -> None:
    detection, reaction = delays
    parameters = DemoParameters(
        detection_delay_ms=detection, reaction_delay_ms=reaction, duration_s=3, failure_s=1, repair_s=2.5
    )
    frame = simulate("reroute", parameters).packets
    lost = frame.filter((pl.col("flow") == "udp") & pl.col("received_ps").is_null()).height
    assert detection + reaction <= lost <= detection + reaction + 5


@pytest.mark.parametrize(
    "wrong",
    [
        {"failure_s": 8},
        {"repair_s": 20},
        {"jitter_ms": -1},
        {"payload_bytes": 5},
        {"executor": "fpga"},
        {"seed": -1},
        {"x": 1},
    ],
)
def test_senseless_parameters_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        DemoParameters.model_validate(wrong)
