"""What the runs of gateways say: measures of each case, of each failure, and of each mechanism, which is ranked by packets lost."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from holdfast.compare import ranking
from holdfast.compare.figures import worst_of
from holdfast.compare.gateways.mechanisms import Mechanism
from holdfast.compare.gateways.scenario import Scenario
from holdfast.compare.inputs import NO_FAILURE
from holdfast.compare.ranking import Case, Ranking
from holdfast.statistics import mean_interval

Part = Mapping[str, Any]
"""Measures of a mechanism under one failure, by the names in :data:`MEASURES`."""


def _known(values: Sequence[Any]) -> list[Any]:
    return [each for each in values if each is not None]


def _mean(values: Sequence[Any]) -> float | None:
    return statistics.fmean(known) if (known := _known(values)) else None


def _most(values: Sequence[Any]) -> float | None:
    return max(_known(values), default=None)


def _interval(values: Sequence[float]) -> tuple[float | None, float | None]:
    return mean_interval(values) if len(values) > 1 else (None, None)


MEASURES: Final[Mapping[str, tuple[str, Callable[[Sequence[Any]], Any]]]] = {
    "kept_mean": ("kept", _mean),
    "lost_mean": ("lost_to_failure", _mean),
    "lost_low": ("lost_to_failure", lambda values: _interval(values)[0]),
    "lost_high": ("lost_to_failure", lambda values: _interval(values)[1]),
    "outage_mean_ms": ("outage_mean_ms", _mean),
    "outage_worst_ms": ("outage_worst_ms", _most),
    "recovered_ms": ("recovered_ms", worst_of),
    "unrecovered": ("unrecovered", sum),
    "setup_mean_ms": ("setup_mean_ms", _mean),
    "setup_worst_ms": ("setup_worst_ms", _most),
    "newcomers_in": ("newcomers_in", _mean),
}
"""A mechanism under one failure: for each measure a column of the cases, and what is taken of its values over the seeds.

``lost_low`` to ``lost_high``: the 95 % interval of the mean, of several.
"""


@dataclass(frozen=True)
class Summary(ranking.Summary):
    """A mechanism over all failures. ``entries``: table entries that its controllers wrote, of all its switches, undisturbed."""

    switches: int
    entries: int
    kept_percent: float
    outage_worst_ms: float
    recovered_ms: float | None
    setup_worst_ms: float | None
    newcomers_in_percent: float | None
    parts: Mapping[str, Part]


class Comparison(Ranking):
    """All runs of a scenario of gateways."""

    scenario: Scenario
    mechanisms: list[Mechanism]
    summaries: list[Summary]

    def measures(self, row: Any, still: Any) -> dict[str, Any]:
        """Return the columns of a case. Times are in milliseconds; ``outage_mean_ms`` is over subscribers with an outage.

        ``recovered_ms`` is the slowest subscriber's; None if one has not recovered, of which there are ``unrecovered``.
        ``setup_mean_ms`` and ``setup_worst_ms`` are of newcomers that are in at the end; None if none is.
        """
        out = [each for each in row["outage_ms"] if each > 0]
        setups = _known(row["setup_ms"])
        lost = sum(row["lost"])
        return {
            "subscribers": len(row["kept"]),
            "kept": sum(row["kept"]),
            "online": sum(row["online"]),
            "sent": sum(row["sent"]),
            "lost": lost,
            "lost_to_failure": lost - sum(still["lost"]),
            "duplicated": sum(row["duplicated"]),
            "outage_mean_ms": round(statistics.fmean(out), 6) if out else 0.0,
            "outage_worst_ms": max(row["outage_ms"]),
            "recovered_ms": worst_of(row["recovered_ms"]),
            "unrecovered": row["recovered_ms"].count(None),
            "newcomers": len(row["setup_ms"]),
            "newcomers_in": len(setups),
            "setup_mean_ms": round(statistics.fmean(setups), 6) if setups else None,
            "setup_worst_ms": max(setups, default=None),
            "wrong_session": row["wrong_session"],
            "accounted": row["accounted"],
            "records_waiting": row["records_waiting"],
        }

    def _summary(self, mechanism: str) -> Summary:
        parts = {}
        for failure in self.scenario.failures:
            cases = [each for each in self.cases_of(mechanism) if each.failure == failure]
            measures = {name: of(_column(cases, column)) for name, (column, of) in MEASURES.items()}
            parts[failure] = {"failure": failure, **measures}
        totals = {name: sum(_column(self.cases_of(mechanism), name)) for name in ("kept", "subscribers", "newcomers")}
        entries = self.row(mechanism, NO_FAILURE, self.seeds[0])["entries"]
        newcomers_in = sum(_column(self.cases_of(mechanism), "newcomers_in"))
        every = list(parts.values())
        return Summary(
            **self.losses(mechanism),
            switches=len(entries),
            entries=sum(entries),
            kept_percent=100 * totals["kept"] / totals["subscribers"],
            outage_worst_ms=max(each["outage_worst_ms"] for each in every),
            recovered_ms=worst_of([each["recovered_ms"] for each in every]),
            setup_worst_ms=_most([each["setup_worst_ms"] for each in every]),
            newcomers_in_percent=100 * newcomers_in / totals["newcomers"] if totals["newcomers"] else None,
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


def _column(cases: Sequence[Case], name: str) -> list[Any]:
    return [case.measures[name] for case in cases]
