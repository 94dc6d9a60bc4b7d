"""Flows that run on while other verbs are obeyed: pings, TCP and UDP, on both clocks, and what has become of each so far.

A simulated network sends flows of its own; in live hosts, iperf3 and ping run, and their lines are read while they come. No verb is
known here, and nothing prints.
"""

from __future__ import annotations

import re
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from holdfast.console.hosts import INTERVAL_S, LIKE_LINUX, UDP_PAYLOAD_BYTES
from holdfast.console.pace import Clock
from holdfast.errors import ConsoleError
from holdfast.network import LiveNetwork, SimulatedNetwork
from holdfast.parameters import PS_PER_S
from holdfast.traffic import Ping, TcpTransfer, UdpStream

FOREVER_S = 1e6
"""For so long a flow of packets without a time runs."""

TCP_S = 60.0
"""For so long a simulated TCP connection without a time runs: nothing can end it before."""

LAST_S = 1.0
"""After the end of a flow, its last packets arrive."""

MOST_FLOWS = 2000
"""That run at the same time."""

Kind = Literal["ping", "tcp", "udp"]


@dataclass(frozen=True)
class Asked:
    """What a flow is to be. ``rate_bps``: of UDP. ``time_s``: None for one that somebody ends."""

    kind: Kind
    source: str
    destination: str
    rate_bps: int | None = None
    time_s: float | None = None

    def __str__(self) -> str:
        if self.kind == "ping":
            return f"{self.source} ping {self.destination}"
        more = "" if self.rate_bps is None else f" udp {self.rate_bps / 1e6:g}Mbps"
        return f"iperf {self.source} {self.destination}{more}"


@dataclass(frozen=True)
class Progress:
    """What has become of a flow so far.

    Of pings, answers are what arrives, and the delay is that of the way and back. What a clock cannot tell is None.
    """

    sent: int | None = None
    """Packets; of TCP, segments."""
    arrived: int | None = None
    """Packets."""
    again: int | None = None
    """Segments of TCP that were sent again."""
    payload_bits: float = 0.0
    """That arrived."""
    delay_sum_ms: float = 0.0
    delayed: int = 0
    """Packets in the sum."""
    delay_ms: float | None = None
    """Of the present, if there is no sum: TCP's smoothed time of the way and back."""
    failure: str | None = None


class Flow(ABC):
    """A flow that was started. ``number``: by which verbs name it."""

    def __init__(self, number: int, asked: Asked) -> None:
        self.number, self.asked = number, asked
        self.begin_s = 0.0
        """On the network's clock."""
        self.end_s: float | None = None
        """When it was seen to have ended, on the network's clock."""

    @abstractmethod
    def progress(self) -> Progress:
        """Return what has become of it so far."""

    @abstractmethod
    def runs(self) -> bool:
        """Return True until it has ended."""

    @abstractmethod
    def stop(self) -> None:
        """End it. Raises :class:`ConsoleError` if nothing can."""

    @abstractmethod
    def close(self) -> None:
        """Leave nothing behind."""


class SimulatedFlow(Flow):
    """A flow between modelled hosts."""

    def __init__(self, number: int, asked: Asked, network: SimulatedNetwork, clock: Clock) -> None:
        super().__init__(number, asked)
        self._network, self._clock = network, clock
        with clock.held():
            # Rounded, the present could be a picosecond ago.
            self.begin_s = start_s = network.now_ps / PS_PER_S + 1e-6
            self._stop_s = start_s + (asked.time_s or (TCP_S if asked.kind == "tcp" else FOREVER_S))
            common: dict[str, Any] = {
                "source": asked.source,
                "destination": asked.destination,
                "start_s": start_s,
                "stop_s": self._stop_s,
            }
            if asked.kind == "tcp":
                self._flow = network.add_tcp(TcpTransfer(**common, options=LIKE_LINUX))
            elif asked.kind == "ping":
                self._flow = network.add(Ping(**common, interval_ms=1000 * INTERVAL_S))
            else:
                assert asked.rate_bps is not None
                rate = asked.rate_bps / 8 / UDP_PAYLOAD_BYTES
                self._flow = network.add(
                    UdpStream(**common, packets_per_s=rate, payload_bytes=UDP_PAYLOAD_BYTES, log_packets=False)
                )

    def progress(self) -> Progress:
        """Return the statistics of the simulation, as a flow's progress."""
        if self.asked.kind == "tcp":
            found = self._network.tcp_statistics(self._flow)
            return Progress(
                sent=found.segments_sent,
                again=found.segments_retransmitted,
                payload_bits=8.0 * found.bytes_received,
                delay_ms=found.srtt_ps / 1e9 or None,
                failure=found.failure,
            )
        counted = self._network.statistics(self._flow)
        payload = 0 if self.asked.kind == "ping" else UDP_PAYLOAD_BYTES
        return Progress(
            sent=counted.sent,
            arrived=counted.delivered,
            payload_bits=8.0 * payload * counted.delivered,
            delay_sum_ms=(counted.latency_mean_ps or 0.0) / 1e9 * counted.delivered,
            delayed=counted.delivered,
        )

    def runs(self) -> bool:
        """Return True until a second after its last packet."""
        return self._network.now_ps / PS_PER_S < self._stop_s + LAST_S

    def stop(self) -> None:
        """Send no more packets."""
        if self.asked.kind == "tcp":
            if (left_s := self._stop_s - self._network.now_ps / PS_PER_S) > 0:
                raise ConsoleError(f"a simulated TCP connection ends at its own time, in {left_s:.0f} s")
            return
        with self._clock.held():
            self._network.end_flow(self._flow)
            self._stop_s = min(self._stop_s, self._network.now_ps / PS_PER_S)

    def close(self) -> None:
        """Do nothing: it ends with the network."""


_PING = re.compile(r"icmp_seq=(\d+).*?time=([0-9.]+) ms")
_NO_ANSWER = re.compile(r"no answer yet for icmp_seq=(\d+)")
_INTERVAL = re.compile(
    r"\]\s+(?P<begin>[\d.]+)-(?P<end>[\d.]+)\s+sec\s+[\d.]+ \w+\s+(?P<kbps>[\d.]+) Kbits/sec"
    r"(?:\s+[\d.]+ ms\s+(?P<lost>\d+)/(?P<sent>\d+) )?"
)

_FIRST_PORT = 5202
"""Of iperf3's servers for flows that run on; the one before is that of the verbs that wait."""


class LiveFlow(Flow):
    """A flow between namespaces: a ping, or iperf3 at both ends. A thread reads what the receiver says."""

    def __init__(self, number: int, asked: Asked, network: LiveNetwork, port: int) -> None:
        super().__init__(number, asked)
        self.begin_s = network.now_ps / PS_PER_S
        self._network, self._progress = network, Progress()
        self._running: list[subprocess.Popen[str]] = []
        self._stopped = False
        address = str(network.topology.hosts[asked.destination].address.ip)
        if asked.kind == "ping":
            count = () if asked.time_s is None else ("-c", str(max(1, round(asked.time_s / INTERVAL_S))))
            said = self._started(asked.source, ["ping", "-n", "-O", "-i", str(INTERVAL_S), *count, address])
            reads: Callable[[subprocess.Popen[str]], None] = self._read_ping
        else:
            said = self._started(
                asked.destination,
                ["iperf3", "-s", "--one-off", "-p", str(port), "-i", "0.5", "-f", "k", "--forceflush"],
            )
            udp = () if asked.rate_bps is None else ("-u", "-b", str(asked.rate_bps), "-l", str(UDP_PAYLOAD_BYTES))
            time_s = 0 if asked.time_s is None else max(1, round(asked.time_s))
            self._client = ["iperf3", "-c", address, "-p", str(port), "-t", str(time_s), *udp]
            reads = self._read_iperf
        self._reader = threading.Thread(target=reads, args=(said,), name=f"holdfast-flow-{number}", daemon=True)
        self._reader.start()

    def _started(self, host: str, command: Sequence[str]) -> subprocess.Popen[str]:
        process = self._network.hosts[host].popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._running.append(process)
        return process

    def _lines(self, said: subprocess.Popen[str]) -> Iterator[str]:
        assert said.stdout is not None
        with suppress(ValueError):  # closed meanwhile
            yield from said.stdout

    def _read_ping(self, ping: subprocess.Popen[str]) -> None:
        line = ""
        for line in self._lines(ping):
            now = self._progress
            if found := _PING.search(line):
                self._progress = replace(
                    now,
                    sent=max(now.sent or 0, int(found[1])),
                    arrived=(now.arrived or 0) + 1,
                    delay_sum_ms=now.delay_sum_ms + float(found[2]),
                    delayed=now.delayed + 1,
                )
            elif found := _NO_ANSWER.search(line):
                self._progress = replace(now, sent=max(now.sent or 0, int(found[1])), arrived=now.arrived or 0)
        if self._progress.sent is None and not self._stopped:
            self._progress = Progress(failure=line.strip() or "ping printed nothing")

    def _read_iperf(self, server: subprocess.Popen[str]) -> None:
        for line in self._lines(server):
            now = self._progress
            if "Server listening" in line and not self._stopped:
                client = self._started(self.asked.source, self._client)
                threading.Thread(target=self._watch, args=(client, server), daemon=True).start()
            elif (found := _INTERVAL.search(line)) and float(found["end"]) - float(found["begin"]) < 1.5:
                bits = 1000 * float(found["kbps"]) * (float(found["end"]) - float(found["begin"]))
                now = replace(now, payload_bits=now.payload_bits + bits)
                if found["sent"] is not None:
                    sent, lost = int(found["sent"]), int(found["lost"])
                    now = replace(now, sent=(now.sent or 0) + sent, arrived=(now.arrived or 0) + sent - lost)
                self._progress = now

    def _watch(self, client: subprocess.Popen[str], server: subprocess.Popen[str]) -> None:
        """Wait for the client's end, and keep what it says of a failure; the server could wait for ever."""
        text = client.communicate()[0]
        error = next((line for line in text.splitlines() if line.startswith("iperf3: error")), None)
        if error is not None and not self._stopped:
            self._progress = replace(self._progress, failure=error.partition(" - ")[2] or error)
        with suppress(subprocess.TimeoutExpired):
            server.wait(LAST_S)
        self.close()

    def progress(self) -> Progress:
        """Return what the receiver has said so far."""
        return self._progress

    def runs(self) -> bool:
        """Return True while its first process runs: that of ping, or iperf3's server."""
        return self._running[0].poll() is None

    def stop(self) -> None:
        """Kill its processes."""
        self._stopped = True
        self.close()

    def close(self) -> None:
        """Kill its processes."""
        for process in self._running:
            with suppress(OSError):
                process.kill()
            process.wait()


class Flows:
    """The flows of a session, by number, in the order of their start."""

    def __init__(self, network: LiveNetwork | SimulatedNetwork, clock: Clock) -> None:
        self._network, self._clock = network, clock
        self._lock = threading.Lock()
        self._all: dict[int, Flow] = {}
        self._last = 0

    def start(self, asked: Asked) -> Flow:
        """Start a flow. Raises :class:`ConsoleError` if there are too many."""
        with self._lock:
            if sum(flow.end_s is None for flow in self._all.values()) >= MOST_FLOWS:
                raise ConsoleError(f"{MOST_FLOWS} flows run already")
            number = self._last + 1
            if isinstance(self._network, LiveNetwork):
                flow: Flow = LiveFlow(number, asked, self._network, _FIRST_PORT + number % 10_000)
            else:
                flow = SimulatedFlow(number, asked, self._network, self._clock)
            self._all[number], self._last = flow, number
            return flow

    def all(self) -> list[Flow]:
        """Return all flows, and note which have ended; of those, the last :data:`MOST_FLOWS` are kept."""
        now_s = self._network.now_ps / PS_PER_S
        with self._lock:
            for flow in self._all.values():
                if flow.end_s is None and not flow.runs():
                    flow.end_s = now_s
            ended = [number for number, flow in self._all.items() if flow.end_s is not None]
            for number in ended[:-MOST_FLOWS]:
                del self._all[number]
            return list(self._all.values())

    def get(self, number: int) -> Flow:
        """Return a flow. Raises :class:`ConsoleError` if there is none with the number."""
        with self._lock:
            if number not in self._all:
                raise ConsoleError(f"there is no flow {number}")
            return self._all[number]

    def close(self) -> None:
        """End what runs in live hosts."""
        for flow in self.all():
            flow.close()


__all__ = ["Asked", "Flow", "Flows", "Progress"]
