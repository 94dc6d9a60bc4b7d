"""Packet tests from scripts: a directory of them, one result each. What a script means is the native core's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from holdfast._core import run_stf, stf_scripts


@dataclass(frozen=True)
class Case:
    """A script and how it ended: ``passed``, ``failed`` or ``skipped``; the reason is empty if it passed."""

    name: str
    status: str
    reason: str


@dataclass(frozen=True)
class Report:
    """All cases of a directory, in order of their names."""

    cases: list[Case]

    def count(self, status: str) -> int:
        """How many ended so."""
        return sum(case.status == status for case in self.cases)

    def json(self) -> dict[str, object]:
        """The counts and the cases, for a file."""
        counts: dict[str, object] = {status: self.count(status) for status in ("passed", "failed", "skipped")}
        return counts | {"cases": [asdict(case) for case in self.cases]}


def scripts(directory: Path, pattern: str) -> dict[str, Path]:
    """Scripts by name, which is the path from the directory without ``.stf``, those that the glob pattern fits."""
    named = {path.relative_to(directory).with_suffix("").as_posix(): path for path in stf_scripts(directory)}
    return {name: path for name, path in named.items() if fnmatchcase(name, pattern)}


def run(
    chosen: Mapping[str, Path],
    executor: str,
    includes: Sequence[str],
    defines: Mapping[str, str],
    progress: Callable[[str], None],
) -> Report:
    """Runs scripts one after the other and says before each which one it is."""

    def cases() -> Iterator[Case]:
        for name, path in chosen.items():
            progress(name)
            yield Case(name, *run_stf(path, executor, include_dirs=includes, defines=dict(defines)))

    return Report(list(cases()))
