"""Operators' requests to a running gateway and its answers, as they are written: one line of JSON each. It knows no gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, TypeAdapter

from holdfast.operations import directory, verbs

_ANSWER_S = 150.0
"""The time that an operator waits: longer than a gateway may take for an answer."""


class Sessions(verbs.Verb):
    """Asks for the sessions; with ``usage``, for their traffic as well."""

    verb: Literal["sessions"] = "sessions"
    usage: bool = False


class SessionRow(verbs.Answer):
    """A session, with the fields that operators see."""

    session: int
    user: str
    line: str
    mac: str
    phase: str
    ipv4: str | None
    ipv6: str | None
    delegated: str | None
    up_bit_s: int | None
    down_bit_s: int | None
    started_s: float | None
    bytes_up: int
    bytes_down: int
    packets_up: int
    packets_down: int


class SessionsAnswer(verbs.Answer):
    """The sessions, what was refused by which limit, and the sessions of each forwarding plane."""

    sessions: list[SessionRow]
    draining: bool
    refusals: dict[str, int]
    planes: dict[str, int]
    drained: list[str]


class Kick(verbs.Verb):
    """Ends sessions."""

    verb: Literal["kick"] = "kick"
    sessions: Literal["all"] | list[Annotated[int, Field(ge=1, le=65_534)]]


class KickAnswer(verbs.Answer):
    """The number of sessions that end."""

    kicked: int


class Drain(verbs.Verb):
    """Has a gateway take no new sessions, or a forwarding plane none at all; or ends that."""

    verb: Literal["drain", "undrain"]
    plane: str | None = None


class DrainAnswer(verbs.Answer):
    """The number of the gateway's sessions."""

    sessions: int


class HandOverAnswer(verbs.Answer):
    """The sessions of each plane, and when they were switched over and the last packets had come through."""

    planes: dict[str, int]
    switched_ms: float
    done_ms: float


Request = Sessions | Kick | Drain

REQUESTS: TypeAdapter[Request] = TypeAdapter(Annotated[Request, Field(discriminator="verb")])

A = TypeVar("A", bound=verbs.Answer)


def operator_socket(name: str) -> Path:
    """Return the path of the socket at which the gateway called ``name`` takes operators' requests."""
    return directory.socket_path(f"bng-{name}")


def ask(name: str, request: Request, answer: type[A]) -> A:
    """Send a request to the running gateway ``name`` and return the answer.

    Raises :class:`LiveError` if there is none or it refuses.
    """
    return verbs.ask(operator_socket(name), f"gateway {name!r}", request, answer, patience_s=_ANSWER_S)
