"""The exception family. Every exception that this package raises on purpose is a :class:`HoldfastError`."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path
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


class ParameterError(NetworkError, ValueError):
    """A value that a parameter cannot have.

    ``model``: the owner of the parameter. ``field``: its name, empty if several make no sense together. ``sentence``: why not.
    """

    def __init__(self, model: str, field: str, sentence: str) -> None:
        super().__init__(": ".join(part for part in (model, field, sentence) if part))
        self.model, self.field, self.sentence = model, field, sentence


class ScenarioError(HoldfastError):
    """Parameters of a scenario that make no sense together."""


class EntriesError(ScenarioError):
    """A file of entries that a switch with the program could not hold."""


class EntriesWarning(UserWarning):
    """Something in a file of entries that is left out."""


class SweepError(HoldfastError):
    """A sweep that makes no sense, or of which runs failed."""


class ExperimentError(HoldfastError):
    """An experiment that does not exist, or whose numbers do not fit what they are compared with."""


class ResultError(HoldfastError):
    """Results that are not there, or are damaged."""


class ExtensionError(HoldfastError):
    """Something from outside the package that cannot be used: it is not there, raises errors, or is something else."""


class LiveError(HoldfastError):
    """Something that the live parts need from the machine is missing, or refused."""


class ConsoleError(HoldfastError):
    """A line of a console that is no verb, or a verb that cannot be obeyed."""


def first_mistake(error: ValidationError) -> str:
    """Return pydantic's first error as ``place: message`` (``links.0.rate_bps: ...``).

    Without the place if it is the whole model.
    """
    return ": ".join(part for part in place_of_mistake(error) if part)


def place_of_mistake(error: ValidationError) -> tuple[str, str]:
    """Return pydantic's first error as a pair: its place, empty for the whole model, and the message."""
    first = error.errors()[0]
    # Not pydantic's own names of how a value is checked, such as "lax-or-strict[...]".
    place = [str(part) for part in first["loc"] if not str(part).startswith(("lax-or-strict[", "function-"))]
    inner = first.get("ctx", {}).get("error")
    if isinstance(inner, ParameterError):
        return ".".join([*place, inner.field] if inner.field else place), inner.sentence
    return ".".join(place), first["msg"].removeprefix("Value error, ")


__all__ = [
    "CompileError",
    "ConsoleError",
    "ControlError",
    "EntriesError",
    "EntriesWarning",
    "ExperimentError",
    "ExtensionError",
    "HoldfastError",
    "LiveError",
    "NetworkError",
    "ParameterError",
    "ResultError",
    "ScenarioError",
    "SweepError",
    "TopologyError",
    "TopologyWarning",
    "first_mistake",
    "place_of_mistake",
]


def located(error: HoldfastError) -> str:
    """Return the sentence of an error, behind file and line of the last call to the package from outside it, if there is one.

    So who wrote a mechanism or controller finds the call that was wrong. Lines of Python's and other libraries do not count.
    """
    paths = sysconfig.get_paths()
    known = (str(Path(__file__).parent), paths["stdlib"], paths["purelib"], paths["platlib"], "<")
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith(known)]
    return f"{frames[-1].filename}:{frames[-1].lineno}: {error}" if frames else str(error)
