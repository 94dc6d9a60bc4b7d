"""The one exception family. Everything that this package raises on purpose is a :class:`HoldfastError`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast._core import CompileError, ControlError, HoldfastError

if TYPE_CHECKING:
    from pydantic import ValidationError


class TopologyError(HoldfastError):
    """A topology that could not run."""


class TopologyWarning(UserWarning):
    """Something about a topology that was read from outside and had to be guessed, or that a user should know of."""


class NetworkError(HoldfastError):
    """A network asked for something that it cannot do."""


class ScenarioError(HoldfastError):
    """Parameters of a scenario that make no sense together."""


class SweepError(HoldfastError):
    """A sweep that makes no sense, or of which runs failed."""


class ExperimentError(HoldfastError):
    """An experiment that does not exist, or whose numbers do not fit what they are compared with."""


class LiveError(HoldfastError):
    """Something that the live parts need from the machine is missing, or refused."""


def first_mistake(error: ValidationError) -> str:
    """The first thing that pydantic found, with its place (``links.0.rate_bps: ...``) unless that is the whole."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    return f"{place}: {message}" if place else message


__all__ = [
    "CompileError",
    "ControlError",
    "ExperimentError",
    "HoldfastError",
    "LiveError",
    "NetworkError",
    "ScenarioError",
    "SweepError",
    "TopologyError",
    "TopologyWarning",
    "first_mistake",
]
