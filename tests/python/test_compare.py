"""``holdfast compare``: its numbers, files and error messages, mostly on a small network in this process."""

from __future__ import annotations

import json
import re
import shutil
import signal
import statistics
import subprocess
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
from holdfast_command import COMMAND, holdfast, holdfast_process

from holdfast.compare import advice, report, results, runs, scenario, traffic_file
from holdfast.compare import mechanisms as registry
from holdfast.compare.comparison import Comparison
from holdfast.compare.figures import Summary
from holdfast.errors import ScenarioError, TopologyError
from holdfast.topology import Topology

MECHANISMS = list(registry.MECHANISMS)

SQUARE = """
hosts: [h1, h2, h3]
switches: [s1, s2, s3, s4, s5]
link_defaults: {rate_bps: 1e9, delay_ms: 1}
links:
  - {a: h1, b: s1, delay_ms: 0.01}
  - {a: s1, b: s2}
  - {a: s2, b: s4}
  - {a: s1, b: s3, cost: 2}
  - {a: s3, b: s4, cost: 2}
  - {a: s4, b: h2, delay_ms: 0.01}
  - {a: s4, b: s5}
  - {a: s5, b: h3, delay_ms: 0.01}
"""
"""Two ways of the same length from s1 to s4, and a switch that hangs on one link."""

TRAFFIC = """
udp:
  - {source: h1, destination: h2, packets_per_s: 1000}
tcp:
  - {source: h1, destination: h2, options: {window_limit_bytes: 20000}}
  - {source: h2, destination: h1, transfer_bytes: 20000, after_failure_s: -0.05, count: 3, every_ms: 40}
ping:
  - {source: h1, destination: h2, interval_ms: 5}
"""

BRIEF: dict[str, float | None] = {
    "before_s": 0.3,
    "down_s": 0.6,
    "after_s": 0.2,
    "detection_delay_ms": 20.0,
    "reaction_delay_ms": 30.0,
}

GRAPHML = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="Network" attr.type="string" for="graph" id="d0" />
  <key attr.name="label" attr.type="string" for="node" id="d1" />
  <key attr.name="Latitude" attr.type="double" for="node" id="d2" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d3" />
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d4" />
  <graph edgedefault="undirected">
    <data key="d0">Provinces</data>
{nodes}
{edges}
  </graph>
</graphml>
"""

TOWNS = {
    "Groningen": (53.22, 6.57),
    "Zwolle": (52.51, 6.09),
    "Arnhem": (51.98, 5.91),
    "Maastricht": (50.85, 5.69),
    "Eindhoven": (51.44, 5.47),
    "Utrecht": (52.09, 5.12),
    "Amsterdam": (52.37, 4.90),
    "Leeuwarden": (53.20, 5.79),
    "Middelburg": (51.50, 3.61),
}
"""Of a network that nobody has: a ring with two chords, and a town at the end of a line."""

EDGES = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 0), (1, 5), (2, 4), (4, 8))


def graphml(path: Path) -> Path:
    nodes = "\n".join(
        f'    <node id="{i}"><data key="d1">{name}</data><data key="d2">{lat}</data><data key="d3">{lon}</data></node>'
        for i, (name, (lat, lon)) in enumerate(TOWNS.items())
    )
    edges = "\n".join(
        f'    <edge source="{a}" target="{b}"><data key="d4">1000000000.0</data></edge>' for a, b in EDGES
    )
    path.write_text(GRAPHML.format(nodes=nodes, edges=edges))
    return path


@pytest.fixture(scope="module")
def square(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("square")
    (folder / "traffic.yaml").write_text(TRAFFIC)
    path = folder / "square.yaml"
    path.write_text(SQUARE)
    return path


def build(square: Path, fail: str, *, own: bool = True) -> scenario.Scenario:
    traffic = square.with_name("traffic.yaml") if own else None
    return scenario.build(str(square), fail=fail, traffic=traffic, when=BRIEF)


def compare(square: Path, fail: str, out: Path, names: list[str] = MECHANISMS, **options: int) -> Comparison:
    seeds = range(1, options.pop("seeds", 1) + 1)
    return results.run(build(square, fail), registry.find(names), seeds, out, **options)


@pytest.fixture(scope="module")
def cut(square: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Comparison, Path]:
    out = tmp_path_factory.mktemp("cut")
    return compare(square, "s1-s2", out), out


def test_each_mechanism_loses_what_its_delays_say(cut: tuple[Comparison, Path]) -> None:
    comparison, _ = cut
    flows = comparison.flow_frame().filter((pl.col("failure") == "s1-s2") & (pl.col("kind") == "udp"))
    lost = {row["mechanism"]: row["lost"] for row in flows.iter_rows(named=True)}
    outage = {row["mechanism"]: row["outage_ms"] for row in flows.iter_rows(named=True)}
    # Down for 600 ms, noticed after 20, mended by the controller 30 later; a packet per ms, and a few on the link.
    assert 600 <= lost["static"] <= 603
    assert 50 <= lost["reroute"] <= 53
    assert 20 <= lost["mpls-local"] <= 23
    assert 20 <= lost["mpls-path"] <= 23
    assert 20 <= lost["mpls-loopback"] <= 23
    assert lost["1+1"] == lost["1+1-vector"] == 0
    assert 20 <= lost["ip-frr"] <= 23
    assert outage["1+1"] < 1
    assert 600 <= outage["static"] <= 604
    assert 50 <= outage["reroute"] <= 54


def test_summaries_rank_and_advise(cut: tuple[Comparison, Path]) -> None:
    comparison, _ = cut
    by_name = {summary.mechanism: summary for summary in comparison.summaries}
    ranks = [summary.rank for summary in comparison.summaries]
    # Both kinds of 1+1 lose nothing at the same price, and nothing tells them apart.
    assert ranks[:2] == [1, 1]
    assert ranks[-2:] == [len(MECHANISMS) - 1, len(MECHANISMS)]
    assert comparison.doubts == []
    assert comparison.summaries[0].mechanism.startswith("1+1")
    assert comparison.summaries[-1].mechanism == "static"
    assert by_name["static"].bytes_ratio == 1
    # Two copies, each with 28 bytes more.
    assert 2 < by_name["1+1"].bytes_ratio < 2.5
    assert by_name["reroute"].entries_mean == by_name["static"].entries_mean == 3
    assert by_name["mpls-local"].entries_mean > 3
    assert by_name["static"].goodput_lost_percent > by_name["reroute"].goodput_lost_percent  # type: ignore[operator]
    assert by_name["1+1"].goodput_lost_percent in (None, 0)
    assert advice.advice(comparison).startswith("1+1 loses nothing at 2.")
    assert "; if that is too dear, " in advice.advice(comparison)
    # Both ways are equally long, so nothing arrives later.
    assert by_name["reroute"].added_latency_ms == pytest.approx(0, abs=0.01)
    # A transfer that began in the failure waits for its first retransmission.
    assert by_name["static"].completion_mean_ms is None or by_name["static"].completion_mean_ms > 500
    assert by_name["static"].transfers == by_name["1+1"].transfers


def test_files_say_the_same(cut: tuple[Comparison, Path]) -> None:
    comparison, out = cut
    summary = json.loads((out / "summary.json").read_text())
    assert [each["mechanism"] for each in summary["mechanisms"]] == [s.mechanism for s in comparison.summaries]
    assert summary["advice"] == advice.advice(comparison)
    cases = pl.read_parquet(out / "cases.parquet")
    assert set(cases["mechanism"]) == set(MECHANISMS)
    assert cases.filter(pl.col("mechanism") == "static")["lost"].item() > 600
    flows = pl.read_parquet(out / "flows.parquet")
    assert set(flows["failure"]) == {"none", "s1-s2"}
    assert set(flows["kind"]) == {"udp", "ping", "bulk", "transfer"}
    undisturbed = flows.filter((pl.col("failure") == "none") & (pl.col("kind") == "udp"))
    assert undisturbed["lost"].to_list() == [0] * len(MECHANISMS)
    assert undisturbed["sent"].to_list() == [1100] * len(MECHANISMS)


class Page(HTMLParser):
    """What a page is made of, as far as the tests care."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.outside: list[str] = []
        self.drawn: list[dict[str, str | None]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag not in ("meta", "link"):
            self.open.append(tag)
        self.outside += [str(given[name]) for name in ("src", "href", "xlink:href") if name in given]
        if tag in ("line", "path", "circle"):
            self.drawn.append(given)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_the_report_needs_nothing_else(cut: tuple[Comparison, Path]) -> None:
    comparison, out = cut
    text = (out / "report.html").read_text()
    page = Page(text)
    assert page.open == []
    assert page.outside == ["data:,"]
    assert "http" not in text
    assert "url(" not in text
    said = " ".join(" ".join(page.words).split())
    assert "link s1-s2 fails" in said
    assert advice.advice(comparison) in said
    assert all(note in said for note in advice.notes(comparison))
    assert all(name in said for name in MECHANISMS)
    classes = [each.get("class") or "" for each in page.drawn]
    # Once for wide windows, once for phones.
    assert classes.count("link failed") == 2
    assert sum(style.startswith("curve m") for style in classes) == 3 * len(MECHANISMS)
    assert "nan" not in said.lower().split()
    assert not any("nan" in (value or "") for each in page.drawn for value in each.values())


def test_the_report_of_all_failures_has_their_distribution(square: Path, tmp_path: Path) -> None:
    names = ["static", "reroute", "1+1"]
    comparison = compare(square, "all", tmp_path, names)
    page = Page((tmp_path / "report.html").read_text())
    links = [each for each in page.drawn if (each.get("class") or "").startswith("link q")]
    assert len(links) == 2 * len(comparison.scenario.failures)
    # Each link knows its colour under each mechanism: s1-s2 costs static about 600 packets, and 1+1 none.
    assert {(link["data-static"], link["data-1p1"]) for link in links} == {("3", "0"), ("0", "0")}
    dots = [each for each in page.drawn if (each.get("class") or "").startswith("dot ")]
    assert dots
    assert "Under static 2 of 5 links" in " ".join(page.words)


CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_the_report_opens_in_a_browser_without_errors(square: Path, tmp_path: Path) -> None:
    compare(square, "all", tmp_path, ["static", "reroute"])
    # The page's own script is tried, and anything that goes wrong ends up in the title.
    text = (tmp_path / "report.html").read_text()
    spy = "<script>window.onerror = (what) => { document.title = 'ERROR ' + what; };</script>"
    click = (
        "<script>document.querySelector('[data-for=links] button[value=reroute]').click();"
        "document.querySelector('[data-for=time] button[value=f1]').click();"
        "document.title += [...document.querySelectorAll('.over-time')].map((e) => e.hidden).join() + ' ' +"
        "document.querySelector('[data-for=links] [aria-pressed=true]').value + ' ' +"
        "(document.documentElement.scrollWidth <= window.innerWidth);</script>"
    )
    tried = tmp_path / "tried.html"
    tried.write_text(text.replace("<head>", "<head>" + spy).replace("</body>", click + "</body>"))
    shown = subprocess.run(
        [
            str(CHROMIUM),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=1100,900",
            "--dump-dom",
            str(tried),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    (title,) = re.findall("<title>(.*?)</title>", shown)[:1]
    assert "ERROR" not in title
    assert title.endswith("true,false,true,true,true reroute true")


FITS = """<script>
const narrow = document.createElement("iframe");
narrow.srcdoc = document.documentElement.outerHTML.replace(new RegExp("<scr" + "ipt>[^]*?</scr" + "ipt>", "g"), "");
narrow.style = "width: %(width)dpx; height: 4000px; border: 0";
narrow.onload = () => {
  const page = narrow.contentDocument, window = narrow.contentWindow, found = [];
  const box = (part) => part.getBoundingClientRect();
  const seen = (part) => box(part).width > 0;
  found.push(page.documentElement.scrollWidth);
  found.push([...page.querySelectorAll("svg")].filter(seen).every((each) => box(each).right <= %(width)d));
  found.push([...page.querySelectorAll("td")].every((each) => seen(each) && box(each).right <= %(width)d));
  found.push([...page.querySelectorAll(".dots")].map((figure) =>
    [...figure.querySelectorAll("circle")].filter(seen).length));
  const sizes = [...page.querySelectorAll(".rowname, #network .name")].filter(seen).map((each) => box(each).height);
  found.push(sizes.length, sizes.every((each) => each >= 9));
  document.title = found.join(" ");
};
document.body.append(narrow);
</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
@pytest.mark.parametrize("width", [390, 1280])
def test_the_report_is_readable_on_a_phone_and_on_a_desk(width: int, square: Path, tmp_path: Path) -> None:
    """Check that nothing is cut off, that every dot is visible, and that letters are large enough to read."""
    compare(square, "all", tmp_path, ["static", "reroute"])
    tried = tmp_path / "tried.html"
    text = (tmp_path / "report.html").read_text()
    tried.write_text(text.replace("</body>", FITS % {"width": width} + "</body>"))
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1400,900", "--virtual-time-budget=5000"]
    shown = subprocess.run(
        [*command, "--dump-dom", str(tried)], capture_output=True, text=True, timeout=120, check=True
    )
    (title,) = re.findall("<title>(.*?)</title>", shown.stdout)[:1]
    scroll_width, pictures_fit, cells_fit, dots, names, readable = title.split(" ")
    assert int(scroll_width) <= width
    assert (pictures_fit, cells_fit, readable) == ("true", "true", "true")
    # Two links of each mechanism carry something, in both distributions.
    assert all(int(count) >= 4 for count in dots.split(","))
    assert int(names) > 4


def test_same_seed_same_bytes_whatever_the_number_of_processes(square: Path, tmp_path: Path) -> None:
    names = ["static", "mpls-local"]
    for folder, jobs in (("one", 1), ("two", 2)):
        compare(square, "all", tmp_path / folder, names, jobs=jobs, seeds=2)
    for name in ("cases.parquet", "flows.parquet", "summary.json", "report.html"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_link_that_carries_nothing_costs_nothing(square: Path, tmp_path: Path, mechanism: str) -> None:
    """Check the claim for which failures of unused links are not run."""
    path = build(square, "all").write(tmp_path)
    prepared = runs.Prepared(str(path), mechanism, 1)
    still = prepared.run("none")
    unused = "s4-s5"  # Only h3 is there, and it has no traffic.
    assert prepared.run(unused) == runs.SKIPPED
    ran = prepared.run(unused, skip=False)
    ignored = {"links_used", "entries", "unprotected", "wire_bytes", "join_updates", "join_switches", "promised_ms"}
    assert {k: v for k, v in ran.items() if k not in ignored} == {k: v for k, v in still.items() if k not in ignored}
    assert prepared.run("s1-s2") != runs.SKIPPED


def test_a_run_leaves_the_prepared_network_as_it_was(square: Path, tmp_path: Path) -> None:
    path = build(square, "all").write(tmp_path)
    prepared = runs.Prepared(str(path), "reroute", 1)
    first = prepared.run("s1-s2")
    prepared.run("s3-s4", skip=False)
    assert prepared.run("s1-s2") == first
    assert runs.Prepared(str(path), "reroute", 1).run("s1-s2") == first


def test_all_links_in_turn(square: Path, tmp_path: Path) -> None:
    comparison = compare(square, "all", tmp_path, ["static", "reroute", "1+1"])
    assert comparison.scenario.failures == ("s1-s2", "s2-s4", "s1-s3", "s3-s4", "s4-s5")
    by_name = {summary.mechanism: summary for summary in comparison.summaries}
    assert (by_name["static"].carried, by_name["1+1"].carried) == (2, 4)
    assert by_name["static"].worst_failure in ("s1-s2", "s2-s4")
    assert by_name["1+1"].lost_worst == 0
    text = " ".join(advice.notes(comparison))
    assert "Under static 2 of 5 links carry this traffic" in text
    assert "1 link is a bridge" in text


def test_pairs_without_a_second_way_are_counted(square: Path, tmp_path: Path) -> None:
    offered = tmp_path / "traffic.yaml"
    offered.write_text("pairs: [[h1, h2], [h1, h3]]\nudp: [{packets_per_s: 500}]\n")
    givens = scenario.build(str(square), fail="s4-s5", traffic=offered, when=BRIEF)
    comparison = results.run(givens, registry.find(MECHANISMS), [1], tmp_path)
    unprotected = {summary.mechanism: summary.unprotected_flows for summary in comparison.summaries}
    assert unprotected == {name: int(name.startswith(("1+1", "mpls"))) for name in unprotected} | {
        name: count for name, count in unprotected.items() if name == "ip-frr"
    }
    assert any("for want of a second way" in note for note in advice.notes(comparison))
    assert "only way" in advice.advice(comparison)


LOSSY = SQUARE.replace("delay_ms: 1}", "delay_ms: 1, loss: 0.02}")


def test_seeds_are_summarised_with_an_interval(square: Path, tmp_path: Path) -> None:
    lossy = tmp_path / "lossy.yaml"
    lossy.write_text(LOSSY)
    offered = square.with_name("traffic.yaml")
    names = registry.find(["static", "1+1-vector"])
    givens = scenario.build(str(lossy), fail="s1-s2", traffic=offered, when=BRIEF)
    comparison = results.run(givens, names, [1, 2, 3], tmp_path / "lossy")
    vector, static = comparison.summaries
    assert (vector.mechanism, static.mechanism) == ("1+1-vector", "static")
    for each in (vector, static):
        assert each.lost_low is not None
        assert each.lost_high is not None
        assert each.lost_low < each.lost_mean < each.lost_high
    # Losses of one path are repaired by the other, but for what both lose, and those on the hosts' own links.
    undisturbed = sum(comparison.row("static", "none", seed)["lost"][0] for seed in (1, 2, 3))
    assert sum(comparison.row("1+1-vector", "none", seed)["lost"][0] for seed in (1, 2, 3)) < undisturbed
    assert not comparison.seeds_agree
    assert any("even without a failure" in note for note in advice.notes(comparison))
    calm = results.run(build(square, "s1-s2"), registry.find(["static"]), [1, 2], tmp_path / "calm")
    assert calm.seeds_agree
    assert any("2 seeds gave the same" in note for note in advice.notes(calm))


def test_goodput_lost_is_of_all_that_was_expected(cut: tuple[Comparison, Path], square: Path, tmp_path: Path) -> None:
    comparison, _ = cut
    case = next(case for case in comparison.cases if case.mechanism == "static")
    # 600 ms of 800 without a way, and some 200 ms more until TCP tries again.
    assert case.goodput_lost_percent is not None
    assert 70 < case.goodput_lost_percent <= 100
    assert case.goodput_lost_bytes == pytest.approx(case.goodput_undisturbed_bytes * case.goodput_lost_percent / 100)


def test_a_switch_fails(square: Path, tmp_path: Path) -> None:
    comparison = compare(square, "s2", tmp_path, ["static", "reroute", "1+1"])
    by_name = {summary.mechanism: summary for summary in comparison.summaries}
    assert by_name["static"].lost_mean > 600
    assert 50 <= by_name["reroute"].outage_mean_ms <= 60
    assert by_name["1+1"].lost_mean == 0
    # What begins or ends at a switch that fails is nobody's fault.
    comparison = compare(square, "s1", tmp_path, ["static", "reroute"])
    assert comparison.summaries[0].lost_mean == 0
    assert any("begin or end at s1" in note for note in advice.notes(comparison))


def test_all_switches_in_turn(square: Path, tmp_path: Path) -> None:
    comparison = compare(square, "nodes", tmp_path, ["static", "reroute", "1+1"])
    assert comparison.scenario.failures == ("s1", "s2", "s3", "s4", "s5")
    by_name = {summary.mechanism: summary for summary in comparison.summaries}
    # s5 has no traffic. At s1 and s4 traffic begins and ends, so only s2 can be helped, and s3 is 1+1's other way.
    assert (by_name["static"].carried, by_name["1+1"].carried) == (3, 4)
    assert by_name["static"].worst_failure == "s2"
    assert by_name["static"].lost_worst > 600
    assert by_name["1+1"].lost_worst == 0
    lost = {(case.mechanism, case.failure): case.lost for case in comparison.cases}
    assert lost["static", "s1"] == lost["static", "s4"] == lost["static", "s5"] == 0
    text = " ".join(advice.notes(comparison))
    assert "Under static 3 of 5 switches carry this traffic" in text
    assert "Without 1 switch the network falls apart" in text
    page = Page((tmp_path / "report.html").read_text())
    said = " ".join(" ".join(page.words).split())
    assert "each of 5 switches fails in turn" in said
    assert "How it differs from switch to switch" in said
    # The undisturbed curve has flows that s1's failure cuts off by itself: they are no part of what could arrive, nor drawn.
    still = comparison.row("static", "none", 1)
    assert [report._counted_share(comparison, failure, still) for failure in ("s1", "s2")] == [0, 1]
    assert "NaN" not in (tmp_path / "report.html").read_text()
    drawn = [each for each in page.drawn if (each.get("class") or "").startswith("failing q")]
    assert [(each["data-static"], each["data-1p1"]) for each in drawn].count(("3", "0")) == 2
    assert len(drawn) == 2 * 5


def test_what_differs_by_no_more_than_noise_is_as_good(cut: tuple[Comparison, Path]) -> None:
    comparison, _ = cut
    by_name = {summary.mechanism: summary for summary in comparison.summaries}
    assert comparison.as_good(by_name["1+1"], by_name["1+1-vector"])
    assert comparison.as_good(by_name["mpls-path"], by_name["ip-frr"])
    assert not comparison.as_good(by_name["reroute"], by_name["ip-frr"])
    assert not comparison.as_good(by_name["1+1"], replace(by_name["1+1"], lost_mean=1.0, lost_by_seed=(1.0,)))
    said = advice.advice(comparison)
    assert "times the bytes of plain routing (1+1-vector loses as few packets); if that is too dear" in said
    assert "ip-frr loses 25 packets (outage 22 ms) at 1.00 times (mpls-path loses as few packets)." in said
    # With the loopback TCP loses more; the way around the link is longer than the other path, and so is the outage.
    assert comparison.as_good(by_name["mpls-loopback"], by_name["ip-frr"])
    assert comparison.delivers_more(by_name["ip-frr"], by_name["mpls-loopback"])
    assert not comparison.as_good(by_name["mpls-local"], by_name["ip-frr"])
    assert any(
        note.startswith("As few packets: what they lose differs by no more than 5 %,")
        for note in advice.notes(comparison)
    )


def test_seeds_are_compared_pair_by_pair(cut: tuple[Comparison, Path]) -> None:
    comparison, _ = cut
    three = Comparison(comparison.scenario, comparison.mechanisms, [1], list(comparison._rows.values()))
    three.seeds, three.seeds_agree = [1, 2, 3], False
    still = replace(comparison.summaries[0], outage_mean_ms=1.0, outage_by_seed_ms=(1.0, 1.1, 0.9))

    def losing(*lost: float, outage_ms: float = 1.0) -> Summary:
        outages = tuple(outage_ms + each for each in (0.0, 0.1, -0.1))
        return replace(
            still,
            lost_by_seed=lost,
            lost_mean=statistics.fmean(lost),
            outage_mean_ms=outage_ms,
            outage_by_seed_ms=outages,
        )

    # The seeds differ by much more than the mechanisms; seed by seed the first is always ahead by about 3, or sometimes only.
    one, always, sometimes = losing(10, 40, 70), losing(13, 43.5, 72.8), losing(20, 35, 74)
    assert three.lost_less(one, replace(always, lost_by_seed=(16, 46.5, 75.8), lost_mean=46.1))
    assert not three.lost_less(one, sometimes)
    assert not three.lost_less(sometimes, one)
    assert three.as_good(one, sometimes)
    # Sure, but by less than the 5 % that matter.
    assert three.as_good(losing(100, 400, 700), losing(103, 403.1, 702.9))
    assert not three.as_good(one, losing(20, 35, 74, outage_ms=4.0))


def pairs_of(traffic: traffic_file.TrafficFile) -> list[traffic_file.Pair]:
    assert all(len(ends.receivers) == 1 for ends in traffic.flows())
    return [pair for ends in traffic.flows() for pair in ends.pairs]


def test_default_traffic_goes_where_it_hurts(square: Path) -> None:
    topology = Topology.from_yaml(square)
    offered = traffic_file.default(topology)
    assert pairs_of(offered) == [("h1", "h2"), ("h2", "h3"), ("h3", "h1")]
    first = pairs_of(traffic_file.default(topology, [frozenset(("s4", "s5"))]))[0]
    assert "h3" in first
    assert "3 UDP streams of 500 packets/s" in traffic_file.describe(offered)
    slow = scenario.build("nsfnet", fail="all").traffic.udp[0].packets_per_s
    assert 20 <= slow < 100  # The links have 1.5 Mb/s.


def test_default_traffic_avoids_hosts_of_a_switch_that_fails() -> None:
    givens = scenario.build("abilene", fail="Denver")
    assert len(pairs_of(givens.traffic)) == 16
    denver = next(host for host in givens.topology.hosts if givens.topology.attachment(host).switch == "Denver")
    assert all(denver not in pair for pair in pairs_of(givens.traffic))


def test_a_network_from_a_zoo(tmp_path: Path) -> None:
    path = graphml(tmp_path / "provinces.graphml")
    givens = scenario.build(str(path), fail="all", when=BRIEF)
    assert len(givens.failures) == len(EDGES)
    comparison = results.run(givens, registry.find(["static", "mpls-path", "1+1"]), [1], tmp_path / "out")
    by_name = {summary.mechanism: summary for summary in comparison.summaries}
    assert by_name["1+1"].lost_mean < by_name["static"].lost_mean / 2
    # The line to Middelburg is the only one.
    assert by_name["1+1"].unprotected_flows > 0
    assert by_name["1+1"].worst_failure == "Eindhoven-Middelburg"


# ---- The command ----


TIMES = ("--before-s", "0.3", "--down-s", "0.4", "--after-s", "0.1")


def test_the_command_prints_a_ranking_and_writes_files(square: Path, tmp_path: Path) -> None:
    traffic = str(square.with_name("traffic.yaml"))
    arguments = ("--fail", "s1-s2", "--traffic", traffic, *TIMES, "--seeds", "2", "--jobs", "1")
    result = holdfast_process("compare", str(square), *arguments, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert all(name in result.stdout for name in MECHANISMS)
    assert "loses nothing" in result.stdout
    # Not a terminal: a line for each tenth of the runs.
    assert [line.split(" after ")[0] for line in result.stderr.splitlines()][-1] == "runs 32/32"
    assert result.stderr.count("runs ") >= 10
    assert result.stderr.splitlines()[0].endswith("8 mechanisms, 32 runs")
    assert all(" s left" in line for line in result.stderr.splitlines()[1:-1])
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert (tmp_path / "out/compare/cases.parquet").is_file()
    assert pl.read_parquet(tmp_path / "out/compare/cases.parquet").height == 2 * len(MECHANISMS)


def test_interrupted_it_goes_on(square: Path, tmp_path: Path) -> None:
    arguments = [str(square), "--fail", "all", "--mechanisms", "static,reroute", "--seeds", "6", *TIMES]
    command = [*COMMAND, "compare", *arguments, "--jobs", "2"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    journal = tmp_path / "out/compare/runs/journal.jsonl"
    deadline = time.monotonic() + 120
    while not (journal.is_file() and journal.read_text().count("\n") >= 5):
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "continues from here" in errors
    finished = journal.read_text().count("\n")
    result = holdfast("compare", *arguments, "--jobs", "1", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    about = json.loads((tmp_path / "out/compare/runs/sweep.json").read_text())
    assert about["runs"] == 2 * 6 * 6
    assert about["runs_of_this_call"] == about["runs"] - finished


ENDS = "links: [{a: h1, b: s1}, {a: s1, b: s2}, {a: s2, b: h2}]\n"

WRONG_TOPOLOGIES = {
    "disconnected": (
        {"t.yaml": "hosts: [h1, h2]\nswitches: [s1, s2]\nlinks:\n  - {a: h1, b: s1}\n  - {a: h2, b: s2}\n"},
        "t.yaml: there is no path between hosts 'h1' (at 's1') and 'h2' (at 's2'); --largest compares the largest part",
    ),
    "duplicate": (
        {"t.yaml": "hosts: [h1, h2]\nswitches: [s1, s1]\n"},
        "t.yaml:2: node 's1' is declared twice",
    ),
    "negative rate": (
        {"t.yaml": "hosts: [h1]\nswitches: [s1]\nlinks:\n  - {a: h1, b: s1, rate_bps: -1}\n"},
        "t.yaml:4: link h1-s1: rate_bps: Input should be greater than 0",
    ),
    "unknown node": (
        {"t.yaml": "hosts: [h1]\nswitches: [s1]\nlinks:\n  - {a: h1, b: s9}\n"},
        "there is no node 's9'",
    ),
    "cyclic include": (
        {"t.yaml": "include: u.yaml\n", "u.yaml": "include: t.yaml\n"},
        "files include each other in a circle: t.yaml -> u.yaml -> t.yaml",
    ),
    "one host": (
        {"t.yaml": "hosts: [h1]\nswitches: [s1]\nlinks:\n  - {a: h1, b: s1}\n"},
        "there are too few hosts (1); traffic needs two",
    ),
    "same switch": (
        {"t.yaml": "hosts: [h1, h2]\nswitches: [s1]\nlinks:\n  - {a: h1, b: s1}\n  - {a: h2, b: s1}\n"},
        "there are no links between switches that could fail",
    ),
    "one subnet": (
        {"t.yaml": "hosts: {h1: {address: 10.0.0.1/24}, h2: {address: 10.0.0.2/24}}\nswitches: [s1, s2]\n" + ENDS},
        "t.yaml: hosts 'h1' and 'h2' are both in 10.0.0.0/24, at different ports of what the baseline of holdfast compare routes",
    ),
    "a VLAN": (
        {"t.yaml": "hosts: {h1: , h2: {vlan: 5}}\nswitches: [s1, s2]\n" + ENDS},
        "t.yaml: host 'h2' is in VLAN 5, and the baseline of holdfast compare does not read the tags of VLANs",
    ),
    "absent": ({}, "t.yaml: No such file or directory"),
    "no loss trace": (
        {
            "t.yaml": "hosts: [h1, h2]\nswitches: [s1, s2]\nlinks:\n  - {a: h1, b: s1}\n  - {a: s2, b: h2}\n"
            "  - {a: s1, b: s2, reverse: {loss: {model: trace, file: lost.txt}}}\n"
        },
        "loss trace lost.txt: No such file or directory",
    ),
}


@pytest.mark.parametrize("name", WRONG_TOPOLOGIES)
def test_a_wrong_topology_gets_one_sentence(name: str, tmp_path: Path) -> None:
    files, message = WRONG_TOPOLOGIES[name]
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    result = holdfast("compare", "t.yaml", "--fail", "all", cwd=tmp_path)
    said = " ".join(result.stderr.split())
    assert result.returncode == 1
    assert said.startswith("error: ")
    assert message in said
    assert "Traceback" not in said
    assert said.count("error") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fail", "s1-s9"], "there is no link 's1-s9'"),
        (["--fail", "s9"], "there is no switch 's9'"),
        (["--fail", "h1"], "'h1' is a host"),
        (["--fail", "h1-s1"], "the only one of host 'h1'"),
        (["--mechanisms", "static,magic"], "there is no mechanism 'magic'"),
        (["--mechanisms", "reroute,reroute"], "given twice"),
        (["--before-s", "-1"], "--before-s"),
        (["--detection-delay-ms", "nan"], "--detection-delay-ms"),
        (["--traffic", "absent.yaml"], "absent.yaml: No such file"),
    ],
)
def test_wrong_arguments_get_one_sentence(arguments: list[str], message: str, square: Path, tmp_path: Path) -> None:
    result = holdfast("compare", str(square), *arguments, cwd=tmp_path)
    assert result.returncode == 1
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("udp: [", "t.yaml:1: not YAML"),
        ("- udp", "a mapping of pairs, udp, tcp, ping is expected"),
        ("udp: []", "there is no traffic"),
        ("udp: [{}]", "there is no traffic"),
        ("sctp: []", "sctp: unknown key"),
        ("udp: [{source: h1}]", "udp.0: give source and destination, or neither"),
        ("udp: [{source: h1, destination: h1}]", "udp.0: source and destination are both 'h1'"),
        ("udp: [{source: h1, destination: h9}]", "udp.0: there is no host 'h9' (known: h1, h2, h3)"),
        ("pairs: [[h1, h1]]\nudp: [{}]", "pairs: 'h1' is paired with itself"),
        ("pairs: [[h1]]\nudp: [{}]", "pairs.0"),
        ("pairs: [[h1, h2]]\nudp: [{packets_per_s: -5}]", "udp.0.packets_per_s: Input should be greater than or"),
        ("pairs: [[h1, h2]]\nudp: [{packets_per_s: 1.0e-320}]", "udp.0.packets_per_s: Input should be greater than"),
        ("pairs: [[h1, h2]]\nping: [{interval_ms: 1.0e-7}]", "ping.0.interval_ms: Input should be greater than or"),
        ("pairs: [[h1, h2]]\nping: [{interval_ms: 1.0e+300}]", "ping.0.interval_ms: Input should be less than or"),
        ("pairs: [[h1, h2]]\ntcp: [{every_ms: 1.0e-300}]", "tcp.0.every_ms: Input should be greater than or equal"),
        (f"pairs: [[h1, h2]]\ntcp: [{{transfer_bytes: {10**26}}}]", "tcp.0.transfer_bytes: Input should be less than"),
        ("pairs: [[h1, h2]]\ntcp: [{start_s: 1.0e+300}]", "tcp.0.start_s: Input should be less than"),
        (
            "pairs: [[h1, h2]]\nudp: [{packets_per_s: 800000}]\nping: [{interval_ms: 0.002}]",
            "udp and ping: 1.3e+06 packets per second in all; at most 1000000",
        ),
        (
            "pairs: [[h1, h2], [h2, h3], [h1, h3]]\ntcp: [{count: 7000, every_ms: 0.001}]",
            "tcp: 21000 connections in all; at most 20000",
        ),
        ("pairs: [[h1, h2]]\ntcp: [{transfer_bytes: 0}]", "tcp.0.transfer_bytes"),
        ("pairs: [[h1, h2]]\ntcp: [{options: {speed: 1}}]", "tcp.0.options.speed: unknown key"),
        ("pairs: [[h1, h2]]\ntcp: [{options: {congestion: none}}]", "tcp.0.options.congestion: Input should be"),
        ("pairs: [[h1, h2]]\nudp: [{start_s: 1, after_failure_s: 1}]", "udp.0: give start_s or after_failure_s"),
        ("pairs: [[h1, h2]]\nudp: [{start_s: 100}]", "udp.0: it would begin at 100 s"),
        ("pairs: [[h1, h2]]\nping: [{after_failure_s: -100}]", "ping.0: it would begin at"),
    ],
)
def test_a_wrong_traffic_file_gets_one_sentence(text: str, message: str, square: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(text)
    with pytest.raises((ScenarioError, TopologyError)) as error:
        scenario.build(str(square), fail="s1-s2", traffic=path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)


def test_a_run_that_fails_says_why() -> None:
    with pytest.raises(ScenarioError, match=r"(?s)^a run failed:\nTraceback .*KeyError: 'defect'"):
        runs._in_child(lambda: {}["defect"])


def test_a_mistake_that_only_a_run_finds_is_its_sentence(square: Path, tmp_path: Path) -> None:
    path = build(square, "all").write(tmp_path)
    prepared = runs.Prepared(str(path), "static", 1)
    with pytest.raises(ScenarioError, match=r"^\S+test_compare\.py:\d+: there is no link 's1-s9'[^\n]*$"):
        runs._in_child(lambda: prepared._finish("s1-s9"))


def test_the_probes_of_a_run_are_bounded_in_all(square: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text("pairs: [[h1, h2]]\nudp: [{packets_per_s: 1000000}]\n")
    assert scenario.build(str(square), fail="s1-s2", traffic=path).traffic.udp[0].packets_per_s == 1_000_000
    with pytest.raises(ScenarioError, match=r"udp and ping: 1.02e\+08 packets in all in 102 s; at most 100000000$"):
        when = {"before_s": 1.0, "down_s": 1.0, "after_s": 100.0}
        scenario.build(str(square), fail="s1-s2", traffic=path, when=when)


def test_other_loss_traces_are_other_runs(tmp_path: Path) -> None:
    topology, trace = tmp_path / "t.yaml", tmp_path / "lost.txt"
    topology.write_text(
        "hosts: [h1, h2]\nswitches: [s1, s2]\nlinks:\n  - {a: h1, b: s1}\n  - {a: s2, b: h2}\n"
        f"  - {{a: s1, b: s2, loss: {{model: trace, file: '{trace}', repeat: true}}}}\n"
    )
    names = []
    for text in ("01", "01", "00"):
        trace.write_text(text)
        names.append(scenario.build(str(topology), fail="s1-s2").write(tmp_path / "runs").name)
    assert names[0] == names[1] != names[2]
