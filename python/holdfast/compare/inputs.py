"""The parts that scenarios of all worlds have: the times of a failure, and the file from which the processes that run read them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeVar

from pydantic import Field, ValidationError

from holdfast import whole_files
from holdfast.errors import ScenarioError, first_mistake
from holdfast.parameters import Checked

NO_FAILURE: Final = "none"
"""The failure of the undisturbed run."""

ALL: Final = "all"
"""A value of ``fail``: all that can fail, each in turn."""

DRAIN_S: Final = 0.5
"""Packets that are still on their way at the end of the traffic get that long to arrive."""

Model = TypeVar("Model", bound=Checked)


class Times(Checked):
    """When what fails goes down and comes back, and how fast is learnt of it."""

    before_s: float = Field(gt=0, le=3600)
    down_s: float = Field(gt=0, le=3600)
    after_s: float = Field(ge=0, le=3600)
    detection_delay_ms: float = Field(default=50.0, ge=0, le=60_000)
    reaction_delay_ms: float = Field(default=100.0, ge=0, le=60_000)

    @property
    def failure_s(self) -> float:
        """When the element fails, in seconds."""
        return self.before_s

    @property
    def repair_s(self) -> float:
        """When the element is repaired, in seconds."""
        return round(self.before_s + self.down_s, 9)

    @property
    def end_s(self) -> float:
        """When traffic ends, in seconds."""
        return round(self.before_s + self.down_s + self.after_s, 9)


class Scenario(Checked):
    """What every scenario has; a world adds its own values. A run reads them, but not the failures (:func:`read`).

    ``live``: runs are in real time, so there is one at a time, and no two are the same.
    """

    times: Times
    failures: tuple[str, ...] = Field(default=(), exclude=True)
    live: bool = False

    def write(self, folder: Path) -> Path:
        """Write this scenario to a file in ``folder`` whose name is a hash of its content, and return the path."""
        # Without defaults, as whether a value was given can matter.
        text = self.model_dump_json(indent=1, exclude_defaults=True)
        path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
        folder.mkdir(parents=True, exist_ok=True)
        whole_files.write_text(path, text)
        return path


S = TypeVar("S", bound=Scenario)


@lru_cache(maxsize=2)
def read(kind: type[S], path: str) -> S:
    """Return the scenario in a file that :meth:`Scenario.write` has written, without its failures."""
    return kind.model_validate_json(Path(path).read_text(encoding="utf-8"))


def checked(model: type[Model], given: Mapping[str, float | None]) -> Model:
    """Return the ``model`` with the fields ``given``, the command's options; those that are None get their defaults.

    Raise :class:`ScenarioError` with one sentence that names the first wrong option.
    """
    try:
        return model.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        raise ScenarioError(f"--{first_mistake(error).replace('_', '-')}") from None


def times(given: Mapping[str, float | None]) -> Times:
    """Return the times from the command's options; raise :class:`ScenarioError` with one sentence for a wrong one."""
    return checked(Times, given)
