"""A collector on a terminal: the busiest flows with their paths, the slowest hops, and counts."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from holdfast.apps.telemetry.collector import Collector
from holdfast.terminal import printable

ROWS = 10
"""The most rows of each table."""


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def flow_table(collector: Collector) -> Table:
    """Return a table of the flows with most reports: path, changes of path, latency in microseconds, and drops."""
    table = Table(title=f"flows ({collector.counts().flows:,})", title_justify="left")
    for name in ("flow", "reports", "path", "changes", "latency (us)", "max", "drops"):
        if name in ("flow", "path"):
            table.add_column(name, overflow="fold")
        else:
            table.add_column(name.replace(" ", "\n"), justify="right", no_wrap=True)
    for key, state in collector.flows(ROWS).items():
        table.add_row(
            printable(str(key)),
            _number(state.reports),
            " ".join(map(str, state.path)),
            _number(state.path_changes),
            _number(state.latency_last),
            _number(state.latency_max if state.latency_last is not None else None),
            _number(state.drops),
        )
    return table


def hop_table(collector: Collector) -> Table:
    """Return a table of the hops with the highest latency, in microseconds, and their queues."""
    table = Table(title=f"hops ({collector.counts().hops:,})", title_justify="left")
    for name in ("node", "port", "packets", "latency (us)", "mean", "max", "queue", "max", "congested"):
        table.add_column(name.replace(" ", "\n"), justify="right", no_wrap=True)

    for key, state in collector.hops(slowest=ROWS).items():
        mean = state.latency_sum / state.latency_count if state.latency_count else None
        table.add_row(
            str(key.node_id),
            _number(key.egress_port),
            _number(state.packets),
            _number(state.latency_last),
            _number(mean),
            _number(state.latency_max if state.latency_count else None),
            _number(state.queue_last),
            _number(state.queue_max),
            _number(state.congested),
        )
    return table


def summary(collector: Collector) -> str:
    """Return the collector's counts as one line; rare kinds of losses are included only if there are any."""
    counts, malformed = collector.counts(), sum(collector.malformed().values())
    rare = (
        (collector.left, "not taken at the end"),
        (counts.rows_refused, "rows beyond memory"),
        (collector.rows_lost, "rows in no file"),
    )
    return (
        f"{counts.reports:,} reports in {counts.packets:,} packets; {counts.reports_lost:,} lost on the way, "
        f"{collector.receive_drops:,} beyond capacity, {malformed:,} malformed; {counts.drops:,} drops reported"
    ) + "".join(f"; {count:,} {what}" for count, what in rare if count)


def view(collector: Collector) -> Group:
    """Return what the terminal shows: the table of flows, the table of hops, and the counts."""
    return Group(flow_table(collector), hop_table(collector), Text(summary(collector)))
