"""``holdfast collect``: feeds a collector from a UDP socket while a network runs, or from a capture of one.

The socket has a large buffer, and the kernel counts what it had no room for. A thread of its own takes packets, in batches, in
``crates/ports``; what is shown, served and written to files is made beside it. Each packet is taken, or counted as lost.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.live import Live

from holdfast import _core, interrupts
from holdfast.apps.telemetry import metrics, showing
from holdfast.apps.telemetry.collector import Collector, Limits
from holdfast.errors import LiveError
from holdfast.operations.pages import Pages, endpoint
from holdfast.terminal import Console

if TYPE_CHECKING:
    from holdfast.apps.telemetry.rows import RowWriter

RECEIVE_BUFFER_BYTES = 64 << 20
"""Some 100,000 reports, a second's worth. Without privileges the kernel gives less (``net.core.rmem_max``)."""

TURN_S = 0.25
"""The longest time for which packets are taken in one call."""

ROWS_S = 0.02
"""The time between looks whether rows are enough for a file."""

REFRESH_S = 1.0

DRAIN_S = 10.0
"""The longest time after the end for which packets that arrived in time are taken."""


class Receiver:
    """A UDP socket whose packets go to a collector."""

    def __init__(self, collector: Collector, host: str, port: int, rows: RowWriter | None = None) -> None:
        """Open a socket for reports to ``collector``. ``port`` 0 takes a free one. ``rows`` writes the collector's rows.

        Raise :class:`LiveError` if it cannot listen there.
        """
        self._collector, self._rows = collector, rows
        self._ended, self._failure = threading.Event(), ""
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            raise LiveError(f"{host!r} is no IP address to listen at") from None
        try:
            self._socket = _core.ReportSocket(address, port, RECEIVE_BUFFER_BYTES)
        except _core.HoldfastError as error:
            raise LiveError(f"cannot listen for reports at {host}, port {port}: {error}") from None

    @property
    def port(self) -> int:
        """The UDP port on which the socket receives."""
        return self._socket.port

    def receive(self, timeout_s: float, for_s: float = 0.0) -> int:
        """Wait at most ``timeout_s`` for a packet; take it and the packets that wait behind it, and return how many were taken.

        Other Python threads run meanwhile.
        """
        return self._collector.core.receive(self._socket, timeout_s, for_s)

    def count_drops(self) -> None:
        """Read how many packets the kernel has dropped at the socket, and store the number in the collector's ``receive_drops``."""
        self._collector.receive_drops = self._socket.drops()

    def run(self, until_s: float | None, refresh: Callable[[], None]) -> None:
        """Receive until ``until_s`` on the monotonic clock (None: for ever); call ``refresh`` every second and at the end.

        At the end, however it comes, packets that have arrived are still taken, for ``DRAIN_S`` at most, or counted as left. Raise
        :class:`LiveError` if the socket fails.
        """
        thread = threading.Thread(target=self._take, name="reports")
        thread.start()
        try:
            next_s = time.monotonic()
            while not self._failure and (until_s is None or time.monotonic() < until_s):
                if time.monotonic() >= next_s:
                    refresh()
                    next_s = time.monotonic() + REFRESH_S
                if self._rows is not None:
                    self._rows.write_full()
                end_s = next_s if until_s is None else min(next_s, until_s)
                rest_s = max(0.0, end_s - time.monotonic())
                self._ended.wait(rest_s if self._rows is None else min(rest_s, ROWS_S))
        finally:
            self._ended.set()
            while thread.is_alive():
                thread.join(ROWS_S)
                if self._rows is not None:
                    self._rows.write_full()
            refresh()
        if self._failure:
            raise LiveError(self._failure)

    def _take(self) -> None:
        """Receive packets until the end is requested, then those still in the kernel, for ``DRAIN_S`` seconds at most."""
        try:
            while not self._ended.is_set():
                self.receive(TURN_S, TURN_S)
                self.count_drops()
            self._socket.refuse_more()
            end_s = time.monotonic() + DRAIN_S
            while self.receive(0) and time.monotonic() < end_s:
                pass
            self._collector.left += self._socket.discard()
            self.count_drops()
        except _core.HoldfastError as error:
            self._failure = f"cannot receive reports: {error}"
            self._ended.set()


def read_capture(collector: Collector, path: Path, port: int, rows: RowWriter | None = None) -> int:
    """Give ``collector`` the packets of a capture file that go to UDP port ``port``, and return how many there were.

    ``rows`` writes the collector's rows. Fragments are ignored: nodes do not fragment reports. Raise OSError, or :class:`LiveError`
    if the file is no capture.
    """
    try:
        frames = _core.read_pcap(path)
    except _core.HoldfastError as error:
        raise LiveError(str(error)) from None
    found = 0
    for time_ps, frame in frames:
        payload = udp_payload(frame, port)
        if payload is not None:
            collector.take(time_ps // 1000, payload)
            found += 1
            if rows is not None:
                rows.write_full()
    return found


def udp_payload(frame: bytes, port: int) -> bytes | None:
    """Return the payload of an Ethernet frame with UDP to ``port``, over IPv4 or IPv6; None for any other frame."""
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
    """The arguments of :func:`run`."""

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
    """Collect reports until the time is over, the capture ends, or the user interrupts; then show the results.

    Raise :class:`LiveError` if it cannot listen, or cannot read or write a file; if rows could not be written, at the end.
    """
    host, port = endpoint("--listen", settings.listen)
    if settings.capture is not None and (settings.metrics is not None or settings.seconds is not None):
        raise LiveError("--metrics and --for belong to listening; a capture is read at once")
    with ExitStack() as stack:
        most_rows = None
        if settings.parquet is not None:
            from holdfast.apps.telemetry.rows import MOST_ROWS, RowWriter

            most_rows = MOST_ROWS if settings.capture is None else None
        collector = Collector(
            settings.limits,
            dscp=settings.dscp,
            udp_port=settings.udp_port,
            with_rows=settings.parquet is not None,
            most_rows=most_rows,
        )
        rows = None
        if settings.parquet is not None:
            rows = RowWriter(settings.parquet, collector)
            stack.callback(rows.close)
        if settings.metrics is not None:
            page_host, page_port = endpoint("--metrics", settings.metrics)
            about = {"collector": settings.listen}
            stack.enter_context(Pages(lambda: metrics.families(collector), page_port, page_host, about=about))
        if settings.capture is not None:
            try:
                found = read_capture(collector, settings.capture, port, rows)
            except OSError as error:
                raise LiveError(f"cannot read {str(settings.capture)!r}: {error.strerror or error}") from None
            if not found:
                raise LiveError(f"{str(settings.capture)!r} has no UDP packets to port {port}")
        else:
            receiver = Receiver(collector, host, port, rows)
            shown = stack.enter_context(Live(console=console, auto_refresh=False)) if settings.live else None
            # Programs wait for this line.
            console.print(f"listening at {host}, port {receiver.port}", markup=False, highlight=False, soft_wrap=True)

            def refresh() -> None:
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
    if rows is not None and rows.failure is not None:
        raise LiveError(f"{collector.rows_lost:,} rows are in no file: {rows.failure}")
