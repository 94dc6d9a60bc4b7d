"""Whatever answers at a socket, whoever asks gets an answer of the right kind, or one sentence in time."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.errors import LiveError
from holdfast.live import control
from holdfast.operations import directory, verbs
from holdfast.subscribers import operator_requests


@contextmanager
def answering(path: Path, answer: bytes, pause_s: float = 0) -> Iterator[None]:
    """Run a socket that accepts one connection and sends ``answer``, byte by byte if ``pause_s`` is not 0."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1 << 16)
                try:
                    for part in [answer] if not pause_s else [answer[i : i + 1] for i in range(len(answer))]:
                        connection.sendall(part)
                        time.sleep(pause_s)
                except OSError:
                    pass  # the client has gone

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield
        thread.join(10)


@pytest.mark.parametrize(
    "answer",
    [
        b"[1]",
        b"null",
        b'"x"',
        b"{}",
        b"NaN",
        b"[" * 100_000,
        b'{"address": "x", "access": "zzz"}',
        b'{"address": "x", "access": [1]}',
        b'{"error": "[/nope]"}',
        b"",
    ],
)
def test_an_answer_of_no_switch_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes) -> None:
    monkeypatch.setattr(directory, "DIRECTORY", tmp_path)
    with answering(control.socket_path(7), answer + b"\n"), pytest.raises(LiveError) as error:
        control.ask(7, control.AskServer(), control.RunningServer)
    assert str(error.value).startswith("switch with device id 7: ")
    with answering(tmp_path / "bng-x.sock", answer + b"\n"), pytest.raises(LiveError) as error:
        operator_requests.ask("x", operator_requests.Sessions(), operator_requests.SessionsAnswer)
    assert str(error.value).startswith("gateway 'x': ")


def test_a_refusal_has_its_sentence_and_its_code(tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    with (
        answering(path, b'{"error": "it is closed", "code": "UNAVAILABLE"}\n'),
        pytest.raises(verbs.RefusedError, match=r"^shop: it is closed$") as error,
    ):
        verbs.ask(path, "shop", control.AskServer(), control.RunningServer)
    assert error.value.code == "UNAVAILABLE"


def test_an_answer_that_drips_ends(tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    with answering(path, b"x" * 100, pause_s=0.05), pytest.raises(LiveError, match=r"does not end|timed out"):
        verbs.ask(path, "shop", control.AskServer(), control.RunningServer, patience_s=0.3)


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(LiveError, match=f"no shop answers at {tmp_path}/x.sock: No such file"):
        verbs.ask(tmp_path / "x.sock", "shop", control.AskServer(), control.RunningServer)


OTHER = """
import os, socket, sys
listening = socket.socket(socket.AF_UNIX)
os.setresuid(65534, 65534, 65534)
listening.bind(sys.argv[1])
listening.listen()
print("listens", flush=True)
connection, _ = listening.accept()
print(connection.recv(1000), flush=True)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_users_socket_is_told_nothing(tmp_path: Path) -> None:
    """Checks that no request goes to a socket of another user, who would also choose the answer."""
    tmp_path.chmod(0o777)
    for parent in tmp_path.parents[:3]:
        parent.chmod(parent.stat().st_mode | 0o711)
    path = tmp_path / "x.sock"
    process = subprocess.Popen([sys.executable, "-I", "-c", OTHER, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "listens\n"
        with pytest.raises(LiveError, match="is another user"):
            verbs.ask(path, "shop", control.AskServer(), control.RunningServer)
        assert process.stdout.readline() == "b''\n"
        # Nor is its place taken: the directory is not ours alone.
        with pytest.raises(LiveError, match="other users may write"):
            directory.listening(path, "taken")
    finally:
        process.kill()
        process.communicate()


def test_sockets_of_killed_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "DIRECTORY", tmp_path)
    for name in ("switch-7@1.sock", "switch-8@2.sock", "bng-x.sock"):
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(tmp_path / name))
    with socket.socket(socket.AF_UNIX) as running:
        running.bind(str(tmp_path / "switch-9@3.sock"))
        running.listen()
        directory.clear("switch-*.sock")
        assert {path.name for path in tmp_path.glob("*.sock")} == {"switch-9@3.sock", "bng-x.sock"}
