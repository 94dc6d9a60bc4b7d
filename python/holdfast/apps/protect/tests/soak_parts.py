"""The soak in parts, each a network of its own in a process of its own, and when they end.

That is at the end, at a time, or when interrupted. It does not know what a soak does.
"""

from __future__ import annotations

import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext
from multiprocessing.synchronize import Event
from typing import Any

from holdfast import interpreter
from holdfast.apps.protect.tests.soak import Outcome, Run, Soak
from holdfast.errors import HoldfastError

PROGRESS_S = 10.0


def parts(soak: Soak, jobs: int) -> list[Soak]:
    """Return the soak in ``jobs`` parts, among which connections, failures and latent errors are divided.

    The division is always the same, and each part has its own random numbers.
    """
    if jobs == 1:
        return [soak]
    counts = ("connections", "failures", "latent_errors")
    return [
        replace(
            soak,
            seed=random.Random(f"part {part} of {jobs}, {soak.seed}").randrange(1 << 32),
            **{name: (getattr(soak, name) + part) // jobs for name in counts},
        )
        for part in range(jobs)
    ]


def run_parts(soak: Soak, jobs: int, until: float) -> Outcome:
    """Run all parts, and return the sum of their outcomes.

    All parts end at ``until`` on the machine's monotonic clock at the latest, or when this process is interrupted.
    """
    context = interpreter.context()
    stop, progress = context.Event(), Progress(soak)
    if jobs == 1:
        with _interrupts(stop):
            return Run(soak).run(Limits(until, stop, progress.tell).go_on)
    parts_now_s = [0.0] * jobs

    def tell(part: int, now_s: float) -> None:
        parts_now_s[part] = now_s
        progress.tell(sum(parts_now_s) / jobs)

    total, *others = _run_processes(context, parts(soak, jobs), until, stop, tell)
    for other in others:
        total.add(other)
    total.soak = soak
    return total


def _run_processes(
    context: SpawnContext, shares: list[Soak], until: float, stop: Event, tell: Callable[[int, float], None]
) -> list[Outcome]:
    pipes: dict[Any, int] = {}
    # Interrupts are this process's business, also those of the whole group.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for part, share in enumerate(shares):
            ours, theirs = context.Pipe(duplex=False)
            context.Process(target=_run_part, args=(share, until, stop, theirs), daemon=True).start()
            theirs.close()
            pipes[ours] = part
    finally:
        signal.signal(signal.SIGINT, before)
    outcomes: dict[int, Outcome] = {}
    errors: list[HoldfastError] = []
    with _interrupts(stop):
        while pipes:
            for pipe in wait(list(pipes)):
                part = pipes[pipe]
                match _received(pipe):
                    case float(now_s):
                        tell(part, now_s)
                        continue
                    case Outcome() as outcome:
                        outcomes[part] = outcome
                    case error:
                        errors.append(
                            error or HoldfastError(f"part {part + 1} of {len(shares)} ended without a result")
                        )
                        stop.set()
                del pipes[pipe]
    if errors:
        raise errors[0]
    return [outcomes[part] for part in range(len(shares))]


def _received(pipe: Any) -> Any:
    """Return the next message of a part's process; None if the process has ended."""
    try:
        return pipe.recv()
    except EOFError:
        return None


def _run_part(soak: Soak, until: float, stop: Event, pipe: Connection) -> None:
    """Run one part in its own process; send its progress, and finally its outcome or error, over ``pipe``."""
    try:
        pipe.send(Run(soak).run(Limits(until, stop, pipe.send).go_on))
    except HoldfastError as error:
        pipe.send(HoldfastError(str(error)))


@contextmanager
def _interrupts(stop: Event) -> Iterator[None]:
    """Set ``stop`` when this process is interrupted inside the context, instead of raising KeyboardInterrupt."""
    before = signal.signal(signal.SIGINT, lambda *_: stop.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass
class Limits:
    """The conditions that end a part early, and the function that is told its progress."""

    until: float
    stop: Event
    tell: Callable[[float], None]

    def go_on(self, now_s: float) -> bool:
        """Report the virtual time ``now_s``, and return True if the run may continue."""
        self.tell(now_s)
        return not self.stop.is_set() and time.monotonic() < self.until


class Progress:
    """Says on standard error how far the run is."""

    def __init__(self, soak: Soak) -> None:
        self._soak = soak
        self._begin = self._last = time.monotonic()

    def tell(self, now_s: float) -> None:
        """Print the progress at the virtual time ``now_s``, but not more often than every ``PROGRESS_S`` seconds."""
        now = time.monotonic()
        if now - self._last < PROGRESS_S:
            return
        self._last = now
        packets = now_s * self._soak.packets_per_s * self._soak.connections
        speed = f"{packets:,.0f} packets, {packets / (now - self._begin):,.0f}/s"
        print(f"{now_s:.3f} of {self._soak.duration_s:g} s: {speed}", file=sys.stderr, flush=True)
