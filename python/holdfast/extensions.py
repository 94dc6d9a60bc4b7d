"""Own things from outside the package: a mechanism, a topology, traffic, an importer, each behind a :class:`Door`.

A user names a thing by the place where it is (``module:NAME``, ``FILE.py:NAME``), or by the name under which an installed package
offers it: an entry point of the door's group, such as

.. code-block:: toml

    [project.entry-points."holdfast.mechanisms"]
    mine = "my_package.mechanism:MINE"

Nothing is imported before somebody asks for it by name, so what is installed and not asked for can neither break anything nor take
time. Holdfast's own names are refused to others. What is wrong with a thing is one sentence, which names it; the others work.
What the things are is not known here.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from holdfast.errors import ExtensionError, HoldfastError
from holdfast.terminal import excerpt

T = TypeVar("T")
K = TypeVar("K")


@dataclass(frozen=True)
class Installed:
    """A name that an installed package offers at a door. ``error``: why it cannot be used, None if it can."""

    name: str
    package: str
    place: str
    error: str | None = None


@dataclass(frozen=True)
class Door(Generic[T]):
    """A kind of things from outside: ``what`` it is in words, and the ``group`` of the entry points that offer such things.

    ``check`` returns a value as the thing that it is, and raises :class:`holdfast.errors.ExtensionError` with a clause that says
    what it is not. ``own``: the names that Holdfast has itself.
    """

    group: str
    what: str
    check: Callable[[object], T]
    own: Callable[[], Collection[str]]

    def names(self) -> list[str]:
        """Return the names under which installed packages offer things of this kind, without Holdfast's own names; sorted."""
        own = self.own()
        return sorted({each.name for each in entry_points(group=self.group)} - set(own))

    def installed(self) -> Iterator[Installed]:
        """Load everything that installed packages offer, and yield each name with the error, if it cannot be used."""
        for each in sorted(entry_points(group=self.group), key=lambda point: (point.name, point.value)):
            error = None
            try:
                if each.name in self.own():
                    raise ExtensionError(f"{_described(each)}: {each.name!r} is the name of one of Holdfast's own")
                self.load(each.name)
            except ExtensionError as refused:
                error = str(refused)
            yield Installed(each.name, _package(each), _place(each), error)

    def load(self, name: str) -> T:
        """Import and return what an installed package offers under ``name``.

        Raise :class:`holdfast.errors.ExtensionError` if none or several do, or if it cannot be imported or is something else.
        """
        point = self._point(name)
        try:
            return self._of(_place(point), own_folder=False)
        except ExtensionError as error:
            raise ExtensionError(f"{_described(point)}: {error}") from None

    def place(self, name: str) -> str:
        """Return the ``module:NAME`` that an installed package gives for ``name``. Raise as :meth:`load`; nothing is imported."""
        return _place(self._point(name))

    def _point(self, name: str) -> EntryPoint:
        found = list(dict.fromkeys(entry_points(group=self.group, name=name)))
        if not found:
            raise ExtensionError(f"there is no {self.what} {name!r}")
        if len(found) > 1:
            both = " and ".join(sorted(f"{_package(each)} ({each.value})" for each in found))
            raise ExtensionError(f"{self.what} {name!r} is offered by {both}; give one by its place, MODULE:NAME")
        return found[0]

    def read(self, place: str) -> T:
        """Import and return what is at ``place`` (``module:NAME``, ``FILE.py:NAME``); without NAME, the only thing of this kind.

        Raise :class:`holdfast.errors.ExtensionError` if there is none, or if its module cannot be imported.
        """
        return self._of(place, own_folder=True)

    def _of(self, place: str, *, own_folder: bool) -> T:
        module, name = loaded(place, own_folder=own_folder)
        if not name:
            return self._only(place, module)
        value = _attribute(place, module, name)
        try:
            return self.check(value)
        except ExtensionError as error:
            raise ExtensionError(f"{place}: {error}") from None

    def called(self, text: str, call: Callable[[], object], kind: type[K]) -> K:
        """Call a function that is not Holdfast's own and return its result, which must be a ``kind``; ``text`` names it in errors.

        Errors of the family pass. Raise :class:`holdfast.errors.ExtensionError` for any other error, with its line, and for
        anything else that is returned. ``call`` takes no arguments.
        """
        try:
            found = call()
        except HoldfastError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever others' code raises, here it is one sentence
            raise ExtensionError(f"{text}: {_sentence(error)}") from None
        if not isinstance(found, kind):
            raise ExtensionError(f"{text}: this {self.what} returned a {type(found).__name__}, not a {kind.__name__}")
        return found

    def _only(self, place: str, module: ModuleType) -> T:
        """Return the only thing of this kind that ``module`` defines under a name without an underscore in front.

        Raises :class:`ExtensionError` if there is none, or several.
        """
        found: dict[str, T] = {}
        for name, value in vars(module).items():
            if not name.startswith("_") and all(value is not other for other in found.values()):
                try:
                    found[name] = self.check(value)
                except ExtensionError:
                    continue
        if len(found) != 1:
            several = f"several ({', '.join(found)})" if found else "none"
            raise ExtensionError(f"{place}: write {place}:NAME with the name of a {self.what}; there are {several}")
        return next(iter(found.values()))


def is_place(text: str) -> bool:
    """Return True if ``text`` is ``FILE.py``, ``FILE.py:NAME`` or ``module:NAME``, and not the name of an installed thing."""
    return ":" in text or text.endswith(".py")


def absolute(place: str) -> str:
    """Return ``place`` with the whole path of its file, so that a process with another working directory finds it."""
    file, name = _file_and_name(place)
    return place if file is None else f"{Path(file).absolute()}{':' if name else ''}{name}"


def loaded(place: str, *, own_folder: bool = True) -> tuple[ModuleType, str]:
    """Import the module of ``FILE.py:NAME`` or ``module:NAME``. Returns it with NAME, which is empty if it is not given.

    A file can import what is beside it, after all that is installed. ``own_folder``: a module that is not installed is looked for
    in the working directory. Raise :class:`holdfast.errors.ExtensionError` if there is no such module, or if it raises an error:
    with the line of it.
    """
    file, name = _file_and_name(place)
    if file is None:
        module, _, name = place.partition(":")
        if not all(part.isidentifier() for part in module.split(".")):
            raise ExtensionError(f"{place}: write MODULE:NAME or FILE.py:NAME")
        # Only the module that is asked for brings the working directory: what is installed never runs a file of it.
        if own_folder and _is_missing(module.partition(".")[0]):
            _add_to_path(Path.cwd())
        return _imported(place, lambda: importlib.import_module(module)), name
    path = Path(file).absolute()
    if not path.is_file():
        raise ExtensionError(f"{place}: there is no file {file!r}")
    return _imported(place, lambda: module_of_file(path)), name


def _file_and_name(place: str) -> tuple[str | None, str]:
    """Split a place into its file and the name after it. The file is None for ``module:NAME``."""
    if place.endswith(".py"):
        return place, ""
    file, found, name = place.rpartition(".py:")
    return (f"{file}.py", name) if found else (None, place.partition(":")[2])


def _is_missing(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is None
    except ValueError:  # __main__
        return False


def _add_to_path(folder: Path) -> None:
    # Behind everything: a file called as a module of Python's must not take its place in the whole process.
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def module_of_file(path: Path) -> ModuleType:
    """Import a file once, as the module that import statements beside it know, or else under a name made of its path.

    It can import what is beside it, after all that is installed. What it raises is not caught.
    """
    path = path.absolute()
    _add_to_path(path.parent)
    name = path.stem
    found = importlib.util.find_spec(name) if name.isidentifier() else None
    if found is not None and found.origin is not None and Path(found.origin).resolve() == path.resolve():
        return importlib.import_module(name)
    name = f"{name}_{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}".replace(".", "_")
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, "files that end with .py have a loader"
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _imported(place: str, load: Callable[[], ModuleType]) -> ModuleType:
    try:
        return load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever others' code raises, here it is one sentence
        raise ExtensionError(f"{place}: {_sentence(error)}") from None


def _sentence(error: BaseException) -> str:
    """Describe an error of code that is not Holdfast's own in one line: the line where it was raised, its type and its message."""
    ours = (f"{os.sep}importlib{os.sep}", "<frozen importlib", __file__)
    if isinstance(error, SyntaxError):
        place = f"{error.filename}:{error.lineno}: " if error.filename else ""
        return f"{place}{excerpt(error.msg)}"
    frames = [
        each for each in traceback.extract_tb(error.__traceback__) if not any(part in each.filename for part in ours)
    ]
    place = f"{frames[-1].filename}:{frames[-1].lineno}: " if frames else ""
    if isinstance(error, ModuleNotFoundError) and not frames:
        return f"there is no module {error.name!r} here"
    if isinstance(error, SystemExit):
        return f"{place}it ends the process when it is imported"
    hint = "; a module of a package is given as MODULE:NAME" if "attempted relative import" in str(error) else ""
    return f"{place}{type(error).__name__}: {excerpt(' '.join(str(error).split()))}{hint}"


def _attribute(place: str, module: ModuleType, name: str) -> Any:
    value: Any = module
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            raise ExtensionError(f"{place}: {module.__file__ or module.__name__} has no {name!r}") from None
    return value


def _place(point: EntryPoint) -> str:
    return f"{point.module}:{point.attr}"


def _package(point: EntryPoint) -> str:
    return "an unknown package" if point.dist is None else f"{point.dist.name} {point.dist.version}"


def _described(point: EntryPoint) -> str:
    return f"{point.group.removeprefix('holdfast.')}: {point.name!r} of {_package(point)}"


__all__ = ["Door", "Installed", "absolute", "is_place", "loaded", "module_of_file"]
