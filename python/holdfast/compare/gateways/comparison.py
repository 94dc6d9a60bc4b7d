"""What the runs of gateways say: a case for each mechanism, failure and seed, and a summary of each mechanism, by packets lost."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import polars as pl

from holdfast.compare.figures import worst_of
from holdfast.compare.gateways.mechanisms import Mechanism
from holdfast.compare.gateways.scenario import Scenario
from holdfast.compare.inputs import NO_FAILURE
from holdfast.compare.ranking import Ranking
from holdfast.statistics import mean_interval


@dataclass(frozen=True)
class Case:
    """A mechanism under a failure with a seed. Times are in milliseconds; ``outage_mean_ms`` is over subscribers with an outage.

    ``recovered_ms`` is the slowest subscriber's; None if one has not recovered, of which there are ``unrecovered``.
    ``setup_mean_ms`` and ``setup_worst_ms`` are of newcomers that are in at the end; None if none is.
    """

    mechanism: str
    failure: str
    seed: int
    subscribers: int
    kept: int
    online: int
    sent: int
    lost: int
    lost_to_failure: int
    duplicated: int
    outage_mean_ms: float
    outage_worst_ms: float
    recovered_ms: float | None
    unrecovered: int
    newcomers: int
    newcomers_in: int
    setup_mean_ms: float | None
    setup_worst_ms: float | None
    wrong_session: int
    accounted: int
    records_waiting: int
    carried = True

    @property
    def lost_undisturbed(self) -> int:
        """The packets that are lost with the same seed without a failure."""
        return self.lost - self.lost_to_failure


@dataclass(frozen=True)
class Part:
    """A mechanism under one failure: means over seeds, and the worst of any. ``lost_low`` to ``lost_high``: 95 %, of several."""

    failure: str
    kept_mean: float
    lost_mean: float
    lost_low: float | None
    lost_high: float | None
    outage_mean_ms: float
    outage_worst_ms: float
    recovered_ms: float | None
    unrecovered: int
    setup_mean_ms: float | None
    setup_worst_ms: float | None
    newcomers_in: float


@dataclass(frozen=True)
class Summary:
    """A mechanism over all failures. ``entries``: table entries that its controllers wrote, of all its switches, undisturbed."""

    mechanism: str
    rank: int | None
    switches: int
    entries: int
    kept_percent: float
    carried: int
    lost_mean: float
    lost_low: float | None
    lost_high: float | None
    lost_by_seed: tuple[float, ...]
    lost_undisturbed: float
    lost_unsteady: float
    lost_worst: float
    outage_worst_ms: float
    recovered_ms: float | None
    setup_worst_ms: float | None
    newcomers_in_percent: float | None
    parts: Mapping[str, Part]


class Comparison(Ranking):
    """All runs of a scenario of gateways."""

    scenario: Scenario
    mechanisms: list[Mechanism]
    cases: list[Case]
    summaries: list[Summary]

    def _cases(self) -> Iterator[Case]:
        names = [each.name for each in self.mechanisms]
        return (self._case(*key) for key in product(names, self.scenario.failures, self.seeds))

    def _case(self, mechanism: str, failure: str, seed: int) -> Case:
        row, still = self.row(mechanism, failure, seed), self.row(mechanism, NO_FAILURE, seed)
        out = [each for each in row["outage_ms"] if each > 0]
        recovered = row["recovered_ms"]
        setups = [each for each in row["setup_ms"] if each is not None]
        lost = sum(row["lost"])
        return Case(
            mechanism=mechanism,
            failure=failure,
            seed=seed,
            subscribers=len(row["kept"]),
            kept=sum(row["kept"]),
            online=sum(row["online"]),
            sent=sum(row["sent"]),
            lost=lost,
            lost_to_failure=lost - sum(still["lost"]),
            duplicated=sum(row["duplicated"]),
            outage_mean_ms=round(statistics.fmean(out), 6) if out else 0.0,
            outage_worst_ms=max(row["outage_ms"]),
            recovered_ms=None if None in recovered else max(recovered),
            unrecovered=sum(each is None for each in recovered),
            newcomers=len(row["setup_ms"]),
            newcomers_in=len(setups),
            setup_mean_ms=round(statistics.fmean(setups), 6) if setups else None,
            setup_worst_ms=_most(setups),
            wrong_session=row["wrong_session"],
            accounted=row["accounted"],
            records_waiting=row["records_waiting"],
        )

    def _part(self, mechanism: str, failure: str) -> Part:
        cases = [each for each in self.cases_of(mechanism) if each.failure == failure]
        lost = [float(each.lost_to_failure) for each in cases]
        low, high = mean_interval(lost) if len(lost) > 1 else (None, None)
        setups = [each.setup_mean_ms for each in cases if each.setup_mean_ms is not None]
        return Part(
            failure=failure,
            kept_mean=statistics.fmean(each.kept for each in cases),
            lost_mean=statistics.fmean(lost),
            lost_low=low,
            lost_high=high,
            outage_mean_ms=statistics.fmean(each.outage_mean_ms for each in cases),
            outage_worst_ms=max(each.outage_worst_ms for each in cases),
            recovered_ms=worst_of([each.recovered_ms for each in cases]),
            unrecovered=sum(each.unrecovered for each in cases),
            setup_mean_ms=statistics.fmean(setups) if setups else None,
            setup_worst_ms=_most(each.setup_worst_ms for each in cases),
            newcomers_in=statistics.fmean(each.newcomers_in for each in cases),
        )

    def _summary(self, name: str) -> Summary:
        cases: list[Case] = self.cases_of(name)
        parts = {failure: self._part(name, failure) for failure in self.scenario.failures}
        entries = self.row(name, NO_FAILURE, self.seeds[0])["entries"]
        newcomers = sum(each.newcomers for each in cases)
        return Summary(
            mechanism=name,
            rank=None,
            switches=len(entries),
            entries=sum(entries),
            kept_percent=100 * sum(each.kept for each in cases) / sum(each.subscribers for each in cases),
            **self.losses(name),
            lost_worst=max(each.lost_mean for each in parts.values()),
            outage_worst_ms=max(each.outage_worst_ms for each in cases),
            recovered_ms=worst_of([each.recovered_ms for each in cases]),
            setup_worst_ms=_most(each.setup_worst_ms for each in parts.values()),
            newcomers_in_percent=100 * sum(each.newcomers_in for each in cases) / newcomers if newcomers else None,
            parts=parts,
        )

    def price(self, one: Summary) -> float:
        """Return the number of the gateways' switches."""
        return one.switches

    def subscriber_frame(self) -> pl.DataFrame:
        """Return a table with a row for each subscriber of each run; runs without a failure are included."""
        columns = ("sent", "lost", "duplicated", "outage_ms", "recovered_ms", "kept", "online")
        rows = [
            {"mechanism": mechanism, "failure": failure, "seed": seed, "subscriber": number}
            | {name: row[name][number] for name in columns}
            for (mechanism, failure, seed), row in self._rows.items()
            for number in range(len(row["kept"]))
        ]
        return pl.DataFrame(rows, infer_schema_length=None)


def _most(values: Iterable[float | None]) -> float | None:
    return max((each for each in values if each is not None), default=None)
