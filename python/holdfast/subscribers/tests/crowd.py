"""Many modelled subscribers on one interface, each on a line of its own: ``python -P -m holdfast.subscribers.tests.crowd``.

Their password is ``HOLDFAST_PASSWORD``'s value. It prints a line of JSON when all are online or the patience is over. Then it takes
a command a line, and answers each with a line: ``state``; ``traffic RATE SERVER``, after which packets go through all sessions in
turn to an echo server (``echo.py``), so many a second in all; ``stop``, which tells what came back. At its input's end all hang up.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import struct
import sys
from collections import Counter
from ipaddress import IPv4Address

from holdfast.subscribers import passwords
from holdfast.subscribers.dialer import Street
from holdfast.subscribers.subscriber import Account, Subscriber

ECHO_PORT = 7
PAYLOAD = 64
_LAST_S = 1.0
"""The time to wait for the last answers."""


class Traffic:
    """Numbered UDP packets through sessions in turn, and their echoes."""

    def __init__(self, hosts: list[Subscriber], rate: float, server: IPv4Address) -> None:
        self._hosts, self._rate = hosts, rate
        self._heads = [head(IPv4Address(host.ipv4), server) for host in hosts]
        self._loop = asyncio.get_running_loop()
        self._sent_s: list[float] = []
        self._back_s: dict[int, float] = {}
        self.doubled = 0
        self.strange = 0
        """Echoes of packets of another session."""
        self._task = self._loop.create_task(self._send())

    async def _send(self) -> None:
        began, count = self._loop.time(), len(self._hosts)
        while True:
            for number in range(len(self._sent_s), int((self._loop.time() - began) * self._rate) + 1):
                which = number % count
                self._sent_s.append(self._loop.time())
                self._hosts[which].send(self._heads[which] + number.to_bytes(8, "big") + bytes(PAYLOAD - 8))
            await asyncio.sleep(0.001)

    def receive(self, which: int, packet: bytes) -> None:
        """Count an echoed packet that session number ``which`` received; ignore all other packets."""
        if len(packet) < 36 or packet[9] != 17 or packet[20:22] != ECHO_PORT.to_bytes(2, "big"):
            return
        number = int.from_bytes(packet[28:36], "big")
        if number % len(self._hosts) != which:
            self.strange += 1
        self.doubled += number in self._back_s
        self._back_s[number] = self._loop.time()

    async def stop(self) -> dict[str, object]:
        """Stop the traffic; return counts of the packets, and the outage.

        ``outage_ms``: the time in ms from the first lost packet to the last.
        """
        self._task.cancel()
        await asyncio.sleep(_LAST_S)
        sent, count = len(self._sent_s), len(self._hosts)
        lost = [number for number in range(sent) if number not in self._back_s]
        delays = sorted(back - self._sent_s[number] for number, back in self._back_s.items())
        return {
            "sent": sent,
            "per_s": round(sent / (self._sent_s[-1] - self._sent_s[0])) if sent > 1 else 0,
            "lost": len(lost),
            "sessions_with_loss": len({number % count for number in lost}),
            "silent_sessions": len(set(range(min(count, sent))) - {number % count for number in self._back_s}),
            "outage_ms": round((self._sent_s[lost[-1]] - self._sent_s[lost[0]]) * 1000, 1) if lost else 0.0,
            "slowest_ms": round(delays[-1] * 1000, 1) if delays else None,
            "median_ms": round(delays[len(delays) // 2] * 1000, 2) if delays else None,
            "doubled": self.doubled,
            "strange": self.strange,
        }


def head(source: IPv4Address, destination: IPv4Address) -> bytes:
    """Return the IPv4 and UDP headers, without a UDP checksum, of a packet with :data:`PAYLOAD` bytes."""
    head = struct.pack("!BBHHHBBH", 0x45, 0, 28 + PAYLOAD, 0, 0, 64, 17, 0) + source.packed + destination.packed
    total = sum(struct.unpack("!10H", head))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    udp = struct.pack("!HHHH", 40_000, ECHO_PORT, 8 + PAYLOAD, 0)
    return head[:10] + struct.pack("!H", 0xFFFF - total) + head[12:] + udp


async def _main(options: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    street = Street(options.interface)
    account = Account(options.user, passwords.password(options.user, None), redial_s=options.redial_s)
    times: list[float] = []
    hosts: list[Subscriber] = []
    traffic: Traffic | None = None

    def add(number: int, which: int) -> Subscriber:
        def packet(data: bytes) -> None:
            if traffic is not None:
                traffic.receive(which, data)

        return street.add(
            account,
            b"\x02\x03" + number.to_bytes(4, "big"),
            seed=number,
            tags=(1 + number // 4000, 1 + number % 4000),
            up=lambda host: times.append(host.up_s - host.dialled_s),
            packet=packet,
        )

    for which in range(options.number):
        hosts.append(add(options.first + which, which))
    began_cpu = _processor_s()
    began = loop.time()
    dialled = 0
    while len(times) < options.number and loop.time() - began < options.patience_s:
        due = min(options.number, int((loop.time() - began) * options.rate) + 1)
        for host in hosts[dialled:due]:
            host.dial()
        dialled = max(dialled, due)
        await asyncio.sleep(0.002)
    seconds = max((host.up_s for host in hosts), default=began) - began
    spent = _processor_s() - began_cpu
    times.sort()

    def state() -> dict[str, object]:
        return {
            "states": Counter(host.state for host in hosts),
            "reasons": Counter(host.reason for host in hosts if host.state == "failed"),
            "lost": sum(host.counts.lost for host in hosts),
            "seconds": round(seconds, 3),
            "median_s": round(times[len(times) // 2], 4) if times else None,
            "slowest_s": round(times[-1], 4) if times else None,
            "addresses": len({host.ipv4 for host in hosts if host.state == "up"}),
            "dual_stack": sum(host.state == "up" and any(host.ipv4) and host.delegated is not None for host in hosts),
            "processor_s": round(spent, 3),
        }

    def tell(found: dict[str, object]) -> None:
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()

    tell(state())
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        words = line.split()
        if words[0] == "traffic":
            traffic = Traffic(hosts, float(words[1]), IPv4Address(words[2]))
        elif words[0] == "stop" and traffic is not None:
            tell(await traffic.stop())
            traffic = None
        else:
            tell(state())
    for host in hosts:
        host.hang_up()
    street.close()


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Run the crowd of subscribers that the command line describes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("interface")
    parser.add_argument("--user", required=True)
    parser.add_argument("--number", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--patience-s", type=float, default=60.0)
    parser.add_argument("--redial-s", type=float, default=None)
    asyncio.run(_main(parser.parse_args()))


if __name__ == "__main__":
    main()
