"""The attackers' suites: they find planted faults of each kind, shrink what they find, replay it, and repeat themselves."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from holdfast.subscribers.accounting import Kind, Record
from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.plane import Behind, Line, Session, Usage

FUZZ = Path(__file__).resolve().parents[2] / "fuzz"
sys.path.append(str(FUZZ))

from attacks import gateway_attack, sequences  # noqa: E402
from attacks.radius_world import RadiusWorld  # noqa: E402
from attacks.sequences import Room, Run, Step, World  # noqa: E402

# The machinery.


class Counter(World):
    """Breaks a law when three steps named "up" came after one named "arm"."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.armed, self.up = False, 0

    def play(self, step: Step) -> None:
        self.log.append(step.name)
        self.armed = self.armed or step.name == "arm"
        self.up += self.armed and step.name == "up"
        if self.up == 3:
            self.broken("three", "it is three")
        if step.name == "burst":
            raise KeyError(step.name)

    def end(self) -> None:
        if self.armed and not self.up:
            self.broken("armed at the end", "nothing came")


TOY = Room("toy", Counter, {"arm": 1, "up": 1, "idle": 5}, shortest=30, longest=60)


def test_a_sequence_is_shrunk_to_the_steps_that_matter() -> None:
    run = Run(TOY, 1)
    findings = [found for _ in range(60) if (found := run.one()) is not None]
    by_law = {finding.law: [step.name for step in finding.steps] for finding in findings}
    assert by_law["three"] == ["arm", "up", "up", "up"]
    assert by_law["armed at the end"] == ["arm"]


def test_an_exception_of_a_room_is_a_finding() -> None:
    run = Run(dataclasses.replace(TOY, weights={"burst": 1, "idle": 9}), 1)
    findings = [found for _ in range(20) if (found := run.one()) is not None]
    assert [(each.law, len(each.steps)) for each in findings] == [("exception KeyError in play", 1)]


def test_a_finding_is_replayed_from_its_file(tmp_path: Path) -> None:
    run = Run(TOY, 1)
    finding = next(found for _ in range(60) if (found := run.one()) is not None)
    path = tmp_path / "finding.json"
    path.write_text(sequences.written(TOY, finding))
    assert json.loads(path.read_text())["law"] == finding.law
    violated = sequences.replay(TOY, path).violated
    assert violated is not None and violated.law == finding.law


def test_a_seed_repeats_a_run() -> None:
    runs = [Run(gateway_attack.ROOM, 3) for _ in range(2)]
    for run in runs:
        for _ in range(3):
            run.one()
    assert runs[0].packets == runs[1].packets > 0
    assert runs[0].states == runs[1].states and runs[0].broken == runs[1].broken


# Faults that are planted in a gateway, at its seams.

Make = Callable[..., Gateway]


class Forgetful:
    """An accountant that does not pass some records on, or changes them."""

    def __init__(self, books: Any, change: Callable[[Record], Record | None]) -> None:
        self._books, self._change = books, change

    def account(self, record: Record) -> None:
        changed = self._change(record)
        if changed is not None:
            self._books.account(changed)


def accounting(change: Callable[[Record], Record | None]) -> Make:
    return lambda *parts, accountant, **more: Gateway(*parts, accountant=Forgetful(accountant, change), **more)


class Leaving(Behind):
    """A plane on which every third session stays when it is removed."""

    def remove(self, session_ids: Iterable[int]) -> dict[int, Usage]:
        given = list(session_ids)
        stay = {each: Usage() for each in given if each % 3 == 1}
        return super().remove(each for each in given if each not in stay) | stay


class Stubborn(Behind):
    """A plane that keeps the rates that it has."""

    def install(self, sessions: Iterable[Session]) -> None:
        there = self.installed()
        super().install(
            dataclasses.replace(each, rates=there[each.session_id].rates) if each.session_id in there else each
            for each in sessions
        )


def on(plane_of: Callable[[Any], Any]) -> Make:
    return lambda configuration, plane, *parts, **more: Gateway(configuration, plane_of(plane), *parts, **more)


class Unforgetting:
    """A store that forgets nothing."""

    def __init__(self, disk: Any) -> None:
        self.load, self._disk = disk.load, disk

    def save(self, put: Iterable[Any], drop: Iterable[int]) -> None:
        self._disk.save(put, ())


def patient(configuration: Any, *parts: Any, **more: Any) -> Gateway:
    limits = configuration.limits.model_copy(update={"setup_timeout_s": 3000.0})
    return Gateway(configuration.model_copy(update={"limits": limits}), *parts, **more)


class Leaking(Gateway):
    """Loses an address with each session that ends."""

    def pool_use(self) -> Any:
        use = super().pool_use()
        use["default"] += self.events["ended"]
        return use


class Hasty(Gateway):
    """Takes the first PADT of anybody for everybody's."""

    def receive(self, line: Line, frame: bytes) -> None:
        if frame[12:14] == b"\x88\x63" and frame[15:16] == b"\xa7":
            self.kick(list(self.sessions))
        super().receive(line, frame)


class Deaf(Gateway):
    """Does not hear PADRs of some lines."""

    def receive(self, line: Line, frame: bytes) -> None:
        if line.s_tag == 6 or frame[15:16] != b"\x19" or line.c_tag < 3:
            super().receive(line, frame)


class Hoarding(Gateway):
    """Keeps sessions that are over."""

    hoard: list[Any]

    def receive(self, line: Line, frame: bytes) -> None:
        vars(self).setdefault("hoard", []).extend(self.sessions.values())
        del self.hoard[:-400]
        super().receive(line, frame)


class Ticking(Gateway):
    """Sets a timer for each frame."""

    def receive(self, line: Line, frame: bytes) -> None:
        self.clock.call_later(3000.0, lambda: None)
        super().receive(line, frame)


class Talkative(Behind):
    """A plane that sends each frame twenty times."""

    def send(self, line: Line, frame: bytes) -> None:
        for _ in range(20):
            super().send(line, frame)


class Stumbling(Gateway):
    """Says that its session's code failed at an echo."""

    def receive(self, line: Line, frame: bytes) -> None:
        self.events["faults"] += frame[20:23] == b"\xc0\x21\x09"
        super().receive(line, frame)


class Busy(Gateway):
    """Works for long on each frame."""

    def receive(self, line: Line, frame: bytes) -> None:
        super().receive(line, frame)
        for number in range(7000):
            self._idle(number)

    def _idle(self, number: int) -> None: ...


class Fragile(Gateway):
    """Does not survive a short PPP packet."""

    def receive(self, line: Line, frame: bytes) -> None:
        if frame[12:14] == b"\x88\x64" and len(frame) < 27:
            frame[27]
        super().receive(line, frame)


MUTANTS: dict[str, tuple[Make, str]] = {
    "some starts are not accounted": (
        accounting(lambda it: None if it.kind is Kind.START and it.accounting_id[0] in "01234567" else it),
        "forwards unaccounted",
    ),
    "stops are not accounted": (
        accounting(lambda it: None if it.kind is Kind.STOP else it),
        "accounting without a stop",
    ),
    "usage is not accounted": (
        accounting(lambda it: dataclasses.replace(it, usage=Usage()) if it.kind is Kind.STOP else it),
        "usage",
    ),
    "starts are accounted twice": (
        accounting(lambda it: dataclasses.replace(it, kind=Kind.START)),
        "accounting starts twice",
    ),
    "sessions stay installed": (on(Leaving), "installed without a session"),
    "acknowledged changes are not done": (on(Stubborn), "acknowledged change"),
    "the store forgets nothing": (
        lambda *parts, store, **more: Gateway(*parts, store=Unforgetting(store), **more),
        "stored session that is over",
    ),
    "setups have no deadline": (patient, "half-open session"),
    "grants leak": (Leaking, "pools"),
    "one ends all": (Hasty, "honest session ended"),
    "hosts are not heard": (Deaf, "honest host is kept out"),
    "sessions are kept": (Hoarding, "objects left"),
    "timers are kept": (Ticking, "timers"),
    "a frame is amplified": (on(Talkative), "amplification"),
    "a frame costs much": (Busy, "work of one packet"),
    "an exception ends a session": (Stumbling, "exception within"),
    "an exception leaves": (Fragile, "exception IndexError"),
}


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that restricts the laws that are checked to those given."""
    return lambda *laws: monkeypatch.setattr(World, "laws", laws)


def found_in(room: Room, most: int, seed: int = 1) -> sequences.Finding | None:
    run = Run(room, seed)
    return next((found for _ in range(most) if (found := run.one()) is not None), None)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_that_is_planted_in_a_gateway_is_found(
    name: str, only: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    make, law = MUTANTS[name]
    only(law)
    monkeypatch.setattr(sequences, "PATIENCE_S", 1.0)
    room = dataclasses.replace(gateway_attack.ROOM, world=partial(gateway_attack.GatewayUnderAttack, make=make))
    finding = found_in(room, 300)
    assert finding is not None, name
    assert finding.law.startswith(law)


def test_accounting_that_does_not_reach_a_radius_server_is_found(
    only: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(self: RadiusWorld, data: bytes) -> Any:
        return account(self, data.replace(b"\x28\x06\0\0\0\x02", b"\x28\x06\0\0\0\x03"))

    account = RadiusWorld._account
    monkeypatch.setattr(RadiusWorld, "_account", changed)
    monkeypatch.setattr(sequences, "PATIENCE_S", 1.0)
    only("a stop is not delivered")
    assert found_in(gateway_attack.ROOM, 100) is not None
    only("a request that servers cannot trust")  # as it was changed on its way
    assert found_in(gateway_attack.ROOM, 100) is not None
    monkeypatch.setattr(RadiusWorld, "_account", lambda self, data: None)
    only("records left")
    assert found_in(gateway_attack.ROOM, 100) is not None


def test_the_short_run_of_the_attackers_of_a_gateway_finds_nothing() -> None:
    command = [sys.executable, FUZZ / "attack_gateway.py", "6", "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "nothing found" in done.stdout


def test_a_step_means_the_same_whatever_came_before_it_was_drawn() -> None:
    steps = gateway_attack.ROOM.draw(Random(5))
    assert steps == gateway_attack.ROOM.draw(Random(5))
    assert len({step.seed for step in steps}) == len(steps)
