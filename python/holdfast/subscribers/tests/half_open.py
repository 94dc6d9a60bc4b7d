"""Hosts that take sessions and say nothing more: ``python -P -m holdfast.subscribers.tests.half_open INTERFACE HOSTS LINES``.

They shake hands as RFC 2516 says, each with the cookie that it was offered. Prints a line of JSON.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time

from holdfast.subscribers.tests.storm import FIRST_LINE

_ETH_P_ALL = 3
_PADI, _PADO, _PADR, _PADS = 0x09, 0x07, 0x19, 0x65
_WAIT_S = 2.0


def main() -> None:
    """Open a PPPoE session for each host in turn, send nothing within the sessions, and print counts as JSON.

    ``offers``, ``sessions`` and ``refused``: the PADOs, the PADSs with a session, and the PADSs without. Ends two seconds after the
    last PADI.
    """
    interface, hosts, lines = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    offers = sessions = refused = 0

    def tags(number: int) -> bytes:
        line = FIRST_LINE + number % lines
        return struct.pack("!HHHH", 0x8100, 1 + line // 4000, 0x8100, 1 + line % 4000)

    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as wire:
        wire.bind((interface, _ETH_P_ALL))
        wire.settimeout(0.002)

        def say(number: int, to: bytes, code: int, body: bytes) -> None:
            mac = b"\x02\x04" + number.to_bytes(4, "big")
            wire.send(to + mac + tags(number) + struct.pack("!HBBHH", 0x8863, 0x11, code, 0, len(body)) + body)

        begun, last = 0, time.monotonic()
        while time.monotonic() - last < _WAIT_S:
            if begun < hosts:
                say(begun, b"\xff" * 6, _PADI, bytes.fromhex("01010000"))
                begun, last = begun + 1, time.monotonic()
            try:
                frame = wire.recv(2048)
            except TimeoutError:
                continue
            at = 12
            while frame[at : at + 2] == b"\x81\x00":
                at += 4
            if frame[:2] != b"\x02\x04" or frame[at : at + 2] != b"\x88\x63":
                continue
            _, code, session, size = struct.unpack_from("!BBHH", frame, at + 2)
            body = frame[at + 8 : at + 8 + size]
            if code == _PADO:
                offers += 1
                say(int.from_bytes(frame[2:6], "big"), frame[6:12], _PADR, body)
            elif code == _PADS:
                sessions += session != 0
                refused += session == 0
    sys.stdout.write(json.dumps({"offers": offers, "sessions": sessions, "refused": refused}) + "\n")


if __name__ == "__main__":
    main()
