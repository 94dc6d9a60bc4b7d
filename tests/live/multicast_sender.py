"""An ordinary program with a socket: sends numbered datagrams to a group until its standard input ends.

Arguments: group, port, datagrams per second.
"""

from __future__ import annotations

import ipaddress
import select
import socket
import struct
import sys


def main() -> None:
    """Send numbered datagrams to a group until standard input ends."""
    group, port, interval_s = ipaddress.ip_address(sys.argv[1]), int(sys.argv[2]), 1 / float(sys.argv[3])
    if group.version == 4:
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 16)
    else:
        sender = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 16)
        sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex("eth0"))
    number = 0
    while not select.select([sys.stdin], [], [], interval_s)[0]:
        sender.sendto(struct.pack("!Q", number) + bytes(56), (str(group), port))
        number += 1


if __name__ == "__main__":
    main()
