"""The gateways that are compared: their number, and the number of planes of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.errors import ScenarioError


@dataclass(frozen=True)
class Mechanism:
    """``gateways``: their number, each with a control plane of its own. ``planes``: forwarding planes behind the balancer of each.

    With no planes a gateway is one switch. ``colour``: on white, and on black.
    """

    name: str
    what: str
    colour: tuple[str, str]
    gateways: int = 1
    planes: int = 0

    @property
    def names(self) -> list[str]:
        """The names of the gateways."""
        return ["gateway"] if self.gateways == 1 else [f"gateway{number + 1}" for number in range(self.gateways)]


MECHANISMS: Final = (
    Mechanism(
        "single",
        "one gateway of one plane: discovery, PPP control and sessions in one switch",
        ("#0072B2", "#6db3f2"),
    ),
    Mechanism(
        "pair",
        "two such gateways, each with its own access link and control plane; subscribers that lose one dial again",
        ("#009E73", "#4fd6ae"),
        gateways=2,
    ),
    Mechanism(
        "split",
        "one gateway of two planes behind a balancer: one authenticates, one forwards",
        ("#D55E00", "#ff9a57"),
        planes=1,
    ),
    Mechanism(
        "split-2",
        "the same with two planes that forward; the sessions of one that fails are made on the other",
        ("#8a4fbf", "#c79bf2"),
        planes=2,
    ),
)

BASELINE: Final = "single"


def find(names: Sequence[str] | None) -> list[Mechanism]:
    """Return the mechanisms with these names and the baseline, in the order of the registry; all if ``names`` is None.

    Raise :class:`ScenarioError` for an unknown name.
    """
    known = {each.name: each for each in MECHANISMS}
    if unknown := [name for name in names or () if name not in known]:
        raise ScenarioError(f"there is no mechanism {unknown[0]!r} in scenario bng (known: {', '.join(known)})")
    return [each for each in MECHANISMS if names is None or each.name in (*names, BASELINE)]
