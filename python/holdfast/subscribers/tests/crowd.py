"""Many modelled subscribers on one interface, each on a line of its own: ``python -m holdfast.subscribers.tests.crowd``.

Prints a line of JSON when all are online or the patience is over, and another one after each line that it reads.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter

from holdfast.subscribers.dialer import Street
from holdfast.subscribers.subscriber import Account, Subscriber


async def _main(options: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    street = Street(options.interface)
    account = Account(options.user, options.password, redial_s=options.redial_s)
    times: list[float] = []
    hosts: list[Subscriber] = []
    for number in range(options.first, options.first + options.number):
        mac = b"\x02\x03" + number.to_bytes(4, "big")
        tags = (1 + number // 4000, 1 + number % 4000)
        hosts.append(
            street.add(account, mac, seed=number, tags=tags, up=lambda host: times.append(host.up_s - host.dialled_s))
        )
    began = loop.time()
    dialled = 0
    while len(times) < options.number and loop.time() - began < options.patience_s:
        due = min(options.number, int((loop.time() - began) * options.rate) + 1)
        for host in hosts[dialled:due]:
            host.dial()
        dialled = max(dialled, due)
        await asyncio.sleep(0.002)
    seconds = max((host.up_s for host in hosts), default=began) - began
    times.sort()

    def tell() -> None:
        states = Counter(host.state for host in hosts)
        reasons = Counter(host.reason for host in hosts if host.state == "failed")
        found = {
            "states": states,
            "reasons": reasons,
            "lost": sum(host.counts.lost for host in hosts),
            "seconds": seconds,
            "median_s": times[len(times) // 2] if times else None,
            "slowest_s": times[-1] if times else None,
            "addresses": len({host.ipv4 for host in hosts if host.state == "up"}),
        }
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()

    tell()
    while await loop.run_in_executor(None, sys.stdin.readline):
        tell()
    for host in hosts:
        host.hang_up()
    street.close()


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("interface")
    parser.add_argument("--user", required=True)
    parser.add_argument("--password", required=True)
    parser.add_argument("--number", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--patience-s", type=float, default=60.0)
    parser.add_argument("--redial-s", type=float, default=None)
    asyncio.run(_main(parser.parse_args()))


if __name__ == "__main__":
    main()
