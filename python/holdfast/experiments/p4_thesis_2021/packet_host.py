"""The thesis's scripts for its benchmark of headers (Figure 3.3), run as a program of its own. It imports nothing of Holdfast.

``send COUNT INTERVAL_NS LENGTH HEADER`` sends frames of this length from eth0: the header (hexadecimal; all in front of the
payload), then a number, the time, and padding. ``receive COUNT HEADER_BYTES SECONDS`` takes frames at eth0 until so many have
come or so many seconds are over, and prints JSON: for each, its number, the time in it, and the kernel's time of its arrival.
Frames with other headers than ``MARK`` behind the header are not counted. Times are nanoseconds of CLOCK_REALTIME. ``receive``
prints ``ready`` when it begins.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time

ETH_P_ALL = 3
PACKET_OUTGOING = 4
SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35
TIMESPEC = struct.Struct("=qq")
MARK = b"thesis"
BODY = struct.Struct("!6sIq")
BUFFER_BYTES = 64 << 20


def send(count: int, interval_ns: int, length: int, header: bytes) -> None:
    """At a constant rate: what is late is sent at once."""
    padding = bytes(length - len(header) - BODY.size)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind(("eth0", 0))
        start_ns = time.monotonic_ns()
        for number in range(count):
            ahead_ns = start_ns + number * interval_ns - time.monotonic_ns()
            if ahead_ns > 0:
                time.sleep(ahead_ns / 1e9)
            sender.send(header + BODY.pack(MARK, number, time.time_ns()) + padding)


def receive(count: int, header_bytes: int, seconds: float) -> list[tuple[int, int, int]]:
    """Number, time of sending and time of arrival of what comes."""
    found: list[tuple[int, int, int]] = []
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as receiver:
        receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        receiver.bind(("eth0", ETH_P_ALL))
        print("ready", flush=True)
        end = time.monotonic() + seconds
        while len(found) < count and (left := end - time.monotonic()) > 0:
            receiver.settimeout(left)
            try:
                data, ancillary, _, address = receiver.recvmsg(header_bytes + BODY.size, 64)
            except TimeoutError:
                break
            if address[2] == PACKET_OUTGOING or len(data) < header_bytes + BODY.size:
                continue
            mark, number, sent_ns = BODY.unpack_from(data, header_bytes)
            if mark != MARK:
                continue
            for _, kind, value in ancillary:
                if kind == SO_TIMESTAMPNS:
                    whole, nanoseconds = TIMESPEC.unpack(value)
                    found.append((number, sent_ns, whole * 1_000_000_000 + nanoseconds))
    return found


def main() -> None:
    """What the command line says."""
    what, *more = sys.argv[1:]
    if what == "send":
        count, interval_ns, length = map(int, more[:3])
        send(count, interval_ns, length, bytes.fromhex(more[3]))
    else:
        json.dump(receive(int(more[0]), int(more[1]), float(more[2])), sys.stdout)


if __name__ == "__main__":
    main()
