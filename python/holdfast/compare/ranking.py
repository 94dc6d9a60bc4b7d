"""From runs to ranks, in any world: what each failure cost each mechanism, which of two is better beyond noise, and doubts.

The loss of a mechanism *to the failure* is its loss with the failure less its loss without, with the same seed. Of two mechanisms
one is better if it loses less to the failure by more than a margin (:meth:`Ranking.lost_less`); if neither does, a world's
:meth:`Ranking.ties` decide. A rank is one more than the number of those that are better, so those that cannot be told apart share
theirs. Where the runs carry no conclusion at all, there is no rank, and ``unranked`` says why.

A row of a run has ``lost``, a list of numbers, whatever a world counts. Worlds that measure more have :meth:`Ranking.measures` and
summaries of their own.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import polars as pl

from holdfast.compare.competitor import Competitor
from holdfast.compare.formats import packets
from holdfast.compare.inputs import NO_FAILURE, Scenario
from holdfast.statistics import mean_interval


@dataclass(frozen=True)
class Noise:
    """The differences that two runs of the same may have: an outage by so many milliseconds, bytes and times by such a factor.

    Of two mechanisms, what they lose by such a share or by so many packets, their outages by the same share, the part of TCP's
    goodput that they lose by so many percent of it, and the bytes that they carry by so many times those of the baseline.
    """

    outage_ms: float
    goodput: float
    completion: float
    share: float
    packets: float
    goodput_percent: float
    bytes_ratio: float


SIMULATED = Noise(
    outage_ms=1.0, goodput=0.99, completion=1.01, share=0.05, packets=0.0, goodput_percent=1.0, bytes_ratio=0.005
)
"""Outages are known to a probe's interval, and a few packets more or fewer were on the link when it broke."""

LIVE = Noise(outage_ms=10.0, goodput=0.9, completion=2.0, share=0.2, packets=2.0, goodput_percent=10.0, bytes_ratio=0.1)


@dataclass(frozen=True)
class Case:
    """The cost of a failure under a mechanism, with a seed. ``carried``: it hit something in use."""

    mechanism: str
    failure: str
    seed: int
    carried: bool
    lost_undisturbed: int
    lost_to_failure: int
    measures: Mapping[str, Any]


@dataclass(frozen=True)
class Summary:
    """A mechanism in one line. Means are over all failures and seeds. ``rank``: None if the runs carry none.

    ``lost_*`` is what is lost to the failure, with the 95 % interval of the mean over several seeds and a value for each seed;
    ``lost_undisturbed`` is what is lost without a failure, and ``lost_unsteady`` the part of it in cases that the failure hit,
    which can differ from run to run. ``lost_worst``: under ``worst_failure``, a mean over the seeds.
    """

    mechanism: str
    rank: int | None
    carried: int
    lost_mean: float
    lost_low: float | None
    lost_high: float | None
    lost_by_seed: tuple[float, ...]
    lost_undisturbed: float
    lost_unsteady: float
    lost_worst: float
    worst_failure: str


Less = Callable[[Any, Any], bool]


class Ranking:
    """The runs of a scenario, by mechanism, failure and seed, and what follows from them.

    ``baseline`` is the mechanism that the others are measured against. ``doubts``: why nothing follows from these runs, a
    sentence each. ``unranked``: why there is no ranking, as a clause that begins a sentence; None if there is one. ``summaries``:
    by rank, or as the mechanisms are given if there is none.
    """

    scenario: Scenario
    mechanisms: Sequence[Competitor]
    cases: Sequence[Any]
    summaries: Sequence[Any]
    _rows: dict[tuple[str, str, int], Any]

    def __init__(
        self,
        scenario: Scenario,
        mechanisms: Sequence[Competitor],
        seeds: Sequence[int],
        rows: Sequence[Mapping[str, Any]],
    ) -> None:
        self.scenario, self.mechanisms, self.seeds = scenario, list(mechanisms), list(seeds)
        self.baseline = self.mechanisms[0].name
        self._rows = {(row["mechanism"], row["failure"], row["network_seed"]): row for row in rows}
        self.noise = SIMULATED
        self._conclude()

    def _repr_html_(self) -> str:
        """Return the ranking for notebooks."""
        from holdfast import notebook
        from holdfast.compare import world

        return notebook.comparison_page(self, world.columns(self), world.advice(self))

    def _repr_svg_(self) -> str:
        """Return what each mechanism loses, as a picture for notebooks."""
        from holdfast import notebook

        return notebook.comparison_picture(self)

    def _conclude(self) -> None:
        """Compute the cases, the summaries, the doubts and the ranks, in this order."""
        self.cases = list(self._cases())
        found = [self._summary(mechanism.name) for mechanism in self.mechanisms]
        self.doubts = self._doubts(found)
        self.unranked = self._unranked(found)
        self.summaries = found if self.unranked is not None else self._ranked(found)

    # ---- What a world may say otherwise ----

    def row(self, mechanism: str, failure: str, seed: int) -> Any:
        """Return the row of the run with this mechanism, failure and seed. Raise KeyError if there was none."""
        return self._rows[mechanism, failure, seed]

    def _cases(self) -> Iterator[Any]:
        names = [each.name for each in self.mechanisms]
        for mechanism, failure, seed in product(names, self.scenario.failures, self.seeds):
            row, still = (self.row(mechanism, which, seed) for which in (failure, NO_FAILURE))
            lost, without = (sum(each["lost"]) for each in (row, still))
            yield Case(mechanism, failure, seed, True, without, lost - without, self.measures(row, still))

    def measures(self, row: Any, still: Any) -> dict[str, Any]:
        """Return what is measured in a case (mechanism, failure and seed), by column.

        ``row``: the row of the run. ``still``: the row of the run without the failure.
        """
        lost, without = (sum(each["lost"]) for each in (row, still))
        return {"lost": lost, "lost_undisturbed": without, "lost_to_failure": lost - without}

    def _summary(self, mechanism: str) -> Any:
        return Summary(**self.losses(mechanism))

    def _doubts(self, found: Sequence[Any]) -> list[str]:
        return doubts_of_losses(self, found)

    def _unranked(self, found: Sequence[Any]) -> str | None:
        return f"Unreliable, so there is neither ranking nor advice: {self.doubts[0]}" if self.doubts else None

    def ties(self) -> Sequence[Less]:
        """Return the tests that decide, one after the other, between mechanisms that lose equally many packets."""
        return ()

    def order(self, one: Any) -> tuple[float, ...]:
        """Return the sort key by which mechanisms of the same rank are listed, the smallest first."""
        return (one.lost_mean,)

    def price(self, one: Any) -> float:
        """Return the sort key for mechanisms that no test distinguishes: the smallest is named first."""
        return 0.0

    def disturbed(self) -> dict[tuple[str, int], str]:
        """Return why runs of a live comparison have to be made again, as sentences by mechanism and seed; empty for simulations."""
        return {}

    # ---- What follows ----

    def plain(self, found: Sequence[Any]) -> Any:
        """Return the summary of the baseline among ``found``."""
        return next(each for each in found if each.mechanism == self.baseline)

    def cases_of(self, mechanism: str) -> list[Any]:
        """Return the cases of a mechanism."""
        return [case for case in self.cases if case.mechanism == mechanism]

    def losses(self, mechanism: str) -> dict[str, Any]:
        """Return the fields of :class:`Summary` for ``mechanism``, computed from its cases; the rank is not among them."""
        cases = self.cases_of(mechanism)
        by_seed = self.by_seed(cases, lambda case: case.lost_to_failure)
        low, high = mean_interval(by_seed) if len(self.seeds) > 1 else (None, None)
        costs = {
            failure: statistics.fmean(case.lost_to_failure for case in cases if case.failure == failure)
            for failure in self.scenario.failures
        }
        worst = max(costs, key=costs.__getitem__)
        undisturbed = [self.row(mechanism, NO_FAILURE, seed)["lost"] for seed in self.seeds]
        return {
            "mechanism": mechanism,
            "rank": None,
            "carried": sum(case.carried for case in cases),
            "lost_mean": statistics.fmean(case.lost_to_failure for case in cases),
            "lost_low": low,
            "lost_high": high,
            "lost_by_seed": by_seed,
            "lost_undisturbed": statistics.fmean(map(sum, undisturbed)),
            "lost_unsteady": statistics.fmean(case.lost_undisturbed * case.carried for case in cases),
            "lost_worst": costs[worst],
            "worst_failure": worst,
        }

    def by_seed(self, cases: Sequence[Any], value: Callable[[Any], float]) -> tuple[float, ...]:
        """Return the mean of ``value`` over the cases of each seed."""
        return tuple(statistics.fmean(value(case) for case in cases if case.seed == seed) for seed in self.seeds)

    def lost_less(self, one: Any, other: Any) -> bool:
        """Return True if ``one`` loses fewer packets to the failure than ``other``, by more than noise.

        The mean difference must exceed ``noise.packets`` and the share ``noise.share`` of the greater of the two mean losses. With
        several seeds whose results differ, the 95 % confidence interval of the difference per seed must also be above 0. Otherwise
        the difference must also exceed the sum of both ``lost_unsteady``, as another run could lose as much without any failure.
        """
        least, unsteady = self._least_packets(one, other), one.lost_unsteady + other.lost_unsteady
        return self._surely(one.lost_by_seed, other.lost_by_seed, least, unsteady=unsteady)

    def better(self, one: Any, other: Any) -> bool:
        """Return True if ``one`` is better than ``other``: by packets lost, else by the first of :meth:`ties` that decides.

        Where the mean losses differ by more than noise but the runs cannot confirm it, the first tie decides only if it agrees with
        the means, and no other does: a mechanism that seems to lose more is not ahead for being cheaper.
        """
        if self.lost_less(one, other) or self.lost_less(other, one):
            return self.lost_less(one, other)
        if self.seems_less(other, one):
            return False
        ties = self.ties()
        if self.seems_less(one, other):
            return any(less(one, other) for less in ties[:1])
        return next((less(one, other) for less in ties if less(one, other) or less(other, one)), False)

    def seems_less(self, one: Any, other: Any) -> bool:
        """Return True if ``one`` loses fewer packets on average by more than noise, but :meth:`lost_less` is False."""
        return other.lost_mean - one.lost_mean > self._least_packets(one, other) and not self.lost_less(one, other)

    def _least_packets(self, one: Any, other: Any) -> float:
        least: float = self.noise.share * max(abs(one.lost_mean), abs(other.lost_mean))
        return max(self.noise.packets, least)

    def as_good(self, one: Any, other: Any) -> bool:
        """Return True if neither mechanism surely loses fewer packets, nor is surely ahead by the first of :meth:`ties`."""
        tests = (self.lost_less, *self.ties()[:1])
        return not any(less(one, other) or less(other, one) for less in tests)

    def surely_gains(self, one: Any) -> bool:
        """Return True if ``one`` loses fewer packets with the failure than without, with 95 % confidence over several seeds."""
        return one.lost_high is not None and not self.seeds_agree and one.lost_high < 0

    def best(self, less: Less) -> set[str]:
        """Return the names of the mechanisms that no other one beats by the test ``less``; empty if none is beaten.

        The mechanism with the best value is always among them.
        """
        beaten = {one.mechanism for one in self.summaries if any(less(other, one) for other in self.summaries)}
        return {each.mechanism for each in self.summaries} - beaten if beaten else set()

    def _ranked(self, found: Sequence[Any]) -> list[Any]:
        ranks = {one.mechanism: 1 + sum(self.better(other, one) for other in found) for one in found}
        rest = sorted(found, key=lambda one: (ranks[one.mechanism], *self.order(one)))
        ordered: list[Any] = []
        while rest:
            first = rest[0]
            # Of those that nothing else tells apart, the one with the lowest price is named first.
            alike = [s for s in rest if ranks[s.mechanism] == ranks[first.mechanism] and self._alike(first, s)]
            ordered += sorted(alike, key=self.price)
            rest = [s for s in rest if s not in alike]
        return [replace(one, rank=ranks[one.mechanism]) for one in ordered]

    def _alike(self, one: Any, other: Any) -> bool:
        """Return True if neither mechanism is surely better than the other (:meth:`as_good`), nor better on average."""
        return self.as_good(one, other) and not self.seems_less(one, other) and not self.seems_less(other, one)

    def _surely(self, one: Sequence[float], other: Sequence[float], least: float, *, unsteady: float) -> bool:
        """Return True if the values ``one`` are on average smaller than ``other`` by more than ``least``.

        With several seeds that differ, the difference must also be above 0 with 95 % confidence; otherwise it must be greater than
        ``unsteady`` too.
        """
        ahead = [b - a for a, b in zip(one, other, strict=True)]
        if len(ahead) > 1 and not self.seeds_agree:
            return statistics.fmean(ahead) > least and mean_interval(ahead)[0] > 0
        return statistics.fmean(ahead) > max(least, unsteady)

    @cached_property
    def seeds_agree(self) -> bool:
        """True if several seeds gave equal results in everything, as they do where nothing is random."""
        known: dict[tuple[str, str], Any] = {}
        cases = [(case, replace(case, seed=self.seeds[0])) for case in self.cases]
        return len(self.seeds) > 1 and all(
            known.setdefault((case.mechanism, case.failure), plain) == plain for case, plain in cases
        )

    def clearly(self, value: Callable[[Any], float | None], *, most: bool = False) -> Less:
        """Return a test of two summaries: True if the ``value`` of the first is less by more than the share of noise.

        With ``most``, True if it is greater. A number beats None.
        """

        def ahead(one: Any, other: Any) -> bool:
            mine, theirs = value(one), value(other)
            if mine is None or theirs is None:
                return mine is not None and theirs is None
            gap = mine - theirs if most else theirs - mine
            return gap > self.noise.share * max(abs(mine), abs(theirs))

        return ahead

    def case_frame(self) -> pl.DataFrame:
        """Return a table with a row per case: mechanism, failure and seed, and what is measured."""
        rows = [
            {"mechanism": case.mechanism, "failure": case.failure, "seed": case.seed, **case.measures}
            for case in self.cases
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def summary_of(self, one: Any) -> dict[str, object]:
        """Return a mechanism's summary as it is written to files."""
        return asdict(one)


def doubts_of_losses(ranking: Ranking, found: Sequence[Any]) -> list[str]:
    """Return why losses prove nothing, a sentence each: as many without the failure, or fewer with it than without."""
    why: list[str] = []
    plain = ranking.plain(found)
    if not plain.carried:
        return why  # Nothing was hit, so that what is lost undisturbed is not held against it.
    cost, most = plain.lost_mean, max(found, key=lambda s: s.lost_unsteady)
    if most.lost_unsteady > ranking.noise.packets and most.lost_unsteady >= cost:
        low, high = (f"{each(s.lost_undisturbed for s in found):.0f}" for each in (min, max))
        span = low if low == high else f"{low} to {high}"
        already = "1 packet is lost" if span == "1" else f"{span} packets are lost"
        why.append(
            f"without any failure {already} already, and the failure adds"
            f" no more than that under {ranking.baseline} ({cost:.0f}"
            f"{' on average' if len(ranking.scenario.failures) > 1 else ''}): links are too full, or lossy;"
            " give less traffic, or more seeds"
        )
    least = min(found, key=lambda s: s.lost_mean)
    if not ranking.surely_gains(least) and least.lost_mean < -max(
        ranking.noise.packets, ranking.noise.share * abs(cost)
    ):
        why.append(
            f"{least.mechanism} lost {packets(-least.lost_mean)} less with the failure than without: what is lost"
            " undisturbed differs from run to run by more than the failure costs"
        )
    return why
