"""The workers of a sweep: this process, processes of this machine, or a Ray cluster, but never threads.

Each way is a generator of outcomes in the order in which runs finish; closing it ends what still works. Journals and results are
not known here.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import sys
import traceback
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from holdfast import interpreter
from holdfast.errors import HoldfastError, SweepError, located
from holdfast.fingerprint import fingerprint
from holdfast.sweep import Run, Sweep, run_one

CONNECT_S = 10.0
"""The time in seconds that the head node of a Ray cluster may take to answer."""

STOP_S = 2.0
"""The time in seconds that a process may take to end after it was told to."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of the run with that index: with a row, as JSON, or with an error."""

    index: int
    row: str | None
    error: str | None = None


def execute(sweep: Sweep, index: int, run: Run) -> Outcome:
    """Execute one run and return its outcome: a row, the message of a :class:`HoldfastError`, or another exception's traceback.

    Only interruptions are raised.
    """
    try:
        return Outcome(index, json.dumps(run_one(sweep.function, run.point, run.seed)))
    except HoldfastError as error:
        return Outcome(index, None, located(error))
    except Exception:  # noqa: BLE001 - reported with the point and the seed
        return Outcome(index, None, traceback.format_exc())


def in_this_process(sweep: Sweep, todo: Sequence[Run]) -> Generator[Outcome]:
    """Execute the runs one after the other in this process, and yield their outcomes."""
    for index, run in enumerate(todo):
        yield execute(sweep, index, run)


class _Worker:
    """A process and the run that it has."""

    def __init__(self, sweep: Sweep) -> None:
        # Its helper is started here: else it starts with the process, which unblocks the signal again.
        context = interpreter.context()
        self.connection, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=_serve, args=(sweep, theirs, sys.path), daemon=True)
        # Until it has got to _serve, Ctrl-C would end it with a traceback; a signal blocked here is blocked there.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self.index: int | None = None
        self.group: tuple[Any, ...] | None = None

    def give(self, index: int, run: Run) -> None:
        """Send a run to the worker process."""
        self.index = index
        self.connection.send((index, run))

    def take(self) -> Outcome:
        """Wait for the outcome of the worker's run and return it; if the process died, the outcome says so."""
        assert self.index is not None
        try:
            outcome: Outcome = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            outcome = Outcome(self.index, None, f"its process ended with exit code {self.process.exitcode}")
        self.index = None
        return outcome

    def stop(self) -> None:
        """End the worker process, also during a run: terminate it, and kill it if it has not ended after ``STOP_S`` seconds."""
        self.connection.close()
        if self.index is not None:
            self.process.terminate()
        self.process.join(STOP_S)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _serve(sweep: Sweep, connection: Connection, path: list[str]) -> None:
    """Execute runs in a worker process and send their outcomes until the parent closes the connection. Ctrl-C is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    sys.path[:] = path
    try:
        while True:
            index, run = connection.recv()
            connection.send(execute(sweep, index, run))
    except (EOFError, OSError):
        return


class _Waiting:
    """Runs that nobody has yet, in groups that one process is to have if it can."""

    def __init__(self, todo: Sequence[Run], together: Sequence[str]) -> None:
        self._groups: dict[tuple[Any, ...], deque[tuple[int, Run]]] = {}
        self._begun: set[tuple[Any, ...]] = set()
        for index, run in enumerate(todo):
            self._groups.setdefault(tuple(run.point.get(name) for name in together), deque()).append((index, run))

    def __bool__(self) -> bool:
        return bool(self._groups)

    def next_for(self, worker: _Worker) -> tuple[int, Run]:
        """Return the next run for ``worker``, with its index: of its group, else of a new or the largest one."""
        group = worker.group
        if group is None or group not in self._groups:
            untouched = (each for each in self._groups if each not in self._begun)
            group = next(untouched, None) or max(self._groups, key=lambda each: len(self._groups[each]))
        self._begun.add(group)
        worker.group = group
        found = self._groups[group].popleft()
        if not self._groups[group]:
            del self._groups[group]
        return found


def in_processes(sweep: Sweep, todo: Sequence[Run], jobs: int, together: Sequence[str] = ()) -> Generator[Outcome]:
    """Execute the runs in ``jobs`` new processes, which import the function by name, and yield the outcomes as they come."""
    waiting = _Waiting(todo, together)
    workers: list[_Worker] = []
    try:
        for _ in range(min(jobs, len(todo))):
            workers.append(_Worker(sweep))
            workers[-1].give(*waiting.next_for(workers[-1]))
        while workers:
            ready = wait([worker.connection for worker in workers])
            for worker in [each for each in workers if each.connection in ready]:
                outcome = worker.take()
                if not worker.process.is_alive():
                    worker.stop()
                    workers.remove(worker)
                    if waiting:
                        workers.append(worker := _Worker(sweep))
                if waiting:
                    worker.give(*waiting.next_for(worker))
                elif worker in workers:
                    worker.stop()
                    workers.remove(worker)
                yield outcome
    finally:
        for worker in workers:
            worker.stop()


def _execute_on_ray(sweep: Sweep, index: int, run: Run) -> Outcome:
    """Execute one run on a node of a cluster; return an error if the node has other code than the sweep."""
    try:
        theirs = fingerprint(sweep.function.partition(":")[0])
    except (ImportError, OSError) as error:
        return Outcome(index, None, f"a node of the cluster does not have the code: {error}")
    if theirs != sweep.fingerprint:
        return Outcome(
            index, None, f"a node of the cluster has other code ({theirs}, here {sweep.fingerprint}); install the same"
        )
    return execute(sweep, index, run)


def on_ray(sweep: Sweep, todo: Sequence[Run], jobs: int, address: str) -> Generator[Outcome]:
    """Execute the runs on a Ray cluster and yield the outcomes.

    At most twice as many runs as processors are submitted at a time.
    """
    ray = _connect(address, jobs)
    try:
        remote = ray.remote(num_cpus=1)(_execute_on_ray)
        limit = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting = list(enumerate(todo))[::-1]
        pending: dict[Any, int] = {}
        while waiting or pending:
            while waiting and len(pending) < limit:
                index, run = waiting.pop()
                pending[remote.remote(sweep, index, run)] = index
            for finished in ray.wait(list(pending))[0]:
                index = pending.pop(finished)
                try:
                    yield ray.get(finished)
                except ray.exceptions.RayError as error:
                    yield Outcome(index, None, f"Ray: {error}")
    finally:
        ray.shutdown()


def _connect(address: str, jobs: int) -> Any:
    # Ray warns about accelerators and about its own defaults at every start.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        ray = importlib.import_module("ray")
    except ImportError as error:
        raise SweepError(f"Ray is not installed here ({error}); pip install 'holdfast[ray]'") from None
    _check_reachable(address)
    options: dict[str, Any] = {
        "address": address,
        "log_to_driver": False,
        "logging_level": "ERROR",
        "ignore_reinit_error": False,
    }
    if address == "local":
        # "local" as an address means a cluster of this machine's own even where one is running.
        environment = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        options |= {"num_cpus": jobs, "include_dashboard": False, "runtime_env": {"env_vars": environment}}
    try:
        ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise SweepError(f"cannot use the Ray cluster at {address!r}: {error}") from None
    return ray


def _check_reachable(address: str) -> None:
    """Raise :class:`SweepError` if no server answers at a cluster's address, since Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:
        return
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise SweepError(f"there is no Ray cluster at {address!r}: {error}") from None
