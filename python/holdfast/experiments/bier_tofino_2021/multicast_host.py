"""An ordinary multicast sender or receiver of the kernel, run as a program of its own in a host's namespace.

It imports nothing of Holdfast. ``send ADDRESS GROUP PORT SECONDS INTERVAL_NS`` sends numbered datagrams; ``receive ADDRESS GROUP
PORT SECONDS`` joins the group, and at the end prints one JSON list with the number of each datagram and the kernel's time of its
arrival, in nanoseconds of CLOCK_REALTIME. Both print ``ready`` when they begin. ``ADDRESS`` is the host's own.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import time
from contextlib import suppress

SO_TIMESTAMPNS = 35
TIMESPEC = struct.Struct("=qq")
NUMBER = struct.Struct("!I")

PAYLOAD_BYTES = 1400
"""Fits the links' MTU with a BIER header and a tunnel's on it."""

TTL = 16


def send(address: str, group: str, port: int, seconds: float, interval_ns: int) -> None:
    """At a constant rate: what is late is sent at once."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, TTL)
        padding = bytes(PAYLOAD_BYTES - NUMBER.size)
        print("ready", flush=True)
        start_ns = time.monotonic_ns()
        for number in range(round(seconds * 1e9) // interval_ns):
            ahead_ns = start_ns + number * interval_ns - time.monotonic_ns()
            if ahead_ns > 0:
                time.sleep(ahead_ns / 1e9)
            sender.sendto(NUMBER.pack(number) + padding, (group, port))


def receive(address: str, group: str, port: int, seconds: float) -> list[tuple[int, int]]:
    """Number and time of each arrival until so many seconds from now."""
    arrivals = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        receiver.bind(("", port))
        membership = socket.inet_aton(group) + socket.inet_aton(address)
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        print("ready", flush=True)
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            receiver.settimeout(left)
            try:
                data, ancillary, _, _ = receiver.recvmsg(PAYLOAD_BYTES, 64)
            except TimeoutError:
                break
            for _, kind, value in ancillary:
                if kind == SO_TIMESTAMPNS:
                    whole, nanoseconds = TIMESPEC.unpack(value)
                    arrivals.append((NUMBER.unpack_from(data)[0], whole * 1_000_000_000 + nanoseconds))
    return arrivals


def main() -> None:
    """What the command line says."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -10)
    what, address, group, port, seconds, *interval_ns = sys.argv[1:]
    if what == "send":
        send(address, group, int(port), float(seconds), int(interval_ns[0]))
    else:
        print(json.dumps(receive(address, group, int(port), float(seconds))))


if __name__ == "__main__":
    main()
