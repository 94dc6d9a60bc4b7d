"""Requirements on mechanisms: what is one, who keeps to it, and how a command says so."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest
from holdfast_command import holdfast

from holdfast.compare.competitor import Competitor
from holdfast.compare.gateways.results import WORLD as GATEWAYS
from holdfast.compare.inputs import NO_FAILURE, Scenario, times
from holdfast.compare.ranking import Ranking
from holdfast.compare.requirements import Measure, check, judge, read, sentences
from holdfast.compare.results import WORLD as NETWORKS
from holdfast.compare.verdicts import junit, markdown
from holdfast.compare.world import World
from holdfast.errors import ScenarioError


def _of(name: str) -> Callable[[object, object, object], float | None]:
    return lambda _, case, __: getattr(case, "measures")[name]  # noqa: B009 - of any case


ROOT = Path(__file__).parent.parent.parent

MEASURES = {
    "lost": Measure("packets", _of("lost_to_failure")),
    "time": Measure("the time of all", _of("time"), "ms"),
    "share": Measure("the share of some", _of("share"), "%"),
}


class Timed(Ranking):
    """A ranking whose rows have a time and a share."""

    def measures(self, row: Mapping[str, float], still: Mapping[str, float]) -> dict[str, float]:
        return {**super().measures(row, still), "time": row["time"], "share": row["share"]}


def compared(
    values: Mapping[tuple[str, str], tuple[int, float | None, float | None]], seeds: tuple[int, ...] = (1,)
) -> Timed:
    """Return a comparison in which (mechanism, failure) costs (packets, time, share), alike with all seeds."""
    failures = tuple(dict.fromkeys(failure for _, failure in values))
    names = dict.fromkeys(name for name, _ in values)
    rows = [
        {"mechanism": name, "failure": failure, "network_seed": seed, "lost": [lost], "time": time, "share": share}
        for seed in seeds
        for (name, failure), (lost, time, share) in {
            **values,
            **{(n, NO_FAILURE): (0, 0.0, 0.0) for n in names},
        }.items()
    ]
    scenario = Scenario(times=times({"before_s": 1, "down_s": 1, "after_s": 1}), failures=failures)
    return Timed(scenario, [Competitor(name, name, ("#000000", "#ffffff")) for name in names], seeds, rows)


COMPARISON = compared(
    {
        ("plain", "a"): (90, 900.0, None),
        ("plain", "b"): (100, math.inf, None),
        ("good", "a"): (9, 50.0, 3.0),
        ("good", "b"): (2, 7.0, 4.0),
    }
)


@pytest.mark.parametrize(
    ("text", "met_by"),
    [
        ("lost < 10", ["good"]),
        ("lost < 9", []),
        ("lost <= 9", ["good"]),
        ("lost < 101", ["good", "plain"]),
        ("time < 0.1s", ["good"]),
        ("time < 50 ms", []),
        ("lost<10,time<=50ms", ["good"]),
        ("lost < 10, time < 50ms", []),
        ("plain: lost < 101", ["plain"]),
        ("plain: lost < 100", []),
        ("plain: time < 1000 s", []),
        ("share < 5%", ["good"]),
        ("share < 4", []),
        ("plain: share < 100%", []),
        ("lost == 9", []),
        ("good: share == 3", []),
    ],
)
def test_the_worst_failure_decides(text: str, met_by: list[str]) -> None:
    verdict = judge(COMPARISON, read(text, MEASURES), MEASURES)
    assert (verdict.met_by, verdict.is_met) == (met_by, bool(met_by))


def test_each_seed_counts() -> None:
    """A mean over the seeds would keep to the limit."""
    comparison = compared({("one", "a"): (5, 1.0, 1.0)}, seeds=(1, 2, 3))
    assert judge(comparison, read("lost <= 5", MEASURES), MEASURES).is_met
    comparison.cases = [
        replace(case, measures={**case.measures, "lost_to_failure": 15 if case.seed == 2 else 0})
        for case in comparison.cases
    ]
    assert not judge(comparison, read("lost <= 5", MEASURES), MEASURES).is_met


def test_what_misses_is_said_with_its_failure() -> None:
    verdict = judge(COMPARISON, read("lost < 5, time < 1s", MEASURES), MEASURES)
    assert sentences(verdict, MEASURES) == [
        "Not met: lost < 5, time < 1s.",
        "  good: lost 9 when a fails",
        "  plain: lost 100 when b fails; time never when b fails",
    ]
    (first, other) = sentences(judge(COMPARISON, read("share < 9%", MEASURES), MEASURES), MEASURES)
    assert first == "Met: share < 9%, by good." and other == "  plain: share not measured"


def test_runs_without_a_conclusion_meet_nothing() -> None:
    comparison = compared({("one", "a"): (0, 0.0, 0.0)})
    comparison.unranked = "Unreliable: the machine was busy"
    verdict = judge(comparison, read("lost < 10", MEASURES), MEASURES)
    assert not verdict.is_met
    assert sentences(verdict, MEASURES) == ["Not judged: lost < 10. Unreliable: the machine was busy."]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "'' is no limit, such as outage < 50ms"),
        ("lost", "'lost' is no limit"),
        ("lost > 5", "'lost > 5' is no limit"),
        ("lost < 5,", "'' is no limit"),
        ("lost < 1 < 2", "'lost < 1 < 2' is no limit"),
        ("lots < 5", "unknown measure 'lots'; did you mean 'lost'?"),
        ("time < 5", "time: 5 has no unit; write a time such as 5ms"),
        ("time < 5kg", "time: '5kg' is not a time"),
        ("lost < 5ms", "lost: '5ms' is no number"),
        ("share < 5ms", "share: '5ms' is no number of percent"),
        ("lost < nan", "nan is no limit"),
        ("lost < inf", "inf is no limit"),
        (": lost < 5", "there is no mechanism before the colon"),
    ],
)
def test_what_is_no_requirement(text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read(text, MEASURES)
    assert str(caught.value).startswith(f"--require {text!r}: {said}")


def test_a_mechanism_that_is_not_compared() -> None:
    check([read("good: lost < 5", MEASURES)], ["plain", "good"])
    with pytest.raises(ScenarioError, match=r"'godo' is not compared; did you mean 'good'\?"):
        check([read("godo: lost < 5", MEASURES)], ["plain", "good"])


def test_markdown_and_junit_of_odd_names() -> None:
    """Names may have any signs: no table and no document is broken by them."""
    odd = "s|1_<b>*-s`2[x](y)"
    comparison = compared({("a&b", odd): (3, 1.0, 1.0)})
    world = World(
        command="odd", known=dict, measured=lambda point, seed: {}, compared=lambda *args: comparison, measures=MEASURES
    )
    judged = world.judged(comparison, [read("lost < 3", MEASURES), read("a&b: lost < 4", MEASURES)])
    text = markdown(world, comparison, judged)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    columns = len(world.columns(comparison)) + 2
    assert [line.replace("\\|", "").count("|") for line in rows] == [columns + 1] * 3
    assert "- **Not met: lost \\< 3.**" in text and "- **Met: a&b: lost \\< 4, by a&b.**" in text
    assert "<b>" not in text.replace("\\<", "") and not any("s|1" in row for row in rows)
    root = ElementTree.fromstring(junit(world, comparison, judged))
    assert {name: root.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "2",
        "failures": "1",
        "errors": "0",
    }
    (failure,) = root.iter("failure")
    assert failure.text is not None and odd in failure.text
    comparison.unranked = "Unreliable"
    judged = world.judged(comparison, [each.requirement for each in judged])
    (error, _) = ElementTree.fromstring(junit(world, comparison, judged)).iter("error")
    assert error.get("message") == "Not judged: lost < 3. Unreliable."


def test_a_command_ends_with_the_verdict(tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["ring:3", "--mechanisms", "ip-frr", "--fail", "s1-s2", "--after-s", "0.1", "--out", str(out)]
    files = ["--markdown", str(tmp_path / "m.md"), "--junit", str(tmp_path / "j.xml")]
    kept = "outage < 60ms, lost < 100, latency < 5ms, bytes < 1.5, state < 100, reordered < 1000, duplicated < 1"
    done = holdfast("compare", *options, "--require", kept, "--require", "transfer < 1h", *files)
    assert done.returncode == 0, done.stderr
    assert f"Met: {kept}, by ip-frr." in done.stdout and "Met: transfer < 1h, by ip-frr." in done.stdout
    assert "| 1 | ip-frr |" in (tmp_path / "m.md").read_text()
    assert ElementTree.parse(tmp_path / "j.xml").getroot().get("failures") == "0"
    (first, second) = json.loads((out / "summary.json").read_text())["requirements"]
    assert first["met"] and first["met_by"] == ["ip-frr"] and len(first["mechanisms"]["static"]) == 7
    assert [each["worst"] for each in second["mechanisms"]["static"]] == [None], "JSON has no infinity"
    done = holdfast("compare", *options, "--require", "ip-frr: outage < 10ms", "--require", "tcp < 100%")
    assert done.returncode == 1
    assert "Not met: ip-frr: outage < 10ms.\n  ip-frr: outage 5" in done.stdout
    page = unescape((out / "report.html").read_text())
    assert 'class="required missed">Not met: ip-frr: outage < 10ms.<br>' in page
    done = holdfast("compare", *options, "--require", "outage < 10ms", "--junit", str(tmp_path / "none" / "j.xml"))
    assert done.returncode == 1 and "there is no directory for" in done.stderr


def test_the_page_lists_the_measures() -> None:
    page = (ROOT / "python/holdfast/compare/README.md").read_text()
    for world in (NETWORKS, GATEWAYS):
        for name, measure in world.measures.items():
            unit = f" ({measure.unit})" if measure.unit else ""
            assert f"| `{name}` | {measure.what}{unit} |\n" in page
