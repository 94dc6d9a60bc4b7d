"""An ordinary program with a socket: joins a multicast group, counts numbered datagrams, leaves when it is told, counts on.

Nothing of this project is in it. Arguments: group, port, and perhaps a source. It says ``joined``; the first line of
standard input makes it leave, and the second one end, with the numbers received before and after the leave as JSON.
"""

from __future__ import annotations

import ipaddress
import json
import select
import socket
import struct
import sys

IP_ADD_SOURCE_MEMBERSHIP, IP_DROP_SOURCE_MEMBERSHIP = 39, 40


def number(receiver: socket.socket) -> int:
    """Return the number in the next datagram."""
    found: int = struct.unpack("!Q", receiver.recv(64)[:8])[0]
    return found


def main() -> None:
    """Join a group, count datagrams, leave it when told on standard input, count on, and print the numbers."""
    group, port = ipaddress.ip_address(sys.argv[1]), int(sys.argv[2])
    index = socket.if_nametoindex("eth0")
    if group.version == 4:
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        level, join, leave = socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.IP_DROP_MEMBERSHIP
        request = struct.pack("=4s4si", group.packed, bytes(4), index)
        if len(sys.argv) > 3:
            join, leave = IP_ADD_SOURCE_MEMBERSHIP, IP_DROP_SOURCE_MEMBERSHIP
            request = group.packed + bytes(4) + ipaddress.ip_address(sys.argv[3]).packed
    else:
        receiver = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        level, join, leave = socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, socket.IPV6_LEAVE_GROUP
        request = struct.pack("=16si", group.packed, index)
    receiver.bind(("", port))
    receiver.setsockopt(level, join, request)
    print("joined", flush=True)
    seen: list[list[int]] = [[], []]
    left = 0
    while True:
        ready, _, _ = select.select([receiver, sys.stdin], [], [])
        if receiver in ready:
            seen[left].append(number(receiver))
        if sys.stdin in ready:
            sys.stdin.readline()
            if left:
                break
            receiver.setsockopt(level, leave, request)
            # What came before the leave waits in the socket.
            while select.select([receiver], [], [], 0)[0]:
                seen[0].append(number(receiver))
            left = 1
            print("left", flush=True)
    json.dump(seen, sys.stdout)


if __name__ == "__main__":
    main()
