"""Pictures and curves as options: what each link looks like, which line is which link, and the contrast of all colours."""

from __future__ import annotations

import dataclasses
import json

import pytest

from holdfast.topologies import load
from holdfast.web import charts, words
from holdfast.web.charts import DARK, LIGHT, Colours
from holdfast.web.snapshot import LinkState, Point, Way

IDLE = Way(rate_bps=1e9, delay_ms=1.0, loss=0.0, load=0.0)


def states(topology: str, **changes: object) -> list[LinkState]:
    loaded = load(topology)
    return [
        dataclasses.replace(LinkState(name, link.a, link.b, True, IDLE, IDLE), **(changes if number == 0 else {}))  # type: ignore[arg-type]
        for number, (name, link) in enumerate(zip(loaded.link_names(), loaded.links, strict=True))
    ]


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    brighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_texts_and_lines_have_contrast(colours: Colours) -> None:
    for text in (colours.text, colours.faint, colours.cut):
        assert contrast(text, colours.ground) >= 4.5, text
    for line in (colours.switch, colours.host, colours.losing, *colours.loads, *colours.curves):
        assert contrast(line, colours.ground) >= 3, line


def test_a_link_is_drawn_as_what_it_is() -> None:
    topology = load("ring:3")

    def first(chosen: str | None = None, **changes: object) -> dict[str, object]:
        return dict(charts.lines(topology, states("ring:3", **changes), LIGHT, chosen)["links"][0]["lineStyle"])

    assert first()["type"] == "solid"
    assert first()["color"] == LIGHT.loads[0]
    busy = dataclasses.replace(IDLE, load=0.95)
    assert first(there=busy)["color"] == LIGHT.loads[-1]
    assert first(there=busy)["width"] > first()["width"]  # type: ignore[operator]
    assert first(back=busy)["color"] == LIGHT.loads[0], "the other direction"
    assert first(there=dataclasses.replace(IDLE, lost_per_s=3.0))["type"] == "dotted"
    assert first(up=False)["type"] == "dashed"
    assert first("s1-s2")["width"] > first()["width"]  # type: ignore[operator]


def test_rate_delay_and_state_are_written_on_the_links_of_small_networks() -> None:
    topology = load("ring:3")
    points = charts.lines(topology, states("ring:3"), LIGHT, None)["data"][6:]
    assert [each["label"]["formatter"] for each in points] == ["1 Gbit/s\n1 ms"] * 3 + [""] * 3
    cut = charts.lines(topology, states("ring:3", up=False), LIGHT, None)["data"][6]
    assert cut["label"]["formatter"] == "cut"
    lossy = charts.lines(topology, states("ring:3", there=dataclasses.replace(IDLE, loss=0.01)), LIGHT, None)["data"][6]
    assert lossy["label"]["formatter"].endswith("loses 1 %")
    assert "data" not in charts.lines(load("grid:6x6"), states("grid:6x6"), LIGHT, None)


@pytest.mark.parametrize("name", ["ring:3", "grid:6x6"])
def test_each_line_is_one_link(name: str) -> None:
    topology, links = load(name), states(name)
    drawn = charts.lines(topology, links, LIGHT, None)["links"]
    for number, line in enumerate(drawn):
        found = charts.link_of_line(number, links)
        assert found is not None
        assert {line["source"], line["target"]} == {found.a, found.b}
    assert charts.link_of_line(len(drawn), links) is None
    nodes = charts.nodes_of(topology, LIGHT)
    assert charts.link_of_point(len(nodes) - 1, topology, links) is None
    assert charts.link_of_point(len(nodes), topology, links) is links[0]


@pytest.mark.parametrize("name", ["ring:3", "line:1", "grid:3x4", "fat-tree:4", "nsfnet"])
def test_a_picture_has_every_node_once_and_is_json(name: str) -> None:
    topology = load(name)
    options = charts.picture(topology, states(name), DARK, None)
    json.dumps(options, allow_nan=False)
    nodes = [each["name"] for each in options["series"][0]["data"] if not each["name"].startswith("on ")]
    assert nodes == list(charts.places(topology))
    assert sorted(nodes) == sorted([*topology.switches, *topology.hosts])
    assert charts.places(topology) is charts.places(topology)


def test_curves_show_the_last_minute_of_at_most_five_flows() -> None:
    points = [Point(float(s), 1e6 * s, None, 0.5) for s in range(90)]
    goodput, latency, loss = charts.curves({str(i): points for i in range(7)}, 89.0, LIGHT)
    assert [each["name"] for each in goodput["series"]] == ["0", "1", "2", "3", "4"]
    assert goodput["series"][0]["data"][-1] == [89.0, 89.0]
    assert latency["series"][0]["data"][-1] == [89.0, "-"]
    assert loss["series"][0]["data"][-1] == [89.0, 50.0]
    assert (goodput["xAxis"]["min"], goodput["xAxis"]["max"]) == (29, 89)
    assert charts.curves({}, 5.0, LIGHT)[0]["xAxis"]["max"] == 60
    assert all(not each["data"] for each in charts.curves({}, 5.0, LIGHT)[0]["series"])


def test_numbers_are_words_with_units() -> None:
    assert [words.rate(each) for each in (None, 0, 12, 999.6, 1500, 1e6, 9.999e8, 2.5e9)] == [
        words.NOTHING,
        "0 bit/s",
        "12 bit/s",
        "1 kbit/s",
        "1.5 kbit/s",
        "1 Mbit/s",
        "1 Gbit/s",
        "2.5 Gbit/s",
    ]
    assert [words.share(each) for each in (None, 0, 1e-6, 0.0123, 1)] == [
        words.NOTHING,
        "0 %",
        "< 0.01 %",
        "1.23 %",
        "100 %",
    ]
    assert words.delay(1.2345) == "1.23 ms"
    assert charts.file_name("../a b-ü") == "_a_b-_"
