"""Clients of a listening socket, each served in a thread: few at a time, with bounded questions and patience.

It does not know what is asked. Slow clients keep nobody out: while there are enough, the one that has kept the server waiting
since longest goes for a new one. A client for which the server works stays.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from holdfast.errors import HoldfastError

log = logging.getLogger(__name__)

MOST_CLIENTS = 16

QUESTION_S = 10.0
"""The time in seconds that a client has to send its request, and to receive each part of the answer."""

GONE_S = 20.0
"""The time in seconds after which a TCP client that acknowledges nothing is disconnected."""

_PART_BYTES = 1 << 16
_AGAIN_S = 0.05
"""The time in seconds until the next attempt to accept a client, after one has failed for want of descriptors."""
_JOIN_S = 5.0


class NoQuestionError(HoldfastError):
    """The client has sent no whole question in time: the message is for the client."""


class Client:
    """One connection. ``waited_for``: it has the turn, to ask or to take its answer."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.waited_for = True
        with suppress(OSError):  # a Unix socket has none
            # A client whose machine has vanished acknowledges nothing: it goes when it should have (RFC 5482).
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(GONE_S * 1000))

    def question(self, end: bytes, most_bytes: int) -> bytes:
        """Read the client's request up to the first ``end``, which is included; bytes after it are ignored.

        Raises :class:`NoQuestionError` if ``end`` does not come within ``most_bytes`` and :data:`QUESTION_S`.
        """
        data, until_s = bytearray(), time.monotonic() + QUESTION_S
        while (at := data.find(end, max(0, len(data) - _PART_BYTES - len(end)))) < 0:
            if len(data) >= most_bytes:
                raise NoQuestionError("the question is too long")
            try:
                self._connection.settimeout(max(0.001, until_s - time.monotonic()))
                part = self._connection.recv(min(_PART_BYTES, most_bytes - len(data)))
            except TimeoutError:
                raise NoQuestionError("the question has taken too long") from None
            if not part:
                raise NoQuestionError("the question has no end")
            data += part
        return bytes(data[: at + len(end)])

    @contextmanager
    def served(self) -> Iterator[None]:
        """Mark the client as served within the context: the server works for it, so it is not to blame for the delay."""
        self.waited_for = False
        try:
            yield
        finally:
            self.waited_for = True

    def give(self, answer: bytes) -> None:
        """Send an answer in parts. Raises TimeoutError if the client does not take a part within :data:`QUESTION_S`."""
        for at in range(0, len(answer), _PART_BYTES):
            self._connection.settimeout(QUESTION_S)
            self._connection.sendall(answer[at : at + _PART_BYTES])

    def turn_away(self, answer: bytes) -> None:
        """Send as much of an answer as the socket takes without waiting, and close the connection."""
        with suppress(OSError):
            self._connection.setblocking(False)
            self._connection.send(answer)
        self._connection.close()

    def cut(self) -> None:
        """Shut the connection down in both directions, which ends the thread that waits for it."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class Clients:
    """Accepts the clients of ``listening`` and calls ``serve`` with each in a thread of its own, until closed.

    ``busy`` is sent to a client that came while all others were being served; ``refused`` counts those.
    """

    def __init__(self, listening: socket.socket, serve: Callable[[Client], None], *, busy: bytes, name: str) -> None:
        self._listening, self._serve, self._busy, self._name = listening, serve, busy, name
        self._clients: dict[Client, None] = {}
        self._changing = threading.Lock()
        self._closed = threading.Event()
        self.refused = 0
        self._thread = threading.Thread(target=self._accept, name=name, daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        """Return the number of clients that are connected."""
        return len(self._clients)

    def close(self) -> None:
        """Accept no more clients, and disconnect all."""
        self._closed.set()
        # Closing alone would leave the thread waiting.
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(_JOIN_S)
        with self._changing:
            for each in self._clients:
                each.cut()

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                connection, _ = self._listening.accept()
            except OSError:
                # Closed; or the client has gone, or this process has no descriptor left.
                self._closed.wait(_AGAIN_S)
                continue
            self._admit(Client(connection))

    def _admit(self, client: Client) -> None:
        with self._changing:
            oldest = None
            if len(self._clients) >= MOST_CLIENTS:
                oldest = next((each for each in self._clients if each.waited_for), None)
                if oldest is None:
                    self.refused += 1
                    client.turn_away(self._busy)
                    return
                del self._clients[oldest]
            self._clients[client] = None
        if oldest is not None:
            oldest.cut()
        try:
            threading.Thread(target=self._run, args=(client,), name=self._name, daemon=True).start()
        except RuntimeError:  # the machine has no thread left
            self._leave(client)

    def _run(self, client: Client) -> None:
        try:
            self._serve(client)
        except OSError:
            pass  # the client has gone, or does not take its answer
        except Exception:
            log.exception(self._name)
        finally:
            self._leave(client)

    def _leave(self, client: Client) -> None:
        with self._changing:
            self._clients.pop(client, None)
        client.close()


__all__ = ["MOST_CLIENTS", "QUESTION_S", "Client", "Clients", "NoQuestionError"]
