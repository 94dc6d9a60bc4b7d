"""Every link and every switch of small networks fails under a stream: coverage does not promise too much."""

from __future__ import annotations

import pytest
from bier_losses import run


@pytest.mark.parametrize(
    ("spec", "frr", "protect", "unprotected"),
    [("abilene", "tunnel", "node", 10), ("fat-tree:4", "tunnel", "node", 14), ("abilene", "lfa", "link", 24)],
)
def test_no_protected_receiver_loses_more_than_the_bound(spec: str, frr: str, protect: str, unprotected: int) -> None:
    losses = run(spec, frr, protect)  # type: ignore[arg-type]
    assert losses.excess == []
    assert losses.duplicated == 0
    assert losses.unprotected == unprotected
    assert losses.hits > unprotected
