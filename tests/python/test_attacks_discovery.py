"""The attackers of discovery find faults that are planted in it, and none in ours."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast import lldp
from holdfast.discovery import Discovery

FUZZ = Path(__file__).resolve().parents[2] / "fuzz"
sys.path.append(str(FUZZ))

from attacks import discovery_attack, sequences  # noqa: E402
from attacks.discovery_attack import HOLD_S, HOST_PORT, PORTS, DiscoveryUnderAttack  # noqa: E402
from attacks.sequences import Run, World  # noqa: E402


def other(**changes: Any) -> Any:
    """Return a function that makes a discovery with other settings than the world assumes."""
    return lambda plane, settings, told: Discovery(plane, dataclasses.replace(settings, **changes), told)


class Trusting(Discovery):
    """Signs what others send."""

    def hear(self, switch: str, packet: bytes, port: int) -> bool:
        if packet[12:14] == b"\x88\xcc" and port != HOST_PORT:
            source = next((each for each in self.ports if each[0].encode() in packet and each[0] != switch), None)
            if source is not None:
                packet = lldp.frame(packet[6:12], *source, 120, self._plane.now_ps, self._key)
        return super().hear(switch, packet, port)


class Forgetful(Discovery):
    """Does not hear one switch's frames."""

    def hear(self, switch: str, packet: bytes, port: int) -> bool:
        return switch == "s2" or super().hear(switch, packet, port)


class Nervous(Discovery):
    """Tells of changes that are none."""

    def hear(self, switch: str, packet: bytes, port: int) -> bool:
        known = super().hear(switch, packet, port)
        self._on_change()
        return known


class Hoarding(Discovery):
    """Keeps all frames."""

    def hear(self, switch: str, packet: bytes, port: int) -> bool:
        vars(self).setdefault("hoard", []).extend([packet] * 20)
        return super().hear(switch, packet, port)


class Busy(Discovery):
    """Works for long on each frame."""

    def hear(self, switch: str, packet: bytes, port: int) -> bool:
        for _ in range(2000):
            self.work()
        return super().hear(switch, packet, port)

    def work(self) -> None: ...


class Fragile(Discovery):
    """Does not survive a short frame."""

    def hear(self, switch: str, packet: bytes, port: int) -> bool:
        packet[40]
        return super().hear(switch, packet, port)


class Hospitable(Discovery):
    """Takes hosts' ports for those of switches."""

    def __init__(self, *parts: Any, **more: Any) -> None:
        super().__init__(*parts, **more)
        self.ports = sorted({*self.ports, ("s1", HOST_PORT), ("s2", HOST_PORT)})
        self._known = frozenset(self.ports)


MUTANTS = {
    "frames need no signature": (Trusting, "a link that is not there"),
    "links do not end": (other(hold_ms=1000 * (HOLD_S + 9)), "a link that is not there"),
    "a switch is not heard": (Forgetful, "a cable is not on the map"),
    "hosts' ports have links": (Hospitable, "a link at a host's port"),
    "changes are told that are none": (Nervous, "the map changes without a cause"),
    "frames are kept": (Hoarding, "state is bounded"),
    "frames are sent too often": (other(interval_ms=0.4, frames_per_s=1e5, hold_ms=3500), "frames per second"),
    "a frame costs much": (Busy, "work of one packet"),
    "an exception leaves": (Fragile, "exception IndexError"),
    "ports are left out": (other(ports=len(PORTS) - 1), "the map when all is quiet"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_that_is_planted_in_discovery_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, law = MUTANTS[name]
    monkeypatch.setattr(World, "laws", (law,))
    monkeypatch.setattr(sequences, "PATIENCE_S", 1.0)
    room = dataclasses.replace(discovery_attack.ROOM, world=partial(DiscoveryUnderAttack, make=make))
    run = Run(room, 1)
    findings = (found for _ in range(40) if (found := run.one()) is not None)
    assert next(findings).law.startswith(law)


def test_the_short_run_of_the_attackers_of_discovery_finds_nothing() -> None:
    command = [sys.executable, FUZZ / "attack_discovery.py", "6", "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "nothing found" in done.stdout
