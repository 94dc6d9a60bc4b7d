"""What hosts do for verbs, on both clocks: echo requests, TCP and UDP streams, single frames.

Modelled hosts send flows of the simulation (:class:`SimulatedHosts`); hosts of a live network run ping and iperf3
(:class:`LiveHosts`). The results have one form. No verb is known here.
"""

from __future__ import annotations

import re
import socket
import subprocess
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address
from statistics import fmean
from typing import Any, Protocol

from holdfast import interpreter
from holdfast.console import echo
from holdfast.console.echo import Hop
from holdfast.console.pace import Clock
from holdfast.errors import ConsoleError
from holdfast.live import packet_socket
from holdfast.live.hosts import iperf3_report
from holdfast.network import LiveNetwork, SimulatedNetwork
from holdfast.parameters import PS_PER_S
from holdfast.topology import Topology
from holdfast.traffic import Ping, TcpOptions, TcpTransfer, UdpStream

LIKE_LINUX = TcpOptions.linux("cubic")
"""What the kernel's TCP of live hosts does, so that both clocks measure the same."""

INTERVAL_S = 0.2
"""Between two echo requests."""

ANSWER_S = 1.0
"""For so long after the last request an answer is waited for."""

UDP_PAYLOAD_BYTES = 1200

FRAMES_KEPT = 1000
"""Of those that came to a host and that nobody has looked at."""

AT_A_TIME = 64
"""Echo requests of different hosts that a live network sends at the same time: each is a process."""


@dataclass(frozen=True)
class Pinged:
    """What became of echo requests from a host to another."""

    sent: int
    received: int
    rtts_ms: tuple[float, ...] = ()


@dataclass(frozen=True)
class Streamed:
    """What arrived of a stream: bits of payload per second, and of UDP also packets and their jitter."""

    bps: float
    sent: int | None = None
    lost: int | None = None
    jitter_ms: float | None = None
    retransmitted: int | None = None


Pair = tuple[str, str]


class Hosts(Protocol):
    """The hosts of a network, for verbs."""

    def ping(self, pairs: Sequence[Pair], count: int) -> list[Pinged]:
        """Send ``count`` echo requests from the first host of each pair to the second, all pairs at the same time."""

    def tcp(self, source: str, destination: str, duration_s: float) -> Streamed:
        """Send by TCP for a time."""

    def udp(self, source: str, destination: str, rate_bps: int, duration_s: float) -> Streamed:
        """Send by UDP at a rate for a time."""

    def hop(self, source: str, destination: str, ttl: int) -> Hop:
        """Send one echo request with a TTL, and wait for the answer of whoever it is."""

    def send(self, host: str, frame: bytes) -> None:
        """Send a frame from a host."""

    def sniff(self, host: str, duration_s: float) -> list[tuple[float, bytes]]:
        """Return the frames that came to a host since the last call, with their times in seconds.

        If there are none, wait for the first for ``duration_s`` seconds.
        """

    def close(self) -> None:
        """End what runs for these hosts."""


class SimulatedHosts:
    """Modelled hosts."""

    def __init__(self, network: SimulatedNetwork, clock: Clock) -> None:
        self._network, self._clock = network, clock
        self._frames: dict[str, deque[tuple[float, bytes]]] = {}
        for host in network.topology.hosts:
            kept = self._frames[host] = deque(maxlen=FRAMES_KEPT)
            network.add_frame_listener(host, partial(_keep, kept))

    def _soon_s(self) -> float:
        """Return a time that has not passed: rounded, the present could be a picosecond ago."""
        return self._network.now_ps / PS_PER_S + 1e-6

    def ping(self, pairs: Sequence[Pair], count: int) -> list[Pinged]:
        """Send echo requests, and wait for the answers, for a second after the last one at most."""
        network = self._network
        with self._clock.held():
            start_s = self._soon_s()
            stop_s = start_s + (count - 0.5) * INTERVAL_S
            flows = [
                network.add(
                    Ping(source=a, destination=b, interval_ms=1000 * INTERVAL_S, start_s=start_s, stop_s=stop_s)
                )
                for a, b in pairs
            ]
        try:
            waiting = list(flows)

            def answered() -> bool:
                while waiting and network.statistics(waiting[-1]).delivered >= count:
                    waiting.pop()
                return not waiting

            self._clock.wait((count - 1) * INTERVAL_S + ANSWER_S, answered)
        finally:
            with self._clock.held():
                for flow in flows:
                    network.end_flow(flow)
        return [self._pinged(flow) for flow in flows]

    def _pinged(self, flow: int) -> Pinged:
        with self._clock.held():
            sent, log = self._network.statistics(flow).sent, self._network.received(flow)
        rtts: dict[int, float] = {}
        for number, sent_ps, there_ps in zip(log.sequence, log.sent_ps, log.received_ps, strict=True):
            rtts.setdefault(number, (there_ps - sent_ps) / 1e9)
        return Pinged(sent, len(rtts), tuple(rtts.values()))

    def tcp(self, source: str, destination: str, duration_s: float) -> Streamed:
        """Send by TCP for a time."""
        with self._clock.held():
            start_s = self._soon_s()
            flow = self._network.add_tcp(
                TcpTransfer(
                    source=source,
                    destination=destination,
                    start_s=start_s,
                    stop_s=start_s + duration_s,
                    options=LIKE_LINUX,
                )
            )
        self._clock.wait(duration_s + 1e-6)
        with self._clock.held():
            found = self._network.tcp_statistics(flow)
        if found.failure is not None or not found.bytes_received:
            raise ConsoleError(
                f"no TCP connection from {source} to {destination}{f': {found.failure}' if found.failure else ''}"
            )
        return Streamed(8 * found.bytes_received / duration_s, retransmitted=found.segments_retransmitted)

    def udp(self, source: str, destination: str, rate_bps: int, duration_s: float) -> Streamed:
        """Send by UDP at a rate for a time."""
        with self._clock.held():
            start_s = self._soon_s()
            stream = UdpStream(
                source=source,
                destination=destination,
                packets_per_s=rate_bps / 8 / UDP_PAYLOAD_BYTES,
                payload_bytes=UDP_PAYLOAD_BYTES,
                start_s=start_s,
                stop_s=start_s + duration_s,
                log_packets=False,
            )
            flow = self._network.add(stream)
        try:
            self._clock.wait(duration_s + 1e-6)
            in_time = self._network.statistics(flow).delivered

            def arrived() -> bool:
                found = self._network.statistics(flow)
                return found.delivered >= found.sent

            self._clock.wait(ANSWER_S, arrived)
        finally:
            with self._clock.held():
                self._network.end_flow(flow)
        with self._clock.held():
            found = self._network.statistics(flow)
        jitter_ps = found.interarrival_jitter_ps
        bps = 8 * UDP_PAYLOAD_BYTES * in_time / duration_s
        return Streamed(bps, found.sent, found.lost, None if jitter_ps is None else jitter_ps / 1e9)

    def hop(self, source: str, destination: str, ttl: int) -> Hop:
        """Send one echo request with a TTL, and wait for the answer of whoever it is, for a second at most."""
        frame = echo.request(self._network.topology, source, destination, ttl)
        kept, found = self._frames[source], list[tuple[tuple[float, bytes], IPv4Address, bool]]()

        def came() -> bool:
            for each in kept:
                if (said := echo.answer(each[1], ttl)) is not None:
                    found.append((each, *said))
                    return True
            return False

        with self._clock.held():
            sent_s = self._network.now_ps / PS_PER_S
            self._network.send_frame(source, frame)
        self._clock.wait(ANSWER_S, came)
        with self._clock.held():
            if not found and not came():
                return Hop()
            each, address, there = found[0]
            kept.remove(each)
        return Hop(str(address), 1000 * (each[0] - sent_s), there)

    def send(self, host: str, frame: bytes) -> None:
        """Send a frame from a host."""
        with self._clock.held():
            self._network.send_frame(host, frame)

    def sniff(self, host: str, duration_s: float) -> list[tuple[float, bytes]]:
        """Return the frames that came to a host and belong to no flow."""
        kept = self._frames[host]
        self._clock.wait(duration_s, lambda: bool(kept))
        with self._clock.held():
            found = list(kept)
            kept.clear()
        return found

    def close(self) -> None:
        """Do nothing: flows end with the network."""


def _keep(kept: deque[tuple[float, bytes]], time_ps: int, frame: bytes) -> None:
    kept.append((time_ps / PS_PER_S, frame))


_SENT = re.compile(r"(\d+) packets transmitted, (\d+) (?:packets )?received")
_RTT = re.compile(r"time=([0-9.]+) ms")

_IPERF_PORT = 5201


class LiveHosts:
    """Hosts of a live network: namespaces with the kernel's protocols."""

    def __init__(self, network: LiveNetwork, clock: Clock) -> None:
        self._network, self._clock = network, clock
        self._sockets: dict[str, socket.socket] = {}

    @property
    def _topology(self) -> Topology:
        return self._network.topology

    def _address(self, host: str) -> str:
        return str(self._topology.hosts[host].address.ip)

    def _started(self, host: str, command: Sequence[str]) -> subprocess.Popen[str]:
        """Start a command in a host, with its errors merged into its output."""
        return self._network.hosts[host].popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def ping(self, pairs: Sequence[Pair], count: int) -> list[Pinged]:
        """Run ping in the hosts."""
        found: list[Pinged] = []
        for first in range(0, len(pairs), AT_A_TIME):
            found += self._pinged(pairs[first : first + AT_A_TIME], count)
        return found

    def _pinged(self, pairs: Sequence[Pair], count: int) -> list[Pinged]:
        command = ("ping", "-n", "-c", str(count), "-i", str(INTERVAL_S), "-W", str(ANSWER_S))
        running = [self._started(a, [*command, self._address(b)]) for a, b in pairs]
        try:
            texts = [process.communicate()[0] for process in running]
        finally:
            _end(running)
        found = []
        for text in texts:
            counts = _SENT.search(text)
            if counts is None:
                raise ConsoleError(f"ping: {(text.strip().splitlines() or ['it printed nothing'])[-1]}")
            found.append(Pinged(int(counts[1]), int(counts[2]), tuple(map(float, _RTT.findall(text)))))
        return found

    def hop(self, source: str, destination: str, ttl: int) -> Hop:
        """Run ping with a TTL; of errors it tells no time."""
        command = ["ping", "-n", "-c", "1", "-W", str(ANSWER_S), "-t", str(ttl), self._address(destination)]
        text = self._network.hosts[source].run(command, check=False).stdout
        if (error := re.search(r"^From ([0-9.]+) icmp_seq", text, re.MULTILINE)) is not None:
            return Hop(error[1])
        times = _RTT.findall(text)
        return Hop(self._address(destination), float(times[0]), there=True) if times else Hop()

    def tcp(self, source: str, destination: str, duration_s: float) -> Streamed:
        """Run iperf3 in both hosts."""
        report = self._iperf(source, destination, duration_s)
        end = report["end"]
        return Streamed(end["sum_received"]["bits_per_second"], retransmitted=end["sum_sent"].get("retransmits"))

    def udp(self, source: str, destination: str, rate_bps: int, duration_s: float) -> Streamed:
        """Run iperf3 in both hosts, by UDP."""
        duration_s = _seconds(duration_s)
        more = ("--udp", "--bitrate", str(rate_bps), "--length", str(UDP_PAYLOAD_BYTES))
        found = self._iperf(source, destination, duration_s, *more)["end"]["sum"]
        # What has arrived at the end: iperf3's own rate is the sender's.
        arrived = found["packets"] - found["lost_packets"]
        bps = 8 * UDP_PAYLOAD_BYTES * arrived / duration_s
        return Streamed(bps, found["packets"], found["lost_packets"], found["jitter_ms"])

    def _iperf(self, source: str, destination: str, duration_s: float, *more: str) -> dict[str, Any]:
        server = self._started(destination, ["iperf3", "--server", "--one-off", "--port", str(_IPERF_PORT)])
        running = [server]
        try:
            self._clock.wait(ANSWER_S * 60, lambda: server.poll() is not None or self._listens(destination))
            command = ["iperf3", "--client", self._address(destination), "--port", str(_IPERF_PORT), "--json"]
            command += ["--connect-timeout", "3000", "--time", str(_seconds(duration_s)), *more]
            running.append(client := self._started(source, command))
            return iperf3_report(client.communicate()[0], "iperf3")
        finally:
            _end(running)

    def _listens(self, host: str) -> bool:
        text = self._network.hosts[host].run(["cat", "/proc/net/tcp", "/proc/net/tcp6"], check=False).stdout
        return any(f":{_IPERF_PORT:04X}" in line and " 0A " in line for line in text.splitlines())

    def send(self, host: str, frame: bytes) -> None:
        """Send a frame from a host's interface. From the first one on, frames that come to hosts are kept for :meth:`sniff`.

        Raises :class:`ConsoleError` if the interface refuses it.
        """
        for each in self._topology.hosts:
            self._socket(each)
        try:
            self._socket(host).send(frame)
        except OSError as error:
            raise ConsoleError(f"{host} cannot send the frame: {error.strerror}") from None

    def sniff(self, host: str, duration_s: float) -> list[tuple[float, bytes]]:
        """Return the frames that came to a host's interface, whoever took them."""
        opened = self._socket(host)
        found: list[tuple[float, bytes]] = []

        def arrived() -> bool:
            with suppress(BlockingIOError):
                while True:
                    frame, about = opened.recvfrom(1 << 16)
                    if about[2] != socket.PACKET_OUTGOING:
                        found.append((self._network.now_ps / PS_PER_S, frame))
            return bool(found)

        self._clock.wait(duration_s, arrived)
        return found

    def _socket(self, host: str) -> socket.socket:
        """Return a packet socket on a host's first interface, opened in its namespace when it is first wanted.

        Raises :class:`ConsoleError` if that fails.
        """
        if host not in self._sockets:
            live = self._network.hosts[host]
            ours, theirs = socket.socketpair()
            with ours, theirs:
                command = interpreter.script(packet_socket.__file__, live.cards[0], str(theirs.fileno()))
                opener = live.popen(
                    command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
                )
                if said := opener.communicate()[1].strip():
                    raise ConsoleError(f"{host} cannot open a packet socket: {said.splitlines()[-1]}")
                _, (descriptor,), _, _ = socket.recv_fds(ours, 1, 1)
            self._sockets[host] = socket.socket(fileno=descriptor)
            self._sockets[host].setblocking(False)
        return self._sockets[host]

    def close(self) -> None:
        """Close the sockets."""
        for opened in self._sockets.values():
            opened.close()


def _seconds(duration_s: float) -> int:
    """Return the time for which iperf3 sends: whole seconds."""
    return max(1, round(duration_s))


def _end(running: Sequence[subprocess.Popen[str]]) -> None:
    for process in running:
        with suppress(OSError):
            process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def text_of_pings(found: Pinged) -> str:
    """Return a line about echo requests."""
    rtts = found.rtts_ms
    times = f", rtt min/avg/max {min(rtts):.3f}/{fmean(rtts):.3f}/{max(rtts):.3f} ms" if rtts else ""
    return f"{found.sent} sent, {found.received} received, {found.sent - found.received} lost{times}"


__all__ = ["Hosts", "LiveHosts", "Pinged", "SimulatedHosts", "Streamed", "text_of_pings"]
