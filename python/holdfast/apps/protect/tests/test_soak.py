"""The soak in small: it keeps the promises, it notices when one is broken, and it draws what it says."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace

import pytest

from holdfast.apps.protect import Acceptance
from holdfast.apps.protect.tests.soak import PLANES, Plan, Run, Soak, broken, main, promises, table
from holdfast.apps.protect.tests.soak_parts import parts

SMALL = Soak(connections=6, packets_per_s=1000, duration_s=2, failures=60, latent_errors=4, period_ms=60)


@pytest.mark.parametrize("algorithm", ["window", "vector"])
@pytest.mark.parametrize("seed", [1, 2])
def test_promises_are_kept(algorithm: str, seed: int) -> None:
    outcome = Run(replace(SMALL, acceptance=Acceptance(algorithm), seed=seed)).run()  # type: ignore[arg-type]
    assert list(broken(outcome)) == []
    assert all(promises(outcome.soak).values())
    assert (outcome.sent, outcome.lost, outcome.duplicated, outcome.reordered) == (12_000, 0, 0, 0)
    assert outcome.copies_lost > 500, "the failures hit nothing"
    assert len(outcome.reported_ms) == 4
    assert 0 < min(outcome.reported_ms) <= max(outcome.reported_ms) <= 60


def test_what_a_slower_path_costs() -> None:
    """The window loses what was overtaken, the vector reorders it: neither is promised, and both are counted."""
    window = Run(replace(SMALL, slower_us=3000)).run()
    assert window.lost > 0
    assert (window.duplicated, window.reordered) == (0, 0)
    vector = Run(replace(SMALL, slower_us=3000, acceptance=Acceptance("vector"))).run()
    assert vector.reordered > 0
    assert (vector.lost, vector.duplicated) == (0, 0)
    assert list(broken(window)) == list(broken(vector)) == []


def test_broken_promises_are_told() -> None:
    run = Run(SMALL)
    for transit in ("p1", "p2"):
        run.network.set_node(transit, up=False, at_s=1.0)
        run.network.set_node(transit, up=True, at_s=1.01)
    run.plan.latent_errors.clear()
    reasons = list(broken(run.run()))
    assert [reason.split(" ", 1)[1] for reason in reasons] == ["packets lost", "alarms about nothing"]


def test_memory_that_grows_is_told_where_the_run_is_long_enough() -> None:
    outcome = replace(Run(replace(SMALL, failures=0, latent_errors=0)).run(), memory_first=1e8, memory_last=1.1e8)
    assert list(broken(outcome)) == []
    assert "too short to judge" in table(outcome)
    longer = replace(outcome, sent=2_000_000, delivered=2_000_000)
    assert list(broken(longer)) == ["memory grew from 100.0 to 110.0 MB"]
    assert list(broken(replace(longer, memory_last=1.05e8))) == []


def test_what_ends_early_has_kept_its_promises_so_far() -> None:
    """The time of the end does not show which packets were under way."""
    run = Run(replace(SMALL, seed=3))
    outcome = run.run(lambda now_s: now_s < 1.3)
    assert list(broken(outcome)) == []
    assert 1.3 <= outcome.ended_s < 1.5
    assert 6 * 1300 <= outcome.sent == outcome.delivered < 6 * 1500
    assert outcome.failures == sum(it.begin_s < outcome.ended_s for it in run.plan.failures) < 60
    assert 0 < outcome.latent_errors <= 4


def test_parts_are_all_of_it() -> None:
    shares = parts(replace(SMALL, connections=7), 3)
    assert [it.connections for it in shares] == [2, 2, 3]
    assert [it.failures for it in shares] == [20, 20, 20]
    assert sum(it.latent_errors for it in shares) == 4
    assert len({it.seed for it in shares}) == 3
    assert shares == parts(replace(SMALL, connections=7), 3)


def test_a_connection_never_lacks_both_paths() -> None:
    soak = replace(SMALL, duration_s=20, failures=300)
    plan = Plan(soak)
    down: list[tuple[int, int, float, float]] = [
        (error.connection, error.path, error.begin_s, error.end_s) for error in plan.latent_errors
    ]
    for failure in plan.failures:
        names = failure.element.split("-")
        (transit,) = (name for name in names if name[0] == "p")
        for c in range(soak.connections):
            ends = [f"{kind}{i}" for kind, i in zip("az", soak.ends(c), strict=True)]
            if all(name in (transit, *ends) for name in names):
                down.append((c, int(transit[1]) - 1, failure.begin_s, failure.end_s))
    assert {path for _, path, _, _ in down} == set(range(PLANES))
    overlapping = [
        (one, other)
        for one in down
        for other in down
        if one[0] == other[0] and one[1] < other[1] and one[2] < other[3] and other[2] < one[3]
    ]
    assert overlapping == []


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--connections", "2", "--duration-s", "1", "--packets-per-s", "500", "--failures", "5"]
    assert main([*small, "--latent-errors", "1", "--period-ms", "60", "--algorithm", "vector"]) == 0
    assert "packets sent              1,000\n" in capsys.readouterr().out
    jobs = [*small, "--latent-errors", "1", "--period-ms", "60", "--jobs", "2"]
    assert main(jobs) == 0
    out = capsys.readouterr().out
    assert "packets sent              1,000\n" in out
    assert "failures of single paths  5\n" in out
    assert main([*small, "--latent-errors", "50", "--period-ms", "60", "--jobs", "2"]) == 2
    assert "too short for 25 latent errors" in capsys.readouterr().err
    assert main([*small, "--latent-errors", "50", "--period-ms", "60"]) == 2
    assert "too short for 50 latent errors" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*small, "--period-ms", "1"])


def interrupt_when_it_is_listened_to() -> None:
    while signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_IGN):
        time.sleep(0.1)
    time.sleep(1)
    os.kill(os.getpid(), signal.SIGINT)


LONG = [
    "--connections",
    "2",
    "--duration-s",
    "36000",
    "--packets-per-s",
    "1000",
    "--failures",
    "50",
    "--latent-errors",
    "0",
]
"""A soak that does not come to its end here."""


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_ends_it_with_a_table(jobs: int, capsys: pytest.CaptureFixture[str]) -> None:
    # Ignored where the tests run in the background.
    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=interrupt_when_it_is_listened_to, daemon=True)
    thread.start()
    assert main([*LONG, "--jobs", str(jobs)]) == 0
    thread.join()
    out = capsys.readouterr().out
    assert " of 36000 s\n" in out
    assert "lost                      0\n" in out
    assert signal.getsignal(signal.SIGINT) is before


def test_the_time_on_the_wall_ends_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*LONG, "--wall-minutes", "0.02"]) == 0
    assert " of 36000 s\n" in capsys.readouterr().out
