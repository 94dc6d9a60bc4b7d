"""Headlines that somebody spends money on: each says what its test can say, of measures that were made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from test_compare_doubts import CLEAR, NAMES, givens, made_up

from holdfast.compare import advice, report, results, scenario, terminal
from holdfast.compare.comparison import Comparison


def ranks(found: Comparison) -> dict[str, int | None]:
    return {each.mechanism: each.rank for each in found.summaries}


def table(found: Comparison) -> str:
    return "\n".join(" ".join(str(cell) for cell in column.cells) for column in terminal.table(found).columns)


def test_a_mechanism_that_lost_nothing_undisturbed_is_not_named(tmp_path: Path) -> None:
    found = made_up(givens(tmp_path), {"static": (0, 2000), "reroute": (7, 157), "1+1-vector": (0, 0)})
    (note,) = [note for note in advice.notes(found) if "even without a failure" in note]
    assert "reordering): 7 (reroute)." in note


def test_a_failure_that_carries_nothing_is_said_to(tmp_path: Path) -> None:
    """What differs then is noise of lossy links, and no ground for a ranking, nor for a word on losses."""
    lost = {"static": (300, 300), "reroute": (306, 306), "1+1-vector": (20, 31)}
    untouched = {(name, True): True for name in ("static", "reroute")}
    used = {(name, failed): [True, False, True, False] + [True] * 4 for name in NAMES for failed in (False, True)}
    found = made_up(givens(tmp_path), lost, skipped=untouched, links_used=used)
    said = advice.advice(found)
    assert said.startswith("No ranking: link s1-s2 carries none of this traffic under plain routing")
    assert "choose another" in said
    assert "Unreliable" not in said
    assert [each.rank for each in found.summaries] == [None] * 3
    path = tmp_path / "report.html"
    report.write(found, path)
    assert "class=best" not in path.read_text()
    # One that is used, and costs nothing, is something else.
    assert advice.advice(made_up(givens(tmp_path), dict.fromkeys(NAMES, (0, 0)))).startswith("The failure costs")


def test_a_better_way_around_is_no_disturbance_in_simulation(tmp_path: Path) -> None:
    lost = {"static": (20, 2020), "reroute": (20, 170), "1+1-vector": (5, 5)}
    gains = {("reroute", True): [1_300_000], ("static", True): [0]}
    found = made_up(givens(tmp_path), lost, goodput_bytes=gains)
    assert found.doubts == []
    assert ranks(found) == {"1+1-vector": 1, "reroute": 2, "static": 3}
    (note,) = [note for note in advice.notes(found) if note.startswith("TCP delivers more with the failure")]
    assert "under reroute: the way around" in note
    live = made_up(givens(tmp_path, live=True), CLEAR, goodput_bytes=gains)
    assert any("undisturbed run was disturbed" in doubt for doubt in live.doubts)
    # What static has is never a way around.
    held = {("static", True): [1_300_000], ("reroute", True): [0]}
    notes = advice.notes(made_up(givens(tmp_path), lost, goodput_bytes=held))
    assert not any("static: the way around" in note for note in notes)
    assert any("under static" in note and "what failed had held others back" in note for note in notes)


def test_a_way_around_that_loses_less_is_no_noise_if_seeds_say_so(tmp_path: Path) -> None:
    """A lossy link fails, and the way around it loses nothing: fewer packets with the failure than without, each time."""
    lost = {"static": (100, 800), "reroute": (100, 40), "1+1-vector": (1, 1)}
    assert "reroute lost 60 packets less" in advice.advice(made_up(givens(tmp_path), lost))
    with_it = {("reroute", True, seed): [40 + 3 * seed] for seed in (1, 2, 3)}
    found = made_up(givens(tmp_path), lost, seeds=3, lost=with_it)
    assert found.doubts == []
    assert found.summaries[0].mechanism == "reroute"


def test_without_probes_there_is_nothing_to_count(tmp_path: Path) -> None:
    path = tmp_path / "tcp.yaml"
    path.write_text("tcp: [{source: h1, destination: h2}]\n")
    given = scenario.build("ring:4", fail="s1-s2", traffic=path)
    columns = ("sent", "lost", "duplicated", "reordered", "outage_ms", "latency_ms", "jitter_ms", "completion_ms")
    nothing: dict[str, Any] = {
        column: {(name, failed): [] for name in NAMES for failed in (False, True)} for column in columns
    }
    found = made_up(given, CLEAR, **nothing, goodput_bytes={("static", True): [10_000]})
    assert advice.advice(found).startswith("No ranking: no UDP stream or ping to count")
    assert [each.rank for each in found.summaries] == [None] * 3
    lost, outage, tcp = table(found).splitlines()[1:4]
    assert lost == outage == "- - -"
    assert tcp == "99 0 0"
    summary = results.summary(found)
    assert [each["lost_mean"] for each in summary["mechanisms"]] == [None] * 3
    assert [each["outage_worst_ms"] for each in summary["mechanisms"]] == [None] * 3
    assert summary["mechanisms"][0]["goodput_lost_percent"] == 99
    assert "null" in json.dumps(summary["mechanisms"][0]["lost_by_seed"])
    frame = found.case_frame()
    assert frame["lost"].to_list() == frame["outage_ms"].to_list() == [None] * 3
    page = tmp_path / "report.html"
    report.write(found, page)
    text = page.read_text()
    assert '<td data-head="packets lost"><span>\N{EN DASH}</span></td>' in text
    assert "0 lost" not in text
    # TCP's column stands, its bold numbers too.
    assert 'class=best data-head="TCP goodput lost' in text
