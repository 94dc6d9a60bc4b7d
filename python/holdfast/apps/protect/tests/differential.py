"""Random arrivals at a tunnel egress and at the model of the standard, side by side: every decision and every counter must agree.

``python -P -m holdfast.apps.protect.tests.differential --events 1000000`` prints a line per configuration and exits with 1 at the
first difference. The arrivals of a seed are always the same.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from holdfast._core import Program, Switch
from holdfast.apps.protect.acceptance import PATHS, Acceptance
from holdfast.apps.protect.program import compile_protect
from holdfast.apps.protect.tests.model import Counts, SequenceRecovery
from holdfast.control.desired import Writer
from holdfast.control.domain import domain_registers
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device

CID = 5
INDEX = 3

Executor: TypeAlias = Literal["jit", "interpreter"]

_ACCEPTANCE = "ProtectIngress.decaps_p.acceptance."
_PS_PER_US = 1_000_000


@dataclass(frozen=True)
class Configuration:
    """An acceptance algorithm in a number space."""

    acceptance: Acceptance
    sn_bits: int = 32
    history_bits: int = 64

    def __str__(self) -> str:
        a = self.acceptance
        history = f", history {a.history} of {self.history_bits}" if a.algorithm == "vector" else ""
        return f"{a.algorithm}{history}, reset {a.reset_ms:g} ms, {self.sn_bits}-bit numbers"

    def compile(self) -> Program:
        """Compile the program with this configuration's sizes of numbers and histories."""
        return compile_protect(
            {"SN_BITS": str(self.sn_bits), "HISTORY_BITS": str(self.history_bits), "CONNECTIONS": "16"}
        )


CONFIGURATIONS = (
    Configuration(Acceptance("window", reset_ms=0)),
    Configuration(Acceptance("window", reset_ms=0), sn_bits=5),
    Configuration(Acceptance("window", reset_ms=2)),
    Configuration(Acceptance("window", reset_ms=2), sn_bits=5),
    Configuration(Acceptance("vector", history=64, reset_ms=2)),
    Configuration(Acceptance("vector", history=64, reset_ms=0)),
    Configuration(Acceptance("vector", history=2, reset_ms=2)),
    Configuration(Acceptance("vector", history=16, reset_ms=2), sn_bits=6),
    Configuration(Acceptance("vector", history=33, reset_ms=2), sn_bits=16, history_bits=40),
    Configuration(Acceptance("vector", history=128, reset_ms=2), sn_bits=16, history_bits=128),
    Configuration(Acceptance("vector", history=6, reset_ms=2), sn_bits=3, history_bits=7),
    Configuration(Acceptance("match", reset_ms=2)),
    Configuration(Acceptance("match", reset_ms=2), sn_bits=3),
)
"""The cases of the command: each algorithm with and without reset, in the whole number space and in ones that wrap all the
time, histories shorter than, as long as and longer than half the space."""


def ipv4_header(total_len: int, protocol: int, src: bytes, dst: bytes) -> bytes:
    """Return an IPv4 header without options."""
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, total_len, 0, 0, 64, protocol, 0, src, dst)
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return header[:10] + struct.pack("!H", total ^ 0xFFFF) + header[12:]


def endpoint(path: int) -> bytes:
    """Return the four bytes of the egress's address on path ``path``."""
    return bytes((10, 254, 0, 2 + path))


class Egress:
    """A tunnel egress with one connection; copies go in, decisions and counters come out."""

    def __init__(
        self, configuration: Configuration, executor: Executor = "jit", program: Program | None = None
    ) -> None:
        program = program or configuration.compile()
        self.switch = Switch(program, executor=executor)
        client = LocalClient(Device(1, self.switch, executor=executor))
        client.set_pipeline(program)
        Writer(client).write(domain_registers(frozenset({1})))
        for path in range(PATHS):
            client.insert("tunnel_endpoints", {"hdr.tunnel.dst_addr": endpoint(path)}, "end_path", {"number": path})
        select, params = configuration.acceptance.action(INDEX)
        client.insert("egress_connections", {"hdr.protection.cid": CID}, select, params)
        route = {"port": 2, "src_mac": 1, "dst_mac": 2}
        client.insert("ipv4_lpm", {"dst_addr": "10.0.2.0/24"}, "forward", route)
        self._client = client
        inner = ipv4_header(28, 17, bytes((10, 0, 1, 1)), bytes((10, 0, 2, 1))) + struct.pack("!HHHH", 1, 2, 8, 0)
        self._tail = b"\x04" + inner
        self._heads = [
            bytes(12)
            + b"\x08\x00"
            + ipv4_header(56, 253, bytes((10, 255, 0, 1)), endpoint(path))
            + CID.to_bytes(3, "big")
            for path in range(PATHS)
        ]

    def receive(self, now_us: int, sn: int, path: int) -> bool:
        """Receive a copy with number ``sn`` by ``path`` at ``now_us``; return True if it is passed on."""
        packet = self._heads[path] + sn.to_bytes(4, "big") + self._tail
        return bool(self.switch.process(1, packet, now_us * _PS_PER_US))

    def reset(self) -> None:
        """Reset the connection as a controller does: clear the history, or for the paper's window the last number."""
        for register in ("history", "last_accepted_sn"):
            self._client.write_register(_ACCEPTANCE + register, INDEX, 0)

    def counts(self) -> Counts:
        """Return all counters, named as by :meth:`SequenceRecovery.counts`."""
        counts = {
            "lost": self._client.register(_ACCEPTANCE + "lost", INDEX),
            "resets": self._counter("resets", INDEX),
        }
        for name in ("passed", "discarded", "rogue", "out_of_order"):
            counts |= {f"{name}{path}": self._counter(name, PATHS * INDEX + path) for path in range(PATHS)}
        return counts

    def _counter(self, name: str, index: int) -> int:
        return self._client.counter(_ACCEPTANCE + name, index)[0]


def arrivals(rng: random.Random, space: int, history: int) -> Iterator[tuple[int, int, int]]:
    """Yield endlessly (microseconds since the last arrival, sequence number, path) for random arrivals at an egress.

    An ingress numbers packets; up to four paths lose, duplicate, delay and reorder them, or lose all or none for a while. Rarely
    the ingress restarts with other numbers or is silent, or an attacker sends any number, so that most of the time the connection
    works.
    """
    sn = rng.randrange(space)
    away = 0
    paths: list[deque[int]] = [deque() for _ in range(PATHS)]
    used, loss, lag = 2, [0.0] * PATHS, [0] * PATHS
    while True:
        if rng.random() < 0.01:
            used = rng.randrange(1, PATHS + 1)
            loss = [rng.choice((0.0, 0.0, 0.01, 0.3, 1.0)) for _ in range(PATHS)]
            lag = [rng.choice((0, 0, 1, 3, history // 2, history, 2 * history)) for _ in range(PATHS)]
        chance = rng.random()
        if chance < 0.002:
            away = rng.choice((-1, 1, history - 1, history, history + 1, -history, 100, rng.randrange(space)))
            sn += away
        elif chance < 0.01:
            # A sender that does not get over other numbers (there may be no reset) gets its own again.
            sn, away = sn - away, 0
        sn = (sn + 1) % space
        silence = rng.choice((2500, 2000, 1999, 700)) if chance > 0.997 else 0
        if rng.random() < 0.003:
            number = sn + rng.choice((-history, 1 - history, -1, 0, history - 1, history, rng.randrange(space)))
            yield silence, number % space, rng.randrange(PATHS)
            silence = 0
        for path in range(used):
            if rng.random() >= loss[path]:
                paths[path].append(sn)
            while len(paths[path]) > lag[path]:
                yield silence + rng.randrange(3), _overtaking(rng, paths[path]), path
                silence = 0
                if rng.random() < 0.02:
                    yield 0, sn, path


def _overtaking(rng: random.Random, queue: deque[int]) -> int:
    """Remove and return one of the first few copies of the queue, in most cases the very first."""
    at = min(int(rng.expovariate(2.0)), len(queue) - 1)
    queue.rotate(-at)
    copy = queue.popleft()
    queue.rotate(at)
    return copy


def compare(configuration: Configuration, events: int, seed: int, executor: Executor = "jit") -> Counts:
    """Send ``events`` random arrivals to program and model; return what both counted.

    Raise :class:`AssertionError` at the first difference.
    """
    rng = random.Random(f"{seed} {configuration}")
    egress, model = Egress(configuration, executor), SequenceRecovery(configuration.acceptance, configuration.sn_bits)
    now_us = 0
    stream = arrivals(rng, model.recov_seq_space, configuration.acceptance.history)
    for event in range(events):
        elapsed_us, sn, path = next(stream)
        now_us += elapsed_us
        model.elapse(elapsed_us)
        if event % 1000 == 999:
            # The controller's reset, which also ends what nothing else does where there is no timer.
            model.begin()
            egress.reset()
        expected, got = model.receive(sn, path), egress.receive(now_us, sn, path)
        if expected != got:
            raise AssertionError(
                f"{configuration}, seed {seed}, event {event}: number {sn} by path {path} at {now_us} us: the standard "
                f"{'accepts' if expected else 'discards'} it, the program does not"
            )
        if event % 1000 == 0 or event == events - 1:
            assert egress.counts() == model.counts(), (configuration, seed, event, egress.counts(), model.counts())
    return model.counts()


def main(arguments: list[str] | None = None) -> int:
    """Compare program and model for all configurations, as ``arguments`` say; return 1 at a difference, else 0."""
    parser = argparse.ArgumentParser(prog="python -P -m holdfast.apps.protect.tests.differential", description=__doc__)
    parser.add_argument("--events", type=int, default=100_000, help="arrivals per configuration")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--executor", choices=("jit", "interpreter"), default="jit")
    given = parser.parse_args(arguments)
    if given.events < 1:
        parser.error("--events must be positive")
    for configuration in CONFIGURATIONS:
        start = time.monotonic()
        try:
            counts = compare(configuration, given.events, given.seed, given.executor)
        except AssertionError as difference:
            print(difference, file=sys.stderr)
            return 1
        total = {
            name: sum(n for key, n in counts.items() if key.rstrip("0123") == name)
            for name in ("passed", "discarded", "rogue", "out_of_order", "lost", "resets")
        }
        said = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in total.items())
        print(f"{configuration}: {given.events} events agree ({said}) in {time.monotonic() - start:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
