"""From the runs of networks to conclusions: a case per mechanism, failure and seed, and a summary per mechanism.

*Affected* flows of a failure are those that did worse with it than without, under any mechanism and with any seed: the same flows
for all of them. A flow with several receivers is counted at each of them. Means over flows are over the affected ones; losses, and
the longest outage, are over all flows that are not cut off by themselves (a host at a switch that fails has no other).

Mechanisms are ranked as in any world (:mod:`holdfast.compare.ranking`): by what they lose to the failure, or else by the outage, or
else by the bytes that they carry. Nothing here runs a network, draws, or puts it into words.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from itertools import product
from typing import Any, Final, cast

import polars as pl

from holdfast.compare import doubts, failures, multicast
from holdfast.compare.figures import (
    COUNTED,
    COUNTED_OF_CASE,
    Case,
    OfMulticast,
    Promise,
    Summary,
    WorstPair,
    figures,
    mean,
    mean_difference,
    mean_lost_percent,
    mean_of_all,
    percent_of,
    worst_of,
)
from holdfast.compare.flows import Flow, Kind, Reception, of_kind, receptions_of
from holdfast.compare.inputs import NO_FAILURE
from holdfast.compare.mechanism import Mechanism
from holdfast.compare.mechanisms import STATIC
from holdfast.compare.ranking import LIVE, Less, Ranking
from holdfast.compare.rows import Row, TelemetryRow
from holdfast.compare.scenario import Scenario
from holdfast.compare.traffic_file import UdpEntry
from holdfast.topology import Topology

BULK_COLUMNS: Final = ("goodput_bytes", "timeouts", "retransmitted_bytes")

KEY_SCHEMA = {"mechanism": pl.String, "failure": pl.String, "seed": pl.Int64}
FIGURES_SCHEMA = {
    **dict.fromkeys(("sent", "lost", "duplicated", "reordered"), pl.Int64),
    **dict.fromkeys(("outage_ms", "latency_ms", "jitter_ms"), pl.Float64),
}

FEW_BYTES = 3 * 1448
"""Losses of connections to a failure differ by more than this: three segments of Ethernet's length."""


class Comparison(Ranking):
    """The runs of a scenario of networks, by mechanism, failure and seed, and what follows from them."""

    scenario: Scenario
    mechanisms: list[Mechanism]
    cases: list[Case]
    summaries: list[Summary]
    _rows: dict[tuple[str, str, int], Row]

    def __init__(
        self, scenario: Scenario, mechanisms: Sequence[Mechanism], seeds: Sequence[int], rows: Sequence[Row]
    ) -> None:
        self.flows = scenario.traffic.flows()
        self._gone: dict[str, set[str]] = {}
        receptions = receptions_of(scenario)
        kinds: tuple[tuple[Kind, ...], ...] = (("udp", "ping"), ("bulk",), ("transfer",))
        self.probes, self.bulk, self.transfers = ([receptions[i] for i in of_kind(receptions, *each)] for each in kinds)
        super().__init__(scenario, mechanisms, seeds, rows)

    def _repr_html_(self) -> str:
        """Return the ranking for notebooks, with the columns of networks and the advice."""
        from holdfast import notebook
        from holdfast.compare import advice, report

        return notebook.comparison_page(self, report.columns(self), advice.advice(self))

    def _conclude(self) -> None:
        if self.scenario.live:
            late = self.late()
            known_ms = max(LIVE.outage_ms, late["max_ms"] + late["senders_ms"])
            self.noise = replace(LIVE, outage_ms=known_ms)
        super()._conclude()

    def _doubts(self, found: Sequence[Summary]) -> list[str]:
        return doubts.doubts(self, found)

    def _unranked(self, found: Sequence[Summary]) -> str | None:
        return doubts.unranked(self, found)

    def ties(self) -> Sequence[Less]:
        """Return the tests that order mechanisms with equal losses: by outage, then by bytes carried."""
        return self.back_sooner, self.carries_less

    def order(self, one: Summary) -> tuple[float, ...]:
        """Return the sort key of a summary: packets lost, outage in ms, and bytes carried relative to the baseline."""
        return one.lost_mean, one.outage_mean_ms, one.bytes_ratio

    def price(self, one: Summary) -> float:
        """Return the mean number of entries that the mechanism has in the switches."""
        return one.entries_mean

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
        """Return the indices of the receptions (flow and receiver) that count under ``failure``.

        Not counted are those whose source or receiver is at a switch that fails.
        """
        gone = self._cut_off(failure)
        return [i for i, each in enumerate(receptions) if gone.isdisjoint(each.hosts)]

    def _cut_off(self, failure: str) -> set[str]:
        """Return the hosts at a switch that fails; the result is kept."""
        if failure not in self._gone:
            self._gone[failure] = failures.cut_off(self.scenario.topology, failure)
        return self._gone[failure]

    def _cases(self) -> Iterator[Case]:
        for failure in self.scenario.failures:
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
        """Return the indices of the probes, of the connections and of the transfers that suffer from ``failure``, in three lists.

        A flow is included if it does worse than undisturbed under one mechanism with one seed. Connections count only if they
        deliver data in every undisturbed run, as otherwise no share of it can be lost.
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

    def _summary(self, name: str) -> Summary:
        cases: list[Case] = self.cases_of(name)
        hit = [case for case in cases if case.carried] or cases
        worst = max(cases, key=lambda case: (case.lost_to_failure, case.outage_ms))
        undisturbed = [self.row(name, NO_FAILURE, seed) for seed in self.seeds]
        plain = [self.row(self.baseline, NO_FAILURE, seed) for seed in self.seeds]
        lost_bytes = sum(case.goodput_lost_bytes for case in cases)
        entries = undisturbed[0]["entries"]
        return Summary(
            **{**self.losses(name), "lost_worst": worst.lost_to_failure, "worst_failure": worst.failure},
            cases=len(cases),
            lost_median=statistics.median(case.lost_to_failure for case in hit),
            outage_by_seed_ms=self.by_seed(cases, lambda case: case.outage_ms),
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

    def worst_pair(self, name: str) -> WorstPair | None:
        """Return the pair that loses most to the mechanism's worst failure; None if no packet is lost to any."""
        case: Case = max(self.cases_of(name), key=lambda each: (each.lost_to_failure, each.outage_ms))
        if case.lost_to_failure <= 0:
            return None
        row, still = (self.row(name, failure, case.seed) for failure in (case.failure, NO_FAILURE))
        places = self.measured(self.probes, case.failure)
        worst = max(places, key=lambda i: (row["lost"][i] - still["lost"][i], row["outage_ms"][i]))
        lost = row["lost"][worst] - still["lost"][worst]
        return WorstPair(case.failure, *self.probes[worst].hosts, lost, row["outage_ms"][worst])

    def _of_promises(self, name: str) -> dict[str, Any]:
        found = self.promises[name]
        given = [each for each in found if each.outage_ms is not None]
        counts = (len(given), sum(each.is_kept for each in given), len(found) - len(given))
        return dict(zip(("promises", "promises_kept", "promises_none"), counts if found else [None] * 3, strict=True))

    @cached_property
    def promises(self) -> dict[str, list[Promise]]:
        """The longest outages that mechanisms promised, and whether they kept them: a list for each mechanism, perhaps empty.

        There is a promise per reception, seed and failure that hit something in use.
        """
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
        """The bytes that the best multicast trees would carry; None if there are TCP flows or pings."""
        return multicast.best_tree_bytes(self.scenario)

    def _goodput_by_seed(self, cases: Sequence[Case]) -> tuple[float, ...]:
        """Return the percentage of goodput lost, by seed; empty if there is a seed without connections."""
        found = [percent_of([case for case in cases if case.seed == seed]) for seed in self.seeds]
        known = tuple(each for each in found if each is not None)
        return known if len(known) == len(found) else ()

    # ---- Differences beyond noise ----

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

    def case_frame(self) -> pl.DataFrame:
        """Return a table with a row per case: mechanism, failure and seed. Numbers that were not counted are null."""
        frame = pl.DataFrame([asdict(case) for case in self.cases], infer_schema_length=None)
        if self.uncounted is not None:
            frame = frame.with_columns(pl.lit(None).cast(frame.schema[name]).alias(name) for name in COUNTED_OF_CASE)
        return frame

    def summary_of(self, one: Summary) -> dict[str, object]:
        """Return a mechanism's summary as it is written to files; numbers that were not counted are None."""
        nothing = dict.fromkeys(COUNTED, None) if self.uncounted is not None else {}
        return {**super().summary_of(one), **nothing}

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

    For a link it is the link's delay; for a switch, the sum of the two longest delays of its links to switches. Of what fails at
    once it is the sum.
    """
    found = failures.failing(topology, failure)
    total = sum(float(topology.links[link].delay_ms) for link in found.links)
    for switch in found.switches:
        between = (link for link in topology.links if {link.a, link.b} <= topology.switches.keys())
        total += sum(sorted(float(link.delay_ms) for link in between if switch in (link.a, link.b))[-2:])
    return total


def _named(flow: Flow) -> dict[str, object]:
    """Return a flow's ``kind``, ``source`` and ``destination``; several receivers are joined by spaces."""
    return {"kind": flow.kind, "source": flow.ends.source, "destination": " ".join(flow.ends.receivers)}
