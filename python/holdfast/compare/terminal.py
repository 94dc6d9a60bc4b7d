"""The ranking as a table for a terminal of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.compare import failures, telemetry, traffic_file
from holdfast.compare.comparison import Comparison
from holdfast.compare.figures import Summary
from holdfast.compare.formats import difference, number, ratio, terminal_table
from holdfast.terminal import Grid
from holdfast.wording import counted


class Column(NamedTuple):
    """A column: its heading in one word, the unit below it, what it is, and how a summary is shown."""

    heading: str
    unit: str
    what: str
    show: Callable[[Summary], str]


def title(comparison: Comparison) -> str:
    """Return two lines that describe the topology, the failures, the times and the traffic; narrow terminals wrap them."""
    scenario, times = comparison.scenario, comparison.scenario.times
    topology = scenario.topology
    what = f"each of {len(scenario.failures)} {scenario.failed}" if len(scenario.failures) > 1 else scenario.failures[0]
    runs = f", {len(comparison.seeds)} {'times' if scenario.live else 'seeds'}" if len(comparison.seeds) > 1 else ""
    live = ", live" if scenario.live else ""
    switches = counted(len(topology.switches), "switch", "switches")
    return (
        f"{topology.name} ({switches}{live}): {what} down from {times.failure_s:g} s to"
        f" {times.repair_s:g} s of {times.end_s:g} s{runs}\n{traffic_file.describe(scenario.traffic)}"
    )


def completion(summary: Summary, *, of: str = " of ", after: str = "") -> str:
    """Format the mean time of transfers in ms; if some are unfinished, how many of them were finished.

    A mean of the finished transfers would be one of the fast ones.
    """
    if summary.transfers_unfinished:
        return f"{summary.transfers - summary.transfers_unfinished}{of}{summary.transfers}{after}"
    return number(summary.completion_mean_ms)


UNDISTURBED = Column("anyway", "pkts", "packets lost without a failure", lambda s: number(s.lost_undisturbed))
"""Shown if anything is."""

ONE = [
    Column("lost", "pkts", "packets lost to the failure", lambda s: number(s.lost_mean)),
    Column("outage", "ms", "longest time without an arrival", lambda s: number(s.outage_mean_ms)),
]
MANY = [
    Column("lost", "pkts", "packets lost to a failure, on average", lambda s: number(s.lost_mean)),
    Column("most", "pkts", "lost to the worst failure", lambda s: number(s.lost_worst)),
    Column("outage", "ms", "time without an arrival, median", lambda s: number(s.outage_median_ms)),
    Column("worst", "ms", "the longest outage", lambda s: number(s.outage_worst_ms)),
]
TCP = [
    Column("tcp", "%", "TCP goodput lost by connections that it hits", lambda s: number(s.goodput_lost_percent)),
    Column("finish", "ms", "mean time of TCP transfers, or how many finished", lambda s: completion(s, of="/")),
]
LATENCY = Column("delay", "ms", "added while it lasts", lambda s: difference(s.added_latency_ms))
STATE = Column("state", "rows", "table entries of a switch", lambda s: number(s.entries_mean))
COMMON = [
    *TCP,
    LATENCY,
    Column("jitter", "ms", "added, too", lambda s: difference(s.added_jitter_ms)),
    Column("bytes", "ratio", "carried, by those of plain routing", lambda s: f"{s.bytes_ratio:.2f}"),
    STATE,
]
MULTICAST = [
    LATENCY,
    Column("bytes", "ratio", "carried, by those of the best trees", lambda s: ratio(s.tree_ratio)),
    STATE,
    Column("core", "rows", "state of switches where no group begins or ends", lambda s: number(s.core_state)),
    Column("join", "msgs", "updates for a join", lambda s: number(s.join_updates)),
]
"""Instead of these, where all flows have several receivers."""


def telemetry_table(comparison: Comparison) -> Grid:
    """Return a table of the first seed's INT reports around the failure that cost all mechanisms together most packets.

    A cell is mean / largest: of the latency in microseconds, and of the queue in packets.
    """
    failure = comparison.costliest_failures()[0]
    result = Grid(names=2, legend=["us: mean / longest time in the switch; queue: mean / most packets in front"])
    result.add_names("INT", "port")
    for interval in telemetry.INTERVALS:
        result.add_numbers(f"{interval}\nus", "\nqueue")
    for each in comparison.mechanisms:
        if (reported := comparison.telemetry_of(each.name, failure)) is None:
            continue
        for line in telemetry.around(comparison.scenario.topology, failure, reported):
            values = [cell for interval in telemetry.INTERVALS for cell in telemetry.cells(line[interval])]
            result.add_row(each.name, f"{line['switch']}-{line['to']}", *values)
    return result


def table(comparison: Comparison) -> Grid:
    """Return the table of the mechanisms, best first, or in no order if there is no ranking, and what its headings mean."""
    measures = MANY if len(comparison.scenario.failures) > 1 else ONE
    if comparison.uncounted is not None:
        measures = [each._replace(show=lambda _: number(None)) for each in measures]
    unsteady = [UNDISTURBED] if any(summary.lost_undisturbed for summary in comparison.summaries) else []
    columns = [*measures[:1], *unsteady, *measures[1:], *(MULTICAST if comparison.is_multicast else COMMON)]
    result = terminal_table([f"{each.heading}\n{each.unit}" for each in columns], _legend(columns))
    for each in comparison.summaries:
        result.add_row(each.mechanism, *(column.show(each) for column in columns))
    return result


def worst_table(comparison: Comparison) -> Grid:
    """Return a table of what hits hardest under each mechanism: the failure, and the pair of hosts that loses most to it."""
    names = comparison.scenario.failures
    result = Grid()
    result.add_names("worst for")
    if len(names) > 1:
        result.add_column(failures.kind(comparison.scenario.topology, names[0]), overflow="fold")
    result.add_column("pair", overflow="fold")
    result.add_numbers("lost", "outage (ms)")
    for each in comparison.summaries:
        if (pair := comparison.worst_pair(each.mechanism)) is not None:
            named = [pair.failure] if len(names) > 1 else []
            result.add_row(each.mechanism, *named, pair.name, str(pair.lost), number(pair.outage_ms))
    return result


def _legend(columns: Sequence[Column]) -> list[str]:
    """Return lines of a terminal's width that say what the headings mean."""
    words = "; ".join(f"{each.heading}: {each.what}" for each in columns)
    return textwrap.wrap(words, 80, break_on_hyphens=False)
