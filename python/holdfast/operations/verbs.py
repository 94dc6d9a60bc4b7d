"""Operators' requests and answers: models, each a line of JSON over a Unix socket.

A request has a ``verb`` and is answered by a model of its own, or by a refusal: a sentence (``error``) with the name of a canonical
status (``code``), such as INVALID_ARGUMENT. It does not know which verbs there are.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from holdfast import regular_files
from holdfast.errors import HoldfastError, LiveError
from holdfast.operations import directory
from holdfast.operations.clients import MOST_CLIENTS, Client, Clients, NoQuestionError

QUESTION_BYTES = 1 << 19
LONGEST_ANSWER_BYTES = 1 << 28
"""The longest answer; that with 65,534 sessions of a gateway has some 30 MB."""

PATIENCE_S = 10.0
"""The time in seconds that an operator waits for an answer, unless the verb has a longer time."""

_MOST_SHOWN = 200


class Verb(BaseModel):
    """A request. A subclass has a field ``verb`` that is a literal, and refuses what it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Answer(BaseModel):
    """What answers a request; another version of the program may say more."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class RefusedError(LiveError):
    """The running program has refused a request. ``code``: the name of the status."""

    def __init__(self, message: str, code: str = "FAILED_PRECONDITION") -> None:
        super().__init__(message)
        self.code = code


V = TypeVar("V")
A = TypeVar("A", bound=Answer)


def read(verbs: TypeAdapter[V], line: bytes) -> V:
    """Parse a request from a line of JSON. Raises :class:`NoQuestionError` with one sentence that says what is wrong."""
    try:
        return verbs.validate_json(line, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(each) for each in first["loc"])
        said = f"{place}: {first['msg']}" if place else first["msg"]
        raise NoQuestionError(f"not a request: {said[:_MOST_SHOWN]}") from None


class OperatorSocket:
    """Answers operators at a Unix socket, in threads of its own, until closed; a context manager.

    ``taken``: the sentence that refuses a start if somebody listens there. ``obey`` is called with a request, in any thread, and
    returns its answer or raises a HoldfastError.
    """

    def __init__(self, path: Path, taken: str, verbs: TypeAdapter[V], obey: Callable[[V], Answer]) -> None:
        self._path, self._verbs, self._obey = path, verbs, obey
        opened = directory.listening(path, taken)
        self._inode = directory.inode(path)
        busy = _refusal(f"{MOST_CLIENTS} clients are served at a time", "RESOURCE_EXHAUSTED")
        self.clients = Clients(opened, self._serve, busy=busy, name="operators")

    def _serve(self, client: Client) -> None:
        try:
            request = read(self._verbs, client.question(b"\n", QUESTION_BYTES))
            with client.served():
                answer = json.dumps(self._obey(request).model_dump()).encode() + b"\n"
        except NoQuestionError as error:
            answer = _refusal(str(error), "INVALID_ARGUMENT")
        except HoldfastError as error:
            answer = _refusal(str(error), getattr(error, "code", "FAILED_PRECONDITION"))
        except OSError:
            raise
        except Exception:
            client.give(_refusal("the program has failed; its log says how", "INTERNAL"))
            raise
        client.give(answer)

    def close(self) -> None:
        """Stop answering, and remove the socket."""
        # First, so that nobody finds a socket that does not answer; and not if it is another process' by now.
        if directory.inode(self._path) == self._inode:
            self._path.unlink(missing_ok=True)
        self.clients.close()

    def __enter__(self) -> OperatorSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _refusal(sentence: str, code: str) -> bytes:
    return json.dumps({"error": sentence, "code": code}).encode() + b"\n"


def ask(path: Path, who: str, verb: Verb, answer: type[A], *, patience_s: float = PATIENCE_S) -> A:
    """Send a request to the running program ``who`` that listens at ``path``, and return its answer.

    Raises :class:`LiveError` if nobody answers there within ``patience_s``, or another user does, and :class:`RefusedError` if the
    program refuses.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(patience_s)
            connection.connect(str(path))
            _check_peer(connection, path)
            with suppress(BrokenPipeError):  # it has closed the connection, and perhaps said why
                connection.sendall(verb.model_dump_json().encode() + b"\n")
            line = _line(connection, time.monotonic() + patience_s)
    except OSError as error:
        raise LiveError(f"no {who} answers at {path}: {error.strerror or error}") from None
    try:
        said: Any = json.loads(line) if line else {"error": "it has ended", "code": "UNAVAILABLE"}
    except (ValueError, RecursionError):
        raise LiveError(f"{who}: its answer is none") from None
    if isinstance(said, dict) and "error" in said:
        raise RefusedError(f"{who}: {said['error']}", str(said.get("code", "UNKNOWN")))
    try:
        return answer.model_validate(said)
    except ValidationError:
        raise LiveError(f"{who}: its answer is none") from None


def _check_peer(connection: socket.socket, path: Path) -> None:
    """Raise :class:`LiveError` unless the process that listens at ``path`` belongs to a user whose files this process trusts."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", credentials)
    if user not in regular_files.trusted_users():
        raise LiveError(f"who answers at {path} is another user: {user}, not {os.geteuid()}")


def _line(connection: socket.socket, until_s: float) -> bytes:
    """Read up to the end of a line, or until the connection ends. Raises TimeoutError at ``until_s`` (monotonic time)."""
    data = bytearray()
    while not data.endswith(b"\n") and len(data) < LONGEST_ANSWER_BYTES:
        if (left_s := until_s - time.monotonic()) <= 0:
            raise TimeoutError("the line does not end")
        connection.settimeout(left_s)
        if not (part := connection.recv(1 << 16)):
            break
        data += part
    return bytes(data)


__all__ = ["Answer", "OperatorSocket", "RefusedError", "Verb", "ask", "read"]
