"""Runs a controller in a process of its own, with P4Runtime over gRPC and a clock.

The switches run elsewhere, and go on when this process is gone. P4Runtime does not tell of ports, so controllers here get no
``on_port_change`` and take every port for up; their knowledge of failures comes from counters, packets (also those of
:mod:`holdfast.discovery`) and digests.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from holdfast._core import Program
from holdfast.controller import Controller
from holdfast.errors import NetworkError
from holdfast.p4runtime.client import GrpcClient
from holdfast.parameters import PS_PER_MS, PS_PER_S, ps_of_ms
from holdfast.scheduler import Scheduler
from holdfast.topology import Topology

_POLL_PS = 5 * PS_PER_MS
_LONGEST_ROUND_NS = 100_000_000
"""The most, in ns, by which one round of handlers advances the controllers' clock. In a longer one they were held up,
and neither asked nor heard anybody."""


class RemoteControl:
    """The control plane of controllers whose switches are behind addresses; a context manager.

    ``addresses``: one server for all switches, or one by switch; the device ids are the switches' indices. A switch without a
    pipeline is given ``program``; one that has a pipeline keeps it, and all its state. ``election_id``: the highest is the primary;
    by default the time in nanoseconds, so that whoever started last takes over from who may hang.
    """

    def __init__(
        self,
        topology: Topology,
        addresses: str | Mapping[str, str],
        controllers: Sequence[Controller],
        *,
        program: Program | None = None,
        election_id: int | None = None,
    ) -> None:
        self.topology = topology
        self.controllers = list(controllers)
        if isinstance(addresses, str):
            addresses = dict.fromkeys(topology.switches, addresses)
        if missing := topology.switches.keys() - addresses.keys():
            raise NetworkError(f"switches without an address: {', '.join(sorted(missing))}")
        self._addresses = addresses
        self._program = program
        self._election_id = time.time_ns() if election_id is None else election_id
        self._clients: dict[str, GrpcClient] = {}
        self._scheduler = Scheduler()
        self._ran_ns = 0
        """How long the controllers had run when this round of handlers began."""
        self._round_ns = time.monotonic_ns()
        self._stack = ExitStack()
        self._stopping = threading.Event()

    @property
    def clients(self) -> Mapping[str, GrpcClient]:
        """A P4Runtime client for each switch, by the switch's name."""
        return self._clients

    @property
    def now_ps(self) -> int:
        """The time for which the controllers have run, in picoseconds.

        It does not pass while the process is stopped or a call takes long, so that no timer takes for silent who was not heard.
        """
        return (self._ran_ns + min(time.monotonic_ns() - self._round_ns, _LONGEST_ROUND_NS)) * 1000

    def port_is_up(self, switch: str, port: int) -> bool:
        """Return True for every port, since P4Runtime has no message about the state of a port."""
        return True

    def secret(self) -> bytes:
        """Return 32 bytes from the machine's random number generator."""
        return secrets.token_bytes(32)

    def call_later(self, delay_ms: float, handler: Callable[[], None]) -> None:
        """Call ``handler`` once, ``delay_ms`` milliseconds of :attr:`now_ps` from now, in the thread of :meth:`run`."""
        self._scheduler.add(self.now_ps + ps_of_ms("delay_ms", delay_ms), handler)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for name, switch in self.topology.switches.items():
                client = GrpcClient(self._addresses[name], switch.device_id, self._election_id)
                self._clients[name] = stack.enter_context(client)
                if not client.is_primary:
                    raise NetworkError(f"switch {name!r} has another primary, with a higher election id")
                if client.pipeline_config() is None:
                    if self._program is None:
                        raise NetworkError(f"switch {name!r} has no pipeline, and no program was given for it")
                    client.set_pipeline(self._program)
            for controller in self.controllers:
                controller.attach(self)
            for controller in self.controllers:
                controller.on_start()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def run(self, for_s: float | None = None) -> None:
        """Call the controllers' handlers as their events come, for ``for_s`` seconds or, if None, until :meth:`stop`.

        Raises an error when a client's stream ends: the switch has stopped, or another controller has taken over.
        """
        end_s = None if for_s is None else time.monotonic() + for_s
        while not self._stopping.is_set() and (end_s is None or time.monotonic() < end_s):
            self._begin_round()
            self._deliver()
            self._scheduler.run_due(self.now_ps)
            now_ps = self.now_ps
            self._stopping.wait(max(0, self._scheduler.next_ps_within(now_ps + _POLL_PS) - now_ps) / PS_PER_S)

    def stop(self) -> None:
        """End :meth:`run` for good: later calls of it return at once. It may be called by another thread or a signal handler."""
        self._stopping.set()

    def _begin_round(self) -> None:
        now_ns = time.monotonic_ns()
        self._ran_ns += min(now_ns - self._round_ns, _LONGEST_ROUND_NS)
        self._round_ns = now_ns

    def _deliver(self) -> None:
        for name, client in self._clients.items():
            while (event := client.poll()) is not None:
                if not client.is_primary:
                    raise NetworkError(f"switch {name!r} has another primary now")
                self._scheduler.add_event(self.controllers, self.now_ps, name, event)
