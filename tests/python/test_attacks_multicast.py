"""The attackers of memberships find faults that are planted in a controller, and none in ours."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

FUZZ = Path(__file__).resolve().parents[2] / "fuzz"
sys.path.append(str(FUZZ))

from attacks import membership_attack, sequences  # noqa: E402
from attacks.membership_attack import Watched  # noqa: E402
from attacks.sequences import Run, World  # noqa: E402


def other(**limits: object) -> Any:
    """Return a function that makes a controller whose limits differ from those that it was given."""
    return lambda *, overlay, **more: Watched(overlay=overlay.model_copy(update=limits), **more)


class Confused(Watched):
    """Takes the reports of one host for another's."""

    def on_packet_in(self, switch: str, packet: bytes, metadata: Mapping[str, int]) -> None:
        place = self.topology.attachment(membership_attack.QUIET)
        if switch == "s2":
            super().on_packet_in(place.switch, packet, {**metadata, "ingress_port": place.port})
        super().on_packet_in(switch, packet, metadata)


class Deaf(Watched):
    """Stops to listen to a switch after its first hundred reports."""

    def on_packet_in(self, switch: str, packet: bytes, metadata: Mapping[str, int]) -> None:
        self.counts = getattr(self, "counts", 0) + 1
        if self.counts < 100:
            super().on_packet_in(switch, packet, metadata)


class Fragile(Watched):
    """Does not survive IGMPv2."""

    def on_packet_in(self, switch: str, packet: bytes, metadata: Mapping[str, int]) -> None:
        super().on_packet_in(switch, packet, metadata)
        if packet[38:39] == b"\x16":
            raise KeyError(switch)


class Busy(Watched):
    """Looks at all that there has been."""

    def adding(self, number: int) -> None: ...

    def on_start(self) -> None:
        super().on_start()
        assert self.overlay is not None
        self.overlay.changed(lambda changes: [self.adding(number) for number in range(20_000)] and None)


MUTANTS = {
    "a port has too many channels": (
        other(group_limit=4096, source_limit=1024, channels_per_port=8192),
        "channels of a port",
    ),
    "all ports have too many": (other(channels=49_152), "channels of all ports"),
    "hosts are not asked": (other(query_interval_s=2000), "port is not asked"),
    "memberships stay": (other(robustness=7), "channels left"),
    "others get a stream": (Confused, "stream for a host"),
    "reports are not heard": (Deaf, "honest member gets nothing"),
    "an exception leaves": (Fragile, "exception KeyError"),
    "a frame costs much": (Busy, "work of one packet"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_that_is_planted_in_a_controller_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, law = MUTANTS[name]
    monkeypatch.setattr(World, "laws", (law,))
    monkeypatch.setattr(sequences, "PATIENCE_S", 1.0)
    room = dataclasses.replace(
        membership_attack.ROOM, world=partial(membership_attack.MembershipUnderAttack, make=make)
    )
    run = Run(room, 1)
    findings = (found for _ in range(60) if (found := run.one()) is not None)
    assert next(findings).law.startswith(law)


def test_the_short_run_of_the_attackers_of_memberships_finds_nothing() -> None:
    command = [sys.executable, FUZZ / "attack_membership.py", "6", "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "nothing found" in done.stdout
