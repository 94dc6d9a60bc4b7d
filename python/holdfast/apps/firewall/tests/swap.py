"""A rule set of 10,000 rules is replaced while packets come in, and no packet is judged by a mixture of both sets.

``python -P -m holdfast.apps.firewall.tests.swap`` does it in virtual time, ``--live`` on the wall clock: the switch is in a thread
of its own, and another one writes by P4Runtime over gRPC. It prints the rate of packets and exits with 1 if a packet's verdict is
that of neither set.

Each rule is about one destination. The old set allows the even ones and denies the odd ones, the new set the other way round.
Packets to the first :data:`DESTINATIONS` come in turns, so what comes out says of each packet what became of it: even numbers one
after the other, and from one packet on odd ones. A packet that no rule matches, or a number that is missing or too many, was
judged by a mixture.
"""

from __future__ import annotations

import argparse
import ipaddress
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from holdfast import _core
from holdfast.apps.firewall import writer
from holdfast.apps.firewall.entries import Station
from holdfast.apps.firewall.program import compile_firewall
from holdfast.apps.firewall.rules import RuleSet
from holdfast.apps.firewall.tests import packets as make
from holdfast.network import LiveNetwork, Network, SimulatedNetwork
from holdfast.p4runtime.client import Client
from holdfast.topology import PacketGenerator, Topology

RULES = 10_000
DESTINATIONS = 1000
"""The number of destination addresses to which packets go."""

RATE_PER_S = 1_000_000

SOON_MS = 1000.0
"""The time until the first packets come in, so that all generators are there before."""

LIVE_S = 10.0
"""The seconds in which packets come in on the wall clock."""


IN_PORT, OUT_PORT = 1, 2
SOURCE_PORT, DESTINATION_PORT = 1000, 2000
FIREWALL, BEHIND = "s1", "s2"

BASE: dict[str, Any] = {
    "zones": {"inside": {}, "outside": {}},
    "ports": [
        {"port": IN_PORT, "zone": "inside", "senders": "mac"},
        {"port": OUT_PORT, "zone": "outside", "senders": "mac"},
    ],
    "bindings": [
        {"port": IN_PORT, "mac": "02:00:00:00:00:01"},
        {"port": OUT_PORT, "mac": "02:00:00:00:00:02"},
    ],
    "new_flows_per_source": {"per_s": 10**9, "burst": 10**9},
    "log_per_reason": {"per_s": 1, "burst": 1},
}


def destination(number: int) -> str:
    """Return the destination address of the rule with this number."""
    return str(ipaddress.IPv4Address("198.18.0.0") + number)


def rule_set(name: str, parity: int, rules: int) -> RuleSet:
    """Return a rule set with a rule for each destination, which allows numbers of ``parity`` and denies the others."""
    return RuleSet.model_validate(
        {
            **BASE,
            "rules": [
                {
                    "name": f"{name}-{number}",
                    "action": "allow" if number % 2 == parity else "deny",
                    "destination": destination(number),
                    "protocol": "udp",
                    "destination_ports": f"{number % 1000}-{DESTINATION_PORT + number % 7}",
                }
                for number in range(rules)
            ],
        }
    )


def frame(number: int) -> bytes:
    """Return a frame of UDP to the destination with this number."""
    body = make.ipv4("10.0.0.1", destination(number), 17, make.udp(SOURCE_PORT, DESTINATION_PORT))
    return make.ethernet(make.mac(2), make.mac(1), 0x0800, body)


def topology() -> Topology:
    """Build the firewall, and a switch behind it that receives the packets that pass."""
    found = Topology("swap")
    found.add_switch(FIREWALL)
    found.add_switch(BEHIND)
    found.add_link(FIREWALL, BEHIND, a_port=OUT_PORT, b_port=1, rate_bps=100_000_000_000)
    return found


def begin(network: Network, rate_per_s: float, seconds: float) -> tuple[list[int], float]:
    """Add packet generators that run for ``seconds``; return their numbers, and the time in s when the first packet is sent."""
    period_ms = 1000 * DESTINATIONS / rate_per_s
    count = max(1, round(seconds * rate_per_s / DESTINATIONS))
    start_ms = network.now_ps / 1e9 + SOON_MS
    generators = [
        PacketGenerator(
            switch=FIREWALL,
            port=IN_PORT,
            packet=frame(number),
            period_ms=period_ms,
            start_ms=start_ms + period_ms * number / DESTINATIONS,
            count=count,
        )
        for number in range(DESTINATIONS)
    ]
    return [network.add_packet_generator(each) for each in generators], start_ms / 1000


@dataclass(frozen=True)
class Swapped:
    """The counts of packets while a rule set is replaced.

    ``wrong``: verdicts of neither set, in words. ``before`` and ``after``: packets that passed by the old and the new set.
    ``seconds``: of the network's clock, from the first packet that passed to the last.
    """

    injected: int
    before: int
    after: int
    drops: dict[str, int]
    wrong: list[str]
    seconds: float
    writing_s: float

    @property
    def per_s(self) -> float:
        """The packets per second that entered the firewall."""
        return self.injected / self.seconds


def judged(passed: Sequence[int]) -> tuple[int, int, list[str]]:
    """Return (packets passed by the old set, by the new set, contradictions) for destination numbers in the order of arrival.

    A contradiction is a sentence about two successive packets that the sets do not explain: some packet between them was wrongly
    passed or dropped.
    """
    wrong = []
    change = next((i for i, number in enumerate(passed) if number % 2), len(passed))
    for i, (one, following) in enumerate(pairwise(passed), 1):
        steps = (1, 3) if i == change else (2,)
        if (following - one) % DESTINATIONS not in steps:
            wrong.append(f"packet {i} that passed is to {following}, after one to {one}")
    return change, len(passed) - change, wrong


class _Writer(writer.FirewallWriter):
    """Keeps the rule set of the firewall."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, bytes(32))

    def activate(self, rules: RuleSet) -> None:
        """Write a rule set with its ports and bindings, and make it the active set."""
        stations = [Station(each.port, each.mac) for each in rules.bindings]
        self.replace(rules, list(rules.ports), stations)


def _programs() -> dict[str, _core.Program]:
    return {
        FIREWALL: compile_firewall("bridged", {"WAY_BITS": "12"}),
        BEHIND: _core.Program.compile(str(Path(__file__).with_name("drop.p4"))),
    }


def _numbers(path: Path) -> tuple[list[int], float]:
    """Return the destination numbers of a capture's packets, and the seconds from the first packet to the last.

    All packets must be as long as :func:`frame` makes them. Raise ValueError for other captures.
    """
    frame_bytes, file_header, record_header, address = len(frame(0)), 24, 16, 30
    records = np.fromfile(path, np.uint8, offset=file_header).reshape(-1, record_header + frame_bytes)
    lengths = np.ascontiguousarray(records[:, 8:12]).view("<u4")
    if (lengths != frame_bytes).any():
        raise ValueError(f"{path} has packets of other lengths")
    at = record_header + address
    numbers = np.ascontiguousarray(records[:, at : at + 4]).view(">u4").ravel().astype(np.int64)
    found: list[int] = (numbers - int(ipaddress.IPv4Address(destination(0)))).tolist()
    times = np.ascontiguousarray(records[[0, -1], :8]).view("<u4").astype(np.int64)
    (first_s, first_ns), (last_s, last_ns) = times.tolist()
    return found, last_s - first_s + (last_ns - first_ns) / 1e9


def _watched(
    network: Network,
    path: Path,
    generators: Sequence[int],
    writing_s: float,
    dropped: dict[str, tuple[int, int]] | None = None,
) -> Swapped:
    passed, seconds = _numbers(path)
    before, after, wrong = judged(passed)
    if not before or not after:
        wrong.append(f"packets did not come in while rules were replaced: {before} passed before, {after} after")
    counted = writer.drops(network.clients[FIREWALL]) if dropped is None else dropped
    drops = {reason: packets for reason, (packets, _) in counted.items()}
    injected = sum(map(network.packets_generated, generators))
    wrong += [f"{count} packets were dropped as {reason}" for reason, count in drops.items() if reason != "denied"]
    if (lost := injected - len(passed) - drops.get("denied", 0)) != 0:
        wrong.append(f"of {injected} packets {lost} neither passed nor were denied")
    return Swapped(injected, before, after, drops, wrong, seconds, writing_s)


def simulated(folder: Path, *, rules: int = RULES, rate_per_s: float = RATE_PER_S, batch_ms: float = 1.0) -> Swapped:
    """Replace the rule set in virtual time, which advances ``batch_ms`` before each batch of the new set; return the outcome."""
    # Entries are written and deleted, one batch makes the set the active one, and there is time before and behind.
    seconds = (2 * math.ceil(rules / writer.CHUNK) + 5) * batch_ms / 1000
    network = SimulatedNetwork(topology(), _programs(), [])
    client = network.clients[FIREWALL]
    keeper = _Writer(client)
    keeper.activate(rule_set("old", 0, rules))
    path = folder / "passed.pcap"
    network.capture(FIREWALL, OUT_PORT, path)
    generators, start_s = begin(network, rate_per_s, seconds)
    now_s = start_s + batch_ms / 1000
    network.run(now_s)
    plain = client.batch

    def batch(*arguments: Any, **more: Any) -> AbstractContextManager[Any]:
        nonlocal now_s
        now_s += batch_ms / 1000
        network.run(now_s)
        return plain(*arguments, **more)

    client.batch = batch  # type: ignore[assignment, method-assign]
    began = time.monotonic()
    keeper.activate(rule_set("new", 1, rules))
    writing_s = time.monotonic() - began
    network.run(start_s + seconds + 0.001)
    return _watched(network, path, generators, writing_s)


@contextmanager
def _temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="holdfast-swap-") as folder:
        yield Path(folder)


def _prefer_network() -> None:
    """Give the network's thread a real-time priority (SCHED_FIFO) if the system permits it, as that thread is measured."""
    for task in Path("/proc/self/task").iterdir():
        if (task / "comm").read_text(encoding="utf-8").strip() == "holdfast-net":
            with suppress(OSError):
                os.sched_setscheduler(int(task.name), os.SCHED_FIFO, os.sched_param(20))


def live(folder: Path, *, rules: int = RULES, rate_per_s: float = RATE_PER_S, seconds: float = LIVE_S) -> Swapped:
    """Replace the rule set on the wall clock, from this thread, while the network's thread moves packets; return the outcome.

    Packets come for ``seconds`` or longer.
    """
    path = folder / "passed.pcap"
    with LiveNetwork(topology(), _programs(), [], interfaces={}) as network:
        _prefer_network()
        keeper = _Writer(network.clients[FIREWALL])
        keeper.activate(rule_set("old", 0, rules))
        network.capture(FIREWALL, OUT_PORT, path)
        new = rule_set("new", 1, rules)
        generators, start_s = begin(network, rate_per_s, seconds)
        network.wait_until(start_s + 0.1)
        began = time.monotonic()
        keeper.activate(new)
        writing_s = time.monotonic() - began
        planned = round(seconds * rate_per_s)
        while sum(map(network.packets_generated, generators)) < planned:
            time.sleep(0.01)
        time.sleep(0.2)
        drops = writer.drops(network.clients[FIREWALL])
    return _watched(network, path, generators, writing_s, drops)


def main(arguments: list[str] | None = None) -> int:
    """Replace the rule set under load, simulated or ``--live``, and print the counts; return 1 if a verdict was wrong, else 0."""
    parser = argparse.ArgumentParser(prog="python -P -m holdfast.apps.firewall.tests.swap", description=__doc__)
    parser.add_argument("--live", action="store_true", help="on the wall clock, over gRPC")
    parser.add_argument("--rules", type=int, default=RULES)
    parser.add_argument("--packets-per-s", type=float, default=RATE_PER_S)
    given = parser.parse_args(arguments)
    if given.rules < DESTINATIONS:
        parser.error(f"--rules must be at least {DESTINATIONS}")
    with _temporary() as folder:
        found = (live if given.live else simulated)(folder, rules=given.rules, rate_per_s=given.packets_per_s)
    print(
        f"{found.injected} packets in {found.seconds:.3f} s ({found.per_s:,.0f}/s): {found.before} passed by the old rules, "
        f"{found.after} by the new ones, drops {found.drops}; the new rules were written in {found.writing_s:.2f} s"
    )
    for line in found.wrong[:20]:
        print(line, file=sys.stderr)
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
