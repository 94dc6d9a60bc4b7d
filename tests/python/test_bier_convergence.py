"""The controller's own work after a failure is a matter of what the failure changes, and of little time."""

from __future__ import annotations

import pytest
from bier_convergence import MODES, failures

from holdfast._core import Program
from holdfast.apps.bier import compile_bier
from holdfast.apps.bier.protection import FastReroute, Protect


@pytest.fixture(scope="module")
def program() -> Program:
    return compile_bier()


@pytest.mark.parametrize(("frr", "protect"), MODES)
def test_a_failure_writes_what_it_changes_and_repairs_first(
    program: Program, frr: FastReroute, protect: Protect
) -> None:
    found = list(failures("waxman:20", program, frr, protect, 5))
    assert len(found) == 5
    for each in found:
        # All that there is would be some 2,000 entries.
        assert 0 < each.updates < 300
        assert each.repaired_ms <= each.protected_ms
    assert min(each.repaired_ms for each in found) < 50
