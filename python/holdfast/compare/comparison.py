"""From runs to what they say: a case per mechanism, failure and seed, a summary per mechanism, and the ranking.

*Affected* flows of a failure are those that did worse with it than without, under any mechanism: the same flows for all of them.
What is a mean over flows is one over these; what is lost, and the longest outage, are over all flows that are not cut off by
themselves (a host at a switch that fails has no other). Nothing here runs a network, draws, or puts it into words.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import polars as pl

from holdfast.compare.mechanisms import Mechanism
from holdfast.compare.scenario import NO_FAILURE, Scenario
from holdfast.statistics import mean_interval

Row = Mapping[str, Any]

PROBE_COLUMNS = ("sent", "lost", "duplicated", "reordered", "outage_ms", "latency_ms", "jitter_ms")
BULK_COLUMNS = ("goodput_bytes", "timeouts", "retransmitted_bytes")


@dataclass(frozen=True)
class Noise:
    """What two runs of the same may differ by: an outage by so many milliseconds, bytes and times by such a factor.

    Of two mechanisms, what they lose by such a share or by so many packets, and their outages by the same share.
    """

    outage_ms: float
    goodput: float
    completion: float
    share: float
    packets: float


SIMULATED = Noise(outage_ms=1.0, goodput=1.0, completion=1.01, share=0.05, packets=0.0)
"""Outages are known to a probe's interval, and a few packets more or fewer were on the link when it broke."""

LIVE = Noise(outage_ms=10.0, goodput=0.9, completion=2.0, share=0.2, packets=2.0)


@dataclass(frozen=True)
class FlowName:
    """A flow as people know it."""

    kind: str
    source: str
    destination: str


@dataclass(frozen=True)
class Case:
    """What a failure cost under a mechanism, with a seed. ``carried``: it hit something that the mechanism uses.

    ``outage_ms`` is the longest of any stream. ``goodput_lost_bytes`` is against the same mechanism undisturbed, from the failure
    to the end, and so is the percentage; ``added_*`` are against ``static`` undisturbed. None: nothing to take a mean of.
    """

    mechanism: str
    failure: str
    seed: int
    carried: bool
    affected_streams: int
    sent: int
    lost: int
    duplicated: int
    reordered: int
    outage_ms: float
    goodput_undisturbed_bytes: int
    goodput_lost_bytes: int
    goodput_lost_percent: float | None
    transfers: int
    transfers_unfinished: int
    completion_mean_ms: float | None
    completion_worst_ms: float | None
    added_latency_ms: float | None
    added_jitter_ms: float | None


@dataclass(frozen=True)
class Summary:
    """A mechanism in one line. Means are over all cases, medians over those that hit something that it uses.

    ``lost_low`` and ``lost_high``: the interval of the mean with 95 % confidence, over the seeds; of a single seed there is none.
    """

    mechanism: str
    rank: int
    cases: int
    carried: int
    lost_mean: float
    lost_low: float | None
    lost_high: float | None
    lost_median: float
    lost_worst: int
    worst_failure: str
    lost_undisturbed: int
    outage_mean_ms: float
    outage_median_ms: float
    outage_worst_ms: float
    goodput_lost_bytes_mean: float
    goodput_lost_percent: float | None
    completion_mean_ms: float | None
    completion_worst_ms: float | None
    transfers: int
    transfers_unfinished: int
    added_latency_ms: float | None
    added_jitter_ms: float | None
    bytes_ratio: float
    entries_mean: float
    entries_max: int
    unprotected_pairs: int


class Comparison:
    """The runs of a scenario, by mechanism, failure and seed, and what follows from them."""

    def __init__(
        self, scenario: Scenario, mechanisms: Sequence[Mechanism], seeds: Sequence[int], rows: Sequence[Row]
    ) -> None:
        self.scenario = scenario
        self.mechanisms = list(mechanisms)
        self.seeds = list(seeds)
        self._rows = {(row["mechanism"], row["failure"], row["network_seed"]): row for row in rows}
        self.noise = LIVE if scenario.live else SIMULATED
        self.pairs = scenario.traffic.host_pairs()
        self.probes, self.bulk, self.transfers = _flow_names(scenario)
        self.cases = [case for failure in scenario.failures for seed in seeds for case in self._cases(failure, seed)]
        self.summaries = self._summaries()
        """By rank."""

    def row(self, mechanism: str, failure: str, seed: int) -> Row:
        """A run; of a failure that nothing could notice the undisturbed one."""
        row = self._rows[mechanism, failure, seed]
        return self._rows[mechanism, NO_FAILURE, seed] if row["skipped"] else row

    def is_carried(self, mechanism: str, failure: str, seed: int) -> bool:
        """Whether the failure hit something that the mechanism uses."""
        return not self._rows[mechanism, failure, seed]["skipped"]

    def measured(self, flows: Sequence[FlowName], failure: str) -> list[int]:
        """The flows that are counted under a failure: not those with an end at a switch that fails."""
        topology = self.scenario.topology
        if failure not in topology.switches:
            return list(range(len(flows)))
        gone = {name for name in topology.hosts if topology.attachment(name).switch == failure}
        return [i for i, flow in enumerate(flows) if flow.source not in gone and flow.destination not in gone]

    def _cases(self, failure: str, seed: int) -> Iterator[Case]:
        probes, bulk, transfers = self._affected(failure, seed)
        measured = self.measured(self.probes, failure)
        for mechanism in self.mechanisms:
            row, still = self.row(mechanism.name, failure, seed), self.row(mechanism.name, NO_FAILURE, seed)
            plain = self.row("static", NO_FAILURE, seed)
            expected = sum(still["goodput_bytes"][i] for i in bulk)
            missing = expected - sum(row["goodput_bytes"][i] for i in bulk)
            completed = [row["completion_ms"][i] for i in transfers if row["completion_ms"][i] is not None]
            yield Case(
                mechanism=mechanism.name,
                failure=failure,
                seed=seed,
                carried=self.is_carried(mechanism.name, failure, seed),
                affected_streams=len(probes),
                **{name: sum(row[name][i] for i in measured) for name in ("sent", "lost", "duplicated", "reordered")},
                outage_ms=max((row["outage_ms"][i] for i in measured), default=0.0),
                goodput_undisturbed_bytes=expected,
                goodput_lost_bytes=missing,
                goodput_lost_percent=round(100 * missing / expected, 6) if expected else None,
                transfers=len(transfers),
                transfers_unfinished=len(transfers) - len(completed),
                completion_mean_ms=_mean(completed),
                completion_worst_ms=max(completed, default=None),
                added_latency_ms=_mean_difference(row["latency_ms"], plain["latency_ms"], probes),
                added_jitter_ms=_mean_difference(row["jitter_ms"], plain["jitter_ms"], probes),
            )

    def _affected(self, failure: str, seed: int) -> tuple[list[int], list[int], list[int]]:
        """The probes, the bulk connections and the transfers that did worse under some mechanism."""
        probes: set[int] = set()
        bulk: set[int] = set()
        transfers: set[int] = set()
        for mechanism in self.mechanisms:
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
        return sorted(probes), sorted(bulk), sorted(transfers)

    def _summaries(self) -> list[Summary]:
        found = [self._summary(mechanism.name) for mechanism in self.mechanisms]
        # What is no more than noise decides nothing.
        step_ms = self.noise.outage_ms
        found.sort(
            key=lambda s: (round(s.lost_mean, 3), round(s.outage_mean_ms / step_ms), s.bytes_ratio, s.entries_mean)
        )
        return [Summary(**{**asdict(summary), "rank": i}) for i, summary in enumerate(found, start=1)]

    def _summary(self, name: str) -> Summary:
        cases = [case for case in self.cases if case.mechanism == name]
        hit = [case for case in cases if case.carried] or cases
        worst = max(cases, key=lambda case: (case.lost, case.outage_ms))
        undisturbed = [self.row(name, NO_FAILURE, seed) for seed in self.seeds]
        plain = [self.row("static", NO_FAILURE, seed) for seed in self.seeds]
        base = sum(case.goodput_undisturbed_bytes for case in cases)
        low, high = self._interval(cases)
        lost_bytes = sum(case.goodput_lost_bytes for case in cases)
        entries = undisturbed[0]["entries"]
        return Summary(
            mechanism=name,
            rank=0,
            cases=len(cases),
            carried=sum(case.carried for case in cases),
            lost_mean=statistics.fmean(case.lost for case in cases),
            lost_low=low,
            lost_high=high,
            lost_median=statistics.median(case.lost for case in hit),
            lost_worst=worst.lost,
            worst_failure=worst.failure,
            lost_undisturbed=sum(sum(row["lost"]) for row in undisturbed),
            outage_mean_ms=statistics.fmean(case.outage_ms for case in cases),
            outage_median_ms=statistics.median(case.outage_ms for case in hit),
            outage_worst_ms=max(case.outage_ms for case in cases),
            goodput_lost_bytes_mean=lost_bytes / len(cases),
            goodput_lost_percent=100 * lost_bytes / base if base else None,
            completion_mean_ms=_mean([c.completion_mean_ms for c in hit if c.completion_mean_ms is not None]),
            completion_worst_ms=max(
                (c.completion_worst_ms for c in cases if c.completion_worst_ms is not None), default=None
            ),
            transfers=sum(case.transfers for case in cases),
            transfers_unfinished=sum(case.transfers_unfinished for case in cases),
            added_latency_ms=_mean([c.added_latency_ms for c in hit if c.added_latency_ms is not None]),
            added_jitter_ms=_mean([c.added_jitter_ms for c in hit if c.added_jitter_ms is not None]),
            bytes_ratio=statistics.fmean(
                row["wire_bytes"] / base["wire_bytes"] if base["wire_bytes"] else 1.0
                for row, base in zip(undisturbed, plain, strict=True)
            ),
            entries_mean=statistics.fmean(entries),
            entries_max=max(entries),
            unprotected_pairs=len(undisturbed[0]["unprotected"]),
        )

    def _interval(self, cases: Sequence[Case]) -> tuple[float | None, float | None]:
        """Of the mean of what is lost, seed by seed."""
        if len(self.seeds) < 2:
            return None, None
        return mean_interval([statistics.fmean(c.lost for c in cases if c.seed == seed) for seed in self.seeds])

    def as_good(self, one: Summary, other: Summary) -> bool:
        """Whether two mechanisms differ by no more than noise: in what they lose, by their intervals where there are any."""

        def near(a: float, b: float, least: float) -> bool:
            return abs(a - b) <= max(least, self.noise.share * max(a, b))

        intervals = [
            (s.lost_low, s.lost_high) for s in (one, other) if s.lost_low is not None and s.lost_high is not None
        ]
        lost = near(one.lost_mean, other.lost_mean, self.noise.packets)
        if len(intervals) == 2 and not self.seeds_agree:
            (low, high), (other_low, other_high) = intervals
            lost = max(low, other_low) <= min(high, other_high)
        return lost and near(one.outage_mean_ms, other.outage_mean_ms, self.noise.outage_ms)

    def late(self) -> dict[str, float]:
        """Of a live comparison, in milliseconds: the network's clock, on average and at most, and the senders of probes at most.

        And how many runs were made again for it.
        """
        rows = [row for row in self._rows.values() if not row["skipped"]]
        return {
            "mean_ms": statistics.fmean(row["mean_lateness_ms"] for row in rows),
            "max_ms": max(row["max_lateness_ms"] for row in rows),
            "senders_ms": max(row["sender_lateness_ms"] for row in rows),
            "repeated": sum(row["repeated"] for row in rows),
        }

    @property
    def seeds_agree(self) -> bool:
        """Whether several seeds gave the same in everything, as they do where nothing is random."""
        first = {(c.mechanism, c.failure): c for c in self.cases if c.seed == self.seeds[0]}
        others = [case for case in self.cases if case.seed != self.seeds[0]]
        return bool(others) and all(replace(c, seed=self.seeds[0]) == first[c.mechanism, c.failure] for c in others)

    def case_frame(self) -> pl.DataFrame:
        """All cases."""
        return pl.DataFrame([asdict(case) for case in self.cases], infer_schema_length=None)

    def flow_frame(self) -> pl.DataFrame:
        """All flows of all runs that took place, the undisturbed ones included: a row each."""
        rows: list[dict[str, Any]] = []
        for (mechanism, failure, seed), row in self._rows.items():
            if row["skipped"]:
                continue
            key = {"mechanism": mechanism, "failure": failure, "seed": seed}
            for i, flow in enumerate(self.probes):
                rows.append({**key, **asdict(flow), **{name: row[name][i] for name in PROBE_COLUMNS}})
            for i, flow in enumerate(self.bulk):
                rows.append({**key, **asdict(flow), **{name: row[name][i] for name in BULK_COLUMNS}})
            for i, flow in enumerate(self.transfers):
                rows.append({**key, **asdict(flow), "completion_ms": row["completion_ms"][i]})
        schema = {
            **dict.fromkeys(("mechanism", "failure"), pl.String),
            "seed": pl.Int64,
            **dict.fromkeys(("kind", "source", "destination"), pl.String),
            **dict.fromkeys(("sent", "lost", "duplicated", "reordered"), pl.Int64),
            **dict.fromkeys(("outage_ms", "latency_ms", "jitter_ms"), pl.Float64),
            **dict.fromkeys(BULK_COLUMNS, pl.Int64),
            "completion_ms": pl.Float64,
        }
        return pl.DataFrame(rows, schema=schema)


def _flow_names(scenario: Scenario) -> tuple[list[FlowName], list[FlowName], list[FlowName]]:
    """Probes, bulk connections and transfers, in the order in which measures' rows have them."""
    traffic = scenario.traffic
    probes = [FlowName("udp", *ends) for entry in traffic.udp for ends in traffic.ends(entry)]
    probes += [FlowName("ping", *ends) for entry in traffic.ping for ends in traffic.ends(entry)]
    tcp = [
        FlowName("bulk" if entry.transfer_bytes is None else "transfer", *ends)
        for entry in traffic.tcp
        for ends in traffic.ends(entry)
        for _ in range(entry.count)
    ]
    return probes, [flow for flow in tcp if flow.kind == "bulk"], [flow for flow in tcp if flow.kind == "transfer"]


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _mean_difference(
    values: Sequence[float | None], base: Sequence[float | None], which: Sequence[int]
) -> float | None:
    """Over those that have both."""
    found = [(values[i], base[i]) for i in which]
    return _mean([a - b for a, b in found if a is not None and b is not None])
