"""Sender and receiver of frames for parts in real time, a program of its own. It imports nothing of Holdfast.

``send COUNT INTERVAL_NS FRAME`` sends a frame (hexadecimal) from eth0 at a constant rate, with a mark, a number and the time in its
last 18 bytes. ``receive COUNT LENGTH SECONDS`` takes such frames of that length at eth0 until so many have come or so many seconds
are over, and prints JSON: for each, its number, the time in it, and the kernel's time of its arrival, in nanoseconds of
CLOCK_REALTIME. ``receive`` prints ``ready`` when it begins.
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
MARK = b"frames"
BODY = struct.Struct("!6sIq")
BUFFER_BYTES = 64 << 20


def send(count: int, interval_ns: int, frame: bytes) -> None:
    """Send ``frame`` ``count`` times from eth0, one per ``interval_ns``; a frame that is late is sent at once.

    The last 18 bytes of each are a mark, its number, and the time of sending in nanoseconds.
    """
    front = frame[: -BODY.size]
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind(("eth0", 0))
        start_ns = time.monotonic_ns()
        for number in range(count):
            ahead_ns = start_ns + number * interval_ns - time.monotonic_ns()
            if ahead_ns > 0:
                time.sleep(ahead_ns / 1e9)
            sender.send(front + BODY.pack(MARK, number, time.time_ns()))


def receive(count: int, length: int, seconds: float) -> list[tuple[int, int, int]]:
    """Receive frames of :func:`send` with ``length`` bytes, until ``count`` have come or ``seconds`` are over.

    Return the number, the time of sending and the time of arrival of each, both times in nanoseconds.
    """
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
                data, ancillary, _, address = receiver.recvmsg(length + 1, 64)
            except TimeoutError:
                break
            if address[2] == PACKET_OUTGOING or len(data) != length:
                continue
            mark, number, sent_ns = BODY.unpack(data[-BODY.size :])
            if mark != MARK:
                continue
            for _, kind, value in ancillary:
                if kind == SO_TIMESTAMPNS:
                    whole, nanoseconds = TIMESPEC.unpack(value)
                    found.append((number, sent_ns, whole * 1_000_000_000 + nanoseconds))
    return found


def main() -> None:
    """Run the command in ``sys.argv``: ``send``, or ``receive``, which prints its result as JSON."""
    what, count, number, last = sys.argv[1:]
    if what == "send":
        send(int(count), int(number), bytes.fromhex(last))
    else:
        json.dump(receive(int(count), int(number), float(last)), sys.stdout)


if __name__ == "__main__":
    main()
