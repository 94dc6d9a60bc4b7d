"""Sends UDP packets back to where they came from (RFC 862), for :mod:`.crowd`: ``python -P -m holdfast.subscribers.tests.echo``."""

from __future__ import annotations

import socket
import sys

from holdfast.subscribers.tests.crowd import ECHO_PORT

_BUFFER = 8 << 20


def main() -> None:
    """Send each UDP datagram back to its sender until the process is killed; print "ready" once the socket listens."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        listener.bind(("0.0.0.0", ECHO_PORT))
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            data, sender = listener.recvfrom(2048)
            listener.sendto(data, sender)


if __name__ == "__main__":
    main()
