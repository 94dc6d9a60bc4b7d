"""YAML files that people write, read into models. Every mistake in one is a sentence that begins with the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from holdfast.errors import HoldfastError, ScenarioError, first_mistake

M = TypeVar("M", bound=BaseModel)


@contextmanager
def reading(path: Path, kind: type[HoldfastError]) -> Iterator[None]:
    """Around what reads and parses a file: what hinders that is raised as an error of this kind, with the line if it has one."""
    try:
        yield
    except OSError as error:
        raise kind(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise kind(f"{path}: this is not text in UTF-8") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise kind(f"{path}:{line}: not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise kind(f"{path}: not YAML: {error}") from None
    except RecursionError:
        raise kind(f"{path}: it is nested too deeply") from None


def read(path: Path, model: type[M]) -> M:
    """The model that a file holds; an empty file holds one with all defaults. Raises :class:`ScenarioError`."""
    with reading(path, ScenarioError):
        document = yaml.safe_load(path.read_text())
    if document is None:
        document = {}
    if not isinstance(document, Mapping):
        raise ScenarioError(f"{path}: a mapping of {', '.join(model.model_fields)} is expected")
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise ScenarioError(f"{path}: {first_mistake(error)}") from None
