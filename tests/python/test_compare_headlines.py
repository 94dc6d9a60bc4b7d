"""Each headline claims only what its test supports, with invented measures."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from test_compare_doubts import CLEAR, NAMES, givens, made_up

from holdfast.compare import advice, results, scenario, terminal
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
    """Check that noise of lossy links is no ground for a ranking or a sentence about losses."""
    lost = {"static": (300, 300), "reroute": (306, 306), "1+1-vector": (20, 31)}
    untouched = {(name, True): True for name in ("static", "reroute")}
    used = {(name, failed): [True, False, True, False] + [True] * 4 for name in NAMES for failed in (False, True)}
    found = made_up(givens(tmp_path), lost, skipped=untouched, links_used=used)
    said = advice.advice(found)
    assert said.startswith("No ranking: link s1-s2 carries none of this traffic under plain routing")
    assert "choose another" in said
    assert "Unreliable" not in said
    assert not any(note.startswith("Not reliable") for note in advice.notes(found))
    assert [each.rank for each in found.summaries] == [None] * 3
    path = tmp_path / "report.html"
    results.WORLD.report(found, path)
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
    """Check a lossy link that fails and a detour that loses nothing, so that the failure reduces losses with each seed."""
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
    summary = results.WORLD.summary(found)
    assert [each["lost_mean"] for each in summary["mechanisms"]] == [None] * 3
    assert [each["outage_worst_ms"] for each in summary["mechanisms"]] == [None] * 3
    assert summary["mechanisms"][0]["goodput_lost_percent"] == 99
    assert "null" in json.dumps(summary["mechanisms"][0]["lost_by_seed"])
    frame = found.case_frame()
    assert frame["lost"].to_list() == frame["outage_ms"].to_list() == [None] * 3
    page = tmp_path / "report.html"
    results.WORLD.report(found, page)
    text = page.read_text()
    assert '<td data-head="packets lost"><span>\N{EN DASH}</span></td>' in text
    assert "0 lost" not in text
    # TCP's column stands, its bold numbers too.
    assert 'class=best data-head="TCP goodput lost' in text


TWO_CONNECTIONS = """
udp: [{source: h1, destination: h2}]
tcp: [{source: h1, destination: h2}, {source: h3, destination: h4}]
"""


def two_connections(folder: Path, **big: list[int]) -> Comparison:
    """Return a comparison of a small connection, over the link that fails, and of a big one.

    ``big``: by mechanism, the bytes that the big connection delivers, by seed.
    """
    path = folder / "two.yaml"
    path.write_text(TWO_CONNECTIONS)
    given = scenario.build("ring:4", fail="s1-s2", traffic=path)
    still = [1_000_000, 50_000_000]
    goodput: dict[tuple[Any, ...], list[int]] = {(name, failed): still for name in NAMES for failed in (False, True)}
    goodput |= {("static", True, seed): [0, each] for seed, each in enumerate(big["static"], 1)}
    done: dict[tuple[Any, ...], list[float]] = {(name, failed): [] for name in NAMES for failed in (False, True)}
    seeds = len(big["static"])
    return made_up(given, CLEAR, seeds=seeds, goodput_bytes=goodput, completion_ms=done)


def test_a_connection_that_the_failure_misses_hides_none_that_it_hits(tmp_path: Path) -> None:
    """Check that 0.2 % less with one seed, for reasons elsewhere, is not reported as an effect of the failure."""
    found = two_connections(tmp_path, static=[49_900_000, 50_000_000])
    (static,) = (each for each in found.summaries if each.mechanism == "static")
    assert static.goodput_lost_percent == 100
    assert static.goodput_lost_by_seed == (100, 100)
    assert static.goodput_lost_bytes_mean == 1_000_000
    assert [case.connections for case in found.cases] == [1] * 6


def test_affected_connections_are_the_same_for_all_seeds_and_weigh_the_same(tmp_path: Path) -> None:
    found = two_connections(tmp_path, static=[45_000_000, 50_000_000])
    (static,) = (each for each in found.summaries if each.mechanism == "static")
    assert [case.connections for case in found.cases] == [2] * 6
    assert static.goodput_lost_by_seed == (55, 50)
    assert static.goodput_lost_percent == 52.5
    assert static.goodput_lost_bytes_mean == 3_500_000


FEW_SEEDS = {"static": (0, 2000), "reroute": (0, 58), "ip-frr": (0, 20), "1+1": (0, 5)}


def few_seeds(folder: Path) -> Comparison:
    """Return a comparison of two seeds, for which Student's t is 12.7.

    So no interval of a difference between the best three excludes zero.
    """
    lost = {
        ("reroute", True, 1): [30],
        ("reroute", True, 2): [86],
        ("ip-frr", True, 1): [10],
        ("ip-frr", True, 2): [30],
        ("1+1", True, 1): [8],
        ("1+1", True, 2): [2],
    }
    wire = {("1+1", failed): 20_000_000 for failed in (False, True)}
    outage = {(name, True): [10.0] for name in FEW_SEEDS}
    return made_up(givens(folder), FEW_SEEDS, seeds=2, lost=lost, wire_bytes=wire, outage_ms=outage)


def test_what_few_seeds_cannot_confirm_shares_a_rank_and_is_said(tmp_path: Path) -> None:
    found = few_seeds(tmp_path)
    assert ranks(found) == {"1+1": 1, "ip-frr": 1, "reroute": 1, "static": 4}
    assert [each.mechanism for each in found.summaries] == ["1+1", "ip-frr", "reroute", "static"]
    said = advice.advice(found)
    assert "1+1 loses 5 packets" in said
    assert (
        "2 seeds cannot confirm that 1+1 loses less than ip-frr (20 on average) and reroute (58); use --seeds 5" in said
    )
    # Enough of the same, and nothing is left to confirm.
    lost = {("ip-frr", True, seed): [20 + seed] for seed in range(1, 6)}
    more = made_up(givens(tmp_path), FEW_SEEDS, seeds=5, lost=lost)
    assert ranks(more) == {"1+1": 1, "ip-frr": 2, "reroute": 3, "static": 4}
    assert "confirm" not in advice.advice(more)


def test_few_seeds_that_cannot_confirm_any_help_say_so(tmp_path: Path) -> None:
    lost = {("static", True, 1): [100], ("static", True, 2): [900]}
    found = made_up(givens(tmp_path), {"static": (0, 500), "reroute": (0, 60)}, seeds=2, lost=lost)
    said = advice.advice(found)
    assert "No mechanism helps" not in said
    assert said == (
        "reroute lost 60 packets on average and static 500, but 2 seeds cannot confirm that it loses less; use --seeds 5."
    )


def test_the_outage_decides_what_packets_cannot_only_in_their_direction(tmp_path: Path) -> None:
    """Check a mechanism that loses more but recovers sooner: no mechanism is ranked ahead if seeds cannot confirm it."""
    lost = {("reroute", True, 1): [100], ("reroute", True, 2): [20], ("1+1", True, 1): [10], ("1+1", True, 2): [12]}
    names = {"static": (0, 2000), "reroute": (0, 60), "1+1": (0, 11)}
    against = made_up(
        givens(tmp_path), names, seeds=2, lost=lost, outage_ms={("1+1", True): [80.0], ("reroute", True): [20.0]}
    )
    assert ranks(against) == {"1+1": 1, "reroute": 1, "static": 3}
    along = made_up(
        givens(tmp_path), names, seeds=2, lost=lost, outage_ms={("1+1", True): [20.0], ("reroute", True): [80.0]}
    )
    assert ranks(along) == {"1+1": 1, "reroute": 2, "static": 3}


def bold(found: Comparison, folder: Path, column: str) -> list[str]:
    path = folder / "report.html"
    results.WORLD.report(found, path)
    rows = path.read_text().partition('class="ranking"')[2].partition("</table>")[0].split("<tr>")[2:]
    assert len(rows) == len(found.summaries)
    return [
        s.mechanism for s, row in zip(found.summaries, rows, strict=True) if f'class=best data-head="{column}' in row
    ]


def test_a_few_segments_of_tcp_make_nothing_bold(tmp_path: Path) -> None:
    """Check that 3 % of a short connection, which is less than three segments, is not in bold."""
    few = {(name, failed): [100_000] for name in NAMES for failed in (False, True)}
    goodput = {**few, ("static", True): [97_000], ("reroute", True): [98_000]}
    assert bold(made_up(givens(tmp_path), CLEAR, goodput_bytes=goodput), tmp_path, "TCP goodput lost") == []
    goodput = {**few, ("static", True): [90_000], ("reroute", True): [98_000]}
    found = made_up(givens(tmp_path), CLEAR, goodput_bytes=goodput)
    assert bold(found, tmp_path, "TCP goodput lost") == ["1+1-vector", "reroute"]


def test_only_what_cannot_be_told_from_the_best_is_bold(tmp_path: Path) -> None:
    """Check three mechanisms ahead of static, of which none is surely ahead of both others, but the last is behind the first."""
    lost = {
        **{("1+1", True, seed): [10 + seed] for seed in (1, 2, 3)},
        **{("ip-frr", True, seed): [15 + 12 * (seed % 2) + seed] for seed in (1, 2, 3)},
        **{("reroute", True, seed): [40 + seed] for seed in (1, 2, 3)},
    }
    found = made_up(givens(tmp_path), FEW_SEEDS, seeds=3, lost=lost)
    by_name = {each.mechanism: each for each in found.summaries}
    assert found.lost_less(by_name["1+1"], by_name["reroute"])
    assert not found.lost_less(by_name["1+1"], by_name["ip-frr"])
    assert bold(found, tmp_path, "packets lost") == ["1+1", "ip-frr"]
    # Bytes are known: those of one price with the cheapest are bold, and nobody else.
    wire = {("1+1", failed): 20_000_000 for failed in (False, True)}
    wire |= {("reroute", failed): 10_300_000 for failed in (False, True)}
    found = made_up(givens(tmp_path), FEW_SEEDS, wire_bytes=wire)
    assert sorted(bold(found, tmp_path, "bytes carried")) == ["ip-frr", "static"]


def test_live_outages_are_known_to_what_the_clock_and_senders_were_late_by(tmp_path: Path) -> None:
    given = givens(tmp_path, live=True)
    lost = {"static": (0, 2000), "reroute": (0, 150), "1+1-vector": (0, 150)}
    outage = {("reroute", True): [100.0], ("1+1-vector", True): [125.0], ("static", True): [2000.0]}
    calm = made_up(given, lost, outage_ms=outage)
    assert any("outages are known to about 10 ms" in note for note in advice.notes(calm))
    assert calm.noise.outage_ms == 10
    by_name = {each.mechanism: each for each in calm.summaries}
    assert not calm.back_sooner(by_name["reroute"], by_name["1+1-vector"])  # Within 20 %.
    outage[("1+1-vector", True)] = [130.0]
    calm = made_up(given, lost, outage_ms=outage)
    late = {(name, True): 20.0 for name in NAMES}
    late_too = {(name, True): 17.0 for name in NAMES}
    held = made_up(given, lost, outage_ms=outage, max_lateness_ms=late, sender_lateness_ms=late_too)
    assert any("outages are known to about 37 ms" in note for note in advice.notes(held))
    for found, sooner in ((calm, True), (held, False)):
        by_name = {each.mechanism: each for each in found.summaries}
        assert found.back_sooner(by_name["reroute"], by_name["1+1-vector"]) is sooner


def test_as_few_packets_is_said_of_those_that_share_a_rank_and_tcps_loss(tmp_path: Path) -> None:
    lost = {"static": (0, 2000), "reroute": (0, 300), "mpls-path": (0, 50), "mpls-local": (0, 50), "ip-frr": (0, 50)}
    state = {("mpls-path", failed): [9, 9, 9, 9] for failed in (False, True)}
    state |= {("mpls-local", failed): [5, 5, 5, 5] for failed in (False, True)}
    state |= {("ip-frr", failed): [7, 7, 7, 7] for failed in (False, True)}
    found = made_up(givens(tmp_path), lost, entries=state)
    assert [each.mechanism for each in found.summaries][:3] == ["mpls-local", "ip-frr", "mpls-path"]
    said = advice.advice(found)
    assert said.startswith("mpls-local loses 50 packets (outage 50 ms)")
    assert "(ip-frr and mpls-path lose as few packets)" in said
    assert "as good" not in said
    assert any(
        note.startswith("As few packets: what they lose differs by no more than 5 %,") for note in advice.notes(found)
    )
    # One of them loses more of TCP's goodput, and the other carries more bytes, which is a rank.
    found = made_up(
        givens(tmp_path),
        lost,
        entries=state,
        goodput_bytes={("ip-frr", True): [800_000]},
        wire_bytes={("mpls-path", failed): 10_200_000 for failed in (False, True)},
    )
    assert ranks(found)["mpls-path"] == 3
    assert "as few" not in advice.advice(found)


DEAR = {("1+1-vector", failed): 20_000_000 for failed in (False, True)}


def test_outages_that_cannot_be_told_apart_are_no_headline(tmp_path: Path) -> None:
    """Check outages of 69 and 124 ms at worst over several failures, part of which occur without a failure."""
    lost = {"static": (0, 2000), "reroute": (0, 150), "1+1-vector": (0, 0)}
    outage: dict[tuple[Any, ...], list[float]] = {(name, False): [70.0] for name in NAMES}
    outage |= {("static", True): [1500.0], ("reroute", True): [124.0], ("1+1-vector", True): [69.0]}
    said = advice.advice(made_up(givens(tmp_path), lost, outage_ms=outage, wire_bytes=DEAR))
    assert said.startswith("1+1-vector loses nothing at 2.00 times")
    assert "reroute loses 150 packets at 1.00 times" in said
    outage |= {("reroute", True): [224.0]}
    said = advice.advice(made_up(givens(tmp_path), lost, outage_ms=outage, wire_bytes=DEAR))
    assert "1+1-vector loses nothing (gap 69 ms, and 70 ms without a failure) at" in said
    assert "reroute loses 150 packets (outage 224 ms, and 70 ms without a failure) at" in said


def test_tcp_is_said_of_both_that_are_named(tmp_path: Path) -> None:
    goodput = {("1+1-vector", True): [740_000], ("reroute", True): [750_000], ("static", True): [0]}
    said = advice.advice(made_up(givens(tmp_path), CLEAR, goodput_bytes=goodput, wire_bytes=DEAR))
    assert said.endswith("; of TCP's goodput 1+1-vector loses 26 % all the same, and reroute 25 %.")
    # Of one that loses packets, too; of little nothing is said.
    goodput = {("1+1-vector", True): [1_000_000], ("reroute", True): [800_000], ("static", True): [0]}
    said = advice.advice(made_up(givens(tmp_path), CLEAR, goodput_bytes=goodput, wire_bytes=DEAR))
    assert said.endswith("; of TCP's goodput 1+1-vector loses 0 % and reroute 20 %.")
    goodput[("reroute", True)] = [950_000]
    assert "TCP" not in advice.advice(made_up(givens(tmp_path), CLEAR, goodput_bytes=goodput, wire_bytes=DEAR))


def test_windows_are_the_reason_only_in_default_traffic_on_a_longer_path(tmp_path: Path) -> None:
    # One flow of each kind, as the made-up measures have.
    own = givens(tmp_path)
    default = own.model_copy(update={"own_traffic": False})
    goodput = {("1+1-vector", True): [740_000], ("reroute", True): [750_000], ("static", True): [0]}
    longer = {(name, True): [5.0] for name in ("1+1-vector", "reroute")}
    reason = "limited by their windows"
    lost: dict[tuple[Any, ...], list[float]] = {**longer, ("static", True): [3.0]}
    assert reason in advice.advice(made_up(default, CLEAR, goodput_bytes=goodput, wire_bytes=DEAR, latency_ms=lost))
    assert reason not in advice.advice(made_up(default, CLEAR, goodput_bytes=goodput, wire_bytes=DEAR))
    assert reason not in advice.advice(made_up(own, CLEAR, goodput_bytes=goodput, wire_bytes=DEAR, latency_ms=lost))
    limited = [entry.model_copy(update={"rate_bps": 5e6}) for entry in own.traffic.tcp[:1]]
    slow = default.model_copy(
        update={"traffic": own.traffic.model_copy(update={"tcp": [*limited, *own.traffic.tcp[1:]]})}
    )
    assert reason not in advice.advice(made_up(slow, CLEAR, goodput_bytes=goodput, wire_bytes=DEAR, latency_ms=lost))


def test_one_failure_and_several_seeds_is_no_mean_over_failures(tmp_path: Path) -> None:
    lost = {("reroute", True, seed): [150 + seed] for seed in (1, 2, 3)}
    outage = {("reroute", True, seed): [150.0 + 10 * seed] for seed in (1, 2, 3)}
    found = made_up(givens(tmp_path), {"static": (0, 2000), "reroute": (0, 0)}, seeds=3, lost=lost, outage_ms=outage)
    said = advice.advice(found)
    assert said.startswith("reroute loses 152 packets on average over 3 seeds (outage 170 ms) at 1.00 times")
    assert "per failure" not in said
    every = made_up(givens(tmp_path, fail="all"), {"static": (0, 2000), "reroute": (0, 150)})
    assert advice.advice(every).startswith("reroute loses 150 packets per failure (outage 150 ms at worst) at")


def test_numbers_agree_with_their_words(tmp_path: Path) -> None:
    one = made_up(givens(tmp_path), {"static": (0, 2000), "reroute": (0, 1)})
    assert advice.advice(one).startswith("reroute loses 1 packet (outage 1 ms) at")
    found = made_up(
        givens(tmp_path), CLEAR, latency_ms={("static", True): [None]}, jitter_ms={("static", True): [None]}
    )
    path = tmp_path / "report.html"
    results.WORLD.report(found, path)
    text = path.read_text()
    assert "1 points" not in text
    assert re.search(r"\d%[ ,;.]", text.partition("<body>")[2]) is None
    assert "<span>-</span>" not in text
    assert "<span>\N{EN DASH}</span>" in text
    assert "- " in table(found)


def test_seeds_that_change_nothing_are_said_to_add_nothing(tmp_path: Path) -> None:
    found = made_up(givens(tmp_path), CLEAR, seeds=3)
    assert found.seeds_agree
    (note,) = [note for note in advice.notes(found) if "All 3 seeds gave the same" in note]
    assert "so further seeds add nothing" in note
    assert "known to the interval of the probes, 1 ms" in note


def test_what_is_confirmed_is_the_headline_and_not_what_only_seems_best(tmp_path: Path) -> None:
    """Check a smallest mean whose seeds differ so much that it cannot be told from static."""
    lost = {("1+1", True, 1): [0], ("1+1", True, 2): [300], ("static", True, 1): [590], ("static", True, 2): [310]}
    lost |= {("reroute", True, 1): [360], ("reroute", True, 2): [358 - 280]}
    found = made_up(givens(tmp_path), {"static": (0, 450), "reroute": (0, 58), "1+1": (0, 5)}, seeds=2, lost=lost)
    said = advice.advice(found)
    assert said.startswith("reroute loses 219 packets on average over 2 seeds")
    assert "1+1 lost 150 packets on average, but 2 seeds cannot confirm that this is less; use --seeds 5" in said
