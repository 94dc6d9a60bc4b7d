"""The attackers of a collector find faults that are planted in it, and none in ours."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast.apps.telemetry import metrics, rows, showing
from holdfast.apps.telemetry.collector import Collector, Counts, Limits

FUZZ = Path(__file__).resolve().parents[2] / "fuzz"
sys.path.append(str(FUZZ))

from attacks import collector_attack, sequences  # noqa: E402
from attacks.collector_attack import CollectorUnderAttack  # noqa: E402
from attacks.sequences import Finding, Run, World  # noqa: E402


class Careless(Collector):
    """Does not take every hundredth packet."""

    number = 0

    def take(self, now_ns: int, payload: bytes) -> None:
        self.number += 1
        if self.number % 100:
            super().take(now_ns, payload)


class Strict(Collector):
    """Calls a report with many others malformed."""

    refused = 0

    def take(self, now_ns: int, payload: bytes) -> None:
        super().take(now_ns, payload)
        self.refused += len(payload) > 400

    def malformed(self) -> dict[str, int]:
        return super().malformed() | ({"long": self.refused} if self.refused else {})


class Blind(Collector):
    """Does not say which hops it has refused."""

    def counts(self) -> Counts:
        return super().counts()._replace(hops_refused=0)


class Optimistic(Collector):
    """Does not see every loss."""

    def reporters(self) -> Any:
        return {key: each._replace(lost=min(each.lost, 3)) for key, each in super().reporters().items()}


class Fragile(Collector):
    """Does not survive a payload of less than a header."""

    def take(self, now_ns: int, payload: bytes) -> None:
        payload[7]
        super().take(now_ns, payload)


class Forgetful(Collector):
    """Forgets a hop when there are many."""

    def hops(self, **which: Any) -> Any:
        found = super().hops(**which)
        return dict(list(found.items())[3:]) if len(found) > 100 else found


def roomy(limits: Limits, **more: Any) -> Collector:
    return Collector(Limits(), **more)


MUTANTS = {
    "packets are left out": (Careless, "packets are counted"),
    "right packets are refused": (Strict, "well-formed packets"),
    "refusals are not counted": (Blind, "hops are counted"),
    "losses are not seen": (Optimistic, "losses of a reporter"),
    "limits do not count": (roomy, "memory is bounded"),
    "hops are forgotten": (Forgetful, "an honest hop"),
    "an exception leaves": (Fragile, "exception IndexError"),
}


def found(make: Any, law: str, monkeypatch: pytest.MonkeyPatch) -> Finding:
    monkeypatch.setattr(World, "laws", (law,))
    monkeypatch.setattr(sequences, "PATIENCE_S", 1.0)
    run = Run(dataclasses.replace(collector_attack.ROOM, world=partial(CollectorUnderAttack, make=make)), 1)
    findings = (each for _ in range(40) if (each := run.one()) is not None)
    return next(findings)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_that_is_planted_in_a_collector_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, law = MUTANTS[name]
    assert found(make, law, monkeypatch).law.startswith(law)


def test_a_page_that_grows_with_what_attackers_send_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "text", lambda collector: "hop 1\n" * 500 * len(collector.hops()))
    assert found(Collector, "the page of metrics is bounded", monkeypatch).sequence < 40


def test_tables_that_show_all_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_of_them(collector: Collector) -> Any:
        table = showing.Table("hop")
        for _ in collector.hops():
            table.add_row("hop")
        return table

    monkeypatch.setattr(showing, "hop_table", all_of_them)
    assert found(Collector, "what is shown is bounded", monkeypatch).sequence < 40


def test_rows_that_are_lost_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector_attack, "take", lambda collector: rows.take(collector).tail(50))
    assert found(Collector, "rows are complete", monkeypatch).sequence < 40


def test_the_short_run_of_the_attackers_of_a_collector_finds_nothing() -> None:
    command = [sys.executable, FUZZ / "attack_collector.py", "6", "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "nothing found" in done.stdout
