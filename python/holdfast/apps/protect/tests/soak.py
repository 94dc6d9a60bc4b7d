"""The soak of 1+1 protection: many connections under traffic for long, single paths failing at random, and what was promised of it.

``python -P -m holdfast.apps.protect.tests.soak --connections 64 --packets-per-s 50 --duration-s 3600`` prints a table, and exits
with 1 if a promise was broken. Time is virtual, and a seed's soak is always the same. The promises about the order of packets are
in :func:`promises`; failures of both paths at once are not drawn, as nothing is promised of them.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

from holdfast import SimulatedNetwork, UdpStream
from holdfast.apps.protect.acceptance import Acceptance
from holdfast.apps.protect.connection import Connection
from holdfast.apps.protect.controller import ProtectController
from holdfast.apps.protect.health import Alarm, LatentErrorDetection
from holdfast.apps.protect.program import ROUTE_TABLE, compile_protect
from holdfast.errors import HoldfastError
from holdfast.parameters import PS_PER_S
from holdfast.topology import Topology

PLANES = 2
"""Transit nodes: path ``k`` of every connection leads over the ``k``-th."""

LINK_DELAY_MS = 0.01
"""The delay of every link. A host's must not be zero: the network looks ahead by this time (`net::network::visit`)."""
REACTION_MS = 0.1
MTU = 1600
PAYLOAD_BYTES = 100
NODE_FAILURES = 0.1
"""The share of failures that are of a transit node: one path of all connections at once."""

MEMORY_STEPS = 60
"""The least number of samples of the memory; there are more in runs that take longer."""
MEMORY_SAMPLES = 600
MEMORY_SLACK_BYTES = 8 << 20
"""The growth of memory that is still called flat: allocators round up."""
LOG_BYTES = 32
"""The memory of one packet in a log, which is what a growth of memory is told from."""

STEP_S = 0.5
"""The machine's time in seconds between two questions whether to continue."""

_TRIES = 200
"""Draws per failure before the duration is called too short for so many."""


@dataclass(frozen=True)
class Soak:
    """The parameters of a run. ``slower_us``: the additional delay of the second path."""

    connections: int = 64
    packets_per_s: float = 50
    duration_s: float = 3600
    acceptance: Acceptance = field(default_factory=Acceptance)
    failures: int = 500
    latent_errors: int = 50
    period_ms: float = 2000
    slower_us: float = 0
    seed: int = 1

    @property
    def side(self) -> int:
        """The number of ingress nodes, which is also that of egress nodes.

        Each pair of them is a connection, until there are enough.
        """
        return math.isqrt(self.connections - 1) + 1

    @property
    def guard_s(self) -> float:
        """The shortest time in seconds between failures of different paths, so that packets that are on their way arrive."""
        return 2 * (PLANES * LINK_DELAY_MS / 1e3 + self.slower_us / 1e6)

    def topology(self) -> Topology:
        """Build the network: host ``h<c>`` sends to ``g<c>``, from ``a<i>`` over each ``p<k>`` to ``z<j>``."""
        t = Topology("soak")
        for c in range(1, self.connections + 1):
            t.add_host(f"h{c}")
            t.add_host(f"g{c}")
        for name in (f"{kind}{i}" for kind in "az" for i in range(1, self.side + 1)):
            t.add_switch(name)
        fast: dict[str, float | int] = {"rate_bps": 400_000_000_000, "queue_bytes": 10_000_000}
        for k in range(1, PLANES + 1):
            t.add_switch(f"p{k}")
            for i in range(1, self.side + 1):
                delay_ms = LINK_DELAY_MS + (self.slower_us / 1e3 if k == PLANES else 0)
                t.add_link(f"a{i}", f"p{k}", delay_ms=delay_ms, cost=k, **fast)
                t.add_link(f"p{k}", f"z{i}", delay_ms=LINK_DELAY_MS, cost=k, **fast)
        for c in range(self.connections):
            ingress, egress = self.ends(c)
            t.add_link(f"h{c + 1}", f"a{ingress}", delay_ms=LINK_DELAY_MS, **fast)
            t.add_link(f"g{c + 1}", f"z{egress}", delay_ms=LINK_DELAY_MS, **fast)
        return t

    def ends(self, connection: int) -> tuple[int, int]:
        """Return the numbers of the ingress and the egress node of ``connection``."""
        return connection // self.side + 1, connection % self.side + 1


@dataclass(frozen=True)
class Failure:
    """A failure of a link or a node, from ``begin_s`` to ``end_s``."""

    element: str
    begin_s: float
    end_s: float


@dataclass(frozen=True)
class LatentError:
    """Path ``path`` of a connection, both counted from 0, loses everything while all ports are up."""

    connection: int
    path: int
    begin_s: float
    end_s: float


class Plan:
    """Failures and latent errors, drawn so that no connection ever lacks both paths.

    A connection with a latent error has neither failures meanwhile: a path that is known to be down is not silently so.
    """

    def __init__(self, soak: Soak) -> None:
        self._soak = soak
        self._rng = random.Random(f"soak {soak.seed}")
        self._busy: dict[tuple[int, int], list[tuple[float, float, str]]] = {
            (c, k): [] for c in range(soak.connections) for k in range(PLANES)
        }
        self.latent_errors = [self._latent_error() for _ in range(soak.latent_errors)]
        self.failures = [self._failure() for _ in range(soak.failures)]

    def _latent_error(self) -> LatentError:
        soak, rng, period_s = self._soak, self._rng, self._soak.period_ms / 1e3
        for _ in range(_TRIES):
            c, k = rng.randrange(soak.connections), rng.randrange(PLANES)
            begin_s = rng.uniform(period_s, soak.duration_s - 5 * period_s)
            end_s = begin_s + rng.uniform(1.2, 2.5) * period_s
            reserved = begin_s - soak.guard_s, end_s + 2 * period_s
            both = [(c, path) for path in range(PLANES)]
            if begin_s > 0 and all(self._is_free(it, *reserved) for it in both):
                for it in both:
                    self._busy[it].append((*reserved, "latent"))
                return LatentError(c, k, begin_s, end_s)
        raise HoldfastError(f"{soak.duration_s:g} s are too short for {soak.latent_errors} latent errors")

    def _failure(self) -> Failure:
        soak, rng = self._soak, self._rng
        mean_s = soak.duration_s / soak.failures
        for _ in range(_TRIES):
            element, k = self._element()
            begin_s = rng.uniform(0, soak.duration_s)
            end_s = begin_s + rng.expovariate(1 / mean_s)
            hit = [c for c in range(soak.connections) if element in self._elements(c, k)]
            reserved = begin_s - soak.guard_s, end_s + soak.guard_s
            others = ((c, path) for c in hit for path in range(PLANES) if path != k)
            same = ((c, k) for c in hit)
            if (
                end_s < soak.duration_s
                and all(self._is_free(it, *reserved) for it in others)
                and all(self._is_free(it, *reserved, {element, "latent"}) for it in same)
            ):
                for c in hit:
                    self._busy[c, k].append((*reserved, element))
                return Failure(element, begin_s, end_s)
        raise HoldfastError(f"{soak.duration_s:g} s are too short for {soak.failures} failures of single paths")

    def _element(self) -> tuple[str, int]:
        k, i = self._rng.randrange(PLANES), self._rng.randrange(self._soak.side) + 1
        if self._rng.random() < NODE_FAILURES:
            return f"p{k + 1}", k
        return (f"a{i}-p{k + 1}" if self._rng.random() < 0.5 else f"p{k + 1}-z{i}"), k

    def _elements(self, connection: int, k: int) -> tuple[str, str, str]:
        ingress, egress = self._soak.ends(connection)
        return f"a{ingress}-p{k + 1}", f"p{k + 1}", f"p{k + 1}-z{egress}"

    def _is_free(self, path: tuple[int, int], begin_s: float, end_s: float, of: set[str] | None = None) -> bool:
        return not any(
            begin < end_s and begin_s < end and (of is None or what in of) for begin, end, what in self._busy[path]
        )


@dataclass
class Outcome:
    """The outcome. Times to report count from the last packet that the path brought."""

    soak: Soak
    parts: int = 1
    """The number of networks whose outcomes are summed here."""
    ended_s: float = 0.0
    """Virtual time when traffic ended; of several networks the earliest, as for the others the sum is what counts."""
    sent: int = 0
    delivered: int = 0
    lost: int = 0
    duplicated: int = 0
    undecided: int = 0
    reordered: int = 0
    failures: int = 0
    copies_lost: int = 0
    """Copies that no egress got: losses by failures and latent errors."""
    latent_errors: int = 0
    reported_ms: list[float] = field(default_factory=list)
    unreported: int = 0
    not_cleared: int = 0
    false_alarms: int = 0
    memory_first: float = 0.0
    """Median of resident bytes in the first third of the time."""
    memory_last: float = 0.0
    """Median of resident bytes in the last third of the time."""
    wall_s: float = 0.0
    processor_s: float = 0.0

    def add(self, other: Outcome) -> None:
        """Add the counts of another part of the soak to these counts."""
        for name in (
            "parts", "sent", "delivered", "lost", "duplicated", "undecided", "reordered", "failures", "copies_lost",
            "latent_errors", "unreported", "not_cleared", "false_alarms", "memory_first", "memory_last", "processor_s",
        ):  # fmt: skip
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.reported_ms += other.reported_ms
        self.ended_s = min(self.ended_s, other.ended_s)
        self.wall_s = max(self.wall_s, other.wall_s)


class Memory:
    """Resident bytes over virtual time, in a bounded number of samples."""

    def __init__(self) -> None:
        self._samples: list[tuple[float, int]] = []

    def sample(self, now_s: float) -> None:
        """Record the resident memory of the process at the virtual time ``now_s``."""
        self._samples.append((now_s, resident_bytes()))
        if len(self._samples) > MEMORY_SAMPLES:
            del self._samples[::2]

    def thirds(self) -> tuple[float, float]:
        """Return the median memory in bytes of the first and of the last third of the time."""
        end_s = self._samples[-1][0]
        first = [it for now_s, it in self._samples if now_s <= end_s / 3] or [self._samples[0][1]]
        last = [it for now_s, it in self._samples if now_s >= end_s * 2 / 3]
        return median(first), median(last)


def resident_bytes() -> int:
    """Return the resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Run:
    """One soak in a network."""

    def __init__(self, soak: Soak) -> None:
        self.soak = soak
        self.plan = Plan(soak)
        self.outcome = Outcome(soak)
        self.controller = ProtectController(
            reaction_delay_ms=REACTION_MS,
            mtu=MTU,
            acceptance=soak.acceptance,
            latent_errors=LatentErrorDetection(
                period_ms=soak.period_ms,
                reset_period_ms=max(30_000, soak.period_ms),
                delay_difference_ms=max(10, soak.slower_us / 1e3),
            ),
        )
        self.network = SimulatedNetwork(soak.topology(), compile_protect(), [self.controller], seed=soak.seed)
        with self.controller.together():
            self.connections = [self.controller.protect_hosts(f"h{c}", f"g{c}") for c in range(1, soak.connections + 1)]
        rng = random.Random(f"starts {soak.seed}")
        self.flows = [
            self.network.add(
                UdpStream(
                    source=f"h{c}",
                    destination=f"g{c}",
                    packets_per_s=soak.packets_per_s,
                    payload_bytes=PAYLOAD_BYTES,
                    start_s=rng.uniform(0, 1 / soak.packets_per_s),
                    stop_s=soak.duration_s,
                    log_packets=False,
                )
            )
            for c in range(1, soak.connections + 1)
        ]
        for failure in self.plan.failures:
            fail = self.network.set_link if "-" in failure.element else self.network.set_node
            fail(failure.element, up=False, at_s=failure.begin_s)
            fail(failure.element, up=True, at_s=failure.end_s)
        for error in self.plan.latent_errors:
            self._schedule(error)

    def _schedule(self, error: LatentError) -> None:
        """Schedule a latent error: a path's route is deleted at the transit node at ``begin_s`` and inserted at ``end_s``."""
        connection = self.connections[error.connection]
        client = self.network.clients[connection.paths[error.path].nodes[1]]
        key = {"dst_addr": f"{connection.addresses[error.path]}/32"}
        (entry,) = client.read_table(ROUTE_TABLE, key)
        self.network.call_later(error.begin_s * 1e3, partial(client.delete, ROUTE_TABLE, key))
        self.network.call_later(error.end_s * 1e3, partial(client.insert, ROUTE_TABLE, key, entry.action, entry.params))

    def run(self, goes_on: Callable[[float], bool] = lambda _: True) -> Outcome:
        """Run the soak to its end, and a little longer for packets on their way, and return the outcome.

        ``goes_on`` is called with the virtual time in s, some times per second, and ends the run by returning False.
        """
        soak, outcome, memory = self.soak, self.outcome, Memory()
        start, start_processor = time.monotonic(), time.process_time()
        memory.sample(0.0)
        step_s, now_s = soak.duration_s / 1000, 0.0
        while now_s < soak.duration_s and goes_on(now_s):
            before = time.monotonic()
            now_s = min(soak.duration_s, now_s + step_s)
            self.network.run(now_s)
            memory.sample(now_s)
            # The length of the steps changes nothing in a run.
            took_s = time.monotonic() - before
            step_s = min(soak.duration_s / MEMORY_STEPS, step_s * min(2.0, STEP_S / max(took_s, STEP_S / 4)))
        if now_s < soak.duration_s:
            for flow in self.flows:
                self.network.end_flow(flow)
        outcome.ended_s = now_s
        self.network.run(now_s + max(0.01, soak.guard_s + 1 / soak.packets_per_s))
        outcome.wall_s = time.monotonic() - start
        outcome.processor_s = time.process_time() - start_processor
        outcome.memory_first, outcome.memory_last = memory.thirds()
        outcome.failures = sum(it.begin_s < now_s for it in self.plan.failures)
        for flow in self.flows:
            statistics = self.network.statistics(flow)
            for name in ("sent", "delivered", "lost", "duplicated", "undecided", "reordered"):
                setattr(outcome, name, getattr(outcome, name) + getattr(statistics, name))
        counted = [self.controller.statistics(connection) for connection in self.connections]
        brought = sum(it.accepted_packets + it.discarded_packets for it in counted)
        outcome.copies_lost = PLANES * sum(it.protected_packets for it in counted) - brought
        self._judge_alarms()
        return outcome

    def _judge_alarms(self) -> None:
        """Match alarms with latent errors, and count unmatched alarms as false.

        Latent errors too short for an alarm are not judged.
        """
        left, outcome, period_s = list(self.controller.alarms), self.outcome, self.soak.period_ms / 1e3
        for error in self.plan.latent_errors:
            connection = self.connections[error.connection]
            silent_s = error.begin_s + LINK_DELAY_MS / 1e3
            raised = self._take(left, connection, error.path, True, error.begin_s, error.end_s)
            taken_back = self._take(left, connection, error.path, False, error.end_s, error.end_s + 2 * period_s)
            if outcome.ended_s < silent_s + period_s:
                continue
            outcome.latent_errors += 1
            if raised is None:
                outcome.unreported += 1
                continue
            outcome.reported_ms.append((raised.time_ps / PS_PER_S - silent_s) * 1e3)
            if taken_back is None and outcome.ended_s >= error.end_s + 2 * period_s:
                outcome.not_cleared += 1
        outcome.false_alarms = len(left)

    @staticmethod
    def _take(
        alarms: list[Alarm], connection: Connection, path: int, raised: bool, after_s: float, until_s: float
    ) -> Alarm | None:
        for alarm in alarms:
            what = (alarm.connection, alarm.path, alarm.nodes, alarm.raised)
            if what == (str(connection), path + 1, connection.paths[path].nodes, raised) and (
                after_s < alarm.time_ps / PS_PER_S <= until_s
            ):
                alarms.remove(alarm)
                return alarm
        return None


def promises(soak: Soak) -> dict[str, bool]:
    """Return for each kind of fault True if the protection promises that no packet suffers it.

    Duplicates: always. Order: always with *window*, which drops what was overtaken; with *vector* if a packet has come by the
    slower path before the next one comes by the faster. Losses: with *vector* if the paths differ by less than the history, with
    *window* if, again, no packet is overtaken.
    """
    apart = soak.slower_us / 1e6 * soak.packets_per_s
    window = soak.acceptance.algorithm == "window"
    return {
        "lost": apart < 1 if window else apart < soak.acceptance.history - 1,
        "duplicated": True,
        "reordered": window or apart < 1,
    }


def memory_is_judged(outcome: Outcome) -> bool:
    """Return True if the run is so long that a log of its packets would stand out from what allocators and other code take.

    From the middle of the first third to that of the last there are two thirds of the packets.
    """
    return LOG_BYTES * outcome.sent * 2 / 3 > 4 * MEMORY_SLACK_BYTES * outcome.parts


def broken(outcome: Outcome) -> Iterator[str]:
    """Yield a sentence for each promise of :func:`promises` that the outcome breaks, and for each wrong count or alarm."""
    for name, promised in promises(outcome.soak).items():
        if promised and (count := getattr(outcome, name)):
            yield f"{count} packets {name}"
    if outcome.sent - outcome.lost + outcome.duplicated != outcome.delivered:
        yield f"{outcome.delivered} packets delivered do not add up"
    if outcome.unreported:
        yield f"{outcome.unreported} latent errors were not reported while they lasted"
    if late := sum(ms > outcome.soak.period_ms for ms in outcome.reported_ms):
        yield f"{late} latent errors were reported later than {outcome.soak.period_ms:g} ms"
    if outcome.not_cleared:
        yield f"{outcome.not_cleared} alarms were not taken back after the repair"
    if outcome.false_alarms:
        yield f"{outcome.false_alarms} alarms about nothing"
    if outcome.undecided:
        yield f"{outcome.undecided} packets came too late to be told from copies"
    if memory_is_judged(outcome) and outcome.memory_last - outcome.memory_first > MEMORY_SLACK_BYTES * outcome.parts:
        yield f"memory grew from {outcome.memory_first / 1e6:.1f} to {outcome.memory_last / 1e6:.1f} MB"


def table(outcome: Outcome) -> str:
    """Return the outcome as text, with a line per number."""
    soak, held = outcome.soak, promises(outcome.soak)
    longest = max(outcome.reported_ms, default=0.0)
    each_ns = 1e9 * outcome.processor_s / max(1, outcome.sent)
    rows = [
        ("packets sent", f"{outcome.sent:,}"),
        ("delivered", f"{outcome.delivered:,}"),
        *((name, f"{getattr(outcome, name):,}" + ("" if it else " (not promised here)")) for name, it in held.items()),
        ("failures of single paths", f"{outcome.failures}"),
        ("copies lost", f"{outcome.copies_lost:,}"),
        ("latent errors", f"{outcome.latent_errors}"),
        (
            "reported",
            f"{len(outcome.reported_ms)}, {longest:,.1f} ms after it at the latest (period {soak.period_ms:g} ms)",
        ),
        ("false alarms", f"{outcome.false_alarms}"),
        (
            "memory",
            f"{outcome.memory_first / 1e6:.1f} MB in the first third, {outcome.memory_last / 1e6:.1f} MB in the last"
            + ("" if memory_is_judged(outcome) else " (too short to judge)"),
        ),
        (
            "took",
            f"{outcome.wall_s:.1f} s ({outcome.processor_s:.1f} s of a processor) for {outcome.ended_s:g} s"
            + (f" of {soak.duration_s:g} s" if outcome.ended_s < soak.duration_s else ""),
        ),
        ("speed", f"{outcome.sent / outcome.wall_s:,.0f} packets/s; {each_ns:,.0f} ns of a processor each"),
    ]
    return "\n".join(f"{name:<26}{value}" for name, value in rows)


def main(arguments: list[str] | None = None) -> int:
    """Run the soak that ``arguments`` describe and print its outcome; return 1 if a promise is broken, 2 after an error, else 0."""
    parser = argparse.ArgumentParser(prog="python -P -m holdfast.apps.protect.tests.soak", description=__doc__)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--packets-per-s", type=float, default=50, help="of each connection")
    parser.add_argument("--duration-s", type=float, default=3600, help="of virtual time")
    parser.add_argument("--algorithm", choices=("window", "vector"), default="window")
    parser.add_argument("--failures", type=int, default=500, help="of links and transit nodes")
    parser.add_argument("--latent-errors", type=int, default=50)
    parser.add_argument("--period-ms", type=float, default=2000, help="within which latent errors are reported")
    parser.add_argument("--slower-us", type=float, default=0, help="how much longer the second path's delay is")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        help="processes, each with a part of connections and failures in a network of its own",
    )
    parser.add_argument(
        "--wall-minutes",
        type=float,
        default=math.inf,
        help="ends then, as with SIGINT: with what became of the traffic so far",
    )
    given = parser.parse_args(arguments)
    if not 1 <= given.connections <= 1024:
        parser.error("--connections is 1 to 1024")
    if given.failures < 1 or given.latent_errors < 0 or given.slower_us < 0:
        parser.error("--failures is 1 at least; --latent-errors and --slower-us cannot be negative")
    if not (given.duration_s > 0 and given.packets_per_s > 0 and given.period_ms > 0):
        parser.error("--duration-s, --packets-per-s and --period-ms must be above zero")
    if given.latent_errors and given.packets_per_s * given.period_ms < 20_000:
        parser.error("latent errors show in 20 packets per period at least: give a longer --period-ms")
    soak = Soak(
        given.connections, given.packets_per_s, given.duration_s, Acceptance(given.algorithm),
        given.failures, given.latent_errors, given.period_ms, given.slower_us, given.seed,
    )  # fmt: skip
    if not 1 <= given.jobs <= min(given.connections, given.failures):
        parser.error("--jobs is 1 to the number of connections, and of failures")
    if not given.wall_minutes > 0:
        parser.error("--wall-minutes must be above zero")
    until = time.monotonic() + 60 * given.wall_minutes
    # The module that runs parts imports this one.
    from holdfast.apps.protect.tests.soak_parts import run_parts

    try:
        outcome = run_parts(soak, given.jobs, until)
    except HoldfastError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(table(outcome))
    reasons = list(broken(outcome))
    for reason in reasons:
        print(f"broken: {reason}", file=sys.stderr)
    return 1 if reasons else 0


if __name__ == "__main__":
    # The module that the parts know, not its double that is being run.
    from holdfast.apps.protect.tests.soak import main as command

    sys.exit(command())
