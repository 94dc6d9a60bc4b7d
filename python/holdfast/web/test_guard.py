"""Who gets through the guard, over HTTP and WebSocket, without any framework or browser."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.web.guard import Guard, Message, Receive, Scope, Send

TOKEN = "0123456789abcdef"
HOST = ("host", "127.0.0.1:8000")
COOKIE = ("cookie", f'a=b; strange{{}}="; holdfast-8000={TOKEN}; c=d')


async def _application(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"there"})


def asked(
    *headers: tuple[str, str], query: str = "", kind: str = "http", path: str = "/", method: str = "GET"
) -> list[Message]:
    """Return what the guard sends for a request."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": f"{kind}.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: dict[str, Any] = {
        "type": kind,
        "path": path,
        "method": method,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers],
    }
    asyncio.run(Guard(_application, name="holdfast-8000", token=TOKEN)(scope, receive, send))
    return sent


def status(messages: list[Message]) -> int:
    return int(messages[0]["status"])


def headers(messages: list[Message]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in messages[0]["headers"]}


def test_the_token_in_the_address_becomes_a_cookie_that_no_other_site_uses() -> None:
    answer = asked(HOST, query=f"token={TOKEN}")
    assert status(answer) == 200
    assert headers(answer)["set-cookie"] == f"holdfast-8000={TOKEN}; Path=/; HttpOnly; SameSite=Strict"
    assert headers(answer)["cache-control"] == "no-store"
    assert headers(answer)["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in headers(answer)["content-security-policy"]
    again = asked(HOST, COOKIE, ("origin", "http://127.0.0.1:8000"))
    assert status(again) == 200
    assert "set-cookie" not in headers(again)


@pytest.mark.parametrize("path", ["/", "/_nicegui/3/static/x.js", "/files/s1-s2.pcap", "/../etc/passwd"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS"])
@pytest.mark.parametrize(
    ("more", "query"),
    [
        ((), ""),
        ((), "token="),
        ((), "token=0123456789abcdeF"),
        ((), "token=%00\N{LATIN SMALL LETTER E WITH ACUTE}"),
        ((), f"Token={TOKEN}"),
        ((("cookie", f"holdfast-8001={TOKEN}"),), ""),
        ((("cookie", "holdfast-8000="),), ""),
        ((("authorization", f"Bearer {TOKEN}"),), ""),
    ],
)
def test_without_the_token_everything_is_forbidden(
    path: str, method: str, more: tuple[tuple[str, str], ...], query: str
) -> None:
    answer = asked(HOST, *more, query=query, path=path, method=method)
    assert status(answer) == 403
    assert b"there" not in b"".join(message.get("body", b"") for message in answer)
    assert (answer[1]["body"] == b"") == (method == "HEAD")


@pytest.mark.parametrize(
    "more",
    [
        (),
        (("host", "rebound.example:8000"),),
        (("host", "127.0.0.1.example"),),
        (("host", ""),),
        (HOST, ("host", "example.org")),
        (HOST, ("origin", "http://example.org")),
        (HOST, ("origin", "http://127.0.0.1:8001")),
        (HOST, ("origin", "https://127.0.0.1:8000")),
        (HOST, ("origin", "http://localhost:8000")),
        (HOST, ("origin", "null")),
        (HOST, ("origin", "http://127.0.0.1:8000"), ("origin", "http://example.org")),
    ],
)
def test_another_name_or_another_origin_is_forbidden_with_the_token(more: tuple[tuple[str, str], ...]) -> None:
    assert status(asked(*more, COOKIE)) == 403
    assert status(asked(*more, query=f"token={TOKEN}")) == 403
    assert asked(*more, COOKIE, kind="websocket") == [{"type": "websocket.close", "code": 1008}]


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:9", "LOCALHOST", "[::1]:8000", "192.0.2.7:8000"])
def test_each_name_of_this_machine_is_good(host: str) -> None:
    assert status(asked(("host", host), COOKIE, ("origin", f"http://{host}"))) == 200


def test_a_websocket_needs_the_token_as_well() -> None:
    assert asked(HOST, kind="websocket") == [{"type": "websocket.close", "code": 1008}]
    assert asked(HOST, COOKIE, kind="websocket") == [{"type": "websocket.accept"}]


def test_each_guard_has_a_token_of_its_own() -> None:
    tokens = {Guard(_application, name="x").token for _ in range(10)}
    assert len(tokens) == 10
    assert all(len(token) == 32 for token in tokens)
