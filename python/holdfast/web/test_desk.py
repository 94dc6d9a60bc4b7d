"""The desk: what it says of lines, to whom, and its bounds."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import pytest

from holdfast import SimulatedNetwork
from holdfast.apps.router import compile_router
from holdfast.console import Result, Session
from holdfast.topologies import load
from holdfast.web.desk import MOST_AT_A_TIME, MOST_KEPT, Desk, Said


@pytest.fixture
def desk() -> Iterator[Desk]:
    with Session(SimulatedNetwork(load("ring:3"), compile_router(), seed=1)) as session:
        yield Desk(session)


def answered(desk: Desk, line: str) -> Said:
    """Return what is said of a line that was run."""
    found: queue.Queue[Said] = queue.Queue()
    desk.run(line, found.put)
    return found.get(timeout=60)


def test_it_tells_what_came_of_each_line(desk: Desk) -> None:
    told: queue.Queue[Said] = queue.Queue()
    desk.listeners.append(told.put)
    assert answered(desk, "nodes").ok
    refused = answered(desk, "pnigall")
    assert (refused.ok, refused.result) == (False, None)
    assert "did you mean 'pingall'?" in refused.text
    desk.session.do("h1 ping h2 -c 1")
    lines = [told.get(timeout=60) for _ in range(3)]
    assert [(each.line, each.ok) for each in lines] == [("nodes", True), ("pnigall", False), ("h1 ping h2 -c 1", False)]
    assert told.empty(), "each once, also what the prompt has run"
    assert desk.last() == lines


def test_control_characters_and_long_answers_do_not_reach_a_page(desk: Desk) -> None:
    said = desk.obey("\x1b[2J\x07")
    assert not said.ok
    assert "\x1b" not in said.text
    desk.session.do = lambda line: Result("x\n" * 10_000)  # type: ignore[method-assign]
    assert desk.obey("x").text.endswith("more lines")


def test_a_failure_of_the_users_code_is_shown_and_ends_nothing(desk: Desk) -> None:
    def fail(line: str) -> Result:
        raise ValueError("mine")

    desk.session.do = fail  # type: ignore[method-assign]
    assert "ValueError: mine" in answered(desk, "x").text


def test_so_many_verbs_run_at_a_time(desk: Desk) -> None:
    go_on, begun = threading.Event(), threading.Semaphore(0)

    def wait(line: str) -> Result:
        begun.release()
        assert go_on.wait(60)
        return Result("waited")

    desk.session.do = wait  # type: ignore[method-assign]
    done: queue.Queue[Said] = queue.Queue()
    for _ in range(MOST_AT_A_TIME):
        desk.run("x", done.put)
    for _ in range(MOST_AT_A_TIME):
        assert begun.acquire(timeout=60)
    desk.run("one more", done.put)
    assert done.get(timeout=60).text == f"{MOST_AT_A_TIME} verbs run already"
    go_on.set()
    assert all(done.get(timeout=60).text == "waited" for _ in range(MOST_AT_A_TIME))
    assert answered(desk, "x").text == "waited"


def test_what_was_said_can_be_read_while_more_is_said(desk: Desk) -> None:
    stop = threading.Event()

    def talk() -> None:
        while not stop.is_set():
            desk.obey("nodes")
            desk._tell(Said("x", "", ok=True))

    thread = threading.Thread(target=talk)
    thread.start()
    try:
        for _ in range(2000):
            assert len([each.line for each in desk.last()]) <= MOST_KEPT
    finally:
        stop.set()
        thread.join()
