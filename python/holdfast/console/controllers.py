"""A user's controllers: ``FILE.py``, ``FILE.py:NAME`` or ``FILE.py:NAME(argument=value)`` becomes an object of theirs.

NAME is a subclass of :class:`Controller` or a function that returns a controller. Without a name the file has one such class.
"""

from __future__ import annotations

import ast
import inspect
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from holdfast import suggestions
from holdfast.controller import Controller
from holdfast.errors import ConsoleError, HoldfastError
from holdfast.extensions import module_of_file

REACTION_DELAY_MS = 1.0
"""Of a controller whose class wants a ``reaction_delay_ms`` and is given none."""

_LIBRARY = Path(__file__).parents[1]

_folders: set[Path] = set()
"""Of the files that were loaded."""


def load(spec: str) -> Controller:
    """Return a new controller. Raises :class:`ConsoleError` that shows the user's lines if their code fails."""
    path, name, arguments = _parsed(spec)
    if not path.is_file():
        raise ConsoleError(f"--controller: there is no file {str(path)!r}")
    module = _module(path)
    found = _find(module, path, name)
    if _wants_delay(found):
        arguments.setdefault("reaction_delay_ms", REACTION_DELAY_MS)
    try:
        controller = found(**arguments)
    except HoldfastError as error:
        raise ConsoleError(f"--controller {spec}: {error}") from None
    except Exception as error:  # noqa: BLE001 - the user's code
        raise ConsoleError(f"--controller {spec}:\n{told(error)}") from None
    if not isinstance(controller, Controller):
        raise ConsoleError(f"--controller {spec}: it is {type(controller).__name__}, not a holdfast.Controller")
    return controller


def _parsed(spec: str) -> tuple[Path, str | None, dict[str, Any]]:
    """Return file, name and arguments of a text such as ``hub.py:Hub(ports=4)``.

    Raises :class:`ConsoleError` if it is not of this form.
    """
    file, colon, call = spec.partition(".py:")
    path = Path(f"{file}.py" if colon else spec)
    if not colon:
        return path, None, {}
    try:
        parsed = ast.parse(call, mode="eval").body
        if isinstance(parsed, ast.Name):
            return path, parsed.id, {}
        if isinstance(parsed, ast.Call) and isinstance(parsed.func, ast.Name) and not parsed.args:
            given = {each.arg: ast.literal_eval(each.value) for each in parsed.keywords if each.arg}
            if len(given) == len(parsed.keywords):
                return path, parsed.func.id, given
    except (SyntaxError, ValueError):
        pass
    raise ConsoleError(f"--controller: {call!r} is no NAME or NAME(argument=value), such as Hub(ports=4)")


def _module(path: Path) -> ModuleType:
    _folders.update((path.parent, path.absolute().parent))
    try:
        return module_of_file(path)
    except Exception as error:  # noqa: BLE001 - the user's code
        raise ConsoleError(f"--controller {path}:\n{told(error)}") from None


def _find(module: ModuleType, path: Path, name: str | None) -> Any:
    own = {
        each: value
        for each, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, Controller) and value.__module__ == module.__name__
    }
    if name is not None:
        found = getattr(module, name, None)
        if not callable(found):
            raise ConsoleError(f"{path} has no controller {name!r}{suggestions.alternatives(name, own)}")
        return found
    if len(own) != 1:
        which = (
            f"several controllers; write one of {', '.join(f'{path}:{each}' for each in own)}"
            if own
            else "no subclass of holdfast.Controller"
        )
        raise ConsoleError(f"{path} has {which}")
    return next(iter(own.values()))


def _wants_delay(found: Any) -> bool:
    try:
        parameters = inspect.signature(found).parameters
    except (TypeError, ValueError):
        return False
    wanted = parameters.get("reaction_delay_ms")
    return wanted is not None and wanted.default is inspect.Parameter.empty


def of_user(error: BaseException) -> str | None:
    """Return an exception as Python shows it, with the lines of the user's files alone; None if it does not come from there."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).parent in _folders]
    return _shown(error, own) if own else None


def _shown(error: BaseException, frames: list[traceback.FrameSummary]) -> str:
    head = ["Traceback (most recent call last):\n"] if frames else []
    return "".join([*head, *traceback.format_list(frames), *traceback.format_exception_only(error)]).rstrip("\n")


def told(error: BaseException) -> str:
    """Return an exception as Python shows it, without the lines of this package and of the machinery of imports."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        frame
        for frame in frames
        if not Path(frame.filename).is_relative_to(_LIBRARY) and not frame.filename.startswith("<frozen")
    ]
    return _shown(error, [] if isinstance(error, SyntaxError) else own)


__all__ = ["load", "of_user", "told"]
