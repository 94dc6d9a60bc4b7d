"""Runs packet tests from scripts: files, or directories of them, with one result each. The native core interprets the scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from holdfast._core import run_stf, stf_scripts
from holdfast.errors import ScenarioError
from holdfast.regular_files import MOST_TEXT_BYTES

STATUSES = ("passed", "passed without packets", "failed", "skipped")
"""The results of a script. "passed without packets": it sends no packet and checks no state, but its program compiles
and loads on every executor."""


@dataclass(frozen=True)
class Case:
    """A script and its :data:`STATUSES`; the reason is empty if it passed."""

    name: str
    status: str
    reason: str


@dataclass(frozen=True)
class Report:
    """All cases, in the order in which they ran."""

    cases: list[Case]

    def count(self, status: str) -> int:
        """Return how many cases have this status."""
        return sum(case.status == status for case in self.cases)

    def json(self) -> dict[str, object]:
        """Return the number of cases by status, and the cases, as a dictionary to be written as JSON."""
        counts: dict[str, object] = {status: self.count(status) for status in STATUSES}
        return counts | {"cases": [asdict(case) for case in self.cases]}


def scripts(places: Sequence[Path], pattern: str) -> dict[str, Path]:
    """Return the scripts among ``places`` and in the directories among them, by name, if the glob ``pattern`` matches the name.

    A name is the path without ``.stf``, relative to the directory if ``places`` is one directory. Raises OSError, and
    :class:`ScenarioError` for a file that is not a script.
    """
    named: dict[str, Path] = {}
    for place in places:
        if place.is_dir():
            found = {path.relative_to(place) if len(places) == 1 else path: path for path in stf_scripts(place)}
        elif not place.exists():
            raise ScenarioError(f"there is no file or directory {str(place)!r}")
        elif place.suffix != ".stf":
            raise ScenarioError(f"{str(place)!r} is not a script: give NAME.stf beside its program NAME.p4")
        else:
            found = {place: place}
        named |= {name.with_suffix("").as_posix(): path for name, path in found.items()}
    return {name: path for name, path in named.items() if fnmatchcase(name, pattern)}


def run(
    chosen: Mapping[str, Path],
    executor: str,
    includes: Sequence[str],
    defines: Mapping[str, str],
    progress: Callable[[str], None],
) -> Report:
    """Run scripts one after the other and return the report; call ``progress`` with each script's name before its run."""

    def cases() -> Iterator[Case]:
        for name, path in chosen.items():
            progress(name)
            if reason := _reason_against(path):
                yield Case(name, "failed", reason)
                continue
            yield Case(name, *run_stf(path, executor, include_dirs=includes, defines=dict(defines)))

    return Report(list(cases()))


def _reason_against(path: Path) -> str:
    """Return the reason not to read a script, such as that it is a pipe; empty if it can be read or does not exist."""
    if path.exists() and not path.is_file():
        return "the script is not a regular file"
    if path.exists() and path.stat().st_size > MOST_TEXT_BYTES:
        return f"the script is longer than {MOST_TEXT_BYTES >> 20} MiB"
    return ""
