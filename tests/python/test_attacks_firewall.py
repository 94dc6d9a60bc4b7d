"""The attackers of a firewall find faults that are planted in it, and none in ours."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast.apps.firewall.controller import FirewallController
from holdfast.apps.firewall.rules import Port, Rate, Rule, Timeouts

FUZZ = Path(__file__).resolve().parents[2] / "fuzz"
sys.path.append(str(FUZZ))

from attacks import firewall_attack, sequences  # noqa: E402
from attacks.firewall_attack import INSIDE, OUTSIDE, RULES, FirewallUnderAttack  # noqa: E402
from attacks.sequences import Run, World  # noqa: E402


def other(**fields: object) -> Any:
    """Return a function that makes a world whose controller has rules with other fields."""
    return partial(
        FirewallUnderAttack, make=lambda rules, **more: FirewallController(rules.model_copy(update=fields), **more)
    )


class Porous(FirewallUnderAttack):
    """A switch that lets segments without SYN in from outside."""

    def process(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        out = super().process(port, frame)
        return out or ([(INSIDE, frame)] if port == OUTSIDE and frame[12:14] == b"\x08\0" else [])


class Flooding(FirewallUnderAttack):
    """A switch that floods what it passes."""

    def process(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        return super().process(port, frame) * 2


class Rewriting(FirewallUnderAttack):
    """A switch that changes the last byte of a packet."""

    def process(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        return [(to, sent[:-1] + b"?") for to, sent in super().process(port, frame)]


class Silent(FirewallUnderAttack):
    """A switch that does not say what it drops at a port."""

    def process(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        return [] if port == 9 else super().process(port, frame)


OPEN = Rule.model_validate({"name": "all", "action": "allow"})
ANYBODY = [
    port.model_copy(update={"senders": "any"}) if port.port != OUTSIDE else port
    for port in RULES.ports
    if isinstance(port, Port)
]

MUTANTS = {
    "stations are not bound": (other(ports=ANYBODY), "an unbound sender"),
    "outside hosts begin flows": (other(rules=[*RULES.rules, OPEN]), "a flow begins where none may"),
    "few flows may begin": (other(new_flows_per_source=Rate(per_s=1, burst=2)), "an honest flow cannot begin"),
    "flows are forgotten": (other(timeouts_s=Timeouts(established=5)), "an honest packet is dropped"),
    "forged segments pass": (Porous, "a forged segment passes"),
    "addresses of others pass": (Porous, "an address of another port passes"),
    "packets are copied": (Flooding, "a packet is copied"),
    "packets are changed": (Rewriting, "a packet is changed"),
    "drops are not counted": (Silent, "packets are counted"),
    "flows stay": (other(timeouts_s=Timeouts(established=10**6)), "flows left"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_that_is_planted_in_a_firewall_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world, law = MUTANTS[name]
    monkeypatch.setattr(World, "laws", (law,))
    monkeypatch.setattr(sequences, "PATIENCE_S", 1.0)
    run = Run(dataclasses.replace(firewall_attack.ROOM, world=world), 1)
    findings = (found for _ in range(60) if (found := run.one()) is not None)
    assert next(findings).law.startswith(law)


def test_the_short_run_of_the_attackers_of_a_firewall_finds_nothing() -> None:
    command = [sys.executable, FUZZ / "attack_firewall.py", "6", "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "nothing found" in done.stdout
