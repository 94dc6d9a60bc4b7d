"""The traffic of one host of a live comparison: probes and TCP connections of the kernel, and what arrived when.

Run as a program of its own in the host's network namespace (:mod:`holdfast.compare.live` starts it). It imports nothing of Holdfast
and knows no topology. It reads one line, a JSON object of what to send and to receive; prints ``ready``; reads the start, in
nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share; and prints one JSON object at the end. All other times are
nanoseconds from the start.

Arrivals of probes are the kernel's time stamps, so they do not depend on when this program is given a processor.
"""

from __future__ import annotations

import gc
import heapq
import json
import os
import random
import selectors
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NotRequired, TypedDict

SO_TIMESTAMPNS, SO_RCVBUFFORCE, SO_MAX_PACING_RATE = 35, 33, 47
SOL_RAW, ICMP_FILTER = 255, 1
TCP_NOTSENT_LOWAT = 25
ECHO_REPLY, ECHO_REQUEST = 0, 8

PROBE = struct.Struct("!IQ")
"""The beginning of a probe's payload: its sequence number and the time of sending."""

MULTICAST_TTL = 64
"""The TTL of multicast packets, the usual one of unicast packets; the kernel's default for multicast is 1."""

PROBE_BUFFER = 4 << 20
CHUNK = bytes(1 << 16)
NOT_SENT_LOW = 1 << 16
"""The bytes that a TCP socket accepts beyond those sent: enough that the application never delays the connection, few
enough that no megabytes wait unseen."""

RETRANSMITTED_BYTES, TIMEOUTS = ("=Q", 208), ("=H", 240)
"""The format and the offset of each counter in Linux's ``struct tcp_info`` (``include/uapi/linux/tcp.h``)."""

PRIORITY = -10
"""The nice value of the hosts' processes: after the network's own thread, before everything else."""


class Stream(TypedDict):
    """Probes to send. ``flow``: the number that results have."""

    flow: int
    address: str
    begin_ns: int
    end_ns: int
    interval_ns: float
    payload_bytes: int
    poisson_seed: NotRequired[int | None]


class UdpStream(Stream):
    """With the receiver's port."""

    port: int


class UdpReceiver(TypedDict):
    """A stream to receive; ``group``: that it is sent to, if it is not sent to this host."""

    flow: int
    port: int
    group: str | None


class TcpSender(TypedDict):
    """A connection to open and write to: ``transfer_bytes``, or without an end."""

    flow: int
    address: str
    port: int
    begin_ns: int
    transfer_bytes: int | None
    congestion: str
    mss: int | None
    bytes_per_s: int | None
    nagle: bool


class TcpReceiver(TypedDict):
    """A connection to take."""

    flow: int
    port: int
    window_bytes: int | None
    transfer_bytes: int | None


class Told(TypedDict):
    """The first line of standard input."""

    bin_ns: int
    stop_ns: int
    udp_send: list[UdpStream]
    udp_receive: list[UdpReceiver]
    ping: list[Stream]
    tcp_send: list[TcpSender]
    tcp_receive: list[TcpReceiver]


class Counts(TypedDict):
    """Counts that the kernel keeps of a TCP connection; None for one that this kernel does not have."""

    retransmitted_bytes: int | None
    timeouts: int | None


class Seen(TypedDict):
    """The JSON that is printed at the end, by flow number (as text); goodput is also divided into bins of time."""

    sent: dict[str, list[int]]
    received: dict[str, list[tuple[int, int, int]]]
    goodput: dict[str, dict[str, int]]
    finished: dict[str, int]
    connections: dict[str, Counts]
    latest_ns: int


Schedule = Iterator[int]


def schedule(stream: Stream) -> Schedule:
    """Yield the times in nanoseconds since the start at which a stream's packets are to leave.

    They are a constant interval apart, or a Poisson process with that mean interval.
    """
    seed = stream.get("poisson_seed")
    draw = None if seed is None else random.Random(seed)
    due_ns = stream["begin_ns"] + (round(draw.expovariate(1 / stream["interval_ns"])) if draw else 0)
    count = 0
    while due_ns < stream["end_ns"]:
        yield due_ns
        count += 1
        if draw:
            due_ns += round(draw.expovariate(1 / stream["interval_ns"]))
        else:
            due_ns = stream["begin_ns"] + round(count * stream["interval_ns"])


def checksum(data: bytes) -> int:
    """Return the Internet checksum of ``data``."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data[: len(data) & ~1]))
    if len(data) % 2:
        total += data[-1] << 8
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Host:
    """Everything that one host does; ``start_ns`` is known when it runs."""

    def __init__(self, given: Told) -> None:
        self.given = given
        self.start_ns = 0
        # To CLOCK_MONOTONIC from the kernel's time stamps, which are of the other clock.
        self.real_ns = sorted(time.time_ns() - time.monotonic_ns() for _ in range(101))[50]
        self.selector = selectors.SelectSelector()
        self.actions: list[tuple[int, int, Callable[[], None]]] = []
        self.order = 0
        self.sent: dict[int, list[int]] = {}
        self.received: dict[int, list[tuple[int, int, int]]] = {}
        self.goodput: dict[int, dict[int, int]] = {}
        self.finished: dict[int, int] = {}
        self.connections: dict[int, Counts] = {}
        self.latest_ns = 0
        self.open: list[Callable[[], None]] = []
        self.buffer = bytearray(1 << 18)
        for receiver in given["udp_receive"]:
            self.receive_udp(receiver)
        for listener in given["tcp_receive"]:
            self.listen(listener)
        for udp in given["udp_send"]:
            self.stream(udp, self.udp_sender(udp))
        for ping in given["ping"]:
            self.stream(ping, self.pinger(ping))
        for connection in given["tcp_send"]:
            self.at(connection["begin_ns"], self.connecting(connection))

    # ---- Time ----

    def now_ns(self) -> int:
        """Return the time since the start in nanoseconds."""
        return time.monotonic_ns() - self.start_ns

    def at(self, due_ns: int, action: Callable[[], None]) -> None:
        """Schedule ``action`` for the time ``due_ns`` since the start; it is called then, or as soon as possible afterwards."""
        self.order += 1
        heapq.heappush(self.actions, (due_ns, self.order, action))

    def stream(self, stream: Stream, send: Callable[[int, int], None]) -> None:
        """Schedule a stream's packets, each of which calls ``send`` at its time; a late packet leaves at once."""
        times = schedule(stream)
        log = self.sent.setdefault(stream["flow"], [])
        due_ns = 0

        def step() -> None:
            now_ns = self.now_ns()
            self.latest_ns = max(self.latest_ns, now_ns - due_ns)
            with suppress(BlockingIOError):
                send(len(log), now_ns)
                log.append(now_ns)
            plan()

        def plan() -> None:
            nonlocal due_ns
            if (next_ns := next(times, None)) is not None:
                due_ns = next_ns
                self.at(due_ns, step)

        plan()

    def run(self, start_ns: int) -> dict[str, object]:
        """Run all traffic until ``stop_ns``, and return what was seen (:class:`Seen`); keys become text in JSON."""
        self.start_ns = start_ns
        while (now_ns := self.now_ns()) < self.given["stop_ns"]:
            while self.actions and self.actions[0][0] <= now_ns:
                heapq.heappop(self.actions)[2]()
                now_ns = self.now_ns()
            next_ns = min(self.given["stop_ns"], self.actions[0][0] if self.actions else self.given["stop_ns"])
            for key, _ in self.selector.select(max(0.0, (next_ns - self.now_ns()) / 1e9)):
                key.data()
        for close in self.open:
            close()
        return {
            "sent": self.sent,
            "received": self.received,
            "goodput": self.goodput,
            "finished": self.finished,
            "connections": self.connections,
            "latest_ns": self.latest_ns,
        }

    # ---- Probes ----

    def probe_socket(self, kind: int, protocol: int) -> socket.socket:
        """Return a socket with a large buffer whose packets have the times at which the kernel received them."""
        probe = socket.socket(socket.AF_INET, kind, protocol)
        probe.setblocking(False)
        probe.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        with suppress(PermissionError):
            probe.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, PROBE_BUFFER)
        return probe

    def read_probes(self, probe: socket.socket, flow: int, header: Callable[[bytes], int | None]) -> None:
        """Record all probes that arrive on a socket.

        ``header`` returns the offset of a packet's payload, or None for a packet of another program.
        """
        log = self.received.setdefault(flow, [])

        def read() -> None:
            with suppress(BlockingIOError):
                while True:
                    data, extra, _, _ = probe.recvmsg(2048, 64)
                    offset = header(data)
                    if offset is None or len(data) < offset + PROBE.size:
                        continue
                    seconds, nanoseconds = struct.unpack("qq", extra[0][2][:16])
                    there_ns = seconds * 1_000_000_000 + nanoseconds - self.real_ns - self.start_ns
                    sequence, sent_ns = PROBE.unpack_from(data, offset)
                    log.append((sequence, sent_ns, there_ns))

        self.selector.register(probe, selectors.EVENT_READ, read)

    def receive_udp(self, udp: UdpReceiver) -> None:
        """Open a UDP socket for a stream of probes, join its multicast group if it has one, and record the probes that arrive."""
        probe = self.probe_socket(socket.SOCK_DGRAM, 0)
        probe.bind(("", udp["port"]))
        if udp["group"] is not None:
            # By the interface of the default route, the only one.
            membership = socket.inet_aton(udp["group"]) + bytes(4)
            probe.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        self.read_probes(probe, udp["flow"], lambda _: 0)

    def udp_sender(self, udp: UdpStream) -> Callable[[int, int], None]:
        """Return a function that sends the UDP probe with a given sequence number and time in nanoseconds."""
        probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        probe.setblocking(False)
        probe.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, MULTICAST_TTL)
        to, rest = (udp["address"], udp["port"]), bytes(udp["payload_bytes"] - PROBE.size)
        return lambda sequence, now_ns: void(probe.sendto(PROBE.pack(sequence, now_ns) + rest, to))

    def pinger(self, ping: Stream) -> Callable[[int, int], None]:
        """Return a function that sends an ICMP echo request with a sequence number and time; arriving replies are recorded."""
        probe = self.probe_socket(socket.SOCK_RAW, socket.IPPROTO_ICMP)
        probe.setsockopt(SOL_RAW, ICMP_FILTER, struct.pack("=I", 0xFFFFFFFF & ~(1 << ECHO_REPLY)))
        identifier = ping["flow"] & 0xFFFF

        def header(data: bytes) -> int | None:
            begin = 4 * (data[0] & 15)
            its = struct.unpack_from("!BBHH", data, begin)[3] if len(data) >= begin + 8 else None
            return begin + 8 if its == identifier else None

        self.read_probes(probe, ping["flow"], header)
        to, rest = (ping["address"], 0), bytes(ping["payload_bytes"] - PROBE.size)

        def send(sequence: int, now_ns: int) -> None:
            body = PROBE.pack(sequence, now_ns) + rest
            head = struct.pack("!BBHHH", ECHO_REQUEST, 0, 0, identifier, sequence & 0xFFFF)
            head = struct.pack("!BBHHH", ECHO_REQUEST, 0, checksum(head + body), identifier, sequence & 0xFFFF)
            probe.sendto(head + body, to)

        return send

    # ---- TCP ----

    def listen(self, flow: TcpReceiver) -> None:
        """Accept one TCP connection, read from it, and count the bytes that arrive in each bin of time."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if (window := flow["window_bytes"]) is not None:
            # With a buffer of its own size the kernel does not tune it, and the clamp stays.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, max(1 << 16, 4 * window))
            clamp(listener, window)
        listener.bind(("", flow["port"]))
        listener.listen(1)
        bins = self.goodput.setdefault(flow["flow"], {})
        total = 0

        def accept() -> None:
            connection, _ = listener.accept()
            self.selector.unregister(listener)
            connection.setblocking(False)

            def read() -> None:
                nonlocal total
                try:
                    count = connection.recv_into(self.buffer)
                except BlockingIOError:
                    return
                except OSError:
                    count = 0
                now_ns = self.now_ns()
                if window is not None and count > 0:
                    # The kernel forgets it when it learns how large segments are.
                    clamp(connection, window)
                if count > 0:
                    total += count
                    bins[now_ns // self.given["bin_ns"]] = bins.get(now_ns // self.given["bin_ns"], 0) + count
                    if total == flow["transfer_bytes"]:
                        self.finished[flow["flow"]] = now_ns
                else:
                    self.selector.unregister(connection)
                    connection.close()

            self.selector.register(connection, selectors.EVENT_READ, read)

        self.selector.register(listener, selectors.EVENT_READ, accept)

    def connecting(self, flow: TcpSender) -> Callable[[], None]:
        """Return a function that connects and sends until the end or until all bytes are sent."""

        def connect() -> None:
            connection = socket.socket()
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, flow["congestion"].encode())
            connection.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, NOT_SENT_LOW)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(not flow["nagle"]))
            if flow["bytes_per_s"] is not None:
                # The kernel lets no more of it leave, nor sooner: as if the application wrote no faster.
                connection.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, struct.pack("=Q", flow["bytes_per_s"]))
            if flow["mss"] is not None:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, flow["mss"])
            connection.connect_ex((flow["address"], flow["port"]))
            left = flow["transfer_bytes"]

            def write() -> None:
                nonlocal left
                try:
                    sent = connection.send(CHUNK if left is None else CHUNK[:left])
                except BlockingIOError:
                    return
                except OSError:
                    sent, left = 0, 0
                if left is not None:
                    left -= sent
                    if left == 0:
                        self.selector.unregister(connection)
                        with suppress(OSError):
                            connection.shutdown(socket.SHUT_WR)

            def close() -> None:
                self.connections[flow["flow"]] = tcp_counts(connection)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()

            self.open.append(close)
            self.selector.register(connection, selectors.EVENT_WRITE, write)

        return connect


def void(_: object) -> None:
    """Return None and ignore the argument, for use where a function's result is not wanted."""


def clamp(connection: socket.socket, window_bytes: int) -> None:
    """Limit the receive window that a TCP connection advertises to ``window_bytes`` bytes."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, window_bytes)


def tcp_counts(connection: socket.socket) -> Counts:
    """Return the retransmitted bytes and timeouts that the kernel's TCP counts; None for a count that this kernel lacks."""
    raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512)

    def field(form: str, offset: int) -> int | None:
        return int(struct.unpack_from(form, raw, offset)[0]) if len(raw) >= offset + struct.calcsize(form) else None

    return {"retransmitted_bytes": field(*RETRANSMITTED_BYTES), "timeouts": field(*TIMEOUTS)}


def main() -> int:
    """Read the traffic to send and receive from standard input, run it, and print what was seen as JSON."""
    gc.disable()
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
    host = Host(json.loads(sys.stdin.readline()))
    print("ready", flush=True)
    start = sys.stdin.readline()
    if not start:
        return 1
    json.dump(host.run(int(start)), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
