"""The measure of replacements under traffic: it passes where nothing is mixed, and finds what is."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.apps.firewall import entries
from holdfast.apps.firewall.entries import Numbering
from holdfast.apps.firewall.rules import RuleSet
from holdfast.apps.firewall.tests import swap
from holdfast.control.tables import TableEntry

RULES = swap.DESTINATIONS


def test_no_packet_is_judged_by_a_mixture_at_a_million_per_second(tmp_path: Path) -> None:
    found = swap.simulated(tmp_path, rules=RULES)
    assert found.wrong == []
    assert found.per_s == pytest.approx(1e6, rel=1e-3)
    assert found.before > 500 and found.after > 500
    assert found.injected == found.before + found.after + found.drops["denied"]


def test_a_mixture_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new rules are written over those that are active, as a switch without generations would have them."""
    plain = entries.rule_entries

    def over_the_active(rules: RuleSet, numbers: Numbering, generation: int) -> list[TableEntry]:
        found = plain(rules, numbers, generation)
        return found + [entry._replace(match={**entry.match, "generation": 1 - generation}) for entry in found]

    monkeypatch.setattr(entries, "rule_entries", over_the_active)
    assert swap.simulated(tmp_path, rules=RULES).wrong != []


def test_numbers_out_of_turn_are_found() -> None:
    evens = [0, 2, 4, 998, 0, 2]
    assert swap.judged(evens)[2] == ["packet 3 that passed is to 998, after one to 4"]
    assert swap.judged([996, 998, 0, 1, 3]) == (3, 2, [])
    assert swap.judged([996, 998, 0, 3, 5]) == (3, 2, [])
    assert swap.judged([0, 2, 7])[2] != []
    assert swap.judged([0, 1, 2])[2] != []
