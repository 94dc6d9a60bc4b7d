"""The results of the runs: a case for each mechanism, failure and seed, and a summary of each mechanism, by rank.

- *lost to the failure*: packets that are lost with the failure, less those that the same mechanism loses with the same seed
  without it.
- Mechanisms are ranked by packets lost to a failure, mean over failures and seeds. Two differ if it is by more than
  :data:`NOISE_SHARE` of the greater, and with several seeds if the 95 % interval of the differences, seed by seed, excludes 0.
"""

from __future__ import annotations

import statistics as plain
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import product
from typing import Any

import polars as pl

from holdfast import statistics
from holdfast.compare.bng.mechanisms import Mechanism
from holdfast.compare.bng.scenario import NO_FAILURE, Scenario

NOISE_SHARE = 0.05


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
    rank: int
    switches: int
    entries: int
    kept_percent: float
    lost_mean: float
    lost_worst: float
    outage_worst_ms: float
    recovered_ms: float | None
    setup_worst_ms: float | None
    newcomers_in_percent: float | None
    parts: Mapping[str, Part]


class Comparison:
    """All runs of a scenario."""

    def __init__(
        self,
        scenario: Scenario,
        mechanisms: Sequence[Mechanism],
        seeds: Sequence[int],
        rows: Iterable[Mapping[str, Any]],
    ) -> None:
        self.scenario, self.mechanisms, self.seeds = scenario, list(mechanisms), list(seeds)
        self._rows = {(row["mechanism"], row["failure"], row["network_seed"]): row for row in rows}

    def row(self, mechanism: str, failure: str, seed: int) -> Mapping[str, Any]:
        """Return the row of the run with these three. Raise KeyError if there was none."""
        return self._rows[mechanism, failure, seed]

    @cached_property
    def cases(self) -> list[Case]:
        """The cases in the order of mechanisms, failures and seeds, without the runs in which nothing fails."""
        names = [each.name for each in self.mechanisms]
        return [self._case(*key) for key in product(names, self.scenario.failures, self.seeds)]

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
            outage_mean_ms=round(plain.fmean(out), 6) if out else 0.0,
            outage_worst_ms=max(row["outage_ms"]),
            recovered_ms=None if None in recovered else max(recovered),
            unrecovered=sum(each is None for each in recovered),
            newcomers=len(row["setup_ms"]),
            newcomers_in=len(setups),
            setup_mean_ms=round(plain.fmean(setups), 6) if setups else None,
            setup_worst_ms=max(setups, default=None),
            wrong_session=row["wrong_session"],
            accounted=row["accounted"],
            records_waiting=row["records_waiting"],
        )

    def _of(self, mechanism: str, failure: str | None = None) -> list[Case]:
        return [
            each for each in self.cases if each.mechanism == mechanism and (failure is None or each.failure == failure)
        ]

    def _part(self, mechanism: str, failure: str) -> Part:
        cases = self._of(mechanism, failure)
        lost = [float(each.lost_to_failure) for each in cases]
        low, high = statistics.mean_interval(lost) if len(lost) > 1 else (None, None)
        setups = [each.setup_mean_ms for each in cases if each.setup_mean_ms is not None]
        return Part(
            failure=failure,
            kept_mean=plain.fmean(each.kept for each in cases),
            lost_mean=plain.fmean(lost),
            lost_low=low,
            lost_high=high,
            outage_mean_ms=plain.fmean(each.outage_mean_ms for each in cases),
            outage_worst_ms=max(each.outage_worst_ms for each in cases),
            recovered_ms=worst(each.recovered_ms for each in cases),
            unrecovered=sum(each.unrecovered for each in cases),
            setup_mean_ms=plain.fmean(setups) if setups else None,
            setup_worst_ms=max(
                (each.setup_worst_ms for each in cases if each.setup_worst_ms is not None), default=None
            ),
            newcomers_in=plain.fmean(each.newcomers_in for each in cases),
        )

    def _lost_by_seed(self, mechanism: str) -> list[float]:
        return [
            plain.fmean(each.lost_to_failure for each in self._of(mechanism) if each.seed == seed)
            for seed in self.seeds
        ]

    def loses_less(self, one: str, other: str) -> bool:
        """Return True if mechanism ``one`` loses fewer packets to failures than ``other``, by more than noise.

        With several seeds, the 95 % interval of the differences must be above 0 too.
        """
        mine, theirs = self._lost_by_seed(one), self._lost_by_seed(other)
        difference = plain.fmean(theirs) - plain.fmean(mine)
        if difference <= NOISE_SHARE * max(map(abs, (plain.fmean(mine), plain.fmean(theirs)))):
            return False
        if len(self.seeds) == 1:
            return True
        low, _ = statistics.mean_interval([b - a for a, b in zip(mine, theirs, strict=True)])
        return low is not None and low > 0

    @cached_property
    def summaries(self) -> list[Summary]:
        """The summaries of the mechanisms, best first.

        Mechanisms that do not differ from the first of a rank share its rank; the one with fewer switches comes first.
        """
        found = [self._summary(each) for each in self.mechanisms]
        found.sort(key=lambda each: (each.lost_mean, each.switches))
        ranked: list[Summary] = []
        for place, each in enumerate(found):
            same = bool(ranked) and not self.loses_less(ranked[-1].mechanism, each.mechanism)
            leader = next((one for one in ranked if one.rank == ranked[-1].rank), None) if same else None
            if leader is not None and self.loses_less(leader.mechanism, each.mechanism):
                same = False
            rank = ranked[-1].rank if same else place + 1
            ranked.append(Summary(**{**_fields(each), "rank": rank}))
        return sorted(ranked, key=lambda each: (each.rank, each.switches))

    def _summary(self, mechanism: Mechanism) -> Summary:
        name, cases = mechanism.name, self._of(mechanism.name)
        parts = {failure: self._part(name, failure) for failure in self.scenario.failures}
        entries = self.row(name, NO_FAILURE, self.seeds[0])["entries"]
        newcomers = sum(each.newcomers for each in cases)
        setups = [each.setup_worst_ms for each in parts.values() if each.setup_worst_ms is not None]
        return Summary(
            mechanism=name,
            rank=0,
            switches=len(entries),
            entries=sum(entries),
            kept_percent=100 * sum(each.kept for each in cases) / sum(each.subscribers for each in cases),
            lost_mean=plain.fmean(each.lost_to_failure for each in cases),
            lost_worst=max(each.lost_mean for each in parts.values()),
            outage_worst_ms=max(each.outage_worst_ms for each in cases),
            recovered_ms=worst(each.recovered_ms for each in cases),
            setup_worst_ms=max(setups, default=None),
            newcomers_in_percent=100 * sum(each.newcomers_in for each in cases) / newcomers if newcomers else None,
            parts=parts,
        )

    def best(self, value: Callable[[Summary], float | None], *, most: bool = False) -> set[str]:
        """Return the names of mechanisms within :data:`NOISE_SHARE` of the best ``value``; none if all are.

        The best value is the lowest, or with ``most`` the highest.
        """
        known = {each.mechanism: shown for each in self.summaries if (shown := value(each)) is not None}
        if not known:
            return set()
        top = max(known.values()) if most else min(known.values())
        near = {name for name, each in known.items() if abs(each - top) <= NOISE_SHARE * max(abs(each), abs(top))}
        return set() if len(near) == len(self.summaries) else near

    def case_frame(self) -> pl.DataFrame:
        """Return a table with a row for each case: a mechanism, a failure and a seed."""
        return pl.DataFrame([asdict(case) for case in self.cases], infer_schema_length=None)

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

    def advice(self) -> str:
        """Return one sentence that says which mechanism loses fewest packets, and how the others compare."""
        first, *others = self.summaries
        if not others:
            return f"Only {first.mechanism} was run: there is nothing to compare it with."
        if all(each.rank == first.rank for each in others):
            return "As far as these failures go, no mechanism loses fewer packets than another."
        leaders = [each.mechanism for each in self.summaries if each.rank == first.rank]
        rest = [each for each in self.summaries if each.rank != first.rank]
        verb = "loses" if len(leaders) == 1 else "lose"
        return (
            f"{_listed(leaders)} {verb} fewest packets: {count(first.lost_mean)} on average for a failure"
            f" ({', '.join(f'{each.mechanism} {count(each.lost_mean)}' for each in rest)}), and"
            f" keep{'s' if len(leaders) == 1 else ''} {first.kept_percent:.0f} % of sessions"
            f" ({', '.join(f'{each.mechanism} {each.kept_percent:.0f} %' for each in rest)})."
        )

    def notes(self) -> list[str]:
        """Return the facts with which the numbers must be read, a sentence or two each."""
        crowd, times = self.scenario.subscribers, self.scenario.times
        found = [
            f"{crowd.subscribers} subscribers (CHAP, IPv4) have {crowd.packets_per_s:g} packets/s in each direction;"
            f" {len(self.scenario.given.newcomers)} others dial while something is down.",
            f"A session is over when three LCP echoes in a row, {crowd.keepalive_s:g} s apart, are not answered, on either side."
            " The data plane answers those of subscribers; so a controller that is away costs no session.",
            "The element that fails belongs to the first gateway, and fails alone. Detection of a port's state takes"
            f" {times.detection_delay_ms:g} ms, the reaction to it, and a route to the core, {times.reaction_delay_ms:g} ms more.",
            "A switch that fails comes back without its tables. A gateway of one plane is one box: its control plane is off with"
            " it, and starts again from disk. The time that a control plane needs to start is not modelled: pppoe_split_plane"
            " measures it.",
            "A gateway of one plane is at the access link, authenticates and forwards in one switch: its failures of plane,"
            " balancer and auth are the same. Without the balancer of a split gateway nothing passes; without its authentication"
            " plane, established sessions with traffic do.",
        ]
        if "plane" in self.scenario.failures and any(each.planes == 1 for each in self.mechanisms):
            found.append(
                "While the only forwarding plane of split is off, its authentication plane sets sessions up all the same: such a"
                " setup is fast, and no packet passes."
            )
        if any(each.wrong_session for each in self.cases):
            most = max(each.wrong_session for each in self.cases)
            found.append(
                f"At most {most} packet{'' if most == 1 else 's'} of a run came down a line for a session that had ended; home"
                " gateways dropped them."
            )
        return found


def _fields(summary: Summary) -> dict[str, Any]:
    return {name: getattr(summary, name) for name in Summary.__dataclass_fields__}


def worst(values: Iterable[float | None]) -> float | None:
    """Return the greatest of ``values``; None if one of them is None, or if there are none."""
    found = list(values)
    known = [each for each in found if each is not None]
    return max(known) if known and len(known) == len(found) else None


def count(value: float) -> str:
    """Format a number of packets: as a whole number from 10 on, with two significant digits below."""
    return f"{value:,.0f}" if abs(value) >= 10 or value == 0 else f"{value:.2g}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
