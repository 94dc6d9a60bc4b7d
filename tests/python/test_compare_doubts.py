"""Headlines claim only what runs support: comparisons of invented measures, and of congested networks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from holdfast.compare import advice, live, mechanisms, results, scenario, terminal, traffic_file, world
from holdfast.compare.comparison import Comparison
from holdfast.compare.measures import bins_of

NAMES = ["static", "reroute", "1+1-vector"]

TRAFFIC = """
udp: [{source: h1, destination: h2, packets_per_s: 1000}]
tcp: [{source: h1, destination: h2}, {source: h1, destination: h2, transfer_bytes: 1000, count: 3}]
"""

Row = dict[str, Any]


def givens(folder: Path, *, on: str = "ring:4", live: bool = False, fail: str = "s1-s2") -> scenario.Scenario:
    path = folder / "traffic.yaml"
    path.write_text(TRAFFIC)
    return scenario.build(on, fail=fail, traffic=path, live=live)


def made_up(
    given: scenario.Scenario,
    lost: Mapping[str, tuple[float, float]],
    /,
    *,
    seeds: int = 1,
    **changes: Mapping[tuple[Any, ...], Any],
) -> Comparison:
    """Return a comparison in which each mechanism loses these packets: (undisturbed, with the failure).

    ``changes``: columns, by (mechanism, True with the failure), or by these two and the seed.
    """
    rows: list[Row] = []
    for name, losses in lost.items():
        for seed in range(1, seeds + 1):
            for failure in ("none", *given.failures):
                failed = failure != "none"
                row: Row = {
                    "mechanism": name,
                    "failure": failure,
                    "network_seed": seed,
                    "skipped": False,
                    "sent": [4000],
                    "lost": [round(losses[failed])],
                    "duplicated": [0],
                    "reordered": [0],
                    "outage_ms": [losses[failed] - losses[0] if failed else 0.0],
                    "latency_ms": [3.0],
                    "jitter_ms": [0.0],
                    "goodput_bytes": [1_000_000],
                    "timeouts": [0],
                    "retransmitted_bytes": [0],
                    "completion_ms": [10.0, 10.0, 10.0],
                    "wire_bytes": 10_000_000,
                    "entries": [3, 3, 3, 3],
                    "delivered_curve": [10] * bins_of(given),
                    "goodput_curve": [1000] * bins_of(given),
                    "unprotected": [],
                    "links_used": [True] * len(given.topology.links),
                }
                if given.live:
                    row |= {"mean_lateness_ms": 0.1, "max_lateness_ms": 3.0, "sender_lateness_ms": 3.0, "repeated": 0}
                for column, values in changes.items():
                    for key in ((name, failed), (name, failed, seed)):
                        if key in values:
                            row[column] = values[key]
                rows.append(row)
    return Comparison(given, mechanisms.find(list(lost)), range(1, seeds + 1), rows)


CLEAR = {"static": (0, 2000), "reroute": (0, 150), "1+1-vector": (0, 0)}


def test_what_is_clear_is_ranked(tmp_path: Path) -> None:
    found = made_up(givens(tmp_path), CLEAR)
    assert [(each.mechanism, each.rank) for each in found.summaries] == [
        ("1+1-vector", 1),
        ("reroute", 2),
        ("static", 3),
    ]
    assert advice.advice(found).startswith("1+1-vector loses nothing at 1.00 times")
    assert found.best(found.lost_less) == {"1+1-vector"}
    assert found.best(found.carries_less) == set()


def test_what_is_lost_undisturbed_is_subtracted(tmp_path: Path) -> None:
    found = made_up(givens(tmp_path), {name: (20, 20 + more) for name, (_, more) in CLEAR.items()})
    assert [(each.mechanism, each.lost_mean) for each in found.summaries] == [
        ("1+1-vector", 0),
        ("reroute", 150),
        ("static", 2000),
    ]
    assert "no more than undisturbed" in advice.advice(found)
    assert "loses nothing" not in advice.advice(found)
    assert any(
        "20 (static" in note or ", static)" in note for note in advice.notes(found) if "without a failure" in note
    )


def test_undisturbed_losses_as_large_as_those_of_the_failure_carry_nothing(tmp_path: Path) -> None:
    lost = {"static": (295, 340), "reroute": (306, 300), "1+1-vector": (285, 291)}
    found = made_up(givens(tmp_path), lost)
    assert advice.advice(found).startswith(
        "Unreliable, so there is neither ranking nor advice: without any failure 285 to 306"
    )
    assert [each.rank for each in found.summaries] == [None] * 3
    assert [each.mechanism for each in found.summaries] == NAMES
    path = tmp_path / "report.html"
    results.WORLD.report(found, path)
    text = path.read_text()
    assert "not ranked" in text
    assert "In no order" in text
    assert "class=best" not in text


def test_less_than_both_lose_undisturbed_is_no_difference(tmp_path: Path) -> None:
    """Check, with one seed, a difference of 100 packets, as two runs of the same setting may have."""
    found = made_up(givens(tmp_path), {"static": (60, 2060), "reroute": (60, 160), "1+1-vector": (60, 61)})
    assert found.doubts == []
    assert [each.rank for each in found.summaries[:2]] != [1, 1]  # By the outage.
    by_name = {each.mechanism: each for each in found.summaries}
    assert not found.lost_less(by_name["1+1-vector"], by_name["reroute"])
    assert found.lost_less(by_name["1+1-vector"], by_name["static"])


def test_a_negative_loss_is_no_headline(tmp_path: Path) -> None:
    found = made_up(givens(tmp_path), {"static": (5, 105), "reroute": (60, 30), "1+1-vector": (0, 0)})
    assert "reroute lost 30 packets less with the failure than without" in advice.advice(found)
    assert "loses" not in advice.advice(found).partition(":")[0]


LIVELY = {"static": (0, 2000), "reroute": (0, 150), "1+1-vector": (0, 0)}


def test_live_a_disturbed_baseline_is_unreliable(tmp_path: Path) -> None:
    given = givens(tmp_path, live=True)
    assert made_up(given, LIVELY).doubts == []
    # TCP lost -53.7 %, as the undisturbed run had been slow.
    goodput = {("1+1-vector", False): [650_615], ("1+1-vector", True): [1_000_000]}
    found = made_up(given, LIVELY, goodput_bytes=goodput)
    assert set(found.disturbed()) == {("1+1-vector", 1)}
    said = advice.advice(found)
    assert said.startswith("Unreliable")
    assert "1+1-vector: TCP delivered 54 % more with the failure than without" in said
    assert "loses nothing" not in said
    for changes, why in (
        ({"lost": {("reroute", False): [12]}}, "reroute: 12 packets were lost without a failure"),
        (
            {"goodput_curve": {("static", True): [500] * bins_of(given)}},
            "static: TCP's goodput differed by a factor of 2",
        ),
        ({"max_lateness_ms": {("static", True): 60.0}}, "held up the runs, the network's clock by up to 60 ms"),
        ({"sender_lateness_ms": {("static", True): 70.0}}, "senders of probes by up to 70 ms"),
    ):
        found = made_up(given, LIVELY, **changes)
        assert why in advice.advice(found), why
        assert found.best(found.lost_less) == set() or found.doubts


def test_live_what_was_disturbed_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that the measures show a disturbed run, and that repetitions are limited if it never gets better."""
    given = givens(tmp_path, live=True)
    slow = {("reroute", False): [600_000]}
    calls: list[tuple[str, int]] = []

    def sweep(_: object, points: list[Row], __: object, folder: Path, **___: object) -> pl.DataFrame:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "journal.jsonl").touch()
        attempt = points[0].get("attempt", 0)
        calls.append((",".join(sorted({point["mechanism"] for point in points})), attempt))
        better = made_up(given, LIVELY, goodput_bytes={} if attempt >= good_from else slow)
        rows = [better._rows[point["mechanism"], point["failure"], point["network_seed"]] for point in points]
        return pl.DataFrame([{**row, **({"attempt": attempt} if attempt else {})} for row in rows])

    monkeypatch.setattr(world.sweep, "run", sweep)
    monkeypatch.setattr(live, "check", lambda *_: None)
    good_from = 1
    found = results.run(given, mechanisms.find(NAMES), [1], tmp_path / "out")
    assert calls == [("1+1-vector,reroute,static", 0), ("reroute", 1)]
    assert found.doubts == []
    assert found.late()["repeated"] == 2
    calls.clear()
    good_from = 99
    found = results.run(given, mechanisms.find(NAMES), [1], tmp_path / "again")
    assert [attempt for _, attempt in calls] == [0, 1, 2]
    assert advice.advice(found).startswith("Unreliable")


def test_transfers_that_did_not_finish_have_no_mean(tmp_path: Path) -> None:
    times = {
        ("static", True): [15.0, None, None],
        ("reroute", True): [300.0, 310.0, 320.0],
        ("1+1-vector", True): [11.0, 12.0, 13.0],
    }
    found = made_up(givens(tmp_path), CLEAR, completion_ms=times)
    by_name = {each.mechanism: each for each in found.summaries}
    assert (by_name["static"].completion_mean_ms, by_name["static"].completion_worst_ms) == (None, None)
    assert by_name["reroute"].completion_mean_ms == 310
    assert terminal.completion(by_name["static"]) == "1 of 3"
    frame = found.case_frame().filter(pl.col("mechanism") == "static")
    assert frame["completion_mean_ms"].to_list() == [None]
    assert (frame["transfers"].item(), frame["transfers_unfinished"].item()) == (3, 2)
    path = tmp_path / "report.html"
    results.WORLD.report(found, path)
    assert "1 of 3<small>finished</small>" in path.read_text()
    assert any("2 (static) of 3" in note and "would flatter" in note for note in advice.notes(found))


def test_latency_is_not_a_mean_of_other_streams(tmp_path: Path) -> None:
    path = tmp_path / "traffic.yaml"
    found = made_up(
        givens(tmp_path), CLEAR, latency_ms={("static", True): [None]}, jitter_ms={("static", True): [None]}
    )
    assert path.is_file()
    by_name = {each.mechanism: each for each in found.summaries}
    assert by_name["static"].added_latency_ms is None
    assert by_name["reroute"].added_latency_ms == 0


def test_ties_share_rank_and_bold(tmp_path: Path) -> None:
    found = made_up(givens(tmp_path), {"static": (0, 2000), "reroute": (0, 100), "1+1-vector": (0, 98)})
    assert [each.rank for each in found.summaries] == [1, 1, 3]
    assert found.best(found.lost_less) == {"reroute", "1+1-vector"}
    same = made_up(givens(tmp_path), dict.fromkeys(NAMES, (0, 2000)))
    assert [each.rank for each in same.summaries] == [1, 1, 1]
    assert same.best(same.lost_less) == set()
    assert advice.advice(same).startswith("No mechanism helps here as far as can be seen")


def test_without_probes_nothing_is_ranked(tmp_path: Path) -> None:
    path = tmp_path / "tcp.yaml"
    path.write_text("tcp: [{source: h1, destination: h2}]\n")
    given = scenario.build("ring:4", fail="s1-s2", traffic=path)
    nothing: dict[str, dict[tuple[str, bool], Any]] = {
        column: {(name, failed): [] for name in NAMES for failed in (False, True)}
        for column in (
            "sent",
            "lost",
            "duplicated",
            "reordered",
            "outage_ms",
            "latency_ms",
            "jitter_ms",
            "completion_ms",
        )
    }
    found = made_up(given, CLEAR, **nothing, goodput_bytes={("static", True): [10_000]})
    assert "no UDP stream or ping" in advice.advice(found)
    assert "costs this traffic nothing" not in advice.advice(found)


def test_tcp_that_suffers_is_said(tmp_path: Path) -> None:
    found = made_up(givens(tmp_path), CLEAR, goodput_bytes={("1+1-vector", True): [600_000], ("static", True): [0]})
    assert "1+1-vector loses 40 % of TCP's goodput all the same" in advice.advice(found)
    unmet = made_up(givens(tmp_path), dict.fromkeys(NAMES, (0, 0)), goodput_bytes={("static", True): [0]})
    assert advice.advice(unmet).startswith("No probe met the failure, but TCP did")


# ---- Networks ----


@pytest.mark.parametrize("spec", ["nsfnet", "ring:5,rate_bps=1e7", "ring:5,rate_bps=1.5e6", "ring:4,rate_bps=64e3"])
def test_default_traffic_loses_nothing_undisturbed_on_slow_links(spec: str, tmp_path: Path) -> None:
    given = scenario.build(spec, fail="s1-s2" if spec.startswith("ring") else "Seattle-Champaign", when={"down_s": 0.5})
    found = results.run(given, mechanisms.find(["static", "mpls-loopback", "1+1-vector"]), [1], tmp_path)
    assert [each.lost_undisturbed for each in found.summaries] == [0, 0, 0]
    assert found.doubts == []
    used = max(link.rate_bps for link in given.topology.links)
    assert all(entry.rate_bps is None or entry.rate_bps < used / 2 for entry in given.traffic.tcp)


def test_default_traffic_is_what_it_says(tmp_path: Path) -> None:
    """Check a fat tree, in which a window of four segments per round trip of microseconds would be 100 Mb/s and more."""
    given = scenario.build("fat-tree:4", fail="e1.1-a1.1", when={"down_s": 0.5})
    found = results.run(given, mechanisms.find(["static"]), [1], tmp_path)
    row = found.row("static", "none", 1)
    seconds = given.times.end_s - given.times.failure_s
    mbps = [8e-6 * delivered / seconds for delivered in row["goodput_bytes"]]
    assert all(0.8 * 5 < each < 1.1 * 5 for each in mbps)
    assert sum(row["lost"]) == 0
    assert "of 5 Mb/s at most" in traffic_file.describe(given.traffic)


def test_own_traffic_that_overloads_gets_no_headline(tmp_path: Path) -> None:
    path = tmp_path / "traffic.yaml"
    path.write_text("pairs: [[h1, h3], [h2, h4]]\nudp: [{packets_per_s: 20}]\ntcp: [{}, {}, {}]\n")
    when = {"before_s": 1.0, "down_s": 0.5, "after_s": 2.0}
    given = scenario.build("ring:5,rate_bps=1.5e6", fail="s1-s2", traffic=path, when=when)
    found = results.run(given, mechanisms.find(["static", "reroute", "1+1"]), [1], tmp_path / "out")
    assert max(each.lost_undisturbed for each in found.summaries) > 0
    assert advice.advice(found).startswith("Unreliable")
    assert found.summaries[0].rank is None
