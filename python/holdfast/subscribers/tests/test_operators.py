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
from holdfast.operations import clients, directory, verbs
from holdfast.subscribers import operator_requests, service
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
        found = verbs.read(operator_requests.REQUESTS, line)
    except clients.NoQuestionError as error:
        assert len(str(error)) < 300
        assert "\n" not in str(error)
    else:
        assert found.verb in ("sessions", "kick", "drain", "undrain")


def serving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scenario: Callable[[service.Service, Path], Awaitable[None]]
) -> None:
    """Run ``scenario`` with a running gateway, and check that the event loop has logged no exception."""
    monkeypatch.setattr(directory, "DIRECTORY", tmp_path)
    wrong: list[dict[str, Any]] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: wrong.append(context))
        plane = MemoryPlane(AsyncClock(asyncio.get_running_loop()))  # type: ignore[arg-type]
        async with service.Service(configuration(metrics_port=0), plane) as running:
            await scenario(running, operator_requests.operator_socket("ac-1"))
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
            assert len(data) > verbs.QUESTION_BYTES  # it was still writing
            return
        assert answer.count(b"\n") == 1
        assert said in answer.decode()
        json.loads(answer)

    serving(tmp_path, monkeypatch, scenario)


def test_no_other_user_may_open_the_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(running: service.Service, path: Path) -> None:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    serving(tmp_path, monkeypatch, scenario)


def test_the_gateway_goes_on_while_clients_are_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that neither silent clients nor one that does not take a long answer keep its event loop, or others, waiting."""
    monkeypatch.setattr(clients, "QUESTION_S", 1.0)

    async def scenario(running: service.Service, path: Path) -> None:
        monkeypatch.setattr(running, "sessions", lambda usage=False: rows if usage else [])
        row = dict.fromkeys(operator_requests.SessionRow.model_fields) | {"user": "x" * 1000}
        rows = [operator_requests.SessionRow.model_construct(**row)] * 20_000
        silent = [await asyncio.open_unix_connection(path) for _ in range(40)]
        with socket.socket(socket.AF_UNIX) as deaf:
            deaf.connect(str(path))
            deaf.sendall(b'{"verb": "sessions", "usage": true}\n')
            assert b'"sessions": []' in await exchange(path, b'{"verb": "sessions"}\n')
            assert b'"kicked": 0' in await exchange(path, b'{"verb": "kick", "sessions": "all"}\n')
        answer = await exchange(path, b'{"verb": "sessions", "usage": true}\n')
        assert len(json.loads(answer)["sessions"]) == 20_000
        for _, writer in silent:
            writer.close()

    serving(tmp_path, monkeypatch, scenario)


def test_what_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_ANSWER_S", 0.2)

    async def scenario(running: service.Service, path: Path) -> None:
        async def never(verb: str, name: str) -> None:
            await asyncio.Event().wait()

        monkeypatch.setattr(running, "_hand_over", never)
        said = json.loads(await exchange(path, b'{"verb": "drain", "plane": "x"}\n'))
        assert said == {"error": "it has taken too long", "code": "DEADLINE_EXCEEDED"}
        assert b'"sessions": []' in await exchange(path, b'{"verb": "sessions"}\n')

    serving(tmp_path, monkeypatch, scenario)


def test_a_second_gateway_of_this_name_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(running: service.Service, path: Path) -> None:
        plane = MemoryPlane(AsyncClock(asyncio.get_running_loop()))  # type: ignore[arg-type]
        with pytest.raises(LiveError, match="a gateway named 'ac-1' is running"):
            await service.Service(configuration(), plane).__aenter__()
        assert b'"sessions": []' in await exchange(path, b'{"verb": "sessions"}\n')
        # One that cannot listen for Prometheus leaves no operators' socket.
        other = configuration(metrics_port=running.addresses["metrics"]).model_copy(update={"name": "other"})
        with pytest.raises(LiveError, match="cannot serve metrics"):
            await service.Service(other, plane).__aenter__()
        assert [each.name for each in path.parent.glob("*.sock")] == ["bng-ac-1.sock"]

    serving(tmp_path, monkeypatch, scenario)
    assert not list(tmp_path.glob("*.sock"))


def test_prometheus_sees_the_gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(running: service.Service, path: Path) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.addresses["metrics"])
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(-1), 30)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b'\nholdfast_bng_drops_total{reason="overflow"} 0\n' in answer
        writer.close()

    serving(tmp_path, monkeypatch, scenario)


@pytest.mark.parametrize("answer", [b"", b"x\n", b"[1]\n", b"[" * 100_000 + b"\n", b'{"error": "no"}\n', b"\xff\n"])
def test_an_operator_gets_a_sentence_whatever_answers(
    answer: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "DIRECTORY", tmp_path)

    async def scenario() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            writer.write(answer)
            writer.close()

        async with await asyncio.start_unix_server(serve, operator_requests.operator_socket("x")):
            with pytest.raises(LiveError, match="gateway 'x'"):
                request = operator_requests.Sessions()
                await asyncio.to_thread(operator_requests.ask, "x", request, operator_requests.SessionsAnswer)

    asyncio.run(scenario())
