"""The gateways that are compared: their number, and the number of planes of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from holdfast.compare.competitor import Competitor


@dataclass(frozen=True)
class Mechanism(Competitor):
    """Gateways. ``gateways``: their number, each with a control plane of its own.

    ``planes``: forwarding planes behind the balancer of each; with none a gateway is one switch.
    """

    gateways: int = 1
    planes: int = 0

    @property
    def names(self) -> list[str]:
        """The names of the gateways."""
        return ["gateway"] if self.gateways == 1 else [f"gateway{number + 1}" for number in range(self.gateways)]


_ALL: Final = (
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

MECHANISMS: Final = {each.name: each for each in _ALL}
"""By name, the baseline first."""
