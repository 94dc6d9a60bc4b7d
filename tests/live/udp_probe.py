"""An ordinary program with a socket: sends numbered datagrams to an echo server (RFC 862) until its standard input ends.

Argument: the server's address. A line ``new`` has it open another socket, and say after how many seconds that got an echo. At the
end it says how many echoes did not come, how long it was from the first that was lost to the last, and how late the latest came.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from contextlib import suppress
from threading import Thread

PORT, INTERVAL_S, PATIENCE_S = 7, 0.01, 60.0


def newcomer(server: str) -> float:
    """Return the seconds that a new UDP flow waited for its first echo."""
    began = time.monotonic()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect((server, PORT))
        one.settimeout(0.1)
        while time.monotonic() < began + PATIENCE_S:
            try:
                one.send(b"new")
                one.recv(64)
            except OSError:
                time.sleep(0.05)
                continue
            break
    return time.monotonic() - began


def main() -> None:
    """Send and receive until standard input ends, then print how many echoes were lost, the outage and the slowest echo."""
    server = sys.argv[1]
    flow = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    flow.connect((server, PORT))
    sent: list[float] = []
    late: dict[int, float] = {}
    newcomer(server)
    print("ready", flush=True)
    while True:
        readable, _, _ = select.select([flow, sys.stdin], [], [], INTERVAL_S)
        if sys.stdin in readable:
            if not sys.stdin.readline():
                break
            Thread(target=lambda: print(newcomer(server), flush=True)).start()
        if flow in readable:
            with suppress(OSError):
                number = int.from_bytes(flow.recv(64), "big")
                late[number] = time.monotonic() - sent[number]
        if not sent or time.monotonic() - sent[-1] >= INTERVAL_S:
            sent.append(time.monotonic())
            with suppress(OSError):
                flow.send((len(sent) - 1).to_bytes(8, "big"))
    lost = [number for number in range(len(sent) - 100) if number not in late]
    found = {
        "sent": len(sent),
        "lost": len(lost),
        "outage_ms": (sent[lost[-1]] - sent[lost[0]]) * 1000 + 10 if lost else 0.0,
        "slowest_ms": max(late.values(), default=0.0) * 1000,
    }
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
