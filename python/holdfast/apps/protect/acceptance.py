"""Parameters by which a tunnel egress tells first copies from others, for ``acceptance.p4``. It knows no packets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from holdfast.errors import NetworkError

Algorithm: TypeAlias = Literal["window", "vector", "match"]
"""The paper's window, or 802.1CB's VectorRecoveryAlgorithm or MatchRecoveryAlgorithm."""

PATHS = 4
"""Paths that the program's counters tell apart: those of connection ``index`` and path ``p`` are in cell ``PATHS * index + p``."""

HISTORY_BITS = 64
"""The longest history; the program's default."""

_LONGEST_RESET_MS = ((1 << 32) - 1) / 1000


@dataclass(frozen=True)
class Acceptance:
    """The acceptance algorithm of a connection.

    ``history``: numbers that *vector* remembers, 2 to the program's HISTORY_BITS; a number as far as that from the newest one is
    rogue. ``reset_ms``: after so long without an accepted packet any number is accepted (a restarted ingress starts anew); 0 for
    never. It must be longer than the paths' difference in delay.

    *window* with ``reset_ms=0`` is the paper's algorithm to the letter.
    """

    algorithm: Algorithm = "window"
    history: int = HISTORY_BITS
    reset_ms: float = 1000

    def __post_init__(self) -> None:
        if self.algorithm not in get_args(Algorithm):
            raise NetworkError(
                f"there is no acceptance algorithm {self.algorithm!r}; there are window, vector and match"
            )
        if not 2 <= self.history <= 128:
            raise NetworkError(f"a history has 2 to 128 numbers, not {self.history}")
        if self.reset_ms != 0 and not 0.001 <= self.reset_ms <= _LONGEST_RESET_MS:
            raise NetworkError(f"reset_ms is {self.reset_ms}; 0 for never, or 0.001 to {_LONGEST_RESET_MS:.0f}")

    def action(self, index: int) -> tuple[str, dict[str, int]]:
        """Return (name, parameters) of the action by which the egress accepts copies; ``index``: of the connection's registers."""
        reset = {"reset_timeout_us": round(self.reset_ms * 1000)}
        if self.algorithm == "vector":
            return "select_vector", {"index": index, "history_length": self.history} | reset
        if self.algorithm == "match":
            return "select_match", {"index": index} | reset
        if self.reset_ms == 0:
            return "select_connection", {"index": index}
        return "select_window", {"index": index} | reset

    @staticmethod
    def of(action: str, params: Mapping[str, int | str]) -> Acceptance:
        """Return the acceptance algorithm that an entry with this action selects: the inverse of :meth:`action`.

        Raise :class:`NetworkError` or KeyError if the action selects no such algorithm.
        """
        name = action.rsplit(".", 1)[-1]
        if name == "select_connection":
            return Acceptance("window", reset_ms=0)
        reset_ms = int(params["reset_timeout_us"]) / 1000
        if name == "select_vector":
            return Acceptance("vector", int(params["history_length"]), reset_ms)
        if name in ("select_window", "select_match"):
            return Acceptance("window" if name == "select_window" else "match", reset_ms=reset_ms)
        raise NetworkError(f"{action} is no action of a connection")
