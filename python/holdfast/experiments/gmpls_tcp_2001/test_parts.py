"""The study's runs, and every part of it once, small."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from holdfast import reproduce
from holdfast.errors import ExperimentError
from holdfast.experiments import Setting
from holdfast.experiments.gmpls_tcp_2001 import (
    EXPERIMENT,
    beyond,
    fit,
    goodput,
    longer_path,
    merge,
    published,
    runs,
    switch_back,
    timing,
)

SMALL = {**runs.DEFAULTS, "source_nodes": 2, "flows_per_source_node": 2, "rate_mbps": 2.0, "timing_link_ms": 1.0}
CURVED = {"fig7", "fig10", "fig12", "fig18"}
PARTS = [part.name for part in EXPERIMENT.parts if part.name not in ("table8", "fit", "fit_faster")]


def point(network: str = "rtt_change", **changed: Any) -> dict[str, Any]:
    own: dict[str, Any] = {
        "network": network,
        "d_ms": 1,
        "delta_ms": 5,
        "strategy": "electrical",
        "access_percent": 80.0,
        "end_s": 6.5,
        "window_s": 1.5,
        "curve_ms": 0.0,
    }
    return {**runs.DEFAULTS, "rate_mbps": 10.0, **own, **changed}


def test_flows_fill_the_access_links_before_the_failure() -> None:
    """Rates are such that a link carries as many packets of 1000 bytes as without headers below IP."""
    found = runs.measure(point(), 1)
    capacity = 0.8 * 10e6 / 8000 * published.GOODPUT_WINDOW_S
    # Goodput counts what is in order, so what fills a gap counts when it does.
    assert found["before_failure"] == pytest.approx(capacity, rel=0.05)
    assert 0 < found["after_failure"] < 1.1 * capacity


def test_a_seed_is_the_same_load_in_every_configuration() -> None:
    """So differences can be taken seed by seed; and another seed is another load."""
    one = runs.measure(point(**SMALL | {"d_ms": 1, "delta_ms": 5}), 3)
    two = runs.measure(point(**SMALL | {"d_ms": 100, "delta_ms": 100}), 3)
    other = runs.measure(point(**SMALL | {"d_ms": 1, "delta_ms": 5}), 4)
    assert one["before_failure"] == two["before_failure"]
    assert one["base_rtt_ms"] == two["base_rtt_ms"]
    assert one["after_failure"] > two["after_failure"]
    assert one["base_rtt_ms"] != other["base_rtt_ms"]


def test_curves_add_up_to_totals() -> None:
    found = runs.measure(point("timing", **SMALL | {"delta_ms": 50, "curve_ms": 10.0, "end_s": 7.0}), 2)
    bins = [a + b for a, b in zip(found["switched_curve"], found["fixed_curve"], strict=True)]
    assert len(bins) == 200
    assert sum(bins[:150]) == pytest.approx(found["after_failure"])
    # While the link is down and nothing is switched, only what had passed it arrives: after 3 ms nothing.
    assert sum(found["switched_curve"][1:5]) == 0


def test_without_a_switch_the_link_is_away_for_delta() -> None:
    """Section 5.3: nothing takes another path, so a second without the link is a second without goodput."""
    found = runs.measure(point("timing_optical", **SMALL | {"delta_ms": 1000, "curve_ms": 10.0}), 2)
    assert "fixed_curve" not in found
    assert sum(found["switched_curve"][1:100]) == 0
    assert sum(found["switched_curve"][100:]) > 0


def test_the_switch_back_is_at_ten_seconds_whatever_delta_is() -> None:
    """The same until 10 s with every strategy; afterwards the path is another one, or not."""
    strategies = {
        name: runs.measure(point(**SMALL | {"strategy": name, "d_ms": 100, "curve_ms": 10.0, "end_s": 11.5}), 1)
        for name in published.SWITCH_BACK
    }
    curves = {name: found["switched_curve"] for name, found in strategies.items()}
    assert curves["electrical"][:500] == curves["optical"][:500] == curves["none"][:500]
    assert curves["electrical"][500:] != curves["none"][500:]
    assert all(
        found["after_repair"] == pytest.approx(sum(found["switched_curve"][500:])) for found in strategies.values()
    )


@pytest.mark.parametrize("tcp", beyond.TCPS)
def test_every_tcp_fills_the_access_links(tcp: str) -> None:
    found = runs.measure(
        point(**runs.DEFAULTS | {"network": "rtt_change", "buffer_packets": 100} | beyond.TCPS[tcp]), 1
    )
    capacity = 0.8 * 10e6 / 8000 * published.GOODPUT_WINDOW_S
    assert 0.6 * capacity < found["after_failure"] < 1.3 * capacity


def test_marks_replace_losses() -> None:
    with_marks, without = (
        runs.measure(point(**runs.DEFAULTS | beyond.TCPS[tcp]), 1) for tcp in ("sack with ECN", "sack")
    )
    assert with_marks["segments_retransmitted"] < 0.7 * without["segments_retransmitted"]


def test_protection_loses_nothing_at_the_failure() -> None:
    """Two paths of nearly the same length: no gap; a single one without reaction has nothing after the failure."""
    own = {"network": "case_study", "mechanism": runs.PROTECT, "scenario": "A", "delta_ms": 1000}
    found = runs.measure(point(**SMALL | own | {"curve_ms": 10.0}), 1)
    before = found["before_failure"] / 150
    # What left before the failure arrives for 50 ms; the other path has 3 ms more.
    assert sum(found["switched_curve"][10:40]) == pytest.approx(30 * before, rel=0.15)


def test_where_the_merge_point_overflows() -> None:
    """Twice 80 % of 1250 packets/s for 99 ms are 74 packets too many for a buffer of 50; for 1 ms, one."""
    near, far = (merge.drops(point(end_s=11.5, d_ms=d), 2) for d in (2, 100))
    assert far["merge_drops"] > 0
    assert near["merge_drops"] == near["drops_before"] == far["drops_before"] == 0


def test_an_unknown_network_is_refused() -> None:
    with pytest.raises(ExperimentError, match="no network 'ring'"):
        runs.measure(point("ring"), 1)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All parts with one small seed."""
    out = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "DEFAULTS", SMALL)
        few = ("newreno", "cubic", "cubic with ECN")
        patch.setattr(beyond, "TCPS", {name: beyond.TCPS[name] for name in few})
        reproduce.run(EXPERIMENT, PARTS, out, seeds=1)
    return out / EXPERIMENT.name


@pytest.mark.parametrize("name", PARTS)
def test_a_part(results: Path, name: str) -> None:
    part = EXPERIMENT.part(name)
    assert (results / f"{name}.json").is_file()
    if part.published is not None:
        rows = pl.read_csv(results / f"{name}.csv")
        assert rows.height >= sum(1 for _ in part.published.entries())
        assert rows["ours"].null_count() == 0
    elif name in ("low_access", "conclusions", "conclusions_faster", "merge"):
        assert pl.read_csv(results / f"{name}.csv")["ours"].null_count() == 0
    else:
        pictures = [f"{name}_a", f"{name}_b"] if name.endswith("fig19") else [name]
        for picture in pictures:
            assert (results / f"{picture}.png").stat().st_size > 5000
            assert "</svg>" in (results / f"{picture}.svg").read_text()
            data = name if name.startswith("beyond") else picture
            assert pl.read_csv(results / f"{data}.csv").height > 0
    if name in CURVED:
        times = pl.read_csv(results / f"{name}.csv")["time_s"]
        assert times.min() > published.FAILURE_S
        assert times.max() == {"fig7": timing.CURVE_END_S}.get(name, published.REPAIR_S)


def test_the_number_of_runs_is_as_announced(results: Path) -> None:
    for sweep, part in (
        ("timing", "table3"),
        ("rtt_change", "fig14"),
        ("switch_back", "fig16"),
        ("case_study", "fig19"),
    ):
        assert pl.read_parquet(results / "sweeps" / sweep / "rows.parquet").height == EXPERIMENT.part(part).points


def test_the_same_bytes_with_one_process_and_with_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "DEFAULTS", SMALL)
    monkeypatch.setattr(timing, "SHARED", timing.SHARED[:2])
    for out, jobs in (("one", 1), ("two", 2)):
        reproduce.run(EXPERIMENT, ["table3", "fig7", "fig8"], tmp_path / out, seeds=2, jobs=jobs)
    for file in ("table3.csv", "fig7.png", "fig7.csv", "fig8.svg", "sweeps/timing/rows.parquet"):
        one, two = (tmp_path / out / EXPERIMENT.name / file for out in ("one", "two"))
        assert one.read_bytes() == two.read_bytes(), file


def test_distance() -> None:
    """0 is agreement, 1 is no effect at all; over seeds it is that of the means."""
    assert fit.distance([[(3.0, 3.0), (-4.0, -4.0)]]) == 0
    assert fit.distance([[(0.0, 3.0), (0.0, -4.0)]]) == 1
    assert fit.distance([[(2.0, 3.0), (-4.0, -4.0)], [(4.0, 3.0), (-4.0, -4.0)]]) == 0
    assert fit.distance([[(3.0, 3.0), (1.0, -4.0)]]) == 1


def test_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two candidates with two seeds, the nearer first, with all three distances and the two changes."""
    monkeypatch.setattr(runs, "DEFAULTS", SMALL)
    base = {**runs.UNKNOWNS, "rate_mbps": 2.0}
    monkeypatch.setattr(fit, "CANDIDATES", (base, {**base, "rate_mbps": 1.0}))
    monkeypatch.setattr(
        fit,
        "POINTS",
        {
            "table3": timing.points("timing", (0, 50), 90.0),
            "table5": longer_path.points((1, 100), (5,), end_s=6.5, curve_ms=0.0),
        },
    )
    numbers = fit.find(Setting((1, 2), tmp_path)).numbers
    assert numbers is not None
    names = ["distance", *(f"distance_{table}" for table in fit.TABLES), *fit.HANGING_ON]
    assert numbers["quantity"].to_list() == names * 2
    overall = numbers.filter(pl.col("quantity") == "distance")
    assert overall["ours"].is_sorted()
    for row in overall.iter_rows(named=True):
        parts = numbers.filter(
            pl.col("rate_mbps") == row["rate_mbps"], pl.col("quantity").str.starts_with("distance_")
        )["ours"]
        assert row["ours"] == pytest.approx(parts.mean())
        assert row["low"] <= row["high"]


def test_fit_of_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate with two seeds: its distance, then its changes."""
    monkeypatch.setattr(runs, "DEFAULTS", SMALL)
    monkeypatch.setattr(fit, "FASTER", ({**runs.UNKNOWNS, "rate_mbps": 2.0},))
    monkeypatch.setattr(fit, "POINTS", {"table3": timing.points("timing", (0, 50), 90.0)})
    numbers = fit.find_faster(Setting((1, 2), tmp_path)).numbers
    assert numbers is not None
    [near, change] = numbers.iter_rows(named=True)
    assert (near["quantity"], change["quantity"]) == ("distance_table3", "delta_50_ms_change_percent")
    assert near["ours"] == pytest.approx(abs(change["ours"] - 9.85) / 9.85)


def test_optical_against_electrical() -> None:
    """A tie is not better; the change is optical's."""
    rows = [
        (1, "electrical", 1, 100.0),
        (1, "optical", 1, 110.0),
        (1, "electrical", 2, 100.0),
        (1, "optical", 2, 100.0),
    ]
    frame = pl.DataFrame(rows, schema=["d_ms", "strategy", "seed", "after_repair"], orient="row")
    found = {row["quantity"]: row["ours"] for row in switch_back.change(frame).iter_rows(named=True)}
    assert found == pytest.approx({"goodput_change_percent": 5.0, "optical_better_percent": 50.0})


def test_achievable_is_what_the_access_links_carry() -> None:
    frame = pl.DataFrame({"rate_mbps": [10.0], "access_percent": [80.0], "after_failure": [750.0]})
    assert goodput.achievable(frame, "after_failure", 1.5)["achieved_percent"].to_list() == [50.0]
    assert math.isfinite(goodput.achievable(frame, "after_failure", 2.5)["achieved_percent"].sum())
