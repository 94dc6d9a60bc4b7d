"""Sends what an attacker sends, at a rate, from one interface: ``python -P -m holdfast.subscribers.tests.storm``.

Frames are made before and sent many at a time (sendmmsg), so that the sender is not what limits them. Prints a line of JSON.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import random
import socket
import struct
import sys
import time
from collections.abc import Callable

FRAMES = 8192
"""That differ; they are sent in turn."""

FIRST_LINE = 100_000
"""Of attackers: no subscriber of :mod:`.crowd` has such a number."""

_AT_ONCE = 128
_PIECE_S = 0.001


class _Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class _Message(ctypes.Structure):
    """A ``struct mmsghdr``."""

    _fields_ = [
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("iov", ctypes.POINTER(_Iovec)),
        ("iov_length", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
        ("sent", ctypes.c_uint),
    ]


def frames(kind: str, gateway: bytes, first_line: int, lines: int, numbers: random.Random) -> list[bytes]:
    """Return the frames of a storm of ``kind`` from ``lines`` lines, numbered from ``first_line`` on as in :mod:`.crowd`.

    Raises KeyError if there is no such kind.
    """
    make: Callable[[], bytes] = {
        "padi": lambda: _frame(b"\xff" * 6, mac(), 0x8863, bytes.fromhex("1109 0000 0004 0101 0000")),
        "forged-cookies": lambda: _frame(
            gateway, mac(), 0x8863, bytes.fromhex("1119 0000 0024 0101 0000 0104 001c") + numbers.randbytes(28)
        ),
        # Of an EtherType that nobody speaks (IEEE Std 802, local experimental): they cost receiving them, and nothing else.
        "unknown": lambda: _frame(gateway, mac(), 0x88B5, numbers.randbytes(46)),
        # Packets into sessions of others: from the wrong line, with the wrong address.
        "spoofed": lambda: _frame(
            gateway, mac(), 0x8864, struct.pack("!HHHH", 0x1100, session(), 22, 0x0021) + _ipv4(numbers.randbytes(4))
        ),
        "truncated": lambda: _frame(
            gateway,
            mac(),
            0x8864,
            (struct.pack("!HHHH", 0x1100, session(), 60, numbers.choice((0xC021, 0xC223, 0x8021, 0x0021, 0x0057))))[
                : numbers.randrange(9)
            ]
            + numbers.randbytes(numbers.randrange(6)),
        ),
    }[kind]

    def mac() -> bytes:
        return b"\x06" + numbers.randbytes(5)

    def session() -> int:
        return numbers.randrange(1, 2000)

    found = []
    for each in range(FRAMES):
        line = first_line + each % lines
        tags = struct.pack("!HHHH", 0x8100, 1 + line // 4000, 0x8100, 1 + line % 4000)
        frame = make()
        found.append(frame[:12] + tags + frame[12:])
    return found


def _frame(destination: bytes, source: bytes, kind: int, body: bytes) -> bytes:
    return destination + source + kind.to_bytes(2, "big") + body


def _ipv4(source: bytes) -> bytes:
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20, 0, 0, 64, 17, 0) + source + bytes((192, 0, 2, 9))
    total = sum(struct.unpack("!10H", head))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return head[:10] + struct.pack("!H", 0xFFFF - total) + head[12:]


def send(interface: str, given: list[bytes], rate: float, seconds: float) -> dict[str, float]:
    """Send frames in turn, ``rate`` per second for ``seconds``; return counts. ``refused``: how often the kernel had no room."""
    libc = ctypes.CDLL(None, use_errno=True)
    buffers = [ctypes.create_string_buffer(each, len(each)) for each in given]
    vectors = (_Iovec * len(given))(*(_Iovec(ctypes.addressof(each), len(each)) for each in buffers))
    messages = (_Message * len(given))()
    for number in range(len(given)):
        messages[number].iov, messages[number].iov_length = ctypes.pointer(vectors[number]), 1
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
        sender.bind((interface, 0))
        began, sent, refused = time.monotonic(), 0, 0
        while (now := time.monotonic() - began) < seconds:
            due = int(now * rate)
            if sent >= due:
                time.sleep(_PIECE_S)
                continue
            at = sent % len(given)
            count = min(due - sent, len(given) - at, _AT_ONCE)
            done = libc.sendmmsg(sender.fileno(), ctypes.byref(messages, at * ctypes.sizeof(_Message)), count, 0)
            if done < 0:
                refused += 1
                time.sleep(_PIECE_S)
            else:
                sent += done
    return {"sent": sent, "per_s": round(sent / seconds), "seconds": seconds, "refused": refused}


def main() -> None:
    """Send the storm of frames that the command line describes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("interface")
    parser.add_argument("kind")
    parser.add_argument("--gateway", type=lambda text: bytes.fromhex(text.replace(":", "")), required=True)
    parser.add_argument("--rate", type=float, default=100_000)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--first-line", type=int, default=FIRST_LINE)
    parser.add_argument("--lines", type=int, default=1)
    options = parser.parse_args()
    made = frames(options.kind, options.gateway, options.first_line, options.lines, random.Random(7))
    sys.stdout.write(json.dumps(send(options.interface, made, options.rate, options.seconds)) + "\n")


if __name__ == "__main__":
    main()
