"""A hash of the code on which a function's results can depend, so that results of other code are not reused.

The code is the function's module and its imports from its own package and from Holdfast, direct or not; the native core; and the
P4 programs. It is found by reading import statements, also those inside functions. The ``__init__`` of a package counts if a name
is taken from it, not if only a module of the package is. So code that only draws or prints can change without making results old,
as long as the function's module does not import it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import platform
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent


@cache
def fingerprint(module: str) -> str:
    """The hash for a function in that module."""
    digest = hashlib.sha256(platform.python_version().encode())
    for name, file in sorted({**_data(), **reachable(module)}.items()):
        with file.open("rb") as stream:
            digest.update(f"{name} {hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()[:32]


def _data() -> dict[str, Path]:
    """Files that are read when a network runs: programs, and tables of applications."""
    return {str(file.relative_to(ROOT)): file for kind in ("*.p4", "*.yaml") for file in ROOT.rglob(kind)}


def reachable(module: str) -> dict[str, Path]:
    """The modules that a module can reach within its own top-level package and Holdfast, and their files."""
    ours = {module.partition(".")[0], __name__.partition(".")[0]}
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in found or name.partition(".")[0] not in ours:
            continue
        file = _file_of(name)
        if file is None:
            continue
        found[name] = file
        if file.suffix == ".py":
            package = name if file.name == "__init__.py" else name.rpartition(".")[0]
            waiting += _imports(ast.parse(file.read_bytes()), package)
    return found


def _file_of(name: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec and spec.origin and spec.has_location else None


def _imports(tree: ast.Module, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield base if _file_of(inner) is None else inner
