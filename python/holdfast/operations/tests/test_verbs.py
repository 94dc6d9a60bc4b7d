"""An operators' socket: any bytes get one line or an end, clients are few and none stays for ever, and the program goes on."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import Field, TypeAdapter

from holdfast.errors import LiveError
from holdfast.operations import clients, verbs


class Double(verbs.Verb):
    verb: Literal["double"] = "double"
    number: int


class Work(verbs.Verb):
    verb: Literal["work"] = "work"
    how: Literal["wait", "refuse", "fail", "long"]


class Number(verbs.Answer):
    number: int


class Text(verbs.Answer):
    text: str


VERBS: TypeAdapter[Double | Work] = TypeAdapter(Annotated[Double | Work, Field(discriminator="verb")])


class Program:
    """Answers, and waits where it is told to until it is let go."""

    def __init__(self) -> None:
        self.go_on = threading.Event()

    def obey(self, request: Double | Work) -> verbs.Answer:
        if isinstance(request, Double):
            return Number(number=2 * request.number)
        if request.how == "refuse":
            raise verbs.RefusedError("not now", "UNAVAILABLE")
        if request.how == "fail":
            raise ZeroDivisionError("a fault of the program")
        if request.how == "wait":
            assert self.go_on.wait(60)
        return Text(text="x" * (8 << 20) if request.how == "long" else "done")


PROGRAM = Program()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[verbs.OperatorSocket]:
    PROGRAM.go_on.clear()
    with verbs.OperatorSocket(tmp_path / "x.sock", "taken", VERBS, PROGRAM.obey) as served:
        yield served
        PROGRAM.go_on.set()
    assert not (tmp_path / "x.sock").exists()


def connect(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(60)
    connection.connect(str(path))
    return connection


def exchange(path: Path, data: bytes) -> bytes:
    """Send bytes and their end, and return all that comes back; nothing if the server has stopped to listen."""
    with connect(path) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it has heard enough
        answer = bytearray()
        try:
            while part := connection.recv(1 << 16):
                answer += part
        except ConnectionResetError:
            pass
        return bytes(answer)


def until(condition: object, wait_s: float = 60) -> None:
    end_s = time.monotonic() + wait_s
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end_s
        time.sleep(0.01)


@given(st.binary(max_size=60) | st.text(max_size=20).map(lambda text: json.dumps({"verb": text}).encode()))
@example(b"")
@example(b"\n")
@example(b'{"verb": "double", "number": 2}')
@example(b'{"verb": "double", "number": 2}\n')
@example(b'{"verb": "double", "number": 2, "more": 1}\n')
@example(b'{"verb": "double", "number": true}\n')
@example(b'{"verb": "double", "number": "2"}\n')
@example(b'{"verb": "double", "number": NaN}\n')
@example(b'{"verb": "double", "number": ' + b"9" * 5000 + b"}\n")
@example(b"[" * 400_000 + b"\n")
@example(b"x" * (3 << 20))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_get_one_line(served: verbs.OperatorSocket, tmp_path: Path, data: bytes) -> None:
    answer = exchange(tmp_path / "x.sock", data)
    if not answer:
        assert len(data) > verbs.QUESTION_BYTES  # it was still writing
        return
    assert answer.endswith(b"\n")
    assert answer.count(b"\n") == 1
    said = json.loads(answer)
    if "number" not in said:
        assert said["code"] == "INVALID_ARGUMENT"
        assert len(said["error"]) < 300


def test_answers_and_refusals_are_of_their_kind(served: verbs.OperatorSocket, tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    assert verbs.ask(path, "shop", Double(number=21), Number).number == 42
    with pytest.raises(verbs.RefusedError, match=r"^shop: not now$") as error:
        verbs.ask(path, "shop", Work(how="refuse"), Text)
    assert error.value.code == "UNAVAILABLE"
    with pytest.raises(LiveError, match="its answer is none"):
        verbs.ask(path, "shop", Double(number=1), Text)
    assert len(verbs.ask(path, "shop", Work(how="long"), Text).text) == 8 << 20


def test_a_fault_of_the_program_costs_its_client_alone(
    served: verbs.OperatorSocket, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR), pytest.raises(verbs.RefusedError, match="its log says how") as error:
        verbs.ask(tmp_path / "x.sock", "shop", Work(how="fail"), Text)
    assert error.value.code == "INTERNAL"
    until(lambda: "a fault of the program" in caplog.text)
    assert verbs.ask(tmp_path / "x.sock", "shop", Double(number=1), Number).number == 2


def test_silent_clients_keep_nobody_out_and_do_not_stay(
    served: verbs.OperatorSocket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "QUESTION_S", 1.0)
    path = tmp_path / "x.sock"
    with ExitStack() as stack:
        for _ in range(60):
            silent = stack.enter_context(connect(path))
            silent.sendall(b'{"verb": ')
        assert len(served.clients) <= clients.MOST_CLIENTS
        assert verbs.ask(path, "shop", Double(number=1), Number).number == 2
        until(lambda: len(served.clients) == 0)
    assert served.clients.refused == 0


def test_a_client_for_which_the_program_works_stays(served: verbs.OperatorSocket, tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    answers: list[str] = []

    def ask() -> None:
        answers.append(verbs.ask(path, "shop", Work(how="wait"), Text, patience_s=60).text)

    threads = [threading.Thread(target=ask) for _ in range(clients.MOST_CLIENTS - 1)]
    for each in threads:
        each.start()
    until(lambda: sum(not each.waited_for for each in list(served.clients._clients)) == len(threads))
    with ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(connect(path))
        assert verbs.ask(path, "shop", Double(number=1), Number).number == 2
        # With one more that is served there is no place that anybody could give up.
        last = threading.Thread(target=ask)
        last.start()
        until(lambda: sum(not each.waited_for for each in list(served.clients._clients)) == clients.MOST_CLIENTS)
        with pytest.raises(verbs.RefusedError, match=f"{clients.MOST_CLIENTS} clients are served at a time") as error:
            verbs.ask(path, "shop", Double(number=1), Number)
        assert error.value.code == "RESOURCE_EXHAUSTED"
        PROGRAM.go_on.set()
        for each in (*threads, last):
            each.join(60)
    assert answers == ["done"] * clients.MOST_CLIENTS
    assert served.clients.refused >= 1


def test_a_client_that_takes_no_answer_is_let_go(
    served: verbs.OperatorSocket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "QUESTION_S", 0.3)
    with connect(tmp_path / "x.sock") as greedy:
        greedy.sendall(b'{"verb": "work", "how": "long"}\n')
        until(lambda: len(served.clients) == 1)
        until(lambda: len(served.clients) == 0)


def test_a_client_that_drips_is_let_go(
    served: verbs.OperatorSocket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "QUESTION_S", 0.3)
    with connect(tmp_path / "x.sock") as slow:
        end_s = time.monotonic() + 60
        with pytest.raises(OSError):
            while time.monotonic() < end_s:
                slow.send(b" ")
                time.sleep(0.05)
        until(lambda: len(served.clients) == 0)


def test_the_place_of_another_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    first = verbs.OperatorSocket(path, "taken", VERBS, PROGRAM.obey)
    with pytest.raises(LiveError, match=r"^taken$"):
        verbs.OperatorSocket(path, "taken", VERBS, PROGRAM.obey)
    path.unlink()  # by somebody who thinks that it was left behind
    with verbs.OperatorSocket(path, "taken", VERBS, PROGRAM.obey):
        first.close()
        assert verbs.ask(path, "shop", Double(number=1), Number).number == 2
    assert not path.exists()


def test_no_descriptor_left_is_no_end(served: verbs.OperatorSocket, tmp_path: Path) -> None:
    """Checks that a machine without room for a connection costs that connection, and not all later ones."""
    import resource

    path = tmp_path / "x.sock"
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as stack:
        waiting = [socket.socket(socket.AF_UNIX) for _ in range(4)]
        for each in waiting:
            stack.enter_context(each)
            each.settimeout(60)
        highest = max(each.fileno() for each in waiting)
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, before[1]))
        try:
            for each in waiting:
                each.connect(str(path))
            time.sleep(0.3)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert verbs.ask(path, "shop", Double(number=1), Number).number == 2
