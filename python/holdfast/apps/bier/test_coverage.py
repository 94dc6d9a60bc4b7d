"""Coverage by hand on a few networks, and the command that prints it. (That it is true is in ``test_protection``.)"""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from holdfast.apps.bier.coverage import Coverage, coverage_report, failures, table
from holdfast.apps.bier.planning import Plan, Scheme, number_switches
from holdfast.cli import app
from holdfast.topologies import load


def test_a_line_has_no_way_around() -> None:
    """Cutting s1-s2 of s1-s2-s3 parts s1 from both others, in both directions."""
    topology = load("line:3")
    row, *_ = coverage_report(topology, Scheme(number_switches(topology)))
    assert (row.failure, row.pairs, row.on_the_way, row.lost, row.parted, row.examples) == ("s1-s2", 6, 4, 4, 4, ())


def test_what_is_not_protected_is_lost_without_being_parted() -> None:
    topology = load("ring:3")
    plan = Plan(topology, Scheme(number_switches(topology), frr="none"))
    cut = next(iter(failures(topology, "link")))
    assert Coverage(plan).lost(cut) == {("s1", "s2"), ("s2", "s1")}
    assert Coverage(plan).protected(cut) == frozenset()
    saved = Coverage(Plan(topology, Scheme(number_switches(topology))))
    assert saved.lost(cut) == frozenset()
    assert saved.protected(cut) == {("s1", "s2"), ("s2", "s1")}


def test_link_protection_does_not_survive_a_switch() -> None:
    """In a ring of four with hosts at s1 and s3, each of the others is on the way between them or not."""
    topology = load("ring:4")
    for protect, lost in (("link", 2), ("node", 0)):
        rows = coverage_report(topology, Scheme(number_switches(topology), protect=protect))  # type: ignore[arg-type]
        dead = [row for row in rows if row.kind == "node"]
        assert sum(row.lost for row in dead) == sum(row.on_the_way for row in dead) * (lost > 0)
        assert sum(row.on_the_way for row in dead) == 4


def test_sums_are_of_pairs_that_can_be_saved() -> None:
    topology = load("abilene")
    text = list(table(coverage_report(topology, Scheme(number_switches(topology), frr="lfa"))))
    assert text[-2] == "link failures: 4 of 14 lose nobody; of 266 pairs that can be saved, 158 are (59.40 %)"
    assert text[-1] == "node failures: 7 of 11 lose nobody; of 156 pairs that can be saved, 123 are (78.85 %)"
    assert text[0].split() == ["failure", "on", "the", "way", "lost", "of", "these", "parted", "for", "example"]


def test_the_command_prints_a_table() -> None:
    result = CliRunner().invoke(app, ["bier", "coverage", "abilene", "--frr", "tunnel", "--protect", "node"])
    assert result.exit_code == 0
    assert "link failures: 14 of 14 lose nobody; of 266 pairs that can be saved, 266 are (100.00 %)" in result.stdout
    assert "node failures: 11 of 11 lose nobody" in result.stdout


def test_the_command_prints_json() -> None:
    result = CliRunner().invoke(app, ["bier", "coverage", "ring:4", "--frr", "none", "--json"])
    assert result.exit_code == 0
    rows = json.loads(result.stdout)
    assert [row["kind"] for row in rows] == ["link"] * 4 + ["node"] * 4
    assert rows[0]["failure"] == "s1-s2"
    assert rows[0]["lost"] == rows[0]["on_the_way"] > 0 == rows[0]["parted"]


@pytest.mark.parametrize("words", [["--frr", "fast"], ["--protect", "srlg"]])
def test_the_command_refuses_what_is_not_there(words: list[str]) -> None:
    assert CliRunner().invoke(app, ["bier", "coverage", "ring:4", *words]).exit_code == 2
