"""An HTTP server for those who watch: ``/metrics`` for Prometheus, ``/snapshot`` as JSON, and ``/events`` as they happen.

It only shows: there is nothing to change here. What is shown is made when somebody asks, at most once in ``FRESH_S``, however many
ask. Pages of strangers can have a browser of this machine ask as well: a server on loopback gives snapshot and events only to who
names this machine (a name of theirs cannot lead here), and a browser lets no page of another origin read them.
"""

from __future__ import annotations

import ipaddress
import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import h11
from prometheus_client import Metric

from holdfast.errors import HoldfastError, LiveError
from holdfast.numerals import is_numeral
from holdfast.operations import exposition
from holdfast.operations.clients import MOST_CLIENTS, Client, Clients, NoQuestionError
from holdfast.operations.events import Events, Listener
from holdfast.terminal import excerpt

HEAD_BYTES = 1 << 14

FRESH_S = 1.0
"""The age in seconds up to which a snapshot is served again, and the interval between two updates in the stream of
events."""

MOST_STREAMS = 8
"""The most clients that receive events; they count among those of :mod:`clients`, so that room is left for other
clients."""

KEEPALIVE_S = 10.0
"""The time in seconds after which a comment is sent on a stream without events, so that a client that has gone is
noticed."""

LOOPBACK = "127.0.0.1"

Families = Callable[[], Iterable[Metric]]


def endpoint(option: str, text: str) -> tuple[str, int]:
    """Parse ``ADDRESS:PORT``, as in ``[::1]:9100``, into host and port. Raises :class:`LiveError`, which names the option."""
    host, _, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not host or {"[", "]"} & set(host) or not is_numeral(port) or int(port) > 65_535:
        raise LiveError(f"{option} is {text!r}; it must be ADDRESS:PORT")
    return host, int(port)


class Pages:
    """A web server that shows the metrics that ``families`` returns, in threads of its own, until closed; a context manager.

    ``about``: what the program is, in the snapshot. ``families`` is called in any thread, by one at a time; it may raise a
    HoldfastError. ``events``: what is told beside changes of the snapshot.
    """

    def __init__(
        self,
        families: Families,
        port: int,
        host: str = LOOPBACK,
        *,
        about: Mapping[str, Any] | None = None,
        events: Events | None = None,
    ) -> None:
        """Listen at ``port``; 0 takes a free one. Raises :class:`LiveError` if the address is in use or not allowed."""
        self._families, self._about = families, dict(about or {})
        self._events = events or Events()
        self._made: tuple[list[Metric], float] | None = None
        self._making = threading.Lock()
        self._streams = threading.BoundedSemaphore(MOST_STREAMS)
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            opened = socket.create_server((host, port), family=family)
        except (OSError, OverflowError) as error:
            raise LiveError(f"cannot serve metrics at {host}:{port}: {error}") from None
        self.host, self.port = host, int(opened.getsockname()[1])
        self._local = _is_loopback(str(opened.getsockname()[0]))
        busy = _response(HTTPStatus.SERVICE_UNAVAILABLE, f"{MOST_CLIENTS} clients are served at a time\n")
        self.clients = Clients(opened, self._serve, busy=busy, name="pages")

    @property
    def authority(self) -> str:
        """Host and port, as they are written in an address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def close(self) -> None:
        """Stop the server: accept no more clients, and disconnect all."""
        self.clients.close()

    def __enter__(self) -> Pages:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self, client: Client) -> None:
        is_head = False
        try:
            request = _request(client.question(b"\r\n\r\n", HEAD_BYTES))
            target, is_head = request.path, request.is_head
            if target == "/metrics":
                with client.served():
                    body = exposition.text(self._fresh())
                answer = _response(HTTPStatus.OK, body, exposition.CONTENT_TYPE)
            elif target not in ("/snapshot", "/events"):
                answer = _response(HTTPStatus.NOT_FOUND, "there are /metrics, /snapshot and /events\n")
            elif self._local and not _names_this_machine(request.authority):
                answer = _response(HTTPStatus.MISDIRECTED_REQUEST, "ask by an address of this machine\n")
            elif target == "/snapshot":
                with client.served():
                    body = json.dumps(self.snapshot())
                answer = _response(HTTPStatus.OK, body, "application/json")
            elif is_head:
                answer = _head(HTTPStatus.OK, "text/event-stream") + b"\r\n"
            else:
                self._stream(client)
                return
        except _RefusedError as error:
            answer = _response(error.status, f"{error}\n")
        except NoQuestionError as error:
            answer = _response(HTTPStatus.BAD_REQUEST, f"{error}\n")
        except HoldfastError as error:
            answer = _response(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}\n")
        client.give(answer[: answer.index(b"\r\n\r\n") + 4] if is_head else answer)

    def snapshot(self) -> dict[str, Any]:
        """Return the snapshot that clients get: ``about``, and all metrics (:func:`exposition.as_json`)."""
        return {"about": self._about, "metrics": exposition.as_json(self._fresh())}

    def _fresh(self) -> list[Metric]:
        with self._making:
            if self._made is None or time.monotonic() - self._made[1] >= FRESH_S:
                self._made = list(self._families()), time.monotonic()
            return self._made[0]

    def _stream(self, client: Client) -> None:
        """Send the snapshot, then events and, every ``FRESH_S`` seconds, its changes as a JSON Merge Patch (RFC 7396)."""
        with ExitStack() as stack:
            if not self._streams.acquire(blocking=False):
                client.give(_response(HTTPStatus.SERVICE_UNAVAILABLE, f"{MOST_STREAMS} clients get events\n"))
                return
            stack.callback(self._streams.release)
            stack.enter_context(client.served())  # it is not in anybody's way, as it has a place of its own
            listener = stack.enter_context(self._events.listener())
            shown = self.snapshot()
            client.give(_head(HTTPStatus.OK, "text/event-stream") + b"\r\n" + _event("snapshot", shown))
            self._tell(client, listener, shown)

    def _tell(self, client: Client, listener: Listener, shown: dict[str, Any]) -> None:
        look_s, said_s = time.monotonic() + FRESH_S, time.monotonic()
        while True:
            event = listener.next(max(0.0, look_s - time.monotonic()))
            said = b"" if event is None else _event(*event)
            if time.monotonic() >= look_s:
                now = self.snapshot()
                if change := merge_patch(shown, now):
                    said += _event("change", change)
                shown, look_s = now, time.monotonic() + FRESH_S
            if not said and time.monotonic() - said_s >= KEEPALIVE_S:
                said = b":\n\n"
            if said:
                client.give(said)
                said_s = time.monotonic()


class _RefusedError(HoldfastError):
    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True)
class _Request:
    """A GET or HEAD request: its path, and the authority that it asks, empty if a client of HTTP/1.0 names none."""

    path: str
    authority: str
    is_head: bool


def _request(head: bytes) -> _Request:
    """Parse the head of an HTTP request. Raises :class:`_RefusedError` if it is malformed (RFC 9112) or not GET or HEAD."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
    try:
        connection.receive_data(head)
        said = connection.next_event()
    except h11.RemoteProtocolError as error:
        raise _RefusedError(HTTPStatus(error.error_status_hint), excerpt(f"this is no request: {error}")) from None
    if not isinstance(said, h11.Request) or not said.http_version.startswith(b"1."):
        raise _RefusedError(HTTPStatus.BAD_REQUEST, "this is no request of HTTP/1")
    if said.method not in (b"GET", b"HEAD"):
        raise _RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "there are only GET and HEAD")
    target = said.target.decode("latin-1")
    authority = next((value.decode("latin-1") for name, value in said.headers if name == b"host"), "")
    if target.lower().startswith("http://"):  # the absolute form, whose authority counts (RFC 9112, 3.2.2)
        authority, slash, path = target[len("http://") :].partition("/")
        target = slash + path
    return _Request(target.partition("?")[0], authority, said.method == b"HEAD")


def _names_this_machine(authority: str) -> bool:
    """Return True if an authority (host and port of a request) is empty, or its host is this machine."""
    name = authority[1:].partition("]")[0] if authority.startswith("[") else authority.partition(":")[0]
    return not authority or name.lower() == "localhost" or _is_loopback(name)


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _head(status: HTTPStatus, content_type: str) -> bytes:
    allow = "Allow: GET, HEAD\r\n" if status == HTTPStatus.METHOD_NOT_ALLOWED else ""
    return (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {content_type}\r\nCache-Control: no-store\r\n"
        f"X-Content-Type-Options: nosniff\r\n{allow}Connection: close\r\n"
    ).encode()


def _response(status: HTTPStatus, text: str, content_type: str = "text/plain; charset=utf-8") -> bytes:
    body = text.encode()
    return _head(status, content_type) + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


def _event(kind: str, data: Mapping[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Merge Patch (RFC 7396) that turns ``old`` into ``new``; neither may contain a null."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            if inner := merge_patch(before, value):
                patch[key] = inner
        elif key not in old or before != value:
            patch[key] = value
    return patch


__all__ = ["Pages", "endpoint", "merge_patch"]
