"""The owner of a switch: the pipeline that it runs, the one that is prepared beside it, and the order of changes.

It knows no protocol, no client and no message: whose change is allowed is the caller's business. It reads no clock and starts no
thread; its lock makes calls from several threads follow one another, and a long batch of updates lets others in between its slices.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar

from holdfast import _core
from holdfast._core import Program, Switch

_TURN_S = 0.0001
"""The pause in seconds after each slice of a batch, in which other threads may use the switch."""

C = TypeVar("C")
R = TypeVar("R")


@dataclass(frozen=True)
class Pipeline(Generic[C]):
    """A program, the switch that runs it, and the meaning of its entities. ``config``: how its protocol describes it."""

    config: C
    program: Program
    core: _core.Pipeline
    switch: Switch


class SwitchOwner(Generic[C]):
    """A switch, without a pipeline until one is set. ``executor``: the switch's, for the scratch switches of prepared pipelines.

    :attr:`lock` is held by whoever looks at :attr:`running` and :attr:`saved` or changes them; it may be taken again.
    """

    def __init__(self, switch: Switch, *, executor: Literal["jit", "interpreter"] = "jit") -> None:
        self.switch = switch
        self.lock = threading.RLock()
        self.running: Pipeline[C] | None = None
        self.saved: Pipeline[C] | None = None
        """A pipeline that is prepared: reads and writes refer to it until it takes effect."""
        self._executor = executor

    @property
    def target(self) -> Pipeline[C] | None:
        """The pipeline that reads and writes refer to: the saved one if there is one, else the running one.

        None if there is neither.
        """
        return self.saved or self.running

    def scratch(self, program: Program) -> Switch:
        """Return a new switch, outside of any network, that runs ``program``. Raises HoldfastError if it cannot run the program."""
        return Switch(program, executor=self._executor)

    def load(self, config: C, program: Program, core: _core.Pipeline) -> None:
        """Set the program and its pipeline, as if the switch had been delivered with them. Clears the switch's state."""
        with self.lock:
            self.switch.set_program(program)
            self.saved = None
            self.running = Pipeline(config, program, core, self.switch)

    def realize(self, prepared: Pipeline[C], reconciliation: _core.Reconciliation | None = None) -> None:
        """Replace the switch by a prepared one, between two packets; keep the state that ``reconciliation`` lists."""
        with self.lock:
            self.switch.replace_with(prepared.switch, reconciliation)
            self.saved = None
            self.running = replace(prepared, switch=self.switch)

    def reconcile(self, prepared: Pipeline[C], is_same: Callable[[C, C], bool]) -> None:
        """Put a prepared pipeline into effect and keep the switch's state.

        If ``is_same`` says so of the running configuration and the new one, the switch is not replaced.
        """
        with self.lock:
            old = self.running
            if old is None:
                self.realize(prepared)
            elif is_same(old.config, prepared.config):
                self.saved = None
                self.running = replace(old, config=prepared.config)
            else:
                kept = prepared.core.reconcile(prepared.switch, old.core, old.switch)
                self.realize(prepared, kept)

    def apply(
        self,
        pipeline: Pipeline[C],
        batch: _core.Batch,
        may_go_on: Callable[[], R | None],
        *,
        updates_per_slice: int | None,
    ) -> R | None:
        """Apply a batch of updates in slices, between which others may change the switch; atomically without a slice's size.

        ``may_go_on`` is called before each slice, with the lock held, and returns why the rest is not to be applied, which is
        returned.
        """
        while batch.applied < len(batch):
            with self.lock:
                if (reason := may_go_on()) is not None:
                    return reason
                if updates_per_slice is None:
                    batch.apply_atomic(pipeline.switch)
                else:
                    batch.apply(pipeline.switch, updates_per_slice)
            if batch.applied < len(batch):
                # The lock would nearly always come back to this thread at once.
                time.sleep(_TURN_S)
        return None


__all__ = ["Pipeline", "SwitchOwner"]
