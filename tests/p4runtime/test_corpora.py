"""Every program that compiles, loads: our own, and collections that ``HOLDFAST_P4_CORPORA`` names (separated by colons)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from corpora import examine, include_directories, instantiates_main, programs_of, sweep
from device_bench import HERE

P4 = HERE.parent / "p4"
OURS = [(root, path) for root in (P4 / "accept", P4 / "run", HERE) for path, _ in programs_of(root)]


@pytest.mark.parametrize(("root", "path"), OURS, ids=lambda path: path.stem)
def test_a_device_takes_each_program(root: Path, path: Path) -> None:
    outcome = examine(path, root, include_directories(root))
    assert (outcome.reason, outcome.taken) == ("", True)


def test_the_programs_are_found() -> None:
    assert len(OURS) > 100
    assert instantiates_main("V1Switch(P(), V()) /* the end */ main;")
    assert not instantiates_main("// V1Switch(P(), V()) main;\nparser P();")


@pytest.mark.parametrize("root", [Path(p) for p in os.environ.get("HOLDFAST_P4_CORPORA", "").split(":") if p], ids=str)
def test_a_device_takes_each_program_of_a_collection(root: Path) -> None:
    outcomes = list(sweep(root))
    assert outcomes
    assert [(o.path, o.reason) for o in outcomes if o.compiles and o.reason] == []
