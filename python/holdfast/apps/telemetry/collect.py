"""``holdfast collect``: feeds a collector from a UDP socket while a network runs, or from a capture of one.

The socket has a large buffer, and the kernel counts what it had no room for. This is the count that ``SO_RXQ_OVFL`` puts beside
packets; ``SO_MEMINFO`` tells it at any time, so that the last losses are not missed.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.live import Live

from holdfast import _core, interrupts
from holdfast.apps.telemetry import metrics, showing
from holdfast.apps.telemetry.collector import Collector, Limits
from holdfast.apps.telemetry.rows import RowWriter
from holdfast.errors import LiveError
from holdfast.terminal import Console

SO_RCVBUFFORCE, SO_MEMINFO = 33, 55
"""Of Linux's asm-generic/socket.h; Python's ``socket`` does not name them."""

_MEMINFO = struct.Struct("9I")
"""Of linux/sock_diag.h; the last one is drops."""

RECEIVE_BUFFER_BYTES = 64 << 20
"""Some 100,000 reports, a second's worth. Without privileges the kernel gives less (``net.core.rmem_max``)."""

MOST_BYTES = 65_535

BATCH = 256
"""Packets between two looks at the clock."""

REFRESH_S = 1.0

DRAIN_S = 10.0
"""How long, at most, what has arrived in time is taken after the time is over."""


class Receiver:
    """A UDP socket whose packets go to a collector. A context manager."""

    def __init__(self, collector: Collector, host: str, port: int) -> None:
        """Raises :class:`LiveError` if it cannot listen there; ``port`` 0 takes a free one."""
        self._collector = collector
        try:
            family = socket.AF_INET6 if ipaddress.ip_address(host).version == 6 else socket.AF_INET
        except ValueError:
            raise LiveError(f"{host!r} is no IP address to listen at") from None
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        try:
            try:
                self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
            except PermissionError:
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
            self._socket.bind((host, port))
        except (OSError, OverflowError) as error:
            self._socket.close()
            raise LiveError(f"cannot listen for reports at {host}, port {port}: {error}") from None
        self._drops = 0

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._socket.getsockname()[1])

    def receive(self, timeout_s: float) -> int:
        """Takes up to :data:`BATCH` packets; waits for the first. Returns how many there were."""
        collector, receive = self._collector, self._socket.recv
        self._socket.settimeout(timeout_s)
        try:
            payload = receive(MOST_BYTES)
        except TimeoutError:
            return 0
        now_ns = time.time_ns()
        collector.take(now_ns, payload)
        self._socket.setblocking(False)
        for number in range(1, BATCH):
            try:
                payload = receive(MOST_BYTES)
            except BlockingIOError:
                return number
            collector.take(now_ns, payload)
        return BATCH

    def count_drops(self) -> None:
        """Adds what the kernel has dropped since the last time. Its counter has 32 bits."""
        told = self._socket.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, _MEMINFO.size)
        drops = _MEMINFO.unpack(told)[8]
        self._collector.receive_drops += (drops - self._drops) % (1 << 32)
        self._drops = drops

    def run(self, until_s: float | None, refresh: Callable[[], None]) -> None:
        """Receives until a time on the monotonic clock (None: for ever), and calls ``refresh`` once a second and at the end."""
        next_s = time.monotonic()
        while True:
            now_s = time.monotonic()
            if now_s >= next_s:
                self.count_drops()
                refresh()
                next_s = now_s + REFRESH_S
            if until_s is not None and now_s >= until_s:
                while self.receive(0.001) and time.monotonic() < until_s + DRAIN_S:
                    pass
                self.count_drops()
                refresh()
                return
            wait_s = next_s - now_s if until_s is None else min(next_s, until_s) - now_s
            self.receive(max(wait_s, 0.001))

    def __enter__(self) -> Receiver:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def read_capture(collector: Collector, path: Path, port: int) -> int:
    """Gives a collector the UDP packets of a capture that go to a port. Returns how many there were.

    Raises OSError, :class:`LiveError` if the file is no capture. Fragments are passed over: nodes do not fragment reports.
    """
    try:
        frames = _core.read_pcap(path)
    except _core.HoldfastError as error:
        raise LiveError(f"{str(path)!r}: {error}") from None
    found = 0
    for time_ps, frame in frames:
        payload = udp_payload(frame, port)
        if payload is not None:
            collector.take(time_ps // 1000, payload)
            found += 1
    return found


def udp_payload(frame: bytes, port: int) -> bytes | None:
    """What an Ethernet frame carries to a UDP port, over IPv4 or IPv6; None if it carries something else."""
    at = 14
    if frame[12:14] == b"\x08\x00" and len(frame) >= 34:
        header = (frame[14] & 0xF) * 4
        fragment = frame[20] & 0x3F or frame[21]
        protocol, end = frame[23], at + int.from_bytes(frame[16:18], "big")
        if fragment or header < 20:
            return None
        at += header
    elif frame[12:14] == b"\x86\xdd" and len(frame) >= 54:
        protocol, end = frame[20], at + 40 + int.from_bytes(frame[18:20], "big")
        at += 40
    else:
        return None
    if protocol != 17 or len(frame) < at + 8 or int.from_bytes(frame[at + 2 : at + 4], "big") != port:
        return None
    length = int.from_bytes(frame[at + 4 : at + 6], "big")
    return frame[at + 8 : min(at + length, end, len(frame))]


@dataclass(frozen=True)
class Settings:
    """What :func:`run` is asked for."""

    listen: str
    capture: Path | None
    parquet: Path | None
    metrics: str | None
    seconds: float | None
    limits: Limits
    dscp: int
    udp_port: int
    live: bool


def run(settings: Settings, console: Console) -> None:
    """Collects until the time is over, the capture ends, or somebody interrupts; then shows what there is.

    Raises :class:`LiveError` if it cannot listen, read or write where it is told to.
    """
    host, port = _endpoint("--listen", settings.listen)
    if settings.capture is not None and (settings.metrics is not None or settings.seconds is not None):
        raise LiveError("--metrics and --for belong to listening; a capture is read at once")
    with ExitStack() as stack:
        rows = None if settings.parquet is None else RowWriter(settings.parquet)
        collector = Collector(
            settings.limits,
            dscp=settings.dscp,
            udp_port=settings.udp_port,
            on_report=None if rows is None else rows.take,
        )
        if rows is not None:
            stack.callback(rows.close)
        server = None
        if settings.metrics is not None:
            server = stack.enter_context(metrics.MetricsServer(*_endpoint("--metrics", settings.metrics)))
        if settings.capture is not None:
            try:
                found = read_capture(collector, settings.capture, port)
            except OSError as error:
                raise LiveError(f"cannot read {str(settings.capture)!r}: {error.strerror}") from None
            if not found:
                raise LiveError(f"{str(settings.capture)!r} has no UDP packets to port {port}")
        else:
            receiver = stack.enter_context(Receiver(collector, host, port))
            shown = stack.enter_context(Live(console=console, auto_refresh=False)) if settings.live else None
            # Programs wait for this line.
            console.print(f"listening at {host}, port {receiver.port}", markup=False, highlight=False, soft_wrap=True)

            def refresh() -> None:
                if server is not None:
                    server.page = metrics.text(collector)
                if shown is not None:
                    shown.update(showing.view(collector), refresh=True)

            until_s = None if settings.seconds is None else time.monotonic() + settings.seconds
            try:
                with interrupts.raised():
                    receiver.run(until_s, refresh)
            except KeyboardInterrupt:
                pass
    if not settings.live or settings.capture is not None:
        console.print(showing.view(collector))


def _endpoint(option: str, text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise LiveError(f"{option} is {text!r}; it must be ADDRESS:PORT")
    return host.strip("[]"), int(port)
