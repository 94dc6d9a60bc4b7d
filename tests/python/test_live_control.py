"""A switch's control socket may give any answer."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.errors import LiveError
from holdfast.live import control


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
    path = tmp_path / "switch-7.sock"
    monkeypatch.setattr(control, "socket_path", lambda device_id: path)
    with answering(path, answer + b"\n"), pytest.raises(LiveError):
        control.server_of(7)


def test_an_answer_that_drips_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "switch-7.sock"
    monkeypatch.setattr(control, "socket_path", lambda device_id: path)
    monkeypatch.setattr(control, "_PATIENCE_S", 0.3)
    with answering(path, b"x" * 100, pause_s=0.05), pytest.raises(LiveError, match="does not end"):
        control.server_of(7)
