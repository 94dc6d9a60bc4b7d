"""A rule set of 10,000 rules is replaced while packets come in, and no packet is judged by a mixture of both sets.

``python -m holdfast.apps.firewall.tests.swap`` does it in virtual time, ``--live`` on the wall clock: the switch is in a thread
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
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from holdfast import _core
from holdfast.apps.firewall import writer
from holdfast.apps.firewall.entries import Station
from holdfast.apps.firewall.program import compile_firewall
from holdfast.apps.firewall.rules import RuleSet
from holdfast.apps.firewall.tests import packets as make
from holdfast.apps.router import compile_router
from holdfast.network import LiveNetwork, Network, SimulatedNetwork
from holdfast.p4runtime.client import Client
from holdfast.topology import Topology

RULES = 10_000
DESTINATIONS = 1000
"""Those that packets go to."""

RATE_PER_S = 1_000_000

START_MS = 10_000.0
"""Until then the first rule set is written."""

LIVE_S = 5.0
"""For which packets come in on the wall clock."""


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
    """What a rule is about."""
    return str(ipaddress.IPv4Address("198.18.0.0") + number)


def rule_set(name: str, parity: int, rules: int) -> RuleSet:
    """A rule for each destination; numbers of the parity are allowed."""
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
    """A packet to a destination."""
    body = make.ipv4("10.0.0.1", destination(number), 17, make.udp(SOURCE_PORT, DESTINATION_PORT))
    return make.ethernet(make.mac(2), make.mac(1), 0x0800, body)


def topology(rate_per_s: float, seconds: float) -> Topology:
    """The firewall between generators, which make packets for so many seconds, and a switch that takes what passes."""
    found = Topology("swap")
    found.add_switch(FIREWALL)
    found.add_switch(BEHIND)
    found.add_link(FIREWALL, BEHIND, a_port=OUT_PORT, b_port=1, rate_bps=100_000_000_000)
    period_ms = 1000 * DESTINATIONS / rate_per_s
    count = max(1, round(seconds * rate_per_s / DESTINATIONS))
    for number in range(DESTINATIONS):
        start_ms = START_MS + period_ms * number / DESTINATIONS
        found.add_packet_generator(
            FIREWALL, IN_PORT, frame(number), period_ms=period_ms, start_ms=start_ms, count=count
        )
    return found


@dataclass(frozen=True)
class Swapped:
    """What became of packets.

    ``wrong``: verdicts of neither set, in words. ``before`` and ``after``: packets that passed by the old and the new set.
    ``seconds``: of the network's clock, from the first packet to the last.
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
        """Packets that came in."""
        return self.injected / self.seconds


def judged(passed: Sequence[int]) -> tuple[int, int, list[str]]:
    """How many passed by the old and by the new set, and what contradicts both, of the numbers that came out in their order."""
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
        """Makes a set the active one."""
        stations = [Station(each.port, each.mac) for each in rules.bindings]
        self.replace(rules, list(rules.ports), stations)


def _programs() -> dict[str, _core.Program]:
    return {FIREWALL: compile_firewall("bridged", {"WAY_BITS": "12"}), BEHIND: compile_router()}


def _watched(
    network: Network,
    path: Path,
    writing_s: float,
    seconds: float,
    dropped: dict[str, tuple[int, int]] | None = None,
) -> Swapped:
    frames = (data for _, data in _core.read_pcap(path))
    first = int(ipaddress.IPv4Address(destination(0)))
    passed = [int.from_bytes(data[30:34], "big") - first for data in frames if data[23:24] == b"\x11"]
    before, after, wrong = judged(passed)
    counted = writer.drops(network.clients[FIREWALL]) if dropped is None else dropped
    drops = {reason: packets for reason, (packets, _) in counted.items()}
    injected = sum(map(network.packets_generated, network.generator_ids))
    wrong += [f"{count} packets were dropped as {reason}" for reason, count in drops.items() if reason != "denied"]
    if (lost := injected - len(passed) - drops.get("denied", 0)) != 0:
        wrong.append(f"of {injected} packets {lost} neither passed nor were denied")
    return Swapped(injected, before, after, drops, wrong, seconds, writing_s)


def simulated(folder: Path, *, rules: int = RULES, rate_per_s: float = RATE_PER_S, batch_ms: float = 1.0) -> Swapped:
    """In virtual time, which goes on by ``batch_ms`` before each of the batches in which the new set is written."""
    # Entries are written and deleted, one batch makes the set the active one, and there is time before and behind.
    seconds = (2 * math.ceil(rules / writer.CHUNK) + 5) * batch_ms / 1000
    network = SimulatedNetwork(topology(rate_per_s, seconds), _programs(), [])
    client = network.clients[FIREWALL]
    keeper = _Writer(client)
    keeper.prepare(old := rule_set("old", 0, rules))
    keeper.activate(old)
    path = folder / "passed.pcap"
    network.capture(FIREWALL, OUT_PORT, path)
    now_s = START_MS / 1000 + batch_ms / 1000
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
    network.run(START_MS / 1000 + seconds + 0.001)
    return _watched(network, path, writing_s, seconds)


@contextmanager
def _temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="holdfast-swap-") as folder:
        yield Path(folder)


def live(folder: Path, *, rules: int = RULES, rate_per_s: float = RATE_PER_S, seconds: float = LIVE_S) -> Swapped:
    """On the wall clock: this thread writes while the network's thread moves packets, for so many seconds or longer."""
    path = folder / "passed.pcap"
    with LiveNetwork(topology(rate_per_s, seconds), _programs(), [], interfaces={}) as network:
        keeper = _Writer(network.clients[FIREWALL])
        keeper.prepare(old := rule_set("old", 0, rules))
        keeper.activate(old)
        if network.now_ps / 1e9 > START_MS:
            raise RuntimeError("the first rule set was not there in time")
        network.capture(FIREWALL, OUT_PORT, path)
        new = rule_set("new", 1, rules)
        network.wait_until(START_MS / 1000 + 0.1)
        began = time.monotonic()
        keeper.activate(new)
        writing_s = time.monotonic() - began
        planned = round(seconds * rate_per_s)
        while sum(map(network.packets_generated, network.generator_ids)) < planned:
            time.sleep(0.01)
        ended_s = network.now_ps / 1e12
        time.sleep(0.2)
        drops = writer.drops(network.clients[FIREWALL])
    return _watched(network, path, writing_s, ended_s - START_MS / 1000, drops)


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m holdfast.apps.firewall.tests.swap", description=__doc__)
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
