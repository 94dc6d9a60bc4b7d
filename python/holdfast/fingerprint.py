"""A hash of the code on which a function's results can depend, so that results of other code are not reused.

The code is the function's module and its imports, direct or not, but for those from Python itself and from installed packages other
than its own and Holdfast; the native core; and Holdfast's P4 programs. It is found by reading import statements, also those inside
functions, and calls of ``import_module`` with a name. The ``__init__`` of a package counts if a name is taken from it, not if
only a module of the package is. So code that only draws or prints can change without making results old, as long as the function's
module does not import it.

Of modules outside Holdfast these count as well: the P4 programs in and below their folders with what they include, and files of any
kind that a text in the module names, by a path or by their name alone. What nothing names has to be declared
(:attr:`holdfast.compare.competitor.Competitor.files`).
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import platform
import re
import sys
import sysconfig
import uuid
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache, partial
from importlib.metadata import packages_distributions
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType

ROOT = Path(__file__).parent

P4_SUFFIXES = (".p4", ".p4i")

MOST_ENTRIES = 20_000
"""The most files and folders below a module's folder that are examined. With more, the files that a result depends on
are unknown, so no result is reused."""

LONGEST_NAME_BYTES = 255
"""The longest text that is taken for a file's name."""

_SHOWS = {"holdfast.notebook"}
"""Modules that only show results: no result depends on them, though modules that compute some import them for
notebooks."""

_INSTALLED = {"site-packages", "dist-packages"}

_STANDARD = frozenset(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
"""The folders of Python's own modules."""

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\r\n]+)[">]', re.MULTILINE)


class _UnknownCodeError(Exception):
    """Nobody can say on what code results depend, so they get a hash that no others have."""


@cache
def fingerprint(module: str) -> str:
    """Return the hash of the code that a function in ``module`` can run.

    If that code cannot be determined, the hash is random, so that it equals no other.
    """
    try:
        return _digest({**_data(), **files_of(module)})
    except _UnknownCodeError:
        return uuid.uuid4().hex


def of_code(parts: Iterable[object], files: Collection[Path] = (), origin: Collection[str] = ()) -> str:
    """Return the hash of functions and values defined outside Holdfast, and of ``files`` (or folders) that they read.

    The hash is empty if all of ``parts`` are Holdfast's own, whose code :func:`fingerprint` covers. Arguments of partial functions,
    values in closures and fields of objects count. ``origin``: modules that count with all that they import of their own package,
    even if it is installed. The hash is not cached, as such code can be edited while a process lives.
    """
    modules = set(origin)
    texts = sorted(_described(parts, modules))
    if not (modules or files):
        return ""
    found: dict[str, Path] = {}
    try:
        for module in modules:
            found |= files_of(module)
        for file in files:
            found |= {str(each): each for each in ([file] if file.is_file() else _walk(file)) if _is_readable(each)}
    except _UnknownCodeError:
        return uuid.uuid4().hex
    missing = [str(file) for file in files if not file.exists()]
    return hashlib.sha256("\n".join([*texts, *missing, _digest(found)]).encode()).hexdigest()[:32]


def _digest(files: dict[str, Path]) -> str:
    digest = hashlib.sha256(platform.python_version().encode())
    for name, file in sorted(files.items()):
        with file.open("rb") as stream:
            digest.update(f"{name} {hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()[:32]


def _data() -> dict[str, Path]:
    """Return the data files that a running network reads, P4 programs and applications' YAML tables, by path below :data:`ROOT`."""
    return {str(file.relative_to(ROOT)): file for kind in ("*.p4", "*.yaml") for file in ROOT.rglob(kind)}


def files_of(module: str) -> dict[str, Path]:
    """Return the files of the modules that ``module`` can import, and the files that modules from outside Holdfast can read.

    Raises :class:`_UnknownCodeError` if the module has no file, such as code typed into an interpreter.
    """
    modules = reachable(module)
    if module not in modules:
        raise _UnknownCodeError
    outside = [file for file in modules.values() if not file.is_relative_to(ROOT) and file.suffix == ".py"]
    return {**modules, **{str(file): file for file in _read_by(outside)}}


def reachable(module: str) -> dict[str, Path]:
    """Return the files of the modules that a module can import, directly or through others, by module name.

    Only modules of its own top-level package, of others that were installed with it, of Holdfast, and modules that are not
    installed count.
    """
    ours = {*_installed_with(module.partition(".")[0]), __name__.partition(".")[0]}
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in found or name in _SHOWS:
            continue
        file = _file_of(name)
        if file is None or (name.partition(".")[0] not in ours and _is_installed(file)):
            continue
        found[name] = file
        if file.suffix == ".py":
            package = name if file.name == "__init__.py" else name.rpartition(".")[0]
            waiting += _imports(file.read_bytes(), package)
    return found


def _installed_with(name: str) -> set[str]:
    """Return a top-level package's name with those of the same distribution, such as a module beside a mechanism's."""
    file = _file_of(name)
    if name == __name__.partition(".")[0] or file is None or not _is_installed(file):
        return {name}
    owners = packages_distributions()
    return {name, *(each for each, found in owners.items() if set(found) & set(owners.get(name, ())))}


def _parsed(text: bytes) -> ast.Module:
    """Return a module's syntax tree, or an empty one if the text is not valid Python of this version."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the statements of a module, those inside functions, classes and other statements included."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for inner in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, inner, ())


@dataclass(frozen=True)
class _Import:
    """An import: the level of a relative one (0: absolute), the module, and the names taken from it (none: the module itself)."""

    level: int
    module: str
    names: tuple[str, ...] = ()


@lru_cache(maxsize=4096)
def _stated(text: bytes) -> tuple[_Import | str, ...]:
    """Return the imports that a module's text states, and the names that it gives to ``import_module`` as texts.

    Results are cached: the modules that different mechanisms import are hundreds each, and mostly the same.
    """
    tree = _parsed(text)
    found: list[_Import | str] = []
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            found += [_Import(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(_Import(node.level, node.module or "", tuple(alias.name for alias in node.names)))
    # Calls are anywhere in expressions, of which there are many more.
    for node in ast.walk(tree) if b"import_module" in text or b"__import__" in text else ():
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            name = node.args[0].value
            if called in ("import_module", "__import__") and isinstance(name, str) and name.strip("."):
                found.append(name)
    return tuple(found)


@lru_cache(maxsize=256)
def _names_of_files(text: bytes) -> frozenset[str]:
    """Return the string literals in a module that could be names of files."""
    return frozenset(
        node.value
        for node in ast.walk(_parsed(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _can_be_a_name(node.value)
    )


def _is_installed(file: Path) -> bool:
    """Return True if a module is Python's own, or one of an installed package."""
    if _INSTALLED & set(file.parts):
        return True
    return any(file.is_relative_to(folder) for folder in _STANDARD)


def _file_of(name: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        # A script, or a module that was loaded by its path.
        file = getattr(sys.modules.get(name), "__file__", None)
        return None if file is None else Path(file).absolute()
    return Path(spec.origin) if spec and spec.origin and spec.has_location else None


def _imports(text: bytes, package: str) -> Iterator[str]:
    """Yield the names of the modules that a module of ``package`` with this text imports."""
    for each in _stated(text):
        if isinstance(each, str):
            yield importlib.util.resolve_name(each, package) if package or not each.startswith(".") else each
            continue
        base = each.module
        if each.level:
            above = package.split(".")[: len(package.split(".")) - each.level + 1]
            base = ".".join([*above, *([base] if base else [])])
        if not each.names:
            yield base
        for name in each.names:
            inner = f"{base}.{name}"
            yield base if _file_of(inner) is None else inner


# ---- Files that modules outside Holdfast read ----


def _read_by(modules: Iterable[Path]) -> set[Path]:
    """Return the files that ``modules`` may read: P4 programs in their folders, the programs' includes, files named in literals."""
    found: set[Path] = set()
    folders: dict[Path, None] = {}
    below: dict[Path, list[Path]] = {}
    for module in modules:
        texts = _names_of_files(module.read_bytes())
        files = below.get(module.parent)
        if files is None:
            files = below[module.parent] = list(_walk(module.parent))
        names = {Path(text).name for text in texts}
        # A name can be made of parts, as in f"{kind}.csv": then its end names all such files.
        ends = tuple(text for text in texts if re.fullmatch(r"[\w-]*\.\w+", text) and text.startswith("."))
        found |= {
            file for file in files if file.suffix in P4_SUFFIXES or file.name in names or file.name.endswith(ends)
        }
        for text in texts:
            for base in (module.parent, Path.cwd()):
                place = base / text
                if os.path.isdir(place):  # noqa: PTH112 - Path's raises for what may not be looked at
                    folders[place] = None
                elif _is_readable(place) and not any(
                    _is_passed_over(base / above) for above in Path(text).parents if above.name
                ):
                    found.add(place.resolve())
        folders[module.parent] = None
    found = {file for file in found if file.suffix != ".py" and _is_readable(file)}
    return found | _included(found, [*folders])


def _can_be_a_name(text: str) -> bool:
    return text.isprintable() and 1 < len(text.encode()) <= LONGEST_NAME_BYTES and bool(text.strip("./ "))


def _is_readable(file: Path) -> bool:
    """Return True if ``file`` is a regular file that this process can read. Pipes and dangling links are not."""
    return os.path.isfile(file) and os.access(file, os.R_OK)  # noqa: PTH113 - likewise


def _walk(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, except hidden ones, results of sweeps and installed packages.

    Of the folder of all installed packages, only the files beside each other count. Raises :class:`_UnknownCodeError` if there are
    more than :data:`MOST_ENTRIES`.
    """
    count = 0
    for place, folders, files in os.walk(folder):
        among_packages = folder.name in _INSTALLED
        folders[:] = sorted(name for name in folders if not (among_packages or _is_passed_over(Path(place, name))))
        count += len(files) + len(folders)
        if count > MOST_ENTRIES:
            raise _UnknownCodeError
        yield from (Path(place, name).resolve() for name in sorted(files) if not name.startswith("."))


def _is_passed_over(folder: Path) -> bool:
    if folder.name.startswith(".") or folder.name in ("__pycache__", "node_modules", "site-packages"):
        return True
    journals = (folder / journal for journal in ("journal.jsonl", "runs/journal.jsonl"))
    return any(os.path.exists(journal) for journal in journals)  # noqa: PTH110 - likewise


def _included(programs: Iterable[Path], folders: Collection[Path]) -> set[Path]:
    """Return the files that P4 programs include, directly or not, from the including file's folder or one of ``folders``."""
    found: set[Path] = set()
    waiting = list(programs)
    while waiting:
        file = waiting.pop()
        for match in _INCLUDE.finditer(file.read_bytes()):
            name = os.fsdecode(match[1])
            for folder in (file.parent, *folders):
                there = (folder / name).resolve()
                if there not in found and _is_readable(there):
                    found.add(there)
                    waiting.append(there)
    return found


# ---- Values ----


def _described(parts: Iterable[object], modules: set[str]) -> Iterator[str]:
    """Yield a text for each value found in ``parts``.

    Add modules outside Holdfast that define functions or objects to ``modules``.
    """
    waiting, seen = list(parts), set[int]()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if part is None or isinstance(part, bool | int | float | complex | str | bytes):
            yield repr(part)
        elif isinstance(part, Enum):
            yield f"{type(part).__qualname__}.{part.name}"
            waiting.append(type(part))
        elif isinstance(part, partial):
            waiting += [part.func, *part.args, sorted(part.keywords.items())]
        elif isinstance(part, MethodType):
            waiting += [part.__func__, part.__self__]
        elif isinstance(part, FunctionType | type | BuiltinFunctionType):
            yield f"{part.__module__}.{part.__qualname__}"
            _note(part.__module__, modules)
            waiting += _captured(part) if isinstance(part, FunctionType) else []
            waiting += [base for base in part.__bases__ if base is not object] if isinstance(part, type) else []
        elif isinstance(part, dict):
            waiting += [each for item in part.items() for each in item]
        elif isinstance(part, list | tuple | set | frozenset):
            waiting += part
        else:
            waiting.append(type(part))
            if _note(type(part).__module__, modules):
                waiting += vars(part).items() if hasattr(part, "__dict__") else []


def _captured(function: FunctionType) -> list[object]:
    """Return the values that a function holds: its closure's, its default arguments, and the function that it wraps."""
    cells = []
    for cell in function.__closure__ or ():
        try:
            cells.append(cell.cell_contents)
        except ValueError:  # not bound yet
            continue
    wrapped = getattr(function, "__wrapped__", None)
    return [*cells, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items(), wrapped]


def _note(module: str | None, modules: set[str]) -> bool:
    """Add ``module`` to ``modules`` and return True if it is neither Holdfast's nor installed; otherwise return False."""
    if not module or module.partition(".")[0] == __name__.partition(".")[0]:
        return False
    file = _file_of(module)
    if file is None and module in sys.builtin_module_names:
        return False
    if file is None or not _is_installed(file):
        modules.add(module)
        return True
    return False
