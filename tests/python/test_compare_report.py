"""The report of a comparison: words beside the numbers, names of the worst, pictures that a tap explains, and a footer."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from holdfast_command import holdfast

from holdfast.compare import mechanisms, report, results, scenario
from holdfast.compare.comparison import Comparison
from holdfast.compare.drawing import Curve
from holdfast.version import version

COMMAND = (
    "compare ring:5 --fail s1-s2 --mechanisms ip-frr,1+1,1+1-vector --before-s 0.3 --down-s 0.5 --after-s 0.4 --seeds 1"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("report")
    done = holdfast(*COMMAND.split(), "--jobs", "1", "--out", str(folder), "--csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    return unescape((folder / "report.html").read_text())


def section(page: str, heading: str) -> str:
    return page.partition(f"<h2>{heading}</h2>")[2].partition("<h2>")[0]


def test_nothing_is_called_an_outage_in_which_nothing_was_lost(page: str) -> None:
    rows = re.findall(r"<tr><td>.*?</tr>", section(page, "Ranking"), re.DOTALL)
    outage = {
        re.search(r"<b>(.*?)</b>", row)[1]: re.search(r'data-head="longest outage \(ms\)"><span>(.*?)</span>', row)[1]  # type: ignore[index]
        for row in rows
    }
    assert outage["1+1-vector"].startswith("gap ")
    assert outage["ip-frr"][0].isdigit() and outage["static"][0].isdigit() and outage["1+1"][0].isdigit()
    assert re.search(r"1\+1-vector loses nothing \(gap \d+ ms\)", page)
    lanes = dict(re.findall(r'class="lane">.*?</span>([\w+-]+)<small>\d+ lost</small><small>(\w+) [\d.]+ ms', page))
    assert lanes == {"1+1-vector": "gap", "1+1": "outage", "ip-frr": "outage", "static": "outage"}


def test_what_is_lost_in_spite_of_protection_is_explained_beside_the_numbers(page: str) -> None:
    beside = re.findall(r'<p class="why">(.*?)</p>', section(page, "Ranking"))
    assert (
        beside[0].startswith("1+1 loses ")
        and "at the repair" in beside[0]
        and "1+1-vector knows each number" in beside[0]
    )
    assert beside[1].startswith("TCP loses goodput where no packet of a stream is lost (1+1-vector ")
    assert not set(beside) & set(re.findall(r"<li>(.*?)</li>", section(page, "Notes")))


def test_what_one_plus_one_loses_it_loses_at_the_repair(tmp_path: Path) -> None:
    lost = {}
    for after_s in (0.0, 0.2):
        given = scenario.build("ring:5", fail="s1-s2", when={"before_s": 0.2, "down_s": 0.3, "after_s": after_s})
        found: Comparison = results.run(given, mechanisms.find(["1+1"]), [1], tmp_path / str(after_s))
        lost[after_s] = next(each.lost_mean for each in found.summaries if each.mechanism == "1+1")
    assert lost[0.0] == 0 < lost[0.2]


def test_the_worst_pair_is_named(page: str) -> None:
    worst = section(page, "The worst failure and pair")
    named = re.findall(r"<b>(.*?)</b>.*?>(s1-s2)<.*?>(h\d to h\d)<", worst, re.DOTALL)
    assert [name for name, _, _ in named] == ["1+1", "ip-frr", "static"]


def test_the_picture_has_hosts_and_links(page: str) -> None:
    network = section(page, "The network")
    assert re.search(r">s1 \(h1\)</text>", network) and "<title>s2: h2</title>" in network
    assert "<title>s1-s2 (1 Gb/s, 1 ms)</title>" in network
    assert "Links between switches: 1 Gb/s, 1 ms." in network


def test_curves_never_rise_above_all_that_arrives() -> None:
    still = Curve(0.0, 0.1, [20, 21, 19, 20, 20, 21])
    for values, expected in (
        ([20, 21, 19, 20, 20, 21], [100] * 6),
        # The way is a little longer: a packet is counted in the next bin.
        ([20, 20, 20, 19, 21, 20], [100] * 6),
        # What waited in a queue is not taken for what came in time, and what is lost is seen.
        ([20, 10, 0, 0, 40, 21], [100, 50, 0, 20, 100, 100]),
        ([20, 21, 19, 19, 20, 21], [100, 100, 100, 95, 100, 100]),
    ):
        assert report._percent(Curve(0.0, 0.1, values), still, 1.0).values == pytest.approx(expected)
    half = report._percent(Curve(0.0, 0.1, [10, 10]), Curve(0.0, 0.1, [20, 20]), 0.5)
    assert half.values == [100, 100]


def test_each_part_of_a_picture_says_something_to_a_tap(page: str) -> None:
    assert 'id="told"' in page and "elementsFromPoint" not in page
    panels = re.findall(r"<svg [^>]*aria-label=\"[^\"]*(?:probes around|TCP goodput)[^\"]*\".*?</svg>", page, re.DOTALL)
    assert len(panels) == 4 * 3
    for panel in panels:
        told = re.findall(r'class="told"><title>([\d.e+-]+) s: ([\d.e+-]+) (% of probes|Mb/s)</title>', panel)
        assert 5 <= len(told) <= 60
        assert [float(at) for at, _, _ in told] == sorted(float(at) for at, _, _ in told)


def test_the_footer_says_what_made_it(page: str) -> None:
    footer = page.partition("<footer>")[2].partition("</footer>")[0]
    # Without the options on which no number depends.
    assert f"<code>holdfast {COMMAND} --csv</code>, seed 1, Holdfast {version()}" in " ".join(footer.split())
    assert 'id="written"' in footer


def test_the_rule_is_in_sentences(page: str) -> None:
    assert "The order: first comes who loses fewer packets to the failure." in section(page, "Ranking")
