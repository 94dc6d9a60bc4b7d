"""Opens a packet socket on an interface and hands it to the process that started this one: ``packet_socket.py eth0 FD``.

Run as a program of its own in a host's network namespace; ``FD`` is one end of a pair of Unix sockets. It needs the standard
library alone.
"""

from __future__ import annotations

import socket
import sys

_ETH_P_ALL = 3


def main(interface: str, descriptor: str) -> None:
    """Open a packet socket on ``interface``, and send it to the parent process over its Unix socket ``descriptor``."""
    with (
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL)) as opened,
        socket.socket(fileno=int(descriptor)) as owner,
    ):
        opened.bind((interface, 0))
        socket.send_fds(owner, [b"."], [opened.fileno()])


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except OSError as error:
        sys.exit(str(error))
