"""The ranking as a table for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Callable

from rich.table import Table

from holdfast.compare import telemetry, traffic_file
from holdfast.compare.comparison import Comparison
from holdfast.compare.figures import Summary
from holdfast.compare.formats import difference, number, ratio, terminal_table

Column = tuple[str, Callable[[Summary], str]]


def title(comparison: Comparison) -> str:
    """Return two lines that describe the topology, the failures, the times and the traffic; narrow terminals wrap them."""
    scenario, times = comparison.scenario, comparison.scenario.times
    topology = scenario.topology
    what = f"each of {len(scenario.failures)} {scenario.failed}" if len(scenario.failures) > 1 else scenario.failures[0]
    runs = f", {len(comparison.seeds)} {'times' if scenario.live else 'seeds'}" if len(comparison.seeds) > 1 else ""
    live = ", live" if scenario.live else ""
    return (
        f"{topology.name} ({len(topology.switches)} switches{live}): {what} down from {times.failure_s:g} s to"
        f" {times.repair_s:g} s of {times.end_s:g} s{runs}\n{traffic_file.describe(scenario.traffic)}"
    )


def completion(summary: Summary, *, of: str = " of ", after: str = "") -> str:
    """Format the mean time of transfers in ms; if some are unfinished, how many of them were finished.

    A mean of the finished transfers would be one of the fast ones.
    """
    if summary.transfers_unfinished:
        return f"{summary.transfers - summary.transfers_unfinished}{of}{summary.transfers}{after}"
    return number(summary.completion_mean_ms)


UNDISTURBED: Column = ("lost\nwith-\nout", lambda s: number(s.lost_undisturbed))
"""Shown if anything is."""

ONE: list[Column] = [
    ("lost\npack-\nets", lambda s: number(s.lost_mean)),
    ("longest\noutage\n(ms)", lambda s: number(s.outage_mean_ms)),
]
MANY: list[Column] = [
    ("lost\nper\nfail.", lambda s: number(s.lost_mean)),
    ("lost\nworst\nfail.", lambda s: number(s.lost_worst)),
    ("outage\nmedian\n(ms)", lambda s: number(s.outage_median_ms)),
    ("outage\nworst\n(ms)", lambda s: number(s.outage_worst_ms)),
]
TCP: list[Column] = [
    ("TCP\nlost\n(%)", lambda s: number(s.goodput_lost_percent)),
    ("trans-\nfer\n(ms)", lambda s: completion(s, of="/")),
]
LATENCY: Column = ("late-\nncy\n(ms)", lambda s: difference(s.added_latency_ms))
STATE: Column = ("state\nper\nsw.", lambda s: number(s.entries_mean))
COMMON: list[Column] = [
    *TCP,
    LATENCY,
    ("jit-\nter\n(ms)", lambda s: difference(s.added_jitter_ms)),
    ("bytes\nratio", lambda s: f"{s.bytes_ratio:.2f}"),
    STATE,
]
MULTICAST: list[Column] = [
    LATENCY,
    ("bytes\nper\ntree", lambda s: ratio(s.tree_ratio)),
    STATE,
    ("core\nstate", lambda s: number(s.core_state)),
    ("up-\ndates/\njoin", lambda s: number(s.join_updates)),
]
"""Instead of these, where all flows have several receivers."""


def telemetry_table(comparison: Comparison) -> Table:
    """Return a table of the first seed's INT reports around the failure that cost all mechanisms together most packets.

    A cell is mean / largest: of the latency in microseconds, and of the queue in packets.
    """
    failure = comparison.costliest_failures()[0]
    result = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    result.add_column("INT", style="bold", no_wrap=True)
    result.add_column("port", no_wrap=True)
    for interval in telemetry.INTERVALS:
        result.add_column(f"{interval}\nus", justify="right", no_wrap=True)
        result.add_column("\nqueue", justify="right", no_wrap=True)
    for each in comparison.mechanisms:
        if (reported := comparison.telemetry_of(each.name, failure)) is None:
            continue
        for line in telemetry.around(comparison.scenario.topology, failure, reported):
            values = [cell for interval in telemetry.INTERVALS for cell in telemetry.cells(line[interval])]
            result.add_row(each.name, f"{line['switch']}-{line['to']}", *values)
    return result


def table(comparison: Comparison) -> Table:
    """Return the table of the mechanisms, best first, or in no order if there is no ranking."""
    measures = MANY if len(comparison.scenario.failures) > 1 else ONE
    if comparison.uncounted is not None:
        measures = [(heading, lambda _: number(None)) for heading, _ in measures]
    unsteady = [UNDISTURBED] if any(summary.lost_undisturbed for summary in comparison.summaries) else []
    columns = [*measures[:1], *unsteady, *measures[1:], *(MULTICAST if comparison.is_multicast else COMMON)]
    result = terminal_table([heading for heading, _ in columns])
    for each in comparison.summaries:
        result.add_row(each.mechanism, *(cell(each) for _, cell in columns))
    return result
