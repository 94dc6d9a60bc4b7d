"""Reports show names as they are: no name of a topology or of a node becomes markup, wherever the page has it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

from holdfast.compare import mechanisms, page, results, scenario
from holdfast.compare.drawing import text
from holdfast.topology import Topology

FOLDER = Path(page.__file__).parent

HOSTS, SWITCHES = ["h1", "h2", "h3"], ["s1", "s2", "s3", "s4"]
LINKS = [("h1", "s1"), ("s1", "s2"), ("s2", "s4"), ("s1", "s3"), ("s3", "s4"), ("s4", "h2"), ("s3", "h3")]
WHEN: dict[str, float | None] = {"before_s": 0.15, "down_s": 0.2, "after_s": 0.05}

TITLE = "</title><script>alert('&lt;')</script>"
PLAIN_TITLE = "a plain name of this many letters only"


def hostile(name: str) -> str:
    return f"<{name}>&\"'&amp;"


def plain(name: str) -> str:
    """Return a name of as many letters, so that as many of them have room in the picture."""
    return f"q{name}qqqqqqqqq"


class Document(HTMLParser):
    """All that a browser would see: tags with their attributes, and text, without the spaces around it."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, ...]] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, *(f"{name}={value}" for name, value in attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.found.append((f"/{tag}",))

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.found.append(("text", data.strip()))


def report(folder: Path, hostile_names: bool, fail: str, multicast: bool, telemetry: bool) -> str:
    name = hostile if hostile_names else plain
    folder.mkdir()
    given = {
        "name": TITLE if hostile_names else PLAIN_TITLE,
        "hosts": [name(each) for each in HOSTS],
        "switches": [name(each) for each in SWITCHES],
        # Slow links have as many kinds of traffic, and fewer packets.
        "link_defaults": {"rate_bps": 6e6, "delay_ms": 1},
        "links": [{"a": name(a), "b": name(b)} for a, b in LINKS],
    }
    (folder / "topology.yaml").write_text(yaml.safe_dump(given))
    fail = name(fail) if fail in SWITCHES else fail
    traffic = "multicast" if multicast else None
    asked = scenario.build(
        str(folder / "topology.yaml"),
        fail=fail,
        traffic=traffic,
        when=WHEN,
        telemetry=telemetry,  # type: ignore[arg-type]
    )
    names = ["ipmc", "ipmc-reroute"] if multicast else ["static", "reroute"]
    results.run(asked, mechanisms.find(names, mechanisms.baseline(asked.traffic)), [1], folder / "out")
    return (folder / "out/report.html").read_text()


@pytest.mark.parametrize(
    ("fail", "multicast", "telemetry"),
    [("all", False, False), ("nodes", False, True), ("s2", False, True), ("all", True, False), ("s2", True, False)],
)
def test_a_page_of_hostile_names_is_that_of_plain_ones_but_for_the_names(
    fail: str, multicast: bool, telemetry: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The names of topologies are free; those of nodes are checked where they enter, and here they are not.
    monkeypatch.setattr(Topology, "_new_name", lambda self, name: None)
    monkeypatch.setattr("holdfast.compare.multicast.GROUP_COUNTS", (1, 3))
    bad, good = (
        Document(report(tmp_path / str(hostile_names), hostile_names, fail, multicast, telemetry)).found
        for hostile_names in (True, False)
    )
    for name in (*HOSTS, *SWITCHES):
        good = [tuple(part.replace(plain(name), hostile(name)) for part in parts) for parts in good]
    good = [tuple(part.replace(PLAIN_TITLE, TITLE) for part in parts) for parts in good]
    assert bad == good
    shown = " ".join(part for parts in bad for part in parts)
    assert TITLE in shown
    assert all(hostile(name) in shown for name in SWITCHES)
    assert bad.count(("script",)) == 1


def test_nothing_is_taken_out_of_escaping() -> None:
    assert page.TEMPLATES.autoescape is True
    templates = sorted(FOLDER.rglob("*.html"))
    assert {path.name for path in templates} == {"page.html", "parts.html", "report.html"}
    for path in templates:
        # `safe` and `autoescape` are how a template would; Markup() of other than a literal is refused by ruff's S704.
        tags = re.findall(r"{[{%].*?[%}]}", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert tags
        assert not [tag for tag in tags if re.search(r"\bsafe\b|\bautoescape\b", tag)], path
    assert text(1, 2, "<&>", style='"') == '<text x="1" y="2" text-anchor="start" class="&#34;">&lt;&amp;&gt;</text>'
