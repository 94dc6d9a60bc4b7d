"""The numbers of a comparison: of a flow, of a case, of what was promised, and of a mechanism; and their means.

Where one of several has no number, their mean has none.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from holdfast.compare.rows import Row

COUNTED_OF_CASE = (
    "sent",
    "lost",
    "lost_undisturbed",
    "lost_to_failure",
    "duplicated",
    "reordered",
    "outage_ms",
    "outage_undisturbed_ms",
)
COUNTED = (
    "lost_mean",
    "lost_low",
    "lost_high",
    "lost_median",
    "lost_worst",
    "worst_failure",
    "lost_by_seed",
    "lost_undisturbed",
    "lost_unsteady",
    "outage_by_seed_ms",
    "outage_unsteady_ms",
    "outage_mean_ms",
    "outage_median_ms",
    "outage_worst_ms",
)
"""Fields of a :class:`Case` and of a :class:`Summary` that say nothing where no probe was counted."""


@dataclass(frozen=True)
class Figures:
    """Losses, outages and delays of probes, of one reception or of a whole flow by the rule of :mod:`holdfast.compare.flows`."""

    sent: int
    """Packets."""
    lost: int
    """Packets that never arrived; of several receivers, at each of them."""
    duplicated: int
    """Further copies that arrived."""
    reordered: int
    """Packets that arrived behind a later one (RFC 4737)."""
    outage_ms: float
    """The longest time without an arrival, beyond the stream's interval; of several receivers the longest."""
    latency_ms: float | None
    """Mean of the packets sent between failure and repair, of a ping the round trip; None: none arrived."""
    jitter_ms: float | None
    """Mean absolute difference of the latencies of consecutive packets of them; None likewise."""


def figures(row: Row, places: Sequence[int]) -> Figures:
    """Return the figures of one flow, computed from those of its receptions, at the indices ``places`` of a run's row.

    A flow has a reception for each of its receivers.
    """
    return Figures(
        sent=sum(row["sent"][i] for i in places),
        lost=sum(row["lost"][i] for i in places),
        duplicated=sum(row["duplicated"][i] for i in places),
        reordered=sum(row["reordered"][i] for i in places),
        outage_ms=max(row["outage_ms"][i] for i in places),
        latency_ms=mean_of_all([(row["latency_ms"][i], 1) for i in places]),
        jitter_ms=mean_of_all([(row["jitter_ms"][i], 1) for i in places]),
    )


@dataclass(frozen=True)
class Case:
    """The cost of a failure under a mechanism, with a seed. ``carried``: it hit something that the mechanism uses.

    ``lost_to_failure`` is ``lost`` less ``lost_undisturbed``: of the same flows without the failure. ``outage_ms`` is the longest
    of any stream. ``goodput_lost_bytes`` is against the same mechanism undisturbed, from the failure to the end, over all
    ``connections`` that were affected; the percentage is the mean of what each of these lost of its own. ``added_*`` are against
    ``static`` undisturbed, over the affected streams of which something arrives meanwhile under any mechanism. None: of some of
    these nothing arrives under this one, or of ``completion_*`` that not all transfers were finished, and a mean of the others
    would flatter; or there is nothing to take a mean of.
    """

    mechanism: str
    """Its name."""
    failure: str
    """The link or switch that fails."""
    seed: int
    """Of the network's random numbers."""
    carried: bool
    """True if the failure hit something that the mechanism uses; if not, the numbers are those without the failure."""
    affected_streams: int
    """Streams and pings that did worse with the failure under any mechanism, each counted once."""
    sent: int
    """Packets of streams and pings."""
    lost: int
    """Packets, whatever the reason."""
    lost_undisturbed: int
    """Packets lost without the failure, with the same seed."""
    lost_to_failure: int
    """The difference of the two."""
    duplicated: int
    """Further copies that arrived."""
    reordered: int
    """Packets that arrived behind a later one (RFC 4737)."""
    outage_ms: float
    """The longest outage of any stream."""
    outage_undisturbed_ms: float
    """The same without the failure."""
    goodput_undisturbed_bytes: int
    """What affected connections delivered without the failure."""
    goodput_lost_bytes: int
    """What they delivered less with it."""
    goodput_lost_percent: float | None
    """Mean of what each connection lost of its own."""
    connections: int
    """TCP connections without an end that were affected."""
    transfers: int
    """TCP transfers that were affected."""
    transfers_unfinished: int
    """Of these, those not finished at the end."""
    completion_mean_ms: float | None
    """Mean time of the affected transfers; None if one was not finished."""
    completion_worst_ms: float | None
    """The longest time of them; None likewise."""
    added_latency_ms: float | None
    """Mean latency of affected streams, less that under the baseline without a failure."""
    added_jitter_ms: float | None
    """The same of the jitter."""


@dataclass(frozen=True)
class Promise:
    """A mechanism's promise under a failure, and whether it kept it, at one reception with a seed.

    ``outage_ms``: the longest outage it allows; None: it promises nothing there. ``allowed``: the packets it may lose then: those
    of that time, and those on the wire of the failed element; none if it promises no outage.
    """

    mechanism: str
    failure: str
    seed: int
    place: int
    outage_ms: float | None
    allowed: int
    lost: int
    duplicated: int

    @property
    def is_kept(self) -> bool:
        """True if not more was lost than allowed and nothing was delivered twice; also if nothing was promised."""
        return self.outage_ms is None or (self.lost <= self.allowed and not self.duplicated)


@dataclass(frozen=True)
class WorstPair:
    """The pair of hosts that loses most to the worst failure of a mechanism: packets lost to it, and its longest outage."""

    failure: str
    source: str
    receiver: str
    lost: int
    outage_ms: float

    @property
    def name(self) -> str:
        """The names of both hosts."""
        return f"{self.source} to {self.receiver}"


class OfMulticast(TypedDict):
    """Fields of a :class:`Summary`."""

    tree_ratio: float | None
    join_updates: float | None
    join_switches: float | None
    core_state: float | None


@dataclass(frozen=True)
class Summary:
    """A mechanism in one line. Means are over all cases, medians over those that hit something that it uses.

    ``lost_*`` is what is lost to the failure, ``lost_undisturbed`` what is lost without, a mean over the seeds, and
    ``lost_unsteady`` and ``outage_unsteady_ms`` the part of it, and of the outage without the failure, that can differ from run to
    run. ``lost_low`` and ``lost_high``: the interval of the mean with 95 % confidence, over the seeds; of a single seed there is
    none. ``*_by_seed``: means over the failures. ``rank``: None if the runs carry none. Of flows with several receivers, else None:
    ``tree_ratio``, bytes against those of the best trees; ``join_*``, the messages of a join; ``core_state``, a mean over the
    switches (:mod:`holdfast.compare.multicast`). ``promises``: receptions, over failures and seeds, of which the mechanism said
    beforehand how long they are out at most; ``promises_kept``: those that were not out longer; ``promises_none``: those of which
    it said nothing. None of a mechanism that says nothing at all.
    """

    mechanism: str
    rank: int | None
    cases: int
    carried: int
    lost_mean: float
    lost_low: float | None
    lost_high: float | None
    lost_median: float
    lost_worst: int
    worst_failure: str
    lost_by_seed: tuple[float, ...]
    lost_undisturbed: float
    lost_unsteady: float
    outage_by_seed_ms: tuple[float, ...]
    outage_unsteady_ms: float
    outage_mean_ms: float
    outage_median_ms: float
    outage_worst_ms: float
    goodput_lost_bytes_mean: float
    goodput_lost_percent: float | None
    goodput_lost_by_seed: tuple[float, ...]
    completion_mean_ms: float | None
    completion_worst_ms: float | None
    transfers: int
    transfers_unfinished: int
    added_latency_ms: float | None
    added_jitter_ms: float | None
    bytes_ratio: float
    entries_mean: float
    entries_max: int
    unprotected_flows: int
    tree_ratio: float | None
    join_updates: float | None
    join_switches: float | None
    core_state: float | None
    promises: int | None
    promises_kept: int | None
    promises_none: int | None


def mean_lost_percent(before: Sequence[int], now: Sequence[int], which: Sequence[int]) -> float | None:
    """Return the mean over connections of the goodput lost, in percent of the goodput before; None without connections.

    ``which``: the indices of the connections.
    """
    found = mean([100 * (before[i] - now[i]) / before[i] for i in which])
    return None if found is None else round(found, 6)


def percent_of(cases: Sequence[Case]) -> float | None:
    """Return the mean percentage of goodput lost by connections in the cases of one mechanism; None without connections."""
    found = [(case.goodput_lost_percent, case.connections) for case in cases if case.connections]
    return mean_of_all(found)


def mean(values: Sequence[float]) -> float | None:
    """Return the mean of ``values``, or None if there are none."""
    return statistics.fmean(values) if values else None


def mean_of_all(weighed: Sequence[tuple[float | None, int]]) -> float | None:
    """Return the mean of ``weighed``, (value, weight) pairs; None if one value is None, or if there are none.

    A mean of the known values alone would be of other things than the means that it is compared with.
    """
    found = [(value, weight) for value, weight in weighed if value is not None]
    if not found or len(found) < len(weighed):
        return None
    return sum(value * weight for value, weight in found) / sum(weight for _, weight in found)


def worst_of(values: Sequence[float | None]) -> float | None:
    """Return the greatest of ``values``; None if one of them is None, or if there are none."""
    found = [value for value in values if value is not None]
    return max(found) if found and len(found) == len(values) else None


def mean_difference(values: Sequence[float | None], base: Sequence[float | None], which: Sequence[int]) -> float | None:
    """Return the mean of ``values`` minus ``base`` at the indices ``which``; None if one of these values is None."""
    found = [(values[i], base[i]) for i in which]
    differences = [a - b for a, b in found if a is not None and b is not None]
    return mean(differences) if len(differences) == len(found) else None
