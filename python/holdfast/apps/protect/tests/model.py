"""The reference of ``acceptance.p4``: sequence recovery by IEEE 802.1CB, 7.4.3, step by step and bit by bit.

Written from the standard (variables in its spelling, turned into Python's) and from the paper's equations for the window; it shares
nothing with the P4 program. Slow and plain on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from holdfast.apps.protect.acceptance import PATHS, Acceptance

Counts: TypeAlias = dict[str, int]


@dataclass
class SequenceRecovery:
    """One instance of the sequence recovery function: its variables (7.4.3.2), its counters (9.9 as far as they apply).

    Counters of copies are kept by path. Time advances by whole microseconds, the ticks of its timer.
    """

    acceptance: Acceptance
    sn_bits: int
    recov_seq_num: int = 0
    sequence_history: list[int] = field(default_factory=list)
    take_any: bool = True
    remaining_ticks: int = 0
    lost: int = 0
    resets: int = 0
    passed: list[int] = field(default_factory=lambda: [0] * PATHS)
    discarded: list[int] = field(default_factory=lambda: [0] * PATHS)
    rogue: list[int] = field(default_factory=lambda: [0] * PATHS)
    out_of_order: list[int] = field(default_factory=lambda: [0] * PATHS)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Reset the state, as when the egress starts or a controller resets the connection; counters keep their values."""
        self.sequence_recovery_reset()
        if self.is_paper_window:
            self.recov_seq_num, self.take_any = 0, False

    @property
    def recov_seq_space(self) -> int:
        """The number of sequence numbers."""
        return 1 << self.sn_bits

    @property
    def is_paper_window(self) -> bool:
        """True for P4-Protect's window, which has no reset: its registers start with zero, which counts as the last number."""
        return self.acceptance.algorithm == "window" and self.acceptance.reset_ms == 0

    def sequence_recovery_reset(self) -> None:
        """Reset sequence recovery (7.4.3.3); the reset is counted when the next copy is accepted."""
        self.recov_seq_num = self.recov_seq_space - 1
        self.sequence_history = [0] * self.acceptance.history
        self.take_any = True
        self.remaining_ticks = 0

    def restart_timer(self) -> None:
        """Restart the reset timer, which happens after each accepted copy."""
        self.remaining_ticks = round(self.acceptance.reset_ms * 1000)

    def elapse(self, ticks: int) -> None:
        """Count the reset timer down by ``ticks``; when it reaches zero, reset, and stop the timer (7.4.3.2.5)."""
        if self.remaining_ticks > 0:
            self.remaining_ticks = max(0, self.remaining_ticks - ticks)
            if self.remaining_ticks == 0:
                self.sequence_recovery_reset()

    def receive(self, sequence_number: int, path: int) -> bool:
        """Receive a copy with this sequence number by ``path``; return True if it is passed on."""
        if self.take_any:
            accepted = self._take(sequence_number)
        elif self.acceptance.algorithm == "vector":
            accepted = self._vector(sequence_number, path)
        elif self.acceptance.algorithm == "match":
            accepted = self._match(sequence_number, path)
        else:
            accepted = self._window(sequence_number, path)
        if accepted:
            self.passed[path] += 1
            self.restart_timer()
        else:
            self.discarded[path] += 1
        return accepted

    def _take(self, sequence_number: int) -> bool:
        self.take_any = False
        self.sequence_history[0] = 1
        self.recov_seq_num = sequence_number
        self.resets += 1
        return True

    def _delta(self, sequence_number: int) -> int:
        """Return the signed difference from the last accepted number to this one, as two's complement in the number space."""
        delta = (sequence_number - self.recov_seq_num) % self.recov_seq_space
        return delta - self.recov_seq_space if delta >= self.recov_seq_space // 2 else delta

    def _vector(self, sequence_number: int, path: int) -> bool:
        """Apply VectorRecoveryAlgorithm (7.4.3.4) to a sequence number; return True if it accepts the packet."""
        delta = self._delta(sequence_number)
        length = self.acceptance.history
        if delta >= length or delta <= -length:
            self.rogue[path] += 1
            return False
        if delta <= 0:
            if self.sequence_history[-delta] == 1:
                return False
            self.sequence_history[-delta] = 1
            self.out_of_order[path] += 1
            return True
        if delta != 1:
            self.out_of_order[path] += 1
        for _ in range(delta - 1):
            self._shift_sequence_history(0)
        self._shift_sequence_history(1)
        self.recov_seq_num = sequence_number
        return True

    def _shift_sequence_history(self, new_value: int) -> None:
        """Shift a bit into the history (7.4.3.4, ShiftSequenceHistory); if a zero falls out, count a loss."""
        if self.sequence_history.pop() == 0:
            self.lost += 1
        self.sequence_history.insert(0, new_value)

    def _match(self, sequence_number: int, path: int) -> bool:
        """Apply MatchRecoveryAlgorithm (7.4.3.5) to a sequence number; return True if it accepts the packet."""
        delta = self._delta(sequence_number)
        if delta == 0:
            return False
        if delta != 1:
            self.out_of_order[path] += 1
        self.recov_seq_num = sequence_number
        return True

    def _window(self, sequence_number: int, path: int) -> bool:
        """Apply P4-Protect's window (equations 1 to 3) to a sequence number; return True if it accepts the packet.

        SN_max is the largest number and W = N / 2, with N numbers in the number space.
        """
        last, sn_max, window = self.recov_seq_num, self.recov_seq_space - 1, self.recov_seq_space // 2
        if last + window < sn_max:
            accepted = last < sequence_number <= last + window
        else:
            accepted = last < sequence_number or sequence_number < last + window - sn_max
        if accepted:
            skipped = (sequence_number - last - 1) % self.recov_seq_space
            self.lost += skipped
            if skipped:
                self.out_of_order[path] += 1
            self.recov_seq_num = sequence_number
        return accepted

    def counts(self) -> Counts:
        """Return all counters by the program's names; those of copies have the path's number behind the name."""
        counts = {"lost": self.lost, "resets": self.resets}
        for name in ("passed", "discarded", "rogue", "out_of_order"):
            counts |= {f"{name}{path}": n for path, n in enumerate(getattr(self, name))}
        return counts
