"""A multicast stream between kernels over a BIER domain in real time, and a failure under it: packets sent and received, and when.

Sender and receivers are ordinary programs with sockets (:mod:`multicast_host`) in the hosts' namespaces. The network's thread and
the sender have a real-time priority where that is permitted. Without it the scheduler lets either wait for the controller, which
computes after a failure, and for whatever else the machine does: a millisecond and more, which would count as restoration.
Conclusions from a run are not known here. Needs root.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast import interpreter
from holdfast._core import Program
from holdfast.controller import Controller
from holdfast.errors import LiveError
from holdfast.live.hosts import hosts, preferred
from holdfast.network import LiveNetwork
from holdfast.topology import Topology

PORT = 5001
READINGS = 100
"""The number of readings of the two clocks; the pair that is nearest in time gives their difference."""

LEAD_NS = 300_000_000
"""The time from the signal to the sender to its first packet."""

NETWORK_PRIORITY = 20
"""The real-time priority (SCHED_FIFO) of the network's thread, above the sender's."""

Fail = Callable[[LiveNetwork, float], None]
"""Plans a failure for a time of the network's clock, in seconds."""


@dataclass(frozen=True)
class Stream:
    """A constant rate from one host to others, and when something fails. ``interval_ns``: between packets."""

    group: str
    source: str
    receivers: Sequence[str]
    interval_ns: int
    payload_bytes: int
    before_s: float
    after_s: float

    @property
    def count(self) -> int:
        """The number of packets in the whole stream."""
        return round((self.before_s + self.after_s) * 1e9) // self.interval_ns


@dataclass(frozen=True)
class Observed:
    """A run; times are nanoseconds of CLOCK_REALTIME.

    ``arrivals``: number and time, by host. ``max_lateness_ps``: of the network's clock.
    """

    sent_ns: list[int]
    arrivals: dict[str, list[tuple[int, int]]]
    failure_ns: int
    max_lateness_ps: int

    def lost(self, host: str) -> list[int]:
        """Return the sequence numbers of the sent packets that did not arrive at ``host``, sorted."""
        return sorted(set(range(len(self.sent_ns))) - {number for number, _ in self.arrivals[host]})

    def longest_ns(self, within_ns: int) -> int:
        """Return the longest time from sending to arrival, in ns, of packets sent near the failure.

        Near is at most ``within_ns`` before or after it. 0 if no such packet arrived.
        """
        arrivals = ((number, at_ns) for each in self.arrivals.values() for number, at_ns in each)
        sent_ns = self.sent_ns
        near = ((number, at_ns) for number, at_ns in arrivals if abs(sent_ns[number] - self.failure_ns) <= within_ns)
        return max((at_ns - sent_ns[number] for number, at_ns in near), default=0)


def observe(
    topology: Topology, program: Program, controller: Controller, stream: Stream, fail: Fail, *, detection_ms: float
) -> Observed:
    """Send a multicast stream through ``topology`` in real time, let ``fail`` break something, and return what was observed.

    Raise :class:`LiveError` if a host's program fails.
    """
    with ExitStack() as stack:
        namespaces, interfaces = stack.enter_context(hosts(topology))
        with preferred():
            network = stack.enter_context(
                LiveNetwork(topology, program, [controller], interfaces=interfaces, detection_delay_ms=detection_ms)
            )
        _prefer_network()
        addresses = {name: str(host.address.ip) for name, host in topology.hosts.items()}
        places = {namespaces[name].name: name for name in stream.receivers}
        told = (stream.group, str(PORT))
        receivers = stack.enter_context(
            _Program([], ["receive", *told, *(f"{place}={addresses[name]}" for place, name in places.items())])
        )
        numbers = (stream.count, stream.interval_ns, stream.payload_bytes)
        words = ["send", *told, addresses[stream.source], *map(str, numbers)]
        sender = stack.enter_context(_Program(namespaces[stream.source].exec_prefix, words))
        now_ps, now_ns = _clocks(network)
        start_ns = now_ns + LEAD_NS
        failure_ns = start_ns + round(stream.before_s * 1e9)
        fail(network, (now_ps / 1000 + failure_ns - now_ns) / 1e9)
        sent_ns = sender.said(f"{start_ns}\n")
        # Packets still on their way arrive before this.
        time.sleep(0.2)
        return Observed(
            sent_ns,
            {places[place]: arrivals for place, arrivals in receivers.said().items()},
            failure_ns,
            network.wall_statistics().max_lateness_ps,
        )


def _clocks(network: LiveNetwork) -> tuple[int, int]:
    """Return the network's time in ps and CLOCK_REALTIME in ns at the same moment, from the closest of several readings."""
    readings = []
    for _ in range(READINGS):
        before_ns = time.time_ns()
        now_ps = network.now_ps
        after_ns = time.time_ns()
        readings.append((after_ns - before_ns, now_ps, (before_ns + after_ns) // 2))
    return min(readings)[1:]


def _prefer_network() -> None:
    """Give the network's thread a real-time priority above the other threads and programs, if the system permits it."""
    for task in Path("/proc/self/task").iterdir():
        if (task / "comm").read_text(encoding="utf-8").strip() == "holdfast-net":
            with suppress(OSError):
                os.sched_setscheduler(int(task.name), os.SCHED_FIFO, os.sched_param(NETWORK_PRIORITY))


class _Program:
    """:mod:`multicast_host` once it is ready; a context manager, which ends it."""

    def __init__(self, prefix: Sequence[str], words: Sequence[str]) -> None:
        program = Path(__file__).with_name("multicast_host.py")
        self._process = subprocess.Popen(
            [*prefix, *interpreter.script(program, *words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __enter__(self) -> _Program:
        assert self._process.stdout is not None
        if (line := self._process.stdout.readline()) != "ready\n":
            raise LiveError(f"a host does not start: {line}{self._process.communicate()[0]}")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def said(self, line: str = "\n") -> Any:
        """Write a line to the program, wait for its end, and return the JSON that it printed.

        Raise :class:`LiveError` if it printed anything else.
        """
        text, _ = self._process.communicate(line, timeout=60)
        try:
            return json.loads(text)
        except ValueError:
            raise LiveError(f"a host failed: {text.strip().splitlines()[-1:]}") from None
