"""An ordinary multicast sender, or receivers of the kernel, run as a program of its own. It imports nothing of Holdfast.

``send GROUP PORT ADDRESS COUNT INTERVAL_NS PAYLOAD_BYTES``, run in the host's namespace, reads the time to begin from standard
input, sends numbered datagrams, and prints a JSON list of the times at which it sent them.

``receive GROUP PORT NAMESPACE=ADDRESS ...`` joins the group by a socket in each of these namespaces, and sleeps until standard
input has a line, so that it takes no processor time from the network. Then it prints a JSON object of what waits in the sockets: by
namespace, the number of each datagram and the kernel's time of its arrival.

Times are nanoseconds of CLOCK_REALTIME. Both print ``ready`` when they begin. ``ADDRESS`` is the host's own.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path

CLONE_NEWNET = 0x40000000
SO_RCVBUFFORCE, SO_TIMESTAMPNS, SO_MEMINFO = 33, 35, 55
TIMESPEC = struct.Struct("=qq")
DROPS = struct.Struct("=32xI")
"""The place of the drops in what SO_MEMINFO returns."""
NUMBER = struct.Struct("!I")

BUFFER_BYTES = 256 << 20
TTL = 16

PRIORITY = 10
"""The sender's real-time priority (SCHED_FIFO), where that is permitted: it shall be on time whatever else the machine does."""


def send(group: str, port: int, address: str, count: int, interval_ns: int, payload_bytes: int) -> list[int]:
    """Send numbered datagrams to a group, one per ``interval_ns``, late ones at once; return when each was sent, in ns.

    The time to begin is read from standard input.
    """
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    sent = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, TTL)
        padding = bytes(payload_bytes - NUMBER.size)
        print("ready", flush=True)
        start_ns = int(sys.stdin.readline())
        for number in range(count):
            ahead_ns = start_ns + number * interval_ns - time.time_ns()
            if ahead_ns > 0:
                time.sleep(ahead_ns / 1e9)
            sent.append(time.time_ns())
            sender.sendto(NUMBER.pack(number) + padding, (group, port))
    return sent


def member(group: str, port: int, namespace: str, address: str) -> socket.socket:
    """Open a UDP socket in the network namespace ``namespace``, and let it join the group on the interface ``address``.

    Raises :class:`OSError` if that is refused.
    """
    with Path("/var/run/netns", namespace).open("rb") as there:
        if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    receiver.bind(("", port))
    membership = socket.inet_aton(group) + socket.inet_aton(address)
    receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    receiver.setblocking(False)
    return receiver


def waiting(receiver: socket.socket) -> list[tuple[int, int]]:
    """Read all datagrams that wait in a socket; return the number and the arrival time in ns of each.

    Raise OverflowError if the socket's buffer was full and datagrams were dropped.
    """
    if DROPS.unpack(receiver.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, DROPS.size))[0]:
        raise OverflowError("the socket's buffer was full")
    arrivals = []
    with suppress(BlockingIOError):
        while True:
            data, ancillary, _, _ = receiver.recvmsg(NUMBER.size, 64)
            for _, kind, value in ancillary:
                if kind == SO_TIMESTAMPNS:
                    whole, nanoseconds = TIMESPEC.unpack(value)
                    arrivals.append((NUMBER.unpack(data)[0], whole * 1_000_000_000 + nanoseconds))
    return arrivals


def receive(group: str, port: int, places: list[str]) -> dict[str, list[tuple[int, int]]]:
    """Receive in all of ``places`` until standard input has a line; return the arrivals by namespace.

    A place is ``namespace=address``; an arrival is a number and a time in ns.
    """
    receivers = {
        namespace: member(group, port, namespace, at) for namespace, at in (place.split("=") for place in places)
    }
    print("ready", flush=True)
    sys.stdin.readline()
    return {namespace: waiting(receiver) for namespace, receiver in receivers.items()}


def main() -> None:
    """Run the command in ``sys.argv``, ``receive`` or ``send``, and print its result as JSON."""
    what, group, port, *more = sys.argv[1:]
    if what == "receive":
        json.dump(receive(group, int(port), more), sys.stdout)
    else:
        json.dump(send(group, int(port), more[0], *map(int, more[1:])), sys.stdout)


if __name__ == "__main__":
    main()
