"""The faults that ``tests/mutants.py`` draws, where cosmic-ray is installed."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray", reason="cosmic-ray is not installed; pip install cosmic-ray")
sys.path.insert(0, str(Path(__file__).parents[1]))

import mutants

SOURCE = """
def grows(value: int | None, most: int = 7) -> bool | None:
    known: int | None = value
    if known is None:
        return None
    return known + 1 < most
"""


def test_each_mutant_is_another_program_and_annotations_are_left_alone() -> None:
    found = list(mutants.sample(SOURCE, 1000, 1))
    assert found == list(mutants.sample(SOURCE, 1000, 1)) and len(found) >= 5
    before = ast.parse(SOURCE)
    for (line, _), operator, text in found:
        assert 1 < line < 7 and operator
        assert ast.dump(ast.parse(text)) != ast.dump(before)
        assert text.count("int | None") == 2 and text.count("bool | None") == 1


def test_a_seed_draws_the_same_places() -> None:
    drawn = [[place for place, *_ in mutants.sample(SOURCE, 3, seed)] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] and len(set(drawn[0])) == 3
    assert set(drawn[0]) <= set(mutants.places(SOURCE)) >= set(drawn[2])
