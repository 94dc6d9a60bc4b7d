"""The parts at tiny size: they measure what they claim, and every part writes its files."""

from __future__ import annotations

import math
import re
from pathlib import Path
from random import Random
from statistics import fmean, pstdev

import polars as pl
import pytest

from holdfast import reproduce
from holdfast.apps.protect.program import OVERHEAD_BYTES
from holdfast.errors import ExperimentError, LiveError
from holdfast.experiments import Finding, this_machine
from holdfast.experiments.p4_protect_2020 import (
    EXPERIMENT,
    delay_difference,
    goodput,
    goodput_live,
    instructions,
    jitter,
    processing,
    published,
    scenarios,
    setup,
)


@pytest.mark.parametrize("figure", scenarios.SCRIPTS)
def test_the_window_does_what_the_paper_draws_and_the_vector_repairs_it(figure: str) -> None:
    window, vector = (scenarios.measure({"figure": figure, "algorithm": name}, 1) for name in ("window", "vector"))
    assert {"fig2": set(), "fig3": {3}, "fig4": {2}}[figure] == scenarios.lost(window)
    assert scenarios.lost(vector) == set()
    assert window["duplicated"] == vector["duplicated"] == 0
    assert window["reordered"] == 0
    assert vector["reordered"] == (0 if figure == "fig2" else 1)


def test_the_scripts_give_the_arrivals_that_the_paper_draws() -> None:
    """Figure 4's two conditions, and Figure 3's: packet 4 on path 1 before packet 3 on path 2."""
    fig4 = scenarios.measure({"figure": "fig4", "algorithm": "window"}, 1)
    assert fig4["path1_numbers"] == [1, 3, 2, 4]
    assert fig4["path2_numbers"] == [1, 2, 3, 4]
    assert fig4["path1_ms"][1] < fig4["path2_ms"][1] < fig4["path1_ms"][2]
    fig3 = scenarios.measure({"figure": "fig3", "algorithm": "window"}, 1)
    assert fig3["path1_numbers"] == [1, 2, 4]
    assert fig3["path1_ms"][2] < fig3["path2_ms"][2]
    fig2 = scenarios.measure({"figure": "fig2", "algorithm": "window"}, 1)
    assert fig2["worst_delay_ms"] == pytest.approx(0.8, abs=0.01)
    assert fig2["path1_ms"][-1] == pytest.approx(5, abs=0.01)


@pytest.mark.parametrize(("behind", "twice"), [(6, False), (7, False), (8, True), (15, True)])
def test_a_copy_is_a_copy_until_it_is_half_the_number_space_behind(behind: int, twice: bool) -> None:
    found = delay_difference.measure({"sn_bits": 4, "packets_behind": behind}, 1)
    assert found["lost"] == found["reordered"] == 0
    assert found["duplicated"] == (behind + 1 if twice else 0)


def test_the_claim_depends_on_what_40_bytes_count() -> None:
    """Taken for the copy on the line the window is shorter than the paper says, with tunnel and Ethernet longer."""
    bytes_per_copy = {name: size for name, (_, size) in delay_difference.READINGS.items()}
    assert bytes_per_copy["wire"] == 40 + 28 + 8 + 14 + 4 + 12 == 106
    assert bytes_per_copy["copy"] == 40
    window = 2**31 - 1
    assert delay_difference.seconds(window, 40) == pytest.approx(0.687, abs=5e-4)
    assert delay_difference.seconds(window, 106) == pytest.approx(1.821, abs=5e-4)
    assert delay_difference.bytes_for() == range(91, 97)
    runs = pl.DataFrame([{"sn_bits": 4, "packets_behind": 7, "duplicated": 0, "lost": 0, "reordered": 0}])
    compared = reproduce.compare(EXPERIMENT.part("claim"), Finding(delay_difference.numbers(runs)), 1)
    assert compared is not None
    [row] = compared.drop_nulls("paper").iter_rows(named=True)
    assert (round(row["low"], 2), round(row["high"], 2), row["verdict"]) == (0.69, 1.82, "open")


PAYLOAD_BYTES = 1448
FRAME_BYTES = 1538
"""TCP data in a full segment with timestamps, and its size on the wire: 1500 bytes of IP, and 38 of Ethernet."""


def ceiling_gbps(mode: str) -> float:
    """Return the goodput in Gb/s at which full segments fill the line; protection adds its headers to each segment."""
    overhead = OVERHEAD_BYTES if mode == "protected" else 0
    return published.LINE_RATE_GBPS * PAYLOAD_BYTES / (FRAME_BYTES + overhead)


def test_goodput_is_what_headers_leave() -> None:
    found = {}
    for mode in published.MODES:
        [point] = [p for p in goodput.points([1], [100.0], 3, 2) if p["mode"] == mode]
        found[mode] = goodput.measure({**point, "flows": 4}, 1)["goodput_gbps"]
    assert found["plain"] == found["unprotected"]
    for mode in published.MODES:
        assert found[mode] == pytest.approx(ceiling_gbps(mode), rel=0.01)
    assert found["protected"] < found["plain"]


def test_three_slow_pairs_do_not_fill_the_line() -> None:
    """Three have 90 Gb/s and the line 100; the rest up to the line's goodput is their headers' share."""
    [point] = [p for p in goodput.points([3], [goodput.SLOW_HOST_GBPS], 3, 2) if p["mode"] == "plain"]
    found = goodput.measure({**point, "flows": 4}, 1)["goodput_gbps"]
    assert found == pytest.approx(0.9 * ceiling_gbps("plain"), rel=0.02)


@pytest.mark.parametrize("law", jitter.LAWS)
def test_closed_forms_agree_with_draws(law: str) -> None:
    draw = Random(1)
    one, two = (jitter._delays(law, 2.0, draw) for _ in range(2))
    smaller = [min(a, b) for a, b in zip(one, two, strict=True)]
    assert 100 * pstdev(smaller) / pstdev(one) == pytest.approx(jitter.closed_form_percent(law), abs=3)
    assert fmean(one) == pytest.approx({"around": 2.0, "clipped": 0.5}[law], rel=0.06)


@pytest.mark.parametrize(
    ("law", "queues", "percent"), [("around", 1, 81.5), ("around", 2, 82), ("clipped", 1, 53.5), ("clipped", 2, 69)]
)
def test_average_deviation_with_netem_queues_in_a_row(law: str, queues: int, percent: float) -> None:
    """The README's statement on them. Drawn, without a network: four times the delays of the paths, there and back."""
    draw = Random(3)

    def path() -> list[float]:
        many = [[each for _ in range(20) for each in jitter._delays(law, 1.0, draw)] for _ in range(queues)]
        return [sum(each) for each in zip(*many, strict=True)]

    there1, there2, back1, back2 = (path() for _ in range(4))
    alone = [a + b for a, b in zip(there1, back1, strict=True)]
    best = [min(a, c) + min(b, d) for a, b, c, d in zip(there1, back1, there2, back2, strict=True)]
    ratio = jitter.deviations(best)["average_deviation"] / jitter.deviations(alone)["average_deviation"]
    assert 100 * ratio == pytest.approx(percent, abs=1.5)


def test_a_round_trip_has_two_jitters() -> None:
    alone, pair = (jitter.measure(jitter.point("around", 2.0, mode, 10, 400), 1) for mode in jitter.MODES)
    assert alone["returned"] == pair["returned"] == 400
    assert alone["mdev"] == pytest.approx(4 / math.sqrt(6), rel=0.1)
    assert pair["mdev"] / alone["mdev"] == pytest.approx(math.sqrt(2 / 3), rel=0.1)


def test_only_the_window_drops_what_is_overtaken_on_both_paths() -> None:
    window, vector = (
        jitter.measure(jitter.point("around", 5.0, mode, 0.25, 400), 1) for mode in ("protected", "vector")
    )
    assert window["returned"] < 0.6 * window["sent"]
    assert vector["returned"] == vector["sent"]


def test_measures() -> None:
    assert jitter.deviations([1.0, 3.0]) == {
        "average_deviation": 1.0,
        "mdev": 1.0,
        "successive_difference": 2.0,
        "mean_delay": 2.0,
    }


def test_every_kind_of_packet_leaves_as_often_as_it_should() -> None:
    """``measure`` checks the counts itself; a switch that did something else would be timed for nothing."""
    found = processing.measure({"size_bytes": 64, "turns": 2, "packets": 256}, 1)
    assert set(found) == {f"{end} {kind}" for end, kinds in processing.KINDS.items() for kind in kinds}
    assert all(value > 0 for value in found.values())


def test_a_switch_that_does_something_else_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(processing.OUTPUTS, ("PTI", "protected"), 1)
    with pytest.raises(ExperimentError, match=re.escape("PTI protected: 512 packets left, not 256")):
        processing.measure({"size_bytes": 64, "turns": 1, "packets": 256}, 1)


def test_the_baseline_decides_the_ratio() -> None:
    row = {"PTI drops": 100, "PTI sends": 110, "PTI copies": 160, "PTI plain": 150, "PTI protected": 300}
    ratios = {name: processing.relative(row, "PTI", "protected", name) for name in processing.BASELINES}
    assert ratios == {
        "as_many_copies": pytest.approx(100 * 140 / 40),
        "nothing": pytest.approx(200),
        "one_copy": pytest.approx(100 * 190 / 40),
        "drop": pytest.approx(400),
    }
    del row["PTI copies"]
    assert processing.relative(row, "PTI", "protected", processing.AS_MANY) is None
    assert processing.relative(row, "PTI", "plain", processing.AS_MANY) == 100


def test_the_event_loop_has_the_same_work_for_every_kind() -> None:
    """A generator per packet of a round: with fewer for some kinds, the others would be charged for the event loop."""
    for end, kinds in processing.KINDS.items():
        assert {len(processing._packets(end, kind, 64)) for kind in kinds} == {processing.ROUND}


def test_instructions_have_the_range_over_the_baselines_and_times_that_over_sittings() -> None:
    kinds = {f"{end} {kind}": 100.0 + 10 * i for end, all_ in processing.KINDS.items() for i, kind in enumerate(all_)}
    counted = pl.DataFrame([{"size_bytes": 64, **kinds}])
    runs = [
        {"size_bytes": 64, "sitting": sitting, **kinds, "PTE protected": kinds["PTE protected"] + moved}
        for sitting, moves in ((1, (0, 1, 2)), (2, (20, 21, 22)), (3, (40, 41, 42)))
        for moved in moves
    ]
    rows = processing.numbers(pl.DataFrame(runs), counted)

    def row(quantity: str) -> dict[str, float]:
        [found] = rows.filter(end="PTE", mode="protected", quantity=quantity).iter_rows(named=True)
        return found

    ratios = [row(f"relative_percent_{name}")["ours"] for name in processing.BASELINES]
    main = row("relative_percent")
    assert (main["ours"], main["low"], main["high"]) == (ratios[0], min(ratios), max(ratios))
    # Runs of a sitting are within 2 of each other, sittings 20 apart: the interval is that of sittings.
    hop = row("time_hop_percent_64_bytes")
    assert hop["ours"] == pytest.approx(100 * (kinds["PTE protected"] + 21) / kinds["PTE plain"])
    assert hop["high"] - hop["low"] > 100 * 60 / kinds["PTE plain"]


def test_one_sitting_says_nothing_of_the_next() -> None:
    assert processing.next_sitting([150.0]) == (-math.inf, math.inf)
    low, high = processing.next_sitting([140.0, 150.0, 160.0])
    # Student's 4.303 for two degrees of freedom, times 10 sqrt(4/3).
    assert (low, high) == (pytest.approx(150 - 49.68, abs=0.01), pytest.approx(150 + 49.68, abs=0.01))


def test_a_headline_says_that_a_machine_was_busy() -> None:
    machine = pl.DataFrame({"processors": [2, 2], "load_before": [0.1, 6.7]})
    assert (
        this_machine.disturbance(machine)
        == "on a machine that was busy with other work (load 0.1 to 6.7 on 2 processors)"
    )
    assert this_machine.disturbance(machine.head(1)) == "on an idle machine (load 0.1 on 2 processors)"


def test_only_the_core_and_its_code_count(tmp_path: Path) -> None:
    """By callgrind's format: names once, then numbers; the costs of calls are their callees'."""
    dump = tmp_path / "callgrind.2-01"
    core = instructions.COUNTED_OBJECTS[0]
    lines = [
        "events: Ir",
        "summary: 1",
        f"ob=(1) /somewhere/{core}",
        "fn=(1) step",
        "12 100",
        "+3 20",
        "cob=(2) /usr/lib/libc.so.6",
        "cfn=(2) malloc",
        "calls=7 0",
        "* 5000",
        "* 3",
        "ob=(2)",
        "fn=(2)",
        "0 4000",
        "ob=(3) ???",
        "fn=(3) 0x1",
        "0 40",
    ]
    dump.write_text("\n".join(lines), encoding="utf-8")
    assert instructions._total(dump) == 100 + 20 + 3 + 40
    dump.write_text("\n".join(lines[11:]).replace("ob=(2)", "ob=(2) /usr/lib/libc.so.6").replace("???", "ld.so"))
    with pytest.raises(ExperimentError, match="has no instructions of _core"):
        instructions._total(dump)


def test_the_cases_are_named_between_their_marks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The code that runs under callgrind, without it."""
    marks: list[int] = []
    monkeypatch.setattr(instructions.os, "getppid", lambda: marks.append(1))
    go = tmp_path / "go"
    go.touch()
    instructions.main(["64", "256", str(go)])
    ready, *names = capsys.readouterr().out.splitlines()
    assert ready == instructions.READY
    assert names == [f"{end} {kind}" for end, kinds in processing.KINDS.items() for kind in kinds]
    assert len(marks) == 2 * len(names)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ExperimentError, match="no forwarding mode 'fast'"):
        setup.forwarding("fast", [])


def test_live_says_why_it_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(_: object) -> None:
        raise LiveError("cannot open network interfaces: not root")

    monkeypatch.setattr(this_machine, "check_machine", check)
    reproduce.run(EXPERIMENT, ["fig7_live"], tmp_path, seeds=1)
    said = pl.read_csv(tmp_path / EXPERIMENT.name / "fig7_live_skipped.csv")
    assert said["reason"].to_list() == ["cannot open network interfaces: not root"]


def test_modes_of_a_live_run_are_compared_within_it() -> None:
    frame = pl.DataFrame(
        {
            "pairs": [1, 1],
            "seed": [1, 2],
            "plain_gbps": [2.0, 1.0],
            "unprotected_gbps": [2.0, 1.0],
            "protected_gbps": [1.0, 0.5],
        }
    )
    found = pl.DataFrame(goodput.by_pairs_and_mode(goodput_live.long(frame)))
    [relative] = found.filter(pl.col("quantity") == "relative_percent", pl.col("mode") == "protected").iter_rows(
        named=True
    )
    assert relative["ours"] == pytest.approx(50)
    assert relative["low"] == pytest.approx(50)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run all parts except those in real time, with two seeds and small parameters; return the folder of the results."""
    out = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processing, "POINTS", [{"size_bytes": 64, "turns": 2, "packets": 256}])
        patch.setattr(instructions, "counted", lambda _: pl.DataFrame(schema={"size_bytes": pl.Int64}))
        patch.setattr(delay_difference, "POINTS", delay_difference.points([4]))
        patch.setattr(goodput, "POINTS", [{**p, "flows": 2} for p in goodput.points([4], [100.0, 30.0], 2, 1)])
        patch.setattr(jitter, "POINTS", jitter.points([1.0, 2.0], 50))
        patch.setattr(jitter, "CLOSE_POINTS", [{**p, "pings": 50} for p in jitter.CLOSE_POINTS[:6]])
        reproduce.run(EXPERIMENT, [part.name for part in EXPERIMENT.parts if part.name != "fig7_live"], out, seeds=2)
    return out / EXPERIMENT.name


@pytest.mark.parametrize("name", [part.name for part in EXPERIMENT.parts if part.name != "fig7_live"])
def test_a_part(results: Path, name: str) -> None:
    rows = pl.read_csv(results / f"{name}.csv")
    published_table = EXPERIMENT.part(name).published
    assert published_table is not None
    assert rows["paper"].drop_nulls().len() == sum(1 for _ in published_table.entries())
    # Instructions are what is beside the paper's numbers of Figure 6, and they are not counted here.
    counted = rows.filter(pl.col("quantity") != "relative_percent") if name == "fig6" else rows
    assert counted["ours"].null_count() == 0
    assert counted["ours"].is_finite().all()
    for picture in {"fig6": [], "fig8": ["fig8", "fig8_close"]}.get(name, [name]):
        assert (results / f"{picture}.png").stat().st_size > 5000
        assert "</svg>" in (results / f"{picture}.svg").read_text(encoding="utf-8")
