"""One end of bulk TCP connections inside a network namespace, with the kernel's TCP_INFO sampled (see ``tcp.py``).

Run as a program of its own (``serve`` or ``send``), so that its sockets are the namespace's. It imports nothing of Holdfast and
knows no topology. Times are CLOCK_MONOTONIC, in nanoseconds, which all processes of a machine share. It prints one line when it
is ready and one JSON object when it is done.
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import struct
import sys
import time
from contextlib import suppress
from typing import NotRequired, TypedDict

CHUNK = bytes(1 << 16)
SOCKET_BUFFER = 2 << 20
"""More than any window here. Linux acknowledges each segment while it opens its receive window, which takes as long as this is
large."""

NOT_SENT_LOW = 1 << 17
"""So much is always written and not yet sent: the application never holds the connection back, nor hides megabytes."""

INFO = {
    # Name: format and offset in Linux's struct tcp_info (include/uapi/linux/tcp.h).
    "state": ("B", 0),
    "recovery": ("B", 1),
    "mss": ("=I", 16),
    "unacked": ("=I", 24),
    "sacked": ("=I", 28),
    "lost": ("=I", 32),
    "retrans": ("=I", 36),
    "rtt_us": ("=I", 68),
    "ssthresh": ("=I", 76),
    "cwnd": ("=I", 80),
    "bytes_acked": ("=Q", 120),
    "bytes_received": ("=Q", 128),
    "bytes_sent": ("=Q", 200),
    "bytes_retransmitted": ("=Q", 208),
    "timeouts": ("=H", 240),
}
"""The sampled values."""

INFO_BYTES = 242
SENDER_COLUMNS = (
    "recovery",
    "unacked",
    "sacked",
    "lost",
    "retrans",
    "rtt_us",
    "ssthresh",
    "cwnd",
    "bytes_acked",
    "bytes_sent",
    "bytes_retransmitted",
    "timeouts",
)


def tcp_info(connection: socket.socket) -> dict[str, int]:
    """Return the kernel's statistics of a connection (TCP_INFO) by name. Raises OSError if the kernel is older than Linux 6.7."""
    raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512)
    if len(raw) < INFO_BYTES:
        raise OSError(f"this kernel's TCP_INFO has {len(raw)} bytes; {INFO_BYTES} are needed (Linux 6.7 or later)")
    return {name: struct.unpack_from(form, raw, offset)[0] for name, (form, offset) in INFO.items()}


def set_buffer(connection: socket.socket, force: int, ordinary: int) -> None:
    """Set a large socket buffer, beyond the system's limit if that is permitted, else within it."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, force, SOCKET_BUFFER)
    except PermissionError:
        connection.setsockopt(socket.SOL_SOCKET, ordinary, SOCKET_BUFFER)


SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
TCP_NOTSENT_LOWAT = 25


class Samples(TypedDict):
    """Standard output at the end. ``mss``: of a sender."""

    columns: list[str]
    rows: list[list[int]]
    mss: NotRequired[int]


def serve(options: argparse.Namespace) -> Samples:
    """Accept ``flows`` connections, read until all have ended, and return the samples."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    set_buffer(listener, SO_RCVBUFFORCE, socket.SO_RCVBUF)
    listener.bind(("", options.port))
    listener.listen(options.flows)
    print("ready", flush=True)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    buffer = bytearray(1 << 20)
    rows: list[list[int]] = []
    open_connections: dict[socket.socket, int] = {}
    accepted = 0
    next_ns = time.monotonic_ns()
    while accepted < options.flows or open_connections:
        for key, _ in selector.select(max(0.0, (next_ns - time.monotonic_ns()) / 1e9)):
            if key.fileobj is listener:
                connection, (_, port) = listener.accept()
                connection.setblocking(False)
                open_connections[connection] = port
                selector.register(connection, selectors.EVENT_READ)
                accepted += 1
                continue
            connection = key.fileobj  # type: ignore[assignment]
            try:
                more = connection.recv_into(buffer) > 0
            except ConnectionError:
                more = False
            if not more:
                selector.unregister(connection)
                del open_connections[connection]
                connection.close()
        now_ns = time.monotonic_ns()
        if now_ns >= next_ns:
            next_ns = now_ns + options.sample_ns
            for connection, port in open_connections.items():
                rows.append([port, now_ns, tcp_info(connection)["bytes_received"]])
    return {"columns": ["port", "time_ns", "bytes_received"], "rows": rows}


def send(options: argparse.Namespace) -> Samples:
    """Connect at the given times, send data until the end of the run, and return the samples."""
    selector = selectors.DefaultSelector()
    waiting = sorted(options.start_ns, reverse=True)
    rows: list[list[int]] = []
    connections: dict[socket.socket, int] = {}
    print("ready", flush=True)
    next_ns = time.monotonic_ns()
    mss = 0
    while (now_ns := time.monotonic_ns()) < options.stop_ns:
        while waiting and waiting[-1] <= now_ns:
            waiting.pop()
            connection = socket.socket()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, options.congestion.encode())
            connection.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, NOT_SENT_LOW)
            set_buffer(connection, SO_SNDBUFFORCE, socket.SO_SNDBUF)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.setblocking(False)
            connection.connect_ex((options.address, options.port))
            connections[connection] = connection.getsockname()[1]
            selector.register(connection, selectors.EVENT_WRITE)
        due_ns = min([next_ns, options.stop_ns, *waiting[-1:]])
        for key, _ in selector.select(max(0.0, (due_ns - now_ns) / 1e9)):
            connection = key.fileobj  # type: ignore[assignment]
            with suppress(BlockingIOError):
                connection.send(CHUNK)
        now_ns = time.monotonic_ns()
        if now_ns >= next_ns:
            # Behind a delay samples are as far apart as ever, not in a burst.
            next_ns = max(next_ns + options.sample_ns, now_ns)
            for connection, port in connections.items():
                info = tcp_info(connection)
                mss = max(mss, info["mss"])
                if info["state"] == 1:
                    rows.append([port, time.monotonic_ns(), *(info[name] for name in SENDER_COLUMNS)])
    for connection in connections:
        connection.close()
    return {"columns": ["port", "time_ns", *SENDER_COLUMNS], "rows": rows, "mss": mss}


def main() -> int:
    """Run the sender or the receiver that the command line names, and print its samples as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample-ns", type=int, required=True)
    parser.add_argument("--port", type=int, required=True)
    commands = parser.add_subparsers(dest="command", required=True)
    server = commands.add_parser("serve")
    server.add_argument("--flows", type=int, required=True)
    sender = commands.add_parser("send")
    sender.add_argument("--address", required=True)
    sender.add_argument("--congestion", required=True)
    sender.add_argument("--start-ns", type=int, nargs="+", required=True)
    sender.add_argument("--stop-ns", type=int, required=True)
    options = parser.parse_args()
    result = serve(options) if options.command == "serve" else send(options)
    json.dump(result, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
