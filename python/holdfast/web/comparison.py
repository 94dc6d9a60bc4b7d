"""The page of ``compare --web``, as seen from the comparison: a process of its own serves it, and is told of each run.

So the page takes no time from runs in this process, and these may fork. Nothing here imports the framework.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast import interpreter
from holdfast.compare.inputs import NO_FAILURE
from holdfast.errors import ConsoleError

if TYPE_CHECKING:
    from holdfast.compare.competitor import Competitor
    from holdfast.compare.scenario import Scenario

_COLUMNS = ("lost", "outage_ms", "delivered_curve", "goodput_curve", "skipped")
"""Of a run's row that the page shows."""


@dataclass(frozen=True)
class Described:
    """A comparison, before any run. ``mechanisms``: name, what it is, and its colours on white and on black."""

    title: str
    mechanisms: tuple[tuple[str, str, str, str], ...]
    failures: tuple[str, ...]
    seeds: tuple[int, ...]
    failure_s: float
    repair_s: float
    end_s: float
    bin_ms: float
    topology: str
    """As YAML."""
    folder: str
    """The directory of the results."""


def described(
    title: str, scenario: Scenario, mechanisms: Sequence[Competitor], seeds: Sequence[int], out: Path
) -> Described:
    """Return what the page is told of a comparison."""
    times = scenario.times
    return Described(
        title,
        tuple((each.name, each.what, *each.colour) for each in mechanisms),
        tuple(scenario.failures),
        tuple(seeds),
        times.failure_s,
        times.repair_s,
        times.end_s,
        scenario.bin_ms,
        scenario.topology.to_yaml(),
        str(out.resolve()),
    )


@dataclass
class Standing:
    """What is known of a comparison's runs so far."""

    about: Described
    rows: dict[tuple[str, str, int], Mapping[str, Any]] = field(default_factory=dict)
    """By mechanism, failure and seed."""
    is_done: bool = False
    """True once the report is written."""

    @property
    def total(self) -> int:
        """The number of runs."""
        return len(self.about.mechanisms) * len(self.about.seeds) * (len(self.about.failures) + 1)

    def finished(self, mechanism: str) -> int:
        """Return how many runs of a mechanism have finished."""
        return sum(name == mechanism for name, _, _ in self.rows)

    def lost(self, mechanism: str, failure: str) -> float | None:
        """Return the packets that a failure costs, beyond those lost without it, mean of the seeds; None before it is known."""
        found = [self._lost(mechanism, failure, seed) for seed in self.about.seeds]
        known = [each for each in found if each is not None]
        return sum(known) / len(known) if known else None

    def _lost(self, mechanism: str, failure: str, seed: int) -> float | None:
        row, still = (self.rows.get((mechanism, each, seed)) for each in (failure, NO_FAILURE))
        if row is None or still is None:
            return None
        return 0.0 if row.get("skipped") else float(sum(row["lost"]) - sum(still["lost"]))

    def mean_lost(self, mechanism: str) -> float | None:
        """Return the mean of what the failures cost so far."""
        known = [each for failure in self.about.failures if (each := self.lost(mechanism, failure)) is not None]
        return sum(known) / len(known) if known else None

    def worst(self, mechanism: str) -> tuple[str, float] | None:
        """Return the failure that costs most so far, and its cost."""
        known = [
            (failure, each) for failure in self.about.failures if (each := self.lost(mechanism, failure)) is not None
        ]
        return max(known, key=lambda each: each[1], default=None)

    def outage_ms(self, mechanism: str) -> float | None:
        """Return the longest outage of a run with a failure so far."""
        found = [
            max(row["outage_ms"], default=0.0)
            for (name, failure, _), row in self.rows.items()
            if name == mechanism and failure != NO_FAILURE and not row.get("skipped")
        ]
        return max(found, default=None)


def added(standing: Standing, point: Mapping[str, Any], row: Mapping[str, Any]) -> None:
    """Add a run to what is known."""
    at = (str(point["mechanism"]), str(point["failure"]), int(point["network_seed"]))
    standing.rows[at] = {name: row[name] for name in _COLUMNS if name in row}


class Page:
    """The page's process. ``address``: with the token."""

    def __init__(self, about: Described, at: str) -> None:
        """Start it. Raises :class:`ConsoleError` with what it says if it cannot serve."""
        context = interpreter.context()
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(about, at, theirs), name="holdfast-page", daemon=True)
        self._process.start()
        theirs.close()
        try:
            kind, self.address = self._ours.recv()
        except EOFError:
            kind, self.address = "error", "--web: the page has not started"
        if kind == "error":
            self.close()
            raise ConsoleError(self.address)

    def told(self, point: Mapping[str, Any], row: Mapping[str, Any]) -> None:
        """Tell of a run that has finished."""
        with suppress(OSError):  # the page has ended; the comparison goes on
            self._ours.send(("run", json.dumps([dict(point), {name: row[name] for name in _COLUMNS if name in row}])))

    def done(self) -> None:
        """Tell that the report is written."""
        with suppress(OSError):
            self._ours.send(("done", ""))

    def close(self) -> None:
        """End the page."""
        self._ours.close()
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def wait(self) -> None:
        """Wait until the page ends by itself, or an interrupt comes."""
        self._process.join()


@contextmanager
def page_of_comparison(about: Described, at: str) -> Iterator[Page]:
    """Serve the page of a comparison within the context."""
    page = Page(about, at)
    try:
        yield page
    finally:
        page.close()


def _serve(about: Described, at: str, told: Connection) -> None:
    """Serve a page in this process until the other end of the connection is closed."""
    import signal

    from holdfast.web.server import served

    # Whoever interrupts the comparison ends it, and it ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.pop("COLUMNS", None)
    standing = Standing(about)
    pages: list[Any] = []

    async def build() -> None:
        await pages[0].tabs.build()

    try:
        from holdfast.web.compare_page import ComparePage

        with served(build, at, title=f"{about.title}: Holdfast", files=Path(about.folder)) as address:
            pages.append(ComparePage(standing))
            told.send(("page", address))
            with suppress(EOFError, OSError):
                while True:
                    kind, text = told.recv()
                    if kind == "done":
                        standing.is_done = True
                    else:
                        added(standing, *json.loads(text))
                    pages[0].changed()
    except ImportError as error:
        told.send(("error", f"--web needs the package {error.name}: pip install 'holdfast[web]'"))
    except ConsoleError as error:
        told.send(("error", str(error)))


__all__ = ["Described", "Page", "Standing", "added", "described", "page_of_comparison"]
