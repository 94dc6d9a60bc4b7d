"""Sequences of steps: drawing them from seeds, playing them in worlds, shrinking those that break a law, and replaying them.

A step has a name, an actor, and a seed from which it takes all its choices. So it means the same when others are removed.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

A = TypeVar("A", bound=Callable[..., Any])

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 30.0
"""The time that is spent on making a finding shorter."""


class Step(NamedTuple):
    """One step: its kind, who does it (a number that the world takes modulo its actors), and the seed of its choices."""

    name: str
    actor: int
    seed: int


class Violated(Exception):
    """A law that does not hold. ``law`` is its short name, by which findings are told apart."""

    def __init__(self, law: str, text: str) -> None:
        super().__init__(f"{law}: {text}")
        self.law = law


class World:
    """A room under attack. ``log`` has what was done, in words; ``states`` counts pairs of a state and what happened in it.

    ``laws``: the beginnings of the names of laws to look for, if not for all; the others are not enforced.
    """

    laws: tuple[str, ...] = ("",)

    def __init__(self) -> None:
        self.log: list[str] = []
        self.states: Counter[tuple[str, str]] = Counter()
        self.packets = 0

    def broken(self, law: str, text: str) -> None:
        """Raise :class:`Violated` with this law and text, if the run looks for this law."""
        if law.startswith(self.laws):
            raise Violated(law, text)

    def play(self, step: Step) -> None:
        """Execute one step of a sequence, then check the laws. Raises :class:`Violated`."""
        raise TypeError

    def end(self) -> None:
        """Make all hosts leave, wait for the timeouts, and check that no state is left. Raises :class:`Violated`."""
        raise TypeError


class Steps(Generic[A]):
    """The kinds of steps of a room by name: what each does, and how often it is drawn."""

    def __init__(self) -> None:
        self.acts: dict[str, A] = {}
        self.weights: dict[str, float] = {}

    def step(self, weight: float) -> Callable[[A], A]:
        """Return a decorator that registers a step under its function's name. ``weight``: how often the step is drawn."""

        def register(act: A) -> A:
            name = act.__name__.strip("_").replace("_", "-")
            self.acts[name], self.weights[name] = act, weight
            return act

        return register


@dataclass(frozen=True)
class Room:
    """A room's name, its world of a seed, its kinds of steps with their weights, and the lengths of its sequences."""

    name: str
    world: Callable[[int], World]
    weights: Mapping[str, float]
    shortest: int = 10
    longest: int = 80

    def draw(self, random: Random) -> list[Step]:
        """Return a random sequence of steps, in which some kinds are frequent and others missing, so that rare kinds meet."""
        weights = {name: weight * random.choice((0, 1, 1, 6)) for name, weight in self.weights.items()}
        names = [name for name, weight in weights.items() if weight]
        if not names:
            return self.draw(random)
        length = random.randint(self.shortest, self.longest)
        chosen = random.choices(names, [weights[name] for name in names], k=length)
        return [Step(name, random.randrange(1 << 8), random.randrange(1 << 32)) for name in chosen]


@dataclass
class Outcome:
    """The outcome of a sequence: the world at its end, and the law that was broken, after how many steps."""

    world: World | None
    violated: Violated | None
    steps: int


def play(room: Room, seed: int, steps: Iterable[Step]) -> Outcome:
    """Execute a sequence in a new world. An exception other than :class:`Violated` counts as a broken law, too."""
    world, count = None, 0
    try:
        world = room.world(seed)
        for step in steps:
            count += 1
            world.play(step)
        world.end()
    except Violated as violated:
        return Outcome(world, violated, count)
    except Exception as error:  # noqa: BLE001 - whatever leaves a room, it is a finding
        place = traceback.extract_tb(error.__traceback__)[-1]
        law = f"exception {type(error).__name__} in {place.name}"
        if world is not None and not law.startswith(world.laws):
            return Outcome(world, None, count)
        return Outcome(world, Violated(law, "".join(traceback.format_exception(error))), count)
    return Outcome(world, None, count)


def shrunk(room: Room, seed: int, steps: list[Step], law: str) -> list[Step]:
    """Return a shorter sequence that breaks the same law: steps are removed, many at once and then fewer.

    Stops after :data:`PATIENCE_S` seconds.
    """
    until = time.monotonic() + PATIENCE_S
    size = max(1, len(steps) // 2)
    while True:
        removed = False
        at = 0
        while at < len(steps):
            if time.monotonic() > until:
                return steps
            shorter = steps[:at] + steps[at + size :]
            outcome = play(room, seed, shorter)
            if outcome.violated is not None and outcome.violated.law == law:
                steps, removed = shorter[: max(outcome.steps, 0)], True
            else:
                at += size
        if size == 1 and not removed:
            return steps
        size = max(1, size // 2)


@dataclass
class Finding:
    """A sequence that breaks a law, as short as it could be made, and when it was found."""

    law: str
    seed: int
    steps: list[Step]
    text: str
    log: list[str]
    sequence: int
    after_steps: int
    after_s: float


class Run:
    """Plays sequences of a seed one after another, and counts."""

    def __init__(self, room: Room, seed: int) -> None:
        self.room, self.seed = room, seed
        self.sequences = self.steps = self.packets = 0
        self.states: Counter[tuple[str, str]] = Counter()
        self.findings: list[Finding] = []
        self.broken: Counter[str] = Counter()
        self._began = time.monotonic()

    def one(self) -> Finding | None:
        """Play the next sequence. Returns a finding if it broke a law that no earlier one broke, else None."""
        seed = Random(f"{self.room.name} {self.seed} {self.sequences}").randrange(1 << 48)
        steps = self.room.draw(Random(seed))
        self.sequences += 1
        outcome = play(self.room, seed, steps)
        self.steps += outcome.steps
        if outcome.world is not None:
            self.packets += outcome.world.packets
            self.states.update(outcome.world.states)
        if outcome.violated is None:
            return None
        law = outcome.violated.law
        self.broken[law] += 1
        if self.broken[law] > 1:
            return None
        spent_s = time.monotonic() - self._began
        fewer = shrunk(self.room, seed, steps[: outcome.steps], law)
        again = play(self.room, seed, fewer)
        log = [] if again.world is None else again.world.log
        text = str(again.violated or outcome.violated)
        finding = Finding(law, seed, fewer, text, log, self.sequences, self.steps, spent_s)
        self.findings.append(finding)
        return finding

    def counts(self) -> str:
        """Return a line with the number of sequences, steps and packets played, and of laws broken."""
        spent_s = time.monotonic() - self._began
        return (
            f"{self.sequences} sequences, {self.steps} steps, {self.packets} packets in {spent_s:.0f} s (seed {self.seed}), "
            f"{len(self.states)} pairs of state and event, {sum(self.broken.values())} sequences broke {len(self.broken)} laws"
        )


def written(room: Room, finding: Finding) -> str:
    """Return a finding as JSON text: the seed and steps, which :func:`replay` reads, and the log for people."""
    return json.dumps(
        {
            "room": room.name,
            "law": finding.law,
            "seed": finding.seed,
            "steps": [list(step) for step in finding.steps],
            "log": finding.log,
            "text": finding.text.splitlines(),
        },
        indent=1,
    )


def replay(room: Room, path: Path) -> Outcome:
    """Play the sequence in a file that :func:`written` made."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    return play(room, kept["seed"], [Step(*step) for step in kept["steps"]])


def main(room: Room, description: str) -> int:
    """Run a room's attackers as the command line says; return 1 if a law was broken, else 0."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", type=float, nargs="?", default=10.0)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("FUZZ_SEED", time.time_ns() % (1 << 32))))
    parser.add_argument("--go-on", action="store_true", help="do not stop at the first finding")
    parser.add_argument(
        "--law", action="append", metavar="NAME", help="look for laws whose names begin so; the others do not count"
    )
    parser.add_argument("--without", action="append", default=[], metavar="STEP", help="leave a kind of step out")
    parser.add_argument("--coverage", action="store_true", help="print the pairs of state and event")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="play one sequence of a finding")
    options = parser.parse_args()
    World.laws = tuple(options.law or ("",))
    room = replace(room, weights={name: weight for name, weight in room.weights.items() if name not in options.without})
    logging.disable()
    if options.replay is not None:
        outcome = replay(room, options.replay)
        print("\n".join([] if outcome.world is None else outcome.world.log))
        print(outcome.violated or "no law is broken")
        return outcome.violated is not None
    gc.freeze()  # worlds collect garbage, and what was imported is none
    run = Run(room, options.seed)
    findings = Path(os.environ.get("FUZZ_FINDINGS", ROOT / "target/fuzz/findings"))
    until = time.monotonic() + options.seconds
    while time.monotonic() < until:
        finding = run.one()
        if finding is None:
            continue
        findings.mkdir(parents=True, exist_ok=True)
        path = findings / f"{room.name}-{options.seed}-{finding.sequence}.json"
        path.write_text(written(room, finding), encoding="utf-8")
        where = f"sequence {finding.sequence}, step {finding.after_steps}, after {finding.after_s:.1f} s"
        print(f"{room.name}: {where}, seed {options.seed}; replay with --replay {path}", file=sys.stderr)
        print("\n".join(f"  {line}" for line in [*finding.log[-40:], *finding.text.splitlines()]), file=sys.stderr)
        sys.stderr.flush()
        if not options.go_on:
            break
    if options.coverage:
        for (state, event), count in sorted(run.states.items()):
            print(f"{state:24} {event:24} {count}")
    for law, count in run.broken.items():
        print(f"{room.name}: {count} sequences broke {law!r}")
    print(f"{room.name}: {run.counts()}{'' if run.broken else ', nothing found'}")
    return bool(run.broken)
