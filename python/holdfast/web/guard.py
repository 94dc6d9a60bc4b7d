"""Who may see the page: whoever has its token, asks by an address of this machine, and comes from no other site.

A layer in front of an ASGI application (HTTP and WebSocket alike). It knows nothing of what is behind it. Pages of
strangers can have a browser of this machine ask here, under a name of theirs that leads to this machine (DNS rebinding): the
Host has to be an address or a name of this machine, and an Origin has to be the same.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_POLICY = "; ".join(
    (
        "default-src 'self'",
        # The framework compiles its templates in the browser.
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)

_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Guard:
    """Passes to ``application`` what comes with the token, and answers everything else with 403.

    The first page has the token in its address, and gives it as a cookie, which a page of another site neither reads nor sends.
    ``name`` of the cookie: cookies do not know ports, so each server of this machine needs its own.
    """

    def __init__(self, application: Application, *, name: str, token: str | None = None) -> None:
        self.token = token or secrets.token_hex(16)
        self.app, self._name = application, name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a connection."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = [(bytes(name).lower(), bytes(value).decode("latin-1")) for name, value in scope["headers"]]
        by_address = self._is_token(parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", []))
        sentence = _refusal(headers)
        if sentence is None and not by_address and not self._is_token(_cookies(headers, self._name)):
            sentence = "open the address that the command has printed: it has the token"
        if sentence is not None:
            await _refuse(scope, receive, send, sentence)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                more = list(_HEADERS)
                if by_address:
                    cookie = f"{self._name}={self.token}; Path=/; HttpOnly; SameSite=Strict"
                    more += [(b"set-cookie", cookie.encode()), (b"cache-control", b"no-store")]
                message["headers"] = [*message.get("headers", ()), *more]
            await send(message)

        await self.app(scope, receive, with_headers)

    def _is_token(self, given: Iterable[str]) -> bool:
        return any(secrets.compare_digest(each.encode(), self.token.encode()) for each in given)


def _refusal(headers: list[tuple[bytes, str]]) -> str | None:
    """Return why a request comes from another site or under another name, or None if it does not."""
    hosts = [value for name, value in headers if name == b"host"]
    if len(hosts) != 1 or not names_this_machine(hosts[0]):
        return "ask by an address of this machine, or as localhost"
    origins = [value for name, value in headers if name == b"origin"]
    if any(origin.lower() != f"http://{hosts[0].lower()}" for origin in origins):
        return "another site has asked"
    return None


def names_this_machine(authority: str) -> bool:
    """Return True if the host of ``HOST[:PORT]`` is an address, localhost or the machine's own name.

    An address of another machine cannot come here, and a name of a stranger is none of these.
    """
    host = authority[1:].partition("]")[0] if authority.startswith("[") else authority.partition(":")[0]
    if host.lower() in ("localhost", socket.gethostname().lower()):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _cookies(headers: list[tuple[bytes, str]], wanted: str) -> list[str]:
    """Return the values of a cookie. One by one: what other servers of this machine have set may be anything."""
    pairs = [pair.strip().partition("=") for name, value in headers if name == b"cookie" for pair in value.split(";")]
    return [value for name, _, value in pairs if name == wanted]


async def _refuse(scope: Scope, receive: Receive, send: Send, sentence: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})  # before it is accepted: the client gets 403
        return
    body = f"{sentence}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": HTTPStatus.FORBIDDEN.value, "headers": [*headers, *_HEADERS]})
    await send({"type": "http.response.body", "body": b"" if scope.get("method") == "HEAD" else body})


__all__ = ["Guard", "names_this_machine"]
