"""The clock of a session: how simulated or real time passes while verbs run.

A simulation passes at the pace of the wall clock, in a thread that owns it (:class:`Paced`), or as fast as possible in the thread
that waits (:class:`Virtual`), so that a script's result is a function of its seed. A live network passes by itself (:class:`Live`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal, Protocol

from holdfast.network import LiveNetwork, Network, SimulatedNetwork
from holdfast.parameters import PS_PER_S

STEP_S = 0.01
"""Between two looks of whoever waits, and the most that a simulation runs at a time."""


THREAD_NAME = "holdfast-pace"
"""Of the thread in which a simulation passes at the pace of the wall clock."""


class Clock(Protocol):
    """How time passes in a network."""

    kind: Literal["simulated", "live"]

    def wait(self, duration_s: float, until: Callable[[], bool] | None = None) -> None:
        """Let ``duration_s`` seconds of the network pass, fewer if ``until`` returns True. Raises what a controller raised."""

    def check(self) -> None:
        """Raise what a controller raised since the last call."""

    def held(self) -> AbstractContextManager[None]:
        """Return a context in which a simulation stands still."""

    def stop(self) -> None:
        """Let no more time pass."""


class Virtual:
    """Under the virtual clock, in the thread that waits."""

    kind: Literal["simulated", "live"] = "simulated"

    def __init__(self, network: SimulatedNetwork) -> None:
        self._network = network

    def wait(self, duration_s: float, until: Callable[[], bool] | None = None) -> None:
        """Run the simulation for ``duration_s`` seconds, or until ``until`` returns True, which is asked every 10 ms."""
        end_ps = self._network.now_ps + round(duration_s * PS_PER_S)
        while (now_ps := self._network.now_ps) < end_ps and not (until is not None and until()):
            step_ps = end_ps if until is None else min(end_ps, now_ps + round(STEP_S * PS_PER_S))
            self._network.run(step_ps / PS_PER_S)
            if self._network.now_ps <= now_ps:
                return

    def check(self) -> None:
        """Do nothing: what a controller raises comes out of :meth:`wait`."""

    @contextmanager
    def held(self) -> Iterator[None]:
        """Do nothing: nobody else has the simulation."""
        yield

    def stop(self) -> None:
        """Do nothing: no time passes by itself."""


class Paced:
    """Under the virtual clock, at the pace of the wall clock, in a thread of its own."""

    kind: Literal["simulated", "live"] = "simulated"

    def __init__(self, network: SimulatedNetwork) -> None:
        self._network = network
        self._lock = threading.RLock()
        self._stopping = threading.Event()
        self._failures: list[Exception] = []
        self.behind_s = 0.0
        """The time by which the simulation is slower than the wall clock, most of all so far."""
        self._thread = threading.Thread(target=self._run, name=THREAD_NAME, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        begin_s = time.monotonic() - self._network.now_ps / PS_PER_S
        while not self._stopping.wait(STEP_S):
            wanted_s = time.monotonic() - begin_s
            with self._lock:
                now_s = self._network.now_ps / PS_PER_S
                if (behind_s := wanted_s - now_s) > 10 * STEP_S:
                    # What it cannot do in time it does not catch up with: verbs would have to wait for it.
                    self.behind_s += behind_s - STEP_S
                    begin_s += behind_s - STEP_S
                    wanted_s = now_s + STEP_S
                try:
                    self._network.run(max(wanted_s, now_s))
                except Exception as error:  # noqa: BLE001 - a controller's; the network goes on without what it was about to do
                    self._failures.append(error)

    def wait(self, duration_s: float, until: Callable[[], bool] | None = None) -> None:
        """Wait until ``duration_s`` seconds of the simulation have passed, or ``until`` returns True."""
        end_ps = self._network.now_ps + round(duration_s * PS_PER_S)
        while self._network.now_ps < end_ps:
            self.check()
            with self._lock:
                if until is not None and until():
                    return
            time.sleep(STEP_S)

    def check(self) -> None:
        """Raise what a controller raised."""
        if self._failures:
            raise self._failures.pop(0)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the simulation still."""
        with self._lock:
            yield

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        self._thread.join()


class Live:
    """Under the wall clock."""

    kind: Literal["simulated", "live"] = "live"

    def __init__(self, network: LiveNetwork) -> None:
        self._network = network

    def check(self) -> None:
        """Raise what a controller raised; controllers of a live network end with it, so this is only once."""
        failure, self._network.failure = self._network.failure, None
        if failure is not None:
            raise failure

    def wait(self, duration_s: float, until: Callable[[], bool] | None = None) -> None:
        """Wait ``duration_s`` seconds, or until ``until`` returns True."""
        end_s = time.monotonic() + duration_s
        while (left_s := end_s - time.monotonic()) > 0 and not (until is not None and until()):
            self.check()
            time.sleep(min(left_s, STEP_S))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Do nothing: the native thread puts changes between packets."""
        yield

    def stop(self) -> None:
        """Do nothing: whoever entered the network's context leaves it."""


def clock_of(network: Network, *, paced: bool) -> Clock:
    """Return the clock of a network; ``paced``: a simulation passes at the pace of the wall clock."""
    if isinstance(network, LiveNetwork):
        return Live(network)
    assert isinstance(network, SimulatedNetwork)
    return Paced(network) if paced else Virtual(network)


__all__ = ["THREAD_NAME", "Clock", "Live", "Paced", "Virtual", "clock_of"]
