"""Runs a function for every point with every seed, on several processes or a Ray cluster, and resumes interrupted sweeps.

The function has a name (``module:function``), takes a point and a seed, and returns named numbers, texts or lists of them. It
is pure: the same point, seed and code give the same row. So the result, ``rows.parquet``, has the same bytes whatever the number
of processes, the order in which they finish, or the interruptions. Values that differ between runs (wall time, machine, commit)
are in ``sweep.json`` beside it.

Finished runs are appended to ``journal.jsonl`` at once, each with a checksum. A rerun reuses the runs that the same
code has finished: the key is a hash of the function, the point, the seed and the code that the function can reach.
Nothing here knows networks.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import json
import multiprocessing
import platform
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import polars as pl
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from holdfast import interpreter, whole_files
from holdfast.errors import HoldfastError, SweepError
from holdfast.fingerprint import fingerprint
from holdfast.numerals import is_numeral

if TYPE_CHECKING:
    from holdfast.sweep_workers import Outcome

Scalar = bool | int | float | str | None
Point = Mapping[str, Scalar]

LINES, LINE_S = 10, 20.0
"""Without a terminal, progress is printed in so many lines, and also when so many seconds have passed since the last
line."""

MAX_FAILURES = 10
"""The number of failed runs at which the sweep stops, since all further ones would probably fail too."""


@dataclass(frozen=True)
class Run:
    """One call of the function."""

    point: dict[str, Scalar]
    seed: int
    key: str

    def __str__(self) -> str:
        return f"point {json.dumps(self.point)}, seed {self.seed}"


@dataclass(frozen=True)
class Sweep:
    """The task: shared by the process that coordinates and those that work."""

    function: str
    fingerprint: str
    code: Callable[[Point], str] | None = None
    """A hash of more code that the runs of a point depend on."""

    def runs(self, points: Sequence[Point], seeds: Sequence[int]) -> list[Run]:
        """Return the runs of all points and seeds, point by point and then seed by seed: the order of the result's rows."""
        return [Run(dict(point), seed, self._key(point, seed)) for point in points for seed in seeds]

    def _key(self, point: Point, seed: int) -> str:
        more = [] if self.code is None else [code] if (code := self.code(point)) else []
        text = json.dumps([self.function, dict(point), seed, self.fingerprint, *more], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def run(
    function: str | Callable[..., Mapping[str, Any]],
    points: Sequence[Point],
    seeds: Iterable[int],
    out: Path,
    *,
    jobs: int = 1,
    ray: str | None = None,
    console: Console | None = None,
    together: Sequence[str] = (),
    code: Callable[[Point], str] | None = None,
    told: Callable[[Point, Mapping[str, Any]], None] | None = None,
) -> pl.DataFrame:
    """Run the function with every point and seed; return the rows, and write them to ``out/rows.parquet``.

    ``jobs``: processes on this machine. ``together``: names of values in the points; a process prefers runs in which these
    values equal those of its last run, for functions that keep what such runs share. ``ray``: the address of a Ray cluster to
    use instead of processes, or ``local`` to start one with ``jobs`` processors. ``code``: for a point, the hash of code
    besides the function's that its runs depend on, or an empty text. ``console``: shows the progress bar; None for no bar.
    ``told``: called with the point and row of each run as it finishes, and at the beginning of those that had finished before.
    A failed run does not stop the others; at the end :class:`holdfast.errors.SweepError` is raised, and a rerun repeats only
    the failed runs. With ``jobs`` above 1 the processes import the calling script, as those of :mod:`multiprocessing` do: the
    call belongs under ``if __name__ == "__main__":``.
    """
    name = function if isinstance(function, str) else f"{function.__module__}:{function.__qualname__}"
    seeds = list(seeds)
    _check(name, points, seeds, jobs)
    sweep = Sweep(name, fingerprint(name.partition(":")[0]))
    runs = Sweep(name, sweep.fingerprint, code).runs(points, seeds)
    started = time.time()
    with _journal(out / "journal.jsonl") as journal:
        todo = [each for each in runs if each.key not in journal.rows]
        if console is not None and (strangers := len(journal.rows) + len(todo) - len(runs)):
            console.print(
                f"{out}: {strangers} finished runs of other code or other points are not used", highlight=False
            )
        if console is not None and journal.damaged:
            console.print(
                f"{out}: {journal.damaged} lines of the journal are damaged; they are not used", highlight=False
            )
        for each in runs:
            if told is not None and each.key in journal.rows:
                told(each.point, journal.rows[each.key])
        with _Bar(console, len(runs), len(runs) - len(todo)) as bar:
            _work(sweep, todo, journal, bar, jobs, ray, together, told)
        rows = [{**each.point, "seed": each.seed, **journal.rows[each.key]} for each in runs]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    whole_files.write_parquet(out / "rows.parquet", frame)
    about = {
        "function": name,
        "points": [dict(point) for point in points],
        "seeds": seeds,
        "runs": len(runs),
        "runs_of_this_call": len(todo),
        "wall_s": round(time.time() - started, 3),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "workers": f"ray {ray}" if ray is not None else jobs,
        **_versions(),
        "fingerprint": sweep.fingerprint,
    }
    lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in about.items())
    whole_files.write_text(out / "sweep.json", f"{{\n{lines}\n}}\n")
    return frame


def run_one(function: str, point: Point, seed: int) -> dict[str, Any]:
    """Execute one run in this process and return its result; exceptions of the function are passed on.

    Raises :class:`SweepError` if the result is not a mapping of new names to numbers, texts, or lists of them.
    """
    result = resolve(function)(dict(point), seed)
    if not isinstance(result, Mapping):
        raise SweepError(
            f"{function} returned a {type(result).__name__}; it has to return a mapping of names to values"
        )
    for name, value in result.items():
        if name == "seed" or name in point:
            raise SweepError(f"{function} returned {name!r}, which is a column already")
        if not _is_plain(value):
            raise SweepError(
                f"{function} returned {name!r} of type {type(value).__name__}; return numbers, texts, or lists of them"
            )
    return dict(result)


def resolve(function: str) -> Callable[..., Any]:
    """Import and return the function called ``module:function``. Raises :class:`SweepError` if there is no such function."""
    module, _, name = function.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SweepError(f"there is no function {function!r}: {error}") from None
    if not callable(found):
        raise SweepError(f"{function!r} is not a function")
    return found  # type: ignore[no-any-return]


def _check(function: str, points: Sequence[Point], seeds: Sequence[int], jobs: int) -> None:
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SweepError('a process of this sweep reads the script again: call it under if __name__ == "__main__":')
    resolve(function)
    if function.startswith("__main__:"):
        raise SweepError(f"{function!r} is not importable by other processes; put it into a module")
    if not points or not seeds:
        raise SweepError("a sweep needs at least one point and one seed")
    if jobs < 1:
        raise SweepError(f"jobs is {jobs}; it must be at least 1")
    for point in points:
        for name, value in point.items():
            if not (value is None or isinstance(value, bool | int | float | str)) or name == "seed":
                raise SweepError(
                    f"point {dict(point)}: {name!r} cannot be {value!r}; points are named numbers and texts"
                )
    texts = [json.dumps(dict(point), sort_keys=True) for point in points]
    for what, values in (("point", texts), ("seed", [str(seed) for seed in seeds])):
        for each, count in Counter(values).items():
            if count > 1:
                raise SweepError(f"{what} {each} is given twice")


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(each) for each in value)
    return value is None or isinstance(value, bool | int | float | str)


def _versions() -> dict[str, Any]:
    def git(*arguments: str) -> str | None:
        command = ["git", "-C", str(Path(__file__).parent), *arguments]
        try:
            return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            return None

    try:
        package: str | None = version("holdfast")
    except PackageNotFoundError:
        package = None
    return {
        "holdfast": package,
        "commit": git("rev-parse", "HEAD"),
        "changed_since": bool(git("status", "--porcelain", "--untracked-files=no")),
        "python": platform.python_version(),
        "polars": version("polars"),
        "machine": f"{platform.system()} {platform.machine()}",
    }


class _Journal:
    """Finished runs on disk, a line each, which ends with a checksum.

    A damaged line (a torn last one, one that was changed) is dropped, and its run repeated.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.rows: dict[str, dict[str, Any]] = {}
        self.damaged = 0
        """Lines that were dropped."""
        file.seek(0)
        text = file.read()
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            file.truncate(len(whole))
        for line in whole.splitlines():
            body, _, end = line.rpartition(_CHECKSUM)
            if end != f'{_checksum(body)}"}}':
                self.damaged += 1
                continue
            entry = json.loads(f"{body}}}")
            self.rows[entry["key"]] = entry["row"]

    def add(self, run: Run, row: str) -> None:
        """Write a run's result, a JSON text, to the journal's file, and then add it to :attr:`rows`."""
        head = json.dumps({"key": run.key, "point": run.point, "seed": run.seed})
        body = f'{head[:-1]}, "row": {row}'
        self._file.write(f'{body}{_CHECKSUM}{_checksum(body)}"}}\n')
        self._file.flush()
        self.rows[run.key] = json.loads(row)


_CHECKSUM = ', "sha256": "'


def _checksum(body: str) -> str:
    """Return the checksum of a journal line's text: the first 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(body.encode("ascii", "surrogateescape")).hexdigest()[:16]


@contextmanager
def _journal(path: Path) -> Iterator[_Journal]:
    """Open a sweep's journal for this process alone. Raises :class:`SweepError` if another sweep has it open."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # JSON is ASCII here. Other content must not hinder, and has as many characters as bytes.
        opened = path.open("a+", encoding="ascii", errors="surrogateescape", newline="\n")
    except OSError as error:
        raise SweepError(f"cannot write to {path.parent}: {error.strerror}") from None
    with opened as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SweepError(
                f"another sweep is writing to {path.parent}; wait for it, or choose another place"
            ) from None
        yield _Journal(file)


def _work(
    sweep: Sweep,
    todo: Sequence[Run],
    journal: _Journal,
    bar: _Bar,
    jobs: int,
    ray: str | None,
    together: Sequence[str],
    told: Callable[[Point, Mapping[str, Any]], None] | None,
) -> None:
    """Execute the runs in ``todo`` and journal their results. Raises :class:`SweepError` at the end if a run failed."""
    from holdfast import sweep_workers

    if not todo:
        return
    if ray is not None:
        outcomes = sweep_workers.on_ray(sweep, todo, jobs, ray)
    elif jobs == 1:
        outcomes = sweep_workers.in_this_process(sweep, todo)
    else:
        outcomes = sweep_workers.in_processes(sweep, todo, jobs, together)
    failures: list[Outcome] = []
    with closing(outcomes):
        for outcome in outcomes:
            if outcome.row is None:
                failures.append(outcome)
                if len(failures) >= MAX_FAILURES:
                    break
            else:
                run = todo[outcome.index]
                journal.add(run, outcome.row)
                if told is not None:
                    told(run.point, journal.rows[run.key])
            bar.advance()
    if failures:
        raise _failed(sweep, todo, failures)


def _failed(sweep: Sweep, todo: Sequence[Run], failures: Sequence[Outcome]) -> SweepError:
    first = min(failures, key=lambda outcome: outcome.index)
    run = todo[first.index]
    gave_up = f" (gave up after {MAX_FAILURES})" if len(failures) >= MAX_FAILURES else ""
    again = shlex.join(interpreter.module_here("holdfast.sweep", sweep.function, json.dumps(run.point), str(run.seed)))
    return SweepError(
        f"{len(failures)} of {len(todo)} runs failed{gave_up}; what finished is kept, and a rerun repeats the others only.\n"
        f"The first was {run}:\n{(first.error or '').rstrip()}\nThis one again: {again}"
    )


class _Bar:
    """Progress on a console, or none."""

    def __init__(self, console: Console | None, total: int, finished: int) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(),
            TimeRemainingColumn(elapsed_when_finished=True),
        )
        self._lines = None if console is None or console.is_terminal else console
        self._progress = Progress(
            *columns, console=console, disable=console is None or self._lines is not None, speed_estimate_period=120
        )
        self._total, self._finished, self._before, self._begin = total, finished, finished, time.monotonic()
        self._said_s = 0.0
        self._task = self._progress.add_task("runs", total=total, completed=finished)

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def advance(self) -> None:
        """Count one more finished run.

        Without a terminal, print a line for each tenth of all runs, and in long sweeps more often.
        """
        self._progress.advance(self._task)
        self._finished += 1
        done, total = self._finished, self._total
        took_s = time.monotonic() - self._begin
        due = done * LINES // total > (done - 1) * LINES // total or took_s - self._said_s >= LINE_S
        if self._lines is not None and due:
            self._said_s = took_s
            left_s = took_s / (done - self._before) * (total - done)
            left = f", about {left_s:.0f} s left" if done < total else ""
            self._lines.print(f"runs {done}/{total} after {took_s:.0f} s{left}", highlight=False)


class _Rate(ProgressColumn):
    """Runs per second, or seconds per run if that says more."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        if not speed:
            return Text("")
        return Text(f"{speed:.1f} runs/s" if speed >= 1 else f"{1 / speed:.1f} s/run", style="progress.data.speed")


def main(arguments: Sequence[str]) -> None:
    """Run ``python -m holdfast.sweep MODULE:FUNCTION POINT SEED``: execute one run and print its result as JSON."""
    if len(arguments) != 3:
        sys.exit("usage: python -m holdfast.sweep MODULE:FUNCTION POINT-AS-JSON SEED")
    function, text, seed = arguments
    try:
        point = json.loads(text)
    except json.JSONDecodeError as error:
        sys.exit(f"error: the point is not JSON: {error}")
    if not isinstance(point, dict):
        sys.exit("error: the point is a JSON object, names with their values")
    if not is_numeral(seed):
        sys.exit(f"error: the seed is {seed!r}; a whole number is expected")
    try:
        result = run_one(function, point, int(seed))
    except HoldfastError as error:
        sys.exit(f"error: {error}")
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
