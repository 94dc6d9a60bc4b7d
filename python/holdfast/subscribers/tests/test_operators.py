"""The sockets of operators and of Prometheus: any bytes get an answer or an end, and few clients are served, none for ever."""

from __future__ import annotations

import asyncio
import json
import socket
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.errors import LiveError
from holdfast.subscribers import connections, operator_requests, service
from holdfast.subscribers.loop_clock import AsyncClock
from holdfast.subscribers.tests.worlds import MemoryPlane, configuration

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["kick", "all", "drain"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["verb", "sessions", "plane", "usage", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)
REQUESTS = st.dictionaries(st.sampled_from(["sessions", "plane", "usage"]), JSON, max_size=3).flatmap(
    lambda rest: st.sampled_from(["sessions", "kick", "drain", "undrain", "stop", ""]).map(
        lambda verb: {**rest, "verb": verb}
    )
)


@given(st.binary(max_size=60) | (JSON | REQUESTS).map(lambda value: json.dumps(value).encode()))
@example(b"")
@example(b"[" * 100_000)
@example(b'{"verb":' * 50_000)
@example(b'{"verb": "kick", "sessions": [1e400]}')
@example(b'{"verb": "kick", "sessions": [NaN]}')
@example(b'{"verb": "kick", "sessions": [' + b"9" * 5000 + b"]}")
@example(b'{"verb": "kick", "sessions": [true]}')
@example(b'{"verb": "kick", "sessions": "nobody"}')
@example(b'{"verb": "drain", "plane": "\\ud800"}')
@example(b'{"verb": ["drain"]}')
@settings(max_examples=300, deadline=None)
def test_a_line_is_a_request_or_a_sentence_says_why_not(line: bytes) -> None:
    try:
        found = operator_requests.read(line)
    except connections.NoQuestionError as error:
        assert len(str(error)) < 300
        assert "\n" not in str(error)
    else:
        assert found.verb in ("sessions", "kick", "drain", "undrain")


def serving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scenario: Callable[[service.Service, Path], Awaitable[None]]
) -> None:
    """Run ``scenario`` with a running gateway, and check that the event loop has logged no exception."""
    monkeypatch.setattr(service, "DIRECTORY", tmp_path)
    wrong: list[dict[str, Any]] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: wrong.append(context))
        plane = MemoryPlane(AsyncClock(asyncio.get_running_loop()))  # type: ignore[arg-type]
        async with service.Service(configuration(metrics_port=0), plane) as running:
            await scenario(running, service.operator_socket("ac-1"))
            await asyncio.sleep(0.05)

    asyncio.run(run())
    assert not wrong


async def exchange(path: Path, data: bytes, end: bool = True) -> bytes:
    reader, writer = await asyncio.open_unix_connection(path, limit=1 << 24)
    try:
        writer.write(data)
        if end and writer.can_write_eof():
            writer.write_eof()
        return await asyncio.wait_for(reader.read(-1), 30)
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"verb": "sessions"}\n', '"sessions": []'),
        (b'{"verb": "sessions", "usage": true}\n', '"sessions": []'),
        (b'{"verb": "kick", "sessions": "all"}\n', '"kicked": 0'),
        (b'{"verb": "kick", "sessions": [7]}\nmore\n', '"kicked": 0'),
        (b'{"verb": "drain", "plane": "x"}\n', "it has one plane"),
        (b'{"verb": "drain"}', "no end"),
        (b"", "no end"),
        (b"\n", "not a request"),
        (b"x" * (3 << 20), "too long"),
        (b"[" * 400_000 + b"\n", "not a request"),
        (b'{"verb": "stop"}\n', "not a request"),
    ],
)
def test_a_client_gets_one_line(data: bytes, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(running: service.Service, path: Path) -> None:
        try:
            answer = await exchange(path, data)
        except ConnectionError:
            assert len(data) > connections.QUESTION_BYTES  # it was still writing
            return
        assert answer.count(b"\n") == 1
        assert said in answer.decode()
        json.loads(answer)

    serving(tmp_path, monkeypatch, scenario)


def test_no_other_user_may_open_the_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(running: service.Service, path: Path) -> None:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    serving(tmp_path, monkeypatch, scenario)


def test_silent_clients_are_few_and_do_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "QUESTION_S", 0.5)

    async def scenario(running: service.Service, path: Path) -> None:
        silent = [await asyncio.open_unix_connection(path) for _ in range(40)]
        await asyncio.sleep(0.1)
        assert running._operators.clients == connections.MOST_CLIENTS
        assert running._operators.refused == 40 - connections.MOST_CLIENTS
        assert b"at a time" in await exchange(path, b"", end=False)
        await asyncio.sleep(1)
        assert running._operators.clients == 0
        assert b'"sessions": []' in await exchange(path, b'{"verb": "sessions"}\n')
        for _, writer in silent:
            writer.close()

    serving(tmp_path, monkeypatch, scenario)


def test_a_client_that_takes_no_answer_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "QUESTION_S", 0.3)

    async def scenario(running: service.Service, path: Path) -> None:
        rows = [{"user": "x" * 1000}] * 20_000
        monkeypatch.setattr(running, "sessions", lambda usage=False: rows)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b'{"verb": "sessions"}\n')
            await asyncio.sleep(0.2)
            assert running._operators.clients == 1
            await asyncio.sleep(1)
            assert running._operators.clients == 0
        answer = await exchange(path, b'{"verb": "sessions"}\n')
        assert len(json.loads(answer)["sessions"]) == 20_000

    serving(tmp_path, monkeypatch, scenario)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 200),
        (b"GET /metrics?a=b HTTP/1.0\r\n\r\n", 200),
        (b"GET / HTTP/1.1\r\n\r\n", 404),
        (b"\r\n\r\n", 404),
        (b"\xff" * 99 + b"\r\n\r\n", 404),
        (b"GET /metrics", 400),
        (b"x" * 100_000, 400),
    ],
)
def test_a_page_is_metrics_or_an_error(
    head: bytes, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(running: service.Service, path: Path) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.addresses["metrics"])
        writer.write(head)
        writer.write_eof()
        try:
            answer = await asyncio.wait_for(reader.read(-1), 30)
        except ConnectionError:
            assert status == 400
        else:
            assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:100]
        writer.close()

    serving(tmp_path, monkeypatch, scenario)


@pytest.mark.parametrize("answer", [b"", b"x\n", b"[1]\n", b"[" * 100_000 + b"\n", b'{"error": "no"}\n', b"\xff\n"])
def test_an_operator_gets_a_sentence_whatever_answers(
    answer: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "DIRECTORY", tmp_path)

    async def scenario() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            writer.write(answer)
            writer.close()

        async with await asyncio.start_unix_server(serve, service.operator_socket("x")):
            with pytest.raises(LiveError, match="gateway 'x'"):
                await asyncio.to_thread(service.ask, "x", verb="sessions")

    asyncio.run(scenario())
