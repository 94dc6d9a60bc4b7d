"""Folders of results are opened as data frames, and notebooks show values whose names are no markup."""

from __future__ import annotations

import csv
import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

from holdfast import Topology, results, whole_files
from holdfast.compare import mechanisms, scenario
from holdfast.compare import results as comparisons
from holdfast.errors import ResultError
from holdfast.measurements import DirectionCounters, LinkCounters, Measured
from holdfast.topologies import load

WHEN: dict[str, float | None] = {"before_s": 0.2, "down_s": 0.2, "after_s": 0.1}


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[comparisons.Comparison, Path]:
    out = tmp_path_factory.mktemp("results")
    given = scenario.build("ring:3", fail="s1-s2", when=WHEN)
    return comparisons.run(given, mechanisms.find(["reroute"]), [1], out, csv=True), out


def test_a_folder_has_tables_and_a_summary(compared: tuple[comparisons.Comparison, Path]) -> None:
    found, out = compared
    folder = results.read(str(out))
    assert set(folder) == {"cases", "flows"} and len(folder) == 2
    assert folder["cases"].equals(found.case_frame())
    assert [each["mechanism"] for each in folder.summary["mechanisms"]] == [each.mechanism for each in found.summaries]
    runs = results.read(out / "runs")
    assert runs["rows"].height == 4 and runs.summary["runs"] == 4
    assert "cases" in folder._repr_html_() and folder.summary["advice"][:20] in folder._repr_html_()


def test_pandas_has_the_same_values(compared: tuple[comparisons.Comparison, Path]) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    folder = results.read(compared[1])
    frame = folder.pandas("cases")
    assert list(frame.columns) == folder["cases"].columns
    assert frame["lost"].tolist() == folder["cases"]["lost"].to_list()


def test_without_pandas_there_is_a_sentence(
    compared: tuple[comparisons.Comparison, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ResultError, match=r"pip install 'holdfast\[pandas\]'"):
        results.read(compared[1]).pandas("cases")


def test_csv_has_the_same_values(compared: tuple[comparisons.Comparison, Path]) -> None:
    _, out = compared
    for name in ("cases", "flows"):
        frame = pl.read_parquet(out / f"{name}.parquet")
        rows = list(csv.DictReader((out / f"{name}.csv").open(newline="")))
        assert [*rows[0]] == frame.columns and len(rows) == frame.height
        assert [row["mechanism"] for row in rows] == frame["mechanism"].to_list()


def test_csv_has_lists_as_json_and_nothing_as_nothing(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": ["x,y", 'q"'], "b": [[1, 2], None]}, schema={"a": pl.String, "b": pl.List(pl.Int64)})
    whole_files.write_csv(tmp_path / "x.csv", frame)
    first, second = csv.DictReader((tmp_path / "x.csv").open(newline=""))
    assert (first["a"], json.loads(first["b"]), second) == ("x,y", [1, 2], {"a": 'q"', "b": ""})


def test_what_is_missing_or_damaged_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="there are no results here"):
        results.read(tmp_path / "nowhere")
    (tmp_path / "cases.parquet").write_bytes(b"PAR1 no more")
    folder = results.read(tmp_path)
    with pytest.raises(ResultError, match="there is no table 'case'; did you mean 'cases'"):
        folder["case"]
    with pytest.raises(ResultError, match="it cannot be read as Parquet"):
        folder["cases"]
    with pytest.raises(ResultError, match="it cannot be read as Parquet"):
        folder._repr_html_()
    assert folder.summary == {}
    for text in ("[1]", "{", "\xff"):
        (tmp_path / "summary.json").write_text(text, encoding="latin-1")
        with pytest.raises(ResultError, match=r"summary\.json: "):
            _ = folder.summary


class _Tags(HTMLParser):
    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.words: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


HOSTILE = "</title><script>alert(1)</script><b onclick=x>&amp;"


def test_a_topology_is_a_picture_and_a_table(tmp_path: Path) -> None:
    topology = load("ring:4")
    topology.name = HOSTILE
    picture = topology._repr_svg_()
    assert picture is not None
    tree = ElementTree.fromstring(picture)
    space = "{http://www.w3.org/2000/svg}"
    assert len(tree.findall(f"{space}line")) == 8 and len(tree.findall(f"{space}rect")) == 4
    assert tree.findtext(f"{space}title") == HOSTILE
    shown = _Tags(topology._repr_html_())
    assert "script" not in shown.tags and "b" not in shown.tags
    assert f"{HOSTILE}: 4 switches, 4 hosts, 8 links" in "".join(shown.words) and "s1-s2" in shown.words


def test_a_topology_of_any_size_is_shown() -> None:
    assert Topology()._repr_svg_() is None and "0 switches" in Topology()._repr_html_()
    one = Topology("one")
    one.add_switch("s1")
    assert "<rect" in (one._repr_svg_() or "")
    large = load("grid:21x20,hosts=0")
    assert large._repr_svg_() is None
    assert "... and 759 more links" in large._repr_html_()


def test_a_comparison_is_a_table_and_bars(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from holdfast.apps.router import RouterController, compile_router\n"
        "from holdfast.compare.mechanism import Built, Mechanism\n"
        "def build(setting):\n"
        "    return Built(compile_router(), RouterController(reroute=False, reaction_delay_ms=0))\n"
        f"MINE = Mechanism('mine', {HOSTILE!r}, ('#123456', '#abcdef'), build)\n"
    )
    given = scenario.build("ring:3", fail="s1-s2", when=WHEN)
    found = comparisons.run(given, mechanisms.find([f"{tmp_path / 'mine.py'}:MINE"]), [1], tmp_path / "out")
    shown = _Tags(found._repr_html_())
    assert {"static", "mine"} <= set(shown.words) and "script" not in shown.tags
    bars = ElementTree.fromstring(found._repr_svg_()).findall("{http://www.w3.org/2000/svg}rect")
    assert {each.get("fill") for each in bars} == {mechanisms.MECHANISMS["static"].colour[0], "#123456"}


def test_statistics_are_tables_with_words() -> None:
    one = DirectionCounters(**dict.fromkeys(DirectionCounters.__slots__, 5))
    words = "".join(_Tags(one._repr_html_()).words)
    assert "Put on the wire." in words and "queue_drops" in words
    assert "a_to_b.packets" in LinkCounters(one, one)._repr_html_()
    assert all(hasattr(each, "__dataclass_fields__") for each in Measured.__subclasses__())


def test_the_readme_opens_a_folder_so(compared: tuple[comparisons.Comparison, Path]) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    assert '`holdfast.results.read("out/compare")["cases"]`' in readme and '`.pandas("cases")`' in readme
    assert results.read(compared[1])["cases"].height == 2
