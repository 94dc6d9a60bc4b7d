"""The acceptance algorithms against the model of the standard: random histories, and properties of what they promise."""

from __future__ import annotations

import pytest

from holdfast.apps.protect.acceptance import Acceptance
from holdfast.apps.protect.differential import CONFIGURATIONS, Configuration, Executor, compare
from holdfast.errors import NetworkError

EVENTS = 4000


@pytest.mark.parametrize("executor", ["jit", "interpreter"])
@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
def test_random_arrivals(configuration: Configuration, executor: Executor) -> None:
    """The small form of ``python -m holdfast.apps.protect.differential``."""
    counts = compare(configuration, EVENTS, seed=1, executor=executor)
    assert counts["passed0"] > 0 and counts["discarded0"] > 0


@pytest.mark.parametrize(
    "wrong", [{"algorithm": "vektor"}, {"history": 1}, {"history": 129}, {"reset_ms": -1}, {"reset_ms": 5e6}]
)
def test_wrong_parameters(wrong: dict[str, object]) -> None:
    with pytest.raises(NetworkError):
        Acceptance(**wrong)  # type: ignore[arg-type]
