"""From runs to conclusions: a case per mechanism, failure and seed, a summary per mechanism, and the ranking.

*Affected* flows of a failure are those that did worse with it than without, under any mechanism and with any seed: the same flows
for all of them. A flow with several receivers is counted at each of them. Means over flows are over the affected ones; losses, and
the longest outage, are over all flows that are not cut off by themselves (a host at a switch that fails has no other).

The loss of a mechanism *to the failure* is its loss with the failure less its loss without, with the same seed. Of two
mechanisms one is better if it loses less to the failure, or else has the shorter outage, or else carries fewer bytes, each by more
than a margin (:meth:`Comparison.lost_less`, :meth:`Comparison.back_sooner`). A rank is one more than the number of those that are
better, so those that cannot be told apart share theirs. Where the runs carry no conclusion at all, there is no rank, and ``doubts``
says why. Nothing here runs a network, draws, or puts it into words.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import product
from typing import Final, cast

import polars as pl

from holdfast.compare import doubts, multicast
from holdfast.compare.figures import (
    COUNTED,
    COUNTED_OF_CASE,
    Case,
    OfMulticast,
    Promise,
    Summary,
    figures,
    mean,
    mean_difference,
    mean_lost_percent,
    mean_of_all,
    percent_of,
    worst_of,
)
from holdfast.compare.flows import Flow, Kind, Reception, of_kind, receptions_of
from holdfast.compare.mechanism import Mechanism
from holdfast.compare.mechanisms import STATIC
from holdfast.compare.rows import Row, TelemetryRow
from holdfast.compare.scenario import NO_FAILURE, Scenario
from holdfast.compare.traffic_file import UdpEntry
from holdfast.statistics import mean_interval
from holdfast.topology import Topology

BULK_COLUMNS: Final = ("goodput_bytes", "timeouts", "retransmitted_bytes")

KEY_SCHEMA = {"mechanism": pl.String, "failure": pl.String, "seed": pl.Int64}
FIGURES_SCHEMA = {
    **dict.fromkeys(("sent", "lost", "duplicated", "reordered"), pl.Int64),
    **dict.fromkeys(("outage_ms", "latency_ms", "jitter_ms"), pl.Float64),
}


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

FEW_BYTES = 3 * 1448
"""Losses of connections to a failure differ by more than this: three segments of Ethernet's length."""


class Comparison:
    """The runs of a scenario, by mechanism, failure and seed, and what follows from them."""

    def __init__(
        self, scenario: Scenario, mechanisms: Sequence[Mechanism], seeds: Sequence[int], rows: Sequence[Row]
    ) -> None:
        self.scenario = scenario
        self.mechanisms = list(mechanisms)
        self.baseline = self.mechanisms[0].name
        """The mechanism that the others are measured against."""
        self.seeds = list(seeds)
        self._rows = {(row["mechanism"], row["failure"], row["network_seed"]): row for row in rows}
        self.noise = SIMULATED
        if scenario.live:
            late = self.late()
            known_ms = max(LIVE.outage_ms, late["max_ms"] + late["senders_ms"])
            self.noise = replace(LIVE, outage_ms=known_ms)
        self.flows = scenario.traffic.flows()
        receptions = receptions_of(scenario)
        kinds: tuple[tuple[Kind, ...], ...] = (("udp", "ping"), ("bulk",), ("transfer",))
        self.probes, self.bulk, self.transfers = ([receptions[i] for i in of_kind(receptions, *each)] for each in kinds)
        self.cases = [case for failure in scenario.failures for case in self._cases(failure)]
        found = [self._summary(mechanism.name) for mechanism in self.mechanisms]
        self.doubts = doubts.doubts(self, found)
        """Why nothing follows from these runs, a sentence each; empty if something does."""
        self.unranked = doubts.unranked(self, found)
        """Why there is no ranking, as a clause that begins a sentence; None if there is one."""
        self.summaries = self._ranked(found)
        """By rank; as the mechanisms are given if there is none."""

    @property
    def is_multicast(self) -> bool:
        """True if all flows have several receivers."""
        return all(ends.group is not None for ends in self.flows)

    @property
    def plainly(self) -> str:
        """The name of the baseline in words."""
        return "plain routing" if self.baseline == STATIC else self.baseline

    def row(self, mechanism: str, failure: str, seed: int) -> Row:
        """Return the row of a run; if the failure hit nothing that the mechanism uses, that of the run without a failure."""
        row = self._rows[mechanism, failure, seed]
        return self._rows[mechanism, NO_FAILURE, seed] if row["skipped"] else row

    def is_carried(self, mechanism: str, failure: str, seed: int) -> bool:
        """Return True if the failure hit a link or switch that the mechanism uses with this seed."""
        return not self._rows[mechanism, failure, seed]["skipped"]

    def measured(self, receptions: Sequence[Reception], failure: str) -> list[int]:
        """Return the indices of the receptions that count under ``failure``.

        Not counted are those whose source or receiver is at a switch that fails.
        """
        topology = self.scenario.topology
        if failure not in topology.switches:
            return list(range(len(receptions)))
        gone = {name for name in topology.hosts if topology.attachment(name).switch == failure}
        return [i for i, each in enumerate(receptions) if gone.isdisjoint(each.hosts)]

    def _cases(self, failure: str) -> Iterator[Case]:
        affected = self._affected(failure)
        for seed in self.seeds:
            yield from self._cases_of(failure, seed, *affected)

    def _cases_of(
        self, failure: str, seed: int, probes: Sequence[int], bulk: Sequence[int], transfers: Sequence[int]
    ) -> Iterator[Case]:
        measured = self.measured(self.probes, failure)
        rows = [self.row(mechanism.name, failure, seed) for mechanism in self.mechanisms]
        arriving = [i for i in probes if any(row["latency_ms"][i] is not None for row in rows)]
        for mechanism in self.mechanisms:
            row, still = self.row(mechanism.name, failure, seed), self.row(mechanism.name, NO_FAILURE, seed)
            plain = self.row(self.baseline, NO_FAILURE, seed)
            expected = sum(still["goodput_bytes"][i] for i in bulk)
            missing = expected - sum(row["goodput_bytes"][i] for i in bulk)
            completed = [ms for i in transfers if (ms := row["completion_ms"][i]) is not None]
            finished = len(completed) == len(transfers)
            lost, lost_still = (sum(each["lost"][i] for i in measured) for each in (row, still))
            yield Case(
                mechanism=mechanism.name,
                failure=failure,
                seed=seed,
                carried=self.is_carried(mechanism.name, failure, seed),
                affected_streams=len({self.probes[i].flow.place for i in probes}),
                sent=sum(row["sent"][i] for i in measured),
                duplicated=sum(row["duplicated"][i] for i in measured),
                reordered=sum(row["reordered"][i] for i in measured),
                lost=lost,
                lost_undisturbed=lost_still,
                lost_to_failure=lost - lost_still,
                outage_ms=max((row["outage_ms"][i] for i in measured), default=0.0),
                outage_undisturbed_ms=max((still["outage_ms"][i] for i in measured), default=0.0),
                goodput_undisturbed_bytes=expected,
                goodput_lost_bytes=missing,
                goodput_lost_percent=mean_lost_percent(still["goodput_bytes"], row["goodput_bytes"], bulk),
                connections=len(bulk),
                transfers=len(transfers),
                transfers_unfinished=len(transfers) - len(completed),
                completion_mean_ms=mean(completed) if finished else None,
                completion_worst_ms=max(completed, default=None) if finished else None,
                added_latency_ms=mean_difference(row["latency_ms"], plain["latency_ms"], arriving),
                added_jitter_ms=mean_difference(row["jitter_ms"], plain["jitter_ms"], arriving),
            )

    def _affected(self, failure: str) -> tuple[list[int], list[int], list[int]]:
        """Return three lists of indices: of the probes, connections and transfers that ``failure`` makes worse.

        It is enough if one does worse under one mechanism with one seed. Connections count only if they deliver data in every
        undisturbed run, as otherwise no share of it can be lost.
        """
        probes: set[int] = set()
        bulk: set[int] = set()
        transfers: set[int] = set()
        for mechanism, seed in product(self.mechanisms, self.seeds):
            if not self.is_carried(mechanism.name, failure, seed):
                continue
            row, still = self.row(mechanism.name, failure, seed), self.row(mechanism.name, NO_FAILURE, seed)
            probes |= {
                i
                for i in self.measured(self.probes, failure)
                if row["lost"][i] > still["lost"][i]
                or row["outage_ms"][i] > still["outage_ms"][i] + self.noise.outage_ms
            }
            bulk |= {
                i
                for i in self.measured(self.bulk, failure)
                if row["goodput_bytes"][i] < self.noise.goodput * still["goodput_bytes"][i]
            }
            for i in self.measured(self.transfers, failure):
                before, now = still["completion_ms"][i], row["completion_ms"][i]
                if before is not None and (now is None or now > self.noise.completion * before):
                    transfers.add(i)
        undisturbed = [self.row(each.name, NO_FAILURE, seed) for each in self.mechanisms for seed in self.seeds]
        delivering = [i for i in sorted(bulk) if all(still["goodput_bytes"][i] for still in undisturbed)]
        return sorted(probes), delivering, sorted(transfers)

    def _ranked(self, found: list[Summary]) -> list[Summary]:
        if self.unranked is not None:
            return found
        ranks = {one.mechanism: 1 + sum(self.better(other, one) for other in found) for one in found}
        rest = sorted(found, key=lambda s: (ranks[s.mechanism], s.lost_mean, s.outage_mean_ms, s.bytes_ratio))
        found = []
        while rest:
            first = rest[0]
            # Of those that nothing else tells apart, the one with the least state is named first.
            alike = [s for s in rest if ranks[s.mechanism] == ranks[first.mechanism] and self._alike(first, s)]
            found += sorted(alike, key=lambda s: s.entries_mean)
            rest = [s for s in rest if s not in alike]
        return [replace(summary, rank=ranks[summary.mechanism]) for summary in found]

    def _summary(self, name: str) -> Summary:
        cases = [case for case in self.cases if case.mechanism == name]
        hit = [case for case in cases if case.carried] or cases
        worst = max(cases, key=lambda case: (case.lost_to_failure, case.outage_ms))
        undisturbed = [self.row(name, NO_FAILURE, seed) for seed in self.seeds]
        plain = [self.row(self.baseline, NO_FAILURE, seed) for seed in self.seeds]
        low, high = self._interval(cases)
        lost_bytes = sum(case.goodput_lost_bytes for case in cases)
        entries = undisturbed[0]["entries"]
        return Summary(
            mechanism=name,
            rank=None,
            cases=len(cases),
            carried=sum(case.carried for case in cases),
            lost_mean=statistics.fmean(case.lost_to_failure for case in cases),
            lost_low=low,
            lost_high=high,
            lost_median=statistics.median(case.lost_to_failure for case in hit),
            lost_worst=worst.lost_to_failure,
            worst_failure=worst.failure,
            lost_by_seed=self._by_seed(cases, lambda case: case.lost_to_failure),
            lost_undisturbed=statistics.fmean(sum(row["lost"]) for row in undisturbed),
            lost_unsteady=statistics.fmean(case.lost_undisturbed * case.carried for case in cases),
            outage_by_seed_ms=self._by_seed(cases, lambda case: case.outage_ms),
            outage_unsteady_ms=statistics.fmean(case.outage_undisturbed_ms * case.carried for case in cases),
            outage_mean_ms=statistics.fmean(case.outage_ms for case in cases),
            outage_median_ms=statistics.median(case.outage_ms for case in hit),
            outage_worst_ms=max(case.outage_ms for case in cases),
            goodput_lost_bytes_mean=lost_bytes / len(cases),
            goodput_lost_percent=percent_of(cases),
            goodput_lost_by_seed=self._goodput_by_seed(cases),
            completion_mean_ms=mean_of_all([(c.completion_mean_ms, c.transfers) for c in cases if c.transfers]),
            completion_worst_ms=worst_of([c.completion_worst_ms for c in cases if c.transfers]),
            transfers=sum(case.transfers for case in cases),
            transfers_unfinished=sum(case.transfers_unfinished for case in cases),
            added_latency_ms=mean_of_all([(c.added_latency_ms, 1) for c in cases if c.affected_streams]),
            added_jitter_ms=mean_of_all([(c.added_jitter_ms, 1) for c in cases if c.affected_streams]),
            bytes_ratio=statistics.fmean(
                row["wire_bytes"] / base["wire_bytes"] if base["wire_bytes"] else 1.0
                for row, base in zip(undisturbed, plain, strict=True)
            ),
            entries_mean=statistics.fmean(entries),
            entries_max=max(entries),
            unprotected_flows=len(undisturbed[0]["unprotected"]),
            **self._of_multicast(name, undisturbed),
            **self._of_promises(name),
        )

    def _of_promises(self, name: str) -> dict[str, int | None]:
        found = self.promises[name]
        given = [each for each in found if each.outage_ms is not None]
        counts = (len(given), sum(each.is_kept for each in given), len(found) - len(given))
        return dict(zip(("promises", "promises_kept", "promises_none"), counts if found else [None] * 3, strict=True))

    @cached_property
    def promises(self) -> dict[str, list[Promise]]:
        """The promises by mechanism, of every failure that hit something in use; empty for mechanisms that promise nothing."""
        found: dict[str, list[Promise]] = {each.name: [] for each in self.mechanisms}
        for mechanism, failure, seed in product(found, self.scenario.failures, self.seeds):
            row, still = (self._rows.get((mechanism, which, seed)) for which in (failure, NO_FAILURE))
            if row is None or still is None or not (promised := row.get("promised_ms")):
                continue
            wire_ms = _on_the_wire_ms(self.scenario.topology, failure)
            for i in self.measured(self.probes, failure):
                entry = self.probes[i].flow.entry
                if isinstance(entry, UdpEntry):
                    outage_ms = promised[i]
                    allowed = 1 + int(entry.packets_per_s * (outage_ms + wire_ms) / 1000) if outage_ms else 0
                    lost = row["lost"][i] - still["lost"][i]
                    found[mechanism].append(
                        Promise(mechanism, failure, seed, i, outage_ms, allowed, lost, row["duplicated"][i])
                    )
        return found

    def _of_multicast(self, name: str, undisturbed: Sequence[Row]) -> OfMulticast:
        groups = [ends for ends in self.flows if ends.group is not None]
        mechanism = next(each for each in self.mechanisms if each.name == name)
        core = mechanism.core_state and groups and mechanism.core_state(self.scenario.topology, groups)
        carried = statistics.fmean(row["wire_bytes"] for row in undisturbed)
        return {
            "tree_ratio": carried / self.best_tree_bytes if groups and self.best_tree_bytes else None,
            "join_updates": undisturbed[0].get("join_updates"),
            "join_switches": undisturbed[0].get("join_switches"),
            "core_state": statistics.fmean(core) if core else None,
        }

    @cached_property
    def best_tree_bytes(self) -> float | None:
        """The bytes that the best multicast trees would carry."""
        return multicast.best_tree_bytes(self.scenario)

    def _interval(self, cases: Sequence[Case]) -> tuple[float | None, float | None]:
        """Return the 95 % interval of the mean of packets lost to the failure; (None, None) with one seed."""
        if len(self.seeds) < 2:
            return None, None
        return mean_interval(self._by_seed(cases, lambda case: case.lost_to_failure))

    def _by_seed(self, cases: Sequence[Case], value: Callable[[Case], float]) -> tuple[float, ...]:
        return tuple(statistics.fmean(value(case) for case in cases if case.seed == seed) for seed in self.seeds)

    def _goodput_by_seed(self, cases: Sequence[Case]) -> tuple[float, ...]:
        """Return the percentage of goodput lost, by seed; empty if there is a seed without connections."""
        found = [percent_of([case for case in cases if case.seed == seed]) for seed in self.seeds]
        known = tuple(each for each in found if each is not None)
        return known if len(known) == len(found) else ()

    # ---- Differences beyond noise ----

    def lost_less(self, one: Summary, other: Summary) -> bool:
        """Return True if ``one`` loses fewer packets to the failure than ``other``, by more than noise.

        Noise is a number of packets, or a share of the greater loss. With several seeds, the differences seed by seed must be above
        zero with 95 % confidence too. With one seed, or where all seeds agree, the difference must be greater than what both lose
        undisturbed in the runs that the failure hit, as another run could lose as much without any failure.
        """
        least, unsteady = self._least_packets(one, other), one.lost_unsteady + other.lost_unsteady
        return self._surely(one.lost_by_seed, other.lost_by_seed, least, unsteady=unsteady)

    def back_sooner(self, one: Summary, other: Summary) -> bool:
        """Return True if ``one`` has a shorter outage than ``other``, by the rule of :meth:`lost_less`.

        The noise of undisturbed runs is the longer of both undisturbed outages.
        """
        least = max(self.noise.outage_ms, self.noise.share * max(one.outage_mean_ms, other.outage_mean_ms))
        unsteady = max(one.outage_unsteady_ms, other.outage_unsteady_ms)
        return self._surely(one.outage_by_seed_ms, other.outage_by_seed_ms, least, unsteady=unsteady)

    def delivers_more(self, one: Summary, other: Summary) -> bool:
        """Return True if ``one`` loses less of TCP's goodput than ``other``, by more than a few segments per failure.

        With one seed it is False where probes are lost without a failure.
        """
        if not one.goodput_lost_by_seed or not other.goodput_lost_by_seed:
            return False
        if other.goodput_lost_bytes_mean - one.goodput_lost_bytes_mean <= FEW_BYTES:
            return False
        unsteady = math.inf if one.lost_unsteady + other.lost_unsteady > self.noise.packets else 0.0
        return self._surely(
            one.goodput_lost_by_seed, other.goodput_lost_by_seed, self.noise.goodput_percent, unsteady=unsteady
        )

    def carries_less(self, one: Summary, other: Summary) -> bool:
        """Return True if ``one`` carries fewer bytes on all links than ``other``, by more than noise."""
        return one.bytes_ratio < other.bytes_ratio - self.noise.bytes_ratio

    def better(self, one: Summary, other: Summary) -> bool:
        """Return True if ``one`` is better than ``other``: by packets lost, else by outage, else by bytes carried.

        Where the mean losses differ by more than noise but the runs cannot confirm it, the outage decides only if it agrees with
        the means, and bytes do not decide: a mechanism that seems to lose more is not ahead for being cheaper.
        """
        if self.lost_less(one, other) or self.lost_less(other, one):
            return self.lost_less(one, other)
        if self.seems_less(other, one):
            return False
        if self.seems_less(one, other):
            return self.back_sooner(one, other)
        for less in (self.back_sooner, self.carries_less):
            if less(one, other) or less(other, one):
                return less(one, other)
        return False

    def seems_less(self, one: Summary, other: Summary) -> bool:
        """Return True if ``one`` loses fewer packets on average by more than noise, but :meth:`lost_less` is False."""
        return other.lost_mean - one.lost_mean > self._least_packets(one, other) and not self.lost_less(one, other)

    def _least_packets(self, one: Summary, other: Summary) -> float:
        return max(self.noise.packets, self.noise.share * max(abs(one.lost_mean), abs(other.lost_mean)))

    def as_good(self, one: Summary, other: Summary) -> bool:
        """Return True if neither mechanism surely loses fewer packets, nor has surely a shorter outage, than the other."""
        tests = (self.lost_less, self.back_sooner)
        return not any(less(one, other) or less(other, one) for less in tests)

    def surely_gains(self, one: Summary) -> bool:
        """Return True if ``one`` loses fewer packets with the failure than without, with 95 % confidence over several seeds."""
        return one.lost_high is not None and not self.seeds_agree and one.lost_high < 0

    def _alike(self, one: Summary, other: Summary) -> bool:
        """Return True if the mechanisms are :meth:`as_good` and neither :meth:`seems_less` than the other."""
        return self.as_good(one, other) and not self.seems_less(one, other) and not self.seems_less(other, one)

    def best(self, less: Callable[[Summary, Summary], bool]) -> set[str]:
        """Return the names of the mechanisms that no other one beats by ``less``, a test of this class; empty if none is beaten.

        The mechanism with the best value is always among them.
        """
        beaten = {one.mechanism for one in self.summaries if any(less(other, one) for other in self.summaries)}
        return {each.mechanism for each in self.summaries} - beaten if beaten else set()

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
    def uncounted(self) -> str | None:
        """The reason why no packet is counted under any failure, in words; None if packets are counted."""
        if not self.probes:
            return "no UDP stream or ping to count"
        if not any(self.measured(self.probes, failure) for failure in self.scenario.failures):
            return "all probes begin or end at what fails, and nothing can help them"
        return None

    def disturbed(self) -> dict[tuple[str, int], str]:
        """Return reasons, by mechanism and seed, for which the undisturbed run of a live comparison is unusable.

        See :func:`holdfast.compare.doubts.disturbed`.
        """
        return doubts.disturbed(self)

    def late(self) -> dict[str, float]:
        """Return by how many ms a live comparison was late, and in ``repeated`` how many runs were made again.

        ``mean_ms`` and ``max_ms``: of the network's clock. ``senders_ms``: the most of the senders of probes.
        """
        rows = [row for row in self._rows.values() if not row["skipped"]]
        return {
            "mean_ms": statistics.fmean(row["mean_lateness_ms"] for row in rows),
            "max_ms": max(row["max_lateness_ms"] for row in rows),
            "senders_ms": max(row["sender_lateness_ms"] for row in rows),
            "repeated": sum(row["repeated"] for row in rows) + sum(row.get("attempt") or 0 for row in rows),
        }

    @cached_property
    def seeds_agree(self) -> bool:
        """True if several seeds gave equal results in everything, as they do where nothing is random."""
        first = {(c.mechanism, c.failure): c for c in self.cases if c.seed == self.seeds[0]}
        others = [case for case in self.cases if case.seed != self.seeds[0]]
        return bool(others) and all(replace(c, seed=self.seeds[0]) == first[c.mechanism, c.failure] for c in others)

    def case_frame(self) -> pl.DataFrame:
        """Return a table with a row per case: mechanism, failure and seed. Numbers that were not counted are null."""
        frame = pl.DataFrame([asdict(case) for case in self.cases], infer_schema_length=None)
        if self.uncounted is not None:
            frame = frame.with_columns(pl.lit(None).cast(frame.schema[name]).alias(name) for name in COUNTED_OF_CASE)
        return frame

    def summary_of(self, one: Summary) -> dict[str, object]:
        """Return a mechanism's summary as it is written to files; numbers that were not counted are None."""
        nothing = dict.fromkeys(COUNTED, None) if self.uncounted is not None else {}
        return {**asdict(one), **nothing}

    def probe_flows(self) -> list[tuple[Flow, list[int]]]:
        """Return (flow, indices of its receptions in a row) for every flow of probes."""
        found: dict[int, list[int]] = {}
        for i, each in enumerate(self.probes):
            found.setdefault(each.flow.place, []).append(i)
        return [(self.probes[places[0]].flow, places) for places in found.values()]

    def worst_receiver(self, mechanism: str, places: Sequence[int]) -> tuple[str, float, int]:
        """Return (receiver with the longest outage, its outage in ms, most packets that one receiver lost) of a flow.

        The worst of all failures and seeds counts. Receptions are left out where the failure cuts off their ends; the receiver is
        empty if all of them are.
        """
        outages: dict[str, float] = {}
        lost: dict[str, int] = {}
        for failure, seed in product(self.scenario.failures, self.seeds):
            row, counted = self.row(mechanism, failure, seed), set(self.measured(self.probes, failure))
            for i in counted.intersection(places):
                receiver = self.probes[i].receiver
                outages[receiver] = max(outages.get(receiver, 0.0), row["outage_ms"][i])
                lost[receiver] = max(lost.get(receiver, 0), row["lost"][i])
        if not outages:
            return "", 0.0, 0
        worst = max(
            (self.probes[i].receiver for i in places if self.probes[i].receiver in outages), key=outages.__getitem__
        )
        return worst, outages[worst], lost[worst]

    def flow_frame(self) -> pl.DataFrame:
        """Return a table with a row per flow and run; runs without a failure are included, skipped ones are not."""
        rows: list[dict[str, object]] = []
        for key, row in self._took_place():
            for flow, places in self.probe_flows():
                rows.append({**key, **_named(flow), **asdict(figures(row, places))})
            for i, each in enumerate(self.bulk):
                numbers = {name: row[name][i] for name in BULK_COLUMNS}
                rows.append({**key, **_named(each.flow), **numbers})
            for i, each in enumerate(self.transfers):
                rows.append({**key, **_named(each.flow), "completion_ms": row["completion_ms"][i]})
        schema = {
            **KEY_SCHEMA,
            **dict.fromkeys(("kind", "source", "destination"), pl.String),
            **FIGURES_SCHEMA,
            **dict.fromkeys(BULK_COLUMNS, pl.Int64),
            "completion_ms": pl.Float64,
        }
        return pl.DataFrame(rows, schema=schema)

    def receiver_frame(self) -> pl.DataFrame | None:
        """Return a table with a row per reception and run, of flows with several receivers; None if there is no such flow."""
        several = [(flow, places) for flow, places in self.probe_flows() if len(places) > 1]
        if not several:
            return None
        rows = [
            {**key, **_named(flow), "receiver": self.probes[i].receiver, **asdict(figures(row, [i]))}
            for key, row in self._took_place()
            for flow, places in several
            for i in places
        ]
        names = dict.fromkeys(("kind", "source", "destination", "receiver"), pl.String)
        return pl.DataFrame(rows, schema={**KEY_SCHEMA, **names, **FIGURES_SCHEMA})

    def costliest_failures(self) -> list[str]:
        """Return the names of all failures, sorted by packets lost over all mechanisms, most first."""
        costs: dict[str, int] = {}
        for case in self.cases:
            costs[case.failure] = costs.get(case.failure, 0) + case.lost_to_failure
        return sorted(self.scenario.failures, key=lambda name: -costs.get(name, 0))

    def telemetry_rows(self) -> Iterator[tuple[dict[str, object], TelemetryRow]]:
        """Yield (point, row of INT reports) of each run that took place. The point names mechanism, failure and seed."""
        for point, row in self._took_place():
            yield point, json.loads(row["telemetry"])

    def telemetry_of(self, mechanism: str, failure: str) -> TelemetryRow | None:
        """Return the row of INT reports of the run with the first seed; None if the failure hit nothing in use."""
        row = self.row(mechanism, failure, self.seeds[0])
        return None if row["skipped"] else cast(TelemetryRow, json.loads(row["telemetry"]))

    def _took_place(self) -> Iterator[tuple[dict[str, object], Row]]:
        for (mechanism, failure, seed), row in self._rows.items():
            if not row["skipped"]:
                yield {"mechanism": mechanism, "failure": failure, "seed": seed}, row


def _on_the_wire_ms(topology: Topology, failure: str) -> float:
    """Return the propagation delay of the failing element in ms.

    For a link it is the link's delay; for a switch, the sum of the two longest delays of its links to switches.
    """
    if failure not in topology.switches:
        return float(topology.links[topology.find_link(failure)].delay_ms)
    between = (link for link in topology.links if {link.a, link.b} <= topology.switches.keys())
    return sum(sorted(float(link.delay_ms) for link in between if failure in (link.a, link.b))[-2:])


def _named(flow: Flow) -> dict[str, object]:
    """Return a flow's ``kind``, ``source`` and ``destination``; several receivers are joined by spaces."""
    return {"kind": flow.kind, "source": flow.ends.source, "destination": " ".join(flow.ends.receivers)}
