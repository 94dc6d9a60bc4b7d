"""The acceptance algorithms against the model of the standard: random histories, and properties of what they promise."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast._core import Program
from holdfast.apps.protect.acceptance import Acceptance
from holdfast.apps.protect.tests.differential import CONFIGURATIONS, Configuration, Egress, Executor, compare, main
from holdfast.apps.protect.tests.model import SequenceRecovery
from holdfast.errors import NetworkError

EVENTS = 4000

BITS = 5
"""A number space of 32, so that everything wraps."""
SPACE = 1 << BITS
RESET_US = 1000


@pytest.mark.parametrize("executor", ["jit", "interpreter"])
@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
def test_random_arrivals(configuration: Configuration, executor: Executor) -> None:
    """Runs the small form of ``python -P -m holdfast.apps.protect.tests.differential``."""
    counts = compare(configuration, EVENTS, seed=1, executor=executor)
    assert counts["passed0"] > 0 and counts["discarded0"] > 0


def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that all agree, or what does not."""
    assert main(["--events", "50"]) == 0
    assert capsys.readouterr().out.count("50 events agree") == len(CONFIGURATIONS)
    monkeypatch.setattr(SequenceRecovery, "_delta", lambda *_: 1)
    assert main(["--events", "2000"]) == 1
    assert "the program does not" in capsys.readouterr().err


@pytest.fixture(scope="module")
def program() -> Program:
    """Return one program for all properties, with small sequence numbers and histories of up to 8."""
    return Configuration(Acceptance("vector", 8), BITS, 8).compile()


def egress(program: Program, acceptance: Acceptance, executor: Executor = "jit") -> Egress:
    return Egress(Configuration(acceptance, BITS, 8), executor, program)


arrivals = st.lists(
    st.tuples(st.sampled_from((0, 0, 0, 1, 500, RESET_US - 1, RESET_US)), st.integers(0, SPACE - 1), st.integers(0, 3)),
    max_size=60,
)
acceptances = st.builds(
    Acceptance,
    algorithm=st.sampled_from(("window", "vector", "match")),
    history=st.integers(2, 8),
    reset_ms=st.sampled_from((0, RESET_US / 1000)),
)


@settings(max_examples=150)
@given(acceptance=acceptances, events=arrivals)
def test_any_arrivals(program: Program, acceptance: Acceptance, events: list[tuple[int, int, int]]) -> None:
    """For any packets program and model decide alike and count alike. A failure shrinks to the shortest history."""
    switch, model = egress(program, acceptance), SequenceRecovery(acceptance, BITS)
    now_us = 0
    for elapsed_us, sn, path in events:
        now_us += elapsed_us
        model.elapse(elapsed_us)
        assert switch.receive(now_us, sn, path) == model.receive(sn, path)
    assert switch.counts() == model.counts()


@st.composite
def copies(draw: st.DrawFn) -> tuple[int, list[int], int]:
    """Draw (first sequence number, packets by index 0, 1, ... in the order of their arrivals on two paths, number of packets).

    The paths lose, duplicate and reorder packets. No packet is 4 or more behind.
    """
    count = draw(st.integers(1, 70))
    arrivals = []
    for i in range(count):
        for _ in range(2):
            for _ in range(draw(st.sampled_from((0, 1, 1, 1, 2)))):
                arrivals.append((i + draw(st.floats(0, 3.5)), i))
    return draw(st.integers(0, SPACE - 1)), [i for _, i in sorted(arrivals)], count


@settings(max_examples=120)
@given(copies())
def test_vector_delivers_each_packet_of_which_a_copy_comes_once(
    program: Program, drawn: tuple[int, list[int], int]
) -> None:
    """While disorder and gaps fit into the history; with any loss, doubling, reordering or wrap-around."""
    start, order, _ = drawn
    switch = egress(program, Acceptance("vector", 8, reset_ms=0))
    # The first copy decides where the history begins: a number older by 8 would be new again 24 numbers later.
    delivered = [i for i in order if switch.receive(0, (start + i) % SPACE, 0)]
    present = sorted(set(order))
    if all(b - a <= 4 for a, b in pairwise(present)):
        assert sorted(delivered) == present
    assert len(delivered) == len(set(delivered))


@settings(max_examples=80)
@given(copies())
def test_window_delivers_in_order_and_never_twice(program: Program, drawn: tuple[int, list[int], int]) -> None:
    """The paper's promise, for disorder and gaps shorter than half of the numbers."""
    start, order, _ = drawn
    switch = egress(program, Acceptance("window", reset_ms=RESET_US / 1000))
    delivered = [i for i in order if switch.receive(0, (start + i) % SPACE, 0)]
    present = sorted(set(order))
    if all(b - a < SPACE // 2 - 4 for a, b in pairwise(present)):
        assert delivered == sorted(set(delivered))


@settings(max_examples=60)
@given(
    algorithm=st.sampled_from(("window", "vector", "match")),
    before=st.integers(0, SPACE - 1),
    after=st.integers(0, SPACE - 1),
    elapsed_us=st.integers(0, 2 * RESET_US),
)
def test_a_restarted_ingress_is_heard_after_the_reset(
    program: Program, algorithm: str, before: int, after: int, elapsed_us: int
) -> None:
    """For any new numbers nothing is discarded any more once the connection has been silent for so long."""
    switch = egress(program, Acceptance(algorithm, 8, RESET_US / 1000))  # type: ignore[arg-type]
    for i in range(10):
        assert switch.receive(i, (before + i) % SPACE, 0)
    last_us = 9
    heard = switch.receive(last_us + elapsed_us, after, 1)
    if elapsed_us >= RESET_US:
        assert heard
        assert switch.counts()["resets"] == 2
    last_us += elapsed_us + RESET_US
    assert all(switch.receive(last_us + i, (after + 1 + i) % SPACE, 1) for i in range(10))


@pytest.mark.parametrize("algorithm", ["window", "vector", "match"])
def test_a_restarted_egress_takes_the_next_packet(program: Program, algorithm: str) -> None:
    """Its registers are zero then, and the numbers anywhere."""
    for sn in range(SPACE):
        switch = egress(program, Acceptance(algorithm, 8, RESET_US / 1000))  # type: ignore[arg-type]
        assert switch.receive(0, sn, 0) and switch.receive(0, (sn + 1) % SPACE, 1)


def test_discarded_copies_do_not_put_a_reset_off(program: Program) -> None:
    """A stale sender must not keep the connection deaf by being discarded all the time."""
    switch = egress(program, Acceptance("vector", 8, RESET_US / 1000))
    assert switch.receive(0, 20, 0)
    heard = [switch.receive(t, 3, 0) for t in range(100, RESET_US + 200, 100)]
    assert heard == [False] * 9 + [True, False]


def test_lost_numbers_are_counted_for_jumps_of_several() -> None:
    """With 64 in the history: 63 before the first number are counted (the standard's start), then exactly the gaps."""
    switch = Egress(Configuration(Acceptance("vector", 64, 0)))
    numbers = [n for n in range(1000, 2000) if n % 7 and n % 11 and not 1500 <= n < 1540]
    for n in numbers:
        assert switch.receive(0, n, n % 4)
    left = range(numbers[0] - 63, numbers[-1] - 63)
    assert switch.counts()["lost"] == len(set(left) - set(numbers))


def test_a_history_longer_than_the_program_has_is_cut(program: Program) -> None:
    """And passes nothing twice."""
    switch, model = egress(program, Acceptance("vector", 128, 0)), SequenceRecovery(Acceptance("vector", 8, 0), BITS)
    for sn in (3, 5, 4, 12, 4, 5, 13, 5, 11):
        assert switch.receive(0, sn, 0) == model.receive(sn, 0)
    assert switch.counts() == model.counts()


@pytest.mark.parametrize(
    "wrong", [{"algorithm": "vektor"}, {"history": 1}, {"history": 129}, {"reset_ms": -1}, {"reset_ms": 5e6}]
)
def test_wrong_parameters(wrong: dict[str, object]) -> None:
    with pytest.raises(NetworkError):
        Acceptance(**wrong)  # type: ignore[arg-type]


@given(acceptances)
def test_an_entry_says_what_it_is_for(acceptance: Acceptance) -> None:
    """So that a controller that comes later finds it. The history is vector's alone."""
    action, params = acceptance.action(7)
    assert params["index"] == 7
    found = Acceptance.of(f"ProtectIngress.decaps_p.{action}", params)
    history = acceptance.history if acceptance.algorithm == "vector" else found.history
    assert found == Acceptance(acceptance.algorithm, history, acceptance.reset_ms)
